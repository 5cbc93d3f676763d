/* The rows of the parameter table: which kinds of parameters a model has, where, and in which shape. Private to
 * step/model*.c. */
#ifndef STEPSIM_STEP_MODEL_ROWS_H
#define STEPSIM_STEP_MODEL_ROWS_H

#include "step/model_conv.h"

/* The places of a parameter: kinds of layers, before the blocks, behind an encoder's, or after them. */
#define IN(kind) (1u << LAYER_##kind)
enum place {
	BLOCK_DENSE = IN(DENSE) | IN(MLP) | IN(CROSS),
	BLOCK_MOE = IN(MOE) | IN(EXPERTS),
	ATTENDS = IN(DENSE) | IN(MOE) | IN(ATTENTION) | IN(CROSS) | IN(PARALLEL),
	TWO_BRANCHES = IN(DENSE) | IN(MOE) | IN(CROSS),
	CROSSES = IN(CROSS),
	MAMBAS = IN(MAMBA) | IN(PARALLEL),
	DELTAS = IN(DELTA),
	KDAS = IN(KDA),
	SCANS = MAMBAS | DELTAS | KDAS, /* a model has layers of one of these */
	SHORT_CONVS = IN(SHORT_CONV),
	BLOCK = IN(KIND_COUNT) - 1,
	BEFORE = IN(KIND_COUNT),
	AFTER = BEFORE << 1,
	BETWEEN = BEFORE << 2,
	FURTHER = BEFORE << 3, /* blocks of mtp_layers */
};

struct row {
	enum param_kind kind;
	enum place place;
	bool present;
	int64_t rows, cols, copies;
	enum tp_split split;
};

/* Norms have two rows each, of which a model has one. */
#define CONV_KINDS (PARAM_SHORTCUT_NORM_B - PARAM_STEM_W + 1) /* step/model_conv.c has these */
#define ROWS (PARAM_KIND_COUNT + 4 - CONV_KINDS)

/* Fills all rows in the order of model.parameters() of GPT-2, and of BERT where norms follow. `vocab` and `kv_heads`
 * are the vocabulary and the heads of keys that are stored. RMSNorm has no bias (Zhang & Sennrich 2019), whatever the
 * linear layers have. */
void model_fill_rows(const struct model *m, int64_t vocab, int64_t kv_heads, struct row out[ROWS]);

#endif
