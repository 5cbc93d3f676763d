/* Traffic of PyTorch's operators where nothing fuses them, counted kernel by kernel: how often their kernels read or
 * write each element, in the operands' format and in fp32. A family of stacks counts them (configs/families, mapping
 * `operators`); a stack with elementwise_passes of its own has that number for all ops instead.
 */
#ifndef STEPSIM_STEP_OPERATORS_H
#define STEPSIM_STEP_OPERATORS_H

#include <stdbool.h>

#include "base/yaml.h"

/* X(id, name). Those with _grad are what autograd runs for the one before. */
#define OPERATORS(X) \
	X(LAYER_NORM, layer_norm) \
	X(LAYER_NORM_GRAD, layer_norm_grad) \
	X(RMS_NORM, rms_norm) \
	X(RMS_NORM_GRAD, rms_norm_grad) \
	X(RESIDUAL, residual) /* a sum with the residual stream, or with its gradient */ \
	X(BIAS, bias) \
	X(BIAS_GRAD, bias_grad) \
	X(ACTIVATION, activation) \
	X(ACTIVATION_GRAD, activation_grad) \
	/* a gelu by the tanh form that a model writes out in operators; in place of the two before */ \
	X(COMPOSED_GELU, composed_gelu) \
	X(COMPOSED_GELU_GRAD, composed_gelu_grad) \
	/* the same as one kernel each (train.fused_kernels), in place of rms_norm, rotary, activation and gate; a \
	 * norm of heads casts nothing for products */ \
	X(FUSED_NORM, fused_norm) \
	X(FUSED_NORM_GRAD, fused_norm_grad) \
	X(FUSED_QK_NORM, fused_qk_norm) \
	X(FUSED_QK_NORM_GRAD, fused_qk_norm_grad) \
	X(FUSED_ROTARY, fused_rotary) \
	X(FUSED_ROTARY_GRAD, fused_rotary_grad) \
	X(FUSED_GATE, fused_gate) \
	X(FUSED_GATE_GRAD, fused_gate_grad) \
	/* PyTorch's own kernel of an RMS norm, likewise */ \
	X(TORCH_NORM, torch_norm) \
	X(TORCH_NORM_GRAD, torch_norm_grad) \
	X(TORCH_QK_NORM, torch_qk_norm) \
	X(TORCH_QK_NORM_GRAD, torch_qk_norm_grad) \
	X(GATE, gate) /* the activation times the other half */ \
	X(GATE_GRAD, gate_grad) \
	/* besides these two: clamps of gpt-oss's experts, its own swish, and their biases, row by row */ \
	X(CLAMPED_GATE, clamped_gate) \
	X(CLAMPED_GATE_GRAD, clamped_gate_grad) \
	X(ROTARY, rotary) \
	X(ROTARY_GRAD, rotary_grad) \
	/* the same by complex numbers, in place of the two before */ \
	X(COMPLEX_ROTARY, complex_rotary) \
	X(COMPLEX_ROTARY_GRAD, complex_rotary_grad) \
	X(MODULATION, modulation) /* a norm without weights, scaled and shifted by a sequence's own numbers */ \
	X(MODULATION_GRAD, modulation_grad) \
	X(GATED_RESIDUAL, gated_residual) \
	X(GATED_RESIDUAL_GRAD, gated_residual_grad) \
	/* of stored scores; fp16 and others have kernels of their own under autocast */ \
	X(SOFTMAX, softmax) \
	X(SOFTMAX_GRAD, softmax_grad) \
	X(SOFTMAX_FP16, softmax_fp16) \
	X(SOFTMAX_FP16_GRAD, softmax_fp16_grad) \
	X(SCALE, scale) /* of scores, and the same of their gradients; as the next */ \
	X(MASK, mask) \
	/* of what a batched product over heads reads or writes beside the scores */ \
	X(HEADS, heads) \
	/* around the products of an adapter's factors: enum adapter_part */ \
	X(ADAPTER_SUM, adapter_sum) \
	X(ADAPTER_SUM_GRAD, adapter_sum_grad) \
	X(ADAPTER_INPUT, adapter_input) \
	X(ADAPTER_INPUT_GRAD, adapter_input_grad) \
	/* the same where they multiply in fp32 between 16-bit products (train.lora_dtype), in the same order */ \
	X(WIDE_ADAPTER_SUM, wide_adapter_sum) \
	X(WIDE_ADAPTER_SUM_GRAD, wide_adapter_sum_grad) \
	X(WIDE_ADAPTER_INPUT, wide_adapter_input) \
	X(WIDE_ADAPTER_INPUT_GRAD, wide_adapter_input_grad) \
	X(EMBED_GRAD, embed_grad) /* of rows alone: zeros of the table are an op of their own */ \
	/* the loss, whose bytes are the stack's number logit; last, and only in `unvectorized` */ \
	X(LOGITS, logits)

#define OPERATOR_ID(id, name) OPERATOR_##id,
enum operator_kind { OPERATOR_NONE, OPERATORS(OPERATOR_ID) OPERATOR_COUNT };
#undef OPERATOR_ID

/* Reads or writes of an element. */
struct accesses {
	double operand, fp32;
};

/* Those of an operator's kernels that PyTorch does not vectorize (parameters->gpu.unvectorized): casts to a wider
 * format, and kernels whose operands are broadcast or lie in other orders. */
struct unvectorized {
	double passes;            /* over the elements */
	struct accesses accesses; /* of the operator's, what is theirs */
};

struct operators {
	bool counted;                          /* false: nobody counted them */
	struct accesses of[OPERATOR_COUNT][2]; /* without autocast, under it */
	struct unvectorized unvectorized[OPERATOR_COUNT][2];
	struct accesses reduced[OPERATOR_COUNT][2]; /* of those, what kernels read and write that sum rows or columns */
	double kernels[OPERATOR_COUNT][2];          /* kernels that start and drain one after the other; 0: one */
};

/* What may be one kernel though train.fused does not hold. Bits of train.fused_kernels. */
enum fused_kernel {
	FUSE_NORM = 1,       /* an RMS norm, in Triton */
	FUSE_ROTARY = 2,     /* the rotation of queries and keys */
	FUSE_GATE = 4,       /* a gate: the activation and its product with the other half */
	FUSE_TORCH_NORM = 8, /* an RMS norm by torch.nn.RMSNorm of PyTorch 2.9 and newer */
	FUSE_COUNT = 4
};

/* "layer_norm"; k above OPERATOR_NONE. */
const char *operator_name(enum operator_kind k);

/* Sets how many kernels of the loss cast logits to fp32. */
void operators_set_logit_casts(struct operators *o, double casts);

struct op;
struct stack;

/* Reads a mapping of all operators, {name: {value: [operand, fp32, operand, fp32], source}}: without autocast, then
 * under it. Where they are counted already, by the stack's family, it may have some in place of those. ST_INPUT with
 * position: an unknown or missing name, other than four numbers. */
enum status operators_read(const struct ynode *map, struct operators *out, struct error *e);

/* Reads a mapping of some operators, {name: {value: [passes, operand, fp32, passes, operand, fp32], source}}: their
 * kernels that are not vectorized, without autocast, then under it. ST_INPUT as above. */
enum status operators_read_unvectorized(const struct ynode *map, struct operators *out, struct error *e);

/* Reads a mapping of some operators as operators_read: what their kernels that sum rows or columns access. */
enum status operators_read_reductions(const struct ynode *map, struct operators *out, struct error *e);

/* Reads a mapping of some operators, {name: {value: [kernels, kernels], source}}: how many kernels they are, without
 * autocast, then under it. ST_INPUT as above. */
enum status operators_read_kernels(const struct ynode *map, struct operators *out, struct error *e);

/* Returns the elements that an elementwise op, a norm, softmax or an embedding works on. */
double operators_elements(const struct op *op);

/* Returns the bytes that the kernels of an op move; below 0 where its kind, or its stack, is not counted. */
double operators_B(const struct op *op, const struct stack *s);

/* Returns the bytes of the kernels around the product of an adapter's factor; 0 where nobody counted them. */
double operators_adapter_B(const struct op *op, const struct stack *s);

/* What kernels that are not vectorized do: elements that they pass, and the bytes that they move, which are part of
 * operators_B or operators_adapter_B. */
struct slow_kernels {
	double elements, bytes;
};
struct slow_kernels operators_unvectorized(const struct op *op, const struct stack *s);

/* Returns how many kernels an op is: one where nobody counted them. Queries and keys have a norm each. */
double operators_kernels(const struct op *op, const struct stack *s);

/* Returns the bytes that kernels move which sum rows or columns, part of operators_B. */
double operators_reduced_B(const struct op *op, const struct stack *s);

/* Returns the bytes of the kernels that put heads in order around a naive product; 0 where nobody counted them. */
double operators_heads_B(const struct op *op, const struct stack *s);

#endif
