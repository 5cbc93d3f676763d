/* TOML 1.0 into the tree of base/yaml.h, with positions (https://toml.io/en/v1.0.0).
 *
 * Tables and inline tables become mappings, arrays and arrays of tables lists, values texts: a string is `quoted`, a
 * number has lost its underscores. Dates stay texts. Refused: duplicate keys and tables, nesting deeper than 32, more
 * than 20,000 keys.
 */
#ifndef STEPSIM_BASE_TOML_H
#define STEPSIM_BASE_TOML_H

#include "base/yaml.h"

/* ST_INPUT: "name:line:col: what". The document owns its nodes (ydoc_destroy). */
enum status toml_parse(const char *text, size_t len, const char *name, struct ydoc **out, struct error *e);

#endif
