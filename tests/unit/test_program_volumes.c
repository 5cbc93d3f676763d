/* What step programs send, and how: volumes, buckets and units agree with closed forms worked out here. */
#include "tiny_program.h"
#include "wire.h"

#include "base/array.h"

/* One micro-step, P parameters in fp32 on n ranks: DDP and ZeRO-1 and ZeRO-2 send 2 (n-1)/n P, FSDP 3 (n-1)/n P for its
 * blocks and 2 for the root, which stays gathered. */
static void test_volumes(void)
{
	for (int s = STRAT_DDP; s <= STRAT_FSDP; s++) {
		struct config c = tiny((enum strategy)s, 4, 1);
		c.micro_batches = 1;
		c.train.global_batch = 8;
		struct program *p = built(&c);
		double padded = 0, root = (double)p->roles[0].buckets.at[p->roles[0].buckets.n - 1].padded;
		for (size_t k = 0; k < p->roles[0].buckets.n; k++)
			padded += (double)p->roles[0].buckets.at[k].padded;
		double volumes = s == STRAT_FSDP ? 3.0 * (padded - root) + 2.0 * root : 2.0 * padded;
		CU_ASSERT_DOUBLE_EQUAL(wire_B(p, DIM_DP), volumes * 4.0 * 3.0 / 4.0, 1.0);
		program_destroy(p);
	}
	/* Tensor parallelism, b s h bytes x 4 all-reduces a layer, twice forward and twice backward (Shoeybi et al.
	 * 2019), and as much under sequence parallelism plus a gather again of both inputs */
	struct config c = tiny(STRAT_DDP, 1, 2);
	c.micro_batches = 1;
	c.train.global_batch = 2;
	double unit = 64.0 * 64 * 4 * 0.5; /* T h x 4 B x (n-1)/n */
	struct program *p = built(&c);
	double loss = 3.0 * 64 * 4; /* maxima and two sums a token, all-reduced: 2 (n-1)/n = 1 */
	CU_ASSERT_DOUBLE_EQUAL(wire_B(p, DIM_TP), (3 * 4 + 2) * 2 * unit + loss, 1.0);
	program_destroy(p);
	c.parallel.sequence_parallel = true;
	p = built(&c);
	double replicated = 0;
	for (size_t i = 0; i < p->roles[0].params.n; i++)
		if (p->roles[0].params.at[i].param.split == TP_REPLICATED)
			replicated += (double)p->roles[0].params.at[i].elements * 4;
	/* a layer: forward 2 gathers + 2 scatters, backward 2 + 2 and the 2 inputs and... the ends: embedding scatter
	 * and gather, head gather and scatter */
	CU_ASSERT_DOUBLE_EQUAL(wire_B(p, DIM_TP), (3 * (8 + 2) + 4) * unit + loss + replicated, 1.0);
	program_destroy(p);
	/* PyTorch's keeps the inputs. Where it recomputes, it gathers them and scatters attention's result again. */
	c.stack.dtensor = true;
	p = built(&c);
	CU_ASSERT_DOUBLE_EQUAL(wire_B(p, DIM_TP), (3 * 8 + 4) * unit + loss + replicated, 1.0);
	program_destroy(p);
	c.train.recompute = REC_FULL;
	c.train.recompute_layers = c.model.layers;
	p = built(&c);
	CU_ASSERT_DOUBLE_EQUAL(wire_B(p, DIM_TP), (3 * (8 + 3) + 4) * unit + loss + replicated, 1.0);
	program_destroy(p);
}

/* What a block of 64 x 64 queries, keys, values and output and an MLP of 64 x 256 and back sends more when units are
 * smaller than it. Of at least 16,384 parameters: attention as a whole (the rest of it), the product up, and that down,
 * inside which recomputation stops. Of at least 4,096: the same, each product of attention by itself. Of more than
 * 16,384: neither attention nor the MLP's products; the MLP is around the last product. */
static void test_small_units(void)
{
	static const struct {
		int64_t least;
		double again;
	} cases[] = {{0, 0}, {4096, 4 * 4096 + 16384}, {16384, 4 * 4096 + 16384}, {16385, 0}};
	struct config c = tiny(STRAT_FSDP, 4, 1);
	double plain_B = 0;
	c.micro_batches = 1;
	c.train.global_batch = 8;
	c.model.hidden = 64;
	c.model.heads = c.model.kv_heads = 4;
	c.model.head_dim = 16;
	c.model.ffn_hidden = 256;
	for (int recomputes = 0; recomputes < 2; recomputes++) {
		c.train.recompute = recomputes ? REC_FULL : REC_NONE;
		for (size_t i = 0; i < COUNT(cases); i++) {
			c.parallel.unit_params = cases[i].least;
			struct program *p = built(&c);
			plain_B = cases[i].least == 0 ? wire_B(p, DIM_DP) : plain_B;
			CU_ASSERT_DOUBLE_EQUAL(wire_B(p, DIM_DP) - plain_B, recomputes * 3 * cases[i].again * 4 * 3 / 4,
				1.0); /* 3 blocks, fp32, (n-1)/n */
			program_destroy(p);
		}
	}
}

/* PyTorch's rule on known sizes: last parameter first, a bucket closes when it reaches its cap, never splitting a
 * parameter. */
static void test_buckets(void)
{
	struct config c = tiny(STRAT_DDP, 2, 1);
	c.parallel.first_bucket_B = 300.0; /* final norm b (256 B) + final norm w (256 B) */
	c.parallel.bucket_B = 66000.0;     /* fc2 b (256) + fc2 w (65536) = 65792 < 66000: fc1 b (1024) closes it */
	struct program *p = built(&c);
	const struct role *r = &p->roles[0];
	CU_ASSERT_EQUAL(r->buckets.at[0].elements, 128);
	CU_ASSERT_EQUAL(r->buckets.at[1].elements, 64 + 64 * 256 + 256);
	CU_ASSERT_EQUAL(r->params.at[r->params.n - 1].bucket, 0);
	uint64_t all = 0;
	for (size_t k = 0; k < r->buckets.n; k++)
		all += r->buckets.at[k].elements;
	CU_ASSERT_EQUAL(all, model_parameters(&c.model));
	int32_t last = -1; /* launched in order, and only in the last micro-step */
	for (size_t i = 0; i < r->ops.n; i++)
		if (r->ops.at[i].kind == OP_COLLECTIVE) {
			CU_ASSERT_EQUAL(r->ops.at[i].bucket, last + 1);
			CU_ASSERT_EQUAL(r->ops.at[i].micro, 1);
			last = r->ops.at[i].bucket;
		}
	CU_ASSERT_EQUAL(last, (int32_t)r->buckets.n - 1);
	program_destroy(p);
}

/* Megatron's rule: buckets of the given size in the first chunk of the first stage, elsewhere a bucket a chunk. */
static void test_lead_buckets(void)
{
	struct config c = tiny(STRAT_ZERO1, 4, 1);
	c.model.layers = 4;
	c.model.tied_embeddings = false; /* a tied table, which both ends reduce, has a bucket of its own */
	c.parallel.pipeline = 2;
	c.parallel.data = 2;
	c.parallel.shard = 2;
	c.parallel.first_bucket_B = c.parallel.bucket_B = 66000.0;
	c.stack.buckets_lead_only = true;
	struct program *p = built(&c);
	CU_ASSERT(p->roles[0].buckets.n > 2);
	CU_ASSERT_EQUAL(p->roles[1].buckets.n, 1);
	program_destroy(p);
	c.parallel.overlap = false;
	p = built(&c);
	CU_ASSERT_EQUAL(p->roles[0].buckets.n, 1);
	program_destroy(p);
}

/* Where a stack copies gathered weights back tensor by tensor, each gather says how many it holds: all of the role's
 * together. */
static void test_tensors_gathered(void)
{
	for (int copies = 0; copies <= 1; copies++) {
		struct config c = tiny(STRAT_ZERO1, 4, 1);
		c.stack.copies_gathered = copies;
		struct program *p = built(&c);
		const struct role *r = &p->roles[0];
		int64_t tensors = 0, gathers = 0;
		for (size_t i = 0; i < r->ops.n; i++)
			if (r->ops.at[i].kind == OP_COLLECTIVE && r->ops.at[i].coll == COLL_ALL_GATHER) {
				gathers++;
				tensors += r->ops.at[i].collective.tensors;
			}
		CU_ASSERT_EQUAL(gathers, (int64_t)r->buckets.n);
		CU_ASSERT_EQUAL(tensors, copies ? (int64_t)r->params.n : 0);
		program_destroy(p);
	}
}

/* Each matrix of a unit is copied behind its gather; slice by slice also before its gradient is scattered. */
static void test_units_copied(void)
{
	struct config c = tiny(STRAT_FSDP, 4, 1);
	c.micro_batches = 1;
	c.train.global_batch = 8;
	for (int slices = 0; slices <= 1; slices++) {
		c.stack.copies_units = true;
		c.stack.copies_slices = slices;
		struct program *p = built(&c);
		int64_t gathered = 0, scattered = 0;
		for (size_t i = 0; i < p->roles[0].ops.n; i++) {
			const struct op *op = &p->roles[0].ops.at[i];
			if (op->kind == OP_COLLECTIVE)
				*(op->coll == COLL_ALL_GATHER ? &gathered : &scattered) += op->collective.tensors;
		}
		CU_ASSERT_EQUAL(gathered, (1 + slices) * 2 * 3 * 4); /* forward and backward, 3 blocks of 4 matrices */
		CU_ASSERT_EQUAL(scattered, slices * 3 * 4);
		program_destroy(p);
	}
}

/* Adapters of Q, K and V are three modules, of two factors each, as those of the other products are one each. */
static void test_adapter_units(void)
{
	struct config c = tiny(STRAT_FSDP, 4, 1);
	c.micro_batches = 1;
	c.train.global_batch = 8;
	c.model.lora_rank = 4;
	for (int own = 0; own <= 1; own++) {
		c.parallel.adapter_units = own;
		struct program *p = built(&c);
		int64_t forward = 0, backward = 0;
		for (size_t i = 0; i < p->roles[0].ops.n; i++) {
			const struct op *op = &p->roles[0].ops.at[i];
			if (op->kind == OP_GEMM)
				*(op->flags & OP_TRANS_B ? &forward : &backward) += op->gemm.units;
		}
		CU_ASSERT_EQUAL(forward, own * 3 * 2 * (3 + 1 + 1 + 1));
		CU_ASSERT_EQUAL(backward, own * 2 * 3 * 2 * (3 + 1 + 1 + 1)); /* of inputs and of weights */
		program_destroy(p);
	}
}

/* A block of seven linear modules and two norms dispatches 7 x 4 + 2 ops on DTensors forward, and backward 7 x 9, three
 * sums of gradients, and 2 x 2. A dispatch mode counts as many in torchtitan's block, besides those of norms without a
 * fused kernel. */
static void test_dtensors(void)
{
	for (int habit = 0; habit < 2; habit++) {
		struct config c = tiny(STRAT_DDP, 1, 2);
		int64_t ops[2] = {0};
		c.micro_batches = 1;
		c.train.global_batch = 2;
		c.model.mlp = MLP_SWIGLU;
		c.model.norm = NORM_RMSNORM;
		c.stack.dtensor = habit;
		struct program *p = built(&c);
		for (size_t i = 0; i < p->roles[0].ops.n; i++)
			if (p->roles[0].ops.at[i].layer >= 0)
				ops[p->roles[0].ops.at[i].phase == PHASE_BACKWARD] += p->roles[0].ops.at[i].dtensors;
		CU_ASSERT_EQUAL(ops[0], habit * c.model.layers * (7 * 4 + 2));
		CU_ASSERT_EQUAL(ops[1], habit * c.model.layers * (7 * 9 + 3 + 2 * 2));
		program_destroy(p);
	}
}

/* Q, K and V are three modules and a gate two, in each of a block's three products. A decoder with layer norms has one
 * module for Q, K and V. */
static void test_linears(void)
{
	for (int norm = NORM_LAYERNORM; norm <= NORM_RMSNORM; norm++) {
		struct config c = tiny(STRAT_DDP, 1, 1);
		int64_t modules = 0;
		c.micro_batches = 1;
		c.train.global_batch = 1;
		c.model.mlp = MLP_SWIGLU;
		c.model.norm = (enum norm)norm;
		c.model.causal = true;
		struct program *p = built(&c);
		for (size_t i = 0; i < p->roles[0].ops.n; i++)
			if (p->roles[0].ops.at[i].layer >= 0)
				modules += p->roles[0].ops.at[i].linears;
		CU_ASSERT_EQUAL(modules, c.model.layers * 3 * (norm == NORM_RMSNORM ? 7 : 5));
		program_destroy(p);
	}
}

UNIT_MAIN("program_volumes", {"volumes", test_volumes}, {"units smaller than a block", test_small_units},
	{"buckets", test_buckets}, {"lead buckets", test_lead_buckets}, {"tensors gathered", test_tensors_gathered},
	{"units copied", test_units_copied}, {"adapters' units", test_adapter_units},
	{"dispatch on DTensors", test_dtensors}, {"linear modules", test_linears})
