A small T5: an encoder of 24 tokens before a decoder of 16. Scores get a bias by distance, one table for each stack; cross-attention has keys and values of the encoder's output, whose gradient is the sum over the decoder's layers.

    $ stepsim predict $ROOT/configs/t5-tiny.yaml --set cluster.system=dgx-h100 -q
    A step takes 1.15 ms (90 % interval: 0.561 ms to 2.35 ms); 0 % of communication hides behind
      compute, the rest takes 2.9 % of the step; it fits, 78.6 GiB are free.
    custom (231 k parameters), ddp on 8 ranks (dp 8), fp32
    a step: 8 sequences of 24 and 16 tokens, 1 micro-batch of 1 a replica
    on: NVIDIA DGX H100, 8 x NVIDIA H100 SXM5 80GB (catalogue configs/systems/dgx-h100.yaml)
                                 predicted  of the step  bound by
    ---------------------------------------------------------------------
    step time                      1.15 ms
    tokens/s                         111 k
    model FLOP/s a device     25.0 GFLOP/s
    MFU                              0.0 %
    ---------------------------------------------------------------------
    where the step goes
      compute                       439 us       38.3 %
      exposed communication        33.2 us        2.9 %
      optimizer                    3.63 us        0.3 %
      idle                          672 us       58.5 %
    ---------------------------------------------------------------------
    communication
      moving bytes                 33.2 us        2.9 %
      waiting for late ranks           0 s        0.0 %
      overlap                        0.0 %
    ---------------------------------------------------------------------
    ops, summed (count)
      gemm (69)                     300 us       26.1 %  latency
      attention (44)               66.7 us        5.8 %  latency
      norm (24)                    36.3 us        3.2 %  latency
      elementwise (13)             19.8 us        1.7 %  latency
      embedding (8)                12.2 us        1.1 %  latency
      loss (1)                     1.51 us        0.1 %  latency
      memory (2)                   3.02 us        0.3 %  latency
      optimizer (1)                3.63 us        0.3 %  latency
      all_reduce (1)               33.2 us        2.9 %  latency
      copy (1)                     3.56 ns        0.0 %  latency
    ---------------------------------------------------------------------
    memory of a rank
      weights                      901 KiB
      gradients                   1.76 MiB
      optimizer state             1.76 MiB
      activations                  455 KiB
      buffers                        512 B
      overhead                    1.00 GiB
      total                       1.00 GiB               fits in 79.6 GiB
    90 % interval of the prediction: 0.561 ms to 2.35 ms
      its width comes from software 15 %, traffic 3 %, host 70 %, network 1 % (root of the sum of
        squares)
    Bottleneck: kernel launches on the host leave the device idle: 59 % of the step
    warning: nothing was measured on this machine: the rates of hardware and software come from
      published runs
    $ stepsim predict $ROOT/configs/t5-tiny.yaml --set cluster.system=dgx-h100 --dump-program | grep -E 'embedding|relative|cross|encoder|parameters'
    role 0: 8 ranks, 164 ops, 129 buffers, 1 buckets, 38 parameters
         2 compute    embedding forward embed mb0 [24 64 256] tokens:r=6+0 w:r=0+854016 y:w=7+0 after 1
         3 compute    relative bias forward relative_bias mb0 [8 24 32] table:r=0+852992 bias:w=8+0
         7 compute    L0 relative bias forward attn_bias mb0 [1 8 8 24 8] scores:rw=13+0 bias:r=8+0
        19 compute    L1 relative bias forward attn_bias mb0 [1 8 8 24 8] scores:rw=26+0 bias:r=8+0
        28 compute    encoder norm forward norm mb0 [24 64] x:r=34+0 w:r=0+921344 y:w=35+0 stats:w=36+0
        29 compute    embedding forward embed mb0 [16 64 256] tokens:r=6+96 w:r=0+854016 y:w=37+0
        30 compute    relative bias forward relative_bias mb0 [8 16 32] table:r=0+524288 bias:w=38+0
        34 compute    L2 relative bias forward attn_bias mb0 [1 8 8 16 8] scores:rw=43+0 bias:r=38+0
        39 compute    L2 cross q forward gemm mb0 [16 64 64] A:r=45+0 B:r=0+442368 C:w=48+0
        40 compute    L2 cross kv forward gemm mb0 [24 128 64] A:r=35+0 B:r=0+409600 C:w=49+0
        41 compute    L2 cross attention forward attn_scores mb0 [1 8 8 16 8] qkv:r=48+0 scores:w=51+0 kv:r=49+0
        42 compute    L2 cross attention forward attn_softmax mb0 [1 8 8 16 8] scores:rw=51+0
        43 compute    L2 cross attention forward attn_values mb0 [1 8 8 16 8] probs:r=51+0 qkv:r=49+0 out:w=50+0
        44 compute    L2 cross proj forward gemm mb0 [16 64 64] A:r=50+0 B:r=0+393216 C:w=52+0
        53 compute    L3 relative bias forward attn_bias mb0 [1 8 8 16 8] scores:rw=64+0 bias:r=38+0
        58 compute    L3 cross q forward gemm mb0 [16 64 64] A:r=66+0 B:r=0+212992 C:w=69+0
        59 compute    L3 cross kv forward gemm mb0 [24 128 64] A:r=35+0 B:r=0+180224 C:w=70+0
        60 compute    L3 cross attention forward attn_scores mb0 [1 8 8 16 8] qkv:r=69+0 scores:w=72+0 kv:r=70+0
        61 compute    L3 cross attention forward attn_softmax mb0 [1 8 8 16 8] scores:rw=72+0
        62 compute    L3 cross attention forward attn_values mb0 [1 8 8 16 8] probs:r=72+0 qkv:r=70+0 out:w=71+0
        63 compute    L3 cross proj forward gemm mb0 [16 64 64] A:r=71+0 B:r=0+163840 C:w=73+0
        81 compute    L3 cross proj backward gemm mb0 [16 64 64] A:r=85+0 B:r=0+163840 C:w=89+0
        82 compute    L3 cross proj backward gemm mb0 [64 64 16] A:r=85+0 B:r=71+0 C:w=1+163840
        83 compute    L3 cross attention backward attn_values_grad mb0 [1 8 8 16 8] probs:r=72+0 qkv:r=70+0 dout:r=89+0 dprobs:w=92+0 dqkv:w=91+0
        84 compute    L3 cross attention backward attn_softmax_grad mb0 [1 8 8 16 8] probs:r=72+0 dprobs:rw=92+0
        85 compute    L3 cross attention backward attn_scores_grad mb0 [1 8 8 16 8] dscores:r=92+0 qkv:r=69+0 dqkv:w=90+0 kv:r=70+0 dkv:rw=91+0
        86 compute    L3 cross kv backward gemm mb0 [24 64 128] A:r=91+0 B:r=0+180224 C:w=93+0
        87 compute    L3 cross kv backward gemm mb0 [128 64 24] A:r=91+0 B:r=35+0 C:w=1+180224
        88 compute    L3 cross q backward gemm mb0 [16 64 64] A:r=90+0 B:r=0+212992 C:w=94+0
        89 compute    L3 cross q backward gemm mb0 [64 64 16] A:r=90+0 B:r=66+0 C:w=1+212992
        90 compute    L3 cross norm backward norm_grad mb0 [16 64] dy:r=94+0 x:r=68+0 w:r=0+920064 stats:r=67+0 dx:rw=85+0 dw:w=1+920064
        95 compute    L3 relative bias backward attn_bias_grad mb0 [1 8 8 16 8] dscores:r=97+0 dbias:w=98+0
       106 compute    L2 cross proj backward gemm mb0 [16 64 64] A:r=85+0 B:r=0+393216 C:w=103+0
       107 compute    L2 cross proj backward gemm mb0 [64 64 16] A:r=85+0 B:r=50+0 C:w=1+393216
       108 compute    L2 cross attention backward attn_values_grad mb0 [1 8 8 16 8] probs:r=51+0 qkv:r=49+0 dout:r=103+0 dprobs:w=106+0 dqkv:w=105+0
       109 compute    L2 cross attention backward attn_softmax_grad mb0 [1 8 8 16 8] probs:r=51+0 dprobs:rw=106+0
       110 compute    L2 cross attention backward attn_scores_grad mb0 [1 8 8 16 8] dscores:r=106+0 qkv:r=48+0 dqkv:w=104+0 kv:r=49+0 dkv:rw=105+0
       111 compute    L2 cross kv backward gemm mb0 [24 64 128] A:r=105+0 B:r=0+409600 C:w=107+0
       112 compute    L2 cross kv backward gemm mb0 [128 64 24] A:r=105+0 B:r=35+0 C:w=1+409600
       113 compute    L2 encoder output grad backward add mb0 [24 64] x:r=93+0 y:r=107+0 sum:w=93+0
       114 compute    L2 cross q backward gemm mb0 [16 64 64] A:r=104+0 B:r=0+442368 C:w=108+0
       115 compute    L2 cross q backward gemm mb0 [64 64 16] A:r=104+0 B:r=45+0 C:w=1+442368
       116 compute    L2 cross norm backward norm_grad mb0 [16 64] dy:r=108+0 x:r=47+0 w:r=0+920832 stats:r=46+0 dx:rw=85+0 dw:w=1+920832
       121 compute    L2 relative bias backward attn_bias_grad mb0 [1 8 8 16 8] dscores:r=111+0 dbias:rw=98+0
       126 compute    relative bias backward relative_bias_grad mb0 [8 16 32] dbias:r=98+0 dtable:w=1+524288
       127 compute    embedding grad backward fill mb0 [16384] x:w=1+854016
       128 compute    embedding backward embed_grad mb0 [16 64 256] tokens:r=6+96 dy:r=85+0 dw:rw=1+854016
       129 compute    encoder norm backward norm_grad mb0 [24 64] dy:r=93+0 x:r=34+0 w:r=0+921344 stats:r=36+0 dx:w=113+0 dw:w=1+921344
       140 compute    L1 relative bias backward attn_bias_grad mb0 [1 8 8 24 8] dscores:r=119+0 dbias:w=120+0
       155 compute    L0 relative bias backward attn_bias_grad mb0 [1 8 8 24 8] dscores:r=127+0 dbias:rw=120+0
       160 compute    relative bias backward relative_bias_grad mb0 [8 24 32] dbias:r=120+0 dtable:w=1+852992
       161 compute    embedding backward embed_grad mb0 [24 64 256] tokens:r=6+0 dy:r=113+0 dw:rw=1+854016

Keys and values are the same rows for both ranks of a tensor group, and each rank has its heads of them.

    $ stepsim predict $ROOT/configs/t5-tiny.yaml --set cluster.system=dgx-h100 --set parallel.tensor=2 --set parallel.sequence_parallel=true --set train.fused=false --dump-program | grep -E 'mb0' | grep -E 'encoder|cross kv|cross norm'
        41 compute    encoder norm forward norm mb0 [12 64] x:r=45+0 w:r=0+461568 y:w=46+0 stats:w=47+0
        58 model_comm L2 encoder output forward all_gather mb0 [1536] in:r=46+0 out:w=64+0
        59 compute    L2 cross kv forward gemm mb0 [24 64 64] A:r=64+0 B:r=0+204800 C:w=65+0 after 58
        87 model_comm L3 encoder output forward all_gather mb0 [1536] in:r=46+0 out:w=93+0
        88 compute    L3 cross kv forward gemm mb0 [24 64 64] A:r=93+0 B:r=0+90112 C:w=94+0 after 87
       130 model_comm L3 encoder output backward all_gather mb0 [1536] in:r=46+0 out:w=129+0
       131 compute    L3 cross kv backward gemm mb0 [24 64 64] A:r=127+0 B:r=0+90112 C:w=130+0
       132 model_comm L3 encoder output grad backward reduce_scatter mb0 [1536] in:r=130+0 out:w=131+0 after 131
       133 compute    L3 cross kv backward gemm mb0 [64 64 24] A:r=127+0 B:r=129+0 C:w=1+90112 after 130
       138 compute    L3 cross norm backward norm_grad mb0 [8 64] dy:r=134+0 x:r=88+0 w:r=0+460288 stats:r=90+0 dx:rw=117+0 dw:w=1+460288 after 136
       166 model_comm L2 encoder output backward all_gather mb0 [1536] in:r=46+0 out:w=154+0
       167 compute    L2 cross kv backward gemm mb0 [24 64 64] A:r=152+0 B:r=0+204800 C:w=155+0
       168 model_comm L2 encoder output grad backward reduce_scatter mb0 [1536] in:r=155+0 out:w=156+0 after 167
       169 compute    L2 cross kv backward gemm mb0 [64 64 24] A:r=152+0 B:r=154+0 C:w=1+204800 after 166
       170 compute    L2 encoder output grad backward add mb0 [12 64] x:r=131+0 y:r=156+0 sum:w=131+0 after 168
       175 compute    L2 cross norm backward norm_grad mb0 [8 64] dy:r=159+0 x:r=59+0 w:r=0+461056 stats:r=61+0 dx:rw=117+0 dw:w=1+461056 after 173
       192 compute    encoder norm backward norm_grad mb0 [12 64] dy:r=131+0 x:r=45+0 w:r=0+461568 stats:r=47+0 dx:w=168+0 dw:w=1+461568

Flash attention, without biases by distance.

    $ stepsim predict $ROOT/configs/t5-tiny.yaml --set cluster.system=dgx-h100 --set model.position=learned --dump-program | grep -E 'attention'
         6 compute    L0 attention forward attention mb0 [1 8 8 24 8 0] qkv:r=10+0 out:w=12+0 lse:w=11+0
        15 compute    L1 attention forward attention mb0 [1 8 8 24 8 0] qkv:r=23+0 out:w=25+0 lse:w=24+0
        27 compute    L2 attention forward attention mb0 [1 8 8 16 8 0] qkv:r=39+0 out:w=41+0 lse:w=40+0
        32 compute    L2 cross attention forward attention_part mb0 [1 8 8 16 8 24 -1] qkv:r=46+0 kv:r=47+0 out:w=48+0 lse:w=49+0
        41 compute    L3 attention forward attention mb0 [1 8 8 16 8 0] qkv:r=60+0 out:w=62+0 lse:w=61+0
        46 compute    L3 cross attention forward attention_part mb0 [1 8 8 16 8 24 -1] qkv:r=67+0 kv:r=68+0 out:w=69+0 lse:w=70+0
        67 compute    L3 cross attention backward attention_part_grad mb0 [1 8 8 16 8 24 -1] qkv:r=67+0 kv:r=68+0 out:r=69+0 lse:r=70+0 dout:r=87+0 delta:w=90+0 dqkv:w=88+0 dkv:w=89+0
        75 compute    L3 attention backward attention_grad mb0 [1 8 8 16 8 0] qkv:r=60+0 out:r=62+0 lse:r=61+0 dout:r=93+0 delta:w=94+0 dqkv:w=95+0
        87 compute    L2 cross attention backward attention_part_grad mb0 [1 8 8 16 8 24 -1] qkv:r=46+0 kv:r=47+0 out:r=48+0 lse:r=49+0 dout:r=100+0 delta:w=103+0 dqkv:w=101+0 dkv:w=102+0
        96 compute    L2 attention backward attention_grad mb0 [1 8 8 16 8 0] qkv:r=39+0 out:r=41+0 lse:r=40+0 dout:r=106+0 delta:w=107+0 dqkv:w=108+0
       113 compute    L1 attention backward attention_grad mb0 [1 8 8 24 8 0] qkv:r=23+0 out:r=25+0 lse:r=24+0 dout:r=114+0 delta:w=115+0 dqkv:w=116+0
       125 compute    L0 attention backward attention_grad mb0 [1 8 8 24 8 0] qkv:r=10+0 out:r=12+0 lse:r=11+0 dout:r=121+0 delta:w=122+0 dqkv:w=123+0

What is not in its Hugging Face file follows from the type; a length of one's own goes to both stacks.

    $ echo '{"model_type": "t5", "d_model": 64, "num_layers": 1, "num_heads": 4, "d_kv": 16, "d_ff": 128, "vocab_size": 256}' > config.json; stepsim predict config.json -q | sed -n 3,4p; stepsim predict config.json --set model.encoder_seq_len=1024 --set model.seq_len=256 -q | sed -n 4p
    t5 (99.0 k parameters), fsdp on 8 ranks (dp 8), bf16
    a step: 36792 sequences of 512 and 114 tokens, 4599 micro-batches of 1 a replica
    a step: 36792 sequences of 1024 and 256 tokens, 4599 micro-batches of 1 a replica
    $ echo '{"model_type": "t5", "feed_forward_proj": "gated-tanh"}' > config.json; stepsim predict config.json 2>&1 | sed 's,/[^ ]*/,,'
    stepsim: --model config.json: model.hf_config: config.json: feed_forward_proj: expected relu, gated-gelu or gated-silu
    $ stepsim export $ROOT/configs/t5-tiny.yaml --to megatron
    stepsim: Megatron-LM: model.encoder_layers: what it starts builds decoders alone
    [2]

Whisper reads frames of sound: two convolutions along the sequence make 12 rows of 24 frames; the encoder's table of positions is not trained.

    $ stepsim predict $ROOT/configs/t5-tiny.yaml --set cluster.system=dgx-h100 --set model.input=frames --set model.channels=5 --set model.encoder_seq_len=12 --set model.position=learned --set model.mlp=gelu --dump-program | grep -E 'frames|position'
         2 compute    frames1 forward conv mb0 [1 24 5 64 3 1] x:r=7+0 w:r=0+842752 y:w=8+0 after 1
         3 compute    frames1 forward act mb0 [24 64] x:r=8+0 y:w=9+0
         4 compute    frames2 forward conv mb0 [1 24 64 64 3 2] x:r=9+0 w:r=0+793600 y:w=10+0
         5 compute    frames2 forward act mb0 [12 64] x:r=10+0 y:w=11+0
         6 compute    position forward position mb0 [12 64 12] w:r=4+0 x:rw=11+0
        27 compute    position forward position mb0 [16 64 16] w:r=0+788224 x:rw=40+0
       104 compute    position backward position_grad mb0 [16 64 16] dx:r=87+0 dw:rw=1+788224
       132 compute    frames2 backward act_grad mb0 [12 64] x:r=10+0 dy:r=114+0 dx:w=129+0
       133 compute    frames2 backward conv_data mb0 [1 24 64 64 3 2] dy:r=129+0 w:r=0+793600 dx:w=130+0
       134 compute    frames2 backward conv_weight mb0 [1 24 64 64 3 2] dy:r=129+0 x:r=9+0 dw:w=1+793600
       135 compute    frames1 backward act_grad mb0 [24 64] x:r=8+0 dy:r=130+0 dx:w=131+0
       136 compute    frames1 backward conv_weight mb0 [1 24 5 64 3 1] dy:r=131+0 x:r=7+0 dw:w=1+842752
    $ stepsim predict --model whisper-large-v3 --system dgx-h100 -q | sed -n 3,4p
    whisper-large-v3 (1.54 B parameters), fsdp on 8 ranks (dp 8), bf16
    a step: 9360 sequences of 1500 and 448 tokens, 1170 micro-batches of 1 a replica
