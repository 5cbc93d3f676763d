/* execute(): plan, memory, verification, warm-up, timed steps, result. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/quantity.h"
#include "base/stats.h"
#include "exec/cpu_steal.h"
#include "exec/gather.h"
#include "exec/gpus.h"
#include "exec/late.h"
#include "exec/links.h"
#include "exec/runner.h"
#include "exec/session.h"
#include "exec/verify.h"
#include "step/peers.h"

#define STAMPS_SAID 1.02 /* a breakdown whose steps took so many times as long, or longer, is remarked on */
#define RESERVE 1.1      /* what MPI, BLAS and the kernels' scratch take beside the arenas */

struct execution {
	struct session *s;
	const struct program *p;
	struct runner runner;
	uint64_t capacity_B; /* of one rank, when the run began */
	uint32_t role;       /* whose rank the result tells of */
	int64_t steps;       /* timed */
	/* Of a GPU's ops an event each tells the times, and takes time itself. So its steps are timed as wholes, and as
	 * many more give the breakdown. */
	double *whole_s;             /* by timed step; NULL: the stamped steps are the timed ones */
	struct record *records;      /* by stamped step, as many */
	struct stamp *stamps;        /* of all of them */
	double *loss;                /* by timed step */
	struct gpu_samples samples;  /* of this rank's GPU, during them */
	struct result_clocks clocks; /* of all */
	struct cpu_steal_worst others;
	struct links links;
	const char *host_cause; /* on rank 0 */
};

/* ---- memory ---- */

/* The stamps of all timed steps; on rank 0 all ranks' records of one step and the timeline made of them as well. */
static uint64_t times_B(const struct execution *x)
{
	uint64_t mine = (uint64_t)x->steps * x->runner.role->ops.n * sizeof(struct stamp), gathered = 0;
	for (size_t i = 0; i < x->p->n_roles; i++)
		gathered += (uint64_t)x->p->roles[i].ranks * x->p->roles[i].ops.n *
		            (sizeof(struct stamp) + sizeof(struct span));
	return x->s->info.rank == 0 ? mine + gathered : mine;
}

/* Fails where the arena exceeds the GPU's free memory. CUDA, NCCL and the libraries' workspaces need more, which is
 * known only once they run: an arena that leaves them nothing fails there, with CUDA's words. */
static enum status check_gpu_memory(struct execution *x, struct error *e)
{
	const struct gpus *g = x->s->gpus;
	char need[QUANTITY_MAX], have[QUANTITY_MAX], missing[QUANTITY_MAX];
	uint64_t need_B = x->runner.layout.total_B;
	x->capacity_B = g->gpu.mem_B;
	if (need_B <= g->gpu.free_B)
		return ST_OK;
	return error_set(e, ST_RUN,
		"not enough memory on GPU %d of %s (%s): a rank needs %s, %s are free, %s are missing (a smaller model "
		"or train.micro_batch, train.recompute, or parallel.strategy fsdp needs less)",
		g->device, x->s->info.host, g->gpu.name, quantity_format(need, (double)need_B, UNIT_BYTE),
		quantity_format(have, (double)g->gpu.free_B, UNIT_BYTE),
		quantity_format(missing, (double)(need_B - g->gpu.free_B), UNIT_BYTE));
}

/* All ranks of a host allocate after all have looked. */
static enum status check_host_memory(struct execution *x, struct error *e)
{
	const struct session_info *info = &x->s->info;
	double need_B = RESERVE * (double)(x->runner.layout.total_B + x->runner.layout.host_B + times_B(x)), sum_B = 0,
	       *all = malloc((size_t)info->ranks * sizeof *all);
	if (!all)
		return error_nomem(e, "the ranks' memory needs");
	struct host_facts facts;
	enum status st = session_gather_all(x->s, &need_B, sizeof need_B, all, e);
	if (!st)
		st = host_facts_read(&facts, e);
	for (int64_t r = 0; !st && r < info->ranks; r++)
		sum_B += x->s->host_of[r] == x->s->host_of[info->rank] ? all[r] : 0;
	free(all);
	if (st)
		return st;
	double have_B = (double)facts.mem_available_B;
	x->capacity_B = facts.mem_available_B / (uint64_t)info->ranks_per_host;
	if (sum_B <= have_B)
		return ST_OK;
	char need[QUANTITY_MAX], have[QUANTITY_MAX], missing[QUANTITY_MAX];
	return error_set(e, ST_RUN,
		"not enough memory on %s: its %lld rank%s need %s, %s are available, %s are missing (a smaller model "
		"or train.micro_batch, train.recompute, or parallel.strategy fsdp needs less)",
		info->host, (long long)info->ranks_per_host, info->ranks_per_host == 1 ? "" : "s",
		quantity_format(need, sum_B, UNIT_BYTE), quantity_format(have, have_B, UNIT_BYTE),
		quantity_format(missing, sum_B - have_B, UNIT_BYTE));
}

static enum status check_memory(struct execution *x, struct error *e)
{
	return x->s->gpus ? check_gpu_memory(x, e) : check_host_memory(x, e);
}

static enum status allocate_records(struct execution *x, struct error *e)
{
	size_t ops = x->runner.role->ops.n, steps = (size_t)x->steps;
	x->records = calloc(steps + 1, sizeof *x->records);
	x->stamps = malloc((steps * ops + 1) * sizeof *x->stamps);
	x->loss = calloc(steps + 1, sizeof *x->loss);
	x->whole_s = x->s->gpus ? calloc(steps + 1, sizeof *x->whole_s) : NULL;
	if (!x->records || !x->stamps || !x->loss || (x->s->gpus && !x->whole_s))
		return error_nomem(e, "the times of the steps");
	memset(x->stamps, 0, (steps * ops + 1) * sizeof *x->stamps); /* touched now, not in a timed step */
	for (size_t i = 0; i < steps; i++)
		x->records[i].stamps = x->stamps + i * ops;
	return ST_OK;
}

/* ---- stepping ---- */

static enum status prepare(struct execution *x, struct error *e)
{
	enum status st = x->s->info.ranks == x->p->mesh.ranks
	                         ? runner_supports(x->p, x->s->gpus != NULL, e)
	                         : error_set(e, ST_RUN, "the program is for %lld ranks, the session has %lld",
					   (long long)x->p->mesh.ranks, (long long)x->s->info.ranks);
	if (!st)
		st = runner_plan(x->p, x->s->info.rank, &x->runner, e);
	if ((st = session_agree(x->s, st, e)) || (st = session_agree(x->s, check_memory(x, e), e)))
		return st;
	watchdog_roles(x->s->watchdog, x->p->roles, x->p->n_roles, role_of_rank(x->p, x->s->info.rank));
	watchdog_arm(x->s->watchdog, "set-up of the run");
	st = runner_open(x->s, &x->runner, e);
	if (!st)
		st = allocate_records(x, e);
	return session_agree(x->s, st, e);
}

static enum status verify(struct execution *x, struct error *e)
{
	watchdog_arm(x->s->watchdog, "verification");
	x->runner.device.ops->clear(x->runner.device.ctx);
	return session_agree(x->s,
		verify_collectives(&x->p->mesh, &x->runner.job, &x->runner.device, x->s->info.rank, e), e);
}

/* Before each step all ranks hear whether one has failed, and leave together: the barrier comes last because a sum may
 * reach some ranks earlier than others. */
static enum status align(struct execution *x, bool failed, bool *stop, struct error *e)
{
	double failures = failed;
	enum status st = session_sum(x->s, &failures, 1, e);
	if (!st)
		st = session_barrier(x->s, e);
	watchdog_progress(x->s->watchdog);
	*stop = failures > 0;
	return st;
}

/* Step `i` of the timed ones, then of those stamped as well; the warm-up's are before 0. The first stamped step after
 * whole ones makes events, and a graph with them: the next one takes its record. */
static enum status run_step(struct execution *x, int64_t i, struct error *e)
{
	const int64_t stamped = x->whole_s ? i - x->steps - 1 : i;
	struct record *record = stamped >= 0                  ? &x->records[stamped]
	                        : x->whole_s && stamped == -1 ? &x->records[0]
	                                                      : NULL;
	const int64_t begin_ns = stamp_now_ns();
	enum status st = runner_step(&x->runner, record ? record->stamps : NULL, e);
	if (record)
		record->begin_ns = begin_ns;
	else if (i >= 0)
		x->whole_s[i] = (double)(stamp_now_ns() - begin_ns) * 1e-9;
	if (!st && i >= 0 && i < x->steps)
		x->loss[i] = runner_loss(&x->runner);
	return st;
}

/* A step in which a kernel fails goes on to its end with the collectives alone; after it all ranks stop. */
static enum status run_steps(struct execution *x, struct error *e)
{
	int64_t warmup = x->p->config.run.warmup, all = warmup + (x->whole_s ? 2 * x->steps + 1 : x->steps);
	enum status st = ST_OK;
	struct cpu_steal others = {0};
	runner_reset(&x->runner);
	if ((st = links_begin(x->s, &x->links, e)))
		return st;
	if (x->whole_s && x->s->info.rank == 0)
		log_detail("%lld steps timed as wholes, %lld more with an event around each op", (long long)x->steps,
			(long long)x->steps);
	progress_begin("executing");
	for (int64_t i = 0; i < all; i++) {
		bool stop;
		if (i == warmup) {
			gpus_sample_begin(x->s);
			cpu_steal_begin(&others);
		}
		enum status aligned = align(x, st != ST_OK, &stop, e);
		if (aligned || stop) {
			st = st ? st : aligned;
			break;
		}
		watchdog_arm(x->s->watchdog, i < warmup ? "warm-up" : "the timed steps");
		st = run_step(x, i - warmup, e);
		progress_update((double)(i + 1) / (double)all, NULL);
	}
	gpus_sample_end(x->s, &x->samples);
	progress_end();
	if ((st = session_agree(x->s, st, e)) || (st = cpu_steal_end(x->s, &others, &x->others, e)))
		return st;
	watchdog_arm(x->s->watchdog, "timing the links");
	return links_end(x->s, &x->links, e);
}

/* ---- the result ---- */

/* Ranks of a model-parallel group hold the same loss: one of them counts, in the stage that has the head. */
static enum status sum_losses(struct execution *x, struct error *e)
{
	bool counts = x->runner.role->loss >= 0;
	for (int d = 0; d < DIM_COUNT; d++)
		counts = counts &&
		         (d == DIM_DP || d == DIM_CP || d == DIM_EP || d == DIM_PP || x->runner.job.coord[d] == 0);
	for (int64_t i = 0; i < x->steps; i++)
		x->loss[i] = counts ? x->loss[i] : 0;
	return session_sum(x->s, x->loss, (size_t)x->steps, e);
}

struct measured {
	double *step_s;
	struct breakdown *time; /* of each step's rank that is told of */
};

static int by_time(const void *a, const void *b)
{
	double x = **(const double *const *)a, y = **(const double *const *)b;
	return (x > y) - (x < y);
}

/* The lower median: a step that took place. */
static int64_t median_step(const double *step_s, const double **order, int64_t n)
{
	for (int64_t i = 0; i < n; i++)
		order[i] = &step_s[i];
	qsort(order, (size_t)n, sizeof *order, by_time);
	return order[(n - 1) / 2] - step_s;
}

static void own_memory(const struct execution *x, struct result_memory *m)
{
	const struct layout *l = &x->runner.layout;
	*m = (struct result_memory){0};
	m->weights_B = l->peak_component_B[COMP_WEIGHTS];
	m->gradients_B = l->peak_component_B[COMP_GRADIENTS];
	m->optimizer_B = l->peak_component_B[COMP_OPTIMIZER];
	m->activations_B = l->peak_component_B[COMP_ACTIVATIONS];
	m->buffers_B = l->peak_component_B[COMP_BUFFERS];
	/* The memory taken beyond the peak: gaps of the plan, and what the device has beside its arenas. */
	m->overhead_B = l->total_B - l->peak_B + x->runner.device.ops->overhead_B(x->runner.device.ctx);
	m->total_B = l->peak_B + m->overhead_B;
	m->capacity_B = x->capacity_B;
	m->fits = true;
}

/* Collective: the rank that needs most, of ranks that need the same the first. */
static enum status most_memory(struct execution *x, struct result_memory *out, struct error *e)
{
	struct result_memory mine, *all = malloc((size_t)x->s->info.ranks * sizeof *all);
	enum status st = session_agree(x->s, all ? ST_OK : error_nomem(e, "the ranks' memory"), e);
	own_memory(x, &mine);
	if (!st && !(st = session_gather_all(x->s, &mine, sizeof mine, all, e))) {
		*out = all[0];
		for (int64_t r = 1; r < x->s->info.ranks; r++)
			*out = all[r].total_B > out->total_B ? all[r] : *out;
	}
	free(all);
	return st;
}

/* The partition of the middle half of the steps, on the mean, as parts of the median step: it adds up, and one step's
 * is noisier than its total. `order`: the steps by time. */
static struct breakdown middle_half(const struct measured *m, const double *const *order, size_t n, int64_t median)
{
	const size_t left_out = (n + 1) / 4; /* at each end */
	const struct breakdown *of = &m->time[median];
	struct breakdown sum = {0};
	for (size_t k = left_out; k < n - left_out; k++)
		breakdown_add(&sum, &m->time[order[k] - m->step_s]);
	if (!(sum.step_s > 0))
		return *of;
	breakdown_scale(&sum, of->step_s);
	memcpy(sum.class_s, of->class_s, sizeof sum.class_s);
	memcpy(sum.class_n, of->class_n, sizeof sum.class_n);
	return sum;
}

/* Each timed step's time, in order: a slow first one is another matter than a slow last one. */
static void tell_steps(const struct execution *x)
{
	char one[QUANTITY_MAX], all[16 * QUANTITY_MAX] = "";
	for (int64_t i = 0; i < x->steps && strlen(all) + 2 * QUANTITY_MAX < sizeof all; i++) {
		strcat(all, i ? ", " : "");
		strcat(all, quantity_format(one, x->whole_s[i], UNIT_SECOND));
	}
	if (!x->s->info.gpu_doubles)
		log_detail("steps timed as wholes: %s", all);
}

/* The classes' sums are medians over the steps, each of the step's rank that is told of, without the events' time. */
static void fill_time(const struct execution *x, const struct measured *m, const double *const *order, int64_t median,
	double *column, struct result *out)
{
	size_t n = (size_t)x->steps;
	out->time = middle_half(m, order, n, median);
	for (int c = 0; c < CLASS_COUNT; c++) {
		for (size_t i = 0; i < n; i++)
			column[i] = m->time[i].class_s[c];
		out->time.class_s[c] = stats_median(column, n);
		out->class_bound[c] = BOUND_COUNT; /* times do not say what bounds them */
	}
	if (x->s->info.cores_per_rank == 1 && !x->s->gpus)
		out->time.overlap = NAN;
	memcpy(column, m->step_s, n * sizeof *column);
	out->steps = x->steps;
	if (x->whole_s) {
		tell_steps(x);
		memcpy(column, x->whole_s, n * sizeof *column);
		const double whole_s = stats_median(column, n);
		out->stamped_step_s = out->time.step_s;
		breakdown_less_events(&out->time, out->stamped_step_s - whole_s);
		breakdown_scale(&out->time, whole_s);
	}
	out->step_min_s = stats_min(column, n);
	out->step_max_s = stats_max(column, n);
	out->interval90_s[0] = stats_percentile(column, n, 5);
	out->interval90_s[1] = stats_percentile(column, n, 95);
	result_bottleneck(out, NULL, x->host_cause);
	result_rates(out, x->p, NAN); /* the peak is the machine's, which the caller knows */
}

static void warn_of_clocks(void *result, const char *text) { result_warn(result, "%s", text); }

/* Logs the clocks of a run on doubles. They are no measurement and stay out of the result. */
static void tell_of_clocks(void *ctx, const char *text)
{
	(void)ctx;
	log_detail("clocks as the doubles have them: %s", text);
}

static void fill_clocks(const struct execution *x, struct result *out)
{
	const struct result_clocks *c = &x->clocks;
	if (c->samples > 0)
		log_detail("%s: %lld samples of %lld GPU%s",
			x->s->info.gpu_doubles ? "clocks as the doubles have them" : "clocks", (long long)c->samples,
			(long long)c->gpus, c->gpus == 1 ? "" : "s");
	if (!x->s->info.gpu_doubles)
		out->clocks = *c;
	clocks_say(c, x->s->info.gpu_doubles ? tell_of_clocks : warn_of_clocks, out);
}

static void fill_notes(const struct execution *x, struct result *out)
{
	const struct session_info *info = &x->s->info;
	fill_clocks(x, out);
	if (x->others.rank >= 0 && !info->gpu_doubles) {
		char what[128];
		cpu_steal_words(&x->others, what, sizeof what);
		result_warn(out, "%s while steps were timed: they are a busy machine's", what);
	}
	if (info->gpu_shared)
		result_warn(out,
			"several ranks share a GPU (run.share_gpu): the run checks that the sums are right; its times "
			"mean nothing");
	if (info->oversubscribed && !info->gpus)
		result_warn(out,
			"%lld ranks share %lld cores: the times say what this machine does, not what %lld devices "
			"would",
			(long long)info->ranks_per_host, (long long)x->s->host_cores, (long long)info->ranks);
	const struct model *m = &x->p->config.model;
	if (m->experts > 0 && !(m->capacity_factor > 0))
		result_warn(out,
			"capacity_factor 0 stands for training without dropping; executed, each expert has the places "
			"of factor 1, and tokens beyond them are dropped");
	if (out->stamped_step_s > STAMPS_SAID * out->time.step_s && !info->gpu_doubles)
		result_warn(out,
			"with an event around each op a step took %.1f %% longer: where the step goes is told in its "
			"proportions",
			100 * (out->stamped_step_s / out->time.step_s - 1));
	for (int64_t i = 0; i < x->steps; i++)
		if (!isfinite(x->loss[i]))
			result_warn(out, "the loss of step %lld is not a number",
				(long long)(x->p->config.run.warmup + i + 1));
	out->verified = x->p->config.run.verify ? 1 : -1;
	out->doubles = info->gpu_doubles;
}

/* Every step is gathered, priced and dropped again; the median one is gathered once more and kept. */
static enum status collect(struct execution *x, struct result *out, struct timeline *timeline, struct error *e)
{
	bool root = x->s->info.rank == 0;
	size_t n = (size_t)x->steps;
	struct result_memory memory;
	struct measured m = {calloc(n, sizeof *m.step_s), calloc(n, sizeof *m.time)};
	const double **order = calloc(n, sizeof *order);
	double *column = calloc(n, sizeof *column);
	struct late late = {0};
	const struct shared_cores shared = {x->p, x->s->host_of, x->s->host_cores};
	const bool shares = x->s->info.oversubscribed && !x->s->gpus;
	enum status st = m.step_s && m.time && order && column ? ST_OK : error_nomem(e, "the result");
	if (!st && root)
		st = late_init(&late, x->s->info.ranks, x->steps, e);
	if ((st = session_agree(x->s, st, e)))
		goto out;
	watchdog_arm(x->s->watchdog, "collecting the times");
	for (size_t i = 0; i < n; i++) {
		struct timeline t;
		enum status here = gather_timeline(x->s, x->p, &x->records[i], &t, e);
		if (!here && root)
			here = timeline_breakdown_shared(&t, timeline_last_of_role(&t, x->p, x->role),
				shares ? &shared : NULL, &m.time[i], e);
		m.step_s[i] = m.time[i].step_s;
		if (!here && root)
			late_add(&late, (int64_t)i, &t);
		timeline_free(&t);
		watchdog_progress(x->s->watchdog);
		st = st ? st : here;
	}
	int64_t median = median_step(m.step_s, order, x->steps);
	enum status comm = session_broadcast(x->s, &median, sizeof median, e);
	if ((st = session_agree(x->s, st ? st : comm, e)) ||
		(st = session_agree(x->s, gather_timeline(x->s, x->p, &x->records[median], timeline, e), e)) ||
		(st = sum_losses(x, e)) || (st = most_memory(x, &memory, e)) ||
		(x->whole_s && (st = session_max(x->s, x->whole_s, n, e))) ||
		(x->s->gpus && (st = gpus_clocks(x->s, &x->samples, &x->clocks, e))) || !root)
		goto out;
	*out = (struct result){0};
	out->memory = memory;
	x->host_cause = timeline_host_cause(timeline, &x->p->roles[x->role],
		timeline_last_of_role(timeline, x->p, x->role));
	fill_time(x, &m, order, median, column, out);
	fill_notes(x, out);
	links_say(&x->links, x->s, out);
	late_say(&late, x->s, x->p, m.step_s, out);
out:
	late_free(&late);
	free(m.step_s);
	free(m.time);
	free(order);
	free(column);
	return st;
}

enum status execute(struct session *s, const struct program *p, uint32_t role, struct result *out,
	struct timeline *timeline, double *losses, struct error *e)
{
	struct execution x = {.s = s, .p = p, .role = role, .steps = p->config.run.steps};
	*timeline = (struct timeline){0};
	enum status st = prepare(&x, e);
	if (!st && p->config.run.verify)
		st = verify(&x, e);
	if (!st)
		st = run_steps(&x, e);
	if (!st)
		st = session_agree(s, collect(&x, out, timeline, e), e);
	if (!st && losses)
		memcpy(losses, x.loss, (size_t)x.steps * sizeof *losses);
	watchdog_disarm(s->watchdog);
	watchdog_roles(s->watchdog, NULL, 0, 0);
	runner_close(&x.runner);
	free(x.records);
	free(x.stamps);
	free(x.loss);
	free(x.whole_s);
	links_free(&x.links);
	if (st)
		timeline_free(timeline);
	return st;
}
