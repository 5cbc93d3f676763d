The cross product, the last key fastest; what cannot be predicted says why in its row.

    $ COLUMNS=999 stepsim sweep $ROOT/configs/llama3-8b-fsdp-64xh100.yaml --vary cluster.nodes=4,8 --vary train.micro_batch=2,3 | grep -v -e ----
    Most tokens/s with cluster.nodes = 8, train.micro_batch = 2: 438 k tokens/s, 2.40 s a step on 64 ranks.
    cluster.nodes  train.micro_batch  ranks  step time  tokens/s     MFU  exposed  overlap    memory  bottleneck
                4                  2     32     4.75 s     221 k  42.6 %  40.8 ms   89.9 %  17.4 GiB  compute: gemm 66 %
                4                  3                                                                  $ROOT/configs/llama3-8b-fsdp-64xh100.yaml:7:17: train.global_batch: 128 does not split into micro-batches of 3 on 32 replicas (nearest that do: 96, 192)
                8                  2     64     2.40 s     438 k  42.2 %  21.3 ms   90.1 %  15.0 GiB  compute: gemm 66 %
                8                  3                                                                  $ROOT/configs/llama3-8b-fsdp-64xh100.yaml:7:17: train.global_batch: 128 does not split into micro-batches of 3 on 64 replicas (nearest that do: 192)

The same as CSV; a value in brackets keeps its commas.

    $ stepsim sweep $ROOT/configs/pp-tiny.yaml --set cluster.system=dgx-h100 --set cluster.gpus_per_node=4 --vary 'parallel.layers_per_stage=[1,1,1,1],[2,1,1,0]' --csv - | cut -d, -f1-6 | head -n 2
    parallel.layers_per_stage,ranks,step_time_s,interval90_low_s,interval90_high_s,tokens_per_s
    "[1,1,1,1]",4,0.001085

The picture has a line for each value of the second key.

    $ stepsim sweep $ROOT/configs/llama3-8b-fsdp-64xh100.yaml --vary cluster.nodes=4,8,16 --vary train.recompute=none,full --plot - | grep -cE 'polyline|circle'
    8

--zip: the first values together, then the second ones; the picture has one line.

    $ stepsim sweep $ROOT/configs/llama3-8b-fsdp-64xh100.yaml --zip --vary cluster.nodes=4,8,16 --vary train.global_batch=64,128,512 --csv zip.csv --plot zip.svg --html zip.html; cut -d, -f1-3,6 zip.csv; grep -c polyline zip.svg; grep -oE '<h1>[^<]*' zip.html
    Most tokens/s with cluster.nodes = 16, train.global_batch = 512: 866 k tokens/s, 4.85 s a step on
      128 ranks.
    cluster.nodes  train.global_batch  ranks  step time  tokens/s     MFU  exposed  overlap    memory
        bottleneck
    -------------------------------------------------------------------------------------------------
                4                  64     32     2.37 s     221 k  42.6 %  20.5 ms   89.8 %  16.4 GiB
        compute: gemm 66 %
                8                 128     64     2.40 s     438 k  42.2 %  21.3 ms   90.1 %  15.0 GiB
        compute: gemm 66 %
               16                 512    128     4.85 s     866 k  41.7 %  44.2 ms   90.8 %  14.5 GiB
        compute: gemm 66 %
    cluster.nodes,train.global_batch,ranks,interval90_high_s
    4,64,32,2.78586026
    8,128,64,2.81166901
    16,512,128,5.68649703
    1
    <h1>Most tokens/s with cluster.nodes = 16, train.global_batch = 512: 866 k tokens/s, 4.85 s a step on 128 ranks.

Weak scaling: the batch of each GPU stays, and the file's global batch gives way to --set. Tokens a step stay where sequences get longer.

    $ weak="$ROOT/configs/llama3-8b-fsdp-64xh100.yaml --set train.batch_per_gpu=2"
    > stepsim sweep $weak --vary cluster.nodes=1,4,16 --json - | python3 -c '
    > import json, sys
    > for r in json.load(sys.stdin)["results"]: p = r["prediction"]; print(r["ranks"], round(p["tokens_per_s"] * p["step_time_s"] / 8192))'
    > stepsim sweep $weak --vary cluster.nodes=4 --vary train.micro_batch=2,4 --csv - | cut -d, -f2,3,13-
    > stepsim sweep $ROOT/configs/llama3-8b-fsdp-64xh100.yaml --set train.tokens_per_step=2Mi --zip --vary model.seq_len=2048,8192,16384 --vary train.micro_batch=8,2,1 --json - | python3 -c '
    > import json, sys
    > for r in json.load(sys.stdin)["results"]: p = r["prediction"]; print(r["set"], round(p["tokens_per_s"] * p["step_time_s"]))'
    > stepsim plan $weak --gpus 16 --write - | grep -E 'batch|tokens_per' | sed 's/micro_batch: .*/micro_batch/'
    > for key in global_batch=256 batch_per_gpu=4 tokens_per_step=2Mi; do COLUMNS=200 stepsim plan $ROOT/configs/llama3-8b-fsdp-64xh100.yaml --set train.$key | sed -n '1p;5p' | cut -c1-70; done
    8 16
    32 64
    128 256
    train.micro_batch,ranks,bottleneck_or_reason
    2,32,compute: gemm 66 % of the step
    4,,--set train.batch_per_gpu=2: a batch of 64 sequences does not split into micro-batches of 4 on 32 replicas (nearest that do: 128)
    {'model.seq_len': '2048', 'train.micro_batch': '8'} 2097152
    {'model.seq_len': '8192', 'train.micro_batch': '2'} 2097152
    {'model.seq_len': '16384', 'train.micro_batch': '1'} 2097152
      batch_per_gpu: 2
      micro_batch
    llama3-8b, 256 sequences of 8192 tokens a step, on 64 x NVIDIA H100 SX
         1  dp 64 fsdp mb 1 prefetch 2 kept             4.05 s  3.45 s to 
    llama3-8b, 256 sequences of 8192 tokens a step, on 64 x NVIDIA H100 SX
         1  dp 64 fsdp mb 1 prefetch 2 kept             4.05 s  3.45 s to 
    llama3-8b, 256 sequences of 8192 tokens a step, on 64 x NVIDIA H100 SX
         1  dp 64 fsdp mb 1 prefetch 2 kept             4.05 s  3.45 s to 

What is wrong with it:

    $ stepsim sweep $ROOT/configs/ddp-tiny.yaml 2>&1
    stepsim: --vary KEY=VALUE,VALUE,... is missing: what is to be swept?
    [2]
    $ stepsim sweep $ROOT/configs/ddp-tiny.yaml --vary train.micro_batch 2>&1
    stepsim: --vary train.micro_batch: expected KEY=VALUE,VALUE,...
    [2]
    $ stepsim sweep $ROOT/configs/ddp-tiny.yaml --vary train.micro_batch=1,,2 2>&1
    stepsim: --vary train.micro_batch=1,,2: value 2 is empty
    [2]
    $ stepsim sweep $ROOT/configs/ddp-tiny.yaml --vary train.micro_batsh=1,2 2>&1
    stepsim: --vary train.micro_batsh=1,2: unknown key (nearest: train.micro_batch)
    [2]
    $ stepsim sweep $ROOT/configs/ddp-tiny.yaml --vary train.micro_batch=1,2 --vary train.micro_batch=4 2>&1
    stepsim: --vary train.micro_batch is given twice
    [2]
    $ stepsim sweep $ROOT/configs/ddp-tiny.yaml --zip --vary train.micro_batch=1,2 --vary train.global_batch=8,16,32 2>&1
    stepsim: --zip: train.micro_batch has 2 values, and train.global_batch 3: lists of one length go together
    [2]
    $ stepsim predict $ROOT/configs/llama3-8b-fsdp-64xh100.yaml --set train.tokens_per_step=4M
    stepsim: --set train.tokens_per_step=4000000: a batch of 3997696 tokens does not split into micro-batches of 2 on 64 replicas (nearest that do: 3145728, 4194304)
    [2]
    $ stepsim predict $ROOT/configs/llama3-8b-fsdp-64xh100.yaml --set train.tokens_per_step=4MB
    stepsim: --set train.tokens_per_step=4MB: expected a number of tokens such as 4M, got "4MB", which is a size
    [2]
    $ stepsim compare $ROOT/configs/llama3-8b-fsdp-64xh100.yaml --systems dgx-h100@8,dgx-h100@16 --set train.batch_per_gpu=2 --target "100 steps"
    stepsim: --target 100 steps: with train.batch_per_gpu each system's steps differ: give the tokens
    [2]

A profile of two hosts of one core that an earlier stepsim wrote: it is said once. Overlap means nothing there: its cells are empty, of plan's CSV, too.

    $ printf '%s\n' 'key: {stepsim: a, backend: host, cpu: a, mpi: a, blas: a, binding: a, cores_per_rank: 1, ranks_per_host: 1, ranks: 2}' 'date: x' 'values: {mem_Bps: 1e10, call_s: 1e-7, peak.fp32: 4e10, between.Bps: 1e8, between.latency_s: 40e-6}' > old.yaml
    > one="$ROOT/tests/exec/tiny.yaml --set cluster.profile=old.yaml --set parallel.data=2"
    > stepsim sweep $one --vary parallel.bucket_mb=1,25 --csv - -q 2>&1 | cut -d, -f1,2,9,11
    > stepsim plan $one --csv - -q 2>&1 | cut -d, -f22,29,31 | head -n 3
    stepsim: warning: old.yaml is an earlier stepsim's and lacks what collectives between hosts lose beside compute: run `stepsim calibrate` again
    parallel.bucket_mb,ranks,overlap,fits
    1,2,,true
    25,2,,true
    stepsim: warning: old.yaml is an earlier stepsim's and lacks what collectives between hosts lose beside compute: run `stepsim calibrate` again
    ranks,overlap,fits
    2,,true
The verdict keeps memory free; it names what would be faster with less.
    $ stepsim sweep $ROOT/configs/llama3-8b-fsdp-64xh100.yaml --set cluster.nodes=64 --set train.global_batch=1024 \
    >     --vary train.recompute=none,full -q | head -n 3
    Most tokens/s with train.recompute = full: 3.34 M tokens/s, 2.51 s a step on 512 ranks. With
      train.recompute = none it would be 4.09 M tokens/s, but 97.8 % of the memory are full.
    $ stepsim sweep $ROOT/configs/fsdp-tiny.yaml --vary train.recompute=none,full -q | grep -o 'on 1 rank[s.]'
    > stepsim predict $ROOT/configs/fsdp-tiny.yaml -q --html one.html >out; grep -o 'on 1 ranks*:' one.html
    on 1 rank.
    on 1 rank:

With --model the batch is a power of two of tokens, so that powers of two split it; what does not is said of the key alone.

    $ stepsim sweep --model llama3-8b --vary train.micro_batch=2,4,3 -q | sed -n '/^  *[234]/,$p' | grep -v warning
                    2      8     60.5 s    69.3 k  53.4 %   519 ms   90.2 %  92.7 GiB (too much)
        compute: gemm 67 %
                    4      8     58.5 s    71.7 k  55.3 %   257 ms   90.3 %   165 GiB (too much)
        compute: gemm 67 %
                    3
        train.global_batch: 512 does not split into micro-batches of 3 on 8 replicas (nearest that do:
        504, 528)
