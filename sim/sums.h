/* What a simulated step adds up to, all that its result is made of (sim/summary.h). With every further micro-batch of a steady step each figure grows by the same: the sums of a folded step lie on the line through those of two
 * short ones (sim/fold.h). */
#ifndef STEPSIM_SIM_SUMS_H
#define STEPSIM_SIM_SUMS_H

#include "base/vec.h"
#include "step/result.h"
#include "topology/machine.h"

struct prices;

struct role_sums {
	double busy_s;               /* its compute lane, but for the optimizer */
	struct result_memory memory; /* at its peak; capacity_B and fits are not filled */
	uint64_t inputs_B;           /* of all micro-batches, on the device */
	uint64_t host_B;             /* of the host's memory, by a rank (train.offload) */
};

struct sums {
	uint32_t actor;                                                          /* the role that ends last; what follows is of it */
	struct breakdown time;
	double by_bound_s[CLASS_COUNT][BOUND_COUNT], sigma_s[CLASS_COUNT];       /* moving: by what bounds it, and times its relative uncertainty */
	double launching_s;                                                      /* the host thread issues */
	double host_update_s;                                                    /* the optimizer on the host */
	double loading_s;                                                        /* workers load, side by side (data.load_time): no step is shorter */
	double host_thread_s;                                                    /* struct result */
	const char *host_cause;                                                  /* timeline_host_cause */
	VEC(uint32_t) guessed;                                                   /* one op of each price that the profile did not have */
	struct role_sums *roles;                                                 /* of the program */
	size_t n_roles;
};

/* t: of p. `out`: zero, or what sums_of_memory said of p, which is not laid out again; the caller's to free, in any case. */
enum status sums_of(const struct program *p, const struct machine *m, const struct prices *prices, const struct timeline *t, double host_thread_s, uint32_t actor, struct sums *out, struct error *e);
/* Of a program that is not simulated: roles[].memory and host_B. */
enum status sums_of_memory(const struct program *p, const struct machine *m, struct sums *out, struct error *e);
void sums_free(struct sums *s);

/* Moves `s` from the step that it is of (at 0) along the line through that of `more` (at 1) to `t`. Both of one actor, and of equal roles. */
void sums_extend(struct sums *s, const struct sums *more, double t);

#endif
