/* Checks of the model's keys, and of what is trained of it. */
#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "base/array.h"
#include "base/quantity.h"
#include "step/config/keys.h"
#include "step/model_conv.h"
#include "step/schedule.h"

#define PARAMETERS_MAX 1e15

bool config_is_changed(const struct config *c, enum key_id id)
{
	if (!config_is_given(c, id)) /* nearly always: no struct config is cleared in a search */
		return false;
	struct config defaults = {0};
	key_set_default(config_key(id), &defaults);
	if (id == KEY_model_ssm_heads)
		defaults.model.ssm_heads = config_default_ssm_heads(&c->model);
	if (id == KEY_model_moe_ffn_hidden)
		defaults.model.moe_ffn_hidden = c->model.ffn_hidden;
	return !key_equal(config_key(id), c, &defaults);
}

enum status config_check_defaults(const struct config *c, const enum key_id *ids, size_t n, const char *part,
	struct error *e)
{
	struct config defaults = {0};
	char value[KEY_VALUE_MAX];
	for (size_t i = 0; i < n; i++) {
		const struct config_key *k = config_key(ids[i]);
		key_set_default(k, &defaults);
		if (!key_equal(k, c, &defaults))
			return config_error_key(c, ids[i], e, "not modelled yet with %s (accepted: %s)", part,
				key_value_text(k, &defaults, value)[0] ? value : "none");
	}
	return ST_OK;
}

/* ---- convolutional networks ---- */

/* What a convolutional network does not have, or is not cut by. */
static enum status check_conv_alone(const struct config *c, struct error *e)
{
	static const enum key_id ids[] = {KEY_model_layer_pattern, KEY_model_post_norm, KEY_model_branch_norm,
		KEY_model_parallel_residual, KEY_model_embedding_norm, KEY_model_pooler, KEY_model_experts,
		KEY_model_kv_lora_rank, KEY_train_lora_rank, KEY_train_freeze, KEY_train_offload, KEY_parallel_tensor,
		KEY_parallel_pipeline, KEY_parallel_context};
	struct config defaults = {0};
	for (size_t i = 0; i < COUNT(ids); i++) {
		const struct config_key *k = config_key(ids[i]);
		char value[KEY_VALUE_MAX];
		key_set_default(k, &defaults);
		if (!key_equal(k, c, &defaults))
			return config_error_key(c, ids[i], e, "not modelled yet with conv_stages (accepted: %s)",
				key_value_text(k, &defaults, value));
	}
	if (dtype_is_narrow(c->train.dtype))
		return config_error(c, KEY_train_dtype, e,
			"%s is not modelled yet with conv_stages (accepted: fp32, tf32, fp16, bf16)",
			dtype_name(c->train.dtype));
	return ST_OK;
}

static enum status check_conv(const struct config *c, struct error *e)
{
	const struct model *m = &c->model;
	int64_t blocks[CONV_STAGES];
	if (!model_is_conv(m)) {
		if (m->input == INPUT_PIXELS)
			return config_error_key(c, KEY_model_input, e, "pixels need conv_stages");
		if (config_is_given(c, KEY_model_conv_width) && m->conv_width != 64)
			return config_error_key(c, KEY_model_conv_width, e, "not used without conv_stages");
		return ST_OK;
	}
	if (model_conv_stages(m, blocks) == 0)
		return config_error(c, KEY_model_conv_stages, e,
			"expected the blocks of one to %d stages, such as [3, 4, 6, 3]", CONV_STAGES);
	const struct {
		enum key_id id;
		int64_t value, is;
		const char *why;
	} follows[] = {{KEY_model_layers, m->layers, model_conv_blocks(m), "the blocks of conv_stages"},
		{KEY_model_hidden, m->hidden, model_conv_channels(m), "the channels of the last stage"},
		{KEY_model_seq_len, m->seq_len, 1, "an image's rows behind the pool"}};
	for (size_t i = 0; i < COUNT(follows); i++)
		if (follows[i].value != follows[i].is)
			return config_error(c, follows[i].id, e, "%" PRId64 ", and %s are %" PRId64, follows[i].value,
				follows[i].why, follows[i].is);
	if (m->input != INPUT_PIXELS)
		return config_error_key(c, KEY_model_input, e, "conv_stages read pixels");
	if (m->lm_head || m->final_norm)
		return config_error_key(c, m->lm_head ? KEY_model_lm_head : KEY_model_final_norm, e,
			"conv_stages end in classes (accepted: false)");
	return check_conv_alone(c, e);
}

/* ---- layers of one branch ---- */

static enum status check_pattern(const struct config *c, struct error *e)
{
	static const enum key_id ids[] = {KEY_model_moe_layer_freq, KEY_model_first_dense_layers, KEY_model_post_norm,
		KEY_model_branch_norm, KEY_model_parallel_residual};
	const struct model *m = &c->model;
	const int64_t n = (int64_t)strlen(m->layer_pattern);
	if (n == 0)
		return ST_OK;
	for (const char *p = m->layer_pattern; *p; p++)
		if (model_layer_of_letter(*p) == LAYER_KIND_COUNT)
			return config_error(c, KEY_model_layer_pattern, e,
				"no layer is called '%c' (known: M, *, -, E, G, K, P, C)",
				isprint((unsigned char)*p) ? *p : '?');
	if (m->layers % n != 0)
		return config_error(c, KEY_model_layers, e,
			"%" PRId64 " are no whole number of layer_pattern's %" PRId64 " (nearest: %" PRId64 ")",
			m->layers, n, m->layers > n ? m->layers / n * n : n);
	if ((model_layer_counts(m).of[LAYER_EXPERTS] > 0) != (m->experts > 0))
		return config_error_key(c, KEY_model_layer_pattern, e,
			m->experts > 0 ? "needs a layer E, as experts are given" : "E needs model.experts");
	struct config defaults = {0};
	for (size_t i = 0; i < COUNT(ids); i++) {
		const struct config_key *k = config_key(ids[i]);
		key_set_default(k, &defaults);
		if (!key_equal(k, c, &defaults))
			return config_error_key(c, ids[i], e, "not used with layer_pattern");
	}
	if (m->freeze != FREEZE_NONE && m->freeze != FREEZE_EMBEDDING)
		return config_error_key(c, KEY_train_freeze, e,
			"not modelled yet with layer_pattern (accepted: none, embedding)");
	return ST_OK;
}

/* Layers whose rows see those before them by a state or a convolution. */
static enum status check_scans(const struct config *c, struct error *e)
{
	static const enum key_id ids[] = {KEY_model_ssm_state, KEY_model_ssm_heads, KEY_model_ssm_head_dim,
		KEY_model_ssm_groups, KEY_model_ssm_conv, KEY_model_ssm_chunk};
	const struct model *m = &c->model;
	char near[NEAREST_MAX];
	const struct layer_counts layers = model_layer_counts(m);
	const bool mamba = layers.of[LAYER_MAMBA] + layers.of[LAYER_PARALLEL] > 0, delta = layers.of[LAYER_DELTA] > 0,
		   kda = layers.of[LAYER_KDA] > 0, convolves = layers.of[LAYER_SHORT_CONV] > 0;
	const int scans = mamba + delta + kda;
	for (size_t i = 0; i < COUNT(ids) && scans == 0; i++)
		if (config_is_changed(c, ids[i]) && !(ids[i] == KEY_model_ssm_conv && convolves))
			return config_error_key(c, ids[i], e, "not used without layers %s (layer_pattern)",
				ids[i] == KEY_model_ssm_conv ? "M, P, G, K or C" : "M, P, G or K");
	if (c->parallel.context > 1 && (scans > 0 || convolves))
		return config_error(c, KEY_parallel_context, e,
			"%" PRId64 " is not modelled yet with layers M, P, G, K or C (accepted: 1)",
			c->parallel.context);
	if (convolves && m->hidden % c->parallel.tensor != 0)
		return config_error(c, KEY_parallel_tensor, e, "%" PRId64 " does not divide hidden %" PRId64,
			c->parallel.tensor, m->hidden);
	if (scans == 0)
		return ST_OK;
	if (scans > 1)
		return config_error_key(c, KEY_model_layer_pattern, e,
			"layers G beside M or P, or K beside these, are not modelled yet: they share the keys ssm_*");
	if (m->ssm_heads % m->ssm_groups != 0)
		return config_error(c, KEY_model_ssm_groups, e,
			"%" PRId64 " does not divide the %" PRId64 " ssm_heads (nearest that do: %s)", m->ssm_groups,
			m->ssm_heads, nearest_divisors(m->ssm_heads, m->ssm_groups, near));
	if (m->ssm_groups % c->parallel.tensor != 0)
		return config_error(c, KEY_parallel_tensor, e,
			"%" PRId64 " does not divide the %" PRId64 " ssm_groups (nearest that do: %s)",
			c->parallel.tensor, m->ssm_groups, nearest_divisors(m->ssm_groups, c->parallel.tensor, near));
	return ST_OK;
}

/* ---- attention ---- */

static enum status check_heads(const struct config *c, struct error *e)
{
	const struct model *m = &c->model;
	char near[NEAREST_MAX];
	if (!model_has_attention(m))
		return ST_OK;
	if (m->head_dim == 0)
		return config_error(c, KEY_model_heads, e,
			"%" PRId64 " does not divide hidden %" PRId64
			", and head_dim is not given (nearest that do: %s)",
			m->heads, m->hidden, nearest_divisors(m->hidden, m->heads, near));
	if (m->heads % m->kv_heads != 0)
		return config_error(c, KEY_model_kv_heads, e,
			"%" PRId64 " does not divide the %" PRId64 " heads (nearest that do: %s)", m->kv_heads,
			m->heads, nearest_divisors(m->heads, m->kv_heads, near));
	if (m->position == POS_ROPE && m->head_dim % 2 != 0) {
		enum key_id id = c->origin[KEY_model_head_dim].kind == ORIGIN_DEFAULT ? KEY_model_position
		                                                                      : KEY_model_head_dim;
		return config_error(c, id, e, "rope rotates pairs, so head_dim must be even, not %" PRId64,
			m->head_dim);
	}
	return ST_OK;
}

static enum status check_positions(const struct config *c, struct error *e)
{
	const struct model *m = &c->model;
	if (!model_has_positions(m) && m->max_positions != 0)
		return config_error_key(c, KEY_model_max_positions, e, "not used unless position is learned or sincos");
	if (model_has_positions(m) && m->seq_len > m->max_positions)
		return config_error(c, KEY_model_seq_len, e,
			"%" PRId64 " is longer than the %" PRId64 " rows of the position table (max_positions)",
			m->seq_len, m->max_positions);
	return ST_OK;
}

static enum status check_window(const struct config *c, struct error *e)
{
	const struct model *m = &c->model;
	if (m->global_attention_every == 1 || (m->global_attention_every > 0 && m->sliding_window == 0))
		return config_error_key(c, KEY_model_global_attention_every, e,
			m->sliding_window == 0 ? "not used without sliding_window"
					       : "1 leaves no layer with the window (nearest: 0, 2)");
	if (m->window_kind == WINDOW_CHUNKED && m->sliding_window == 0)
		return config_error_key(c, KEY_model_window_kind, e, "not used without sliding_window");
	if (model_window(m, 0) == 0)
		return ST_OK;
	if (!c->model.causal)
		return config_error(c, KEY_model_sliding_window, e, "%" PRId64 " needs causal attention (nearest: 0)",
			c->model.sliding_window);
	const struct context_traits *kind = &context_traits[c->parallel.context_kind];
	if (c->parallel.context > 1 && kind->passes_keys)
		return config_error_key(c, KEY_parallel_context_kind, e,
			"%s passes on keys of whole ranks, most of which a window of %" PRId64
			" does not see (nearest: all_gather)",
			kind->name, c->model.sliding_window);
	return ST_OK;
}

/* ---- logits ---- */

static enum status check_logits(const struct config *c, struct error *e)
{
	const struct model *m = &c->model;
	const bool naive = c->train.attention == ATT_NAIVE;
	if (m->no_rope_every > 0 && (m->position != POS_ROPE || m->kv_lora_rank > 0 || m->no_rope_every == 1))
		return config_error_key(c, KEY_model_no_rope_every, e,
			m->position != POS_ROPE ? "needs position: rope"
			: m->kv_lora_rank > 0   ? "not modelled yet with kv_lora_rank (accepted: 0)"
						: "1 leaves no layer with rope (nearest: position: none, 2)");
	if ((m->attention_sinks || m->attention_softcap > 0) && naive)
		return config_error(c, KEY_train_attention, e, "naive is not modelled yet with %s (accepted: flash)",
			m->attention_sinks ? "attention_sinks" : "attention_softcap");
	if (m->attention_sinks && m->kv_lora_rank > 0)
		return config_error_key(c, KEY_model_attention_sinks, e,
			"not modelled yet with kv_lora_rank (accepted: false)");
	const struct context_traits *kind = &context_traits[c->parallel.context_kind];
	if (m->attention_sinks && c->parallel.context > 1 && kind->deals_heads)
		return config_error_key(c, KEY_parallel_context_kind, e,
			"%s is not modelled yet with attention_sinks (nearest: all_gather)", kind->name);
	if (m->attention_softcap > 0 && c->train.attention_kernel == KERNEL_FA1)
		return config_error_key(c, KEY_train_attention_kernel, e,
			"fa1 has no attention_softcap, which FlashAttention has from 2.6 on (nearest: fa2)");
	return ST_OK;
}

/* ---- latent attention ---- */

static enum status check_latent(const struct config *c, struct error *e)
{
	static const enum key_id ids[] = {KEY_model_q_lora_rank, KEY_model_rope_head_dim, KEY_model_v_head_dim};
	const struct model *m = &c->model;
	for (size_t i = 0; i < COUNT(ids) && m->kv_lora_rank == 0; i++)
		if (key_number(config_key(ids[i]), c) > 0)
			return config_error_key(c, ids[i], e, "not used without kv_lora_rank (latent attention)");
	if (m->kv_lora_rank == 0)
		return ST_OK;
	if (m->v_head_dim == 0)
		return config_error_key(c, KEY_model_kv_lora_rank, e, "needs v_head_dim, the width of a head's values");
	if (m->rope_head_dim >= m->head_dim)
		return config_error(c, KEY_model_rope_head_dim, e,
			"%" PRId64 " is a part of head_dim, %" PRId64 ", and must be smaller", m->rope_head_dim,
			m->head_dim);
	if (m->rope_head_dim > 0 && m->position != POS_NONE && (m->position != POS_ROPE || m->rope_head_dim % 2 != 0))
		return config_error(c, KEY_model_rope_head_dim, e, "%" PRId64 " columns that rotate %s",
			m->rope_head_dim,
			m->position != POS_ROPE ? "need position: rope, or none, and they do not rotate"
						: "are no pairs (nearest: an even number)");
	if (m->kv_heads != m->heads)
		return config_error_key(c, KEY_model_kv_heads, e,
			"not used with kv_lora_rank: each head has keys and values of its own");
	if (m->qk_norm != QK_NORM_NONE)
		return config_error_key(c, KEY_model_qk_norm, e, "not modelled yet with kv_lora_rank (accepted: none)");
	if (c->train.attention == ATT_NAIVE)
		return config_error(c, KEY_train_attention, e,
			"naive is not modelled yet with kv_lora_rank (accepted: flash)");
	if (c->parallel.context > 1)
		return config_error(c, KEY_parallel_context, e,
			"%" PRId64 " is not modelled yet with kv_lora_rank (accepted: 1)", c->parallel.context);
	return ST_OK;
}

/* ---- norms ---- */

static enum status check_norms(const struct config *c, struct error *e)
{
	const struct model *m = &c->model;
	if (m->post_norm && m->parallel_residual)
		return config_error_key(c, KEY_model_parallel_residual, e,
			"needs the norms before attention and MLP: post_norm must be false");
	if (m->branch_norm != BRANCH_NORM_NONE && (m->post_norm || m->parallel_residual))
		return config_error_key(c, KEY_model_branch_norm, e, "not modelled yet with %s (accepted: none)",
			m->post_norm ? "post_norm" : "parallel_residual");
	if (m->attention_gate && m->kv_lora_rank > 0)
		return config_error_key(c, KEY_model_attention_gate, e,
			"not modelled yet with kv_lora_rank (accepted: false)");
	if (m->attention_gate && m->encoder_layers > 0)
		return config_error_key(c, KEY_model_attention_gate, e,
			"not modelled yet with encoder_layers (accepted: false)");
	if (m->qk_norm == QK_NORM_FULL && c->parallel.tensor > 1)
		return config_error(c, KEY_parallel_tensor, e,
			"%" PRId64 " is not modelled yet with qk_norm full, a norm over the heads of all ranks "
			"(accepted: 1)",
			c->parallel.tensor);
	return ST_OK;
}

/* ---- what is trained ---- */

static enum status check_trained(const struct config *c, struct error *e)
{
	const struct model *m = &c->model;
	if (m->lora_rank == 0 && m->lora_targets != LORA_ALL)
		return config_error_key(c, KEY_train_lora_targets, e, "not used without lora_rank");
	if (m->lora_rank > 0 && m->freeze != FREEZE_NONE)
		return config_error_key(c, KEY_train_freeze, e,
			"not used with lora_rank, which trains the adapters alone");
	if (m->lora_rank == 0 && c->train.lora_dtype == DT_FP32)
		return config_error_key(c, KEY_train_lora_dtype, e, "not used without lora_rank");
	if (m->lora_rank == 0 && dtype_is_quantized(c->train.lora_base))
		return config_error_key(c, KEY_train_lora_base, e, "not used without lora_rank");
	if (m->lora_rank > 0 && model_lora_parameters(m) == 0)
		return config_error_key(c, KEY_train_lora_targets, e,
			"no layer of layer_pattern has a product with such an adapter (accepted: all)");
	if (m->lora_rank > 0 && m->experts > 0 && m->lora_targets == LORA_ALL && c->parallel.expert_tensor > 1)
		return config_error_key(c, KEY_train_lora_targets, e,
			"adapters of experts are not modelled yet with expert_tensor (accepted: attention, qkv)");
	if (m->lora_rank > 0 && c->parallel.pipeline > 1 && schedule_splits_backward(c->parallel.schedule))
		return config_error_key(c, KEY_train_lora_rank, e, "not modelled yet with schedule %s (accepted: 0)",
			schedule_traits[c->parallel.schedule].name);
	if (model_freezes(m) && optimizer_needs_tensors(c->train.optimizer))
		return config_error_key(c, KEY_train_optimizer, e,
			"%s is not modelled yet with frozen parameters (nearest: adamw)",
			optimizer_name(c->train.optimizer));
	return ST_OK;
}

/* ---- experts ---- */

/* Groups of experts, of which a token visits a few. */
static enum status check_expert_choice(const struct config *c, struct error *e)
{
	const struct model *m = &c->model;
	char near[NEAREST_MAX];
	if (m->expert_groups == 0)
		return config_is_changed(c, KEY_model_groups_per_token)
		               ? config_error_key(c, KEY_model_groups_per_token, e, "not used without expert_groups")
		               : ST_OK;
	if (m->experts % m->expert_groups != 0)
		return config_error(c, KEY_model_expert_groups, e,
			"%" PRId64 " does not divide the %" PRId64 " experts (nearest that do: %s)", m->expert_groups,
			m->experts, nearest_divisors(m->experts, m->expert_groups, near));
	if (m->groups_per_token > m->expert_groups)
		return config_error(c, KEY_model_groups_per_token, e,
			"%" PRId64 " are more than the %" PRId64 " groups", m->groups_per_token, m->expert_groups);
	if (m->experts_per_token > m->experts / m->expert_groups * m->groups_per_token)
		return config_error(c, KEY_model_groups_per_token, e,
			"%" PRId64 " groups of %" PRId64 " experts have fewer than the %" PRId64 " that a token visits",
			m->groups_per_token, m->experts / m->expert_groups, m->experts_per_token);
	return ST_OK;
}

/* Data of a few different tokens. */
static enum status check_distinct_tokens(const struct config *c, struct error *e)
{
	const struct model *m = &c->model;
	if (c->data.distinct_tokens == 0)
		return ST_OK;
	if (m->experts == 0)
		return config_error_key(c, KEY_data_distinct_tokens, e, "not used without experts");
	if (m->capacity_factor > 0)
		return config_error_key(c, KEY_data_distinct_tokens, e,
			"not used with capacity_factor, which says how uneven loads are");
	if (c->data.distinct_tokens > ROUTED_CHOICES_MAX / m->experts_per_token)
		return config_error(c, KEY_data_distinct_tokens, e,
			"%" PRId64 " tokens of %" PRId64 " experts each are too many to count (at most %d)",
			c->data.distinct_tokens, m->experts_per_token,
			(int)(ROUTED_CHOICES_MAX / m->experts_per_token));
	return ST_OK;
}

static enum status check_experts(const struct config *c, struct error *e)
{
	static const enum key_id ids[] = {KEY_model_experts_per_token, KEY_model_shared_experts,
		KEY_model_moe_ffn_hidden, KEY_model_moe_layer_freq, KEY_model_first_dense_layers,
		KEY_model_capacity_factor, KEY_model_expert_groups, KEY_model_groups_per_token, KEY_model_router_bias,
		KEY_model_shared_expert_gate, KEY_model_moe_latent};
	const struct model *m = &c->model;
	if (m->experts > 0) {
		enum status st = check_expert_choice(c, e);
		if (st)
			return st;
		if (m->experts_per_token > m->experts)
			return config_error(c, KEY_model_experts_per_token, e,
				"%" PRId64 " are more than the %" PRId64 " experts", m->experts_per_token, m->experts);
		if (m->shared_expert_gate && m->shared_experts == 0)
			return config_error_key(c, KEY_model_shared_expert_gate, e, "needs shared_experts");
		if (m->first_dense_layers >= m->layers)
			return config_error(c, KEY_model_first_dense_layers, e,
				"%" PRId64 " of %" PRId64 " layers leave none with experts", m->first_dense_layers,
				m->layers);
		return ST_OK;
	}
	for (size_t i = 0; i < COUNT(ids); i++)
		if (config_is_changed(c, ids[i]))
			return config_error_key(c, ids[i], e, "not used without experts");
	return ST_OK;
}

/* In doubles, from above: the exact count could overflow. */
static double parameters_at_most(const struct model *m)
{
	double h = (double)m->hidden,
	       width = (double)m->head_dim * (double)((m->attention_gate ? 3 : 2) * m->heads + 2 * m->kv_heads);
	double latent = (double)m->q_lora_rank * (h + (double)(m->heads * m->head_dim)) +
	                (double)m->kv_lora_rank * (h + (double)(m->heads * (m->head_dim + m->v_head_dim)));
	double mlp = 3.0 * (double)m->ffn_hidden,
	       experts = 3.0 * (double)m->moe_ffn_hidden * (double)(m->experts + m->shared_experts) +
	                 2.0 * (double)m->moe_latent;
	double ends = 2.0 * (double)(m->vocab + m->vocab_padding) +
	              (double)(m->max_positions + m->encoder_seq_len + m->type_vocab) +
	              2.0 * (double)m->relative_buckets * (double)m->heads / h + (double)m->classes +
	              (double)(m->patch_size * m->patch_size) * (double)(m->channels + m->output_channels);
	double adapts = m->adaptive_norm ? 6.0 * h : 0,
	       conditions = m->adaptive_norm ? (double)(m->condition_classes + m->timestep_features) + 3.0 * h : 0;
	double scan = (double)m->ssm_heads * (3.0 * (double)m->ssm_head_dim + 2.0) +
	              2.0 * (double)m->ssm_groups * (double)m->ssm_state;
	double mamba = m->layer_pattern[0] ? scan * (1.0 + (double)m->ssm_conv / h) + 4.0 * h + (double)m->ssm_conv : 0;
	width *= m->encoder_layers > 0 ? 2.0 : 1.0; /* as much across the stacks */
	return h * ((double)model_blocks(m) * (width + mlp + experts + mamba + adapts + 32.0) + ends + conditions +
			   2.0 * h + 32.0) +
	       (double)m->layers * latent;
}

enum status config_check_model(const struct config *c, struct error *e)
{
	const struct model *m = &c->model;
	char made[QUANTITY_MAX], most[QUANTITY_MAX];
	enum status st;
	if ((st = check_conv(c, e)) || (st = check_pattern(c, e)) || (st = check_scans(c, e)) ||
		(st = check_heads(c, e)) || (st = check_positions(c, e)) || (st = config_check_encoder(c, e)) ||
		(st = check_window(c, e)) || (st = config_check_input(c, e)) || (st = check_logits(c, e)) ||
		(st = check_latent(c, e)) || (st = check_norms(c, e)) || (st = check_trained(c, e)) ||
		(st = check_experts(c, e)) || (st = check_distinct_tokens(c, e)))
		return st;
	if (parameters_at_most(m) > PARAMETERS_MAX)
		return config_error(c, KEY_model_hidden, e, "these dimensions make %s parameters, more than %s",
			quantity_format(made, parameters_at_most(m), UNIT_NONE),
			quantity_format(most, PARAMETERS_MAX, UNIT_NONE));
	return ST_OK;
}
