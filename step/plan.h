/* The plan in a parsed config: the keys that a search chooses, in words and as a file that can be loaded again. */
#ifndef STEPSIM_STEP_PLAN_H
#define STEPSIM_STEP_PLAN_H

#include <stdio.h>

#include "step/config.h"

enum plan_key {
	PLAN_STRATEGY, PLAN_SHARD, PLAN_TENSOR, PLAN_SEQUENCE_PARALLEL, PLAN_TENSOR_OVERLAP, PLAN_PIPELINE, PLAN_VIRTUAL_STAGES, PLAN_SCHEDULE, PLAN_CONTEXT, PLAN_EXPERT, PLAN_MICRO_BATCH, PLAN_RECOMPUTE,
	PLAN_RECOMPUTE_LAYERS, PLAN_BUCKET_MB, PLAN_OVERLAP, PLAN_PREFETCH, PLAN_RESHARD_AFTER_FORWARD, PLAN_KEYS
};

/* "parallel.tensor" */
const char *plan_key_path(enum plan_key k);

/* The keys that --set gave: 1 << enum plan_key each. */
uint32_t plan_held(const struct config *c);
bool plan_holds_data(const struct config *c); /* the same of parallel.data, which follows from the plan */

/* Integers, enums and bools as their number; bucket_mb in MiB. The key counts as given from now on (config.h: what a default or a stack chose may give way, what is given may not). */
void plan_put(struct config *c, enum plan_key k, double value);
double plan_get(const struct config *c, enum plan_key k);

/* The key's value as CONFIG.yaml has it. Returns buf. */
#define PLAN_VALUE 320
char *plan_value(const struct config *c, enum plan_key k, char buf[PLAN_VALUE]);

/* As if the config had given cluster.nodes and, where it is not 0, cluster.gpus_per_node. */
void plan_put_cluster(struct config *c, int64_t nodes, int64_t gpus_per_node);

/* Of a resolved config, what differs from the plainest: "tp 4 sp pp 2 dp 32 zero1 mb 2 selective". Returns buf. */
#define PLAN_WORDS 192
char *plan_words(const struct config *c, char buf[PLAN_WORDS]);

/* Writes what is given in a parsed config, plan included, as CONFIG.yaml; keys that its strategy does not use are left out, and files that it names get their whole path. `heading`: lines of comment, each with its "# "; NULL: none. */
enum status plan_write_yaml(const struct config *c, const char *heading, FILE *out, struct error *e);

#endif
