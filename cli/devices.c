#include "cli/devices.h"

enum status devices_open(struct context *x, struct error *e)
{
	const struct options *o = x->options;
	enum status st = context_session(x, DEFAULT_TIMEOUT_S, e);
	if (st)
		return st;
	bool gpus = context_leads(x) &&
	            (o->backend == BACKEND_CUDA || (o->backend == BACKEND_AUTO && x->exec->gpus_here()));
	if ((st = x->exec->session_broadcast(x->session, &gpus, sizeof gpus, e)) || !gpus)
		return st;
	return x->exec->session_use_gpus(x->session, o->share_gpu, DEFAULT_TIMEOUT_S, e);
}
