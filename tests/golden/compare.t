NVLink against PCIe of the same GPU, with the plan as given.

    $ stepsim compare $ROOT/configs/llama3-8b-fsdp-64xh100.yaml --systems 'gpu:8 a100-sxm-80 nvswitch,gpu:8 a100-sxm-80 none' --gpus 8 --fixed-plan
    gpu:8 a100-sxm-80 nvswitch is ahead of gpu:8 a100-sxm-80 none: 1.26 times the tokens per dollar of
      owning, at 1.26 times the speed. The 90 % intervals of their costs overlap: the order is not sure.
    Equal number of GPUs: 8; the plan as given
    #  system                      GPUs  step time     90 % interval  tokens/s     MFU    memory
            free  exposed  plan
    --------------------------------------------------------------------------------------------
    1  gpu:8 a100-sxm-80 nvswitch     8     42.4 s  32.9 s to 54.6 s    24.7 k  60.5 %  28.6 GiB
        51.4 GiB   197 ms  dp 8 fsdp mb 2 full prefetch 1
    2  gpu:8 a100-sxm-80 none         8     53.4 s  41.5 s to 68.9 s    19.6 k  48.0 %  28.6 GiB
        51.4 GiB   3.24 s  dp 8 fsdp mb 2 full prefetch 1
    For 1.00 T tokens (--target "15e12 tokens" counts others):
    #  system                      hosts      power      time    energy   rented       owned
        rented for 1 B  owned for 1 B
    ----------------------------------------------------------------------------------------
    1  gpu:8 a100-sxm-80 nvswitch      1  3.20 kW +  468 days  56.8 MWh  $ 308 k  $ 28.1 k +
                 $ 308       $ 28.1 +
    2  gpu:8 a100-sxm-80 none          1  3.20 kW +  590 days  71.6 MWh  $ 389 k  $ 35.5 k +
                 $ 389       $ 35.5 +
    + of the GPUs alone, without their hosts
    Ranked by what owning costs.
      fastest:               gpu:8 a100-sxm-80 nvswitch, 1.26 times ahead of gpu:8 a100-sxm-80 none:
        their 90 % intervals overlap
      cheapest when rented:  gpu:8 a100-sxm-80 nvswitch, 1.26 times ahead of gpu:8 a100-sxm-80 none:
        their 90 % intervals overlap
      cheapest when owned:   gpu:8 a100-sxm-80 nvswitch, 1.26 times ahead of gpu:8 a100-sxm-80 none:
        their 90 % intervals overlap
      places 1 and 2 (gpu:8 a100-sxm-80 nvswitch, gpu:8 a100-sxm-80 none) may change: the intervals of
        their costs overlap
    Intervals of costs are those of the step time; prices have none.
    Rows share a part of their error: model, software, and the GPU if it is the same.
    That part cancels in a comparison, so an order can be right although intervals overlap.
    The size of that part is not known, so no probability is given.
    Words of a plan: dp: data-parallel ranks; mb: sequences of a micro-batch; full: layers are
      recomputed, all or so many; prefetch: units gathered ahead
    warning: nothing was measured on this machine: the rates of hardware and software come from
      published runs
    Counted with
        life   5 years: Amazon's annual report for 2024 (10-K, 2025-02): servers written off over
          5 years from 2025-01 on, before that 6; Meta 5.5, Microsoft and Alphabet 6
        energy $ 0.0806 a kWh: US Energy Information Administration, industrial customers, mean of
          2023 (8.06 cents/kWh), quoted by Statista 2024-03
        PUE    1.58: Uptime Institute, mean of its Global Data Center Survey 2023
          (journal.uptimeinstitute.com, 2024-02-07); hyperscale facilities reach 1.1 to 1.2
        CO2    0.445 kg/kWh: International Energy Agency, Electricity 2025, chapter Emissions
          (www.iea.org/reports/electricity-2025/emissions): mean of the world's power plants in 2024,
          445 g/kWh
      gpu:8 a100-sxm-80 nvswitch (hosts of 8 x NVIDIA A100 SXM4 80GB)
        power  400 W a GPU: configs/gpus/a100-sxm-80.yaml; what the host itself draws is not known
        rent   $ 3.43 an hour a GPU: AWS p4de.24xlarge / 8 GPUs, AWS official price feed 2026-09-10;
          Lambda 2.79; RunPod 1.59
        price  $ 11.5 k a GPU: used 8-15k, mercatus-ai.com 2026; what the host costs is not known
      gpu:8 a100-sxm-80 none (hosts of 8 x NVIDIA A100 SXM4 80GB)
        power  400 W a GPU: configs/gpus/a100-sxm-80.yaml; what the host itself draws is not known
        rent   $ 3.43 an hour a GPU: AWS p4de.24xlarge / 8 GPUs, AWS official price feed 2026-09-10;
          Lambda 2.79; RunPod 1.59
        price  $ 11.5 k a GPU: used 8-15k, mercatus-ai.com 2026; what the host costs is not known

A size of its own for each; the config's prices go before the catalogue's; the tokens are counted.

    $ COLUMNS=300 stepsim compare $ROOT/configs/llama3-8b-fsdp-64xh100.yaml --systems dgx-h100@8 --systems 'node:4 gpu:8 l40s nic:1x100Gb' --fixed-plan --target '300B tokens' --set cost.gpu_hour_usd=2 --set cost.system_price_usd=100000 --set cost.pue=1.2 --set cost.power_usd_per_kwh=0 | grep -vE '^warning|^  .*(GPU|NVIDIA)|Intervals|That part|The size'
    dgx-h100 is ahead of node:4 gpu:8 l40s nic:1x100Gb: 3.70 times the tokens per dollar of rent, at 0.93 times the speed. The 90 % intervals of their costs are apart.
    Systems of the sizes asked for; the plan as given
    #  system                         GPUs  step time     90 % interval  tokens/s     MFU    memory      free  exposed  plan
    ---------------------------------------------------------------------------------------------------------------------------------------------------
    1  dgx-h100                          8     18.6 s  15.9 s to 21.9 s    56.2 k  43.4 %  28.6 GiB  51.0 GiB   130 ms  dp 8 fsdp mb 2 full prefetch 1
    2  node:4 gpu:8 l40s nic:1x100Gb    32     17.3 s  13.3 s to 22.5 s    60.7 k  32.0 %  17.4 GiB  27.6 GiB   1.28 s  dp 32 fsdp mb 2 full prefetch 1
    For 300 B tokens:
    #  system                         hosts      power       time    energy    rented       owned  rented for 1 B  owned for 1 B
    ----------------------------------------------------------------------------------------------------------------------------
    1  dgx-h100                           1    10.2 kW  61.8 days  18.1 MWh  $ 23.7 k    $ 3.38 k          $ 79.0         $ 11.3
    2  node:4 gpu:8 l40s nic:1x100Gb      4  11.2 kW +  57.2 days  18.4 MWh  $ 87.8 k  $ 12.5 k +           $ 293       $ 41.7 +
    + of the GPUs alone, without their hosts
    Ranked by what renting costs (of node:4 gpu:8 l40s nic:1x100Gb the GPUs alone are counted).
      fastest:               node:4 gpu:8 l40s nic:1x100Gb, 1.08 times ahead of dgx-h100: their 90 % intervals overlap
      cheapest when rented:  dgx-h100, 3.70 times ahead of node:4 gpu:8 l40s nic:1x100Gb: their 90 % intervals are apart
    Rows share a part of their error: model, software, and the GPU if it is the same.
    Words of a plan: dp: data-parallel ranks; mb: sequences of a micro-batch; full: layers are recomputed, all or so many; prefetch: units gathered ahead
    node:4 gpu:8 l40s nic:1x100Gb: warning: the catalogue holds unverified numbers for hosts of 8 x NVIDIA L40S
    Counted with
        life   5 years: Amazon's annual report for 2024 (10-K, 2025-02): servers written off over 5 years from 2025-01 on, before that 6; Meta 5.5, Microsoft and Alphabet 6
        energy $ 0 a kWh: cost.power_usd_per_kwh, $ROOT/configs/llama3-8b-fsdp-64xh100.yaml
        PUE    1.20: cost.pue, $ROOT/configs/llama3-8b-fsdp-64xh100.yaml
        CO2    0.445 kg/kWh: International Energy Agency, Electricity 2025, chapter Emissions (www.iea.org/reports/electricity-2025/emissions): mean of the world's power plants in 2024, 445 g/kWh
        price  $ 100 k a host: cost.system_price_usd, $ROOT/configs/llama3-8b-fsdp-64xh100.yaml
        price  $ 100 k a host: cost.system_price_usd, $ROOT/configs/llama3-8b-fsdp-64xh100.yaml

Equal budgets: what is not for sale is rented for as long as the others are written off.

    $ COLUMNS=999 stepsim compare $ROOT/configs/llama3-8b-fsdp-64xh100.yaml --systems dgx-h100,aws-p5,dgx-a100 --fixed-plan --budget 2.5e6 | grep -E '^(Equal|#|[1-9-] |Ranked|[a-z0-9-]+: )'
    Equal budget: $ 2.50 M of hosts; the plan as given
    #  system    GPUs  step time     90 % interval  tokens/s     MFU    memory      free  exposed  plan
    1  dgx-h100    32     4.75 s  4.04 s to 5.57 s     221 k  42.6 %  17.4 GiB  62.3 GiB  40.8 ms  dp 32 fsdp mb 2 full prefetch 1
    2  dgx-a100    64     5.45 s  4.23 s to 7.03 s     192 k  58.8 %  15.0 GiB  65.0 GiB  36.7 ms  dp 64 fsdp mb 2 full prefetch 1
    3  aws-p5       8     18.6 s  15.9 s to 21.9 s    56.2 k  43.4 %  28.6 GiB  51.0 GiB   130 ms  dp 8 fsdp mb 2 full prefetch 1
    #  system    hosts      power       time    energy   rented       owned  rented for 1 B  owned for 1 B
    1  dgx-h100      4    40.8 kW  52.4 days  81.1 MWh  $ 277 k  $ 52.4 k *           $ 277       $ 52.4 *
    2  dgx-a100      8    52.0 kW  60.2 days   119 MWh  $ 317 k  $ 33.8 k +           $ 317       $ 33.8 +
    3  aws-p5        1  5.60 kW +   206 days  43.7 MWh  $ 272 k           -           $ 272              -
    Ranked by time (not for the same things: the budget buys the GPUs of dgx-a100 without their hosts).
    dgx-h100: 4 hosts: $ 400 k a host; $ 900 k left, which would pay for 6, but so many cannot share this batch
    dgx-a100: 8 hosts: $ 92.0 k a host (its GPUs alone); $ 1.76 M left, which would pay for 27, but $ROOT/configs/llama3-8b-fsdp-64xh100.yaml:7:17: train.global_batch: 128 does not split into micro-batches of 2 on 128 replicas (nearest that do: 256)
    aws-p5: 1 host: not for sale: $ 2.41 M for renting a host over 5 years; $ 87.6 k left
    warning: nothing was measured on this machine: the rates of hardware and software come from published runs

Equal targets: the fewest hosts that reach it.

    $ COLUMNS=999 stepsim compare $ROOT/configs/llama3-8b-fsdp-64xh100.yaml --systems dgx-h100,dgx-a100 --fixed-plan --set train.global_batch=1024 --target '1e12 tokens in 30d' | grep -E '^(Equal|#|[1-9-] |[a-z0-9-]+: )'
    > COLUMNS=999 stepsim compare $ROOT/configs/llama3-8b-fsdp-64xh100.yaml --systems dgx-h100,server-4xl40s --fixed-plan --target '1e12 tokens in 1d' | grep -E '^(Equal|[1-9-] |[a-z0-9-]+: )'
    Equal target: 1.00 T tokens in 30.0 days, which needs 386 k tokens/s; the plan as given
    #  system    GPUs  step time     90 % interval  tokens/s     MFU    memory      free  exposed  plan
    1  dgx-h100    64     19.2 s  16.3 s to 22.5 s     438 k  42.2 %  15.5 GiB  64.2 GiB   170 ms  dp 64 fsdp mb 2 full prefetch 1
    2  dgx-a100   256     11.1 s  8.66 s to 14.4 s     752 k  57.5 %  14.1 GiB  65.9 GiB  79.7 ms  dp 256 fsdp mb 2 full prefetch 1
    #  system    hosts    power       time    energy   rented       owned  rented for 1 B  owned for 1 B
    1  dgx-h100      8  81.6 kW  26.4 days  81.8 MWh  $ 279 k  $ 52.9 k *           $ 279       $ 52.9 *
    2  dgx-a100     32   208 kW  15.4 days   121 MWh  $ 324 k  $ 34.6 k +           $ 324       $ 34.6 +
    dgx-h100: 8 hosts of 8 GPUs: the target in 26.4 days; 4 miss it
    dgx-a100: 32 hosts of 8 GPUs: the target in 15.4 days; 16 miss it
    warning: nothing was measured on this machine: the rates of hardware and software come from published runs
    Equal target: 1.00 T tokens in 24.0 h, which needs 11.6 M tokens/s; the plan as given
    -  dgx-h100         64          -              -         -    -       -     -        -  none
    -  server-4xl40s    64          -              -         -    -       -     -        -  none
    -  dgx-h100           8    81.6 kW     -       -       -      -               -              -
    -  server-4xl40s     16  32.0 kW *     -       -       -      -               -              -
    dgx-h100: the target is not reached: 64 GPUs take 26.4 days, at 438 k tokens/s of the 11.6 M that are needed; 128 are refused: $ROOT/configs/llama3-8b-fsdp-64xh100.yaml:7:17: train.global_batch: 128 does not split into micro-batches of 2 on 128 replicas (nearest that do: 256)
    server-4xl40s: the target is not reached: 64 GPUs take 97.2 days, at 119 k tokens/s of the 11.6 M that are needed; 128 are refused: $ROOT/configs/llama3-8b-fsdp-64xh100.yaml:7:17: train.global_batch: 128 does not split into micro-batches of 2 on 128 replicas (nearest that do: 256)

Where few counts share the batch: a batch nearby that needs fewer hosts, and what the stated one costs.

    $ COLUMNS=999 stepsim compare $ROOT/configs/llama3-8b-fsdp-64xh100.yaml --systems dgx-h100 --fixed-plan --set train.global_batch=1024 --target '1e12 tokens in 34d' | grep -E '^(Equal|Batches|system|[a-z0-9-]+ )'
    > COLUMNS=999 stepsim compare $ROOT/configs/llama3-8b-fsdp-64xh100.yaml --systems dgx-h100 --fixed-plan --set train.global_batch=1024 --target '1e12 tokens in 34d' --json - | python3 -c '
    > import json, sys
    > j = json.load(sys.stdin)
    > r = j["results"][0]
    > print(abs(j["needed_tokens_per_s"] * j["within_s"] / j["tokens"] - 1) < 1e-12, r["gpus"])
    > for n in r["near_batches"]:
    >     print(n["global_batch"], n["hosts"], n["cost"]["time_s"] <= j["within_s"], n["cost"]["rented_usd"] < r["cost"]["rented_usd"])'
    Equal target: 1.00 T tokens in 34.0 days, which needs 340 k tokens/s; the plan as given
    1  dgx-h100    64     19.2 s  16.3 s to 22.5 s     438 k  42.2 %  15.5 GiB  64.2 GiB   170 ms  dp 64 fsdp mb 2 full prefetch 1
    1  dgx-h100      8  81.6 kW  26.4 days  81.8 MWh  $ 279 k  $ 52.9 k *           $ 279       $ 52.9 *
    Batches near the stated one (first line of a system) reach the target on fewer hosts, with the same plan:
    system    batch  hosts  GPUs  tokens/s       time   rented       owned  plan
    dgx-h100   1024      8    64     438 k  26.4 days  $ 279 k  $ 52.9 k *  dp 64 fsdp mb 2 full prefetch 1
    dgx-h100   1008      7    56     384 k  30.2 days  $ 279 k  $ 52.8 k *  dp 56 fsdp mb 2 full prefetch 1
    dgx-h100   1120      7    56     384 k  30.2 days  $ 279 k  $ 52.8 k *  dp 56 fsdp mb 2 full prefetch 1
    True 64
    1008 7.0 True True
    1120 7.0 True True

A host without a NIC is alone, and that is the reason.

    $ COLUMNS=999 stepsim compare $ROOT/configs/llama3-8b-fsdp-64xh100.yaml --systems 'gpu:8 h100-sxm' --fixed-plan --target '1e12 tokens in 30d' | grep -E '^gpu:8 h100-sxm: '
    > COLUMNS=999 stepsim compare $ROOT/configs/llama3-8b-fsdp-64xh100.yaml --systems 'gpu:8 h100-sxm' --fixed-plan --budget 1e6 | grep -E '^gpu:8 h100-sxm: '
    gpu:8 h100-sxm: the target is not reached: 8 GPUs take 206 days, at 56.2 k tokens/s of the 386 k that are needed; a host has no NIC to join it to others
    gpu:8 h100-sxm: 1 host: $ 240 k a host (its GPUs alone); $ 760 k left, which would pay for 4, but a host has no NIC to join it to others

Failures and checkpoints lengthen the days by 1/goodput, and all that is paid by the day.

    $ for set in '' '--set cluster.mtbf_hours=50 --set cluster.checkpoint_s=90s'; do stepsim compare $ROOT/configs/llama3-8b-fsdp-64xh100.yaml --systems dgx-h100 --fixed-plan $set --json - | python3 -c '
    > import json, sys
    > r = json.load(sys.stdin)["results"][0]
    > p, c = r["prediction"], r["cost"]
    > g = p["goodput"] or 1
    > print(abs(c["time_s"] * p["tokens_per_s"] * g / c["tokens"] - 1) < 1e-12, abs(c["rented_usd"] / c["time_s"] * 3600 / c["rent_usd_per_hour"]["value"] - 1) < 1e-12, g < 1)'; done
    True True False
    True True True

Where nothing fits: what is missing, and the last places.

    $ COLUMNS=999 stepsim compare $ROOT/configs/pp-llama3-70b-64xh100.yaml --systems server-8xrtx4090,dgx-b200 --gpus 8 --fixed-plan --set parallel.pipeline=1 --set parallel.tensor=8 --set train.global_batch=8 | grep -E '^([1-9-] |[a-z0-9-]+: does)'
    1  dgx-b200             8     3.90 s  2.60 s to 5.86 s    16.8 k  45.5 %  154 GiB  24.1 GiB   123 ms  tp 8 sp overlapped dp 1 mb 1
    -  server-8xrtx4090     8          -                 -         -       -  154 GiB  too much        -  nothing fits
    1  dgx-b200              1    14.3 kW  690 days  374 MWh  $ 1.89 M  $ 225 k        $ 1.89 k          $ 225
    -  server-8xrtx4090      1  4.50 kW *         -        -         -        -               -              -
    server-8xrtx4090: does not fit, 130 GiB a GPU are missing; the plan: tp 8 sp overlapped dp 1 mb 1

A price that nobody knows: ranked by time.

    $ COLUMNS=999 stepsim compare $ROOT/configs/llama3-8b-fsdp-64xh100.yaml --systems 'dgx-h100,gpu:8 h20' --gpus 8 --fixed-plan | grep -E '^(Ranked|[1-9-] |  (fastest|cheapest)|    .*not known)'
    1  dgx-h100      8     18.6 s  15.9 s to 21.9 s    56.2 k  43.4 %  28.6 GiB  51.0 GiB   130 ms  dp 8 fsdp mb 2 full prefetch 1
    2  gpu:8 h20     8     66.8 s  52.0 s to 85.8 s    15.7 k  80.9 %  28.6 GiB  67.0 GiB   131 ms  dp 8 fsdp mb 2 full prefetch 1
    1  dgx-h100       1    10.2 kW  206 days  79.6 MWh  $ 272 k  $ 51.5 k *           $ 272       $ 51.5 *
    2  gpu:8 h20      1  3.20 kW +  738 days  89.5 MWh        -           -               -              -
    Ranked by time (what owning gpu:8 h20 costs is not known; what renting gpu:8 h20 costs is not known).
      fastest:               dgx-h100, 3.58 times ahead of gpu:8 h20: their 90 % intervals are apart
      cheapest when rented:  what renting gpu:8 h20 costs is not known
      cheapest when owned:   what owning gpu:8 h20 costs is not known
        power  400 W a GPU: configs/gpus/h20.yaml; what the host itself draws is not known
        rent   not known: the catalogue has no rent of this system or its GPUs (cost.gpu_hour_usd gives one)
        price  not known: the catalogue has no price of this system or its GPUs (cost.system_price_usd gives one)

One GPU, and a hundred thousand.

    $ COLUMNS=999 stepsim compare $ROOT/configs/gpt2-124m-gpu.yaml --systems dgx-h100,server-8xl40s --gpus 1 --fixed-plan --set train.cuda_graph=false | grep -E '^(Equal|[1-9-] |[a-z0-9-]+: [0-9])'
    > COLUMNS=999 stepsim compare $ROOT/configs/llama3-8b-fsdp-64xh100.yaml --systems dgx-h100,server-8xl40s,gb200-nvl72 --gpus 100000 --fixed-plan --set train.micro_batch=1 --set train.global_batch=100000 | grep -E '^(Equal|[1-9-] |[a-z0-9-]+: )'
    Equal number of GPUs: 1; the plan as given
    1  server-8xl40s     1     505 ms  365 ms to 700 ms     130 k  30.8 %  5.89 GiB  39.1 GiB      0 s  dp 1 mb 8
    2  dgx-h100          1     167 ms  132 ms to 210 ms     393 k  34.2 %  5.89 GiB  73.8 GiB      0 s  dp 1 mb 8
    1  server-8xl40s  0.125  500 W *  89.3 days  1.69 MWh  $ 3.99 k  $ 656 *          $ 3.99      $ 0.656 *
    2  dgx-h100       0.125  1.27 kW  29.4 days  1.42 MWh  $ 4.86 k  $ 921 *          $ 4.86      $ 0.921 *
    server-8xl40s: 1 of a host's 8 GPUs work; that share of its power and price is counted
    dgx-h100: 1 of a host's 8 GPUs work; that share of its power and price is counted
    Equal number of GPUs: 100000; the plan as given
    1  server-8xl40s  100000     38.5 s  26.0 s to 56.9 s    21.3 M  3.6 %  9.47 GiB  35.5 GiB   33.0 s  dp 100000 fsdp mb 1 full prefetch 1
    2  dgx-h100       100000     25.1 s  17.6 s to 35.7 s    32.7 M  2.0 %  9.47 GiB  70.2 GiB   23.1 s  dp 100000 fsdp mb 1 full prefetch 1
    -  gb200-nvl72    100008          -                 -         -      -         -         -        -  none
    1  server-8xl40s  12.5 k  50.0 MW *  13.0 h  1.03 GWh  $ 2.43 M   $ 399 k *        $ 2.43 k        $ 399 *
    2  dgx-h100       12.5 k     128 MW  8.50 h  1.71 GWh  $ 5.84 M  $ 1.11 M *        $ 5.84 k     $ 1.11 k *
    -  gb200-nvl72    1.39 k     167 MW       -         -         -           -               -              -
    server-8xl40s: warning: the catalogue holds unverified numbers for Server, 8 x L40S behind PCIe switches
    gb200-nvl72: --set train.global_batch=100000: 100000 does not split into micro-batches of 1 on 100008 replicas (nearest that do: 100008)
    gb200-nvl72: 100000 GPUs are rounded up to 1389 whole hosts of 72
    warning: nothing was measured on this machine: the rates of hardware and software come from published runs

The best plan is nowhere slower than the one given; a key that --set gives is held.

    $ cat > small.yaml <<'EOF'
    > model: {preset: gpt2-774m, vocab_padding: 128}
    > train: {stack: pytorch-ddp, global_batch: 16, micro_batch: 1}
    > cluster: {system: dgx-h100, gpus_per_node: 4}
    > EOF
    > for how in --fixed-plan -q '--set parallel.tensor=2'; do stepsim compare small.yaml --systems dgx-h100,server-4xl40s $how --csv - | tail -n +2; done | python3 -c '
    > import csv, sys
    > rows = list(csv.reader(sys.stdin))
    > s = [sorted((r[1], float(r[5]), r[4]) for r in rows[i:i + 2]) for i in (0, 2, 4)]
    > print([s[1][k][1] <= s[0][k][1] and s[1][k][1] <= s[2][k][1] and "tp 2" in s[2][k][2] for k in (0, 1)])'
    [True, True]

JSON: a prediction for each system, with its config and system; the picture has a bar for each.

    $ stepsim compare $ROOT/configs/llama3-8b-fsdp-64xh100.yaml --systems dgx-h100,dgx-a100 --fixed-plan --json - | python3 -c '
    > import json, sys
    > j = json.load(sys.stdin)
    > print(sorted(j))
    > for r in j["results"]: print(r["rank"], r["name"], r["config"]["cluster"]["system"], r["system"]["name"], sorted(r))'
    > stepsim compare $ROOT/configs/llama3-8b-fsdp-64xh100.yaml --systems dgx-h100,dgx-a100 --fixed-plan --plot - | grep -c '<circle'
    ['budget_usd', 'commit', 'counted_with', 'equal', 'fixed_plan', 'needed_tokens_per_s', 'ranked_by', 'ranked_by_note', 'results', 'stepsim', 'tokens', 'within_s']
    1 dgx-h100 dgx-h100 NVIDIA DGX H100 ['comparison', 'config', 'cost', 'fits', 'gpus', 'hosts', 'measurement', 'missing_bytes', 'name', 'near_batches', 'not_looked_at', 'overlaps_previous', 'plan', 'prediction', 'rank', 'reason', 'size_note', 'system']
    2 dgx-a100 dgx-a100 NVIDIA DGX A100 640GB ['comparison', 'config', 'cost', 'fits', 'gpus', 'hosts', 'measurement', 'missing_bytes', 'name', 'near_batches', 'not_looked_at', 'overlaps_previous', 'plan', 'prediction', 'rank', 'reason', 'size_note', 'system']
    2

What is wrong with it:

    $ stepsim compare $ROOT/configs/quickstart.yaml
    stepsim: --systems A,B,... is missing: which systems are to be compared? (`stepsim list systems`)
    [2]
    $ stepsim compare $ROOT/configs/llama3-8b-fsdp-64xh100.yaml --systems dgx-h100,dgx-h300
    stepsim: --systems: unknown system 'dgx-h300' (nearest: dgx-b300)
    [2]
    $ stepsim compare $ROOT/configs/llama3-8b-fsdp-64xh100.yaml --systems dgx-h100,,dgx-a100
    stepsim: --systems: a name is empty; expected names, files or lines such as "gpu:8 rtx4090", separated by commas
    [2]
    $ stepsim compare $ROOT/configs/llama3-8b-fsdp-64xh100.yaml --systems dgx-h100@many
    stepsim: --systems dgx-h100@many: expected a number of GPUs from 1 to 10000000 behind @, such as dgx-h100@16
    [2]
    $ stepsim compare $ROOT/configs/llama3-8b-fsdp-64xh100.yaml --systems dgx-h100 --target '15e12 tokens in a month'
    stepsim: --target 15e12 tokens in a month: expected "TOKENS tokens in TIME", such as "15e12 tokens in 30d", "15e12 tokens" or "500k steps"
    [2]
    $ stepsim compare $ROOT/configs/llama3-8b-fsdp-64xh100.yaml --systems dgx-h100 --budget much
    stepsim: --budget: expected a price such as 2.5USD (USD, with k M G T P; k M B T alone), got "much"
    [2]
    $ stepsim compare $ROOT/configs/llama3-8b-fsdp-64xh100.yaml --systems dgx-h100 --budget 0
    stepsim: --budget 0: expected an amount above 0
    [2]
    $ stepsim compare $ROOT/configs/llama3-8b-fsdp-64xh100.yaml --systems dgx-h100 --budget 2e6 --target '1e12 tokens in 30d'
    stepsim: --budget and --target both say how many hosts: give one of them, or the tokens without a time
    [2]
    $ stepsim compare $ROOT/configs/llama3-8b-fsdp-64xh100.yaml --systems dgx-h100@8 --gpus 16
    stepsim: --systems dgx-h100@...: has a size of its own, and --gpus decides it: give one of them
    [2]
    $ stepsim compare $ROOT/configs/llama3-8b-fsdp-64xh100.yaml --systems dgx-h100 --gpus none
    stepsim: --gpus none: expected a whole number from 1 to 10000000
    [2]
    $ stepsim compare $ROOT/configs/quickstart.yaml --systems dgx-h100
    stepsim: $ROOT/configs/quickstart.yaml: cluster.system is auto, and no number of GPUs is given: --gpus N, --budget or --target says how many
    [2]
    $ stepsim compare $ROOT/configs/llama3-8b-fsdp-64xh100.yaml --systems dgx-h100 --gpus 24 --fixed-plan
    stepsim: $ROOT/configs/llama3-8b-fsdp-64xh100.yaml:7:17: train.global_batch: 128 does not split into micro-batches of 2 on 24 replicas (nearest that do: 96, 144)
    [2]
