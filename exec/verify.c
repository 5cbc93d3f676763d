#include "exec/verify.h"

#include <stdio.h>

#include "step/peers.h"

#define CHUNK 8192
#define BITS \
	6 /* values below 64: sums over up to 2^18 members are exact in fp32; of narrower formats fewer bits are used \
	   */

struct verifier {
	const struct mesh *mesh;
	const struct device_job *job;
	const struct device *device;
	int64_t rank;
	struct error *error;
};

int32_t verify_value(uint32_t op, int64_t rank, uint64_t element)
{
	/* Multiplicative hashing (Knuth 1998, section 6.4): neighbours, ranks and ops differ in the bits that are kept.
	 */
	uint32_t x = ((uint32_t)element + (uint32_t)(element >> 32) * 77u) * 2654435761u +
	             (uint32_t)rank * 0x85ebca6bu + op * 0xc2b2ae35u;
	return (int32_t)(x >> (32 - BITS));
}

/* The op's group as the mesh has it: the communicator's own idea of it is what is verified. Member i is rank first + i
 * x stride. */
struct group {
	int64_t size, place, first, stride;
};

static struct group group_of(const struct verifier *v, const struct op *op)
{
	if (op_is_message(op) || op->flags & OP_ENDS) {
		int64_t peer = peer_rank(v->mesh, v->rank, op);
		bool second = op_is_message(op) ? op->coll == COLL_RECV : mesh_coord(v->mesh, v->rank, DIM_PP) > 0;
		int64_t first = second ? peer : v->rank;
		return (struct group){2, second, first, (second ? v->rank : peer) - first};
	}
	enum mesh_dim d = (enum mesh_dim)op->group;
	return (struct group){v->mesh->size[d], mesh_coord(v->mesh, v->rank, d), mesh_member(v->mesh, v->rank, d, 0),
		v->mesh->stride[d]};
}

/* The op's number at a member: stages count their own. */
static uint32_t number_at(const struct verifier *v, uint32_t id, const struct group *g, int64_t member)
{
	return member == g->place || !v->job->peer_op ? id : v->job->peer_op[id];
}

/* Each member's share of the full buffer that the op reads or writes: [first, first + n). */
struct range {
	uint64_t first, n;
};

static struct range range_of(const struct op *op, const struct group *g, bool input)
{
	uint64_t all = (uint64_t)op->collective.elements, part = all / (uint64_t)g->size;
	bool own_part = op->coll == (input ? COLL_ALL_GATHER : COLL_REDUCE_SCATTER);
	return own_part ? (struct range){(uint64_t)g->place * part, part} : (struct range){0, all};
}

/* Returns the value that a rank writes at an element. It has few enough bits that any sum over the group is exact in
 * the op's format. */
static int32_t put(const struct op *op, uint32_t id, const struct group *g, int64_t rank, uint64_t element)
{
	int members = 0, bits = dtype_exact_bits(op->dtype);
	while (collective_reduces((enum collective)op->coll) && ((int64_t)1 << members) < g->size)
		members++;
	bits = bits - members < BITS ? bits - members : BITS;
	return bits > 0 ? verify_value(id, rank, element) >> (BITS - bits) : 0;
}

/* Returns the value that a collective without reduction delivers: the one that its sender had at `element` of its full
 * buffer. */
static int32_t passed_on(const struct verifier *v, const struct op *op, uint32_t id, const struct group *g,
	uint64_t element)
{
	uint64_t part = (uint64_t)op->collective.elements / (uint64_t)g->size;
	int64_t from = 0; /* broadcast's root, a message's sender */
	if (op->coll == COLL_SENDRECV)
		from = (g->place + g->size - 1) % g->size;
	else if (op->coll != COLL_BROADCAST && op->coll != COLL_RECV)
		from = (int64_t)(element / part);
	if (op->coll == COLL_ALLTOALL)
		element = (uint64_t)g->place * part + element % part;
	return put(op, number_at(v, id, g, from), g, g->first + from * g->stride, element);
}

static int32_t expected(const struct verifier *v, const struct op *op, uint32_t id, const struct group *g,
	uint64_t element)
{
	if (!collective_reduces((enum collective)op->coll))
		return passed_on(v, op, id, g, element);
	int32_t sum = 0, max = 0;
	for (int64_t m = 0; m < g->size; m++) {
		int32_t value = put(op, number_at(v, id, g, m), g, g->first + m * g->stride, element);
		sum += value;
		max = value > max ? value : max;
	}
	return op->reduce == RED_MAX ? max : sum;
}

static void fill(void *ctx, uint32_t id)
{
	struct verifier *v = ctx;
	const struct op *op = &v->job->role->ops.at[id];
	struct group g = group_of(v, op);
	const struct view *in = op_arg(v->job->role, op, 0);
	if (op->coll == COLL_RECV)
		return;
	struct range r = range_of(op, &g, true);
	uint64_t size_B = (uint64_t)dtype_bytes(op->dtype);
	float values[CHUNK], stored[CHUNK];
	for (uint64_t i = 0; i < r.n; i += CHUNK) {
		uint64_t n = r.n - i < CHUNK ? r.n - i : CHUNK;
		for (uint64_t j = 0; j < n; j++)
			values[j] = (float)put(op, id, &g, v->rank, r.first + i + j);
		dtype_store(op->dtype, values, n, stored);
		v->device->ops->write(v->device->ctx, in->buffer, view_offset_B(v->job, in) + i * size_B, stored,
			n * size_B);
	}
}

static void report(struct verifier *v, const struct op *op, uint32_t id, uint64_t element, double got, double want)
{
	char where[64];
	if (op->bucket >= 0)
		snprintf(where, sizeof where, "bucket %d", op->bucket);
	else
		snprintf(where, sizeof where, "%.48s", op->what);
	error_set(v->error, ST_RUN, "verification failed: %s %s (op %u) rank %lld element %llu: got %g, expected %g",
		collective_name(op->coll), where, id, (long long)v->rank, (unsigned long long)element, got, want);
}

static void check(void *ctx, uint32_t id)
{
	struct verifier *v = ctx;
	const struct op *op = &v->job->role->ops.at[id];
	struct group g = group_of(v, op);
	const struct view *out = op_arg(v->job->role, op, 1);
	if (op->coll == COLL_SEND)
		return;
	struct range r = range_of(op, &g, false);
	uint64_t size_B = (uint64_t)dtype_bytes(op->dtype);
	float values[CHUNK], stored[CHUNK];
	for (uint64_t i = 0; i < r.n && !v->error->status; i += CHUNK) {
		uint64_t n = r.n - i < CHUNK ? r.n - i : CHUNK;
		v->device->ops->read(v->device->ctx, out->buffer, view_offset_B(v->job, out) + i * size_B, stored,
			n * size_B);
		dtype_load(op->dtype, stored, n, values);
		for (uint64_t j = 0; j < n; j++) {
			double want = expected(v, op, id, &g, r.first + i + j);
			if ((double)values[j] != want) {
				report(v, op, id, r.first + i + j, (double)values[j], want);
				break;
			}
		}
	}
}

enum status verify_collectives(const struct mesh *mesh, const struct device_job *job, const struct device *d,
	int64_t rank, struct error *e)
{
	struct error wrong = {ST_OK, ""};
	struct verifier v = {mesh, job, d, rank, &wrong};
	struct step_hooks hooks = {fill, check, &v};
	struct device_step step = {.number = 1, .hooks = &hooks, .collectives_only = true};
	enum status st = d->ops->step(d->ctx, &step, e);
	return st ? st : wrong.status ? error_set(e, wrong.status, "%s", wrong.text) : ST_OK;
}
