#include "exec/links.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/quantity.h"
#include "exec/mpi_check.h"

#define TAG 3
#define MESSAGE_B (256 * 1024)
#define REPEATS 5
#define AGAIN 3
/* Less is what a busy core makes of a message. */
#define SLOWER 2.5
#define SLOWER_BY_S 1e-3

static int64_t leader_of(const struct session *s, int64_t host)
{
	for (int64_t r = 0; r < s->info.ranks; r++)
		if (s->host_of[r] == host)
			return r;
	return 0;
}

static enum status pass(struct session *s, void *bytes, int64_t peer, bool sends, struct error *e)
{
	MPI_Request r;
	enum status st = sends ? MPI_CHECK(MPI_Isend(bytes, MESSAGE_B, MPI_BYTE, (int)peer, TAG, s->world, &r), e)
	                       : MPI_CHECK(MPI_Irecv(bytes, MESSAGE_B, MPI_BYTE, (int)peer, TAG, s->world, &r), e);
	return st ? st : session_wait(s, &r, e);
}

static enum status there_and_back(struct session *s, void *bytes, int64_t peer, bool first, double *least_s,
	struct error *e)
{
	enum status st = ST_OK;
	for (int i = 0; i < REPEATS && !st; i++) {
		const double begin_s = clock_s();
		if (!(st = pass(s, bytes, peer, first, e)))
			st = pass(s, bytes, peer, !first, e);
		*least_s = fmin(*least_s, clock_s() - begin_s);
	}
	return st;
}

/* Links that share no host at once: the even ones, the odd ones, and the one that closes an odd ring. */
static int64_t turn_of(int64_t link, int64_t hosts) { return link == hosts - 1 && hosts % 2 ? 2 : link % 2; }

static enum status time_all(struct session *s, int64_t n, double *out_s, struct error *e)
{
	const int64_t hosts = s->info.hosts;
	char *bytes = calloc(1, MESSAGE_B);
	enum status st = session_agree(s, bytes ? ST_OK : error_nomem(e, "a message"), e);
	memset(out_s, 0, (size_t)n * sizeof *out_s);
	for (int64_t turn = 0; turn < 3 && !st; turn++) {
		st = session_barrier(s, e);
		for (int64_t i = 0; i < n && !st; i++) {
			const int64_t from = leader_of(s, i), to = leader_of(s, (i + 1) % hosts);
			const bool first = s->info.rank == from;
			if (turn_of(i, hosts) != turn || (!first && s->info.rank != to))
				continue;
			double least_s = INFINITY;
			st = there_and_back(s, bytes, first ? to : from, first, &least_s, e);
			out_s[i] = first ? least_s : 0;
		}
	}
	free(bytes);
	return st ? st : session_max(s, out_s, (size_t)n, e);
}

static bool slower(const struct links *l, int64_t i)
{
	return l->after_s[i] > SLOWER * l->before_s[i] && l->after_s[i] - l->before_s[i] > SLOWER_BY_S;
}

enum status links_begin(struct session *s, struct links *l, struct error *e)
{
	*l = (struct links){0};
	if (s->info.hosts < 2 || s->gpus)
		return ST_OK;
	l->n = s->info.hosts == 2 ? 1 : s->info.hosts;
	l->before_s = calloc((size_t)l->n, sizeof *l->before_s);
	l->after_s = calloc((size_t)l->n, sizeof *l->after_s);
	enum status st = l->before_s && l->after_s ? ST_OK : error_nomem(e, "the times of links");
	st = session_agree(s, st, e);
	return st ? st : time_all(s, l->n, l->before_s, e);
}

enum status links_end(struct session *s, struct links *l, struct error *e)
{
	double *again_s = calloc((size_t)l->n + 1, sizeof *again_s);
	bool some = l->n > 0;
	enum status st = l->n ? session_agree(s, again_s ? ST_OK : error_nomem(e, "the times of links"), e) : ST_OK;
	for (int64_t i = 0; i < l->n; i++)
		l->after_s[i] = INFINITY;
	/* All ranks hold the same times, and go on together. */
	for (int k = 0; k < AGAIN && some && !st; k++) {
		some = false;
		st = time_all(s, l->n, again_s, e);
		for (int64_t i = 0; i < l->n && !st; i++) {
			l->after_s[i] = fmin(l->after_s[i], again_s[i]);
			some |= slower(l, i);
		}
	}
	free(again_s);
	return st;
}

void links_free(struct links *l)
{
	free(l->before_s);
	free(l->after_s);
}

void links_say(const struct links *l, const struct session *s, struct result *out)
{
	for (int64_t i = 0; i < l->n; i++) {
		char before[QUANTITY_MAX], after[QUANTITY_MAX];
		if (!slower(l, i))
			continue;
		quantity_format(before, l->before_s[i], UNIT_SECOND);
		quantity_format(after, l->after_s[i], UNIT_SECOND);
		result_warn(out,
			"the link between hosts %s and %s became slow while steps were timed: 256 KiB there and back "
			"took %s before, %s after",
			session_host_name(s, leader_of(s, i)),
			session_host_name(s, leader_of(s, (i + 1) % s->info.hosts)), before, after);
	}
}
