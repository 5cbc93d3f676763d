/* The plan in a parsed config: the keys that a search chooses, in words and as a file that can be loaded again. */
#ifndef STEPSIM_STEP_PLAN_H
#define STEPSIM_STEP_PLAN_H

#include <stdio.h>

#include "step/config/config.h"

/* X(id, section_key) */
#define PLAN_KEY_ROWS(X) \
	X(STRATEGY, parallel_strategy) \
	X(SHARD, parallel_shard) \
	X(TENSOR, parallel_tensor) \
	X(SEQUENCE_PARALLEL, parallel_sequence_parallel) \
	X(TENSOR_OVERLAP, parallel_tensor_overlap) \
	X(PIPELINE, parallel_pipeline) \
	X(VIRTUAL_STAGES, parallel_virtual_stages) \
	X(SCHEDULE, parallel_schedule) \
	X(CONTEXT, parallel_context) \
	X(EXPERT, parallel_expert) \
	X(EXPERT_TENSOR, parallel_expert_tensor) \
	X(EXPERT_OVERLAP, parallel_expert_overlap) \
	X(MICRO_BATCH, train_micro_batch) \
	X(RECOMPUTE, train_recompute) \
	X(RECOMPUTE_LAYERS, train_recompute_layers) \
	X(BUCKET_MB, parallel_bucket_mb) \
	X(OVERLAP, parallel_overlap) \
	X(PREFETCH, parallel_prefetch) \
	X(RESHARD_AFTER_FORWARD, parallel_reshard_after_forward)

#define PLAN_KEY(id, key) PLAN_##id,
enum plan_key { PLAN_KEY_ROWS(PLAN_KEY) PLAN_KEYS };
#undef PLAN_KEY

/* Returns the key's path: "parallel.tensor". */
const char *plan_key_path(enum plan_key k);

/* True when the strategy has a use for the key. */
bool plan_key_used(enum plan_key k, enum strategy s);

/* Returns the keys that --set gave, 1 << enum plan_key each. */
uint32_t plan_held(const struct config *c);
bool plan_holds_data(const struct config *c); /* the same for parallel.data, which follows from the plan */

/* Sets a key: integers, enums and bools as their number, bucket_mb in bytes. The key counts as given from now on, so
 * that no default replaces it (config.h). */
void plan_put(struct config *c, enum plan_key k, double value);
double plan_get(const struct config *c, enum plan_key k);

/* Writes the key's value as CONFIG.yaml has it. Returns buf. */
#define PLAN_VALUE 320
char *plan_value(const struct config *c, enum plan_key k, char buf[PLAN_VALUE]);

/* Sets cluster.nodes and, unless it is 0, cluster.gpus_per_node, as if the config had given them. */
void plan_put_cluster(struct config *c, int64_t nodes, int64_t gpus_per_node);

/* Writes the plan of a resolved config without the parts that have their simplest value: "tp 4 sp pp 2 dp 32 zero1 mb 2
 * selective". Returns buf. */
#define PLAN_WORDS 192
char *plan_words(const struct config *c, char buf[PLAN_WORDS]);

/* Returns which of the words that need an explanation stand in what plan_words wrote: a set, to be joined by |. */
uint32_t plan_terms(const char *words);
/* Writes a line that explains them: "Words of a plan: tp: tensor-parallel ranks; mb: ...". Writes nothing for the empty
 * set. */
void plan_terms_explain(uint32_t terms, FILE *out);

/* Writes the given keys of a parsed config and its plan as CONFIG.yaml. Keys that the strategy does not use are left
 * out; files get their whole path. `heading` has lines of comment, each with its "# "; NULL: none. */
enum status plan_write_yaml(const struct config *c, const char *heading, FILE *out, struct error *e);

#endif
