/* Arithmetic, logic and comparisons: a row for each instruction that the kernels have. */
#include <fenv.h>

#include <algorithm>
#include <type_traits>

#include "tests/ptx/lanewise.h"

namespace ptx
{

/* ---- integers: sums and products wrap ---- */

template <class T> using bits_of = std::make_unsigned_t<T>;

template <class T> static T add(T a, T b) { return (T)((bits_of<T>)a + (bits_of<T>)b); }
template <class T> static T subtract(T a, T b) { return (T)((bits_of<T>)a - (bits_of<T>)b); }
template <class T> static T multiply(T a, T b) { return (T)((uint64_t)(bits_of<T>)a * (uint64_t)(bits_of<T>)b); }
template <class T> static T multiply_add(T a, T b, T c) { return add<T>(multiply<T>(a, b), c); }
static int32_t high_s32(int32_t a, int32_t b) { return (int32_t)((int64_t)a * b >> 32); }
static uint16_t high_u16(uint16_t a, uint16_t b) { return (uint16_t)((uint32_t)a * b >> 16); }
static int16_t high_s16(int16_t a, int16_t b) { return (int16_t)((int32_t)a * b >> 16); }
static uint32_t high_u32(uint32_t a, uint32_t b) { return (uint32_t)((uint64_t)a * b >> 32); }
static uint64_t high_u64(uint64_t a, uint64_t b) { return (uint64_t)((unsigned __int128)a * b >> 64); }
template <class W, class T> static W wide(T a, T b) { return (W)a * (W)b; }
template <class W, class T> static W wide_add(T a, T b, W c) { return add<W>((W)a * (W)b, c); }

/* By zero: all bits, as GPUs have it. The least number by -1 is itself. */
template <class T> static T divide(T a, T b)
{
	if (!b)
		return (T)-1;
	return std::is_signed_v<T> && b == (T)-1 ? subtract<T>(0, a) : (T)(a / b);
}
template <class T> static T remainder_of(T a, T b)
{
	if (!b)
		return a;
	return std::is_signed_v<T> && b == (T)-1 ? (T)0 : (T)(a % b);
}
template <class T> static T least(T a, T b) { return a < b ? a : b; }
template <class T> static T greatest(T a, T b) { return a > b ? a : b; }
template <class T> static T negate(T a) { return subtract<T>(0, a); }
template <class T> static T absolute(T a) { return a < 0 ? negate<T>(a) : a; }
template <class T> static T both(T a, T b) { return a & b; }
template <class T> static T either(T a, T b) { return a | b; }
template <class T> static T one_of(T a, T b) { return a ^ b; }
template <class T> static T inverted(T a) { return (T)~a; }
/* Counts beyond the width shift everything out. */
template <class T> static T left(T a, uint32_t n) { return n < 8 * sizeof(T) ? (T)(a << n) : (T)0; }
template <class T> static T right(T a, uint32_t n)
{
	constexpr uint32_t most = 8 * sizeof(T) - 1;
	return n <= most ? (T)(a >> n) : std::is_signed_v<T> ? (T)(a >> most) : (T)0;
}
/* The pair b:a, shifted; its upper or lower word. */
static uint32_t funnel_left(uint32_t a, uint32_t b, uint32_t n)
{
	return (uint32_t)(((uint64_t)b << 32 | a) << (n & 31) >> 32);
}
static uint32_t funnel_right(uint32_t a, uint32_t b, uint32_t n)
{
	return (uint32_t)(((uint64_t)b << 32 | a) >> (n & 31));
}
template <class T> static T select(T a, T b, bool first) { return first ? a : b; }
template <class T> static void run_select(warp &w, const instr &i)
{
	T *d = lanes_at<T>(w, i.d);
	const T *a = lanes_at<T>(w, i.a), *b = lanes_at<T>(w, i.b);
	const uint32_t p = predicate_at(w, i.c);
	for_lanes(w, [=](int l) { d[l] = select<T>(a[l], b[l], p >> l & 1); });
}
/* `len` bits of a from `pos` on; for signed numbers the highest of them is their sign. */
template <class T> static T extract(T a, uint32_t pos, uint32_t len)
{
	constexpr uint32_t bits = 8 * sizeof(T);
	pos &= 255;
	len &= 255;
	if (!len)
		return 0;
	if (pos + len >= bits)
		return right<T>(a, pos);
	return right<T>(left<T>(a, bits - pos - len), bits - len);
}
/* The lowest `len` bits of a in place of those of b from `pos` on. */
template <class T> static void run_insert(warp &w, const instr &i)
{
	T *d = lanes_at<T>(w, i.d);
	const T *a = lanes_at<T>(w, i.a), *b = lanes_at<T>(w, i.b);
	const uint32_t *pos = lanes_at<uint32_t>(w, i.c), *len = lanes_at<uint32_t>(w, i.e);
	for_lanes(w, [=](int l) {
		const uint32_t at = pos[l] & 255, n = len[l] & 255;
		const T field = left<T>((T)(n < 8 * sizeof(T) ? ((T)1 << n) - 1 : ~(T)0), at);
		d[l] = (b[l] & (T)~field) | (left<T>(a[l], at) & field);
	});
}

/* ---- floating point ---- */

static float add_f32(float a, float b) { return a + b; }
static float subtract_f32(float a, float b) { return a - b; }
static float multiply_f32(float a, float b) { return a * b; }
static float divide_f32(float a, float b) { return a / b; }
static double add_f64(double a, double b) { return a + b; }
static double multiply_f64(double a, double b) { return a * b; }
/* Denominators beyond 2^126 may give 0: they do here. */
static float divide_approx(float a, float b) { return fabsf(b) > 0x1p126f && !isinf(a) ? a * 0.0f : a / b; }
static float fma_f32(float a, float b, float c) { return fmaf(a, b, c); }
static double fma_f64(double a, double b, double c) { return fma(a, b, c); }
static float __attribute__((noinline)) fma_down(float a, float b, float c)
{
	const int before = fegetround();
	fesetround(FE_DOWNWARD);
	volatile float x = a, y = b, z = c;
	volatile float r = fmaf(x, y, z);
	fesetround(before);
	return r;
}
/* The one that is a number; -0 is below +0. */
static float least_f32(float a, float b)
{
	return a != a   ? b
	       : b != b ? a
	       : a == b ? bits_as<float>(bits_as<uint32_t>(a) | bits_as<uint32_t>(b))
	                : (a < b ? a : b);
}
static float greatest_f32(float a, float b)
{
	return a != a   ? b
	       : b != b ? a
	       : a == b ? bits_as<float>(bits_as<uint32_t>(a) & bits_as<uint32_t>(b))
	                : (a > b ? a : b);
}
static float flush(float x) { return fabsf(x) < 0x1p-126f ? x * 0.0f : x; }
static float exp2_flushed(float x) { return flush(exp2f(flush(x))); }
static float exp2_plain(float x) { return exp2f(x); }
static float inverse_f32(float x) { return 1.0f / x; }
static float root_f32(float x) { return sqrtf(x); }
static float inverse_root(float x) { return 1.0f / sqrtf(x); }
static float log2_plain(float x) { return log2f(x); }
static float negate_f32(float x) { return -x; }
static float absolute_f32(float x) { return fabsf(x); }

/* The product of 16-bit numbers is exact in double. */
static uint16_t fma_bf16(uint16_t a, uint16_t b, uint16_t c)
{
	return bf16_of(float_to_odd((double)float_of_bf16(a) * (double)float_of_bf16(b) + (double)float_of_bf16(c)));
}
static uint16_t fma_f16(uint16_t a, uint16_t b, uint16_t c)
{
	return f16_of(float_to_odd((double)float_of_f16(a) * (double)float_of_f16(b) + (double)float_of_f16(c)));
}
/* Two of them at once. */
template <uint16_t (*F)(uint16_t, uint16_t, uint16_t)> static uint32_t halves(uint32_t a, uint32_t b, uint32_t c)
{
	return F((uint16_t)a, (uint16_t)b, (uint16_t)c) |
	       (uint32_t)F((uint16_t)(a >> 16), (uint16_t)(b >> 16), (uint16_t)(c >> 16)) << 16;
}

/* ---- predicates ---- */

template <uint32_t (*F)(uint32_t, uint32_t)> static void run_predicates(warp &w, const instr &i)
{
	uint32_t &d = predicate_at(w, i.d);
	d = (d & ~w.mask) | (F(predicate_at(w, i.a), predicate_at(w, i.b)) & w.mask);
}
static void run_predicate_move(warp &w, const instr &i)
{
	uint32_t &d = predicate_at(w, i.d);
	d = (d & ~w.mask) | (predicate_at(w, i.a) & w.mask);
}
static void run_predicate_not(warp &w, const instr &i)
{
	uint32_t &d = predicate_at(w, i.d);
	d = (d & ~w.mask) | (~predicate_at(w, i.a) & w.mask);
}

template <class T> static bool equal(T a, T b) { return a == b; }
template <class T> static bool unequal(T a, T b) { return a != b; }
template <class T> static bool below(T a, T b) { return a < b; }
template <class T> static bool at_most(T a, T b) { return a <= b; }
template <class T> static bool above(T a, T b) { return a > b; }
template <class T> static bool at_least(T a, T b) { return a >= b; }
/* Of floats `ne` is false where one is no number, and the forms with a `u` are true there. */
static bool different(float a, float b) { return a < b || a > b; }
static bool equal_u(float a, float b) { return !(a < b || a > b); }
static bool below_u(float a, float b) { return !(a >= b); }
static bool at_most_u(float a, float b) { return !(a > b); }
static bool above_u(float a, float b) { return !(a <= b); }
static bool at_least_u(float a, float b) { return !(a < b); }
static bool no_number(float a, float b) { return a != a || b != b; }
static bool numbers(float a, float b) { return a == a && b == b; }

/* ---- rows ---- */

#define ONE(T, f) lanewise1<T, T, f>
#define TWO(T, f) lanewise2<T, T, T, f>
#define THREE(T, f) lanewise3<T, T, T, T, f>
#define COMPARE_EQUALITY(type, T, w) \
	{"setp.eq." type, "p" w w, compare<T, equal<T>>}, { "setp.ne." type, "p" w w, compare<T, unequal<T>> }
#define COMPARE_ORDER(type, T, w) \
	{"setp.lt." type, "p" w w, compare<T, below<T>>}, {"setp.le." type, "p" w w, compare<T, at_most<T>>}, \
		{"setp.gt." type, "p" w w, compare<T, above<T>>}, \
	{ \
		"setp.ge." type, "p" w w, compare<T, at_least<T>> \
	}
/* Forms that 32-bit and 64-bit integers share, signed or not. */
#define INTEGER(type, T, w) \
	{"add." type, w w w, TWO(T, add<T>)}, {"sub." type, w w w, TWO(T, subtract<T>)}, \
		{"mul.lo." type, w w w, TWO(T, multiply<T>)}, {"mad.lo." type, w w w w, THREE(T, multiply_add<T>)}, \
		{"div." type, w w w, TWO(T, divide<T>)}, {"rem." type, w w w, TWO(T, remainder_of<T>)}, \
		{"min." type, w w w, TWO(T, least<T>)}, {"max." type, w w w, TWO(T, greatest<T>)}, \
		{"shr." type, w w "4", lanewise2<T, T, uint32_t, right<T>>}, COMPARE_EQUALITY(type, T, w), \
		COMPARE_ORDER(type, T, w)
#define SIGNED(type, T, w) \
	{"neg." type, w w, ONE(T, negate<T>)}, { "abs." type, w w, ONE(T, absolute<T>) }
#define BITS(type, T, w) \
	{"and." type, w w w, TWO(T, both<T>)}, {"or." type, w w w, TWO(T, either<T>)}, \
		{"xor." type, w w w, TWO(T, one_of<T>)}, {"not." type, w w, ONE(T, inverted<T>)}, \
		{"shl." type, w w "4", lanewise2<T, T, uint32_t, left<T>>}, \
		{"shr." type, w w "4", lanewise2<T, T, uint32_t, right<T>>}, COMPARE_EQUALITY(type, T, w), \
	{ \
		"bfi." type, w w w "44", run_insert<T> \
	}
#define EXTRACT(type, T, w) \
	{ \
		"bfe." type, w w "44", lanewise3<T, T, uint32_t, uint32_t, extract<T>> \
	}
#define SELECT(type, T, w) \
	{ \
		"selp." type, w w w "p", run_select<T> \
	}

const std::vector<row> arithmetic_rows = {
	INTEGER("s32", int32_t, "4"),
	INTEGER("u32", uint32_t, "4"),
	INTEGER("s64", int64_t, "8"),
	INTEGER("u64", uint64_t, "8"),
	INTEGER("s16", int16_t, "2"),
	INTEGER("u16", uint16_t, "2"),
	SIGNED("s32", int32_t, "4"),
	SIGNED("s64", int64_t, "8"),
	SIGNED("s16", int16_t, "2"),
	BITS("b16", uint16_t, "2"),
	BITS("b32", uint32_t, "4"),
	BITS("b64", uint64_t, "8"),
	EXTRACT("u32", uint32_t, "4"),
	EXTRACT("s32", int32_t, "4"),
	EXTRACT("u64", uint64_t, "8"),
	EXTRACT("s64", int64_t, "8"),
	SELECT("u16", uint16_t, "2"),
	SELECT("s16", uint16_t, "2"),
	SELECT("b16", uint16_t, "2"),
	SELECT("u32", uint32_t, "4"),
	SELECT("s32", uint32_t, "4"),
	SELECT("b32", uint32_t, "4"),
	SELECT("f32", uint32_t, "4"),
	SELECT("u64", uint64_t, "8"),
	SELECT("s64", uint64_t, "8"),
	SELECT("b64", uint64_t, "8"),
	SELECT("f64", uint64_t, "8"),
	{"shf.l.wrap.b32", "4444", THREE(uint32_t, funnel_left)},
	{"shf.r.wrap.b32", "4444", THREE(uint32_t, funnel_right)},
	{"mul.hi.s16", "222", TWO(int16_t, high_s16)},
	{"mul.hi.u16", "222", TWO(uint16_t, high_u16)},
	{"mul.hi.s32", "444", TWO(int32_t, high_s32)},
	{"mul.hi.u32", "444", TWO(uint32_t, high_u32)},
	{"mul.hi.u64", "888", TWO(uint64_t, high_u64)},
	{"mul.wide.s32", "844", lanewise2<int64_t, int32_t, int32_t, wide<int64_t, int32_t>>},
	{"mul.wide.u32", "844", lanewise2<uint64_t, uint32_t, uint32_t, wide<uint64_t, uint32_t>>},
	{"mul.wide.u16", "422", lanewise2<uint32_t, uint16_t, uint16_t, wide<uint32_t, uint16_t>>},
	{"mul.wide.s16", "422", lanewise2<int32_t, int16_t, int16_t, wide<int32_t, int16_t>>},
	{"mad.wide.s32", "8448", lanewise3<int64_t, int32_t, int32_t, int64_t, wide_add<int64_t, int32_t>>},
	{"mad.wide.u32", "8448", lanewise3<uint64_t, uint32_t, uint32_t, uint64_t, wide_add<uint64_t, uint32_t>>},

	{"add.f32", "444", TWO(float, add_f32)},
	{"add.rn.f32", "444", TWO(float, add_f32)},
	{"sub.f32", "444", TWO(float, subtract_f32)},
	{"sub.rn.f32", "444", TWO(float, subtract_f32)},
	{"mul.f32", "444", TWO(float, multiply_f32)},
	{"mul.rn.f32", "444", TWO(float, multiply_f32)},
	{"div.rn.f32", "444", TWO(float, divide_f32)},
	{"div.approx.f32", "444", TWO(float, divide_approx)},
	{"div.full.f32", "444", TWO(float, divide_approx)},
	{"fma.rn.f32", "4444", THREE(float, fma_f32)},
	{"fma.rm.f32", "4444", THREE(float, fma_down)},
	{"min.f32", "444", TWO(float, least_f32)},
	{"max.f32", "444", TWO(float, greatest_f32)},
	{"neg.f32", "44", ONE(float, negate_f32)},
	{"abs.f32", "44", ONE(float, absolute_f32)},
	{"ex2.approx.f32", "44", ONE(float, exp2_plain)},
	{"ex2.approx.ftz.f32", "44", ONE(float, exp2_flushed)},
	{"lg2.approx.f32", "44", ONE(float, log2_plain)},
	{"rcp.rn.f32", "44", ONE(float, inverse_f32)},
	{"sqrt.rn.f32", "44", ONE(float, root_f32)},
	{"rsqrt.approx.f32", "44", ONE(float, inverse_root)},
	{"add.f64", "888", TWO(double, add_f64)},
	{"mul.f64", "888", TWO(double, multiply_f64)},
	{"fma.rn.f64", "8888", THREE(double, fma_f64)},
	{"fma.rn.bf16", "2222", THREE(uint16_t, fma_bf16)},
	{"fma.rn.f16", "2222", THREE(uint16_t, fma_f16)},
	{"fma.rn.bf16x2", "4444", THREE(uint32_t, halves<fma_bf16>)},
	{"fma.rn.f16x2", "4444", THREE(uint32_t, halves<fma_f16>)},

	{"setp.eq.f32", "p44", compare<float, equal<float>>},
	{"setp.ne.f32", "p44", compare<float, different>},
	COMPARE_ORDER("f32", float, "4"),
	{"setp.equ.f32", "p44", compare<float, equal_u>},
	{"setp.neu.f32", "p44", compare<float, unequal<float>>},
	{"setp.ltu.f32", "p44", compare<float, below_u>},
	{"setp.leu.f32", "p44", compare<float, at_most_u>},
	{"setp.gtu.f32", "p44", compare<float, above_u>},
	{"setp.geu.f32", "p44", compare<float, at_least_u>},
	{"setp.nan.f32", "p44", compare<float, no_number>},
	{"setp.num.f32", "p44", compare<float, numbers>},

	{"and.pred", "ppp", run_predicates<both<uint32_t>>},
	{"or.pred", "ppp", run_predicates<either<uint32_t>>},
	{"xor.pred", "ppp", run_predicates<one_of<uint32_t>>},
	{"not.pred", "pp", run_predicate_not},
	{"mov.pred", "pp", run_predicate_move},
};

} // namespace ptx
