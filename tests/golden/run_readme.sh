#!/usr/bin/env bash
# README.md and docs/*.md are a test: what their commands print is what stands there, no line is too wide, and links
# lead somewhere. readme.py has the rules. The last line is "N passed, N failed".
# tests/golden/run_readme.sh [--update] [PAGE ...], a page as README.md or docs/tutorial.md
exec python3 "$(dirname "$0")/readme.py" "$@"
