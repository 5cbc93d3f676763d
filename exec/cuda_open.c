/* Opening the CUDA backend's shared object: finding CUDA's libraries, and saying what is wrong with them. */
#include <dlfcn.h>
#include <glob.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/log.h"
#include "base/paths.h"
#include "exec/cuda/backend.h"

/* The libraries that the object links. CUDA and cuBLASLt carry the major version that the object was built with in
 * their file names. `oldest` has every function that is linked: cudaGetDriverEntryPointByVersion is CUDA 12.5's,
 * ncclCommSplit NCCL 2.18's; functions that came later are asked for at run time. */
static const struct library {
	const char *file, *name, *oldest, *symbols; /* file and symbols: what the names begin with */
	const char *version;                        /* its function, which returns the version or fills an int */
	bool fills;
	int major, minor; /* units of a version's number */
} LIBRARIES[] = {
	{"libcudart.so", "CUDA's runtime", "12.5", "cuda", "cudaRuntimeGetVersion", true, 1000, 10},
	{"libcublasLt.so", "cuBLASLt", "12.5", "cublas", "cublasLtGetVersion", false, 10000, 100},
	{"libcudnn.so", "cuDNN", "9.0", "cudnn", "cudnnGetVersion", false, 10000, 100},
	{"libnccl.so", "NCCL", "2.18", "nccl", "ncclGetVersion", true, 10000, 100},
};

static bool begins(const char *text, const char *with) { return strncmp(text, with, strlen(with)) == 0; }

/* ---- CUDA's wheels: nvidia/cudnn/lib/libcudnn.so.9 below a folder of Python's packages ---- */

/* Calls f with each folder that may have Python's packages in lib/python3*: the active environments, those whose
 * programs PATH has, then the usual ones. Ends when f returns true, and returns that. */
static bool each_python(bool (*f)(const char *folder, void *of), void *of)
{
	static const char *const active[] = {"VIRTUAL_ENV", "CONDA_PREFIX"};
	static const char *const usual[] = {"/usr/local", "/usr", "/opt/conda", "/opt/venv"};
	static const char *const personal[] = {"/.local", "/.pyenv/versions/*"};
	char folder[PATH_MAX_LEN];
	for (size_t i = 0; i < COUNT(active); i++)
		if (getenv(active[i]) && f(getenv(active[i]), of))
			return true;
	for (const char *at = getenv("PATH"); at && *at; at += strcspn(at, ":"), at += *at == ':') {
		const int n = (int)strcspn(at, ":");
		if (n >= PATH_MAX_LEN - 16)
			continue;
		snprintf(folder, sizeof folder, "%.*s/python3", n, at);
		if (n == 0 || access(folder, X_OK) != 0)
			continue;
		snprintf(folder, sizeof folder, "%.*s/..", n, at);
		if (f(folder, of))
			return true;
	}
	for (size_t i = 0; getenv("HOME") && i < COUNT(personal); i++) {
		snprintf(folder, sizeof folder, "%.3000s%s", getenv("HOME"), personal[i]);
		if (f(folder, of))
			return true;
	}
	for (size_t i = 0; i < COUNT(usual); i++)
		if (f(usual[i], of))
			return true;
	return false;
}

struct wanted {
	const char *file;        /* "libcudnn.so.9", or a pattern */
	char path[PATH_MAX_LEN]; /* of the last that was found */
};

static bool find_below(const char *folder, void *of)
{
	struct wanted *w = of;
	char pattern[PATH_MAX_LEN + 128];
	glob_t found = {0};
	snprintf(pattern, sizeof pattern, "%s/lib/python3*/{site,dist}-packages/nvidia/*/lib/%s", folder, w->file);
	/* Braces leave patterns that match nothing as they are: only files count. */
	bool there = false;
	if (glob(pattern, GLOB_BRACE, NULL, &found) == 0)
		for (size_t i = 0; i < found.gl_pathc && !there; i++) {
			there = access(found.gl_pathv[i], R_OK) == 0;
			if (there)
				snprintf(w->path, sizeof w->path, "%s", found.gl_pathv[i]);
		}
	globfree(&found);
	return there;
}

/* Opens the library of this name among CUDA's wheels, and keeps it: the loader then takes it for every file that needs
 * the name. ST_OK with *opened false where no wheel has it. */
static enum status open_from_wheels(const char *file, bool *opened, struct error *e)
{
	struct wanted w = {.file = file};
	*opened = false;
	if (!each_python(find_below, &w))
		return ST_OK;
	if (!dlopen(w.path, RTLD_LAZY | RTLD_LOCAL))
		return error_set(e, ST_RUN, "the CUDA part needs %s, which does not load: %s", file, dlerror());
	log_detail("%s is from Python's packages: %s", file, w.path);
	*opened = true;
	return ST_OK;
}

/* ---- what is wrong ---- */

static const struct library *library_of(const char *name, bool symbol)
{
	for (size_t i = 0; i < COUNT(LIBRARIES); i++)
		if (begins(name, symbol ? LIBRARIES[i].symbols : LIBRARIES[i].file))
			return &LIBRARIES[i];
	return NULL;
}

/* "libcudnn.so.8 is in FOLDER", where a library of this name but another number is: among the wheels, or where the
 * loader looks. */
static void name_another(const struct library *l, const char *file, char *out, size_t size)
{
	char pattern[64];
	snprintf(pattern, sizeof pattern, "%s.[0-9]*", l->file);
	struct wanted w = {.file = pattern};
	const char *found = each_python(find_below, &w) ? w.path : NULL;
	const int number = atoi(file + strlen(l->file) + 1);
	void *other = NULL;
	for (int n = number - 2; !found && n <= number + 2; n++) {
		snprintf(pattern, sizeof pattern, "%s.%d", l->file, n);
		if (n > 0 && n != number && (other = dlopen(pattern, RTLD_LAZY | RTLD_LOCAL)))
			found = pattern;
		if (other)
			dlclose(other);
	}
	snprintf(out, size, found ? "; another one is here: %s" : "", found);
}

static enum status explain_missing(const struct library *l, const char *file, struct error *e)
{
	char another[512];
	name_another(l, file, another, sizeof another);
	return error_set(e, ST_RUN,
		"the CUDA part does not load: it needs %s (%s %s or newer), which is neither where the loader looks "
		"nor among Python's packages (nvidia/*/lib)%s; LD_LIBRARY_PATH may name its folder",
		file, l->name, l->oldest, another);
}

/* The version of the library that the object would load. */
static void name_version(const struct library *l, const char *object, char *out, size_t size)
{
	void *opened = dlopen(object, RTLD_LAZY | RTLD_LOCAL), *found = opened ? dlsym(opened, l->version) : NULL;
	int (*fill)(int *);
	size_t (*give)(void);
	int version = 0;
	Dl_info where = {0};
	memcpy(&fill, &found, sizeof fill); /* ISO C has no conversion from object to function pointers */
	memcpy(&give, &found, sizeof give);
	if (found && l->fills)
		fill(&version);
	else if (found)
		version = (int)give();
	if (found && dladdr(found, &where) && version > 0)
		snprintf(out, size, "%s is %s %d.%d", where.dli_fname, l->name, version / l->major,
			version % l->major / l->minor);
	else
		snprintf(out, size, "%s is of an unknown version", l->name);
	if (opened)
		dlclose(opened);
}

/* dlerror's words: "FILE: cannot open shared object file: ...", "OBJECT: undefined symbol: NAME[, version ...]". */
static enum status explain(const char *object, const char *why, struct error *e)
{
	const char *symbol = strstr(why, "undefined symbol: ");
	char version[PATH_MAX_LEN], name[128];
	const struct library *l;
	if (symbol) {
		symbol += strlen("undefined symbol: ");
		snprintf(name, sizeof name, "%.*s", (int)strcspn(symbol, ", "), symbol);
		if ((l = library_of(name, true))) {
			name_version(l, object, version, sizeof version);
			return error_set(e, ST_RUN,
				"the CUDA part does not load: %.400s, without %s; %s or newer is needed", version, name,
				l->oldest);
		}
	}
	snprintf(name, sizeof name, "%.*s", (int)strcspn(why, ":"), why);
	if (strstr(why, ": cannot open shared object file") && (l = library_of(name, false)))
		return explain_missing(l, name, e);
	return error_set(e, ST_RUN, "the CUDA part does not load: %s", why);
}

static enum status open_object(const char *path, void **object, struct error *e)
{
	char why[1024], file[128];
	bool more = true;
	/* The loader names one missing library at a time. */
	while (!(*object = dlopen(path, RTLD_NOW | RTLD_LOCAL))) {
		snprintf(why, sizeof why, "%s", dlerror());
		snprintf(file, sizeof file, "%.*s", (int)strcspn(why, ":"), why);
		enum status st = ST_OK;
		if (!library_of(file, false) || (st = open_from_wheels(file, &more, e)) || !more)
			return st ? st : explain(path, why, e);
	}
	return ST_OK;
}

enum status cuda_backend_open(const struct cuda_backend **out, struct error *e)
{
	static const struct cuda_backend
		*backend; /* opened once, and kept: CUDA's libraries do not like to be unloaded */
	char path[PATH_MAX_LEN];
	void *object;
	*out = backend;
	if (backend)
		return ST_OK;
	if (!path_plugin(CUDA_OBJECT, path))
		return error_set(e, ST_RUN, "this build has no CUDA part (make CUDA=1 says what is missing)");
	enum status st = open_object(path, &object, e);
	if (st)
		return st;
	backend = dlsym(object, CUDA_ENTRY);
	*out = backend;
	return backend ? ST_OK : error_set(e, ST_RUN, "%s has no %s", path, CUDA_ENTRY);
}
