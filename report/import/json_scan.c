#include "report/import/json_scan.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define BUFFER_B (1u << 20)
#define NUMBER_MAX 64

struct scan {
	gzFile file;
	char path[512];
	unsigned char *at, *end;
	uint64_t before_B;  /* of the text, before the buffer */
	const char *wanted; /* what was expected where something else stood; NULL: nothing is wrong */
	bool cut, damaged;
	unsigned char buffer[BUFFER_B];
};

enum status scan_open(const char *path, struct scan **out, struct error *e)
{
	struct scan *s = malloc(sizeof *s);
	if (!s)
		return error_nomem(e, "a trace's reader");
	memset(s, 0, offsetof(struct scan, buffer));
	snprintf(s->path, sizeof s->path, "%s", path);
	s->at = s->end = s->buffer;
	errno = 0;
	s->file = gzopen(path, "rb");
	if (!s->file) {
		enum status st = errno ? error_set(e, ST_INPUT, "%s: %s", path, strerror(errno))
		                       : error_nomem(e, "a trace's reader");
		free(s);
		return st;
	}
	gzbuffer(s->file, BUFFER_B);
	*out = s;
	return ST_OK;
}

void scan_close(struct scan *s)
{
	if (!s)
		return;
	gzclose(s->file);
	free(s);
}

/* ---- characters ---- */

static bool refill(struct scan *s)
{
	if (s->cut || s->wanted)
		return false;
	s->before_B += (uint64_t)(s->at - s->buffer);
	int n = gzread(s->file, s->buffer, BUFFER_B);
	int error = Z_OK;
	if (n < 0)
		gzerror(s->file, &error);
	s->damaged = n < 0 && error != Z_BUF_ERROR; /* that one: the compressed file was cut off */
	s->at = s->buffer;
	s->end = s->buffer + (n > 0 ? n : 0);
	return n > 0;
}

static int next(struct scan *s)
{
	if (s->at == s->end && !refill(s))
		return -1;
	return *s->at;
}

int scan_peek(struct scan *s)
{
	int c;
	while ((c = next(s)) == ' ' || c == '\n' || c == '\r' || c == '\t')
		s->at++;
	return s->wanted ? -1 : c;
}

static bool wrong(struct scan *s, const char *wanted)
{
	if (s->at == s->end && next(s) < 0)
		s->cut = true;
	else if (!s->wanted)
		s->wanted = wanted;
	return false;
}

static bool take(struct scan *s, int c, const char *wanted)
{
	if (scan_peek(s) != c)
		return wrong(s, wanted);
	s->at++;
	return true;
}

/* ---- members ---- */

bool scan_enter(struct scan *s, char bracket) { return take(s, bracket, bracket == '{' ? "an object" : "an array"); }

bool scan_more(struct scan *s, char closing, bool *first)
{
	int c = scan_peek(s);
	if (c == closing) {
		s->at++;
		return false;
	}
	if (*first) {
		*first = false;
		return c >= 0 || wrong(s, "a value");
	}
	return take(s, ',', closing == '}' ? "',' or '}'" : "',' or ']'");
}

bool scan_string(struct scan *s, char *out, size_t cap)
{
	static const char escapes[] = "n\nt\tr\rb\bf\f";
	size_t n = 0;
	if (!take(s, '"', "a text"))
		return false;
	for (;;) {
		int c = next(s);
		if (c < 0)
			return wrong(s, "the end of a text");
		s->at++;
		if (c == '"')
			break;
		if (c == '\\') {
			if ((c = next(s)) < 0)
				return wrong(s, "the end of a text");
			s->at++;
			for (const char *p = escapes; *p; p += 2)
				if (c == *p) {
					c = p[1];
					break;
				}
		}
		if (n + 1 < cap)
			out[n++] = (char)c;
	}
	out[n] = 0;
	return true;
}

bool scan_key(struct scan *s, char *out, size_t cap) { return scan_string(s, out, cap) && take(s, ':', "':'"); }

/* ---- numbers ---- */

static bool number_text(struct scan *s, char *out)
{
	size_t n = 0;
	bool quoted = scan_peek(s) == '"';
	if (quoted)
		s->at++;
	for (int c; (c = next(s)) >= 0 && (('0' <= c && c <= '9') || strchr("+-.eE", c)); s->at++)
		if (n + 1 < NUMBER_MAX)
			out[n++] = (char)c;
	out[n] = 0;
	if (!n || (quoted && !take(s, '"', "'\"'")))
		return wrong(s, "a number");
	return true;
}

bool scan_thousandths(struct scan *s, int64_t *out)
{
	char text[NUMBER_MAX], *p = text;
	if (!number_text(s, text))
		return false;
	if (strpbrk(text, "eE")) {
		double x = strtod(text, NULL) * 1000;
		if (!(fabs(x) < 9e18))
			return wrong(s, "a number in range");
		*out = llround(x);
		return true;
	}
	bool negative = *p == '-';
	int64_t whole = 0;
	int decimals = 0;
	for (p += negative || *p == '+'; '0' <= *p && *p <= '9'; p++)
		if ((whole = whole * 10 + (*p - '0')) >= INT64_MAX / 1000)
			return wrong(s, "a number in range");
	if (*p == '.')
		for (p++; decimals < 3 && '0' <= *p && *p <= '9'; p++, decimals++)
			whole = whole * 10 + (*p - '0');
	for (; decimals < 3; decimals++)
		whole *= 10;
	*out = (negative ? -whole : whole) + ('5' <= *p && *p <= '9' ? (negative ? -1 : 1) : 0);
	return true;
}

bool scan_integer(struct scan *s, int64_t *out)
{
	if (!scan_thousandths(s, out))
		return false;
	*out /= 1000;
	return true;
}

/* A pointer (ROCm's streams: "0x0") keeps its low 63 bits. */
bool scan_id(struct scan *s, int64_t *out)
{
	char text[NUMBER_MAX], *end;
	if (scan_peek(s) != '"')
		return scan_integer(s, out);
	if (!scan_string(s, text, sizeof text))
		return false;
	const bool hex = strncmp(text, "0x", 2) == 0;
	errno = 0;
	const unsigned long long value = strtoull(text, &end, hex ? 16 : 10);
	if (isdigit((unsigned char)*text) && !*end && !errno)
		*out = (int64_t)(value & INT64_MAX);
	return true;
}

/* ---- what nobody wants ---- */

static bool skip_string(struct scan *s)
{
	s->at++;
	for (;;) {
		if (s->at == s->end && !refill(s))
			return wrong(s, "the end of a text");
		unsigned char *quote = memchr(s->at, '"', (size_t)(s->end - s->at)), *stop = quote ? quote : s->end,
			      *escape = memchr(s->at, '\\', (size_t)(stop - s->at));
		if (escape) {
			s->at = escape + 1;
			if (next(s) < 0)
				return wrong(s, "the end of a text");
			s->at++;
		} else if (quote) {
			s->at = quote + 1;
			return true;
		} else {
			s->at = s->end;
		}
	}
}

static bool skip_to_depth(struct scan *s, int depth)
{
	static const unsigned char special[256] = {['"'] = 1, ['{'] = 1, ['['] = 1, ['}'] = 1, [']'] = 1};
	while (depth > 0) {
		while (s->at < s->end && !special[*s->at])
			s->at++;
		int c = next(s);
		if (c < 0)
			return wrong(s, "a closing bracket");
		if (!special[c])
			continue;
		if (c == '"') {
			if (!skip_string(s))
				return false;
			continue;
		}
		depth += c == '{' || c == '[' ? 1 : -1;
		s->at++;
	}
	return true;
}

bool scan_leave(struct scan *s) { return skip_to_depth(s, 1); }

bool scan_skip(struct scan *s)
{
	int c = scan_peek(s);
	if (c == '"')
		return skip_string(s);
	if (c == '{' || c == '[') {
		s->at++;
		return skip_to_depth(s, 1);
	}
	size_t n = 0;
	for (; (c = next(s)) >= 0 && !strchr(",}] \t\r\n:\"{[", c); s->at++)
		n++;
	return n || wrong(s, "a value");
}

/* ---- what happened ---- */

bool scan_wrong(const struct scan *s) { return s->wanted || s->damaged; }

bool scan_cut(const struct scan *s) { return s->cut; }

uint64_t scan_read_B(const struct scan *s)
{
	long long at = (long long)gzoffset(s->file);
	return at > 0 ? (uint64_t)at : 0;
}

enum status scan_failed(const struct scan *s, struct error *e)
{
	unsigned long long at = s->before_B + (unsigned long long)(s->at - s->buffer);
	if (s->damaged)
		return error_set(e, ST_INPUT, "%s: byte %llu: the compressed data is damaged", s->path, at);
	return error_set(e, ST_INPUT, "%s: byte %llu: %s was expected", s->path, at,
		s->wanted ? s->wanted : "more of the file");
}
