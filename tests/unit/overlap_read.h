/* Traces in a folder of their own, and the overlap that is read from them. */
#ifndef STEPSIM_TESTS_UNIT_OVERLAP_READ_H
#define STEPSIM_TESTS_UNIT_OVERLAP_READ_H

#include <stdlib.h>
#include <string.h>

#include "report/overlap.h"
#include "tests/unit/harness.h"

static char folder[64], path[128];
static struct error error;

static inline const char *in_folder(const char *name)
{
	if (!*folder) {
		strcpy(folder, "/tmp/stepsim_test_overlap_XXXXXX");
		CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(folder));
	}
	snprintf(path, sizeof path, "%s/%s", folder, name);
	return path;
}

static inline enum status overlap_read(const char *const *paths, size_t n, struct trace_set *set, struct overlap *o)
{
	enum status st = ST_OK;
	*set = (struct trace_set){0};
	*o = (struct overlap){0};
	error = (struct error){0};
	for (size_t i = 0; i < n && !st; i++)
		st = trace_read(paths[i], set, NULL, NULL, &error);
	if (!st)
		st = trace_finish(set, &error);
	return st ? st : overlap_of(set, o, &error);
}

static inline void release(struct trace_set *set, struct overlap *o)
{
	overlap_free(o);
	trace_free(set);
}

/* Removes the files, which are all that is there, and the folder. */
static inline void remove_files(const char *const *names, size_t n)
{
	for (size_t i = 0; i < n; i++)
		CU_ASSERT_EQUAL(unlink(in_folder(names[i])), 0);
	CU_ASSERT_EQUAL(rmdir(folder), 0);
}

#endif
