#include "base/log.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/wrap.h"

#define LINE_MAX_LEN 2048
#define MESSAGE_INDENT 2
#define BAR_CELLS 24
#define SHOW_AFTER_S 2.0
#define REDRAW_TERMINAL_S 0.1
#define REDRAW_PLAIN_S 2.0

/* One lock for settings, progress and writing: notes come from the main thread, warnings from any. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct {
	enum log_level level;
	bool speaks;
	bool progress; /* a progress line may be shown */
	bool in_place; /* it is redrawn on a terminal, instead of printed line by line */
	size_t width;  /* characters a line */

	bool active;    /* between progress_begin and progress_end */
	bool on_screen; /* the cursor stands behind a drawn progress line */
	char what[64];
	double begun_s, drawn_s;

	char last[LINE_MAX_LEN]; /* line that was said */
} state = {.level = LOG_NORMAL, .speaks = true, .width = 80};

static bool env_is(const char *name, const char *value)
{
	const char *text = getenv(name);
	return text && strcmp(text, value) == 0;
}

void log_setup(enum log_level level, enum progress_mode progress, bool speaks)
{
	/* mpirun puts a pipe behind standard error; who started it tells us when the far end is a terminal. */
	bool terminal = (isatty(STDERR_FILENO) || env_is("STEPSIM_PROGRESS_TTY", "1")) && !env_is("TERM", "dumb");
	size_t width = wrap_terminal_width(STDERR_FILENO);
	pthread_mutex_lock(&lock);
	state.level = level;
	state.speaks = speaks;
	state.in_place = terminal;
	state.progress = speaks &&
	                 (progress == PROGRESS_ALWAYS || (progress == PROGRESS_AUTO && terminal && level > LOG_QUIET));
	state.width = width >= 20 ? width : 80;
	state.last[0] = '\0';
	pthread_mutex_unlock(&lock);
}

enum log_level log_level(void)
{
	pthread_mutex_lock(&lock);
	enum log_level level = state.level;
	pthread_mutex_unlock(&lock);
	return level;
}

/* write(2), one call a line: lines of several ranks on one pipe stay whole, and nothing is allocated. */
static void put(const char *text, size_t len)
{
	while (len > 0) {
		ssize_t done = write(STDERR_FILENO, text, len);
		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return; /* nobody is left to be told */
		text += done;
		len -= (size_t)done;
	}
}

static void erase(void)
{
	static const char clear[] = "\r\033[K";
	if (state.on_screen)
		put(clear, sizeof clear - 1);
	state.on_screen = false;
}

/* Writes to `text` the lines of a message, without allocating. In a pipe or a file a message is one line. */
static size_t wrap(const char *line, char *text, size_t size)
{
	size_t width = wrap_known_width(stderr, LINE_MAX_LEN), n = 0, indent = 0;
	while (*line && n + indent + 1 < size) {
		const char *rest;
		size_t len = wrap_line(line, width - indent, &rest);
		len = len < size - n - indent - 1 ? len : size - n - indent - 1;
		memset(text + n, ' ', indent);
		memcpy(text + n + indent, line, len);
		n += indent + len;
		text[n++] = '\n';
		indent = MESSAGE_INDENT;
		line = rest;
	}
	return n;
}

static void say(const char *kind, const char *fmt, va_list ap)
{
	char line[LINE_MAX_LEN], text[2 * LINE_MAX_LEN];
	int head = snprintf(line, sizeof line, "stepsim: %s", kind);
	size_t at = (size_t)head;
	size_t room = sizeof line - at;
	int len = vsnprintf(line + at, room, fmt, ap);
	if (len > 0)
		at += (size_t)len < room ? (size_t)len : room - 1;
	if (strcmp(line, state.last) == 0)
		return;
	strcpy(state.last, line);
	erase();
	put(text, wrap(line, text, sizeof text));
}

void log_note(const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	pthread_mutex_lock(&lock);
	if (state.speaks && state.level >= LOG_NORMAL)
		say("", fmt, ap);
	pthread_mutex_unlock(&lock);
	va_end(ap);
}

void log_detail(const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	pthread_mutex_lock(&lock);
	if (state.speaks && state.level >= LOG_VERBOSE)
		say("", fmt, ap);
	pthread_mutex_unlock(&lock);
	va_end(ap);
}

void log_warn(const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	pthread_mutex_lock(&lock);
	say("warning: ", fmt, ap);
	pthread_mutex_unlock(&lock);
	va_end(ap);
}

void progress_begin(const char *what)
{
	pthread_mutex_lock(&lock);
	erase();
	state.active = true;
	snprintf(state.what, sizeof state.what, "%s", what);
	state.begun_s = clock_s();
	state.drawn_s = -1e300;
	pthread_mutex_unlock(&lock);
}

/* A line that wraps cannot be erased: cut to the terminal's width, between characters. */
static size_t cut_to_width(const char *line, size_t len, size_t width)
{
	size_t characters = 0;
	for (size_t i = 0; i < len; i++) {
		if (((unsigned char)line[i] & 0xC0) == 0x80)
			continue;
		if (++characters >= width)
			return i;
	}
	return len;
}

static void draw(double fraction, const char *detail, double elapsed_s)
{
	char bar[BAR_CELLS + 1];
	size_t full = (size_t)(fraction * BAR_CELLS);
	memset(bar, '.', BAR_CELLS);
	memset(bar, '#', full);
	bar[BAR_CELLS] = '\0';

	char left[48] = "";
	if (fraction > 0)
		snprintf(left, sizeof left, " %.0f s left", elapsed_s * (1 - fraction) / fraction);
	char line[512];
	int len = snprintf(line, sizeof line - 1, "%s [%s] %.0f %%%s%s%s", state.what, bar, 100 * fraction, left,
		detail ? "  " : "", detail ? detail : "");
	if (len < 0)
		return;
	size_t n = (size_t)len < sizeof line - 1 ? (size_t)len : sizeof line - 2;
	erase();
	if (state.in_place) {
		n = cut_to_width(line, n, state.width);
		state.on_screen = true;
	} else {
		line[n++] = '\n';
	}
	put(line, n);
}

void progress_update(double fraction, const char *detail)
{
	pthread_mutex_lock(&lock);
	double now_s = clock_s();
	double pause_s = state.in_place ? REDRAW_TERMINAL_S : REDRAW_PLAIN_S;
	bool due = state.progress && state.active && now_s - state.begun_s >= SHOW_AFTER_S &&
	           now_s - state.drawn_s >= pause_s;
	if (due) {
		double shown = fraction > 0 ? (fraction < 1 ? fraction : 1) : 0; /* NaN becomes 0 */
		state.drawn_s = now_s;
		draw(shown, detail, now_s - state.begun_s);
	}
	pthread_mutex_unlock(&lock);
}

void progress_end(void)
{
	pthread_mutex_lock(&lock);
	erase();
	state.active = false;
	pthread_mutex_unlock(&lock);
}
