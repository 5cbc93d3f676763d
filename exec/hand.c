#include "exec/hand.h"

#include <stdlib.h>
#include <string.h>

#include "exec/gpus.h"
#include "exec/host/device.h"

/* ---- the role ---- */

bool hand_buffer(struct hand *h, enum component component, enum dtype dtype, uint64_t bytes)
{
	struct buffer b = {.component = component, .dtype = dtype, .bytes = bytes, .persistent = true, .layer = -1, .what = "calibration"};
	return vec_push(&h->role.buffers, b);
}

bool hand_arguments(struct hand *h, const struct op *op, unsigned absent, int32_t args[OP_MAX_ARGS])
{
	for (int i = 0; i < op_kind_info((enum op_kind)op->kind)->n_args; i++) {
		args[i] = absent & (1u << i) ? -1 : (int32_t)h->role.buffers.n;
		if (args[i] >= 0 && !hand_buffer(h, COMP_BUFFERS, op_arg_dtype(op, i), op_arg_bytes(op, i, 1)))
			return false;
	}
	return true;
}

bool hand_op(struct hand *h, const struct op *op, const int32_t args[OP_MAX_ARGS])
{
	struct op o = *op;
	o.layer = o.bucket = o.micro = -1;
	o.what = "calibration";
	o.arg0 = (uint32_t)h->role.args.n;
	for (int i = 0; i < op_kind_info((enum op_kind)o.kind)->n_args; i++) {
		struct view v = {.buffer = args[i]};
		if (!vec_push(&h->role.args, v))
			return false;
	}
	return vec_push(&h->role.ops, o);
}

bool hand_collective(struct hand *h, enum collective coll, enum dtype dtype, uint64_t bytes, int32_t in, int32_t out)
{
	struct op op = {.kind = OP_COLLECTIVE, .lane = LANE_COMM, .phase = PHASE_BACKWARD, .dtype = (uint8_t)dtype, .out_dtype = (uint8_t)dtype, .coll = (uint8_t)coll, .reduce = RED_SUM, .group = DIM_DP,
	                .d = {(int64_t)((double)bytes / dtype_bytes(dtype))}};
	const int32_t args[OP_MAX_ARGS] = {in, out};
	return hand_op(h, &op, args);
}

/* ---- the device ---- */

static enum status lay_out(struct hand *h, struct error *e)
{
	h->layout.offset_B = calloc(h->role.buffers.n, sizeof *h->layout.offset_B);
	h->stamps = calloc(h->role.ops.n, sizeof *h->stamps);
	if (!h->layout.offset_B || !h->stamps)
		return error_nomem(e, "calibration");
	for (size_t i = 0; i < h->role.buffers.n; i++) {
		uint64_t *total_B = h->role.buffers.at[i].component == COMP_HOST ? &h->layout.host_B : &h->layout.total_B;
		h->layout.offset_B[i] = *total_B;
		*total_B += (h->role.buffers.at[i].bytes + LAYOUT_ALIGN - 1) / LAYOUT_ALIGN * LAYOUT_ALIGN;
	}
	return ST_OK;
}

static void comm_broken(void *ctx, const char *text)
{
	watchdog_fail(((struct session *)ctx)->watchdog, text);
}

/* Sine-like values everywhere: sums over ranks and steps stay finite, and no denormal slows them. */
static void fill_host(struct hand *h)
{
	float block[1024];
	for (size_t i = 0; i < 1024; i++)
		block[i] = (float)(i % 31) / 31.0f - 0.49f;
	for (size_t i = 0; i < h->role.buffers.n; i++)
		for (uint64_t at = 0, bytes = h->role.buffers.at[i].bytes; at < bytes; at += sizeof block)
			h->device.ops->write(h->device.ctx, (int32_t)i, at, block, bytes - at < sizeof block ? bytes - at : sizeof block);
}

static enum status open_device(struct hand *h, struct error *e)
{
	const struct gpus *g = h->session->gpus;
	if (!g)
		return host_device_create(&h->device, e);
	const struct cuda_options options = {.device = g->device, .graph = h->graph, .share_gpu = g->shared};
	return g->room->device_create(&options, &h->device, e);
}

enum status hand_load(struct hand *h, int64_t size, bool built, struct error *e)
{
	struct session *s = h->session;
	enum status st = built ? lay_out(h, e) : error_nomem(e, "calibration");
	st = session_agree(s, st, e);
	if (!st && size > 1)
		st = session_agree(s, (s->gpus ? gpus_comm : comm_create_mpi)(s, size, 1, &h->comm, e), e);
	if (st)
		return st;
	h->role.ranks = s->info.ranks;
	h->job = (struct device_job){.role = &h->role, .layout = &h->layout, .heads = 1, .loss_scale = 1, .beacon = watchdog_beacon(s->watchdog), .cores = s->info.cores_per_rank,
		.oversubscribed = s->info.oversubscribed, .broken = comm_broken, .broken_ctx = s};
	h->job.comm[LANE_COMM][DIM_DP] = h->comm;
	st = open_device(h, e);
	if (!st)
		st = h->device.ops->load(h->device.ctx, &h->job, e);
	st = session_agree(s, st, e);
	if (st)
		return st;
	if (s->gpus)
		h->device.ops->clear(h->device.ctx); /* fills what ops only read with normal numbers */
	else
		fill_host(h);
	watchdog_roles(s->watchdog, &h->role, 1, 0);
	return ST_OK;
}

enum status hand_step(struct hand *h, bool stamped, struct error *e)
{
	struct device_step step = {.number = 1, .stamps = stamped ? h->stamps : NULL};
	enum status st = session_barrier(h->session, e);
	return st ? st : h->device.ops->step(h->device.ctx, &step, e);
}

void hand_close(struct hand *h)
{
	watchdog_roles(h->session->watchdog, NULL, 0, 0);
	device_destroy(&h->device);
	comm_destroy(&h->comm);
	free(h->layout.offset_B);
	free(h->stamps);
	vec_free(&h->role.ops);
	vec_free(&h->role.args);
	vec_free(&h->role.buffers);
}
