/* NVLinks of two sources: which one is believed, and what follows for the graph. */
#include <stdlib.h>
#include <string.h>

#include "topology/discover/join.h"
#include "topology/discover/merge.h"
#include "topology/graph/route.h"

/* Links of each of base's GPUs, as one of the two graphs has them: column j < n to GPU j, column n to a switch, column
 * n + 1 to a CPU. `to` is NULL for base itself. */
static int32_t *count_nvlinks(const struct graph *base, const struct graph *g, const int32_t *to, bool *any)
{
	size_t n = base->gpu.n, columns = n + 2;
	int32_t *count = calloc(n * columns + 1, sizeof *count),
		*number = malloc((base->vertex.n + 1) * sizeof *number);
	*any = false;
	if (!count || !number) {
		free(count);
		free(number);
		return NULL;
	}
	for (size_t i = 0; i < base->vertex.n; i++)
		number[i] = -1;
	for (size_t i = 0; i < n; i++)
		number[base->gpu.at[i]] = (int32_t)i;
	for (size_t k = 0; k < g->link.n; k++) {
		const struct link *l = &g->link.at[k];
		if (!link_is_nv(l))
			continue;
		for (int side = 0; side < 2; side++) {
			int32_t v = side ? l->b : l->a, w = side ? l->a : l->b, bv = to ? to[v] : v,
				bw = to ? to[w] : w;
			if (g->vertex.at[v].kind != VERTEX_GPU || bv < 0)
				continue;
			enum vertex_kind other = g->vertex.at[w].kind;
			size_t column = other == VERTEX_NVSWITCH     ? n
			                : other == VERTEX_CPU        ? n + 1
			                : bw >= 0 && number[bw] >= 0 ? (size_t)number[bw]
			                                             : columns;
			if (column < columns)
				count[(size_t)number[bv] * columns + column] += l->width > 0 ? l->width : 1;
			*any = true;
		}
	}
	free(number);
	return count;
}

/* Who says how NVLinks are wired; no link at all is a statement of the graph's source. */
static enum evidence nvlinks_said_by(const struct graph *g)
{
	for (size_t i = 0; i < g->link.n; i++)
		if (link_is_nv(&g->link.at[i]))
			return merge_said_by(g, g->link.at[i].from);
	return g->source;
}

/* hwloc and NCCL's file leave NVLinks out where they could not see them; the driver's own matrix and NVML do not. */
static bool silence_counts(enum evidence from) { return from == SAID_BY_SMI_TOPO || from == SAID_BY_NVML; }

static enum status adopt_nvlinks(struct merge *m)
{
	struct graph *base = m->base;
	bool *keep = malloc(base->vertex.n + 1);
	int32_t *moved = malloc((base->vertex.n + 1) * sizeof *moved);
	enum status st = keep && moved ? ST_OK : error_nomem(m->e, "NVLinks");
	for (size_t i = 0; i < base->vertex.n && !st; i++)
		keep[i] = base->vertex.at[i].kind != VERTEX_NVSWITCH;
	if (!st)
		st = join_keep(base, keep, moved, m->e);
	if (st)
		goto out;
	for (size_t i = 0; i < m->more->vertex.n; i++)
		m->to[i] = m->to[i] >= 0 ? moved[m->to[i]] : -1;
	size_t n = 0;
	for (size_t i = 0; i < base->link.n; i++)
		if (!link_is_nv(&base->link.at[i]))
			base->link.at[n++] = base->link.at[i];
	base->link.n = n;
	for (size_t i = 0; i < m->more->gpu.n; i++) {
		int32_t at = m->to[m->more->gpu.at[i]];
		if (at >= 0) {
			base->vertex.at[at].gpu.nvlinks = m->more->vertex.at[m->more->gpu.at[i]].gpu.nvlinks;
			base->vertex.at[at].gpu.nvlink_gen = m->more->vertex.at[m->more->gpu.at[i]].gpu.nvlink_gen;
		}
	}
	for (size_t i = 0; i < m->more->link.n && !st; i++) {
		const struct link *l = &m->more->link.at[i];
		for (int side = 0; side < 2 && link_is_nv(l) && !st; side++) {
			int32_t v = side ? l->b : l->a;
			if (m->to[v] < 0 && m->more->vertex.at[v].kind == VERTEX_NVSWITCH)
				st = merge_copy_vertex(m, v);
		}
		if (!st && link_is_nv(l) && m->to[l->a] >= 0 && m->to[l->b] >= 0)
			st = merge_copy_link(m, l);
	}
	if (!st)
		st = merge_renew_words(base, m->e);
out:
	free(keep);
	free(moved);
	return st;
}

static enum status remark_nvlinks(struct merge *m, const int32_t *ours, const int32_t *theirs, enum evidence winner)
{
	size_t n = m->base->gpu.n, columns = n + 2, differ = 0, first = 0;
	int32_t a = 0, b = 0;
	for (size_t i = 0; i < n; i++) {
		int32_t x = 0, y = 0;
		for (size_t j = 0; j < columns; j++) {
			x += ours[i * columns + j];
			y += theirs[i * columns + j];
		}
		if (x != y && differ++ == 0) {
			first = i;
			a = x;
			b = y;
		}
	}
	const char *one = evidence_name(nvlinks_said_by(m->base)), *two = evidence_name(nvlinks_said_by(m->more)),
		   *believed = evidence_name(winner);
	if (differ == 0)
		return graph_remark(m->base, true, m->e,
			"NVLinks join other GPUs according to %s than according to %s: %s is believed", one, two,
			believed);
	return graph_remark(m->base, true, m->e,
		"GPU%zu has %d NVLinks according to %s, %d according to %s%s: %s is believed", first, a, one, b, two,
		differ > 1 ? ", and other GPUs differ as well" : "", believed);
}

enum status merge_nvlinks(struct merge *m)
{
	bool ours_any, theirs_any;
	int32_t *ours = count_nvlinks(m->base, m->base, NULL, &ours_any),
		*theirs = count_nvlinks(m->base, m->more, m->to, &theirs_any);
	enum evidence one = nvlinks_said_by(m->base), two = nvlinks_said_by(m->more);
	enum status st = ours && theirs ? ST_OK : error_nomem(m->e, "NVLinks");
	size_t size = m->base->gpu.n * (m->base->gpu.n + 2) * sizeof *ours;
	if (st || (!theirs_any && (!ours_any || !silence_counts(two))))
		goto out;
	bool same = memcmp(ours, theirs, size) == 0, silent = !ours_any && !silence_counts(one),
	     wins = silent || join_rank(two) > join_rank(one);
	if (!same && !silent)
		st = remark_nvlinks(m, ours, theirs, wins ? two : one);
	if (!st && wins && !same)
		st = adopt_nvlinks(m);
	for (size_t i = 0; same && wins && !silent && i < m->base->link.n; i++)
		if (link_is_nv(&m->base->link.at[i]))
			m->base->link.at[i].from = two;
out:
	free(ours);
	free(theirs);
	return st;
}
