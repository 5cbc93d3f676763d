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
#define WORD_B 8
#define WORDS 50
#define LARGE_B ((size_t)1 << 20)
#define AGAIN 3
/* A busy core lengthens some round trips at random: a minimum on which two rounds agree is the link's. */
#define SAME 1.1
#define ROUNDS_MOST 10
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

/* A message, and how often it goes there and back. */
struct ball {
	void *bytes;
	size_t n;
	int times;
};

static enum status pass(struct session *s, const struct ball *b, int64_t peer, bool sends, struct error *e)
{
	MPI_Request r;
	const int n = (int)b->n, to = (int)peer;
	enum status st = sends ? MPI_CHECK(MPI_Isend(b->bytes, n, MPI_BYTE, to, TAG, s->world, &r), e)
	                       : MPI_CHECK(MPI_Irecv(b->bytes, n, MPI_BYTE, to, TAG, s->world, &r), e);
	return st ? st : session_wait(s, &r, e);
}

static enum status there_and_back(struct session *s, const struct ball *b, int64_t peer, bool first, double *least_s,
	struct error *e)
{
	enum status st = ST_OK;
	for (int i = 0; i < b->times && !st; i++) {
		const double begin_s = clock_s();
		if (!(st = pass(s, b, peer, first, e)))
			st = pass(s, b, peer, !first, e);
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
	const struct ball ball = {bytes, MESSAGE_B, REPEATS};
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
			st = there_and_back(s, &ball, first ? to : from, first, &least_s, e);
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

/* All ranks hold the same times, and go on together. */
static enum status time_before(struct session *s, struct links *l, struct error *e)
{
	double *again_s = l->after_s;
	enum status st = time_all(s, l->n, l->before_s, e);
	bool found = false;
	for (int k = 1; k < ROUNDS_MOST && !found && !st; k++) {
		st = time_all(s, l->n, again_s, e);
		found = true;
		for (int64_t i = 0; i < l->n && !st; i++) {
			const double low_s = fmin(l->before_s[i], again_s[i]),
				     high_s = fmax(l->before_s[i], again_s[i]);
			found = found && high_s <= SAME * low_s;
			l->before_s[i] = low_s;
		}
	}
	return st;
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
	return st ? st : time_before(s, l, e);
}

enum status links_end(struct session *s, struct links *l, struct error *e)
{
	double *again_s = calloc((size_t)l->n + 1, sizeof *again_s);
	bool some = l->n > 0;
	enum status st = l->n ? session_agree(s, again_s ? ST_OK : error_nomem(e, "the times of links"), e) : ST_OK;
	for (int64_t i = 0; i < l->n; i++)
		l->after_s[i] = INFINITY;
	/* As in time_before. */
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

/* ---- classes of links ---- */

/* Ranks that message each other: of the first hosts, each two; of each, its first two ranks. */
struct meeting {
	int64_t from, to;
};

static size_t find_meetings(const struct session *s, int64_t hosts, struct message_pair *pairs, struct meeting *meet)
{
	size_t n = 0;
	for (int64_t a = 0; a < hosts; a++)
		for (int64_t b = a; b < hosts; b++) {
			int64_t from = leader_of(s, a), to = b > a ? leader_of(s, b) : from + 1;
			while (to < s->info.ranks && s->host_of[to] != b)
				to++;
			if (to == s->info.ranks)
				continue; /* one rank on this host */
			pairs[n] = (struct message_pair){.a = a, .b = b};
			meet[n++] = (struct meeting){from, to};
		}
	return n;
}

/* seconds: of the word, then of the large message, there and back; 0 on ranks that do not begin it. */
static enum status meet(struct session *s, const struct meeting *m, char *bytes, double seconds[2], struct error *e)
{
	const struct ball balls[] = {{bytes, WORD_B, WORDS}, {bytes, LARGE_B, REPEATS}};
	const bool first = s->info.rank == m->from;
	enum status st = session_barrier(s, e);
	seconds[0] = seconds[1] = 0;
	for (int i = 0; i < 2 && !st && (first || s->info.rank == m->to); i++) {
		double least_s = INFINITY;
		st = there_and_back(s, &balls[i], first ? m->to : m->from, first, &least_s, e);
		seconds[i] = first ? least_s : 0;
	}
	return st;
}

static enum status find_classes(struct session *s, int64_t hosts, size_t n, struct message_pair *pairs,
	const double *seconds, struct message_links *out, struct error *e)
{
	const char *names[LINKS_HOSTS_MOST];
	for (int64_t h = 0; h < hosts; h++)
		names[h] = session_host_name(s, leader_of(s, h));
	for (size_t i = 0; i < n; i++) {
		pairs[i].latency_s = seconds[2 * i] / 2;
		pairs[i].Bps = (double)LARGE_B / fmax(seconds[2 * i + 1] / 2, 1e-9);
	}
	return message_links_find(pairs, n, names, hosts, out, e);
}

enum status session_message_links(struct session *s, struct message_links *out, struct error *e)
{
	const int64_t hosts = s->info.hosts < LINKS_HOSTS_MOST ? s->info.hosts : LINKS_HOSTS_MOST;
	const size_t most = (size_t)(hosts * (hosts + 1) / 2);
	struct message_pair *pairs = calloc(most, sizeof *pairs);
	struct meeting *meetings = calloc(most, sizeof *meetings);
	double *seconds = calloc(2 * most, sizeof *seconds);
	char *bytes = calloc(1, LARGE_B);
	*out = (struct message_links){0};
	enum status st = pairs && meetings && seconds && bytes ? ST_OK : error_nomem(e, "the classes of links");
	st = session_agree(s, st, e);
	const size_t n = st ? 0 : find_meetings(s, hosts, pairs, meetings);
	for (size_t i = 0; i < n && !st; i++)
		st = meet(s, &meetings[i], bytes, &seconds[2 * i], e);
	if (!st && !(st = session_max(s, seconds, 2 * n, e)))
		st = session_agree(s, find_classes(s, hosts, n, pairs, seconds, out, e), e);
	free(pairs);
	free(meetings);
	free(seconds);
	free(bytes);
	return st;
}
