/* Random plans on random clusters of 1 to 131,072 GPUs, fixed seed: what must hold of a prediction whatever the figures
 * are, by closed forms that know nothing of the builder, and from one plan to its neighbour. */
#include "base/array.h"
#include "tests/property/rounds.h"
#include "tests/unit/harness.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/engine/predict.h"
#include "topology/machine.h"

#define ROUNDS 200
#define EXACT 1e-9

static uint64_t state = 0x9e3779b97f4a7c15u;

static unsigned below(unsigned n) /* xorshift64* (Vigna 2016) */
{
	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return (unsigned)((state * UINT64_C(0x2545f4914f6cdd1d) >> 33) % n);
}

/* Sizes are such that every cut divides, and small enough for tens of thousands of ops a second. */
struct wish {
	const char *gpu, *fabric, *strategy, *stack, *recompute, *schedule;
	unsigned gpus, nodes, nic_Gbps, layers, heads, ffn, vocab, seq, micro_batch, micro_batches, tensor, pipeline,
		context;
	bool sequence_parallel, gated;
};

static struct wish random_wish(void)
{
	static const char *const fabrics[][2] = {{"h100-sxm", "nvswitch"}, {"a100-sxm-80", "nvswitch"},
		{"l40s", "none"}, {"a100-pcie-80", "none"}};
	static const char *const strategies[] = {"ddp", "zero1", "zero2", "fsdp", "hsdp"},
				 *const stacks[] = {"pytorch-fsdp", "pytorch-ddp", "megatron-core", "deepspeed",
					 "composer-fsdp"};
	static const char *const recomputes[] = {"none", "full"}, *const schedules[] = {"1f1b", "gpipe", "zero_bubble"};
	const char *const *fabric = fabrics[below(4)];
	struct wish w = {.gpu = fabric[0],
		.fabric = fabric[1],
		.stack = stacks[below(5)],
		.recompute = recomputes[below(2)],
		.schedule = schedules[below(3)]};
	w.gpus = 1u << below(4);
	w.nodes = 1u << below(15);
	w.nic_Gbps = 100u << below(3);
	w.heads = 8u << below(3);
	w.seq = 512u << below(4);
	w.vocab = 1024 * (1 + below(60));
	w.ffn = 512 * (2 + below(20));
	w.micro_batch = 1u << below(3);
	w.gated = below(2);
	unsigned ranks = w.gpus * w.nodes;
	w.tensor = 1u << below(4);
	w.pipeline = 1u << (below(2) ? 0 : below(3));
	w.context = w.pipeline > 1 || below(3) ? 1 : 2;
	while (w.tensor * w.pipeline * w.context > ranks)
		*(w.tensor > 1 ? &w.tensor : w.pipeline > 1 ? &w.pipeline : &w.context) /= 2;
	w.sequence_parallel = w.tensor > 1 && below(2);
	w.strategy = strategies[below(w.pipeline > 1 || ranks == 1 ? 2 : 5)];
	w.layers = w.pipeline * (1 + below(3));
	w.micro_batches = w.pipeline * (1 + below(3));
	return w;
}

static unsigned replicas(const struct wish *w) { return w->gpus * w->nodes / w->tensor / w->pipeline / w->context; }

struct answer {
	struct program *p;
	struct result r;
	double peak_flop_per_s;
};

static void give_up(const char *text, const struct error *e)
{
	fprintf(stderr, "%s%s\n", text, e->text);
	CU_FAIL_FATAL("a plan that cannot be predicted");
}

/* The caller destroys a->p. */
static void ask(const struct wish *w, struct answer *a)
{
	char text[1536], line[128];
	struct config c;
	struct machine m;
	struct timeline t;
	struct error e = {0};
	snprintf(line, sizeof line, "gpu:%u %s %s nic:%ux%uGb/s", w->gpus, w->gpu, w->fabric, w->gpus, w->nic_Gbps);
	snprintf(text, sizeof text,
		"model: {layers: %u, hidden: %u, heads: %u, ffn_hidden: %u, vocab: %u, seq_len: %u, mlp: %s, position: "
		"rope, bias: false, tied_embeddings: false}\n"
		"train: {stack: %s, dtype: bf16, micro_batch: %u, global_batch: %u, recompute: %s}\n"
		"parallel: {strategy: %s, tensor: %u, sequence_parallel: %s, context: %u, pipeline: %u%s%s}\n"
		"cluster: {system: \"%s\", nodes: %u}\n",
		w->layers, 64 * w->heads, w->heads, w->ffn, w->vocab, w->seq, w->gated ? "swiglu" : "gelu", w->stack,
		w->micro_batch, w->micro_batch * w->micro_batches * replicas(w), w->recompute, w->strategy, w->tensor,
		w->sequence_parallel ? "true" : "false", w->context, w->pipeline, w->pipeline > 1 ? ", schedule: " : "",
		w->pipeline > 1 ? w->schedule : "", line, w->nodes);
	if (machine_load(line, w->nodes, 0, &m, &e) || config_parse(text, strlen(text), "plan", NULL, 0, &c, &e))
		give_up(text, &e);
	c.node_ranks = m.devices_per_node;
	if (config_resolve(&c, (int64_t)w->gpus * w->nodes, &e) || program_build(&c, &a->p, &e) ||
		predict(a->p, &m, &a->r, &t, &e))
		give_up(text, &e);
	a->peak_flop_per_s = m.device.matrix_flop_per_s[DT_BF16];
	timeline_free(&t);
	machine_free(&m);
}

static double step_s(const struct wish *w)
{
	struct answer a;
	ask(w, &a);
	program_destroy(a.p);
	return a.r.time.step_s;
}

static void for_each(void (*check)(const struct wish *w, const struct answer *a))
{
	const int rounds = rounds_of(ROUNDS);
	for (int i = 0; i < rounds; i++) {
		struct wish w = random_wish();
		struct answer a;
		unsigned before = CU_get_number_of_failures();
		ask(&w, &a);
		check(&w, &a);
		program_destroy(a.p);
		if (CU_get_number_of_failures() > before)
			fprintf(stderr,
				"gpu:%u %s nodes %u, %s %s %s %s, tp %u%s pp %u cp %u, layers %u heads %u ffn %u%s "
				"vocab %u seq %u, %u x %u\n",
				w.gpus, w.gpu, w.nodes, w.strategy, w.stack, w.recompute, w.schedule, w.tensor,
				w.sequence_parallel ? " sp" : "", w.pipeline, w.context, w.layers, w.heads, w.ffn,
				w.gated ? " gated" : "", w.vocab, w.seq, w.micro_batch, w.micro_batches);
	}
}

/* ---- one plan ---- */

static void check_sums(const struct wish *w, const struct answer *a)
{
	(void)w;
	const struct result *r = &a->r;
	const struct breakdown *b = &r->time;
	double parts = b->compute_s + b->exposed_comm_s + b->copy_s + b->host_s + b->bubble_s + b->optimizer_s +
	               b->idle_s;
	CU_ASSERT_DOUBLE_EQUAL(parts, b->step_s, EXACT * b->step_s);
	CU_ASSERT_TRUE(b->compute_s > 0 && b->exposed_comm_s >= 0 && b->copy_s >= 0 && b->host_s >= 0 &&
		       b->bubble_s >= 0 && b->optimizer_s >= 0 && b->idle_s >= 0 && b->wait_s >= 0);
	CU_ASSERT_TRUE(b->overlap >= 0 && b->overlap <= 1);
	CU_ASSERT_TRUE(r->interval90_s[0] > 0 && r->interval90_s[0] < b->step_s && b->step_s < r->interval90_s[1]);
	CU_ASSERT_TRUE(r->mfu > 0 && r->mfu <= r->hfu); /* may pass 1: the convention counts pairs that causal attention
	                                                   leaves out, and tables that are only looked up */
	CU_ASSERT_TRUE(r->memory.total_B >= r->memory.weights_B + r->memory.overhead_B);
}

/* Sums over the stages, of one rank each. */
struct counted {
	double gemm_flop, tensor_elements, data_elements[COLL_COUNT], messages;
};

static struct counted count(const struct program *p)
{
	struct counted n = {0};
	for (size_t r = 0; r < p->n_roles; r++)
		for (size_t i = 0; i < p->roles[r].ops.n; i++) {
			const struct op *op = &p->roles[r].ops.at[i];
			if (op->kind == OP_GEMM)
				n.gemm_flop += op_flop(op);
			if (op->kind != OP_COLLECTIVE)
				continue;
			if (op_is_message(op))
				n.messages += (double)op->message.elements;
			else if (op->group == DIM_TP && op->dtype == DT_BF16 && op->bucket < 0)
				n.tensor_elements += (double)op->collective.elements *
				                     (op->coll == COLL_ALL_REDUCE
								     ? 2
								     : 1); /* an all-reduce moves what a reduce-scatter
				                                              and an all-gather move */
			else if (op->group == p->mesh.params)
				n.data_elements[op->coll] += (double)op->collective.elements;
		}
	return n;
}

/* Parameters of one tensor rank that matrices hold: a block's, and the vocabulary's once. */
static double block_parameters(const struct wish *w)
{
	double h = 64.0 * w->heads;
	return (4 * h * h + (w->gated ? 3 : 2) * h * w->ffn) / w->tensor;
}

static double vocabulary_parameters(const struct wish *w) { return 64.0 * w->heads * w->vocab / w->tensor; }

/* 6 N FLOP a token, 8 N where blocks are done again (Megatron: all; else all but FC2). */
static void check_flop(const struct wish *w, const struct answer *a)
{
	double tokens = (double)w->micro_batch * w->micro_batches * w->seq / w->context, h = 64.0 * w->heads, again = 0;
	if (strcmp(w->recompute, "full") == 0)
		again = 2 * w->layers *
		        (block_parameters(w) - (a->p->config.stack.recompute_last_gemm ? 0 : h * w->ffn / w->tensor));
	double want = tokens * (6 * (w->layers * block_parameters(w) + vocabulary_parameters(w)) + again);
	CU_ASSERT_DOUBLE_EQUAL(count(a->p).gemm_flop / want, 1, EXACT);
	if (w->pipeline == 1)
		CU_ASSERT_TRUE(a->r.time.class_s[CLASS_GEMM] >= want / a->peak_flop_per_s);
}

/* Shoeybi et al. 2019, section 3, and Korthikanti et al. 2022, section 4.2: four all-reduces of T h a layer and
 * micro-batch; with sequence parallelism as many bytes and two gathers more, but with PyTorch's DTensor, which keeps
 * what is gathered. The embedding's and the head's go the same way once. What recomputation repeats: both forward ones,
 * the last where the stack does all again. */
static void check_tensor_bytes(const struct wish *w, const struct answer *a)
{
	double rows = (double)w->micro_batch * w->seq / w->context * 64.0 * w->heads, micros = w->micro_batches,
	       layer = 8, ends = 4;
	if (w->tensor == 1) {
		CU_ASSERT_EQUAL(count(a->p).tensor_elements, 0);
		return;
	}
	if (w->sequence_parallel && !a->p->config.stack.dtensor)
		layer += 2;
	if (strcmp(w->recompute, "full") == 0)
		layer += a->p->config.stack.recompute_last_gemm ? 4 : w->sequence_parallel ? 3 : 2;
	double have = count(a->p).tensor_elements / (rows * micros);
	/* ends: the embedding's all-reduce and that of the head's input gradient, or their halves, and a
	 * sequence-parallel embedding's gradient and head's input gathered */
	CU_ASSERT_DOUBLE_EQUAL(have, layer * w->layers + ends, 1e-6 * have);
}

/* DDP 2 P; ZeRO-1 the same in two halves; FSDP gathers twice and scatters once each micro-batch (Rajbhandari et al.
 * 2020, section 7). Padding and norms' weights make up less than one part in a hundred. */
static void check_data_bytes(const struct wish *w, const struct answer *a)
{
	if (replicas(w) * w->context == 1 || strcmp(w->strategy, "hsdp") == 0)
		return;
	double P = w->layers * block_parameters(w), all = P + 2 * vocabulary_parameters(w), micros = w->micro_batches,
	       slack = 0.01 + 64.0 * w->layers * replicas(w) * w->context / all;
	struct counted n = count(a->p);
	const double *have = n.data_elements;
	if (strcmp(w->strategy, "ddp") == 0)
		CU_ASSERT_DOUBLE_EQUAL(have[COLL_ALL_REDUCE] / all, 1, slack);
	if (strcmp(w->strategy, "zero1") == 0)
		CU_ASSERT_DOUBLE_EQUAL((have[COLL_REDUCE_SCATTER] + have[COLL_ALL_GATHER]) / (2 * all), 1, slack);
	if (strcmp(w->strategy, "zero2") == 0)
		CU_ASSERT_DOUBLE_EQUAL((have[COLL_REDUCE_SCATTER] + have[COLL_ALL_GATHER]) / ((1 + micros) * all), 1,
			slack);
	if (strcmp(w->strategy, "fsdp") == 0) {
		CU_ASSERT_DOUBLE_EQUAL(have[COLL_REDUCE_SCATTER] / (micros * all), 1, slack);
		CU_ASSERT_DOUBLE_EQUAL(have[COLL_ALL_GATHER] / (micros * (2 * P + (all - P))), 1,
			slack); /* embedding and head stay gathered between forward and backward */
	}
}

/* Each boundary: activations one way, their gradients back; counted where they are sent and where they arrive. */
static void check_messages(const struct wish *w, const struct answer *a)
{
	double rows = (double)w->micro_batch * w->seq / w->context / (w->sequence_parallel ? w->tensor : 1);
	CU_ASSERT_DOUBLE_EQUAL(count(a->p).messages, 4.0 * (w->pipeline - 1) * w->micro_batches * rows * 64 * w->heads,
		1);
}

static void check_closed_forms(const struct wish *w, const struct answer *a)
{
	check_flop(w, a);
	check_tensor_bytes(w, a);
	check_data_bytes(w, a);
	check_messages(w, a);
}

/* ---- a plan and its neighbour ---- */

/* A larger matrix may close a bucket earlier, which then travels behind more of the backward pass. */
#define BUCKETS_MOVED 0.95

static void check_neighbours(const struct wish *w, const struct answer *a)
{
	double t = a->r.time.step_s * (1 + EXACT), least = a->r.time.step_s * (1 - EXACT);
	struct wish v = *w;
	v.nic_Gbps *= 2;
	CU_ASSERT_TRUE(step_s(&v) <= t);
	v = *w;
	v.layers += v.pipeline;
	CU_ASSERT_TRUE(step_s(&v) >= least);
	v = *w;
	v.ffn += 512;
	CU_ASSERT_TRUE(step_s(&v) >= BUCKETS_MOVED * least);
	v = *w;
	v.seq *= 2;
	CU_ASSERT_TRUE(step_s(&v) >= least);
	v = *w;
	v.micro_batches += v.pipeline;
	CU_ASSERT_TRUE(step_s(&v) >= least);
}

static void check_memory(const struct wish *w, const struct answer *a)
{
	struct answer b;
	struct wish v = *w;
	v.micro_batch *= 2;
	ask(&v, &b);
	CU_ASSERT_TRUE(b.r.memory.total_B >= a->r.memory.total_B);
	program_destroy(b.p);
	v = *w;
	v.recompute = "full";
	ask(&v, &b);
	if (w->layers > w->pipeline) /* a stage's only block is all there again when its backward begins */
		CU_ASSERT_TRUE(b.r.memory.total_B <= a->r.memory.total_B);
	CU_ASSERT_TRUE(b.r.time.step_s >= a->r.time.step_s * (1 - EXACT));
	program_destroy(b.p);
}

/* Where one rank holds the parameters there is nothing to shard. DeepSpeed copies gradients all the same, by stage. */
static void check_alike(const struct wish *w, const struct answer *a)
{
	static const char *const others[] = {"ddp", "zero1", "zero2", "fsdp"};
	if (replicas(w) * w->context > 1 || a->p->config.stack.copies_gradients)
		return;
	for (size_t i = 0; i < (w->pipeline > 1 ? 2 : COUNT(others)); i++) {
		struct answer b;
		struct wish v = *w;
		v.strategy = others[i];
		ask(&v, &b);
		CU_ASSERT_EQUAL(b.r.time.step_s, a->r.time.step_s);
		CU_ASSERT_EQUAL(b.r.memory.total_B, a->r.memory.total_B);
		program_destroy(b.p);
	}
}

static void test_sums(void) { for_each(check_sums); }
static void test_closed_forms(void) { for_each(check_closed_forms); }
static void test_neighbours(void) { for_each(check_neighbours); }
static void test_memory(void) { for_each(check_memory); }
static void test_alike(void) { for_each(check_alike); }

UNIT_MAIN("plan properties", {"parts, bounds, interval", test_sums},
	{"FLOP and bytes by closed forms", test_closed_forms},
	{"more bandwidth is never slower, more work never faster", test_neighbours},
	{"memory grows with the batch and shrinks with recomputation", test_memory},
	{"strategies are alike where nothing is replicated", test_alike})
