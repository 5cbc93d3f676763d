/* What a plan of cuDNN's double holds, and its execution: op after op, in fp32, from the graph's own tensors. It knows
 * nothing of attention. For cudnn.cc alone. */
#ifndef STEPSIM_TESTS_DOUBLES_CUDNN_GRAPH_H
#define STEPSIM_TESTS_DOUBLES_CUDNN_GRAPH_H

#include <cudnn.h>
#include <stdint.h>

#include <map>
#include <string>
#include <vector>

namespace cudnn_double
{

const int DIMS = 4;

struct tensor {
	int64_t uid, alignment_B;
	int64_t dim[DIMS], stride[DIMS];
	cudnnDataType_t type;
	bool is_virtual, by_value;
};

enum kind { MATMUL, POINTWISE, REDUCTION, RESHAPE };

struct operation {
	kind what;
	int mode;     /* cudnnPointwiseMode_t, cudnnReduceTensorOp_t */
	int64_t axis; /* of GEN_INDEX */
	float alpha1, alpha2;
	std::vector<int64_t> in; /* uids: x, b, t as far as there are */
	int64_t out;
};

struct graph {
	std::map<int64_t, tensor> tensors;
	std::vector<operation> ops;
};

/* Why no engine takes the graph; empty: one does. Each tensor is made by one op, before it is read, or comes from
 * outside; dimensions fit each other. */
std::string graph_refused(const graph &g);

size_t bytes_of(cudnnDataType_t type); /* 0: not known here */
int64_t extent_B(const tensor &t);     /* from the first to behind the last element */

/* `at`: by uid, of each tensor that is not virtual. */
void graph_run(const graph &g, const std::map<int64_t, void *> &at);

} // namespace cudnn_double

#endif
