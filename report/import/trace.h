/* What somebody's own training ran on its GPUs, as a profiler wrote it down: PyTorch's (Kineto) Chrome traces, plain or gzip, one a rank; Nsight Systems' SQLite exports, one or more GPUs each. */
#ifndef STEPSIM_REPORT_IMPORT_TRACE_H
#define STEPSIM_REPORT_IMPORT_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "base/vec.h"
#include "step/program.h"

#define TRACE_NOT_LAUNCHED INT64_MIN

/* One kernel, copy or fill on a GPU. Times in nanoseconds of the trace's own clock. */
struct traced {
	int64_t start_ns, end_ns;
	int64_t launch_ns; /* when the host launched it; TRACE_NOT_LAUNCHED: the trace does not say */
	uint32_t name;     /* in trace_set.names */
	uint32_t correlation; /* of the launch; 0: none */
	int32_t stream;
	uint8_t class_;    /* enum op_class */
};

struct traced_launch {
	uint32_t correlation;
	int64_t start_ns;
};

/* A training step as the profiler's schedule marked it on the host (ProfilerStep#N). */
struct traced_step {
	int64_t start_ns, end_ns;
};

/* One GPU of one file. */
struct traced_gpu {
	char path[512];
	int64_t rank, world; /* as the trace says; -1: it does not */
	int64_t process, device;
	VEC(struct traced) work; /* by start */
	VEC(struct traced_step) steps; /* by start */
	VEC(struct traced_launch) launches;
};

struct traced_name {
	char *text;
	uint8_t class_;
	uint32_t index;
};

struct trace_set {
	VEC(struct traced_gpu) gpus; /* by rank where all say theirs, else in the order of the files */
	VEC(struct traced_name *) names;
	void *name_tree;
	int64_t events_left_out; /* kernels without a time or a duration */
	int64_t files_cut;       /* that ended inside an event: what stood before it counts */
	int64_t whole_graphs;    /* launches of CUDA graphs that were traced as one, without their kernels */
};

/* Bytes read of all files so far, for a progress line. */
typedef void trace_progress(void *ctx, uint64_t read_B);

/* Reads a file into the set, whatever of the two it is. ST_INPUT: not readable, neither format, or no GPU work in it. The set is freed by trace_free on failure too. */
enum status trace_read(const char *path, struct trace_set *set, trace_progress *progress, void *ctx, struct error *e);
/* After the last file: sorts, and finds each kernel's launch. ST_INPUT when two files are of the same rank. */
enum status trace_finish(struct trace_set *set, struct error *e);
void trace_free(struct trace_set *set);

const char *trace_name(const struct trace_set *set, const struct traced *t);

/* ---- for the readers ---- */

/* The GPU's entry, made when there is none. NULL: out of memory. Valid until the next one is made. */
struct traced_gpu *trace_gpu(struct trace_set *set, const char *path, int64_t process, int64_t device);
/* The name's index, its class found by trace_class. False: out of memory. */
bool trace_intern(struct trace_set *set, const char *name, enum op_class (*class_of)(const char *name), uint32_t *index);

enum status kineto_read(const char *path, struct trace_set *set, trace_progress *progress, void *ctx, struct error *e);
enum status nsys_read(const char *path, struct trace_set *set, struct error *e);

/* What a kernel does, by its name: patterns in a table (classes.c). What none matches is elementwise. */
enum op_class trace_kernel_class(const char *name);
/* "Memcpy HtoD (Pinned -> Device)", "Memset (Device)", in both profilers' words. Copies between GPUs are messages. */
enum op_class trace_copy_class(const char *name);

#endif
