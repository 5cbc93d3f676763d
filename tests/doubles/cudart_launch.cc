/* Kernels: what nvcc's host code registers and launches, and the twin that computes it. */
#include "exec/cuda/prim.cuh"

#include <algorithm>

#include "tests/doubles/cudart.h"

#define THREADS_PER_SM 2048
#define THREADS_PER_BLOCK 1024

struct CUkern_st {
	std::string mangled;
};

/* With a lock of their own: they come before main, when the environment may not be as it will be. */
static std::mutex kernels_mutex;
static std::map<const void *, CUkern_st> &kernels(void)
{
	static std::map<const void *, CUkern_st> *all = new std::map<const void *, CUkern_st>;
	return *all;
}

/* ---- what runs before main ---- */

API void **__cudaRegisterFatBinary(void *)
{
	static void *handle[1];
	return handle;
}

API void __cudaRegisterFatBinaryEnd(void **) {}

API void __cudaUnregisterFatBinary(void **) {}

API char __cudaInitModule(void **) { return 1; }

API void __cudaRegisterFunction(void **, const char *host, char *, const char *name, int, uint3 *, uint3 *, dim3 *,
	dim3 *, int *)
{
	lock hold(kernels_mutex);
	kernels()[host].mangled = name;
}

static cudaKernel_t kernel_of(const void *host)
{
	lock hold(kernels_mutex);
	auto found = kernels().find(host);
	return found == kernels().end() ? NULL : &found->second;
}

API cudaError_t __cudaGetKernel(cudaKernel_t *out, const void *host)
{
	*out = kernel_of(host);
	return said(*out ? cudaSuccess : cudaErrorInvalidDeviceFunction);
}

/* ---- launches ---- */

struct configuration {
	dim3 grid, block;
	size_t shared_B;
	cudaStream_t stream;
};
static thread_local std::vector<configuration> configurations;

API unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_B, struct CUstream_st *stream)
{
	configurations.push_back(configuration{grid, block, shared_B, stream});
	return 0;
}

API cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared_B, void *stream)
{
	if (configurations.empty())
		return said(cudaErrorInvalidConfiguration);
	configuration c = configurations.back();
	configurations.pop_back();
	*grid = c.grid;
	*block = c.block;
	*shared_B = c.shared_B;
	*(cudaStream_t *)stream = c.stream;
	return cudaSuccess;
}

static cudaError_t submit_kernel(lock &hold, cudaStream_t stream, std::function<void()> work)
{
	if (++the().launches == double_fault("launch"))
		return cudaErrorLaunchOutOfResources;
	node n;
	n.kernel = true;
	n.work = work;
	return submit(hold, stream, n);
}

API cudaError_t double_launch(cudaStream_t stream, const std::function<void()> &work)
{
	return on_device([&](lock &hold) { return submit_kernel(hold, stream, work); });
}

static bool fits(dim3 grid, dim3 block, size_t shared_B)
{
	bool grid_fits = grid.x > 0 && grid.x <= 0x7fffffff && grid.y > 0 && grid.y <= 65535 && grid.z > 0 &&
	                 grid.z <= 65535;
	return grid_fits && block.x > 0 && block.x <= THREADS_PER_BLOCK && block.y == 1 && block.z == 1 &&
	       shared_B <= 232448;
}

API cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **args, size_t shared_B,
	cudaStream_t stream)
{
	return on_device([&](lock &hold) {
		if (!kernel)
			return cudaErrorInvalidDeviceFunction;
		if (!fits(grid, block, shared_B)) {
			complain("%s: no launch of (%u, %u, %u) blocks of (%u, %u, %u) threads with %zu bytes",
				kernel->mangled.c_str(), grid.x, grid.y, grid.z, block.x, block.y, block.z, shared_B);
			return cudaErrorInvalidConfiguration;
		}
		std::shared_ptr<twin_call> call(twin_find(kernel->mangled.c_str(), args));
		if (!call) {
			complain("%s has no body on the host: TWIN() of it is missing", kernel->mangled.c_str());
			return cudaErrorInvalidDeviceFunction;
		}
		return submit_kernel(hold, stream, [=] { twin_run(call.get(), grid, (int)block.x); });
	});
}

API cudaError_t cudaLaunchKernel(const void *host, dim3 grid, dim3 block, void **args, size_t shared_B,
	cudaStream_t stream)
{
	return __cudaLaunchKernel(kernel_of(host), grid, block, args, shared_B, stream);
}

/* ---- what is asked about them ---- */

API cudaError_t cudaFuncSetAttribute(const void *host, cudaFuncAttribute, int value)
{
	return said(!kernel_of(host)              ? cudaErrorInvalidDeviceFunction
		    : value < 0 || value > 232448 ? cudaErrorInvalidValue
						  : cudaSuccess);
}

API cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *out, const void *host)
{
	*out = cudaFuncAttributes{};
	out->maxThreadsPerBlock = THREADS_PER_BLOCK;
	out->numRegs = 32;
	return said(kernel_of(host) ? cudaSuccess : cudaErrorInvalidDeviceFunction);
}

API cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, const void *host, int threads,
	size_t, unsigned)
{
	if (!kernel_of(host))
		return said(cudaErrorInvalidDeviceFunction);
	if (threads < 1)
		return said(cudaErrorInvalidValue);
	*blocks = threads > THREADS_PER_BLOCK ? 0 : std::min(32, THREADS_PER_SM / threads);
	return cudaSuccess;
}

API cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *host, int threads,
	size_t shared_B)
{
	return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, host, threads, shared_B, 0);
}
