#include "cli/option_values.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/quantity.h"
#include "base/suggest.h"

enum status read_flag(struct options *o, const struct option_row *row, const char *value, struct error *e)
{
	(void)value;
	(void)e;
	*(bool *)(void *)((char *)o + row->offset) = true;
	return ST_OK;
}

enum status read_path(struct options *o, const struct option_row *row, const char *value, struct error *e)
{
	if (!*value)
		return error_set(e, ST_INPUT, "%s: expected a path, or - for standard output", row->name);
	const char **path = (const char **)(void *)((char *)o + row->offset);
	if (*path)
		return error_set(e, ST_INPUT, "%s is given twice: %s and %s", row->name, *path, value);
	*path = value;
	return ST_OK;
}

/* Stores a text that the command itself reads. */
enum status read_text(struct options *o, const struct option_row *row, const char *value, struct error *e)
{
	const char **text = (const char **)(void *)((char *)o + row->offset);
	if (*text)
		return error_set(e, ST_INPUT, "%s is given twice: %s and %s", row->name, *text, value);
	*text = value;
	return ST_OK;
}

enum status read_input(struct options *o, const struct option_row *row, const char *value, struct error *e)
{
	if (!*value)
		return error_set(e, ST_INPUT, "%s: expected a path, or - for standard input", row->name);
	return read_path(o, row, value, e);
}

/* Stores the text unread, behind those before it. */
enum status read_texts(struct options *o, const struct option_row *row, const char *value, struct error *e)
{
	struct option_texts *texts = (void *)((char *)o + row->offset);
	(void)e;
	texts->at[texts->n++] = value;
	return ST_OK;
}

enum status read_budget(struct options *o, const struct option_row *row, const char *value, struct error *e)
{
	if (quantity_parse(value, UNIT_USD, &o->budget_usd, e))
		return error_context(e, "%s", row->name);
	return o->budget_usd > 0 ? ST_OK
	                         : error_set(e, ST_INPUT, "%s %s: expected an amount above 0", row->name, value);
}

enum status read_max_error(struct options *o, const struct option_row *row, const char *value, struct error *e)
{
	if (quantity_parse(value, UNIT_NONE, &o->max_error_percent, e))
		return error_context(e, "%s", row->name);
	if (o->max_error_percent < 0)
		return error_set(e, ST_INPUT, "%s %s: expected a number of per cent, 0 or more", row->name, value);
	return ST_OK;
}

enum status read_seconds(struct options *o, const struct option_row *row, const char *value, struct error *e)
{
	if (quantity_parse(value, UNIT_SECOND, &o->seconds, e))
		return error_context(e, "%s", row->name);
	return o->seconds > 0 ? ST_OK : error_set(e, ST_INPUT, "%s %s: expected a time above 0", row->name, value);
}

#define WRITTEN_FRAMEWORKS "accelerate deepspeed megatron nanotron torchtitan torchtitan-0.2"

static const struct option_value values[] = {
	{"--progress", "auto always never", NULL}, /* as enum progress_mode */
	{"--backend", "auto cuda host", NULL},     /* as enum backend */
	{"--datatype", "float half bfloat16 int32 fp32 fp16 bf16", NULL},
	{"--strategy", "ddp zero1 zero2 fsdp hsdp", NULL},
	{"--model", NULL, "list models"},
	{"--system", NULL, "list systems"},
	/* configs/frameworks, which tests/unit/test_import.c compares */
	{"--from",
		"accelerate automodel axolotl deepspeed gpt-neox internevo levanter lingua litgpt "
		"llama-factory llm-foundry maxtext megatron nanotron nemo olmo olmo-core prime-rl "
		"torchtitan torchtitan-0.2 torchtune transformers",
		NULL},
	{"--to", WRITTEN_FRAMEWORKS, NULL},
	{"--emit", WRITTEN_FRAMEWORKS, NULL},
	{"--systems", NULL, "list systems"},
};

const struct option_value *option_value_of(const char *option)
{
	for (size_t i = 0; i < COUNT(values); i++)
		if (strcmp(values[i].option, option) == 0)
			return &values[i];
	return NULL;
}

_Static_assert(PROGRESS_AUTO == 0 && PROGRESS_ALWAYS == 1 && PROGRESS_NEVER == 2, "words of --progress");
_Static_assert(BACKEND_AUTO == 0 && BACKEND_CUDA == 1 && BACKEND_HOST == 2, "words of --backend");

#define MOST_WORDS 8

/* Finds `value` among the words of the row's option and returns its number in `out`. */
static enum status read_word(const struct option_row *row, const char *value, int *out, struct error *e)
{
	char text[64] = "", *rest = text;
	const char *words[MOST_WORDS], *word;
	size_t n = 0;
	snprintf(text, sizeof text, "%s", option_value_of(row->name)->words);
	while (n < MOST_WORDS && (word = strsep(&rest, " ")))
		words[n++] = word;
	for (size_t i = 0; i < n; i++) {
		if (suggest_same(value, words[i])) {
			*out = (int)i;
			return ST_OK;
		}
	}
	return error_set(e, ST_INPUT, "%s: unknown value '%s'%s", row->name, value,
		suggest(value, words, n, NULL).text);
}

enum status read_progress(struct options *o, const struct option_row *row, const char *value, struct error *e)
{
	int word = 0;
	enum status st = read_word(row, value, &word, e);
	o->progress = (enum progress_mode)word;
	return st;
}

enum status read_backend(struct options *o, const struct option_row *row, const char *value, struct error *e)
{
	int word = 0;
	enum status st = read_word(row, value, &word, e);
	o->backend = (enum backend)word;
	return st;
}

/* Reads a size as nccl-tests does: K, M, G are powers of 1024. MiB, MB and so on mean what they mean elsewhere. */
enum status read_size(struct options *o, const struct option_row *row, const char *value, struct error *e)
{
	static const char letters[] = "KMGT";
	char text[32];
	size_t n = strlen(value);
	const char *letter = n > 1 && n < sizeof text - 2 ? strchr(letters, toupper((unsigned char)value[n - 1]))
	                                                  : NULL;
	double bytes;
	if (letter && *letter) {
		snprintf(text, sizeof text, "%.*s%ciB", (int)n - 1, value, *letter);
		value = text;
	}
	if (quantity_parse(value, UNIT_BYTE, &bytes, e))
		return error_context(e, "-%c", row->letter);
	if (bytes < 1 || bytes > 0x1p50)
		return error_set(e, ST_INPUT, "-%c %s: expected a size between 1 B and 1 PiB", row->letter, value);
	*(uint64_t *)(void *)((char *)o + row->offset) = (uint64_t)bytes;
	return ST_OK;
}

static enum status read_count(struct options *o, const struct option_row *row, const char *value, long least,
	struct error *e)
{
	char *end;
	errno = 0;
	long n = strtol(value, &end, 10);
	if (end == value || *end || errno || n < least || n > 1000000000)
		return error_set(e, ST_INPUT, "-%c %s: expected a whole number, %ld or more", row->letter, value,
			least);
	*(int64_t *)(void *)((char *)o + row->offset) = n;
	return ST_OK;
}

enum status read_from_0(struct options *o, const struct option_row *row, const char *value, struct error *e)
{
	return read_count(o, row, value, 0, e);
}
enum status read_from_1(struct options *o, const struct option_row *row, const char *value, struct error *e)
{
	return read_count(o, row, value, 1, e);
}
enum status read_from_2(struct options *o, const struct option_row *row, const char *value, struct error *e)
{
	return read_count(o, row, value, 2, e);
}

enum status read_gpus(struct options *o, const struct option_row *row, const char *value, struct error *e)
{
	char *end;
	errno = 0;
	long n = strtol(value, &end, 10);
	if (end == value || *end || errno || n < 1 || n > 10000000)
		return error_set(e, ST_INPUT, "%s %s: expected a whole number from 1 to 10000000", row->name, value);
	o->gpus = n;
	return ST_OK;
}

/* Reads a format by nccl-tests' word or the config's. */
enum status read_dtype(struct options *o, const struct option_row *row, const char *value, struct error *e)
{
	static const enum dtype dtypes[] = {DT_FP32, DT_FP16, DT_BF16, DT_INT32, DT_FP32, DT_FP16, DT_BF16};
	int word = 0;
	enum status st = read_word(row, value, &word, e);
	o->bench.dtype = dtypes[word];
	return st;
}
