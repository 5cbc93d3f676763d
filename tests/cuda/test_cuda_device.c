/* The CUDA device against the host device: small programs of every strategy, both from the same start, two steps; loss,
 * gradients and updated parameters must agree. On the doubles of the libraries (streams run in orders that are drawn)
 * with 50 seeds; with graphs and without. On a GPU in the order that it takes.
 *
 * There is one rank here. The communicators are the test's own, and of two members that hold the same: a sum is twice
 * the own part, and is computed on the call's queue, so that a collective that does not wait for what it needs, or is
 * not awaited, is seen.
 *
 *   test_cuda_device        all of it
 *   test_cuda_device N      variant N alone, with the seed in STEPSIM_DOUBLE_SEED
 *   test_cuda_device N K    the same without the Kth wait of each step: which has to fail
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <math.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "base/array.h"
#include "base/log.h"
#include "exec/cuda/device.h"
#include "exec/cuda/kernels.h"
#include "exec/cuda/backend.h"
#include "exec/host/device.h"
#include "exec/host/kernels.h"
#include "exec/init.h"
#include "tests/unit/harness.h"

#define CONFIG "tests/exec/tiny.yaml"
#define SEEDS 50
#define MOST_ORDERS 20 /* in which a missing wait has to be seen */
#define MAX_SETS 8
#define OF_DOUBLES 2 /* tests, the last ones: orders that only doubles can draw */

extern const struct cuda_backend stepsim_cuda_backend;
extern char **environ;

static struct error error;

static bool done_well(enum status st, const char *what)
{
	CU_ASSERT_EQUAL(st, ST_OK);
	if (st)
		printf("%s: %s\n", what, error.text);
	return st == ST_OK;
}

/* ---- a wait that is missing ---- */

static long dropped = -1; /* of a step's waits */
static size_t waits, waits_of_step;

/* In the room's way to the runtime. */
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags)
{
	static cudaError_t (*wait)(cudaStream_t, cudaEvent_t, unsigned);
	if (!wait) {
		void *symbol = dlsym(RTLD_NEXT, "cudaStreamWaitEvent");
		memcpy(&wait, &symbol, sizeof wait);
	}
	if (waits_of_step && (long)(waits++ % waits_of_step) == dropped)
		return cudaSuccess;
	return wait(stream, event, flags);
}

/* ---- communicators of two alike ---- */

static int starts_left = -1; /* before one fails; -1: none does */

static enum status add_on_queue(const struct comm_call *c, uint64_t n, struct error *e)
{
	const struct cuda_env env = {.stream = c->queue, .sms = 4};
	const struct op op = {.kind = OP_ADD,
		.dtype = (uint8_t)c->dtype,
		.out_dtype = (uint8_t)c->dtype,
		.matrix = {1, (int64_t)n},
		.what = "sum of two"};
	const struct cuda_arg arg[OP_MAX_ARGS] = {{(void *)(uintptr_t)c->in, c->dtype},
		{(void *)(uintptr_t)c->in, c->dtype}, {NULL, c->dtype}, {c->out, c->dtype}};
	return cuda_kernel_run(&env, &op, arg, e);
}

static enum status copy_on_queue(const struct comm_call *c, uint64_t part_B, struct error *e)
{
	for (int i = 0; i < 2; i++) {
		char *to = (char *)c->out + (uint64_t)i * part_B;
		if (to != c->in &&
			cudaMemcpyAsync(to, c->in, part_B, cudaMemcpyDeviceToDevice, c->queue) != cudaSuccess)
			return error_set(e, ST_RUN, "a copy was refused");
	}
	return ST_OK;
}

static int64_t late_ns; /* that the host loses at each collective */

static enum status start_on_device(void *ctx, const struct comm_call *c, struct error *e)
{
	const uint64_t part = c->elements / 2;
	const struct timespec late = {0, late_ns};
	(void)ctx;
	if (late_ns > 0)
		nanosleep(&late, NULL);
	if (starts_left > 0 && --starts_left == 0)
		return error_set(e, ST_RUN, "the link is cut");
	if (c->coll == COLL_SENDRECV)
		return cudaMemcpyAsync(c->out, c->in, c->elements * (uint64_t)dtype_bytes(c->dtype),
			       cudaMemcpyDeviceToDevice, c->queue) == cudaSuccess
		               ? ST_OK
		               : error_set(e, ST_RUN, "a copy was refused");
	if (c->coll == COLL_ALL_GATHER)
		return copy_on_queue(c, part * (uint64_t)dtype_bytes(c->dtype), e);
	if (c->reduce == RED_MAX)
		return ST_OK; /* in place everywhere */
	return add_on_queue(c, c->coll == COLL_ALL_REDUCE ? c->elements : part, e);
}

static enum status start_on_host(void *ctx, const struct comm_call *c, struct error *e)
{
	const uint64_t part = c->elements / 2, n = c->coll == COLL_ALL_REDUCE ? c->elements : part;
	(void)ctx;
	(void)e;
	if (c->coll == COLL_SENDRECV)
		memcpy(c->out, c->in, c->elements * sizeof(float));
	else if (c->coll == COLL_ALL_GATHER)
		for (int i = 0; i < 2; i++)
			memmove((char *)c->out + (uint64_t)i * part * sizeof(float), c->in, part * sizeof(float));
	else
		for (uint64_t i = 0; i < n && c->reduce == RED_SUM; i++)
			((float *)c->out)[i] = 2.0f * ((const float *)c->in)[i];
	return ST_OK;
}

static enum status test_done(void *ctx, bool *done, struct error *e)
{
	(void)ctx;
	(void)e;
	*done = true;
	return ST_OK;
}

static void destroy_nothing(void *ctx) { (void)ctx; }

static struct comm two_alike(bool on_device)
{
	static const struct comm_ops device = {start_on_device, test_done, destroy_nothing},
				     host = {start_on_host, test_done, destroy_nothing};
	return (struct comm){on_device ? &device : &host, NULL, 2, 0};
}

/* ---- a side: a program, and a device that runs rank 0's part of it ---- */

struct side {
	struct config config;
	struct program *program;
	struct layout layout;
	struct device_job job;
	struct device device;
	struct beacon beacon;
	int64_t steps;
	char broken[256];
};

struct variant {
	const char *name;
	int64_t ranks;
	const char *sets[MAX_SETS];
};

static void on_broken(void *ctx, const char *text) { snprintf(ctx, 256, "%s", text); }

static enum status open_program(struct side *s, const struct variant *v, struct error *e)
{
	size_t n = 0;
	while (n < MAX_SETS && v->sets[n])
		n++;
	enum status st;
	if ((st = config_load(CONFIG, v->sets, n, &s->config, e)) || (st = config_resolve(&s->config, v->ranks, e)) ||
		(st = program_build(&s->config, &s->program, e)) || (st = program_check(s->program, e)))
		return st;
	return layout_plan(&s->program->roles[0], &s->layout, e);
}

static bool open_side_as(struct side *s, const struct variant *v, bool on_device, bool graph, bool shared)
{
	memset(s, 0, sizeof *s);
	error = (struct error){ST_OK, ""};
	enum status st = open_program(s, v, &error);
	if (st)
		return done_well(st, v->name);
	const struct role *r = &s->program->roles[0];
	s->job = (struct device_job){.role = r,
		.layout = &s->layout,
		.heads = s->config.model.heads,
		.cut = {s->config.parallel.context, s->config.parallel.context - 1, 2},
		.loss_scale = s->program->loss_scale,
		.beacon = &s->beacon,
		.cores = 1,
		.oversubscribed = true,
		.broken = on_broken,
		.broken_ctx = s->broken};
	for (size_t i = 0; i < r->ops.n; i++)
		if (r->ops.at[i].kind == OP_COLLECTIVE)
			s->job.comm[r->ops.at[i].lane][r->ops.at[i].group] = two_alike(on_device);
	const struct cuda_options o = {.device = 0, .graph = graph, .share_gpu = shared};
	st = on_device ? stepsim_cuda_backend.device_create(&o, &s->device, &error)
	               : host_device_create(&s->device, &error);
	if (!st)
		st = s->device.ops->load(s->device.ctx, &s->job, &error);
	return done_well(st, v->name);
}

static bool open_side(struct side *s, const struct variant *v, bool on_device, bool graph)
{
	return open_side_as(s, v, on_device, graph, false);
}

static void close_side(struct side *s)
{
	device_destroy(&s->device);
	layout_free(&s->layout);
	program_destroy(s->program);
}

static void reset(struct side *s)
{
	s->steps = 0;
	s->device.ops->clear(s->device.ctx);
	init_weights(s->program, &s->job, &s->device);
	init_input(s->program, &s->job, &s->device);
}

static enum status step(struct side *s, struct stamp *stamps, float *loss)
{
	const struct device_step d = {.number = ++s->steps, .stamps = stamps};
	enum status st = s->device.ops->step(s->device.ctx, &d, &error);
	s->device.ops->read(s->device.ctx, s->job.role->loss, 0, loss, sizeof *loss);
	return st;
}

static float *fetch(struct side *s, const struct view *v, uint64_t n)
{
	float *x = malloc(n * sizeof *x);
	CU_ASSERT_FATAL(x != NULL);
	s->device.ops->read(s->device.ctx, v->buffer, view_offset_B(&s->job, v), x, n * sizeof *x);
	return x;
}

/* ---- comparing ---- */

static double norm(const float *x, const float *y, uint64_t n)
{
	double sum = 0.0;
	for (uint64_t i = 0; i < n; i++)
		sum += ((double)x[i] - (y ? (double)y[i] : 0.0)) * ((double)x[i] - (y ? (double)y[i] : 0.0));
	return sqrt(sum);
}

/* How far the sides are apart, beside how large the host's numbers are. */
static void compare_views(struct side *x, struct side *ref, const struct view *at, const struct view *ref_at,
	uint64_t n, double limit, const char *what, const char *name)
{
	float *mine = fetch(x, at, n), *want = fetch(ref, ref_at, n);
	double apart = norm(mine, want, n), size = norm(want, NULL, n);
	CU_ASSERT(apart <= limit * size);
	if (!(apart <= limit * size))
		printf("%s: %s: off by %g of %g\n", name, what, apart, size);
	CU_ASSERT(size > 0.0);
	free(mine);
	free(want);
}

static void compare_sides(struct side *x, struct side *ref, const char *name)
{
	float loss = 0.0f, want = 0.0f;
	for (int i = 0; i < 2; i++) {
		if (!done_well(step(x, NULL, &loss), name) || !done_well(step(ref, NULL, &want), name))
			return;
		CU_ASSERT_DOUBLE_EQUAL(loss, want, (double)want * 1e-5);
		if (fabsf(loss - want) > want * 1e-5f)
			printf("%s: step %d: loss %g, the host's %g\n", name, i + 1, (double)loss, (double)want);
		for (size_t b = 0; b < x->job.role->buckets.n; b++) {
			const struct bucket *k = &x->job.role->buckets.at[b], *k_ref = &ref->job.role->buckets.at[b];
			const uint64_t part = k->padded / (uint64_t)k->shards;
			compare_views(x, ref, &k->grad_shard, &k_ref->grad_shard, part, i ? 1e-3 : 1e-4, "gradients",
				name);
			compare_views(x, ref, &k->shard, &k_ref->shard, part, 1e-5, "weights", name);
		}
	}
}

static const struct variant variants[] = {
	{"one rank", 1, {"train.optimizer=sgd"}},
	{"naive, unfused", 1,
		{"train.optimizer=sgd", "train.attention=naive", "train.fused=false", "model.kv_heads=4"}},
	{"rope, swiglu, recomputed", 1,
		{"train.optimizer=sgd", "model.position=rope", "model.mlp=swiglu", "model.norm=rmsnorm",
			"train.recompute=full"}},
	{"ddp", 2, {"train.optimizer=sgd", "train.global_batch=4"}},
	{"ddp without overlap", 2, {"train.optimizer=sgd", "train.global_batch=4", "parallel.overlap=false"}},
	{"zero1", 2, {"train.optimizer=sgd", "train.global_batch=4", "parallel.strategy=zero1"}},
	{"zero2", 2, {"train.optimizer=sgd", "train.global_batch=4", "parallel.strategy=zero2"}},
	{"fsdp", 2, {"train.optimizer=sgd", "train.global_batch=4", "parallel.strategy=fsdp", "parallel.bucket_mb=25"}},
	{"tensor", 2, {"train.optimizer=sgd", "train.global_batch=4", "parallel.tensor=2"}},
	{"context, ring", 2,
		{"train.optimizer=sgd", "train.global_batch=4", "parallel.context=2", "model.position=rope"}},
	{"context, gathered", 2,
		{"train.optimizer=sgd", "train.global_batch=4", "parallel.context=2",
			"parallel.context_kind=all_gather", "model.position=alibi"}},
	{"tensor, sequence", 2,
		{"train.optimizer=sgd", "train.global_batch=4", "parallel.tensor=2",
			"parallel.sequence_parallel=true"}},
	{"activations offloaded", 1, {"train.optimizer=sgd", "train.offload=activations", "model.layers=4"}},
	{"inputs of blocks offloaded", 2,
		{"train.optimizer=sgd", "train.global_batch=4", "train.offload=activations", "model.layers=4",
			"train.recompute=full", "train.recompute_layers=2"}},
};
#define N_VARIANTS COUNT(variants)
#define FIRST_PARALLEL 3 /* from here on with work on several lanes */

static void run_variant(const struct variant *v, bool graph)
{
	struct side x = {0}, ref = {0};
	if (open_side(&x, v, true, graph) && open_side(&ref, v, false, false)) {
		waits_of_step = x.job.role->deps.n;
		reset(&x);
		reset(&ref);
		compare_sides(&x, &ref, v->name);
		reset(&x); /* from the start once more: with graphs, now by one */
		reset(&ref);
		compare_sides(&x, &ref, v->name);
		for (int l = 0; l < LANE_COUNT; l++)
			CU_ASSERT_EQUAL(x.beacon.op[l], 0);
		CU_ASSERT(x.beacon.progress > 0);
		CU_ASSERT_STRING_EQUAL(x.broken, "");
	}
	close_side(&x);
	close_side(&ref);
}

static void test_strategies(void)
{
	for (size_t i = 0; i < N_VARIANTS; i++)
		run_variant(&variants[i], false);
}

static void test_graphs(void)
{
	for (size_t i = 0; i < N_VARIANTS; i++)
		run_variant(&variants[i], true);
}

/* ---- narrow formats ---- */

static uint16_t to_bf16(float x)
{
	uint32_t bits;
	memcpy(&bits, &x, sizeof bits);
	return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static float from_bf16(uint16_t x)
{
	uint32_t bits = (uint32_t)x << 16;
	float f;
	memcpy(&f, &bits, sizeof f);
	return f;
}

static const struct view *master_of(const struct side *s, int32_t bucket)
{
	for (size_t i = 0; i < s->job.role->ops.n; i++)
		if (s->job.role->ops.at[i].kind == OP_OPTIMIZER && s->job.role->ops.at[i].bucket == bucket)
			return op_arg(s->job.role, &s->job.role->ops.at[i], 4);
	return NULL;
}

static struct view behind(const struct view *v, uint64_t bytes)
{
	struct view out = *v;
	out.offset_B += bytes;
	return out;
}

static size_t size_of(const struct side *s, const struct view *v)
{
	return (size_t)dtype_bytes(s->job.role->buffers.at[v->buffer].dtype);
}

/* Numbers as the side's buffer stores them: fp32 or bf16. */
static void put(struct side *s, const struct view *v, uint64_t offset, const float *x, uint64_t n)
{
	const struct view to = behind(v, offset * size_of(s, v));
	uint16_t *narrow = malloc(n * sizeof *narrow);
	CU_ASSERT_FATAL(narrow != NULL);
	for (uint64_t k = 0; k < n; k++)
		narrow[k] = to_bf16(x[k]);
	s->device.ops->write(s->device.ctx, to.buffer, to.offset_B, size_of(s, v) == 2 ? (const void *)narrow : x,
		n * size_of(s, v));
	free(narrow);
}

static float *get(struct side *s, const struct view *v, uint64_t offset, uint64_t n)
{
	const struct view from = behind(v, offset * size_of(s, v));
	float *x = malloc(n * sizeof *x);
	uint16_t *narrow = malloc(n * sizeof *narrow);
	CU_ASSERT_FATAL(x && narrow);
	s->device.ops->read(s->device.ctx, from.buffer, from.offset_B, size_of(s, v) == 2 ? (void *)narrow : x,
		n * size_of(s, v));
	for (uint64_t k = 0; k < n && size_of(s, v) == 2; k++)
		x[k] = from_bf16(narrow[k]);
	free(narrow);
	return x;
}

static const struct bucket *bucket_of(const struct side *s, size_t param)
{
	return &s->job.role->buckets.at[s->job.role->params.at[param].bucket];
}

static void carry_weights(struct side *x, struct side *ref)
{
	for (size_t i = 0; i < x->job.role->params.n; i++) {
		const struct role_param *rp = &x->job.role->params.at[i], *rr = &ref->job.role->params.at[i];
		float *w = get(ref, &bucket_of(ref, i)->weights, rr->offset, rp->elements);
		put(x, &bucket_of(x, i)->weights, rp->offset, w, rp->elements);
		const struct view *master = master_of(x, rp->bucket);
		if (master && master->buffer >= 0)
			put(x, master, rp->offset, w, rp->elements);
		free(w);
	}
}

static void compare_gradients(struct side *x, struct side *ref, const char *name)
{
	for (size_t i = 0; i < x->job.role->params.n; i++) {
		const struct role_param *rp = &x->job.role->params.at[i], *rr = &ref->job.role->params.at[i];
		float *mine = get(x, &bucket_of(x, i)->grad_shard, rp->offset, rp->elements),
		      *want = get(ref, &bucket_of(ref, i)->grad_shard, rr->offset, rp->elements);
		double apart = norm(mine, want, rp->elements), size = norm(want, NULL, rp->elements);
		CU_ASSERT(apart < 0.05 * size);
		if (!(apart < 0.05 * size))
			printf("%s: %s of layer %lld: gradient off by %g of %g\n", name,
				param_kind_name(rp->param.kind), (long long)rp->param.layer, apart, size);
		free(mine);
		free(want);
	}
}

static void run_narrow(const struct variant *narrow, const struct variant *wide, bool graph)
{
	struct side x = {0}, ref = {0};
	float loss = 0.0f, want = 0.0f;
	if (open_side(&x, narrow, true, graph) && open_side(&ref, wide, false, false)) {
		reset(&ref);
		x.device.ops->clear(x.device.ctx);
		carry_weights(&x, &ref);
		init_input(x.program, &x.job, &x.device);
		for (int i = 0; i < 3 && done_well(step(&x, NULL, &loss), narrow->name) &&
				done_well(step(&ref, NULL, &want), wide->name);
			i++) {
			CU_ASSERT_DOUBLE_EQUAL(loss, want, 0.005 * (double)want);
			compare_gradients(&x, &ref, narrow->name);
		}
	}
	close_side(&x);
	close_side(&ref);
}

static void test_narrow(void)
{
	static const struct variant narrow[] =
		{
			{"bf16, autocast", 1, {"train.optimizer=sgd", "train.dtype=bf16", "model.bias=false"}},
			{"bf16, stored", 1,
				{"train.optimizer=sgd", "train.dtype=bf16", "train.param_dtype=bf16",
					"train.master_weights=true", "model.bias=false"}},
			{"bf16, naive", 1,
				{"train.optimizer=sgd", "train.dtype=bf16", "train.attention=naive",
					"train.fused=false", "model.bias=false"}},
		},
				    wide = {"fp32", 1, {"train.optimizer=sgd", "model.bias=false"}};
	for (size_t i = 0; i < COUNT(narrow); i++)
		for (int graph = 0; graph < 2; graph++)
			run_narrow(&narrow[i], &wide, graph);
}

/* The second step's launch is as short as the third's. */
static void test_graph_is_ready(void)
{
	struct side x = {0};
	float loss = 0.0f;
	if (open_side(&x, &variants[0], true, true)) {
		const struct cuda_device *d = x.device.ctx;
		reset(&x);
		CU_ASSERT(d->graph[0] == NULL);
		done_well(step(&x, NULL, &loss), "the first step");
		CU_ASSERT(d->graph[0] != NULL && d->graph[1] == NULL);
	}
	close_side(&x);
}

/* ---- stamps ---- */

static void check_stamps(const struct side *s, const struct stamp *t, int64_t from_ns, int64_t to_ns)
{
	const struct role *r = s->job.role;
	const int64_t slack_ns = 2000; /* events are read in units of half a microsecond */
	int64_t last[LANE_COUNT] = {0};
	for (size_t i = 0; i < r->ops.n; i++) {
		const struct op *op = &r->ops.at[i];
		CU_ASSERT(t[i].begin_ns <= t[i].end_ns);
		CU_ASSERT(t[i].begin_ns >= from_ns - 1000000 && t[i].end_ns <= to_ns + 1000000);
		CU_ASSERT(t[i].begin_ns >= last[op->lane] - slack_ns);
		last[op->lane] = t[i].end_ns;
		for (uint32_t k = 0; k < op->n_dep; k++)
			CU_ASSERT(t[i].begin_ns >= t[r->deps.at[op->dep0 + k]].end_ns - slack_ns);
	}
}

static void test_stamps(void)
{
	for (int graph = 0; graph < 2; graph++) {
		struct side x = {0};
		float loss = 0.0f;
		if (open_side(&x, &variants[6], true, graph)) {
			struct stamp *t = calloc(x.job.role->ops.n, sizeof *t);
			CU_ASSERT_FATAL(t != NULL);
			reset(&x);
			for (int i = 0; i < 3; i++) {
				int64_t from_ns = stamp_now_ns();
				if (!done_well(step(&x, t, &loss), "stamps"))
					break;
				check_stamps(&x, t, from_ns, stamp_now_ns());
			}
			free(t);
		}
		close_side(&x);
	}
}

/* A span has two events, whatever lies between. */
static void test_span(void)
{
	for (int graph = 0; graph < 2; graph++) {
		struct side x = {0};
		float loss = 0.0f;
		if (open_side(&x, &variants[6], true, graph)) {
			struct cuda_device *d = x.device.ctx;
			const size_t n = x.job.role->ops.n;
			struct stamp *t = calloc(n, sizeof *t);
			CU_ASSERT_FATAL(t != NULL && n > 2);
			d->options.span = true;
			reset(&x);
			for (int i = 0; i < 3; i++)
				done_well(step(&x, t, &loss), "a span");
			CU_ASSERT(d->begin[0] && d->end[n - 1] && t[0].begin_ns > 0);
			CU_ASSERT(t[n - 1].end_ns > t[0].begin_ns);
			for (size_t i = 0; i + 1 < n; i++)
				CU_ASSERT(!d->end[i] && !d->begin[i + 1] && t[i].end_ns == 0);
			free(t);
		}
		close_side(&x);
	}
}

/* While the host is late, the copy lane stands empty: a copy's time begins when the copy does. */
static void test_late_copies(void)
{
	struct side x = {0};
	float loss = 0.0f;
	int copies = 0;
	if (open_side(&x, &variants[8], true, false)) {
		struct stamp *t = calloc(x.job.role->ops.n, sizeof *t);
		const struct stamp *before = NULL;
		CU_ASSERT_FATAL(t != NULL);
		reset(&x);
		late_ns = 2000000;
		done_well(step(&x, t, &loss), "late copies");
		late_ns = 0;
		for (size_t i = 0; i < x.job.role->ops.n; i++) {
			if (x.job.role->ops.at[i].kind != OP_COPY)
				continue;
			CU_ASSERT(!before || t[i].begin_ns > before->end_ns);
			before = &t[i];
			copies++;
		}
		CU_ASSERT(copies == 4);
		free(t);
	}
	close_side(&x);
}

/* ---- memory ---- */

/* What anybody takes of the GPU beside the arena counts, unless other ranks are on it, too. */
static void test_overhead(void)
{
	const struct variant *v = &variants[0];
	for (int shared = 0; shared < 2; shared++) {
		struct side x = {0};
		void *more = NULL;
		const uint64_t more_B = (uint64_t)64 << 20;
		if (open_side_as(&x, v, true, false, shared)) {
			const uint64_t own_B = x.device.ops->overhead_B(x.device.ctx);
			CU_ASSERT(own_B > 0);
			CU_ASSERT_FATAL(cudaMalloc(&more, more_B) == cudaSuccess);
			const uint64_t grown_B = x.device.ops->overhead_B(x.device.ctx) - own_B;
			CU_ASSERT(shared ? grown_B == 0 : grown_B >= more_B && grown_B < 2 * more_B);
			cudaFree(more);
		}
		close_side(&x);
	}
}

/* ---- hooks, errors ---- */

struct seen {
	struct side *side;
	int before, after, wrong;
};

static const struct view *part_of(const struct side *s, uint32_t op, int arg)
{
	return op_arg(s->job.role, &s->job.role->ops.at[op], arg);
}

static void before_collective(void *ctx, uint32_t op)
{
	struct seen *seen = ctx;
	const float value = (float)(op + 1);
	const struct view *v = part_of(seen->side, op, 0);
	seen->before++;
	seen->side->device.ops->write(seen->side->device.ctx, v->buffer, view_offset_B(&seen->side->job, v), &value,
		sizeof value);
}

static void after_collective(void *ctx, uint32_t op)
{
	struct seen *seen = ctx;
	float value = 0.0f;
	const struct view *v = part_of(seen->side, op, 1);
	seen->after++;
	seen->side->device.ops->read(seen->side->device.ctx, v->buffer, view_offset_B(&seen->side->job, v), &value,
		sizeof value);
	seen->wrong += value !=
	               (seen->side->job.role->ops.at[op].coll == COLL_ALL_GATHER ? 1.0f : 2.0f) * (float)(op + 1);
}

static void test_hooks(void)
{
	struct side x = {0};
	struct seen seen = {&x, 0, 0, 0};
	const struct step_hooks hooks = {before_collective, after_collective, &seen};
	const struct device_step s = {.number = 1, .hooks = &hooks, .collectives_only = true};
	int collectives = 0;
	if (open_side(&x, &variants[6], true, true)) {
		for (size_t i = 0; i < x.job.role->ops.n; i++)
			collectives += x.job.role->ops.at[i].kind == OP_COLLECTIVE;
		reset(&x);
		done_well(x.device.ops->step(x.device.ctx, &s, &error), "hooks");
		CU_ASSERT(collectives > 0);
		CU_ASSERT_EQUAL(seen.before, collectives);
		CU_ASSERT_EQUAL(seen.after, collectives);
		CU_ASSERT_EQUAL(seen.wrong, 0);
	}
	close_side(&x);
}

static void test_bad_id(void)
{
	struct side x = {0};
	const int32_t token = 9999;
	float loss = 0.0f;
	if (open_side(&x, &variants[3], true, false)) {
		reset(&x);
		x.device.ops->write(x.device.ctx, x.job.role->input, 8, &token, sizeof token);
		CU_ASSERT_EQUAL(step(&x, NULL, &loss), ST_RUN);
		CU_ASSERT(strstr(error.text, "embedding") != NULL && strstr(error.text, "outside its table") != NULL);
		CU_ASSERT_STRING_EQUAL(x.broken, ""); /* the collectives went on */
	}
	close_side(&x);
}

static void test_link_cut(void)
{
	struct side x = {0};
	float loss = 0.0f;
	if (open_side(&x, &variants[3], true, false)) {
		reset(&x);
		starts_left = 2;
		CU_ASSERT_EQUAL(step(&x, NULL, &loss), ST_RUN);
		CU_ASSERT(strstr(x.broken, "the link is cut") != NULL && strstr(x.broken, "op ") == x.broken);
		starts_left = -1;
	}
	close_side(&x);
}

/* ---- orders ---- */

/* The exit status of a variant by itself. */
static int run_alone(size_t variant, int seed, const char *without)
{
	char text[32], which[32],
		*args[] = {"test_cuda_device", which, without ? (char *)(uintptr_t)without : NULL, NULL};
	posix_spawn_file_actions_t quiet;
	pid_t pid;
	int status = 0;
	snprintf(text, sizeof text, "%d", seed);
	snprintf(which, sizeof which, "%zu", variant);
	setenv("STEPSIM_DOUBLE_SEED", text, 1);
	posix_spawn_file_actions_init(&quiet);
	posix_spawn_file_actions_addopen(&quiet, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
	if (posix_spawn(&pid, "/proc/self/exe", &quiet, NULL, args, environ) || waitpid(pid, &status, 0) != pid)
		status = -1;
	posix_spawn_file_actions_destroy(&quiet);
	unsetenv("STEPSIM_DOUBLE_SEED");
	return status;
}

static void test_orders(void)
{
	for (int seed = 1; seed <= SEEDS; seed++) {
		size_t variant = FIRST_PARALLEL + (size_t)seed % (N_VARIANTS - FIRST_PARALLEL);
		int status = run_alone(variant, seed, NULL);
		CU_ASSERT_EQUAL(status, 0);
		if (status)
			printf("%s, seed %d: status %d\n", variants[variant].name, seed, status);
	}
}

/* Without a wait some order has to show it; one in four may be hard to miss, because what it waits for has long ended
 * in most orders. */
static void test_missing_wait(void)
{
	static const size_t some[] = {3, 5, 7, 9};
	static const char *const without[] = {"0", "1", "2", "3"};
	for (size_t v = 0; v < COUNT(some); v++) {
		int seen = 0;
		for (size_t k = 0; k < COUNT(without); k++) {
			int seed = 1;
			while (seed <= MOST_ORDERS && run_alone(some[v], seed, without[k]) == 0)
				seed++;
			seen += seed <= MOST_ORDERS;
		}
		CU_ASSERT(seen >= 3);
		if (seen < 3)
			printf("%s: of four missing waits %d were seen\n", variants[some[v]].name, seen);
	}
}

static size_t chosen;

static void test_chosen(void) { run_variant(&variants[chosen], false); }

int main(int argc, char **argv)
{
	static const struct unit_test all[] = {{"strategies", test_strategies}, {"graphs", test_graphs},
		{"narrow", test_narrow}, {"a graph is ready", test_graph_is_ready}, {"stamps", test_stamps},
		{"a span", test_span}, {"late copies", test_late_copies}, {"overhead", test_overhead},
		{"hooks", test_hooks}, {"bad id", test_bad_id}, {"link cut", test_link_cut}, {"orders", test_orders},
		{"missing wait", test_missing_wait}};
	static const struct unit_test one[] = {{"variant", test_chosen}};
	struct cuda_facts facts;
	stepsim_cuda_backend.facts(&facts);
	if (facts.devices == 0) {
		printf("test_cuda_device: skipped: %s\n", facts.why_none);
		return 0;
	}
	log_setup(LOG_QUIET, PROGRESS_NEVER, true);
	/* A GPU has one order, whatever the seed, and shows few of the races; each process there takes seconds to
	 * begin. */
	if (argc == 1)
		return unit_main("cuda device", all, COUNT(all) - (facts.doubles ? 0 : OF_DOUBLES));
	chosen = (size_t)atoi(argv[1]) % N_VARIANTS;
	dropped = argc > 2 ? atol(argv[2]) : -1;
	return unit_main("cuda device, one variant", one, 1);
}
