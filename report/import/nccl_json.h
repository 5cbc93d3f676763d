/* JSON of nccl-tests (-J FILE, since 2.17.6: src/util.cu) and of rccl-tests (-x FILE -Z json), as the text that the
 * same programs print. Private to report/import. */
#ifndef STEPSIM_REPORT_IMPORT_NCCL_JSON_H
#define STEPSIM_REPORT_IMPORT_NCCL_JSON_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

/* Returns whether a text begins as JSON does. */
bool nccl_json_is(const char *text);

/* Writes the lines of output that report/import/nccl_log.h reads (malloc'ed). ST_INPUT: it is no JSON (with position),
 * JSON of no such test, or names more ranks than a machine has. */
enum status nccl_json_text(const char *json, size_t len, const char *path, char **text, struct error *e);

#endif
