/* `stepsim compare`: one workload on several systems, each of them a row: speed, memory, power, time, energy and money, and their ranking. */
#ifndef STEPSIM_REPORT_COMPARE_H
#define STEPSIM_REPORT_COMPARE_H

#include <jansson.h>
#include <stdio.h>

#include "base/vec.h"
#include "report/money.h"
#include "step/config.h"
#include "step/result.h"

#define COMPARE_ROWS_MOST 256

/* A number that somebody published, or the config gave. */
struct compare_figure {
	double value;     /* of the whole row, or by itself; NAN: not known */
	double each;      /* of one `of` */
	const char *of;   /* "host", "GPU", or NULL: by itself */
	char source[256]; /* where it comes from; of one that is not known: why */
	bool unverified;  /* rests on memory */
	bool partial;     /* of the GPUs alone, without their hosts */
};

/* What is equal among the rows. */
enum compare_mode { COMPARE_GPUS, COMPARE_BUDGET, COMPARE_TARGET };
/* What ranks them. */
enum compare_basis { BY_OWNED, BY_RENTED, BY_TIME, BASIS_COUNT };

struct compare_row {
	char name[128];  /* as the user named the system */
	char full[128];  /* as it is sold */
	int64_t gpus;    /* at work */
	int64_t host_gpus; /* that a host has */
	double hosts;    /* that are counted: whole ones, or the share of one of which fewer GPUs work */
	bool fits;       /* a plan that fits was predicted; else `reason` says why not */
	struct config *config; /* owned: resolved, with the plan; NULL: there is none */
	struct result *predicted; /* owned; NULL: there is none. Of a plan that does not fit it says what memory it needs */
	json_t *system;  /* owned: what was taken, and from where */
	char plan[160];
	char reason[600];
	uint64_t missing_B; /* a GPU, of the plan that needs least; 0: not for want of memory */
	char size_note[256]; /* how its size came about, where that needs saying */
	int64_t plans_left;  /* that its search did not look at (sim/search.h) */
	double spent_usd;    /* of the budget; NAN: no budget, or no price */
	struct compare_figure power_W, rent_usd_per_hour, price_usd;
	struct money money;  /* of the tokens asked for */
	/* compare_rank fills: */
	size_t rank;         /* from 1; 0: not ranked */
	bool overlaps;       /* with the row ranked before it, which is then not surely better */
};

struct compare {
	enum compare_mode mode;
	bool own_sizes;    /* COMPARE_GPUS: some row names its own size */
	bool fixed_plan;
	int64_t gpus;      /* COMPARE_GPUS: of each row */
	double budget_usd;
	double tokens;     /* that time, energy and money are for */
	bool tokens_given; /* else 1e12 */
	double within_s;   /* COMPARE_TARGET */
	struct compare_figure amortize_years, power_usd_per_kwh, pue;
	VEC(struct compare_row) rows;
	enum compare_basis basis; /* compare_rank fills it and the next */
	char basis_note[336];     /* why it is not money, or not the price of purchase; "" when it is */
};

/* The share of time in which a job makes steps; 1 where no failures are asked for. */
double compare_goodput(const struct result *p);

/* Fills each row's money from its prediction and figures. */
void compare_count(struct compare *c);

/* Sorts the rows: those that fit by the basis, then those of which least memory is missing, then the others. Equal rows keep their order.
 * Basis: what owning costs, where it is known of all rows and counts the same things of all; else what renting costs, where it is known of all; else time. At an equal budget: time. */
enum status compare_rank(struct compare *c, struct error *e);

/* True when this much is known of all rows that fit, and counts the same of all: not the GPUs alone of one and whole hosts of another. *why says what is missing; "" when nothing is. */
bool compare_known(const struct compare *c, enum compare_basis basis, char why[160]);

/* The figure that ranks a row, and its 90 % interval, which is that of the step: s or USD. Of a row that fits. */
double compare_value(const struct compare_row *r, enum compare_basis basis, double interval[2]);

void compare_free(struct compare *c); /* rows and what they own */

enum status report_compare_text(const struct compare *c, FILE *out, struct error *e);
/* "-" is standard output, as in the next two. */
enum status report_compare_json(const struct compare *c, const char *path, struct error *e);
enum status report_compare_csv(const struct compare *c, const char *path, struct error *e);
/* Days for the tokens of each row that fits, with their interval; ST_INPUT when nothing fits anywhere. */
enum status report_compare_svg(const struct compare *c, const char *path, struct error *e);
/* A page: who is ahead, bars of time and money with their intervals, both tables, notes and sources. */
enum status report_compare_html(const struct compare *c, const char *path, struct error *e);

#endif
