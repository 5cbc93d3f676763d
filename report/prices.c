#include <math.h>
#include <string.h>

#include "base/quantity.h"
#include "base/table.h"
#include "report/figures.h"
#include "report/report.h"
#include "step/work.h"

struct price {
	char name[WORK_NAME];
	int64_t n;
	double flop, moved_B, predicted_s, measured_s;
};

typedef VEC(struct price) prices;

static void name_of(const struct program *p, const struct op *op, char name[WORK_NAME])
{
	if (op->kind == OP_COLLECTIVE) {
		snprintf(name, WORK_NAME, "%s.%lld", collective_name((enum collective)op->coll),
			(long long)op_group_size(&p->mesh, op));
		return;
	}
	struct work work;
	work_of(op, NULL, &work);
	snprintf(name, WORK_NAME, "%s", work.name[0] ? work.name : op_kind_info((enum op_kind)op->kind)->name);
}

/* The entry of that name; a new one at the end when there is none; NULL when out of memory. */
static struct price *price_of(prices *all, const char *name)
{
	for (size_t i = 0; i < all->n; i++)
		if (strcmp(all->at[i].name, name) == 0)
			return &all->at[i];
	struct price fresh = {0};
	snprintf(fresh.name, sizeof fresh.name, "%s", name);
	return vec_push(all, fresh) ? &all->at[all->n - 1] : NULL;
}

/* Returns the bytes that one rank sends in a collective; for other ops, those that cross the memory interface. */
static double moved_B(const struct program *p, const struct op *op)
{
	if (op->kind == OP_COLLECTIVE)
		return op_wire_B(op, op_group_size(&p->mesh, op));
	return op_read_B(op) + op_write_B(op);
}

static bool gather(prices *all, const struct program *p, const struct timeline *t, uint32_t actor, bool measured)
{
	const struct role *role = timeline_role(t, p, actor);
	for (size_t i = 0; i < t->spans.n; i++) {
		const struct span *s = &t->spans.at[i];
		if (s->actor != actor)
			continue;
		const struct op *op = &role->ops.at[s->op];
		char name[WORK_NAME];
		name_of(p, op, name);
		struct price *price = price_of(all, name);
		if (!price)
			return false;
		double moving_s = (double)(s->end_ps - s->move_ps) * 1e-12;
		if (measured) {
			price->measured_s += moving_s;
		} else {
			price->n++;
			price->flop += op_flop(op);
			price->moved_B += moved_B(p, op);
			price->predicted_s += moving_s;
		}
	}
	return true;
}

static enum status add_row(struct table *t, const struct price *x, bool both, struct error *e)
{
	char flop[QUANTITY_MAX], bytes[QUANTITY_MAX], flops[QUANTITY_MAX], Bps[QUANTITY_MAX], predicted[QUANTITY_MAX],
		measured[QUANTITY_MAX];
	bool timed = x->predicted_s > 0;
	quantity_format(flop, x->flop > 0 ? x->flop : NAN, UNIT_FLOP);
	quantity_format(bytes, x->moved_B, UNIT_BYTE);
	quantity_format(flops, timed && x->flop > 0 ? x->flop / x->predicted_s : NAN, UNIT_FLOP_PER_S);
	quantity_format(Bps, timed ? x->moved_B / x->predicted_s : NAN, UNIT_BYTE_PER_S);
	quantity_format(predicted, x->predicted_s, UNIT_SECOND);
	quantity_format(measured, x->measured_s, UNIT_SECOND);
	return table_row(t, e, "%s|%lld|%s|%s|%s|%s|%s%s%s", x->name, (long long)x->n, flop, bytes, predicted, flops,
		Bps, both ? "|" : "", both ? measured : "");
}

enum status report_prices(const struct outcome *o, FILE *out, struct error *e)
{
	prices all = {0};
	bool both = o->measured_timeline != NULL;
	enum status st = ST_OK;
	struct table *t = table_create(both ? "<price|count|FLOP|bytes|predicted|FLOP/s|B/s|measured"
					    : "<price|count|FLOP|bytes|predicted|FLOP/s|B/s");
	const uint32_t actor = timeline_critical_actor(o->predicted_timeline);
	bool good = t && gather(&all, o->program, o->predicted_timeline, actor, false);
	if (good && both)
		good = gather(&all, o->program, o->measured_timeline,
			timeline_last_of_role(o->measured_timeline, o->program, actor), true);
	if (!good)
		st = error_nomem(e, "the table of prices");
	for (size_t i = 0; i < all.n && !st; i++)
		st = add_row(t, &all.at[i], both, e);
	if (!st)
		table_print(t, out);
	table_destroy(t);
	vec_free(&all);
	return st;
}
