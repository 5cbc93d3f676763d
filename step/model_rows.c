/* The parameter table itself (step/model_rows.h). */
#include "step/model_rows.h"

#include <assert.h>
#include <string.h>

#include "base/array.h"

void model_fill_rows(const struct model *m, int64_t vocab, int64_t kv_heads, struct row out[ROWS])
{
	const bool bias = m->bias, norm_bias = bias && m->norm == NORM_LAYERNORM, last = m->post_norm;
	const bool first = !last && !m->adaptive_norm && m->branch_norm != BRANCH_NORM_REORDERED;
	const bool branch = m->branch_norm != BRANCH_NORM_NONE, heads = m->qk_norm != QK_NORM_NONE;
	const bool latent = m->kv_lora_rank > 0, latent_q = latent && m->q_lora_rank > 0;
	const int64_t h = m->hidden, q = m->heads * m->head_dim, kv = kv_heads * m->head_dim, qkv = q + 2 * kv;
	const int64_t up_kv = m->heads * (m->head_dim - m->rope_head_dim + m->v_head_dim);
	const int64_t attn = m->heads * model_value_dim(m), full = m->qk_norm == QK_NORM_FULL;
	const int64_t ffn = m->ffn_hidden, moe = m->moe_ffn_hidden, shared = m->shared_experts * moe,
		      narrow = m->moe_latent;
	const int64_t scan = m->ssm_heads * m->ssm_head_dim, conv = scan + 2 * m->ssm_groups * m->ssm_state;
	const bool kda = strchr(m->layer_pattern, 'K') != NULL, delta = kda || strchr(m->layer_pattern, 'G') != NULL;
	const int64_t ssm_in = kda     ? conv + m->ssm_heads
	                       : delta ? scan + conv + 2 * m->ssm_heads
	                               : scan + conv + m->ssm_heads;
	const int64_t r = m->lora_rank;
	const enum lora_targets targets = m->lora_targets;
	const bool all = r > 0 && targets == LORA_ALL;
	const int64_t halves = model_gated(m) ? 2 : 1;
	const enum tp_split whole = TP_REPLICATED, fc1 = model_gated(m) ? TP_HALVES : TP_ROWS;
	const bool encoder = m->encoder_layers > 0, relative = m->position == POS_RELATIVE;
	const bool learned = model_has_positions(m), between = norm_bias && m->final_norm;
	const bool frames = m->input == INPUT_FRAMES;
	const bool patches = m->input == INPUT_PATCHES, transform = m->lm_head && m->head_transform;
	const int64_t patch = m->patch_size * m->patch_size, pixels = patch * m->channels;
	const bool adapts = m->adaptive_norm, final_norm = m->final_norm && !adapts;
	const int64_t predicted = patch * m->output_channels;
	const struct row rows[] = {
		{PARAM_TOKEN_EMBEDDING, BEFORE, !patches, vocab, h, 1, TP_ROWS},
		{PARAM_CLASS_TOKEN, BEFORE, m->class_token, h, 1, 1, whole},
		{PARAM_PATCH_W, BEFORE, patches, h, pixels, 1, whole},
		{PARAM_PATCH_B, BEFORE, patches && bias, h, 1, 1, whole},
		{PARAM_FRAMES1_W, BEFORE, frames, h, 3 * m->channels, 1, whole},
		{PARAM_FRAMES1_B, BEFORE, frames && bias, h, 1, 1, whole},
		{PARAM_FRAMES2_W, BEFORE, frames, h, 3 * h, 1, whole},
		{PARAM_FRAMES2_B, BEFORE, frames && bias, h, 1, 1, whole},
		{PARAM_TIME_FC1_W, BEFORE, adapts, h, m->timestep_features, 1, whole},
		{PARAM_TIME_FC1_B, BEFORE, adapts && bias, h, 1, 1, whole},
		{PARAM_TIME_FC2_W, BEFORE, adapts, h, h, 1, whole},
		{PARAM_TIME_FC2_B, BEFORE, adapts && bias, h, 1, 1, whole},
		{PARAM_CONDITION_TABLE, BEFORE, m->condition_classes > 0, m->condition_classes, h, 1, whole},
		{PARAM_ENCODER_POSITION, BEFORE, encoder && learned, m->encoder_seq_len, h, 1, whole},
		{PARAM_ENCODER_RELATIVE_BIAS, BEFORE, encoder && relative, m->relative_buckets, m->heads, 1, TP_COLS},
		{PARAM_ENCODER_NORM_W, BETWEEN, m->final_norm, h, 1, 1, whole},
		{PARAM_ENCODER_NORM_B, BETWEEN, between, h, 1, 1, whole},
		{PARAM_POSITION_EMBEDDING, encoder ? BETWEEN : BEFORE, learned, m->max_positions, h, 1, whole},
		{PARAM_RELATIVE_BIAS, encoder ? BETWEEN : BEFORE, relative, m->relative_buckets, m->heads, 1, TP_COLS},
		{PARAM_TYPE_EMBEDDING, BEFORE, m->type_vocab > 0, m->type_vocab, h, 1, whole},
		{PARAM_EMBEDDING_NORM_W, BEFORE, m->embedding_norm, h, 1, 1, whole},
		{PARAM_EMBEDDING_NORM_B, BEFORE, m->embedding_norm && norm_bias, h, 1, 1, whole},
		{PARAM_NORM1_W, BLOCK, first, h, 1, 1, whole},
		{PARAM_NORM1_B, BLOCK, first && norm_bias, h, 1, 1, whole},
		{PARAM_QKV_W, ATTENDS, !latent, qkv, h, 1, TP_QKV},
		{PARAM_QKV_B, ATTENDS, !latent && m->qkv_bias, qkv, 1, 1, TP_QKV},
		{PARAM_Q_DOWN_W, ATTENDS, latent_q, m->q_lora_rank, h, 1, whole},
		{PARAM_Q_LATENT_NORM_W, ATTENDS, latent_q, m->q_lora_rank, 1, 1, whole},
		{PARAM_Q_UP_W, ATTENDS, latent, q, latent_q ? m->q_lora_rank : h, 1, TP_ROWS},
		{PARAM_KV_DOWN_W, ATTENDS, latent, m->kv_lora_rank + m->rope_head_dim, h, 1, whole},
		{PARAM_KV_LATENT_NORM_W, ATTENDS, latent, m->kv_lora_rank, 1, 1, whole},
		{PARAM_KV_UP_W, ATTENDS, latent, up_kv, m->kv_lora_rank, 1, TP_ROWS},
		{PARAM_ATTENTION_GATE_W, ATTENDS, m->attention_gate, attn, h, 1, TP_ROWS},
		{PARAM_PROJ_W, ATTENDS, true, h, attn, 1, TP_COLS},
		{PARAM_PROJ_B, ATTENDS, m->proj_bias, h, 1, 1, whole},
		{PARAM_SINKS, ATTENDS, m->attention_sinks, m->heads, 1, 1, TP_ROWS},
		{PARAM_Q_NORM_W, ATTENDS, heads, full ? q : m->head_dim, 1, 1, TP_PARTIAL},
		{PARAM_K_NORM_W, ATTENDS, heads, full ? m->kv_heads * m->head_dim : m->head_dim, 1, 1, TP_PARTIAL},
		{PARAM_SSM_IN_W, SCANS, true, ssm_in, h, 1, TP_ROWS},
		{PARAM_SSM_CONV_W, SCANS, true, conv, m->ssm_conv, 1, TP_ROWS},
		{PARAM_SSM_CONV_B, MAMBAS, true, conv, 1, 1, TP_ROWS},
		{PARAM_SSM_HEADS, MAMBAS, true, m->ssm_heads, 3, 1, TP_ROWS},
		{PARAM_DELTA_HEADS, DELTAS, true, m->ssm_heads, 2, 1, TP_ROWS},
		{PARAM_KDA_HEADS, KDAS, true, m->ssm_heads, 1 + m->ssm_state, 1, TP_ROWS},
		{PARAM_KDA_DECAY_DOWN_W, KDAS, true, m->ssm_head_dim, h, 1, whole},
		{PARAM_KDA_DECAY_UP_W, KDAS, true, m->ssm_heads * m->ssm_state, m->ssm_head_dim, 1, TP_ROWS},
		{PARAM_KDA_GATE_DOWN_W, KDAS, true, m->ssm_head_dim, h, 1, whole},
		{PARAM_KDA_GATE_UP_W, KDAS, true, scan, m->ssm_head_dim, 1, TP_ROWS},
		{PARAM_SSM_NORM_W, SCANS, true, delta ? m->ssm_head_dim : scan, 1, 1, delta ? TP_PARTIAL : TP_ROWS},
		{PARAM_SSM_OUT_W, SCANS, true, h, scan, 1, TP_COLS},
		{PARAM_SHORT_IN_W, SHORT_CONVS, true, 3 * h, h, 1, TP_ROWS},
		{PARAM_SHORT_CONV_W, SHORT_CONVS, true, h, m->ssm_conv, 1, TP_ROWS},
		{PARAM_SHORT_OUT_W, SHORT_CONVS, true, h, h, 1, TP_COLS},
		{PARAM_NORM1_W, BLOCK, last, h, 1, 1, whole},
		{PARAM_NORM1_B, BLOCK, last && norm_bias, h, 1, 1, whole},
		{PARAM_ATTENTION_NORM_W, ATTENDS, branch, h, 1, 1, whole},
		{PARAM_ATTENTION_NORM_B, ATTENDS, branch && norm_bias, h, 1, 1, whole},
		{PARAM_CROSS_NORM_W, CROSSES, true, h, 1, 1, whole},
		{PARAM_CROSS_NORM_B, CROSSES, norm_bias, h, 1, 1, whole},
		{PARAM_CROSS_Q_W, CROSSES, true, q, h, 1, TP_ROWS},
		{PARAM_CROSS_Q_B, CROSSES, m->qkv_bias, q, 1, 1, TP_ROWS},
		{PARAM_CROSS_KV_W, CROSSES, true, 2 * kv, h, 1, TP_HALVES},
		{PARAM_CROSS_KV_B, CROSSES, m->qkv_bias, 2 * kv, 1, 1, TP_HALVES},
		{PARAM_CROSS_PROJ_W, CROSSES, true, h, attn, 1, TP_COLS},
		{PARAM_CROSS_PROJ_B, CROSSES, m->proj_bias, h, 1, 1, whole},
		{PARAM_NORM2_W, TWO_BRANCHES, first, h, 1, 1, whole},
		{PARAM_NORM2_B, TWO_BRANCHES, first && norm_bias, h, 1, 1, whole},
		{PARAM_FC1_W, BLOCK_DENSE, true, halves * ffn, h, 1, fc1},
		{PARAM_FC1_B, BLOCK_DENSE, bias, halves * ffn, 1, 1, fc1},
		{PARAM_FC2_W, BLOCK_DENSE, true, h, ffn, 1, TP_COLS},
		{PARAM_FC2_B, BLOCK_DENSE, bias, h, 1, 1, whole},
		{PARAM_ADAPT_W, BLOCK_DENSE, adapts, 6 * h, h, 1, whole},
		{PARAM_ADAPT_B, BLOCK_DENSE, adapts && bias, 6 * h, 1, 1, whole},
		{PARAM_ROUTER_W, BLOCK_MOE, true, m->experts, h, 1, whole},
		{PARAM_MOE_DOWN_W, BLOCK_MOE, narrow > 0, narrow, h, 1, whole},
		{PARAM_MOE_UP_W, BLOCK_MOE, narrow > 0, h, narrow, 1, whole},
		{PARAM_EXPERT_FC1_W, BLOCK_MOE, true, halves * moe, narrow > 0 ? narrow : h, m->experts, fc1},
		{PARAM_EXPERT_FC2_W, BLOCK_MOE, true, narrow > 0 ? narrow : h, moe, m->experts, TP_COLS},
		{PARAM_SHARED_GATE_W, BLOCK_MOE, m->shared_expert_gate, 1, h, 1, whole},
		{PARAM_SHARED_FC1_W, BLOCK_MOE, shared > 0, halves * shared, h, 1, fc1},
		{PARAM_SHARED_FC2_W, BLOCK_MOE, shared > 0, h, shared, 1, TP_COLS},
		{PARAM_LORA_QKV_A, ATTENDS, r > 0 && !latent, r, h, 1, TP_PARTIAL},
		{PARAM_LORA_QKV_B, ATTENDS, r > 0 && !latent, qkv, r, 1, TP_QKV},
		{PARAM_LORA_PROJ_A, ATTENDS, r > 0 && targets <= LORA_ATTENTION, r, attn, 1, TP_COLS},
		{PARAM_LORA_PROJ_B, ATTENDS, r > 0 && targets <= LORA_ATTENTION, h, r, 1, TP_PARTIAL},
		{PARAM_LORA_FC1_A, BLOCK_DENSE, all, r, h, 1, TP_PARTIAL},
		{PARAM_LORA_FC1_B, BLOCK_DENSE, all, halves * ffn, r, 1, fc1},
		{PARAM_LORA_FC2_A, BLOCK_DENSE, all, r, ffn, 1, TP_COLS},
		{PARAM_LORA_FC2_B, BLOCK_DENSE, all, h, r, 1, TP_PARTIAL},
		{PARAM_LORA_GATE_A, ATTENDS, r > 0 && m->attention_gate, r, h, 1, TP_PARTIAL},
		{PARAM_LORA_GATE_B, ATTENDS, r > 0 && m->attention_gate, attn, r, 1, TP_ROWS},
		{PARAM_LORA_SSM_IN_A, SCANS, all, r, h, 1, TP_PARTIAL},
		{PARAM_LORA_SSM_IN_B, SCANS, all, ssm_in, r, 1, TP_ROWS},
		{PARAM_LORA_SSM_OUT_A, SCANS, all, r, scan, 1, TP_COLS},
		{PARAM_LORA_SSM_OUT_B, SCANS, all, h, r, 1, TP_PARTIAL},
		{PARAM_LORA_SHORT_IN_A, SHORT_CONVS, all, r, h, 1, TP_PARTIAL},
		{PARAM_LORA_SHORT_IN_B, SHORT_CONVS, all, 3 * h, r, 1, TP_ROWS},
		{PARAM_LORA_SHORT_OUT_A, SHORT_CONVS, all, r, h, 1, TP_COLS},
		{PARAM_LORA_SHORT_OUT_B, SHORT_CONVS, all, h, r, 1, TP_PARTIAL},
		{PARAM_LORA_Q_DOWN_A, ATTENDS, r > 0 && latent_q, r, h, 1, whole},
		{PARAM_LORA_Q_DOWN_B, ATTENDS, r > 0 && latent_q, m->q_lora_rank, r, 1, whole},
		{PARAM_LORA_Q_UP_A, ATTENDS, r > 0 && latent, r, latent_q ? m->q_lora_rank : h, 1, TP_PARTIAL},
		{PARAM_LORA_Q_UP_B, ATTENDS, r > 0 && latent, q, r, 1, TP_ROWS},
		{PARAM_LORA_KV_DOWN_A, ATTENDS, r > 0 && latent, r, h, 1, whole},
		{PARAM_LORA_KV_DOWN_B, ATTENDS, r > 0 && latent, m->kv_lora_rank + m->rope_head_dim, r, 1, whole},
		{PARAM_LORA_KV_UP_A, ATTENDS, r > 0 && latent, r, m->kv_lora_rank, 1, TP_PARTIAL},
		{PARAM_LORA_KV_UP_B, ATTENDS, r > 0 && latent, up_kv, r, 1, TP_ROWS},
		{PARAM_LORA_EXPERT_FC1_A, BLOCK_MOE, all, r, narrow > 0 ? narrow : h, m->experts, TP_ROWS},
		{PARAM_LORA_EXPERT_FC1_B, BLOCK_MOE, all, halves * moe, r, m->experts, TP_ROWS},
		{PARAM_LORA_EXPERT_FC2_A, BLOCK_MOE, all, r, moe, m->experts, TP_ROWS},
		{PARAM_LORA_EXPERT_FC2_B, BLOCK_MOE, all, narrow > 0 ? narrow : h, r, m->experts, TP_ROWS},
		{PARAM_LORA_SHARED_FC1_A, BLOCK_MOE, all && shared > 0, r, h, 1, TP_PARTIAL},
		{PARAM_LORA_SHARED_FC1_B, BLOCK_MOE, all && shared > 0, halves * shared, r, 1, fc1},
		{PARAM_LORA_SHARED_FC2_A, BLOCK_MOE, all && shared > 0, r, shared, 1, TP_COLS},
		{PARAM_LORA_SHARED_FC2_B, BLOCK_MOE, all && shared > 0, h, r, 1, TP_PARTIAL},
		{PARAM_NORM2_W, TWO_BRANCHES, last, h, 1, 1, whole},
		{PARAM_NORM2_B, TWO_BRANCHES, last && norm_bias, h, 1, 1, whole},
		{PARAM_MLP_NORM_W, BLOCK, branch, h, 1, 1, whole},
		{PARAM_MLP_NORM_B, BLOCK, branch && norm_bias, h, 1, 1, whole},
		{PARAM_MTP_HIDDEN_NORM_W, FURTHER, true, h, 1, 1, whole},
		{PARAM_MTP_HIDDEN_NORM_B, FURTHER, norm_bias, h, 1, 1, whole},
		{PARAM_MTP_TOKEN_NORM_W, FURTHER, true, h, 1, 1, whole},
		{PARAM_MTP_TOKEN_NORM_B, FURTHER, norm_bias, h, 1, 1, whole},
		{PARAM_MTP_HIDDEN_W, FURTHER, true, h, h, 1, whole},
		{PARAM_MTP_TOKEN_W, FURTHER, true, h, h, 1, whole},
		{PARAM_MTP_FINAL_NORM_W, FURTHER, true, h, 1, 1, whole},
		{PARAM_MTP_FINAL_NORM_B, FURTHER, norm_bias, h, 1, 1, whole},
		{PARAM_FINAL_NORM_W, AFTER, final_norm, h, 1, 1, whole},
		{PARAM_FINAL_NORM_B, AFTER, final_norm && norm_bias, h, 1, 1, whole},
		{PARAM_FINAL_ADAPT_W, AFTER, adapts, 2 * h, h, 1, whole},
		{PARAM_FINAL_ADAPT_B, AFTER, adapts && bias, 2 * h, 1, 1, whole},
		{PARAM_POOLER_W, AFTER, m->pooler, h, h, 1, whole},
		{PARAM_POOLER_B, AFTER, m->pooler && bias, h, 1, 1, whole},
		{PARAM_HEAD_DENSE_W, AFTER, transform, h, h, 1, whole},
		{PARAM_HEAD_DENSE_B, AFTER, transform && bias, h, 1, 1, whole},
		{PARAM_HEAD_NORM_W, AFTER, transform, h, 1, 1, whole},
		{PARAM_HEAD_NORM_B, AFTER, transform && norm_bias, h, 1, 1, whole},
		{PARAM_HEAD_W, AFTER, m->lm_head && !m->tied_embeddings, vocab, h, 1, TP_ROWS},
		{PARAM_HEAD_B, AFTER, m->lm_head && m->head_bias, vocab, 1, 1, TP_ROWS},
		{PARAM_CLASS_W, AFTER, m->classes > 0, m->classes, h, 1, whole},
		{PARAM_CLASS_B, AFTER, m->classes > 0 && bias, m->classes, 1, 1, whole},
		{PARAM_OUTPUT_W, AFTER, predicted > 0, predicted, h, 1, whole},
		{PARAM_OUTPUT_B, AFTER, predicted > 0 && bias, predicted, 1, 1, whole},
	};
	static_assert(COUNT(rows) == ROWS, "one row for each kind, two for the four of a block's norms");
	memcpy(out, rows, sizeof rows);
}
