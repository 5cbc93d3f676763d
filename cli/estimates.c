#include "cli/estimates.h"

#include <math.h>
#include <stdlib.h>

#include "base/quantity.h"
#include "base/table.h"

/* Returns the mean time for which ops like `like` move bytes, over all actors; NAN if there is none. */
static double moving_s(const struct timeline *t, const struct program *p, const struct op *like)
{
	double sum = 0, n = 0;
	for (size_t i = 0; t && i < t->spans.n; i++) {
		const struct span *s = &t->spans.at[i];
		const struct op *op = &timeline_role(t, p, s->actor)->ops.at[s->op];
		if (op->kind != OP_COLLECTIVE || op->coll != like->coll || op->dtype != like->dtype ||
			op->group != like->group || op->reduce != like->reduce ||
			op->collective.elements != like->collective.elements)
			continue;
		sum += (double)(s->end_ps - s->move_ps) * 1e-12;
		n++;
	}
	return n > 0 ? sum / n : NAN;
}

static bool is_first(const struct role *r, size_t at)
{
	const struct op *a = &r->ops.at[at];
	for (size_t i = 0; i < at; i++) {
		const struct op *b = &r->ops.at[i];
		if (b->kind == OP_COLLECTIVE && b->coll == a->coll && b->dtype == a->dtype && b->group == a->group &&
			b->reduce == a->reduce && b->collective.elements == a->collective.elements)
			return false;
	}
	return a->kind == OP_COLLECTIVE;
}

static enum status print(const struct program *p, const double *nccl_s, const struct timeline *predicted,
	const struct timeline *measured, struct error *e)
{
	const struct role *r = &p->roles[0];
	struct table *t = table_create("<collective|ranks|size|predicted|NCCL's estimate|measured");
	enum status st = t ? ST_OK : error_nomem(e, "the table of estimates");
	for (size_t i = 0; i < r->ops.n && !st; i++) {
		const struct op *op = &r->ops.at[i];
		char size[QUANTITY_MAX], ours[QUANTITY_MAX], theirs[QUANTITY_MAX], real[QUANTITY_MAX];
		if (!is_first(r, i) || op_group_size(&p->mesh, op) < 2)
			continue;
		st = table_row(t, e, "%s, %s, %s|%lld|%s|%s|%s|%s", collective_name((enum collective)op->coll),
			mesh_dim_name((enum mesh_dim)op->group), dtype_name((enum dtype)op->dtype),
			(long long)op_group_size(&p->mesh, op),
			quantity_format(size, (double)op->collective.elements * dtype_bytes((enum dtype)op->dtype),
				UNIT_BYTE),
			quantity_format(ours, moving_s(predicted, p, op), UNIT_SECOND),
			quantity_format(theirs, nccl_s[i], UNIT_SECOND),
			quantity_format(real, moving_s(measured, p, op), UNIT_SECOND));
	}
	if (!st)
		table_print(t, stderr);
	table_destroy(t);
	return st;
}

enum status estimates_print(struct context *x, const struct program *p, const struct timeline *predicted,
	const struct timeline *measured, struct error *e)
{
	double *nccl_s = calloc(p->roles[0].ops.n + 1, sizeof *nccl_s);
	enum status st = context_agree(x, nccl_s ? ST_OK : error_nomem(e, "NCCL's estimates"), e);
	if (!st)
		st = context_agree(x, x->exec->execute_estimates(x->session, p, nccl_s, e), e);
	if (!st && context_leads(x))
		st = print(p, nccl_s, predicted, measured, e);
	free(nccl_s);
	return st;
}
