#include "cli/source.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/log.h"
#include "base/paths.h"
#include "cli/import.h"
#include "cli/starter.h"
#include "step/import/hf_config.h"

static bool is_assumed(const struct import *im, enum key_id id)
{
	return import_has(im, id) && strncmp(im->key[id].remark, "assumed", 7) == 0;
}

static void note_machine(const struct import *im)
{
	const bool hosts = is_assumed(im, KEY_cluster_nodes);
	if (is_assumed(im, KEY_cluster_system))
		log_note("it names no machine: %s%s is assumed (%s--set cluster.system=NAME takes another)",
			hosts ? "one " : "", im->key[KEY_cluster_system].value, hosts ? "--gpus N takes more, " : "");
}

static void note_vocabulary(const struct import *im)
{
	if (is_assumed(im, KEY_model_vocab))
		log_note("it names no vocabulary: %s tokens are assumed (--set model.vocab=N takes another)",
			im->key[KEY_model_vocab].value);
}

/* Counts the values that the text leaves to others, of which some decide a step's time. */
static void note_absent(const struct import *im)
{
	const struct leaf *first = NULL;
	size_t n = 0;
	for (size_t i = im->foreign.leaves.n; i-- > 0;) {
		const struct leaf *l = &im->foreign.leaves.at[i];
		if (!l->absent || l->verdict != NOT_MODELLED)
			continue;
		first = l;
		n++;
	}
	if (first && first->alone)
		log_note("%s: %s = %s: %s", im->name, first->path, first->value, first->why);
	else if (first)
		log_note("%s: %zu of its values %s not in the file, such as %s = %s %s", im->name, n,
			n == 1 ? "is" : "are", first->path, first->value, strchr(first->why, '('));
}

/* Names a key that stepsim does not know: the framework refuses a slip of the pen, and its default counts here. */
static void note_unknown(const struct import *im)
{
	const struct leaf *first = NULL;
	size_t n = 0;
	for (size_t i = im->foreign.leaves.n; i-- > 0;) {
		const struct leaf *l = &im->foreign.leaves.at[i];
		if (!l->unknown)
			continue;
		first = !first || l->near || !first->near ? l : first;
		n++;
	}
	if (first)
		log_note("%s:%d: %s is no key that stepsim knows%s%s%s%s", im->name, first->node->key_line, first->path,
			first->near ? " (nearest: " : "", first->near ? first->near : "", first->near ? ")" : "",
			n > 1 ? "; nor are others" : "");
}

/* Replaces the text of another framework's config by CONFIG.yaml. What cannot be read stays, and *unread says why it is
 * no such config: whoever parses it as CONFIG.yaml says why it is none.
 */
static enum status import_if_foreign(struct options *o, const char *path, char **text, size_t *len,
	struct error *unread, struct error *e)
{
	struct import *im = calloc(1, sizeof *im);
	struct error refused = {0};
	size_t count[VERDICT_COUNT];
	char *config = NULL;
	bool found = false;
	*o->imported = '\0';
	if (!im)
		return error_nomem(e, "an import");
	enum status st = import_complete(o, *text, *len, path, &found, im, &refused, unread);
	if (st && (found || st != ST_INPUT))
		st = error_set(e, st, "%s", unread->text);
	else if (!found)
		st = im->is_strange
		             ? error_set(e, ST_INPUT,
				       "%s:%d:%d: its keys (the first: \"%s\") are neither sections of CONFIG.yaml nor "
				       "those of a known framework; --from NAME names one (%s)",
				       path, im->first.line, im->first.col, im->first.key, options_words("--from"))
		             : ST_OK;
	if (!st && found)
		note_absent(im);
	if (!st && found)
		note_unknown(im);
	if (!st && refused.status)
		st = error_set(e, refused.status, "%s", refused.text);
	if (!st && found && !(st = import_text(im, &config, len, e))) {
		free(*text);
		*text = config;
		snprintf(o->imported, sizeof o->imported, "%.200s" IMPORT_WRITTEN, path);
		import_count(im, count);
		log_note("%s: a config of %s, of which %zu keys are taken and %zu not modelled (`stepsim import` shows "
			 "each)",
			path, im->table.title, count[TAKEN], count[NOT_MODELLED]);
		note_machine(im);
		note_vocabulary(im);
	}
	if (found)
		import_free(im);
	free(im);
	return st;
}

enum status source_text(const char *path, char **text, size_t *len, struct error *e)
{
	char file[PATH_MAX_LEN];
	const char *part = foreign_part(path);
	if (strcmp(path, "-") == 0)
		return file_read("/dev/stdin", CONFIG_LIMIT_B, text, len, e);
	snprintf(file, sizeof file, "%.*s", part ? (int)(part - 1 - path) : (int)strlen(path), path);
	return file_read(file, CONFIG_LIMIT_B, text, len, e);
}

bool source_is_model(const char *path)
{
	char file[PATH_MAX_LEN], *text = NULL;
	struct error none = {0};
	struct stat at;
	size_t len = 0;
	const bool folder = stat(path, &at) == 0 && S_ISDIR(at.st_mode);
	if (strcmp(path, "-") == 0 || foreign_part(path))
		return false;
	snprintf(file, sizeof file, "%.3900s%s", path, folder ? "/config.json" : "");
	const bool rereadable = stat(file, &at) == 0 && S_ISREG(at.st_mode), /* a pipe has its text once */
		is = rereadable && file_read(file, CONFIG_LIMIT_B, &text, &len, &none) == ST_OK &&
	             hf_config_is(text, len);
	free(text);
	return is;
}

/* A preset's name in place of a file's is refused with the option that takes it. */
static enum status refuse_preset(const char *path, struct error *e)
{
	char preset[PATH_MAX_LEN];
	struct error none = {0};
	if (strpbrk(path, "./") || path_catalogue("models", path, preset, &none) || access(preset, R_OK) != 0)
		return ST_OK;
	*e = (struct error){0};
	return error_set(e, ST_INPUT, "no file %s; the preset of this name is --model %s", path, path);
}

/* --model and --system say what another framework's config leaves open; a CONFIG.yaml says it itself. */
static enum status refuse_starter(const struct options *o, const char *path, struct error *e)
{
	if (*o->imported)
		return ST_OK;
	if (o->model)
		return error_set(e, ST_INPUT, "--model %s and the config %s: give one of them", o->model, path);
	if (o->system)
		return error_set(e, ST_INPUT,
			"--system goes with --model, or with the config of another framework; in %s "
			"--set cluster.system=%s overrides it",
			path, o->system);
	return ST_OK;
}

static bool ends_with(const char *path, const char *end)
{
	const size_t n = strlen(path), len = strlen(end);
	return n > len && strcmp(path + n - len, end) == 0;
}

/* A file of this ending, or a part of it, is no YAML: what its own reader says of it counts. */
static bool is_other_form(const char *path)
{
	static const char *const ends[] = {".json", ".toml", ".py", ".sh"};
	bool is = path && foreign_part(path);
	for (size_t i = 0; path && i < COUNT(ends); i++)
		is = is || ends_with(path, ends[i]);
	return is;
}

enum status source_read(struct options *o, const char *path, struct error *e)
{
	struct error unread = {0}, wrong = {0};
	char *text = NULL;
	size_t len = 0;
	const bool piped = path && strcmp(path, "-") == 0;
	source_free(o);
	enum status st = path ? source_text(path, &text, &len, e) : starter_text(o, &text, &len, e);
	if (st == ST_INPUT && path && refuse_preset(path, e))
		st = e->status;
	if (!st && path)
		st = import_if_foreign(o, path, &text, &len, &unread, e);
	o->config.name = *o->imported ? o->imported : piped ? "standard input" : path ? path : STARTER_NAME;
	if (!st && unread.status && is_other_form(path))
		st = error_set(e, ST_INPUT, "%s", unread.text);
	if (!st && (st = config_reader_create(text, len, o->config.name, &o->config.reader, &wrong)))
		error_set(e, st, "%s", wrong.text);
	if (!st && path)
		st = refuse_starter(o, path, e);
	free(text);
	return st;
}

void source_free(struct options *o)
{
	config_reader_destroy(o->config.reader);
	o->config = (struct config_source){0};
}

/* What a Hugging Face config.json leaves open. */
static void note_hf_config(const struct config *c)
{
	if (c->longest_seq > HF_SEQ_LEN && c->model.seq_len == HF_SEQ_LEN)
		log_note(
			"model.seq_len: %d of the %lld tokens that the model takes; set the length that you train with",
			HF_SEQ_LEN, (long long)c->longest_seq);
	if (c->left_out[0])
		log_note("model.hf_config: left out, because not modelled: %s", c->left_out);
}

const char *source_argument(const struct options *o)
{
	return *o->imported && o->n_positional ? o->positional[0] : o->config.name;
}

enum status source_parse(const struct options *o, struct config *c, struct error *e)
{
	enum status st = config_read(o->config.reader, o->sets.at, o->sets.n, c, e);
	if (!st && c->stack_given[0])
		log_note("train.stack: \"%s\" is configs/stacks/%s.yaml", c->stack_given, c->train.stack);
	if (!st)
		note_hf_config(c);
	return st;
}

bool source_is_config(const char *path)
{
	static const char *const ends[] = {".yaml", ".yml", ".toml", ".sh", ".py"};
	const char *dot = strrchr(path, '.');
	for (size_t i = 0; dot && i < COUNT(ends); i++)
		if (strcmp(dot, ends[i]) == 0)
			return true;
	return foreign_part(path) != NULL;
}
