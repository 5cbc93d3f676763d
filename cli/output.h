/* Writes a result: the table, the files that were asked for, and the checks of --require-fit and --max-error. */
#ifndef STEPSIM_CLI_OUTPUT_H
#define STEPSIM_CLI_OUTPUT_H

#include "cli/options.h"
#include "step/result.h"

/* Writes the table (unless a file is "-"), then the files. ST_LIMIT if --require-fit or --max-error was missed. */
enum status output(const struct options *o, const struct outcome *outcome, struct error *e);

#endif
