Four stages of a tiny model: the step, and a row for each stage.

    $ stepsim predict $ROOT/configs/pp-tiny.yaml --set train.cuda_graph=true | grep -v '^90 %'
    A step takes 489 us (90 % interval: 406 us to 590 us); 32 % of communication hides behind compute,
      the rest takes 9.9 % of the step; it fits, 78.6 GiB are free.
    custom (210 k parameters), none on 4 ranks (pp 4), bf16
    a step: 8 sequences of 32 tokens, 4 micro-batches of 2 a replica
    on: NVIDIA DGX H100, 4 x NVIDIA H100 SXM5 80GB (catalogue configs/systems/dgx-h100.yaml)
                                predicted  of the step  bound by
    --------------------------------------------------------------------
    step time                      489 us
    tokens/s                        523 k
    model FLOP/s a device     178 GFLOP/s
    MFU                             0.0 %
    --------------------------------------------------------------------
    where the step goes
      compute                      216 us       44.1 %
      exposed communication       48.3 us        9.9 %
      bubble                       221 us       45.2 %
      optimizer                   3.56 us        0.7 %
    --------------------------------------------------------------------
    communication
      moving bytes                71.4 us       14.6 %
      waiting for late ranks          0 s        0.0 %
      overlap                      32.4 %
    --------------------------------------------------------------------
    ops, summed (count)
      gemm (48)                   88.4 us       18.1 %  latency
      attention (8)               12.2 us        2.5 %  latency
      norm (16)                   24.3 us        5.0 %  latency
      elementwise (28)            42.7 us        8.7 %  latency
      embedding (16)              24.2 us        4.9 %  latency
      memory (16)                 24.1 us        4.9 %  latency
      optimizer (2)               3.56 us        0.7 %  latency
      all_reduce (1)              9.80 us        2.0 %  latency
      sendrecv (8)                61.6 us       12.6 %  latency
      copy (4)                    32.5 ns        0.0 %  latency
    --------------------------------------------------------------------
    memory of a rank
      weights                     235 KiB
      gradients                   203 KiB
      optimizer state             470 KiB
      activations                 576 KiB
      buffers                    98.5 KiB
      overhead                   1.00 GiB
      total                      1.00 GiB               fits in 79.6 GiB
    The stages of the predicted step; the table above is of the one that ends last.
    stage  layers  compute  exposed comm.  bubble  optimizer  other, idle    memory
    -------------------------------------------------------------------------------
    0           1   216 us        48.3 us  221 us    3.56 us          0 s  1.00 GiB
    1           1   186 us        77.2 us  181 us    1.96 us      43.4 us  1.00 GiB
    2           1   186 us        77.1 us  146 us    1.96 us      78.1 us  1.00 GiB
    3           1   231 us        36.4 us  119 us    3.54 us      99.4 us  1.00 GiB
    Changes that shorten the step, each alone; symptom: pipeline bubble (8 changes tried)
                                          saves  of the step  tuning stage
        with
    ----------------------------------------------------------------------
      larger micro-batches               120 us       24.6 %  3 fuse
        --set train.micro_batch=8
      16-bit weights, fp32 master copy  80.7 us       16.5 %  1 format
        --set train.param_dtype=bf16 --set train.master_weights=true
      another schedule                  33.1 us        6.8 %  6 pipeline
        --set parallel.schedule=zero_bubble
      its width comes from software 15 %, traffic 11 %, network 3 % (root of the sum of squares)
    Bottleneck: pipeline bubble: 45 % of the step
    warning: nothing was measured on this machine: the rates of hardware and software come from
      published runs
    warning: stage 3 computes 13 % longer than the mean of the stages and paces them all;
      parallel.layers_per_stage moves layers to the others

The program of the third stage: its role, its messages, and the compute op that waits for each.

    $ stepsim predict $ROOT/configs/pp-tiny.yaml --dump-program | sed -n '/^role 2/,/^role 3/p' | grep -E 'role|stage| after '
    role 2: 1 ranks, 129 ops, 104 buffers, 1 buckets, 12 parameters
         0 recv_prev  L2 activations forward recv mb0 from stage 1 [4096] out:w=4+0
         1 recv_prev  L2 activations forward recv mb1 from stage 1 [4096] out:w=5+0
         2 compute    L2 weight forward cast mb0 [64] x:r=0+199680 y:w=8+0 after 0
        23 send_next  L3 activations forward send mb0 to stage 3 [4096] in:r=29+0 after 22
        24 recv_next  L3 gradient backward recv mb0 from stage 3 [4096] out:w=31+0 after 22
        25 compute    L2 norm1 forward norm mb1 [64 64] x:r=5+0 w:r=8+0 b:r=9+0 y:w=32+0 stats:w=33+0 after 1
        34 send_next  L3 activations forward send mb1 to stage 3 [4096] in:r=44+0 after 33
        35 recv_prev  L2 activations forward recv mb2 from stage 1 [4096] out:w=45+0 after 33
        36 compute    L2 fc2 backward bias_grad mb0 [64 64] dy:r=31+0 db:w=1+198400 after 24,23
        52 send_prev  L2 gradient backward send mb0 to stage 1 [4096] in:r=31+0 after 51
        53 recv_next  L3 gradient backward recv mb1 from stage 3 [4096] out:w=53+0 after 51
        54 compute    L2 norm1 forward norm mb2 [64 64] x:r=45+0 w:r=8+0 b:r=9+0 y:w=54+0 stats:w=55+0 after 35
        63 send_next  L3 activations forward send mb2 to stage 3 [4096] in:r=66+0 after 62
        64 recv_prev  L2 activations forward recv mb3 from stage 1 [4096] out:w=67+0 after 62
        65 compute    L2 fc2 backward bias_grad mb1 [64 64] dy:r=53+0 db:rw=1+198400 after 53,34
        81 send_prev  L2 gradient backward send mb1 to stage 1 [4096] in:r=53+0 after 80
        82 recv_next  L3 gradient backward recv mb2 from stage 3 [4096] out:w=75+0 after 80
        83 compute    L2 norm1 forward norm mb3 [64 64] x:r=67+0 w:r=8+0 b:r=9+0 y:w=76+0 stats:w=77+0 after 64,52
        92 send_next  L3 activations forward send mb3 to stage 3 [4096] in:r=88+0 after 91
        93 recv_next  L3 gradient backward recv mb3 from stage 3 [4096] out:w=89+0 after 91
        94 compute    L2 fc2 backward bias_grad mb2 [64 64] dy:r=75+0 db:rw=1+198400 after 82,63
       110 send_prev  L2 gradient backward send mb2 to stage 1 [4096] in:r=75+0 after 109
       111 compute    L2 fc2 backward bias_grad mb3 [64 64] dy:r=89+0 db:rw=1+198400 after 93,92
       127 send_prev  L2 gradient backward send mb3 to stage 1 [4096] in:r=89+0 after 126
    role 3: 1 ranks, 155 ops, 133 buffers, 2 buckets, 15 parameters

Interleaved, the last stage sends to the first; zero_bubble keeps the gradients of weights for later.

    $ stepsim predict $ROOT/configs/pp-tiny.yaml --set parallel.pipeline=2 --set cluster.gpus_per_node=2 --set parallel.schedule=interleaved --set parallel.virtual_stages=2 --dump-program | sed -n '/^role 1/,$p' | grep send
        24 send_next  L2 activations forward send mb0 to stage 0 [4096] in:r=35+0 after 23
        35 send_next  L2 activations forward send mb1 to stage 0 [4096] in:r=50+0 after 34
        84 send_prev  L3 gradient backward send mb0 to stage 0 [4096] in:r=85+0 after 83
       118 send_prev  L3 gradient backward send mb1 to stage 0 [4096] in:r=112+0 after 117
       129 send_next  L2 activations forward send mb2 to stage 0 [4096] in:r=133+0 after 128
       147 send_prev  L1 gradient backward send mb0 to stage 0 [4096] in:r=120+0 after 146
       158 send_next  L2 activations forward send mb3 to stage 0 [4096] in:r=155+0 after 157
       176 send_prev  L1 gradient backward send mb1 to stage 0 [4096] in:r=142+0 after 175
       210 send_prev  L3 gradient backward send mb2 to stage 0 [4096] in:r=183+0 after 209
       244 send_prev  L3 gradient backward send mb3 to stage 0 [4096] in:r=210+0 after 243
       262 send_prev  L1 gradient backward send mb2 to stage 0 [4096] in:r=208+0 after 261
       279 send_prev  L1 gradient backward send mb3 to stage 0 [4096] in:r=218+0 after 278

    $ stepsim predict $ROOT/configs/pp-tiny.yaml --set parallel.schedule=zero_bubble --dump-program | sed -n '/^role 3/,$p' | grep 'qkv backward gemm' | cut -c 1-70
        44 compute    L3 qkv backward gemm mb0 [64 64 192] A:r=52+0 B:r=17
        75 compute    L3 qkv backward gemm mb1 [64 64 192] A:r=81+0 B:r=17
       106 compute    L3 qkv backward gemm mb2 [64 64 192] A:r=110+0 B:r=1
       136 compute    L3 qkv backward gemm mb3 [64 64 192] A:r=138+0 B:r=1
       144 compute    L3 qkv backward gemm mb0 [192 64 64] A:r=52+0 B:r=12
       149 compute    L3 qkv backward gemm mb1 [192 64 64] A:r=81+0 B:r=56
       154 compute    L3 qkv backward gemm mb2 [192 64 64] A:r=110+0 B:r=8
       159 compute    L3 qkv backward gemm mb3 [192 64 64] A:r=138+0 B:r=1

zbv: two chunks a stage, the second ones come back up. On its way to the first stage, each lane carries activations of one chunk and gradients of the other; nothing is sent where the V turns, and one stage has both ends.

    $ stepsim predict $ROOT/configs/pp-tiny.yaml --set parallel.pipeline=2 --set cluster.gpus_per_node=2 --set parallel.schedule=zbv --set train.global_batch=4 --dump-program | grep -E '^role|sen[d]_|recv_|embedding|head forward'
    role 0: 1 ranks, 169 ops, 140 buffers, 1 buckets, 28 parameters
         3 compute    embedding forward embed mb0 [64 64 128] tokens:r=6+0 w:r=8+0 y:w=7+0 after 1
        27 send_next  L1 activations forward send mb0 to stage 1 [4096] in:r=33+0 after 26
        28 recv_next  L3 activations forward recv mb0 from stage 1 [4096] out:w=35+0 after 26
        30 compute    embedding forward embed mb1 [64 64 128] tokens:r=36+0 w:r=8+0 y:w=37+0 after 29
        41 send_next  L1 activations forward send mb1 to stage 1 [4096] in:r=50+0 after 40
        66 compute    head forward gemm mb0 [64 128 64] A:r=76+0 B:r=8+0 C:w=80+0
        85 send_next  L3 gradient backward send mb0 to stage 1 [4096] in:r=91+0 after 84
        86 recv_next  L3 activations forward recv mb1 from stage 1 [4096] out:w=92+0 after 84
       101 compute    head forward gemm mb1 [64 128 64] A:r=106+0 B:r=8+0 C:w=108+0
       120 send_next  L3 gradient backward send mb1 to stage 1 [4096] in:r=119+0 after 119
       121 recv_next  L1 gradient backward recv mb0 from stage 1 [4096] out:w=120+0 after 119
       140 compute    embedding grad backward fill mb0 [2048] x:w=1+433152
       142 compute    embedding backward embed_grad mb0 [64 64 128] tokens:r=6+0 dy:r=129+0 dw:rw=1+396800
       143 recv_next  L1 gradient backward recv mb1 from stage 1 [4096] out:w=130+0 after 142
       163 compute    embedding backward embed_grad mb1 [64 64 128] tokens:r=36+0 dy:r=139+0 dw:rw=1+396800
    role 1: 1 ranks, 141 ops, 120 buffers, 1 buckets, 24 parameters
         0 recv_prev  L1 activations forward recv mb0 from stage 0 [4096] out:w=4+0
        22 recv_prev  L1 activations forward recv mb1 from stage 0 [4096] out:w=30+0 after 21
        44 send_prev  L3 activations forward send mb0 to stage 0 [4096] in:r=54+0 after 43
        54 recv_prev  L3 gradient backward recv mb0 from stage 0 [4096] out:w=69+0 after 53
        64 send_prev  L3 activations forward send mb1 to stage 0 [4096] in:r=82+0 after 63
        97 send_prev  L1 gradient backward send mb0 to stage 0 [4096] in:r=100+0 after 96
        98 recv_prev  L3 gradient backward recv mb1 from stage 0 [4096] out:w=101+0 after 96
       135 send_prev  L1 gradient backward send mb1 to stage 0 [4096] in:r=119+0 after 134
    $ stepsim predict $ROOT/configs/pp-llama3-70b-64xh100.yaml --set parallel.schedule=zbv | sed -n '/^step time/p; /^  bubble/p; /^stage/,/^3/p'
    step time                      15.2 s
      bubble                       906 ms        6.0 %
    stage  layers  compute  exposed comm.   bubble  optimizer  other, idle    memory
    --------------------------------------------------------------------------------
    0          20   14.5 s         669 ms  3.51 ms    12.2 ms      65.3 ms  49.9 GiB
    1          20   13.6 s         710 ms   864 ms    10.9 ms      31.9 ms  48.0 GiB
    2          20   13.6 s         706 ms   884 ms    10.9 ms      16.0 ms  59.3 GiB
    3          20   13.6 s         700 ms   906 ms    10.9 ms       138 us  70.6 GiB
    $ stepsim predict $ROOT/configs/pp-llama3-70b-64xh100.yaml --set parallel.schedule=dualpipev | sed -n '/^step time/p; /^  bubble/p; /^stage/,/^3/p'
    step time                      15.2 s
      bubble                      3.51 ms        0.0 %
    stage  layers  compute  exposed comm.   bubble  optimizer  other, idle    memory
    --------------------------------------------------------------------------------
    0          20   14.5 s         669 ms  3.51 ms    12.2 ms       268 us  52.5 GiB
    1          20   13.6 s         766 ms   776 ms    10.9 ms       637 us  49.7 GiB
    2          20   13.6 s         723 ms   807 ms    10.9 ms      11.0 ms  49.7 GiB
    3          20   13.6 s         701 ms   814 ms    10.9 ms      25.1 ms  49.7 GiB
    $ stepsim predict $ROOT/configs/pp-llama3-70b-64xh100.yaml --set parallel.schedule=zbv --set parallel.strategy=fsdp | sed -n '/^step time/p; /^  bubble/p; /^stage/,/^3/p'
    step time                      16.3 s
      bubble                       918 ms        5.6 %
    stage  layers  compute  exposed comm.   bubble  optimizer  other, idle    memory
    --------------------------------------------------------------------------------
    0          20   15.4 s         873 ms  7.40 ms    12.2 ms      37.5 ms  48.7 GiB
    1          20   14.5 s         891 ms   862 ms    10.9 ms      27.3 ms  46.5 GiB
    2          20   14.5 s         876 ms   890 ms    10.9 ms      13.7 ms  57.8 GiB
    3          20   14.5 s         863 ms   918 ms    10.9 ms       138 us  68.8 GiB

Tied tables are summed over both ends; the stages stand in the JSON.

    $ stepsim predict $ROOT/configs/pp-tiny.yaml --dump-program | grep -c 'tied table grads backward all_reduce'
    2
    $ stepsim predict $ROOT/configs/pp-tiny.yaml --json p.json > /dev/null; python3 -c 'import json; print([(s["stage"], s["layers"]) for s in json.load(open("p.json"))["prediction"]["stages"]])'
    [(0, 1), (1, 1), (2, 1), (3, 1)]

A cluster that is not here, in well under a second:

    $ stepsim predict $ROOT/configs/pp-llama3-70b-64xh100.yaml | sed -n 3,5p
    llama3-70b (70.6 B parameters), zero1 on 64 ranks (tp 8, dp 2, pp 4), bf16
    a step: 128 sequences of 8192 tokens, 64 micro-batches of 1 a replica
    on: NVIDIA DGX H100, 64 x NVIDIA H100 SXM5 80GB (catalogue configs/systems/dgx-h100.yaml)
    $ stepsim predict $ROOT/configs/pp-llama3-70b-64xh100.yaml --print-ranks
    0

fsdp inside stages: a block is gathered for each pass, as early as what came before has ended; gradients go with each micro-batch.

    $ stepsim predict $ROOT/configs/fsdp-tiny.yaml --set cluster.system=dgx-h100 --set cluster.gpus_per_node=4 --set parallel.pipeline=2 --set train.global_batch=8 --dump-program | grep -E '^role|^stage|^bucket|weights|grads|activations'
    role 0: 2 ranks, 66 ops, 62 buffers, 2 buckets, 7 parameters
    bucket 0: 246016 elements, padded 246016, 2 shards
    bucket 1: 65536 elements, padded 65536, 2 shards
         1 comm       weights forward all_gather bucket 1 mb0 [65536] in:r=5+0 out:w=12+0
         2 comm       weights forward all_gather bucket 0 mb0 [246016] in:r=0+0 out:w=13+0
        14 send_next  L1 activations forward send mb0 to stage 1 [16384] in:r=27+0 after 13
        17 comm       weights forward all_gather bucket 0 mb1 [246016] in:r=0+0 out:w=30+0 after 13
        29 send_next  L1 activations forward send mb1 to stage 1 [16384] in:r=44+0 after 28
        31 comm       weights backward all_gather bucket 0 mb0 [246016] in:r=0+0 out:w=46+0
        47 comm       weights backward all_gather bucket 0 mb1 [246016] in:r=0+0 out:w=54+0
        61 comm       L0 grads backward reduce_scatter bucket 0 mb1 [246016] in:r=1+0 out:w=2+0 after 60
        63 comm       grads backward reduce_scatter bucket 1 mb1 [65536] in:r=6+0 out:w=7+0 after 62
    role 1: 2 ranks, 74 ops, 71 buffers, 2 buckets, 8 parameters
    bucket 0: 246016 elements, padded 246016, 2 shards
    bucket 1: 65664 elements, padded 65664, 2 shards
         1 recv_prev  L1 activations forward recv mb0 from stage 0 [16384] out:w=12+0 after 0
         3 comm       weights forward all_gather bucket 1 mb0 [65664] in:r=5+0 out:w=14+0 after 0
         4 comm       weights forward all_gather bucket 0 mb0 [246016] in:r=0+0 out:w=15+0
        18 recv_prev  L1 activations forward recv mb1 from stage 0 [16384] out:w=32+0 after 17
        19 comm       weights backward all_gather bucket 0 mb0 [246016] in:r=0+0 out:w=33+0
        38 comm       weights forward all_gather bucket 0 mb1 [246016] in:r=0+0 out:w=44+0 after 35
        52 comm       weights backward all_gather bucket 0 mb1 [246016] in:r=0+0 out:w=61+0
        69 comm       L1 grads backward reduce_scatter bucket 0 mb1 [246016] in:r=1+0 out:w=2+0 after 68
        70 comm       L1 grads backward reduce_scatter bucket 1 mb1 [65664] in:r=6+0 out:w=7+0

Kept after forward, once a step.

    $ stepsim predict $ROOT/configs/fsdp-tiny.yaml --set cluster.system=dgx-h100 --set cluster.gpus_per_node=4 --set parallel.pipeline=2 --set train.global_batch=8 --set parallel.reshard_after_forward=false --dump-program | grep -c 'weights .* all_gather'
    4
