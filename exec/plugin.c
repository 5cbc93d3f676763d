#include "exec/plugin.h"

#define EXEC_SLOT(call) .call = call,
const struct exec_plugin stepsim_exec_plugin = {.version = STEPSIM_VERSION,
	.layout = EXEC_LAYOUT,
	EXEC_CALLS(EXEC_SLOT)};
