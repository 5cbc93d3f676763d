#include "report/picture.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/wait.h>

#include "base/paths.h"

extern char **environ;

static bool is_png(const char *path)
{
	size_t n = strlen(path);
	return n > 4 && strcasecmp(path + n - 4, ".png") == 0;
}

/* Its standard input and output are files; what it has to say is our one line. */
static enum status convert(FILE *in, FILE *out, const char *path, struct error *e)
{
	char *const arguments[] = {"rsvg-convert", "--format=png", "--zoom=2", NULL};
	posix_spawn_file_actions_t files;
	pid_t child;
	int status = 0;
	if (posix_spawn_file_actions_init(&files) != 0)
		return error_nomem(e, "the picture");
	int failed = posix_spawn_file_actions_adddup2(&files, fileno(in), 0);
	if (!failed)
		failed = posix_spawn_file_actions_adddup2(&files, fileno(out), 1);
	if (!failed)
		failed = posix_spawn_file_actions_addopen(&files, 2, "/dev/null", O_WRONLY, 0);
	if (!failed)
		failed = posix_spawnp(&child, arguments[0], &files, NULL, arguments, environ);
	posix_spawn_file_actions_destroy(&files);
	if (failed)
		return error_set(e, ST_INPUT,
			"%s: PNG needs rsvg-convert (Debian, Ubuntu: librsvg2-bin; Fedora: librsvg2-tools), and %s;"
			" a name that ends in .svg needs nothing",
			path, failed == ENOENT ? "it is not here" : strerror(failed));
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0
	               ? ST_OK
	               : error_set(e, ST_RUN, "%s: rsvg-convert could not draw it", path);
}

static enum status save_png(const char *path, const char *svg, size_t len, struct error *e)
{
	FILE *in = tmpfile(), *out = tmpfile();
	char *png = NULL;
	long size = 0;
	enum status st = in && out && fwrite(svg, 1, len, in) == len && fseek(in, 0, SEEK_SET) == 0
	                         ? ST_OK
	                         : error_set(e, ST_RUN, "%s: no room for a temporary file: %s", path, strerror(errno));
	if (!st)
		st = convert(in, out, path, e);
	if (!st && (fseek(out, 0, SEEK_END) != 0 || (size = ftell(out)) <= 0 || !(png = malloc((size_t)size)) ||
			   fseek(out, 0, SEEK_SET) != 0 || fread(png, 1, (size_t)size, out) != (size_t)size))
		st = error_set(e, ST_RUN, "%s: rsvg-convert has drawn nothing", path);
	if (!st)
		st = file_write(path, png, (size_t)size, e);
	free(png);
	if (in)
		fclose(in);
	if (out)
		fclose(out);
	return st;
}

enum status picture_save(const char *path, void (*write)(const void *of, FILE *out), const void *of, const char *what,
	struct error *e)
{
	char *svg;
	size_t len;
	enum status st = text_of(write, of, what, &svg, &len, e);
	if (!st)
		st = is_png(path) ? save_png(path, svg, len, e) : file_write(path, svg, len, e);
	free(svg);
	return st;
}
