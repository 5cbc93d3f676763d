A profile measured on GPUs (made up here) prices the same GPUs elsewhere; what it has no entry for stays with the catalogue, and the prediction says so:

    $ COLUMNS=999 stepsim predict $ROOT/tests/golden/profiles/plan.yaml -q 2>&1 | grep -E '^on:|gemm|MFU|no entry for (gemm|add|attention):|all_reduce'
    on: NVIDIA DGX H100, 8 x NVIDIA H100 SXM5 80GB (catalogue configs/systems/dgx-h100.yaml + profile of 2026-11-21T00:00:00Z)
    MFU                            29.9 %
      gemm (147)                  10.2 ms       42.8 %  compute
      all_reduce (13)             6.24 ms       26.2 %  link
    Bottleneck: compute: gemm 43 % of the step
    warning: the profile has no entry for add: priced from peak rates

By its bare name, of the catalogue's folder:

    $ mkdir configs configs/profiles && ln -s $ROOT/configs/gpus $ROOT/configs/systems $ROOT/configs/models $ROOT/configs/stacks $ROOT/configs/families $ROOT/configs/fabrics $ROOT/configs/model $ROOT/configs/sources configs && cp $ROOT/tests/golden/profiles/made-up-h100.yaml configs/profiles/lab.yaml
    > STEPSIM_HOME=$PWD COLUMNS=999 stepsim predict $ROOT/tests/golden/profiles/plan.yaml --set cluster.profile=lab -q | grep -E '^on:'
    > STEPSIM_HOME=$PWD stepsim predict $ROOT/tests/golden/profiles/plan.yaml --set cluster.profile=lap -q
    on: NVIDIA DGX H100, 8 x NVIDIA H100 SXM5 80GB (catalogue configs/systems/dgx-h100.yaml + profile of 2026-11-21T00:00:00Z)
    stepsim: --set cluster.profile=lap: no file 'lap', and no profile of that name in configs/profiles (nearest: lab)
    [2]

    $ stepsim predict $ROOT/tests/golden/profiles/plan.yaml --set cluster.profile=lab -q
    stepsim: --set cluster.profile=lab: no file 'lab', and no profile of that name in configs/profiles (known: h100-sxm, h200-sxm)
    [2]

Entries of GPUs mean nothing on cores, and the other way round:

    $ stepsim predict $ROOT/configs/ddp-tiny.yaml --set cluster.profile=$ROOT/tests/golden/profiles/made-up-h100.yaml --set parallel.data=1 -q
    stepsim: --set cluster.profile=$ROOT/tests/golden/profiles/made-up-h100.yaml: $ROOT/tests/golden/profiles/made-up-h100.yaml was measured on GPUs (NVIDIA H100 80GB HBM3, 132 SMs), and this prediction is for cores of a host
    [2]

    $ sed 's/cuda/host/' $ROOT/tests/golden/profiles/made-up-h100.yaml > cores.yaml
    > stepsim predict $ROOT/tests/golden/profiles/plan.yaml --set cluster.profile=cores.yaml -q
    stepsim: --set cluster.profile=cores.yaml: cores.yaml was measured on cores of a host (NVIDIA H100 80GB HBM3, 132 SMs), and this prediction is for GPUs
    [2]
