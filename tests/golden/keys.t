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
A sliding window: attention's work falls with it. Moments in 8 bits: memory and the update. Where they would be executed, one line says that they are not.

    $ for window in 0 4096 1024; do stepsim predict $ROOT/configs/llama3-8b-fsdp-64xh100.yaml --set model.sliding_window=$window | grep -E 'attention|MFU'; done
    > for bits in 32 8; do stepsim predict $ROOT/configs/llama3-8b-fsdp-64xh100.yaml --set train.optimizer_bits=$bits | grep -E '  optimizer'; done
    > stepsim $ROOT/configs/ddp-tiny.yaml --set model.sliding_window=8 2>&1 | tail -n 1
    > stepsim $ROOT/configs/ddp-tiny.yaml --set train.optimizer_bits=8 2>&1 | tail -n 1
    MFU                            48.0 %
      attention (96)               509 ms       24.1 %  compute
    MFU                            45.5 %
      attention (96)               387 ms       19.5 %  compute
    MFU                            47.6 %
      attention (96)               132 ms        7.6 %  compute
      optimizer                   1.19 ms        0.1 %
      optimizer (33)              1.19 ms        0.1 %  memory
      optimizer state             957 MiB
      optimizer                    682 us        0.0 %
      optimizer (33)               682 us        0.0 %  memory
      optimizer state             243 MiB
    stepsim: model.sliding_window is predicted, not executed yet (0, or no less than seq_len, is)
    stepsim: train.optimizer_bits 8 is predicted, not executed yet (32 is)
