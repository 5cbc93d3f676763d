/* Checking text that users write, and keeping cut text whole. */
#ifndef STEPSIM_BASE_UTF8_H
#define STEPSIM_BASE_UTF8_H

#include <stddef.h>

#include "base/status.h"

/* Checks that a text is UTF-8 (RFC 3629) without control characters but tabs and ends of lines. Fails with ST_INPUT
 * "name:line:col: ...". */
enum status utf8_check(const char *text, size_t len, const char *name, struct error *e);

/* Drops the bytes that belong to no whole character, such as half a one where a text was cut. */
void utf8_repair(char *text);

#endif
