#include "base/dtype.h"

#include "base/array.h"

#include <assert.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

static const struct {
	const char *name;
	double bytes;
} formats[] = {
	[DT_FP32] = {"fp32", 4.0},
	[DT_TF32] = {"tf32", 4.0},
	[DT_FP16] = {"fp16", 2.0},
	[DT_BF16] = {"bf16", 2.0},
	[DT_FP8] = {"fp8", 1.0},
	[DT_MXFP8] = {"mxfp8", 1.0 + 1.0 / 32.0},
	[DT_NVFP4] = {"nvfp4", 0.5 + 1.0 / 16.0},
	[DT_INT32] = {"int32", 4.0},
	[DT_INT8] = {"int8", 1.0},
	[DT_NF4] = {"nf4", 0.5 + 4.0 / 64.0},
	[DT_NF4_DOUBLE] = {"nf4_double", 0.5 + 1.0 / 64.0 + 4.0 / (64.0 * 256.0)},
};
static_assert(COUNT(formats) == DT_COUNT, "one row for each format");

const char *dtype_name(enum dtype d) { return formats[d].name; }

double dtype_bytes(enum dtype d) { return formats[d].bytes; }

enum dtype dtype_by_name(const char *name)
{
	for (int i = 0; i < DT_COUNT; i++)
		if (strcmp(formats[i].name, name) == 0)
			return (enum dtype)i;
	return DT_COUNT;
}

static uint32_t bits_of(float f)
{
	uint32_t u;
	memcpy(&u, &f, sizeof u);
	return u;
}

static float float_of(uint32_t u)
{
	float f;
	memcpy(&f, &u, sizeof f);
	return f;
}

static uint16_t to_bf16(float f)
{
	uint32_t u = bits_of(f);
	if (isnan(f))
		return (uint16_t)(u >> 16 | 0x40);
	return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

static uint16_t to_fp16(float f)
{
	uint32_t u = bits_of(f), sign = u >> 16 & 0x8000;
	float size = fabsf(f);
	if (isnan(f))
		return (uint16_t)(sign | 0x7e00);
	if (size >= 65520.0f) /* halfway beyond the largest */
		return (uint16_t)(sign | 0x7c00);
	if (size < 0x1p-14f) /* subnormal: whole multiples of 2^-24 */
		return (uint16_t)(sign | (uint32_t)lrintf(size * 0x1p24f));
	uint32_t rounded = (u & 0x7fffffff) + 0xfff + (u >> 13 & 1);
	return (uint16_t)(sign | ((rounded >> 13) - (112u << 10)));
}

static float from_fp16(uint16_t h)
{
	uint32_t sign = (uint32_t)(h & 0x8000) << 16, exponent = h >> 10 & 31, fraction = h & 0x3ff;
	if (exponent == 0)
		return float_of(sign) + (sign ? -1.0f : 1.0f) * (float)fraction * 0x1p-24f;
	return float_of(sign | (exponent == 31 ? 255 : exponent + 112) << 23 | fraction << 13);
}

bool dtype_store(enum dtype d, const float *values, size_t n, void *out)
{
	uint16_t *half = out;
	int32_t *whole = out;
	switch (d) {
	case DT_FP32:
	case DT_TF32: memcpy(out, values, n * sizeof *values); return true;
	case DT_BF16:
	case DT_FP16:
		for (size_t i = 0; i < n; i++)
			half[i] = d == DT_BF16 ? to_bf16(values[i]) : to_fp16(values[i]);
		return true;
	case DT_INT32:
		for (size_t i = 0; i < n; i++)
			whole[i] = (int32_t)values[i];
		return true;
	default: return false;
	}
}

bool dtype_load(enum dtype d, const void *in, size_t n, float *values)
{
	const uint16_t *half = in;
	const int32_t *whole = in;
	switch (d) {
	case DT_FP32:
	case DT_TF32: memcpy(values, in, n * sizeof *values); return true;
	case DT_BF16:
	case DT_FP16:
		for (size_t i = 0; i < n; i++)
			values[i] = d == DT_BF16 ? float_of((uint32_t)half[i] << 16) : from_fp16(half[i]);
		return true;
	case DT_INT32:
		for (size_t i = 0; i < n; i++)
			values[i] = (float)whole[i];
		return true;
	default: return false;
	}
}

int dtype_exact_bits(enum dtype d)
{
	static const int bits[DT_COUNT] =
		{[DT_FP32] = 24, [DT_TF32] = 24, [DT_INT32] = 24, [DT_FP16] = 11, [DT_BF16] = 8};
	return bits[d];
}

bool dtype_is_narrow(enum dtype d) { return d == DT_FP8 || d == DT_MXFP8 || d == DT_NVFP4; }

bool dtype_is_quantized(enum dtype d) { return d == DT_INT8 || d == DT_NF4 || d == DT_NF4_DOUBLE; }

enum dtype dtype_stored(enum dtype compute)
{
	return dtype_is_narrow(compute) ? DT_BF16 : compute == DT_TF32 ? DT_FP32 : compute;
}
