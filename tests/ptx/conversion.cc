/* Moves and conversions: a row for each instruction that the kernels have, and the table of all rows. */
#include <cuda_fp8.h>

#include <limits>

#include <unordered_map>

#include "tests/ptx/lanewise.h"

namespace ptx
{

template <class T> static T same(T x) { return x; }
/* Of a register's bits those of S, then extended to D. */
template <class D, class S, class R> static D integer(R x) { return (D)(S)x; }
template <uint64_t WINDOW> static uint64_t into_window(uint64_t x) { return x + WINDOW; }
template <uint64_t WINDOW> static uint64_t from_window(uint64_t x) { return x - WINDOW; }

template <class D, class S> static D real(S x) { return (D)x; }
/* Towards zero; what does not fit becomes the nearest that does, and no number 0. */
template <class D> static D integer_of(float x)
{
	const double low = (double)std::numeric_limits<D>::min(), high = (double)std::numeric_limits<D>::max();
	return x != x              ? 0
	       : (double)x <= low  ? std::numeric_limits<D>::min()
	       : (double)x >= high ? std::numeric_limits<D>::max()
	                           : (D)x;
}
template <class D> static D nearest_integer_of(float x) { return integer_of<D>(nearbyintf(x)); }
static float nearest(float x) { return nearbyintf(x); }
static float towards_zero(float x) { return truncf(x); }
static float downwards(float x) { return floorf(x); }
static float saturated(float x) { return x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f; }

/* The first operand goes into the upper half. */
static uint32_t pack_bf16(float high, float low) { return (uint32_t)bf16_of(high) << 16 | bf16_of(low); }
static uint32_t pack_f16(float high, float low) { return (uint32_t)f16_of(high) << 16 | f16_of(low); }
static uint16_t pack_e4m3(float high, float low)
{
	return (uint16_t)(__nv_cvt_float_to_fp8(high, __NV_SATFINITE, __NV_E4M3) << 8 |
			  __nv_cvt_float_to_fp8(low, __NV_SATFINITE, __NV_E4M3));
}
static uint32_t unpack_e4m3(uint16_t x)
{
	const __half_raw low = __nv_cvt_fp8_to_halfraw((__nv_fp8_storage_t)x, __NV_E4M3),
			 high = __nv_cvt_fp8_to_halfraw((__nv_fp8_storage_t)(x >> 8), __NV_E4M3);
	return (uint32_t)high.x << 16 | low.x;
}

/* Bytes of the pair b:a as the nibbles of c name them; one with its highest bit set is the byte's sign. */
static uint32_t permute(uint32_t a, uint32_t b, uint32_t c)
{
	const uint64_t pair = (uint64_t)b << 32 | a;
	uint32_t d = 0;
	for (int n = 0; n < 4; n++, c >>= 4) {
		const uint8_t byte = (uint8_t)(pair >> 8 * (c & 7));
		d |= (uint32_t)(c & 8 ? (byte >> 7 ? 0xff : 0) : byte) << 8 * n;
	}
	return d;
}

/* ---- moves with vectors ---- */

/* The first of the parts lies lowest. */
template <class W, class P> static void pack_parts(warp &w, const instr &i)
{
	W *d = lanes_at<W>(w, i.d);
	for_lanes(w, [&](int l) {
		W all = 0;
		for (int n = 0; n < i.count; n++)
			all |= (W)((W)lanes_at<P>(w, i.list[n])[l] << 8 * sizeof(P) * (size_t)n);
		d[l] = all;
	});
}

template <class W, class P> static void unpack_parts(warp &w, const instr &i)
{
	const W *a = lanes_at<W>(w, i.a);
	for_lanes(w, [&](int l) {
		const W all = a[l];
		for (int n = 0; n < i.count; n++)
			lanes_at<P>(w, i.list[n])[l] = (P)(all >> 8 * sizeof(P) * (size_t)n);
	});
}

void run_pack(warp &w, const instr &i)
{
	if (i.size == 4)
		pack_parts<uint64_t, uint32_t>(w, i);
	else if (i.count == 2)
		pack_parts<uint32_t, uint16_t>(w, i);
	else
		pack_parts<uint64_t, uint16_t>(w, i);
}

void run_unpack(warp &w, const instr &i)
{
	if (i.size == 4)
		unpack_parts<uint64_t, uint32_t>(w, i);
	else if (i.count == 2)
		unpack_parts<uint32_t, uint16_t>(w, i);
	else
		unpack_parts<uint64_t, uint16_t>(w, i);
}

void run_copies(warp &w, const instr &i)
{
	for (int n = 0; n < i.count; n++) {
		uint32_t *d = lanes_at<uint32_t>(w, i.list[2 * n]);
		const uint32_t *a = lanes_at<uint32_t>(w, i.list[2 * n + 1]);
		for_lanes(w, [=](int l) { d[l] = a[l]; });
	}
}

/* ---- rows ---- */

#define MOVE(type, T, w) \
	{ \
		"mov." type, w w, lanewise1<T, T, same<T>> \
	}
#define INT(name, widths, D, S, R) \
	{ \
		name, widths, lanewise1<D, R, integer<D, S, R>> \
	}
#define REAL(name, widths, D, S) \
	{ \
		name, widths, lanewise1<D, S, real<D, S>> \
	}
#define FUNCTION(name, widths, D, S, f) \
	{ \
		name, widths, lanewise1<D, S, f> \
	}
#define PAIR(name, widths, D, f) \
	{ \
		name, widths, lanewise2<D, float, float, f> \
	}

const std::vector<row> conversion_rows = {
	MOVE("b16", uint16_t, "2"),
	MOVE("u16", uint16_t, "2"),
	MOVE("s16", uint16_t, "2"),
	MOVE("b32", uint32_t, "4"),
	MOVE("u32", uint32_t, "4"),
	MOVE("s32", uint32_t, "4"),
	MOVE("f32", uint32_t, "4"),
	MOVE("b64", uint64_t, "8"),
	MOVE("u64", uint64_t, "8"),
	MOVE("s64", uint64_t, "8"),
	MOVE("f64", uint64_t, "8"),
	FUNCTION("cvta.global.u64", "88", uint64_t, uint64_t, same<uint64_t>),
	FUNCTION("cvta.to.global.u64", "88", uint64_t, uint64_t, same<uint64_t>),
	FUNCTION("cvta.shared.u64", "88", uint64_t, uint64_t, into_window<SHARED_WINDOW>),
	FUNCTION("cvta.to.shared.u64", "88", uint64_t, uint64_t, from_window<SHARED_WINDOW>),
	FUNCTION("cvta.local.u64", "88", uint64_t, uint64_t, into_window<LOCAL_WINDOW>),
	FUNCTION("cvta.to.local.u64", "88", uint64_t, uint64_t, from_window<LOCAL_WINDOW>),

	{"prmt.b32", "4444", lanewise3<uint32_t, uint32_t, uint32_t, uint32_t, permute>},

	INT("cvt.u64.u32", "84", uint64_t, uint32_t, uint32_t),
	INT("cvt.s64.s32", "84", int64_t, int32_t, uint32_t),
	INT("cvt.u64.u32", "88", uint64_t, uint32_t, uint64_t),
	INT("cvt.s64.s32", "88", int64_t, int32_t, uint64_t),
	INT("cvt.u32.u64", "48", uint32_t, uint32_t, uint64_t),
	INT("cvt.s32.s64", "48", uint32_t, uint32_t, uint64_t),
	INT("cvt.u16.u32", "24", uint16_t, uint16_t, uint32_t),
	INT("cvt.u16.u64", "28", uint16_t, uint16_t, uint64_t),
	INT("cvt.u32.u16", "42", uint32_t, uint16_t, uint16_t),
	INT("cvt.s32.s16", "42", int32_t, int16_t, uint16_t),
	INT("cvt.u64.u16", "82", uint64_t, uint16_t, uint16_t),
	INT("cvt.s64.s16", "82", int64_t, int16_t, uint16_t),
	INT("cvt.s16.s8", "22", int16_t, int8_t, uint16_t),
	INT("cvt.u16.u8", "22", uint16_t, uint8_t, uint16_t),
	INT("cvt.s32.s8", "42", int32_t, int8_t, uint16_t),
	INT("cvt.u32.u8", "42", uint32_t, uint8_t, uint16_t),

	REAL("cvt.rn.f32.s32", "44", float, int32_t),
	REAL("cvt.rn.f32.u32", "44", float, uint32_t),
	REAL("cvt.rn.f32.s64", "48", float, int64_t),
	REAL("cvt.rn.f32.u64", "48", float, uint64_t),
	REAL("cvt.rn.f32.s16", "42", float, int16_t),
	REAL("cvt.rn.f32.u16", "42", float, uint16_t),
	REAL("cvt.rn.f64.s64", "88", double, int64_t),
	REAL("cvt.rn.f64.s32", "84", double, int32_t),
	REAL("cvt.rn.f32.f64", "48", float, double),
	REAL("cvt.f64.f32", "84", double, float),
	FUNCTION("cvt.rzi.s32.f32", "44", int32_t, float, integer_of<int32_t>),
	FUNCTION("cvt.rzi.u32.f32", "44", uint32_t, float, integer_of<uint32_t>),
	FUNCTION("cvt.rzi.s64.f32", "84", int64_t, float, integer_of<int64_t>),
	FUNCTION("cvt.rni.s32.f32", "44", int32_t, float, nearest_integer_of<int32_t>),
	FUNCTION("cvt.rni.f32.f32", "44", float, float, nearest),
	FUNCTION("cvt.rzi.f32.f32", "44", float, float, towards_zero),
	FUNCTION("cvt.rmi.f32.f32", "44", float, float, downwards),
	FUNCTION("cvt.sat.f32.f32", "44", float, float, saturated),

	FUNCTION("cvt.rn.bf16.f32", "24", uint16_t, float, bf16_of),
	FUNCTION("cvt.rn.f16.f32", "24", uint16_t, float, f16_of),
	FUNCTION("cvt.f32.bf16", "42", float, uint16_t, float_of_bf16),
	FUNCTION("cvt.f32.f16", "42", float, uint16_t, float_of_f16),
	PAIR("cvt.rn.bf16x2.f32", "444", uint32_t, pack_bf16),
	PAIR("cvt.rn.f16x2.f32", "444", uint32_t, pack_f16),
	PAIR("cvt.rn.satfinite.e4m3x2.f32", "244", uint16_t, pack_e4m3),
	FUNCTION("cvt.rn.f16x2.e4m3x2", "42", uint32_t, uint16_t, unpack_e4m3),
};

std::vector<const row *> rows_of(std::string_view mnemonic)
{
	static const auto *all = [] {
		auto *map = new std::unordered_multimap<std::string_view, const row *>;
		for (const auto *rows : {&arithmetic_rows, &conversion_rows})
			for (const row &r : *rows)
				map->insert({r.name, &r});
		return map;
	}();
	std::vector<const row *> found;
	for (auto [at, end] = all->equal_range(mnemonic); at != end; ++at)
		found.push_back(at->second);
	return found;
}

} // namespace ptx
