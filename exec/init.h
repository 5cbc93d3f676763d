/* Initial weights and input data. They are the same for every strategy and number of ranks.
 *
 * Weights: element i of the uncut tensor (kind, layer) is a function of the three alone (a counter-based generator: the
 * finalizer of SplitMix64, Steele et al. 2014; four 16-bit uniforms added up, a normal distribution cut off at 3.5
 * sigma). Normal with sigma 0.02; the projections back into the residual stream 0.02 / sqrt(2 layers) (Radford et al.
 * 2019); norm weights 1; biases 0. Tokens: position i of sequence n is a function of both, uniform in the vocabulary;
 * the target is the next token. A rank of a context group has its part of each sequence (step/cut.h). Sequences are
 * numbered over micro-steps, then data-parallel ranks, then places in the micro-batch, and are the same in every step,
 * so that the loss falls.
 */
#ifndef STEPSIM_EXEC_INIT_H
#define STEPSIM_EXEC_INIT_H

#include "exec/device.h"

#define INIT_SIGMA 0.02 /* standard deviation of weights (Radford et al. 2019) */

/* Into the buffers that hold weights from step to step. The rest of the device is untouched. */
void init_weights(const struct program *p, const struct device_job *job, const struct device *d);
/* Into the role's input buffer, if it has one. */
void init_input(const struct program *p, const struct device_job *job, const struct device *d);

/* `n` values of parameter `param`'s uncut tensor from element `first` on. */
void init_values(const struct param *param, int64_t layers, uint64_t first, uint64_t n, float *out);

/* One stretch of a rank's part of a parameter that is contiguous in the uncut tensor as well: from local element
 * `local` on, `n` elements from `global` on. */
struct stretch {
	uint64_t global, n;
};
struct stretch init_stretch(const struct model *m, const struct param *param, struct param_part at, uint64_t local);

#endif
