Peak memory beside what sources report: a line for each source that does. Errors change with the model: what is compared here is which rows count, and that what ran fits.

    $ COLUMNS=999 stepsim validate $ROOT/tests/validation/steps-sample.csv | sed -n '/^memory, /,/^$/p' | awk '{ print $1, $2, $3, $4, $5, $6 }' | head -n 4
    memory, errors in % rows median
    --------------------------------------------------------------------------------------------     
    HF Ultra-Scale Playbook (nanotron), tight 40
    BigScience 176B prequel chronicles, tight 4
    $ COLUMNS=999 stepsim validate $ROOT/tests/validation/steps-sample.csv | awk '/tight/ && /Ultra-Scale/ && $NF == "100.0" { print "all fit" }'
    all fit

With -v, what a stack keeps beside the buffers that ops touch, and what the overhead consists of:

    $ stepsim predict $ROOT/configs/llama3-8b-fsdp-64xh100.yaml -v --set train.stack=nanotron --set parallel.strategy=zero1 2>&1 >/dev/null | sed -n '/^memory besides/,$p'
    memory besides the ops' buffers  count      each
    ------------------------------------------------
    CUDA context and libraries           1   768 MiB
    NCCL communicator                    1   256 MiB
    gradient copies                      1  15.0 GiB
    logit copies                         1  19.6 GiB
    rotated queries and keys            32   320 MiB
    gate                                32   448 MiB
    flattened gradients                  1  59.8 GiB

hsdp has a communicator for the groups of parts and one for their replicas.

    $ stepsim predict $ROOT/configs/llama3-8b-fsdp-64xh100.yaml -v --set parallel.strategy=hsdp 2>&1 >/dev/null | grep communicator
    NCCL communicator                    2  256 MiB

--memory-snapshot: the predicted memory over the step as PyTorch's viewer takes it; a device a pipeline stage.

    $ for c in llama3-8b-fsdp-64xh100 pp-tiny zero1-tiny ep-tiny; do stepsim predict $ROOT/configs/$c.yaml --set cluster.system=dgx-h100 --memory-snapshot s.pickle --json s.json -q >/dev/null && python3 $ROOT/tests/snapshot_check.py s.pickle s.json; done
    > stepsim predict $ROOT/configs/pp-tiny.yaml --set cluster.system=dgx-h100 --memory-snapshot /nowhere/s.pickle -q
    > python3 -c "import pickle; print(*sorted({e['frames'][0]['filename'] for e in pickle.load(open('s.pickle', 'rb'))['device_traces'][0] if 'frames' in e}), sep=', ')"
    1 devices; the peak is the predicted memory: True
    4 devices; the peak is the predicted memory: True
    1 devices; the peak is the predicted memory: True
    1 devices; the peak is the predicted memory: True
    stepsim: cannot write /nowhere/s.pickle: No such file or directory
    activations, buffers, gradients, optimizer states, weights

Frozen matrices under adapters are stored in fp8 where the config says so, a byte each, and only activations are cast; a frozen block alone is refused:

    $ printf 'model: {preset: llama2-7b, seq_len: 4096}\ntrain: {stack: megatron-core, global_batch: 1, micro_batch: 1, dtype: fp8, lora_rank: 16, master_weights: true}\ncluster: {system: "gpu:1 h100-sxm"}\n' >lora.yaml
    > for dtype in bf16 fp8; do stepsim predict lora.yaml --set train.param_dtype=$dtype -v 2>&1 | grep -E '^cast|^  weights'; done
    > stepsim predict lora.yaml --set train.param_dtype=fp8 --set train.lora_rank=0 --set train.freeze=mlp
    cast                 321           -  39.2 GiB    33.4 ms             -  1.26 TB/s
      weights                 12.6 GiB
    cast                 193           -  21.1 GiB    18.0 ms             -  1.26 TB/s
      weights                 6.58 GiB
    stepsim: --set train.param_dtype=fp8: fp8 is not modelled yet with frozen parameters
    [2]

A loss by chunks of tokens keeps the logits of one; the executor has no such loss:

    $ for chunk in 0 256; do stepsim predict $ROOT/configs/llama3-8b-fsdp-64xh100.yaml -v --set train.loss_chunk=$chunk 2>&1 | grep -E '^logit|^  activations'; done
    > stepsim $ROOT/configs/ddp-tiny.yaml --set train.loss_chunk=8 --set run.execute=true -q
      activations                8.29 GiB
    logits of a chunk                    1  62.6 MiB
      activations                6.88 GiB
    stepsim: $ROOT/configs/ddp-tiny.yaml: run.execute is true, but train.loss_chunk is predicted, not executed
    [2]

Attention in fp8 takes a GPU's own rates, on Blackwell; the products must be in fp8, too:

    $ printf 'model: {preset: llama2-7b, seq_len: 4096}\ntrain: {stack: megatron-core, global_batch: 1, micro_batch: 1, dtype: fp8, master_weights: true}\n' >fp8.yaml
    > for gpu in b200 h100-sxm; do for dtype in auto fp8; do stepsim predict fp8.yaml --set cluster.system="gpu:1 $gpu" --set train.attention_dtype=$dtype -v 2>&1 | grep '^attention_grad'; done; done
    > stepsim predict fp8.yaml --set train.dtype=bf16 --set train.attention_dtype=fp8
    attention_grad        32  11.0 TFLOP  8.03 GiB    12.9 ms   855 TFLOP/s   671 GB/s
    attention_grad        32  11.0 TFLOP  8.03 GiB    9.86 ms  1.12 PFLOP/s   875 GB/s
    attention_grad        32  11.0 TFLOP  8.03 GiB    24.2 ms   455 TFLOP/s   357 GB/s
    attention_grad        32  11.0 TFLOP  8.03 GiB    24.2 ms   455 TFLOP/s   357 GB/s
    stepsim: --set train.attention_dtype=fp8: fp8 goes with attention flash and dtype fp8, mxfp8 or nvfp4
    [2]
