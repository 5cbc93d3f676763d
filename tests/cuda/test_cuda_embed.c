/* Tables of embeddings against the reference; ids outside the table. */
#include "base/array.h"
#include "tests/cuda/cuda_rig.h"

static const int64_t columns[] = {0, 1, 31, 33, 64, 96, 1023, 1025};
static const int64_t tokens[] = {0, 1, 19};
static const enum dtype formats[] = {DT_FP32, DT_BF16, DT_FP16};
/* Mixed formats for two of the widths: one in whole vectors, one not. */
#define FOR_ALL \
	for (size_t c = 0; c < COUNT(columns); c++) \
		for (size_t t = 0; t < COUNT(tokens); t++) \
			for (size_t f = 0; f < COUNT(formats); f++) \
				for (size_t g = 0; g < COUNT(formats); g++) \
					if (f == g || columns[c] == 33 || columns[c] == 96)

#define ROWS 29

static void tokens_case(enum op_kind kind, unsigned flags, int64_t T, int64_t cols, enum dtype x, enum dtype y,
	size_t shift)
{
	struct cuda_rig r;
	const bool grad = kind == OP_EMBED_GRAD;
	enum dtype each[OP_MAX_ARGS] = {DT_INT32, x, y};
	cuda_rig_open(&r, cuda_rig_op(kind, flags, 0, x, y, T, cols, ROWS, 0, 0),
		(struct cuda_rig_options){.shift = shift, .formats = each});
	r.env.tensor_coord = 1;
	cuda_rig_ids(&r, 0, 0, flags & OP_VOCAB_PARALLEL ? 3 * ROWS : ROWS);
	r.terms = grad ? 1.0 : 0.0;
	/* every sum of the kernel's is rounded when it is stored: some tokens of one id */
	r.limit[2] *= grad ? 2.0 : 1.0;
	cuda_rig_check(&r);
	CU_ASSERT_EQUAL(cuda_rig_flag(&r), 0);
	cuda_rig_close(&r);
}

static void test_embed(void)
{
	FOR_ALL
	{
		tokens_case(OP_EMBED, 0, tokens[t], columns[c], formats[f], formats[g], 0);
		tokens_case(OP_EMBED, OP_VOCAB_PARALLEL, tokens[t], columns[c], formats[f], formats[g], c % 2);
	}
}

static void test_embed_grad(void)
{
	FOR_ALL
	{
		tokens_case(OP_EMBED_GRAD, 0, tokens[t], columns[c], formats[f], formats[g], 0);
		tokens_case(OP_EMBED_GRAD, OP_VOCAB_PARALLEL, tokens[t], columns[c], formats[f], formats[g], c % 2);
	}
}

/* The flag says which op it was; the other rows are right all the same, the row without an id zeros. */
static void bad_id(enum op_kind kind, unsigned flags, int32_t id, int32_t flag)
{
	struct cuda_rig r;
	cuda_rig_open(&r, cuda_rig_op(kind, flags, 0, DT_BF16, DT_BF16, 5, 64, ROWS, 0, 0),
		(struct cuda_rig_options){0});
	cuda_rig_ids(&r, 0, 0, ROWS);
	((int32_t *)r.ref[0])[3] = id;
	cuda_rig_sync(&r, 0);
	cuda_rig_check(&r);
	CU_ASSERT_EQUAL(cuda_rig_flag(&r), flag);
	cuda_rig_close(&r);
}

static void test_bad_ids(void)
{
	static const enum op_kind kinds[] = {OP_EMBED, OP_EMBED_GRAD};
	for (size_t k = 0; k < COUNT(kinds); k++) {
		bad_id(kinds[k], 0, ROWS - 1, 0);
		bad_id(kinds[k], 0, ROWS, 8);
		bad_id(kinds[k], 0, -1, 8);
		bad_id(kinds[k], 0, INT32_MIN, 8);
		bad_id(kinds[k], OP_VOCAB_PARALLEL, ROWS, 0);
		bad_id(kinds[k], OP_VOCAB_PARALLEL, -1, 8);
	}
}

/* The table's format and the activations' (their gradients'). */
static void position_case(enum op_kind kind, unsigned flags, int64_t T, int64_t cols, int64_t s, enum dtype table,
	enum dtype x, unsigned absent, size_t shift)
{
	struct cuda_rig r;
	const enum dtype forward[OP_MAX_ARGS] = {table, table, x}, backward[OP_MAX_ARGS] = {x, table, table};
	cuda_rig_open(&r, cuda_rig_op(kind, flags, 0, DT_FP32, DT_FP32, T, cols, s, 0, 0),
		(struct cuda_rig_options){.absent = absent,
			.shift = shift,
			.formats = kind == OP_POSITION ? forward : backward});
	r.env.tensor_coord = 2;
	cuda_rig_check(&r);
	cuda_rig_close(&r);
}

static void test_position(void)
{
	FOR_ALL
	{
		position_case(OP_POSITION, 0, 3 * tokens[t], columns[c], tokens[t] ? tokens[t] : 4, formats[f],
			formats[g], 0, t % 2);
		position_case(OP_POSITION, OP_SEQUENCE_PARALLEL, tokens[t], columns[c], 50, formats[f], formats[g],
			1u << 1, 0);
		position_case(OP_POSITION, 0, tokens[t], columns[c], 7, formats[f], formats[g], 1u << 0, 0);
	}
	position_case(OP_POSITION, 0, 5, 64, 7, DT_FP32, DT_FP32, 3, 0);
}

static void test_position_grad(void)
{
	FOR_ALL
	{
		position_case(OP_POSITION_GRAD, 0, 3 * tokens[t], columns[c], tokens[t] ? tokens[t] : 4, formats[f],
			formats[g], 0, t % 2);
		position_case(OP_POSITION_GRAD, OP_SEQUENCE_PARALLEL, tokens[t], columns[c], 50, formats[f], formats[g],
			1u << 2, 0);
		position_case(OP_POSITION_GRAD, OP_SEQUENCE_PARALLEL, tokens[t], columns[c], 9, formats[f], formats[g],
			1u << 2, 0);
		position_case(OP_POSITION_GRAD, 0, tokens[t], columns[c], 7, formats[f], formats[g], 1u << 1, 0);
	}
	position_case(OP_POSITION_GRAD, 0, 5, 64, 7, DT_FP32, DT_FP32, 6, 0);
}

CUDA_MAIN("cuda embeddings", {"gather", test_embed}, {"scatter-add", test_embed_grad},
	{"ids outside the table", test_bad_ids}, {"positions", test_position},
	{"gradients of positions", test_position_grad})
