Tensor-parallel collectives beside the tiles of products: Megatron's habit (user buffers), off by a key; elsewhere on by one.

    $ cat > tp.yaml <<'EOF'
    > model: {preset: llama3-8b}
    > train: {stack: megatron-core, global_batch: 8, micro_batch: 1}
    > parallel: {tensor: 8, sequence_parallel: true}
    > cluster: {system: dgx-h100}
    > EOF
    > for overlap in true false; do for stack in megatron-core pytorch-ddp; do
    >   stepsim predict tp.yaml --set train.stack=$stack --set parallel.tensor_overlap=$overlap | grep 'exposed comm'; done; done
    > stepsim predict tp.yaml | grep 'exposed comm'
      exposed communication       53.6 ms        5.8 %
      exposed communication       37.1 ms        4.1 %
      exposed communication        410 ms       31.9 %
      exposed communication        400 ms       31.3 %
      exposed communication       53.6 ms        5.8 %
Slow ranks: the step is the slowest one's. Failures: how much of the time is steps.

    $ for slow in '{}' '{5: 1.25}' '{n2: 1.25, 5: 1.1}'; do
    >   stepsim predict $ROOT/configs/llama3-8b-fsdp-64xh100.yaml --set cluster.slow_ranks="$slow" | grep -E 'step time|MFU|slowest'; done
    > stepsim predict $ROOT/configs/llama3-8b-fsdp-64xh100.yaml --set cluster.jitter=0.02 --set cluster.mtbf_hours=50 --set cluster.checkpoint_s=90s | grep -E 'step time|goodput|slowest'
    > stepsim predict $ROOT/configs/llama3-8b-fsdp-64xh100.yaml --set cluster.mtbf_hours=50 --set cluster.checkpoint_s=90s --json - | grep -E 'goodput|checkpoint'
    step time                      2.11 s
    MFU                            48.0 %
    step time                      2.63 s
    MFU                            38.4 %
    Warning: the slowest rank computes 1.25 times as long as the mean (cluster.slow_ranks, jitter): 522 ms of this step, for which the others wait
    step time                      2.63 s
    MFU                            38.4 %
    Warning: the slowest rank computes 1.25 times as long as the mean (cluster.slow_ranks, jitter): 522 ms of this step, for which the others wait
    step time                      2.21 s
    goodput                        96.8 %               a checkpoint every 94 min
    Warning: the slowest rank computes 1.05 times as long as the mean (cluster.slow_ranks, jitter): 97.8 ms of this step, for which the others wait
          "checkpoint_s": 90.0
        "goodput": 0.968225440841449,
        "checkpoint_interval_s": 5632.25790218609,
