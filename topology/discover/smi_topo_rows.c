#include "topology/discover/smi_topo_rows.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

bool smi_blank(const char *s) { return s[strspn(s, " \t-+=:.~_")] == '\0'; }

static bool is_legend(const char *s)
{
	struct smi_token a, b;
	if (!smi_token_next(&s, &a))
		return false;
	if (a.len >= 6 && strncasecmp(a.at, "Legend", 6) == 0)
		return true;
	return smi_token_next(&s, &b) &&
	       ((b.len == 1 && *b.at == '=') || (b.len >= 6 && strncasecmp(b.at, "Legend", 6) == 0));
}

static bool has_column(const struct smi_columns *c, const char *key)
{
	for (size_t i = 0; c && i < c->n; i++)
		if (strcmp(c->key[i], key) == 0)
			return true;
	return false;
}

/* A label that lost the tab behind it: "GPU2SYS". The length of the label, 0 for none. */
static size_t glued_label(struct smi_token t, const struct smi_columns *c, struct smi_raw *r)
{
	size_t n = smi_label_prefix(t.at, t.len);
	for (size_t i = 0; !n && c && i < c->n; i++) {
		size_t len = strlen(c->key[i]);
		if (len < t.len && memcmp(t.at, c->key[i], len) == 0 &&
			smi_all_words((struct smi_token){t.at + len, t.len - len}))
			n = len;
	}
	if (!n || n >= t.len || !smi_all_words((struct smi_token){t.at + n, t.len - n}))
		return 0;
	r->kind = smi_label_of((struct smi_token){t.at, n}, r->key, &r->number);
	return r->kind != SMI_NO_LABEL && (r->kind != SMI_NAMED || !c || has_column(c, r->key)) ? n : 0;
}

/* The X of a row as some write it. */
static bool is_self(struct smi_token t)
{
	return (t.len == 1 && *t.at == '-') || (t.len == 4 && strncasecmp(t.at, "Self", 4) == 0);
}

static bool first_cell(struct smi_token cell, const char *after)
{
	struct smi_token next;
	return smi_all_words(cell) || smi_peer_word(cell) ||
	       (is_self(cell) && smi_token_next(&after, &next) && smi_all_words(next));
}

bool smi_row(const char *line, const struct smi_columns *c, struct smi_raw *r)
{
	struct smi_token t, cell;
	const char *s = line;
	bool cells = true; /* a link word here would be a cell: at once, or behind another one. Elsewhere it is a word
	                      of a prefix, as in {"node":"gpu3"} */
	while (smi_token_next(&s, &t)) {
		bool word = smi_all_words(t);
		if (word && cells)
			return false;
		cells = word;
		r->kind = smi_label_of(t, r->key, &r->number);
		r->n_pieces = 0;
		r->prefixed = t.at != line + strspn(line, " \t");
		bool label = r->kind == SMI_GPU || r->kind == SMI_NIC ||
		             (r->kind == SMI_NAMED && (c ? has_column(c, r->key) : strncmp(r->key, "mlx", 3) == 0));
		const char *after = s;
		if (label && smi_token_next(&after, &cell) && first_cell(cell, after)) {
			r->rest = s;
			return true;
		}
		size_t glued = glued_label(t, c, r);
		if (glued) {
			r->rest = t.at + glued;
			return true;
		}
	}
	return false;
}

bool smi_is_row(const char *line)
{
	struct smi_raw ignored;
	return smi_row(line, NULL, &ignored);
}

bool smi_put_together(char out[SMI_ROW_TEXT], const char *first, const char *const *piece, size_t n, unsigned direct,
	int *cost)
{
	size_t used = strlen(first);
	*cost = 0;
	if (used >= SMI_ROW_TEXT)
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
		} else if (used + 1 < SMI_ROW_TEXT) {
			out[used++] = ' ';
		}
		size_t len = strlen(p);
		if (used + len + 1 >= SMI_ROW_TEXT)
			return false;
		memcpy(out + used, p, len + 1);
		used += len;
	}
	return true;
}

/* Exactly n link words, then something else. */
static bool cells_of(const char *text, size_t n, struct smi_cells *out)
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
		if (is_self(t)) {
			snprintf(out->word[got++], GRAPH_WORD, "X");
			continue;
		}
		size_t at = 0, len;
		while (at < t.len && got < n && (len = smi_word_at(t.at + at, t.len - at, out->word[got])) > 0) {
			at += len;
			got++;
		}
		if (at == t.len)
			continue;
		/* "NV120-63" is NV12 and a list or NV1 and a list */
		bool glued = got == n && at > 0 && !(strncmp(out->word[got - 1], "NV", 2) == 0) &&
		             !isalpha((unsigned char)t.at[at]);
		if (glued) {
			s = t.at + at;
			break;
		}
		const char *left = s;
		struct smi_token more;
		out->peer = smi_peer_word(t);
		out->few = !smi_token_next(&left, &more);
		snprintf(out->why, sizeof out->why, "'%.*s' in column %zu of %zu is no link word",
			(int)(t.len < 60 ? t.len : 60), t.at, got + 1, n);
		return false;
	}
	out->tail = s;
	if (smi_token_next(&s, &t) && smi_all_words(t)) {
		snprintf(out->why, sizeof out->why, "more link words than the %zu columns", n);
		return false;
	}
	return true;
}

static bool same_cells(const struct smi_cells *a, const struct smi_cells *b, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(a->word[i], b->word[i]))
			return false;
	return true;
}

bool smi_row_cells(struct smi_reading *r, const struct smi_raw *raw)
{
	struct smi_cells *try = &r->try;
	int best = -1, cost;
	bool twice = false;
	char why[sizeof try->why] = "";
	bool peer = false, few = false;
	for (unsigned direct = 0; direct < 1u << raw->n_pieces; direct++) {
		if (!smi_put_together(r->text, raw->rest, raw->piece, raw->n_pieces, direct, &cost))
			continue;
		if (!cells_of(r->text, r->c->n, try)) {
			if (!why[0])
				memcpy(why, try->why, sizeof why);
			peer |= try->peer;
			few |= try->few;
			continue;
		}
		cost += smi_tail_odd(try->tail, r->c) ? SMI_PIECES + 1 : 0; /* a digit left over was part of "NV12" */
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
	if (best >= 0 && !twice)
		return true;
	r->cells.peer = peer;
	r->cells.few = few;
	memcpy(r->cells.why, why, sizeof why);
	if (best >= 0)
		snprintf(r->cells.why, sizeof r->cells.why, "the wrapped row can be read in two ways");
	return false;
}

void smi_row_affinity(struct smi_reading *r, const struct smi_raw *raw, struct smi_entry *entry)
{
	struct smi_cells *try = &r->try;
	bool any = false, same = true, list = false, cut = false;
	char cores[GRAPH_CORES];
	int32_t numa;
	int cost;
	for (unsigned direct = 0; direct < 1u << raw->n_pieces; direct++) {
		bool l = false, k = false;
		if (!smi_put_together(r->text, raw->rest, raw->piece, raw->n_pieces, direct, &cost) ||
			!cells_of(r->text, r->c->n, try) || !smi_tail_read(try->tail, r->c, cores, &numa, &l, &k))
			continue;
		same &= !any || (numa == entry->numa && strcmp(cores, entry->cores) == 0);
		any = true;
		list |= l;
		cut |= k;
		entry->numa = numa;
		memcpy(entry->cores, cores, sizeof cores);
	}
	if (!any || !same) {
		entry->numa = -1;
		entry->cores[0] = '\0';
		r->odd_tails++;
		return;
	}
	r->lists += list;
	r->cores_cut += cut;
}

/* A line that is no row can be the rest of a list of cores that was wrapped. */
static bool is_piece(const char *line)
{
	struct smi_token t;
	bool any = false;
	while (smi_token_next(&line, &t)) {
		any = true;
		if (strspn(t.at, "0123456789,-") < t.len && (t.len != 3 || strncasecmp(t.at, "N/A", 3) != 0))
			return false;
	}
	return any;
}

void smi_rows_gather(struct smi_reading *r, size_t from)
{
	const struct smi_text *t = r->t;
	struct smi_raw *last = NULL;
	bool blank = false;
	size_t i;
	for (i = from; i < t->line.n && r->n_raw < 4 * SMI_ENTRIES; i++) {
		char *line = t->line.at[i].text;
		struct smi_raw row = {.line = i};
		if (smi_row(line, r->c, &row)) {
			r->raw[r->n_raw] = row;
			last = &r->raw[r->n_raw++];
			blank = false;
		} else if (smi_blank(line)) {
			blank = true;
		} else if (is_legend(line)) {
			break;
		} else if (smi_columns_of(line, r->other)) {
			if (last)
				break;
		} else if (last && !blank && last->n_pieces < SMI_PIECES) {
			bool full = last->n_pieces == 0 && cells_of(last->rest, r->c->n, &r->cells);
			const char *s = line;
			struct smi_token first;
			bool links = smi_token_next(&s, &first) && smi_all_words(first);
			if (!full || links ||
				(is_piece(line) && (!last->prefixed ||
							   strpbrk(line, ",-")))) /* else the number of an empty line */
				last->piece[last->n_pieces++] = line;
		} else if (last && blank) {
			break;
		}
	}
	r->next = i;
}
