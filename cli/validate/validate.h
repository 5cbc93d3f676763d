/* The parts of `stepsim validate`: rows of published measurements, their predictions, and the summary of the errors.
 * Private to cli/. */
#ifndef STEPSIM_CLI_VALIDATE_VALIDATE_H
#define STEPSIM_CLI_VALIDATE_VALIDATE_H

#include <stdbool.h>
#include <stdio.h>

#include "base/csv.h"
#include "base/vec.h"
#include "report/import/nccl_log.h"
#include "step/config/config.h"
#include "step/framework.h"
#include "step/result.h"
#include "topology/machine.h"

/* ---- networks of a table (network.c) ---- */

/* NICs of a host. */
struct nics {
	int64_t count;
	double rate_Gbps; /* of one */
};
struct word_lists; /* lists.h */
/* Reads counts times rates: "4x100Gbps RoCE/node", "3.2 Tbps", "400Gb/s per GPU", "8x NDR". A rate without a count is
 * that of the whole host, unless it says GPU: one NIC a GPU, or a single one where none is sold at a GPU's share.
 * `gpus`: of a host. Returns false where the cell is blank or says no rate. */
bool network_read(const struct word_lists *lists, const char *cell, int64_t gpus, struct nics *out);
/* The class of the network, a file in configs/fabrics: `given` if it is not blank, else by the words of `inter`; NULL:
 * not named. */
const char *network_fabric(const struct word_lists *lists, const char *given, const char *inter);

enum network_known {
	NETWORK_NONE,    /* one host */
	NETWORK_NAMED,   /* the row says the rate */
	NETWORK_ASSUMED, /* that of the vendor's usual host */
};
const char *network_known_name(enum network_known n); /* "named", "assumed"; NULL for NETWORK_NONE */

/* The machine of a row: the system line (topology/catalogue/system.h), the hosts, and the used GPUs of each. */
struct row_system {
	char line[256];
	int64_t nodes, per_host;
	enum network_known network;
};
/* ST_INPUT: an unknown GPU, or GPUs that do not fill hosts. */
enum status system_words(const struct csv *t, size_t row, struct row_system *out, struct error *e);

/* ---- one row and its prediction ---- */

struct judged {
	const char *id, *source, *use; /* cells of the table */
	int line;
	double measured_s, predicted_s, interval90_s[2];
	double interval_part[INTERVAL_COUNT]; /* as struct result has them: without what only a table does not say */
	double measured_memory_B, predicted_memory_B; /* of what the source reports; 0: not known */
	bool fits;                                    /* predicted: the whole fits in the device's memory */
	bool tight; /* it fits, but fills more than a search for plans does where it can */
	enum network_known network;
	char reason[256]; /* why nothing is predicted; "" when it is */
};
typedef VEC(struct judged) judged_rows;

/* Returns the relative error of the prediction. */
double judged_error(const struct judged *j);
bool judged_covered(const struct judged *j); /* whether the measurement lies in the predicted interval */

/* ---- cells as people write them (tidy.c) ---- */

/* Cuts blanks around each cell, and empties those that say nothing ("N/A", "-"); of vp they are 1. */
void cells_tidy(struct csv *t);
/* The number of a cell of a table of steps: "1,024", "~3.7k" tokens/s, "8K" of seq_len (8192), "350 ms". 0: blank. */
double cell_number(const struct csv *t, size_t row, const char *column);

/* The same as a whole number, of at most 1e15 either way: no count is larger. */
int64_t cell_whole(const struct csv *t, size_t row, const char *column);
/* ST_INPUT: a cell of the row that should hold a number holds none, with what is accepted. */
enum status cells_check_numbers(const struct csv *t, size_t row, struct error *e);

/* ---- words of a table in terms of the config (cells.c) ---- */

/* A word of the config, and a further key: "fp8" and "fp8_recipe: rowwise". NULL: not said. */
struct meaning {
	const char *value, *more;
};
/* Reads a cell of sharding, dtype, optimizer, attention, act_ckpt, mlp, seq_parallel, tied_emb or adapter. A blank cell
 * has its column's default; sharding: zero1 with an optimizer that is distributed. ST_INPUT: an unknown word, with the
 * known ones. */
enum status cell_read(const struct csv *t, size_t row, const char *column, struct meaning *out, struct error *e);

/* Whether the GPU multiplies in tf32, as Ampere and later do (words.c). */
bool multiplies_tf32(const char *gpu);

/* ---- the config of a row (row_config.c) ---- */

/* Writes the row's config as the text of a file, which the caller frees. tight_memory: recompute if the source leaves
 * that open. ST_INPUT: a cell that cannot be mapped. */
enum status row_config_write(const struct csv *t, size_t row, const struct framework *f, bool tight_memory, char **text,
	struct error *e);
/* Whether the row leaves open what is recomputed, so that it follows from what fits in memory. */
bool row_recomputes_by_fit(const struct csv *t, size_t row, const struct framework *f);

/* ---- predicting (step_row.c) ---- */

/* The machines of all rows; many rows share one. */
struct machines;
struct machines *machines_create(void);
void machines_destroy(struct machines *m); /* NULL-safe */
/* per_host: GPUs of a host in use; 0: all. */
enum status machines_find(struct machines *m, const char *line, int64_t nodes, int64_t per_host,
	const struct machine **out, struct error *e);

/* Predicts one row of a table of steps. A fault of the row becomes its `reason`; only ST_RUN is returned. */
enum status step_row_judge(const struct csv *t, size_t row, const struct frameworks *known, struct machines *m,
	struct judged *out, struct error *e);

/* ---- tables of collectives (collective_row.c) ---- */

struct judged_collective {
	const char *id, *use;    /* cells of the table; use: "" is counted in the totals */
	const char *collective;  /* its name here; the cell where it is unknown */
	char fabric[NETWORK_ID]; /* in configs/fabrics, between hosts; "": one host */
	char machine[64];        /* the id without its last number */
	int line;
	int64_t ranks;
	double bytes, measured_s, predicted_s, interval90_s[2];
	double busbw_Bps; /* measured, by nccl-tests' convention */
	enum network_known network;
	const char *algorithm, *protocol;
	int channels;
	bool best; /* the fastest of its machine, collective, ranks and size */
	char reason[256];
};
typedef VEC(struct judged_collective) judged_collectives;

#define LOG_INTRA "as sold" /* the column intra where a log says the GPU alone: joined as the catalogue has them */
bool is_table_of_collectives(const struct csv *t);
/* Makes such a table of logs. `system`: the machine that they ran on, as cluster.system; NULL: what the logs say of it
 * (log_table.c). The caller frees it with csv_free. */
enum status log_table(const nccl_logs *logs, const char *system, struct csv *out, struct error *e);
/* The machine of a row: the column `system`, or the system line of the hosts, their number, and the used GPUs of
 * each. ST_INPUT: an unknown word. */
struct collective_run {
	char line[256];
	int64_t hosts, per_host, ranks;
	enum network_known network;
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
 * mean signed error, coverage. Memory by source, assumed networks and the rows without a prediction follow. */
enum status summary_print(const judged_rows *rows, FILE *out, struct error *e);
/* Prints how many rows have a network that is assumed, and the first; nothing where none has. */
enum status assumed_print(size_t n, const char *first, FILE *out, struct error *e);

#endif
