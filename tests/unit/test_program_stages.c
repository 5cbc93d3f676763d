/* Programs of pipeline stages: random plans keep the invariants; parameters, messages, volumes and memory in flight
 * agree with closed forms; the checker finds what breaks between stages. */
#include "base/array.h"
#include "harness.h"
#include "tiny_config.h"

#include <stdlib.h>
#include <string.h>

#include "step/layout.h"
#include "step/peers.h"
#include "step/program.h"
#include "step/schedule.h"
#include "step/stages.h"

static struct config plan(enum schedule schedule, int64_t pp, int64_t chunks, int64_t micro)
{
	struct config c = tiny_config();
	c.model.layers = pp * chunks;
	c.train.global_batch = 2 * micro;
	c.parallel.data = c.parallel.shard = 1;
	c.parallel.pipeline = pp;
	c.parallel.virtual_stages = chunks;
	c.parallel.schedule = schedule;
	c.ranks = pp;
	c.micro_batches = micro;
	return c;
}

static struct program *built(const struct config *c)
{
	struct error e = {0};
	struct program *p = NULL;
	CU_ASSERT_EQUAL_FATAL(program_build(c, &p, &e), ST_OK);
	if (program_check(p, &e)) {
		printf("\n  schedule %d, %lld stages x %lld, %lld micro-batches: %s\n", (int)c->parallel.schedule,
			(long long)c->parallel.pipeline, (long long)c->parallel.virtual_stages,
			(long long)c->micro_batches, e.text);
		CU_FAIL("program_check");
	}
	return p;
}

static int64_t below(int64_t n) { return random() % n; }

static struct config random_plan(void)
{
	static const enum schedule schedules[] = {SCHED_GPIPE, SCHED_1F1B, SCHED_INTERLEAVED, SCHED_ZERO_BUBBLE,
		SCHED_ZBV, SCHED_DUALPIPEV, SCHED_INTERLEAVED_ZB};
	static const enum strategy strategies[] = {STRAT_DDP, STRAT_ZERO1, STRAT_ZERO2, STRAT_FSDP, STRAT_HSDP};
	enum schedule s = schedules[below(7)];
	int64_t pp = 2 + below(4), chunks = schedule_traits[s].grouped ? 2 + below(2) : schedule_traits[s].chunks_least,
		micro = schedule_traits[s].grouped ? pp * (1 + below(3)) : 1 + below(9), dp = 1 + below(3),
		tp = 1 + below(2);
	struct config c = plan(s, pp, chunks, micro);
	c.model.layers += below(4);
	c.parallel.strategy = strategies[below(5)];
	if (c.parallel.strategy == STRAT_ZERO2 && schedule_splits_backward(s))
		c.parallel.strategy = STRAT_FSDP;
	c.parallel.reshard_after_forward = below(2);
	if (dp == 1 && below(2))
		c.parallel.strategy = STRAT_NONE;
	c.parallel.data = c.parallel.shard = dp;
	c.parallel.tensor = tp;
	c.parallel.sequence_parallel = tp > 1 && below(2);
	c.parallel.overlap = below(4) != 0;
	c.ranks = pp * dp * tp;
	c.train.global_batch *= dp;
	c.train.attention = below(2) ? ATT_NAIVE : ATT_FLASH;
	c.train.fused = below(2);
	c.train.optimizer_impl = c.train.fused ? IMPL_FUSED : IMPL_FOREACH;
	c.train.recompute = (enum recompute)below(REC_COUNT);
	if (c.train.recompute == REC_SELECTIVE && below(2) && !c.model.post_norm)
		c.train.recompute_modules = (below(2) ? REC_CORE_ATTN : 0) | (below(2) ? REC_LAYERNORM : 0) | REC_MLP;
	c.train.recompute_layers = c.train.recompute == REC_NONE ? 0 : 1 + below(c.model.layers);
	if (below(2))
		c.train.dtype = DT_BF16;
	if (below(3) == 0)
		c.train.reduce_dtype = DT_BF16;
	c.model.tied_embeddings = below(2);
	switch (below(4)) {
	case 0:
		c.model.mlp = MLP_SWIGLU;
		c.model.norm = NORM_RMSNORM;
		c.model.kv_heads = 4;
		c.model.bias = c.model.qkv_bias = c.model.proj_bias = false;
		c.model.position = POS_ROPE;
		c.model.max_positions = 0;
		break;
	case 1:
		c.model.post_norm = c.model.embedding_norm = c.model.pooler = true;
		c.model.final_norm = false;
		c.model.type_vocab = 2;
		break;
	case 2: c.model.parallel_residual = true; break;
	default: break;
	}
	return c;
}

static void test_random_plans(void)
{
	srandom(3);
	for (int i = 0; i < 400; i++) {
		struct config c = random_plan();
		struct program *p = built(&c), *again = built(&c);
		for (size_t r = 0; r < p->n_roles; r++) {
			struct layout l;
			struct error e = {0};
			CU_ASSERT_EQUAL_FATAL(layout_peak(&p->roles[r], &l, &e), ST_OK);
			layout_free(&l);
			CU_ASSERT_EQUAL(mesh_coord(&p->mesh, p->roles[r].representative, DIM_PP), (int64_t)r);
			CU_ASSERT_EQUAL(p->roles[r].ranks * c.parallel.pipeline, c.ranks);
			CU_ASSERT_EQUAL_FATAL(p->roles[r].ops.n,
				again->roles[r].ops.n); /* the same config makes the same order */
			for (size_t k = 0; k < p->roles[r].ops.n; k++) {
				const struct op *a = &p->roles[r].ops.at[k], *b = &again->roles[r].ops.at[k];
				CU_ASSERT(a->kind == b->kind && a->lane == b->lane && a->micro == b->micro &&
					  a->layer == b->layer && a->n_dep == b->n_dep &&
					  memcmp(a->d, b->d, sizeof a->d) == 0);
			}
		}
		program_destroy(p);
		program_destroy(again);
	}
}

/* ---- parameters ---- */

static void test_parameters(void)
{
	for (int k = 0; k < 4; k++) {
		const bool tied = k % 2, twice = tied && k < 2; /* zbv has both ends on one stage */
		struct config c = plan(k < 2 ? SCHED_INTERLEAVED : SCHED_ZBV, 3, 2, 3);
		c.model.tied_embeddings = tied;
		struct program *p = built(&c);
		uint64_t sum = 0, in_buckets = 0;
		for (size_t r = 0; r < p->n_roles; r++) {
			for (size_t i = 0; i < p->roles[r].params.n; i++)
				sum += p->roles[r].params.at[i].elements;
			for (size_t i = 0; i < p->roles[r].buckets.n; i++)
				in_buckets += p->roles[r].buckets.at[i].elements;
		}
		CU_ASSERT_EQUAL(sum, model_parameters(&c.model) + (twice ? 96 * 64 : 0));
		CU_ASSERT_EQUAL(in_buckets, sum);
		program_destroy(p);
	}
}

/* ---- messages ---- */

/* T x hidden elements a message; forward and backward over pipeline x virtual_stages - 1 boundaries for each
 * micro-batch (Narayanan et al. 2021, section 3.2). */
static void test_messages(void)
{
	static const struct {
		enum schedule schedule;
		int64_t chunks, borders;
	} cases[] = {{SCHED_1F1B, 1, 2}, {SCHED_INTERLEAVED, 2, 5}, {SCHED_INTERLEAVED, 3, 8},
		{SCHED_ZBV, 2, 4} /* none where the V turns */};
	for (size_t k = 0; k < COUNT(cases); k++)
		for (int64_t tp = 1; tp <= 2; tp++) {
			struct config c = plan(cases[k].schedule, 3, cases[k].chunks, 6);
			c.parallel.tensor = tp;
			c.parallel.sequence_parallel = tp == 2;
			c.ranks = 3 * tp;
			struct program *p = built(&c);
			double sent = 0, got = 0, again = 0;
			for (size_t r = 0; r < p->n_roles; r++)
				for (size_t i = 0; i < p->roles[r].ops.n; i++) {
					const struct op *op = &p->roles[r].ops.at[i];
					if (!op_is_message(op))
						continue;
					*(op->coll == COLL_SEND ? &sent : &got) += op_wire_B(op, 2);
					again += op->message.own != (int64_t)r || op->message.peer == (int64_t)r;
				}
			CU_ASSERT_DOUBLE_EQUAL(sent, (double)cases[k].borders * 2 * 6 * 64 * 64 * 4 / (double)tp, 1e-6);
			CU_ASSERT_EQUAL(got, sent);
			CU_ASSERT_EQUAL(again, 0);
			program_destroy(p);
		}
}

static void test_names(void)
{
	struct config c = plan(SCHED_1F1B, 2, 1, 2);
	struct program *p = built(&c);
	char name[OP_NAME_MAX] = "";
	for (size_t i = 0; i < p->roles[0].ops.n && !name[0]; i++)
		if (op_is_message(&p->roles[0].ops.at[i]))
			op_name(&p->roles[0].ops.at[i], name);
	CU_ASSERT_STRING_EQUAL(name, "L1 activations forward send mb0 to stage 1 [4096]");
	program_destroy(p);
}

/* ---- memory ---- */

static uint64_t activations_B(const struct role *r)
{
	struct layout l;
	struct error e = {0};
	CU_ASSERT_EQUAL_FATAL(layout_peak(r, &l, &e), ST_OK);
	uint64_t bytes = l.peak_component_B[COMP_ACTIVATIONS];
	layout_free(&l);
	return bytes;
}

/* Finds the memory of one more micro-batch in flight, from plans that differ in nothing else. Under gpipe all
 * micro-batches are in flight. */
static void test_in_flight(void)
{
	enum { P = 4, M = 8 };
	struct config c = plan(SCHED_GPIPE, P, 1, M);
	c.model.layers = 3 * P;
	c.model.tied_embeddings = false;
	c.model.vocab = 8; /* logits are nothing beside the blocks */
	struct program *eight = built(&c);
	c.micro_batches = M - 1;
	c.train.global_batch = 2 * (M - 1);
	struct program *seven = built(&c);
	c.micro_batches = M;
	c.train.global_batch = 2 * M;
	for (int s = SCHED_1F1B; s <= SCHED_ZERO_BUBBLE; s += SCHED_ZERO_BUBBLE - SCHED_1F1B) {
		c.parallel.schedule = (enum schedule)s;
		struct program *p = built(&c);
		for (int i = 0; i < P; i++) {
			double all = (double)activations_B(&eight->roles[i]),
			       each = all - (double)activations_B(&seven->roles[i]),
			       fewer = (all - (double)activations_B(&p->roles[i])) / each;
			double held = s == SCHED_1F1B ? P - i : P;
			/* a message that came early, sends on their way, and of zero_bubble what W does not need: less
			 * than one micro-batch together */
			if (s == SCHED_1F1B)
				CU_ASSERT_DOUBLE_EQUAL(M - fewer, held, 0.35);
			CU_ASSERT(M - fewer < P + 1);
		}
		program_destroy(p);
	}
	program_destroy(eight);
	program_destroy(seven);
}

/* However many micro-batches pass, 1f1b's memory stays. */
static void test_steady_memory(void)
{
	for (int s = SCHED_1F1B; s < SCHED_COUNT; s++) {
		struct config few = plan((enum schedule)s, 4, schedule_traits[s].chunks_least, 16), many = few;
		many.micro_batches = 32;
		many.train.global_batch = 64;
		struct program *p = built(&few), *q = built(&many);
		for (size_t r = 0; r < p->n_roles; r++)
			CU_ASSERT_EQUAL(activations_B(&p->roles[r]), activations_B(&q->roles[r]));
		program_destroy(p);
		program_destroy(q);
	}
}

/* Autocast's copies of the weights are made once a step. */
static void test_casts_once(void)
{
	struct config c = plan(SCHED_1F1B, 2, 1, 4);
	c.train.dtype = DT_BF16;
	struct program *p = built(&c);
	for (size_t r = 0; r < 2; r++) {
		size_t casts = 0;
		for (size_t i = 0; i < p->roles[r].ops.n; i++)
			casts += p->roles[r].ops.at[i].kind == OP_CAST;
		CU_ASSERT(casts > 0 && casts <= p->roles[r].params.n);
	}
	program_destroy(p);
}

/* Reductions begin with the last micro-batch's backward; the tied table has a bucket of its own at either end. */
static void test_reductions(void)
{
	struct config c = plan(SCHED_1F1B, 2, 1, 4);
	c.parallel.data = c.parallel.shard = 2;
	c.train.global_batch *= 2;
	c.ranks = 4;
	for (int s = STRAT_DDP; s <= STRAT_ZERO1; s++) {
		c.parallel.strategy = (enum strategy)s;
		struct program *p = built(&c);
		int64_t ends[2] = {0, 0};
		for (size_t r = 0; r < 2; r++)
			for (size_t i = 0; i < p->roles[r].ops.n; i++) {
				const struct op *op = &p->roles[r].ops.at[i];
				if (op->kind == OP_COLLECTIVE && op->group == DIM_DP && op->phase == PHASE_BACKWARD)
					CU_ASSERT_EQUAL(op->micro, 3);
				if (op->flags & OP_ENDS) {
					CU_ASSERT_EQUAL(op_group_size(&p->mesh, op), 2);
					ends[r] = op->collective.elements;
					CU_ASSERT_EQUAL(p->roles[r].buckets.at[op->bucket].elements, 96 * 64);
				}
			}
		CU_ASSERT_EQUAL(ends[0], s == STRAT_ZERO1 ? 96 * 32 : 96 * 64);
		CU_ASSERT_EQUAL(ends[1], ends[0]);
		program_destroy(p);
	}
}

/* (n-1)/n of a bucket crosses the wire: with fsdp a block's for each pass that gathers it, forward and backward of
 * every micro-batch, or once; what is outside the blocks once. Gradients cross once with fsdp, and with each
 * micro-batch of zero2. */
static void test_sharded_stages(void)
{
	for (int k = 0; k < 6; k++) {
		struct config c = plan(k % 2 ? SCHED_INTERLEAVED : SCHED_1F1B, 2, k % 2 ? 2 : 1, 4);
		bool fsdp = k < 4;
		c.parallel.data = c.parallel.shard = 4;
		c.train.global_batch *= 4;
		c.ranks = 8;
		c.parallel.strategy = fsdp ? STRAT_FSDP : STRAT_ZERO2;
		c.parallel.reshard_after_forward = k < 2;
		struct program *p = built(&c);
		for (size_t r = 0; r < p->n_roles; r++) {
			const struct role *role = &p->roles[r];
			double blocks = 0, rest = 0, wire_B = 0;
			for (size_t i = 0; i < role->params.n; i++)
				*(role->params.at[i].param.layer < 0 ? &rest
								     : &blocks) += (double)role->params.at[i].elements;
			for (size_t i = 0; i < role->ops.n; i++)
				if (role->ops.at[i].kind == OP_COLLECTIVE && role->ops.at[i].group == DIM_DP)
					wire_B += op_wire_B(&role->ops.at[i], 4);
			double gathers = fsdp && k < 2 ? 8 * blocks + rest : blocks + rest;
			CU_ASSERT_DOUBLE_EQUAL(wire_B / (0.75 * 4 * (gathers + (fsdp ? 1 : 4) * (blocks + rest))), 1,
				1e-3); /* but for what pads buckets */
			if (fsdp)
				CU_ASSERT_EQUAL(role->buckets.n,
					(size_t)c.model.layers / 2 +
						2); /* the tied table by itself; on the first stage beside the
				                       positions, on the last beside the final norm */
		}
		program_destroy(p);
	}
}

/* ---- the checker ---- */

static struct op *first_of(struct role *r, enum collective coll)
{
	for (size_t i = 0; i < r->ops.n; i++)
		if (r->ops.at[i].kind == OP_COLLECTIVE && r->ops.at[i].coll == coll)
			return &r->ops.at[i];
	return NULL;
}

static void broken(struct program *p, const char *text)
{
	struct error e = {0};
	CU_ASSERT_EQUAL(program_check(p, &e), ST_RUN);
	if (!strstr(e.text, text)) {
		printf("\n  %s\n", e.text);
		CU_FAIL("another message");
	}
}

static void test_check_catches(void)
{
	struct config c = plan(SCHED_1F1B, 3, 1, 4);
	struct program *p = built(&c);
	struct op *send = first_of(&p->roles[0], COLL_SEND), kept = *send;
	send->micro = 2;
	broken(p, "op ");
	*send = kept;
	send->message.peer = 2;
	broken(p, "is not what op");
	*send = kept;
	struct op *recv = first_of(&p->roles[1], COLL_RECV), was = *recv;
	recv->lane = LANE_RECV_NEXT;
	CU_ASSERT_EQUAL(program_check(p, &(struct error){0}), ST_RUN);
	*recv = was;
	struct op *ends = first_of(&p->roles[2], COLL_ALL_REDUCE), sum = *ends;
	CU_ASSERT(ends->flags & OP_ENDS);
	ends->flags = 0;
	broken(p, "sums the tied table's gradient 0 times");
	*ends = sum;
	struct param param = p->roles[1].params.at[0].param;
	p->roles[1].params.at[0].param.layer = 0;
	broken(p, "belongs to 2 stages");
	p->roles[1].params.at[0].param = param;
	CU_ASSERT_EQUAL(program_check(p, &(struct error){0}), ST_OK);
	program_destroy(p);
}

/* ---- who meets whom ---- */

/* Whom I meet meets me, in the same message or sum; the rank is the one that the op names. */
static void check_peers(const struct program *p, size_t role, const uint32_t *own, uint32_t *const *all)
{
	const struct role *r = &p->roles[role];
	for (size_t i = 0; i < r->ops.n; i++) {
		const struct op *op = &r->ops.at[i];
		size_t other = op_is_message(op) ? (size_t)op->message.peer : p->n_roles - 1 - role;
		if (!op_is_message(op) && !(op->flags & OP_ENDS)) {
			CU_ASSERT_EQUAL(own[i], i);
			continue;
		}
		const struct op *met = &p->roles[other].ops.at[own[i]];
		CU_ASSERT_EQUAL(all[other][own[i]], i);
		CU_ASSERT(met->micro == op->micro && met->layer == op->layer &&
			  met->message.elements == op->message.elements && met->what == op->what);
		CU_ASSERT_EQUAL(met->lane, peer_lane((enum lane)op->lane));
		CU_ASSERT_EQUAL(role_of_rank(p, peer_rank(&p->mesh, r->representative, op)), other);
	}
}

static void test_peers(void)
{
	struct error e = {0};
	for (int k = 0; k < 6; k++) {
		struct config c = plan(k == 5   ? SCHED_DUALPIPEV
				       : k == 4 ? SCHED_ZBV
				       : k == 3 ? SCHED_INTERLEAVED
						: SCHED_1F1B,
			2 + k, k >= 3 ? 2 : 1, 2 * (2 + k));
		struct program *p = built(&c);
		uint32_t *peer[8] = {0};
		for (size_t r = 0; r < p->n_roles; r++)
			CU_ASSERT_EQUAL_FATAL(peer_ops(p, r, &peer[r], &e), ST_OK);
		for (size_t r = 0; r < p->n_roles; r++)
			check_peers(p, r, peer[r], peer);
		for (size_t r = 0; r < p->n_roles; r++)
			free(peer[r]);
		program_destroy(p);
	}
}

static void test_meets_nobody(void)
{
	struct config c = plan(SCHED_1F1B, 2, 1, 2);
	struct program *p = built(&c);
	struct error e = {0};
	uint32_t *peer;
	first_of(&p->roles[1], COLL_RECV)->lane = LANE_RECV_NEXT;
	CU_ASSERT_EQUAL(peer_ops(p, 0, &peer, &e), ST_RUN);
	CU_ASSERT_PTR_NULL(peer);
	program_destroy(p);
}

UNIT_MAIN("program_stages", {"random plans", test_random_plans}, {"parameters", test_parameters},
	{"messages", test_messages}, {"names of messages", test_names}, {"activations in flight", test_in_flight},
	{"memory in the steady state", test_steady_memory}, {"casts once a step", test_casts_once},
	{"reductions", test_reductions}, {"sharded stages", test_sharded_stages}, {"check catches", test_check_catches},
	{"peers", test_peers}, {"meets nobody", test_meets_nobody})
