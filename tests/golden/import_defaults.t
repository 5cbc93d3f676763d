Defaults and sizes of other frameworks' configs that differ from a neighbour's.

LitGPT's pretraining is compiled, shards over the GPUs of a host and keeps all activations, and one GPU has no FSDP;
Levanter's micro-batch is that of a place on the data axis; TRL trains in bf16 on 1024 tokens.

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
