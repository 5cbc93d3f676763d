/* Status codes and the error record.
 *
 * Convention, everywhere: a function that can fail returns `enum status` and fills the caller's `struct error`; the
 * first failure wins (a second error_set on the same record is ignored), callers may add context. ST_OK is 0, so
 * `if ((st = f())) goto out;` works. The values are the process's exit codes (docs/reference.md).
 */
#ifndef STEPSIM_BASE_STATUS_H
#define STEPSIM_BASE_STATUS_H

enum status {
	ST_OK = 0,
	ST_RUN = 1,   /* the execution failed: a rank died, a time limit, a wrong sum, no memory, no device */
	ST_INPUT = 2, /* the command line, a config or an input file is wrong */
	ST_LIMIT = 3, /* done, but a limit that the user set was missed: --max-error, --require-fit */
};

struct error {
	enum status status; /* ST_OK while nothing failed */
	char text[1024];    /* one line, no trailing newline; always terminated */
};

/* Records a failure unless one is recorded already; returns the recorded status. `e` may be NULL: then only `st` is
 * returned. */
enum status error_set(struct error *e, enum status st, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Prefixes a recorded failure with "<context>: "; does nothing on an empty record. Returns the recorded status. */
enum status error_context(struct error *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Records "out of memory" (ST_RUN), naming what was being allocated. */
enum status error_nomem(struct error *e, const char *what);

#endif
