What is wrong with a command line: one line, the nearest name, exit code 2. (Wrong configs are in bad/.)

    $ stepsim
    stepsim: CONFIG.yaml missing; `stepsim --help` shows what there is
    [2]

    $ stepsim prdict x.yaml
    stepsim: 'prdict' is neither a command (nearest: predict) nor a config file that exists
    [2]

    $ stepsim quickstart
    stepsim: 'quickstart' is neither a command (`stepsim --help` lists them) nor a config file that exists
    [2]

    $ stepsim nowhere.yaml
    stepsim: cannot read nowhere.yaml: No such file or directory
    [2]

    $ stepsim predict
    stepsim: predict: CONFIG.yaml missing (or --model NAME); `stepsim predict --help` shows what there is
    [2]

    $ stepsim predict a.yaml b.yaml
    stepsim: cannot read a.yaml: No such file or directory
    [2]

    $ stepsim predict --jsn out a.yaml
    stepsim: unknown option --jsn (nearest: --json)
    [2]

    $ stepsim predict a.yaml --json
    stepsim: --json needs a value: FILE
    [2]

    $ stepsim predict a.yaml --json=
    stepsim: --json: expected a path, or - for standard output
    [2]

    $ stepsim predict --max-error ten a.yaml
    stepsim: --max-error: expected a number such as 1.5 (no unit), got "ten"
    [2]

    $ stepsim predict --max-error -3 a.yaml
    stepsim: --max-error -3: expected a number of per cent, 0 or more
    [2]

    $ stepsim predict --progress sometimes a.yaml
    stepsim: --progress: unknown value 'sometimes' (known: auto, always, never)
    [2]

    $ stepsim predict --set model.layers $ROOT/configs/ddp-tiny.yaml
    stepsim: --set model.layers: expected KEY=VALUE, such as train.micro_batch=4
    [2]

    $ stepsim predict --json - --trace - a.yaml
    stepsim: --json - and --trace - cannot both be standard output
    [2]
    $ stepsim predict $ROOT/configs/ddp-tiny.yaml --json out --html out
    stepsim: --json and --html both write out
    [2]

    $ stepsim predict --quiet=yes a.yaml
    stepsim: --quiet takes no value
    [2]

    $ stepsim list gpuz
    stepsim: nothing to list under 'gpuz' (nearest: gpus)
    [2]

    $ stepsim list gpus --json out
    stepsim: this command does not take --json (known: --progress, --quiet, --verbose, --help)
    [2]

    $ stepsim calibrate --json out
    stepsim: this command does not take --json (known: --output, --backend, --share-gpu, --progress, --quiet, --verbose, --help)
    [2]

    $ stepsim -x
    stepsim: unknown option -x (`stepsim COMMAND --help` lists them)
    [2]

A name without a near one: the command that lists the names. A part of several: all of them.

    $ stepsim predict --model palm-540b
    > stepsim predict --model qwen3-7b
    > stepsim predict --model llama-3.1-8b 2>&1 | head -1
    > stepsim predict --model llama3-8b --set model.preset=llama-3.1-8b
    > stepsim predict --model llama3-8b --system h100
    > stepsim predict --model llama3-8b --strategy tensor
    stepsim: --model palm-540b: model.preset: unknown preset "palm-540b" (`stepsim list models` lists them)
    stepsim: --model qwen3-7b: model.preset: unknown preset "qwen3-7b" (nearest: qwen3-4b)
    stepsim: --model llama-3.1-8b: taken as the preset llama3.1-8b
    stepsim: --set model.preset=llama-3.1-8b: unknown preset "llama-3.1-8b" (nearest: llama3.1-8b, which is this model)
    stepsim: --system h100: unknown system 'h100' (nearest: azure-nd-h100-v5, dgx-h100, oci-h100)
    stepsim: --strategy tensor: unknown value "tensor" (known: ddp, zero1, zero2, fsdp, hsdp, none)
    [2]

An accuracy limit needs a measurement:

    $ stepsim predict $ROOT/configs/llama3-8b-fsdp-64xh100.yaml --max-error 10
    stepsim: --max-error needs a measurement, and nothing is executed
    [2]

    $ stepsim $ROOT/configs/llama3-8b-fsdp-64xh100.yaml --max-error 10
    stepsim: --max-error needs a measurement, and nothing is executed: cluster.system dgx-h100 is not this machine (--set cluster.system=auto executes here)
    [2]

Executing what this machine cannot:

    $ stepsim $ROOT/configs/llama3-8b-fsdp-64xh100.yaml --set run.execute=true
    stepsim: $ROOT/configs/llama3-8b-fsdp-64xh100.yaml: run.execute is true, but cluster.system dgx-h100 is not this machine (--set cluster.system=auto executes here)
    [2]

    $ stepsim $ROOT/configs/ddp-tiny.yaml --set train.dtype=bf16 --set run.execute=true --set parallel.data=1
    stepsim: $ROOT/configs/ddp-tiny.yaml: run.execute is true, but this machine's cores compute in fp32 only, and train.dtype is bf16
    [2]

A plan for more ranks than were ever measured here is predicted from one rank's profile, which is made on the way, and says so:

    $ COLUMNS=999 stepsim predict $ROOT/configs/ddp-tiny.yaml --set parallel.data=4 -q | grep -c 'warning: measured with 1 rank'
    1

More hosts than there are: their network is not known.

    $ COLUMNS=999 stepsim predict $ROOT/configs/ddp-tiny.yaml --set cluster.nodes=2 --set cluster.gpus_per_node=1 -q | grep cluster.nodes
    warning: cluster.nodes is 2, but this run has 1 (cluster.system: auto): no network to others is counted; mpirun over all of them measures it

A file that cannot be written: before any work, so that nothing is lost with it.

    $ stepsim plan $ROOT/configs/llama3-8b-fsdp-64xh100.yaml --write nowhere/best.yaml
    stepsim: cannot write nowhere/best.yaml: No such file or directory
    [2]
    $ stepsim compare $ROOT/configs/llama3-8b-fsdp-64xh100.yaml --systems dgx-h100 --html .
    stepsim: cannot write .: Is a directory
    [2]
    $ stepsim calibrate -o nowhere/profile.yaml
    stepsim: cannot write nowhere/profile.yaml: No such file or directory
    [2]
    $ stepsim predict $ROOT/configs/llama3-8b-fsdp-64xh100.yaml --json /nowhere/x.json > /dev/null
    stepsim: cannot write /nowhere/x.json: No such file or directory
    [2]

Another catalogue than the one beside the binary:

    $ STEPSIM_HOME=/nowhere stepsim list gpus
    stepsim: STEPSIM_HOME=/nowhere does not hold configs/gpus
    [2]

    $ stepsim roofline --dtype bf17
    stepsim: --dtype bf17: no such format (nearest: bf16)
    [2]

    $ stepsim roofline --dtype fp32 --dtype bf16
    stepsim: --dtype is given twice: fp32 and bf16
    [2]

    $ stepsim roofline --csv - --plot -
    stepsim: --csv - and --plot - cannot both be standard output
    [2]

    $ stepsim predict --plot out.svg configs/quickstart.yaml
    stepsim: this command does not take --plot
    [2]

    $ stepsim roofline --time 0
    stepsim: --time 0: expected a time above 0
    [2]

Standard output that cannot be written, whether it was printed or asked for with -:

    $ stepsim list gpus > /dev/full
    stepsim: cannot write standard output: No space left on device
    [1]

    $ stepsim --version > /dev/full
    stepsim: cannot write standard output: No space left on device
    [1]

    $ stepsim predict $ROOT/configs/gpt2-124m-gpu.yaml -q --set cluster.system=dgx-h100 --dump-program > /dev/full
    stepsim: cannot write standard output: No space left on device
    [1]

What users of other tools type first: a key as an option, a preset as a file, a GPU as a system.

    $ stepsim predict --model llama3-8b --tensor-parallel-size=2
    > stepsim predict llama3-8b
    > stepsim predict --model llama3-8b --system rtx4090
    stepsim: unknown option --tensor-parallel-size: a key of the config (--set parallel.tensor=VALUE)
    stepsim: no file llama3-8b; the preset of this name is --model llama3-8b
    stepsim: --system rtx4090: unknown system 'rtx4090', a GPU: a line describes a host, such as "gpu:8 rtx4090"
    [2]

Sizes in the unit of the key:

    $ stepsim predict $ROOT/configs/ddp-tiny.yaml --set parallel.bucket_mb=2500GB
    stepsim: --set parallel.bucket_mb=2500GB: expected a size from 1e-06 to 1e+06 MiB, got "2500GB"
    [2]

What a user asks for twice, or by another ending or number than there is.

    $ echo 'model: {preset: gpt2-124m}' >own.yaml
    > stepsim compare own.yaml --systems dgx-h100,dgx-a100,dgx-h100
    > stepsim compare own.yaml --systems dgx-h100@8,dgx-h100@16 --fixed-plan | grep -o '^dgx[^:]*'
    > stepsim compare own.yaml --systems dgx-h100 --target '1e19 tokens in 30d'
    > stepsim sweep own.yaml --vary train.micro_batch=1,2 --plot sweep.gif
    > stepsim import own.yaml
    > stepsim import /dev/null
    stepsim: --systems: dgx-h100 stands twice
    dgx-h100@16
    stepsim: --target 1e19 tokens in 30d: more than 1e18 tokens or steps
    stepsim: --plot sweep.gif: SVG (.svg) and PNG (.png) are drawn
    stepsim: own.yaml:1:1: model: this is a CONFIG.yaml already: `stepsim predict` and all other commands read it as it is
    stepsim: /dev/null:1:1: the file has no keys
    [2]

A reason in JSON holds whole characters, wherever it was cut.

    $ echo 'model: {preset: gpt2-124m}' >own.yaml
    > stepsim sweep own.yaml --vary "train.stack=pytorch-ddp,x$(printf 'é%.0s' {1..60})" --set cluster.system=dgx-h100 --json - |
    >     grep -c '"reason": ".*unknown stack'
    1
