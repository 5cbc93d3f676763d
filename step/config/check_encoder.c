/* Checks of an encoder before a decoder, and of biases by distance. */
#include <inttypes.h>

#include "base/array.h"
#include "base/quantity.h"
#include "step/config/keys.h"

static enum status check_relative(const struct config *c, struct error *e)
{
	const struct model *m = &c->model;
	if (m->position != POS_RELATIVE && config_is_changed(c, KEY_model_relative_buckets))
		return config_error_key(c, KEY_model_relative_buckets, e, "not used unless position is relative");
	if (m->position != POS_RELATIVE)
		return ST_OK;
	if (c->train.attention != ATT_NAIVE)
		return config_error(c, KEY_train_attention, e,
			"flash has no biases of scores, which position relative needs (accepted: naive)");
	if (m->kv_lora_rank > 0 || m->layer_pattern[0] || model_is_conv(m))
		return config_error_key(c, KEY_model_position, e, "relative is not modelled yet with %s",
			m->kv_lora_rank > 0   ? "kv_lora_rank"
			: m->layer_pattern[0] ? "layer_pattern"
					      : "conv_stages");
	if (c->parallel.context > 1 || c->parallel.pipeline > 1)
		return config_error_key(c, c->parallel.context > 1 ? KEY_parallel_context : KEY_parallel_pipeline, e,
			"not modelled yet with position relative, whose table all layers share (accepted: 1)");
	return ST_OK;
}

/* What is not modelled beside cross-attention. */
static enum status check_encoder_alone(const struct config *c, struct error *e)
{
	static const enum key_id ids[] = {KEY_model_layer_pattern, KEY_model_conv_stages, KEY_model_experts,
		KEY_model_kv_lora_rank, KEY_model_post_norm, KEY_model_branch_norm, KEY_model_parallel_residual,
		KEY_model_embedding_norm, KEY_model_qk_norm, KEY_model_sliding_window, KEY_model_no_rope_every,
		KEY_model_attention_sinks, KEY_model_attention_softcap, KEY_model_type_vocab, KEY_model_pooler,
		KEY_model_classes, KEY_model_predictions, KEY_model_mtp_layers, KEY_model_adaptive_norm,
		KEY_train_lora_rank, KEY_parallel_pipeline, KEY_parallel_context};
	const enum status st = config_check_defaults(c, ids, COUNT(ids), "encoder_layers", e);
	if (st)
		return st;
	if (c->train.offload == OFF_ACTIVATIONS)
		return config_error_key(c, KEY_train_offload, e,
			"activations is not modelled yet with encoder_layers (accepted: none, optimizer, "
			"optimizer+params)");
	return ST_OK;
}

static enum status check_stacks(const struct config *c, struct error *e)
{
	const struct model *m = &c->model;
	const int64_t rows = c->train.micro_batch * m->encoder_seq_len;
	char near[NEAREST_MAX];
	if (m->encoder_layers == 0 && m->input == INPUT_FRAMES)
		return config_error_key(c, KEY_model_input, e, "frames need encoder_layers");
	if (m->encoder_layers == 0)
		return m->encoder_seq_len == 0
		               ? ST_OK
		               : config_error_key(c, KEY_model_encoder_seq_len, e, "not used without encoder_layers");
	if (m->encoder_layers >= m->layers)
		return config_error(c, KEY_model_encoder_layers, e,
			"%" PRId64 " of %" PRId64 " layers leave none to the decoder (nearest: %" PRId64 ")",
			m->encoder_layers, m->layers, m->layers - 1);
	if (m->input != INPUT_TOKENS && m->input != INPUT_FRAMES)
		return config_error_key(c, KEY_model_input, e,
			"not modelled yet with encoder_layers (accepted: tokens, frames)");
	if (m->input == INPUT_FRAMES && model_gated(m))
		return config_error_key(c, KEY_model_mlp, e, "frames need an activation without a gate");
	if (m->input == INPUT_FRAMES && c->parallel.sequence_parallel && c->parallel.tensor > 1)
		return config_error_key(c, KEY_parallel_sequence_parallel, e,
			"not modelled yet with frames (accepted: false)");
	if (m->encoder_seq_len == 0)
		return config_error_key(c, KEY_model_encoder_seq_len, e, "an encoder needs rows");
	if (c->parallel.sequence_parallel && rows % c->parallel.tensor != 0)
		return config_error(c, KEY_parallel_tensor, e,
			"%" PRId64 " does not divide the %" PRId64
			" rows of the encoder, as sequence_parallel needs (nearest that do: %s)",
			c->parallel.tensor, rows, nearest_divisors(rows, c->parallel.tensor, near));
	return check_encoder_alone(c, e);
}

enum status config_check_encoder(const struct config *c, struct error *e)
{
	const enum status st = check_stacks(c, e);
	return st ? st : check_relative(c, e);
}
