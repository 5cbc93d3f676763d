#include "exec/runner.h"

#include <string.h>

#include "exec/gpus.h"
#include "exec/host/device.h"
#include "exec/init.h"
#include "exec/session.h"

#define COMMS ((size_t)LANE_COUNT * DIM_COUNT)

/* ---- what is executed ---- */

/* tf32 is fp32 on the host: the same bytes, a finer product. */
static bool executed(uint8_t dtype, bool gpus)
{
	return dtype == DT_FP32 || dtype == DT_TF32 || dtype == DT_INT32 || (gpus && (dtype == DT_BF16 || dtype == DT_FP16));
}

enum status runner_supports(const struct program *p, bool gpus, struct error *e)
{
	if (p->n_roles != 1)
		return error_set(e, ST_RUN, "a program of %zu roles is not executed yet", p->n_roles);
	if (p->config.parallel.context > 1)
		return error_set(e, ST_RUN, "context parallelism is not executed yet (parallel.context %lld)", (long long)p->config.parallel.context);
	if (p->config.parallel.strategy == STRAT_HSDP)
		return error_set(e, ST_RUN, "hsdp is not executed yet (parallel.strategy)");
	const struct role *r = &p->roles[0];
	for (size_t i = 0; i < r->ops.n; i++) {
		const struct op *op = &r->ops.at[i];
		if (!executed(op->dtype, gpus) || !executed(op->out_dtype, gpus))
			return error_set(e, ST_RUN, "%s, and the step has ops in %s (train.dtype, param_dtype, grad_dtype, reduce_dtype)", gpus ? "GPUs execute fp32, tf32, bf16 and fp16" : "the host backend computes in fp32 only",
			                 dtype_name(executed(op->dtype, gpus) ? op->out_dtype : op->dtype));
	}
	return ST_OK;
}

enum status runner_plan(const struct program *p, struct runner *r, struct error *e)
{
	memset(r, 0, sizeof *r);
	return layout_plan(&p->roles[0], &r->layout, e);
}

/* ---- opening ---- */

static void broken(void *ctx, const char *text)
{
	watchdog_fail(((struct session *)ctx)->watchdog, text);
}

/* In the order of the table on every rank: making a communicator is collective. */
static enum status open_comms(struct runner *r, struct error *e)
{
	bool used[LANE_COUNT][DIM_COUNT] = {{false}};
	const struct role *role = r->job.role;
	for (size_t i = 0; i < role->ops.n; i++)
		if (role->ops.at[i].kind == OP_COLLECTIVE)
			used[role->ops.at[i].lane][role->ops.at[i].group] = true;
	const struct mesh *m = &r->program->mesh;
	for (int lane = 0; lane < LANE_COUNT; lane++)
		for (int d = 0; d < DIM_COUNT; d++) {
			if (!used[lane][d])
				continue;
			enum status st = (r->session->gpus ? gpus_comm : comm_create_mpi)(r->session, m->size[d], m->stride[d], &r->job.comm[lane][d], e);
			if (st)
				return st;
		}
	return ST_OK;
}

static enum status open_device(struct runner *r, struct error *e)
{
	const struct gpus *g = r->session->gpus;
	if (!g)
		return host_device_create(&r->device, e);
	const struct cuda_options options = {.device = g->device, .graph = r->program->config.train.cuda_graph, .share_gpu = g->shared};
	return g->room->device_create(&options, &r->device, e);
}

static struct comm *all_comms(struct runner *r)
{
	return &r->job.comm[0][0];
}

/* Collective: only once all have their memory. */
static enum status tell_memory(struct runner *r, enum status opened, struct error *e)
{
	void *at = NULL;
	uint64_t bytes = 0;
	enum status st = session_agree(r->session, opened, e);
	if (st)
		return st;
	if (r->device.ops->collective_memory)
		r->device.ops->collective_memory(r->device.ctx, &at, &bytes);
	return gpus_register(r->session, all_comms(r), COMMS, at, bytes, e);
}

enum status runner_open(struct session *s, const struct program *p, int64_t rank, struct runner *r, struct error *e)
{
	r->session = s;
	r->program = p;
	r->rank = rank;
	r->job = (struct device_job){.role = &p->roles[0], .layout = &r->layout, .heads = p->config.model.heads, .loss_scale = p->loss_scale, .beacon = watchdog_beacon(s->watchdog),
	                             .cores = s->info.cores_per_rank, .oversubscribed = s->info.oversubscribed, .broken = broken, .broken_ctx = s};
	for (int d = 0; d < DIM_COUNT; d++)
		r->job.coord[d] = mesh_coord(&p->mesh, rank, d);
	enum status st;
	if (!(st = open_comms(r, e)) && !(st = open_device(r, e)))
		st = r->device.ops->load(r->device.ctx, &r->job, e);
	return s->gpus ? tell_memory(r, st, e) : st;
}

void runner_reset(struct runner *r)
{
	r->steps = 0;
	r->device.ops->clear(r->device.ctx);
	init_weights(r->program, &r->job, &r->device);
	init_input(r->program, &r->job, &r->device);
}

enum status runner_step(struct runner *r, struct stamp *stamps, double *loss, struct error *e)
{
	struct device_step step = {.number = ++r->steps, .stamps = stamps};
	enum status st = r->device.ops->step(r->device.ctx, &step, e);
	if (!st && loss) {
		float sum;
		r->device.ops->read(r->device.ctx, r->job.role->loss, 0, &sum, sizeof sum);
		*loss = (double)sum;
	}
	return st;
}

void runner_close(struct runner *r)
{
	if (!r)
		return;
	if (r->session)
		gpus_unregister(r->session, all_comms(r), COMMS);
	device_destroy(&r->device);
	for (int lane = 0; lane < LANE_COUNT; lane++)
		for (int d = 0; d < DIM_COUNT; d++)
			comm_destroy(&r->job.comm[lane][d]);
	layout_free(&r->layout);
	memset(r, 0, sizeof *r);
}
