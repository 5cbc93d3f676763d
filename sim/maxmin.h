/* Weighted max-min fair rates.
 *
 * n activities, m resources. Activity i moves at rate x_i in [0, 1] (1: as fast as alone) and takes demand d[i][r] x_i of resource r, whose capacity is 1 (`cap`).
 * Find x such that sum_i d[i][r] x_i <= cap_r for every r, x_i <= 1, and no x_i can grow without making some x_j with x_j / w_j <= x_i / w_i smaller
 * (w: weights). Progressive filling: raise all x_i = w_i t together; an activity freezes when it reaches 1 or when a resource that it uses is full
 * (Bertsekas & Gallager, Data Networks, 2nd ed., section 6.5.2; with weights as in Marbach 2002).
 */
#ifndef STEPSIM_SIM_MAXMIN_H
#define STEPSIM_SIM_MAXMIN_H

#include <stddef.h>

enum resource { RES_COMPUTE, RES_MEMORY, RES_LINK_INTRA, RES_LINK_INTER, RES_COUNT };

struct activity {
	double weight; /* > 0 */
	double demand[RES_COUNT]; /* >= 0, of its actor's resources, at rate 1 */
};

/* Rates of the n activities of one actor. O(n m) for each freezing, at most n freezings. */
void maxmin_rates(const struct activity *const *act, size_t n, const double cap[RES_COUNT], double *rate);

#endif
