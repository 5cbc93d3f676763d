/* The rows of a framework's table, applied to the keys of a text. */
#include <fnmatch.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/array.h"
#include "base/paths.h"
#include "base/utf8.h"
#include "step/import/rows.h"

/* ---- values ---- */

/* Returns what a key of CONFIG.yaml is so far; NULL where the text leaves it to a preset, or to another key. */
static const char *ours(const struct import *im, enum key_id id)
{
	const struct config_key *k = config_key(id);
	if (import_has(im, id))
		return im->key[id].value;
	return strcmp(k->section, "model") == 0 ? NULL : k->default_;
}

/* Returns whether `value` (NULL: unknown) is the wanted one; "!a": any other. */
static bool is_wanted(const char *wanted, const char *value)
{
	const bool other = *wanted == '!';
	return value && (fnmatch(wanted + other, value, FNM_CASEFOLD) == 0) != other;
}

static bool holds(const struct import *im, const struct import_row *r)
{
	for (size_t i = 0; r->when && i < r->when->n; i++) {
		const enum key_id id = import_key_of(r->when->child[i]->key);
		if (id == KEY_COUNT || !is_wanted(r->when->child[i]->text, ours(im, id)))
			return false;
	}
	for (size_t i = 0; r->given && i < r->given->n; i++) {
		const struct leaf *l = foreign_find(&im->foreign, r->given->child[i]->key);
		if (!is_wanted(r->given->child[i]->text, l ? l->value : ""))
			return false;
	}
	return true;
}

static bool number_of(const char *text, double *out)
{
	char *rest = NULL;
	*out = text ? strtod(text, &rest) : 0;
	return text && rest != text && !*rest;
}

/* Reads a number, or the one that a key of CONFIG.yaml has so far; false: it is not known. */
static bool operand(const struct import *im, const char *text, double *out)
{
	const enum key_id id = import_key_of(text);
	return number_of(id == KEY_COUNT ? text : ours(im, id), out);
}

/* Multiplies the row's operands; false: one is not known. */
static bool product(const struct import *im, const struct ynode *list, double *out)
{
	*out = 1;
	for (size_t i = 0; list && i < list->n; i++) {
		double value;
		if (!operand(im, list->child[i]->text, &value))
			return false;
		*out *= value;
	}
	return true;
}

/* Adds up numbers and keys of CONFIG.yaml; false: one is not known. */
static bool sum(const struct import *im, const struct ynode *list, double *out)
{
	*out = 0;
	for (size_t i = 0; list && i < list->n; i++) {
		double value;
		if (!operand(im, list->child[i]->text, &value))
			return false;
		*out += value;
	}
	return true;
}

static void write_number(char out[KEY_VALUE_MAX], double value)
{
	snprintf(out, KEY_VALUE_MAX, fabs(value) < 1e15 && value == trunc(value) ? "%.0f" : "%.12g", value);
}

/* Counts the words between commas, as of CUDA_VISIBLE_DEVICES=0,1; 0 without one. */
static int count_words(const char *text)
{
	int n = 0;
	for (const char *p = text; *p; p += strcspn(p, ","), p += *p == ',')
		n += *p != ',';
	return n;
}

enum outcome { GIVES, DROPS, DIFFERS, LACKS, ALONE, UNKNOWN }; /* ALONE: a key that it goes with is not there */

static enum outcome map(const struct import_row *r, const char *text, char out[KEY_VALUE_MAX])
{
	snprintf(out, KEY_VALUE_MAX, "%s", text);
	if (r->hub)
		return hub_value(text, r->to, out) ? GIVES : r->to == KEY_model_preset ? DIFFERS : UNKNOWN;
	if (r->layout)
		return layout_value(text, r->to, out) ? GIVES : DIFFERS;
	if (r->list)
		return list_value(text, r->to, r->all_experts, out) ? GIVES : DIFFERS;
	if (r->count)
		return snprintf(out, KEY_VALUE_MAX, "%d", count_words(text)), count_words(text) ? GIVES : DROPS;
	for (size_t i = 0; r->values && i < r->values->n; i++) {
		const struct ynode *v = r->values->child[i];
		if (fnmatch(v->key, text, FNM_CASEFOLD) != 0)
			continue;
		if (ynode_is_null(v))
			return DROPS;
		const char *to = v->kind == Y_SEQ ? v->child[0]->text : v->text;
		if (strcmp(to, "same") != 0)
			snprintf(out, KEY_VALUE_MAX, "%s", to);
		return GIVES;
	}
	return r->values ? DIFFERS : GIVES;
}

/* Returns whether the text leaves the value to others. */
static bool is_elsewhere(const char *text) { return strchr(text, '$') || strcmp(text, "auto") == 0; }

/* Copies the first number of "[127, 0]" or "(127, 0)". */
static const char *first_number(const char *text, char out[KEY_VALUE_MAX])
{
	const char *start = text + strspn(text, "[( ");
	snprintf(out, KEY_VALUE_MAX, "%.*s", (int)strcspn(start, ",)] "), start);
	return out;
}

static enum outcome convert(const struct import *im, const struct import_row *r, const char *text,
	char out[KEY_VALUE_MAX])
{
	double value, times, over, plus;
	char first[KEY_VALUE_MAX], cut[KEY_VALUE_MAX];
	if (strchr(text, '$'))
		return LACKS;
	if (r->until) {
		snprintf(cut, sizeof cut, "%.*s", (int)strcspn(text, r->until), text);
		text = cut;
	}
	if (r->first)
		text = first_number(text, first);
	if (r->shares)
		return shares_value(text, ours(im, KEY_model_layers), out) ? GIVES : DIFFERS;
	const enum outcome o = map(r, text, out);
	if (o != GIVES || strcmp(out, "auto") == 0)
		return o == GIVES && !config_key(r->to)->takes_auto ? LACKS : o;
	if (!number_of(out, &value))
		return GIVES;
	if (!product(im, r->times, &times) || !product(im, r->over, &over) || !sum(im, r->plus, &plus) || over == 0 ||
		(r->inverse && value == 0))
		return ALONE;
	value = r->inverse ? (times + plus) / over / value : value * times / over + plus;
	write_number(out, r->multiple ? floor(value / (double)r->multiple) * (double)r->multiple : value);
	return GIVES;
}

/* ---- verdicts ---- */

/* A key that one row takes stays taken, whatever other rows say of it. */
void leaf_judge(struct leaf *l, enum verdict v, const char *fmt, ...)
{
	char text[WHY_MAX];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	if (l->verdict == TAKEN && v == TAKEN && !strstr(l->why, text)) {
		const size_t n = strlen(l->why);
		snprintf(l->why + n, sizeof l->why - n, ", %s", text);
	} else if (l->verdict != TAKEN) {
		l->verdict = v;
		snprintf(l->why, sizeof l->why, "%s", text);
	}
}

bool leaf_is_off(const char *text)
{
	static const char *const words[] = {"false", "no", "off", "none", "null", "~", "", "0", "0.0", "[]", "{}",
		"disabled"};
	return suggest_find(text, words, COUNT(words)) < COUNT(words) || strcmp(text, "False") == 0 ||
	       strcmp(text, "None") == 0;
}

void rows_store(struct import *im, enum key_id id, const char *value, const char *remark)
{
	struct import_key *key = &im->key[id];
	const struct config_key *k = config_key(id);
	const struct word *word = key_word_find(k, value); /* "bfloat16" is bf16 */
	const struct ynode n = {.kind = Y_SCALAR, .file = "", .text = value};
	bool on;
	if (k->type == KEY_BOOL && ynode_bool(&n, &on, NULL) == ST_OK)
		value = on ? "true" : "false"; /* and "False" false */
	snprintf(key->value, sizeof key->value, "%s", word ? key_word(k, word->value) : value);
	snprintf(key->remark, sizeof key->remark, "%s", remark);
	utf8_repair(key->remark);
}

/* A step is sized by one of these keys; CONFIG.yaml refuses two. */
static bool sizes_step(enum key_id id)
{
	return id == KEY_train_global_batch || id == KEY_train_tokens_per_step || id == KEY_train_batch_per_gpu;
}

/* Returns another key that sizes the step and that is given (or, with `by_default`, assumed); KEY_COUNT without one. */
static enum key_id rival(const struct import *im, enum key_id id, bool by_default)
{
	for (int i = 0; sizes_step(id) && i < KEY_COUNT; i++)
		if (i != (int)id && sizes_step((enum key_id)i) &&
			(im->key[i].given || (by_default && im->key[i].by_default)))
			return (enum key_id)i;
	return KEY_COUNT;
}

void rows_drop_rivals(struct import *im, enum key_id id)
{
	for (enum key_id other; (other = rival(im, id, true)) != KEY_COUNT;)
		import_drop(im, other);
}

static bool has_preset(const char *name)
{
	char path[PATH_MAX_LEN];
	return path_catalogue("models", name, path, NULL) == ST_OK && access(path, R_OK) == 0;
}

/* Reads a value into a config that is thrown away. */
static enum status try_value(const struct config_key *k, const char *value, struct error *inner)
{
	char text[KEY_VALUE_MAX + 8];
	struct ydoc *doc = NULL;
	struct config *scratch = calloc(1, sizeof *scratch);
	const struct ynode scalar = {.kind = Y_SCALAR, .line = 1, .col = 1, .file = "", .text = value};
	const int len = snprintf(text, sizeof text, "list: %s", value);
	const bool list = k->type == KEY_STAGES;
	enum status st = scratch ? ST_OK : error_nomem(inner, "a config");
	if (!st && list)
		st = ydoc_parse(text, (size_t)len, "", &doc, inner);
	if (!st)
		st = key_read(k, list ? ynode_get(ydoc_root(doc), "list") : &scalar, scratch, inner);
	ydoc_destroy(doc);
	free(scratch);
	return st;
}

/* Lists the keys of CONFIG.yaml that a row reckons with, with their values: ", model.layers 81". */
static void name_operands(const struct import *im, const struct import_row *r, char *out, size_t size)
{
	const struct ynode *const lists[] = {r->times, r->over, r->plus};
	*out = '\0';
	for (size_t k = 0; k < COUNT(lists); k++)
		for (size_t i = 0; lists[k] && i < lists[k]->n; i++) {
			const char *text = lists[k]->child[i]->text;
			const size_t n = strlen(out);
			const enum key_id id = import_key_of(text);
			if (id != KEY_COUNT)
				snprintf(out + n, size - n, "%s%s %.40s", n ? ", " : "", text, ours(im, id));
		}
}

/* Refuses a value in the words of the text: a flag without one, or what a row makes of it. */
static enum status refuse(const struct import *im, const struct import_row *r, const struct leaf *l, const char *value,
	const char *why, struct error *e)
{
	const char *path = config_key(r->to)->path;
	char others[2 * KEY_VALUE_MAX];
	name_operands(im, r, others, sizeof others);
	if (l->node->col == l->node->key_col && strcmp(l->value, "true") == 0)
		return ynode_error(l->node, e, "%s (%s): no value follows it", l->path, path);
	if (*others && strcmp(value, l->value) != 0)
		return ynode_error(l->node, e, "%s (%s): its %.40s with %s gives %s: %s", l->path, path, l->value,
			others, value, why);
	return ynode_error(l->node, e, "%s (%s): %s", l->path, path, why);
}

static enum status give(struct import *im, const struct import_row *r, struct leaf *l, const char *value,
	struct error *e)
{
	const struct config_key *k = config_key(r->to);
	struct import_key *key = &im->key[r->to];
	struct error inner = {0};
	const enum status st = try_value(k, value, &inner);
	if (st == ST_RUN)
		return error_nomem(e, "a config");
	if (r->to == KEY_model_preset && !has_preset(value)) {
		leaf_judge(l, NOT_MODELLED, "`stepsim list models` has no %.60s", value);
		l->unmet = r->to;
		return ST_OK;
	}
	if (st && (k->type == KEY_WORD || k->type == KEY_SET)) {
		leaf_judge(l, NOT_MODELLED, "%s has no \"%.40s\"", k->path, value);
		return ST_OK;
	}
	if (st)
		return refuse(im, r, l, value, inner.text, e);
	const enum key_id other = rival(im, r->to, false), assumed = rival(im, r->to, true);
	if (key->given || other != KEY_COUNT) {
		leaf_judge(l, NO_EFFECT, "%.60s decides %s", im->key[key->given ? r->to : other].remark, k->path);
		return ST_OK;
	}
	if (assumed != KEY_COUNT)
		im->key[assumed].by_default = false;
	key->given = true;
	key->by_default = false;
	rows_store(im, r->to, value, l->path);
	if (!l->absent) /* what it leaves open is said, too, of a key that gives another one */
		leaf_judge(l, TAKEN, "%s", k->path);
	return ST_OK;
}

static void assume(struct import *im, enum key_id id, const char *value, const char *why, const char *of)
{
	char remark[REMARK_MAX];
	if (import_has(im, id) || rival(im, id, true) != KEY_COUNT)
		return;
	snprintf(remark, sizeof remark, "%s%s%s", why, *of ? ": " : "", of);
	rows_store(im, id, value, remark);
	im->key[id].by_default = true;
}

/* ---- rows ---- */

static struct leaf *find_row(const struct import *im, const struct import_row *r)
{
	struct leaf *found = NULL;
	const char *name;
	for (size_t i = 0; !found && (name = import_row_name(r, i)); i++)
		found = foreign_find(&im->foreign, name);
	return found;
}

/* Joins the value of the row's second key, if it has one; false: the text does not have that. */
static bool join(const struct import *im, const struct import_row *r, const struct leaf *l, char out[KEY_VALUE_MAX])
{
	const struct leaf *other = r->with ? foreign_find(&im->foreign, r->with) : NULL;
	snprintf(out, KEY_VALUE_MAX, "%s%s%s", l->value, other ? " " : "", other ? other->value : "");
	return other || !r->with;
}

/* Refuses a value that the framework refuses, where the row lists those that it takes. */
static enum status check_known(const struct import_row *r, const struct leaf *l, struct error *e)
{
	const char *known[16];
	size_t n = 0;
	for (; r->known && n < r->known->n && n < COUNT(known); n++) {
		known[n] = r->known->child[n]->text;
		if (strcasecmp(known[n], l->value) == 0)
			return ST_OK;
	}
	if (n == 0 || is_elsewhere(l->value))
		return ST_OK;
	return ynode_error(l->node, e, "%s: unknown value \"%.60s\"%s", l->path, l->value,
		suggest_known(l->value, known, n).text);
}

/* Records that the text leaves a key of CONFIG.yaml open. */
static void lack(struct leaf *l, enum key_id to, bool alone)
{
	if (l->verdict != LEFT)
		return;
	leaf_judge(l, NOT_MODELLED, "%s is not in this file (--set %s)", alone ? "what it goes with" : "the value",
		config_key(to)->path);
	l->absent = true;
	l->alone = alone;
	l->unmet = to;
}

static enum status take(struct import *im, const struct import_row *r, struct leaf *l, struct error *e)
{
	char text[KEY_VALUE_MAX], value[KEY_VALUE_MAX];
	if (!join(im, r, l, text))
		return ST_OK;
	enum status st = check_known(r, l, e);
	if (st)
		return st;
	switch (convert(im, r, text, value)) {
	case GIVES:
		st = give(im, r, l, value, e);
		if (!st && r->layout && l->verdict == TAKEN && layout_moves(text))
			leaf_judge(l, TAKEN, "with its blocks of multi-token prediction beside the head");
		if (!st && r->says && l->verdict == TAKEN)
			leaf_judge(l, TAKEN, "%s", r->says);
		break;
	case DROPS:
		if (l->verdict != NOT_MODELLED || l->unmet == r->to)
			leaf_judge(l, NO_EFFECT, "as without it");
		break;
	case DIFFERS:
		if (l->verdict == LEFT && !leaf_is_off(text)) {
			leaf_judge(l, NOT_MODELLED, "%s has no \"%.40s\"", config_key(r->to)->path, text);
			l->unmet = r->to;
		} else if (l->verdict == LEFT)
			leaf_judge(l, NO_EFFECT, "off");
		break;
	case LACKS: lack(l, r->to, false); break;
	case ALONE: lack(l, r->to, true); break;
	case UNKNOWN: break;
	}
	if (!st && r->with && l->verdict != LEFT) {
		struct leaf *second = foreign_find(&im->foreign, r->with);
		leaf_judge(second, l->verdict, "%s", l->verdict == TAKEN ? config_key(r->to)->path : l->why);
		second->unmet = l->unmet;
	}
	return st;
}

enum status rows_apply(struct import *im, struct error *e)
{
	const struct import_table *t = &im->table;
	char value[KEY_VALUE_MAX];
	for (size_t i = 0; i < t->rows.n; i++) {
		const struct import_row *r = &t->rows.at[i];
		struct leaf *l = find_row(im, r);
		if (r->no_import || !holds(im, r))
			continue;
		enum status st = l ? take(im, r, l, e) : ST_OK;
		if (st)
			return st;
		if ((!l || strcmp(l->value, "auto") == 0) && r->default_ && convert(im, r, r->default_, value) == GIVES)
			assume(im, r->to, value, "default", import_row_name(r, 0));
	}
	for (size_t i = 0; i < t->rows.n; i++) {
		struct leaf *l = find_row(im, &t->rows.at[i]);
		if (l && l->verdict == LEFT)
			leaf_judge(l, NO_EFFECT, "other keys decide");
	}
	for (size_t i = 0; i < t->sets.n; i++) {
		const enum key_id id = import_key_of(t->sets.at[i]->key);
		if (id == KEY_COUNT)
			return ynode_error_key(t->sets.at[i], e, "%s is no key of CONFIG.yaml", t->sets.at[i]->key);
		assume(im, id, t->sets.at[i]->text, "where the file is silent", "");
	}
	return ST_OK;
}

/* Takes back what was assumed of a model's sizes where a preset or a file says them, or where the text has none. The
 * sequence is no part of them. */
void rows_leave_to_preset(struct import *im)
{
	const bool assumed = import_has(im, KEY_model_preset) || import_has(im, KEY_model_hf_config) ||
	                     !import_has(im, KEY_model_layers);
	for (int i = 0; assumed && i < KEY_COUNT; i++)
		if (im->key[i].by_default && i != KEY_model_seq_len &&
			strcmp(config_key((enum key_id)i)->section, "model") == 0)
			im->key[i].by_default = false;
}

/* Takes back what the strategy does not use: CONFIG.yaml refuses such keys. */
void rows_drop_unused(struct import *im)
{
	const struct config_key *k = config_key(KEY_parallel_strategy);
	const char *strategy = ours(im, KEY_parallel_strategy);
	const struct word *word = key_word_find(k, strategy);
	for (int i = 0; word && i < KEY_COUNT; i++) {
		struct import_key *key = &im->key[i];
		if (!import_has(im, (enum key_id)i) ||
			strategy_has((enum strategy)word->value, config_key((enum key_id)i)->used_by))
			continue;
		for (size_t n = 0; n < im->foreign.leaves.n; n++) {
			struct leaf *l = &im->foreign.leaves.at[n];
			if (strcmp(l->why, config_key((enum key_id)i)->path) == 0) {
				l->verdict = LEFT;
				leaf_judge(l, NO_EFFECT, "strategy %s does not use it", strategy);
			}
		}
		key->given = key->by_default = false;
	}
}
