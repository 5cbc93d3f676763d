Four ranks share each sequence: keys and values travel around the ring behind attention, backward their gradients with them; the gradients of weights are summed over all four.

    $ stepsim predict $ROOT/configs/cp-tiny.yaml --dump-program | grep -E 'attention|kv|grads'
         9 compute    L0 qkv forward gemm mb0 [32 96 64] A:r=9+0 B:r=14+0 bias:r=15+0 C:w=13+0
        10 compute    L0 attention forward rope mb0 [2 8 2 16 8] qkv:rw=13+0
        11 compute    L0 kv forward kv_pack mb0 [32 32 96] qkv:r=13+0 kv:w=18+0
        12 model_comm L0 kv forward sendrecv mb0 [1024] in:r=18+0 out:w=19+0 after 11
        13 compute    L0 attention forward attention mb0 [2 8 2 16 8 0] qkv:r=13+0 out:w=16+0 lse:w=17+0
        14 model_comm L0 kv forward sendrecv mb0 [1024] in:r=19+0 out:w=20+0
        15 compute    L0 attention forward attention_part mb0 [2 8 2 16 8 16 1] qkv:r=13+0 kv:r=19+0 out:rw=16+0 lse:rw=17+0 after 12
        16 model_comm L0 kv forward sendrecv mb0 [1024] in:r=20+0 out:w=21+0
        17 compute    L0 attention forward attention_part mb0 [2 8 2 16 8 16 2] qkv:r=13+0 kv:r=20+0 out:rw=16+0 lse:rw=17+0 after 14
        18 compute    L0 attention forward attention_part mb0 [2 8 2 16 8 16 3] qkv:r=13+0 kv:r=21+0 out:rw=16+0 lse:rw=17+0 after 16
        52 compute    L0 kv backward kv_pack mb0 [32 32 96] qkv:r=13+0 kv:w=51+0
        53 model_comm L0 kv backward sendrecv mb0 [1024] in:r=51+0 out:w=52+0 after 52
        54 compute    L0 attention backward attention_grad mb0 [2 8 2 16 8 0] qkv:r=13+0 out:r=16+0 lse:r=17+0 dout:r=48+0 delta:w=50+0 dqkv:w=49+0
        55 model_comm L0 kv backward sendrecv mb0 [1024] in:r=52+0 out:w=54+0
        56 compute    L0 attention backward attention_part_grad mb0 [2 8 2 16 8 16 1] qkv:r=13+0 kv:r=52+0 out:r=16+0 lse:r=17+0 dout:r=48+0 delta:rw=50+0 dqkv:rw=49+0 dkv:w=53+0 after 53
        57 model_comm L0 kv grad backward sendrecv mb0 [1024] in:r=53+0 out:w=55+0 after 56
        58 model_comm L0 kv backward sendrecv mb0 [1024] in:r=54+0 out:w=57+0
        59 compute    L0 attention backward attention_part_grad mb0 [2 8 2 16 8 16 2] qkv:r=13+0 kv:r=54+0 out:r=16+0 lse:r=17+0 dout:r=48+0 delta:rw=50+0 dqkv:rw=49+0 dkv:w=56+0 after 55
        60 compute    L0 kv grad backward add mb0 [32 32] x:r=56+0 y:r=55+0 sum:w=56+0 after 57
        61 model_comm L0 kv grad backward sendrecv mb0 [1024] in:r=56+0 out:w=58+0 after 60
        62 compute    L0 attention backward attention_part_grad mb0 [2 8 2 16 8 16 3] qkv:r=13+0 kv:r=57+0 out:r=16+0 lse:r=17+0 dout:r=48+0 delta:rw=50+0 dqkv:rw=49+0 dkv:w=59+0 after 58
        63 compute    L0 kv grad backward add mb0 [32 32] x:r=59+0 y:r=58+0 sum:w=59+0 after 61
        64 model_comm L0 kv grad backward sendrecv mb0 [1024] in:r=59+0 out:w=60+0 after 63
        65 compute    L0 kv grad backward kv_unpack mb0 [32 32 96] kv:r=60+0 qkv:rw=49+0 after 64
        66 compute    L0 attention backward rope mb0 [2 8 2 16 8] qkv:rw=49+0
        67 compute    L0 qkv backward bias_grad mb0 [32 96] dy:r=49+0 db:w=1+148480
        68 compute    L0 qkv backward gemm mb0 [32 64 96] A:r=49+0 B:r=14+0 C:w=61+0
        69 compute    L0 qkv backward gemm mb0 [96 64 32] A:r=49+0 B:r=9+0 C:w=1+148864
        72 comm       grads backward all_reduce bucket 0 mb0 [52064] in:r=1+0 out:w=1+0 after 71

Gathered, they come at once and their gradients go back at once.

    $ stepsim predict $ROOT/configs/cp-tiny.yaml --set parallel.context_kind=all_gather --dump-program | grep -E 'attention|kv|grads'
         9 compute    L0 qkv forward gemm mb0 [32 96 64] A:r=9+0 B:r=14+0 bias:r=15+0 C:w=13+0
        10 compute    L0 attention forward rope mb0 [2 8 2 16 8] qkv:rw=13+0
        11 compute    L0 kv forward kv_pack mb0 [32 32 96] qkv:r=13+0 kv:w=18+0
        12 model_comm L0 kv forward all_gather mb0 [4096] in:r=18+0 out:w=19+0 after 11
        13 compute    L0 attention forward attention_part mb0 [2 8 2 16 8 64 0] qkv:r=13+0 kv:r=19+0 out:w=16+0 lse:w=17+0 after 12
        47 compute    L0 kv backward kv_pack mb0 [32 32 96] qkv:r=13+0 kv:w=49+0
        48 model_comm L0 kv backward all_gather mb0 [4096] in:r=49+0 out:w=50+0 after 47
        49 compute    L0 attention backward attention_part_grad mb0 [2 8 2 16 8 64 0] qkv:r=13+0 kv:r=50+0 out:r=16+0 lse:r=17+0 dout:r=46+0 delta:w=48+0 dqkv:w=47+0 dkv:w=51+0 after 48
        50 model_comm L0 kv grad backward reduce_scatter mb0 [4096] in:r=51+0 out:w=52+0 after 49
        51 compute    L0 kv grad backward kv_unpack mb0 [32 32 96] kv:r=52+0 qkv:rw=47+0 after 50
        52 compute    L0 attention backward rope mb0 [2 8 2 16 8] qkv:rw=47+0
        53 compute    L0 qkv backward bias_grad mb0 [32 96] dy:r=47+0 db:w=1+148480
        54 compute    L0 qkv backward gemm mb0 [32 64 96] A:r=47+0 B:r=14+0 C:w=53+0
        55 compute    L0 qkv backward gemm mb0 [96 64 32] A:r=47+0 B:r=9+0 C:w=1+148864
        58 comm       grads backward all_reduce bucket 0 mb0 [52064] in:r=1+0 out:w=1+0 after 57

The plan's line, and its communication.

    $ stepsim predict $ROOT/configs/cp-tiny.yaml | grep -E 'ranks|sequences|sendrecv|all_reduce'
    custom (0.0521 M parameters), ddp on 4 ranks (cp 4), bf16
    a step: 2 sequences of 64 tokens, 1 micro-batch of 2 a replica
      waiting for late ranks           0 s        0.0 %
      all_reduce (1)               17.3 us        3.3 %  latency
      sendrecv (9)                 67.0 us       12.9 %  latency

hsdp: gathers and scatters in groups of neighbours, then a sum over the replicas of each part. A group is a node's GPUs unless the config says otherwise.

    $ stepsim predict $ROOT/configs/cp-tiny.yaml --set parallel.context=1 --set parallel.strategy=hsdp --set train.global_batch=16 --set cluster.nodes=2 --dump-program | grep -E '^bucket|weights|grads'
    bucket 0: 43744 elements, padded 43744, 4 shards
    bucket 1: 8320 elements, padded 8320, 4 shards
         3 comm       weights forward all_gather bucket 1 mb0 [8320] in:r=11+0 out:w=12+0 after 2
         5 comm       weights forward all_gather bucket 0 mb0 [43744] in:r=13+0 out:w=14+0 after 4
         8 comm       weights forward all_gather bucket 0 mb0 [43744] in:r=16+0 out:w=17+0 after 7
        43 comm       L0 grads backward reduce_scatter bucket 0 mb0 [43744] in:r=45+0 out:w=1+0 after 42
        44 comm       L0 grads backward all_reduce bucket 0 mb0 [10936] in:r=1+0 out:w=1+0
        47 comm       grads backward reduce_scatter bucket 1 mb0 [8320] in:r=46+0 out:w=5+0 after 46
        48 comm       grads backward all_reduce bucket 1 mb0 [2080] in:r=5+0 out:w=5+0
    $ stepsim predict $ROOT/configs/llama3-8b-fsdp-64xh100.yaml --set parallel.strategy=hsdp | head -1
    llama3-8b (8.03 B parameters), hsdp on 64 ranks (dp 64, shard 8, replica 8), bf16
    $ stepsim predict $ROOT/configs/llama3-8b-fsdp-64xh100.yaml --set parallel.strategy=hsdp --json p.json > /dev/null; python3 -c 'import json; c = json.load(open("p.json"))["config"]; print(c["parallel"]["shard"])'
    8
