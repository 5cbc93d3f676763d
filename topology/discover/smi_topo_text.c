#include "topology/discover/smi_topo.h"

#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

/* Byte sequences that copies put where a blank, a dash or nothing was meant; of several that fit, the first counts. */
static const struct {
	const char *from;
	char to; /* 0: nothing */
} spellings[] = {
	{"\xC2\xA0", ' '}, {"\xE3\x80\x80", ' '}, {"\xE2\x80\xAF", ' '}, {"\xEF\xBB\xBF", 0}, {"\xE2\x80\x8B", 0}, {"\xE2\x80\x8C", 0}, {"\xE2\x80\x8D", 0}, {"\xE2\x80\x8E", 0}, {"\xE2\x80\x8F", 0},
	{"\xE2\x80\x90", '-'}, {"\xE2\x80\x91", '-'}, {"\xE2\x80\x92", '-'}, {"\xE2\x80\x93", '-'}, {"\xE2\x80\x94", '-'}, {"\xE2\x80\x98", ' '}, {"\xE2\x80\x99", ' '}, {"\xE2\x80\x9C", ' '},
	{"\xE2\x80\x9D", ' '}, {"\xE2\x94\x82", ' '}, {"\xE2\x94\x83", ' '}, {"\xE2\x80\x80", ' '}, {"\xE2\x80\x82", ' '}, {"\xE2\x80\x83", ' '}, {"\xE2\x80\x84", ' '}, {"\xE2\x80\x85", ' '},
	{"\xE2\x80\x87", ' '}, {"\xE2\x80\x88", ' '}, {"\xE2\x80\x89", ' '}, {"\xE2\x80\x8A", ' '}, {"&nbsp;", ' '},
	{"\\u0009", '\t'}, {"\\u000a", '\n'}, {"\\r\\n", '\n'}, {"\\n", '\n'}, {"\\r", ' '}, {"\\t", '\t'}, {"\\\"", ' '},
};

/* How the escape character looks after it went through a log, an editor or a JSON string; "" where it got lost. */
static const char *const escapes[] = {"\x1b", "\\u001b", "\\u001B", "\\x1b", "\\x1B", "\\033", "\\e", "^[", "\xEF\xBF\xBD", "\xE2\x90\x9B", ""};

static size_t starts_with(const char *s, size_t len, const char *with)
{
	size_t n = strlen(with);
	return n <= len && memcmp(s, with, n) == 0 ? n : 0;
}

/* The length of a terminal's control sequence at s, 0 for none. Where the escape character is lost, only colours and styles ("[4m") are taken for one. */
static size_t control_sequence(const char *s, size_t len)
{
	for (size_t i = 0; i < COUNT(escapes); i++) {
		size_t at = starts_with(s, len, escapes[i]);
		if ((!at && escapes[i][0]) || at >= len)
			continue;
		if (s[at] == '(' && at + 1 < len && escapes[i][0] == '\x1b')
			return at + 2;
		if (s[at] != '[')
			continue;
		size_t end = at + 1;
		while (end < len && (isdigit((unsigned char)s[end]) || s[end] == ';' || s[end] == '?'))
			end++;
		if (end < len && (s[end] == 'm' || (escapes[i][0] && strchr("ABCDHJKhlsu", s[end]) && s[end])))
			return end + 1;
	}
	return 0;
}

/* UTF-16, as a Windows shell redirects, to one byte a character. */
static char *narrow(const char *text, size_t len, size_t *out_len)
{
	bool low_first = (unsigned char)text[0] == 0xFF;
	char *out = malloc(len / 2 + 1);
	if (!out)
		return NULL;
	*out_len = 0;
	for (size_t i = 2; i + 1 < len; i += 2) {
		char low = text[low_first ? i : i + 1], high = text[low_first ? i + 1 : i];
		out[(*out_len)++] = high ? ' ' : low;
	}
	return out;
}

/* Takes comment, quote and list marks off the front of a line, in place, with the one blank behind them. A minus before a digit belongs to a list of cores that was wrapped. */
static char *without_marks(char *s)
{
	for (char *start = s;; s = start) {
		while (*start == ' ' || *start == '\t')
			start++;
		bool dash = *start == '-' && !isdigit((unsigned char)start[1]);
		if (!*start || (!strchr("#>/*;%!+", *start) && !dash))
			return s;
		start++;
		if (*start == ' ')
			start++;
	}
}

static enum status push_line(struct smi_text *t, char *start, int number, struct error *e)
{
	struct smi_line l = {without_marks(start), number};
	return vec_push(&t->line, l) ? ST_OK : error_nomem(e, "the lines of a topology dump");
}

/* One byte, or one of the sequences above, to at most one byte; the bytes taken. */
static size_t clean_one(const char *s, size_t len, char *to)
{
	size_t taken = control_sequence(s, len);
	*to = 0;
	if (taken)
		return taken;
	for (size_t i = 0; i < COUNT(spellings); i++) {
		taken = starts_with(s, len, spellings[i].from);
		if (taken) {
			*to = spellings[i].to;
			return taken;
		}
	}
	unsigned char c = (unsigned char)*s;
	*to = c == '\r' ? '\n' : c == '\n' || c == '\t' ? (char)c : c < 0x20 || c == 0x7F || strchr("|\"'`", c) ? ' ' : (char)c;
	return c == '\r' && len > 1 && s[1] == '\n' ? 2 : 1;
}

enum status smi_text_clean(const char *text, size_t len, struct smi_text *out, struct error *e)
{
	enum status st = ST_OK;
	char *wide = NULL;
	*out = (struct smi_text){0};
	if (len >= 2 && (((unsigned char)text[0] == 0xFF && (unsigned char)text[1] == 0xFE) || ((unsigned char)text[0] == 0xFE && (unsigned char)text[1] == 0xFF))) {
		wide = narrow(text, len, &len);
		if (!wide)
			return error_nomem(e, "a topology dump");
		text = wide;
	}
	out->buffer = malloc(len + 2);
	if (!out->buffer) {
		st = error_nomem(e, "a topology dump");
		goto out;
	}
	char *w = out->buffer, *start = w;
	int number = 1;
	for (size_t i = 0; i < len;) {
		char c;
		size_t taken = clean_one(text + i, len - i, &c);
		if (c != '\n') {
			if (c)
				*w++ = c;
		} else {
			*w++ = '\0';
			st = push_line(out, start, number, e);
			if (st)
				goto out;
			start = w;
			number += memchr(text + i, '\n', taken) != NULL;
		}
		i += taken;
	}
	*w = '\0';
	st = push_line(out, start, number, e);
out:
	free(wide);
	if (st)
		smi_text_free(out);
	return st;
}

void smi_text_free(struct smi_text *t)
{
	vec_free(&t->line);
	free(t->buffer);
	t->buffer = NULL;
}

bool smi_token_next(const char **from, struct smi_token *t)
{
	const char *s = *from + strspn(*from, " \t");
	t->at = s;
	t->len = strcspn(s, " \t");
	*from = s + t->len;
	return t->len > 0;
}
