#include "base/utf8.h"

#include <stdbool.h>
#include <string.h>

/* Returns the length of the UTF-8 character at `s` (RFC 3629: no overlong forms, no surrogates, up to U+10FFFF); 0 when
 * it is not one. */
static size_t utf8_length(const unsigned char *s, size_t len)
{
	unsigned char low = 0x80, high = 0xBF;
	size_t n = s[0] < 0x80                    ? 1
	           : s[0] >= 0xC2 && s[0] <= 0xDF ? 2
	           : (s[0] & 0xF0) == 0xE0        ? 3
	           : s[0] >= 0xF0 && s[0] <= 0xF4 ? 4
	                                          : 0;
	if (n == 0 || n > len)
		return 0;
	if (s[0] == 0xE0)
		low = 0xA0;
	if (s[0] == 0xED)
		high = 0x9F;
	if (s[0] == 0xF0)
		low = 0x90;
	if (s[0] == 0xF4)
		high = 0x8F;
	for (size_t i = 1; i < n; i++) {
		if (s[i] < low || s[i] > high)
			return 0;
		low = 0x80;
		high = 0xBF;
	}
	return n;
}

enum status utf8_check(const char *text, size_t len, const char *name, struct error *e)
{
	const unsigned char *s = (const unsigned char *)text;
	size_t line = 1, column = 1;
	for (size_t i = 0; i < len;) {
		const unsigned char c = s[i];
		const size_t n = utf8_length(s + i, len - i);
		if (n == 0)
			return error_set(e, ST_INPUT, "%s:%zu:%zu: the text is not UTF-8", name, line, column);
		const bool line_end = c == '\n' || (c == '\r' && !(i + 1 < len && s[i + 1] == '\n'));
		if ((c < 0x20 && c != '\t' && c != '\n' && c != '\r') || c == 0x7F)
			return error_set(e, ST_INPUT, "%s:%zu:%zu: a control character is not allowed", name, line,
				column);
		line += line_end;
		column = line_end ? 1 : column + 1;
		i += n;
	}
	return ST_OK;
}

void utf8_repair(char *text)
{
	const size_t len = strlen(text);
	size_t kept = 0;
	for (size_t i = 0, n; i < len; i += n ? n : 1) {
		n = utf8_length((const unsigned char *)text + i, len - i);
		memmove(text + kept, text + i, n);
		kept += n;
	}
	text[kept] = '\0';
}
