/* A side: a small program, and a device that runs rank 0's part of it. For the tests of the CUDA device.
 *
 * There is one rank here. The communicators are the test's own, and of two members that hold the same: a sum is twice
 * the own part, and is computed on the call's queue, so that a collective that does not wait for what it needs, or is
 * not awaited, is seen.
 *
 *   struct side x;
 *   if (side_open(&x, &variant, true, false)) { side_reset(&x); ... side_step(&x, NULL, &loss); }
 *   side_close(&x);
 *
 * side_open asserts and returns false where the program or the device cannot be made.
 */
#ifndef STEPSIM_TESTS_CUDA_SIDE_H
#define STEPSIM_TESTS_CUDA_SIDE_H

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/array.h"
#include "exec/cuda/backend.h"
#include "exec/cuda/device.h"
#include "exec/cuda/kernels.h"
#include "exec/host/device.h"
#include "exec/init.h"
#include "tests/unit/harness.h"

#define SIDE_CONFIG "tests/exec/tiny.yaml"
#define SIDE_MAX_SETS 8

extern const struct cuda_backend stepsim_cuda_backend;

static struct error error;

static bool done_well(enum status st, const char *what)
{
	CU_ASSERT_EQUAL(st, ST_OK);
	if (st)
		printf("%s: %s\n", what, error.text);
	return st == ST_OK;
}

/* ---- communicators of two alike ---- */

static int starts_left = -1; /* before one fails; -1: none does */

static enum status add_on_queue(const struct comm_call *c, uint64_t n, struct error *e)
{
	const struct cuda_env env = {.stream = c->queue, .sms = 4};
	const struct op op = {.kind = OP_ADD,
		.dtype = (uint8_t)c->dtype,
		.out_dtype = (uint8_t)c->dtype,
		.matrix = {1, (int64_t)n},
		.what = "sum of two"};
	const struct cuda_arg arg[OP_MAX_ARGS] = {{(void *)(uintptr_t)c->in, c->dtype},
		{(void *)(uintptr_t)c->in, c->dtype}, {NULL, c->dtype}, {c->out, c->dtype}};
	return cuda_kernel_run(&env, &op, arg, e);
}

static enum status copy_on_queue(const struct comm_call *c, uint64_t part_B, struct error *e)
{
	for (int i = 0; i < 2; i++) {
		char *to = (char *)c->out + (uint64_t)i * part_B;
		if (to != c->in &&
			cudaMemcpyAsync(to, c->in, part_B, cudaMemcpyDeviceToDevice, c->queue) != cudaSuccess)
			return error_set(e, ST_RUN, "a copy was refused");
	}
	return ST_OK;
}

static int64_t late_ns; /* that the host loses at each collective */

static enum status start_on_device(void *ctx, const struct comm_call *c, struct error *e)
{
	const uint64_t part = c->elements / 2;
	const struct timespec late = {0, late_ns};
	(void)ctx;
	if (late_ns > 0)
		nanosleep(&late, NULL);
	if (starts_left > 0 && --starts_left == 0)
		return error_set(e, ST_RUN, "the link is cut");
	if (c->coll == COLL_SENDRECV)
		return cudaMemcpyAsync(c->out, c->in, c->elements * (uint64_t)dtype_bytes(c->dtype),
			       cudaMemcpyDeviceToDevice, c->queue) == cudaSuccess
		               ? ST_OK
		               : error_set(e, ST_RUN, "a copy was refused");
	if (c->coll == COLL_ALL_GATHER)
		return copy_on_queue(c, part * (uint64_t)dtype_bytes(c->dtype), e);
	if (c->reduce == RED_MAX)
		return ST_OK; /* in place everywhere */
	return add_on_queue(c, c->coll == COLL_ALL_REDUCE ? c->elements : part, e);
}

static enum status start_on_host(void *ctx, const struct comm_call *c, struct error *e)
{
	const uint64_t part = c->elements / 2, n = c->coll == COLL_ALL_REDUCE ? c->elements : part;
	(void)ctx;
	(void)e;
	if (c->coll == COLL_SENDRECV)
		memcpy(c->out, c->in, c->elements * sizeof(float));
	else if (c->coll == COLL_ALL_GATHER)
		for (int i = 0; i < 2; i++)
			memmove((char *)c->out + (uint64_t)i * part * sizeof(float), c->in, part * sizeof(float));
	else
		for (uint64_t i = 0; i < n && c->reduce == RED_SUM; i++)
			((float *)c->out)[i] = 2.0f * ((const float *)c->in)[i];
	return ST_OK;
}

static enum status test_done(void *ctx, bool *done, struct error *e)
{
	(void)ctx;
	(void)e;
	*done = true;
	return ST_OK;
}

static void destroy_nothing(void *ctx) { (void)ctx; }

static struct comm two_alike(bool on_device)
{
	static const struct comm_ops device = {start_on_device, test_done, destroy_nothing},
				     host = {start_on_host, test_done, destroy_nothing};
	return (struct comm){on_device ? &device : &host, NULL, 2, 0};
}

/* ---- a side: a program, and a device that runs rank 0's part of it ---- */

struct side {
	struct config config;
	struct program *program;
	struct layout layout;
	struct device_job job;
	struct device device;
	struct beacon beacon;
	int64_t steps;
	char broken[256];
};

struct variant {
	const char *name;
	int64_t ranks;
	const char *sets[SIDE_MAX_SETS];
};

static void on_broken(void *ctx, const char *text) { snprintf(ctx, 256, "%s", text); }

static enum status open_program(struct side *s, const struct variant *v, struct error *e)
{
	size_t n = 0;
	while (n < SIDE_MAX_SETS && v->sets[n])
		n++;
	enum status st;
	if ((st = config_load(SIDE_CONFIG, v->sets, n, &s->config, e)) ||
		(st = config_resolve(&s->config, v->ranks, e)) || (st = program_build(&s->config, &s->program, e)) ||
		(st = program_check(s->program, e)))
		return st;
	return layout_plan(&s->program->roles[0], &s->layout, e);
}

static bool side_open_as(struct side *s, const struct variant *v, bool on_device, bool graph, bool shared)
{
	memset(s, 0, sizeof *s);
	error = (struct error){ST_OK, ""};
	enum status st = open_program(s, v, &error);
	if (st)
		return done_well(st, v->name);
	const struct role *r = &s->program->roles[0];
	s->job = (struct device_job){.role = r,
		.layout = &s->layout,
		.heads = s->config.model.heads,
		.cut = {s->config.parallel.context, s->config.parallel.context - 1, 2},
		.loss_scale = s->program->loss_scale,
		.beacon = &s->beacon,
		.cores = 1,
		.oversubscribed = true,
		.broken = on_broken,
		.broken_ctx = s->broken};
	for (size_t i = 0; i < r->ops.n; i++)
		if (r->ops.at[i].kind == OP_COLLECTIVE)
			s->job.comm[r->ops.at[i].lane][r->ops.at[i].group] = two_alike(on_device);
	const struct cuda_options o = {.device = 0, .graph = graph, .share_gpu = shared};
	st = on_device ? stepsim_cuda_backend.device_create(&o, &s->device, &error)
	               : host_device_create(&s->device, &error);
	if (!st)
		st = s->device.ops->load(s->device.ctx, &s->job, &error);
	return done_well(st, v->name);
}

static bool side_open(struct side *s, const struct variant *v, bool on_device, bool graph)
{
	return side_open_as(s, v, on_device, graph, false);
}

static void side_close(struct side *s)
{
	device_destroy(&s->device);
	layout_free(&s->layout);
	program_destroy(s->program);
}

static void side_reset(struct side *s)
{
	s->steps = 0;
	s->device.ops->clear(s->device.ctx);
	init_weights(s->program, &s->job, &s->device);
	init_input(s->program, &s->job, &s->device);
}

static enum status side_step(struct side *s, struct stamp *stamps, float *loss)
{
	const struct device_step d = {.number = ++s->steps, .stamps = stamps};
	enum status st = s->device.ops->step(s->device.ctx, &d, &error);
	s->device.ops->read(s->device.ctx, s->job.role->loss, 0, loss, sizeof *loss);
	return st;
}

#endif
