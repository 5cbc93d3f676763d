#include "step/algorithm.h"

#include <stdio.h>
#include <string.h>

#define PROTOCOL(id, name, nccl, price) [PROTO_##id] = {name, nccl},
#define ALGORITHM(id, name, nccl, protocol, portable, pricer, price) \
	[ALGO_##id] = {name, nccl, PROTO_##protocol, portable},

const struct protocol_traits protocol_traits[] = {PROTOCOLS(PROTOCOL)};
const struct algorithm_traits algorithm_traits[] = {ALGORITHMS(ALGORITHM)};

char *algorithm_names_any_protocol(char buf[ALGORITHM_NAMES])
{
	buf[0] = '\0';
	for (int a = 0; a < ALGO_COUNT; a++) {
		const size_t len = strlen(buf);
		if (a != ALGO_AUTO && algorithm_traits[a].protocol == PROTO_AUTO)
			snprintf(buf + len, ALGORITHM_NAMES - len, "%s%s", len ? ", " : "", algorithm_traits[a].name);
	}
	return buf;
}
