/* Loads, stores, atomic operations, asynchronous copies. */
#include <algorithm>

#include "tests/ptx/memory.h"

namespace ptx
{

/* ---- loads and stores ---- */

/* Memory of one space: M in memory, R in the register, extended as M is signed. */
template <class M, class R, bool STORE> static void transfer(warp &w, const instr &i, space s, const uint64_t *at)
{
	const unsigned bytes = (unsigned)(i.count * sizeof(M));
	check_access(w, i, s, at, bytes, STORE);
	if (s == SHARED)
		for_lanes(w, [&](int l) {
			if (STORE)
				write_shared(w, i, l, at[l], bytes, false);
			else
				read_shared(w, i, l, at[l], bytes);
		});
	uint8_t *const base = s == GLOBAL   ? NULL
	                      : s == SHARED ? w.in->shared.bytes.data()
	                      : s == LOCAL  ? w.local.data()
	                                    : w.in->params;
	const uint64_t stride = s == LOCAL ? w.in->k->local_B : 0;
	for (int n = 0; n < i.count; n++) {
		R *r = lanes_at<R>(w, i.list[n]);
		for_lanes(w, [=](int l) {
			M *m = (M *)(base + at[l] + stride * (uint64_t)l) + n;
			if (STORE)
				*m = (M)r[l];
			else
				r[l] = (R)*m;
		});
	}
}

/* Generic addresses: the lanes of each space in turn. */
template <class M, class R, bool STORE> static void transfer_generic(warp &w, const instr &i, uint64_t *at)
{
	static const struct {
		uint64_t window;
		space s;
	} spaces[] = {{0, GLOBAL}, {SHARED_WINDOW, SHARED}, {LOCAL_WINDOW, LOCAL}};
	const uint32_t all = w.mask;
	for (const auto &x : spaces) {
		w.mask = 0;
		for (uint32_t left = all; left; left &= left - 1) {
			const int l = __builtin_ctz(left);
			if ((at[l] & WINDOWS) == x.window) {
				w.mask |= 1u << l;
				at[l] -= x.window;
			}
		}
		if (w.mask)
			transfer<M, R, STORE>(w, i, x.s, at);
	}
	w.mask = all;
}

template <class M, class R, bool STORE, int S> static void run_transfer(warp &w, const instr &i)
{
	uint64_t at[LANES];
	addresses(w, i, at);
	if (S == GENERIC)
		transfer_generic<M, R, STORE>(w, i, at);
	else
		transfer<M, R, STORE>(w, i, (space)S, at);
}

template <class M, class R, bool STORE> static handler for_space(space s)
{
	static const handler all[SPACES] = {run_transfer<M, R, STORE, GENERIC>, run_transfer<M, R, STORE, GLOBAL>,
		run_transfer<M, R, STORE, SHARED>, run_transfer<M, R, STORE, LOCAL>,
		STORE ? NULL : run_transfer<M, R, STORE, PARAM>};
	return all[s];
}

handler load_handler(space s, int size, int register_B, bool is_signed)
{
	const struct {
		int size, register_B;
		bool is_signed, matters; /* whether the type is signed */
		handler run;
	} all[] = {
		{1, 2, false, true, for_space<uint8_t, uint16_t, false>(s)},
		{1, 2, true, true, for_space<int8_t, uint16_t, false>(s)},
		{1, 4, false, true, for_space<uint8_t, uint32_t, false>(s)},
		{1, 4, true, true, for_space<int8_t, uint32_t, false>(s)},
		{2, 2, false, false, for_space<uint16_t, uint16_t, false>(s)},
		{2, 4, false, true, for_space<uint16_t, uint32_t, false>(s)},
		{2, 4, true, true, for_space<int16_t, uint32_t, false>(s)},
		{4, 4, false, false, for_space<uint32_t, uint32_t, false>(s)},
		{4, 8, false, true, for_space<uint32_t, uint64_t, false>(s)},
		{4, 8, true, true, for_space<int32_t, uint64_t, false>(s)},
		{8, 8, false, false, for_space<uint64_t, uint64_t, false>(s)},
	};
	for (const auto &x : all)
		if (x.size == size && x.register_B == register_B && (!x.matters || x.is_signed == is_signed))
			return x.run;
	return NULL;
}

handler store_handler(space s, int size, int register_B)
{
	const struct {
		int size, register_B;
		handler run;
	} all[] = {
		{1, 2, for_space<uint8_t, uint16_t, true>(s)},
		{1, 4, for_space<uint8_t, uint32_t, true>(s)},
		{2, 2, for_space<uint16_t, uint16_t, true>(s)},
		{2, 4, for_space<uint16_t, uint32_t, true>(s)},
		{4, 4, for_space<uint32_t, uint32_t, true>(s)},
		{4, 8, for_space<uint32_t, uint64_t, true>(s)},
		{8, 8, for_space<uint64_t, uint64_t, true>(s)},
	};
	for (const auto &x : all)
		if (x.size == size && x.register_B == register_B)
			return x.run;
	return NULL;
}

/* ---- atomic operations on global memory: lane after lane ---- */

/* Memory becomes f(what it was, lane, n) for value n of each lane; what it was goes into the destination. */
template <class M, class F> static void for_atomics(warp &w, const instr &i, F f)
{
	uint64_t at[LANES];
	addresses(w, i, at);
	for_lanes(w, [&](int l) {
		if (at[l] & WINDOWS)
			defect(w, i, 1u << l, "atomic operations on shared and local memory are not interpreted");
	});
	check_access(w, i, GLOBAL, at, (unsigned)(i.count * sizeof(M)), true);
	for (uint32_t left = w.mask; left; left &= left - 1) {
		const int l = __builtin_ctz(left);
		for (int n = 0; n < i.count; n++) {
			M *m = (M *)at[l] + n;
			const M old = *m;
			*m = f(old, l, n);
			lanes_at<M>(w, i.list[n])[l] = old;
		}
	}
}

template <class M, M (*F)(M, M)> static void run_atomic(warp &w, const instr &i)
{
	for_atomics<M>(w, i, [&](M old, int l, int n) { return F(old, lanes_at<M>(w, i.list[i.count + n])[l]); });
}

template <class M> static void run_compare_and_swap(warp &w, const instr &i)
{
	for_atomics<M>(w, i, [&](M old, int l, int) {
		return old == lanes_at<M>(w, i.list[1])[l] ? lanes_at<M>(w, i.list[2])[l] : old;
	});
}

template <class T> static T sum(T a, T b) { return (T)(a + b); }
template <class T> static T least(T a, T b) { return std::min(a, b); }
template <class T> static T greatest(T a, T b) { return std::max(a, b); }
static uint16_t sum_bf16(uint16_t a, uint16_t b) { return bf16_of(float_of_bf16(a) + float_of_bf16(b)); }
static uint16_t sum_f16(uint16_t a, uint16_t b) { return f16_of(float_of_f16(a) + float_of_f16(b)); }
template <uint16_t (*F)(uint16_t, uint16_t)> static uint32_t sum_halves(uint32_t a, uint32_t b)
{
	return F((uint16_t)a, (uint16_t)b) | (uint32_t)F((uint16_t)(a >> 16), (uint16_t)(b >> 16)) << 16;
}

handler atomic_handler(std::string_view operation, std::string_view type)
{
	static const struct {
		const char *operation, *type;
		handler run;
	} all[] = {
		{"add", "f32", run_atomic<float, sum>},
		{"add", "bf16", run_atomic<uint16_t, sum_bf16>},
		{"add", "f16", run_atomic<uint16_t, sum_f16>},
		{"add", "bf16x2", run_atomic<uint32_t, sum_halves<sum_bf16>>},
		{"add", "f16x2", run_atomic<uint32_t, sum_halves<sum_f16>>},
		{"add", "u32", run_atomic<uint32_t, sum>},
		{"add", "s32", run_atomic<uint32_t, sum>},
		{"add", "u64", run_atomic<uint64_t, sum>},
		{"min", "s64", run_atomic<int64_t, least>},
		{"max", "s64", run_atomic<int64_t, greatest>},
		{"min", "s32", run_atomic<int32_t, least>},
		{"max", "s32", run_atomic<int32_t, greatest>},
		{"cas", "b16", run_compare_and_swap<uint16_t>},
		{"cas", "b32", run_compare_and_swap<uint32_t>},
		{"cas", "b64", run_compare_and_swap<uint64_t>},
	};
	for (const auto &x : all)
		if (x.operation == operation && x.type == type)
			return x.run;
	return NULL;
}

/* ---- asynchronous copies ---- */

/* Nothing arrives before the wait. Until then the source is not read either. */
void run_copy_async(warp &w, const instr &i)
{
	uint64_t to[LANES], from[LANES];
	addresses(w, i, to);
	const uint64_t *b = lanes_at<uint64_t>(w, i.b);
	for_lanes(w, [&](int l) { from[l] = b[l] + (uint64_t)(int64_t)(int32_t)i.e; });
	check_access(w, i, SHARED, to, i.size, true);
	check_access(w, i, GLOBAL, from, i.size, false);
	for (uint32_t left = w.mask; left; left &= left - 1) {
		const int l = __builtin_ctz(left);
		write_shared(w, i, l, to[l], i.size, true);
		w.pending.push_back({l, to[l], from[l], &i});
	}
}

void run_copy_wait(warp &w, const instr &i)
{
	(void)i;
	size_t kept = 0;
	for (const copy_async &c : w.pending) {
		if (!(w.mask >> c.lane & 1)) {
			w.pending[kept++] = c;
			continue;
		}
		memcpy(w.in->shared.bytes.data() + c.to, (const void *)c.from, c.by->size);
		arrive_shared(w, c.to, c.by->size);
	}
	w.pending.resize(kept);
}

} // namespace ptx
