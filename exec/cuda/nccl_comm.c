#include "exec/cuda/nccl_comm.h"

#include <assert.h>
#include <dlfcn.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/log.h"
#include "exec/cuda/check.h"
#include "exec/cuda/nccl_calls.h"

static_assert(NCCL_ID_B == NCCL_UNIQUE_ID_BYTES, "an id is carried whole");

/* Functions that came after the oldest NCCL that loads (exec/cuda_open.c): NULL where the library at hand is older,
 * whatever the header was. */
extern ncclResult_t ncclCommRegister(const ncclComm_t comm, void *at, size_t bytes, void **handle)
	__attribute__((weak)); /* 2.19 */
extern ncclResult_t ncclCommDeregister(const ncclComm_t comm, void *handle) __attribute__((weak));
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 22, 0)
extern ncclResult_t ncclGroupSimulateEnd(ncclSimInfo_t *info) __attribute__((weak));
#endif

#define MAX_REGISTERED 4
/* most calls are begun sooner, and a nap of any length takes a tenth of a millisecond of a step */
#define SPIN_S 1e-3
#define LEAVE_S 10.0 /* what a communicator's orderly end may take before it is aborted */

struct nccl_comm {
	ncclComm_t comm; /* NULL once aborted */
	int size, rank, device;
	int64_t world_rank;
	int32_t colour; /* -1: all ranks */
	double timeout_s;
	char last[96];       /* the last call, in words */
	struct error broken; /* the first failure; every later call gives it again */
	void *registered[MAX_REGISTERED];
	size_t n_registered;
};

static const struct comm_ops nccl_ops;

static void group_text(const struct nccl_comm *c, char out[96])
{
	if (c->colour < 0)
		snprintf(out, 96, "all %d ranks", c->size);
	else
		snprintf(out, 96, "member %d of %d of group %d", c->rank, c->size, c->colour);
}

/* Who failed at what: before the code's own words. */
static enum status name_failure(const struct nccl_comm *c, const char *what, struct error *e)
{
	char group[96];
	group_text(c, group);
	return error_context(e, "rank %lld (device %d): NCCL: %s, %s", (long long)c->world_rank, c->device, what,
		group);
}

/* Nothing may be asked of a communicator that failed; aborting it ends what is still on the device, so that its streams
 * do. */
static enum status give_up(struct nccl_comm *c, const char *what, struct error *why, struct error *e)
{
	name_failure(c, what, why);
	c->broken = *why;
	if (c->comm)
		ncclCommAbort(c->comm);
	c->comm = NULL;
	return error_set(e, ST_RUN, "%s", why->text);
}

static enum status is_broken(const struct nccl_comm *c, struct error *e)
{
	return c->broken.status ? error_set(e, ST_RUN, "%s", c->broken.text) : ST_OK;
}

/* Polls until what the communicator does in the background is done. */
static enum status settle(ncclComm_t comm, double limit_s, struct error *e)
{
	const struct timespec nap = {0, 50000};
	const double begin_s = clock_s();
	for (;;) {
		ncclResult_t state;
		enum status st = NCCL_CHECK(ncclCommGetAsyncError(comm, &state), comm, e);
		if (st)
			return st;
		if (state != ncclInProgress)
			return nccl_check(state, comm, "asynchronous error", __FILE__, __LINE__, e);
		const double past_s = clock_s() - begin_s;
		if (past_s > limit_s) {
			const char *last = ncclGetLastError(comm);
			return error_set(e, ST_RUN, "not done after %g s%s%s", limit_s,
				last && *last ? "; NCCL's last error: " : "", last ? last : "");
		}
		if (past_s < SPIN_S)
			sched_yield();
		else
			nanosleep(&nap, NULL);
	}
}

/* A call on a non-blocking communicator may answer "in progress": then nothing else may be asked of it, or put on its
 * stream, until it is done. */
static enum status begun(ncclComm_t comm, ncclResult_t code, const char *expression, int line, double limit_s,
	struct error *e)
{
	if (code != ncclInProgress && code != ncclSuccess)
		return nccl_check(code, comm, expression, __FILE__, line, e);
	return comm && code == ncclInProgress ? settle(comm, limit_s, e) : ST_OK;
}
#define BEGUN(expression, comm, limit_s, e) begun((comm), (expression), #expression, __LINE__, (limit_s), (e))

/* ---- calls ---- */

/* Of the library at hand: "2.20.5". */
static const char *version_text(char out[24])
{
	int version = 0;
	ncclGetVersion(&version);
	snprintf(out, 24, "%d.%d.%d", version / 10000, version / 100 % 100, version % 100);
	return out;
}

/* Times of an all-to-all of messages are not those of NCCL's own. */
static void tell_of_messages(const struct nccl_comm *c)
{
	static bool told;
	char version[24];
	if (!told && c->world_rank == 0)
		log_warn(
			"NCCL %s has no ncclAlltoAll, which came with 2.28: all-to-alls are made of sends and receives",
			version_text(version));
	told = true;
}

static enum status nccl_start(void *ctx, const struct comm_call *call, struct error *e)
{
	struct nccl_comm *c = ctx;
	struct error why = {ST_OK, ""};
	enum status st = is_broken(c, e);
	if (st || (st = nccl_call_check(call, c->size, e)))
		return st;
	if (call->coll == COLL_ALLTOALL && !nccl_has_alltoall())
		tell_of_messages(c);
	snprintf(c->last, sizeof c->last, "%s of %llu %s elements", collective_name(call->coll),
		(unsigned long long)call->elements, dtype_name(call->dtype));
	st = begun(c->comm, nccl_issue(call, c->comm, c->size), collective_name(call->coll), __LINE__, c->timeout_s,
		&why);
	return st ? give_up(c, c->last, &why, e) : ST_OK;
}

static enum status nccl_test(void *ctx, bool *done, struct error *e)
{
	struct nccl_comm *c = ctx;
	struct error why = {ST_OK, ""};
	ncclResult_t state = ncclSuccess;
	enum status st = is_broken(c, e);
	*done = false;
	if (st)
		return st;
	st = NCCL_CHECK(ncclCommGetAsyncError(c->comm, &state), c->comm, &why);
	if (!st && state != ncclInProgress)
		st = nccl_check(state, c->comm, "asynchronous error", __FILE__, __LINE__, &why);
	*done = !st && state == ncclSuccess;
	if (!st)
		return ST_OK;
	char what[112];
	snprintf(what, sizeof what, "after %s", c->last[0] ? c->last : "set-up");
	return give_up(c, what, &why, e);
}

/* ---- set-up and end ---- */

static void deregister(struct nccl_comm *c)
{
	for (size_t i = 0; i < c->n_registered && c->comm; i++)
		ncclCommDeregister(c->comm, c->registered[i]);
	c->n_registered = 0;
}

static void nccl_destroy(void *ctx)
{
	struct nccl_comm *c = ctx;
	struct error ignored = {ST_OK, ""}; /* whatever goes wrong at the end is aborted */
	if (c->comm) {
		deregister(c);
		double limit_s = c->timeout_s < LEAVE_S ? c->timeout_s : LEAVE_S;
		if (BEGUN(ncclCommFinalize(c->comm), c->comm, limit_s, &ignored) ||
			ncclCommDestroy(c->comm) != ncclSuccess)
			ncclCommAbort(c->comm);
	}
	free(c);
}

static struct nccl_comm *comm_new(int64_t world_rank, int device, int32_t colour, double timeout_s)
{
	struct nccl_comm *c = calloc(1, sizeof *c);
	if (c) {
		c->world_rank = world_rank;
		c->device = device;
		c->colour = colour;
		c->timeout_s = timeout_s;
	}
	return c;
}

static enum status adopt(struct nccl_comm *c, struct comm *out, struct error *e)
{
	enum status st;
	if ((st = NCCL_CHECK(ncclCommCount(c->comm, &c->size), c->comm, e)) ||
		(st = NCCL_CHECK(ncclCommUserRank(c->comm, &c->rank), c->comm, e)))
		return st;
	*out = (struct comm){&nccl_ops, c, c->size, c->rank};
	return ST_OK;
}

/* Set-up is non-blocking, so that it ends within the time limit. A lane's calls are blocking: they return when the
 * kernel is on the stream, and no thread of NCCL's and no polling comes between two of them. Communicators of two lanes
 * work beside each other: they share no channels. */
static ncclConfig_t config_of(bool lane, bool pair)
{
	ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
	config.blocking = lane;
	config.splitShare = 0;
	if (pair)
		config.maxCTAs = MESSAGE_BLOCKS;
	return config;
}

enum status nccl_comm_id(unsigned char id[NCCL_ID_B], struct error *e)
{
	ncclUniqueId made;
	enum status st = NCCL_CHECK(ncclGetUniqueId(&made), NULL, e);
	if (!st)
		memcpy(id, made.internal, NCCL_ID_B);
	return st;
}

enum status nccl_comm_world(const unsigned char id[NCCL_ID_B], int64_t ranks, int64_t rank, int device,
	double timeout_s, struct comm *out, struct error *e)
{
	struct nccl_comm *c = comm_new(rank, device, -1, timeout_s);
	ncclConfig_t config = config_of(false, false);
	ncclUniqueId made;
	struct error why = {ST_OK, ""};
	enum status st;
	*out = (struct comm){0};
	if (!c)
		return error_nomem(e, "a communicator");
	memcpy(made.internal, id, NCCL_ID_B);
	c->size = (int)ranks;
	if (!(st = CUDA_CHECK(cudaSetDevice(device), &why))) {
		ncclResult_t code = ncclCommInitRankConfig(&c->comm, (int)ranks, made, (int)rank, &config);
		st = begun(c->comm, code, "ncclCommInitRankConfig", __LINE__, timeout_s, &why);
	}
	if (!st)
		st = adopt(c, out, &why);
	if (st) {
		give_up(c, "set-up", &why, e);
		nccl_destroy(c);
	}
	return st;
}

/* A split of a non-blocking communicator answers "success" (NCCL 2.18 to 2.29) while the child is still being made, and
 * writes the child's address at the end. The parent's state alone tells when that is. */
static enum status split(struct nccl_comm *parent, int colour, int key, bool pair, ncclComm_t *child, struct error *e)
{
	ncclConfig_t config = config_of(true, pair);
	enum status st;
	*child = NULL;
	if ((st = BEGUN(ncclCommSplit(parent->comm, colour, key, child, &config), parent->comm, parent->timeout_s,
		     e)) ||
		(st = settle(parent->comm, parent->timeout_s, e)))
		return st;
	if (!*child)
		return colour == NCCL_SPLIT_NOCOLOR ? ST_OK
		                                    : error_set(e, ST_RUN, "ncclCommSplit made no communicator");
	return settle(*child, parent->timeout_s, e);
}

enum status nccl_comm_split(const struct comm *world, int32_t colour, int32_t key, bool pair, struct comm *out,
	struct error *e)
{
	struct nccl_comm *parent = world->ctx;
	struct error why = {ST_OK, ""};
	enum status st = is_broken(parent, e);
	*out = (struct comm){0};
	if (st)
		return st;
	struct nccl_comm *c = comm_new(parent->world_rank, parent->device, colour, parent->timeout_s);
	if (!c)
		return error_nomem(e, "a communicator");
	st = split(parent, colour < 0 ? NCCL_SPLIT_NOCOLOR : colour, key, pair, &c->comm, &why);
	if (!st && c->comm)
		st = adopt(c, out, &why);
	if (st) {
		char what[48];
		snprintf(what, sizeof what, "set-up of group %d", colour);
		give_up(parent, what, &why, e); /* from here on nobody writes the child's address */
		if (c->comm)
			ncclCommAbort(c->comm);
		c->comm = NULL;
	}
	if (st || !c->comm)
		nccl_destroy(c);
	return st;
}

enum status nccl_comm_register(const struct comm *of, void *at, size_t bytes, struct error *e)
{
	struct nccl_comm *c = of->ctx;
	struct error why = {ST_OK, ""};
	void *handle = NULL;
	enum status st = is_broken(c, e);
	if (st)
		return st;
	if (!ncclCommRegister || !ncclCommDeregister) {
		char version[24];
		return error_set(e, ST_RUN, "NCCL %s registers no memory, 2.19 does", version_text(version));
	}
	if (c->n_registered == MAX_REGISTERED)
		return error_set(e, ST_RUN, "a communicator takes at most %d registered buffers", MAX_REGISTERED);
	/* NCCL copies memory that it does not register. The communicator is lost only when its own state says so. */
	ncclResult_t code = ncclCommRegister(c->comm, at, bytes, &handle);
	if (code != ncclSuccess && code != ncclInProgress) {
		st = nccl_check(code, c->comm, "ncclCommRegister", __FILE__, __LINE__, e);
		cudaGetLastError(); /* what NCCL tried in vain is not the next kernel's failure */
	}
	if (settle(c->comm, c->timeout_s, &why))
		return give_up(c, "registering the arena", &why, e);
	if (!st && handle)
		c->registered[c->n_registered++] = handle;
	return st;
}

void nccl_comm_deregister(const struct comm *of) { deregister(of->ctx); }

/* NCCL (2.28) simulates a group of blocking communicators alone, as those of lanes are, and really launches what was
 * meant as a simulation on others. */
enum status nccl_comm_estimate(const struct comm *of, const struct comm_call *call, double *seconds, struct error *e)
{
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 22, 0)
	struct nccl_comm *c = of->ctx;
	ncclSimInfo_t info = NCCL_SIM_INFO_INITIALIZER;
	enum status st = is_broken(c, e);
	*seconds = 0;
	if (st || (st = nccl_call_check(call, c->size, e)))
		return st;
	if (!ncclGroupSimulateEnd) {
		char version[24];
		return error_set(e, ST_RUN, "NCCL estimates from 2.22 on; this is %s", version_text(version));
	}
	if ((st = NCCL_CHECK(ncclGroupStart(), c->comm, e)))
		return st;
	st = nccl_check(nccl_issue(call, c->comm, c->size), c->comm, collective_name(call->coll), __FILE__, __LINE__,
		e);
	ncclResult_t ended = ncclGroupSimulateEnd(&info); /* leaves the group in any case */
	if (!st)
		st = nccl_check(ended, c->comm, "ncclGroupSimulateEnd(&info)", __FILE__, __LINE__, e);
	if (!st && !(info.estimatedTime > 0))
		st = error_set(e, ST_RUN, "NCCL gives no estimate for %s of %llu elements", collective_name(call->coll),
			(unsigned long long)call->elements);
	*seconds = st ? 0 : (double)info.estimatedTime * 1e-6;
	return st;
#else
	(void)of, (void)call, (void)seconds;
	return error_set(e, ST_RUN, "NCCL estimates from 2.22 on; this is %d.%d.%d", NCCL_MAJOR, NCCL_MINOR,
		NCCL_PATCH);
#endif
}

bool nccl_comm_tells(const char *path)
{
	static bool telling; /* the variables are ours */
	/* NCCL reads its environment again: in the library since 2.19, but no promise of its interface, so it may go.
	 */
	void *found = dlsym(RTLD_DEFAULT, "ncclResetDebugInit");
	void (*read_again)(void);
	static_assert(sizeof found == sizeof read_again, "a function's address fits");
	memcpy(&read_again, &found, sizeof found);
	if (!found || (!telling && (getenv("NCCL_DEBUG") || getenv("NCCL_DEBUG_FILE") || getenv("NCCL_DEBUG_SUBSYS"))))
		return false;
	telling = path != NULL;
	const char *const variables[][2] = {{"NCCL_DEBUG", "INFO"}, {"NCCL_DEBUG_SUBSYS", "TUNING"},
		{"NCCL_DEBUG_FILE", path}};
	for (size_t i = 0; i < COUNT(variables); i++) {
		if (path)
			setenv(variables[i][0], variables[i][1], 1);
		else
			unsetenv(variables[i][0]);
	}
	read_again();
	return true;
}

static const struct comm_ops nccl_ops = {nccl_start, nccl_test, nccl_destroy};
