/* Faults on purpose, for test_faults.sh.
 *
 *   mpirun -np N test_faults MODE CONFIG.yaml [KEY=VALUE ...]
 *
 * steps   execute() as the config says; each rank prints "rank R process P" first
 * sum     a communicator adds 1 to element 77 of one result on the last rank: verification must name it, on all ranks,
 * and pass without it groups  the communicator of the gradients has groups of the right size with the wrong members:
 * verification must find it message as sum, in what the last stage of a pipeline receives receive the last stage dies
 * while it waits for its first message broken  a communicator fails on the last rank in the middle of a step kernel the
 * last rank's data has a token that is not in the vocabulary: all ranks must end with its reason
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/log.h"
#include "exec/runner.h"
#include "exec/session.h"
#include "exec/verify.h"
#include "step/peers.h"

/* ---- a communicator that does harm ---- */

struct bad_comm {
	struct comm inner;
	int calls, at;             /* the call, from 0, to which it is done */
	bool breaks;               /* else: adds 1 to element 77 of fp32 */
	const struct beacon *dies; /* else NULL: kills the process, once nothing computes beside the call */
	float *out;
};

static enum status bad_start(void *ctx, const struct comm_call *call, struct error *e)
{
	struct bad_comm *b = ctx;
	b->out = call->out;
	return comm_start(&b->inner, call, e);
}

static enum status bad_test(void *ctx, bool *done, struct error *e)
{
	struct bad_comm *b = ctx;
	if (b->dies) {
		if (atomic_load(&b->dies->op[LANE_COMPUTE]) <= 0)
			raise(SIGKILL);
		*done = false;
		return ST_OK;
	}
	if (b->breaks && b->calls == b->at)
		return error_set(e, ST_RUN, "the wire is cut");
	enum status st = comm_test(&b->inner, done, e);
	if (!st && *done && b->calls++ == b->at)
		b->out[77] += 1;
	return st;
}

static void bad_destroy(void *ctx) { comm_destroy(&((struct bad_comm *)ctx)->inner); }

static const struct comm_ops bad_ops = {bad_start, bad_test, bad_destroy};

static void spoil(struct comm *c, struct bad_comm *b)
{
	b->inner = *c;
	c->ops = &bad_ops;
	c->ctx = b;
}

/* ---- modes ---- */

struct test {
	struct session *s;
	struct program *p;
	struct runner r;
	struct bad_comm bad;
	bool last; /* this is the last rank */
};

static enum status open_runner(struct test *t, struct error *e)
{
	enum status st = runner_plan(t->p, t->s->info.rank, &t->r, e);
	if (!st)
		st = runner_open(t->s, &t->r, e);
	if (!st)
		runner_reset(&t->r);
	return session_agree(t->s, st, e);
}

static enum status mode_steps(struct test *t, struct error *e)
{
	struct result result;
	struct timeline timeline = {0};
	enum status st = execute(t->s, t->p, 0, &result, &timeline, NULL, e);
	timeline_free(&timeline);
	return st;
}

/* The second call of the last rank's communicator is done wrong, and verification says so in words that begin with
 * `begins`. */
static enum status must_find(struct test *t, struct comm *c, const char *begins, struct error *e)
{
	t->bad = (struct bad_comm){.at = 1};
	struct error found = {ST_OK, ""};
	enum status st = ST_OK;
	if (t->last)
		spoil(c, &t->bad);
	session_agree(t->s, verify_collectives(&t->p->mesh, &t->r.job, &t->r.device, t->s->info.rank, &found), &found);
	char want[64];
	snprintf(want, sizeof want, "rank %lld element 77: got ", (long long)t->s->info.ranks - 1);
	if (found.status != ST_RUN || strncmp(found.text, begins, strlen(begins)) || !strstr(found.text, want))
		st = error_set(e, ST_RUN, "verification said \"%s\"", found.text);
	else if (t->s->info.rank == 0)
		fprintf(stderr, "found: %s\n", found.text);
	/* Later calls are clean. */
	struct error again = {ST_OK, ""};
	if (session_agree(t->s, verify_collectives(&t->p->mesh, &t->r.job, &t->r.device, t->s->info.rank, &again),
		    &again))
		st = error_set(e, ST_RUN, "without the fault: %s", again.text);
	return session_agree(t->s, st, e);
}

/* The first wrong element is known: bucket 1's, since the communicator carries nothing but buckets, in order. */
static enum status mode_sum(struct test *t, struct error *e)
{
	enum status st = open_runner(t, e);
	return st ? st
	          : must_find(t, &t->r.job.comm[LANE_COMM][DIM_DP], "verification failed: all_reduce bucket 1 (op ", e);
}

static enum status mode_message(struct test *t, struct error *e)
{
	enum status st = open_runner(t, e);
	return st ? st
	          : must_find(t, &t->r.job.comm[LANE_RECV_PREV][DIM_PP], "verification failed: recv activations (op ",
			    e);
}

static enum status mode_receive(struct test *t, struct error *e)
{
	enum status st = open_runner(t, e);
	if (st)
		return st;
	t->bad = (struct bad_comm){.dies = watchdog_beacon(t->s->watchdog)};
	if (t->last)
		spoil(&t->r.job.comm[LANE_RECV_PREV][DIM_PP], &t->bad);
	watchdog_roles(t->s->watchdog, t->p->roles, t->p->n_roles, role_of_rank(t->p, t->s->info.rank));
	watchdog_arm(t->s->watchdog, "a step");
	st = runner_step(&t->r, NULL, e);
	return session_agree(t->s, st, e);
}

/* Neighbours in place of ranks that are a tensor group apart. */
static enum status mode_groups(struct test *t, struct error *e)
{
	struct error found = {ST_OK, ""};
	enum status st = open_runner(t, e);
	if (st)
		return st;
	struct comm *c = &t->r.job.comm[LANE_COMM][DIM_DP];
	comm_destroy(c);
	if ((st = session_agree(t->s, comm_create_mpi(t->s, t->p->mesh.size[DIM_DP], 1, c, e), e)))
		return st;
	session_agree(t->s, verify_collectives(&t->p->mesh, &t->r.job, &t->r.device, t->s->info.rank, &found), &found);
	if (found.status != ST_RUN || !strstr(found.text, "verification failed: all_reduce bucket "))
		st = error_set(e, ST_RUN, "verification said \"%s\"", found.text);
	return session_agree(t->s, st, e);
}

static enum status mode_broken(struct test *t, struct error *e)
{
	t->bad = (struct bad_comm){.at = 1, .breaks = true};
	enum status st = open_runner(t, e);
	if (st)
		return st;
	if (t->last)
		spoil(&t->r.job.comm[LANE_COMM][DIM_DP], &t->bad);
	st = runner_step(&t->r, NULL, e);
	return session_agree(t->s, st, e);
}

static enum status mode_kernel(struct test *t, struct error *e)
{
	int32_t token = -5;
	enum status st = open_runner(t, e);
	if (st)
		return st;
	if (t->last)
		t->r.device.ops->write(t->r.device.ctx, t->r.job.role->input, 0, &token, sizeof token);
	st = runner_step(&t->r, NULL, e);
	return session_agree(t->s, st, e);
}

static const struct mode {
	const char *name;
	enum status (*run)(struct test *t, struct error *e);
} modes[] = {{"steps", mode_steps}, {"sum", mode_sum}, {"message", mode_message}, {"receive", mode_receive},
	{"groups", mode_groups}, {"broken", mode_broken}, {"kernel", mode_kernel}};

int main(int argc, char **argv)
{
	struct error e = {ST_OK, ""};
	struct test t = {0};
	struct config c;
	const struct mode *mode = NULL;
	for (size_t i = 0; i < COUNT(modes); i++)
		if (argc > 2 && !strcmp(argv[1], modes[i].name))
			mode = &modes[i];
	if (!mode) {
		fprintf(stderr,
			"test_faults steps|sum|message|receive|groups|broken|kernel CONFIG.yaml [KEY=VALUE ...]\n");
		return 2;
	}
	enum status st = session_open(60, &t.s, &e);
	if (st) {
		fprintf(stderr, "test_faults: %s\n", e.text);
		return st;
	}
	const struct session_info *info = session_info(t.s);
	log_setup(LOG_QUIET, PROGRESS_NEVER, false);
	fprintf(stderr, "rank %lld process %d\n", (long long)info->rank, getpid());
	t.last = info->rank == info->ranks - 1;
	if (!(st = config_load(argv[2], (const char *const *)argv + 3, (size_t)argc - 3, &c, &e)) &&
		!(st = config_resolve(&c, info->ranks, &e))) {
		session_timeout(t.s, c.run.timeout_s);
		st = program_build(&c, &t.p, &e);
	}
	if (!(st = session_agree(t.s, st, &e)))
		st = mode->run(&t, &e);
	if (st && info->rank == 0)
		fprintf(stderr, "stepsim: %s\n", e.text);
	runner_close(&t.r);
	program_destroy(t.p);
	session_close(t.s);
	return st;
}
