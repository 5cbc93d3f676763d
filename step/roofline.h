/* A measured roofline: the result of `stepsim roofline` on a device, and its arithmetic. exec/ measures it, report/
 * shows it.
 *
 * Williams, Waterman and Patterson 2009, "Roofline: an insightful visual performance model": attainable = min(peak,
 * intensity x bandwidth); ridge = peak / bandwidth. The vector roof comes from the polynomial kernel b = a + a^2 + ...
 * + a^k by Horner (b <- b a + a, k times from 0): 2k FLOP and two accesses an element, so k/4 FLOP/B in fp32. The
 * matrix roof comes from square products of size n: 2n^3 FLOP over three matrices, so n/3 FLOP/B in 2-byte formats.
 * Bytes in flight = bandwidth x latency (Little 1961).
 */
#ifndef STEPSIM_STEP_ROOFLINE_H
#define STEPSIM_STEP_ROOFLINE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/dtype.h"
#include "base/status.h"
#include "base/vec.h"

enum roof_stream { ROOF_READ, ROOF_COPY, ROOF_TRIAD, ROOF_STREAMS }; /* sum of x; y = x; z = x + s y */
const char *roof_stream_name(enum roof_stream s);

/* Reads a format in which products can be asked for. ST_INPUT names the nearest. */
enum status roofline_dtype(const char *word, enum dtype *out, struct error *e);

enum roof_kind { ROOF_POLY, ROOF_GEMM };

/* Times are means over the timed runs. Of several ranks, each on its own device at once, the slowest counts. */
struct roof_row {
	enum roof_kind kind;
	enum dtype dtype;
	int64_t size;     /* ROOF_POLY: the degree k; ROOF_GEMM: m = n = k */
	int64_t elements; /* ROOF_POLY: of each of the two arrays */
	double ai;        /* FLOP/B */
	double flop_per_s, Bps;
	double mean_flop_per_s; /* over the ranks */
	double rms;             /* of the runs' times about their mean, relative to it */
};

#define ROOF_LEVELS 4
struct roof_level {
	char name[16];            /* "L1", "memory" */
	uint64_t footprint_B;     /* of the streams, all units together */
	uint64_t chase_B;         /* of the pointer chase, which is one thread's */
	double Bps[ROOF_STREAMS]; /* bytes that the program reads and writes; what a cache fetches beyond them does not
	                             count */
	double latency_s;         /* of one dependent load */
};

/* The rates of a datasheet; 0: it has none. */
struct roof_sheet {
	char name[128];
	double matrix_flop_per_s[DT_COUNT], vector_flop_per_s, mem_Bps;
	bool unverified;
};

struct roofline {
	char device[128], host[64], blas[128]; /* blas: of the host's products */
	bool gpu;
	bool doubles;    /* it ran on the tests' doubles of the CUDA libraries: there are no rows and no levels, for
	                    nothing was measured */
	int64_t checked; /* doubles: rows that ran and whose results were right */
	bool shared;     /* ranks share cores or GPUs */
	int64_t ranks, units; /* units: SMs or cores, of one rank's device */
	double clock_Hz;      /* the highest, as the driver says; 0: not known */
	int64_t threads,
		threads_most;      /* of the polynomial kernel resident on one SM, and what an SM takes; 0: no GPU */
	int warm_ups, runs;        /* of each figure */
	VEC(struct roof_row) rows; /* polynomial ones first, then products, by format and size */
	struct roof_level level[ROOF_LEVELS];
	int levels; /* the nearest first; the last is memory */
	struct roof_sheet sheet;
};

void roofline_free(struct roofline *r); /* NULL-safe members */

double roof_attainable(double peak_flop_per_s, double Bps, double ai);
double roof_ridge(double peak_flop_per_s, double Bps); /* NAN where either is not known (0) */
double roof_in_flight_B(double Bps, double latency_s);
double roof_poly_ai(enum dtype d, int64_t k);
double roof_gemm_ai(enum dtype d, int64_t n);
double roof_poly_value(double a, int64_t k); /* a + a^2 + ... + a^k, in closed form */

/* Returns the highest measured rate of the kind and format; 0: none. */
double roofline_peak(const struct roofline *r, enum roof_kind kind, enum dtype d);
/* Returns the datasheet's rate of the kind and format; 0: it has none. */
double roofline_sheet_peak(const struct roofline *r, enum roof_kind kind, enum dtype d);
/* Returns the highest rate that any stream reaches at a level. */
double roof_level_Bps(const struct roof_level *l);
/* Returns memory's rate: the last level's, or that of a row of the polynomial of about that footprint, whichever is
 * higher; 0: nothing was measured. */
double roofline_mem_Bps(const struct roofline *r);
/* Returns a row's share of the datasheet's rate where it has one, else of the highest measured one; NAN with neither.
 */
double roofline_share_of_peak(const struct roofline *r, const struct roof_row *row);
/* Returns a row's share of the rate that the measured roofs allow at its intensity. NAN where that is memory's roof,
 * and caches may have held the row's arrays. */
double roofline_share_of_roof(const struct roofline *r, const struct roof_row *row);

#endif
