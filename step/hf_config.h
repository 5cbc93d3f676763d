/* Reads a Hugging Face config.json as the model that transformers would build from it (AutoModelForCausalLM). Private
 * to step/config*.c and its tests.
 *
 * model_type: llama, mistral, mixtral, gpt2, gpt_neox, qwen2. Sizes with a default in the transformers classes may be
 * missing. Models that the table of step/model.h cannot describe (a bias on some linear layers only, an unknown
 * activation) are refused. Rotary details (theta, scaling, the rotated share of a head) do not change what a step costs
 * and are not read.
 */
#ifndef STEPSIM_STEP_HF_CONFIG_H
#define STEPSIM_STEP_HF_CONFIG_H

#include <stddef.h>

#include "base/status.h"
#include "step/model.h"

/* Fill every field of `m`; seq_len is the longest that the model takes. ST_INPUT: "name[:line:col]: key: message". */
enum status hf_config_load(const char *path, struct model *m, struct error *e);
enum status hf_config_parse(const char *text, size_t len, const char *name, struct model *m, struct error *e);

#endif
