/* The link graph that explains a matrix of link words.
 *
 * Nearness is taken for transitive: entries joined by a chain of words of at most a level belong together on that level
 * (PIX a PCIe switch, PXB switches under a common one, PHB a host bridge, NODE a CPU). Where a word says that two of
 * such a class are farther apart, or a NUMA number says otherwise, the graph keeps the class and a remark names the
 * pair. An NVLink word hides the PCIe way: such GPUs are placed by their words with others, then by NUMA node, then by
 * their cores. */
#include "topology/discover/smi_topo.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topology/graph/rates.h"
#include "topology/graph/route.h"

/* The levels of words about PCIe, from 1 on. */
enum level {
	LEVEL_SWITCH = ROUTE_PIX - ROUTE_NV,
	LEVEL_SWITCHES = ROUTE_PXB - ROUTE_NV,
	LEVEL_BRIDGE = ROUTE_PHB - ROUTE_NV,
	LEVEL_CPU = ROUTE_NODE - ROUTE_NV,
	LEVEL_FAR = ROUTE_SYS - ROUTE_NV,
	LEVELS
};
static const char *const level_names[LEVELS] = {"", "a PCIe switch", "PCIe switches", "a host bridge", "a CPU", ""};

struct build {
	const struct smi_matrix *m;
	struct graph *g;
	struct error *e;
	int32_t of[LEVELS][SMI_ENTRIES]; /* class of each entry on each level: its first member */
	int32_t vertex[SMI_ENTRIES];     /* of each entry */
	int32_t parent[SMI_ENTRIES];     /* the switch, bridge or CPU vertex that holds it, -1: not yet */
};

static enum level level_of(const char *word)
{
	int level = route_level_of_word(word);
	return level > ROUTE_NV ? (enum level)(level - ROUTE_NV) : 0; /* 0: not told: NVLink, or not in the dump */
}

static int32_t links_of(const char *word)
{
	return strncmp(word, "NV", 2) == 0 ? (int32_t)strtol(word + 2, NULL, 10) : 0;
}

static void join(int32_t *of, size_t n, int32_t a, int32_t b)
{
	int32_t low = a < b ? a : b, high = a < b ? b : a;
	for (size_t i = 0; i < n; i++)
		if (of[i] == high)
			of[i] = low;
}

/* Whether two classes of CPUs can be one: no word says that they are far apart. */
static bool not_apart(const struct build *b, int32_t x, int32_t y)
{
	const int32_t *of = b->of[LEVEL_CPU];
	for (size_t i = 0; i < b->m->n; i++)
		for (size_t k = 0; k < b->m->n; k++)
			if (of[i] == x && of[k] == y && level_of(b->m->word[i][k]) == LEVEL_FAR)
				return false;
	return true;
}

/* The first entry of a class whose NUMA node (or cores) is known, else -1. */
static int32_t who_knows(const struct build *b, int32_t class, bool cores)
{
	for (size_t i = 0; i < b->m->n; i++)
		if (b->of[LEVEL_CPU][i] == class &&
			(cores ? b->m->entry[i].cores[0] != '\0' : b->m->entry[i].numa >= 0))
			return (int32_t)i;
	return -1;
}

static bool same_place(const struct build *b, int32_t x, int32_t y)
{
	int32_t i = who_knows(b, x, false), k = who_knows(b, y, false);
	if (i >= 0 && k >= 0)
		return b->m->entry[i].numa == b->m->entry[k].numa;
	i = who_knows(b, x, true);
	k = who_knows(b, y, true);
	return i < 0 || k < 0 || strcmp(b->m->entry[i].cores, b->m->entry[k].cores) == 0;
}

static void classes(struct build *b)
{
	size_t n = b->m->n;
	for (int l = LEVEL_SWITCH; l <= LEVEL_CPU; l++) {
		for (size_t i = 0; i < n; i++)
			b->of[l][i] = l > LEVEL_SWITCH ? b->of[l - 1][i] : (int32_t)i;
		for (size_t i = 0; i < n; i++)
			for (size_t k = 0; k < i; k++) {
				enum level at = level_of(b->m->word[i][k]);
				if (at && (int)at <= l)
					join(b->of[l], n, b->of[l][i], b->of[l][k]);
			}
	}
	int32_t *of = b->of[LEVEL_CPU];
	for (int32_t i = 0; i < (int32_t)n; i++)
		for (int32_t k = 0; k < i && of[i] == i; k++)
			if (of[k] == k && same_place(b, k, i) && not_apart(b, k, i))
				join(of, n, k, i);
}

/* One remark for each sort of disagreement: how many pairs, and the first. */
static enum status contradictions(struct build *b)
{
	const struct smi_matrix *m = b->m;
	size_t chains = 0, across = 0, apart = 0, first[3][2] = {{0}};
	for (size_t i = 0; i < m->n; i++)
		for (size_t k = i + 1; k < m->n; k++) {
			enum level at = level_of(m->word[i][k]);
			int32_t x = m->entry[i].numa, y = m->entry[k].numa;
			bool near = at > LEVEL_SWITCH && b->of[at - 1][i] == b->of[at - 1][k];
			size_t *count[3] = {&chains, &across, &apart};
			bool odd[3] = {near, at && at < LEVEL_FAR && x >= 0 && y >= 0 && x != y,
				at == LEVEL_FAR && x >= 0 && x == y};
			for (size_t s = 0; s < 3; s++) {
				if (odd[s] && (*count[s])++ == 0) {
					first[s][0] = i;
					first[s][1] = k;
				}
			}
		}
	enum status st = ST_OK;
	if (chains) {
		size_t i = first[0][0], k = first[0][1];
		int l = LEVEL_SWITCH;
		while (b->of[l][i] != b->of[l][k])
			l++;
		st = graph_remark(b->g, true, b->e,
			"link words: %.40s and %.40s are %s apart, but their words to others put them under %s "
			"together (%zu such pairs)",
			m->entry[i].key, m->entry[k].key, m->word[i][k], level_names[l], chains);
	}
	if (across && !st)
		st = graph_remark(b->g, true, b->e,
			"link words: %.40s and %.40s are %s apart, but on NUMA nodes %d and %d (%zu such pairs)",
			m->entry[first[1][0]].key, m->entry[first[1][1]].key, m->word[first[1][0]][first[1][1]],
			m->entry[first[1][0]].numa, m->entry[first[1][1]].numa, across);
	if (apart && !st)
		st = graph_remark(b->g, true, b->e,
			"link words: %.40s and %.40s are %s apart, but both on NUMA node %d (%zu such pairs): %s does "
			"not mean another socket here",
			m->entry[first[2][0]].key, m->entry[first[2][1]].key, m->word[first[2][0]][first[2][1]],
			m->entry[first[2][0]].numa, apart, m->word[first[2][0]][first[2][1]]);
	return st;
}

static enum status link_up(struct build *b, int32_t from, int32_t to, enum link_kind kind, struct rate rate,
	int32_t width, bool assumed)
{
	struct link l = graph_link_at((struct link){.a = from,
					      .b = to,
					      .kind = kind,
					      .width = width,
					      .from = SAID_BY_SMI_TOPO,
					      .assumed = assumed},
		rate);
	return graph_add_link(b->g, &l) < 0 ? error_nomem(b->e, "the link graph") : ST_OK;
}

/* A vertex under `parent` (-1: none), NULL-named. */
static int32_t add(struct build *b, enum vertex_kind kind, int32_t parent, enum link_kind link)
{
	struct vertex v = graph_vertex_init(kind, SAID_BY_SMI_TOPO);
	int32_t at = graph_add_vertex(b->g, &v);
	if (at < 0 || (parent >= 0 && link_up(b, at, parent, link, link == LINK_LOCAL ? rate_local() : rate_pcie(0, 0),
					      0, true))) {
		error_nomem(b->e, "the link graph");
		return -1;
	}
	return at;
}

static enum status devices(struct build *b)
{
	for (size_t i = 0; i < b->m->n; i++) {
		const struct smi_entry *en = &b->m->entry[i];
		struct vertex v = graph_vertex_init(en->nic ? VERTEX_NIC : VERTEX_GPU, SAID_BY_SMI_TOPO);
		snprintf(v.label, sizeof v.label, "%s%d", en->nic ? "NIC" : "GPU", en->number);
		memcpy(v.name, en->name, sizeof v.name);
		memcpy(v.cores, en->cores, sizeof v.cores);
		v.numa = en->numa;
		b->vertex[i] = graph_add_vertex(b->g, &v);
		if (b->vertex[i] < 0)
			return error_nomem(b->e, "the link graph");
	}
	return ST_OK;
}

/* How many classes of `level` are in entry i's class of the level above it. */
static size_t parts(const struct build *b, int level, size_t i)
{
	size_t n = 0;
	for (size_t k = 0; k < b->m->n; k++)
		n += b->of[level + 1][k] == b->of[level + 1][i] && b->of[level][k] == (int32_t)k;
	return n;
}

static size_t members(const struct build *b, int level, size_t i)
{
	size_t n = 0;
	for (size_t k = 0; k < b->m->n; k++)
		n += b->of[level][k] == b->of[level][i];
	return n;
}

static enum status cpus(struct build *b)
{
	VEC(int32_t) cpu = {0};
	enum status st = ST_OK;
	for (size_t i = 0; i < b->m->n && !st; i++) {
		int32_t first = b->of[LEVEL_CPU][i];
		if (first != (int32_t)i) {
			b->parent[i] = b->parent[first];
			continue;
		}
		int32_t numa = who_knows(b, first, false), cores = who_knows(b, first, true);
		int32_t at = b->parent[i] = add(b, VERTEX_CPU, -1, LINK_LOCAL);
		if (at < 0 || !vec_push(&cpu, at)) {
			st = error_nomem(b->e, "the link graph");
			break;
		}
		b->g->vertex.at[at].numa = numa < 0 ? -1 : b->m->entry[numa].numa;
		if (cores >= 0)
			memcpy(b->g->vertex.at[at].cores, b->m->entry[cores].cores, GRAPH_CORES);
		for (size_t k = 0; k + 1 < cpu.n && !st; k++)
			st = link_up(b, cpu.at[k], at, LINK_SOCKET, rate_socket("", 0), 0, true);
	}
	vec_free(&cpu);
	return st;
}

/* One vertex for each class of `level` that needs one; it takes the place of the parent of its members. */
static enum status level_vertices(struct build *b, int level, enum vertex_kind kind, enum link_kind link)
{
	int32_t made[SMI_ENTRIES];
	for (size_t i = 0; i < b->m->n; i++) {
		int32_t first = b->of[level][i];
		bool needed = level == LEVEL_BRIDGE ||
		              (level == LEVEL_SWITCHES ? parts(b, LEVEL_SWITCH, i) > 1
						       : members(b, level, i) > 1 || parts(b, level, i) > 1);
		if (!needed)
			continue;
		if (first == (int32_t)i) {
			made[i] = add(b, kind, b->parent[i], link);
			if (made[i] < 0)
				return ST_RUN;
		}
		b->parent[i] = made[first];
	}
	return ST_OK;
}

static enum status attach(struct build *b)
{
	enum status st = ST_OK;
	for (size_t i = 0; i < b->m->n && !st; i++)
		st = link_up(b, b->vertex[i], b->parent[i], LINK_PCIE, rate_pcie(0, 0), 0, true);
	if (st || !b->g->nic.n)
		return st;
	int32_t net = add(b, VERTEX_NETWORK, -1, LINK_NETWORK);
	if (net < 0)
		return ST_RUN;
	for (size_t i = 0; i < b->g->nic.n && !st; i++)
		st = link_up(b, b->g->nic.at[i], net, LINK_NETWORK, rate_network(0), 0, true);
	return st;
}

/* ---- NVLink ---- */

struct island {
	size_t n, not_joined; /* pairs whose word is another link */
	bool alike, fits;     /* one word for all; words as GPUs of these widths have them to a switch */
	int32_t widest, most; /* the largest word; the links of the GPU that has most, to all its peers together */
	int32_t width[SMI_ENTRIES]; /* of each GPU: its largest word */
};

/* Behind a switch two GPUs talk over as many links as the narrower of them has, so that a GPU with links down shows in
 * its whole row, and in nobody else's. */
static void island_of(const struct smi_matrix *m, const int32_t *of, int32_t first, struct island *is)
{
	*is = (struct island){.alike = true, .fits = true};
	for (size_t i = 0; i < m->n_gpus; i++) {
		int32_t sum = 0;
		if (of[i] != first)
			continue;
		is->n++;
		for (size_t k = 0; k < m->n_gpus; k++) {
			int32_t links = of[k] == first && k != i ? links_of(m->word[i][k]) : 0;
			is->not_joined += of[k] == first && k > i && !links && m->word[i][k][0];
			is->width[i] = links > is->width[i] ? links : is->width[i];
			sum += links;
		}
		is->most = sum > is->most ? sum : is->most;
		is->widest = is->width[i] > is->widest ? is->width[i] : is->widest;
	}
	for (size_t i = 0; i < m->n_gpus; i++)
		for (size_t k = 0; k < i; k++) {
			int32_t links = of[i] == first && of[k] == first ? links_of(m->word[i][k]) : 0;
			is->alike &= !links || links == is->widest;
			is->fits &= !links || links == (is->width[i] < is->width[k] ? is->width[i] : is->width[k]);
		}
}

/* No GPU has more links than B200's 18, and no board joins three GPUs by eight links or more each: such words count the
 * links of a GPU to a switch. */
static bool is_switch(const struct island *is)
{
	return is->n > 2 && (is->most > nvlinks_most(0) || (is->alike && is->widest >= 8));
}

/* `links` of NVLink at a first rate: graph_finish knows which GPUs they are. */
static enum status nvlink_up(struct build *b, int32_t from, int32_t to, int32_t links)
{
	struct rate r = rate_nvlink(0);
	r.Bps *= links;
	r.datasheet_Bps *= links;
	return link_up(b, from, to, LINK_NVLINK, r, links, true);
}

static enum status switch_links(struct build *b, const int32_t *of, int32_t first, const struct island *is)
{
	const struct smi_matrix *m = b->m;
	int32_t hub = add(b, VERTEX_NVSWITCH, -1, LINK_NVLINK);
	enum status st = hub < 0 ? ST_RUN : ST_OK;
	for (size_t i = 0; i < m->n_gpus && !st; i++) {
		if (of[i] != first)
			continue;
		b->g->vertex.at[b->vertex[i]].gpu.nvlinks = is->width[i];
		st = nvlink_up(b, b->vertex[i], hub, is->width[i]);
	}
	if (!st && is->not_joined)
		st = graph_remark(b->g, true, b->e,
			"link words: NV%d from %s on is more than GPUs have to each peer, so an NVLink switch, yet %zu "
			"pairs of its GPUs are not joined by NVLink",
			is->widest, m->entry[first].key, is->not_joined);
	if (!st && !is->fits)
		st = graph_remark(b->g, true, b->e,
			"link words: %d links of one GPU to its peers are more than any GPU has, so an NVLink switch "
			"at %s, yet no one number of links for each GPU explains the words: the largest of each is "
			"taken",
			is->most, m->entry[first].key);
	return st;
}

static enum status direct_links(struct build *b, const int32_t *of, int32_t first)
{
	const struct smi_matrix *m = b->m;
	enum status st = ST_OK;
	for (size_t i = 0; i < m->n_gpus && !st; i++) {
		bool whole = true;
		int32_t sum = 0;
		if (of[i] != first)
			continue;
		for (size_t k = 0; k < m->n_gpus && !st; k++) {
			int32_t links = links_of(m->word[i][k]);
			whole &= m->word[i][k][0] != '\0';
			sum += links;
			if (links && k > i)
				st = nvlink_up(b, b->vertex[i], b->vertex[k], links);
		}
		b->g->vertex.at[b->vertex[i]].gpu.nvlinks = whole ? sum : 0;
	}
	return st;
}

static enum status island_links(struct build *b, const int32_t *of, int32_t first)
{
	struct island is;
	island_of(b->m, of, first, &is);
	return is_switch(&is) ? switch_links(b, of, first, &is) : direct_links(b, of, first);
}

static enum status nvlinks(struct build *b)
{
	const struct smi_matrix *m = b->m;
	int32_t of[SMI_ENTRIES];
	enum status st = ST_OK;
	for (size_t i = 0; i < m->n_gpus; i++)
		of[i] = (int32_t)i;
	for (size_t i = 0; i < m->n_gpus; i++)
		for (size_t k = 0; k < i; k++)
			if (links_of(m->word[i][k]))
				join(of, m->n_gpus, of[i], of[k]);
	for (size_t i = 0; i < m->n_gpus && !st; i++) {
		size_t size = 0;
		for (size_t k = 0; k < m->n_gpus; k++)
			size += of[k] == (int32_t)i;
		if (size > 1)
			st = island_links(b, of, (int32_t)i);
	}
	return st;
}

static enum status keep_words(struct build *b)
{
	size_t n = b->m->n;
	b->g->words = calloc(n * n + 1, sizeof *b->g->words);
	if (!b->g->words)
		return error_nomem(b->e, "the link words");
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < n; k++)
			memcpy(b->g->words[i * n + k], b->m->word[i][k], GRAPH_WORD);
	for (size_t i = 0; i < b->m->n_notes; i++) {
		enum status st = graph_remark(b->g, b->m->note[i].contradiction, b->e, "%s", b->m->note[i].text);
		if (st)
			return st;
	}
	return ST_OK;
}

enum status smi_graph(const struct smi_matrix *m, struct graph **out, struct error *e)
{
	enum status st = ST_OK;
	struct build *b = calloc(1, sizeof *b);
	*out = NULL;
	if (!b)
		return error_nomem(e, "the link graph");
	b->m = m;
	b->e = e;
	b->g = graph_create(SAID_BY_SMI_TOPO);
	if (!b->g) {
		st = error_nomem(e, "the link graph");
		goto out;
	}
	classes(b);
	if ((st = devices(b)) || (st = cpus(b)))
		goto out;
	if ((st = level_vertices(b, LEVEL_BRIDGE, VERTEX_BRIDGE, LINK_LOCAL)) ||
		(st = level_vertices(b, LEVEL_SWITCHES, VERTEX_PCI_SWITCH, LINK_PCIE)) ||
		(st = level_vertices(b, LEVEL_SWITCH, VERTEX_PCI_SWITCH, LINK_PCIE)))
		goto out;
	if ((st = attach(b)) || (st = nvlinks(b)) || (st = keep_words(b)) || (st = contradictions(b)))
		goto out;
	*out = b->g;
	b->g = NULL;
out:
	graph_destroy(b->g);
	free(b);
	return st;
}
