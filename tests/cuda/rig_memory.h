/* The memory of a kernel under test, in one of two places: the host's, where the kernels' twins run, or with
 * CUDA_RIG_ON_GPU defined the device's, beside the kernels themselves. All that differs between the two stands here;
 * the lists of cases know of neither.
 *
 * Guards of known bytes stand before and behind each block; under ASan they may not even be read. With STEPSIM_RIG_BARE
 * set, device blocks end where the kernel's memory ends: then compute-sanitizer sees reads beyond it as well.
 */
#ifndef STEPSIM_TESTS_RIG_MEMORY_H
#define STEPSIM_TESTS_RIG_MEMORY_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RIG_GUARD_B 256 /* keeps what stands behind it aligned as device memory is */
#define RIG_GUARD_BYTE 0xA5

/* `bytes` of the kernel's between guards; `host` holds a copy where the kernel's memory is a device's. */
struct rig_block {
	size_t before, bytes, behind;
	unsigned char *host, *device;
};

#ifdef CUDA_RIG_ON_GPU

#define RIG_ON_GPU true
#define RIG_POISON(at, n) ((void)0)
#define RIG_UNPOISON(at, n) ((void)0)

/* Nothing after a call that fails is worth a look: a kernel that faults takes the context with it. */
static inline void rig_must(cudaError_t code, const char *what)
{
	if (code == cudaSuccess)
		return;
	fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(code));
	exit(2);
}

static inline size_t rig_guard_B(void) { return getenv("STEPSIM_RIG_BARE") ? 0 : RIG_GUARD_B; }

static inline unsigned char *rig_device_new(size_t bytes, unsigned char *host)
{
	(void)host;
	void *device = NULL;
	rig_must(cudaMalloc(&device, bytes ? bytes : 1), "cudaMalloc");
	return device;
}

static inline void rig_device_free(unsigned char *device) { rig_must(cudaFree(device), "cudaFree"); }
static inline void rig_to_device(unsigned char *device, const unsigned char *host, size_t n)
{
	rig_must(cudaMemcpy(device, host, n, cudaMemcpyHostToDevice), "copy to the device");
}
static inline void rig_to_host(unsigned char *host, const unsigned char *device, size_t n)
{
	rig_must(cudaMemcpy(host, device, n, cudaMemcpyDeviceToHost), "copy to the host");
}
static inline void rig_wait(void) { rig_must(cudaDeviceSynchronize(), "a kernel"); }
static inline void rig_real_threads(bool real) { (void)real; }
static inline void rig_shared_limit(size_t bytes) { (void)bytes; }

#else

#define RIG_ON_GPU false
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#define RIG_POISON(at, n) ASAN_POISON_MEMORY_REGION(at, n)
#define RIG_UNPOISON(at, n) ASAN_UNPOISON_MEMORY_REGION(at, n)
#else
#define RIG_POISON(at, n) ((void)0)
#define RIG_UNPOISON(at, n) ((void)0)
#endif

void twin_threads_real(bool real); /* tests/doubles/twin.h */
void twin_shared_limit_set(size_t bytes);

static inline size_t rig_guard_B(void) { return RIG_GUARD_B; }
static inline unsigned char *rig_device_new(size_t bytes, unsigned char *host)
{
	(void)bytes;
	return host;
}
static inline void rig_device_free(unsigned char *device) { (void)device; }
static inline void rig_to_device(unsigned char *device, const unsigned char *host, size_t n)
{
	(void)device;
	(void)host;
	(void)n;
}
static inline void rig_to_host(unsigned char *host, const unsigned char *device, size_t n)
{
	(void)host;
	(void)device;
	(void)n;
}
static inline void rig_wait(void) {}
static inline void rig_real_threads(bool real) { twin_threads_real(real); }
static inline void rig_shared_limit(size_t bytes) { twin_shared_limit_set(bytes); }

#endif

static inline void *rig_memory(size_t bytes)
{
	void *p = aligned_alloc(256, (bytes + 511) / 256 * 256);
	if (!p)
		abort();
	return p;
}

static inline size_t rig_block_B(const struct rig_block *b) { return b->before + b->bytes + b->behind; }

/* All of it holds the guards' byte. `shift_B`: by how much it begins behind an aligned address. */
static inline struct rig_block rig_block_new(size_t bytes, size_t shift_B)
{
	struct rig_block b = {.before = rig_guard_B() + shift_B, .bytes = bytes, .behind = rig_guard_B()};
	b.host = rig_memory(rig_block_B(&b));
	memset(b.host, RIG_GUARD_BYTE, rig_block_B(&b));
	b.device = rig_device_new(rig_block_B(&b), b.host);
	return b;
}

static inline void *rig_host(const struct rig_block *b) { return b->host + b->before; }
static inline void *rig_device(const struct rig_block *b) { return b->device + b->before; }

static inline void rig_block_free(struct rig_block *b)
{
	if (!b->host)
		return;
	rig_device_free(b->device);
	free(b->host);
	b->host = NULL;
}

/* Before the kernel: it has what `rig_host` holds. From here until the download the host may not look at it. */
static inline void rig_block_upload(struct rig_block *b)
{
	if (!b->host)
		return;
	rig_to_device(b->device, b->host, rig_block_B(b));
	RIG_POISON(b->host, b->before);
	RIG_POISON(b->host + b->before + b->bytes, b->behind);
}

/* After it; false where a guard was written. */
static inline bool rig_block_download(struct rig_block *b)
{
	if (!b->host)
		return true;
	RIG_UNPOISON(b->host, rig_block_B(b));
	rig_to_host(b->host, b->device, rig_block_B(b));
	for (size_t i = 0; i < b->before; i++)
		if (b->host[i] != RIG_GUARD_BYTE)
			return false;
	for (size_t i = b->before + b->bytes; i < rig_block_B(b); i++)
		if (b->host[i] != RIG_GUARD_BYTE)
			return false;
	return true;
}

#endif
