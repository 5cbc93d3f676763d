/* Link words of two sources. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topology/discover/merge.h"
#include "topology/graph/route.h"

/* 0: below one host bridge, 1: on one CPU, 2: between CPUs; -1: not a word about PCIe. Finer differences do not change
 * what a transfer gets, and sources draw them differently. */
static int word_class(const char *word)
{
	static const int classes[ROUTE_LEVELS] = {[ROUTE_SELF] = -1,
		[ROUTE_NV] = -1,
		[ROUTE_PIX] = 0,
		[ROUTE_PXB] = 0,
		[ROUTE_PHB] = 1,
		[ROUTE_NODE] = 1,
		[ROUTE_SYS] = 2};
	int level = route_level_of_word(word);
	return level < 0 ? -1 : classes[level];
}

/* The word of a pair, "" where it is not told or there is no way. ST_RUN: no memory. */
static enum status word_of(struct router *r, int32_t a, int32_t b, char out[GRAPH_WORD], struct error *e)
{
	struct error none = {0};
	if (router_word(r, a, b, out, &none))
		out[0] = '\0';
	return router_out_of_memory(r) ? error_nomem(e, "link words") : ST_OK;
}

enum status merge_compare_words(struct merge *m)
{
	const struct graph *more = m->more;
	size_t n = graph_entries(more), differ = 0;
	char first[2 * GRAPH_LABEL + 2] = "", ours[GRAPH_WORD] = "", theirs[GRAPH_WORD] = "";
	struct router *of_base = router_create(m->base), *of_more = router_create(more);
	enum status st = of_base && of_more ? ST_OK : error_nomem(m->e, "link words");
	for (size_t i = 0; i < more->gpu.n && !st; i++) {
		for (size_t j = i + 1; j < n && !st; j++) {
			int32_t a = graph_entry(more, i), b = graph_entry(more, j);
			char x[GRAPH_WORD], y[GRAPH_WORD];
			if (m->to[a] < 0 || m->to[b] < 0)
				continue;
			if ((st = word_of(of_base, m->to[a], m->to[b], x, m->e)) ||
				(st = word_of(of_more, a, b, y, m->e)))
				break;
			if (word_class(x) < 0 || word_class(y) < 0 || word_class(x) == word_class(y) || differ++ > 0)
				continue;
			snprintf(first, sizeof first, "%s-%s", m->base->vertex.at[m->to[a]].label,
				m->base->vertex.at[m->to[b]].label);
			memcpy(ours, x, sizeof ours);
			memcpy(theirs, y, sizeof theirs);
		}
	}
	router_destroy(of_base);
	router_destroy(of_more);
	if (st || differ == 0)
		return st;
	return graph_remark(m->base, true, m->e, "%s is %s according to %s, %s according to %s%s", first, ours,
		evidence_name(m->base->source), theirs, evidence_name(more->source),
		differ > 1 ? "; other pairs differ as well" : "");
}

enum status merge_fill_words(struct merge *m)
{
	const struct graph *more = m->more;
	struct graph *base = m->base;
	size_t n = graph_entries(base);
	int32_t *entry = base->words ? malloc((base->vertex.n + 1) * sizeof *entry) : NULL; /* of each vertex of base */
	struct router *r = base->words ? router_create(more) : NULL;
	enum status st = !base->words || (entry && r) ? ST_OK : error_nomem(m->e, "link words");
	for (size_t i = 0; i < n && base->words && !st; i++)
		entry[graph_entry(base, i)] = (int32_t)i;
	for (size_t i = 0; i < graph_entries(more) && base->words && !st; i++) {
		for (size_t j = 0; j < i && !st; j++) {
			int32_t a = m->to[graph_entry(more, i)], b = m->to[graph_entry(more, j)];
			if (a < 0 || b < 0)
				continue;
			char *word = base->words[(size_t)entry[a] * n + (size_t)entry[b]],
			     *back = base->words[(size_t)entry[b] * n + (size_t)entry[a]];
			if (!word[0] && !back[0] &&
				!(st = word_of(r, graph_entry(more, i), graph_entry(more, j), word, m->e)))
				memcpy(back, word, GRAPH_WORD);
		}
	}
	router_destroy(r);
	free(entry);
	return st;
}

enum status merge_renew_words(struct graph *g, struct error *e)
{
	size_t n = graph_entries(g);
	char(*words)[GRAPH_WORD] = g->words;
	g->words = NULL; /* what the graph says now, not the dump */
	struct router *r = words ? router_create(g) : NULL;
	enum status st = !words || r ? ST_OK : error_nomem(e, "link words");
	for (size_t i = 0; i < g->gpu.n && words && !st; i++) {
		for (size_t j = 0; j < g->gpu.n && !st; j++) {
			char now[GRAPH_WORD];
			st = i == j ? ST_OK : word_of(r, g->gpu.at[i], g->gpu.at[j], now, e);
			if (i == j || st)
				continue;
			if (route_level_of_word(now) == ROUTE_NV)
				memcpy(words[i * n + j], now, GRAPH_WORD);
			else if (route_level_of_word(words[i * n + j]) == ROUTE_NV)
				words[i * n + j][0] = '\0';
		}
	}
	router_destroy(r);
	g->words = words;
	return st;
}
