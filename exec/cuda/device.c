#include "exec/cuda/device.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "exec/init.h"

#define STAGE_B ((size_t)8 << 20)
#define CLEAR_CHUNK_B ((uint64_t)1 << 30)

static void progress(const struct cuda_device *d)
{
	atomic_fetch_add_explicit(&d->job->beacon->progress, 1, memory_order_relaxed);
}

static void keep(struct cuda_device *d, const struct error *e)
{
	if (e->status)
		error_set(&d->error, e->status, "%s", e->text);
}

static bool on_host(const struct cuda_device *d, int32_t buffer)
{
	return d->job->role->buffers.at[buffer].component == COMP_HOST;
}

static char *address(const struct cuda_device *d, int32_t buffer, uint64_t offset_B)
{
	return (on_host(d, buffer) ? d->host_memory : d->memory) + d->job->layout->offset_B[buffer] + offset_B;
}

/* ---- reading and writing: through pinned memory, writes not awaited one by one ---- */

enum status cuda_flush(struct cuda_device *d, struct error *e)
{
	if (d->staged_B == 0)
		return ST_OK;
	d->staged_B = 0;
	progress(d);
	return CUDA_CHECK(cudaStreamSynchronize(d->lane[LANE_COMPUTE].stream), e);
}

static enum status write_staged(struct cuda_device *d, char *to, const char *from, uint64_t bytes, struct error *e)
{
	enum status st = ST_OK;
	while (bytes > 0 && !st) {
		if (d->staged_B == STAGE_B && (st = cuda_flush(d, e)))
			break;
		size_t n = bytes < STAGE_B - d->staged_B ? (size_t)bytes : STAGE_B - d->staged_B;
		memcpy(d->stage + d->staged_B, from, n);
		st = CUDA_CHECK(cudaMemcpyAsync(to, d->stage + d->staged_B, n, cudaMemcpyHostToDevice,
					d->lane[LANE_COMPUTE].stream),
			e);
		d->staged_B += n;
		to += n;
		from += n;
		bytes -= n;
	}
	return st;
}

static void device_write(void *ctx, int32_t buffer, uint64_t offset_B, const void *from, uint64_t bytes)
{
	struct cuda_device *d = ctx;
	struct error e = {ST_OK, ""};
	if (on_host(d, buffer))
		memcpy(address(d, buffer, offset_B), from, bytes);
	else
		write_staged(d, address(d, buffer, offset_B), from, bytes, &e);
	keep(d, &e);
}

static enum status read_staged(struct cuda_device *d, char *to, const char *from, uint64_t bytes, struct error *e)
{
	enum status st = cuda_flush(d, e);
	for (uint64_t at = 0; at < bytes && !st; at += STAGE_B) {
		size_t n = bytes - at < STAGE_B ? (size_t)(bytes - at) : STAGE_B;
		if ((st = CUDA_CHECK(cudaMemcpyAsync(d->stage, from + at, n, cudaMemcpyDeviceToHost,
					     d->lane[LANE_COMPUTE].stream),
			     e)) ||
			(st = CUDA_CHECK(cudaStreamSynchronize(d->lane[LANE_COMPUTE].stream), e)))
			break;
		memcpy(to + at, d->stage, n);
		progress(d);
	}
	return st;
}

static void device_read(void *ctx, int32_t buffer, uint64_t offset_B, void *to, uint64_t bytes)
{
	struct cuda_device *d = ctx;
	struct error e = {ST_OK, ""};
	if (on_host(d, buffer))
		memcpy(to, address(d, buffer, offset_B), bytes);
	else if (read_staged(d, to, address(d, buffer, offset_B), bytes, &e))
		memset(to, 0,
			bytes); /* the error is told by the next step; until then nobody reads what was never written */
	keep(d, &e);
}

/* ---- patterns ---- */

static enum status check_pattern(struct cuda_device *d, int32_t buffer, uint64_t offset_B, uint64_t n, enum dtype dtype,
	const struct pattern *p, uint64_t *at, struct error *e)
{
	const cudaStream_t stream = d->lane[LANE_COMPUTE].stream;
	int64_t *wrong = &d->device_notes->wrong;
	enum status st = cuda_flush(d, e);
	d->notes->wrong = (int64_t)n;
	if (st ||
		(st = CUDA_CHECK(cudaMemcpyAsync(wrong, &d->notes->wrong, sizeof *wrong, cudaMemcpyHostToDevice,
					 stream),
			 e)) ||
		(st = cuda_check_pattern(stream, address(d, buffer, offset_B), dtype, (int64_t)n, p, wrong, e)) ||
		(st = CUDA_CHECK(cudaMemcpyAsync(&d->notes->wrong, wrong, sizeof *wrong, cudaMemcpyDeviceToHost,
					 stream),
			 e)) ||
		(st = CUDA_CHECK(cudaStreamSynchronize(stream), e)))
		return st;
	*at = (uint64_t)d->notes->wrong;
	return ST_OK;
}

static bool device_fill(void *ctx, int32_t buffer, uint64_t offset_B, uint64_t n, enum dtype dtype,
	const struct pattern *p)
{
	struct cuda_device *d = ctx;
	struct error e = {ST_OK, ""};
	if (on_host(d, buffer))
		return false;
	if (!cuda_fill_pattern(d->lane[LANE_COMPUTE].stream, address(d, buffer, offset_B), dtype, (int64_t)n, p, &e))
		CUDA_CHECK(cudaStreamSynchronize(d->lane[LANE_COMPUTE].stream), &e);
	progress(d);
	keep(d, &e);
	return true;
}

static bool device_check(void *ctx, int32_t buffer, uint64_t offset_B, uint64_t n, enum dtype dtype,
	const struct pattern *p, uint64_t *at)
{
	struct cuda_device *d = ctx;
	struct error e = {ST_OK, ""};
	if (on_host(d, buffer))
		return false;
	*at = n;
	check_pattern(d, buffer, offset_B, n, dtype, p, at, &e);
	progress(d);
	keep(d, &e);
	return true;
}

static enum status clear_memory(struct cuda_device *d, struct error *e)
{
	enum status st = cuda_flush(d, e);
	const uint64_t total_B = d->job->layout->total_B, host_B = d->job->layout->host_B;
	for (uint64_t at = 0; at < total_B && !st; at += CLEAR_CHUNK_B) {
		st = CUDA_CHECK(cudaMemsetAsync(d->memory + at, 0,
					total_B - at < CLEAR_CHUNK_B ? total_B - at : CLEAR_CHUNK_B,
					d->lane[LANE_COMPUTE].stream),
			e);
		if (!st)
			st = CUDA_CHECK(cudaStreamSynchronize(d->lane[LANE_COMPUTE].stream), e);
		progress(d);
	}
	cuda_host_lanes_reset(d);
	if (host_B)
		memset(d->host_memory, 0, host_B);
	return st;
}

/* Where ops only read: a product of zeros would take less power, and run quicker, than one of numbers. */
static enum status fill_unwritten(struct cuda_device *d, struct error *e)
{
	const struct role *r = d->job->role;
	uint8_t *touched = calloc(r->buffers.n + 1, sizeof *touched); /* enum access */
	enum status st = touched ? ST_OK : error_nomem(e, "the buffers' list");
	for (size_t i = 0; i < r->ops.n && touched; i++)
		for (int a = 0; a < op_kind_info(r->ops.at[i].kind)->n_args; a++) {
			const struct view *v = op_arg(r, &r->ops.at[i], a);
			if (v->buffer >= 0)
				touched[v->buffer] |= (uint8_t)op_access(&r->ops.at[i], a);
		}
	for (size_t i = 0; i < r->buffers.n && !st; i++) {
		const struct buffer *b = &r->buffers.at[i];
		const bool number = b->dtype == DT_FP32 || b->dtype == DT_TF32 || b->dtype == DT_FP16 ||
		                    b->dtype == DT_BF16;
		if (touched[i] == ACC_R && number && b->component != COMP_HOST)
			st = cuda_fill_normal(d->lane[LANE_COMPUTE].stream, address(d, (int32_t)i, 0), b->dtype,
				(int64_t)((double)b->bytes / dtype_bytes(b->dtype)), i, INIT_SIGMA, e);
	}
	free(touched);
	return st ? st : CUDA_CHECK(cudaStreamSynchronize(d->lane[LANE_COMPUTE].stream), e);
}

static void device_clear(void *ctx)
{
	struct cuda_device *d = ctx;
	struct error e = {ST_OK, ""};
	if (clear_memory(d, &e) == ST_OK)
		fill_unwritten(d, &e);
	keep(d, &e);
}

/* What is taken on the GPU beside the arena: CUDA's context, the libraries' workspaces, NCCL's buffers, our scratch.
 * The driver counts a GPU's processes together, so where ranks share it our own allocations alone are known. */
static uint64_t device_overhead_B(void *ctx)
{
	const struct cuda_device *d = ctx;
	const uint64_t own_B = d->scratch_B + sizeof(struct notes), arena_B = d->job->layout->total_B;
	size_t free_B = 0, total_B = 0;
	if (d->options.share_gpu || cudaMemGetInfo(&free_B, &total_B) != cudaSuccess)
		return own_B;
	const uint64_t taken_B = total_B - free_B;
	return taken_B > arena_B + own_B ? taken_B - arena_B : own_B;
}

static void device_collective_memory(void *ctx, void **at, uint64_t *bytes)
{
	const struct cuda_device *d = ctx;
	*at = d->memory;
	*bytes = d->job->layout->total_B;
}

/* ---- loading ---- */

static bool is_kind(const struct role *r, enum op_kind first, enum op_kind last)
{
	for (size_t i = 0; i < r->ops.n; i++)
		if (r->ops.at[i].kind >= first && r->ops.at[i].kind <= last)
			return true;
	return false;
}

/* Before the arenas: trying algorithms takes memory of its own for a while. */
static enum status plan(struct cuda_device *d, struct error *e)
{
	const struct role *r = d->job->role;
	char why[256] = "";
	enum status st = ST_OK;
	bool gemm = is_kind(r, OP_GEMM, OP_GEMM) || is_kind(r, OP_GROUPED_GEMM, OP_GROUPED_GEMM) ||
	            is_kind(r, OP_ATTN_SCORES, OP_ATTN_SCORES_GRAD);
	if (gemm && (st = gemm_plans_create(r, d->options.device, true, &d->gemm, e)))
		return st;
	progress(d);
	if (is_kind(r, OP_ATTENTION, OP_ATTENTION_GRAD))
		st = attention_plans_create(r, d->options.device, &d->attention, why, e);
	progress(d);
	if (!st && why[0])
		log_note("attention: %s", why);
	return st;
}

static void needs(size_t *most, size_t bytes) { *most = bytes > *most ? bytes : *most; }

static enum status take(void **out, uint64_t bytes, bool host, const char *what, struct error *e)
{
	size_t free_B = 0, total_B = 0;
	if (bytes == 0)
		return ST_OK;
	enum status st = host ? CUDA_CHECK(cudaMallocHost(out, bytes), e) : CUDA_CHECK(cudaMalloc(out, bytes), e);
	if (!st)
		return st;
	*out = NULL;
	cudaGetLastError();
	if (!host && cudaMemGetInfo(&free_B, &total_B) == cudaSuccess)
		return error_context(e, "%s: %.3f GB of the GPU's memory, of which %.3f GB are free", what,
			(double)bytes / 1e9, (double)free_B / 1e9);
	return error_context(e, "%s: %.3f GB of pinned memory", what, (double)bytes / 1e9);
}

static enum status allocate(struct cuda_device *d, struct error *e)
{
	const struct role *r = d->job->role;
	needs(&d->scratch_B, d->gemm ? GEMM_WORKSPACE_B : 0);
	needs(&d->scratch_B, d->attention ? attention_workspace_B(d->attention) : 0);
	for (size_t i = 0; i < r->ops.n; i++)
		needs(&d->scratch_B, cuda_scratch_B(&r->ops.at[i]));
	enum status st;
	if (d->pageable && !(d->host_memory = malloc(d->job->layout->host_B)))
		return error_nomem(e, "the host arena");
	if ((st = take((void **)&d->memory, d->job->layout->total_B, false, "the arena", e)) ||
		(!d->pageable &&
			(st = take((void **)&d->host_memory, d->job->layout->host_B, true, "the host arena", e))) ||
		(st = take((void **)&d->scratch, d->scratch_B, false, "scratch", e)) ||
		(st = take((void **)&d->stage, STAGE_B, true, "the staging buffer", e)) ||
		(st = take((void **)&d->notes, sizeof *d->notes, true, "the notes", e)) ||
		(st = take((void **)&d->device_notes, sizeof *d->device_notes, false, "the notes", e)))
		return st;
	memset(d->notes, 0, sizeof *d->notes);
	d->args = calloc(r->ops.n + 1, sizeof *d->args);
	return d->args ? ST_OK : error_nomem(e, "the arguments of a step");
}

static void resolve_args(struct cuda_device *d)
{
	const struct role *r = d->job->role;
	for (size_t i = 0; i < r->ops.n; i++)
		for (int a = 0; a < op_kind_info(r->ops.at[i].kind)->n_args; a++) {
			const struct view *v = op_arg(r, &r->ops.at[i], a);
			if (v->buffer >= 0)
				d->args[i][a] = (struct cuda_arg){address(d, v->buffer, view_offset_B(d->job, v)),
					r->buffers.at[v->buffer].dtype};
		}
}

/* A graph holds neither the host's work nor copies for which the host waits. */
static void look_for_host_work(struct cuda_device *d)
{
	const struct role *r = d->job->role;
	bool graph = d->options.graph;
	for (size_t i = 0; i < r->ops.n; i++) {
		const struct op *op = &r->ops.at[i];
		d->pageable = d->pageable || (op->kind == OP_COPY && op->flags & OP_PAGEABLE);
		d->options.graph = d->options.graph && !op_on_host(op) && !d->pageable;
	}
	if (graph && !d->options.graph)
		log_note("train.cuda_graph: a step with work of the host in it (data.*, train.sync_every) is executed "
			 "without a graph");
}

static enum status device_load(void *ctx, const struct device_job *job, struct error *e)
{
	struct cuda_device *d = ctx;
	d->job = job;
	look_for_host_work(d);
	enum status st;
	if ((st = CUDA_CHECK(cudaSetDevice(d->options.device), e)) ||
		(st = CUDA_CHECK(cudaDeviceGetAttribute(&d->sms, cudaDevAttrMultiProcessorCount, d->options.device),
			 e)) ||
		(st = cuda_issue_prepare(d, e)) || (st = cuda_host_lanes_open(d, e)) || (st = plan(d, e)) ||
		(st = allocate(d, e)))
		return st;
	progress(d);
	resolve_args(d);
	return ST_OK;
}

static enum status device_step(void *ctx, const struct device_step *s, struct error *e)
{
	return cuda_device_step(ctx, s, e);
}

static void device_free(void *ctx)
{
	struct cuda_device *d = ctx;
	cudaSetDevice(d->options.device);
	cuda_host_lanes_close(d);
	cuda_issue_free(d);
	gemm_plans_destroy(d->gemm);
	attention_plans_destroy(d->attention);
	cudaFree(d->memory);
	cudaFree(d->scratch);
	cudaFree(d->device_notes);
	if (d->pageable)
		free(d->host_memory);
	else
		cudaFreeHost(d->host_memory);
	cudaFreeHost(d->stage);
	cudaFreeHost(d->notes);
	free(d->args);
	free(d);
	cudaGetLastError(); /* what failed here is told already; it is not the next device's first launch */
}

enum status cuda_device_create(const struct cuda_options *o, struct device *out, struct error *e)
{
	static const struct device_ops ops = {device_load, device_step, device_write, device_read, device_fill,
		device_check, device_clear, device_overhead_B, device_collective_memory, device_free};
	struct cuda_device *d = calloc(1, sizeof *d);
	if (!d)
		return error_nomem(e, "the CUDA device");
	d->options = *o;
	d->profiled = getenv("NVTX_INJECTION64_PATH") !=
	              NULL; /* how profilers make NVTX load them (NVTX 3, "Injection") */
	*out = (struct device){&ops, d};
	return ST_OK;
}
