/* GPUs by the names that drivers show: as nvidia-smi and rocm-smi print them, and what must not be guessed. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "tests/unit/harness.h"
#include "topology/catalogue/device.h"

static void test_shown_names(void)
{
	static const struct {
		const char *shown;
		double mem_GiB;
		const char *id;
	} rows[] = {
		{"NVIDIA H100 80GB HBM3", 0, "h100-sxm"},
		{"NVIDIA H100 80GB HBM3", 79.6, "h100-sxm"},
		{"NVIDIA H100 PCIe", 0, "h100-pcie"},
		{"NVIDIA H100 80GB HBM2e", 0, "h100-pcie"},
		{"NVIDIA H100 NVL", 93.6, "h100-nvl"},
		{"NVIDIA H100", 95, "h100-96"},
		{"NVIDIA A100-SXM4-40GB", 40, "a100-sxm-40"},
		{"A100-SXM4-80GB", 0, "a100-sxm-80"},
		{"NVIDIA A100 SXM 80 GB", 0, "a100-sxm-80"},
		{"NVIDIA A100 80GB PCIe", 80, "a100-pcie-80"},
		{"NVIDIA A100-PCIE-40GB", 0, "a100-pcie-40"},
		{"A100-PCIE-40GB", 39.6, "a100-pcie-40"},
		{"NVIDIA A800-SXM4-80GB", 0, "a800-sxm-80"},
		{"Tesla V100-SXM2-16GB", 15.8, "v100-sxm-16"},
		{"Tesla V100-SXM2-32GB", 31.7, "v100-sxm-32"},
		{"Tesla V100-PCIE-16GB", 0, "v100-pcie"},
		{"Tesla P100-SXM2-16GB", 15.9, "p100-sxm"},
		{"Tesla P100-PCIE-16GB", 0, "p100-pcie"},
		{"Tesla T4", 14.6, "t4"},
		{"Tesla T4", 15, "t4"},
		{"NVIDIA A10", 22.5, "a10"},
		{"NVIDIA A10G", 22.5, "a10g"},
		{"NVIDIA A30", 0, "a30"},
		{"NVIDIA A40", 48, "a40"}, /* ECC off: 49140 MiB, not 46068 */
		{"NVIDIA RTX A6000", 48, "rtx-a6000"},
		{"RTX A6000", 0, "rtx-a6000"},
		{"NVIDIA RTX A4000", 16, "rtx-a4000"},
		{"NVIDIA RTX A5500", 24, "rtx-a5500"},
		{"NVIDIA GeForce RTX 3080", 10, "rtx3080"},
		{"Quadro RTX 8000", 48, "rtx8000"},
		{"NVIDIA L4", 0, "l4"},
		{"NVIDIA L40", 0, "l40"},
		{"NVIDIA L40S", 0, "l40s"},
		{"NVIDIA GeForce RTX 3090", 24, "rtx3090"},
		{"NVIDIA GeForce RTX 4090", 0, "rtx4090"},
		{"GeForce RTX 4090", 24, "rtx4090"},
		{"NVIDIA GeForce RTX 4090", 47.99, "rtx4090-48"}, /* 49140 MiB */
		{"NVIDIA GeForce RTX 5090", 31.8, "rtx5090"},
		{"NVIDIA RTX 6000 Ada Generation", 48, "rtx6000-ada"},
		{"NVIDIA RTX PRO 6000 Blackwell Server Edition", 95.6, "rtx-pro-6000"},
		{"NVIDIA RTX PRO 6000 Blackwell Workstation Edition", 95.6, "rtx-pro-6000"},
		{"NVIDIA H20", 95.6, "h20"},
		{"NVIDIA H20", 141, "h20-141"},
		{"NVIDIA H20-3e", 140.4, "h20-141"},
		{"NVIDIA GH200 144G HBM3e", 141, "gh200-144"},
		{"NVIDIA H800", 0, "h800-sxm"},
		{"NVIDIA H200", 140.4, "h200-sxm"},
		{"NVIDIA H200 NVL", 0, "h200-nvl"},
		{"NVIDIA GH200 480GB", 95.6, "gh200"},
		{"NVIDIA GH200 120GB", 95.6, "gh200-120"},
		{"NVIDIA B200", 178.4, "b200"},
		{"NVIDIA B300 SXM6 AC", 268.6, "b300"},
		{"NVIDIA GB200", 185, "gb200"},
		{"NVIDIA GB300", 277.5, "gb300"},
		{"AMD Instinct MI210", 0, "mi210"},
		{"AMD Instinct MI250X", 64, "mi250x-gcd"},
		{"AMD Instinct MI300X", 192, "mi300x"},
		{"AMD Instinct MI300A Accelerator", 0, "mi300a"},
		{"  amd INSTINCT mi325x ", 0, "mi325x"},
		{"Google TPU v5p", 0, "tpu-v5p"},
		{"TPU v5e", 0, "tpu-v5e"},
		/* More than one product, another product, or no GPU at all. */
		{"NVIDIA A100", 0, ""},
		{"NVIDIA A100", 80, ""},
		{"NVIDIA A100 80GB", 80, ""},
		{"NVIDIA A100-SXM-64GB", 64, "a100-sxm-64"},
		{"NVIDIA A100X", 80, ""},
		{"GRID A100-40C", 40, ""},
		{"NVIDIA A100-SXM4-40GB MIG 1g.5gb", 4.75, ""},
		{"NVIDIA A100-SXM4-40GB", 80, ""},
		{"NVIDIA A800 80GB PCIe", 80, ""},
		{"NVIDIA H100", 0, ""},
		{"NVIDIA H100 80GB HBM3 MIG 3g.40gb", 40, ""},
		{"NVIDIA H800 PCIe", 80, ""},
		{"NVIDIA H20", 120, ""},
		{"NVIDIA GH200 480GB", 141, ""},
		{"Tesla V100-SXM2-32GB-LS", 32, ""},
		{"Tesla V100-SXM3-32GB-H", 32, ""},
		{"Tesla V100S-PCIE-32GB", 32, ""},
		{"Tesla K80", 12, ""},
		{"NVIDIA GB10", 120, ""},
		{"Quadro RTX 6000", 24, ""},
		{"NVIDIA RTX 6000", 48, ""},
		{"NVIDIA GeForce RTX 4090 Laptop GPU", 16, ""},
		{"NVIDIA GeForce RTX 4090 D", 24, ""},
		{"NVIDIA GeForce RTX 3090 Ti", 24, ""},
		{"NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition", 95.6, ""},
		{"NVIDIA RTX", 0, ""},
		{"NVIDIA", 0, ""},
		{"80GB HBM3", 0, ""},
		{"", 0, ""},
		{"AMD Radeon Graphics", 0, ""},
		{"AMD Instinct MI250X", 128, ""},
		{"a-name-that-has-a-word-much-longerthananyproductsnameeverwaslongerthananyproductsnameeverwas", 0, ""},
	};
	for (size_t i = 0; i < COUNT(rows); i++) {
		char id[DEVICE_ID] = "unset";
		struct error e = {0};
		CU_ASSERT_EQUAL(device_by_shown_name(rows[i].shown, (uint64_t)(rows[i].mem_GiB * 0x1p30), id, &e),
			ST_OK);
		CU_ASSERT_STRING_EQUAL(id, rows[i].id);
		if (strcmp(id, rows[i].id) != 0)
			fprintf(stderr, "'%s' became '%s', expected '%s' %s\n", rows[i].shown, id, rows[i].id, e.text);
	}
}

static void test_endless_name(void)
{
	char id[DEVICE_ID], *longest = malloc(5001);
	memset(longest, 'x', 5000);
	for (size_t i = 0; i < 5000; i += 10)
		longest[i] = ' ';
	longest[5000] = '\0';
	CU_ASSERT_EQUAL(device_by_shown_name(longest, 0, id, NULL), ST_OK);
	CU_ASSERT_STRING_EQUAL(id, "");
	free(longest);
}

/* Every `shown_as` of the catalogue leads back to its file alone, with and without the memory that the file states. */
static void test_round_trip(void)
{
	static const char *const ids[] = {"a10", "a100-pcie-40", "a100-pcie-80", "a100-sxm-40", "a100-sxm-80", "b300",
		"gh200", "gh200-120", "h100-nvl", "h100-pcie", "h100-sxm", "mi355x", "rtx-pro-6000", "t4",
		"v100-sxm-32"};
	for (size_t i = 0; i < COUNT(ids); i++) {
		struct device_spec d;
		char id[DEVICE_ID], *rest;
		CU_ASSERT_EQUAL_FATAL(device_load(ids[i], &d, NULL), ST_OK);
		CU_ASSERT_TRUE(d.shown_as[0]);
		rest = d.shown_as;
		for (char *name; (name = strtok_r(rest, ";", &rest));) {
			CU_ASSERT_EQUAL(device_by_shown_name(name, 0, id, NULL), ST_OK);
			CU_ASSERT_STRING_EQUAL(id, ids[i]);
			CU_ASSERT_EQUAL(device_by_shown_name(name, d.mem_B, id, NULL), ST_OK);
			CU_ASSERT_STRING_EQUAL(id, ids[i]);
		}
	}
}

UNIT_MAIN("names of devices", {"shown names", test_shown_names}, {"an endless name", test_endless_name},
	{"round trip", test_round_trip})
