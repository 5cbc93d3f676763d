/* The interface of the doubled CUDA runtime (cudart*.cc) for the doubles of the libraries above it.
 *
 * Memory of the device is memory of the process: work on a stream reads and writes it directly. One thread, the worker,
 * takes everything that streams hold, one piece after the other, in an order that is drawn (STEPSIM_DOUBLE_SEED) among
 * those that the streams and the waits between them allow.
 */
#ifndef STEPSIM_TESTS_DOUBLES_DOUBLE_H
#define STEPSIM_TESTS_DOUBLES_DOUBLE_H

#include <cuda_runtime_api.h>
#include <stddef.h>
#include <stdint.h>

#include <functional>
#include <type_traits>

typedef std::function<bool()> double_poll;

extern "C" {

/* That the libraries at hand are doubles: 1. */
int stepsim_double(void);

/* Where STEPSIM_DOUBLE_FAULT names this fault for this rank ("NAME", "NAME:N", "rank:R:NAME:N"; several with commas
 * between): its N, 1 without one. Else 0. */
int64_t double_fault(const char *name);

/* Ten times the compute capability of the devices: STEPSIM_DOUBLE_CC, "9.0" without it. */
int double_capability(void);

/* Shared memory that a block can have there, static and dynamic together, once it has asked for it. */
size_t double_shared_B(void);

/* Whether all bytes lie in device memory or pinned memory that is allocated: else a line to standard error that begins
 * with `who`. NULL with 0 bytes is right. */
bool double_memory(const char *who, const void *at, size_t bytes);

/* `start` is called once for each time that the work is put on the stream: now, or at each launch of the graph that the
 * stream is being captured into. What it returns is called on the worker when the work's turn has come, again and again
 * until it is true, while other streams go on. It must not wait itself. */
cudaError_t double_enqueue_polled(cudaStream_t stream, const std::function<double_poll()> &start);
cudaError_t double_enqueue_work(cudaStream_t stream, const std::function<void()> &work);

/* As work, of a library that would launch kernels: the faults "launch" and "kernel" count it. */
cudaError_t double_launch(cudaStream_t stream, const std::function<void()> &work);
}

/* Either, by what f returns. */
template <class F> static inline cudaError_t double_enqueue(cudaStream_t stream, F f)
{
	if constexpr (std::is_void_v<std::invoke_result_t<F>>)
		return double_enqueue_work(stream, f);
	else
		return double_enqueue_polled(stream, f);
}

#endif
