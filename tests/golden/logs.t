A training log beside the prediction of its config: the median after the warm-up, its spread, both sides and the interval.

    $ for i in 1 10 20 30 40; do echo "[2025-04-13 23:41:0$((i / 10))] iteration $i/ 100 | consumed samples: 8 | elapsed time per iteration (ms): $((i == 1 ? 9000 : 1500 + i)).0 | global batch size: 128 | number of skipped iterations: 0 |"; done >mega.log
    > stepsim compare-log mega.log $ROOT/configs/llama3-8b-fsdp-64xh100.yaml | sed 's/[0-9.]* m*s  *[0-9.]* m*s to [0-9.]* m*s  *[+-][0-9.]* %/P  LOW to HIGH  ERROR/; s/, [0-9]* predicted/, N predicted/; s/  *$//; s/--*$/--/'
    > stepsim compare-log mega.log $ROOT/configs/llama3-8b-fsdp-64xh100.yaml --json - | grep -E '"(framework|step_time_s|p10_s|lines|left_out|first_step|last_step)"' | head -n 7
    > stepsim compare-log mega.log $ROOT/configs/llama3-8b-fsdp-64xh100.yaml -q --set run.warmup=30 --max-error 0.001 2>&1 >/dev/null | sed 's/[+-][0-9.]* %/# %/'
    log       of           lines  measured        p10 to p90  predicted     90 % interval    error
    --
    mega.log  Megatron-LM      4    1.52 s  1.51 s to 1.54 s     P  LOW to HIGH  ERROR
        outside
    mega.log: median of 4 lines of steps 10 to 40; 1 left out (warm-up, skipped steps).
      Tokens a second and GPU: 10744 measured, N predicted.
          "framework": "Megatron-LM",
            "step_time_s": 1.525,
            "p10_s": 1.513,
            "lines": 4,
            "left_out": 1,
            "first_step": 10,
            "last_step": 40,
    stepsim: mega.log: the predicted step time is off by # %; --max-error 0.001

What cannot be: another batch is said; a log without a config, a config without a log, a log of nothing, and all steps as warm-up are refused.

    $ for i in 1 10 20 30 40; do echo "[2025-04-13 23:41:0$((i / 10))] iteration $i/ 100 | consumed samples: 8 | elapsed time per iteration (ms): $((i == 1 ? 9000 : 1500 + i)).0 | global batch size: 128 | number of skipped iterations: 0 |"; done >mega.log
    > sed 's/size: 128/size: 65/' mega.log >other.log; stepsim compare-log other.log $ROOT/configs/llama3-8b-fsdp-64xh100.yaml 2>&1 >/dev/null
    > stepsim compare-log mega.log mega.log; stepsim compare-log $ROOT/configs/llama3-8b-fsdp-64xh100.yaml mega.log; echo nothing >n.log; stepsim compare-log n.log $ROOT/configs/llama3-8b-fsdp-64xh100.yaml
    > stepsim compare-log mega.log $ROOT/configs/llama3-8b-fsdp-64xh100.yaml --set run.warmup=40
    stepsim: warning: other.log: its global batch is 65, and train.global_batch of $ROOT/configs/llama3-8b-fsdp-64xh100.yaml is 128: another run
    stepsim: mega.log: no config behind this log (LOG... CONFIG.yaml)
    stepsim: $ROOT/configs/llama3-8b-fsdp-64xh100.yaml: no log before this config (LOG... CONFIG.yaml)
    stepsim: n.log: no line is a step as a framework that is known prints it, such as "step: N ... tps: N" (docs/reference.md lists them)
    stepsim: mega.log: all 5 lines of steps are of the warm-up (the first, and those up to step 40: run.warmup) or have skipped iterations
    [2]

fit: logs are made of what a stack with other numbers predicts. The fit moves numbers, and the runs that it has not seen are predicted as well; the file that it writes is a stack.

    $ printf 'like: pytorch-ddp\nsource: "made up"\nnumbers:\n  elementwise_passes: {value: 3, source: "made up"}\n  step: {value: 1ms, source: "made up"}\n' >truth.yaml
    > for i in 1 2 3 4; do printf "model: {preset: gpt2-124m}\ntrain: {stack: pytorch-ddp, global_batch: $((32 * i)), micro_batch: 4}\ncluster: {system: dgx-h100}\n" >c$i.yaml; ms=$(stepsim predict c$i.yaml --set train.stack=truth.yaml -q --json - | grep -m 1 '"step_time_s"' | awk '{ printf "%.9f", 1000 * $2 }'); for n in 1 2 3; do echo "iter ${n}0: loss 4.0, time ${ms}ms"; done >l$i.log; done
    > head -n 1 l1.log | sed 's/[0-9.]*ms/Tms/'
    > stepsim fit l1.log c1.yaml l2.log c2.yaml l3.log c3.yaml l4.log c4.yaml -o mine.yaml --json fit.json -q | grep -oE '^(l[1-4].log|Median error)'
    > python3 -c "
    > import json
    > f = json.load(open('fit.json'))
    > before, fitted, left_out = (f[k] for k in ('median_error', 'fitted_median_error', 'left_out_median_error'))
    > print(before > 0.05, fitted < before / 4, left_out < before / 4, 'elementwise_passes' in f['numbers'], 'tensor_call' in f['numbers'])"
    > sed 's/[0-9][-.0-9]* % /# % /g; s/fitted on [-0-9]*/fitted on DATE/' mine.yaml | head -n 5
    > stepsim compare-log l2.log c2.yaml --set train.stack=mine.yaml --max-error 2 -q >/dev/null && echo as measured
    > stepsim fit l1.log c1.yaml -q | tail -n 1; stepsim fit l1.log l1.log c1.yaml -q | tail -n 2 
    > stepsim fit l1.log c1.yaml l2.log c2.yaml --json - -q | grep -oE '"(stack|before|after|left_out_error|left_out_groups|median_error)"' | sort | uniq -c | sed 's/^ *//'
    iter 10: loss 4.0, time Tms
    l1.log
    l2.log
    l3.log
    l4.log
    Median error
    True True True True False
    # Written by stepsim 0.1.0 fit; use it as train.stack: its path.
    like: pytorch-ddp
    source: "fitted on DATE to l1.log, l2.log, l3.log, l4.log; median error # % before, # % fitted, # % left out"
    interval: {value: 0.05, source: "# % of what was left out of the fit"}
    fitted_on: {gpus: [h100-sxm], formats: [bf16]}
    as measured
    One log: nothing can be left out, so the error on another run is not known.
    All logs are of one config: what is left out is a repeat, so the error on another config is not
      known.
    3 "after"
    3 "before"
    2 "left_out_error"
    1 "left_out_groups"
    1 "median_error"
    1 "stack"

What cannot be fitted: two stacks, this machine, a file that is fitted already.

    $ printf "model: {preset: gpt2-124m}\ntrain: {global_batch: 32, micro_batch: 4}\ncluster: {system: dgx-h100}\n" >a.yaml; sed 's/train: {/train: {stack: pytorch-ddp-eager, /' a.yaml >b.yaml; sed 's/dgx-h100/auto/' a.yaml >here.yaml; printf 'iter 1: loss 4.0, time 20ms\niter 9: loss 4.0, time 20ms\n' >l.log; printf 'like: pytorch-ddp\n' >own.yaml
    > stepsim fit l.log a.yaml l.log b.yaml; stepsim fit l.log a.yaml --set train.stack=own.yaml; stepsim fit l.log a.yaml --set train.stack=none.yaml
    stepsim: train.stack is pytorch-ddp in a.yaml and pytorch-ddp-eager in b.yaml: the numbers of one stack are fitted
    stepsim: a.yaml: train.stack is the file own.yaml; fit from the stack that it is like
    stepsim: --set train.stack=none.yaml: no file 'none.yaml'
    [2]
