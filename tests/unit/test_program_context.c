/* Context parallelism and hsdp: their programs keep the invariants; work, volumes and memory agree with closed forms
 * worked out here; predictions go the way they must. */
#include "base/array.h"
#include "tests/unit/constants.h"
#include "tests/unit/harness.h"
#include "tests/unit/parse_with.h"
#include "tests/unit/wire.h"

#include <stdlib.h>
#include <string.h>

#include "sim/engine/predict.h"
#include "step/layout.h"
#include "step/program.h"

static struct config plan(const char *more, int64_t ranks)
{
	static const char base[] =
		"model: {layers: 3, hidden: 64, heads: 8, kv_heads: 4, vocab: 96, seq_len: 64, position: rope, mlp: "
		"swiglu, norm: rmsnorm, bias: false, tied_embeddings: false}\n"
		"train: {global_batch: 16, micro_batch: 2, dtype: fp32, param_dtype: fp32, grad_dtype: fp32, "
		"reduce_dtype: fp32}\n";
	struct config c;
	struct error e = {0};
	if (parse_with(base, "context.yaml", more, &c, &e) || config_resolve(&c, ranks, &e)) {
		fprintf(stderr, "%s: %s\n", more, e.text);
		CU_FAIL_FATAL("the config");
	}
	return c;
}

static struct program *built(const struct config *c)
{
	struct error e = {0};
	struct program *p = NULL;
	if (program_build(c, &p, &e) || program_check(p, &e)) {
		fprintf(stderr, "%s, context %lld, tensor %lld: %s\n", strategy_name(c->parallel.strategy),
			(long long)c->parallel.context, (long long)c->parallel.tensor, e.text);
		CU_FAIL_FATAL("the program");
	}
	return p;
}

static struct program *program_of(const char *more, int64_t ranks)
{
	struct config c = plan(more, ranks);
	return built(&c);
}

static double flop_of(const struct program *p, enum op_class class_)
{
	double sum = 0;
	for (size_t r = 0; r < p->n_roles; r++)
		for (size_t i = 0; i < p->roles[r].ops.n; i++)
			if (op_class_of(&p->roles[r].ops.at[i]) == class_)
				sum += op_flop(&p->roles[r].ops.at[i]);
	return sum;
}

static uint32_t next(uint32_t *x)
{
	*x = *x * 1664525u + 1013904223u;
	return *x >> 16;
}

/* Whatever is combined with what: the invariants, and memory that can be laid out. */
static void test_combinations(void)
{
	static const char *const strategies[] = {"ddp", "zero1", "zero2", "fsdp", "hsdp"};
	uint32_t x = 7;
	for (int i = 0; i < 300; i++) {
		int64_t context = 1 << next(&x) % 3, tensor = 1 << next(&x) % 3, data = 1 << next(&x) % 3,
			strategy = next(&x) % 5, stages = 1 + next(&x) % 3;
		char more[512];
		int n = snprintf(more, sizeof more,
			"parallel.strategy=%s parallel.context=%lld parallel.tensor=%lld parallel.pipeline=%lld "
			"parallel.context_kind=%s model.causal=%s train.fused=%s train.recompute=%s model.position=%s",
			strategies[strategy], (long long)context, (long long)tensor, (long long)stages,
			next(&x) % 2 ? "ring" : "all_gather", next(&x) % 2 ? "true" : "false",
			next(&x) % 2 ? "true" : "false", next(&x) % 2 ? "full" : "none",
			next(&x) % 2 ? "rope" : "learned");
		if (tensor > 1 && next(&x) % 2)
			n += snprintf(more + n, sizeof more - (size_t)n, " parallel.sequence_parallel=true");
		if (strategy == 4 && data > 1)
			n += snprintf(more + n, sizeof more - (size_t)n, " parallel.shard=%lld",
				data > 2 && next(&x) % 2 ? 4LL : 2LL);
		if (next(&x) % 2)
			snprintf(more + n, sizeof more - (size_t)n, " parallel.overlap=false");
		struct program *p = program_of(more, context * tensor * data * stages);
		struct error e = {0};
		for (size_t r = 0; r < p->n_roles; r++) {
			struct layout l;
			CU_ASSERT_EQUAL_FATAL(layout_plan(&p->roles[r], &l, &e), ST_OK);
			CU_ASSERT(l.total_B >= l.peak_B);
			layout_free(&l);
		}
		CU_ASSERT_EQUAL(p->mesh.size[p->mesh.params] * p->mesh.size[DIM_REPLICA], data * context);
		program_destroy(p);
	}
}

/* The ranks of a context group share the work of one rank, exactly: attention's pairs and every token's products. */
static void test_work(void)
{
	static const char *const kinds[] = {"ring", "all_gather", "all_to_all"};
	for (int causal = 0; causal < 2; causal++)
		for (size_t kind = 0; kind < COUNT(kinds); kind++)
			for (int64_t c = 2; c <= (kind < 2 ? 16 : 4 /* heads of keys */); c *= 2) {
				char more[256];
				snprintf(more, sizeof more, "model.causal=%s", causal ? "true" : "false");
				struct program *one = program_of(more, 1);
				snprintf(more, sizeof more,
					"model.causal=%s parallel.context=%lld parallel.context_kind=%s",
					causal ? "true" : "false", (long long)c, kinds[kind]);
				struct program *part = program_of(more, c);
				CU_ASSERT_DOUBLE_EQUAL((double)c * flop_of(part, CLASS_ATTENTION) /
							       flop_of(one, CLASS_ATTENTION),
					1, 1e-12);
				CU_ASSERT_DOUBLE_EQUAL((double)c * flop_of(part, CLASS_GEMM) / flop_of(one, CLASS_GEMM),
					1, 1e-12);
				program_destroy(one);
				program_destroy(part);
			}
}

/* Of pieces in order the last rank's queries, 16, see all keys of three other ranks; in a balanced ring half of them.
 */
static void test_contiguous(void)
{
	struct program *balanced = program_of("parallel.context=4", 4),
		       *in_order = program_of("parallel.context=4 parallel.context_kind=ring_contiguous", 4);
	const double own = 16 * 17 / 2.0, full = 16 * 16.0;
	CU_ASSERT_DOUBLE_EQUAL(flop_of(in_order, CLASS_ATTENTION) / flop_of(balanced, CLASS_ATTENTION),
		(own + 3 * full) / (own + 3 * full / 2), 1e-12);
	CU_ASSERT_EQUAL(in_order->roles[0].ops.n, balanced->roles[0].ops.n);
	program_destroy(balanced);
	program_destroy(in_order);
}

/* Of a layer and micro-batch a rank sends its keys and values, or their gradients, (c - 1) times in each of three
 * passes. Gradients: over data x context as over so many replicas. */
static void test_volumes(void)
{
	for (int gathers = 0; gathers < 2; gathers++)
		for (int64_t c = 2; c <= 8; c *= 2) {
			char more[256];
			snprintf(more, sizeof more, "parallel.context=%lld parallel.context_kind=%s", (long long)c,
				gathers ? "all_gather" : "ring");
			struct program *p = program_of(more, 2 * c);
			double kv_B = 2.0 * 64 / (double)c * 2 * 4 * 8 * 4; /* b s/c x 2 K D in fp32 */
			CU_ASSERT_DOUBLE_EQUAL(wire_B(p, DIM_CP),
				3.0 * (double)p->config.micro_batches * 3 * (double)(c - 1) * kv_B, 1e-6);
			double n = 2.0 * (double)c, all_B = 4.0 * (double)model_parameters(&p->config.model);
			CU_ASSERT_DOUBLE_EQUAL(wire_B(p, DIM_DP_CP), 2 * (n - 1) / n * all_B, 1e-3);
			CU_ASSERT_EQUAL(wire_B(p, DIM_DP), 0);
			program_destroy(p);
		}
}

/* Of a layer and micro-batch a rank sends Q, K and V, and attention's result, and as much back: all but its own part.
 */
static void test_all_to_all(void)
{
	for (int64_t c = 2; c <= 4; c *= 2) {
		char more[256];
		snprintf(more, sizeof more, "parallel.context=%lld parallel.context_kind=all_to_all", (long long)c);
		struct program *p = program_of(more, 2 * c);
		const struct model *m = &p->config.model;
		const double columns = (double)((2 * m->heads + 2 * m->kv_heads) * m->head_dim);
		const double rows_B = (double)(p->config.train.micro_batch * m->seq_len / c) * 4;
		CU_ASSERT_DOUBLE_EQUAL(wire_B(p, DIM_CP),
			(double)m->layers * (double)p->config.micro_batches * 2 * columns * rows_B * (double)(c - 1) /
				(double)c,
			1e-6);
		program_destroy(p);
	}
}

static uint64_t activations_B(const char *more, int64_t ranks)
{
	struct program *p = program_of(more, ranks);
	struct layout l;
	struct error e = {0};
	CU_ASSERT_EQUAL_FATAL(layout_peak(&p->roles[0], &l, &e), ST_OK);
	uint64_t bytes = l.peak_component_B[COMP_ACTIVATIONS];
	layout_free(&l);
	program_destroy(p);
	return bytes;
}

/* 1/c of the activations, and the keys and values that are under way beside them. */
static void test_memory(void)
{
	double one = (double)activations_B("model.layers=24", 1);
	for (int64_t c = 2; c <= 8; c *= 2) {
		char more[128];
		snprintf(more, sizeof more, "model.layers=24 parallel.context=%lld", (long long)c);
		CU_ASSERT_DOUBLE_EQUAL((double)c * (double)activations_B(more, c) / one, 1, 0.04);
	}
}

/* hsdp of n = shard x replicas ranks: fsdp's volumes within the group, 2 (r-1)/r of the gradient shard across; state as
 * fsdp on `shard` ranks. One group of all is fsdp. */
static void test_hybrid(void)
{
	struct program *p = program_of("parallel.strategy=hsdp parallel.shard=4 train.global_batch=16 model.vocab=128",
		8);
	struct program *group = program_of("parallel.strategy=fsdp train.global_batch=8 model.vocab=128", 4),
		       *whole = program_of("parallel.strategy=fsdp model.vocab=128", 8);
	double padded = 0;
	for (size_t k = 0; k < p->roles[0].buckets.n; k++) {
		CU_ASSERT_EQUAL(p->roles[0].buckets.at[k].shards, 4);
		padded += (double)p->roles[0].buckets.at[k].padded;
	}
	CU_ASSERT_EQUAL(p->config.micro_batches, 1);
	CU_ASSERT_DOUBLE_EQUAL(wire_B(p, DIM_SHARD), wire_B(group, DIM_DP), 1e-3);
	CU_ASSERT_DOUBLE_EQUAL(wire_B(p, DIM_REPLICA), 2 * 0.5 * padded / 4 * 4, 1e-3);
	double state[2] = {0};
	const struct program *both[2] = {p, group};
	for (int k = 0; k < 2; k++)
		for (size_t i = 0; i < both[k]->roles[0].buffers.n; i++)
			if (both[k]->roles[0].buffers.at[i].persistent &&
				both[k]->roles[0].buffers.at[i].component != COMP_HOST)
				state[k] += (double)both[k]->roles[0].buffers.at[i].bytes;
	CU_ASSERT_EQUAL(state[0], state[1]);
	struct error e = {0};
	for (size_t i = 0; i < p->roles[0].ops.n; i++) /* the check misses a sum over the replicas that is not there */
		if (p->roles[0].ops.at[i].group == DIM_REPLICA && p->roles[0].ops.at[i].kind == OP_COLLECTIVE) {
			p->roles[0].ops.at[i].bucket = -1;
			CU_ASSERT_EQUAL(program_check(p, &e), ST_RUN);
			break;
		}
	program_destroy(p);
	p = program_of("parallel.strategy=hsdp parallel.shard=8 model.vocab=128", 8);
	CU_ASSERT_EQUAL(p->roles[0].ops.n, whole->roles[0].ops.n);
	CU_ASSERT_DOUBLE_EQUAL(wire_B(p, DIM_SHARD), wire_B(whole, DIM_DP), 1e-3);
	CU_ASSERT_EQUAL(wire_B(p, DIM_REPLICA), 0);
	program_destroy(p);
	program_destroy(group);
	program_destroy(whole);
}

/* zero1 and zero2 in groups: the group's volumes, 2 (r-1)/r of the gradient shard across, and the group's state. */
static void test_groups(void)
{
	static const char *const strategies[] = {"zero1", "zero2"};
	for (size_t s = 0; s < COUNT(strategies); s++) {
		char sets[2][160];
		snprintf(sets[0], sizeof sets[0],
			"parallel.strategy=%s parallel.replicate=2 train.global_batch=16 model.vocab=128",
			strategies[s]);
		snprintf(sets[1], sizeof sets[1], "parallel.strategy=%s train.global_batch=8 model.vocab=128",
			strategies[s]);
		struct program *p = program_of(sets[0], 8), *group = program_of(sets[1], 4);
		double parts = 0, state[2] = {0};
		for (size_t k = 0; k < p->roles[0].buckets.n; k++)
			parts += (double)bucket_part(&p->roles[0].buckets.at[k]);
		CU_ASSERT_EQUAL(p->config.micro_batches, 1);
		CU_ASSERT_DOUBLE_EQUAL(wire_B(p, DIM_SHARD), wire_B(group, DIM_DP), 1e-3);
		CU_ASSERT_DOUBLE_EQUAL(wire_B(p, DIM_REPLICA), 2 * 0.5 * parts * 4, 1e-3);
		const struct program *both[2] = {p, group};
		for (int k = 0; k < 2; k++)
			for (size_t i = 0; i < both[k]->roles[0].buffers.n; i++)
				if (both[k]->roles[0].buffers.at[i].component == COMP_OPTIMIZER)
					state[k] += (double)both[k]->roles[0].buffers.at[i].bytes;
		CU_ASSERT(state[0] > 0 && state[0] == state[1]);
		program_destroy(p);
		program_destroy(group);
	}
}

/* auto: the GPUs of a node that one replica of the model leaves, where the system is known and they divide. */
static void test_default_shard(void)
{
	static const struct {
		const char *more;
		int64_t ranks, node, shard;
	} cases[] = {{"", 32, 8, 8}, {"", 32, 0, 32}, {"parallel.tensor=2", 32, 8, 4},
		{"parallel.tensor=2 parallel.context=2", 32, 8, 2}, {"parallel.tensor=4 parallel.context=2", 32, 8, 4},
		{"", 12, 8, 12}};
	for (size_t i = 0; i < COUNT(cases); i++) {
		char more[256];
		snprintf(more, sizeof more, "parallel.strategy=hsdp train.global_batch=192 %s", cases[i].more);
		struct config c = plan(more, cases[i].ranks);
		CU_ASSERT_EQUAL(c.parallel.shard, c.parallel.data); /* no system said how many a node has */
		c.parallel.shard = c.parallel.data = AUTO;
		c.node_ranks = cases[i].node;
		CU_ASSERT_EQUAL(config_resolve(&c, cases[i].ranks, NULL), ST_OK);
		CU_ASSERT_EQUAL(c.parallel.shard, cases[i].shard);
	}
}

/* ---- predictions ---- */

static struct machine two_nodes(int64_t ranks, double intra_Bps, double inter_Bps)
{
	struct machine m = {.parameters = read_constants(),
		.name = "device",
		.nodes = 2,
		.devices_per_node = ranks / 2,
		.intra = {1e-6, intra_Bps},
		.inter = {1e-6, inter_Bps}};
	m.device = (struct device_spec){.name = "device",
		.vector_flop_per_s = 1e14,
		.mem_Bps = 1e13,
		.mem_B = 80000000000,
		.mem_share = 1,
		.gemm_share = 1,
		.pcie_Bps = 1e12};
	m.device.matrix_flop_per_s[DT_FP32] = 1e14;
	return m;
}

static struct result predicted(const char *more, int64_t ranks, double intra_Bps, double inter_Bps)
{
	struct machine m = two_nodes(ranks, intra_Bps, inter_Bps);
	struct program *p = program_of(more, ranks);
	struct timeline t;
	struct result r;
	struct error e = {0};
	if (predict(p, &m, &r, &t, &e)) {
		fprintf(stderr, "%s: %s\n", more, e.text);
		CU_FAIL_FATAL("predict");
	}
	timeline_free(&t);
	program_destroy(p);
	return r;
}

#define LONG "model.hidden=1024 model.head_dim=128 model.seq_len=65536 train.micro_batch=1 train.optimizer=none "

/* One long sequence: more ranks take less time, not less than their share; a ring hides what gathering shows; attention
 * has the same work. */
static void test_predictions(void)
{
	double before_s = 0;
	for (int64_t c = 2; c <= 16; c *= 2) {
		char ring[256], gather[256];
		snprintf(ring, sizeof ring, LONG "train.global_batch=1 parallel.context=%lld", (long long)c);
		snprintf(gather, sizeof gather,
			LONG "train.global_batch=1 parallel.context=%lld parallel.context_kind=all_gather",
			(long long)c);
		struct result r = predicted(ring, c, 1e11, 1e11), g = predicted(gather, c, 1e11, 1e11),
			      slow = predicted(ring, c, 1e8, 1e8);
		CU_ASSERT(r.time.exposed_comm_s < g.time.exposed_comm_s ||
			  c == 2); /* beside the same reduction of gradients */
		CU_ASSERT(r.time.step_s < slow.time.step_s);
		if (before_s > 0) {
			CU_ASSERT(r.time.step_s < before_s);
			CU_ASSERT(r.time.step_s > 0.45 * before_s);
		}
		before_s = r.time.step_s;
	}
}

/* A part's sum over the replicas goes on beside the next unit's gather and scatter: those cross other links, and
 * PyTorch gives it a stream of its own. */
static void test_hybrid_lanes(void)
{
	struct machine m = two_nodes(8, 1e11, 1e9);
	struct program *p = program_of("model.hidden=1024 model.head_dim=128 parallel.strategy=hsdp parallel.shard=4",
		8);
	const struct role *r = &p->roles[0];
	struct timeline t;
	struct result out;
	struct error e = {0};
	size_t beside = 0, sums = 0;
	CU_ASSERT_EQUAL_FATAL(predict(p, &m, &out, &t, &e), ST_OK);
	for (size_t i = 0; i < r->ops.n; i++) {
		if (r->ops.at[i].kind != OP_COLLECTIVE || r->ops.at[i].group != DIM_REPLICA)
			continue;
		sums++;
		CU_ASSERT_EQUAL(r->ops.at[i].lane, LANE_REPLICA_COMM);
		for (size_t k = 0; k < r->ops.n; k++)
			beside += r->ops.at[k].lane == LANE_COMM && t.spans.at[k].move_ps >= t.spans.at[i].move_ps &&
			          t.spans.at[k].end_ps <= t.spans.at[i].end_ps;
	}
	CU_ASSERT_EQUAL((int64_t)sums, p->config.micro_batches * (int64_t)r->buckets.n);
	CU_ASSERT(beside > 0);
	for (size_t i = 0; i < r->ops.n; i++) /* the update comes after all of them */
		for (size_t k = 0; k < i && r->ops.at[i].kind == OP_OPTIMIZER; k++)
			CU_ASSERT(r->ops.at[k].lane != LANE_REPLICA_COMM ||
				  t.spans.at[k].end_ps <= t.spans.at[i].start_ps);
	timeline_free(&t);
	program_destroy(p);
}

/* Without overlap an update waits for the last of the reductions, however many buckets there are. */
static void test_update_follows(void)
{
	struct machine m = two_nodes(8, 1e9, 1e8); /* the reductions are what takes time */
	struct program *p = program_of("model.layers=64 parallel.strategy=ddp parallel.overlap=false "
				       "parallel.bucket_mb=0.001 parallel.first_bucket_mb=0.001",
		8);
	const struct role *r = &p->roles[0];
	struct timeline t;
	struct result out;
	struct error e = {0};
	int64_t ended_ps = 0, reductions = 0;
	CU_ASSERT_EQUAL_FATAL(predict(p, &m, &out, &t, &e), ST_OK);
	for (size_t i = 0; i < r->ops.n; i++) {
		const bool reduces = r->ops.at[i].lane == LANE_COMM;
		reductions += reduces;
		ended_ps = reduces && t.spans.at[i].end_ps > ended_ps ? t.spans.at[i].end_ps : ended_ps;
		CU_ASSERT(r->ops.at[i].kind != OP_OPTIMIZER || t.spans.at[i].start_ps >= ended_ps);
	}
	CU_ASSERT(reductions > 256);
	timeline_free(&t);
	program_destroy(p);
}

/* Slow links between nodes: sharding within a node beats sharding across. */
static void test_hybrid_prediction(void)
{
	struct result hybrid = predicted("model.hidden=1024 model.head_dim=128 parallel.strategy=hsdp parallel.shard=4",
		8, 1e11, 1e9);
	struct result full = predicted("model.hidden=1024 model.head_dim=128 parallel.strategy=fsdp", 8, 1e11, 1e9);
	CU_ASSERT(hybrid.time.step_s < full.time.step_s);
	CU_ASSERT(hybrid.memory.total_B > full.memory.total_B);
}

UNIT_MAIN("program, context and hsdp", {"combinations", test_combinations}, {"work", test_work},
	{"volumes", test_volumes}, {"pieces in order", test_contiguous}, {"all to all", test_all_to_all},
	{"memory", test_memory}, {"hybrid", test_hybrid}, {"zero in groups", test_groups},
	{"default shard", test_default_shard}, {"predictions", test_predictions},
	{"hybrid prediction", test_hybrid_prediction}, {"hybrid lanes", test_hybrid_lanes},
	{"update behind reductions", test_update_follows})
