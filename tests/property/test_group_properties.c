/* Random hosts, fixed seed: what must hold of routes, groups and JSON whatever the machine. Hosts are trees of PCIe
 * with at most two CPUs, where no slower link can send bytes another way. */
#include <math.h>

#include "tests/unit/graph_rig.h"
#include "topology/graph/group.h"
#include "topology/graph/route.h"

#define ROUNDS 400
#define EPS 1e-9

static uint64_t state = 1;

static int32_t below(int32_t n)
{
	state ^= state >> 12; /* xorshift64* (Vigna 2016) */
	state ^= state << 25;
	state ^= state >> 27;
	return (int32_t)((state * UINT64_C(0x2545f4914f6cdd1d) >> 33) % (uint64_t)n);
}

/* NVLinks are faster than PCIe of gen 3 here, so that a pair never gains by losing one. */
static struct graph *random_host(bool with_nics)
{
	struct rig r = {.gpus = 2 + below(5),
		.cpus = 1 + below(2),
		.gpus_per_switch = below(4),
		.pcie_gen = 3,
		.no_peer = below(3) == 0,
		.cpu_model = below(2) ? "EPYC" : "E5-"};
	if (with_nics) {
		r.nics = 1 + below(2 * r.gpus);
		r.nic_bits_per_s = below(2) ? 100e9 : 25e9;
	}
	struct graph *g = rig_host(&r);
	int32_t fabric = below(4);
	if (fabric == 0)
		rig_nvswitch(g, 1 + below(18), 90);
	for (int32_t i = 0; i < r.gpus && fabric > 1; i++)
		for (int32_t j = i + 1; j < r.gpus; j++)
			if (fabric == 2 || below(3))
				rig_join(g, i, j, below(5) ? LINK_NVLINK : LINK_XGMI, fabric == 2 ? 1 : 1 + below(3),
					rate_nvlink(70));
	struct error e = {0};
	CU_ASSERT_EQUAL_FATAL(topology_check(g, &e), ST_OK);
	return g;
}

static struct graph *copy(const struct graph *g)
{
	struct graph *c = NULL;
	json_t *j = graph_json(g);
	CU_ASSERT_EQUAL_FATAL(graph_parse(j, &c, NULL), ST_OK);
	json_decref(j);
	CU_ASSERT_TRUE(graph_same(g, c));
	return c;
}

static struct cluster *of_hosts(struct graph *g, int64_t n)
{
	struct cluster *c = cluster_create(4e-6);
	CU_ASSERT_EQUAL_FATAL(cluster_add(c, g, n, NULL, NULL), ST_OK);
	return c;
}

static struct group group_of(const struct cluster *c, const int64_t *devices, size_t n)
{
	struct group g = {0};
	struct error e = {0};
	CU_ASSERT_EQUAL_FATAL(cluster_group(c, devices, n, &g, &e), ST_OK);
	return g;
}

/* A random set of devices; its size. */
static size_t random_set(int64_t all, int64_t *devices)
{
	size_t n = 0;
	for (int64_t i = 0; i < all; i++)
		if (below(2))
			devices[n++] = i;
	if (n < 2) {
		devices[0] = 0;
		devices[1] = all - 1;
		n = 2;
	}
	return n;
}

static void check_not_above(double slower, double before, const char *what, int round)
{
	CU_ASSERT_TRUE(slower <= before * (1 + EPS));
	if (!(slower <= before * (1 + EPS)))
		fprintf(stderr, "round %d, %s: %.6g above %.6g\n", round, what, slower, before);
}

/* Before and after a change to a copy of the host's graph: one random group, and every mesh of powers of two. */
static void compare(struct graph *g, struct graph *changed, const char *what, int round)
{
	int64_t hosts = g->nic.n ? 1 + below(3) : 1, devices[32];
	struct cluster *a = of_hosts(g, hosts), *b = of_hosts(changed, hosts);
	size_t n = random_set(a->devices, devices);
	check_not_above(group_of(b, devices, n).ring_Bps, group_of(a, devices, n).ring_Bps, what, round);
	for (int64_t size = 2; size <= a->devices; size++)
		for (int64_t stride = 1; size * stride <= a->devices; stride++) {
			struct group x, y;
			CU_ASSERT_EQUAL_FATAL(cluster_mesh_groups(a, size, stride, &x, NULL), ST_OK);
			CU_ASSERT_EQUAL_FATAL(cluster_mesh_groups(b, size, stride, &y, NULL), ST_OK);
			check_not_above(y.ring_Bps, x.ring_Bps, what, round);
		}
	cluster_destroy(a);
	cluster_destroy(b);
}

static void test_slower_link(void)
{
	for (int round = 0; round < ROUNDS; round++) {
		struct graph *g = random_host(below(2)), *slow = copy(g);
		struct link *l = &slow->link.at[below((int32_t)slow->link.n)];
		double by = 0.1 + 0.1 * below(9);
		l->Bps *= by;
		l->datasheet_Bps *= by;
		compare(g, slow, "a slower link", round);
	}
}

static void test_lost_nvlink(void)
{
	for (int round = 0; round < ROUNDS; round++) {
		struct graph *g = random_host(below(2)), *less = copy(g);
		int32_t i = below((int32_t)less->link.n);
		if (less->link.at[i].kind == LINK_NVLINK || less->link.at[i].kind == LINK_XGMI)
			less->link.at[i] = less->link.at[--less->link.n];
		compare(g, less, "a link less", round);
	}
}

/* The slowest of all groups at once is no faster than any of them alone. */
static void test_more_groups(void)
{
	for (int round = 0; round < ROUNDS; round++) {
		struct graph *g = random_host(true);
		struct cluster *c = of_hosts(g, 1 + below(3));
		int64_t size = 2 + below((int32_t)c->devices - 1), stride = 1 + below((int32_t)(c->devices / size)),
			block = size * stride, devices[32];
		struct group all, one;
		CU_ASSERT_EQUAL_FATAL(cluster_mesh_groups(c, size, stride, &all, NULL), ST_OK);
		for (int64_t first = 0; first + block <= c->devices; first += block)
			for (int64_t lane = 0; lane < stride; lane++) {
				for (int64_t k = 0; k < size; k++)
					devices[k] = first + lane + k * stride;
				one = group_of(c, devices, (size_t)size);
				check_not_above(all.ring_Bps, one.ring_Bps, "more groups", round);
			}
		if (block == c->devices && stride == 1) /* one group: the same either way */
			CU_ASSERT_DOUBLE_EQUAL(all.ring_Bps / one.ring_Bps, 1, EPS);
		cluster_destroy(c);
	}
}

/* The GPU that was number i becomes number to[i]. */
static struct graph *renumbered(const struct graph *g, const int32_t *to)
{
	struct graph *r = copy(g);
	for (size_t i = 0; i < g->gpu.n; i++) {
		r->gpu.at[to[i]] = g->gpu.at[i];
		snprintf(r->vertex.at[g->gpu.at[i]].label, GRAPH_LABEL, "GPU%d", to[i]);
	}
	CU_ASSERT_EQUAL(topology_check(r, NULL), ST_OK);
	return r;
}

static void test_renumbering(void)
{
	for (int round = 0; round < ROUNDS; round++) {
		struct graph *g = random_host(false);
		int32_t to[8], n = (int32_t)g->gpu.n;
		for (int32_t i = 0; i < n; i++)
			to[i] = i;
		for (int32_t i = n - 1; i > 0; i--) {
			int32_t j = below(i + 1), keep = to[i];
			to[i] = to[j];
			to[j] = keep;
		}
		struct cluster *a = of_hosts(g, 1), *b = of_hosts(renumbered(g, to), 1);
		int64_t devices[32], others[32];
		size_t k = random_set(a->devices, devices);
		for (size_t i = 0; i < k; i++)
			others[i] = to[devices[i]];
		struct group x = group_of(a, devices, k), y = group_of(b, others, k);
		CU_ASSERT_DOUBLE_EQUAL(x.ring_Bps / y.ring_Bps, 1, EPS);
		CU_ASSERT_EQUAL(x.rings, y.rings);
		if (fabs(x.ring_Bps / y.ring_Bps - 1) > EPS)
			fprintf(stderr, "round %d: %.6g with %d rings became %.6g with %d\n", round, x.ring_Bps,
				x.rings, y.ring_Bps, y.rings);
		cluster_destroy(a);
		cluster_destroy(b);
	}
}

static void test_egress(void)
{
	for (int round = 0; round < ROUNDS; round++) {
		struct cluster *c = of_hosts(random_host(true), 1 + below(3));
		int64_t devices[32];
		size_t n = random_set(c->devices, devices);
		struct group g = group_of(c, devices, n);
		CU_ASSERT_TRUE(g.ring_Bps > 0 && isfinite(g.ring_Bps) && g.pair_Bps > 0);
		CU_ASSERT_NOT_EQUAL(g.bottleneck_text[0], '\0');
		for (size_t i = 0; i < n && g.in_node; i++) {
			struct device_place p = cluster_device(c, devices[i]);
			double out = 0;
			for (size_t k = 0; k < p.graph->link.n; k++)
				if (p.graph->link.at[k].a == p.vertex || p.graph->link.at[k].b == p.vertex)
					out += p.graph->link.at[k].Bps;
			check_not_above(g.ring_Bps, out, "a member's links", round);
		}
		/* The order has each member of the first host once. */
		for (int32_t i = 0; i < g.n_order; i++)
			for (int32_t k = 0; k < i; k++)
				CU_ASSERT_NOT_EQUAL(g.order[i], g.order[k]);
		cluster_destroy(c);
	}
}

static void test_routes(void)
{
	for (int round = 0; round < ROUNDS; round++) {
		struct graph *g = random_host(below(2));
		for (size_t i = 0; i < graph_entries(g); i++)
			for (size_t j = 0; j < graph_entries(g); j++) {
				int32_t a = graph_entry(g, i), b = graph_entry(g, j);
				struct route there, back;
				char word[GRAPH_WORD], reverse[GRAPH_WORD];
				CU_ASSERT_EQUAL(graph_route(g, a, b, &there, NULL), ST_OK);
				CU_ASSERT_EQUAL(graph_route(g, b, a, &back, NULL), ST_OK);
				CU_ASSERT_EQUAL(there.Bps, back.Bps);
				CU_ASSERT_EQUAL(there.n, back.n);
				CU_ASSERT_EQUAL(there.through_memory, back.through_memory);
				CU_ASSERT_EQUAL(graph_word(g, a, b, word, NULL), ST_OK);
				CU_ASSERT_EQUAL(graph_word(g, b, a, reverse, NULL), ST_OK);
				CU_ASSERT_STRING_EQUAL(word, reverse);
				int32_t at = a;
				for (int32_t k = 0; k < there.n; k++) {
					const struct link *l = &g->link.at[there.link[k]];
					CU_ASSERT_EQUAL(there.reverse[k] ? l->b : l->a, at);
					CU_ASSERT_TRUE(there.Bps <= l->Bps);
					at = there.reverse[k] ? l->a : l->b;
				}
				CU_ASSERT_EQUAL(at, b);
			}
		graph_destroy(g);
	}
}

UNIT_MAIN("group properties", {"a slower link", test_slower_link}, {"a lost NVLink", test_lost_nvlink},
	{"more groups", test_more_groups}, {"renumbering", test_renumbering}, {"egress", test_egress},
	{"routes", test_routes})
