/* Reads JSON as a stream, plain or gzip, in constant memory: traces have gigabytes, of which a reader wants a few
 * fields. RFC 8259, but what is skipped is only matched bracket by bracket.
 *
 * The reader asks for what it expects next; a call that does not find it returns false, and scan_failed says where and
 * what. At the end of a file that was cut off everything returns false and scan_cut is true. */
#ifndef STEPSIM_REPORT_IMPORT_JSON_SCAN_H
#define STEPSIM_REPORT_IMPORT_JSON_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

struct scan;

/* ST_INPUT when the file cannot be read. NULL-safe close. */
enum status scan_open(const char *path, struct scan **out, struct error *e);
void scan_close(struct scan *s);

/* Returns the next character that is no white space without taking it; -1 at the end. */
int scan_peek(struct scan *s);

/* Takes '{' or '[' ... */
bool scan_enter(struct scan *s, char bracket);
/* ... and then, before each member: true when there is one, false when the closing bracket was taken (or on failure).
 * `first` is true before the first and is cleared. */
bool scan_more(struct scan *s, char closing, bool *first);

/* Read a member's name with its colon, or a text. Escapes of one character are undone, \u stays as it is. Texts longer
 * than cap - 1 are cut. */
bool scan_key(struct scan *s, char *out, size_t cap);
bool scan_string(struct scan *s, char *out, size_t cap);

/* Reads a number, or a number in quotes, times 1000 and rounded. Microseconds with decimals become nanoseconds without
 * loss, also beyond what a double holds. */
bool scan_thousandths(struct scan *s, int64_t *out);
bool scan_integer(struct scan *s, int64_t *out);
/* Reads an identifier: an integer, or a text that holds one in decimal or, behind 0x, in hexadecimal. Any other text is
 * taken and leaves *out as it is. */
bool scan_id(struct scan *s, int64_t *out);

/* Skips any value. */
bool scan_skip(struct scan *s);
/* Skips the rest of the object or array that was entered last, with its closing bracket. */
bool scan_leave(struct scan *s);

bool scan_wrong(const struct scan *s);      /* an unexpected token, or damaged compressed data */
bool scan_cut(const struct scan *s);        /* the file ended inside a value */
uint64_t scan_read_B(const struct scan *s); /* of the file as it lies on disk, for progress */

/* Records what went wrong as FILE: byte N (of the text): what. Returns ST_INPUT. */
enum status scan_failed(const struct scan *s, struct error *e);

#endif
