/* train.offload: plans keep the program's invariants; what crosses to the host and back, what stays on the device, and
 * when, agree with closed forms; what does not go together is refused; prices follow the host's figure. */
#include "base/array.h"
#include "tests/unit/constants.h"
#include "tests/unit/parse_with.h"
#include "harness.h"
#include "rates.h"

#include <string.h>

#include "sim/price/cost.h"
#include "step/layout.h"
#include "step/program.h"

static struct config config;

static bool resolved(const char *sets, int64_t ranks, struct error *e)
{
	static const char text[] = "model: {layers: 4, hidden: 64, heads: 4, vocab: 256, seq_len: 32}\n"
				   "train: {global_batch: 8, micro_batch: 1, dtype: bf16}\n";
	return parse_with(text, "offload.yaml", sets, &config, e) == ST_OK &&
	       config_resolve(&config, ranks, e) == ST_OK;
}

static struct program *built(const char *sets, int64_t ranks)
{
	struct error e = {0};
	struct program *p = NULL;
	if (!resolved(sets, ranks, &e) || program_build(&config, &p, &e) || program_check(p, &e)) {
		printf("\n  %s: %s\n", sets, e.text);
		CU_FAIL_FATAL("a program");
	}
	return p;
}

static void refused(const char *sets, const char *text)
{
	struct error e = {0};
	CU_ASSERT_FALSE(resolved(sets, 2, &e));
	if (!strstr(e.text, text)) {
		printf("\n  %s: %s\n", sets, e.text);
		CU_FAIL("another message");
	}
}

struct crossed {
	double out_B, in_B; /* the input apart */
};

static struct crossed crossed(const struct role *r)
{
	struct crossed x = {0, 0};
	for (size_t i = 0; i < r->ops.n; i++) {
		const struct op *op = &r->ops.at[i];
		if (op->kind == OP_COPY && strcmp(op->what, "input") != 0)
			*(op->flags & OP_INVERSE ? &x.out_B : &x.in_B) += (double)op->copy.bytes;
	}
	return x;
}

static uint64_t component_B(const struct role *r, enum component comp)
{
	struct layout l;
	struct error e = {0};
	CU_ASSERT_EQUAL_FATAL(layout_peak(r, &l, &e), ST_OK);
	uint64_t bytes = l.peak_component_B[comp];
	layout_free(&l);
	return bytes;
}

static double padded(const struct role *r)
{
	double sum = 0;
	for (size_t i = 0; i < r->buckets.n; i++)
		sum += (double)r->buckets.at[i].padded;
	return sum;
}

/* ---- the optimizer ---- */

/* A rank's part of the gradients goes out once a step and of the weights comes in once (arXiv:2101.06840, section 4.2:
 * 4 M bytes a model of M parameters in 2 bytes each way); with gradients that are cut by micro-batch it goes out and in
 * with each. */
static void test_states(void)
{
	static const struct {
		const char *sets;
		double parts, out, in;
	} cases[] = {
		{"parallel.strategy=ddp train.offload=optimizer", 1, 1, 1},
		{"parallel.strategy=zero1 train.offload=optimizer", 4, 1, 1},
		{"parallel.strategy=zero2 train.offload=optimizer", 4, 2,
			2}, /* two micro-batches: the first one's sum comes in */
		{"parallel.strategy=fsdp train.offload=optimizer", 4, 2, 2},
		{"parallel.strategy=zero1 train.reduce_dtype=bf16 train.offload=optimizer", 4, 1, 1},
		{"parallel.strategy=zero2 train.reduce_dtype=bf16 parallel.overlap=false train.offload=optimizer", 4, 2,
			2},
		{"parallel.strategy=fsdp train.offload=optimizer train.global_batch=4", 4, 1, 1},
		/* and weights: before each gather, forward and backward of each micro-batch; what is outside the blocks
	           (table, positions, final norm: 18,560 of 218,496) once; no copy back */
		{"parallel.strategy=fsdp train.offload=optimizer+params train.global_batch=4", 4, 1,
			2 - 18560 / 218496.0},
		{"parallel.strategy=hsdp parallel.shard=2 train.offload=optimizer+params train.global_batch=4", 2, 1,
			2 - 18560 / 218496.0},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct program *p = built(cases[i].sets, 4);
		const struct role *r = &p->roles[0];
		struct crossed x = crossed(r);
		double part_B = 4 * padded(r) / cases[i].parts;
		size_t on_host = 0;
		CU_ASSERT_DOUBLE_EQUAL(x.out_B, cases[i].out * part_B, 1);
		CU_ASSERT_DOUBLE_EQUAL(x.in_B / part_B, cases[i].in, 1e-3); /* but for padding */
		CU_ASSERT_EQUAL(component_B(r, COMP_OPTIMIZER), 0);
		for (size_t k = 0; k < r->ops.n; k++)
			on_host += r->ops.at[k].kind == OP_OPTIMIZER && r->ops.at[k].lane == LANE_HOST;
		CU_ASSERT_EQUAL(on_host, r->buckets.n);
		for (size_t k = 0; k < r->buffers.n; k++) /* whole gradients stay, parts of them go */
			CU_ASSERT(!r->buffers.at[k].persistent || r->buffers.at[k].component != COMP_GRADIENTS ||
				  strstr(cases[i].sets, "ddp") || strstr(cases[i].sets, "zero1"));
		CU_ASSERT_EQUAL(component_B(r, COMP_WEIGHTS) == 0, strstr(cases[i].sets, "params") != NULL);
		program_destroy(p);
	}
}

/* One rank brings in its weights as several do, and gathers nothing: the same bytes a weight as above. */
static void test_one_rank(void)
{
	struct program *p = built("parallel.strategy=fsdp train.offload=optimizer+params train.global_batch=1", 1);
	const struct role *r = &p->roles[0];
	const double weights_B = 4 * padded(r);
	struct crossed x = crossed(r);
	CU_ASSERT_DOUBLE_EQUAL(x.out_B, weights_B, 1);
	CU_ASSERT_DOUBLE_EQUAL(x.in_B / weights_B, 2 - 18560 / 218496.0, 1e-3);
	CU_ASSERT_EQUAL(component_B(r, COMP_WEIGHTS), 0);
	program_destroy(p);
	/* gradients leave as backward makes them: two of 12 blocks', beside two gathered blocks in 4 and 2
	 * bytes a weight */
	p = built("parallel.strategy=fsdp train.offload=optimizer+params train.global_batch=1 model.layers=12", 1);
	CU_ASSERT(component_B(&p->roles[0], COMP_BUFFERS) <= 5 * 4 * (uint64_t)p->roles[0].buckets.at[1].padded);
	program_destroy(p);
}

/* Moments in 8 bits lie on the host, too: a byte and a scale for each block of 256 in place of 4 bytes, but for tensors
 * of less than 4,096 elements. */
static void test_states_8(void)
{
	struct program *wide = built("train.offload=optimizer", 2),
		       *p = built("train.offload=optimizer train.optimizer_bits=8", 2);
	double elements = 0;
	for (size_t k = 0; k < p->roles[0].buckets.n; k++) {
		const struct bucket *b = &p->roles[0].buckets.at[k];
		elements += (double)(b->elements - (b->wide_to - b->wide_from));
	}
	const double saved_B = (double)(component_B(&wide->roles[0], COMP_HOST) - component_B(&p->roles[0], COMP_HOST));
	CU_ASSERT(elements > 0);
	CU_ASSERT_DOUBLE_EQUAL(saved_B / (2 * elements * (4 - 1 - 4.0 / 256)), 1, 0.01);
	CU_ASSERT_EQUAL(component_B(&p->roles[0], COMP_OPTIMIZER), 0);
	program_destroy(wide);
	program_destroy(p);
}

/* ---- activations ---- */

static void test_activations(void)
{
	struct program *whole = built("train.recompute=none", 1), *p = built("train.offload=activations", 1);
	struct crossed none = crossed(&whole->roles[0]), x = crossed(&p->roles[0]);
	/* Of three of four blocks, rows x hidden x 2 bytes each: the input, both norms' results, attention's, the sum
	 * after it, and 3, 4 and 4 times as wide queries, keys and values, the MLP before and behind its activation; in
	 * each of 8 micro-batches */
	double one_B = 32 * 64 * 2, block_B = (5 + 3 + 4 + 4) * one_B;
	CU_ASSERT_EQUAL(none.out_B + none.in_B, 0);
	CU_ASSERT_DOUBLE_EQUAL(x.out_B, 8 * 3 * block_B, 1);
	CU_ASSERT_DOUBLE_EQUAL(x.in_B, x.out_B, 0);
	program_destroy(p);
	program_destroy(whole);
	p = built("train.offload=activations train.recompute=full", 1);
	x = crossed(&p->roles[0]);
	CU_ASSERT_DOUBLE_EQUAL(x.out_B, 8 * 3 * one_B, 1); /* inputs alone */
	CU_ASSERT_DOUBLE_EQUAL(x.in_B, x.out_B, 0);
	program_destroy(p);
	/* however many blocks there are, three of them are the most that is on the device: one being computed, one on
	 * its way, the last. Statistics stay: two of each norm's rows, one a head and row, in fp32 */
	struct program *few = built("train.offload=activations model.layers=6", 1),
		       *many = built("train.offload=activations model.layers=24", 1);
	CU_ASSERT_EQUAL(component_B(&few->roles[0], COMP_ACTIVATIONS) + 18 * 4 * (2 * 2 * 32 + 4 * 32),
		component_B(&many->roles[0], COMP_ACTIVATIONS));
	program_destroy(few);
	program_destroy(many);
}

/* Two of six blocks, each with the time of three: only they cross. Four stay, and one comes back early. */
static void test_some_activations(void)
{
	struct program *p = built("train.offload=activations train.offload_layers=2 model.layers=6", 1),
		       *four = built("model.layers=4", 1), *five = built("model.layers=5", 1);
	const struct crossed x = crossed(&p->roles[0]);
	const double block_B = (5 + 3 + 4 + 4) * 32 * 64 * 2;
	CU_ASSERT_DOUBLE_EQUAL(x.out_B, 8 * 2 * block_B, 1);
	CU_ASSERT_DOUBLE_EQUAL(x.in_B, x.out_B, 0);
	const uint64_t statistics_B = 4 * (2 * 2 * 32 + 4 * 32), kept_B = component_B(&p->roles[0], COMP_ACTIVATIONS);
	CU_ASSERT_TRUE(kept_B >= component_B(&four->roles[0], COMP_ACTIVATIONS) + 2 * statistics_B);
	CU_ASSERT_TRUE(kept_B <= component_B(&five->roles[0], COMP_ACTIVATIONS) + statistics_B);
	program_destroy(five);
	program_destroy(four);
	program_destroy(p);
	p = built("train.offload=activations train.offload_layers=0", 1);
	CU_ASSERT_EQUAL(crossed(&p->roles[0]).out_B, 0);
	program_destroy(p);
}

/* ---- all kinds of plans ---- */

static void test_plans(void)
{
	static const char *const offloads[] = {"optimizer", "activations"}, *const strategies[] = {"ddp", "zero1",
										    "zero2", "fsdp"};
	static const char *const more[] = {"parallel.tensor=2 parallel.sequence_parallel=true",
		"train.attention=naive train.recompute=selective train.optimizer=lion",
		"model.post_norm=true model.embedding_norm=true model.final_norm=false",
		"model.parallel_residual=true train.fused=false",
		"train.recompute=full train.recompute_layers=2 parallel.context=2",
		"model.experts=4 model.shared_experts=1 parallel.expert=1",
		"model.mlp=swiglu train.param_dtype=bf16 train.master_weights=true", "data.load_time=1ms"};
	for (size_t o = 0; o < 2; o++)
		for (size_t s = 0; s < 4; s++)
			for (size_t m = 0; m < COUNT(more); m++) {
				char sets[512];
				snprintf(sets, sizeof sets, "train.offload=%s parallel.strategy=%s %s", offloads[o],
					strategies[s], more[m]);
				program_destroy(built(sets, 4));
			}
}

static void test_refused(void)
{
	refused("train.offload=activations parallel.pipeline=2", "not modelled yet with pipeline (accepted: none)");
	refused("train.offload=activations train.offload_layers=5", "5 are more than the 4 layers");
	refused("train.offload_layers=2", "not used unless offload is activations");
	refused("train.offload=optimizer train.optimizer=none", "not used without an optimizer");
	refused("train.offload=optimizer train.optimizer_bits=16",
		"16 is not modelled yet with an optimizer that is offloaded (accepted: 32, 8)");
	refused("train.offload=optimizer train.cuda_graph=true", "a graph holds no work of the host");
	refused("train.offload=optimizer+params parallel.strategy=zero2", "zero2 keeps whole weights on the device");
}

/* Half the ranks of a host have twice the host each; on cores the update is what it is without offloading. */
static void test_price(void)
{
	struct machine m = {.parameters = read_constants(),
		.nodes = 1,
		.devices_per_node = 4,
		.device = {.mem_Bps = 1e12, .mem_share = 1, .launch_s = 1e-6, .pcie_Bps = 50e9}};
	struct error e = {0};
	double rate[2];
	for (int i = 0; i < 2; i++) {
		struct program *p = built("train.offload=optimizer", i ? 2 : 4);
		struct op op = {.kind = OP_OPTIMIZER,
			.lane = LANE_HOST,
			.optimizer = OPT_ADAMW,
			.flags = OP_FUSED,
			.update = {1000000}};
		struct op_cost cost;
		CU_ASSERT_EQUAL_FATAL(cost_op(p, &op, RATES(&m), &cost, &e), ST_OK);
		CU_ASSERT_DOUBLE_EQUAL(cost.alone_s * cost_host_update_Bps(p, RATES(&m)), 28e6,
			1); /* gradient; weight and two moments twice: 4 bytes each */
		CU_ASSERT_TRUE(cost.holds);
		rate[i] = cost_host_update_Bps(p, RATES(&m));
		program_destroy(p);
	}
	CU_ASSERT_DOUBLE_EQUAL(rate[1], 2 * rate[0], 1);
}

UNIT_MAIN("program_offload", {"one rank", test_one_rank}, {"moments in 8 bits", test_states_8},
	{"optimizer, and weights", test_states}, {"activations", test_activations},
	{"activations of some blocks", test_some_activations}, {"plans", test_plans}, {"refused", test_refused},
	{"the host's update", test_price})
