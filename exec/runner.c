#include "exec/runner.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "exec/gpus.h"
#include "exec/host/device.h"
#include "exec/init.h"
#include "exec/session.h"
#include "step/peers.h"

#define COMMS ((size_t)LANE_COUNT * DIM_ALL)

/* ---- what is executed ---- */

/* tf32 is fp32 on the host: the same bytes, a finer product. */
static bool executed(uint8_t dtype, bool gpus)
{
	return dtype == DT_FP32 || dtype == DT_TF32 || dtype == DT_INT32 ||
	       (gpus && (dtype == DT_BF16 || dtype == DT_FP16));
}

static enum status role_supported(const struct role *r, bool gpus, struct error *e)
{
	for (size_t i = 0; i < r->ops.n; i++) {
		const struct op *op = &r->ops.at[i];
		if (!executed(op->dtype, gpus) || !executed(op->out_dtype, gpus))
			return error_set(e, ST_RUN,
				"%s, and the step has ops in %s (train.dtype, param_dtype, grad_dtype, reduce_dtype)",
				gpus ? "GPUs execute fp32, tf32, bf16 and fp16"
				     : "the host backend computes in fp32 only",
				dtype_name(executed(op->dtype, gpus) ? op->out_dtype : op->dtype));
	}
	return ST_OK;
}

#define ON_CORES "executed on cores alone (run.backend: host)"
#define PREDICTED "predicted, not executed"

static bool of_layers(const struct model *m, char kind) { return strchr(m->layer_pattern, kind) != NULL; }

static bool keeps_off_gpus(enum offload o) { return o == OFF_OPTIMIZER || o == OFF_OPTIMIZER_PARAMS; }

/* Refuses the first part of the plan that is not executed: on GPUs, or at all. */
static enum status plan_supported(const struct program *p, bool gpus, struct error *e)
{
	const struct model *m = &p->config.model;
	const struct train *t = &p->config.train;
	const struct {
		bool lacking, gpus; /* gpus: of GPUs alone */
		const char *what;
	} lacks[] = {
		{p->config.cluster.n_slow_ranks > 0, true,
			"cluster.slow_ranks: GPUs are not slowed; cores are (run.backend: host), and `stepsim predict` "
			"predicts it"},
		{model_window(m, 0) > 0 && t->attention == ATT_NAIVE, false,
			"model.sliding_window: executed by flash attention alone; with naive attention it "
			"is " PREDICTED},
		{m->kv_lora_rank > 0, true, "model.kv_lora_rank: latent attention is " ON_CORES},
		{model_is_conv(m), true, "model.conv_stages: convolutional networks are " ON_CORES},
		{m->adaptive_norm || m->output_channels > 0, true,
			"model.adaptive_norm and output_channels: diffusion transformers are " ON_CORES},
		{of_layers(m, 'G'), true, "model.layer_pattern: gated delta rules are " ON_CORES},
		{of_layers(m, 'K'), true, "model.layer_pattern: Kimi delta attention is " ON_CORES},
		{of_layers(m, 'C'), true, "model.layer_pattern: short convolutions are " ON_CORES},
		{of_layers(m, 'M') || of_layers(m, 'P'), true, "model.layer_pattern: Mamba layers are " ON_CORES},
		{m->attention_gate, true, "model.attention_gate: " ON_CORES},
		{m->shared_expert_gate, true, "model.shared_expert_gate: " ON_CORES},
		{m->experts > 0 && p->config.stack.gates_activation, true,
			"train.expert_gates activation: " ON_CORES "; result runs on GPUs"},
		{m->encoder_layers > 0, true, "model.encoder_layers: " ON_CORES},
		{m->position == POS_RELATIVE, true, "model.position relative: " ON_CORES},
		{m->attention_sinks, true, "model.attention_sinks: " ON_CORES},
		{m->attention_softcap > 0, true, "model.attention_softcap: " ON_CORES},
		{m->logit_softcap > 0, true, "model.logit_softcap: " ON_CORES},
		{model_window(m, 0) > 0 && m->window_kind == WINDOW_CHUNKED, true,
			"model.window_kind: chunked is " ON_CORES},
		{m->qk_norm != QK_NORM_NONE, true, "model.qk_norm: " ON_CORES},
		{m->classes > 0 || model_targets(m) < m->seq_len, true,
			"model.classes, predictions and input patches: " ON_CORES},
		{keeps_off_gpus(t->offload), true,
			"train.offload: the host's update is executed beside cores alone (run.backend: host), and "
			"`stepsim predict` predicts it"},
		{t->launch_blocking, true, "train.launch_blocking is " PREDICTED},
		{p->config.data.repeated_token, false, "data.repeated_token is " PREDICTED},
		{t->expert_loop, false, "train.expert_loop is " PREDICTED},
		/* CUDA does not promise that branches of a graph run beside each other. */
		{p->n_roles > 1 && t->cuda_graph, true,
			"train.cuda_graph: pipeline stages are not executed as a graph, whose branches might wait for "
			"each other's messages for ever"},
	};
	for (size_t i = 0; i < COUNT(lacks); i++)
		if (lacks[i].lacking && (gpus || !lacks[i].gpus))
			return error_set(e, ST_RUN, "%s", lacks[i].what);
	return ST_OK;
}

enum status runner_supports(const struct program *p, bool gpus, struct error *e)
{
	const struct algorithm_traits *algorithm = &algorithm_traits[p->config.collectives.algorithm];
	if (!algorithm->nccl)
		return error_set(e, ST_RUN, "collectives.algorithm: NCCL lacks %s, which is " PREDICTED,
			algorithm->name);
	const char *predicted = config_predicted_only(&p->config);
	if (predicted)
		return error_set(e, ST_RUN, "%s", predicted);
	const struct optimizer_traits *o = &optimizer_traits[p->config.train.optimizer];
	if (gpus && (o->orthogonal || o->factored))
		return error_set(e, ST_RUN, "train.optimizer %s: " ON_CORES, o->name);
	enum status st = plan_supported(p, gpus, e);
	for (size_t i = 0; i < p->n_roles && !st; i++)
		st = role_supported(&p->roles[i], gpus, e);
	return st;
}

enum status runner_plan(const struct program *p, int64_t rank, struct runner *r, struct error *e)
{
	size_t role = role_of_rank(p, rank);
	memset(r, 0, sizeof *r);
	r->program = p;
	r->rank = rank;
	r->role = &p->roles[role];
	enum status st = peer_ops(p, role, &r->peer_op, e);
	return st ? st : layout_plan(r->role, &r->layout, e);
}

/* ---- opening ---- */

static void broken(void *ctx, const char *text) { watchdog_fail(((struct session *)ctx)->watchdog, text); }

typedef bool lanes_used[LANE_COUNT][DIM_ALL];

static void find_used(const struct role *role, lanes_used used)
{
	for (size_t i = 0; i < role->ops.n; i++)
		if (role->ops.at[i].kind == OP_COLLECTIVE)
			used[role->ops.at[i].lane][role->ops.at[i].group] = true;
}

/* A rank whose own role has no use for a communicator of other roles takes no part in it. */
static enum status split(struct runner *r, int64_t colour, int64_t key, bool mine, bool pair, struct comm *out,
	struct error *e)
{
	colour = mine ? colour : -1;
	return r->session->gpus ? gpus_split(r->session, colour, key, pair, out, e)
	                        : comm_split_mpi(r->session, colour, key, out, e);
}

/* By the session's ranks, not the mesh's: in tests each rank is all of a small program. */
static enum status open_group(struct runner *r, enum lane lane, enum mesh_dim d, bool mine, struct error *e)
{
	const struct mesh *m = &r->program->mesh;
	int64_t rank = r->session->info.rank, place = rank / m->stride[d] % m->size[d];
	return split(r, rank - place * m->stride[d], place, mine, false, &r->job.comm[lane][d], e);
}

/* Two members for each neighbouring pair and direction: within one nothing can pass anything, and nothing has to. A
 * rank is in two pairs of a direction, and a split puts it into one communicator: pairs whose first stage is even go
 * first, then the others, and last that of the last stage and the first, where an odd number of stages makes it meet
 * both. */
static enum status open_pairs(struct runner *r, enum lane sends, const bool mine[LANE_COUNT], struct error *e)
{
	const struct mesh *m = &r->program->mesh;
	int64_t stages = m->size[DIM_PP], stage = mesh_coord(m, r->rank, DIM_PP),
		forward = sends == LANE_SEND_NEXT ? 1 : stages - 1;
	int64_t to = (stage + forward) % stages, from = (stage + stages - forward) % stages;
	enum lane receives = peer_lane(sends);
	enum status st = ST_OK;
	for (int64_t turn = 0; turn < 3 && !st; turn++) {
		struct {
			int64_t lower, sender;
			enum lane lane;
		} end[2] = {{sends == LANE_SEND_NEXT ? stage : to, stage, sends},
			{sends == LANE_SEND_NEXT ? from : stage, from, receives}};
		struct comm *out = NULL, none;
		int64_t colour = -1, key = 0;
		for (int i = 0; i < 2; i++) {
			int64_t his = stages % 2 && end[i].lower == stages - 1 ? 2 : end[i].lower % 2;
			if (his != turn || !mine[end[i].lane])
				continue;
			out = &r->job.comm[end[i].lane][DIM_PP];
			colour = mesh_member(m, r->rank, DIM_PP, end[i].sender);
			key = i;
		}
		if (!(st = split(r, colour, key, out != NULL, true, out ? out : &none, e)) && r->session->gpus && out)
			st = gpus_meet(r->session, out, e);
	}
	return st;
}

/* In the same order on every rank: making a communicator is collective. */
static enum status open_comms(struct runner *r, struct error *e)
{
	lanes_used used = {{false}}, mine = {{false}};
	bool own[LANE_COUNT];
	enum status st = ST_OK;
	for (size_t i = 0; i < r->program->n_roles; i++)
		find_used(&r->program->roles[i], used);
	find_used(r->role, mine);
	for (int lane = 0; lane < LANE_COUNT; lane++)
		own[lane] = mine[lane][DIM_PP];
	for (int lane = 0; lane < LANE_COUNT; lane++)
		for (int d = 0; d < DIM_ALL && !st; d++) {
			if (!used[lane][d])
				continue;
			if (lane == LANE_SEND_NEXT || lane == LANE_SEND_PREV)
				st = open_pairs(r, (enum lane)lane, own, e);
			else if (lane != LANE_RECV_PREV && lane != LANE_RECV_NEXT)
				st = open_group(r, (enum lane)lane, (enum mesh_dim)d, mine[lane][d], e);
		}
	return st;
}

static enum status open_device(struct runner *r, struct error *e)
{
	const struct gpus *g = r->session->gpus;
	if (!g)
		return host_device_create(&r->device, e);
	const struct cuda_options options = {.device = g->device,
		.graph = r->program->config.train.cuda_graph,
		.share_gpu = g->shared};
	return g->backend->device_create(&options, &r->device, e);
}

static struct comm *all_comms(struct runner *r) { return &r->job.comm[0][0]; }

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

enum status runner_open(struct session *s, struct runner *r, struct error *e)
{
	const struct program *p = r->program;
	r->session = s;
	r->job = (struct device_job){.role = r->role,
		.peer_op = r->peer_op,
		.layout = &r->layout,
		.heads = p->config.model.heads,
		.loss_scale = p->loss_scale,
		.host = host_times_of(&p->config),
		.beacon = watchdog_beacon(s->watchdog),
		.slowness = config_slowness(&p->config, r->rank, s->info.ranks_per_host),
		.cores = s->info.cores_per_rank,
		.oversubscribed = s->info.oversubscribed,
		.broken = broken,
		.broken_ctx = s};
	for (int d = 0; d < DIM_ALL; d++)
		r->job.coord[d] = mesh_coord(&p->mesh, r->rank, d);
	r->job.cut = (struct cut){p->mesh.size[DIM_CP], r->job.coord[DIM_CP], p->config.model.causal ? 2 : 1};
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

enum status runner_step(struct runner *r, struct stamp *stamps, struct error *e)
{
	struct device_step step = {.number = ++r->steps, .stamps = stamps};
	return r->device.ops->step(r->device.ctx, &step, e);
}

double runner_loss(const struct runner *r)
{
	float sum = 0;
	if (r->role->loss >= 0)
		r->device.ops->read(r->device.ctx, r->role->loss, 0, &sum, sizeof sum);
	return (double)sum;
}

void runner_close(struct runner *r)
{
	if (!r)
		return;
	if (r->session)
		gpus_unregister(r->session, all_comms(r), COMMS);
	device_destroy(&r->device);
	for (int lane = 0; lane < LANE_COUNT; lane++)
		for (int d = 0; d < DIM_ALL; d++)
			comm_destroy(&r->job.comm[lane][d]);
	layout_free(&r->layout);
	free(r->peer_op);
	memset(r, 0, sizeof *r);
}
