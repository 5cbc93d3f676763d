A system of the catalogue, of any size: no MPI, no GPU, no profile. The table:

    $ stepsim predict $ROOT/configs/llama3-8b-fsdp-64xh100.yaml
    llama3-8b (8.03 B parameters), fsdp on 64 ranks (dp 64), bf16
    a step: 128 sequences of 8192 tokens, 1 micro-batch of 2 a replica
    on: NVIDIA DGX H100, 64 x NVIDIA H100 SXM5 80GB (catalogue configs/systems/dgx-h100.yaml)
                                predicted  of the step  bound by
    --------------------------------------------------------------------
    step time                      2.27 s
    tokens/s                        462 k
    model FLOP/s a device     441 TFLOP/s
    MFU                            44.6 %
    HFU                            55.3 %
    --------------------------------------------------------------------
    where the step goes
      compute                      2.25 s       99.0 %
      exposed communication       21.3 ms        0.9 %
      optimizer                   1.24 ms        0.1 %
    --------------------------------------------------------------------
    communication
      moving bytes                 215 ms        9.5 %
      waiting for late ranks          0 s        0.0 %
      overlap                      90.1 %
    --------------------------------------------------------------------
    ops, summed (count)
      gemm (483)                   1.56 s       68.7 %  compute
      attention (96)               529 ms       23.3 %  compute
      norm (194)                  39.4 ms        1.7 %  memory
      elementwise (224)           91.3 ms        4.0 %  memory
      embedding (2)                360 us        0.0 %  memory
      loss (1)                    9.96 ms        0.4 %  memory
      memory (100)                18.4 ms        0.8 %  memory
      optimizer (33)              1.24 ms        0.1 %  memory
      all_gather (65)              109 ms        4.8 %  link
      reduce_scatter (33)          107 ms        4.7 %  link
      copy (1)                    2.13 us        0.0 %  latency
    --------------------------------------------------------------------
    memory of a rank
      weights                     479 MiB
      gradients                   479 MiB
      optimizer state             957 MiB
      activations                8.29 GiB
      buffers                    4.33 GiB
      overhead                   1.00 GiB
      total                      15.5 GiB               fits in 79.6 GiB
    Changes that shorten the step, each alone; symptom: compute-bound (23 changes tried)
                                          saves  of the step  order     with
    ------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------
      narrower products                  687 ms       30.3 %  1 format  --set train.dtype=fp8
      less recomputation                 420 ms       18.5 %  4 fit     --set train.recompute=none
      a newer attention kernel           168 ms        7.4 %  3 fuse    --set train.attention_kernel=fa3
      16-bit weights and a master copy  38.2 ms        1.7 %  1 format  --set train.param_dtype=bf16 --set train.master_weights=true --set train.grad_dtype=bf16 --set train.reduce_dtype=bf16
    90 % interval of the prediction: 1.76 s to 2.92 s
    Bottleneck: compute: gemm 69 % of the step
    Warning: nothing was measured on this machine: its rates, and the software stack's habits, are those of published runs of others

Alone, a config for another machine is predicted, and the last line says why it was not executed:

    $ stepsim $ROOT/configs/llama3-8b-fsdp-64xh100.yaml | tail -n 1
    Not executed: cluster.system dgx-h100 is not this machine (--set cluster.system=auto executes here)

The step program begins with the role, then one line an op:

    $ stepsim predict $ROOT/configs/llama3-8b-fsdp-64xh100.yaml --dump-program | head -n 2
    role 0: 64 ranks, 1232 ops, 1329 buffers, 33 buckets, 195 parameters
    bucket 0: 218112000 elements, padded 218112000, 64 shards

The same input gives the same bytes:

    $ for i in 1 2; do stepsim predict $ROOT/configs/llama3-8b-fsdp-64xh100.yaml --json $i.json --trace $i.trace > $i.txt; done
    > cmp 1.json 2.json && cmp 1.trace 2.trace && cmp 1.txt 2.txt && echo same
    same

No MPI is started (it would leave its folder), and no CUDA library is linked:

    $ mkdir t; TMPDIR=$PWD/t stepsim predict $ROOT/configs/llama3-8b-fsdp-64xh100.yaml > /dev/null; ls t; ldd $(command -v stepsim) | grep -ciE 'cuda|cublas|nccl|cudnn'
    0
    [1]

More nodes, by --set:

    $ stepsim predict $ROOT/configs/llama3-8b-fsdp-64xh100.yaml --set cluster.nodes=16 --set train.global_batch=256 | head -n 3
    llama3-8b (8.03 B parameters), fsdp on 128 ranks (dp 128), bf16
    a step: 256 sequences of 8192 tokens, 1 micro-batch of 2 a replica
    on: NVIDIA DGX H100, 128 x NVIDIA H100 SXM5 80GB (catalogue configs/systems/dgx-h100.yaml)

How many ranks scripts/run.sh starts: none for another machine, the plan's own, or two.

    $ stepsim predict $ROOT/configs/llama3-8b-fsdp-64xh100.yaml --print-ranks
    0

    $ stepsim predict $ROOT/configs/ddp-tiny.yaml --set parallel.data=8 --print-ranks
    8

A step of very many micro-batches: a few are simulated, the rest is counted. Where that cannot be, and where all would have to be held, one line says so.

    $ long="$ROOT/configs/gpt2-124m-gpu.yaml --set cluster.system=dgx-h100 --set cluster.gpus_per_node=4 --set train.micro_batch=1 --set train.global_batch=16384"
    > stepsim predict $long --set parallel.pipeline=4 | grep -E 'a step|step time|counted'
    > stepsim predict $long --set parallel.pipeline=4 --set parallel.schedule=gpipe
    > stepsim predict $long --set parallel.pipeline=4 --dump-program
    a step: 16384 sequences of 1024 tokens, 16384 micro-batches of 1 a replica
    step time                      21.5 s
    Warning: a step of 16384 micro-batches is long: 12 of them were simulated, and the rest counted; the timeline ends with those
    stepsim: --set train.global_batch=16384: gpipe keeps 16384 micro-batches of 12 layers in flight, too many to be simulated (parallel.schedule 1f1b does not)
    stepsim: --set train.global_batch=16384: 16384 micro-batches of 12 layers: a step so long is predicted, but neither executed nor dumped
    [2]

A search and a comparison count it, too, and see the same step; advice tries changes as they would be predicted, and a part of the step tells no sensitivity. As many micro-batches as fill a long pipeline are simulated.

    $ long="$ROOT/configs/gpt2-124m-gpu.yaml --set cluster.system=dgx-h100 --set cluster.gpus_per_node=1 --set train.micro_batch=1 --set train.global_batch=16384"
    > stepsim predict $long -v 2>&1 | grep -E '^step time|^sensitivity|larger micro-batches'
    > stepsim predict $long --set train.micro_batch=32 -q | grep '^step time'
    > stepsim plan $long --set train.recompute=none 2>/dev/null | grep '^config'
    > stepsim compare $long --systems dgx-h100 --gpus 1 --fixed-plan 2>/dev/null | grep -m 1 '^1'
    > stepsim plan $ROOT/configs/gpt2-124m-gpu.yaml --set cluster.system=dgx-h100 --gpus 2 --set train.micro_batch=1 --set train.global_batch=16384 --set parallel.pipeline=2 --set parallel.schedule=gpipe
    > stepsim predict $ROOT/configs/pp-llama3-70b-64xh100.yaml -q --set model.preset=llama3-405b --set cluster.nodes=126 --set parallel.pipeline=126 --set train.global_batch=360 | grep '^step time'
    step time                     56.3 s
      larger micro-batches              20.0 s       35.6 %  3 fuse    --set train.micro_batch=32
    step time                   36.3 s
    config  dp 1 mb 1     56.3 s  21.8 s to 2.42 min    298141  25.9 %  3.34 GiB  76.3 GiB      0 s  compute: gemm 55 % of the step
    1  dgx-h100     1     56.3 s  21.8 s to 2.42 min    298141  25.9 %  3.34 GiB  76.3 GiB      0 s  dp 1 mb 1
    stepsim: no plan is legal on 2 ranks: --set train.global_batch=16384: gpipe keeps 16384 micro-batches of 12 layers in flight, too many to be simulated (parallel.schedule 1f1b does not)
    step time                      28.5 s
