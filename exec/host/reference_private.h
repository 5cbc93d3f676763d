/* Shared by the files of the reference. */
#ifndef STEPSIM_EXEC_HOST_REFERENCE_PRIVATE_H
#define STEPSIM_EXEC_HOST_REFERENCE_PRIVATE_H

#include "exec/host/reference.h"

typedef enum status reference_fn(const struct host_env *env, const struct op *op, void *const arg[], struct error *e);

#define REFERENCE(name) \
	enum status name(const struct host_env *env, const struct op *op, void *const arg[], struct error *e)
#define UNUSED() ((void)env, (void)op, (void)arg, (void)e)

/* Rotates `cols` columns as ROPE does at a position; a negative one rotates back. */
void reference_rotate(double *x, int64_t cols, int64_t position);

/* Fills the mean (0 with OP_RMS) and the inverse deviation of n numbers. */
void reference_row_stats(const struct op *op, const double *x, int64_t n, double stats[2]);

/* ref_NAME of each kind. Those that the reference does not compute are NULL in its table and defined nowhere. */
#define OP(kind, name, ...) reference_fn ref_##name;
#include "step/ops.def"

#endif
