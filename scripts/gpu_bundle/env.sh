# shellcheck shell=bash
# Sourced: stepsim and the Open MPI that lies beside it, which finds its parts by these variables alone.
bundle=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export PATH="$bundle/mpi/bin:$bundle/bin:$PATH"
if [ -e "$bundle/mpi/bin/mpirun" ]; then
	export OPAL_PREFIX="$bundle/mpi" OPAL_BINDIR="$bundle/mpi/bin" OPAL_SYSCONFDIR="$bundle/mpi/etc"
	export OPAL_LIBDIR="$bundle/lib/stepsim" OPAL_PKGLIBDIR="$bundle/mpi/parts"
	export OPAL_DATADIR="$bundle/mpi/share" OPAL_PKGDATADIR="$bundle/mpi/share"
	# Parts of another version, as the machine's own PMIx may have them, do not load and are warned of.
	export PMIX_PKGLIBDIR="$bundle/mpi/pmix" PMIX_SYSCONFDIR="$bundle/mpi/etc" PMIX_PREFIX="$bundle/mpi"
	# Ranks and tests load these through parts and libraries.
	export LD_LIBRARY_PATH="$bundle/mpi/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
fi
