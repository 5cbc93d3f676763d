/* Stragglers and failures: a step lasts as long as its slowest rank, and a job that fails loses its work since the last
 * checkpoint. */
#ifndef STEPSIM_SIM_STRAGGLERS_H
#define STEPSIM_SIM_STRAGGLERS_H

#include "step/program.h"
#include "topology/machine.h"

/* Returns the mean of the largest of n independent standard normal values, n >= 1. It is the integral of 1 - F(x)^n
 * above 0 less that of F(x)^n below, with F the normal distribution (David and Nagaraja, Order Statistics, 2003,
 * section 3.1). It is 0 for one value, 0.56 for two, and tends to sqrt(2 ln n) from below. */
double stragglers_expected_max(double n);

/* Returns the compute time of a role's slowest rank as a multiple of the mean. It is the largest factor of
 * cluster.slow_ranks, or 1 + cluster.jitter x stragglers_expected_max(ranks), whichever is more. All others wait for
 * that rank where they meet it. (With one slow rank among many that jitter the true mean is a little above both.) */
double stragglers_role_factor(const struct program *p, size_t role, const struct machine *m);

/* Returns the factor by which a device's work takes longer when `nodes` nodes run one job: the slowest paces all. 1 on
 * a host's cores. */
double stragglers_slowdown(const struct machine *m, int64_t nodes);

/* The best checkpoint interval of a job, and the share of time that its steps then take (goodput, Daly's complete
 * model). The job writes a checkpoint for checkpoint_s after every interval_s of work and fails at random, every mtbf_s
 * on the mean. After a failure it reads the checkpoint for as long as writing takes, and repeats the lost work. The
 * best interval is sqrt(2 checkpoint mtbf) (Young 1974, CACM 17(9)), with the higher orders of Daly 2006, FGCS 22(3),
 * 303-312. */
struct goodput {
	double interval_s, goodput;
};
struct goodput stragglers_best_goodput(double mtbf_s, double checkpoint_s);

#endif
