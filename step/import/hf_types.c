/* The types of Hugging Face models that can be described. */
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/suggest.h"
#include "step/import/hf_reader.h"

#define KNOWN "docs/reference.md lists those that are known"

static const struct {
	const char *name;
	hf_type_fn *read;
} types[] = {
#define TYPE(name, fn) {name, hf_type_##fn},
	HF_TYPES(TYPE)};

static const struct {
	const char *name, *has, *nearest;
} missing[] = {
#define MISSING(name, has, nearest) {name, has, nearest},
	HF_MISSING(MISSING)};

/* Names what a type has that no key describes; false: the type is none of those. */
static bool is_missing(struct hf_reader *r, const char *type)
{
	for (size_t i = 0; type && i < COUNT(missing); i++)
		if (strcmp(missing[i].name, type) == 0) {
			r->st = error_set(r->e, ST_INPUT,
				"%s: model_type: %s has %s, which cannot be described (nearest: %s; %s)", r->name, type,
				missing[i].has, missing[i].nearest, KNOWN);
			return true;
		}
	return false;
}

static void unknown_type(struct hf_reader *r, const char *type)
{
	const char *names[COUNT(types)];
	char nearest[80] = "";
	for (size_t i = 0; i < COUNT(types); i++)
		names[i] = types[i].name;
	const char *near = type ? suggest_nearest(type, names, COUNT(types)) : NULL;
	if (near)
		snprintf(nearest, sizeof nearest, "nearest: %s; ", near);
	if (!type)
		r->st = error_set(r->e, ST_INPUT, "%s: model_type: missing (%s)", r->name, KNOWN);
	else
		r->st = error_set(r->e, ST_INPUT, "%s: model_type: unknown value \"%.60s\" (%s%s)", r->name, type,
			nearest, KNOWN);
}

static bool read_known(struct hf_reader *r, const char *type)
{
	for (size_t i = 0; type && i < COUNT(types); i++) {
		if (strcmp(types[i].name, type) != 0)
			continue;
		snprintf(r->out->model.name, sizeof r->out->model.name, "%s", type);
		types[i].read(r, &r->out->model);
		return true;
	}
	return false;
}

/* Reads the language model inside one that sees or hears, where its type is known. */
static bool read_inner(struct hf_reader *r, const char *type)
{
	static const char *const keys[] = {"text_config", "language_config", "llm_config"};
	const struct hf_reader thinker = hf_inside(r, "thinker_config"); /* of Qwen's that speak */
	for (size_t i = 0; type && i < COUNT(keys); i++) {
		struct hf_reader inner = hf_inside(&thinker, keys[i]);
		const char *of = json_string_value(hf_get(&inner, "model_type"));
		if (inner.root == thinker.root || (!read_known(&inner, of) && !is_missing(&inner, of)))
			continue;
		r->st = inner.st;
		if (!hf_get(&inner, "tie_word_embeddings")) /* the whole model's own counts there */
			r->out->model.tied_embeddings = hf_bool(r, "tie_word_embeddings",
				r->out->model.tied_embeddings);
		if (!r->st)
			hf_leaves_out(r, "all of it but the language model");
		return true;
	}
	return false;
}

void hf_read_type(struct hf_reader *r, const char *type)
{
	if (!read_known(r, type) && !is_missing(r, type) && !read_inner(r, type))
		unknown_type(r, type);
}
