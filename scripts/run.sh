#!/usr/bin/env bash
# Installs what is missing, builds, and runs the main job: bash scripts/run.sh [CONFIG.yaml] [options of stepsim].
# NP=4 bash scripts/run.sh ... sets the number of ranks; else the plan's own, or 2 where it leaves them open.
set -euo pipefail
# shellcheck source=scripts/env.sh
. "$(dirname "$0")/env.sh"
bash "$root/scripts/setup.sh" run
make -s -C "$root" -j"$(cores)" >&2

config=$root/configs/quickstart.yaml
if [ $# -gt 0 ] && [ "${1#-}" = "$1" ]; then
	config=$1
	shift
fi
stepsim=$root/build/release/stepsim

# 0: the config is for another machine, and is only predicted.
ranks=${NP:-$("$stepsim" predict "$config" --print-ranks "$@")}
[ -t 2 ] && export STEPSIM_PROGRESS_TTY=1
if [ "$ranks" = 0 ]; then
	exec "$stepsim" "$config" "$@"
fi
exec mpirun "${mpirun_flags[@]}" -np "$ranks" "$stepsim" "$config" "$@" </dev/null
