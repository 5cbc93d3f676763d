#include "topology/device.h"

#include <assert.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/paths.h"
#include "topology/catalogue.h"

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

/* What the file holds beside what predictions use: texts for readers. */
struct device_file {
	struct device_spec d;
	char vendor[64], architecture[64], memory_type[32];
};

#define NUMBER(path, required, unit, min, max, field) {path, CATALOGUE_DOUBLE, required, unit, min, max, offsetof(struct device_file, field), 0}
#define BYTES(path, required, min, max, field) {path, CATALOGUE_BYTES, required, UNIT_BYTE, min, max, offsetof(struct device_file, field), 0}
#define WHOLE(path, required, min, max, field) {path, CATALOGUE_INT64, required, UNIT_NONE, min, max, offsetof(struct device_file, field), 0}
#define TEXT(path, required, field) {path, CATALOGUE_TEXT, required, UNIT_NONE, 0, 0, offsetof(struct device_file, field), sizeof ((struct device_file *)0)->field}
#define MATRIX(word, dt) {"matrix." word, CATALOGUE_DOUBLE, false, UNIT_FLOP_PER_S, 1e9, 1e18, offsetof(struct device_file, d.matrix_flop_per_s) + (size_t)dt * sizeof(double), 0}

static const struct catalogue_key keys[] = {
	TEXT("name", true, d.name),
	TEXT("vendor", true, vendor),
	TEXT("architecture", true, architecture),
	MATRIX("fp32", DT_FP32),
	MATRIX("tf32", DT_TF32),
	MATRIX("fp16", DT_FP16),
	MATRIX("bf16", DT_BF16),
	MATRIX("fp8", DT_FP8),
	MATRIX("mxfp8", DT_MXFP8),
	MATRIX("nvfp4", DT_NVFP4),
	NUMBER("vector.fp32", true, UNIT_FLOP_PER_S, 1e9, 1e16, d.vector_flop_per_s),
	TEXT("memory.type", true, memory_type),
	BYTES("memory.capacity", true, 1e9, 1e15, d.mem_B),
	NUMBER("memory.bandwidth", true, UNIT_BYTE_PER_S, 1e9, 1e15, d.mem_Bps),
	NUMBER("reached.gemm_share", true, UNIT_NONE, 0.01, 1, d.gemm_share),
	NUMBER("reached.memory_share", true, UNIT_NONE, 0.01, 1, d.mem_share),
	NUMBER("reached.launch", true, UNIT_SECOND, 1e-7, 1e-3, d.launch_s),
	WHOLE("chip.sms", false, 1, 100000, d.sms),
	NUMBER("chip.boost", false, UNIT_HERTZ, 1e8, 1e10, d.boost_Hz),
	BYTES("chip.l2", false, 1e5, 1e12, d.l2_B),
	NUMBER("chip.power", false, UNIT_WATT, 1, 1e5, d.power_W),
	WHOLE("nvlink.links", false, 0, 1000, d.nvlink_links),
	NUMBER("nvlink.link_rate", false, UNIT_BYTE_PER_S, 1e9, 1e12, d.nvlink_link_Bps),
	NUMBER("pcie.rate", false, UNIT_BYTE_PER_S, 1e8, 1e13, d.pcie_Bps),
};
static_assert(DT_COUNT == 8, "a new format needs its key matrix.<name> above (int32 is no matrix format)");

enum status device_load(const char *id, struct device_spec *out, struct error *e)
{
	char path[PATH_MAX_LEN];
	struct device_file file = {0};
	enum status st = strlen(id) < sizeof file.d.id ? catalogue_find("gpus", "device", id, path, e) : error_set(e, ST_INPUT, "'%.40s...' is no device: the name is too long", id);
	if (!st)
		st = catalogue_read(path, keys, COUNT(keys), &file, &file.d.unverified, e);
	if (st)
		return st;
	bool any = false;
	for (int i = 0; i < DT_COUNT; i++)
		any |= file.d.matrix_flop_per_s[i] > 0;
	if (!any)
		return error_set(e, ST_INPUT, "%s: the key 'matrix' is missing", path);
	snprintf(file.d.id, sizeof file.d.id, "%s", id);
	*out = file.d;
	return ST_OK;
}
