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
      fused_kernels: [torch_norm] # _function_
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
    #   13  taken         _function_ = llama3_8b_mxfp8_tp: as model.preset, train.fused_kernels
    #   19  not modelled  _line_19 = if os.environ.get("WI...: a statement that is not run
    A step takes 1.11 s (90 % interval: 0.937 s to 1.31 s); 90 % of communication hides behind compute,
      the rest takes 1.5 % of the step; it fits, 47.4 GiB are free.
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
    stepsim: loop.py:2:9: its keys (the first: "_target_") are those of no known framework; --from NAME names one (accelerate automodel axolotl deepspeed gpt-neox internevo levanter lingua litgpt llama-factory llm-foundry maxtext megatron nanotron nemo olmo olmo-core prime-rl torchtitan torchtitan-0.2 torchtune transformers)
    [2]

A recipe names its model by a class of Megatron-Bridge; one that is no preset is named by what the class is given, or by
itself. A slip of a recipe's name gets the nearest of all of them.

    $ cat >recipes.py <<'END'
    > def nemotronh_8b_pretrain_config():
    >     cfg = _pretrain_common()
    >     cfg.model = NemotronHModelProvider8B(tensor_model_parallel_size=2, sequence_parallel=True)
    >     cfg.train.global_batch_size = 768
    >     cfg.train.micro_batch_size = 1
    >     cfg.dataset.seq_length = 8192
    >     return cfg
    > def unknown_config():
    >     cfg = nemotronh_8b_pretrain_config()
    >     cfg.model = AutoBridge.from_hf_pretrained("org/Ours-4B").to_megatron_provider(load_weights=False)
    >     return cfg
    > def class_config():
    >     cfg = nemotronh_8b_pretrain_config()
    >     cfg.model = OursModelProvider4B()
    >     return cfg
    > END
    > stepsim import recipes.py:nemotronh_8b_pretrain_config | grep -e preset -e tensor:
    > for r in unknown_config class_config class_confg; do stepsim predict recipes.py:$r; done
    > stepsim predict recipes.py
      preset: nemotron-h-8b # model._target_
      tensor: 2 # model.tensor_model_parallel_size
    #    3  taken      model._target_ = NemotronHModelProvider8B: as model.preset
    stepsim: recipes.py:unknown_config:10: its model org/Ours-4B is no preset: --model takes its config.json, or a name of `stepsim list models`
    stepsim: recipes.py:class_config:14: its model OursModelProvider4B is no preset: --model takes its config.json, or a name of `stepsim list models`
    stepsim: recipes.py:class_confg: it has no function class_confg (nearest: class_config)
    stepsim: recipes.py: it has 3 functions that build a config (they are: nemotronh_8b_pretrain_config, unknown_config, class_config): give one, as recipes.py:nemotronh_8b_pretrain_config
    [2]
