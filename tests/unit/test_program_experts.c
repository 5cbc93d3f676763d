/* Experts in the step program: the ranks that share them and those that sum them, what they multiply and send, where
 * their parameters lie; closed forms worked out here. */
#include <string.h>

#include "base/array.h"
#include "step/layout.h"
#include "step/program.h"
#include "tests/unit/experts_case.h"
#include "tests/unit/harness.h"

#define F 48

/* ---- groups ---- */

/* Neighbours share the experts; those at the same place in their group hold the same ones. */
static void test_groups(void)
{
	struct program *p =
		program_of("parallel.tensor=2 parallel.sequence_parallel=true parallel.pipeline=2 parallel.expert=4",
			16);
	const struct mesh *m = &p->mesh;
	CU_ASSERT_EQUAL(m->ranks, 16);
	CU_ASSERT_EQUAL(m->experts, DIM_EDP);
	CU_ASSERT_EQUAL(m->size[DIM_EP] * m->size[DIM_EDP], 8);
	for (int64_t rank = 0; rank < 16; rank++) {
		CU_ASSERT_EQUAL(mesh_coord(m, rank, DIM_EP), rank % 4);
		CU_ASSERT_EQUAL(mesh_coord(m, rank, DIM_EDP), rank / 4 % 2);
		for (int64_t i = 0; i < 4; i++)
			CU_ASSERT_EQUAL(mesh_coord(m, mesh_member(m, rank, DIM_EP, i), DIM_PP),
				mesh_coord(m, rank, DIM_PP));
	}
	program_destroy(p);
	p = program_of("parallel.strategy=hsdp parallel.shard=4 parallel.tensor=2 parallel.sequence_parallel=true "
		       "parallel.expert=4",
		16);
	CU_ASSERT_EQUAL(p->mesh.size[DIM_EDP], 2); /* of the 8 ranks of a shard group */
	CU_ASSERT_EQUAL(p->mesh.size[DIM_REPLICA], 2);
	for (int64_t rank = 0; rank < 16; rank++) {
		CU_ASSERT_EQUAL(mesh_coord(&p->mesh, rank, DIM_EDP), rank / 4 % 2);
		CU_ASSERT_EQUAL(mesh_coord(&p->mesh, rank, DIM_REPLICA), rank / 8);
	}
	program_destroy(p);
	p = program_of("parallel.expert_tensor=2 parallel.expert=4 train.global_batch=32", 16);
	for (int64_t rank = 0; rank < 16; rank++) {
		CU_ASSERT_EQUAL(mesh_coord(&p->mesh, rank, DIM_ETP), rank % 2);
		CU_ASSERT_EQUAL(mesh_coord(&p->mesh, rank, DIM_EP), rank / 2 % 4);
		CU_ASSERT_EQUAL(mesh_coord(&p->mesh, rank, DIM_EDP), rank / 8);
	}
	program_destroy(p);
	p = program_of("parallel.expert=1", 8);
	CU_ASSERT_EQUAL(p->mesh.experts, DIM_DP);
	program_destroy(p);
}

/* ---- work ---- */

struct sums {
	double flop, sent_B, gathered_B, updated;
	int64_t exchanges, gathers, grouped, swaps;
	bool places_fit;
};

static struct sums sums_of(const struct program *p)
{
	struct sums s = {.places_fit = true};
	for (size_t r = 0; r < p->n_roles; r++)
		for (size_t i = 0; i < p->roles[r].ops.n; i++) {
			const struct op *op = &p->roles[r].ops.at[i];
			bool exchange = op->kind == OP_COLLECTIVE && op->coll == COLL_ALLTOALL;
			s.flop += op->kind == OP_GROUPED_GEMM ? op_flop(op) : 0;
			s.grouped += op->kind == OP_GROUPED_GEMM;
			s.swaps += op->kind == OP_SWAP;
			s.exchanges += exchange;
			if (op->kind == OP_COLLECTIVE && op->group == DIM_ETP) {
				s.gathers++;
				s.gathered_B += op_wire_B(op, p->mesh.size[DIM_ETP]);
			}
			s.sent_B += exchange ? op_wire_B(op, p->mesh.size[op->group]) : 0;
			s.updated += op->kind == OP_OPTIMIZER ? (double)op->update.elements : 0;
			if (exchange)
				s.places_fit = s.places_fit && op->group == DIM_EP && op->lane == LANE_MODEL_COMM;
		}
	return s;
}

/* Of a rank: R rows, k experts each, three products of h f (gate, up, down), twice again backward; four exchanges of
 * all slots but its own. Ranks that cut an expert multiply each other's rows with their parts, and gather and scatter
 * those rows as often. */
static void test_work(void)
{
	static const struct {
		const char *sets;
		int64_t ranks, experts, cut;
		double rows, factor;
	} cases[] = {
		{"", 1, 1, 1, 1024, 1},
		{"parallel.expert=2", 2, 2, 1, 512, 1},
		{"parallel.expert=8", 8, 8, 1, 128, 1},
		{"parallel.expert=4", 8, 4, 1, 128, 1},
		{"model.capacity_factor=1.5 parallel.expert=2", 2, 2, 1, 512, 1.5},
		/* one token, 2 of 8 ranks: each of these has 4 times its share */
		{"data.distinct_tokens=1 parallel.expert=8", 8, 8, 1, 128, 4},
		{"parallel.tensor=2 parallel.sequence_parallel=true parallel.expert=4", 4, 4, 1, 256, 1},
		{"parallel.context=2 parallel.expert=4", 4, 4, 1, 256, 1},
		{"parallel.strategy=fsdp parallel.bucket_mb=25", 4, 1, 1, 256, 1},
		{"parallel.expert_tensor=4", 8, 1, 4, 128, 1},
		{"parallel.expert=2 parallel.expert_tensor=2", 8, 2, 2, 128, 1},
		{"parallel.tensor=2 parallel.sequence_parallel=true parallel.expert=4 parallel.expert_tensor=2", 8, 4,
			2, 128, 1},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct program *p = program_of(cases[i].sets, cases[i].ranks);
		struct sums s = sums_of(p);
		double n = (double)cases[i].experts, t = (double)cases[i].cut,
		       slots = cases[i].rows * K * cases[i].factor, micro = (double)p->config.micro_batches;
		CU_ASSERT_DOUBLE_EQUAL(s.flop, L * slots * 3 * 3 * 2 * H * F, 1);
		CU_ASSERT_EQUAL(s.grouped, L * 6 * p->config.micro_batches);
		CU_ASSERT_EQUAL(s.exchanges, n > 1 ? L * 4 * p->config.micro_batches : 0);
		CU_ASSERT_EQUAL(s.swaps, n * t > 1 && n < E ? (int64_t)(L * 4 * micro) : 0);
		CU_ASSERT_DOUBLE_EQUAL(s.sent_B, L * 4 * slots * H * 4 * (n - 1) / n, 1);
		CU_ASSERT_EQUAL(s.gathers, t > 1 ? L * 4 * p->config.micro_batches : 0);
		CU_ASSERT_DOUBLE_EQUAL(s.gathered_B, L * 4 * slots * H * 4 * (t - 1), 1);
		CU_ASSERT(s.places_fit);
		program_destroy(p);
	}
}

/* What recomputation by module adds in each of L layers: a layer of experts runs both grouped products again and
 * exchanges tokens once or twice more, its activation function alone neither; attention's own op. */
static void test_recomputed(void)
{
	static const struct {
		const char *sets;
		int64_t gemms, grouped, exchanges, attention, activations;
	} cases[] = {
		{"train.recompute_modules=[moe]", 1, 1, 2, 0, 1},
		{"train.recompute_modules=[moe_act]", 0, 0, 0, 0, 1},
		{"train.recompute_modules=[moe_act,shared_experts] model.shared_experts=1", 1, 0, 0, 0, 2},
		{"train.recompute_modules=[core_attn]", 0, 0, 0, 1, 0},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		char sets[512];
		snprintf(sets, sizeof sets, "train.recompute=selective parallel.expert=2 %s", cases[i].sets);
		struct program *p = program_of(sets, 2);
		int64_t gemms = 0, grouped = 0, exchanges = 0, attention = 0, activations = 0;
		for (size_t k = 0; k < p->roles[0].ops.n; k++) {
			const struct op *op = &p->roles[0].ops.at[k];
			const int again = op->flags & OP_RECOMPUTED ? 1 : 0;
			gemms += again && op->kind == OP_GEMM;
			grouped += again && op->kind == OP_GROUPED_GEMM;
			exchanges += again && op->kind == OP_COLLECTIVE && op->coll == COLL_ALLTOALL;
			attention += again && op->kind == OP_ATTENTION;
			activations += again && op->kind == OP_ACT;
		}
		const int64_t n = L * p->config.micro_batches;
		CU_ASSERT_EQUAL(gemms, n * cases[i].gemms);
		CU_ASSERT_EQUAL(grouped, n * 2 * cases[i].grouped);
		CU_ASSERT_EQUAL(exchanges, n * cases[i].exchanges);
		CU_ASSERT_EQUAL(attention, n * cases[i].attention);
		CU_ASSERT_EQUAL(activations, n * cases[i].activations);
		program_destroy(p);
	}
}

/* ---- parameters ---- */

static double all_ranks(const struct program *p)
{
	double sum = 0;
	for (size_t r = 0; r < p->n_roles; r++)
		for (size_t i = 0; i < p->roles[r].params.n; i++) {
			const struct role_param *rp = &p->roles[r].params.at[i];
			double copies = (double)(p->mesh.size[p->roles[r].buckets.at[rp->bucket].along] *
						 p->mesh.size[DIM_REPLICA]); /* ranks that hold the same */
			if (rp->param.split == TP_REPLICATED)
				copies *= (double)p->mesh.size[DIM_TP];
			sum += (double)rp->elements * (double)p->roles[r].ranks / copies;
		}
	return sum;
}

/* Each expert is somewhere, experts stand in buckets of their own where they are summed over other ranks than the rest,
 * and the optimizers of all ranks update each parameter once under zero1. */
static void test_parameters(void)
{
	static const struct {
		const char *sets;
		int64_t ranks;
	} cases[] = {
		{"parallel.expert=2", 4},
		{"parallel.expert=8", 8},
		{"parallel.tensor=2 parallel.sequence_parallel=true parallel.expert=2", 8},
		{"parallel.expert=2 parallel.pipeline=3", 6},
		{"model.shared_experts=2 parallel.tensor=2 parallel.sequence_parallel=true", 4},
		{"model.moe_layer_freq=2 parallel.expert=4", 4},
		{"parallel.expert_tensor=2", 4},
		{"parallel.expert=2 parallel.expert_tensor=4", 8},
		{"parallel.tensor=2 parallel.sequence_parallel=true parallel.expert_tensor=4", 8},
	};
	for (size_t i = 0; i < COUNT(cases); i++)
		for (int z = 0; z < 3; z++) {
			char sets[256];
			snprintf(sets, sizeof sets, "%s parallel.bucket_mb=0.02 parallel.strategy=%s", cases[i].sets,
				z == 0                                        ? "ddp"
				: z == 1 || strstr(cases[i].sets, "pipeline") ? "zero1"
									      : "zero2");
			struct program *p = program_of(sets, cases[i].ranks);
			double whole = (double)model_parameters(&p->config.model), updated = 0;
			CU_ASSERT_DOUBLE_EQUAL(all_ranks(p), whole, 0.5);
			for (size_t r = 0; r < p->n_roles; r++)
				for (size_t k = 0; k < p->roles[r].params.n; k++) {
					const struct role_param *rp = &p->roles[r].params.at[k];
					CU_ASSERT_EQUAL(p->roles[r].buckets.at[rp->bucket].along == DIM_EDP,
						param_is_expert(rp->param.kind));
				}
			updated = sums_of(p).updated * (double)p->roles[0].ranks;
			if (z > 0 && p->config.parallel.tensor == 1)
				CU_ASSERT(updated >= whole && updated < whole * 1.01); /* and padding */
			program_destroy(p);
		}
}

/* hsdp: parts of a shard group add up to the model, experts' too, and each part of a gradient is summed over the
 * replicas with each micro-batch, also where a shard group holds each expert once. */
static void test_hybrid(void)
{
	static const struct {
		const char *sets;
		int64_t ranks, replicas;
	} cases[] = {
		{"parallel.expert=2 parallel.shard=4", 8, 2},
		{"parallel.expert=4 parallel.shard=4 train.global_batch=32", 16, 4},
		{"parallel.expert=4 parallel.shard=2 parallel.tensor=2 parallel.sequence_parallel=true", 8, 2},
		{"parallel.expert=2 parallel.shard=2 parallel.context=2 parallel.pipeline=3 train.global_batch=48", 24,
			2},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		char sets[256];
		snprintf(sets, sizeof sets, "parallel.strategy=hsdp %s", cases[i].sets);
		struct program *p = program_of(sets, cases[i].ranks);
		const double whole = (double)model_parameters(&p->config.model);
		double experts = 0, summed = 0;
		CU_ASSERT_DOUBLE_EQUAL(all_ranks(p), whole, 0.5);
		CU_ASSERT_EQUAL(p->mesh.size[DIM_REPLICA], cases[i].replicas);
		for (size_t r = 0; r < p->n_roles; r++)
			for (size_t k = 0; k < p->roles[r].ops.n; k++) {
				const struct op *op = &p->roles[r].ops.at[k];
				if (op->kind != OP_COLLECTIVE || op->group != DIM_REPLICA)
					continue;
				CU_ASSERT_EQUAL(op->coll, COLL_ALL_REDUCE);
				if (p->roles[r].buckets.at[op->bucket].along == DIM_EDP)
					summed += (double)op->collective.elements;
			}
		experts = (double)L * E * 3 * H * F *
		          (double)(p->config.parallel.pipeline > 1 ? 1 : p->config.micro_batches);
		summed *= (double)(p->mesh.size[DIM_EP] * p->mesh.size[DIM_EDP]);
		CU_ASSERT_DOUBLE_EQUAL(summed, experts, 0.5);
		program_destroy(p);
	}
}

/* Memory of a rank: a group of n holds an n-th of the experts, and so does one that cuts them. */
static void test_memory(void)
{
	double weights[4];
	int i = 0;
	for (int64_t n = 1; n <= 8; n *= 2, i++) {
		char set[64];
		snprintf(set, sizeof set, "parallel.%s=%lld", n == 4 ? "expert_tensor" : "expert", (long long)n);
		struct program *p = program_of(set, 8);
		struct layout layout;
		struct error e = {0};
		CU_ASSERT_EQUAL_FATAL(layout_peak(&p->roles[0], &layout, &e), ST_OK);
		weights[i] = (double)layout.peak_component_B[COMP_WEIGHTS];
		layout_free(&layout);
		program_destroy(p);
	}
	double experts = 4.0 * L * E * 3 * H * F;
	CU_ASSERT_DOUBLE_EQUAL(weights[0] - weights[1], experts / 2, 2048); /* but for the alignment of buffers */
	CU_ASSERT_DOUBLE_EQUAL(weights[0] - weights[2], experts * 3 / 4, 2048);
	CU_ASSERT_DOUBLE_EQUAL(weights[0] - weights[3], experts * 7 / 8, 2048);
}

/* FSDP over 8 ranks, 2 of which share the experts: each 1/8 of them, or all of its half. Weights, gradients and moments
 * (4 + 4 + 8 bytes) are as large as that. */
static void test_whole_experts(void)
{
	double kept[2];
	for (int whole = 0; whole < 2; whole++) {
		struct program *p = program_of(whole ? "parallel.strategy=fsdp parallel.expert=2 "
						       "parallel.shard_experts=false"
						     : "parallel.strategy=fsdp parallel.expert=2",
			8);
		int64_t gathered = 0, summed = 0;
		kept[whole] = 0;
		for (size_t i = 0; i < p->roles[0].buffers.n; i++)
			if (p->roles[0].buffers.at[i].persistent && p->roles[0].buffers.at[i].component != COMP_HOST)
				kept[whole] += (double)p->roles[0].buffers.at[i].bytes;
		for (size_t i = 0; i < p->roles[0].ops.n; i++) {
			const struct op *op = &p->roles[0].ops.at[i];
			if (op->kind == OP_COLLECTIVE && op->group == DIM_EDP) {
				gathered += op->coll == COLL_ALL_GATHER;
				summed += op->coll == COLL_ALL_REDUCE;
			}
		}
		CU_ASSERT_EQUAL(gathered > 0, !whole);
		CU_ASSERT_EQUAL(summed > 0, whole);
		program_destroy(p);
	}
	const double experts = (double)L * E * 3 * H * F;
	CU_ASSERT_DOUBLE_EQUAL(kept[1] - kept[0], 16 * experts * (1.0 / 2 - 1.0 / 8), 4096); /* padding */
}

/* Exchanges of a stage, and those between which and the first op that waits for them stands compute of other
 * activations. */
static void count_exchanges(const struct role *r, int *all, int *hidden)
{
	*all = *hidden = 0;
	for (uint32_t i = 0; i < r->ops.n; i++) {
		const struct op *x = &r->ops.at[i];
		if (x->kind != OP_COLLECTIVE || x->group != DIM_EP)
			continue;
		bool waits = false, other = false;
		for (uint32_t k = i + 1; k < r->ops.n && !waits; k++) {
			const struct op *op = &r->ops.at[k];
			for (uint32_t d = 0; d < op->n_dep; d++)
				waits = waits || r->deps.at[op->dep0 + d] == i;
			other = other || (!waits && op->lane == LANE_COMPUTE &&
						 (op->micro != x->micro || op->phase != x->phase));
		}
		++*all;
		*hidden += other;
	}
}

/* Two of four exchanges of a layer are a forward action's. Per stage 16 actions of each kind; the first 1 + 2 (p - 1 -
 * stage) + p (v - 1) forward ones and as many backward ones at the end have none beside them. The last part of a pair
 * may have nobody left to take turns with. */
static void test_overlap(void)
{
	static const char plan[] = "model.layers=4 parallel.pipeline=2 parallel.expert=2 parallel.schedule=interleaved "
				   "parallel.virtual_stages=2 train.global_batch=64 parallel.expert_overlap=%s";
	for (int on = 0; on < 2; on++) {
		char text[256];
		snprintf(text, sizeof text, plan, on ? "true" : "false");
		struct program *p = program_of(text, 8);
		for (size_t stage = 0; stage < p->n_roles; stage++) {
			int all, hidden;
			count_exchanges(&p->roles[stage], &all, &hidden);
			const int micro = (int)p->config.micro_batches, actions = 2 * micro,
				  pairs = actions - (1 + 2 * (1 - (int)stage) + 2);
			CU_ASSERT_EQUAL(all, 4 * actions);
			CU_ASSERT(on ? hidden >= 3 * pairs && hidden <= 4 * pairs : hidden == 0);
		}
		program_destroy(p);
	}
}

/* With one stage each forward pass but the first runs beside the backward pass of the micro-batch before. */
static void test_overlap_in_one_stage(void)
{
	static const int batches[] = {16, 32, 64}; /* 1, 2 and 4 micro-batches */
	for (int i = 0; i < 2 * (int)COUNT(batches); i++) {
		const bool on = i % 2;
		char text[128];
		snprintf(text, sizeof text, "parallel.expert=2 train.global_batch=%d parallel.expert_overlap=%s",
			batches[i / 2], on ? "true" : "false");
		struct program *p = program_of(text, 8);
		int all, hidden;
		count_exchanges(&p->roles[0], &all, &hidden);
		const int micro = batches[i / 2] / 16, pairs = L * (micro - 1);
		CU_ASSERT_EQUAL(p->config.micro_batches, micro);
		CU_ASSERT_EQUAL(all, 4 * L * micro);
		CU_ASSERT(on ? hidden >= 3 * pairs && hidden <= 4 * pairs : hidden == 0);
		program_destroy(p);
	}
}

static int64_t gathers_of(const char *more)
{
	char text[256];
	snprintf(text, sizeof text, "train.stack=megatron-core train.dtype=bf16 parallel.strategy=zero1 %s", more);
	struct program *p = program_of(text, 4);
	const struct role *r = &p->roles[0];
	int64_t gathers = 0;
	for (size_t i = 0; i < r->ops.n; i++)
		gathers += r->ops.at[i].kind == OP_COLLECTIVE && r->ops.at[i].coll == COLL_ALL_GATHER;
	program_destroy(p);
	return gathers;
}

/* Megatron's two optimizers, of experts that ranks share and of all else, each gather all weights, unless those are
 * gathered beside the next forward pass. With one rank of experts there is one optimizer. */
static void test_gathers(void)
{
	const int64_t alone = gathers_of("parallel.expert=1"), shared = gathers_of("parallel.expert=2");
	CU_ASSERT(alone > 0 && shared > alone);
	CU_ASSERT_EQUAL(gathers_of("parallel.expert=1 parallel.gather_overlap=false"), alone);
	CU_ASSERT_EQUAL(gathers_of("parallel.expert=2 parallel.gather_overlap=false"), 2 * shared);
	CU_ASSERT_EQUAL(gathers_of("parallel.expert=2 parallel.gather_overlap=true"), shared);
}

UNIT_MAIN("program of experts", {"groups", test_groups}, {"work", test_work}, {"parameters", test_parameters},
	{"hsdp", test_hybrid}, {"memory", test_memory}, {"experts that FSDP leaves whole", test_whole_experts},
	{"recomputed", test_recomputed}, {"overlapped exchanges", test_overlap},
	{"overlapped exchanges in one stage", test_overlap_in_one_stage}, {"gathers", test_gathers})
