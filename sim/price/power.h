/* The clock of a GPU whose board is at its power limit.
 *
 * The limit holds the board's mean power over tens of milliseconds, so it holds a step's mean, not an op's: products
 * may draw more than the limit between ops that draw less. Over a step of T seconds at the share c of the burst clock
 *
 *     limit x T(c) = idle x T(c) + sum of FLOP x J x (c / h)^g + bytes x E
 *
 *   T(c)   the ops' time: products, convolutions, flash attention and all else that arithmetic bounds take 1 / c as
 *          long as at the burst clock, or what memory needs; other ops are bound by memory, whose clock stays
 *   idle   the least power that the profile's products were seen at
 *   J, h   what a FLOP costs beyond idle in the products that calibration ran at the limit (their traffic included),
 *          and their clock's share of the burst clock
 *   g, E   gpu.energy_growth and gpu.byte_energy (configs/model)
 *
 * c is 1 where the limit allows it. A step of nothing but such products gets h. Waiting for other ranks is left out:
 * a step that waits long has a higher clock.
 */
#ifndef STEPSIM_SIM_POWER_H
#define STEPSIM_SIM_POWER_H

#include "sim/price/price.h"

/* Sets the times of priced ops to the clock at which the power limit holds the program's hottest role. May be called
 * again for a further program with the same prices. */
void power_hold(const struct program *p, const struct rates *r, struct prices *prices);

#endif
