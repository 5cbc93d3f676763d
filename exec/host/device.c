#include "exec/host/device.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "exec/host/lanes.h"

#define CLEAR_CHUNK_B (UINT64_C(256) << 20)

struct host_device {
	const struct device_job *job;
	void *memory, *host_memory; /* the two arenas */
	op_args *args;
	void *scratch;
	size_t scratch_B;
	struct pool *pool;
	struct lanes lanes;
};

/* ---- memory ---- */

void *host_memory_map(uint64_t bytes)
{
	if (!bytes)
		return NULL;
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (at == MAP_FAILED)
		return NULL;
	/* An arena is one long-lived block: with small pages its first touch and every sweep through it cost more. */
	madvise(at, bytes, MADV_HUGEPAGE);
	return at;
}

void host_memory_unmap(void *at, uint64_t bytes)
{
	if (at)
		munmap(at, bytes);
}

static void *address(const struct host_device *d, int32_t buffer, uint64_t offset_B)
{
	void *arena = d->job->role->buffers.at[buffer].component == COMP_HOST ? d->host_memory : d->memory;
	return (char *)arena + d->job->layout->offset_B[buffer] + offset_B;
}

static void host_write(void *ctx, int32_t buffer, uint64_t offset_B, const void *from, uint64_t bytes)
{
	memcpy(address(ctx, buffer, offset_B), from, bytes);
}

static void host_read(void *ctx, int32_t buffer, uint64_t offset_B, void *to, uint64_t bytes)
{
	memcpy(to, address(ctx, buffer, offset_B), bytes);
}

/* The first touch of a large arena takes its time: each chunk is progress, the same on all ranks. */
static void clear_arena(const struct host_device *d, void *arena, uint64_t bytes)
{
	for (uint64_t at = 0; arena && at < bytes; at += CLEAR_CHUNK_B) {
		memset((char *)arena + at, 0, bytes - at < CLEAR_CHUNK_B ? bytes - at : CLEAR_CHUNK_B);
		atomic_fetch_add(&d->job->beacon->progress, 1);
	}
}

static void host_clear(void *ctx)
{
	struct host_device *d = ctx;
	host_work_reset(d->lanes.host);
	clear_arena(d, d->memory, d->job->layout->total_B);
	clear_arena(d, d->host_memory, d->job->layout->host_B);
}

static uint64_t host_overhead_B(void *ctx) { return ((struct host_device *)ctx)->scratch_B; }

/* ---- loading ---- */

static void resolve_args(struct host_device *d)
{
	const struct role *r = d->job->role;
	for (size_t i = 0; i < r->ops.n; i++)
		for (int a = 0; a < op_kind_info(r->ops.at[i].kind)->n_args; a++) {
			const struct view *v = op_arg(r, &r->ops.at[i], a);
			d->args[i][a] = v->buffer < 0 ? NULL : address(d, v->buffer, view_offset_B(d->job, v));
		}
}

static enum status allocate(struct host_device *d, struct error *e)
{
	const struct role *r = d->job->role;
	for (size_t i = 0; i < r->ops.n; i++) {
		size_t need = host_kernel_scratch_B(&r->ops.at[i], (int)d->job->cores);
		d->scratch_B = need > d->scratch_B ? need : d->scratch_B;
	}
	d->memory = host_memory_map(d->job->layout->total_B);
	d->host_memory = host_memory_map(d->job->layout->host_B);
	d->scratch = host_memory_map(d->scratch_B);
	d->args = calloc(r->ops.n + 1, sizeof *d->args);
	if ((d->job->layout->total_B && !d->memory) || (d->job->layout->host_B && !d->host_memory) ||
		(d->scratch_B && !d->scratch) || !d->args)
		return error_nomem(e, "the device's memory");
	return ST_OK;
}

static enum status host_load(void *ctx, const struct device_job *job, struct error *e)
{
	struct host_device *d = ctx;
	d->job = job;
	enum status st = allocate(d, e);
	if (st)
		return st;
	resolve_args(d);
	if (job->cores > 1 && (st = pool_create((int)job->cores, &d->pool, e)))
		return st;
	struct host_env env = {.pool = d->pool,
		.scratch = d->scratch,
		.scratch_B = d->scratch_B,
		.tensor_coord = job->coord[DIM_TP],
		.heads = job->heads,
		.cut = job->cut,
		.loss_scale = job->loss_scale,
		.step = 1};
	return lanes_start(&d->lanes, job, d->args, &env, e);
}

static enum status host_step(void *ctx, const struct device_step *s, struct error *e)
{
	return lanes_step(&((struct host_device *)ctx)->lanes, s, e);
}

static void host_destroy(void *ctx)
{
	struct host_device *d = ctx;
	lanes_stop(&d->lanes);
	pool_destroy(d->pool);
	if (d->job) {
		host_memory_unmap(d->memory, d->job->layout->total_B);
		host_memory_unmap(d->host_memory, d->job->layout->host_B);
	}
	host_memory_unmap(d->scratch, d->scratch_B);
	free(d->args);
	free(d);
}

enum status host_device_create(struct device *out, struct error *e)
{
	static const struct device_ops ops = {host_load, host_step, host_write, host_read, NULL, NULL, host_clear,
		host_overhead_B, NULL, host_destroy};
	struct host_device *d = calloc(1, sizeof *d);
	if (!d)
		return error_nomem(e, "the host device");
	*out = (struct device){&ops, d};
	return ST_OK;
}
