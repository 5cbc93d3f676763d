/* Predictions of real programs: closed forms, what the result says, and roles that wait for each other. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/engine/predict.h"
#include "sim/price/cost.h"
#include "tests/unit/constants.h"
#include "tests/unit/harness.h"
#include "tests/unit/machines.h"
#include "tests/unit/predict_case.h"
#include "tests/unit/rates.h"

static struct result predicted(const struct program *p, const struct machine *m)
{
	struct result r;
	struct timeline t;
	struct error e = {0};
	CU_ASSERT_EQUAL_FATAL(predict(p, m, &r, &t, &e), ST_OK);
	timeline_free(&t);
	return r;
}

static int warned(const struct result *r, const char *text)
{
	for (size_t i = 0; i < r->n_warnings; i++)
		if (strstr(r->warning[i], text))
			return 1;
	return 0;
}

/* ---- closed forms ---- */

/* One rank, everything on one lane: the sum of the ops, after the first copy. */
static void test_one_rank(void)
{
	struct program *p = build("train.dtype=fp32", 1);
	struct profile quiet = {.key.cores_per_rank = 4};
	struct machine m = host(&quiet); /* launches cost nothing on a host: calls are part of the ops */
	double compute_s = 0, copies_s = 0;
	for (size_t i = 0; i < p->roles[0].ops.n; i++) {
		struct op_cost c;
		CU_ASSERT_EQUAL_FATAL(cost_op(p, &p->roles[0].ops.at[i], RATES(&m), &c, NULL), ST_OK);
		*(p->roles[0].ops.at[i].lane == LANE_COPY ? &copies_s : &compute_s) += c.alone_s;
	}
	struct result r = predicted(p, &m);
	CU_ASSERT(r.time.step_s >= compute_s);
	CU_ASSERT(r.time.step_s <= compute_s + copies_s + 1e-9);
	CU_ASSERT_EQUAL(r.time.comm_s, 0);
	CU_ASSERT_EQUAL(r.time.overlap, 1);
	CU_ASSERT_EQUAL(r.time.exposed_comm_s, 0);
	program_destroy(p);
}

/* Without overlap, DDP's step is compute and then the buckets one after the other; with overlap it is shorter by what
 * is hidden. */
static void test_ddp_exposes_without_overlap(void)
{
	struct machine m = gpu();
	struct program *p = build("parallel.overlap=false", 4), *q = build("parallel.overlap=true", 4);
	struct result serial = predicted(p, &m), overlapped = predicted(q, &m);
	CU_ASSERT_DOUBLE_EQUAL(serial.time.exposed_comm_s / serial.time.comm_s, 1, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(serial.time.overlap, 0, 1e-9);
	CU_ASSERT(overlapped.time.overlap >
		  0.1); /* the last bucket, with the embedding, has nothing left to hide under */
	CU_ASSERT(overlapped.time.step_s < serial.time.step_s);
	CU_ASSERT_EQUAL(serial.time.class_n[CLASS_ALL_REDUCE], overlapped.time.class_n[CLASS_ALL_REDUCE]);
	program_destroy(p);
	program_destroy(q);
}

/* 6 N + 12 L h s FLOP a token, N counted here: GPT-2 with 3 layers, d = 768. */
static void test_rates(void)
{
	double d = 768, layers = 3, vocab = 50257, seq = 1024;
	double n = vocab * d + seq * d + layers * (12 * d * d + 13 * d) + 2 * d, flop = 6 * n + 12 * layers * d * seq;
	struct machine m = gpu();
	struct program *p = build("", 4);
	struct result r = predicted(p, &m);
	double tokens_per_s = 8 * seq / r.time.step_s, peak = m.device.matrix_flop_per_s[p->config.train.dtype];
	CU_ASSERT_DOUBLE_EQUAL(r.tokens_per_s / tokens_per_s, 1, 1e-12);
	CU_ASSERT_DOUBLE_EQUAL(r.tokens_per_s_per_gpu / tokens_per_s, 0.25, 1e-12);
	CU_ASSERT_DOUBLE_EQUAL(r.tflops_per_gpu * 1e12 / (flop * tokens_per_s / 4), 1, 1e-12);
	CU_ASSERT_DOUBLE_EQUAL(r.mfu / (flop * tokens_per_s / 4 / peak), 1, 1e-12);
	CU_ASSERT_EQUAL(r.hfu, r.mfu);
	result_rates(&r, p, 0); /* no peak is known */
	CU_ASSERT(isnan(r.mfu) && isnan(r.hfu));
	CU_ASSERT_DOUBLE_EQUAL(r.tokens_per_s / tokens_per_s, 1, 1e-12);
	program_destroy(p);

	/* Recomputing the blocks does their forward again, but for the last GEMM, whose output backward does not need.
	 * Causal attention does 2 s d FLOP a token forward, 5 s d backward. */
	p = build("train.recompute=full model.vocab=512", 4);
	r = predicted(p, &m);
	double again = layers * (16 * d * d + 2 * seq * d), once = layers * (72 * d * d + 7 * seq * d) + 6 * 512 * d;
	CU_ASSERT_DOUBLE_EQUAL(r.hfu / r.mfu, 1 + again / once, 0.01);
	program_destroy(p);
}

/* ---- what the result says ---- */

static void test_bottleneck(void)
{
	struct program *p = build("train.global_batch=64", 4);
	struct machine m = gpu();
	struct result r = predicted(p, &m);
	CU_ASSERT_PTR_NOT_NULL(strstr(r.bottleneck, "compute: gemm "));
	CU_ASSERT_PTR_NOT_NULL(strstr(r.bottleneck, " % of the step"));
	CU_ASSERT_EQUAL(r.class_bound[CLASS_GEMM], BOUND_COMPUTE);
	CU_ASSERT_EQUAL(r.class_bound[CLASS_NORM], BOUND_MEMORY);
	CU_ASSERT_EQUAL(r.class_bound[CLASS_ALL_REDUCE], BOUND_LINK);

	m.intra.Bps = 1e9;
	r = predicted(p, &m);
	CU_ASSERT_PTR_NOT_NULL(strstr(r.bottleneck, "exposed communication: all_reduce "));

	m = gpu();
	m.device.launch_s = 1e-3;
	r = predicted(p, &m);
	CU_ASSERT_PTR_NOT_NULL(strstr(r.bottleneck, "kernel launches on the host leave the device idle: "));
	CU_ASSERT_EQUAL(r.class_bound[CLASS_NORM], BOUND_LATENCY);
	CU_ASSERT(r.time.idle_s > 0.5 * r.time.step_s);
	program_destroy(p);
}

static void test_memory(void)
{
	struct program *p = build("", 4);
	struct machine m = gpu();
	struct result r = predicted(p, &m);
	CU_ASSERT(r.memory.fits);
	CU_ASSERT_EQUAL(r.memory.capacity_B, 80000000000);
	CU_ASSERT_EQUAL(r.memory.communicators, 1);
	CU_ASSERT_EQUAL(r.memory.context_B, UINT64_C(768) << 20);
	CU_ASSERT_EQUAL(r.memory.overhead_B, r.memory.context_B + (UINT64_C(256) << 20));
	CU_ASSERT_EQUAL(r.memory.first_B + r.memory.overhead_B, r.memory.total_B);
	CU_ASSERT_FALSE(warned(&r, "memory is"));
	m.device.reserved_B = 1000000; /* a runtime's, in place of CUDA's and NCCL's */
	CU_ASSERT_EQUAL(predicted(p, &m).memory.total_B, r.memory.first_B + 1000000);
	m.device.reserved_B = 0;
	m.device.mem_B = r.memory.total_B * 100 / 95;
	r = predicted(p, &m);
	CU_ASSERT(warned(&r, "memory is 95 % full: where the allocator"));
	CU_ASSERT_FALSE(warned(&r, "does not fit"));
	m.device.mem_B = r.memory.total_B - 250000000;
	r = predicted(p, &m);
	CU_ASSERT_FALSE(r.memory.fits);
	CU_ASSERT(warned(&r, "does not fit in memory: 238 MiB are missing"));
	program_destroy(p);
	p = build("model.experts=4 parallel.expert=2", 4); /* of data, of experts, of what holds the same experts */
	m = gpu();
	CU_ASSERT_EQUAL(predicted(p, &m).memory.communicators, 3);
	program_destroy(p);
	p = build("model.experts=4 parallel.expert=2 parallel.expert_dispatch=once_a_host", 4);
	r = predicted(p, &m);
	CU_ASSERT(warned(&r, "once_a_host is taken as all_to_all: it is not known how many ranks a host has"));
	program_destroy(p);
	p = build("model.experts=4 parallel.expert=2 parallel.expert_dispatch=deepep", 4);
	r = predicted(p, &m);
	CU_ASSERT(warned(&r, "deepep is taken as all_to_all: it is not known how many ranks a host has"));
	program_destroy(p);
	p = build("train.dtype=fp32", 4);
	m = host(NULL);
	CU_ASSERT_EQUAL(predicted(p, &m).memory.overhead_B, 0);
	program_destroy(p);
}

static void test_warnings(void)
{
	struct program *p = build("", 4);
	struct machine m = gpu();
	struct result r = predicted(p, &m);
	CU_ASSERT_EQUAL(r.verified, -1);
	CU_ASSERT(warned(&r, "nothing was measured"));
	CU_ASSERT_FALSE(warned(&r, "unverified"));
	CU_ASSERT(r.interval90_s[0] <= 0.9 * r.time.step_s);
	CU_ASSERT(r.interval90_s[1] >= 1.3 * r.time.step_s);
	m.unverified = true;
	r = predicted(p, &m);
	CU_ASSERT(warned(&r, "unverified numbers for node"));
	program_destroy(p);

	p = build("train.dtype=fp32", 4);
	struct profile empty = {.key.cores_per_rank = 2};
	m = host(&empty);
	r = predicted(p, &m);
	CU_ASSERT_FALSE(warned(&r, "nothing was measured"));
	CU_ASSERT(warned(&r, "no entry for gemm.nt: priced from peak rates"));
	CU_ASSERT(warned(&r, "no curve for all_reduce"));
	const double above_s = r.interval90_s[1] - r.time.step_s;
	CU_ASSERT_FALSE(warned(&r, "others took"));
	CU_ASSERT_EQUAL(profile_set_value(&empty, PROFILE_CPU_STEAL_SHARE, 0.4, NULL), ST_OK);
	CU_ASSERT_EQUAL(profile_set_value(&empty, PROFILE_DISTURBED_SHARE, 0.5, NULL), ST_OK);
	r = predicted(p, &m);
	CU_ASSERT(warned(&r, "others took 40 % of a rank's cores during 50 % of the profile's measurements"));
	CU_ASSERT_DOUBLE_EQUAL(r.interval90_s[1] - r.time.step_s, hypot(above_s, 0.2 * r.time.step_s), 1e-12);
	CU_ASSERT_FALSE(warned(&r, "the cores' speed varied"));
	CU_ASSERT_EQUAL(profile_set_value(&empty, PROFILE_CPU_STEAL_SHARE, 0, NULL), ST_OK);
	CU_ASSERT_EQUAL(profile_set_value(&empty, PROFILE_PACE_SPREAD, 0.12, NULL), ST_OK);
	r = predicted(p, &m);
	CU_ASSERT(warned(&r, "the cores' speed varied by 12 % while the profile was measured"));
	CU_ASSERT_DOUBLE_EQUAL(r.interval90_s[1] - r.time.step_s,
		hypot(above_s, 1.645 * 0.12 * (r.time.compute_s + r.time.optimizer_s)), 1e-9);
	program_destroy(p);
}

/* A rank with a single core cannot overlap, and says so. */
static void test_single_core(void)
{
	struct program *p = build("train.dtype=fp32", 2);
	struct profile profile = {.key.cores_per_rank = 1};
	struct machine m = host(&profile);
	CU_ASSERT(isnan(predicted(p, &m).time.overlap));
	profile.key.cores_per_rank = 2;
	CU_ASSERT_FALSE(isnan(predicted(p, &m).time.overlap));
	program_destroy(p);
}

/* With every GEMM's uncertainty known and nothing else in the step, the interval is 1.645 of it and of the 6 % inside a
 * step, as independent errors, on either side. */
static void test_interval(void)
{
	struct program *p = build("train.dtype=fp32", 1);
	static struct profile profile;
	profile.key.cores_per_rank = 2;
	const double coef[] = {0, 1e-9, 0, 0, 0}, zero[] = {0, 0, 0, 0, 0};
	for (size_t k = 0; k < 3; k++) {
		const char *const names[] = {"gemm.nn", "gemm.nt", "gemm.tn"};
		CU_ASSERT_EQUAL_FATAL(profile_set_fit(&profile, names[k], coef, 5, 0.08, NULL), ST_OK);
	}
	CU_ASSERT_EQUAL_FATAL(profile_set_fit(&profile, "attention", zero, 5, 0, NULL), ST_OK);
	CU_ASSERT_EQUAL_FATAL(profile_set_fit(&profile, "attention_grad", zero, 5, 0, NULL), ST_OK);
	struct machine m = host(&profile);
	m.device.mem_Bps = m.device.vector_flop_per_s = 1e30; /* the rest, priced from peak rates, takes no time */
	m.device.launch_s = 0;
	struct result r = predicted(p, &m);
	CU_ASSERT_DOUBLE_EQUAL(r.time.class_s[CLASS_GEMM] / r.time.step_s, 1, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(r.interval90_s[1] / r.time.step_s, 1 + 1.645 * 0.1, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(r.interval90_s[0] / r.time.step_s, 1 - 1.645 * 0.1, 1e-9);
	program_destroy(p);
}

/* A step that is all but the update on the host, whose rate may be 4 times as much or as little. Below the two parts
 * are ratios: logarithms of 4 and of the interval that the step has without such an update. */
static void test_interval_of_host_update(void)
{
	struct machine m = gpu();
	m.device.pcie_Bps = 1e15;
	struct program *p = build("train.offload=optimizer parallel.strategy=zero1 train.dtype=bf16", 4);
	const struct result r = predicted(p, &m);
	const double step_s = r.time.step_s, below = log(step_s / r.interval90_s[0]);
	double sum = 0;
	for (int i = 0; i < INTERVAL_COUNT; i++)
		sum += r.interval_part[i] * r.interval_part[i];
	const double own = m.parameters->interval.below * sqrt(sum);
	CU_ASSERT_TRUE(r.interval90_s[0] > 0);
	CU_ASSERT_TRUE(below > own && below < hypot(own, log(4)));
	CU_ASSERT_TRUE(r.interval90_s[1] > step_s * exp(sqrt(sum)));
	program_destroy(p);
}

/* A board of 700 W, 100 W at rest, on which products ran at 60 % of the burst clock. In a step that is products alone
 * they do so again, also in one of many micro-batches. With as much time of ops that draw little between them the mean
 * power allows a higher clock. */
static void test_power_capped(void)
{
	static struct profile profile;
	static struct profile_products found = {.name = "gemm.nt.bf16",
		.n = 2,
		.flop = {1e11, 1e9},
		.clock_Hz = {1.2e9, 2e9},
		.power_W = {700, 100},
		.heat_s = {0.15, 0},
		.capped = {1, 0}};
	const double coef[] = {0, 1e-9, 0, 0, 0}; /* 1 GFLOP/s at the burst clock, 0.6 at the limit */
	found.time_s[0] = 1e11 / 0.6e9;
	found.time_s[1] = 1;
	for (size_t k = 0; k < 3; k++) {
		const char *const names[] = {"gemm.nn.bf16", "gemm.nt.bf16", "gemm.tn.bf16"};
		CU_ASSERT_EQUAL_FATAL(profile_set_fit(&profile, names[k], coef, 5, 0.08, NULL), ST_OK);
	}
	struct machine m = gpu();
	m.device.vector_flop_per_s = m.device.mem_Bps = 1e30; /* the rest takes no time */
	m.profile = &profile;
	static const char *const sets[] = {"train.dtype=bf16", "train.dtype=bf16 train.global_batch=400"};
	for (size_t i = 0; i < COUNT(sets); i++) {
		struct program *p = build(sets[i], 1);
		CU_ASSERT_EQUAL_FATAL(profile_set_products(&profile, &found, NULL), ST_OK);
		CU_ASSERT_EQUAL_FATAL(profile_set_value(&profile, PROFILE_POWER_LIMIT_W, 90, NULL), ST_OK);
		struct result burst = predicted(p, &m); /* below idle: no limit that could be */
		CU_ASSERT_FALSE(warned(&burst, "power-capped"));
		CU_ASSERT_EQUAL_FATAL(profile_set_value(&profile, PROFILE_POWER_LIMIT_W, 700, NULL), ST_OK);
		struct result held = predicted(p, &m);
		CU_ASSERT(warned(&held, "power-capped: "));
		const double longer = held.time.class_s[CLASS_GEMM] / burst.time.class_s[CLASS_GEMM];
		CU_ASSERT(longer > 1.2 && longer < 1 / 0.6 + 1e-3);
		m.device.mem_Bps = 1e9;
		burst = predicted(p, &m);
		CU_ASSERT(burst.time.class_s[CLASS_GEMM] < held.time.class_s[CLASS_GEMM]);
		m.device.mem_Bps = 1e30;
		program_destroy(p);
	}
}

static void test_unsupported(void)
{
	struct program *p = build("", 1);
	struct machine m = gpu();
	m.device.matrix_flop_per_s[p->config.train.dtype] = 0;
	struct result r;
	struct timeline t;
	struct error e = {0};
	CU_ASSERT_EQUAL(predict(p, &m, &r, &t, &e), ST_INPUT);
	CU_ASSERT_PTR_NOT_NULL(strstr(e.text, "train.dtype: matrices are not multiplied in"));
	CU_ASSERT_EQUAL(t.spans.n, 0);
	program_destroy(p);
}

static void test_warn_once_and_bounded(void)
{
	struct result r = {0};
	result_warn(&r, "twice %d", 1);
	result_warn(&r, "twice %d", 1);
	CU_ASSERT_EQUAL(r.n_warnings, 1);
	for (int i = 0; i < 2 * RESULT_MAX_NOTES; i++)
		result_warn(&r, "number %d", i);
	CU_ASSERT_EQUAL(r.n_warnings, RESULT_MAX_NOTES);
	CU_ASSERT_STRING_EQUAL(r.warning[RESULT_MAX_NOTES - 1], "number 14");
}

static void test_bound_names(void)
{
	static const char *const words[] = {"compute", "memory", "latency", "link", "host"};
	for (int b = 0; b < BOUND_COUNT; b++)
		CU_ASSERT_STRING_EQUAL(bound_name((enum bound)b), words[b]);
}

/* ---- roles that meet ---- */

/* Rank 3 as a role of its own whose first GEMM has 50 times the work: the others wait for it in every group that it is
 * in. */
static void test_slow_role(void)
{
	struct program *p = build("", 4);
	struct role roles[2] = {p->roles[0], p->roles[0]};
	size_t n = p->roles[0].ops.n, slow = 0;
	struct op *ops = malloc(n * sizeof *ops);
	CU_ASSERT_PTR_NOT_NULL_FATAL(ops);
	memcpy(ops, p->roles[0].ops.at, n * sizeof *ops);
	while (ops[slow].kind != OP_GEMM)
		slow++;
	ops[slow].gemm.k *= 50;
	roles[0].ranks = 3;
	roles[1].ranks = 1;
	roles[1].representative = 3;
	roles[1].ops.at = ops;
	struct program two = *p;
	two.n_roles = 2;
	two.roles = roles;

	struct machine m = gpu();
	struct result r;
	struct timeline t;
	struct error e = {0};
	CU_ASSERT_EQUAL_FATAL(predict(&two, &m, &r, &t, &e), ST_OK);
	CU_ASSERT_EQUAL(t.actors, 2);
	size_t met = 0;
	int64_t waited_ps = 0;
	for (size_t i = 0; i < n; i++) {
		const struct span *fast = &t.spans.at[i], *late = &t.spans.at[n + i];
		if (!op_class_is_comm(fast->class_))
			continue;
		met++;
		waited_ps += fast->move_ps - fast->start_ps;
		CU_ASSERT_EQUAL(fast->move_ps, late->move_ps);
		CU_ASSERT_EQUAL(fast->end_ps, late->end_ps);
	}
	CU_ASSERT(met > 1);
	int64_t extra_ps = (t.spans.at[n + slow].end_ps - t.spans.at[n + slow].start_ps) -
	                   (t.spans.at[slow].end_ps - t.spans.at[slow].start_ps);
	CU_ASSERT(waited_ps > extra_ps / 2); /* what the slow rank takes longer, less what hides it */
	struct breakdown b;
	CU_ASSERT_EQUAL(timeline_breakdown(&t, 0, &b, NULL), ST_OK);
	CU_ASSERT(b.wait_s > 0);
	timeline_free(&t);

	/* The same with the roles named the other way round. */
	struct role swapped[2] = {roles[1], roles[0]};
	struct result s;
	two.roles = swapped;
	CU_ASSERT_EQUAL_FATAL(predict(&two, &m, &s, &t, &e), ST_OK);
	CU_ASSERT_EQUAL(s.time.step_s, r.time.step_s);
	timeline_free(&t);

	/* A role that has one collective more than those it meets. */
	ops[slow] = (struct op){.kind = OP_COLLECTIVE,
		.lane = LANE_COMM,
		.group = DIM_DP,
		.dtype = DT_FP32,
		.collective = {1000}};
	two.roles = roles;
	CU_ASSERT_EQUAL(predict(&two, &m, &r, &t, &e), ST_RUN);
	CU_ASSERT_PTR_NOT_NULL(strstr(e.text, "role 1 has more collectives along dp than role 0"));
	free(ops);
	program_destroy(p);
}

/* Ranks that differ along tensor parallelism do not meet in data-parallel groups. */
static void test_roles_that_do_not_meet(void)
{
	struct program *p = build("parallel.tensor=2 model.vocab=50304", 4);
	struct role roles[2] = {p->roles[0], p->roles[0]};
	roles[1].representative = 1;
	struct program two = *p;
	two.n_roles = 2;
	two.roles = roles;
	struct machine m = gpu();
	struct result r, one = predicted(p, &m);
	struct timeline t;
	CU_ASSERT_EQUAL_FATAL(predict(&two, &m, &r, &t, NULL), ST_OK);
	CU_ASSERT_EQUAL(r.time.step_s, one.time.step_s);
	timeline_free(&t);
	program_destroy(p);
}

UNIT_MAIN("predict", {"one rank is the sum of its ops", test_one_rank},
	{"DDP without overlap exposes all", test_ddp_exposes_without_overlap}, {"tokens, FLOP, MFU, HFU", test_rates},
	{"bounds and bottleneck", test_bottleneck}, {"memory", test_memory}, {"warnings", test_warnings},
	{"a single core has no overlap", test_single_core}, {"interval", test_interval},
	{"interval of an update on the host", test_interval_of_host_update}, {"a power limit", test_power_capped},
	{"a format that the device does not support", test_unsupported},
	{"a warning once, and not too many", test_warn_once_and_bounded}, {"words of the bounds", test_bound_names},
	{"a slow role is waited for", test_slow_role}, {"roles that do not meet", test_roles_that_do_not_meet})
