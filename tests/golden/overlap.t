Two steps of a trace: half of the all-reduce is hidden.

    $ cat > t.json <<'EOF'
    > {"traceEvents": [
    > {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#1", "ts": 0, "dur": 100},
    > {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#2", "ts": 100, "dur": 100},
    > {"ph": "X", "cat": "kernel", "name": "ampere_bf16_gemm", "ts": 10, "dur": 60, "args": {"stream": 7}},
    > {"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce_Sum_f32_RING_LL", "ts": 50, "dur": 40, "args": {"stream": 9}},
    > {"ph": "X", "cat": "kernel", "name": "ampere_bf16_gemm", "ts": 110, "dur": 60, "args": {"stream": 7}},
    > {"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce_Sum_f32_RING_LL", "ts": 150, "dur": 40, "args": {"stream": 9}}
    > ]}
    > EOF
    > stepsim overlap t.json
    > COLUMNS=999 stepsim overlap t.json --json - | grep -E '"(step_time_s|overlap|exposed_comm_s|skew)"'
    > COLUMNS=999 stepsim overlap t.json $ROOT/configs/llama3-8b-fsdp-64xh100.yaml --max-error 5 | tail -n 3
    GPU           steps  step time  compute  optimizer  exposed comm  copy     idle  communication
        overlap  launch gaps
    ----------------------------------------------------------------------------------------------
    t.json GPU 0      2     100 us  60.0 us        0 s       20.0 us   0 s  20.0 us        40.0 us
         50.0 %            -
    20.0 us of the 40.0 us of communication hide behind compute (50.0 %); 20.0 us, 20.0 % of the step,
      are exposed.
    of kernel time  calls     mean  class       kernel
    -----------------------------------------------------------------------------------
            60.0 %      2  60.0 us  gemm        ampere_bf16_gemm
            40.0 %      2  40.0 us  all_reduce  ncclDevKernel_AllReduce_Sum_f32_RING_LL
          "step_time_s": 0.0001,
          "exposed_comm_s": 2e-5,
          "overlap": 0.5,
      "skew": 0.0,
    stepsim: the predicted step time is off by +2395751.2 %; --max-error 5
      all_gather         109 ms      0 s             -
      reduce_scatter     107 ms      0 s             -
      copy              2.13 us      0 s             -

What is no trace:

    $ echo '{"a": 1}' > no.json; stepsim overlap no.json 2>&1; stepsim overlap 2>&1; stepsim overlap there_is_none.json 2>&1; stepsim overlap a.yaml b.yaml 2>&1
    > echo '[]' > empty.json; stepsim overlap empty.json 2>&1
    stepsim: no.json: neither a Chrome trace (traceEvents) nor an Nsight Systems export (SQLite)
    stepsim: overlap: TRACE... missing; `stepsim overlap --help` shows what there is
    stepsim: cannot read there_is_none.json: No such file or directory
    stepsim: two configs, a.yaml and b.yaml: one can be compared
    stepsim: empty.json: no kernel of a GPU is in it (PyTorch's profiler needs ProfilerActivity.CUDA; `nsys export --type sqlite` of a run traced with --trace cuda)
    [2]
