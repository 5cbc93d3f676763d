/* The initial model and data: the same whatever the strategy; parts of tensor-parallel ranks cover each tensor once.
 * And the numbers of the verification. */
#include "tests/unit/harness.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exec/init.h"
#include "exec/verify.h"

static struct model a_model(void)
{
	return (struct model){.layers = 3,
		.hidden = 24,
		.heads = 8,
		.kv_heads = 4,
		.head_dim = 3,
		.ffn_hidden = 40,
		.vocab = 16,
		.vocab_padding = 1,
		.seq_len = 8,
		.mlp = MLP_SWIGLU,
		.bias = true,
		.qkv_bias = true,
		.proj_bias = true};
}

/* Each element of the whole tensor in exactly one rank's part (in every rank's, where it is replicated), in order
 * inside each part. */
static void check_cover(const struct model *m, const struct param *p, int64_t owners, int64_t tensor)
{
	uint64_t whole = param_elements(p), local = param_local_elements(p, owners * tensor);
	int *hits = calloc(whole, sizeof *hits);
	bool good = hits != NULL;
	for (int64_t c = 0; good && c < owners * tensor; c++)
		for (uint64_t i = 0; i < local && good;) {
			const struct param_part at = {owners, c / tensor, tensor, c % tensor};
			struct stretch s = init_stretch(m, p, at, i);
			good = s.n > 0 && i + s.n <= local && s.global + s.n <= whole;
			for (uint64_t k = 0; good && k < s.n; k++)
				hits[s.global + k]++;
			i += s.n;
		}
	for (uint64_t i = 0; good && i < whole; i++)
		good = hits[i] == (p->split == TP_REPLICATED ? tensor : 1);
	CU_ASSERT_TRUE(good);
	free(hits);
}

static void test_cover(void)
{
	struct model m = a_model();
	for (int64_t tensor = 1; tensor <= 4; tensor *= 2)
		for (int64_t i = 0; i < model_param_count(&m); i++) {
			struct param p = model_param(&m, i, tensor);
			check_cover(&m, &p, 1, tensor);
		}
	struct param experts = {.kind = PARAM_EXPERT_FC1_W, .rows = 8, .cols = 6, .copies = 6, .split = TP_HALVES};
	for (int64_t owners = 1; owners <= 3; owners++) {
		experts.split = TP_HALVES;
		check_cover(&m, &experts, owners, 1);
		check_cover(&m, &experts, owners, 2);
		experts.split = TP_COLS;
		check_cover(&m, &experts, owners, 2);
	}
	/* by hand: rank 1 of 3 owners has copies 2 and 3, each of 48 elements, of which it cuts 3 of 6 columns */
	const struct stretch s = init_stretch(&m, &experts, (struct param_part){3, 1, 2, 1}, 24 + 3);
	CU_ASSERT_EQUAL(s.global, 3u * 48 + 6 + 3);
	CU_ASSERT_EQUAL(s.n, 3);
}

/* QKV by hand: 8 query and 4 key and value heads of 3 rows each, two ranks: rank 1 begins with query row 12, then key
 * row 24 + 6, then value row 36 + 6. */
static void test_qkv(void)
{
	struct model m = a_model();
	struct param p = {.kind = PARAM_QKV_W, .rows = 48, .cols = 24, .copies = 1, .split = TP_QKV};
	const struct param_part second = {1, 0, 2, 1};
	CU_ASSERT_EQUAL(init_stretch(&m, &p, second, 0).global, 12u * 24);
	CU_ASSERT_EQUAL(init_stretch(&m, &p, second, 0).n, 12u * 24);
	CU_ASSERT_EQUAL(init_stretch(&m, &p, second, 12 * 24).global, 30u * 24);
	CU_ASSERT_EQUAL(init_stretch(&m, &p, second, 18 * 24 + 5).global, 42u * 24 + 5);
	CU_ASSERT_EQUAL(init_stretch(&m, &p, second, 18 * 24 + 5).n, 6u * 24 - 5);
}

static void test_values(void)
{
	enum { N = 100000 };
	static float a[N], b[N];
	struct param p = {.kind = PARAM_FC1_W, .layer = 1, .rows = 400, .cols = 250, .copies = 1};
	init_values(&p, 3, 0, N, a);
	for (uint64_t i = 0; i < N; i += 777) /* in pieces: the same */
		init_values(&p, 3, i, N - i < 777 ? N - i : 777, b + i);
	CU_ASSERT_EQUAL(memcmp(a, b, sizeof a), 0);
	double sum = 0, square = 0, max = 0;
	for (int i = 0; i < N; i++) {
		sum += (double)a[i];
		square += (double)a[i] * (double)a[i];
		max = fmax(max, fabs((double)a[i]));
	}
	CU_ASSERT_DOUBLE_EQUAL(sum / N, 0, 0.02 * 4 / sqrt(N));
	CU_ASSERT_DOUBLE_EQUAL(sqrt(square / N), 0.02, 0.02 * 0.01);
	CU_ASSERT_TRUE(max > 0.05 && max <= 0.07);
	p.layer = 2;
	init_values(&p, 3, 0, N, b);
	int same = 0;
	for (int i = 0; i < N; i++)
		same += a[i] == b[i];
	CU_ASSERT_TRUE(same < 100);
	p.kind = PARAM_PROJ_W;
	init_values(&p, 8, 0, N, b);
	square = 0;
	for (int i = 0; i < N; i++)
		square += (double)b[i] * (double)b[i];
	CU_ASSERT_DOUBLE_EQUAL(sqrt(square / N), 0.02 / 4, 0.005 * 0.01);
	p.kind = PARAM_NORM1_W;
	init_values(&p, 3, 5, 3, b);
	CU_ASSERT_EQUAL(b[0] + b[1] + b[2], 3);
	p.kind = PARAM_FC1_B;
	init_values(&p, 3, 5, 3, b);
	CU_ASSERT_EQUAL(b[0] * b[0] + b[1] * b[1] + b[2] * b[2], 0);
}

/* Neighbouring elements, members and ops are told apart nearly always, so that a shifted, a lost or a doubled
 * contribution shows. */
static void test_verify_values(void)
{
	int equal[3] = {0, 0, 0}, n = 10000;
	for (int i = 0; i < n; i++) {
		int32_t v = verify_value(7, 3, (uint64_t)i);
		CU_ASSERT_TRUE_FATAL(v >= 0 && v < 64);
		equal[0] += v == verify_value(7, 3, (uint64_t)i + 1);
		equal[1] += v == verify_value(7, 4, (uint64_t)i);
		equal[2] += v == verify_value(8, 3, (uint64_t)i);
	}
	for (int k = 0; k < 3; k++)
		CU_ASSERT_TRUE(equal[k] < n / 10);
}

UNIT_MAIN("exec init", {"parts cover each tensor once", test_cover}, {"rows of Q, K and V", test_qkv},
	{"values", test_values}, {"numbers of the verification", test_verify_values})
