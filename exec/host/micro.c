#include "exec/host/micro.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "exec/host/device.h"
#include "exec/host/kernels.h"
#include "topology/machine.h"

#define L1_ASSUMED_B 32768
/* a thread: one that loses its core for a while delays the others by a quarter of its share */
#define PARTS 4
#define KEPT 4                      /* of the memory that is left, a quarter */
#define ARENA_B ((uint64_t)1 << 29) /* or more: twice the last cache */
#define UNIT 960                    /* elements: whole steps of the kernels for every width of vectors */

enum content { CONTENT_NONE, CONTENT_POLY, CONTENT_STREAM, CONTENT_CHASE, CONTENT_GEMM };

struct host_micro {
	struct micro_facts facts;
	struct host_env env;
	char *arena;
	/* what the arena holds */
	enum content content;
	uint64_t size;
	uint64_t place; /* where the last chase ended: the next one reads lines that this one has not brought into the
	                   caches */
};

static void host_micro_facts(void *ctx, struct micro_facts *out) { *out = ((const struct host_micro *)ctx)->facts; }

/* True when the arena does not hold this yet. */
static bool is_new(struct host_micro *m, enum content c, uint64_t size)
{
	bool same = m->content == c && m->size == size;
	m->content = c;
	m->size = size;
	return !same;
}

static enum status fits(const struct host_micro *m, uint64_t bytes, struct error *e)
{
	return bytes <= m->facts.arena_B ? ST_OK
	                                 : error_set(e, ST_RUN, "%llu bytes do not fit into the roofline's %llu",
						   (unsigned long long)bytes, (unsigned long long)m->facts.arena_B);
}

/* ---- work cut over the pool ---- */

struct part_work {
	const float *x, *y;
	float *z;
	int64_t n, parts, k, times;
	enum roof_stream stream;
	float *sums; /* by part, a line apart */
};

/* In whole units but for the end. */
static int64_t cut(const struct part_work *w, int64_t part)
{
	return part == w->parts ? w->n : w->n / UNIT * part / w->parts * UNIT;
}

static void poly_task(void *ctx, int64_t part, int thread)
{
	(void)thread;
	const struct part_work *w = ctx;
	micro_poly_part(w->x + cut(w, part), w->z + cut(w, part), cut(w, part + 1) - cut(w, part), w->k);
}

/* All passes of one part before the next: each thread keeps to its own share of the footprint, as caches of its own
 * hold it. */
static void stream_task(void *ctx, int64_t part, int thread)
{
	(void)thread;
	const struct part_work *w = ctx;
	const int64_t from = cut(w, part), n = cut(w, part + 1) - from;
	float sum = 0;
	for (int64_t t = 0; t < w->times; t++) {
		if (w->stream == ROOF_READ)
			sum += micro_read_part(w->x + from, n);
		else if (w->stream == ROOF_COPY)
			micro_copy_part(w->x + from, w->z + from, n);
		else
			micro_triad_part(w->x + from, w->y + from, w->z + from, n);
		__asm__ volatile("" ::: "memory");
	}
	w->sums[part * (MICRO_LINE_B / (int64_t)sizeof(float))] = sum;
}

static void fill_task(void *ctx, int64_t part, int thread)
{
	(void)thread;
	const struct part_work *w = ctx;
	for (int64_t i = cut(w, part); i < cut(w, part + 1); i++)
		w->z[i] = w->k ? (float)(i * 7919 % 1021) / 1021.0f - 0.49f : w->x[0];
}

/* The whole of `bytes` with one value, or with k = 1 with varied ones. First touched by the threads that use it. */
static void fill(struct host_micro *m, uint64_t bytes, float value, bool varied)
{
	const int64_t threads = pool_threads(m->env.pool);
	struct part_work w = {.x = &value,
		.z = (float *)(void *)m->arena,
		.n = (int64_t)(bytes / sizeof(float)),
		.parts = threads,
		.k = varied};
	pool_run(m->env.pool, fill_task, &w, w.parts);
}

/* ---- the kernels ---- */

static enum status host_poly(void *ctx, enum dtype d, int64_t n, int64_t k, int64_t times, double *seconds,
	struct error *e)
{
	struct host_micro *m = ctx;
	const uint64_t array_B = micro_array_B(d, n);
	enum status st = fits(m, 2 * array_B, e);
	if (st)
		return st;
	if (!m->facts.vector[d])
		return error_set(e, ST_RUN, "no polynomial kernel in %s on the host", dtype_name(d));
	if (is_new(m, CONTENT_POLY, array_B))
		fill(m, 2 * array_B, (float)micro_poly_a(d), false);
	struct part_work w = {.x = (float *)(void *)m->arena,
		.z = (float *)(void *)(m->arena + array_B),
		.n = n,
		.parts = PARTS * pool_threads(m->env.pool),
		.k = k};
	double begin_s = clock_s();
	for (int64_t t = 0; t < times; t++)
		pool_run(m->env.pool, poly_task, &w, w.parts);
	*seconds = (clock_s() - begin_s) / (double)times;
	return ST_OK;
}

static enum status host_stream(void *ctx, enum roof_stream s, uint64_t footprint_B, int64_t times, double *seconds,
	struct error *e)
{
	struct host_micro *m = ctx;
	float sums[512 * MICRO_LINE_B / sizeof(float)];
	const int64_t threads = pool_threads(m->env.pool);
	enum status st = fits(m, footprint_B, e);
	if (st)
		return st;
	if (threads > 512)
		return error_set(e, ST_RUN, "the roofline's streams take at most 512 cores a rank");
	if (is_new(m, CONTENT_STREAM, footprint_B))
		fill(m, footprint_B, 0.25f, false);
	const uint64_t array_B = footprint_B / ((uint64_t)s + 1) / MICRO_ALIGN_B *
	                         MICRO_ALIGN_B; /* one, two or three arrays */
	float *array[ROOF_STREAMS];
	for (uint64_t i = 0; i < ROOF_STREAMS; i++)
		array[i] = (float *)(void *)(m->arena + (i <= (uint64_t)s ? i : 0) * array_B);
	struct part_work w = {.x = array[0],
		.y = array[1],
		.z = array[s],
		.n = (int64_t)(array_B / sizeof(float)),
		.parts = threads,
		.times = times,
		.stream = s,
		.sums = sums};
	double begin_s = clock_s();
	pool_run(m->env.pool, stream_task, &w, w.parts);
	*seconds = (clock_s() - begin_s) / (double)times;
	return ST_OK;
}

static enum status host_chase(void *ctx, uint64_t footprint_B, int64_t times, double *seconds, struct error *e)
{
	struct host_micro *m = ctx;
	const uint64_t lines = footprint_B / MICRO_LINE_B;
	enum status st = fits(m, footprint_B, e);
	if (st)
		return st;
	if (is_new(m, CONTENT_CHASE, footprint_B)) {
		for (uint64_t i = 0; i < lines; i++)
			*(uint64_t *)(void *)(m->arena + i * MICRO_LINE_B) = micro_next(i, lines) * MICRO_LINE_B;
		m->place = 0;
	}
	double begin_s = clock_s();
	m->place = micro_chase_part(m->arena, m->place, times);
	*seconds = (clock_s() - begin_s) / (double)times;
	return ST_OK;
}

static enum status host_gemm(void *ctx, enum dtype d, int64_t n, int64_t times, double *seconds, struct error *e)
{
	struct host_micro *m = ctx;
	const uint64_t array_B = micro_array_B(d, n * n);
	enum status st = fits(m, 3 * array_B, e);
	if (st)
		return st;
	if (!m->facts.matrix[d])
		return error_set(e, ST_RUN, "no products in %s on the host", dtype_name(d));
	if (is_new(m, CONTENT_GEMM, array_B))
		fill(m, 3 * array_B, 0, true);
	const struct op op = {.kind = OP_GEMM,
		.dtype = (uint8_t)d,
		.out_dtype = (uint8_t)d,
		.flags = OP_TRANS_B,
		.gemm = {n, n, n}};
	void *const arg[OP_MAX_ARGS] = {m->arena, m->arena + array_B, NULL, m->arena + 2 * array_B};
	double begin_s = clock_s();
	for (int64_t t = 0; t < times && !st; t++)
		st = host_kernel_run(&m->env, &op, arg, e);
	*seconds = (clock_s() - begin_s) / (double)times;
	return st;
}

static enum status host_read(void *ctx, uint64_t offset_B, uint64_t bytes, void *to, struct error *e)
{
	struct host_micro *m = ctx;
	enum status st = fits(m, offset_B + bytes, e);
	if (!st)
		memcpy(to, m->arena + offset_B, bytes);
	return st;
}

static void host_micro_destroy(void *ctx)
{
	struct host_micro *m = ctx;
	pool_destroy(m->env.pool);
	host_memory_unmap(m->arena, m->facts.arena_B);
	free(m);
}

static const struct micro_ops host_micro_ops = {host_micro_facts, host_poly, host_stream, host_chase, host_gemm,
	host_read, host_micro_destroy};

/* ---- what there is ---- */

/* Caches of a core's own are half filled; of the shared one so much that the cores' own cannot hold it. Memory: all of
 * the arena. */
static void find_levels(struct micro_facts *f, const struct host_facts *host)
{
	long said = sysconf(_SC_LEVEL1_DCACHE_SIZE);
	const uint64_t cores = (uint64_t)f->units, l1_B = said > 0 ? (uint64_t)said : L1_ASSUMED_B,
		       own_B = cores * host->l2_B;
	micro_add_level(f, "L1", cores * l1_B / 2, l1_B / 2);
	if (host->l2_B)
		micro_add_level(f, "L2", own_B / 2, host->l2_B / 2);
	if (host->l3_B >= 4 * own_B)
		micro_add_level(f, "L3", host->l3_B / 2 < 4 * own_B ? host->l3_B / 2 : 4 * own_B, 4 * own_B);
	micro_add_level(f, "memory", f->arena_B, f->arena_B);
}

enum status micro_host_create(int64_t cores, int64_t ranks, uint64_t most_B, struct micro *out, struct error *e)
{
	struct host_facts host;
	*out = (struct micro){0};
	enum status st = host_facts_read(&host, e);
	if (st)
		return st;
	struct host_micro *m = calloc(1, sizeof *m);
	if (!m)
		return error_nomem(e, "the roofline's device");
	struct micro_facts *f = &m->facts;
	const uint64_t left_B = host.mem_available_B / KEPT / (uint64_t)(ranks > 0 ? ranks : 1),
		       past_B = 2 * host.l3_B > ARENA_B ? 2 * host.l3_B : ARENA_B;
	most_B = most_B < left_B ? most_B : left_B;
	snprintf(f->device, sizeof f->device, "%s", host.cpu);
	f->units = cores;
	f->vector[DT_FP32] = f->matrix[DT_FP32] = true;
	f->arena_B = (most_B < past_B ? most_B : past_B) / MICRO_ALIGN_B * MICRO_ALIGN_B;
	m->env.heads = 1;
	m->arena = host_memory_map(f->arena_B);
	if (!m->arena)
		st = error_nomem(e, "the roofline's arena");
	if (!st && cores > 1)
		st = pool_create((int)cores, &m->env.pool, e);
	if (st) {
		host_micro_destroy(m);
		return st;
	}
	find_levels(f, &host);
	*out = (struct micro){&host_micro_ops, m};
	return ST_OK;
}
