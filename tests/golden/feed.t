What starves the device. A loader that cannot keep up: micro-batches x load_time / workers; without prefetch micro-batches x load_time and the model's own work:

    $ part() { stepsim predict "$@" -q | grep -E '^(step time|  (compute|exposed communication|copy|host|idle|optimizer)  |Bottleneck)'; }
    > part $ROOT/configs/starved.yaml --set cluster.system=dgx-h100 --set train.global_batch=64 --set data.load_time=80ms
    > part $ROOT/configs/starved.yaml --set cluster.system=dgx-h100 --set train.global_batch=64 --set data.load_time=80ms --set data.workers=4 | head -n 1
    > part $ROOT/configs/starved.yaml --set cluster.system=dgx-h100 --set train.global_batch=64 --set data.load_time=80ms --set data.prefetch=0
    step time                       160 ms
      compute                      56.2 us        0.0 %
      exposed communication        63.3 us        0.0 %
      copy                         16.3 ns        0.0 %
      host                          160 ms       99.9 %
      optimizer                    4.35 us        0.0 %
    Bottleneck: loading data: 100 % of the step
    step time                      80.0 ms
    step time                       322 ms
      compute                      56.2 us        0.0 %
      exposed communication        65.2 us        0.0 %
      copy                         65.0 ns        0.0 %
      host                          320 ms       99.3 %
      optimizer                    7.35 us        0.0 %
      idle                          121 us        0.0 %
    Bottleneck: loading data: 99 % of the step

Launches, and the graph that does without them:

    $ part() { stepsim predict "$@" -q | grep -E '^(step time|  (compute|exposed communication|copy|host|idle|optimizer)  |Bottleneck)'; }
    > part $ROOT/configs/launch-bound.yaml
    > part $ROOT/configs/launch-bound.yaml --set train.cuda_graph=true
    step time                      13.7 ms
      compute                       784 us        5.7 %
      exposed communication         466 us        3.4 %
      copy                         65.0 ns        0.0 %
      optimizer                     682 us        5.0 %
      idle                         11.8 ms       85.9 %
    Bottleneck: kernel launches on the host leave the device idle: 86 % of the step
    step time                      1.79 ms
      compute                       784 us       43.9 %
      exposed communication         321 us       17.9 %
      optimizer                     682 us       38.2 %
    Bottleneck: compute: optimizer 38 % of the step

Synchronisation, in every step, in every tenth, in none:

    $ part() { stepsim predict "$@" -q | grep -E '^(step time|  (host|idle)  |Bottleneck)'; }
    > for n in 1 10 0; do part $ROOT/configs/sync.yaml --set train.sync_every=$n; done
    step time                     3.74 ms
      host                        7.00 us        0.2 %
      idle                         185 us        4.9 %
    Bottleneck: compute: gemm 41 % of the step
    step time                     3.56 ms
      host                        19.2 us        0.5 %
    Bottleneck: compute: gemm 43 % of the step
    step time                     3.55 ms
    Bottleneck: compute: gemm 43 % of the step

Copies from memory that is not pinned hold the host thread:

    $ stepsim predict $ROOT/configs/sync.yaml -q --set data.bytes=100MB --set train.sync_every=0 | grep -E '^  (copy|idle) '
    > stepsim predict $ROOT/configs/sync.yaml -q --set data.bytes=100MB --set train.sync_every=0 --set data.pin_memory=false | grep -E '^  (copy|idle) '
      copy                        1.51 ms       29.9 %
      copy (1)                    1.59 ms       31.4 %  link
      copy                        3.17 ms       46.1 %
      idle                         171 us        2.5 %
      copy (1)                    3.17 ms       46.1 %  link
