/* Checking text that users write. */
#ifndef STEPSIM_BASE_UTF8_H
#define STEPSIM_BASE_UTF8_H

#include <stddef.h>

#include "base/status.h"

/* Checks that a text is UTF-8 (RFC 3629) without control characters but tabs and ends of lines. Fails with ST_INPUT
 * "name:line:col: ...". */
enum status utf8_check(const char *text, size_t len, const char *name, struct error *e);

#endif
