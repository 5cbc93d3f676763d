/* Kernels where context parallelism cuts sequences, against the reference: attention with the keys of other ranks,
 * positions, the columns of keys and values. */
#include "base/array.h"
#include "tests/cuda/cuda_rig.h"
#include "tests/property/rounds.h"

static const enum dtype formats[] = {DT_FP32, DT_BF16, DT_FP16};

static struct cut cut_of(int64_t rank, unsigned flags) { return (struct cut){3, rank, flags & OP_CAUSAL ? 2 : 1}; }

static void refill(struct cuda_rig *r, const char *name, double middle)
{
	const int a = cuda_rig_arg(r, name);
	for (size_t i = 0; i < r->n[a]; i++)
		((double *)r->ref[a])[i] = middle + cuda_rig_random();
	cuda_rig_sync(r, a);
}

/* place: of the rank whose keys they are; 0: those of all three. */
static void part_case(enum op_kind kind, unsigned flags, const int64_t *d, enum dtype format, int64_t rank,
	int64_t place, size_t shift)
{
	struct op op = cuda_rig_op(kind, flags | (place ? OP_ACCUMULATE : 0), 0, format, format, d[0], d[1], d[2], d[3],
		d[4]);
	op.attn.keys = place ? d[3] : 3 * d[3];
	op.attn.back = place;
	struct cuda_rig r;
	cuda_rig_open(&r, op, (struct cuda_rig_options){.shift = shift});
	r.env.cut = cut_of(rank, flags);
	r.env.tensor_coord = 1;
	r.env.heads = 2 * d[1];
	if (kind == OP_ATTENTION_PART_GRAD) {
		refill(&r, "lse", 4.0);  /* weights of one at most */
		refill(&r, "dqkv", 0.0); /* the columns that are not written keep what they hold */
	}
	for (int a = 0; a < r.n_args; a++)
		if (r.row[a] > 1)
			r.row[a] = (size_t)d[4];
	r.limit[cuda_rig_arg(&r, "lse")] = 2e-5;
	if (format == DT_FP32)
		r.terms = 4.0; /* ALiBi's biases reach so far that their rounding shows */
	cuda_rig_check(&r);
	cuda_rig_close(&r);
}

/* b, H, K, s, D: chunks shorter and longer than a tile, ending within one; heads as they are, padded, no whole vectors.
 */
static const int64_t shapes[][5] = {{1, 1, 1, 2, 32}, {2, 4, 2, 30, 64}, {1, 2, 1, 70, 20}, {1, 2, 2, 132, 33},
	{1, 1, 1, 38, 160}};
static const unsigned masks[] = {0, OP_CAUSAL, OP_CAUSAL | OP_ALIBI};

/* With real threads, which take their time, and where a part is asked for, each rank's own gathering or one visitor. */
static void test_parts(void)
{
	const char *threads = getenv("STEPSIM_TWIN_THREADS");
	const bool real = threads && strcmp(threads, "real") == 0, few = real || rounds_of(4) < 4;
	for (size_t i = 0; i < COUNT(shapes) - real; i++)
		for (size_t m = 0; m < COUNT(masks); m++)
			for (int64_t k = few ? (int64_t)m : 0; k < 9; k += few ? 4 : 1) {
				const enum dtype format = formats[(i + (size_t)k) % 3];
				part_case(OP_ATTENTION_PART, masks[m], shapes[i], format, k / 3, k % 3, i % 2);
				part_case(OP_ATTENTION_PART_GRAD, masks[m], shapes[i], format, k / 3, k % 3, i % 2);
			}
}

static void cut_case(struct op op, unsigned absent, unsigned flags)
{
	for (int64_t rank = 0; rank < 3; rank++) {
		struct cuda_rig r;
		cuda_rig_open(&r, op, (struct cuda_rig_options){.absent = absent});
		r.env.cut = cut_of(rank, flags);
		r.env.tensor_coord = 1;
		cuda_rig_check(&r);
		cuda_rig_close(&r);
	}
}

static void test_cut_sequences(void)
{
	for (size_t m = 0; m < COUNT(masks); m++)
		for (size_t f = 0; f < COUNT(formats); f++) {
			const enum dtype x = formats[f];
			cut_case(cuda_rig_op(OP_ATTENTION, masks[m], 0, x, x, 1, 2, 1, 100, 32), 0, masks[m]);
			cut_case(cuda_rig_op(OP_ROPE, 0, 0, x, x, 2, 3, 1, 38, 64), 0, masks[m]);
			cut_case(cuda_rig_op(OP_ROPE, OP_INVERSE, 0, x, x, 1, 1, 1, 6, 6), 0, masks[m]);
			cut_case(cuda_rig_op(OP_POSITION, 0, 0, x, x, 24, 33, 36, 0, 0), 0, masks[m]);
			cut_case(cuda_rig_op(OP_POSITION, OP_SEQUENCE_PARALLEL, 0, x, x, 12, 64, 36, 0, 0), 1u << 1,
				masks[m]);
			cut_case(cuda_rig_op(OP_POSITION_GRAD, 0, 0, x, x, 24, 33, 36, 0, 0), 0, masks[m]);
			cut_case(cuda_rig_op(OP_POSITION_GRAD, OP_SEQUENCE_PARALLEL, 0, x, x, 6, 64, 36, 0, 0), 1u << 2,
				masks[m]);
		}
}

/* Rows of scores with the keys of three ranks; bias and mask are the kernel's. */
static void softmax_case(enum op_kind kind, unsigned flags, enum dtype format, int64_t s, int64_t rank, size_t shift)
{
	struct op op = cuda_rig_op(kind, flags, 0, format, format, 2, 4, 2, s, 8);
	struct cuda_rig r;
	struct error e = {0};
	op.attn.keys = 3 * s;
	cuda_rig_open(&r, op, (struct cuda_rig_options){.shift = shift});
	r.env.cut = cut_of(rank, flags);
	r.env.tensor_coord = 1;
	for (int a = 0; a < r.n_args; a++)
		r.row[a] = (size_t)op.attn.keys;
	r.terms = kind == OP_ATTN_SOFTMAX ? 0.0 : 4.0; /* the sum of a row of products */
	double *x = r.ref[0];
	CU_ASSERT_EQUAL(cuda_rig_run(&r, &e), ST_OK);
	for (size_t i = 0; kind == OP_ATTN_SOFTMAX && i < r.n[0]; i++) {
		const int64_t key = (int64_t)i % op.attn.keys, query = (int64_t)i / op.attn.keys % s,
			      head = (int64_t)i / op.attn.keys / s % 4;
		const struct cut from = {3, key / s, r.env.cut.chunks};
		const int64_t ahead = cut_position(&from, s, key % s) - cut_position(&r.env.cut, s, query);
		x[i] = flags & OP_CAUSAL && ahead > 0
		               ? -INFINITY
		               : x[i] + (flags & OP_ALIBI ? alibi_slope(4 + head, r.env.heads) * (double)ahead : 0.0);
	}
	CU_ASSERT_EQUAL(reference_run(&r.env, &r.op, r.ref, &e), ST_OK);
	cuda_rig_compare(&r);
	cuda_rig_close(&r);
}

static void test_scores(void)
{
	static const int64_t lengths[] = {2, 22, 64, 130};
	for (size_t n = 0; n < COUNT(lengths); n++)
		for (size_t m = 0; m < COUNT(masks); m++)
			for (int64_t rank = 0; rank < 3; rank++) {
				softmax_case(OP_ATTN_SOFTMAX, masks[m], formats[(n + m) % 3], lengths[n], rank, m % 2);
				softmax_case(OP_ATTN_SOFTMAX_GRAD, masks[m], formats[(n + m) % 3], lengths[n], rank,
					m % 2);
			}
}

static void test_columns(void)
{
	static const int64_t sizes[][3] = {{1, 2, 3}, {33, 24, 48}, {70, 128, 256}};
	for (size_t i = 0; i < COUNT(sizes); i++)
		for (size_t f = 0; f < COUNT(formats); f++)
			for (size_t shift = 0; shift < 2; shift++) {
				const struct op ops[] = {cuda_rig_op(OP_KV_PACK, 0, 0, formats[f], formats[f],
								 sizes[i][0], sizes[i][1], sizes[i][2], 0, 0),
					cuda_rig_op(OP_KV_UNPACK, 0, 0, formats[f], formats[f], sizes[i][0],
						sizes[i][1], sizes[i][2], 0, 0),
					cuda_rig_op(OP_KV_UNPACK, OP_ACCUMULATE, 0, formats[f], formats[f], sizes[i][0],
						sizes[i][1], sizes[i][2], 0, 0)};
				for (size_t k = 0; k < COUNT(ops); k++) {
					struct cuda_rig r;
					cuda_rig_open(&r, ops[k], (struct cuda_rig_options){.shift = shift});
					cuda_rig_check(&r);
					cuda_rig_close(&r);
				}
			}
}

CUDA_MAIN("cuda context", {"parts", test_parts}, {"cut sequences", test_cut_sequences}, {"stored scores", test_scores},
	{"columns", test_columns})
