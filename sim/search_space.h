/* Which plans there are for a config on a number of ranks: the values that a search gives to each key. What config_resolve refuses of them is illegal.
 *
 *   tensor          divisors of the ranks that divide heads, kv_heads and ffn_hidden, inside a node (or the config's own)
 *   context         powers of two that leave each rank 1,024 tokens of a sequence
 *   pipeline        divisors of what is left, up to the layers; virtual_stages: divisors of a stage's layers, and interleaved with them; without them 1f1b, gpipe, zero_bubble; two: zbv too, where the config has it
 *   expert          divisors of the experts that divide the ranks of a stage
 *   strategy        ddp, zero1, zero2, fsdp, hsdp with shards of every divisor of the replicas that is a power of two or fills a node; ddp (or none, as the config has it) where nothing is replicated.
 *                   With a pipeline zero2, fsdp and hsdp, which communicate in each micro-batch, only where the config itself has them with a pipeline
 *   micro_batch     divisors of a replica's share of the batch: all up to 8, then powers of two
 *   recompute       none, full, and selective where scores are kept (naive attention); of all layers, without a pipeline also of half of them, and the config's own number
 *   sequence_parallel both ways with tensor; tensor_overlap both ways with that where the stack does it at all
 *   bucket_mb       the config's, 25, 100 (ddp, zero1, zero2); prefetch the config's, 0, 1, 2, and reshard_after_forward both ways (fsdp, hsdp)
 *   overlap         both ways; without it the last bucket_mb and the config's prefetch
 * A held key takes the config's value alone. Where the config gives layers_per_stage, it stays with the pipeline that it is for.
 */
#ifndef STEPSIM_SIM_SEARCH_SPACE_H
#define STEPSIM_SIM_SEARCH_SPACE_H

#include "base/vec.h"
#include "step/plan.h"

struct shape {
	int32_t shard, tensor, pipeline, chunks, context, expert, micro_batch, recompute_layers; /* recompute_layers: AUTO: all; shard: AUTO unless hsdp */
	int8_t strategy, schedule, recompute;
	bool sequence_parallel, tensor_overlap, reshard;
	double floor_s, floor_B; /* no variant's step is shorter, none needs less memory (sim/floor.h); filled by the search */
	double blocks;    /* layers x micro-batches that are simulated for all its variants; 0: they are put together from pieces. Filled by the search */
	int32_t apart;    /* keys that differ from the config's: the order in which plans without bounds are tried */
};

struct variant {
	double bucket_mb;
	int64_t prefetch;
	bool overlap;
};
#define VARIANTS_MAX 8

struct search_space {
	struct config start; /* parsed; parallel.data is auto unless it is held */
	int64_t ranks;
	uint32_t held;
	VEC(struct shape) shapes; /* in the fixed order of keys */
	bool left_cuts;   /* pipelines whose stages are cut (zero2, fsdp, hsdp) were left out */
	bool left_tensor; /* and tensor groups larger than a node */
};

enum status search_space_create(const struct config *start, int64_t ranks, uint32_t held, struct search_space *out, struct error *e);
void search_space_free(struct search_space *s);

/* Fills v; returns how many, at least 1. */
size_t search_variants(const struct search_space *s, const struct shape *shape, struct variant v[VARIANTS_MAX]);

/* The parsed config of a plan. */
void search_config(const struct search_space *s, const struct shape *shape, const struct variant *v, struct config *out);

#endif
