/* Outputs of nccl-tests in the forms of its versions and launchers, written here. */
#include "tests/unit/harness.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "report/import/nccl_log.h"

#define HEAD_NEW \
	"#       size         count      type   redop    root     time   algbw   busbw #wrong " \
	"    time   algbw   busbw " \
	"#wrong\n"
#define HEAD_OLD \
	"#       size         count      type   redop     time   algbw   busbw  error     time" \
	"   algbw   busbw  error\n"
#define RANK(i, host, device, bus, pid) \
	"#  Rank  " #i " Group  0 Pid " #pid " on " host " device  " #device " [" bus "] NVIDIA H100 80GB HBM3\n"

static char path[64];

static const char *save(const char *text)
{
	strcpy(path, "/tmp/stepsim_test_nccl_log_XXXXXX");
	const int fd = mkstemp(path);
	CU_ASSERT_FATAL(fd >= 0);
	CU_ASSERT_EQUAL(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
	return path;
}

static enum status read_text(const char *text, nccl_logs *logs, struct error *e)
{
	*logs = (nccl_logs){0};
	*e = (struct error){0};
	save(text);
	const enum status st = nccl_log_read(path, logs, e);
	CU_ASSERT_EQUAL(nccl_log_is(path),
		strstr(text, "algbw") || *text == '{' || *text == '['); /* no table is JSON */
	unlink(path);
	return st;
}

/* Two tests in one file, behind mpirun's prefixes, on two hosts; the second has no time out of place. */
static void test_new(void)
{
	nccl_logs logs;
	struct error e;
	CU_ASSERT_EQUAL_FATAL(
		read_text("some noise\n[1,0]<stdout>:# nccl-tests version 2.17.6"
			  " nccl-headers=22807 nccl-library=22807\n"
			  "[1,0]<stdout>:# Collective test starting: all_gather_perf\n"
			  "[1,0]<stdout>:# Using devices\n"
			  "[1,0]<stdout>:" RANK(0, "a", 0, "0x19", 5) "[1,0]<stdout>:" RANK(1, "a", 1, "0x3b",
				  6) "[1,0]<stdout>:" RANK(2, "b", 0, "0x19", 5) "[1,0]<stdout>:" RANK(3, "b", 1,
				  "0x3b",
				  6) "a:5:9 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/RoCE [RO]; OOB eth0:10.0.0.1<0>\n"
				     "[1,0]<stdout>:" HEAD_NEW
				     "[1,0]<stdout>:     1048576        262144     float    none      -1   "
				     " 50.00   20.97   15.73      "
				     "0    51.00   20.56   15.42      0\n"
				     "[1,0]<stdout>:     2097152        524288     float    none     "
				     " -1 a: Test CUDA failure\n"
				     "[1,0]<stdout>:# Avg bus bandwidth    : 15.5\n"
				     "# Collective test starting: reduce_scatter_perf_mpi\n" HEAD_NEW
				     "  8589934592    2147483648  bfloat16     sum      -1      N/A     N/A "
				     "    N/A    N/A    81958  "
				     "104.81   78.61    N/A\n",
			&logs, &e),
		ST_OK);
	CU_ASSERT_EQUAL_FATAL(logs.n, 2);
	const struct nccl_log *l = &logs.at[0];
	CU_ASSERT_STRING_EQUAL(l->collective, "all_gather");
	CU_ASSERT_STRING_EQUAL(l->gpu, "NVIDIA H100 80GB HBM3");
	CU_ASSERT_STRING_EQUAL(l->transport, "RoCE");
	CU_ASSERT_EQUAL(l->ranks, 4);
	CU_ASSERT_EQUAL(l->hosts, 2);
	CU_ASSERT_TRUE(l->even);
	CU_ASSERT_FALSE(l->one_process);
	CU_ASSERT_FALSE(l->shared);
	CU_ASSERT_EQUAL(l->version, 22807);
	CU_ASSERT_EQUAL_FATAL(l->rows.n, 1);
	CU_ASSERT_EQUAL(l->rows.at[0].bytes, 1048576);
	CU_ASSERT_DOUBLE_EQUAL(l->rows.at[0].time_s, 50e-6, 1e-12);
	CU_ASSERT_DOUBLE_EQUAL(l->rows.at[0].busbw_Bps, 15.73e9, 1);
	CU_ASSERT_EQUAL(l->rows.at[0].line, 11);
	l = &logs.at[1];
	CU_ASSERT_STRING_EQUAL(l->collective, "reduce_scatter");
	CU_ASSERT_DOUBLE_EQUAL(l->rows.at[0].time_s, 81958e-6, 1e-9);
	CU_ASSERT_STRING_EQUAL(l->rows.at[0].type, "bfloat16");
	nccl_logs_free(&logs);
}

/* Without a column for the root; one process for all GPUs; srun's labels; the collective by its bandwidths. */
static void test_old(void)
{
	nccl_logs logs;
	struct error e;
	CU_ASSERT_EQUAL_FATAL(read_text("0: # Using devices\n"
					"0: #   Rank  0 Pid   46 on       box device  0 [0x00] Tesla T4\n"
					"0: #   Rank  1 Pid   46 on       box device  1 [0x00] Tesla T4\n"
					"0: #   Rank  2 Pid   46 on       box device  2 [0x00] Tesla T4\n"
					"0: NCCL version 2.8.3+cuda11.0\n"
					"0: " HEAD_OLD
					"0:    104857600      26214400     float     sum   202872    0.52    0.69   "
					" N/A   224616    0.47    "
					"0.62    N/A\n",
				      &logs, &e),
		ST_OK);
	CU_ASSERT_EQUAL_FATAL(logs.n, 1);
	CU_ASSERT_STRING_EQUAL(logs.at[0].collective, "all_reduce");
	CU_ASSERT_STRING_EQUAL(logs.at[0].gpu, "Tesla T4");
	CU_ASSERT_TRUE(logs.at[0].one_process);
	CU_ASSERT_FALSE(logs.at[0].shared);
	CU_ASSERT_EQUAL(logs.at[0].hosts, 1);
	CU_ASSERT_EQUAL(logs.at[0].version, 20803);
	CU_ASSERT_DOUBLE_EQUAL(logs.at[0].rows.at[0].time_s, 0.202872, 1e-9);
	nccl_logs_free(&logs);
}

static void test_shared_uneven(void)
{
	nccl_logs logs;
	struct error e;
	CU_ASSERT_EQUAL_FATAL(read_text("$ ./build/all_reduce_perf -b 8\n" RANK(0, "a", 0, "0000:02:00", 5)
						RANK(1, "a", 0, "0000:02:00", 6) RANK(2, "b", 0, "0000:02:00", 6)
							HEAD_NEW "8 2 float sum -1 10.0 0.00"
								 " 0.00 0 10.0 0.00 0.00 0\n",
				      &logs, &e),
		ST_OK);
	CU_ASSERT_TRUE(logs.at[0].shared);
	CU_ASSERT_FALSE(logs.at[0].even);
	nccl_logs_free(&logs);
}

/* JSON of nccl-tests: one process with two GPUs, of which it names one; the second row has no time out of place. Then
 * that of rccl-tests, with a row for each place. */
static void test_json(void)
{
	nccl_logs logs;
	struct error e;
	CU_ASSERT_EQUAL_FATAL(
		read_text(
			"{\"version\": 2, \"args\": [\"/opt/algbw/all_gather_perf\", \"-g\", \"2\"], "
			"\"nccl_version\": 22807,"
			"\"config\": {\"nthreads\": 1, \"ngpus\": 2, \"devices\": [{\"rank\": 0, \"pid\": 7, "
			"\"hostname\": \"a\", "
			"\"device\": 0, \"device_hex\": \"0000:18:00\", \"device_info\": \"NVIDIA H100 80GB HBM3\"}]},"
			"\"results\": [{\"size\": 1048576, \"count\": 262144, \"type\": \"float\", \"redop\": "
			"\"none\", "
			"\"out_of_place\": {\"time\": 50.0, \"alg_bw\": 20.97, \"bus_bw\": 10.49, \"nwrong\": 0.0},"
			"\"in_place\": {\"time\": 40.0, \"alg_bw\": 26, \"bus_bw\": 13}},"
			"{\"size\": 2097152, \"count\": 524288, \"type\": \"float\", \"redop\": \"none\", "
			"\"out_of_place\": null,"
			"\"in_place\": {\"time\": 80.0, \"alg_bw\": 26.21, \"bus_bw\": 13.11}}]}",
			&logs, &e),
		ST_OK);
	CU_ASSERT_EQUAL_FATAL(logs.n, 1);
	CU_ASSERT_STRING_EQUAL(logs.at[0].collective, "all_gather");
	CU_ASSERT_STRING_EQUAL(logs.at[0].gpu, "NVIDIA H100 80GB HBM3");
	CU_ASSERT_EQUAL(logs.at[0].ranks, 2);
	CU_ASSERT_EQUAL(logs.at[0].hosts, 1);
	CU_ASSERT_TRUE(logs.at[0].one_process);
	CU_ASSERT_FALSE(logs.at[0].shared);
	CU_ASSERT_EQUAL(logs.at[0].version, 22807);
	CU_ASSERT_EQUAL_FATAL(logs.at[0].rows.n, 2);
	CU_ASSERT_DOUBLE_EQUAL(logs.at[0].rows.at[0].time_s, 50e-6, 1e-12);
	CU_ASSERT_DOUBLE_EQUAL(logs.at[0].rows.at[1].time_s, 80e-6, 1e-12);
	CU_ASSERT_DOUBLE_EQUAL(logs.at[0].rows.at[1].busbw_Bps, 13.11e9, 1);
	nccl_logs_free(&logs);
#define RCCL(size, place, time) \
	"{\"name\": \"ReduceScatter\", \"nodes\": 2, \"ranks\": 4, \"ranksPerNode\": 2, \"gpusPerRank\": 1, " \
	"\"size\": " size ", \"type\": \"half\", \"redop\": \"sum\", \"inPlace\": " place ", \"time\": " time \
	", \"algBw\": 20.0, \"busBw\": 15.0, \"wrong\": \"0\"}"
	CU_ASSERT_EQUAL_FATAL(read_text("[" RCCL("1024", "0", "9.5") ", {\"algbw\": 1, \"inPlace\": 1}," RCCL("1024",
						"1", "9.0") "," RCCL("2048", "0", "10.5") "," RCCL("4096", "0",
						"0.0") "]", /* the last was not run */
				      &logs, &e),
		ST_OK);
	CU_ASSERT_EQUAL_FATAL(logs.n, 1);
	CU_ASSERT_STRING_EQUAL(logs.at[0].collective, "reduce_scatter");
	CU_ASSERT_EQUAL(logs.at[0].ranks, 4);
	CU_ASSERT_EQUAL(logs.at[0].hosts, 2);
	CU_ASSERT_EQUAL_FATAL(logs.at[0].rows.n, 2);
	CU_ASSERT_DOUBLE_EQUAL(logs.at[0].rows.at[1].time_s, 10.5e-6, 1e-12);
	nccl_logs_free(&logs);
}

static void test_refused(void)
{
	static const struct {
		const char *text, *reason;
	} cases[] = {
		{"", "no row of nccl-tests' table"},
		{"a,b\n1,2\n", "no row of nccl-tests' table"},
		{HEAD_NEW "8 2 float sum -1 10.0 0.00 0.00 0 10.0 0.00 0.00 0\n", ":1: a table without the lines"},
		{RANK(0, "a", 0, "0x19", 5) RANK(1, "a", 1, "0x1a", 5) HEAD_NEW
			"1048576 2 float none -1 10.0 104.0 52.00 0 10.0 104.0 52.00 0\n",
			":4: which collective this table is of is not told"},
		{RANK(0, "a", 0, "0x19", 5) HEAD_NEW "8 2 float sum -1 nan 0 0 0 nan 0 0 0\n",
			"no row of nccl-tests' table"},
		{"{\"args\": [\"x\"],\n \"config\": {", ":2:12: string or '}' expected near end of file"},
		{"{\"results\": []}", ": JSON of neither nccl-tests"},
		{"[{\"busBw\": 1, \"ranks\": 65536, \"gpusPerRank\": 17}]", ": its tests name more than 1048576 ranks"},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		nccl_logs logs;
		struct error e;
		CU_ASSERT_EQUAL(read_text(cases[i].text, &logs, &e), ST_INPUT);
		if (!strstr(e.text, cases[i].reason)) {
			printf("\n%s: %s\n", cases[i].text, e.text);
			CU_FAIL("the reason");
		}
		nccl_logs_free(&logs);
	}
	nccl_logs logs = {0};
	struct error e = {0};
	CU_ASSERT_EQUAL(nccl_log_read("/nonexistent/nccl.log", &logs, &e), ST_INPUT);
	CU_ASSERT_FALSE(nccl_log_is("/nonexistent/nccl.log"));
}

UNIT_MAIN("nccl_log", {"two tests on two hosts", test_new}, {"an old version", test_old},
	{"a shared GPU, uneven hosts", test_shared_uneven}, {"JSON", test_json}, {"refused", test_refused})
