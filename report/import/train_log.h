/* Logs of training runs: the times of steps as torchtitan (components/metrics.py: "step: 10  loss: ...  tps: 7,012
 * mfu: ..."), Megatron-LM (training.py: "iteration 10/ 1000 | ... | elapsed time per iteration (ms): 1147.6 |"),
 * nanotron (logging: "iteration: 10 / 100 | ... | elapsed_time_per_iteration_ms: 4.71K |"), nanoGPT (train.py: "iter
 * 10: loss 4.08, time 561.94ms"), NeMo, MaxText, torchtune, DeepSpeed and transformers' Trainer with its kin (Axolotl,
 * LLaMA-Factory, TRL) print them: report/import/train_log_lines.c. A line tells the mean since the one before,
 * nanoGPT's, NeMo's and MaxText's its own step, a bar of the Trainer's that of a few.
 * Colours, prefixes of launchers and all other lines are passed over. */
#ifndef STEPSIM_REPORT_IMPORT_TRAIN_LOG_H
#define STEPSIM_REPORT_IMPORT_TRAIN_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "base/vec.h"

/* One line; of several ranks' lines of a step the slowest. */
struct train_log_step {
	int64_t step, global_batch;          /* global_batch: 0: not printed */
	int64_t of;                          /* the steps of a bar; 0: it is none */
	double time_s, tokens_per_s_per_gpu; /* 0: not printed; of each line one is, */
	double samples_per_s;                /* or this, of all ranks */
	double stamp_s;                      /* when it was printed; 0: not printed */
	bool skipped;                        /* iterations without an optimizer step are in it (Megatron) */
	int line;
};

struct train_log {
	char path[512];
	const char *framework;            /* "torchtitan", "Megatron-LM" */
	double memory_B;                  /* the most that the allocator had reserved of a GPU; 0: not printed */
	VEC(struct train_log_step) steps; /* in order */
};

/* ST_INPUT: the file cannot be read, or holds no such line. The caller frees *out with train_log_free, also after a
 * failure. */
enum status train_log_read(const char *path, struct train_log *out, struct error *e);
void train_log_free(struct train_log *log);

/* What the steps after the warm-up say together. */
struct train_log_summary {
	size_t lines, left_out; /* lines that count; those of the warm-up and with skipped iterations */
	int64_t first, last;    /* steps of the lines that count */
	double median_s, p10_s, p90_s, min_s, max_s;
	double tokens_per_s_per_gpu;
	double stamped_s;     /* a step by the times at which lines were printed, median; 0: not known */
	int64_t global_batch; /* 0: not printed; of the last line */
};

/* Sums up the lines. `tokens` and `sequences` are those of a step, of all `ranks`, as the config has them: torchtitan
 * prints no times, but tokens a second and GPU, DeepSpeed sequences a second. The warm-up is the first line, that of
 * each new start, and all lines up to step `warmup`. A log of one line counts with it. ST_INPUT: no line is left. */
enum status train_log_sum(const struct train_log *log, double tokens, double sequences, double ranks, int64_t warmup,
	struct train_log_summary *out, struct error *e);

#endif
