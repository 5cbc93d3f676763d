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
    stepsim: mega.log: the step time is predicted # % wrong; --max-error 0.001

What cannot be: another batch is said; a log without a config, a config without a log, a log of nothing, and all steps as warm-up are refused.

    $ for i in 1 10 20 30 40; do echo "[2025-04-13 23:41:0$((i / 10))] iteration $i/ 100 | consumed samples: 8 | elapsed time per iteration (ms): $((i == 1 ? 9000 : 1500 + i)).0 | global batch size: 128 | number of skipped iterations: 0 |"; done >mega.log
    > sed 's/size: 128/size: 65/' mega.log >other.log; stepsim compare-log other.log $ROOT/configs/llama3-8b-fsdp-64xh100.yaml 2>&1 >/dev/null
    > stepsim compare-log mega.log mega.log; stepsim compare-log $ROOT/configs/llama3-8b-fsdp-64xh100.yaml mega.log; echo nothing >n.log; stepsim compare-log n.log $ROOT/configs/llama3-8b-fsdp-64xh100.yaml
    > stepsim compare-log mega.log $ROOT/configs/llama3-8b-fsdp-64xh100.yaml --set run.warmup=40
    stepsim: warning: other.log: its global batch is 65, and train.global_batch of $ROOT/configs/llama3-8b-fsdp-64xh100.yaml is 128: another run
    stepsim: mega.log: no config behind this log (LOG... CONFIG.yaml)
    stepsim: $ROOT/configs/llama3-8b-fsdp-64xh100.yaml: no log before this config (LOG... CONFIG.yaml)
    stepsim: n.log: no step of torchtitan ("step: N ... tps: N"), Megatron-LM ("iteration N/N | ... elapsed time per iteration (ms): T"), nanotron ("iteration: N / N | ... elapsed_time_per_iteration_ms: T") or nanoGPT ("iter N: loss L, time Tms") is in it
    stepsim: mega.log: all 5 lines of steps are of the warm-up (the first, and those up to step 40: run.warmup) or have skipped iterations
    [2]
