/* The tiles of a matrix product on a GPU: the FLOP with padding, and the share of the SMs that they keep busy.
 * Calibration fits times to it (step/work.h), and catalogue machines are priced by it (sim/price/gpu.h).
 *
 * cuBLAS cuts the result (m, n) into tiles, whose sides come in whole multiples of `step`; one SM at its full rate
 * works on a tile of side x side (NVIDIA, "Matrix Multiplication Background User's Guide", DU-09799, "Tile
 * Quantization"). Where tiles are fewer than SMs, k is split among them (Osama et al. 2023, "Stream-K",
 * arXiv:2301.03598), down to parts of `split_k`. With M and N whole multiples of `step`:
 *
 *   parts = max(1, groups M N / side^2) x max(1, k / split_k)
 *   busy  = min(1, parts / SMs)
 *   time  = 2 groups M N k / (rate of all SMs x busy)
 */
#ifndef STEPSIM_STEP_TILES_H
#define STEPSIM_STEP_TILES_H

#include <stdint.h>

/* The constants of configs/model/gpu.yaml. */
struct tile_model {
	double step, side; /* rows and columns of the result */
	double split_k;    /* shortest part of k that is worth an SM of its own */
	double attention;  /* queries and keys of a tile of flash attention */
};

struct tiles {
	double flop;      /* of whole tiles */
	double busy;      /* share of the SMs that have a part: 0 to 1 */
	double full_flop; /* flop / busy: what all SMs would compute in that time; never falls as a size grows */
};

/* Returns the tiles of `groups` products (m, k) x (k, n) that run at the same time. */
struct tiles tiles_of(const struct tile_model *x, double groups, int64_t m, int64_t n, int64_t k, int64_t sms);

/* Returns how often the SMs begin a tile of one product (m, ...) x (..., n): its tiles over the SMs, below 1 where some
 * have none, 0 where the SMs are not counted. */
double tiles_waves(const struct tile_model *x, int64_t m, int64_t n, int64_t sms);

#endif
