#include "report/import/trace.h"

#include <errno.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- names ---- */

static int by_text(const void *a, const void *b)
{
	return strcmp(((const struct traced_name *)a)->text, ((const struct traced_name *)b)->text);
}

bool trace_intern(struct trace_set *set, const char *name, enum op_class (*class_of)(const char *), uint32_t *index)
{
	struct traced_name wanted = {.text = (char *)(uintptr_t)name};
	struct traced_name **found = tfind(&wanted, &set->name_tree, by_text);
	if (!found) {
		struct traced_name *made = malloc(sizeof *made);
		if (!made || !(made->text = strdup(name)) || !vec_reserve(&set->names, 1)) {
			if (made)
				free(made->text);
			free(made);
			return false;
		}
		made->class_ = (uint8_t)class_of(name);
		made->index = (uint32_t)set->names.n;
		set->names.at[set->names.n++] = made;
		if (!(found = tsearch(made, &set->name_tree, by_text)))
			return false;
	}
	*index = (*found)->index;
	return true;
}

/* ---- GPUs ---- */

struct traced_gpu *trace_gpu(struct trace_set *set, const char *path, int64_t process, int64_t device)
{
	for (size_t i = set->gpus.n; i-- > 0;)
		if (set->gpus.at[i].process == process && set->gpus.at[i].device == device &&
			strcmp(set->gpus.at[i].path, path) == 0)
			return &set->gpus.at[i];
	struct traced_gpu g = {.rank = -1, .world = -1, .process = process, .device = device};
	snprintf(g.path, sizeof g.path, "%s", path);
	return vec_push(&set->gpus, g) ? &set->gpus.at[set->gpus.n - 1] : NULL;
}

static void free_node(void *node) { (void)node; /* the names own them */ }

void trace_free(struct trace_set *set)
{
	for (size_t i = 0; i < set->gpus.n; i++) {
		vec_free(&set->gpus.at[i].work);
		vec_free(&set->gpus.at[i].steps);
		vec_free(&set->gpus.at[i].launches);
	}
	vec_free(&set->gpus);
	tdestroy(set->name_tree, free_node);
	for (size_t i = 0; i < set->names.n; i++) {
		free(set->names.at[i]->text);
		free(set->names.at[i]);
	}
	vec_free(&set->names);
	*set = (struct trace_set){0};
}

/* ---- files ---- */

static enum status is_sqlite(const char *path, bool *out, struct error *e)
{
	static const char magic[] = "SQLite format 3";
	char begin[sizeof magic] = "";
	FILE *f = fopen(path, "rb");
	if (!f)
		return error_set(e, ST_INPUT, "cannot read %s: %s", path, strerror(errno));
	size_t n = fread(begin, 1, sizeof begin, f);
	const int failed = ferror(f) ? errno : 0;
	fclose(f);
	if (failed)
		return error_set(e, ST_INPUT, "cannot read %s: %s", path, strerror(failed));
	*out = n == sizeof begin && memcmp(begin, magic, sizeof magic) == 0;
	return ST_OK;
}

enum status trace_read(const char *path, struct trace_set *set, trace_progress *progress, void *ctx, struct error *e)
{
	bool sqlite = false;
	size_t before = set->gpus.n, work = 0;
	const int64_t graphs = set->whole_graphs;
	enum status st = is_sqlite(path, &sqlite, e);
	if (!st)
		st = sqlite ? nsys_read(path, set, e) : kineto_read(path, set, progress, ctx, e);
	if (st)
		return st;
	for (size_t i = before; i < set->gpus.n; i++)
		work += set->gpus.at[i].work.n;
	if (!work && set->whole_graphs > graphs)
		return error_set(e, ST_INPUT,
			"%s: its CUDA graphs were traced as wholes, without their kernels (nsys profile "
			"--cuda-graph-trace=node shows them)",
			path);
	if (!work)
		return error_set(e, ST_INPUT,
			"%s: no kernel of a GPU is in it (PyTorch's profiler needs ProfilerActivity.CUDA; `nsys "
			"export --type sqlite` of a run traced with --trace cuda)",
			path);
	return ST_OK;
}

/* ---- the end ---- */

static int by_start(const void *a, const void *b)
{
	const struct traced *x = a, *y = b;
	return x->start_ns != y->start_ns ? (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns)
	                                  : (x->end_ns > y->end_ns) - (x->end_ns < y->end_ns);
}

static int step_by_start(const void *a, const void *b)
{
	const struct traced_step *x = a, *y = b;
	return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

static int by_correlation(const void *a, const void *b)
{
	const struct traced_launch *x = a, *y = b;
	return (x->correlation > y->correlation) - (x->correlation < y->correlation);
}

static int by_rank(const void *a, const void *b)
{
	const struct traced_gpu *x = a, *y = b;
	return (x->rank > y->rank) - (x->rank < y->rank);
}

static void find_launches(struct traced_gpu *g)
{
	if (!g->launches.n)
		return;
	qsort(g->launches.at, g->launches.n, sizeof g->launches.at[0], by_correlation);
	for (size_t i = 0; i < g->work.n; i++) {
		struct traced *t = &g->work.at[i];
		struct traced_launch wanted = {.correlation = t->correlation};
		const struct traced_launch *found = t->correlation ? bsearch(&wanted, g->launches.at, g->launches.n,
									     sizeof wanted, by_correlation)
		                                                   : NULL;
		if (found)
			t->launch_ns = found->start_ns;
	}
	vec_free(&g->launches);
}

enum status trace_finish(struct trace_set *set, struct error *e)
{
	bool all_ranked = true;
	for (size_t i = 0; i < set->gpus.n; i++) {
		struct traced_gpu *g = &set->gpus.at[i];
		find_launches(g);
		if (g->work.n)
			qsort(g->work.at, g->work.n, sizeof g->work.at[0], by_start);
		if (g->steps.n)
			qsort(g->steps.at, g->steps.n, sizeof g->steps.at[0], step_by_start);
		all_ranked = all_ranked && g->rank >= 0;
	}
	if (!all_ranked || !set->gpus.n)
		return ST_OK;
	qsort(set->gpus.at, set->gpus.n, sizeof set->gpus.at[0], by_rank);
	for (size_t i = 1; i < set->gpus.n; i++)
		if (set->gpus.at[i].rank == set->gpus.at[i - 1].rank &&
			strcmp(set->gpus.at[i].path, set->gpus.at[i - 1].path) != 0)
			return error_set(e, ST_INPUT, "%s: of rank %lld, as %s is", set->gpus.at[i].path,
				(long long)set->gpus.at[i].rank, set->gpus.at[i - 1].path);
	return ST_OK;
}
