/* What the words of a table's columns mean: names that publications and frameworks use, in terms of the config. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/phrase.h"
#include "cli/validate/validate.h"

struct word {
	const char *name;
	struct meaning means;
};

/* DeepSpeed's stages, FSDP's ShardingStrategy (torch/distributed/fsdp/api.py), Megatron's distributed optimizer. */
static const struct word shardings[] = {
	{"none", {"ddp", NULL}},
	{"ddp", {"ddp", NULL}},
	{"zero0", {"ddp", NULL}},
	{"NO_SHARD", {"ddp", NULL}},
	{"zero1", {"zero1", NULL}},
	{"distributed optimizer", {"zero1", NULL}},
	{"zero2", {"zero2", NULL}},
	{"zero3", {"fsdp", NULL}},
	{"zero stage 0", {"ddp", NULL}},
	{"zero stage 1", {"zero1", NULL}},
	{"zero stage 2", {"zero2", NULL}},
	{"zero stage 3", {"fsdp", NULL}},
	{"DeepSpeed zero1", {"zero1", NULL}},
	{"DeepSpeed zero2", {"zero2", NULL}},
	{"DeepSpeed zero3", {"fsdp", NULL}},
	{"fsdp", {"fsdp", NULL}},
	{"fsdp1", {"fsdp", NULL}},
	{"fsdp2", {"fsdp", NULL}},
	{"zero3/fsdp", {"fsdp", NULL}},
	{"fsdp/zero3", {"fsdp", NULL}},
	{"FULL_SHARD", {"fsdp", NULL}},
	{"SHARD_GRAD_OP", {"fsdp", "reshard_after_forward: false"}},
	{"hsdp", {"hsdp", NULL}},
	{"HYBRID_SHARD", {"hsdp", NULL}},
	{"_HYBRID_SHARD_ZERO2", {"hsdp", "reshard_after_forward: false"}},
};

/* Of fp8: recipes of Transformer Engine (delayed, current scaling) and torchao (tensorwise, rowwise). */
static const struct word dtypes[] = {
	{"bf16", {"bf16", NULL}},
	{"bfloat16", {"bf16", NULL}},
	{"bf16 mixed", {"bf16", NULL}},
	{"fp16", {"fp16", NULL}},
	{"float16", {"fp16", NULL}},
	{"half", {"fp16", NULL}},
	{"fp16 mixed", {"fp16", NULL}},
	{"tf32", {"tf32", NULL}},
	{"fp32", {"fp32", NULL}},
	{"float32", {"fp32", NULL}},
	{"fp32/tf32", {"fp32/tf32", NULL}},
	{"fp8", {"fp8", NULL}},
	{"float8", {"fp8", NULL}},
	{"fp8 hybrid", {"fp8", NULL}},
	{"fp8 delayed", {"fp8", "fp8_recipe: delayed"}},
	{"fp8 ds", {"fp8", "fp8_recipe: delayed"}},
	{"fp8 current", {"fp8", "fp8_recipe: tensorwise"}},
	{"fp8 cs", {"fp8", "fp8_recipe: tensorwise"}},
	{"fp8 tensorwise", {"fp8", "fp8_recipe: tensorwise"}},
	{"float8 tensorwise", {"fp8", "fp8_recipe: tensorwise"}},
	{"fp8 rowwise", {"fp8", "fp8_recipe: rowwise"}},
	{"float8 rowwise", {"fp8", "fp8_recipe: rowwise"}},
	{"fp8 blockwise", {"fp8", "fp8_recipe: blockwise"}},
	{"fp8 sc", {"fp8", "fp8_recipe: blockwise"}},
	{"mxfp8", {"mxfp8", NULL}},
	{"fp8 mx", {"mxfp8", NULL}},
	{"nvfp4", {"nvfp4", NULL}},
	{"fp4", {"nvfp4", NULL}},
};

/* Names of torch.optim, apex, DeepSpeed, bitsandbytes and transformers' TrainingArguments.optim. */
static const struct word optimizers[] = {
	{"adam", {"adam", NULL}},
	{"adamw", {"adamw", NULL}},
	{"fusedadam", {"adam", NULL}},
	{"distributed adam", {"adam", NULL}},
	{"distributedfusedadam", {"adam", NULL}},
	{"decoupled_adamw", {"adamw", NULL}},
	{"adamw_torch", {"adamw", NULL}},
	{"adamw_torch_fused", {"adamw", NULL}},
	{"paged_adamw", {"adamw", NULL}},
	{"paged_adamw_32bit", {"adamw", NULL}},
	{"adam8bit", {"adam", "optimizer_bits: 8"}},
	{"8bit adam", {"adam", "optimizer_bits: 8"}},
	{"adamw8bit", {"adamw", "optimizer_bits: 8"}},
	{"adamw_bnb_8bit", {"adamw", "optimizer_bits: 8"}},
	{"paged_adamw_8bit", {"adamw", "optimizer_bits: 8"}},
	{"8bit adamw", {"adamw", "optimizer_bits: 8"}},
	{"anyprecisionadamw", {"adamw", "optimizer_bits: 16"}},
	{"lamb", {"lamb", NULL}},
	{"fusedlamb", {"lamb", NULL}},
	{"lion", {"lion", NULL}},
	{"muon", {"muon", NULL}},
	{"sgd", {"sgd", NULL}},
	{"adafactor", {"adafactor", NULL}},
};

/* Kernels by generation, and the libraries that have one. */
static const struct word attentions[] = {
	{"flash", {"flash", NULL}},
	{"flash1", {"flash", "attention_kernel: fa1"}},
	{"flash2", {"flash", "attention_kernel: fa2"}},
	{"flash3", {"flash", "attention_kernel: fa3"}},
	{"fa1", {"flash", "attention_kernel: fa1"}},
	{"fa2", {"flash", "attention_kernel: fa2"}},
	{"fa3", {"flash", "attention_kernel: fa3"}},
	{"flashattention", {"flash", NULL}},
	{"flashattention2", {"flash", "attention_kernel: fa2"}},
	{"flashattention3", {"flash", "attention_kernel: fa3"}},
	{"flashattention v2", {"flash", "attention_kernel: fa2"}},
	{"flashattention v3", {"flash", "attention_kernel: fa3"}},
	{"flash_attn", {"flash", NULL}},
	{"sdpa", {"flash", NULL}},
	{"cudnn", {"flash", NULL}},
	{"TE", {"flash", NULL}},
	{"Transformer Engine", {"flash", NULL}},
	{"xformers", {"flash", NULL}},
	{"mem efficient", {"flash", NULL}},
	{"memory efficient", {"flash", NULL}},
	{"flex", {"flash", NULL}},
	{"flex_attention", {"flash", NULL}},
	{"splash", {"flash", NULL}},
	{"triton", {"flash", NULL}},
	{"naive", {"naive", NULL}},
	{"eager", {"naive", NULL}},
	{"math", {"naive", NULL}},
	{"unfused", {"naive", NULL}},
	{"fused softmax", {"naive", NULL}},
};

/* Words of Megatron-LM, torchtitan and Hugging Face's gradient_checkpointing. half: every second block; op:
 * torchtitan's policy. */
static const struct word recomputes[] = {
	{"none", {"none", NULL}},
	{"no", {"none", NULL}},
	{"false", {"none", NULL}},
	{"off", {"none", NULL}},
	{"full", {"full", NULL}},
	{"yes", {"full", NULL}},
	{"true", {"full", NULL}},
	{"on", {"full", NULL}},
	{"all", {"full", NULL}},
	{"every layer", {"full", NULL}},
	{"full uniform", {"full", NULL}},
	{"selective", {"selective", NULL}},
	{"selective attention", {"selective", NULL}},
	{"core_attn", {"selective", NULL}},
	{"op", {"op", NULL}},
	{"selective op", {"op", NULL}},
	{"sac", {"op", NULL}},
	{"half", {"half", NULL}},
	{"every 2", {"half", NULL}},
	{"every second layer", {"half", NULL}},
	{"selective 2", {"half", NULL}},
};

static const struct word mlps[] = {
	{"gelu", {"gelu", NULL}},
	{"gelu_new", {"gelu", NULL}},
	{"relu", {"relu", NULL}},
	{"squared_relu", {"squared_relu", NULL}},
	{"relu2", {"squared_relu", NULL}},
	{"relu^2", {"squared_relu", NULL}},
	{"swiglu", {"swiglu", NULL}},
	{"silu", {"swiglu", NULL}}, /* hidden_act of models whose MLP is gated */
	{"geglu", {"geglu", NULL}},
};

static const struct word truths[] = {{"true", {"true", NULL}}, {"false", {"false", NULL}}};

/* Words and what a blank cell means; NULL: the framework's habit. */
static const struct {
	const char *column;
	const struct word *words;
	size_t n;
	const char *blank;
	bool goes_on; /* a cell may say more behind the word: "AdamW, fused" */
} columns[] = {
	{"sharding", shardings, COUNT(shardings), "ddp", false},
	{"dtype", dtypes, COUNT(dtypes), "bf16", false},
	{"optimizer", optimizers, COUNT(optimizers), NULL, true},
	{"attention", attentions, COUNT(attentions), NULL, true},
	{"act_ckpt", recomputes, COUNT(recomputes), NULL, false},
	{"mlp", mlps, COUNT(mlps), "gelu", false},
	{"seq_parallel", truths, COUNT(truths), NULL, false},
};

#define CELL 96
#define WORDS_MAX 32
static_assert(COUNT(dtypes) <= WORDS_MAX && COUNT(attentions) <= WORDS_MAX, "the longest lists");

/* The nearest word; where none is near, what the words of the column mean. */
static struct hint hint_of(size_t column, const char *cell)
{
	const char *names[WORDS_MAX], *values[WORDS_MAX];
	size_t n_values = 0;
	for (size_t i = 0; i < columns[column].n; i++) {
		names[i] = columns[column].words[i].name;
		const char *value = columns[column].words[i].means.value;
		if (suggest_find(value, values, n_values) == n_values)
			values[n_values++] = value;
	}
	return suggest_nearest(cell, names, columns[column].n) ? suggest(cell, names, columns[column].n, NULL)
	                                                       : suggest_names("known", values, n_values);
}

enum status cell_read(const struct csv *t, size_t row, const char *column, struct meaning *out, struct error *e)
{
	const char *cell = csv_get(t, row, column);
	char plain[CELL]; /* "naive (fused softmax)" is naive */
	size_t c = 0, most = 0;
	while (strcmp(columns[c].column, column) != 0)
		c++;
	*out = (struct meaning){columns[c].blank, NULL};
	if (!*cell)
		return ST_OK;
	snprintf(plain, sizeof plain, "%.*s", (int)strcspn(cell, "("), cell);
	for (size_t i = 0; i < columns[c].n; i++) {
		const struct word *w = &columns[c].words[i];
		const size_t same = phrase_match(w->name, plain, !columns[c].goes_on);
		if (same > most) {
			most = same;
			*out = w->means;
		}
	}
	return most ? ST_OK : error_set(e, ST_INPUT, "%s: '%.40s' is not known%s", column, cell, hint_of(c, cell).text);
}
