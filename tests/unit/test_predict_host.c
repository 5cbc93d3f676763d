#include <string.h>

#include "sim/engine/predict.h"
#include "sim/price/cost.h"
#include "tests/unit/constants.h"
#include "tests/unit/harness.h"
#include "tests/unit/machines.h"
#include "tests/unit/predict_case.h"
#include "tests/unit/rates.h"

/* ---- what starves the device ---- */

static struct result fed(const struct machine *m, const char *more)
{
	struct program *p = build(more, 1); /* 4 micro-batches */
	struct result r;
	struct timeline t;
	struct error e = {0};
	CU_ASSERT_EQUAL_FATAL(program_check(p, &e), ST_OK);
	CU_ASSERT_EQUAL_FATAL(predict(p, m, &r, &t, &e), ST_OK);
	const struct breakdown *b = &r.time;
	CU_ASSERT_DOUBLE_EQUAL(b->compute_s + b->exposed_comm_s + b->copy_s + b->host_s + b->bubble_s + b->optimizer_s +
				       b->idle_s,
		b->step_s, 1e-9);
	timeline_free(&t);
	program_destroy(p);
	return r;
}

static void test_loader(void)
{
	struct machine m = gpu();
	const double alone_s = fed(&m, "").time.step_s;
	struct result slow = fed(&m, "data.load_time=1 data.workers=4"),
		      slower = fed(&m, "data.load_time=1 data.workers=1 data.prefetch=1"),
		      quick = fed(&m, "data.load_time=1us data.workers=4");
	struct result serial = fed(&m, "data.load_time=1 data.workers=4 data.prefetch=0"),
		      own = fed(&m, "data.load_time=1 data.workers=0");
	/* Loads and copies take turns; the work of the device hides behind them. */
	CU_ASSERT_DOUBLE_EQUAL(slow.time.step_s, 4 * 1.0 / 4, 1e-3);
	CU_ASSERT_DOUBLE_EQUAL(slow.time.host_s, slow.time.step_s - alone_s, 2e-3);
	CU_ASSERT_PTR_NOT_NULL(strstr(slow.bottleneck, "loading data"));
	CU_ASSERT_DOUBLE_EQUAL(slower.time.step_s, 4 * 1.0, 1e-3);
	CU_ASSERT_DOUBLE_EQUAL(quick.time.step_s, alone_s, 1e-9);
	CU_ASSERT_EQUAL(quick.time.host_s, 0);
	CU_ASSERT_DOUBLE_EQUAL(serial.time.step_s, 4 * 1.0 + alone_s, 2e-3);
	CU_ASSERT_DOUBLE_EQUAL(serial.time.host_s, 4 * 1.0, 1e-9);
	CU_ASSERT_EQUAL(own.time.step_s, serial.time.step_s);
}

static void test_sync(void)
{
	struct machine m = gpu();
	const double never_s = fed(&m, "").time.step_s, each_s = fed(&m, "train.sync_every=1").time.step_s,
		     fourth_s = fed(&m, "train.sync_every=4").time.step_s;
	CU_ASSERT(each_s >= never_s + 2 * m.device.launch_s); /* its own launch, and that of the first op */
	CU_ASSERT_DOUBLE_EQUAL(fourth_s - never_s, (each_s - never_s) / 4, 1e-9);
	struct profile quiet = {.key.cores_per_rank = 4};
	struct machine cores = host(&quiet);
	CU_ASSERT_EQUAL(fed(&cores, "train.dtype=fp32 train.sync_every=1").time.step_s,
		fed(&cores, "train.dtype=fp32").time.step_s); /* a host launches nothing */
}

static void test_launches(void)
{
	struct machine m = gpu(), slow = m;
	slow.device.launch_s = 1e-3; /* longer than any kernel here */
	struct program *p = build("", 1);
	const double ops = (double)p->roles[0].ops.n;
	program_destroy(p);
	struct result eager = fed(&slow, ""), graph = fed(&slow, "train.cuda_graph=true"),
		      device = fed(&m, "train.cuda_graph=true");
	CU_ASSERT_DOUBLE_EQUAL(eager.time.step_s / (ops * slow.device.launch_s), 1, 1e-3);
	CU_ASSERT_PTR_NOT_NULL(strstr(eager.bottleneck, "kernel launches"));
	CU_ASSERT_DOUBLE_EQUAL(graph.time.step_s, device.time.step_s, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(fed(&slow, "train.cuda_graph=true train.sync_every=1").time.step_s,
		graph.time.step_s + 2 * slow.device.launch_s, 1e-9); /* the graph's, and the synchronisation's own */
}

/* With launch_blocking each kernel follows its own launch: launches and kernels add up. */
static void test_launch_blocking(void)
{
	struct machine m = gpu();
	struct program *p = build("", 1);
	const double ops = (double)p->roles[0].ops.n;
	program_destroy(p);
	struct result ahead = fed(&m, ""), blocking = fed(&m, "train.launch_blocking=true");
	CU_ASSERT_DOUBLE_EQUAL((blocking.time.step_s - ahead.time.step_s) / (ops * m.device.launch_s), 1, 0.02);
	CU_ASSERT_EQUAL(fed(&m, "train.launch_blocking=true train.cuda_graph=true").time.step_s,
		fed(&m, "train.cuda_graph=true").time.step_s);
}

static void test_pageable(void)
{
	struct machine m = gpu();
	struct result pinned = fed(&m, "data.bytes=1GB"), pageable = fed(&m, "data.bytes=1GB data.pin_memory=false");
	CU_ASSERT_DOUBLE_EQUAL(pinned.time.class_s[CLASS_COPY] / (4 * 1e9 / m.device.pcie_Bps), 1,
		0.1); /* they share the memory with compute */
	CU_ASSERT_DOUBLE_EQUAL(pageable.time.class_s[CLASS_COPY] / (2 * 4 * 1e9 / m.device.pcie_Bps), 1, 0.1);
	CU_ASSERT(pageable.time.step_s > pinned.time.step_s);
}

/* 10, 5, 4 s and a class too small to count, which differs. */
static void test_pace(void)
{
	static struct result was, is;
	static const enum op_class large[] = {CLASS_GEMM, CLASS_ATTENTION, CLASS_OPTIMIZER};
	static const double was_s[] = {10, 5, 4}, is_s[] = {12, 5.5, 5.1};
	for (size_t i = 0; i < COUNT(large); i++) {
		was.time.class_s[large[i]] = was_s[i];
		is.time.class_s[large[i]] = is_s[i];
	}
	was.time.class_s[CLASS_ALL_REDUCE] = 3; /* no op of the device */
	was.time.class_s[CLASS_LOSS] = 0.2;
	is.time.class_s[CLASS_LOSS] = 0.1;
	CU_ASSERT_DOUBLE_EQUAL(result_pace(&was, &is), 22.7 / 19.2, 1e-12);
	CU_ASSERT_DOUBLE_EQUAL(result_pace(&is, &was), 19.2 / 22.7, 1e-12);
	is.time.class_s[CLASS_ATTENTION] = 4.9;
	CU_ASSERT_EQUAL(result_pace(&was, &is), 1);
	was.time.class_s[CLASS_ATTENTION] = is.time.class_s[CLASS_ATTENTION] = 0;
	CU_ASSERT_EQUAL(result_pace(&was, &is), 1); /* two classes alone */
}

UNIT_MAIN("prediction: the host", {"a data loader", test_loader}, {"synchronisation", test_sync},
	{"launches and graphs", test_launches}, {"launches that are waited for", test_launch_blocking},
	{"copies from pageable memory", test_pageable}, {"the pace of a machine", test_pace})
