/* The matrix: of all entries of all hosts, or of each make alone. */
#include <math.h>
#include <stdlib.h>

#include "topology/view/view_json.h"

static enum status no_memory(struct error *e) { return error_nomem(e, "the JSON matrix"); }

bool view_matrix_fits(const struct cluster *c)
{
	int64_t entries = 0;
	for (size_t i = 0; i < c->shape.n && entries <= VIEW_MATRIX_MOST; i++) {
		int64_t each = (int64_t)graph_entries(c->shape.at[i].graph);
		entries = each && c->shape.at[i].hosts > VIEW_MATRIX_MOST ? VIEW_MATRIX_MOST + 1
		                                                          : entries + each * c->shape.at[i].hosts;
	}
	return entries <= VIEW_MATRIX_MOST;
}

/* The matrices of all makes, in their order. */
static void free_matrices(struct view_matrix *m, size_t n)
{
	for (size_t i = 0; m && i < n; i++)
		view_matrix_free(&m[i]);
	free(m);
}

static enum status make_matrices(const struct cluster *c, const struct view_makes *makes, struct view_matrix **out,
	struct error *e)
{
	struct view_matrix *m = calloc(makes->list.n + 1, sizeof *m);
	enum status st = m ? ST_OK : no_memory(e);
	for (size_t i = 0; i < makes->list.n && !st; i++)
		st = view_matrix(c->shape.at[makes->list.at[i].shape].graph, &m[i], e);
	if (st)
		free_matrices(m, makes->list.n);
	else
		*out = m;
	return st;
}

struct tables {
	json_t *labels, *link, *rate;
};

static bool tables_make(struct tables *t)
{
	*t = (struct tables){json_array(), json_array(), json_array()};
	return t->labels && t->link && t->rate;
}

static void tables_free(struct tables *t)
{
	json_decref(t->labels);
	json_decref(t->link);
	json_decref(t->rate);
}

static bool add_row(struct tables *t, json_t *label, json_t **link, json_t **rate)
{
	*link = json_array();
	*rate = json_array();
	bool ok = json_array_append_new(t->link, *link) == 0;
	ok &= json_array_append_new(t->rate, *rate) == 0;
	ok &= json_array_append_new(t->labels, label) == 0;
	return ok;
}

static bool add_cell(json_t *link, json_t *rate, const char *word, double Bps)
{
	return json_array_append_new(link, view_text_json(word)) == 0 &&
	       json_array_append_new(rate, view_rate_json(Bps)) == 0;
}

/* ---- one matrix ---- */

struct entry {
	struct view_place place;
	const struct view_matrix *own; /* of its host */
	size_t at;                     /* there */
};
struct entries {
	VEC(struct entry) list;
};

static enum status list_entries(const struct cluster *c, const struct view_makes *makes, const struct view_matrix *m,
	struct entries *out, struct error *e)
{
	for (size_t s = 0; s < c->shape.n; s++) {
		const struct cluster_shape *shape = &c->shape.at[s];
		for (int64_t h = 0; h < shape->hosts; h++)
			for (size_t i = 0; i < graph_entries(shape->graph); i++)
				if (!vec_push(&out->list,
					    ((struct entry){{c, shape, shape->graph, shape->first_host + h},
						    &m[makes->of_shape[s]], i})))
					return no_memory(e);
	}
	return ST_OK;
}

static bool fill_row(const struct entries *x, const struct entry *from, json_t *link, json_t *rate)
{
	bool ok = true;
	for (size_t i = 0; i < x->list.n && ok; i++) {
		const struct entry *to = &x->list.at[i];
		const struct view_cell *cell = &from->own->cell[from->at * from->own->n + to->at];
		if (from->place.host == to->place.host)
			ok = add_cell(link, rate, cell->word, cell->Bps);
		else
			ok = add_cell(link, rate, "NET",
				fmin(from->own->egress_Bps[from->at], to->own->egress_Bps[to->at]));
	}
	return ok;
}

enum status view_matrix_json(const struct cluster *c, const struct view_makes *makes, json_t **out, struct error *e)
{
	struct view_matrix *m = NULL;
	struct entries x = {0};
	struct tables t;
	enum status st = tables_make(&t) ? make_matrices(c, makes, &m, e) : no_memory(e);
	if (!st)
		st = list_entries(c, makes, m, &x, e);
	for (size_t i = 0; i < x.list.n && !st; i++) {
		const struct entry *from = &x.list.at[i];
		json_t *link, *rate;
		if (!add_row(&t, view_label_json(&from->place, graph_entry(from->place.g, from->at)), &link, &rate) ||
			!fill_row(&x, from, link, rate))
			st = no_memory(e);
	}
	if (!st && !(*out = json_pack("{s:O, s:O, s:O}", "labels", t.labels, "link", t.link, "bandwidth_Bps", t.rate)))
		st = no_memory(e);
	free_matrices(m, makes->list.n);
	vec_free(&x.list);
	tables_free(&t);
	return st;
}

/* ---- one of each make ---- */

static json_t *hosts_json(const struct cluster *c, const struct view_makes *makes, size_t make)
{
	json_t *out = json_array();
	for (size_t s = 0; s < c->shape.n && out; s++) {
		const struct cluster_shape *shape = &c->shape.at[s];
		for (int64_t h = 0; h < shape->hosts && out && makes->of_shape[s] == make; h++) {
			if (json_array_append_new(out, view_host_json(&(struct view_place){c, shape, shape->graph,
							       shape->first_host + h}))) {
				json_decref(out);
				out = NULL;
			}
		}
	}
	return out;
}

/* Labels here are the host's own: "GPU0". Takes `hosts` over. */
static json_t *make_json(const struct graph *g, const struct view_matrix *m, json_t *hosts)
{
	struct tables t;
	json_t *egress = json_array(), *out = NULL;
	bool ok = tables_make(&t) && hosts && egress;
	for (size_t i = 0; i < m->n && ok; i++) {
		json_t *link, *rate;
		ok = add_row(&t, json_string(g->vertex.at[graph_entry(g, i)].label), &link, &rate) &&
		     json_array_append_new(egress, view_rate_json(m->egress_Bps[i])) == 0;
		for (size_t j = 0; j < m->n && ok; j++)
			ok = add_cell(link, rate, m->cell[i * m->n + j].word, m->cell[i * m->n + j].Bps);
	}
	if (ok)
		out = json_pack("{s:O, s:O, s:O, s:O, s:O}", "hosts", hosts, "labels", t.labels, "link", t.link,
			"bandwidth_Bps", t.rate, "egress_Bps", egress);
	tables_free(&t);
	json_decref(hosts);
	json_decref(egress);
	return out;
}

enum status view_matrices_json(const struct cluster *c, const struct view_makes *makes, json_t **out, struct error *e)
{
	struct view_matrix *m = NULL;
	json_t *list = json_array();
	enum status st = list ? make_matrices(c, makes, &m, e) : no_memory(e);
	for (size_t i = 0; i < makes->list.n && !st; i++)
		if (json_array_append_new(list,
			    make_json(c->shape.at[makes->list.at[i].shape].graph, &m[i], hosts_json(c, makes, i))))
			st = no_memory(e);
	free_matrices(m, makes->list.n);
	if (st)
		json_decref(list);
	else
		*out = list;
	return st;
}
