#include "exec/bench.h"

#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/paths.h"
#include "base/quantity.h"
#include "exec/device.h"
#include "exec/gpus.h"
#include "exec/host/lanes.h"
#include "exec/session.h"
#include "exec/verify.h"

/* elements after which values come again: a prime, so that parts begin at different places of it */
#define PERIOD 8191
#define PERIODS 32 /* in what is copied at once */
#define LOG_MAX ((size_t)64 << 20)

struct bench {
	struct session *s;
	struct bench_table *t;
	struct comm comm;
	struct cuda_scratch scratch; /* on the host its memory is malloc's, and there is no queue */
	size_t element_B, buffer_B;
	char *pattern, *got; /* PERIODS + 1 periods; what was read back */
};

/* ---- memory ---- */

static const struct gpus *gpus_of(const struct bench *b) { return b->s->gpus; }

static enum status check_memory(const struct bench *b, struct error *e)
{
	const struct session_info *info = &b->s->info;
	double need_B = 2 * (double)b->buffer_B, have_B;
	struct host_facts host;
	char need[QUANTITY_MAX], have[QUANTITY_MAX], where[128];
	if (gpus_of(b)) {
		have_B = (double)gpus_of(b)->gpu.free_B;
		snprintf(where, sizeof where, "on GPU %d of %s", gpus_of(b)->device, info->host);
	} else {
		enum status st = host_facts_read(&host, e);
		if (st)
			return st;
		need_B *= (double)info->ranks_per_host;
		have_B = (double)host.mem_available_B;
		snprintf(where, sizeof where, "on %s", info->host);
	}
	if (need_B <= have_B)
		return ST_OK;
	return error_set(e, ST_RUN,
		"not enough memory %s: two buffers a rank need %s, %s are free (-e sets the largest size)", where,
		quantity_format(need, need_B, UNIT_BYTE), quantity_format(have, have_B, UNIT_BYTE));
}

static enum status open_memory(struct bench *b, struct error *e)
{
	b->pattern = malloc((PERIODS + 1) * PERIOD * b->element_B);
	b->got = malloc(PERIODS * PERIOD * b->element_B);
	if (!b->pattern || !b->got)
		return error_nomem(e, "the values of a bench");
	if (gpus_of(b))
		return gpus_of(b)->backend->scratch_open(gpus_of(b)->device, b->buffer_B, &b->scratch, e);
	for (int i = 0; i < 2; i++)
		if (!(b->scratch.memory[i] = calloc(1, b->buffer_B)))
			return error_nomem(e, "the buffers of a bench");
	return ST_OK;
}

static void close_memory(struct bench *b)
{
	free(b->pattern);
	free(b->got);
	if (gpus_of(b)) {
		gpus_of(b)->backend->scratch_close(&b->scratch);
	} else {
		free(b->scratch.memory[0]);
		free(b->scratch.memory[1]);
	}
}

static enum status copy(struct bench *b, void *to, const void *from, size_t bytes, struct error *e)
{
	if (gpus_of(b))
		return gpus_of(b)->backend->scratch_copy(&b->scratch, to, from, bytes, e);
	memcpy(to, from, bytes);
	return ST_OK;
}

/* ---- values ---- */

/* Makes the values that member `from` has for `to`, one period of them; from -1: the sum over all members. Values have
 * few enough bits that any sum is exact in the format. */
static void make_pattern(struct bench *b, int64_t from, int64_t to)
{
	const struct bench_plan *p = &b->t->plan;
	float values[PERIOD];
	int members = 0, bits = dtype_exact_bits(p->dtype);
	while (collective_reduces(p->coll) && ((int64_t)1 << members) < b->comm.size)
		members++;
	bits = bits - members < PATTERN_BITS ? bits - members : PATTERN_BITS;
	for (uint64_t i = 0; i < PERIOD; i++) {
		int32_t sum = 0;
		for (int64_t m = from < 0 ? 0 : from; bits > 0 && m < (from < 0 ? b->comm.size : from + 1); m++)
			sum += verify_value((uint32_t)to, m, i) >> (PATTERN_BITS - bits);
		values[i] = (float)sum;
	}
	size_t period_B = PERIOD * b->element_B;
	dtype_store(p->dtype, values, PERIOD, b->pattern);
	for (size_t k = 1; k <= PERIODS; k++)
		memcpy(b->pattern + k * period_B, b->pattern, period_B);
}

static enum status put(struct bench *b, char *at, uint64_t elements, struct error *e)
{
	enum status st = ST_OK;
	for (uint64_t i = 0; i < elements && !st; i += PERIODS * PERIOD) {
		uint64_t n = elements - i < PERIODS * PERIOD ? elements - i : PERIODS * PERIOD;
		st = copy(b, at + i * b->element_B, b->pattern, n * b->element_B, e);
	}
	return st;
}

/* Counts the elements that differ from the pattern, which begins `phase` elements in. */
static enum status compare(struct bench *b, const char *at, uint64_t elements, uint64_t phase, uint64_t *wrong,
	struct error *e)
{
	const char *right = b->pattern + phase % PERIOD * b->element_B;
	for (uint64_t i = 0; i < elements; i += PERIODS * PERIOD) {
		uint64_t n = elements - i < PERIODS * PERIOD ? elements - i : PERIODS * PERIOD;
		enum status st = copy(b, b->got, at + i * b->element_B, n * b->element_B, e);
		if (st)
			return st;
		for (uint64_t j = 0; memcmp(b->got, right, n * b->element_B) != 0 && j < n; j++)
			*wrong += memcmp(b->got + j * b->element_B, right + j * b->element_B, b->element_B) != 0;
	}
	return ST_OK;
}

/* ---- one size ---- */

/* Where the call reads and writes: two buffers, or one, in which this rank's part has its place. */
static struct comm_call call_of(const struct bench *b, const struct bench_row *r, bool in_place)
{
	enum collective coll = b->t->plan.coll;
	char *in = b->scratch.memory[in_place ? 1 : 0], *out = b->scratch.memory[1];
	size_t own_B = r->bytes / (uint64_t)b->comm.size * (uint64_t)b->comm.rank;
	if (in_place && coll == COLL_ALL_GATHER)
		in += own_B;
	if (in_place && coll == COLL_REDUCE_SCATTER)
		out += own_B;
	return (struct comm_call){coll, RED_SUM, b->t->plan.dtype, r->bytes / b->element_B, in, out, b->scratch.queue};
}

/* A call that fails here leaves the other ranks waiting. */
static void must(struct bench *b, enum status st, const struct error *e)
{
	if (st)
		watchdog_fail(b->s->watchdog, e->text);
}

/* On the host a call moves only while it is polled, as a step's lanes do it, and the next one comes when it is done; on
 * a GPU calls stand in the queue. */
static void run_calls(struct bench *b, const struct comm_call *call, int64_t n)
{
	struct error e = {ST_OK, ""};
	const bool naps = b->s->info.oversubscribed, yields = b->s->info.hosts > 1;
	bool done = false;
	for (int64_t i = 0; i < n; i++) {
		must(b, comm_start(&b->comm, call, &e), &e);
		for (done = gpus_of(b) != NULL; !done;) {
			must(b, comm_test(&b->comm, &done, &e), &e);
			if (!done && naps)
				device_nap();
			else if (!done && yields)
				sched_yield();
		}
		watchdog_progress(b->s->watchdog);
	}
	for (bool idle = !gpus_of(b); !idle;) {
		must(b, comm_test(&b->comm, &done, &e), &e);
		must(b, gpus_of(b)->backend->scratch_idle(&b->scratch, &idle, &e), &e);
	}
	watchdog_progress(b->s->watchdog);
}

static enum status fill(struct bench *b, const struct comm_call *call, struct error *e)
{
	uint64_t part = call->elements / (uint64_t)b->comm.size;
	/* An earlier call may have left right values in the output, or in place in the parts that are to come from
	 * others. */
	memset(b->pattern, 0xa5, PERIODS * PERIOD * b->element_B);
	enum status st = put(b, b->scratch.memory[1], call->elements, e);
	for (int64_t to = 0; to < (call->coll == COLL_ALLTOALL ? b->comm.size : 1) && !st; to++) {
		make_pattern(b, b->comm.rank, to);
		char *at = (char *)(uintptr_t)call->in + part * (uint64_t)to * b->element_B;
		st = put(b, at, call->coll == COLL_ALLTOALL || call->coll == COLL_ALL_GATHER ? part : call->elements,
			e);
	}
	return st;
}

static enum status count_wrong(struct bench *b, const struct comm_call *call, uint64_t *wrong, struct error *e)
{
	uint64_t part = call->elements / (uint64_t)b->comm.size;
	int64_t n = b->comm.size, rank = b->comm.rank;
	const char *out = call->out;
	enum status st = ST_OK;
	switch (call->coll) {
	case COLL_ALL_GATHER:
	case COLL_ALLTOALL:
		for (int64_t from = 0; from < n && !st; from++) {
			make_pattern(b, from, call->coll == COLL_ALLTOALL ? rank : 0);
			st = compare(b, out + part * (uint64_t)from * b->element_B, part, 0, wrong, e);
		}
		return st;
	case COLL_REDUCE_SCATTER: make_pattern(b, -1, 0); return compare(b, out, part, part * (uint64_t)rank, wrong, e);
	default:
		make_pattern(b,
			call->coll == COLL_ALL_REDUCE  ? -1
			: call->coll == COLL_BROADCAST ? 0
						       : (rank + n - 1) % n,
			0);
		return compare(b, out, call->elements, 0, wrong, e);
	}
}

static enum status check_call(struct bench *b, const struct comm_call *call, struct bench_side *side, struct error *e)
{
	uint64_t wrong = 0;
	enum status st = session_agree(b->s, fill(b, call, e), e);
	if (st)
		return st;
	run_calls(b, call, 1);
	st = session_agree(b->s, count_wrong(b, call, &wrong, e), e);
	double sum = (double)wrong;
	if (st || (st = session_sum(b->s, &sum, 1, e)))
		return st;
	side->wrong = (uint64_t)sum;
	return ST_OK;
}

static enum status measure_side(struct bench *b, const struct bench_row *r, bool in_place, struct bench_side *side,
	struct error *e)
{
	const struct bench_plan *p = &b->t->plan;
	const struct comm_call call = call_of(b, r, in_place);
	double *all = malloc((size_t)b->s->info.ranks * sizeof *all), mine_s;
	enum status st = session_agree(b->s, all ? ST_OK : error_nomem(e, "the ranks' times"), e);
	if (st || (p->check && (st = check_call(b, &call, side, e))))
		goto out;
	run_calls(b, &call, p->warmup);
	if ((st = session_barrier(b->s, e)))
		goto out;
	double begin_s = clock_s();
	run_calls(b, &call, p->iters);
	mine_s = (clock_s() - begin_s) / (double)p->iters;
	if ((st = session_gather_all(b->s, &mine_s, sizeof mine_s, all, e)))
		goto out;
	side->done = true;
	side->time_s = 0;
	for (int64_t i = 0; i < b->s->info.ranks; i++)
		side->time_s = fmax(side->time_s, all[i]);
out:
	free(all);
	return st;
}

static enum status warm_up(struct bench *b, const struct bench_row *largest, struct error *e)
{
	const struct comm_call call = call_of(b, largest, false);
	run_calls(b, &call, b->t->plan.warmup);
	return session_barrier(b->s, e);
}

static enum status measure_row(struct bench *b, struct bench_row *r, struct error *e)
{
	enum collective coll = b->t->plan.coll;
	enum status st = measure_side(b, r, false, &r->out_of_place, e);
	if (!st && coll != COLL_ALLTOALL && coll != COLL_SENDRECV)
		st = measure_side(b, r, true, &r->in_place, e);
	return st;
}

/* ---- what NCCL says of it ---- */

/* Each size once more, untimed: a log costs time. */
static void ask_choices(struct bench *b)
{
	char path[PATH_MAX_LEN], *text = NULL;
	const char *folder = getenv("TMPDIR");
	size_t length, seen = 0; /* NCCL writes on where it is: the file is never cut */
	snprintf(path, sizeof path, "%s/stepsim-nccl-XXXXXX", folder && *folder ? folder : "/tmp");
	int file = b->s->info.rank == 0 ? mkstemp(path) : -1;
	bool tells = file >= 0 && gpus_of(b)->backend->nccl_tells(path);
	for (size_t i = 0; i < b->t->n; i++) {
		struct comm_call call = call_of(b, &b->t->rows[i], false);
		struct error ignored = {ST_OK, ""};
		run_calls(b, &call, 1);
		if (tells && file_read(path, LOG_MAX, &text, &length, &ignored) == ST_OK) {
			bench_read_choice(text + seen, &b->t->rows[i]);
			seen = length;
			free(text);
		}
	}
	if (file >= 0) {
		gpus_of(b)->backend->nccl_tells(NULL);
		close(file);
		unlink(path);
	}
}

static void ask_estimates(struct bench *b)
{
	for (size_t i = 0; i < b->t->n; i++) {
		struct bench_row *r = &b->t->rows[i];
		struct comm_call call = call_of(b, r, false);
		struct error none = {ST_OK, ""};
		if (gpus_of(b)->backend->nccl_estimate(&b->comm, &call, &r->estimate_s, &none)) {
			r->estimate_s = NAN;
			log_detail("no estimate of NCCL's: %s", none.text);
		}
		watchdog_progress(b->s->watchdog);
	}
}

/* ---- the whole ---- */

static enum status find_places(struct bench *b, struct error *e)
{
	const struct session_info *info = &b->s->info;
	struct bench_place mine;
	memset(&mine, 0, sizeof mine);
	snprintf(mine.host, sizeof mine.host, "%s", info->host);
	mine.pid = getpid();
	if (gpus_of(b))
		snprintf(mine.device, sizeof mine.device, "device %2d [%s] %.90s", gpus_of(b)->device,
			gpus_of(b)->gpu.pci, gpus_of(b)->gpu.name);
	else
		snprintf(mine.device, sizeof mine.device, "%lld core%s%s", (long long)info->cores_per_rank,
			info->cores_per_rank == 1 ? "" : "s", info->oversubscribed ? ", shared" : "");
	b->t->places = calloc((size_t)info->ranks, sizeof *b->t->places);
	enum status st = session_agree(b->s, b->t->places ? ST_OK : error_nomem(e, "the list of ranks"), e);
	return st ? st : session_gather_all(b->s, &mine, sizeof mine, b->t->places, e);
}

static enum status open_comm(struct bench *b, struct error *e)
{
	return (gpus_of(b) ? gpus_comm : comm_create_mpi)(b->s, b->s->info.ranks, 1, &b->comm, e);
}

static enum status open_bench(struct bench *b, const struct bench_plan *plan, struct error *e)
{
	enum status st = bench_sizes(plan, b->s->info.ranks, b->t, e);
	if (!st) {
		b->element_B = (size_t)dtype_bytes(plan->dtype);
		b->buffer_B = b->t->rows[b->t->n - 1].bytes;
		st = check_memory(b, e);
	}
	if ((st = session_agree(b->s, st, e)) || (st = find_places(b, e)) ||
		(st = session_agree(b->s, open_memory(b, e), e)))
		return st;
	return session_agree(b->s, open_comm(b, e), e);
}

enum status bench(struct session *s, const struct bench_plan *plan, struct bench_table *out, struct error *e)
{
	struct bench b = {.s = s, .t = out};
	char what[64];
	*out = (struct bench_table){0};
	watchdog_arm(s->watchdog, "set-up of a bench");
	enum status st = open_bench(&b, plan, e);
	out->gpus = s->info.gpus;
	out->doubles = s->info.gpu_doubles;
	out->meaningless = s->info.gpu_shared;
	if (!s->gpus)
		lanes_quick_wakes(); /* calls are polled as a step's are */
	progress_begin(collective_name(plan->coll));
	if (!st && out->n) /* as nccl-tests: links and windows are as wide open as they get when the small sizes come */
		st = warm_up(&b, &out->rows[out->n - 1], e);
	for (size_t i = 0; i < out->n && !st; i++) {
		char size[QUANTITY_MAX];
		quantity_format(size, (double)out->rows[i].bytes, UNIT_BYTE);
		snprintf(what, sizeof what, "%s of %.24s", collective_name(plan->coll), size);
		watchdog_arm(s->watchdog, what);
		progress_update((double)i / (double)out->n, size);
		st = measure_row(&b, &out->rows[i], e);
	}
	progress_end();
	if (!st && s->gpus && s->gpus->world.ops) {
		watchdog_arm(s->watchdog, "asking NCCL");
		ask_choices(&b);
		ask_estimates(&b);
		st = session_barrier(s, e);
	}
	watchdog_disarm(s->watchdog);
	comm_destroy(&b.comm);
	close_memory(&b);
	return st;
}
