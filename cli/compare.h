/* The parts of `stepsim compare`: reading the request, costs of a system, number of hosts. Private to cli/cmd_compare.c
 * and cli/compare_*.c. */
#ifndef STEPSIM_CLI_COMPARE_H
#define STEPSIM_CLI_COMPARE_H

#include "base/vec.h"
#include "report/compare.h"
#include "topology/catalogue/system.h"

/* ---- compare_words.c: the texts of the command line ---- */

struct asked_system {
	char name[CONFIG_TEXT]; /* as given, without its size */
	int64_t gpus;           /* "NAME@GPUS"; 0: not said */
	struct system_spec spec;
};
typedef VEC(struct asked_system) asked_systems;

/* Reads lists of systems separated by commas, each "SYSTEM" or "SYSTEM@GPUS", and loads the systems. A list that is the
 * path of a file is that file; a system line has no comma. ST_INPUT names the nearest system. */
enum status compare_read_systems(const char *const *lists, size_t n, asked_systems *out, struct error *e);
/* Returns whether `a` has a size of its own and stands beside another size of the same system. */
bool compare_asks_again(const asked_systems *asked, const struct asked_system *a);

/* Reads "4M", "300B tokens", "15e12"; false if it is none. */
bool compare_read_tokens(const char *text, double *tokens);
/* Reads "15e12 tokens in 30d", "300B tokens", "15T tokens in 4 weeks", "500k steps" of step_tokens each (0: not
 * known, and steps are refused). Without a time *within_s is 0. */
enum status compare_read_target(const char *text, double step_tokens, double *tokens, double *within_s,
	struct error *e);

/* ---- compare_figures.c: power and prices, of the config, else of the catalogue ---- */

struct size {
	int64_t nodes, per_node; /* GPUs at work on each */
};

/* Fills a row's hosts, GPUs, power, rent and price for `size` of a system. */
void compare_figures(const struct system_spec *s, const struct config *c, struct size size, struct compare_row *r);
/* Fills the figures that all rows share: amortization, price of energy, PUE. */
enum status compare_assumptions(const struct config *c, struct compare *out, struct error *e);

/* ---- compare_target.c: `predict --target` ---- */

/* Fills a comparison of one row: what the target takes and costs on `hosts` of the system of a resolved config. It
 * borrows `c` and `predicted`, and the caller frees c->rows alone. ST_INPUT: the text is no target, or names a time. */
enum status compare_target(const char *text, const struct config *c, const struct result *predicted, struct size hosts,
	struct compare *out, struct error *e);

/* ---- compare_size.c: how many hosts ---- */

/* Both predict a row at this size: they fill config, predicted, plan and fits, or reason and missing_B. An illegal plan
 * or machine is a reason, not an error. */
struct compare_solver {
	/* With the best plan of `config`, or its own. */
	enum status (*solve)(void *ctx, const struct asked_system *a, struct size size, struct compare_row *r,
		struct error *e);
	void *ctx;
	const struct config *config;
	/* With the plan of a config as it is; NULL: no batch is suggested. */
	enum status (*predict)(void *ctx, const struct asked_system *a, struct size size, const struct config *plan,
		struct compare_row *r, struct error *e);
};

/* Chooses the size by the mode of `c` (equal GPUs, budget, target) and fills the row, without names and ranking. */
enum status compare_size(const struct compare *c, const struct compare_solver *s, const struct asked_system *a,
	struct compare_row *r, struct error *e);

/* Returns whether so many ranks can share the work: batch, layers and the plan's sizes have all their odd factors.
 * Other counts leave ranks idle under every plan. */
bool compare_splits(const struct config *c, int64_t ranks);

/* ---- compare_near.c: batches with which fewer hosts reach a target ---- */

/* Fills r->near of a row that reaches the target: the fewest hosts that reach it with the row's plan, other replicas
 * and a batch within 10 % of the stated one. None if no such batch needs fewer hosts. */
enum status compare_near(const struct compare *c, const struct compare_solver *s, const struct asked_system *a,
	struct compare_row *r, struct error *e);

#endif
