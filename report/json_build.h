/* What all writers of JSON do. One flag for a whole value says at its end whether memory sufficed: jansson's calls fail on a NULL value, and keep what was there. */
#ifndef STEPSIM_REPORT_JSON_BUILD_H
#define STEPSIM_REPORT_JSON_BUILD_H

#include <jansson.h>
#include <math.h>
#include <stdbool.h>

static inline void json_put(json_t *object, const char *key, json_t *value, bool *good)
{
	if (json_object_set_new(object, key, value) != 0)
		*good = false;
}

static inline void json_push(json_t *array, json_t *value, bool *good)
{
	if (json_array_append_new(array, value) != 0)
		*good = false;
}

/* JSON has neither NaN nor infinity: what has no value is null. */
static inline json_t *json_number(double x)
{
	return isfinite(x) ? json_real(x) : json_null();
}

#endif
