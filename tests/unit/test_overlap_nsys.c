/* Traces made here in the format of Nsight Systems, of steps whose overlap is known. */
#include <sqlite3.h>

#include "base/array.h"
#include "tests/unit/harness.h"
#include "tests/unit/overlap_read.h"

#define NEAR(a, b) CU_ASSERT_DOUBLE_EQUAL(a, b, 1e-9)

static void sql(sqlite3 *db, const char *statement)
{
	char *why = NULL;
	if (sqlite3_exec(db, statement, NULL, NULL, &why) != SQLITE_OK) {
		printf("\n%s: %s\n", statement, why);
		CU_FAIL_FATAL("SQL");
	}
}

/* Two processes with a GPU each; correlation ids are those of a process. */
static void test_nsys(void)
{
	struct trace_set set;
	struct overlap o;
	sqlite3 *db = NULL;
	const char *file = in_folder("report.sqlite");
	CU_ASSERT_EQUAL_FATAL(sqlite3_open(file, &db), SQLITE_OK);
	sql(db, "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT NOT NULL)");
	sql(db, "INSERT INTO StringIds VALUES (1, 'ampere_bf16_gemm_128x128'), (2, "
		"'ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL')");
	sql(db, "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER, contextId "
		"INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER, demangledName INTEGER, shortName "
		"INTEGER)");
	sql(db, "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, eventClass INTEGER, globalTid "
		"INTEGER, correlationId INTEGER, nameId INTEGER)");
	sql(db, "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER, end INTEGER, deviceId INTEGER, contextId "
		"INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER, bytes INTEGER, copyKind "
		"INTEGER)");
	sql(db, "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (0, 800000, 0, 1, 7, 1, 16777216, 1, 1), (700000, "
		"1000000, 0, 1, 20, 2, 16777216, 2, 2), (1100000, 1200000, 0, 1, 7, 3, 16777216, 1, 1)");
	sql(db, "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (0, 900000, 1, 1, 7, 1, 33554432, 1, 1)");
	sql(db, "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (-100, 0, 0, 16777221, 1, 0), (-90, 0, 0, 16777221, 2, "
		"0), (1050000, 1060000, 0, 16777221, 3, 0), (-5, 0, 0, 33554433, 1, 0)");
	sql(db, "INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (1000000, 1050000, 0, 1, 9, 4, 16777216, 100, 1)");
	sql(db, "CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start INTEGER, end INTEGER, deviceId INTEGER, graphId "
		"INTEGER, correlationId INTEGER, globalPid INTEGER)");
	sql(db, "INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES (1060000, 1090000, 0, 1, 9, 16777216)");
	sqlite3_close(db);
	CU_ASSERT_EQUAL_FATAL(overlap_read(&file, 1, &set, &o), ST_OK);
	CU_ASSERT_EQUAL_FATAL(o.n, 2);
	CU_ASSERT_EQUAL(o.whole_graphs, 1); /* said, and not counted */
	const struct overlap_gpu *g = &o.gpus[0];
	NEAR(g->time.step_s, 1200e-6);
	NEAR(g->time.compute_s, 900e-6);
	NEAR(g->time.comm_s, 300e-6);
	NEAR(g->time.exposed_comm_s, 200e-6);
	NEAR(g->time.copy_s, 50e-6);
	NEAR(g->time.idle_s, 50e-6);
	CU_ASSERT_EQUAL(g->launch_gaps, 0); /* launched while the copy went on */
	CU_ASSERT_EQUAL(g->time.class_n[CLASS_REDUCE_SCATTER], 1);
	NEAR(o.gpus[1].time.step_s, 900e-6);
	CU_ASSERT_EQUAL(o.gpus[1].gpu->work.at[0].launch_ns, -5);
	release(&set, &o);
}

/* Other versions' columns: no process, short names alone; names in the table itself; none at all. */
static void test_nsys_schemas(void)
{
	static const struct {
		const char *kernels, *row;
		int64_t launch_ns;
	} cases[] = {
		{"start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER, correlationId INTEGER, shortName "
		 "INTEGER",
			"5, 105, 0, 7, 3, 1", 2},
		{"start INTEGER, end INTEGER, name TEXT", "5, 105, 'ncclDevKernel_SendRecv'", TRACE_NOT_LAUNCHED},
		{"begin INTEGER, finish INTEGER, name TEXT", "5, 105, 'a'", 0},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct trace_set set;
		struct overlap o;
		sqlite3 *db = NULL;
		char text_of[512];
		const char *file = in_folder("schema.sqlite");
		unlink(file);
		CU_ASSERT_EQUAL_FATAL(sqlite3_open(file, &db), SQLITE_OK);
		sql(db, "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT)");
		sql(db, "INSERT INTO StringIds VALUES (1, 'ncclDevKernel_SendRecv')");
		sql(db, "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, correlationId INTEGER)");
		sql(db, "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (2, 4, 3)");
		snprintf(text_of, sizeof text_of, "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (%s)", cases[i].kernels);
		sql(db, text_of);
		snprintf(text_of, sizeof text_of, "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (%s)", cases[i].row);
		sql(db, text_of);
		sqlite3_close(db);
		const bool known = i < 2;
		CU_ASSERT_EQUAL(overlap_read(&file, 1, &set, &o), known ? ST_OK : ST_INPUT);
		if (known) {
			CU_ASSERT_EQUAL(set.gpus.at[0].work.at[0].class_, CLASS_SENDRECV);
			CU_ASSERT_EQUAL(set.gpus.at[0].work.at[0].launch_ns, cases[i].launch_ns);
		} else {
			CU_ASSERT_PTR_NOT_NULL(strstr(error.text, "an export of another schema"));
		}
		release(&set, &o);
	}
}

/* Graphs alone, as nsys traces them by default: what to trace instead is said. */
static void test_nsys_graphs(void)
{
	struct trace_set set;
	struct overlap o;
	sqlite3 *db = NULL;
	const char *file = in_folder("graphs.sqlite");
	CU_ASSERT_EQUAL_FATAL(sqlite3_open(file, &db), SQLITE_OK);
	sql(db, "CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start INTEGER, end INTEGER, deviceId INTEGER, graphId "
		"INTEGER, correlationId INTEGER, globalPid INTEGER)");
	sql(db, "INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES (0, 100, 0, 1, 9, 16777216)");
	sqlite3_close(db);
	CU_ASSERT_EQUAL(overlap_read(&file, 1, &set, &o), ST_INPUT);
	CU_ASSERT_PTR_NOT_NULL(strstr(error.text, "--cuda-graph-trace=node"));
	release(&set, &o);
}

static void remove_folder(void)
{
	static const char *const names[] = {"report.sqlite", "graphs.sqlite", "schema.sqlite"};
	remove_files(names, COUNT(names));
}

UNIT_MAIN("overlap, Nsight Systems", {"a report", test_nsys}, {"other schemas", test_nsys_schemas},
	{"whole graphs", test_nsys_graphs}, {"nothing is left behind", remove_folder})
