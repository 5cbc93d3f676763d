/* The descriptors of cuDNN's double, and the graphs that they describe. For cudnn.cc alone. */
#ifndef STEPSIM_TESTS_DOUBLES_CUDNN_DESCRIPTOR_H
#define STEPSIM_TESTS_DOUBLES_CUDNN_DESCRIPTOR_H

#include <cudnn.h>
#include <string.h>

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "tests/doubles/cudnn_graph.h"

using namespace cudnn_double;

namespace
{

struct value {
	cudnnBackendAttributeType_t type;
	int64_t n;
	std::vector<char> bytes;
};

struct plan {
	cudnnHandle_t handle;
	graph what;
	int64_t workspace_B;
};

/* What a descriptor is once it is finalized. */
struct body {
	cudnnBackendDescriptorType_t type;
	bool finalized = false;
	std::map<int, value> values;
	std::shared_ptr<plan> made; /* of an execution plan */
};

struct descriptor {
	std::shared_ptr<body> is;
};

std::mutex mutex;
std::set<descriptor *> descriptors;
std::set<cudnnHandle_t> handles;
thread_local std::string last_error;

cudnnStatus_t fail(cudnnStatus_t code, const std::string &text)
{
	last_error = text;
	return code;
}

/* NULL: no such descriptor. */
descriptor *known(cudnnBackendDescriptor_t d)
{
	std::lock_guard<std::mutex> hold(mutex);
	return descriptors.count((descriptor *)d) ? (descriptor *)d : nullptr;
}

size_t bytes_of_type(cudnnBackendAttributeType_t t)
{
	switch (t) {
	case CUDNN_TYPE_BOOLEAN: return sizeof(bool);
	case CUDNN_TYPE_CHAR: return sizeof(char);
	case CUDNN_TYPE_INT64: return sizeof(int64_t);
	case CUDNN_TYPE_DOUBLE: return sizeof(double);
	case CUDNN_TYPE_FLOAT: return sizeof(float);
	case CUDNN_TYPE_INT32: return sizeof(int32_t);
	case CUDNN_TYPE_HANDLE:
	case CUDNN_TYPE_VOID_PTR:
	case CUDNN_TYPE_BACKEND_DESCRIPTOR: return sizeof(void *);
	default: return sizeof(int); /* the enums */
	}
}

/* ---- reading descriptors ---- */

template <class T> std::vector<T> all_of(const body &d, cudnnBackendAttributeName_t name)
{
	auto found = d.values.find(name);
	std::vector<T> out;
	if (found != d.values.end() && found->second.bytes.size() == (size_t)found->second.n * sizeof(T)) {
		out.resize((size_t)found->second.n);
		memcpy((void *)out.data(), found->second.bytes.data(), found->second.bytes.size());
	}
	return out;
}

/* Bytes, as std::vector<bool> has no data(). */
bool flag_of(const body &d, cudnnBackendAttributeName_t name)
{
	std::vector<char> all = all_of<char>(d, name);
	return all.size() == 1 && all[0];
}

template <class T> T one_of(const body &d, cudnnBackendAttributeName_t name, T otherwise)
{
	std::vector<T> all = all_of<T>(d, name);
	return all.size() == 1 ? all[0] : otherwise;
}

std::shared_ptr<body> part_of(const body &d, cudnnBackendAttributeName_t name)
{
	descriptor *part = known(one_of<void *>(d, name, nullptr));
	return part ? part->is : nullptr;
}

/* A descriptor may hold finalized ones alone. */
bool parts_finalized(const body &d)
{
	for (auto &v : d.values)
		if (v.second.type == CUDNN_TYPE_BACKEND_DESCRIPTOR)
			for (int64_t i = 0; i < v.second.n; i++) {
				void *at;
				memcpy(&at, v.second.bytes.data() + (size_t)i * sizeof at, sizeof at);
				descriptor *part = known(at);
				if (!part || !part->is->finalized)
					return false;
			}
	return true;
}

bool tensor_read(const body &d, tensor &t)
{
	std::vector<int64_t> dim = all_of<int64_t>(d, CUDNN_ATTR_TENSOR_DIMENSIONS),
			     stride = all_of<int64_t>(d, CUDNN_ATTR_TENSOR_STRIDES);
	t.uid = one_of<int64_t>(d, CUDNN_ATTR_TENSOR_UNIQUE_ID, -1);
	t.alignment_B = one_of<int64_t>(d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, 0);
	t.type = one_of<cudnnDataType_t>(d, CUDNN_ATTR_TENSOR_DATA_TYPE, (cudnnDataType_t)-1);
	t.is_virtual = flag_of(d, CUDNN_ATTR_TENSOR_IS_VIRTUAL);
	t.by_value = flag_of(d, CUDNN_ATTR_TENSOR_IS_BY_VALUE);
	if (dim.size() != DIMS || stride.size() != DIMS || t.uid < 0 || t.alignment_B < 1 || !bytes_of(t.type))
		return false;
	for (int i = 0; i < DIMS; i++) {
		t.dim[i] = dim[(size_t)i];
		t.stride[i] = stride[(size_t)i];
		if (t.dim[i] < 1 || t.stride[i] < 1)
			return false;
	}
	return true;
}

/* An op's descriptor: what it is, the descriptor that says how, its mode there, its tensors; in[0] has to be there. */
const struct op_row {
	cudnnBackendDescriptorType_t type;
	kind what;
	cudnnBackendAttributeName_t how, mode, in[3], out;
} op_rows[] = {
	{CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, MATMUL, CUDNN_ATTR_OPERATION_MATMUL_DESC,
		CUDNN_ATTR_MATMUL_COMP_TYPE, {CUDNN_ATTR_OPERATION_MATMUL_ADESC, CUDNN_ATTR_OPERATION_MATMUL_BDESC},
		CUDNN_ATTR_OPERATION_MATMUL_CDESC},
	{CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, POINTWISE, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR,
		CUDNN_ATTR_POINTWISE_MODE,
		{CUDNN_ATTR_OPERATION_POINTWISE_XDESC, CUDNN_ATTR_OPERATION_POINTWISE_BDESC,
			CUDNN_ATTR_OPERATION_POINTWISE_TDESC},
		CUDNN_ATTR_OPERATION_POINTWISE_YDESC},
	{CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR, REDUCTION, CUDNN_ATTR_OPERATION_REDUCTION_DESC,
		CUDNN_ATTR_REDUCTION_OPERATOR, {CUDNN_ATTR_OPERATION_REDUCTION_XDESC},
		CUDNN_ATTR_OPERATION_REDUCTION_YDESC},
	{CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR, RESHAPE, (cudnnBackendAttributeName_t)0,
		(cudnnBackendAttributeName_t)0, {CUDNN_ATTR_OPERATION_RESHAPE_XDESC},
		CUDNN_ATTR_OPERATION_RESHAPE_YDESC},
};

const op_row *row_of(cudnnBackendDescriptorType_t type)
{
	for (const op_row &row : op_rows)
		if (row.type == type)
			return &row;
	return nullptr;
}

/* Adds the tensor to the graph; false where it is not one, or another has its number. */
bool graph_tensor(graph &g, const std::shared_ptr<body> &d, int64_t &uid)
{
	tensor t;
	if (!d || d->type != CUDNN_BACKEND_TENSOR_DESCRIPTOR || !tensor_read(*d, t))
		return false;
	uid = t.uid;
	auto there = g.tensors.insert({t.uid, t});
	return there.second || memcmp(&there.first->second.dim, &t.dim, sizeof t.dim) == 0;
}

bool graph_op(graph &g, const body &d)
{
	const op_row *row = row_of(d.type);
	operation op = {};
	if (!row)
		return false;
	op.what = row->what;
	op.alpha1 = one_of<float>(d, CUDNN_ATTR_OPERATION_POINTWISE_ALPHA1, 1);
	op.alpha2 = one_of<float>(d, CUDNN_ATTR_OPERATION_POINTWISE_ALPHA2, 1);
	if (row->how) {
		std::shared_ptr<body> how = part_of(d, row->how);
		if (!how)
			return false;
		op.mode = one_of<int>(*how, row->mode, -1);
		op.axis = one_of<int64_t>(*how, CUDNN_ATTR_POINTWISE_AXIS, -1);
		if (op.mode < 0 || (op.what == POINTWISE && op.mode == CUDNN_POINTWISE_GEN_INDEX &&
					   (op.axis < 0 || op.axis >= DIMS)))
			return false;
	}
	for (cudnnBackendAttributeName_t name : row->in)
		if (name && d.values.count(name)) {
			op.in.push_back(0);
			if (!graph_tensor(g, part_of(d, name), op.in.back()))
				return false;
		}
	if (op.in.empty() || (op.what == MATMUL && op.in.size() != 2) || !graph_tensor(g, part_of(d, row->out), op.out))
		return false;
	g.ops.push_back(op);
	return true;
}

/* False where an op is none, or lacks something. */
bool graph_read(const body &d, graph &g)
{
	for (void *at : all_of<void *>(d, CUDNN_ATTR_OPERATIONGRAPH_OPS))
		if (!known(at) || !graph_op(g, *known(at)->is))
			return false;
	return !g.ops.empty();
}

} // namespace

#endif
