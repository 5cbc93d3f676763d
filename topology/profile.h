/* A measured profile: what calibration found, as named values, curves and fits. A YAML file that people can read, keyed by what it depends on.
 *
 * Names: values "call_s", "overlap.compute_rate", ...; curves "norm.layernorm" (step/work.h) and "all_reduce.2" (collective, group size; x bytes of the full buffer, y seconds);
 * fits "gemm.nn". exec/ writes them, sim/ reads them; nothing here knows what they mean.
 */
#ifndef STEPSIM_TOPOLOGY_PROFILE_H
#define STEPSIM_TOPOLOGY_PROFILE_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

#define PROFILE_NAME 48
#define PROFILE_POINTS 32
#define PROFILE_COEFS 8
#define PROFILE_ENTRIES 96

struct profile_value { char name[PROFILE_NAME]; double value; };
struct profile_curve { char name[PROFILE_NAME]; size_t n; double x[PROFILE_POINTS], y[PROFILE_POINTS]; /* x ascending, both positive */ };
struct profile_fit { char name[PROFILE_NAME]; size_t n; double coef[PROFILE_COEFS]; double residual; /* root mean square relative residual */ };

/* What the figures depend on: another value of any of these is another profile. */
struct profile_key {
	char stepsim[32], backend[16], cpu[128], mpi[64], blas[128], binding[64];
	int64_t cores_per_rank, ranks_per_host, ranks;
};

struct profile {
	struct profile_key key;
	char date[32];
	size_t n_values, n_curves, n_fits;
	struct profile_value values[PROFILE_ENTRIES];
	struct profile_curve curves[PROFILE_ENTRIES];
	struct profile_fit fits[PROFILE_ENTRIES];
};

enum status profile_load(const char *path, struct profile **out, struct error *e); /* ST_INPUT with position */
enum status profile_save(const struct profile *p, const char *path, struct error *e);
struct profile *profile_create(void); /* zeroed; NULL when out of memory */
void profile_destroy(struct profile *p);

/* Adding: ST_RUN when the table is full (a bug of the caller). A name that is there already is replaced. */
enum status profile_set_value(struct profile *p, const char *name, double value, struct error *e);
enum status profile_set_curve(struct profile *p, const char *name, const double *x, const double *y, size_t n, struct error *e);
enum status profile_set_fit(struct profile *p, const char *name, const double *coef, size_t n, double residual, struct error *e);

/* Lookups: `missing` / NULL when absent. */
double profile_get_value(const struct profile *p, const char *name, double missing);
const struct profile_curve *profile_get_curve(const struct profile *p, const char *name);
const struct profile_fit *profile_get_fit(const struct profile *p, const char *name);

/* Log-log interpolation; below the first and above the last point: `clamp` keeps the end value (rates an element), else the last segment's slope goes on (times of a transfer; below the first point the first value stays). */
double profile_curve_at(const struct profile_curve *c, double x, int clamp);

/* "<cache>/profile-<hash of the key>.yaml". */
enum status profile_cache_path(const struct profile_key *k, char *path, size_t size, struct error *e);
int profile_key_equal(const struct profile_key *a, const struct profile_key *b);

#endif
