/* How an op is measured and priced: the name of its entry in a profile, and the terms of its time. Pure functions of the op and of the device it runs on, shared by calibration
 * (which fits coefficients to terms) and by the cost model (which multiplies them back). No costs here.
 *
 * Two forms. On the host's cores:
 * - FORM_FIT: time = sum over i of coefficient[i] x term[i], non-negative coefficients with a physical meaning each.
 *     gemm.nn / gemm.nt / gemm.tn   terms: 1 (a call), 2mnk (FLOP), mk (reading and packing A), kn (B), mn (C; counted twice with OP_ACCUMULATE)
 *     attention, attention_grad     terms: 1, pairs x D x heads (matrix FLOP / 4), pairs x heads (softmax), b s (H + 2K) D (reading and writing rows), b H (tasks)
 *     attn_scores, attn_values, attn_*_grad (naive)   terms: 1, b H s s D, b H s s, b s H D, b H
 *   pairs: (query, key) pairs that the kernel computes: s s for naive; for flash those of whole tiles of FLASH_TILE queries, with OP_CAUSAL each with the keys up to its end.
 * - FORM_CURVE: time = call + elements x curve(footprint in bytes), seconds an element, interpolated in log-log; beyond the ends the end value.
 *     everything else that computes; elements = rows x columns of the widest argument.
 *
 * On a GPU memory is no term: time = max(sum, bytes / memory bandwidth). Names carry the format of the operands. The sum:
 *     gemm.nt.bf16, ...             terms: 1 (the kernel), padded FLOP, padded area (FLOP without K: what a tile costs before and after its loop over K, so that time ~ K + k0)
 *       padded FLOP: C is cut into tiles, a CTA an SM; of the tiles that cuBLAS has, and of K split among 1 to 8 CTAs, the least of  waves x SMs x FLOP of a tile / its relative efficiency
 *       (NVIDIA, "Matrix Multiplication Background User's Guide", DU-09799: tile and wave quantisation). The first wave is whole. Of a later one that is not full half the idle part counts: stream-K
 *       and smaller last tiles win back some of it. Splitting adds GEMM_SPLIT_K to each part's K. Never falls as m, n or k grow; padded area: the same with no split and K = 1.
 *     attention.bf16.128, ...       terms: 1, FLOP of its products over the (query, key) pairs left by OP_CAUSAL and half a diagonal tile of FLASH_GPU_TILE, bytes of its arguments. The last part of the name is the
 *                                   head dim that the kernel pads to (64, 128, 256), which the FLOP have too
 *     attn_scores.bf16, ...         terms: 1, FLOP, elements of the scores
 *   and FORM_CURVE has elements = bytes moved: seconds a byte against footprint, shared by all formats.
 */
#ifndef STEPSIM_STEP_WORK_H
#define STEPSIM_STEP_WORK_H

#include "step/program.h"

enum work_form { FORM_NONE /* collectives, copies */, FORM_FIT, FORM_CURVE };

#define WORK_TERMS 5
#define WORK_NAME 48
#define FLASH_TILE 64 /* rows and columns of a tile of the flash kernels whose time this describes */
#define FLASH_LANES 16 /* to whole multiples of which their gradient pads D */
#define FLASH_GPU_TILE 128
#define GEMM_SPLIT_K 512.0

/* NULL, or gpu false: the host's cores. */
struct work_device {
	bool gpu;
	int64_t sms;
};

struct work {
	enum work_form form;
	char name[WORK_NAME]; /* "gemm.nt", on a GPU "gemm.nt.bf16"; "norm.layernorm", "act.gelu", "optimizer.adamw", "optimizer.adamw.unfused", "fill", ... */
	double term[WORK_TERMS];
	double elements, footprint_B; /* FORM_CURVE */
};
void work_of(const struct op *op, const struct work_device *device, struct work *out);

#endif
