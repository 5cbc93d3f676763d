/* `stepsim compare` in pieces: what was asked for, what a system costs, and how many hosts of it. Private to cli/cmd_compare.c and cli/compare_*.c. */
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

/* Lists of systems separated by commas, each "SYSTEM" or "SYSTEM@GPUS"; a synthetic line holds no comma, and a list that is as a whole the path of a file is that file. Loads them all: ST_INPUT names the nearest. */
enum status compare_read_systems(const char *const *lists, size_t n, asked_systems *out, struct error *e);

/* "15e12 tokens in 30d", "300B tokens", "15T tokens in 4 weeks"; *within_s 0 where no time is given. */
enum status compare_read_target(const char *text, double *tokens, double *within_s, struct error *e);

/* ---- compare_figures.c: power and prices, of the config, else of the catalogue ---- */

struct size {
	int64_t nodes, per_node; /* GPUs at work on each */
};

/* Power, rent and price of `size` of a system, hosts and GPUs of the row with them. */
void compare_figures(const struct system_spec *s, const struct config *c, struct size size, struct compare_row *r);
/* What the rows share. */
enum status compare_assumptions(const struct config *c, struct compare *out, struct error *e);

/* ---- compare_size.c: how many hosts ---- */

/* Predicts the row at this size: config, predicted, plan, fits, or reason and missing_B. What a wrong plan or a machine that cannot be is no error, but a reason. */
struct compare_solver {
	enum status (*solve)(void *ctx, const struct asked_system *a, struct size size, struct compare_row *r, struct error *e);
	void *ctx;
	const struct config *config;
};

/* Chooses the size as `c` has it (equal GPUs, budget, target) and fills the row but for names and ranking. */
enum status compare_size(const struct compare *c, const struct compare_solver *s, const struct asked_system *a, struct compare_row *r, struct error *e);

/* True when so many ranks can share the work: all their odd factors are found in batch, layers and the plan's own sizes. Others would leave ranks over whatever the plan is. */
bool compare_splits(const struct config *c, int64_t ranks);

#endif
