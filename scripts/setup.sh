#!/usr/bin/env bash
# Installs what is missing to build and run stepsim (`run`, the default), to test it (`test`), or for the long tests
# (`long`).
# Checks first, by asking for what is needed itself: when all is there, nothing is installed and no network is used.
set -euo pipefail
# shellcheck source=scripts/env.sh
. "$(dirname "$0")/env.sh"
what=${1:-run}

# for | check | Debian, Ubuntu | Fedora, RHEL
needs='
run|command gcc|gcc libc6-dev|gcc glibc-devel
run|command make|make|make
run|command ar|binutils|binutils
run|command pkg-config|pkg-config|pkgconf-pkg-config
run|command mpicc|libopenmpi-dev|openmpi-devel
run|command mpirun|openmpi-bin|openmpi
run|module ompi-c|libopenmpi-dev|openmpi-devel
run|module hwloc|libhwloc-dev|hwloc-devel
run|module expat|libexpat1-dev|expat-devel
run|module yaml-0.1|libyaml-dev|libyaml-devel
run|module jansson|libjansson-dev|jansson-devel
run|module zlib|zlib1g-dev|zlib-devel
run|module sqlite3|libsqlite3-dev|sqlite-devel
run|module openblas|libopenblas-dev|openblas-devel
test|module cunit|libcunit1-dev|CUnit-devel
test|command clang-format|clang-format|clang-tools-extra
long|command valgrind|valgrind|valgrind
'

there() {
	case $1 in
	command) command -v "$2" >/dev/null 2>&1 ;;
	module) pkg-config --exists "$2" 2>/dev/null ;;
	esac
}

wanted() {
	case $what in
	run) [ "$1" = run ] ;;
	test) [ "$1" != long ] ;;
	long) true ;;
	*)
		echo "setup: '$what' is none of run, test, long" >&2
		exit 2
		;;
	esac
}

missing_debian=() missing_fedora=() missing=()
look() {
	missing_debian=() missing_fedora=() missing=()
	while IFS='|' read -r for check debian fedora; do
		if [ -z "$for" ] || ! wanted "$for"; then continue; fi
		read -r kind name <<<"$check"
		there "$kind" "$name" && continue
		missing+=("$name")
		read -ra names <<<"$debian"
		missing_debian+=("${names[@]}")
		read -ra names <<<"$fedora"
		missing_fedora+=("${names[@]}")
	done <<<"$needs"
}

as_root() {
	if [ "$(id -u)" = 0 ]; then
		"$@"
	elif command -v sudo >/dev/null 2>&1; then
		sudo "$@"
	else
		echo "setup: this needs root: $*" >&2
		exit 1
	fi
}

look
[ ${#missing[@]} -eq 0 ] && exit 0
echo "setup: missing: ${missing[*]}" >&2
if command -v apt-get >/dev/null 2>&1; then
	as_root apt-get update -qq >&2
	as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
		"${missing_debian[@]}" >&2
elif command -v dnf >/dev/null 2>&1; then
	as_root dnf install -y -q "${missing_fedora[@]}" >&2
else
	echo "setup: neither apt-get nor dnf is here; please install: ${missing[*]}" >&2
	exit 1
fi

# Looks again: packages may have put programs outside PATH.
. "$root/scripts/env.sh"
look
if [ ${#missing[@]} -gt 0 ]; then
	echo "setup: still missing after the installation: ${missing[*]}" >&2
	exit 1
fi
