#!/usr/bin/env bash
# Checks this GPU machine with what lies here: bash gpu_check.sh [--quick] [FOLDER]
# Results are in FOLDER (default: stepsim-gpu-results, here where you are); summary.md first.
set -u
# shellcheck source=scripts/gpu_bundle/env.sh
. "$(dirname "$0")/env.sh"
case ${1:-} in
--quick) mode=--quick && shift ;;
*) mode=--built ;;
esac
glibc=$(getconf GNU_LIBC_VERSION 2>/dev/null | cut -d' ' -f2)
needed=$(cat "$bundle/GLIBC")
if [ -n "$glibc" ] && [ "$(printf '%s\n' "$needed" "$glibc" | sort -V | head -n 1)" != "$needed" ]; then
	echo "gpu_check: this archive needs glibc $needed or newer, here is $glibc" >&2
	exit 1
fi
exec bash "$bundle/scripts/gpu_check.sh" $mode "${1:-stepsim-gpu-results}"
