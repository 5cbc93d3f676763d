/* Helpers of all writers of JSON. `good` is one flag for a whole value: false if memory ran out on the way. jansson's
 * calls fail on a NULL value and keep the rest, so that one check at the end is enough. */
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

/* Returns null for NaN and infinity, which JSON does not have. */
static inline json_t *json_number(double x) { return isfinite(x) ? json_real(x) : json_null(); }

#endif
