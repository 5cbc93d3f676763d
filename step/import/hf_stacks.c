/* Hugging Face models of an encoder before a decoder, each as the transformers class of its name builds it
 * (https://github.com/huggingface/transformers, src/transformers/models/TYPE/modeling_TYPE.py). */
#include <string.h>

#include "step/import/hf_reader.h"

/* Tokens that T5 1.1 was trained with, of the encoder and of the decoder (https://github.com/google-research/t5x,
 * t5x/examples/t5/t5_1_1/: TASK_FEATURE_LENGTHS of pretraining). Positions are relative, so n_positions is no limit. */
#define T5_ENCODER_SEQ_LEN 512
#define T5_SEQ_LEN 114

/* Says how many layers there are, given those of both stacks. */
static void set_stacks(struct model *m, int64_t encoder, int64_t decoder)
{
	m->encoder_layers = encoder;
	m->layers = encoder + decoder;
}

/* "relu", or "gated-gelu" as of T5 1.1 on. */
static void read_projection(struct hf_reader *r, struct model *m)
{
	const json_t *v = hf_get(r, "feed_forward_proj");
	const char *name = v ? json_string_value(v) : "relu";
	if (name && strcmp(name, "relu") == 0)
		m->mlp = MLP_RELU;
	else if (name && (strcmp(name, "gated-gelu") == 0 || strcmp(name, "gated-silu") == 0))
		m->mlp = strcmp(name, "gated-gelu") == 0 ? MLP_GEGLU : MLP_SWIGLU;
	else
		hf_fail(r, "feed_forward_proj", "expected relu, gated-gelu or gated-silu");
	m->composed_gelu = m->mlp == MLP_GEGLU; /* configuration_t5.py: dense_act_fn is gelu_new */
}

/* T5, its versions 1.1 and FLAN, and mT5. */
static void read_t5(struct hf_reader *r, struct model *m, bool gated, int64_t vocab)
{
	const int64_t encoder = hf_int(r, "num_layers", KEY_model_layers, gated ? 8 : 6);
	set_stacks(m, encoder, hf_int(r, "num_decoder_layers", KEY_model_layers, encoder));
	m->hidden = hf_int(r, "d_model", KEY_model_hidden, 512);
	m->heads = m->kv_heads = hf_int(r, "num_heads", KEY_model_heads, gated ? 6 : 8);
	m->head_dim = hf_int(r, "d_kv", KEY_model_head_dim, 64);
	m->ffn_hidden = hf_int(r, "d_ff", KEY_model_ffn_hidden, gated ? 1024 : 2048);
	m->vocab = hf_int(r, "vocab_size", KEY_model_vocab, vocab);
	m->relative_buckets = hf_int(r, "relative_attention_num_buckets", KEY_model_relative_buckets, 32);
	m->encoder_seq_len = T5_ENCODER_SEQ_LEN;
	m->seq_len = T5_SEQ_LEN;
	m->position = POS_RELATIVE;
	m->norm = NORM_RMSNORM;
	m->mlp = MLP_GEGLU;
	m->composed_gelu = true;
	if (!gated || hf_get(r, "feed_forward_proj"))
		read_projection(r, m);
	m->tied_embeddings = hf_bool(r, "tie_word_embeddings", !gated);
}

void hf_type_t5(struct hf_reader *r, struct model *m) { read_t5(r, m, false, 32128); }

void hf_type_mt5(struct hf_reader *r, struct model *m) { read_t5(r, m, true, 250112); }

/* umT5: each layer has a table of its own, as small as one. */
void hf_type_umt5(struct hf_reader *r, struct model *m)
{
	read_t5(r, m, true, 250112);
	m->tied_embeddings = false; /* its files have both (transformers ties them) */
	hf_leaves_out(r, "tables of relative positions of all layers but the first of each stack");
}

/* An activation without a gate; swish moves what a gelu moves. */
static enum mlp plain_activation(struct hf_reader *r)
{
	const json_t *v = hf_get(r, "activation_function");
	const char *name = json_is_string(v) ? json_string_value(v) : "";
	if (strcmp(name, "swish") != 0 && strcmp(name, "silu") != 0)
		return hf_activation(r, "activation_function", "gelu", false);
	hf_leaves_out(r, "swish, taken as gelu");
	return MLP_GELU;
}

/* Sizes under the names that BART's kin and Whisper have, of one width in both stacks. */
static void read_stacks(struct hf_reader *r, struct model *m, const int64_t missing[4])
{
	set_stacks(m, hf_int(r, "encoder_layers", KEY_model_layers, missing[0]),
		hf_int(r, "decoder_layers", KEY_model_layers, missing[0]));
	m->hidden = hf_int(r, "d_model", KEY_model_hidden, missing[1]);
	m->heads = m->kv_heads = hf_int(r, "encoder_attention_heads", KEY_model_heads, missing[2]);
	if (!r->st && hf_int(r, "decoder_attention_heads", KEY_model_heads, m->heads) != m->heads)
		hf_fail(r, "decoder_attention_heads", "expected as many as encoder_attention_heads");
	m->head_dim = hf_head_dim_of(r, m, "d_model");
	m->ffn_hidden = hf_int(r, "encoder_ffn_dim", KEY_model_ffn_hidden, missing[3]);
	if (!r->st && hf_int(r, "decoder_ffn_dim", KEY_model_ffn_hidden, m->ffn_hidden) != m->ffn_hidden)
		hf_fail(r, "decoder_ffn_dim", "expected the same as encoder_ffn_dim");
	m->norm = NORM_LAYERNORM;
	m->mlp = plain_activation(r);
	hf_set_bias(m, true, true);
	m->proj_bias = m->tied_embeddings = true;
}

/* Text in both stacks: BART and those that follow it. */
static void read_bart(struct hf_reader *r, struct model *m, enum position position, int64_t offset)
{
	read_stacks(r, m, (const int64_t[]){12, 1024, 16, 4096});
	m->vocab = hf_int(r, "vocab_size", KEY_model_vocab, 50265);
	hf_read_positions(r, m, "max_position_embeddings", 1024);
	m->encoder_seq_len = m->seq_len;
	m->position = position;
	m->max_positions = m->seq_len + offset;
	m->tied_embeddings = hf_bool(r, "tie_word_embeddings", true);
}

/* Norms behind the branches and the embeddings are as many as those before the branches and behind the stacks. */
void hf_type_bart(struct hf_reader *r, struct model *m)
{
	read_bart(r, m, POS_LEARNED, 2); /* BartLearnedPositionalEmbedding begins at 2 */
	hf_leaves_out(r, "that its norms stand behind the branches: they are before them");
}

void hf_type_mbart(struct hf_reader *r, struct model *m)
{
	read_bart(r, m, POS_LEARNED, 2);
	hf_leaves_out(r, "norms behind the embeddings");
}

void hf_type_marian(struct hf_reader *r, struct model *m)
{
	read_bart(r, m, POS_SINCOS, 0);
	hf_leaves_out(r, "that its norms stand behind the branches: they are before them");
}

void hf_type_pegasus(struct hf_reader *r, struct model *m) { read_bart(r, m, POS_SINCOS, 0); }

void hf_type_blenderbot(struct hf_reader *r, struct model *m) { read_bart(r, m, POS_LEARNED, 0); }

/* Whisper: the encoder's positions are sines, which its file has and no step trains. Biases of keys, which it lacks,
 * are counted: 0.01 % of the parameters. */
void hf_type_whisper(struct hf_reader *r, struct model *m)
{
	read_stacks(r, m, (const int64_t[]){4, 384, 6, 1536});
	m->vocab = hf_int(r, "vocab_size", KEY_model_vocab, 51865);
	m->input = INPUT_FRAMES;
	m->channels = hf_int(r, "num_mel_bins", KEY_model_channels, 80);
	m->encoder_seq_len = hf_int(r, "max_source_positions", KEY_model_encoder_seq_len, 1500);
	m->seq_len = m->max_positions = hf_int(r, "max_target_positions", KEY_model_seq_len, 448);
	m->position = POS_LEARNED;
}
