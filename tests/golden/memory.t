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
