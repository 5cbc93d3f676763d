#!/usr/bin/env bash
# A rank that its user bound keeps to its cores, with all its threads and in its profile's key, whoever bound it
# (test_binding.c); what mpirun binds unasked is undone. The last line counts.
set -u
# shellcheck source=tests/verdicts.sh
. "$(dirname "$0")/../verdicts.sh"
program=$PWD/${1:-build/release/tests/exec/test_binding}
# A CPU of each core that may be used, and the whole list as taskset has it.
mapfile -t cpus < <(lscpu -p=CPU,CORE | awk -F, '!/^#/ && !seen[$2]++ { print $1 }' | while read -r cpu; do
	taskset -c "$cpu" true 2>/dev/null && echo "$cpu"
done)
[ "${#cpus[@]}" -ge 2 ] || skip_all 'one core: nothing to choose from'
first=${cpus[0]} second=${cpus[1]} all=$("$program" | awk "{ print \$4 }")

# Each rank starts through this: on the CPU that stands at its number, or by numactl.
cat >"$scratch/wrap" <<'WRAP'
#!/bin/bash
cpus=($1)
shift
exec taskset -c "${cpus[$OMPI_COMM_WORLD_RANK]}" "$@"
WRAP
chmod +x "$scratch/wrap"

# name, the lines that are expected (separated by "; "), arguments of mpirun
bound() {
	local name=$1 expected=$2 code
	shift 2
	timeout 60 mpirun "$@" "$program" >"$log" 2>&1 </dev/null
	code=$?
	if [ $code -ne 0 ]; then
		verdict "$name" "exit code $code"
	else
		sort "$log" | paste -sd ';' | sed 's/;/; /g' >"$scratch/lines"
		verdict "$name" "$([ "$(cat "$scratch/lines")" = "$expected" ] || echo "not $expected")"
	fi
}

one='1 of 1 cores a rank' half='1 of 2 cores a rank'
bound 'taskset on a rank' "rank 0 threads $second cores 1 binding $one" \
	-np 1 --bind-to none taskset -c "$second"
bound 'taskset on the launcher' "rank 0 threads $first cores 1 binding $one" \
	-np 1 --bind-to none taskset -c "$first"
bound 'a core that mpirun would not choose' "rank 0 threads $second cores 1 binding $one" -np 1 taskset -c "$second"
bound 'ranks bound crosswise' \
	"rank 0 threads $second cores 1 binding $half; rank 1 threads $first cores 1 binding $half" \
	-np 2 --oversubscribe --bind-to none "$scratch/wrap" "$second $first"
shared="threads $first cores 1 binding 2 ranks share 1 cores"
bound 'ranks bound to one core' "rank 0 $shared; rank 1 $shared" \
	-np 2 --oversubscribe --bind-to none "$scratch/wrap" "$first $first"
if [ "$(nproc --all)" -eq "${#cpus[@]}" ]; then # one CPU a core, all of which may be used
	bound 'mpirun --bind-to core' "rank 0 threads $first cores 1 binding $one" -np 1 --bind-to core
	bound 'mpirun --cpu-list' "rank 0 threads $second cores 1 binding $one" -np 1 --cpu-list "$second" \
		--bind-to cpu-list:ordered
fi
if command -v numactl >/dev/null; then
	bound 'numactl on a rank' "rank 0 threads $second cores 1 binding $one" \
		-np 1 --bind-to none numactl -C "$second"
else
	skipped=$((skipped + 1))
fi

timeout 60 mpirun -np 1 "$program" >"$log" 2>&1 </dev/null
verdict 'what mpirun does unasked is undone' "$(grep -q "^rank 0 threads $all cores" "$log" || echo "not $all")"

verdicts
