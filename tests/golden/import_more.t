Configs of more frameworks, in the shapes that their newest versions have: what the plan becomes, and what is named as
not modelled. (tests/golden/import.t has the whole table of one.)

LLaMA-Factory's version 1, and its trainer over Megatron-Core.

    $ cat >v1.yaml <<'END'
    > model: Qwen/Qwen3-4B-Instruct-2507
    > model_class: llm
    > template: qwen3_nothink
    > peft_config: {name: lora, r: 32, target_modules: all}
    > dist_config: {name: fsdp2, cp_mode: ulysses, cp_size: 2, dcp_path: null}
    > train_dataset: data/mine.yaml
    > micro_batch_size: 2
    > global_batch_size: 64
    > cutoff_len: 8_192
    > batching_strategy: dynamic_padding_free
    > END
    > stepsim import v1.yaml --gpus 16 | grep -v '^#'
    > cat >mca.yaml <<'END'
    > model_name_or_path: Qwen/Qwen3-30B-A3B
    > stage: pt
    > finetuning_type: full
    > cutoff_len: 4096
    > per_device_train_batch_size: 1
    > gradient_accumulation_steps: 16
    > bf16: true
    > tensor_model_parallel_size: 2
    > sequence_parallel: true
    > pipeline_model_parallel_size: 2
    > expert_model_parallel_size: 4
    > use_distributed_optimizer: true
    > recompute_granularity: selective
    > mixture_of_depths: convert
    > END
    > stepsim import mca.yaml --gpus 32 | grep -v -e '^# *[0-9]* *taken' -e '  no effect'
    model:
      preset: qwen3-4b # model
      seq_len: 8192 # cutoff_len
    train:
      stack: pytorch-fsdp-eager # dist_config.name
      global_batch: 64 # global_batch_size
      micro_batch: 2 # micro_batch_size
      dtype: bf16 # default: bf16
      recompute: full # default: disable_gradient_checkpointing
      recompute_early_stop: false # default: use_reentrant_gc
      lora_rank: 32 # peft_config.r
      lora_targets: all # peft_config.target_modules
      sync_every: 1 # default: logging_nan_inf_filter
    parallel:
      strategy: fsdp # dist_config.name
      context: 2 # dist_config.cp_size
      context_kind: all_to_all # dist_config.cp_mode
    cluster:
      system: dgx-h100 # assumed: --system NAME takes another
      nodes: 2 # --gpus
    # From mca.yaml, a config of LLaMA-Factory.
    # Keys: 14. Taken: 12. No effect on a step's time: 1. Not modelled: 1.
    model:
      preset: qwen3-30b-a3b # model_name_or_path
      seq_len: 4096 # cutoff_len
    train:
      stack: megatron-core # tensor_model_parallel_size
      batch_per_gpu: 4 # gradient_accumulation_steps
      micro_batch: 1 # per_device_train_batch_size
      dtype: bf16 # bf16
      recompute: selective # recompute_granularity
      lora_rank: 0 # finetuning_type
      sync_every: 1 # default: logging_nan_inf_filter
    parallel:
      strategy: zero1 # use_distributed_optimizer
      tensor: 2 # tensor_model_parallel_size
      sequence_parallel: true # sequence_parallel
      pipeline: 2 # pipeline_model_parallel_size
      expert: 4 # expert_model_parallel_size
    cluster:
      system: dgx-h100 # assumed: --system NAME takes another
      nodes: 4 # --gpus
    # What becomes of each key of mca.yaml:
    # line  it is         key, value, and how or why
    # -----------------------------------------------------------------------------------
    #   14  not modelled  mixture_of_depths = convert: attention of another kind

Axolotl with experts over ranks; a number in groups of three.

    $ cat >ax.yaml <<'END'
    > base_model: Qwen/Qwen3-30B-A3B-Thinking-2507-FP8
    > sequence_len: 500_000
    > micro_batch_size: 1
    > gradient_accumulation_steps: 4
    > expert_parallel_size: 4
    > expert_parallel_backend: torch
    > dp_shard_size: 2
    > fsdp_version: 2
    > bf16: true
    > attn_implementation: flash_attention_4
    > quantize_moe_experts: true
    > END
    > stepsim import ax.yaml | grep -v -e '^# *[0-9]* *taken'
    # From ax.yaml, a config of Axolotl.
    # Keys: 11. Taken: 10. No effect on a step's time: 0. Not modelled: 1.
    model:
      preset: qwen3-30b-a3b # base_model
      seq_len: 500000 # sequence_len
    train:
      stack: pytorch-fsdp-eager # fsdp_version
      batch_per_gpu: 4 # gradient_accumulation_steps
      micro_batch: 1 # micro_batch_size
      dtype: bf16 # bf16
      attention: flash # attn_implementation
      expert_loop: true # base_model
      sync_every: 1 # where the file is silent
    parallel:
      strategy: fsdp # fsdp_version
      data: 8 # dp_shard_size
      expert: 4 # expert_parallel_size
      expert_dispatch: all_to_all # expert_parallel_backend
    cluster:
      system: dgx-h100 # assumed: --system NAME takes another
      nodes: 1 # the plan's GPUs
    # What becomes of each key of ax.yaml:
    # line  it is         key, value, and how or why
    # ---------------------------------------------------------------------------------------------
    #   11  not modelled  quantize_moe_experts = true: weights in fewer bits

transformers' TrainingArguments in TRL's form, and a script of ms-swift.

    $ cat >trl.yaml <<'END'
    > model_name_or_path: Qwen/Qwen2.5-1.5B-Instruct
    > dtype: bfloat16
    > use_peft: true
    > lora_target_modules: all-linear
    > per_device_train_batch_size: 4
    > gradient_accumulation_steps: 8
    > max_length: 2048
    > use_liger_kernel: true
    > output_dir: out
    > END
    > stepsim import trl.yaml | grep -v -e '  no effect'
    > cat >swift.sh <<'END'
    > NPROC_PER_NODE=8 swift sft \
    >     --model Qwen/Qwen3-8B --tuner_type full --dataset mine \
    >     --torch_dtype bfloat16 --per_device_train_batch_size 1 \
    >     --gradient_accumulation_steps 2 --max_length 16384 \
    >     --sequence_parallel_size 4 --deepspeed zero3 --attn_impl flash_attn \
    >     --freeze_vit true
    > END
    > stepsim import swift.sh --gpus 8 | grep -v -e '  no effect'
    # From trl.yaml, a config of transformers' Trainer, TRL and ms-swift.
    # Keys: 9. Taken: 7. No effect on a step's time: 2. Not modelled: 0.
    model:
      preset: qwen2.5-1.5b # model_name_or_path
      seq_len: 2048 # max_length
    train:
      stack: pytorch-ddp-eager # where the file is silent
      batch_per_gpu: 32 # gradient_accumulation_steps
      micro_batch: 4 # per_device_train_batch_size
      dtype: bf16 # dtype
      param_dtype: bf16 # dtype
      optimizer: adamw # default: optim
      recompute: full # default: gradient_checkpointing
      lora_rank: 16 # default: lora_r
      lora_targets: all # lora_target_modules
      fused_kernels: [norm, rotary, gate] # use_liger_kernel
      sync_every: 1 # default: logging_nan_inf_filter
    parallel:
      strategy: ddp # where the file is silent
    cluster:
      system: dgx-h100 # assumed: --system NAME takes another
      nodes: 1 # assumed: --gpus N takes more
    # What becomes of each key of trl.yaml:
    # line  it is      key, value, and how or why
    # ---------------------------------------------------------------------------------------------
    #    1  taken      model_name_or_path = Qwen/Qwen2.5-1.5B-Ins...: as model.preset
    #    2  taken      dtype = bfloat16: as train.dtype, train.param_dtype
    #    4  taken      lora_target_modules = all-linear: as train.lora_targets
    #    5  taken      per_device_train_batch_size = 4: as train.micro_batch
    #    6  taken      gradient_accumulation_steps = 8: as train.batch_per_gpu
    #    7  taken      max_length = 2048: as model.seq_len
    #    8  taken      use_liger_kernel = true: as train.fused_kernels, its loss, by chunks, is not
    # From swift.sh, a config of transformers' Trainer, TRL and ms-swift.
    # Keys: 12. Taken: 9. No effect on a step's time: 2. Not modelled: 1.
    model:
      preset: qwen3-8b # model
      seq_len: 16384 # max_length
    train:
      stack: deepspeed # deepspeed
      batch_per_gpu: 0.5 # gradient_accumulation_steps
      micro_batch: 1 # per_device_train_batch_size
      dtype: bf16 # torch_dtype
      param_dtype: bf16 # torch_dtype
      optimizer: adamw # default: optim
      attention: flash # attn_impl
      recompute: full # default: gradient_checkpointing
      sync_every: 1 # default: logging_nan_inf_filter
    parallel:
      strategy: fsdp # deepspeed
      context: 4 # sequence_parallel_size
      context_kind: all_to_all # sequence_parallel_size
    cluster:
      system: dgx-h100 # assumed: --system NAME takes another
      nodes: 1 # --gpus
      gpus_per_node: 8 # --gpus
    # What becomes of each key of swift.sh:
    # line  it is         key, value, and how or why
    # ------------------------------------------------------------------------------------------
    #    1  taken         NPROC_PER_NODE = 8: as cluster.gpus_per_node
    #    2  taken         model = Qwen/Qwen3-8B: as model.preset
    #    3  taken         torch_dtype = bfloat16: as train.dtype, train.param_dtype
    #    3  taken         per_device_train_batch_size = 1: as train.micro_batch
    #    4  taken         gradient_accumulation_steps = 2: as train.batch_per_gpu
    #    4  taken         max_length = 16384: as model.seq_len
    #    5  taken         sequence_parallel_size = 4: as parallel.context, parallel.context_kind
    #    5  taken         deepspeed = zero3: as parallel.strategy, train.stack
    #    5  taken         attn_impl = flash_attn: as train.attention
    #    6  not modelled  freeze_vit = true: part of the weights frozen

torchtune, LitGPT, MaxText and Levanter.

    $ cat >tune.yaml <<'END'
    > model: {_component_: torchtune.models.llama3_1.qlora_llama3_1_8b, apply_lora_to_mlp: true, lora_rank: 16}
    > tokenizer: {_component_: torchtune.models.llama3.llama3_tokenizer, max_seq_len: 4096}
    > batch_size: 2
    > gradient_accumulation_steps: 8
    > optimizer: {_component_: bitsandbytes.optim.PagedAdamW8bit, lr: 3e-4}
    > enable_activation_checkpointing: True
    > custom_sharded_layers: [tok_embeddings, output]
    > dtype: bf16
    > compile: True
    > END
    > stepsim import tune.yaml | grep -v -e '  no effect'
    > cat >lit.yaml <<'END'
    > checkpoint_dir: checkpoints/Qwen/Qwen2.5-7B-Instruct/
    > precision: bf16-true
    > quantize: bnb.nf4-dq
    > devices: 4
    > num_nodes: 2
    > lora_r: 16
    > lora_projection: true
    > lora_query: true
    > train: {global_batch_size: 64, micro_batch_size: 2, max_seq_length: 2048, epochs: 2}
    > optimizer: {class_path: torch.optim.AdamW, init_args: {lr: 0.0002}}
    > END
    > stepsim import lit.yaml | grep -v -e '  no effect'
    > cat >max.yml <<'END'
    > base_config: base.yml
    > hardware: gpu
    > model_name: llama3.3-70b
    > per_device_batch_size: 2
    > ici_fsdp_parallelism: 8
    > ici_tensor_parallelism: 1
    > dcn_data_parallelism: 4
    > quantization: fp8
    > remat_policy: minimal
    > attention: cudnn_flash_te
    > opt_type: adam_pax
    > END
    > stepsim import max.yml --gpus 32 | grep -v -e '  no effect'
    > cat >lev.yaml <<'END'
    > data: {tokenizer: meta-llama/Llama-2-7b-hf}
    > model: {type: llama, hidden_dim: 4096, intermediate_dim: 11008, num_layers: 32, num_heads: 32, num_kv_heads: 32,
    >   seq_len: 4096}
    > trainer: {mp: "p=f32,c=bfloat16", train_batch_size: 1024, num_train_steps: 100, tensor_parallel_axes: [mlp]}
    > optimizer: {learning_rate: 1e-4}
    > END
    > stepsim import lev.yaml --gpus 64 | grep -v -e '  no effect'
    # From tune.yaml, a config of torchtune.
    # Keys: 13. Taken: 10. No effect on a step's time: 2. Not modelled: 1.
    model:
      preset: llama3.1-8b # model._component_
      seq_len: 4096 # tokenizer.max_seq_len
    train:
      stack: pytorch-fsdp # compile
      batch_per_gpu: 16 # gradient_accumulation_steps
      micro_batch: 2 # batch_size
      dtype: bf16 # dtype
      param_dtype: bf16 # dtype
      reduce_dtype: bf16 # dtype
      optimizer: adamw # optimizer._component_
      optimizer_bits: 8 # optimizer._component_
      recompute: full # enable_activation_checkpointing
      lora_rank: 16 # model.lora_rank
      lora_targets: all # model.apply_lora_to_mlp
      lora_base: nf4_double # model._component_
    parallel:
      strategy: fsdp # where the file is silent
    cluster:
      system: dgx-h100 # assumed: --system NAME takes another
      nodes: 1 # assumed: --gpus N takes more
    # What becomes of each key of tune.yaml:
    # line  it is         key, value, and how or why
    # --------------------------------------------------------------------------------------------------
    #    1  taken         model._component_ = torchtune.models.llam...: as model.preset, train.lora_base
    #    1  taken         model.apply_lora_to_mlp = true: as train.lora_targets
    #    1  taken         model.lora_rank = 16: as train.lora_rank
    #    2  taken         tokenizer.max_seq_len = 4096: as model.seq_len
    #    3  taken         batch_size = 2: as train.micro_batch
    #    4  taken         gradient_accumulation_steps = 8: as train.batch_per_gpu
    #    5  taken         optimizer._component_ = bitsandbytes.optim.Pa...: as train.optimizer,
    #                     train.optimizer_bits
    #    6  taken         enable_activation_checkpointing = True: as train.recompute
    #    7  not modelled  custom_sharded_layers = [tok_embeddings, output]: several processes of one
    #                     run: the embedding and the head are gathered apart
    #    8  taken         dtype = bf16: as train.dtype, train.param_dtype, train.reduce_dtype
    #    9  taken         compile = True: as train.stack
    # From lit.yaml, a config of LitGPT.
    # Keys: 14. Taken: 11. No effect on a step's time: 3. Not modelled: 0.
    model:
      preset: qwen2.5-7b # checkpoint_dir
      seq_len: 2048 # train.max_seq_length
    train:
      stack: pytorch-fsdp-eager # where the file is silent
      global_batch: 64 # train.global_batch_size
      micro_batch: 2 # train.micro_batch_size
      dtype: bf16 # precision
      param_dtype: bf16 # precision
      optimizer: adamw # optimizer.class_path
      recompute: full # where the file is silent
      lora_rank: 16 # lora_r
      lora_targets: attention # lora_projection
      lora_base: nf4_double # quantize
    parallel:
      strategy: fsdp # where the file is silent
    cluster:
      system: dgx-h100 # assumed: --system NAME takes another
      nodes: 2 # num_nodes
      gpus_per_node: 4 # devices
    # What becomes of each key of lit.yaml:
    # line  it is      key, value, and how or why
    # -------------------------------------------------------------------------------
    #    1  taken      checkpoint_dir = checkpoints/Qwen/Qwen...: as model.preset
    #    2  taken      precision = bf16-true: as train.dtype, train.param_dtype
    #    3  taken      quantize = bnb.nf4-dq: as train.lora_base
    #    4  taken      devices = 4: as cluster.gpus_per_node
    #    5  taken      num_nodes = 2: as cluster.nodes
    #    6  taken      lora_r = 16: as train.lora_rank
    #    7  taken      lora_projection = true: as train.lora_targets
    #    9  taken      train.global_batch_size = 64: as train.global_batch
    #    9  taken      train.micro_batch_size = 2: as train.micro_batch
    #    9  taken      train.max_seq_length = 2048: as model.seq_len
    #   10  taken      optimizer.class_path = torch.optim.AdamW: as train.optimizer
    # From max.yml, a config of MaxText.
    # Keys: 11. Taken: 9. No effect on a step's time: 1. Not modelled: 1.
    model:
      preset: llama3.3-70b # model_name
      seq_len: 2048 # default: max_target_length
    train:
      stack: maxtext # where the file is silent
      batch_per_gpu: 2 # default: gradient_accumulation_steps
      micro_batch: 2 # per_device_batch_size
      dtype: fp8 # quantization
      param_dtype: fp32 # where the file is silent
      optimizer: adamw # opt_type
      attention: flash # attention
      recompute: selective # remat_policy
      recompute_modules: [op] # remat_policy
      recompute_saves: [qkv,proj,fc1] # remat_policy
    parallel:
      strategy: hsdp # dcn_data_parallelism
      replicate: 4 # dcn_data_parallelism
      tensor: 1 # ici_tensor_parallelism
    cluster:
      system: dgx-h100 # assumed: --system NAME takes another
      nodes: 4 # --gpus
    # What becomes of each key of max.yml:
    # line  it is         key, value, and how or why
    # ----------------------------------------------------------------------------------------
    #    2  not modelled  hardware = gpu: which machine: give --system
    #    3  taken         model_name = llama3.3-70b: as model.preset
    #    4  taken         per_device_batch_size = 2: as train.micro_batch
    #    5  taken         ici_fsdp_parallelism = 8: as parallel.data
    #    6  taken         ici_tensor_parallelism = 1: as parallel.tensor
    #    7  taken         dcn_data_parallelism = 4: as cluster.nodes, parallel.strategy,
    #                     parallel.replicate
    #    8  taken         quantization = fp8: as train.dtype
    #    9  taken         remat_policy = minimal: as train.recompute, train.recompute_modules,
    #                     train.recompute_saves
    #   10  taken         attention = cudnn_flash_te: as train.attention
    #   11  taken         opt_type = adam_pax: as train.optimizer
    # From lev.yaml, a config of Levanter.
    # Keys: 13. Taken: 10. No effect on a step's time: 2. Not modelled: 1.
    model:
      layers: 32 # model.num_layers
      hidden: 4096 # model.hidden_dim
      heads: 32 # model.num_heads
      kv_heads: 32 # model.num_kv_heads
      ffn_hidden: 11008 # model.intermediate_dim
      vocab: 32000 # data.tokenizer
      seq_len: 4096 # model.seq_len
      position: rope # model.type
      mlp: swiglu # model.type
      norm: rmsnorm # model.type
      bias: false # model.type
      tied_embeddings: false # model.type
    train:
      stack: maxtext # where the file is silent
      global_batch: 1024 # trainer.train_batch_size
      dtype: bf16 # trainer.mp
      param_dtype: fp32 # trainer.mp
      recompute: full # where the file is silent
    parallel:
      strategy: fsdp # where the file is silent
    cluster:
      system: dgx-h100 # assumed: --system NAME takes another
      nodes: 8 # --gpus
    # What becomes of each key of lev.yaml:
    # line  it is         key, value, and how or why
    # ---------------------------------------------------------------------------------------------
    #    1  taken         data.tokenizer = meta-llama/Llama-2-7b-hf: as model.vocab
    #    2  taken         model.type = llama: as model.position, model.norm, model.mlp, model.bias,
    #                     model.tied_embeddings
    #    2  taken         model.hidden_dim = 4096: as model.hidden
    #    2  taken         model.intermediate_dim = 11008: as model.ffn_hidden
    #    2  taken         model.num_layers = 32: as model.layers
    #    2  taken         model.num_heads = 32: as model.heads
    #    2  taken         model.num_kv_heads = 32: as model.kv_heads
    #    3  taken         model.seq_len = 4096: as model.seq_len
    #    4  taken         trainer.mp = p=f32,c=bfloat16: as train.dtype, train.param_dtype
    #    4  taken         trainer.train_batch_size = 1024: as train.global_batch
    #    4  not modelled  trainer.tensor_parallel_axes = [mlp]: products over several GPUs by axes

A model that is no preset is named; so is what can be read, where a file is of no framework that is known.

    $ printf 'model: Qwen/Ours-4B\nmodel_class: llm\ndist_config: {name: fsdp2}\n' >own.yaml
    > stepsim predict own.yaml -q
    > printf 'actor_rollout_ref: {actor: {ppo_mini_batch_size: 256}}\nalgorithm: {adv_estimator: gae}\ndata: {x: 1}\ncritic: {}\n' >verl.yaml
    > stepsim import verl.yaml
    > sed -i /^data/d verl.yaml; echo 'reward: {}' >>verl.yaml; stepsim predict verl.yaml
    > stepsim export $ROOT/configs/fsdp-tiny.yaml --to axolot
    > stepsim export $ROOT/configs/fsdp-tiny.yaml --to megatrn
    > stepsim export $ROOT/configs/fsdp-tiny.yaml --to axolotl
    stepsim: own.yaml:1: its model Qwen/Ours-4B is no preset: --model takes its config.json, or a name of `stepsim list models`
    stepsim: verl.yaml:1:1: its keys (the first: "actor_rollout_ref") are those of no known framework; --from NAME names one (accelerate automodel axolotl deepspeed gpt-neox internevo levanter lingua litgpt llama-factory llm-foundry maxtext megatron nanotron nemo olmo olmo-core prime-rl torchtitan torchtitan-0.2 torchtune transformers)
    stepsim: verl.yaml:1:1: its keys (the first: "actor_rollout_ref") are neither sections of CONFIG.yaml nor those of a known framework; --from NAME names one (accelerate automodel axolotl deepspeed gpt-neox internevo levanter lingua litgpt llama-factory llm-foundry maxtext megatron nanotron nemo olmo olmo-core prime-rl torchtitan torchtitan-0.2 torchtune transformers)
    stepsim: unknown framework "axolot" (known: accelerate, deepspeed, megatron, nanotron, torchtitan, torchtitan-0.2)
    stepsim: unknown framework "megatrn" (nearest: megatron; known: accelerate, deepspeed, megatron, nanotron, torchtitan, torchtitan-0.2)
    stepsim: Axolotl: its configs are read, but not written
    [2]

A table of a framework that cannot be read is said, where a config of another framework is given.

    $ mkdir home; cp -r $ROOT/configs home/; echo 'rows: [{key: x, to: model.nothing}]' >home/configs/frameworks/bad.yaml
    > printf 'model: Qwen/Ours-4B\nmodel_class: llm\ndist_config: {name: fsdp2}\n' >own.yaml
    > STEPSIM_HOME=$PWD/home stepsim predict own.yaml -q 2>&1 | sed 's:/.*/home:home:'
    stepsim: home/configs/frameworks/bad.yaml:1:8: model.nothing is no key of CONFIG.yaml
