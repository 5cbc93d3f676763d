#include "topology/view/view_layout.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LINE_WIDTH 2200.0
#define PANEL_PAD 12.0
#define PANEL_GAP 60.0
#define LEAF_GAP 8.0
#define ROW 84.0          /* from one row of the tree to the next */
#define BOX 46.0          /* height of CPUs, bridges and switches */
#define PANEL_LEAST 160.0 /* "CPU12, NUMA node 12" */

static bool is_leaf(const struct vertex *v) { return v->kind == VERTEX_GPU || v->kind == VERTEX_NIC; }

static bool in_tree(const struct vertex *v) { return v->kind != VERTEX_NVSWITCH && v->kind != VERTEX_NETWORK; }

/* Breadth first from the CPUs, over PCIe before C2C; devices pass nothing on. */
static enum status find_parents(struct picture *l, struct error *e)
{
	const struct graph *g = l->g;
	size_t n = g->vertex.n, head = 0, tail = 0;
	int32_t *queue = malloc((n + 1) * sizeof *queue);
	bool *reached = calloc(n + 1, sizeof *reached);
	if (!queue || !reached) {
		free(queue);
		free(reached);
		return error_nomem(e, "a picture's layout");
	}
	for (size_t i = 0; i < n; i++) {
		l->spot[i] = (struct spot){.parent = -1, .parent_link = -1, .panel = -1};
		if (g->vertex.at[i].kind == VERTEX_CPU) {
			reached[i] = true;
			queue[tail++] = (int32_t)i;
		}
	}
	for (int pass = 0; pass < 2; pass++, head = 0) {
		while (head < tail) {
			int32_t from = queue[head++];
			for (size_t i = 0; i < g->link.n; i++) {
				const struct link *k = &g->link.at[i];
				int32_t to = k->a == from ? k->b : k->b == from ? k->a : -1;
				bool wanted = pass == 0 ? k->kind == LINK_PCIE || k->kind == LINK_LOCAL
				                        : k->kind == LINK_C2C;
				if (to < 0 || !wanted || reached[to] || is_leaf(&g->vertex.at[from]) ||
					!in_tree(&g->vertex.at[to]))
					continue;
				reached[to] = true;
				l->spot[to].parent = from;
				l->spot[to].parent_link = (int32_t)i;
				l->spot[to].depth = l->spot[from].depth + 1;
				queue[tail++] = to;
			}
		}
	}
	free(queue);
	free(reached);
	return ST_OK;
}

/* The lowest GPU below a vertex, else the lowest NIC: what orders brothers. */
static void find_keys(const struct picture *l, int32_t *key)
{
	const struct graph *g = l->g;
	for (size_t i = 0; i < g->vertex.n; i++)
		key[i] = INT32_MAX;
	for (size_t i = 0; i < graph_entries(g); i++)
		for (int32_t at = graph_entry(g, i); at >= 0; at = l->spot[at].parent)
			if (key[at] > (int32_t)i)
				key[at] = (int32_t)i;
}

/* The child of `parent` that comes next after (key, index); -1: none. Parent -1: the roots. */
static int32_t next_child(const struct picture *l, const int32_t *key, int32_t parent, int32_t after)
{
	int32_t best = -1;
	for (int32_t i = 0; i < (int32_t)l->g->vertex.n; i++) {
		if (l->spot[i].parent != parent || !in_tree(&l->g->vertex.at[i]))
			continue;
		if (after >= 0 && (key[i] < key[after] || (key[i] == key[after] && i <= after)))
			continue;
		if (best < 0 || key[i] < key[best])
			best = i;
	}
	return best;
}

static double leaf_width(const struct picture *l, const struct vertex *v)
{
	if (l->compact)
		return v->kind == VERTEX_GPU ? 34 : 28;
	return v->kind == VERTEX_NIC ? 96 : 124; /* "net ~12.5 GB/s", "PCIe 5 x16: 48 GB/s" */
}

/* Columns from `x` on for the leaves below `at`, and for itself the middle above them; the next free x. */
static double place_columns(struct picture *l, const int32_t *key, int32_t at, double x, int32_t panel)
{
	struct spot *s = &l->spot[at];
	const struct vertex *v = &l->g->vertex.at[at];
	double end = x;
	s->panel = panel;
	for (int32_t child = -1; (child = next_child(l, key, at, child)) >= 0;)
		end = place_columns(l, key, child, end, panel);
	if (end <= x)
		end = x + leaf_width(l, v) + LEAF_GAP;
	s->x = x;
	s->w = end - x - LEAF_GAP;
	if (!is_leaf(v) && v->kind != VERTEX_CPU && s->w > 260) {
		s->x += (s->w - 260) / 2;
		s->w = 260;
	}
	return end;
}

/* Panels beside each other from x = 0 on; their width together. */
static enum status make_panels(struct picture *l, const int32_t *key, struct error *e)
{
	l->panel.n = 0;
	for (int32_t root = -1; (root = next_child(l, key, -1, root)) >= 0;) {
		struct panel p = {.root = root};
		double end = place_columns(l, key, root, PANEL_PAD, (int32_t)l->panel.n);
		p.w = end - LEAF_GAP + PANEL_PAD;
		if (p.w < PANEL_LEAST && l->g->vertex.at[root].kind == VERTEX_CPU) {
			double shift = (PANEL_LEAST - p.w) / 2;
			for (size_t i = 0; i < l->g->vertex.n; i++)
				if (l->spot[i].panel == (int32_t)l->panel.n)
					l->spot[i].x += shift;
			p.w = PANEL_LEAST;
		}
		if (!vec_push(&l->panel, p))
			return error_nomem(e, "a picture's layout");
	}
	return ST_OK;
}

static double widest(const struct picture *l, double *all)
{
	double most = 0;
	*all = 0;
	for (size_t i = 0; i < l->panel.n; i++) {
		most = l->panel.at[i].w > most ? l->panel.at[i].w : most;
		*all += l->panel.at[i].w + PANEL_GAP;
	}
	return most;
}

static enum status break_lines(struct picture *l, struct error *e)
{
	double x = LAYOUT_MARGIN;
	for (size_t i = 0; i < l->panel.n; i++) {
		struct panel *p = &l->panel.at[i];
		bool fresh = i == 0 || x + p->w > LINE_WIDTH + LAYOUT_MARGIN;
		if (fresh)
			x = LAYOUT_MARGIN;
		if (fresh && !vec_push(&l->line, ((struct line_of_panels){.x0 = x})))
			return error_nomem(e, "a picture's layout");
		p->line = (int32_t)l->line.n - 1;
		p->x = x;
		x += p->w;
		l->line.at[l->line.n - 1].x1 = x;
		l->width = x + LAYOUT_MARGIN > l->width ? x + LAYOUT_MARGIN : l->width;
		x += PANEL_GAP;
	}
	return ST_OK;
}

static double panel_of(const struct picture *l, size_t vertex) { return l->panel.at[l->spot[vertex].panel].x; }

double picture_arc_depth(double from, double to) { return fmin(22 + 0.12 * fabs(to - from), 130); }

/* Of the NVLinks between GPUs that begin in this line. */
static double deepest_arc(const struct picture *l, size_t line)
{
	double deepest = 0;
	for (size_t i = 0; i < l->g->link.n; i++) {
		const struct link *k = &l->g->link.at[i];
		const struct spot *a = &l->spot[k->a], *b = &l->spot[k->b];
		bool gpus = l->g->vertex.at[k->a].kind == VERTEX_GPU && l->g->vertex.at[k->b].kind == VERTEX_GPU;
		if (gpus && a->panel >= 0 && b->panel >= 0 &&
			(l->panel.at[a->panel].line == (int32_t)line || l->panel.at[b->panel].line == (int32_t)line))
			deepest = fmax(deepest, 10 + picture_arc_depth(a->x + a->w, b->x));
	}
	return deepest;
}

/* Heights of the rows and zones of one line, from `y` on. */
static void place_rows(struct picture *l, size_t line, double y)
{
	const struct graph *g = l->g;
	struct line_of_panels *row = &l->line.at[line];
	int32_t deepest = 0;
	for (size_t i = 0; i < g->vertex.n; i++) {
		const struct spot *s = &l->spot[i];
		if (s->panel >= 0 && l->panel.at[s->panel].line == (int32_t)line && !is_leaf(&g->vertex.at[i]) &&
			s->depth > deepest)
			deepest = s->depth;
	}
	row->top = y;
	row->leaves = y + ROW * (deepest + 1);
	double leaf_h = l->compact ? 92 : 104;
	for (size_t i = 0; i < g->vertex.n; i++) {
		struct spot *s = &l->spot[i];
		if (s->panel < 0 || l->panel.at[s->panel].line != (int32_t)line)
			continue;
		bool leaf = is_leaf(&g->vertex.at[i]);
		s->x += panel_of(l, i);
		s->y = leaf ? row->leaves : y + ROW * s->depth;
		s->h = leaf ? leaf_h : BOX;
		row->has_network |= g->vertex.at[i].kind == VERTEX_NIC;
		if (g->vertex.at[i].kind == VERTEX_CPU) {
			s->x = panel_of(l, i);
			s->w = l->panel.at[s->panel].w;
		}
	}
	row->nvlink = row->leaves + leaf_h;
	row->barred = l->switched || l->bundled;
	row->arcs = l->bundled ? 40 + LAYOUT_BAR : deepest_arc(l, line);
	row->network = row->nvlink + row->arcs + (l->switched ? 40 + LAYOUT_BAR : 0) + (row->barred ? 20 : 36);
	row->end = row->has_network ? row->network + LAYOUT_BAR : row->network - (row->barred ? 20 : 30);
}

static void look_at_links(struct picture *l)
{
	for (size_t i = 0; i < l->g->link.n; i++) {
		const struct link *k = &l->g->link.at[i];
		if (k->kind != LINK_NVLINK && k->kind != LINK_XGMI)
			continue;
		bool to_switch = l->g->vertex.at[k->a].kind == VERTEX_NVSWITCH ||
		                 l->g->vertex.at[k->b].kind == VERTEX_NVSWITCH;
		l->switched |= to_switch;
		l->direct += !to_switch;
	}
}

enum status picture_make(const struct graph *g, struct picture *out, struct error *e)
{
	*out = (struct picture){.g = g, .width = 480};
	out->spot = calloc(g->vertex.n + 1, sizeof *out->spot);
	int32_t *key = malloc((g->vertex.n + 1) * sizeof *key);
	enum status st = out->spot && key ? ST_OK : error_nomem(e, "a picture's layout");
	if (st || (st = find_parents(out, e)))
		goto out;
	look_at_links(out);
	out->bundled = out->direct > LAYOUT_ARCS;
	find_keys(out, key);
	if ((st = make_panels(out, key, e)))
		goto out;
	double all;
	if (widest(out, &all) > LINE_WIDTH || all > 2 * LINE_WIDTH) {
		out->compact = true;
		if ((st = make_panels(out, key, e)))
			goto out;
	}
	if ((st = break_lines(out, e)))
		goto out;
	double y = 76; /* below the title and the arcs between sockets */
	for (size_t i = 0; i < out->line.n; i++) {
		place_rows(out, i, y);
		y = out->line.at[i].end + 64;
	}
	for (size_t i = 0; i < VERTEX_KINDS; i++)
		out->narrowest[i] = INFINITY;
	for (size_t i = 0; i < g->vertex.n; i++)
		if (out->spot[i].panel >= 0)
			out->narrowest[g->vertex.at[i].kind] = fmin(out->narrowest[g->vertex.at[i].kind],
				out->spot[i].w);
	out->height = out->line.n ? out->line.at[out->line.n - 1].end : y;
out:
	free(key);
	if (st)
		picture_free(out);
	return st;
}

void picture_free(struct picture *l)
{
	free(l->spot);
	vec_free(&l->panel);
	vec_free(&l->line);
	l->spot = NULL;
}
