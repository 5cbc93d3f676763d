#include "base/array.h"
#include "topology/discover/smi_topo.h"

#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Byte sequences that copies put where a blank, a dash or nothing was meant; of several that fit, the first counts. */
static const struct {
	const char *from;
	char to; /* 0: nothing */
} spellings[] = {
	{"\xC2\xA0", ' '},
	{"\xE3\x80\x80", ' '},
	{"\xE2\x80\xAF", ' '},
	{"\xEF\xBB\xBF", 0},
	{"\xE2\x80\x8B", 0},
	{"\xE2\x80\x8C", 0},
	{"\xE2\x80\x8D", 0},
	{"\xE2\x80\x8E", 0},
	{"\xE2\x80\x8F", 0},
	{"\xE2\x80\x90", '-'},
	{"\xE2\x80\x91", '-'},
	{"\xE2\x80\x92", '-'},
	{"\xE2\x80\x93", '-'},
	{"\xE2\x80\x94", '-'},
	{"\xE2\x80\x98", ' '},
	{"\xE2\x80\x99", ' '},
	{"\xE2\x80\x9C", ' '},
	{"\xE2\x80\x9D", ' '},
	{"\xE2\x94\x82", ' '},
	{"\xE2\x94\x83", ' '},
	{"\xE2\x80\x80", ' '},
	{"\xE2\x80\x82", ' '},
	{"\xE2\x80\x83", ' '},
	{"\xE2\x80\x84", ' '},
	{"\xE2\x80\x85", ' '},
	{"\xE2\x80\x87", ' '},
	{"\xE2\x80\x88", ' '},
	{"\xE2\x80\x89", ' '},
	{"\xE2\x80\x8A", ' '},
	{"&nbsp;", ' '},
	{"<br>", '\n'},
	{"<br/>", '\n'},
	{"<br />", '\n'},
	{"\\u0009", '\t'},
	{"\\u000a", '\n'},
	{"\\r\\n", '\n'},
	{"\\n", '\n'},
	{"\\r", ' '},
	{"\\t", '\t'},
	{"\\\"", ' '},
};

/* How the escape character looks after it went through a log, an editor or a JSON string; "" where it got lost. */
static const char *const escapes[] = {"\x1b", "\\u001b", "\\u001B", "\\x1b", "\\x1B", "\\033", "\\e", "^[",
	"\xEF\xBF\xBD", "\xE2\x90\x9B", ""};

static size_t starts_with(const char *s, size_t len, const char *with)
{
	size_t n = strlen(with);
	return n <= len && memcmp(s, with, n) == 0 ? n : 0;
}

/* The length of a terminal's control sequence at s, 0 for none. Where the escape character is lost, only colours and
 * styles ("[4m") are taken for one. */
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

/* UTF-16, as a Windows shell redirects: by its mark or, where that is lost, because every other byte of the first line
 * is 0. */
enum wide { NARROW, LOW_FIRST, HIGH_FIRST };
static enum wide wide_of(const char *text, size_t len)
{
	size_t zeros[2] = {0, 0}, n = len < 64 ? len & ~(size_t)1 : 64;
	if (len < 2)
		return NARROW;
	if (memcmp(text, "\xFF\xFE", 2) == 0 || memcmp(text, "\xFE\xFF", 2) == 0)
		return (unsigned char)text[0] == 0xFF ? LOW_FIRST : HIGH_FIRST;
	for (size_t i = 0; i < n; i++)
		zeros[i % 2] += text[i] == '\0';
	if (n < 16 || zeros[0] + zeros[1] != n / 2)
		return NARROW;
	return zeros[1] == n / 2 ? LOW_FIRST : zeros[0] == n / 2 ? HIGH_FIRST : NARROW;
}

/* To one byte a character. */
static char *narrow(const char *text, size_t len, bool low_first, size_t *out_len)
{
	char *out = malloc(len / 2 + 1);
	if (!out)
		return NULL;
	*out_len = 0;
	for (size_t i = 0; i + 1 < len; i += 2) {
		if (i == 0 && (memcmp(text, "\xFF\xFE", 2) == 0 || memcmp(text, "\xFE\xFF", 2) == 0))
			continue;
		char low = text[low_first ? i : i + 1], high = text[low_first ? i + 1 : i];
		out[(*out_len)++] = high ? ' ' : low;
	}
	return out;
}

/* Takes comment, quote and list marks off the front of a line, in place, with the one blank behind them. A minus before
 * a digit belongs to a list of cores that was wrapped. */
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
	struct smi_line l = {.text = without_marks(start), .number = number};
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
	*to = c == '\r'                                                                                  ? '\n'
	      : c == '\n' || c == '\t'                                                                   ? (char)c
	      : c < 0x20 || c == 0x7F || c == 0xA0 /* Latin-1's no-break space */ || strchr("|\"'`*", c) ? ' '
	                                                                                                 : (char)c;
	return c == '\r' && len > 1 && s[1] == '\n' ? 2 : 1;
}

/* ---- what a log puts before each line ---- */

#define PREFIX_TOKENS 8

/* The token at place `at` of a line, and what follows it; false where the line is shorter, or its cells begin before:
 * link words behind a label, or at once. */
static bool prefix_token(const char *line, size_t at, struct smi_token *t, const char **after)
{
	bool cells = true;
	for (size_t i = 0; i <= at; i++) {
		char key[GRAPH_NAME];
		int32_t number;
		if (!smi_token_next(&line, t) || (cells && smi_all_words(*t)))
			return false;
		cells = smi_label_of(*t, key, &number) != SMI_NO_LABEL;
	}
	*after = line;
	return true;
}

static bool same_token(struct smi_token a, struct smi_token b)
{
	return a.len == b.len && memcmp(a.at, b.at, a.len) == 0;
}

/* The token that most rows have at a place: a majority, if there is one, is what is left over when unlike tokens cancel
 * out. */
static struct smi_token most_common(const struct smi_text *t, size_t at)
{
	struct smi_token common = {0}, own;
	const char *after;
	size_t votes = 0;
	for (size_t i = 0; i < t->line.n; i++) {
		if (!t->line.at[i].row || !prefix_token(t->line.at[i].text, at, &own, &after))
			continue;
		common = votes ? common : own;
		votes = same_token(common, own) ? votes + 1 : votes - 1;
	}
	return common;
}

/* The names of hosts, pods and files before each line may look like labels ("gpu001: "). What most rows have in common
 * at the same place, and are rows without, is such a prefix, with all before it. */
static void strip_prefixes(struct smi_text *t)
{
	for (size_t i = 0; i < t->line.n; i++)
		t->line.at[i].row = smi_is_row(t->line.at[i].text);
	for (size_t at = PREFIX_TOKENS; at-- > 0;) {
		struct smi_token common = most_common(t, at), own;
		const char *after;
		size_t rows = 0, agree = 0, lines = 0, left = 0;
		for (size_t i = 0; common.len && i < t->line.n; i++) {
			bool row = t->line.at[i].row,
			     has = prefix_token(t->line.at[i].text, at, &own, &after) && same_token(common, own);
			rows += row;
			agree += row && has;
			lines += has;
			left += has && smi_is_row(after);
		}
		if (!left || lines < 2 || 4 * agree < 3 * rows)
			continue;
		for (size_t i = 0; i < t->line.n; i++)
			if (prefix_token(t->line.at[i].text, at, &own, &after) && same_token(common, own))
				t->line.at[i].text += after - t->line.at[i].text;
		return;
	}
}

/* ---- cells between commas or semicolons ---- */

static bool is_separator(const char *s) { return *s == ';' || *s == ','; }

/* "GPU0,GPU1" */
static bool separates_labels(const char *line)
{
	for (const char *s = line; *s; s++) {
		size_t n = smi_label_prefix(s, strlen(s));
		if (n && is_separator(s + n) && smi_label_prefix(s + n + 1, strlen(s + n + 1)))
			return true;
	}
	return false;
}

/* Separators to tabs; a comma between digits may belong to a list of cores and stays. */
static void split_fields(struct smi_text *t)
{
	bool separated = false;
	for (size_t i = 0; i < t->line.n && !separated; i++)
		separated = separates_labels(t->line.at[i].text);
	for (size_t i = 0; separated && i < t->line.n; i++)
		for (char *s = t->line.at[i].text; *s; s++)
			if (*s == ';' || (*s == ',' && s[1] &&
						 !(s > t->line.at[i].text && isdigit((unsigned char)s[-1]) &&
							 isdigit((unsigned char)s[1]))))
				*s = '\t';
}

enum status smi_text_clean(const char *text, size_t len, struct smi_text *out, struct error *e)
{
	enum status st = ST_OK;
	char *wide = NULL;
	*out = (struct smi_text){0};
	enum wide width = wide_of(text, len);
	if (width != NARROW) {
		wide = narrow(text, len, width == LOW_FIRST, &len);
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
	if (!st) {
		strip_prefixes(out);
		split_fields(out);
	}
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
