#include "sim/levers.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define N(a) (sizeof(a) / sizeof(a)[0])
#define FOR(symptom) (1u << (symptom))

/* ---- writing a variant ---- */

static bool set(struct advice_row *out, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Adds a text; true, so that a variant can end with it. */
static bool set(struct advice_row *out, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(out->set[out->n_sets++], ADVICE_TEXT, fmt, ap);
	va_end(ap);
	return true;
}

/* One variant, where it applies. */
static bool once(bool applies, int i, struct advice_row *out, const char *text)
{
	return applies && i == 0 && set(out, "%s", text);
}

static bool on_gpu(const struct lever_case *k)
{
	return !k->m->device.is_host;
}

static bool has(const struct lever_case *k, enum dtype t)
{
	return on_gpu(k) && k->m->device.matrix_flop_per_s[t] > 0;
}

static int64_t round_up(int64_t x, int64_t to)
{
	return (x + to - 1) / to * to;
}

/* A micro-batch of another size takes the loader as much longer or shorter, and so do bytes that a user gives. */
static bool set_micro_batch(const struct lever_case *k, struct advice_row *out, int64_t size)
{
	const struct config *c = k->c;
	const double times = (double)size / (double)c->train.micro_batch;
	if (c->data.load_time_s > 0)
		set(out, "data.load_time=%.12gs", c->data.load_time_s * times);
	if (c->data.bytes != 8 * (uint64_t)(c->train.micro_batch * c->model.seq_len / c->parallel.context))
		set(out, "data.bytes=%.0f", (double)c->data.bytes * times);
	return set(out, "train.micro_batch=%" PRId64, size);
}

/* ---- formats and shapes ---- */

static bool tf32(const struct lever_case *k, int i, struct advice_row *out)
{
	return once(k->c->train.dtype == DT_FP32 && has(k, DT_TF32), i, out, "train.dtype=tf32");
}

static bool half(const struct lever_case *k, int i, struct advice_row *out)
{
	const bool wide = k->c->train.dtype == DT_FP32 || k->c->train.dtype == DT_TF32;
	if (has(k, DT_BF16))
		return once(wide, i, out, "train.dtype=bf16");
	return once(wide && has(k, DT_FP16), i, out, "train.dtype=fp16");
}

static bool narrow(const struct lever_case *k, int i, struct advice_row *out)
{
	static const enum dtype formats[] = {DT_FP8, DT_MXFP8, DT_NVFP4};
	const bool half_now = k->c->train.dtype == DT_FP16 || k->c->train.dtype == DT_BF16;
	for (size_t f = 0, at = 0; f < N(formats) && half_now; f++)
		if (has(k, formats[f]) && (int)at++ == i)
			return set(out, "train.dtype=%s", dtype_name(formats[f]));
	return false;
}

static bool narrow_weights(const struct lever_case *k, int i, struct advice_row *out)
{
	const struct train *t = &k->c->train;
	const enum dtype stored = dtype_stored(t->dtype);
	if (!on_gpu(k) || stored == DT_FP32 || t->param_dtype != DT_FP32 || i > 1)
		return false;
	set(out, "train.param_dtype=%s", dtype_name(stored));
	set(out, "train.master_weights=true");
	return i == 0 || (set(out, "train.grad_dtype=%s", dtype_name(stored)) && set(out, "train.reduce_dtype=%s", dtype_name(stored)));
}

/* 16 bytes of an operand's rows: 8 values of 2 bytes, 16 of fp8 (NVIDIA, "Matrix Multiplication Background", DU-09799); 128 is the padding that frameworks offer (Megatron's make-vocab-size-divisible-by). */
static bool padded_vocabulary(const struct lever_case *k, int i, struct advice_row *out)
{
	return once(model_padded_vocab(&k->c->model, k->c->parallel.tensor) % 128 != 0, i, out, "model.vocab_padding=128");
}

static bool head_dimension(const struct lever_case *k, int i, struct advice_row *out)
{
	const struct model *m = &k->c->model;
	return on_gpu(k) && i == 0 && m->head_dim % 8 != 0 && m->head_dim * m->heads == m->hidden && set(out, "model.hidden=%" PRId64, round_up(m->head_dim, 8) * m->heads);
}

static bool mlp_width(const struct lever_case *k, int i, struct advice_row *out)
{
	return on_gpu(k) && i == 0 && k->c->model.ffn_hidden % 8 != 0 && set(out, "model.ffn_hidden=%" PRId64, round_up(k->c->model.ffn_hidden, 64));
}

/* ---- feeding the device ---- */

static bool loads(const struct lever_case *k)
{
	return k->c->data.load_time_s > 0;
}

static bool more_workers(const struct lever_case *k, int i, struct advice_row *out)
{
	static const int times[] = {2, 4, 8, 16};
	const int64_t now = k->c->data.workers > 0 ? k->c->data.workers : 1;
	if (!loads(k) || i >= (int)N(times))
		return false;
	if (k->c->data.prefetch == 0)
		set(out, "data.prefetch=2");
	return set(out, "data.workers=%" PRId64, now * times[i]);
}

static bool load_ahead(const struct lever_case *k, int i, struct advice_row *out)
{
	if (!loads(k) || i > 0 || (k->c->data.prefetch > 0 && k->c->data.workers > 0))
		return false;
	if (k->c->data.workers == 0)
		set(out, "data.workers=1");
	return set(out, "data.prefetch=%" PRId64, k->c->data.prefetch > 0 ? k->c->data.prefetch : 2);
}

static bool pinned(const struct lever_case *k, int i, struct advice_row *out)
{
	return once(!k->c->data.pin_memory, i, out, "data.pin_memory=true");
}

static bool no_sync(const struct lever_case *k, int i, struct advice_row *out)
{
	return once(k->c->train.sync_every > 0, i, out, "train.sync_every=0");
}

/* ---- fewer, larger kernels ---- */

static bool fused(const struct lever_case *k, int i, struct advice_row *out)
{
	return once(!k->c->train.fused, i, out, "train.fused=true");
}

/* A captured step holds no work of the host. */
static bool graph(const struct lever_case *k, int i, struct advice_row *out)
{
	const struct config *c = k->c;
	return once(on_gpu(k) && !c->train.cuda_graph && !loads(k) && c->data.pin_memory && c->train.sync_every == 0 && c->parallel.pipeline == 1, i, out, "train.cuda_graph=true");
}

static bool compiled(const struct lever_case *k, int i, struct advice_row *out)
{
	static const char eager[] = "-eager";
	const char *name = k->c->train.stack;
	const size_t n = strlen(name), tail = strlen(eager);
	return on_gpu(k) && i == 0 && n > tail && strcmp(name + n - tail, eager) == 0 && set(out, "train.stack=%.*s", (int)(n - tail), name);
}

static bool flash(const struct lever_case *k, int i, struct advice_row *out)
{
	return once(k->c->train.attention == ATT_NAIVE, i, out, "train.attention=flash");
}

/* Kernels that the catalogue knows on this GPU. */
static bool newer_kernel(const struct lever_case *k, int i, struct advice_row *out)
{
	for (int g = (int)k->c->stack.attention_kernel + 1, at = 0; g < KERNEL_COUNT && on_gpu(k) && k->c->train.attention == ATT_FLASH; g++)
		if (k->m->device.attention_share[g][0] > 0 && at++ == i)
			return set(out, "train.attention_kernel=%s", attention_kernel_name((enum attention_kernel)g));
	return false;
}

static bool larger_micro_batch(const struct lever_case *k, int i, struct advice_row *out)
{
	return i < 5 && (k->c->micro_batches >> (i + 1)) >= 1 && set_micro_batch(k, out, k->c->train.micro_batch << (i + 1));
}

/* ---- what memory is spent on ---- */

static bool set_recompute(const struct lever_case *k, struct advice_row *out, const char *word)
{
	if (k->layers_given)
		set(out, "train.recompute_layers=auto");
	return set(out, "train.recompute=%s", word);
}

static bool less_recompute(const struct lever_case *k, int i, struct advice_row *out)
{
	const struct train *t = &k->c->train;
	const bool scores = t->recompute == REC_FULL && t->attention == ATT_NAIVE; /* which selective recomputes; flash stores none */
	if (t->recompute == REC_NONE || i > 4)
		return false;
	if (i < 3) { /* of fewer layers */
		const int64_t layers = t->recompute_layers * (3 - i) / 4;
		return set(out, "train.recompute_layers=%" PRId64, layers);
	}
	return set_recompute(k, out, i == 3 && scores ? "selective" : "none");
}

static bool recomputes_all(const struct config *c)
{
	return c->train.recompute == REC_FULL && c->train.recompute_layers == c->model.layers;
}

static bool more_recompute(const struct lever_case *k, int i, struct advice_row *out)
{
	static const char *const words[] = {"selective", "full"};
	if (k->fits || i > 1 || recomputes_all(k->c))
		return false;
	return set_recompute(k, out, words[i]);
}

static bool smaller_to_fit(const struct lever_case *k, int i, struct advice_row *out)
{
	return !k->fits && i < 5 && k->c->train.micro_batch >> (i + 1) >= 1 && set_micro_batch(k, out, k->c->train.micro_batch >> (i + 1));
}

static bool moments_in_8_bits(const struct lever_case *k, int i, struct advice_row *out)
{
	return once(on_gpu(k) && k->c->train.optimizer_bits == 32, i, out, "train.optimizer_bits=8");
}

/* Where one change is not enough: what two of weights, activations and micro-batches make together, then all three; of those that the plan does not have yet. */
static bool several_to_fit(const struct lever_case *k, int i, struct advice_row *out)
{
	enum { CUT = 1, SMALL = 2, AGAIN = 4 };
	static const unsigned together[] = {CUT | SMALL, CUT | AGAIN, SMALL | AGAIN, CUT | SMALL | AGAIN};
	const char *cut = k->c->parallel.pipeline > 1 ? "zero1" : "fsdp";
	const unsigned open = (strcmp(strategy_name(k->c->parallel.strategy), cut) != 0 ? CUT : 0) | (k->c->train.micro_batch > 1 ? SMALL : 0) | (recomputes_all(k->c) ? 0 : AGAIN);
	for (size_t n = 0; n < N(together) && !k->fits; n++) {
		if ((together[n] & open) != together[n] || i-- > 0)
			continue;
		if (together[n] & CUT)
			set(out, "parallel.strategy=%s", cut);
		if (together[n] & SMALL)
			set_micro_batch(k, out, 1);
		return !(together[n] & AGAIN) || set_recompute(k, out, "full");
	}
	return false;
}

/* ---- communication ---- */

static bool overlap(const struct lever_case *k, int i, struct advice_row *out)
{
	return once(!k->c->parallel.overlap && k->c->parallel.data > 1, i, out, "parallel.overlap=true");
}

static bool bucket(const struct lever_case *k, int i, struct advice_row *out)
{
	static const int sizes[] = {25, 5, 10, 50, 100, 200, 400};
	return k->c->parallel.data > 1 && i < (int)N(sizes) && set(out, "parallel.bucket_mb=%d", sizes[i]);
}

static bool deeper_prefetch(const struct lever_case *k, int i, struct advice_row *out)
{
	return k->c->parallel.data > 1 && i < 2 && k->c->parallel.prefetch < i + 1 && set(out, "parallel.prefetch=%d", i + 1);
}

static bool keep_weights(const struct lever_case *k, int i, struct advice_row *out)
{
	return once(k->c->parallel.reshard_after_forward && k->c->parallel.data > 1, i, out, "parallel.reshard_after_forward=false");
}

static bool strategy(const struct lever_case *k, int i, struct advice_row *out)
{
	static const enum strategy all[] = {STRAT_DDP, STRAT_ZERO1, STRAT_ZERO2, STRAT_FSDP};
	if (k->c->parallel.data * k->c->parallel.context < 2 || i >= (int)N(all))
		return false;
	return set(out, "parallel.strategy=%s", strategy_name(all[i]));
}

static bool hybrid(const struct lever_case *k, int i, struct advice_row *out)
{
	return once(k->c->parallel.strategy == STRAT_FSDP && k->m->nodes > 1, i, out, "parallel.strategy=hsdp");
}

static bool reduce_in_16_bits(const struct lever_case *k, int i, struct advice_row *out)
{
	const struct train *t = &k->c->train;
	const enum dtype stored = dtype_stored(t->dtype);
	return on_gpu(k) && i == 0 && stored != DT_FP32 && t->reduce_dtype == DT_FP32 && k->c->parallel.data > 1 && set(out, "train.reduce_dtype=%s", dtype_name(stored));
}

static bool compression(const struct lever_case *k, int i, struct advice_row *out)
{
	const bool wide = k->c->train.reduce_dtype == DT_FP32 && k->c->train.grad_compression == COMP_NONE;
	return once(on_gpu(k) && wide && k->c->parallel.data > 1, i, out, "train.grad_compression=bf16");
}

static bool sequence_parallel(const struct lever_case *k, int i, struct advice_row *out)
{
	return once(k->c->parallel.tensor > 1 && !k->c->parallel.sequence_parallel, i, out, "parallel.sequence_parallel=true");
}

static bool tensor_overlap(const struct lever_case *k, int i, struct advice_row *out)
{
	if (!on_gpu(k) || k->m->profile || k->c->parallel.tensor < 2 || k->c->parallel.tensor_overlap || i > 0)
		return false;
	if (!k->c->parallel.sequence_parallel)
		set(out, "parallel.sequence_parallel=true");
	return set(out, "parallel.tensor_overlap=true");
}

static bool other_context(const struct lever_case *k, int i, struct advice_row *out)
{
	return once(k->c->parallel.context > 1, i, out, k->c->parallel.context_kind == CTX_RING ? "parallel.context_kind=all_gather" : "parallel.context_kind=ring");
}

static bool free_choice(const struct lever_case *k, int i, struct advice_row *out)
{
	if (i > 0 || (k->c->algorithm == ALGO_AUTO && k->c->protocol == PROTO_AUTO))
		return false;
	set(out, "collectives.algorithm=auto");
	return set(out, "collectives.protocol=auto");
}

/* Of orders in which data or the pipeline is the outermost. */
static bool other_order(const struct lever_case *k, int i, struct advice_row *out)
{
	static const char *const orders[] = {"tp-cp-ep-dp-pp", "tp-cp-ep-pp-dp", "tp-ep-pp-cp-dp", "tp-pp-cp-ep-dp"};
	return k->mesh_is_free && k->m->nodes > 1 && i < (int)N(orders) && set(out, "parallel.order=%s", orders[i]);
}

/* ---- the plan's neighbours: one dimension doubled or halved, data takes up the difference ---- */

static void forget_mesh(const struct lever_case *k, struct advice_row *out)
{
	if (k->data_given)
		set(out, "parallel.data=auto");
}

/* Variants 0: twice, 1: half. */
static int64_t neighbour(int64_t size, int i)
{
	return i == 0 ? 2 * size : i == 1 && size % 2 == 0 ? size / 2 : 0;
}

static bool tensor(const struct lever_case *k, int i, struct advice_row *out)
{
	const int64_t size = neighbour(k->c->parallel.tensor, i);
	if (!k->mesh_is_free || size == 0)
		return false;
	forget_mesh(k, out);
	return set(out, "parallel.tensor=%" PRId64, size);
}

static bool context(const struct lever_case *k, int i, struct advice_row *out)
{
	const int64_t size = neighbour(k->c->parallel.context, i);
	if (!k->mesh_is_free || size == 0)
		return false;
	forget_mesh(k, out);
	return set(out, "parallel.context=%" PRId64, size);
}

static bool pipeline(const struct lever_case *k, int i, struct advice_row *out)
{
	const int64_t size = neighbour(k->c->parallel.pipeline, i);
	if (!k->mesh_is_free || size == 0)
		return false;
	forget_mesh(k, out);
	if (k->c->parallel.n_layers_per_stage > 0)
		set(out, "parallel.layers_per_stage=[]");
	if (size == 1 && k->c->parallel.virtual_stages > 1) {
		set(out, "parallel.schedule=1f1b");
		set(out, "parallel.virtual_stages=1");
	}
	return set(out, "parallel.pipeline=%" PRId64, size);
}

/* ---- the pipeline ---- */

static bool smaller_micro_batch(const struct lever_case *k, int i, struct advice_row *out)
{
	return k->c->parallel.pipeline > 1 && i < 3 && k->c->train.micro_batch >> (i + 1) >= 1 && set_micro_batch(k, out, k->c->train.micro_batch >> (i + 1));
}

static bool interleaved(const struct lever_case *k, int i, struct advice_row *out)
{
	static const int chunks[] = {2, 4, 8};
	if (k->c->parallel.pipeline < 2 || i >= (int)N(chunks))
		return false;
	if (k->c->parallel.n_layers_per_stage > 0)
		set(out, "parallel.layers_per_stage=[]");
	set(out, "parallel.schedule=interleaved");
	return set(out, "parallel.virtual_stages=%d", chunks[i]);
}

static bool other_schedule(const struct lever_case *k, int i, struct advice_row *out)
{
	static const char *const words[] = {"1f1b", "zero_bubble"};
	if (k->c->parallel.pipeline < 2 || k->c->parallel.virtual_stages > 1 || i >= (int)N(words))
		return false;
	return set(out, "parallel.schedule=%s", words[i]);
}

static bool even_stages(const struct lever_case *k, int i, struct advice_row *out)
{
	return once(k->c->parallel.n_layers_per_stage > 0, i, out, "parallel.layers_per_stage=[]");
}

/* ---- the table ---- */

#define MATRIX (FOR(SYMPTOM_DTYPE) | FOR(SYMPTOM_COMPUTE))
#define SMALL (FOR(SYMPTOM_LAUNCH) | FOR(SYMPTOM_COMPUTE))
#define COMM FOR(SYMPTOM_COMM)

const struct lever levers[] = {
	{"16-bit products", WORK_DTYPE, MATRIX | FOR(SYMPTOM_MEMORY), half},
	{"tf32 products", WORK_DTYPE, MATRIX, tf32},
	{"narrower products", WORK_DTYPE, MATRIX, narrow},
	{"a vocabulary of whole 128", WORK_DTYPE, MATRIX, padded_vocabulary},
	{"a head dimension of whole 8", WORK_DTYPE, MATRIX, head_dimension},
	{"an MLP width of whole 64", WORK_DTYPE, MATRIX, mlp_width},
	{"16-bit weights and a master copy", WORK_DTYPE, FOR(SYMPTOM_MEMORY) | LEVER_FITS, narrow_weights},
	{"more loader workers", WORK_FEED, FOR(SYMPTOM_DATA), more_workers},
	{"batches loaded ahead", WORK_FEED, FOR(SYMPTOM_DATA), load_ahead},
	{"pinned memory", WORK_FEED, FOR(SYMPTOM_DATA), pinned},
	{"no waiting for the device", WORK_FEED, FOR(SYMPTOM_SYNC) | FOR(SYMPTOM_DATA), no_sync},
	{"flash attention", WORK_FUSE, FOR(SYMPTOM_MEMORY) | FOR(SYMPTOM_COMPUTE) | LEVER_FITS, flash},
	{"fused kernels", WORK_FUSE, FOR(SYMPTOM_LAUNCH) | FOR(SYMPTOM_MEMORY), fused},
	{"the step as one CUDA graph", WORK_FUSE, FOR(SYMPTOM_LAUNCH), graph},
	{"the compiled stack", WORK_FUSE, FOR(SYMPTOM_LAUNCH) | FOR(SYMPTOM_MEMORY), compiled},
	{"a newer attention kernel", WORK_FUSE, FOR(SYMPTOM_COMPUTE), newer_kernel},
	{"larger micro-batches", WORK_FUSE, SMALL | COMM | FOR(SYMPTOM_SYNC), larger_micro_batch},
	{"less recomputation", WORK_FIT, FOR(SYMPTOM_COMPUTE), less_recompute},
	{"recomputation", WORK_FIT, LEVER_FITS, more_recompute},
	{"smaller micro-batches", WORK_FIT, LEVER_FITS, smaller_to_fit},
	{"8-bit moments", WORK_FIT, FOR(SYMPTOM_MEMORY) | LEVER_FITS, moments_in_8_bits},
	{"several at once", WORK_FIT, LEVER_FITS, several_to_fit},
	{"overlapped communication", WORK_COMMUNICATE, COMM, overlap},
	{"another bucket size", WORK_COMMUNICATE, COMM, bucket},
	{"prefetched weights", WORK_COMMUNICATE, COMM, deeper_prefetch},
	{"weights kept after forward", WORK_COMMUNICATE, COMM, keep_weights},
	{"weights cut inside a node alone", WORK_COMMUNICATE, COMM, hybrid},
	{"another data-parallel strategy", WORK_COMMUNICATE, COMM | FOR(SYMPTOM_MEMORY) | LEVER_FITS, strategy},
	{"16-bit reductions", WORK_COMMUNICATE, COMM, reduce_in_16_bits},
	{"compressed gradients", WORK_COMMUNICATE, COMM, compression},
	{"sequence parallelism", WORK_COMMUNICATE, COMM | FOR(SYMPTOM_MEMORY) | LEVER_FITS, sequence_parallel},
	{"tensor collectives beside products", WORK_COMMUNICATE, COMM, tensor_overlap},
	{"the other context exchange", WORK_COMMUNICATE, COMM, other_context},
	{"NCCL's own choice", WORK_COMMUNICATE, COMM, free_choice},
	{"another order of dimensions", WORK_COMMUNICATE, COMM, other_order},
	{"another tensor group", WORK_COMMUNICATE, COMM | FOR(SYMPTOM_BUBBLE) | LEVER_FITS, tensor},
	{"another context group", WORK_COMMUNICATE, COMM | LEVER_FITS, context},
	{"more micro-batches", WORK_PIPELINE, FOR(SYMPTOM_BUBBLE), smaller_micro_batch},
	{"interleaved stages", WORK_PIPELINE, FOR(SYMPTOM_BUBBLE), interleaved},
	{"another schedule", WORK_PIPELINE, FOR(SYMPTOM_BUBBLE), other_schedule},
	{"even stages", WORK_PIPELINE, FOR(SYMPTOM_BUBBLE), even_stages},
	{"another number of stages", WORK_PIPELINE, FOR(SYMPTOM_BUBBLE) | COMM | LEVER_FITS, pipeline},
};
const size_t n_levers = N(levers);
