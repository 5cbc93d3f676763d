/* `stepsim init [FILE]`: a short commented config to start from. */
#include <stdlib.h>
#include <unistd.h>

#include "base/paths.h"
#include "cli/command.h"
#include "cli/starter.h"

enum status cmd_init(struct context *x, struct error *e)
{
	const struct options *o = x->options;
	const char *path = o->n_positional ? o->positional[0] : "-";
	char *text = NULL;
	size_t len = 0;
	if (o->n_positional > 1)
		return error_set(e, ST_INPUT, "unexpected argument '%s'", o->positional[1]);
	if (o->n_positional && access(path, F_OK) == 0)
		return error_set(e, ST_INPUT, "init: %s exists already; give another name, or none to print the config",
			path);
	enum status st = starter_text(o, &text, &len, e);
	if (!st)
		st = file_write(path, text, len, e);
	free(text);
	return st;
}
