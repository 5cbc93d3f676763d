/* The model: its dimensions and the list of its parameters. All functions are pure. */
#ifndef STEPSIM_STEP_MODEL_H
#define STEPSIM_STEP_MODEL_H

#include <stdbool.h>
#include <stdint.h>

/* SINCOS: a table that is added as a learned one is, and that is not trained. RELATIVE: a learned table of a bias for
 * each bucket of distances and head, which all layers of a stack add to their scores (Raffel et al. 2020, T5,
 * arXiv:1910.10683, section 2.1). */
enum position { POS_LEARNED, POS_ROPE, POS_ALIBI, POS_NONE, POS_SINCOS, POS_RELATIVE, POS_COUNT };
enum mlp { MLP_GELU, MLP_RELU, MLP_SQUARED_RELU, MLP_SWIGLU, MLP_GEGLU, MLP_COUNT };
enum norm { NORM_LAYERNORM, NORM_RMSNORM, NORM_COUNT };
/* How far a query sees under a window: the keys before it, or those before it in its own chunk of positions (Llama 4).
 */
enum window_kind { WINDOW_SLIDING, WINDOW_CHUNKED, WINDOW_KIND_COUNT };
/* Activations that are no MLP's: of a pooler (BERT), of what conditions (DiT). Kernels know them beside those of enum
 * mlp. */
enum activation_only { ACTIVATION_TANH = MLP_COUNT, ACTIVATION_SILU, ACTIVATION_COUNT };
/* Returns whether an activation is a gelu, gated or not; of enum mlp or activation_only. */
bool activation_is_gelu(int activation);
/* What the model reads: ids of a vocabulary; frames of sound, of `channels` each, two for each row of an encoder
 * (Radford et al. 2022, Whisper, arXiv:2212.04356, section 2.2); or patches of pictures (Dosovitskiy et al. 2020,
 * arXiv:2010.11929). */
enum input { INPUT_TOKENS, INPUT_PATCHES, INPUT_PIXELS /* whole images */, INPUT_FRAMES, INPUT_COUNT };
/* Norms of queries and keys: none, of each head (Qwen3, Gemma 3), of all heads at once (OLMo 2). */
enum qk_norm { QK_NORM_NONE, QK_NORM_HEAD, QK_NORM_FULL, QK_NORM_COUNT };
/* Norms of what attention and MLP add to the residual: none, beside those of their inputs (Gemma 2), in place of these
 * (OLMo 2). */
enum branch_norm { BRANCH_NORM_NONE, BRANCH_NORM_SANDWICH, BRANCH_NORM_REORDERED, BRANCH_NORM_COUNT };

/* Products that get adapters of low rank (LoRA): MLPs, scans, short convolutions and attention; attention; queries,
 * keys and values alone, with their gate. */
enum lora_targets { LORA_ALL, LORA_ATTENTION, LORA_QKV, LORA_TARGETS_COUNT };
/* Parameters that are not trained, besides all but the adapters where there are adapters. */
enum freeze { FREEZE_NONE, FREEZE_EMBEDDING, FREEZE_ATTENTION, FREEZE_MLP, FREEZE_COUNT };

/* What a layer is made of. DENSE and MOE: attention, then an MLP or experts, each with a norm. The others are layers of
 * model.layer_pattern, one branch behind one norm. */
enum layer_kind {
	LAYER_DENSE,
	LAYER_MOE,
	LAYER_MAMBA,
	LAYER_ATTENTION,
	LAYER_MLP,
	LAYER_EXPERTS,
	LAYER_DELTA,      /* the gated delta rule */
	LAYER_KDA,        /* the same with a decay of each key's channel (Kimi Linear, arXiv:2510.26692) */
	LAYER_PARALLEL,   /* Mamba-2 and attention behind one norm, added (Falcon-H1, arXiv:2507.22448) */
	LAYER_SHORT_CONV, /* a gated short convolution */
	LAYER_CONV,       /* a block of a convolutional network (step/model_conv.h) */
	LAYER_CROSS,      /* of a decoder behind an encoder: attention, cross-attention, an MLP */
	LAYER_KIND_COUNT
};

#define CONV_STAGES_TEXT 64
#define MTP_MOST 4        /* mtp_layers */
#define LAYER_PATTERN 160 /* bytes, with the terminator */

/* POD: the config is broadcast as bytes. Every count is at least 1 unless said. */
struct model {
	char name[64]; /* preset, or "custom" */
	int64_t layers, hidden, heads, kv_heads, head_dim, ffn_hidden, vocab, vocab_padding, seq_len;
	/* The first encoder_layers of `layers` are an encoder's: no causal mask, a norm behind the last, and a sequence
	 * of encoder_seq_len rows. The others, on seq_len tokens, see its output by cross-attention (Vaswani et al.
	 * 2017, arXiv:1706.03762, section 3.1). 0: no encoder. */
	int64_t encoder_layers, encoder_seq_len;
	int64_t max_positions;    /* rows of the learned position table (>= seq_len); 0 unless position is learned */
	int64_t relative_buckets; /* rows of a relative table; distances of 4 x so many and more share one */
	bool causal;
	int64_t sliding_window;         /* keys that a query sees; 0: all */
	int64_t global_attention_every; /* the last of so many layers sees all keys; 0: none does */
	enum window_kind window_kind;
	enum position position;
	int64_t no_rope_every; /* rope: the last of so many layers has none (Llama 4, SmolLM3); 0: all have it */
	bool attention_gate;   /* attention's result times the sigmoid of a product of its input (Qwen3-Next) */
	bool attention_sinks;  /* a learned logit a head in each softmax (gpt-oss) */
	int64_t attention_softcap, logit_softcap; /* c of c tanh(x / c), of attention's logits and the head's (Gemma 2);
	                                             0: none */
	enum mlp mlp;
	bool composed_gelu;  /* the gelu is written out in operators (transformers' gelu_new and its kin) */
	bool complex_rotary; /* queries and keys are rotated as complex numbers in fp32 (torchtitan's Llama) */
	enum norm norm;
	bool bias;      /* on the linear layers and the layer norms */
	bool qkv_bias;  /* on Q, K, V; follows bias unless set (Qwen2: true with bias false) */
	bool proj_bias; /* on attention's output; follows bias unless set (gpt-oss: true with bias false) */
	enum qk_norm qk_norm;
	enum branch_norm branch_norm;
	bool post_norm;      /* norm after the residual add (BERT); default before */
	bool embedding_norm; /* a norm after the embedding (BERT, BLOOM) */
	bool final_norm;     /* a norm before the head */
	bool pooler;  /* a dense layer and tanh on the first row of a sequence, before the class head (BERT); without
	                 such a head it is counted and reduced, and its gradient is zero */
	bool lm_head; /* a head of the vocabulary. A model without one and without classes only counts */
	bool head_transform; /* a dense layer, the MLP's activation and a norm before the vocabulary head (BERT) */
	bool head_bias;      /* on the vocabulary head */
	int64_t predictions; /* rows of a sequence that the vocabulary head sees (BERT: the masked ones); 0: all */
	int64_t classes;     /* of a class head on the first row of each sequence, with a loss of its own; 0: none */
	/* Patches: a picture is image_size x image_size x channels, and a patch patch_size x patch_size of it. */
	enum input input;
	int64_t image_size, patch_size, channels;
	bool class_token;   /* a row of parameters before the patches (ViT) */
	int64_t type_vocab; /* token types (BERT: 2); 0: none */
	/* Diffusion transformers (Peebles & Xie 2022, DiT, arXiv:2212.09748): a vector for each picture, from a
	 * timestep's `timestep_features` numbers and one of condition_classes, shifts, scales and gates each branch.
	 * The head predicts patch_size^2 x output_channels numbers a patch. */
	bool adaptive_norm;
	int64_t timestep_features, condition_classes /* 0: none */, output_channels /* 0: no such head */;
	bool parallel_residual;
	bool tied_embeddings;
	/* Multi-head latent attention (DeepSeek-AI 2024, arXiv:2405.04434, section 2.1); kv_lora_rank == 0: none.
	 * head_dim is that of queries and keys, of which rope_head_dim rotate, where there is rope, and are the same
	 * for all heads' keys. */
	int64_t q_lora_rank /* 0: queries come from the hidden state */, kv_lora_rank, rope_head_dim, v_head_dim;
	/* mixture of experts; experts == 0: dense */
	int64_t experts, experts_per_token, shared_experts, moe_ffn_hidden, moe_layer_freq;
	int64_t first_dense_layers; /* layers without experts before the first with them (DeepSeek-V3: 3) */
	int64_t moe_latent;         /* columns of the rows that experts see (NVIDIA 2025, Nemotron 3); 0: hidden */
	bool shared_expert_gate;    /* the shared experts' result times a sigmoid, one number a token (Qwen1.5-MoE) */
	double capacity_factor;
	double dropout, attention_dropout; /* the share of results that is dropped: behind the embedding and each
	                                      branch; of attention's weights. 0: none */
	/* Node-limited routing (DeepSeek-AI 2024, DeepSeek-V3, arXiv:2412.19437, section 2.1.2): a token's experts are
	 * in groups_per_token of expert_groups groups of neighbours; 0: anywhere. router_bias: each expert has a number
	 * that is added to its logit for the choice alone, and that moves against its load after each step. */
	int64_t expert_groups, groups_per_token;
	bool router_bias;
	bool expert_bias; /* experts' products add biases, and their gated activation is clamped (gpt-oss): the traffic
	                     of kernels that do so. The biases are not counted as parameters, and not executed */
	/* Multi-token prediction (DeepSeek-V3, section 2.2): so many blocks behind the last, each with a product of the
	 * hidden state and one of the next token's embedding, a final norm and a loss of its own; table and head are
	 * the model's. They are layers `layers` and on. */
	int64_t mtp_layers;
	/* Layers of one branch each, a letter each, repeated: M (Mamba-2), * (attention), - (MLP), E (experts), as
	 * Nemotron-H writes them (NVIDIA 2025, arXiv:2504.03624; its hybrid_override_pattern), G (gated delta rule) as
	 * Megatron-LM does, K (Kimi delta attention), P (LAYER_PARALLEL), C (short convolution). "": none. */
	char layer_pattern[LAYER_PATTERN];
	/* Mamba-2 (Dao & Gu 2024, arXiv:2405.21060): heads x head_dim channels; each of `groups` groups of heads has a
	 * B and a C of `state` numbers; a causal convolution of `conv` taps; the scan works in chunks of tokens. A
	 * gated delta rule (Yang et al. 2024, arXiv:2412.06464) has keys for B and queries for C: `groups` heads of
	 * `state` columns, and values of heads x head_dim. Kimi delta attention has the same, with decays and gates by
	 * products of rank head_dim (arXiv:2510.26692, section 4). A short convolution has `conv` taps and hidden
	 * channels. */
	int64_t ssm_state, ssm_heads, ssm_head_dim, ssm_groups, ssm_conv, ssm_chunk;
	/* A residual convolutional network (step/model_conv.h): blocks of each stage, "3, 4, 6, 3"; "": none. */
	char conv_stages[CONV_STAGES_TEXT];
	bool conv_bottleneck; /* blocks of 1 x 1, 3 x 3 and 1 x 1; false: two of 3 x 3 */
	int64_t conv_width;   /* channels of the stem and of the first stage; each stage doubles them */
	/* Adapters (Hu et al. 2021, LoRA, arXiv:2106.09685): y = x W^T + (x A^T) B^T, W frozen; lora_rank == 0: none.
	 * As NeMo and Megatron Bridge have them: one for the joined product of Q, K and V, one for gate and up. */
	int64_t lora_rank;
	enum lora_targets lora_targets;
	enum freeze freeze;
};

/* X(kind, name). Rows of QKV: all Q heads, all K heads, all V heads of this tensor rank. */
#define PARAM_KINDS(X) \
	X(TOKEN_EMBEDDING, "token_embedding") /* [vocab padded, hidden]; tp: rows */ \
	X(CLASS_TOKEN, "class_token")         /* [hidden] */ \
	X(PATCH_W, "patch_embedding.weight")  /* [hidden, patch_size^2 channels] */ \
	X(PATCH_B, "patch_embedding.bias") \
	X(ENCODER_POSITION, "encoder.position_embedding") /* [encoder_seq_len, hidden] */ \
	X(POSITION_EMBEDDING, "position_embedding") \
	X(TYPE_EMBEDDING, "type_embedding") \
	X(EMBEDDING_NORM_W, "embedding_norm.weight") \
	X(EMBEDDING_NORM_B, "embedding_norm.bias") \
	X(FRAMES1_W, "frames1.weight") /* [hidden, 3 channels]: a convolution of three taps along the sequence */ \
	X(FRAMES1_B, "frames1.bias") \
	X(FRAMES2_W, "frames2.weight") /* [hidden, 3 hidden]: the same of every second place */ \
	X(FRAMES2_B, "frames2.bias") \
	X(TIME_FC1_W, "timestep.fc1.weight") /* [hidden, timestep_features]; replicated over tp, as the eight below */ \
	X(TIME_FC1_B, "timestep.fc1.bias") \
	X(TIME_FC2_W, "timestep.fc2.weight") /* [hidden, hidden] */ \
	X(TIME_FC2_B, "timestep.fc2.bias") \
	X(CONDITION_TABLE, "condition.weight") /* [condition_classes, hidden] */ \
	X(ADAPT_W, "adapt.weight")             /* [6 hidden, hidden] */ \
	X(ADAPT_B, "adapt.bias") \
	X(FINAL_ADAPT_W, "final_adapt.weight") /* [2 hidden, hidden] */ \
	X(FINAL_ADAPT_B, "final_adapt.bias") \
	X(NORM1_W, "norm1.weight") \
	X(NORM1_B, "norm1.bias") \
	X(QKV_W, "qkv.weight") /* [(heads + 2 kv_heads) head_dim, hidden]; tp: heads */ \
	X(QKV_B, "qkv.bias") \
	X(Q_DOWN_W, "q_down.weight") /* [q_lora_rank, hidden]; replicated over tp, as the other latent parameters */ \
	X(Q_LATENT_NORM_W, "q_latent_norm.weight") \
	X(Q_UP_W, "q_up.weight")       /* [heads head_dim, q_lora_rank, or hidden without one]; tp: rows */ \
	X(KV_DOWN_W, "kv_down.weight") /* [kv_lora_rank + rope_head_dim, hidden] */ \
	X(KV_LATENT_NORM_W, "kv_latent_norm.weight") \
	X(KV_UP_W, "kv_up.weight") /* [heads (head_dim - rope_head_dim + v_head_dim), kv_lora_rank]; tp: rows */ \
	X(ATTENTION_GATE_W, "attention_gate.weight") /* [heads head_dim, hidden]; tp: rows */ \
	X(PROJ_W, "proj.weight")                     /* [hidden, heads head_dim (v_head_dim)]; tp: columns */ \
	X(PROJ_B, "proj.bias")                       /* [hidden]; replicated over tp */ \
	X(SINKS, "sinks")                            /* [heads]; tp: heads */ \
	X(Q_NORM_W, "q_norm.weight")                 /* [head_dim], or [heads head_dim] with QK_NORM_FULL */ \
	X(K_NORM_W, "k_norm.weight") \
	X(ENCODER_RELATIVE_BIAS, "encoder.relative_bias") /* [relative_buckets, heads]; tp: columns */ \
	X(RELATIVE_BIAS, "relative_bias") \
	X(CROSS_NORM_W, "cross_norm.weight") \
	X(CROSS_NORM_B, "cross_norm.bias") \
	X(CROSS_Q_W, "cross_q.weight") /* [heads head_dim, hidden]; tp: rows */ \
	X(CROSS_Q_B, "cross_q.bias") \
	X(CROSS_KV_W, "cross_kv.weight") /* [2 kv_heads head_dim, hidden]: all K heads, all V heads; tp: heads */ \
	X(CROSS_KV_B, "cross_kv.bias") \
	X(CROSS_PROJ_W, "cross_proj.weight") /* [hidden, heads head_dim]; tp: columns */ \
	X(CROSS_PROJ_B, "cross_proj.bias") \
	X(SSM_IN_W, "ssm.in.weight") /* [2 channels + 2 groups state + heads (a delta rule's: 2 heads; Kimi's: without \
	                                gates), hidden], group by group (struct op_ssm) */ \
	X(SSM_CONV_W, "ssm.conv.weight") /* [channels + 2 groups state, conv], group by group: x, B, C */ \
	X(SSM_CONV_B, "ssm.conv.bias") \
	X(SSM_HEADS, "ssm.heads")                    /* [heads, 3]: A_log, the bias of dt, D */ \
	X(DELTA_HEADS, "delta.heads")                /* [heads, 2]: A_log, the bias of dt */ \
	X(KDA_HEADS, "kda.heads")                    /* [heads, 1 + state]: A_log, the biases of decays */ \
	X(KDA_DECAY_DOWN_W, "kda.decay_down.weight") /* [head_dim, hidden]; replicated over tp, as the gates' */ \
	X(KDA_DECAY_UP_W, "kda.decay_up.weight")     /* [heads state, head_dim]; tp: rows */ \
	X(KDA_GATE_DOWN_W, "kda.gate_down.weight") \
	X(KDA_GATE_UP_W, "kda.gate_up.weight") /* [channels, head_dim]; tp: rows */ \
	X(SSM_NORM_W, "ssm.norm.weight")       /* [channels]; a delta rule's: [head_dim] */ \
	X(SSM_OUT_W, "ssm.out.weight")         /* [hidden, channels]; tp: columns */ \
	X(SHORT_IN_W, "short.in.weight")       /* [3 hidden, hidden]: b, c, x of each channel; tp: rows */ \
	X(SHORT_CONV_W, "short.conv.weight")   /* [hidden, conv]; tp: rows */ \
	X(SHORT_OUT_W, "short.out.weight")     /* [hidden, hidden]; tp: columns */ \
	X(STEM_W, "stem.weight") /* [out, kernel kernel in], as the other convolutions; each with its norm's two kinds \
	                          */ \
	X(STEM_NORM_W, "stem.norm.weight") \
	X(STEM_NORM_B, "stem.norm.bias") \
	X(CONV1_W, "conv1.weight") \
	X(CONV1_NORM_W, "conv1.norm.weight") \
	X(CONV1_NORM_B, "conv1.norm.bias") \
	X(CONV2_W, "conv2.weight") \
	X(CONV2_NORM_W, "conv2.norm.weight") \
	X(CONV2_NORM_B, "conv2.norm.bias") \
	X(CONV3_W, "conv3.weight") \
	X(CONV3_NORM_W, "conv3.norm.weight") \
	X(CONV3_NORM_B, "conv3.norm.bias") \
	X(SHORTCUT_W, "shortcut.weight") \
	X(SHORTCUT_NORM_W, "shortcut.norm.weight") \
	X(SHORTCUT_NORM_B, "shortcut.norm.bias") \
	X(NORM2_W, "norm2.weight") \
	X(NORM2_B, "norm2.bias") \
	X(ATTENTION_NORM_W, "attention_norm.weight") /* of what attention adds to the residual */ \
	X(ATTENTION_NORM_B, "attention_norm.bias") \
	X(MLP_NORM_W, "mlp_norm.weight") \
	X(MLP_NORM_B, "mlp_norm.bias") \
	X(FC1_W, "fc1.weight") /* [ffn or 2 ffn (gate rows, then up rows), hidden]; tp: rows of each half */ \
	X(FC1_B, "fc1.bias") \
	X(FC2_W, "fc2.weight") /* [hidden, ffn]; tp: columns */ \
	X(FC2_B, "fc2.bias") \
	X(ROUTER_W, "router.weight")         /* [experts, hidden] */ \
	X(MOE_DOWN_W, "moe_down.weight")     /* [moe_latent, hidden] */ \
	X(MOE_UP_W, "moe_up.weight")         /* [hidden, moe_latent] */ \
	X(EXPERT_FC1_W, "expert.fc1.weight") /* as FC1, FC2 without biases; `copies` experts a layer */ \
	X(EXPERT_FC2_W, "expert.fc2.weight") \
	X(SHARED_GATE_W, "shared.gate.weight") /* [1, hidden] */ \
	X(SHARED_FC1_W, "shared.fc1.weight")   /* as FC1, FC2: one MLP of shared_experts x moe_ffn_hidden */ \
	X(SHARED_FC2_W, "shared.fc2.weight") \
	X(LORA_QKV_A, "qkv.lora_a") /* A [lora_rank, in]; tp: as the columns of the product's weight */ \
	X(LORA_QKV_B, "qkv.lora_b") /* B [out, lora_rank]; tp: as its rows */ \
	X(LORA_PROJ_A, "proj.lora_a") \
	X(LORA_PROJ_B, "proj.lora_b") \
	X(LORA_FC1_A, "fc1.lora_a") \
	X(LORA_FC1_B, "fc1.lora_b") \
	X(LORA_FC2_A, "fc2.lora_a") \
	X(LORA_FC2_B, "fc2.lora_b") \
	X(LORA_GATE_A, "attention_gate.lora_a") \
	X(LORA_GATE_B, "attention_gate.lora_b") \
	X(LORA_SSM_IN_A, "ssm.in.lora_a") \
	X(LORA_SSM_IN_B, "ssm.in.lora_b") \
	X(LORA_SSM_OUT_A, "ssm.out.lora_a") \
	X(LORA_SSM_OUT_B, "ssm.out.lora_b") \
	X(LORA_SHORT_IN_A, "short.in.lora_a") \
	X(LORA_SHORT_IN_B, "short.in.lora_b") \
	X(LORA_SHORT_OUT_A, "short.out.lora_a") \
	X(LORA_SHORT_OUT_B, "short.out.lora_b") \
	X(LORA_Q_DOWN_A, "q_down.lora_a") \
	X(LORA_Q_DOWN_B, "q_down.lora_b") \
	X(LORA_Q_UP_A, "q_up.lora_a") \
	X(LORA_Q_UP_B, "q_up.lora_b") \
	X(LORA_KV_DOWN_A, "kv_down.lora_a") \
	X(LORA_KV_DOWN_B, "kv_down.lora_b") \
	X(LORA_KV_UP_A, "kv_up.lora_a") \
	X(LORA_KV_UP_B, "kv_up.lora_b") \
	X(LORA_EXPERT_FC1_A, "expert.fc1.lora_a") /* of each expert its own */ \
	X(LORA_EXPERT_FC1_B, "expert.fc1.lora_b") \
	X(LORA_EXPERT_FC2_A, "expert.fc2.lora_a") \
	X(LORA_EXPERT_FC2_B, "expert.fc2.lora_b") \
	X(LORA_SHARED_FC1_A, "shared.fc1.lora_a") \
	X(LORA_SHARED_FC1_B, "shared.fc1.lora_b") \
	X(LORA_SHARED_FC2_A, "shared.fc2.lora_a") \
	X(LORA_SHARED_FC2_B, "shared.fc2.lora_b") \
	X(ENCODER_NORM_W, "encoder.norm.weight") \
	X(ENCODER_NORM_B, "encoder.norm.bias") \
	X(MTP_HIDDEN_NORM_W, \
		"mtp.hidden_norm.weight") /* of mtp_layers, in place of one product of 2 hidden columns */ \
	X(MTP_HIDDEN_NORM_B, "mtp.hidden_norm.bias") \
	X(MTP_TOKEN_NORM_W, "mtp.token_norm.weight") \
	X(MTP_TOKEN_NORM_B, "mtp.token_norm.bias") \
	X(MTP_HIDDEN_W, "mtp.hidden.weight") /* [hidden, hidden]; replicated over tp, as the one below */ \
	X(MTP_TOKEN_W, "mtp.token.weight") \
	X(MTP_FINAL_NORM_W, "mtp.final_norm.weight") \
	X(MTP_FINAL_NORM_B, "mtp.final_norm.bias") \
	X(FINAL_NORM_W, "final_norm.weight") \
	X(FINAL_NORM_B, "final_norm.bias") \
	X(POOLER_W, "pooler.weight") \
	X(POOLER_B, "pooler.bias") \
	X(HEAD_DENSE_W, "head.dense.weight") /* [hidden, hidden] */ \
	X(HEAD_DENSE_B, "head.dense.bias") \
	X(HEAD_NORM_W, "head.norm.weight") \
	X(HEAD_NORM_B, "head.norm.bias") \
	X(HEAD_W, "head.weight")     /* [vocab padded, hidden] when not tied; tp: rows */ \
	X(HEAD_B, "head.bias")       /* [vocab padded]; tp: rows */ \
	X(CLASS_W, "classes.weight") /* [classes, hidden] */ \
	X(CLASS_B, "classes.bias") \
	X(OUTPUT_W, "output.weight") /* [patch_size^2 output_channels, hidden] */ \
	X(OUTPUT_B, "output.bias")

#define PARAM_KIND(kind, name) PARAM_##kind,
enum param_kind { PARAM_KINDS(PARAM_KIND) PARAM_KIND_COUNT };
#undef PARAM_KIND

/* The way in which parallelism cuts a parameter.
 *
 *   TP_REPLICATED  Every tensor rank has all of it. Under sequence parallelism a rank computes only its rows' share of
 *                  the gradient.
 *   TP_PARTIAL     As TP_REPLICATED, but a rank computes only its heads' share of the gradient.
 *   TP_QKV         The Q, K and V row groups are each cut by heads.
 *   TP_HALVES      The gate rows and the up rows are each cut.
 *
 * Each rank of an expert group has some of an expert's copies, in order, which parallel.expert_tensor cuts in the same
 * ways. parallel.tensor does not cut them.
 */
enum tp_split { TP_REPLICATED, TP_PARTIAL, TP_ROWS, TP_COLS, TP_QKV, TP_HALVES };

/* One parameter tensor; for experts `copies` of it. The shape is global (uncut). Vectors have cols == 1. */
struct param {
	enum param_kind kind;
	int64_t layer; /* -1 outside the blocks */
	int64_t rows, cols, copies;
	enum tp_split split;
};

/* Returns the padded vocabulary: the smallest multiple of vocab_padding x tensor that is at least vocab (Megatron-LM's
 * rule, megatron/training/tokenizer: make-vocab-size-divisible-by x tensor-parallel size). vocab_padding == 1 never
 * pads. */
int64_t model_padded_vocab(const struct model *m, int64_t tensor);
/* Returns whether the MLP multiplies its activation by a gate, whose product is half of fc1. */
bool model_gated(const struct model *m);
/* Return whether tensor ranks are several to one head of keys, each with a copy of it, and how many heads of keys all
 * ranks store: one each where they share, else kv_heads (StarCoder, arXiv:2305.06161; PaLM, arXiv:2204.02311). */
bool model_shares_kv_heads(const struct model *m, int64_t tensor);
int64_t model_stored_kv_heads(const struct model *m, int64_t tensor);

/* Returns what a layer is made of: by the pattern; else experts from first_dense_layers on, in the first of each
 * moe_layer_freq (Megatron-LM's --moe-layer-freq). */
enum layer_kind model_layer_kind(const struct model *m, int64_t layer);
/* Returns the kind of a letter of layer_pattern; LAYER_KIND_COUNT: there is no such letter. */
enum layer_kind model_layer_of_letter(char letter);
/* Returns whether a layer's one branch is a scan. */
bool model_scans(enum layer_kind kind);
bool model_has_experts(const struct model *m, int64_t layer);
bool model_attends(const struct model *m, int64_t layer);

/* Returns all blocks: layers, and those of mtp_layers behind them. */
int64_t model_blocks(const struct model *m);

struct layer_counts {
	int64_t of[LAYER_KIND_COUNT];
};
struct layer_counts model_layer_counts(const struct model *m);
/* Return whether a layer is an encoder's before a decoder; whether it masks later keys; the rows of its sequence. */
bool model_encodes(const struct model *m, int64_t layer);
bool model_masks(const struct model *m, int64_t layer);
int64_t model_rows(const struct model *m, int64_t layer);
/* Returns whether the model is a convolutional network. */
bool model_is_conv(const struct model *m);
/* Returns whether any layer attends. */
bool model_has_attention(const struct model *m);
/* How layers repeat, in what they are made of and in what they see: `leading` ones that are unlike (0, or the
 * first_dense_layers before those with experts), then `repeats` times `period` layers, and `rest` of the next time.
 * period 0: there is no such order. */
#define MODEL_PERIOD_MAX 12
struct layer_order {
	int64_t leading, period, repeats, rest;
};
struct layer_order model_layer_order(const struct model *m);

/* Returns C of step/program.h: the slots at one expert for a rank that routes `tokens`, with `factor` times its share.
 */
int64_t model_expert_capacity(const struct model *m, int64_t tokens, double factor);
/* Returns how many times its share the fullest of `ranks` ranks with equal parts of the experts has, on average, where
 * the data have `kinds` different tokens, each as often: tokens alike choose the same experts, each kind its own ones
 * at random. With x = kinds x experts_per_token choices among kinds x experts, drawn without replacement,
 * P(fullest <= m) = P(each rank's binomial number <= m | their sum is x). kinds 0: balanced, 1.
 * kinds x experts_per_token is at most ROUTED_CHOICES_MAX. */
#define ROUTED_CHOICES_MAX 1024
double model_fullest_rank(const struct model *m, int64_t kinds, int64_t ranks);

/* Return the number of parameter tensors, and tensor i, in the order of PyTorch's model.parameters(): embeddings,
 * blocks front to back, final norm, head. */
int64_t model_param_count(const struct model *m);
struct param model_param(const struct model *m, int64_t i, int64_t tensor);
/* Fills out with all model_param_count(m) of them, in the time of a few single ones. */
void model_params(const struct model *m, int64_t tensor, struct param *out);
const char *param_kind_name(enum param_kind k);

/* Return the elements of the global tensor (all copies), and of one rank's part if `ranks` cut it. */
uint64_t param_elements(const struct param *p);
uint64_t param_local_elements(const struct param *p, int64_t ranks);

/* Returns whether some parameters are not trained. */
bool model_freezes(const struct model *m);
/* Returns whether a parameter is trained: it has a gradient and states of the optimizer. */
bool model_trains(const struct model *m, enum param_kind k);
/* Returns whether a parameter is a matrix of a block's products, which train.lora_base stores in fewer bits. */
bool param_is_product(enum param_kind k);
/* Returns whether an optimizer may take a parameter for a matrix. Taps of channels and numbers of heads stand side by
 * side, but make none. */
bool param_is_matrix(const struct param *p);
/* Returns whether a parameter is that of the experts that an expert group deals out. */
bool param_is_expert(enum param_kind k);
/* Returns whether a parameter is an adapter's. */
bool param_is_lora(enum param_kind k);
/* Returns the A of the adapter of a product's weight, whose B is the kind behind it; PARAM_KIND_COUNT where a product
 * cannot have one. Whether the model has it, its list of parameters says. */
enum param_kind param_lora_of(enum param_kind w);

/* Returns the published count of parameters: with the unpadded vocabulary, tied weights once, without adapters. */
uint64_t model_parameters(const struct model *m);
/* Returns those of the adapters, and all that are trained. */
uint64_t model_lora_parameters(const struct model *m);
uint64_t model_trained_parameters(const struct model *m);
/* Returns those of routed experts. */
uint64_t model_expert_parameters(const struct model *m);
/* Returns the parameters active for a token: as above, but only its experts_per_token and the shared experts count. */
uint64_t model_active_parameters(const struct model *m);

/* Returns whether the vocabulary head's weight is the input's table. */
bool model_ties(const struct model *m);
/* Returns whether the end of the model reads the input's table: to predict, or to embed further tokens. */
bool model_table_ends(const struct model *m);
/* Returns whether a table of positions is added to the embedded rows. */
bool model_has_positions(const struct model *m);
/* Return the patches of a picture; the rows of a sequence whose prediction the main loss counts: those that the
 * vocabulary head sees, all that a head of patches predicts, or 1 of a class head alone. */
int64_t model_patches(const struct model *m);
int64_t model_targets(const struct model *m);

/* Returns what people count the rate of such a model in, "image"; NULL: tokens. */
const char *model_samples(const struct model *m);

/* Returns the keys that a query of a layer sees: sliding_window, or 0 where it sees the whole sequence. */
int64_t model_window(const struct model *m, int64_t layer);
/* Returns whether a layer has a window, be it as long as the sequence. */
bool model_is_windowed(const struct model *m, int64_t layer);
/* Returns whether a layer rotates queries and keys. */
bool model_has_rope(const struct model *m, int64_t layer);
/* Returns the width of a head's values. */
int64_t model_value_dim(const struct model *m);

/* Returns the FLOP of forward and backward for one token, 6N + 12 L h s (non-causal; Chowdhery et al. 2022, PaLM,
 * appendix B). h = heads x head_dim, s = the keys that a query sees. N is the number of active parameters, with an
 * untied input table, though it multiplies nothing. A parameter of a part that sees fewer rows of a sequence than there
 * are tokens (patches, predictions, a class head) counts for these. Tokens are the decoder's where there is an encoder,
 * whose layers, and the keys and values of cross-attention, count for encoder_seq_len rows. NVIDIA's published rates
 * leave that table out: Llama 3 8B at 8,192 tokens has 5.79e10 a token in NeMo's table, 6.11e10 here. A Mamba layer
 * adds 3 x 7 channels x state for its scan, a delta rule 3 x 8, as Megatron-LM counts them (megatron/training/
 * training.py, mamba_layer_flops, linear_self_attn_term). */
double model_flop_per_token(const struct model *m);

#endif
