Four ranks share each sequence: keys and values travel around the ring behind attention, backward their gradients with them; the gradients of weights are summed over all four.

    $ stepsim predict $ROOT/configs/cp-tiny.yaml --set parallel.context=4 --set model.layers=1 --set train.global_batch=2 --set train.dtype=bf16 --set cluster.system=dgx-h100 --set cluster.gpus_per_node=4 --dump-program | grep -E 'attention|kv|grads'
         7 compute    L0 qkv forward gemm mb0 [32 96 64] A:r=9+0 B:r=13+0 C:w=12+0
         8 compute    L0 attention forward rope mb0 [2 8 2 16 8] qkv:rw=12+0
         9 compute    L0 kv forward kv_pack mb0 [32 32 96] qkv:r=12+0 kv:w=16+0
        10 model_comm L0 kv forward sendrecv mb0 [1024] in:r=16+0 out:w=17+0 after 9
        11 compute    L0 attention forward attention mb0 [2 8 2 16 8 0] qkv:r=12+0 out:w=15+0 lse:w=14+0
        12 model_comm L0 kv forward sendrecv mb0 [1024] in:r=17+0 out:w=18+0
        13 compute    L0 attention forward attention_part mb0 [2 8 2 16 8 16 1] qkv:r=12+0 kv:r=17+0 out:rw=15+0 lse:rw=14+0 after 10
        14 model_comm L0 kv forward sendrecv mb0 [1024] in:r=18+0 out:w=19+0
        15 compute    L0 attention forward attention_part mb0 [2 8 2 16 8 16 2] qkv:r=12+0 kv:r=18+0 out:rw=15+0 lse:rw=14+0 after 12
        16 compute    L0 attention forward attention_part mb0 [2 8 2 16 8 16 3] qkv:r=12+0 kv:r=19+0 out:rw=15+0 lse:rw=14+0 after 14
        43 compute    L0 kv backward kv_pack mb0 [32 32 96] qkv:r=12+0 kv:w=45+0
        44 model_comm L0 kv backward sendrecv mb0 [1024] in:r=45+0 out:w=46+0 after 43
        45 compute    L0 attention backward attention_grad mb0 [2 8 2 16 8 0] qkv:r=12+0 out:r=15+0 lse:r=14+0 dout:r=42+0 delta:w=43+0 dqkv:w=44+0
        46 model_comm L0 kv backward sendrecv mb0 [1024] in:r=46+0 out:w=48+0
        47 compute    L0 attention backward attention_part_grad mb0 [2 8 2 16 8 16 1] qkv:r=12+0 kv:r=46+0 out:r=15+0 lse:r=14+0 dout:r=42+0 delta:rw=43+0 dqkv:rw=44+0 dkv:w=47+0 after 44
        48 model_comm L0 kv grad backward sendrecv mb0 [1024] in:r=47+0 out:w=49+0 after 47
        49 model_comm L0 kv backward sendrecv mb0 [1024] in:r=48+0 out:w=51+0
        50 compute    L0 attention backward attention_part_grad mb0 [2 8 2 16 8 16 2] qkv:r=12+0 kv:r=48+0 out:r=15+0 lse:r=14+0 dout:r=42+0 delta:rw=43+0 dqkv:rw=44+0 dkv:w=50+0 after 46
        51 compute    L0 kv grad backward add mb0 [32 32] x:r=50+0 y:r=49+0 sum:w=50+0 after 48
        52 model_comm L0 kv grad backward sendrecv mb0 [1024] in:r=50+0 out:w=52+0 after 51
        53 compute    L0 attention backward attention_part_grad mb0 [2 8 2 16 8 16 3] qkv:r=12+0 kv:r=51+0 out:r=15+0 lse:r=14+0 dout:r=42+0 delta:rw=43+0 dqkv:rw=44+0 dkv:w=53+0 after 49
        54 compute    L0 kv grad backward add mb0 [32 32] x:r=53+0 y:r=52+0 sum:w=53+0 after 52
        55 model_comm L0 kv grad backward sendrecv mb0 [1024] in:r=53+0 out:w=54+0 after 54
        56 compute    L0 kv grad backward kv_unpack mb0 [32 32 96] kv:r=54+0 qkv:rw=44+0 after 55
        57 compute    L0 attention backward rope mb0 [2 8 2 16 8] qkv:rw=44+0
        58 compute    L0 qkv backward gemm mb0 [32 64 96] A:r=44+0 B:r=13+0 C:w=55+0
        59 compute    L0 qkv backward gemm mb0 [96 64 32] A:r=44+0 B:r=9+0 C:w=1+245760
        63 comm       grads backward all_reduce bucket 0 mb0 [75968] in:r=1+0 out:w=1+0 after 62

Gathered, they come at once and their gradients go back at once.

    $ stepsim predict $ROOT/configs/cp-tiny.yaml --set parallel.context=4 --set model.layers=1 --set train.global_batch=2 --set train.dtype=bf16 --set cluster.system=dgx-h100 --set cluster.gpus_per_node=4 --set parallel.context_kind=all_gather --dump-program | grep -E 'attention|kv|grads'
         7 compute    L0 qkv forward gemm mb0 [32 96 64] A:r=9+0 B:r=13+0 C:w=12+0
         8 compute    L0 attention forward rope mb0 [2 8 2 16 8] qkv:rw=12+0
         9 compute    L0 kv forward kv_pack mb0 [32 32 96] qkv:r=12+0 kv:w=16+0
        10 model_comm L0 kv forward all_gather mb0 [4096] in:r=16+0 out:w=17+0 after 9
        11 compute    L0 attention forward attention_part mb0 [2 8 2 16 8 64 0] qkv:r=12+0 kv:r=17+0 out:w=15+0 lse:w=14+0 after 10
        38 compute    L0 kv backward kv_pack mb0 [32 32 96] qkv:r=12+0 kv:w=43+0
        39 model_comm L0 kv backward all_gather mb0 [4096] in:r=43+0 out:w=44+0 after 38
        40 compute    L0 attention backward attention_part_grad mb0 [2 8 2 16 8 64 0] qkv:r=12+0 kv:r=44+0 out:r=15+0 lse:r=14+0 dout:r=40+0 delta:w=41+0 dqkv:w=42+0 dkv:w=45+0 after 39
        41 model_comm L0 kv grad backward reduce_scatter mb0 [4096] in:r=45+0 out:w=46+0 after 40
        42 compute    L0 kv grad backward kv_unpack mb0 [32 32 96] kv:r=46+0 qkv:rw=42+0 after 41
        43 compute    L0 attention backward rope mb0 [2 8 2 16 8] qkv:rw=42+0
        44 compute    L0 qkv backward gemm mb0 [32 64 96] A:r=42+0 B:r=13+0 C:w=47+0
        45 compute    L0 qkv backward gemm mb0 [96 64 32] A:r=42+0 B:r=9+0 C:w=1+245760
        49 comm       grads backward all_reduce bucket 0 mb0 [75968] in:r=1+0 out:w=1+0 after 48

The plan's line, and its communication.

    $ stepsim predict $ROOT/configs/cp-tiny.yaml --set parallel.context=4 --set model.layers=1 --set train.global_batch=2 --set train.dtype=bf16 --set cluster.system=dgx-h100 --set cluster.gpus_per_node=4 | grep -E 'ranks|sequences|sendrecv|all_reduce'
    custom (76.0 k parameters), ddp on 4 ranks (cp 4), bf16
    a step: 2 sequences of 64 tokens, 1 micro-batch of 2 a replica
      waiting for late ranks           0 s        0.0 %
      all_reduce (1)               18.8 us        4.1 %  latency
      sendrecv (9)                 67.0 us       14.7 %  latency

hsdp: gathers and scatters in groups of neighbours, then a sum over the replicas of each part. A group is a node's GPUs unless the config says otherwise.

    $ stepsim predict $ROOT/configs/cp-tiny.yaml --set model.layers=1 --set train.dtype=bf16 --set cluster.system=dgx-h100 --set cluster.gpus_per_node=4 --set parallel.context=1 --set parallel.strategy=hsdp --set train.global_batch=16 --set cluster.nodes=2 --dump-program | grep -E '^bucket|weights|grads'
    bucket 0: 59520 elements, padded 59520, 4 shards
    bucket 1: 16448 elements, padded 16448, 4 shards
         3 comm       weights forward all_gather bucket 1 mb0 [16448] in:r=11+0 out:w=12+0 after 2
         5 comm       weights forward all_gather bucket 0 mb0 [59520] in:r=13+0 out:w=14+0 after 4
         8 comm       weights forward all_gather bucket 0 mb0 [59520] in:r=16+0 out:w=17+0 after 7
        39 comm       L0 grads backward reduce_scatter bucket 0 mb0 [59520] in:r=45+0 out:w=1+0 after 38
        40 replica_comm L0 grads backward all_reduce bucket 0 mb0 [14880] in:r=1+0 out:w=1+0 after 39
        44 comm       grads backward reduce_scatter bucket 1 mb0 [16448] in:r=46+0 out:w=5+0 after 43
        45 replica_comm grads backward all_reduce bucket 1 mb0 [4112] in:r=5+0 out:w=5+0 after 44
    $ stepsim predict $ROOT/configs/llama3-8b-fsdp-64xh100.yaml --set parallel.strategy=hsdp | sed -n 3p
    llama3-8b (8.03 B parameters), hsdp on 64 ranks (dp 64, shard 8, replica 8), bf16
    $ stepsim predict $ROOT/configs/llama3-8b-fsdp-64xh100.yaml --set parallel.strategy=hsdp --json p.json > /dev/null; python3 -c 'import json; c = json.load(open("p.json"))["config"]; print(c["parallel"]["shard"])'
    8
