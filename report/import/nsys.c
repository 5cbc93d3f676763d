/* Nsight Systems' SQLite export (NVIDIA, Nsight Systems User Guide, "SQLite Schema Reference"): tables
 * CUPTI_ACTIVITY_KIND_KERNEL, _MEMCPY, _MEMSET, _RUNTIME, names in StringIds. A table is missing where nothing of its
 * kind was traced, and its columns differ between versions: the documentation says that they may change, so each query
 * is made of those that are there. A process is the upper bits of globalTid; correlation ids are a process's own. Steps
 * are not marked. */
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "report/import/trace.h"

#define KERNELS "CUPTI_ACTIVITY_KIND_KERNEL"
#define LAUNCHES "CUPTI_ACTIVITY_KIND_RUNTIME"
#define QUERY_MAX 1024

/* What lies on a GPU, and its name: of a kernel the first column that is there, else an expression over `needs`. */
static const struct {
	const char *table, *needs, *name;
	enum op_class (*class_of)(const char *name);
} kinds[] = {
	{KERNELS, NULL, NULL, trace_kernel_class},
	{"CUPTI_ACTIVITY_KIND_MEMCPY", "copyKind",
		"CASE k.copyKind WHEN 1 THEN 'Memcpy HtoD' WHEN 2 THEN 'Memcpy DtoH' WHEN 8 THEN 'Memcpy DtoD' "
		"WHEN 10 THEN 'Memcpy PtoP' ELSE 'Memcpy' END",
		trace_copy_class},
	{"CUPTI_ACTIVITY_KIND_MEMSET", NULL, "'Memset'", trace_copy_class},
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

static enum status has_column(sqlite3 *db, const char *path, const char *table, const char *name, bool *out,
	struct error *e)
{
	sqlite3_stmt *q = NULL;
	if (sqlite3_prepare_v2(db, "SELECT 1 FROM pragma_table_info(?) WHERE name = ?", -1, &q, NULL) != SQLITE_OK)
		return failed(db, path, e);
	sqlite3_bind_text(q, 1, table, -1, SQLITE_STATIC);
	sqlite3_bind_text(q, 2, name, -1, SQLITE_STATIC);
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

/* Columns of a table that a query takes, and what stands for one that is not there. */
enum column { PROCESS, DEVICE, STREAM, CORRELATION, DEMANGLED, SHORT, NAME, COLUMN_COUNT };
static const struct {
	const char *name, *missing;
} columns[COLUMN_COUNT] = {{"globalPid", "0"}, {"deviceId", "0"}, {"streamId", "0"}, {"correlationId", NULL},
	{"demangledName", NULL}, {"shortName", NULL}, {"name", NULL}};

/* Writes the query for start, end, process, device, stream, name, launch; *out is empty where the table has no times
 * or no names. */
static enum status make_query(sqlite3 *db, const char *path, size_t kind, char out[QUERY_MAX], struct error *e)
{
	const char *table = kinds[kind].table;
	bool times[2], has[COLUMN_COUNT], strings = false, launches = false, needed = true;
	enum status st = has_column(db, path, table, "start", &times[0], e);
	if (!st)
		st = has_column(db, path, table, "end", &times[1], e);
	for (size_t c = 0; c < COLUMN_COUNT && !st; c++)
		st = has_column(db, path, table, columns[c].name, &has[c], e);
	if (!st)
		st = has_table(db, path, "StringIds", &strings, e);
	if (!st && has[CORRELATION])
		st = has_column(db, path, LAUNCHES, "correlationId", &launches, e);
	if (!st && launches && has[PROCESS])
		st = has_column(db, path, LAUNCHES, "globalTid", &launches, e);
	if (!st && kinds[kind].needs)
		st = has_column(db, path, table, kinds[kind].needs, &needed, e);
	*out = 0;
	if (st || !times[0] || !times[1] || !needed)
		return st;
	const bool kernel = !kinds[kind].name;
	const enum column named = has[DEMANGLED] && strings ? DEMANGLED : has[SHORT] && strings ? SHORT : NAME;
	if (kernel && !has[named])
		return ST_OK;
	char name[128];
	snprintf(name, sizeof name, named == NAME ? "k.name" : "(SELECT value FROM StringIds WHERE id = k.%s)",
		columns[named].name);
	snprintf(out, QUERY_MAX, "SELECT k.start, k.\"end\", %s, %s, %s, %s, %s FROM %s k%s%s",
		has[PROCESS] ? "k.globalPid" : columns[PROCESS].missing,
		has[DEVICE] ? "k.deviceId" : columns[DEVICE].missing,
		has[STREAM] ? "k.streamId" : columns[STREAM].missing, kernel ? name : kinds[kind].name,
		kernel && launches ? "r.start" : "NULL", table,
		kernel && launches ? " LEFT JOIN " LAUNCHES " r ON r.correlationId = k.correlationId" : "",
		kernel && launches && has[PROCESS] ? " AND (r.globalTid & ~16777215) = k.globalPid" : "");
	return ST_OK;
}

static enum status run_query(sqlite3 *db, const char *path, const char *query, size_t kind, struct trace_set *set,
	struct error *e)
{
	sqlite3_stmt *q = NULL;
	if (sqlite3_prepare_v2(db, query, -1, &q, NULL) != SQLITE_OK)
		return failed(db, path, e);
	int rc = SQLITE_DONE;
	enum status st = ST_OK;
	while (!st && (rc = sqlite3_step(q)) == SQLITE_ROW)
		st = keep(q, path, kinds[kind].class_of, set, e);
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

static enum status read_tables(sqlite3 *db, const char *path, struct trace_set *set, struct error *e)
{
	enum status st = ST_OK;
	for (size_t i = 0; !st && i < COUNT(kinds); i++) {
		char query[QUERY_MAX];
		bool there = false;
		if ((st = has_table(db, path, kinds[i].table, &there, e)) || !there ||
			(st = make_query(db, path, i, query, e)))
			continue;
		st = *query ? run_query(db, path, query, i, set, e)
		            : error_set(e, ST_INPUT,
				      "%s: its table %s has no columns start and end, or none of demangledName, "
				      "shortName and name: an export of another schema",
				      path, kinds[i].table);
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
