#include "cli/devices.h"

enum status devices_open(struct context *x, struct error *e)
{
	const struct options *o = x->options;
	enum status st = x->session ? ST_OK : session_open(DEFAULT_TIMEOUT_S, &x->session, e);
	if (st)
		return st;
	bool gpus = context_leads(x) && (o->backend == BACKEND_CUDA || (o->backend == BACKEND_AUTO && gpus_here()));
	if ((st = session_broadcast(x->session, &gpus, sizeof gpus, e)) || !gpus)
		return st;
	return session_use_gpus(x->session, o->share_gpu, DEFAULT_TIMEOUT_S, e);
}
