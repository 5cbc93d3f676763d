/* Blocks of a kernel on one thread of the process: the threads of a block are contexts that take turns, and give way
 * where they meet. */
#include "exec/cuda/prim.cuh"

#include <cxxabi.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <map>
#include <string>
#include <vector>

#include "tests/doubles/fiber.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#define FIBER_LEAVE(save, bottom, size) __sanitizer_start_switch_fiber(save, bottom, size)
#define FIBER_ENTER(save, bottom, size) __sanitizer_finish_switch_fiber(save, bottom, size)
#else
#define FIBER_LEAVE(save, bottom, size) ((void)(save), (void)(bottom), (void)(size))
#define FIBER_ENTER(save, bottom, size) ((void)(save), (void)(bottom), (void)(size))
#endif

#define STACK_B ((size_t)128 << 10)
#define THREADS_MAX 1024

__thread twin_state twin_now;

/* ---- names ---- */

struct entry {
	const void *kernel;
	twin_binder *bind;
};

/* Made at its first use: kernels register before main, in any order of files. */
static std::map<std::string, entry> &registry(void)
{
	static std::map<std::string, entry> *all = new std::map<std::string, entry>;
	return *all;
}

static std::string demangled(const char *name)
{
	int bad;
	char *text = abi::__cxa_demangle(name, NULL, NULL, &bad);
	std::string out = bad ? name : text;
	free(text);
	return out;
}

void twin_register(const std::type_info &of, const void *kernel, twin_binder *bind)
{
	std::string name = demangled(of.name()); /* "twin_kernel<&(NAME)>" */
	size_t begin = name.find("<&") + 2, length = name.size() - begin - 1;
	if (name[begin] == '(') {
		begin++;
		length -= 2;
	}
	registry()[name.substr(begin, length)] = entry{kernel, bind};
}

twin_call *twin_find(const char *mangled, void **args)
{
	auto found = registry().find(demangled(mangled));
	return found == registry().end() ? NULL : found->second.bind(found->second.kernel, args);
}

static const char *name_of(const void *kernel)
{
	for (const auto &[name, e] : registry())
		if (e.kernel == kernel)
			return name.c_str();
	return "a kernel without TWIN(...)";
}

/* ---- the threads of one block ---- */

enum meeting { RUNS, ENDED, BLOCK_SYNC, BLOCK_SUM, BLOCK_MAX, WARP_SUM, WARP_MAX, WARP_BROADCAST };
static const char *const meeting_name[] = {"still runs", "has ended", "waits in block_sync", "waits in block_sum",
	"waits in block_max", "waits in warp_sum", "waits in warp_max", "waits in warp_broadcast"};

struct fiber {
	fiber_context context;
	void *fake_stack; /* AddressSanitizer's */
	char *stack;
	meeting at;
	int lane;
	float x;
};

struct block {
	std::vector<fiber> fibers;
	fiber_context home;
	void *home_fake_stack;
	const void *home_bottom;
	size_t home_size;
	twin_call *call;

	~block()
	{
		for (fiber &f : fibers)
			munmap(f.stack, STACK_B);
	}
};
static thread_local block *now; /* of this thread of the process; kept until it ends */

void twin_refuse(const char *what)
{
	fprintf(stderr, "twin: %s: block (%u, %u, %u): %s\n", name_of(now->call->kernel_at()), twin_now.block.x,
		twin_now.block.y, twin_now.block.z, what);
	abort();
}

static void leave(fiber *f, bool for_good)
{
	FIBER_LEAVE(for_good ? NULL : &f->fake_stack, now->home_bottom, now->home_size);
	fiber_switch(&f->context, &now->home);
	FIBER_ENTER(f->fake_stack, &now->home_bottom, &now->home_size);
}

static void fiber_main(void)
{
	FIBER_ENTER(NULL, &now->home_bottom, &now->home_size);
	fiber *f = &now->fibers[(size_t)twin_now.thread];
	now->call->run();
	f->at = ENDED;
	leave(f, true);
}

static void resume(int thread)
{
	fiber *f = &now->fibers[(size_t)thread];
	twin_now.thread = thread;
	FIBER_LEAVE(&now->home_fake_stack, f->stack, STACK_B);
	fiber_switch(&now->home, &f->context);
	FIBER_ENTER(now->home_fake_stack, NULL, NULL);
}

/* Comes to a meeting with x, leaves with its result. */
static float meet(meeting at, float x, int lane)
{
	fiber *f = &now->fibers[(size_t)twin_now.thread];
	f->at = at;
	f->x = x;
	f->lane = lane;
	leave(f, false);
	return f->x;
}

/* The sums run in the order of the device's: a butterfly. */
static void reduce(float x[WARP], bool max)
{
	for (int d = WARP / 2; d > 0; d /= 2) {
		float y[WARP];
		for (int i = 0; i < WARP; i++)
			y[i] = max ? fmaxf(x[i], x[i ^ d]) : x[i] + x[i ^ d];
		memcpy(x, y, sizeof y);
	}
}

static void meet_warp(fiber *f, meeting at)
{
	float x[WARP];
	for (int i = 0; i < WARP; i++)
		x[i] = f[i].x;
	if (at != WARP_BROADCAST)
		reduce(x, at == WARP_MAX || at == BLOCK_MAX);
	for (int i = 0; i < WARP; i++)
		f[i].x = x[at == WARP_BROADCAST ? f[i].lane & (WARP - 1) : i];
}

static void meet_block(int threads, meeting at)
{
	float part[WARP];
	for (int i = 0; i < WARP; i++)
		part[i] = at == BLOCK_MAX ? -INFINITY : 0;
	for (int w = 0; w < threads / WARP; w++) {
		meet_warp(&now->fibers[(size_t)w * WARP], at);
		part[w] = now->fibers[(size_t)w * WARP].x;
	}
	reduce(part, at == BLOCK_MAX);
	for (int i = 0; i < threads; i++)
		now->fibers[(size_t)i].x = part[0];
}

/* The first of n threads from `first` that is elsewhere than the first one: -1 for none. */
static int strayed(int first, int n)
{
	for (int i = first + 1; i < first + n; i++)
		if (now->fibers[(size_t)i].at != now->fibers[(size_t)first].at)
			return i;
	return -1;
}

static void refuse_strayed(int a, int b)
{
	char what[160];
	snprintf(what, sizeof what, "thread %d %s, thread %d %s: all threads meet, or none", a,
		meeting_name[now->fibers[(size_t)a].at], b, meeting_name[now->fibers[(size_t)b].at]);
	twin_refuse(what);
}

/* With all threads stopped: lets those go on that have met. False when all have ended. */
static bool meet_all(int threads)
{
	bool warps_met = false;
	for (int w = 0; w < threads; w += WARP) {
		bool in_warp = false;
		for (int i = w; i < w + WARP; i++)
			in_warp = in_warp || now->fibers[(size_t)i].at >= WARP_SUM;
		if (!in_warp)
			continue;
		int other = strayed(w, WARP);
		if (other >= 0)
			refuse_strayed(w, other);
		meet_warp(&now->fibers[(size_t)w], now->fibers[(size_t)w].at);
		for (int i = w; i < w + WARP; i++)
			now->fibers[(size_t)i].at = RUNS;
		warps_met = true;
	}
	if (warps_met)
		return true;
	int other = strayed(0, threads);
	if (other >= 0)
		refuse_strayed(0, other);
	if (now->fibers[0].at == ENDED)
		return false;
	if (now->fibers[0].at != BLOCK_SYNC)
		meet_block(threads, now->fibers[0].at);
	for (int i = 0; i < threads; i++)
		now->fibers[(size_t)i].at = RUNS;
	return true;
}

static void fiber_add(void)
{
	void *stack = mmap(NULL, STACK_B, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
	if (stack == MAP_FAILED)
		twin_refuse("no memory for its threads");
	mprotect(stack, 4096, PROT_NONE); /* a thread that overruns its stack ends here, not in its neighbour's */
	now->fibers.push_back(fiber{});
	now->fibers.back().stack = (char *)stack;
}

static void fiber_begin(fiber *f)
{
	fiber_prepare(&f->context, f->stack, STACK_B, fiber_main);
	f->fake_stack = NULL;
	f->at = RUNS;
}

/* The order of turns is reversed at each meeting: what a thread reads of another's before they met is there in one of
 * the two orders, and not in the other. */
static void run_block(int threads)
{
	while (now->fibers.size() < (size_t)threads)
		fiber_add();
	for (int i = 0; i < threads; i++)
		fiber_begin(&now->fibers[(size_t)i]);
	bool backward = false;
	do {
		for (int i = 0; i < threads; i++) {
			int thread = backward ? threads - 1 - i : i;
			if (now->fibers[(size_t)thread].at == RUNS)
				resume(thread);
		}
		backward = !backward;
	} while (meet_all(threads));
}

/* ---- launches ---- */

static int real = -1; /* not asked yet */

void twin_threads_real(bool on) { real = on; }

static bool threads_are_real(void)
{
	if (real < 0) {
		const char *text = getenv("STEPSIM_TWIN_THREADS");
		real = text && strcmp(text, "real") == 0;
	}
	return real;
}

static size_t limit_B = 227 << 10;

size_t twin_shared_limit(void) { return limit_B; }

void twin_shared_limit_set(size_t bytes) { limit_B = bytes; }

void twin_run(twin_call *call, dim3 grid, int threads, size_t shared_B)
{
	static thread_local block of_thread;
	now = &of_thread;
	now->call = call;
	twin_now.block = uint3{0, 0, 0};
	if (grid.x == 0 || grid.y == 0 || grid.z == 0 || threads < 1 || threads > THREADS_MAX)
		twin_refuse("no valid launch: a grid of 1 or more blocks of 1 to 1024 threads");
	if (threads > 1 && threads % WARP)
		twin_refuse("no valid launch: threads come in warps of 32");
	if (shared_B > limit_B)
		twin_refuse("no valid launch: a block cannot have that much dynamic shared memory");
	if (!threads_are_real())
		threads = 1;
	twin_now.grid = uint3{grid.x, grid.y, grid.z};
	twin_now.threads = threads;
	twin_now.shared_B = shared_B;
	for (unsigned z = 0; z < grid.z; z++)
		for (unsigned y = 0; y < grid.y; y++)
			for (unsigned x = 0; x < grid.x; x++) {
				twin_now.block = uint3{x, y, z};
				twin_now.thread = 0;
				if (threads == 1)
					call->run();
				else
					run_block(threads);
			}
}

/* ---- meetings: with one thread nobody is waited for ---- */

void block_sync(void)
{
	if (twin_now.threads > 1)
		meet(BLOCK_SYNC, 0, 0);
}

float warp_sum(float x) { return twin_now.threads > 1 ? meet(WARP_SUM, x, 0) : x; }
float warp_max(float x) { return twin_now.threads > 1 ? meet(WARP_MAX, x, 0) : x; }
float block_sum(float x) { return twin_now.threads > 1 ? meet(BLOCK_SUM, x, 0) : x; }
float block_max(float x) { return twin_now.threads > 1 ? meet(BLOCK_MAX, x, 0) : x; }

float warp_broadcast(float x, int lane)
{
	if (twin_now.threads > 1)
		return meet(WARP_BROADCAST, x, lane);
	if (lane != 0)
		twin_refuse("warp_broadcast from a lane beyond lane_count(), which is 1");
	return x;
}
