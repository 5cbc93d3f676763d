/* Tests the ops under context parallelism, with the ranks of a group one after the other in one process. They have the
 * attention, gradients and positions of one rank with whole sequences, and the kernels equal the reference. */
#include "base/array.h"
#include "tests/unit/kernel_check.h"

/* b, H, K, D; each rank's rows of a sequence */
#define B 2
#define H 4
#define K 2
#define D 6
#define WIDTH ((H + 2 * K) * D)
#define RANKS_MAX 5

static struct cut cut_of(int64_t ranks, int64_t rank, unsigned flags)
{
	return (struct cut){ranks, rank, flags & OP_CAUSAL ? 2 : 1};
}

/* ---- where rows stand ---- */

static void test_positions(void)
{
	for (int64_t ranks = 1; ranks <= RANKS_MAX; ranks++)
		for (int64_t chunks = 1; chunks <= 2; chunks++) {
			int seen[RANKS_MAX * 8] = {0};
			for (int64_t rank = 0; rank < ranks; rank++) {
				const struct cut c = {ranks, rank, chunks};
				int64_t sum = 0;
				for (int64_t i = 0; i < 8; i++) {
					seen[cut_position(&c, 8, i)]++;
					sum += cut_position(&c, 8, i);
				}
				if (chunks == 2) /* of the causal triangle all have the same part */
					CU_ASSERT_EQUAL(2 * sum, 8 * (8 * ranks - 1));
			}
			for (int64_t i = 0; i < 8 * ranks; i++)
				CU_ASSERT_EQUAL(seen[i], 1);
		}
	const struct cut third = {4, 2, 2};
	CU_ASSERT_EQUAL(cut_position(&third, 4, 0), 4);
	CU_ASSERT_EQUAL(cut_position(&third, 4, 2), 10); /* chunks 2 and 5 of 8, of two rows each */
}

/* ---- the group against one rank ---- */

static struct op attention_op(enum op_kind kind, unsigned flags, int64_t s, int64_t keys, int64_t place)
{
	struct op op = rig_op(kind, flags, 0, B, H, K, s, D);
	op.attn.keys = keys;
	op.attn.back = place;
	return op;
}

#define ARGS(...) ((void *[OP_MAX_ARGS]){__VA_ARGS__})

static void run(const struct host_env *env, struct op op, void *const arg[OP_MAX_ARGS])
{
	struct error e = {0};
	CU_ASSERT_EQUAL(reference_run(env, &op, arg, &e), ST_OK);
}

/* Rows of all of a batch between a rank's order and the whole sequences'. */
static void deal(double *own, double *whole, const struct cut *c, int64_t s, int64_t width, bool back)
{
	for (int64_t b = 0; b < B; b++)
		for (int64_t i = 0; i < s; i++) {
			double *x = own + (b * s + i) * width,
			       *y = whole + (b * s * cut_ranks(c) + cut_position(c, s, i)) * width;
			memcpy(back ? y : x, back ? x : y, (size_t)width * sizeof *x);
		}
}

struct member {
	struct host_env env;
	double *qkv, *kv, *out, *lse, *dout, *delta, *dqkv, *dkv;
};

static double *numbers(int64_t n, bool random)
{
	double *x = rig_alloc((size_t)n * sizeof *x);
	for (int64_t i = 0; random && i < n; i++)
		x[i] = rig_random();
	return x;
}

static void member_open(struct member *m, const struct host_env *env, int64_t ranks, int64_t rank, unsigned flags,
	int64_t s, double *qkv, double *dout)
{
	*m = (struct member){*env, numbers(B * s * WIDTH, false), numbers(B * s * 2 * K * D, false),
		numbers(B * s * H * D, false), numbers(B * H * s, false), numbers(B * s * H * D, false),
		numbers(B * H * s, false), numbers(B * s * WIDTH, false), numbers(B * s * 2 * K * D, false)};
	m->env.cut = cut_of(ranks, rank, flags);
	deal(m->qkv, qkv, &m->env.cut, s, WIDTH, false);
	deal(m->dout, dout, &m->env.cut, s, H * D, false);
	run(&m->env, rig_op(OP_KV_PACK, 0, 0, B * s, 2 * K * D, WIDTH, 0, 0), ARGS(m->qkv, m->kv));
}

static void member_close(struct member *m)
{
	double *const all[] = {m->qkv, m->kv, m->out, m->lse, m->dout, m->delta, m->dqkv, m->dkv};
	for (size_t i = 0; i < COUNT(all); i++)
		free(all[i]);
}

static void add_to(double *x, const double *y, int64_t n)
{
	for (int64_t i = 0; i < n; i++)
		x[i] += y[i];
}

static void by_ring(struct member *m, int64_t ranks, unsigned flags, int64_t s)
{
	double *part = numbers(B * s * 2 * K * D, false);
	for (int64_t r = 0; r < ranks; r++) {
		run(&m[r].env, attention_op(OP_ATTENTION, flags, s, 0, 0), ARGS(m[r].qkv, m[r].out, m[r].lse));
		for (int64_t j = 1; j < ranks; j++)
			run(&m[r].env, attention_op(OP_ATTENTION_PART, flags | OP_ACCUMULATE, s, s, j),
				ARGS(m[r].qkv, m[(r - j + ranks) % ranks].kv, m[r].out, m[r].lse));
	}
	for (int64_t r = 0; r < ranks; r++) {
		run(&m[r].env, attention_op(OP_ATTENTION_GRAD, flags, s, 0, 0),
			ARGS(m[r].qkv, m[r].out, m[r].lse, m[r].dout, m[r].delta, m[r].dqkv));
		for (int64_t j = 1; j < ranks; j++) {
			struct member *from = &m[(r - j + ranks) % ranks];
			run(&m[r].env, attention_op(OP_ATTENTION_PART_GRAD, flags | OP_ACCUMULATE, s, s, j),
				ARGS(m[r].qkv, from->kv, m[r].out, m[r].lse, m[r].dout, m[r].delta, m[r].dqkv, part));
			add_to(from->dkv, part, B * s * 2 * K * D);
		}
	}
	for (int64_t r = 0; r < ranks; r++)
		run(&m[r].env, rig_op(OP_KV_UNPACK, OP_ACCUMULATE, 0, B * s, 2 * K * D, WIDTH, 0, 0),
			ARGS(m[r].dkv, m[r].dqkv));
	free(part);
}

static void by_gathering(struct member *m, int64_t ranks, unsigned flags, int64_t s)
{
	const int64_t n = B * s * 2 * K * D;
	double *all = numbers(ranks * n, false), *grads = numbers(ranks * n, false);
	for (int64_t r = 0; r < ranks; r++)
		memcpy(all + r * n, m[r].kv, (size_t)n * sizeof *all);
	for (int64_t r = 0; r < ranks; r++) {
		run(&m[r].env, attention_op(OP_ATTENTION_PART, flags, s, ranks * s, 0),
			ARGS(m[r].qkv, all, m[r].out, m[r].lse));
		run(&m[r].env, attention_op(OP_ATTENTION_PART_GRAD, flags, s, ranks * s, 0),
			ARGS(m[r].qkv, all, m[r].out, m[r].lse, m[r].dout, m[r].delta, m[r].dqkv, grads));
		for (int64_t i = 0; i < ranks; i++)
			add_to(m[i].dkv, grads + i * n, n);
	}
	for (int64_t r = 0; r < ranks; r++)
		run(&m[r].env, rig_op(OP_KV_UNPACK, 0, 0, B * s, 2 * K * D, WIDTH, 0, 0), ARGS(m[r].dkv, m[r].dqkv));
	free(all);
	free(grads);
}

/* Naive attention: the keys of all, each sequence's brought together. */
static void by_scores(struct member *m, int64_t ranks, unsigned flags, int64_t s)
{
	const int64_t n = B * s * 2 * K * D, cells = B * H * s * ranks * s;
	double *gathered = numbers(ranks * n, false), *all = numbers(ranks * n, false),
	       *grads = numbers(ranks * n, false), *by_rank = numbers(ranks * n, false), *probs = numbers(cells, false),
	       *dprobs = numbers(cells, false);
	for (int64_t r = 0; r < ranks; r++)
		memcpy(gathered + r * n, m[r].kv, (size_t)n * sizeof *all);
	run(&m[0].env, rig_op(OP_SWAP, 0, 0, ranks, B, n / B, 0, 0), ARGS(gathered, all));
	for (int64_t r = 0; r < ranks; r++) {
		run(&m[r].env, attention_op(OP_ATTN_SCORES, flags, s, ranks * s, 0), ARGS(m[r].qkv, probs, all));
		run(&m[r].env, attention_op(OP_ATTN_SOFTMAX, flags, s, ranks * s, 0), ARGS(probs));
		run(&m[r].env, attention_op(OP_ATTN_VALUES, flags, s, ranks * s, 0), ARGS(probs, all, m[r].out));
		run(&m[r].env, attention_op(OP_ATTN_VALUES_GRAD, flags, s, ranks * s, 0),
			ARGS(probs, all, m[r].dout, dprobs, grads));
		run(&m[r].env, attention_op(OP_ATTN_SOFTMAX_GRAD, flags, s, ranks * s, 0), ARGS(probs, dprobs));
		run(&m[r].env, attention_op(OP_ATTN_SCORES_GRAD, flags, s, ranks * s, 0),
			ARGS(dprobs, m[r].qkv, m[r].dqkv, all, grads));
		run(&m[r].env, rig_op(OP_SWAP, 0, 0, B, ranks, n / B, 0, 0), ARGS(grads, by_rank));
		for (int64_t i = 0; i < ranks; i++)
			add_to(m[i].dkv, by_rank + i * n, n);
	}
	for (int64_t r = 0; r < ranks; r++)
		run(&m[r].env, rig_op(OP_KV_UNPACK, 0, 0, B * s, 2 * K * D, WIDTH, 0, 0), ARGS(m[r].dkv, m[r].dqkv));
	double *const used[] = {gathered, all, grads, by_rank, probs, dprobs};
	for (size_t i = 0; i < COUNT(used); i++)
		free(used[i]);
}

static void agree(const double *x, const double *y, int64_t n)
{
	double worst = 0;
	for (int64_t i = 0; i < n; i++)
		worst = isnan(x[i] - y[i]) ? INFINITY : fmax(worst, fabs(x[i] - y[i]));
	CU_ASSERT(worst < 1e-11);
}

static const unsigned masks[] = {0, OP_CAUSAL, OP_ALIBI, OP_CAUSAL | OP_ALIBI};
#define N_MASKS COUNT(masks)

typedef void group_way(struct member *m, int64_t ranks, unsigned flags, int64_t s);

static void group_case(int64_t ranks, unsigned flags, int64_t s, group_way *way)
{
	const struct host_env env = {.tensor_coord = 1, .heads = 2 * H};
	const int64_t rows = B * ranks * s;
	double *qkv = numbers(rows * WIDTH, true), *dout = numbers(rows * H * D, true),
	       *out = numbers(rows * H * D, false), *lse = numbers(rows * H, false), *delta = numbers(rows * H, false);
	double *dqkv = numbers(rows * WIDTH, false), *got_out = numbers(rows * H * D, false),
	       *got_dqkv = numbers(rows * WIDTH, false);
	run(&env, attention_op(OP_ATTENTION, flags, ranks * s, 0, 0), ARGS(qkv, out, lse));
	run(&env, attention_op(OP_ATTENTION_GRAD, flags, ranks * s, 0, 0), ARGS(qkv, out, lse, dout, delta, dqkv));
	struct member m[RANKS_MAX];
	for (int64_t r = 0; r < ranks; r++)
		member_open(&m[r], &env, ranks, r, flags, s, qkv, dout);
	way(m, ranks, flags, s);
	for (int64_t r = 0; r < ranks; r++) {
		deal(m[r].out, got_out, &m[r].env.cut, s, H * D, true);
		deal(m[r].dqkv, got_dqkv, &m[r].env.cut, s, WIDTH, true);
		member_close(&m[r]);
	}
	agree(got_out, out, rows * H * D);
	agree(got_dqkv, dqkv, rows * WIDTH);
	double *const all[] = {qkv, dout, out, lse, delta, dqkv, got_out, got_dqkv};
	for (size_t i = 0; i < COUNT(all); i++)
		free(all[i]);
}

static void test_group_is_one_rank(void)
{
	static group_way *const ways[] = {by_ring, by_gathering, by_scores};
	for (int64_t ranks = 2; ranks <= RANKS_MAX; ranks++)
		for (size_t i = 0; i < N_MASKS; i++)
			for (int w = 0; w < 3; w++)
				group_case(ranks, masks[i], 4, ways[w]);
}

/* ---- kernels ---- */

static void part_case(enum op_kind kind, unsigned flags, const int64_t *d, int64_t ranks, int64_t rank, int64_t place)
{
	struct op op = rig_op(kind, flags | (place ? OP_ACCUMULATE : 0), 0, d[0], d[1], d[2], d[3], d[4]);
	op.attn.keys = place ? d[3] : ranks * d[3];
	op.attn.back = place;
	struct rig r;
	rig_open(&r, op, 0);
	r.env.cut = cut_of(ranks, rank, flags);
	r.env.tensor_coord = 1;
	r.env.heads = 2 * d[1];
	if (kind == OP_ATTENTION_PART_GRAD) { /* weights are at most one, and the columns that are not written keep what
		                                 they hold */
		for (size_t i = 0; i < r.n[3]; i++)
			((double *)r.ref[3])[i] += 4.0;
		for (size_t i = 0; i < r.n[6]; i++)
			((double *)r.ref[6])[i] = rig_random();
		rig_sync(&r, 3);
		rig_sync(&r, 6);
	}
	check(&r, (flags & OP_ALIBI ? 8.0 : 2.0) * SUMS);
}

/* b, H, K, s, D: chunks shorter and longer than a tile, ending within one. */
static const int64_t sizes[][5] = {{1, 1, 1, 2, 2}, {2, 4, 2, 30, 6}, {1, 2, 1, 132, 16}, {1, 2, 2, 128, 20},
	{2, 2, 1, 194, 8}};

static void test_parts(void)
{
	for (size_t i = 0; i < COUNT(sizes); i++)
		for (size_t f = 0; f < N_MASKS; f++)
			for (int64_t rank = 0; rank < 3; rank++)
				for (int64_t place = 0; place < 3; place++) {
					part_case(OP_ATTENTION_PART, masks[f], sizes[i], 3, rank, place);
					part_case(OP_ATTENTION_PART_GRAD, masks[f], sizes[i], 3, rank, place);
				}
}

/* A row of scores has a key that it sees. */
static void test_scores(void)
{
	for (size_t i = 0; i < COUNT(sizes); i++)
		for (size_t f = 0; f < N_MASKS; f++)
			for (int kind = OP_ATTN_SCORES; kind <= OP_ATTN_SCORES_GRAD; kind++) {
				struct op op = rig_op((enum op_kind)kind, masks[f], 0, sizes[i][0], sizes[i][1],
					sizes[i][2], sizes[i][3], sizes[i][4]);
				op.attn.keys = 3 * sizes[i][3];
				struct rig r;
				rig_open(&r, op, 0);
				r.env.cut = cut_of(3, (int64_t)(i + f) % 3, masks[f]);
				r.env.tensor_coord = 1;
				r.env.heads = 2 * sizes[i][1];
				check(&r, (masks[f] & OP_ALIBI ? 8.0 : 2.0) * SUMS);
			}
}

static void cut_case(struct op op, unsigned absent, unsigned flags, double tolerance)
{
	for (int64_t rank = 0; rank < 3; rank++) {
		struct rig r;
		rig_open(&r, op, absent);
		r.env.cut = cut_of(3, rank, flags);
		r.env.tensor_coord = 1;
		check(&r, tolerance);
	}
}

static void test_cut_sequences(void)
{
	for (unsigned causal = 0; causal < 2; causal++) {
		const unsigned flags = causal ? OP_CAUSAL : 0;
		cut_case(rig_op(OP_ATTENTION, flags | OP_ALIBI, 0, 1, 2, 1, 140, 8), 0, flags, 8.0 * SUMS);
		cut_case(rig_op(OP_ROPE, 0, 0, 2, 2, 1, 300, 16), 0, flags, ROUNDS);
		cut_case(rig_op(OP_ROPE, OP_INVERSE, 0, 1, 2, 1, 2, 6), 0, flags, ROUNDS);
		cut_case(rig_op(OP_POSITION, 0, 0, 24, 33, 36, 0, 0), 0, flags, ROUNDS);
		cut_case(rig_op(OP_POSITION, OP_SEQUENCE_PARALLEL, 0, 12, 33, 36, 0, 0), 1 << 1, flags, ROUNDS);
		cut_case(rig_op(OP_POSITION_GRAD, 0, 0, 24, 33, 36, 0, 0), 0, flags, SUMS);
		cut_case(rig_op(OP_POSITION_GRAD, OP_SEQUENCE_PARALLEL, 0, 6, 33, 36, 0, 0), 1 << 2, flags, SUMS);
	}
}

static void test_columns(void)
{
	static const int64_t shapes[][3] = {{1, 2, 3}, {33, 24, 48}, {130, 12, 1000}};
	for (size_t i = 0; i < 3; i++) {
		check_op(rig_op(OP_KV_PACK, 0, 0, shapes[i][0], shapes[i][1], shapes[i][2], 0, 0), 0, 0.0);
		check_op(rig_op(OP_KV_UNPACK, 0, 0, shapes[i][0], shapes[i][1], shapes[i][2], 0, 0), 0, 0.0);
		check_op(rig_op(OP_KV_UNPACK, OP_ACCUMULATE, 0, shapes[i][0], shapes[i][1], shapes[i][2], 0, 0), 0,
			ROUNDS);
	}
}

UNIT_MAIN("kernels, context", {"positions", test_positions}, {"a group is one rank", test_group_is_one_rank},
	{"parts", test_parts}, {"stored scores", test_scores}, {"cut sequences", test_cut_sequences},
	{"columns", test_columns})
