/* Reads a Hugging Face config.json as the model that transformers would build from it. Private to step/config/ and
 * its tests.
 *
 * The types are the rows of step/import/hf_types.c. Sizes with a default in the transformers classes may be missing.
 * Models that the table of step/model.h cannot describe (an unknown activation) are refused. Rotary details (theta,
 * scaling, the rotated share of a head) do not change what a step costs and are not read.
 */
#ifndef STEPSIM_STEP_HF_CONFIG_H
#define STEPSIM_STEP_HF_CONFIG_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"
#include "step/model.h"

#define HF_LEFT_OUT 160
/* Sequences to train with where the file cannot say: max_position_embeddings is what a model can take, which for
 * 131,072 would be attention for the most part. */
#define HF_SEQ_LEN 4096

/* POD: part of the config. */
struct hf_model {
	struct model model;         /* every field is filled; seq_len: HF_SEQ_LEN, or longest_seq where that is less */
	int64_t longest_seq;        /* that the model takes; 0: not said */
	char left_out[HF_LEFT_OUT]; /* parts of the model that the description lacks: "attention sinks, vision tower" */
};

/* ST_INPUT: "name[:line:col]: key: message". */
enum status hf_config_load(const char *path, struct hf_model *m, struct error *e);
enum status hf_config_parse(const char *text, size_t len, const char *name, struct hf_model *m, struct error *e);
/* Returns whether a text is such a file: a JSON object with a model_type. */
bool hf_config_is(const char *text, size_t len);

#endif
