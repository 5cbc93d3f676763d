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
      recompute: full # where the file is silent
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
    # Keys: 9. Taken: 6. No effect on a step's time: 2. Not modelled: 1.
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
      sync_every: 1 # default: logging_nan_inf_filter
    parallel:
      strategy: ddp # where the file is silent
    cluster:
      system: dgx-h100 # assumed: --system NAME takes another
      nodes: 1 # assumed: --gpus N takes more
    # What becomes of each key of trl.yaml:
    # line  it is         key, value, and how or why
    # ----------------------------------------------------------------------------------
    #    1  taken         model_name_or_path = Qwen/Qwen2.5-1.5B-Ins...: as model.preset
    #    2  taken         dtype = bfloat16: as train.dtype, train.param_dtype
    #    4  taken         lora_target_modules = all-linear: as train.lora_targets
    #    5  taken         per_device_train_batch_size = 4: as train.micro_batch
    #    6  taken         gradient_accumulation_steps = 8: as train.batch_per_gpu
    #    7  taken         max_length = 2048: as model.seq_len
    #    8  not modelled  use_liger_kernel = true: kernels of Liger and others
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
      recompute_modules: core_attn # remat_policy
    parallel:
      strategy: hsdp # dcn_data_parallelism
      replicate: 4 # dcn_data_parallelism
      tensor: 1 # ici_tensor_parallelism
    cluster:
      system: dgx-h100 # assumed: --system NAME takes another
      nodes: 4 # --gpus
    # What becomes of each key of max.yml:
    # line  it is         key, value, and how or why
    # ---------------------------------------------------------------------------------------
    #    2  not modelled  hardware = gpu: which machine: give --system
    #    3  taken         model_name = llama3.3-70b: as model.preset
    #    4  taken         per_device_batch_size = 2: as train.micro_batch
    #    6  taken         ici_tensor_parallelism = 1: as parallel.tensor
    #    7  taken         dcn_data_parallelism = 4: as parallel.strategy, parallel.replicate
    #    8  taken         quantization = fp8: as train.dtype
    #    9  taken         remat_policy = minimal: as train.recompute, train.recompute_modules
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
    stepsim: own.yaml:1: its model Qwen/Ours-4B is no preset: give its config.json (`stepsim import FILE config.json`), or --set model.preset=NAME
    stepsim: verl.yaml: its keys are of no framework that is known; --from NAME names one (accelerate axolotl deepspeed levanter litgpt llama-factory llm-foundry maxtext megatron nanotron nemo torchtitan torchtune transformers)
    stepsim: verl.yaml: no key of it is a section of CONFIG.yaml, nor are they of a framework that is known (accelerate axolotl deepspeed levanter litgpt llama-factory llm-foundry maxtext megatron nanotron nemo torchtitan torchtune transformers)
    stepsim: unknown framework "axolot" (known: accelerate, deepspeed, megatron, nanotron, torchtitan)
    stepsim: unknown framework "megatrn" (nearest: megatron; known: accelerate, deepspeed, megatron, nanotron, torchtitan)
    stepsim: Axolotl: its configs are read, but not written
    [2]

A table of a framework that cannot be read is said, where a config of another framework is given.

    $ mkdir home; cp -r $ROOT/configs home/; echo 'rows: [{key: x, to: model.nothing}]' >home/configs/frameworks/bad.yaml
    > printf 'model: Qwen/Ours-4B\nmodel_class: llm\ndist_config: {name: fsdp2}\n' >own.yaml
    > STEPSIM_HOME=$PWD/home stepsim predict own.yaml -q 2>&1 | sed 's:/.*/home:home:'
    stepsim: home/configs/frameworks/bad.yaml:1:8: model.nothing is no key of CONFIG.yaml

Recipes that are Python: torchtitan's config_registry.py, Megatron-Bridge's and NeMo's. Nothing of them is run.

    $ cat >registry.py <<'END'
    > from torchtitan.trainer import Trainer
    > STEPS = 2 * 50
    > def llama3_8b() -> Trainer.Config:
    >     """A docstring with def and = in it."""
    >     model_spec = model_registry("8B")
    >     return Trainer.Config(
    >         model_spec=model_spec,
    >         training=TrainingConfig(local_batch_size=1, seq_len=8192, steps=STEPS),
    >         parallelism=ParallelismConfig(data_parallel_shard_degree=-1),
    >         activation_checkpoint=SelectiveAC.Config(),
    >         compile=CompileConfig(enable=True),
    >     )
    > def llama3_8b_mxfp8_tp(degree: int = 2):
    >     config = llama3_8b()
    >     config.model_spec = model_registry("8B", converters=[MXFP8LinearConverter.Config(fqns=["layers"])])
    >     config.parallelism.tensor_parallel_degree = degree * 2 if degree > 1 else 1
    >     if config.compile.enable and degree == 2:
    >         config.activation_checkpoint = FullAC.Config()
    >     if os.environ.get("WIDE"):
    >         config.training.seq_len = 131072
    >     return config
    > END
    > stepsim import registry.py
    > stepsim import registry.py:llama3_8b_mxfp8_tp --gpus 16 | grep -v -e '  no effect'
    > stepsim predict registry.py:llama3_8b --gpus 8 -q | head -2
    stepsim: registry.py: it has 2 functions that build a config (they are: llama3_8b, llama3_8b_mxfp8_tp): give one, as registry.py:llama3_8b
    # From registry.py:llama3_8b_mxfp8_tp, a config of torchtitan.
    # Keys: 17. Taken: 9. No effect on a step's time: 6. Not modelled: 2.
    model:
      preset: llama3-8b # _function_
      seq_len: 8192 # training.seq_len
    train:
      stack: pytorch-fsdp # compile.enable
      batch_per_gpu: 0.25 # training.local_batch_size
      micro_batch: 1 # training.local_batch_size
      dtype: mxfp8 # model_spec.converters.MXFP8LinearConverter._target_
      reduce_dtype: fp32 # default: training.mixed_precision_reduce
      optimizer: adamw # default: optimizer.name
      recompute: full # activation_checkpoint._target_
    parallel:
      strategy: fsdp # parallelism.data_parallel_shard_degree
      tensor: 4 # parallelism.tensor_parallel_degree
      sequence_parallel: true # parallelism.tensor_parallel_degree
      pipeline: 1 # default: parallelism.pipeline_parallel_degree
      context: 1 # default: parallelism.context_parallel_degree
      expert: 1 # default: parallelism.expert_parallel_degree
    cluster:
      system: dgx-h100 # assumed: --system NAME takes another
      nodes: 2 # --gpus
    # What becomes of each key of registry.py:llama3_8b_mxfp8_tp:
    # line  it is         key, value, and how or why
    # --------------------------------------------------------------------------------------------------
    #   15  taken         model_spec._0 = 8B: as model.preset
    #   15  taken         model_spec.converters.MXFP8LinearConverter._target_ =
    #                     MXFP8LinearConverter....: as train.dtype
    #   15  not modelled  model_spec.converters.MXFP8LinearConverter.fqns = [layers]: formats of experts
    #                     and of layers
    #    8  taken         training.local_batch_size = 1: as train.micro_batch, train.batch_per_gpu
    #    8  taken         training.seq_len = 8192: as model.seq_len
    #    9  taken         parallelism.data_parallel_shard_degree = -1: as parallel.strategy
    #   16  taken         parallelism.tensor_parallel_degree = 4: as parallel.tensor,
    #                     parallel.sequence_parallel
    #   18  taken         activation_checkpoint._target_ = FullAC.Config: as train.recompute
    #   11  taken         compile.enable = true: as train.stack
    #   13  taken         _function_ = llama3_8b_mxfp8_tp: as model.preset
    #   19  not modelled  _line_19 = if os.environ.get("WI...: a statement that is not run
    A step takes 1.08 s (90 % interval: 912 ms to 1.27 s); 90 % of communication hides behind compute,
      the rest takes 1.6 % of the step; it fits, 43.6 GiB are free.
    $ cat >bridge.py <<'END'
    > from .common import _pretrain_common
    > def moe_pretrain_64gpu_config():
    >     cfg = _pretrain_common()
    >     cfg.model = AutoBridge.from_hf_pretrained("Qwen/Qwen3-30B-A3B").to_megatron_provider(load_weights=False)
    >     cfg.dataset.seq_length = 4096
    >     cfg.model.tensor_model_parallel_size = 2
    >     cfg.model.sequence_parallel = True
    >     cfg.model.expert_model_parallel_size = 8
    >     cfg.model.pipeline_dtype = torch.bfloat16
    >     cfg.model.recompute_granularity = None
    >     cfg.train.global_batch_size, cfg.train.micro_batch_size = 512, 1
    >     cfg.mixed_precision = bf16_with_fp8_current_scaling_mixed()
    >     cfg.ddp.overlap_grad_reduce = True
    >     return cfg
    > END
    > stepsim import bridge.py --gpus 64 | grep -v -e '  no effect'
    # From bridge.py, a config of NeMo and Megatron-Bridge.
    # Keys: 16. Taken: 9. No effect on a step's time: 7. Not modelled: 0.
    model:
      preset: qwen3-30b-a3b # model._of._0
      seq_len: 4096 # dataset.seq_length
    train:
      stack: megatron-core # ddp.overlap_grad_reduce
      global_batch: 512 # train.global_batch_size
      micro_batch: 1 # train.micro_batch_size
      dtype: fp8 # mixed_precision._from_
      fp8_recipe: tensorwise # mixed_precision._from_
      grad_dtype: fp32 # ddp.overlap_grad_reduce
      reduce_dtype: fp32 # ddp.overlap_grad_reduce
      optimizer: adamw # default: optimizer
    data:
      workers: 2 # default: num_workers
    parallel:
      strategy: zero1 # where the file is silent
      tensor: 2 # model.tensor_model_parallel_size
      tensor_overlap: false # default: tp_comm_overlap
      sequence_parallel: true # model.sequence_parallel
      pipeline: 1 # default: pipeline_model_parallel_size
      context: 1 # default: context_parallel_size
      expert: 8 # model.expert_model_parallel_size
      overlap: true # ddp.overlap_grad_reduce
    cluster:
      system: dgx-h100 # assumed: --system NAME takes another
      nodes: 8 # --gpus
    # What becomes of each key of bridge.py:
    # line  it is      key, value, and how or why
    # --------------------------------------------------------------------------------------------
    #    4  taken      model._of._0 = Qwen/Qwen3-30B-A3B: as model.preset
    #    6  taken      model.tensor_model_parallel_size = 2: as parallel.tensor
    #    7  taken      model.sequence_parallel = true: as parallel.sequence_parallel
    #    8  taken      model.expert_model_parallel_size = 8: as parallel.expert
    #    5  taken      dataset.seq_length = 4096: as model.seq_len
    #   11  taken      train.global_batch_size = 512: as train.global_batch
    #   11  taken      train.micro_batch_size = 1: as train.micro_batch
    #   12  taken      mixed_precision._from_ = bf16_with_fp8_current...: as train.dtype,
    #                  train.fp8_recipe
    #   13  taken      ddp.overlap_grad_reduce = true: as parallel.overlap, train.stack,
    #                  train.grad_dtype, train.reduce_dtype
    $ cat >nemo2.py <<'END'
    > NAME = "mixtral_8x7b"
    > def model() -> run.Config[pl.LightningModule]:
    >     return run.Config(MixtralModel, config=run.Config(MixtralConfig8x7B))
    > def trainer(tensor_parallelism: int = 1, expert_parallelism: int = 8, num_nodes: int = 8, callbacks=None):
    >     strategy = run.Config(nl.MegatronStrategy, tensor_model_parallel_size=tensor_parallelism,
    >         expert_model_parallel_size=expert_parallelism, sequence_parallel=True,
    >         ddp=run.Config(DDP, grad_reduce_in_fp32=True))
    >     return run.Config(nl.Trainer, devices=8, num_nodes=num_nodes, plugins=bf16_mixed(), strategy=strategy,
    >         callbacks=callbacks)
    > @run.cli.factory(target=pretrain, name=NAME)
    > def pretrain_recipe(num_nodes: int = 8, performance_mode: bool = False, fn: Callable = pretrain):
    >     recipe = run.Partial(fn, model=model(), trainer=trainer(num_nodes=num_nodes, tensor_parallelism=2),
    >         data=run.Config(MockDataModule, seq_length=4096, global_batch_size=256, micro_batch_size=1))
    >     if performance_mode:
    >         recipe = fast(recipe)
    >     if not recipe.trainer.callbacks:
    >         recipe.trainer.callbacks = []
    >     recipe.trainer.callbacks.append(run.Config(MegatronCommOverlapCallback, tp_comm_overlap=True))
    >     return recipe
    > END
    > stepsim import nemo2.py | grep -v -e '  no effect'
    # From nemo2.py, a config of NeMo and Megatron-Bridge.
    # Keys: 20. Taken: 12. No effect on a step's time: 8. Not modelled: 0.
    model:
      preset: mixtral-8x7b # model.config._target_
      seq_len: 4096 # data.seq_length
    train:
      stack: megatron-core # where the file is silent
      global_batch: 256 # data.global_batch_size
      micro_batch: 1 # data.micro_batch_size
      dtype: bf16 # trainer.plugins._from_
      grad_dtype: fp32 # trainer.strategy.ddp.grad_reduce_in_fp32
      reduce_dtype: fp32 # trainer.strategy.ddp.grad_reduce_in_fp32
      optimizer: adamw # default: optimizer
    data:
      workers: 2 # default: num_workers
    parallel:
      strategy: zero1 # where the file is silent
      tensor: 2 # trainer.strategy.tensor_model_parallel_size
      tensor_overlap: true # trainer.callbacks.MegatronCommOverlapCallback.tp_comm_overlap
      sequence_parallel: true # trainer.strategy.sequence_parallel
      pipeline: 1 # default: pipeline_model_parallel_size
      context: 1 # default: context_parallel_size
      expert: 8 # trainer.strategy.expert_model_parallel_size
      overlap: true # default: overlap_grad_reduce
    cluster:
      system: dgx-h100 # assumed: --system NAME takes another
      nodes: 8 # trainer.num_nodes
    # What becomes of each key of nemo2.py:
    # line  it is      key, value, and how or why
    # ------------------------------------------------------------------------------------------------
    #    3  taken      model.config._target_ = MixtralConfig8x7B: as model.preset
    #    8  taken      trainer.devices = 8: as cluster.gpus_per_node
    #    8  taken      trainer.num_nodes = 8: as cluster.nodes
    #    8  taken      trainer.plugins._from_ = bf16_mixed: as train.dtype
    #    5  taken      trainer.strategy.tensor_model_parallel_size = 2: as parallel.tensor
    #    6  taken      trainer.strategy.expert_model_parallel_size = 8: as parallel.expert
    #    6  taken      trainer.strategy.sequence_parallel = true: as parallel.sequence_parallel
    #    7  taken      trainer.strategy.ddp.grad_reduce_in_fp32 = true: as train.reduce_dtype,
    #                  train.grad_dtype
    #                  MegatronCommOverlapCa...: the trainer's own
    #   18  taken      trainer.callbacks.MegatronCommOverlapCallback.tp_comm_overlap = true: as
    #                  parallel.tensor_overlap
    #   13  taken      data.seq_length = 4096: as model.seq_len
    #   13  taken      data.global_batch_size = 256: as train.global_batch
    #   13  taken      data.micro_batch_size = 1: as train.micro_batch
    $ printf 'def a():\n    return X(b=[1,\n' >open.py; stepsim import open.py
    > printf 'def a(b):\n    return X(b=1)\n' >needs.py; stepsim import needs.py; stepsim import needs.py:c
    > printf 'def a():\n    return 3\n' >number.py; stepsim import number.py
    > printf 'def a():\n    x = Y()\n    x.z = x\n    x.y = a()\n    return x\n' >loop.py; stepsim import loop.py
    stepsim: open.py:2:13: a bracket without its closing one
    stepsim: needs.py: it has no function that builds a config without arguments
    stepsim: needs.py:c: it has no function that builds a config without arguments
    stepsim: number.py:1:5: function a returns no config
    stepsim: loop.py: its keys are of no framework that is known; --from NAME names one (accelerate axolotl deepspeed levanter litgpt llama-factory llm-foundry maxtext megatron nanotron nemo torchtitan torchtune transformers)
    [2]
