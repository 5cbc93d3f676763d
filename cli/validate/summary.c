#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/stats.h"
#include "base/table.h"
#include "cli/validate/validate.h"

typedef const char *(*label_fn)(const struct judged *j);

static const char *use_of(const struct judged *j) { return *j->use ? j->use : "(no use)"; }

static const char *source_of(const struct judged *j) { return *j->source ? j->source : "(no source)"; }

static const char *everything(const struct judged *j)
{
	(void)j;
	return "all rows";
}

/* One line over the rows that have this label, of which `use` too unless it is NULL. */
static enum status line(struct table *t, const judged_rows *rows, label_fn label, const char *name, const char *use,
	double *room, struct error *e)
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
	return table_row(t, e, "%s%s%s|%zu|%.1f|%.1f|%.1f|%.1f|%+.1f|%.0f", name, use ? ", " : "", use ? use : "", n,
		stats_median(room, n), stats_mean(room, n), stats_percentile(room, n, 90), stats_max(room, n),
		signed_sum / (double)n, 100.0 * (double)covered / (double)n);
}

/* Lines of all labels, in the order in which the table has them first. */
static enum status lines(struct table *t, const judged_rows *rows, label_fn label, bool by_use, double *room,
	struct error *e)
{
	enum status st = ST_OK;
	for (size_t i = 0; i < rows->n && !st; i++) {
		bool first = true;
		for (size_t k = 0; k < i && first; k++)
			first = strcmp(label(&rows->at[k]), label(&rows->at[i])) != 0 ||
			        (by_use && strcmp(use_of(&rows->at[k]), use_of(&rows->at[i])) != 0);
		if (first)
			st = line(t, rows, label, label(&rows->at[i]), by_use ? use_of(&rows->at[i]) : NULL, room, e);
	}
	return st;
}

static bool compares_memory(const struct judged *j)
{
	return !j->reason[0] && j->measured_memory_B > 0 && j->predicted_memory_B > 0;
}

/* One line over the rows of this source and use that report memory. All of them ran: it fits in every one. */
static enum status memory_line(struct table *t, const judged_rows *rows, const struct judged *like, double *room,
	struct error *e)
{
	size_t n = 0, fits = 0;
	double *off = room + rows->n; /* with its sign */
	for (size_t i = 0; i < rows->n; i++) {
		const struct judged *j = &rows->at[i];
		if (!compares_memory(j) || strcmp(source_of(j), source_of(like)) != 0 ||
			strcmp(use_of(j), use_of(like)) != 0)
			continue;
		off[n] = 100 * (j->predicted_memory_B / j->measured_memory_B - 1);
		room[n] = fabs(off[n]);
		fits += j->fits;
		n++;
	}
	return table_row(t, e, "%s, %s|%zu|%.1f|%.1f|%.1f|%+.1f|%.1f", source_of(like), use_of(like), n,
		stats_median(room, n), stats_percentile(room, n, 90), stats_max(room, n), stats_median(off, n),
		100.0 * (double)fits / (double)n);
}

/* Peak memory, where a source prints it. */
static enum status memory_lines(const judged_rows *rows, double *room, FILE *out, struct error *e)
{
	struct table *t = table_create("<memory, errors in %|rows|median|p90|worst|signed|fits as it did");
	enum status st = t ? ST_OK : error_nomem(e, "the summary");
	bool any = false;
	for (size_t i = 0; i < rows->n && !st; i++) {
		const struct judged *j = &rows->at[i];
		bool first = compares_memory(j);
		for (size_t k = 0; k < i && first; k++)
			first = !compares_memory(&rows->at[k]) || strcmp(source_of(&rows->at[k]), source_of(j)) != 0 ||
			        strcmp(use_of(&rows->at[k]), use_of(j)) != 0;
		if (first)
			st = memory_line(t, rows, j, room, e);
		any = any || first;
	}
	if (!st && any) {
		fputc('\n', out);
		table_print(t, out);
	}
	table_destroy(t);
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
		const char *text = strncmp(j->reason, j->id, strlen(j->id)) == 0 ? j->reason + strlen(j->id)
		                                                                 : j->reason;
		bool first = true;
		for (size_t k = 0; k < rows->n; k++) {
			const struct judged *other = &rows->at[k];
			const char *its = strncmp(other->reason, other->id, strlen(other->id)) == 0
			                          ? other->reason + strlen(other->id)
			                          : other->reason;
			bool alike = other->reason[0] &&
			             strcmp(its + strcspn(its, " "), text + strcspn(text, " ")) == 0;
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

/* Rows whose network is the usual one of their hosts. */
static enum status assumed(const judged_rows *rows, FILE *out, struct error *e)
{
	const char *first = NULL;
	size_t n = 0;
	for (size_t i = 0; i < rows->n; i++) {
		const struct judged *j = &rows->at[i];
		if (j->reason[0] || j->network != NETWORK_ASSUMED)
			continue;
		first = n++ ? first : j->id;
	}
	return assumed_print(n, first, out, e);
}

enum status assumed_print(size_t n, const char *first, FILE *out, struct error *e)
{
	if (n == 0)
		return ST_OK;
	struct table *t = table_create("rows|<network|<first of them");
	enum status st = t ? ST_OK : error_nomem(e, "the summary");
	if (!st)
		st = table_row(t, e, "%zu|assumed (no rate is printed), with wider intervals|%s", n, first);
	if (!st) {
		fputc('\n', out);
		table_print(t, out);
	}
	table_destroy(t);
	return st;
}

enum status summary_print(const judged_rows *rows, FILE *out, struct error *e)
{
	struct table *t = table_create("<errors in %|rows|median|mean|p90|worst|signed|inside");
	double *room = malloc(2 * (rows->n + 1) * sizeof *room);
	enum status st = t && room ? ST_OK : error_nomem(e, "the summary");
	if (!st && !(st = lines(t, rows, everything, false, room, e)) && !(st = lines(t, rows, use_of, false, room, e)))
		st = lines(t, rows, source_of, true, room, e);
	if (!st) {
		table_print(t, out);
		if (!(st = memory_lines(rows, room, out, e)) && !(st = assumed(rows, out, e)))
			st = reasons(rows, out, e);
	}
	free(room);
	table_destroy(t);
	return st;
}
