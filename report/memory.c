/* The memory of a rank besides the buffers that ops touch. */
#include <string.h>

#include "base/quantity.h"
#include "base/table.h"
#include "report/report.h"

/* Returns all bytes held under the name of entry i; 0 if an earlier entry has the name. */
static uint64_t held_B(const struct role *r, size_t i, size_t *count)
{
	uint64_t sum_B = 0;
	*count = 0;
	for (size_t k = 0; k < r->held.n; k++) {
		if (strcmp(r->held.at[k].what, r->held.at[i].what) != 0)
			continue;
		if (k < i)
			return 0;
		sum_B += r->held.at[k].bytes;
		*count += 1;
	}
	return sum_B;
}

enum status report_memory(const struct outcome *o, FILE *out, struct error *e)
{
	const struct result_memory *m = &o->predicted->memory;
	const struct role *r = &o->program->roles[0];
	struct table *t = table_create("<memory besides the ops' buffers|count|each");
	enum status st = t ? ST_OK : error_nomem(e, "the table of memory");
	char each[QUANTITY_MAX];
	if (!st && m->overhead_B > 0)
		st = table_row(t, e, "CUDA context and libraries|1|%s",
			quantity_format(each, (double)m->context_B, UNIT_BYTE));
	if (!st && m->communicators_B > 0)
		st = table_row(t, e, "NCCL communicator|%lld|%s", (long long)m->communicators,
			quantity_format(each, (double)m->communicators_B / (double)m->communicators, UNIT_BYTE));
	size_t count;
	for (size_t i = 0; i < r->held.n && !st; i++) {
		uint64_t sum_B = held_B(r, i, &count);
		if (sum_B > 0)
			st = table_row(t, e, "%s|%zu|%s", r->held.at[i].what, count,
				quantity_format(each, (double)sum_B / (double)count, UNIT_BYTE));
	}
	if (!st && (m->overhead_B > 0 || r->held.n > 0))
		table_print(t, out);
	table_destroy(t);
	return st;
}
