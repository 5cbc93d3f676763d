/* Remarks on the ways from GPUs to NICs. */
#include <stdlib.h>
#include <string.h>

#include "topology/discover/join.h"
#include "topology/discover/remarks.h"
#include "topology/graph/cluster.h"
#include "topology/graph/rates.h"

struct nearest {
	int level; /* of the link word; -1: not known */
	int32_t nic;
	double Bps; /* of the way there */
};

/* The level of a pair's word, -1 where it is not told. */
static enum status word_level(const struct advisor *a, int32_t x, int32_t y, int *level)
{
	char word[GRAPH_WORD];
	struct error none = {0};
	*level = router_word(a->router, x, y, word, &none) ? -1 : route_level_of_word(word);
	return router_out_of_memory(a->router) ? error_nomem(a->e, "link words") : ST_OK;
}

/* Of the nearest NICs, the one with the fastest way. Nothing is known where a dump leaves out the way to one of the
 * others, which may be nearer. */
static enum status nearest_nic(const struct advisor *a, size_t gpu, int32_t *nics, struct nearest *out)
{
	int32_t at = a->g->gpu.at[gpu], n = cluster_nics(a->router, a->g, at, nics, (int32_t)a->g->nic.n);
	enum status st = n < 0 ? error_nomem(a->e, "nearest NICs") : ST_OK;
	*out = (struct nearest){-1, -1, 0};
	for (size_t k = 0; k < a->g->nic.n && !st; k++) {
		int level;
		st = word_level(a, at, a->g->nic.at[k], &level);
		if (st || level < 0)
			return st;
	}
	for (int32_t k = 0; k < n && !st; k++) {
		struct route r;
		bool there;
		if ((st = advisor_route(a, at, nics[k], &r, &there)) || !there || r.Bps <= out->Bps)
			continue;
		out->nic = nics[k];
		out->Bps = r.Bps;
		st = word_level(a, at, nics[k], &out->level);
	}
	return st;
}

static bool same_cores(const struct vertex *x, const struct vertex *y)
{
	return (x->cores[0] && strcmp(x->cores, y->cores) == 0) || (x->numa >= 0 && x->numa == y->numa);
}

static bool is_near(const struct nearest *near) { return near->level > ROUTE_NV && near->level < ROUTE_SYS; }

/* SYS is not always another socket: some processors show a domain for each root complex. It is taken for one only where
 * GPUs of the same cores do not show it among themselves, and have no NIC nearer; where no GPU is near a NIC, and the
 * NIC's place is not known, only when such GPUs show other words of PCIe among themselves. */
static enum status across_sockets(const struct advisor *a, const struct nearest *near, size_t gpu, bool any_near,
	bool *across)
{
	const struct vertex *v = advisor_gpu(a, gpu), *nic = near[gpu].nic < 0 ? NULL : &a->g->vertex.at[near[gpu].nic];
	bool alike = true, told_apart = false;
	*across = false;
	if (near[gpu].level != ROUTE_SYS || (v->numa >= 0 && nic->numa == v->numa))
		return ST_OK;
	for (size_t k = 0; k < a->n; k++) {
		int level;
		if (k == gpu)
			continue;
		alike &= same_cores(v, advisor_gpu(a, k));
		if (!same_cores(v, advisor_gpu(a, k)))
			continue;
		if (is_near(&near[k]))
			return ST_OK;
		enum status st = word_level(a, a->g->gpu.at[gpu], a->g->gpu.at[k], &level);
		if (st || level == ROUTE_SYS)
			return st;
		told_apart |= level > ROUTE_NV;
	}
	*across = any_near || (v->numa >= 0 && nic->numa >= 0) || (alike && told_apart);
	return ST_OK;
}

/* Names in words what a route between CPUs crosses. Parts of one package are its NUMA nodes. */
static enum status crossed(const struct advisor *a, int32_t from, int32_t to, const char **what)
{
	struct route r;
	bool there;
	enum status st = advisor_route(a, from, to, &r, &there);
	*what = "CPU socket or NUMA node";
	for (int32_t i = 0; !st && there && i < r.n; i++) {
		const struct link *l = &a->g->link.at[r.link[i]];
		if (l->kind != LINK_SOCKET)
			continue;
		int32_t one = a->g->vertex.at[l->a].cpu.package, two = a->g->vertex.at[l->b].cpu.package;
		if (one >= 0 && two >= 0 && one != two) {
			*what = "CPU socket";
			return ST_OK;
		}
		*what = one >= 0 && one == two ? "NUMA node" : *what;
	}
	return st;
}

/* GPUs in a->in reach no NIC on their side; `good`: what GPUs get that do (0: none does). */
static enum status say_nics(struct advisor *a, const struct nearest *near, size_t n, size_t first, double good)
{
	const struct vertex *nic = &a->g->vertex.at[near[first].nic];
	const char *what;
	double socket = near[first].Bps;
	enum status st = crossed(a, a->g->gpu.at[first], near[first].nic, &what);
	if (!(good > 0))
		good = rate_pcie(advisor_gpu(a, first)->gpu.pcie_gen_max, advisor_gpu(a, first)->gpu.pcie_width).Bps;
	if (st || socket >= 0.95 * good) /* the NIC or its slot is the limit from either side */
		return st;
	join_gpu_list(a->list, sizeof a->list, a->in, a->n);
	return graph_remark(a->g, false, a->e,
		"%s reach%s no NIC without crossing to another %s (nearest: %s%s%s): %.3g GB/s%s over that link "
		"instead of %.3g from the same one",
		a->list, n == 1 ? "es" : "", what, nic->label, nic->name[0] ? " " : "", nic->name, socket / GB,
		n > 1 ? " for all of them" : "", good / GB);
}

enum status remark_nics(struct advisor *a)
{
	struct nearest *near = calloc(a->n + 1, sizeof *near);
	int32_t *nics = malloc((a->g->nic.n + 1) * sizeof *nics);
	size_t n = 0, first = 0;
	double good = 0;
	enum status st = near && nics ? ST_OK : error_nomem(a->e, "nearest NICs");
	bool any_near = false;
	for (size_t i = 0; i < a->n && !st; i++) {
		st = nearest_nic(a, i, nics, &near[i]);
		any_near |= is_near(&near[i]);
		good = is_near(&near[i]) && near[i].Bps > good ? near[i].Bps : good;
	}
	for (size_t i = 0; i < a->n && !st; i++) {
		st = across_sockets(a, near, i, any_near, &a->in[i]);
		first = a->in[i] && n == 0 ? i : first;
		n += a->in[i];
	}
	if (!st && n > 0)
		st = say_nics(a, near, n, first, good);
	free(near);
	free(nics);
	return st;
}
