/* Stands in for libcudnn.so.9: handles and backend descriptors as the real one keeps them, graphs that are executed op
 * after op (cudnn_graph.cc), and an engine for each whose ops it knows.
 *
 * As the real one does, it refuses what is not finalized, a descriptor that holds an unfinished one, a plan for another
 * handle than its graph's. Of a variant pack it wants each tensor that is not virtual once, aligned as the tensor says,
 * in memory that is allocated to the last byte, and apart from the plan's workspace, in which it leaves rubbish.
 *
 * The heuristic names two engines; a plan with the first never finalizes. STEPSIM_DOUBLE_CUDNN is the version that it
 * says it is; before 9.10 it refuses an infinite number by value. Faults (STEPSIM_DOUBLE_FAULT): "no_engine",
 * "plan_ms:N" (each plan takes N ms to finalize), "attention_idle" (plans compute nothing).
 */
#include <cudnn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <chrono>
#include <thread>

#include "tests/doubles/cudnn_descriptor.h"
#include "tests/doubles/double.h"

#define API extern "C" __attribute__((visibility("default")))

struct cudnnContext {
	cudaStream_t stream;
};

namespace
{

const int64_t ENGINE_THAT_FAILS = 5, ENGINE = 6, ENGINES = 2;
const size_t INFINITE_MASKS = 91000; /* version */
const uintptr_t WORKSPACE_ALIGNMENT_B = 256;

size_t version(void)
{
	const char *set = getenv("STEPSIM_DOUBLE_CUDNN");
	return set && *set ? strtoull(set, NULL, 10) : CUDNN_VERSION;
}

/* ---- engines and plans ---- */

/* The engine's number, the graph beside it as the descriptor that was finalized. */
std::shared_ptr<body> config_of(int64_t engine, const value &op_graph)
{
	auto config = std::make_shared<body>();
	config->type = CUDNN_BACKEND_ENGINECFG_DESCRIPTOR;
	config->finalized = true;
	const char *number = (const char *)&engine;
	config->values[CUDNN_ATTR_ENGINE_GLOBAL_INDEX] = {CUDNN_TYPE_INT64, 1,
		std::vector<char>(number, number + sizeof engine)};
	config->values[CUDNN_ATTR_ENGINE_OPERATION_GRAPH] = op_graph;
	return config;
}

/* A kernel keeps something for each row of scores, and a counter: not a multiple of what whoever follows is aligned to.
 */
int64_t workspace_of(const graph &g)
{
	int64_t rows = 0;
	for (const auto &[uid, t] : g.tensors)
		rows = std::max(rows, t.dim[0] * t.dim[1] * t.dim[2]);
	return rows * (int64_t)sizeof(float) + 4;
}

cudnnStatus_t plan_finalize(body &d)
{
	std::shared_ptr<body> config = part_of(d, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
	cudnnHandle_t handle = one_of<cudnnHandle_t>(d, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, nullptr);
	if (!config || config->type != CUDNN_BACKEND_ENGINECFG_DESCRIPTOR)
		return fail(CUDNN_STATUS_BAD_PARAM, "cudnnBackendFinalize: the plan has no engine's configuration");
	std::shared_ptr<body> ops = part_of(*config, CUDNN_ATTR_ENGINE_OPERATION_GRAPH);
	if (!ops || !handles.count(handle) ||
		one_of<cudnnHandle_t>(*ops, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, nullptr) != handle)
		return fail(CUDNN_STATUS_BAD_PARAM, "cudnnBackendFinalize: the plan's handle is not its graph's");
	std::this_thread::sleep_for(std::chrono::milliseconds(double_fault("plan_ms")));
	if (one_of<int64_t>(*config, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, -1) == ENGINE_THAT_FAILS)
		return fail(CUDNN_STATUS_NOT_SUPPORTED, "cudnnBackendFinalize: this engine's kernel does not build");
	auto made = std::make_shared<plan>();
	made->handle = handle;
	(void)graph_read(*ops, made->what);
	made->workspace_B = workspace_of(made->what);
	d.made = made;
	return CUDNN_STATUS_SUCCESS;
}

/* Of a descriptor that has all that it needs. */
cudnnStatus_t finalize(body &d)
{
	tensor t;
	graph g;
	switch ((int)d.type) {
	case CUDNN_BACKEND_TENSOR_DESCRIPTOR:
		return tensor_read(d, t)
		               ? CUDNN_STATUS_SUCCESS
		               : fail(CUDNN_STATUS_BAD_PARAM,
					 "cudnnBackendFinalize: the tensor lacks something, or it is not valid");
	case CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR:
		return graph_read(d, g) ? CUDNN_STATUS_SUCCESS
		                        : fail(CUDNN_STATUS_BAD_PARAM,
						  "cudnnBackendFinalize: an op of the graph lacks something");
	case CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR:
		return part_of(d, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH) && d.values.count(CUDNN_ATTR_ENGINEHEUR_MODE)
		               ? CUDNN_STATUS_SUCCESS
		               : fail(CUDNN_STATUS_BAD_PARAM, "cudnnBackendFinalize: no graph, or no mode");
	case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR: return plan_finalize(d);
	case CUDNN_BACKEND_ENGINE_DESCRIPTOR:
	case CUDNN_BACKEND_ENGINECFG_DESCRIPTOR:
		return fail(CUDNN_STATUS_NOT_SUPPORTED, "cudnnBackendFinalize: engines come from the heuristic alone");
	default: return CUDNN_STATUS_SUCCESS;
	}
}

/* Fills the caller's descriptors with the heuristic's. */
cudnnStatus_t heuristic_results(const body &d, int64_t requested, int64_t *n, void *to)
{
	graph g;
	(void)graph_read(*part_of(d, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH), g);
	const std::string refused = graph_refused(g);
	if (!refused.empty() || double_fault("no_engine")) {
		last_error = "cudnnBackendGetAttribute: no engine: " + refused;
		return CUDNN_STATUS_SUCCESS; /* with none */
	}
	for (int64_t i = 0; to && i < requested && i < ENGINES; i++) {
		descriptor *out = known(((void **)to)[i]);
		if (!out || out->is->type != CUDNN_BACKEND_ENGINECFG_DESCRIPTOR)
			return fail(CUDNN_STATUS_BAD_PARAM,
				"cudnnBackendGetAttribute: results want descriptors of configurations");
		out->is = config_of(i ? ENGINE : ENGINE_THAT_FAILS, d.values.at(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH));
	}
	if (n)
		*n = ENGINES;
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t config_engine(const body &d, int64_t requested, int64_t *n, void *to)
{
	descriptor *out = requested > 0 && to ? known(*(void **)to) : nullptr;
	if (!out || out->is->type != CUDNN_BACKEND_ENGINE_DESCRIPTOR)
		return fail(CUDNN_STATUS_BAD_PARAM, "cudnnBackendGetAttribute: it wants an engine's descriptor");
	out->is = std::make_shared<body>(d);
	out->is->type = CUDNN_BACKEND_ENGINE_DESCRIPTOR;
	if (n)
		*n = 1;
	return CUDNN_STATUS_SUCCESS;
}

/* ---- execution ---- */

bool overlap(const void *a, int64_t a_B, const void *b, int64_t b_B)
{
	return (const char *)a < (const char *)b + b_B && (const char *)b < (const char *)a + a_B;
}

/* What is wrong with a tensor's memory; empty: nothing. */
std::string memory_refused(const plan &p, const tensor &t, void *at, void *workspace)
{
	const std::string who = "tensor " + std::to_string(t.uid);
	if (!at)
		return who + " is NULL";
	if (t.by_value)
		return version() < INFINITE_MASKS && t.type == CUDNN_DATA_FLOAT && isinf(*(float *)at)
		               ? who + " is infinite, which kernels before 9.10 do not mask with"
		               : "";
	if ((uintptr_t)at % (uintptr_t)t.alignment_B)
		return who + " is not aligned to " + std::to_string(t.alignment_B) + " bytes";
	if (!double_memory(("cuDNN double: " + who).c_str(), at, (size_t)extent_B(t)))
		return who + " is not in memory of the device";
	return overlap(at, extent_B(t), workspace, p.workspace_B) ? who + " lies in the plan's workspace" : "";
}

/* The variant pack's pointers by number. Values are those of now: they are copied into `held`. */
std::string pack_read(const plan &p, const body &pack, std::map<int64_t, void *> &at,
	std::vector<std::vector<char>> &held, void *&workspace)
{
	std::vector<int64_t> ids = all_of<int64_t>(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
	std::vector<void *> pointers = all_of<void *>(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
	workspace = one_of<void *>(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, nullptr);
	if (ids.size() != pointers.size())
		return std::to_string(ids.size()) + " numbers of tensors, " + std::to_string(pointers.size()) +
		       " pointers";
	if ((uintptr_t)workspace % WORKSPACE_ALIGNMENT_B)
		return "the workspace is not aligned to 256 bytes";
	if (!double_memory("cuDNN double: the workspace", workspace, (size_t)p.workspace_B))
		return "the workspace is not in memory of the device";
	for (size_t i = 0; i < ids.size(); i++) {
		auto t = p.what.tensors.find(ids[i]);
		if (t == p.what.tensors.end() || t->second.is_virtual)
			return "tensor " + std::to_string(ids[i]) + " is not in the graph, or virtual";
		if (!at.insert({ids[i], pointers[i]}).second)
			return "tensor " + std::to_string(ids[i]) + " is there twice";
		const std::string refused = memory_refused(p, t->second, pointers[i], workspace);
		if (!refused.empty())
			return refused;
		if (t->second.by_value) {
			held.emplace_back((char *)pointers[i], (char *)pointers[i] + extent_B(t->second));
			at[ids[i]] = held.back().data();
		}
	}
	for (const auto &[uid, t] : p.what.tensors)
		if (!t.is_virtual && !at.count(uid))
			return "tensor " + std::to_string(uid) + " is missing";
	return "";
}

} // namespace

API size_t cudnnGetVersion(void) { return version(); }
API size_t cudnnGetMaxDeviceVersion(void) { return 1000; }
API size_t cudnnGetCudartVersion(void) { return CUDART_VERSION; }

API const char *cudnnGetErrorString(cudnnStatus_t code)
{
	static const std::map<int, const char *> texts = {
		{CUDNN_STATUS_SUCCESS, "CUDNN_STATUS_SUCCESS"},
		{CUDNN_STATUS_NOT_INITIALIZED, "CUDNN_STATUS_NOT_INITIALIZED"},
		{CUDNN_STATUS_BAD_PARAM, "CUDNN_STATUS_BAD_PARAM"},
		{CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "CUDNN_STATUS_BAD_PARAM_NULL_POINTER"},
		{CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED, "CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED"},
		{CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT, "CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT"},
		{CUDNN_STATUS_NOT_SUPPORTED, "CUDNN_STATUS_NOT_SUPPORTED"},
		{CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN, "CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN"},
		{CUDNN_STATUS_INTERNAL_ERROR, "CUDNN_STATUS_INTERNAL_ERROR"},
		{CUDNN_STATUS_EXECUTION_FAILED, "CUDNN_STATUS_EXECUTION_FAILED"},
	};
	auto found = texts.find(code);
	return found == texts.end() ? "CUDNN_UNKNOWN_STATUS" : found->second;
}

API void cudnnGetLastErrorString(char *message, size_t max_size)
{
	if (message && max_size)
		snprintf(message, max_size, "%s", last_error.c_str());
}

API cudnnStatus_t cudnnGetProperty(libraryPropertyType type, int *value)
{
	static const int values[] = {CUDNN_MAJOR, CUDNN_MINOR, CUDNN_PATCHLEVEL};
	if (type < MAJOR_VERSION || type > PATCH_LEVEL || !value)
		return fail(CUDNN_STATUS_BAD_PARAM, "cudnnGetProperty: no such property");
	*value = values[type];
	return CUDNN_STATUS_SUCCESS;
}

API cudnnStatus_t cudnnCreate(cudnnHandle_t *handle)
{
	int devices = 0;
	if (!handle)
		return fail(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "cudnnCreate: handle is NULL");
	*handle = nullptr;
	if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0)
		return fail(CUDNN_STATUS_NOT_INITIALIZED, "cudnnCreate: no device");
	*handle = new cudnnContext{nullptr};
	std::lock_guard<std::mutex> hold(mutex);
	handles.insert(*handle);
	return CUDNN_STATUS_SUCCESS;
}

API cudnnStatus_t cudnnDestroy(cudnnHandle_t handle)
{
	std::lock_guard<std::mutex> hold(mutex);
	if (!handles.erase(handle))
		return fail(CUDNN_STATUS_BAD_PARAM, "cudnnDestroy: no such handle");
	delete handle;
	return CUDNN_STATUS_SUCCESS;
}

API cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream)
{
	if (!handle)
		return fail(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "cudnnSetStream: handle is NULL");
	handle->stream = stream;
	return CUDNN_STATUS_SUCCESS;
}

API cudnnStatus_t cudnnGetStream(cudnnHandle_t handle, cudaStream_t *stream)
{
	if (!handle || !stream)
		return fail(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "cudnnGetStream: an argument is NULL");
	*stream = handle->stream;
	return CUDNN_STATUS_SUCCESS;
}

/* ---- the backend ---- */

API cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t *out)
{
	if (!out)
		return fail(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "cudnnBackendCreateDescriptor: descriptor is NULL");
	auto made = new descriptor{std::make_shared<body>()};
	made->is->type = type;
	*out = made;
	std::lock_guard<std::mutex> hold(mutex);
	descriptors.insert(made);
	return CUDNN_STATUS_SUCCESS;
}

API cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t d)
{
	std::lock_guard<std::mutex> hold(mutex);
	if (!descriptors.erase((descriptor *)d))
		return fail(CUDNN_STATUS_BAD_PARAM, "cudnnBackendDestroyDescriptor: no such descriptor");
	delete (descriptor *)d;
	return CUDNN_STATUS_SUCCESS;
}

API cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t at, cudnnBackendAttributeName_t name,
	cudnnBackendAttributeType_t type, int64_t n, const void *from)
{
	descriptor *d = known(at);
	if (!d || (n > 0 && !from))
		return fail(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "cudnnBackendSetAttribute: an argument is NULL");
	if (d->is->finalized || n < 0)
		return fail(CUDNN_STATUS_BAD_PARAM,
			"cudnnBackendSetAttribute: the descriptor is finalized, or the count negative");
	const char *bytes = (const char *)from;
	d->is->values[name] = {type, n, std::vector<char>(bytes, bytes + (size_t)n * bytes_of_type(type))};
	return CUDNN_STATUS_SUCCESS;
}

API cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t at)
{
	descriptor *d = known(at);
	if (!d)
		return fail(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "cudnnBackendFinalize: no such descriptor");
	if (d->is->values.empty())
		return fail(CUDNN_STATUS_BAD_PARAM, "cudnnBackendFinalize: no attribute was set");
	if (!parts_finalized(*d->is))
		return fail(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED,
			"cudnnBackendFinalize: a descriptor that it holds is not finalized");
	cudnnStatus_t code = finalize(*d->is);
	d->is->finalized = code == CUDNN_STATUS_SUCCESS;
	return code;
}

API cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t const at, cudnnBackendAttributeName_t name,
	cudnnBackendAttributeType_t type, int64_t requested, int64_t *n, void *to)
{
	const descriptor *d = known(at);
	if (!d)
		return fail(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "cudnnBackendGetAttribute: no such descriptor");
	if (!d->is->finalized)
		return fail(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED,
			"cudnnBackendGetAttribute: the descriptor is not finalized");
	if (n)
		*n = 0;
	if (name == CUDNN_ATTR_ENGINEHEUR_RESULTS)
		return heuristic_results(*d->is, requested, n, to);
	if (name == CUDNN_ATTR_ENGINECFG_ENGINE && d->is->type == CUDNN_BACKEND_ENGINECFG_DESCRIPTOR)
		return config_engine(*d->is, requested, n, to);
	value workspace;
	if (d->is->made) {
		const char *bytes = (const char *)&d->is->made->workspace_B;
		workspace = {CUDNN_TYPE_INT64, 1, std::vector<char>(bytes, bytes + sizeof(int64_t))};
	}
	const bool asked = d->is->made && name == CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE;
	auto found = d->is->values.find(name);
	if ((!asked && found == d->is->values.end()) || (asked ? workspace : found->second).type != type)
		return fail(CUDNN_STATUS_BAD_PARAM, "cudnnBackendGetAttribute: no such attribute of that type");
	const value &v = asked ? workspace : found->second;
	if (n)
		*n = v.n;
	if (to && requested > 0)
		memcpy(to, v.bytes.data(), (size_t)(requested < v.n ? requested : v.n) * bytes_of_type(type));
	return CUDNN_STATUS_SUCCESS;
}

API cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan_at,
	cudnnBackendDescriptor_t pack_at)
{
	const descriptor *d = known(plan_at), *pack = known(pack_at);
	if (!d || !pack || !d->is->made || !pack->is->finalized || d->is->made->handle != handle)
		return fail(CUDNN_STATUS_BAD_PARAM,
			"cudnnBackendExecute: no finalized plan of this handle, or no pack");
	auto at = std::make_shared<std::map<int64_t, void *>>();
	auto held = std::make_shared<std::vector<std::vector<char>>>();
	std::shared_ptr<plan> p = d->is->made;
	void *workspace;
	const std::string refused = pack_read(*p, *pack->is, *at, *held, workspace);
	if (!refused.empty()) {
		fprintf(stderr, "cuDNN double: %s\n", refused.c_str());
		return fail(CUDNN_STATUS_BAD_PARAM, "cudnnBackendExecute: " + refused);
	}
	const bool idle = double_fault("attention_idle");
	cudaError_t code = double_launch(handle->stream, [=] {
		memset(workspace, 0xff, (size_t)p->workspace_B); /* not a number, for whoever has a part of it */
		if (!idle)
			graph_run(p->what, *at);
		memset(workspace, 0xff, (size_t)p->workspace_B);
		(void)held;
	});
	return code == cudaSuccess ? CUDNN_STATUS_SUCCESS
	                           : fail(CUDNN_STATUS_EXECUTION_FAILED,
					     std::string("cudnnBackendExecute: ") + cudaGetErrorString(code));
}
