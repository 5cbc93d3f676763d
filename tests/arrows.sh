#!/usr/bin/env bash
# Reads the #include lines and fails on an arrow between rooms, or on a library in a room, that the design does not
# allow: tests/arrows.sh [ROOT]
set -u
root=${1:-$(cd "$(dirname "$0")/.." && pwd)}

# Rooms that a room may use, itself included. A folder that is named here is a room of its own.
declare -A may=(
	[base]="base"
	[topology]="base topology"
	[step]="base step"
	[sim/price]="base topology step sim/price"
	[sim/engine]="base topology step sim/price sim/engine"
	[sim/search]="base topology step sim/price sim/engine sim/search"
	[sim/advise]="base topology step sim/price sim/engine sim/search sim/advise"
	[exec]="base topology step exec"
	[report]="base step report"
	[cli]="base topology step sim/price sim/engine sim/search sim/advise exec report cli"
)
# Libraries that belong to rooms: header pattern | rooms.
libraries='
yaml.h|base
cyaml/*|base
hwloc.h|topology exec
hwloc/*|topology exec
expat.h|topology
mpi.h|exec
cblas.h|exec
openblas*|exec
cuda*|exec
cublas*|exec
cudnn*|exec
nccl.h|exec
zlib.h|report
sqlite3.h|report
'

failed=0
complain() {
	echo "arrows: $1"
	failed=1
}

allowed_library() { # header room
	local pattern rooms
	while IFS='|' read -r pattern rooms; do
		[ -n "$pattern" ] || continue
		# shellcheck disable=SC2053
		if [[ $1 == $pattern ]]; then
			[[ " $rooms " == *" $2 "* ]]
			return
		fi
	done <<<"$libraries"
	return 0
}

check_line() { # file room include
	local file=$1 room=$2 header
	case $3 in
	\"*)
		header=${3#\"}
		header=${header%%\"*}
		case $header in
		*/*)
			local target=${header%%/*} inner=${header#*/}
			[ -n "${may[$target/${inner%%/*}]:-}" ] && target=$target/${inner%%/*}
			[ -n "${may[$target]:-}" ] || { complain "$file: \"$header\" is in no room"; return; }
			[[ " ${may[$room]} " == *" $target "* ]] ||
				complain "$file: $room/ must not use $target/ (\"$header\")"
			[ "$room/$target" != cli/exec ] || [ "$header" = exec/plugin.h ] ||
				complain "$file: cli/ uses exec/ through exec/plugin.h alone (\"$header\")"
			[ -e "$root/$header" ] || complain "$file: \"$header\" does not exist"
			;;
		*) complain "$file: \"$header\" is not written as \"room/file.h\"" ;;
		esac
		;;
	\<*)
		header=${3#<}
		header=${header%%>*}
		allowed_library "$header" "$room" || complain "$file: $room/ must not use <$header>"
		;;
	esac
}

checked=0
for room in "${!may[@]}"; do
	[ -d "$root/$room" ] || continue
	while IFS=: read -r file include; do
		checked=$((checked + 1))
		check_line "${file#"$root"/}" "$room" "$include"
	done < <(grep -rEo --include='*.[ch]' --include='*.cu' \
		'^[[:space:]]*#[[:space:]]*include[[:space:]]*["<][^">]+[">]' "$root/$room" |
		sed -E 's/:[[:space:]]*#[[:space:]]*include[[:space:]]*/:/')
done
[ "$checked" -gt 0 ] || complain "no #include line found under $root"
exit $failed
