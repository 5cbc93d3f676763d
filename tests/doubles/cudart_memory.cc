/* Memory of the device and pinned memory: pages of the process, each allocation with a page behind it that nobody may
 * touch. Fresh bytes are 0xff, a NaN in fp32, bf16 and fp16; freed ones stay out of reach for good, so that no later
 * allocation hides who still uses them. */
#include "tests/doubles/cudart.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE_B ((size_t)4096)
#define ALIGN_B ((size_t)256)
#define FRESH 0xff
#define BEYOND 0xa5 /* up to the page behind */

enum place { PAGEABLE, DEVICE, PINNED, FREED, OVERRUN };

struct block {
	size_t bytes;
	place where;
	int device;
	bool registered; /* the caller's own memory */
};

/* By address; under the lock. */
static std::map<uintptr_t, block> &blocks(void)
{
	static std::map<uintptr_t, block> *all = new std::map<uintptr_t, block>;
	return *all;
}

static place place_locked(const void *at, size_t bytes)
{
	uintptr_t begin = (uintptr_t)at;
	auto next = blocks().upper_bound(begin);
	if (next != blocks().begin()) {
		auto b = std::prev(next);
		if (begin < b->first + b->second.bytes)
			return b->second.where != FREED && begin + bytes > b->first + b->second.bytes ? OVERRUN
			                                                                              : b->second.where;
		if (!b->second.registered && begin < b->first + b->second.bytes + PAGE_B)
			return OVERRUN;
	}
	return next != blocks().end() && begin + bytes > next->first ? OVERRUN : PAGEABLE;
}

static const char *const place_text[] = {"memory of the host", "memory of the device", "pinned memory",
	"memory that was freed", "memory beyond an allocation's end"};

API bool double_memory(const char *who, const void *at, size_t bytes)
{
	if (!at && !bytes)
		return true;
	lock hold(the().mutex);
	place p = place_locked(at, bytes);
	if (p != DEVICE && p != PINNED)
		complain("%s: %zu bytes at %p: %s", who, bytes, at, place_text[p]);
	return p == DEVICE || p == PINNED;
}

/* ---- allocation ---- */

static size_t padded(size_t bytes) { return (bytes + ALIGN_B - 1) / ALIGN_B * ALIGN_B; }

static size_t pages_B(size_t bytes) { return (padded(bytes) + PAGE_B - 1) / PAGE_B * PAGE_B; }

static cudaError_t allocate_locked(void **out, size_t bytes, place where)
{
	gpu &own = the().gpus[(size_t)device_now];
	*out = NULL;
	if (bytes == 0)
		return cudaSuccess;
	if (++the().allocations == double_fault("malloc"))
		return cudaErrorMemoryAllocation;
	if (where == DEVICE && bytes > memory_B() - own.used_B)
		return cudaErrorMemoryAllocation;
	char *pages = (char *)mmap(NULL, pages_B(bytes) + PAGE_B, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (pages == MAP_FAILED)
		return cudaErrorMemoryAllocation;
	mprotect(pages + pages_B(bytes), PAGE_B, PROT_NONE);
	char *at = pages + pages_B(bytes) - padded(bytes);
	memset(at, FRESH, bytes);
	memset(at + bytes, BEYOND, padded(bytes) - bytes);
	blocks()[(uintptr_t)at] = block{bytes, where, device_now, false};
	if (where == DEVICE)
		own.used_B += bytes;
	*out = at;
	return cudaSuccess;
}

static cudaError_t free_locked(lock &hold, void *at, place where)
{
	auto found = blocks().find((uintptr_t)at);
	if (found == blocks().end() || found->second.where != where || found->second.registered) {
		complain("%p is freed: %s", at, place_text[place_locked(at, 1)]);
		return cudaErrorInvalidValue;
	}
	cudaError_t code = drain_locked(hold);
	block &b = found->second;
	for (size_t i = b.bytes; i < padded(b.bytes); i++)
		if (((unsigned char *)at)[i] != BEYOND) {
			complain("%zu bytes at %p: written behind their end", b.bytes, at);
			code = cudaErrorInvalidValue;
			break;
		}
	size_t all_B = pages_B(b.bytes);
	char *pages = (char *)at + padded(b.bytes) - all_B;
	madvise(pages, all_B, MADV_DONTNEED);
	mprotect(pages, all_B, PROT_NONE);
	b.where = FREED;
	if (where == DEVICE)
		the().gpus[(size_t)b.device].used_B -= b.bytes;
	return code;
}

static cudaError_t allocate(void **out, size_t bytes, place where)
{
	return on_device([&](lock &) {
		cudaError_t code = unsafe_locked();
		return code == cudaSuccess ? allocate_locked(out, bytes, where) : code;
	});
}

static cudaError_t release(void *at, place where)
{
	return on_device([&](lock &hold) {
		cudaError_t code = at ? unsafe_locked() : cudaSuccess;
		return code == cudaSuccess && at ? free_locked(hold, at, where) : code;
	});
}

API cudaError_t cudaMalloc(void **out, size_t bytes) { return allocate(out, bytes, DEVICE); }

API cudaError_t cudaFree(void *at) { return release(at, DEVICE); }

API cudaError_t cudaHostAlloc(void **out, size_t bytes, unsigned) { return allocate(out, bytes, PINNED); }

API cudaError_t cudaMallocHost(void **out, size_t bytes) { return allocate(out, bytes, PINNED); }

API cudaError_t cudaFreeHost(void *at) { return release(at, PINNED); }

API cudaError_t cudaHostGetDevicePointer(void **out, void *at, unsigned)
{
	*out = at;
	return said(double_memory("cudaHostGetDevicePointer", at, 1) ? cudaSuccess : cudaErrorInvalidValue);
}

API cudaError_t cudaHostRegister(void *at, size_t bytes, unsigned)
{
	return on_device([&](lock &) {
		if (!at || !bytes)
			return cudaErrorInvalidValue;
		if (place_locked(at, bytes) != PAGEABLE)
			return cudaErrorHostMemoryAlreadyRegistered;
		blocks()[(uintptr_t)at] = block{bytes, PINNED, device_now, true};
		return cudaSuccess;
	});
}

API cudaError_t cudaHostUnregister(void *at)
{
	return on_device([&](lock &) {
		auto found = blocks().find((uintptr_t)at);
		if (found == blocks().end() || !found->second.registered)
			return cudaErrorHostMemoryNotRegistered;
		blocks().erase(found);
		return cudaSuccess;
	});
}

API cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *out, const void *at)
{
	return on_device([&](lock &) {
		place p = place_locked(at, 1);
		*out = cudaPointerAttributes{};
		out->type = p == DEVICE   ? cudaMemoryTypeDevice
		            : p == PINNED ? cudaMemoryTypeHost
		                          : cudaMemoryTypeUnregistered;
		out->device = device_now;
		out->devicePointer = p == DEVICE || p == PINNED ? (void *)at : NULL;
		out->hostPointer = p == DEVICE ? NULL : (void *)at;
		return cudaSuccess;
	});
}

/* ---- copies ---- */

/* Whether the memory is what the call says that it is. */
static bool fits_locked(const char *call, const char *role, const void *at, size_t bytes, bool device, bool any,
	place *p)
{
	*p = place_locked(at, bytes);
	bool good = *p != FREED && *p != OVERRUN && (any || (*p == DEVICE) == device);
	if (!good)
		complain("%s: %s, %zu bytes at %p: %s", call, role, bytes, at, place_text[*p]);
	return good;
}

/* On the worker: what was good when the copy was asked for may be freed by now. */
static bool still_there(int device, const void *at, size_t bytes)
{
	bool there;
	{
		lock hold(the().mutex);
		place p = place_locked(at, bytes);
		there = p != FREED && p != OVERRUN;
	}
	if (!there)
		fail_device(device, "a copy touches memory that is no longer there");
	return there;
}

static cudaError_t copy(const char *call, void *to, const void *from, size_t bytes, cudaMemcpyKind kind, cudaStream_t s,
	bool sync)
{
	return on_device([&](lock &hold) {
		place t, f;
		bool any = kind == cudaMemcpyDefault;
		cudaStream_t meant = stream_locked(s);
		cudaError_t code = sync ? unsafe_locked() : cudaSuccess;
		if (!meant || code != cudaSuccess)
			return meant ? code : cudaErrorInvalidResourceHandle;
		if (bytes == 0)
			return cudaSuccess;
		if (!fits_locked(call, "to", to, bytes,
			    kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice, any, &t) ||
			!fits_locked(call, "from", from, bytes,
				kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice, any, &f))
			return cudaErrorInvalidValue;
		int device = device_now;
		node n;
		std::shared_ptr<std::vector<char>> staged;
		if (f == PAGEABLE && t == DEVICE && !meant->capturing)
			staged = std::make_shared<std::vector<char>>((const char *)from, (const char *)from + bytes);
		n.work = [=] {
			if (still_there(device, to, bytes) && still_there(device, from, staged ? 0 : bytes))
				memmove(to, staged ? staged->data() : from, bytes);
		};
		code = submit(hold, s, n);
		bool waits = (t == PAGEABLE && f != PAGEABLE) || (t != DEVICE && f != DEVICE) ||
		             (sync && !(t == DEVICE && f == DEVICE));
		return code == cudaSuccess && waits && !meant->capturing ? wait_locked(hold, meant->last) : code;
	});
}

API cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind, cudaStream_t s)
{
	return copy("cudaMemcpyAsync", to, from, bytes, kind, s, false);
}

API cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind kind)
{
	return copy("cudaMemcpy", to, from, bytes, kind, NULL, true);
}

static cudaError_t set(const char *call, void *at, int value, size_t bytes, cudaStream_t s, bool sync)
{
	return on_device([&](lock &hold) {
		place p;
		cudaError_t code = sync ? unsafe_locked() : cudaSuccess;
		if (code != cudaSuccess || bytes == 0)
			return code;
		if (!fits_locked(call, "at", at, bytes, true, true, &p) || p == PAGEABLE) {
			if (p == PAGEABLE)
				complain("%s: %zu bytes at %p: %s", call, bytes, at, place_text[p]);
			return cudaErrorInvalidValue;
		}
		int device = device_now;
		node n;
		n.work = [=] {
			if (still_there(device, at, bytes))
				memset(at, value, bytes);
		};
		return submit(hold, s, n);
	});
}

API cudaError_t cudaMemsetAsync(void *at, int value, size_t bytes, cudaStream_t s)
{
	return set("cudaMemsetAsync", at, value, bytes, s, false);
}

API cudaError_t cudaMemset(void *at, int value, size_t bytes)
{
	return set("cudaMemset", at, value, bytes, NULL, true);
}
