#include "base/dtype.h"

#include <assert.h>
#include <string.h>

static const struct {
	const char *name;
	double bytes;
} formats[] = {
	[DT_FP32] = {"fp32", 4.0},
	[DT_TF32] = {"tf32", 4.0},
	[DT_FP16] = {"fp16", 2.0},
	[DT_BF16] = {"bf16", 2.0},
	[DT_FP8] = {"fp8", 1.0},
	[DT_MXFP8] = {"mxfp8", 1.0 + 1.0 / 32.0},
	[DT_NVFP4] = {"nvfp4", 0.5 + 1.0 / 16.0},
	[DT_INT32] = {"int32", 4.0},
};
static_assert(sizeof formats / sizeof formats[0] == DT_COUNT, "one row for each format");

const char *dtype_name(enum dtype d)
{
	return formats[d].name;
}

double dtype_bytes(enum dtype d)
{
	return formats[d].bytes;
}

enum dtype dtype_by_name(const char *name)
{
	for (int i = 0; i < DT_COUNT; i++)
		if (strcmp(formats[i].name, name) == 0)
			return (enum dtype)i;
	return DT_COUNT;
}
