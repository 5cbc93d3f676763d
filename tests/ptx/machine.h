/* The machine that executes a decoded kernel: warps, their registers, and memory with what is known about it.
 *
 * The lanes of a warp that stand at the same instruction are a group; they run together. The group that stands at the
 * lowest instruction runs first, so that lanes which parted at a branch meet again behind it. At a meeting a group
 * waits until the lanes that take part are there. */
#ifndef STEPSIM_TESTS_PTX_MACHINE_H
#define STEPSIM_TESTS_PTX_MACHINE_H

#include <map>

#include "tests/ptx/numbers.h"
#include "tests/ptx/ptx.h"

namespace ptx
{

/* ---- memory ---- */

/* Generic addresses tell the space by their highest bits; those of global memory are the host's own. */
constexpr uint64_t SHARED_WINDOW = 1ull << 60, LOCAL_WINDOW = 2ull << 60, WINDOWS = 3ull << 60;

/* What cudaMalloc gave: begin -> end. */
struct allocations {
	std::map<uint64_t, uint64_t> end_of;
	uint64_t begin = 1, end = 0; /* the one that was found last */

	void add(uint64_t at, uint64_t bytes) { end_of[at] = at + bytes; }
	void remove(uint64_t at);
	bool hold(uint64_t low, uint64_t high); /* all of [low, high) lies in one of them */
	std::string nearest(uint64_t at) const; /* for people */
};
extern allocations global_memory;

/* The shared memory of a block. A cell is 2^shift bytes. For each, who has written and who has read last: the number of
 * the barrier that came before, then the warp. */
struct shared_memory {
	std::vector<uint8_t> bytes;
	std::vector<uint32_t> wrote, read; /* 0: nobody; else epoch << 6 | warp + 1 */
	uint64_t size = 0;
	int shift = 2;
	uint32_t epoch = 1;

	void clear(uint64_t size_B, int cell_shift);
	void pass_barrier(void) { epoch++; }
};

constexpr uint32_t MANY_WARPS = 62, PENDING = 1u << 31; /* in a cell: read by more than one; cp.async is on its way */

/* ---- warps ---- */

struct group {
	const instr *pc = NULL;
	uint32_t lanes = 0;
	bool waits = false; /* at a meeting */
	int depth = 0;
	const instr *back[CALLS_MAX];
};

/* A cp.async that has not arrived. */
struct copy_async {
	int lane;
	uint64_t to, from;
	const instr *by;
};

struct block;
struct warp {
	std::vector<uint8_t> registers, local;
	uint8_t *reg;
	uint32_t mask;         /* lanes that the instruction at hand is for */
	uint32_t began, alive; /* its lanes; those that have not ended */
	group now;             /* the one that runs */
	const instr *stop;     /* the running group gives way before it gets here; NULL: at once */
	std::vector<group> others;
	std::vector<copy_async> pending;
	block *in;
	int index;
	bool at_barrier, ended;
	int64_t executed;
	const kernel *prepared = NULL; /* whose constants the registers hold */
};

struct block {
	const kernel *k;
	uint32_t at[3], grid[3];
	int threads;
	uint8_t *params;
	shared_memory shared;
	std::vector<warp> warps;
};

template <class T> static inline T *lanes_at(warp &w, uint32_t slot) { return (T *)(w.reg + slot); }
static inline uint32_t &predicate_at(warp &w, uint32_t slot) { return *(uint32_t *)(w.reg + slot); }

/* Takes the running group to a meeting of the lanes `all`. False where it has to wait: the handler returns. */
bool meet(warp &w, const instr &i, uint32_t all);

/* ---- launches ---- */

struct launch {
	const kernel *k;
	uint32_t grid[3];
	int threads;
	uint64_t shared_B; /* dynamic */
	uint8_t *params;
};
void run_launch(const launch &l);

/* ---- reports ---- */

/* Ends the process: a defect at an instruction, of the lowest of `lanes`. */
[[noreturn]] void defect(const warp &w, const instr &i, uint32_t lanes, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
/* Ends the process: nothing of the kernel's, but the PTX cannot be interpreted, or the test misuses a call. */
[[noreturn]] void give_up(const char *format, ...) __attribute__((format(printf, 1, 2)));
std::string plain_name(const std::string &mangled);

} // namespace ptx

#endif
