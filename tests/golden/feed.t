What starves the device. A loader that cannot keep up: micro-batches x load_time / workers; without prefetch micro-batches x load_time and the model's own work:

    $ part() { stepsim predict "$@" -q | grep -E '^(step time|  (compute|exposed communication|copy|host|idle|optimizer)  |Bottleneck)'; }
    > part $ROOT/configs/starved.yaml --set cluster.system=dgx-h100 --set train.global_batch=64 --set data.load_time=80ms
    > part $ROOT/configs/starved.yaml --set cluster.system=dgx-h100 --set train.global_batch=64 --set data.load_time=80ms --set data.workers=4 | head -n 1
    > part $ROOT/configs/starved.yaml --set cluster.system=dgx-h100 --set train.global_batch=64 --set data.load_time=80ms --set data.prefetch=0
    step time                       160 ms
      compute                      2.18 ms        1.4 %
      exposed communication        32.5 us        0.0 %
      host                          158 ms       98.6 %
      optimizer                    7.35 us        0.0 %
    Bottleneck: loading data: 99 % of the step
    step time                      80.0 ms
    step time                       322 ms
      compute                      2.18 ms        0.7 %
      exposed communication        32.5 us        0.0 %
      copy                         65.0 ns        0.0 %
      host                          320 ms       99.3 %
      optimizer                    7.35 us        0.0 %
      idle                          121 us        0.0 %
    Bottleneck: loading data: 99 % of the step

A host thread that paces the step widens the interval, whether it runs ahead or waits for the device each step:

    $ for n in 0 1; do COLUMNS=200 stepsim predict $ROOT/configs/launch-bound.yaml -v --set train.sync_every=$n 2>/dev/null | grep -o 'host [0-9]* %'; done
    host 100 %
    host 95 %

Launches, and the graph that does without them:

    $ part() { stepsim predict "$@" -q | grep -E '^(step time|  (compute|exposed communication|copy|host|idle|optimizer)  |Bottleneck)'; }
    > part $ROOT/configs/launch-bound.yaml
    > part $ROOT/configs/launch-bound.yaml --set train.cuda_graph=true
    step time                      17.8 ms
      compute                      5.89 ms       33.0 %
      exposed communication         331 us        1.9 %
      optimizer                     688 us        3.9 %
      idle                         10.9 ms       61.3 %
    Bottleneck: kernel launches on the host leave the device idle: 61 % of the step
    step time                      6.80 ms
      compute                      5.95 ms       87.5 %
      exposed communication         164 us        2.4 %
      optimizer                     688 us       10.1 %
    Bottleneck: compute: gemm 37 % of the step

Synchronisation, in every step, in every tenth, in none:

    $ part() { stepsim predict "$@" -q | grep -E '^(step time|  (host|idle)  |Bottleneck)'; }
    > for n in 1 10 0; do part $ROOT/configs/sync.yaml --set train.sync_every=$n; done
    step time                     5.01 ms
      host                        7.00 us        0.1 %
      idle                        19.2 us        0.4 %
    Bottleneck: compute: gemm 41 % of the step
    step time                     4.98 ms
      host                        2.65 us        0.1 %
    Bottleneck: compute: gemm 41 % of the step
    step time                     4.98 ms
    Bottleneck: compute: gemm 41 % of the step

Copies from memory that is not pinned hold the host thread:

    $ stepsim predict $ROOT/configs/sync.yaml -q --set data.bytes=100MB --set train.sync_every=0 | grep -E '^  (copy|idle) '
    > stepsim predict $ROOT/configs/sync.yaml -q --set data.bytes=100MB --set train.sync_every=0 --set data.pin_memory=false | grep -E '^  (copy|idle) '
      copy                        1.51 ms       23.2 %
      copy (1)                    1.59 ms       24.5 %  link
      copy                        3.17 ms       38.9 %
      idle                        7.00 us        0.1 %
      copy (1)                    3.17 ms       38.9 %  link
