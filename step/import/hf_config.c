#include "step/import/hf_config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/paths.h"
#include "step/import/hf_reader.h"

#define FILE_LIMIT_B ((size_t)1 << 20)

void hf_fail(struct hf_reader *r, const char *key, const char *what)
{
	if (!r->st)
		r->st = error_set(r->e, ST_INPUT, "%s: %s: %s", r->name, key, what);
}

void hf_leaves_out(struct hf_reader *r, const char *what)
{
	char *out = r->out->left_out;
	const size_t n = strlen(out);
	snprintf(out + n, HF_LEFT_OUT - n, "%s%s", n ? ", " : "", what);
}

const json_t *hf_get(const struct hf_reader *r, const char *key)
{
	const json_t *v = json_object_get(r->root, key);
	return v && !json_is_null(v) ? v : NULL;
}

int64_t hf_int(struct hf_reader *r, const char *key, enum key_id range, int64_t missing)
{
	const json_t *v = hf_get(r, key);
	const struct config_key *k = config_key(range);
	char what[96];
	if (!v && missing != 0)
		return missing;
	if (json_is_integer(v) && (double)json_integer_value(v) >= k->low && (double)json_integer_value(v) <= k->high)
		return json_integer_value(v);
	snprintf(what, sizeof what, "%s an integer from %.0f to %.0f", v ? "expected" : "missing: expected", k->low,
		k->high);
	hf_fail(r, key, what);
	return 1;
}

int64_t hf_whole(struct hf_reader *r, const char *key, enum key_id range)
{
	const json_t *v = hf_get(r, key);
	const double x = json_number_value(v);
	if (!v)
		return 0;
	if (json_is_number(v) && x >= config_key(range)->low && x <= config_key(range)->high && x == (double)(int64_t)x)
		return (int64_t)x;
	hf_fail(r, key, "expected a whole number");
	return 0;
}

bool hf_bool(struct hf_reader *r, const char *key, bool missing)
{
	const json_t *v = hf_get(r, key);
	if (!v)
		return missing;
	if (!json_is_boolean(v))
		hf_fail(r, key, "expected true or false");
	return json_is_true(v);
}

static const struct activation {
	const char *name;
	enum mlp plain, gated; /* MLP_COUNT: there is none */
	bool composed;         /* written out in operators (transformers, activations.py: NewGELUActivation, ...) */
} activations[] = {
	{"gelu", MLP_GELU, MLP_GEGLU, false},
	{"gelu_new", MLP_GELU, MLP_GEGLU, true},
	{"gelu_fast", MLP_GELU, MLP_GEGLU, true},
	{"gelu_pytorch_tanh", MLP_GELU, MLP_GEGLU, false},
	{"quick_gelu", MLP_GELU, MLP_COUNT, false},
	{"relu", MLP_RELU, MLP_COUNT, false},
	{"relu2", MLP_SQUARED_RELU, MLP_COUNT, false},
	{"silu", MLP_COUNT, MLP_SWIGLU, false},
	{"swish", MLP_COUNT, MLP_SWIGLU, false},
};

enum mlp hf_activation(struct hf_reader *r, const char *key, const char *missing, bool gated)
{
	const json_t *v = hf_get(r, key);
	const char *name = v ? json_string_value(v) : missing;
	for (size_t i = 0; name && i < COUNT(activations); i++) {
		enum mlp m = gated ? activations[i].gated : activations[i].plain;
		if (strcmp(activations[i].name, name) == 0 && m != MLP_COUNT) {
			r->out->model.composed_gelu = activations[i].composed;
			return m;
		}
	}
	hf_fail(r, key, gated ? "expected silu or a gelu" : "expected a gelu, relu or relu2");
	return MLP_GELU;
}

struct hf_reader hf_inside(const struct hf_reader *r, const char *key)
{
	struct hf_reader inside = *r;
	if (json_is_object(hf_get(r, key)))
		inside.root = hf_get(r, key);
	return inside;
}

/* Returns the first of some rates that is there; 0 without one. */
static double rate_of(struct hf_reader *r, const char *const keys[], size_t n, enum key_id range)
{
	for (size_t i = 0; i < n; i++) {
		const json_t *v = hf_get(r, keys[i]);
		const double rate = json_number_value(v);
		if (v && (!json_is_number(v) || rate < config_key(range)->low || rate > config_key(range)->high))
			hf_fail(r, keys[i], "expected a share that is dropped");
		if (v)
			return rate;
	}
	return 0;
}

/* Under the names of GPT-2, BERT and their kin, BART's and OPT's, and T5's, whose one rate is of both. */
static void read_dropout(struct hf_reader *r, struct model *m)
{
	static const char *const hidden[] = {"resid_pdrop", "hidden_dropout_prob", "hidden_dropout", "resid_dropout",
		"dropout", "dropout_rate"},
				 *const attention[] = {"attn_pdrop", "attention_probs_dropout_prob",
					 "attention_dropout", "dropout_rate"};
	m->dropout = rate_of(r, hidden, COUNT(hidden), KEY_model_dropout);
	m->attention_dropout = rate_of(r, attention, COUNT(attention), KEY_model_attention_dropout);
}

static void read_model(struct hf_reader *r)
{
	struct model *m = &r->out->model;
	memset(r->out, 0, sizeof *r->out); /* its bytes are sent: no padding may be undefined */
	m->causal = m->final_norm = m->lm_head = true;
	m->vocab_padding = m->moe_layer_freq = 1;
	m->relative_buckets = 32;
	m->image_size = 224, m->patch_size = 16, m->channels = 3, m->timestep_features = 256,
	m->groups_per_token = 1; /* unused: as the keys' defaults */
	m->experts_per_token = 2;
	m->ssm_state = 128; /* the keys' own defaults, where no layer is Mamba's */
	m->ssm_head_dim = 64;
	m->ssm_groups = 1;
	m->ssm_conv = 4;
	m->ssm_chunk = 256;
	m->conv_bottleneck = true;
	m->conv_width = 64;
	hf_read_type(r, json_string_value(hf_get(r, "model_type")));
	if (r->st)
		return;
	read_dropout(r, m);
	if (m->experts == 0)
		m->moe_ffn_hidden = m->ffn_hidden;
	if (m->ssm_heads == 0)
		m->ssm_heads = config_default_ssm_heads(m);
	m->seq_len = m->seq_len < HF_SEQ_LEN ? m->seq_len : HF_SEQ_LEN;
}

/* Replaces what Python writes beside JSON's numbers, as in the "time_step_limit": [0.0, Infinity] of Mamba-2, by a
 * number of the same length. */
static void mask_python_numbers(char *text, size_t len)
{
	static const struct {
		const char *word, *number;
	} words[] = {{"Infinity", "1e308   "}, {"NaN", "0  "}};
	bool quoted = false;
	for (size_t i = 0; i < len; i++) {
		if (quoted && text[i] == '\\') {
			i++; /* what it escapes ends no text */
			continue;
		}
		quoted ^= text[i] == '"';
		for (size_t k = 0; !quoted && k < COUNT(words); k++) {
			const size_t n = strlen(words[k].word);
			if (i + n <= len && memcmp(text + i, words[k].word, n) == 0)
				memcpy(text + i, words[k].number, n);
		}
	}
}

static enum status load(const char *text, size_t len, const char *name, json_t **root, struct error *e)
{
	json_error_t where;
	char *copy = malloc(len + 1);
	if (!copy)
		return error_nomem(e, "a model's config");
	memcpy(copy, text, len);
	mask_python_numbers(copy, len);
	*root = json_loadb(copy, len, JSON_REJECT_DUPLICATES, &where);
	free(copy);
	return *root ? ST_OK : error_set(e, ST_INPUT, "%s:%d:%d: %s", name, where.line, where.column, where.text);
}

enum status hf_config_parse(const char *text, size_t len, const char *name, struct hf_model *m, struct error *e)
{
	json_t *root = NULL;
	enum status st = load(text, len, name, &root, e);
	if (st)
		return st;
	struct hf_reader r = {.root = root, .name = name, .out = m, .e = e};
	if (json_is_object(root))
		read_model(&r);
	else
		r.st = error_set(e, ST_INPUT, "%s:1:1: expected a JSON object", name);
	json_decref(root);
	return r.st;
}

enum status hf_config_load(const char *path, struct hf_model *m, struct error *e)
{
	char *text = NULL;
	size_t len = 0;
	enum status st = file_read(path, FILE_LIMIT_B, &text, &len, e);
	if (!st)
		st = hf_config_parse(text, len, path, m, e);
	free(text);
	return st;
}

bool hf_config_is(const char *text, size_t len)
{
	struct error none = {0};
	json_t *root = NULL;
	if (load(text, len, "", &root, &none))
		return false;
	/* a Trainer's arguments can name a type, too (ms-swift's args.json) */
	const bool is = json_is_string(json_object_get(root, "model_type")) &&
	                !json_object_get(root, "per_device_train_batch_size");
	json_decref(root);
	return is;
}
