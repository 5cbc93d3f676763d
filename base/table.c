#include "base/table.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/html.h"
#include "base/vec.h"

#define GAP 2 /* spaces between columns */

struct column {
	bool left;
	size_t width; /* characters */
};

struct row {
	bool rule;
	char **cell; /* one for each column */
};

struct table {
	struct arena *arena;
	VEC(struct column) columns;
	VEC(struct row) rows; /* the first is the header */
};

static size_t characters(const char *text)
{
	size_t n = 0;
	for (; *text; text++)
		n += ((unsigned char)*text & 0xC0) != 0x80;
	return n;
}

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
		size_t width = characters(row->cell[i]);
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
	if (!split(t, header, &row) || !vec_push(&t->rows, row))
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

static void print_rule(const struct table *t, FILE *out)
{
	size_t width = 0;
	for (size_t i = 0; i < t->columns.n; i++)
		width += t->columns.at[i].width + (i ? GAP : 0);
	pad(width, '-', out);
	putc('\n', out);
}

static void print_row(const struct table *t, const struct row *row, FILE *out)
{
	size_t owed = 0; /* spaces that are printed only if something follows: no line ends in blanks */
	for (size_t i = 0; i < t->columns.n; i++) {
		const struct column *c = &t->columns.at[i];
		size_t width = characters(row->cell[i]), room = c->width - width;
		owed += i ? GAP : 0;
		owed += c->left ? 0 : room;
		if (width > 0) {
			pad(owed, ' ', out);
			fputs(row->cell[i], out);
			owed = 0;
		}
		owed += c->left ? room : 0;
	}
	putc('\n', out);
}

void table_print(const struct table *t, FILE *out)
{
	for (size_t i = 0; i < t->rows.n; i++) {
		if (t->rows.at[i].rule)
			print_rule(t, out);
		else
			print_row(t, &t->rows.at[i], out);
		if (i == 0)
			print_rule(t, out);
	}
}

static bool stands_alone(const struct table *t, const struct row *row)
{
	for (size_t i = 1; i < t->columns.n; i++)
		if (row->cell[i][0])
			return false;
	return true;
}

static void html_row(const struct table *t, const struct row *row, const char *cell, bool behind_rule, FILE *out)
{
	static const char *const looks[] = {"", "left", "in", "left in"};
	bool heading = behind_rule && stands_alone(t, row);
	fputs(behind_rule ? "<tr class=\"rule\">" : "<tr>", out);
	for (size_t i = 0; i < (heading ? 1 : t->columns.n); i++) {
		const char *text = row->cell[i] + strspn(row->cell[i], " ");
		if (heading)
			fprintf(out, "<th class=\"left\" colspan=\"%zu\">", t->columns.n);
		else
			fprintf(out, "<%s class=\"%s\">", cell,
				looks[t->columns.at[i].left + 2 * (text > row->cell[i])]);
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
