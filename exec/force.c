#include <stdlib.h>

#include "base/log.h"
#include "exec/exec.h"

/* NCCL's User Guide, "Environment Variables", NCCL_ALGO and NCCL_PROTO. */
static const char *const algorithms[ALGO_COUNT] = {
	[ALGO_RING] = "Ring",
	[ALGO_TREE] = "allreduce:tree",
	[ALGO_NVLS] = "allreduce:nvls,nvlstree;allgather:nvls;reducescatter:nvls",
	[ALGO_COLLNET] = "allreduce:collnetdirect,collnetchain",
	[ALGO_PAT] = "allgather:pat;reducescatter:pat",
};
static const char *const protocols[PROTO_COUNT] = {[PROTO_LL] = "LL", [PROTO_LL128] = "LL128", [PROTO_SIMPLE] = "Simple"};

static void force(const char *variable, const char *value)
{
	const char *own = getenv(variable);
	if (!value)
		return;
	if (own)
		log_note("%s=%s stands, as you set it: the config's choice (%s) is not executed", variable, own, value);
	else if (!setenv(variable, value, 0))
		log_detail("%s=%s", variable, value);
}

void force_collectives(enum algorithm a, enum protocol p)
{
	force("NCCL_ALGO", algorithms[a]);
	force("NCCL_PROTO", protocols[p]);
}
