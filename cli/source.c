#include "cli/source.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/paths.h"
#include "cli/starter.h"

enum status source_read(struct options *o, const char *path, struct error *e)
{
	char *text = NULL;
	size_t len = 0;
	const bool piped = path && strcmp(path, "-") == 0;
	source_free(o);
	enum status st = path ? file_read(piped ? "/dev/stdin" : path, CONFIG_LIMIT_B, &text, &len, e)
	                      : starter_text(o, &text, &len, e);
	if (st) {
		free(text);
		return st;
	}
	o->config = (struct config_text){.name = piped ? "standard input" : path ? path : "options", text, len};
	return ST_OK;
}

void source_free(struct options *o)
{
	free((char *)o->config.text);
	o->config = (struct config_text){0};
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

enum status source_parse(const struct options *o, struct config *c, struct error *e)
{
	enum status st = config_parse(o->config.text, o->config.len, o->config.name, o->sets, o->n_sets, c, e);
	if (!st && c->stack_given[0])
		log_note("train.stack: \"%s\" is configs/stacks/%s.yaml", c->stack_given, c->train.stack);
	if (!st)
		note_hf_config(c);
	return st;
}
