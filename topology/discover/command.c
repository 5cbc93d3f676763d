#include "topology/discover/command.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/vec.h"

#define OUTPUT_MOST (4u << 20)
#define TICK_MS 20
#define KILLED_S 1.0 /* how long a killed process may take to go */

extern char **environ;

struct stream {
	int fd; /* -1: at its end */
	VEC(char) data;
};

struct child {
	pid_t pid;
	struct stream out, err;
	bool ended;
	int status; /* as waitpid has it; -1: taken by somebody else (SIGCHLD is ignored in this process) */
};

static void stream_close(struct stream *s)
{
	if (s->fd >= 0)
		close(s->fd);
	s->fd = -1;
}

/* Everything that is there now; the fd never blocks. False when out of memory. */
static bool stream_drain(struct stream *s)
{
	while (s->fd >= 0 && s->data.n <= OUTPUT_MOST) {
		if (!vec_reserve(&s->data, 4096))
			return false;
		ssize_t got = read(s->fd, s->data.at + s->data.n, s->data.cap - s->data.n - 1);
		if (got > 0)
			s->data.n += (size_t)got;
		else if (got == 0 || (errno != EINTR && errno != EAGAIN))
			stream_close(s);
		else if (errno == EAGAIN)
			break;
	}
	return true;
}

static int spawn(struct child *c, const char *const *argv, int out_fd, int err_fd)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	sigset_t none, defaults;
	sigemptyset(&none);
	sigemptyset(&defaults);
	sigaddset(&defaults, SIGPIPE);
	sigaddset(&defaults, SIGCHLD);
	int failed = posix_spawn_file_actions_init(&actions);
	if (failed)
		return failed;
	failed = posix_spawnattr_init(&attr);
	if (!failed) {
		failed = posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
		if (!failed)
			failed = posix_spawn_file_actions_adddup2(&actions, out_fd, 1);
		if (!failed)
			failed = posix_spawn_file_actions_adddup2(&actions, err_fd, 2);
		if (!failed)
			failed = posix_spawnattr_setflags(&attr,
				POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
		if (!failed)
			failed = posix_spawnattr_setsigmask(&attr, &none);
		if (!failed)
			failed = posix_spawnattr_setsigdefault(&attr, &defaults);
		if (!failed)
			failed = posix_spawnp(&c->pid, argv[0], &actions, &attr, (char *const *)(uintptr_t)argv,
				environ);
		posix_spawnattr_destroy(&attr);
	}
	posix_spawn_file_actions_destroy(&actions);
	return failed;
}

static void look_whether_ended(struct child *c)
{
	if (c->ended)
		return;
	pid_t got = waitpid(c->pid, &c->status, WNOHANG);
	if (got == c->pid) {
		c->ended = true;
	} else if (got < 0 && errno != EINTR) {
		c->ended = true;
		c->status = -1;
	}
}

/* Until the process has ended and its outputs are read, or the limit. A grandchild that keeps a pipe open is not waited
 * for. */
static enum status attend(struct child *c, double limit_s, enum command_end *end, struct error *e)
{
	double until_s = clock_s() + limit_s;
	for (;;) {
		look_whether_ended(c);
		if (!stream_drain(&c->out) || !stream_drain(&c->err))
			return error_nomem(e, "the output of a program");
		if (c->out.data.n > OUTPUT_MOST || c->err.data.n > OUTPUT_MOST)
			*end = COMMAND_TOO_LONG;
		else if (c->ended)
			*end = COMMAND_EXITED;
		else if (clock_s() >= until_s)
			*end = COMMAND_TIMED_OUT;
		else {
			struct pollfd fds[2] = {{.fd = c->out.fd, .events = POLLIN},
				{.fd = c->err.fd, .events = POLLIN}};
			poll(fds, 2, TICK_MS);
			continue;
		}
		return ST_OK;
	}
}

/* A process that sleeps uninterruptibly inside the driver outlives its SIGKILL: it is given a moment and then left,
 * because waiting for it would hang this program as well. */
static bool end_child(struct child *c)
{
	if (c->ended)
		return true;
	kill(-c->pid, SIGKILL);
	kill(c->pid, SIGKILL);
	double until_s = clock_s() + KILLED_S;
	while (look_whether_ended(c), !c->ended && clock_s() < until_s)
		poll(NULL, 0, 1);
	return c->ended;
}

static bool first_line(const char *text, size_t len, char out[COMMAND_LINE])
{
	for (size_t i = 0; i < len;) {
		size_t n = 0;
		while (i + n < len && text[i + n] != '\n' && text[i + n] != '\r')
			n++;
		size_t blanks = 0;
		while (blanks < n && (text[i + blanks] == ' ' || text[i + blanks] == '\t'))
			blanks++;
		if (blanks < n) {
			size_t keep = n - blanks < COMMAND_LINE - 1 ? n - blanks : COMMAND_LINE - 1;
			for (size_t k = 0; k < keep; k++) {
				char byte = text[i + blanks + k];
				out[k] = byte >= 0x20 && byte < 0x7f ? byte : '?';
			}
			out[keep] = '\0';
			return true;
		}
		i += n + 1;
	}
	return false;
}

static enum status finish(struct child *c, enum command_end end, struct command_result *out, struct error *e)
{
	out->end = end;
	out->stuck = !end_child(c);
	if (end == COMMAND_EXITED && c->status >= 0 && WIFSIGNALED(c->status)) {
		out->end = COMMAND_SIGNAL;
		out->code = WTERMSIG(c->status);
	} else if (end == COMMAND_EXITED) {
		out->code = c->status >= 0 ? WEXITSTATUS(c->status) : 0;
	}
	if (!vec_reserve(&c->out.data, 1))
		return error_nomem(e, "the output of a program");
	c->out.data.at[c->out.data.n] = '\0';
	if (!first_line(c->err.data.at, c->err.data.n, out->first))
		first_line(c->out.data.at, c->out.data.n, out->first);
	out->text = c->out.data.at;
	out->len = c->out.data.n;
	c->out.data.at = NULL;
	return ST_OK;
}

enum status command_run(const char *const *argv, double limit_s, struct command_result *out, struct error *e)
{
	struct child c = {.out = {.fd = -1}, .err = {.fd = -1}};
	int out_pipe[2] = {-1, -1}, err_pipe[2] = {-1, -1};
	enum command_end end = COMMAND_EXITED;
	enum status st = ST_OK;
	*out = (struct command_result){0};
	if (pipe2(out_pipe, O_CLOEXEC) != 0 || pipe2(err_pipe, O_CLOEXEC) != 0) {
		st = error_set(e, ST_RUN, "cannot run %s: %s", argv[0], strerror(errno));
		goto out;
	}
	fcntl(out_pipe[0], F_SETFL, O_NONBLOCK);
	fcntl(err_pipe[0], F_SETFL, O_NONBLOCK);
	int failed = spawn(&c, argv, out_pipe[1], err_pipe[1]);
	if (failed == ENOENT || failed == EACCES || failed == ENOEXEC || failed == ENOTDIR) {
		end = COMMAND_NOT_FOUND;
		c.ended = true;
	} else if (failed) {
		st = error_set(e, ST_RUN, "cannot run %s: %s", argv[0], strerror(failed));
		goto out;
	} else {
		close(out_pipe[1]);
		close(err_pipe[1]);
		out_pipe[1] = err_pipe[1] = -1;
		c.out.fd = out_pipe[0];
		c.err.fd = err_pipe[0];
		out_pipe[0] = err_pipe[0] = -1;
		st = attend(&c, limit_s, &end, e);
	}
	if (st)
		end_child(&c);
	else
		st = finish(&c, end, out, e);
out:
	stream_close(&c.out);
	stream_close(&c.err);
	for (int i = 0; i < 2; i++) {
		if (out_pipe[i] >= 0)
			close(out_pipe[i]);
		if (err_pipe[i] >= 0)
			close(err_pipe[i]);
	}
	vec_free(&c.out.data);
	vec_free(&c.err.data);
	return st;
}

void command_result_free(struct command_result *r)
{
	if (!r)
		return;
	free(r->text);
	*r = (struct command_result){0};
}
