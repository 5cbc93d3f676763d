/* The forms in which a framework's keys are written: TOML, YAML, JSON, flags, Python. */
#ifndef STEPSIM_STEP_IMPORT_EXPORT_FORM_H
#define STEPSIM_STEP_IMPORT_EXPORT_FORM_H

#include <stdio.h>

#include "step/import/table.h"

/* Writes the keys below `root` in the table's form. `launch`: the words of what starts it, before flags or in a comment
 * of Python; "" without. */
void export_form_write(const struct import_table *t, const struct ynode *root, const char *launch, FILE *out);

#endif
