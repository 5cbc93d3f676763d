/* What stepsim knows of a framework's config: configs/frameworks/NAME.yaml, read by import and export alike.
 *
 * rows: in order, {key, to, ...}:
 *   key      the framework's key, its tables joined by dots; a list: further names, of which export writes the first.
 *            It also matches at the end of a longer path
 *   to       the key of CONFIG.yaml; without it, the one whose other name is the last word of `key`
 *            (step/config/alias.c)
 *   values   {its value: ours}; fnmatch patterns on the left; ~ leaves ours out; a list: import takes the first, export
 *            any. hub: what the preset of a model of Hugging Face's hub has (step/import/hub.c); layout: layers of each
 *            part of a pipeline, or how many parts there are (step/import/layout.c); list and
 *            list_with_experts: lists of layers, shares: shares of them (step/import/lists.c); count: how many words
 *            there are between commas
 *   with     a second key, whose value is joined to the first by a blank
 *   known    all values that the framework takes; another is refused, as there
 *   default  its value where the file has none
 *   when     {key of CONFIG.yaml: value}: the row holds only then; "!value": only otherwise
 *   given    the same of the framework's keys, by import alone
 *   times, over, plus, inverse   ours = its value x times / over + plus, or (times + plus) / over / its value; lists of
 *            numbers or keys of CONFIG.yaml
 *   says     what a taken value is in truth, where ours is the nearest
 *   multiple ours is rounded down to a multiple of it
 *   until    "/": its text ends before this character
 *   first    true: of a list, "[127, 0]", its first number is taken
 *   is       a value that export writes and that import passes over
 *   only     import or export
 *   form     export writes the row in this form alone
 * Of several rows for one key of CONFIG.yaml the first counts that the file has; defaults come after all of them.
 * accumulation: the framework's key of the micro-batches in a step of each replica, 1 without it. A text with a batch
 * and no micro-batch has the one that follows from them and from the GPUs (step/import/micro_batch.c).
 * sets: keys of CONFIG.yaml that hold where no row gives another value.
 * no_effect, not_modelled: {why: [patterns of keys]}; of several that a key fits the longest counts.
 * also: further tables, whose rows and lists come behind; those in parts/ are no framework's own.
 * apart: tables of the text whose keys are no row's, unless a row has their whole path.
 * detect: lists of keys; a file with all keys of one of them is of this framework. Of several the longest list counts.
 * writes: the form that export writes: toml, yaml, json, python, or flags behind the words `launch`. In these and in
 * `is`, keys of CONFIG.yaml in braces are replaced by their values. Without it, the framework is read alone.
 * imports: of Python, {name: the line that imports it}.
 */
#ifndef STEPSIM_STEP_IMPORT_TABLE_H
#define STEPSIM_STEP_IMPORT_TABLE_H

#include "base/vec.h"
#include "base/yaml.h"
#include "step/config/keys.h"

struct import_row {
	const struct ynode *key; /* a text or a list of them */
	enum key_id to;          /* KEY_COUNT: none, with `is` */
	const struct ynode *values, *known, *when, *given, *times, *over, *plus;
	const char *with, *default_, *is, *until, *form, *says;
	int64_t multiple;
	bool inverse, first, hub, layout, list, all_experts, shares, count, no_import, no_export;
};

/* A group of keys that are not taken, and why. */
struct import_reason {
	const char *why;
	const struct ynode *patterns;
	bool modelled; /* it has no effect; else it is not modelled */
};

struct import_table {
	char name[STACK_NAME];
	const char *title, *writes, *launch, *accumulation;
	const struct ynode *detect, *apart, *imports;
	VEC(struct import_row) rows;
	VEC(struct import_reason) reasons;
	VEC(const struct ynode *) sets; /* scalars with their keys */
	VEC(struct ydoc *) docs;        /* into which all of it points */
};

/* Reads the table of a framework. ST_INPUT: an unknown name, or with position what is wrong in the file. */
enum status import_table_load(const char *name, struct import_table *out, struct error *e);
void import_table_free(struct import_table *t);

/* Returns the key of CONFIG.yaml of a path, "section.name"; KEY_COUNT without one. */
enum key_id import_key_of(const char *path);

/* Returns the row's names in turn; NULL behind the last. */
const char *import_row_name(const struct import_row *r, size_t i);

#endif
