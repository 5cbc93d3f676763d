/* Conversions between float and the 16-bit formats, to the nearest, ties to even. */
#ifndef STEPSIM_TESTS_PTX_NUMBERS_H
#define STEPSIM_TESTS_PTX_NUMBERS_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include <array>

namespace ptx
{

template <class To, class From> static inline To bits_as(From x)
{
	static_assert(sizeof(To) == sizeof(From), "");
	To y;
	memcpy(&y, &x, sizeof y);
	return y;
}

static inline float float_of_bf16(uint16_t x) { return bits_as<float>((uint32_t)x << 16); }

static inline uint16_t bf16_of(float x)
{
	const uint32_t bits = bits_as<uint32_t>(x);
	return x != x ? 0x7fff : (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static inline float float_of_f16_slowly(uint16_t x)
{
	const int exponent = x >> 10 & 31, fraction = x & 1023;
	const float size = exponent == 31  ? (fraction ? NAN : INFINITY)
	                   : exponent == 0 ? ldexpf((float)fraction, -24)
	                                   : ldexpf((float)(fraction + 1024), exponent - 25);
	return x >> 15 ? -size : size;
}

static inline std::array<float, 65536> f16_values(void)
{
	std::array<float, 65536> all;
	for (size_t i = 0; i < all.size(); i++)
		all[i] = float_of_f16_slowly((uint16_t)i);
	return all;
}
inline const std::array<float, 65536> f16_value = f16_values();
static inline float float_of_f16(uint16_t x) { return f16_value[x]; }

static inline uint16_t f16_of(float x)
{
	const uint32_t bits = bits_as<uint32_t>(x), size = bits & 0x7fffffff, sign = bits >> 16 & 0x8000;
	if (size > 0x7f800000)
		return 0x7fff;
	if (size >= 0x477ff000) /* 65520 */
		return (uint16_t)(sign | 0x7c00);
	if (size < 0x38800000) /* below the normal numbers */
		return (uint16_t)(sign | (uint32_t)nearbyintf(fabsf(x) * 0x1p24f));
	return (uint16_t)(sign | (size + 0xfff + (size >> 13 & 1) - 0x38000000) >> 13);
}

/* Rounds to odd, so that rounding the result once more to a shorter format is right (Boldo and Melquiond 2008). */
static inline float float_to_odd(double x)
{
	const float y = (float)x;
	uint32_t bits = bits_as<uint32_t>(y);
	if ((double)y == x || x != x || isinf(y))
		return y;
	if (fabs((double)y) > fabs(x))
		bits--;
	return bits_as<float>(bits | 1);
}

} // namespace ptx

#endif
