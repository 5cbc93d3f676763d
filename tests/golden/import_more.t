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
    # Keys: 11. Taken: 8. No effect on a step's time: 2. Not modelled: 1.
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
    # What becomes of each key of swift.sh:
    # line  it is         key, value, and how or why
    # ------------------------------------------------------------------------------------------
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
    # Keys: 11. Taken: 8. No effect on a step's time: 2. Not modelled: 1.
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
    #    6  taken         ici_tensor_parallelism = 1: as parallel.tensor
    #    7  taken         dcn_data_parallelism = 4: as parallel.strategy, parallel.replicate
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
    stepsim: verl.yaml:1:1: its keys (the first: "actor_rollout_ref") are those of no known framework; --from NAME names one (accelerate automodel axolotl deepspeed gpt-neox levanter litgpt llama-factory llm-foundry maxtext megatron nanotron nemo olmo olmo-core torchtitan torchtitan-0.2 torchtune transformers)
    stepsim: verl.yaml:1:1: its keys (the first: "actor_rollout_ref") are neither sections of CONFIG.yaml nor those of a known framework; --from NAME names one (accelerate automodel axolotl deepspeed gpt-neox levanter litgpt llama-factory llm-foundry maxtext megatron nanotron nemo olmo olmo-core torchtitan torchtitan-0.2 torchtune transformers)
    stepsim: unknown framework "axolot" (known: accelerate, deepspeed, megatron, nanotron, torchtitan, torchtitan-0.2)
    stepsim: unknown framework "megatrn" (nearest: megatron; known: accelerate, deepspeed, megatron, nanotron, torchtitan, torchtitan-0.2)
    stepsim: Axolotl: its configs are read, but not written
    [2]

A table of a framework that cannot be read is said, where a config of another framework is given.

    $ mkdir home; cp -r $ROOT/configs home/; echo 'rows: [{key: x, to: model.nothing}]' >home/configs/frameworks/bad.yaml
    > printf 'model: Qwen/Ours-4B\nmodel_class: llm\ndist_config: {name: fsdp2}\n' >own.yaml
    > STEPSIM_HOME=$PWD/home stepsim predict own.yaml -q 2>&1 | sed 's:/.*/home:home:'
    stepsim: home/configs/frameworks/bad.yaml:1:8: model.nothing is no key of CONFIG.yaml

Defaults and sizes that differ from a neighbour's: LitGPT's pretraining is compiled, shards over the GPUs of a host and
keeps all activations, and one GPU has no FSDP; Levanter's micro-batch is that of a place on the data axis; TRL trains
in bf16 on 1024 tokens.

    $ printf 'model_config: {n_layer: 4, n_embd: 512, n_head: 8, padded_vocab_size: 32000, block_size: 2048}\ndevices: 8\nnum_nodes: 2\ntokenizer_dir: x\ntrain: {global_batch_size: 512, micro_batch_size: 4}\nmodel_name: mine\n' >pretrain.yaml
    > stepsim import pretrain.yaml | grep -e stack -e strategy -e recompute
    > printf 'checkpoint_dir: checkpoints/meta-llama/Meta-Llama-3-8B\ndevices: 1\ntrain: {global_batch_size: 8, micro_batch_size: 1}\n' >one.yaml
    > stepsim import one.yaml | grep -e stack -e strategy -e recompute
    > printf 'model: {type: llama, num_layers: 4, hidden_dim: 512, num_heads: 8, intermediate_dim: 1024, max_seq_len: 1024}\ndata: {tokenizer: meta-llama/Llama-2-7b-hf}\noptimizer: {learning_rate: 1e-3}\ntrainer: {train_batch_size: 64, model_axis_size: 2, per_device_parallelism: 4}\n' >lev.yaml
    > stepsim import lev.yaml | grep -e batch -e tensor:
    > printf 'model_name_or_path: Qwen/Qwen2.5-1.5B-Instruct\nuse_peft: true\nper_device_train_batch_size: 4\n' >trl.yaml
    > stepsim import trl.yaml | grep -e seq_len -e ' dtype'
    > (cat trl.yaml; echo 'fp16: true') >half.yaml; stepsim import half.yaml | grep ' dtype'
      stack: pytorch-fsdp # tokenizer_dir
      recompute: none # tokenizer_dir
      strategy: hsdp # tokenizer_dir
    #    4  taken         tokenizer_dir = x: as train.stack, parallel.strategy, train.recompute
      stack: pytorch-fsdp-eager # where the file is silent
      recompute: none # devices
      strategy: none # devices
    #    2  taken  devices = 1: as cluster.gpus_per_node, parallel.strategy, train.recompute
      global_batch: 64 # trainer.train_batch_size
      micro_batch: 4 # trainer.per_device_parallelism
      tensor: 2 # trainer.model_axis_size
    #    4  taken      trainer.train_batch_size = 64: as train.global_batch
    #    4  taken      trainer.per_device_parallelism = 4: as train.micro_batch
      seq_len: 1024 # default: max_length
      dtype: bf16 # default: bf16
      dtype: fp16 # fp16

MaxText's base.yml by itself has all keys: those of a dense model say nothing, and experts are read.

    $ tr , '\n' >base.yml <<'END'
    > model_name: default,base_emb_dim: 2048,base_num_query_heads: 16,base_num_kv_heads: 16,base_mlp_dim: 7168,head_dim: 128
    > base_num_decoder_layers: 16,vocab_size: 32000,num_experts: 1,num_experts_per_tok: 1,mtp_num_layers: 0,first_num_dense_layers: 0
    > capacity_factor: -1.0,wi_tile_fwd_mlp_dim: 1024,override_model_config: false,per_device_batch_size: 12.0,max_target_length: 2048
    > END
    > stepsim import base.yml | grep -E 'Keys|not modelled'
    > sed 's/num_experts: 1/num_experts: 8/; s/_per_tok: 1/_per_tok: 2/; s/head_dim: 128/base_moe_mlp_dim: 1024/; s/-1.0/-1/' base.yml >base8.yml; stepsim import base8.yml | grep -E '^ .*expert|^ .*moe'
    # Keys: 17. Taken: 9. No effect on a step's time: 8. Not modelled: 0.
      experts: 8 # num_experts
      experts_per_token: 2 # num_experts_per_tok
      moe_ffn_hidden: 1024 # base_moe_mlp_dim

DeepSpeed's micro-batch follows from the batch, the GPUs and the accumulation, where the file does not name it.
Communication overlaps by default at stage 3 alone, and experts that are not enabled stay where they are.

    $ cat >ds.json <<'END'
    > {"train_batch_size": 64, "gradient_accumulation_steps": 4, "bf16": {"enabled": true},
    >  "zero_optimization": {"stage": 2}, "expert_parallel": {"enabled": false, "autoep_size": 8}}
    > END
    > stepsim import ds.json mixtral-8x7b --gpus 8 | grep -E 'micro_batch|overlap|expert'
    > stepsim import ds.json mixtral-8x7b --gpus 64 >none.yaml
    > sed 's/, "gradient.*4//; s/"stage": 2/"stage": 3/' ds.json >ds3.json
    > stepsim import ds3.json mixtral-8x7b --gpus 16 | grep -E 'micro_batch|overlap'
      micro_batch: 2 # train_batch_size over 8 replicas, 4 micro-batches each
      overlap: false # default: zero_optimization.overlap_comm
    #    1  taken      gradient_accumulation_steps = 4: as train.micro_batch
    #    2  no effect  expert_parallel.enabled = false: names the model's layers
    #    2  no effect  expert_parallel.autoep_size = 8: other keys decide
    stepsim: the config that was written is not complete: ds.json: a batch of 64 does not split into 256 micro-batches (64 replicas x 4; --gpus N takes other GPUs)
      micro_batch: 4 # train_batch_size over 16 replicas, 1 micro-batch each

Megatron's flex dispatcher has the backend that is named, whatever the older key says.

    $ cat >flex.yaml <<'END'
    > model: {num_layers: 4, hidden_size: 512, num_attention_heads: 8, seq_length: 1024, num_moe_experts: 8,
    >   expert_model_parallel_size: 8, moe_token_dispatcher_type: flex, moe_flex_dispatcher_backend: hybridep,
    >   moe_enable_deepep: false}
    > train: {micro_batch_size: 1, global_batch_size: 16}
    > ddp: {}
    > END
    > stepsim import flex.yaml | grep -E 'dispatch|deepep'
      expert_dispatch: once_a_host # model.moe_flex_dispatcher_backend
    #    2  no effect     model.moe_token_dispatcher_type = flex: other keys decide
    #    2  taken         model.moe_flex_dispatcher_backend = hybridep: as parallel.expert_dispatch
    #    3  no effect     model.moe_enable_deepep = false: model.moe_flex_dispatcher_backend decides
    #                     parallel.expert_dispatch

Axolotl loads a model in the format that it trains in, bf16 by default; FSDP keeps fp32 weights, and may gather in fp8.

    $ printf 'base_model: Qwen/Qwen3-8B\nsequence_len: 4096\nmicro_batch_size: 1\n' >ax.yaml
    > stepsim import ax.yaml | grep dtype
    > (cat ax.yaml; echo 'fp16: true') >half.yaml
    > stepsim import half.yaml | grep dtype:
    > (cat ax.yaml; printf 'bf16: true\nfp8: true\nfsdp_version: 2\nfp8_enable_fsdp_float8_all_gather: true\n') >fp8.yaml
    > stepsim import fp8.yaml | grep dtype:
      dtype: bf16 # default: bf16
      param_dtype: bf16 # default: bf16
      dtype: fp16 # fp16
      dtype: fp8 # fp8
      gather_dtype: fp8 # fp8_enable_fsdp_float8_all_gather

GPT-NeoX reads dashes as underscores. Sums by hand: 96 GPUs / (2 x 4) = 12 replicas, x 4 x 32 = 1536 sequences, 16 a GPU;
its vocabulary is padded to 128 x 2. Of a gated MLP each of two matrices has a third of the width that is named; the older
llama's has 8/3 x 4096 in whole 256s. Gradients are not reduced beside the backward pass while its pipelines are on.

    $ cat >neox.yml <<'END'
    > # GPT-NeoX
    > {
    >   "vocab-file": "./20B_checkpoints/20B_tokenizer.json",
    >   "pipe-parallel-size": 4, "model-parallel-size": 2,
    >   "num-layers": 44, "hidden-size": 6144, "num-attention-heads": 64, "seq-length": 2048,
    >   "max-position-embeddings": 2048, "norm": "layernorm", "pos-emb": "rotary", "rotary_pct": 0.25,
    >   "no-weight-tying": true, "gpt_j_residual": true, "output_layer_parallelism": "column",
    >   "optimizer": {"type": "Adam", "params": {"lr": 0.97e-4, "betas": [0.9, 0.95]}},
    >   "zero_optimization": {"stage": 1, "overlap_comm": True, "reduce_bucket_size": 524288000},
    >   "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 32,
    >   "checkpoint-activations": true, "partition-activations": true,
    >   "fp16": {"enabled": true, "type": "bfloat16", "loss_scale": 0},
    >   "attention_config": [[["flash"], 44]], "train-iters": 150000,
    > }
    > END
    > stepsim import neox.yml --gpus 96 | grep -v -e '^# *[0-9]* *taken'
    > sed 's/"pipe-parallel-size": 4/"pipe-parallel-size": 0, "activation": "swiglu", "intermediate_size": 49152/' neox.yml |
    >   stepsim import - --gpus 96 | grep -e ffn_hidden: -e pipeline: -e overlap: -e mlp:
    > printf '{\n # LLaMA\n "num-layers": 32, "hidden-size": 4096, "num-attention-heads": 32, "pos-emb": "rotary",\n' >llama.yml
    > printf ' "mlp_type": "llama", "use_bias_in_attn_linear": false, "num_experts": 4}\n' >>llama.yml
    > stepsim import llama.yml | grep -e ffn_hidden: -e bias: -e mlp: -e expert -e freq
    > sed -i 's/rotary/rotery/' llama.yml; stepsim import llama.yml
    # From neox.yml, a config of GPT-NeoX.
    # Keys: 29. Taken: 19. No effect on a step's time: 9. Not modelled: 1.
    model:
      layers: 44 # num_layers
      hidden: 6144 # hidden_size
      heads: 64 # num_attention_heads
      vocab: 50277 # vocab_file
      vocab_padding: 256 # default: make_vocab_size_divisible_by
      seq_len: 2048 # seq_length
      position: rope # pos_emb
      mlp: gelu # default: activation
      norm: layernorm # norm
      bias: true # where the file is silent
      parallel_residual: true # gpt_j_residual
      tied_embeddings: false # no_weight_tying
      dropout: 0 # default: hidden_dropout
      attention_dropout: 0 # default: attention_dropout
    train:
      stack: gpt-neox # where the file is silent
      batch_per_gpu: 16 # gradient_accumulation_steps
      micro_batch: 4 # train_micro_batch_size_per_gpu
      dtype: bf16 # fp16.type
      optimizer: adamw # optimizer.type
      attention: flash # attention_config
      recompute: full # checkpoint_activations
    parallel:
      strategy: zero1 # zero_optimization.stage
      tensor: 2 # model_parallel_size
      pipeline: 4 # pipe_parallel_size
      bucket_mb: 1000 # zero_optimization.reduce_bucket_size
    cluster:
      system: dgx-h100 # assumed: --system NAME takes another
      nodes: 12 # --gpus
    # What becomes of each key of neox.yml:
    # line  it is         key, value, and how or why
    # --------------------------------------------------------------------------------------------------
    #    6  no effect     max_position_embeddings = 2048: other keys decide
    #    6  no effect     rotary_pct = 0.25: angles and scales alone
    #    7  no effect     output_layer_parallelism = column: of the stack
    #    8  no effect     optimizer.params.lr = 0.97e-4: arithmetic of a step's update
    #    8  no effect     optimizer.params.betas = [0.9, 0.95]: arithmetic of a step's update
    #    9  no effect     zero_optimization.overlap_comm = True: other keys decide
    #   11  not modelled  partition_activations = true: activations kept in parts on the ranks of tensor
    #                     parallelism
    #   12  no effect     fp16.enabled = true: fp16.type decides train.dtype
    #   12  no effect     fp16.loss_scale = 0: arithmetic of a step's update
    #   13  no effect     train_iters = 150000: how long training goes on
      ffn_hidden: 16384 # intermediate_size
      mlp: swiglu # activation
      pipeline: 1 # pipe_parallel_size
      overlap: true # zero_optimization.overlap_comm
      ffn_hidden: 11008 # hidden_size
      mlp: swiglu # mlp_type
      bias: false # use_bias_in_attn_linear
      experts: 4 # num_experts
      experts_per_token: 1 # default: moe_top_k
      moe_layer_freq: 2 # default: expert_interval
    #    4  taken  num_experts = 4: as model.experts
    stepsim: llama.yml:3:79: pos_emb: unknown value "rotery" (nearest: rotary; known: learned, rotary, sinusoidal, rpe, alibi, none)
    [2]

Checkpoints of reentrant autograd run whole blocks again: transformers' where a file asks for it, LLaMA-Factory's by
default.

    $ printf 'model_name_or_path: Qwen/Qwen3-8B\nper_device_train_batch_size: 1\n' >ck.yaml
    > (cat ck.yaml; printf 'gradient_checkpointing: true\ngradient_checkpointing_kwargs: {use_reentrant: true}\n') >re.yaml
    > stepsim import re.yaml | grep early_stop
    > sed -i 's/use_reentrant: true/use_reentrant: false/' re.yaml; stepsim import re.yaml | grep 'early_stop: '
    > (cat ck.yaml; printf 'finetuning_type: full\nstage: sft\ncutoff_len: 2048\n') >lf.yaml
    > stepsim import lf.yaml | grep early_stop
    > (cat lf.yaml; echo 'disable_gradient_checkpointing: true') >off.yaml; stepsim import off.yaml | grep -c early_stop
      recompute_early_stop: false # gradient_checkpointing_kwargs.use_reentrant
    #    4  taken  gradient_checkpointing_kwargs.use_reentrant = true: as train.recompute_early_stop
      recompute_early_stop: true # gradient_checkpointing_kwargs.use_reentrant
      recompute_early_stop: false # default: use_reentrant_gc
    0
    [1]

OLMo's trainer has keys of llm-foundry's beside its own. Its products of swiglu have both halves: 22016 are 11008. Of 32
layers each third from the first on is recomputed, 11; compile: null is eager.

    $ cat >olmo.yaml <<'END'
    > run_name: OLMo2-7B
    > model: {d_model: 4096, n_heads: 32, n_layers: 32, mlp_hidden_size: 22016, weight_tying: false, rope: true,
    >   flash_attention: true, attention_layer_norm: true, include_bias: false, layer_norm_type: rms, norm_after: true,
    >   activation_type: swiglu, residual_dropout: 0.0, attention_dropout: 0.0, embedding_dropout: 0.0,
    >   max_sequence_length: 4096, vocab_size: 100278, embedding_size: 100352, init_fn: normal}
    > compile: null
    > optimizer: {name: adamw, learning_rate: 3.0e-4}
    > global_train_batch_size: 1024
    > device_train_microbatch_size: 2
    > precision: amp_bf16
    > distributed_strategy: fsdp
    > fsdp: {wrapping_strategy: by_block, precision: mixed}
    > activation_checkpointing: one_in_three
    > END
    > stepsim import olmo.yaml --gpus 64 | grep -v -e '^# *[0-9]* *taken'
    > stepsim predict olmo.yaml --gpus 64 -q | grep parameters
    > sed -i -e '/^compile/d' -e '/^activation_ch/d' -e 's/_size: 22016/_sze: 22016/' olmo.yaml
    > stepsim import olmo.yaml --gpus 64 | grep -e ffn_hidden -e _sze -e recompute -e stack:
    # From olmo.yaml, a config of OLMo.
    # Keys: 30. Taken: 23. No effect on a step's time: 7. Not modelled: 0.
    model:
      layers: 32 # model.n_layers
      hidden: 4096 # model.d_model
      heads: 32 # model.n_heads
      ffn_hidden: 11008 # model.mlp_hidden_size
      vocab: 100352 # model.embedding_size
      seq_len: 4096 # model.max_sequence_length
      position: rope # model.rope
      mlp: swiglu # model.activation_type
      norm: rmsnorm # model.layer_norm_type
      bias: false # model.include_bias
      qk_norm: full # model.attention_layer_norm
      branch_norm: reordered # model.norm_after
      parallel_residual: false # default: model.block_type
      tied_embeddings: false # model.weight_tying
      dropout: 0 # model.residual_dropout
      attention_dropout: 0 # model.attention_dropout
    train:
      stack: pytorch-fsdp-eager # where the file is silent
      global_batch: 1024 # global_train_batch_size
      micro_batch: 2 # device_train_microbatch_size
      dtype: bf16 # precision
      reduce_dtype: fp32 # fsdp.precision
      optimizer: adamw # optimizer.name
      attention: flash # model.flash_attention
      recompute: full # activation_checkpointing
      recompute_layers: 11 # model.n_layers
    parallel:
      strategy: fsdp # distributed_strategy
    cluster:
      system: dgx-h100 # assumed: --system NAME takes another
      nodes: 8 # --gpus
    # What becomes of each key of olmo.yaml:
    # line  it is      key, value, and how or why
    # ------------------------------------------------------------------------------------
    #    1  no effect  run_name = OLMo2-7B: files and logs
    #    4  no effect  model.embedding_dropout = 0.0: off
    #    5  no effect  model.vocab_size = 100278: model.embedding_size decides model.vocab
    #    5  no effect  model.init_fn = normal: angles and scales alone
    #    6  no effect  compile = null: empty
    #    7  no effect  optimizer.learning_rate = 3.0e-4: arithmetic of a step's update
    #   12  no effect  fsdp.wrapping_strategy = by_block: of the stack
    custom (7.30 B parameters), fsdp on 64 ranks (dp 64), bf16
      ffn_hidden: 8192 # default: model.mlp_ratio
      stack: pytorch-fsdp-eager # where the file is silent
    #    2  not modelled  model.mlp_hidden_sze = 22016: not known to stepsim (nearest:

NeMo Automodel names models by their page, and adapters' products by patterns.

    $ cat >automodel.yaml <<'END'
    > model: {_target_: nemo_automodel.NeMoAutoModelForCausalLM.from_pretrained, torch_dtype: auto,
    >   pretrained_model_name_or_path: meta-llama/Llama-3.1-8B-Instruct}
    > distributed: {_target_: nemo_automodel.components.distributed.fsdp2.FSDP2Manager, dp_size: none, tp_size: 2,
    >   cp_size: 2, sequence_parallel: true, activation_checkpointing: true}
    > step_scheduler: {global_batch_size: 64, local_batch_size: 1, max_steps: 13}
    > optimizer: {_target_: torch.optim.Adam, lr: 5.0e-06}
    > peft: {_target_: nemo_automodel.components._peft.lora.PeftConfig, target_modules: ["q_proj", "v_proj"], dim: 8}
    > dataset: {seq_length: 2048}
    > END
    > stepsim import automodel.yaml --gpus 16 | grep -v '^#'
    > sed 's/\["q_proj.*\]/["*_proj"]/' automodel.yaml >all.yaml; stepsim import all.yaml | grep targets:
    > sed -i 's/tp_size: 2/tp_size: none/; s/cp_size: 2/cp_size: 1/; s/peft: .*/fp8: {enabled: true, recipe_name: rowwise}/' automodel.yaml
    > stepsim import automodel.yaml | grep -e tensor -e context -e fp8 -e lora -e sequence_p
    model:
      preset: llama3.1-8b # model.pretrained_model_name_or_path
      seq_len: 2048 # dataset.seq_length
    train:
      stack: pytorch-fsdp-eager # where the file is silent
      global_batch: 64 # step_scheduler.global_batch_size
      micro_batch: 1 # step_scheduler.local_batch_size
      dtype: bf16 # where the file is silent
      param_dtype: bf16 # model.torch_dtype
      optimizer: adamw # optimizer._target_
      recompute: full # distributed.activation_checkpointing
      lora_rank: 8 # peft.dim
      lora_targets: qkv # peft.target_modules
    parallel:
      strategy: fsdp # distributed._target_
      tensor: 2 # distributed.tp_size
      sequence_parallel: true # distributed.sequence_parallel
      context: 2 # distributed.cp_size
      context_kind: all_gather # distributed.cp_size
    cluster:
      system: dgx-h100 # assumed: --system NAME takes another
      nodes: 2 # --gpus
      lora_targets: all # peft.target_modules
      dtype: fp8 # fp8.enabled
      fp8_recipe: rowwise # fp8.recipe_name
      context: 1 # distributed.cp_size
    #    4  taken      distributed.cp_size = 1: as parallel.context
    #    4  no effect  distributed.sequence_parallel = true: other keys decide
    #    7  taken      fp8.enabled = true: as train.dtype
    #    7  taken      fp8.recipe_name = rowwise: as train.fp8_recipe
