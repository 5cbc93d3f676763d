/* Lines that fit a page: paragraphs break at words, tables ask how wide the page is. */
#ifndef STEPSIM_BASE_WRAP_H
#define STEPSIM_BASE_WRAP_H

#include <stddef.h>
#include <stdio.h>

#include "base/status.h"

/* Returns the characters of a line on the terminal behind a file descriptor; 0 where there is none. */
size_t wrap_terminal_width(int fd);

/* Returns the characters of a line of `out`: $COLUMNS if that is a number, else the terminal's width, else 100; at
 * least 40. A stream in memory is taken as a part of standard output. */
size_t wrap_width(FILE *out);
/* The same, with `unknown` in place of 100. */
size_t wrap_known_width(FILE *out, size_t unknown);

/* Returns the characters of UTF-8 text. */
size_t wrap_characters(const char *text);

/* Returns how many bytes of `text`, which ends at a newline or its end, stand on the first line of `width` characters;
 * *rest is where the next line begins. A word that is longer stays whole. No break stands behind an option's name
 * (--set KEY=VALUE), and none between a number and its unit where there is another. */
size_t wrap_line(const char *text, size_t width, const char **rest);

/* Prints lines; of one that is too long, the rest goes on below it, two blanks further in. */
void wrap_text(const char *text, size_t width, FILE *out);

/* A stream whose lines are wrapped. What is written to `out` reaches the stream behind it when it is closed. */
struct wrap {
	FILE *out;
	FILE *behind;
	char *text;
	size_t len;
};

/* wrap_close prints also where `st` is a failure, and returns it: what was written until then is shown. */
enum status wrap_open(struct wrap *w, FILE *behind, struct error *e);
enum status wrap_close(struct wrap *w, enum status st, struct error *e);

#endif
