/* The plans that there are for a config on a number of ranks: the values that a search gives to each key. Those that
 * config_resolve refuses are illegal. A held key takes the config's value alone.
 *
 * The README (Which plan?) lists the values. tensor, context, micro_batch and recompute_layers take the config's own
 * besides. Where nothing is replicated the strategy is ddp, or none, as the config has it. Without overlap bucket_mb is
 * the last of its values, and prefetch the config's.
 *
 * Where the config gives layers_per_stage, it stays with the pipeline that it is for.
 */
#ifndef STEPSIM_SIM_SEARCH_SPACE_H
#define STEPSIM_SIM_SEARCH_SPACE_H

#include "base/vec.h"
#include "step/plan.h"

struct shape {
	int32_t value[PLAN_KEYS]; /* AUTO: shard unless hsdp; all recompute_layers. The variant's keys: 0 */
	/* sim/search/lower_bound.h; filled by the search. The first and the last are of all its variants. */
	double lower_bound_s, unfetched_bound_s, lower_bound_B;
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
