/* Opening the CUDA backend's shared object. */
#include <dlfcn.h>

#include "base/paths.h"
#include "exec/cuda/backend.h"

enum status cuda_backend_open(const struct cuda_backend **out, struct error *e)
{
	static const struct cuda_backend
		*backend; /* opened once, and kept: CUDA's libraries do not like to be unloaded */
	char path[PATH_MAX_LEN];
	*out = backend;
	if (backend)
		return ST_OK;
	if (!path_plugin(CUDA_OBJECT, path))
		return error_set(e, ST_RUN, "this build has no CUDA part (make CUDA=1 says what is missing)");
	void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!object)
		return error_set(e, ST_RUN, "the CUDA part does not load: %s", dlerror());
	backend = dlsym(object, CUDA_ENTRY);
	*out = backend;
	return backend ? ST_OK : error_set(e, ST_RUN, "%s has no %s", path, CUDA_ENTRY);
}
