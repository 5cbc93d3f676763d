/* The plans that there are for a config on a number of ranks: the values that a search gives to each key. Those that
 * config_resolve refuses are illegal. A held key takes the config's value alone.
 *
 *   key                   values
 *   tensor                divisors of the ranks that divide heads, kv_heads and ffn_hidden, in a node; the config's
 *   context               powers of two that leave each rank 1,024 tokens of a sequence; the config's
 *   pipeline              divisors of the ranks that are left, up to the layers
 *   schedule              without virtual stages 1f1b, gpipe, zero_bubble; with them interleaved; zbv where the config
 *                         has it
 *   virtual_stages        divisors of a stage's layers (interleaved), 2 (zbv)
 *   expert                divisors of the experts that divide the ranks of a stage
 *   strategy              ddp, zero1, zero2, fsdp, hsdp; where nothing is replicated ddp, or none, as the config has
 *                         it; with a pipeline zero2, fsdp and hsdp, which communicate in each micro-batch, only where
 *                         the config itself has them with a pipeline
 *   shard                 hsdp: every divisor of the replicas that is a power of two or fills a node
 *   micro_batch           divisors of a replica's share of the batch: all up to 8, then powers of two
 *   recompute             none, full, and selective where scores are kept (naive attention)
 *   recompute_layers      all, without a pipeline also half, and the config's own number
 *   sequence_parallel     both, with tensor
 *   tensor_overlap        both, with sequence_parallel, where the stack does it at all
 *   reshard_after_forward both (fsdp, hsdp)
 *   bucket_mb             the config's, 25, 100 (ddp, zero1, zero2); without overlap the last of them
 *   prefetch              the config's, 0, 1, 2 (fsdp, hsdp); without overlap the config's
 *   overlap               both
 *
 * Where the config gives layers_per_stage, it stays with the pipeline that it is for.
 */
#ifndef STEPSIM_SIM_SEARCH_SPACE_H
#define STEPSIM_SIM_SEARCH_SPACE_H

#include "base/vec.h"
#include "step/plan.h"

struct shape {
	int32_t value[PLAN_KEYS];            /* AUTO: shard unless hsdp; all recompute_layers. The variant's keys: 0 */
	double lower_bound_s, lower_bound_B; /* of all its variants (sim/search/lower_bound.h); filled by the search */
	/* Layers x micro-batches that are simulated for all its variants; 0: they are put together from pieces. Filled
	 * by the search. */
	double blocks;
	int32_t keys_changed; /* keys that differ from the config's; plans without bounds are tried in this order */
};

struct variant {
	double bucket_B;
	int64_t prefetch;
	bool overlap;
};
#define VARIANTS_MAX 8

struct search_space {
	struct config start; /* parsed; parallel.data is auto unless it is held */
	int64_t ranks;
	uint32_t held;
	VEC(struct shape) shapes; /* in the fixed order of keys */
	bool left_cuts;           /* pipelines with sharded stages (zero2, fsdp, hsdp) were left out */
	bool left_tensor;         /* tensor groups larger than a node were left out */
};

/* Fills *out, which the caller frees also after a failure. Fails with ST_RUN when memory is short. */
enum status search_space_create(const struct config *start, int64_t ranks, uint32_t held, struct search_space *out,
	struct error *e);
void search_space_free(struct search_space *s);

/* Fills v with the variants of a shape. Returns their number, at least 1. */
size_t search_variants(const struct search_space *s, const struct shape *shape, struct variant v[VARIANTS_MAX]);

/* Fills *out with the parsed config of a plan. */
void search_config(const struct search_space *s, const struct shape *shape, const struct variant *v,
	struct config *out);

#endif
