# stepsim plan: the plans that fit, best first

What the config itself gives is where the search starts; the table ends with what its own plan takes.

    $ stepsim plan $ROOT/configs/llama3-8b-fsdp-64xh100.yaml --set parallel.strategy=fsdp --set parallel.tensor=1 --set parallel.context=1 | grep -v -e ----
    llama3-8b, 128 sequences of 8192 tokens a step, on 64 x NVIDIA H100 SXM5 80GB (NVIDIA DGX H100):
      plans, best first
            plan                                     step time     90 % interval  tokens/s     MFU
          memory      free  exposed  limited by
         1  dp 64 fsdp mb 1 prefetch 2 kept             2.02 s  1.73 s to 2.38 s     518 k  49.9 %
        56.0 GiB  23.7 GiB  42.5 ms  compute: gemm 66 % of the step
         2  dp 64 fsdp mb 1 prefetch 2                  2.08 s  1.78 s to 2.44 s     503 k  48.5 %
        43.8 GiB  35.9 GiB  42.5 ms  compute: gemm 67 % of the step
         3  dp 64 fsdp mb 2 full 16 prefetch 2 kept     2.14 s  1.83 s to 2.51 s     490 k  47.2 %
        59.6 GiB  20.0 GiB  21.2 ms  compute: gemm 67 % of the step
         4  dp 64 fsdp mb 2 full 16 prefetch 2          2.17 s  1.85 s to 2.55 s     483 k  46.6 %
        47.5 GiB  32.2 GiB  21.2 ms  compute: gemm 67 % of the step
         5  dp 64 fsdp mb 1 full 16 prefetch 2 kept     2.25 s  1.92 s to 2.64 s     466 k  44.9 %
        39.9 GiB  39.7 GiB  42.5 ms  compute: gemm 65 % of the step
         6  dp 64 fsdp mb 1 full 16 prefetch 2          2.31 s  1.97 s to 2.71 s     454 k  43.8 %
        27.8 GiB  51.9 GiB  42.5 ms  compute: gemm 65 % of the step
         7  dp 64 fsdp mb 2 full prefetch 2 kept        2.37 s  2.02 s to 2.78 s     443 k  42.7 %
        27.6 GiB  52.0 GiB  21.2 ms  compute: gemm 66 % of the step
         8  dp 64 fsdp mb 2 full prefetch 2             2.40 s  2.04 s to 2.81 s     438 k  42.2 %
        15.4 GiB  64.2 GiB  21.2 ms  compute: gemm 66 % of the step
         9  dp 64 fsdp mb 1 full prefetch 2 kept        2.48 s  2.11 s to 2.91 s     424 k  40.9 %
        23.9 GiB  55.7 GiB  42.5 ms  compute: gemm 64 % of the step
        10  dp 64 fsdp mb 1 full prefetch 2             2.53 s  2.16 s to 2.98 s     414 k  39.9 %
        11.8 GiB  67.9 GiB  42.5 ms  compute: gemm 64 % of the step
    config  dp 64 fsdp mb 2 full prefetch 1             2.40 s  2.04 s to 2.81 s     438 k  42.2 %
        15.0 GiB  64.6 GiB  21.3 ms  compute: gemm 66 % of the step
    The best plan takes 15.5 % less time than the config's own.
    Pareto front: less memory for more time (plans up to 15 % slower than the best):
         memory  step time  over the best  plan
    a  27.4 GiB     2.31 s        +14.0 %  dp 64 fsdp mb 1 full 16 prefetch 1
    b  27.8 GiB     2.31 s        +14.0 %  dp 64 fsdp mb 1 full 16 prefetch 2
    c  39.9 GiB     2.25 s        +11.1 %  dp 64 fsdp mb 1 full 16 prefetch 2 kept
    d  43.4 GiB     2.08 s         +2.9 %  dp 64 fsdp mb 1 prefetch 1
    e  43.8 GiB     2.08 s         +2.9 %  dp 64 fsdp mb 1 prefetch 2
    f  56.0 GiB     2.02 s         +0.0 %  dp 64 fsdp mb 1 prefetch 2 kept
    Words of a plan: dp: data-parallel ranks; mb: sequences of a micro-batch; full: layers are
      recomputed, all or so many; prefetch: units gathered ahead; kept: weights stay gathered for the
      backward pass
    not searched: zero2, fsdp and hsdp inside a pipeline (only where the config has them there)
    48 plans: 0 illegal, 8 need more than 90 % of the memory, 0 cannot be among the best, 40 timed;
      those shown are predicted in full

Keys that --set gives are held. A part of a node:

    $ stepsim plan $ROOT/configs/ddp-tiny.yaml --set cluster.system=dgx-h100 --set train.dtype=bf16 --set parallel.strategy=ddp --set parallel.pipeline=1 --gpus 2 --csv - | cut -d, -f1-8,22-23
    place,plan,parallel.strategy,parallel.shard,parallel.tensor,parallel.sequence_parallel,parallel.tensor_overlap,parallel.pipeline,ranks,step_time_s
    1,dp 2 ddp mb 8 bucket 25,ddp,2,1,false,false,1,2,0.000651
    2,dp 2 ddp mb 8 full 1 bucket 25,ddp,2,1,false,false,1,2,0.0007
    3,tp 2 dp 1 mb 16,ddp,1,2,false,false,1,2,0.000749
    4,dp 2 ddp mb 8 full bucket 25,ddp,2,1,false,false,1,2,0.000749
    5,tp 2 dp 1 mb 16 full 1,ddp,1,2,false,false,1,2,0.000805
    6,tp 2 dp 1 mb 16 full,ddp,1,2,false,false,1,2,0.000861
    7,tp 2 sp dp 1 mb 16,ddp,1,2,true,false,1,2,0.000861
    8,tp 2 sp dp 1 mb 16 full 1,ddp,1,2,true,false,1,2,0.000931
    9,tp 2 sp dp 1 mb 16 full,ddp,1,2,true,false,1,2,0.001001
    10,dp 2 ddp mb 4 bucket 25,ddp,2,1,false,false,1,2,0.001274
    config,dp 2 ddp mb 2 bucket 0.5,ddp,2,1,false,false,1,2,0.00256418404

The winner's file is a config, and its prediction is the winner's.

    $ stepsim plan $ROOT/configs/ddp-tiny.yaml --set cluster.system=dgx-h100 --set train.dtype=bf16 --gpus 4 --write -
    # custom on 4 x NVIDIA H100 SXM5 80GB (NVIDIA DGX H100): pp 2 1f1b dp 2 ddp mb 8 bucket 25
    # stepsim plan $ROOT/configs/ddp-tiny.yaml; predicted: 385 us a step
    model:
      layers: 2
      hidden: 128
      heads: 8
      vocab: 512
      seq_len: 64
    train:
      global_batch: 16
      micro_batch: 8
      dtype: bf16
    parallel:
      strategy: ddp
      pipeline: 2
      bucket_mb: 25
    cluster:
      system: "dgx-h100"
      nodes: 1
      gpus_per_node: 4
    run:
      warmup: 1
      steps: 3
    $ stepsim plan $ROOT/configs/ddp-tiny.yaml --set cluster.system=dgx-h100 --set train.dtype=bf16 --gpus 4 --write best.yaml --json best.json >plan.txt; stepsim predict best.yaml --json - | python3 -c 'import json, sys; a = json.load(sys.stdin)["prediction"]; b = json.load(open("best.json"))["results"][0]; print(a["step_time_s"] == b["step_time_s"], a["memory"] == b["memory"], b["plan"])'
    True True pp 2 1f1b dp 2 ddp mb 8 bucket 25

A best plan whose pipeline spans hosts comes with a warning.

    $ stepsim plan $ROOT/configs/pp-llama3-70b-64xh100.yaml --set parallel.pipeline=4 --set parallel.tensor=8 --set parallel.context=1 --set parallel.strategy=zero1 | grep -A 1 spans
    The best plan's pipeline spans hosts. Many published runs of such plans took far longer than
      predicted (docs/pipelines.md): also time the best plan of --set parallel.pipeline=1.

Exhaustive is the same; only the last line, of how many plans there were, differs.

    $ for how in '-v' --exhaustive; do COLUMNS=999 stepsim plan $ROOT/configs/ddp-tiny.yaml --set cluster.system=dgx-h100 --set train.dtype=bf16 --gpus 4 $how -q | head -n -1 | cksum; done | uniq | wc -l
    1

The picture: the front, the best plans, the config's own.

    $ stepsim plan $ROOT/configs/llama3-8b-fsdp-64xh100.yaml --set parallel.strategy=fsdp --set parallel.tensor=1 --set parallel.context=1 --plot - | grep -c circle
    20

Plans may use 90 % of the memory, and where none needs so little, all of it.

    $ stepsim plan $ROOT/configs/llama3-8b-fsdp-64xh100.yaml --set parallel.strategy=fsdp --set parallel.tensor=1 --set parallel.context=1 --set parallel.pipeline=1 --set train.micro_batch=2 --set train.recompute=none --set parallel.reshard_after_forward=true | grep -v -e ---- | cut -c1-170
    llama3-8b, 128 sequences of 8192 tokens a step, on 64 x NVIDIA H100 SXM5 80GB (NVIDIA DGX H100):
      plans, best first
            plan                        step time     90 % interval  tokens/s     MFU    memory     free
        exposed  limited by
         1  dp 64 fsdp mb 2 prefetch 2     1.95 s  1.66 s to 2.28 s     539 k  52.0 %  79.5 GiB  150 MiB
        21.2 ms  compute: gemm 68 % of the step
    config  dp 64 fsdp mb 2 prefetch 1     1.95 s  1.66 s to 2.28 s     539 k  52.0 %  79.1 GiB  572 MiB
        21.3 ms  compute: gemm 68 % of the step
    No plan leaves 10 % of the memory free; those that fit are shown.
    The best plan takes 0.0 % less time than the config's own.
    Pareto front: less memory for more time (plans up to 15 % slower than the best):
         memory  step time  over the best  plan
    a  78.7 GiB     2.07 s         +6.3 %  dp 64 fsdp mb 2 prefetch 0
    b  79.1 GiB     1.95 s         +0.0 %  dp 64 fsdp mb 2 prefetch 1
    c  79.5 GiB     1.95 s         +0.0 %  dp 64 fsdp mb 2 prefetch 2
    Words of a plan: dp: data-parallel ranks; mb: sequences of a micro-batch; prefetch: units gathered
      ahead
    4 plans: 0 illegal, 0 need too much memory, 0 cannot be among the best, 4 timed; those shown are
      predicted in full

The config's own plan may be faster with more.

    $ sed 's/recompute: full/recompute: none/' $ROOT/configs/llama3-8b-fsdp-64xh100.yaml > own.yaml; COLUMNS=999 stepsim plan own.yaml --set parallel.strategy=fsdp --set parallel.tensor=1 --set parallel.context=1 --set parallel.pipeline=1 | grep -e own -e ' 1  '
         1  dp 64 fsdp mb 1 prefetch 2 kept             2.02 s  1.73 s to 2.38 s     518 k  49.9 %  56.0 GiB  23.7 GiB  42.5 ms  compute: gemm 66 % of the step
    config  dp 64 fsdp mb 2 prefetch 1                  1.95 s  1.66 s to 2.28 s     539 k  52.0 %  79.1 GiB   572 MiB  21.3 ms  compute: gemm 68 % of the step
    The config's own plan fills 99 % of the memory; plans may use 90 %, and the best takes 4.1 % more time.
    48 plans: 0 illegal, 8 need more than 90 % of the memory, 0 cannot be among the best, 40 timed; those shown are predicted in full

100,000 GPUs: the evaluator's pieces are those of few; what must be simulated is limited.

    $ COLUMNS=999 stepsim plan $ROOT/configs/llama3-8b-fsdp-64xh100.yaml --gpus 102400 --set train.global_batch=102400 --set model.preset=llama3-70b --set parallel.tensor=8 | tail -n 3
    not searched: zero2, fsdp and hsdp inside a pipeline (only where the config has them there)
    55476 plans: 1272 illegal, 10619 need more than 90 % of the memory, 38345 cannot be among the best, 1126 timed; those shown are predicted in full
    4114 plans were not evaluated, because each needs a simulation; one may be better (fewer plans: hold keys with --set; all: --exhaustive)

Nothing fits: what needs least, and what it misses.

    $ stepsim plan $ROOT/configs/llama3-8b-fsdp-64xh100.yaml --gpus 1 --set train.global_batch=8 | grep -v -e ----
    llama3-8b, 8 sequences of 8192 tokens a step, on 1 x NVIDIA H100 SXM5 80GB (NVIDIA DGX H100): plans,
      best first
            plan            step time     90 % interval  tokens/s     MFU   memory               free
        exposed  limited by
     least  dp 1 mb 1 full     9.18 s  7.80 s to 10.8 s    7.14 k  44.1 %  139 GiB  58.9 GiB too much
            0 s  compute: gemm 66 % of the step
    config  dp 1 mb 2 full     9.03 s  7.68 s to 10.6 s    7.26 k  44.8 %  143 GiB  63.0 GiB too much
            0 s  compute: gemm 66 % of the step
    No plan fits. The one that needs least lacks 58.9 GiB of memory on each device.
    Words of a plan: dp: data-parallel ranks; mb: sequences of a micro-batch; full: layers are
      recomputed, all or so many
    12 plans: 0 illegal, 12 need too much memory, 0 cannot be among the best, 0 timed; those shown are
      predicted in full

Mixtures of experts have bounds as other models.

    $ COLUMNS=999 stepsim plan $ROOT/configs/ep-tiny.yaml --set cluster.system=dgx-h100 --set train.dtype=bf16 --gpus 4 | tail -n 1
    2502 plans: 0 illegal, 0 need more than 90 % of the memory, 2368 cannot be among the best, 134 timed; those shown are predicted in full

Models whose layers differ have none; where there are too many plans, those nearest to the config are looked at, and it is said.

    $ COLUMNS=999 stepsim plan $ROOT/configs/ep-tiny.yaml --set cluster.system=dgx-h100 --set train.dtype=bf16 --set model.moe_layer_freq=2 --gpus 4 | tail -n 2
    2502 plans: 0 illegal, 0 need more than 90 % of the memory, 0 cannot be among the best, 419 timed; those shown are predicted in full
    2083 plans were not evaluated, because each needs a simulation; one may be better (fewer plans: hold keys with --set; all: --exhaustive)

What is wrong with it:

    $ stepsim plan $ROOT/configs/llama3-8b-fsdp-64xh100.yaml --gpus 12 2>&1
    stepsim: --gpus 12: hosts of dgx-h100 have 8 GPUs (nearest: 8, 16)
    [2]
    $ stepsim plan $ROOT/configs/llama3-8b-fsdp-64xh100.yaml --gpus many 2>&1
    stepsim: --gpus many: expected a whole number from 1 to 10000000
    [2]
    $ stepsim plan $ROOT/configs/llama3-8b-fsdp-64xh100.yaml --set cluster.system=dgx-h1000 2>&1
    stepsim: --set cluster.system=dgx-h1000: unknown system 'dgx-h1000' (nearest: dgx-h100)
    [2]
    $ stepsim plan $ROOT/configs/llama3-8b-fsdp-64xh100.yaml --set parallel.tensor=3 2>&1
    stepsim: --set parallel.tensor=3: 3 does not divide heads 32 (nearest that do: 2, 4)
    [2]
    $ stepsim plan $ROOT/configs/llama3-8b-fsdp-64xh100.yaml --gpus 1 --set train.global_batch=8 --write best.yaml 2>&1 >nothing.txt
    stepsim: --write: no plan fits, and there is nothing to write
    [2]
    $ stepsim plan $ROOT/configs/ddp-tiny.yaml --json - --write - 2>&1
    stepsim: --json - and --write - cannot both be standard output
    [2]

The list takes what fits from the Pareto front: a plan that does not is listed only where nothing else is left. One line is the
config's own.

    $ stepsim plan --model llama3-405b --system dgx-h100 --gpus 1024 --set parallel.context=1 --set parallel.pipeline=1 -q | grep -c 'too much'
    1

The number behind hsdp is explained with the other words.

    $ stepsim plan --model llama3-70b --system dgx-h100 --gpus 64 --set train.recompute=full --set train.micro_batch=1 --set parallel.tensor=1 --set parallel.pipeline=1 --set parallel.context=1 --set parallel.strategy=hsdp -q | grep -A1 '^Words'
    Words of a plan: dp: data-parallel ranks; hsdp: weights are cut among so many of these, and copied
      to the others; mb: sequences of a micro-batch; full: layers are recomputed, all or so many;
