/* Hugging Face models that are not decoders alone, each as the transformers class of its name builds it
 * (https://github.com/huggingface/transformers, src/transformers/models/TYPE/modeling_TYPE.py). */
#include <stdio.h>
#include <string.h>

#include "step/import/hf_reader.h"
#include "step/model_conv.h"

/* The labels of a classifier: two where nothing is said, as transformers' PretrainedConfig has it. */
static int64_t hf_classes(struct hf_reader *r)
{
	const json_t *labels = hf_get(r, "id2label");
	if (json_is_object(labels) && json_object_size(labels) > 0)
		return (int64_t)json_object_size(labels);
	return hf_int(r, "num_labels", KEY_model_classes, 2);
}

/* Sets the heads of BERT and its kin by the class that a repository names first, else those of the language model. A
 * class without pooler is that of transformers' language models; BertForPreTraining has one. */
static void read_heads(struct hf_reader *r, struct model *m)
{
	const char *name = json_string_value(json_array_get(hf_get(r, "architectures"), 0));
	m->lm_head = !name || !strstr(name, "Classification");
	m->pooler = !m->lm_head || (name && strstr(name, "PreTraining"));
	m->head_transform = m->head_bias = m->lm_head;
	if (!m->lm_head || m->pooler)
		m->classes = m->lm_head ? 2 : hf_classes(r);
}

/* BERT as it is trained: its masked-language-model head shares the token embedding. */
void hf_type_bert(struct hf_reader *r, struct model *m)
{
	hf_read_sizes(r, m);
	m->causal = m->final_norm = false;
	m->position = POS_LEARNED;
	m->max_positions = m->seq_len;
	m->type_vocab = hf_int(r, "type_vocab_size", KEY_model_type_vocab, 2);
	m->mlp = hf_activation(r, "hidden_act", "gelu", false);
	m->norm = NORM_LAYERNORM;
	hf_set_bias(m, true, true);
	m->post_norm = m->embedding_norm = m->tied_embeddings = true;
	read_heads(r, m);
}

void hf_type_roberta(struct hf_reader *r, struct model *m)
{
	hf_type_bert(r, m);
	m->seq_len = r->out->longest_seq = m->max_positions - 2; /* positions begin behind the padding's, at 2 */
}

/* XLM-R XL, and RoBERTa with norms before its branches: a norm behind the last layer, and none behind the embedding but
 * RoBERTa's. */
void hf_type_roberta_prelayernorm(struct hf_reader *r, struct model *m)
{
	hf_type_roberta(r, m);
	m->post_norm = false;
	m->final_norm = true;
}

void hf_type_xlm_roberta_xl(struct hf_reader *r, struct model *m)
{
	hf_type_roberta_prelayernorm(r, m);
	m->embedding_norm = false;
}

/* DeBERTa: BERT without positions in its input, but in each attention. */
void hf_type_deberta_v2(struct hf_reader *r, struct model *m)
{
	hf_type_bert(r, m);
	m->type_vocab = hf_whole(r, "type_vocab_size", KEY_model_type_vocab);
	if (!hf_bool(r, "position_biased_input", true)) {
		m->position = POS_NONE;
		m->max_positions = 0;
	}
	if (hf_bool(r, "relative_attention", false))
		hf_leaves_out(r, "products with relative positions in each attention, which is never flash attention "
				 "(train.attention: naive)");
	if (hf_get(r, "conv_kernel_size"))
		hf_leaves_out(r, "a convolution");
}

/* The first DeBERTa has two products for positions in each layer, of 2 x hidden^2 numbers. */
void hf_type_deberta(struct hf_reader *r, struct model *m)
{
	hf_type_deberta_v2(r, m);
	if (hf_bool(r, "relative_attention", false))
		hf_leaves_out(r, "their weights");
}

/* LayoutLM: BERT with further tables of positions. */
void hf_type_layoutlm(struct hf_reader *r, struct model *m)
{
	hf_type_bert(r, m);
	hf_leaves_out(r, "places of words on a page");
}

/* LayoutLMv3: RoBERTa with such tables, and patches of the page behind the words. */
void hf_type_layoutlmv3(struct hf_reader *r, struct model *m)
{
	hf_type_roberta(r, m);
	hf_leaves_out(r, "places of words on a page, biases of scores, and the page's patches (rows of seq_len)");
}

/* Megatron's BERT. */
void hf_type_megatron_bert(struct hf_reader *r, struct model *m)
{
	hf_type_bert(r, m);
	m->post_norm = m->embedding_norm = false;
	m->final_norm = true;
}

/* ELECTRA: the discriminator, as it is fine-tuned, or its generator. Small ones have narrower embeddings. */
void hf_type_electra(struct hf_reader *r, struct model *m)
{
	const char *name = json_string_value(json_array_get(hf_get(r, "architectures"), 0));
	hf_type_bert(r, m);
	if (!r->st && hf_int(r, "embedding_size", KEY_model_hidden, 128) != m->hidden)
		hf_fail(r, "embedding_size",
			"an embedding of another width than the model's cannot be described (nearest type: bert)");
	if (name && strstr(name, "MaskedLM"))
		return;
	m->lm_head = m->head_transform = m->head_bias = false;
	m->pooler = true;
	m->classes = hf_classes(r);
	if (!name || strstr(name, "PreTraining"))
		hf_leaves_out(r, "pretraining beside a generator: a class of each sequence is trained");
}

void hf_type_mpnet(struct hf_reader *r, struct model *m)
{
	hf_type_roberta(r, m);
	m->type_vocab = 0;
	hf_leaves_out(r, "biases of scores by distance");
}

/* ESM-2: BERT for proteins, with norms before its branches and rope. */
void hf_type_esm(struct hf_reader *r, struct model *m)
{
	const char *position = json_string_value(hf_get(r, "position_embedding_type"));
	hf_type_bert(r, m);
	m->type_vocab = 0;
	m->post_norm = false;
	m->final_norm = true;
	m->embedding_norm = hf_bool(r, "emb_layer_norm_before", false);
	if (!position || strcmp(position, "rotary") != 0)
		return;
	m->position = POS_ROPE;
	m->max_positions = 0;
}

/* GTE: BERT with rope and gated MLPs, of which the products before the gate have no bias; they are counted with one. */
void hf_type_gte(struct hf_reader *r, struct model *m)
{
	hf_type_bert(r, m);
	m->type_vocab = hf_get(r, "type_vocab_size") ? hf_whole(r, "type_vocab_size", KEY_model_type_vocab) : 1;
	m->position = POS_ROPE;
	m->max_positions = 0;
	m->mlp = hf_activation(r, "hidden_act", "gelu", true);
}

/* Nomic BERT, under GPT-2's names or BERT's. */
void hf_type_nomic_bert(struct hf_reader *r, struct model *m)
{
	const bool own = hf_get(r, "n_embd");
	m->layers = hf_int(r, own ? "n_layer" : "num_hidden_layers", KEY_model_layers, 12);
	m->hidden = hf_int(r, own ? "n_embd" : "hidden_size", KEY_model_hidden, 768);
	m->heads = m->kv_heads = hf_int(r, own ? "n_head" : "num_attention_heads", KEY_model_heads, 12);
	m->head_dim = hf_head_dim_of(r, m, own ? "n_embd" : "hidden_size");
	m->ffn_hidden = hf_int(r, own ? "n_inner" : "intermediate_size", KEY_model_ffn_hidden, 3072);
	m->vocab = hf_int(r, "vocab_size", KEY_model_vocab, 30528);
	hf_read_positions(r, m, own ? "n_positions" : "max_position_embeddings", 2048);
	m->type_vocab = hf_int(r, "type_vocab_size", KEY_model_type_vocab, 2);
	m->position = POS_ROPE;
	m->causal = m->final_norm = false;
	m->mlp = own ? MLP_SWIGLU : hf_activation(r, "hidden_act", "silu", true);
	m->norm = NORM_LAYERNORM;
	m->post_norm = m->embedding_norm = m->tied_embeddings = true;
	read_heads(r, m);
	m->head_bias = m->lm_head;
	if (hf_bool(r, "prenorm", false))
		hf_fail(r, "prenorm", "true cannot be described");
}

/* EuroBERT: Llama without a causal mask. */
void hf_type_eurobert(struct hf_reader *r, struct model *m)
{
	hf_type_llama(r, m);
	m->causal = false;
	m->head_bias = m->bias;
}

/* ModernBERT: gated MLPs before norms without biases, and a masked-language-model head on the token embedding. */
void hf_type_modernbert(struct hf_reader *r, struct model *m)
{
	hf_read_sizes(r, m);
	m->causal = false;
	m->mlp = hf_activation(r, "hidden_activation", "gelu", true);
	m->norm = NORM_LAYERNORM;
	hf_set_bias(m, hf_bool(r, "attention_bias", false), hf_bool(r, "mlp_bias", false));
	m->embedding_norm = m->tied_embeddings = m->lm_head = m->head_transform = m->head_bias = true;
	hf_leaves_out(r, "windows of its local layers: a query sees all keys");
}

/* What ViT and its kin share, with a classifier; the width of their MLPs is given to it. */
static void read_patches(struct hf_reader *r, struct model *m, int64_t patch_size)
{
	m->input = INPUT_PATCHES;
	m->image_size = hf_int(r, "image_size", KEY_model_image_size, 224);
	m->patch_size = hf_int(r, "patch_size", KEY_model_patch_size, patch_size);
	m->channels = hf_int(r, "num_channels", KEY_model_channels, 3);
	m->layers = hf_int(r, "num_hidden_layers", KEY_model_layers, 12);
	m->hidden = hf_int(r, "hidden_size", KEY_model_hidden, 768);
	m->heads = m->kv_heads = hf_int(r, "num_attention_heads", KEY_model_heads, 12);
	m->head_dim = hf_head_dim_of(r, m, "hidden_size");
	m->vocab = 1;
	m->class_token = true;
	m->classes = hf_classes(r);
	m->lm_head = m->causal = false;
	m->position = POS_LEARNED;
	m->norm = NORM_LAYERNORM;
	hf_set_bias(m, hf_bool(r, "qkv_bias", true), true);
	m->proj_bias = true;
	if (m->image_size % m->patch_size != 0)
		hf_fail(r, "patch_size", "expected a divisor of image_size");
	if (!r->st)
		m->seq_len = m->max_positions = model_patches(m) + 1;
}

void hf_type_vit(struct hf_reader *r, struct model *m)
{
	read_patches(r, m, 16);
	m->ffn_hidden = hf_int(r, "intermediate_size", KEY_model_ffn_hidden, 3072);
	m->mlp = hf_activation(r, "hidden_act", "gelu", false);
}

/* Reads the tower of pictures of two towers. Its projection is a class head of `projection` columns. */
static void read_tower(struct hf_reader *outer, struct model *m, int64_t patch_size, const char *activation)
{
	struct hf_reader r = hf_inside(outer, "vision_config");
	const int64_t patches = hf_whole(&r, "num_patches", KEY_model_seq_len);
	read_patches(&r, m, patch_size);
	m->ffn_hidden = hf_int(&r, "intermediate_size", KEY_model_ffn_hidden, 3072);
	m->mlp = hf_activation(&r, "hidden_act", activation, false);
	if (patches > 0) { /* of pictures of any shape */
		for (m->image_size = m->patch_size;
			m->image_size * m->image_size < patches * m->patch_size * m->patch_size;)
			m->image_size += m->patch_size;
		m->seq_len = m->max_positions = model_patches(m) + 1;
	}
	hf_leaves_out(outer, r.root == outer->root ? "what it is trained beside"
						   : "the tower of text, and the loss between both towers");
	outer->st = outer->st ? outer->st : r.st;
}

/* CLIP: a norm before its layers. */
void hf_type_clip(struct hf_reader *r, struct model *m)
{
	read_tower(r, m, 32, "quick_gelu");
	m->embedding_norm = true;
	m->classes = hf_int(r, "projection_dim", KEY_model_classes, 512);
}

/* SigLIP: no class token. */
void hf_type_siglip(struct hf_reader *r, struct model *m)
{
	read_tower(r, m, 16, "gelu_pytorch_tanh");
	m->class_token = false;
	m->classes = m->hidden;
	m->seq_len = m->max_positions = r->st ? 1 : model_patches(m);
	hf_leaves_out(r, "its pooling by attention");
}

void hf_type_deit(struct hf_reader *r, struct model *m)
{
	hf_type_vit(r, m);
	hf_leaves_out(r, "the token for distillation");
}

/* DINOv2: its gated MLPs are two thirds as wide, up to a multiple of 8. */
void hf_type_dinov2(struct hf_reader *r, struct model *m)
{
	const bool gated = hf_bool(r, "use_swiglu_ffn", false);
	read_patches(r, m, 14);
	const int64_t width = m->hidden * hf_int(r, "mlp_ratio", KEY_model_heads, 4);
	m->ffn_hidden = gated ? (2 * width / 3 + 7) / 8 * 8 : width;
	m->mlp = gated ? MLP_SWIGLU : hf_activation(r, "hidden_act", "gelu", false);
	hf_leaves_out(r, "scales of what its branches add, and its training without labels");
	if (hf_get(r, "num_register_tokens"))
		hf_leaves_out(r, "register tokens");
}

/* ResNet, whose stages double their channels as the description has it. */
void hf_type_resnet(struct hf_reader *r, struct model *m)
{
	const json_t *depths = hf_get(r, "depths"), *sizes = hf_get(r, "hidden_sizes"), *v;
	const json_t *kind = hf_get(r, "layer_type");
	size_t i, n = 0;
	m->input = INPUT_PIXELS;
	m->channels = hf_int(r, "num_channels", KEY_model_channels, 3);
	m->conv_width = hf_int(r, "embedding_size", KEY_model_conv_width, 64);
	m->conv_bottleneck = !kind || strcmp(json_string_value(kind) ? json_string_value(kind) : "", "basic") != 0;
	if (!depths)
		snprintf(m->conv_stages, sizeof m->conv_stages, "3, 4, 6, 3");
	json_array_foreach(depths, i, v) if (n < sizeof m->conv_stages) n += (size_t)snprintf(m->conv_stages + n,
		sizeof m->conv_stages - n, "%s%" JSON_INTEGER_FORMAT, i ? ", " : "", json_integer_value(v));
	m->layers = model_conv_blocks(m);
	m->hidden = model_conv_channels(m);
	m->classes = hf_classes(r);
	m->heads = m->kv_heads = m->head_dim = m->vocab = m->seq_len = 1;
	m->ffn_hidden = 4 * m->hidden;
	m->lm_head = m->final_norm = m->causal = false;
	m->position = POS_NONE;
	if (n >= sizeof m->conv_stages || m->layers < 1)
		hf_fail(r, "depths", "expected the blocks of one to 8 stages");
	json_array_foreach(sizes, i, v)
	{
		const int64_t channels = i < CONV_STAGES ? m->conv_width << i << (m->conv_bottleneck ? 2 : 0) : 0;
		if (json_integer_value(v) != channels)
			hf_fail(r, "hidden_sizes", "expected twice the channels from stage to stage");
	}
	if (hf_bool(r, "downsample_in_first_stage", false) || hf_bool(r, "downsample_in_bottleneck", false))
		hf_leaves_out(r, "where its stages halve an image");
}

/* DistilBERT: BERT without token types and pooler, under names of its own. */
void hf_type_distilbert(struct hf_reader *r, struct model *m)
{
	m->layers = hf_int(r, "n_layers", KEY_model_layers, 6);
	m->hidden = hf_int(r, "dim", KEY_model_hidden, 768);
	m->heads = m->kv_heads = hf_int(r, "n_heads", KEY_model_heads, 12);
	m->head_dim = hf_head_dim_of(r, m, "dim");
	m->ffn_hidden = hf_int(r, "hidden_dim", KEY_model_ffn_hidden, 3072);
	m->vocab = hf_int(r, "vocab_size", KEY_model_vocab, 30522);
	hf_read_positions(r, m, "max_position_embeddings", 512);
	m->max_positions = m->seq_len;
	m->position = POS_LEARNED;
	m->causal = m->final_norm = false;
	m->mlp = hf_activation(r, "activation", "gelu", false);
	m->norm = NORM_LAYERNORM;
	hf_set_bias(m, true, true);
	m->post_norm = m->embedding_norm = m->tied_embeddings = true;
	read_heads(r, m);
}
