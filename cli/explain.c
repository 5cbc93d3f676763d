#include "cli/explain.h"

#include <math.h>
#include <string.h>

#include "base/quantity.h"
#include "base/table.h"
#include "sim/price/gpu.h"
#include "sim/price/price.h"

/* ---- roofs ---- */

struct sum {
	int64_t n;
	double flop, moved_B, alone_s;
};

/* Returns the bytes by which an op is priced: stacks' numbers count more traffic than the program
 * (sim/price/gpu.h). */
static double moved_B(const struct program *p, const struct op *op, const struct rates *rates)
{
	if (op->kind == OP_COLLECTIVE)
		return op_wire_B(op, op_group_size(&p->mesh, op));
	bool by_stack = !rates->is_host && !rates->measured && op->kind != OP_COPY && op->lane != LANE_HOST &&
	                !op_on_host(op);
	return by_stack ? gpu_op_B(op, &p->config.stack) : op_read_B(op) + op_write_B(op);
}

static enum status roof_rows(const struct program *p, size_t role, const struct rates *rates,
	const struct prices *prices, struct table *t, struct error *e)
{
	const struct role *r = &p->roles[role];
	struct sum sums[CLASS_COUNT][BOUND_COUNT] = {{{0}}};
	enum status st = ST_OK;
	for (size_t i = 0; i < r->ops.n; i++) {
		const struct op *op = &r->ops.at[i];
		const struct op_cost *c = price_of(prices, role, i);
		struct sum *s = &sums[op_class_of(op)][c->bound];
		s->n++;
		s->flop += op_flop(op);
		s->moved_B += moved_B(p, op, rates);
		s->alone_s += c->alone_s;
	}
	for (int k = 0; k < CLASS_COUNT; k++)
		for (int b = 0; b < BOUND_COUNT && !st; b++) {
			const struct sum *s = &sums[k][b];
			char flop[QUANTITY_MAX], bytes[QUANTITY_MAX], alone[QUANTITY_MAX], flops[QUANTITY_MAX],
				Bps[QUANTITY_MAX];
			bool timed = s->alone_s > 0;
			if (s->n > 0)
				st = table_row(t, e, "%s|%s|%lld|%s|%s|%s|%s|%s", op_class_name((enum op_class)k),
					bound_name((enum bound)b), (long long)s->n,
					quantity_format(flop, s->flop > 0 ? s->flop : NAN, UNIT_FLOP),
					quantity_format(bytes, s->moved_B > 0 ? s->moved_B : NAN, UNIT_BYTE),
					quantity_format(alone, s->alone_s, UNIT_SECOND),
					quantity_format(flops, timed && s->flop > 0 ? s->flop / s->alone_s : NAN,
						UNIT_FLOP_PER_S),
					quantity_format(Bps, timed && s->moved_B > 0 ? s->moved_B / s->alone_s : NAN,
						UNIT_BYTE_PER_S));
		}
	return st;
}

/* ---- collectives ---- */

static bool alike(const struct op *a, const struct op *b)
{
	return a->kind == b->kind && a->coll == b->coll && a->group == b->group && a->dtype == b->dtype &&
	       a->collective.elements == b->collective.elements;
}

static bool is_first(const struct role *r, size_t at)
{
	for (size_t i = 0; i < at; i++)
		if (alike(&r->ops.at[i], &r->ops.at[at]))
			return false;
	return true;
}

static enum status collective_row(const struct program *p, const struct op *op, const struct rates *rates,
	double alone_s, struct table *t, struct error *e)
{
	int64_t size = op_group_size(&p->mesh, op), stride = p->mesh.stride[op->group];
	double S = (double)op->collective.elements * dtype_bytes((enum dtype)op->dtype);
	struct collective_price price = collective_price_of(rates, op, size, stride, p->config.collectives, S, e);
	struct group g = {0};
	if (!isfinite(price.time_s) || rates_group(rates, size, stride, &g, e))
		return e->status;
	char bytes[QUANTITY_MAX], time[QUANTITY_MAX], channels[24] = "";
	if (price.channels > 0)
		snprintf(channels, sizeof channels, "%d", price.channels);
	return table_row(t, e, "%s, %s|%lld|%s|%s|%s|%s|%s|%s|%s", collective_name((enum collective)op->coll),
		mesh_dim_name((enum mesh_dim)op->group), (long long)size, quantity_format(bytes, S, UNIT_BYTE),
		price.algorithm, price.proto >= 0 ? nccl_proto_name((enum nccl_proto)price.proto) : "", channels,
		quantity_format(time, alone_s, UNIT_SECOND), bound_name(price.bound),
		g.ring_Bps > 0 ? g.bottleneck_text : "");
}

static enum status collective_rows(const struct program *p, size_t role, const struct rates *rates,
	const struct prices *prices, struct table *t, size_t *n, struct error *e)
{
	const struct role *r = &p->roles[role];
	enum status st = ST_OK;
	*n = 0;
	for (size_t i = 0; i < r->ops.n && !st; i++) {
		const struct op *op = &r->ops.at[i];
		if (op->kind != OP_COLLECTIVE || op_is_message(op) || op_group_size(&p->mesh, op) < 2 ||
			!is_first(r, i))
			continue;
		st = collective_row(p, op, rates, price_of(prices, role, i)->alone_s, t, e);
		++*n;
	}
	return st;
}

/* ---- assumptions ---- */

static void print_assumptions(const struct program *p, const struct machine *m, FILE *out)
{
	const struct device_spec *d = &m->device;
	char launch[QUANTITY_MAX];
	const struct config *c = &p->config;
	if (m->profile) {
		fprintf(out, "assumed: rates and times of the profile of %s\n", m->profile->date);
		return;
	}
	fprintf(out,
		"assumed of the GPU (configs/gpus/%s.yaml): products reach %.3g of the peak in %s, memory %.3g of "
		"its rate, a launch takes %s\n",
		d->id, d->format_share[c->train.dtype] > 0 ? d->format_share[c->train.dtype] : d->gemm_share,
		dtype_name(c->train.dtype), d->mem_share, quantity_format(launch, d->launch_s, UNIT_SECOND));
	fprintf(out, "assumed of the stack (%s; sources: `stepsim list parameters`):", c->train.stack);
	for (size_t i = 0, n = 0; i < STACK_NUMBERS; i++) {
		double value;
		memcpy(&value, (const char *)&c->stack + stack_numbers[i].offset, sizeof value);
		if (value > 0)
			fprintf(out, "%s %s %s", n++ ? "," : "", stack_numbers[i].name,
				quantity_format(launch, value, stack_numbers[i].unit));
	}
	fputc('\n', out);
}

/* ---- */

enum status explain(const struct program *p, size_t role, const struct machine *m, FILE *out, struct error *e)
{
	const struct rates rates = rates_of(m);
	struct prices prices = {0};
	size_t n = 0;
	struct table *roofs = table_create("<class|<bound by|ops|FLOP|bytes|alone|FLOP/s|B/s");
	struct table *collectives = table_create(
		"<collective|ranks|size|<algorithm|<protocol|channels|alone|<bound by|<limited by");
	enum status st = roofs && collectives ? price_program(p, &rates, &prices, e)
	                                      : error_nomem(e, "the explanation");
	if (!st && !(st = roof_rows(p, role, &rates, &prices, roofs, e)) &&
		!(st = collective_rows(p, role, &rates, &prices, collectives, &n, e))) {
		fputs("why: what bounds the ops of a rank\n", out);
		table_print(roofs, out);
		if (n > 0) {
			fputs("how collectives run\n", out);
			table_print(collectives, out);
			if (cost_hides_tensor(p, &rates))
				fputs("tensor-parallel gathers and scatters overlap products, except for the "
				      "exposed part (parallel.tensor_overlap)\n",
					out);
		}
		print_assumptions(p, m, out);
	}
	prices_free(&prices);
	table_destroy(roofs);
	table_destroy(collectives);
	return st;
}
