/* Recipes of frameworks that are Python: a function that builds a config, as torchtitan's config_registry.py,
 * Megatron-Bridge's and NeMo's recipes and scripts of nemo_run have it. */
#ifndef STEPSIM_STEP_IMPORT_PYTHON_H
#define STEPSIM_STEP_IMPORT_PYTHON_H

#include "base/yaml.h"

/* Makes a mapping of what the function `wanted` returns (NULL: pretrain_recipe, build_config, or the only one that
 * needs no arguments; where none returns a config, that which it fills; of several values the mapping with the most
 * keys; of a file without functions the tables that it assigns). Nothing is executed, and no other file is read. "a or
 * b" is b where a is not known.
 *
 *   understood   assignments, also to a.b.c and with +=; calls of functions of the file; `if` of what is known;
 * literals, arithmetic, comparisons; x.append(...), x.extend([...]) a call       Name(a=1, b=Other()) is {_target_:
 * Name, a: 1, b: {...}}; of run.Config(Name) and run.Partial(Name) the name is that inside; arguments without a name
 * are _0, _1 _from_       in place of _target_, of a function that the file lacks: its values are not known _line_N a
 * statement that is not run, `if` of something unknown or `for`, with its text _function_   the name of the function
 * What is not known is "$" with its text. A list of calls is a mapping by their names. ST_INPUT with position: strings
 * or brackets that stay open, no such function, several that could be meant, too long. */
enum status python_parse(const char *text, size_t len, const char *name, const char *wanted, struct ydoc **out,
	struct error *e);

/* Returns whether a line of the text begins a function of Python, or a table: "model = dict(". */
bool python_found(const char *text, size_t len);

#endif
