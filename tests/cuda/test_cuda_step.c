/* A step of the CUDA device: its graph, its stamps and spans, the memory that it says it takes, its hooks, and what it
 * says of a bad id and of a link that is cut. On the doubles of the libraries, or on a GPU.
 */
#include "base/log.h"
#include "tests/cuda/side.h"

static const struct variant one_rank = {"one rank", 1, {"train.optimizer=sgd"}},
			    ddp = {"ddp", 2, {"train.optimizer=sgd", "train.global_batch=4"}},
			    zero2 = {"zero2", 2,
				    {"train.optimizer=sgd", "train.global_batch=4", "parallel.strategy=zero2"}},
			    tensor = {"tensor", 2,
				    {"train.optimizer=sgd", "train.global_batch=4", "parallel.tensor=2"}};

/* The second step's launch is as short as the third's. */
static void test_graph_is_ready(void)
{
	struct side x = {0};
	float loss = 0.0f;
	if (side_open(&x, &one_rank, true, true)) {
		const struct cuda_device *d = x.device.ctx;
		side_reset(&x);
		CU_ASSERT(d->graph[0] == NULL);
		done_well(side_step(&x, NULL, &loss), "the first step");
		CU_ASSERT(d->graph[0] != NULL && d->graph[1] == NULL);
	}
	side_close(&x);
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
		if (side_open(&x, &zero2, true, graph)) {
			struct stamp *t = calloc(x.job.role->ops.n, sizeof *t);
			CU_ASSERT_FATAL(t != NULL);
			side_reset(&x);
			for (int i = 0; i < 3; i++) {
				int64_t from_ns = stamp_now_ns();
				if (!done_well(side_step(&x, t, &loss), "stamps"))
					break;
				check_stamps(&x, t, from_ns, stamp_now_ns());
			}
			free(t);
		}
		side_close(&x);
	}
}

/* A span has two events, whatever lies between. */
static void test_span(void)
{
	for (int graph = 0; graph < 2; graph++) {
		struct side x = {0};
		float loss = 0.0f;
		if (side_open(&x, &zero2, true, graph)) {
			struct cuda_device *d = x.device.ctx;
			const size_t n = x.job.role->ops.n;
			struct stamp *t = calloc(n, sizeof *t);
			CU_ASSERT_FATAL(t != NULL && n > 2);
			d->options.span = true;
			side_reset(&x);
			for (int i = 0; i < 3; i++)
				done_well(side_step(&x, t, &loss), "a span");
			CU_ASSERT(d->begin[0] && d->end[n - 1] && t[0].begin_ns > 0);
			CU_ASSERT(t[n - 1].end_ns > t[0].begin_ns);
			for (size_t i = 0; i + 1 < n; i++)
				CU_ASSERT(!d->end[i] && !d->begin[i + 1] && t[i].end_ns == 0);
			free(t);
		}
		side_close(&x);
	}
}

/* While the host is late, the copy lane stands empty: a copy's time begins when the copy does. */
static void test_late_copies(void)
{
	struct side x = {0};
	float loss = 0.0f;
	int copies = 0;
	if (side_open(&x, &tensor, true, false)) {
		struct stamp *t = calloc(x.job.role->ops.n, sizeof *t);
		const struct stamp *before = NULL;
		CU_ASSERT_FATAL(t != NULL);
		side_reset(&x);
		late_ns = 2000000;
		done_well(side_step(&x, t, &loss), "late copies");
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
	side_close(&x);
}

/* ---- memory ---- */

/* What anybody takes of the GPU beside the arena counts, unless other ranks are on it, too. */
static void test_overhead(void)
{
	const struct variant *v = &one_rank;
	for (int shared = 0; shared < 2; shared++) {
		struct side x = {0};
		void *more = NULL;
		const uint64_t more_B = (uint64_t)64 << 20;
		if (side_open_as(&x, v, true, false, shared)) {
			const uint64_t own_B = x.device.ops->overhead_B(x.device.ctx);
			CU_ASSERT(own_B > 0);
			CU_ASSERT_FATAL(cudaMalloc(&more, more_B) == cudaSuccess);
			const uint64_t grown_B = x.device.ops->overhead_B(x.device.ctx) - own_B;
			CU_ASSERT(shared ? grown_B == 0 : grown_B >= more_B && grown_B < 2 * more_B);
			cudaFree(more);
		}
		side_close(&x);
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
	if (side_open(&x, &zero2, true, true)) {
		for (size_t i = 0; i < x.job.role->ops.n; i++)
			collectives += x.job.role->ops.at[i].kind == OP_COLLECTIVE;
		side_reset(&x);
		done_well(x.device.ops->step(x.device.ctx, &s, &error), "hooks");
		CU_ASSERT(collectives > 0);
		CU_ASSERT_EQUAL(seen.before, collectives);
		CU_ASSERT_EQUAL(seen.after, collectives);
		CU_ASSERT_EQUAL(seen.wrong, 0);
	}
	side_close(&x);
}

static void test_bad_id(void)
{
	struct side x = {0};
	const int32_t token = 9999;
	float loss = 0.0f;
	if (side_open(&x, &ddp, true, false)) {
		side_reset(&x);
		x.device.ops->write(x.device.ctx, x.job.role->input, 8, &token, sizeof token);
		CU_ASSERT_EQUAL(side_step(&x, NULL, &loss), ST_RUN);
		CU_ASSERT(strstr(error.text, "embedding") != NULL && strstr(error.text, "outside its table") != NULL);
		CU_ASSERT_STRING_EQUAL(x.broken, ""); /* the collectives went on */
	}
	side_close(&x);
}

static void test_link_cut(void)
{
	struct side x = {0};
	float loss = 0.0f;
	if (side_open(&x, &ddp, true, false)) {
		side_reset(&x);
		starts_left = 2;
		CU_ASSERT_EQUAL(side_step(&x, NULL, &loss), ST_RUN);
		CU_ASSERT(strstr(x.broken, "the link is cut") != NULL && strstr(x.broken, "op ") == x.broken);
		starts_left = -1;
	}
	side_close(&x);
}

int main(void)
{
	static const struct unit_test all[] = {{"a graph is ready", test_graph_is_ready}, {"stamps", test_stamps},
		{"a span", test_span}, {"late copies", test_late_copies}, {"overhead", test_overhead},
		{"hooks", test_hooks}, {"bad id", test_bad_id}, {"link cut", test_link_cut}};
	struct cuda_facts facts;
	stepsim_cuda_backend.facts(&facts);
	if (facts.devices == 0) {
		printf("test_cuda_step: skipped: %s\n", facts.why_none);
		return 0;
	}
	log_setup(LOG_QUIET, PROGRESS_NEVER, true);
	return unit_main("a step of the cuda device", all, COUNT(all));
}
