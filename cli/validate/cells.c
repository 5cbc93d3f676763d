/* What the words of a table's columns mean: names that publications and frameworks use, in terms of the config. */
#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/array.h"
#include "base/phrase.h"
#include "cli/validate/validate.h"

struct word {
	const char *name;
	struct meaning means;
};

#define WITH(name, value, more) \
	{ \
		name, { value, more } \
	}
#define WORD(name, value) WITH(name, value, NULL)

/* DeepSpeed's stages, FSDP's ShardingStrategy (torch/distributed/fsdp/api.py), Megatron's distributed optimizer. */
static const struct word shardings[] = {
	WORD("none", "ddp"),
	WORD("ddp", "ddp"),
	WORD("zero0", "ddp"),
	WORD("NO_SHARD", "ddp"),
	WORD("zero1", "zero1"),
	WORD("distributed optimizer", "zero1"),
	WORD("dist optimizer", "zero1"),
	WORD("use_distributed_optimizer", "zero1"),
	WORD("DDP distributed optimizer", "zero1"),
	WORD("optimizer", "zero1"),
	WORD("no", "ddp"),
	WORD("false", "ddp"),
	WORD("DP", "ddp"),
	WORD("data parallel", "ddp"),
	WORD("DistributedDataParallel", "ddp"),
	WORD("zero2", "zero2"),
	WORD("zero3", "fsdp"),
	WORD("zero stage 0", "ddp"),
	WORD("zero stage 1", "zero1"),
	WORD("zero stage 2", "zero2"),
	WORD("zero stage 3", "fsdp"),
	WORD("stage 0", "ddp"),
	WORD("stage 1", "zero1"),
	WORD("stage 2", "zero2"),
	WORD("stage 3", "fsdp"),
	WORD("0", "ddp"),
	WORD("1", "zero1"),
	WORD("2", "zero2"),
	WORD("3", "fsdp"),
	WORD("FSDP TP", "fsdp"),
	WORD("FSDP + TP", "fsdp"),
	WORD("DeepSpeed zero1", "zero1"),
	WORD("DeepSpeed zero2", "zero2"),
	WORD("DeepSpeed zero3", "fsdp"),
	WORD("fsdp", "fsdp"),
	WORD("fsdp1", "fsdp"),
	WORD("fsdp2", "fsdp"),
	WORD("fully_shard", "fsdp"),
	WORD("full", "fsdp"),
	WORD("full sharding", "fsdp"),
	WORD("SimpleFSDP", "fsdp"),
	WORD("PyTorch FSDP", "fsdp"),
	WORD("Megatron FSDP", "fsdp"),
	WORD("FSDP FULL_SHARD", "fsdp"),
	WITH("FSDP SHARD_GRAD_OP", "fsdp", "reshard_after_forward: false"),
	WORD("FSDP HYBRID_SHARD", "hsdp"),
	WORD("zero3/fsdp", "fsdp"),
	WORD("fsdp/zero3", "fsdp"),
	WORD("FULL_SHARD", "fsdp"),
	WITH("SHARD_GRAD_OP", "fsdp", "reshard_after_forward: false"),
	WORD("hsdp", "hsdp"),
	WORD("HYBRID_SHARD", "hsdp"),
	WITH("_HYBRID_SHARD_ZERO2", "hsdp", "reshard_after_forward: false"),
};

/* Of fp8: recipes of Transformer Engine (delayed, current scaling) and torchao (tensorwise, rowwise). */
static const struct word dtypes[] = {
	WORD("bf16", "bf16"),
	WORD("bfloat16", "bf16"),
	WORD("bf16 mixed", "bf16"),
	WORD("mixed bf16", "bf16"),
	WORD("bf16 mixed precision", "bf16"),
	WORD("bf16/fp32", "bf16"),
	WITH("bf16 true", "bf16",
		"param_dtype: bf16\n  grad_dtype: bf16\n  reduce_dtype: bf16"), /* Lightning's words */
	WITH("pure bf16", "bf16", "param_dtype: bf16\n  grad_dtype: bf16\n  reduce_dtype: bf16"),
	WORD("bf16 amp", "bf16"),
	WORD("amp bf16", "bf16"),
	WORD("bf16 autocast", "bf16"),
	WORD("torch.bfloat16", "bf16"),
	WORD("fp16", "fp16"),
	WORD("float16", "fp16"),
	WORD("half", "fp16"),
	WORD("fp16 mixed", "fp16"),
	WORD("mixed fp16", "fp16"),
	WORD("fp16 mixed precision", "fp16"),
	WORD("fp16/fp32", "fp16"),
	WORD("16 mixed", "fp16"),
	WORD("fp16 amp", "fp16"),
	WORD("amp fp16", "fp16"),
	WORD("torch.float16", "fp16"),
	WORD("tf32", "tf32"),
	WORD("fp32", "fp32"),
	WORD("float32", "fp32"),
	WORD("fp32/tf32", "fp32/tf32"),
	WORD("fp8", "fp8"),
	WORD("float8", "fp8"),
	WORD("fp8 hybrid", "fp8"),
	WITH("fp8 delayed", "fp8", "fp8_recipe: delayed"),
	WITH("fp8 delayed scaling", "fp8", "fp8_recipe: delayed"),
	WORD("fp8 e4m3", "fp8"),
	WITH("fp8 per tensor", "fp8", "fp8_recipe: tensorwise"),
	WITH("fp8 current scaling", "fp8", "fp8_recipe: tensorwise"),
	WITH("float8 dynamic", "fp8", "fp8_recipe: tensorwise"),
	WITH("fp8 block scaling", "fp8", "fp8_recipe: blockwise"),
	WITH("fp8 subchannel", "fp8", "fp8_recipe: blockwise"),
	WITH("fp8 ds", "fp8", "fp8_recipe: delayed"),
	WITH("fp8 current", "fp8", "fp8_recipe: tensorwise"),
	WITH("fp8 cs", "fp8", "fp8_recipe: tensorwise"),
	WITH("fp8 tensorwise", "fp8", "fp8_recipe: tensorwise"),
	WITH("float8 tensorwise", "fp8", "fp8_recipe: tensorwise"),
	WITH("fp8 rowwise", "fp8", "fp8_recipe: rowwise"),
	WITH("float8 rowwise", "fp8", "fp8_recipe: rowwise"),
	WITH("fp8 blockwise", "fp8", "fp8_recipe: blockwise"),
	WITH("fp8 sc", "fp8", "fp8_recipe: blockwise"),
	WORD("mxfp8", "mxfp8"),
	WORD("fp8 mx", "mxfp8"),
	WORD("nvfp4", "nvfp4"),
	WORD("fp4", "nvfp4"),
};

/* Names of torch.optim, apex, DeepSpeed, bitsandbytes and transformers' TrainingArguments.optim. */
static const struct word optimizers[] = {
	WORD("adam", "adam"),
	WORD("adamw", "adamw"),
	WORD("fusedadam", "adam"),
	WORD("fused adamw", "adamw"),
	WORD("apex adam", "adam"),
	WORD("torch.optim.adamw", "adamw"),
	WORD("torch adamw", "adamw"),
	WORD("distributed adam", "adam"),
	WORD("distributedfusedadam", "adam"),
	WORD("decoupled_adamw", "adamw"),
	WORD("adamw_torch", "adamw"),
	WORD("adamw_torch_fused", "adamw"),
	WORD("paged_adamw", "adamw"),
	WORD("paged_adamw_32bit", "adamw"),
	WITH("adam8bit", "adam", "optimizer_bits: 8"),
	WITH("8bit adam", "adam", "optimizer_bits: 8"),
	WITH("adamw8bit", "adamw", "optimizer_bits: 8"),
	WITH("adamw_bnb_8bit", "adamw", "optimizer_bits: 8"),
	WITH("paged_adamw_8bit", "adamw", "optimizer_bits: 8"),
	WITH("8bit adamw", "adamw", "optimizer_bits: 8"),
	WITH("anyprecisionadamw", "adamw", "optimizer_bits: 16"),
	WORD("lamb", "lamb"),
	WORD("fusedlamb", "lamb"),
	WORD("lion", "lion"),
	WORD("muon", "muon"),
	WORD("sgd", "sgd"),
	WORD("momentum", "sgd"),
	WORD("adafactor", "adafactor"),
};

/* Kernels by generation, and the libraries that have one. */
static const struct word attentions[] = {
	WORD("flash", "flash"),
	WITH("flash1", "flash", "attention_kernel: fa1"),
	WITH("flash2", "flash", "attention_kernel: fa2"),
	WITH("flash3", "flash", "attention_kernel: fa3"),
	WITH("flash4", "flash", "attention_kernel: fa4"),
	WITH("fa1", "flash", "attention_kernel: fa1"),
	WITH("fa2", "flash", "attention_kernel: fa2"),
	WITH("fa3", "flash", "attention_kernel: fa3"),
	WORD("flashattention", "flash"),
	WITH("flashattention2", "flash", "attention_kernel: fa2"),
	WITH("flashattention3", "flash", "attention_kernel: fa3"),
	WITH("flashattention4", "flash", "attention_kernel: fa4"),
	WITH("flashattention v2", "flash", "attention_kernel: fa2"),
	WITH("flashattention v3", "flash", "attention_kernel: fa3"),
	WORD("flash_attn", "flash"),
	WORD("sdpa", "flash"),
	WORD("PyTorch SDPA", "flash"),
	WORD("torch SDPA", "flash"),
	WITH("masked SDPA", "flash", "attention_kernel: masked"),
	WORD("scaled dot product attention", "flash"),
	WORD("F.scaled_dot_product_attention", "flash"),
	WORD("fa", "flash"),
	WITH("fa4", "flash", "attention_kernel: fa4"),
	WORD("fused", "flash"),
	WORD("yes", "flash"),
	WORD("true", "flash"),
	WITH("cudnn", "flash", "attention_kernel: fa3"), /* as the stacks on cuDNN have it */
	WORD("TE", "flash"),
	WORD("Transformer Engine", "flash"),
	WORD("xformers", "flash"),
	WORD("mem efficient", "flash"),
	WORD("memory efficient", "flash"),
	WORD("flex", "flash"),
	WORD("flex_attention", "flash"),
	WORD("splash", "flash"),
	WORD("triton", "flash"),
	WORD("FMHA", "flash"),
	WORD("naive", "naive"),
	WORD("eager", "naive"),
	WORD("math", "naive"),
	WORD("unfused", "naive"),
	WORD("fused softmax", "naive"),
	WORD("dot_product", "naive"),
	WORD("standard", "naive"),
	WORD("vanilla", "naive"),
	WORD("no", "naive"),
	WORD("false", "naive"),
};

/* Words of Megatron-LM, torchtitan and Hugging Face's gradient_checkpointing. half: every second block; op:
 * torchtitan's policy. */
static const struct word recomputes[] = {
	WORD("none", "none"),
	WORD("no", "none"),
	WORD("false", "none"),
	WORD("off", "none"),
	WORD("0", "none"),
	WORD("disabled", "none"),
	WORD("without", "none"),
	WORD("no recompute", "none"),
	WORD("no AC", "none"),
	WORD("full", "full"),
	WORD("yes", "full"),
	WORD("true", "full"),
	WORD("on", "full"),
	WORD("all", "full"),
	WORD("every layer", "full"),
	WORD("1", "full"),
	WORD("enabled", "full"),
	WORD("full AC", "full"),
	WORD("full recompute", "full"),
	WORD("full remat", "full"),
	WORD("full activation checkpointing", "full"),
	WORD("gradient checkpointing", "full"),
	WORD("activation checkpointing", "full"),
	WORD("uniform", "full"),
	WORD("every block", "full"),
	WORD("AC", "full"),
	WORD("GC", "full"),
	WORD("remat", "full"),
	WORD("recompute", "full"),
	WORD("checkpointing", "full"),
	WORD("full uniform", "full"),
	WORD("selective", "selective"),
	WORD("selective attention", "selective"),
	WORD("selective recompute", "selective"),
	WORD("selective core_attn", "selective"),
	WORD("core_attn", "selective"),
	WORD("op", "op"),
	WORD("selective op", "op"),
	WORD("selective AC", "op"),
	WORD("sac", "op"),
	WORD("half", "half"),
	WORD("every 2", "half"),
	WORD("every 2 layers", "half"),
	WORD("every second layer", "half"),
	WORD("selective 2", "half"),
};

static const struct word mlps[] = {
	WORD("gelu", "gelu"),
	WORD("gelu_new", "gelu"),
	WORD("gelu_pytorch_tanh", "gelu"),
	WORD("gelu_fast", "gelu"),
	WORD("quick_gelu", "gelu"),
	WORD("relu", "relu"),
	WORD("squared_relu", "squared_relu"),
	WORD("relu2", "squared_relu"),
	WORD("relu^2", "squared_relu"),
	WORD("swiglu", "swiglu"),
	WORD("silu", "swiglu"), /* hidden_act of models whose MLP is gated */
	WORD("swish", "swiglu"),
	WORD("gated silu", "swiglu"),
	WORD("gated gelu", "geglu"),
	WORD("geglu", "geglu"),
};

static const struct word truths[] = {WORD("true", "true"), WORD("yes", "true"), WORD("on", "true"), WORD("1", "true"),
	WORD("enabled", "true"), WORD("tied", "true"), WORD("false", "false"), WORD("no", "false"),
	WORD("off", "false"), WORD("0", "false"), WORD("none", "false"), WORD("disabled", "false"),
	WORD("untied", "false")};

static const struct word adapters[] = {WORD("LoRA", "LoRA"), WORD("QLoRA", "QLoRA"), WORD("none", NULL),
	WORD("no", NULL), WORD("full", NULL), WORD("full fine-tuning", NULL), WORD("SFT", NULL)};

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
	{"tied_emb", truths, COUNT(truths), NULL, false},
	{"adapter", adapters, COUNT(adapters), NULL, false},
};

#define CELL 96
#define WORDS_MAX 64
static_assert(COUNT(shardings) <= WORDS_MAX && COUNT(dtypes) <= WORDS_MAX && COUNT(attentions) <= WORDS_MAX,
	"the longest lists");

static bool means_same(const struct meaning *a, const struct meaning *b)
{
	return strcmp(a->value ? a->value : "", b->value ? b->value : "") == 0 &&
	       strcmp(a->more ? a->more : "", b->more ? b->more : "") == 0;
}

/* The nearest word; where none is near, the first word of each meaning. */
static struct hint hint_of(size_t column, const char *cell)
{
	const char *names[WORDS_MAX], *known[WORDS_MAX];
	const struct word *words = columns[column].words;
	size_t n_known = 0;
	for (size_t i = 0; i < columns[column].n; i++) {
		size_t first = 0;
		while (!means_same(&words[first].means, &words[i].means))
			first++;
		names[i] = words[i].name;
		if (first == i)
			known[n_known++] = names[i];
	}
	return suggest_nearest(cell, names, columns[column].n) ? suggest(cell, names, columns[column].n, NULL)
	                                                       : suggest_names("known", known, n_known);
}

/* What a blank cell means. Megatron's optimizers that are distributed cut their states, as zero1 does. */
static struct meaning blank_of(const struct csv *t, size_t row, size_t column)
{
	const bool distributed = strncasecmp(csv_get(t, row, "optimizer"), "distributed", 11) == 0;
	const bool cut = columns[column].words == shardings && distributed;
	return (struct meaning){cut ? "zero1" : columns[column].blank, NULL};
}

enum status cell_read(const struct csv *t, size_t row, const char *column, struct meaning *out, struct error *e)
{
	const char *cell = csv_get(t, row, column);
	char plain[CELL]; /* "naive (fused softmax)" is naive */
	size_t c = 0, most = 0;
	while (strcmp(columns[c].column, column) != 0)
		c++;
	*out = blank_of(t, row, c);
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
