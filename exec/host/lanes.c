#include "exec/host/lanes.h"

#include "base/array.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__) || defined(__i386__)
#define RELAX() __builtin_ia32_pause()
#else
#define RELAX() atomic_signal_fence(memory_order_seq_cst)
#endif

#define SPINS 2000     /* some 50 us, on ranks that have a second core for what they wait for */
#define WAKE_NS 100000 /* a sleep may last so much longer than asked for */
#define NAP_MAX_NS 100000000
#define SLICE_NS 100000 /* of the polling thread: see quick_wakes */

/* ---- completion ---- */

static bool ended(const struct lanes *l, uint32_t op, uint32_t round) { return atomic_load(&l->done[op]) == round; }

static bool ready(const struct lanes *l, uint32_t op, uint32_t round)
{
	const struct op *o = &l->job->role->ops.at[op];
	for (uint32_t i = 0; i < o->n_dep; i++)
		if (!ended(l, l->job->role->deps.at[o->dep0 + i], round))
			return false;
	return true;
}

/* Sequentially consistent on both sides: either the sleeper sees the change before it sleeps, or the waker sees the
 * sleeper. */
static void wake(struct lanes *l)
{
	if (atomic_load(&l->sleepers) == 0)
		return;
	pthread_mutex_lock(&l->lock);
	pthread_cond_broadcast(&l->changed);
	pthread_mutex_unlock(&l->lock);
}

typedef bool condition(struct lanes *l, const void *arg);

static void sleep_until(struct lanes *l, condition *c, const void *arg)
{
	for (int i = 0; l->job->cores > 1 && !l->job->oversubscribed && i < SPINS; i++) {
		if (c(l, arg))
			return;
		RELAX();
	}
	atomic_fetch_add(&l->sleepers, 1);
	pthread_mutex_lock(&l->lock);
	while (!c(l, arg))
		pthread_cond_wait(&l->changed, &l->lock);
	pthread_mutex_unlock(&l->lock);
	atomic_fetch_sub(&l->sleepers, 1);
}

static void complete(struct lanes *l, uint32_t op, enum lane lane, uint32_t round)
{
	atomic_store_explicit(&l->job->beacon->op[lane], 0, memory_order_relaxed);
	atomic_fetch_add_explicit(&l->job->beacon->progress, 1, memory_order_relaxed);
	atomic_store(&l->done[op], round);
	if (l->awaited[op]) /* a needless wake costs a one-core rank two switches between threads */
		wake(l);
}

static void fail(struct lanes *l, const struct error *e)
{
	pthread_mutex_lock(&l->lock);
	error_set(&l->error, e->status, "%s", e->text);
	pthread_mutex_unlock(&l->lock);
	atomic_store(&l->failed, true);
}

static void say(struct lanes *l, enum lane lane, uint32_t op, bool runs)
{
	int64_t n = (int64_t)op + 1;
	atomic_store_explicit(&l->job->beacon->op[lane], runs ? n : -n, memory_order_relaxed);
}

/* ---- compute and copies: one op after the other ---- */

static bool can_begin(struct lanes *l, const void *op)
{
	return ready(l, *(const uint32_t *)op, atomic_load_explicit(&l->round, memory_order_relaxed));
}

static void run_kernel(struct lanes *l, uint32_t op)
{
	const struct op *o = &l->job->role->ops.at[op];
	struct error e = {ST_OK, ""};
	if (l->step->collectives_only || atomic_load_explicit(&l->failed, memory_order_relaxed))
		return;
	if (op_on_host(o) ? host_work_run(l->host, o, l->args[op][0], l->args[op][1], &e)
			  : host_kernel_run(&l->env, o, l->args[op], &e)) {
		char name[OP_NAME_MAX];
		error_context(&e, "op %u %s", op, op_name(o, name));
		fail(l, &e);
	}
}

/* A slow rank, made of a fast one: the core stays busy, as a slow one would be, but for what is long enough to be slept
 * through. */
static void linger(int64_t begin_ns, double slowness)
{
	int64_t end_ns = begin_ns + (int64_t)((double)(stamp_now_ns() - begin_ns) * slowness), now_ns;
	while ((now_ns = stamp_now_ns()) < end_ns) {
		struct timespec nap = {0,
			end_ns - now_ns - WAKE_NS < NAP_MAX_NS ? end_ns - now_ns - WAKE_NS : NAP_MAX_NS};
		if (nap.tv_nsec > 0)
			nanosleep(&nap, NULL);
		else
			RELAX();
	}
}

static void walk(struct lanes *l, enum lane lane, uint32_t round)
{
	struct stamp unused, *stamps = l->step->stamps;
	for (uint32_t i = 0; i < l->n[lane]; i++) {
		uint32_t op = l->list[lane][i];
		if (!ready(l, op, round)) {
			say(l, lane, op, false);
			if (lane == LANE_COMPUTE)
				atomic_store_explicit(&l->compute_waits, true, memory_order_relaxed);
			sleep_until(l, can_begin, &op);
			if (lane == LANE_COMPUTE)
				atomic_store_explicit(&l->compute_waits, false, memory_order_relaxed);
		}
		say(l, lane, op, true);
		struct stamp *s = stamps ? &stamps[op] : &unused;
		s->begin_ns = stamp_now_ns();
		run_kernel(l, op);
		if (lane == LANE_COMPUTE && l->job->slowness > 1)
			linger(s->begin_ns, l->job->slowness);
		s->end_ns = stamp_now_ns();
		complete(l, op, lane, round);
	}
}

/* ---- collectives: all their lanes, one thread ---- */

struct flight {
	uint32_t next; /* place in the lane's list of the op that is under way, or comes next */
	bool under_way;
};

static const struct comm *comm_of(const struct lanes *l, uint32_t op)
{
	const struct op *o = &l->job->role->ops.at[op];
	return &l->job->comm[o->lane][o->group];
}

static void broken(struct lanes *l, uint32_t op, struct error *e)
{
	char name[OP_NAME_MAX];
	error_context(e, "op %u %s", op, op_name(&l->job->role->ops.at[op], name));
	l->job->broken(l->job->broken_ctx, e->text);
}

static void start_collective(struct lanes *l, uint32_t op)
{
	const struct op *o = &l->job->role->ops.at[op];
	struct error e = {ST_OK, ""};
	struct comm_call call = {.coll = o->coll,
		.reduce = o->reduce,
		.dtype = o->dtype,
		.elements = (uint64_t)o->collective.elements,
		.in = l->args[op][0],
		.out = l->args[op][1]};
	say(l, o->lane, op, true);
	if (l->step->hooks)
		l->step->hooks->before(l->step->hooks->ctx, op);
	if (l->step->stamps)
		l->step->stamps[op].begin_ns = stamp_now_ns();
	if (comm_start(comm_of(l, op), &call, &e))
		broken(l, op, &e);
}

/* Whether something changed on the lane. */
static bool advance(struct lanes *l, enum lane lane, struct flight *f, uint32_t round)
{
	if (f->next == l->n[lane])
		return false;
	uint32_t op = l->list[lane][f->next];
	if (!f->under_way) {
		if (!ready(l, op, round))
			return false;
		start_collective(l, op);
		return f->under_way = true;
	}
	struct error e = {ST_OK, ""};
	bool done = false;
	if (comm_test(comm_of(l, op), &done, &e))
		broken(l, op, &e);
	if (!done)
		return false;
	if (l->step->stamps)
		l->step->stamps[op].end_ns = stamp_now_ns();
	if (l->step->hooks)
		l->step->hooks->after(l->step->hooks->ctx, op);
	f->under_way = false;
	f->next++;
	complete(l, op, lane, round);
	return true;
}

/* Lanes in the order in which the compute lane needs them. */
static const enum lane comm_lanes[] = {LANE_MODEL_COMM, LANE_RECV_PREV, LANE_RECV_NEXT, LANE_SEND_NEXT, LANE_SEND_PREV,
	LANE_COMM, LANE_REPLICA_COMM};
#define COMM_LANES COUNT(comm_lanes)

struct flights {
	struct flight of[COMM_LANES]; /* as comm_lanes */
	uint32_t round;
};

static bool some_ready(struct lanes *l, const void *flights)
{
	const struct flights *f = flights;
	for (size_t i = 0; i < COMM_LANES; i++)
		if (f->of[i].next < l->n[comm_lanes[i]] && ready(l, l->list[comm_lanes[i]][f->of[i].next], f->round))
			return true;
	return false;
}

/* Collectives advance only when they are polled. Polling without a pause is best while the compute lane waits and no
 * other rank computes on this core. */
static void pause_polling(struct lanes *l)
{
	if (atomic_load_explicit(&l->compute_waits, memory_order_relaxed) && !l->job->oversubscribed) {
		sched_yield();
	} else {
		device_nap();
	}
}

static void fly(struct lanes *l, uint32_t round)
{
	struct flights f = {.round = round};
	for (;;) {
		bool moved = false, under_way = false, left = false;
		for (size_t i = 0; i < COMM_LANES; i++) {
			moved = advance(l, comm_lanes[i], &f.of[i], round) || moved;
			under_way = under_way || f.of[i].under_way;
			left = left || f.of[i].next < l->n[comm_lanes[i]];
		}
		if (!left)
			break;
		if (moved)
			continue;
		if (under_way)
			pause_polling(l);
		else
			sleep_until(l, some_ready, &f);
	}
}

/* ---- threads ---- */

static bool next_round(struct lanes *l, const void *last)
{
	return atomic_load(&l->end) || atomic_load(&l->round) != *(const uint32_t *)last;
}

void lanes_quick_wakes(void)
{
	struct {
		uint32_t size, policy;
		uint64_t flags;
		int32_t nice;
		uint32_t priority;
		uint64_t runtime, deadline, period;
	} attr = {0};
	if (!syscall(SYS_sched_getattr, 0, &attr, sizeof attr, 0) && attr.policy == SCHED_OTHER) {
		attr.size = sizeof attr;
		attr.runtime = SLICE_NS;
		syscall(SYS_sched_setattr, 0, &attr, 0);
	}
	prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
}

static void *comm_thread(void *arg)
{
	struct lanes *l = ((struct lanes_thread *)arg)->lanes;
	lanes_quick_wakes();
	for (uint32_t round = 0;;) {
		sleep_until(l, next_round, &round);
		if (atomic_load(&l->end))
			return NULL;
		fly(l, ++round);
		atomic_store(&l->rounds_ended[THREAD_COMM], round);
		wake(l);
	}
}

static const enum lane walked[LANES_THREADS] =
	{[THREAD_COPY] = LANE_COPY, [THREAD_HOST] = LANE_HOST, [THREAD_LOAD] = LANE_LOAD};

static void *lane_thread(void *arg)
{
	struct lanes *l = ((struct lanes_thread *)arg)->lanes;
	const int which = (int)((struct lanes_thread *)arg - l->thread);
	for (uint32_t round = 0;;) {
		sleep_until(l, next_round, &round);
		if (atomic_load(&l->end))
			return NULL;
		walk(l, walked[which], ++round);
		atomic_store(&l->rounds_ended[which], round);
		wake(l);
	}
}

static bool threads_ended(struct lanes *l, const void *arg)
{
	uint32_t round = *(const uint32_t *)arg;
	for (int i = 0; i < LANES_THREADS; i++)
		if (l->thread[i].started && atomic_load(&l->rounds_ended[i]) != round)
			return false;
	return true;
}

enum status lanes_step(struct lanes *l, const struct device_step *step, struct error *e)
{
	l->step = step;
	l->env.step = step->number;
	l->error = (struct error){ST_OK, ""};
	atomic_store(&l->failed, false);
	uint32_t round = atomic_load(&l->round) + 1;
	atomic_store(&l->round, round);
	wake(l);
	walk(l, LANE_COMPUTE, round);
	atomic_store_explicit(&l->compute_waits, true, memory_order_relaxed);
	sleep_until(l, threads_ended, &round);
	atomic_store_explicit(&l->compute_waits, false, memory_order_relaxed);
	return atomic_load(&l->failed) ? error_set(e, l->error.status, "%s", l->error.text) : ST_OK;
}

static enum status list_ops(struct lanes *l, struct error *e)
{
	const struct role *r = l->job->role;
	l->done = calloc(r->ops.n + 1, sizeof *l->done);
	l->awaited = calloc(r->ops.n + 1, sizeof *l->awaited);
	for (int lane = 0; lane < LANE_COUNT; lane++)
		l->list[lane] = malloc((r->ops.n + 1) * sizeof *l->list[lane]);
	for (int lane = 0; lane < LANE_COUNT; lane++)
		if (!l->list[lane] || !l->done || !l->awaited)
			return error_nomem(e, "the lanes");
	for (size_t i = 0; i < r->deps.n; i++)
		l->awaited[r->deps.at[i]] = true;
	for (uint32_t i = 0; i < r->ops.n; i++) {
		const struct op *op = &r->ops.at[i];
		bool comm_lane = lane_is_comm((enum lane)op->lane);
		bool host_lane = op->lane == LANE_HOST || op->lane == LANE_LOAD;
		if (host_lane != (op_on_host(op) || (op->kind == OP_OPTIMIZER && op->lane == LANE_HOST)) ||
			comm_lane != (op->kind == OP_COLLECTIVE) || (op->lane == LANE_COPY && op->kind != OP_COPY))
			return error_set(e, ST_RUN, "op %u: %s on the %s lane is not executed on the host", i,
				op_kind_info(op->kind)->name, lane_name(op->lane));
		if (comm_lane && !comm_of(l, i)->ops)
			return error_set(e, ST_RUN, "op %u: no communicator", i);
		l->list[op->lane][l->n[op->lane]++] = i;
	}
	return ST_OK;
}

static enum status start_thread(struct lanes *l, int which, void *(*run)(void *), struct error *e)
{
	struct lanes_thread *t = &l->thread[which];
	t->lanes = l;
	int code = pthread_create(&t->id, NULL, run, t);
	if (code)
		return error_set(e, ST_RUN, "no thread for a lane: %s", strerror(code));
	t->started = true;
	return ST_OK;
}

enum status lanes_start(struct lanes *l, const struct device_job *job, op_args *args, const struct host_env *env,
	struct error *e)
{
	memset(l, 0, sizeof *l);
	l->job = job;
	l->args = args;
	l->env = *env;
	pthread_mutex_init(&l->lock, NULL);
	pthread_cond_init(&l->changed, NULL);
	enum status st = list_ops(l, e);
	uint32_t calls = 0;
	for (size_t i = 0; i < COMM_LANES; i++)
		calls += l->n[comm_lanes[i]];
	if (!st && calls)
		st = start_thread(l, THREAD_COMM, comm_thread, e);
	if (!st && l->n[LANE_HOST] + l->n[LANE_LOAD])
		st = host_work_open(&job->host, &l->host, e);
	for (int i = THREAD_COPY; i < LANES_THREADS && !st; i++)
		if (l->n[walked[i]])
			st = start_thread(l, i, lane_thread, e);
	if (st)
		lanes_stop(l);
	return st;
}

void lanes_stop(struct lanes *l)
{
	if (!l->job)
		return;
	atomic_store(&l->end, true);
	wake(l);
	for (int i = 0; i < LANES_THREADS; i++)
		if (l->thread[i].started)
			pthread_join(l->thread[i].id, NULL);
	host_work_close(l->host);
	for (int lane = 0; lane < LANE_COUNT; lane++)
		free(l->list[lane]);
	free((void *)l->done);
	free(l->awaited);
	pthread_cond_destroy(&l->changed);
	pthread_mutex_destroy(&l->lock);
	l->job = NULL;
}
