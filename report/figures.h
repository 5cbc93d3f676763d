/* Figures that the table, the JSON and the limits of the command line share. */
#ifndef STEPSIM_REPORT_FIGURES_H
#define STEPSIM_REPORT_FIGURES_H

#include <math.h>
#include <stddef.h>

#include "base/quantity.h"
#include "step/result.h"

/* Returns (predicted - measured) / measured; 0 if both are 0; NAN if only the measurement is 0 or either is NAN. */
double figure_error(double predicted, double measured);

/* The terms of the partition that adds up to step_s, in the order of the JSON (docs/reference.md). */
struct figure_part {
	const char *label; /* for people */
	const char *key;   /* a key of "prediction" and "measurement" in the JSON */
	size_t offset;     /* of a double in struct breakdown */
};
#define FIGURE_PARTS 7
extern const struct figure_part figure_parts[FIGURE_PARTS];
double figure_part_s(const struct breakdown *b, size_t i);

/* The components of memory; they add up to total_B. */
struct figure_memory {
	const char *label, *key;
	size_t offset; /* of a uint64_t in struct result_memory */
};
#define FIGURE_MEMORIES 6
extern const struct figure_memory figure_memories[FIGURE_MEMORIES];
uint64_t figure_memory_B(const struct result_memory *m, size_t i);

/* Returns whether either side has ops of this class; `measured` may be NULL. */
bool figure_has_class(const struct result *predicted, const struct result *measured, enum op_class k);

#endif
