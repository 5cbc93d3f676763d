/* Optimizers whose moments have 8 bits: a block's are made fp32, updated as they would be there, and rounded to the
 * nearest values that its new scale allows. */
#include <math.h>
#include <pthread.h>
#include <string.h>

#include "exec/host/dynamic_map.h"
#include "exec/host/kernels_optimizer.h"

/* Sizes are looked up by a float's exponent and 7 leading bits of its fraction: narrower than the distance of any two
 * middles, so that one comparison is left. */
#define SIZE_SHIFT 16
#define SIZE_FIRST (UINT32_C(0x33800000) >> SIZE_SHIFT) /* of 2^-24: what is smaller is nearest to 0 */
#define SIZE_LAST (UINT32_C(0x3f800000) >> SIZE_SHIFT)  /* of 1 */

static struct map {
	float value[DYNAMIC_MAP_CODES];
	int zero;                                  /* the byte of 0 */
	float middle[DYNAMIC_MAP_CODES];           /* between values zero + k and zero + k + 1; above the last: none */
	uint8_t below[SIZE_LAST - SIZE_FIRST + 1]; /* middles below the least float of such a size */
} maps[2];                                         /* with a sign, without */
static pthread_once_t maps_once = PTHREAD_ONCE_INIT;

static void map_fill(struct map *m, bool has_sign)
{
	m->zero = has_sign ? DYNAMIC_MAP_ZERO : 0;
	for (int c = 0; c < DYNAMIC_MAP_CODES; c++) {
		m->value[c] = dynamic_map_value(c, has_sign);
		m->middle[c] = m->zero + c + 1 < DYNAMIC_MAP_CODES ? dynamic_map_middle(m->zero + c, has_sign)
		                                                   : INFINITY;
	}
	for (uint32_t k = SIZE_FIRST; k <= SIZE_LAST; k++) {
		const uint32_t bits = k == SIZE_FIRST ? 0 : k << SIZE_SHIFT;
		float least;
		memcpy(&least, &bits, sizeof least);
		while (m->middle[m->below[k - SIZE_FIRST]] < least)
			m->below[k - SIZE_FIRST]++;
	}
}

static void maps_fill(void)
{
	map_fill(&maps[0], true);
	map_fill(&maps[1], false);
}

/* The largest size, found among bit patterns: floats of one sign are in their order, and whole numbers have a largest
 * in vectors. */
static float largest_of(const float *x, int64_t n)
{
	uint32_t largest = 0;
	float size;
	for (int64_t i = 0; i < n; i++) {
		uint32_t bits;
		memcpy(&bits, &x[i], sizeof bits);
		bits &= UINT32_C(0x7fffffff);
		largest = bits > largest ? bits : largest;
	}
	memcpy(&size, &largest, sizeof size);
	return size;
}

/* The byte of the value nearest to y, |y| <= 1; below 0 one below 0. Without branches, which nothing could foresee. */
static inline uint8_t nearest(const struct map *m, float y)
{
	const float size = fabsf(y);
	uint32_t bits;
	memcpy(&bits, &size, sizeof bits);
	bits >>= SIZE_SHIFT;
	bits = bits < SIZE_FIRST ? SIZE_FIRST : bits > SIZE_LAST ? SIZE_LAST : bits;
	int k = m->below[bits - SIZE_FIRST];
	k += size > m->middle[k];
	const int negative = y < 0.0f;
	k += (negative & (k == 0)) - (negative & (k > m->zero)); /* there is no -1 */
	return (uint8_t)(m->zero + ((k ^ -negative) + negative));
}

/* Parts of one moment that belong to a run of blocks. */
struct moment_8 {
	float *scale;
	uint8_t *code;
};

static void unpack(const struct moment_8 *s, int64_t block, int64_t n, int map, float *x)
{
	const uint8_t *code = s->code + block * OPTIMIZER_BLOCK;
	const float scale = s->scale[block], *value = maps[map].value;
	for (int64_t i = 0; i < n; i++)
		x[i] = value[code[i]] * scale;
}

static void pack(const struct moment_8 *s, int64_t block, int64_t n, int map, const float *x)
{
	uint8_t *code = s->code + block * OPTIMIZER_BLOCK;
	const float scale = largest_of(x, n);
	float y[OPTIMIZER_BLOCK];
	s->scale[block] = scale;
	const float by = scale > 0.0f ? scale : 1.0f;
	for (int64_t i = 0; i < n; i++)
		y[i] = x[i] / by;
	for (int64_t i = 0; i < n; i++)
		code[i] = nearest(&maps[map], y[i]);
}

/* The elements from u's on, in blocks. */
struct blocks_job {
	const struct update *u;
	pass_fn *pass;
	struct moment_8 m, v;
	int64_t n;
};

static void blocks_part(void *ctx, int64_t begin, int64_t end, int part, int thread)
{
	(void)part, (void)thread;
	const struct blocks_job *j = ctx;
	float m[OPTIMIZER_BLOCK], v[OPTIMIZER_BLOCK];
	for (int64_t b = begin; b < end; b++) {
		const int64_t first = b * OPTIMIZER_BLOCK,
			      n = j->n - first < OPTIMIZER_BLOCK ? j->n - first : OPTIMIZER_BLOCK;
		struct update u = *j->u;
		u.p += first, u.w += first, u.g += first, u.m = m, u.v = v;
		unpack(&j->m, b, n, 0, m);
		if (j->v.code)
			unpack(&j->v, b, n, 1, v);
		j->pass(&u, 0, n);
		pack(&j->m, b, n, 0, m);
		if (j->v.code)
			pack(&j->v, b, n, 1, v);
	}
}

/* Blocks of the part before the range in 32 bits (0), or of that behind it (1); elements [first, first + n). */
static void run_blocks(const struct host_env *env, const struct op *op, const struct update *u, pass_fn *pass, int side,
	int64_t first, int64_t n)
{
	const struct states_8 s = states_8_of(op->update.elements, op->update.wide_from, op->update.wide_to);
	const int64_t codes = side ? op->update.wide_from : 0; /* before these */
	struct update here = *u;
	struct blocks_job j = {.u = &here, .pass = pass, .n = n};
	here.p += first, here.w += first, here.g += first;
	j.m = (struct moment_8){u->m + (side ? s.blocks[0] : 0), (uint8_t *)u->m + s.codes_B + codes};
	if (u->v)
		j.v = (struct moment_8){u->v + (side ? s.blocks[0] : 0), (uint8_t *)u->v + s.codes_B + codes};
	kernel_split(env, kernel_parts(env, s.blocks[side], OPTIMIZER_BLOCK), s.blocks[side], blocks_part, &j);
}

void kernel_optimizer_8(const struct host_env *env, const struct op *op, const struct update *u, pass_fn *pass)
{
	const int64_t from = op->update.wide_from, to = op->update.wide_to;
	const uint64_t wide = states_8_of(op->update.elements, from, to).wide_B / sizeof(float);
	struct update middle = *u;
	pthread_once(&maps_once, maps_fill);
	run_blocks(env, op, u, pass, 0, 0, from);
	run_blocks(env, op, u, pass, 1, to, op->update.elements - to);
	middle.p += from, middle.w += from, middle.g += from, middle.m += wide;
	if (u->v)
		middle.v += wide;
	kernel_update(env, &middle, to - from, pass);
}
