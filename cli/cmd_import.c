/* `stepsim import FILE`: another framework's config as CONFIG.yaml, with a remark for each of its keys. */
#include <stdlib.h>
#include <string.h>

#include "base/paths.h"
#include "cli/command.h"
#include "cli/import.h"
#include "cli/source.h"

static enum status write(const struct options *o, const struct import *im, struct error *e)
{
	char *text = NULL;
	size_t len = 0;
	enum status st = import_text(im, &text, &len, e);
	if (!st)
		st = file_write(o->output ? o->output : "-", text, len, e);
	free(text);
	return st;
}

/* Says why a file is no config of a framework. */
static enum status refuse(const struct import *im, const char *path, struct error *e)
{
	if (!*im->first.key)
		return error_set(e, ST_INPUT, "%s:1:1: the file has no keys", path);
	if (im->is_ours)
		return error_set(e, ST_INPUT,
			"%s:%d:%d: %s: this is a CONFIG.yaml already: `stepsim predict` and all other commands read it "
			"as it is",
			path, im->first.line, im->first.col, im->first.key);
	return error_set(e, ST_INPUT,
		"%s:%d:%d: its keys (the first: \"%s\") are those of no known framework; --from NAME names one (%s)",
		path, im->first.line, im->first.col, im->first.key, options_words("--from"));
}

enum status cmd_import(struct context *x, struct error *e)
{
	struct options o = *x->options;
	struct error refused = {0};
	const char *path = o.positional[0];
	char *text = NULL;
	size_t len = 0;
	bool found = false;
	if (o.n_positional > 2 || (o.n_positional == 2 && o.model))
		return error_set(e, ST_INPUT, "unexpected argument '%s': a config and one model",
			o.positional[o.n_positional - 1]);
	if (o.n_positional == 2)
		o.model = o.positional[1];
	struct import *im = calloc(1, sizeof *im);
	enum status st = im ? source_text(path, &text, &len, e) : error_nomem(e, "an import");
	if (!st)
		st = import_complete(&o, text, len, strcmp(path, "-") == 0 ? "standard input" : path, &found, im,
			&refused, e);
	if (!st && !found)
		st = refuse(im, path, e);
	if (!st && !(st = write(&o, im, e)) && refused.status)
		st = error_set(e, refused.status, "the config that was written is not complete: %s", refused.text);
	if (found && im)
		import_free(im);
	free(im);
	free(text);
	return st;
}
