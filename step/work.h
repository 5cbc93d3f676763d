/* The form in which an op is measured and priced: the name of its entry in a profile, and the terms of its time. These
 * are pure functions of the op and its device. Calibration fits coefficients to the terms, and the cost model
 * multiplies them back. The row of a kind in step/ops.def says which form it takes.
 *
 * On the host's cores
 *   FORM_FIT    time = sum over i of coefficient[i] x term[i]. Coefficients are non-negative and physical.
 *     gemm.nn, gemm.nt, gemm.tn
 *         1 (a call), 2mnk (FLOP), mk (reading and packing A), kn (B), mn (C; twice with OP_ACCUMULATE)
 *     attention, attention_grad
 *         1, pairs x head_dim x heads (matrix FLOP / 4), pairs x heads (softmax),
 *         batch seq (heads + 2 kv_heads) head_dim (reading and writing rows), batch x heads (tasks)
 *     attn_scores, attn_values, attn_*_grad (naive)
 *         1, batch heads seq keys head_dim, batch heads seq keys, batch seq heads head_dim, batch x heads
 *     ssm_scan, ssm_scan_grad, delta_scan, delta_scan_grad
 *         1, rows x channels x state, rows x channels, rows x groups x state, batch x heads (tasks)
 *     pairs are the (query, key) pairs that the flash kernel computes: those of whole tiles of FLASH_TILE queries. With
 *     OP_CAUSAL each tile has the keys up to its end.
 *   FORM_CURVE  time = call + elements x curve(footprint in bytes). The curve has seconds an element, interpolated in
 *               log-log, constant beyond its ends. Everything else that computes has this form.
 *
 * On a GPU
 *   FORM_FIT    time = max(sum, bytes / memory bandwidth): memory is no term. Names carry the operands' format.
 *     gemm.nt.bf16, ...
 *         1 (the kernel), padded FLOP, padded area (FLOP without K: the cost of a tile before and after its loop over
 *         K, so that time ~ K + k0). Both are full_flop of tiles_of (step/tiles.h), the area with K = 1.
 *     attention.bf16.128, ...
 *         1, FLOP of its products over the (query, key) pairs left by OP_CAUSAL and half a diagonal tile
 *         (tiles.attention), bytes of its arguments with keys and values for each head. The name ends in the head
 *         dim that the kernel pads to (64, 128, 256), and the FLOP count that padding too.
 *     attn_scores.bf16, ...
 *         1, FLOP, elements of the scores
 *     ssm_scan.bf16, delta_scan.bf16, ...
 *         1, FLOP, bytes of its kernels
 *   FORM_CURVE  elements = bytes moved. The curve has seconds a byte against footprint; all formats share it. No
 *               footprint is priced faster than the largest one, which no cache held while it was timed.
 */
#ifndef STEPSIM_STEP_WORK_H
#define STEPSIM_STEP_WORK_H

#include "step/op.h"
#include "step/tiles.h"

enum work_form { FORM_NONE /* collectives, copies */, FORM_FIT, FORM_CURVE };

#define WORK_TERMS 5
#define WORK_NAME 48
#define FLASH_TILE 64  /* rows and columns of a tile of the flash kernels whose time this describes */
#define FLASH_LANES 16 /* to whole multiples of which their gradient pads D */

/* The device of work_of. NULL, or gpu false, stands for the host's cores. */
struct work_device {
	bool gpu;
	int64_t sms;
	struct tile_model tiles;
};

struct work {
	enum work_form form;
	char name[WORK_NAME]; /* "gemm.nt", on a GPU "gemm.nt.bf16"; "norm.layernorm", "act.gelu", "optimizer.adamw",
	                         "optimizer.adamw.unfused", "fill", ... */
	double term[WORK_TERMS];
	double elements, footprint_B; /* FORM_CURVE */
};
/* Fills the form of an op on a device. */
void work_of(const struct op *op, const struct work_device *device, struct work *out);

#endif
