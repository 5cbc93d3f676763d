/* Number formats. `name` is the config's word. */
#ifndef STEPSIM_BASE_DTYPE_H
#define STEPSIM_BASE_DTYPE_H

#include <stdbool.h>
#include <stddef.h>

enum dtype {
	DT_FP32,
	DT_TF32,
	DT_FP16,
	DT_BF16,
	DT_FP8,
	DT_MXFP8,
	DT_NVFP4,
	DT_INT32,
	/* weights that are not trained, as bitsandbytes stores them: nothing is computed in these */
	DT_INT8,
	DT_NF4,
	DT_NF4_DOUBLE,
	DT_COUNT
};

const char *dtype_name(enum dtype d);

/* Bytes of one element as stored: fp32, tf32, int32 4; fp16, bf16 2; fp8 1; mxfp8 1 + 1/32 (a scale for 32 elements,
 * OCP MX v1.0); nvfp4 1/2 + 1/16 (an fp8 scale for 16 elements, NVIDIA Transformer Engine documentation). int8 1, its
 * fp32 scale a row left out (Dettmers et al. 2022, arXiv:2208.07339); nf4 1/2 + 4/64 (an fp32 scale for 64 elements);
 * nf4_double 1/2 + 1/64 + 4/(64 x 256) (8-bit scales, and an fp32 one for 256 of them: Dettmers et al. 2023,
 * arXiv:2305.14314, section 3). */
double dtype_bytes(enum dtype d);

/* n values to and from their stored form; fp32, tf32, fp16 and bf16, rounded to the nearest, ties to even (IEEE 754;
 * bf16 the upper half of fp32). int32: whole values. False for other formats. */
bool dtype_store(enum dtype d, const float *values, size_t n, void *out);
bool dtype_load(enum dtype d, const void *in, size_t n, float *values);
/* Bits of the significand, the leading one included: whole numbers up to 2^bits are exact. 0 for formats that
 * dtype_store does not know. */
int dtype_exact_bits(enum dtype d);

/* How numbers of a compute format lie in memory: tf32 as fp32; fp8, mxfp8 and nvfp4 are copies of bf16. */
enum dtype dtype_stored(enum dtype compute);
bool dtype_is_narrow(enum dtype d);    /* fp8, mxfp8, nvfp4 */
bool dtype_is_quantized(enum dtype d); /* int8, nf4, nf4_double */

/* By name; DT_COUNT when there is none. */
enum dtype dtype_by_name(const char *name);

#endif
