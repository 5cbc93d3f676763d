/* Tests the questions, counts and decisions of `compare`, on made-up systems whose throughput is a formula. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "cli/compare.h"
#include "tests/unit/harness.h"

static struct error e;

/* ---- the command line's texts ---- */

static void test_target(void)
{
	static const struct {
		const char *text;
		double tokens, within_s;
	} good[] = {{"15e12 tokens in 30d", 15e12, 30 * 86400}, {"15T tokens in 30 days", 15e12, 30 * 86400},
		{"300B tokens", 300e9, 0}, {"  2.5e11  tokens  in  4 weeks ", 2.5e11, 28 * 86400},
		{"1e9tokens in 90min", 1e9, 5400}, {"1000 tokens in 1h", 1000, 3600}, {"500k steps", 500e3 * 4096, 0},
		{"2steps in 1h", 2 * 4096, 3600}, {"4M tokens in 2 weeks", 4e6, 14 * 86400},
		{"500K tokens in 1 day", 500e3, 86400}};
	static const char *const bad[] = {"", "tokens", "15e12", "15e12 tokens in", "15e12 tokens in 30",
		"15e12 tokens in 30x", "15e12 tokens within 30d", "-1 tokens in 30d", "0 tokens in 30d", "nan tokens",
		"inf tokens", "0x10 tokens", "15Q tokens in 30d", "15e12 tokens in 0d", "15e12 tokens in 30d and more",
		"3 stepss", "1e400 tokens", "1e9 tokens in 5 fortnights", "1e9 tokens in 1 h 5"};
	double tokens, within_s;
	for (size_t i = 0; i < COUNT(good); i++) {
		e = (struct error){0};
		CU_ASSERT_EQUAL(compare_read_target(good[i].text, 4096, &tokens, &within_s, &e), ST_OK);
		CU_ASSERT_DOUBLE_EQUAL(tokens / good[i].tokens, 1, 1e-12);
		CU_ASSERT_EQUAL(within_s, good[i].within_s);
	}
	for (size_t i = 0; i < COUNT(bad); i++) {
		e = (struct error){0};
		CU_ASSERT_EQUAL(compare_read_target(bad[i], 4096, &tokens, &within_s, &e), ST_INPUT);
		CU_ASSERT_PTR_NOT_NULL(strstr(e.text, "15e12 tokens in 30d"));
	}
}

/* The steps of a batch per GPU differ by system. */
static void test_target_steps(void)
{
	double tokens, within_s;
	e = (struct error){0};
	CU_ASSERT_EQUAL(compare_read_target("500k steps", 0, &tokens, &within_s, &e), ST_INPUT);
	CU_ASSERT_EQUAL(compare_read_target("5M tokens", 0, &tokens, &within_s, &e), ST_OK);
}

static void test_systems(void)
{
	static const char *const lists[] = {"dgx-h100, dgx-a100@16", "node:2 gpu:8 l40s nic:1x100Gb"};
	static const char *const bad[] = {"dgx-h100,,dgx-a100", "dgx-h100@", "dgx-h100@0", "dgx-h100@8x", "dgx-h101",
		"node:2 gpu:8 l40s nic:1x100Gb@16"};
	asked_systems asked = {0};
	e = (struct error){0};
	CU_ASSERT_EQUAL(compare_read_systems(lists, 2, &asked, &e), ST_OK);
	CU_ASSERT_EQUAL_FATAL(asked.n, 3);
	CU_ASSERT_STRING_EQUAL(asked.at[1].name, "dgx-a100");
	CU_ASSERT_EQUAL(asked.at[0].gpus, 0);
	CU_ASSERT_EQUAL(asked.at[1].gpus, 16);
	CU_ASSERT_EQUAL(asked.at[2].spec.nodes, 2);
	vec_free(&asked);
	for (size_t i = 0; i < COUNT(bad); i++) {
		e = (struct error){0};
		CU_ASSERT_EQUAL(compare_read_systems(&bad[i], 1, &asked, &e), ST_INPUT);
		CU_ASSERT_EQUAL(strncmp(e.text, "--systems", 9), 0);
		vec_free(&asked);
	}
	e = (struct error){0};
	CU_ASSERT_EQUAL(compare_read_systems(NULL, 0, &asked, &e), ST_INPUT);
}

/* ---- sizes, by a solver whose throughput is known ---- */

struct world {
	double tokens_per_s; /* of one GPU alone; of n: n^0.9 times as many */
	int64_t fits_from;   /* GPUs */
	int solved;
};

static double throughput(const struct world *w, int64_t gpus) { return w->tokens_per_s * pow((double)gpus, 0.9); }

static enum status pretend(void *context, const struct asked_system *a, struct size size, struct compare_row *r,
	struct error *err)
{
	struct world *w = context;
	int64_t gpus = size.nodes * size.per_node;
	(void)a;
	(void)err;
	w->solved++;
	r->predicted = calloc(1, sizeof *r->predicted);
	r->fits = gpus >= w->fits_from;
	r->missing_B = r->fits ? 0 : 1000;
	r->predicted->tokens_per_s = throughput(w, gpus);
	r->predicted->time.step_s = 1;
	return ST_OK;
}

static struct config batch(int64_t global_batch, int64_t layers)
{
	struct config c = {0};
	c.train.global_batch = global_batch;
	c.train.dtype = DT_BF16;
	c.model = (struct model){.layers = layers,
		.heads = 32,
		.hidden = 4096,
		.kv_heads = 32,
		.head_dim = 128,
		.ffn_hidden = 16384,
		.vocab = 50257,
		.seq_len = 2048};
	c.parallel.tensor = c.parallel.pipeline = c.parallel.context = 1;
	c.cost = (struct cost){AUTO, AUTO, AUTO, AUTO, AUTO, AUTO};
	return c;
}

static struct asked_system box(int64_t gpus, double price_usd, double rent_usd)
{
	struct asked_system a = {.name = "box"};
	a.spec.gpus = a.spec.nics = gpus;
	a.spec.price_usd = price_usd;
	a.spec.rent_usd_per_hour = rent_usd;
	a.spec.power_W = 10000;
	a.spec.device.matrix_flop_per_s[DT_BF16] = 1e15;
	return a;
}

/* The fewest hosts of all that split the work, tried one by one. */
static int64_t fewest(const struct world *w, const struct config *c, int64_t per_node, double tokens, double within_s)
{
	for (int64_t n = 1; n < 100000; n++)
		if (compare_splits(c, n * per_node) && n * per_node >= w->fits_from &&
			tokens / throughput(w, n * per_node) <= within_s)
			return n;
	return 0;
}

static void test_target_size(void)
{
	static const int64_t batches[] = {1024, 1536, 1440, 7 * 512, 1};
	static const double days[] = {2, 5, 30, 90, 400};
	for (size_t k = 0; k < COUNT(batches); k++)
		for (size_t i = 0; i < COUNT(days); i++)
			for (int64_t from = 1; from <= 512; from *= 64) {
				struct world w = {.tokens_per_s = 900, .fits_from = from};
				struct config c = batch(batches[k], 30);
				struct asked_system a = box(8, 4e5, 0);
				struct compare ask = {.mode = COMPARE_TARGET,
					.tokens = 1e12,
					.within_s = days[i] * 86400};
				const struct compare_solver solver = {.solve = pretend, .ctx = &w, .config = &c};
				struct compare_row r = {0};
				e = (struct error){0};
				CU_ASSERT_EQUAL(compare_size(&ask, &solver, &a, &r, &e), ST_OK);
				int64_t n = fewest(&w, &c, 8, ask.tokens, ask.within_s);
				CU_ASSERT_EQUAL(r.fits, n > 0);
				CU_ASSERT_EQUAL(r.gpus, 8 * n);
				CU_ASSERT(w.solved <= 20);
				free(r.predicted);
			}
}

static void test_target_missed(void)
{
	struct world w = {.tokens_per_s = 1e-3};
	struct config c = batch(1024, 32);
	struct asked_system a = box(8, 4e5, 0);
	struct compare ask = {.mode = COMPARE_TARGET, .tokens = 1e12, .within_s = 86400};
	const struct compare_solver solver = {.solve = pretend, .ctx = &w, .config = &c};
	struct compare_row r = {0};
	CU_ASSERT_EQUAL(compare_size(&ask, &solver, &a, &r, &e), ST_OK);
	CU_ASSERT_FALSE(r.fits);
	CU_ASSERT_PTR_NOT_NULL(strstr(r.reason, "the target is not reached"));
	CU_ASSERT_PTR_NULL(r.predicted);
}

/* Predicts a plan with as many replicas as the ranks make. */
static enum status pretend_plan(void *context, const struct asked_system *a, struct size size,
	const struct config *plan, struct compare_row *r, struct error *err)
{
	const int64_t replicas = size.nodes * size.per_node / (plan->parallel.tensor * plan->parallel.pipeline);
	CU_ASSERT_EQUAL(plan->parallel.data, AUTO);
	CU_ASSERT_EQUAL(plan->train.global_batch % (replicas * plan->train.micro_batch), 0);
	enum status st = pretend(context, a, size, r, err);
	if (!st && !(r->config = malloc(sizeof *r->config)))
		return ST_RUN;
	*r->config = *plan;
	return st;
}

/* Predicts tp 2 with micro-batches of 2 on any count. */
static enum status pretend_best(void *context, const struct asked_system *a, struct size size, struct compare_row *r,
	struct error *err)
{
	enum status st = pretend(context, a, size, r, err);
	if (!st && !(r->config = malloc(sizeof *r->config)))
		return ST_RUN;
	*r->config = batch(1024, 32);
	r->config->parallel.tensor = 2;
	r->config->parallel.data = size.nodes * size.per_node / 2;
	r->config->train.micro_batch = 2;
	return st;
}

/* Of a batch of 1024 only powers of two of hosts can share it: 20 hosts of the 32 would do with a batch of 960. */
static void test_near_batches(void)
{
	struct world w = {.tokens_per_s = 900};
	struct config c = batch(1024, 32);
	struct asked_system a = box(8, 4e5, 10);
	const double needed = throughput(&w, 19 * 8 + 1);
	struct compare ask = {.mode = COMPARE_TARGET, .tokens = 1e12, .within_s = 1e12 / needed};
	const struct compare_solver solver = {.solve = pretend_best, .ctx = &w, .config = &c, .predict = pretend_plan};
	struct compare_row r = {0};
	CU_ASSERT_EQUAL(compare_size(&ask, &solver, &a, &r, &e), ST_OK);
	CU_ASSERT_EQUAL(r.gpus, 256);
	CU_ASSERT_EQUAL_FATAL(r.n_near, 2);
	CU_ASSERT_EQUAL(r.near[0].gpus, 160);
	CU_ASSERT_EQUAL(r.near[0].config->train.global_batch, 960);
	CU_ASSERT_EQUAL(r.near[1].gpus, 160);
	CU_ASSERT_EQUAL(r.near[1].config->train.global_batch, 1120);
	CU_ASSERT_DOUBLE_EQUAL(r.near[0].price_usd.value, 20 * 4e5, 1e-6);
	ask.power_usd_per_kwh.value = ask.amortize_years.value = ask.pue.value = 1;
	(void)!vec_push(&ask.rows, r);
	compare_count(&ask); /* 160 GPUs are slower and cheaper than 256 */
	CU_ASSERT_TRUE(ask.rows.at[0].near[0].money.time_s > ask.rows.at[0].money.time_s);
	CU_ASSERT_TRUE(ask.rows.at[0].near[0].money.rented_usd < ask.rows.at[0].money.rented_usd);
	compare_free(&ask);
}

/* A batch that follows from the GPUs needs no other; nor does a count that is barely enough. */
static void test_no_near_batches(void)
{
	struct world w = {.tokens_per_s = 900};
	struct config c = batch(1024, 32);
	struct asked_system a = box(8, 4e5, 10);
	for (int i = 0; i < 2; i++) {
		const double needed = throughput(&w, i ? 19 * 8 : 256);
		struct compare ask = {.mode = COMPARE_TARGET, .tokens = 1e12, .within_s = 1.0001e12 / needed};
		const struct compare_solver solver = {.solve = pretend_best,
			.ctx = &w,
			.config = &c,
			.predict = pretend_plan};
		struct compare_row r = {0};
		c.train.batch_per_gpu = i;
		CU_ASSERT_EQUAL(compare_size(&ask, &solver, &a, &r, &e), ST_OK);
		CU_ASSERT_TRUE(r.fits);
		CU_ASSERT_EQUAL(r.n_near, 0);
		compare_row_free(&r);
	}
}

/* A host without a NIC is alone, whatever its batch: the reason names the NIC. */
static void test_no_nic(void)
{
	struct world w = {.tokens_per_s = 900};
	struct config c = batch(1024, 32);
	struct asked_system a = box(8, 4e5, 0);
	struct compare ask = {.mode = COMPARE_TARGET, .tokens = 1e12, .within_s = 86400};
	const struct compare_solver solver = {.solve = pretend, .ctx = &w, .config = &c};
	struct compare_row r = {0};
	a.spec.nics = 0;
	CU_ASSERT_EQUAL(compare_size(&ask, &solver, &a, &r, &e), ST_OK);
	CU_ASSERT_FALSE(r.fits);
	CU_ASSERT_EQUAL(w.solved, 1);
	CU_ASSERT_PTR_NOT_NULL(strstr(r.reason, "no NIC"));
	CU_ASSERT_PTR_NULL(strstr(r.reason, "share this batch"));
	ask = (struct compare){.mode = COMPARE_BUDGET, .budget_usd = 2e6, .amortize_years = {.value = 5}};
	r = (struct compare_row){.spent_usd = NAN};
	CU_ASSERT_EQUAL(compare_size(&ask, &solver, &a, &r, &e), ST_OK);
	CU_ASSERT_EQUAL(r.gpus, 8);
	CU_ASSERT_PTR_NOT_NULL(strstr(r.size_note, "which would pay for 5, but a host has no NIC"));
	compare_row_free(&r);
}

/* Refuses what is larger than 64 GPUs. */
static enum status pretend_small(void *context, const struct asked_system *a, struct size size, struct compare_row *r,
	struct error *err)
{
	if (size.nodes * size.per_node <= 64)
		return pretend(context, a, size, r, err);
	snprintf(r->reason, sizeof r->reason, "a batch of 64 is not cut finer");
	return ST_OK;
}

static void test_refused(void)
{
	struct world w = {.tokens_per_s = 900};
	struct config c = batch(1024, 32);
	struct asked_system a = box(8, 4e5, 0);
	struct compare ask = {.mode = COMPARE_TARGET, .tokens = 1e12, .within_s = 1e12 / throughput(&w, 70)};
	const struct compare_solver solver = {.solve = pretend_small, .ctx = &w, .config = &c};
	struct compare_row r = {0};
	CU_ASSERT_EQUAL(compare_size(&ask, &solver, &a, &r, &e), ST_OK);
	CU_ASSERT_FALSE(r.fits);
	CU_ASSERT_PTR_NOT_NULL(strstr(r.reason, "128 are refused: a batch of 64 is not cut finer"));
	CU_ASSERT_PTR_NOT_NULL(strstr(r.reason, "are needed"));
}

static void test_budget_size(void)
{
	static const struct {
		double budget, price, rent;
		int64_t gpus;
		double spent;
	} cases[] = {{2e6, 4e5, 0, 32, 1.6e6}, /* five could be paid for, and 40 GPUs do not share a batch of 1024 */
		{1.6e6, 4e5, 0, 32, 1.6e6}, {4e5 - 1, 4e5, 0, 0, NAN}, {1e6, 0, 10, 16, 2 * 10 * 5 * 8766.},
		{1e6, 0, 0, 0, NAN}};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct world w = {.tokens_per_s = 900};
		struct config c = batch(1024, 32);
		struct asked_system a = box(8, cases[i].price, cases[i].rent);
		struct compare ask = {.mode = COMPARE_BUDGET,
			.budget_usd = cases[i].budget,
			.amortize_years = {.value = 5}};
		const struct compare_solver solver = {.solve = pretend, .ctx = &w, .config = &c};
		struct compare_row r = {.spent_usd = NAN};
		CU_ASSERT_EQUAL(compare_size(&ask, &solver, &a, &r, &e), ST_OK);
		CU_ASSERT_EQUAL(r.gpus, cases[i].gpus);
		CU_ASSERT_EQUAL(r.fits, cases[i].gpus > 0);
		CU_ASSERT_EQUAL(r.reason[0] == '\0', cases[i].gpus > 0);
		CU_ASSERT(isnan(cases[i].spent) ? isnan(r.spent_usd) : fabs(r.spent_usd / cases[i].spent - 1) < 1e-12);
		free(r.predicted);
	}
}

static void test_gpus_size(void)
{
	static const struct {
		int64_t asked, host, gpus;
		double hosts;
	} cases[] = {{64, 8, 64, 8}, {20, 8, 24, 3}, {1, 8, 1, 0.125}, {4, 4, 4, 1}, {100000, 8, 100000, 12500}};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct world w = {.tokens_per_s = 900};
		struct config c = batch(1024, 32);
		struct asked_system a = box(cases[i].host, 80000, 16);
		struct compare ask = {.mode = COMPARE_GPUS, .gpus = cases[i].asked};
		const struct compare_solver solver = {.solve = pretend, .ctx = &w, .config = &c};
		struct compare_row r = {0};
		CU_ASSERT_EQUAL(compare_size(&ask, &solver, &a, &r, &e), ST_OK);
		CU_ASSERT_EQUAL(r.gpus, cases[i].gpus);
		CU_ASSERT_DOUBLE_EQUAL(r.hosts, cases[i].hosts, 1e-12);
		CU_ASSERT_DOUBLE_EQUAL(r.price_usd.value, 80000 * cases[i].hosts, 1e-6);
		CU_ASSERT_EQUAL(r.size_note[0] != '\0', cases[i].asked % cases[i].host != 0);
		free(r.predicted);
	}
}

static void test_splits(void)
{
	struct config c = batch(128, 32);
	CU_ASSERT_TRUE(compare_splits(&c, 1) && compare_splits(&c, 8) && compare_splits(&c, 131072));
	CU_ASSERT_FALSE(compare_splits(&c, 40) || compare_splits(&c, 7));
	c = batch(128, 80);
	CU_ASSERT_TRUE(compare_splits(&c, 40)); /* five stages */
	CU_ASSERT_FALSE(compare_splits(&c, 200));
	c = batch(128 * 25, 80);
	CU_ASSERT_TRUE(compare_splits(&c, 125 * 8));
}

/* ---- prices: the config's, else the catalogue's, else none ---- */

static void test_figures(void)
{
	struct config c = batch(128, 32);
	struct asked_system a = box(8, 0, 0);
	struct compare_row r;
	a.spec.power_W = 0;
	a.spec.device.power_W = 700;
	a.spec.device.price_usd = 30000;
	a.spec.device.rent_usd_per_hour = 2;
	compare_figures(&a.spec, &c, (struct size){2, 8}, &r);
	CU_ASSERT_TRUE(r.power_W.partial && r.price_usd.partial && !r.rent_usd_per_hour.partial);
	CU_ASSERT_DOUBLE_EQUAL(r.power_W.value, 16 * 700, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(r.price_usd.value, 16 * 30000, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(r.rent_usd_per_hour.value, 32, 1e-9);
	a.spec.rent_usd_per_hour = 20; /* a host for rent and not for sale */
	compare_figures(&a.spec, &c, (struct size){2, 8}, &r);
	CU_ASSERT_DOUBLE_EQUAL(r.rent_usd_per_hour.value, 40, 1e-9);
	CU_ASSERT_TRUE(isnan(r.price_usd.value));
	c.cost.gpu_hour_usd = 0; /* free is not unknown */
	c.cost.system_price_usd = 100000;
	compare_figures(&a.spec, &c, (struct size){2, 8}, &r);
	CU_ASSERT_EQUAL(r.rent_usd_per_hour.value, 0);
	CU_ASSERT_EQUAL(r.price_usd.value, 200000);
	CU_ASSERT_FALSE(r.price_usd.partial);
}

/* ---- the ranking ---- */

static struct compare_row row(const char *name, double step_s, double half, double rent, double price)
{
	struct compare_row r = {.fits = true,
		.gpus = 8,
		.hosts = 1,
		.power_W = {.value = 10000},
		.rent_usd_per_hour = {.value = rent},
		.price_usd = {.value = price}};
	snprintf(r.name, sizeof r.name, "%s", name);
	r.predicted = calloc(1, sizeof *r.predicted);
	r.predicted->time.step_s = step_s;
	r.predicted->tokens_per_s = 1e5 / step_s;
	r.predicted->interval90_s[0] = step_s / half;
	r.predicted->interval90_s[1] = step_s * half;
	return r;
}

static struct compare_row too_large(const char *name, uint64_t missing_B)
{
	struct compare_row r = {.missing_B = missing_B};
	snprintf(r.name, sizeof r.name, "%s", name);
	return r;
}

static void rank(struct compare *c)
{
	c->tokens = 1e9;
	c->amortize_years.value = 5;
	c->power_usd_per_kwh.value = 0.1;
	c->pue.value = 1.5;
	compare_count(c);
	CU_ASSERT_EQUAL(compare_rank(c, &e), ST_OK);
}

static void test_ranking(void)
{
	struct compare c = {0};
	(void)!vec_push(&c.rows, too_large("more is missing", 2000));
	(void)!vec_push(&c.rows, row("slow and cheap", 2, 1.1, 10, 100000));
	(void)!vec_push(&c.rows, too_large("less is missing", 1000));
	(void)!vec_push(&c.rows, row("fast and dear", 1, 1.1, 40, 400000));
	(void)!vec_push(&c.rows, row("much the same", 1.05, 1.1, 40, 400000));
	rank(&c);
	CU_ASSERT_EQUAL(c.basis, BY_OWNED);
	static const char *const order[] = {"slow and cheap", "fast and dear", "much the same", "less is missing",
		"more is missing"};
	for (size_t i = 0; i < 5; i++) {
		CU_ASSERT_STRING_EQUAL(c.rows.at[i].name, order[i]);
		CU_ASSERT_EQUAL(c.rows.at[i].rank, i < 3 ? i + 1 : 0);
	}
	CU_ASSERT_FALSE(c.rows.at[0].overlaps || c.rows.at[1].overlaps); /* half the money: beyond 1.1 x 1.1 */
	CU_ASSERT_TRUE(c.rows.at[2].overlaps);
	c.mode = COMPARE_BUDGET; /* the money is equal: time decides */
	rank(&c);
	CU_ASSERT_EQUAL(c.basis, BY_TIME);
	CU_ASSERT_STRING_EQUAL(c.basis_note, "");
	c.rows.at[1].price_usd.partial = true; /* it buys GPUs there, and whole hosts elsewhere */
	rank(&c);
	CU_ASSERT_PTR_NOT_NULL(strstr(c.basis_note, "without their hosts"));
	for (size_t i = 0; i < 3; i++)
		c.rows.at[i].price_usd.partial = true;
	rank(&c);
	CU_ASSERT_STRING_EQUAL(c.basis_note, "");
	CU_ASSERT_STRING_EQUAL(c.rows.at[0].name, "fast and dear");
	compare_free(&c);
}

static void test_unknown_prices(void)
{
	struct compare c = {0};
	(void)!vec_push(&c.rows, row("slow, rented at 10", 2, 1.1, 10, NAN));
	(void)!vec_push(&c.rows, row("fast, rented at 40", 1, 1.1, 40, 400000));
	rank(&c);
	CU_ASSERT_EQUAL(c.basis, BY_RENTED);
	CU_ASSERT_PTR_NOT_NULL(strstr(c.basis_note, "owning slow, rented at 10"));
	CU_ASSERT_STRING_EQUAL(c.rows.at[0].name, "slow, rented at 10");
	c.rows.at[1].rent_usd_per_hour.value = NAN;
	rank(&c);
	CU_ASSERT_EQUAL(c.basis, BY_TIME);
	CU_ASSERT_STRING_EQUAL(c.rows.at[0].name, "fast, rented at 40");
	/* The GPUs alone of one and the whole host of the other: owning is not compared. */
	c.rows.at[0].rent_usd_per_hour.value = 40;
	c.rows.at[1].price_usd = (struct compare_figure){.value = 1000, .partial = true};
	rank(&c);
	CU_ASSERT_EQUAL(c.basis, BY_RENTED);
	for (size_t i = 0; i < 2; i++)
		c.rows.at[i].price_usd.partial = true;
	rank(&c);
	CU_ASSERT_EQUAL(c.basis, BY_OWNED);
	compare_free(&c);
}

UNIT_MAIN("compare", {"targets", test_target}, {"a target of steps", test_target_steps}, {"systems", test_systems},
	{"a target's size", test_target_size}, {"a target missed", test_target_missed},
	{"batches near the stated one", test_near_batches}, {"no batch is better", test_no_near_batches},
	{"a host without a NIC", test_no_nic}, {"larger counts are refused", test_refused},
	{"a budget's size", test_budget_size}, {"equal GPUs", test_gpus_size},
	{"counts that split the work", test_splits}, {"figures", test_figures}, {"the ranking", test_ranking},
	{"prices unknown", test_unknown_prices})
