The keys of docs/reference.md, in the order in which they are written (no key of the config or the system is listed here).

    $ stepsim predict $ROOT/configs/llama3-8b-fsdp-64xh100.yaml --json out.json > /dev/null; grep -oE '^  "[a-z_]+"' out.json
      "stepsim"
      "commit"
      "config"
      "model"
      "system"
      "prediction"
      "measurement"
      "comparison"
      "not_executed"

    $ stepsim predict $ROOT/configs/llama3-8b-fsdp-64xh100.yaml --json - | sed -n '/^  "prediction"/,/^  }/p' | grep -oE '^    "[a-z0-9_]+"'
        "step_time_s"
        "tokens_per_s"
        "tokens_per_s_per_gpu"
        "samples_per_s"
        "tflops_per_gpu"
        "mfu"
        "hfu"
        "mfu_convention"
        "compute_s"
        "exposed_comm_s"
        "copy_s"
        "host_s"
        "bubble_s"
        "optimizer_s"
        "idle_s"
        "comm_s"
        "overlap"
        "wait_s"
        "goodput"
        "checkpoint_interval_s"
        "interval90_s"
        "interval90_parts"
        "memory"
        "by_class"
        "bottleneck"
        "advice"
        "advice_untried"
        "symptom"
        "sensitivity"
        "warnings"

    $ stepsim predict $ROOT/configs/llama3-8b-fsdp-64xh100.yaml --json - | sed -n '/^    "memory"/,/^    }/p' | grep -oE '^      "[a-z_]+"'
          "total_bytes"
          "weights_bytes"
          "gradients_bytes"
          "optimizer_bytes"
          "activations_bytes"
          "buffers_bytes"
          "overhead_bytes"
          "capacity_bytes"
          "fits"
          "may_fit"

    $ stepsim predict $ROOT/configs/llama3-8b-fsdp-64xh100.yaml --json - | sed -n '/^    "by_class"/,/^      }/p' | grep -oE '^        "[a-z_]+"'
            "class"
            "count"
            "time_s"
            "bound"

The sections of the config:

    $ stepsim predict $ROOT/configs/llama3-8b-fsdp-64xh100.yaml --json - | sed -n '/^  "config"/,/^  }/p' | grep -oE '^    "[a-z]+"'
        "model"
        "train"
        "data"
        "parallel"
        "collectives"
        "cluster"
        "run"
        "cost"

The partition of the step adds up to it, and so does memory:

    $ stepsim predict $ROOT/configs/llama3-8b-fsdp-64xh100.yaml --json - | awk -F '[:,]' '
    >   /"(compute|exposed_comm|copy|host|bubble|optimizer|idle)_s"/ { sum += $2 } /"step_time_s"/ { step = $2 }
    >   /"(weights|gradients|optimizer|activations|buffers|overhead)_bytes"/ { bytes += $2 } /"total_bytes"/ { total = $2 }
    >   END { d = sum / step - 1; print (d < 1e-6 && d > -1e-6 ? "adds up" : "differs"), bytes == total ? "adds up" : "differs" }'
    adds up adds up

--json - leaves nothing else on standard output:

    $ stepsim predict $ROOT/configs/llama3-8b-fsdp-64xh100.yaml --json - | head -c 1; stepsim predict $ROOT/configs/llama3-8b-fsdp-64xh100.yaml --json - | tail -n 1
    {}

A trace is one object with one event a line:

    $ stepsim predict $ROOT/configs/llama3-8b-fsdp-64xh100.yaml --trace - | sed -n '1,2p;$p'
    {"displayTimeUnit":"ms","traceEvents":[
    {"ph":"M","name":"process_name","pid":1,"tid":0,"args":{"name":"predicted: every rank like rank 0 (64 of them)"}},
    ]}

It holds what Perfetto needs: flows from a bucket's last gradient to its reduction and from a gathering of weights to its first use, counters of memory and links, whose peak is that of the table without what lies beside the allocator:

    $ for c in llama3-8b-fsdp-64xh100 ddp-tiny zero1-tiny zero2-tiny pp-tiny tp-dp-tiny ep-tiny; do stepsim predict $ROOT/configs/$c.yaml --set cluster.system=dgx-h100 --trace $c.trace --json $c.json -q > /dev/null; done; python3 $ROOT/tests/trace_check.py *.trace
    > python3 -c "import json; m = json.load(open('llama3-8b-fsdp-64xh100.json'))['prediction']['memory']; e = json.load(open('llama3-8b-fsdp-64xh100.trace'))['traceEvents']; print(max(x['args']['bytes'] for x in e if x['name'] == 'memory in use') == m['total_bytes'] - m['overhead_bytes'])"
    > printf '{"traceEvents":[{"ph":"X","name":"a","ts":0,"dur":5,"pid":1,"tid":0},{"ph":"s","id":1,"name":"f","cat":"f","ts":1,"pid":1,"tid":0}]}' > bad.trace; python3 $ROOT/tests/trace_check.py bad.trace
    ddp-tiny.trace: 71 slices, 57 points of 2 counters, 4 flows; 4 compute to all_reduce
    ep-tiny.trace: 93 slices, 82 points of 2 counters, 1 flows; 1 compute to all_reduce
    llama3-8b-fsdp-64xh100.trace: 1232 slices, 1137 points of 2 counters, 98 flows; 65 all_gather to compute; 33 compute to reduce_scatter
    pp-tiny.trace: 585 slices, 520 points of 2 counters, 2 flows; 2 compute to all_reduce
    tp-dp-tiny.trace: 175 slices, 177 points of 2 counters, 16 flows; 10 all_gather to compute; 6 compute to reduce_scatter
    zero1-tiny.trace: 75 slices, 63 points of 2 counters, 4 flows; 4 compute to reduce_scatter
    zero2-tiny.trace: 75 slices, 64 points of 2 counters, 4 flows; 4 compute to reduce_scatter
    True
    bad.trace: flow 1 lacks an end, or ends before it begins
    [1]

configs/reference.yaml names every key of the config and can be read; in the JSON four are missing that are not given:

    $ stepsim predict $ROOT/configs/reference.yaml --set cluster.system=dgx-h100 --json - | sed -n '/^  "config"/,/^  }/p' | grep -oE '^      "[a-z_0-9]+"' | tr -d ' "' > in-json
    > grep -oE '^  (# )?[a-z0-9_]+:' $ROOT/configs/reference.yaml | tr -d ' :#' | diff in-json - | sed -n 's/^\([<>]\) /only \1 /p'
    only > hf_config
    only > gpus_per_node
    only > profile
    only > fabric

--csv: the table's rows under the JSON's keys, with its digits; nothing measured leaves its cells empty.

    $ stepsim predict $ROOT/configs/pp-llama3-70b-64xh100.yaml -q --csv step.csv --json step.json >/dev/null; python3 -c '
    > import csv, json
    > rows, p = list(csv.DictReader(open("step.csv"))), json.load(open("step.json"))["prediction"]
    > print(*rows[0], sep=","); print(*dict.fromkeys(r["part"] for r in rows))
    > known = {**p, **p["memory"], "interval90_low_s": p["interval90_s"][0], "interval90_high_s": p["interval90_s"][1]}
    > print([r["key"] for r in rows if r["part"] != "class" and float(r["predicted"]) != known[r["key"]]])
    > print([[r["key"], int(r["count"]), float(r["predicted"]), r["bound"]] for r in rows if r["part"] == "class"] == [[c["class"], c["count"], c["time_s"], c["bound"]] for c in p["by_class"]])
    > print(sum(float(r["predicted"]) for r in rows if r["part"] == "partition") - p["step_time_s"] < 1e-9, {r["measured"] + r["error"] for r in rows})'
    part,key,count,predicted,measured,error,bound
    step partition communication class memory
    []
    True
    True {''}
