#!/usr/bin/env bash
# Installs what is missing to build and run stepsim (`run`, the default), to test it on a GPU (`gpu`), to run all
# tests (`test`), or for the long tests (`long`).
# Checks first, by asking for what is needed itself: when all is there, nothing is installed and no network is used.
# Where no package server answers, it says so within seconds.
# A user who cannot install is told what is missing and three ways to get it.
set -euo pipefail
# shellcheck source=scripts/env.sh
. "$(dirname "$0")/env.sh"
what=${1:-run}

# for | check | Debian, Ubuntu | Fedora, RHEL | conda-forge
needs='
run|command gcc|gcc libc6-dev|gcc glibc-devel|gcc
run|command make|make|make|make
run|command ar|binutils|binutils|binutils
run|command pkg-config|pkg-config|pkgconf-pkg-config|pkg-config
run|command mpicc|libopenmpi-dev|openmpi-devel|openmpi
run|command mpirun|openmpi-bin|openmpi|openmpi
run|module ompi-c|libopenmpi-dev|openmpi-devel|openmpi
run|module hwloc|libhwloc-dev|hwloc-devel|libhwloc
run|module expat|libexpat1-dev|expat-devel|expat
run|module yaml-0.1|libyaml-dev|libyaml-devel|yaml
run|module jansson|libjansson-dev|jansson-devel|jansson
run|module zlib|zlib1g-dev|zlib-devel|zlib
run|module sqlite3|libsqlite3-dev|sqlite-devel|sqlite
run|module openblas|libopenblas-dev|openblas-devel|openblas
gpu|module cunit|libcunit1-dev|CUnit-devel|cunit
test|command clang-format|clang-format|clang-tools-extra|clang-format
long|command valgrind|valgrind|valgrind|valgrind
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
	gpu) [ "$1" = run ] || [ "$1" = gpu ] ;;
	test) [ "$1" != long ] ;;
	long) true ;;
	*)
		echo "setup: '$what' is none of run, gpu, test, long" >&2
		exit 2
		;;
	esac
}

missing=() missing_debian=() missing_fedora=() missing_conda=()
look() {
	local for check kind name debian fedora conda names
	missing=() missing_debian=() missing_fedora=() missing_conda=()
	while IFS='|' read -r for check debian fedora conda; do
		if [ -z "$for" ] || ! wanted "$for"; then continue; fi
		read -r kind name <<<"$check"
		there "$kind" "$name" && continue
		missing+=("$name")
		read -ra names <<<"$debian"
		missing_debian+=("${names[@]}")
		read -ra names <<<"$fedora"
		missing_fedora+=("${names[@]}")
		missing_conda+=("$conda")
	done <<<"$needs"
}

# Prints its arguments in one line, each once.
unique() {
	printf '%s\n' "$@" | awk '!seen[$0]++' | paste -sd ' '
}

# Says why nothing was installed and what this user can do, and ends with 1.
give_ways() {
	cat >&2 <<END
setup: $1. Three ways to get what is missing:
  1. packages, installed by an administrator
       Debian, Ubuntu: apt-get install $(unique "${missing_debian[@]}")
       Fedora, RHEL:   dnf install $(unique "${missing_fedora[@]}")
  2. conda-forge, which needs no root
       conda create -n stepsim -c conda-forge $(unique "${missing_conda[@]}")
       conda activate stepsim
  3. the tarball that \`make dist\` makes on another machine: it needs no compiler, package or root
END
	if [ "$what" = run ]; then
		echo 'Open MPI and OpenBLAS execute steps; without them `make EXEC=0` builds a program that predicts.' \
			>&2
	fi
	exit 1
}

# Fails if this user neither is root nor can become root; sudo asks for a password on a terminal alone.
may_install() {
	[ "$(id -u)" = 0 ] && return
	command -v sudo >/dev/null 2>&1 || return
	[ -t 0 ] || sudo -n true 2>/dev/null
}

as_root() {
	if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

# Whether the first server of apt's sources, or the proxy before it, answers. apt-get itself tries for minutes. Sources
# that are no servers (file:, cdrom:) count as there.
apt_answers() {
	local uri scheme proxy host port
	uri=$(apt-get --print-uris update 2>/dev/null | sed -n "s/^'\([^']*\)'.*/\1/p" | head -n 1)
	scheme=${uri%%:*}_proxy
	proxy=$(apt-config dump "Acquire::${uri%%:*}::Proxy" 2>/dev/null | sed -n 's/^[^"]*"\(.*\)";$/\1/p')
	[ "$proxy" = DIRECT ] || uri=${proxy:-${!scheme:-$uri}}
	[[ $uri =~ ^(https?)://([^/@]*@)?(\[[^]]*\]|[^/:]+)(:([0-9]+))? ]] || return 0
	host=${BASH_REMATCH[3]} port=${BASH_REMATCH[5]}
	[ -n "$port" ] || { [ "${BASH_REMATCH[1]}" = https ] && port=443 || port=80; }
	timeout 5 bash -c ': >"/dev/tcp/$0/$1"' "${host//[\[\]]/}" "$port" 2>/dev/null
}

look
[ ${#missing[@]} -eq 0 ] && exit 0
echo "setup: missing: ${missing[*]}" >&2
if ! may_install; then
	give_ways 'this user is not root and cannot use sudo'
elif command -v apt-get >/dev/null 2>&1; then
	apt_answers || give_ways 'no package server answers'
	as_root apt-get update -qq >&2 &&
		as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
			"${missing_debian[@]}" >&2 || give_ways 'apt-get failed'
elif command -v dnf >/dev/null 2>&1; then
	as_root dnf install -y -q "${missing_fedora[@]}" >&2 || give_ways 'dnf failed'
else
	give_ways 'neither apt-get nor dnf is here'
fi

# Looks again: packages may have put programs outside PATH.
. "$root/scripts/env.sh"
look
if [ ${#missing[@]} -gt 0 ]; then
	echo "setup: still missing after the installation: ${missing[*]}" >&2
	exit 1
fi
