#!/usr/bin/env bash
# `stepsim roofline` on the host's cores, alone and with two ranks, and on doubles of the CUDA libraries: table,
# columns, files, exit codes. Never a time. The last line counts.
set -u
# shellcheck source=tests/verdicts.sh
. "$(dirname "$0")/../verdicts.sh"

shown() {
	head -40 "$log"
}

# The files of a run whose products are of these formats; an empty line where all is right.
files_wrong() { # rows: 1 or 0, products
	python3 - "$scratch" "$1" "$2" <<'PY'
import csv, json, math, sys, xml.dom.minidom
folder, measured, products = sys.argv[1], sys.argv[2] == '1', sys.argv[3]
def check():
    rows = list(csv.reader(open(folder + '/out.csv')))
    want = 'k,ai,gflops,bandwidth,percent_peak,kind,dtype,size,percent_roof,rms_percent,mean_gflops'
    if ','.join(rows[0]) != want:
        return 'columns: ' + ','.join(rows[0])
    if any(len(r) != len(rows[0]) for r in rows):
        return 'a row of another length'
    svg = xml.dom.minidom.parse(open(folder + '/out.svg')).documentElement
    if svg.tagName != 'svg' or 'nan' in svg.toxml():
        return 'the picture'
    j = json.load(open(folder + '/out.json'))
    if j['double'] == measured or len(j['rows']) != len(rows) - 1:
        return 'JSON: %d rows of %d' % (len(j['rows']), len(rows) - 1)
    if not measured:
        return '' if len(rows) == 1 and not j['levels'] and j['memory_Bps'] is None else 'figures of doubles'
    poly = [r for r in rows[1:] if r[5] == 'polynomial']
    if [int(r[0]) for r in poly] != [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000]:
        return 'degrees'
    if any(abs(float(r[1]) - int(r[0]) / 4) > 1e-9 for r in poly):
        return 'intensities'
    for r in rows[1:]:
        if not all(math.isfinite(float(x)) and float(x) > 0 for x in r[:5]):
            return 'a figure is missing: %s' % r
        if abs(float(r[2]) / float(r[3]) / float(r[1]) - 1) > 1e-3:
            return 'intensity is not FLOP over bytes: %s' % r
    if {r[6] for r in rows[1:] if r[5] == 'gemm'} != set(products.split()):
        return 'products in other formats'
    if max(float(r[4]) for r in poly) != 100:
        return 'of peak: %s' % max(float(r[4]) for r in poly)
    levels = j['levels']
    if levels[-1]['name'] != 'memory' or not all(l['latency_s'] > 0 and l['bytes_in_flight'] > 0 for l in levels):
        return 'levels'
    return ''
print(check())
PY
}

files=(--time 3s --csv "$scratch/out.csv" --plot "$scratch/out.svg" --json "$scratch/out.json")
run() { # name, pattern of the table, measured, products, then the command line
	local name=$1 pattern=$2 measured=$3 products=$4 code wrong=''
	shift 4
	rm -f "$scratch"/out.*
	timeout 180 "$@" "${files[@]}" >"$log" 2>&1 </dev/null
	code=$?
	[ "$code" -eq 0 ] || wrong="exit code $code"
	grep -q -- "$pattern" "$log" || wrong=${wrong:-"no line with \"$pattern\""}
	verdict "$name" "${wrong:-$(files_wrong "$measured" "$products" 2>&1 | tail -1)}"
}

run 'alone' '^Little.s law: ' 1 fp32 "$stepsim" roofline --backend host
run 'two ranks' '^2 ranks, each on its own device' 1 fp32 mpirun "${mpirun_flags[@]}" -np 2 "$stepsim" roofline \
	--backend host --dtype fp32

# name, exit code, pattern, then arguments: one line that says what is wrong
ends() {
	local name=$1 want=$2 pattern=$3 code wrong=''
	shift 3
	timeout 60 "$@" >"$log" 2>&1 </dev/null
	code=$?
	[ "$code" -eq "$want" ] || wrong="exit code $code, not $want"
	[ "$(grep -c '^stepsim: ' "$log")" -eq 1 ] || wrong=${wrong:-'not one line'}
	grep -Eq "^stepsim: .*$pattern" "$log" || wrong=${wrong:-"no line with \"$pattern\""}
	verdict "$name" "$wrong"
}
ends 'a format that the host does not execute' 2 'not executed on .*; those that are: fp32$' "$stepsim" roofline \
	--backend host --dtype bf16
ends 'the same with two ranks' 2 'not executed on ' mpirun "${mpirun_flags[@]}" -np 2 "$stepsim" roofline \
	--backend host --dtype bf16

if [ -e build/release/libstepsim_cuda.so ]; then
	export LD_LIBRARY_PATH=$PWD/build/release/doubles${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
	run 'doubles' 'kernels ran and their results are right; nothing was measured' 0 '' "$stepsim" roofline \
		--backend cuda
	grep -Eq 'GB/s|GFLOP/s|TFLOP/s' "$log"
	verdict 'doubles: no figure' "$([ $? -eq 0 ] && echo 'a figure of doubles is printed')"
	run 'two doubles' 'nothing was measured' 0 '' mpirun "${mpirun_flags[@]}" -np 2 "$stepsim" roofline \
		--backend cuda --dtype bf16
	ends 'a format that the GPU does not execute' 2 'those that are: fp32, tf32, fp16, bf16$' "$stepsim" roofline \
		--backend cuda --dtype fp8
	STEPSIM_DOUBLE_FAULT=kernel:20 ends 'a kernel fails' 1 'illegal memory access' "$stepsim" roofline \
		--backend cuda
	STEPSIM_DOUBLE_FAULT=nogpu ends 'no GPU' 1 'no CUDA device' "$stepsim" roofline --backend cuda
	STEPSIM_DOUBLE_MEM_B=1000000 ends 'no memory' 1 'out of memory' "$stepsim" roofline --backend cuda
else
	skipped=1
fi

verdicts
