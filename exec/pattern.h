/* The whole numbers that verification puts into buffers: the same on the host (exec/verify.c) and on a GPU
 * (exec/cuda/kernels_check.cu), so that a device may fill and check its memory itself. */
#ifndef STEPSIM_EXEC_PATTERN_H
#define STEPSIM_EXEC_PATTERN_H

#include <stdbool.h>
#include <stdint.h>

#define PATTERN_BITS 6 /* values below 64: sums over up to 2^18 members are exact in fp32 */

/* Element i of a buffer holds the sum, or with `max` the largest, of what members first, first + stride, ... have at
 * element + i of op `op`, each value below 1 << bits: fewer than PATTERN_BITS bits where sums have to be exact in a
 * narrow format. */
struct pattern {
	uint32_t op;
	int64_t first, stride, members; /* ranks */
	bool max;
	uint64_t element; /* number of the buffer's first element */
	int bits;
};

#endif
