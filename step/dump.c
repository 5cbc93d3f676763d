#include "step/program.h"

static void dump_op(const struct role *r, uint32_t id, FILE *out)
{
	const struct op *op = &r->ops.at[id];
	char name[OP_NAME_MAX];
	fprintf(out, "%6u %-10s %s", id, lane_name(op->lane), op_name(op, name));
	for (int i = 0; i < op_kind_info(op->kind)->n_args; i++) {
		const struct view *v = op_arg(r, op, i);
		static const char *const how[] = {"", "r", "w", "rw"};
		if (v->buffer >= 0)
			fprintf(out, " %s:%s=%d+%llu", op_kind_info(op->kind)->arg[i].name, how[op_access(op, i)],
				v->buffer, (unsigned long long)v->offset_B);
	}
	for (uint32_t k = 0; k < op->n_dep; k++)
		fprintf(out, "%s%u", k ? "," : " after ", r->deps.at[op->dep0 + k]);
	fputc('\n', out);
}

void program_dump(const struct program *p, FILE *out)
{
	for (size_t i = 0; i < p->n_roles; i++) {
		const struct role *r = &p->roles[i];
		fprintf(out, "role %zu: %lld ranks, %zu ops, %zu buffers, %zu buckets, %zu parameters\n", i,
			(long long)r->ranks, r->ops.n, r->buffers.n, r->buckets.n, r->params.n);
		for (size_t k = 0; k < r->buckets.n; k++)
			fprintf(out, "bucket %zu: %llu elements, padded %llu, %lld shards\n", k,
				(unsigned long long)r->buckets.at[k].elements,
				(unsigned long long)r->buckets.at[k].padded, (long long)r->buckets.at[k].shards);
		for (uint32_t k = 0; k < r->ops.n; k++)
			dump_op(r, k, out);
	}
}
