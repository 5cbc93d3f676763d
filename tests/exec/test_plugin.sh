#!/usr/bin/env bash
# Predicting needs neither MPI nor BLAS: the binary alone predicts, whatever a launcher left in the environment; what
# executes says in one line what is missing. The last line counts.
set -u
# shellcheck source=tests/verdicts.sh
. "$(dirname "$0")/../verdicts.sh"
binary=$root/$stepsim plugin=$root/build/release/libstepsim_exec.so
config=$root/configs/llama3-8b-fsdp-64xh100.yaml small=$root/configs/quickstart.yaml
export STEPSIM_HOME=$root
mkdir "$scratch/alone" "$scratch/old" "$scratch/poor" "$scratch/installed"

# Runs a command; sets `wrong` unless it ends with this exit code and, if a pattern is given, in one line like it.
wrong=''
expect() { # code, pattern, command
	local code=$1 pattern=$2 found
	shift 2
	"$@" >"$log" 2>&1 </dev/null
	found=$?
	[ "$found" -eq "$code" ] || wrong=${wrong:-exit code $found of $*}
	[ -z "$pattern" ] || { [ "$(wc -l <"$log")" -eq 1 ] && grep -Eq "$pattern" "$log"; } ||
		wrong=${wrong:-not one line like: $pattern}
}

ldd "$binary" >"$log"
wrong=$(grep -Eo 'lib(mpi|open-rte|open-pal|openblas|blas|gfortran|cuda)[^ ]*' "$log" | head -1)
verdict 'what predicts links neither MPI nor BLAS' "$wrong"
ldd "$plugin" >"$log"
wrong=''
for library in libmpi libopenblas; do grep -q "$library" "$log" || wrong="no $library"; done
verdict 'what executes does' "$wrong"

# The binary by itself, and beside a plug-in of another build.
cp "$binary" "$scratch/alone"
alone=$scratch/alone/stepsim
wrong=''
expect 0 '' "$alone" predict "$config" -q
grep -q '^step time' "$log" || wrong=${wrong:-no step time}
expect 0 '' "$alone" plan "$config" -q --set cluster.nodes=1
expect 0 '' "$alone" topo
expect 0 '' "$alone" list gpus
expect 0 '' "$alone" --help
expect 0 '' "$alone" --version
grep -q '^execution: none: .*libstepsim_exec.so' "$log" || wrong=${wrong:-the version}
verdict 'without the plug-in everything but executing works' "$wrong"

wrong=''
missing='^stepsim: executing and measuring needs libstepsim_exec.so, which is neither beside'
for command in "$small" calibrate roofline 'bench all_reduce'; do
	# shellcheck disable=SC2086 # one of them has an argument
	expect 1 "$missing" "$alone" $command -q
done
XDG_CACHE_HOME=$scratch/none expect 1 '^stepsim: no profile of this machine yet, and none can be measured: executing' \
	"$alone" predict "$small" -q
expect 1 "$missing" mpirun "${mpirun_flags[@]}" -np 2 "$alone" calibrate -q
verdict 'executing without the plug-in fails in one line' "$wrong"

cp "$binary" "$scratch/old"
LC_ALL=C sed 's/stepsim_exec_plugin/stepsim_exec_flugin/g' "$plugin" >"$scratch/old/libstepsim_exec.so"
wrong=''
expect 1 '^stepsim: .*/libstepsim_exec.so is of another build than this binary' "$scratch/old/stepsim" calibrate -q
verdict 'a plug-in of another build is refused' "$wrong"

# A library that the plug-in needs is not there: it asks for a version that nobody has.
cp "$binary" "$scratch/poor"
for pair in 'libmpi:Open MPI' 'libopenblas:OpenBLAS'; do
	library=${pair%%:*} name=${pair##*:}
	LC_ALL=C sed "s/$library\\.so\\.[0-9]/$library.so.9/g" "$plugin" >"$scratch/poor/libstepsim_exec.so"
	wrong=''
	expect 1 "^stepsim: executing and measuring needs $name \\(Debian .*$library.so.9.*cannot open" \
		"$scratch/poor/stepsim" calibrate -q
	verdict "a machine without $name" "$wrong"
done

# make install: bin/ and lib/stepsim/.
mkdir -p "$scratch/installed/bin" "$scratch/installed/lib/stepsim"
cp "$binary" "$scratch/installed/bin" && cp "$plugin" "$scratch/installed/lib/stepsim"
wrong=''
expect 0 '' "$scratch/installed/bin/stepsim" --version
grep -q '^execution: .*MPI.*OpenBLAS' "$log" || wrong=${wrong:-the version}
verdict 'the installed plug-in is found' "$wrong"

# What srun leaves behind: a task without PMI is a process like any other; of several, the first one speaks.
export SLURM_STEP_NUM_TASKS=1 SLURM_PROCID=0 SLURM_LOCALID=0 SLURM_STEP_ID=0 SLURM_STEPID=0 SLURM_JOB_ID=1 \
	SLURM_JOBID=1 SLURM_NODELIST=localhost SLURM_NTASKS=1
wrong=''
expect 0 '' "$binary" predict "$config" -q
grep -q '^step time' "$log" || wrong=${wrong:-no step time}
expect 0 '' "$binary" bench all_reduce -b 1024 -e 1024 -q
verdict 'srun --mpi=none -n 1: predicts, and measures' "$wrong"
wrong=''
SLURM_STEP_NUM_TASKS=2 expect 0 '' "$binary" predict "$config" -q
grep -q '^step time' "$log" || wrong=${wrong:-task 0 says nothing}
SLURM_STEP_NUM_TASKS=2 SLURM_PROCID=1 expect 0 '' "$binary" predict "$config" -q
[ -s "$log" ] && wrong=${wrong:-task 1 speaks, too}
SLURM_STEP_NUM_TASKS=2 expect 1 '^stepsim: srun started 2 tasks that MPI cannot connect' "$binary" "$small" -q
verdict 'srun --mpi=none -n 2: the first task predicts, none executes' "$wrong"
unset "${!SLURM_@}"

wrong=''
expect 0 '' mpirun "${mpirun_flags[@]}" -np 8 "$binary" predict "$config" -q
[ "$(grep -c '^step time' "$log")" -eq 1 ] || wrong=${wrong:-not printed once}
expect 2 "^stepsim: 'predikt' is neither" mpirun "${mpirun_flags[@]}" -np 3 "$binary" predikt
expect 0 '' mpirun "${mpirun_flags[@]}" -np 3 "$binary" --version
[ "$(grep -c '^execution' "$log")" -eq 1 ] || wrong=${wrong:-the version is not printed once}
verdict 'under mpirun a prediction is printed once' "$wrong"

verdicts
