/* Figures of predictions, each with its limit: the program fails when one is missed. CPU time, so that neighbours on
 * the machine do not count. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/heap.h"
#include "sim/advise/advise.h"
#include "sim/price/cost.h"
#include "sim/search/evaluate.h"
#include "sim/engine/predict.h"
#include "sim/search/search.h"
#include "tests/unit/rates.h"

static double cpu_s(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int verdict(const char *what, double value, double limit, int most, const char *unit)
{
	int missed = most ? value > limit : value < limit;
	printf("%-66s %12.4g %-12s (at %s %g)%s\n", what, value, unit, most ? "most" : "least", limit,
		missed ? "  MISSED" : "");
	return missed;
}

static void die(const char *what, const struct error *e)
{
	fprintf(stderr, "%s: %s\n", what, e->text);
	exit(1);
}

static void load(const char *text, struct config *c)
{
	struct error e = {0};
	if (config_parse(text, strlen(text), "bench", NULL, 0, c, &e))
		die("config", &e);
}

/* ---- full predictions ---- */

/* As the command line gives it. */
static void advise_on(const char *text, const struct program *p, const struct machine *m, const struct result *r)
{
	struct advice *advice = malloc(sizeof *advice);
	struct config_reader *reader;
	struct error e = {0};
	if (!advice || config_reader_create(text, strlen(text), "bench", &reader, &e))
		die("advice", &e);
	const struct advise_case a = {.reader = reader,
		.program = p,
		.machine = m,
		.predicted = r,
		.budget_ops = ADVICE_BUDGET_OPS};
	if (advise(&a, advice, &e))
		die("advice", &e);
	config_reader_destroy(reader);
	free(advice);
}

static void predict_405b(int64_t gpus, bool advised)
{
	static const char text[] =
		"model: {preset: llama3-405b}\n"
		"train: {stack: megatron-core, dtype: bf16, global_batch: %lld, micro_batch: 1}\n"
		"parallel: {strategy: zero1, tensor: 8, sequence_parallel: true, pipeline: 16, schedule: 1f1b, "
		"layers_per_stage: [7, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 7]}\n";
	char filled[sizeof text + 20];
	struct config c;
	struct machine m;
	struct program *p = NULL;
	struct result r;
	struct timeline t;
	struct error e = {0};
	snprintf(filled, sizeof filled, text,
		(long long)(16 * gpus /
			    128)); /* 16 micro-batches of a sequence each, as Meta's 16 million tokens on 16,384 GPUs */
	load(filled, &c);
	if (machine_load("dgx-h100", gpus / 8, 0, &m, &e) || config_resolve(&c, gpus, &e) ||
		program_build(&c, &p, &e) || predict(p, &m, &r, &t, &e))
		die("llama3-405b", &e);
	if (advised)
		advise_on(filled, p, &m, &r);
	timeline_free(&t);
	program_destroy(p);
	machine_free(&m);
}

/* In a process of its own: its memory's peak is nobody else's. */
static int bench_predict(int64_t gpus, bool advised, double most_s, double most_MB)
{
	char what[80];
	fflush(stdout);
	pid_t child = fork();
	if (child == 0) {
		predict_405b(gpus, advised);
		_exit(0);
	}
	int status = 1;
	struct rusage u;
	if (child < 0 || wait4(child, &status, 0, &u) != child || status != 0)
		return 1;
	double s = (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	           1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
	snprintf(what, sizeof what, "predict%s Llama 3 405B, %lld GPUs, TP 8, PP 16, DP %lld",
		advised ? " and advise" : "", (long long)gpus, (long long)(gpus / 128));
	int missed = verdict(what, s, most_s, 1, "s");
	return verdict("  memory", (double)u.ru_maxrss * 1024 / 1e6, most_MB, 1, "MB") || missed;
}

/* ---- plans ---- */

static struct {
	int64_t plans, illegal, too_large, timed, predicted;
} counts;

static void plan(struct evaluator *v, struct config *c, int64_t gpus)
{
	struct evaluation out;
	struct error e = {0};
	if (evaluate_plan(v, c, gpus, &out, &e))
		die("a plan", &e);
	counts.plans++;
	counts.illegal += !out.legal;
	counts.too_large += out.legal && !out.fits;
	counts.timed += out.fits;
	counts.predicted += out.fits && !out.folded;
}

static void strategies(struct evaluator *v, struct config *c, int64_t gpus)
{
	const struct parallel *p = &c->parallel;
	const int64_t data = gpus / (p->tensor * p->pipeline);
	const int last = data == 1 ? STRAT_DDP : p->pipeline > 1 ? STRAT_ZERO1 : STRAT_FSDP;
	for (int s = STRAT_DDP; s <= last; s++)
		for (int overlap = 0; overlap < (data > 1 ? 2 : 1); overlap++) {
			c->parallel.strategy = data == 1 ? STRAT_NONE : (enum strategy)s;
			c->parallel.overlap = !overlap;
			plan(v, c, gpus);
		}
}

static void schedules(struct evaluator *v, struct config *c, int64_t gpus)
{
	const int64_t stages = c->parallel.pipeline, layers = c->model.layers;
	c->parallel.virtual_stages = 1;
	c->parallel.schedule = SCHED_1F1B;
	strategies(v, c, gpus);
	if (stages == 1)
		return;
	c->parallel.schedule = SCHED_GPIPE;
	strategies(v, c, gpus);
	c->parallel.schedule = SCHED_INTERLEAVED;
	for (int64_t chunks = 2; chunks * stages <= layers; chunks++)
		if (layers % (chunks * stages) == 0 && chunks * stages < layers) {
			c->parallel.virtual_stages = chunks;
			strategies(v, c, gpus);
		}
}

/* Every legal way to split GPT-3 over 64 to 1,024 GPUs, as a search would go through it. */
static void enumerate(struct evaluator *v, struct config *c)
{
	for (int64_t gpus = 64; gpus <= 1024;
		gpus += gpus & (gpus - 1) ? gpus / 3 : gpus / 2) /* 64, 96, 128, 192, ... */
		for (int64_t tensor = 1; tensor <= 8; tensor *= 2)
			for (int sequence = 0; sequence < (tensor > 1 ? 2 : 1); sequence++)
				for (int64_t stages = 1; stages <= c->model.layers; stages++)
					for (int64_t micro = 1; micro <= 16; micro *= 2)
						for (int recompute = 0; recompute < 2; recompute++) {
							const int64_t data = gpus / (tensor * stages);
							if (c->model.layers % stages != 0 ||
								stages == c->model.layers ||
								data * tensor * stages != gpus ||
								c->train.global_batch % (micro * data) != 0)
								continue;
							c->parallel.tensor = tensor;
							c->parallel.sequence_parallel = sequence;
							c->parallel.pipeline = stages;
							c->train.micro_batch = micro;
							c->train.recompute = recompute ? REC_FULL : REC_NONE;
							c->train.recompute_layers = AUTO;
							schedules(v, c, gpus);
						}
}

static int bench_plans(void)
{
	struct config c;
	struct machine m;
	struct evaluator *v;
	struct error e = {0};
	load("model: {preset: gpt3-175b, vocab_padding: 128}\n"
	     "train: {stack: megatron-core, dtype: bf16, global_batch: 1536}\n",
		&c);
	if (machine_load("dgx-a100", 128, 0, &m, &e) || evaluator_create(&m, &v, &e))
		die("plans", &e);
	double begin_s = cpu_s();
	enumerate(v, &c);
	double lasted_s = cpu_s() - begin_s;
	evaluator_destroy(v);
	machine_free(&m);
	printf("plans of GPT-3 175B on 64 to 1,024 GPUs: %lld different ones in %.2f s, warming up included: %lld "
	       "illegal, %lld too large for memory, %lld timed (%lld of them predicted, not folded)\n",
		(long long)counts.plans, lasted_s, (long long)counts.illegal, (long long)counts.too_large,
		(long long)counts.timed, (long long)counts.predicted);
	int missed = verdict("  plans evaluated", (double)(counts.plans - counts.illegal) / lasted_s, 30000, 0,
		"a second");
	printf("  of them timed: %.0f a second\n", (double)counts.timed / lasted_s);
	return missed;
}

/* The whole search: all keys free. CPU time of all its threads. */
static int bench_search(void)
{
	enum { GPUS = 256, SECONDS = 5 /* of CPU */, CORES = 2 };
	struct config *c = malloc(sizeof *c);
	struct search_result *r = malloc(sizeof *r);
	struct machine m;
	struct error e = {0};
	const struct search_options o = {.threads = CORES};
	if (!c || !r)
		return 1;
	load("model: {preset: llama3-70b}\n"
	     "train: {stack: megatron-core, dtype: bf16, global_batch: 512, micro_batch: 1}\n"
	     "parallel: {strategy: zero1, tensor: 8, sequence_parallel: true, pipeline: 4}\n",
		c);
	if (machine_load("dgx-h100", GPUS / 8, 0, &m, &e))
		die("machine", &e);
	c->node_ranks = m.devices_per_node;
	double begin_s = cpu_s();
	if (search(c, &m, GPUS, &o, r, &e))
		die("search", &e);
	double lasted_s = cpu_s() - begin_s;
	printf("search, Llama 3 70B on %d H100: %lld plans, %lld too large, %lld pruned, %lld timed\n", GPUS,
		(long long)r->counts.plans, (long long)r->counts.too_large, (long long)r->counts.pruned,
		(long long)r->counts.timed);
	search_free(r);
	machine_free(&m);
	free(r);
	free(c);
	return verdict("  CPU time", lasted_s, SECONDS, 1, "s");
}

/* ---- one collective ---- */

static int bench_all_reduce(void)
{
	enum { REPEATS = 1000, RANKS = 65536 };
	struct machine m;
	struct error e = {0};
	if (machine_load("dgx-h100", RANKS / 8, 0, &m, &e))
		die("machine", &e);
	double begin_s = cpu_s(), sum = collective_time_s(RATES(&m), COLL_ALL_REDUCE, RANKS, 1, 1e9, NULL),
	       first_s = cpu_s() - begin_s;
	begin_s = cpu_s();
	for (int i = 0; i < REPEATS; i++)
		sum += collective_time_s(RATES(&m), COLL_ALL_REDUCE, RANKS, 1, 1e6 * (i + 1), NULL);
	double each_s = (cpu_s() - begin_s) / REPEATS;
	machine_free(&m);
	int missed = verdict("price of an all-reduce on 65,536 ranks, the first", 1e3 * first_s, 1, 1, "ms");
	return verdict("  any further", 1e3 * each_s, 1, 1, "ms") || missed || !(sum > 0);
}

int main(void)
{
	heap_keep_freed(); /* as the command line does */
	int missed = bench_predict(16384, false, 0.15, 100);
	missed |= bench_predict(16384, true, 0.6, 150);
	missed |= bench_predict(131072, false, 0.15, 100);
	missed |= bench_predict(131072, true, 0.6, 150);
	missed |= bench_plans();
	missed |= bench_search();
	missed |= bench_all_reduce();
	return missed;
}
