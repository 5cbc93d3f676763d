#!/usr/bin/env bash
# Every strategy on 1, 2, 4 and 8 ranks, and variants of the model, trained for real and compared with a single rank
# (test_train.c). The last line counts.
set -u
# shellcheck source=scripts/env.sh
. "$(dirname "$0")/../../scripts/env.sh"
cd "$root" || exit 2
program=${1:-build/release/tests/exec/test_train}
config=tests/exec/tiny.yaml
passed=0 failed=0
log=$(mktemp)
trap 'rm -f "$log"' EXIT
declare -A cases # by ranks; each ends in " -- "
declare -A counts

# ranks, then KEY=VALUE... on `config`: one case of the job of that many ranks
train() {
	local ranks=$1
	shift
	cases[$ranks]+="$config $* -- "
	counts[$ranks]=$((${counts[$ranks]:-0} + 1))
}

# All cases of that many ranks, in one job, which may take ten times as long as on idle cores. A case without a verdict
# has failed: the job ended before it.
run_cases() {
	local ranks=$1 good
	# shellcheck disable=SC2086
	timeout $((60 + 10 * counts[$ranks])) mpirun "${mpirun_flags[@]}" -np "$ranks" "$program" \
		${cases[$ranks]% -- } >"$log" 2>&1 </dev/null
	code=$?
	good=$(grep -c '^passed ' "$log")
	[ $code -eq 0 ] || [ "$good" -lt "${counts[$ranks]}" ] || good=$((good - 1)) # it broke behind its last case
	passed=$((passed + good))
	failed=$((failed + counts[$ranks] - good))
	[ "$good" -eq "${counts[$ranks]}" ] && return
	echo "FAILED with $ranks ranks, exit code $code, $good of ${counts[$ranks]} cases passed:"
	grep -v '^passed ' "$log" | sed 's/^/    /'
}

for strategy in ddp zero1 zero2 fsdp; do
	for ranks in 1 2 4 8; do
		# bucket sizes mean nothing to fsdp, and a key that is not used must hold its default
		bucket=(); [ $strategy = fsdp ] && bucket=(parallel.bucket_mb=25)
		train $ranks parallel.strategy=$strategy "${bucket[@]}"
		[ $ranks -eq 1 ] || train $ranks parallel.strategy=$strategy "${bucket[@]}" train.micro_batch=2 \
			train.global_batch=$((4 * ranks)) train.optimizer=sgd
		[ $ranks -lt 4 ] || train $ranks parallel.strategy=$strategy "${bucket[@]}" parallel.tensor=2 \
			parallel.sequence_parallel=true
	done
done
for ranks in 2 4 8; do
	train $ranks parallel.tensor=$ranks
	train $ranks parallel.tensor=$ranks parallel.sequence_parallel=true
done
train 8 parallel.tensor=4 parallel.order=dp-tp-cp-ep-pp
# PyTorch's DTensor keeps gathered rows for the gradients of weights.
for case in train.recompute=none train.recompute=full "train.recompute=selective model.attention_gate=true" \
		model.mlp=swiglu; do
	# shellcheck disable=SC2086
	train 2 parallel.strategy=ddp parallel.tensor=2 parallel.sequence_parallel=true train.stack=pytorch-fsdp $case
done

llama=(model.position=rope model.mlp=swiglu model.norm=rmsnorm model.bias=false model.kv_heads=2
	model.tied_embeddings=false)
latent=(model.kv_lora_rank=24 model.q_lora_rank=20 model.head_dim=12 model.rope_head_dim=4 model.v_head_dim=10
	model.position=rope model.norm=rmsnorm model.bias=false)
bert=(model.causal=false model.embedding_norm=true model.post_norm=true model.final_norm=false model.type_vocab=2)
again=(train.recompute=selective train.recompute_modules)
for ranks in 1 2; do
	tensor=(parallel.tensor="$ranks"); [ $ranks -eq 2 ] && tensor+=(parallel.sequence_parallel=true)
	train $ranks "${llama[@]}" "${tensor[@]}"
	train $ranks "${llama[@]}" "${tensor[@]}" train.attention=naive train.fused=false
	train $ranks "${bert[@]}" "${tensor[@]}"
	train $ranks model.position=alibi model.mlp=geglu "${tensor[@]}" train.attention=naive
	train $ranks "${latent[@]}" "${tensor[@]}"
	train $ranks "${latent[@]}" model.q_lora_rank=0 model.norm=layernorm train.micro_batch=2 "${tensor[@]}"
	train $ranks "${latent[@]}" train.recompute=selective train.recompute_modules=mla_up_proj "${tensor[@]}"
	train $ranks "${latent[@]}" train.lora_rank=4 "${tensor[@]}"
	train $ranks "${latent[@]}" model.q_lora_rank=0 train.lora_rank=4 train.lora_targets=qkv \
		train.recompute=selective train.recompute_modules=mla_up_proj "${tensor[@]}"
	train $ranks "${latent[@]}" model.rope_head_dim=0 train.recompute=full train.fused=false
	train $ranks "${llama[@]}" model.attention_sinks=true model.sliding_window=8 model.global_attention_every=2 \
		"${tensor[@]}"
	train $ranks "${llama[@]}" model.attention_softcap=1 model.logit_softcap=2 model.branch_norm=sandwich \
		"${tensor[@]}"
	train $ranks "${llama[@]}" model.sliding_window=6 model.window_kind=chunked model.no_rope_every=2 \
		train.recompute=full "${tensor[@]}"
	train $ranks model.position=none model.mlp=squared_relu model.parallel_residual=true "${tensor[@]}"
	train $ranks "${llama[@]}" model.qk_norm=head model.branch_norm=sandwich "${tensor[@]}"
	train $ranks "${llama[@]}" model.qk_norm=head model.proj_bias=true "${tensor[@]}" \
		parallel.sequence_parallel=false train.fused=false
	train $ranks "${llama[@]}" model.branch_norm=reordered train.recompute=full "${tensor[@]}"
	train $ranks model.sliding_window=8 model.global_attention_every=2 model.branch_norm=sandwich "${tensor[@]}"
	train $ranks train.lora_rank=4 train.recompute=full "${tensor[@]}"
	train $ranks train.lora_rank=4 train.lora_targets=attention parallel.strategy=zero2 "${llama[@]}"
	train $ranks train.freeze=embedding "${tensor[@]}"
	train $ranks train.attention=naive train.recompute=selective "${tensor[@]}"
	train $ranks "${again[@]}=core_attn,layernorm,mlp" "${tensor[@]}"
	train $ranks "${again[@]}=layernorm" train.recompute_layers=1 train.fused=false model.parallel_residual=true
	train $ranks train.fused=false train.recompute=full "${tensor[@]}"
	train $ranks model.position=alibi model.qkv_bias=false train.optimizer=adam train.recompute=full \
		train.recompute_layers=1 "${tensor[@]}"
done
# Heads that see a part of the rows, and pictures.
heads=(model.causal=false model.predictions=4 model.head_transform=true model.head_bias=true model.pooler=true
	model.classes=3)
vit=(model.causal=false model.lm_head=false model.classes=10 model.input=patches model.image_size=32 model.patch_size=8
	model.seq_len=17 model.class_token=true)
mtp=(model.tied_embeddings=false model.mtp_layers=1)
train 1 "${mtp[@]}" train.recompute=full
train 2 "${mtp[@]}" parallel.tensor=2 parallel.sequence_parallel=true
train 2 "${mtp[@]}" parallel.pipeline=2
train 1 "${mtp[@]}" train.lora_rank=4
train 2 "${mtp[@]}" train.lora_rank=4 parallel.pipeline=2
train 2 "${mtp[@]}" train.freeze=embedding parallel.pipeline=2
train 2 "${mtp[@]}" model.mtp_layers=2 parallel.strategy=zero2 model.norm=rmsnorm model.bias=false
dit=("${vit[@]:0:2}" model.input=patches model.image_size=8 model.patch_size=2 model.channels=2 model.position=sincos
	model.adaptive_norm=true model.timestep_features=16 model.condition_classes=11 model.output_channels=1)
for ranks in 1 2; do
	train $ranks "${dit[@]}" parallel.tensor=$ranks
	train $ranks "${dit[@]}" train.fused=false train.recompute=full model.norm=rmsnorm
	train $ranks "${dit[@]}" train.fused=false "${again[@]}=[layernorm,mlp]" parallel.strategy=zero1
	train $ranks "${heads[@]}" parallel.tensor=$ranks
	train $ranks "${heads[@]}" model.mlp=geglu model.position=rope parallel.tensor=$ranks # ModernBERT, ESM-2
	train $ranks "${heads[@]}" model.mlp=swiglu train.recompute=full
	train $ranks model.position=sincos parallel.tensor=$ranks # XGLM
	train $ranks "${heads[@]}" model.lm_head=false model.predictions=0 model.head_transform=false \
		model.head_bias=false model.post_norm=true model.final_norm=false
	train $ranks "${vit[@]}" parallel.tensor=$ranks
	train $ranks "${vit[@]}" parallel.strategy=fsdp parallel.bucket_mb=25
done
train 2 "${heads[@]}" parallel.pipeline=2 parallel.schedule=zero_bubble
train 2 "${vit[@]}" parallel.pipeline=2 train.freeze=embedding
train 2 model.head_transform=true model.head_bias=true parallel.tensor=2 parallel.sequence_parallel=true
train 2 parallel.tensor=2 model.mlp=relu # its kinks defeat finite differences
train 4 parallel.strategy=fsdp parallel.bucket_mb=25 parallel.reshard_after_forward=false "${llama[@]}"
train 4 parallel.strategy=fsdp parallel.bucket_mb=25 parallel.prefetch=0 train.recompute=full
train 4 parallel.strategy=fsdp parallel.bucket_mb=25 parallel.prefetch=3 parallel.overlap=false
for shard in 2 4; do # replicas of 2 and 1 at 4 ranks, of 4 and 2 at 8
	train 4 parallel.strategy=hsdp parallel.bucket_mb=25 parallel.shard=$shard
	train 8 parallel.strategy=hsdp parallel.bucket_mb=25 parallel.shard=$shard train.optimizer=sgd
done
train 8 parallel.strategy=hsdp parallel.bucket_mb=25 parallel.shard=2 parallel.tensor=2 \
	parallel.sequence_parallel=true train.global_batch=16 train.recompute=full
train 4 parallel.strategy=hsdp parallel.bucket_mb=25 parallel.shard=2 parallel.overlap=false \
	parallel.reshard_after_forward=false
train 4 parallel.strategy=ddp parallel.overlap=false
train 4 parallel.strategy=zero1 parallel.overlap=false train.optimizer=lion
train 4 parallel.strategy=zero2 parallel.overlap=false
train 3 parallel.strategy=zero2 train.global_batch=6
# A loader's batches are the ones that the ranks would have had without it, in their order.
for data in 'data.workers=2' 'data.workers=3 data.prefetch=1' 'data.prefetch=0' 'data.workers=0 train.sync_every=1' \
	'data.workers=1 data.prefetch=1 data.pin_memory=false train.sync_every=2'; do
	# shellcheck disable=SC2086
	train 2 data.load_time=1ms train.micro_batch=1 train.global_batch=8 $data
done

train 2 model.sliding_window=5 model.position=rope
train 4 model.sliding_window=3 model.position=alibi parallel.tensor=2 parallel.sequence_parallel=true \
	train.recompute=full

# An encoder before a decoder, with positions in the table and by distance.
stacks=(model.layers=4 model.encoder_layers=2 model.encoder_seq_len=24)
t5=("${stacks[@]}" model.position=relative model.relative_buckets=8 model.mlp=geglu model.norm=rmsnorm model.bias=false
	model.tied_embeddings=false)
for ranks in 1 2; do
	tensor=(parallel.tensor="$ranks"); [ $ranks -eq 2 ] && tensor+=(parallel.sequence_parallel=true)
	train $ranks "${stacks[@]}" model.kv_heads=2 model.head_dim=12 "${tensor[@]}"
	train $ranks "${stacks[@]}" "${again[@]}=core_attn,layernorm,mlp" parallel.tensor=$ranks
	train $ranks "${stacks[@]}" model.position=sincos "${tensor[@]}" # Pegasus, M2M-100
	train $ranks "${stacks[@]}" train.freeze=attention parallel.strategy=fsdp parallel.bucket_mb=25
	train $ranks "${t5[@]}" "${tensor[@]}"
	train $ranks "${t5[@]}" train.fused=false model.tied_embeddings=true train.recompute=full "${tensor[@]}"
	train $ranks "${t5[@]}" train.recompute=selective train.freeze=embedding parallel.strategy=zero2
done
train 2 model.position=relative parallel.tensor=2
frames=("${stacks[@]}" model.encoder_seq_len=12 model.input=frames model.channels=5)
train 1 "${frames[@]}" train.micro_batch=2
train 2 "${frames[@]}" parallel.tensor=2
train 2 "${frames[@]}" parallel.strategy=fsdp parallel.bucket_mb=25 train.recompute=full
train 4 "${t5[@]}" parallel.strategy=fsdp parallel.bucket_mb=25 parallel.tensor=2 parallel.sequence_parallel=true

# Mamba-2 layers, alone and between others, and beside each way to cut them.
mamba=(model.position=none model.norm=rmsnorm model.bias=false model.ssm_state=8 model.ssm_head_dim=16
	model.ssm_groups=2 model.ssm_chunk=5)
train 1 "${mamba[@]}" model.layer_pattern=M train.micro_batch=2
train 1 "${mamba[@]}" 'model.layer_pattern=M*-M' model.layers=4 train.recompute=full
train 2 "${mamba[@]}" model.layer_pattern=M- parallel.tensor=2 train.recompute=full
train 2 "${mamba[@]}" 'model.layer_pattern=M-M*' model.layers=4 parallel.tensor=2 parallel.sequence_parallel=true
train 2 "${mamba[@]}" 'model.layer_pattern=M*-M' model.layers=4 parallel.pipeline=2 parallel.schedule=zero_bubble
train 2 "${mamba[@]}" 'model.layer_pattern=MM*-' model.layers=4 train.offload=activations
train 2 "${mamba[@]}" 'model.layer_pattern=M*-M' model.layers=4 train.recompute=selective \
	train.recompute_modules=[layernorm,mlp,core_attn]
train 4 "${mamba[@]}" model.layer_pattern=M- parallel.strategy=fsdp parallel.bucket_mb=25 train.fused=false

# Gated delta rules, Mamba beside attention, gated short convolutions.
delta=("${mamba[@]}" model.attention_gate=true model.kv_heads=2)
train 1 "${delta[@]}" model.layer_pattern=G train.micro_batch=2
train 1 "${delta[@]}" 'model.layer_pattern=G*-G' model.layers=4 train.recompute=full
train 2 "${delta[@]}" 'model.layer_pattern=G-G*' model.layers=4 parallel.tensor=2 parallel.sequence_parallel=true
train 2 "${delta[@]}" 'model.layer_pattern=G*-G' model.layers=4 parallel.pipeline=2 parallel.schedule=zero_bubble
train 2 "${delta[@]}" 'model.layer_pattern=GG*-' model.layers=4 train.offload=activations
train 2 "${delta[@]}" 'model.layer_pattern=P*P-' model.layers=4 train.recompute=selective \
	train.recompute_modules=[layernorm,core_attn] parallel.tensor=2
train 1 "${delta[@]}" model.layer_pattern=P- train.recompute=full train.attention=naive
# Kimi delta attention, also beside latent attention without rope.
train 1 "${delta[@]}" model.layer_pattern=K train.micro_batch=2
train 1 "${delta[@]}" 'model.layer_pattern=K*-K' model.layers=4 train.recompute=full
train 2 "${delta[@]}" 'model.layer_pattern=K-K*' model.layers=4 parallel.tensor=2
train 2 "${delta[@]}" 'model.layer_pattern=K-K*' model.layers=4 parallel.tensor=2 parallel.sequence_parallel=true
train 2 "${delta[@]}" 'model.layer_pattern=K*-K' model.layers=4 parallel.pipeline=2 parallel.schedule=zero_bubble
train 2 "${delta[@]}" 'model.layer_pattern=KK*-' model.layers=4 train.offload=activations
kimi=("${mamba[@]}" 'model.layer_pattern=K-K-K-*-' model.layers=8 model.kv_lora_rank=24 model.head_dim=12
	model.rope_head_dim=4 model.v_head_dim=10)
train 1 "${kimi[@]}"
train 2 "${kimi[@]}" parallel.tensor=2 parallel.sequence_parallel=true
train 4 "${kimi[@]}" parallel.strategy=fsdp parallel.bucket_mb=25
# Adapters of hybrids, whose own parameters are frozen.
train 1 "${delta[@]}" 'model.layer_pattern=G*-G' model.layers=4 train.lora_rank=4 train.recompute=full
train 2 "${delta[@]}" 'model.layer_pattern=G-G*' model.layers=4 train.lora_rank=4 parallel.tensor=2 \
	parallel.sequence_parallel=true
train 1 "${delta[@]}" 'model.layer_pattern=K*-K' model.layers=4 train.lora_rank=4 train.fused=false
train 2 "${mamba[@]}" 'model.layer_pattern=MM*-' model.layers=4 train.lora_rank=4 parallel.strategy=zero2
train 1 "${delta[@]}" 'model.layer_pattern=P*P-' model.layers=4 train.lora_rank=4 train.lora_targets=attention
train 2 "${delta[@]}" 'model.layer_pattern=G-G*' model.layers=4 train.freeze=embedding
short=(model.ssm_conv=3 model.norm=rmsnorm model.bias=false)
train 1 "${short[@]}" model.layer_pattern=C- train.micro_batch=2
train 2 "${short[@]}" 'model.layer_pattern=C-C*' model.layers=4 parallel.tensor=2 parallel.sequence_parallel=true
train 4 "${short[@]}" 'model.layer_pattern=C-C*' model.layers=4 parallel.strategy=fsdp parallel.bucket_mb=25 \
	train.recompute=full

train 2 "${short[@]}" 'model.layer_pattern=C-C*' model.layers=4 train.lora_rank=4 parallel.tensor=2

# Moments in 8 bits, of whole buckets with tensors that stay in 32, and of flat parts.
# No biases: their gradients, zero but for rounding, would have steps as large as all others.
lamb=(train.optimizer=lamb model.bias=false model.qkv_bias=false)
train 1 "${lamb[@]}"
train 2 "${lamb[@]}" parallel.tensor=2
train 4 "${lamb[@]}" parallel.strategy=zero1
train 4 "${lamb[@]}" parallel.strategy=fsdp parallel.tensor=2 parallel.bucket_mb=25
train 8 "${lamb[@]}" parallel.strategy=hsdp parallel.bucket_mb=25 parallel.shard=2

train 1 train.optimizer=adafactor
train 2 train.optimizer=adafactor parallel.tensor=2 model.mlp=swiglu
train 2 train.optimizer=adafactor parallel.strategy=zero1
train 2 "${delta[@]}" 'model.layer_pattern=GC*-' model.layers=4 train.optimizer=adafactor parallel.tensor=2
train 4 train.optimizer=adafactor parallel.strategy=fsdp parallel.tensor=2 parallel.bucket_mb=25 model.kv_heads=2
train 4 train.optimizer=adafactor parallel.strategy=zero2 parallel.pipeline=2
train 8 train.optimizer=adafactor parallel.strategy=hsdp parallel.bucket_mb=25 parallel.shard=2

train 1 train.optimizer=muon model.mlp=swiglu
train 2 train.optimizer=muon
train 4 train.optimizer=muon parallel.pipeline=2

train 1 train.optimizer_bits=8
train 2 train.optimizer_bits=8 parallel.tensor=2 parallel.sequence_parallel=true train.optimizer=sgd
train 4 train.optimizer_bits=8 parallel.strategy=zero1
train 8 train.optimizer_bits=8 parallel.strategy=fsdp parallel.bucket_mb=25 model.hidden=128 train.optimizer=lion

# Offloaded to another buffer and back; the single rank that they are compared with offloads nothing.
train 1 train.offload=optimizer
train 2 train.offload=optimizer train.optimizer_bits=8
train 2 train.offload=optimizer parallel.strategy=zero1 parallel.overlap=false
train 4 train.offload=optimizer parallel.strategy=zero2 train.optimizer=sgd
train 4 train.offload=optimizer+params parallel.strategy=fsdp parallel.bucket_mb=25
train 8 train.offload=optimizer+params parallel.strategy=hsdp parallel.bucket_mb=25 parallel.shard=2 \
	parallel.reshard_after_forward=false train.optimizer=lion
train 4 train.offload=optimizer+params parallel.strategy=fsdp parallel.bucket_mb=25 train.lora_rank=4
train 2 train.offload=optimizer parallel.strategy=zero1 train.lora_rank=4
train 2 train.offload=activations model.layers=4
train 4 train.offload=activations model.layers=5 parallel.tensor=2 parallel.sequence_parallel=true \
	train.recompute=full train.recompute_layers=2

# Pipelines: each schedule at 2 and 4 stages, the table tied and not, and beside the other dimensions.
for schedule in gpipe 1f1b zero_bubble; do
	train 2 parallel.pipeline=2 parallel.schedule=$schedule
	train 4 parallel.pipeline=4 parallel.schedule=$schedule model.layers=5 model.tied_embeddings=false
done
train 2 parallel.pipeline=2 parallel.schedule=interleaved parallel.virtual_stages=2 model.layers=4 \
	model.tied_embeddings=false
train 3 parallel.pipeline=3 parallel.schedule=interleaved parallel.virtual_stages=2 model.layers=6 train.global_batch=6
train 4 parallel.pipeline=4 parallel.schedule=interleaved parallel.virtual_stages=2 model.layers=8
train 2 parallel.pipeline=2 parallel.schedule=interleaved_zb parallel.virtual_stages=2 model.layers=4
train 4 parallel.pipeline=4 parallel.schedule=interleaved_zb parallel.virtual_stages=2 model.layers=9 \
	model.tied_embeddings=false
train 4 parallel.pipeline=2 parallel.schedule=interleaved_zb parallel.virtual_stages=3 model.layers=6 \
	parallel.strategy=fsdp parallel.bucket_mb=25 train.global_batch=8 train.recompute=full
train 2 parallel.pipeline=2 parallel.schedule=zbv model.layers=4
train 4 parallel.pipeline=4 parallel.schedule=zbv model.layers=9 model.tied_embeddings=false train.global_batch=8
train 3 parallel.pipeline=3 parallel.schedule=zbv model.layers=6 train.global_batch=6 train.recompute=full
train 2 parallel.pipeline=2 parallel.schedule=dualpipev model.layers=4
train 4 parallel.pipeline=4 parallel.schedule=dualpipev model.layers=9 model.tied_embeddings=false train.global_batch=12
train 3 parallel.pipeline=3 parallel.schedule=dualpipev model.layers=6 train.global_batch=6 train.recompute=full
train 8 parallel.pipeline=2 parallel.tensor=2 parallel.strategy=zero1 parallel.schedule=zbv model.layers=4 \
	parallel.overlap=false
# parts without a layer
none=(model.layers=3 train.global_batch=8)
train 2 "${none[@]}" parallel.pipeline=2 parallel.schedule=interleaved parallel.virtual_stages=2 \
	parallel.layers_per_stage=[0,2,0,1]
train 2 "${none[@]}" parallel.pipeline=2 parallel.schedule=interleaved parallel.virtual_stages=2 \
	model.layers=2 parallel.count_ends=both model.tied_embeddings=false
train 4 "${none[@]}" parallel.pipeline=4 parallel.layers_per_stage=[0,3,0,0] model.tied_embeddings=false
train 2 "${none[@]}" parallel.pipeline=2 parallel.schedule=zbv parallel.layers_per_stage=[2,0,1,0]
train 2 "${none[@]}" parallel.pipeline=2 parallel.schedule=dualpipev parallel.layers_per_stage=[0,3,0,0]
train 4 "${none[@]}" parallel.pipeline=2 parallel.strategy=fsdp parallel.bucket_mb=25 parallel.schedule=interleaved \
	parallel.virtual_stages=2 parallel.layers_per_stage=[1,0,0,2]
train 4 "${none[@]}" parallel.pipeline=4 parallel.schedule=zero_bubble parallel.layers_per_stage=[0,0,3,0] \
	train.recompute=full
train 8 "${none[@]}" parallel.pipeline=4 parallel.strategy=zero1 parallel.layers_per_stage=[0,0,2,1]
train 4 parallel.pipeline=4 model.layers=6 parallel.first_stage_layers=1 parallel.last_stage_layers=1
# with weights that are gathered for each action, or once and kept
units=(parallel.bucket_mb=25 model.layers=4 parallel.pipeline=2)
for schedule in zero_bubble zbv dualpipev; do
	train 4 "${units[@]}" parallel.strategy=fsdp parallel.schedule=$schedule
	train 8 "${units[@]}" parallel.strategy=hsdp parallel.shard=2 parallel.schedule=$schedule \
		train.global_batch=16 parallel.reshard_after_forward=false train.recompute=full
done
train 8 "${units[@]}" parallel.strategy=fsdp parallel.schedule=zbv parallel.tensor=2 parallel.overlap=false
train 2 parallel.pipeline=2 train.global_batch=1 train.optimizer=sgd
train 4 parallel.pipeline=2 parallel.strategy=zero1
train 4 parallel.pipeline=2 parallel.tensor=2 parallel.sequence_parallel=true model.tied_embeddings=false
train 8 parallel.pipeline=2 parallel.tensor=2 parallel.strategy=zero1 parallel.schedule=zero_bubble
train 2 parallel.pipeline=2 parallel.schedule=zero_bubble "${bert[@]}"
train 2 parallel.pipeline=2 parallel.schedule=zero_bubble model.parallel_residual=true train.recompute=full \
	parallel.overlap=false

# zero2 and fsdp inside stages: units gathered for each pass and once a step, chunks, a table that two stages share.
for strategy in zero2 fsdp; do
	bucket=(); [ $strategy = fsdp ] && bucket=(parallel.bucket_mb=25)
	train 4 parallel.pipeline=2 parallel.strategy=$strategy "${bucket[@]}"
	train 4 parallel.pipeline=2 parallel.strategy=$strategy "${bucket[@]}" parallel.schedule=interleaved \
		parallel.virtual_stages=2 model.layers=4 train.recompute=full
	train 8 parallel.pipeline=4 parallel.strategy=$strategy "${bucket[@]}" parallel.schedule=gpipe model.layers=5 \
		model.tied_embeddings=false train.global_batch=16 parallel.overlap=false
done
train 4 parallel.pipeline=2 parallel.strategy=fsdp parallel.bucket_mb=25 parallel.reshard_after_forward=false \
	train.optimizer=sgd
train 8 parallel.pipeline=2 parallel.strategy=hsdp parallel.bucket_mb=25 parallel.shard=2
train 8 parallel.pipeline=2 parallel.tensor=2 parallel.sequence_parallel=true parallel.strategy=fsdp \
	parallel.bucket_mb=25 parallel.prefetch=0

# Context parallelism: both ways, each position's kind, causal and not, and beside the other dimensions.
for kind in ring all_gather; do
	for position in rope learned alibi; do
		train 2 parallel.context=2 parallel.context_kind=$kind model.position=$position
		train 2 parallel.context=2 parallel.context_kind=$kind model.position=$position model.causal=false \
			train.micro_batch=2
	done
	train 4 parallel.context=4 parallel.context_kind=$kind "${llama[@]}"
	train 8 parallel.context=8 parallel.context_kind=$kind model.kv_heads=4 train.recompute=full
	train 4 parallel.context=2 parallel.context_kind=$kind parallel.tensor=2 parallel.sequence_parallel=true \
		model.position=learned train.micro_batch=2
	train 8 parallel.context=2 parallel.context_kind=$kind parallel.tensor=2 parallel.strategy=zero1 \
		model.position=alibi
	train 8 parallel.context=4 parallel.context_kind=$kind parallel.strategy=fsdp parallel.bucket_mb=25 \
		"${llama[@]}"
done
train 2 parallel.context=2 model.attention_sinks=true model.attention_softcap=1 model.position=rope
train 4 parallel.context=2 parallel.context_kind=all_gather model.attention_sinks=true model.attention_softcap=1 \
	parallel.tensor=2 parallel.sequence_parallel=true "${llama[@]}"
naive=(parallel.context_kind=all_gather train.attention=naive)
train 2 parallel.context=2 "${naive[@]}" train.micro_batch=2 model.position=rope train.recompute=selective
train 4 parallel.context=4 "${naive[@]}" model.causal=false model.position=alibi train.fused=false
train 8 parallel.context=4 "${naive[@]}" parallel.tensor=2 "${llama[@]}" model.position=alibi train.micro_batch=2
train 8 parallel.context=2 parallel.strategy=hsdp parallel.bucket_mb=25 parallel.shard=2
train 8 parallel.context=2 parallel.pipeline=2 parallel.strategy=zero2
train 4 parallel.context=2 parallel.pipeline=2 parallel.schedule=zero_bubble
train 2 parallel.context=2 data.load_time=1ms data.workers=2

train 2 parallel.context=2 "${again[@]}=core_attn" model.position=rope
train 2 parallel.pipeline=2 parallel.schedule=zero_bubble "${again[@]}=layernorm,mlp"

# Convolutional networks; kinks of ReLU and of the pool defeat finite differences, as those of relu do above.
config=tests/exec/tiny-conv.yaml
train 2 parallel.strategy=zero1
train 2 model.conv_bottleneck=false train.optimizer=sgd
train 4 parallel.strategy=fsdp parallel.bucket_mb=25 train.recompute=full
train 4 train.micro_batch=2

# Experts, with places for all at each, so that what a rank drops does not depend on who is beside it. Choices jump
# where logits cross, which defeats finite differences, unless all are chosen.
config=tests/exec/tiny-moe.yaml
train 1 model.experts_per_token=8 model.capacity_factor=1
train 1 model.experts=1 model.experts_per_token=1 model.shared_experts=0 train.fused=false train.recompute=full
train 2 "${mamba[@]}" 'model.layer_pattern=ME*E' model.layers=4 parallel.expert=2
gates=(model.attention_gate=true model.shared_experts=1 model.shared_expert_gate=true)
train 1 "${gates[@]}" model.experts_per_token=8 model.capacity_factor=1
train 2 "${gates[@]}" parallel.tensor=2 parallel.sequence_parallel=true train.recompute=full
train 2 "${gates[@]}" parallel.expert=2 train.recompute=selective train.recompute_modules=[moe,layernorm]
train 2 "${gates[@]}" parallel.expert=2 train.recompute=selective train.recompute_modules=[shared_experts]
train 2 "${gates[@]}" model.branch_norm=sandwich parallel.tensor=2 parallel.sequence_parallel=true
train 2 "${gates[@]}" "${delta[@]}" 'model.layer_pattern=GE*E' model.layers=4 parallel.expert=2
for ranks in 2 4 8; do
	train $ranks parallel.expert=$ranks
	train $ranks parallel.expert=2 parallel.strategy=zero1 train.optimizer=sgd
	train $ranks parallel.expert=$ranks parallel.strategy=zero2 model.shared_experts=0 train.micro_batch=2 \
		train.global_batch=$((4 * ranks))
	train $ranks parallel.strategy=fsdp parallel.bucket_mb=25
	train $ranks parallel.strategy=fsdp parallel.bucket_mb=25 parallel.expert=2 train.micro_batch=1
	train $ranks parallel.strategy=fsdp parallel.bucket_mb=25 parallel.expert=$ranks parallel.prefetch=0
	train $ranks parallel.tensor=2 parallel.sequence_parallel=true parallel.expert=$ranks \
		model.experts_per_token=1 model.capacity_factor=8
done
train 4 parallel.tensor=2 parallel.sequence_parallel=true parallel.strategy=zero2 train.recompute=full
train 8 parallel.tensor=2 parallel.sequence_parallel=true parallel.expert=4 parallel.strategy=zero1 \
	model.moe_layer_freq=2 train.fused=false
train 4 parallel.expert=4 parallel.tensor=2 model.first_dense_layers=1 parallel.strategy=fsdp parallel.bucket_mb=25 \
	parallel.sequence_parallel=true "${latent[@]}"
train 4 parallel.expert=4 model.first_dense_layers=1 model.qk_norm=full parallel.strategy=zero2
train 2 parallel.expert=2 model.parallel_residual=true model.first_dense_layers=1 train.recompute=full
train 4 parallel.expert=4 parallel.tensor=2 parallel.sequence_parallel=true model.parallel_residual=true \
	parallel.strategy=zero1
train 2 parallel.strategy=fsdp parallel.bucket_mb=25 model.first_dense_layers=1 model.branch_norm=reordered
hybrid=(parallel.strategy=hsdp parallel.bucket_mb=25 parallel.shard=2)
train 4 "${hybrid[@]}" parallel.expert=2 # of a shard group one rank has an expert
train 8 "${hybrid[@]}" parallel.expert=2 parallel.shard=4 parallel.overlap=false
train 8 "${hybrid[@]}" parallel.expert=2 parallel.tensor=2 parallel.sequence_parallel=true
train 8 "${hybrid[@]}" parallel.expert=2 parallel.pipeline=2 train.global_batch=16
train 8 "${hybrid[@]}" parallel.expert=4 parallel.context=2
for strategy in zero1 zero2; do # in groups of replicas
	train 4 parallel.strategy=$strategy parallel.shard=2 parallel.expert=2
	train 8 parallel.strategy=$strategy parallel.replicate=2 parallel.expert=2 parallel.context=2
done
train 8 parallel.strategy=zero1 parallel.replicate=2 parallel.expert=2 parallel.pipeline=2 train.global_batch=16
sp=(parallel.tensor=2 parallel.sequence_parallel=true)
train 4 parallel.expert_tensor=2
train 4 "${sp[@]}" parallel.expert=2 parallel.expert_tensor=2
train 4 "${sp[@]}" parallel.expert_tensor=4 parallel.strategy=zero1 model.mlp=gelu
train 8 "${sp[@]}" parallel.expert=2 parallel.expert_tensor=2 model.experts_per_token=1 model.capacity_factor=8
train 8 "${hybrid[@]}" parallel.shard=4 parallel.expert=2 parallel.expert_tensor=2
train 8 parallel.expert=2 parallel.expert_tensor=2 parallel.pipeline=2 train.global_batch=16 train.recompute=full
train 8 parallel.expert=2 parallel.expert_tensor=2 parallel.context=2 parallel.strategy=zero2
train 8 parallel.expert=2 parallel.expert_tensor=2 parallel.pipeline=2 model.layers=4 train.global_batch=16 \
	parallel.schedule=interleaved parallel.virtual_stages=2 parallel.expert_overlap=true
train 2 parallel.strategy=fsdp parallel.bucket_mb=25 parallel.expert=2 train.freeze=mlp
train 2 parallel.strategy=fsdp parallel.bucket_mb=25 train.freeze=attention
train 2 parallel.expert=2 train.lora_rank=4 train.lora_targets=attention
train 1 train.lora_rank=4 model.experts_per_token=8 model.capacity_factor=1 train.fused=false
train 2 train.lora_rank=4 parallel.expert=2 train.expert_gates=activation model.moe_latent=24
train 2 train.lora_rank=4 parallel.expert=2 parallel.strategy=fsdp parallel.bucket_mb=25
train 4 train.lora_rank=4 parallel.expert=2 parallel.tensor=2 parallel.sequence_parallel=true parallel.strategy=zero1
train 2 parallel.expert=2 train.optimizer=muon
train 2 parallel.expert=2 train.optimizer=adafactor
train 4 "${sp[@]}" parallel.expert=2 parallel.strategy=zero1 train.optimizer=adafactor
train 2 parallel.expert=2 "${again[@]}=moe,layernorm"
train 2 parallel.expert=2 "${again[@]}=moe_act,shared_experts,core_attn,mlp" model.first_dense_layers=1 \
	train.fused=false
# gates that travel beside their tokens, and tokens made narrow for their experts
for early in train.expert_gates=activation model.moe_latent=24 "train.expert_gates=activation model.moe_latent=24"; do
	read -r -a way <<<"$early"
	train 1 "${way[@]}" model.experts_per_token=8 model.capacity_factor=1
	train 1 "${way[@]}" model.experts_per_token=8 model.capacity_factor=1 train.recompute=full \
		model.shared_experts=0
	train 2 "${way[@]}" parallel.expert=2 train.recompute=full parallel.strategy=zero1
	train 2 "${way[@]}" parallel.expert=2 "${again[@]}=moe_act,layernorm" train.fused=false
	train 2 "${way[@]}" parallel.expert=2 "${again[@]}=moe" model.mlp=squared_relu
	train 4 "${way[@]}" "${sp[@]}" parallel.expert=2 parallel.expert_tensor=2
	train 4 "${way[@]}" parallel.strategy=fsdp parallel.bucket_mb=25 parallel.expert=2 train.offload=activations \
		model.layers=4
	train 4 "${way[@]}" parallel.expert=4 model.capacity_factor=0.5 model.branch_norm=sandwich
	train 4 "${way[@]}" parallel.schedule=interleaved parallel.virtual_stages=2 parallel.expert_overlap=true \
		parallel.expert=2 parallel.pipeline=2 model.layers=4
done
# drops what the single rank drops: each micro-batch is routed by itself
train 4 parallel.expert=4 model.capacity_factor=0.5
train 4 parallel.expert=2 parallel.pipeline=2 train.recompute=full
train 4 parallel.expert=2 parallel.pipeline=2 parallel.schedule=zero_bubble
train 8 parallel.expert=4 parallel.pipeline=2 parallel.schedule=interleaved parallel.virtual_stages=2 model.layers=4 \
	parallel.strategy=zero1
# exchanges behind another micro-batch's compute
overlap=(parallel.schedule=interleaved parallel.virtual_stages=2 parallel.expert_overlap=true)
train 4 "${overlap[@]}" parallel.expert=2 parallel.pipeline=2 model.layers=4
train 4 "${overlap[@]}" parallel.expert=2 parallel.pipeline=2 model.layers=4 train.global_batch=4
for strategy in ddp zero1; do
	train 2 parallel.strategy=$strategy parallel.expert=2 parallel.expert_overlap=true
	train 2 parallel.strategy=$strategy parallel.expert=2 parallel.expert_overlap=true train.global_batch=4
	train 4 parallel.strategy=$strategy parallel.expert=2 parallel.expert_overlap=true train.recompute=full
done
train 4 parallel.schedule=dualpipev parallel.expert_overlap=true parallel.expert=2 parallel.pipeline=2 model.layers=8 \
	parallel.strategy=zero1 train.global_batch=16
for reshard in true false; do
	train 4 "${units[@]}" parallel.schedule=dualpipev parallel.expert_overlap=true parallel.expert=2 \
		model.layers=8 parallel.strategy=fsdp train.global_batch=16 parallel.reshard_after_forward=$reshard
done
train 4 "${units[@]}" "${overlap[@]}" parallel.strategy=fsdp parallel.expert=2 train.global_batch=8
train 8 "${units[@]}" "${overlap[@]}" "${hybrid[@]}" parallel.expert=2 train.global_batch=16 train.recompute=full
train 8 "${overlap[@]}" parallel.expert=4 parallel.pipeline=2 model.layers=5 train.recompute=full \
	parallel.strategy=zero1 \
	parallel.tensor=2 parallel.sequence_parallel=true model.first_dense_layers=1 train.global_batch=16
train 4 "${overlap[@]}" parallel.pipeline=4 model.layers=8 train.fused=false
train 4 parallel.expert=4 model.post_norm=true model.final_norm=false model.norm=layernorm model.bias=true \
	model.mlp=gelu

for ranks in $(printf '%s\n' "${!counts[@]}" | sort -n); do
	run_cases "$ranks"
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
