/* The log and the progress line, both on standard error. Standard output belongs to results, and only cli/ and report/
 * write there. */
#ifndef STEPSIM_BASE_LOG_H
#define STEPSIM_BASE_LOG_H

#include <stdbool.h>

enum log_level { LOG_QUIET = 0, LOG_NORMAL = 1, LOG_VERBOSE = 2 };
enum progress_mode { PROGRESS_AUTO, PROGRESS_ALWAYS, PROGRESS_NEVER };

/* Process-wide settings, made once by cli/. `speaks`: false on ranks other than 0, whose notes and progress are
 * dropped. */
void log_setup(enum log_level level, enum progress_mode progress, bool speaks);
enum log_level log_level(void);

/* "stepsim: ..." lines. log_note: normal and up; log_detail: verbose only; log_warn: always, on every rank. What the
 * line before said already is not said again: each step of a sweep would warn. */
void log_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_detail(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* A progress line "what [#####.....] 45 % 3 s left", shown only once a task has lasted 2 s, redrawn at most ten times a
 * second on a terminal; where it is forced without a terminal (PROGRESS_ALWAYS), a plain line at most every 2 s. */
void progress_begin(const char *what);
void progress_update(double fraction, const char *detail); /* fraction in [0, 1]; detail may be NULL */
void progress_end(void);

#endif
