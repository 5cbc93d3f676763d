/* The inner loops of the host's roofline. Vectors are written out: a compiler may not reorder a sum by itself, and the
 * polynomial's chains have to stay in registers. */
#include <string.h>

#include "exec/host/micro.h"

/* As wide as the registers; a fused multiply-add of 4 cycles on two units needs 8 chains, of 5 cycles 10. */
#if defined(__AVX512F__)
#define WIDTH 16
#define CHAINS 12
#elif defined(__AVX__)
#define WIDTH 8
#define CHAINS 10
#else
#define WIDTH 4
#define CHAINS 12
#endif

typedef float lanes __attribute__((vector_size(WIDTH * sizeof(float))));

static inline lanes load(const float *p)
{
	lanes v;
	memcpy(&v, p, sizeof v);
	return v;
}

static inline void store(float *p, lanes v) { memcpy(p, &v, sizeof v); }

void micro_poly_part(const float *a, float *b, int64_t n, int64_t k)
{
	const int64_t step = WIDTH * CHAINS;
	int64_t i = 0;
	for (; i + step <= n; i += step) {
		lanes x[CHAINS], y[CHAINS];
#pragma GCC unroll 12
		for (int c = 0; c < CHAINS; c++) {
			x[c] = load(a + i + c * WIDTH);
			y[c] = (lanes){0};
		}
		for (int64_t j = 0; j < k; j++) {
#pragma GCC unroll 12
			for (int c = 0; c < CHAINS; c++)
				y[c] = y[c] * x[c] + x[c];
		}
#pragma GCC unroll 12
		for (int c = 0; c < CHAINS; c++)
			store(b + i + c * WIDTH, y[c]);
	}
	for (; i < n; i++) {
		const float x = a[i];
		float y = 0;
		for (int64_t j = 0; j < k; j++)
			y = y * x + x;
		b[i] = y;
	}
}

float micro_read_part(const float *x, int64_t n)
{
	enum { SUMS = 8 };
	lanes sum[SUMS] = {{0}};
	float all = 0;
	int64_t i = 0;
	for (; i + SUMS * WIDTH <= n; i += SUMS * WIDTH) {
#pragma GCC unroll 8
		for (int c = 0; c < SUMS; c++)
			sum[c] += load(x + i + c * WIDTH);
	}
#pragma GCC unroll 8
	for (int c = 1; c < SUMS; c++)
		sum[0] += sum[c];
	for (int l = 0; l < WIDTH; l++)
		all += sum[0][l];
	for (; i < n; i++)
		all += x[i];
	return all;
}

/* Not memcpy: it may write around the caches, which no other kernel of a step does. */
void micro_copy_part(const float *x, float *y, int64_t n)
{
	int64_t i = 0;
	for (; i + WIDTH <= n; i += WIDTH)
		store(y + i, load(x + i));
	for (; i < n; i++)
		y[i] = x[i];
}

void micro_triad_part(const float *x, const float *y, float *z, int64_t n)
{
	const float s = 0.5f;
	int64_t i = 0;
	for (; i + WIDTH <= n; i += WIDTH)
		store(z + i, load(x + i) + s * load(y + i));
	for (; i < n; i++)
		z[i] = x[i] + s * y[i];
}

uint64_t micro_chase_part(const char *lines, uint64_t at, int64_t steps)
{
	for (int64_t i = 0; i < steps; i++)
		at = *(const uint64_t *)(const void *)(lines + at);
	return at;
}
