/* Appending buffers and ops to a stage's program, with the dependencies that their arguments bring. */
#include "step/builder/build.h"

#include <assert.h>

#include "base/array.h"

void build_nomem(struct builder *b, const char *what)
{
	if (!b->st)
		b->st = error_nomem(b->e, what);
}

static void fail_nomem(struct builder *b) { build_nomem(b, "the step program"); }

/* ---- buffers ---- */

int32_t build_buffer(struct builder *b, enum component comp, enum dtype dt, int64_t elements, bool persistent)
{
	struct buffer buf = {comp, dt, (uint64_t)((double)elements * dtype_bytes(dt) + 0.5), persistent, false, false,
		false, false};
	if (b->st || !vec_push(&b->r->buffers, buf) || !vec_reserve(&b->usage, 1)) {
		fail_nomem(b);
		return NONE;
	}
	struct usage *use = &b->usage.at[b->usage.n++]; /* `reader` counts for nothing yet, and is left as it is */
	use->writer = NONE;
	use->readers = 0;
	return (int32_t)b->r->buffers.n - 1;
}

int32_t build_hold(struct builder *b, enum component comp, double bytes, const char *what)
{
	struct held h = {comp, (uint64_t)(bytes + 0.5), (uint32_t)b->r->ops.n, HELD_ALWAYS, what};
	if (b->st || h.bytes == 0)
		return NONE;
	if (!vec_push(&b->r->held, h)) {
		fail_nomem(b);
		return NONE;
	}
	return (int32_t)b->r->held.n - 1;
}

void build_release(struct builder *b, int32_t *held)
{
	if (*held != NONE && !b->st)
		b->r->held.at[*held].to = (uint32_t)b->r->ops.n - 1;
	*held = NONE;
}

int32_t build_act(struct builder *b, int64_t rows, int64_t cols)
{
	return build_buffer(b, COMP_ACTIVATIONS, b->act, rows * cols, false);
}

int32_t build_rows(struct builder *b) { return build_act(b, b->rows, b->m->hidden); }

int32_t build_fp32(struct builder *b, int64_t elements)
{
	return build_buffer(b, COMP_ACTIVATIONS, DT_FP32, elements, false);
}

int64_t build_size(const struct builder *b, int32_t buffer)
{
	const struct buffer *at = &b->r->buffers.at[buffer];
	return (int64_t)((double)at->bytes / dtype_bytes(at->dtype));
}

/* ---- ops ---- */

struct op build_matrix(const struct builder *b, enum op_kind k, const char *what, int64_t rows, int64_t cols)
{
	struct op op = build_new(b, k, what);
	op.matrix.rows = rows;
	op.matrix.cols = cols;
	return op;
}

void build_span(struct builder *b, int64_t seq)
{
	b->seq = seq / b->context;
	b->tokens = b->c->train.micro_batch * b->seq;
	b->rows = b->sequence_parallel ? b->tokens / b->tensor : b->tokens;
}

struct op build_sequence_op(const struct builder *b, enum op_kind k, const char *what, int64_t first)
{
	struct op op = build_new(b, k, what);
	op.sequence.batch = b->c->train.micro_batch;
	op.sequence.seq = b->m->seq_len;
	op.sequence.first = first;
	op.sequence.cols = b->m->hidden;
	return op;
}

void build_after(struct builder *b, enum lane lane, int64_t op)
{
	/* Ops of a lane end in their order: the latest of each lane implies the others. */
	for (size_t i = 0; op != NONE && i < b->after[lane].n; i++) {
		int64_t *known = &b->after[lane].at[i];
		if (b->r->ops.at[*known].lane == b->r->ops.at[op].lane) {
			*known = op > *known ? op : *known;
			return;
		}
	}
	if (op != NONE && !vec_push(&b->after[lane], op))
		fail_nomem(b);
}

int64_t build_last(const struct builder *b, enum lane lane) { return b->clocks.last[lane]; }

static bool is_known(const struct builder *b, uint32_t op, const struct clock *known)
{
	return b->clocks.place.at[op] < known->known[b->r->ops.at[op].lane];
}

/* The arguments that a kind writes, whatever the flags: 1 << place each. ACC_A and those behind it write. */
/* clang-format off */
static const uint16_t writes_of[] = {
#define OP(kind, name, class_, family, shown, flop, work, suffix, like, args) [OP_##kind] = 0 args,
#define ARG_PART(kind, name, access, ...) | (ACC_##access >= ACC_W ? 1u << ARG_##kind##_##name : 0u)
#include "step/ops.def"
};
/* clang-format on */
static_assert(OP_MAX_ARGS <= 16, "a bit for each argument");

/* The arguments of an op that is appended. */
struct touched {
	const struct view *args;
	int n;
	uint32_t writes; /* else it reads alone */
};

static struct touched touched_by(const struct op *op, const struct view *args)
{
	return (struct touched){args, op_kind_info(op->kind)->n_args, writes_of[op->kind]};
}

/* Fills *out with the ops that an op must follow because of the buffers it touches, but for those that it knows to have
 * ended. Returns their number, at most 1 + LANE_COUNT for each argument. */
static size_t hazards(const struct builder *b, const struct touched *t, const struct clock *known, int64_t *out)
{
	size_t n = 0;
	for (int i = 0; i < t->n; i++) {
		if (t->args[i].buffer < 0)
			continue;
		const struct usage *u = &b->usage.at[t->args[i].buffer];
		if (u->writer != NONE && !is_known(b, (uint32_t)u->writer, known))
			out[n++] = u->writer;
		for (uint32_t left = t->writes >> i & 1 ? u->readers : 0; left; left &= left - 1) {
			const int32_t reader = u->reader[__builtin_ctz(left)];
			if (!is_known(b, (uint32_t)reader, known))
				out[n++] = reader;
		}
	}
	return n;
}

/* Sorts a few numbers, the largest first: by insertion, as qsort's calls would take longer than all else of an op. */
static void sort_descending(int64_t *at, size_t n)
{
	for (size_t i = 1; i < n; i++) {
		const int64_t x = at[i];
		size_t k = i;
		for (; k > 0 && at[k - 1] < x; k--)
			at[k] = at[k - 1];
		at[k] = x;
	}
}

static void record_use(struct builder *b, const struct touched *t, uint8_t lane, int32_t id)
{
	for (int i = 0; i < t->n; i++) {
		if (t->args[i].buffer < 0)
			continue;
		struct usage *u = &b->usage.at[t->args[i].buffer];
		if (t->writes >> i & 1) {
			u->writer = id;
			u->readers = 0;
		} else if (u->writer != id) {
			u->reader[lane] = id;
			u->readers |= 1u << lane;
		}
	}
}

static bool append_args(struct role *r, const struct touched *t)
{
	if (!vec_reserve(&r->args, (size_t)t->n))
		return false;
	for (int i = 0; i < t->n; i++)
		r->args.at[r->args.n++] = t->args[i];
	return true;
}

/* Appends when the op begins. An op of LANE_COMPUTE also tells which of the other lanes' ops have ended once it has. */
static bool append_when(struct builder *b, const struct op *op, const struct clock *known)
{
	struct role *r = b->r;
	const bool computes = op->lane == LANE_COMPUTE;
	const uint32_t begins = known->known[LANE_COMPUTE], over = computes ? begins + 1 : OVER_NEVER;
	if (!vec_push(&r->when, ((struct op_when){begins, over})))
		return false;
	if (!computes) {
		b->unheard |= 1u << op->lane;
		return vec_push(&b->on_lane[op->lane], (uint32_t)r->when.n - 1);
	}
	for (uint32_t left = b->unheard; left; left &= left - 1) {
		const int l = __builtin_ctz(left);
		for (; b->heard[l] < known->known[l]; b->heard[l]++)
			r->when.at[b->on_lane[l].at[b->heard[l]]].over = over;
		if (b->heard[l] == b->on_lane[l].n)
			b->unheard &= ~(1u << l);
	}
	return true;
}

void build_op(struct builder *b, const struct op *op, const struct view *args)
{
	if (b->st)
		return;
	struct role *r = b->r;
	int64_t wait[OP_MAX_ARGS * (LANE_COUNT + 1) + 16];
	const uint8_t lane = op->lane;
	const struct touched touched = touched_by(op, args);
	struct clock known = clocks_lane(&b->clocks, lane);
	size_t n = hazards(b, &touched, &known, wait);
	for (size_t i = 0; i < b->after[lane].n && n < COUNT(wait); i++)
		wait[n++] = b->after[lane].at[i];
	b->after[lane].n = 0;
	sort_descending(wait, n); /* the latest first: they often imply the others */
	const uint32_t dep0 = (uint32_t)r->deps.n, arg0 = (uint32_t)r->args.n;
	for (size_t i = 0; i < n; i++) {
		uint32_t dep = (uint32_t)wait[i];
		if (is_known(b, dep, &known))
			continue;
		if (r->ops.at[dep].lane != lane && !vec_push(&r->deps, dep))
			fail_nomem(b);
		clocks_join(&b->clocks, r, dep, &known);
	}
	if (b->st || !append_args(r, &touched) || !clocks_append(&b->clocks, lane, &known) ||
		!append_when(b, op, &known) || !vec_push(&r->ops, *op)) {
		fail_nomem(b);
		return;
	}
	/* Members are set in the array: copying a struct just after a member of it was set waits for that. */
	struct op *at = &r->ops.at[r->ops.n - 1];
	at->dep0 = dep0;
	at->n_dep = (uint32_t)r->deps.n - dep0;
	at->arg0 = arg0;
	record_use(b, &touched, lane, (int32_t)r->ops.n - 1);
}

void build_on_buffers(struct builder *b, const struct op *op, const int32_t *buffers)
{
	struct view args[OP_MAX_ARGS];
	const int n = op_kind_info(op->kind)->n_args;
	for (int i = 0; i < n; i++)
		args[i] = view_of(buffers[i]);
	build_op(b, op, args);
}

struct op build_collective(const struct builder *b, enum collective coll, enum mesh_dim group, enum lane lane,
	enum dtype dt, int64_t elements, const char *what, int32_t bucket)
{
	struct op op = build_new(b, OP_COLLECTIVE, what);
	op.lane = (uint8_t)lane;
	op.dtype = op.out_dtype = (uint8_t)dt;
	op.coll = (uint8_t)coll;
	op.group = (uint8_t)group;
	op.bucket = bucket;
	op.collective.elements = elements;
	return op;
}

void build_all_reduce(struct builder *b, enum mesh_dim group, enum lane lane, enum dtype dt, int64_t elements,
	struct view v, const char *what, int32_t bucket)
{
	build_with(b, made_op(build_collective(b, COLL_ALL_REDUCE, group, lane, dt, elements, what, bucket)), v, v);
}

int32_t build_exchange(struct builder *b, enum collective coll, enum mesh_dim group, int32_t in, int64_t rows,
	int64_t cols, const char *what)
{
	int32_t out = build_act(b, coll == COLL_REDUCE_SCATTER ? rows / b->p->mesh.size[group] : rows, cols);
	build_on(b, made_op(build_collective(b, coll, group, LANE_MODEL_COMM, b->act, rows * cols, what, NONE)), in,
		out);
	return out;
}

int32_t build_swap(struct builder *b, const char *what, int32_t x, enum dtype dt, int64_t outer, int64_t inner,
	int64_t cols)
{
	if (outer == 1 || inner == 1)
		return x;
	struct op op = build_new(b, OP_SWAP, what);
	int32_t y = build_buffer(b, COMP_ACTIVATIONS, dt, outer * inner * cols, false);
	op.dtype = op.out_dtype = (uint8_t)dt;
	op.swap.outer = outer;
	op.swap.inner = inner;
	op.swap.cols = cols;
	build_on(b, &op, x, y);
	return y;
}

void build_cast(struct builder *b, struct view x, enum dtype from, struct view y, enum dtype to, int64_t elements,
	const char *what)
{
	struct op op = build_new(b, OP_CAST, what);
	op.dtype = (uint8_t)from;
	op.out_dtype = (uint8_t)to;
	op.vector.elements = elements;
	build_with(b, &op, x, y);
}

void build_fill(struct builder *b, struct view v, enum dtype dt, int64_t elements, const char *what)
{
	struct op op = build_new(b, OP_FILL, what);
	op.dtype = op.out_dtype = (uint8_t)dt;
	op.vector.elements = elements;
	build_op(b, &op, &v);
}
