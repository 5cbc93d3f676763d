/* The CUDA device against the host device: small programs of every strategy, both from the same start, two steps; loss,
 * gradients and updated parameters must agree. On the doubles of the libraries (streams run in orders that are drawn)
 * with 50 seeds; with graphs and without. On a GPU in the order that it takes.
 *
 *   test_cuda_device        all of it
 *   test_cuda_device N      variant N alone, with the seed in STEPSIM_DOUBLE_SEED
 *   test_cuda_device N K    the same without the Kth wait of each step: which has to fail
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <math.h>
#include <spawn.h>
#include <sys/wait.h>

#include "base/log.h"
#include "tests/cuda/side.h"

#define SEEDS 50
#define MOST_ORDERS 20 /* in which a missing wait has to be seen */
#define OF_DOUBLES 2   /* tests, the last ones: orders that only doubles can draw */

extern char **environ;

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

/* ---- comparing ---- */

static float *fetch(struct side *s, const struct view *v, uint64_t n)
{
	float *x = malloc(n * sizeof *x);
	CU_ASSERT_FATAL(x != NULL);
	s->device.ops->read(s->device.ctx, v->buffer, view_offset_B(&s->job, v), x, n * sizeof *x);
	return x;
}

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
		if (!done_well(side_step(x, NULL, &loss), name) || !done_well(side_step(ref, NULL, &want), name))
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
	if (side_open(&x, v, true, graph) && side_open(&ref, v, false, false)) {
		waits_of_step = x.job.role->deps.n;
		side_reset(&x);
		side_reset(&ref);
		compare_sides(&x, &ref, v->name);
		side_reset(&x); /* from the start once more: with graphs, now by one */
		side_reset(&ref);
		compare_sides(&x, &ref, v->name);
		for (int l = 0; l < LANE_COUNT; l++)
			CU_ASSERT_EQUAL(x.beacon.op[l], 0);
		CU_ASSERT(x.beacon.progress > 0);
		CU_ASSERT_STRING_EQUAL(x.broken, "");
	}
	side_close(&x);
	side_close(&ref);
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
	if (side_open(&x, narrow, true, graph) && side_open(&ref, wide, false, false)) {
		side_reset(&ref);
		x.device.ops->clear(x.device.ctx);
		carry_weights(&x, &ref);
		init_input(x.program, &x.job, &x.device);
		for (int i = 0; i < 3 && done_well(side_step(&x, NULL, &loss), narrow->name) &&
				done_well(side_step(&ref, NULL, &want), wide->name);
			i++) {
			CU_ASSERT_DOUBLE_EQUAL(loss, want, 0.005 * (double)want);
			compare_gradients(&x, &ref, narrow->name);
		}
	}
	side_close(&x);
	side_close(&ref);
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
		{"narrow", test_narrow}, {"orders", test_orders}, {"missing wait", test_missing_wait}};
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
