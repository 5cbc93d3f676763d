/* The rows of a framework's table, applied to the keys of a text. Private to step/import. */
#ifndef STEPSIM_STEP_IMPORT_ROWS_H
#define STEPSIM_STEP_IMPORT_ROWS_H

#include "step/import/import.h"

/* Gives each key of CONFIG.yaml its value, and each key of the text that a row names its verdict. ST_INPUT with
 * position: a value that the key of CONFIG.yaml cannot have. */
enum status rows_apply(struct import *im, struct error *e);
/* Takes back other keys that size the step, where this one does: CONFIG.yaml refuses two. */
void rows_drop_rivals(struct import *im, enum key_id id);

/* Take back what was assumed of a model that a preset or a file describes, and what the strategy does not use. */
void rows_leave_to_preset(struct import *im);
void rows_drop_unused(struct import *im);
/* step/import/rest.c: gives a verdict to each key of the text that no row names. */
void rows_judge_rest(struct import *im);

/* Writes a value in CONFIG.yaml's own words. */
void rows_store(struct import *im, enum key_id id, const char *value, const char *remark);
/* Records what becomes of a key. One that a row takes stays taken, whatever other rows say of it. */
void leaf_judge(struct leaf *l, enum verdict v, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Returns whether a value switches something off, or leaves it as it is without the key. */
bool leaf_is_off(const char *text);

#endif
