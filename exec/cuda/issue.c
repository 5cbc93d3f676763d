/* Issuing a step: ops in program order to their lanes' streams. */
#include <nvtx3/nvToolsExt.h>
#include <stdlib.h>

#include "exec/cuda/device.h"

#define MARK_EVERY 32 /* compute ops between two that the host looks at */

static enum status op_context(const struct cuda_device *d, uint32_t i, enum status st, struct error *e)
{
	char name[OP_NAME_MAX];
	return st ? error_context(e, "op %u %s", i, op_name(cuda_op_at(d, i), name)) : ST_OK;
}

/* ---- one op ---- */

static enum status copy(const struct cuda_device *d, uint32_t i, struct error *e)
{
	const struct role *r = d->job->role;
	const struct op *op = cuda_op_at(d, i);
	const bool from_host = r->buffers.at[op_arg(r, op, 0)->buffer].component == COMP_HOST,
		   to_host = r->buffers.at[op_arg(r, op, 1)->buffer].component == COMP_HOST;
	const enum cudaMemcpyKind kind = to_host     ? (from_host ? cudaMemcpyHostToHost : cudaMemcpyDeviceToHost)
	                                 : from_host ? cudaMemcpyHostToDevice
	                                             : cudaMemcpyDeviceToDevice;
	return CUDA_CHECK(cudaMemcpyAsync(d->args[i][1].at, d->args[i][0].at, (size_t)op->copy.bytes, kind,
				  d->lane[op->lane].stream),
		e);
}

static enum status run_kernel(struct cuda_device *d, uint32_t i, struct error *e)
{
	const struct op *op = cuda_op_at(d, i);
	const struct cuda_env env = {.stream = d->lane[op->lane].stream,
		.scratch = d->scratch,
		.scratch_B = d->scratch_B,
		.flag = &d->device_notes->flag,
		.step = &d->device_notes->step,
		.tensor_coord = d->job->coord[DIM_TP],
		.heads = d->job->heads,
		.cut = d->job->cut,
		.loss_scale = d->job->loss_scale,
		.sms = d->sms,
		.op = i};
	switch (cuda_way_of(op)) {
	case CUDA_COPY: return copy(d, i, e);
	case CUDA_PRODUCT: return gemm_run(d->gemm, &env, op, d->args[i], e);
	case CUDA_NAIVE_PRODUCT: return gemm_attention_run(d->gemm, &env, op, d->args[i], e);
	case CUDA_ATTENTION: return attention_run(d->attention, &env, op, d->args[i], e);
	case CUDA_KERNEL:
	case CUDA_NONE: break;
	}
	return cuda_kernel_run(&env, op, d->args[i], e);
}

static const struct comm *comm_of(const struct cuda_device *d, const struct op *op)
{
	return &d->job->comm[op->lane][op->group];
}

enum status cuda_collective(struct cuda_device *d, uint32_t i, struct error *e)
{
	const struct op *op = cuda_op_at(d, i);
	const struct comm_call call = {op->coll, op->reduce, op->dtype, (uint64_t)op->collective.elements,
		d->args[i][0].at, d->args[i][1].at, d->lane[op->lane].stream};
	struct error why = {ST_OK, ""};
	if (comm_start(comm_of(d, op), &call, &why) == ST_OK)
		return ST_OK;
	op_context(d, i, why.status, &why);
	return cuda_broken(d, &why, e);
}

/* ---- its place among the others ---- */

static enum status await(struct cuda_device *d, uint32_t i, bool capturing, struct error *e)
{
	const struct op *op = cuda_op_at(d, i);
	enum status st = ST_OK;
	for (uint32_t k = 0; k < op->n_dep && !st; k++) {
		uint32_t dep = d->job->role->deps.at[op->dep0 + k];
		if (op_on_host(cuda_op_at(d, dep))) {
			cuda_host_lanes_wait(d, dep);
			continue;
		}
		st = CUDA_CHECK(cudaStreamWaitEvent(d->lane[op->lane].stream, capturing ? d->joined[dep] : d->mark[dep],
					0),
			e);
	}
	return st;
}

/* Events that the host reads are nodes of their own in a graph. */
static enum status record(cudaEvent_t event, cudaStream_t stream, bool capturing, struct error *e)
{
	if (!event)
		return ST_OK;
	return capturing ? CUDA_CHECK(cudaEventRecordWithFlags(event, stream, cudaEventRecordExternal), e)
	                 : CUDA_CHECK(cudaEventRecord(event, stream), e);
}

static enum status finish(struct cuda_device *d, uint32_t i, bool stamped, bool capturing, struct error *e)
{
	cudaStream_t stream = d->lane[cuda_op_at(d, i)->lane].stream;
	enum status st = ST_OK;
	if (stamped)
		st = record(d->end[i], stream, capturing, e);
	if (!st)
		st = record(d->mark[i], stream, capturing, e);
	if (!st && capturing && d->joined[i])
		st = CUDA_CHECK(cudaEventRecord(d->joined[i], stream), e);
	return st;
}

/* Issues one op. A kernel's failure goes to `kernel`; the first one skips all later kernels of the step. Returns every
 * other failure. */
static enum status issue_op(struct cuda_device *d, const struct device_step *s, uint32_t i, bool capturing,
	struct error *kernel, struct error *e)
{
	const struct op *op = cuda_op_at(d, i);
	if (op->lane == LANE_LOAD)
		return ST_OK;
	if (op->lane == LANE_HOST)
		return cuda_host_lanes_run(d, s, i, e);
	enum status st = await(d, i, capturing, e);
	if (st)
		return st;
	if (s->stamps && (st = record(d->begin[i], d->lane[op->lane].stream, capturing, e)))
		return st;
	if (op->kind == OP_COLLECTIVE)
		st = cuda_collective(d, i, e);
	else if (!s->collectives_only && !kernel->status)
		op_context(d, i, run_kernel(d, i, kernel), kernel);
	return st ? st : finish(d, i, s->stamps != NULL, capturing, e);
}

static void begin_range(const struct cuda_device *d, uint32_t i)
{
	char name[OP_NAME_MAX];
	if (d->profiled)
		nvtxRangePushA(op_name(cuda_op_at(d, i), name));
}

static void end_range(const struct cuda_device *d)
{
	if (d->profiled)
		nvtxRangePop();
}

/* The step's number to the device before, the flag back after: both on the stream of the kernels that look at them. */
static enum status send_notes(struct cuda_device *d, struct error *e)
{
	return CUDA_CHECK(cudaMemcpyAsync(d->device_notes, d->notes, sizeof *d->notes, cudaMemcpyHostToDevice,
				  d->lane[LANE_COMPUTE].stream),
		e);
}

static enum status fetch_notes(struct cuda_device *d, struct error *e)
{
	return CUDA_CHECK(cudaMemcpyAsync(&d->notes->flag, &d->device_notes->flag, sizeof d->notes->flag,
				  cudaMemcpyDeviceToHost, d->lane[LANE_COMPUTE].stream),
		e);
}

/* A step that ends here without its collectives leaves the other ranks waiting. */
static enum status broken_off(struct cuda_device *d, enum status st, struct error *e)
{
	struct error why = {ST_OK, ""};
	if (st)
		error_set(&why, st, "%s", e->text);
	return st ? cuda_broken(d, &why, e) : ST_OK;
}

enum status cuda_issue_ops(struct cuda_device *d, const struct device_step *s, bool capturing, struct error *e)
{
	struct error kernel = {ST_OK, ""};
	const uint32_t n = (uint32_t)d->job->role->ops.n;
	enum status st = send_notes(d, e);
	for (uint32_t i = 0; i < n && !st; i++) {
		begin_range(d, i);
		st = op_context(d, i, issue_op(d, s, i, capturing, &kernel, e), e);
		end_range(d);
		if (!capturing) {
			d->issued = i + 1;
			cuda_host_lanes_issued(d, i + 1);
			if (i % MARK_EVERY == 0)
				cuda_watch(d);
		}
	}
	if (!st)
		st = fetch_notes(d, e);
	if (st && !capturing)
		return broken_off(d, st, e);
	return st ? st : kernel.status ? error_set(e, kernel.status, "%s", kernel.text) : ST_OK;
}

/* ---- a step ---- */

static enum status read_flag(const struct cuda_device *d, struct error *e)
{
	const int64_t op = (int64_t)d->notes->flag - 1;
	char name[OP_NAME_MAX];
	if (op < 0)
		return ST_OK;
	if ((size_t)op >= d->job->role->ops.n)
		return error_set(e, ST_RUN, "a kernel left %lld as the number of an op", (long long)op);
	return error_set(e, ST_RUN, "op %lld %s: an id is outside its table", (long long)op,
		op_name(cuda_op_at(d, (uint32_t)op), name));
}

static void begin_step(struct cuda_device *d, const struct device_step *s)
{
	d->notes->step = s->number;
	d->notes->flag = 0;
	d->issued = 0;
	d->in_graph = false;
	for (int l = 0; l < LANE_COUNT; l++)
		d->lane[l].passed = 0;
}

/* A graph that is not launched leaves the other ranks waiting for this one's collectives. */
static enum status issue_step(struct cuda_device *d, const struct device_step *s, struct error *e)
{
	if (s->hooks)
		return broken_off(d, cuda_verify_step(d, s->hooks, e), e);
	cuda_host_lanes_begin(d, s);
	const bool plain = !s->collectives_only;
	if (!d->options.graph || !plain || !d->warm) {
		enum status st = cuda_issue_ops(d, s, false, e);
		d->warm = d->warm || (plain && !st);
		return st;
	}
	enum status st = cuda_graph_launch(d, s, e);
	if (!st)
		return ST_OK;
	struct error unused = {ST_OK, ""};
	const struct device_step rest = {.number = s->number, .stamps = s->stamps, .collectives_only = true};
	cuda_issue_ops(d, &rest, false, &unused);
	return st;
}

enum status cuda_device_step(struct cuda_device *d, const struct device_step *s, struct error *e)
{
	struct error wait = {ST_OK, ""};
	int64_t anchor_ns = 0;
	enum status st = CUDA_CHECK(cudaSetDevice(d->options.device),
		e); /* the thread may be another one than load's */
	if (!st && d->error.status)
		st = error_set(e, d->error.status, "%s", d->error.text);
	if (!st)
		st = cuda_flush(d, e);
	if (!st && s->stamps && !(st = cuda_stamps_prepare(d, e)))
		st = cuda_stamps_anchor(d, &anchor_ns, e);
	if (st)
		return broken_off(d, st, e);
	begin_step(d, s);
	st = issue_step(d, s, e);
	if (cuda_wait(d, &wait) && !st)
		st = error_set(e, wait.status, "%s", wait.text);
	if (cuda_host_lanes_end(d, st != ST_OK, &wait) && !st)
		st = error_set(e, wait.status, "%s", wait.text);
	if (!st && s->stamps)
		st = cuda_stamps_read(d, anchor_ns, s->stamps, e);
	/* Captured here, in the warm-up, and not in the next step, whose time may count. */
	if (!st && d->options.graph && d->warm && !s->collectives_only && !s->hooks)
		st = cuda_graph_prepare(d, s, e);
	return st ? st : read_flag(d, e);
}

/* ---- lanes, streams, events ---- */

static enum status check_op(const struct cuda_device *d, uint32_t i, struct error *e)
{
	const struct op *op = cuda_op_at(d, i);
	const bool comm_lane = lane_is_comm((enum lane)op->lane);
	if ((op->lane == LANE_HOST || op->lane == LANE_LOAD) != op_on_host(op) ||
		comm_lane != (op->kind == OP_COLLECTIVE) || (op->lane == LANE_COPY && op->kind != OP_COPY))
		return error_set(e, ST_RUN, "op %u: %s on the %s lane is not executed on a GPU", i,
			op_kind_info(op->kind)->name, lane_name(op->lane));
	if (comm_lane && !comm_of(d, op)->ops)
		return error_set(e, ST_RUN, "op %u: no communicator", i);
	return ST_OK;
}

static enum status list_ops(struct cuda_device *d, struct error *e)
{
	const uint32_t n = (uint32_t)d->job->role->ops.n;
	d->before = calloc(n + 1, sizeof *d->before);
	for (int l = 0; l < LANE_COUNT; l++) {
		d->lane[l].ops = malloc((n + 1) * sizeof *d->lane[l].ops);
		d->lane[l].marks = malloc((n + 1) * sizeof *d->lane[l].marks);
		if (!d->lane[l].ops || !d->lane[l].marks || !d->before)
			return error_nomem(e, "the lanes");
	}
	for (uint32_t i = 0; i < n; i++) {
		enum status st = check_op(d, i, e);
		if (st)
			return st;
		struct cuda_lane *l = &d->lane[cuda_op_at(d, i)->lane];
		d->before[i] = l->n ? l->ops[l->n - 1] + 1 : 0;
		l->ops[l->n++] = i;
	}
	return ST_OK;
}

static enum status make_mark(struct cuda_device *d, uint32_t i, bool awaited, struct error *e)
{
	enum status st = CUDA_CHECK(cudaEventCreateWithFlags(&d->mark[i], cudaEventDisableTiming), e);
	if (!st && awaited && d->options.graph)
		st = CUDA_CHECK(cudaEventCreateWithFlags(&d->joined[i], cudaEventDisableTiming), e);
	return st;
}

static enum status make_events(struct cuda_device *d, struct error *e)
{
	const struct role *r = d->job->role;
	bool *awaited = calloc(r->ops.n + 1, sizeof *awaited);
	enum status st = ST_OK;
	d->mark = calloc(r->ops.n + 1, sizeof(cudaEvent_t));
	d->joined = calloc(r->ops.n + 1, sizeof(cudaEvent_t));
	if (!awaited || !d->mark || !d->joined) {
		free(awaited);
		return error_nomem(e, "events");
	}
	for (size_t i = 0; i < r->deps.n; i++)
		awaited[r->deps.at[i]] = true;
	for (int l = 0; l < LANE_COUNT; l++) {
		struct cuda_lane *lane = &d->lane[l];
		if (l == LANE_HOST || l == LANE_LOAD)
			continue;
		for (uint32_t k = 0; k < lane->n && !st; k++) {
			uint32_t i = lane->ops[k];
			if (!awaited[i] && l == LANE_COMPUTE && k % MARK_EVERY != MARK_EVERY - 1 && k != lane->n - 1)
				continue;
			lane->marks[lane->n_marks++] = k;
			st = make_mark(d, i, awaited[i], e);
		}
	}
	free(awaited);
	return st;
}

/* Collectives before all else: a few blocks of theirs that come late hold up every rank. */
static enum status make_streams(struct cuda_device *d, struct error *e)
{
	int least = 0, greatest = 0;
	enum status st = CUDA_CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest), e);
	for (int l = 0; l < LANE_COUNT && !st; l++) {
		if (l == LANE_HOST || l == LANE_LOAD || (l != LANE_COMPUTE && d->lane[l].n == 0))
			continue;
		st = CUDA_CHECK(cudaStreamCreateWithPriority(&d->lane[l].stream, cudaStreamNonBlocking,
					l == LANE_COMPUTE ? least : greatest),
			e);
		if (!st)
			st = CUDA_CHECK(cudaEventCreateWithFlags(&d->lane_event[l], cudaEventDisableTiming), e);
	}
	return st;
}

enum status cuda_issue_prepare(struct cuda_device *d, struct error *e)
{
	enum status st;
	if ((st = list_ops(d, e)) || (st = make_streams(d, e)))
		return st;
	return make_events(d, e);
}

static void free_events(cudaEvent_t *events, size_t n)
{
	for (size_t i = 0; events && i < n; i++)
		if (events[i])
			cudaEventDestroy(events[i]);
	free(events);
}

void cuda_issue_free(struct cuda_device *d)
{
	const size_t n = d->job ? d->job->role->ops.n : 0;
	for (int i = 0; i < 2; i++)
		if (d->graph[i])
			cudaGraphExecDestroy(d->graph[i]);
	free_events(d->mark, n);
	free_events(d->joined, n);
	free_events(d->begin, n);
	free_events(d->end, n);
	if (d->anchor)
		cudaEventDestroy(d->anchor);
	for (int l = 0; l < LANE_COUNT; l++) {
		if (d->lane_event[l])
			cudaEventDestroy(d->lane_event[l]);
		if (d->lane[l].stream)
			cudaStreamDestroy(d->lane[l].stream);
		free(d->lane[l].ops);
		free(d->lane[l].marks);
	}
	free(d->before);
}
