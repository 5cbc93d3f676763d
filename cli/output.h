/* Where a result goes: the table, the files that were asked for, the limit that was set. */
#ifndef STEPSIM_CLI_OUTPUT_H
#define STEPSIM_CLI_OUTPUT_H

#include "cli/options.h"
#include "step/result.h"

/* Writes the table (unless standard output is taken by a file given as -), then the files. ST_LIMIT when --max-error was missed. */
enum status output(const struct options *o, const struct outcome *outcome, struct error *e);

#endif
