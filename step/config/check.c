/* Checks of a config that do not depend on the number of ranks. */
#include <inttypes.h>

#include "base/array.h"
#include "base/quantity.h"
#include "step/config/keys.h"
#include "step/inputs.h"
#include "step/schedule.h"
#include "step/stages.h"

#define TOKENS_MAX ((int64_t)INT32_MAX)
#define SCORES_MAX_B 1e15

/* ---- every key by itself ---- */

static enum status check_keys(const struct config *c, struct error *e)
{
	const struct config_key *const keys = config_key((enum key_id)0);
	enum status st = ST_OK;
	for (int i = 0; i < KEY_COUNT && !st; i++) {
		const enum key_id id = (enum key_id)i;
		const struct config_key *k = &keys[i];
		char accepted[KEY_VALUE_MAX];
		if (k->n_later > 0 && !key_value_modelled(k, c))
			st = config_error_key(c, id, e, "not modelled yet (accepted: %s)", key_words(k, accepted));
		else if (c->origin[id].kind != ORIGIN_DEFAULT && !key_in_range(k, c))
			st = config_error(c, id, e, "outside %.0f to %.0f", k->low, k->high);
	}
	return st;
}

/* ---- training ---- */

/* Matrices in fp8 are a copy of what the optimizer keeps in fp32, or frozen under adapters; FSDP's shards are wider
 * themselves. */
static enum status check_narrow(const struct config *c, struct error *e)
{
	const struct train *t = &c->train;
	const enum dtype gather = c->parallel.gather_dtype;
	const bool stored = dtype_is_narrow(t->param_dtype), gathered = gather != DT_COUNT;
	const enum key_id id = stored ? KEY_train_param_dtype : KEY_parallel_gather_dtype;
	const char *name = dtype_name(stored ? t->param_dtype : DT_FP8);
	if (gather == DT_FP32) {
		if (t->param_dtype != DT_FP32 || dtype_is_narrow(t->dtype) || dtype_bytes(t->dtype) >= 4.0)
			return config_error_key(c, KEY_parallel_gather_dtype, e,
				"fp32 needs param_dtype: fp32, and products in 16 bits (dtype)");
		return ST_OK;
	}
	if (gathered && t->dtype != DT_FP8 && t->dtype != DT_MXFP8)
		return config_error_key(c, KEY_parallel_gather_dtype, e, "%s is not used unless dtype is fp8 or mxfp8",
			dtype_name(gather));
	if (stored && gathered)
		return config_error_key(c, KEY_parallel_gather_dtype, e,
			"not used where weights are stored in fp8 (param_dtype)");
	if (!stored && gather != DT_FP8)
		return ST_OK;
	if (stored && !t->master_weights)
		return config_error(c, id, e, "%s needs master_weights: true", name);
	if (optimizer_traits[t->optimizer].orthogonal)
		return config_error_key(c, id, e, "%s is not modelled yet with optimizer %s (nearest: adamw)", name,
			optimizer_name(t->optimizer));
	if (t->offload == OFF_OPTIMIZER || t->offload == OFF_OPTIMIZER_PARAMS)
		return config_error_key(c, id, e, "%s is not modelled yet with an optimizer that is offloaded", name);
	if (model_freezes(&c->model) && !(stored && c->model.lora_rank > 0))
		return config_error_key(c, id, e, "%s is not modelled yet with frozen parameters", name);
	return ST_OK;
}

/* Weights, gradients and the wire are fp32, what the compute format is stored as, or in fp8 as the products: no
 * framework mixes fp16 with bf16 or computes wider than it stores. */
static enum status check_dtypes(const struct config *c, struct error *e)
{
	const struct train *t = &c->train;
	enum dtype stored = dtype_stored(t->dtype);
	const bool narrow = t->dtype == DT_FP8 || t->dtype == DT_MXFP8;
	const struct {
		enum key_id id;
		enum dtype value;
	} formats[] = {{KEY_train_param_dtype, t->param_dtype}, {KEY_train_grad_dtype, t->grad_dtype}};
	for (size_t i = 0; i < COUNT(formats); i++)
		if (formats[i].value != DT_FP32 && formats[i].value != stored &&
			!(narrow && formats[i].value == t->dtype))
			return config_error(c, formats[i].id, e,
				"%s does not go with dtype %s (accepted: fp32%s%s%s%s)", dtype_name(formats[i].value),
				dtype_name(t->dtype), stored == DT_FP32 ? "" : ", ",
				stored == DT_FP32 ? "" : dtype_name(stored), narrow ? ", " : "",
				narrow ? dtype_name(t->dtype) : "");
	if (dtype_is_narrow(t->reduce_dtype) && t->reduce_dtype != t->dtype)
		return config_error(c, KEY_train_reduce_dtype, e, "%s does not go with dtype %s",
			dtype_name(t->reduce_dtype), dtype_name(t->dtype));
	enum status st = check_narrow(c, e);
	if (st)
		return st;
	if (t->fp8_recipe != FP8_AUTO && t->dtype != DT_FP8)
		return config_error_key(c, KEY_train_fp8_recipe, e, "not used unless dtype is fp8");
	if (t->attention_mask != MASK_NONE && t->attention != ATT_FLASH)
		return config_error_key(c, KEY_train_attention_mask, e, "needs attention: flash");
	if (t->narrow_head && !dtype_is_narrow(t->dtype))
		return config_error(c, KEY_train_narrow_head, e, "not used with %s products (train.dtype)",
			dtype_name(t->dtype));
	if (t->narrow_head && !c->model.lm_head)
		return config_error_key(c, KEY_train_narrow_head, e, "not used without lm_head");
	if (t->attention_dtype == DT_FP8 && (!dtype_is_narrow(t->dtype) || t->attention != ATT_FLASH))
		return config_error_key(c, KEY_train_attention_dtype, e,
			"fp8 goes with attention flash and dtype fp8, mxfp8 or nvfp4");
	if (t->grad_compression != COMPRESS_NONE &&
		t->reduce_dtype != (t->grad_compression == COMPRESS_BF16 ? DT_BF16 : DT_FP16))
		return config_error(c, KEY_train_reduce_dtype, e, "%s contradicts grad_compression, which sets it",
			dtype_name(t->reduce_dtype));
	if (t->optimizer_bits != 32 && !optimizer_updates(t->optimizer))
		return config_error_key(c, KEY_train_optimizer_bits, e, "not used without an optimizer");
	if (optimizer_needs_tensors(t->optimizer) && t->optimizer_bits != 32)
		return config_error_key(c, KEY_train_optimizer_bits, e, "not modelled yet with %s (accepted: 32)",
			optimizer_name(t->optimizer));
	if (t->optimizer_impl == IMPL_FOR_LOOP && optimizer_traits[t->optimizer].loop_kernels == 0)
		return config_error_key(c, KEY_train_optimizer_impl, e, "for_loop is not modelled with optimizer %s",
			optimizer_name(t->optimizer));
	if (optimizer_traits[t->optimizer].trust_ratio && c->model.experts > 0)
		return config_error_key(c, KEY_train_optimizer, e,
			"%s is not modelled yet with experts (accepted: adamw, adam, muon, adafactor, lion, sgd, none)",
			optimizer_name(t->optimizer));
	if (t->store_param_remainders && !(t->master_weights && t->param_dtype == DT_BF16))
		return config_error_key(c, KEY_train_store_param_remainders, e,
			"needs master_weights: true and param_dtype bf16 (accepted: false)");
	if (t->master_weights && t->param_dtype == DT_FP32)
		return config_error_key(c, KEY_train_master_weights, e,
			"not used unless param_dtype is narrower than fp32");
	return ST_OK;
}

/* Checks that the model has what recompute_modules names. */
static enum status check_modules(const struct config *c, struct error *e)
{
	const struct train *t = &c->train;
	const struct model *m = &c->model;
	if (t->recompute_saves != AUTO && !train_recomputes(t, REC_OP))
		return config_error_key(c, KEY_train_recompute_saves, e, "not used unless recompute_modules is op");
	if (t->recompute_modules == AUTO) /* nearly always: the rules below are not asked in a search */
		return ST_OK;
	const struct layer_counts layers = model_layer_counts(m);
	const bool plain = model_has_attention(m) && !m->post_norm && m->branch_norm == BRANCH_NORM_NONE &&
	                   !m->parallel_residual && !m->adaptive_norm && !m->layer_pattern[0] &&
	                   m->encoder_layers == 0 && !model_is_conv(m) && !m->attention_gate && !m->shared_expert_gate;
	const bool dense = layers.of[LAYER_DENSE] + layers.of[LAYER_MLP] + layers.of[LAYER_CROSS] > 0,
		   normed = !m->post_norm && m->branch_norm != BRANCH_NORM_REORDERED;
	const struct {
		int module;
		bool there;
		const char *why;
	} rules[] = {{REC_LAYERNORM, normed, "the norms before attention and MLP, which this model lacks"},
		{REC_CORE_ATTN, model_has_attention(m), "a layer with attention"},
		{REC_MLA_UP_PROJ, m->kv_lora_rank > 0, "latent attention (model.kv_lora_rank)"},
		{REC_MLP, dense, "a layer without experts"},
		{REC_MOE | REC_MOE_ACT, m->experts > 0, "experts (model.experts)"},
		{REC_SHARED_EXPERTS, m->shared_experts > 0, "shared experts (model.shared_experts)"},
		{REC_OP, plain, "blocks of a norm, attention, a norm and an MLP or experts, one after the other"},
		{REC_OP, t->recompute_modules == REC_OP, "op to stand alone"},
		{REC_OP, t->attention == ATT_FLASH, "train.attention flash"},
		{REC_OP, t->offload != OFF_ACTIVATIONS || t->recompute_saves != AUTO,
			"activations that stay on the device (train.offload), or recompute_saves"}};
	if (t->recompute != REC_SELECTIVE)
		return config_error_key(c, KEY_train_recompute_modules, e, "not used unless recompute is selective");
	for (size_t i = 0; i < COUNT(rules); i++)
		if (t->recompute_modules & rules[i].module && !rules[i].there)
			return config_error(c, KEY_train_recompute_modules, e, "needs %s", rules[i].why);
	return ST_OK;
}

static enum status check_recompute(const struct config *c, struct error *e)
{
	const struct train *t = &c->train;
	if (t->recompute == REC_NONE && t->recompute_layers > 0)
		return config_error_key(c, KEY_train_recompute_layers, e,
			"not used unless recompute is selective or full");
	if (t->recompute_layers > c->model.layers)
		return config_error(c, KEY_train_recompute_layers, e,
			"%" PRId64 " are more than the %" PRId64 " layers", t->recompute_layers, c->model.layers);
	if (t->recompute != REC_FULL && t->recompute_early_stop != TRI_AUTO)
		return config_error_key(c, KEY_train_recompute_early_stop, e, "not used unless recompute is full");
	return check_modules(c, e);
}

static enum status check_offload_layers(const struct config *c, struct error *e)
{
	const struct train *t = &c->train;
	if (t->offload != OFF_ACTIVATIONS && t->offload_layers > 0)
		return config_error_key(c, KEY_train_offload_layers, e, "not used unless offload is activations");
	if (t->offload_layers > c->model.layers)
		return config_error(c, KEY_train_offload_layers, e, "%" PRId64 " are more than the %" PRId64 " layers",
			t->offload_layers, c->model.layers);
	return ST_OK;
}

static enum status check_batch(const struct config *c, struct error *e)
{
	return c->train.tokens_per_step > 0 && c->train.batch_per_gpu > 0
	               ? config_error(c, KEY_train_batch_per_gpu, e, "contradicts tokens_per_step: give one of them")
	               : ST_OK;
}

static enum status check_sizes(const struct config *c, struct error *e)
{
	const int64_t encoder = c->model.encoder_seq_len,
		      longest = encoder > c->model.seq_len ? encoder : c->model.seq_len,
		      tokens = c->train.micro_batch * longest;
	if (tokens > TOKENS_MAX)
		return config_error(c, KEY_train_micro_batch, e,
			"%" PRId64 " sequences of %" PRId64 " tokens are more than %" PRId64 " tokens in a micro-batch",
			c->train.micro_batch, longest, TOKENS_MAX);
	uint64_t least_B = inputs_B(c, c->train.micro_batch);
	if (c->data.bytes > 0 && c->data.bytes < least_B)
		return config_error(c, KEY_data_bytes, e,
			"%" PRIu64 " are less than what a micro-batch brings, %" PRIu64, c->data.bytes, least_B);
	char scores[QUANTITY_MAX];
	double scores_B = 4.0 * (double)tokens * (double)longest * (double)c->model.heads;
	if (c->train.attention == ATT_NAIVE && scores_B > SCORES_MAX_B)
		return config_error(c, KEY_train_attention, e, "naive attention stores %s of scores a layer; use flash",
			quantity_format(scores, scores_B, UNIT_BYTE));
	return ST_OK;
}

/* ---- the cluster ---- */

static enum status check_failures(const struct config *c, struct error *e)
{
	const struct cluster_config *k = &c->cluster;
	const bool each = k->mtbf_gpu_hours > 0, job = k->mtbf_hours > 0;
	if (each && job)
		return config_error(c, KEY_cluster_mtbf_gpu_hours, e,
			"contradicts mtbf_hours: %g, that of the whole job: give one of them", k->mtbf_hours);
	if ((each || job) && !(k->checkpoint_s > 0))
		return config_error(c, each ? KEY_cluster_mtbf_gpu_hours : KEY_cluster_mtbf_hours, e,
			"needs checkpoint_s, the time that writing a checkpoint takes");
	if (k->checkpoint_s > 0 && !each && !job)
		return config_error(c, KEY_cluster_checkpoint_s, e,
			"needs mtbf_hours or mtbf_gpu_hours, the mean time between failures of the job or of a GPU");
	return ST_OK;
}

static enum status check_gather(const struct config *c, struct error *e)
{
	const struct parallel *p = &c->parallel;
	if (p->gather_overlap != TRI_AUTO && !strategy_cuts_states_alone(p->strategy))
		return config_error_key(c, KEY_parallel_gather_overlap, e, "not used unless strategy is zero1");
	if (p->gather_overlap == TRI_TRUE && !p->overlap)
		return config_error_key(c, KEY_parallel_gather_overlap, e, "needs overlap: true (accepted: false)");
	return ST_OK;
}

/* ---- tensor parallelism ---- */

static enum status check_collectives(const struct config *c, struct error *e)
{
	const struct algorithm_traits *a = &algorithm_traits[c->collectives.algorithm];
	const enum protocol p = c->collectives.protocol;
	char others[ALGORITHM_NAMES];
	if (p == PROTO_AUTO || a->protocol == PROTO_AUTO || a->protocol == p)
		return ST_OK;
	return config_error(c, KEY_collectives_protocol, e,
		"NCCL has algorithm %s with protocol %s alone, not with %s (nearest: %s; with %s: algorithm %s)",
		a->name, protocol_traits[a->protocol].name, protocol_traits[p].name, protocol_traits[a->protocol].name,
		protocol_traits[p].name, algorithm_names_any_protocol(others));
}

static enum status check_tensor(const struct config *c, struct error *e)
{
	const struct model *m = &c->model;
	const struct layer_counts layers = model_layer_counts(m);
	const bool attends = model_has_attention(m);
	int64_t t = c->parallel.tensor;
	const struct {
		const char *what;
		int64_t n;
		bool used;
	} cut[] = {{"heads", m->heads, attends}, {"kv_heads", m->kv_heads, attends && !model_shares_kv_heads(m, t)},
		{"ffn_hidden", m->ffn_hidden,
			layers.of[LAYER_DENSE] + layers.of[LAYER_MLP] + layers.of[LAYER_CROSS] > 0}};
	char near[NEAREST_MAX];
	for (size_t i = 0; i < COUNT(cut); i++)
		if (cut[i].used && cut[i].n % t != 0)
			return config_error(c, KEY_parallel_tensor, e,
				"%" PRId64 " does not divide %s %" PRId64 " (nearest that do: %s)", t, cut[i].what,
				cut[i].n, nearest_divisors(cut[i].n, t, near));
	if (m->lm_head && model_padded_vocab(m, t) % t != 0) {
		struct model padded = *m;
		padded.vocab_padding = 128;
		return config_error(c, KEY_parallel_tensor, e,
			"%" PRId64 " does not divide the vocabulary of %" PRId64
			" (nearest that do: %s; or model.vocab_padding: 128, which makes it %" PRId64 ")",
			t, m->vocab, nearest_divisors(m->vocab, t, near), model_padded_vocab(&padded, t));
	}
	/* "Tensor parallel communication/GEMM overlap can happen only when sequence parallelism is enabled"
	 * (Megatron-LM, megatron/training/arguments.py). */
	if (t > 1 && c->parallel.tensor_overlap && !c->parallel.sequence_parallel &&
		config_is_given(c, KEY_parallel_tensor_overlap))
		return config_error(c, KEY_parallel_tensor_overlap, e,
			"true needs sequence_parallel: true, whose gathers and scatters it hides");
	int64_t tokens = c->train.micro_batch * m->seq_len / c->parallel.context;
	if (c->parallel.sequence_parallel && tokens % t != 0)
		return config_error(c, KEY_parallel_tensor, e,
			"%" PRId64 " does not divide the %" PRId64
			" tokens of a micro-batch%s, as sequence_parallel needs (nearest that do: %s)",
			t, tokens, c->parallel.context > 1 ? " on a rank" : "", nearest_divisors(tokens, t, near));
	return ST_OK;
}

/* ---- context parallelism ---- */

static enum status check_context(const struct config *c, struct error *e)
{
	const struct context_traits *kind = &context_traits[c->parallel.context_kind];
	int64_t n = c->parallel.context, s = c->model.seq_len,
		chunks = c->model.causal && kind->mirrors ? 2 : 1; /* of a rank */
	char near[NEAREST_MAX];
	if (n == 1)
		return ST_OK;
	if (c->train.attention == ATT_NAIVE && (kind->passes_keys || kind->deals_heads))
		return config_error(c, KEY_train_attention, e,
			"naive is not modelled with context_kind %s (accepted: flash, or context_kind all_gather)",
			kind->name);
	if (kind->deals_heads) {
		const int64_t heads = model_stored_kv_heads(&c->model, c->parallel.tensor) / c->parallel.tensor;
		if (heads % n != 0)
			return config_error(c, KEY_parallel_context, e,
				"%" PRId64 " does not divide the %" PRId64
				" heads of keys of a rank, which context_kind %s deals out (nearest that do: %s)",
				n, heads, kind->name, nearest_divisors(heads, n, near));
	}
	if (!strategy_has(c->parallel.strategy, STRATEGY_REDUCES))
		return config_error(c, KEY_parallel_strategy, e,
			"%s sums no gradients, and with context %" PRId64
			" each rank has a part of them (nearest: ddp)",
			strategy_name(c->parallel.strategy), n);
	if (s % chunks != 0)
		return config_error(c, KEY_parallel_context, e,
			"causal attention is shared in pairs of chunks, and seq_len %" PRId64 " is odd (nearest: 1)",
			s);
	if (s / chunks % n != 0)
		return config_error(c, KEY_parallel_context, e,
			"%s%" PRId64 " does not divide seq_len %" PRId64 " (nearest that do: %s)",
			chunks > 1 ? "2 x " : "", n, s, nearest_divisors(s / chunks, n, near));
	return ST_OK;
}

/* ---- pipeline parallelism ---- */

static enum status check_schedule(const struct config *c, struct error *e)
{
	const struct parallel *p = &c->parallel;
	const struct schedule_traits *t = &schedule_traits[p->schedule];
	if (schedule_splits_backward(p->schedule) && parallel_reduces_each(p))
		return config_error(c, KEY_parallel_strategy, e,
			"%s reduces with each micro-batch, and schedule %s defers gradients (nearest: zero1, fsdp)",
			strategy_name(p->strategy), t->name);
	if (t->turns_back && p->virtual_stages != t->chunks_least)
		return config_error(c, KEY_parallel_virtual_stages, e,
			"%" PRId64
			" chunks a stage: schedule %s has two, one on the way down and one back up (accepted: %" PRId64
			")",
			p->virtual_stages, t->name, t->chunks_least);
	if (p->virtual_stages < t->chunks_least)
		return config_error(c, KEY_parallel_schedule, e,
			"%s needs virtual_stages of %" PRId64 " or more (nearest: %s)", t->name, t->chunks_least,
			schedule_traits[SCHED_1F1B].name);
	if (p->virtual_stages > t->chunks_most)
		return config_error(c, KEY_parallel_virtual_stages, e,
			"%" PRId64 " chunks a stage need schedule: %s (or virtual_stages: %" PRId64 ")",
			p->virtual_stages, schedule_traits[SCHED_INTERLEAVED].name, t->chunks_most);
	return ST_OK;
}

static enum status check_layers_per_stage(const struct config *c, int64_t parts, struct error *e)
{
	const struct parallel *p = &c->parallel;
	int64_t sum = 0;
	if (p->n_layers_per_stage != parts)
		return config_error(c, KEY_parallel_layers_per_stage, e,
			"%" PRId64 " entr%s, and pipeline %" PRId64 " x virtual_stages %" PRId64 " need %" PRId64,
			p->n_layers_per_stage, p->n_layers_per_stage == 1 ? "y" : "ies", p->pipeline, p->virtual_stages,
			parts);
	for (int64_t i = 0; i < parts; i++)
		sum += p->layers_per_stage[i];
	if (sum != c->model.layers)
		return config_error(c, KEY_parallel_layers_per_stage, e,
			"they add up to %" PRId64 ", not to the %" PRId64 " layers", sum, c->model.layers);
	return ST_OK;
}

/* Returns whether the stages between can share what an end's stage leaves, which gets so many layers. */
static bool end_fits(const struct config *c, int64_t given, int64_t layers)
{
	const int64_t chunks = c->parallel.virtual_stages;
	int64_t stages, rest = stages_middle_layers(c, &stages) + given - layers;
	return layers % chunks == 0 && rest >= 0 && (stages == 0 ? rest == 0 : rest % (stages * chunks) == 0);
}

/* Writes " (nearest: 2, 4)": the layers of an end's stage on both sides of what is given; "" where none fits. */
#define ENDS_MAX (NEAREST_MAX + 16)
static const char *nearest_ends(const struct config *c, int64_t given, char buf[ENDS_MAX])
{
	int64_t below = given, above = given;
	while (below >= 0 && !end_fits(c, given, below))
		below--;
	while (above <= c->model.layers && !end_fits(c, given, above))
		above++;
	if (above > c->model.layers)
		above = -1;
	char near[NEAREST_MAX];
	buf[0] = '\0';
	if (below >= 0 || above >= 0)
		snprintf(buf, ENDS_MAX, " (nearest: %s)", nearest_two(below, above, near));
	return buf;
}

/* Refuses ends that count as layers where the parts of the pipeline do not divide the sum. */
static enum status refuse_counted_ends(const struct config *c, int64_t all, int64_t parts, struct error *e)
{
	static const char *const words[] = {"none", "embedding, head", "both"}; /* by how many ends count */
	size_t n = 0;
	while (n < COUNT(words) && (c->model.layers + (int64_t)n) % parts != 0)
		n++;
	return config_error(c, KEY_parallel_count_ends, e,
		"layers and the ends that count are %" PRId64 ", which pipeline %" PRId64 " x virtual_stages %" PRId64
		" do not divide%s%s%s",
		all, c->parallel.pipeline, c->parallel.virtual_stages, n < COUNT(words) ? " (nearest: " : "",
		n < COUNT(words) ? words[n] : "", n < COUNT(words) ? ")" : ": no word of it helps");
}

/* Checks the keys that give an end's layers, or count an end as a layer. */
static enum status check_stage_layers(const struct config *c, struct error *e)
{
	char near[ENDS_MAX];
	const struct parallel *p = &c->parallel;
	const bool first = p->first_stage_layers != AUTO, last = p->last_stage_layers != AUTO;
	const enum key_id id = first ? KEY_parallel_first_stage_layers : KEY_parallel_last_stage_layers;
	const struct counted_ends ends = stages_counted_ends(c);
	const int64_t parts = p->pipeline * p->virtual_stages, all = c->model.layers + ends.embedding + ends.head;
	int64_t stages, rest = stages_middle_layers(c, &stages);
	if (p->count_ends > ENDS_NONE && (first || last))
		return config_error_key(c, KEY_parallel_count_ends, e,
			"contradicts first_stage_layers or last_stage_layers: give one of them");
	if (p->count_ends > ENDS_NONE && all % parts != 0)
		return refuse_counted_ends(c, all, parts, e);
	if (!first && !last)
		return ST_OK;
	const bool first_odd = first && p->first_stage_layers % p->virtual_stages != 0;
	if (first_odd || (last && p->last_stage_layers % p->virtual_stages != 0))
		return config_error(c, first_odd ? id : KEY_parallel_last_stage_layers, e,
			"virtual_stages %" PRId64 " does not divide the stage's layers%s", p->virtual_stages,
			nearest_ends(c, first_odd ? p->first_stage_layers : p->last_stage_layers, near));
	const int64_t given = first ? p->first_stage_layers : p->last_stage_layers;
	if (rest < 0)
		return config_error(c, id, e, "the model has %" PRId64 " layers%s", c->model.layers,
			nearest_ends(c, given, near));
	if (stages == 0 ? rest != 0 : rest % (stages * p->virtual_stages) != 0)
		return config_error(c, id, e,
			"it leaves %" PRId64 " layers, which %" PRId64 " stages x virtual_stages %" PRId64
			" do not divide%s",
			rest, stages, p->virtual_stages, nearest_ends(c, given, near));
	return ST_OK;
}

static enum status check_pipeline(const struct config *c, struct error *e)
{
	const struct parallel *p = &c->parallel;
	int64_t parts = p->pipeline * p->virtual_stages, layers = c->model.layers;
	enum status st;
	if (p->pipeline == 1 && p->virtual_stages > 1)
		return config_error_key(c, KEY_parallel_virtual_stages, e, "not used unless pipeline is 2 or more");
	if (p->pipeline == 1 && p->n_layers_per_stage == 0 && stages_by_hand(c))
		return config_error_key(c,
			p->count_ends > ENDS_NONE       ? KEY_parallel_count_ends
			: p->first_stage_layers != AUTO ? KEY_parallel_first_stage_layers
							: KEY_parallel_last_stage_layers,
			e, "not used unless pipeline is 2 or more");
	if (p->n_layers_per_stage > 0 &&
		(p->count_ends > ENDS_NONE || p->first_stage_layers != AUTO || p->last_stage_layers != AUTO))
		return config_error_key(c, KEY_parallel_layers_per_stage, e,
			"contradicts count_ends, first_stage_layers or last_stage_layers: give one of them");
	if (p->pipeline > 1 && (st = check_schedule(c, e)))
		return st;
	if (parts > 1 && p->n_layers_per_stage == 0 && (st = check_stage_layers(c, e)))
		return st;
	if (p->pipeline > layers && p->n_layers_per_stage == 0)
		return config_error(c, KEY_parallel_pipeline, e,
			"%" PRId64 " stages are more than the %" PRId64 " layer%s (nearest: %" PRId64 ")", p->pipeline,
			layers, layers == 1 ? "" : "s", layers);
	const struct counted_ends ends = stages_counted_ends(c);
	if (parts > layers + ends.embedding + ends.head && !stages_by_hand(c))
		return config_error(c, KEY_parallel_virtual_stages, e,
			"%" PRId64 " x pipeline %" PRId64 " are more than the %" PRId64 " layers (nearest: %" PRId64
			")",
			p->virtual_stages, p->pipeline, layers, layers / p->pipeline);
	return p->n_layers_per_stage > 0 ? check_layers_per_stage(c, parts, e) : ST_OK;
}

enum status config_check(const struct config *c, struct error *e)
{
	enum status st;
	if ((st = check_keys(c, e)) || (st = config_check_model(c, e)) || (st = check_dtypes(c, e)) ||
		(st = check_recompute(c, e)) || (st = check_offload_layers(c, e)) || (st = check_context(c, e)) ||
		(st = check_batch(c, e)) || (st = check_sizes(c, e)) || (st = check_collectives(c, e)) ||
		(st = check_gather(c, e)) || (st = check_tensor(c, e)) || (st = check_pipeline(c, e)) ||
		(st = check_failures(c, e)))
		return st;
	return ST_OK;
}
