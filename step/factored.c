#include "step/factored.h"

static bool is_cut(const struct mesh *m, const struct param *p)
{
	return m->size[DIM_TP] > 1 && p->split > TP_PARTIAL && !param_is_expert(p->kind);
}

/* Returns how many tensors of one shape a parameter is on this rank. */
static int64_t copies_of(const struct role_param *rp)
{
	const struct param *p = &rp->param;
	return param_is_expert(p->kind) ? (int64_t)rp->elements / (p->rows * p->cols) : 1;
}

/* Fills the shape of one on one tensor rank. */
static struct factored_tensor shape_of(const struct mesh *m, const struct role_param *rp)
{
	const struct param *p = &rp->param;
	const int64_t ranks = is_cut(m, p) ? m->size[DIM_TP] : 1, all = (int64_t)rp->elements / copies_of(rp);
	if (!param_is_matrix(p))
		return (struct factored_tensor){.rows = all, .cols = 1, .elements = all * ranks};
	const int64_t cols = p->split == TP_COLS ? p->cols / ranks : p->cols;
	return (struct factored_tensor){.rows = all / cols,
		.cols = cols,
		.all_rows = p->rows,
		.all_cols = p->cols,
		.elements = all * ranks};
}

/* The numbers that a tensor adds to `sums`: those that the tensor group adds up, and the others. */
struct places {
	int64_t cut, rest;
};

static struct places places_of(const struct mesh *m, const struct param *p, const struct factored_tensor *t)
{
	const int64_t rows = t->cols > 1 ? t->rows : 0, cols = t->cols > 1 ? t->cols : 0;
	if (!is_cut(m, p))
		return (struct places){0, rows + cols + 1};
	return p->split == TP_COLS ? (struct places){rows + 1, cols} : (struct places){cols + 1, rows};
}

struct factored_counts factored_counts_of(const struct role *r, const struct mesh *m, int32_t bucket)
{
	const int64_t part = bucket_part(&r->buckets.at[bucket]);
	struct factored_counts c = {0};
	for (size_t i = 0; i < r->params.n; i++) {
		const struct role_param *rp = &r->params.at[i];
		if (rp->bucket != bucket)
			continue;
		const struct factored_tensor t = shape_of(m, rp);
		const struct places n = places_of(m, &rp->param, &t);
		const int64_t copies = copies_of(rp);
		c.tensors += copies;
		c.cut_tensors += is_cut(m, &rp->param) ? copies : 0;
		c.cut_sums += n.cut * copies;
		c.sums += (n.cut + n.rest) * copies;
		c.vectors += param_is_matrix(&rp->param) ? 0 : (int64_t)rp->elements;
	}
	c.vectors = c.vectors < part ? c.vectors : part;
	return c;
}

static int64_t clipped(int64_t x, int64_t most) { return x < 0 ? 0 : x < most ? x : most; }

/* Places a tensor, whose first element is `first` of the rank's part, among the part's. */
static void place(struct factored_tensor *t, int64_t first, int64_t part)
{
	t->begin = clipped(first, part);
	t->n = clipped(first + t->rows * t->cols, part) - t->begin;
	t->from = t->begin - first;
}

/* Places its numbers in `sums` behind those before it: what the tensor group adds up stands together. */
static void place_sums(struct factored_tensor *t, bool cut, bool cols_cut, struct places at)
{
	const int64_t rows = t->cols > 1 ? t->rows : 0, cols = t->cols > 1 ? t->cols : 0;
	if (!cut) {
		t->at_row = at.rest;
		t->at_col = at.rest + rows;
		t->at_sum = at.rest + rows + cols;
		return;
	}
	t->at_row = cols_cut ? at.cut : at.rest;
	t->at_col = cols_cut ? at.rest : at.cut;
	t->at_sum = at.cut + (cols_cut ? rows : cols);
}

struct factored_tensor factored_tensor(const struct role *r, const struct mesh *m, int32_t bucket, uint64_t part_begin,
	int64_t wanted)
{
	const int64_t begin = (int64_t)part_begin, part = bucket_part(&r->buckets.at[bucket]);
	struct places at = {0, factored_counts_of(r, m, bucket).cut_sums};
	int64_t n = 0, vector = 0;
	for (int cut = 1; cut >= 0; cut--)
		for (size_t i = 0; i < r->params.n; i++) {
			const struct role_param *rp = &r->params.at[i];
			if (rp->bucket != bucket || is_cut(m, &rp->param) != (bool)cut)
				continue;
			for (int64_t copy = 0; copy < copies_of(rp); copy++) {
				struct factored_tensor t = shape_of(m, rp);
				const struct places own = places_of(m, &rp->param, &t);
				place(&t, (int64_t)rp->offset - begin + copy * t.rows * t.cols, part);
				place_sums(&t, cut, rp->param.split == TP_COLS, at);
				t.at_vector = vector;
				if (n++ == wanted)
					return t;
				at.cut += own.cut;
				at.rest += own.rest;
				vector += param_is_matrix(&rp->param) ? 0 : t.n;
			}
		}
	return (struct factored_tensor){0};
}
