/* The parts of `stepsim validate`: rows of published measurements, their predictions, and the summary of the errors.
 * Private to cli/. */
#ifndef STEPSIM_CLI_VALIDATE_VALIDATE_H
#define STEPSIM_CLI_VALIDATE_VALIDATE_H

#include <stdbool.h>
#include <stdio.h>

#include "base/csv.h"
#include "base/vec.h"
#include "step/config.h"
#include "topology/machine.h"

/* ---- one row and its prediction ---- */

struct judged {
	const char *id, *source, *use; /* cells of the table */
	int line;
	double measured_s, predicted_s, interval90_s[2];
	double measured_memory_B, predicted_memory_B; /* of what the source reports; 0: not known */
	bool fits;                                    /* predicted: the whole fits in the device's memory */
	char reason[256];                             /* why nothing is predicted; "" when it is */
};
typedef VEC(struct judged) judged_rows;

/* Returns the relative error of the prediction. */
double judged_error(const struct judged *j);
bool judged_covered(const struct judged *j); /* whether the measurement lies in the predicted interval */

/* ---- words of a table in terms of the config (words.c) ---- */

/* The config for a word of the column `framework`: a stack, and settings that such a source does not print. */
struct framework_words {
	const char *begins; /* the cell begins with this */
	const char *stack, *bf16_stack /* where the row says bf16; NULL: no other */, *position, *attention;
	const char *recompute; /* where act_ckpt is blank; "fit": none where that fits in memory, else full */
	bool bias;
	bool fsdp;        /* zero2 means FSDP's SHARD_GRAD_OP: gathered before forward, kept until backward is over */
	bool interleaves; /* a blank vp with pp > 1 means 5 if that divides the layers, else 2 */
	bool reports_allocated; /* mem_gb is PyTorch's max_memory_allocated of rank 0 in GiB; else all that the device
	                           holds, in GB */
	bool reduces_narrow; /* gradients are reduced in the compute format (FSDP1 with MixedPrecision's reduce_dtype,
	                        InternLM) */
	bool half_weights; /* with dtype fp16 also weights and gradients are fp16, with fp32 master weights (apex.amp's
	                      O2, as NVIDIA's BERT scripts set it) */
	bool ddp_overlaps; /* without ZeRO gradients are reduced during the backward pass in buckets of 25 MiB
	                      (src/nanotron/config/config.py: ddp_bucket_cap_mb) of bf16 parameters, which torch counts,
	                      and so 50 of the fp32 sums that its hook reduces (get_fp32_accum_hook); with it they are
	                      not */
};
const struct framework_words *framework_words(const char *cell); /* NULL: unknown */
const char *strategy_words(const char *sharding,
	bool *known);                                 /* of `sharding`; NULL with *known: as one replica needs it */
bool multiplies_tf32(const char *gpu);                /* Ampere and later do */
const char *dtype_words(const char *cell, bool tf32); /* NULL: unknown */

/* Returns the synthetic line (topology/catalogue/system.h) and the hosts of a row's machine. ST_INPUT: an unknown GPU
 * or network. */
enum status system_words(const struct csv *t, size_t row, char line[256], int64_t *nodes, int64_t *per_host,
	struct error *e);

/* ---- predicting (step_row.c) ---- */

/* The machines of all rows; many rows share one. */
struct machines;
struct machines *machines_create(void);
void machines_destroy(struct machines *m); /* NULL-safe */
/* per_host: GPUs of a host in use; 0: all. */
enum status machines_find(struct machines *m, const char *line, int64_t nodes, int64_t per_host,
	const struct machine **out, struct error *e);

/* Predicts one row of a table of steps. A fault of the row becomes its `reason`; only ST_RUN is returned. */
enum status step_row_judge(const struct csv *t, size_t row, struct machines *m, struct judged *out, struct error *e);
/* Writes the row's config as the text of a file, which the caller frees. tight_memory: recompute if the source leaves
 * that open. ST_INPUT: a cell that cannot be mapped. */
enum status step_row_config(const struct csv *t, size_t row, bool tight_memory, char **text, struct error *e);

/* ---- tables of collectives (collective_row.c) ---- */

struct judged_collective {
	const char *id, *collective, *use; /* cells of the table; use: "" is counted in the totals */
	char machine[64];                  /* the id without its last number */
	int line;
	int64_t ranks;
	double bytes, measured_s, predicted_s, interval90_s[2];
	const char *algorithm, *protocol;
	int channels;
	bool best; /* the fastest of its machine, collective, ranks and size */
	char reason[256];
};
typedef VEC(struct judged_collective) judged_collectives;

bool is_table_of_collectives(const struct csv *t);
/* The machine of a row: the synthetic line of the hosts, their number, and the used GPUs of each. ST_INPUT: an unknown
 * word. */
struct collective_run {
	char line[256];
	int64_t hosts, per_host, ranks;
	bool one_process;
	int version; /* 21800: NCCL 2.18; 0: not printed */
};
enum status collective_words(const struct csv *t, size_t row, struct collective_run *out, struct error *e);
/* Predicts one row of a table of collectives. A fault of the row becomes its `reason`; only ST_RUN is returned. */
enum status collective_row_judge(const struct csv *t, size_t row, struct machines *m, struct judged_collective *out,
	struct error *e);
void collectives_mark_best(judged_collectives *rows);
/* Prints the errors by machine, collective and range of sizes, over all rows and over the best repeats. The totals and
 * the rows without a prediction follow. */
enum status collectives_print(const judged_collectives *rows, FILE *out, struct error *e);

/* ---- the rows (rows.c) ---- */

/* Print one line a row: predicted, measured, error, interval and whether the measurement lies outside, or the reason.
 * An empty line ends them. */
enum status rows_print(const judged_rows *rows, FILE *out, struct error *e);
enum status collective_rows_print(const judged_collectives *rows, FILE *out, struct error *e);
/* Write the rows as CSV with the keys of the JSON; "-" is standard output. */
enum status rows_csv(const judged_rows *rows, const char *path, struct error *e);
enum status collective_rows_csv(const judged_collectives *rows, const char *path, struct error *e);

/* ---- the summary (summary.c) ---- */

/* Prints the summary over all rows, each use and each source: rows, mean, median, 90th percentile and worst |error|,
 * mean signed error, coverage. Memory by source and the rows without a prediction follow. */
enum status summary_print(const judged_rows *rows, FILE *out, struct error *e);

#endif
