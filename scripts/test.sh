#!/usr/bin/env bash
# Installs what is missing, builds, and runs every test that must never break. The last line counts them.
set -euo pipefail
# shellcheck source=scripts/env.sh
. "$(dirname "$0")/env.sh"
bash "$root/scripts/setup.sh" test
make -s -C "$root" -j"$(cores)" CUDA_ARCHS=80 all tests >&2
exec bash "$root/tests/run.sh"
