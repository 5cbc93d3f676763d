#!/usr/bin/env bash
# Brings the tree's C, C++ and CUDA files into the look of .clang-format. --check names those that differ, and lines of
# more than 120 columns: clang-format leaves them where a text or a word is long, and does not know scripts. --count
# says so as a test does, and is skipped where another version of clang-format would judge.
set -euo pipefail
cd "$(dirname "$0")/.."
version=$(sed -n 's/^# Version of clang-format: \([0-9]*\).*/\1/p' .clang-format)
tool=
for name in "clang-format-$version" clang-format; do
	if "$name" --version 2>/dev/null | grep -q "version $version\."; then
		tool=$name
		break
	fi
done
if [ -z "$tool" ]; then
	echo "format: clang-format $version is not here (Debian's package clang-format);" \
		"others wrap lines differently" >&2
	[ "${1:-}" = --count ] || exit 1
	echo '0 passed, 0 failed, 1 skipped'
	exit 0
fi

sources() {
	find base topology step sim exec report cli tests -type f \
		\( -name '*.[ch]' -o -name '*.def' -o -name '*.cc' -o -name '*.cu' -o -name '*.cuh' \) -print0
}
# Names lines of more than 120 columns. A tab reaches to the next multiple of 8; a character of several bytes is one.
long_lines() {
	{ sources; find Makefile scripts tests python \( -name '*.py' -o -name '*.sh' -o -name Makefile \) -print0; } |
		LC_ALL=C xargs -0 awk '
		{
			gsub(/[\200-\277]/, "")
			for (columns = 0; (tab = index($0, "\t")) > 0; $0 = substr($0, tab + 1))
				columns += tab - 1 + 8 - (columns + tab - 1) % 8
			columns += length($0)
		}
		columns > 120 { print FILENAME ":" FNR ": " columns " columns"; long = 1 }
		END { exit long }' >&2
}
check() {
	local wrong=0
	sources | xargs -0 "$tool" --dry-run --Werror || wrong=1
	long_lines || wrong=1
	return "$wrong"
}

case ${1:-} in
--check) check ;;
--count) check && echo '1 passed, 0 failed' || echo '0 passed, 1 failed' ;;
*) sources | xargs -0 "$tool" -i ;;
esac
