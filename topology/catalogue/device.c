#include "topology/catalogue/device.h"

#include <assert.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/paths.h"
#include "topology/catalogue/catalogue.h"

/* A device's file as it is read: the description, texts for readers, and figures that settle() converts. */
struct device_file {
	struct device_spec d;
	char vendor[64], architecture[64], other_kind[16];
	int64_t other_links;
	double other_link_Bps, compute_capability;
	struct catalogue_figure price, rent;
	bool peer;
};

#define NUMBER(path, required, unit, min, max, field) \
	{ \
		path, CATALOGUE_DOUBLE, required, unit, min, max, offsetof(struct device_file, field), 0 \
	}
#define BYTES(path, required, min, max, field) \
	{ \
		path, CATALOGUE_BYTES, required, UNIT_BYTE, min, max, offsetof(struct device_file, field), 0 \
	}
#define WHOLE(path, required, min, max, field) \
	{ \
		path, CATALOGUE_INT64, required, UNIT_NONE, min, max, offsetof(struct device_file, field), 0 \
	}
#define FIGURE(path, unit, min, max, field) \
	{ \
		path, CATALOGUE_FIGURE, false, unit, min, max, offsetof(struct device_file, field), 0 \
	}
#define FLAG(path, field) \
	{ \
		path, CATALOGUE_BOOL, false, UNIT_NONE, 0, 0, offsetof(struct device_file, field), 0 \
	}
#define TEXT(path, required, field) \
	{ \
		path, CATALOGUE_TEXT, required, UNIT_NONE, 0, 0, offsetof(struct device_file, field), \
			sizeof((struct device_file *)0)->field \
	}
#define MATRIX(word, dt) \
	{ \
		"matrix." word, CATALOGUE_DOUBLE, false, UNIT_FLOP_PER_S, 1e9, 1e18, \
			offsetof(struct device_file, d.matrix_flop_per_s) + (size_t)dt * sizeof(double), 0 \
	}

#define FORMAT(word, dt) \
	{ \
		"reached." word "_share", CATALOGUE_DOUBLE, false, UNIT_NONE, 0.01, 1, \
			offsetof(struct device_file, d.format_share) + (size_t)dt * sizeof(double), 0 \
	}
#define ATTENTION(word, k) \
	NUMBER("attention." word "_forward", false, UNIT_NONE, 0.01, 1, d.attention_share[k][0]), \
		NUMBER("attention." word "_backward", false, UNIT_NONE, 0.01, 1, d.attention_share[k][1])

static const struct catalogue_key keys[] = {
	TEXT("name", true, d.name),
	TEXT("vendor", true, vendor),
	TEXT("architecture", true, architecture),
	TEXT("shown_as", false, d.shown_as),
	NUMBER("compute_capability", false, UNIT_NONE, 3, 99, compute_capability),
	TEXT("gfx", false, d.gfx),
	MATRIX("fp32", DT_FP32),
	MATRIX("tf32", DT_TF32),
	MATRIX("fp16", DT_FP16),
	MATRIX("bf16", DT_BF16),
	MATRIX("fp8", DT_FP8),
	MATRIX("mxfp8", DT_MXFP8),
	MATRIX("nvfp4", DT_NVFP4),
	WHOLE("matrix.array", false, 1, 4096, d.matrix_array),
	NUMBER("vector.fp32", true, UNIT_FLOP_PER_S, 1e9, 1e17, d.vector_flop_per_s),
	TEXT("memory.type", true, d.memory_type),
	BYTES("memory.capacity", true, 1e8, 1e15, d.mem_B),
	BYTES("memory.reserved", false, 1e6, 1e12, d.reserved_B),
	NUMBER("memory.bandwidth", true, UNIT_BYTE_PER_S, 1e9, 1e17, d.mem_Bps),
	NUMBER("reached.gemm_share", true, UNIT_NONE, 0.01, 1.5, d.gemm_share),
	NUMBER("reached.repeated_data", false, UNIT_NONE, 1, 2, d.repeated_data),
	NUMBER("reached.step_sources", false, UNIT_NONE, 0, 100, d.step_sources),
	FORMAT("fp32", DT_FP32),
	FORMAT("fp8", DT_FP8),
	FORMAT("mxfp8", DT_MXFP8),
	FORMAT("nvfp4", DT_NVFP4),
	ATTENTION("fa1", 0),
	ATTENTION("fa2", 1),
	ATTENTION("fa3", 2),
	ATTENTION("fa4", 3),
	NUMBER("attention.fp8_forward", false, UNIT_NONE, 0.01, 1, d.attention8_share[0]),
	NUMBER("attention.fp8_backward", false, UNIT_NONE, 0.01, 1, d.attention8_share[1]),
	NUMBER("reached.memory_share", true, UNIT_NONE, 0.01, 1, d.mem_share),
	NUMBER("reached.launch", true, UNIT_SECOND, 1e-7, 1e-3, d.launch_s),
	WHOLE("chip.devices", false, 1, 64, d.chip_devices),
	WHOLE("chip.sms", false, 1, 10000000, d.sms),
	NUMBER("chip.boost", false, UNIT_HERTZ, 1e8, 1e10, d.boost_Hz),
	BYTES("chip.l2", false, 1e5, 1e12, d.l2_B),
	BYTES("chip.shared_memory", false, 1e3, 1e9, d.shared_B),
	NUMBER("chip.power", false, UNIT_WATT, 1, 1e5, d.power_W),
	WHOLE("nvlink.generation", false, 1, 99, d.nvlink_gen),
	WHOLE("nvlink.links", false, 1, 1000, d.nvlink_links),
	NUMBER("nvlink.link_rate", false, UNIT_BYTE_PER_S, 1e9, 1e12, d.nvlink_link_Bps),
	WHOLE("nvlink.direct", false, 2, 64, d.nvlink_direct),
	WHOLE("nvlink.board", false, 2, 64, d.nvlink_board),
	TEXT("links.kind", false, other_kind),
	WHOLE("links.count", false, 1, 1000, other_links),
	NUMBER("links.rate", false, UNIT_BYTE_PER_S, 1e9, 1e12, other_link_Bps),
	FLAG("links.engines", d.link_engines),
	WHOLE("pcie.generation", false, 1, 7, d.pcie_gen),
	WHOLE("pcie.lanes", false, 1, 32, d.pcie_lanes),
	NUMBER("pcie.rate", false, UNIT_BYTE_PER_S, 1e8, 1e13, d.pcie_Bps),
	NUMBER("c2c.rate", false, UNIT_BYTE_PER_S, 1e8, 1e13, d.c2c_Bps),
	FLAG("pcie.peer", peer),
	FIGURE("price", UNIT_USD, 1, 1e9, price),
	FIGURE("rent_usd_per_hour", UNIT_USD, 1e-3, 1e6, rent),
};
static_assert(DT_COUNT == 11, "a new format needs its key matrix.<name> above, unless nothing is multiplied in it");

/* Converts the figures whose form in the file differs from the description's. */
static enum status settle(struct device_file *f, const char *path, struct error *e)
{
	struct device_spec *d = &f->d;
	bool any = false, nvlink = d->nvlink_links > 0 || d->nvlink_link_Bps > 0 || d->nvlink_gen > 0,
	     other = *f->other_kind || f->other_links > 0 || f->other_link_Bps > 0;
	for (int i = 0; i < DT_COUNT; i++)
		any |= d->matrix_flop_per_s[i] > 0;
	if (!any)
		return error_set(e, ST_INPUT, "%s: the key 'matrix' is missing", path);
	if (nvlink && other)
		return error_set(e, ST_INPUT, "%s: 'nvlink' and 'links' exclude each other", path);
	if (nvlink && !(d->nvlink_links > 0 && d->nvlink_link_Bps > 0))
		return error_set(e, ST_INPUT, "%s: the key 'nvlink.%s' is missing", path,
			d->nvlink_links > 0 ? "link_rate" : "links");
	if (other && !(*f->other_kind && f->other_links > 0 && f->other_link_Bps > 0))
		return error_set(e, ST_INPUT, "%s: the key 'links.%s' is missing", path,
			!*f->other_kind      ? "kind"
			: f->other_links > 0 ? "rate"
					     : "count");
	if (nvlink)
		snprintf(d->link_kind, sizeof d->link_kind, "NVLink");
	if (other) {
		memcpy(d->link_kind, f->other_kind, sizeof d->link_kind);
		d->nvlink_links = f->other_links;
		d->nvlink_link_Bps = f->other_link_Bps;
	}
	d->compute_capability = lround(f->compute_capability * 10);
	d->no_peer = !f->peer;
	d->price_usd = f->price.value;
	d->price_unverified = f->price.unverified;
	d->rent_usd_per_hour = f->rent.value;
	d->rent_unverified = f->rent.unverified;
	memcpy(d->price_note, f->price.source, sizeof d->price_note);
	memcpy(d->rent_note, f->rent.source, sizeof d->rent_note);
	return ST_OK;
}
static_assert(sizeof((struct device_spec *)0)->price_note == sizeof((struct catalogue_figure *)0)->source,
	"settle copies it whole");

enum status device_load(const char *id, struct device_spec *out, struct error *e)
{
	char path[PATH_MAX_LEN];
	struct device_file file = {.peer = true};
	enum status st = strlen(id) < sizeof file.d.id
	                         ? catalogue_find("gpus", "device", id, path, e)
	                         : error_set(e, ST_INPUT, "'%.40s...' is no device: the name is too long", id);
	if (!st)
		st = catalogue_read("gpus", path, keys, COUNT(keys), &file, &file.d.unverified, e);
	if (!st)
		st = settle(&file, path, e);
	if (st)
		return st;
	snprintf(file.d.id, sizeof file.d.id, "%s", id);
	*out = file.d;
	return ST_OK;
}
