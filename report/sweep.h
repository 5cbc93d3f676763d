/* `stepsim sweep`: values of config keys, all combinations or taken in step, each predicted. */
#ifndef STEPSIM_REPORT_SWEEP_H
#define STEPSIM_REPORT_SWEEP_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/vec.h"
#include "step/result.h"

#define SWEEP_AXES 8
#define SWEEP_ROWS_MOST 100000

struct sweep_axis {
	const char *key;    /* "parallel.bucket_mb" */
	const char **value; /* as given */
	size_t n;
};

struct sweep_row {
	size_t at[SWEEP_AXES]; /* which value of each axis */
	int64_t ranks;
	struct result *predicted; /* owned; NULL: `reason` says why there is none */
	char *reason;             /* owned */
};

struct sweep {
	const char *config; /* its path; borrowed */
	struct sweep_axis axis[SWEEP_AXES];
	size_t axes;
	bool zip;                   /* rows take the axes' values in step; else all combinations */
	VEC(struct sweep_row) rows; /* of combinations: the last axis varies fastest */
};

enum status report_sweep_text(const struct sweep *s, FILE *out, struct error *e);
/* Writes seconds, bytes and tokens per second. The columns are the varied keys, then keys of the JSON
 * (docs/reference.md). A path of "-" is standard output, also below. */
enum status report_sweep_csv(const struct sweep *s, const char *path, struct error *e);
enum status report_sweep_json(const struct sweep *s, const char *path, struct error *e);
/* Draws the step time over the first axis, with one line for each combination of the others. A single line has its 90 %
 * interval as a band. The axis is logarithmic if its numbers span more than a decade; words are spaced evenly. ST_INPUT
 * if fewer than two points were predicted. */
enum status report_sweep_svg(const struct sweep *s, const char *path, struct error *e);
/* Writes a page with that curve, those of tokens/s, exposed communication and memory, and the table. If the ranks vary,
 * tokens/s has the line of perfect scaling. */
enum status report_sweep_html(const struct sweep *s, const char *path, struct error *e);

#endif
