/* The keys of CONFIG.yaml: one table, from which files, presets, stacks and --set are read, checked and written.
 * Private to step/config/, step/import and their tests.
 *
 * A row: section, key, how it is read (type and range), where it is stored in struct config, its default as a text of
 * CONFIG.yaml (NULL: it follows from other keys, config_derive), and the traits of the strategies that use it.
 */
#ifndef STEPSIM_STEP_CONFIG_KEYS_H
#define STEPSIM_STEP_CONFIG_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "base/suggest.h"
#include "base/yaml.h"
#include "step/config/config.h"

enum key_type {
	KEY_INT,   /* int64_t in [low, high] */
	KEY_REAL,  /* double in [low, high] of `unit` */
	KEY_MIB,   /* double of bytes: written as a number of MiB, or as a size with its unit */
	KEY_BYTES, /* uint64_t: a whole number of bytes */
	KEY_BOOL,
	KEY_WORD,        /* an enum of ours by its word */
	KEY_NUMBER_WORD, /* int64_t of which only some values exist */
	KEY_TEXT,        /* char[]: `size` bytes with the terminator */
	KEY_TEXTS,       /* the same, or a list of texts, which is stored with ", " between them */
	KEY_SET,         /* int: some of the words, which are bits */
	KEY_ORDER,       /* parallel.order */
	KEY_STAGES,      /* parallel.layers_per_stage */
	KEY_RANKS,       /* cluster.slow_ranks: {3: 1.2, n1: 1.1} */
	KEY_TYPE_COUNT
};

struct word {
	const char *text;
	int value;
};

#define EVERY 0 /* strategy uses the key */

struct config_key {
	const char *section, *name;
	const char *path; /* "section.name" */
	enum key_type type;
	bool takes_auto; /* `auto`, stored as AUTO, beside the range */
	double low, high;
	enum unit unit;
	const struct word *words;
	size_t n_words, n_later; /* the last n_later words are not modelled yet */
	size_t offset, size;
	const char *default_;
	unsigned used_by; /* traits that a strategy must have to use the key (step/strategy.h) */
};

/* X(section, key, type, AT(member), default, used_by). */
#define CONFIG_KEYS(X) \
	X(model, preset, TEXT, AT(model.name), "", EVERY) \
	X(model, hf_config, TEXT, AT(hf_config), "", EVERY) \
	X(model, layers, INT(1, 10000), AT(model.layers), "12", EVERY) \
	X(model, hidden, INT(1, 1048576), AT(model.hidden), "768", EVERY) \
	X(model, heads, INT(1, 65536), AT(model.heads), "12", EVERY) \
	X(model, kv_heads, INT(1, 65536), AT(model.kv_heads), NULL, EVERY) \
	X(model, head_dim, INT(1, 1048576), AT(model.head_dim), NULL, EVERY) \
	X(model, ffn_hidden, INT(1, 4194304), AT(model.ffn_hidden), NULL, EVERY) \
	X(model, vocab, INT(1, 16777216), AT(model.vocab), "50257", EVERY) \
	X(model, vocab_padding, INT(1, 1048576), AT(model.vocab_padding), "1", EVERY) \
	X(model, seq_len, INT(1, 16777216), AT(model.seq_len), "1024", EVERY) \
	X(model, encoder_layers, INT(0, 10000), AT(model.encoder_layers), "0", EVERY) \
	X(model, encoder_seq_len, INT(0, 16777216), AT(model.encoder_seq_len), NULL, EVERY) \
	X(model, max_positions, INT(0, 16777216), AT(model.max_positions), NULL, EVERY) \
	X(model, causal, BOOL, AT(model.causal), "true", EVERY) \
	X(model, sliding_window, INT(0, 16777216), AT(model.sliding_window), "0", EVERY) \
	X(model, global_attention_every, INT(0, 10000), AT(model.global_attention_every), "0", EVERY) \
	X(model, window_kind, WORD(window_kind), AT(model.window_kind), "sliding", EVERY) \
	X(model, no_rope_every, INT(0, 10000), AT(model.no_rope_every), "0", EVERY) \
	X(model, attention_gate, BOOL, AT(model.attention_gate), "false", EVERY) \
	X(model, attention_sinks, BOOL, AT(model.attention_sinks), "false", EVERY) \
	X(model, attention_softcap, INT(0, 1000000), AT(model.attention_softcap), "0", EVERY) \
	X(model, logit_softcap, INT(0, 1000000), AT(model.logit_softcap), "0", EVERY) \
	X(model, position, WORD(position), AT(model.position), "learned", EVERY) \
	X(model, relative_buckets, INT(2, 65536), AT(model.relative_buckets), "32", EVERY) \
	X(model, mlp, WORD(mlp), AT(model.mlp), "gelu", EVERY) \
	X(model, norm, WORD(norm), AT(model.norm), "layernorm", EVERY) \
	X(model, bias, BOOL, AT(model.bias), "true", EVERY) \
	X(model, qkv_bias, BOOL, AT(model.qkv_bias), NULL, EVERY) \
	X(model, proj_bias, BOOL, AT(model.proj_bias), NULL, EVERY) \
	X(model, qk_norm, WORD(qk_norm), AT(model.qk_norm), "none", EVERY) \
	X(model, branch_norm, WORD(branch_norm), AT(model.branch_norm), "none", EVERY) \
	X(model, post_norm, BOOL, AT(model.post_norm), "false", EVERY) \
	X(model, embedding_norm, BOOL, AT(model.embedding_norm), "false", EVERY) \
	X(model, final_norm, BOOL, AT(model.final_norm), "true", EVERY) \
	X(model, pooler, BOOL, AT(model.pooler), "false", EVERY) \
	X(model, lm_head, BOOL, AT(model.lm_head), "true", EVERY) \
	X(model, head_transform, BOOL, AT(model.head_transform), "false", EVERY) \
	X(model, head_bias, BOOL, AT(model.head_bias), "false", EVERY) \
	X(model, predictions, INT(0, 16777216), AT(model.predictions), "0", EVERY) \
	X(model, classes, INT(0, 1048576), AT(model.classes), "0", EVERY) \
	X(model, input, WORD(input), AT(model.input), "tokens", EVERY) \
	X(model, image_size, INT(1, 65536), AT(model.image_size), "224", EVERY) \
	X(model, patch_size, INT(1, 65536), AT(model.patch_size), "16", EVERY) \
	X(model, channels, INT(1, 65536), AT(model.channels), "3", EVERY) \
	X(model, class_token, BOOL, AT(model.class_token), "false", EVERY) \
	X(model, adaptive_norm, BOOL, AT(model.adaptive_norm), "false", EVERY) \
	X(model, timestep_features, INT(1, 65536), AT(model.timestep_features), "256", EVERY) \
	X(model, condition_classes, INT(0, 16777216), AT(model.condition_classes), "0", EVERY) \
	X(model, output_channels, INT(0, 65536), AT(model.output_channels), "0", EVERY) \
	X(model, type_vocab, INT(0, 65536), AT(model.type_vocab), "0", EVERY) \
	X(model, parallel_residual, BOOL, AT(model.parallel_residual), "false", EVERY) \
	X(model, tied_embeddings, BOOL, AT(model.tied_embeddings), "true", EVERY) \
	X(model, q_lora_rank, INT(0, 1048576), AT(model.q_lora_rank), "0", EVERY) \
	X(model, kv_lora_rank, INT(0, 1048576), AT(model.kv_lora_rank), "0", EVERY) \
	X(model, rope_head_dim, INT(0, 1048576), AT(model.rope_head_dim), "0", EVERY) \
	X(model, v_head_dim, INT(0, 1048576), AT(model.v_head_dim), "0", EVERY) \
	X(model, experts, INT(0, 4096), AT(model.experts), "0", EVERY) \
	X(model, experts_per_token, INT(1, 4096), AT(model.experts_per_token), "2", EVERY) \
	X(model, shared_experts, INT(0, 4096), AT(model.shared_experts), "0", EVERY) \
	X(model, moe_latent, INT(0, 1048576), AT(model.moe_latent), "0", EVERY) \
	X(model, shared_expert_gate, BOOL, AT(model.shared_expert_gate), "false", EVERY) \
	X(model, moe_ffn_hidden, INT(1, 4194304), AT(model.moe_ffn_hidden), NULL, EVERY) \
	X(model, moe_layer_freq, INT(1, 10000), AT(model.moe_layer_freq), "1", EVERY) \
	X(model, first_dense_layers, INT(0, 10000), AT(model.first_dense_layers), "0", EVERY) \
	X(model, expert_groups, INT(0, 4096), AT(model.expert_groups), "0", EVERY) \
	X(model, groups_per_token, INT(1, 4096), AT(model.groups_per_token), "1", EVERY) \
	X(model, router_bias, BOOL, AT(model.router_bias), "false", EVERY) \
	X(model, expert_bias, BOOL, AT(model.expert_bias), "false", EVERY) \
	X(model, mtp_layers, INT(0, 4), AT(model.mtp_layers), "0", EVERY) \
	X(model, layer_pattern, TEXT, AT(model.layer_pattern), "", EVERY) \
	X(model, ssm_state, INT(1, 65536), AT(model.ssm_state), "128", EVERY) \
	X(model, ssm_heads, INT(1, 1048576), AT(model.ssm_heads), NULL, EVERY) \
	X(model, ssm_head_dim, INT(1, 65536), AT(model.ssm_head_dim), "64", EVERY) \
	X(model, ssm_groups, INT(1, 65536), AT(model.ssm_groups), "1", EVERY) \
	X(model, ssm_conv, INT(1, 64), AT(model.ssm_conv), "4", EVERY) \
	X(model, ssm_chunk, INT(1, 1048576), AT(model.ssm_chunk), "256", EVERY) \
	X(model, conv_stages, TEXTS, AT(model.conv_stages), "", EVERY) \
	X(model, conv_bottleneck, BOOL, AT(model.conv_bottleneck), "true", EVERY) \
	X(model, conv_width, INT(1, 4096), AT(model.conv_width), "64", EVERY) \
	X(model, dropout, REAL(0, 0.99, UNIT_NONE), AT(model.dropout), "0", EVERY) \
	X(model, attention_dropout, REAL(0, 0.99, UNIT_NONE), AT(model.attention_dropout), "0", EVERY) \
	X(model, capacity_factor, REAL(0, 1000, UNIT_NONE), AT(model.capacity_factor), "0", EVERY) \
	X(train, stack, TEXT, AT(train.stack), "pytorch-ddp", EVERY) \
	X(train, global_batch, INT(1, CONFIG_MAX_BATCH), AT(train.global_batch), "64", EVERY) \
	X(train, tokens_per_step, REAL(0, 1e15, UNIT_TOKEN), AT(train.tokens_per_step), "0", EVERY) \
	X(train, batch_per_gpu, REAL(0, 1e9, UNIT_NONE), AT(train.batch_per_gpu), "0", EVERY) \
	X(train, micro_batch, INT(1, 1000000), AT(train.micro_batch), "8", EVERY) \
	X(train, dtype, WORD(compute_dtype), AT(train.dtype), "bf16", EVERY) \
	X(train, fp8_recipe, WORD(fp8_recipe), AT(train.fp8_recipe), "auto", EVERY) \
	X(train, param_dtype, STORAGE_WORD, AT(train.param_dtype), "fp32", EVERY) \
	X(train, grad_dtype, STORAGE_WORD, AT(train.grad_dtype), "fp32", EVERY) \
	X(train, reduce_dtype, STORAGE_WORD, AT(train.reduce_dtype), "fp32", EVERY) \
	X(train, master_weights, BOOL, AT(train.master_weights), "false", EVERY) \
	X(train, grad_compression, WORD(compression), AT(train.grad_compression), "none", STRATEGY_COMPRESSES) \
	X(train, optimizer, WORD(optimizer), AT(train.optimizer), "adamw", EVERY) \
	X(train, optimizer_bits, NUMBER_WORD(optimizer_bits), AT(train.optimizer_bits), "32", EVERY) \
	X(train, attention, WORD(attention), AT(train.attention), "flash", EVERY) \
	X(train, attention_kernel, WORD(attention_kernel), AT(train.attention_kernel), "auto", EVERY) \
	X(train, recompute, WORD(recompute), AT(train.recompute), "none", EVERY) \
	X(train, recompute_modules, SET_AUTO(recompute_modules), AT(train.recompute_modules), "auto", EVERY) \
	X(train, recompute_layers, INT_AUTO(0, 10000), AT(train.recompute_layers), "auto", EVERY) \
	X(train, offload, WORD(offload), AT(train.offload), "none", EVERY) \
	X(train, lora_rank, INT(0, 65536), AT(model.lora_rank), "0", EVERY) \
	X(train, lora_targets, WORD(lora_targets), AT(model.lora_targets), "all", EVERY) \
	X(train, lora_base, WORD(lora_base), AT(train.lora_base), "none", EVERY) \
	X(train, freeze, WORD(freeze), AT(model.freeze), "none", EVERY) \
	X(train, fused, BOOL, AT(train.fused), "true", EVERY) \
	X(train, memory_format, WORD(memory_format), AT(train.memory_format), "auto", EVERY) \
	X(train, cuda_graph, BOOL, AT(train.cuda_graph), "false", EVERY) \
	X(train, launch_blocking, BOOL, AT(train.launch_blocking), "false", EVERY) \
	X(train, expert_loop, BOOL, AT(train.expert_loop), "false", EVERY) \
	X(train, expert_sums, WORD(expert_sums), AT(train.expert_sums), "auto", EVERY) \
	X(train, expert_gates, WORD(expert_gates), AT(train.expert_gates), "auto", EVERY) \
	X(train, act_input_dtype, WORD(dispatch_dtype), AT(train.act_input_dtype), "auto", EVERY) \
	X(train, sync_every, INT(0, 1000000000), AT(train.sync_every), "0", EVERY) \
	X(data, load_time, REAL(0, 1e6, UNIT_SECOND), AT(data.load_time_s), "0ms", EVERY) \
	X(data, bytes, BYTES(0, 1e12), AT(data.bytes), "0", EVERY) \
	X(data, workers, INT(0, 100000), AT(data.workers), "8", EVERY) \
	X(data, prefetch, INT(0, 100000), AT(data.prefetch), "2", EVERY) \
	X(data, pin_memory, BOOL, AT(data.pin_memory), "true", EVERY) \
	X(data, repeated_token, BOOL, AT(data.repeated_token), "false", EVERY) \
	X(parallel, strategy, WORD(strategy), AT(parallel.strategy), "ddp", EVERY) \
	X(parallel, data, INT_AUTO(1, 10000000), AT(parallel.data), "auto", EVERY) \
	X(parallel, shard, INT_AUTO(1, 10000000), AT(parallel.shard), "auto", STRATEGY_GROUPS) \
	X(parallel, replicate, INT_AUTO(1, 10000000), AT(parallel.replicate), "auto", STRATEGY_GROUPS) \
	X(parallel, tensor, INT(1, 65536), AT(parallel.tensor), "1", EVERY) \
	X(parallel, tensor_overlap, BOOL, AT(parallel.tensor_overlap), "false", EVERY) \
	X(parallel, sequence_parallel, BOOL, AT(parallel.sequence_parallel), "false", EVERY) \
	X(parallel, pipeline, INT(1, 10000), AT(parallel.pipeline), "1", EVERY) \
	X(parallel, virtual_stages, INT(1, 10000), AT(parallel.virtual_stages), "1", EVERY) \
	X(parallel, schedule, WORD(schedule), AT(parallel.schedule), "1f1b", EVERY) \
	X(parallel, layers_per_stage, STAGES, AT(parallel.layers_per_stage), "[]", EVERY) \
	X(parallel, count_ends, WORD(count_ends), AT(parallel.count_ends), "auto", EVERY) \
	X(parallel, first_stage_layers, INT_AUTO(0, 10000), AT(parallel.first_stage_layers), "auto", EVERY) \
	X(parallel, last_stage_layers, INT_AUTO(0, 10000), AT(parallel.last_stage_layers), "auto", EVERY) \
	X(parallel, context, INT(1, 65536), AT(parallel.context), "1", EVERY) \
	X(parallel, context_kind, WORD(context_kind), AT(parallel.context_kind), "ring", EVERY) \
	X(parallel, expert, INT(1, 65536), AT(parallel.expert), "1", EVERY) \
	X(parallel, expert_dispatch, WORD(expert_dispatch), AT(parallel.expert_dispatch), "all_to_all", EVERY) \
	X(parallel, dispatch_dtype, WORD(dispatch_dtype), AT(parallel.dispatch_dtype), "auto", EVERY) \
	X(parallel, expert_overlap, BOOL, AT(parallel.expert_overlap), "false", EVERY) \
	X(parallel, expert_tensor, INT(1, 65536), AT(parallel.expert_tensor), "1", EVERY) \
	X(parallel, order, ORDER, AT(parallel.order), "tp-cp-ep-dp-pp", EVERY) \
	X(parallel, bucket_mb, MIB(1e-6, 1e6), AT(parallel.bucket_B), "25", STRATEGY_BUCKETS) \
	X(parallel, first_bucket_mb, MIB_AUTO(1e-6, 1e6), AT(parallel.first_bucket_B), "auto", STRATEGY_BUCKETS) \
	X(parallel, overlap, BOOL, AT(parallel.overlap), "true", STRATEGY_REDUCES) \
	X(parallel, prefetch, INT(0, 10000), AT(parallel.prefetch), "1", STRATEGY_UNITS) \
	X(parallel, unit_params, INT(0, 1000000000000), AT(parallel.unit_params), "0", STRATEGY_UNITS) \
	X(parallel, adapter_units, BOOL, AT(parallel.adapter_units), "false", STRATEGY_UNITS) \
	X(parallel, gather_dtype, WORD(gather_dtype), AT(parallel.gather_dtype), "auto", STRATEGY_UNITS) \
	X(parallel, reshard_after_forward, BOOL, AT(parallel.reshard_after_forward), "true", STRATEGY_UNITS) \
	X(collectives, algorithm, WORD(algorithm), AT(collectives.algorithm), "auto", EVERY) \
	X(collectives, protocol, WORD(protocol), AT(collectives.protocol), "auto", EVERY) \
	X(cluster, system, TEXT, AT(cluster.system), "auto", EVERY) \
	X(cluster, nodes, INT(1, 1000000), AT(cluster.nodes), "1", EVERY) \
	X(cluster, gpus_per_node, INT(1, 65536), AT(cluster.gpus_per_node), NULL, EVERY) \
	X(cluster, profile, TEXT, AT(cluster.profile), "", EVERY) \
	X(cluster, fabric, TEXTS, AT(cluster.fabric), "", EVERY) \
	X(cluster, network_factor, REAL(1e-3, 1e3, UNIT_NONE), AT(cluster.network_factor), "1", EVERY) \
	X(cluster, slow_ranks, RANKS, AT(cluster.slow_ranks), "{}", EVERY) \
	X(cluster, jitter, REAL(0, 10, UNIT_NONE), AT(cluster.jitter), "0", EVERY) \
	X(cluster, mtbf_hours, REAL(0, 1e9, UNIT_NONE), AT(cluster.mtbf_hours), "0", EVERY) \
	X(cluster, mtbf_gpu_hours, REAL(0, 1e12, UNIT_NONE), AT(cluster.mtbf_gpu_hours), "0", EVERY) \
	X(cluster, checkpoint_s, REAL(0, 1e9, UNIT_SECOND), AT(cluster.checkpoint_s), "0", EVERY) \
	X(run, execute, WORD(tristate), AT(run.execute), "auto", EVERY) \
	X(run, backend, WORD(backend), AT(run.backend), "auto", EVERY) \
	X(run, share_gpu, BOOL, AT(run.share_gpu), "false", EVERY) \
	X(run, warmup, INT(0, 1000000), AT(run.warmup), "3", EVERY) \
	X(run, steps, INT(1, 1000000), AT(run.steps), "10", EVERY) \
	X(run, timeout_s, REAL(0.001, 1e9, UNIT_SECOND), AT(run.timeout_s), "60", EVERY) \
	X(run, verify, BOOL, AT(run.verify), "true", EVERY) \
	X(cost, gpu_hour_usd, REAL_AUTO(0, INFINITY, UNIT_USD), AT(cost.gpu_hour_usd), "auto", EVERY) \
	X(cost, system_price_usd, REAL_AUTO(0, INFINITY, UNIT_USD), AT(cost.system_price_usd), "auto", EVERY) \
	X(cost, amortize_years, REAL_AUTO(0.01, INFINITY, UNIT_NONE), AT(cost.amortize_years), "auto", EVERY) \
	X(cost, power_usd_per_kwh, REAL_AUTO(0, INFINITY, UNIT_USD), AT(cost.power_usd_per_kwh), "auto", EVERY) \
	X(cost, pue, REAL_AUTO(1, INFINITY, UNIT_NONE), AT(cost.pue), "auto", EVERY) \
	X(cost, co2_kg_per_kwh, REAL_AUTO(0, INFINITY, UNIT_NONE), AT(cost.co2_kg_per_kwh), "auto", EVERY)

#define CONFIG_KEY_ID(section, key, ...) KEY_##section##_##key,
enum key_id { CONFIG_KEYS(CONFIG_KEY_ID) KEY_COUNT };
#undef CONFIG_KEY_ID

/* Storage formats `auto` until config_resolve: weights as the compute format, gradients as the weights, the wire as the
 * gradients. */
#define DTYPE_AUTO DT_COUNT

const struct config_key *config_key(enum key_id id);
/* Returns the key, or KEY_COUNT if there is none. `section` need not be terminated at section_len. */
enum key_id config_key_find(const char *section, size_t section_len, const char *name);

/* The same for a name without its section: KEY_COUNT if several sections have such a key. */
enum key_id config_key_alone(const char *name);

#define CONFIG_SECTIONS 8
extern const char *const config_sections[CONFIG_SECTIONS];
bool config_is_section(const char *name);

/* ---- alias.c: names that users bring from other programs. Case, '-' and '_' do not matter. ---- */

#define ALIAS_MAX 64
/* Returns the word of CONFIG.yaml for another word ("bfloat16": "bf16"), or the text itself. */
const char *config_synonym(const char *text);
/* Returns the key of another name, also of one that is not accepted and stands near; KEY_COUNT without one. */
enum key_id config_alias_key(const char *name);
/* Reads another name of a key of `section` (NULL: of any): *id becomes the key, KEY_COUNT without one, and *value
 * (NULL: no text) the key's own word for it where the name has values of its own. ST_INPUT: it has, and not this one.
 */
enum status config_alias_read(const char *section, const char *name, const char **value, enum key_id *id,
	struct error *e);
/* config_key_typed (step/config/config.h) with the key's id in place of its path. */
enum status config_key_read(const char *typed, const char **value, enum key_id *id, struct error *e);
/* Reads a text of --set, KEY=VALUE: *value points into it, or is the key's own word. ST_INPUT: it is none, or of an
 * unknown key. */
enum status config_set_read(const char *text, const char **value, enum key_id *id, struct error *e);
/* Writes the other names of a key, with their own values: "zero_stage, zero (0: ddp, 1: zero1); hsdp (true: hsdp)".
 * Returns buf. */
#define ALIAS_NAMES_MAX CONFIG_NAMES_MAX
char *config_alias_names(enum key_id id, char buf[ALIAS_NAMES_MAX]);

/* Returns what a message says of a key that `section` does not have, as suggest() does (base/suggest.h): the keys of
 * other sections with this name, or that it is another name of, else the nearest key, else the section's own. Keys of
 * other sections are named as "section.key", those of `section` too if `full`. */
struct hint config_key_hint(const char *section, const char *name, bool full);
/* The same for a name at the top of a file: the keys with this name, else the nearest section. */
struct hint config_section_hint(const char *name);

/* ---- value.c ---- */

/* Reads `n` into c. On failure `inner` says what is wrong with the value, without position and key. */
enum status key_read(const struct config_key *k, const struct ynode *n, struct config *c, struct error *inner);
/* Sets the table's default; zero bytes if it has none. */
void key_set_default(const struct config_key *k, struct config *c);
/* Returns whether both have the same value. */
bool key_equal(const struct config_key *k, const struct config *a, const struct config *b);
/* Writes the value as a text of CONFIG.yaml; returns buf. */
#define KEY_VALUE_MAX 320
char *key_value_text(const struct config_key *k, const struct config *c, char buf[KEY_VALUE_MAX]);
/* Returns the value as JSON: a new reference, or NULL when out of memory. */
json_t *key_value_json(const struct config_key *k, const struct config *c);
/* Finds the word that a user means: case, '-' and '_' do not matter, and synonyms are known. NULL if the key has no
 * such word, or no words. */
const struct word *key_word_find(const struct config_key *k, const char *text);
/* Return the word of a value, "?" without one, and write all words that the program models: "none, selective, full". */
const char *key_word(const struct config_key *k, int value);
char *key_words(const struct config_key *k, char buf[KEY_VALUE_MAX]);
bool key_value_modelled(const struct config_key *k, const struct config *c);
/* Returns whether an integer or real lies in [low, high], for values that did not come through key_read. */
bool key_in_range(const struct config_key *k, const struct config *c);
/* Get and set an integer, real, bool or word as a number: sizes in bytes, words as their enum. */
double key_number(const struct config_key *k, const struct config *c);
void key_set_number(const struct config_key *k, struct config *c, double value);

/* ---- slow.c: the KEY_RANKS of these, and the check against the plan's ranks ---- */

enum status slow_ranks_read(const struct config_key *k, const struct ynode *n, struct config *c, struct error *inner);
void slow_ranks_text(const struct config *c, char buf[KEY_VALUE_MAX]);
json_t *slow_ranks_json(const struct config *c);
enum status slow_ranks_check(const struct config *c, int64_t ranks, struct error *e);

/* ---- set.c: KEY_SET ---- */

enum status set_read(const struct config_key *k, const struct ynode *n, struct config *c, struct error *inner);
void set_text(const struct config_key *k, const struct config *c, char buf[KEY_VALUE_MAX]);
json_t *set_json(const struct config_key *k, const struct config *c);

/* ---- error.c ---- */

/* Returns whether the user gave the key, in the file or by --set. */
bool config_is_given(const struct config *c, enum key_id id);
/* Records "<source>: section.key: <message>" (ST_INPUT). The source is "file:line:col" or "--set KEY=VALUE"; a value of
 * a preset, a stack or the table is marked as such. */
enum status config_error(const struct config *c, enum key_id id, struct error *e, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* The same, with the position of the key instead of its value. */
enum status config_error_key(const struct config *c, enum key_id id, struct error *e, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* Write what works on both sides of a value: "2, 4", or one of them where the other is < 0. Those of divisors and
 * multiples find the divisors of n, or the positive multiples of `unit`, around `value`. Return buf. */
#define NEAREST_MAX 64
char *nearest_two(int64_t below, int64_t above, char buf[NEAREST_MAX]);
char *nearest_divisors(int64_t n, int64_t value, char buf[NEAREST_MAX]);
char *nearest_multiples(int64_t unit, int64_t value, char buf[NEAREST_MAX]);

/* ---- derive.c, check.c, check_model.c, check_input.c, check_encoder.c ---- */

/* Fills the keys that follow from others. Idempotent. */
void config_derive(struct config *c);
/* ssm_chunk of gated delta rules: that of flash-linear-attention (fla/ops/gated_delta_rule/chunk.py). */
#define DELTA_CHUNK 64
/* Returns ssm_heads where it is not given. */
int64_t config_default_ssm_heads(const struct model *m);
/* Returns whether a stack may store or gather the blocks' matrices in the format of products, fp8 or mxfp8, where the
 * config does not say: where check_narrow (step/config/check.c) refuses neither. */
bool config_may_be_narrow(const struct config *c);
/* Checks everything that does not depend on the number of ranks. */
enum status config_check(const struct config *c, struct error *e);
enum status config_check_model(const struct config *c, struct error *e);
/* The same of what the model reads and of its heads: check_input.c. */
enum status config_check_input(const struct config *c, struct error *e);
/* The same of an encoder before a decoder, and of biases by distance: check_encoder.c. */
enum status config_check_encoder(const struct config *c, struct error *e);
/* Returns whether a key is given another value than it has in a model without that part. */
bool config_is_changed(const struct config *c, enum key_id id);
/* Refuses the first of the keys that has another value than its default, as not modelled yet with the part. */
enum status config_check_defaults(const struct config *c, const enum key_id *ids, size_t n, const char *part,
	struct error *e);

/* Returns the key that gave the global batch. */
enum key_id config_batch_key(const struct config *c);

/* ---- experts.c ---- */

/* Checks experts against the plan of ranks; parallel.data and parallel.shard must be known. */
enum status config_check_experts(const struct config *c, struct error *e);
/* Returns the least shard, from this one on, that divides the replicas and whose ranks hold whole groups of experts;
 * parallel.data where none does. */
int64_t config_expert_shard(const struct config *c, int64_t shard);

/* ---- config.c ---- */

/* Applies every key of a mapping of `section`. origin NULL: the mapping is the config file's own. */
enum status config_apply(struct config *c, const char *section, const struct ynode *map,
	const struct key_origin *origin, struct error *e);

/* ---- catalogue.c: configs/models and configs/stacks. `where` stands before a message about the name itself.
 * ---- */

enum status config_apply_preset(struct config *c, const char *name, const struct key_origin *origin, const char *where,
	struct error *e);
/* Returns whether train.stack is a file of somebody's own: it has a slash, or ends in .yaml or .yml. */
bool config_stack_is_file(const char *name);
/* Finds the file of a stack by its own name or by one of its list `names` (step/framework.h); a file of somebody's own
 * keeps its name. ST_INPUT: unknown. */
enum status config_stack_of(const char *name, const char *where, char stack[STACK_NAME], struct error *e);
enum status config_apply_stack(struct config *c, const char *name, const struct key_origin *origin, const char *where,
	struct error *e);

#endif
