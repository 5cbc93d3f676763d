/* Attention as graphs of cuDNN's nodes, as tables: NVIDIA's composite graph (cudnn-frontend, scaled_dot_product_flash
 * attention and its backward), of products, pointwise nodes and reductions over tensors that are never in memory.
 * attention_cudnn.c makes descriptors of the rows. A node is left out where `when` does not hold. */
#ifndef STEPSIM_EXEC_CUDA_ATTENTION_GRAPH_H
#define STEPSIM_EXEC_CUDA_ATTENTION_GRAPH_H

#include <stdint.h>

/* Dimensions and strides in values; cuDNN takes batch, heads, rows, columns. In qkv a row of W = (H + 2 K) D values
 * holds all heads of a token. */
enum shape { QKV_ROWS, QKV_COLS, OUT_ROWS, SCORES, SCORES_COLS, STATISTIC, HEADS_FULL, OUT_PRODUCT, ONE_VALUE };
enum place {
	VIRTUAL,   /* never in memory */
	ARGUMENT,  /* of the op; qkv and dqkv from `part` on */
	WORKSPACE, /* behind the plan's own workspace */
	CONSTANT,  /* by value */
};
enum format { AS_STORED, FLOAT, INT, BOOL };
enum part { WHOLE, Q_PART, K_PART, V_PART };
enum constant { SOFTMAX_SCALE, MASKED, ONE, CONSTANT_COUNT };

struct tensor_row {
	const char *name;
	uint8_t shape, format, place;
	uint8_t arg; /* ARGUMENT: of the op; CONSTANT: which */
	uint8_t part;
};

enum node_kind { MATMUL, POINTWISE, REDUCE, RESHAPE, SAME /* y is another name of x */ };
enum when { ALWAYS, CAUSAL, NOT_CAUSAL, GROUPED, NOT_GROUPED };

struct node_row {
	uint8_t kind, when;
	int mode;          /* POINTWISE: cudnnPointwiseMode_t; REDUCE: cudnnReduceTensorOp_t */
	int8_t x, b, t, y; /* tensors; -1: none */
	uint8_t compute;   /* enum format */
	int8_t axis;       /* of GEN_INDEX, else -1 */
};

#define MAX_TENSORS 40
#define MAX_NODES 40

struct attention_graph {
	const struct tensor_row *tensors;
	const struct node_row *nodes;
	int n_tensors, n_nodes;
};
extern const struct attention_graph attention_forward_graph, attention_grad_graph;

#endif
