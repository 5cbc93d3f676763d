/* The output of nccl-tests (github.com/NVIDIA/nccl-tests, src/common.cu; rccl-tests and `stepsim bench` print the same
 * table): what ran, and one time a size. A file may hold several tests one after another, lines of NCCL and prefixes of
 * a launcher ("[1,0]<stdout>:", "0: "). The JSON that they write holds the same (report/import/nccl_json.h); lines
 * count in the table then. */
#ifndef STEPSIM_REPORT_IMPORT_NCCL_LOG_H
#define STEPSIM_REPORT_IMPORT_NCCL_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "base/vec.h"

struct nccl_log_row {
	uint64_t bytes; /* as nccl-tests counts: of the whole buffer */
	char type[16];  /* "float" */
	double time_s;  /* out of place; in place where only that was timed */
	double busbw_Bps;
	int line; /* in the file, from 1 */
};

/* One test. */
struct nccl_log {
	char path[512];
	char collective[24]; /* "all_reduce" */
	char gpu[96];        /* as the driver shows it: "NVIDIA H100 80GB HBM3"; "" where the log names none */
	int64_t ranks, hosts;
	bool even;         /* as many ranks on each host */
	bool one_process;  /* one process drives all GPUs of a host */
	bool shared;       /* two ranks have the same GPU: the times say nothing of the links */
	int version;       /* of NCCL: 21903 is 2.19.3; 0: not printed */
	char transport[8]; /* what NCCL said it uses between hosts: "IB", "RoCE", "EFA", "TCP"; "": it did not */
	VEC(struct nccl_log_row) rows;
};
typedef VEC(struct nccl_log) nccl_logs;

/* Returns whether the file looks like such an output: it is JSON, or a line names the columns algbw and busbw behind
 * '#'. False also where it cannot be read. */
bool nccl_log_is(const char *path);

/* Appends the file's tests to *out. ST_INPUT with file:line: it cannot be read, holds no row, its ranks or its
 * collective are not told. The caller frees *out with nccl_logs_free, also after a failure. */
enum status nccl_log_read(const char *path, nccl_logs *out, struct error *e);
void nccl_logs_free(nccl_logs *logs);

#endif
