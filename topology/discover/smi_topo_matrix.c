#include "topology/discover/smi_topo_rows.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topology/graph/rates.h"

void smi_note(struct smi_matrix *m, bool contradiction, const char *fmt, ...)
{
	if (m->n_notes == SMI_NOTES)
		return;
	struct remark *r = &m->note[m->n_notes++];
	va_list args;
	va_start(args, fmt);
	vsnprintf(r->text, sizeof r->text, fmt, args);
	va_end(args);
	r->contradiction = contradiction;
}

static int compare_entries(const void *a, const void *b)
{
	const struct smi_entry *x = a, *y = b;
	if (x->nic != y->nic)
		return x->nic ? 1 : -1;
	return (x->number > y->number) - (x->number < y->number);
}

static int32_t entry_of(const struct smi_matrix *m, const char *key)
{
	for (size_t i = 0; i < m->n; i++)
		if (strcmp(m->entry[i].key, key) == 0)
			return (int32_t)i;
	return -1;
}

static bool add_entry(struct smi_matrix *m, const char *key)
{
	if (m->n == SMI_ENTRIES)
		return false;
	struct smi_entry *en = &m->entry[m->n++];
	struct smi_token t = {key, strlen(key)};
	enum smi_label kind = smi_label_of(t, en->key, &en->number);
	en->nic = kind != SMI_GPU;
	en->named = kind == SMI_NAMED;
	en->numa = -1;
	if (en->named)
		snprintf(en->name, sizeof en->name, "%s", key);
	return true;
}

/* Entries from columns and rows; NICs that go by their names are numbered behind those that have a number, in the order
 * of the columns. */
static enum status entries(struct smi_reading *r, int line, struct error *e)
{
	struct smi_matrix *m = r->m;
	int32_t free_number = 0;
	for (size_t i = 0; i < r->c->n; i++) {
		if (entry_of(m, r->c->key[i]) >= 0)
			return error_set(e, ST_INPUT, "%s:%d: two columns are called %s", r->name, line, r->c->key[i]);
		if (!add_entry(m, r->c->key[i]))
			return error_set(e, ST_INPUT, "%s:%d: more than %d columns", r->name, line, SMI_ENTRIES);
	}
	for (size_t i = 0; i < r->n_raw; i++)
		if (entry_of(m, r->raw[i].key) < 0 && !add_entry(m, r->raw[i].key))
			return error_set(e, ST_INPUT, "%s:%d: more than %d rows and columns", r->name,
				r->t->line.at[r->raw[i].line].number, SMI_ENTRIES);
	for (size_t i = 0; i < m->n; i++)
		if (m->entry[i].nic && !m->entry[i].named && m->entry[i].number >= free_number)
			free_number = m->entry[i].number + 1;
	for (size_t i = 0; i < m->n; i++) {
		if (m->entry[i].named)
			m->entry[i].number = free_number++;
		m->n_gpus += !m->entry[i].nic;
	}
	qsort(m->entry, m->n, sizeof m->entry[0], compare_entries);
	for (size_t i = 0; i < r->c->n; i++)
		r->column[i] = entry_of(m, r->c->key[i]);
	return ST_OK;
}

static enum status take_row(struct smi_reading *r, const struct smi_raw *raw, struct error *e)
{
	struct smi_matrix *m = r->m;
	size_t me = (size_t)entry_of(m, raw->key);
	int line = r->t->line.at[raw->line].number;
	bool again = m->entry[me].row != 0;
	for (size_t i = 0; i < r->c->n; i++) {
		size_t other = (size_t)r->column[i];
		const char *word = r->cells.word[i];
		if ((strcmp(word, "X") == 0) != (other == me))
			return error_set(e, ST_INPUT,
				"%s:%d: row %s has '%s' in column %s: the X of a row stands in its own column", r->name,
				line, raw->key, word, r->c->key[i]);
		if (strncmp(word, "NV", 2) == 0 && strtol(word + 2, NULL, 10) > nvlinks_most(0))
			return error_set(e, ST_INPUT,
				"%s:%d: row %s says '%s' to %s: no GPU that is known here has more than %d NVLinks",
				r->name, line, raw->key, word, r->c->key[i], nvlinks_most(0));
		if (again && strcmp(m->word[me][other], word))
			return error_set(e, ST_INPUT,
				"%s:%d: a second row %s (the first is line %d) that says '%s' to %s where the first "
				"says '%s': one host a file",
				r->name, line, raw->key, m->entry[me].row, word, r->c->key[i], m->word[me][other]);
		memcpy(m->word[me][other], word, GRAPH_WORD);
	}
	if (again)
		return ST_OK;
	m->entry[me].row = line;
	smi_row_affinity(r, raw, &m->entry[me]);
	return ST_OK;
}

static bool last_of_text(const struct smi_text *t, size_t line)
{
	for (size_t i = line + 1; i < t->line.n; i++)
		if (!smi_blank(t->line.at[i].text))
			return false;
	return true;
}

static enum status rows(struct smi_reading *r, struct error *e)
{
	for (size_t i = 0; i < r->n_raw; i++) {
		const struct smi_raw *raw = &r->raw[i];
		int line = r->t->line.at[raw->line].number;
		enum status st = ST_OK;
		if (smi_row_cells(r, raw)) {
			st = take_row(r, raw, e);
		} else if (r->cells.peer) {
			r->m->peer = true;
			return ST_OK;
		} else if (r->cells.few && r->n_raw > 1 && i + 1 == r->n_raw && raw->n_pieces == 0 &&
			   last_of_text(r->t, raw->line)) {
			smi_note(r->m, false, "line %d: row %s is cut (%s): not used", line, raw->key, r->cells.why);
		} else {
			st = error_set(e, ST_INPUT, "%s:%d: row %s: %s", r->name, line, raw->key, r->cells.why);
		}
		if (st)
			return st;
	}
	return ST_OK;
}

/* Both halves agree, or only one was pasted. */
static enum status halves(struct smi_reading *r, struct error *e)
{
	struct smi_matrix *m = r->m;
	for (size_t i = 0; i < m->n; i++)
		for (size_t k = 0; k < i; k++) {
			char *a = m->word[i][k], *b = m->word[k][i];
			if (a[0] && b[0] && strcmp(a, b)) {
				const struct smi_entry *x = &m->entry[i], *y = &m->entry[k];
				return error_set(e, ST_INPUT,
					"%s:%d: row %s says '%s' to %s, row %s (line %d) says '%s' to %s", r->name,
					x->row, x->key, a, y->key, y->key, y->row, b, x->key);
			}
			memcpy(a[0] ? b : a, a[0] ? a : b, GRAPH_WORD);
		}
	for (size_t i = 0; i < m->n; i++)
		snprintf(m->word[i][i], GRAPH_WORD, "X");
	return ST_OK;
}

/* Adds "GPU0-3, NIC1" of the marked entries to a list, as far as they fit. */
static void list_entries(const struct smi_matrix *m, const bool *in, char *list, size_t size)
{
	size_t used = 0;
	for (size_t i = 0; i < m->n; i++) {
		size_t last = i;
		char text[2 * GRAPH_NAME];
		if (!in[i])
			continue;
		while (!m->entry[i].named && last + 1 < m->n && in[last + 1] &&
			m->entry[last + 1].nic == m->entry[i].nic && !m->entry[last + 1].named &&
			m->entry[last + 1].number == m->entry[last].number + 1)
			last++;
		int n = last > i ? snprintf(text, sizeof text, "%s%s-%d", used ? ", " : "", m->entry[i].key,
					   m->entry[last].number)
		                 : snprintf(text, sizeof text, "%s%s", used ? ", " : "", m->entry[i].key);
		if (used + (size_t)n + sizeof ", ..." > size) {
			snprintf(list + used, size - used, ", ...");
			return;
		}
		memcpy(list + used, text, (size_t)n + 1);
		used += (size_t)n;
		i = last;
	}
}

/* Which links stand in neither half of what is left of the matrix. `named`: the entries that the remark on their
 * missing rows names already. */
static void note_untold(struct smi_matrix *m, const bool *named)
{
	bool in[SMI_ENTRIES] = {false};
	size_t pairs = 0, among = 0, used = 0;
	char list[150] = "";
	for (size_t i = 0; i < m->n; i++)
		for (size_t k = i + 1; k < m->n; k++) {
			if (m->word[i][k][0])
				continue;
			in[i] = in[k] = true;
			pairs++;
			if (used + strlen(m->entry[i].key) + strlen(m->entry[k].key) + 16 < sizeof list)
				used += (size_t)snprintf(list + used, sizeof list - used, "%s%s to %s",
					used ? ", " : "", m->entry[i].key, m->entry[k].key);
		}
	for (size_t i = 0; i < m->n; i++)
		among += in[i];
	bool all = pairs == among * (among - 1) / 2;
	if (!pairs || (all && memcmp(in, named, sizeof in) == 0))
		return;
	if (all && pairs > 1)
		list_entries(m, in, list, sizeof list);
	smi_note(m, false, "the dump does not tell %zu link%s: %s%s", pairs, pairs == 1 ? "" : "s",
		all && pairs > 1 ? "those among " : "", list);
}

/* Entries of a kind without a row; how many links that leaves untold. */
static size_t missing_rows(const struct smi_matrix *m, bool nic, bool *in, size_t *of, size_t *links)
{
	size_t n = 0;
	*of = *links = 0;
	for (size_t i = 0; i < m->n; i++) {
		bool counts = m->entry[i].nic == nic;
		in[i] = counts && !m->entry[i].row;
		*of += counts;
		n += in[i];
		for (size_t k = 0; k < i && in[i]; k++)
			*links += in[k] && !m->word[i][k][0];
	}
	return n;
}

static void notes(struct smi_reading *r)
{
	struct smi_matrix *m = r->m;
	bool named[SMI_ENTRIES] = {false};
	for (int nic = 0; nic < 2; nic++) {
		char list[150] = "", among[64] = "";
		bool in[SMI_ENTRIES] = {false};
		size_t of, links, missing = missing_rows(m, nic == 1, in, &of, &links);
		if (!missing)
			continue;
		list_entries(m, in, list, sizeof list);
		if (links)
			snprintf(among, sizeof among, "; the dump does not tell %zu link%s among them", links,
				links == 1 ? "" : "s");
		smi_note(m, false, "%zu of %zu %s rows are missing: %s%s", missing, of, nic ? "NIC" : "GPU", list,
			among);
		memcpy(named, in, sizeof named);
	}
	note_untold(m, named);
	if (r->lists)
		smi_note(m, false,
			"the NUMA affinity of %zu rows is a list: the first node of each is taken for the CPU's",
			r->lists);
	if (r->cores_cut)
		smi_note(m, false,
			"the CPU affinity of %zu rows is longer than %d characters: only its first ranges are kept",
			r->cores_cut, GRAPH_CORES - 1);
	if (r->odd_tails)
		smi_note(m, false, "the affinity of %zu rows cannot be told from their columns: left out",
			r->odd_tails);
}

/* Reads the rows from line `from` on under these columns. */
static enum status attempt(struct smi_reading *r, size_t from, int line, struct error *e)
{
	bool gpu = false;
	smi_rows_gather(r, from);
	r->m->line = line;
	enum status st = entries(r, line, e);
	if (!st)
		st = rows(r, e);
	if (st || r->m->peer)
		return st;
	st = halves(r, e);
	for (size_t i = 0; i < r->c->n; i++) /* a row with its X: else it may be no header, but the remains of a row */
		gpu |= !r->m->entry[r->column[i]].nic && r->m->entry[r->column[i]].row;
	if (!st && !gpu)
		st = error_set(e, ST_INPUT, "%s:%d: no row of one of these GPUs below this header", r->name, line);
	if (!st)
		notes(r);
	return st;
}

static void reading_free(struct smi_reading *r)
{
	if (!r)
		return;
	free(r->raw);
	free(r->c);
	free(r->other);
	free(r->m);
	free(r);
}

static struct smi_reading *reading_create(const struct smi_text *t, const char *name)
{
	struct smi_reading *r = calloc(1, sizeof *r);
	if (!r)
		return NULL;
	r->t = t;
	r->name = name;
	r->c = calloc(1, sizeof *r->c);
	r->other = calloc(1, sizeof *r->other);
	r->m = calloc(1, sizeof *r->m);
	r->raw = calloc(4 * SMI_ENTRIES, sizeof *r->raw);
	if (!r->c || !r->other || !r->m || !r->raw) {
		reading_free(r);
		return NULL;
	}
	return r;
}

/* Columns where the header was not pasted: every row has its X in its own column, and there is a row for each. */
static bool columns_of_rows(const struct smi_text *t, struct smi_columns *c, size_t *first)
{
	struct smi_raw row;
	char word[GRAPH_WORD];
	size_t n = 0;
	for (size_t i = 0; i < t->line.n; i++)
		if (smi_row(t->line.at[i].text, NULL, &row)) {
			*first = n ? *first : i;
			n++;
		}
	if (!n || n > SMI_ENTRIES)
		return false;
	memset(c, 0, sizeof *c);
	for (size_t i = 0; i < t->line.n; i++) {
		struct smi_token cell;
		size_t at = 0;
		bool own = false;
		if (!smi_row(t->line.at[i].text, NULL, &row))
			continue;
		for (const char *s = row.rest; !own && smi_token_next(&s, &cell) && smi_all_words(cell);) {
			for (size_t k = 0, len; k < cell.len && !own; k += len) {
				len = smi_word_at(cell.at + k, cell.len - k, word);
				own = strcmp(word, "X") == 0;
				at += !own;
			}
		}
		if (!own || at >= n || c->key[at][0])
			return false;
		memcpy(c->key[at], row.key, sizeof row.key);
	}
	c->n = n;
	return true;
}

static bool same_columns(const struct smi_columns *a, const struct smi_columns *b)
{
	bool same = a->n == b->n;
	for (size_t i = 0; same && i < a->n; i++)
		same = strcmp(a->key[i], b->key[i]) == 0;
	return same;
}

/* The lines between a header and its first row: the rest of a wrapped header, or nothing of it. False when no row
 * follows. */
static bool header_pieces(struct smi_reading *r, size_t at, const char **piece, size_t *n, size_t *first_row)
{
	const struct smi_text *t = r->t;
	struct smi_raw row;
	size_t blanks = 0, again = 0;
	*n = 0;
	for (size_t i = at + 1; i < t->line.n; i++) {
		const char *line = t->line.at[i].text;
		if (smi_row(line, r->c, &row)) {
			*first_row = i;
			return true;
		}
		if (smi_blank(line)) {
			if (++blanks > 3)
				return false;
			continue;
		}
		if (smi_columns_of(line, r->other) && same_columns(r->other, r->c)) {
			if (++again > 3)
				return false;
			continue;
		}
		if (*n == SMI_PIECES)
			return false;
		piece[(*n)++] = line;
	}
	return false;
}

/* The best reading so far of a header in the ways in which its pieces can belong together. */
struct choice {
	struct smi_reading *best;
	int cost;
	struct error refusal; /* the first one */
};

/* Tries one way: bit i of `direct` as in smi_put_together. *r is a fresh reading, and may be exchanged for a worse one.
 */
static enum status try_header(struct smi_reading **r, struct choice *c, size_t at, const char *const *piece, size_t n,
	unsigned direct, size_t first_row, struct error *e)
{
	struct smi_reading *now = *r;
	struct error why = {0};
	int cost, line = now->t->line.at[at].number;
	if (!smi_put_together(now->text, now->t->line.at[at].text, piece, n, direct, &cost) ||
		!smi_columns_of(now->text, now->c))
		return ST_OK;
	cost += now->c->odd ? SMI_PIECES + 1 : 0; /* what leaves nothing over is the better reading */
	if (c->best && cost >= c->cost && same_columns(c->best->c, now->c))
		return ST_OK;
	enum status tried = attempt(now, first_row, line, &why);
	if (tried == ST_RUN)
		return error_set(e, tried, "%s", why.text);
	if (tried) {
		c->refusal = c->refusal.status ? c->refusal : why;
	} else if (c->best && cost == c->cost && !same_columns(c->best->c, now->c)) {
		return error_set(e, ST_INPUT, "%s:%d: the wrapped header can be read in two ways", now->name, line);
	} else if (!c->best || cost < c->cost) {
		*r = c->best;
		c->best = now;
		c->cost = cost;
	}
	return ST_OK;
}

/* Where no header was pasted. */
static enum status without_header(struct smi_reading *r, struct smi_matrix **m, struct error *e)
{
	size_t first_row = 0;
	if (!columns_of_rows(r->t, r->c, &first_row))
		return ST_OK;
	enum status st = attempt(r, first_row, r->t->line.at[first_row].number, e);
	if (st)
		return st;
	smi_note(r->m, false, "there is no header line: the columns are taken from the rows, affinity is left out");
	*m = r->m;
	r->m = NULL;
	return ST_OK;
}

enum status smi_matrix_read(const struct smi_text *t, size_t at, const char *name, struct smi_matrix **m, size_t *next,
	struct error *e)
{
	const char *piece[SMI_PIECES];
	size_t n = 0, first_row = 0;
	struct choice c = {0};
	struct smi_reading *r = reading_create(t, name);
	enum status st = r ? ST_OK : error_nomem(e, "a topology dump");
	*m = NULL;
	*next = at + 1;
	if (!st && at == t->line.n) {
		st = without_header(r, m, e);
		goto out;
	}
	if (st || !smi_columns_of(t->line.at[at].text, r->c) || !header_pieces(r, at, piece, &n, &first_row))
		goto out;
	/* Every way in which the pieces can belong together, and the header line alone last; the first that works, and
	 * none that works otherwise. */
	for (unsigned direct = 0; direct <= 1u << n && !st; direct++) {
		bool alone = direct == 1u << n;
		if (alone && (n == 0 || c.best))
			break;
		reading_free(r);
		r = reading_create(t, name);
		st = r ? try_header(&r, &c, at, piece, alone ? 0 : n, direct, first_row, e)
		       : error_nomem(e, "a topology dump");
	}
	if (!st && c.best) {
		*m = c.best->m;
		*next = c.best->next > at ? c.best->next : at + 1;
		c.best->m = NULL;
	} else if (!st && c.refusal.status) {
		st = error_set(e, ST_INPUT, "%s", c.refusal.text);
	}
out:
	reading_free(r);
	reading_free(c.best);
	return st;
}
