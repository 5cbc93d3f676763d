/* A config from a few words: --model, --system, --gpus, --strategy, --tokens. `stepsim init` writes it, and commands
 * about a config take it where no file is given. */
#ifndef STEPSIM_CLI_STARTER_H
#define STEPSIM_CLI_STARTER_H

#include "base/paths.h"
#include "cli/options.h"

#define STARTER_NAME "options" /* of the text, where a file has its path */

/* Writes a commented config in *text (malloc'ed, the caller frees it). Defaults: the model's own sequence length up to
 * 8,192 tokens, one host of a dgx-h100, fsdp (on one GPU ddp), a micro-batch of 1, and 4 Mi tokens a step as whole
 * sequences, at least one a GPU. ST_INPUT: an unknown model or system, GPUs that are no whole hosts. */
enum status starter_text(const struct options *o, char **text, size_t *len, struct error *e);

/* Takes a path (a file, a folder, or a word with a slash) as Hugging Face's config.json: *file is true, and `found` its
 * absolute path. Else it is a preset's name: as the catalogue spells it where there is one, else unchecked. */
enum status starter_find_model(const char *name, bool *file, char found[PATH_MAX_LEN], struct error *e);

/* Turns a refusal of such a text into one of the option that the value comes from. Others stay as they are. */
void starter_blame(const struct options *o, struct error *e);

#define STARTER_SYSTEM "dgx-h100"

#endif
