/* Kinds of context parallelism, which share each sequence among ranks (step/builder/context.c says how each works).
 * Code reads the columns; it does not compare kinds. */
#ifndef STEPSIM_STEP_CONTEXT_KIND_H
#define STEPSIM_STEP_CONTEXT_KIND_H

#include <stdbool.h>

/* X(id, word of parallel.context_kind, passes_keys, mirrors, deals_heads, executed): struct context_traits says what
 * the columns mean. */
#define CONTEXT_KINDS(X) \
	X(RING, "ring", true, true, false, true) \
	X(RING_CONTIGUOUS, "ring_contiguous", true, false, false, false) \
	X(ALL_GATHER, "all_gather", false, true, false, true) \
	X(ALL_TO_ALL, "all_to_all", false, false, true, false)

#define CONTEXT_ID(id, ...) CTX_##id,
enum context_kind { CONTEXT_KINDS(CONTEXT_ID) CTX_COUNT };
#undef CONTEXT_ID

struct context_traits {
	const char *name;
	bool passes_keys; /* keys and values travel from rank to rank, while attention works on those that arrived */
	bool mirrors;     /* under a causal mask a rank has two pieces of each sequence, the i-th and the i-th from the
	                     end, so that all ranks have as many pairs; else one, and the last rank has the most */
	bool deals_heads; /* each rank has the whole sequence of a part of the heads; else all heads of a part of it */
	bool executed;    /* the executor runs it; else it is predicted alone */
};

extern const struct context_traits context_traits[CTX_COUNT];

#endif
