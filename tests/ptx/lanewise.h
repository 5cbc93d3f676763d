/* Handlers of instructions that treat each lane on its own: a function of one lane becomes a loop over those that the
 * instruction is for. A warp whose lanes all take part is a loop that the compiler turns into vector instructions. */
#ifndef STEPSIM_TESTS_PTX_LANEWISE_H
#define STEPSIM_TESTS_PTX_LANEWISE_H

#include "tests/ptx/machine.h"

namespace ptx
{

/* f(lane) for the lanes of the instruction at hand. Registers are the same or apart, never shifted. */
template <class F> static inline __attribute__((always_inline)) void for_lanes(const warp &w, F f)
{
	const uint32_t mask = w.mask;
	if (mask == ALL_LANES) {
#pragma GCC ivdep
		for (int l = 0; l < LANES; l++)
			f(l);
	} else {
		for (uint32_t left = mask; left; left &= left - 1)
			f(__builtin_ctz(left));
	}
}

template <class D, class A, D (*F)(A)> static void lanewise1(warp &w, const instr &i)
{
	D *d = lanes_at<D>(w, i.d);
	const A *a = lanes_at<A>(w, i.a);
	for_lanes(w, [=](int l) { d[l] = F(a[l]); });
}

template <class D, class A, class B, D (*F)(A, B)> static void lanewise2(warp &w, const instr &i)
{
	D *d = lanes_at<D>(w, i.d);
	const A *a = lanes_at<A>(w, i.a);
	const B *b = lanes_at<B>(w, i.b);
	for_lanes(w, [=](int l) { d[l] = F(a[l], b[l]); });
}

template <class D, class A, class B, class C, D (*F)(A, B, C)> static void lanewise3(warp &w, const instr &i)
{
	D *d = lanes_at<D>(w, i.d);
	const A *a = lanes_at<A>(w, i.a);
	const B *b = lanes_at<B>(w, i.b);
	const C *c = lanes_at<C>(w, i.c);
	for_lanes(w, [=](int l) { d[l] = F(a[l], b[l], c[l]); });
}

/* A comparison: bits of a predicate. */
template <class T, bool (*F)(T, T)> static void compare(warp &w, const instr &i)
{
	const T *a = lanes_at<T>(w, i.a), *b = lanes_at<T>(w, i.b);
	uint32_t &d = predicate_at(w, i.d), bits = 0;
	for (int l = 0; l < LANES; l++)
		bits |= (uint32_t)F(a[l], b[l]) << l;
	d = (d & ~w.mask) | (bits & w.mask);
}

} // namespace ptx

#endif
