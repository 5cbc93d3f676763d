#include "sim/advise/levers.h"

#include "base/array.h"
#include "step/inputs.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

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

static bool recomputes_all(const struct config *c)
{
	return c->train.recompute == REC_FULL && c->train.recompute_layers == c->model.layers;
}

/* A captured step holds no work of the host. */
static bool is_capturable(const struct config *c)
{
	return !c->train.cuda_graph && c->data.load_time_s <= 0 && c->data.pin_memory && c->train.sync_every == 0 &&
	       c->parallel.pipeline == 1;
}

static bool on_gpu(const struct lever_case *k) { return !k->m->device.is_host; }

static bool has(const struct lever_case *k, enum dtype t) { return on_gpu(k) && k->m->device.matrix_flop_per_s[t] > 0; }

static int64_t round_up(int64_t x, int64_t to) { return (x + to - 1) / to * to; }

/* A micro-batch of another size takes the loader as much longer or shorter, and so do bytes that a user gives. */
static bool set_micro_batch(const struct lever_case *k, struct advice_row *out, int64_t size)
{
	const struct config *c = k->c;
	const double times = (double)size / (double)c->train.micro_batch;
	if (c->data.load_time_s > 0)
		set(out, "data.load_time=%.12gs", c->data.load_time_s * times);
	if (c->data.bytes != inputs_B(c, c->train.micro_batch))
		set(out, "data.bytes=%.0f", (double)c->data.bytes * times);
	return set(out, "train.micro_batch=%" PRId64, size);
}

/* ---- formats and shapes ---- */

static bool half(const struct lever_case *k, int i, struct advice_row *out)
{
	const enum dtype half_type = has(k, DT_BF16) ? DT_BF16 : DT_FP16;
	return i == 0 && has(k, half_type) && set(out, "train.dtype=%s", dtype_name(half_type));
}

static bool narrow(const struct lever_case *k, int i, struct advice_row *out)
{
	static const enum dtype formats[] = {DT_FP8, DT_MXFP8, DT_NVFP4};
	for (size_t f = 0; f < COUNT(formats); f++)
		if (has(k, formats[f]) && i-- == 0)
			return set(out, "train.dtype=%s", dtype_name(formats[f]));
	return false;
}

static bool narrow_weights(const struct lever_case *k, int i, struct advice_row *out)
{
	const char *stored = dtype_name(dtype_stored(k->c->train.dtype));
	if (k->c->train.param_dtype != DT_FP32 || i > 1)
		return false;
	set(out, "train.param_dtype=%s", stored);
	set(out, "train.master_weights=true");
	return i == 0 || (set(out, "train.grad_dtype=%s", stored) && set(out, "train.reduce_dtype=%s", stored));
}

/* 16 bytes of an operand's rows: 8 values of 2 bytes, 16 of fp8 (NVIDIA, "Matrix Multiplication Background",
 * DU-09799). */
static bool head_dimension(const struct lever_case *k, int i, struct advice_row *out)
{
	const struct model *m = &k->c->model;
	return i == 0 && m->head_dim % 8 != 0 && m->head_dim * m->heads == m->hidden &&
	       set(out, "model.hidden=%" PRId64, round_up(m->head_dim, 8) * m->heads);
}

static bool mlp_width(const struct lever_case *k, int i, struct advice_row *out)
{
	return i == 0 && k->c->model.ffn_hidden % 8 != 0 &&
	       set(out, "model.ffn_hidden=%" PRId64, round_up(k->c->model.ffn_hidden, 64));
}

/* ---- feeding the device ---- */

static bool more_workers(const struct lever_case *k, int i, struct advice_row *out)
{
	static const int times[] = {2, 4, 8, 16};
	const int64_t now = k->c->data.workers > 0 ? k->c->data.workers : 1;
	if (i >= (int)COUNT(times))
		return false;
	if (k->c->data.prefetch == 0)
		set(out, "data.prefetch=2");
	return set(out, "data.workers=%" PRId64, now * times[i]);
}

static bool load_ahead(const struct lever_case *k, int i, struct advice_row *out)
{
	if (i > 0 || (k->c->data.prefetch > 0 && k->c->data.workers > 0))
		return false;
	if (k->c->data.workers == 0)
		set(out, "data.workers=1");
	return set(out, "data.prefetch=%" PRId64, k->c->data.prefetch > 0 ? k->c->data.prefetch : 2);
}

/* ---- fewer, larger kernels ---- */

static bool compiled(const struct lever_case *k, int i, struct advice_row *out)
{
	const char *twin = k->c->stack.compiled_twin;
	return i == 0 && twin[0] != '\0' && set(out, "train.stack=%s", twin);
}

/* Kernels that the catalogue knows on this GPU. */
static bool newer_kernel(const struct lever_case *k, int i, struct advice_row *out)
{
	const int now = (int)attention_kernel_on(&k->c->stack, k->m->device.compute_capability);
	for (int g = now == KERNEL_MASKED ? KERNEL_FA2 : now + 1; g < KERNEL_MASKED; g++)
		if (k->m->device.attention_share[g][0] > 0 && i-- == 0)
			return set(out, "train.attention_kernel=%s", attention_kernel_name((enum attention_kernel)g));
	return false;
}

static bool larger_micro_batch(const struct lever_case *k, int i, struct advice_row *out)
{
	return i < 5 && (k->c->micro_batches >> (i + 1)) >= 1 &&
	       set_micro_batch(k, out, k->c->train.micro_batch << (i + 1));
}

/* A job that does not fit may have to go further down. */
static bool smaller_micro_batch(const struct lever_case *k, int i, struct advice_row *out)
{
	return i < (k->fits ? 3 : 5) && k->c->train.micro_batch >> (i + 1) >= 1 &&
	       set_micro_batch(k, out, k->c->train.micro_batch >> (i + 1));
}

/* ---- what memory is spent on ---- */

static bool set_recompute(struct advice_row *out, const char *word)
{
	return set(out, "train.recompute_layers=auto") && set(out, "train.recompute=%s", word);
}

static bool less_recompute(const struct lever_case *k, int i, struct advice_row *out)
{
	const struct train *t = &k->c->train;
	const bool scores = t->recompute == REC_FULL &&
	                    t->attention == ATT_NAIVE; /* which selective recomputes; flash stores none */
	if (i > 4)
		return false;
	if (i < 3) /* of fewer layers */
		return set(out, "train.recompute_layers=%" PRId64, t->recompute_layers * (3 - i) / 4);
	return set_recompute(out, i == 3 && scores ? "selective" : "none");
}

/* Combines changes where one is not enough: two of sharded weights, smaller micro-batches and recomputation, then all
 * three. Changes that the plan has already are left out. */
static bool several_to_fit(const struct lever_case *k, int i, struct advice_row *out)
{
	enum { CUT = 1, SMALL = 2, AGAIN = 4 };
	static const unsigned together[] = {CUT | SMALL, CUT | AGAIN, SMALL | AGAIN, CUT | SMALL | AGAIN};
	const enum strategy cut = strategy_most(STRATEGY_CUTS_STATES,
		STRATEGY_REPLICAS | (k->c->parallel.pipeline > 1 ? STRATEGY_CUTS_GRADIENTS : 0));
	const unsigned open = (k->c->parallel.strategy != cut ? CUT : 0) | (k->c->train.micro_batch > 1 ? SMALL : 0) |
	                      (recomputes_all(k->c) ? 0 : AGAIN);
	for (size_t n = 0; n < COUNT(together); n++) {
		if ((together[n] & open) != together[n] || i-- > 0)
			continue;
		if (together[n] & CUT)
			set(out, "parallel.strategy=%s", strategy_name(cut));
		if (together[n] & SMALL)
			set_micro_batch(k, out, 1);
		return !(together[n] & AGAIN) || set_recompute(out, "full");
	}
	return false;
}

/* ---- communication ---- */

static bool strategy(const struct lever_case *k, int i, struct advice_row *out)
{
	for (int s = 0; s < STRAT_COUNT && k->c->parallel.data * k->c->parallel.context > 1; s++)
		if (strategy_fits((enum strategy)s, STRATEGY_REDUCES, STRATEGY_REPLICAS) && i-- == 0)
			return set(out, "parallel.strategy=%s", strategy_name((enum strategy)s));
	return false;
}

static bool hybrid(const struct lever_case *k, int i, struct advice_row *out)
{
	const enum strategy now = k->c->parallel.strategy,
			    replicated = strategy_most(strategy_traits[now].traits | STRATEGY_REPLICAS, 0);
	return i == 0 && strategy_fits(now, STRATEGY_CUTS_STATES, STRATEGY_REPLICAS) && replicated != STRAT_COUNT &&
	       set(out, "parallel.strategy=%s", strategy_name(replicated));
}

static bool reduce_in_16_bits(const struct lever_case *k, int i, struct advice_row *out)
{
	return i == 0 && set(out, "train.reduce_dtype=%s", dtype_name(dtype_stored(k->c->train.dtype)));
}

/* ---- the plan's neighbours: one dimension doubled or halved, data takes up the difference ---- */

/* Returns twice the size for variant 0, half for variant 1, else 0. Data gives up its own size for it. */
static int64_t neighbour(int64_t size, int i, struct advice_row *out)
{
	const int64_t to = i == 0 ? 2 * size : i == 1 && size % 2 == 0 ? size / 2 : 0;
	return to > 0 && set(out, "parallel.data=auto") ? to : 0;
}

static bool tensor(const struct lever_case *k, int i, struct advice_row *out)
{
	const int64_t size = neighbour(k->c->parallel.tensor, i, out);
	return size > 0 && set(out, "parallel.tensor=%" PRId64, size);
}

static bool context(const struct lever_case *k, int i, struct advice_row *out)
{
	const int64_t size = neighbour(k->c->parallel.context, i, out);
	return size > 0 && set(out, "parallel.context=%" PRId64, size);
}

/* Takes back the layers that the config gives to its first and last stage. */
static void forget_end_stages(const struct parallel *p, struct advice_row *out)
{
	for (int end = 0; end < 2; end++)
		if ((end ? p->last_stage_layers : p->first_stage_layers) != AUTO)
			set(out, "parallel.%s_stage_layers=auto", end ? "last" : "first");
}

static bool even_stages(const struct lever_case *k, int i, struct advice_row *out)
{
	const struct parallel *p = &k->c->parallel;
	if (i > 0)
		return false;
	set(out, "parallel.layers_per_stage=[]");
	forget_end_stages(p, out);
	if (p->count_ends > ENDS_NONE)
		set(out, "parallel.count_ends=none");
	return true;
}

static bool pipeline(const struct lever_case *k, int i, struct advice_row *out)
{
	const struct parallel *p = &k->c->parallel;
	const int64_t size = neighbour(p->pipeline, i, out);
	if (size > 0) {
		set(out, "parallel.layers_per_stage=[]");
		forget_end_stages(p, out);
	}
	if (size == 1 && p->count_ends > ENDS_NONE)
		set(out, "parallel.count_ends=auto");
	if (size == 1 && p->virtual_stages > 1) {
		set(out, "parallel.schedule=1f1b");
		set(out, "parallel.virtual_stages=1");
	}
	return size > 0 && set(out, "parallel.pipeline=%" PRId64, size);
}

/* ---- the pipeline ---- */

static bool other_schedule(const struct lever_case *k, int i, struct advice_row *out)
{
	for (int s = 0; s < SCHED_COUNT && k->c->parallel.virtual_stages == 1; s++)
		if (schedule_traits[s].chunks_most == 1 && !schedule_traits[s].all_in_flight && i-- == 0)
			return set(out, "parallel.schedule=%s", schedule_traits[s].name);
	return false;
}

static bool other_context(const struct lever_case *k, int i, struct advice_row *out)
{
	return i == 0 &&
	       set(out, "parallel.context_kind=%s", k->c->parallel.context_kind == CTX_RING ? "all_gather" : "ring");
}

/* ---- the table ---- */

/* Facts that a lever takes for granted: FACT(name, condition on the case k). A row that names fewer facts ends with
 * ALWAYS.
 */
#define LEVER_FACTS(FACT) \
	FACT(ALWAYS, true) \
	FACT(ON_GPU, on_gpu(k)) \
	FACT(TF32_UNITS, has(k, DT_TF32)) \
	FACT(FP32_PRODUCTS, k->c->train.dtype == DT_FP32) \
	FACT(WIDE_PRODUCTS, k->c->train.dtype == DT_FP32 || k->c->train.dtype == DT_TF32) \
	FACT(HALF_PRODUCTS, k->c->train.dtype == DT_FP16 || k->c->train.dtype == DT_BF16) \
	FACT(NARROW_STORED, dtype_stored(k->c->train.dtype) != DT_FP32) \
	FACT(ODD_VOCABULARY, model_padded_vocab(&k->c->model, k->c->parallel.tensor) % 128 != 0) \
	FACT(LOADS, k->c->data.load_time_s > 0) \
	FACT(CAPTURABLE, is_capturable(k->c)) \
	FACT(FLASH, k->c->train.attention == ATT_FLASH) \
	FACT(TOO_LARGE, !k->fits) \
	FACT(RECOMPUTES, k->c->train.recompute != REC_NONE) \
	FACT(RECOMPUTES_LESS, !recomputes_all(k->c)) \
	FACT(REPLICAS, k->c->parallel.data > 1) \
	FACT(REDUCES_FP32, k->c->train.reduce_dtype == DT_FP32) \
	FACT(NO_PREFETCH, k->c->parallel.prefetch < 1) \
	FACT(UNCOMPRESSED, k->c->train.grad_compression == COMPRESS_NONE) \
	FACT(TENSOR, k->c->parallel.tensor > 1) \
	FACT(UNMEASURED, !k->m->profile) \
	FACT(CONTEXT, k->c->parallel.context > 1) \
	FACT(NODES, k->m->nodes > 1) \
	FACT(MESH, k->mesh_is_free) \
	FACT(STAGES, k->c->parallel.pipeline > 1)

#define FACT_ID(id, condition) id,
enum lever_fact { LEVER_FACTS(FACT_ID) LEVER_FACT_COUNT };

static bool holds(enum lever_fact fact, const struct lever_case *k)
{
#define FACT_CASE(id, condition) \
	case id: return condition;
	switch (fact) {
		LEVER_FACTS(FACT_CASE)
	case LEVER_FACT_COUNT: break;
	}
	return false;
}

/* Sets the texts of lever.set, the last with its value i. */
static bool set_texts(const char *text, int i, struct advice_row *out)
{
	for (const char *end; (end = strchr(text, ';')); text = end + 1)
		set(out, "%.*s", (int)(end - text), text);
	const char *value = strchr(text, '=') + 1;
	const int key = (int)(value - text);
	while (i-- > 0)
		if (!(value = strchr(value, '|')) || !*++value)
			return false;
	return set(out, "%.*s%.*s", key, text, (int)strcspn(value, "|"), value);
}

bool lever_variant(const struct lever *l, const struct lever_case *k, int i, struct advice_row *out)
{
	for (size_t f = 0; f < COUNT(l->when); f++)
		if (!holds((enum lever_fact)l->when[f], k))
			return false;
	return l->set ? set_texts(l->set, i, out) : l->variant(k, i, out);
}

#define MATRIX (FOR(SYMPTOM_DTYPE) | FOR(SYMPTOM_COMPUTE))
#define SMALL (FOR(SYMPTOM_LAUNCH) | FOR(SYMPTOM_COMPUTE))
#define COMM FOR(SYMPTOM_COMM)

/* "a vocabulary padded to 128": the padding that frameworks offer (Megatron's make-vocab-size-divisible-by). "another
 * order of dimensions": data or the pipeline is the outermost one. */
const struct lever levers[] = {
	{"16-bit products", WORK_DTYPE, MATRIX | FOR(SYMPTOM_MEMORY), {WIDE_PRODUCTS}, .variant = half},
	{"tf32 products", WORK_DTYPE, MATRIX, {FP32_PRODUCTS, TF32_UNITS}, .set = "train.dtype=tf32"},
	{"lower-precision products", WORK_DTYPE, MATRIX, {HALF_PRODUCTS}, .variant = narrow},
	{"a vocabulary padded to 128", WORK_DTYPE, MATRIX, {ODD_VOCABULARY}, .set = "model.vocab_padding=128"},
	{"a head_dim that 8 divides", WORK_DTYPE, MATRIX, {ON_GPU}, .variant = head_dimension},
	{"an ffn_hidden that 64 divides", WORK_DTYPE, MATRIX, {ON_GPU}, .variant = mlp_width},
	{"16-bit weights, fp32 master copy", WORK_DTYPE, FOR(SYMPTOM_MEMORY) | LEVER_FITS, {ON_GPU, NARROW_STORED},
		.variant = narrow_weights},
	{"more loader workers", WORK_FEED, FOR(SYMPTOM_DATA), {LOADS}, .variant = more_workers},
	{"batches loaded ahead", WORK_FEED, FOR(SYMPTOM_DATA), {LOADS}, .variant = load_ahead},
	{"pinned memory", WORK_FEED, FOR(SYMPTOM_DATA), .set = "data.pin_memory=true"},
	{"no blocking launches", WORK_FEED, FOR(SYMPTOM_SYNC) | FOR(SYMPTOM_DATA),
		.set = "train.launch_blocking=false"},
	{"experts in grouped products", WORK_FUSE, FOR(SYMPTOM_SYNC) | FOR(SYMPTOM_COMPUTE),
		.set = "train.expert_loop=false"},
	{"no host-device syncs", WORK_FEED, FOR(SYMPTOM_SYNC) | FOR(SYMPTOM_DATA), .set = "train.sync_every=0"},
	{"flash attention", WORK_FUSE, FOR(SYMPTOM_MEMORY) | FOR(SYMPTOM_COMPUTE) | LEVER_FITS,
		.set = "train.attention=flash"},
	{"fused kernels", WORK_FUSE, FOR(SYMPTOM_LAUNCH) | FOR(SYMPTOM_MEMORY), .set = "train.fused=true"},
	{"the step as one CUDA graph", WORK_FUSE, FOR(SYMPTOM_LAUNCH), {ON_GPU, CAPTURABLE},
		.set = "train.cuda_graph=true"},
	{"the compiled stack", WORK_FUSE, FOR(SYMPTOM_LAUNCH) | FOR(SYMPTOM_MEMORY), {ON_GPU}, .variant = compiled},
	{"a newer attention kernel", WORK_FUSE, FOR(SYMPTOM_COMPUTE), {ON_GPU, FLASH}, .variant = newer_kernel},
	{"larger micro-batches", WORK_FUSE, SMALL | COMM | FOR(SYMPTOM_SYNC), .variant = larger_micro_batch},
	{"less recomputation", WORK_FIT, FOR(SYMPTOM_COMPUTE), {RECOMPUTES}, .variant = less_recompute},
	{"recomputation", WORK_FIT, LEVER_FITS, {TOO_LARGE, RECOMPUTES_LESS},
		.set = "train.recompute_layers=auto;train.recompute=selective|full"},
	{"smaller micro-batches", WORK_FIT, LEVER_FITS, {TOO_LARGE}, .variant = smaller_micro_batch},
	{"8-bit moments", WORK_FIT, FOR(SYMPTOM_MEMORY) | LEVER_FITS, {ON_GPU}, .set = "train.optimizer_bits=8"},
	{"several at once", WORK_FIT, LEVER_FITS, {TOO_LARGE}, .variant = several_to_fit},
	{"overlapped communication", WORK_COMMUNICATE, COMM, {REPLICAS}, .set = "parallel.overlap=true"},
	{"another bucket size", WORK_COMMUNICATE, COMM, {REPLICAS}, .set = "parallel.bucket_mb=25|5|10|50|100|200|400"},
	{"prefetched weights", WORK_COMMUNICATE, COMM, {REPLICAS, NO_PREFETCH}, .set = "parallel.prefetch=1|2"},
	{"weights kept after forward", WORK_COMMUNICATE, COMM, {REPLICAS},
		.set = "parallel.reshard_after_forward=false"},
	{"weights sharded inside each node", WORK_COMMUNICATE, COMM, {NODES}, .variant = hybrid},
	{"another data-parallel strategy", WORK_COMMUNICATE, COMM | FOR(SYMPTOM_MEMORY) | LEVER_FITS,
		.variant = strategy},
	{"16-bit reductions", WORK_COMMUNICATE, COMM, {ON_GPU, NARROW_STORED, REDUCES_FP32, REPLICAS},
		.variant = reduce_in_16_bits},
	{"compressed gradients", WORK_COMMUNICATE, COMM, {ON_GPU, REDUCES_FP32, UNCOMPRESSED, REPLICAS},
		.set = "train.grad_compression=bf16"},
	{"sequence parallelism", WORK_COMMUNICATE, COMM | FOR(SYMPTOM_MEMORY) | LEVER_FITS, {TENSOR},
		.set = "parallel.sequence_parallel=true"},
	{"overlapped tensor collectives", WORK_COMMUNICATE, COMM, {ON_GPU, TENSOR, UNMEASURED},
		.set = "parallel.sequence_parallel=true;parallel.tensor_overlap=true"},
	{"the other context exchange", WORK_COMMUNICATE, COMM, {CONTEXT}, .variant = other_context},
	{"NCCL's own choice", WORK_COMMUNICATE, COMM, .set = "collectives.algorithm=auto;collectives.protocol=auto"},
	{"another order of dimensions", WORK_COMMUNICATE, COMM, {MESH, NODES},
		.set = "parallel.order=tp-cp-ep-dp-pp|tp-cp-ep-pp-dp|tp-ep-pp-cp-dp|tp-pp-cp-ep-dp"},
	{"another tensor group", WORK_COMMUNICATE, COMM | FOR(SYMPTOM_BUBBLE) | LEVER_FITS, {MESH}, .variant = tensor},
	{"another context group", WORK_COMMUNICATE, COMM | LEVER_FITS, {MESH}, .variant = context},
	{"more micro-batches", WORK_PIPELINE, FOR(SYMPTOM_BUBBLE), {STAGES}, .variant = smaller_micro_batch},
	{"interleaved stages", WORK_PIPELINE, FOR(SYMPTOM_BUBBLE), {STAGES},
		.set = "parallel.layers_per_stage=[];parallel.schedule=interleaved;parallel.virtual_stages=2|4|8"},
	{"another schedule", WORK_PIPELINE, FOR(SYMPTOM_BUBBLE), {STAGES}, .variant = other_schedule},
	{"even stages", WORK_PIPELINE, FOR(SYMPTOM_BUBBLE), .variant = even_stages},
	{"another number of stages", WORK_PIPELINE, FOR(SYMPTOM_BUBBLE) | COMM | LEVER_FITS, {MESH},
		.variant = pipeline},
};
const size_t n_levers = COUNT(levers);
