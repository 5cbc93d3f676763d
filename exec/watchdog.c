#include "exec/watchdog.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "exec/launcher.h"
#include "exec/signals.h"

#define PERIOD_S 0.2
#define ZOMBIE_AFTER_S 1.0 /* /proc is read only once a rank has been silent for so long */
#define STOPPED_S 2.0      /* this process itself stood still: what it saw before says nothing */
/* Open MPI sends SIGKILL one second after SIGTERM, and the line must be out by then */
#define SEARCH_S 0.4
#define ABORT_WAIT_S 0.5
#define LOST_S 1.0        /* a rank of another host that is silent for longer is missed */
#define OTHERS_S 0.5      /* by which rank 0 speaks before the others of its host */
#define OTHER_HOSTS_S 1.5 /* by which its host speaks before the second, and that before the others */
#define TEXT HEARTBEAT_TEXT

struct watch {
	uint64_t progress;
	double since_s;
};

struct watchdog {
	struct watchdog_site site;
	int launcher; /* its process, 0 for none */
	pthread_t thread;
	atomic_bool stop;
	_Atomic double timeout_s;
	pthread_mutex_t lock; /* of the roles */
	const struct role *roles;
	size_t n_roles;
	struct watch *seen; /* by slot */
	double last_look_s;
};

static struct board_slot *own(struct watchdog *w) { return &w->site.board->slot[w->site.slot]; }

static void nap(double s)
{
	struct timespec t = {(time_t)s, (long)((s - (double)(time_t)s) * 1e9)};
	nanosleep(&t, NULL);
}

/* ---- what a rank is at ---- */

static void op_text(struct watchdog *w, const struct board_slot *s, int64_t op, char out[TEXT])
{
	char name[OP_NAME_MAX];
	int n = 0;
	size_t role = (size_t)atomic_load(&s->role);
	pthread_mutex_lock(&w->lock);
	if (role < w->n_roles && (size_t)op < w->roles[role].ops.n)
		n = snprintf(out, TEXT, "op %lld %s", (long long)op, op_name(&w->roles[role].ops.at[op], name));
	if (n > 0 && n < TEXT && w->n_roles > 1)
		snprintf(out + n, TEXT - (size_t)n, " of stage %zu", role);
	if (n <= 0)
		snprintf(out, TEXT, "op %lld", (long long)op);
	pthread_mutex_unlock(&w->lock);
}

/* A running compute op says most, then a collective on its way, then what the compute lane waits to begin. Returns
 * whether a compute op runs. */
static bool slot_text(struct watchdog *w, const struct board_slot *s, char out[TEXT])
{
	static const enum lane by_weight[] = {LANE_COMPUTE, LANE_MODEL_COMM, LANE_COMM, LANE_REPLICA_COMM,
		LANE_RECV_PREV, LANE_RECV_NEXT, LANE_SEND_NEXT, LANE_SEND_PREV, LANE_COPY, LANE_HOST, LANE_LOAD};
	_Static_assert(COUNT(by_weight) == LANE_COUNT, "every lane");
	for (size_t i = 0; i < LANE_COUNT; i++) {
		int64_t op = atomic_load(&s->beacon.op[by_weight[i]]);
		if (op > 0) {
			op_text(w, s, op - 1, out);
			return by_weight[i] == LANE_COMPUTE;
		}
	}
	for (size_t i = 0; i < LANE_COUNT; i++) {
		int64_t op = atomic_load(&s->beacon.op[by_weight[i]]);
		if (op < 0) {
			char name[TEXT];
			op_text(w, s, -op - 1, name);
			snprintf(out, TEXT, "the wait before %.200s", name);
			return false;
		}
	}
	char doing[BOARD_TEXT];
	memcpy(doing, s->doing, sizeof doing);
	doing[BOARD_TEXT - 1] = 0;
	snprintf(out, TEXT, "%s", doing[0] ? doing : "set-up");
	return false;
}

/* The state letter of a process, 0 when there is none. */
static char process_state(int pid)
{
	struct process p;
	return process_read(pid, &p) ? p.state : 0;
}

static bool gone(const struct board_slot *s, bool look_closely)
{
	int pid = atomic_load(&s->pid);
	if (!pid || atomic_load(&s->state) == BOARD_FINISHED)
		return false;
	bool dead = kill(pid, 0) && errno == ESRCH;
	if (!dead && look_closely) {
		char state = process_state(pid);
		dead = state == 'Z' || state == 'X';
	}
	/* It may have said so between the two looks. */
	return dead && atomic_load(&s->state) != BOARD_FINISHED;
}

/* ---- other hosts ---- */

static void beat(struct watchdog *w, bool now)
{
	struct heartbeat_sign mine = {.rank = atomic_load(&own(w)->rank), .pid = getpid()};
	if (!w->site.heartbeat)
		return;
	mine.computes = slot_text(w, own(w), mine.doing);
	mine.finished = atomic_load(&own(w)->state) == BOARD_FINISHED;
	mine.reported = atomic_load(&w->site.board->reported) != 0;
	memcpy(mine.host, w->site.host, sizeof mine.host);
	heartbeat_beat(w->site.heartbeat, &mine, now);
}

/* ---- the end ---- */

static void *call_end_job(void *arg)
{
	((struct watchdog *)arg)->site.end_job();
	return NULL;
}

static void leave(struct watchdog *w, bool tell_launcher) __attribute__((noreturn));
static void leave(struct watchdog *w, bool tell_launcher)
{
	atomic_store(&own(w)->state, BOARD_FINISHED);
	beat(w, true);
	if (tell_launcher)
		launcher_end(w->launcher);
	if (tell_launcher && w->site.end_job) {
		pthread_t t; /* a thread of its own: the call may wait for a lock that a stuck thread holds */
		if (!pthread_create(&t, NULL, call_end_job, w))
			nap(ABORT_WAIT_S);
	}
	_exit(1);
}

/* One rank of the host speaks; the others leave when its line is out. */
static void report(struct watchdog *w, const char *text) __attribute__((noreturn));
static void report(struct watchdog *w, const char *text)
{
	int64_t nobody = 0;
	if (atomic_compare_exchange_strong(&w->site.board->verdict, &nobody, 1 + atomic_load(&own(w)->rank))) {
		char line[1400];
		int n = snprintf(line, sizeof line, "stepsim: %s\n", text);
		size_t length = n < (int)sizeof line ? (size_t)n : sizeof line - 1;
		line[length - 1] = '\n';
		/* One write, so that lines of other processes cannot fall between; nothing can be done when it fails.
		 */
		ssize_t written = write(STDERR_FILENO, line, length);
		(void)written;
		atomic_store(&w->site.board->reported, 1);
		leave(w, true);
	}
	for (int i = 0; i < 25 && !atomic_load(&w->site.board->reported); i++)
		nap(0.02);
	leave(w, false);
}

void watchdog_fail(struct watchdog *w, const char *text)
{
	char line[1300];
	snprintf(line, sizeof line, "rank %lld (%s): %.1100s", (long long)atomic_load(&own(w)->rank), w->site.host,
		text);
	report(w, line);
}

/* The lowest rank that is still there, other than `except`. */
static int64_t lowest_living(struct watchdog *w, int64_t except)
{
	for (int64_t i = 0; i < w->site.board->slots; i++)
		if (i != except && !gone(&w->site.board->slot[i], true))
			return i;
	return w->site.slot;
}

static void report_death(struct watchdog *w, int64_t dead) __attribute__((noreturn));
static void report_death(struct watchdog *w, int64_t dead)
{
	const struct board_slot *d = &w->site.board->slot[dead], *l = &w->site.board->slot[lowest_living(w, dead)];
	char in[TEXT], other[TEXT], line[1000];
	slot_text(w, d, in);
	slot_text(w, l, other);
	snprintf(line, sizeof line, "rank %lld (%s, process %d) died in %s; rank %lld was in %s; the job ends",
		(long long)atomic_load(&d->rank), w->site.host, atomic_load(&d->pid), in,
		(long long)atomic_load(&l->rank), other);
	report(w, line);
}

static void look_for_dead(struct watchdog *w, bool closely)
{
	for (int64_t i = 0; i < w->site.board->slots; i++)
		if (i != w->site.slot &&
			gone(&w->site.board->slot[i], closely || clock_s() - w->seen[i].since_s > ZOMBIE_AFTER_S))
			report_death(w, i);
}

/* A rank of another host that rank 0 misses, or that misses rank 0. `how`: what is known of its end. */
static void report_missing(struct watchdog *w, const struct heartbeat_sign *missing, const char *since, const char *how)
	__attribute__((noreturn));
static void report_missing(struct watchdog *w, const struct heartbeat_sign *missing, const char *since, const char *how)
{
	char in[TEXT], line[1000];
	slot_text(w, own(w), in);
	snprintf(line, sizeof line, "%srank %lld (%s, process %d) %s %s; rank %lld was in %s; the job ends", since,
		(long long)missing->rank, missing->host, missing->pid, how, missing->doing,
		(long long)atomic_load(&own(w)->rank), in);
	report(w, line);
}

/* ---- no progress ---- */

/* Returns why a rank cannot go on (it left, or it is stopped), in words; NULL where it is merely silent. */
static const char *trouble(const struct board_slot *s)
{
	if (atomic_load(&s->state) == BOARD_FINISHED)
		return "left in";
	char state = process_state(atomic_load(&s->pid));
	return state == 'T' || state == 't' ? "is stopped in" : NULL;
}

/* The rank to blame: one that left or is stopped, else one whose compute op runs, else the one that got least far.
 * Ranks that wait for each other differ in nothing but that. */
static int64_t laggard(struct watchdog *w)
{
	const struct board *b = w->site.board;
	int64_t lag = 0;
	int best = -1;
	for (int64_t i = 0; i < b->slots; i++) {
		char text[TEXT];
		int weight = trouble(&b->slot[i]) ? 2 : slot_text(w, &b->slot[i], text) ? 1 : 0;
		bool behind = atomic_load(&b->slot[i].beacon.progress) < atomic_load(&b->slot[lag].beacon.progress);
		if (weight > best || (weight == best && behind)) {
			best = weight;
			lag = i;
		}
	}
	return lag;
}

static void report_stall(struct watchdog *w, double silent_s, int64_t lag) __attribute__((noreturn));
static void report_stall(struct watchdog *w, double silent_s, int64_t lag)
{
	const struct board *b = w->site.board;
	int64_t other = lowest_living(w, lag);
	char in[TEXT], waits[TEXT], line[1100], rest[400] = "";
	slot_text(w, &b->slot[lag], in);
	if (other != lag) {
		slot_text(w, &b->slot[other], waits);
		snprintf(rest, sizeof rest, "rank %lld was in %s; ", (long long)atomic_load(&b->slot[other].rank),
			waits);
	}
	const char *how = trouble(&b->slot[lag]);
	snprintf(line, sizeof line, "no progress for %.0f s: rank %lld (%s, process %d) %s %s; %sthe job ends",
		silent_s, (long long)atomic_load(&b->slot[lag].rank), w->site.host, atomic_load(&b->slot[lag].pid),
		how ? how : "hangs in", in, rest);
	report(w, line);
}

/* The host of rank 0 speaks before the others, and on each its first rank, which hears of other hosts. */
static double patience_s(const struct watchdog *w)
{
	double turn_s = w->site.slot > 0 ? OTHERS_S : 0;
	if (!w->site.rank0_here)
		turn_s += w->site.second_host ? OTHER_HOSTS_S : 2 * OTHER_HOSTS_S;
	return atomic_load(&w->timeout_s) + (w->site.heard ? turn_s : 0);
}

/* Of those that this rank hears of: one of another host that is silent, else one that computes while none of this host
 * does. */
static void blame_other_host(struct watchdog *w, double silent_s)
{
	char since[80], how[160];
	double since_s;
	snprintf(since, sizeof since, "no progress for %.0f s: ", silent_s);
	const struct heartbeat_sign *s = heartbeat_lost(w->site.heartbeat, LOST_S, &since_s);
	if (s) {
		snprintf(how, sizeof how,
			"has not been heard of for %.0f s: it is stopped, or its host or link is down; it was in",
			since_s);
		report_missing(w, s, since, how);
	}
	for (int64_t i = 0; i < w->site.board->slots; i++) {
		char text[TEXT];
		if (trouble(&w->site.board->slot[i]) || slot_text(w, &w->site.board->slot[i], text))
			return;
	}
	if ((s = heartbeat_computing(w->site.heartbeat)))
		report_missing(w, s, since, "hangs in");
}

/* Only when all ranks of the host are armed and silent: while one of them prepares or computes something, the others'
 * waiting is no fault. */
static void look_for_stall(struct watchdog *w)
{
	const struct board *b = w->site.board;
	double now = clock_s(), silent_s = INFINITY;
	bool was_stopped = now - w->last_look_s > STOPPED_S;
	w->last_look_s = now;
	for (int64_t i = 0; i < b->slots; i++) {
		uint64_t progress = atomic_load(&b->slot[i].beacon.progress);
		int state = atomic_load(&b->slot[i].state);
		if (was_stopped || progress != w->seen[i].progress || state == BOARD_QUIET) {
			w->seen[i].progress = progress;
			w->seen[i].since_s = now;
		}
		if (state != BOARD_FINISHED)
			silent_s = fmin(silent_s, now - w->seen[i].since_s);
	}
	if (!isfinite(silent_s) || silent_s <= patience_s(w))
		return;
	if (w->site.heartbeat && (w->site.rank0_here || w->site.second_host))
		blame_other_host(w, silent_s);
	report_stall(w, silent_s, laggard(w));
}

/* ---- the thread ---- */

static void told_to_end(struct watchdog *w, int sig) __attribute__((noreturn));
static void told_to_end(struct watchdog *w, int sig)
{
	double since_s, until = clock_s() + SEARCH_S + (w->site.heard && w->site.slot > 0 ? OTHERS_S / 2 : 0);
	while (clock_s() < until) {
		if (atomic_load(&w->site.board->verdict))
			report(w, "");
		look_for_dead(w, true);
		beat(w, true);
		nap(0.02);
	}
	/* Who is still there was heard of within the last loops. */
	const struct heartbeat_sign *lost = w->site.heartbeat
	                                            ? heartbeat_lost(w->site.heartbeat, 0.75 * SEARCH_S, &since_s)
	                                            : NULL;
	if (w->site.heartbeat && heartbeat_reported(w->site.heartbeat))
		leave(w, false);
	if (lost && sig != SIGINT && (w->site.rank0_here || w->site.second_host))
		report_missing(w, lost, "", "died or was cut off in");
	if (!w->site.rank0_here)
		leave(w, false);
	char in[TEXT], line[600];
	slot_text(w, &w->site.board->slot[0], in);
	snprintf(line, sizeof line, "%s while rank %lld was in %s; the job ends",
		sig == SIGINT ? "interrupted" : "told to end (SIGTERM: cancelled, or a rank of another host died)",
		(long long)atomic_load(&w->site.board->slot[0].rank), in);
	report(w, line);
}

static void *watch(void *arg)
{
	struct watchdog *w = arg;
	while (!atomic_load(&w->stop)) {
		signals_sleep(PERIOD_S);
		if (atomic_load(&w->stop))
			break;
		beat(w, false);
		if (atomic_load(&w->site.board->verdict))
			report(w, "");
		/* A rank that has finished with a status other than 0 makes the launcher send SIGTERM to those that are
		 * about to: they need no reason. */
		int sig = signals_taken();
		if (sig && atomic_load(&own(w)->state) != BOARD_FINISHED)
			told_to_end(w, sig);
		look_for_dead(w, false);
		look_for_stall(w);
	}
	return NULL;
}

enum status watchdog_start(const struct watchdog_site *site, struct watchdog **out, struct error *e)
{
	struct watchdog *w = calloc(1, sizeof *w);
	struct watch *seen = calloc((size_t)site->board->slots, sizeof *seen);
	if (!w || !seen) {
		free(w);
		free(seen);
		return error_nomem(e, "the watchdog");
	}
	w->site = *site;
	w->seen = seen;
	w->launcher = launcher_find();
	atomic_store(&w->timeout_s, site->timeout_s);
	w->last_look_s = clock_s();
	for (int64_t i = 0; i < site->board->slots; i++)
		seen[i].since_s = w->last_look_s;
	pthread_mutex_init(&w->lock, NULL);
	enum status st = signals_take(e);
	int code = st ? 0 : pthread_create(&w->thread, NULL, watch, w);
	if (code) {
		signals_give_back();
		st = error_set(e, ST_RUN, "no thread for the watchdog: %s", strerror(code));
	}
	if (st) {
		pthread_mutex_destroy(&w->lock);
		free(seen);
		free(w);
		return st;
	}
	*out = w;
	return ST_OK;
}

void watchdog_stop(struct watchdog *w)
{
	if (!w)
		return;
	atomic_store(&own(w)->state, BOARD_FINISHED);
	atomic_store(&w->stop, true);
	signals_wake();
	pthread_join(w->thread, NULL);
	signals_give_back();
	beat(w, true);
	pthread_mutex_destroy(&w->lock);
	free(w->seen);
	free(w);
}

void watchdog_timeout(struct watchdog *w, double timeout_s) { atomic_store(&w->timeout_s, timeout_s); }

void watchdog_arm(struct watchdog *w, const char *doing)
{
	struct board_slot *s = own(w);
	board_doing(s, doing);
	atomic_fetch_add(&s->beacon.progress, 1);
	atomic_store(&s->state, BOARD_ARMED);
}

void watchdog_disarm(struct watchdog *w)
{
	atomic_store(&own(w)->state, BOARD_QUIET);
	board_doing(own(w), "");
}

void watchdog_progress(struct watchdog *w) { atomic_fetch_add(&own(w)->beacon.progress, 1); }

struct beacon *watchdog_beacon(struct watchdog *w) { return &own(w)->beacon; }

void watchdog_roles(struct watchdog *w, const struct role *roles, size_t n, size_t mine)
{
	pthread_mutex_lock(&w->lock);
	w->roles = roles;
	w->n_roles = n;
	pthread_mutex_unlock(&w->lock);
	atomic_store(&own(w)->role, (int64_t)mine);
}
