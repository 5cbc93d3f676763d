/* exec/ as cli/ sees it: one table of functions, found under one symbol of one shared object.
 *
 * The object alone links MPI and BLAS and holds the host's kernels. It is opened when a command executes or measures,
 * so that stepsim predicts where neither library is, and starts in milliseconds. It uses base/, topology/ and step/
 * from the binary that opens it (linked with -rdynamic): there is one copy of each. What the functions do, who owns
 * what and which errors they return stands where they are declared.
 */
#ifndef STEPSIM_EXEC_PLUGIN_H
#define STEPSIM_EXEC_PLUGIN_H

#include "base/version.h"
#include "exec/exec.h"
#include "exec/roofline.h"

#define EXEC_OBJECT "libstepsim_exec.so"
#define EXEC_ENTRY "stepsim_exec_plugin"

#define EXEC_CALLS(X) \
	X(session_open) \
	X(session_timeout) \
	X(session_info) \
	X(session_placement) \
	X(session_agree) \
	X(session_broadcast) \
	X(session_cluster) \
	X(session_message_links) \
	X(session_close) \
	X(session_cpu_steal) \
	X(session_use_gpus) \
	X(session_profile_key) \
	X(gpus_here) \
	X(nccl_env_force) \
	X(calibrate) \
	X(session_pace) \
	X(execute) \
	X(execute_estimates) \
	X(bench) \
	X(roofline_measure) \
	X(exec_blas_kernels) \
	X(exec_versions)

/* The symbol EXEC_ENTRY is the one object of this type. Whoever opens it compares `version` and `layout` with its own
 * first, in this order, and calls nothing if they differ. */
struct exec_plugin {
	const char *version;     /* STEPSIM_VERSION */
	size_t layout;           /* EXEC_LAYOUT */
	bool (*runs_here)(void); /* this processor has the instructions that the kernels use */
#define EXEC_MEMBER(call) __typeof__(call) *call;
	EXEC_CALLS(EXEC_MEMBER)
#undef EXEC_MEMBER
};

/* Differs where the structs that cross the table were laid out differently. */
#define EXEC_LAYOUT \
	(sizeof(struct exec_plugin) + sizeof(struct session_info) + sizeof(struct program) + sizeof(struct role) + \
		sizeof(struct op) + sizeof(struct result) + sizeof(struct timeline) + sizeof(struct profile) + \
		sizeof(struct bench_plan) + sizeof(struct bench_table) + sizeof(struct roofline) + \
		sizeof(struct message_links))

#endif
