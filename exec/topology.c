/* The hosts of a run as one cluster: each host's first rank discovers it, and rank 0 collects their graphs as JSON. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exec/mpi_check.h"
#include "exec/session.h"
#include "topology/discover/discover.h"
#include "topology/graph/cluster.h"
#include "topology/graph/rates.h"

#define CHUNK_B (INT64_C(1) << 20)
#define TAG 1

/* Named as this process knows the host: what rank 0 says about it must match what the session says. */
enum status session_graph(struct session *s, const struct graph **out, struct error *e)
{
	*out = s->graph;
	if (s->graph)
		return ST_OK;
	struct graph *g = NULL;
	enum status st = discover(&(struct dumps){0}, &g, e);
	if (st)
		return error_context(e, "the topology of host %s", s->info.host);
	snprintf(g->host, sizeof g->host, "%s", s->info.host);
	*out = s->graph = g;
	return ST_OK;
}

/* This host's graph as text. */
static enum status describe_host(struct session *s, char **out, struct error *e)
{
	const struct graph *g;
	enum status st = session_graph(s, &g, e);
	if (st)
		return st;
	json_t *json = graph_json(g);
	*out = json ? json_dumps(json, JSON_COMPACT) : NULL;
	json_decref(json);
	return *out ? ST_OK : error_nomem(e, "this host's topology as text");
}

static enum status send_text(struct session *s, const char *text, int64_t length_B, struct error *e)
{
	enum status st = ST_OK;
	for (int64_t at = 0; !st && at < length_B; at += CHUNK_B) {
		int64_t rest = length_B - at;
		MPI_Request r;
		st = MPI_CHECK(MPI_Isend(text + at, (int)(rest < CHUNK_B ? rest : CHUNK_B), MPI_BYTE, 0, TAG, s->world,
				       &r),
			e);
		if (!st)
			st = session_wait(s, &r, e);
	}
	return st;
}

static enum status receive_text(struct session *s, int64_t rank, char *text, int64_t length_B, struct error *e)
{
	enum status st = ST_OK;
	for (int64_t at = 0; !st && at < length_B; at += CHUNK_B) {
		int64_t rest = length_B - at;
		MPI_Request r;
		st = MPI_CHECK(MPI_Irecv(text + at, (int)(rest < CHUNK_B ? rest : CHUNK_B), MPI_BYTE, (int)rank, TAG,
				       s->world, &r),
			e);
		if (!st)
			st = session_wait(s, &r, e);
	}
	return st;
}

static enum status add_host(struct cluster *c, const char *text, int64_t length_B, int64_t rank, struct error *e)
{
	json_error_t where;
	struct graph *g = NULL;
	json_t *json = json_loadb(text, (size_t)length_B, 0, &where);
	enum status st = json ? graph_parse(json, &g, e) : error_set(e, ST_RUN, "%s", where.text);
	if (st)
		error_context(e, "the topology that rank %lld sent", (long long)rank);
	json_decref(json);
	if (st)
		return st;
	char name[sizeof g->host];
	memcpy(name, g->host, sizeof name);
	return cluster_add(c, g, 1, name, e);
}

static int64_t first_rank(const struct session *s, int64_t host)
{
	int64_t rank = 0;
	while (s->host_of[rank] != host)
		rank++;
	return rank;
}

/* One host after the other, so that one text is in memory at a time: the others' first ranks wait in their sends. */
static enum status collect(struct session *s, const char *own, const int64_t *length_B, char *buffer, struct cluster *c,
	struct error *e)
{
	enum status st = ST_OK, comm = ST_OK;
	for (int64_t host = 0; !comm && host < s->info.hosts; host++) {
		int64_t rank = first_rank(s, host);
		if (rank != 0)
			comm = receive_text(s, rank, buffer, length_B[rank], e);
		/* A host that cannot be added leaves the others waiting to send: they are heard out. */
		if (!comm && !st)
			st = add_host(c, rank ? buffer : own, length_B[rank], rank, e);
	}
	return comm ? comm : st;
}

enum status session_cluster(struct session *s, struct cluster **out, struct error *e)
{
	bool root = s->info.rank == 0;
	char *text = NULL, *buffer = NULL;
	int64_t mine_B = 0, most_B = 0, *length_B = NULL;
	struct cluster *c = NULL;
	*out = NULL;
	enum status st = s->info.local_rank == 0 ? describe_host(s, &text, e) : ST_OK;
	if (!st && !(length_B = calloc((size_t)s->info.ranks, sizeof *length_B)))
		st = error_nomem(e, "the sizes of the hosts' topologies");
	if ((st = session_agree(s, st, e)))
		goto out;
	mine_B = text ? (int64_t)strlen(text) : 0;
	if ((st = session_gather_all(s, &mine_B, sizeof mine_B, length_B, e)))
		goto out;
	for (int64_t r = 0; r < s->info.ranks; r++)
		most_B = length_B[r] > most_B ? length_B[r] : most_B;
	if (root && (!(buffer = malloc((size_t)most_B)) || !(c = cluster_create(rate_network(0).latency_s))))
		st = error_nomem(e, "the cluster's topology");
	if ((st = session_agree(s, st, e)))
		goto out;
	if (root)
		st = collect(s, text, length_B, buffer, c, e);
	else if (text)
		st = send_text(s, text, mine_B, e);
	st = session_agree(s, st, e);
	if (!st && root) {
		*out = c;
		c = NULL;
	}
out:
	cluster_destroy(c);
	free(buffer);
	free(length_B);
	free(text);
	return st;
}
