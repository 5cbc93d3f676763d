/* What a user sees: text, JSON, CSV, Chrome trace. Pure functions of an outcome. */
#ifndef STEPSIM_REPORT_REPORT_H
#define STEPSIM_REPORT_REPORT_H

#include <jansson.h>
#include <stdio.h>

#include "base/version.h"
#include "step/bench.h"
#include "step/result.h"

/* The table: prediction | measurement | error for the step, its partition, each op class, overlap, memory. Without a measurement: the prediction alone. */
enum status report_text(const struct outcome *o, FILE *out, struct error *e);

/* Prices by the name under which an op is calibrated and priced (step/work.h; collectives: name.group size): count, FLOP, bytes, time, achieved rate. For -v. */
enum status report_prices(const struct outcome *o, FILE *out, struct error *e);

/* What the memory's overhead consists of, and what the stack holds beside the program's buffers, by name: the first stage's peak. For -v. */
enum status report_memory(const struct outcome *o, FILE *out, struct error *e);

/* What would shorten the step, in a few lines: the end of the table. The outcome has advice. */
enum status report_advice(const struct outcome *o, FILE *out, struct error *e);
/* The rest of it, and the sensitivities. For -v. */
enum status report_advice_more(const struct outcome *o, FILE *out, struct error *e);
/* The keys that it has in "prediction"; NULL: none was asked for. */
void report_put_advice(json_t *prediction, const struct advice *a, bool *good);

/* INTERFACE.md's JSON; new reference, NULL when out of memory. */
json_t *report_json(const struct outcome *o);
/* Its value for "prediction" alone. */
json_t *report_side_json(const struct result *r);

/* The table's rows as CSV: part,key,count,predicted,measured,error,bound; keys, units and error as in the JSON; a cell without a value is empty. */
enum status report_csv(const struct outcome *o, const char *path, struct error *e);

/* Chrome trace event format (Trace Event Format, Google 2016), predicted and measured: one process an actor, one thread a lane. */
enum status report_trace(const struct outcome *o, const char *path, struct error *e);

/* One self-contained page that opens offline: verdict, timeline, where the time goes, roofline, memory, table, config. */
enum status report_html(const struct outcome *o, const char *path, struct error *e);

/* `stepsim bench`: nccl-tests' table with ours beside it; the same as JSON (with `system`, borrowed, may be NULL) and as CSV. "-" is standard output. */
enum status report_bench_text(const struct bench_table *t, FILE *out, struct error *e);
enum status report_bench_json(const struct bench_table *t, json_t *system, const char *path, struct error *e);
enum status report_bench_csv(const struct bench_table *t, const char *path, struct error *e);

/* The commit that this binary was built from. */
const char *report_commit(void);

/* Writes a JSON value to a path, "-" is standard output. */
enum status report_write_json(const json_t *j, const char *path, struct error *e);

/* A cell of a CSV table, quoted where it needs to be. */
void report_csv_cell(const char *text, FILE *out);
/* A comma and a number with so many digits; an empty cell where it is not finite. */
void report_csv_number(double v, int digits, FILE *out);

#endif
