/* FSDP's gathers (PyTorch "FSDP notes"; torchtitan docs/fsdp.md): a block's parameters are gathered into a buffer of their own before their use in forward and again
 * before backward, `prefetch` uses ahead, and die with the use. The root unit stays gathered from the beginning of forward to the end of backward.
 * A gather waits for the end of the use prefetch + 1 before its own: so many gathered units are alive at once, no more.
 */
#include "step/build.h"

#include <stdlib.h>

static int64_t prefetch(const struct builder *b)
{
	return b->c->parallel.overlap ? b->c->parallel.prefetch : 0;
}

static int32_t bucket_of_use(const struct builder *b, int64_t use)
{
	int64_t L = b->m->layers, layer = use < L ? use : 2 * L - 1 - use;
	return (int32_t)(L - 1 - layer);
}

static int32_t gather(struct builder *b, int32_t bucket, int64_t after)
{
	const struct bucket *k = &b->r->buckets.at[bucket];
	int64_t full = (int64_t)k->padded, part = full / k->shards;
	struct view in = k->shard;
	if (b->act != b->weight) {
		in = view_of(build_buffer(b, COMP_BUFFERS, b->act, part, "cast shard", false));
		build_cast(b, k->shard, b->weight, in, b->act, part, "weight shard");
	}
	int32_t buffer = build_buffer(b, COMP_BUFFERS, b->act, full, "gathered unit", false);
	build_after(b, LANE_COMM, after);
	build_collective(b, COLL_ALL_GATHER, RED_SUM, b->p->mesh.params, LANE_COMM, b->act, full, in, view_of(buffer), "weights", bucket);
	return buffer;
}

static void gather_up_to(struct builder *b, int64_t use)
{
	for (; b->gathered <= use && b->gathered < b->n_uses && !b->st; b->gathered++) {
		int64_t before = b->gathered - prefetch(b) - 1;
		int64_t after = before >= 0 ? b->use_end[before] : prefetch(b) == 0 ? build_last(b, LANE_COMPUTE) : NONE;
		b->use_buffer[b->gathered] = gather(b, bucket_of_use(b, b->gathered), after);
	}
}

void gather_micro_begin(struct builder *b)
{
	if (!b->gathers || b->st)
		return;
	b->n_uses = b->c->parallel.reshard_after_forward ? 2 * b->m->layers : b->m->layers;
	if (!b->use_buffer) {
		b->use_buffer = malloc((size_t)b->n_uses * sizeof *b->use_buffer);
		b->use_end = malloc((size_t)b->n_uses * sizeof *b->use_end);
		if (!b->use_buffer || !b->use_end) {
			b->st = error_nomem(b->e, "the gathers");
			return;
		}
	}
	b->gathered = 0;
	int32_t root = (int32_t)b->m->layers;
	/* a micro-step's gathers begin when the one before has ended: FSDP's root lets its gather stream wait for the compute stream */
	b->weights_now[root] = gather(b, root, b->micro > 0 ? build_last(b, LANE_COMPUTE) : NONE);
	gather_up_to(b, prefetch(b) - 1);
}

void gather_use_begin(struct builder *b, int64_t use)
{
	if (!b->gathers || b->st || use == NONE)
		return;
	gather_up_to(b, use + prefetch(b));
	b->weights_now[bucket_of_use(b, use)] = b->use_buffer[use];
}

void gather_use_end(struct builder *b, int64_t use)
{
	if (b->gathers && !b->st && use != NONE)
		b->use_end[use] = build_last(b, LANE_COMPUTE);
}
