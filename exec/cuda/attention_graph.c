#include "exec/cuda/attention_graph.h"

#include <assert.h>

#include <cudnn.h>

#include "base/array.h"

#define POINT1(mode, x, y) \
	{ \
		POINTWISE, ALWAYS, mode, x, -1, -1, y, FLOAT, -1 \
	}
#define POINT2(mode, x, b, y) \
	{ \
		POINTWISE, ALWAYS, mode, x, b, -1, y, FLOAT, -1 \
	}
#define SUM_OR_MAX(mode, x, y) \
	{ \
		REDUCE, ALWAYS, mode, x, -1, -1, y, FLOAT, -1 \
	}
#define PRODUCT(x, b, y) \
	{ \
		MATMUL, ALWAYS, 0, x, b, -1, y, FLOAT, -1 \
	}
#define VIEW(x, y) \
	{ \
		RESHAPE, ALWAYS, 0, x, -1, -1, y, FLOAT, -1 \
	}
#define NAME_OF(when, x, y) \
	{ \
		SAME, when, 0, x, -1, -1, y, FLOAT, -1 \
	}
/* y = row >= column ? x : masked */
#define CAUSAL_MASK(x, row, col, keep, masked, y) \
	{POINTWISE, CAUSAL, CUDNN_POINTWISE_GEN_INDEX, x, -1, -1, row, FLOAT, 2}, \
		{POINTWISE, CAUSAL, CUDNN_POINTWISE_GEN_INDEX, x, -1, -1, col, FLOAT, 3}, \
		{POINTWISE, CAUSAL, CUDNN_POINTWISE_CMP_GE, row, col, -1, keep, BOOL, -1}, \
		{POINTWISE, CAUSAL, CUDNN_POINTWISE_BINARY_SELECT, x, masked, keep, y, FLOAT, -1}, \
	{ \
		SAME, NOT_CAUSAL, 0, x, -1, -1, y, FLOAT, -1 \
	}

enum forward_tensor {
	F_Q,
	F_KT,
	F_V,
	F_SCALE,
	F_NEVER,
	F_S,
	F_SCALED,
	F_ROW,
	F_COL,
	F_KEEP,
	F_MASKED,
	F_MAX,
	F_SHIFTED,
	F_EXP,
	F_SUM,
	F_LOG,
	F_LSE,
	F_P,
	F_OUT,
	F_COUNT
};
static const struct tensor_row forward_tensors[] = {
	[F_Q] = {"q", QKV_ROWS, AS_STORED, ARGUMENT, 0, Q_PART},
	[F_KT] = {"k transposed", QKV_COLS, AS_STORED, ARGUMENT, 0, K_PART},
	[F_V] = {"v", QKV_ROWS, AS_STORED, ARGUMENT, 0, V_PART},
	[F_SCALE] = {"scale", ONE_VALUE, FLOAT, CONSTANT, SOFTMAX_SCALE, WHOLE},
	[F_NEVER] = {"masked", ONE_VALUE, FLOAT, CONSTANT, MASKED, WHOLE},
	[F_S] = {"scores", SCORES, FLOAT, VIRTUAL, 0, WHOLE},
	[F_SCALED] = {"scaled scores", SCORES, FLOAT, VIRTUAL, 0, WHOLE},
	[F_ROW] = {"row", SCORES, INT, VIRTUAL, 0, WHOLE},
	[F_COL] = {"column", SCORES, INT, VIRTUAL, 0, WHOLE},
	[F_KEEP] = {"row >= column", SCORES, BOOL, VIRTUAL, 0, WHOLE},
	[F_MASKED] = {"masked scores", SCORES, FLOAT, VIRTUAL, 0, WHOLE},
	[F_MAX] = {"row maxima", STATISTIC, FLOAT, VIRTUAL, 0, WHOLE},
	[F_SHIFTED] = {"scores - max", SCORES, FLOAT, VIRTUAL, 0, WHOLE},
	[F_EXP] = {"exponentials", SCORES, FLOAT, VIRTUAL, 0, WHOLE},
	[F_SUM] = {"row sums", STATISTIC, FLOAT, VIRTUAL, 0, WHOLE},
	[F_LOG] = {"log of row sums", STATISTIC, FLOAT, VIRTUAL, 0, WHOLE},
	[F_LSE] = {"lse", STATISTIC, FLOAT, ARGUMENT, 2, WHOLE},
	[F_P] = {"probabilities", SCORES, AS_STORED, VIRTUAL, 0, WHOLE},
	[F_OUT] = {"out", OUT_ROWS, AS_STORED, ARGUMENT, 1, WHOLE},
};
static const struct node_row forward_nodes[] = {
	PRODUCT(F_Q, F_KT, F_S),
	POINT2(CUDNN_POINTWISE_MUL, F_S, F_SCALE, F_SCALED),
	CAUSAL_MASK(F_SCALED, F_ROW, F_COL, F_KEEP, F_NEVER, F_MASKED),
	SUM_OR_MAX(CUDNN_REDUCE_TENSOR_MAX, F_MASKED, F_MAX),
	POINT2(CUDNN_POINTWISE_SUB, F_MASKED, F_MAX, F_SHIFTED),
	POINT1(CUDNN_POINTWISE_EXP, F_SHIFTED, F_EXP),
	SUM_OR_MAX(CUDNN_REDUCE_TENSOR_ADD, F_EXP, F_SUM),
	POINT1(CUDNN_POINTWISE_LOG, F_SUM, F_LOG),
	POINT2(CUDNN_POINTWISE_ADD, F_MAX, F_LOG, F_LSE),
	POINT2(CUDNN_POINTWISE_DIV, F_EXP, F_SUM, F_P),
	PRODUCT(F_P, F_V, F_OUT),
};

enum grad_tensor {
	G_Q,
	G_KT,
	G_VT,
	G_OUT,
	G_DOUT,
	G_LSE,
	G_DELTA,
	G_DQ,
	G_DK,
	G_DV,
	G_SCALE,
	G_NEVER,
	G_ONE,
	G_DOUT_OUT,
	G_ROW_SUM,
	G_S,
	G_SCALED,
	G_SHIFTED,
	G_ROW,
	G_COL,
	G_KEEP,
	G_MASKED,
	G_P,
	G_PT,
	G_DV_FULL,
	G_DP,
	G_DP_DELTA,
	G_DP_P,
	G_DS,
	G_DST,
	G_DK_FULL,
	G_K,
	G_DQ_SUM,
	G_COUNT
};
static const struct tensor_row grad_tensors[] = {
	[G_Q] = {"q", QKV_ROWS, AS_STORED, ARGUMENT, 0, Q_PART},
	[G_KT] = {"k transposed", QKV_COLS, AS_STORED, ARGUMENT, 0, K_PART},
	[G_VT] = {"v transposed", QKV_COLS, AS_STORED, ARGUMENT, 0, V_PART},
	[G_OUT] = {"out", OUT_ROWS, AS_STORED, ARGUMENT, 1, WHOLE},
	[G_DOUT] = {"dout", OUT_ROWS, AS_STORED, ARGUMENT, 3, WHOLE},
	[G_LSE] = {"lse", STATISTIC, FLOAT, ARGUMENT, 2, WHOLE},
	[G_DELTA] = {"delta", STATISTIC, FLOAT, ARGUMENT, 4, WHOLE},
	[G_DQ] = {"dq", QKV_ROWS, AS_STORED, ARGUMENT, 5, Q_PART},
	[G_DK] = {"dk", QKV_ROWS, AS_STORED, ARGUMENT, 5, K_PART},
	[G_DV] = {"dv", QKV_ROWS, AS_STORED, ARGUMENT, 5, V_PART},
	[G_SCALE] = {"scale", ONE_VALUE, FLOAT, CONSTANT, SOFTMAX_SCALE, WHOLE},
	[G_NEVER] = {"masked", ONE_VALUE, FLOAT, CONSTANT, MASKED, WHOLE},
	[G_ONE] = {"1", ONE_VALUE, FLOAT, CONSTANT, ONE, WHOLE},
	[G_DOUT_OUT] = {"dout x out", OUT_PRODUCT, FLOAT, VIRTUAL, 0, WHOLE},
	[G_ROW_SUM] = {"row sums of dout x out", STATISTIC, FLOAT, VIRTUAL, 0, WHOLE},
	[G_S] = {"scores", SCORES, FLOAT, VIRTUAL, 0, WHOLE},
	[G_SCALED] = {"scaled scores", SCORES, FLOAT, VIRTUAL, 0, WHOLE},
	[G_SHIFTED] = {"scores - lse", SCORES, FLOAT, VIRTUAL, 0, WHOLE},
	[G_ROW] = {"row", SCORES, INT, VIRTUAL, 0, WHOLE},
	[G_COL] = {"column", SCORES, INT, VIRTUAL, 0, WHOLE},
	[G_KEEP] = {"row >= column", SCORES, BOOL, VIRTUAL, 0, WHOLE},
	[G_MASKED] = {"masked scores", SCORES, FLOAT, VIRTUAL, 0, WHOLE},
	[G_P] = {"probabilities", SCORES, FLOAT, VIRTUAL, 0, WHOLE},
	[G_PT] = {"probabilities transposed", SCORES_COLS, AS_STORED, VIRTUAL, 0, WHOLE},
	[G_DV_FULL] = {"dv of each query head", HEADS_FULL, AS_STORED, VIRTUAL, 0, WHOLE},
	[G_DP] = {"dp", SCORES, FLOAT, VIRTUAL, 0, WHOLE},
	[G_DP_DELTA] = {"dp - delta", SCORES, FLOAT, VIRTUAL, 0, WHOLE},
	[G_DP_P] = {"(dp - delta) p", SCORES, FLOAT, VIRTUAL, 0, WHOLE},
	[G_DS] = {"ds", SCORES, FLOAT, VIRTUAL, 0, WHOLE},
	[G_DST] = {"ds transposed", SCORES_COLS, AS_STORED, VIRTUAL, 0, WHOLE},
	[G_DK_FULL] = {"dk of each query head", HEADS_FULL, AS_STORED, VIRTUAL, 0, WHOLE},
	[G_K] = {"k", QKV_ROWS, AS_STORED, VIRTUAL, 0, K_PART},
	[G_DQ_SUM] = {"sum of dq", HEADS_FULL, FLOAT, WORKSPACE, 0, WHOLE},
};
static const struct node_row grad_nodes[] = {
	/* delta; the engines know the pattern with a factor, which dropout needs */
	POINT2(CUDNN_POINTWISE_MUL, G_DOUT, G_OUT, G_DOUT_OUT),
	SUM_OR_MAX(CUDNN_REDUCE_TENSOR_ADD, G_DOUT_OUT, G_ROW_SUM),
	POINT2(CUDNN_POINTWISE_MUL, G_ROW_SUM, G_ONE, G_DELTA),
	/* P = exp(S - lse); dV = P^T dO */
	PRODUCT(G_Q, G_KT, G_S),
	POINT2(CUDNN_POINTWISE_MUL, G_S, G_SCALE, G_SCALED),
	POINT2(CUDNN_POINTWISE_SUB, G_SCALED, G_LSE, G_SHIFTED),
	CAUSAL_MASK(G_SHIFTED, G_ROW, G_COL, G_KEEP, G_NEVER, G_MASKED),
	POINT1(CUDNN_POINTWISE_EXP, G_MASKED, G_P),
	VIEW(G_P, G_PT),
	NAME_OF(NOT_GROUPED, G_DV, G_DV_FULL),
	PRODUCT(G_PT, G_DOUT, G_DV_FULL),
	{REDUCE, GROUPED, CUDNN_REDUCE_TENSOR_ADD, G_DV_FULL, -1, -1, G_DV, FLOAT, -1},
	/* dS = P x (dO V^T - delta) x scale; dK = dS^T Q */
	PRODUCT(G_DOUT, G_VT, G_DP),
	POINT2(CUDNN_POINTWISE_SUB, G_DP, G_DELTA, G_DP_DELTA),
	POINT2(CUDNN_POINTWISE_MUL, G_DP_DELTA, G_P, G_DP_P),
	POINT2(CUDNN_POINTWISE_MUL, G_DP_P, G_SCALE, G_DS),
	VIEW(G_DS, G_DST),
	NAME_OF(NOT_GROUPED, G_DK, G_DK_FULL),
	PRODUCT(G_DST, G_Q, G_DK_FULL),
	{REDUCE, GROUPED, CUDNN_REDUCE_TENSOR_ADD, G_DK_FULL, -1, -1, G_DK, FLOAT, -1},
	/* dQ = dS K, summed over blocks of keys in fp32 */
	VIEW(G_KT, G_K),
	PRODUCT(G_DS, G_K, G_DQ_SUM),
	POINT1(CUDNN_POINTWISE_IDENTITY, G_DQ_SUM, G_DQ),
};

static_assert(F_COUNT <= MAX_TENSORS && G_COUNT <= MAX_TENSORS, "room for every tensor");
static_assert(COUNT(forward_nodes) <= MAX_NODES && COUNT(grad_nodes) <= MAX_NODES, "room for every node");

const struct attention_graph attention_forward_graph = {forward_tensors, forward_nodes, F_COUNT, COUNT(forward_nodes)};
const struct attention_graph attention_grad_graph = {grad_tensors, grad_nodes, G_COUNT, COUNT(grad_nodes)};
