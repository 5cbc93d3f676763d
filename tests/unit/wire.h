/* What a rank sends, for tests of step programs. */
#ifndef STEPSIM_TESTS_WIRE_H
#define STEPSIM_TESTS_WIRE_H

#include "step/program.h"

/* The bytes of the first role's collectives along a dimension. */
static inline double wire_B(const struct program *p, enum mesh_dim group)
{
	double sum = 0;
	for (size_t i = 0; i < p->roles[0].ops.n; i++) {
		const struct op *op = &p->roles[0].ops.at[i];
		if (op->kind == OP_COLLECTIVE && op->group == group)
			sum += op_wire_B(op, p->mesh.size[group]);
	}
	return sum;
}

#endif
