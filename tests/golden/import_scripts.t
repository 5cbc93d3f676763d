Scripts whose branches decide what is trained, and files that hold another framework's config.

A script with cases and tests; what it is called with stands behind its name.

    $ cat >pre.sh <<'END'
    > SIZE=$1
    > TP=${TP:-1}
    > if [ $SIZE = 8B ]; then
    >     LAYERS=32; HIDDEN=4096; HEADS=32; FFN=14336
    > elif [ $SIZE = 70B ]; then
    >     LAYERS=80; HIDDEN=8192; HEADS=64; FFN=28672
    > fi
    > case "${AC:-none}" in
    >     full) ac_options="--recompute-granularity full --recompute-method uniform --recompute-num-layers 1" ;;
    >     sel|selective) ac_options="--recompute-activations" ;;
    > esac
    > [ $TP -gt 1 ] && sp_options="--sequence-parallel"
    > if [ -z ${MP_VP} ]; then
    >     vp_options=""
    > else
    >     vp_options=" --num-layers-per-virtual-pipeline-stage ${MP_VP}"
    > fi
    > torchrun --nproc_per_node 8 --nnodes 2 pretrain_gpt.py --num-layers $LAYERS --hidden-size $HIDDEN \
    >     --num-attention-heads $HEADS --ffn-hidden-size $FFN --group-query-attention --num-query-groups 8 \
    >     --seq-length 4096 --max-position-embeddings 4096 --position-embedding-type rope --swiglu \
    >     --normalization RMSNorm --disable-bias-linear --untie-embeddings-and-output-weights --bf16 \
    >     --micro-batch-size 1 --global-batch-size 128 --tensor-model-parallel-size $TP \
    >     --extra-vocab-size 256 --patch-tokenizer-type LLama3Tokenizer $ac_options $sp_options $vp_options
    > END
    > stepsim import "pre.sh:8B TP=2 AC=sel" 2>&1 | grep -v '^#'
    > stepsim import "pre.sh:70B" 2>&1 | grep -E '^ .*(layers|recompute|parallel|tensor):'
    model:
      layers: 32 # num_layers
      hidden: 4096 # hidden_size
      heads: 32 # num_attention_heads
      kv_heads: 8 # num_query_groups
      ffn_hidden: 14336 # ffn_hidden_size
      vocab: 128256 # patch_tokenizer_type
      vocab_padding: 256 # default: make_vocab_size_divisible_by
      seq_len: 4096 # seq_length
      position: rope # position_embedding_type
      mlp: swiglu # swiglu
      norm: rmsnorm # normalization
      bias: false # disable_bias_linear
      tied_embeddings: false # untie_embeddings_and_output_weights
      dropout: 0.1 # default: hidden_dropout
      attention_dropout: 0.1 # default: attention_dropout
    train:
      stack: megatron-lm # where the file is silent
      global_batch: 128 # global_batch_size
      micro_batch: 1 # micro_batch_size
      dtype: bf16 # bf16
      optimizer: adamw # default: optimizer
      recompute: selective # recompute_activations
      recompute_modules: core_attn # recompute_activations
    data:
      workers: 2 # default: num_workers
    parallel:
      strategy: ddp # where the file is silent
      tensor: 2 # tensor_model_parallel_size
      tensor_overlap: false # default: tp_comm_overlap
      sequence_parallel: true # sequence_parallel
      pipeline: 1 # default: pipeline_model_parallel_size
      context: 1 # default: context_parallel_size
      expert: 1 # default: expert_model_parallel_size
      overlap: false # default: overlap_grad_reduce
    cluster:
      system: dgx-h100 # assumed: --system NAME takes another
      nodes: 2 # nnodes
      layers: 80 # num_layers
      tensor: 1 # tensor_model_parallel_size

Megatron-DeepSpeed's mixture; BERT and T5 by the program that is called; Mamba's layers by their shares.

    $ cat >ds.sh <<'END'
    > EP=64
    > [[ $EP -gt 1 ]] && more="--create-moe-param-group"
    > cat <<EOT >ds.json
    > { "zero_optimization": { "stage": 1 }, "it's": "not read" }
    > EOT
    > deepspeed --num_nodes 8 --num_gpus 8 pretrain_gpt.py --num-layers 24 --hidden-size 2048 \
    >     --num-attention-heads 16 --seq-length 2048 --max-position-embeddings 2048 --micro-batch-size 4 \
    >     --global-batch-size 256 --num-experts $EP --topk 1 --moe-expert-parallel-size $EP \
    >     --moe-train-capacity-factor 1.0 --moe-loss-coeff 0.01 --fp16 --checkpoint-activations \
    >     --deepspeed --deepspeed_config ds.json --zero-stage 1 --data-impl mmap $more
    > END
    > stepsim import ds.sh | grep -v -e '^# *[0-9]* *taken' -e '  no effect'
    > echo 'python pretrain_bert.py --num-layers 24 --hidden-size 1024 --num-attention-heads 16 --seq-length 512
    > --max-position-embeddings 512 --micro-batch-size 4 --fp16 --tokenizer-type BertWordPieceLowerCase' >bert.sh
    > stepsim import bert.sh | sed -n '/^model/,/^train/p'
    > echo 'python pretrain_t5.py --encoder-num-layers 12 --decoder-num-layers 6 --hidden-size 768 --bf16
    > --num-attention-heads 12 --encoder-seq-length 512 --decoder-seq-length 128 --max-position-embeddings 512
    > --micro-batch-size 64 --tokenizer-type BertWordPieceCase' >t5.sh
    > stepsim import t5.sh | grep -E '^ .*(layers|seq_len)'
    > echo 'python pretrain_mamba.py --num-layers 24 --hidden-size 1024 --num-attention-heads 16 --bf16
    > --seq-length 4096 --hybrid-attention-ratio 0.08 --hybrid-mlp-ratio 0.5 --micro-batch-size 4' >mamba.sh
    > stepsim import mamba.sh | grep -E '^ .*layer'
    # From ds.sh, a config of Megatron-LM.
    # Keys: 22. Taken: 17. No effect on a step's time: 5. Not modelled: 0.
    model:
      layers: 24 # num_layers
      hidden: 2048 # hidden_size
      heads: 16 # num_attention_heads
      vocab: 50257 # assumed: the tokenizer decides (--set model.vocab=N)
      vocab_padding: 128 # default: make_vocab_size_divisible_by
      seq_len: 2048 # seq_length
      max_positions: 2048 # max_position_embeddings
      position: learned # default: position_embedding_type
      mlp: gelu # where the file is silent
      norm: layernorm # default: normalization
      bias: true # where the file is silent
      tied_embeddings: true # where the file is silent
      experts: 64 # num_experts
      experts_per_token: 1 # topk
      dropout: 0.1 # default: hidden_dropout
      attention_dropout: 0.1 # default: attention_dropout
      capacity_factor: 1 # moe_train_capacity_factor
    train:
      stack: megatron-deepspeed # deepspeed
      global_batch: 256 # global_batch_size
      micro_batch: 4 # micro_batch_size
      dtype: fp16 # fp16
      optimizer: adamw # default: optimizer
      recompute: full # checkpoint_activations
    data:
      workers: 2 # default: num_workers
    parallel:
      strategy: zero1 # zero_stage
      tensor: 1 # default: tensor_model_parallel_size
      tensor_overlap: false # default: tp_comm_overlap
      pipeline: 1 # default: pipeline_model_parallel_size
      context: 1 # default: context_parallel_size
      expert: 64 # moe_expert_parallel_size
      overlap: false # default: overlap_grad_reduce
    cluster:
      system: dgx-h100 # assumed: --system NAME takes another
      nodes: 8 # num_nodes
    # What becomes of each key of ds.sh:
    # line  it is      key, value, and how or why
    # ----------------------------------------------------------------------------
    model:
      layers: 24 # num_layers
      hidden: 1024 # hidden_size
      heads: 16 # num_attention_heads
      vocab: 30522 # tokenizer_type
      vocab_padding: 128 # default: make_vocab_size_divisible_by
      seq_len: 512 # seq_length
      max_positions: 512 # max_position_embeddings
      causal: false # _script_
      position: learned # default: position_embedding_type
      mlp: gelu # where the file is silent
      norm: layernorm # default: normalization
      bias: true # where the file is silent
      pooler: true # _script_
      head_transform: true # _script_
      head_bias: true # _script_
      classes: 2 # _script_
      type_vocab: 2 # _script_
      tied_embeddings: true # where the file is silent
      dropout: 0.1 # default: hidden_dropout
      attention_dropout: 0.1 # default: attention_dropout
    train:
      layers: 18 # decoder_num_layers
      seq_len: 128 # decoder_seq_length
      encoder_layers: 12 # encoder_num_layers
      encoder_seq_len: 512 # encoder_seq_length
      layers: 24 # num_layers
      norm: layernorm # default: normalization
      layer_pattern: 'M-M-M--*M-M-M-M-*M--M-M-' # hybrid_attention_ratio

Primus, over Megatron-LM and MaxText.

    $ cat >primus.yaml <<'END'
    > work_group: ${PRIMUS_TEAM:amd}
    > modules:
    >   pre_trainer:
    >     framework: megatron
    >     config: pre_trainer.yaml
    >     model: ${PRIMUS_MODEL:qwen3_30B_A3B}.yaml
    >     overrides:
    >       micro_batch_size: 2
    >       global_batch_size: 256
    >       seq_length: ${PRIMUS_SEQ_LENGTH:4096}
    >       expert_model_parallel_size: ${PRIMUS_EP:8}
    >       overlap_grad_reduce: true
    >       use_turbo_deepep: true
    >       turbo_deepep_num_cu: 64
    >       made_up: 1
    > END
    > stepsim import primus.yaml --system "gpu:8 mi300x"
    > sed -e 's/framework: megatron/framework: maxtext/' -e 's/model: .*/model: llama3_70B.yaml/' \
    >     -e '/overrides/q' primus.yaml >jax.yaml
    > echo '      per_device_batch_size: 4' >>jax.yaml; echo '      max_target_length: 8192' >>jax.yaml
    > stepsim import jax.yaml | grep -v '^#'
    > sed 's/framework: megatron/framework: flux/' primus.yaml >other.yaml; stepsim import other.yaml 2>&1
    # From primus.yaml, a config of Megatron-LM.
    # Keys: 10. Taken: 7. No effect on a step's time: 2. Not modelled: 1.
    model:
      preset: qwen3-30b-a3b # _model_
      seq_len: 4096 # seq_length
    train:
      stack: megatron-core # overlap_grad_reduce
      global_batch: 256 # global_batch_size
      micro_batch: 2 # micro_batch_size
      dtype: bf16 # default: bf16
      grad_dtype: fp32 # overlap_grad_reduce
      reduce_dtype: fp32 # overlap_grad_reduce
      optimizer: adamw # default: optimizer
    data:
      workers: 2 # default: num_workers
    parallel:
      strategy: zero1 # default: use_distributed_optimizer
      tensor: 1 # default: tensor_model_parallel_size
      tensor_overlap: false # default: tp_comm_overlap
      pipeline: 1 # default: pipeline_model_parallel_size
      context: 1 # default: context_parallel_size
      expert: 8 # expert_model_parallel_size
      expert_dispatch: deepep # use_turbo_deepep
      overlap: true # overlap_grad_reduce
    cluster:
      system: 'gpu:8 mi300x' # --system
    # What becomes of each key of primus.yaml:
    # line  it is         key, value, and how or why
    # ------------------------------------------------------------------------------------------------
    #    1  no effect     work_group = amd: files and logs
    #    8  taken         micro_batch_size = 2: as train.micro_batch
    #    9  taken         global_batch_size = 256: as train.global_batch
    #   10  taken         seq_length = 4096: as model.seq_len
    #   11  taken         expert_model_parallel_size = 8: as parallel.expert
    #   12  taken         overlap_grad_reduce = true: as train.stack, parallel.overlap,
    #                     train.grad_dtype, train.reduce_dtype
    #   13  taken         use_turbo_deepep = true: as parallel.expert_dispatch
    #   14  no effect     turbo_deepep_num_cu = 64: kernels of another library, which the stack counts
    #   15  not modelled  made_up = 1: not known to stepsim
    #    6  taken         _model_ = qwen3-30b-a3b: as model.preset
    model:
      preset: llama3-70b # _model_
      seq_len: 8192 # max_target_length
    train:
      stack: maxtext # where the file is silent
      batch_per_gpu: 4 # default: gradient_accumulation_steps
      micro_batch: 4 # per_device_batch_size
      dtype: bf16 # where the file is silent
      param_dtype: fp32 # where the file is silent
      optimizer: adamw # default: opt_type
      recompute: full # default: remat_policy
    parallel:
      strategy: fsdp # where the file is silent
    cluster:
      system: dgx-h100 # assumed: --system NAME takes another
      nodes: 1 # assumed: --gpus N takes more
    stepsim: unknown framework "flux" (known: accelerate, automodel, axolotl, deepspeed, gpt-neox, internevo, levanter, lingua, litgpt, llama-factory, llm-foundry, maxtext, megatron, nanotron, nemo, olmo, olmo-core, prime-rl, torchtitan, torchtitan-0.2, torchtune, transformers)
    [2]

OLMo-core's scripts whose parts functions build.

    $ cat >builders.py <<'END'
    > LENGTH = 4096
    > def build_model(common: CommonComponents) -> TransformerConfig:
    >     return TransformerConfig.olmo3_190M(vocab_size=common.tokenizer.padded_vocab_size())
    > def build_module(common: CommonComponents) -> TransformerTrainModuleConfig:
    >     rank_microbatch_size = 2 * common.max_sequence_length
    >     if common.launch is not None:
    >         rank_microbatch_size *= 2
    >     return TransformerTrainModuleConfig(rank_microbatch_size=rank_microbatch_size, compile_model=True,
    >         optim=SkipStepAdamWConfig(lr=3e-4), dp_config=TransformerDataParallelConfig(name=DataParallelType.hsdp,
    >             param_dtype=DType.bfloat16, reduce_dtype=DType.float32))
    > def build_trainer(common):
    >     return TrainerConfig(save_folder=common.save_folder).with_recommended_evals(common.tokenizer, LENGTH)
    > if __name__ == "__main__":
    >     config_builder = partial(build_config, global_batch_size=1024 * LENGTH, max_sequence_length=LENGTH,
    >         model_config_builder=build_model, train_module_config_builder=build_module,
    >         trainer_config_builder=build_trainer, include_default_evals=False)
    >     main(config_builder=config_builder)
    > END
    > stepsim import builders.py --gpus 64 | grep -v -e '^# *[0-9]* *taken' -e '  no effect'
    # From builders.py, a config of OLMo-core.
    # Keys: 20. Taken: 9. No effect on a step's time: 9. Not modelled: 2.
    model:
      layers: 12 # model._from_
      hidden: 768 # model._from_
      heads: 12 # model._from_
      ffn_hidden: 3072 # model._from_
      vocab: 100352 # model._from_
      seq_len: 4096 # dataset.sequence_length
      sliding_window: 4096 # model._from_
      global_attention_every: 4 # model._from_
      position: rope # model._from_
      mlp: swiglu # model._from_
      norm: rmsnorm # model._from_
      bias: false # model._from_
      qk_norm: full # model._from_
      branch_norm: reordered # model._from_
      tied_embeddings: false # model._from_
    train:
      stack: pytorch-fsdp # train_module.compile_model
      global_batch: 1024 # data_loader.global_batch_size
      micro_batch: 2 # train_module.rank_microbatch_size
      dtype: bf16 # train_module.dp_config.param_dtype
      param_dtype: fp32 # where the file is silent
      reduce_dtype: fp32 # train_module.dp_config.reduce_dtype
      optimizer: adamw # train_module.optim._target_
    parallel:
      strategy: hsdp # train_module.dp_config.name
    cluster:
      system: dgx-h100 # assumed: --system NAME takes another
      nodes: 8 # --gpus
    # What becomes of each key of builders.py:
    # line  it is         key, value, and how or why
    # -------------------------------------------------------------------------------------------------
    #                     model.heads, model.ffn_hidden, model.vocab, model.position, model.norm,
    #                     model.mlp, model.bias, model.tied_embeddings, model.qk_norm
    #    3  not modelled  model.vocab_size = $common: the vocabulary of a tokenizer
    #    6  not modelled  _line_6 = if common.launch is n...: a statement that is not run

OLMo-core's scripts.

    $ cat >olmo.py <<'END'
    > LENGTH = 8192
    > def build_config(opts, overrides):
    >     sequence_length = opts.sequence_length or LENGTH
    >     model = TransformerConfig.olmo3_7B(vocab_size=TokenizerConfig.dolma2().padded_vocab_size())
    >     dataset = NumpyFSLDatasetConfig.from_data_mix(DataMix.mix, sequence_length=sequence_length)
    >     loader = NumpyDataLoaderConfig(global_batch_size=4 * 1024 * 1024, seed=1, num_workers=8)
    >     module = TransformerTrainModuleConfig(
    >         rank_microbatch_size=2 * sequence_length, max_sequence_length=sequence_length, compile_model=True,
    >         optim=SkipStepAdamWConfig(lr=3e-4),
    >         dp_config=TransformerDataParallelConfig(name=DataParallelType.hsdp, param_dtype=DType.bfloat16,
    >             reduce_dtype=DType.float32, shard_degree=32, prefetch_factor=1),
    >         ac_config=TransformerActivationCheckpointingConfig(mode=TransformerActivationCheckpointingMode.full),
    >         float8_config=Float8Config(enabled=False))
    >     trainer = TrainerConfig(save_folder=opts.folder).with_callback("config_saver", ConfigSaverCallback())
    >     return ExperimentConfig(model=model, dataset=dataset, data_loader=loader, train_module=module,
    >         trainer=trainer).merge(overrides)
    > END
    > stepsim import olmo.py --gpus 128 | grep -v -e '^# *[0-9]* *taken' -e '  no effect'
    # From olmo.py, a config of OLMo-core.
    # Keys: 35. Taken: 12. No effect on a step's time: 22. Not modelled: 1.
    model:
      preset: olmo3-7b # _of.model._from_
      seq_len: 8192 # _of.dataset.sequence_length
    train:
      stack: pytorch-fsdp # _of.train_module.compile_model
      global_batch: 512 # _of.data_loader.global_batch_size
      micro_batch: 2 # _of.train_module.rank_microbatch_size
      dtype: bf16 # _of.train_module.dp_config.param_dtype
      param_dtype: fp32 # where the file is silent
      reduce_dtype: fp32 # _of.train_module.dp_config.reduce_dtype
      optimizer: adamw # _of.train_module.optim._target_
      recompute: full # _of.train_module.ac_config.mode
    data:
      workers: 8 # _of.data_loader.num_workers
    parallel:
      strategy: hsdp # _of.train_module.dp_config.name
      shard: 32 # _of.train_module.dp_config.shard_degree
    cluster:
      system: dgx-h100 # assumed: --system NAME takes another
      nodes: 16 # --gpus
    # What becomes of each key of olmo.py:
    # line  it is         key, value, and how or why
    # --------------------------------------------------------------------------------------------------
    #                     decides model.seq_len
    #                     own
    #   11  not modelled  _of.train_module.dp_config.prefetch_factor = 1: which modules are gathered
    #                     apart
    #                     own

A recipe that returns two values; anchors in YAML.

    $ cat >two.py <<'END'
    > def recipe():
    >     cfg = ConfigContainer(model=AutoBridge.from_hf_pretrained("meta-llama/Meta-Llama-3-8B").to_megatron_provider(),
    >         train=TrainingConfig(micro_batch_size=2, global_batch_size=64))
    >     return cfg, "bf16_mixed"
    > END
    > stepsim import two.py --from nemo | grep -E '^ .*(preset|batch)'
    > cat >anchors.yaml <<'END'
    > variables: {seq: &seq 4096}
    > base: &base {global_train_batch_size: 64, device_train_microbatch_size: 2}
    > <<: *base
    > max_seq_len: *seq
    > model: {pretrained_model_name_or_path: meta-llama/Meta-Llama-3-8B}
    > fsdp_config: {sharding_strategy: FULL_SHARD}
    > END
    > stepsim import anchors.yaml | grep -E '^ .*(preset|seq_len|batch)'
      preset: llama3-8b # model._of._0
      global_batch: 64 # train.global_batch_size
      micro_batch: 2 # train.micro_batch_size
      preset: llama3-8b # model.pretrained_model_name_or_path
      seq_len: 4096 # max_seq_len
      global_batch: 64 # global_train_batch_size
      micro_batch: 2 # device_train_microbatch_size

Flags of Megatron-LM's examples/multimodal/pretrain_mistral_clip.sh and tools/retro/examples/pretrain_model.sh beside those of the model.

    $ cat >mm.sh <<'END'
    > OPTIONS="--num-layers 32 --hidden-size 4096 --num-attention-heads 32 --seq-length 576 --decoder-seq-length 1024 \
    >   --freeze-LM --img-h 336 --patch-dim 14 --prompt-path p.json"
    > RETRIEVER=1
    > if [ "$RETRIEVER" = "0" ]; then SCRIPT=pretrain_gpt.py; else
    >   OPTIONS="${OPTIONS} --retro-add-retriever --retro-num-neighbors 2"; SCRIPT=pretrain_retro.py
    > fi
    > torchrun --nproc_per_node 8 $SCRIPT ${OPTIONS}
    > END
    > stepsim import mm.sh | grep -E 'seq_len|not modelled'
      seq_len: 1024 # decoder_seq_length
    #    1  no effect     seq_length = 576: decoder_seq_length decides model.seq_len
    #    1  taken         decoder_seq_length = 1024: as model.seq_len
    #    2  not modelled  freeze_LM = true: weights that are not trained
    #    2  not modelled  img_h = 336: a tower of pictures before the language model
    #    2  not modelled  patch_dim = 14: a tower of pictures before the language model
    #    5  not modelled  retro_add_retriever = true: retrieved neighbours, which an encoder reads and
    #    5  not modelled  retro_num_neighbors = 2: retrieved neighbours, which an encoder reads and

Fused experts want gate and up rows in turns of 32.

    $ words="pretrain_gpt.py --num-layers 4 --hidden-size 1024 --num-attention-heads 8 --seq-length 1024
    > --max-position-embeddings 1024 --micro-batch-size 1 --global-batch-size 8 --num-experts 8 --bf16
    > --swiglu --disable-bias-linear --fp8-format e4m3 --use-transformer-engine-op-fuser"
    > for more in "--fp8-recipe mxfp8" "--fp8-recipe mxfp8 --moe-mlp-glu-interleave-size 32" "--fp8-recipe tensorwise --moe-mlp-glu-interleave-size 32"
    > do echo "torchrun $words $more" >moe.sh; stepsim import moe.sh | grep -E '^ *fused_experts|op.fuser|glu.interleave'; echo; done
    > stepsim export --model mixtral-8x7b --to megatron --gpus 64 --system gb200-nvl72 --set train.dtype=mxfp8 \
    >     --set train.fused_experts=true | grep -oE -e '--(use-trans|moe-mlp)[a-z-]*( 32)?'
    #    3  no effect  use_transformer_engine_op_fuser = true: other keys decide
      fused_experts: true # use_transformer_engine_op_fuser
    #    3  taken      use_transformer_engine_op_fuser = true: as train.fused_experts
    #    3  no effect  moe_mlp_glu_interleave_size = 32: other keys decide
    #    3  no effect  use_transformer_engine_op_fuser = true: other keys decide
    #    3  no effect  moe_mlp_glu_interleave_size = 32: other keys decide
    --use-transformer-engine-op-fuser
    --moe-mlp-glu-interleave-size 32

Megatron-LM adds experts' results up by atomic additions unless it is asked for its fused kernel; a recipe of NeMo asks.

    $ words="pretrain_gpt.py --num-layers 4 --hidden-size 1024 --num-attention-heads 8 --seq-length 1024
    > --max-position-embeddings 1024 --micro-batch-size 1 --global-batch-size 8 --num-experts 8 --bf16"
    > for more in "" --moe-permute-fusion; do echo "torchrun $words $more" >moe.sh
    > stepsim import moe.sh | grep '^ *expert_sums'; done
    > for sums in atomic kernel; do stepsim export --model mixtral-8x7b --to megatron --gpus 64 \
    >     --set train.expert_sums=$sums | grep -c 'moe-permute-fusion'; done
    > printf 'from nemo.collections import llm\ndef r():\n    x = llm.mixtral_8x7b.pretrain_recipe(num_nodes=8)\n    x.trainer.strategy.tensor_model_parallel_size = 2\n    return x\n' >nemo.py
    > stepsim import nemo.py | grep -e '^ *expert_sums' -e '^ *preset'
      expert_sums: atomic # default: moe_permute_fusion
      expert_sums: kernel # moe_permute_fusion
    0
    1
    stepsim: the config that was written is not complete: nemo.py:4:53: trainer.strategy.tensor_model_parallel_size (parallel.tensor): 2 beside experts needs sequence_parallel: true, with which each rank sends them tokens of its own; --set parallel.tensor=... takes another
      preset: mixtral-8x7b # _from_
