/* Nsight Systems' SQLite export (NVIDIA, Nsight Systems User Guide, "SQLite Schema Reference"): tables
 * CUPTI_ACTIVITY_KIND_KERNEL, _MEMCPY, _MEMSET, _RUNTIME, names in StringIds. A table is missing where nothing of its
 * kind was traced. A process is the upper bits of globalTid; correlation ids are a process's own. Steps are not marked.
 */
#include <sqlite3.h>
#include <string.h>

#include "base/array.h"
#include "report/import/trace.h"

#define COLUMNS "SELECT k.start, k.end, k.globalPid, k.deviceId, k.streamId, "

/* start, end, process, device, stream, name, launch */
static const struct {
	const char *table, *needs /* NULL: nothing else */, *query;
	enum op_class (*class_of)(const char *name);
} queries[] = {
	{"CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME",
		COLUMNS
		"s.value, r.start FROM CUPTI_ACTIVITY_KIND_KERNEL k LEFT JOIN StringIds s ON s.id = k.demangledName "
		"LEFT JOIN CUPTI_ACTIVITY_KIND_RUNTIME r ON r.correlationId = k.correlationId AND (r.globalTid & "
		"~16777215) = k.globalPid",
		trace_kernel_class},
	{"CUPTI_ACTIVITY_KIND_KERNEL", NULL,
		COLUMNS
		"s.value, NULL FROM CUPTI_ACTIVITY_KIND_KERNEL k LEFT JOIN StringIds s ON s.id = k.demangledName",
		trace_kernel_class},
	{"CUPTI_ACTIVITY_KIND_MEMCPY", NULL,
		COLUMNS "CASE k.copyKind WHEN 1 THEN 'Memcpy HtoD' WHEN 2 THEN 'Memcpy DtoH' WHEN 8 THEN 'Memcpy DtoD' "
			"WHEN 10 THEN 'Memcpy PtoP' ELSE 'Memcpy' END, NULL FROM CUPTI_ACTIVITY_KIND_MEMCPY k",
		trace_copy_class},
	{"CUPTI_ACTIVITY_KIND_MEMSET", NULL, COLUMNS "'Memset', NULL FROM CUPTI_ACTIVITY_KIND_MEMSET k",
		trace_copy_class},
};

static enum status failed(sqlite3 *db, const char *path, struct error *e)
{
	return error_set(e, ST_INPUT, "%s: %s", path, sqlite3_errmsg(db));
}

static enum status has_table(sqlite3 *db, const char *path, const char *name, bool *out, struct error *e)
{
	sqlite3_stmt *q = NULL;
	if (sqlite3_prepare_v2(db, "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", -1, &q, NULL) !=
		SQLITE_OK)
		return failed(db, path, e);
	sqlite3_bind_text(q, 1, name, -1, SQLITE_STATIC);
	*out = sqlite3_step(q) == SQLITE_ROW;
	sqlite3_finalize(q);
	return ST_OK;
}

static enum status keep(sqlite3_stmt *q, const char *path, enum op_class (*class_of)(const char *),
	struct trace_set *set, struct error *e)
{
	const char *name = (const char *)sqlite3_column_text(q, 5);
	if (sqlite3_column_type(q, 0) == SQLITE_NULL || sqlite3_column_type(q, 1) == SQLITE_NULL ||
		sqlite3_column_int64(q, 1) < sqlite3_column_int64(q, 0)) {
		set->events_left_out++;
		return ST_OK;
	}
	struct traced_gpu *g = trace_gpu(set, path, sqlite3_column_int64(q, 2), sqlite3_column_int64(q, 3));
	struct traced t = {.start_ns = sqlite3_column_int64(q, 0),
		.end_ns = sqlite3_column_int64(q, 1),
		.stream = sqlite3_column_int(q, 4),
		.launch_ns = TRACE_NOT_LAUNCHED};
	if (sqlite3_column_type(q, 6) != SQLITE_NULL)
		t.launch_ns = sqlite3_column_int64(q, 6);
	if (!g || !trace_intern(set, name ? name : "unnamed", class_of, &t.name))
		return error_nomem(e, "a trace");
	t.class_ = set->names.at[t.name]->class_;
	return vec_push(&g->work, t) ? ST_OK : error_nomem(e, "a trace");
}

static enum status run_query(sqlite3 *db, const char *path, size_t i, struct trace_set *set, struct error *e)
{
	sqlite3_stmt *q = NULL;
	if (sqlite3_prepare_v2(db, queries[i].query, -1, &q, NULL) != SQLITE_OK)
		return failed(db, path, e);
	int rc = SQLITE_DONE;
	enum status st = ST_OK;
	while (!st && (rc = sqlite3_step(q)) == SQLITE_ROW)
		st = keep(q, path, queries[i].class_of, set, e);
	if (!st && rc != SQLITE_DONE)
		st = failed(db, path, e);
	sqlite3_finalize(q);
	return st;
}

/* Counts CUDA graphs that were traced as wholes, the default of `nsys profile` (--cuda-graph-trace=graph): one row a
 * launch, and no row for its kernels. */
static enum status count_graphs(sqlite3 *db, const char *path, struct trace_set *set, struct error *e)
{
	sqlite3_stmt *q = NULL;
	bool there;
	enum status st = has_table(db, path, "CUPTI_ACTIVITY_KIND_GRAPH_TRACE", &there, e);
	if (st || !there)
		return st;
	if (sqlite3_prepare_v2(db, "SELECT count(*) FROM CUPTI_ACTIVITY_KIND_GRAPH_TRACE", -1, &q, NULL) != SQLITE_OK)
		return failed(db, path, e);
	if (sqlite3_step(q) == SQLITE_ROW)
		set->whole_graphs += sqlite3_column_int64(q, 0);
	else
		st = failed(db, path, e);
	sqlite3_finalize(q);
	return st;
}

/* The first query of each table whose needs are met. */
static enum status read_tables(sqlite3 *db, const char *path, struct trace_set *set, struct error *e)
{
	const char *done = "";
	enum status st = ST_OK;
	for (size_t i = 0; !st && i < COUNT(queries); i++) {
		bool there = false, met = true;
		if (strcmp(done, queries[i].table) == 0 || (st = has_table(db, path, queries[i].table, &there, e)) ||
			!there)
			continue;
		if (queries[i].needs && ((st = has_table(db, path, queries[i].needs, &met, e)) || !met))
			continue;
		done = queries[i].table;
		st = run_query(db, path, i, set, e);
	}
	return st;
}

enum status nsys_read(const char *path, struct trace_set *set, struct error *e)
{
	sqlite3 *db = NULL;
	enum status st = sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK ? ST_OK
	                                                                                     : failed(db, path, e);
	if (!st)
		st = read_tables(db, path, set, e);
	if (!st)
		st = count_graphs(db, path, set, e);
	sqlite3_close(db);
	return st;
}
