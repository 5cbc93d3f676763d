#include "step/optimizer.h"

#define ROW(id, name, moments, flop, unfused_passes, loop_kernels, runs_stateless, trust_ratio, orthogonal, factored) \
	[OPT_##id] = {name, moments, flop, unfused_passes, loop_kernels, runs_stateless, trust_ratio, orthogonal, \
		factored},

const struct optimizer_traits optimizer_traits[] = {OPTIMIZERS(ROW)};

const char *optimizer_name(enum optimizer o) { return optimizer_traits[o].name; }
