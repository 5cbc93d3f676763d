#include "sim/price/price.h"

#include "base/array.h"

#include <stdlib.h>
#include <string.h>

#define FREE_SLOT UINT32_MAX

/* The facts of an op that its cost depends on (sim/price/cost.h); its phase is none. Keys are compared as bytes, so
 * they have no padding and are zeroed before they are filled. */
struct key {
	int64_t d[OP_MAX_DIMS];
	uint8_t kind, dtype, out_dtype, coll, reduce, group, mlp, optimizer;
	uint64_t flags;
	uint16_t images;
	uint8_t lane, of_bucket, adapter, modules, dropout, frozen8, dtensors, linears;
};

struct known {
	struct key key;
	uint32_t next; /* the price of the op that came behind one of this price last */
};

/* The prices so far, by key. Ops mostly follow one another as they did in the layer before, so that the next one is
 * guessed, and looked for only where the guess is wrong. */
struct price_memo {
	VEC(struct known) known; /* by index in prices.different */
	uint32_t *slot;          /* open addressing, index in `known`; at most half full */
	size_t slots;            /* a power of two */
};

static struct key key_of(const struct op *op)
{
	struct key k;
	memset(&k, 0, sizeof k);
	memcpy(k.d, op->d, sizeof k.d);
	k.kind = op->kind;
	k.dtype = op->dtype;
	k.out_dtype = op->out_dtype;
	k.coll = op->coll;
	k.reduce = op->reduce;
	k.group = op->group;
	k.mlp = op->mlp;
	k.optimizer = op->optimizer;
	/* Recomputation costs the same; but experts' activations then come without their biases. */
	k.flags = op->kind == OP_WEIGHTED_ACT ? op->flags : op->flags & (uint32_t)~OP_RECOMPUTED;
	k.lane = op->lane;
	k.of_bucket = op->bucket >= 0;
	k.adapter = op->adapter;
	k.modules = op->modules;
	k.dropout = op->dropout;
	k.frozen8 = op->frozen8;
	k.dtensors = op->dtensors;
	k.linears = op->linears;
	k.images = op->images;
	return k;
}

static uint64_t hash_of(const struct key *k)
{
	uint64_t word[sizeof *k / sizeof(uint64_t)], h = 0;
	memcpy(word, k, sizeof word);
	for (size_t i = 0; i < COUNT(word); i++) {
		h = (h ^ word[i]) *
		    UINT64_C(0x9e3779b97f4a7c15); /* 2^64 / golden ratio (Knuth, TAOCP 3, section 6.4) */
		h ^= h >> 29;
	}
	return h;
}

static bool same(const struct key *a, const struct key *b) { return memcmp(a, b, sizeof *a) == 0; }

/* Returns the slot that holds a key, or the free one where it belongs. */
static size_t find(const struct price_memo *memo, const struct key *k)
{
	size_t at = hash_of(k) & (memo->slots - 1);
	while (memo->slot[at] != FREE_SLOT && !same(&memo->known.at[memo->slot[at]].key, k))
		at = (at + 1) & (memo->slots - 1);
	return at;
}

#define SLOTS_LEAST 256 /* a power of two, as each further number */

/* Makes room for one more. */
static bool make_room(struct price_memo *memo)
{
	if (memo->slots >= 2 * (memo->known.n + 1))
		return true;
	const size_t slots = memo->slots ? 2 * memo->slots : SLOTS_LEAST;
	uint32_t *slot = malloc(slots * sizeof *slot);
	if (!slot)
		return false;
	memset(slot, 0xff, slots * sizeof *slot);
	free(memo->slot);
	memo->slot = slot;
	memo->slots = slots;
	for (size_t i = 0; i < memo->known.n; i++)
		slot[find(memo, &memo->known.at[i].key)] = (uint32_t)i;
	return true;
}

/* Fills the price of an op. *index: the guess. */
static enum status price(const struct program *p, const struct op *op, const struct rates *r, struct price_memo *memo,
	struct prices *out, uint32_t *index, struct error *e)
{
	const struct known k = {key_of(op), 0};
	if (*index < memo->known.n && same(&memo->known.at[*index].key, &k.key))
		return ST_OK;
	if (!make_room(memo))
		return error_nomem(e, "prices");
	const size_t at = find(memo, &k.key);
	*index = memo->slot[at];
	if (*index != FREE_SLOT)
		return ST_OK;
	struct op_cost cost;
	enum status st = cost_op(p, op, r, &cost, e);
	if (st)
		return st;
	*index = memo->slot[at] = (uint32_t)out->different.n;
	return vec_push(&memo->known, k) && vec_push(&out->different, cost) ? ST_OK : error_nomem(e, "prices");
}

static enum status price_role(const struct program *p, const struct role *role, const struct rates *r,
	struct price_memo *memo, struct prices *out, uint32_t *of_op, struct error *e)
{
	uint32_t before = FREE_SLOT;
	for (size_t i = 0; i < role->ops.n; i++) {
		uint32_t index = before == FREE_SLOT ? 0 : memo->known.at[before].next;
		enum status st = price(p, &role->ops.at[i], r, memo, out, &index, e);
		if (st)
			return st;
		if (before != FREE_SLOT)
			memo->known.at[before].next = index;
		before = of_op[i] = index;
	}
	return ST_OK;
}

enum status price_further(const struct program *p, const struct rates *r, struct prices *all, struct error *e)
{
	enum status st = ST_OK;
	size_t n = 0;
	for (size_t k = 0; k < p->n_roles; k++)
		n += p->roles[k].ops.n;
	free(all->of_op);
	free(all->first_op);
	all->of_op = malloc((n + 1) * sizeof *all->of_op);
	all->first_op = calloc(p->n_roles + 1, sizeof *all->first_op);
	if (!all->memo)
		all->memo = calloc(1, sizeof *all->memo);
	if (!all->of_op || !all->first_op || !all->memo)
		return error_nomem(e, "prices");
	for (size_t k = 0; k < p->n_roles && !st; k++) {
		all->first_op[k + 1] = all->first_op[k] + p->roles[k].ops.n;
		st = price_role(p, &p->roles[k], r, all->memo, all, &all->of_op[all->first_op[k]], e);
	}
	return st;
}

enum status price_program(const struct program *p, const struct rates *r, struct prices *out, struct error *e)
{
	*out = (struct prices){0};
	return price_further(p, r, out, e);
}

void prices_free(struct prices *p)
{
	if (!p)
		return;
	if (p->memo) {
		free(p->memo->slot);
		vec_free(&p->memo->known);
	}
	free(p->memo);
	vec_free(&p->different);
	free(p->of_op);
	free(p->first_op);
	*p = (struct prices){0};
}
