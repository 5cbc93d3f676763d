/* Which value each byte of a moment in 8 bits stands for, times its block's scale, the block's largest absolute value:
 * Dettmers' dynamic data type (2016, arXiv:1511.04561, section 2; Dettmers et al. 2022, arXiv:2110.02861, section 1.3),
 * as bitsandbytes fills it: seven decades below 1, from 10^-7 up; decade i has 2^i values of each sign, and without a
 * sign 2^(i+1), in the middles of so many equal parts of it; then 0, and 1. In rising order, so that the nearest value
 * is found by halving. With a sign, a value below 0 never becomes 0. Compiles for the host and for GPUs. */
#ifndef STEPSIM_EXEC_HOST_DYNAMIC_MAP_H
#define STEPSIM_EXEC_HOST_DYNAMIC_MAP_H

#include <stdbool.h>

#ifdef __cplusplus
#define DYNAMIC_MAP static __host__ __device__ inline
#else
#define DYNAMIC_MAP static inline
#endif

#define DYNAMIC_MAP_CODES 256
#define DYNAMIC_MAP_ZERO 127 /* the byte that is 0 where there is a sign; without one that is 0 */

DYNAMIC_MAP float dynamic_map_value(int code, bool has_sign)
{
	const int k = has_sign ? code - DYNAMIC_MAP_ZERO : code, shift = has_sign ? 0 : 1;
	int place = (k < 0 ? -k : k) + shift, parts = 1, decade = -shift;
	if (k == 0)
		return 0.0f;
	if (code == DYNAMIC_MAP_CODES - 1)
		return 1.0f;
	for (; 2 * parts <= place; parts *= 2)
		decade++;
	float x = 0.1f + 0.9f * ((float)(place - parts) + 0.5f) / (float)parts;
	for (; decade < 6; decade++)
		x /= 10.0f;
	return k < 0 ? -x : x;
}

/* The value above which the next byte is nearer. */
DYNAMIC_MAP float dynamic_map_middle(int code, bool has_sign)
{
	return 0.5f * (dynamic_map_value(code, has_sign) + dynamic_map_value(code + 1, has_sign));
}

#endif
