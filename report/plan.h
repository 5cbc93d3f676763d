/* `stepsim plan`: the best plans that a search found, the config's own plan, and the Pareto front of time and memory.
 */
#ifndef STEPSIM_REPORT_PLAN_H
#define STEPSIM_REPORT_PLAN_H

#include <jansson.h>
#include <stdio.h>

#include "step/plan.h"
#include "step/result.h"

struct plan_row {
	const struct config *config;    /* resolved */
	const struct result *predicted; /* in full */
};

struct plan_point {
	const struct config *config; /* resolved */
	double step_s;
	uint64_t memory_B;
};

struct plan_report {
	const char *system;  /* in words, for headings */
	json_t *system_json; /* may be NULL */
	int64_t ranks;
	const struct plan_row *row; /* fastest first */
	size_t rows;                /* 0: nothing fits */
	struct plan_row start;      /* predicted NULL: start_reason says why it is illegal */
	const char *start_reason;
	struct plan_row least; /* if nothing fits: the plan that needs the least memory; else predicted is NULL */
	uint64_t missing_B;    /* of it */
	const struct plan_point *point; /* slowest first: least memory first */
	size_t points;
	double front; /* longest step of the front over the best plan's step */
	int64_t plans, illegal, too_large, pruned, left, timed; /* left: not looked at */
	bool exhaustive;
	double memory_share;         /* share of a device's memory that plans may use */
	double usual_share;          /* the same if some plan needs no more */
	bool left_cuts, left_tensor; /* not searched: zero2, fsdp and hsdp inside a pipeline; tensor groups larger than
	                                a node */
				     /* all borrowed */
};

enum status report_plan_text(const struct plan_report *p, FILE *out, struct error *e);
/* Writes one row a plan: the plan, its keys, then the columns of sweep's CSV. "-" is standard output, also below. */
enum status report_plan_csv(const struct plan_report *p, const char *path, struct error *e);
/* Writes the JSON of docs/reference.md. */
enum status report_plan_json(const struct plan_report *p, const char *path, struct error *e);
/* Draws step time over memory: the Pareto front, the plans of the table, the config's own. ST_INPUT if nothing fits. */
enum status report_plan_svg(const struct plan_report *p, const char *path, struct error *e);
/* Writes a page: the winner, that picture, the tables, the winner's config. */
enum status report_plan_html(const struct plan_report *p, const char *path, struct error *e);

#endif
