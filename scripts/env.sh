# shellcheck shell=bash disable=SC2034
# Sourced by the other scripts: the repository's root, and Open MPI where a distribution keeps it outside PATH (Fedora,
# RHEL: environment modules), unless an archive of `make gpu-bundle` brings its own.
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
if [ -z "${OPAL_PREFIX:-}" ] && ! command -v mpicc >/dev/null 2>&1; then
	for prefix in /usr/lib64/openmpi /usr/lib/openmpi; do
		if [ -x "$prefix/bin/mpicc" ]; then
			export PATH="$prefix/bin:$PATH"
			export PKG_CONFIG_PATH="$prefix/lib/pkgconfig${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}"
			export LD_LIBRARY_PATH="$prefix/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
			break
		fi
	done
fi

# Open MPI refuses to start as root unless told twice; ranks that wait must let others run where ranks share cores; its
# own banners
# would hide the one line in which stepsim says what went wrong.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_orte_execute_quiet=1
# stepsim binds its ranks to cores itself.
mpirun_flags=(--oversubscribe --bind-to none)

cores() {
	nproc 2>/dev/null || echo 1
}
