/* Configs of other frameworks, as CONFIG.yaml: step/import/import.h with a model, a system and a number of hosts. */
#ifndef STEPSIM_CLI_IMPORT_H
#define STEPSIM_CLI_IMPORT_H

#include "cli/options.h"
#include "step/import/import.h"

/* Reads a framework's config and fills what it leaves open: the model of --model, the system of --system (else a
 * dgx-h100), the hosts of --gpus or of the plan's degrees. *found: as import_read. *refused says why the result is no
 * config yet; its status is ST_OK where it is one. */
enum status import_complete(const struct options *o, const char *text, size_t len, const char *name, bool *found,
	struct import *out, struct error *refused, struct error *e);

/* What messages call the text of an import, behind its name. */
#define IMPORT_WRITTEN " (as `stepsim import` writes it)"

/* Says a refusal of the written config with the key and the line of the text that it comes from, where one gave the
 * value, or with the option that did, and names a value that is not in the text. */
void import_explain(const struct import *im, struct error *refused);

/* Writes the CONFIG.yaml in *text (malloc'ed). */
enum status import_text(const struct import *im, char **text, size_t *len, struct error *e);

#endif
