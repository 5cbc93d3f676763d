/* `stepsim compare`: one workload on several systems, one row each, and their ranking. A row has speed, memory, power,
 * time, energy and money. */
#ifndef STEPSIM_REPORT_COMPARE_H
#define STEPSIM_REPORT_COMPARE_H

#include <jansson.h>
#include <stdio.h>

#include "base/vec.h"
#include "report/money.h"
#include "step/config/config.h"
#include "step/plan.h"
#include "step/result.h"

#define COMPARE_ROWS_MOST 256

/* A number from the config or from a published source. */
struct compare_figure {
	double value;     /* of the whole row, or by itself; NAN: not known */
	double each;      /* of one `of` */
	const char *of;   /* "host", "GPU", or NULL: by itself */
	char source[256]; /* its source; if it is not known: why */
	bool unverified;  /* a number without a checked source */
	bool partial;     /* of the GPUs alone, without their hosts */
};

/* The quantity that is equal in all rows. */
enum compare_mode { COMPARE_GPUS, COMPARE_BUDGET, COMPARE_TARGET };
/* The figure that ranks the rows. */
enum compare_basis { BY_OWNED, BY_RENTED, BY_TIME, BASIS_COUNT };

struct compare_row {
	char name[128];        /* as the user named the system */
	char full[128];        /* as it is sold */
	int64_t gpus;          /* at work */
	int64_t host_gpus;     /* that a host has */
	double hosts;          /* that are counted: whole ones, or the share of one of which fewer GPUs work */
	bool fits;             /* a plan that fits was predicted; else `reason` says why not */
	struct config *config; /* owned: resolved, with the plan; NULL: there is none */
	struct result *
		predicted; /* owned; NULL: there is none. If the plan does not fit, its memory is what the plan needs */
	json_t *system;    /* owned: what was taken, and from where */
	char plan[PLAN_WORDS];
	char reason[600];
	uint64_t missing_B;  /* a GPU, of the plan that needs least; 0: not for want of memory */
	char size_note[900]; /* how its size was found, if that needs a note */
	int64_t plans_left;  /* plans that its search left out (sim/search/search.h) */
	double spent_usd;    /* of the budget; NAN: no budget, or no price */
	struct compare_figure power_W, rent_usd_per_hour, price_usd;
	struct money money; /* of the tokens asked for */
	/* COMPARE_TARGET: the same system with fewer hosts and another batch, which reach the target. Owned. */
	struct compare_row *near;
	size_t n_near;
	/* compare_rank fills: */
	size_t rank;   /* from 1; 0: not ranked */
	bool overlaps; /* its interval overlaps that of the row ranked before it */
};

struct compare {
	enum compare_mode mode;
	bool own_sizes; /* COMPARE_GPUS: some row names its own size */
	bool fixed_plan;
	int64_t gpus; /* COMPARE_GPUS: of each row */
	double budget_usd;
	double tokens;     /* that time, energy and money are for */
	bool tokens_given; /* else 1e12 */
	double within_s;   /* COMPARE_TARGET: tokens / within_s is the rate that is needed */
	struct compare_figure amortize_years, power_usd_per_kwh, pue, co2_kg_per_kwh;
	VEC(struct compare_row) rows;
	enum compare_basis basis; /* compare_rank fills it and the next */
	char basis_note[336]; /* why it is not money, or not the price of purchase, or what a budget buys unlike; "" if
	                        nothing is */
};

/* Returns the share of time in which a job makes steps; 1 without failures in the config. */
double compare_goodput(const struct result *p);

/* Returns the time that the tokens take at a row's rate, s. The row must fit. */
double compare_time(const struct compare *c, const struct compare_row *r);

/* Fills each row's money from its prediction and figures. */
void compare_count(struct compare *c);

/* Returns the steps in which the plan of the first row trains on the tokens. */
double compare_steps(const struct compare *c);

/* Sorts the rows: those that fit by the basis, then those that miss memory, least first, then the others. Equal rows
 * keep their order. The basis is the cost of owning if all rows have comparable figures, else the cost of renting, else
 * time. At an equal budget it is time. */
enum status compare_rank(struct compare *c, struct error *e);

/* Returns whether the figure is known for all rows that fit, and comparable: of whole hosts everywhere, or of GPUs
 * alone everywhere. Writes to `why` what is missing; "" if nothing is. */
bool compare_known(const struct compare *c, enum compare_basis basis, char why[160]);

/* Returns the figure that ranks a row, in s or USD, and its 90 % interval, scaled from that of the step. The row must
 * fit. */
double compare_value(const struct compare_row *r, enum compare_basis basis, double interval[2]);

void compare_row_free(struct compare_row *r); /* what it owns, which is NULL from then on */
void compare_free(struct compare *c);         /* rows and what they own */

enum status report_compare_text(const struct compare *c, FILE *out, struct error *e);
/* Write to `path`; "-" is standard output, also below. */
enum status report_compare_json(const struct compare *c, const char *path, struct error *e);
enum status report_compare_csv(const struct compare *c, const char *path, struct error *e);
/* Draws the days for the tokens of each row that fits, with intervals. ST_INPUT if no row fits. */
enum status report_compare_svg(const struct compare *c, const char *path, struct error *e);
/* Writes a page: the ranking, bars of time and money with intervals, both tables, notes and sources. */
enum status report_compare_html(const struct compare *c, const char *path, struct error *e);

#endif
