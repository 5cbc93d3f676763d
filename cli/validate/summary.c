#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/stats.h"
#include "base/table.h"
#include "cli/validate/validate.h"

typedef const char *(*label_fn)(const struct judged *j);

static const char *use_of(const struct judged *j)
{
	return *j->use ? j->use : "(no use)";
}

static const char *source_of(const struct judged *j)
{
	return *j->source ? j->source : "(no source)";
}

static const char *everything(const struct judged *j)
{
	(void)j;
	return "all rows";
}

/* One line over the rows that have this label, of which `use` too unless it is NULL. */
static enum status line(struct table *t, const judged_rows *rows, label_fn label, const char *name, const char *use, double *room, struct error *e)
{
	size_t n = 0, covered = 0;
	double signed_sum = 0;
	for (size_t i = 0; i < rows->n; i++) {
		const struct judged *j = &rows->at[i];
		if (j->reason[0] || strcmp(label(j), name) != 0 || (use && strcmp(use_of(j), use) != 0))
			continue;
		room[n++] = 100 * fabs(judged_error(j));
		signed_sum += 100 * judged_error(j);
		covered += judged_covered(j);
	}
	if (n == 0)
		return ST_OK;
	return table_row(t, e, "%s%s%s|%zu|%.1f|%.1f|%.1f|%.1f|%+.1f|%.0f", name, use ? ", " : "", use ? use : "", n, stats_median(room, n), stats_mean(room, n), stats_percentile(room, n, 90), stats_max(room, n),
	                 signed_sum / (double)n, 100.0 * (double)covered / (double)n);
}

/* Lines of all labels, in the order in which the table has them first. */
static enum status lines(struct table *t, const judged_rows *rows, label_fn label, bool by_use, double *room, struct error *e)
{
	enum status st = ST_OK;
	for (size_t i = 0; i < rows->n && !st; i++) {
		bool first = true;
		for (size_t k = 0; k < i && first; k++)
			first = strcmp(label(&rows->at[k]), label(&rows->at[i])) != 0 || (by_use && strcmp(use_of(&rows->at[k]), use_of(&rows->at[i])) != 0);
		if (first)
			st = line(t, rows, label, label(&rows->at[i]), by_use ? use_of(&rows->at[i]) : NULL, room, e);
	}
	return st;
}

/* Rows that are not predicted, by what is said of them. */
static enum status reasons(const judged_rows *rows, FILE *out, struct error *e)
{
	struct table *t = table_create("rows|<not predicted, because|<first");
	enum status st = t ? ST_OK : error_nomem(e, "the list of reasons");
	size_t total = 0;
	for (size_t i = 0; i < rows->n && !st; i++) {
		const struct judged *j = &rows->at[i];
		size_t same = 0;
		if (!j->reason[0])
			continue;
		total++;
		const char *text = strncmp(j->reason, j->id, strlen(j->id)) == 0 ? j->reason + strlen(j->id) : j->reason;
		bool first = true;
		for (size_t k = 0; k < rows->n; k++) {
			const struct judged *other = &rows->at[k];
			const char *its = strncmp(other->reason, other->id, strlen(other->id)) == 0 ? other->reason + strlen(other->id) : other->reason;
			bool alike = other->reason[0] && strcmp(its + strcspn(its, " "), text + strcspn(text, " ")) == 0;
			first = first && !(alike && k < i);
			same += alike;
		}
		if (first)
			st = table_row(t, e, "%zu|%s|%s", same, text + strspn(text, ":0123456789 "), j->id);
	}
	if (!st && total > 0) {
		fputc('\n', out);
		table_print(t, out);
	}
	table_destroy(t);
	return st;
}

enum status summary_print(const judged_rows *rows, FILE *out, struct error *e)
{
	struct table *t = table_create("<rows of|rows|median %|mean %|p90 %|worst %|signed %|in interval %");
	double *room = malloc((rows->n + 1) * sizeof *room);
	enum status st = t && room ? ST_OK : error_nomem(e, "the summary");
	if (!st && !(st = lines(t, rows, everything, false, room, e)) && !(st = lines(t, rows, use_of, false, room, e)))
		st = lines(t, rows, source_of, true, room, e);
	if (!st) {
		table_print(t, out);
		st = reasons(rows, out, e);
	}
	free(room);
	table_destroy(t);
	return st;
}
