#!/usr/bin/env bash
# Fails when a comment, README, a page of docs/ or a script names a source file that does not exist: tests/pointers.sh
# [ROOT]
#
# In comments of C, C++ and CUDA: "room/file.h", and "file.c" or "file.h" alone, which must be the name of some file. In
# prose and scripts: "room/file.h". A name may have wildcards: "cli/compare_*.c".
set -u
root=${1:-$(cd "$(dirname "$0")/.." && pwd)}
cd "$root" || exit 2

rooms='base|topology|step|sim|exec|report|cli|tests|scripts'
extensions='c|h|cc|cu|cuh|def|py|sh'
failed=0 checked=0

# The comments of the files that are given, each line behind "file:line:".
comments() {
	awk '
	FNR == 1 { inside = 0 }
	{
		text = $0
		shown = ""
		while (text != "") {
			if (inside) {
				at = index(text, "*/")
				shown = shown " " (at ? substr(text, 1, at - 1) : text)
				text = at ? substr(text, at + 2) : ""
				inside = !at
			} else if (match(text, /\/\*|\/\//)) {
				inside = substr(text, RSTART, 2) == "/*"
				text = substr(text, RSTART + 2)
				if (!inside) {
					shown = shown " " text
					text = ""
				}
			} else
				text = ""
		}
		if (shown != "")
			print FILENAME ":" FNR ":" shown
	}' "$@"
}

# "file:line: name" of every name that the pattern finds and that nothing stands before which would make it part of a
# longer one.
names() { # pattern
	awk -v pattern="$1" '{
		match($0, /^[^:]*:[0-9]+:/)
		at = substr($0, 1, RLENGTH)
		text = " " substr($0, RLENGTH + 1)
		while (match(text, "[^A-Za-z0-9_/.*$}-](" pattern ")")) {
			name = substr(text, RSTART + 1, RLENGTH - 1)
			text = substr(text, RSTART + RLENGTH)
			if (text !~ /^[A-Za-z0-9_*(]/)
				print at, name
		}
	}'
}

# Reads "file:line: name"; complains of each name that no file has. A name without a folder may be that of any file.
check() {
	local at name
	while read -r at name; do
		checked=$((checked + 1))
		case $name in
		*/*) compgen -G "$name" >/dev/null && continue ;;
		*) [ -n "${known[$name]:-}" ] && continue ;;
		esac
		echo "pointers: $at $name does not exist"
		failed=1
	done
}

declare -A known=()
sources=()
while IFS= read -r file; do
	known[${file##*/}]=1
	case $file in
	*.c | *.h | *.cc | *.cu | *.cuh | *.def) sources+=("${file#./}") ;;
	esac
done < <(find . \( -name build -o -name .git \) -prune -o -type f -print | grep -E "^\./($rooms)/.*\.($extensions)\$")

path="($rooms)/[A-Za-z0-9_./*-]*\\.($extensions)"
check < <(comments "${sources[@]}" | names "$path|[a-z0-9_]+\\.(c|h|cu|cuh|def)")
prose=()
for file in README.md docs/*.md scripts/*.sh scripts/*.py tests/*.sh Makefile; do
	[ -e "$file" ] && prose+=("$file")
done
[ ${#prose[@]} -eq 0 ] || check < <(awk '{ print FILENAME ":" FNR ":" $0 }' "${prose[@]}" | names "$path")
[ "$checked" -gt 0 ] || { echo "pointers: no name of a file found under $root"; failed=1; }
exit $failed
