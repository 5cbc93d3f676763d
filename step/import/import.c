#include "step/import/import.h"

#include <string.h>

#include "base/paths.h"
#include "step/import/hf_config.h"
#include "step/import/rows.h"

/* ---- what export wrote for stepsim itself ---- */

static enum status put_marked(struct import *im, const char *text, size_t len, int line, struct error *e)
{
	char path[KEY_VALUE_MAX];
	snprintf(path, sizeof path, "%.*s", (int)(len < sizeof path ? len : sizeof path - 1), text);
	char *colon = strstr(path, ": ");
	if (colon)
		*colon = '\0';
	const enum key_id id = colon ? import_key_of(path) : KEY_COUNT;
	if (id != KEY_COUNT) {
		import_put(im, id, colon + 2, "stepsim");
		return ST_OK;
	}
	char section[ALIAS_MAX];
	const char *dot = strchr(path, '.');
	snprintf(section, sizeof section, "%.*s", dot ? (int)(dot - path) : 0, path);
	return error_set(e, ST_INPUT, "%s:%d:1: %s: no key of CONFIG.yaml%s", im->name, line, path,
		config_key_hint(section, dot ? dot + 1 : path, true).text);
}

static enum status read_marks(struct import *im, const char *text, size_t len, struct error *e)
{
	const size_t mark = strlen(IMPORT_MARK);
	int line = 1;
	enum status st = ST_OK;
	for (const char *p = text, *end = text + len; p < end && !st; line++) {
		const char *stop = memchr(p, '\n', (size_t)(end - p));
		stop = stop ? stop : end;
		if ((size_t)(stop - p) > mark && memcmp(p, IMPORT_MARK, mark) == 0)
			st = put_marked(im, p + mark, (size_t)(stop - p) - mark, line, e);
		p = stop + 1;
	}
	for (size_t i = 0; i < im->foreign.leaves.n && !st; i++) {
		struct leaf *l = &im->foreign.leaves.at[i];
		const size_t n = strlen(IMPORT_TABLE ".");
		char pair[2 * KEY_VALUE_MAX];
		if (strncmp(l->path, IMPORT_TABLE ".", n) != 0)
			continue;
		const int size = snprintf(pair, sizeof pair, "%.300s: %.300s", l->path + n, l->value);
		if (!(st = put_marked(im, pair, (size_t)size, l->node->line, e)))
			leaf_judge(l, TAKEN, "%s", l->path + n);
	}
	return st;
}

/* ---- the whole ---- */

/* Counts the keys at the top that are sections of CONFIG.yaml. */
static size_t count_ours(const struct foreign *f)
{
	const struct ynode *root = ydoc_root(f->doc);
	size_t n = 0;
	for (size_t i = 0; i < root->n; i++)
		n += config_is_section(root->child[i]->key);
	return n;
}

/* Names the framework of which the text has the most keys of a list of `detect`: GPT-NeoX's texts have DeepSpeed's. */
static enum status recognise(const struct foreign *f, char name[STACK_NAME], struct error *e)
{
	char **names = NULL;
	size_t n = 0, most = 0;
	enum status st = path_catalogue_names("frameworks", &names, &n, e);
	*name = '\0';
	for (size_t i = 0; i < n && !st; i++) {
		struct import_table t;
		if ((st = import_table_load(names[i], &t, e)))
			break;
		const size_t fits = foreign_fits(f, &t);
		if (fits > most)
			snprintf(name, STACK_NAME, "%s", names[i]);
		most = fits > most ? fits : most;
		import_table_free(&t);
	}
	path_names_free(names, n);
	return st;
}

enum status import_read(const char *text, size_t len, const char *name, const char *from, bool *found,
	struct import *out, struct error *e)
{
	char framework[STACK_NAME] = "";
	*out = (struct import){.name = name};
	*found = false;
	enum status st = foreign_read(text, len, name, &out->foreign, e);
	if (st)
		return st;
	if (from || *out->foreign.framework)
		snprintf(framework, sizeof framework, "%s", from ? from : out->foreign.framework);
	else if (count_ours(&out->foreign) < ydoc_root(out->foreign.doc)->n && !hf_config_is(text, len))
		st = recognise(&out->foreign, framework, e);
	*found = st || *framework;
	out->is_strange = !*found && ydoc_root(out->foreign.doc)->n >= 3 && count_ours(&out->foreign) == 0 &&
	                  !hf_config_is(text, len);
	out->is_ours = !*found && count_ours(&out->foreign) == ydoc_root(out->foreign.doc)->n;
	if (!*found && ydoc_root(out->foreign.doc)->n) {
		const struct ynode *first = ydoc_root(out->foreign.doc)->child[0];
		out->first.line = first->key_line;
		out->first.col = first->key_col;
		snprintf(out->first.key, sizeof out->first.key, "%s", first->key);
	}
	if (*found && !st && !(st = import_table_load(framework, &out->table, e)))
		out->foreign.apart = out->table.apart;
	if (*found && !st && !(st = read_marks(out, text, len, e)) && !(st = rows_apply(out, e))) {
		rows_leave_to_preset(out);
		rows_drop_unused(out);
		rows_judge_rest(out);
	}
	if (st || !*found)
		import_free(out);
	return st;
}

void import_free(struct import *im)
{
	import_table_free(&im->table);
	if (im->foreign.doc)
		foreign_free(&im->foreign);
}

bool import_has(const struct import *im, enum key_id id) { return im->key[id].given || im->key[id].by_default; }

void import_put(struct import *im, enum key_id id, const char *value, const char *remark)
{
	rows_store(im, id, value, remark);
	im->key[id].given = true;
	im->key[id].by_default = false;
	rows_drop_rivals(im, id);
	rows_leave_to_preset(im);
}

void import_drop(struct import *im, enum key_id id) { im->key[id].given = im->key[id].by_default = false; }

void import_count(const struct import *im, size_t count[VERDICT_COUNT])
{
	memset(count, 0, VERDICT_COUNT * sizeof *count);
	for (size_t i = 0; i < im->foreign.leaves.n; i++)
		count[im->foreign.leaves.at[i].verdict]++;
}
