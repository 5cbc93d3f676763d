/* An encoder before a decoder: cross-attention and biases by distance, the reference against finite differences and the
 * kernels against the reference; the programs; sums worked by hand. */
#include "base/array.h"
#include "step/program.h"
#include "tests/unit/gradient_check.h"
#include "tests/unit/harness.h"
#include "tests/unit/kernel_check.h"
#include "tests/unit/tiny_config.h"

static struct op cross_op(enum op_kind k, int64_t b, int64_t H, int64_t K, int64_t s, int64_t keys, int64_t D)
{
	struct op op = rig_op(k, 0, 0, b, H, K, s, D);
	op.attn.keys = keys;
	op.attn.back = OTHER_SEQUENCE;
	return op;
}

/* ---- shapes ---- */

static void test_shapes(void)
{
	const struct op op = cross_op(OP_ATTENTION_PART, 2, 4, 2, 3, 7, 5);
	CU_ASSERT_EQUAL(op_arg_bytes(&op, ARG_ATTENTION_PART_qkv, 1), 4 * 2 * 3 * 4 * 5); /* the Q columns alone */
	CU_ASSERT_EQUAL(op_arg_bytes(&op, ARG_ATTENTION_PART_kv, 1), 4 * 2 * 7 * 2 * 2 * 5);
	CU_ASSERT_EQUAL(op_pairs(&op), 3 * 7);
	CU_ASSERT_DOUBLE_EQUAL(op_flop(&op), 2.0 * 2 * 4 * 3 * 7 * (5 + 5), 0);
	const struct op naive = cross_op(OP_ATTN_SCORES, 2, 4, 2, 3, 7, 5);
	CU_ASSERT_EQUAL(op_arg_bytes(&naive, ARG_ATTN_SCORES_scores, 1), 4 * 2 * 4 * 3 * 7);
	CU_ASSERT_EQUAL(op_arg_bytes(&naive, ARG_ATTN_SCORES_qkv, 1), 4 * 2 * 3 * 4 * 5);
}

/* ---- the reference ---- */

static void test_flash_gradient(void)
{
	struct rig forward, grad;
	rig_open(&forward, cross_op(OP_ATTENTION_PART, 2, 4, 2, 3, 5, 3), 0);
	rig_open(&grad, cross_op(OP_ATTENTION_PART_GRAD, 2, 4, 2, 3, 5, 3), 0);
	rig_reference(&forward);
	static const char *const shared[] = {"qkv", "kv", "out", "lse"};
	for (size_t i = 0; i < COUNT(shared); i++)
		copy_named(&grad, shared[i], rig_ref(&forward, shared[i]));
	rig_reference(&grad);
	check_gradient(&forward, "qkv", "out", rig_ref(&grad, "dout"), rig_ref(&grad, "dqkv"));
	check_gradient(&forward, "kv", "out", rig_ref(&grad, "dout"), rig_ref(&grad, "dkv"));
	rig_close(&forward);
	rig_close(&grad);
}

/* Scores, softmax and values are what flash attention gives in one. */
static void test_naive_is_flash(void)
{
	struct rig flash, scores, softmax, values;
	rig_open(&flash, cross_op(OP_ATTENTION_PART, 2, 4, 2, 3, 5, 3), 0);
	rig_open(&scores, cross_op(OP_ATTN_SCORES, 2, 4, 2, 3, 5, 3), 0);
	rig_open(&softmax, cross_op(OP_ATTN_SOFTMAX, 2, 4, 2, 3, 5, 3), 0);
	rig_open(&values, cross_op(OP_ATTN_VALUES, 2, 4, 2, 3, 5, 3), 0);
	copy_named(&scores, "qkv", rig_ref(&flash, "qkv"));
	copy_named(&scores, "kv", rig_ref(&flash, "kv"));
	copy_named(&values, "qkv", rig_ref(&flash, "kv"));
	rig_reference(&flash);
	rig_reference(&scores);
	copy_named(&softmax, "scores", rig_ref(&scores, "scores"));
	rig_reference(&softmax);
	copy_named(&values, "probs", rig_ref(&softmax, "scores"));
	rig_reference(&values);
	agree(rig_ref(&flash, "out"), rig_ref(&values, "out"), flash.n[ARG_ATTENTION_PART_out]);
	rig_close(&flash);
	rig_close(&scores);
	rig_close(&softmax);
	rig_close(&values);
}

static void test_naive_gradient(void)
{
	struct rig scores, scores_grad, values, values_grad;
	rig_open(&scores, cross_op(OP_ATTN_SCORES, 2, 4, 2, 3, 5, 3), 0);
	rig_open(&scores_grad, cross_op(OP_ATTN_SCORES_GRAD, 2, 4, 2, 3, 5, 3), 0);
	rig_open(&values, cross_op(OP_ATTN_VALUES, 2, 4, 2, 3, 5, 3), 0);
	rig_open(&values_grad, cross_op(OP_ATTN_VALUES_GRAD, 2, 4, 2, 3, 5, 3), 0);
	copy_named(&scores_grad, "qkv", rig_ref(&scores, "qkv"));
	copy_named(&scores_grad, "kv", rig_ref(&scores, "kv"));
	rig_reference(&scores_grad);
	check_gradient(&scores, "qkv", "scores", rig_ref(&scores_grad, "dscores"), rig_ref(&scores_grad, "dqkv"));
	copy_named(&values_grad, "probs", rig_ref(&values, "probs"));
	copy_named(&values_grad, "qkv", rig_ref(&values, "qkv"));
	rig_reference(&values_grad);
	check_gradient(&values, "probs", "out", rig_ref(&values_grad, "dout"), rig_ref(&values_grad, "dprobs"));
	/* of K by the one, of V by the other, into the same rows */
	copy_named(&scores_grad, "dkv", rig_ref(&values_grad, "dqkv"));
	rig_reference(&scores_grad);
	double *dkv = rig_alloc(scores_grad.n[4] * sizeof *dkv);
	for (size_t i = 0; i < scores_grad.n[4]; i++)
		dkv[i] = i % 12 < 6 ? rig_ref(&scores_grad, "dkv")[i] : 0;
	check_gradient(&scores, "kv", "scores", rig_ref(&scores_grad, "dscores"), dkv);
	for (size_t i = 0; i < scores_grad.n[4]; i++)
		dkv[i] = i % 12 < 6 ? 0 : rig_ref(&scores_grad, "dkv")[i];
	check_gradient(&values, "qkv", "out", rig_ref(&values_grad, "dout"), dkv);
	free(dkv);
	rig_close(&scores);
	rig_close(&scores_grad);
	rig_close(&values);
	rig_close(&values_grad);
}

/* T5's 32 buckets, by hand: 16 a direction, of which 8 are single distances; from 8 on a step of the logarithm is
 * (128 / 8)^(1/8) = 2^(1/2), so distances 8, 12, 16, 23, 32, 46, 64, 91 begin one each. A decoder has all 32 before:
 * 16 single ones, and a step is 8^(1/16). */
static void test_buckets(void)
{
	static const int64_t begins[] = {8, 12, 16, 23, 32, 46, 64, 91};
	for (int64_t d = 0; d < 8; d++)
		CU_ASSERT(relative_bucket(-d, 32, false) == d && relative_bucket(d, 32, false) == d + (d > 0 ? 16 : 0));
	for (size_t i = 0; i < COUNT(begins); i++) {
		CU_ASSERT_EQUAL(relative_bucket(-begins[i], 32, false), 8 + (int64_t)i);
		CU_ASSERT_EQUAL(relative_bucket(begins[i], 32, false), 24 + (int64_t)i);
		CU_ASSERT_EQUAL(relative_bucket(1 - begins[i], 32, false), 7 + (int64_t)i);
	}
	CU_ASSERT(relative_bucket(-100000, 32, false) == 15 && relative_bucket(100000, 32, false) == 31);
	CU_ASSERT(relative_bucket(-15, 32, true) == 15 && relative_bucket(-16, 32, true) == 16);
	CU_ASSERT(relative_bucket(-128, 32, true) == 31 && relative_bucket(5, 32, true) == 0);
	for (int64_t n = 2; n < 40; n++)
		for (int64_t d = -200; d <= 200; d++)
			CU_ASSERT(relative_bucket(d, n, true) < n && relative_bucket(d, n, false) < n &&
				  relative_bucket(d, n, true) >= 0 && relative_bucket(d, n, false) >= 0);
}

static void test_bias_gradient(void)
{
	for (unsigned flags = 0; flags <= OP_CAUSAL; flags += OP_CAUSAL) {
		struct rig table, table_grad, add, add_grad;
		rig_open(&table, rig_op(OP_RELATIVE_BIAS, flags, 0, 2, 9, 6, 0, 0), 0);
		rig_open(&table_grad, rig_op(OP_RELATIVE_BIAS_GRAD, flags, 0, 2, 9, 6, 0, 0), 0);
		rig_open(&add, rig_op(OP_ATTN_BIAS, flags, 0, 3, 2, 1, 9, 4), 0);
		rig_open(&add_grad, rig_op(OP_ATTN_BIAS_GRAD, flags, 0, 3, 2, 1, 9, 4), 0);
		rig_reference(&table_grad);
		check_gradient(&table, "table", "bias", rig_ref(&table_grad, "dbias"), rig_ref(&table_grad, "dtable"));
		rig_reference(&add_grad);
		check_gradient(&add, "bias", "scores", rig_ref(&add_grad, "dscores"), rig_ref(&add_grad, "dbias"));
		rig_close(&table);
		rig_close(&table_grad);
		rig_close(&add);
		rig_close(&add_grad);
	}
}

/* ---- kernels ---- */

/* b, H, K, s, keys, D */
static const int64_t shapes[][6] = {{1, 1, 1, 1, 1, 2}, {2, 3, 1, 31, 66, 6}, {1, 4, 2, 65, 3, 16},
	{1, 2, 1, 130, 131, 10}, {2, 4, 4, 5, 200, 24}};

static void test_cross_kernels(void)
{
	for (size_t i = 0; i < COUNT(shapes); i++) {
		const int64_t *d = shapes[i];
		struct rig forward, r;
		check_op(cross_op(OP_ATTENTION_PART, d[0], d[1], d[2], d[3], d[4], d[5]), 0, SUMS);
		rig_open(&forward, cross_op(OP_ATTENTION_PART, d[0], d[1], d[2], d[3], d[4], d[5]), 0);
		rig_reference(&forward);
		rig_open(&r, cross_op(OP_ATTENTION_PART_GRAD, d[0], d[1], d[2], d[3], d[4], d[5]), 0);
		for (int a = 0; a < 4; a++) { /* qkv, kv, out, lse */
			memcpy(r.ref[a], forward.ref[a], r.n[a] * sizeof(double));
			rig_sync(&r, a);
		}
		check(&r, SUMS);
		rig_close(&forward);
		for (int k = OP_ATTN_SCORES; k <= OP_ATTN_SCORES_GRAD; k++)
			check_op(cross_op((enum op_kind)k, d[0], d[1], d[2], d[3], d[4], d[5]), 0, 2 * SUMS);
	}
}

static void test_bias_kernels(void)
{
	for (size_t i = 0; i < COUNT(shapes); i++) {
		const int64_t *d = shapes[i];
		check_op(rig_op(OP_ATTN_BIAS, 0, 0, d[0], d[1], d[2], d[3], d[5]), 0, ROUNDS);
		check_op(rig_op(OP_ATTN_BIAS_GRAD, 0, 0, d[0], d[1], d[2], d[3], d[5]), 0, ROUNDS);
		check_op(rig_op(OP_ATTN_BIAS_GRAD, OP_ACCUMULATE, 0, d[0], d[1], d[2], d[3], d[5]), 0, ROUNDS);
		for (unsigned flags = 0; flags <= OP_CAUSAL; flags += OP_CAUSAL) {
			check_op(rig_op(OP_RELATIVE_BIAS, flags, 0, d[1], d[3], d[4] + 1, 0, 0), 0, ROUNDS);
			check_op(rig_op(OP_RELATIVE_BIAS_GRAD, flags, 0, d[1], d[3], d[4] + 1, 0, 0), 0, SUMS);
			check_op(rig_op(OP_RELATIVE_BIAS_GRAD, flags | OP_ACCUMULATE, 0, d[1], d[3], d[4] + 1, 0, 0), 0,
				SUMS);
		}
	}
}

/* ---- the program ---- */

static struct config stacks_config(void)
{
	struct config c = tiny_config();
	c.model.layers = 5;
	c.model.encoder_layers = 2;
	c.model.encoder_seq_len = 48;
	return c;
}

static struct config relative_config(void)
{
	struct config c = stacks_config();
	c.model.position = POS_RELATIVE;
	c.model.max_positions = 0;
	c.model.relative_buckets = 8;
	c.model.bias = c.model.qkv_bias = c.model.proj_bias = c.model.tied_embeddings = false;
	c.model.norm = NORM_RMSNORM;
	c.model.mlp = MLP_GEGLU;
	c.train.attention = ATT_NAIVE;
	return c;
}

static struct program *built(const struct config *c)
{
	struct program *p = NULL;
	struct error e = {0};
	if (program_build(c, &p, &e) || program_check(p, &e))
		fprintf(stderr, "%s\n", e.text);
	CU_ASSERT_EQUAL(e.status, ST_OK);
	return p;
}

/* Each strategy, recomputation and cut holds the invariants of program_check. */
static void test_programs(void)
{
	static const enum strategy strategies[] = {STRAT_DDP, STRAT_ZERO1, STRAT_ZERO2, STRAT_FSDP};
	for (int variant = 0; variant < 64; variant++) {
		struct config c = variant & 1 ? relative_config() : stacks_config();
		c.parallel.strategy = strategies[variant >> 1 & 3];
		c.parallel.tensor = variant & 8 ? 2 : 1;
		c.ranks = 2 * c.parallel.tensor;
		c.parallel.sequence_parallel = c.parallel.tensor > 1 && variant & 2;
		c.train.fused = !(variant & 4);
		c.train.optimizer_impl = c.train.fused ? IMPL_FUSED : IMPL_FOREACH;
		c.train.recompute = (enum recompute)((variant >> 4) % REC_COUNT);
		c.train.recompute_layers = c.train.recompute == REC_NONE ? 0 : variant & 1 ? 5 : 3;
		c.train.recompute_modules = variant & 8 ? REC_CORE_ATTN | REC_LAYERNORM | REC_MLP : AUTO;
		program_destroy(built(&c));
	}
}

static int64_t count_of(const struct program *p, enum op_kind k, const char *what, int32_t layer)
{
	int64_t n = 0;
	for (size_t i = 0; i < p->roles[0].ops.n; i++) {
		const struct op *op = &p->roles[0].ops.at[i];
		n += op->kind == k && (!what || strcmp(op->what, what) == 0) && (layer < 0 || op->layer == layer);
	}
	return n;
}

/* Two layers of an encoder, three of a decoder, two micro-batches. */
static void test_ops(void)
{
	struct config c = relative_config();
	struct program *p = built(&c);
	CU_ASSERT_EQUAL(count_of(p, OP_EMBED, NULL, -1), 2 * 2);
	CU_ASSERT_EQUAL(count_of(p, OP_EMBED_GRAD, NULL, -1), 2 * 2);
	CU_ASSERT_EQUAL(count_of(p, OP_RELATIVE_BIAS, NULL, -1), 2 * 2);
	CU_ASSERT_EQUAL(count_of(p, OP_RELATIVE_BIAS_GRAD, NULL, -1), 2 * 2);
	CU_ASSERT_EQUAL(count_of(p, OP_ATTN_BIAS, NULL, -1), 2 * 5); /* none in cross-attention */
	CU_ASSERT_EQUAL(count_of(p, OP_ATTN_SCORES, "cross attention", -1), 2 * 3);
	CU_ASSERT_EQUAL(count_of(p, OP_ATTN_SCORES, "attention", -1), 2 * 5);
	CU_ASSERT_EQUAL(count_of(p, OP_ATTN_SCORES, "cross attention", 1), 0);
	CU_ASSERT_EQUAL(count_of(p, OP_ADD, "encoder output grad", -1), 2 * 2); /* of three parts */
	for (size_t i = 0; i < p->roles[0].ops.n; i++) {
		const struct op *op = &p->roles[0].ops.at[i];
		if (op->kind != OP_ATTN_SCORES)
			continue;
		CU_ASSERT_EQUAL(op->attn.seq, op->layer < 2 ? 48 : 32);
		CU_ASSERT_EQUAL(op->flags & OP_CAUSAL, op->layer < 2 || op_is_cross(op) ? 0 : OP_CAUSAL);
		CU_ASSERT_EQUAL(op_keys(op), op->layer < 2 || op_is_cross(op) ? 48 : 32);
	}
	program_destroy(p);
}

/* The encoder's gradients come after the decoder's, so no bucket of the decoder waits for them: with buckets of single
 * parameters the last layer's are reduced first, and the table, which both stacks embed with, last. */
static void test_order_of_buckets(void)
{
	struct config c = relative_config();
	c.parallel.bucket_B = c.parallel.first_bucket_B = 1;
	struct program *p = built(&c);
	const struct role *r = &p->roles[0];
	uint32_t last_reduction = 0, backward_of_encoder = 0;
	int64_t before = 0;
	for (uint32_t i = 0; i < r->ops.n; i++) {
		const struct op *op = &r->ops.at[i];
		if (op->micro == 1 && op->phase == PHASE_BACKWARD && op->layer == 1 && !backward_of_encoder)
			backward_of_encoder = i;
		if (op->kind == OP_COLLECTIVE) {
			before += !backward_of_encoder;
			last_reduction = (uint32_t)op->bucket;
		}
	}
	CU_ASSERT_EQUAL(last_reduction, r->buckets.n - 1);
	CU_ASSERT_EQUAL(r->params.at[0].param.kind, PARAM_TOKEN_EMBEDDING);
	CU_ASSERT_EQUAL(r->params.at[0].bucket, (int32_t)r->buckets.n - 1);
	/* head, final norm; three layers of 10 tensors; the decoder's biases; the encoder's norm waits for its backward
	 */
	CU_ASSERT_EQUAL(before, 2 + 3 * 10 + 1 + 1);
	program_destroy(p);
}

/* Two convolutions make 48 rows of 96 frames; their gradients end the backward pass. Sines are not trained. */
static void test_frames(void)
{
	struct config c = stacks_config();
	c.model.input = INPUT_FRAMES;
	c.model.channels = 5;
	for (int tensor = 1; tensor <= 2; tensor++) {
		c.parallel.tensor = tensor;
		c.ranks = 2 * tensor;
		struct program *p = built(&c);
		CU_ASSERT_EQUAL(count_of(p, OP_CONV, "frames1", -1), 2);
		CU_ASSERT_EQUAL(count_of(p, OP_CONV_DATA, NULL, -1), 2); /* of the second alone */
		CU_ASSERT_EQUAL(count_of(p, OP_CONV_WEIGHT, "frames2", -1), 2);
		CU_ASSERT_EQUAL(count_of(p, OP_EMBED, NULL, -1), 2); /* of the decoder */
		CU_ASSERT(!model_trains(&c.model, PARAM_ENCODER_POSITION) &&
			  model_trains(&c.model, PARAM_POSITION_EMBEDDING));
		program_destroy(p);
	}
	c.model.layers = 2; /* one of each stack: only what frames add */
	c.model.encoder_layers = 1;
	const uint64_t with = model_parameters(&c.model);
	c.model.input = INPUT_TOKENS;
	CU_ASSERT_EQUAL(with - model_parameters(&c.model), 64 * 3 * 5 + 64 + 64 * 3 * 64 + 64);
}

/* ---- counts ---- */

/* Tokens are the decoder's: 4 of them for 6 of the encoder. One layer each, hidden 2, one head of 2, MLP of 3. */
static void test_flop(void)
{
	struct model m = {.layers = 2,
		.encoder_layers = 1,
		.encoder_seq_len = 6,
		.hidden = 2,
		.heads = 1,
		.kv_heads = 1,
		.head_dim = 2,
		.ffn_hidden = 3,
		.vocab = 10,
		.vocab_padding = 1,
		.seq_len = 4,
		.causal = true,
		.position = POS_NONE,
		.mlp = MLP_RELU,
		.norm = NORM_RMSNORM,
		.lm_head = true};
	const double attention = 4 * 2 * 2, mlp = 2 * 3 * 2, norm = 2, head = 2 * 10 * 2; /* input and output tables */
	const double encoder = attention + mlp + 2 * norm, decoder = attention + mlp + 3 * norm + 2 * 2 * 2,
		     keys = 2 * 2 * 2;
	CU_ASSERT_EQUAL(model_parameters(&m), (uint64_t)(encoder + decoder + keys + head));
	const double pairs = 6.0 * 6 + 4.0 * 4 + 4.0 * 6; /* of queries and keys in both stacks and across */
	CU_ASSERT_DOUBLE_EQUAL(model_flop_per_token(&m),
		6 * (encoder * 6 / 4 + decoder + keys * 6 / 4 + head) + 12 * 2 * pairs / 4, 1e-9);
}

UNIT_MAIN("an encoder before a decoder", {"shapes", test_shapes}, {"gradient of flash", test_flash_gradient},
	{"naive is flash", test_naive_is_flash}, {"gradient of naive", test_naive_gradient}, {"buckets", test_buckets},
	{"gradient of biases", test_bias_gradient}, {"kernels of cross-attention", test_cross_kernels},
	{"kernels of biases", test_bias_kernels}, {"programs", test_programs}, {"ops", test_ops},
	{"order of buckets", test_order_of_buckets}, {"frames", test_frames}, {"FLOP", test_flop})
