A system of the catalogue, of any size: no MPI, no GPU, no profile. The table:

    $ stepsim predict $ROOT/configs/llama3-8b-fsdp-64xh100.yaml
    A step takes 2.40 s (90 % interval: 2.04 s to 2.81 s); 90 % of communication hides behind compute,
      the rest takes 0.9 % of the step; it fits, 64.6 GiB are free.
    llama3-8b (8.03 B parameters), fsdp on 64 ranks (dp 64), bf16
    a step: 128 sequences of 8192 tokens, 1 micro-batch of 2 a replica
    on: NVIDIA DGX H100, 64 x NVIDIA H100 SXM5 80GB (catalogue configs/systems/dgx-h100.yaml)
                                predicted  of the step  bound by
    --------------------------------------------------------------------
    step time                      2.40 s
    tokens/s                        438 k
    model FLOP/s a device     418 TFLOP/s
    MFU                            42.2 %
    HFU                            52.4 %
    --------------------------------------------------------------------
    where the step goes
      compute                      2.37 s       99.1 %
      exposed communication       21.3 ms        0.9 %
      optimizer                   1.24 ms        0.1 %
    --------------------------------------------------------------------
    communication
      moving bytes                 215 ms        9.0 %
      waiting for late ranks          0 s        0.0 %
      overlap                      90.1 %
    --------------------------------------------------------------------
    ops, summed (count)
      gemm (483)                   1.58 s       65.8 %  compute
      attention (96)               552 ms       23.1 %  compute
      norm (194)                  65.5 ms        2.7 %  memory
      elementwise (224)            152 ms        6.3 %  memory
      embedding (2)               2.56 ms        0.1 %  memory
      loss (1)                    6.32 ms        0.3 %  compute
      memory (100)                17.6 ms        0.7 %  memory
      optimizer (33)              1.24 ms        0.1 %  memory
      all_gather (65)              109 ms        4.5 %  link
      reduce_scatter (33)          107 ms        4.5 %  link
      copy (1)                    2.13 us        0.0 %  latency
    --------------------------------------------------------------------
    memory of a rank
      weights                     479 MiB
      optimizer state             957 MiB
      activations                8.29 GiB
      buffers                    4.33 GiB
      overhead                   1.00 GiB
      total                      15.0 GiB               fits in 79.6 GiB
    Changes that shorten the step, each alone; symptom: compute-bound (23 changes tried)
                                          saves  of the step  tuning stage
        with
    --------------------------------------------------------------------------------------------
      lower-precision products           463 ms       19.3 %  1 format
        --set train.dtype=fp8
      less recomputation                 450 ms       18.8 %  4 fit
        --set train.recompute=none
      a newer attention kernel           237 ms        9.9 %  3 fuse
        --set train.attention_kernel=fa3
      16-bit weights, fp32 master copy  38.7 ms        1.6 %  1 format
        --set train.param_dtype=bf16 --set train.master_weights=true --set train.grad_dtype=bf16
        --set train.reduce_dtype=bf16
    90 % interval of the prediction: 2.04 s to 2.81 s
      its width comes from software 15 %, traffic 6 % (root of the sum of squares)
    Bottleneck: compute: gemm 66 % of the step
    warning: nothing was measured on this machine: the rates of hardware and software come from
      published runs

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

    $ stepsim predict $ROOT/configs/llama3-8b-fsdp-64xh100.yaml --set cluster.nodes=16 --set train.global_batch=256 | sed -n 3,5p
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
    > COLUMNS=999 stepsim predict $long --set parallel.pipeline=4 | grep -E 'a step|step time|counted'
    > stepsim predict $long --set parallel.pipeline=4 --set parallel.schedule=gpipe
    > stepsim predict $long --set parallel.pipeline=4 --dump-program
    a step: 16384 sequences of 1024 tokens, 16384 micro-batches of 1 a replica
    step time                      21.5 s
    warning: a step of 16384 micro-batches is long: 12 of them were simulated, and the rest counted; the timeline ends with those
    stepsim: --set train.global_batch=16384: gpipe keeps 16384 micro-batches of 12 layers in flight, too many to be simulated (parallel.schedule 1f1b does not)
    stepsim: --set train.global_batch=16384: 16384 micro-batches of 12 layers: a step so long is predicted, but neither executed nor dumped
    [2]

A search and a comparison count it, too, and see the same step; advice tries changes as they would be predicted, and a part of the step tells no sensitivity. As many micro-batches as fill a long pipeline are simulated.

    $ long="$ROOT/configs/gpt2-124m-gpu.yaml --set cluster.system=dgx-h100 --set cluster.gpus_per_node=1 --set train.micro_batch=1 --set train.global_batch=16384"
    > COLUMNS=999 stepsim predict $long -v 2>&1 | grep -E '^step time|^sensitivity|larger micro-batches'
    > COLUMNS=999 stepsim predict $long --set train.micro_batch=32 -q | grep '^step time'
    > COLUMNS=999 stepsim plan $long --set train.recompute=none 2>/dev/null | grep '^config'
    > COLUMNS=999 stepsim compare $long --systems dgx-h100 --gpus 1 --fixed-plan 2>/dev/null | grep -m 1 '^1'
    > stepsim plan $ROOT/configs/gpt2-124m-gpu.yaml --set cluster.system=dgx-h100 --gpus 2 --set train.micro_batch=1 --set train.global_batch=16384 --set parallel.pipeline=2 --set parallel.schedule=gpipe
    > COLUMNS=999 stepsim predict $ROOT/configs/pp-llama3-70b-64xh100.yaml -q --set model.preset=llama3-405b --set cluster.nodes=126 --set parallel.pipeline=126 --set train.global_batch=360 | grep '^step time'
    step time                     60.5 s
      larger micro-batches              20.0 s       33.1 %  3 fuse        --set train.micro_batch=32
    step time                   40.5 s
    config  dp 1 mb 1     60.5 s  32.6 s to 112 s     277 k  24.1 %  3.34 GiB  76.3 GiB      0 s  compute: gemm 51 % of the step
    1  dgx-h100     1     60.5 s  32.6 s to 112 s     277 k  24.1 %  3.34 GiB  76.3 GiB      0 s  dp 1 mb 1
    stepsim: no plan is legal on 2 ranks: --set train.global_batch=16384: gpipe keeps 16384 micro-batches of 12 layers in flight, too many to be simulated (parallel.schedule 1f1b does not)
    step time                      27.5 s

A target: time, energy, CO2 and money of a whole training, counted as compare counts them; JSON and page say the same.

    $ fsdp="$ROOT/configs/llama3-8b-fsdp-64xh100.yaml -q"
    > COLUMNS=999 stepsim predict $fsdp --target "1T tokens" | sed -n '/^For/,$p' | cut -c1-90
    > COLUMNS=999 stepsim predict $fsdp --target "1M steps" --set cost.co2_kg_per_kwh=0.1 --set cost.gpu_hour_usd=2 --json j --html h --csv c > table; grep -E '^For|^CO2|^rented|^    CO2' table
    > python3 -c '
    > import json; c = json.load(open("j"))["cost"]; print(c["tokens"], c["steps"], c["co2_kg"] / c["energy_kwh"], c["rented_usd"] / c["time_s"] * 3600)'
    > grep -c '<h2>The target' h; grep -c '^cost,' c; grep co2 c | cut -d, -f1-3
    > stepsim compare $ROOT/configs/llama3-8b-fsdp-64xh100.yaml --systems dgx-h100 --fixed-plan --target "1M steps" --set cost.co2_kg_per_kwh=0.1 --csv - | python3 -c '
    > import csv, json, sys; r = next(csv.DictReader(sys.stdin)); c = json.load(open("j"))["cost"]
    > print(*(abs(float(r[k]) / c[k] - 1) < 1e-8 for k in ("time_s", "energy_kwh", "co2_kg", "owned_usd")))'
    For 1.00 T tokens on 64 GPUs:
               amount  from
    ---------------------------------------------------------------------------------
    time    26.4 days  22.5 days to 31.0 days (90 % interval), 954 k steps
    energy   81.8 MWh  10.2 kW a host, PUE 1.58
    CO2        36.4 t  0.445 kg/kWh
    rented    $ 279 k  $ 6.88 a GPU and hour
    owned    $ 52.9 k  $ 400 k a host (unverified), 5 years; energy at $ 0.0806 a kWh
    Counted with
        life   5 years: Amazon's annual report for 2024 (10-K, 2025-02): servers written off o
        energy $ 0.0806 a kWh: US Energy Information Administration, industrial customers, mea
        PUE    1.58: Uptime Institute, mean of its Global Data Center Survey 2023 (journal.upt
        CO2    0.445 kg/kWh: International Energy Agency, Electricity 2025, chapter Emissions 
      dgx-h100 (NVIDIA DGX H100)
        power  10.2 kW a host: DGX H100 datasheet, as stas00/ml-engineering@744d01e18b network
        rent   $ 6.88 an hour a GPU: AWS p5.48xlarge / 8 GPUs, AWS official price feed 2026-09
        price  $ 400 k a host: street prices of 300,000 to 460,000 USD, undated, from memory *
    For 1.05 T tokens on 64 GPUs:
    CO2        8.58 t  0.1 kg/kWh
    rented   $ 85.2 k  $ 2.00 a GPU and hour
        CO2    0.1 kg/kWh: cost.co2_kg_per_kwh, $ROOT/configs/llama3-8b-fsdp-64xh100.yaml
    1048576000000.0 1000000.0 0.1 127.99999999999994
    1
    8
    cost,co2_kg,
    True True True True

This machine's power and prices are known to nobody; a plan that does not fit costs nothing that can be said.

    $ COLUMNS=999 stepsim predict $ROOT/configs/ddp-tiny.yaml -q --set run.execute=false --set cost.gpu_hour_usd=2 --target "15k steps" 2>/dev/null | grep -E '^(For|energy|CO2|owned)' | tr -s ' '
    > COLUMNS=999 stepsim predict $ROOT/configs/llama3-8b-fsdp-64xh100.yaml -q --set cluster.nodes=1 --set cluster.gpus_per_node=1 --target "1T tokens" | grep -E '^(time|energy|owned)'
    For 15.4 M tokens on 1 GPU:
    energy - not known: the catalogue has no power of this system or its GPUs
    CO2 - 0.445 kg/kWh
    owned - not known: the catalogue has no price of this system or its GPUs (cost.system_price_usd gives one)
    time         -  the plan does not fit in memory
    energy       -  10.2 kW a host, PUE 1.58
    owned        -  $ 400 k a host (unverified), 5 years; energy at $ 0.0806 a kWh

What is wrong with it:

    $ stepsim predict $ROOT/configs/ddp-tiny.yaml --set cluster.system=dgx-h100 --target "1T tokens in 30d"
    stepsim: --target 1T tokens in 30d: the config says how many GPUs; `stepsim compare` finds how many reach it in time
    [2]
    $ stepsim predict $ROOT/configs/ddp-tiny.yaml --set cluster.system=dgx-h100 --target "1T"
    stepsim: --target 1T: expected "TOKENS tokens in TIME", such as "15e12 tokens in 30d", "15e12 tokens" or "500k steps"
    [2]
    $ stepsim predict $ROOT/configs/ddp-tiny.yaml $ROOT/configs/ddp-tiny.yaml --target "1T tokens"
    stepsim: two configs print a table; outputs, --target and --dump-program take one config
    [2]
    $ stepsim sweep $ROOT/configs/ddp-tiny.yaml --target "1T tokens"
    stepsim: this command does not take --target
    [2]

Failures by GPU: the job's rate follows from the number of GPUs, and a target says how many to expect. 16,384 GPUs of Llama 3's rate (419 failures in 54 days, arXiv:2407.21783) fail every 54 x 24 / 419 = 3.093 h.

    $ cat > cost.py <<'END'
    > import json, sys
    > j = json.load(sys.stdin); p, c, k = j["prediction"], j["cost"], j["config"]["cluster"]
    > print(p["goodput"], p["checkpoint_interval_s"], k["mtbf_hours"], k["mtbf_gpu_hours"], round(c["time_s"] / 3600 / c["expected_interruptions"], 3))
    > END
    > fsdp="$ROOT/configs/llama3-8b-fsdp-64xh100.yaml -q --set cluster.checkpoint_s=60 --target 1e12tokens"
    > COLUMNS=999 stepsim predict $fsdp --set cluster.mtbf_gpu_hours=50677 | grep -E '^(goodput|time|interruptions)'
    > for nodes in 1 2; do stepsim predict $fsdp --set cluster.mtbf_gpu_hours=50677 --set cluster.nodes=$nodes --json - | python3 cost.py; done
    > stepsim predict $fsdp --set cluster.mtbf_hours=791.828125 --json - | python3 cost.py
    > stepsim predict $fsdp --set cluster.mtbf_gpu_hours=50677 --json - | python3 cost.py
    > stepsim predict $fsdp --set cluster.mtbf_gpu_hours=50677 --set cluster.nodes=2048 --set train.global_batch=32768 --json - | python3 cost.py
    goodput                        99.4 %               a checkpoint every 5.13 h
    time           26.6 days  22.7 days to 31.2 days (90 % interval), 954 k steps, goodput 99.4 %
    interruptions      0.807  one every 33.0 days, a checkpoint every 5.13 h
    0.99770520525392 52272.1286127802 0.0 50677.0 6334.625
    0.996754164462149 36950.2662872291 0.0 50677.0 3167.313
    0.993504917530337 18455.1493641027 791.828125 0.0 791.828
    0.993504917530337 18455.1493641027 0.0 50677.0 791.828
    0.894914467009875 1116.29152062927 0.0 50677.0 3.093

No line is wider than the page, which is 100 characters where there is no terminal:

    $ for c in $ROOT/configs/*.yaml; do stepsim predict $c --set cluster.system=dgx-h100 2>/dev/null; done | awk 'length > 100'
    $ COLUMNS=60 stepsim predict $ROOT/configs/ddp-gpt2-774m-32xl40s.yaml | sed -n '1,3p;/^Changes/,/^  16/p;/^Warning/,$p'
    A step takes 608 ms (90 % interval: 451 ms to 818 ms); 78 %
      of communication hides behind compute, the rest takes
      15.4 % of the step; it fits, 18.8 GiB are free.
    Changes that shorten the step, each alone; symptom: exposed
      communication (22 changes tried)
                                          saves  of the step
        tuning stage   with
    --------------------------------------------------------
      16-bit weights, fp32 master copy   142 ms       23.4 %
    $ stepsim predict $ROOT/configs/ddp-gpt2-774m-32xl40s.yaml -v 2>&1 | grep -v "^stepsim: " | awk "length > 100"
    $ COLUMNS=60 stepsim list gpuz
    stepsim: nothing to list under 'gpuz' (nearest: gpus)
    [2]

What does not fit is said first; --require-fit makes it an error. A sweep never names it as the best.

    $ fsdp=$ROOT/configs/llama3-8b-fsdp-64xh100.yaml
    > show() { stepsim "${@:2}" >out 2>err; echo "exit code $?"; head -n "$1" out; cat err; }
    > show 3 predict $fsdp -q --set parallel.strategy=ddp --require-fit
    > show 2 predict $fsdp -q --require-fit
    > show 4 predict $fsdp -q --set parallel.strategy=zero2 --set train.micro_batch=6 --set train.global_batch=384
    > show 6 predict $fsdp $ROOT/configs/finetune-llama2-13b.yaml --set parallel.strategy=ddp --require-fit
    > show 1 sweep $fsdp --vary parallel.strategy=ddp,zero1,fsdp --require-fit
    > show 2 sweep $fsdp --vary parallel.strategy=ddp,zero1 --require-fit
    > show 0 plan $fsdp --gpus 1 --set train.global_batch=8 --require-fit
    > show 2 compare $fsdp --systems dgx-h100 --fixed-plan --set parallel.strategy=ddp
    > show 0 topo --require-fit
    exit code 3
    DOES NOT FIT: a rank needs 151 GiB, the device has 79.6 GiB (71.8 GiB short; largest: optimizer
      state 59.8 GiB). With more memory: a step takes 2.49 s (90 % interval: 2.11 s to 2.95 s); 95 % of
      communication hides behind compute, the rest takes 0.5 % of the step.
    stepsim: --require-fit: it does not fit in memory
    exit code 0
    A step takes 2.40 s (90 % interval: 2.04 s to 2.81 s); 90 % of communication hides behind compute,
      the rest takes 0.9 % of the step; it fits, 64.6 GiB are free.
    exit code 0
    A step takes 7.03 s (90 % interval: 5.99 s to 8.25 s); 48 % of communication hides behind compute,
      the rest takes 1.9 % of the step; it fits, 7.97 GiB are free.
    llama3-8b (8.03 B parameters), zero2 on 64 ranks (dp 64), bf16
    a step: 384 sequences of 8192 tokens, 1 micro-batch of 6 a replica
    exit code 3
    DOES NOT FIT: A: a rank needs 151 GiB, the device has 79.6 GiB (71.8 GiB short; largest: optimizer
      state 59.8 GiB).
    DOES NOT FIT: B: a rank needs 269 GiB, the device has 79.6 GiB (190 GiB short; largest: gradients
      97.0 GiB).
      A: $ROOT/configs/llama3-8b-fsdp-64xh100.yaml
      B: $ROOT/configs/finetune-llama2-13b.yaml
    stepsim: --require-fit: not both fit in memory
    exit code 0
    Most tokens/s with parallel.strategy = fsdp: 438 k tokens/s, 2.40 s a step on 64 ranks.
    exit code 3
    DOES NOT FIT. None of this fits. With parallel.strategy = zero1 a rank needs 93.0 GiB, the device
      has 79.6 GiB (13.3 GiB short; largest: gradients 57.7 GiB).
    stepsim: --require-fit: none of this fits in memory
    exit code 3
    stepsim: --require-fit: no plan fits in memory
    exit code 0
    DOES NOT FIT. Nothing fits on any of the systems. On dgx-h100 a rank needs 151 GiB, the device has
      79.6 GiB (71.8 GiB short; largest: optimizer state 59.8 GiB).
    exit code 2
    stepsim: this command does not take --require-fit (known: --json, --smi, --nccl-xml, --hwloc-xml, --dot, --svg, --progress, --quiet, --verbose, --help)
