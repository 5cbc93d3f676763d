/* Where the catalogue and the caches are. */
#ifndef STEPSIM_BASE_PATHS_H
#define STEPSIM_BASE_PATHS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/status.h"

#define PATH_MAX_LEN 4096

/* The folder that holds configs/: STEPSIM_HOME, else the source tree of the running binary (its folder and up), else
 * the installed share/stepsim beside it. ST_INPUT when none holds configs/. */
enum status path_home(char out[PATH_MAX_LEN], struct error *e);

/* The plug-in of this file name: in the folder of the running binary, in one of the two above it (tests lie below the
 * build), or in ../lib/stepsim of it (installed). False where there is none; *out is undefined then. */
bool path_plugin(const char *name, char out[PATH_MAX_LEN]);

/* "<home>/configs/<kind>/<name>.yaml" */
enum status path_catalogue(const char *kind, const char *name, char out[PATH_MAX_LEN], struct error *e);

/* The names (without .yaml), sorted, of a catalogue folder; `names` and its strings are freed with path_names_free. */
enum status path_catalogue_names(const char *kind, char ***names, size_t *n, struct error *e);
void path_names_free(char **names, size_t n);

/* The path of `name` beside `file`: in that file's folder, unless it is absolute or `file` is NULL. False where it does
 * not fit; *out is then cut. */
bool path_beside(const char *file, const char *name, char out[PATH_MAX_LEN]);

/* The file that a value of the config `file` names: beside the config where that can be read, else as it stands. */
void path_named_by(const char *file, const char *name, char out[PATH_MAX_LEN]);

/* $XDG_CACHE_HOME/stepsim, else ~/.cache/stepsim; made if missing. */
enum status path_cache(char out[PATH_MAX_LEN], struct error *e);

/* Reads a whole file, at most `limit` bytes; *text is malloc'ed and terminated. Writes through a temporary name and
 * rename; "-" is standard output. */
enum status file_read(const char *path, size_t limit, char **text, size_t *len, struct error *e);
enum status file_write(const char *path, const char *text, size_t len, struct error *e);
/* Whether file_write could open it now; ST_INPUT. Nothing is written: to be asked before what takes long. */
enum status file_can_write(const char *path, struct error *e);

/* Collects in *text what `write` writes of `of`. *text is malloc'ed and terminated; the caller frees it, also after a
 * failure. `what` names it in the error of short memory: "the CSV". */
enum status text_of(void (*write)(const void *of, FILE *out), const void *of, const char *what, char **text,
	size_t *len, struct error *e);
/* The same into a file, as file_write. */
enum status file_write_of(const char *path, void (*write)(const void *of, FILE *out), const void *of, const char *what,
	struct error *e);

#endif
