/* Checks of what a model reads, and of the heads that it ends in. */
#include <inttypes.h>

#include "base/array.h"
#include "step/config/keys.h"
#include "step/schedule.h"
#include "step/strategy.h"

static enum status check_pictures(const struct config *c, struct error *e)
{
	static const enum key_id ids[] = {KEY_model_patch_size, KEY_model_class_token, KEY_model_output_channels,
		KEY_model_adaptive_norm, KEY_model_image_size, KEY_model_channels};
	const size_t unused = c->model.input == INPUT_TOKENS   ? COUNT(ids)
	                      : c->model.input == INPUT_FRAMES ? COUNT(ids) - 1
	                      : c->model.input == INPUT_PIXELS ? 4
	                                                       : 0;
	const struct model *m = &c->model;
	char near[NEAREST_MAX];
	for (size_t i = 0; i < unused; i++)
		if (config_is_changed(c, ids[i]))
			return config_error_key(c, ids[i], e, "not used unless input is patches%s",
				i < 4 ? "" : " or pixels");
	if (m->input != INPUT_PIXELS && config_is_changed(c, KEY_train_memory_format))
		return config_error_key(c, KEY_train_memory_format, e, "not used unless input is pixels");
	if (m->input != INPUT_PATCHES)
		return ST_OK;
	if (m->image_size % m->patch_size != 0)
		return config_error(c, KEY_model_patch_size, e,
			"%" PRId64 " does not divide image_size %" PRId64 " (nearest that do: %s)", m->patch_size,
			m->image_size, nearest_divisors(m->image_size, m->patch_size, near));
	if (m->seq_len != model_patches(m) + m->class_token)
		return config_error(c, KEY_model_seq_len, e,
			"%" PRId64 ", and a picture has %" PRId64 " rows: it follows from image_size and patch_size",
			m->seq_len, model_patches(m) + m->class_token);
	if (m->lm_head)
		return config_error_key(c, KEY_model_lm_head, e,
			"patches have no vocabulary (accepted: false, with classes or output_channels)");
	return ST_OK;
}

/* Heads that see a part of the rows. */
static enum status check_heads_of_loss(const struct config *c, struct error *e)
{
	static const enum key_id ids[] = {KEY_model_head_transform, KEY_model_head_bias, KEY_model_predictions};
	const struct model *m = &c->model;
	const bool part = model_targets(m) < m->seq_len;
	const enum key_id id = m->input == INPUT_PATCHES ? KEY_model_input
	                       : m->classes > 0          ? KEY_model_classes
	                                                 : KEY_model_predictions;
	for (size_t i = 0; i < COUNT(ids) && !m->lm_head; i++)
		if (key_number(config_key(ids[i]), c) > 0)
			return config_error_key(c, ids[i], e, "not used without lm_head");
	if (m->predictions > m->seq_len)
		return config_error(c, KEY_model_predictions, e,
			"%" PRId64 " are more than the %" PRId64 " tokens of a sequence", m->predictions, m->seq_len);
	if (!part && m->classes == 0 && (m->input == INPUT_TOKENS || m->input == INPUT_FRAMES))
		return ST_OK;
	if (c->parallel.context > 1)
		return config_error_key(c, id, e, "not modelled yet with context %" PRId64 " (accepted: context 1)",
			c->parallel.context);
	if (c->parallel.sequence_parallel && c->parallel.tensor > 1)
		return config_error_key(c, id, e, "not modelled yet with sequence_parallel (accepted: false)");
	return ST_OK;
}

/* ---- blocks that predict further tokens ---- */

static enum status check_further(const struct config *c, struct error *e)
{
	static const enum key_id ids[] = {KEY_model_predictions, KEY_model_head_transform, KEY_model_head_bias,
		KEY_model_classes, KEY_model_pooler, KEY_model_encoder_layers};
	const struct model *m = &c->model;
	char names[STRATEGY_NAMES];
	if (m->mtp_layers == 0)
		return ST_OK;
	if (!m->lm_head || m->tied_embeddings)
		return config_error_key(c, KEY_model_mtp_layers, e,
			m->lm_head ? "needs tied_embeddings: false" : "needs lm_head");
	if (*m->layer_pattern) /* mostly a preset's: the blocks are what a user can leave out */
		return config_error_key(c, KEY_model_mtp_layers, e, "not modelled yet with layer_pattern (nearest: 0)");
	const enum status st = config_check_defaults(c, ids, COUNT(ids), "mtp_layers", e);
	if (st)
		return st;
	if (strategy_has(c->parallel.strategy, STRATEGY_UNITS))
		return config_error_key(c, KEY_model_mtp_layers, e, "not modelled yet with strategy %s (accepted: %s)",
			strategy_name(c->parallel.strategy), strategy_names(0, STRATEGY_UNITS, names));
	if (c->parallel.pipeline > 1 && schedule_splits_backward(c->parallel.schedule))
		return config_error_key(c, KEY_model_mtp_layers, e, "not modelled yet with schedule %s (accepted: 0)",
			schedule_traits[c->parallel.schedule].name);
	return ST_OK;
}

/* ---- diffusion transformers ---- */

/* What a model with adaptive norms does not have, or is not cut by. */
static enum status check_adaptive_alone(const struct config *c, struct error *e)
{
	static const enum key_id ids[] = {KEY_model_layer_pattern, KEY_model_post_norm, KEY_model_branch_norm,
		KEY_model_parallel_residual, KEY_model_embedding_norm, KEY_model_experts, KEY_model_kv_lora_rank,
		KEY_model_class_token, KEY_train_lora_rank, KEY_parallel_pipeline, KEY_parallel_context};
	return config_check_defaults(c, ids, COUNT(ids), "adaptive_norm", e);
}

static enum status check_diffusion(const struct config *c, struct error *e)
{
	static const enum key_id ids[] = {KEY_model_timestep_features, KEY_model_condition_classes};
	const struct model *m = &c->model;
	if (m->output_channels > 0 && m->classes > 0)
		return config_error_key(c, KEY_model_classes, e, "not modelled yet with output_channels (accepted: 0)");
	if (m->adaptive_norm && m->output_channels == 0)
		return config_error_key(c, KEY_model_adaptive_norm, e,
			"needs output_channels, what is predicted of each pixel");
	if (m->adaptive_norm && !m->final_norm)
		return config_error_key(c, KEY_model_final_norm, e, "adaptive_norm has one (accepted: true)");
	if (m->adaptive_norm)
		return check_adaptive_alone(c, e);
	for (size_t i = 0; i < COUNT(ids); i++)
		if (config_is_changed(c, ids[i]))
			return config_error_key(c, ids[i], e, "not used without adaptive_norm");
	return ST_OK;
}

enum status config_check_input(const struct config *c, struct error *e)
{
	enum status st;
	if ((st = check_pictures(c, e)) || (st = check_heads_of_loss(c, e)) || (st = check_further(c, e)))
		return st;
	return check_diffusion(c, e);
}
