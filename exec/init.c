#include "exec/init.h"

#include "base/array.h"
#include "step/factored.h"
#include "step/inputs.h"

#include <assert.h>
#include <math.h>

#define CHUNK 8192 /* elements: 32 KiB, half of a small first-level cache beside its target */

enum rule { NORMAL, RESIDUAL, ONE, ZERO, FAN_IN, SSM, DELTA, KDA };

static const uint8_t rules[] = {
	[PARAM_TOKEN_EMBEDDING] = NORMAL,
	[PARAM_CLASS_TOKEN] = NORMAL,
	[PARAM_PATCH_W] = NORMAL,
	[PARAM_PATCH_B] = ZERO,
	[PARAM_ENCODER_POSITION] = NORMAL,
	[PARAM_POSITION_EMBEDDING] = NORMAL,
	[PARAM_TYPE_EMBEDDING] = NORMAL,
	[PARAM_EMBEDDING_NORM_W] = ONE,
	[PARAM_EMBEDDING_NORM_B] = ZERO,
	[PARAM_FRAMES1_W] = FAN_IN,
	[PARAM_FRAMES1_B] = ZERO,
	[PARAM_FRAMES2_W] = FAN_IN,
	[PARAM_FRAMES2_B] = ZERO,
	[PARAM_TIME_FC1_W] = NORMAL,
	[PARAM_TIME_FC1_B] = ZERO,
	[PARAM_TIME_FC2_W] = NORMAL,
	[PARAM_TIME_FC2_B] = ZERO,
	[PARAM_CONDITION_TABLE] = NORMAL,
	[PARAM_ADAPT_W] = NORMAL, /* DiT begins with zeros, which would leave the blocks without a gradient to verify */
	[PARAM_ADAPT_B] = NORMAL,
	[PARAM_FINAL_ADAPT_W] = NORMAL,
	[PARAM_FINAL_ADAPT_B] = NORMAL,
	[PARAM_NORM1_W] = ONE,
	[PARAM_NORM1_B] = ZERO,
	[PARAM_QKV_W] = NORMAL,
	[PARAM_QKV_B] = ZERO,
	[PARAM_Q_DOWN_W] = NORMAL,
	[PARAM_Q_LATENT_NORM_W] = ONE,
	[PARAM_Q_UP_W] = NORMAL,
	[PARAM_KV_DOWN_W] = NORMAL,
	[PARAM_KV_LATENT_NORM_W] = ONE,
	[PARAM_KV_UP_W] = NORMAL,
	[PARAM_ATTENTION_GATE_W] = NORMAL,
	[PARAM_PROJ_W] = RESIDUAL,
	[PARAM_PROJ_B] = ZERO,
	[PARAM_SINKS] = NORMAL,
	[PARAM_Q_NORM_W] = ONE,
	[PARAM_K_NORM_W] = ONE,
	[PARAM_ENCODER_RELATIVE_BIAS] = NORMAL,
	[PARAM_RELATIVE_BIAS] = NORMAL,
	[PARAM_CROSS_NORM_W] = ONE,
	[PARAM_CROSS_NORM_B] = ZERO,
	[PARAM_CROSS_Q_W] = NORMAL,
	[PARAM_CROSS_Q_B] = ZERO,
	[PARAM_CROSS_KV_W] = NORMAL,
	[PARAM_CROSS_KV_B] = ZERO,
	[PARAM_CROSS_PROJ_W] = RESIDUAL,
	[PARAM_CROSS_PROJ_B] = ZERO,
	[PARAM_SSM_IN_W] = NORMAL,
	[PARAM_SSM_CONV_W] = FAN_IN,
	[PARAM_SSM_CONV_B] = ZERO,
	[PARAM_SSM_HEADS] = SSM,
	[PARAM_DELTA_HEADS] = DELTA,
	[PARAM_KDA_HEADS] = KDA,
	[PARAM_KDA_DECAY_DOWN_W] = NORMAL,
	[PARAM_KDA_DECAY_UP_W] = NORMAL,
	[PARAM_KDA_GATE_DOWN_W] = NORMAL,
	[PARAM_KDA_GATE_UP_W] = NORMAL,
	[PARAM_SSM_NORM_W] = ONE,
	[PARAM_SSM_OUT_W] = RESIDUAL,
	[PARAM_SHORT_IN_W] = NORMAL,
	[PARAM_SHORT_CONV_W] = FAN_IN,
	[PARAM_SHORT_OUT_W] = RESIDUAL,
	[PARAM_STEM_W] = FAN_IN,
	[PARAM_STEM_NORM_W] = ONE,
	[PARAM_STEM_NORM_B] = ZERO,
	[PARAM_CONV1_W] = FAN_IN,
	[PARAM_CONV1_NORM_W] = ONE,
	[PARAM_CONV1_NORM_B] = ZERO,
	[PARAM_CONV2_W] = FAN_IN,
	[PARAM_CONV2_NORM_W] = ONE,
	[PARAM_CONV2_NORM_B] = ZERO,
	[PARAM_CONV3_W] = FAN_IN,
	[PARAM_CONV3_NORM_W] = ONE,
	[PARAM_CONV3_NORM_B] = ZERO,
	[PARAM_SHORTCUT_W] = FAN_IN,
	[PARAM_SHORTCUT_NORM_W] = ONE,
	[PARAM_SHORTCUT_NORM_B] = ZERO,
	[PARAM_NORM2_W] = ONE,
	[PARAM_NORM2_B] = ZERO,
	[PARAM_ATTENTION_NORM_W] = ONE,
	[PARAM_ATTENTION_NORM_B] = ZERO,
	[PARAM_MLP_NORM_W] = ONE,
	[PARAM_MLP_NORM_B] = ZERO,
	[PARAM_FC1_W] = NORMAL,
	[PARAM_FC1_B] = ZERO,
	[PARAM_FC2_W] = RESIDUAL,
	[PARAM_FC2_B] = ZERO,
	[PARAM_ROUTER_W] = NORMAL,
	[PARAM_MOE_DOWN_W] = NORMAL,
	[PARAM_MOE_UP_W] = RESIDUAL,
	[PARAM_EXPERT_FC1_W] = NORMAL,
	[PARAM_EXPERT_FC2_W] = RESIDUAL,
	[PARAM_SHARED_GATE_W] = NORMAL,
	[PARAM_SHARED_FC1_W] = NORMAL,
	[PARAM_SHARED_FC2_W] = RESIDUAL,
	[PARAM_LORA_QKV_A] = NORMAL,
	[PARAM_LORA_QKV_B] = RESIDUAL, /* LoRA begins with zeros, which would leave A without a gradient to verify */
	[PARAM_LORA_PROJ_A] = NORMAL,
	[PARAM_LORA_PROJ_B] = RESIDUAL,
	[PARAM_LORA_FC1_A] = NORMAL,
	[PARAM_LORA_FC1_B] = RESIDUAL,
	[PARAM_LORA_FC2_A] = NORMAL,
	[PARAM_LORA_FC2_B] = RESIDUAL,
	[PARAM_LORA_GATE_A] = NORMAL,
	[PARAM_LORA_GATE_B] = RESIDUAL,
	[PARAM_LORA_SSM_IN_A] = NORMAL,
	[PARAM_LORA_SSM_IN_B] = RESIDUAL,
	[PARAM_LORA_SSM_OUT_A] = NORMAL,
	[PARAM_LORA_SSM_OUT_B] = RESIDUAL,
	[PARAM_LORA_SHORT_IN_A] = NORMAL,
	[PARAM_LORA_SHORT_IN_B] = RESIDUAL,
	[PARAM_LORA_SHORT_OUT_A] = NORMAL,
	[PARAM_LORA_SHORT_OUT_B] = RESIDUAL,
	[PARAM_LORA_Q_DOWN_A] = NORMAL,
	[PARAM_LORA_Q_DOWN_B] = RESIDUAL,
	[PARAM_LORA_Q_UP_A] = NORMAL,
	[PARAM_LORA_Q_UP_B] = RESIDUAL,
	[PARAM_LORA_KV_DOWN_A] = NORMAL,
	[PARAM_LORA_KV_DOWN_B] = RESIDUAL,
	[PARAM_LORA_KV_UP_A] = NORMAL,
	[PARAM_LORA_KV_UP_B] = RESIDUAL,
	[PARAM_LORA_EXPERT_FC1_A] = NORMAL,
	[PARAM_LORA_EXPERT_FC1_B] = RESIDUAL,
	[PARAM_LORA_EXPERT_FC2_A] = NORMAL,
	[PARAM_LORA_EXPERT_FC2_B] = RESIDUAL,
	[PARAM_LORA_SHARED_FC1_A] = NORMAL,
	[PARAM_LORA_SHARED_FC1_B] = RESIDUAL,
	[PARAM_LORA_SHARED_FC2_A] = NORMAL,
	[PARAM_LORA_SHARED_FC2_B] = RESIDUAL,
	[PARAM_ENCODER_NORM_W] = ONE,
	[PARAM_ENCODER_NORM_B] = ZERO,
	[PARAM_MTP_HIDDEN_NORM_W] = ONE,
	[PARAM_MTP_HIDDEN_NORM_B] = ZERO,
	[PARAM_MTP_TOKEN_NORM_W] = ONE,
	[PARAM_MTP_TOKEN_NORM_B] = ZERO,
	[PARAM_MTP_HIDDEN_W] = NORMAL,
	[PARAM_MTP_TOKEN_W] = NORMAL,
	[PARAM_MTP_FINAL_NORM_W] = ONE,
	[PARAM_MTP_FINAL_NORM_B] = ZERO,
	[PARAM_FINAL_NORM_W] = ONE,
	[PARAM_FINAL_NORM_B] = ZERO,
	[PARAM_POOLER_W] = NORMAL,
	[PARAM_POOLER_B] = ZERO,
	[PARAM_HEAD_DENSE_W] = NORMAL,
	[PARAM_HEAD_DENSE_B] = ZERO,
	[PARAM_HEAD_NORM_W] = ONE,
	[PARAM_HEAD_NORM_B] = ZERO,
	[PARAM_HEAD_W] = NORMAL,
	[PARAM_HEAD_B] = ZERO,
	[PARAM_CLASS_W] = NORMAL,
	[PARAM_CLASS_B] = ZERO,
	[PARAM_OUTPUT_W] = NORMAL,
	[PARAM_OUTPUT_B] = ZERO,
};
static_assert(COUNT(rules) == PARAM_KIND_COUNT, "a rule for each parameter");

static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ x >> 27) * 0x94d049bb133111ebULL;
	return x ^ x >> 31;
}

#define GOLDEN 0x9e3779b97f4a7c15ULL

/* The sum of four 16-bit uniforms, centred, to variance 1. */
static float normal(uint64_t bits)
{
	int64_t sum = (int64_t)((bits & 0xffff) + (bits >> 16 & 0xffff) + (bits >> 32 & 0xffff) + (bits >> 48));
	return (float)(sum - 2 * 65535) * (float)(1.7320508075688772 / 65536.0); /* variance of one: 65536^2 / 12 */
}

/* A_log, the bias of dt and D of heads, or the first two: A from 1 to 16, dt before its product about 0.05, as
 * mamba_ssm has them (modules/mamba2.py). */
static float head_value(uint64_t element, uint64_t of_head)
{
	const uint64_t head = element / of_head;
	element %= of_head;
	return element == 0 ? logf((float)(1 + head % 16)) : element == 1 ? -3.0f : 1.0f;
}

/* A_log, and the biases of a head's decays: as above. */
static float kda_value(uint64_t element, uint64_t of_head)
{
	return element % of_head == 0 ? head_value(element / of_head * 3, 3) : -3.0f;
}

static float sigma_of(const struct param *param, enum rule rule, int64_t layers)
{
	return (float)(rule == RESIDUAL ? INIT_SIGMA / sqrt(2.0 * (double)layers)
		       : rule == FAN_IN ? 1 / sqrt((double)param->cols)
					: INIT_SIGMA);
}

void init_values(const struct param *param, int64_t layers, uint64_t first, uint64_t n, float *out)
{
	enum rule rule = rules[param->kind];
	uint64_t key = mix(((uint64_t)param->kind << 32) + (uint64_t)(param->layer + 1) + GOLDEN);
	const float sigma = sigma_of(param, rule, layers);
	for (uint64_t i = 0; i < n; i++)
		out[i] = rule == ONE     ? 1.0f
		         : rule == ZERO  ? 0.0f
		         : rule == SSM   ? head_value(first + i, 3)
		         : rule == DELTA ? head_value(first + i, 2)
		         : rule == KDA   ? kda_value(first + i, (uint64_t)param->cols)
		                         : sigma * normal(mix(key + (first + i) * GOLDEN));
}

/* ---- where a rank's elements lie in the whole tensor ---- */

/* Groups of rows that are cut one by one; returns how many. */
static int row_groups(const struct model *m, const struct param *p, int64_t rows[3])
{
	rows[0] = p->split == TP_QKV ? m->heads * m->head_dim : p->split == TP_HALVES ? p->rows / 2 : p->rows;
	rows[1] = p->split == TP_QKV ? m->kv_heads * m->head_dim : p->rows / 2;
	rows[2] = m->kv_heads * m->head_dim;
	return p->split == TP_QKV ? 3 : p->split == TP_HALVES ? 2 : 1;
}

struct stretch init_stretch(const struct model *m, const struct param *p, struct param_part at, uint64_t local)
{
	const uint64_t t = (uint64_t)at.ranks, c = (uint64_t)at.rank, cols = (uint64_t)p->cols,
		       whole = (uint64_t)p->rows * cols, own = whole * (uint64_t)(p->copies / at.owners),
		       first = own * (uint64_t)at.owner;
	if (p->split <= TP_PARTIAL || t == 1)
		return (struct stretch){first + local, own - local};
	if (p->split == TP_COLS) {
		uint64_t part = cols / t, row = local / part, col = local % part;
		return (struct stretch){first + row * cols + c * part + col, part - col};
	}
	int64_t rows[3];
	int n = row_groups(m, p, rows);
	uint64_t copy = local / (whole / t), rest = local % (whole / t), begin = first + copy * whole;
	for (int g = 0; g < n; g++) {
		uint64_t group = (uint64_t)rows[g] * cols, part = group / t;
		if (rest < part)
			return (struct stretch){begin + c * part + rest, part - rest};
		rest -= part;
		begin += group;
	}
	return (struct stretch){0, 0}; /* beyond the tensor's end */
}

/* ---- writing ---- */

/* Elements [lo, hi) of the bucket lie one after the other from `at` on, in its buffer's format. */
static void init_param(const struct program *p, const struct device_job *job, const struct device *d,
	const struct role_param *rp, const struct view *at, uint64_t lo, uint64_t hi)
{
	const struct param_part part = mesh_param_part(&p->mesh, job->coord, &rp->param);
	float values[CHUNK], stored[CHUNK];
	enum dtype format = job->role->buffers.at[at->buffer].dtype;
	uint64_t size_B = (uint64_t)dtype_bytes(format);
	uint64_t begin = rp->offset > lo ? rp->offset : lo,
		 end = rp->offset + rp->elements < hi ? rp->offset + rp->elements : hi;
	for (uint64_t i = begin; i < end;) {
		struct stretch s = init_stretch(&p->config.model, &rp->param, part, i - rp->offset);
		uint64_t n = s.n < end - i ? s.n : end - i;
		n = n < CHUNK ? n : CHUNK;
		init_values(&rp->param, p->config.model.layers, s.global, n, values);
		dtype_store(format, values, n, stored);
		d->ops->write(d->ctx, at->buffer, view_offset_B(job, at) + (i - lo) * size_B, stored, n * size_B);
		i += n;
	}
}

/* The first element of this rank's part of a bucket that is cut, 0 of a whole one. */
static uint64_t part_begin(const struct device_job *job, const struct bucket *b)
{
	return b->shards > 1 ? (uint64_t)job->coord[b->along] * (b->padded / (uint64_t)b->shards) : 0;
}

/* The fp32 copy that the optimizer keeps of narrower weights begins as the weights do, unrounded. Views of the
 * optimizer's arguments already stand at this rank's part. */
static void init_master(const struct program *p, const struct device_job *job, const struct device *d,
	const struct op *op, const struct view *master)
{
	const struct bucket *b = &job->role->buckets.at[op->bucket];
	if (master->buffer < 0)
		return;
	const uint64_t lo = part_begin(job, b);
	for (size_t i = 0; i < job->role->params.n; i++)
		if (job->role->params.at[i].bucket == op->bucket)
			init_param(p, job, d, &job->role->params.at[i], master, lo,
				lo + b->padded / (uint64_t)b->shards);
}

/* Where the bucket's tensors begin in this rank's part, and where the last one ends; parameters lie in no order. */
static void init_bounds(const struct device_job *job, const struct device *d, const struct op *op)
{
	const struct view *at = op_arg(job->role, op, ARG_LAMB_DIRECTION_bounds);
	const struct bucket *b = &job->role->buckets.at[op->bucket];
	const uint64_t lo = part_begin(job, b), part = (uint64_t)op->tensors.elements;
	for (int64_t n = 0, next = 0; n <= op->tensors.tensors; n++) {
		const int64_t begin = (uint64_t)next < lo          ? 0
		                      : (uint64_t)next - lo < part ? next - (int64_t)lo
		                                                   : (int64_t)part;
		d->ops->write(d->ctx, at->buffer, view_offset_B(job, at) + (uint64_t)n * sizeof begin, &begin,
			sizeof begin);
		for (size_t i = 0; i < job->role->params.n; i++) {
			const struct role_param *rp = &job->role->params.at[i];
			if (rp->bucket == op->bucket && rp->offset == (uint64_t)next) {
				next += (int64_t)rp->elements;
				break;
			}
		}
	}
}

/* The same of adafactor's tensors. */
static void init_factored(const struct program *p, const struct device_job *job, const struct device *d,
	const struct op *op)
{
	const struct view *at = op_arg(job->role, op, ARG_ADAFACTOR_SUMS_bounds);
	const struct bucket *b = &job->role->buckets.at[op->bucket];
	for (int64_t n = 0; n < op->factored.tensors; n++) {
		const struct factored_tensor t = factored_tensor(job->role, &p->mesh, op->bucket, part_begin(job, b),
			n);
		d->ops->write(d->ctx, at->buffer, view_offset_B(job, at) + (uint64_t)n * sizeof t, &t, sizeof t);
	}
}

void init_weights(const struct program *p, const struct device_job *job, const struct device *d)
{
	for (size_t i = 0; i < job->role->params.n; i++) {
		const struct role_param *rp = &job->role->params.at[i];
		const struct bucket *b = &job->role->buckets.at[rp->bucket];
		const uint64_t part = b->padded / (uint64_t)b->shards, lo = part_begin(job, b);
		if (b->weights.buffer >= 0)
			init_param(p, job, d, rp, &b->weights, 0, b->padded);
		else
			init_param(p, job, d, rp, &b->shard, lo, lo + part);
		if (b->host.buffer >= 0 && b->host.buffer != b->shard.buffer)
			init_param(p, job, d, rp, &b->host, lo, lo + part);
		atomic_fetch_add(&job->beacon->progress, 1); /* a large model takes its time */
	}
	for (size_t i = 0; i < job->role->ops.n; i++) {
		const struct op *op = &job->role->ops.at[i];
		if (op->kind == OP_OPTIMIZER)
			init_master(p, job, d, op, op_arg(job->role, op, ARG_OPTIMIZER_master));
		if (op->kind == OP_LAMB_DIRECTION) {
			init_master(p, job, d, op, op_arg(job->role, op, ARG_LAMB_DIRECTION_master));
			init_bounds(job, d, op);
		}
		if (op->kind == OP_ADAFACTOR_SUMS) {
			init_master(p, job, d, op, op_arg(job->role, op, ARG_ADAFACTOR_SUMS_master));
			init_factored(p, job, d, op);
		}
	}
}

/* ---- input ---- */

static uint64_t data_bits(int64_t sequence, int64_t position)
{
	return mix(mix((uint64_t)sequence + GOLDEN) + (uint64_t)position * GOLDEN);
}

/* Writes rows [0, n) of a sequence into a buffer: ids below `below`. What row i is in the whole sequence, the cut says;
 * `later` rows behind that one. */
static void write_ids(const struct device_job *job, const struct device *d, int64_t sequence, int64_t n, int64_t later,
	int64_t below, int32_t buffer, uint64_t at_B)
{
	for (int64_t first = 0; first < n; first += CHUNK) {
		int32_t ids[CHUNK];
		const int64_t count = n - first < CHUNK ? n - first : CHUNK;
		for (int64_t i = 0; i < count; i++)
			ids[i] = (int32_t)(data_bits(sequence, cut_position(&job->cut, n, first + i) + later) %
					   (uint64_t)below);
		d->ops->write(d->ctx, buffer, at_B + (uint64_t)first * sizeof ids[0], ids,
			(uint64_t)count * sizeof ids[0]);
	}
}

/* The same of normal values, all `bytes` of a part: each part has others. */
static void write_values(const struct device *d, enum input_part part, int64_t sequence, int64_t bytes,
	enum dtype format, int32_t buffer, uint64_t at_B)
{
	const uint64_t size_B = (uint64_t)dtype_bytes(format);
	const int64_t n = (int64_t)((double)bytes / dtype_bytes(format)), part_at = (int64_t)part << 40;
	for (int64_t first = 0; first < n; first += CHUNK) {
		float values[CHUNK], stored[CHUNK];
		const int64_t count = n - first < CHUNK ? n - first : CHUNK;
		for (int64_t i = 0; i < count; i++)
			values[i] = normal(data_bits(sequence, part_at + first + i));
		dtype_store(format, values, (uint64_t)count, stored);
		d->ops->write(d->ctx, buffer, at_B + (uint64_t)first * size_B, stored, (uint64_t)count * size_B);
	}
}

/* Rows or values of a sequence in a part of the input, and the bytes of each. */
static void write_part(const struct program *p, const struct device_job *job, const struct device *d,
	enum input_part part, int64_t sequence, int32_t buffer, uint64_t at_B)
{
	const struct model *m = &p->config.model;
	const int64_t bytes = (int64_t)inputs_part_B(&p->config, 1, part);
	const enum dtype format = dtype_stored(p->config.train.dtype);
	if (part >= INPUT_PART_FURTHER && part < INPUT_PART_CLASSES) {
		write_ids(job, d, sequence, bytes / 4, 2 + (int64_t)(part - INPUT_PART_FURTHER), m->vocab, buffer,
			at_B);
		return;
	}
	switch (part) {
	case INPUT_PART_DATA:
		if (m->input != INPUT_TOKENS)
			write_values(d, part, sequence, bytes, format, buffer, at_B);
		else
			write_ids(job, d, sequence, bytes / 4, 0, m->vocab, buffer, at_B);
		return;
	case INPUT_PART_TIMES: write_values(d, part, sequence, bytes, format, buffer, at_B); return;
	case INPUT_PART_DECODER: /* the tokens after the encoder's */
		write_ids(job, d, sequence, bytes / 4, m->encoder_seq_len, m->vocab, buffer, at_B);
		return;
	case INPUT_PART_TARGETS: /* the tokens after */
		if (m->output_channels > 0)
			write_values(d, part, sequence, bytes, format, buffer, at_B);
		else
			write_ids(job, d, sequence, bytes / 4, m->encoder_seq_len + 1, m->vocab, buffer, at_B);
		return;
	case INPUT_PART_CLASSES:
		write_ids(job, d, sequence, bytes / 4, 0, m->classes + m->condition_classes, buffer, at_B);
		return;
	case INPUT_PART_FURTHER:
	case INPUT_PART_COUNT: return;
	}
}

/* Micro-batch `micro` of this rank into a buffer. */
static void init_batch(const struct program *p, const struct device_job *job, const struct device *d, int64_t micro,
	int32_t buffer, uint64_t offset_B)
{
	const int64_t batch = p->config.train.micro_batch;
	if (job->role->input < 0)
		return;
	for (enum input_part part = 0; part < INPUT_PART_COUNT; part++) {
		const uint64_t each_B = inputs_part_B(&p->config, 1, part);
		for (int64_t b = 0; b < batch && each_B > 0; b++)
			write_part(p, job, d, part, (micro * p->mesh.size[DIM_DP] + job->coord[DIM_DP]) * batch + b,
				buffer, offset_B + inputs_offset_B(&p->config, batch, part) + (uint64_t)b * each_B);
	}
}

/* The data, and what a loader has prepared of it before the first step. */
void init_input(const struct program *p, const struct device_job *job, const struct device *d)
{
	const struct role *r = job->role;
	for (int64_t micro = 0; micro < p->config.micro_batches; micro++)
		init_batch(p, job, d, micro, r->input, (uint64_t)micro * r->input_stride_B);
	for (size_t i = 0; i < r->ops.n; i++)
		if (r->ops.at[i].kind == OP_LOAD)
			init_batch(p, job, d, r->ops.at[i].micro, op_arg(r, &r->ops.at[i], 1)->buffer, 0);
}
