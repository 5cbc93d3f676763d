#include "topology/discover/smi_topo.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topology/discover/discover.h"

/* The name behind "NIC0:" at this token, in it or in the next one; an empty token when there is none. */
static struct smi_token legend_name(struct smi_token t, const char *rest)
{
	size_t n = smi_label_prefix(t.at, t.len);
	struct smi_token next = {0};
	if (!n)
		return next;
	if (n < t.len && strchr(":=", t.at[n])) {
		if (n + 1 < t.len)
			return (struct smi_token){t.at + n + 1, t.len - n - 1};
		smi_token_next(&rest, &next);
	} else if (n == t.len && smi_token_next(&rest, &next) && next.len == 1 && strchr(":=", *next.at)) {
		smi_token_next(&rest, &next);
	} else {
		next = (struct smi_token){0};
	}
	return next;
}

/* A name without a digit counts below the title, where nothing else stands on the line. */
static bool legend_alone(const char *line, struct smi_token said)
{
	struct smi_token first, more;
	const char *rest = said.at + said.len;
	smi_token_next(&line, &first);
	for (size_t i = 0; i < said.len; i++)
		if (!isalnum((unsigned char)said.at[i]) && !strchr("_.-", said.at[i]))
			return false;
	return said.len < GRAPH_NAME && isalpha((unsigned char)said.at[0]) && smi_label_prefix(first.at, first.len) &&
	       !smi_token_next(&rest, &more);
}

/* "NIC0: mlx5_0", wherever it stands. */
static void legend(const struct smi_text *text, struct smi_matrix *m)
{
	bool titled = false;
	for (size_t i = 0; i < text->line.n; i++) {
		const char *s = text->line.at[i].text;
		struct smi_token t;
		titled |= strcasestr(s, "Legend") != NULL;
		while (smi_token_next(&s, &t)) {
			char key[GRAPH_NAME], name[GRAPH_NAME];
			int32_t number;
			struct smi_token said = legend_name(t, s);
			if (!said.len || smi_label_of((struct smi_token){t.at, smi_label_prefix(t.at, t.len)}, key,
						 &number) != SMI_NIC)
				continue;
			bool named = smi_label_of(said, name, &number) == SMI_NAMED;
			if (!named && (!titled || !legend_alone(text->line.at[i].text, said)))
				continue;
			if (!named)
				snprintf(name, sizeof name, "%.*s", (int)said.len, said.at);
			for (size_t k = 0; k < m->n; k++) {
				struct smi_entry *en = &m->entry[k];
				if (strcmp(en->key, key))
					continue;
				if (!en->name[0])
					memcpy(en->name, name, sizeof name);
				else if (strcmp(en->name, name))
					smi_note(m, true, "line %d: %s is called %.60s here and %.60s before",
						text->line.at[i].number, key, name, en->name);
			}
		}
	}
}

static bool same_matrix(const struct smi_matrix *a, const struct smi_matrix *b)
{
	if (a->n != b->n)
		return false;
	for (size_t i = 0; i < a->n; i++) {
		if (strcmp(a->entry[i].key, b->entry[i].key))
			return false;
		for (size_t k = 0; k < a->n; k++)
			if (strcmp(a->word[i][k], b->word[i][k]))
				return false;
	}
	return true;
}

/* Fails with the reason why a text has no matrix, from what it has instead. */
static enum status no_matrix(const struct smi_text *t, int peer_line, const char *name, struct error *e)
{
	struct smi_columns *c = malloc(sizeof *c);
	enum status st = c ? ST_OK : error_nomem(e, "a topology dump");
	if (peer_line)
		st = error_set(e, ST_INPUT,
			"%s:%d: this is the peer-to-peer matrix of `nvidia-smi topo -p2p`, whose cells are no link "
			"words: give the output of `nvidia-smi topo -m`",
			name, peer_line);
	for (size_t i = 0; i < t->line.n && !st; i++) {
		const char *next = t->line.at[i].text;
		if (!smi_columns_of(next, c))
			continue;
		for (size_t k = i + 1; k < t->line.n && !st; k++) {
			struct smi_token label, cell;
			next = t->line.at[k].text;
			if (smi_token_next(&next, &label) && smi_label_prefix(label.at, label.len) == label.len &&
				smi_token_next(&next, &cell))
				st = error_set(e, ST_INPUT,
					"%s:%d: row %.*s: '%.*s' is no link word (X, NV1, PIX, PXB, PHB, NODE, SYS): "
					"give the output of `nvidia-smi topo -m`",
					name, t->line.at[k].number, (int)(label.len < 20 ? label.len : 20), label.at,
					(int)(cell.len < 40 ? cell.len : 40), cell.at);
		}
		if (!st)
			st = error_set(e, ST_INPUT, "%s:%d: a header of `nvidia-smi topo -m`, but no rows below it",
				name, t->line.at[i].number);
	}
	free(c);
	return st ? st
	          : error_set(e, ST_INPUT,
			    "%s:1: no matrix of `nvidia-smi topo -m` here: no line of column names with GPU0 or "
			    "another GPU",
			    name);
}

/* Whether another line that can be a header stands between line `at` and the next row: then what stands at `at` is a
 * sentence, or the name of a host, that looked like one. */
static bool header_follows(const struct smi_text *t, size_t at, struct smi_columns *c)
{
	for (size_t i = at + 1; i < t->line.n; i++) {
		if (smi_columns_of(t->line.at[i].text, c))
			return true;
		if (smi_is_row(t->line.at[i].text))
			return false;
	}
	return false;
}

#define HEADERS 64 /* that are tried at most: each may take a look at the whole text */

/* smi_matrix_read; a header that does not fit is passed over where another follows it. *widest keeps the columns of the
 * one in `why`, whose refusal is the one to show when none fits. */
static enum status next_matrix(const struct smi_text *t, size_t *at, const char *name, struct smi_columns *c,
	struct smi_matrix **m, size_t *widest, int *refused, struct error *why, struct error *e)
{
	struct error refusal = {0};
	size_t line = *at;
	enum status st = smi_matrix_read(t, line, name, m, at, &refusal);
	if (!st)
		return ST_OK;
	*at = line + 1;
	size_t columns = smi_columns_of(t->line.at[line].text, c) ? c->n : 0;
	if (st == ST_INPUT && columns > *widest) {
		*widest = columns;
		*why = refusal;
	}
	if (st == ST_INPUT && ++*refused < HEADERS && header_follows(t, line, c))
		return ST_OK;
	return error_set(e, st, "%s", st == ST_INPUT ? why->text : refusal.text);
}

/* The one matrix of link words in the text. */
static enum status find_matrix(const struct smi_text *t, const char *name, struct smi_matrix **out, struct error *e)
{
	enum status st = ST_OK;
	struct smi_matrix *found = NULL, *m = NULL;
	struct smi_columns *c = malloc(sizeof *c);
	struct error why = {0};
	size_t widest = 0;
	int peer_line = 0, again = 0, refused = 0;
	if (!c)
		return error_nomem(e, "a topology dump");
	for (size_t i = 0; i < t->line.n && !st;) {
		st = next_matrix(t, &i, name, c, &m, &widest, &refused, &why, e);
		if (!m)
			continue;
		if (m->peer) {
			peer_line = peer_line ? peer_line : m->line;
		} else if (!found) {
			found = m;
			m = NULL;
		} else if (same_matrix(found, m)) {
			again = again ? again : m->line;
		} else {
			st = error_set(e, ST_INPUT,
				"%s:%d: a second matrix, other than the one of line %d: one host a file", name, m->line,
				found->line);
		}
		free(m);
		m = NULL;
		why = (struct error){0};
		widest = 0;
	}
	if (!st && !found && !peer_line && !why.status) {
		size_t next;
		st = smi_matrix_read(t, t->line.n, name, &found, &next, e);
		if (!st && found && found->peer) {
			peer_line = found->line;
			free(found);
			found = NULL;
		}
	}
	if (!st && !found)
		st = why.status && !peer_line ? error_set(e, ST_INPUT, "%s", why.text)
		                              : no_matrix(t, peer_line, name, e);
	if (!st && peer_line)
		smi_note(found, false, "line %d: a peer-to-peer matrix (nvidia-smi topo -p2p) as well: not read",
			peer_line);
	if (!st && again)
		smi_note(found, false, "line %d: the same matrix again", again);
	if (st) {
		free(found);
		found = NULL;
	}
	free(c);
	*out = found;
	return st;
}

/* Limits a line, because looking for words takes more than linear time in its length. */
#define LINE_MOST 65536

static enum status check_lines(const char *text, size_t len, const char *name, struct error *e)
{
	size_t number = 1;
	for (const char *at = text, *end = text + len; at < end; number++) {
		const char *stop = memchr(at, '\n', (size_t)(end - at));
		size_t n = (size_t)((stop ? stop : end) - at);
		if (n > LINE_MOST)
			return error_set(e, ST_INPUT,
				"%s:%zu: a line of %zu characters: no output of `nvidia-smi topo -m`", name, number, n);
		at += n + 1;
	}
	return ST_OK;
}

enum status smi_topo_read(const char *text, size_t len, const char *name, struct graph **out, struct error *e)
{
	struct smi_text t = {0};
	struct smi_matrix *m = NULL;
	*out = NULL;
	enum status st = check_lines(text, len, name, e);
	if (!st)
		st = smi_text_clean(text, len, &t, e);
	if (!st)
		st = find_matrix(&t, name, &m, e);
	if (!st) {
		legend(&t, m);
		st = smi_graph(m, out, e);
	}
	free(m);
	smi_text_free(&t);
	return st;
}
