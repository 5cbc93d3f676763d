What a user meets at the doors: a model and a machine beside another framework's config, and refusals in its own words.

A model and a machine for a file that names neither; a CONFIG.yaml names both itself.

    $ cat >ds.json <<'END'
    > {"zero_optimization": {"stage": 3}, "bf16": {"enabled": true},
    >  "train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 1}
    > END
    > stepsim predict ds.json --model llama3-8b --system dgx-b200 --gpus 16 --json - -q 2>&1 | grep -o '"preset": "llama3-8b"\|"system": "dgx-b200"\|"nodes": 2\|"data": 16'
    > stepsim predict ds.json --system dgx-b200
    > stepsim predict ds.json --model llama3-8b --strategy ddp
    > stepsim import ds.json llama3-8b >own.yaml
    > stepsim predict own.yaml --system dgx-b200
    > stepsim predict own.yaml --model llama3-8b
    > stepsim predict ds.json --model llama9
    > stepsim predict ds.json --model llama3-8b --system dgx-h101
    "preset": "llama3-8b"
    "data": 16
    "system": "dgx-b200"
    "nodes": 2
    "nodes": 2
    stepsim: ds.json: it names no model that is known: --model takes a config.json, or a name of `stepsim list models`
    stepsim: --strategy goes with --model; --set overrides a key of a config
    stepsim: --system goes with --model, or with the config of another framework; in own.yaml --set cluster.system=dgx-b200 overrides it
    stepsim: --model llama3-8b and the config own.yaml: give one of them
    stepsim: --model llama9: unknown preset "llama9" (nearest: llama2-7b)
    stepsim: --system dgx-h101: unknown system 'dgx-h101' (nearest: dgx-h100)
    [2]

What a prediction refuses ends an import, with the key and the line of the file.

    $ cat >muon.yaml <<'END'
    > base_model: meta-llama/Meta-Llama-3-8B
    > optimizer: muon
    > micro_batch_size: 1
    > fsdp: [full_shard, auto_wrap]
    > fsdp_config:
    >   fsdp_offload_params: true
    >   fsdp_sharding_strategy: FULL_SHARD
    > END
    > stepsim import muon.yaml >/dev/null
    > stepsim predict muon.yaml
    > stepsim import muon.yaml --set train.offload=none >/dev/null
    stepsim: the config that was written is not complete: muon.yaml:6:24: fsdp_config.fsdp_offload_params (train.offload): not modelled yet with muon (accepted: none, activations); --set train.offload=... takes another
    stepsim: muon.yaml:6:24: fsdp_config.fsdp_offload_params (train.offload): not modelled yet with muon (accepted: none, activations); --set train.offload=... takes another

Adapters on a base of 4 bits that waits in the host's memory.

    $ cat >qlora.yaml <<'END'
    > base_model: meta-llama/Meta-Llama-3-70B
    > adapter: qlora
    > load_in_4bit: true
    > sequence_len: 512
    > micro_batch_size: 1
    > gradient_checkpointing: true
    > fsdp: [full_shard, auto_wrap]
    > fsdp_config: {fsdp_offload_params: true, fsdp_sharding_strategy: FULL_SHARD}
    > END
    > stepsim predict qlora.yaml --system server-8xl40s -q | grep -E '^A step| (copy|all_gather|optimizer|total)|offload: [0-9]'
    A step takes 5.16 s (90 % interval: 3.66 s to 7.28 s); 70 % of communication hides behind compute,
      copy                          157 ms        3.1 %
      optimizer                    6.30 ms        0.1 %
      optimizer (80)               6.30 ms        0.1 %  host
      all_gather (481)              4.15 s       80.4 %  link
      copy (562)                    318 ms        6.2 %  link
      total                       7.36 GiB               fits in 45.0 GiB
    warning: offload: 42.0 GiB of each host's memory are in use

A value that stands elsewhere is named as the cause.

    $ cat >pp.sh <<'END'
    > torchrun pretrain_gpt.py --num-layers 32 --hidden-size 4096 --num-attention-heads 32 --seq-length 4096 \
    >   --micro-batch-size 1 --global-batch-size 64 --bf16 --pipeline-model-parallel-size ${PP} --vocab-size 32000 \
    >   --account-for-embedding-in-pipeline-split --account-for-loss-in-pipeline-split
    > END
    > stepsim import pp.sh >/dev/null
    > stepsim import pp.sh --set parallel.pipeline=2 | grep -E 'pipeline|count_ends' | grep -v '^#'
    stepsim: the config that was written is not complete: pp.sh:3:3: account_for_embedding_in_pipeline_split (parallel.count_ends): not used unless pipeline is 2 or more; --set parallel.count_ends=... takes another; line 2: the value of pipeline_model_parallel_size = ${PP} is not in this file (--set parallel.pipeline=...)
      pipeline: 2 # --set
      count_ends: both # account_for_embedding_in_pipeline_split

A file that changes a model without naming it.

    $ cat >l8.yaml <<'END'
    > model: {seq_length: 4096, num_layers: 8, num_moe_experts: 48, tensor_model_parallel_size: 2}
    > train: {global_batch_size: 16, micro_batch_size: 1}
    > scheduler: {lr_warmup_iters: 2000}
    > END
    > stepsim predict l8.yaml
    stepsim: l8.yaml: it has a number of layers, and no model that is known: --model takes a config.json, or a name of `stepsim list models`
    [2]

A vocabulary that is assumed is said.

    $ cat >vocab.sh <<'END'
    > torchrun pretrain_gpt.py --num-layers 2 --hidden-size 64 --num-attention-heads 4 --seq-length 64 \
    >   --micro-batch-size 1 --global-batch-size 8 --tokenizer-type NullTokenizer
    > END
    > stepsim predict vocab.sh 2>&1 >/dev/null | grep vocab
    > stepsim import vocab.sh | grep '^  vocab'
    stepsim: vocab.sh: a config of Megatron-LM, of which 6 keys are taken and 0 not modelled (`stepsim import` shows each)
    stepsim: it names no vocabulary: 50257 tokens are assumed (--set model.vocab=N takes another)
      vocab: 50257 # assumed: the tokenizer decides (--set model.vocab=N)
      vocab_padding: 128 # default: make_vocab_size_divisible_by

DeepSpeed's micro-batch follows from the batch where transformers fills it in.

    $ cat >auto.json <<'END'
    > {"train_batch_size": 256, "train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto",
    >  "zero_optimization": {"stage": 2}, "bf16": {"enabled": "auto"}}
    > END
    > stepsim import auto.json gpt2-124m --gpus 16 | grep -E 'batch|accum'
      global_batch: 256 # train_batch_size
      micro_batch: 16 # train_batch_size over 16 replicas, 1 micro-batch each
    #    1  taken      train_batch_size = 256: as train.global_batch
    #    1  no effect  train_micro_batch_size_per_gpu = auto: it follows from the batch
    #    1  no effect  gradient_accumulation_steps = auto: 1, as transformers' Trainer fills in

accelerate leaves overlap_comm to DeepSpeed, which has it on at stage 3 alone.

    $ for stage in 1 2 3; do
    >   printf 'distributed_type: DEEPSPEED\nmixed_precision: bf16\nnum_processes: 8\nnum_machines: 1\n' >ac.yaml
    >   printf 'deepspeed_config: {zero_stage: %s}\n' $stage >>ac.yaml
    >   stepsim import ac.yaml gpt2-124m | grep -E '^  (strategy|overlap)'
    > done
      strategy: zero1 # deepspeed_config.zero_stage
      overlap: false # deepspeed_config.zero_stage
      strategy: zero2 # deepspeed_config.zero_stage
      overlap: false # deepspeed_config.zero_stage
      strategy: fsdp # deepspeed_config.zero_stage

DeepSpeed's own config inside those of Axolotl and transformers.

    $ cat >inline.yaml <<'END'
    > base_model: Qwen/Qwen3-4B
    > sequence_len: 2048
    > micro_batch_size: 1
    > optimizer: adamw_torch_4bit
    > deepspeed: {zero_optimization: {stage: 2, overlap_comm: true, offload_optimizer: {device: cpu}}, bf16: {enabled: true}}
    > END
    > stepsim import inline.yaml | grep -v -e '^#.*no effect'
    # From inline.yaml, a config of Axolotl.
    # Keys: 8. Taken: 7. No effect on a step's time: 1. Not modelled: 0.
    model:
      preset: qwen3-4b # base_model
      seq_len: 2048 # sequence_len
    train:
      stack: deepspeed # deepspeed.zero_optimization.stage
      batch_per_gpu: 1 # default: gradient_accumulation_steps
      micro_batch: 1 # micro_batch_size
      dtype: bf16 # default: bf16
      optimizer: adamw # optimizer
      optimizer_bits: 8 # optimizer
      offload: optimizer # deepspeed.zero_optimization.offload_optimizer.device
      sync_every: 1 # where the file is silent
    parallel:
      strategy: zero2 # deepspeed.zero_optimization.stage
      overlap: true # deepspeed.zero_optimization.overlap_comm
    cluster:
      system: dgx-h100 # assumed: --system NAME takes another
      nodes: 1 # assumed: --gpus N takes more
    # What becomes of each key of inline.yaml:
    # line  it is      key, value, and how or why
    # ------------------------------------------------------------------------------------------------
    #    1  taken      base_model = Qwen/Qwen3-4B: as model.preset
    #    2  taken      sequence_len = 2048: as model.seq_len
    #    3  taken      micro_batch_size = 1: as train.micro_batch
    #    4  taken      optimizer = adamw_torch_4bit: as train.optimizer, train.optimizer_bits, moments
    #                  of 4 bits counted as of 8
    #    5  taken      deepspeed.zero_optimization.stage = 2: as parallel.strategy, train.stack
    #    5  taken      deepspeed.zero_optimization.overlap_comm = true: as parallel.overlap
    #    5  taken      deepspeed.zero_optimization.offload_optimizer.device = cpu: as train.offload
    $ cat >trainer.yaml <<'END'
    > model_name_or_path: Qwen/Qwen3-4B
    > output_dir: out
    > per_device_train_batch_size: 1
    > deepspeed: {zero_optimization: {stage: 1}, bf16: {enabled: true}}
    > END
    > stepsim import trainer.yaml | grep -E '^  (stack|dtype|param_dtype|strategy|overlap)'
      stack: deepspeed # deepspeed.zero_optimization.stage
      dtype: bf16 # deepspeed.bf16.enabled
      strategy: zero1 # deepspeed.zero_optimization.stage
      overlap: false # deepspeed.zero_optimization.stage

The stage in the name of DeepSpeed's file, beside other digits.

    $ for name in zero2_bs16.json ds_z3_16gpu.json zero_stage1.json zero3_bf16.json own.json; do
    >   printf 'distributed_type: DEEPSPEED\nmixed_precision: bf16\nnum_processes: 8\nnum_machines: 1\n' >ac.yaml
    >   printf 'deepspeed_config: {deepspeed_config_file: %s}\n' $name >>ac.yaml
    >   printf 'model_name_or_path: Qwen/Qwen3-4B\nper_device_train_batch_size: 1\noutput_dir: out\ndeepspeed: %s\n' $name >tr.yaml
    >   for file in ac tr; do stepsim import $file.yaml --model qwen3-4b 2>&1 | grep -E '^  strategy|onfig_file = own|deepspeed = own'; done
    > done
      strategy: zero2 # deepspeed_config.deepspeed_config_file
      strategy: zero2 # deepspeed
      strategy: fsdp # deepspeed_config.deepspeed_config_file
      strategy: fsdp # deepspeed
      strategy: zero1 # deepspeed_config.deepspeed_config_file
      strategy: zero1 # deepspeed
      strategy: fsdp # deepspeed_config.deepspeed_config_file
      strategy: fsdp # deepspeed
      strategy: ddp # where the file is silent
    #    5  not modelled  deepspeed_config.deepspeed_config_file = own.json: the value is not in this
      strategy: ddp # where the file is silent
    #    4  not modelled  deepspeed = own.json: the value is not in this file (--set parallel.strategy)

torchtitan's Kimi K2 as a flavour of DeepSeek-V3, with experts of equal shares.

    $ cat >kimi.toml <<'END'
    > [model]
    > name = "deepseek_v3"
    > flavor = "kimi_k2"
    > [training]
    > local_batch_size = 1
    > [parallelism]
    > expert_parallel_degree = 32
    > [debug]
    > moe_force_load_balance = true
    > END
    > stepsim import kimi.toml --gpus 256 | grep -E 'preset|force'
    > sed -i s/kimi_k2/kimi_k9/ kimi.toml; stepsim import kimi.toml >/dev/null
      preset: kimi-k2 # model.name
    #    2  taken      model.name = deepseek_v3: as model.preset
    #    3  taken      model.flavor = kimi_k2: as model.preset
    #    9  no effect  debug.moe_force_load_balance = true: experts get equal shares here
    stepsim: the config that was written is not complete: kimi.toml:2: its model deepseek_v3 kimi_k9 is no preset: --model takes its config.json, or a name of `stepsim list models`
    [2]

Models that a config.json of Hugging Face describes in parts, or whose text lies inside.

    $ echo '{"model_type": "mamba", "hidden_size": 768, "num_hidden_layers": 24, "state_size": 16, "vocab_size": 50280}' >mamba.json
    > echo '{"model_type": "deepseek_vl_v2", "language_config": {"model_type": "deepseek_v2", "use_mla": false, "hidden_size": 1280, "num_hidden_layers": 12, "num_attention_heads": 10, "intermediate_size": 6848, "moe_intermediate_size": 896, "n_routed_experts": 64, "num_experts_per_tok": 6, "n_shared_experts": 2, "first_k_dense_replace": 1, "vocab_size": 129280}}' >ocr.json
    > echo '{"model_type": "minicpmv", "version": 4.5, "hidden_size": 4096, "num_hidden_layers": 36, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 12288, "vocab_size": 151748}' >see.json
    > for f in mamba ocr see; do stepsim predict $f.json --gpus 8 2>&1 | grep -E 'left out|parameters'; done
    stepsim: model.hf_config: left out, because not modelled: Mamba-1's scan, taken as Mamba-2's of the same width and state, which is faster
    mamba (125 M parameters), fsdp on 8 ranks (dp 8), bf16
    stepsim: model.hf_config: left out, because not modelled: all of it but the language model
    deepseek_v2 (2.93 B parameters, 740 M active), fsdp on 8 ranks (dp 8), bf16
    stepsim: model.hf_config: left out, because not modelled: the vision tower, and its resampler
    minicpmv (8.19 B parameters), fsdp on 8 ranks (dp 8), bf16

A variable inside a list of layers.

    $ cat >moe.sh <<'END'
    > NUM_LAYERS=16
    > MOE_LAYERS=$(($NUM_LAYERS-1))
    > MOE_ARGS=(--num-experts 8 --moe-layer-freq "([0]+[1]*$MOE_LAYERS)")
    > torchrun pretrain_gpt.py --num-layers $NUM_LAYERS --hidden-size 64 --num-attention-heads 4 ${MOE_ARGS[@]} \
    >   --seq-length 64 --micro-batch-size 2 --vocab-size 32000 --bf16
    > END
    > stepsim import moe.sh | grep -E '^  (first_dense|batch_per_gpu|global_batch)'
      first_dense_layers: 1 # moe_layer_freq
      batch_per_gpu: 2 # micro_batch_size
