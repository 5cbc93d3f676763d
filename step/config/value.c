/* One value of the key table: read from YAML, compared, written as text and as JSON. */
#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/suggest.h"
#include "step/config/keys.h"

#define WORDS_MAX 16

static void *place(const struct config_key *k, struct config *c) { return (char *)c + k->offset; }

static const void *place_const(const struct config_key *k, const struct config *c)
{
	return (const char *)c + k->offset;
}

/* ---- numbers: integers, reals, bools and words ---- */

double key_number(const struct config_key *k, const struct config *c)
{
	const void *at = place_const(k, c);
	switch (k->type) {
	case KEY_INT:
	case KEY_NUMBER_WORD: return (double)*(const int64_t *)at;
	case KEY_BYTES: return (double)*(const uint64_t *)at;
	case KEY_BOOL: return *(const bool *)at;
	case KEY_WORD:
	case KEY_SET: return *(const int *)at;
	default: return *(const double *)at;
	}
}

void key_set_number(const struct config_key *k, struct config *c, double value)
{
	void *at = place(k, c);
	switch (k->type) {
	case KEY_INT:
	case KEY_NUMBER_WORD: *(int64_t *)at = (int64_t)value; break;
	case KEY_BYTES: *(uint64_t *)at = (uint64_t)value; break;
	case KEY_BOOL: *(bool *)at = value != 0; break;
	case KEY_WORD:
	case KEY_SET: *(int *)at = (int)value; break;
	default: *(double *)at = value; break;
	}
}

static bool is_auto(const struct config_key *k, const struct config *c)
{
	return k->takes_auto && key_number(k, c) == AUTO;
}

/* Returns the bytes of the unit in which a number is written. */
static double scale(const struct config_key *k) { return k->type == KEY_MIB ? MIB_B : 1; }

/* Appends to a text of `size` bytes; what does not fit is left out. */
static void append(char *buf, size_t size, const char *text)
{
	size_t len = strlen(buf);
	snprintf(buf + len, size - len, "%s", text);
}

/* ---- reading ---- */

static enum status read_int(const struct config_key *k, const struct ynode *n, struct config *c, struct error *inner)
{
	return ynode_int(n, (int64_t)k->low, (int64_t)k->high, place(k, c), inner);
}

static enum status read_real(const struct config_key *k, const struct ynode *n, struct config *c, struct error *inner)
{
	return ynode_quantity(n, k->unit, k->low, k->high, place(k, c), inner);
}

static enum status read_mib(const struct config_key *k, const struct ynode *n, struct config *c, struct error *inner)
{
	double v;
	const bool plain = n->kind == Y_SCALAR && !n->quoted && quantity_parse(n->text, UNIT_NONE, &v, NULL) == ST_OK;
	enum status st = ynode_quantity(n, plain ? UNIT_NONE : UNIT_BYTE, -INFINITY, INFINITY, &v, inner);
	if (st)
		return st;
	v *= plain ? MIB_B : 1;
	if (v < k->low * MIB_B || v > k->high * MIB_B)
		return error_set(inner, ST_INPUT, "expected a size from %g to %g MiB, got \"%.60s\"", k->low, k->high,
			n->text);
	key_set_number(k, c, v);
	return ST_OK;
}

static enum status read_bytes(const struct config_key *k, const struct ynode *n, struct config *c, struct error *inner)
{
	double v;
	enum status st = ynode_quantity(n, k->unit, k->low, k->high, &v, inner);
	if (st)
		return st;
	if (v != floor(v))
		return error_set(inner, ST_INPUT, "expected a whole number of bytes, got \"%.60s\"", n->text);
	key_set_number(k, c, v);
	return ST_OK;
}

static enum status read_bool(const struct config_key *k, const struct ynode *n, struct config *c, struct error *inner)
{
	return ynode_bool(n, place(k, c), inner);
}

static size_t modelled_words(const struct config_key *k) { return k->n_words - k->n_later; }

/* Lists the words that are modelled, without other words for the same. */
static size_t own_words(const struct config_key *k, const char *words[WORDS_MAX])
{
	size_t n = 0;
	for (size_t i = 0; i < modelled_words(k); i++)
		if (i == 0 || k->words[i].value != k->words[i - 1].value)
			words[n++] = k->words[i].text;
	return n;
}

char *key_words(const struct config_key *k, char buf[KEY_VALUE_MAX])
{
	const char *words[WORDS_MAX];
	const size_t n = own_words(k, words);
	buf[0] = '\0';
	for (size_t i = 0; i < n; i++) {
		append(buf, KEY_VALUE_MAX, i ? ", " : "");
		append(buf, KEY_VALUE_MAX, words[i]);
	}
	return buf;
}

/* A range's end is told up to here; beyond, it only keeps nonsense out. */
#define END_TOLD 4096

char *key_values(const struct config_key *k, char buf[KEY_VALUE_MAX])
{
	char words[KEY_VALUE_MAX];
	snprintf(buf, KEY_VALUE_MAX, "%s", k->takes_auto ? "auto, " : "");
	const size_t at = strlen(buf);
	if (k->values)
		append(buf, KEY_VALUE_MAX, k->values);
	else if (k->n_words > 0)
		append(buf, KEY_VALUE_MAX, key_words(k, words));
	else if (k->high > END_TOLD)
		snprintf(buf + at, KEY_VALUE_MAX - at, "from %g", k->low);
	else
		snprintf(buf + at, KEY_VALUE_MAX - at, "%g to %g", k->low, k->high);
	for (size_t i = modelled_words(k); i < k->n_words; i++) {
		snprintf(words, sizeof words, "; %s (later)", k->words[i].text);
		append(buf, KEY_VALUE_MAX, words);
	}
	return buf;
}

const struct word *key_word_find(const struct config_key *k, const char *text)
{
	const char *const meant[] = {text, config_synonym(text)};
	if (k->type != KEY_WORD && k->type != KEY_NUMBER_WORD && k->type != KEY_SET)
		return NULL;
	for (size_t m = 0; m < COUNT(meant); m++)
		for (size_t i = 0; i < k->n_words; i++)
			if (suggest_same(meant[m], k->words[i].text))
				return &k->words[i];
	return NULL;
}

static enum status read_word(const struct config_key *k, const struct ynode *n, struct config *c, struct error *inner)
{
	const char *text;
	enum status st = ynode_string(n, &text, inner);
	if (st)
		return st;
	const struct word *word = key_word_find(k, text);
	if (word) {
		key_set_number(k, c, word->value);
		return ST_OK;
	}
	const char *known[WORDS_MAX];
	return error_set(inner, ST_INPUT, "unknown value \"%.60s\"%s", text,
		suggest_known(text, known, own_words(k, known)).text);
}

/* Names end up in JSON, on a terminal and in paths. A --set text has not gone through the YAML reader, which refuses
 * such bytes in files. */
static bool is_clean(const char *text)
{
	for (const char *p = text; *p; p++)
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			return false;
	json_t *utf8 = json_string(text);
	json_decref(utf8);
	return utf8 != NULL;
}

static enum status read_text(const struct config_key *k, const struct ynode *n, struct config *c, struct error *inner)
{
	const char *text;
	enum status st = ynode_string(n, &text, inner);
	if (st)
		return st;
	if (strlen(text) >= k->size)
		return error_set(inner, ST_INPUT, "longer than %zu bytes", k->size - 1);
	if (!is_clean(text))
		return error_set(inner, ST_INPUT, "expected a text in UTF-8 without control characters");
	memset(place(k, c), 0, k->size);
	memcpy(place(k, c), text, strlen(text));
	return ST_OK;
}

static enum status read_texts(const struct config_key *k, const struct ynode *n, struct config *c, struct error *inner)
{
	char joined[CONFIG_TEXT] = "";
	if (n->kind != Y_SEQ)
		return read_text(k, n, c, inner);
	for (size_t i = 0; i < n->n; i++) {
		const char *text;
		const size_t used = strlen(joined);
		struct ynode item = *n->child[i];
		item.file = "";
		if (ynode_string(&item, &text, inner))
			return ST_INPUT;
		if ((size_t)snprintf(joined + used, sizeof joined - used, "%s%s", i ? ", " : "", text) >=
			sizeof joined - used)
			return error_set(inner, ST_INPUT, "longer than %zu bytes together", sizeof joined - 1);
	}
	const struct ynode all = {.kind = Y_SCALAR, .file = "", .text = joined};
	return read_text(k, &all, c, inner);
}

static enum status read_order(const struct config_key *k, const struct ynode *n, struct config *c, struct error *inner)
{
	const char *text;
	enum status st = ynode_string(n, &text, inner);
	if (st)
		return st;
	unsigned seen = 0;
	size_t at = 0;
	for (const char *p = text; at < k->n_words; p += 3) {
		size_t w = 0;
		while (w < k->n_words && strncasecmp(p, k->words[w].text, 2) != 0)
			w++;
		bool last = at + 1 == k->n_words;
		if (w == k->n_words || (seen & 1u << w) || p[2] != (last ? '\0' : '-'))
			break;
		seen |= 1u << w;
		c->parallel.order[at++] = (enum mesh_dim)k->words[w].value;
	}
	if (at == k->n_words)
		return ST_OK;
	return error_set(inner, ST_INPUT, "expected each of tp, cp, ep, dp, pp once, such as %s, got \"%.60s\"",
		k->default_, text);
}

static enum status read_stages(const struct config_key *k, const struct ynode *n, struct config *c, struct error *inner)
{
	if (n->kind != Y_SEQ)
		return error_set(inner, ST_INPUT, "expected a list such as [8, 8]%s%.60s",
			n->kind == Y_SCALAR ? ", got " : ", got a mapping", n->kind == Y_SCALAR ? n->text : "");
	if (n->n > CONFIG_MAX_STAGES)
		return error_set(inner, ST_INPUT, "%zu stages are more than %d", n->n, CONFIG_MAX_STAGES);
	memset(c->parallel.layers_per_stage, 0, sizeof c->parallel.layers_per_stage);
	for (size_t i = 0; i < n->n; i++) {
		struct ynode item = *n->child[i];
		item.file = "";
		struct error number = {0};
		if (ynode_int(&item, (int64_t)k->low, (int64_t)k->high, &c->parallel.layers_per_stage[i], &number))
			return error_set(inner, ST_INPUT, "stage %zu: expected an integer from %.0f to %.0f", i + 1,
				k->low, k->high);
	}
	c->parallel.n_layers_per_stage = (int64_t)n->n;
	return ST_OK;
}

enum status key_read(const struct config_key *k, const struct ynode *n, struct config *c, struct error *inner)
{
	typedef enum status reader(const struct config_key *, const struct ynode *, struct config *, struct error *);
	static reader *const readers[] = {
		[KEY_INT] = read_int,
		[KEY_REAL] = read_real,
		[KEY_MIB] = read_mib,
		[KEY_BYTES] = read_bytes,
		[KEY_BOOL] = read_bool,
		[KEY_WORD] = read_word,
		[KEY_NUMBER_WORD] = read_word,
		[KEY_TEXT] = read_text,
		[KEY_TEXTS] = read_texts,
		[KEY_SET] = set_read,
		[KEY_ORDER] = read_order,
		[KEY_STAGES] = read_stages,
		[KEY_RANKS] = slow_ranks_read,
	};
	static_assert(COUNT(readers) == KEY_TYPE_COUNT, "a reader for each type");

	if (k->takes_auto && n->kind == Y_SCALAR && suggest_same(n->text, "auto")) {
		key_set_number(k, c, AUTO);
		return ST_OK;
	}
	/* The readers of base/yaml.h put position and key in front; the caller knows better what to put there. */
	struct ynode plain = *n;
	plain.file = "";
	plain.key = NULL;
	struct error raw = {0};
	enum status st = readers[k->type](k, &plain, c, &raw);
	if (!st)
		return ST_OK;
	char position[48];
	int len = snprintf(position, sizeof position, ":%d:%d: ", n->line, n->col);
	const char *text = raw.text;
	if (strncmp(text, position, (size_t)len) == 0)
		text += len;
	return error_set(inner, st, "%s%s", text, k->takes_auto ? "; auto is accepted too" : "");
}

void key_set_default(const struct config_key *k, struct config *c)
{
	memset(place(k, c), 0, k->size);
	if (!k->default_ || !*k->default_)
		return;
	enum ykind kind = strcmp(k->default_, "[]") == 0 ? Y_SEQ : strcmp(k->default_, "{}") == 0 ? Y_MAP : Y_SCALAR;
	const struct ynode n = {.kind = kind, .file = "default", .text = kind == Y_SCALAR ? k->default_ : NULL};
	key_read(k, &n, c, NULL);
}

/* ---- comparing ---- */

/* Lists are zero beyond their end. */
bool key_equal(const struct config_key *k, const struct config *a, const struct config *b)
{
	if (k->type == KEY_REAL || k->type == KEY_MIB)
		return key_number(k, a) == key_number(k, b);
	return memcmp(place_const(k, a), place_const(k, b), k->size) == 0;
}

static size_t word_index(const struct config_key *k, int value)
{
	size_t i = 0;
	while (i < k->n_words && k->words[i].value != value)
		i++;
	return i;
}

const char *key_word(const struct config_key *k, int value)
{
	size_t i = word_index(k, value);
	return i < k->n_words ? k->words[i].text : "?";
}

bool key_value_modelled(const struct config_key *k, const struct config *c)
{
	return k->n_later == 0 || word_index(k, (int)key_number(k, c)) < modelled_words(k);
}

bool key_in_range(const struct config_key *k, const struct config *c)
{
	if ((k->type != KEY_INT && k->type != KEY_REAL && k->type != KEY_MIB) || is_auto(k, c))
		return true;
	const double v = key_number(k, c);
	return v >= k->low * scale(k) && v <= k->high * scale(k);
}

/* ---- writing ---- */

static void order_text(const struct config_key *k, const struct config *c, char buf[KEY_VALUE_MAX])
{
	buf[0] = '\0';
	for (int i = 0; i < DIM_COUNT; i++) {
		append(buf, KEY_VALUE_MAX, i ? "-" : "");
		append(buf, KEY_VALUE_MAX, key_word(k, (int)c->parallel.order[i]));
	}
}

static void stages_text(const struct config *c, char buf[KEY_VALUE_MAX])
{
	snprintf(buf, KEY_VALUE_MAX, "[");
	for (int64_t i = 0; i < c->parallel.n_layers_per_stage; i++) {
		char one[32];
		snprintf(one, sizeof one, "%s%" PRId64, i ? ", " : "", c->parallel.layers_per_stage[i]);
		append(buf, KEY_VALUE_MAX, one);
	}
	append(buf, KEY_VALUE_MAX, "]");
}

char *key_value_text(const struct config_key *k, const struct config *c, char buf[KEY_VALUE_MAX])
{
	const char *text = NULL;
	switch (k->type) {
	case KEY_INT:
	case KEY_BYTES:
	case KEY_REAL:
	case KEY_MIB:
		if (is_auto(k, c))
			text = "auto";
		else
			snprintf(buf, KEY_VALUE_MAX, k->type == KEY_INT || k->type == KEY_BYTES ? "%.0f" : "%.15g",
				key_number(k, c) / scale(k));
		break;
	case KEY_BOOL: text = key_number(k, c) != 0 ? "true" : "false"; break;
	case KEY_WORD:
	case KEY_NUMBER_WORD: text = key_word(k, (int)key_number(k, c)); break;
	case KEY_TEXT:
	case KEY_TEXTS: text = place_const(k, c); break;
	case KEY_SET:
		if (is_auto(k, c))
			text = "auto";
		else
			set_text(k, c, buf);
		break;
	case KEY_ORDER: order_text(k, c, buf); break;
	case KEY_STAGES: stages_text(c, buf); break;
	case KEY_RANKS: slow_ranks_text(c, buf); break;
	case KEY_TYPE_COUNT: break;
	}
	if (text)
		snprintf(buf, KEY_VALUE_MAX, "%s", text);
	return buf;
}

static json_t *stages_json(const struct config *c)
{
	json_t *list = json_array();
	for (int64_t i = 0; list && i < c->parallel.n_layers_per_stage; i++)
		if (json_array_append_new(list, json_integer(c->parallel.layers_per_stage[i]))) {
			json_decref(list);
			list = NULL;
		}
	return list;
}

json_t *key_value_json(const struct config_key *k, const struct config *c)
{
	char text[KEY_VALUE_MAX];
	if (is_auto(k, c))
		return json_string("auto");
	switch (k->type) {
	case KEY_INT:
	case KEY_BYTES:
	case KEY_NUMBER_WORD: return json_integer((json_int_t)key_number(k, c));
	case KEY_REAL:
	case KEY_MIB: return json_real(key_number(k, c) / scale(k));
	case KEY_BOOL: return json_boolean(key_number(k, c) != 0);
	case KEY_SET: return set_json(k, c);
	case KEY_STAGES: return stages_json(c);
	case KEY_RANKS: return slow_ranks_json(c);
	default: return json_string(key_value_text(k, c, text));
	}
}

/* ---- the whole config ---- */

/* Leaves out names of files that were not given, and a number of GPUs that the system decides. A key that the strategy
 * does not use shows its default, which the reader accepts. */
static bool is_shown(const struct config *c, enum key_id id)
{
	switch (id) {
	case KEY_model_preset:
	case KEY_model_hf_config: return config_is_given(c, id);
	case KEY_cluster_profile: return c->cluster.profile[0] != '\0';
	case KEY_cluster_fabric: return c->cluster.fabric[0] != '\0';
	case KEY_cluster_gpus_per_node: return c->cluster.gpus_per_node > 0;
	default: return true;
	}
}

json_t *config_json(const struct config *c)
{
	json_t *root = json_object();
	struct config defaults = {0};
	for (int i = 0; root && i < KEY_COUNT; i++) {
		enum key_id id = (enum key_id)i;
		const struct config_key *k = config_key(id);
		bool used = strategy_has(c->parallel.strategy, k->used_by), good = true;
		json_t *section = json_object_get(root, k->section);
		if (!section)
			good = json_object_set_new(root, k->section, section = json_object()) == 0;
		key_set_default(k, &defaults);
		if (good && is_shown(c, id))
			good = json_object_set_new(section, k->name, key_value_json(k, used ? c : &defaults)) == 0;
		if (!good) {
			json_decref(root);
			return NULL;
		}
	}
	return root;
}
