/* Weighted max-min fair rates of n activities on m resources.
 *
 * Activity i moves at rate x_i in [0, 1] (1: as fast as alone) and takes demand d[i][r] x_i of resource r, whose
 * capacity is cap_r. The rates x satisfy, with weights w:
 *
 *   sum_i d[i][r] x_i <= cap_r for every r, and x_i <= 1
 *   no x_i can grow without making some x_j with x_j / w_j <= x_i / w_i smaller
 *
 * Progressive filling finds them: all x_i = w_i t rise together, and an activity freezes when it reaches 1 or when a
 * resource that it uses is full (Bertsekas & Gallager, Data Networks, 2nd ed., section 6.5.2; with weights as in
 * Marbach 2002). Example: two activities of weight 1 and demand 1 on one resource of capacity 1 get x = 1/2 each;
 * weights 3 and 1 give 3/4 and 1/4.
 *
 * Transfers that cores carry (activity.beside > 0) come first: a kernel moves their bytes before a thread computes.
 * They share links alone, in proportion to the greatest rates b that they can have: b = beside while another activity
 * uses compute, else 1. Transfer i then leaves the part 1 - d[i] x_i of compute, and what is left the others share as
 * above.
 */
#ifndef STEPSIM_SIM_MAXMIN_H
#define STEPSIM_SIM_MAXMIN_H

#include <stddef.h>

#include "sim/price/activity.h"

/* Fills the rates of the n activities of one actor. Takes O(n m) for each freezing, at most n freezings. */
void maxmin_rates(const struct activity *const *act, size_t n, const double cap[RES_COUNT], double *rate);

#endif
