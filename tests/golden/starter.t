A config from a few words, and two configs beside each other.

    $ stepsim init --model llama3-8b --system dgx-h100 --gpus 64
    # Every key: configs/reference.yaml. Predict it: stepsim predict THIS_FILE
    model:
      preset: llama3-8b
      seq_len: 8192 # tokens of a sequence
    train:
      stack: pytorch-fsdp # the training software: `stepsim list stacks`
      global_batch: 512 # sequences a step, all GPUs together: 4.19 M tokens
      micro_batch: 1 # sequences that a GPU computes at a time
      recompute: none # none, selective, full: activations computed again in the backward pass
    parallel:
      strategy: fsdp # ddp, zero1, zero2, fsdp, hsdp
      tensor: 1 # GPUs that share each product
      pipeline: 1 # stages
    cluster:
      system: dgx-h100 # `stepsim list systems`, or a line: 'gpu:8 rtx4090 nic:1x100Gb'
      nodes: 8 # hosts
    $ stepsim init --model mixtral-8x7b --system "gpu:8 rtx4090 nic:1x100Gb" --gpus 4 --strategy ddp --tokens 1M my.yaml; cat my.yaml; stepsim init my.yaml
    # Every key: configs/reference.yaml. Predict it: stepsim predict THIS_FILE
    model:
      preset: mixtral-8x7b
      seq_len: 8192 # tokens of a sequence
    train:
      stack: pytorch-ddp # the training software: `stepsim list stacks`
      global_batch: 120 # sequences a step, all GPUs together: 0.98 M tokens
      micro_batch: 1 # sequences that a GPU computes at a time
      recompute: none # none, selective, full: activations computed again in the backward pass
    parallel:
      strategy: ddp # ddp, zero1, zero2, fsdp, hsdp
      tensor: 1 # GPUs that share each product
      pipeline: 1 # stages
    cluster:
      system: 'gpu:8 rtx4090 nic:1x100Gb' # `stepsim list systems`, or a line: 'gpu:8 rtx4090 nic:1x100Gb'
      nodes: 1 # hosts
      gpus_per_node: 4 # a part of the host
    stepsim: init: my.yaml exists already; give another name, or none to print the config
    [2]
    $ stepsim predict --model llama3-8b --system dgx-h100 --gpus 64 -q | head -9
    A step takes 8.34 s (90 % interval: 7.11 s to 9.78 s); 90 % of communication hides behind compute,
      the rest takes 2.0 % of the step; it fits, 36.3 GiB are free.
    llama3-8b (8.03 B parameters), fsdp on 64 ranks (dp 64), bf16
    a step: 512 sequences of 8192 tokens, 8 micro-batches of 1 a replica
    on: NVIDIA DGX H100, 64 x NVIDIA H100 SXM5 80GB (catalogue configs/systems/dgx-h100.yaml)
                                predicted  of the step  bound by
    --------------------------------------------------------------------
    step time                      8.34 s
    $ stepsim init --gpus 64 | stepsim predict - -q | sed -n 3,5p
    llama3-8b (8.03 B parameters), fsdp on 64 ranks (dp 64), bf16
    a step: 512 sequences of 8192 tokens, 8 micro-batches of 1 a replica
    on: NVIDIA DGX H100, 64 x NVIDIA H100 SXM5 80GB (catalogue configs/systems/dgx-h100.yaml)
    $ stepsim init a.yaml; sed s/fsdp/ddp/g a.yaml >b.yaml; stepsim predict a.yaml b.yaml
    DOES NOT FIT: B: a rank needs 201 GiB, the device has 79.6 GiB (121 GiB short; largest: gradients
      59.8 GiB).
      A: a.yaml
      B: b.yaml
                                    A        B  B over A
    ----------------------------------------------------
    step time                  64.6 s   59.0 s    -8.7 %
      compute                  63.6 s   58.9 s    -7.4 %
      exposed communication    1.04 s  7.88 ms   -99.2 %
      optimizer               9.33 ms  74.4 ms  +697.8 %
    tokens/s                   64.9 k   71.1 k    +9.6 %
    MFU, %                       50.1     54.9    +9.6 %
    memory of a rank         56.5 GiB  201 GiB  +255.2 %
    fits in memory                yes       no
    key that differs                  A             B            step, this key alone
    ---------------------------------------------------------------------------------
    train.stack                       pytorch-fsdp  pytorch-ddp                +0.0 %
    parallel.strategy                 fsdp          ddp                        -8.7 %
    parallel.first_bucket_mb          auto          1.0                             -
    parallel.gradient_as_bucket_view  true          false                      +0.0 %
    Each line is A with that key of B; - where that is no legal plan. Effects do not add up.
    $ stepsim predict a.yaml b.yaml c.yaml
    stepsim: cannot read a.yaml: No such file or directory
    [2]
A folder with Hugging Face's config.json:
    $ mkdir m; echo '{"model_type": "llama", "hidden_size": 2048, "num_hidden_layers": 16, "num_attention_heads": 32, "intermediate_size": 8192, "vocab_size": 32000, "max_position_embeddings": 131072}' >m/config.json; stepsim predict --model m --gpus 8 -q | head -5
    A step takes 12.0 s (90 % interval: 9.94 s to 14.5 s); 91 % of communication hides behind compute,
      the rest takes 2.5 % of the step; it fits, 70.5 GiB are free.
    llama (1.20 B parameters), fsdp on 8 ranks (dp 8), bf16
    a step: 1024 sequences of 4096 tokens, 128 micro-batches of 1 a replica
    on: NVIDIA DGX H100, 8 x NVIDIA H100 SXM5 80GB (catalogue configs/systems/dgx-h100.yaml)
The file or its folder alone is the same; what transformers writes of Mamba-2 is no JSON; a model_type decides, though the sizes have Megatron-LM's names:
    $ mkdir m; cd m; echo '{"model_type": "llama", "hidden_size": 2048, "num_hidden_layers": 16, "num_attention_heads": 32, "intermediate_size": 8192, "vocab_size": 32000, "max_position_embeddings": 131072}' >config.json; stepsim predict config.json --gpus 8 -q | sed -n 3,4p; stepsim predict . --gpus 8 -q | sed -n 3,4p
    > echo '{"model_type": "nemotron_h", "hidden_size": 2048, "layers_block_type": ["linear_attention", "mlp", "full_attention", "mlp"], "num_attention_heads": 32, "intermediate_size": 8192, "vocab_size": 32000, "mamba_num_heads": 64, "time_step_limit": [0.0, Infinity]}' >config.json; stepsim predict config.json -q | sed -n 3p
    > echo '{"model_type": "longcat_flash", "num_layers": 28, "hidden_size": 6144, "num_attention_heads": 64}' >config.json; stepsim predict config.json 2>&1 | sed 's,/[^ ]*/,,'
    llama (1.20 B parameters), fsdp on 8 ranks (dp 8), bf16
    a step: 1024 sequences of 4096 tokens, 128 micro-batches of 1 a replica
    llama (1.20 B parameters), fsdp on 8 ranks (dp 8), bf16
    a step: 1024 sequences of 4096 tokens, 128 micro-batches of 1 a replica
    nemotron_h (244 M parameters), fsdp on 8 ranks (dp 8), bf16
    stepsim: --model config.json: model.hf_config: config.json: model_type: longcat_flash has two attentions a layer, and zero-computation experts, which cannot be described (nearest: deepseek_v3; docs/reference.md lists those that are known)
What is wrong:
    $ for option in --batch-size=4 --num-gpus=8 --seq-len=4096; do stepsim predict --model llama3-8b $option; done
    stepsim: unknown option --batch-size=4 (options, or keys for --set: train.global_batch, train.batch_per_gpu, train.micro_batch)
    stepsim: unknown option --num-gpus=8 (options, or keys for --set: --gpus, cluster.gpus_per_node)
    stepsim: unknown option --seq-len: a key of the config (--set model.seq_len=VALUE)
    [2]
    $ stepsim predict --model llama8b
    stepsim: --model llama8b: model.preset: unknown preset "llama8b" (nearest: llama3-8b)
    [2]
    $ stepsim predict --model llama3-8b --system dgx-h10
    stepsim: --system dgx-h10: unknown system 'dgx-h10' (nearest: dgx-h100)
    [2]
    $ stepsim predict --model llama3-8b --gpus 13
    stepsim: --gpus 13: hosts of dgx-h100 have 8 GPUs (nearest: 8, 16)
    [2]
    $ stepsim predict --model llama3-8b --strategy fdsp
    stepsim: --strategy fdsp: unknown value "fdsp" (nearest: fsdp; known: ddp, zero1, zero2, fsdp, hsdp, none)
    [2]
    $ stepsim predict --model llama3-8b --tokens many
    stepsim: --tokens many: expected tokens a step, such as 4M or 500k
    [2]
    $ stepsim predict --model nowhere/config.json
    stepsim: --model nowhere/config.json: cannot read nowhere/config.json: No such file or directory
    [2]
    $ stepsim predict --model llama3-8b $ROOT/configs/quickstart.yaml
    stepsim: --model llama3-8b and the config $ROOT/configs/quickstart.yaml: give one of them
    [2]
    $ stepsim predict --system dgx-h100 $ROOT/configs/quickstart.yaml
    stepsim: --system goes with --model, or with the config of another framework; in $ROOT/configs/quickstart.yaml --set cluster.system=dgx-h100 overrides it
    [2]
    $ stepsim init one.yaml two.yaml
    stepsim: unexpected argument 'two.yaml'
    [2]

The strategy by another word: the stack and the config are those of its own word.

    $ for word in FSDP zero3 ZeRO-1; do stepsim init --model llama3-8b --strategy $word | grep -E '  (strategy|stack)'; done
      stack: pytorch-fsdp # the training software: `stepsim list stacks`
      strategy: fsdp # ddp, zero1, zero2, fsdp, hsdp
      stack: pytorch-fsdp # the training software: `stepsim list stacks`
      strategy: fsdp # ddp, zero1, zero2, fsdp, hsdp
      stack: pytorch-ddp # the training software: `stepsim list stacks`
      strategy: zero1 # ddp, zero1, zero2, fsdp, hsdp

