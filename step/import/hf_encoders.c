/* Hugging Face models that are not decoders alone, each as the transformers class of its name builds it
 * (https://github.com/huggingface/transformers, src/transformers/models/TYPE/modeling_TYPE.py). */
#include <string.h>

#include "step/import/hf_reader.h"

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

/* ViT with its classifier. */
void hf_type_vit(struct hf_reader *r, struct model *m)
{
	m->input = INPUT_PATCHES;
	m->image_size = hf_int(r, "image_size", KEY_model_image_size, 224);
	m->patch_size = hf_int(r, "patch_size", KEY_model_patch_size, 16);
	m->channels = hf_int(r, "num_channels", KEY_model_channels, 3);
	m->layers = hf_int(r, "num_hidden_layers", KEY_model_layers, 12);
	m->hidden = hf_int(r, "hidden_size", KEY_model_hidden, 768);
	m->heads = m->kv_heads = hf_int(r, "num_attention_heads", KEY_model_heads, 12);
	m->head_dim = hf_head_dim_of(r, m, "hidden_size");
	m->ffn_hidden = hf_int(r, "intermediate_size", KEY_model_ffn_hidden, 3072);
	m->vocab = 1;
	m->class_token = true;
	m->classes = hf_classes(r);
	m->lm_head = m->causal = false;
	m->position = POS_LEARNED;
	m->mlp = hf_activation(r, "hidden_act", "gelu", false);
	m->norm = NORM_LAYERNORM;
	hf_set_bias(m, hf_bool(r, "qkv_bias", true), true);
	m->proj_bias = true;
	if (m->image_size % m->patch_size != 0)
		hf_fail(r, "patch_size", "expected a divisor of image_size");
	if (!r->st)
		m->seq_len = m->max_positions = model_patches(m) + 1;
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
