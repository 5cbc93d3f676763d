/* Traces of real training runs: PyTorch's (Kineto) Chrome traces, plain or gzip, one a rank; SQLite exports of Nsight
 * Systems with one or more GPUs each. */
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
	int64_t launch_ns;    /* time of its launch on the host, or TRACE_NOT_LAUNCHED if the trace does not say */
	uint32_t name;        /* in trace_set.names */
	uint32_t correlation; /* of the launch; 0: none */
	int32_t stream;
	uint8_t class_; /* enum op_class */
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
	VEC(struct traced) work;       /* by start */
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
	int64_t files_cut;       /* files that end inside an event; the events before it count */
	int64_t whole_graphs;    /* launches of CUDA graphs that were traced as one, without their kernels */
};

/* Bytes read of all files so far, for a progress line. */
typedef void trace_progress(void *ctx, uint64_t read_B);

/* Reads a file of either format into the set. ST_INPUT: it is not readable, has neither format, or no GPU work. The
 * caller frees the set with trace_free, also after a failure. */
enum status trace_read(const char *path, struct trace_set *set, trace_progress *progress, void *ctx, struct error *e);
/* Sorts the set and finds each kernel's launch, after the last file. ST_INPUT if two files are of the same rank. */
enum status trace_finish(struct trace_set *set, struct error *e);
void trace_free(struct trace_set *set);

/* ---- for the readers ---- */

/* Returns the GPU's entry, which it adds if there is none; NULL when out of memory. Valid until the next one is added.
 */
struct traced_gpu *trace_gpu(struct trace_set *set, const char *path, int64_t process, int64_t device);
/* Finds or adds a name and returns its index; `class_of` gives a new name's class. False: out of memory. */
bool trace_intern(struct trace_set *set, const char *name, enum op_class (*class_of)(const char *name),
	uint32_t *index);

enum status kineto_read(const char *path, struct trace_set *set, trace_progress *progress, void *ctx, struct error *e);
enum status nsys_read(const char *path, struct trace_set *set, struct error *e);

/* Returns the class of a kernel by its name, from a table of patterns (classes.c); elementwise if none matches. */
enum op_class trace_kernel_class(const char *name);
/* Returns the class of a copy or fill by its name in either profiler: "Memcpy HtoD (Pinned -> Device)", "Memset
 * (Device)". Copies between GPUs are messages. */
enum op_class trace_copy_class(const char *name);

#endif
