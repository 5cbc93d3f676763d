/* Reports of a step: text, JSON, CSV, Chrome trace, page. Pure functions of an outcome. */
#ifndef STEPSIM_REPORT_REPORT_H
#define STEPSIM_REPORT_REPORT_H

#include <jansson.h>
#include <stdio.h>

#include "base/version.h"
#include "step/bench.h"
#include "step/result.h"

/* Prints the table: prediction, measurement and error of the step, its partition, each op class, overlap, memory.
 * Without a measurement it has the prediction alone. */
enum status report_text(const struct outcome *o, FILE *out, struct error *e);

/* Prints prices for -v: count, FLOP, bytes, time and achieved rate, by the name under which ops are calibrated and
 * priced (step/work.h; a collective's is name.group size). */
enum status report_prices(const struct outcome *o, FILE *out, struct error *e);

/* Prints the parts of the memory's overhead for -v, and what the stack holds besides the program's buffers, by name.
 * The figures are those of the first stage's peak. */
enum status report_memory(const struct outcome *o, FILE *out, struct error *e);

/* Prints the advice in a few lines, below the table. The outcome must have advice. */
enum status report_advice(const struct outcome *o, FILE *out, struct error *e);
/* Prints the rest of the advice and the sensitivities, for -v. */
enum status report_advice_more(const struct outcome *o, FILE *out, struct error *e);
/* Adds the keys of advice to "prediction"; `a` is NULL if none was asked for. */
void report_put_advice(json_t *prediction, const struct advice *a, bool *good);

/* Returns the JSON of docs/reference.md: a new reference, or NULL when out of memory. */
json_t *report_json(const struct outcome *o);
/* Returns the value of "prediction" alone: a new reference, or NULL when out of memory. */
json_t *report_side_json(const struct result *r);
/* Returns the value of "interval90_parts", those above 0: a new reference, or NULL when out of memory. */
json_t *report_interval_parts(const double part[INTERVAL_COUNT]);

/* Writes the table's rows as CSV: part,key,count,predicted,measured,error,bound. Keys, units and errors are those of
 * the JSON; a cell without a value is empty. "-" is standard output, also below. */
enum status report_csv(const struct outcome *o, const char *path, struct error *e);

/* Writes both timelines in Chrome's trace format (Trace Event Format, Google 2016): one process an actor, one thread a
 * lane. */
enum status report_trace(const struct outcome *o, const char *path, struct error *e);

/* Writes the predicted use of memory as a snapshot of PyTorch's allocator (torch.cuda.memory._dump_snapshot), which
 * pytorch.org/memory_viz opens: a pickle, protocol 2, of nothing but dicts, lists, texts and whole numbers. Each
 * pipeline stage is a device. Memory outside the allocator (the CUDA context, NCCL's buffers) is in no snapshot. */
enum status report_snapshot(const struct outcome *o, const char *path, struct error *e);

/* Writes one page that opens offline: verdict, timeline, partition, roofline, memory, table, config. */
enum status report_html(const struct outcome *o, const char *path, struct error *e);

/* Write the result of `stepsim bench` as nccl-tests' table with the predicted columns, as JSON and as CSV. `system` is
 * borrowed and may be NULL. */
enum status report_bench_text(const struct bench_table *t, FILE *out, struct error *e);
enum status report_bench_json(const struct bench_table *t, json_t *system, const char *path, struct error *e);
enum status report_bench_csv(const struct bench_table *t, const char *path, struct error *e);

/* Returns the commit that this binary was built from. */
const char *report_commit(void);

/* Writes a JSON value to a path, "-" is standard output. */
enum status report_write_json(const json_t *j, const char *path, struct error *e);

/* Writes a cell of a CSV table, quoted if it needs to be. */
void report_csv_cell(const char *text, FILE *out);
/* Writes a comma and a number with `digits` digits; an empty cell if it is not finite. */
void report_csv_number(double v, int digits, FILE *out);
/* The columns of a step, and a step in them: a comma before, and one behind. */
#define REPORT_CSV_STEP \
	"ranks,step_time_s,interval90_low_s,interval90_high_s,tokens_per_s,mfu,exposed_comm_s,overlap,total_bytes,fits"
void report_csv_step(const struct result *p, int64_t ranks, FILE *out);

#endif
