#include "step/plan.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/paths.h"
#include "step/config/keys.h"

#define ROW(id, key) KEY_##key,
static const enum key_id ids[] = {PLAN_KEY_ROWS(ROW)};

const char *plan_key_path(enum plan_key k) { return config_key(ids[k])->path; }

bool plan_key_used(enum plan_key k, enum strategy s) { return strategy_has(s, config_key(ids[k])->used_by); }

uint32_t plan_held(const struct config *c)
{
	uint32_t held = 0;
	for (int k = 0; k < PLAN_KEYS; k++)
		if (c->origin[ids[k]].kind == ORIGIN_SET)
			held |= 1u << k;
	if (c->origin[KEY_parallel_replicate].kind == ORIGIN_SET) /* it says the shard */
		held |= 1u << PLAN_SHARD;
	return held;
}

bool plan_holds_data(const struct config *c) { return c->origin[KEY_parallel_data].kind == ORIGIN_SET; }

static void mark(struct config *c, enum key_id id)
{
	if (!config_is_given(c, id))
		c->origin[id] = (struct key_origin){.kind = ORIGIN_FILE};
}

void plan_put(struct config *c, enum plan_key k, double value)
{
	key_set_number(config_key(ids[k]), c, value);
	mark(c, ids[k]);
}

double plan_get(const struct config *c, enum plan_key k) { return key_number(config_key(ids[k]), c); }

static_assert(PLAN_VALUE >= KEY_VALUE_MAX, "a value fits");

char *plan_value(const struct config *c, enum plan_key k, char buf[PLAN_VALUE])
{
	return key_value_text(config_key(ids[k]), c, buf);
}

void plan_put_cluster(struct config *c, int64_t nodes, int64_t gpus_per_node)
{
	c->cluster.nodes = nodes;
	mark(c, KEY_cluster_nodes);
	if (gpus_per_node == 0)
		return;
	c->cluster.gpus_per_node = gpus_per_node;
	mark(c, KEY_cluster_gpus_per_node);
}

/* ---- in words ---- */

/* X(id, word, meaning): in the order of plan_words. Of strategies only the one with a number is here, and no schedules:
 * the config has their words. */
#define TERM_ROWS(X) \
	X(TENSOR, "tp", "tensor-parallel ranks") \
	X(SEQUENCE, "sp", "sequence parallelism") \
	X(CONTEXT, "cp", "context-parallel ranks") \
	X(EXPERT, "ep", "expert-parallel ranks") \
	X(OVERLAPPED, "overlapped", "collectives run during products") \
	X(EXPERT_TENSOR, "etp", "ranks that share an expert") \
	X(PIPELINE, "pp", "pipeline stages, the schedule, chunks of a stage") \
	X(DATA, "dp", "data-parallel ranks") \
	X(HSDP, "hsdp", "weights are cut among so many of these, and copied to the others") \
	X(MICRO_BATCH, "mb", "sequences of a micro-batch") \
	X(SELECTIVE, "selective", "attention or some modules are recomputed") \
	X(FULL, "full", "layers are recomputed, all or so many") \
	X(PREFETCH, "prefetch", "units gathered ahead") \
	X(KEPT, "kept", "weights stay gathered for the backward pass") \
	X(BUCKET, "bucket", "MiB of a bucket of gradients")

#define TERM_ID(id, word, meaning) TERM_##id,
#define TERM(id, word, meaning) {word, meaning},
enum term { TERM_ROWS(TERM_ID) TERMS };
static const struct {
	const char *word, *meaning;
} terms[] = {TERM_ROWS(TERM)};

static void say(char buf[PLAN_WORDS], const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void say(char buf[PLAN_WORDS], const char *fmt, ...)
{
	va_list ap;
	size_t len = strlen(buf);
	if (len)
		len += (size_t)snprintf(buf + len, PLAN_WORDS - len, " ");
	va_start(ap, fmt);
	vsnprintf(buf + len, PLAN_WORDS - len, fmt, ap);
	va_end(ap);
}

static void say_term(char buf[PLAN_WORDS], enum term t) { say(buf, "%s", terms[t].word); }

static void say_count(char buf[PLAN_WORDS], enum term t, int64_t n) { say(buf, "%s %" PRId64, terms[t].word, n); }

char *plan_words(const struct config *c, char buf[PLAN_WORDS])
{
	static const enum term of_recompute[REC_COUNT] = {[REC_SELECTIVE] = TERM_SELECTIVE, [REC_FULL] = TERM_FULL};
	const struct parallel *p = &c->parallel;
	const bool reduces = p->data * p->context > 1, units = strategy_has(p->strategy, STRATEGY_UNITS);
	buf[0] = '\0';
	if (p->tensor > 1)
		say_count(buf, TERM_TENSOR, p->tensor);
	if (p->tensor > 1 && (p->sequence_parallel || p->tensor_overlap))
		say_term(buf, TERM_SEQUENCE);
	if (p->tensor > 1 && p->tensor_overlap)
		say_term(buf, TERM_OVERLAPPED);
	if (p->context > 1)
		say_count(buf, TERM_CONTEXT, p->context);
	if (p->expert > 1)
		say_count(buf, TERM_EXPERT, p->expert);
	if (p->expert > 1 && p->expert_overlap)
		say_term(buf, TERM_OVERLAPPED);
	if (p->expert_tensor > 1)
		say_count(buf, TERM_EXPERT_TENSOR, p->expert_tensor);
	if (p->pipeline > 1) {
		say_count(buf, TERM_PIPELINE, p->pipeline);
		say(buf, "%s", schedule_traits[p->schedule].name);
	}
	if (p->pipeline > 1 && p->virtual_stages > 1)
		say(buf, "%" PRId64, p->virtual_stages);
	say_count(buf, TERM_DATA, p->data);
	if (reduces)
		say(buf, "%s", strategy_name(p->strategy));
	if (reduces && (strategy_has(p->strategy, STRATEGY_REPLICAS) || p->shard < p->data))
		say(buf, "%" PRId64, p->shard);
	say_count(buf, TERM_MICRO_BATCH, c->train.micro_batch);
	if (c->train.recompute != REC_NONE)
		say_term(buf, of_recompute[c->train.recompute]);
	if (c->train.recompute != REC_NONE && c->train.recompute_layers < c->model.layers)
		say(buf, "%" PRId64, c->train.recompute_layers);
	if (reduces && units)
		say_count(buf, TERM_PREFETCH, p->prefetch);
	else if (reduces && strategy_has(p->strategy, STRATEGY_BUCKETS))
		say(buf, "%s %g", terms[TERM_BUCKET].word, p->bucket_B / MIB_B);
	if (reduces && units && !p->reshard_after_forward)
		say_term(buf, TERM_KEPT);
	if (reduces && !p->overlap && strategy_has(p->strategy, STRATEGY_REDUCES))
		say(buf, "no overlap");
	return buf;
}

uint32_t plan_terms(const char *words)
{
	uint32_t found = 0;
	char copy[PLAN_WORDS], *rest = copy;
	snprintf(copy, sizeof copy, "%s", words);
	for (const char *word; (word = strsep(&rest, " "));)
		for (int t = 0; t < TERMS; t++)
			if (!strcmp(word, terms[t].word))
				found |= 1u << t;
	return found;
}

void plan_terms_explain(uint32_t found, FILE *out)
{
	const char *before = "Words of a plan: ";
	for (int t = 0; t < TERMS; t++)
		if (found & 1u << t) {
			fprintf(out, "%s%s: %s", before, terms[t].word, terms[t].meaning);
			before = "; ";
		}
	if (found)
		fputc('\n', out);
}

/* ---- as a file ---- */

/* Returns whether a value may name a file; a name of the catalogue has no slash and no dot. */
static bool is_path(enum key_id id, const char *value)
{
	return id == KEY_model_hf_config || (id == KEY_train_stack && config_stack_is_file(value)) ||
	       ((id == KEY_cluster_profile || id == KEY_cluster_system || id == KEY_cluster_fabric) &&
		       strpbrk(value, "/."));
}

/* Writes the path of a file that a key names, valid from any folder: next to the config first, as the readers look for
 * it (but not for a system). */
static void whole_path(const struct config *c, enum key_id id, const char *name, char out[PATH_MAX_LEN])
{
	char beside[PATH_MAX_LEN];
	char *whole = NULL;
	if (id != KEY_cluster_system && path_beside(c->path, name, beside))
		whole = realpath(beside, NULL);
	if (!whole)
		whole = realpath(name, NULL);
	snprintf(out, PATH_MAX_LEN, "%s", whole ? whole : name);
	free(whole);
}

static void quote(const char *text, FILE *out)
{
	fputc('"', out);
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			fputc('\\', out);
		fputc(*text, out);
	}
	fputc('"', out);
}

/* Files of a list are parted by commas. */
static void put_paths(const struct config *c, enum key_id id, const char *value, FILE *out)
{
	char names[KEY_VALUE_MAX], path[PATH_MAX_LEN];
	snprintf(names, sizeof names, "%s", value);
	const bool list = config_key(id)->type == KEY_TEXTS;
	fputs(list ? "[" : "", out);
	char *save = NULL, *name = list ? strtok_r(names, ",", &save) : names;
	for (bool first = true; name; name = list ? strtok_r(NULL, ",", &save) : NULL, first = false) {
		whole_path(c, id, name + strspn(name, " "), path);
		fputs(first ? "" : ", ", out);
		quote(path, out);
	}
	fputs(list ? "]" : "", out);
}

static bool is_written(const struct config *c, enum key_id id)
{
	const struct config_key *k = config_key(id);
	if (id == KEY_parallel_layers_per_stage && c->parallel.n_layers_per_stage == 0)
		return false;
	return config_is_given(c, id) && strategy_has(c->parallel.strategy, k->used_by);
}

enum status plan_write_yaml(const struct config *c, const char *heading, FILE *out, struct error *e)
{
	if (heading)
		fputs(heading, out);
	const char *section = "";
	for (int i = 0; i < KEY_COUNT; i++) {
		const enum key_id id = (enum key_id)i;
		const struct config_key *k = config_key(id);
		char value[KEY_VALUE_MAX];
		if (!is_written(c, id))
			continue;
		if (strcmp(k->section, section) != 0)
			fprintf(out, "%s:\n", k->section);
		section = k->section;
		key_value_text(k, c, value);
		fprintf(out, "  %s: ", k->name);
		if (is_path(id, value)) {
			put_paths(c, id, value, out);
		} else if (k->type == KEY_TEXT || k->type == KEY_TEXTS) {
			quote(value, out);
		} else {
			fputs(value, out);
		}
		fputc('\n', out);
	}
	return ferror(out) ? error_set(e, ST_RUN, "the plan could not be written") : ST_OK;
}
