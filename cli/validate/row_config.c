/* The config of a row of a table of steps, as the text of a file: each column becomes the keys that say the same. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/array.h"
#include "base/memory_stream.h"
#include "base/paths.h"
#include "base/phrase.h"
#include "base/suggest.h"
#include "cli/validate/validate.h"

static int64_t whole(const struct csv *t, size_t row, const char *column, int64_t blank)
{
	return *csv_get(t, row, column) ? cell_whole(t, row, column) : blank;
}

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
	const bool encoder = phrase_match("encoder", csv_get(t, row, "arch"), false) > 0,
		   task = encoder && has_task_head(csv_get(t, row, "model"));
	static const char task_head[] = "  lm_head: false\n  classes: 2\n";
	if (*preset) {
		fprintf(out, "model:\n  preset: %s\n  seq_len: %" PRId64 "\n%s", preset, whole(t, row, "seq_len", 0),
			task ? task_head : "");
		if (task) /* what the preset's own head has */
			fprintf(out, "  head_transform: false\n  head_bias: false\n  predictions: 0\n");
		return ST_OK;
	}
	if (cell_read(t, row, "mlp", &activation, e))
		return e->status;
	const char *mlp = activation.value;
	bool llama = gated(mlp);
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
		fputs(task_head, out);
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

bool row_recomputes_by_fit(const struct csv *t, size_t row, const struct framework *f)
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
	const char *blank = !row_recomputes_by_fit(t, row, f) ? f->recompute
	                    : tight_memory                    ? "full"
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

/* True where the row says bf16, and bf16 has a stack of its own. A blank is the format of the stack's own runs. */
static bool takes_bf16_stack(const struct csv *t, size_t row, const struct framework *f)
{
	struct meaning dtype;
	struct error e;
	return f->bf16_stack[0] && *csv_get(t, row, "dtype") && !cell_read(t, row, "dtype", &dtype, &e) &&
	       strcmp(dtype.value, "bf16") == 0;
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
	fprintf(out, "  stack: %s\n  dtype: %s\n", takes_bf16_stack(t, row, f) ? f->bf16_stack : f->stack, dtype);
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
	if (f->fuses_norms)
		fprintf(out, "  fused_kernels: [norm, rotary%s]\n", f->fuses_gates ? ", gate" : "");
	if (f->fuses_sums && whole(t, row, "ep", 1) > 1)
		fputs("  expert_sums: kernel\n", out);
	if (f->gates_activation && whole(t, row, "ep", 1) > 1)
		fputs("  expert_gates: activation\n", out);
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
	if (f->bf16_shards && takes_bf16_stack(t, row, f) && strcmp(strategy, "ddp") == 0)
		strategy = "zero1";
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

enum status row_config_write(const struct csv *t, size_t row, const struct framework *f, bool tight_memory, char **text,
	struct error *e)
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
