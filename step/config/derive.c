/* Values that follow from other keys where neither the user nor a preset gave them. */
#include <math.h>
#include <string.h>

#include "base/array.h"
#include "step/config/keys.h"
#include "step/model_conv.h"

static bool chosen(const struct config *c, enum key_id id) { return c->origin[id].kind != ORIGIN_DEFAULT; }

static int64_t default_ffn(const struct model *m)
{
	if (m->mlp != MLP_SWIGLU && m->mlp != MLP_GEGLU)
		return 4 * m->hidden;
	return (8 * m->hidden + 3 * 256 - 1) / (3 * 256) *
	       256; /* 8/3 x hidden up to a multiple of 256: Llama's rule, keeps the size of an ungated MLP */
}

/* An image is a sequence of one row to the class head. */
static void derive_conv(struct config *c)
{
	struct model *m = &c->model;
	if (!chosen(c, KEY_model_input))
		m->input = INPUT_PIXELS;
	if (!chosen(c, KEY_model_layers))
		m->layers = model_conv_blocks(m) > 0 ? model_conv_blocks(m) : 1;
	if (!chosen(c, KEY_model_hidden))
		m->hidden = model_conv_channels(m) > 0 ? model_conv_channels(m) : 1;
	if (!chosen(c, KEY_model_seq_len))
		m->seq_len = 1;
	if (!chosen(c, KEY_model_lm_head))
		m->lm_head = false;
	if (!chosen(c, KEY_model_final_norm))
		m->final_norm = false;
	if (!chosen(c, KEY_model_position))
		m->position = POS_NONE;
	if (!chosen(c, KEY_model_classes))
		m->classes = 1000;
}

/* Mamba's channels are twice those of the hidden state. */
int64_t config_default_ssm_heads(const struct model *m)
{
	return 2 * m->hidden > m->ssm_head_dim ? 2 * m->hidden / m->ssm_head_dim : 1;
}

static void derive_model(struct config *c)
{
	struct model *m = &c->model;
	if (model_is_conv(m))
		derive_conv(c);
	const int64_t pattern = (int64_t)strlen(m->layer_pattern);
	if (pattern > 0 && !chosen(c, KEY_model_layers))
		m->layers = pattern;
	if (!chosen(c, KEY_model_ssm_heads))
		m->ssm_heads = config_default_ssm_heads(m);
	if (!chosen(c, KEY_model_ssm_chunk) && strpbrk(m->layer_pattern, "GK"))
		m->ssm_chunk = DELTA_CHUNK;
	if (!chosen(c, KEY_model_kv_heads))
		m->kv_heads = m->heads;
	if (!chosen(c, KEY_model_head_dim))
		m->head_dim = m->hidden % m->heads == 0 ? m->hidden / m->heads : 0; /* 0: config_check complains */
	if (!chosen(c, KEY_model_ffn_hidden))
		m->ffn_hidden = default_ffn(m);
	if (!chosen(c, KEY_model_moe_ffn_hidden))
		m->moe_ffn_hidden = m->ffn_hidden;
	if (!chosen(c, KEY_model_qkv_bias))
		m->qkv_bias = m->bias;
	if (!chosen(c, KEY_model_proj_bias))
		m->proj_bias = m->bias;
	if (m->input == INPUT_PATCHES && !config_is_given(c, KEY_model_seq_len))
		m->seq_len = model_patches(m) + m->class_token;
	if (m->encoder_layers == 0 && !config_is_given(c, KEY_model_encoder_seq_len))
		m->encoder_seq_len = 0;
	else if (!chosen(c, KEY_model_encoder_seq_len))
		m->encoder_seq_len = m->seq_len;
	if (model_has_positions(m)) {
		if (!chosen(c, KEY_model_max_positions) || m->max_positions == 0)
			m->max_positions = m->seq_len;
	} else if (!config_is_given(c, KEY_model_max_positions)) {
		m->max_positions = 0;
	}
}

/* The weights under adapters are loaded in the format of compute (PEFT, torchtune). Cut weights stay as the stack says:
 * accelerate makes the shards of mixed precision fp32. */
static void derive_adapters(struct config *c)
{
	struct train *t = &c->train;
	if (c->model.lora_rank == 0 || strategy_has(c->parallel.strategy, STRATEGY_CUTS_WEIGHTS) ||
		chosen(c, KEY_train_param_dtype))
		return;
	t->param_dtype = DTYPE_AUTO;
	if (!chosen(c, KEY_train_grad_dtype))
		t->grad_dtype = DTYPE_AUTO;
	if (!chosen(c, KEY_train_reduce_dtype))
		t->reduce_dtype = DTYPE_AUTO;
}

bool config_may_be_narrow(const struct config *c)
{
	const struct train *t = &c->train;
	return (t->dtype == DT_FP8 || t->dtype == DT_MXFP8) && c->parallel.gather_dtype == DT_COUNT &&
	       !model_freezes(&c->model) && !optimizer_traits[t->optimizer].orthogonal && t->offload != OFF_OPTIMIZER &&
	       t->offload != OFF_OPTIMIZER_PARAMS;
}

/* Returns whether the stack stores matrices as its products read them. */
static bool stores_narrow(const struct config *c)
{
	const struct train *t = &c->train;
	return c->stack.stores_narrow && t->master_weights && config_may_be_narrow(c);
}

static void derive_train(struct config *c)
{
	struct train *t = &c->train;
	derive_adapters(c);
	if (c->model.position == POS_RELATIVE && !config_is_given(c, KEY_train_attention))
		t->attention = ATT_NAIVE; /* flash kernels have no bias for each query and key */
	if (!chosen(c, KEY_train_optimizer_impl))
		t->optimizer_impl = t->fused ? IMPL_FUSED : IMPL_FOREACH;
	if (t->param_dtype == DTYPE_AUTO)
		t->param_dtype = stores_narrow(c) ? t->dtype : dtype_stored(t->dtype);
	if (c->stack.half_gradients && t->dtype == DT_FP16 && !config_is_given(c, KEY_train_grad_dtype)) {
		t->grad_dtype = DTYPE_AUTO;
		if (!config_is_given(c, KEY_train_reduce_dtype))
			t->reduce_dtype = DTYPE_AUTO;
	}
	if (t->grad_dtype == DTYPE_AUTO)
		t->grad_dtype = dtype_stored(t->param_dtype);
	if (t->reduce_dtype == DTYPE_AUTO)
		t->reduce_dtype = c->stack.reduces_computed ? dtype_stored(t->dtype) : t->grad_dtype;
	if (t->grad_compression != COMPRESS_NONE && !config_is_given(c, KEY_train_reduce_dtype))
		t->reduce_dtype = t->grad_compression == COMPRESS_BF16 ? DT_BF16 : DT_FP16;
	if (!config_is_given(c, KEY_train_master_weights) && t->param_dtype == DT_FP32)
		t->master_weights = false; /* a stack's default for narrow weights */
	if (!chosen(c, KEY_train_optimizer_bits) && c->stack.moments_as_weights && dtype_bytes(t->param_dtype) == 2.0 &&
		!t->master_weights && t->offload != OFF_OPTIMIZER && t->offload != OFF_OPTIMIZER_PARAMS &&
		optimizer_updates(t->optimizer) && !optimizer_needs_tensors(t->optimizer))
		t->optimizer_bits = 16;
}

/* A schedule may be made of a fixed number of chunks a stage, as zbv is. */
static void derive_parallel(struct config *c)
{
	struct parallel *p = &c->parallel;
	const struct schedule_traits *t = &schedule_traits[p->schedule];
	if (t->chunks_least == t->chunks_most && p->pipeline > 1 && !chosen(c, KEY_parallel_virtual_stages))
		p->virtual_stages = t->chunks_least;
}

/* Of the keys that size a step the one that was given last counts: --set goes before the file. Two that were given
 * alike stay, and config_check refuses them. */
static void derive_batch(struct config *c)
{
	static const enum key_id ids[] = {KEY_train_global_batch, KEY_train_tokens_per_step, KEY_train_batch_per_gpu};
	enum origin last = ORIGIN_DEFAULT;
	for (size_t i = 0; i < COUNT(ids); i++)
		if (c->origin[ids[i]].kind > last && key_number(config_key(ids[i]), c) > 0)
			last = c->origin[ids[i]].kind;
	for (size_t i = 0; i < COUNT(ids); i++) {
		const bool absent = !chosen(c, ids[i]) && key_number(config_key(ids[i]), c) == 0;
		if (c->origin[ids[i]].kind < last && !absent) { /* searches resolve plans by the ten thousand */
			key_set_default(config_key(ids[i]), c);
			c->origin[ids[i]] = (struct key_origin){0};
		}
	}
}

void config_derive(struct config *c)
{
	derive_batch(c);
	derive_model(c);
	derive_train(c);
	derive_parallel(c);
}

double config_mtbf_hours(const struct config *c)
{
	const struct cluster_config *k = &c->cluster;
	return k->mtbf_gpu_hours > 0 ? k->mtbf_gpu_hours / (double)c->ranks : k->mtbf_hours;
}

const char *config_predicted_only(const struct config *c)
{
	if (c->parallel.context > 1 && c->model.sliding_window > 0)
		return "model.sliding_window with parallel.context is predicted, not executed";
	if (c->parallel.context > 1 && !context_traits[c->parallel.context_kind].executed)
		return "this parallel.context_kind is predicted, not executed (nearest: ring)";
	if (c->model.expert_groups > 0 || c->model.router_bias)
		return c->model.router_bias ? "model.router_bias is predicted, not executed"
		                            : "model.expert_groups is predicted, not executed";
	if (c->data.distinct_tokens > 0)
		return "data.distinct_tokens is predicted, not executed";
	if (c->parallel.expert_dispatch != DISPATCH_ALL_TO_ALL)
		return "parallel.expert_dispatch other than all_to_all is predicted, not executed";
	if (c->parallel.dispatch_dtype == DT_FP8)
		return "parallel.dispatch_dtype fp8 is predicted, not executed";
	if (!c->parallel.shard_experts)
		return "experts that FSDP leaves whole (parallel.shard_experts) are predicted, not executed";
	if (c->train.store_param_remainders)
		return "train.store_param_remainders is predicted, not executed";
	if (config_is_given(c, KEY_parallel_gradient_as_bucket_view) && parallel_holds_buckets(c))
		return "parallel.gradient_as_bucket_view false is predicted, not executed";
	if (c->train.attention_dtype == DT_FP8)
		return "train.attention_dtype fp8 is predicted, not executed";
	if (c->train.fused_experts)
		return "train.fused_experts is predicted, not executed";
	if (c->train.fused_gradient_sums == TRI_FALSE)
		return "train.fused_gradient_sums false is predicted, not executed";
	if (c->train.loss_chunk > 0)
		return "train.loss_chunk is predicted, not executed";
	if (c->train.act_input_dtype == DT_FP8)
		return "train.act_input_dtype fp8 is predicted, not executed";
	if (optimizer_traits[c->train.optimizer].orthogonal && c->parallel.tensor > 1)
		return "train.optimizer muon with tensor is predicted, not executed";
	if (optimizer_traits[c->train.optimizer].orthogonal && c->ranks > 1 &&
		strategy_has(c->parallel.strategy, STRATEGY_CUTS_STATES))
		return "train.optimizer muon with states cut is predicted, not executed";
	if (c->train.lora_dtype == DT_FP32)
		return "train.lora_dtype is predicted, not executed";
	if (dtype_is_quantized(c->train.lora_base))
		return "train.lora_base is predicted, not executed";
	if (c->train.optimizer_bits == 16)
		return "moments of 16 bits (train.optimizer_bits) are predicted, not executed";
	if (model_has_attention(&c->model) && model_shares_kv_heads(&c->model, c->parallel.tensor))
		return "parallel.tensor above model.kv_heads is predicted, not executed";
	if (train_recomputes(&c->train, REC_OP))
		return "train.recompute_modules op is predicted, not executed";
	if (c->model.dropout > 0 || c->model.attention_dropout > 0)
		return c->model.dropout > 0 ? "model.dropout is predicted, not executed"
		                            : "model.attention_dropout is predicted, not executed";
	if (c->parallel.gather_dtype == DT_FP32)
		return "parallel.gather_dtype fp32 is predicted, not executed";
	if (c->parallel.unit_params > 0)
		return "parallel.unit_params is predicted, not executed";
	if (c->parallel.adapter_units && c->model.lora_rank > 0)
		return "parallel.adapter_units is predicted, not executed";
	return NULL;
}

int64_t config_global_batch(const struct config *c, int64_t ranks)
{
	const struct train *t = &c->train;
	return t->tokens_per_step > 0 ? llround(t->tokens_per_step / (double)c->model.seq_len)
	       : t->batch_per_gpu > 0 ? llround(t->batch_per_gpu * (double)ranks)
	                              : t->global_batch;
}

enum key_id config_batch_key(const struct config *c)
{
	return c->train.tokens_per_step > 0 ? KEY_train_tokens_per_step
	       : c->train.batch_per_gpu > 0 ? KEY_train_batch_per_gpu
	                                    : KEY_train_global_batch;
}
