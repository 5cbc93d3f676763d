#include "step/import/export.h"

#include <fnmatch.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/memory_stream.h"
#include "base/paths.h"
#include "base/suggest.h"
#include "step/import/export_form.h"
#include "step/import/import.h"

#define ROUNDS 4 /* of what is added, which other keys may follow from */

struct exporter {
	const struct config *c;
	struct import_table table;
	struct ydoc *doc;
	bool marked[KEY_COUNT]; /* keys that stand beside the framework's */
	struct error *e;
};

/* ---- values ---- */

static bool holds(const struct exporter *x, const struct import_row *r)
{
	char text[KEY_VALUE_MAX];
	for (size_t i = 0; r->when && i < r->when->n; i++) {
		const struct ynode *w = r->when->child[i];
		const bool other = *w->text == '!';
		key_value_text(config_key(import_key_of(w->key)), x->c, text);
		if ((fnmatch(w->text + other, text, FNM_CASEFOLD) == 0) == other)
			return false;
	}
	return true;
}

/* Writes a number, or the value of a key of CONFIG.yaml. */
static void operand(const struct exporter *x, const char *text, char out[KEY_VALUE_MAX])
{
	const enum key_id id = import_key_of(text);
	snprintf(out, KEY_VALUE_MAX, "%s", text);
	if (id != KEY_COUNT)
		key_value_text(config_key(id), x->c, out);
}

static bool product(const struct exporter *x, const struct ynode *list, double *out)
{
	char text[KEY_VALUE_MAX], *rest;
	*out = 1;
	for (size_t i = 0; list && i < list->n; i++) {
		operand(x, list->child[i]->text, text);
		*out *= strtod(text, &rest);
		if (*rest)
			return false;
	}
	return *out != 0;
}

/* Turns the row's arithmetic round; false: the framework's number would not be a whole one. */
static bool solve(const struct exporter *x, const struct import_row *r, char text[KEY_VALUE_MAX])
{
	double times, over, value = strtod(text, NULL);
	for (size_t i = 0; r->plus && i < r->plus->n; i++) {
		char other[KEY_VALUE_MAX];
		operand(x, r->plus->child[i]->text, other);
		value -= strtod(other, NULL);
	}
	if (r->plus)
		snprintf(text, KEY_VALUE_MAX, "%.0f", value);
	if (!r->times && !r->over)
		return true;
	if (!product(x, r->times, &times) || !product(x, r->over, &over) || value == 0)
		return false;
	value = r->inverse ? times / over / value : value * over / times;
	if (value != round(value))
		return false;
	snprintf(text, KEY_VALUE_MAX, "%.0f", value);
	return true;
}

static bool is_one_of(const struct ynode *v, const char *text)
{
	if (v->kind == Y_SCALAR)
		return strcmp(v->text, text) == 0;
	for (size_t i = 0; i < v->n; i++)
		if (strcmp(v->child[i]->text, text) == 0)
			return true;
	return false;
}

/* Replaces our value by the framework's; false: it has none. */
static bool map_back(const struct import_row *r, char text[KEY_VALUE_MAX])
{
	for (size_t i = 0; r->values && i < r->values->n; i++) {
		const struct ynode *v = r->values->child[i];
		if (ynode_is_null(v))
			continue;
		if (v->kind == Y_SCALAR && strcmp(v->text, "same") == 0)
			return fnmatch(v->key, text, 0) == 0;
		if (strpbrk(v->key, "*?") || !is_one_of(v, text))
			continue;
		snprintf(text, KEY_VALUE_MAX, "%s", v->key);
		return true;
	}
	return !r->values;
}

/* Puts the values of keys in braces into a text. */
static void fill(const struct exporter *x, const char *pattern, char out[KEY_VALUE_MAX])
{
	char path[KEY_VALUE_MAX], value[KEY_VALUE_MAX];
	size_t n = 0;
	while (*pattern && n + 1 < KEY_VALUE_MAX) {
		const size_t len = strcspn(pattern, "{}");
		if (pattern[0] != '{') {
			n += (size_t)snprintf(out + n, KEY_VALUE_MAX - n, "%.*s", (int)len, pattern);
			pattern += len;
			continue;
		}
		const size_t inner = strcspn(++pattern, "}");
		snprintf(path, sizeof path, "%.*s", (int)inner, pattern);
		const enum key_id id = import_key_of(path);
		key_value_text(config_key(id), x->c, value);
		/* torchrun's word for all of a host */
		n += (size_t)snprintf(out + n, KEY_VALUE_MAX - n, "%s",
			id == KEY_cluster_gpus_per_node && strcmp(value, "0") == 0 ? "gpu" : value);
		pattern += inner + 1;
	}
	out[n < KEY_VALUE_MAX ? n : KEY_VALUE_MAX - 1] = '\0';
}

/* ---- the framework's keys ---- */

/* Adds a key, below its tables; the first value stays. */
static enum status put(struct exporter *x, const char *path, const char *value)
{
	char part[KEY_VALUE_MAX];
	struct ynode *n = ydoc_edit(x->doc);
	for (;;) {
		const size_t len = strcspn(path, ".");
		snprintf(part, sizeof part, "%.*s", (int)len, path);
		struct ynode *child = (struct ynode *)(uintptr_t)ynode_get(n, part);
		const bool last = path[len] == '\0';
		if (child && last)
			return ST_OK;
		if (!child && !(child = ydoc_add(x->doc, n, part, last ? Y_SCALAR : Y_MAP, last ? value : NULL)))
			return error_nomem(x->e, "a config");
		if (last)
			return ST_OK;
		n = child;
		path += len + 1;
	}
}

static enum status put_row(struct exporter *x, const struct import_row *r)
{
	char text[KEY_VALUE_MAX];
	const char *name = import_row_name(r, 0);
	if (r->is) {
		fill(x, r->is, text);
		return put(x, name, text);
	}
	const struct config_key *k = config_key(r->to);
	if (!strategy_has(x->c->parallel.strategy, k->used_by) || r->hub || r->layout)
		return ST_OK;
	key_value_text(k, x->c, text);
	if (!*text || strcmp(text, "auto") == 0 || !solve(x, r, text) || !map_back(r, text))
		return ST_OK;
	char *blank = r->with ? strchr(text, ' ') : NULL;
	if (blank)
		*blank = '\0';
	enum status st = put(x, name, text);
	return st || !blank ? st : put(x, r->with, blank + 1);
}

static enum status put_rows(struct exporter *x)
{
	enum status st = ST_OK;
	for (size_t i = 0; i < x->table.rows.n && !st; i++) {
		const struct import_row *r = &x->table.rows.at[i];
		const bool other_form = r->form && strcmp(r->form, x->table.writes) != 0;
		if (!r->no_export && !other_form && holds(x, r))
			st = put_row(x, r);
	}
	return st;
}

/* ---- what the framework has no word for ---- */

/* Writes a key's value; a Hugging Face file by its absolute path, for the export may lie elsewhere. */
static void value_of(const struct exporter *x, enum key_id id, char out[KEY_VALUE_MAX])
{
	char path[PATH_MAX_LEN];
	key_value_text(config_key(id), x->c, out);
	if (id != KEY_model_hf_config || out[0] == '/')
		return;
	char *absolute = path_beside(x->c->path, out, path) ? realpath(path, NULL) : NULL;
	if (absolute && strlen(absolute) < KEY_VALUE_MAX)
		snprintf(out, KEY_VALUE_MAX, "%s", absolute);
	free(absolute);
}

static enum status write_all(struct exporter *x, FILE *out)
{
	const bool json = strcmp(x->table.writes, "json") == 0;
	char path[KEY_VALUE_MAX], value[KEY_VALUE_MAX], launch[KEY_VALUE_MAX] = "";
	struct ynode *beside = NULL;
	bool heading = false;
	for (int i = 0; i < KEY_COUNT; i++) {
		if (!x->marked[i])
			continue;
		snprintf(path, sizeof path, "%s", config_key((enum key_id)i)->path);
		value_of(x, (enum key_id)i, value);
		if (!json) {
			fputs(heading ? "" : "# For stepsim alone, which reads these comments:\n", out);
			heading = true;
			fprintf(out, IMPORT_MARK "%s: %s\n", path, value);
		} else if ((!beside && !(beside = ydoc_add(x->doc, ydoc_edit(x->doc), IMPORT_TABLE, Y_MAP, NULL))) ||
			   !ydoc_add(x->doc, beside, path, Y_SCALAR, value)) {
			return error_nomem(x->e, "a config");
		}
	}
	if (x->table.launch)
		fill(x, x->table.launch, launch);
	export_form_write(&x->table, ydoc_root(x->doc), launch, out);
	return ST_OK;
}

/* Makes the text: the framework's keys and those beside it. */
static enum status make(struct exporter *x, char **text, size_t *len)
{
	ydoc_destroy(x->doc);
	x->doc = NULL;
	enum status st = ydoc_create("export", &x->doc, x->e);
	FILE *out = st ? NULL : memory_stream(text, len);
	if (!st && !out)
		st = error_nomem(x->e, "a config");
	if (!st && !(st = put_rows(x)))
		st = write_all(x, out);
	return out && !memory_stream_close(out) && !st ? error_nomem(x->e, "a config") : st;
}

/* Reads the text as import does, for the same ranks. */
static enum status read_back(const struct exporter *x, const char *text, size_t len, struct config *out,
	struct error *e)
{
	struct import *im = calloc(1, sizeof *im);
	char *config = NULL;
	size_t size = 0;
	bool found = false;
	FILE *memory = im ? memory_stream(&config, &size) : NULL;
	enum status st = memory ? import_read(text, len, "export", x->table.name, &found, im, e)
	                        : error_nomem(e, "a config");
	if (!st) {
		st = import_write(im, memory, e);
		import_free(im);
	}
	if (memory && !memory_stream_close(memory) && !st)
		st = error_nomem(e, "a config");
	if (!st && !(st = config_parse(config, size, "export", NULL, 0, out, e))) {
		out->node_ranks = x->c->node_ranks;
		out->executed = x->c->executed;
		st = config_resolve(out, x->c->ranks, e);
	}
	free(config);
	free(im);
	return st;
}

/* Other ways to say train.global_batch, and a number of GPUs that the system decides. */
static bool is_said_otherwise(const struct exporter *x, enum key_id id)
{
	return id == KEY_train_tokens_per_step || id == KEY_train_batch_per_gpu ||
	       (id == KEY_cluster_gpus_per_node && x->c->cluster.gpus_per_node == 0) ||
	       ((id == KEY_model_preset || id == KEY_model_hf_config) && !config_is_given(x->c, id)) ||
	       (id == KEY_data_bytes && !config_is_given(x->c, id));
}

/* Marks the keys that came back otherwise, or where nothing came back (NULL) those that somebody chose, of the model
 * alone if there are such; returns how many. */
static size_t mark(struct exporter *x, const struct config *back, bool model)
{
	size_t n = 0;
	for (int i = 0; i < KEY_COUNT; i++) {
		const struct config_key *k = config_key((enum key_id)i);
		const bool same = back ? key_equal(k, x->c, back) : !config_is_given(x->c, (enum key_id)i);
		if (x->marked[i] || same || (model && strcmp(k->section, "model") != 0) ||
			is_said_otherwise(x, (enum key_id)i) || !strategy_has(x->c->parallel.strategy, k->used_by))
			continue;
		x->marked[i] = true;
		n++;
	}
	return n;
}

static enum status settle(struct exporter *x, char **text, size_t *len)
{
	struct config *back = malloc(sizeof *back);
	enum status st = back ? ST_OK : error_nomem(x->e, "a config");
	size_t marked = 1;
	for (int round = 0; round < ROUNDS && marked && !st; round++) {
		struct error why = {0};
		free(*text);
		*text = NULL;
		if ((st = make(x, text, len)))
			break;
		const bool refused = read_back(x, *text, *len, back, &why) != ST_OK;
		marked = mark(x, refused ? NULL : back, refused);
		if (refused && !marked)
			marked = mark(x, NULL, false);
		if (refused && (why.status != ST_INPUT || !marked))
			st = error_set(x->e, why.status, "export to %s: %s", x->table.title, why.text);
	}
	free(back);
	return st;
}

/* Returns whether the framework's config has the sizes or the name of a model. */
static bool writes_model(const struct import_table *t)
{
	for (size_t i = 0; i < t->rows.n; i++) {
		const struct import_row *r = &t->rows.at[i];
		if (!r->no_export && !r->hub && !r->layout && !r->list &&
			(r->to == KEY_model_preset || r->to == KEY_model_layers))
			return true;
	}
	return false;
}

/* Names the frameworks that can be written, where `to` is none that is known. */
static enum status check_name(const char *to, struct error *e)
{
	char **names = NULL;
	size_t n = 0, written = 0;
	bool known = false;
	enum status st = path_catalogue_names("frameworks", &names, &n, e);
	for (size_t i = 0; i < n && !st; i++) {
		struct import_table t;
		known |= strcmp(names[i], to) == 0;
		if ((st = import_table_load(names[i], &t, e)))
			break;
		if (t.writes) {
			char *swap = names[written];
			names[written++] = names[i];
			names[i] = swap;
		}
		import_table_free(&t);
	}
	if (!st && !known)
		st = error_set(e, ST_INPUT, "unknown framework \"%.60s\"%s", to,
			suggest_known(to, (const char *const *)names, written).text);
	path_names_free(names, n);
	return st;
}

enum status export_write(const struct config *c, const char *to, FILE *out, struct error *e)
{
	struct exporter x = {.c = c, .e = e};
	char *text = NULL;
	size_t len = 0;
	enum status st = check_name(to, e);
	if (st || (st = import_table_load(to, &x.table, e)))
		return st;
	if (!x.table.writes)
		st = error_set(e, ST_INPUT, "%s: its configs are read, but not written", x.table.title);
	else if (strcmp(x.table.writes, "flags") == 0 && c->model.encoder_layers > 0)
		st = error_set(e, ST_INPUT, "%s: model.encoder_layers: what it starts builds decoders alone",
			x.table.title);
	else if ((model_is_conv(&c->model) || c->model.adaptive_norm) && writes_model(&x.table))
		st = error_set(e, ST_INPUT, "%s has no %s", x.table.title,
			c->model.adaptive_norm ? "diffusion transformers" : "convolutional networks");
	x.marked[KEY_cluster_system] = true; /* no framework names the machine */
	x.marked[KEY_cluster_nodes] = true;
	if (!st && !(st = settle(&x, &text, &len)))
		fwrite(text, 1, len, out);
	free(text);
	ydoc_destroy(x.doc);
	import_table_free(&x.table);
	return st;
}
