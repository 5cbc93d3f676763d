/* A config as another framework's, from the same table that reads it (step/import/table.h). */
#ifndef STEPSIM_STEP_IMPORT_EXPORT_H
#define STEPSIM_STEP_IMPORT_EXPORT_H

#include <stdio.h>

#include "step/config/config.h"

/* Writes a resolved config as the flags or the file of the framework `to`. What the framework has no word for stands
 * beside it for stepsim (IMPORT_MARK), so that reading it gives the same resolved config: that is checked here.
 * ST_INPUT: an unknown framework, or one that is read alone. */
enum status export_write(const struct config *c, const char *to, FILE *out, struct error *e);

#endif
