/* Configs of tests: parsed and resolved, or refused with a message. */
#ifndef STEPSIM_TESTS_UNIT_CONFIG_CASES_H
#define STEPSIM_TESTS_UNIT_CONFIG_CASES_H

#include <stdio.h>
#include <string.h>

#include "step/config/config.h"
#include "tests/unit/harness.h"

static inline enum status parse_sets(const char *text, const char *const *sets, size_t n, struct config *c,
	struct error *e)
{
	memset(e, 0, sizeof *e);
	return config_parse(text, strlen(text), "cfg.yaml", sets, n, c, e);
}

static inline struct config parsed(const char *text)
{
	struct config c;
	struct error e;
	CU_ASSERT_EQUAL(parse_sets(text, NULL, 0, &c, &e), ST_OK);
	if (e.status)
		printf("\n%s\n%s\n", text, e.text);
	return c;
}

static inline struct config with_set(const char *text, const char *set)
{
	struct config c;
	struct error e;
	CU_ASSERT_EQUAL(parse_sets(text, &set, 1, &c, &e), ST_OK);
	if (e.status)
		printf("\n%s\n", e.text);
	return c;
}

static inline struct config resolved(const char *text, int64_t ranks)
{
	struct config c = parsed(text);
	struct error e = {0};
	CU_ASSERT_EQUAL(config_resolve(&c, ranks, &e), ST_OK);
	if (e.status)
		printf("\n%s\n%s\n", text, e.text);
	return c;
}

static inline void refused(const char *text, int64_t ranks, const char *message)
{
	struct config c;
	struct error e;
	enum status st = parse_sets(text, NULL, 0, &c, &e);
	if (!st)
		st = config_resolve(&c, ranks, &e);
	CU_ASSERT_EQUAL(st, ST_INPUT);
	CU_ASSERT_STRING_EQUAL(e.text, message);
	if (strcmp(e.text, message) != 0)
		printf("\ngot %s\n", e.text);
}

#define GPT2 "model: {preset: gpt2-124m}\n"

#endif
