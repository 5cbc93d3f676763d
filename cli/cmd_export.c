/* `stepsim export CONFIG --to NAME`: a config as another framework's flags or file. */
#include <stdio.h>
#include <stdlib.h>

#include "base/memory_stream.h"
#include "base/paths.h"
#include "cli/command.h"
#include "cli/job.h"
#include "step/import/export.h"

enum status cmd_export(struct context *x, struct error *e)
{
	const struct options *o = x->options;
	struct job *job = calloc(1, sizeof *job);
	char *text = NULL;
	size_t len = 0;
	enum status st = job ? ST_OK : error_nomem(e, "a config");
	if (!st && !o->to)
		st = error_set(e, ST_INPUT, "export: --to NAME missing (%s)", options_words("--to"));
	if (!st && !(st = job_decide(x, 0, false, job, e))) {
		FILE *out = memory_stream(&text, &len);
		st = out ? export_write(&job->config, o->to, out, e) : error_nomem(e, "a config");
		if (out && !memory_stream_close(out) && !st)
			st = error_nomem(e, "a config");
	}
	if (!st)
		st = file_write(o->output ? o->output : "-", text, len, e);
	free(text);
	free(job);
	return st;
}
