/* Algorithms and protocols of collectives, a row each. The words of a config, the checks, what a run forces upon NCCL
 * and the dispatch of prices read the row and compare no names. */
#ifndef STEPSIM_STEP_ALGORITHM_H
#define STEPSIM_STEP_ALGORITHM_H

#include <stdbool.h>
#include <stddef.h>

/* X(id, word of collectives.protocol, nccl, price): `nccl` is the value of NCCL_PROTO, NULL: NCCL chooses; `price`
 * is the protocol in sim/price/nccl.h, -1: the cheapest. */
#define PROTOCOLS(X) \
	X(AUTO, "auto", NULL, -1) \
	X(LL, "ll", "LL", NCCL_LL) \
	X(LL128, "ll128", "LL128", NCCL_LL128) \
	X(SIMPLE, "simple", "Simple", NCCL_SIMPLE)

/* X(id, word of collectives.algorithm, nccl, protocol, portable, pricer, price): struct algorithm_traits says what the
 * first columns mean. price_<pricer> (sim/price/collective.h) prices it; `price` is the algorithm of sim/price/nccl.h
 * that it is there, -1: the cheapest. NCCL's values: User Guide, "Environment Variables", NCCL_ALGO; its protocols:
 * src/graph/tuning.cc, ncclTopoTuneModel. */
#define ALGORITHMS(X) \
	X(AUTO, "auto", "", AUTO, true, flat, -1) \
	X(RING, "ring", "Ring", AUTO, true, flat, NCCL_RING) \
	X(TREE, "tree", "allreduce:tree", AUTO, false, flat, NCCL_TREE) \
	X(NVLS, "nvls", "allreduce:nvls,nvlstree;allgather:nvls;reducescatter:nvls", SIMPLE, false, flat, NCCL_NVLS) \
	X(COLLNET, "collnet", "allreduce:collnetdirect,collnetchain", SIMPLE, false, flat, NCCL_COLLNET_DIRECT) \
	X(PAT, "pat", "allgather:pat;reducescatter:pat", SIMPLE, false, flat, NCCL_PAT) \
	X(HIERARCHICAL, "hierarchical", NULL, AUTO, true, hierarchical, -1)

#define PROTOCOL_ID(id, ...) PROTO_##id,
enum protocol { PROTOCOLS(PROTOCOL_ID) PROTO_COUNT };
#undef PROTOCOL_ID
#define ALGORITHM_ID(id, ...) ALGO_##id,
enum algorithm { ALGORITHMS(ALGORITHM_ID) ALGO_COUNT };
#undef ALGORITHM_ID

struct protocol_traits {
	const char *name;
	const char *nccl;
};

struct algorithm_traits {
	const char *name;
	const char *nccl;       /* value of NCCL_ALGO that forces it; "": NCCL chooses; NULL: predicted, not executed */
	enum protocol protocol; /* the only one that it exists with; AUTO: any */
	bool portable;          /* runs without NCCL too: on other makers' GPUs and on cores */
};

extern const struct protocol_traits protocol_traits[PROTO_COUNT];
extern const struct algorithm_traits algorithm_traits[ALGO_COUNT];

/* Forces an algorithm and a protocol upon collectives. {0}: neither. */
struct collective_choice {
	enum algorithm algorithm;
	enum protocol protocol;
};
#define COLLECTIVE_ANY ((struct collective_choice){ALGO_AUTO, PROTO_AUTO})

/* Names of the algorithms, but for auto, that exist with every protocol, in the order of the table: "ring, tree".
 * Returns buf. */
#define ALGORITHM_NAMES 96
char *algorithm_names_any_protocol(char buf[ALGORITHM_NAMES]);

#endif
