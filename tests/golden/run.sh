#!/usr/bin/env bash
# Runs the cases in *.t files: tests/golden/run.sh [--update] [FILE.t ...]. The last line is "N passed, N failed".
#
# A case is a command and what it must print (both streams together), as in cram:
# text that explains, at the left margin, and the case indented by four blanks:
#     $ stepsim list gpuz
#     stepsim: nothing to list under 'gpuz' (nearest: gpus)
#     [2]
# Commands run with `stepsim` in PATH, in an empty folder, with $ROOT naming the repository (in what they print too) and
# a cache of their own. A command goes on in lines that begin with "> ".
# "[N]" is the exit code when it is not 0. A line that ends in " (glob)" is matched with * and ? as wildcards. Blank
# lines do not count.
# --update writes what is printed now into the files; read the difference before keeping it. A command that is still
# running after 300 s (STEPSIM_GOLDEN_TIMEOUT) fails, and keeps its text in an update.
set -u
here=$(cd "$(dirname "$0")" && pwd)
ROOT=$(cd "$here/../.." && pwd)
export ROOT
export PATH="${STEPSIM_BIN:-$ROOT/build/release}:$PATH" LC_ALL=C
unset COLUMNS
update=false
timeout=${STEPSIM_GOLDEN_TIMEOUT:-300}
if [ "${1:-}" = --update ]; then
	update=true
	shift
fi
files=("$@")
[ ${#files[@]} -gt 0 ] || files=("$here"/*.t)
for file in "${files[@]}"; do
	[ -f "$file" ] || { echo "no such file: $file" >&2; exit 2; }
done

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export XDG_CACHE_HOME=$scratch/cache HOME=$scratch
passed=0 failed=0

matches() { # expected actual
	local pattern=$1
	[ "$pattern" = "$2" ] && return 0
	case $pattern in
	*' (glob)')
		pattern=${pattern% (glob)}
		pattern=${pattern//\\/\\\\}
		pattern=${pattern//\[/\\[}
		# shellcheck disable=SC2053
		[[ $2 == $pattern ]]
		;;
	*) return 1 ;;
	esac
}

# Says whether a line tells only that others used this machine while a case measured it: that is no part of any case.
says_busy() {
	[[ $1 == *' took '*' % of the time of rank '*"'s cores"*' while they were measured: '* ]] ||
		[[ $1 == *': others took '*" of a rank's cores during "*' measurements'* ]] ||
		[[ $1 == *': others disturbed '*" of this placement's profile, and "* ]]
}

# Compares expected[] with actual[]; leaves in kept[] the text for --update, in which globs that still match stay.
same() {
	local i equal=0
	kept=()
	[ ${#expected[@]} -eq ${#actual[@]} ] || equal=1
	for i in "${!actual[@]}"; do
		if [ "$i" -lt ${#expected[@]} ] && matches "${expected[$i]}" "${actual[$i]}"; then
			kept+=("${expected[$i]}")
		else
			kept+=("${actual[$i]}")
			equal=1
		fi
	done
	return $equal
}

finish_case() {
	[ -n "$command" ] || return 0
	local work code line text
	work=$(mktemp -d "$scratch/case.XXXXXX")
	text=$(cd "$work" && timeout "$timeout" bash -c "$command" 2>&1 </dev/null; echo "[$?]")
	# shellcheck disable=SC2016
	text=${text//"$ROOT"/'$ROOT'}
	code=${text##*$'\n'}
	actual=()
	while IFS= read -r line; do
		[ -z "$line" ] || says_busy "$line" || actual+=("$line")
	done <<<"$text"
	unset 'actual[-1]'
	# Output that does not end in a newline has the exit code behind its last line.
	if [[ $code != \[* ]]; then
		actual+=("${code%\[*}")
		code=[${code##*\[}
	fi
	[ "$code" = "[0]" ] || actual+=("$code")
	if [ "$code" = "[124]" ]; then # of timeout(1)
		failed=$((failed + 1))
		echo "golden: ${file##*/}:$at: stopped after $timeout s: $command"
		kept=("${expected[@]+"${expected[@]}"}")
	elif same; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		if ! $update; then
			echo "golden: ${file##*/}:$at: $command"
			diff <(printf '%s\n' "${expected[@]+"${expected[@]}"}") \
				<(printf '%s\n' "${actual[@]+"${actual[@]}"}") | sed 's/^/    /'
		fi
	fi
	for line in "${kept[@]+"${kept[@]}"}"; do fresh+="    $line"$'\n'; done
	command=''
	expected=()
}

for file in "${files[@]}"; do
	command='' fresh='' at=0 number=0
	expected=()
	while IFS= read -r line || [ -n "$line" ]; do
		number=$((number + 1))
		case $line in
		'    $ '*)
			finish_case
			command=${line#'    $ '}
			at=$number
			fresh+="$line"$'\n'
			;;
		'    > '*)
			command+=$'\n'${line#'    > '}
			fresh+="$line"$'\n'
			;;
		'    ') ;;
		'    '*) expected+=("${line#'    '}") ;;
		*)
			finish_case
			fresh+="$line"$'\n'
			;;
		esac
	done <"$file"
	finish_case
	if $update; then printf '%s' "$fresh" >"$file"; fi
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
