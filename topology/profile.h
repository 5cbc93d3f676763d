/* A measured profile: the named values, curves and fits of a calibration. It is a YAML file that people can read, keyed
 * by what its figures depend on.
 *
 * exec/calibrate/ writes the entries; machine.c, sim/ and cli/ read them. Their names stand here once:
 * - values: the PROFILE_ constants below;
 * - curves and fits of ops: the name that work_of gives (step/work.h), such as "norm.layernorm" or "gemm.nn";
 * - curves of collectives: profile_collective_curve;
 * - products as they were timed: the name that work_of gives, with a number for each product in each column.
 */
#ifndef STEPSIM_TOPOLOGY_PROFILE_H
#define STEPSIM_TOPOLOGY_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

#define PROFILE_NAME 48
#define PROFILE_POINTS 32
#define PROFILE_COEFS 8
#define PROFILE_ENTRIES 96

/* Names of values. A rank's rates are those that all ranks reach at once. */
#define PROFILE_PEAK "peak."                          /* and a format's name: FLOP/s of the fastest GEMM */
#define PROFILE_MEM_BPS "mem_Bps"                     /* memory bandwidth of a rank, B/s, of the largest add */
#define PROFILE_CALL_S "call_s"                       /* least time of an op; on a GPU, there */
#define PROFILE_LAUNCH_S "launch_s"                   /* host time to issue an op to a GPU */
#define PROFILE_SMS "sms"                             /* SMs of the GPU */
#define PROFILE_COPY_H2D_BPS "copy.h2d_Bps"           /* pinned host memory to a GPU, B/s */
#define PROFILE_COPY_D2H_BPS "copy.d2h_Bps"           /* a GPU to pinned host memory, B/s */
#define PROFILE_P2P_LATENCY_S "p2p.latency_s"         /* one way, of a message of a few bytes between two ranks */
#define PROFILE_P2P_BPS "p2p.Bps"                     /* of large messages between two ranks, B/s */
#define PROFILE_COMPUTE_RATE "overlap.compute_rate"   /* speed of a GEMM beside a collective, 0 to 1 of its own */
#define PROFILE_COMM_RATE "overlap.comm_rate"         /* speed of a collective beside a GEMM, 0 to 1 of its own */
#define PROFILE_BETWEEN_LATENCY_S "between.latency_s" /* of a message between two hosts, as PROFILE_P2P_ */
#define PROFILE_BETWEEN_BPS "between.Bps"
#define PROFILE_BETWEEN_S_PER_B "between.compute_s_per_B" /* compute lost for a byte that comes or goes, on cores */
#define PROFILE_BETWEEN_WAIT_SHARE "between.wait_share"   /* of compute, lost while a collective waits for others */
/* Where the ranks of a host share cores: latency of a collective of one rank a host while the others sleep, over its
 * latency while they communicate, too. */
#define PROFILE_BETWEEN_ALONE_LATENCY "between.alone_latency"
/* What a collective loses beside a GEMM: for each byte that comes or goes, and for each message, until its thread gets
 * the core. */
#define PROFILE_BETWEEN_COMM_S_PER_B "between.comm_s_per_B"
#define PROFILE_BETWEEN_TURN_S "between.turn_s"
#define PROFILE_PROGRESS_SHARE "progress.share"    /* of a core, taken by the progress thread */
#define PROFILE_DISTURBED_SHARE "others.disturbed" /* of the measurements, that others disturbed every time */
#define PROFILE_CPU_STEAL_SHARE "others.share"     /* of a rank's cores, taken by others meanwhile */
#define PROFILE_PACE_SPREAD "pace.spread"          /* standard deviation of the cores' pace */
#define PROFILE_PACE_GEMM_S "pace.gemm_s"          /* of the product and of the sum that tell the cores' pace, */
#define PROFILE_PACE_ADD_S "pace.add_s"            /* on cores: as calibration found them */
#define PROFILE_ISSUE "issue."                     /* + kind: the host's time to issue one op of it to a GPU, s */
#define PROFILE_POWER_LIMIT_W "power_limit_W"      /* of a GPU's board, as the driver enforces it */

struct profile_value {
	char name[PROFILE_NAME];
	double value;
};
struct profile_curve {
	char name[PROFILE_NAME];
	size_t n;
	double x[PROFILE_POINTS], y[PROFILE_POINTS]; /* x ascending, both positive */
};
struct profile_fit {
	char name[PROFILE_NAME];
	size_t n;
	double coef[PROFILE_COEFS];
	double residual; /* root mean square relative residual */
};

/* The products behind a fit, as they were timed on a GPU whose clocks are known. Fits are of the profile's burst clock
 * (profile_burst_Hz): a product that the power limit held down counts there as so much faster. */
struct profile_products {
	char name[PROFILE_NAME];
	size_t n;
	double flop[PROFILE_POINTS], time_s[PROFILE_POINTS]; /* as measured */
	double clock_Hz[PROFILE_POINTS];                     /* of the SMs, meanwhile; the slowest rank's */
	double power_W[PROFILE_POINTS]; /* of the board, as the driver averages it; 0: it does not say */
	double heat_s[PROFILE_POINTS];  /* it had run back to back for so long; 0: for a few milliseconds */
	double capped[PROFILE_POINTS];  /* share of samples in which the power limit held the clock down */
};

/* The identity of a profile: its figures hold for these values alone. */
struct profile_key {
	char stepsim[32], backend[16], cpu[128], mpi[64], blas[128], binding[64];
	int64_t cores_per_rank, ranks_per_host, ranks;
};

struct profile {
	struct profile_key key;
	char date[32];
	bool uncounted; /* read from a file that does not say how many entries it has */
	size_t n_values, n_curves, n_fits, n_products;
	struct profile_value values[PROFILE_ENTRIES];
	struct profile_curve curves[PROFILE_ENTRIES];
	struct profile_fit fits[PROFILE_ENTRIES];
	struct profile_products products[PROFILE_ENTRIES];
};

enum status profile_load(const char *path, struct profile **out, struct error *e); /* ST_INPUT with position */
enum status profile_save(const struct profile *p, const char *path, struct error *e);
struct profile *profile_create(void); /* zeroed; NULL when out of memory */
void profile_destroy(struct profile *p);

/* Adding: ST_RUN when the table is full (a bug of the caller). A name that is there already is replaced. */
enum status profile_set_value(struct profile *p, const char *name, double value, struct error *e);
enum status profile_set_curve(struct profile *p, const char *name, const double *x, const double *y, size_t n,
	struct error *e);
enum status profile_set_fit(struct profile *p, const char *name, const double *coef, size_t n, double residual,
	struct error *e);
enum status profile_set_products(struct profile *p, const struct profile_products *x, struct error *e);

/* Writes the name of the curve of a collective over groups of `ranks` ranks, `stride` apart: "all_reduce.2",
 * "all_reduce.2.stride4". Its x is the bytes of the full buffer, its y seconds. */
void profile_collective_curve(char out[PROFILE_NAME], const char *collective, int64_t ranks, int64_t stride);
/* Returns the group size in the name of such a curve, and its stride; 0 where the curve is not one of `collective`. */
int64_t profile_collective_ranks(const char *curve, const char *collective, int64_t *stride);

/* Lookups: `missing` / NULL when absent. */
double profile_get_value(const struct profile *p, const char *name, double missing);
const struct profile_curve *profile_get_curve(const struct profile *p, const char *name);
const struct profile_fit *profile_get_fit(const struct profile *p, const char *name);

/* The share of the measurements that stayed disturbed, 0 to 1. All of a profile that has PROFILE_CPU_STEAL_SHARE alone:
 * it says only that others were there. */
double profile_disturbed(const struct profile *p);

/* By how much of itself a time that this profile gives may be too long: what others took, of the measurements that
 * stayed disturbed. 0 to 1. */
double profile_too_long(const struct profile *p);

bool profile_of_several_hosts(const struct profile *p);
bool profile_of_gpus(const struct profile *p);

/* What a profile of an earlier stepsim lacks, in words; NULL: nothing. The prediction falls back on coarser figures. */
const char *profile_lacks(const struct profile *p);
/* The same of a cached profile, which stepsim wrote: a file that may have been cut lacks the number of its entries. */
const char *profile_cached_lacks(const struct profile *p);

/* What becomes of the cached profile (NULL: there is none) at the start of a run. `quiet`: nobody else uses the cores
 * now; it is asked for a profile alone that others disturbed, or that lacks something. */
enum profile_use { PROFILE_TAKE, PROFILE_TAKE_WIDENED, PROFILE_MEASURE, PROFILE_MEASURE_AGAIN };
enum profile_use profile_decide(const struct profile *cached, bool quiet);

/* The highest clock at which a product was timed; 0: no clock is known. */
double profile_burst_Hz(const struct profile *p);

/* Log-log interpolation; below the first and above the last point: `clamp` keeps the end value (rates an element), else
 * the last segment's slope goes on (times of a transfer; below the first point the first value stays). */
double profile_curve_at(const struct profile_curve *c, double x, int clamp);

/* "<cache>/profile-<hash of the key>.yaml". */
enum status profile_cache_path(const struct profile_key *k, char *path, size_t size, struct error *e);
int profile_key_equal(const struct profile_key *a, const struct profile_key *b);

#endif
