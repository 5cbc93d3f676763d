#include "cli/starter.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/array.h"
#include "base/log.h"
#include "base/memory_stream.h"
#include "base/paths.h"
#include "base/suggest.h"
#include "cli/compare.h"
#include "cli/machine.h"
#include "step/config/keys.h"
#include "step/import/import.h"
#include "step/strategy.h"
#include "topology/machine.h"

/* The first batches of Llama 3 405B (arXiv:2407.21783, section 3.4.1), "4M": a power of two splits over most clusters
 * and micro-batches. */
#define TOKENS 4194304.0
#define IMAGES 4096        /* ViT's batch (Dosovitskiy et al. 2020, arXiv:2010.11929, table 3) */
#define IMAGES_AT_ONCE 32  /* of a GPU (Goyal et al. 2017, arXiv:1706.02677, section 5.1) */
#define SEQUENCE_MOST 8192 /* of a model that allows longer ones: what Llama 3 was trained with (the same) */

struct starter {
	const char *system, *strategy;
	char model[PATH_MAX_LEN]; /* one line of YAML */
	bool images;              /* the model reads them, in place of tokens */
	int64_t sequence, nodes, gpus, batch, micro_batch;
	int64_t per_node; /* GPUs of the one host that is used in part; 0: whole hosts */
	int64_t at_once;  /* samples of a micro-batch that the user gives; 1: none */
};

/* Writes a text as YAML's single-quoted scalar. */
static void quote(char *out, size_t size, const char *text)
{
	size_t n = 0;
	out[n++] = '\'';
	for (; *text && n + 4 < size; text++) {
		if (*text == '\'')
			out[n++] = '\'';
		out[n++] = *text;
	}
	out[n++] = '\'';
	out[n] = '\0';
}

/* Finds the preset of this name, or of the same name in another spelling (Llama-3-70B), or of this model of Hugging
 * Face's hub. */
static bool find_preset(const char *name, char preset[KEY_VALUE_MAX])
{
	char **names = NULL;
	size_t n = 0, same = 0;
	if (path_catalogue_names("models", &names, &n, NULL))
		return false;
	size_t at = suggest_find(name, (const char *const *)names, n);
	for (size_t i = 0; at == n && i < n; i++)
		if (suggest_same(name, names[i]) && same++ == 0)
			snprintf(preset, KEY_VALUE_MAX, "%s", names[i]);
	if (at < n)
		snprintf(preset, KEY_VALUE_MAX, "%s", name);
	path_names_free(names, n);
	return at < n || same == 1 || (same == 0 && hub_value(name, KEY_model_preset, preset));
}

enum status starter_find_model(const char *name, bool *file, char found[PATH_MAX_LEN], struct error *e)
{
	struct stat at;
	char path[PATH_MAX_LEN], preset[KEY_VALUE_MAX];
	const bool exists = stat(name, &at) == 0, folder = exists && S_ISDIR(at.st_mode);
	const char *ending = strrchr(name, '.');
	if (!exists && find_preset(name, preset)) {
		if (strcmp(name, preset) != 0)
			log_note("--model %s: taken as the preset %s", name, preset);
		*file = false;
		snprintf(found, PATH_MAX_LEN, "%s", preset);
		return ST_OK;
	}
	*file = exists || strchr(name, '/') || (ending && strcmp(ending, ".json") == 0);
	if (!*file) {
		snprintf(found, PATH_MAX_LEN, "%.4000s", name);
		return ST_OK;
	}
	snprintf(path, sizeof path, "%.3900s%s", name, folder ? "/config.json" : "");
	char *absolute = realpath(path, NULL);
	if (!absolute)
		return error_set(e, ST_INPUT, "--model %s: cannot read %s: %s", name, path, strerror(errno));
	snprintf(found, PATH_MAX_LEN, "%.4000s", absolute);
	free(absolute);
	return ST_OK;
}

static enum status read_model(const char *name, struct starter *s, struct error *e)
{
	char found[PATH_MAX_LEN], quoted[PATH_MAX_LEN];
	bool file;
	enum status st = starter_find_model(name, &file, found, e);
	if (st)
		return st;
	quote(quoted, sizeof quoted, found);
	snprintf(s->model, sizeof s->model, "%s: %.4000s", file ? "hf_config" : "preset", file ? quoted : found);
	return ST_OK;
}

/* Drops the position in the text that this file writes: no user sees it. Returns whether there was one. */
static bool drop_position(struct error *e)
{
	const char *behind = strncmp(e->text, STARTER_NAME ":", strlen(STARTER_NAME ":")) == 0 ? strstr(e->text, ": ")
	                                                                                       : NULL;
	if (behind)
		memmove(e->text, behind + 2, strlen(behind + 2) + 1);
	return behind != NULL;
}

void starter_blame(const struct options *o, struct error *e)
{
	const struct {
		const char *key, *option, *value;
	} of[] = {{"cluster.system: ", "--system", o->system}, {"parallel.strategy: ", "--strategy", o->strategy}};
	if (!drop_position(e))
		return;
	for (size_t i = 0; i < COUNT(of); i++) {
		const size_t n = strlen(of[i].key);
		if (!of[i].value || strncmp(e->text, of[i].key, n) != 0)
			continue;
		memmove(e->text, e->text + n, strlen(e->text + n) + 1);
		error_context(e, "%s %s", of[i].option, of[i].value);
	}
}

/* Copies those of --set that a batch must divide by. Returns their number. */
static size_t size_sets(const struct options *o, const char **out)
{
	static const char *const keys[] = {"cluster.nodes=", "cluster.gpus_per_node=", "train.micro_batch="};
	size_t n = 0;
	for (size_t i = 0; i < o->sets.n; i++)
		for (size_t k = 0; k < COUNT(keys); k++)
			if (strncmp(o->sets.at[i], keys[k], strlen(keys[k])) == 0)
				out[n++] = o->sets.at[i];
	return n;
}

/* Reads the model's sequence length, and how many hosts there are; an unknown model or system ends here. */
static enum status read_config(const struct options *o, const char *model, struct starter *s, struct error *e)
{
	char text[PATH_MAX_LEN + 1024], system[512];
	struct config *c = malloc(sizeof *c);
	const char **sizes = calloc(o->sets.n + 1, sizeof *sizes);
	struct machine m = {0};
	enum status st = c && sizes ? ST_OK : error_nomem(e, "the config");
	const size_t n_sizes = st ? 0 : size_sets(o, sizes);
	quote(system, sizeof system, s->system);
	const int len = snprintf(text, sizeof text, "model:\n  %s\ncluster:\n  system: %s\n", s->model, system);
	st = st ? st : config_parse(text, (size_t)len, STARTER_NAME, sizes, n_sizes, c, e);
	if (st == ST_INPUT && n_sizes > 0) { /* what is wrong in --set is said where the whole config is read */
		*e = (struct error){0};
		st = config_parse(text, (size_t)len, STARTER_NAME, NULL, 0, c, e);
	}
	if (st == ST_INPUT) {
		drop_position(e);
		error_context(e, "--model %s", model);
	}
	if (!st && o->gpus)
		st = target_take_gpus(c, o->gpus, e);
	if (!st && (st = machine_load(s->system, c->cluster.nodes, c->cluster.gpus_per_node, &m, e)))
		error_context(e, "--system %s", s->system);
	if (!st) {
		s->images = model_samples(&c->model) != NULL;
		s->sequence = c->model.seq_len < SEQUENCE_MOST ? c->model.seq_len : SEQUENCE_MOST;
		s->nodes = m.nodes;
		s->gpus = m.nodes * m.devices_per_node;
		s->per_node = c->cluster.gpus_per_node;
		s->at_once = config_is_given(c, KEY_train_micro_batch) ? c->train.micro_batch : 1;
	}
	machine_free(&m);
	free(sizes);
	free(c);
	return st;
}

static enum status read_batch(const struct options *o, struct starter *s, struct error *e)
{
	double tokens = TOKENS;
	if (o->tokens && (!compare_read_tokens(o->tokens, &tokens) || !(tokens >= 1 && tokens < 1e15)))
		return error_set(e, ST_INPUT, "--tokens %s: expected tokens a step, such as 4M or 500k", o->tokens);
	const double samples = s->images && !o->tokens ? IMAGES : tokens / (double)s->sequence;
	int64_t each = (int64_t)(samples / (double)s->gpus);
	each = each > s->at_once ? each / s->at_once * s->at_once : s->at_once;
	s->micro_batch = 1;
	while (s->images && s->micro_batch < IMAGES_AT_ONCE && each % (2 * s->micro_batch) == 0)
		s->micro_batch *= 2;
	s->batch = s->gpus * each;
	if (o->tokens && fabs((double)(s->batch * s->sequence) / tokens - 1) > 0.05)
		log_note("--tokens %s: %.3g M tokens are taken, a whole number of micro-batches on each GPU", o->tokens,
			(double)(s->batch * s->sequence) / 1e6);
	return ST_OK;
}

/* The stack of PyTorch for a strategy; an unknown one is refused where the config is parsed. */
static const char *stack_of(const char *strategy)
{
	for (int i = 0; i < STRAT_COUNT; i++)
		if (strcmp(strategy_name((enum strategy)i), strategy) == 0)
			return strategy_has((enum strategy)i, STRATEGY_UNITS) ? "pytorch-fsdp" : "pytorch-ddp";
	return "pytorch-ddp";
}

static void write(const struct starter *s, FILE *out)
{
	char system[512];
	if (strpbrk(s->system, ": '\"#"))
		quote(system, sizeof system, s->system);
	else
		snprintf(system, sizeof system, "%s", s->system);
	fprintf(out,
		"# Every key: configs/reference.yaml. Predict it: stepsim predict THIS_FILE\n"
		"model:\n"
		"  %s\n",
		s->model);
	if (!s->images)
		fprintf(out, "  seq_len: %lld # tokens of a sequence\n", (long long)s->sequence);
	fprintf(out, "train:\n  stack: %s # the training software: `stepsim list stacks`\n", stack_of(s->strategy));
	if (s->images)
		fprintf(out, "  global_batch: %lld # images a step, all GPUs together\n", (long long)s->batch);
	else
		fprintf(out, "  global_batch: %lld # sequences a step, all GPUs together: %.2f M tokens\n",
			(long long)s->batch, (double)(s->batch * s->sequence) / 1e6);
	fprintf(out,
		"  micro_batch: %lld # %s that a GPU computes at a time\n"
		"  recompute: none # none, selective, full: activations computed again in the backward pass\n"
		"parallel:\n"
		"  strategy: %s # ddp, zero1, zero2, fsdp, hsdp\n"
		"  tensor: 1 # GPUs that share each product\n"
		"  pipeline: 1 # stages\n"
		"cluster:\n"
		"  system: %s # `stepsim list systems`, or a line: 'gpu:8 rtx4090 nic:1x100Gb'\n"
		"  nodes: %lld # hosts\n",
		(long long)s->micro_batch, s->images ? "images" : "sequences", s->strategy, system,
		(long long)s->nodes);
	if (s->per_node > 0)
		fprintf(out, "  gpus_per_node: %lld # a part of the host\n", (long long)s->per_node);
}

enum status starter_text(const struct options *o, char **text, size_t *len, struct error *e)
{
	struct starter s = {.system = o->system ? o->system : STARTER_SYSTEM};
	const char *model = o->model ? o->model : "llama3-8b";
	enum status st = read_model(model, &s, e);
	if (st || (st = read_config(o, model, &s, e)) || (st = read_batch(o, &s, e)))
		return st;
	s.strategy = o->strategy ? o->strategy : s.gpus > 1 ? "fsdp" : "ddp";
	const char *key = "parallel.strategy";
	if ((st = config_key_typed(&key, &s.strategy, e)))
		return st;
	FILE *out = memory_stream(text, len);
	if (!out)
		return error_nomem(e, "the config");
	write(&s, out);
	return memory_stream_close(out) ? ST_OK : error_nomem(e, "the config");
}
