Configs of other frameworks: read with a remark for each key, predicted as they are, and written. (What each key becomes
is in tests/unit/test_import.c.)

    $ cat >titan.toml <<'END'
    > [job]
    > description = "a test"
    > [model]
    > name = "llama3"
    > flavor = "8B"
    > [training]
    > local_batch_size = 2
    > seq_len = 8192
    > [parallelism]
    > data_parallel_shard_degree = 32 # of all
    > tensor_parallel_degree = 2
    > [activation_checkpoint]
    > mode = "full"
    > [float8]
    > enable_fsdp_float8_all_gather = true
    > [plugin]
    > name = "mine"
    > END
    > stepsim import titan.toml
    > stepsim predict titan.toml --set cluster.system=dgx-h200 | head -4
    # From titan.toml, a config of torchtitan.
    # Keys: 10. Taken: 7. No effect on a step's time: 2. Not modelled: 1.
    model:
      preset: llama3-8b # model.name
      seq_len: 8192 # training.seq_len
    train:
      stack: pytorch-fsdp-eager # where the file is silent
      batch_per_gpu: 1 # training.local_batch_size
      micro_batch: 2 # training.local_batch_size
      dtype: bf16 # default: training.mixed_precision_param
      reduce_dtype: fp32 # default: training.mixed_precision_reduce
      optimizer: adamw # default: optimizer.name
      recompute: full # activation_checkpoint.mode
      recompute_early_stop: false # default: activation_checkpoint.early_stop
    parallel:
      strategy: fsdp # parallelism.data_parallel_shard_degree
      data: 32 # parallelism.data_parallel_shard_degree
      tensor: 2 # parallelism.tensor_parallel_degree
      sequence_parallel: true # parallelism.tensor_parallel_degree
      pipeline: 1 # default: parallelism.pipeline_parallel_degree
      context: 1 # default: parallelism.context_parallel_degree
      expert: 1 # default: parallelism.expert_parallel_degree
    cluster:
      system: dgx-h100 # assumed: --system NAME takes another
      nodes: 8 # the plan's GPUs
    # What becomes of each key of titan.toml:
    # line  it is         key, value, and how or why
    # --------------------------------------------------------------------------------------------
    #    2  no effect     job.description = a test: files and logs
    #    4  taken         model.name = llama3: as model.preset
    #    5  taken         model.flavor = 8B: as model.preset
    #    7  taken         training.local_batch_size = 2: as train.micro_batch, train.batch_per_gpu
    #    8  taken         training.seq_len = 8192: as model.seq_len
    #   10  taken         parallelism.data_parallel_shard_degree = 32: as parallel.strategy,
    #                     parallel.data
    #   11  taken         parallelism.tensor_parallel_degree = 2: as parallel.tensor,
    #                     parallel.sequence_parallel
    #   13  taken         activation_checkpoint.mode = full: as train.recompute
    #   15  no effect     float8.enable_fsdp_float8_all_gather = true: other keys decide
    #   17  not modelled  plugin.name = mine: not known to stepsim
    stepsim: titan.toml:17: plugin.name is no key that stepsim knows
    stepsim: titan.toml: a config of torchtitan, of which 7 keys are taken and 1 not modelled (`stepsim import` shows each)
    A step takes 1.54 s (90 % interval: 1.28 s to 1.86 s); 50 % of communication hides behind compute,
      the rest takes 9.3 % of the step; it fits, 119 GiB are free.
    llama3-8b (8.03 B parameters), fsdp on 64 ranks (tp 2, dp 32), bf16
    a step: 64 sequences of 8192 tokens, 1 micro-batch of 2 a replica

A command line of Megatron-LM, as its scripts have it.

    $ cat >run.sh <<'END'
    > TP=4
    > MODEL=(
    >     --num-layers 32 --hidden-size 4096 --num-attention-heads 32
    >     --group-query-attention --num-query-groups 8 --ffn-hidden-size 14336
    >     --position-embedding-type rope --normalization RMSNorm --swiglu
    >     --disable-bias-linear --untie-embeddings-and-output-weights
    > )
    > torchrun --nproc_per_node 8 --nnodes ${NODES:-2} pretrain_gpt.py ${MODEL[@]} \
    >     --tensor-model-parallel-size $TP --seq-length 4096 --bf16 \
    >     --micro-batch-size 1 --global-batch-size 64 --lr 1e-4 --qk-layernorm
    > END
    > stepsim import run.sh --system dgx-a100 -o run.yaml
    > grep -A3 -e '^cluster' -e 'not modelled  ' run.yaml
    > stepsim predict run.yaml -q | head -2
    cluster:
      system: dgx-a100 # --system
      nodes: 2 # nnodes
    A step takes 4.97 s (90 % interval: 3.81 s to 6.48 s); 35 % of communication hides behind compute,
      the rest takes 10.6 % of the step; it fits, 38.7 GiB are free.

DeepSpeed says nothing of the model: a Hugging Face config.json beside it does, or a preset's name.

    $ cat >ds.json <<'END'
    > {"train_micro_batch_size_per_gpu": 4, "zero_optimization": {"stage": 3}, "bf16": {"enabled": true}}
    > END
    > stepsim import ds.json 2>&1 >half.yaml; head -2 half.yaml
    > stepsim predict ds.json
    > stepsim import ds.json llama2-7b --gpus 16 | grep -v '^#'
    > echo '{"model_type": "llama", "hidden_size": 64, "intermediate_size": 128, "num_attention_heads": 4,
    > "num_hidden_layers": 2, "vocab_size": 100}' >config.json
    > stepsim import ds.json config.json | grep hf_config | sed "s:$PWD:.:"
    stepsim: the config that was written is not complete: ds.json: it names no model that is known: --model takes a config.json, or a name of `stepsim list models`
    # From ds.json, a config of DeepSpeed.
    # Keys: 3. Taken: 3. No effect on a step's time: 0. Not modelled: 0.
    stepsim: ds.json: it names no model that is known: --model takes a config.json, or a name of `stepsim list models`
    model:
      preset: llama2-7b # --model
    train:
      stack: deepspeed # where the file is silent
      batch_per_gpu: 4 # default: gradient_accumulation_steps
      micro_batch: 4 # train_micro_batch_size_per_gpu
      dtype: bf16 # bf16.enabled
    parallel:
      strategy: fsdp # zero_optimization.stage
    cluster:
      system: dgx-h100 # assumed: --system NAME takes another
      nodes: 2 # --gpus
      hf_config: ./config.json # --model

The main job takes such files, too.

    $ stepsim export $ROOT/configs/fsdp-tiny.yaml --set parallel.data=2 --to torchtitan-0.2 -o tiny.toml
    > stepsim tiny.toml -q | tail -1
    > stepsim tiny.toml 2>&1 >out | grep -v '^stepsim: CPU'
    > stepsim predict tiny.toml --print-ranks -q
    Not executed: the plan needs 2 ranks: `mpirun -np 2 stepsim tiny.toml` executes it
    stepsim: tiny.toml: a config of torchtitan, of which 15 keys are taken and 0 not modelled (`stepsim import` shows each)
    2

What cannot be read.

    $ echo 'something: else' >other.yaml
    > stepsim import other.yaml
    > stepsim import other.yaml --from mosaic
    > printf '[training]\nseq_len = "x"\n[parallelism]\n' >bad.toml
    > stepsim import bad.toml
    > stepsim predict bad.toml
    stepsim: other.yaml:1:1: its keys (the first: "something") are those of no known framework; --from NAME names one (accelerate automodel axolotl deepspeed gpt-neox internevo levanter lingua litgpt llama-factory llm-foundry maxtext megatron nanotron nemo olmo olmo-core prime-rl torchtitan torchtitan-0.2 torchtune transformers)
    stepsim: unknown framework "mosaic" (known: accelerate, automodel, axolotl, deepspeed, gpt-neox, internevo, levanter, lingua, litgpt, llama-factory, llm-foundry, maxtext, megatron, nanotron, nemo, olmo, olmo-core, prime-rl, torchtitan, torchtitan-0.2, torchtune, transformers)
    stepsim: bad.toml:2:11: training.seq_len (model.seq_len): expected an integer from 1 to 16777216, got "x"
    stepsim: bad.toml:2:11: training.seq_len (model.seq_len): expected an integer from 1 to 16777216, got "x"
    [2]

Written for a framework, a config holds what that has no key for in comments, which import reads.

    $ stepsim export $ROOT/configs/pp-llama3-70b-64xh100.yaml --to megatron
    # For stepsim alone, which reads these comments:
    # stepsim: model.preset: llama3-70b
    # stepsim: model.vocab_padding: 1
    # stepsim: cluster.system: dgx-h100
    # stepsim: cluster.nodes: 8
    torchrun --nproc-per-node gpu --nnodes 8 pretrain_gpt.py \
        --num-layers 80 \
        --hidden-size 8192 \
        --num-attention-heads 64 \
        --num-query-groups 8 \
        --group-query-attention \
        --kv-channels 128 \
        --ffn-hidden-size 28672 \
        --seq-length 8192 \
        --vocab-size 128256 \
        --tokenizer-type NullTokenizer \
        --position-embedding-type rope \
        --max-position-embeddings 8192 \
        --normalization RMSNorm \
        --swiglu \
        --disable-bias-linear \
        --hidden-dropout 0 \
        --attention-dropout 0 \
        --untie-embeddings-and-output-weights \
        --tensor-model-parallel-size 8 \
        --pipeline-model-parallel-size 4 \
        --context-parallel-size 1 \
        --expert-model-parallel-size 1 \
        --sequence-parallel \
        --tp-comm-overlap \
        --use-distributed-optimizer \
        --overlap-grad-reduce \
        --overlap-param-gather \
        --make-vocab-size-divisible-by 1 \
        --micro-batch-size 1 \
        --global-batch-size 128 \
        --num-workers 8 \
        --bf16 \
        --grad-reduce-in-bf16 \
        --optimizer adam \
        --attention-backend flash \
        --cuda-graph-impl none
    $ stepsim export $ROOT/configs/llama3-8b-fsdp-64xh100.yaml --to torchtitan
    # For stepsim alone, which reads these comments:
    # stepsim: train.fused_kernels: auto
    # stepsim: cluster.system: dgx-h100
    # stepsim: cluster.nodes: 8
    # torchtitan 0.3; with this file as plan.py:
    #   torchrun --nproc-per-node gpu --nnodes 8 -m torchtitan.train --module plan --config plan
    from torchtitan.distributed.activation_checkpoint import FullAC
    from torchtitan.models.llama3 import config_registry as llama3
    def plan():
        config = llama3.llama3_8b()
        config.model_spec = llama3.model_registry("8B")
        config.training.seq_len = 8192
        config.training.local_batch_size = 2
        config.training.global_batch_size = 128
        config.training.mixed_precision_param = "bfloat16"
        config.training.mixed_precision_reduce = "float32"
        config.parallelism.tensor_parallel_degree = 1
        config.parallelism.pipeline_parallel_degree = 1
        config.parallelism.context_parallel_degree = 1
        config.parallelism.expert_parallel_degree = 1
        config.parallelism.data_parallel_shard_degree = 64
        config.parallelism.data_parallel_replicate_degree = 1
        config.parallelism.fsdp_reshard_after_forward = "always"
        config.compile.enable_async_tensor_parallel = False
        config.compile.enable = True
        config.compile.components = ["model", "loss"]
        config.activation_checkpoint = FullAC.Config()
        return config
    $ stepsim export $ROOT/configs/llama3-8b-fsdp-64xh100.yaml --to torchtitan-0.2 | sed -n 5,12p
    [model]
    name = "llama3"
    flavor = "8B"
    [training]
    seq_len = 8192
    local_batch_size = 2
    global_batch_size = 128
    $ stepsim export $ROOT/configs/llama3-8b-fsdp-64xh100.yaml --to torchtitan --set model.preset=qwen3-8b --set train.dtype=fp8 --set train.recompute=none | grep -E 'import|config = |model_spec|checkpoint'
    from torchtitan.components.quantization import Float8LinearConverter
    from torchtitan.models.qwen3 import config_registry as qwen3
        config = qwen3.qwen3_14b()
        config.model_spec = qwen3.model_registry("8B", converters=[Float8LinearConverter.Config(model_compile_enabled=True)])
        config.activation_checkpoint = None
    $ stepsim export $ROOT/configs/llama3-8b-fsdp-64xh100.yaml --to torchtitan --set model.preset=qwen2.5-7b | grep -E 'recipe|preset'
    # stepsim: model.preset: qwen2.5-7b
    from your_recipes import your_recipe  # torchtitan has no recipe of this model
        config = your_recipe()
    $ stepsim export $ROOT/configs/llama3-8b-fsdp-64xh100.yaml --to llm-foundry
    stepsim: llm-foundry: its configs are read, but not written
    [2]
    $ stepsim export $ROOT/configs/llama3-8b-fsdp-64xh100.yaml
    stepsim: export: --to NAME missing (accelerate deepspeed megatron nanotron torchtitan torchtitan-0.2)
    [2]

Read again, it is the same resolved config, of the same step time.

    $ cd $ROOT/configs; python3 ../tests/golden/round_trip.py llama3-8b-fsdp-64xh100.yaml \
    >     pp-llama3-70b-64xh100.yaml ep-mixtral-8x7b-64xh100.yaml ddp-gpt2-774m-32xl40s.yaml
    llama3-8b-fsdp-64xh100.yaml torchtitan same
    llama3-8b-fsdp-64xh100.yaml torchtitan-0.2 same
    llama3-8b-fsdp-64xh100.yaml megatron same
    llama3-8b-fsdp-64xh100.yaml deepspeed same
    llama3-8b-fsdp-64xh100.yaml nanotron same
    llama3-8b-fsdp-64xh100.yaml accelerate same
    pp-llama3-70b-64xh100.yaml torchtitan same
    pp-llama3-70b-64xh100.yaml torchtitan-0.2 same
    pp-llama3-70b-64xh100.yaml megatron same
    pp-llama3-70b-64xh100.yaml deepspeed same
    pp-llama3-70b-64xh100.yaml nanotron same
    pp-llama3-70b-64xh100.yaml accelerate same
    ep-mixtral-8x7b-64xh100.yaml torchtitan same
    ep-mixtral-8x7b-64xh100.yaml torchtitan-0.2 same
    ep-mixtral-8x7b-64xh100.yaml megatron same
    ep-mixtral-8x7b-64xh100.yaml deepspeed same
    ep-mixtral-8x7b-64xh100.yaml nanotron same
    ep-mixtral-8x7b-64xh100.yaml accelerate same
    ddp-gpt2-774m-32xl40s.yaml torchtitan same
    ddp-gpt2-774m-32xl40s.yaml torchtitan-0.2 same
    ddp-gpt2-774m-32xl40s.yaml megatron same
    ddp-gpt2-774m-32xl40s.yaml deepspeed same
    ddp-gpt2-774m-32xl40s.yaml nanotron same
    ddp-gpt2-774m-32xl40s.yaml accelerate same
    $ python3 $ROOT/tests/golden/round_trip.py
    24 plans, 6 frameworks: 144 come back the same
    $ stepsim export --model resnet50 --to megatron
    stepsim: Megatron-LM has no convolutional networks
    [2]
    $ stepsim export --model dit-l-2 --to megatron
    stepsim: Megatron-LM has no diffusion transformers
    [2]

What Megatron-LM asks for beside DeepEP and a router's bias; a capacity factor of 0 is none.

    $ stepsim export --model deepseek-v3 --gpus 256 --strategy zero1 --to megatron --set train.micro_batch=1 \
    >     --set parallel.expert=64 --set parallel.expert_dispatch=deepep | grep -E 'moe-(en|ex|tok|router)'
        --moe-router-topk 8 \
        --moe-router-num-groups 8 \
        --moe-router-group-topk 4 \
        --moe-router-enable-expert-bias \
        --moe-enable-deepep \
        --moe-token-dispatcher-type flex \
        --moe-router-score-function sigmoid \

The best plan, as flags.

    $ stepsim plan $ROOT/configs/llama3-8b-fsdp-64xh100.yaml --gpus 8 -q --emit deepspeed
    {
      "zero_optimization": {
        "stage": 3,
        "overlap_comm": true
      },
      "train_micro_batch_size_per_gpu": 1,
      "train_batch_size": 128,
      "gradient_accumulation_steps": 16,
      "bf16": {
        "enabled": true
      },
      "communication_data_type": "fp32",
      "optimizer": {
        "type": "AdamW"
      },
      "stepsim": {
        "model.preset": "llama3-8b",
        "train.stack": "pytorch-fsdp",
        "train.param_dtype": "fp32",
        "train.grad_dtype": "fp32",
        "train.master_weights": false,
        "train.fused": true,
        "train.optimizer_impl": "fused",
        "parallel.prefetch": 2,
        "parallel.reshard_after_forward": false,
        "cluster.system": "dgx-h100",
        "cluster.nodes": 1
      }
    }

What a file leaves to others is counted, and a plan that is larger than the file's machine is refused.

    $ printf 'trainer: {precision: bf16}\nmodel:\n  num_layers: 2\n  hidden_size: 64\n  num_attention_heads: 4
    >   ffn_hidden_size: ${multiply:4, ${.hidden_size}}\n  encoder_seq_length: 64\n  tensor_model_parallel_size: ${TP}
    >   global_batch_size: 8\n  micro_batch_size: ${MBS}\n' >nemo.yaml
    > stepsim predict nemo.yaml 2>&1 | head -6
    > stepsim predict nemo.yaml --set train.micro_batch=1 --set parallel.tensor=4 2>&1 | head -7
    > printf 'torchrun --nproc_per_node 8 --nnodes 1 x.py --num-layers 32 --hidden-size 64 --num-attention-heads 8 \\
    >   --tensor-model-parallel-size 8 --pipeline-model-parallel-size 4 --seq-length 64 --micro-batch-size 1' >large.sh
    > stepsim predict large.sh
    > stepsim predict large.sh --gpus 32 2>/dev/null | sed -n 3,4p
    > echo '{"zero_optimization": {"stage": 3}}' >ds.json
    > stepsim import ds.json -o half.yaml
    > stepsim predict half.yaml
    stepsim: nemo.yaml: 2 of its values are not in the file, such as model.tensor_model_parallel_size = ${TP} (--set parallel.tensor)
    stepsim: nemo.yaml: a config of NeMo and Megatron-Bridge, of which 7 keys are taken and 2 not modelled (`stepsim import` shows each)
    stepsim: it names no machine: one dgx-h100 is assumed (--gpus N takes more, --set cluster.system=NAME takes another)
    stepsim: it names no vocabulary: 50257 tokens are assumed (--set model.vocab=N takes another)
    A step takes 8.59 ms (90 % interval: 4.20 ms to 17.6 ms); 0 % of communication hides behind compute,
      the rest takes 1.7 % of the step; it fits, 78.6 GiB are free.
    stepsim: nemo.yaml: 2 of its values are not in the file, such as model.tensor_model_parallel_size = ${TP} (--set parallel.tensor)
    stepsim: nemo.yaml: a config of NeMo and Megatron-Bridge, of which 7 keys are taken and 2 not modelled (`stepsim import` shows each)
    stepsim: it names no machine: dgx-h100 is assumed (--set cluster.system=NAME takes another)
    stepsim: it names no vocabulary: 50257 tokens are assumed (--set model.vocab=N takes another)
    A step takes 39.7 ms (90 % interval: 19.4 ms to 81.2 ms); 0 % of communication hides behind compute,
      the rest takes 1.7 % of the step; it fits, 78.4 GiB are free.
    custom (3.32 M parameters), zero1 on 8 ranks (tp 4, dp 2), bf16
    stepsim: large.sh: its parallel degrees take 32 GPUs, and it has 8 (--gpus N takes more)
    custom (4.82 M parameters), ddp on 32 ranks (tp 8, pp 4), fp32
    a step: 1 sequence of 64 tokens, 1 micro-batch of 1 a replica
    stepsim: the config that was written is not complete: ds.json: it names no model that is known: --model takes a config.json, or a name of `stepsim list models`
    stepsim: half.yaml:4:10: model.preset: expected a text, got nothing
    [2]

Dense layers before those with experts are a list that Megatron-LM evaluates.

    $ stepsim export --model deepseek-v3 --to megatron --gpus 64 | grep 'moe-layer-freq'
        --moe-layer-freq '([0]*3+[1]*(61-3))' \

A Hugging Face config.json is of no framework, and is taken as it is.

    $ echo '{"model_type": "llama", "hidden_size": 128, "num_attention_heads": 4, "num_hidden_layers": 2,
    >  "intermediate_size": 256, "vocab_size": 512, "max_position_embeddings": 64}' >config.json
    > stepsim predict config.json --set cluster.system=dgx-h100 -q | sed -n 3p
    llama (459 k parameters), fsdp on 8 ranks (dp 8), bf16

The name of a preset's page on the hub is that preset.

    $ stepsim predict --model Qwen/Qwen3-0.6B-Base --system dgx-h100 2>&1 | sed -n '1p;4p'
    stepsim: --model Qwen/Qwen3-0.6B-Base: taken as the preset qwen3-0.6b
    qwen3-0.6b (596 M parameters), fsdp on 8 ranks (dp 8), bf16

What --set gives stands in the config that is written, in place of the file's:

    $ printf 'base_model: some/Model\nbf16: auto\nsequence_len: 2048\nmicro_batch_size: 4\n' >set.yml
    > printf 'gradient_accumulation_steps: 4\noptimizer: adamw_torch\nflash_attention: true\n' >>set.yml
    > stepsim import set.yml --set model.preset=llama3.2-1b --set micro_batch=2 --set train.global_batch=64 -o set.yaml
    > grep -e 'preset' -e 'batch' set.yaml | grep -v '^#'
    > stepsim predict set.yaml -q | sed -n 3,4p
    > stepsim import set.yml --set model.preset=llama3.2-1b --set train.micro=2 -o no.yaml
      preset: llama3.2-1b # --set
      global_batch: 64 # --set
      micro_batch: 2 # --set
    llama3.2-1b (1.24 B parameters), ddp on 8 ranks (dp 8), bf16
    a step: 64 sequences of 2048 tokens, 4 micro-batches of 2 a replica
    stepsim: the config that was written is not complete: --set train.micro=2: unknown key (nearest: train.micro_batch)
    [2]
