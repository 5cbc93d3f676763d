/* What each access has to ask for. Those that find a defect do not return. */
#ifndef STEPSIM_TESTS_PTX_MEMORY_H
#define STEPSIM_TESTS_PTX_MEMORY_H

#include "tests/ptx/lanewise.h"

namespace ptx
{

/* Bounds and alignment of `bytes` (a power of 2) at at[lane], for the lanes of the instruction. */
void check_access(warp &w, const instr &i, space s, const uint64_t *at, unsigned bytes, bool write);

/* Order, within bounds: who may read, who may write. pending: the data come with a cp.async. */
void read_shared(warp &w, const instr &i, int lane, uint64_t at, unsigned bytes);
void write_shared(warp &w, const instr &i, int lane, uint64_t at, unsigned bytes, bool pending);
void arrive_shared(warp &w, uint64_t at, unsigned bytes);

/* at[lane] for the lanes of the instruction, its offset included. */
static inline void addresses(warp &w, const instr &i, uint64_t at[LANES])
{
	const uint64_t offset = (uint64_t)i.offset;
	if (i.wide) {
		const uint64_t *a = lanes_at<uint64_t>(w, i.a);
		for_lanes(w, [=](int l) { at[l] = a[l] + offset; });
	} else {
		const uint32_t *a = lanes_at<uint32_t>(w, i.a);
		for_lanes(w, [=](int l) { at[l] = (uint32_t)(a[l] + (uint32_t)offset); });
	}
}

} // namespace ptx

#endif
