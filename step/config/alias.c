/* Names that users bring from other programs: Megatron-LM's, Hugging Face's, DeepSpeed's, torchtitan's. */
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "step/config/keys.h"

#define VALUES_MAX 4

/* Other names of a key, separated by blanks. They take its values, unless they have values of their own. A row that is
 * `near` has a meaning of its own: its names are refused, and answered with the key to look at. */
struct config_alias {
	enum key_id key;
	const char *names;
	struct {
		const char *from, *to;
	} value[VALUES_MAX];
	bool near;
};

#define NAMES(section, key_, names_) \
	{ \
		.key = KEY_##section##_##key_, .names = names_ \
	}
#define SWITCH(section, key_, names_, ...) \
	{ \
		.key = KEY_##section##_##key_, .names = names_, .value = { __VA_ARGS__ } \
	}
#define NEAR(section, key_, names_) \
	{ \
		.key = KEY_##section##_##key_, .names = names_, .near = true \
	}

static const struct config_alias aliases[] = {
	NAMES(model, layers, "num_layers num_hidden_layers n_layers n_layer"),
	NAMES(model, hidden, "hidden_size d_model n_embd dim"),
	NAMES(model, heads, "num_attention_heads num_heads n_heads n_head"),
	NAMES(model, kv_heads, "num_query_groups num_key_value_heads num_kv_heads n_kv_heads"),
	NAMES(model, head_dim, "kv_channels"),
	NAMES(model, ffn_hidden, "ffn_hidden_size intermediate_size"),
	NAMES(model, vocab, "vocab_size"),
	NAMES(model, seq_len, "seq_length sequence_length"),
	NAMES(model, norm, "normalization"),
	NAMES(model, qkv_bias, "add_qkv_bias"),
	NAMES(model, tied_embeddings, "tie_word_embeddings"),
	SWITCH(model, tied_embeddings, "untie_embeddings_and_output_weights", {"true", "false"}, {"false", "true"}),
	NAMES(model, experts, "num_experts num_local_experts n_routed_experts"),
	NAMES(model, experts_per_token, "moe_router_topk num_experts_per_tok"),
	NAMES(model, shared_experts, "n_shared_experts"),
	NAMES(model, shared_expert_gate, "moe_shared_expert_gate"),
	NAMES(model, attention_gate, "attention_output_gate attn_output_gate"),
	NAMES(model, expert_groups, "n_group moe_router_num_groups"),
	NAMES(model, groups_per_token, "topk_group moe_router_group_topk"),
	NAMES(model, mtp_layers, "mtp_num_layers num_nextn_predict_layers"),
	NAMES(model, router_bias, "moe_router_enable_expert_bias"),
	NAMES(model, moe_latent, "moe_latent_size"),
	NAMES(model, moe_ffn_hidden, "moe_ffn_hidden_size moe_intermediate_size"),
	NAMES(model, dropout, "hidden_dropout hidden_dropout_prob resid_pdrop"),
	NAMES(model, attention_dropout, "attention_probs_dropout_prob attn_pdrop"),
	NAMES(model, capacity_factor, "moe_expert_capacity_factor"),
	NAMES(model, layer_pattern, "hybrid_override_pattern hybrid_layer_pattern"),
	NAMES(model, ssm_state, "mamba_state_dim ssm_state_size linear_key_head_dim"),
	NAMES(model, ssm_heads, "mamba_num_heads linear_num_value_heads"),
	NAMES(model, ssm_head_dim, "mamba_head_dim linear_value_head_dim"),
	NAMES(model, ssm_groups, "mamba_num_groups linear_num_key_heads"),
	NAMES(model, ssm_conv, "linear_conv_kernel_dim conv_L_cache"),
	NEAR(model, max_positions, "max_position_embeddings"),
	NEAR(model, mlp, "hidden_act activation_function"),
	NEAR(model, vocab_padding, "make_vocab_size_divisible_by"),
	NAMES(train, global_batch, "gbs global_batch_size train_batch_size"),
	NAMES(train, micro_batch, "mbs micro_batch_size per_device_train_batch_size train_micro_batch_size_per_gpu"),
	SWITCH(train, optimizer_impl, "fused_optimizer", {"true", "fused"}, {"false", "foreach"}),
	NAMES(train, recompute, "recompute_granularity"),
	NAMES(train, fused_gradient_sums, "gradient_accumulation_fusion"),
	SWITCH(train, recompute, "gradient_checkpointing", {"true", "full"}, {"false", "none"}),
	SWITCH(train, recompute, "activation_checkpointing", {"true", "full"}, {"false", "none"}),
	SWITCH(train, attention, "use_flash_attn", {"true", "flash"}, {"false", "naive"}),
	NEAR(train, global_batch, "gradient_accumulation_steps batch_size"),
	NEAR(train, micro_batch, "local_batch_size"),
	NEAR(train, dtype, "precision mixed_precision torch_dtype bf16 fp16 fp8"),
	NEAR(train, attention, "attn_implementation"),
	NAMES(data, workers, "num_workers dataloader_num_workers"),
	NAMES(data, prefetch, "prefetch_factor dataloader_prefetch_factor"),
	NAMES(data, pin_memory, "dataloader_pin_memory"),
	SWITCH(parallel, strategy, "zero_stage zero", {"0", "ddp"}, {"1", "zero1"}, {"2", "zero2"}, {"3", "fsdp"}),
	SWITCH(parallel, strategy, "use_distributed_optimizer", {"true", "zero1"}, {"false", "ddp"}),
	SWITCH(parallel, strategy, "ddp", {"true", "ddp"}),
	SWITCH(parallel, strategy, "zero1", {"true", "zero1"}),
	SWITCH(parallel, strategy, "zero2", {"true", "zero2"}),
	SWITCH(parallel, strategy, "fsdp zero3", {"true", "fsdp"}),
	SWITCH(parallel, strategy, "hsdp", {"true", "hsdp"}),
	NAMES(parallel, data, "dp data_parallel data_parallel_size"),
	NAMES(parallel, shard, "data_parallel_shard_degree"),
	NAMES(parallel, replicate, "data_parallel_replicate_degree num_distributed_optimizer_instances"),
	NAMES(parallel, tensor,
		"tp tensor_parallel tensor_parallel_size tensor_model_parallel_size tensor_parallel_degree"),
	NAMES(parallel, tensor_overlap, "tp_comm_overlap"),
	NAMES(parallel, sequence_parallel, "sp"),
	NAMES(parallel, pipeline,
		"pp pipeline_parallel pipeline_parallel_size pipeline_model_parallel_size pipeline_parallel_degree"),
	NAMES(parallel, virtual_stages, "vpp virtual_pipeline_model_parallel_size"),
	NAMES(parallel, schedule, "pipeline_parallel_schedule"),
	NAMES(parallel, first_stage_layers, "decoder_first_pipeline_num_layers num_layers_in_first_pipeline_stage"),
	NAMES(parallel, last_stage_layers, "decoder_last_pipeline_num_layers num_layers_in_last_pipeline_stage"),
	NAMES(parallel, context, "cp context_parallel context_parallel_size context_parallel_degree"),
	NAMES(parallel, expert,
		"ep expert_parallel expert_parallel_size expert_model_parallel_size expert_parallel_degree"),
	NAMES(parallel, expert_overlap, "overlap_moe_expert_parallel_comm"),
	SWITCH(parallel, expert_dispatch, "moe_enable_deepep", {"true", "deepep"}, {"false", "all_to_all"}),
	NAMES(parallel, expert_tensor, "etp expert_tensor_parallel_size expert_tensor_parallel_degree"),
	NAMES(parallel, bucket_mb, "bucket_cap_mb"),
	NAMES(parallel, overlap, "overlap_grad_reduce"),
	NAMES(parallel, gather_overlap, "overlap_param_gather"),
	NAMES(cluster, nodes, "nnodes num_nodes"),
	NAMES(cluster, gpus_per_node, "nproc_per_node num_gpus_per_node"),
	NEAR(cluster, system, "gpu gpu_type gpu_name machine instance_type"),
	NEAR(cluster, nodes, "world_size num_gpus gpus n_gpus"),
};

/* Other words for a value, of any key that has it. */
static const char *const synonyms[][2] = {
	{"bfloat16", "bf16"},
	{"float16", "fp16"},
	{"half", "fp16"},
	{"float32", "fp32"},
	{"float", "fp32"},
	{"rotary", "rope"},
	{"flash_attention", "flash"},
	{"flash_attn", "flash"},
	{"interleaved_1f1b", "interleaved"},
	{"interleaved_zero_bubble", "interleaved_zb"},
	{"zbv_zero_bubble", "zbv"},
	{"a2a", "all_to_all"},
	{"ulysses", "all_to_all"},
};

const char *config_synonym(const char *text)
{
	for (size_t i = 0; i < COUNT(synonyms); i++)
		if (suggest_same(text, synonyms[i][0]))
			return synonyms[i][1];
	return text;
}

/* Copies the next name of a list to buf and moves *names behind it; false at the end. */
static bool next_name(const char **names, char buf[ALIAS_MAX])
{
	const char *start = *names + strspn(*names, " ");
	const size_t len = strcspn(start, " ");
	snprintf(buf, ALIAS_MAX, "%.*s", (int)len, start);
	*names = start + len;
	return len > 0;
}

static const struct config_alias *find(const char *name)
{
	char one[ALIAS_MAX];
	for (size_t i = 0; i < COUNT(aliases); i++)
		for (const char *names = aliases[i].names; next_name(&names, one);)
			if (suggest_same(name, one))
				return &aliases[i];
	return NULL;
}

enum key_id config_alias_key(const char *name)
{
	const struct config_alias *a = find(name);
	return a ? a->key : KEY_COUNT;
}

enum status config_alias_read(const char *section, const char *name, const char **value, enum key_id *id,
	struct error *e)
{
	const struct config_alias *a = find(name);
	const char *known[VALUES_MAX], *given = *value ? *value : "";
	size_t n = 0;
	*id = KEY_COUNT;
	if (!a || a->near || (section && strcmp(section, config_key(a->key)->section) != 0))
		return ST_OK;
	*id = a->key;
	for (; n < VALUES_MAX && a->value[n].from; n++) {
		known[n] = a->value[n].from;
		if (suggest_same(given, known[n])) {
			*value = a->value[n].to;
			return ST_OK;
		}
	}
	return n == 0 ? ST_OK
	              : error_set(e, ST_INPUT, "unknown value \"%.60s\"%s", given, suggest_known(given, known, n).text);
}

static void say(char buf[ALIAS_NAMES_MAX], const char *before, const char *text)
{
	const size_t len = strlen(buf);
	snprintf(buf + len, ALIAS_NAMES_MAX - len, "%s%s", before, text);
}

char *config_alias_names(enum key_id id, char buf[ALIAS_NAMES_MAX])
{
	char one[ALIAS_MAX];
	buf[0] = '\0';
	for (const struct config_alias *a = aliases; a < aliases + COUNT(aliases); a++) {
		if (a->key != id || a->near)
			continue;
		const char *before = *buf ? "; " : "";
		for (const char *names = a->names; next_name(&names, one); before = ", ")
			say(buf, before, one);
		for (size_t v = 0; v < VALUES_MAX && a->value[v].from; v++) {
			say(buf, v ? ", " : " (", a->value[v].from);
			say(buf, ": ", a->value[v].to);
		}
		say(buf, a->value[0].from ? ")" : "", "");
	}
	return buf;
}

enum status config_key_read(const char *typed, const char **value, enum key_id *id, struct error *e)
{
	char section[ALIAS_MAX];
	const char *dot = strchr(typed, '.'), *name = dot ? dot + 1 : typed;
	const size_t len = dot ? (size_t)(dot - typed) : 0;
	*id = dot ? config_key_find(typed, len, name) : config_key_alone(name);
	snprintf(section, sizeof section, "%.*s", (int)len, typed);
	enum status st = *id == KEY_COUNT ? config_alias_read(dot ? section : NULL, name, value, id, e) : ST_OK;
	if (st)
		return st;
	if (*id != KEY_COUNT) {
		const struct config_key *k = config_key(*id);
		const struct word *word = key_word_find(k, *value);
		*value = word ? key_word(k, word->value) : *value;
		return ST_OK;
	}
	if (!dot && config_is_section(name))
		return error_set(e, ST_INPUT, "expected a key of the section, as %s.KEY=VALUE", name);
	return error_set(e, ST_INPUT, "unknown key%s", config_key_hint(section, name, true).text);
}

enum status config_key_typed(const char **key, const char **value, struct error *e)
{
	enum key_id id;
	enum status st = config_key_read(*key, value, &id, e);
	if (!st)
		*key = config_key(id)->path;
	return st;
}

bool config_key_words(size_t i, struct config_key_words *out)
{
	if (i >= KEY_COUNT)
		return false;
	const struct config_key *k = config_key((enum key_id)i);
	out->path = k->path;
	out->meaning = k->meaning;
	if (k->default_)
		snprintf(out->default_, sizeof out->default_, "%s", k->default_);
	else
		snprintf(out->default_, sizeof out->default_, "(%s)", k->follows);
	key_values(k, out->values);
	config_alias_names((enum key_id)i, out->names);
	return true;
}
