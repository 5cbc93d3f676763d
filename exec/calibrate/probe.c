#include "exec/calibrate/probe.h"

#include <stdlib.h>
#include <string.h>

#include "exec/gpus.h"
#include "exec/host/device.h"

/* ---- the role ---- */

bool probe_buffer(struct probe *probe, enum component component, enum dtype dtype, uint64_t bytes)
{
	struct buffer b = {.component = component, .dtype = dtype, .bytes = bytes, .persistent = true};
	return vec_push(&probe->role.buffers, b);
}

bool probe_arguments(struct probe *probe, const struct op *op, unsigned absent, int32_t args[OP_MAX_ARGS])
{
	for (int i = 0; i < op_kind_info((enum op_kind)op->kind)->n_args; i++) {
		args[i] = absent & (1u << i) ? -1 : (int32_t)probe->role.buffers.n;
		if (args[i] >= 0 && !probe_buffer(probe, COMP_BUFFERS, op_arg_dtype(op, i), op_arg_bytes(op, i, 1)))
			return false;
	}
	return true;
}

bool probe_op(struct probe *probe, const struct op *op, const int32_t args[OP_MAX_ARGS])
{
	struct op o = *op;
	o.layer = o.bucket = o.micro = -1;
	o.what = "calibration";
	o.arg0 = (uint32_t)probe->role.args.n;
	for (int i = 0; i < op_kind_info((enum op_kind)o.kind)->n_args; i++) {
		struct view v = {.buffer = args[i]};
		if (!vec_push(&probe->role.args, v))
			return false;
	}
	return vec_push(&probe->role.ops, o);
}

bool probe_collective(struct probe *probe, enum collective coll, enum dtype dtype, uint64_t bytes, int32_t in,
	int32_t out)
{
	struct op op = {.kind = OP_COLLECTIVE,
		.lane = LANE_COMM,
		.phase = PHASE_BACKWARD,
		.dtype = (uint8_t)dtype,
		.out_dtype = (uint8_t)dtype,
		.coll = (uint8_t)coll,
		.reduce = RED_SUM,
		.group = DIM_DP,
		.collective.elements = (int64_t)((double)bytes / dtype_bytes(dtype))};
	const int32_t args[OP_MAX_ARGS] = {in, out};
	return probe_op(probe, &op, args);
}

/* ---- the device ---- */

static enum status lay_out(struct probe *probe, struct error *e)
{
	probe->layout.offset_B = calloc(probe->role.buffers.n, sizeof *probe->layout.offset_B);
	probe->stamps = calloc(probe->role.ops.n, sizeof *probe->stamps);
	if (!probe->layout.offset_B || !probe->stamps)
		return error_nomem(e, "calibration");
	for (size_t i = 0; i < probe->role.buffers.n; i++) {
		uint64_t *total_B = probe->role.buffers.at[i].component == COMP_HOST ? &probe->layout.host_B
		                                                                     : &probe->layout.total_B;
		probe->layout.offset_B[i] = *total_B;
		*total_B += (probe->role.buffers.at[i].bytes + LAYOUT_ALIGN - 1) / LAYOUT_ALIGN * LAYOUT_ALIGN;
	}
	return ST_OK;
}

static void comm_broken(void *ctx, const char *text) { watchdog_fail(((struct session *)ctx)->watchdog, text); }

/* Sine-like values everywhere: sums over ranks and steps stay finite, and no denormal slows them. */
static void fill_host(struct probe *probe)
{
	float block[1024];
	for (size_t i = 0; i < 1024; i++)
		block[i] = (float)(i % 31) / 31.0f - 0.49f;
	for (size_t i = 0; i < probe->role.buffers.n; i++)
		for (uint64_t at = 0, bytes = probe->role.buffers.at[i].bytes; at < bytes; at += sizeof block)
			probe->device.ops->write(probe->device.ctx, (int32_t)i, at, block,
				bytes - at < sizeof block ? bytes - at : sizeof block);
}

static enum status open_device(struct probe *probe, struct error *e)
{
	const struct gpus *g = probe->session->gpus;
	if (!g)
		return host_device_create(&probe->device, e);
	const struct cuda_options options = {.device = g->device,
		.graph = probe->graph,
		.share_gpu = g->shared,
		.span = probe->span};
	return g->backend->device_create(&options, &probe->device, e);
}

enum status probe_load(struct probe *probe, int64_t size, int64_t stride, bool built, struct error *e)
{
	struct session *s = probe->session;
	enum status st = built ? lay_out(probe, e) : error_nomem(e, "calibration");
	st = session_agree(s, st, e);
	if (!st && size > 1)
		st = session_agree(s, (s->gpus ? gpus_comm : comm_create_mpi)(s, size, stride, &probe->comm, e), e);
	if (st)
		return st;
	probe->role.ranks = s->info.ranks;
	probe->job = (struct device_job){.role = &probe->role,
		.layout = &probe->layout,
		.heads = 1,
		.loss_scale = 1,
		.beacon = watchdog_beacon(s->watchdog),
		.cores = s->info.cores_per_rank,
		.oversubscribed = s->info.oversubscribed && !probe->alone,
		.broken = comm_broken,
		.broken_ctx = s};
	probe->job.comm[LANE_COMM][DIM_DP] = probe->comm;
	st = open_device(probe, e);
	if (!st)
		st = probe->device.ops->load(probe->device.ctx, &probe->job, e);
	st = session_agree(s, st, e);
	if (st)
		return st;
	if (s->gpus)
		probe->device.ops->clear(probe->device.ctx); /* fills what ops only read with normal numbers */
	else
		fill_host(probe);
	watchdog_roles(s->watchdog, &probe->role, 1, 0);
	return ST_OK;
}

enum status probe_step(struct probe *probe, bool stamped, struct error *e)
{
	struct device_step step = {.number = 1, .stamps = stamped ? probe->stamps : NULL};
	enum status st = session_barrier(probe->session, e);
	return st ? st : probe->device.ops->step(probe->device.ctx, &step, e);
}

void probe_close(struct probe *probe)
{
	watchdog_roles(probe->session->watchdog, NULL, 0, 0);
	device_destroy(&probe->device);
	comm_destroy(&probe->comm);
	free(probe->layout.offset_B);
	free(probe->stamps);
	vec_free(&probe->role.ops);
	vec_free(&probe->role.args);
	vec_free(&probe->role.deps);
	vec_free(&probe->role.buffers);
}
