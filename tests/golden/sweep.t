The cross product, the last key fastest; what cannot be predicted says why in its row.

    $ stepsim sweep $ROOT/configs/llama3-8b-fsdp-64xh100.yaml --vary cluster.nodes=4,8 --vary train.micro_batch=2,3 | grep -v -e ----
    cluster.nodes  train.micro_batch  ranks  step time  tokens/s     MFU  exposed  overlap    memory  bottleneck
                4                  2     32     4.49 s     233 k  45.0 %  40.9 ms   89.9 %  17.4 GiB  compute: gemm 69 % of the step
                4                  3                                                                  $ROOT/configs/llama3-8b-fsdp-64xh100.yaml:7:17: train.global_batch: 128 does not split into micro-batches of 3 on 32 replicas (nearest that do: 96, 192)
                8                  2     64     2.27 s     462 k  44.6 %  21.3 ms   90.1 %  15.5 GiB  compute: gemm 69 % of the step
                8                  3                                                                  $ROOT/configs/llama3-8b-fsdp-64xh100.yaml:7:17: train.global_batch: 128 does not split into micro-batches of 3 on 64 replicas (nearest that do: 192)

The same as CSV; a value in brackets keeps its commas.

    $ stepsim sweep $ROOT/configs/pp-tiny.yaml --set cluster.system=dgx-h100 --set cluster.gpus_per_node=4 --vary 'parallel.layers_per_stage=[1,1,1,1],[2,1,1,0]' --csv - | cut -d, -f1-6 | head -n 2
    parallel.layers_per_stage,ranks,step_time_s,interval90_low_s,interval90_high_s,tokens_per_s
    "[1,1,1,1]",4,0.001085

The picture has a line for each value of the second key.

    $ stepsim sweep $ROOT/configs/llama3-8b-fsdp-64xh100.yaml --vary cluster.nodes=4,8,16 --vary train.recompute=none,full --plot - | grep -cE 'polyline|circle'
    7

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
