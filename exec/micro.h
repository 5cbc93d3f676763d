/* The kernels that measure a roofline: known FLOP and bytes on one rank's device, {ops, ctx}. Implemented for the
 * host's cores (exec/host/micro.h) and a GPU (exec/cuda/backend.h).
 *
 * A micro device holds one arena. Each kernel lays its operands into it at fixed places, which `read` looks at: the
 * polynomial's a and b, and the products' A, B and C, one after the other (micro_array_B apart). They are filled when
 * kernel, format or size changes, outside of the time. Each call runs the kernel `times` times, one run behind the
 * other, and gives the time of one. Calls wait for the end.
 */
#ifndef STEPSIM_EXEC_MICRO_H
#define STEPSIM_EXEC_MICRO_H

#include "base/status.h"
#include "step/roofline.h"

#define MICRO_ALIGN_B 256

struct micro_facts {
	char device[128];
	int64_t units;
	double clock_Hz;
	int64_t threads, threads_most; /* as struct roofline */
	uint64_t arena_B;
	struct roof_level level[ROOF_LEVELS]; /* names and footprints, which the arena holds */
	int levels;
	bool vector[DT_COUNT], matrix[DT_COUNT]; /* formats of the polynomial kernel, and of products */
};

struct micro_ops {
	void (*facts)(void *ctx, struct micro_facts *out);
	/* b = a + ... + a^k over n elements, all powers in registers. */
	enum status (
		*poly)(void *ctx, enum dtype d, int64_t n, int64_t k, int64_t times, double *seconds, struct error *e);
	/* A stream over a footprint: its one, two or three arrays together. */
	enum status (*stream)(void *ctx, enum roof_stream s, uint64_t footprint_B, int64_t times, double *seconds,
		struct error *e);
	/* `times` dependent loads through a footprint, a power of two, in an order that no prefetcher follows. */
	enum status (*chase)(void *ctx, uint64_t footprint_B, int64_t times, double *seconds, struct error *e);
	/* C = A B' of n x n matrices, both with contiguous rows. */
	enum status (*gemm)(void *ctx, enum dtype d, int64_t n, int64_t times, double *seconds, struct error *e);
	enum status (*read)(void *ctx, uint64_t offset_B, uint64_t bytes, void *to, struct error *e);
	void (*destroy)(void *ctx);
};

struct micro {
	const struct micro_ops *ops;
	void *ctx;
};

static inline void micro_destroy(struct micro *m)
{
	if (m->ops)
		m->ops->destroy(m->ctx);
	m->ops = NULL;
}

/* From the beginning of one operand to that of the next. */
static inline uint64_t micro_array_B(enum dtype d, int64_t n)
{
	return ((uint64_t)((double)n * dtype_bytes(d)) + MICRO_ALIGN_B - 1) / MICRO_ALIGN_B * MICRO_ALIGN_B;
}

/* Returns the value of every element of the polynomial's a. The result stays finite at k = 1000; in 16-bit formats 1.01
 * would not. */
static inline double micro_poly_a(enum dtype d) { return d == DT_FP32 ? 1.01 : 0.5; }

/* The chase: line i of `lines`, a power of two, leads to this one; all of them are one cycle (Hull and Dobell 1962: odd
 * increment, multiplier 1 modulo 4). */
#define MICRO_MULTIPLIER UINT64_C(2862933555777941757)
#define MICRO_INCREMENT UINT64_C(3037000493)
static inline uint64_t micro_next(uint64_t i, uint64_t lines)
{
	return (i * MICRO_MULTIPLIER + MICRO_INCREMENT) & (lines - 1);
}

/* Returns the largest power of two that is at most `at_most`, at least 1. */
uint64_t micro_power_of_two(uint64_t at_most);

/* Appends a level of the memory hierarchy: its stream covers footprint_B bytes, its chase chase_B. Both are cut to the
 * arena, the first to a multiple of MICRO_ALIGN_B, the second to a power of two. */
void micro_add_level(struct micro_facts *f, const char *name, uint64_t footprint_B, uint64_t chase_B);

#endif
