#include "base/table.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/html.h"
#include "base/vec.h"
#include "base/wrap.h"

#define GAP 2    /* spaces between columns */
#define ROOM 40  /* enough for texts of any length */
#define INDENT 4 /* of a row that goes on in the next line */
#define LONG 24  /* characters of a text that HTML may wrap */

struct column {
	bool left;
	size_t width; /* characters */
};

struct row {
	bool rule;
	char **cell; /* one for each column */
};

/* Columns that stand beside each other on a line. A table that is too wide has several such lines a row. */
struct band {
	size_t from, to, indent, width;
	size_t wrapped; /* a column whose texts break at words; none: `to` */
	size_t room;    /* of that column */
};

struct table {
	struct arena *arena;
	VEC(struct column) columns;
	VEC(struct row) rows; /* the first is the header */
	struct band *band;    /* room for as many as there are columns: printing allocates nothing */
};

/* Cuts `text` (changed in place) at '|' into the table's columns; what is left over stays in the last cell, so nothing
 * is lost. */
static bool split(struct table *t, char *text, struct row *row)
{
	row->cell = arena_alloc(t->arena, t->columns.n * sizeof *row->cell);
	if (!row->cell)
		return false;
	for (size_t i = 0; i < t->columns.n; i++) {
		char *bar = i + 1 < t->columns.n ? strchr(text, '|') : NULL;
		row->cell[i] = text;
		text += strlen(text);
		if (bar) {
			*bar = '\0';
			text = bar + 1;
		}
		size_t width = wrap_characters(row->cell[i]);
		if (width > t->columns.at[i].width)
			t->columns.at[i].width = width;
	}
	return true;
}

struct table *table_create(const char *columns)
{
	struct table *t = calloc(1, sizeof *t);
	if (!t || !(t->arena = arena_create()))
		goto fail;
	char *header = arena_strdup(t->arena, columns);
	if (!header)
		goto fail;
	/* The marks of alignment are taken out, so that the rest splits like any row. */
	char *to = header;
	const char *from = header;
	do {
		bool left = *from == '<';
		if (!vec_push(&t->columns, ((struct column){.left = left})))
			goto fail;
		from += left;
		while (*from && *from != '|')
			*to++ = *from++;
		if (*from)
			*to++ = '|';
	} while (*from++);
	*to = '\0';
	struct row row = {0};
	if (!(t->band = arena_alloc(t->arena, t->columns.n * sizeof *t->band)) || !split(t, header, &row) ||
		!vec_push(&t->rows, row))
		goto fail;
	return t;
fail:
	table_destroy(t);
	return NULL;
}

void table_destroy(struct table *t)
{
	if (!t)
		return;
	vec_free(&t->columns);
	vec_free(&t->rows);
	arena_destroy(t->arena);
	free(t);
}

enum status table_row(struct table *t, struct error *e, const char *fmt, ...)
{
	va_list ap, again;
	va_start(ap, fmt);
	va_copy(again, ap);
	int len = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	char *text = len >= 0 ? arena_alloc(t->arena, (size_t)len + 1) : NULL;
	if (text)
		vsnprintf(text, (size_t)len + 1, fmt, again);
	va_end(again);

	struct row row = {.rule = text && strcmp(text, "-") == 0};
	if (!text || (!row.rule && !split(t, text, &row)) || !vec_push(&t->rows, row))
		return error_nomem(e, "a table's row");
	return ST_OK;
}

static void pad(size_t n, char c, FILE *out)
{
	while (n-- > 0)
		putc(c, out);
}

/* Returns the longest line of a column whose texts break at `room`. */
static size_t wrapped_width(const struct table *t, size_t column, size_t room)
{
	size_t most = 0;
	for (size_t i = 0; i < t->rows.n; i++)
		for (const char *text = t->rows.at[i].rule ? "" : t->rows.at[i].cell[column]; *text;) {
			const char *rest;
			size_t width = wrap_characters(text) - wrap_characters(text + wrap_line(text, room, &rest));
			most = width > most ? width : most;
			text = rest;
		}
	return most;
}

/* Wraps the last left-aligned column that has room: for two thirds of its longest text, or ROOM characters, and for its
 * longest word. The row's name, which is the first, stays whole. */
static bool wrap_column(const struct table *t, size_t width, struct band *b)
{
	for (size_t i = b->to; i-- > b->from + (b->from == 0);) {
		size_t column = t->columns.at[i].width, others = b->width - column;
		if (!t->columns.at[i].left || others >= width ||
			(width - others < ROOM && 3 * (width - others) < 2 * column))
			continue;
		b->room = wrapped_width(t, i, width - others);
		if (others + b->room > width)
			continue;
		b->width = others + b->room;
		b->wrapped = i;
		return true;
	}
	return false;
}

/* Returns the band that begins with the column `from`: as many columns as fit, at least one. */
static struct band next_band(const struct table *t, size_t from, size_t width)
{
	struct band b = {.from = from, .to = t->columns.n, .indent = from ? INDENT : 0};
	b.width = b.indent;
	for (size_t i = from; i < t->columns.n; i++)
		b.width += t->columns.at[i].width + (i > from ? GAP : 0);
	b.wrapped = b.to;
	if (b.width <= width || wrap_column(t, width, &b))
		return b;
	while (b.to > from + 1 && b.width > width)
		b.width -= t->columns.at[--b.to].width + GAP;
	b.wrapped = b.to;
	if (b.width > width && from > 0 && t->columns.at[from].left) { /* a single text: below itself */
		b.wrapped = from;
		b.room = width - b.indent;
		b.width = width;
	}
	return b;
}

/* Prints a band of a row; of a text that breaks, the further lines stand below its first. */
static void print_band(const struct table *t, const struct band *b, const struct row *row, FILE *out)
{
	const char *more = NULL; /* of the text that breaks */
	size_t below = b->indent;
	size_t owed = b->indent; /* spaces that are printed only if something follows: no line ends in blanks */
	for (size_t i = b->from; i < b->to; i++) {
		const struct column *c = &t->columns.at[i];
		const char *text = row->cell[i];
		size_t len = strlen(text), width = wrap_characters(text), most = c->width;
		owed += i > b->from ? GAP : 0;
		if (i < b->wrapped)
			below += c->width + GAP;
		if (i == b->wrapped) {
			most = b->room;
			len = wrap_line(text, most, &more);
			width -= wrap_characters(text + len);
		}
		owed += c->left ? 0 : most - width;
		if (width > 0) {
			pad(owed, ' ', out);
			fwrite(text, 1, len, out);
			owed = 0;
		}
		owed += c->left ? most - width : 0;
	}
	putc('\n', out);
	while (more && *more) {
		const char *line = more;
		size_t len = wrap_line(line, b->room, &more);
		pad(below, ' ', out);
		fwrite(line, 1, len, out);
		putc('\n', out);
	}
}

static bool is_empty(const struct band *b, const struct row *row)
{
	for (size_t i = b->from; i < b->to; i++)
		if (row->cell[i][0])
			return false;
	return true;
}

static void print_row(const struct table *t, const struct row *row, FILE *out)
{
	const struct band *b = t->band;
	for (bool last = false; !last; b++) {
		last = b->to == t->columns.n;
		if (b->from == 0 || !is_empty(b, row))
			print_band(t, b, row, out);
	}
}

void table_print_within(const struct table *t, size_t width, FILE *out)
{
	size_t n = 0, rule = 0;
	for (size_t from = 0; from < t->columns.n; from = t->band[n++].to) {
		t->band[n] = next_band(t, from, width);
		rule = t->band[n].width > rule ? t->band[n].width : rule;
	}
	for (size_t i = 0; i < t->rows.n; i++) {
		if (!t->rows.at[i].rule)
			print_row(t, &t->rows.at[i], out);
		if (t->rows.at[i].rule || i == 0) {
			pad(rule, '-', out);
			putc('\n', out);
		}
	}
}

void table_print(const struct table *t, FILE *out) { table_print_within(t, wrap_width(out), out); }

static bool stands_alone(const struct table *t, const struct row *row)
{
	for (size_t i = 1; i < t->columns.n; i++)
		if (row->cell[i][0])
			return false;
	return true;
}

static void html_row(const struct table *t, const struct row *row, const char *cell, bool behind_rule, FILE *out)
{
	static const char *const looks[] = {"", "left", "in", "left in", "", "left long", "in", "left in long"};
	bool heading = behind_rule && stands_alone(t, row);
	fputs(behind_rule ? "<tr class=\"rule\">" : "<tr>", out);
	for (size_t i = 0; i < (heading ? 1 : t->columns.n); i++) {
		const char *text = row->cell[i] + strspn(row->cell[i], " ");
		if (heading)
			fprintf(out, "<th class=\"left\" colspan=\"%zu\">", t->columns.n);
		else
			fprintf(out, "<%s class=\"%s\">", cell,
				looks[t->columns.at[i].left + 2 * (text > row->cell[i]) +
					4 * (wrap_characters(text) > LONG)]);
		html_escaped(text, out);
		fprintf(out, "</%s>", heading ? "th" : cell);
	}
	fputs("</tr>\n", out);
}

void table_html(const struct table *t, FILE *out)
{
	bool rule = false;
	fputs("<div class=\"scroll\"><table>\n<thead>", out);
	for (size_t i = 0; i < t->rows.n; i++) {
		const struct row *row = &t->rows.at[i];
		if (!row->rule)
			html_row(t, row, i == 0 ? "th" : "td", rule, out);
		if (i == 0)
			fputs("</thead>\n<tbody>\n", out);
		rule = row->rule;
	}
	fputs("</tbody></table></div>\n", out);
}
