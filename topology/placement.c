#include "topology/placement.h"

#include <errno.h>
#include <hwloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topology/machine.h"
#include "topology/graph/cluster.h"
#include "topology/graph/route.h"

#define CPU_MOST (1 << 16)
#define CORES_SHOWN 160

/* The state of a division of cores. Ranks whose cores may overlap are in one part, which is divided evenly among them.
 */
struct division {
	hwloc_topology_t topology;
	hwloc_bitmap_t allowed; /* to any rank */
	hwloc_bitmap_t *own;    /* by rank: what it may use */
	hwloc_bitmap_t *part;   /* by number; empty: joined to another one */
	int64_t *part_of;       /* by rank */
	int64_t ranks;
};

/* ---- lists of CPUs ---- */

static bool number(const char **at, unsigned *out)
{
	unsigned long v = 0;
	const char *begin = *at;
	for (; **at >= '0' && **at <= '9' && v < CPU_MOST; ++*at)
		v = v * 10 + (unsigned long)(**at - '0');
	*out = (unsigned)v;
	return *at > begin && v < CPU_MOST;
}

/* hwloc's own reader takes any text for some set. */
static enum status parse_list(const char *text, const char *whose, hwloc_bitmap_t out, struct error *e)
{
	const char *at = text;
	hwloc_bitmap_zero(out);
	do {
		unsigned first, last;
		bool good = number(&at, &first);
		last = first;
		if (good && *at == '-') {
			at++;
			good = number(&at, &last) && first <= last;
		}
		if (!good || (*at && *at != ','))
			return error_set(e, ST_INPUT, "%s: '%.80s' is no list of CPUs like \"0-31,64-95\"", whose,
				text);
		if (hwloc_bitmap_set_range(out, first, (int)last))
			return error_nomem(e, "a list of CPUs");
	} while (*at++ == ',');
	return ST_OK;
}

static enum status print_list(hwloc_const_bitmap_t set, int64_t rank, char out[PLACEMENT_CORES], struct error *e)
{
	int length = hwloc_bitmap_list_snprintf(out, PLACEMENT_CORES, set);
	return length < PLACEMENT_CORES
	               ? ST_OK
	               : error_set(e, ST_RUN,
				 "the CPUs of local rank %lld are too scattered: their list takes %d characters, %d "
				 "are the most",
				 (long long)rank, length, PLACEMENT_CORES - 1);
}

/* ---- this host ---- */

static enum status load_cores(hwloc_topology_t *out, struct error *e)
{
	if (hwloc_topology_init(out)) {
		*out = NULL;
		return error_nomem(e, "hwloc's topology");
	}
	/* Without groups (and packages), hwloc would give every NUMA node the CPUs of the whole machine. */
	if (hwloc_topology_set_all_types_filter(*out, HWLOC_TYPE_FILTER_KEEP_NONE) ||
		hwloc_topology_set_type_filter(*out, HWLOC_OBJ_CORE, HWLOC_TYPE_FILTER_KEEP_ALL) ||
		hwloc_topology_set_type_filter(*out, HWLOC_OBJ_GROUP, HWLOC_TYPE_FILTER_KEEP_STRUCTURE) ||
		hwloc_topology_load(*out))
		return error_set(e, ST_RUN, "hwloc cannot read this host's cores: %s", strerror(errno));
	return ST_OK;
}

static enum status find_own(const struct division *d, const char *text, hwloc_bitmap_t out, struct error *e)
{
	enum status st = ST_OK;
	if (text && text[0])
		st = parse_list(text, "the CPUs that ranks may use", out, e);
	else if (hwloc_get_cpubind(d->topology, out, HWLOC_CPUBIND_PROCESS) || hwloc_bitmap_iszero(out))
		hwloc_bitmap_copy(out, hwloc_topology_get_allowed_cpuset(d->topology));
	if (st)
		return st;
	hwloc_bitmap_and(out, out, hwloc_topology_get_topology_cpuset(d->topology));
	return hwloc_bitmap_iszero(out) ? error_set(e, ST_RUN, "hwloc finds none of the CPUs that this process may use")
	                                : ST_OK;
}

static enum status find_allowed(struct division *d, const char *const *texts, struct error *e)
{
	enum status st = ST_OK;
	for (int64_t r = 0; !st && r < d->ranks; r++) {
		if (!(d->own[r] = hwloc_bitmap_alloc()))
			return error_nomem(e, "a set of CPUs");
		if (!(st = find_own(d, texts ? texts[r] : NULL, d->own[r], e)))
			hwloc_bitmap_or(d->allowed, d->allowed, d->own[r]);
	}
	return st;
}

/* The next core, in hwloc's order (neighbours share caches and memory), that has a CPU in `set`. */
static hwloc_obj_t next_core(hwloc_topology_t topology, hwloc_const_bitmap_t set, hwloc_obj_t core)
{
	/* Some machines show hardware threads only. */
	hwloc_obj_type_t type = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE) > 0 ? HWLOC_OBJ_CORE : HWLOC_OBJ_PU;
	do
		core = hwloc_get_next_obj_by_type(topology, type, core);
	while (core && !hwloc_bitmap_intersects(core->cpuset, set));
	return core;
}

static int64_t count_cores(hwloc_topology_t topology, hwloc_const_bitmap_t set)
{
	int64_t n = 0;
	for (hwloc_obj_t core = NULL; (core = next_core(topology, set, core));)
		n++;
	return n;
}

/* ---- near a GPU ---- */

/* The CPUs near a GPU that are allowed: as the driver lists them, else those of its NUMA node as the graph, else as
 * hwloc has them; all where none is left. */
static enum status near_gpu(const struct division *d, const struct graph *g, const struct vertex *gpu,
	hwloc_bitmap_t out, struct error *e)
{
	const char *list = gpu->cores, *whose = gpu->label;
	enum status st = ST_OK;
	for (size_t i = 0; !list[0] && gpu->numa >= 0 && i < g->vertex.n; i++) {
		const struct vertex *v = &g->vertex.at[i];
		if (v->kind == VERTEX_CPU && v->numa == gpu->numa) {
			list = v->cores;
			whose = v->label;
		}
	}
	hwloc_bitmap_zero(out);
	hwloc_obj_t node = gpu->numa >= 0 ? hwloc_get_numanode_obj_by_os_index(d->topology, (unsigned)gpu->numa) : NULL;
	if (list[0])
		st = parse_list(list, whose, out, e);
	else if (node)
		hwloc_bitmap_copy(out, node->cpuset);
	hwloc_bitmap_and(out, out, d->allowed);
	if (hwloc_bitmap_iszero(out))
		hwloc_bitmap_copy(out, d->allowed);
	return st;
}

/* GPUs behind one switch with as many NICs take one each. */
static enum status nearest_nics(const struct graph *g, struct placement *placements, int64_t ranks, struct error *e)
{
	struct router *router = router_create(g);
	int32_t *nic = malloc((g->nic.n + 1) * sizeof *nic), n = 0;
	for (int64_t r = 0; router && nic && n >= 0 && r < ranks; r++) {
		n = cluster_nics(router, g, g->gpu.at[placements[r].gpu], nic, (int32_t)g->nic.n);
		if (n > 0)
			snprintf(placements[r].nic, GRAPH_LABEL, "%s", g->vertex.at[nic[placements[r].gpu % n]].label);
	}
	enum status st = router && nic && n >= 0 ? ST_OK : error_nomem(e, "the NICs of the ranks");
	free(nic);
	router_destroy(router);
	return st;
}

/* ---- the division ---- */

/* Joins `set` to the parts that it overlaps, or makes a new one. */
static enum status join(struct division *d, int64_t rank, hwloc_const_bitmap_t set, struct error *e)
{
	if (!(d->part[rank] = hwloc_bitmap_dup(set)))
		return error_nomem(e, "a set of CPUs");
	d->part_of[rank] = rank;
	for (int64_t p = 0; p < rank; p++) {
		if (!hwloc_bitmap_intersects(d->part[p], d->part[rank]))
			continue;
		hwloc_bitmap_or(d->part[rank], d->part[rank], d->part[p]);
		hwloc_bitmap_zero(d->part[p]);
		for (int64_t r = 0; r < rank; r++)
			d->part_of[r] = d->part_of[r] == p ? rank : d->part_of[r];
	}
	return ST_OK;
}

/* An even share of the part's cores, with all their hardware threads that are allowed; where there are fewer cores than
 * members, one that is shared. */
static enum status take_share(const struct division *d, int64_t rank, struct placement *out, bool *within,
	struct error *e)
{
	hwloc_const_bitmap_t part = d->part[d->part_of[rank]];
	int64_t cores = count_cores(d->topology, part), members = 0, turn = 0, i = 0;
	for (int64_t r = 0; r < d->ranks; r++) {
		turn += d->part_of[r] == d->part_of[rank] && r < rank;
		members += d->part_of[r] == d->part_of[rank];
	}
	out->n_cores = cores >= members ? cores / members : 1;
	out->shared = cores < members;
	int64_t first = out->shared ? turn * cores / members : turn * out->n_cores;
	hwloc_bitmap_t mine = hwloc_bitmap_alloc();
	if (!mine)
		return error_nomem(e, "a set of CPUs");
	for (hwloc_obj_t core = NULL; (core = next_core(d->topology, part, core)); i++)
		if (i >= first && i < first + out->n_cores)
			hwloc_bitmap_or(mine, mine, core->cpuset);
	hwloc_bitmap_and(mine, mine, part);
	*within = hwloc_bitmap_isincluded(mine, d->own[rank]);
	enum status st = print_list(mine, rank, out->cores, e);
	hwloc_bitmap_free(mine);
	return st;
}

/* Where even shares would take a rank out of what it may use, the ranks of that part keep all of theirs, and share
 * them. */
static enum status keep_own(const struct division *d, int64_t part, struct placement *out, struct error *e)
{
	enum status st = ST_OK;
	for (int64_t r = 0; !st && r < d->ranks; r++) {
		if (d->part_of[r] != part)
			continue;
		out[r].n_cores = count_cores(d->topology, d->own[r]);
		out[r].shared = true;
		st = print_list(d->own[r], r, out[r].cores, e);
	}
	return st;
}

static enum status divide(struct division *d, const struct graph *g, struct placement *out, struct error *e)
{
	enum status st = ST_OK;
	hwloc_bitmap_t near = hwloc_bitmap_dup(d->allowed);
	if (!near)
		return error_nomem(e, "a set of CPUs");
	for (int64_t r = 0; !st && r < d->ranks; r++) {
		/* A rank with less than the others may use was bound to it, and keeps it. */
		if (out[r].gpu < 0 || !hwloc_bitmap_isequal(d->own[r], d->allowed))
			hwloc_bitmap_copy(near, d->own[r]);
		else
			st = near_gpu(d, g, &g->vertex.at[g->gpu.at[out[r].gpu]], near, e);
		if (!st)
			st = join(d, r, near, e);
	}
	for (int64_t r = 0; !st && r < d->ranks; r++) {
		bool within = true;
		if (out[r].n_cores == 0 && !(st = take_share(d, r, &out[r], &within, e)) && !within)
			st = keep_own(d, d->part_of[r], out, e);
	}
	hwloc_bitmap_free(near);
	return st;
}

static enum status give_gpus(const struct graph *g, int64_t ranks, bool share_gpu, struct placement *out,
	struct error *e)
{
	int64_t gpus = g ? (int64_t)g->gpu.n : 0;
	if (gpus == 0)
		return error_set(e, ST_RUN, "this host has no GPU");
	if (gpus < ranks && !share_gpu)
		return error_set(e, ST_RUN,
			"this host has %lld GPU%s for %lld ranks; run.share_gpu=true lets ranks share them, for "
			"correctness only",
			(long long)gpus, gpus == 1 ? "" : "s", (long long)ranks);
	for (int64_t r = 0; r < ranks; r++)
		out[r].gpu = (int32_t)(r % gpus);
	return nearest_nics(g, out, ranks, e);
}

/* Cores, once it is known which GPU each rank has. */
static enum status give_cores(const struct graph *g, const char *const *allowed, int64_t ranks, struct placement *out,
	struct error *e)
{
	enum status st = ST_OK;
	struct division d = {.ranks = ranks};
	d.allowed = hwloc_bitmap_alloc();
	d.own = calloc((size_t)ranks, sizeof *d.own);
	d.part = calloc((size_t)ranks, sizeof *d.part);
	d.part_of = calloc((size_t)ranks, sizeof *d.part_of);
	if (!d.allowed || !d.own || !d.part || !d.part_of) {
		st = error_nomem(e, "the ranks' places");
		goto out;
	}
	if ((st = load_cores(&d.topology, e)) || (st = find_allowed(&d, allowed, e)) || (st = divide(&d, g, out, e)))
		goto out;
	int64_t cores = count_cores(d.topology, d.allowed);
	for (int64_t r = 0; r < ranks; r++)
		out[r].host_cores = cores;
	placement_limit(out, ranks, host_quota(cores));
out:
	for (int64_t r = 0; d.part && r < ranks; r++)
		hwloc_bitmap_free(d.part[r]);
	for (int64_t r = 0; d.own && r < ranks; r++)
		hwloc_bitmap_free(d.own[r]);
	free(d.own);
	free(d.part);
	free(d.part_of);
	hwloc_bitmap_free(d.allowed);
	if (d.topology)
		hwloc_topology_destroy(d.topology);
	return st;
}

enum status placement_choose(const struct graph *g, const char *const *allowed, int64_t ranks, bool use_gpus,
	bool share_gpu, struct placement *out, struct error *e)
{
	for (int64_t r = 0; r < ranks; r++)
		out[r] = (struct placement){.gpu = -1};
	enum status st = use_gpus ? give_gpus(g, ranks, share_gpu, out, e) : ST_OK;
	return st ? st : give_cores(g, allowed, ranks, out, e);
}

enum status placement_choose_at(const struct graph *g, const char *const *allowed, int64_t ranks, const int32_t *gpu,
	struct placement *out, struct error *e)
{
	for (int64_t r = 0; r < ranks; r++)
		out[r] = (struct placement){.gpu = gpu[r]};
	enum status st = nearest_nics(g, out, ranks, e);
	return st ? st : give_cores(g, allowed, ranks, out, e);
}

void placement_limit(struct placement *placements, int64_t ranks, int64_t quota)
{
	int64_t each = quota >= ranks ? quota / ranks : 1;
	for (int64_t r = 0; r < ranks; r++) {
		struct placement *s = &placements[r];
		s->host_cores = quota < s->host_cores ? quota : s->host_cores;
		s->n_cores = each < s->n_cores ? each : s->n_cores;
		s->shared = s->shared || quota < ranks;
	}
}

/* ---- in words ---- */

static void list_text(const char *cores, char out[CORES_SHOWN + 8])
{
	size_t n = strlen(cores);
	if (n <= CORES_SHOWN) {
		memcpy(out, cores, n + 1);
		return;
	}
	for (n = CORES_SHOWN; cores[n] != ','; n--)
		;
	snprintf(out, CORES_SHOWN + 8, "%.*s,...", (int)n, cores);
}

void placement_text(const struct placement *s, const struct graph *g, const char *host, int64_t rank,
	char out[PLACEMENT_TEXT])
{
	char cores[CORES_SHOWN + 8], gpu[2 * GRAPH_NAME] = "", nic[2 * GRAPH_NAME] = ", no GPU";
	list_text(s->cores, cores);
	if (s->gpu >= 0 && g) {
		const struct vertex *v = &g->vertex.at[g->gpu.at[s->gpu]];
		int32_t at = graph_find_label(g, s->nic);
		snprintf(gpu, sizeof gpu, ", %s (%s%s%s)", v->label, v->name[0] ? v->name : "GPU",
			v->pci[0] ? ", " : "", v->pci);
		if (at >= 0 && g->vertex.at[at].name[0])
			snprintf(nic, sizeof nic, ", %s (%s)", s->nic, g->vertex.at[at].name);
		else
			snprintf(nic, sizeof nic, ", %s", s->nic[0] ? s->nic : "no NIC");
	}
	snprintf(out, PLACEMENT_TEXT, "rank %lld: host %.63s%s, cores %s%s%s", (long long)rank, host, gpu, cores,
		s->shared ? " (shared)" : "", nic);
}
