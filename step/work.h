/* How an op is measured and priced: the name of its entry in a profile, and the terms of its time. Pure functions of the op, shared by calibration
 * (which fits coefficients to terms) and by the cost model (which multiplies them back). No costs here.
 *
 * Two forms:
 * - FORM_FIT: time = sum over i of coefficient[i] x term[i], non-negative coefficients with a physical meaning each.
 *     gemm.nn / gemm.nt / gemm.tn   terms: 1 (a call), 2mnk (FLOP), mk (reading and packing A), kn (B), mn (C; counted twice with OP_ACCUMULATE)
 *     attention, attention_grad     terms: 1, pairs x D x heads (matrix FLOP / 4), pairs x heads (softmax), b s (H + 2K) D (reading and writing rows), b H (tasks)
 *     attn_scores, attn_values, attn_*_grad (naive)   terms: 1, b H s s D, b H s s, b s H D, b H
 *   pairs: (query, key) pairs that the kernel computes: s s for naive; for flash those of whole tiles of FLASH_TILE queries, with OP_CAUSAL each with the keys up to its end.
 * - FORM_CURVE: time = call + elements x curve(footprint in bytes), seconds an element, interpolated in log-log; beyond the ends the end value.
 *     everything else that computes; elements = rows x columns of the widest argument.
 */
#ifndef STEPSIM_STEP_WORK_H
#define STEPSIM_STEP_WORK_H

#include "step/program.h"

enum work_form { FORM_NONE /* collectives, copies */, FORM_FIT, FORM_CURVE };

#define WORK_TERMS 5
#define WORK_NAME 48
#define FLASH_TILE 64 /* rows and columns of a tile of the flash kernels whose time this describes */
#define FLASH_LANES 16 /* to whole multiples of which their gradient pads D */

struct work {
	enum work_form form;
	char name[WORK_NAME]; /* "gemm.nt", "norm.layernorm", "act.gelu", "optimizer.adamw", "optimizer.adamw.unfused", "fill", ... */
	double term[WORK_TERMS];
	double elements, footprint_B; /* FORM_CURVE */
};
void work_of(const struct op *op, struct work *out);

#endif
