/* Models of the catalogue. */
#ifndef STEPSIM_TESTS_UNIT_MODEL_CASE_H
#define STEPSIM_TESTS_UNIT_MODEL_CASE_H

#include <stdlib.h>
#include <string.h>

#include "step/config/config.h"
#include "tests/unit/harness.h"

static inline struct model loaded(const char *text)
{
	struct config c;
	struct error e = {0};
	CU_ASSERT_EQUAL(config_parse(text, strlen(text), "test.yaml", NULL, 0, &c, &e), ST_OK);
	if (e.status)
		printf("\n%s\n", e.text);
	return c.model;
}

static inline struct model preset(const char *name, int64_t seq_len)
{
	char text[128];
	if (seq_len)
		snprintf(text, sizeof text, "model: {preset: %s, seq_len: %lld}", name, (long long)seq_len);
	else
		snprintf(text, sizeof text, "model: {preset: %s}", name);
	return loaded(text);
}

static inline bool same_param(const struct param *a, const struct param *b)
{
	return a->kind == b->kind && a->layer == b->layer && a->rows == b->rows && a->cols == b->cols &&
	       a->copies == b->copies && a->split == b->split;
}

/* Counts one by one, and checks that the list of all is the same. */
static inline uint64_t sum_of_table(const struct model *m, int64_t tensor, bool local)
{
	uint64_t sum = 0;
	struct param *all = calloc((size_t)model_param_count(m), sizeof *all);
	CU_ASSERT_PTR_NOT_NULL_FATAL(all);
	model_params(m, tensor, all);
	for (int64_t i = 0; i < model_param_count(m); i++) {
		struct param p = model_param(m, i, tensor);
		sum += local ? param_local_elements(&p, tensor) : param_elements(&p);
		CU_ASSERT_TRUE(same_param(&p, &all[i]));
	}
	free(all);
	return sum;
}

#endif
