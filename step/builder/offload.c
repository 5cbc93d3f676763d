/* Offloading (train.offload): data that waits in the host's memory while the device does something else.
 *
 *   activations       A block's activations, but for the small statistics, are copied out after its forward pass. They
 *                     come back during the backward pass of the block after it. The last block's stay, as they are
 *                     needed at once. A block begins when the block two before it is copied out (Transformer Engine's
 *                     double buffering, cpu_offload.py). Of a recomputed block only the input is copied (DeepSpeed's
 *                     cpu_checkpointing). Where the first k of L blocks are, each has L / k blocks' time to go and to
 *                     come back (layer_window_map there).
 *   optimizer         ZeRO-Offload (Ren et al. 2021, arXiv:2101.06840, section 4): each bucket's gradient is copied out
 *                     when it is reduced. The host then updates its copy of the weights, which are copied back: the
 *                     copy of one bucket overlaps with the update of the next. Gradients that are cut with each
 *                     micro-batch are stored on the host alone: the earlier sum is copied in, added to, and copied out
 *                     again (DeepSpeed, stage_1_and_2.py).
 *   optimizer+params  As optimizer, and the rank's part of the weights is stored on the host alone: it is copied in
 *                     before each gather (ZeRO-Infinity: Rajbhandari et al. 2021, arXiv:2104.07857; PyTorch,
 *                     CPUOffloadPolicy).
 *
 * All copies share LANE_COPY, one after the other.
 */
#include <stddef.h>

#include "base/array.h"
#include "step/builder/blocks.h"

static void copy(struct builder *b, struct view from, struct view to, uint64_t bytes, bool out, const char *what,
	int32_t bucket)
{
	struct op op = build_new(b, OP_COPY, what);
	op.lane = LANE_COPY;
	op.flags = out ? OP_INVERSE : 0;
	op.bucket = bucket;
	op.copy.bytes = (int64_t)bytes;
	build_with(b, &op, from, to);
}

/* ---- activations ---- */

#define AT(member) offsetof(struct acts, member)
static const size_t kept[] = {AT(x_in) /* first: a recomputed block keeps nothing else */, AT(n1), AT(qkv), AT(att),
	AT(att_heads), AT(raw_qkv), AT(latent.q), AT(latent.q_normed), AT(latent.kv), AT(latent.kv_normed), AT(att_out),
	AT(mlp_out), AT(probs), AT(x_mid), AT(n2), AT(sum2), AT(mlp.h), AT(mlp.g), AT(moe.in), AT(moe.out),
	AT(moe.shared.h), AT(moe.shared.g), AT(moe.shared_out), AT(ssm.in), AT(ssm.xbc), AT(ssm.y), AT(ssm.gated),
	AT(ssm.decay_low), AT(ssm.decay), AT(ssm.gate_low), AT(ssm.gate), AT(short_conv.in), AT(short_conv.out),
	AT(gate), AT(gated), AT(adapt.mod), AT(adapt.normed[0]), AT(adapt.normed[1]), AT(mlp.h8), AT(moe.shared.h8),
	AT(moe.summed),
#define SAVED_AT(i) AT(saved.buffer[i])
	SAVED_AT(0), SAVED_AT(1), SAVED_AT(2), SAVED_AT(3), SAVED_AT(4), SAVED_AT(5), SAVED_AT(6), SAVED_AT(7),
	SAVED_AT(8), SAVED_AT(9), SAVED_AT(SAVED_PROJ_ROWS)};
#define KEPT COUNT(kept)
_Static_assert(KEPT == OFFLOADED_ACTS, "a place on the host for each");

static int32_t *kept_at(struct acts *a, size_t i) { return (int32_t *)((char *)a + kept[i]); }

static struct buffer buffer_of(const struct builder *b, int32_t id) { return b->r->buffers.at[id]; }

static int32_t like(struct builder *b, int32_t id, enum component comp)
{
	const struct buffer buf = buffer_of(b, id);
	return build_buffer(b, comp, buf.dtype, build_size(b, id), false);
}

static bool offloads_activations(const struct builder *b)
{
	return b->c->train.offload == OFF_ACTIVATIONS && b->c->train.offload_layers > 0 && !b->st;
}

static bool goes_out(const struct builder *b, int64_t layer)
{
	return offloads_activations(b) && layer < b->c->train.offload_layers &&
	       layer < b->part.first + b->part.layers - 1;
}

/* Returns the block whose copy ends before this layer's forward pass begins, or NONE. Of k of L blocks, block i has the
 * blocks up to (i + 1) L / k; of all, the one behind it. */
static int64_t due(const struct builder *b, int64_t layer)
{
	if (!offloads_activations(b))
		return NONE;
	const int64_t window = b->part.layers / b->c->train.offload_layers,
		      i = window == 1 ? layer - 2 : layer / window - 1;
	return i >= 0 && (window == 1 || layer % window == 0) && goes_out(b, i) ? i : NONE;
}

void offload_room(struct builder *b, int64_t layer)
{
	const int64_t i = due(b, layer);
	if (i != NONE)
		build_after(b, LANE_COMPUTE, acts_of(b, i)->out_at);
}

/* True where a recomputed block keeps the result in this place: its input, and what it saves by name. */
static bool is_saved(const struct builder *b, size_t i)
{
	return i == 0 || kept[i] >= SAVED_AT(0) || (kept[i] == AT(att) && saved_attention(b));
}

/* True where an earlier place has the same buffer, which is copied once. */
static bool seen_before(const int32_t ids[], size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (ids[k] == ids[i])
			return true;
	return false;
}

void offload_acts(struct builder *b, struct acts *a)
{
	int32_t ids[KEPT];
	const bool recomputes = build_recomputes(b, b->layer);
	a->out_at = NONE;
	for (size_t i = 0; i < KEPT; i++)
		a->away[i] = NONE;
	for (size_t i = 0; i < KEPT && offloads_activations(b); i++) {
		ids[i] = recomputes && !is_saved(b, i) ? NONE : *kept_at(a, i);
		if (ids[i] == NONE || !goes_out(b, b->layer) || seen_before(ids, i))
			continue;
		a->away[i] = like(b, ids[i], COMP_HOST);
		if (a->away[i] == NONE)
			return;
		copy(b, view_of(ids[i]), view_of(a->away[i]), buffer_of(b, ids[i]).bytes, true, "activations", NONE);
		a->out_at = build_last(b, LANE_COPY);
	}
}

static void fetch(struct builder *b, struct acts *a)
{
	int32_t ids[KEPT];
	build_after(b, LANE_COPY, build_last(b, LANE_COMPUTE));
	for (size_t i = 0; i < KEPT; i++) {
		ids[i] = *kept_at(a, i);
		for (size_t k = 0; k < i; k++)
			if (ids[k] == ids[i] && a->away[k] != NONE)
				*kept_at(a, i) = *kept_at(a, k);
		if (a->away[i] == NONE)
			continue;
		int32_t back = like(b, ids[i], COMP_ACTIVATIONS);
		copy(b, view_of(a->away[i]), view_of(back), buffer_of(b, ids[i]).bytes, false, "activations", NONE);
		*kept_at(a, i) = back;
	}
}

void offload_fetch(struct builder *b, int64_t layer)
{
	const int64_t i = due(b, layer + 1), here = b->layer;
	if (i == NONE)
		return;
	b->layer = (int32_t)i;
	fetch(b, acts_of(b, i));
	b->layer = (int32_t)here;
}

/* ---- the optimizer's state, gradients and weights ---- */

bool offloads_states(const struct builder *b)
{
	return b->c->train.offload == OFF_OPTIMIZER || b->c->train.offload == OFF_OPTIMIZER_PARAMS;
}

static uint64_t part_B(const struct bucket *k, enum dtype dt)
{
	return (uint64_t)((double)bucket_part(k) * dtype_bytes(dt));
}

void offload_gradient(struct builder *b, int32_t i, struct view from)
{
	const struct bucket *k = &b->r->buckets.at[i];
	if (offloads_states(b) && !b->st)
		copy(b, from, k->host_grad, part_B(k, b->grad), true, "gradients", i);
}

struct view offload_sum(struct builder *b, int32_t i)
{
	const struct bucket *k = &b->r->buckets.at[i];
	if (!offloads_states(b) || b->st)
		return k->grad_shard;
	int32_t sum = build_buffer(b, COMP_BUFFERS, b->grad, bucket_part(k), false);
	copy(b, k->host_grad, view_of(sum), part_B(k, b->grad), false, "gradients", i);
	return view_of(sum);
}

void offload_updated(struct builder *b, int32_t i)
{
	const struct bucket *k = &b->r->buckets.at[i];
	if (offloads_states(b) && !b->st && k->host.buffer != k->shard.buffer)
		copy(b, k->host, k->shard, part_B(k, b->weight), false, "weights", i);
}

struct view offload_shard(struct builder *b, int32_t i, int64_t after)
{
	const struct bucket *k = &b->r->buckets.at[i];
	if (b->c->train.offload != OFF_OPTIMIZER_PARAMS || b->st)
		return k->shard;
	int32_t here = build_buffer(b, COMP_BUFFERS, k->stored, bucket_part(k), false);
	build_after(b, LANE_COPY, after);
	copy(b, k->shard, view_of(here), part_B(k, k->stored), false, "weights", i);
	return view_of(here);
}
