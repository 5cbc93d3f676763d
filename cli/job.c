#include "cli/job.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/gcd.h"
#include "base/log.h"
#include "base/quantity.h"
#include "base/wrap.h"
#include "cli/compare.h"
#include "cli/estimates.h"
#include "cli/explain.h"
#include "cli/machine.h"
#include "cli/output.h"
#include "cli/source.h"
#include "sim/advise/advise.h"
#include "sim/engine/fold.h"
#include "topology/discover/driver.h"

/* ---- deciding ---- */

static bool is_here(const struct config *c) { return strcmp(c->cluster.system, "auto") == 0; }

int64_t job_fixed_ranks(const struct config *c)
{
	return c->cluster.gpus_per_node > 0 ? c->cluster.nodes * c->cluster.gpus_per_node : config_fixed_ranks(c);
}

int64_t job_replica_ranks(const struct config *c)
{
	const struct parallel *p = &c->parallel;
	const int64_t cut = p->tensor * p->context, group = p->expert * p->expert_tensor,
		      experts = group / gcd(group, cut), shard = p->shard > 0 ? p->shard : 1,
		      groups = p->replicate > 0 ? p->replicate : 1;
	return cut * p->pipeline * groups * (experts / gcd(experts, shard) * shard);
}

static enum status predict_only(struct job *job, struct error *e, const char *why)
{
	if (!job->execute) /* the `predict` command: nobody asked for more */
		return ST_OK;
	if (job->config.run.execute == TRI_TRUE)
		return error_set(e, ST_INPUT, "%s: run.execute is true, but %s", job->config.path, why);
	job->execute = false;
	snprintf(job->mode, sizeof job->mode, "%s", why);
	return ST_OK;
}

static enum status decide_elsewhere(struct job *job, int64_t *ranks, struct error *e)
{
	struct cluster_config *c = &job->config.cluster;
	struct machine machine;
	enum status st = machine_load(c->system, c->nodes, c->gpus_per_node, &machine, e);
	if (st)
		return config_blame_system(&job->config, e);
	*ranks = machine.nodes * machine.devices_per_node;
	c->nodes = machine.nodes; /* a system line may have said it */
	job->config.node_ranks = machine.devices_per_node;
	machine_free(&machine);
	char why[JOB_MODE];
	snprintf(why, sizeof why, "cluster.system %s is not this machine (--set cluster.system=auto executes here)",
		c->system);
	return predict_only(job, e, why);
}

static enum status decide_gpus(struct context *x, const struct config *c, bool *gpus, struct error *e)
{
	*gpus = c->run.backend == BACKEND_CUDA;
	struct driver_facts driver;
	/* Without a driver nothing has to be opened to know that there is no GPU. */
	if (c->run.backend != BACKEND_AUTO || !driver_shows_gpus(&driver))
		return ST_OK;
	enum status st = context_exec(x, e);
	*gpus = !st && x->exec->gpus_here();
	return st;
}

static enum status decide_here(struct context *x, struct job *job, int64_t started, int64_t *ranks, struct error *e)
{
	const struct config *c = &job->config;
	const char *path = source_argument(x->options);
	int64_t fixed = job_fixed_ranks(c);
	char why[JOB_MODE];
	if (started) {
		*ranks = started;
		if (fixed && fixed != started)
			return error_set(e, ST_INPUT,
				"%s: the plan needs %lld rank%s, the launcher started %lld: `mpirun -np %lld "
				"stepsim %s` executes it, `stepsim predict %s` predicts it",
				path, (long long)fixed, fixed == 1 ? "" : "s", (long long)started, (long long)fixed,
				path, path);
	} else {
		*ranks = fixed ? fixed : job_replica_ranks(c);
		snprintf(why, sizeof why, "the plan needs %lld ranks: `mpirun -np %lld stepsim %s` executes it",
			(long long)*ranks, (long long)*ranks, path);
		if (*ranks > 1)
			return predict_only(job, e, why);
	}
	if (!job->execute || c->run.execute == TRI_FALSE)
		return ST_OK;
	if (config_predicted_only(c))
		return predict_only(job, e, config_predicted_only(c));
	enum status st = decide_gpus(x, c, &job->gpus, e);
	if (st)
		return st;
	snprintf(why, sizeof why, "this machine's cores compute in fp32 only, and train.dtype is %s",
		dtype_name(c->train.dtype));
	return job->gpus || c->train.dtype == DT_FP32 ? ST_OK : predict_only(job, e, why);
}

enum status job_decide(struct context *x, int64_t started, bool may_execute, struct job *job, struct error *e)
{
	const struct options *o = x->options;
	memset(job, 0, sizeof *job); /* its bytes are sent: no padding may be undefined */
	struct config *c = &job->config;
	enum status st = source_parse(o, c, e);
	if (!st && o->gpus)
		st = target_take_gpus(c, o->gpus, e);
	if (st)
		return st;
	int64_t ranks = 1;
	job->here = is_here(c);
	c->executed = job->here;
	job->execute = may_execute;
	st = job->here ? decide_here(x, job, started, &ranks, e) : decide_elsewhere(job, &ranks, e);
	if (st)
		return st;
	if (job->execute && c->run.execute == TRI_FALSE)
		st = predict_only(job, e, "run.execute is false");
	if (!st && !job->execute && o->max_error_percent >= 0)
		st = error_set(e, ST_INPUT, "--max-error needs a measurement, and nothing is executed%s%s",
			job->mode[0] ? ": " : "", job->mode);
	if (st || (st = config_resolve(c, ranks, e)) || !fold_is_long(c) || !(job->execute || o->dump_program))
		return st;
	error_set(e, ST_INPUT,
		"%lld micro-batches of %lld layers: a step so long is predicted, but neither executed nor dumped",
		(long long)c->micro_batches, (long long)c->model.layers);
	return config_blame_batch(c, e);
}

enum status job_suggest_ranks(const struct options *o, int64_t *ranks, struct error *e)
{
	struct config c;
	enum status st = source_parse(o, &c, e);
	if (st)
		return st;
	*ranks = 0;
	if (!is_here(&c) || c.run.execute == TRI_FALSE || (c.run.execute == TRI_AUTO && c.train.dtype != DT_FP32))
		return ST_OK;
	*ranks = job_fixed_ranks(&c);
	if (*ranks)
		return ST_OK;
	struct host_facts host;
	if ((st = host_facts_read(&host, e)))
		return st;
	struct config pair = c;
	*ranks = job_replica_ranks(&c);
	if (*ranks == 1 && host.cores >= 2 && config_resolve(&pair, 2, NULL) == ST_OK)
		*ranks = 2;
	return ST_OK;
}

/* ---- doing ---- */

struct sides {
	struct target target;
	struct program *program;
	struct result predicted, measured;
	struct timeline predicted_timeline, measured_timeline;
};

static enum status predict_side(const struct job *job, struct sides *s, struct error *e)
{
	enum status st = fold_step(&job->config, &s->target.machine, &s->program, &s->predicted, &s->predicted_timeline,
		e);
	if (!st && s->target.note[0])
		result_warn(&s->predicted, "%s", s->target.note);
	if (!st && s->target.hosts_note[0])
		result_warn(&s->predicted, "%s", s->target.hosts_note);
	return st;
}

/* Explains the times to standard error, for -v. */
static enum status say_why(const struct sides *s, struct error *e)
{
	struct wrap w;
	enum status st = wrap_open(&w, stderr, e);
	return st ? st
	          : wrap_close(&w,
			    explain(s->program, timeline_critical_actor(&s->predicted_timeline), &s->target.machine,
				    w.out, e),
			    e);
}

#define PACE_TOLD 0.1 /* of the profile's: less is what quiet machines differ by from one minute to the next */

static void say_pace(const struct target *t, const struct result *predicted, struct result *measured)
{
	const double pace = result_pace(predicted, measured);
	/* A warning of the measurement (others' time, a slow rank) is the reason already. */
	if (!t->profile || measured->doubles || measured->n_warnings || fabs(pace - 1) < PACE_TOLD)
		return;
	result_warn(measured,
		"ops of all kinds took %.0f %% %s than the profile of %s says: the machine's speed differs from then "
		"(load, clock, caches); `stepsim calibrate` measures it anew",
		100 * fabs(pace - 1), pace > 1 ? "longer" : "less time", t->profile->date);
}

static enum status execute_side(struct context *x, struct sides *s, struct error *e)
{
	const uint32_t role = timeline_critical_actor(&s->predicted_timeline);
	enum status st = context_agree(x,
		x->exec->execute(x->session, s->program, role, &s->measured, &s->measured_timeline, NULL, e), e);
	if (st || !context_leads(x))
		return st;
	/* Utilisation is measured against the same peak on both sides: the executor knows times, the machine knows
	 * peaks. */
	result_rates(&s->measured, s->program,
		s->target.machine.device.matrix_flop_per_s[s->program->config.train.dtype]);
	say_pace(&s->target, &s->predicted, &s->measured);
	return ST_OK;
}

static void say_placement(const struct context *x, const struct target *t)
{
	log_detail("machine: %s, %s", t->machine.name, t->machine.source);
	if (t->profile)
		log_detail("profile: %s of %s", t->profile_path, t->profile->date);
	if (!x->session)
		return;
	const struct session_info *i = context_info(x);
	log_detail("placement: %lld ranks on %lld host%s, %lld a host, %lld core%s a rank%s, binding %s",
		(long long)i->ranks, (long long)i->hosts, i->hosts == 1 ? "" : "s", (long long)i->ranks_per_host,
		(long long)i->cores_per_rank, i->cores_per_rank == 1 ? "" : "s", i->oversubscribed ? " (shared)" : "",
		i->binding);
	for (int64_t r = 0; r < i->ranks; r++)
		log_detail("%s", x->exec->session_placement(x->session, r));
	log_detail("libraries: %s; %s", i->mpi, i->blas);
}

/* Notes the link that limits the groups of one dimension of the plan, or why it is not known. */
static void say_link(const struct machine *m, const char *dim, int64_t size, int64_t stride)
{
	struct group g;
	struct error why = {0};
	char rate[QUANTITY_MAX];
	if (machine_group(m, size, stride, &g, &why))
		log_detail("links: %s over %lld ranks: %s", dim, (long long)size, why.text);
	else if (g.ring_Bps > 0)
		log_detail("links: %s over %lld ranks on %lld host%s: %s, limited by %s", dim, (long long)size,
			(long long)g.hosts, g.hosts == 1 ? "" : "s", quantity_format(rate, g.ring_Bps, UNIT_BYTE_PER_S),
			g.bottleneck_text);
}

static void say_links(const struct machine *m, const struct program *p)
{
	for (int d = 0; d < DIM_ALL; d++) {
		const int64_t size = d == DIM_DP_CP && p->mesh.params != DIM_DP_CP ? 1 : p->mesh.size[d];
		if (size > 1)
			say_link(m, mesh_dim_name((enum mesh_dim)d), size, p->mesh.stride[d]);
	}
}

/* The run itself is over and good. */
static void say_estimates(struct context *x, const struct sides *s)
{
	struct error why = {0};
	if (estimates_print(x, s->program, &s->predicted_timeline, s->measured.doubles ? NULL : &s->measured_timeline,
		    &why) &&
		context_leads(x))
		log_warn("no estimates of NCCL's: %s", why.text);
}

static enum status find_advice(const struct options *o, const struct sides *s, struct advice *out, struct error *e)
{
	const struct advise_case a = {
		.reader = o->config.reader,
		.sets = o->sets.at,
		.n_sets = o->sets.n,
		.program = s->program,
		.machine = &s->target.machine,
		.predicted = &s->predicted,
		.budget_ops = o->verbose ? ADVICE_BUDGET_ALL_OPS : ADVICE_BUDGET_OPS,
		.sensitivity = o->verbose || o->json,
	};
	return advise(&a, out, e);
}

static enum status write_result(const struct context *x, const struct job *job, const struct sides *s, struct error *e)
{
	struct advice *advice = NULL;
	struct compare target = {0};
	const struct size hosts = {s->target.machine.nodes, s->target.machine.devices_per_node};
	enum status st = x->options->target ? compare_target(x->options->target, &s->program->config, &s->predicted,
						      hosts, &target, e)
	                                    : ST_OK;
	if (!st && !x->options->quiet)
		st = (advice = malloc(sizeof *advice)) ? find_advice(x->options, s, advice, e)
		                                       : error_nomem(e, "advice");
	struct outcome o = {
		.program = s->program,
		.predicted = &s->predicted,
		.predicted_timeline = &s->predicted_timeline,
		.measured = job->execute ? &s->measured : NULL,
		.measured_timeline = job->execute && !s->measured.doubles ? &s->measured_timeline : NULL,
		.roofs = {s->target.machine.device.matrix_flop_per_s[job->config.train.dtype],
			s->target.machine.device.mem_Bps},
		.advice = advice,
		.target = x->options->target ? &target : NULL,
		.system = s->target.system,
		.mode = job->mode[0] ? job->mode : NULL,
	};
	if (!st)
		st = output(x->options, &o, e);
	free(advice);
	vec_free(&target.rows);
	return st;
}

enum status job_perform(struct context *x, const struct job *job, struct error *e)
{
	struct sides s = {0};
	if (job->execute && job->gpus)
		x->exec->nccl_env_force(job->config.collectives);
	enum status st = job->execute && job->gpus ? x->exec->session_use_gpus(x->session, job->config.run.share_gpu,
							     job->config.run.timeout_s, e)
	                                           : ST_OK;
	if (st)
		return st;
	st = job->here          ? target_here(x, &job->config, job->config.ranks, &s.target, e)
	     : context_leads(x) ? target_system(&job->config, &s.target, e)
	                        : ST_OK;
	if ((st = context_agree(x, st, e)))
		goto out;
	bool leads = context_leads(x);
	if (leads)
		say_placement(x, &s.target);
	if (leads) {
		st = predict_side(job, &s, e);
		if (!st && log_level() == LOG_VERBOSE)
			say_links(&s.target.machine, s.program);
	} else if (job->execute) {
		st = program_build(&job->config, &s.program, e);
	}
	if (!st && leads && log_level() == LOG_VERBOSE)
		st = say_why(&s, e);
	if ((st = context_agree(x, st, e)))
		goto out;
	if (job->execute && (st = execute_side(x, &s, e)))
		goto out;
	if (job->execute && job->gpus && log_level() == LOG_VERBOSE)
		say_estimates(x, &s);
	if (leads)
		st = write_result(x, job, &s, e);
out:
	timeline_free(&s.predicted_timeline);
	timeline_free(&s.measured_timeline);
	program_destroy(s.program);
	target_free(&s.target);
	return st;
}

enum status job_predict(struct context *x, struct job *job, struct result *out, struct error *e)
{
	struct sides s = {0};
	enum status st = job_decide(x, 0, false, job, e);
	if (!st)
		st = job->here ? target_here(x, &job->config, job->config.ranks, &s.target, e)
		               : target_system(&job->config, &s.target, e);
	if (!st)
		st = predict_side(job, &s, e);
	*out = s.predicted;
	timeline_free(&s.predicted_timeline);
	program_destroy(s.program);
	target_free(&s.target);
	return st;
}

enum status job_predict_file(const struct options *options, const char *config, struct job *job, struct result *out,
	struct error *e)
{
	struct options o = *options;
	struct context alone = {.options = &o};
	o.config = (struct config_source){0};
	o.max_error_percent = -1; /* of a measurement that is not made here */
	enum status st = source_read(&o, config, e);
	if (!st)
		st = job_predict(&alone, job, out, e);
	context_close(&alone);
	source_free(&o);
	return st;
}
