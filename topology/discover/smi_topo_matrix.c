#include "topology/discover/smi_topo.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define PIECES 7 /* lines that one row or header can be wrapped onto, the first not counted */
#define ROW_TEXT 8192

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

/* A row before its cells are told apart: the text behind its label, and what a wrap put onto lines of its own. */
struct raw {
	char key[GRAPH_NAME];
	int32_t number;
	enum smi_label kind;
	size_t line, n_pieces;
	const char *rest, *piece[PIECES];
};

struct cells {
	char word[SMI_ENTRIES][GRAPH_WORD];
	const char *tail;
	char why[200];
	bool peer, few; /* few: only cells are missing at the end, or the last one is cut */
};

struct reading {
	const struct smi_text *t;
	const char *name;
	struct smi_columns *c;
	struct smi_matrix *m;
	int32_t column[SMI_ENTRIES]; /* entry of each column */
	struct raw *raw;
	size_t n_raw, next, cores_cut, lists, odd_tails;
	struct cells cells;
	char text[ROW_TEXT], best[ROW_TEXT];
};

static bool is_blank(const char *s)
{
	return s[strspn(s, " \t-+=:.~_")] == '\0';
}

static bool is_legend(const char *s)
{
	struct smi_token a, b;
	if (!smi_token_next(&s, &a))
		return false;
	if (a.len >= 6 && strncasecmp(a.at, "Legend", 6) == 0)
		return true;
	return smi_token_next(&s, &b) && ((b.len == 1 && *b.at == '=') || (b.len >= 6 && strncasecmp(b.at, "Legend", 6) == 0));
}

static bool has_column(const struct smi_columns *c, const char *key)
{
	for (size_t i = 0; c && i < c->n; i++)
		if (strcmp(c->key[i], key) == 0)
			return true;
	return false;
}

/* Whether a line is a row: a label, then a link word. Names of NICs count where the header has them (c NULL: only mlx5_0 and the like). */
static bool is_row(const char *line, const struct smi_columns *c, struct raw *r)
{
	struct smi_token t, cell;
	const char *s = line;
	while (smi_token_next(&s, &t)) {
		if (smi_all_words(t))
			return false;
		r->kind = smi_label_of(t, r->key, &r->number);
		bool label = r->kind == SMI_GPU || r->kind == SMI_NIC || (r->kind == SMI_NAMED && (c ? has_column(c, r->key) : strncmp(r->key, "mlx", 3) == 0));
		const char *after = s;
		if (label && smi_token_next(&after, &cell) && (smi_all_words(cell) || smi_peer_word(cell))) {
			r->rest = s;
			r->n_pieces = 0;
			return true;
		}
	}
	return false;
}

/* Puts pieces behind `first`; bit i of `direct`: piece i goes on within a word. *cost: how often that ignores a blank. False when it is too long. */
static bool put_together(char out[ROW_TEXT], const char *first, const char *const *piece, size_t n, unsigned direct, int *cost)
{
	size_t used = strlen(first);
	*cost = 0;
	if (used >= ROW_TEXT)
		return false;
	memcpy(out, first, used + 1);
	for (size_t i = 0; i < n; i++) {
		const char *p = piece[i];
		bool spaced = strspn(p, " \t") > 0 || (used && strchr(" \t", out[used - 1]));
		if (direct >> i & 1) {
			*cost += spaced;
			p += strspn(p, " \t");
			while (used && strchr(" \t", out[used - 1]))
				used--;
		} else if (used + 1 < ROW_TEXT) {
			out[used++] = ' ';
		}
		size_t len = strlen(p);
		if (used + len + 1 >= ROW_TEXT)
			return false;
		memcpy(out + used, p, len + 1);
		used += len;
	}
	return true;
}

/* Exactly n link words, then something else. */
static bool cells_of(const char *text, size_t n, struct cells *out)
{
	size_t got = 0;
	const char *s = text;
	struct smi_token t;
	out->peer = out->few = false;
	while (got < n) {
		if (!smi_token_next(&s, &t)) {
			out->few = true;
			snprintf(out->why, sizeof out->why, "%zu link words, but %zu columns", got, n);
			return false;
		}
		size_t at = 0, len;
		while (at < t.len && got < n && (len = smi_word_at(t.at + at, t.len - at, out->word[got])) > 0) {
			at += len;
			got++;
		}
		if (at == t.len)
			continue;
		/* "NV120-63" is NV12 and a list or NV1 and a list */
		bool glued = got == n && at > 0 && !(strncmp(out->word[got - 1], "NV", 2) == 0) && !isalpha((unsigned char)t.at[at]);
		if (glued) {
			s = t.at + at;
			break;
		}
		const char *left = s;
		struct smi_token more;
		out->peer = smi_peer_word(t);
		out->few = !smi_token_next(&left, &more);
		snprintf(out->why, sizeof out->why, "'%.*s' in column %zu of %zu is no link word", (int)(t.len < 60 ? t.len : 60), t.at, got + 1, n);
		return false;
	}
	out->tail = s;
	if (smi_token_next(&s, &t) && smi_all_words(t)) {
		snprintf(out->why, sizeof out->why, "more link words than the %zu columns", n);
		return false;
	}
	return true;
}

static bool same_cells(const struct cells *a, const struct cells *b, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(a->word[i], b->word[i]))
			return false;
	return true;
}

/* The cells of a row, over every way in which its pieces can belong together: the one that takes the least liberty, if it is the only one. The text stays in r->best. */
static bool row_cells(struct reading *r, const struct raw *raw)
{
	struct cells *try = calloc(1, sizeof *try);
	int best = -1, cost;
	bool twice = false;
	if (!try) {
		snprintf(r->cells.why, sizeof r->cells.why, "out of memory");
		return false;
	}
	char why[sizeof try->why] = "";
	bool peer = false, few = false;
	for (unsigned direct = 0; direct < 1u << raw->n_pieces; direct++) {
		if (!put_together(r->text, raw->rest, raw->piece, raw->n_pieces, direct, &cost))
			continue;
		if (!cells_of(r->text, r->c->n, try)) {
			if (!why[0])
				memcpy(why, try->why, sizeof why);
			peer |= try->peer;
			few |= try->few;
			continue;
		}
		cost += smi_tail_odd(try->tail, r->c) ? PIECES + 1 : 0; /* a digit left over was part of "NV12" */
		if (best >= 0 && cost == best && !same_cells(try, &r->cells, r->c->n)) {
			twice = true;
		} else if (best < 0 || cost < best) {
			twice = false;
			best = cost;
			r->cells = *try;
			memcpy(r->best, r->text, sizeof r->best);
			r->cells.tail = r->best + (try->tail - r->text);
		}
	}
	free(try);
	if (best >= 0 && !twice)
		return true;
	r->cells.peer = peer;
	r->cells.few = few;
	memcpy(r->cells.why, why, sizeof why);
	if (best >= 0)
		snprintf(r->cells.why, sizeof r->cells.why, "the wrapped row can be read in two ways");
	return false;
}

/* Affinity in every way in which the pieces can belong together; unknown unless all that can be told are the same. */
static void row_affinity(struct reading *r, const struct raw *raw, struct smi_entry *entry)
{
	struct cells *try = calloc(1, sizeof *try);
	bool any = false, same = true, list = false, cut = false;
	char cores[GRAPH_CORES];
	int32_t numa;
	int cost;
	if (!try)
		return;
	for (unsigned direct = 0; direct < 1u << raw->n_pieces; direct++) {
		bool l = false, k = false;
		if (!put_together(r->text, raw->rest, raw->piece, raw->n_pieces, direct, &cost) || !cells_of(r->text, r->c->n, try) || !smi_tail_read(try->tail, r->c, cores, &numa, &l, &k))
			continue;
		same &= !any || (numa == entry->numa && strcmp(cores, entry->cores) == 0);
		any = true;
		list |= l;
		cut |= k;
		entry->numa = numa;
		memcpy(entry->cores, cores, sizeof cores);
	}
	free(try);
	if (!any || !same) {
		entry->numa = -1;
		entry->cores[0] = '\0';
		r->odd_tails++;
		return;
	}
	r->lists += list;
	r->cores_cut += cut;
}

/* A line that is no row can be the rest of a wrapped one: cells, or (where the header was wrapped too) a list of cores. */
static bool is_piece(const char *line, bool only_lists)
{
	struct smi_token t;
	bool any = false;
	while (smi_token_next(&line, &t)) {
		any = true;
		bool list = strspn(t.at, "0123456789,-") >= t.len || (t.len == 3 && strncasecmp(t.at, "N/A", 3) == 0);
		if (only_lists && !list)
			return false;
	}
	return any;
}

/* The rows below the header, until a legend, another header, or text behind a blank line. */
static enum status gather(struct reading *r, size_t from, bool wrapped, struct error *e)
{
	const struct smi_text *t = r->t;
	struct smi_columns *other = malloc(sizeof *other);
	struct raw *last = NULL;
	bool blank = false;
	size_t i;
	if (!other)
		return error_nomem(e, "the rows of a topology dump");
	for (i = from; i < t->line.n && r->n_raw < 4 * SMI_ENTRIES; i++) {
		char *line = t->line.at[i].text;
		struct raw row = {.line = i};
		if (is_row(line, r->c, &row)) {
			r->raw[r->n_raw] = row;
			last = &r->raw[r->n_raw++];
			blank = false;
		} else if (is_blank(line)) {
			blank = true;
		} else if (is_legend(line)) {
			break;
		} else if (smi_columns_of(line, other)) {
			if (last)
				break;
		} else if (last && !blank && last->n_pieces < PIECES) {
			bool full = last->n_pieces == 0 && cells_of(last->rest, r->c->n, &r->cells);
			const char *s = line;
			struct smi_token first;
			bool links = smi_token_next(&s, &first) && smi_all_words(first);
			if (!full || links || (wrapped && is_piece(line, true)))
				last->piece[last->n_pieces++] = line;
		} else if (last && blank) {
			break;
		}
	}
	r->next = i;
	free(other);
	return ST_OK;
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

/* Entries from columns and rows; NICs that go by their names are numbered behind those that have a number, in the order of the columns. */
static enum status entries(struct reading *r, int line, struct error *e)
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
			return error_set(e, ST_INPUT, "%s:%d: more than %d rows and columns", r->name, r->t->line.at[r->raw[i].line].number, SMI_ENTRIES);
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

static enum status take_row(struct reading *r, const struct raw *raw, struct error *e)
{
	struct smi_matrix *m = r->m;
	size_t me = (size_t)entry_of(m, raw->key);
	int line = r->t->line.at[raw->line].number;
	bool again = m->entry[me].row != 0;
	for (size_t i = 0; i < r->c->n; i++) {
		size_t other = (size_t)r->column[i];
		const char *word = r->cells.word[i];
		if ((strcmp(word, "X") == 0) != (other == me))
			return error_set(e, ST_INPUT, "%s:%d: row %s has '%s' in column %s: the X of a row stands in its own column", r->name, line, raw->key, word, r->c->key[i]);
		if (again && strcmp(m->word[me][other], word))
			return error_set(e, ST_INPUT, "%s:%d: a second row %s (the first is line %d) that says '%s' to %s where the first says '%s': one host a file", r->name, line, raw->key, m->entry[me].row, word,
				r->c->key[i], m->word[me][other]);
		memcpy(m->word[me][other], word, GRAPH_WORD);
	}
	if (again)
		return ST_OK;
	m->entry[me].row = line;
	row_affinity(r, raw, &m->entry[me]);
	return ST_OK;
}

static bool last_of_text(const struct smi_text *t, size_t line)
{
	for (size_t i = line + 1; i < t->line.n; i++)
		if (!is_blank(t->line.at[i].text))
			return false;
	return true;
}

static enum status rows(struct reading *r, struct error *e)
{
	for (size_t i = 0; i < r->n_raw; i++) {
		const struct raw *raw = &r->raw[i];
		int line = r->t->line.at[raw->line].number;
		enum status st = ST_OK;
		if (row_cells(r, raw)) {
			st = take_row(r, raw, e);
		} else if (r->cells.peer) {
			r->m->peer = true;
			return ST_OK;
		} else if (r->cells.few && r->n_raw > 1 && i + 1 == r->n_raw && raw->n_pieces == 0 && last_of_text(r->t, raw->line)) {
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
static enum status halves(struct reading *r, struct error *e)
{
	struct smi_matrix *m = r->m;
	for (size_t i = 0; i < m->n; i++)
		for (size_t k = 0; k < i; k++) {
			char *a = m->word[i][k], *b = m->word[k][i];
			if (a[0] && b[0] && strcmp(a, b)) {
				const struct smi_entry *x = &m->entry[i], *y = &m->entry[k];
				return error_set(e, ST_INPUT, "%s:%d: row %s says '%s' to %s, row %s (line %d) says '%s' to %s", r->name, x->row, x->key, a, y->key, y->key, y->row, b, x->key);
			}
			memcpy(a[0] ? b : a, a[0] ? a : b, GRAPH_WORD);
		}
	for (size_t i = 0; i < m->n; i++)
		snprintf(m->word[i][i], GRAPH_WORD, "X");
	return ST_OK;
}

static void notes(struct reading *r)
{
	struct smi_matrix *m = r->m;
	for (int nic = 0; nic < 2; nic++) {
		char list[160] = "";
		size_t missing = 0, used = 0, of = 0;
		for (size_t i = 0; i < m->n; i++) {
			if (m->entry[i].nic != (nic == 1))
				continue;
			of++;
			if (m->entry[i].row)
				continue;
			missing++;
			if (used + strlen(m->entry[i].key) + 8 < sizeof list)
				used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", missing > 1 ? ", " : "", m->entry[i].key);
			else if (used && list[used - 1] != '.')
				used += (size_t)snprintf(list + used, sizeof list - used, ", ...");
		}
		if (missing)
			smi_note(m, false, "%zu of %zu %s rows are missing: %s", missing, of, nic ? "NIC" : "GPU", list);
	}
	if (r->lists)
		smi_note(m, false, "the NUMA affinity of %zu rows is a list: the first node of each is taken for the CPU's", r->lists);
	if (r->cores_cut)
		smi_note(m, false, "the CPU affinity of %zu rows is longer than %d characters: only its first ranges are kept", r->cores_cut, GRAPH_CORES - 1);
	if (r->odd_tails)
		smi_note(m, false, "the affinity of %zu rows cannot be told from their columns: left out", r->odd_tails);
}

/* Reads the rows from line `from` on under these columns. */
static enum status attempt(struct reading *r, size_t from, bool wrapped, int line, struct error *e)
{
	enum status st = gather(r, from, wrapped, e);
	bool gpu = false;
	r->m->line = line;
	if (!st)
		st = entries(r, line, e);
	if (!st)
		st = rows(r, e);
	if (st || r->m->peer)
		return st;
	st = halves(r, e);
	for (size_t i = 0; i < r->m->n; i++)
		gpu |= !r->m->entry[i].nic && r->m->entry[i].row;
	if (!st && !gpu)
		st = error_set(e, ST_INPUT, "%s:%d: no row of a GPU below this header", r->name, line);
	if (!st)
		notes(r);
	return st;
}

static void reading_free(struct reading *r)
{
	if (!r)
		return;
	free(r->raw);
	free(r->c);
	free(r->m);
	free(r);
}

static struct reading *reading_create(const struct smi_text *t, const char *name)
{
	struct reading *r = calloc(1, sizeof *r);
	if (!r)
		return NULL;
	r->t = t;
	r->name = name;
	r->c = calloc(1, sizeof *r->c);
	r->m = calloc(1, sizeof *r->m);
	r->raw = calloc(4 * SMI_ENTRIES, sizeof *r->raw);
	if (!r->c || !r->m || !r->raw) {
		reading_free(r);
		return NULL;
	}
	return r;
}

/* Columns where the header was not pasted: every row has its X in its own column, and there is a row for each. */
static bool columns_of_rows(const struct smi_text *t, struct smi_columns *c, size_t *first)
{
	struct raw row;
	char word[GRAPH_WORD];
	size_t n = 0;
	for (size_t i = 0; i < t->line.n; i++)
		if (is_row(t->line.at[i].text, NULL, &row)) {
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
		if (!is_row(t->line.at[i].text, NULL, &row))
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

/* The lines between a header and its first row: the rest of a wrapped header, or nothing of it. False when no row follows. */
static bool header_pieces(const struct smi_text *t, size_t at, const struct smi_columns *header, const char **piece, size_t *n, size_t *first_row)
{
	struct raw row;
	size_t blanks = 0;
	*n = 0;
	for (size_t i = at + 1; i < t->line.n; i++) {
		const char *line = t->line.at[i].text;
		if (is_row(line, header, &row)) {
			*first_row = i;
			return true;
		}
		if (is_blank(line)) {
			if (++blanks > 3)
				return false;
			continue;
		}
		struct smi_columns *other = malloc(sizeof *other);
		bool again = other && smi_columns_of(line, other) && same_columns(other, header);
		free(other);
		if (again)
			continue;
		if (*n == PIECES)
			return false;
		piece[(*n)++] = line;
	}
	return false;
}

enum status smi_matrix_read(const struct smi_text *t, size_t at, const char *name, struct smi_matrix **m, size_t *next, struct error *e)
{
	enum status st = ST_OK;
	const char *piece[PIECES];
	size_t n = 0, first_row = 0;
	struct reading *r = reading_create(t, name), *best = NULL;
	struct error first_error = {0};
	*m = NULL;
	*next = at + 1;
	if (!r)
		return error_nomem(e, "a topology dump");
	if (at == t->line.n) {
		if (!columns_of_rows(t, r->c, &first_row))
			goto out;
		st = attempt(r, first_row, false, t->line.at[first_row].number, e);
		if (!st) {
			smi_note(r->m, false, "there is no header line: the columns are taken from the rows, affinity is left out");
			*m = r->m;
			r->m = NULL;
		}
		goto out;
	}
	if (!smi_columns_of(t->line.at[at].text, r->c) || !header_pieces(t, at, r->c, piece, &n, &first_row))
		goto out;
	/* Every way in which the pieces can belong together, and the header line alone last; the first that works, and none that works otherwise. */
	int best_cost = 0;
	for (unsigned direct = 0; direct <= 1u << n && !st; direct++) {
		bool alone = direct == 1u << n;
		int cost;
		struct error why = {0};
		if (alone && (n == 0 || best))
			break;
		reading_free(r);
		r = reading_create(t, name);
		if (!r) {
			st = error_nomem(e, "a topology dump");
			break;
		}
		if (!put_together(r->text, t->line.at[at].text, piece, alone ? 0 : n, direct, &cost) || !smi_columns_of(r->text, r->c))
			continue;
		cost += r->c->odd ? PIECES + 1 : 0; /* what leaves nothing over is the better reading */
		if (best && cost >= best_cost && same_columns(best->c, r->c))
			continue;
		enum status tried = attempt(r, first_row, n > 0, t->line.at[at].number, &why);
		if (tried == ST_RUN) {
			st = error_set(e, tried, "%s", why.text);
		} else if (tried) {
			first_error = first_error.status ? first_error : why;
		} else if (best && cost == best_cost && !same_columns(best->c, r->c)) {
			st = error_set(e, ST_INPUT, "%s:%d: the wrapped header can be read in two ways", name, t->line.at[at].number);
		} else if (!best || cost < best_cost) {
			struct reading *worse = best;
			best = r;
			best_cost = cost;
			r = worse;
		}
	}
	if (!st && best) {
		*m = best->m;
		*next = best->next > at ? best->next : at + 1;
		best->m = NULL;
	} else if (!st && first_error.status) {
		st = error_set(e, ST_INPUT, "%s", first_error.text);
	}
out:
	reading_free(r);
	reading_free(best);
	return st;
}
