/* The host executor against a single rank: a config (and --set overrides) is run by all ranks together, and by each
 * rank for itself as one rank alone, without communication. Loss, every gradient and every updated parameter must
 * agree; on one rank the gradients are checked against finite differences of the loss; and the loss must fall over 30
 * steps.
 *
 *   mpirun -np N test_train CONFIG.yaml [KEY=VALUE ...] [-- CONFIG.yaml [KEY=VALUE ...]] ...
 *
 * Cases between "--" come one after the other, each with a line that begins with "passed" or "failed". Exit code 0 when
 * all hold; each violation is a line on standard error.
 */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/log.h"
#include "exec/host/kernels.h"
#include "exec/init.h"
#include "exec/runner.h"
#include "exec/session.h"

#define STEPS 3
#define FALL_STEPS 30
#define MAX_SETS 32

static int failures;

static void wrong(const char *fmt, ...)
{
	char text[512];
	va_list ap;
	if (failures++ >= 8) /* the first ones tell */
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	fprintf(stderr, "test_train: %s\n", text);
}

/* ---- a side: a program and the rank that runs it ---- */

struct side {
	struct config config;
	struct program *program;
	struct runner runner;
	int64_t ranks;
};

static enum status side_open(struct session *s, const char *path, const char *const *sets, size_t n_sets, bool alone,
	struct side *out, struct error *e)
{
	memset(out, 0, sizeof *out);
	out->ranks = alone ? 1 : session_info(s)->ranks;
	enum status st;
	if ((st = config_load(path, sets, n_sets, &out->config, e)) ||
		(st = config_resolve(&out->config, out->ranks, e)) ||
		(st = program_build(&out->config, &out->program, e)) || (st = program_check(out->program, e)) ||
		(st = runner_supports(out->program, false, e)) ||
		(st = runner_plan(out->program, alone ? 0 : session_info(s)->rank, &out->runner, e)))
		return st;
	return runner_open(s, &out->runner, e);
}

static void side_close(struct side *s)
{
	runner_close(&s->runner);
	program_destroy(s->program);
}

static const struct role *role_of(const struct side *s) { return s->runner.role; }

/* The mean loss before the update of one step. */
static double step(struct session *s, struct side *x, struct error *e)
{
	if (runner_step(&x->runner, NULL, e))
		wrong("%s", e->text);
	double loss = runner_loss(&x->runner);
	if (x->ranks == 1)
		return loss;
	bool counts = role_of(x)->loss >= 0;
	for (int d = 0; d < DIM_COUNT; d++)
		counts = counts &&
		         (d == DIM_DP || d == DIM_CP || d == DIM_EP || d == DIM_PP || x->runner.job.coord[d] == 0);
	loss = counts ? loss : 0;
	session_sum(s, &loss, 1, e);
	return loss;
}

/* ---- what a rank holds of a parameter ---- */

/* Local elements [begin, end) of a parameter that lie, one after the other, from `at` (bytes into its buffer) on. */
struct own {
	int32_t buffer;
	uint64_t at_B, begin, end;
};

static struct own held(const struct side *s, const struct role_param *rp, bool gradient)
{
	const struct bucket *b = &role_of(s)->buckets.at[rp->bucket];
	bool whole = gradient ? b->shards == 1 : b->weights.buffer >= 0;
	const struct view *v = gradient ? &b->grad_shard : whole ? &b->weights : &b->shard;
	uint64_t part = b->padded / (uint64_t)b->shards,
		 lo = whole ? 0 : part * (uint64_t)s->runner.job.coord[b->along], hi = whole ? b->padded : lo + part;
	uint64_t begin = rp->offset > lo ? rp->offset : lo,
		 end = rp->offset + rp->elements < hi ? rp->offset + rp->elements : hi;
	if (begin >= end)
		return (struct own){-1, 0, 0, 0};
	return (struct own){v->buffer, view_offset_B(&s->runner.job, v) + (begin - lo) * sizeof(float),
		begin - rp->offset, end - rp->offset};
}

static float *fetch(const struct side *s, const struct own *h)
{
	uint64_t bytes = (h->end - h->begin) * sizeof(float);
	float *x = malloc(bytes + 1);
	if (!x)
		exit(2);
	s->runner.device.ops->read(s->runner.device.ctx, h->buffer, h->at_B, x, bytes);
	return x;
}

static void store(const struct side *s, const struct own *h, const float *x)
{
	s->runner.device.ops->write(s->runner.device.ctx, h->buffer, h->at_B, x, (h->end - h->begin) * sizeof *x);
}

static float largest(const float *x, uint64_t n)
{
	float max = 0;
	for (uint64_t i = 0; i < n; i++)
		max = fmaxf(max, fabsf(x[i]));
	return max;
}

static bool trains(const struct side *s, const struct role_param *rp)
{
	return role_of(s)->buckets.at[rp->bucket].trained;
}

static float largest_gradient(const struct side *s)
{
	float max = 0;
	for (size_t i = 0; i < role_of(s)->params.n; i++) {
		if (!trains(s, &role_of(s)->params.at[i]))
			continue;
		struct own h = held(s, &role_of(s)->params.at[i], true);
		float *g = fetch(s, &h);
		max = fmaxf(max, largest(g, h.end - h.begin));
		free(g);
	}
	return max;
}

/* ---- all ranks against one ---- */

/* An optimizer's response to small differences, and the loss that 30 steps of it must reach. */
struct rule {
	float lr;
	bool linear; /* updates are proportional to gradients; else about lr x sign(g) */
	double falls_to;
};

static struct rule rule_of(enum optimizer o)
{
	switch (o) {
	case OPT_SGD: return (struct rule){SGD_LR, true, 0.99};
	case OPT_LION: return (struct rule){LION_LR, false, 0.95};
	case OPT_LAMB: return (struct rule){LAMB_LR, false, 0.98};
	case OPT_ADAFACTOR:
		return (struct rule){ADAFACTOR_LR * 0.02f, false, 0.85}; /* weights begin about 0.02 large */
	default: return (struct rule){ADAM_LR, false, 0.8};
	}
}

/* How far one element may be from the single rank's. Sums are taken in another order; gradients that are zero but for
 * rounding (a key bias) agree only on the scale of all, and where noise decides the sign of an update the two may go
 * apart. */
static float tolerance(const struct side *x, bool gradient, float g, float g_tensor, float g_all)
{
	float noise = 2e-4f * g_tensor + 2e-6f * g_all;
	struct rule r = rule_of(x->config.train.optimizer);
	if (gradient)
		return noise;
	if (r.linear)
		return r.lr * noise + 1e-7f;
	return fabsf(g) > 10 * noise ? 0.01f * r.lr : 2.1f * r.lr;
}

/* The same parameter on one rank: a stage has its own alone, and the last may have a table that stands first in the
 * model. */
static const struct role_param *param_of(const struct side *ref, const struct param *p)
{
	for (size_t i = 0; i < role_of(ref)->params.n; i++) {
		const struct role_param *rp = &role_of(ref)->params.at[i];
		if (rp->param.kind == p->kind && rp->param.layer == p->layer)
			return rp;
	}
	return NULL;
}

static void compare_param(const struct side *x, const struct side *ref, size_t i, bool gradient, float g_all)
{
	const struct role_param *rp = &role_of(x)->params.at[i], *rp_ref = param_of(ref, &rp->param);
	if (!rp_ref) {
		wrong("a single rank has no %s of layer %lld", param_kind_name(rp->param.kind),
			(long long)rp->param.layer);
		return;
	}
	struct own h = held(x, rp, gradient), whole = held(ref, rp_ref, gradient), g_whole = held(ref, rp_ref, true);
	if (h.buffer < 0)
		return;
	float *mine = fetch(x, &h), *want = fetch(ref, &whole), *g = fetch(ref, &g_whole),
	      g_tensor = largest(g, g_whole.end - g_whole.begin);
	const struct param_part part = mesh_param_part(&x->program->mesh, x->runner.job.coord, &rp->param);
	for (uint64_t k = h.begin; k < h.end; k++) {
		uint64_t global = init_stretch(&x->config.model, &rp->param, part, k).global;
		float a = mine[k - h.begin], b = want[global],
		      limit = tolerance(x, gradient, g[global], g_tensor, g_all);
		if (!(fabsf(a - b) <= limit)) {
			wrong("rank %lld: %s of layer %lld %s, element %llu: %g, a single rank has %g (allowed "
			      "difference %g)",
				(long long)x->runner.rank, gradient ? "gradient" : "updated value",
				(long long)rp->param.layer, param_kind_name(rp->param.kind), (unsigned long long)global,
				(double)a, (double)b, (double)limit);
			break;
		}
	}
	free(mine);
	free(want);
	free(g);
}

static void compare(struct session *s, struct side *x, struct side *ref, struct error *e)
{
	runner_reset(&x->runner);
	runner_reset(&ref->runner);
	if (x->program->n_roles == 1 && role_of(x)->params.n != role_of(ref)->params.n)
		wrong("%zu parameters, a single rank has %zu", role_of(x)->params.n, role_of(ref)->params.n);
	for (int i = 0; i < STEPS && !failures; i++) {
		double loss = step(s, x, e), want = step(s, ref, e);
		/* Later losses follow from parameters that may differ by noise already. */
		if (!(fabs(loss - want) <= (i ? 1e-3 : 1e-5) * want))
			wrong("step %d: loss %.7f, a single rank has %.7f", i + 1, loss, want);
		if (i)
			continue;
		float g_all = largest_gradient(ref);
		if (!(g_all > 1e-4f))
			wrong("all gradients are tiny: the largest is %g", (double)g_all);
		for (size_t k = 0; k < role_of(x)->params.n; k++) {
			const bool trained = trains(x, &role_of(x)->params.at[k]);
			if (trained && !optimizer_traits[x->config.train.optimizer]
						.trust_ratio) /* there the direction stands */
				compare_param(x, ref, k, true, g_all);
			compare_param(x, ref, k, false, g_all);
		}
	}
}

static void must_fall(struct session *s, struct side *x, struct error *e)
{
	runner_reset(&x->runner);
	double first = step(s, x, e), last = first;
	for (int i = 1; i < FALL_STEPS; i++)
		last = step(s, x, e);
	const double most = x->config.model.lora_rank > 0 ? 0.998 : rule_of(x->config.train.optimizer).falls_to;
	if (!(last < most * first)) /* adapters alone learn less of random data */
		wrong("the loss does not fall: %.4f at first, %.4f after %d steps", first, last, FALL_STEPS);
	else if (x->runner.rank == 0)
		printf("test_train: %lld rank%s: loss %.4f, after %d steps %.4f\n", (long long)x->ranks,
			x->ranks == 1 ? "" : "s", first, FALL_STEPS, last);
}

/* ---- gradients against finite differences ---- */

/* The loss's slope along `direction` in one parameter, by central differences of fourth order (Abramowitz and Stegun
 * 1964, 25.3.21): the loss bends too much for second order. */
static double difference(struct session *s, struct side *x, const struct own *h, const float *w, const float *direction,
	double length, struct error *e)
{
	static const double weight[] = {1, -8, 8, -1}, place[] = {-2, -1, 1, 2};
	uint64_t n = h->end - h->begin;
	float *moved = malloc(n * sizeof *moved);
	double sum = 0;
	if (!moved)
		exit(2);
	for (int k = 0; k < 4; k++) {
		for (uint64_t i = 0; i < n; i++)
			moved[i] = w[i] + (float)(place[k] * length * (double)direction[i]);
		store(x, h, moved);
		sum += weight[k] * step(s, x, e);
	}
	store(x, h, w);
	free(moved);
	return sum / (12 * length);
}

/* A step that moves the loss well above its rounding (1e-6) and stays small beside the activations. */
static double step_length(double slope) { return fmin(0.01, fmax(1e-3, 4e-3 / fmax(fabs(slope), 1e-9))); }

static void check_slope(struct session *s, struct side *x, const struct role_param *rp, const struct own *h,
	const float *w, const float *direction, double slope, const char *what, struct error *e)
{
	double length = step_length(slope), measured = 0, limit = 0;
	/* Behind a norm of small values the loss bends within one step: a shorter one tells that from a wrong slope. */
	for (int tries = 0; tries < 2; tries++, length /= 3) {
		measured = difference(s, x, h, w, direction, length, e);
		limit = 0.02 * fabs(slope) + 3e-6 / length;
		if (fabs(measured - slope) <= limit)
			return;
	}
	wrong("layer %lld %s: slope %s is %g by the gradient, %g by differences (allowed difference %g)",
		(long long)rp->param.layer, param_kind_name(rp->param.kind), what, slope, measured, limit);
}

/* Along the gradient itself, and along some single elements: the steepest and two others. */
static void check_param(struct session *s, struct side *x, const struct role_param *rp, struct error *e)
{
	struct own hw = held(x, rp, false), hg = held(x, rp, true);
	uint64_t n = hw.end - hw.begin, steepest = 0;
	float *w = fetch(x, &hw), *g = fetch(x, &hg), *direction = calloc(n, sizeof *direction);
	double norm = 0;
	if (!direction)
		exit(2);
	for (uint64_t i = 0; i < n; i++) {
		norm += (double)g[i] * (double)g[i];
		steepest = fabsf(g[i]) > fabsf(g[steepest]) ? i : steepest;
	}
	norm = sqrt(norm);
	if (norm > 1e-4) {
		for (uint64_t i = 0; i < n; i++)
			direction[i] = (float)((double)g[i] / norm);
		check_slope(s, x, rp, &hw, w, direction, norm, "along the gradient", e);
	}
	uint64_t elements[] = {steepest, n / 3, n - 1};
	for (size_t k = 0; k < COUNT(elements); k++) {
		memset(direction, 0, n * sizeof *direction);
		direction[elements[k]] = 1;
		check_slope(s, x, rp, &hw, w, direction, (double)g[elements[k]], "of an element", e);
	}
	free(w);
	free(g);
	free(direction);
}

static void check_gradients(struct session *s, struct side *x, struct error *e)
{
	runner_reset(&x->runner);
	for (size_t i = 0; i < role_of(x)->params.n; i++) {
		if (!trains(x, &role_of(x)->params.at[i]))
			continue;
		step(s, x, e); /* the last step of the parameter before was at a moved point: fresh gradients */
		check_param(s, x, &role_of(x)->params.at[i], e);
	}
}

/* ---- a case: a config and its overrides ---- */

static enum status run_case(struct session *s, const char *path, const char *const *given, size_t n, struct error *e)
{
	struct side x = {0}, ref = {0}, still = {0};
	const char *sets[MAX_SETS + 19];
	memcpy(sets, given, n * sizeof *sets);
	enum status st = side_open(s, path, sets, n, false, &x, e);
	sets[n] = "parallel.tensor=1"; /* and one replica: on one rank no strategy has anybody to talk to */
	sets[n + 1] = "parallel.sequence_parallel=false";
	sets[n + 2] = "parallel.pipeline=1";
	sets[n + 3] = "parallel.schedule=1f1b";
	sets[n + 4] = "parallel.virtual_stages=1";
	sets[n + 5] = "parallel.shard=auto";
	sets[n + 6] = "parallel.context=1";
	sets[n + 7] = "parallel.expert=1";
	sets[n + 8] = "train.offload=none";
	sets[n + 9] = "parallel.expert_overlap=false";
	sets[n + 10] = "parallel.expert_tensor=1";
	sets[n + 11] = "parallel.replicate=auto";
	sets[n + 12] = "parallel.layers_per_stage=[]";
	sets[n + 13] = "parallel.count_ends=auto";
	sets[n + 14] = "parallel.first_stage_layers=auto";
	sets[n + 15] = "parallel.last_stage_layers=auto";
	if (!st)
		st = side_open(s, path, sets, n + 16, true, &ref, e);
	sets[n + 16] = "train.optimizer=none";
	sets[n + 17] = "train.optimizer_bits=32";
	sets[n + 18] = "train.global_batch=2"; /* two micro-batches: differences take some hundred steps */
	if (!st && session_info(s)->ranks == 1)
		st = side_open(s, path, sets, n + 19, true, &still, e);
	failures = 0;
	if (!session_agree(s, st, e)) {
		compare(s, &x, &ref, e);
		must_fall(s, &x, e);
		if (session_info(s)->ranks == 1)
			check_gradients(s, &still, e);
		st = session_agree(s, failures ? ST_RUN : ST_OK, e);
	} else {
		fprintf(stderr, "test_train: %s\n", e->text);
		st = ST_INPUT;
	}
	side_close(&x);
	side_close(&ref);
	side_close(&still);
	return st;
}

int main(int argc, char **argv)
{
	struct error e = {ST_OK, ""};
	struct session *s = NULL;
	if (argc < 2) {
		fprintf(stderr, "test_train CONFIG.yaml [KEY=VALUE ...] [-- CONFIG.yaml [KEY=VALUE ...]] ...\n");
		return 2;
	}
	enum status st = session_open(60, &s, &e), worst = ST_OK;
	if (st) {
		fprintf(stderr, "test_train: %s\n", e.text);
		return st;
	}
	const bool first = session_info(s)->rank == 0;
	log_setup(LOG_QUIET, PROGRESS_NEVER, first);
	for (int at = 1, end; at < argc; at = end + 1) {
		for (end = at; end < argc && strcmp(argv[end], "--") != 0;)
			end++;
		e = (struct error){ST_OK, ""};
		st = end - at < 1 || end - at - 1 > MAX_SETS
		             ? ST_INPUT
		             : run_case(s, argv[at], (const char *const *)argv + at + 1, (size_t)(end - at - 1), &e);
		worst = st ? st : worst;
		if (!first)
			continue;
		printf("%s", st ? "failed" : "passed");
		for (int i = at; i < end; i++)
			printf(" %s", argv[i]);
		printf("\n");
		fflush(stdout);
	}
	session_close(s);
	return worst;
}
