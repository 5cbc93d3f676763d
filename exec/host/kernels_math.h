/* Arithmetic of the kernels: branch-free functions that a compiler vectorises without -ffast-math, and sums whose order
 * is fixed by LANES and not by the vector width. */
#ifndef STEPSIM_EXEC_HOST_KERNELS_MATH_H
#define STEPSIM_EXEC_HOST_KERNELS_MATH_H

#include <math.h>
#include <stdint.h>
#include <string.h>

/* exp(x), relative error at most 3e-7 on [-87.3, 88.3]; below -87.69 exactly 0 (also for -inf), above 88.37 the value
 * there.
 *
 * x = n ln 2 + r with |r| <= ln 2 / 2; exp(r) by a polynomial of degree 5 with constant and linear coefficient 1, the
 * others minimax in relative error on that interval (Remez exchange, largest error 1.05e-7 before rounding). n is
 * rounded by adding 1.5 x 2^23, whose low bits then hold it; n = -127 gives the scale 0. ln 2 is subtracted in two
 * parts, the first with 9 significant bits, so that n times it is exact. */
static inline float fast_expf(float x)
{
	const float shift = 12582912.0f;
	float c = x < -88.0f ? -88.0f : x;
	c = c > 88.37f ? 88.37f : c;
	float shifted = c * 1.44269504f + shift;
	float n = shifted - shift;
	float r = c - n * 0.693359375f;
	r = r + n * 2.12194440e-4f;
	float p = 0x1.10624fp-7f;
	p = p * r + 0x1.572a64p-5f;
	p = p * r + 0x1.5557bp-3f;
	p = p * r + 0x1.fffdfcp-2f;
	p = p * r + 1.0f;
	p = p * r + 1.0f;
	int32_t bits;
	memcpy(&bits, &shifted, sizeof bits);
	uint32_t scale_bits = ((uint32_t)bits + 127u) << 23;
	float scale;
	memcpy(&scale, &scale_bits, sizeof scale);
	return p * scale;
}

/* 1 / (1 + exp(-x)). The bound keeps the result a normal number. */
static inline float fast_sigmoidf(float x)
{
	float z = x < -87.0f ? -87.0f : x;
	return 1.0f / (1.0f + fast_expf(-z));
}

static inline float fast_tanhf(float x) { return 2.0f * fast_sigmoidf(2.0f * x) - 1.0f; }

/* ---- sums and maxima of rows ----
 * LANES partial results side by side, then a fixed tree. */

#define LANES 32

/* Runs the statement for i = 0 .. n - 1 with lane l = i % LANES. */
#define FOR_LANES(n, ...) \
	do { \
		int64_t first_ = 0; \
		for (; first_ + LANES <= (n); first_ += LANES) \
			for (int l = 0; l < LANES; l++) { \
				const int64_t i = first_ + l; \
				__VA_ARGS__ \
			} \
		for (int l = 0; first_ + l < (n); l++) { \
			const int64_t i = first_ + l; \
			__VA_ARGS__ \
		} \
	} while (0)

static inline float lanes_sum(float lane[LANES])
{
	for (int w = LANES / 2; w > 0; w /= 2)
		for (int l = 0; l < w; l++)
			lane[l] += lane[l + w];
	return lane[0];
}

static inline float lanes_max(float lane[LANES])
{
	for (int w = LANES / 2; w > 0; w /= 2)
		for (int l = 0; l < w; l++)
			lane[l] = lane[l] > lane[l + w] ? lane[l] : lane[l + w];
	return lane[0];
}

static inline float row_dot(const float *x, const float *y, int64_t n)
{
	float lane[LANES] = {0};
	FOR_LANES(n, lane[l] += x[i] * y[i];);
	return lanes_sum(lane);
}

static inline float row_max(const float *x, int64_t n)
{
	float lane[LANES];
	for (int l = 0; l < LANES; l++)
		lane[l] = -INFINITY;
	FOR_LANES(n, lane[l] = x[i] > lane[l] ? x[i] : lane[l];);
	return lanes_max(lane);
}

/* x becomes exp(x - max); returns the sum. */
static inline float row_exp(float *x, int64_t n, float max)
{
	float lane[LANES] = {0};
	FOR_LANES(n, float p = fast_expf(x[i] - max); x[i] = p; lane[l] += p;);
	return lanes_sum(lane);
}

#endif
