#include <stdlib.h>

#include "base/log.h"
#include "exec/exec.h"

static void force(const char *variable, const char *value)
{
	const char *own = getenv(variable);
	if (!value || !*value)
		return;
	if (own)
		log_note("%s=%s stands, as you set it: the config's choice (%s) is not executed", variable, own, value);
	else if (!setenv(variable, value, 0))
		log_detail("%s=%s", variable, value);
}

void nccl_env_force(struct collective_choice c)
{
	force("NCCL_ALGO", algorithm_traits[c.algorithm].nccl);
	force("NCCL_PROTO", protocol_traits[c.protocol].nccl);
}
