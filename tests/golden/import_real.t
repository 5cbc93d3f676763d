Configs as they stand in public repositories, shortened: what the plan becomes, and what is left out.

InternEvo: a file of Python without functions (InternLM/InternEvo, configs/7B_internlm2.py). Names in capitals are
constants. ISP cuts sequences over the ranks of `tensor`, and weights over those of `weight`: two ranks share each cut,
so the four replicas of two context ranks are four groups of one replica. The batch: 4 x 1 sequences, 2 ranks each.

    $ cat >evo.py <<'END'
    > JOB_NAME = "7b_internlm2_train"
    > model_type = "INTERNLM2_PUBLIC"
    > HIDDEN_SIZE = 4096
    > MLP_RATIO = 3.5
    > SEQ_LEN = 2048
    > data = dict(
    >     seq_len=SEQ_LEN,
    >     # micro_num is the number of micro-batches of an update
    >     micro_num=4,
    >     micro_bsz=1,
    >     total_steps=20000,
    >     pack_sample_into_one=False,
    >     empty_cache_and_diag_interval=200,
    > )
    > grad_scaler = dict(fp16=dict(initial_scale=2**16))
    > hybrid_zero_optimizer = dict(
    >     overlap_sync_grad=True,
    >     overlap_sync_param=False,
    >     reduce_bucket_size=512 * 1024 * 1024,
    >     clip_grad_norm=1.0,
    > )
    > lr_scheduler = dict(total_steps=data["total_steps"])
    > model = dict(
    >     checkpoint=0.25,
    >     num_chunks=1,
    >     num_attention_heads=32,
    >     vocab_size=92544,
    >     hidden_size=HIDDEN_SIZE,
    >     num_layers=32,
    >     no_bias=True,
    >     mlp_ratio=MLP_RATIO,
    >     dtype="torch.bfloat16",
    >     norm_type="rmsnorm",
    >     num_kv_attention_heads=8,
    >     use_flash_attn=True,
    > )
    > parallel = dict(
    >     zero1=dict(size=-1),
    >     tensor=dict(size=2, mode="isp"),
    >     pipeline=dict(size=1, interleaved_overlap=True, mode="1f1b"),
    >     weight=dict(size=2, overlap=True),
    > )
    > END
    > stepsim import evo.py | grep -v -e '^# *[0-9]* *taken' -e '  no effect'
    > sed 's/"isp"/"msp"/; s/num_chunks=1/num_chunks=2/; s/pipeline=dict(size=1/pipeline=dict(size=4/' evo.py >msp.py
    > stepsim import msp.py --gpus 32 | grep -E '^ .*(strategy|tensor|sequence_parallel|pipeline|virtual_stages|schedule|context|bucket_mb|batch_per_gpu):'
    > sed 's/INTERNLM2_PUBLIC/INTERNLM/; s/mlp_ratio=MLP_RATIO/mlp_ratio=8 \/ 3/; s/checkpoint=0.25/checkpoint=True/' evo.py >one.py
    > stepsim import one.py | grep -E '^ .*(qkv_bias|ffn_hidden|recompute)'
    # From evo.py, a config of InternEvo.
    # Keys: 33. Taken: 17. No effect on a step's time: 13. Not modelled: 3.
    model:
      layers: 32 # model.num_layers
      hidden: 4096 # model.hidden_size
      heads: 32 # model.num_attention_heads
      kv_heads: 8 # model.num_kv_attention_heads
      ffn_hidden: 14336 # model.mlp_ratio
      vocab: 92544 # model.vocab_size
      seq_len: 2048 # data.seq_len
      position: rope # where the file is silent
      mlp: swiglu # where the file is silent
      norm: rmsnorm # model.norm_type
      bias: false # where the file is silent
      tied_embeddings: false # where the file is silent
    train:
      stack: internlm # where the file is silent
      batch_per_gpu: 4 # data.micro_num
      micro_batch: 1 # data.micro_bsz
      dtype: bf16 # model.dtype
      optimizer: adamw # where the file is silent
      attention: flash # model.use_flash_attn
      recompute: full # model.checkpoint
      recompute_layers: 8 # model.checkpoint
    parallel:
      strategy: hsdp # parallel.weight.size
      shard: 1 # parallel.weight.size
      pipeline: 1 # parallel.pipeline.size
      context: 2 # parallel.tensor.size
      context_kind: all_to_all # parallel.tensor.size
      overlap: true # hybrid_zero_optimizer.overlap_sync_grad
    cluster:
      system: dgx-h100 # assumed: --system NAME takes another
    # What becomes of each key of evo.py:
    # line  it is         key, value, and how or why
    # ---------------------------------------------------------------------------------------------
    #   13  not modelled  data.empty_cache_and_diag_interval = 200: time between steps
    #   40  not modelled  parallel.pipeline.interleaved_overlap = true: when a pipeline sends
    #                     optimizer's states are cut over more ranks than the weights
    #   41  not modelled  parallel.weight.overlap = true: when weights are gathered
      batch_per_gpu: 4 # data.micro_num
      strategy: zero1 # parallel.zero1.size
      tensor: 2 # parallel.tensor.size
      sequence_parallel: true # parallel.tensor.mode
      pipeline: 4 # parallel.pipeline.size
      virtual_stages: 2 # model.num_chunks
      schedule: interleaved # model.num_chunks
      bucket_mb: 512 # hybrid_zero_optimizer.reduce_bucket_size
      ffn_hidden: 11008 # model.mlp_ratio
      qkv_bias: true # model_type
      recompute: full # model.checkpoint

MaxText: a program in Python that takes key=value (AI-Hypercomputer/maxtext, configs/a3/llama_3.1_405b/128vm.sh). Of GPUs
`dcn` says how many hosts there are. What stands before the program is a variable, as ever.

    $ cat >maxtext.sh <<'END'
    > export OUTPUT_PATH="gs://out" EXECUTABLE="train"
    > export XLA_FLAGS="--xla_gpu_enable_triton_gemm=false
    > --xla_gpu_all_reduce_combine_threshold_bytes=1073741824"
    > LENGTH=8192 python3 -m MaxText.$EXECUTABLE MaxText/configs/models/llama3.1_405b.yml run_name=test \
    >     base_config=base.yml \
    >     hardware=gpu \
    >     model_name=llama3.1-405b \
    >     enable_checkpointing: False \
    >     attention=cudnn_flash_te \
    >     remat_policy=full \
    >     per_device_batch_size=1.0 \
    >     max_target_length=$LENGTH \
    >     dcn_fsdp_parallelism=128 \
    >     ici_fsdp_parallelism=8 \
    >     base_output_directory=$OUTPUT_PATH
    > per_device_batch_size=2
    > END
    > stepsim import maxtext.sh | grep -v -e '^# *[0-9]* *taken' -e '  no effect'
    # From maxtext.sh, a config of MaxText.
    # Keys: 13. Taken: 6. No effect on a step's time: 6. Not modelled: 1.
    model:
      preset: llama3.1-405b # model_name
      seq_len: 8192 # max_target_length
    train:
      stack: maxtext # where the file is silent
      batch_per_gpu: 1 # default: gradient_accumulation_steps
      micro_batch: 1 # per_device_batch_size
      dtype: bf16 # where the file is silent
      param_dtype: fp32 # where the file is silent
      optimizer: adamw # default: opt_type
      attention: flash # attention
      recompute: full # remat_policy
    parallel:
      strategy: fsdp # where the file is silent
    cluster:
      system: dgx-h100 # assumed: --system NAME takes another
      nodes: 128 # dcn_fsdp_parallelism
    # What becomes of each key of maxtext.sh:
    # line  it is         key, value, and how or why
    # -----------------------------------------------------------------------------------------
    #    6  not modelled  hardware = gpu: which machine: give --system

LoRA in ms-swift over Megatron-Core (modelscope/ms-swift, examples/train/cached_dataset/mcore.sh), and in Primus
(AMD-AGI/Primus, examples/megatron/configs/MI355X/llama2_70B-FP8-sft-packed-perf.yaml).

    $ cat >mcore.sh <<'END'
    > NPROC_PER_NODE=4 \
    > megatron sft \
    >     --model Qwen/Qwen3-30B-A3B-Base \
    >     --tuner_type lora \
    >     --lora_rank 32 \
    >     --lora_alpha 64 \
    >     --target_modules all-linear \
    >     --expert_model_parallel_size 4 \
    >     --micro_batch_size 1 \
    >     --global_batch_size 16 \
    >     --max_length 8192 \
    >     --dataloader_num_workers 8 \
    >     --sequence_parallel true
    > END
    > stepsim import mcore.sh | grep -E 'lora|workers|not modelled'
    > sed -i 's/tuner_type lora/tuner_type full/' mcore.sh; stepsim import mcore.sh | grep -E ' lora_rank'
    > cat >primus.yaml <<'END'
    > work_group: ${PRIMUS_TEAM:amd}
    > modules:
    >   pre_trainer:
    >     framework: megatron
    >     config: sft_trainer.yaml
    >     model: llama2_70B.yaml
    >     overrides:
    >       micro_batch_size: ${PRIMUS_MBS:1}
    >       global_batch_size: ${PRIMUS_GBS:16}
    >       seq_length: ${PRIMUS_SEQ_LENGTH:4096}
    >       tensor_model_parallel_size: ${PRIMUS_TP:2}
    >       fp8: hybrid
    >       no_fp8_weight_transpose_cache: true
    >       lora:
    >         enabled: true
    >         dim: 16
    >         alpha: 32
    >         dropout: 0.0
    >         target_modules:
    >           - linear_qkv
    >           - linear_proj
    > END
    > stepsim import primus.yaml | grep -E 'lora|not modelled'
    > sed -i 's/enabled: true/enabled: false/' primus.yaml; stepsim import primus.yaml | grep -E ' lora_rank'
      lora_rank: 32 # lora_rank
      lora_targets: all # target_modules
      workers: 8 # dataloader_num_workers
    #    4  no effect  tuner_type = lora: as without it
    #    5  taken      lora_rank = 32: as train.lora_rank
    #    6  no effect  lora_alpha = 64: arithmetic of an adapter
    #    7  taken      target_modules = all-linear: as train.lora_targets
    #   12  taken      dataloader_num_workers = 8: as data.workers
    #    5  no effect  lora_rank = 32: other keys decide
      lora_rank: 16 # lora.dim
      lora_targets: attention # lora.target_modules
    #   13  not modelled  no_fp8_weight_transpose_cache = true: which copies of fp8 weights are kept
    #   15  no effect     lora.enabled = true: as without it
    #   16  taken         lora.dim = 16: as train.lora_rank
    #   17  no effect     lora.alpha = 32: arithmetic of an adapter
    #   18  no effect     lora.dropout = 0.0: arithmetic of an adapter
    #   19  taken         lora.target_modules = [linear_qkv, linear_p...: as train.lora_targets
    [1]

ms-swift takes the format of the model where a script is silent (examples/train/fsdp_qlora/train.sh). accelerate names
Ulysses by its backend (huggingface/trl, examples/accelerate_configs/alst_ulysses_4gpu.yaml). RWKV is no attention
(EleutherAI/gpt-neox, configs/rwkv/170M.yml).

    $ echo 'swift sft --model Qwen/Qwen2.5-7B-Instruct --train_type lora --dataset swift/self-cognition \' >qlora.sh
    > echo '--per_device_train_batch_size 1 --max_length 2048 --quant_bits 4 --lora_rank 8' >>qlora.sh
    > stepsim import qlora.sh | grep -E '^ .*(dtype|lora)'
    > cat >alst.yaml <<'END'
    > deepspeed_config: {zero_stage: 3, seq_parallel_communication_data_type: bf16}
    > distributed_type: DEEPSPEED
    > mixed_precision: bf16
    > num_machines: 1
    > num_processes: 4
    > parallelism_config:
    >   parallelism_config_dp_shard_size: 2
    >   parallelism_config_cp_size: 2
    >   parallelism_config_cp_backend: deepspeed
    > END
    > stepsim import alst.yaml llama3-8b | grep -E '^ .*(context|strategy|data):'
    > cat >rwkv.yml <<'END'
    > {"num_layers": 12, "hidden_size": 768, "num_attention_heads": 12, "seq_length": 512, "pipe_parallel_size": 0,
    >  "attention_config": [[["rwkv"], 12]], "train_micro_batch_size_per_gpu": 32}
    > END
    > stepsim import rwkv.yml 2>&1 | grep -E 'attention'
      dtype: bf16 # default: torch_dtype
      param_dtype: bf16 # default: torch_dtype
      lora_rank: 8 # lora_rank
      lora_base: nf4_double # quant_bits
      strategy: fsdp # deepspeed_config.zero_stage
      data: 2 # parallelism_config.parallelism_config_dp_shard_size
      context: 2 # parallelism_config.parallelism_config_cp_size
      heads: 12 # num_attention_heads
      attention_dropout: 0 # default: attention_dropout
      attention: naive # default: te_mha
    #    1  taken         num_attention_heads = 12: as model.heads
    #    2  not modelled  attention_config = [[[rwkv], 12]]: train.attention has no "[[[rwkv], 12]]"
