#include "sim/engine/fold.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "sim/engine/summary.h"

#define FOLD_SHORTER 3
#define FOLD_LONGER 5

/* A step of fewer micro-batches. */
struct short_step {
	struct config config;
	struct program *program;
	struct simulation simulation;
	struct sums sums;
};

/* build: program_build or program_build_ends. */
static enum status short_step_build(const struct config *c, int64_t micro_batches,
	enum status (*build)(const struct config *c, struct program **out, struct error *e), struct short_step **out,
	struct error *e)
{
	struct short_step *x = *out = calloc(1, sizeof *x);
	if (!x)
		return error_nomem(e, "a prediction");
	x->config = *c;
	x->config.micro_batches = micro_batches;
	return build(&x->config, &x->program, e);
}

static void short_step_destroy(struct short_step *x)
{
	if (!x)
		return;
	sums_free(&x->sums);
	if (x->simulation.p)
		simulation_free(&x->simulation);
	program_destroy(x->program);
	free(x);
}

struct fold_lengths {
	int64_t shorter, longer; /* micro-batches of the two simulated steps; 0: the step is simulated as it is */
};

/* Micro-batches that were loaded before the step: the loader shows only after them. Where they are more than this, a
 * step of fewer is not much shorter, and the loader's time counts instead (sim/engine/sums.h). */
#define LOADED_MOST 64

static int64_t waits_for_data(const struct config *c)
{
	const int64_t ahead = c->data.load_time_s > 0 ? program_loads_ahead(c) : 0;
	return ahead < c->micro_batches && ahead <= LOADED_MOST ? ahead : 0;
}

static struct fold_lengths fold_lengths_of(const struct config *c)
{
	const struct parallel *p = &c->parallel;
	const struct schedule_traits *schedule = &schedule_traits[p->schedule];
	const bool piped = p->pipeline > 1;
	/* After so many rounds every stage is in its steady order, and waits as in a steady one. */
	const int64_t rounds = (schedule->turns_back ? 2 : 1) * (p->virtual_stages > 1 ? 2 : 1);
	/* Interleaved schedules repeat with as many micro-batches as there are stages. */
	const int64_t period = piped ? p->pipeline : FOLD_LONGER - FOLD_SHORTER;
	int64_t shorter = waits_for_data(c) + (piped ? rounds * p->pipeline + period : FOLD_SHORTER);
	shorter += (c->micro_batches - shorter) % period; /* what is counted must be whole periods */
	return c->micro_batches <= shorter + period || (piped && schedule->all_in_flight)
	               ? (struct fold_lengths){0, 0}
	               : (struct fold_lengths){shorter, shorter + period};
}

enum status fold_check(const struct config *c, struct error *e)
{
	if (!fold_is_long(c) || c->parallel.pipeline == 1 || !schedule_traits[c->parallel.schedule].all_in_flight)
		return ST_OK;
	error_set(e, ST_INPUT,
		"%s keeps %lld micro-batches of %lld layers in flight, too many to be simulated "
		"(parallel.schedule 1f1b does not)",
		schedule_traits[c->parallel.schedule].name, (long long)c->micro_batches, (long long)c->model.layers);
	return config_blame_batch(c, e);
}

/* Finds the role that ends last once all micro-batches are counted. It may not be the one that ends a shorter step. */
static enum status find_last(const struct short_step *shorter, const struct short_step *longer, double t,
	uint32_t *actor, struct error *e)
{
	const struct timeline *const steps[] = {&shorter->simulation.timeline, &longer->simulation.timeline};
	const size_t actors = steps[0]->actors;
	double *end_ps = calloc(2 * actors + 1, sizeof *end_ps), latest_ps = -1;
	if (!end_ps)
		return error_nomem(e, "a prediction");
	for (size_t k = 0; k < COUNT(steps); k++)
		for (size_t i = 0; i < steps[k]->spans.n; i++) {
			const struct span *s = &steps[k]->spans.at[i];
			end_ps[k * actors + s->actor] = fmax(end_ps[k * actors + s->actor], (double)s->end_ps);
		}
	for (size_t r = 0; r < actors; r++) {
		const double here_ps = end_ps[r] + (end_ps[actors + r] - end_ps[r]) * t;
		*actor = here_ps > latest_ps ? (uint32_t)r : *actor;
		latest_ps = fmax(latest_ps, here_ps);
	}
	free(end_ps);
	return ST_OK;
}

static double line_to(const struct config *c, struct fold_lengths lengths)
{
	return (double)(c->micro_batches - lengths.shorter) / (double)(lengths.longer - lengths.shorter);
}

/* Fills the result of all micro-batches from the two simulated steps. */
static enum status count_rest(const struct config *c, const struct rates *rates, struct fold_lengths lengths,
	struct short_step *shorter, struct short_step *longer, struct result *out, struct error *e)
{
	const double t = line_to(c, lengths);
	uint32_t actor = 0;
	enum status st = find_last(shorter, longer, t, &actor, e);
	if (st || (st = sums_of(&shorter->simulation, actor, &shorter->sums, e)) ||
		(st = sums_of(&longer->simulation, actor, &longer->sums, e)))
		return st;
	sums_extend(&shorter->sums, &longer->sums, t);
	summarize(&shorter->sums, shorter->program, rates, out); /* whose ops the sums name */
	return ST_OK;
}

/* Fills out->memory, and so whether the step fits. The memory of the two steps stays in their sums. */
static enum status find_memory(const struct config *c, const struct rates *rates, struct fold_lengths lengths,
	struct short_step *shorter, struct short_step *longer, struct result *out, struct error *e)
{
	enum status st = longer->sums.roles ? ST_OK : sums_of_memory(longer->program, rates->machine, &longer->sums, e);
	*out = (struct result){.verified = -1};
	if (!st && !shorter)
		summary_memory(&longer->sums, longer->program, rates, out);
	if (st || !shorter || (st = sums_of_memory(shorter->program, rates->machine, &shorter->sums, e)))
		return st;
	struct sums all = shorter->sums;
	all.roles = malloc((all.n_roles + 1) * sizeof *all.roles);
	if (!all.roles)
		return error_nomem(e, "the stages");
	memcpy(all.roles, shorter->sums.roles, all.n_roles * sizeof *all.roles);
	sums_extend(&all, &longer->sums, line_to(c, lengths));
	summary_memory(&all, longer->program, rates, out);
	free(all.roles);
	return ST_OK;
}

/* Which plans are simulated. */
enum fold_which {
	FOLD_ALL,
	FOLD_FITTING, /* those that fit; of others the memory is filled */
	FOLD_BELOW    /* those of them that need less than a limit; of others the memory may be a lower bound: that of
	                 the longer step, as more micro-batches never need less */
};

static bool is_simulated(const struct result *r, uint64_t below_B)
{
	return r->memory.fits && r->memory.total_B < below_B;
}

/* Fills the folded prediction. below_B: the limit of FOLD_BELOW. *longest, where it is asked for: the longest step that
 * was simulated, which the caller destroys, also after a failure. */
static enum status fold(const struct config *c, const struct machine *m, enum fold_which which, uint64_t below_B,
	struct short_step **longest, struct result *out, struct error *e)
{
	const struct rates rates = rates_of(m);
	const struct fold_lengths lengths = fold_lengths_of(c);
	struct short_step *shorter = NULL, *longer = NULL;
	enum status st = fold_check(c, e);
	if (!st)
		st = short_step_build(c, lengths.longer > 0 ? lengths.longer : c->micro_batches, program_build, &longer,
			e);
	if (!st && which == FOLD_BELOW)
		st = find_memory(c, &rates, lengths, NULL, longer, out, e);
	if (st || (which == FOLD_BELOW && !is_simulated(out, below_B)))
		goto out;
	if (lengths.longer > 0)
		st = short_step_build(c, lengths.shorter, program_build, &shorter, e);
	if (!st && which != FOLD_ALL)
		st = find_memory(c, &rates, lengths, shorter, longer, out, e);
	if (st || (which != FOLD_ALL && !is_simulated(out, below_B)))
		goto out;
	if (!(st = simulation_run(longer->program, &rates, &longer->simulation, e)) && shorter)
		st = simulation_run(shorter->program, &rates, &shorter->simulation, e);
	if (!st)
		st = shorter ? count_rest(c, &rates, lengths, shorter, longer, out, e)
		             : simulation_result(&longer->simulation, &longer->sums, out, e);
out:
	short_step_destroy(shorter);
	if (longest)
		*longest = longer;
	else
		short_step_destroy(longer);
	return st;
}

enum status fold_predict(const struct config *c, const struct machine *m, struct result *out, struct error *e)
{
	return fold(c, m, FOLD_ALL, UINT64_MAX, NULL, out, e);
}

enum status fold_fitting(const struct config *c, const struct machine *m, struct result *out, struct error *e)
{
	return fold(c, m, FOLD_FITTING, UINT64_MAX, NULL, out, e);
}

enum status fold_below(const struct config *c, const struct machine *m, uint64_t below_B, struct result *out,
	struct error *e)
{
	return fold(c, m, FOLD_BELOW, below_B, NULL, out, e);
}

double fold_blocks(const struct config *c)
{
	const struct fold_lengths lengths = fold_lengths_of(c);
	return (double)c->model.layers *
	       (double)(lengths.longer == 0 ? c->micro_batches : lengths.shorter + lengths.longer);
}

/* ---- long steps ---- */

#define LONG_BLOCKS 40000

bool fold_is_long(const struct config *c) { return (double)c->model.layers * (double)c->micro_batches > LONG_BLOCKS; }

static enum status fold_long(const struct config *c, const struct machine *m, struct program **program,
	struct result *out, struct timeline *timeline, struct error *e)
{
	struct short_step *longest = NULL;
	enum status st = fold(c, m, FOLD_ALL, UINT64_MAX, &longest, out, e);
	if (!st) {
		result_warn(out,
			"a step of %lld micro-batches is long: %lld of them were simulated, and the rest counted; "
			"the timeline ends with those",
			(long long)c->micro_batches, (long long)longest->config.micro_batches);
		*timeline = longest->simulation.timeline;
		longest->simulation.timeline = (struct timeline){0};
		simulation_free(&longest->simulation);
		*program = longest->program;
		longest->program = NULL;
		(*program)->config.micro_batches = c->micro_batches; /* reports say what was asked for */
	}
	short_step_destroy(longest);
	return st;
}

int64_t fold_simulated(const struct config *c)
{
	const struct fold_lengths lengths = fold_lengths_of(c);
	return fold_is_long(c) && lengths.longer > 0 ? lengths.longer : c->micro_batches;
}

enum status fold_step(const struct config *c, const struct machine *m, struct program **program, struct result *out,
	struct timeline *timeline, struct error *e)
{
	enum status st = fold_check(c, e);
	if (!st && fold_simulated(c) < c->micro_batches)
		return fold_long(c, m, program, out, timeline, e);
	if (!st)
		st = program_build(c, program, e);
	return st ? st : predict(*program, m, out, timeline, e);
}

enum status fold_result(const struct config *c, const struct machine *m, struct result *out, struct error *e)
{
	struct program *program = NULL;
	struct timeline timeline = {0};
	enum status st = fold_step(c, m, &program, out, &timeline, e);
	timeline_free(&timeline);
	program_destroy(program);
	return st;
}

/* Fills out->memory from a whole step, as far as it is built. */
static enum status find_whole_memory(struct short_step *x, const struct rates *rates, struct result *out,
	struct error *e)
{
	sums_free(&x->sums);
	return find_memory(&x->config, rates, (struct fold_lengths){0, 0}, NULL, x, out, e);
}

enum status fold_result_fitting(const struct config *c, const struct machine *m, struct result *out, struct error *e)
{
	const struct rates rates = rates_of(m);
	struct short_step *x = NULL;
	if (fold_simulated(c) < c->micro_batches)
		return fold(c, m, FOLD_FITTING, UINT64_MAX, NULL, out, e);
	enum status st = fold_check(c, e);
	if (!st && !(st = short_step_build(c, c->micro_batches, program_build_ends, &x, e)))
		st = find_whole_memory(x, &rates, out, e);
	if (!st && out->memory.fits && x->program->n_roles > 2 && !(st = program_build_between(x->program, e)))
		st = find_whole_memory(x, &rates, out, e);
	if (!st && out->memory.fits && !(st = simulation_run(x->program, &rates, &x->simulation, e)))
		st = simulation_result(&x->simulation, &x->sums, out, e);
	short_step_destroy(x);
	return st;
}
