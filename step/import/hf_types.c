/* The types of Hugging Face models that can be described. */
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/suggest.h"
#include "step/import/hf_reader.h"

static const struct {
	const char *name;
	hf_type_fn *read;
} types[] = {
#define TYPE(name, fn) {name, hf_type_##fn},
	HF_TYPES(TYPE)};

static void unknown_type(struct hf_reader *r, const char *type)
{
	const char *names[COUNT(types)];
	char known[800] = "";
	for (size_t i = 0; i < COUNT(types); i++) {
		const size_t n = strlen(known);
		names[i] = types[i].name;
		snprintf(known + n, sizeof known - n, "%s%s", n ? ", " : "", names[i]);
	}
	const char *near = type ? suggest_nearest(type, names, COUNT(types)) : NULL;
	if (!type)
		r->st = error_set(r->e, ST_INPUT, "%s: model_type: missing (known: %s)", r->name, known);
	else
		r->st = error_set(r->e, ST_INPUT, "%s: model_type: unknown value \"%.60s\" (%s%s%sknown: %s)", r->name,
			type, near ? "nearest: " : "", near ? near : "", near ? "; " : "", known);
}

void hf_read_type(struct hf_reader *r, const char *type)
{
	for (size_t i = 0; type && i < COUNT(types); i++) {
		if (strcmp(types[i].name, type) != 0)
			continue;
		snprintf(r->out->model.name, sizeof r->out->model.name, "%s", type);
		types[i].read(r, &r->out->model);
		return;
	}
	unknown_type(r, type);
}
