/* Placements of ranks that have GPUs. The first rank of each host computes them from the host's link graph and sends
 * them to the others, so that nvidia-smi runs once a host. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "exec/mpi_check.h"
#include "exec/session.h"

#define TAG 2

/* The message to a rank. The placement's NIC is only shown: NCCL chooses NICs by its own search of the topology, and
 * finds the nearest one too. Users steer it by NCCL_IB_HCA and NCCL_TOPO_FILE. */
struct assignment {
	struct placement placement;
	char text[PLACEMENT_TEXT];
	bool good; /* false: the rank stays where it is */
};

/* Fills rank[] with the ranks of this host, `ranks_per_host` of them, in ascending order. */
static void local_ranks(const struct session *s, int64_t *rank)
{
	for (int64_t r = 0, n = 0; r < s->info.ranks; r++)
		if (s->host_of[r] == s->host_of[s->info.rank])
			rank[n++] = r;
}

static enum status find_gpus(const struct session *s, const struct graph *g, const int64_t *rank,
	char (*pci)[GRAPH_PCI], int32_t *gpu, struct error *e)
{
	for (int64_t i = 0; i < s->info.ranks_per_host; i++) {
		int32_t v = graph_find_pci(g, pci[rank[i]]);
		gpu[i] = -1;
		for (size_t k = 0; k < g->gpu.n && v >= 0; k++)
			if (g->gpu.at[k] == v)
				gpu[i] = (int32_t)k;
		if (gpu[i] < 0)
			return error_set(e, ST_RUN,
				"the topology of host %s has %zu GPU%s, none at %s, which CUDA gives to rank %lld",
				s->info.host, g->gpu.n, g->gpu.n == 1 ? "" : "s", pci[rank[i]], (long long)rank[i]);
	}
	return ST_OK;
}

static enum status find_places(struct session *s, const int64_t *rank, char (*pci)[GRAPH_PCI], struct assignment *given,
	struct error *e)
{
	const struct graph *g = NULL;
	char **allowed = NULL;
	int64_t n = s->info.ranks_per_host;
	int32_t *gpu = malloc((size_t)n * sizeof *gpu);
	struct placement *placements = malloc((size_t)n * sizeof *placements);
	enum status st = gpu && placements ? ST_OK : error_nomem(e, "the ranks' places");
	if (st || (st = session_graph(s, &g, e)) || (st = find_gpus(s, g, rank, pci, gpu, e)) ||
		(st = session_allowed(s, &allowed, e)) ||
		(st = placement_choose_at(g, (const char *const *)allowed, n, gpu, placements, e)))
		goto out;
	for (int64_t i = 0; i < n; i++) {
		given[i].placement = placements[i];
		placement_text(&given[i].placement, g, s->info.host, rank[i], given[i].text);
		given[i].good = true;
	}
out:
	session_allowed_free(s, allowed);
	free(gpu);
	free(placements);
	return st;
}

/* Sends its placement to each other rank of the host. */
static enum status hand_out(struct session *s, const int64_t *rank, const struct assignment *given, struct error *e)
{
	enum status st = ST_OK;
	for (int64_t i = 1; !st && i < s->info.ranks_per_host; i++) {
		MPI_Request r;
		st = MPI_CHECK(MPI_Isend(&given[i], (int)sizeof *given, MPI_BYTE, (int)rank[i], TAG, s->world, &r), e);
		if (!st)
			st = session_wait(s, &r, e);
	}
	return st;
}

static enum status receive(struct session *s, int64_t from, struct assignment *given, struct error *e)
{
	MPI_Request r;
	enum status st = MPI_CHECK(MPI_Irecv(given, (int)sizeof *given, MPI_BYTE, (int)from, TAG, s->world, &r), e);
	return st ? st : session_wait(s, &r, e);
}

/* Puts the GPU's address into the text of a placement that was chosen without a graph. */
static void name_gpu(char text[PLACEMENT_TEXT], const char *pci)
{
	char *at = strstr(text, ", no GPU");
	if (at)
		snprintf(at, PLACEMENT_TEXT - (size_t)(at - text), ", GPU at %s", pci);
}

enum status session_place_at_gpus(struct session *s, char (*pci)[GRAPH_PCI], struct error *e)
{
	bool leads = s->info.local_rank == 0;
	size_t n = leads ? (size_t)s->info.ranks_per_host : 1;
	int64_t *rank = malloc((size_t)s->info.ranks_per_host * sizeof *rank);
	struct assignment *given = calloc(n, sizeof *given);
	struct error why = {ST_OK, ""};
	enum status st = session_agree(s, rank && given ? ST_OK : error_nomem(e, "the ranks' places"), e);
	if (st)
		goto out;
	local_ranks(s, rank);
	if (leads && find_places(s, rank, pci, given, &why)) {
		for (size_t i = 0; i < n; i++)
			given[i].good = false;
		log_warn("ranks on %s are not bound to the cores of their GPUs: %s", s->info.host, why.text);
	}
	st = leads ? hand_out(s, rank, given, e) : receive(s, rank[0], given, e);
	if (!st && given->good)
		st = session_bind(s, &given->placement, given->text, e);
	else if (!st)
		name_gpu(s->placement, pci[s->info.rank]);
	if (!(st = session_agree(s, st, e)))
		st = session_gather_placements(s, e);
out:
	free(rank);
	free(given);
	return st;
}
