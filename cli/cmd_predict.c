#include <stdio.h>

#include "cli/command.h"
#include "cli/job.h"
#include "step/program.h"

static enum status dump(const struct options *o, const struct job *job, struct error *e)
{
	struct program *p = NULL;
	if (o->json || o->csv || o->trace || o->html || o->target)
		return error_set(e, ST_INPUT,
			"--dump-program prints the program in place of a prediction: "
			"there is nothing to write to --json, --csv, --trace or --html, and no --target");
	enum status st = program_build(&job->config, &p, e);
	if (!st)
		program_dump(p, stdout);
	program_destroy(p);
	return st;
}

static enum status print_ranks(const struct options *o, struct error *e)
{
	int64_t ranks;
	enum status st = job_suggest_ranks(o, &ranks, e);
	if (!st)
		printf("%lld\n", (long long)ranks);
	return st;
}

static enum status two(const struct options *o, struct error *e)
{
	if (o->n_positional > 2)
		return error_set(e, ST_INPUT, "unexpected argument '%s': two configs are compared", o->positional[2]);
	if (o->json || o->csv || o->trace || o->html || o->target || o->dump_program || o->print_ranks)
		return error_set(e, ST_INPUT,
			"two configs print a table; outputs, --target and --dump-program take one config");
	return predict_two(o, e);
}

enum status cmd_predict(struct context *x, struct error *e)
{
	if (x->options->n_positional > 1)
		return two(x->options, e);
	struct job job;
	if (x->options->print_ranks)
		return print_ranks(x->options, e);
	enum status st = job_decide(x, 0, false, &job, e);
	if (!st)
		st = x->options->dump_program ? dump(x->options, &job, e) : job_perform(x, &job, e);
	return st;
}
