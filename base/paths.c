#include "base/paths.h"

#include <dirent.h>
#include <errno.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/memory_stream.h"
#include "base/vec.h"

#define LEVELS_UP 6
#define SUFFIX ".yaml"

static bool is_folder(const char *path)
{
	struct stat s;
	return stat(path, &s) == 0 && S_ISDIR(s.st_mode);
}

/* Joins in place; false when it does not fit. */
static bool joined(char out[PATH_MAX_LEN], const char *folder, const char *rest)
{
	int len = snprintf(out, PATH_MAX_LEN, "%s%s", folder, rest);
	return len >= 0 && len < PATH_MAX_LEN;
}

static bool holds_catalogue(const char *folder)
{
	char probe[PATH_MAX_LEN];
	return joined(probe, folder, "/configs/gpus") && is_folder(probe);
}

/* The folder of the running binary, without a slash at its end. */
static bool binary_folder(char folder[PATH_MAX_LEN])
{
	const ssize_t len = readlink("/proc/self/exe", folder, PATH_MAX_LEN - 1);
	if (len <= 0)
		return false;
	folder[len] = '\0';
	char *slash = strrchr(folder, '/');
	if (slash)
		*slash = '\0';
	return slash != NULL;
}

static bool home_near_binary(char out[PATH_MAX_LEN])
{
	char folder[PATH_MAX_LEN];
	bool more = binary_folder(folder);
	for (int level = 0; more && level < LEVELS_UP; level++) {
		if (joined(out, folder, "") && holds_catalogue(out))
			return true;
		if (joined(out, folder, "/share/stepsim") && holds_catalogue(out))
			return true;
		char *slash = strrchr(folder, '/');
		if ((more = slash != NULL))
			*slash = '\0';
	}
	return false;
}

bool path_beside(const char *file, const char *name, char out[PATH_MAX_LEN])
{
	const char *slash = file && *name != '/' ? strrchr(file, '/') : NULL;
	const int len = snprintf(out, PATH_MAX_LEN, "%.*s%s", slash ? (int)(slash - file) + 1 : 0, slash ? file : "",
		name);
	return len >= 0 && len < PATH_MAX_LEN;
}

void path_named_by(const char *file, const char *name, char out[PATH_MAX_LEN])
{
	if (!path_beside(file, name, out) || access(out, R_OK) != 0)
		snprintf(out, PATH_MAX_LEN, "%s", name);
}

bool path_plugin(const char *name, char out[PATH_MAX_LEN])
{
	static const char *const places[] = {"", "/..", "/../..", "/../lib/stepsim"};
	char folder[PATH_MAX_LEN];
	if (!binary_folder(folder))
		return false;
	for (size_t i = 0; i < COUNT(places); i++) {
		const int len = snprintf(out, PATH_MAX_LEN, "%s%s/%s", folder, places[i], name);
		if (len > 0 && len < PATH_MAX_LEN && access(out, R_OK) == 0)
			return true;
	}
	return false;
}

enum status path_home(char out[PATH_MAX_LEN], struct error *e)
{
	const char *home = getenv("STEPSIM_HOME");
	if (home && *home) {
		if (joined(out, home, "") && holds_catalogue(out))
			return ST_OK;
		return error_set(e, ST_INPUT, "STEPSIM_HOME=%s does not hold configs/gpus", home);
	}
	if (home_near_binary(out))
		return ST_OK;
	return error_set(e, ST_INPUT,
		"the catalogue (configs/) is not beside this binary; set STEPSIM_HOME to the folder that holds "
		"configs/");
}

static enum status catalogue_folder(const char *kind, char out[PATH_MAX_LEN], struct error *e)
{
	char home[PATH_MAX_LEN];
	enum status st = path_home(home, e);
	if (st)
		return st;
	int len = snprintf(out, PATH_MAX_LEN, "%s/configs/%s", home, kind);
	if (len < 0 || len >= PATH_MAX_LEN)
		return error_set(e, ST_INPUT, "the path of the catalogue folder '%s' is too long", kind);
	return ST_OK;
}

enum status path_catalogue(const char *kind, const char *name, char out[PATH_MAX_LEN], struct error *e)
{
	if (!*name || *name == '.' || strchr(name, '/'))
		return error_set(e, ST_INPUT, "'%s' is not a catalogue name", name);
	char folder[PATH_MAX_LEN];
	enum status st = catalogue_folder(kind, folder, e);
	if (st)
		return st;
	int len = snprintf(out, PATH_MAX_LEN, "%s/%s" SUFFIX, folder, name);
	if (len < 0 || len >= PATH_MAX_LEN)
		return error_set(e, ST_INPUT, "the path of '%s' in the catalogue is too long", name);
	return ST_OK;
}

static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

enum status path_catalogue_names(const char *kind, char ***names, size_t *n, struct error *e)
{
	char folder[PATH_MAX_LEN];
	VEC(char *) found = {0};
	DIR *dir = NULL;
	enum status st = catalogue_folder(kind, folder, e);
	if (st)
		goto out;
	dir = opendir(folder);
	if (!dir) {
		st = error_set(e, ST_INPUT, "cannot list %s: %s", folder, strerror(errno));
		goto out;
	}
	for (struct dirent *entry; (entry = readdir(dir));) {
		size_t len = strlen(entry->d_name), suffix = strlen(SUFFIX);
		if (entry->d_name[0] == '.' || len <= suffix || strcmp(entry->d_name + len - suffix, SUFFIX) != 0)
			continue;
		char *name = strndup(entry->d_name, len - suffix);
		if (!name || !vec_push(&found, name)) {
			free(name);
			st = error_nomem(e, "the catalogue's names");
			goto out;
		}
	}
	if (found.n)
		qsort(found.at, found.n, sizeof *found.at, by_name);
	*names = found.at;
	*n = found.n;
out:
	if (st)
		path_names_free(found.at, found.n);
	if (dir)
		closedir(dir);
	return st;
}

void path_names_free(char **names, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(names[i]);
	free(names);
}

/* mkdir -p; an existing folder is success. */
static bool make_folders(char *path)
{
	for (char *p = path + 1; *p; p++) {
		if (*p != '/')
			continue;
		*p = '\0';
		bool made = mkdir(path, 0777) == 0 || errno == EEXIST;
		*p = '/';
		if (!made)
			return false;
	}
	if (mkdir(path, 0777) == 0)
		return true;
	if (errno == EEXIST && !is_folder(path))
		errno = ENOTDIR;
	return errno == EEXIST;
}

enum status path_cache(char out[PATH_MAX_LEN], struct error *e)
{
	const char *base = getenv("XDG_CACHE_HOME"), *below = "/stepsim";
	if (!base || base[0] != '/') { /* the XDG specification: a relative path is invalid and is ignored */
		below = "/.cache/stepsim";
		base = getenv("HOME");
		if (!base || base[0] != '/') {
			const struct passwd *user = getpwuid(getuid());
			base = user ? user->pw_dir : NULL;
		}
	}
	if (!base || !joined(out, base, below))
		return error_set(e, ST_RUN, "no folder for the cache: set XDG_CACHE_HOME or HOME");
	if (!make_folders(out))
		return error_set(e, ST_RUN, "cannot make the cache folder %s: %s", out, strerror(errno));
	return ST_OK;
}

enum status text_of(void (*write)(const void *of, FILE *out), const void *of, const char *what, char **text,
	size_t *len, struct error *e)
{
	*text = NULL;
	*len = 0;
	FILE *out = memory_stream(text, len);
	if (!out)
		return error_nomem(e, what);
	write(of, out);
	return memory_stream_close(out) ? ST_OK : error_nomem(e, what);
}

enum status file_write_of(const char *path, void (*write)(const void *of, FILE *out), const void *of, const char *what,
	struct error *e)
{
	char *text;
	size_t len;
	enum status st = text_of(write, of, what, &text, &len, e);
	if (!st)
		st = file_write(path, text, len, e);
	free(text);
	return st;
}
