/* A config whose parts several functions build: a call names them in arguments that end in "_builder", as
 * main(global_batch_size=..., model_config_builder=build_model_config) in scripts of OLMo-core. */
#include <string.h>

#include "base/array.h"
#include "step/import/python_value.h"

#define BUILDER "_builder"

static bool ends_in(const char *name, size_t len, const char *end)
{
	const size_t n = strlen(end);
	return len > n && strncmp(name + len - n, end, n) == 0;
}

/* Returns the function of the file that an argument names; NULL without one. */
static const struct py_function *builder_of(const struct py_reader *r, const struct ynode *argument)
{
	if (!ends_in(argument->key, strlen(argument->key), BUILDER) || !py_is_unknown(argument))
		return NULL;
	return py_function(r, argument->text + 1, strlen(argument->text + 1));
}

/* Finds the call, the first that has model_config_builder. Its function's own head has a type there, no value. */
static bool find_call(const struct py_reader *r, struct py_span *call)
{
	for (size_t i = 0; i < r->lines.lines.n; i++) {
		struct py_span s = py_words_of(r, i);
		for (const struct py_word *w = s.at; w + 1 < s.end; w++)
			if (py_is(w, "model_config_builder") && py_is(w + 1, "=")) {
				const struct py_word *is = py_find(s, "=");
				s.at = is < s.end ? is + 1 : s.at;
				*call = s;
				return true;
			}
	}
	return false;
}

/* Puts what a function builds under the name of its argument, without "_builder" and what kind of thing it is. What
 * has several parts, as data have, stands beside the others. */
static void put_built(struct py_reader *r, struct ynode *root, const struct ynode *argument, struct ynode *built)
{
	static const char *const kinds[] = {"_config", "_components"};
	const struct py_word w = {.line = argument->key_line, .col = argument->key_col};
	size_t len = strlen(argument->key) - strlen(BUILDER);
	for (size_t i = 0; i < COUNT(kinds); i++)
		len -= ends_in(argument->key, len, kinds[i]) ? strlen(kinds[i]) : 0;
	if (len != strlen("data") || strncmp(argument->key, "data", len) != 0) {
		py_put(&r->tree, root, &w, argument->key, len, built);
		return;
	}
	for (size_t i = 0; built->kind == Y_MAP && i < built->n; i++)
		py_put(&r->tree, root, &w, built->child[i]->key, strlen(built->child[i]->key), built->child[i]);
}

/* Puts a value of the call where a part that no function builds has it. */
static void put_default(struct py_reader *r, struct ynode *root, const struct ynode *common, const char *name,
	const char *part, const char *key)
{
	struct ynode *value = py_get(common, name, strlen(name)), *map = py_get(root, part, strlen(part));
	if (!value || map)
		return;
	const struct py_word w = {.line = value->key_line, .col = value->key_col};
	map = py_node(&r->tree, &w, Y_MAP);
	py_put(&r->tree, root, &w, part, strlen(part), map);
	py_put(&r->tree, map, &w, key, strlen(key), value);
}

struct ynode *py_builders(struct py_reader *r, const struct py_function **first)
{
	struct py_span call;
	*first = NULL;
	if (!find_call(r, &call))
		return NULL;
	const struct py_word *w = call.at;
	struct ynode *given = py_value(r, &call), *common = py_node(&r->tree, w, Y_MAP),
		     *root = py_node(&r->tree, w, Y_MAP), *arguments = py_node(&r->tree, w, Y_MAP);
	if (!given || given->kind != Y_MAP || !common || !root || !arguments)
		return NULL;
	for (size_t i = 0; i < given->n; i++)
		if (!ends_in(given->child[i]->key, strlen(given->child[i]->key), BUILDER))
			py_put(&r->tree, common, w, given->child[i]->key, strlen(given->child[i]->key),
				given->child[i]);
	py_put(&r->tree, arguments, w, "_0", 2, common);
	for (size_t i = 0; i < given->n; i++) {
		const struct py_function *f = builder_of(r, given->child[i]);
		struct ynode *built = f ? py_call(r, f, arguments) : NULL;
		if (built)
			put_built(r, root, given->child[i], built);
		*first = *first ? *first : f;
	}
	put_default(r, root, common, "global_batch_size", "data_loader", "global_batch_size");
	put_default(r, root, common, "max_sequence_length", "dataset", "sequence_length");
	put_default(r, root, common, "sequence_length", "dataset", "sequence_length");
	return *first ? root : NULL;
}
