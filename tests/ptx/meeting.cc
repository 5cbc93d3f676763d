/* Instructions at which the lanes of a warp meet: shuffles, Tensor Cores, barriers. */
#include "tests/ptx/memory.h"

namespace ptx
{

/* ---- shuffles ---- */

/* `c` is 31 where all lanes are one segment, `e` the lanes that take part. */
template <class SOURCE> static void shuffle(warp &w, const instr &i, SOURCE source)
{
	const uint32_t all = lanes_at<uint32_t>(w, i.e)[__builtin_ctz(w.mask)];
	if (!meet(w, i, all))
		return;
	const uint32_t *a = lanes_at<uint32_t>(w, i.a), *b = lanes_at<uint32_t>(w, i.b);
	uint32_t *d = lanes_at<uint32_t>(w, i.d), before[LANES], &valid = predicate_at(w, i.list[0]);
	memcpy(before, a, sizeof before);
	for_lanes(w, [&](int l) {
		const int from = source(l, b[l]);
		if (lanes_at<uint32_t>(w, i.c)[l] != 31)
			defect(w, i, 1u << l, "this tool knows no shuffles of segments");
		if (!(w.mask >> from & 1))
			defect(w, i, 1u << l, "a shuffle from lane %d, which takes no part", from);
		d[l] = before[from];
	});
	valid |= w.mask;
}

void run_shuffle_xor(warp &w, const instr &i)
{
	shuffle(w, i, [](int l, uint32_t b) { return (int)((uint32_t)l ^ b) & 31; });
}

void run_shuffle_index(warp &w, const instr &i)
{
	shuffle(w, i, [](int, uint32_t b) { return (int)(b & 31); });
}

/* ---- Tensor Cores: fragments as PTX ISA, "Matrix Fragments for mma.m16n8k16" ---- */

/* Lane 8 m + r names row r of matrix m; register m of lane l is row l / 4, columns 2 (l % 4) and the next. */
void run_ldmatrix(warp &w, const instr &i)
{
	if (!meet(w, i, ALL_LANES))
		return;
	uint64_t at[LANES];
	uint16_t row[LANES][8];
	addresses(w, i, at);
	check_access(w, i, SHARED, at, 16, false);
	for (int l = 0; l < LANES; l++) {
		read_shared(w, i, l, at[l], 16);
		memcpy(row[l], w.in->shared.bytes.data() + at[l], 16);
	}
	for (int m = 0; m < 4; m++) {
		uint32_t *d = lanes_at<uint32_t>(w, i.list[m]);
		const uint16_t(*x)[8] = row + 8 * m;
		for (int l = 0; l < LANES; l++) {
			const int g = l / 4, t = l % 4 * 2;
			d[l] = i.e ? x[t][g] | (uint32_t)x[t + 1][g] << 16 : x[g][t] | (uint32_t)x[g][t + 1] << 16;
		}
	}
}

template <float (*VALUE)(uint16_t)> static void multiply_tiles(warp &w, const instr &i)
{
	if (!meet(w, i, ALL_LANES))
		return;
	alignas(64) float a[16][16], b[16][8], c[16][8];
	const uint32_t *const d_at = i.list, *const a_at = d_at + 4, *const b_at = a_at + 4, *const c_at = b_at + 2;
	for (int p = 0; p < 4; p++) {
		const uint32_t *x = lanes_at<uint32_t>(w, a_at[p]);
		for (int l = 0; l < LANES; l++) {
			float *to = &a[l / 4 + p % 2 * 8][l % 4 * 2 + p / 2 * 8];
			to[0] = VALUE((uint16_t)x[l]);
			to[1] = VALUE((uint16_t)(x[l] >> 16));
		}
	}
	for (int p = 0; p < 2; p++) {
		const uint32_t *x = lanes_at<uint32_t>(w, b_at[p]);
		for (int l = 0; l < LANES; l++) {
			b[l % 4 * 2 + p * 8][l / 4] = VALUE((uint16_t)x[l]);
			b[l % 4 * 2 + p * 8 + 1][l / 4] = VALUE((uint16_t)(x[l] >> 16));
		}
	}
	for (int r = 0; r < 4; r++)
		for (int l = 0; l < LANES; l++)
			c[l / 4 + r / 2 * 8][l % 4 * 2 + r % 2] = lanes_at<float>(w, c_at[r])[l];
	for (int m = 0; m < 16; m++)
		for (int k = 0; k < 16; k++)
			for (int n = 0; n < 8; n++)
				c[m][n] += a[m][k] * b[k][n];
	for (int r = 0; r < 4; r++)
		for (int l = 0; l < LANES; l++)
			lanes_at<float>(w, d_at[r])[l] = c[l / 4 + r / 2 * 8][l % 4 * 2 + r % 2];
}

void run_mma_bf16(warp &w, const instr &i) { multiply_tiles<float_of_bf16>(w, i); }
void run_mma_f16(warp &w, const instr &i) { multiply_tiles<float_of_f16>(w, i); }

/* ---- barriers ---- */

/* Warps that have ended are not waited for. In a warp each lane has to come: bar.sync is `aligned`. */
void run_barrier(warp &w, const instr &i)
{
	if (!meet(w, i, w.began))
		return;
	w.at_barrier = true;
	w.stop = NULL;
}

void run_warp_sync(warp &w, const instr &i) { meet(w, i, lanes_at<uint32_t>(w, i.e)[__builtin_ctz(w.mask)]); }

} // namespace ptx
