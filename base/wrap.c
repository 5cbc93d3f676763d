#include "base/wrap.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/memory_stream.h"

#define WIDTH 100
#define WIDTH_LEAST 40
#define INDENT 2
#define UNIT_MOST 5 /* characters of a unit behind its number */

size_t wrap_terminal_width(int fd)
{
	struct winsize size;
	return fd >= 0 && ioctl(fd, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

size_t wrap_known_width(FILE *out, size_t unknown)
{
	const char *text = getenv("COLUMNS");
	char *end = NULL;
	unsigned long width = text && isdigit((unsigned char)*text) ? strtoul(text, &end, 10) : 0;
	if (!end || *end) {
		int fd = fileno(out);
		width = wrap_terminal_width(fd >= 0 ? fd : STDOUT_FILENO);
		width = width > 0 ? width : unknown;
	}
	return width > WIDTH_LEAST ? width : WIDTH_LEAST;
}

size_t wrap_width(FILE *out) { return wrap_known_width(out, WIDTH); }

size_t wrap_characters(const char *text)
{
	size_t n = 0;
	for (; *text; text++)
		n += ((unsigned char)*text & 0xC0) != 0x80;
	return n;
}

/* How firmly the word that ends at `end` holds the next one. */
enum hold { FREE, NUMBER, OPTION };

static enum hold hold_of(const char *text, const char *end, const char *next)
{
	const char *word = end;
	while (word > text && word[-1] != ' ')
		word--;
	size_t len = (size_t)(end - word);
	if (strncmp(word, "--", 2) == 0)
		return strspn(word, "-abcdefghijklmnopqrstuvwxyz") >= len ? OPTION : FREE;
	return strspn(word, "0123456789.+-~") >= len && strcspn(next, " \n") <= UNIT_MOST ? NUMBER : FREE;
}

size_t wrap_line(const char *text, size_t width, const char **rest)
{
	const char *best[2] = {NULL, NULL}, *at = text; /* the last break that is free, and behind a number */
	size_t n = 0;
	while (n <= width || !(best[FREE] || best[NUMBER])) {
		const char *end = at + strspn(at, " ");
		end += strcspn(end, " \n");
		for (; at < end; at++)
			n += ((unsigned char)*at & 0xC0) != 0x80;
		const char *next = at + strspn(at, " ");
		bool last = !*next || *next == '\n';
		enum hold hold = last ? FREE : hold_of(text, at, next);
		bool first = !best[FREE] && !best[NUMBER];
		if (hold != OPTION && (n <= width || first))
			best[hold] = at;
		if (last)
			break;
	}
	const char *end = best[FREE] ? best[FREE] : best[NUMBER];
	*rest = end + strspn(end, " ");
	return (size_t)(end - text);
}

void wrap_text(const char *text, size_t width, FILE *out)
{
	while (*text) {
		const char *rest;
		const size_t below = strspn(text, " ") + INDENT;
		for (size_t indent = 0;; indent = below, text = rest) {
			size_t len = wrap_line(text, width > indent ? width - indent : 1, &rest);
			fprintf(out, "%*s%.*s", (int)indent, "", (int)len, text);
			if (!*rest || *rest == '\n')
				break;
			putc('\n', out);
		}
		if (*rest)
			putc(*rest++, out);
		text = rest;
	}
}

enum status wrap_open(struct wrap *w, FILE *behind, struct error *e)
{
	*w = (struct wrap){.behind = behind};
	w->out = memory_stream(&w->text, &w->len);
	return w->out ? ST_OK : error_nomem(e, "the text");
}

enum status wrap_close(struct wrap *w, enum status st, struct error *e)
{
	const bool good = memory_stream_close(w->out);
	if (good)
		wrap_text(w->text, wrap_width(w->behind), w->behind);
	free(w->text);
	*w = (struct wrap){0};
	return st || good ? st : error_nomem(e, "the text");
}
