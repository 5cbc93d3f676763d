/* What a target takes and costs on the cluster of one prediction: a comparison of one row, so that time, energy and
 * money are counted as `compare` counts them. */
#include <math.h>
#include <string.h>

#include "cli/compare.h"

/* This machine is in no catalogue: its power and prices are unknown, unless the config gives them. */
static enum status load_system(const struct config *c, struct size hosts, struct system_spec *s, struct error *e)
{
	if (strcmp(c->cluster.system, "auto") != 0)
		return system_load(c->cluster.system, s, e) ? config_blame_system(c, e) : ST_OK;
	*s = (struct system_spec){.gpus = hosts.per_node, .name = "this machine"};
	return ST_OK;
}

enum status compare_target(const char *text, const struct config *c, const struct result *predicted, struct size hosts,
	struct compare *out, struct error *e)
{
	const double step_tokens = (double)c->train.global_batch * (double)c->model.seq_len;
	struct system_spec s;
	*out = (struct compare){.tokens_given = true, .gpus = c->ranks};
	enum status st = compare_read_target(text, step_tokens, &out->tokens, &out->within_s, e);
	if (!st && out->within_s > 0)
		st = error_set(e, ST_INPUT,
			"--target %s: the config says how many GPUs; `stepsim compare` finds how many reach it in time",
			text);
	if (st || (st = compare_assumptions(c, out, e)) || (st = load_system(c, hosts, &s, e)))
		return st;
	struct compare_row r = {.config = (struct config *)(uintptr_t)c,
		.predicted = (struct result *)(uintptr_t)predicted,
		.fits = predicted->memory.fits,
		.spent_usd = NAN};
	snprintf(r.name, sizeof r.name, "%.127s", c->cluster.system);
	snprintf(r.full, sizeof r.full, "%.127s", s.name);
	compare_figures(&s, c, hosts, &r);
	if (!vec_push(&out->rows, r))
		return error_nomem(e, "the target");
	compare_count(out);
	return ST_OK;
}
