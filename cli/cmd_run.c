#include "cli/command.h"
#include "cli/job.h"

/* The leading rank decides; all ranks do the job. */
static enum status run_together(struct context *x, struct error *e)
{
	struct job job = {0};
	enum status st = ST_OK;
	if (context_leads(x))
		st = job_decide(x, context_info(x)->ranks, true, &job, e);
	if ((st = context_agree(x, st, e)) || (st = x->exec->session_broadcast(x->session, &job, sizeof job, e)))
		return st;
	x->exec->session_timeout(x->session, job.config.run.timeout_s);
	return job_perform(x, &job, e);
}

enum status cmd_run(struct context *x, struct error *e)
{
	if (x->session)
		return run_together(x, e);
	struct job job;
	enum status st = job_decide(x, 0, true, &job, e);
	if (!st && job.execute)
		st = context_session(x, job.config.run.timeout_s, e);
	return st ? st : job_perform(x, &job, e);
}
