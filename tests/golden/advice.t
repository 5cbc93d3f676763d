What would shorten the step: each change predicted by itself. Launches, a loader that cannot keep up, a host that waits:

    $ advice() { stepsim predict "$@" | sed -n '/^Changes that\|^Symptom\|^No change/,/^90 %/p' | grep -v '^90 %'; }
    > advice $ROOT/configs/launch-bound.yaml
    > advice $ROOT/configs/starved.yaml --set cluster.system=dgx-h100
    > advice $ROOT/configs/sync.yaml
    Changes that shorten the step, each alone; symptom: launch-bound (22 changes tried)
                                        saves  of the step  tuning stage   with
    ---------------------------------------------------------------------------------------------------
      the step as one CUDA graph      11.0 ms       61.9 %  3 fuse         --set train.cuda_graph=true
      larger micro-batches            6.83 ms       38.3 %  3 fuse         --set train.micro_batch=8
      another data-parallel strategy  5.82 ms       32.6 %  5 communicate  --set parallel.strategy=fsdp
      fused kernels                   5.12 ms       28.7 %  3 fuse         --set train.fused=true
    Changes that shorten the step, each alone; symptom: data-starved (22 changes tried)
                             saves  of the step  tuning stage  with
    --------------------------------------------------------------------------------
      more loader workers  75.0 ms       93.7 %  2 feed        --set data.workers=32
    Changes that shorten the step, each alone; symptom: exposed communication (20 changes tried)
                                         saves  of the step  tuning stage
        with
    ----------------------------------------------------------------------
      16-bit weights, fp32 master copy  897 us       17.9 %  1 format
        --set train.param_dtype=bf16 --set train.master_weights=true
      another data-parallel strategy    614 us       12.3 %  5 communicate
        --set parallel.strategy=fsdp
      8-bit moments                     267 us        5.3 %  4 fit
        --set train.optimizer_bits=8
      compressed gradients              181 us        3.6 %  5 communicate
        --set train.grad_compression=bf16

fp32 on a GPU with Tensor Cores, an odd vocabulary, naive attention, kernels one by one:

    $ cat > slow.yaml <<'EOF'
    > model: {preset: gpt2-350m, layers: 8}
    > train: {stack: pytorch-ddp-eager, dtype: fp32, fused: false, attention: naive, global_batch: 64, micro_batch: 8}
    > parallel: {strategy: ddp}
    > cluster: {system: dgx-a100}
    > EOF
    > advice() { COLUMNS=999 stepsim predict "$@" | sed -n '/^Changes that\|^Symptom\|^No change/,/^90 %/p' | grep -v '^90 %'; }
    > advice slow.yaml
    > advice slow.yaml --set train.dtype=bf16 --set model.vocab_padding=128 --set train.attention=flash --set train.stack=pytorch-ddp --set train.fused=true
    Changes that shorten the step, each alone; symptom: a format without the fast matrix units (20 changes tried)
                            saves  of the step  tuning stage  with
    ---------------------------------------------------------------------------------------
      16-bit products      509 ms       76.2 %  1 format      --set train.dtype=bf16
      tf32 products        417 ms       62.4 %  1 format      --set train.dtype=tf32
      flash attention     53.5 ms        8.0 %  3 fuse        --set train.attention=flash
      the compiled stack  44.5 ms        6.7 %  3 fuse        --set train.stack=pytorch-ddp
    Changes that shorten the step, each alone; symptom: compute-bound (18 changes tried)
                                          saves  of the step  tuning stage   with
    -------------------------------------------------------------------------------------------------------------------------------------
      another data-parallel strategy    3.40 ms        6.2 %  5 communicate  --set parallel.strategy=fsdp
      16-bit weights, fp32 master copy  3.16 ms        5.8 %  1 format       --set train.param_dtype=bf16 --set train.master_weights=true
      8-bit moments                     1.00 ms        1.8 %  4 fit          --set train.optimizer_bits=8
      compressed gradients               726 us        1.3 %  5 communicate  --set train.grad_compression=bf16

A tensor group that crosses from node to node, over fewer NICs than it has GPUs:

    $ cat > cross.yaml <<'EOF'
    > model: {preset: gpt3-13b, heads: 32, vocab_padding: 128}
    > train: {stack: megatron-core, dtype: bf16, global_batch: 32, micro_batch: 1}
    > parallel: {strategy: ddp, tensor: 16, sequence_parallel: true, tensor_overlap: false}
    > cluster: {system: aws-p4d, nodes: 4}
    > EOF
    > COLUMNS=999 stepsim predict cross.yaml | sed -n '/^Changes that/,/^90 %/p' | grep -v '^90 %'
    Changes that shorten the step, each alone; symptom: exposed communication (24 changes tried)
                                      saves  of the step  tuning stage   with
    -------------------------------------------------------------------------------------------------------
      another tensor group           6.22 s       69.9 %  5 communicate  --set parallel.tensor=8
      larger micro-batches           3.87 s       43.4 %  3 fuse         --set train.micro_batch=16
      overlapped tensor collectives  3.30 s       37.0 %  5 communicate  --set parallel.tensor_overlap=true
      another number of stages       105 ms        1.2 %  6 pipeline     --set parallel.pipeline=2

Where nothing fits, single changes with which it does; and where no single one suffices:

    $ cat > large.yaml <<'EOF'
    > model: {preset: llama3-8b}
    > train: {stack: pytorch-fsdp, dtype: bf16, global_batch: 16, micro_batch: 2}
    > parallel: {strategy: ddp}
    > cluster: {system: dgx-h100}
    > EOF
    > advice() { COLUMNS=999 stepsim predict "$@" | sed -n '/^Changes that\|^Symptom\|^No change/,/^90 %/p' | grep -v '^90 %'; }
    > advice large.yaml
    > advice large.yaml --set model.preset=llama3-405b
    Changes that make it fit in memory, each alone, the shortest step first (28 changes tried)
                          adds  of the step  tuning stage  with
    -------------------------------------------------------------------------------------------------------------
      several at once  58.1 ms        3.0 %  4 fit         --set parallel.strategy=fsdp --set train.micro_batch=1
    `stepsim plan` searches for the fastest plan that fits.
    No change makes it fit in memory (28 changes tried)
    `stepsim plan` searches for the fastest plan that fits.

A config that can be read only once gets its advice, too:

    $ stepsim predict <(printf 'model: {layers: 2}\ncluster: {system: dgx-h100}\n') 2>&1 | grep -E '^stepsim|^Symptom|^Changes|^step time'
    step time                     21.3 ms
    Changes that shorten the step, each alone; symptom: compute-bound (20 changes tried)

A step with nothing to gain, and none asked for:

    $ advice() { stepsim predict "$@" | sed -n '/^Changes that\|^Symptom\|^No change/,/^90 %/p' | grep -v '^90 %'; }
    > advice $ROOT/configs/llama3-8b-fsdp-64xh100.yaml --set train.dtype=fp8 --set train.attention_kernel=fa3 --set train.recompute=none --set train.optimizer=none --set train.reduce_dtype=bf16 --set parallel.reshard_after_forward=false --set train.micro_batch=1
    > stepsim predict $ROOT/configs/launch-bound.yaml -q | grep -c 'would shorten'
    > stepsim predict $ROOT/configs/launch-bound.yaml -q --json - | python3 -c 'import json, sys; p = json.load(sys.stdin)["prediction"]; print(p["advice"], p["sensitivity"], p["symptom"], p["advice_untried"])'
    Symptom: compute-bound. No single change shortens the step by 0.5 % or more (12 changes tried)
    0
    [] [] None None

Each lever keeps its word when it is given to the command line, to the picosecond; elasticities are not negative, add up to 1 at the most, and no part's limit is above the step:

    $ for c in launch-bound sync gpt2-124m-gpu llama3-8b-fsdp-64xh100 ep-mixtral-8x7b-64xh100 pp-tiny; do python3 $ROOT/tests/golden/gained.py $ROOT/configs/$c.yaml --set cluster.system=dgx-h100 --set run.execute=false; done
    > python3 $ROOT/tests/golden/gained.py $ROOT/configs/starved.yaml --set cluster.system=dgx-h100
    > python3 $ROOT/tests/golden/gained.py $ROOT/tests/golden/profiles/plan.yaml
    > python3 $ROOT/tests/golden/gained.py $ROOT/configs/finetune-llama2-13b.yaml --set cluster.system=server-8xl40s --set parallel.strategy=ddp --set train.micro_batch=2 --set train.stack=pytorch-ddp
    launch-bound: 6 levers as promised
    exposed communication: 8 levers as promised
    compute-bound: 7 levers as promised
    compute-bound: 6 levers as promised
    pipeline bubble: 4 levers as promised
    pipeline bubble: 2 levers as promised
    data-starved: 1 levers as promised
    compute-bound: 7 levers as promised
    compute-bound: 2 levers as promised

A large program: within its budget some changes are put together from pieces, and marked; some are left.

    $ COLUMNS=999 stepsim predict $ROOT/configs/pp-gpt3-175b-384xa100.yaml | grep -A 3 '^Changes that'
    Changes that shorten the step, each alone; symptom: compute-bound (20 changes tried; -v tries 12 more, which take longer)
                                  saves  of the step  tuning stage   with
    -------------------------------------------------------------------------------------------------------------------
      less recomputation        ~18.1 s       25.7 %  4 fit          --set train.recompute=none

With -v the rest of it, and what a little of each rate is worth:

    $ COLUMNS=999 stepsim predict $ROOT/configs/llama3-8b-fsdp-64xh100.yaml -v 2>&1 >/dev/null | sed -n '/^Further/,/^  all communication/p'
    Further changes, each alone:
                                    saves  of the step  tuning stage   with
    -------------------------------------------------------------------------------------------------------------
      16-bit reductions           37.9 ms        1.6 %  5 communicate  --set train.reduce_dtype=bf16
      weights kept after forward  29.5 ms        1.2 %  5 communicate  --set parallel.reshard_after_forward=false
    sensitivity: time saved by a small change of a rate, and the step if that part took no time:
                                change    saves  elasticity  step without it
    ------------------------------------------------------------------------
      compute rate               +10 %   181 ms       0.833           477 ms
      memory bandwidth           +10 %  28.0 ms       0.129           2.10 s
      bandwidth inside a node    +10 %  7.20 ms       0.033           2.39 s
      network bandwidth          +10 %      0 s       0.000           2.40 s
      latency of communication   -10 %  1.19 ms       0.005           2.39 s
      kernel launches            -10 %      0 s       0.000           2.40 s
      all communication           none                                2.30 s
