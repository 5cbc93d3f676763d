/* Memory: which addresses are there, and who has touched the cells of shared memory since the last barrier. */
#include "tests/ptx/memory.h"

#include <algorithm>

namespace ptx
{

allocations global_memory;

void allocations::remove(uint64_t at)
{
	end_of.erase(at);
	begin = 1;
	end = 0;
}

bool allocations::hold(uint64_t low, uint64_t high)
{
	if (low >= begin && high <= end)
		return true;
	auto next = end_of.upper_bound(low);
	if (next == end_of.begin())
		return false;
	--next;
	if (high > next->second)
		return false;
	begin = next->first;
	end = next->second;
	return true;
}

std::string allocations::nearest(uint64_t at) const
{
	auto next = end_of.upper_bound(at);
	std::string text = "no memory is near";
	uint64_t distance = 1 << 20;
	if (next != end_of.end() && next->first - at < distance) {
		distance = next->first - at;
		text = std::to_string(distance) + " B before an array of " +
		       std::to_string(next->second - next->first) + " B";
	}
	if (next != end_of.begin() && at - (--next)->second < distance)
		text = std::to_string(at - next->second) + " B behind the end of an array of " +
		       std::to_string(next->second - next->first) + " B";
	if (at >= next->first && at < next->second)
		text = "over the end of an array of " + std::to_string(next->second - next->first) + " B";
	return text;
}

/* ---- shared memory ---- */

void shared_memory::clear(uint64_t size_B, int cell_shift)
{
	size = size_B;
	shift = cell_shift;
	epoch = 1;
	const size_t cells = (size_t)(size >> shift) + 1;
	bytes.resize(std::max<size_t>(bytes.size(), size + 16));
	wrote.resize(std::max(wrote.size(), cells));
	read.resize(std::max(read.size(), cells));
	std::fill(bytes.begin(), bytes.begin() + (ptrdiff_t)size, (uint8_t)0xff);
	std::fill(wrote.begin(), wrote.begin() + (ptrdiff_t)cells, 0u);
	std::fill(read.begin(), read.begin() + (ptrdiff_t)cells, 0u);
}

static uint32_t warp_mark(const warp &w) { return w.in->shared.epoch << 6 | (uint32_t)(w.index + 1); }

/* Says what is wrong with the first cell that is; `write`: with a write. */
[[noreturn]] static void refuse_cells(const warp &w, const instr &i, int lane, uint64_t at, unsigned bytes, bool write)
{
	const shared_memory &m = w.in->shared;
	const uint32_t me = warp_mark(w), lanes = 1u << lane;
	const char *verb = write ? "write" : "read";
	for (uint64_t c = at >> m.shift; c <= (at + bytes - 1) >> m.shift; c++) {
		const uint32_t by = m.wrote[c], seen = m.read[c];
		const unsigned long long place = c << m.shift;
		if (by & PENDING)
			defect(w, i, lanes,
				"%s of shared memory at %llu before the cp.async of warp %u to it was waited for", verb,
				place, (by & 63) - 1);
		if (!write && !by)
			defect(w, i, lanes, "read of shared memory at %llu that nobody has written", place);
		if (by >> 6 == m.epoch && by != me)
			defect(w, i, lanes, "race: %s of shared memory at %llu that warp %u wrote, no barrier between",
				verb, place, (by & 63) - 1);
		if (write && seen >> 6 == m.epoch && seen != me) {
			const std::string who = (seen & 63) == MANY_WARPS ? "several warps"
			                                                  : "warp " + std::to_string((seen & 63) - 1);
			defect(w, i, lanes, "race: write of shared memory at %llu that %s read, no barrier between",
				place, who.c_str());
		}
	}
	give_up("a cell of shared memory was refused without a reason");
}

void read_shared(warp &w, const instr &i, int lane, uint64_t at, unsigned bytes)
{
	shared_memory &m = w.in->shared;
	const uint32_t me = warp_mark(w), now = m.epoch << 6;
	const uint64_t from = at >> m.shift, to = (at + bytes - 1) >> m.shift;
	bool good = true;
	for (uint64_t c = from; c <= to; c++) {
		/* Written by this warp, or by any in an earlier epoch. */
		const uint32_t by = m.wrote[c], seen = m.read[c];
		good &= by == me || by - 1 < now - 1;
		m.read[c] = seen < now || seen == me ? me : now | MANY_WARPS;
	}
	if (!good)
		refuse_cells(w, i, lane, at, bytes, false);
}

void write_shared(warp &w, const instr &i, int lane, uint64_t at, unsigned bytes, bool pending)
{
	shared_memory &m = w.in->shared;
	const uint32_t me = warp_mark(w), now = m.epoch << 6, mark = pending ? me | PENDING : me;
	const uint64_t from = at >> m.shift, to = (at + bytes - 1) >> m.shift;
	bool good = true;
	for (uint64_t c = from; c <= to; c++)
		good &= (m.wrote[c] == me || m.wrote[c] < now) && (m.read[c] == me || m.read[c] < now);
	if (!good)
		refuse_cells(w, i, lane, at, bytes, true);
	for (uint64_t c = from; c <= to; c++)
		m.wrote[c] = mark;
}

void arrive_shared(warp &w, uint64_t at, unsigned bytes)
{
	shared_memory &m = w.in->shared;
	for (uint64_t c = at >> m.shift; c <= (at + bytes - 1) >> m.shift; c++)
		m.wrote[c] = warp_mark(w);
}

/* ---- bounds ---- */

void check_access(warp &w, const instr &i, space s, const uint64_t *at, unsigned bytes, bool write)
{
	static const char *const names[SPACES] = {"generic", "global", "shared", "local", "parameter"};
	uint64_t low = ~0ull, high = 0, bits = 0;
	for_lanes(w, [&](int l) {
		low = std::min(low, at[l]);
		high = std::max(high, at[l]);
		bits |= at[l];
	});
	const uint64_t size = s == SHARED ? w.in->shared.size : s == LOCAL ? w.in->k->local_B : w.in->k->param_B;
	const bool inside = s == GLOBAL ? global_memory.hold(low, high + bytes) : high < size && high + bytes <= size;
	if (inside && !(bits & (bytes - 1)))
		return;
	const char *verb = write ? "write" : "read";
	for (uint32_t left = w.mask; left; left &= left - 1) {
		const int l = __builtin_ctz(left);
		if (at[l] & (bytes - 1))
			defect(w, i, 1u << l, "misaligned: %s of %u B of %s memory at %#llx", verb, bytes, names[s],
				(unsigned long long)at[l]);
		if (s == GLOBAL && !global_memory.hold(at[l], at[l] + bytes))
			defect(w, i, 1u << l, "out of bounds: %s of %u B of global memory at %#llx, %s", verb, bytes,
				(unsigned long long)at[l], global_memory.nearest(at[l]).c_str());
		if (s != GLOBAL && (at[l] >= size || at[l] + bytes > size))
			defect(w, i, 1u << l, "out of bounds: %s of %u B of %s memory at %lld, of %llu B", verb, bytes,
				names[s], (long long)at[l], (unsigned long long)size);
	}
}

} // namespace ptx
