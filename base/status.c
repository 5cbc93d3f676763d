#include "base/status.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

/* Values quoted in a message come from files and the command line: a newline or an escape sequence in them must not
 * break the promise of one line, nor reach a terminal. */
static void keep_to_one_line(char *text)
{
	for (char *p = text; *p; p++)
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			*p = ' ';
	utf8_repair(text); /* "%.60s" may cut a character in two, which JSON refuses */
}

static void mark_truncation(char *text, size_t size)
{
	size_t end = size - 4;
	while (end > 0 && ((unsigned char)text[end] & 0xC0) == 0x80)
		end--; /* never leave half a UTF-8 character */
	memcpy(text + end, "...", 4);
}

enum status error_set(struct error *e, enum status st, const char *fmt, ...)
{
	if (!e)
		return st;
	if (e->status != ST_OK)
		return e->status;
	va_list ap;
	va_start(ap, fmt);
	int len = vsnprintf(e->text, sizeof e->text, fmt, ap);
	va_end(ap);
	if (len < 0)
		e->text[0] = '\0';
	else if ((size_t)len >= sizeof e->text)
		mark_truncation(e->text, sizeof e->text);
	keep_to_one_line(e->text);
	e->status = st;
	return st;
}

enum status error_context(struct error *e, const char *fmt, ...)
{
	if (!e || e->status == ST_OK)
		return ST_OK;
	char context[sizeof e->text];
	va_list ap;
	va_start(ap, fmt);
	int len = vsnprintf(context, sizeof context, fmt, ap);
	va_end(ap);
	if (len < 0)
		return e->status;

	char joined[2 * sizeof e->text + 2];
	int joined_len = snprintf(joined, sizeof joined, "%s: %s", context, e->text);
	size_t n = (size_t)joined_len < sizeof e->text ? (size_t)joined_len : sizeof e->text - 1;
	memcpy(e->text, joined, n);
	e->text[n] = '\0';
	if ((size_t)joined_len > n)
		mark_truncation(e->text, sizeof e->text);
	keep_to_one_line(e->text);
	return e->status;
}

enum status error_nomem(struct error *e, const char *what) { return error_set(e, ST_RUN, "out of memory (%s)", what); }
