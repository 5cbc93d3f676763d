#!/usr/bin/env bash
# Compares predicted with measured steps, every config of tests/accuracy three times.
# usage: bash scripts/bench_accuracy.sh [CONFIG.yaml ...]
# RUNS=3; OUT=build/accuracy.json. Exit code 3: the median of |step time error| is above LIMIT_MEDIAN=8 per cent, or the
# worst above LIMIT_WORST=20.
set -euo pipefail
# shellcheck source=scripts/env.sh
. "$(dirname "$0")/env.sh"
stepsim=$root/build/release/stepsim
runs=${RUNS:-3}
out=${OUT:-$root/build/accuracy.json}
limit_median=${LIMIT_MEDIAN:-8} limit_worst=${LIMIT_WORST:-20}
configs=("$@")
[ ${#configs[@]} -gt 0 ] || configs=("$root"/tests/accuracy/*.yaml)

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# Prints from a result one line "step PREDICTED MEASURED ERROR" in ms and per cent, then for each class one line
# "class NAME PREDICTED MEASURED ERROR".
figures() {
	awk '
		/^  "[a-z]+":/ { side = $1 }
		/^    "step_time_s":/ { gsub(/,/, "", $2); step[side] = $2 }
		side ~ /comparison/ && /"step_time_error":/ { gsub(/,/, "", $2); error = $2 }
		side ~ /comparison/ && /"class":/ { gsub(/[",]/, "", $2); class = $2 }
		side ~ /comparison/ && /"predicted_s":/ { gsub(/,/, "", $2); predicted = $2 }
		side ~ /comparison/ && /"measured_s":/ { gsub(/,/, "", $2); measured = $2 }
		side ~ /comparison/ && /"error":/ {
			print "class", class, predicted * 1e3, measured * 1e3, ($2 == "null" ? "nan" : $2 * 100)
		}
		END { print "step", step["\"prediction\":"] * 1e3, step["\"measurement\":"] * 1e3, error * 100 }
	' "$1"
}

json_row() { # name ranks run predicted measured error classes-file
	printf '    {"config": "%s", "ranks": %s, "run": %s, ' "$1" "$2" "$3"
	printf '"predicted_s": %s, "measured_s": %s, "error": %s, "by_class": [' \
		"$(awk "BEGIN { print $4 / 1e3 }")" "$(awk "BEGIN { print $5 / 1e3 }")" \
		"$(awk "BEGIN { print $6 / 100 }")"
	awk '$1 == "class" {
		printf "%s{\"class\": \"%s\", \"predicted_s\": %s, ", (n++ ? ", " : ""), $2, $3 / 1e3
		printf "\"measured_s\": %s, \"error\": %s}", $4 / 1e3, ($5 == "nan" ? "null" : $5 / 100)
	}' "$7"
	printf ']}'
}

printf 'load of the machine before the first run: %s (other work on it is measured too)\n\n' \
	"$(cut -d ' ' -f 1-3 /proc/loadavg 2>/dev/null)"
printf '%-28s %5s %3s %12s %12s %8s   %s\n' config ranks run 'predicted ms' 'measured ms' error 'by class'
: >"$scratch/errors"
: >"$scratch/classes"
# Round after round over all configs, so that a slow minute of the machine does not fall on one config alone.
for run in $(seq "$runs"); do
	for config in "${configs[@]}"; do
		name=$(basename "$config" .yaml)
		ranks=$("$stepsim" predict "$config" --print-ranks)
		mpirun "${mpirun_flags[@]}" -np "$ranks" "$stepsim" "$config" -q --json "$scratch/result.json" \
			>/dev/null </dev/null
		figures "$scratch/result.json" >"$scratch/figures"
		read -r _ predicted measured error < <(grep '^step ' "$scratch/figures")
		# Classes below a hundredth of the step stand in the JSON and in the table at the end.
		classes=$(awk -v step="$measured" '$1 == "class" && $4 >= step / 100 {
			printf "%s %s%.0f%%  ", $2, ($5 > 0 ? "+" : ""), $5
		}' "$scratch/figures")
		printf '%-28s %5s %3s %12.2f %12.2f %+7.1f%%   %s\n' \
			"$name" "$ranks" "$run" "$predicted" "$measured" "$error" "$classes"
		echo "$error" >>"$scratch/errors"
		echo "$name $predicted $measured" >>"$scratch/steps"
		grep '^class ' "$scratch/figures" >>"$scratch/classes" || true
		json_row "$name" "$ranks" "$run" "$predicted" "$measured" "$error" "$scratch/figures" >>"$scratch/rows"
		printf '\n' >>"$scratch/rows"
	done
done

# The median of the runs of a config, and how far they lie apart: a large spread is the machine's, not the prediction's.
printf '\n%-28s %12s %12s %8s %12s\n' config 'predicted ms' 'median ms' error 'max/min'
sort -k1,1 -k3,3g "$scratch/steps" | awk '
	function flush() {
		if (n) {
			m = (n % 2 ? x[(n + 1) / 2] : (x[n / 2] + x[n / 2 + 1]) / 2)
			printf "%-28s %12.2f %12.2f %+7.1f%% %12.2f\n",
				name, predicted, m, 100 * (predicted - m) / m, x[n] / x[1]
		}
		n = 0
	}
	$1 != name { flush(); name = $1; predicted = $2 }
	{ x[++n] = $3 }
	END { flush() }'

printf '\n%-16s %5s %14s %12s %12s %12s\n' class rows 'measured ms' 'mean error' 'mean |error|' worst
awk '
	$5 != "nan" {
		e = ($5 < 0 ? -$5 : $5)
		n[$2]++
		sum[$2] += $5
		abs[$2] += e
		weight[$2] += $4
		if (e > worst[$2])
			worst[$2] = e
	}
	END {
		for (c in n)
			printf "%-16s %5d %14.1f %+11.1f%% %11.1f%% %11.1f%%\n",
				c, n[c], weight[c], sum[c] / n[c], abs[c] / n[c], worst[c]
	}' "$scratch/classes" | sort -k3,3gr
read -r n median worst < <(awk '{ print ($1 < 0 ? -$1 : $1) }' "$scratch/errors" | sort -g | awk '
	{ x[NR] = $1 }
	END { print NR, (NR % 2 ? x[(NR + 1) / 2] : (x[NR / 2] + x[NR / 2 + 1]) / 2), x[NR] }')
{
	printf '{\n  "median_abs_error": %s,\n  "worst_abs_error": %s,\n  "results": [\n' \
		"$(awk "BEGIN { print $median / 100 }")" "$(awk "BEGIN { print $worst / 100 }")"
	sed '$!s/$/,/' "$scratch/rows"
	printf '  ]\n}\n'
} >"$out"

printf '\n|step time error| over %s runs: median %.1f %% (limit %s), worst %.1f %% (limit %s). %s\n' \
	"$n" "$median" "$limit_median" "$worst" "$limit_worst" "$out"
awk "BEGIN { exit !($median <= $limit_median && $worst <= $limit_worst) }" || exit 3
