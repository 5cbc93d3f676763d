#include "tests/unit/constants.h"

#include <math.h>
#include <string.h>

#include "sim/engine/interval.h"

static const struct parameters *k;

static void test_constants(void) { k = read_constants(); }

/* A dense bf16 model whose software has a family, and a GPU that published steps tell of. */
static struct config config(void)
{
	struct config c = {.train.dtype = DT_BF16, .parallel.context = 1, .stack.family = true};
	return c;
}

static struct machine machine(void)
{
	struct machine m = {.parameters = k, .device.step_sources = 1};
	strcpy(m.device.id, "h100-sxm");
	for (size_t i = 0; i < DEVICE_KERNELS; i++)
		m.device.attention_share[i][0] = 0.5;
	return m;
}

/* A step of 2 s that is all products, but for what a test adds. */
static struct result step(void)
{
	struct result r = {.time.step_s = 2};
	r.time.class_s[CLASS_GEMM] = 2;
	return r;
}

/* Returns the half-width, by which the interval reaches above the step. It reaches below by a share of it. */
static double width(const struct config *c, const struct machine *m, struct result r)
{
	interval_set_published(c, m, &r);
	const double w = log(r.interval90_s[1] / r.time.step_s);
	CU_ASSERT_DOUBLE_EQUAL(log(r.time.step_s / r.interval90_s[0]), k->interval.below * w, 1e-12);
	return w;
}

/* Runs like those that fixed a stack are as far off as those were, whatever their step consists of. */
static void test_like_its_rows(void)
{
	struct config c = config();
	struct machine m = machine();
	struct result r = step();
	c.stack.interval = 0.1;
	c.stack.fitted_format[DT_BF16] = true;
	strcpy(c.stack.fitted_gpus, "a100 h100-sxm ");
	r.time.class_s[CLASS_NORM] = r.time.exposed_comm_s = r.host_thread_s = 1;
	CU_ASSERT_DOUBLE_EQUAL(width(&c, &m, r), 0.1, 1e-12);
	m.device.step_sources = 0;
	m.device.compute_capability = 90;
	CU_ASSERT_DOUBLE_EQUAL(width(&c, &m, r), hypot(0.1, k->interval.unknown_gpu), 1e-12);
}

/* Another maker's libraries are as unknown as they can be until a whole step tells of its GPU. */
static void test_other_maker(void)
{
	const struct config c = config();
	const struct result r = step();
	struct machine m = machine();
	m.device.compute_capability = 0;
	m.device.step_sources = 0;
	CU_ASSERT_DOUBLE_EQUAL(width(&c, &m, r), hypot(k->interval.software, k->interval.unknown_maker), 1e-12);
	CU_ASSERT_TRUE(k->interval.unknown_maker > k->interval.unknown_gpu);
	m.device.step_sources = 1;
	m.device.attention_share[c.stack.attention_kernel][0] = 0;
	CU_ASSERT_DOUBLE_EQUAL(width(&c, &m, r), hypot(k->interval.software, k->interval.unknown_gpu), 1e-12);
}

/* The optimizer moves memory like the kernels between products, and no product hides it. */
static void test_optimizer(void)
{
	const struct config c = config();
	const struct machine m = machine();
	struct result r = step();
	const double without = width(&c, &m, r);
	r.time.class_s[CLASS_OPTIMIZER] = 1;
	CU_ASSERT_DOUBLE_EQUAL(width(&c, &m, r), hypot(without, k->interval.traffic / 2), 1e-12);
}

/* Another GPU, another format, experts: it is as unknown as any run of the family, and never narrower. */
static void test_unlike_its_rows(void)
{
	const struct result r = step();
	struct machine m = machine();
	struct config fitted = config(), c;
	fitted.stack.interval = 0.1;
	fitted.stack.fitted_format[DT_BF16] = true;
	strcpy(fitted.stack.fitted_gpus, "a100 h100-sxm ");
	c = fitted;
	c.train.dtype = DT_FP8;
	CU_ASSERT_DOUBLE_EQUAL(width(&c, &m, r), k->interval.software, 1e-12);
	c = fitted;
	c.model.experts = 8;
	c.train.fused = true;
	CU_ASSERT_DOUBLE_EQUAL(width(&c, &m, r), hypot(k->interval.software, k->interval.experts), 1e-12);
	c.train.fused = false; /* each model's own Python */
	CU_ASSERT_DOUBLE_EQUAL(width(&c, &m, r), hypot(k->interval.software, k->interval.experts_eager), 1e-12);
	c = fitted;
	strcpy(m.device.id, "h100"); /* a part of a name is not the name */
	CU_ASSERT_DOUBLE_EQUAL(width(&c, &m, r), k->interval.software, 1e-12);
	c.stack.interval = 2 * k->interval.software;
	CU_ASSERT_DOUBLE_EQUAL(width(&c, &m, r), 2 * k->interval.software, 1e-12);
}

static void test_parts(void)
{
	const double own = k->interval.software;
	struct config c = config();
	const struct machine m = machine();
	struct result r = step();
	c.train.fused = true;
	CU_ASSERT_DOUBLE_EQUAL(width(&c, &m, r), own, 1e-12);
	c.stack.family = false;
	CU_ASSERT_DOUBLE_EQUAL(width(&c, &m, r), k->interval.no_family, 1e-12);
	c.stack.family = true;
	r.time.class_s[CLASS_NORM] = 0.1;
	r.time.class_s[CLASS_ELEMENTWISE] = 0.2;
	r.time.class_s[CLASS_LOSS] = 0.3;
	r.time.class_s[CLASS_MEMORY] = 0.4;
	const double traffic = hypot(own, k->interval.traffic * 0.5);
	CU_ASSERT_DOUBLE_EQUAL(width(&c, &m, r), traffic, 1e-12);
	r.time.comm_s = 1.5; /* hidden but for a third */
	r.time.exposed_comm_s = 0.5;
	const double network = hypot(traffic, k->interval.network * 0.25);
	CU_ASSERT_DOUBLE_EQUAL(width(&c, &m, r), network, 1e-12);
	/* The host thread counts where, slower by its own width, it would outlast the device. */
	r.host_thread_s = 2 * 0.99 * exp(-k->interval.host);
	CU_ASSERT_DOUBLE_EQUAL(width(&c, &m, r), network, 1e-12);
	r.host_thread_s = 2 * 1.2 * exp(-k->interval.host);
	CU_ASSERT_DOUBLE_EQUAL(width(&c, &m, r), hypot(network, log(1.2)), 1e-12);
	/* The host thread of a step that waits for it takes all of it, and no more. */
	r.host_thread_s = 5;
	CU_ASSERT_DOUBLE_EQUAL(width(&c, &m, r), hypot(network, k->interval.host), 1e-12);
	c.train.fused = false; /* each model's own Python */
	CU_ASSERT_DOUBLE_EQUAL(width(&c, &m, r), hypot(network, k->interval.host_eager), 1e-12);
	c.train.fused = true;
	/* Attention is less known where ranks share its sequence. */
	r.time.class_s[CLASS_ATTENTION] = 1;
	CU_ASSERT_DOUBLE_EQUAL(width(&c, &m, r), hypot(network, k->interval.host), 1e-12);
	c.parallel.context = 2;
	CU_ASSERT_DOUBLE_EQUAL(width(&c, &m, r), hypot(hypot(network, k->interval.host), k->interval.context / 2),
		1e-12);
}

/* What may be unknown of a run. */
enum gap {
	GAP_GPU,       /* the stack's rows ran on others */
	GAP_FORMAT,    /* and in another format */
	GAP_FAMILY,    /* the stack has none */
	GAP_EXPERTS,   /* the model has some */
	GAP_CONTEXT,   /* ranks share a sequence */
	GAP_ATTENTION, /* no run tells of the GPU's kernels */
	GAP_STEPS,     /* nor of its steps */
	GAP_MAKER,     /* whose libraries are not NVIDIA's */
	GAP_EAGER,     /* nothing fuses its operators */
	GAP_COUNT
};

static double width_with_gaps(unsigned gaps, double own, const struct result *r)
{
	struct config c = config();
	struct machine m = machine();
	c.stack.interval = own;
	c.stack.fitted_format[DT_BF16] = true;
	strcpy(c.stack.fitted_gpus, gaps & 1u << GAP_GPU ? "a100 " : "a100 h100-sxm ");
	if (gaps & 1u << GAP_FORMAT)
		c.train.dtype = DT_FP8;
	c.stack.family = !(gaps & 1u << GAP_FAMILY);
	c.model.experts = gaps & 1u << GAP_EXPERTS ? 8 : 0;
	c.parallel.context = gaps & 1u << GAP_CONTEXT ? 2 : 1;
	if (gaps & 1u << GAP_ATTENTION)
		memset(m.device.attention_share, 0, sizeof m.device.attention_share);
	if (gaps & 1u << GAP_STEPS)
		m.device.step_sources = 0;
	m.device.compute_capability = gaps & 1u << GAP_MAKER ? 0 : 90;
	c.train.fused = !(gaps & 1u << GAP_EAGER);
	return width(&c, &m, *r);
}

/* Whatever else is known, and whatever the step consists of, one more gap never makes the interval narrower. */
static void test_less_known(void)
{
	static const double owns[] = {0.02, 0.1, 0.3, 0.6}, shares[] = {0, 0.1, 0.5, 1};
	for (size_t o = 0; o < sizeof owns / sizeof *owns; o++)
		for (size_t s = 0; s < sizeof shares / sizeof *shares; s++) {
			struct result r = step();
			r.time.class_s[CLASS_NORM] = r.time.class_s[CLASS_ATTENTION] = r.host_thread_s =
				r.time.exposed_comm_s = shares[s] * r.time.step_s;
			for (unsigned gaps = 0; gaps < 1u << GAP_COUNT; gaps++)
				for (unsigned one = 1; one < 1u << GAP_COUNT; one <<= 1)
					CU_ASSERT_TRUE(width_with_gaps(gaps | one, owns[o], &r) >=
						       width_with_gaps(gaps, owns[o], &r) - 1e-12);
		}
}

/* What is further unknown comes beside what was there; the sides keep their ratio. */
static void test_widened(void)
{
	struct result r = step();
	r.interval90_s[0] = 2 * exp(-0.1);
	r.interval90_s[1] = 2 * exp(0.2);
	interval_widen(&r, 0.1);
	CU_ASSERT_DOUBLE_EQUAL(r.interval90_s[1], 2 * exp(hypot(0.2, 0.1)), 1e-12);
	CU_ASSERT_DOUBLE_EQUAL(r.interval90_s[0], 2 * exp(-hypot(0.2, 0.1) / 2), 1e-12);
	interval_widen(&r, 0);
	CU_ASSERT_DOUBLE_EQUAL(r.interval90_s[1], 2 * exp(hypot(0.2, 0.1)), 1e-12);
}

UNIT_MAIN("interval", {"the constants", test_constants}, {"a step like the stack's rows", test_like_its_rows},
	{"another maker", test_other_maker}, {"the optimizer", test_optimizer},
	{"a step unlike them", test_unlike_its_rows}, {"parts", test_parts},
	{"less known is never narrower", test_less_known}, {"further unknowns", test_widened})
