Tensor-parallel collectives beside the tiles of products: Megatron's habit (user buffers), off by a key; elsewhere on by one.

    $ cat > tp.yaml <<'EOF'
    > model: {preset: llama3-8b}
    > train: {stack: megatron-core, global_batch: 8, micro_batch: 1}
    > parallel: {tensor: 8, sequence_parallel: true}
    > cluster: {system: dgx-h100}
    > EOF
    > for overlap in true false; do for stack in megatron-core pytorch-ddp; do
    >   stepsim predict tp.yaml -q --set train.stack=$stack --set parallel.tensor_overlap=$overlap | grep -E 'exposed comm|moving|  overlap'; done; done
    > stepsim predict tp.yaml -q | grep -E 'exposed comm|moving|  overlap'
      exposed communication        160 ms       14.1 %
      moving bytes                 563 ms       49.5 %
      overlap                      71.5 %
      exposed communication       36.2 ms        3.6 %
      moving bytes                 611 ms       61.1 %
      overlap                      94.1 %
      exposed communication        428 ms       32.3 %
      moving bytes                 617 ms       46.6 %
      overlap                      30.6 %
      exposed communication        378 ms       26.6 %
      moving bytes                 617 ms       43.4 %
      overlap                      38.8 %
      exposed communication        160 ms       14.1 %
      moving bytes                 563 ms       49.5 %
      overlap                      71.5 %
Slow ranks: the step is the slowest one's. Failures: how much of the time is steps.

    $ for slow in '{}' '{5: 1.25}' '{n2: 1.25, 5: 1.1}'; do
    >   COLUMNS=999 stepsim predict $ROOT/configs/llama3-8b-fsdp-64xh100.yaml --set cluster.slow_ranks="$slow" | grep -E 'step time|MFU|slowest'; done
    > COLUMNS=999 stepsim predict $ROOT/configs/llama3-8b-fsdp-64xh100.yaml --set cluster.jitter=0.02 --set cluster.mtbf_hours=50 --set cluster.checkpoint_s=90s | grep -E 'step time|goodput|slowest'
    > COLUMNS=999 stepsim predict $ROOT/configs/llama3-8b-fsdp-64xh100.yaml --set cluster.mtbf_hours=50 --set cluster.checkpoint_s=90s --json - | grep -E 'goodput|checkpoint'
    step time                      2.40 s
    MFU                            42.2 %
    step time                      2.97 s
    MFU                            34.0 %
    warning: the slowest rank computes 1.25 times as long as the mean (cluster.slow_ranks, jitter): 590 ms of this step, for which the others wait
    step time                      2.97 s
    MFU                            34.0 %
    warning: the slowest rank computes 1.25 times as long as the mean (cluster.slow_ranks, jitter): 590 ms of this step, for which the others wait
    step time                      2.50 s
    goodput                        96.8 %               a checkpoint every 93.9 min
    warning: the slowest rank computes 1.05 times as long as the mean (cluster.slow_ranks, jitter): 111 ms of this step, for which the others wait
          "checkpoint_s": 90.0
        "goodput": 0.968225440841449,
        "checkpoint_interval_s": 5632.25790218609,
docs/reference.md and configs/reference.yaml have what `stepsim list keys` says of each key.

    $ stepsim list keys | python3 $ROOT/scripts/keys.py --check
    202 keys
    $ stepsim list keys | grep -E '^(model.kv_heads|model.mtp_layers|train.param_dtype|parallel.bucket_mb|data.bytes|cluster.slow_ranks) ' | tr -s ' '
    model.kv_heads heads of keys and values (grouped-query attention) from 1; default: (heads) num_query_groups, num_key_value_heads, num_kv_heads, n_kv_heads
    model.mtp_layers blocks that predict further tokens (DeepSeek-V3: 1) 0 to 4; default: 0 mtp_num_layers, num_nextn_predict_layers
    train.param_dtype stored weights auto, fp32, fp16, bf16, fp8, mxfp8; nvfp4 (later); default: fp32
    data.bytes size of a micro-batch, copied to the device; 0: 8 bytes a token a size; default: 0
    parallel.bucket_mb bucket of gradients, a number in MiB; with ddp, zero1, zero2 a size; default: 25 bucket_cap_mb
    cluster.slow_ranks `{3: 1.2, n1: 1.1}`: rank 3 and host 1 compute so many times as long a map; default: {}

What is predicted alone is refused where it would be executed; the rest is executed.

    $ for key in model.sliding_window=16 train.optimizer_bits=8 train.offload=optimizer train.optimizer=lion train.sync_every=1 \
    >   train.cuda_graph=true train.recompute=full data.load_time=1ms cluster.slow_ranks='{0: 1.1}' collectives.algorithm=hierarchical \
    >   model.dropout=0.1; do
    >   stepsim $ROOT/configs/ddp-tiny.yaml -q --set run.execute=true --set run.steps=1 --set run.warmup=0 --set "$key" >/dev/null 2>err && echo "$key: executed" || grep -o 'not executed' err; done
    model.sliding_window=16: executed
    train.optimizer_bits=8: executed
    train.offload=optimizer: executed
    train.optimizer=lion: executed
    train.sync_every=1: executed
    train.cuda_graph=true: executed
    train.recompute=full: executed
    data.load_time=1ms: executed
    cluster.slow_ranks={0: 1.1}: executed
    not executed
    not executed

docs/reference.md names every command, option, exit code, JSON key, CSV column and type of Hugging Face models, docs/frameworks.md every framework.

    $ python3 $ROOT/tests/golden/contract.py $ROOT
    17 commands, 48 options, 4 exit codes, 151 keys of JSON

A sliding window: attention's work falls with it. Moments in 8 bits: memory and the update. Where one would be executed and is not, a line says so.

    $ for window in 0 4096 1024; do stepsim predict $ROOT/configs/llama3-8b-fsdp-64xh100.yaml -q --set model.sliding_window=$window | grep -E 'attention|MFU'; done
    > for bits in 32 8; do stepsim predict $ROOT/configs/llama3-8b-fsdp-64xh100.yaml --set train.optimizer_bits=$bits | grep -E '  optimizer'; done
    > stepsim $ROOT/configs/ddp-tiny.yaml --set model.sliding_window=8 --set train.attention=naive 2>&1 | tail -n 1
    MFU                            42.2 %
      attention (96)               552 ms       23.1 %  compute
    MFU                            39.8 %
      attention (96)               429 ms       18.9 %  compute
    MFU                            41.0 %
      attention (96)               168 ms        8.3 %  compute
      optimizer                   1.24 ms        0.1 %
      optimizer (33)              1.24 ms        0.1 %  memory
      optimizer state             957 MiB
      optimizer                    733 us        0.0 %
      optimizer (33)               733 us        0.0 %  memory
      optimizer state             243 MiB
    stepsim: model.sliding_window: executed by flash attention alone; with naive attention it is predicted, not executed

An all-reduce of two levels is priced from its parts, and -v names it; inside one host the choice is free. It is not executed.

    $ for nodes in 4 1; do COLUMNS=999 stepsim predict $ROOT/configs/ddp-gpt2-774m-32xl40s.yaml -v --set cluster.nodes=$nodes --set collectives.algorithm=hierarchical 2>&1 | grep -E '^(all_reduce, dp .* 250 MiB|step time)'; done
    > COLUMNS=999 stepsim predict $ROOT/configs/ddp-gpt2-774m-32xl40s.yaml -v --set collectives.algorithm=hierarchical --set cluster.system='gpu:8 mi300x nic:8x400Gb/s' 2>&1 | grep -E '^(all_reduce, dp .* 250 MiB|step time)'
    > stepsim $ROOT/configs/ddp-tiny.yaml --set collectives.algorithm=hierarchical 2>&1 | tail -n 1
    all_reduce, dp     32   250 MiB  hierarchical                   2  38.4 ms  link      socket between CPU0 and CPU1, 16.0 GB/s
    step time                       682 ms
    all_reduce, dp      8   250 MiB  ring       Simple           2  28.9 ms  link      socket between CPU0 and CPU1, 16.0 GB/s
    step time                      1.56 s
    all_reduce, dp     32   250 MiB  hierarchical                      2.83 ms  link      xGMI among 8 GPUs, 7 rings of 48.0 GB/s
    step time                      157 ms
    stepsim: collectives.algorithm: NCCL lacks hierarchical, which is predicted, not executed

Why a prediction is what it is: -v.

    $ cat > why.yaml <<'EOF'
    > model: {preset: llama3-8b}
    > train: {stack: megatron-core, global_batch: 32, micro_batch: 1}
    > parallel: {tensor: 2, sequence_parallel: true}
    > cluster: {system: dgx-h100, nodes: 2}
    > EOF
    > COLUMNS=999 stepsim predict why.yaml -v 2>&1 >/dev/null | sed -n '/^why/,/^assumed of the stack/p'
    > COLUMNS=999 stepsim predict why.yaml -v --set collectives.algorithm=tree --set collectives.protocol=ll128 2>&1 >/dev/null | grep -E '^(all_reduce|all_gather), '
    why: what bounds the ops of a rank
    class           bound by   ops        FLOP     bytes    alone        FLOP/s        B/s
    --------------------------------------------------------------------------------------
    gemm            compute   1548   738 TFLOP   369 GiB   1.22 s   604 TFLOP/s   325 GB/s
    attention       compute    256   123 TFLOP  30.2 GiB   231 ms   533 TFLOP/s   140 GB/s
    norm            latency    520  87.2 GFLOP   134 GiB  48.3 ms  1.81 TFLOP/s  2.98 TB/s
    elementwise     memory     256   150 GFLOP   265 GiB  94.3 ms  1.59 TFLOP/s  3.02 TB/s
    elementwise     latency    384  18.3 GFLOP  85.2 GiB  30.8 ms   593 GFLOP/s  2.97 TB/s
    embedding       latency      8   268 MFLOP  1.25 GiB   455 us   590 GFLOP/s  2.95 TB/s
    loss            memory      12  6.30 GFLOP   102 GiB  36.1 ms   175 GFLOP/s  3.03 TB/s
    memory          memory       1           -   501 MiB   175 us             -  3.00 TB/s
    memory          latency      1           -       4 B  1.50 us             -  2.67 MB/s
    optimizer       memory      65  48.2 GFLOP   112 GiB  39.9 ms  1.21 TFLOP/s  3.02 TB/s
    all_reduce      latency     41           -   904 KiB   391 us             -  2.37 GB/s
    all_reduce      link        65           -  13.1 GiB  55.5 ms             -   253 GB/s
    all_gather      link       776           -  24.2 GiB   113 ms             -   231 GB/s
    reduce_scatter  link       520           -  16.2 GiB  75.7 ms             -   231 GB/s
    copy            latency      4           -   512 KiB  4.16 us             -   126 GB/s
    host            host         1           -         -  7.00 us             -          -
    how collectives run
    collective          ranks      size  algorithm  protocol  channels    alone  bound by  limited by
    ------------------------------------------------------------------------------------------------------------------------------
    reduce_scatter, tp      2  64.0 MiB  ring       Simple          24   146 us  link      NVLink between GPU0 and NVS0, 371 GB/s
    all_gather, tp          2  64.0 MiB  ring       Simple          24   146 us  link      NVLink between GPU0 and NVS0, 371 GB/s
    all_reduce, tp          2  32.0 KiB  ring       LL               4  9.80 us  latency   NVLink between GPU0 and NVS0, 371 GB/s
    all_reduce, tp          2  64.0 KiB  ring       LL               8  10.4 us  latency   NVLink between GPU0 and NVS0, 371 GB/s
    all_reduce, dp          8   501 MiB  tree       Simple          28  3.32 ms  link      network between NIC0 and NET, 50.0 GB/s
    all_reduce, tp          2  8.00 KiB  ring       LL               1  9.17 us  latency   NVLink between GPU0 and NVS0, 371 GB/s
    all_reduce, dp          8   168 MiB  tree       Simple          28  1.18 ms  link      network between NIC0 and NET, 50.0 GB/s
    all_reduce, tp          2  16.0 KiB  ring       LL               2  9.42 us  latency   NVLink between GPU0 and NVS0, 371 GB/s
    all_reduce, dp          8  96.0 MiB  tree       Simple          28   713 us  link      network between NIC0 and NET, 50.0 GB/s
    all_reduce, dp          8   112 MiB  tree       Simple          28   817 us  link      network between NIC0 and NET, 50.0 GB/s
    all_reduce, dp          8   541 MiB  tree       Simple          28  3.57 ms  link      network between NIC0 and NET, 50.0 GB/s
    tensor-parallel gathers and scatters overlap products, except for the exposed part (parallel.tensor_overlap)
    assumed of the GPU (configs/gpus/h100-sxm.yaml): products reach 0.637 of the peak in bf16, memory 0.904 of its rate, a launch takes 7.00 us
    assumed of the stack (megatron-core; sources: `stepsim list parameters`): elementwise_passes 2.37, logit 52 B, optimizer 30 B, overlap_tax 0.159, dropout_grad 2, score_dropout 2, op 131 us, tensor_exposed 0.121
    all_gather, tp          2  64.0 MiB  ring       LL128           24   158 us  link      NVLink between GPU0 and NVS0, 371 GB/s
    all_reduce, tp          2  32.0 KiB  tree       LL128            6  18.6 us  latency   NVLink between GPU0 and NVS0, 371 GB/s
    all_reduce, tp          2  64.0 KiB  tree       LL128           12  19.5 us  latency   NVLink between GPU0 and NVS0, 371 GB/s
    all_reduce, dp          8   501 MiB  tree       LL128           28  6.57 ms  link      network between NIC0 and NET, 50.0 GB/s
    all_reduce, tp          2  8.00 KiB  tree       LL128            1  17.9 us  latency   NVLink between GPU0 and NVS0, 371 GB/s
    all_reduce, dp          8   168 MiB  tree       LL128           28  2.26 ms  link      network between NIC0 and NET, 50.0 GB/s
    all_reduce, tp          2  16.0 KiB  tree       LL128            3  18.2 us  latency   NVLink between GPU0 and NVS0, 371 GB/s
    all_reduce, dp          8  96.0 MiB  tree       LL128           28  1.38 ms  link      network between NIC0 and NET, 50.0 GB/s
    all_reduce, dp          8   112 MiB  tree       LL128           28  1.56 ms  link      network between NIC0 and NET, 50.0 GB/s
    all_reduce, dp          8   541 MiB  tree       LL128           28  7.09 ms  link      network between NIC0 and NET, 50.0 GB/s

Names of other programs stand for keys, and results have the keys. Without a section by --set and --vary.

    $ cat > names.yaml <<'EOF'
    > model: {preset: llama3-8b}
    > train: {stack: megatron-core, gbs: 64, mbs: 1, gradient_checkpointing: true}
    > parallel: {TP: 2, sp: true, use_distributed_optimizer: true}
    > cluster: {system: dgx-h100, nnodes: 2}
    > EOF
    > cat > keys.yaml <<'EOF'
    > model: {preset: llama3-8b}
    > train: {stack: megatron-core, global_batch: 64, micro_batch: 1, recompute: full}
    > parallel: {tensor: 2, sequence_parallel: true, strategy: zero1}
    > cluster: {system: dgx-h100, nodes: 2}
    > EOF
    > stepsim predict names.yaml -q --json names.json > names.txt
    > stepsim predict keys.yaml -q --json keys.json > keys.txt
    > cmp names.json keys.json && cmp names.txt keys.txt && grep -E '"(tensor|strategy|recompute)":' names.json
    > stepsim sweep names.yaml --vary tp=1,2 --vary zero-stage=1,2 --csv - -q | cut -d, -f1-3
    > stepsim list keys | grep -E '^(key|train.recompute|parallel.tensor) ' | tr -s ' '
          "recompute": "full",
          "strategy": "zero1",
          "tensor": 2,
    parallel.tensor,parallel.strategy,ranks
    1,zero1,16
    1,zero2,16
    2,zero1,16
    2,zero2,16
    key meaning values; default other names
    train.recompute activations that the backward pass computes again none, selective, full; default: none recompute_granularity; gradient_checkpointing (true: full, false: none); activation_checkpointing (true: full, false: none)
    parallel.tensor tensor-parallel ranks from 1; default: 1 tp, tensor_parallel, tensor_parallel_size, tensor_model_parallel_size, tensor_parallel_degree

What kernels of a TPU compute beside what counts, as MaxText's defaults have it, and each by its key:

    $ cat > tpu.yaml <<'EOF'
    > model: {preset: mixtral-8x7b, seq_len: 8192}
    > train: {stack: maxtext, global_batch: 256, micro_batch: 1}
    > parallel: {strategy: fsdp}
    > cluster: {system: gcp-tpu-v5p-256}
    > EOF
    > for key in stack=maxtext attention_block={0,1,512,1048576,1048577,wide} attention_split={false,true,2} expert_tile={0,1,512,-1}; do
    >   echo "$key: $(stepsim predict tpu.yaml -q --set train.$key 2>&1 | grep -E 'step time|stepsim:' | sed 's/step time *//')"; done
    stack=maxtext: 2.80 s
    attention_block=0: 2.79 s
    attention_block=1: 2.78 s
    attention_block=512: 2.80 s
    attention_block=1048576: 3.10 s
    attention_block=1048577: stepsim: --set train.attention_block=1048577: expected an integer from 0 to 1048576, got "1048577"
    attention_block=wide: stepsim: --set train.attention_block=wide: expected an integer from 0 to 1048576, got "wide"
    attention_split=false: 2.70 s
    attention_split=true: 2.80 s
    attention_split=2: stepsim: --set train.attention_split=2: expected true or false, got "2"
    expert_tile=0: 2.42 s
    expert_tile=1: 2.42 s
    expert_tile=512: 2.80 s
    expert_tile=-1: stepsim: --set train.expert_tile=-1: expected an integer from 0 to 1048576, got "-1"

Layers that are given a mask: those with a window no longer than the sequence, or all. Naive attention stores all scores
anyway:

    $ cat > window.yaml <<'EOF'
    > model: {preset: phi3-mini, layers: 4, seq_len: 4096}
    > train: {stack: pytorch-ddp-eager, global_batch: 2, micro_batch: 2, param_dtype: bf16, attention_kernel: fa3}
    > cluster: {system: "gpu:1 h100-sxm"}
    > EOF
    > for key in attention_mask={none,windows,all,some}; do
    >   echo "$key: $(stepsim predict window.yaml -q --set train.$key 2>&1 | grep -E 'step time|stepsim:' | sed 's/step time *//')"; done
    > for window in 0 4095 4096 4097; do
    >   set -- --set train.attention_mask=windows --set model.sliding_window=$window
    >   echo "$window: $(stepsim predict window.yaml -q "$@" | grep 'step time' | sed 's/step time *//')"; done
    > stepsim predict window.yaml -q --set train.attention_mask=all --set train.attention=naive
    attention_mask=none: 92.4 ms
    attention_mask=windows: 108 ms
    attention_mask=all: 108 ms
    attention_mask=some: stepsim: --set train.attention_mask=some: unknown value "some" (known: none, windows, all)
    0: 93.7 ms
    4095: 108 ms
    4096: 108 ms
    4097: 93.7 ms
    stepsim: --set train.attention_mask=all: needs attention: flash
    [2]

On a GPU whose attention kernels nobody timed, the first generation is the slower one, forward and backward:

    $ for kernel in fa1 fa2; do COLUMNS=200 stepsim predict $ROOT/configs/ddp-gpt2-774m-32xl40s.yaml -v --set train.attention=flash --set train.attention_kernel=$kernel 2>&1 | grep -E '^attention(_grad)? ' | awk '{ print $1, $(NF - 3), $(NF - 2) }'; done
    attention 53.5 TFLOP/s
    attention 71.0 TFLOP/s
    attention_grad 30.6 TFLOP/s
    attention 85.1 TFLOP/s
    attention 110 TFLOP/s
    attention_grad 48.9 TFLOP/s
