/* The host device's lanes, with communicators that have nobody at the other end: order, dependencies, errors. Nothing
 * here starts MPI. */
#include "tests/unit/harness.h"

#include <string.h>

#include "exec/host/device.h"
#include "exec/init.h"
#include "tests/doubles/comm_double.h"

#define TEXT(strategy, tensor) \
	"model: {layers: 2, hidden: 32, heads: 4, vocab: 32, seq_len: 8}\n" \
	"train: {global_batch: 8, micro_batch: 1, dtype: fp32}\n" \
	"parallel: {strategy: " strategy ", tensor: " tensor "}\n"

/* Rank 0 of 4, alone in its process. */
struct rig {
	struct config config;
	struct program *program;
	struct layout layout;
	struct device_job job;
	struct device device;
	struct beacon beacon;
	struct comm_double comm[LANE_COUNT][DIM_COUNT];
	struct stamp *stamps;
	bool broken;
};

static void on_broken(void *ctx, const char *text)
{
	(void)text;
	((struct rig *)ctx)->broken = true;
}

static bool rig_open(struct rig *r, const char *text, int64_t cores, int polls)
{
	struct error e = {ST_OK, ""};
	memset(r, 0, sizeof *r);
	if (config_parse(text, strlen(text), "test", NULL, 0, &r->config, &e) || config_resolve(&r->config, 4, &e) ||
		program_build(&r->config, &r->program, &e) || layout_plan(&r->program->roles[0], &r->layout, &e)) {
		CU_FAIL(e.text);
		return false;
	}
	const struct role *role = &r->program->roles[0];
	r->stamps = calloc(role->ops.n, sizeof *r->stamps);
	r->job = (struct device_job){.role = role,
		.layout = &r->layout,
		.heads = 4,
		.loss_scale = r->program->loss_scale,
		.beacon = &r->beacon,
		.cores = cores,
		.broken = on_broken,
		.broken_ctx = r};
	for (int lane = 0; lane < LANE_COUNT; lane++)
		for (int d = 0; d < DIM_COUNT; d++)
			r->job.comm[lane][d] = comm_double(&r->comm[lane][d], r->program->mesh.size[d], 0, polls);
	if (host_device_create(&r->device, &e) || r->device.ops->load(r->device.ctx, &r->job, &e)) {
		CU_FAIL(e.text);
		return false;
	}
	init_weights(r->program, &r->job, &r->device);
	init_input(r->program, &r->job, &r->device);
	return true;
}

static void rig_close(struct rig *r)
{
	device_destroy(&r->device);
	layout_free(&r->layout);
	program_destroy(r->program);
	free(r->stamps);
}

static enum status rig_step(struct rig *r, int64_t number, const struct step_hooks *hooks, bool collectives_only,
	struct error *e)
{
	struct device_step s = {.number = number,
		.stamps = r->stamps,
		.hooks = hooks,
		.collectives_only = collectives_only};
	return r->device.ops->step(r->device.ctx, &s, e);
}

static int64_t collectives(const struct rig *r)
{
	int64_t n = 0;
	for (size_t i = 0; i < r->job.role->ops.n; i++)
		n += r->job.role->ops.at[i].kind == OP_COLLECTIVE;
	return n;
}

static int64_t done_collectives(const struct rig *r)
{
	int64_t n = 0;
	for (int lane = 0; lane < LANE_COUNT; lane++)
		for (int d = 0; d < DIM_COUNT; d++) {
			const struct comm_double *c = &r->comm[lane][d];
			CU_ASSERT_FALSE(c->misused);
			CU_ASSERT_EQUAL(c->started, c->ended);
			n += c->ended;
		}
	return n;
}

/* Every op ran once, after what it depends on and after the one before it on its lane. */
static void check_stamps(const struct rig *r, int64_t begin_ns)
{
	const struct role *role = r->job.role;
	int64_t lane_end[LANE_COUNT] = {0};
	bool good = true;
	for (size_t i = 0; i < role->ops.n; i++) {
		const struct op *op = &role->ops.at[i];
		const struct stamp *s = &r->stamps[i];
		good = good && s->begin_ns >= begin_ns && s->begin_ns <= s->end_ns && s->begin_ns >= lane_end[op->lane];
		for (uint32_t k = 0; k < op->n_dep; k++)
			good = good && s->begin_ns >= r->stamps[role->deps.at[op->dep0 + k]].end_ns;
		lane_end[op->lane] = s->end_ns;
	}
	CU_ASSERT_TRUE(good);
}

/* Many rounds, so that a lost wake would show as a hang. */
static void run_rounds(const char *text, int64_t cores, int polls, int rounds)
{
	struct rig r;
	struct error e = {ST_OK, ""};
	if (!rig_open(&r, text, cores, polls))
		return;
	int64_t per_step = collectives(&r);
	uint64_t before = atomic_load(&r.beacon.progress);
	for (int i = 0; i < rounds; i++) {
		int64_t begin_ns = stamp_now_ns();
		memset(r.stamps, 0, r.job.role->ops.n * sizeof *r.stamps);
		CU_ASSERT_EQUAL(rig_step(&r, i + 1, NULL, i % 2, &e), ST_OK);
		check_stamps(&r, begin_ns);
	}
	CU_ASSERT_EQUAL(done_collectives(&r), per_step * rounds);
	CU_ASSERT_EQUAL(atomic_load(&r.beacon.progress) - before, r.job.role->ops.n * (uint64_t)rounds);
	for (int lane = 0; lane < LANE_COUNT; lane++)
		CU_ASSERT_EQUAL(atomic_load(&r.beacon.op[lane]), 0);
	CU_ASSERT_FALSE(r.broken);
	rig_close(&r);
}

static void test_order(void)
{
	run_rounds(TEXT("ddp", "1"), 1, 0, 60);
	run_rounds(TEXT("ddp", "1"), 2, 3, 60);
	run_rounds(TEXT("fsdp", "1"), 1, 1, 60);
	run_rounds(TEXT("zero2", "2"), 1, 2, 60);
	run_rounds(TEXT("zero1", "2"), 2, 0, 60);
}

struct seen {
	const struct rig *rig;
	int64_t before, after;
	int64_t last[LANE_COUNT];
	bool good;
};

static void see_before(void *ctx, uint32_t op)
{
	struct seen *s = ctx;
	const struct op *o = &s->rig->job.role->ops.at[op];
	s->good = s->good && o->kind == OP_COLLECTIVE && s->last[o->lane] < (int64_t)op;
	s->last[o->lane] = op;
	s->before++;
}

static void see_after(void *ctx, uint32_t op)
{
	struct seen *s = ctx;
	s->good = s->good && s->last[s->rig->job.role->ops.at[op].lane] == (int64_t)op;
	s->after++;
}

static void test_hooks(void)
{
	struct rig r;
	struct error e = {ST_OK, ""};
	if (!rig_open(&r, TEXT("zero2", "2"), 1, 1))
		return;
	struct seen s = {.rig = &r, .last = {-1, -1, -1, -1, -1}, .good = true};
	struct step_hooks hooks = {see_before, see_after, &s};
	CU_ASSERT_EQUAL(rig_step(&r, 1, &hooks, true, &e), ST_OK);
	CU_ASSERT_TRUE(s.good);
	CU_ASSERT_EQUAL(s.before, collectives(&r));
	CU_ASSERT_EQUAL(s.after, s.before);
	rig_close(&r);
}

/* Collectives alone must leave weights as they are: compute ops do nothing. */
static void test_collectives_only(void)
{
	struct rig r;
	struct error e = {ST_OK, ""};
	float before[64], after[64];
	if (!rig_open(&r, TEXT("ddp", "1"), 1, 0))
		return;
	int32_t weights = r.job.role->buckets.at[0].weights.buffer;
	r.device.ops->read(r.device.ctx, weights, 0, before, sizeof before);
	CU_ASSERT_EQUAL(rig_step(&r, 1, NULL, true, &e), ST_OK);
	r.device.ops->read(r.device.ctx, weights, 0, after, sizeof after);
	CU_ASSERT_EQUAL(memcmp(before, after, sizeof before), 0);
	CU_ASSERT_EQUAL(rig_step(&r, 2, NULL, false, &e), ST_OK);
	r.device.ops->read(r.device.ctx, weights, 0, after, sizeof after);
	CU_ASSERT_NOT_EQUAL(memcmp(before, after, sizeof before), 0);
	rig_close(&r);
}

/* A kernel that fails: the step still does all its collectives, says which op, and the next step is clean. */
static void test_kernel_error(void)
{
	struct rig r;
	struct error e = {ST_OK, ""};
	int32_t token = 1000, good;
	if (!rig_open(&r, TEXT("ddp", "1"), 1, 1))
		return;
	int32_t input = r.job.role->input;
	r.device.ops->read(r.device.ctx, input, 0, &good, sizeof good);
	r.device.ops->write(r.device.ctx, input, 0, &token, sizeof token);
	CU_ASSERT_EQUAL(rig_step(&r, 1, NULL, false, &e), ST_RUN);
	CU_ASSERT_PTR_NOT_NULL(strstr(e.text, "embed"));
	CU_ASSERT_PTR_NOT_NULL(strstr(e.text, "1000"));
	CU_ASSERT_EQUAL(done_collectives(&r), collectives(&r));
	r.device.ops->write(r.device.ctx, input, 0, &good, sizeof good);
	struct error none = {ST_OK, ""};
	CU_ASSERT_EQUAL(rig_step(&r, 2, NULL, false, &none), ST_OK);
	rig_close(&r);
}

static void test_refusals(void)
{
	struct rig r;
	struct error e = {ST_OK, ""};
	if (!rig_open(&r, TEXT("ddp", "1"), 1, 0))
		return;
	struct device second;
	struct device_job job = r.job;
	job.comm[LANE_COMM][DIM_DP].ops = NULL;
	CU_ASSERT_EQUAL(host_device_create(&second, &e), ST_OK);
	CU_ASSERT_EQUAL(second.ops->load(second.ctx, &job, &e), ST_RUN);
	CU_ASSERT_PTR_NOT_NULL(strstr(e.text, "no communicator"));
	device_destroy(&second);
	rig_close(&r);
}

UNIT_MAIN("exec lanes", {"order of ops, lanes and dependencies", test_order}, {"hooks around collectives", test_hooks},
	{"collectives alone", test_collectives_only}, {"a kernel that fails", test_kernel_error},
	{"what cannot be loaded", test_refusals})
