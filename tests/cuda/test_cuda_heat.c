/* Calibration of a GPU that its power limit holds down: large products are timed hot, small ones in a burst, both with
 * their clocks, and a step is priced as it runs hot. The double of NVML has the clock, a device of this test takes the
 * time that the clock makes of an op. */
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exec/calibrate/calibrate.h"
#include "exec/cuda/nvml.h"
#include "exec/gpus.h"
#include "topology/discover/nvml.h"
#include "tests/unit/constants.h"
#include "tests/unit/harness.h"

#define BURST_FLOP_PER_S 8e14
#define LARGE_W 1000.0 /* at the burst clock; the limit is 700 W */
#define SMALL_W 300.0
#define REST_W 70.0   /* NVML's double, without work: what the shortest products are seen at */
#define SUSTAINED 0.7 /* of the burst clock */
#define COOL_S 1.0

static double (*run_kernel)(double boost_s, double power_W);

/* ---- the device ---- */

struct hot_device {
	const struct role *role;
	double now_s;
};

static enum status hot_load(void *ctx, const struct device_job *job, struct error *e)
{
	(void)e;
	((struct hot_device *)ctx)->role = job->role;
	run_kernel(COOL_S, 0); /* libraries load, algorithms are chosen */
	return ST_OK;
}

static double boost_s(const struct op *op) { return op_flop(op) > 0 ? op_flop(op) / BURST_FLOP_PER_S : 1e-5; }

static enum status hot_step(void *ctx, const struct device_step *step, struct error *e)
{
	struct hot_device *d = ctx;
	(void)e;
	for (size_t i = 0; i < d->role->ops.n; i++) {
		const struct op *op = &d->role->ops.at[i];
		step->stamps[i].begin_ns = (int64_t)(1e9 * d->now_s);
		d->now_s += run_kernel(boost_s(op), op_flop(op) >= CALIBRATION_LARGE_FLOP ? LARGE_W : SMALL_W);
		step->stamps[i].end_ns = (int64_t)(1e9 * d->now_s);
	}
	return ST_OK;
}

static void hot_write(void *ctx, int32_t buffer, uint64_t offset_B, const void *from, uint64_t bytes)
{
	(void)ctx, (void)buffer, (void)offset_B, (void)from, (void)bytes;
}

static void hot_clear(void *ctx) { (void)ctx; }

static const struct device_ops hot_ops = {.load = hot_load,
	.step = hot_step,
	.write = hot_write,
	.clear = hot_clear,
	.destroy = free};

static enum status hot_create(const struct cuda_options *o, struct device *out, struct error *e)
{
	(void)o;
	*out = (struct device){&hot_ops, calloc(1, sizeof(struct hot_device))};
	return out->ctx ? ST_OK : error_nomem(e, "the hot device");
}

/* ---- the session ---- */

static const struct cuda_backend backend = {.device_create = hot_create,
	.sampler_open = nvml_sampler_open,
	.sample_begin = nvml_sample_begin,
	.sample_end = nvml_sample_end,
	.sampler_close = nvml_sampler_close};

static struct session *session;
static struct gpus gpus;

static void open_gpus(bool nvml)
{
	struct error e = {0};
	gpus = (struct gpus){.backend = &backend,
		.gpu = {.pci = "0000:1b:00.0", .sms = 132, .free_B = UINT64_C(64) << 30},
		.work = {.gpu = true, .sms = 132, .tiles = TILE_MODEL}};
	if (nvml)
		CU_ASSERT_EQUAL_FATAL(nvml_sampler_open(gpus.gpu.pci, &gpus.sampler, &e), ST_OK);
	CU_ASSERT_EQUAL_FATAL(nvml, gpus.sampler != NULL);
	session->gpus = &gpus;
}

static void close_gpus(void)
{
	session->gpus = NULL; /* not the session's own */
	nvml_sampler_close(gpus.sampler);
}

/* The grid's bf16 products, and what a fit needs beside them. */
static calibration_cases some_cases(void)
{
	calibration_cases all = {0}, out = {0};
	struct error e = {0};
	CU_ASSERT_EQUAL_FATAL(calibration_grid(&gpus.work, &all, &e), ST_OK);
	for (size_t i = 0; i < all.n; i++)
		if ((all.at[i].op.kind == OP_GEMM && all.at[i].op.dtype == DT_BF16) || all.at[i].op.kind == OP_ADD)
			CU_ASSERT_TRUE_FATAL(vec_push(&out, all.at[i]));
	vec_free(&all);
	return out;
}

static struct profile *calibrated(calibration_cases *cases)
{
	struct error e = {0};
	struct profile *p = profile_create();
	*cases = some_cases();
	CU_ASSERT_EQUAL_FATAL(calibrate_gpu(session, cases, p, 0, 1, &e), ST_OK);
	CU_ASSERT_EQUAL_FATAL(calibration_fit(cases, &gpus.work, p, &e), ST_OK);
	return p;
}

/* ---- */

static void test_large_are_hot(void)
{
	calibration_cases cases;
	int large = 0, small = 0;
	open_gpus(true);
	struct profile *p = calibrated(&cases);
	for (size_t i = 0; i < cases.n; i++) {
		const struct calibration_case *c = &cases.at[i];
		if (c->op.kind != OP_GEMM)
			continue;
		const bool hot = op_flop(&c->op) >= CALIBRATION_LARGE_FLOP;
		CU_ASSERT_DOUBLE_EQUAL(boost_s(&c->op) / c->time_s, hot ? SUSTAINED : 1, 0.02);
		CU_ASSERT_DOUBLE_EQUAL(c->found.clock_Hz / 1980e6, hot ? SUSTAINED : 1, 0.02);
		CU_ASSERT_EQUAL(c->found.capped > 0, hot);
		CU_ASSERT_EQUAL(c->heat_s, hot ? CALIBRATION_HEAT_S : 0);
		CU_ASSERT_TRUE(hot ? fabs(c->found.power_W - 700) < 20
				   : c->found.power_W >= REST_W && c->found.power_W <= SMALL_W);
		*(hot ? &large : &small) += 1;
	}
	CU_ASSERT_EQUAL(large, 18); /* six shapes, three products each */
	CU_ASSERT_EQUAL(small, 42);
	CU_ASSERT_EQUAL(profile_get_value(p, PROFILE_POWER_LIMIT_W, 0), 700);
	CU_ASSERT_EQUAL(p->n_products, 3);
	CU_ASSERT_EQUAL(profile_burst_Hz(p), 1980e6);
	profile_destroy(p);
	vec_free(&cases);
	close_gpus();
}

/* Figures that nobody read are absent, not 0. */
static void test_without_nvml(void)
{
	calibration_cases cases;
	open_gpus(false);
	struct profile *p = calibrated(&cases);
	for (size_t i = 0; i < cases.n; i++)
		if (op_flop(&cases.at[i].op) >= CALIBRATION_LARGE_FLOP)
			CU_ASSERT_DOUBLE_EQUAL(boost_s(&cases.at[i].op) / cases.at[i].time_s, SUSTAINED, 0.02);
	CU_ASSERT_EQUAL(p->n_products, 0);
	CU_ASSERT_EQUAL(profile_get_value(p, PROFILE_POWER_LIMIT_W, -1), -1);
	CU_ASSERT_EQUAL(profile_burst_Hz(p), 0);
	profile_destroy(p);
	vec_free(&cases);
	close_gpus();
}

int main(void)
{
	static const struct unit_test tests[] = {{"large products are timed hot", test_large_are_hot},
		{"no NVML", test_without_nvml}};
	struct error e = {0};
	void *library = dlopen(NVML_LIBRARY, RTLD_NOW | RTLD_LOCAL),
	     *symbol = library ? dlsym(library, "nvml_double_run") : NULL;
	if (!symbol || session_open(60, &session, &e)) {
		fprintf(stderr, "%s\n", symbol ? e.text : "the double of NVML is not there");
		return 2;
	}
	memcpy(&run_kernel, &symbol, sizeof symbol);
	int code = unit_main("heat", tests, COUNT(tests));
	session_close(session);
	dlclose(library);
	return code;
}
