Four experts on each of two ranks. Each routes its 128 rows to 2 of 8 experts: 320 slots, 40 at an expert, leave and come back; shared experts are an MLP beside them.

    $ stepsim predict $ROOT/configs/ep-tiny.yaml --set cluster.gpus_per_node=2 --set model.shared_experts=1 --dump-program | grep -E ' L0 .*(rout|dispatch|combine|expert|shared|grads).* mb0|^bucket'
    bucket 0: 305792 elements, padded 305792, 1 shards
    bucket 1: 393216 elements, padded 393216, 1 shards
        12 compute    L0 router forward gemm mb0 [128 8 128] A:r=18+0 B:r=0+1185280 C:w=24+0
        13 compute    L0 router forward route mb0 [128 8 2 40] logits:r=24+0 gates:w=25+0 slots:w=26+0 taken:w=27+0
        14 compute    L0 dispatch forward dispatch mb0 [128 128 320 2] x:r=18+0 taken:r=27+0 y:w=28+0
        15 model_comm L0 dispatch forward alltoall mb0 [40960] in:r=28+0 out:w=29+0 after 14
        16 compute    L0 by expert forward swap mb0 [2 4 5120] x:r=29+0 y:w=30+0 after 15
        17 compute    L0 expert fc1 forward grouped_gemm mb0 [80 256 128 4] A:r=30+0 B:r=4+1048576 C:w=31+0
        19 compute    L0 expert fc2 forward grouped_gemm mb0 [80 128 128 4] A:r=32+0 B:r=4+786432 C:w=33+0
        20 compute    L0 by expert forward swap mb0 [4 2 5120] x:r=33+0 y:w=34+0
        21 model_comm L0 combine forward alltoall mb0 [40960] in:r=34+0 out:w=35+0 after 20
        22 compute    L0 combine forward combine mb0 [128 128 320 2] y:r=35+0 slots:r=26+0 gates:r=25+0 x:rw=23+0 after 21
        77 compute    L0 combine backward combine_grad mb0 [128 128 320 2] y:r=35+0 dx:r=66+0 taken:r=27+0 gates:r=25+0 dy:w=85+0 dgates:w=86+0
        78 compute    L0 router backward route_grad mb0 [128 8 2 40] logits:r=24+0 gates:r=25+0 slots:r=26+0 dgates:r=86+0 dlogits:w=87+0
        79 compute    L0 router backward gemm mb0 [128 128 8] A:r=87+0 B:r=0+1185280 C:w=88+0
        80 compute    L0 router backward gemm mb0 [8 128 128] A:r=87+0 B:r=18+0 C:w=1+1185280
        81 model_comm L0 combine grad backward alltoall mb0 [40960] in:r=85+0 out:w=89+0 after 77
        82 compute    L0 by expert backward swap mb0 [2 4 5120] x:r=89+0 y:w=90+0 after 81
        83 compute    L0 expert fc2 backward grouped_gemm mb0 [80 128 128 4] A:r=90+0 B:r=4+786432 C:w=91+0
        84 compute    L0 expert fc2 backward grouped_gemm mb0 [128 128 80 4] A:r=90+0 B:r=32+0 C:w=5+786432
        86 compute    L0 expert fc1 backward grouped_gemm mb0 [80 128 256 4] A:r=92+0 B:r=4+1048576 C:w=93+0
        87 compute    L0 expert fc1 backward grouped_gemm mb0 [256 128 80 4] A:r=92+0 B:r=30+0 C:w=5+1048576
        88 compute    L0 by expert backward swap mb0 [4 2 5120] x:r=93+0 y:w=94+0
        89 model_comm L0 dispatch grad backward alltoall mb0 [40960] in:r=94+0 out:w=95+0 after 88
        90 compute    L0 dispatch backward combine mb0 [128 128 320 2] y:r=95+0 slots:r=26+0 x:rw=88+0 after 89
        96 compute    L0 shared grad backward add mb0 [128 128] x:r=88+0 y:r=98+0 sum:w=88+0

The groups of tensor parallel ranks are a part of those that share experts.

    $ stepsim predict $ROOT/configs/ep-mixtral-8x7b-64xh100.yaml --set parallel.tensor=2 --set parallel.sequence_parallel=true | head -10
    A step takes 3.16 s (90 % interval: 1.87 s to 5.34 s); 60 % of communication hides behind compute,
      the rest takes 5.9 % of the step; it fits, 42.5 GiB are free.
    mixtral-8x7b (46.7 B parameters, 12.9 B active), zero1 on 64 ranks (tp 2, ep 8, dp 16, pp 2, edp 4),
      bf16
    a step: 256 sequences of 4096 tokens, 16 micro-batches of 1 a replica
    on: NVIDIA DGX H100, 64 x NVIDIA H100 SXM5 80GB (catalogue configs/systems/dgx-h100.yaml)
                                predicted  of the step  bound by
    --------------------------------------------------------------------
    step time                      3.16 s

Mixtral 8x7B: 46.7 billion parameters; MFU counts the 12.9 billion that work on a token.

    $ stepsim predict $ROOT/configs/ep-mixtral-8x7b-64xh100.yaml
    A step takes 3.15 s (90 % interval: 1.86 s to 5.32 s); 64 % of communication hides behind compute,
      the rest takes 3.8 % of the step; it fits, 26.2 GiB are free.
    mixtral-8x7b (46.7 B parameters, 12.9 B active), zero1 on 64 ranks (ep 8, dp 32, pp 2, edp 4), bf16
    a step: 256 sequences of 4096 tokens, 8 micro-batches of 1 a replica
    on: NVIDIA DGX H100, 64 x NVIDIA H100 SXM5 80GB (catalogue configs/systems/dgx-h100.yaml)
                                predicted  of the step  bound by
    --------------------------------------------------------------------
    step time                      3.15 s
    tokens/s                        333 k
    model FLOP/s a device     436 TFLOP/s
    MFU                            44.1 %
    --------------------------------------------------------------------
    where the step goes
      compute                      2.58 s       81.9 %
      exposed communication        119 ms        3.8 %
      copy                         533 ns        0.0 %
      host                        7.00 us        0.0 %
      bubble                       438 ms       13.9 %
      optimizer                   7.48 ms        0.2 %
      idle                        6.65 ms        0.2 %
    --------------------------------------------------------------------
    communication
      moving bytes                 333 ms       10.6 %
      waiting for late ranks          0 s        0.0 %
      overlap                      64.3 %
    --------------------------------------------------------------------
    ops, summed (count)
      gemm (1920)                  2.13 s       67.7 %  compute
      attention (256)              128 ms        4.1 %  compute
      norm (512)                  49.5 ms        1.6 %  latency
      elementwise (640)            229 ms        7.3 %  memory
      embedding (16)               490 us        0.0 %  latency
      routing (896)               38.0 ms        1.2 %  latency
      memory (1)                  90.3 us        0.0 %  latency
      optimizer (49)              7.48 ms        0.2 %  memory
      all_gather (49)              101 ms        3.2 %  link
      reduce_scatter (49)          101 ms        3.2 %  link
      alltoall (768)               123 ms        3.9 %  link
      sendrecv (16)               14.3 ms        0.5 %  link
      copy (8)                    4.26 us        0.0 %  latency
      host (1)                    7.00 us        0.0 %  host
    --------------------------------------------------------------------
    memory of a rank
      weights                    6.75 GiB
      gradients                  6.75 GiB
      optimizer state            8.16 GiB
      activations                30.1 GiB
      buffers                    64.0 KiB
      overhead                   1.75 GiB
      total                      53.5 GiB               fits in 79.6 GiB
    The stages of the predicted step; the table above is of the one that ends last.
    stage  layers  compute  exposed comm.   bubble  optimizer  other, idle    memory
    --------------------------------------------------------------------------------
    0          16   2.58 s         119 ms   438 ms    7.48 ms      6.66 ms  53.5 GiB
    1          16   2.61 s         285 ms  47.8 ms    7.41 ms       196 ms  39.0 GiB
    Changes that shorten the step, each alone; symptom: pipeline bubble (26 changes tried)
                                 saves  of the step  tuning stage
        with
    -----------------------------------------------------------------------
      lower-precision products  1.00 s       31.8 %  1 format
        --set train.dtype=fp8
      another number of stages  319 ms       10.1 %  6 pipeline
        --set parallel.pipeline=1
      interleaved stages        258 ms        8.2 %  6 pipeline
        --set parallel.schedule=interleaved --set parallel.virtual_stages=8
      another schedule          103 ms        3.3 %  6 pipeline
        --set parallel.schedule=zero_bubble
    90 % interval of the prediction: 1.86 s to 5.32 s
      its width comes from software 15 %, experts 50 %, traffic 5 %, network 1 % (root of the sum of
        squares)
    Bottleneck: compute: gemm 68 % of the step
    warning: nothing was measured on this machine: the rates of hardware and software come from
      published runs
    $ stepsim predict $ROOT/configs/ep-mixtral-8x7b-64xh100.yaml --set train.micro_batch=2 --set model.capacity_factor=1.25 | grep -E 'step time|MFU|alltoall|total'
    step time                      4.04 s
    MFU                            34.4 %
      alltoall (384)               133 ms        3.3 %  link
      total                      95.2 GiB               DOES NOT FIT in 79.6 GiB

Exchanges behind another micro-batch's compute: no pair waits for itself, however few micro-batches there are.

    $ for pp in 2 4; do for v in 2 3; do for m in 1 2 3; do
    >   stepsim predict $ROOT/tests/exec/tiny-moe.yaml -q --set cluster.system=dgx-h100 --set cluster.gpus_per_node=$((2 * pp)) --set model.layers=$((pp * v)) --set parallel.pipeline=$pp --set parallel.virtual_stages=$v --set parallel.schedule=interleaved --set parallel.expert=2 --set parallel.expert_overlap=true --set train.global_batch=$((2 * pp * m)) | grep -c '^A step takes'; done; done; done | sort | uniq -c | sed 's/^ *//'
    12 1
