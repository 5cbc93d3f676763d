/* The host's side of exec/cuda/prim.cuh: what lets the text of a kernel compile with a host compiler and run as plain
 * threads of a block.
 *
 * A block runs on one thread of the process. By default with one thread to the block, which is quick and what the
 * doubled CUDA runtime uses; with STEPSIM_TWIN_THREADS=real with as many as the launch asks for, each a context of its
 * own that gives way in the primitives, so that indexing by thread and the meetings of threads are tried as well: which
 * thread of a block comes first changes from one meeting to the next. Warps have WARP threads there, and one where a
 * block has one. Threads that do not all meet in the same primitive (one has ended, or waits in another) end the
 * process with a line that names the kernel.
 */
#ifndef STEPSIM_TESTS_DOUBLES_TWIN_H
#define STEPSIM_TESTS_DOUBLES_TWIN_H

#include <cuda_runtime_api.h>
#include <stddef.h>
#include <string.h>

#include <tuple>
#include <typeinfo>
#include <utility>

#define WARP 32

/* Replacements for names that CUDA's host headers leave empty or declare for the device's compiler alone. */
#undef __shared__
#define __shared__ static thread_local
#define blockIdx twin_now.block
#define gridDim twin_now.grid

struct twin_state {
	uint3 grid, block;
	int thread, threads;
	size_t shared_B; /* dynamic */
};
extern __thread twin_state twin_now; /* not thread_local, which would call a function at each use */

static inline int thread_rank(void) { return twin_now.thread; }
static inline int thread_count(void) { return twin_now.threads; }
static inline int lane_count(void) { return twin_now.threads == 1 ? 1 : WARP; }
static inline int lane_rank(void) { return twin_now.thread % lane_count(); }
static inline int warp_rank(void) { return twin_now.thread / lane_count(); }
static inline int warp_count(void) { return twin_now.threads == 1 ? 1 : twin_now.threads / WARP; }

/* Meetings: of all threads of the block, or of a warp. Each returns when all have come. */
void block_sync(void);
float warp_sum(float x);
float warp_max(float x);
float warp_broadcast(float x, int lane);
float block_sum(float x);
float block_max(float x);

/* A block's threads take turns, so that a plain sum is atomic. */
template <class T> static inline void atomic_add(T *at, float x) { *at = from_float<T>(to_float(*at) + x); }

/* ---- launching ---- */

/* A launch with its arguments copied: what a stream queues. */
struct twin_call {
	virtual void run(void) = 0; /* one thread of one block */
	virtual const void *kernel_at(void) const = 0;
	virtual ~twin_call() {}
};

/* Runs all blocks, one after the other, each with so many bytes of dynamic shared memory. */
void twin_run(twin_call *call, dim3 grid, int threads, size_t shared_B);

/* Ends the process with a line that names the kernel and the block. */
[[noreturn]] void twin_refuse(const char *what);

/* Dynamic shared memory that a block can have: 227 KB, as compute capability 9.0 has it, or what a test asks for. */
size_t twin_shared_limit(void);
extern "C" void twin_shared_limit_set(size_t bytes);

/* As many threads as a launch asks for, or one: overrides STEPSIM_TWIN_THREADS. */
extern "C" void twin_threads_real(bool real); /* tests in C call it too */

template <class... A> struct twin_bound : twin_call {
	void (*kernel)(A...);
	std::tuple<A...> args;
	twin_bound(void (*k)(A...), A... a) : kernel(k), args(a...) {}
	void run(void) override { std::apply(kernel, args); }
	const void *kernel_at(void) const override { return (const void *)kernel; }
};

/* From the runtime's array of pointers to arguments. */
template <class... A, size_t... I> twin_call *twin_bind(void (*k)(A...), void **args, std::index_sequence<I...>)
{
	(void)args; /* of a kernel without any */
	return new twin_bound<A...>(k, *(A *)args[I]...);
}

typedef twin_call *twin_binder(const void *kernel, void **args);
template <class... A> twin_call *twin_bind_erased(const void *kernel, void **args)
{
	void (*k)(A...);
	memcpy(&k, &kernel, sizeof k);
	return twin_bind(k, args, std::index_sequence_for<A...>{});
}

/* The name of this type holds the kernel's: host and device compiler spell it alike once it is demangled, whether or
 * not the linker can see the kernel. */
template <auto *K> struct twin_kernel {
};

void twin_register(const std::type_info &of, const void *kernel, twin_binder *bind);
twin_call *twin_find(const char *mangled, void **args); /* NULL: no such kernel. The caller deletes it */

template <class... A> static void twin_register_as(const std::type_info &of, void (*k)(A...))
{
	twin_register(of, (const void *)k, twin_bind_erased<A...>);
}
struct twin_registrar {
	template <auto *K> explicit twin_registrar(twin_kernel<K>) { twin_register_as(typeid(twin_kernel<K>), K); }
};
#define TWIN_JOIN(a, b) a##b
#define TWIN_NAME(n) TWIN_JOIN(twin_registrar_, n)
#define TWIN(...) static const twin_registrar TWIN_NAME(__COUNTER__){twin_kernel<__VA_ARGS__>()};

template <class... A, class... B>
static void twin_launch(void (*k)(A...), dim3 grid, int threads, size_t shared_B, B... b)
{
	twin_bound<A...> call(k, (A)b...);
	twin_run(&call, grid, threads, shared_B);
}
#define LAUNCHED(e) ((void)(e), ST_OK)
#define LAUNCH(kernel, grid, threads, stream, ...) \
	((void)(stream), twin_launch(kernel, dim3(grid), (int)(threads), 0, __VA_ARGS__))

#endif
