/* Mutation fuzzer of the config reader: fuzz_config SECONDS SEED. Built with the sanitizers, which see what the checks
 * below do not.
 *
 * Each round takes an example, a wrong config of tests/golden/bad, or a config made up from the key table; changes it a
 * few times by bytes; adds --set texts; reads and resolves it for some number of ranks. A refusal must be one line of
 * wrong input; a plan must be one that the program builder can rely on, and must come out of its own JSON again. One
 * round in eight reads a Hugging Face config.json instead. A broken promise prints the text and ends with 1.
 */
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/paths.h"
#include "base/vec.h"
#include "step/config/keys.h"
#include "step/stages.h"
#include "step/import/hf_config.h"

#define TEXT_MAX 4096
#include "tests/fuzz/fuzz.h"
#define SETS_MAX 4
#define SET_LEN 96
#define NAME "fuzz.yaml"

static VEC(struct text) seeds;

static void add(struct text *t, const char *piece)
{
	size_t len = strlen(piece);
	if (t->n + len > TEXT_MAX)
		return;
	memcpy(t->at + t->n, piece, len);
	t->n += len;
}

/* ---- where texts come from ---- */

static void read_folder(const char *home, const char *folder)
{
	char path[PATH_MAX_LEN];
	snprintf(path, sizeof path, "%.2000s/%s", home, folder);
	DIR *dir = opendir(path);
	for (struct dirent *entry; dir && (entry = readdir(dir));) {
		char *text = NULL;
		size_t len = 0;
		snprintf(path, sizeof path, "%.2000s/%s/%s", home, folder, entry->d_name);
		if (!strstr(entry->d_name, ".yaml") || file_read(path, TEXT_MAX, &text, &len, NULL))
			continue;
		struct text t = {.n = len};
		memcpy(t.at, text, len);
		free(text);
		if (!vec_push(&seeds, t))
			exit(1);
	}
	if (dir)
		closedir(dir);
}

static const char *const junk[] = {"auto", "true", "false", "0", "1", "2", "3", "4", "8", "16", "64", "1000", "-1",
	"1e9", "0.5", "25MiB", "25MiBx", "50us", "60s", "nan", "1e999", "~", "\"\"", "\"8\"", "[]", "[1, 2]", "[a]",
	"{}", "{1: 2}", "tp-cp-ep-dp-pp", "pp-dp-ep-cp-tp", "none", "x", "99999999999999999999", "010", "4294967296",
	"1048576", "\"\\n\"", "\"\\u20ac\"", "gpt2-124m", "llama3-8b", "bert-base", "mixtral-8x7b", "megatron-core",
	"deepspeed", "pytorch-fsdp"};

/* A value for a key: mostly of its own kind. */
static void add_value(struct text *t, const struct config_key *k)
{
	char number[48];
	if (k->n_words > 0 && k->type != KEY_ORDER && below(8)) {
		add(t, k->words[below(k->n_words)].text);
	} else if (k->type == KEY_BOOL && below(8)) {
		add(t, below(2) ? "true" : "false");
	} else if ((k->type == KEY_INT || k->type == KEY_REAL || (k->type == KEY_MIB && !k->takes_auto)) && below(4)) {
		double high = isinf(k->high) ? 1e6 : k->high;
		double exponent = (double)below(1000) / 1000.0 * log2(high + 1.0);
		snprintf(number, sizeof number, "%.0f", below(16) ? exp2(floor(exponent)) : k->low - 1.0);
		add(t, number);
	} else {
		add(t, junk[below(COUNT(junk))]);
	}
}

/* A few keys of the table, section by section. */
static void make_up(struct text *t)
{
	t->n = 0;
	for (size_t s = 0; s < CONFIG_SECTIONS; s++) {
		bool model = strcmp(config_sections[s], "model") == 0, opened = false;
		for (int i = 0; i < KEY_COUNT; i++) {
			const struct config_key *k = config_key((enum key_id)i);
			if (strcmp(k->section, config_sections[s]) != 0 ||
				(i != KEY_model_preset && below(model ? 16 : 24)) || i == KEY_model_hf_config)
				continue;
			if (!opened)
				add(t, config_sections[s]);
			add(t, opened ? "  " : ":\n  ");
			opened = true;
			add(t, k->name);
			add(t, ": ");
			if (i == KEY_model_preset && below(8))
				add(t, junk[COUNT(junk) - 7 + below(3)]);
			else
				add_value(t, k);
			add(t, "\n");
		}
	}
}

static size_t make_sets(char sets[SETS_MAX][SET_LEN])
{
	size_t n = below(4) ? 0 : 1 + below(SETS_MAX);
	for (size_t i = 0; i < n; i++) {
		const struct config_key *k = config_key((enum key_id)below(KEY_COUNT));
		struct text t = {.n = 0};
		add(&t, k->path);
		add(&t, "=");
		add_value(&t, k);
		if (below(8) == 0)
			t.at[below(t.n)] = (char)(1 + below(255));
		size_t len = t.n < SET_LEN - 1 ? t.n : SET_LEN - 1;
		memcpy(sets[i], t.at, len);
		sets[i][len] = '\0';
	}
	return n;
}

static void mutate(struct text *t)
{
	size_t where = below(t->n + 1), rest = t->n - where;
	size_t len = below(rest < 32 ? rest + 1 : 32);
	switch (below(4)) {
	case 0:
		if (rest)
			t->at[where] = (char)below(256);
		break;
	case 1:
		memmove(t->at + where, t->at + where + len, rest - len);
		t->n -= len;
		break;
	case 2: /* a repetition */
		if (t->n + len <= TEXT_MAX) {
			memmove(t->at + where + len, t->at + where, rest);
			t->n += len;
		}
		break;
	default: { /* another value */
		struct text tail = {.n = rest};
		memcpy(tail.at, t->at + where, rest);
		t->n = where;
		add(t, junk[below(COUNT(junk))]);
		if (t->n + tail.n <= TEXT_MAX) {
			memcpy(t->at + t->n, tail.at, tail.n);
			t->n += tail.n;
		}
		break;
	}
	}
}

/* ---- promises ---- */

static void check_message(const struct error *e)
{
	check(e->status == ST_INPUT, "a refusal has the status of wrong input");
	check(memchr(e->text, '\0', sizeof e->text) && e->text[0], "a message has a text that ends");
	for (const char *p = e->text; *p; p++)
		check((unsigned char)*p >= 0x20 && *p != 0x7f, "a message is one line of printable text");
}

static void check_plan(const struct config *c, int64_t ranks)
{
	const struct parallel *p = &c->parallel;
	const struct model *m = &c->model;
	check(c->ranks == ranks && p->data * p->tensor * p->pipeline * p->context == ranks,
		"the plan has as many ranks as asked for");
	check(c->micro_batches >= 1 && c->micro_batches * c->train.micro_batch * p->data == c->train.global_batch,
		"the global batch is the micro-batches of all replicas");
	check(m->heads % m->kv_heads == 0 && m->heads % p->tensor == 0 &&
			(m->kv_heads % p->tensor == 0 || p->tensor % m->kv_heads == 0) &&
			m->ffn_hidden % p->tensor == 0,
		"tensor divides what it cuts");
	check(model_padded_vocab(m, p->tensor) % p->tensor == 0, "tensor divides the vocabulary");
	check(m->head_dim >= 1 && m->ffn_hidden >= 1 && m->seq_len >= 1, "dimensions are positive");
	check(model_has_positions(m) ? m->max_positions >= m->seq_len : m->max_positions == 0,
		"the position table holds the sequence");
	check(c->train.recompute_layers >= 0 && c->train.recompute_layers <= m->layers, "recomputed layers are layers");
	const struct counted_ends ends = stages_counted_ends(c);
	check((p->pipeline * p->virtual_stages <= m->layers + ends.embedding + ends.head || stages_by_hand(c)) &&
			(p->pipeline > 1 || p->virtual_stages == 1),
		"every part of the pipeline has a layer");
	check(p->bucket_B > 0 && p->first_bucket_B > 0 && p->shard > 0 && c->data.bytes > 0, "nothing is left at auto");
	check(m->lm_head || m->classes + m->output_channels > 0, "the loss has a head");
	check(m->experts > 0 ? m->experts % p->expert == 0 && p->tensor * p->context * p->data % p->expert == 0
			     : p->expert == 1,
		"experts are dealt evenly");
	check(p->context == 1 || ((c->train.attention == ATT_FLASH || p->context_kind == CTX_ALL_GATHER) &&
					 m->seq_len % (m->causal ? 2 * p->context : p->context) == 0 &&
					 p->strategy != STRAT_NONE),
		"context divides the sequence");
	check(p->strategy != STRAT_HSDP || (p->data % p->shard == 0 && (p->shard > 1 || p->data == 1)),
		"shard divides the replicas");
	check(c->train.param_dtype < DT_COUNT && c->train.grad_dtype < DT_COUNT && c->train.reduce_dtype < DT_COUNT,
		"formats are settled");
	uint64_t parameters = model_parameters(m);
	check(parameters > 0 && parameters < (uint64_t)2e15, "the parameters can be counted");
}

static void check_json(const struct config *c, int64_t ranks)
{
	static struct config again;
	struct error e = {0};
	json_t *json = config_json(c), *same = NULL;
	char *text = json ? json_dumps(json, 0) : NULL;
	check(text != NULL, "a plan can be written as JSON");
	if (text) {
		bool read = !config_parse(text, strlen(text), NAME, NULL, 0, &again, &e) &&
		            !config_resolve(&again, ranks, &e);
		check(read, "a plan's JSON is a config");
		if (!read)
			fprintf(stderr, "%s\n%s\n", text, e.text);
		same = read ? config_json(&again) : NULL;
		check(!read || json_equal(json, same), "a plan's JSON is the same plan");
	}
	json_decref(same);
	json_decref(json);
	free(text);
}

static size_t n_plans;

static void try_text(const struct text *t, char sets[SETS_MAX][SET_LEN], size_t n_sets)
{
	static struct config c;
	static const int64_t some_ranks[] = {1, 2, 3, 4, 6, 8, 16, 64, 1024, 100000};
	const char *set_texts[SETS_MAX] = {sets[0], sets[1], sets[2], sets[3]};
	int64_t ranks = some_ranks[below(COUNT(some_ranks))];
	/* exactly as long as the text, so that the sanitizer sees a read behind its end */
	char *exact = malloc(t->n ? t->n : 1);
	if (!exact)
		exit(1);
	memcpy(exact, t->at, t->n);
	struct error e = {0};
	enum status st = config_parse(exact, t->n, NAME, set_texts, n_sets, &c, &e);
	if (!st) {
		int64_t fixed = config_fixed_ranks(&c);
		ranks = fixed > 0 && below(4) ? fixed : ranks;
		st = config_resolve(&c, ranks, &e);
	}
	if (st) {
		check_message(&e);
	} else {
		n_plans++;
		check_plan(&c, ranks);
		check_json(&c, ranks);
	}
	free(exact);
}

static const char *const hf_seeds[] = {
	"{\"model_type\": \"llama\", \"hidden_size\": 64, \"intermediate_size\": 128, \"num_attention_heads\": 4, "
	"\"num_key_value_heads\": 2, \"num_hidden_layers\": 2, \"vocab_size\": 100}",
	"{\"model_type\": \"mixtral\", \"hidden_size\": 64, \"intermediate_size\": 128, \"num_attention_heads\": 4, "
	"\"num_hidden_layers\": 2, \"vocab_size\": 100, \"sliding_window\": null}",
	"{\"model_type\": \"gpt2\", \"n_embd\": 768, \"n_head\": 12, \"n_inner\": null, \"n_layer\": 12, "
	"\"n_positions\": 1024, \"vocab_size\": 50257, \"tie_word_embeddings\": true}",
	"{\"model_type\": \"qwen2\", \"hidden_act\": \"silu\", \"hidden_size\": 896, \"intermediate_size\": 4864, "
	"\"num_attention_heads\": 14, \"num_hidden_layers\": 24, \"vocab_size\": 151936, "
	"\"use_sliding_window\": true}",
};

static void try_hf(const struct text *t)
{
	struct hf_model m;
	struct error e = {0};
	char *exact = malloc(t->n ? t->n : 1);
	if (!exact)
		exit(1);
	memcpy(exact, t->at, t->n);
	if (hf_config_parse(exact, t->n, NAME, &m, &e))
		check_message(&e);
	else
		check(m.model.layers >= 1 && m.model.hidden >= 1 && m.model.heads >= 1 && m.model.kv_heads >= 1 &&
				m.model.head_dim >= 1 && m.model.ffn_hidden >= 1 && m.model.vocab >= 1 &&
				m.model.seq_len >= 1,
			"dimensions are positive");
	free(exact);
}

/* A text that begins as JSON is a model's config of Hugging Face. */
static void try_one(const struct text *t)
{
	static char sets[SETS_MAX][SET_LEN];
	if (t->n > 0 && t->at[0] == '{')
		try_hf(t);
	else
		try_text(t, sets, 0);
}

FUZZ_ONE(try_one)

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? strtod(argv[1], NULL) : 10;
	unsigned long long seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1, rounds = 0;
	char home[PATH_MAX_LEN];
	struct error e = {0};
	random_state = seed;
	if (path_home(home, &e)) {
		fprintf(stderr, "fuzz_config: %s\n", e.text);
		return 1;
	}
	read_folder(home, "configs");
	read_folder(home, "tests/golden/bad");
	if (seeds.n == 0) {
		fprintf(stderr, "fuzz_config: no configs under %s\n", home);
		return 1;
	}
	double end_s = clock_s() + seconds;
	do {
		static struct text t;
		char sets[SETS_MAX][SET_LEN] = {""};
		if (rounds < seeds.n)
			t = seeds.at[rounds];
		else if (below(2))
			t = seeds.at[below(seeds.n)];
		else
			make_up(&t);
		for (size_t i = rounds < seeds.n || below(3) == 0 ? 0 : below(6); i > 0; i--)
			mutate(&t);
		size_t n_sets = rounds < seeds.n ? 0 : make_sets(sets);
		if (rounds >= seeds.n && below(8) == 0) {
			n_sets = 0;
			t.n = 0;
			add(&t, hf_seeds[below(COUNT(hf_seeds))]);
			for (size_t i = below(6); i > 0; i--)
				mutate(&t);
			try_hf(&t);
		} else {
			try_text(&t, sets, n_sets);
		}
		rounds++;
		if (broken) {
			fprintf(stderr, "fuzz_config: round %llu of seed %llu: broken promise: %s\n", rounds, seed,
				broken);
			fwrite(t.at, 1, t.n, stderr);
			for (size_t i = 0; i < n_sets; i++)
				fprintf(stderr, "--set '%s'\n", sets[i]);
			return 1;
		}
	} while (clock_s() < end_s);
	vec_free(&seeds);
	printf("fuzz_config: %llu texts, %zu of them plans, seed %llu: all promises held\n", rounds, n_plans, seed);
	return 0;
}
