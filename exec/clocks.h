/* The GPUs' clocks during a run, summed up from all ranks' samples. */
#ifndef STEPSIM_EXEC_CLOCKS_H
#define STEPSIM_EXEC_CLOCKS_H

#include "exec/cuda/backend.h"
#include "step/result.h"

/* `all`: by rank, n 0 where a GPU was not sampled. No communication. */
void clocks_sum(const struct gpu_samples *all, int64_t ranks, struct result_clocks *out);

/* In words, a line for each event: "rank 3's GPU was slowed in 50 % of 40 samples: power cap; its SMs ran at 75 % of
 * boost on average (2 of 8 GPUs)". `say` is called with each. */
void clocks_say(const struct result_clocks *c, void (*say)(void *ctx, const char *text), void *ctx);

#endif
