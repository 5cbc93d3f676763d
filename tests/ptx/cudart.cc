/* The part of cudart's API that the kernels' tests use, on the interpreter. Calls of others end with the linker's
 * "undefined symbol". */
#include <cuda_runtime_api.h>
#include <glob.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <unordered_map>

#include "tests/ptx/machine.h"

#define API extern "C"

/* Of an H100, compute capability 9.0 (CUDA C++ Programming Guide, "Technical Specifications"). */
#define SHARED_MAX_B (227 * 1024) /* STEPSIM_PTX_SHARED_B says otherwise */
#define SHARED_WITHOUT_ASKING_MAX_B (48 * 1024)
#define THREADS_MAX 1024
#define GRID_Y_MAX 65535

struct CUkern_st {
	std::string name;
	int shared_allowed_B = SHARED_WITHOUT_ASKING_MAX_B;
	std::unique_ptr<ptx::kernel> decoded; /* at the first launch */
};

static std::unordered_map<const void *, CUkern_st> &kernels(void)
{
	static auto *all = new std::unordered_map<const void *, CUkern_st>;
	return *all;
}

static cudaError_t last = cudaSuccess;
static cudaError_t said(cudaError_t code)
{
	if (code != cudaSuccess)
		last = code;
	return code;
}

static int shared_max_B(void)
{
	const char *asked = getenv("STEPSIM_PTX_SHARED_B");
	return asked ? atoi(asked) : SHARED_MAX_B;
}

/* ---- kernels ---- */

static const std::vector<std::unique_ptr<ptx::source>> &sources(void)
{
	static std::vector<std::unique_ptr<ptx::source>> all;
	const char *folder = getenv("STEPSIM_PTX");
	if (!all.empty())
		return all;
	glob_t found;
	if (!folder || glob((std::string(folder) + "/*.ptx").c_str(), 0, NULL, &found))
		ptx::give_up("STEPSIM_PTX names no folder with .ptx files");
	for (size_t n = 0; n < found.gl_pathc; n++)
		all.push_back(ptx::read_source(found.gl_pathv[n]));
	globfree(&found);
	return all;
}

static std::unique_ptr<ptx::kernel> decoded(const std::string &name)
{
	for (const auto &s : sources())
		if (const ptx::function_text *f = s->function(name))
			return ptx::decode(*s, *f);
	ptx::give_up("no PTX of the kernel %s in %s", ptx::plain_name(name).c_str(), getenv("STEPSIM_PTX"));
}

/* A line for each kernel, when the process ends. */
static void write_log(void)
{
	FILE *log = fopen(getenv("STEPSIM_PTX_LOG"), "a");
	for (const auto &k : kernels())
		if (log && k.second.decoded)
			fprintf(log, "%s %lld %lld\n", k.second.name.c_str(), (long long)k.second.decoded->launches,
				(long long)k.second.decoded->executed);
	if (log)
		fclose(log);
}

API void **__cudaRegisterFatBinary(void *)
{
	static void *handle[1];
	return handle;
}
API void __cudaRegisterFatBinaryEnd(void **) {}
API void __cudaUnregisterFatBinary(void **) {}
API char __cudaInitModule(void **) { return 1; }
API void __cudaRegisterVar(void **, char *, char *, const char *, int, size_t, int, int) {}
API void __cudaRegisterFunction(void **, const char *host, char *, const char *name, int, uint3 *, uint3 *, dim3 *,
	dim3 *, int *)
{
	kernels()[host].name = name;
}

API cudaError_t __cudaGetKernel(cudaKernel_t *out, const void *host)
{
	auto found = kernels().find(host);
	*out = found == kernels().end() ? NULL : &found->second;
	return said(*out ? cudaSuccess : cudaErrorInvalidDeviceFunction);
}

/* ---- launches ---- */

struct configuration {
	dim3 grid, block;
	size_t shared_B;
	cudaStream_t stream;
};
static std::vector<configuration> pushed;

API unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_B, struct CUstream_st *stream)
{
	pushed.push_back({grid, block, shared_B, stream});
	return 0;
}

API cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared_B, void *stream)
{
	const configuration c = pushed.back();
	pushed.pop_back();
	*grid = c.grid;
	*block = c.block;
	*shared_B = c.shared_B;
	*(cudaStream_t *)stream = c.stream;
	return cudaSuccess;
}

API cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **args, size_t shared_B,
	cudaStream_t)
{
	if (!kernel->decoded) {
		static const bool logs = getenv("STEPSIM_PTX_LOG") && !atexit(write_log);
		(void)logs;
		kernel->decoded = decoded(kernel->name);
	}
	const ptx::kernel &k = *kernel->decoded;
	if (block.y != 1 || block.z != 1)
		ptx::give_up("blocks of more than one dimension are not interpreted");
	if (!grid.x || !grid.y || !grid.z || !block.x || block.x > THREADS_MAX || grid.y > GRID_Y_MAX ||
		grid.z > GRID_Y_MAX || (k.threads_max && (int)block.x > k.threads_max) ||
		k.shared_B + shared_B > (size_t)kernel->shared_allowed_B)
		return said(cudaErrorInvalidValue);
	std::vector<uint8_t> params(k.param_B + 8);
	for (size_t n = 0; n < k.params.size(); n++)
		memcpy(params.data() + k.param_at[n], args[n], k.params[n].bytes);
	ptx::run_launch({&k, {grid.x, grid.y, grid.z}, (int)block.x, shared_B, params.data()});
	return cudaSuccess;
}

API cudaError_t cudaLaunchKernel(const void *host, dim3 grid, dim3 block, void **args, size_t shared_B,
	cudaStream_t stream)
{
	cudaKernel_t k;
	const cudaError_t code = __cudaGetKernel(&k, host);
	return code != cudaSuccess ? code : __cudaLaunchKernel(k, grid, block, args, shared_B, stream);
}

API cudaError_t cudaFuncSetAttribute(const void *host, cudaFuncAttribute attribute, int value)
{
	cudaKernel_t k;
	const cudaError_t code = __cudaGetKernel(&k, host);
	if (code != cudaSuccess)
		return code;
	if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize)
		ptx::give_up("this attribute of functions is not known");
	if (value < 0 || value > shared_max_B())
		return said(cudaErrorInvalidValue);
	k->shared_allowed_B = std::max(value, SHARED_WITHOUT_ASKING_MAX_B);
	return cudaSuccess;
}

/* ---- memory: the host's, bounded to the byte ---- */

API cudaError_t cudaMalloc(void **out, size_t bytes)
{
	const size_t whole = (bytes + 767) / 256 * 256;
	*out = aligned_alloc(256, whole);
	if (!*out)
		return said(cudaErrorMemoryAllocation);
	memset(*out, 0xcd, whole);
	ptx::global_memory.add((uint64_t)*out, bytes);
	return cudaSuccess;
}

API cudaError_t cudaFree(void *p)
{
	if (p)
		ptx::global_memory.remove((uint64_t)p);
	free(p);
	return cudaSuccess;
}

API cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind)
{
	memcpy(to, from, bytes);
	return cudaSuccess;
}

API cudaError_t cudaGetDevice(int *device)
{
	*device = 0;
	return cudaSuccess;
}

API cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int)
{
	if (attribute != cudaDevAttrMaxSharedMemoryPerBlockOptin)
		ptx::give_up("attribute %d of devices is not known", (int)attribute);
	*value = shared_max_B();
	return cudaSuccess;
}

API cudaError_t cudaDeviceSynchronize(void) { return cudaSuccess; }

API cudaError_t cudaGetLastError(void)
{
	const cudaError_t code = last;
	last = cudaSuccess;
	return code;
}

API const char *cudaGetErrorName(cudaError_t code) { return code == cudaSuccess ? "cudaSuccess" : "cudaError"; }
API const char *cudaGetErrorString(cudaError_t code)
{
	static char text[32];
	snprintf(text, sizeof text, code == cudaSuccess ? "no error" : "error %d", (int)code);
	return text;
}
