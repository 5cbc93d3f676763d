/* The words of published tables in ours. */
#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/validate/validate.h"
#include "topology/catalogue/device.h"

/* ---- frameworks ---- */

static const struct framework_words frameworks[] = {
	{"llm-foundry/Composer FSDP1", "composer-fsdp", "learned", "flash", false, true, "none"},
	{"nanotron", "nanotron", "rope", "flash", false, false, "none"},
	{"Megatron-Core", "megatron-core", "rope", "flash", false, false, "none"},
	{"Megatron-Bridge", "megatron-core", "rope", "flash", false, false, "none"},
	{"NeMo", "megatron-core", "rope", "flash", false, false, "none"},
	{"Megatron-DeepSpeed", "megatron-deepspeed", "learned", "naive", true, false, "full"},
	{"Megatron-LM", "megatron-deepspeed", "learned", "naive", true, false, "full"},
	{"JAX PAX", "jax-pax", "learned", "flash", true, false, "none"},
	{"NGC PyTorch", "pytorch-ddp", "learned", "naive", true, false, "none"},
	{"PyTorch", "pytorch-ddp", "learned", "naive", true, false, "none"},
};

const struct framework_words *framework_words(const char *cell)
{
	for (size_t i = 0; i < sizeof frameworks / sizeof frameworks[0]; i++)
		if (strncmp(cell, frameworks[i].begins, strlen(frameworks[i].begins)) == 0)
			return &frameworks[i];
	return NULL;
}

/* ---- single words ---- */

const char *strategy_words(const char *sharding, bool *known)
{
	static const char *const words[][2] = {{"none", "ddp"}, {"", "ddp"}, {"zero1", "zero1"}, {"zero2", "zero2"}, {"zero3", "fsdp"}, {"zero3/fsdp", "fsdp"}, {"fsdp", "fsdp"}, {"hsdp", "hsdp"}};
	*known = true;
	for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
		if (strcmp(sharding, words[i][0]) == 0)
			return words[i][1];
	*known = false;
	return NULL;
}

const char *dtype_words(const char *cell, bool tf32)
{
	static const char *const words[][2] = {{"", "bf16"}, {"bf16", "bf16"}, {"fp16", "fp16"}, {"tf32", "tf32"}, {"fp32", "fp32"}, {"fp8", "fp8"}, {"mxfp8", "mxfp8"}, {"nvfp4", "nvfp4"}};
	if (strcmp(cell, "fp32/tf32") == 0)
		return tf32 ? "tf32" : "fp32";
	for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
		if (strcmp(cell, words[i][0]) == 0)
			return words[i][1];
	return NULL;
}

/* ---- machines ---- */

/* GPUs whose names in tables name no product of the catalogue by themselves. */
static const char *const gpus[][3] = { /* gpu, how gpu_variant begins, id */
	{"GB200", "NVL72", "gb200"}, {"GB300", "NVL72", "gb300"}, {"B200", "SXM", "b200"}, {"B300", "SXM", "b300"},
	{"V100", "SXM2 32GB", "v100-sxm-32"}, {"V100", "SXM3 32GB", "v100-sxm-32"}, {"V100", "SXM2 16GB", "v100-sxm-16"},
};

static enum status gpu_words(const char *gpu, const char *variant, char id[DEVICE_ID], struct error *e)
{
	char shown[160], plain[96];
	for (size_t i = 0; i < sizeof gpus / sizeof gpus[0]; i++)
		if (strcmp(gpu, gpus[i][0]) == 0 && strncmp(variant, gpus[i][1], strlen(gpus[i][1])) == 0) {
			strcpy(id, gpus[i][2]);
			return ST_OK;
		}
	snprintf(plain, sizeof plain, "%.*s", (int)strcspn(variant, "("), variant); /* "SXM 40GB (AWS p4d)" */
	snprintf(shown, sizeof shown, "%s %s", gpu, plain);
	enum status st = device_by_shown_name(shown, 0, id, e);
	if (!st && !id[0])
		return error_set(e, ST_INPUT, "gpu: the catalogue does not know the %s %s", gpu, variant);
	return st;
}

/* NICs of a host from "8x IB NDR 400Gbps/node", "RoCE 1600Gbps/node", "400Gbps/GPU" and the like. */
static bool network_words(const char *cell, int64_t per_host, char out[64])
{
	const char *unit = strstr(cell, "Gbps");
	if (strstr(cell, "EFA (AWS p5)")) {
		strcpy(out, "nic:32x100Gb/s");
		return true;
	}
	if (!unit || unit == cell)
		return false;
	const char *digits = unit;
	while (digits > cell && isdigit((unsigned char)digits[-1]))
		digits--;
	long rate = strtol(digits, NULL, 10);
	char *end;
	long count = strtol(cell, &end, 10);
	if (rate <= 0)
		return false;
	if (strncmp(unit, "Gbps/GPU", 8) == 0)
		snprintf(out, 64, "nic:%" PRId64 "x%ldGb/s", per_host, rate);
	else if (count > 0 && *end == 'x')
		snprintf(out, 64, "nic:%ldx%ldGb/s", count, rate);
	else /* a node's total: one NIC a GPU */
		snprintf(out, 64, "nic:%" PRId64 "x%.6gGb/s", per_host, (double)rate / (double)per_host);
	return true;
}

/* One NIC a GPU, as the vendors' own machines of that generation have them: where rows do not print the network. */
static const char *default_network(const char *id)
{
	return strncmp(id, "a100", 4) == 0 ? "200" : strncmp(id, "v100", 4) == 0 ? "100" : "400";
}

/* Hosts of one NVLink domain: NVL72 racks are used in parts that divide the job. */
static int64_t domain_of(int64_t n_gpus)
{
	for (int64_t d = 72; d >= 4; d -= 4)
		if (n_gpus % d == 0 && d <= n_gpus)
			return d;
	return 4;
}

enum status system_words(const struct csv *t, size_t row, char line[256], int64_t *nodes, int64_t *per_host, struct error *e)
{
	const char *intra = csv_get(t, row, "interconnect_intra"), *inter = csv_get(t, row, "interconnect_inter");
	char id[DEVICE_ID], nic[64];
	int64_t n = atoll(csv_get(t, row, "n_gpus")), host = atoll(csv_get(t, row, "gpus_per_node"));
	enum status st = gpu_words(csv_get(t, row, "gpu"), csv_get(t, row, "gpu_variant"), id, e);
	if (st)
		return st;
	if (n < 1)
		return error_set(e, ST_INPUT, "n_gpus: '%s' is no number of GPUs", csv_get(t, row, "n_gpus"));
	host = strstr(intra, "NVL72") ? domain_of(n) : host < 1 ? 8 : host;
	host = host > n ? n : host;
	if (n % host)
		return error_set(e, ST_INPUT, "n_gpus: %" PRId64 " GPUs do not fill hosts of %" PRId64, n, host);
	if (!network_words(inter, host, nic))
		snprintf(nic, sizeof nic, "nic:%" PRId64 "x%sGb/s", host, default_network(id));
	bool cards = strncmp(intra, "PCIe", 4) == 0;
	snprintf(line, 256, "gpu:%" PRId64 " %s%s %s", host, id, cards ? " pcie" : "", nic);
	*nodes = n / host;
	*per_host = host;
	return ST_OK;
}
