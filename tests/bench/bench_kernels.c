/* Benchmarks the host device's kernels over sizes: time, GFLOP/s and GB/s (bytes that must cross the memory interface
 * once). `bench_kernels [threads] [name prefix]` */
#include <cblas.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "exec/host/kernels.h"

#define MEASURE_S 0.05 /* at least, for each line */
#define VOCAB 50257

static struct op op_of(enum op_kind kind, unsigned flags, int variant, const int64_t *d)
{
	return (struct op){.kind = (uint8_t)kind,
		.dtype = DT_FP32,
		.out_dtype = DT_FP32,
		.flags = (uint16_t)flags,
		.mlp = (uint8_t)(kind == OP_OPTIMIZER ? 0 : variant),
		.optimizer = (uint8_t)(kind == OP_OPTIMIZER ? variant : 0),
		.d = {d[0], d[1], d[2], d[3], d[4]}};
}

static bool is_ids(const struct op_kind_info *info, int a)
{
	return !strcmp(info->arg[a].name, "tokens") || !strcmp(info->arg[a].name, "targets");
}

/* Values in (0, 1), so that second moments are valid; ids spread over the table. */
static void *argument(const struct op *op, int a)
{
	size_t bytes = op_arg_bytes(op, a, 1), n = bytes / 4;
	float *x = aligned_alloc(64, (bytes + 64) / 64 * 64);
	if (!x)
		abort();
	for (size_t i = 0; i < n; i++) {
		uint32_t r = (uint32_t)i * 2654435761u >> 8;
		if (is_ids(op_kind_info(op->kind), a))
			((int32_t *)x)[i] = (int32_t)(r % (uint32_t)(op->kind == OP_EMBED || op->kind == OP_EMBED_GRAD
									     ? op->embed.table_rows
									     : op->matrix.cols));
		else
			x[i] = (float)(r + 1) / 16777217.0f;
	}
	return x;
}

static double time_of(const struct host_env *env, const struct op *op, void *const arg[OP_MAX_ARGS])
{
	struct error e = {0};
	double best = 1e30;
	for (double total = 0.0, runs = 0; total < MEASURE_S || runs < 3; runs++) {
		double start = clock_s();
		if (host_kernel_run(env, op, arg, &e)) {
			fprintf(stderr, "%s\n", e.text);
			exit(1);
		}
		double took = clock_s() - start;
		total += took;
		if (runs > 0 && took < best) /* the first run warms up */
			best = took;
	}
	return best;
}

static void bench(struct pool *pool, const char *what, const struct op *op)
{
	const struct op_kind_info *info = op_kind_info(op->kind);
	size_t scratch_B = host_kernel_scratch_B(op, pool_threads(pool));
	struct host_env env = {.pool = pool,
		.scratch = aligned_alloc(64, (scratch_B + 64) / 64 * 64),
		.scratch_B = scratch_B,
		.heads = 12,
		.loss_scale = 1e-3,
		.step = 10};
	void *arg[OP_MAX_ARGS] = {0};
	for (int a = 0; a < info->n_args; a++)
		if (!(op->kind == OP_OPTIMIZER && a == 4)) /* no master copy */
			arg[a] = argument(op, a);
	double s = time_of(&env, op, arg);
	printf("%-18s %-14s %6lld %6lld %6lld %6lld %4lld  %10.1f us %8.1f GFLOP/s %8.2f GB/s\n", info->name, what,
		(long long)op->d[0], (long long)op->d[1], (long long)op->d[2], (long long)op->d[3], (long long)op->d[4],
		s * 1e6, op_flop(op) / s * 1e-9, (op_read_B(op) + op_write_B(op)) / s * 1e-9);
	for (int a = 0; a < info->n_args; a++)
		free(arg[a]);
	free(env.scratch);
}

struct line {
	enum op_kind kind;
	unsigned flags;
	int variant;
	const char *what;
	int64_t d[3][OP_MAX_DIMS]; /* small, middle, large */
};

#define ROWS(cols) \
	{ \
		{64, cols}, {512, cols}, { 4096, cols } \
	}
#define HEADS \
	{ \
		{1, 12, 12, 128, 64}, {1, 12, 12, 512, 64}, { 1, 12, 12, 2048, 64 } \
	}
#define GROUPS \
	{ \
		{1, 12, 4, 128, 128}, {1, 12, 4, 512, 128}, { 1, 12, 4, 2048, 128 } \
	}
#define FLAT \
	{ \
		{1 << 14}, {1 << 19}, { 1 << 24 } \
	}

static const struct line lines[] = {
	{OP_GEMM, OP_TRANS_B, 0, "nt bias", {{64, 768, 768}, {512, 2304, 768}, {2048, 3072, 768}}},
	{OP_GEMM, 0, 0, "nn bias", {{64, 768, 768}, {512, 768, 2304}, {2048, 768, 3072}}},
	{OP_GEMM, OP_TRANS_A | OP_ACCUMULATE, 0, "tn accumulate",
		{{768, 768, 64}, {2304, 768, 512}, {3072, 768, 2048}}},
	{OP_ATTENTION, OP_CAUSAL, 0, "causal", HEADS},
	{OP_ATTENTION, 0, 0, "full", HEADS},
	{OP_ATTENTION, OP_CAUSAL | OP_ALIBI, 0, "groups, alibi", GROUPS},
	{OP_ATTENTION_GRAD, OP_CAUSAL, 0, "causal", HEADS},
	{OP_ATTENTION_GRAD, 0, 0, "full", HEADS},
	{OP_ATTENTION_GRAD, OP_CAUSAL, 0, "groups", GROUPS},
	{OP_ATTN_SCORES, OP_CAUSAL, 0, "causal", HEADS},
	{OP_ATTN_SOFTMAX, OP_CAUSAL, 0, "causal", HEADS},
	{OP_ATTN_VALUES, OP_CAUSAL, 0, "causal", HEADS},
	{OP_ATTN_VALUES_GRAD, OP_CAUSAL, 0, "causal", HEADS},
	{OP_ATTN_SOFTMAX_GRAD, OP_CAUSAL, 0, "causal", HEADS},
	{OP_ATTN_SCORES_GRAD, OP_CAUSAL, 0, "causal", HEADS},
	{OP_ROPE, 0, 0, "", HEADS},
	{OP_NORM, 0, 0, "layernorm", ROWS(768)},
	{OP_NORM, OP_RMS, 0, "rmsnorm", ROWS(768)},
	{OP_NORM_GRAD, 0, 0, "layernorm", ROWS(768)},
	{OP_NORM_GRAD, OP_RMS, 0, "rmsnorm", ROWS(768)},
	{OP_ADD, 0, 0, "", ROWS(768)},
	{OP_ADD_NORM, 0, 0, "layernorm", ROWS(768)},
	{OP_BIAS, 0, 0, "", ROWS(3072)},
	{OP_BIAS_GRAD, 0, 0, "", ROWS(3072)},
	{OP_ACT, 0, MLP_GELU, "gelu", ROWS(3072)},
	{OP_ACT, 0, MLP_RELU, "relu", ROWS(3072)},
	{OP_ACT, 0, MLP_SWIGLU, "swiglu", ROWS(2048)},
	{OP_ACT_GRAD, 0, MLP_GELU, "gelu", ROWS(3072)},
	{OP_ACT_GRAD, 0, MLP_SWIGLU, "swiglu", ROWS(2048)},
	{OP_GATE_ACT, 0, MLP_SWIGLU, "swiglu", ROWS(2048)},
	{OP_GATE_MUL, 0, MLP_SWIGLU, "swiglu", ROWS(2048)},
	{OP_EMBED, 0, 0, "", {{64, 768, VOCAB}, {512, 768, VOCAB}, {4096, 768, VOCAB}}},
	{OP_EMBED_GRAD, 0, 0, "", {{64, 768, VOCAB}, {512, 768, VOCAB}, {4096, 768, VOCAB}}},
	{OP_POSITION, 0, 0, "", {{64, 768, 512}, {512, 768, 512}, {4096, 768, 512}}},
	{OP_POSITION_GRAD, 0, 0, "", {{64, 768, 512}, {512, 768, 512}, {4096, 768, 512}}},
	{OP_LOSS, 0, 0, "", {{8, VOCAB}, {64, VOCAB}, {1024, VOCAB}}},
	{OP_LOSS_MAX, 0, 0, "", {{8, VOCAB}, {64, VOCAB}, {1024, VOCAB}}},
	{OP_LOSS_SUM, 0, 0, "", {{8, VOCAB}, {64, VOCAB}, {1024, VOCAB}}},
	{OP_LOSS_GRAD, 0, 0, "", {{8, VOCAB}, {64, VOCAB}, {1024, VOCAB}}},
	{OP_OPTIMIZER, OP_FUSED, OPT_ADAMW, "adamw", FLAT},
	{OP_OPTIMIZER, 0, OPT_ADAMW, "adamw unfused", FLAT},
	{OP_OPTIMIZER, OP_FUSED, OPT_LION, "lion", FLAT},
	{OP_OPTIMIZER, OP_FUSED, OPT_SGD, "sgd", FLAT},
	{OP_FILL, 0, 0, "", FLAT},
	{OP_CAST, 0, 0, "", FLAT},
};

int main(int argc, char **argv)
{
	struct error e = {0};
	struct pool *pool;
	int threads = argc > 1 ? atoi(argv[1]) : 1;
	if (pool_create(threads, &pool, &e)) {
		fprintf(stderr, "%s\n", e.text);
		return 1;
	}
	openblas_set_num_threads(1);
	printf("%d thread%s, BLAS: %s\n", pool_threads(pool), pool_threads(pool) == 1 ? "" : "s",
		openblas_get_corename());
	for (size_t i = 0; i < COUNT(lines); i++)
		for (int size = 0; size < 3; size++) {
			struct op op = op_of(lines[i].kind, lines[i].flags, lines[i].variant, lines[i].d[size]);
			const char *name = op_kind_info(lines[i].kind)->name;
			if (argc < 3 || !strncmp(name, argv[2], strlen(argv[2])))
				bench(pool, lines[i].what, &op);
		}
	pool_destroy(pool);
	return 0;
}
