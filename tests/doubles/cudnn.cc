/* Stands in for libcudnn.so.9: handles and backend descriptors as the real one keeps them, and no engine for any graph,
 * so that whoever asks takes his fall-back. */
#include <cudnn.h>
#include <stdio.h>
#include <string.h>

#include <map>
#include <string>
#include <vector>

#include "tests/doubles/double.h"

#define API extern "C" __attribute__((visibility("default")))

struct cudnnContext {
	cudaStream_t stream;
};

namespace
{

struct value {
	cudnnBackendAttributeType_t type;
	int64_t n;
	std::vector<char> bytes;
};

struct descriptor {
	cudnnBackendDescriptorType_t type;
	bool finalized;
	std::map<int, value> values;
};

thread_local std::string last_error;

cudnnStatus_t fail(cudnnStatus_t code, const std::string &text)
{
	last_error = text;
	return code;
}

size_t bytes_of(cudnnBackendAttributeType_t t)
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

bool needs_engine(cudnnBackendDescriptorType_t t)
{
	return t == CUDNN_BACKEND_ENGINE_DESCRIPTOR || t == CUDNN_BACKEND_ENGINECFG_DESCRIPTOR ||
	       t == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR;
}

/* A descriptor may hold finalized ones alone. */
bool parts_finalized(const descriptor &d)
{
	for (auto &v : d.values)
		if (v.second.type == CUDNN_TYPE_BACKEND_DESCRIPTOR)
			for (int64_t i = 0; i < v.second.n; i++) {
				descriptor *part;
				memcpy(&part, v.second.bytes.data() + (size_t)i * sizeof part, sizeof part);
				if (!part || !part->finalized)
					return false;
			}
	return true;
}

} // namespace

API size_t cudnnGetVersion(void) { return CUDNN_VERSION; }
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
	return CUDNN_STATUS_SUCCESS;
}

API cudnnStatus_t cudnnDestroy(cudnnHandle_t handle)
{
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
	*out = new descriptor{type, false, {}};
	return CUDNN_STATUS_SUCCESS;
}

API cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t d)
{
	delete (descriptor *)d;
	return CUDNN_STATUS_SUCCESS;
}

API cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t at, cudnnBackendAttributeName_t name,
	cudnnBackendAttributeType_t type, int64_t n, const void *from)
{
	descriptor *d = (descriptor *)at;
	if (!d || (n > 0 && !from))
		return fail(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "cudnnBackendSetAttribute: an argument is NULL");
	if (d->finalized || n < 0)
		return fail(CUDNN_STATUS_BAD_PARAM,
			"cudnnBackendSetAttribute: the descriptor is finalized, or the count negative");
	const char *bytes = (const char *)from;
	d->values[name] = {type, n, std::vector<char>(bytes, bytes + (size_t)n * bytes_of(type))};
	return CUDNN_STATUS_SUCCESS;
}

API cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t at)
{
	descriptor *d = (descriptor *)at;
	if (!d)
		return fail(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "cudnnBackendFinalize: descriptor is NULL");
	if (needs_engine(d->type))
		return fail(CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN,
			"cudnnBackendFinalize: no engine supports the graph");
	if (d->values.empty())
		return fail(CUDNN_STATUS_BAD_PARAM, "cudnnBackendFinalize: no attribute was set");
	if (!parts_finalized(*d))
		return fail(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED,
			"cudnnBackendFinalize: a descriptor that it holds is not finalized");
	d->finalized = true;
	return CUDNN_STATUS_SUCCESS;
}

API cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t const at, cudnnBackendAttributeName_t name,
	cudnnBackendAttributeType_t type, int64_t requested, int64_t *n, void *to)
{
	const descriptor *d = (const descriptor *)at;
	if (!d)
		return fail(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "cudnnBackendGetAttribute: descriptor is NULL");
	if (!d->finalized)
		return fail(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED,
			"cudnnBackendGetAttribute: the descriptor is not finalized");
	if (n)
		*n = 0;
	if (name == CUDNN_ATTR_ENGINEHEUR_RESULTS)
		return CUDNN_STATUS_SUCCESS;
	if (name == CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT) {
		if (requested < 1 || !to || type != CUDNN_TYPE_INT64)
			return fail(CUDNN_STATUS_BAD_PARAM, "cudnnBackendGetAttribute: the count is one int64");
		memset(to, 0, sizeof(int64_t));
		if (n)
			*n = 1;
		return CUDNN_STATUS_SUCCESS;
	}
	auto found = d->values.find(name);
	if (found == d->values.end() || found->second.type != type)
		return fail(CUDNN_STATUS_BAD_PARAM, "cudnnBackendGetAttribute: no such attribute of that type");
	const value &v = found->second;
	if (n)
		*n = v.n;
	if (to && requested > 0)
		memcpy(to, v.bytes.data(), (size_t)(requested < v.n ? requested : v.n) * bytes_of(type));
	return CUDNN_STATUS_SUCCESS;
}

API cudnnStatus_t cudnnBackendExecute(cudnnHandle_t, cudnnBackendDescriptor_t, cudnnBackendDescriptor_t)
{
	return fail(CUDNN_STATUS_NOT_SUPPORTED, "cudnnBackendExecute: no plan of the double is ever made");
}
