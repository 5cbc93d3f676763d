/* The plug-in that executes and its session, opened when a command needs them; who leads. */
#include <dlfcn.h>
#include <string.h>

#include "base/array.h"
#include "base/log.h"
#include "base/paths.h"
#include "cli/blas.h"
#include "cli/command.h"

/* Libraries that the plug-in needs, as the loader names them, and where they come from. */
static const struct {
	const char *file, *name, *packages;
} LIBRARIES[] = {
	{"libmpi", "Open MPI",
		"Debian and Ubuntu: apt-get install openmpi-bin; Fedora: dnf install openmpi, module load mpi"},
	{"libopenblas", "OpenBLAS", "Debian and Ubuntu: apt-get install libopenblas0; Fedora: dnf install openblas"},
};

#define DOES_WITHOUT "predicting a system of the catalogue does without"

static enum status explain_load(const char *why, struct error *e)
{
	for (size_t i = 0; i < COUNT(LIBRARIES); i++)
		if (strncmp(why, LIBRARIES[i].file, strlen(LIBRARIES[i].file)) == 0)
			return error_set(e, ST_RUN, "executing and measuring needs %s (%s; " DOES_WITHOUT "): %s",
				LIBRARIES[i].name, LIBRARIES[i].packages, why);
	return error_set(e, ST_RUN, EXEC_OBJECT " does not load (" DOES_WITHOUT "): %s", why);
}

static enum status open_plugin(const struct exec_plugin **out, struct error *e)
{
	char path[PATH_MAX_LEN];
	if (!path_plugin(EXEC_OBJECT, path))
		return error_set(e, ST_RUN,
			"executing and measuring needs " EXEC_OBJECT ", which is neither beside this binary nor in "
			"../lib/stepsim of it (`make` and `make install` put it there; " DOES_WITHOUT ")");
	/* Open MPI's components look for its library among the symbols of the whole process. */
	void *object = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
	if (!object)
		return explain_load(dlerror(), e);
	const struct exec_plugin *plugin = dlsym(object, EXEC_ENTRY);
	if (!plugin || strcmp(plugin->version, STEPSIM_VERSION) != 0 || plugin->layout != EXEC_LAYOUT)
		return error_set(e, ST_RUN, "%s is of another build than this binary (`make` builds both)", path);
	if (!plugin->runs_here())
		return error_set(e, ST_RUN,
			"executing and measuring needs a processor with AVX2, FMA and BMI in this build; "
			"`make` builds for the machine at hand (" DOES_WITHOUT ")");
	*out = plugin;
	return ST_OK;
}

enum status context_exec(struct context *x, struct error *e)
{
	static const struct exec_plugin *opened; /* and kept: MPI does not like to be unloaded */
	static struct blas_choice blas;
	enum status st = ST_OK;
	if (!opened) {
		blas_choose(open_plugin, &blas);
		if (!(st = open_plugin(&opened, e)) && *blas.text)
			(blas.slow ? log_note : log_detail)("%s", blas.text);
	}
	x->exec = opened;
	x->blas = blas.text;
	return st;
}

enum status context_session(struct context *x, double timeout_s, struct error *e)
{
	if (x->session)
		return ST_OK;
	enum status st = context_exec(x, e);
	return st ? st : x->exec->session_open(timeout_s, &x->session, e);
}

void context_close(struct context *x)
{
	if (x->session)
		x->exec->session_close(x->session);
	x->session = NULL;
}

const struct session_info *context_info(const struct context *x)
{
	return x->session ? x->exec->session_info(x->session) : NULL;
}

bool context_leads(const struct context *x) { return (x->session ? context_info(x)->rank : x->launch.rank) == 0; }

enum status context_agree(const struct context *x, enum status st, struct error *e)
{
	return x->session ? x->exec->session_agree(x->session, st, e) : st;
}
