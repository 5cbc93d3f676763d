/* A row of a table of steps: its config, its machine, its prediction. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/array.h"
#include "base/memory_stream.h"
#include "base/paths.h"
#include "base/phrase.h"
#include "base/suggest.h"
#include "cli/validate/validate.h"
#include "report/verdict.h"
#include "sim/engine/fold.h"
#include "sim/engine/interval.h"
#include "topology/catalogue/network.h"

/* ---- machines ---- */

struct known_machine {
	char line[256];
	int64_t nodes, per_host;
	struct machine machine;
};
struct machines {
	VEC(struct known_machine *) known;
};

struct machines *machines_create(void) { return calloc(1, sizeof(struct machines)); }

void machines_destroy(struct machines *m)
{
	if (!m)
		return;
	for (size_t i = 0; i < m->known.n; i++) {
		machine_free(&m->known.at[i]->machine);
		free(m->known.at[i]);
	}
	vec_free(&m->known);
	free(m);
}

enum status machines_find(struct machines *m, const char *line, int64_t nodes, int64_t per_host,
	const struct machine **out, struct error *e)
{
	for (size_t i = 0; i < m->known.n; i++) {
		if (m->known.at[i]->nodes == nodes && m->known.at[i]->per_host == per_host &&
			strcmp(m->known.at[i]->line, line) == 0) {
			*out = &m->known.at[i]->machine;
			return ST_OK;
		}
	}
	struct known_machine *k = calloc(1, sizeof *k);
	if (!k || !vec_reserve(&m->known, 1)) {
		free(k);
		return error_nomem(e, "machines");
	}
	snprintf(k->line, sizeof k->line, "%s", line);
	k->nodes = nodes;
	k->per_host = per_host;
	enum status st = machine_load(line, nodes, per_host, &k->machine, e);
	if (st) {
		free(k);
		return st;
	}
	m->known.at[m->known.n++] = k;
	*out = &k->machine;
	return ST_OK;
}

/* ---- cells ---- */

static int64_t whole(const struct csv *t, size_t row, const char *column, int64_t blank)
{
	return *csv_get(t, row, column) ? (int64_t)cell_number(t, row, column) : blank;
}

/* The published figure as seconds a step: the time itself, or tokens over a rate. */
static double measured_s(const struct csv *t, size_t row)
{
	double tokens = cell_number(t, row, "global_batch_seqs") * cell_number(t, row, "seq_len"),
	       rate = cell_number(t, row, "tokens_per_s");
	if (cell_number(t, row, "step_time_s") > 0)
		return cell_number(t, row, "step_time_s");
	if (rate <= 0)
		rate = cell_number(t, row, "tokens_per_s_per_gpu") * cell_number(t, row, "n_gpus");
	return rate > 0 ? tokens / rate : 0;
}

static bool is(const struct csv *t, size_t row, const char *column, const char *word)
{
	return strcmp(csv_get(t, row, column), word) == 0;
}

/* ---- the config ---- */

#define PRESET 64

static bool gated(const char *mlp) { return strcmp(mlp, "swiglu") == 0 || strcmp(mlp, "geglu") == 0; }

/* Returns a blank d_ff's default: 4 x hidden; 8/3 x hidden up to a multiple of 256 for a gated MLP. */
static int64_t ffn_of(const struct csv *t, size_t row, const char *mlp)
{
	int64_t hidden = whole(t, row, "d_model", 0);
	return whole(t, row, "d_ff", gated(mlp) ? (8 * hidden / 3 + 255) / 256 * 256 : 4 * hidden);
}

/* "8 top 2", "128 experts, top-8"; false: none, or not written so. */
static bool experts_of(const struct csv *t, size_t row, int64_t *experts, int64_t *each)
{
	const char *cell = csv_get(t, row, "experts"), *top = strcasestr(cell, "top");
	return sscanf(cell, "%" SCNd64, experts) == 1 && top && sscanf(top + 3, "%*[- k=]%" SCNd64, each) == 1;
}

/* Finds the preset of a row: its column, or the model's name where the shape is not printed, as of most mixtures of
 * experts and of networks that no column describes. "": neither. */
static enum status preset_of(const struct csv *t, size_t row, char preset[PRESET], struct error *e)
{
	char **names = NULL;
	size_t n = 0;
	const char *model = csv_get(t, row, "model");
	snprintf(preset, PRESET, "%s", csv_get(t, row, "preset"));
	if (*preset || *csv_get(t, row, "n_layers"))
		return ST_OK;
	enum status st = path_catalogue_names("models", &names, &n, e);
	for (size_t i = 0; i < n && !st && !*preset; i++)
		if (phrase_match(names[i], model, true))
			snprintf(preset, PRESET, "%s", names[i]);
	if (!st && !*preset)
		st = error_set(e, ST_INPUT, "n_layers: the shape is not printed, and model '%.40s' is no preset%s",
			model, suggest(model, (const char *const *)names, n, "list models").text);
	path_names_free(names, n);
	return st;
}

/* Returns whether a model is fine-tuned for a task whose head has few columns and no vocabulary. */
static bool has_task_head(const char *model)
{
	static const char *const tasks[] = {"SQuAD", "GLUE", "MNLI", "MRPC", "SST-2", "SST2", "QNLI", "QQP", "CoLA",
		"IMDB", "question answering", "classification", "classifier"};
	for (size_t i = 0; i < COUNT(tasks); i++)
		if (strcasestr(model, tasks[i]))
			return true;
	return false;
}

static enum status write_model(const struct csv *t, size_t row, const struct framework *f, FILE *out, struct error *e)
{
	struct meaning activation, tied;
	char preset[PRESET];
	if (preset_of(t, row, preset, e))
		return e->status;
	if (*preset) {
		fprintf(out, "model:\n  preset: %s\n  seq_len: %" PRId64 "\n", preset, whole(t, row, "seq_len", 0));
		return ST_OK;
	}
	if (cell_read(t, row, "mlp", &activation, e))
		return e->status;
	const char *mlp = activation.value;
	bool llama = gated(mlp), encoder = phrase_match("encoder", csv_get(t, row, "arch"), false) > 0,
	     task = encoder && has_task_head(csv_get(t, row, "model"));
	fprintf(out,
		"model:\n  layers: %" PRId64 "\n  hidden: %" PRId64 "\n  heads: %" PRId64 "\n  kv_heads: %" PRId64
		"\n  ffn_hidden: %" PRId64 "\n  vocab: %" PRId64 "\n  seq_len: %" PRId64 "\n",
		whole(t, row, "n_layers", 0), whole(t, row, "d_model", 0), whole(t, row, "n_heads", 0),
		whole(t, row, "n_kv_heads", whole(t, row, "n_heads", 0)), ffn_of(t, row, mlp),
		whole(t, row, "vocab", 0), whole(t, row, "seq_len", 0));
	fprintf(out, "  mlp: %s\n  norm: %s\n  position: %s\n  bias: %s\n  qkv_bias: %s\n  causal: %s\n", mlp,
		llama ? "rmsnorm" : "layernorm", llama ? "rope" : f->position, !llama && f->bias ? "true" : "false",
		!llama && f->bias ? "true" : "false", encoder ? "false" : "true");
	if (cell_read(t, row, "tied_emb", &tied, e))
		return e->status;
	if (task)
		fprintf(out, "  lm_head: false\n  classes: 2\n");
	else
		fprintf(out, "  tied_embeddings: %s\n", tied.value ? tied.value : llama ? "false" : "true");
	int64_t experts, each;
	if (experts_of(t, row, &experts, &each)) /* each as wide as the MLP */
		fprintf(out, "  experts: %" PRId64 "\n  experts_per_token: %" PRId64 "\n", experts, each);
	return ST_OK;
}

/* Where a table does not say more, as NVIDIA's measured runs have it: rank 16 on the joined product of Q, K and V
 * (NeMo, nemo/collections/llm/recipes; Megatron-Bridge, llama3 lora configs: target_modules linear_qkv, dim 16). */
static enum status write_adapter(const struct csv *t, size_t row, FILE *out, struct error *e)
{
	struct meaning adapter;
	if (cell_read(t, row, "adapter", &adapter, e))
		return e->status;
	if (adapter.value)
		fprintf(out, "  lora_rank: %" PRId64 "\n  lora_targets: %s\n", whole(t, row, "lora_rank", 16),
			*csv_get(t, row, "lora_targets") ? csv_get(t, row, "lora_targets") : "qkv");
	if (adapter.value && strcmp(adapter.value, "QLoRA") == 0) /* arXiv:2305.14314: double quantization */
		fprintf(out, "  lora_base: nf4_double\n");
	return ST_OK;
}

static bool recompute_by_fit(const struct csv *t, size_t row, const struct framework *f)
{
	return !*csv_get(t, row, "act_ckpt") && strcmp(f->recompute, "fit") == 0;
}

static void write_more(const struct meaning *m, FILE *out)
{
	if (m->more)
		fprintf(out, "  %s\n", m->more);
}

/* Writes what a step keeps and how often it computes. tight_memory: recompute if the source leaves that open. */
static enum status write_recompute(const struct csv *t, size_t row, const struct framework *f, bool tight_memory,
	FILE *out, struct error *e)
{
	struct meaning m;
	if (cell_read(t, row, "act_ckpt", &m, e))
		return e->status;
	const char *blank = !recompute_by_fit(t, row, f) ? f->recompute
	                    : tight_memory               ? "full"
	                                                 : "none",
		   *word = m.value ? m.value : blank;
	const bool half = strcmp(word, "half") == 0, by_op = strcmp(word, "op") == 0;
	if (half && !*csv_get(t, row, "n_layers"))
		return error_set(e, ST_INPUT, "act_ckpt: '%s' needs n_layers", csv_get(t, row, "act_ckpt"));
	fprintf(out, "  recompute: %s\n", half ? "full" : by_op ? "selective" : word);
	if (by_op)
		fprintf(out, "  recompute_modules: [op]\n");
	if (half)
		fprintf(out, "  recompute_layers: %" PRId64 "\n", whole(t, row, "n_layers", 2) / 2);
	return ST_OK;
}

/* Writes the formats of products, weights and gradients. */
static enum status write_formats(const struct csv *t, size_t row, const struct framework *f, FILE *out, struct error *e)
{
	struct meaning m;
	if (cell_read(t, row, "dtype", &m, e))
		return e->status;
	const char *dtype = m.value,
		   *kept = csv_get(t, row, "param_dtype"); /* gradients are kept and reduced so, too */
	if (strcmp(dtype, "fp32/tf32") == 0)
		dtype = multiplies_tf32(csv_get(t, row, "gpu")) ? "tf32" : "fp32";
	fprintf(out, "  stack: %s\n  dtype: %s\n",
		f->bf16_stack[0] && strcmp(dtype, "bf16") == 0 && *csv_get(t, row, "dtype") ? f->bf16_stack : f->stack,
		dtype);
	write_more(&m, out);
	if (*kept)
		fprintf(out, "  param_dtype: %s\n  grad_dtype: %s\n  reduce_dtype: %s\n", kept, kept, kept);
	else if (f->reduces_narrow)
		fprintf(out, "  reduce_dtype: %s\n", dtype);
	else if (f->sums_wide)
		fprintf(out, "  grad_dtype: fp32\n  reduce_dtype: fp32\n");
	if (!*kept && f->stores_wide && dtype_is_narrow(dtype_by_name(dtype)))
		fputs("  param_dtype: bf16\n", out);
	if (!*kept && f->half_weights && strcmp(dtype, "fp16") == 0)
		fprintf(out, "  param_dtype: fp16\n  master_weights: true\n");
	return ST_OK;
}

static enum status write_train(const struct csv *t, size_t row, const struct framework *f, bool tight_memory, FILE *out,
	struct error *e)
{
	struct meaning attention, optimizer;
	int64_t batch = whole(t, row, "global_batch_seqs", 0), dp = whole(t, row, "dp", 0),
		micro = whole(t, row, "micro_batch_seqs", 0), accumulated = whole(t, row, "grad_accum", 0);
	if (micro < 1 && accumulated > 0 && dp > 0)
		micro = batch / (dp * accumulated);
	if (batch < 1 || micro < 1)
		return error_set(e, ST_INPUT, "the %s is not printed", batch < 1 ? "global batch" : "micro-batch");
	if (cell_read(t, row, "attention", &attention, e) || cell_read(t, row, "optimizer", &optimizer, e))
		return e->status;
	fprintf(out, "train:\n  global_batch: %" PRId64 "\n  micro_batch: %" PRId64 "\n  attention: %s\n", batch, micro,
		attention.value ? attention.value : f->attention);
	write_more(&attention, out);
	if (optimizer.value)
		fprintf(out, "  optimizer: %s\n", optimizer.value);
	if (f->waits)
		fputs("  sync_every: 1\n", out);
	if (*csv_get(t, row, "optimizer_bits"))
		fprintf(out, "  optimizer_bits: %s\n", csv_get(t, row, "optimizer_bits"));
	else
		write_more(&optimizer, out);
	return write_adapter(t, row, out, e) || write_formats(t, row, f, out, e)
	               ? e->status
	               : write_recompute(t, row, f, tight_memory, out, e);
}

static enum status write_parallel(const struct csv *t, size_t row, const struct framework *f, FILE *out,
	struct error *e)
{
	struct meaning sharding, sequence_parallel;
	int64_t tp = whole(t, row, "tp", 1), pp = whole(t, row, "pp", 1), vp = whole(t, row, "vp", 1),
		cp = whole(t, row, "cp", 1), ep = whole(t, row, "ep", 1);
	if (cell_read(t, row, "sharding", &sharding, e) || cell_read(t, row, "seq_parallel", &sequence_parallel, e))
		return e->status;
	const char *strategy = sharding.value;
	int64_t n = whole(t, row, "n_gpus", 0), replicas = tp * pp * cp > 0 ? n / (tp * pp * cp) : 0;
	if (replicas * tp * pp * cp != n)
		return error_set(e, ST_INPUT, "tp x pp x cp does not divide n_gpus");
	bool grad_op = f->fsdp && strcmp(strategy, "zero2") == 0;
	fprintf(out, "parallel:\n  strategy: %s\n%s",
		replicas * cp == 1 ? "none"
		: grad_op          ? "fsdp"
				   : strategy,
		replicas > 1 && grad_op ? "  reshard_after_forward: false\n" : "");
	if (replicas > 1)
		write_more(&sharding, out);
	if (replicas > 1 && f->wraps_adapters && *csv_get(t, row, "adapter") &&
		(strcmp(strategy, "fsdp") == 0 || strcmp(strategy, "hsdp") == 0))
		fprintf(out, "  adapter_units: true\n");
	if (tp > 1)
		fprintf(out, "  tensor: %" PRId64 "\n", tp);
	if (tp > 1 && sequence_parallel.value && strcmp(sequence_parallel.value, "true") == 0)
		fprintf(out, "  sequence_parallel: true\n");
	if (replicas > 1 && strcmp(strategy, "ddp") == 0 && f->ddp_overlaps)
		fprintf(out, "  overlap: true\n  bucket_mb: 50\n  first_bucket_mb: 2\n");
	if (pp > 1)
		fprintf(out, "  pipeline: %" PRId64 "\n  schedule: %s\n", pp, vp > 1 ? "interleaved" : "1f1b");
	if (pp > 1 && vp > 1)
		fprintf(out, "  virtual_stages: %" PRId64 "\n", vp);
	if (cp > 1)
		fprintf(out, "  context: %" PRId64 "\n", cp);
	if (ep > 1)
		fprintf(out, "  expert: %" PRId64 "\n", ep);
	return ST_OK;
}

/* Writes the row's config as the text of a file, which the caller frees. tight_memory: recompute if the source leaves
 * that open. ST_INPUT: a cell that cannot be mapped. */
static enum status write_config(const struct csv *t, size_t row, const struct framework *f, bool tight_memory,
	char **text, struct error *e)
{
	size_t len = 0;
	*text = NULL;
	int64_t experts, each;
	if (*csv_get(t, row, "experts") && strcasecmp(csv_get(t, row, "experts"), "none") != 0 &&
		strcasecmp(csv_get(t, row, "experts"), "dense") != 0 && !experts_of(t, row, &experts, &each))
		return error_set(e, ST_INPUT, "experts: '%.60s' is not known (accepted: 8 top 2)",
			csv_get(t, row, "experts"));
	FILE *out = memory_stream(text, &len);
	if (!out)
		return error_nomem(e, "a row's config");
	enum status st = write_model(t, row, f, out, e);
	if (!st)
		st = write_train(t, row, f, tight_memory, out, e);
	if (!st)
		st = write_parallel(t, row, f, out, e);
	if (!memory_stream_close(out) && !st)
		st = error_nomem(e, "a row's config");
	return st;
}

/* ---- the prediction ---- */

#define SETS_MAX 8
#define SETS_TEXT 256

/* Reads the column `set` as --set does: "key=value" between blanks, over what the other columns say. `text` has room
 * for the cell, and the texts lie in it. */
static enum status sets_of(const char *cell, char text[SETS_TEXT], const char *sets[SETS_MAX], size_t *n,
	struct error *e)
{
	char *rest = NULL;
	*n = 0;
	if (strlen(cell) >= SETS_TEXT)
		return error_set(e, ST_INPUT, "set: longer than %d characters", SETS_TEXT - 1);
	strcpy(text, cell);
	for (char *p = strtok_r(text, " ", &rest); p; p = strtok_r(NULL, " ", &rest)) {
		if (*n == SETS_MAX)
			return error_set(e, ST_INPUT, "set: more than %d keys", SETS_MAX);
		sets[(*n)++] = p;
	}
	return ST_OK;
}

/* Sets the chunks of a stage where the row leaves them open, and its framework's recipes interleave. */
static void interleave(const struct csv *t, size_t row, const struct framework *f, struct config *c)
{
	struct parallel *p = &c->parallel;
	if (p->pipeline == 1 || *csv_get(t, row, "vp") || !f->interleaves || p->schedule != SCHED_1F1B)
		return;
	p->schedule = SCHED_INTERLEAVED;
	p->virtual_stages = c->model.layers % (5 * p->pipeline) == 0 ? 5 : 2;
}

static enum status predict_as(const struct csv *t, size_t row, const struct framework *f, bool tight_memory,
	struct machines *machines, struct config *c, struct result *result, enum network_known *network,
	struct error *e)
{
	const struct machine *m = NULL;
	struct row_system s;
	char *text = NULL, set_text[SETS_TEXT];
	const char *sets[SETS_MAX];
	size_t n_sets;
	enum status st = write_config(t, row, f, tight_memory, &text, e);
	if (!st && !(st = sets_of(csv_get(t, row, "set"), set_text, sets, &n_sets, e)) &&
		!(st = config_parse(text, strlen(text), csv_get(t, row, "id"), sets, n_sets, c, e)) &&
		!(st = system_words(t, row, &s, e)) && !(st = machines_find(machines, s.line, s.nodes, 0, &m, e))) {
		c->node_ranks = s.per_host;
		interleave(t, row, f, c);
		if (f->borrows)
			c->stack.interval = 0;
		if (f->loss_B > 0)
			c->stack.memory.loss_B = f->loss_B;
		if (f->loss_tensor_B > 0)
			c->stack.memory.loss_tensor_B = f->loss_tensor_B;
		if (f->logit_B > 0)
			c->stack.logit_B = f->logit_B;
		*network = s.network;
		if (!(st = config_resolve(c, s.nodes * s.per_host, e)))
			st = fold_predict(c, m, result, e);
	}
	free(text);
	return st;
}

/* Widens the interval by what a network of which nothing is known does to the exposed communication. */
static enum status widen_network(struct result *r, struct error *e)
{
	struct network_spec unknown;
	const enum status st = network_load(network_by_default(false, 0), &unknown, e);
	if (!st && r->time.step_s > 0)
		interval_widen(r, NORMAL_90 * unknown.sigma_large * fmin(r->time.exposed_comm_s / r->time.step_s, 1));
	return st;
}

static enum status widen_inferred(struct result *r, struct error *e)
{
	const struct parameters *k;
	const enum status st = parameters_load(&k, e);
	if (!st)
		interval_widen(r, k->interval.inferred);
	return st;
}

/* Returns whether something of the row's configuration was inferred: its source does not print it. Rows for fits
 * ("tight") are complete enough. */
static bool was_inferred(const struct csv *t, size_t row)
{
	const char *quality = csv_get(t, row, "quality");
	return *quality && *quality != 'A' && strcmp(csv_get(t, row, "use"), "tight") != 0;
}

static enum status predict_row(const struct csv *t, size_t row, const struct framework *f, struct machines *machines,
	struct judged *out, struct error *e)
{
	struct config *c = calloc(1, sizeof *c);
	struct result *result = calloc(1, sizeof *result);
	enum status st = c && result ? predict_as(t, row, f, false, machines, c, result, &out->network, e)
	                             : error_nomem(e, "a row");
	if (!st && !result->memory.fits && recompute_by_fit(t, row, f))
		st = predict_as(t, row, f, true, machines, c, result, &out->network, e);
	if (!st && out->network == NETWORK_ASSUMED)
		st = widen_network(result, e);
	if (!st && was_inferred(t, row))
		st = widen_inferred(result, e);
	if (!st) {
		out->predicted_s = result->time.step_s;
		memcpy(out->interval90_s, result->interval90_s, sizeof out->interval90_s);
		memcpy(out->interval_part, result->interval_part, sizeof out->interval_part);
		out->predicted_memory_B = (double)(f->reports_allocated || is(t, row, "mem_counts", "allocated")
							   ? result->memory.first_B
							   : result->memory.total_B);
		out->fits = result->memory.fits;
		out->tight = verdict_fit(&result->memory) == FIT_TIGHT;
	}
	free(result);
	free(c);
	return st;
}

enum status step_row_judge(const struct csv *t, size_t row, const struct frameworks *known, struct machines *m,
	struct judged *out, struct error *e)
{
	struct error why = {ST_OK, ""};
	const char *word = csv_get(t, row, "framework");
	struct framework inside;
	const struct framework *f = framework_of(known, word);
	if (!f && framework_inside(known, word, &inside))
		f = &inside;
	*out = (struct judged){.id = csv_get(t, row, "id"),
		.source = csv_get(t, row, "source"),
		.use = csv_get(t, row, "use"),
		.line = t->line[row],
		.measured_s = measured_s(t, row),
		.measured_memory_B = (f && f->reports_allocated ? 0x1p30 : 1e9) * cell_number(t, row, "mem_gb")};
	if (!cells_check_numbers(t, row, &why) && !(out->measured_s > 0))
		error_set(&why, ST_INPUT, "no step time and no rate is printed");
	if (!why.status && !f)
		error_set(&why, ST_INPUT, "framework: '%.60s' is not known%s", word, framework_hint(known, word).text);
	if (!why.status)
		predict_row(t, row, f, m, out, &why);
	snprintf(out->reason, sizeof out->reason, "%.255s", why.text);
	return why.status == ST_RUN ? error_set(e, ST_RUN, "%s", why.text) : ST_OK;
}

double judged_error(const struct judged *j) { return (j->predicted_s - j->measured_s) / j->measured_s; }

bool judged_covered(const struct judged *j)
{
	return j->measured_s >= j->interval90_s[0] && j->measured_s <= j->interval90_s[1];
}
