/* RATES(m): a pointer to the rates of a machine, valid to the end of the block. */
#ifndef STEPSIM_TESTS_RATES_H
#define STEPSIM_TESTS_RATES_H

#include "sim/price/rates.h"

#define RATES(m) ((struct rates[]){rates_of(m)})

#endif
