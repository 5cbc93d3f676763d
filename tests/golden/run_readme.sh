#!/usr/bin/env bash
# README is a test: what its commands print is what stands there. The last line is "N passed, N failed".
# tests/golden/run_readme.sh [--update]
exec python3 "$(dirname "$0")/readme.py" "$@"
