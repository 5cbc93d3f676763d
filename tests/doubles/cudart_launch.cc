/* Kernels: what nvcc's host code registers and launches, and the twin that computes it. A launch is refused where its
 * shared memory, static and dynamic, is more than the kernel has been allowed on that device. */
#include "exec/cuda/prim.cuh"

#include <algorithm>

#include "tests/doubles/cudart.h"

#define THREADS_PER_SM 2048
#define THREADS_PER_BLOCK 1024
#define SHARED_B ((size_t)48 << 10) /* of a block, static and dynamic, that has not asked for more */

struct CUkern_st {
	std::string mangled;
	std::map<int, size_t> dynamic_B; /* by device: what cudaFuncSetAttribute allows */
};

/* With a lock of their own: they come before main, when the environment may not be as it will be. */
static std::mutex kernels_mutex;
static std::map<const void *, CUkern_st> &kernels(void)
{
	static std::map<const void *, CUkern_st> *all = new std::map<const void *, CUkern_st>;
	return *all;
}

/* Under kernels_mutex: bytes of static shared memory by mangled name. */
static std::map<std::string, size_t> &static_shared(void)
{
	static std::map<std::string, size_t> *all = new std::map<std::string, size_t>;
	return *all;
}

static size_t static_B_locked(const CUkern_st &k)
{
	auto found = static_shared().find(k.mangled);
	return found == static_shared().end() ? 0 : found->second;
}

/* ---- what runs before main ---- */

API void **__cudaRegisterFatBinary(void *registered)
{
	static void *handle[1];
	lock hold(kernels_mutex);
	fatbin_read(registered, static_shared());
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

static bool fits(dim3 grid, dim3 block)
{
	bool grid_fits = grid.x > 0 && grid.x <= 0x7fffffff && grid.y > 0 && grid.y <= 65535 && grid.z > 0 &&
	                 grid.z <= 65535;
	return grid_fits && block.x > 0 && block.x <= THREADS_PER_BLOCK && block.y == 1 && block.z == 1;
}

/* Whether a block has that much dynamic shared memory on the current device: static and dynamic together 48 KB, or
 * what cudaFuncSetAttribute has allowed. */
static bool shared_fits(const CUkern_st &k, size_t dynamic_B)
{
	lock hold(kernels_mutex);
	auto allowed = k.dynamic_B.find(device_now);
	return static_B_locked(k) + dynamic_B <= SHARED_B ||
	       (allowed != k.dynamic_B.end() && dynamic_B <= allowed->second);
}

API cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **args, size_t shared_B,
	cudaStream_t stream)
{
	return on_device([&](lock &hold) {
		if (!kernel)
			return cudaErrorInvalidDeviceFunction;
		if (!fits(grid, block)) {
			complain("%s: no launch of (%u, %u, %u) blocks of (%u, %u, %u) threads",
				kernel->mangled.c_str(), grid.x, grid.y, grid.z, block.x, block.y, block.z);
			return cudaErrorInvalidConfiguration;
		}
		if (!shared_fits(*kernel, shared_B)) {
			complain("%s: %zu bytes of dynamic shared memory, more than the kernel has been allowed",
				kernel->mangled.c_str(), shared_B);
			return cudaErrorInvalidValue;
		}
		std::shared_ptr<twin_call> call(twin_find(kernel->mangled.c_str(), args));
		if (!call) {
			complain("%s has no body on the host: TWIN() of it is missing", kernel->mangled.c_str());
			return cudaErrorInvalidDeviceFunction;
		}
		return submit_kernel(hold, stream, [=] { twin_run(call.get(), grid, (int)block.x, shared_B); });
	});
}

API cudaError_t cudaLaunchKernel(const void *host, dim3 grid, dim3 block, void **args, size_t shared_B,
	cudaStream_t stream)
{
	return __cudaLaunchKernel(kernel_of(host), grid, block, args, shared_B, stream);
}

/* ---- what is asked about them ---- */

API cudaError_t cudaFuncSetAttribute(const void *host, cudaFuncAttribute what, int value)
{
	cudaKernel_t k = kernel_of(host);
	if (!k)
		return said(cudaErrorInvalidDeviceFunction);
	if (what != cudaFuncAttributeMaxDynamicSharedMemorySize)
		return said(
			what == cudaFuncAttributePreferredSharedMemoryCarveout ? cudaSuccess : cudaErrorInvalidValue);
	lock hold(kernels_mutex);
	if (value < 0 || static_B_locked(*k) + (size_t)value > double_shared_B()) {
		complain("%s: %zu bytes of static and %d of dynamic shared memory, of %zu that a block can have",
			k->mangled.c_str(), static_B_locked(*k), value, double_shared_B());
		return said(cudaErrorInvalidValue);
	}
	k->dynamic_B[device_now] = (size_t)value;
	return cudaSuccess;
}

API cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *out, const void *host)
{
	*out = cudaFuncAttributes{};
	out->maxThreadsPerBlock = THREADS_PER_BLOCK;
	out->numRegs = 32;
	if (cudaKernel_t k = kernel_of(host)) {
		lock hold(kernels_mutex);
		auto allowed = k->dynamic_B.find(device_now);
		out->sharedSizeBytes = static_B_locked(*k);
		out->maxDynamicSharedSizeBytes = (int)(allowed == k->dynamic_B.end()
							       ? SHARED_B - std::min(SHARED_B, out->sharedSizeBytes)
							       : allowed->second);
	}
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
