/* A link graph as JSON and back, and whether two are equal: one table of members serves all three. A member that is not
 * known (0, "", false, -1 where the table says so) is left out. */
#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "topology/graph/graph.h"

enum member_type {
	MEMBER_TEXT,
	MEMBER_INT32,
	MEMBER_UINT64,
	MEMBER_DOUBLE,
	MEMBER_BOOL,
	MEMBER_VERTEX_KIND,
	MEMBER_LINK_KIND,
	MEMBER_EVIDENCE
};

struct member {
	const char *key;
	enum member_type type;
	size_t at, size;
	int32_t unknown;
};

#define TEXT(t, f) \
	{ \
#f, MEMBER_TEXT, offsetof(t, f), sizeof((t *)0)->f, 0 \
	}
#define PLAIN(type, t, f) \
	{ \
#f, type, offsetof(t, f), 0, 0 \
	}
#define INT32(t, f) PLAIN(MEMBER_INT32, t, f)
#define OPTIONAL_INT32(t, f) \
	{ \
#f, MEMBER_INT32, offsetof(t, f), 0, -1 \
	}
#define DOUBLE(t, f) PLAIN(MEMBER_DOUBLE, t, f)

static const struct member of_graph[] = {
	TEXT(struct graph, host),
	TEXT(struct graph, model),
	PLAIN(MEMBER_BOOL, struct graph, torus),
	PLAIN(MEMBER_EVIDENCE, struct graph, source),
};

static const struct member of_vertex[] = {
	PLAIN(MEMBER_VERTEX_KIND, struct vertex, kind),
	TEXT(struct vertex, label),
	TEXT(struct vertex, name),
	TEXT(struct vertex, pci),
	OPTIONAL_INT32(struct vertex, numa),
	TEXT(struct vertex, cores),
	PLAIN(MEMBER_EVIDENCE, struct vertex, from),
};

static const struct member of_gpu[] = {
	TEXT(struct gpu_facts, device),
	PLAIN(MEMBER_UINT64, struct gpu_facts, mem_B),
	INT32(struct gpu_facts, compute_capability),
	INT32(struct gpu_facts, pcie_gen),
	INT32(struct gpu_facts, pcie_gen_max),
	INT32(struct gpu_facts, pcie_width),
	INT32(struct gpu_facts, pcie_width_max),
	INT32(struct gpu_facts, nvlinks),
	INT32(struct gpu_facts, nvlink_gen),
	DOUBLE(struct gpu_facts, clock_Hz),
	DOUBLE(struct gpu_facts, clock_max_Hz),
	DOUBLE(struct gpu_facts, power_limit_W),
	DOUBLE(struct gpu_facts, power_default_W),
	PLAIN(MEMBER_UINT64, struct gpu_facts, throttle),
	PLAIN(MEMBER_BOOL, struct gpu_facts, no_peer),
	PLAIN(MEMBER_BOOL, struct gpu_facts, peer_known),
};

static const struct member of_nic[] = {
	DOUBLE(struct nic_facts, Bps),
	INT32(struct nic_facts, port),
	PLAIN(MEMBER_BOOL, struct nic_facts, infiniband),
};

static const struct member of_cpu[] = {
	OPTIONAL_INT32(struct cpu_facts, package),
	TEXT(struct cpu_facts, model),
	PLAIN(MEMBER_UINT64, struct cpu_facts, mem_B),
};

static const struct member of_link[] = {
	INT32(struct link, a),
	INT32(struct link, b),
	PLAIN(MEMBER_LINK_KIND, struct link, kind),
	INT32(struct link, width),
	INT32(struct link, gen),
	DOUBLE(struct link, Bps),
	DOUBLE(struct link, datasheet_Bps),
	DOUBLE(struct link, latency_s),
	PLAIN(MEMBER_EVIDENCE, struct link, from),
	PLAIN(MEMBER_BOOL, struct link, assumed),
};

static const struct member of_remark[] = {
	TEXT(struct remark, text),
	PLAIN(MEMBER_BOOL, struct remark, contradiction),
};

/* The members of a vertex by its kind. The JSON has them in one object with the members of every vertex. */
static const struct {
	const struct member *rows;
	size_t n, at;
} facts[VERTEX_KINDS] = {
	[VERTEX_GPU] = {of_gpu, COUNT(of_gpu), offsetof(struct vertex, gpu)},
	[VERTEX_NIC] = {of_nic, COUNT(of_nic), offsetof(struct vertex, nic)},
	[VERTEX_CPU] = {of_cpu, COUNT(of_cpu), offsetof(struct vertex, cpu)},
};

static const char *vertex_word(int k) { return vertex_kind_name((enum vertex_kind)k); }

static const char *link_word(int k) { return link_kind_name((enum link_kind)k); }

static const char *evidence_word(int k) { return evidence_name((enum evidence)k); }

static const struct {
	const char *(*name)(int);
	int n;
} enums[] = {
	[MEMBER_VERTEX_KIND] = {vertex_word, VERTEX_KINDS},
	[MEMBER_LINK_KIND] = {link_word, LINK_KINDS},
	[MEMBER_EVIDENCE] = {evidence_word, EVIDENCES},
};

static_assert(sizeof(enum vertex_kind) == sizeof(int) && sizeof(enum link_kind) == sizeof(int) &&
		      sizeof(enum evidence) == sizeof(int),
	"enums are read and written as int");

/* ---- writing ---- */

/* *out NULL: not known, left out. False when out of memory. */
static bool value_of(const struct member *m, const void *base, json_t **out)
{
	const char *p = (const char *)base + m->at;
	*out = NULL;
	switch (m->type) {
	case MEMBER_TEXT:
		if (!*p)
			return true;
		*out = json_string(p);
		break;
	case MEMBER_INT32:
		if (*(const int32_t *)(const void *)p == m->unknown)
			return true;
		*out = json_integer(*(const int32_t *)(const void *)p);
		break;
	case MEMBER_UINT64:
		if (!*(const uint64_t *)(const void *)p)
			return true;
		*out = json_integer((json_int_t) * (const uint64_t *)(const void *)p);
		break;
	case MEMBER_DOUBLE:
		if (!(*(const double *)(const void *)p < 0 || *(const double *)(const void *)p > 0))
			return true;
		*out = json_real(*(const double *)(const void *)p);
		break;
	case MEMBER_BOOL:
		if (!*(const bool *)p)
			return true;
		*out = json_true();
		break;
	default: *out = json_string(enums[m->type].name(*(const int *)(const void *)p));
	}
	return *out != NULL;
}

static bool put(json_t *object, const struct member *rows, size_t n, const void *base)
{
	for (size_t i = 0; i < n && object; i++) {
		json_t *value;
		if (!value_of(&rows[i], base, &value) || (value && json_object_set_new(object, rows[i].key, value)))
			return false;
	}
	return object != NULL;
}

static json_t *vertex_json(const struct vertex *v)
{
	json_t *j = json_object();
	if (put(j, of_vertex, COUNT(of_vertex), v) &&
		put(j, facts[v->kind].rows, facts[v->kind].n, (const char *)v + facts[v->kind].at))
		return j;
	json_decref(j);
	return NULL;
}

static json_t *rows_json(const void *rows, size_t n, size_t size, const struct member *members, size_t n_members)
{
	json_t *list = json_array();
	for (size_t i = 0; i < n && list; i++) {
		const void *at = (const char *)rows + i * size;
		json_t *j = members ? json_object() : vertex_json(at);
		if ((members && !put(j, members, n_members, at)) || json_array_append(list, j)) {
			json_decref(list);
			list = NULL;
		}
		json_decref(j);
	}
	return list;
}

static json_t *words_json(const struct graph *g)
{
	size_t n = graph_entries(g);
	json_t *rows = json_array();
	for (size_t i = 0; i < n && rows; i++) {
		json_t *row = json_array();
		bool ok = row != NULL;
		for (size_t j = 0; j < n && ok; j++)
			ok = !json_array_append_new(row, json_string(g->words[i * n + j]));
		if (!ok || json_array_append(rows, row)) {
			json_decref(rows);
			rows = NULL;
		}
		json_decref(row);
	}
	return rows;
}

json_t *graph_json(const struct graph *g)
{
	json_t *j = json_object();
	bool ok = put(j, of_graph, COUNT(of_graph), g);
	ok = ok &&
	     !json_object_set_new(j, "vertices", rows_json(g->vertex.at, g->vertex.n, sizeof *g->vertex.at, NULL, 0));
	ok = ok && !json_object_set_new(j, "links",
			   rows_json(g->link.at, g->link.n, sizeof *g->link.at, of_link, COUNT(of_link)));
	ok = ok && (!g->remark.n || !json_object_set_new(j, "remarks",
					    rows_json(g->remark.at, g->remark.n, sizeof *g->remark.at, of_remark,
						    COUNT(of_remark))));
	ok = ok && (!g->words || !json_object_set_new(j, "words", words_json(g)));
	if (ok)
		return j;
	json_decref(j);
	return NULL;
}

/* ---- reading ---- */

static enum status get_word(const struct member *m, const json_t *value, int *out, struct error *e)
{
	const char *text = json_string_value(value);
	for (int i = 0; i < enums[m->type].n && text; i++)
		if (strcmp(enums[m->type].name(i), text) == 0) {
			*out = i;
			return ST_OK;
		}
	return error_set(e, ST_INPUT, "'%s': expected one of the words for it", m->key);
}

static enum status get_text(const struct member *m, const json_t *value, char *out, struct error *e)
{
	if (!json_is_string(value) || json_string_length(value) >= m->size ||
		strlen(json_string_value(value)) != json_string_length(value))
		return error_set(e, ST_INPUT, "'%s': expected a text of less than %zu bytes", m->key, m->size);
	strcpy(out, json_string_value(value));
	return ST_OK;
}

static enum status get_value(const struct member *m, const json_t *value, void *base, struct error *e)
{
	char *p = (char *)base + m->at;
	json_int_t whole = json_integer_value(value);
	switch (m->type) {
	case MEMBER_TEXT: return get_text(m, value, p, e);
	case MEMBER_INT32:
		if (!json_is_integer(value) || whole < INT32_MIN || whole > INT32_MAX)
			return error_set(e, ST_INPUT, "'%s': expected a whole number of 32 bits", m->key);
		*(int32_t *)(void *)p = (int32_t)whole;
		return ST_OK;
	case MEMBER_UINT64:
		if (!json_is_integer(value))
			return error_set(e, ST_INPUT, "'%s': expected a whole number", m->key);
		*(uint64_t *)(void *)p = (uint64_t)whole;
		return ST_OK;
	case MEMBER_DOUBLE:
		if (!json_is_number(value))
			return error_set(e, ST_INPUT, "'%s': expected a number", m->key);
		*(double *)(void *)p = json_number_value(value);
		return ST_OK;
	case MEMBER_BOOL:
		if (!json_is_boolean(value))
			return error_set(e, ST_INPUT, "'%s': expected true or false", m->key);
		*(bool *)p = json_is_true(value);
		return ST_OK;
	default: return get_word(m, value, (int *)(void *)p, e);
	}
}

/* Fills `base` from the members of `object` that the table has; *used counts them. */
static enum status get(const json_t *object, const struct member *rows, size_t n, void *base, size_t *used,
	struct error *e)
{
	enum status st = ST_OK;
	if (!json_is_object(object))
		return error_set(e, ST_INPUT, "expected an object");
	for (size_t i = 0; i < n && !st; i++) {
		const json_t *value = json_object_get(object, rows[i].key);
		bool needed = rows[i].type >= MEMBER_VERTEX_KIND;
		if (!value && needed)
			st = error_set(e, ST_INPUT, "'%s' is missing", rows[i].key);
		else if (value)
			st = get_value(&rows[i], value, base, e);
		*used += value != NULL;
	}
	return st;
}

static enum status no_more(const json_t *object, size_t used, struct error *e)
{
	return json_object_size(object) == used ? ST_OK : error_set(e, ST_INPUT, "a key that does not belong here");
}

static enum status get_vertex(const json_t *j, struct graph *g, struct error *e)
{
	struct vertex v = graph_vertex_init(VERTEX_GPU, SAID_BY_CATALOGUE);
	size_t used = 0;
	enum status st = get(j, of_vertex, COUNT(of_vertex), &v, &used, e);
	if (st)
		return st;
	if (!v.label[0])
		return error_set(e, ST_INPUT, "'label' is missing");
	if (v.kind == VERTEX_CPU)
		v.cpu.package = -1;
	if ((st = get(j, facts[v.kind].rows, facts[v.kind].n, (char *)&v + facts[v.kind].at, &used, e)) ||
		(st = no_more(j, used, e)))
		return st;
	return graph_add_vertex(g, &v) >= 0 ? ST_OK : error_nomem(e, "a topology");
}

static enum status get_link(const json_t *j, struct graph *g, struct error *e)
{
	struct link l = {0};
	size_t used = 0;
	enum status st = get(j, of_link, COUNT(of_link), &l, &used, e);
	if (st || (st = no_more(j, used, e)))
		return st;
	return graph_add_link(g, &l) >= 0 ? ST_OK : error_nomem(e, "a topology");
}

static enum status get_remark(const json_t *j, struct graph *g, struct error *e)
{
	struct remark r = {0};
	size_t used = 0;
	enum status st = get(j, of_remark, COUNT(of_remark), &r, &used, e);
	if (st || (st = no_more(j, used, e)))
		return st;
	return vec_push(&g->remark, r) ? ST_OK : error_nomem(e, "a topology");
}

static enum status get_words(const json_t *rows, struct graph *g, struct error *e)
{
	size_t n = graph_entries(g);
	if (!rows)
		return ST_OK;
	if (!json_is_array(rows) || json_array_size(rows) != n)
		return error_set(e, ST_INPUT, "words: expected %zu rows", n);
	g->words = calloc(n * n + 1, sizeof *g->words);
	if (!g->words)
		return error_nomem(e, "a topology");
	for (size_t i = 0; i < n; i++) {
		const json_t *row = json_array_get(rows, i);
		if (!json_is_array(row) || json_array_size(row) != n)
			return error_set(e, ST_INPUT, "words: row %zu: expected %zu words", i, n);
		for (size_t k = 0; k < n; k++) {
			static const struct member word = {"words", MEMBER_TEXT, 0, GRAPH_WORD, 0};
			enum status st = get_text(&word, json_array_get(row, k), g->words[i * n + k], e);
			if (st)
				return st;
		}
	}
	return ST_OK;
}

/* "GPU2" before "GPU10" */
static int by_number(const void *a, const void *b, void *graph)
{
	const struct graph *g = graph;
	const char *p = g->vertex.at[*(const int32_t *)a].label, *q = g->vertex.at[*(const int32_t *)b].label;
	long x = strtol(p + strcspn(p, "0123456789"), NULL, 10), y = strtol(q + strcspn(q, "0123456789"), NULL, 10);
	return (x > y) - (x < y);
}

enum status graph_parse(const json_t *json, struct graph **out, struct error *e)
{
	static const struct {
		const char *key;
		enum status (*read)(const json_t *, struct graph *, struct error *);
		bool needed;
	} lists[] = {{"vertices", get_vertex, true}, {"links", get_link, true}, {"remarks", get_remark, false}};
	struct graph *g = graph_create(SAID_BY_CATALOGUE);
	if (!g)
		return error_nomem(e, "a topology");
	size_t used = 0;
	enum status st = get(json, of_graph, COUNT(of_graph), g, &used, e);
	for (size_t k = 0; k < COUNT(lists) && !st; k++) {
		const json_t *list = json_object_get(json, lists[k].key);
		used += list != NULL;
		if (list ? !json_is_array(list) : lists[k].needed)
			st = error_set(e, ST_INPUT, "'%s': expected a list", lists[k].key);
		for (size_t i = 0; i < json_array_size(list) && !st; i++)
			if ((st = lists[k].read(json_array_get(list, i), g, e)))
				error_context(e, "%s[%zu]", lists[k].key, i);
	}
	if (!st && g->gpu.n)
		qsort_r(g->gpu.at, g->gpu.n, sizeof *g->gpu.at, by_number, g);
	if (!st && g->nic.n)
		qsort_r(g->nic.at, g->nic.n, sizeof *g->nic.at, by_number, g);
	if (!st && !(st = get_words(json_object_get(json, "words"), g, e)))
		st = no_more(json, used + (g->words != NULL), e);
	if (!st)
		st = topology_check(g, e);
	if (st) {
		graph_destroy(g);
		error_context(e, "topology");
		return st;
	}
	*out = g;
	return ST_OK;
}

/* ---- equality ---- */

static bool same(const struct member *rows, size_t n, const void *a, const void *b)
{
	static const size_t sizes[] = {[MEMBER_INT32] = sizeof(int32_t),
		[MEMBER_UINT64] = sizeof(uint64_t),
		[MEMBER_DOUBLE] = sizeof(double),
		[MEMBER_BOOL] = sizeof(bool),
		[MEMBER_VERTEX_KIND] = sizeof(int),
		[MEMBER_LINK_KIND] = sizeof(int),
		[MEMBER_EVIDENCE] = sizeof(int)};
	for (size_t i = 0; i < n; i++) {
		const char *x = (const char *)a + rows[i].at, *y = (const char *)b + rows[i].at;
		if (rows[i].type == MEMBER_TEXT ? strcmp(x, y) : memcmp(x, y, sizes[rows[i].type]))
			return false;
	}
	return true;
}

bool graph_same(const struct graph *a, const struct graph *b)
{
	if (strcmp(a->model, b->model) || a->source != b->source || a->vertex.n != b->vertex.n ||
		a->link.n != b->link.n || a->remark.n != b->remark.n || !a->words != !b->words)
		return false;
	for (size_t i = 0; i < a->vertex.n; i++) {
		const struct vertex *x = &a->vertex.at[i], *y = &b->vertex.at[i];
		if (!same(of_vertex, COUNT(of_vertex), x, y) ||
			!same(facts[x->kind].rows, facts[x->kind].n, (const char *)x + facts[x->kind].at,
				(const char *)y + facts[x->kind].at))
			return false;
	}
	for (size_t i = 0; i < a->link.n; i++)
		if (!same(of_link, COUNT(of_link), &a->link.at[i], &b->link.at[i]))
			return false;
	for (size_t i = 0; i < a->remark.n; i++)
		if (!same(of_remark, COUNT(of_remark), &a->remark.at[i], &b->remark.at[i]))
			return false;
	size_t n = a->words ? graph_entries(a) : 0;
	for (size_t i = 0; i < n * n; i++)
		if (strcmp(a->words[i], b->words[i]))
			return false;
	return true;
}
