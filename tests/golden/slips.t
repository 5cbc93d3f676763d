Slips of the pen in another framework's config: what it would refuse is refused, and a key that nobody knows is named.

    $ cat >run.sh <<'END'
    > ARGS="--num-layers 80 --hidden-size 8192 --num-attention-heads 64 --seq-length 8192 --vocab-size 128256
    >   --micro-batch-size 1 --global-batch-size 128 --bf16 --pipeline-model-parallel-size 4
    >   --num-layers-per-virtual-pipeline-stage 5"
    > torchrun pretrain_gpt.py $ARGS --tensor-model-parallel-size 4
    > END
    > sed 's/tensor-model-parallel/tensor-model-paralel/' run.sh >slip.sh; stepsim predict slip.sh 2>&1 | grep 'no key'
    > stepsim import slip.sh 2>&1 | grep -A1 paralel
    > sed 's/parallel-size 4$/parallel-size/' run.sh >none.sh; stepsim predict none.sh
    > sed 's/layers 80/layers 81/' run.sh >odd.sh; stepsim predict odd.sh
    > sed 's/--num-layers 80//' run.sh >short.sh; stepsim predict short.sh
    > sed 's/--bf16/--bf16 --recompute-granularity some/' run.sh >word.sh; stepsim predict word.sh
    stepsim: slip.sh:4: tensor_model_paralel_size is no key that stepsim knows (nearest: tensor_model_parallel_size)
    #    4  not modelled  tensor_model_paralel_size = 4: not known to stepsim (nearest:
    #                     tensor_model_parallel_size)
    stepsim: none.sh:4:32: tensor_model_parallel_size (parallel.tensor): no value follows it
    stepsim: odd.sh:3:43: num_layers_per_virtual_pipeline_stage (parallel.virtual_stages): its 5 with model.layers 81, parallel.pipeline 4 gives 4.05: expected an integer from 1 to 10000, got "4.05"
    stepsim: short.sh: num_layers_per_virtual_pipeline_stage = 5: what it goes with is not in this file (--set parallel.virtual_stages)
    stepsim: short.sh: it has a hidden size, but no number of layers, and no model that is known: --model takes a config.json, or a name of `stepsim list models`
    stepsim: word.sh:2:79: recompute_granularity: unknown value "some" (known: full, selective, none, null)
    [2]

DeepSpeed has stages 0 to 3; its batch is the product of micro-batch, accumulation and GPUs.

    $ echo '{"zero_optimization": {"stage": 4}, "train_micro_batch_size_per_gpu": 1}' >four.json
    > echo '{"zero_optimization": {"stge": 3}, "train_micro_batch_size_per_gpu": 1}' >stge.json
    > echo '{"train_batch_size": 32, "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 3}' >batch.json
    > stepsim predict stge.json --model llama3-8b 2>&1 | grep 'no key'
    > stepsim predict batch.json --model llama3-8b --gpus 8
    > stepsim predict four.json --model llama3-8b
    stepsim: stge.json:1: zero_optimization.stge is no key that stepsim knows (nearest: zero_optimization.stage)
    stepsim: batch.json:1:94: gradient_accumulation_steps (parallel.data): its 3 with train.global_batch 32, train.micro_batch 4 gives 2.66666666667: expected an integer from 1 to 10000000, got "2.66666666667"; auto is accepted too
    stepsim: four.json:1:33: zero_optimization.stage: unknown value "4" (known: 0, 1, 2, 3)
    [2]

Another micro-batch keeps the accumulation: the batch grows with it. Without a hint in the keys --from names the framework.

    $ echo '{"zero_optimization": {"stage": 3}, "gradient_accumulation_steps": 3}' >three.json
    > stepsim import three.json llama3-8b --set train.micro_batch=2 | grep -E '^  (batch_per_gpu|micro_batch)'
    > echo '{"gradient_accumulation_steps": 3}' >bare.json
    > stepsim predict bare.json --model llama2-7b --from deepspeed --json - -q | grep -E '"(strategy|global_batch)"'
    > stepsim predict --model llama2-7b --from deepspeed
      batch_per_gpu: 6 # 3 micro-batches of --set train.micro_batch
      micro_batch: 2 # --set
          "global_batch": 24,
          "strategy": "ddp",
    stepsim: --from goes with the config of another framework
    [2]

A file whose form is broken is refused where it breaks, whichever command reads it, and with --model beside it.

    $ printf '{"zero_optimization": {"stage": 3}\n "bf16": {"enabled": true}}\n' >broken.json
    > printf '[model]\nname = "llama3"\n[training]\nseq_len =\n' >broken.toml
    > printf '[activation_checkpoint]\nmode = "sometimes"\n[training]\nseq_len = 4096\n[model]\nname = "llama3"\nflavor = "8B"\n[parallelism]\n' >mode.toml
    > stepsim predict broken.json --model llama3-8b
    > stepsim predict broken.toml
    > stepsim predict mode.toml
    stepsim: broken.json:2:7: '}' expected near '"bf16"'
    stepsim: broken.toml:4:10: expected a value: a text in quotes, a number, true, false, a list or a table
    stepsim: mode.toml:2:8: activation_checkpoint.mode: unknown value "sometimes" (known: none, full, selective, memory_budget)
    [2]
