#include "exec/cuda/micro.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "exec/cuda/check.h"
#include "exec/cuda/gemm.h"
#include "exec/micro.h"

#define FREE_SHARE 2 /* of the free memory, a half at most */
#define L2_STREAMED \
	4 /* of the second-level cache, a quarter: it is in two halves, each of which may hold a copy of the other's \
	   */
#define L2_CHASED 8
#define MEMORY_STREAMED ((uint64_t)1 << 30)
#define MEMORY_CHASED \
	((uint64_t)256 << 20) /* far beyond the cache; not so far that address translation is what is measured */
#define SINK_B 256

enum content { CONTENT_NONE, CONTENT_POLY, CONTENT_STREAM, CONTENT_CHASE, CONTENT_GEMM };

struct cuda_micro {
	int device;
	struct micro_facts facts;
	char *arena, *workspace, *sink;
	struct cuda_env env;
	cudaEvent_t begin, end;
	struct gemm_plans *plans;
	/* what the arena holds */
	enum content content;
	enum dtype dtype;
	uint64_t size;
};

static void cuda_micro_facts(void *ctx, struct micro_facts *out) { *out = ((const struct cuda_micro *)ctx)->facts; }

static bool is_new(struct cuda_micro *m, enum content c, enum dtype d, uint64_t size)
{
	bool same = m->content == c && m->dtype == d && m->size == size;
	m->content = c;
	m->dtype = d;
	m->size = size;
	return !same;
}

static enum status fits(const struct cuda_micro *m, uint64_t bytes, struct error *e)
{
	return bytes <= m->facts.arena_B ? ST_OK
	                                 : error_set(e, ST_RUN, "%llu bytes do not fit into the roofline's %llu",
						   (unsigned long long)bytes, (unsigned long long)m->facts.arena_B);
}

/* ---- time, by events around what is enqueued between the two ---- */

static enum status begin(struct cuda_micro *m, struct error *e)
{
	return CUDA_CHECK(cudaEventRecord(m->begin, m->env.stream), e);
}

static enum status end(struct cuda_micro *m, int64_t times, double *seconds, struct error *e)
{
	float ms = 0.0f;
	enum status st;
	if ((st = CUDA_CHECK(cudaEventRecord(m->end, m->env.stream), e)) ||
		(st = CUDA_CHECK(cudaEventSynchronize(m->end), e)) ||
		(st = CUDA_CHECK(cudaEventElapsedTime(&ms, m->begin, m->end), e)))
		return st;
	*seconds = (double)ms * 1e-3 / (double)times;
	return ST_OK;
}

/* ---- the kernels ---- */

static enum status cuda_poly(void *ctx, enum dtype d, int64_t n, int64_t k, int64_t times, double *seconds,
	struct error *e)
{
	struct cuda_micro *m = ctx;
	const uint64_t array_B = micro_array_B(d, n);
	enum status st = fits(m, 2 * array_B, e);
	if (!st && is_new(m, CONTENT_POLY, d, array_B))
		st = micro_constant(&m->env, d, m->arena, n, micro_poly_a(d), e);
	if (!st)
		st = begin(m, e);
	for (int64_t t = 0; t < times && !st; t++)
		st = micro_poly(&m->env, d, m->arena, m->arena + array_B, n, k, e);
	return st ? st : end(m, times, seconds, e);
}

static enum status cuda_stream(void *ctx, enum roof_stream s, uint64_t footprint_B, int64_t times, double *seconds,
	struct error *e)
{
	struct cuda_micro *m = ctx;
	const uint64_t array_B = footprint_B / ((uint64_t)s + 1) / MICRO_ALIGN_B *
	                         MICRO_ALIGN_B; /* one, two or three arrays */
	const int64_t n = (int64_t)(array_B / sizeof(float));
	float *x = (float *)(void *)m->arena, *y = (float *)(void *)(m->arena + array_B),
	      *z = (float *)(void *)(m->arena + 2 * array_B);
	enum status st = fits(m, footprint_B, e);
	if (!st && is_new(m, CONTENT_STREAM, DT_FP32, footprint_B))
		st = micro_constant(&m->env, DT_FP32, m->arena, (int64_t)(footprint_B / sizeof(float)), 0.25, e);
	if (st || (st = begin(m, e)))
		return st;
	if (s == ROOF_READ)
		st = micro_read(&m->env, x, n, times, (float *)(void *)m->sink, e);
	else if (s == ROOF_COPY)
		st = micro_copy(&m->env, x, y, n, times, e);
	else
		st = micro_triad(&m->env, x, y, z, n, times, e);
	return st ? st : end(m, times, seconds, e);
}

static enum status cuda_chase(void *ctx, uint64_t footprint_B, int64_t times, double *seconds, struct error *e)
{
	struct cuda_micro *m = ctx;
	enum status st = fits(m, footprint_B, e);
	if (!st && is_new(m, CONTENT_CHASE, DT_FP32, footprint_B) &&
		!(st = CUDA_CHECK(cudaMemsetAsync(m->sink, 0, SINK_B, m->env.stream), e)))
		st = micro_lay(&m->env, m->arena, footprint_B / MICRO_CUDA_LINE_B, e);
	if (!st)
		st = begin(m, e);
	if (!st)
		st = micro_chase(&m->env, m->arena, times, (uint64_t *)(void *)m->sink, e);
	return st ? st : end(m, times, seconds, e);
}

static enum status cuda_gemm(void *ctx, enum dtype d, int64_t n, int64_t times, double *seconds, struct error *e)
{
	struct cuda_micro *m = ctx;
	const uint64_t array_B = micro_array_B(d, n * n);
	const struct op op = {.kind = OP_GEMM,
		.dtype = (uint8_t)d,
		.out_dtype = (uint8_t)d,
		.flags = OP_TRANS_B,
		.gemm = {n, n, n}};
	const struct cuda_arg arg[OP_MAX_ARGS] = {{m->arena, d}, {m->arena + array_B, d}, {NULL, d},
		{m->arena + 2 * array_B, d}};
	enum status st = fits(m, 3 * array_B, e);
	if (!st && is_new(m, CONTENT_GEMM, d, array_B)) {
		/* random: the power that a product draws, and so the clock, depend on its data */
		st = cuda_fill_normal(m->env.stream, m->arena, d, n * n, 1, 1.0, e);
		if (!st)
			st = cuda_fill_normal(m->env.stream, m->arena + array_B, d, n * n, 2, 1.0, e);
		if (!st)
			st = gemm_run(m->plans, &m->env, &op, arg, e); /* plans it */
	}
	if (!st)
		st = begin(m, e);
	for (int64_t t = 0; t < times && !st; t++)
		st = gemm_run(m->plans, &m->env, &op, arg, e);
	return st ? st : end(m, times, seconds, e);
}

static enum status cuda_read(void *ctx, uint64_t offset_B, uint64_t bytes, void *to, struct error *e)
{
	struct cuda_micro *m = ctx;
	enum status st = fits(m, offset_B + bytes, e);
	if (!st)
		st = CUDA_CHECK(cudaMemcpyAsync(to, m->arena + offset_B, bytes, cudaMemcpyDeviceToHost, m->env.stream),
			e);
	return st ? st : CUDA_CHECK(cudaStreamSynchronize(m->env.stream), e);
}

static void cuda_micro_destroy(void *ctx)
{
	struct cuda_micro *m = ctx;
	if (m->env.stream)
		cudaStreamSynchronize(m->env.stream);
	gemm_plans_destroy(m->plans);
	cudaFree(m->arena);
	cudaFree(m->workspace);
	cudaFree(m->sink);
	if (m->begin)
		cudaEventDestroy(m->begin);
	if (m->end)
		cudaEventDestroy(m->end);
	if (m->env.stream)
		cudaStreamDestroy(m->env.stream);
	free(m);
}

static const struct micro_ops cuda_micro_ops = {cuda_micro_facts, cuda_poly, cuda_stream, cuda_chase, cuda_gemm,
	cuda_read, cuda_micro_destroy};

/* ---- what there is ---- */

static enum status find_facts(struct cuda_micro *m, uint64_t most_B, struct error *e)
{
	static const enum dtype vectors[] = {DT_FP32, DT_BF16, DT_FP16},
				products[] = {DT_FP32, DT_BF16, DT_FP16, DT_TF32};
	struct micro_facts *f = &m->facts;
	struct cudaDeviceProp prop;
	int clock_kHz = 0, blocks = 0, threads = 0;
	const void *kernel = micro_poly_kernel(&threads);
	size_t free_B = 0, total_B = 0;
	enum status st;
	if ((st = CUDA_CHECK(cudaGetDeviceProperties(&prop, m->device), e)) ||
		(st = CUDA_CHECK(cudaDeviceGetAttribute(&clock_kHz, cudaDevAttrClockRate, m->device), e)) ||
		(st = CUDA_CHECK(cudaMemGetInfo(&free_B, &total_B), e)) ||
		(st = CUDA_CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, threads, 0), e)))
		return st;
	const uint64_t half_B = free_B / FREE_SHARE, l2_B = prop.l2CacheSize > 0 ? (uint64_t)prop.l2CacheSize : 0;
	snprintf(f->device, sizeof f->device, "%.*s", (int)sizeof f->device - 1, prop.name);
	f->units = m->env.sms = prop.multiProcessorCount;
	f->clock_Hz = 1e3 * clock_kHz;
	f->threads = (int64_t)blocks * threads;
	f->threads_most = prop.maxThreadsPerMultiProcessor;
	f->arena_B = (most_B < half_B ? most_B : half_B) / MICRO_ALIGN_B * MICRO_ALIGN_B;
	for (size_t i = 0; i < COUNT(vectors); i++)
		f->vector[vectors[i]] = true;
	/* bf16 and tf32 came with compute capability 8.0 */
	for (size_t i = 0; i < COUNT(products); i++)
		f->matrix[products[i]] = prop.major >= 8 || products[i] == DT_FP32 || products[i] == DT_FP16;
	if (l2_B)
		micro_add_level(f, "L2", l2_B / L2_STREAMED, l2_B / L2_CHASED);
	micro_add_level(f, "memory", MEMORY_STREAMED, MEMORY_CHASED);
	return ST_OK;
}

static enum status get_memory(struct cuda_micro *m, struct error *e)
{
	enum status st;
	if ((st = CUDA_CHECK(cudaMalloc((void **)&m->arena, m->facts.arena_B), e)) ||
		(st = CUDA_CHECK(cudaMalloc((void **)&m->workspace, GEMM_WORKSPACE_B), e)) ||
		(st = CUDA_CHECK(cudaMalloc((void **)&m->sink, SINK_B), e)))
		return st;
	m->env.scratch = m->workspace;
	m->env.scratch_B = GEMM_WORKSPACE_B;
	return ST_OK;
}

enum status micro_cuda_create(int device, uint64_t most_B, struct micro *out, struct error *e)
{
	static const struct role no_ops;
	struct cuda_micro *m = calloc(1, sizeof *m);
	*out = (struct micro){0};
	if (!m)
		return error_nomem(e, "the roofline's device");
	m->device = device;
	m->env.heads = 1;
	m->env.loss_scale = 1;
	enum status st = CUDA_CHECK(cudaSetDevice(device), e);
	if (!st)
		st = find_facts(m, most_B, e);
	if (!st)
		st = get_memory(m, e);
	if (!st)
		st = CUDA_CHECK(cudaStreamCreateWithFlags(&m->env.stream, cudaStreamNonBlocking), e);
	if (!st)
		st = CUDA_CHECK(cudaEventCreate(&m->begin), e);
	if (!st)
		st = CUDA_CHECK(cudaEventCreate(&m->end), e);
	if (!st)
		st = gemm_plans_create(&no_ops, device, true, &m->plans, e);
	if (st) {
		cuda_micro_destroy(m);
		return st;
	}
	*out = (struct micro){&cuda_micro_ops, m};
	return ST_OK;
}
