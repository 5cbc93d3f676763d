/* The file functions of base/paths.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/paths.h"
#include "base/vec.h"

static enum status read_all(int fd, const char *path, size_t limit, char **text, size_t *len, struct error *e)
{
	VEC(char) data = {0};
	enum status st = ST_OK;
	for (;;) {
		if (!vec_reserve(&data, 4096)) { /* room for the terminator is in it: a read fills one byte less */
			st = error_nomem(e, "a file's text");
			break;
		}
		ssize_t got = read(fd, data.at + data.n, data.cap - data.n - 1);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0) {
			st = error_set(e, ST_INPUT, "cannot read %s: %s", path, strerror(errno));
			break;
		}
		if (got == 0)
			break;
		data.n += (size_t)got;
		if (data.n > limit) {
			st = error_set(e, ST_INPUT, "%s is larger than %zu bytes", path, limit);
			break;
		}
	}
	if (st) {
		vec_free(&data);
		return st;
	}
	data.at[data.n] = '\0';
	*text = data.at;
	*len = data.n;
	return ST_OK;
}

enum status file_read(const char *path, size_t limit, char **text, size_t *len, struct error *e)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return error_set(e, ST_INPUT, "cannot read %s: %s", path, strerror(errno));
	enum status st = read_all(fd, path, limit, text, len, e);
	close(fd);
	return st;
}

static bool write_all(int fd, const char *text, size_t len)
{
	while (len > 0) {
		ssize_t done = write(fd, text, len);
		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return false;
		text += done;
		len -= (size_t)done;
	}
	return true;
}

static enum status write_failed(const char *path, struct error *e)
{
	return error_set(e, ST_RUN, "cannot write %s: %s", path, strerror(errno));
}

/* A path that cannot be opened was given wrong (ST_INPUT); a write that breaks off is the machine's failure (ST_RUN).
 */
static enum status open_failed(const char *path, struct error *e)
{
	return error_set(e, ST_INPUT, "cannot write %s: %s", path, strerror(errno));
}

static enum status write_through(const char *path, const char *text, size_t len, struct error *e)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return open_failed(path, e);
	enum status st = write_all(fd, text, len) ? ST_OK : write_failed(path, e);
	close(fd);
	return st;
}

/* Fails where file_write could not write to `path`: it replaces a file by one beside it, and writes through a device.
 */
static enum status can_make_beside(const char *path, struct error *e)
{
	char folder[PATH_MAX_LEN];
	const char *slash = strrchr(path, '/');
	int len = slash ? (int)(slash - path) + 1 : 0;
	if (snprintf(folder, sizeof folder, "%.*s.", len, path) >= (int)sizeof folder)
		return error_set(e, ST_INPUT, "cannot write %s: the path is too long", path);
	return access(folder, W_OK | X_OK) == 0 ? ST_OK : open_failed(path, e);
}

enum status file_can_write(const char *path, struct error *e)
{
	struct stat s;
	if (strcmp(path, "-") == 0)
		return ST_OK;
	if (stat(path, &s) != 0)
		return can_make_beside(path, e);
	if (S_ISDIR(s.st_mode)) {
		errno = EISDIR;
		return open_failed(path, e);
	}
	if (!S_ISREG(s.st_mode))
		return access(path, W_OK) == 0 ? ST_OK : open_failed(path, e);
	char *target = realpath(path, NULL);
	enum status st = target ? can_make_beside(target, e) : open_failed(path, e);
	free(target);
	return st;
}

/* `mode`: of the file that is replaced; 0 when there is none. */
static enum status write_and_rename(const char *path, mode_t mode, const char *text, size_t len, struct error *e)
{
	static atomic_uint serial; /* two threads of one process may write the same file */
	char temporary[PATH_MAX_LEN];
	int named = snprintf(temporary, sizeof temporary, "%s.%ld-%u.tmp", path, (long)getpid(),
		atomic_fetch_add(&serial, 1u));
	if (named < 0 || (size_t)named >= sizeof temporary)
		return error_set(e, ST_INPUT, "cannot write %s: the path is too long", path);
	int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (fd < 0)
		return open_failed(path, e);
	bool good = (!mode || fchmod(fd, mode) == 0) && write_all(fd, text, len);
	enum status st = good ? ST_OK : write_failed(path, e);
	if (close(fd) != 0 && !st)
		st = write_failed(path, e);
	if (!st && rename(temporary, path) != 0)
		st = write_failed(path, e);
	if (st)
		unlink(temporary);
	return st;
}

enum status file_write(const char *path, const char *text, size_t len, struct error *e)
{
	if (strcmp(path, "-") == 0) {
		if (fwrite(text, 1, len, stdout) != len || fflush(stdout) != 0)
			return write_failed("standard output", e);
		return ST_OK;
	}
	struct stat s;
	if (stat(path, &s) != 0)
		return write_and_rename(path, 0, text, len, e);
	if (!S_ISREG(s.st_mode)) /* /dev/null, a pipe: renaming would replace the device itself */
		return write_through(path, text, len, e);
	char *target = realpath(path, NULL); /* a link stays a link */
	if (!target)
		return open_failed(path, e);
	enum status st = write_and_rename(target, s.st_mode & 07777, text, len, e);
	free(target);
	return st;
}
