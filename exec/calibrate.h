/* The inside of calibration: what is timed (the grid), how a time is taken, and how times become a profile. For exec/calibrate*.c and its tests.
 *
 * Every case is timed by all ranks at once, so that caches, memory and clocks are shared as in a run; its time is the slowest rank's.
 */
#ifndef STEPSIM_EXEC_CALIBRATE_H
#define STEPSIM_EXEC_CALIBRATE_H

#include "base/vec.h"
#include "exec/exec.h"
#include "step/program.h"
#include "step/work.h"

/* ---- the grid (calibrate_grid.c) ---- */

/* An op to time. Its arguments are made by hand: `hot` has a bit for each argument that an op shortly before it in a step has written (these are in the last-level cache as far as they fit; all others
 * come from memory), `absent` a bit for each that is not passed. */
struct calibration_case {
	struct op op;
	struct work work;
	uint8_t hot, absent;
	double time_s; /* what calibration found; 0: not timed, for want of time or memory */
};
typedef VEC(struct calibration_case) calibration_cases;

/* All cases, in the order of the grid. No sane model has such sizes; test_calibration_grid compares them with the example configs. */
enum status calibration_grid(calibration_cases *out, struct error *e);

/* A checksum of the grid's names, terms and warmth: times of another grid, or of terms with another meaning, are another profile. */
uint32_t calibration_checksum(void);

/* Sizes in bytes of the full buffer at which collectives are timed. */
#define CALIBRATION_COMM_SIZES 10
extern const uint64_t calibration_comm_sizes[CALIBRATION_COMM_SIZES];

/* What else runs on a machine only ever adds time, now here, now there: of times taken far apart the one at this percentile is taken. */
#define CALIBRATION_PERCENTILE 25.0

/* ---- timing (calibrate_compute.c, calibrate_comm.c); collective over all ranks; `begin` and `end` are the part of the progress line ---- */

enum status calibrate_compute(struct session *s, calibration_cases *cases, double begin, double end, struct error *e);

/* Adds the collectives' curves, "p2p.*", "overlap.*" and "progress.share" on rank 0. `gemm`: a case to run beside a collective. With one rank there is nothing to add. */
enum status calibrate_comm(struct session *s, const struct calibration_case *gemm, struct profile *p, double begin, double end, struct error *e);

/* ---- fitting (calibrate_fit.c) ---- */

/* From timed cases to "call_s", fits, curves, "mem_Bps" and "peak.fp32". */
enum status calibration_fit(const calibration_cases *cases, struct profile *p, struct error *e);

#endif
