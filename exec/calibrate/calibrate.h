/* The inside of calibration: what is timed (the grid), how a time is taken, and how times become a profile. For
 * exec/calibrate/ and its tests.
 *
 * Every case is timed by all ranks at once, so that caches, memory and clocks are shared as in a run; its time is the
 * slowest rank's.
 */
#ifndef STEPSIM_EXEC_CALIBRATE_H
#define STEPSIM_EXEC_CALIBRATE_H

#include "base/vec.h"
#include "exec/exec.h"
#include "step/program.h"
#include "step/work.h"

/* ---- the grid (grid.c) ---- */

/* An op to time. Its arguments are made by hand: `hot` has a bit for each argument that an op shortly before it in a
 * step has written (these are in the last-level cache as far as they fit; all others come from memory), `absent` a bit
 * for each that is not passed. */
struct calibration_case {
	struct op op;
	struct work work;
	uint8_t hot, absent;
	uint8_t section;      /* on GPUs: the sections are timed one after the other */
	double time_s;        /* what calibration found; 0: not timed, for want of time or memory */
	double heat_s;        /* products on GPUs: it had run back to back for so long */
	struct clocks_found { /* while it was timed; all 0: NVML does not say */
		double clock_Hz, power_W;
		double capped; /* share of samples in which the power limit held the clock down */
	} found;
};
typedef VEC(struct calibration_case) calibration_cases;

/* All cases, in the order of the grid. No sane model has such sizes; test_calibration_grid compares them with the
 * example configs. `d`: NULL for the host (fp32). On a GPU (grid_gpu.c) `hot` is empty: what is warm there is
 * what the copies of an op, one after the other, leave in the L2 cache. */
enum status calibration_grid(const struct work_device *d, calibration_cases *out, struct error *e);
enum status calibration_grid_gpu(const struct work_device *d, calibration_cases *out, struct error *e);
/* The sections of a GPU's grid in their order, in each the cases in ascending order. */
void calibration_small_first(calibration_cases *cases);

/* The cases that stand for compute and for memory; NULL: the grid has none. The product is a forward one of middling
 * size; on a GPU (which has all formats) one that was timed, in bf16. */
const struct calibration_case *calibration_typical_gemm(const calibration_cases *cases, bool gpu);
const struct calibration_case *calibration_largest_add(const calibration_cases *cases);

/* A checksum of the grid's names, terms and warmth: times of another grid, or of terms with another meaning, are
 * another profile. */
uint32_t calibration_checksum(const struct work_device *d);

/* Adds one case to a grid. Returns false when out of memory. */
bool calibration_add(calibration_cases *out, const struct work_device *d, const struct op *op, unsigned hot,
	unsigned absent);
/* The kinds that have a curve, attention's apart: at each footprint, rows `widen` times as long as the table's
 * (vocabularies and vectors as they are), operands in `dtype`. */
bool calibration_add_curves(calibration_cases *out, const struct work_device *d, enum dtype dtype, int64_t widen,
	const double *footprints_B, size_t n);

/* Sizes in bytes of the full buffer at which collectives are timed. */
#define CALIBRATION_COMM_SIZES 10
extern const uint64_t calibration_comm_sizes[CALIBRATION_COMM_SIZES],
	calibration_gpu_comm_sizes[CALIBRATION_COMM_SIZES];

/* Other processes only add time, at random moments. So calibration takes many times far apart and keeps this percentile
 * of what they may have disturbed. */
#define CALIBRATION_PERCENTILE 25.0

/* ---- what others disturb (repeat.c) ---- */

/* Times of a grid by round, then case. Round 0 warms up: its time counts where a case has no other. `time_s`: the
 * typical time in the round, `mean_s` the mean. `others`: the share of the rank's cores that others took meanwhile, of
 * the rank that lost most; 0: too little to show. The same on all ranks. */
#define CALIBRATION_ROUNDS_MAX 16
struct calibration_rounds {
	size_t cases, rounds;
	double *time_s, *mean_s, *others; /* (rounds, cases); owned. time_s 0: not taken */
};
enum status calibration_rounds_create(struct calibration_rounds *r, size_t cases, size_t rounds, struct error *e);
void calibration_rounds_free(struct calibration_rounds *r);
void calibration_rounds_set(struct calibration_rounds *r, size_t round, size_t index, double time_s, double mean_s);
/* Whether a case is to be timed again: others disturbed it, and it has too few undisturbed times. */
bool calibration_again(const struct calibration_rounds *r, size_t index);
/* The time to keep: the median of the undisturbed ones; where they are few, the percentile of them, else of all.
 * *others: 0, or the mean share where all were disturbed. */
double calibration_kept_s(const struct calibration_rounds *r, size_t index, double *others);

/* At least 1: how much longer the undisturbed times of all cases are together than what is kept of them. A stall is
 * short, and no typical time of an op has it; a step, the sum of many ops, has its share of all. */
double calibration_stalls(const struct calibration_rounds *r);

/* How much the pace of this rank's cores varied: the standard deviation of what CALIBRATION_WINDOW cases in a row took
 * together, undisturbed, over what is kept of them. 0: of fewer than two such windows. */
#define CALIBRATION_WINDOW 64
double calibration_pace_spread(const struct calibration_rounds *r, const double *kept_s);

/* How much of a calibration stayed disturbed. */
struct calibration_noise {
	double measured, disturbed, /* measurements */
		others,             /* sum over the disturbed ones of the share that others took */
		pace_spread;        /* of the rank whose pace varied most */
};
void calibration_noise_add(struct calibration_noise *noise, double measurements, double others);
/* Sets PROFILE_PACE_SPREAD where it is known, and PROFILE_DISTURBED_SHARE and PROFILE_CPU_STEAL_SHARE where something
 * stayed disturbed. */
enum status calibration_noise_set(const struct calibration_noise *noise, struct profile *p, struct error *e);

/* Something that is measured as a whole. `measure` is collective and sets values and curves of rank 0's profile. */
struct calibration_unit {
	enum status (
		*measure)(struct session *s, const struct calibration_unit *unit, struct profile *p, struct error *e);
	int64_t size, stride; /* of a group: neighbours are `stride` ranks apart */
	double budget_s;
	const struct op *gemm;
	double measurements; /* that it counts for */
};
/* Measures until others do not disturb it, at most three times; the least disturbed time is kept. */
enum status calibration_undisturbed(struct session *s, const struct calibration_unit *unit, struct profile *p,
	struct calibration_noise *noise, struct error *e);

/* ---- timing (compute.c, gpu.c, comm.c); collective over all ranks; `begin` and `end` are the part of the progress
 * line ---- */

enum status calibrate_compute(struct session *s, calibration_cases *cases, struct calibration_noise *noise,
	double begin, double end, struct error *e);

/* Large products run back to back for so long before they are timed. Judgement: a power limit acts within 100 to 200
 * ms. A burst of a few milliseconds runs at boost, which a step of large products may not sustain. */
#define CALIBRATION_HEAT_S 0.15
/* Products of as many FLOP are large: about 0.1 ms on tensor cores. A step of smaller ones is bound by launches and
 * memory too, and draws less. */
#define CALIBRATION_LARGE_FLOP 5e10

/* Times the GPU's sections. Sets PROFILE_SMS, PROFILE_LAUNCH_S, PROFILE_COPY_H2D_BPS, PROFILE_COPY_D2H_BPS and, where
 * NVML says it, PROFILE_POWER_LIMIT_W on rank 0; all ranks copy at once. */
enum status calibrate_gpu(struct session *s, calibration_cases *cases, struct profile *p, double begin, double end,
	struct error *e);

/* Which argument of the kind holds ids (-1: none), and ids below the limit of the table that they point into, spread.
 */
int calibration_id_argument(enum op_kind k);
void calibration_ids(const struct op *op, int32_t *ids);

/* Adds the collectives' curves and both overlap rates on rank 0; on the host also PROFILE_P2P_LATENCY_S,
 * PROFILE_P2P_BPS and PROFILE_PROGRESS_SHARE, and between hosts the PROFILE_BETWEEN_ values. `gemm` is a case to run
 * beside a collective; NULL: none was timed. With one rank there is nothing to add. */
enum status calibrate_comm(struct session *s, const struct calibration_case *gemm, struct profile *p,
	struct calibration_noise *noise, double begin, double end, struct error *e);

/* ---- fitting (fit.c) ---- */

/* Fits timed cases: sets PROFILE_CALL_S, PROFILE_MEM_BPS, a PROFILE_PEAK for each format, the ops' fits and curves, and
 * the products with their clocks. Fits are of the burst clock, the others of times as measured. `d` is the device of
 * the cases; NULL: the host. */
enum status calibration_fit(const calibration_cases *cases, const struct work_device *d, struct profile *p,
	struct error *e);

#endif
