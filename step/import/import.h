/* Somebody else's training config as a CONFIG.yaml, with a remark for each of its keys: taken, without effect on the
 * step's time, or not modelled. What is known of each framework stands in configs/frameworks (step/import/table.h). */
#ifndef STEPSIM_STEP_IMPORT_IMPORT_H
#define STEPSIM_STEP_IMPORT_IMPORT_H

#include <stdio.h>

#include "step/import/foreign.h"

#define REMARK_MAX 128

struct import {
	const char *name; /* of the file; borrowed */
	struct import_table table;
	struct foreign foreign;
	bool is_strange; /* of no framework, nor a Hugging Face config.json, and with three keys or more, none of which
	                    is a section of CONFIG.yaml */
	bool is_ours;    /* a CONFIG.yaml: each key at the top is one of its sections */
	struct {
		int line, col;
		char key[ALIAS_MAX];
	} first;          /* key of the text, where it is no framework's */
	bool lacks_model; /* neither the text nor an option names one: what is written must not run */
	struct import_key {
		bool given, by_default; /* by the text; by what the framework or stepsim takes without it */
		char value[KEY_VALUE_MAX], remark[REMARK_MAX];
	} key[KEY_COUNT];
};

/* Reads the config of a framework: `from` names it, or NULL: it is recognised by its keys. *found is false where they
 * are no framework's that is known, or where the text cannot be read; then nothing but is_strange is filled. `text` and
 * `name` are borrowed. ST_INPUT with position: a value that its key cannot have, or a table of a framework that cannot
 * be read. */
enum status import_read(const char *text, size_t len, const char *name, const char *from, bool *found,
	struct import *out, struct error *e);
void import_free(struct import *im); /* NULL-safe members */

/* Gives a key of CONFIG.yaml a value that the text does not have; what the text gives is replaced. */
void import_put(struct import *im, enum key_id id, const char *value, const char *remark);
void import_drop(struct import *im, enum key_id id); /* leaves it to its default */
/* Returns whether the key has a value. */
bool import_has(const struct import *im, enum key_id id);

/* Returns whether the text gives a step's batch and leaves the micro-batch to follow from it. */
bool import_splits_batch(const struct import *im);

/* Gives such a text the micro-batch of a batch over so many replicas. *refused says where it does not split. */
void import_split_batch(struct import *im, int64_t batch, int64_t replicas, struct error *refused);

/* Counts the keys of each verdict. */
void import_count(const struct import *im, size_t count[VERDICT_COUNT]);

/* Writes the CONFIG.yaml. */
enum status import_write(const struct import *im, FILE *out, struct error *e);

/* In a comment of TOML, YAML and scripts, "# stepsim: train.optimizer: lion" is a key of CONFIG.yaml that the framework
 * has no word for; in JSON, a key of the table "stepsim". Export writes them. */
#define IMPORT_MARK "# stepsim: "
#define IMPORT_TABLE "stepsim"

/* step/import/layout.c: reads --pipeline-model-parallel-layout of Megatron-LM. Returns false where it says what
 * parallel.layers_per_stage cannot: writes the layers of each part, or for another key how many parts there are. */
bool layout_value(const char *text, enum key_id key, char out[KEY_VALUE_MAX]);

/* Returns whether such a layout has blocks of multi-token prediction in a part before the head's: here they stand with
 * the head. */
bool layout_moves(const char *text);

/* step/import/lists.c: reads Megatron-LM's lists of layers. Key model.layer_pattern: the list of linear attention, and
 * behind a blank that of experts; without the latter all layers have experts, or none. model.first_dense_layers and
 * model.moe_layer_freq: the list of experts. False: it is no such list, or says what the key cannot. */
bool list_value(const char *text, enum key_id key, bool all_experts, char out[KEY_VALUE_MAX]);

/* step/import/lists.c: writes the pattern of so many layers of which shares have attention and MLPs, "0.08 0.5", as
 * Megatron-LM deals them out (--hybrid-attention-ratio, --hybrid-mlp-ratio). False: these are no shares. */
bool shares_value(const char *text, const char *layers, char out[KEY_VALUE_MAX]);

/* step/import/hub.c: finds the preset of a model of Hugging Face's hub, by the pages that the sources in configs/models
 * name, and writes its name (key model.preset) or the value that it gives the key. False: there is none. */
bool hub_value(const char *id, enum key_id key, char out[KEY_VALUE_MAX]);

#endif
