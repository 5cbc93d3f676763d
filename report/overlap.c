#include "report/overlap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/stats.h"

#define S_PER_NS 1e-9

enum category { CAT_OPTIMIZER, CAT_COMPUTE, CAT_COMM, CAT_COPY, CAT_COUNT }; /* by precedence */

static enum category category_of(uint8_t class_)
{
	if (op_class_is_comm(class_))
		return CAT_COMM;
	return class_ == CLASS_COPY ? CAT_COPY : class_ == CLASS_OPTIMIZER ? CAT_OPTIMIZER : CAT_COMPUTE;
}

/* ---- the window ---- */

struct window {
	int64_t start_ns, end_ns;
	int64_t host_start_ns, host_end_ns; /* of the marked steps */
	bool marked;
};

static int64_t at_most(int64_t x, int64_t limit) { return x < limit ? x : limit; }

static int64_t at_least(int64_t x, int64_t limit) { return x > limit ? x : limit; }

/* Launched inside the marked steps; where the trace does not say when, begun after their begin. */
static bool counts(const struct traced *t, const struct window *w)
{
	if (!w->marked)
		return true;
	int64_t at = t->launch_ns == TRACE_NOT_LAUNCHED ? t->start_ns : t->launch_ns;
	return at >= w->host_start_ns &&
	       (at < w->host_end_ns || (t->launch_ns == TRACE_NOT_LAUNCHED && at < w->end_ns));
}

static enum status find_window(const struct traced_gpu *g, struct window *w, struct error *e)
{
	*w = (struct window){.marked = g->steps.n > 0};
	if (w->marked) {
		w->host_start_ns = g->steps.at[0].start_ns;
		for (size_t i = 0; i < g->steps.n; i++)
			w->host_end_ns = at_least(g->steps.at[i].end_ns, i ? w->host_end_ns : INT64_MIN);
		w->end_ns = w->host_end_ns;
	}
	bool any = false;
	for (size_t i = 0; i < g->work.n; i++) {
		const struct traced *t = &g->work.at[i];
		if (!counts(t, w))
			continue;
		if (!any) {
			w->start_ns = t->start_ns;
			w->end_ns = w->marked ? t->start_ns + (w->host_end_ns - w->host_start_ns) : t->end_ns;
		}
		any = true;
		w->end_ns = at_least(w->end_ns, t->end_ns);
	}
	return any ? ST_OK
	           : error_set(e, ST_INPUT, "%s: no kernel was launched inside its steps (ProfilerStep#N)", g->path);
}

/* ---- one GPU ---- */

/* Time in which work of one of the first categories goes on, up to and with `last` (only: of that one alone). Work is
 * in order of its start. */
static int64_t covered_ns(const struct traced_gpu *g, const struct window *w, enum category last, bool only)
{
	int64_t sum = 0, until = w->start_ns;
	for (size_t i = 0; i < g->work.n; i++) {
		const struct traced *t = &g->work.at[i];
		enum category c = category_of(t->class_);
		if ((only ? c != last : c > last) || !counts(t, w))
			continue;
		int64_t from = at_least(t->start_ns, until), to = at_most(t->end_ns, w->end_ns);
		sum += to > from ? to - from : 0;
		until = at_least(until, to);
	}
	return sum;
}

static void find_gaps(const struct traced_gpu *g, const struct window *w, struct overlap_gpu *out)
{
	int64_t until = w->start_ns, launch_ns = 0;
	for (size_t i = 0; i < g->work.n; i++) {
		const struct traced *t = &g->work.at[i];
		if (!counts(t, w))
			continue;
		bool known = t->launch_ns != TRACE_NOT_LAUNCHED;
		out->launches_known = out->launches_known || known;
		if (t->start_ns > until) {
			out->gaps++;
			if (known && t->launch_ns > until) {
				out->launch_gaps++;
				launch_ns += t->start_ns - until;
			}
		}
		until = at_least(until, t->end_ns);
	}
	out->launch_gap_s = (double)launch_ns * S_PER_NS;
}

static void label_gpu(const struct traced_gpu *g, char label[64])
{
	const char *name = strrchr(g->path, '/');
	if (g->rank >= 0)
		snprintf(label, 64, "rank %lld", (long long)g->rank);
	else
		snprintf(label, 64, "%.40s GPU %lld", name ? name + 1 : g->path, (long long)g->device);
}

static enum status measure_gpu(const struct traced_gpu *g, struct overlap_gpu *out, struct error *e)
{
	struct window w;
	enum status st = find_window(g, &w, e);
	if (st)
		return st;
	*out = (struct overlap_gpu){.gpu = g, .steps = (int64_t)g->steps.n};
	label_gpu(g, out->label);
	find_gaps(g, &w, out);
	double steps = g->steps.n ? (double)g->steps.n : 1, each = S_PER_NS / steps;
	int64_t covered[CAT_COUNT]; /* differences of whole nanoseconds: nothing that is not there comes out as a last
	                               digit */
	for (int c = 0; c < CAT_COUNT; c++)
		covered[c] = covered_ns(g, &w, (enum category)c, false);
	struct breakdown *b = &out->time;
	b->step_s = (double)(w.end_ns - w.start_ns) * each;
	b->optimizer_s = (double)covered[CAT_OPTIMIZER] * each;
	b->compute_s = (double)(covered[CAT_COMPUTE] - covered[CAT_OPTIMIZER]) * each;
	b->exposed_comm_s = (double)(covered[CAT_COMM] - covered[CAT_COMPUTE]) * each;
	b->copy_s = (double)(covered[CAT_COPY] - covered[CAT_COMM]) * each;
	b->idle_s = (double)(w.end_ns - w.start_ns - covered[CAT_COPY]) * each;
	b->comm_s = (double)covered_ns(g, &w, CAT_COMM, true) * each;
	b->overlap = b->comm_s > 0 ? 1 - b->exposed_comm_s / b->comm_s : NAN;
	out->launch_gap_s /= steps;
	for (size_t i = 0; i < g->work.n; i++) {
		const struct traced *t = &g->work.at[i];
		if (!counts(t, &w))
			continue;
		b->class_s[t->class_] += (double)(t->end_ns - t->start_ns) * each;
		b->class_n[t->class_]++;
	}
	return ST_OK;
}

/* ---- all of them ---- */

static int longer_first(const void *a, const void *b)
{
	const struct overlap_kernel *x = a, *y = b;
	return (x->time_s < y->time_s) - (x->time_s > y->time_s);
}

static enum status find_top(const struct trace_set *set, struct overlap *o, struct error *e)
{
	struct overlap_kernel *all = calloc(set->names.n ? set->names.n : 1, sizeof *all);
	if (!all)
		return error_nomem(e, "the kernels");
	for (size_t i = 0; i < set->names.n; i++)
		all[i] = (struct overlap_kernel){.name = set->names.at[i]->text,
			.class_ = (enum op_class)set->names.at[i]->class_};
	for (size_t k = 0; k < set->gpus.n; k++) {
		const struct traced_gpu *g = &set->gpus.at[k];
		struct window w;
		find_window(g, &w, NULL); /* it was found before */
		for (size_t i = 0; i < g->work.n; i++)
			if (counts(&g->work.at[i], &w)) {
				all[g->work.at[i].name].calls++;
				all[g->work.at[i].name].time_s += (double)(g->work.at[i].end_ns -
									   g->work.at[i].start_ns) *
				                                  S_PER_NS;
			}
	}
	qsort(all, set->names.n, sizeof *all, longer_first);
	for (size_t i = 0; i < set->names.n && all[i].calls; i++) {
		o->kernels_s += all[i].time_s;
		if (i < OVERLAP_TOP)
			o->top[o->n_top++] = all[i];
	}
	free(all);
	return ST_OK;
}

/* Leaves out exposed communication, in which a fast rank waits for a slow one. */
static double own_s(const struct overlap_gpu *g) { return g->time.step_s - g->time.exposed_comm_s; }

static enum status find_slowest(struct overlap *o, struct error *e)
{
	double *own = malloc(o->n * sizeof *own);
	if (!own)
		return error_nomem(e, "the ranks");
	for (size_t i = 0; i < o->n; i++) {
		own[i] = own_s(&o->gpus[i]);
		o->slowest = own[i] > own_s(&o->gpus[o->slowest]) ? i : o->slowest;
		o->step_s += o->gpus[i].time.step_s / (double)o->n;
		for (int c = 0; c < CLASS_COUNT; c++)
			o->mean_class_s[c] += o->gpus[i].time.class_s[c] / (double)o->n;
	}
	double median = stats_median(own, o->n);
	o->skew = median > 0 ? own_s(&o->gpus[o->slowest]) / median - 1 : 0;
	free(own);
	return ST_OK;
}

enum status overlap_of(const struct trace_set *set, struct overlap *o, struct error *e)
{
	*o = (struct overlap){.n = set->gpus.n,
		.files_cut = set->files_cut,
		.events_left_out = set->events_left_out,
		.whole_graphs = set->whole_graphs};
	if (!o->n)
		return error_set(e, ST_INPUT, "no trace");
	enum status st = (o->gpus = calloc(o->n, sizeof *o->gpus)) ? ST_OK : error_nomem(e, "the ranks");
	for (size_t i = 0; i < o->n && !st; i++)
		st = measure_gpu(&set->gpus.at[i], &o->gpus[i], e);
	if (!st)
		st = find_slowest(o, e);
	return st ? st : find_top(set, o, e);
}

void overlap_free(struct overlap *o)
{
	free(o->gpus);
	*o = (struct overlap){0};
}
