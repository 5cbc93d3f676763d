Offloading: what crosses to the host and back, what it leaves on the device, and what the host's update costs.

    $ for o in none optimizer optimizer+params activations; do echo "$o"
    >   stepsim predict $ROOT/configs/llama3-8b-fsdp-64xh100.yaml --set train.offload=$o 2>/dev/null | grep -E '^step time|^  copy  |^  optimizer  |^  weights|^  gradients|^  optimizer state|^  activations|total'; done
    none
    step time                      2.40 s
      optimizer                   1.24 ms        0.1 %
      weights                     479 MiB
      optimizer state             957 MiB
      activations                8.29 GiB
      total                      15.0 GiB               fits in 79.6 GiB
    optimizer
    step time                      2.47 s
      copy                        1.07 ms        0.0 %
      optimizer                   73.9 ms        3.0 %
      weights                     479 MiB
      activations                8.29 GiB
      total                      14.1 GiB               fits in 79.6 GiB
    optimizer+params
    step time                      2.48 s
      copy                        7.95 ms        0.3 %
      optimizer                   73.9 ms        3.0 %
      activations                8.29 GiB
      total                      13.6 GiB               fits in 79.6 GiB
    activations
    step time                      2.40 s
      optimizer                   1.24 ms        0.1 %
      weights                     479 MiB
      optimizer state             957 MiB
      activations                4.41 GiB
      total                      11.1 GiB               fits in 79.6 GiB

The interval is as wide as hosts differ; a warning says what was taken, and how much memory each host needs.

    $ COLUMNS=999 stepsim predict $ROOT/configs/llama3-8b-fsdp-64xh100.yaml --set train.offload=optimizer 2>&1 | grep -E '^90 %|offload'
    90 % interval of the prediction: 2.09 s to 2.97 s
    warning: offload: 15.0 GiB of each host's memory are in use
    warning: offload: the host's update is taken at 390 GB/s for all ranks of a host; hosts, threads and bindings differ by a factor of 4 either way, and so does the interval

With two micro-batches the first one's sum comes in, is added to and goes out again; the host updates when all is done, and the copies of weights follow one by one.

    $ stepsim predict $ROOT/configs/zero2-tiny.yaml --set cluster.system=dgx-h100 --set cluster.gpus_per_node=2 --set train.offload=optimizer --set train.global_batch=16 --set model.layers=1 --dump-program | grep -E ' copy  |gradient shard| host ' | grep -v 'mb[23]'
         1 copy       input forward copy mb0 [1024] src:r=11+0 dst:w=12+0
        40 copy       gradients backward copy bucket 0 mb0 [263936] src:r=37+0 dst:w=1+0 after 26
        41 copy       gradients backward copy bucket 1 mb0 [280576] src:r=42+0 dst:w=6+0 after 39
        42 copy       input forward copy mb1 [1024] src:r=11+1024 dst:w=43+0
        81 copy       gradients backward copy bucket 0 mb1 [263936] src:r=1+0 dst:w=74+0
        82 compute    gradient shard backward add bucket 0 mb1 [1 65984] x:r=74+0 y:r=68+0 sum:w=74+0 after 81,67
        83 copy       gradients backward copy bucket 0 mb1 [263936] src:r=74+0 dst:w=1+0 after 82
        84 copy       gradients backward copy bucket 1 mb1 [280576] src:r=6+0 dst:w=75+0
        85 compute    gradient shard backward add bucket 1 mb1 [1 70144] x:r=75+0 y:r=73+0 sum:w=75+0 after 84,80
        86 copy       gradients backward copy bucket 1 mb1 [280576] src:r=75+0 dst:w=6+0 after 85
       177 host       update optimizer optimizer bucket 0 [65984] p:rw=2+0 g:r=1+0 m:rw=3+0 v:rw=4+0 after 175
       178 copy       weights optimizer copy bucket 0 [263936] src:r=2+0 dst:w=0+0 after 177
       180 host       update optimizer optimizer bucket 1 [70144] p:rw=7+0 g:r=6+0 m:rw=8+0 v:rw=9+0 after 176
       181 copy       weights optimizer copy bucket 1 [280576] src:r=7+0 dst:w=5+0 after 180
    $ stepsim predict $ROOT/configs/ddp-tiny.yaml --set cluster.system=dgx-h100 --set cluster.gpus_per_node=1 --set train.offload=activations --set train.recompute=full --set model.layers=3 --set train.global_batch=8 --dump-program | grep -E ' copy  |norm1.*norm ' | grep -v 'mb[123]'
         1 copy       input forward copy mb0 [1024] src:r=21+0 dst:w=22+0
         4 compute    L0 norm1 forward norm mb0 [128 128] x:r=23+0 w:r=16+527872 b:r=16+527360 y:w=24+0 stats:w=25+0
        13 copy       L0 activations forward copy mb0 [65536] src:r=23+0 dst:w=37+0 after 3
        14 compute    L1 norm1 forward norm mb0 [128 128] x:r=36+0 w:r=12+526848 b:r=12+526336 y:w=38+0 stats:w=39+0
        23 copy       L1 activations forward copy mb0 [65536] src:r=36+0 dst:w=51+0 after 12
        24 compute    L2 norm1 forward norm mb0 [128 128] x:r=50+0 w:r=4+527872 b:r=4+527360 y:w=52+0 stats:w=53+0 after 13
        39 copy       L1 activations backward copy mb0 [65536] src:r=51+0 dst:w=70+0 after 38
        40 compute    L2 norm1 backward norm mb0 [128 128] x:r=50+0 w:r=4+527872 b:r=4+527360 y:w=71+0 stats:w=72+0
        63 copy       L0 activations backward copy mb0 [65536] src:r=37+0 dst:w=89+0 after 62
        64 compute    L1 norm1 backward norm mb0 [128 128] x:r=70+0 w:r=12+526848 b:r=12+526336 y:w=90+0 stats:w=91+0 after 39
        87 compute    L0 norm1 backward norm mb0 [128 128] x:r=89+0 w:r=16+527872 b:r=16+527360 y:w=108+0 stats:w=109+0 after 63

On cores it is executed; a sliding window, too.

    $ for key in train.offload=optimizer train.offload=activations model.sliding_window=16; do stepsim $ROOT/configs/ddp-tiny.yaml --set run.backend=host --set run.steps=1 --set $key 2>/dev/null | grep -oE "every collective's sum verified|fits in"; done
    fits in
    every collective's sum verified
    fits in
    every collective's sum verified
    fits in
    every collective's sum verified
