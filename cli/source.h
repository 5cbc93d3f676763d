/* The text of the config that a command is about, read once: a file, standard input, or one made from --model. */
#ifndef STEPSIM_CLI_SOURCE_H
#define STEPSIM_CLI_SOURCE_H

#include "cli/options.h"

/* Reads a config's text: "-" is standard input, and "recipe.py:llama3_8b" a function of the file recipe.py
 * (step/import/python.h). */
enum status source_text(const char *path, char **text, size_t *len, struct error *e);

/* Reads `path` ("-": standard input; NULL: what starter_text makes of the options) into o->config, which source_free
 * frees. ST_INPUT: it cannot be read, it is no YAML, or the options name no model or system. */
enum status source_read(struct options *o, const char *path, struct error *e);
void source_free(struct options *o);

/* Returns the config as a user names it in a command: its path, also where another framework's file was read. */
const char *source_argument(const struct options *o);

/* Reads o->config with the options' --set texts, as config_parse. */
enum status source_parse(const struct options *o, struct config *c, struct error *e);

/* Returns whether a file, or the config.json of a folder, is a Hugging Face model: what `--model` takes. */
bool source_is_model(const char *path);

/* Returns whether the name of a file is that of a config (.yaml, .toml, .sh, .py), where traces or logs may stand
 * beside it. */
bool source_is_config(const char *path);

#endif
