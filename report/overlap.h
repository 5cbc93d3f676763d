/* `stepsim overlap`: compute, communication and their overlap in the traces of a real run. The terms are those of a
 * predicted step (step/timeline.h), each per step.
 *
 * The window: from the first GPU work that was launched in a marked step on, as long as the marked steps lasted on the
 * host (longer if the GPU ended later); without marks, all GPU work, as one step. Each instant belongs to the first of
 * optimizer, compute, communication, copy that any stream works on, else it is idle. Communication kernels wait for
 * late ranks inside: comm_s counts that as moving, and the rank for which the others wait is the one that spends least
 * in them. */
#ifndef STEPSIM_REPORT_OVERLAP_H
#define STEPSIM_REPORT_OVERLAP_H

#include <jansson.h>
#include <stdio.h>

#include "report/import/trace.h"
#include "step/result.h"

struct overlap_gpu {
	const struct traced_gpu *gpu; /* borrowed */
	char label[64];               /* "rank 3", or the file's name and the GPU's number */
	int64_t steps;                /* marked; 0: none, and all figures are of the whole trace */
	struct breakdown time;        /* of one step; class_n counts kernels of the window; overlap: NAN without
	                                 communication, when there is nothing to hide */
	double launch_gap_s;          /* idle time before kernels that were launched after the GPU had run dry */
	int64_t gaps, launch_gaps;    /* idle stretches of the window, and those with a late launch */
	bool launches_known;
};

struct overlap_kernel {
	const char *name; /* borrowed of the trace */
	enum op_class class_;
	int64_t calls; /* all GPUs, all windows */
	double time_s; /* the same */
};

#define OVERLAP_TOP 12

struct overlap {
	struct overlap_gpu *gpus; /* owned */
	size_t n;
	struct overlap_kernel top[OVERLAP_TOP]; /* longest first */
	size_t n_top;
	double kernels_s;                         /* of all of them */
	size_t slowest;                           /* the GPU with the longest time outside of exposed communication */
	double skew;                              /* how much longer than the median GPU's that is */
	double mean_class_s[CLASS_COUNT], step_s; /* of one step, mean over GPUs */
	int64_t files_cut, events_left_out, whole_graphs; /* as in struct trace_set */
};

/* Evaluates the set, which is borrowed. ST_INPUT: a GPU has no work inside its steps. The caller frees `out` with
 * overlap_free. */
enum status overlap_of(const struct trace_set *set, struct overlap *out, struct error *e);
void overlap_free(struct overlap *o);

/* Print or return the result. `predicted` is the prediction to compare class by class, or NULL. */
enum status report_overlap_text(const struct overlap *o, const struct result *predicted, FILE *out, struct error *e);
json_t *report_overlap_json(const struct overlap *o, const struct result *predicted); /* NULL: out of memory */

#endif
