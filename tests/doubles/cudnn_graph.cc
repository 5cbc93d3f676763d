#include "tests/doubles/cudnn_graph.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <math.h>
#include <string.h>

#include <algorithm>
#include <set>

namespace cudnn_double
{

/* ---- formats ---- */

size_t bytes_of(cudnnDataType_t type)
{
	switch (type) {
	case CUDNN_DATA_FLOAT:
	case CUDNN_DATA_INT32: return 4;
	case CUDNN_DATA_HALF:
	case CUDNN_DATA_BFLOAT16: return 2;
	case CUDNN_DATA_BOOLEAN: return 1;
	default: return 0;
	}
}

static float load(cudnnDataType_t type, const void *base, int64_t i)
{
	switch (type) {
	case CUDNN_DATA_HALF: return __half2float(((const __half *)base)[i]);
	case CUDNN_DATA_BFLOAT16: return __bfloat162float(((const __nv_bfloat16 *)base)[i]);
	case CUDNN_DATA_INT32: return (float)((const int32_t *)base)[i];
	case CUDNN_DATA_BOOLEAN: return ((const uint8_t *)base)[i];
	default: return ((const float *)base)[i];
	}
}

static void store(cudnnDataType_t type, void *base, int64_t i, float x)
{
	switch (type) {
	case CUDNN_DATA_HALF: ((__half *)base)[i] = __float2half_rn(x); break;
	case CUDNN_DATA_BFLOAT16: ((__nv_bfloat16 *)base)[i] = __float2bfloat16_rn(x); break;
	case CUDNN_DATA_INT32: ((int32_t *)base)[i] = (int32_t)x; break;
	case CUDNN_DATA_BOOLEAN: ((uint8_t *)base)[i] = x != 0.0f; break;
	default: ((float *)base)[i] = x;
	}
}

static float rounded(cudnnDataType_t type, float x)
{
	switch (type) {
	case CUDNN_DATA_HALF: return __half2float(__float2half_rn(x));
	case CUDNN_DATA_BFLOAT16: return __bfloat162float(__float2bfloat16_rn(x));
	default: return x;
	}
}

int64_t extent_B(const tensor &t)
{
	int64_t last = 0;
	for (int i = 0; i < DIMS; i++)
		last += (t.dim[i] - 1) * t.stride[i];
	return (last + 1) * (int64_t)bytes_of(t.type);
}

/* ---- what an engine takes ---- */

static std::string name(int64_t uid) { return "tensor " + std::to_string(uid); }

/* Equal, or one value for all. */
static bool spreads(const tensor &from, const tensor &to)
{
	for (int i = 0; i < DIMS; i++)
		if (from.dim[i] != to.dim[i] && from.dim[i] != 1)
			return false;
	return true;
}

/* As many batches; heads that several of `b` share. */
static bool shares_heads(const tensor &a, const tensor &b) { return a.dim[0] == b.dim[0] && a.dim[1] % b.dim[1] == 0; }

static int64_t elements(const tensor &t) { return t.dim[0] * t.dim[1] * t.dim[2] * t.dim[3]; }

static bool dimensions_fit(const graph &g, const operation &op)
{
	const tensor &x = g.tensors.at(op.in[0]), &y = g.tensors.at(op.out);
	switch (op.what) {
	case MATMUL: {
		const tensor &b = g.tensors.at(op.in[1]);
		return shares_heads(x, b) && x.dim[0] == y.dim[0] && x.dim[1] == y.dim[1] && x.dim[3] == b.dim[2] &&
		       y.dim[2] == x.dim[2] && y.dim[3] == b.dim[3];
	}
	case POINTWISE:
		for (int64_t uid : op.in)
			if (!spreads(g.tensors.at(uid), y))
				return false;
		return true;
	case REDUCTION: return shares_heads(x, y) && x.dim[2] == y.dim[2] && (y.dim[3] == 1 || y.dim[3] == x.dim[3]);
	case RESHAPE: return elements(x) == elements(y);
	}
	return false;
}

static int inputs_of(int mode)
{
	switch (mode) {
	case CUDNN_POINTWISE_EXP:
	case CUDNN_POINTWISE_LOG:
	case CUDNN_POINTWISE_IDENTITY:
	case CUDNN_POINTWISE_GEN_INDEX: return 1;
	case CUDNN_POINTWISE_ADD:
	case CUDNN_POINTWISE_SUB:
	case CUDNN_POINTWISE_MUL:
	case CUDNN_POINTWISE_DIV:
	case CUDNN_POINTWISE_CMP_GE: return 2;
	case CUDNN_POINTWISE_BINARY_SELECT: return 3;
	default: return 0;
	}
}

static bool mode_known(const operation &op)
{
	return op.what == POINTWISE   ? inputs_of(op.mode) == (int)op.in.size()
	       : op.what == REDUCTION ? op.mode == CUDNN_REDUCE_TENSOR_ADD || op.mode == CUDNN_REDUCE_TENSOR_MAX
	                              : true;
}

std::string graph_refused(const graph &g)
{
	std::set<int64_t> made, read;
	for (const auto &[uid, t] : g.tensors)
		if (!bytes_of(t.type))
			return name(uid) + " has a format that is not known here";
	for (size_t i = 0; i < g.ops.size(); i++) {
		const operation &op = g.ops[i];
		if (!mode_known(op))
			return "op " + std::to_string(i) + " has a mode that is not known here";
		for (int64_t uid : op.in) {
			if (g.tensors.at(uid).is_virtual && !made.count(uid))
				return name(uid) + " is virtual, and read before an op makes it";
			read.insert(uid);
		}
		if (!made.insert(op.out).second)
			return name(op.out) + " is made twice";
		if (g.tensors.at(op.out).by_value)
			return name(op.out) + " is passed by value, and made by an op";
		if (!dimensions_fit(g, op))
			return "op " + std::to_string(i) + ": dimensions do not fit each other";
	}
	for (const auto &[uid, t] : g.tensors)
		if (t.is_virtual && !read.count(uid))
			return name(uid) + " is virtual, and nobody reads it";
	return "";
}

/* ---- execution: of one batch, and of one group of heads that share keys, after the other ---- */

/* The part of a tensor that is at work, dense. */
struct values {
	int64_t heads, rows, cols;
	std::vector<float> x;
	float *row(int64_t h, int64_t r) { return &x[(size_t)((h * rows + r) * cols)]; }
	/* Where a dimension has one element, it is every index's. */
	const float *spread_row(int64_t h, int64_t r) { return row(heads == 1 ? 0 : h, rows == 1 ? 0 : r); }
};

struct worker {
	const graph &g;
	const std::map<int64_t, void *> &at;
	int64_t batch, group, groups;
	std::map<int64_t, values> parts;

	int64_t first_head(const tensor &t) const { return t.dim[1] == 1 ? 0 : t.dim[1] / groups * group; }

	values empty(const tensor &t) const
	{
		values v = {t.dim[1] == 1 ? 1 : t.dim[1] / groups, t.dim[2], t.dim[3], {}};
		v.x.resize((size_t)(v.heads * v.rows * v.cols));
		return v;
	}

	int64_t offset(const tensor &t, int64_t h, int64_t r, int64_t c) const
	{
		return (t.dim[0] == 1 ? 0 : batch) * t.stride[0] + (first_head(t) + h) * t.stride[1] + r * t.stride[2] +
		       c * t.stride[3];
	}

	values &part(int64_t uid)
	{
		auto found = parts.find(uid);
		if (found != parts.end())
			return found->second;
		const tensor &t = g.tensors.at(uid);
		values v = empty(t);
		for (int64_t h = 0, i = 0; h < v.heads; h++)
			for (int64_t r = 0; r < v.rows; r++)
				for (int64_t c = 0; c < v.cols; c++)
					v.x[(size_t)i++] = load(t.type, at.at(uid), offset(t, h, r, c));
		return parts[uid] = v;
	}

	void keep(int64_t uid, values &v)
	{
		const tensor &t = g.tensors.at(uid);
		if (bytes_of(t.type) < sizeof(float))
			for (float &x : v.x)
				x = rounded(t.type, x);
		if (!t.is_virtual)
			for (int64_t h = 0, i = 0; h < v.heads; h++)
				for (int64_t r = 0; r < v.rows; r++)
					for (int64_t c = 0; c < v.cols; c++)
						store(t.type, at.at(uid), offset(t, h, r, c), v.x[(size_t)i++]);
		parts[uid] = std::move(v);
	}

	void matmul(const operation &op)
	{
		values &a = part(op.in[0]), &b = part(op.in[1]), y = empty(g.tensors.at(op.out));
		for (int64_t h = 0; h < y.heads; h++)
			for (int64_t m = 0; m < y.rows; m++) {
				float *to = y.row(h, m);
				const float *x = a.row(h, m);
				for (int64_t k = 0; k < a.cols; k++) {
					const float *from = b.row(h * b.heads / y.heads, k);
					for (int64_t n = 0; n < y.cols; n++)
						to[n] += x[k] * from[n];
				}
			}
		keep(op.out, y);
	}

	/* y[i] = f(x, b, t), each spread over y */
	template <class F> void each(const operation &op, F f)
	{
		values *in[3];
		for (size_t i = 0; i < 3; i++)
			in[i] = &part(op.in[std::min(i, op.in.size() - 1)]);
		values y = empty(g.tensors.at(op.out));
		const int64_t step[3] = {in[0]->cols > 1, in[1]->cols > 1, in[2]->cols > 1};
		for (int64_t h = 0; h < y.heads; h++)
			for (int64_t r = 0; r < y.rows; r++) {
				const float *x = in[0]->spread_row(h, r), *b = in[1]->spread_row(h, r),
					    *t = in[2]->spread_row(h, r);
				float *to = y.row(h, r);
				for (int64_t c = 0; c < y.cols; c++)
					to[c] = f(op.alpha1 * x[c * step[0]], op.alpha2 * b[c * step[1]],
						t[c * step[2]]);
			}
		keep(op.out, y);
	}

	void index(const operation &op)
	{
		const tensor &t = g.tensors.at(op.out);
		values y = empty(t);
		for (int64_t h = 0, i = 0; h < y.heads; h++)
			for (int64_t r = 0; r < y.rows; r++)
				for (int64_t c = 0; c < y.cols; c++) {
					const int64_t all[DIMS] = {batch, first_head(t) + h, r, c};
					y.x[(size_t)i++] = (float)all[op.axis];
				}
		keep(op.out, y);
	}

	void pointwise(const operation &op)
	{
		switch (op.mode) {
		case CUDNN_POINTWISE_EXP: return each(op, [](float x, float, float) { return expf(x); });
		case CUDNN_POINTWISE_LOG: return each(op, [](float x, float, float) { return logf(x); });
		case CUDNN_POINTWISE_ADD: return each(op, [](float x, float b, float) { return x + b; });
		case CUDNN_POINTWISE_SUB: return each(op, [](float x, float b, float) { return x - b; });
		case CUDNN_POINTWISE_MUL: return each(op, [](float x, float b, float) { return x * b; });
		case CUDNN_POINTWISE_DIV: return each(op, [](float x, float b, float) { return x / b; });
		case CUDNN_POINTWISE_CMP_GE: return each(op, [](float x, float b, float) { return (float)(x >= b); });
		case CUDNN_POINTWISE_BINARY_SELECT:
			return each(op, [](float x, float b, float t) { return t != 0.0f ? x : b; });
		case CUDNN_POINTWISE_GEN_INDEX: return index(op);
		default: return each(op, [](float x, float, float) { return x; });
		}
	}

	void reduce(const operation &op)
	{
		values &x = part(op.in[0]), y = empty(g.tensors.at(op.out));
		const bool max = op.mode == CUDNN_REDUCE_TENSOR_MAX;
		std::fill(y.x.begin(), y.x.end(), max ? -INFINITY : 0.0f);
		for (int64_t h = 0; h < x.heads; h++)
			for (int64_t r = 0; r < x.rows; r++)
				for (int64_t c = 0; c < x.cols; c++) {
					float &to = y.row(h * y.heads / x.heads, r)[y.cols == 1 ? 0 : c],
					      from = x.row(h, r)[c];
					to = max ? fmaxf(to, from) : to + from;
				}
		keep(op.out, y);
	}

	/* The same memory with other strides: what a part of it holds is looked up by where it lies. */
	void reshape(const operation &op)
	{
		const tensor &from = g.tensors.at(op.in[0]), &to = g.tensors.at(op.out);
		values &x = part(op.in[0]), y = empty(to);
		const int64_t base = offset(from, 0, 0, 0), to_base = offset(to, 0, 0, 0);
		std::vector<float> memory((size_t)(offset(from, x.heads - 1, x.rows - 1, x.cols - 1) - base + 1), NAN);
		for (int64_t h = 0, i = 0; h < x.heads; h++)
			for (int64_t r = 0; r < x.rows; r++)
				for (int64_t c = 0; c < x.cols; c++)
					memory[(size_t)(offset(from, h, r, c) - base)] = x.x[(size_t)i++];
		for (int64_t h = 0, i = 0; h < y.heads; h++)
			for (int64_t r = 0; r < y.rows; r++)
				for (int64_t c = 0; c < y.cols; c++)
					y.x[(size_t)i++] = memory.at((size_t)(offset(to, h, r, c) - to_base));
		keep(op.out, y);
	}

	void run(const std::map<int64_t, size_t> &last_use)
	{
		for (size_t i = 0; i < g.ops.size(); i++) {
			const operation &op = g.ops[i];
			switch (op.what) {
			case MATMUL: matmul(op); break;
			case POINTWISE: pointwise(op); break;
			case REDUCTION: reduce(op); break;
			case RESHAPE: reshape(op); break;
			}
			for (const auto &[uid, last] : last_use)
				if (last == i)
					parts.erase(uid);
		}
		parts.clear();
	}
};

void graph_run(const graph &g, const std::map<int64_t, void *> &at)
{
	std::map<int64_t, size_t> last_use;
	int64_t batches = 1, groups = INT64_MAX;
	for (size_t i = 0; i < g.ops.size(); i++) {
		for (int64_t uid : g.ops[i].in)
			last_use[uid] = i;
		last_use.insert({g.ops[i].out, i});
	}
	for (const auto &[uid, t] : g.tensors) {
		batches = std::max(batches, t.dim[0]);
		if (elements(t) > 1)
			groups = std::min(groups, t.dim[1]);
	}
	for (int64_t b = 0; b < batches; b++)
		for (int64_t k = 0; k < groups; k++) {
			worker w = {g, at, b, k, groups, {}};
			w.run(last_use);
		}
}

} // namespace cudnn_double
