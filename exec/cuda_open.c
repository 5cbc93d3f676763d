/* Finding and opening the CUDA backend's shared object; the only part of it that the binary itself holds. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/paths.h"
#include "exec/cuda/backend.h"

static bool object_beside_binary(char path[PATH_MAX_LEN])
{
	static const char *const places[] = {"", "../", "../../",
		"../lib/stepsim/"}; /* test programs lie one or two folders below the build's */
	char self[PATH_MAX_LEN / 2];
	ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
	if (n <= 0)
		return false;
	self[n] = '\0';
	char *slash = strrchr(self, '/');
	if (!slash)
		return false;
	slash[1] = '\0';
	for (size_t i = 0; i < COUNT(places); i++) {
		snprintf(path, PATH_MAX_LEN, "%s%s" CUDA_OBJECT, self, places[i]);
		if (access(path, R_OK) == 0)
			return true;
	}
	return false;
}

enum status cuda_backend_open(const struct cuda_backend **out, struct error *e)
{
	static const struct cuda_backend
		*backend; /* opened once, and kept: CUDA's libraries do not like to be unloaded */
	char path[PATH_MAX_LEN];
	*out = backend;
	if (backend)
		return ST_OK;
	if (!object_beside_binary(path))
		return error_set(e, ST_RUN, "this build has no CUDA part (make CUDA=1 says what is missing)");
	void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!object)
		return error_set(e, ST_RUN, "the CUDA part does not load: %s", dlerror());
	backend = dlsym(object, CUDA_ENTRY);
	*out = backend;
	return backend ? ST_OK : error_set(e, ST_RUN, "%s has no %s", path, CUDA_ENTRY);
}
