#include "base/array.h"
#include "tests/unit/harness.h"

#include <string.h>

#include "cli/validate/lists.h"
#include "cli/validate/validate.h"
#include "topology/catalogue/network.h"

static const struct word_lists *load(void)
{
	const struct word_lists *lists = NULL;
	struct error e = {0};
	CU_ASSERT_EQUAL_FATAL(word_lists_load(&lists, &e), ST_OK);
	return lists;
}

/* Cells of tables for hosts of eight GPUs, and what they say; count 0: nothing. */
static void test_forms(void)
{
	static const struct {
		const char *cell;
		int64_t count;
		double rate_Gbps;
	} forms[] = {
		{"EFA 32x100Gbps", 32, 100},
		{"4x100Gbps RoCE/node", 4, 100},
		{"8x 400G IB NDR", 8, 400},
		{"3.2 Tbps", 8, 400},
		{"3.2Tb/s EFA", 8, 400},
		{"1600Gbps/node", 8, 200},
		{"RoCE 1600Gbps/node", 8, 200},
		{"400Gb/s per GPU", 8, 400},
		{"400Gbps/GPU IB", 8, 400},
		{"400Gbps IB/GPU", 8, 400},
		{"2x200 Gb/s Slingshot", 2, 200},
		{"2x Slingshot 200Gbps/node", 2, 200},
		{"8x IB NDR 400Gbps/node (DGX-H100 spec)", 8, 400},
		{"1x IB EDR 100Gbps", 1, 100},
		{"8 x 400 Gbit/s", 8, 400},
		{"8\xc3\x97"
		 "200Gb/s",
			8, 200},
		{"400Gbps x8", 8, 400},
		{"4 NICs, 100 Gbps each", 4, 100},
		{"ConnectX-7 8x400Gb/s", 8, 400},
		{"2x CX-7 400Gb", 2, 400},
		{"8x NDR", 8, 400},
		{"4x HDR100 InfiniBand", 4, 100},
		{"NDR per GPU", 8, 400},
		{"50 GB/s per GPU", 8, 400},
		{"1x 25GbE", 1, 25},
		{"2x200 Gb/s per GPU", 16, 200},
		{"100Gbps", 1, 100},
		{"", 0, 0},
		{"InfiniBand", 0, 0},
		{"InfiniBand NDR", 0, 0},
		{"IB/RoCE (rate not printed)", 0, 0},
		{"EFA (AWS p5)", 0, 0},
		{"8x", 0, 0},
		{"Slingshot 4x200", 4, 200},
		{"RoCEv2 8 x 100", 8, 100},
		{"8x NDR400", 8, 400},
		{"2x 16 cores", 0, 0},
		{"0 Gbps", 0, 0},
		{"H100 80 GB", 0, 0},
		{"8x400G NDR", 8, 400},
		{"4x HDR100", 4, 100},
		{"EFAv3 3200 Gbps", 8, 400},
		{"Slingshot-11 4x200", 4, 200},
		{"200GbE RoCEv2", 8, 25},
		{"16x100G EFA", 16, 100},
		{"25Gbps/node TCP", 1, 25},
		{"40Gbps/node", 1, 40},
		{"800Gbps/node RDMA", 8, 100},
		{"80 Gbps", 8, 10},
		{"18.8Gbps/node", 8, 2.35},
	};
	const struct word_lists *lists = load();
	for (size_t i = 0; i < COUNT(forms); i++) {
		struct nics n;
		const bool known = network_read(lists, forms[i].cell, 8, &n);
		if (known != (forms[i].count > 0) || n.count != forms[i].count || n.rate_Gbps != forms[i].rate_Gbps) {
			fprintf(stderr, "%s: %lld x %g\n", forms[i].cell, (long long)n.count, n.rate_Gbps);
			CU_FAIL("read otherwise");
		}
	}
}

static void test_fabrics(void)
{
	static const char *const words[][3] = {{"", "8x IB NDR 400Gbps", "infiniband"}, {"", "EFA 32x100Gbps", "efa"},
		{"", "2x Slingshot", "slingshot"}, {"", "4x100Gbps RoCE/node", "roce"}, {"tcp", "2x Slingshot", "tcp"},
		{"", "25Gbps/node TCP", "tcp"}, {"", "8x TCPXO 200Gbps/node", "tcpxo"},
		{"", "4x TCPX 200Gbps/node", "tcpx"}, {"slingshot-polaris", "2x Slingshot", "slingshot-polaris"},
		{"", "Infiniband HDR", "infiniband"}, {"", "8x400G RoCEv2", "roce"}, {"", "GPUDirect-TCPX", "tcpx"},
		{"", "4x NDR200", "infiniband"}, {"", "2x dual-port HDR100 (400 Gbps aggregated)", "infiniband"},
		{"", "EFAv3 3200 Gbps", "efa"}, {"efa-p4d", "4x100Gbps EFA/node", "efa-p4d"},
		{"", "Spectrum-X 8x400G", "roce"}};
	const struct word_lists *lists = load();
	for (size_t i = 0; i < COUNT(words); i++) {
		const char *found = network_fabric(lists, words[i][0], words[i][1]);
		struct network_spec n;
		CU_ASSERT_STRING_EQUAL(found, words[i][2]);
		CU_ASSERT_EQUAL(network_load(found, &n, NULL), ST_OK);
	}
	CU_ASSERT_PTR_NULL(network_fabric(lists, "", "400Gbps/GPU"));
	CU_ASSERT_PTR_NULL(network_fabric(lists, "", "Fibre"));
	CU_ASSERT_PTR_NULL(network_fabric(lists, "", "8x400 NDRAM"));
}

UNIT_MAIN("network", {"counts times rates", test_forms}, {"fabrics", test_fabrics})
