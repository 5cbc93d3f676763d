#include "sim/price/price.h"

#include "base/array.h"

#include <stdlib.h>
#include <string.h>

#define FREE_SLOT UINT32_MAX

/* The facts of an op that its cost depends on (sim/price/cost.h). Keys are compared as bytes, so they have no padding
 * and are zeroed before they are filled. */
struct key {
	int64_t d[OP_MAX_DIMS];
	uint8_t kind, dtype, out_dtype, coll, reduce, group, mlp, optimizer;
	uint64_t flags;
};

struct memo {
	VEC(struct key) keys; /* by index in prices.different */
	uint32_t *slot;       /* open addressing, index in keys */
	size_t mask;
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
	k.flags = op->flags & ~(unsigned)OP_RECOMPUTED; /* recomputation costs the same */
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

/* Returns the slot that holds a key, or the free one where it belongs. */
static size_t find(const struct memo *memo, const struct key *k)
{
	size_t at = hash_of(k) & memo->mask;
	while (memo->slot[at] != FREE_SLOT && memcmp(&memo->keys.at[memo->slot[at]], k, sizeof *k) != 0)
		at = (at + 1) & memo->mask;
	return at;
}

static enum status price(const struct program *p, const struct op *op, const struct rates *r, struct memo *memo,
	struct prices *out, uint32_t *index, struct error *e)
{
	struct key k = key_of(op);
	size_t at = find(memo, &k);
	*index = memo->slot[at];
	if (*index != FREE_SLOT)
		return ST_OK;
	struct op_cost cost;
	enum status st = cost_op(p, op, r, &cost, e);
	if (st)
		return st;
	*index = memo->slot[at] = (uint32_t)out->different.n;
	return vec_push(&memo->keys, k) && vec_push(&out->different, cost) ? ST_OK : error_nomem(e, "prices");
}

enum status price_role(const struct program *p, const struct role *role, const struct rates *r, struct prices *out,
	struct error *e)
{
	enum status st = ST_OK;
	struct memo memo = {0};
	size_t slots = 16;
	while (slots < 2 * role->ops.n)
		slots *= 2;
	memo.mask = slots - 1;
	memo.slot = malloc(slots * sizeof *memo.slot);
	out->of_op = malloc((role->ops.n ? role->ops.n : 1) * sizeof *out->of_op);
	if (!memo.slot || !out->of_op) {
		st = error_nomem(e, "prices");
		goto out;
	}
	memset(memo.slot, 0xff, slots * sizeof *memo.slot);
	for (size_t i = 0; i < role->ops.n && !st; i++)
		st = price(p, &role->ops.at[i], r, &memo, out, &out->of_op[i], e);
out:
	free(memo.slot);
	vec_free(&memo.keys);
	return st;
}

void prices_free(struct prices *p)
{
	if (!p)
		return;
	vec_free(&p->different);
	free(p->of_op);
	p->of_op = NULL;
}
