/* What a text of another framework becomes: for the tests of step/import. */
#ifndef STEPSIM_TESTS_UNIT_IMPORT_CHECK_H
#define STEPSIM_TESTS_UNIT_IMPORT_CHECK_H

#include <string.h>

#include "step/import/import.h"
#include "tests/unit/harness.h"

static struct import im;

static void take(const char *text, const char *framework)
{
	struct error e = {0};
	bool found = false;
	CU_ASSERT_EQUAL_FATAL(import_read(text, strlen(text), "file", NULL, &found, &im, &e), ST_OK);
	CU_ASSERT_FATAL(found);
	CU_ASSERT_STRING_EQUAL(im.table.name, framework);
}

static void check(enum key_id id, const char *value)
{
	CU_ASSERT_EQUAL(import_has(&im, id), value != NULL);
	if (value && strcmp(im.key[id].value, value) != 0)
		printf("\n%s is %s, not %s\n", config_key(id)->path, im.key[id].value, value);
	CU_ASSERT(!value || strcmp(im.key[id].value, value) == 0);
}

static void check_leaf(const char *path, enum verdict verdict, const char *why)
{
	const struct leaf *l = foreign_find(&im.foreign, path);
	CU_ASSERT_PTR_NOT_NULL_FATAL(l);
	CU_ASSERT_EQUAL(l->verdict, verdict);
	CU_ASSERT_STRING_EQUAL(l->why, why);
	if (strcmp(l->why, why) != 0)
		printf("\n%s: %s\n", path, l->why);
}

#endif
