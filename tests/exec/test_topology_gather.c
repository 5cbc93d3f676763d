/* Prints the ranks' view of their hosts, for test_topology_gather.sh and tests/root/.
 *
 *   mpirun -np N test_topology_gather
 *
 * Rank 0 prints the cluster, "hosts H devices D", a line "host NAME gpus G nics N" for each host, and the placement of
 * each rank.
 */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "exec/exec.h"

static enum status print_cluster(const struct cluster *c, const struct session_info *info, struct error *e)
{
	int64_t host = 0;
	printf("hosts %lld devices %lld\n", (long long)c->hosts, (long long)c->devices);
	if (c->host_name.n != (size_t)c->hosts)
		return error_set(e, ST_RUN, "%lld hosts have %zu names", (long long)c->hosts, c->host_name.n);
	if (c->hosts != info->hosts)
		return error_set(e, ST_RUN, "the cluster has %lld hosts, the session %lld", (long long)c->hosts,
			(long long)info->hosts);
	for (size_t i = 0; i < c->shape.n; i++) {
		const struct graph *g = c->shape.at[i].graph;
		if (topology_check(g, e))
			return ST_RUN;
		if (c->shape.at[i].first_host != host)
			return error_set(e, ST_RUN, "shape %zu begins at host %lld instead of %lld", i,
				(long long)c->shape.at[i].first_host, (long long)host);
		for (int64_t k = 0; k < c->shape.at[i].hosts; k++)
			printf("host %s gpus %zu nics %zu\n", c->host_name.at[host++], g->gpu.n, g->nic.n);
	}
	return host == c->hosts ? ST_OK : error_set(e, ST_RUN, "the shapes have %lld hosts", (long long)host);
}

int main(void)
{
	struct error e = {ST_OK, ""};
	struct session *s = NULL;
	struct cluster *c = NULL;
	enum status st = session_open(60, &s, &e);
	if (st) {
		fprintf(stderr, "test_topology_gather: %s\n", e.text);
		return (int)st;
	}
	const struct session_info *info = session_info(s);
	log_setup(LOG_QUIET, PROGRESS_NEVER, false);
	st = session_cluster(s, &c, &e);
	if (!st && (c != NULL) != (info->rank == 0))
		st = error_set(&e, ST_RUN, "rank %lld got %s", (long long)info->rank, c ? "a cluster" : "none");
	if (!st && c && !(st = print_cluster(c, info, &e)))
		for (int64_t rank = 0; rank < info->ranks; rank++)
			printf("%s\n", session_placement(s, rank));
	st = session_agree(s, st, &e);
	if (st && info->rank == 0)
		fprintf(stderr, "test_topology_gather: %s\n", e.text);
	fflush(stdout);
	cluster_destroy(c);
	session_close(s);
	return (int)st;
}
