#include "cli/validate/lists.h"

#include <ctype.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/paths.h"
#include "base/phrase.h"
#include "base/suggest.h"
#include "base/yaml.h"

static struct {
	pthread_mutex_t lock;
	bool read;
	struct word_lists lists;
} kept = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- entries ---- */

static const char *const entry_keys[] = {"means", "more", "words", "system", "source", "word", "rate"};

/* Refuses a key that no list knows. */
static enum status check_keys(const struct ynode *entry, struct error *e)
{
	for (size_t i = 0; i < entry->n; i++)
		if (suggest_find(entry->child[i]->key, entry_keys, COUNT(entry_keys)) == COUNT(entry_keys))
			return ynode_error_key(entry->child[i], e, "%s: unknown key of words%s", entry->child[i]->key,
				suggest(entry->child[i]->key, entry_keys, COUNT(entry_keys), NULL).text);
	return ST_OK;
}

/* Reads a text that may be missing: NULL then. */
static enum status text_of_key(const struct ynode *entry, const char *key, const char **out, struct error *e)
{
	const struct ynode *n = ynode_get(entry, key);
	*out = NULL;
	return n ? ynode_string(n, out, e) : ST_OK;
}

/* Reads further keys of the config, each on its line. A list is joined in memory of the document's. */
static enum status read_more(struct ydoc *doc, const struct ynode *n, const char **out, struct error *e)
{
	enum { SIZE = 256 };
	const char *line;
	size_t len = 0;
	if (n->kind != Y_SEQ)
		return ynode_string(n, out, e);
	char *all = ydoc_alloc(doc, SIZE);
	if (!all)
		return error_nomem(e, "the words of tables");
	for (size_t i = 0; i < n->n; i++) {
		if (ynode_string(n->child[i], &line, e))
			return e->status;
		len += (size_t)snprintf(all + len, SIZE - len, "%s%s", i ? "\n  " : "", line);
		if (len >= SIZE)
			return ynode_error(n, e, "more: longer than %d characters", SIZE - 1);
	}
	*out = all;
	return ST_OK;
}

static enum status add_words(const struct ynode *entry, struct meaning means, word_vec *out, struct error *e)
{
	const struct ynode *list = ynode_get(entry, "words");
	if (!list || list->kind != Y_SEQ || list->n == 0)
		return ynode_error(entry, e, "words: expected a list of names");
	for (size_t i = 0; i < list->n; i++) {
		struct word w = {NULL, means};
		if (ynode_string(list->child[i], &w.name, e))
			return e->status;
		for (size_t k = 0; k < out->n; k++)
			if (suggest_same(out->at[k].name, w.name))
				return ynode_error(list->child[i], e, "words: \"%s\" stands here twice", w.name);
		if (!vec_push(out, w))
			return error_nomem(e, "the words of tables");
	}
	return ST_OK;
}

/* Reads {means, more, words} or {system, source, words}. */
static enum status read_entry(struct ydoc *doc, const struct ynode *entry, const char *key, word_vec *out,
	struct error *e)
{
	struct meaning means = {NULL, NULL};
	const struct ynode *more = ynode_get(entry, "more");
	if (entry->kind != Y_MAP)
		return ynode_error(entry, e, "expected {words: [...], ...}");
	if (check_keys(entry, e) || text_of_key(entry, key, &means.value, e) ||
		(more && read_more(doc, more, &means.more, e)))
		return e->status;
	return add_words(entry, means, out, e);
}

static enum status read_entries(struct ydoc *doc, const struct ynode *list, const char *key, word_vec *out,
	struct error *e)
{
	enum status st = ST_OK;
	if (list->kind != Y_SEQ)
		return ynode_error(list, e, "expected a list of words");
	for (size_t i = 0; i < list->n && !st; i++)
		st = read_entry(doc, list->child[i], key, out, e);
	return st;
}

/* ---- files ---- */

static enum status read_column(struct ydoc *doc, const struct ynode *n, struct word_lists *out, struct error *e)
{
	struct column_words c = {.column = n->key};
	const struct ynode *goes_on = ynode_get(n, "goes_on"), *list = ynode_get(n, "words");
	if (!list)
		return ynode_error(n, e, "%s: expected its words", n->key);
	enum status st = text_of_key(n, "blank", &c.blank, e);
	if (!st && goes_on)
		st = ynode_bool(goes_on, &c.goes_on, e);
	if (!st)
		st = read_entries(doc, list, "means", &c.word, e);
	if (!st && !vec_push(&out->column, c))
		st = error_nomem(e, "the words of tables");
	if (st)
		vec_free(&c.word);
	return st;
}

static enum status read_cells(struct ydoc *doc, struct word_lists *out, struct error *e)
{
	static const char *const columns[] = {"sharding", "dtype", "optimizer", "attention", "act_ckpt", "mlp",
		"seq_parallel", "tied_emb", "adapter"};
	const struct ynode *root = ydoc_root(doc);
	enum status st = ST_OK;
	if (root->kind != Y_MAP)
		return ynode_error(root, e, "expected a list of words for each column");
	for (size_t i = 0; i < COUNT(columns); i++)
		if (!ynode_get(root, columns[i]))
			return ynode_error(root, e, "expected the words of the column %s", columns[i]);
	for (size_t i = 0; i < root->n && !st; i++)
		st = read_column(doc, root->child[i], out, e);
	return st;
}

static enum status read_networks(struct ydoc *doc, struct word_lists *out, struct error *e)
{
	const struct ynode *fabrics = ynode_get(ydoc_root(doc), "fabrics"),
			   *generations = ynode_get(ydoc_root(doc), "generations");
	if (!fabrics || !generations)
		return ynode_error(ydoc_root(doc), e, "expected fabrics and generations");
	enum status st = read_entries(doc, fabrics, "means", &out->fabric, e);
	for (size_t i = 0; i < generations->n && !st; i++) {
		const struct ynode *word = ynode_get(generations->child[i], "word"),
				   *rate = ynode_get(generations->child[i], "rate");
		struct generation g;
		double Bps;
		if (!word || !rate)
			return ynode_error(generations->child[i], e, "expected {word: ..., rate: ...}");
		if (ynode_string(word, &g.name, e) ||
			ynode_quantity_with_unit(rate, UNIT_BYTE_PER_S, 1e6, 1e15, &Bps, e))
			return e->status;
		g.Gbps = Bps * 8 / 1e9;
		if (!vec_push(&out->generation, g))
			st = error_nomem(e, "the words of tables");
	}
	return st;
}

static enum status read_machines(struct ydoc *doc, struct word_lists *out, struct error *e)
{
	const struct ynode *machines = ynode_get(ydoc_root(doc), "machines"), *gpus = ynode_get(ydoc_root(doc), "gpus");
	if (!machines || !gpus)
		return ynode_error(ydoc_root(doc), e, "expected gpus and machines");
	const enum status st = read_entries(doc, gpus, "means", &out->gpu, e);
	return st ? st : read_entries(doc, machines, "system", &out->machine, e);
}

/* The documents own the texts and stay until the program ends, as the lists do. */
static enum status read_all(struct word_lists *out, struct error *e)
{
	static const struct {
		const char *file;
		enum status (*read)(struct ydoc *doc, struct word_lists *out, struct error *e);
	} files[] = {{"cells", read_cells}, {"networks", read_networks}, {"machines", read_machines}};
	static struct ydoc *docs[COUNT(files)];
	enum status st = ST_OK;
	for (size_t i = 0; i < COUNT(files) && !st; i++) {
		char path[PATH_MAX_LEN];
		ydoc_destroy(docs[i]); /* of a reading that failed */
		docs[i] = NULL;
		if (!(st = path_catalogue("words", files[i].file, path, e)) && !(st = ydoc_load(path, &docs[i], e)))
			st = files[i].read(docs[i], out, e);
	}
	return st;
}

static void lists_free(struct word_lists *l)
{
	for (size_t i = 0; i < l->column.n; i++)
		vec_free(&l->column.at[i].word);
	vec_free(&l->column);
	vec_free(&l->fabric);
	vec_free(&l->generation);
	vec_free(&l->machine);
	vec_free(&l->gpu);
}

enum status word_lists_load(const struct word_lists **out, struct error *e)
{
	enum status st = ST_OK;
	pthread_mutex_lock(&kept.lock);
	if (!kept.read) {
		st = read_all(&kept.lists, e);
		kept.read = !st;
		if (st)
			lists_free(&kept.lists);
	}
	pthread_mutex_unlock(&kept.lock);
	*out = st ? NULL : &kept.lists;
	return st;
}

/* ---- finding ---- */

const char *pass_leading_count(const char *cell)
{
	const char *s = cell + strspn(cell, "0123456789");
	if (s == cell)
		return cell;
	s += strspn(s, " ");
	const size_t times = strncmp(s, "\xc3\x97", 2) == 0 ? 2 : strchr("xX*", *s) && *s ? 1 : 0;
	const char *rest = s + times + strspn(s + times, " ");
	return times && isalpha((unsigned char)*rest) ? rest : cell;
}

const struct word *word_of_cell(const word_vec *all, const char *cell)
{
	char plain[128];
	const struct word *best = NULL;
	size_t most = 0;
	cell = pass_leading_count(cell);
	snprintf(plain, sizeof plain, "%.*s", (int)strcspn(cell, "("), cell);
	for (size_t i = 0; i < all->n; i++) {
		const size_t same = phrase_match(all->at[i].name, plain, true);
		if (same > most) {
			most = same;
			best = &all->at[i];
		}
	}
	return best;
}
