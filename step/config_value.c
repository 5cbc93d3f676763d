/* One value of the key table: read from YAML, compared, written as text and as JSON. */
#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/suggest.h"
#include "step/config_keys.h"

static void *place(const struct config_key *k, struct config *c) { return (char *)c + k->offset; }

static const void *place_const(const struct config_key *k, const struct config *c)
{
	return (const char *)c + k->offset;
}

static int64_t int_of(const struct config_key *k, const struct config *c)
{
	int64_t v;
	memcpy(&v, place_const(k, c), sizeof v);
	return v;
}

static double real_of(const struct config_key *k, const struct config *c)
{
	double v;
	memcpy(&v, place_const(k, c), sizeof v);
	return v;
}

static int word_value(const struct config_key *k, const struct config *c)
{
	int v;
	memcpy(&v, place_const(k, c), sizeof v);
	return v;
}

/* Appends to a text of `size` bytes; what does not fit is left out. */
static void append(char *buf, size_t size, const char *text)
{
	size_t len = strlen(buf);
	snprintf(buf + len, size - len, "%s", text);
}

/* ---- reading ---- */

static bool is_auto(const struct ynode *n) { return n->kind == Y_SCALAR && strcmp(n->text, "auto") == 0; }

static enum status read_int(const struct config_key *k, const struct ynode *n, struct config *c, struct error *inner)
{
	int64_t v;
	enum status st = ynode_int(n, (int64_t)k->low, (int64_t)k->high, &v, inner);
	if (!st)
		memcpy(place(k, c), &v, sizeof v);
	return st;
}

/* Complains about a number, and names the word that the key also takes. */
static enum status or_auto(enum status st, const struct error *number, struct error *inner)
{
	return st ? error_set(inner, st, "%s; auto is accepted too", number->text) : ST_OK;
}

static enum status read_int_auto(const struct config_key *k, const struct ynode *n, struct config *c,
	struct error *inner)
{
	if (is_auto(n)) {
		int64_t v = AUTO;
		memcpy(place(k, c), &v, sizeof v);
		return ST_OK;
	}
	struct error number = {0};
	return or_auto(read_int(k, n, c, &number), &number, inner);
}

static enum status read_real(const struct config_key *k, const struct ynode *n, struct config *c, struct error *inner)
{
	double v;
	enum status st = ynode_quantity(n, k->unit, k->low, k->high, &v, inner);
	if (!st)
		memcpy(place(k, c), &v, sizeof v);
	return st;
}

static enum status read_mib(const struct config_key *k, const struct ynode *n, struct config *c, struct error *inner)
{
	double v;
	enum status st;
	if (n->kind == Y_SCALAR && !n->quoted && quantity_parse(n->text, UNIT_NONE, &v, NULL) == ST_OK) {
		st = ynode_quantity(n, UNIT_NONE, k->low, k->high, &v, inner);
		v *= MIB_B;
	} else {
		st = ynode_quantity(n, UNIT_BYTE, k->low * MIB_B, k->high * MIB_B, &v, inner);
	}
	if (!st)
		memcpy(place(k, c), &v, sizeof v);
	return st;
}

static enum status read_double_auto(const struct config_key *k, const struct ynode *n, struct config *c,
	struct error *inner)
{
	if (is_auto(n)) {
		double v = AUTO;
		memcpy(place(k, c), &v, sizeof v);
		return ST_OK;
	}
	struct error number = {0};
	return or_auto((k->type == KEY_MIB_AUTO ? read_mib : read_real)(k, n, c, &number), &number, inner);
}

static enum status read_bytes(const struct config_key *k, const struct ynode *n, struct config *c, struct error *inner)
{
	double v;
	enum status st = ynode_quantity(n, k->unit, k->low, k->high, &v, inner);
	if (st)
		return st;
	if (v != floor(v))
		return error_set(inner, ST_INPUT, "expected a whole number of bytes, got \"%.60s\"", n->text);
	uint64_t bytes = (uint64_t)v;
	memcpy(place(k, c), &bytes, sizeof bytes);
	return ST_OK;
}

static enum status read_bool(const struct config_key *k, const struct ynode *n, struct config *c, struct error *inner)
{
	bool v;
	enum status st = ynode_bool(n, &v, inner);
	if (!st)
		memcpy(place(k, c), &v, sizeof v);
	return st;
}

static void list_words(const struct config_key *k, char *buf, size_t size)
{
	buf[0] = '\0';
	for (size_t i = 0; i < k->n_words; i++) {
		bool other_word = i > 0 && k->words[i].value == k->words[i - 1].value;
		if (!k->words[i].modelled || other_word)
			continue;
		append(buf, size, buf[0] ? ", " : "");
		append(buf, size, k->words[i].text);
	}
}

static enum status read_word(const struct config_key *k, const struct ynode *n, struct config *c, struct error *inner)
{
	const char *text;
	enum status st = ynode_string(n, &text, inner);
	if (st)
		return st;
	const char *candidates[16];
	size_t n_candidates = 0;
	for (size_t i = 0; i < k->n_words; i++) {
		if (k->words[i].modelled)
			candidates[n_candidates++] = k->words[i].text;
		if (strcmp(text, k->words[i].text) != 0)
			continue;
		if (k->type == KEY_WORD) {
			memcpy(place(k, c), &k->words[i].value, sizeof(int));
		} else {
			int64_t v = k->words[i].value;
			memcpy(place(k, c), &v, sizeof v);
		}
		return ST_OK;
	}
	char all[KEY_VALUE_MAX];
	list_words(k, all, sizeof all);
	return error_set(inner, ST_INPUT, "unknown value \"%.60s\" (nearest: %s; known: %s)", text,
		suggest_nearest(text, candidates, n_candidates), all);
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
		while (w < k->n_words && strncmp(p, k->words[w].text, 2) != 0)
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
		[KEY_INT_AUTO] = read_int_auto,
		[KEY_REAL] = read_real,
		[KEY_REAL_AUTO] = read_double_auto,
		[KEY_MIB] = read_mib,
		[KEY_MIB_AUTO] = read_double_auto,
		[KEY_BYTES] = read_bytes,
		[KEY_BOOL] = read_bool,
		[KEY_WORD] = read_word,
		[KEY_NUMBER_WORD] = read_word,
		[KEY_TEXT] = read_text,
		[KEY_ORDER] = read_order,
		[KEY_STAGES] = read_stages,
		[KEY_RANKS] = slow_ranks_read,
	};
	static_assert(COUNT(readers) == KEY_TYPE_COUNT, "a reader for each type");

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
	return error_set(inner, st, "%s", text);
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

bool key_equal(const struct config_key *k, const struct config *a, const struct config *b)
{
	switch (k->type) {
	case KEY_REAL:
	case KEY_REAL_AUTO:
	case KEY_MIB:
	case KEY_MIB_AUTO: return real_of(k, a) == real_of(k, b);
	case KEY_STAGES:
		return a->parallel.n_layers_per_stage == b->parallel.n_layers_per_stage &&
		       memcmp(place_const(k, a), place_const(k, b), k->size) == 0;
	case KEY_RANKS:
		return a->cluster.n_slow_ranks == b->cluster.n_slow_ranks &&
		       memcmp(place_const(k, a), place_const(k, b), k->size) == 0;
	case KEY_TEXT: return strcmp(place_const(k, a), place_const(k, b)) == 0;
	default: return memcmp(place_const(k, a), place_const(k, b), k->size) == 0;
	}
}

bool key_value_modelled(const struct config_key *k, const struct config *c)
{
	if (k->type == KEY_WORD || k->type == KEY_NUMBER_WORD) {
		int64_t v = k->type == KEY_WORD ? word_value(k, c) : int_of(k, c);
		for (size_t i = 0; i < k->n_words; i++)
			if (k->words[i].value == v)
				return k->words[i].modelled;
		return false;
	}
	if (k->modelled)
		return true;
	struct config defaults = {0};
	key_set_default(k, &defaults);
	return key_equal(k, c, &defaults);
}

char *key_accepted(const struct config_key *k, char buf[KEY_VALUE_MAX])
{
	if (k->type == KEY_WORD || k->type == KEY_NUMBER_WORD)
		list_words(k, buf, KEY_VALUE_MAX);
	else
		snprintf(buf, KEY_VALUE_MAX, "%s", k->default_);
	return buf;
}

bool key_in_range(const struct config_key *k, const struct config *c)
{
	switch (k->type) {
	case KEY_INT: return (double)int_of(k, c) >= k->low && (double)int_of(k, c) <= k->high;
	case KEY_INT_AUTO:
		return int_of(k, c) == AUTO || ((double)int_of(k, c) >= k->low && (double)int_of(k, c) <= k->high);
	case KEY_REAL_AUTO: return real_of(k, c) == AUTO || (real_of(k, c) >= k->low && real_of(k, c) <= k->high);
	case KEY_REAL: return real_of(k, c) >= k->low && real_of(k, c) <= k->high;
	case KEY_MIB: return real_of(k, c) >= k->low * MIB_B && real_of(k, c) <= k->high * MIB_B;
	default: return true;
	}
}

/* ---- writing ---- */

static double written_real(const struct config_key *k, const struct config *c)
{
	const bool in_mib = k->type == KEY_MIB || k->type == KEY_MIB_AUTO;
	return in_mib ? real_of(k, c) / MIB_B : real_of(k, c);
}

static const char *word_text(const struct config_key *k, int64_t value)
{
	for (size_t i = 0; i < k->n_words; i++)
		if (k->words[i].value == value)
			return k->words[i].text;
	return "?";
}

static void order_text(const struct config_key *k, const struct config *c, char *buf, size_t size)
{
	buf[0] = '\0';
	for (int i = 0; i < DIM_COUNT; i++) {
		append(buf, size, i ? "-" : "");
		append(buf, size, word_text(k, (int64_t)c->parallel.order[i]));
	}
}

static void stages_text(const struct config *c, char *buf, size_t size)
{
	snprintf(buf, size, "[");
	for (int64_t i = 0; i < c->parallel.n_layers_per_stage; i++) {
		char one[32];
		snprintf(one, sizeof one, "%s%" PRId64, i ? ", " : "", c->parallel.layers_per_stage[i]);
		append(buf, size, one);
	}
	append(buf, size, "]");
}

char *key_value_text(const struct config_key *k, const struct config *c, char buf[KEY_VALUE_MAX])
{
	switch (k->type) {
	case KEY_INT:
	case KEY_INT_AUTO:
		if (k->type == KEY_INT_AUTO && int_of(k, c) == AUTO)
			snprintf(buf, KEY_VALUE_MAX, "auto");
		else
			snprintf(buf, KEY_VALUE_MAX, "%" PRId64, int_of(k, c));
		break;
	case KEY_REAL:
	case KEY_REAL_AUTO:
	case KEY_MIB:
	case KEY_MIB_AUTO:
		if ((k->type == KEY_MIB_AUTO || k->type == KEY_REAL_AUTO) && real_of(k, c) < 0)
			snprintf(buf, KEY_VALUE_MAX, "auto");
		else
			snprintf(buf, KEY_VALUE_MAX, "%.12g", written_real(k, c));
		break;
	case KEY_BYTES: {
		uint64_t v;
		memcpy(&v, place_const(k, c), sizeof v);
		snprintf(buf, KEY_VALUE_MAX, "%" PRIu64, v);
		break;
	}
	case KEY_BOOL: {
		bool v;
		memcpy(&v, place_const(k, c), sizeof v);
		snprintf(buf, KEY_VALUE_MAX, "%s", v ? "true" : "false");
		break;
	}
	case KEY_WORD: snprintf(buf, KEY_VALUE_MAX, "%s", word_text(k, word_value(k, c))); break;
	case KEY_NUMBER_WORD: snprintf(buf, KEY_VALUE_MAX, "%s", word_text(k, int_of(k, c))); break;
	case KEY_TEXT: snprintf(buf, KEY_VALUE_MAX, "%s", (const char *)place_const(k, c)); break;
	case KEY_ORDER: order_text(k, c, buf, KEY_VALUE_MAX); break;
	case KEY_STAGES: stages_text(c, buf, KEY_VALUE_MAX); break;
	case KEY_RANKS: slow_ranks_text(c, buf); break;
	case KEY_TYPE_COUNT: break;
	}
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
	switch (k->type) {
	case KEY_INT:
	case KEY_NUMBER_WORD: return json_integer(int_of(k, c));
	case KEY_INT_AUTO: return int_of(k, c) == AUTO ? json_string("auto") : json_integer(int_of(k, c));
	case KEY_REAL:
	case KEY_MIB: return json_real(written_real(k, c));
	case KEY_REAL_AUTO:
	case KEY_MIB_AUTO: return real_of(k, c) < 0 ? json_string("auto") : json_real(written_real(k, c));
	case KEY_BYTES: {
		uint64_t v;
		memcpy(&v, place_const(k, c), sizeof v);
		return json_integer((json_int_t)v);
	}
	case KEY_BOOL: {
		bool v;
		memcpy(&v, place_const(k, c), sizeof v);
		return json_boolean(v);
	}
	case KEY_STAGES: return stages_json(c);
	case KEY_RANKS: return slow_ranks_json(c);
	default: return json_string(key_value_text(k, c, text));
	}
}
