#include "step/timeline.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "step/peers.h"

#define S_PER_PS 1e-12

/* The categories in order of precedence: an instant belongs to the first that is active. */
enum category { CAT_OPTIMIZER, CAT_COMPUTE, CAT_COMM, CAT_COPY, CAT_HOST, CAT_BUBBLE, CAT_IDLE, CAT_COUNT };

static enum category category_of(const struct span *s)
{
	if (op_class_is_comm(s->class_))
		return CAT_COMM;
	if (s->class_ == CLASS_COPY)
		return CAT_COPY;
	if (s->class_ == CLASS_HOST)
		return CAT_HOST;
	return s->class_ == CLASS_OPTIMIZER || s->phase == PHASE_OPTIMIZER ? CAT_OPTIMIZER : CAT_COMPUTE;
}

void timeline_free(struct timeline *t)
{
	if (!t)
		return;
	vec_free(&t->spans);
	*t = (struct timeline){0};
}

static enum status check_span(const struct timeline *t, size_t i, struct error *e)
{
	const struct span *s = &t->spans.at[i], *before = i > 0 ? s - 1 : NULL;
	if (s->actor >= t->actors || s->lane >= LANE_COUNT || s->class_ >= CLASS_COUNT || s->phase >= PHASE_COUNT)
		return error_set(e, ST_RUN, "timeline: span %zu: actor, lane, class or phase out of range", i);
	if (before && (s->actor < before->actor || (s->actor == before->actor && s->op <= before->op)))
		return error_set(e, ST_RUN, "timeline: span %zu is not in order of actor and op", i);
	if (s->start_ps < 0 || s->move_ps < s->start_ps || s->end_ps < s->move_ps || s->end_ps > t->step_ps)
		return error_set(e, ST_RUN,
			"timeline: span %zu: 0 <= start %lld <= move %lld <= end %lld <= step %lld ps does not hold", i,
			(long long)s->start_ps, (long long)s->move_ps, (long long)s->end_ps, (long long)t->step_ps);
	if (s->move_ps != s->start_ps && !op_class_is_comm(s->class_))
		return error_set(e, ST_RUN, "timeline: span %zu: only a collective waits for others", i);
	return ST_OK;
}

static enum status check_spans(const struct timeline *t, size_t from, size_t to, struct error *e)
{
	const struct span *last[LANE_COUNT] = {0};
	for (size_t i = from; i < to; i++) {
		const struct span *s = &t->spans.at[i];
		if (check_span(t, i, e))
			return ST_RUN;
		const struct span *before = last[s->lane];
		if (before && before->actor == s->actor && s->start_ps < before->end_ps)
			return error_set(e, ST_RUN, "timeline: actor %u, lane %u: op %u starts before op %u has ended",
				s->actor, s->lane, s->op, before->op);
		last[s->lane] = s;
	}
	return ST_OK;
}

enum status timeline_check(const struct timeline *t, struct error *e) { return check_spans(t, 0, t->spans.n, e); }

/* Returns the first span of an actor, or of those behind it. */
static size_t first_span(const struct timeline *t, uint32_t actor)
{
	size_t lo = 0, hi = t->spans.n;
	while (lo < hi) {
		const size_t mid = (lo + hi) / 2;
		if (t->spans.at[mid].actor < actor)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static enum status check_actor(const struct timeline *t, uint32_t actor, struct error *e)
{
	const size_t n = t->spans.n;
	const enum status st = check_spans(t, first_span(t, actor), first_span(t, actor + 1), e);
	return st || n == 0 ? st : check_span(t, n - 1, e); /* no actor is out of range: they come in order */
}

uint32_t timeline_critical_actor(const struct timeline *t)
{
	uint32_t critical = 0;
	int64_t latest = -1;
	for (size_t i = 0; i < t->spans.n; i++)
		if (t->spans.at[i].end_ps > latest) {
			latest = t->spans.at[i].end_ps;
			critical = t->spans.at[i].actor;
		}
	return critical;
}

uint32_t timeline_last_of_role(const struct timeline *t, const struct program *p, uint32_t role)
{
	uint32_t last = 0;
	int64_t latest = -1;
	bool counts = false;
	for (size_t i = 0; i < t->spans.n; i++) {
		const struct span *s = &t->spans.at[i];
		if (i == 0 || s->actor != s[-1].actor)
			counts = timeline_role(t, p, s->actor) == &p->roles[role];
		if (counts && s->end_ps > latest) {
			latest = s->end_ps;
			last = s->actor;
		}
	}
	return last;
}

/* ---- the partition: the lanes' boundaries, each already in order, merged ---- */

/* Where a lane is at an instant: before a span, in its wait, or in its move. */
enum stage { BEFORE, WAITING, MOVING };
struct cursor {
	size_t span;
	enum stage stage;
	enum category category; /* of the span */
};

/* An actor's lanes on their way through its spans, and what is going on at the instant that they have come to. */
struct merge {
	const struct span *spans;        /* the actor's */
	const uint32_t *next;            /* by span: the next one of its lane, NO_SPAN: none */
	uint32_t left;                   /* the lanes that have spans left: 1 << enum lane each */
	int64_t boundary_ps[LANE_COUNT]; /* when the lane's stage ends */
	struct cursor lanes[LANE_COUNT];
	int moving[CAT_COUNT]; /* lanes that move, by category */
	int late, receiving;   /* lanes that wait for peers of a group, and for a message to come */
};
#define NO_SPAN UINT32_MAX

/* Counts a lane's stage among what is going on, or takes it out (by: 1, -1). Messages are posted early: waiting for
 * them is not lateness. */
static void count_stage(struct merge *m, int lane, int by)
{
	const struct cursor *c = &m->lanes[lane];
	if (c->stage == MOVING)
		m->moving[c->category] += by;
	if (c->stage != WAITING)
		return;
	m->late += m->spans[c->span].class_ != CLASS_SENDRECV ? by : 0;
	m->receiving += lane == LANE_RECV_PREV || lane == LANE_RECV_NEXT ? by : 0;
}

/* Puts a lane before a span, or takes it out with NO_SPAN. */
static void begin_span(struct merge *m, int lane, uint32_t span)
{
	if (span == NO_SPAN) {
		m->left &= ~(1u << lane);
		return;
	}
	m->left |= 1u << lane;
	m->lanes[lane] = (struct cursor){span, BEFORE, category_of(&m->spans[span])};
	m->boundary_ps[lane] = m->spans[span].start_ps;
}

/* Moves a lane over all boundaries that lie at `now`. */
static void step_lane(struct merge *m, int lane, int64_t now)
{
	struct cursor *c = &m->lanes[lane];
	count_stage(m, lane, -1);
	while (m->left >> lane & 1 && m->boundary_ps[lane] == now) {
		const struct span *s = &m->spans[c->span];
		if (c->stage == MOVING) {
			begin_span(m, lane, m->next[c->span]);
		} else {
			m->boundary_ps[lane] = c->stage == BEFORE ? s->move_ps : s->end_ps;
			c->stage++;
		}
	}
	if (m->left >> lane & 1)
		count_stage(m, lane, 1);
}

struct partition {
	int64_t part_ps[CAT_COUNT], comm_ps, wait_ps;
};

/* What waits does nothing: the instant is idle, or a bubble, unless another lane works. */
static void account(struct partition *p, const struct merge *m, bool taken, int64_t lasts_ps)
{
	int first = 0;
	while (first < CAT_BUBBLE && m->moving[first] == 0 && !(taken && first == CAT_COMPUTE))
		first++;
	if (first == CAT_BUBBLE && m->receiving == 0)
		first = CAT_IDLE;
	p->part_ps[first] += lasts_ps;
	p->comm_ps += m->moving[CAT_COMM] > 0 ? lasts_ps : 0;
	p->wait_ps += m->late > 0 ? lasts_ps : 0;
}

/* When all cores begin and end to be taken, in order: n times, two for each stretch. */
struct taken {
	int64_t *edge_ps;
	size_t n;
};

/* Returns the next boundary of lanes and of the taken cores, INT64_MAX without one, and the lanes that have it. */
static int64_t next_boundary(const struct merge *m, const struct taken *taken, size_t edge, uint32_t *due)
{
	int64_t next = edge < taken->n ? taken->edge_ps[edge] : INT64_MAX;
	*due = 0;
	for (uint32_t left = m->left; left; left &= left - 1) {
		const int64_t at = m->boundary_ps[__builtin_ctz(left)];
		*due = at < next ? left & -left : at == next ? *due | (left & -left) : *due;
		next = at < next ? at : next;
	}
	return next;
}

/* Fills the partition of an actor's n spans. next: of struct merge, to be filled. */
static struct partition partition_of(const struct timeline *t, const struct span *spans, size_t n, uint32_t *next,
	const struct taken *taken)
{
	struct partition p = {0};
	struct merge m = {.spans = spans, .next = next};
	uint32_t of_lane[LANE_COUNT], due;
	memset(of_lane, 0xff, sizeof of_lane);
	for (size_t i = n; i-- > 0; of_lane[spans[i].lane] = (uint32_t)i)
		next[i] = of_lane[spans[i].lane];
	for (int l = 0; l < LANE_COUNT; l++)
		begin_span(&m, l, of_lane[l]);
	int64_t now = 0, then;
	for (size_t edge = 0; (then = next_boundary(&m, taken, edge, &due)) < INT64_MAX;) {
		account(&p, &m, edge % 2 == 1, then - now);
		now = then;
		while (edge < taken->n && taken->edge_ps[edge] == now)
			edge++;
		for (; due; due &= due - 1)
			step_lane(&m, __builtin_ctz(due), now);
	}
	p.part_ps[CAT_IDLE] += t->step_ps - now;
	return p;
}

/* So many cores more are taken from `at_ps` on. */
struct change {
	int64_t at_ps, more;
};

static int by_time(const void *a, const void *b)
{
	const struct change *x = a, *y = b;
	return (x->at_ps > y->at_ps) - (x->at_ps < y->at_ps);
}

/* When the ops had ended that the i-th span's op waits for, on its lane (`lane_ps`) and elsewhere. first: the actor's
 * first span. */
static int64_t ready_ps(const struct timeline *t, const struct role *r, size_t first, size_t i, int64_t lane_ps)
{
	const struct op *op = &r->ops.at[t->spans.at[i].op];
	int64_t ready = lane_ps;
	for (uint32_t d = op->dep0; d < op->dep0 + op->n_dep; d++) {
		const int64_t end_ps = t->spans.at[first + r->deps.at[d]].end_ps;
		ready = end_ps > ready ? end_ps : ready;
	}
	return ready < t->spans.at[i].start_ps ? ready : t->spans.at[i].start_ps;
}

/* The actor's own ops take all cores: it does not wait for more than one of them. */
static enum status find_taken(const struct timeline *t, uint32_t actor, const struct shared_cores *shared,
	struct taken *out, struct error *e)
{
	struct change *changes = malloc((2 * t->spans.n + 1) * sizeof *changes);
	size_t n = 0;
	int64_t busy = 0, lane_ps = 0;
	out->edge_ps = malloc((2 * t->spans.n + 1) * sizeof *out->edge_ps);
	if (!changes || !out->edge_ps) {
		free(changes);
		free(out->edge_ps);
		return error_nomem(e, "the times when cores were taken");
	}
	for (size_t i = 0, first = 0; i < t->spans.n; i++) {
		const struct span *s = &t->spans.at[i];
		if (i == 0 || s->actor != s[-1].actor) {
			first = i;
			lane_ps = 0;
		}
		if (shared->host_of[s->actor] != shared->host_of[actor] || category_of(s) > CAT_COMPUTE)
			continue;
		const int64_t cores = s->actor == actor ? shared->cores : 1;
		const struct role *role = timeline_role(t, shared->program, s->actor);
		changes[n++] = (struct change){ready_ps(t, role, first, i, lane_ps), cores};
		changes[n++] = (struct change){s->end_ps, -cores};
		lane_ps = s->end_ps;
	}
	qsort(changes, n, sizeof *changes, by_time);
	for (size_t i = 0; i < n; i++) {
		busy += changes[i].more;
		if (i + 1 < n && changes[i + 1].at_ps == changes[i].at_ps)
			continue;
		if ((busy >= shared->cores) != (out->n % 2 == 1))
			out->edge_ps[out->n++] = changes[i].at_ps;
	}
	free(changes);
	return ST_OK;
}

enum status timeline_breakdown(const struct timeline *t, uint32_t actor, struct breakdown *out, struct error *e)
{
	return timeline_breakdown_shared(t, actor, NULL, out, e);
}

enum status timeline_breakdown_shared(const struct timeline *t, uint32_t actor, const struct shared_cores *shared,
	struct breakdown *out, struct error *e)
{
	*out = (struct breakdown){0};
	struct taken taken = {0};
	enum status st = shared ? timeline_check(t, e) : check_actor(t, actor, e);
	if (!st && shared)
		st = find_taken(t, actor, shared, &taken, e);
	if (st)
		return st;
	const size_t first = first_span(t, actor), n = first_span(t, actor + 1) - first;
	uint32_t *next = malloc((n + 1) * sizeof *next);
	struct partition p = {0};
	if (next)
		p = partition_of(t, &t->spans.at[first], n, next, &taken);
	free(next);
	free(taken.edge_ps);
	if (!next)
		return error_nomem(e, "the timeline's partition");
	out->step_s = (double)t->step_ps * S_PER_PS;
	out->optimizer_s = (double)p.part_ps[CAT_OPTIMIZER] * S_PER_PS;
	out->compute_s = (double)p.part_ps[CAT_COMPUTE] * S_PER_PS;
	out->exposed_comm_s = (double)p.part_ps[CAT_COMM] * S_PER_PS;
	out->copy_s = (double)p.part_ps[CAT_COPY] * S_PER_PS;
	out->host_s = (double)p.part_ps[CAT_HOST] * S_PER_PS;
	out->bubble_s = (double)p.part_ps[CAT_BUBBLE] * S_PER_PS;
	out->idle_s = (double)p.part_ps[CAT_IDLE] * S_PER_PS;
	out->comm_s = (double)p.comm_ps * S_PER_PS;
	out->wait_s = (double)p.wait_ps * S_PER_PS;
	out->overlap = p.comm_ps > 0 ? 1 - (double)p.part_ps[CAT_COMM] / (double)p.comm_ps : 1;
	for (size_t i = first; i < first + n; i++) {
		const struct span *s = &t->spans.at[i];
		out->class_s[s->class_] += (double)(s->end_ps - s->move_ps) * S_PER_PS;
		out->class_n[s->class_]++;
	}
	return ST_OK;
}

#define PARTS 10

static void parts_of(struct breakdown *b, double *part[PARTS])
{
	double *const all[] = {&b->step_s, &b->compute_s, &b->exposed_comm_s, &b->copy_s, &b->host_s, &b->bubble_s,
		&b->optimizer_s, &b->idle_s, &b->comm_s, &b->wait_s};
	static_assert(COUNT(all) == PARTS, "every part");
	memcpy(part, all, sizeof all);
}

void breakdown_scale(struct breakdown *b, double step_s)
{
	double *part[PARTS];
	const double factor = step_s / b->step_s;
	parts_of(b, part);
	for (size_t i = 0; i < PARTS; i++)
		*part[i] *= factor;
	b->step_s = step_s;
}

void breakdown_less_events(struct breakdown *b, double more_s)
{
	int64_t ops = 0;
	for (int c = 0; c < CLASS_ALL_REDUCE; c++)
		ops += b->class_n[c];
	for (int c = 0; c < CLASS_ALL_REDUCE && ops > 0 && more_s > 0; c++)
		b->class_s[c] = fmax(0, b->class_s[c] - more_s * (double)b->class_n[c] / (double)ops);
}

void breakdown_add(struct breakdown *b, const struct breakdown *more)
{
	struct breakdown other = *more;
	double *part[PARTS], *added[PARTS];
	parts_of(b, part);
	parts_of(&other, added);
	for (size_t i = 0; i < PARTS; i++)
		*part[i] += *added[i];
	b->overlap = b->comm_s > 0 ? 1 - b->exposed_comm_s / b->comm_s : 1;
}

const char *timeline_host_cause(const struct timeline *t, const struct role *r, uint32_t actor)
{
	static const struct {
		enum op_kind kind;
		const char *text;
	} causes[] = {{OP_LOAD, "loading data"}, {OP_PAUSE, "the software stack's own time on the host"},
		{OP_SYNC, "synchronisation of host and device"}};
	const size_t first = first_span(t, actor);
	int64_t most_ps = 0;
	const char *text = NULL;
	for (size_t k = 0; k < COUNT(causes); k++) {
		int64_t sum_ps = 0;
		for (size_t i = first; i < t->spans.n && t->spans.at[i].actor == actor; i++)
			if (r->ops.at[t->spans.at[i].op].kind == causes[k].kind)
				sum_ps += t->spans.at[i].end_ps - t->spans.at[i].start_ps;
		if (sum_ps > most_ps) {
			most_ps = sum_ps;
			text = causes[k].text;
		}
	}
	return text;
}

/* With as many ranks as roles rank i is stage i. */
const struct role *timeline_role(const struct timeline *t, const struct program *p, uint32_t actor)
{
	return &p->roles[t->actors == p->n_roles ? actor : role_of_rank(p, actor)];
}
