/* What ranks differ by, and what fails: a step lasts as long as its slowest rank, and a job loses what it did since its last checkpoint. */
#ifndef STEPSIM_SIM_SPREAD_H
#define STEPSIM_SIM_SPREAD_H

#include "step/program.h"
#include "topology/machine.h"

/* The mean of the largest of n independent standard normal values, n >= 1: the integral of 1 - F(x)^n above 0 less that of F(x)^n below (David and Nagaraja, Order Statistics, 2003, section 3.1), F the normal distribution.
 * 0 for one, 0.56 for two, tends to sqrt(2 ln n) from below. */
double expected_largest(double n);

/* How many times the mean compute time the slowest rank of a role needs: the largest factor of cluster.slow_ranks, or the slowest of its ranks by cluster.jitter, 1 + jitter x expected_largest(ranks), whichever is more. All others wait for it where
 * they meet it. (Of one slow rank among many that jitter the mean is a little above both.) */
double role_slowness(const struct program *p, size_t role, const struct machine *m);

/* A job that writes a checkpoint of checkpoint_s every interval_s of work and fails every mtbf_s on the mean, at random; after a failure it reads the checkpoint for as long as writing takes, and does again what was lost.
 * interval_s: the best one (Young 1974, CACM 17(9): sqrt(2 checkpoint mtbf); its higher orders: Daly 2006, FGCS 22(3), 303-312). goodput: the share of time that such a job's steps take (Daly's complete model). */
struct goodput {
	double interval_s, goodput;
};
struct goodput best_goodput(double mtbf_s, double checkpoint_s);

#endif
