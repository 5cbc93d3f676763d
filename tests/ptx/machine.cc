/* Warps and their groups of lanes, blocks, launches. */
#include "tests/ptx/machine.h"

#include <algorithm>
#include <random>

namespace ptx
{

constexpr int64_t STEPS_MAX = 50000000; /* of a warp; the longest of the kernels' tests has a hundredth of it */

static bool same_place(const group &a, const group &b)
{
	return a.pc == b.pc && a.depth == b.depth && std::equal(a.back, a.back + a.depth, b.back);
}

/* ---- branches ---- */

void run_branch(warp &w, const instr &i)
{
	group &g = w.now;
	if (i.to <= &i && w.executed > STEPS_MAX)
		defect(w, i, w.mask, "the warp has executed %lld instructions and does not end", (long long)STEPS_MAX);
	if (w.mask == g.lanes) {
		g.pc = i.to;
		return;
	}
	group other = g;
	g.lanes &= ~w.mask;
	other.lanes = w.mask;
	other.pc = i.to;
	if (other.pc < g.pc)
		std::swap(g, other);
	w.stop = std::min(w.stop, other.pc);
	w.others.push_back(other);
}

void run_call(warp &w, const instr &i)
{
	if (w.mask != w.now.lanes)
		defect(w, i, w.mask, "a call by some of the lanes that are here");
	if (w.now.depth == CALLS_MAX)
		defect(w, i, w.mask, "more than %d calls inside each other", CALLS_MAX);
	w.now.back[w.now.depth++] = w.now.pc;
	w.now.pc = i.to;
	w.stop = NULL; /* places in another function have no order */
}

void run_return(warp &w, const instr &i)
{
	group &g = w.now;
	if (g.depth) {
		if (w.mask != g.lanes)
			defect(w, i, w.mask, "a return of some of the lanes that are here");
		g.pc = g.back[--g.depth];
		w.stop = NULL;
		return;
	}
	run_exit(w, i);
}

void run_exit(warp &w, const instr &i)
{
	(void)i;
	for (const copy_async &c : w.pending)
		if (w.mask >> c.lane & 1)
			defect(w, *c.by, 1u << c.lane, "a cp.async that its thread never waits for");
	w.alive &= ~w.mask;
	w.now.lanes &= ~w.mask;
	if (!w.now.lanes)
		w.stop = NULL;
}

/* ---- meetings ---- */

static int lanes_of(uint32_t mask) { return __builtin_popcount(mask); }

bool meet(warp &w, const instr &i, uint32_t all)
{
	const group &g = w.now;
	if (w.mask != g.lanes)
		defect(w, i, g.lanes & ~w.mask, "divergence: %d lanes skip an instruction at which %d meet",
			lanes_of(g.lanes & ~w.mask), lanes_of(w.mask));
	if (all & ~w.alive)
		defect(w, i, w.mask, "divergence: lane %d takes part, but it has ended", __builtin_ctz(all & ~w.alive));
	if (g.lanes & ~all)
		defect(w, i, g.lanes & ~all, "divergence: lane %d is here, but takes no part",
			__builtin_ctz(g.lanes & ~all));
	if (!(all & ~g.lanes))
		return true;
	w.now.pc = &i;
	w.now.waits = true;
	w.stop = NULL;
	return false;
}

/* Nobody can go on: each group waits for lanes that wait elsewhere. */
[[noreturn]] static void refuse_meeting(const warp &w)
{
	const group &a = w.others[0], &b = w.others[1];
	defect(w, *a.pc, a.lanes, "divergence: %d lanes wait here, and lane %d at line %u: they never meet",
		lanes_of(a.lanes), __builtin_ctz(b.lanes), b.pc->line);
}

/* ---- a warp ---- */

/* The group at the lowest place that does not wait becomes the running one; those that have come to the same place join
 * it. False where all lanes have ended. */
static bool pick(warp &w)
{
	std::vector<group> &all = w.others;
	if (w.now.lanes)
		all.push_back(w.now);
	w.now.lanes = 0;
	for (size_t n = 0; n < all.size(); n++)
		for (size_t m = n + 1; m < all.size();) {
			if (!same_place(all[n], all[m])) {
				m++;
				continue;
			}
			/* A meeting looks again at who is there. */
			all[n].lanes |= all[m].lanes;
			all[n].waits = false;
			all[m] = all.back();
			all.pop_back();
		}
	if (all.empty())
		return false;
	size_t first = all.size();
	for (size_t n = 0; n < all.size(); n++)
		if (!all[n].waits && (first == all.size() || all[n].pc < all[first].pc))
			first = n;
	if (first == all.size() && all.size() == 1)
		first = 0; /* the lanes that it waited for have ended: the meeting says so */
	if (first == all.size())
		refuse_meeting(w);
	w.now = all[first];
	w.now.waits = false;
	all[first] = all.back();
	all.pop_back();
	w.stop = (const instr *)UINTPTR_MAX;
	for (const group &g : all)
		if (g.pc > w.now.pc)
			w.stop = std::min(w.stop, g.pc);
	return true;
}

/* Until a barrier or the end. */
static void run_warp(warp &w)
{
	w.at_barrier = false;
	while (pick(w)) {
		do {
			const instr &i = *w.now.pc++;
			uint32_t mask = w.now.lanes;
			if (i.guard)
				mask &= i.unless ? ~predicate_at(w, i.guard) : predicate_at(w, i.guard);
			w.executed++;
			if (!mask)
				continue;
			w.mask = mask;
			i.run(w, i);
		} while (w.now.pc < w.stop);
		if (w.at_barrier)
			return;
	}
	w.ended = true;
}

/* ---- a block ---- */

static void set_lanes(warp &w, uint32_t slot, uint32_t first, uint32_t step)
{
	uint32_t *d = lanes_at<uint32_t>(w, slot);
	for (uint32_t l = 0; slot && l < LANES; l++)
		d[l] = first + l * step;
}

static void prepare(warp &w, const kernel &k)
{
	if (w.prepared == &k)
		return;
	w.prepared = &k;
	if (w.registers.size() < k.register_B + 64)
		w.registers.resize(k.register_B + 64);
	w.reg = w.registers.data() + (64 - (uintptr_t)w.registers.data() % 64) % 64;
	for (const constant &c : k.constants)
		for (int l = 0; l < LANES; l++)
			memcpy(w.reg + c.slot + l * c.bytes, &c.value, c.bytes);
	set_lanes(w, k.special_slot[LANE], 0, 1);
	w.local.assign(k.local_B * LANES, 0xff);
}

static void start_warp(block &b, warp &w, int index)
{
	const kernel &k = *b.k;
	prepare(w, k);
	set_lanes(w, k.special_slot[TID_X], (uint32_t)index * LANES, 1);
	set_lanes(w, k.special_slot[NTID_X], (uint32_t)b.threads, 0);
	for (int n = 0; n < 3; n++) {
		set_lanes(w, k.special_slot[CTAID_X + n], b.at[n], 0);
		set_lanes(w, k.special_slot[NCTAID_X + n], b.grid[n], 0);
	}
	const int lanes = std::min(LANES, b.threads - index * LANES);
	w.alive = w.began = lanes == LANES ? ALL_LANES : (1u << lanes) - 1;
	w.now = {};
	w.now.pc = k.code.data();
	w.now.lanes = w.alive;
	w.others.clear();
	w.pending.clear();
	w.in = &b;
	w.index = index;
	w.at_barrier = w.ended = false;
	w.executed = 0;
}

static void run_block(block &b, size_t warps, std::mt19937 &random)
{
	std::vector<size_t> order(warps);
	for (size_t n = 0; n < warps; n++)
		start_warp(b, b.warps[order[n] = n], (int)n);
	for (bool left = true; left;) {
		std::shuffle(order.begin(), order.end(), random);
		left = false;
		for (size_t n : order)
			if (!b.warps[n].ended) {
				run_warp(b.warps[n]);
				left |= !b.warps[n].ended;
			}
		b.shared.pass_barrier();
	}
}

void run_launch(const launch &l)
{
	static std::mt19937 random(7);
	static block b;
	const size_t warps = (size_t)(l.threads + LANES - 1) / LANES;
	kernel &k = *const_cast<kernel *>(l.k);
	b.k = l.k;
	b.threads = l.threads;
	b.params = l.params;
	std::copy(l.grid, l.grid + 3, b.grid);
	if (b.warps.size() < warps)
		b.warps.resize(warps);
	for (b.at[2] = 0; b.at[2] < l.grid[2]; b.at[2]++)
		for (b.at[1] = 0; b.at[1] < l.grid[1]; b.at[1]++)
			for (b.at[0] = 0; b.at[0] < l.grid[0]; b.at[0]++) {
				b.shared.clear(k.shared_B + l.shared_B, k.shared_shift);
				run_block(b, warps, random);
				for (size_t n = 0; n < warps; n++)
					k.executed += b.warps[n].executed;
			}
	k.launches++;
}

} // namespace ptx
