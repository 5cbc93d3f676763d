/* The result of `stepsim bench`: one row a size, measured out of place and in place, with what was expected. exec/
 * measures, cli/ adds the prediction, report/ prints. */
#ifndef STEPSIM_STEP_BENCH_H
#define STEPSIM_STEP_BENCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/dtype.h"
#include "base/status.h"
#include "step/program.h"

/* The collective's calls at each size from min_B to max_B, which grows by `factor`. */
struct bench_plan {
	enum collective coll;
	enum dtype dtype;
	uint64_t min_B, max_B; /* of the full buffer */
	int64_t factor;        /* at least 2 */
	int64_t iters, warmup; /* calls a row; iters at least 1 */
	bool check;
};

struct bench_side {
	bool done;      /* alltoall and sendrecv are not done in place */
	double time_s;  /* of one call: the mean over the calls, of the slowest rank */
	uint64_t wrong; /* elements, over all ranks */
};

struct bench_row {
	uint64_t bytes; /* of the full buffer */
	uint64_t count; /* elements as nccl-tests counts them: of one part where the buffer is cut into parts */
	struct bench_side out_of_place, in_place;
	double predicted_s; /* NAN: none */
	bool latency;      /* bound by latency: twice the size takes hardly longer, so its rate says nothing of links */
	double estimate_s; /* NCCL's own estimate; NAN: none */
	char algorithm[24], protocol[16]; /* NCCL's choice; "": not known */
	int channels;
};

struct bench_place {
	char host[64], device[128];
	int64_t pid;
};

struct bench_table {
	struct bench_plan plan;
	int64_t ranks;
	bool gpus, doubles; /* doubles: nothing was measured, times are not to be shown */
	bool meaningless;   /* several ranks a GPU */
	size_t n;
	struct bench_row *rows;
	struct bench_place *places; /* by rank */
	char limited_by[200];       /* "": unknown */
	char unpredicted[512];      /* why there is no prediction; "" */
};
void bench_free(struct bench_table *t); /* NULL-safe members */

/* Fills the sizes of the rows, without times. Parts are whole elements, and equal sizes appear once. The caller frees
 * *out with bench_free. Fails with ST_RUN when memory is short. */
enum status bench_sizes(const struct bench_plan *plan, int64_t ranks, struct bench_table *out, struct error *e);

/* Return nccl-tests' algbw, bytes over time, and busbw, wire bytes over time (collective_wire_factor). NAN where
 * nothing was measured. */
double bench_algbw_Bps(const struct bench_row *r, const struct bench_side *side);
double bench_busbw_Bps(const struct bench_table *t, const struct bench_row *r, const struct bench_side *side);

/* Returns (predicted - measured) / measured, out of place; NAN where either is missing. */
double bench_error(const struct bench_table *t, const struct bench_row *r);

/* Writes "normal", "slow: 43 % of expected", "fast: 180 % of expected" or "latency"; "" without a prediction. Returns
 * buf. */
#define BENCH_VERDICT 48
const char *bench_verdict(const struct bench_table *t, const struct bench_row *r, char buf[BENCH_VERDICT]);

#define BENCH_LARGE_B ((uint64_t)1 << 20) /* rows from here on count for --max-error and the last verdict */

struct bench_summary {
	uint64_t wrong;
	double busbw_Bps; /* mean over all rows and sides */
	double error;     /* median of |error| over large rows; NAN: there is none */
	double share;     /* median of expected over measured time over large rows that are no matter of latency; NAN */
	const struct bench_row *largest; /* of those; NULL */
};
enum status bench_summarize(const struct bench_table *t, struct bench_summary *out, struct error *e);

#endif
