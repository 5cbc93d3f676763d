/* The keys of CONFIG.yaml, one table: step/config/keys.def. Private to step/config/, step/import and their tests. */
#ifndef STEPSIM_STEP_CONFIG_KEYS_H
#define STEPSIM_STEP_CONFIG_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "base/suggest.h"
#include "base/yaml.h"
#include "step/config/config.h"

enum key_type {
	KEY_INT,   /* int64_t in [low, high] */
	KEY_REAL,  /* double in [low, high] of `unit` */
	KEY_MIB,   /* double of bytes: written as a number of MiB, or as a size with its unit */
	KEY_BYTES, /* uint64_t: a whole number of bytes */
	KEY_BOOL,
	KEY_WORD,        /* an enum of ours by its word */
	KEY_NUMBER_WORD, /* int64_t of which only some values exist */
	KEY_TEXT,        /* char[]: `size` bytes with the terminator */
	KEY_TEXTS,       /* the same, or a list of texts, which is stored with ", " between them */
	KEY_SET,         /* int: some of the words, which are bits */
	KEY_ORDER,       /* parallel.order */
	KEY_STAGES,      /* parallel.layers_per_stage */
	KEY_RANKS,       /* cluster.slow_ranks: {3: 1.2, n1: 1.1} */
	KEY_TYPE_COUNT
};

struct word {
	const char *text;
	int value;
};

#define EVERY 0 /* strategy uses the key */

struct config_key {
	const char *section, *name;
	const char *path; /* "section.name" */
	enum key_type type;
	bool takes_auto; /* `auto`, stored as AUTO, beside the range */
	double low, high;
	enum unit unit;
	const struct word *words;
	size_t n_words, n_later; /* the last n_later words are not modelled yet */
	size_t offset, size;
	const char *default_; /* a text of CONFIG.yaml; NULL: it follows from other keys, as `follows` says */
	const char *follows;
	unsigned used_by;    /* traits that a strategy must have to use the key (step/strategy.h) */
	const char *values;  /* what it takes, where neither words nor a range say so */
	const char *meaning; /* for users */
};

#define KEY(section, key, ...) KEY_##section##_##key,
enum key_id {
#include "step/config/keys.def"
	KEY_COUNT
};

/* Storage formats `auto` until config_resolve: weights as the compute format, gradients as the weights, the wire as the
 * gradients. */
#define DTYPE_AUTO DT_COUNT

const struct config_key *config_key(enum key_id id);
/* Returns the key, or KEY_COUNT if there is none. `section` need not be terminated at section_len. */
enum key_id config_key_find(const char *section, size_t section_len, const char *name);

/* The same for a name without its section: KEY_COUNT if several sections have such a key. */
enum key_id config_key_alone(const char *name);

#define CONFIG_SECTIONS 8
extern const char *const config_sections[CONFIG_SECTIONS];
bool config_is_section(const char *name);

/* ---- alias.c: names that users bring from other programs. Case, '-' and '_' do not matter. ---- */

#define ALIAS_MAX 64
/* Returns the word of CONFIG.yaml for another word ("bfloat16": "bf16"), or the text itself. */
const char *config_synonym(const char *text);
/* Returns the key of another name, also of one that is not accepted and stands near; KEY_COUNT without one. */
enum key_id config_alias_key(const char *name);
/* Reads another name of a key of `section` (NULL: of any): *id becomes the key, KEY_COUNT without one, and *value
 * (NULL: no text) the key's own word for it where the name has values of its own. ST_INPUT: it has, and not this one.
 */
enum status config_alias_read(const char *section, const char *name, const char **value, enum key_id *id,
	struct error *e);
/* config_key_typed (step/config/config.h) with the key's id in place of its path. */
enum status config_key_read(const char *typed, const char **value, enum key_id *id, struct error *e);
/* Reads a text of --set, KEY=VALUE: *value points into it, or is the key's own word. ST_INPUT: it is none, or of an
 * unknown key. */
enum status config_set_read(const char *text, const char **value, enum key_id *id, struct error *e);
/* Writes the other names of a key, with their own values: "zero_stage, zero (0: ddp, 1: zero1); hsdp (true: hsdp)".
 * Returns buf. */
#define ALIAS_NAMES_MAX CONFIG_NAMES_MAX
char *config_alias_names(enum key_id id, char buf[ALIAS_NAMES_MAX]);

/* Returns what a message says of a key that `section` does not have, as suggest() does (base/suggest.h): the keys of
 * other sections with this name, or that it is another name of, else the nearest key, else the section's own. Keys of
 * other sections are named as "section.key", those of `section` too if `full`. */
struct hint config_key_hint(const char *section, const char *name, bool full);
/* The same for a name at the top of a file: the keys with this name, else the nearest section. */
struct hint config_section_hint(const char *name);

/* ---- value.c ---- */

/* Reads `n` into c. On failure `inner` says what is wrong with the value, without position and key. */
enum status key_read(const struct config_key *k, const struct ynode *n, struct config *c, struct error *inner);
/* Sets the table's default; zero bytes if it has none. */
void key_set_default(const struct config_key *k, struct config *c);
/* Returns whether both have the same value. */
bool key_equal(const struct config_key *k, const struct config *a, const struct config *b);
/* Writes the value as a text of CONFIG.yaml; returns buf. */
#define KEY_VALUE_MAX 320
char *key_value_text(const struct config_key *k, const struct config *c, char buf[KEY_VALUE_MAX]);
/* Returns the value as JSON: a new reference, or NULL when out of memory. */
json_t *key_value_json(const struct config_key *k, const struct config *c);
/* Finds the word that a user means: case, '-' and '_' do not matter, and synonyms are known. NULL if the key has no
 * such word, or no words. */
const struct word *key_word_find(const struct config_key *k, const char *text);
/* Return the word of a value, "?" without one, and write all words that the program models: "none, selective, full". */
const char *key_word(const struct config_key *k, int value);
char *key_words(const struct config_key *k, char buf[KEY_VALUE_MAX]);
/* Writes what a key takes: "true, false", its words, "from 1", "0 to 4", "auto, a size"; returns buf. */
char *key_values(const struct config_key *k, char buf[KEY_VALUE_MAX]);
bool key_value_modelled(const struct config_key *k, const struct config *c);
/* Returns whether an integer or real lies in [low, high], for values that did not come through key_read. */
bool key_in_range(const struct config_key *k, const struct config *c);
/* Get and set an integer, real, bool or word as a number: sizes in bytes, words as their enum. */
double key_number(const struct config_key *k, const struct config *c);
void key_set_number(const struct config_key *k, struct config *c, double value);

/* ---- slow.c: the KEY_RANKS of these, and the check against the plan's ranks ---- */

enum status slow_ranks_read(const struct config_key *k, const struct ynode *n, struct config *c, struct error *inner);
void slow_ranks_text(const struct config *c, char buf[KEY_VALUE_MAX]);
json_t *slow_ranks_json(const struct config *c);
enum status slow_ranks_check(const struct config *c, int64_t ranks, struct error *e);

/* ---- set.c: KEY_SET ---- */

enum status set_read(const struct config_key *k, const struct ynode *n, struct config *c, struct error *inner);
void set_text(const struct config_key *k, const struct config *c, char buf[KEY_VALUE_MAX]);
json_t *set_json(const struct config_key *k, const struct config *c);

/* ---- error.c ---- */

/* Returns whether the user gave the key, in the file or by --set. */
bool config_is_given(const struct config *c, enum key_id id);
/* Records "<source>: section.key: <message>" (ST_INPUT). The source is "file:line:col" or "--set KEY=VALUE"; a value of
 * a preset, a stack or the table is marked as such. */
enum status config_error(const struct config *c, enum key_id id, struct error *e, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* The same, with the position of the key instead of its value. */
enum status config_error_key(const struct config *c, enum key_id id, struct error *e, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* Write what works on both sides of a value: "2, 4", or one of them where the other is < 0. Those of divisors and
 * multiples find the divisors of n, or the positive multiples of `unit`, around `value`. Return buf. */
#define NEAREST_MAX 64
char *nearest_two(int64_t below, int64_t above, char buf[NEAREST_MAX]);
char *nearest_divisors(int64_t n, int64_t value, char buf[NEAREST_MAX]);
char *nearest_multiples(int64_t unit, int64_t value, char buf[NEAREST_MAX]);

/* ---- derive.c, check.c, check_model.c, check_input.c, check_encoder.c ---- */

/* Fills the keys that follow from others. Idempotent. */
void config_derive(struct config *c);
/* ssm_chunk of gated delta rules: that of flash-linear-attention (fla/ops/gated_delta_rule/chunk.py). */
#define DELTA_CHUNK 64
/* Returns ssm_heads where it is not given. */
int64_t config_default_ssm_heads(const struct model *m);
/* Returns whether a stack may store or gather the blocks' matrices in the format of products, fp8 or mxfp8, where the
 * config does not say: where check_narrow (step/config/check.c) refuses neither. */
bool config_may_be_narrow(const struct config *c);
/* Checks everything that does not depend on the number of ranks. */
enum status config_check(const struct config *c, struct error *e);
enum status config_check_model(const struct config *c, struct error *e);
/* The same of what the model reads and of its heads: check_input.c. */
enum status config_check_input(const struct config *c, struct error *e);
/* The same of an encoder before a decoder, and of biases by distance: check_encoder.c. */
enum status config_check_encoder(const struct config *c, struct error *e);
/* Returns whether a key is given another value than it has in a model without that part. */
bool config_is_changed(const struct config *c, enum key_id id);
/* Refuses the first of the keys that has another value than its default, as not modelled yet with the part. */
enum status config_check_defaults(const struct config *c, const enum key_id *ids, size_t n, const char *part,
	struct error *e);

/* Returns the key that gave the global batch. */
enum key_id config_batch_key(const struct config *c);

/* ---- experts.c ---- */

/* Checks experts against the plan of ranks; parallel.data and parallel.shard must be known. */
enum status config_check_experts(const struct config *c, struct error *e);
/* Returns the least shard, from this one on, that divides the replicas and whose ranks hold whole groups of experts;
 * parallel.data where none does. */
int64_t config_expert_shard(const struct config *c, int64_t shard);

/* ---- config.c ---- */

/* Applies every key of a mapping of `section`. origin NULL: the mapping is the config file's own. */
enum status config_apply(struct config *c, const char *section, const struct ynode *map,
	const struct key_origin *origin, struct error *e);

/* ---- catalogue.c: configs/models and configs/stacks. `where` stands before a message about the name itself.
 * ---- */

enum status config_apply_preset(struct config *c, const char *name, const struct key_origin *origin, const char *where,
	struct error *e);
/* Returns whether train.stack is a file of somebody's own: it has a slash, or ends in .yaml or .yml. */
bool config_stack_is_file(const char *name);
/* Finds the file of a stack by its own name or by one of its list `names` (step/framework.h); a file of somebody's own
 * keeps its name. ST_INPUT: unknown. */
enum status config_stack_of(const char *name, const char *where, char stack[STACK_NAME], struct error *e);
enum status config_apply_stack(struct config *c, const char *name, const struct key_origin *origin, const char *where,
	struct error *e);

#endif
