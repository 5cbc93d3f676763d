/* Words of the columns of tables, and the GPUs that rows name. */
#include "base/array.h"
#include "tests/unit/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/validate/lists.h"
#include "topology/catalogue/system.h"

/* Makes a table of one row. The caller frees it. */
static struct csv table(const char *columns, const char *cells)
{
	struct csv t;
	struct error e = {0};
	char *text = malloc(512);
	CU_ASSERT_PTR_NOT_NULL_FATAL(text);
	snprintf(text, 512, "%s\n%s\n", columns, cells);
	CU_ASSERT_EQUAL_FATAL(csv_parse(text, strlen(text), "table", &t, &e), ST_OK);
	return t;
}

static struct csv row_with(const char *column, const char *cell)
{
	char header[64], row[64];
	snprintf(header, sizeof header, "id,%s", column);
	snprintf(row, sizeof row, "x,%s", cell);
	return table(header, row);
}

static const char *or_none(const char *text) { return text ? text : "-"; }

static void test_words(void)
{
	static const char *const cells[][4] = {
		/* column, cell, word of the config, further key */
		{"sharding", "", "ddp", "-"},
		{"sharding", "ZeRO-3", "fsdp", "-"},
		{"sharding", "full_shard", "fsdp", "-"},
		{"sharding", "SHARD_GRAD_OP", "fsdp", "reshard_after_forward: false"},
		{"sharding", "zero1 (distributed optimizer)", "zero1", "-"},
		{"dtype", "", "bf16", "-"},
		{"dtype", "BFloat16", "bf16", "-"},
		{"dtype", "float8 rowwise", "fp8", "fp8_recipe: rowwise"},
		{"dtype", "FP8-CS", "fp8", "fp8_recipe: tensorwise"},
		{"dtype", "FP8-MX", "mxfp8", "-"},
		{"optimizer", "", "-", "-"},
		{"optimizer", "AdamW (fused)", "adamw", "-"},
		{"optimizer", "paged_adamw_8bit", "adamw", "optimizer_bits: 8"},
		{"optimizer", "8-bit AdamW", "adamw", "optimizer_bits: 8"},
		{"attention", "flash2", "flash", "attention_kernel: fa2"},
		{"attention", "FlashAttention-3", "flash", "attention_kernel: fa3"},
		{"attention", "flash (cuDNN/TE)", "flash", "-"},
		{"attention", "naive (fused softmax)", "naive", "-"},
		{"attention", "SDPA", "flash", "-"},
		{"attention", "masked SDPA", "flash", "attention_kernel: masked"},
		{"attention", "cuDNN", "flash", "attention_kernel: fa3"},
		{"attention", "eager", "naive", "-"},
		{"act_ckpt", "", "-", "-"},
		{"act_ckpt", "True", "full", "-"},
		{"act_ckpt", "selective op", "op", "-"},
		{"act_ckpt", "half", "half", "-"},
		{"mlp", "squared-relu", "squared_relu", "-"},
		{"mlp", "SiLU", "swiglu", "-"},
		{"seq_parallel", "TRUE", "true", "-"},
		{"tied_emb", "No", "false", "-"},
		{"adapter", "full fine-tuning", "-", "-"},
		{"adapter", "qlora", "QLoRA", "-"},
		{"sharding", "stage 2", "zero2", "-"},
		{"dtype", "amp_bf16", "bf16", "-"},
		{"attention", "PyTorch SDPA", "flash", "-"},
		{"act_ckpt", "Full AC", "full", "-"},
		{"attention", "flash_attention_2", "flash", "attention_kernel: fa2"},
		{"attention", "FusedSDPA", "flash", "-"},
		{"act_ckpt", "every other layer", "half", "-"},
		{"act_ckpt", "block", "full", "-"},
		{"dtype", "bf16 true", "bf16", "param_dtype: bf16\n  grad_dtype: bf16\n  reduce_dtype: bf16"},
		{"sharding", "DeepSpeed Stage 3", "fsdp", "-"},
		{"adapter", "QLoRA 4-bit", "QLoRA", "-"},
	};
	for (size_t i = 0; i < COUNT(cells); i++) {
		struct meaning m;
		struct error e = {0};
		struct csv t = row_with(cells[i][0], cells[i][1]);
		CU_ASSERT_EQUAL_FATAL(cell_read(&t, 0, cells[i][0], &m, &e), ST_OK);
		CU_ASSERT_STRING_EQUAL(or_none(m.value), cells[i][2]);
		CU_ASSERT_STRING_EQUAL(or_none(m.more), cells[i][3]);
		csv_free(&t);
	}
}

/* A blank sharding is ddp, but for an optimizer that is distributed (Megatron-LM), and what is written counts. */
static void test_distributed(void)
{
	static const char *const rows[][2] = {{"adam,", "ddp"}, {"Distributed Adam,", "zero1"},
		{"distributed_fused_adam,", "zero1"}, {"distributed adam,zero3", "fsdp"}};
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct meaning m;
		struct error e = {0};
		struct csv t = table("optimizer,sharding", rows[i][0]);
		CU_ASSERT_EQUAL_FATAL(cell_read(&t, 0, "sharding", &m, &e), ST_OK);
		CU_ASSERT_STRING_EQUAL(m.value, rows[i][1]);
		CU_ASSERT_EQUAL(cell_read(&t, 0, "optimizer", &m, &e), ST_OK);
		csv_free(&t);
	}
}

/* A word that would change the time is never taken for a shorter one. */
static void test_unknown(void)
{
	static const char *const cells[][3] = {{"sharding", "zero++", "zero"}, {"dtype", "bf16+fp8", "bf16"},
		{"dtype", "int8", "known: bf16"}, {"optimizer", "Shampoo", "known: adam"},
		{"attention", "ring", "known: flash, flash1, flash2, flash3, flash4, masked SDPA, naive"},
		{"act_ckpt", "1/2", "known: none"}};
	for (size_t i = 0; i < COUNT(cells); i++) {
		struct meaning m;
		struct error e = {0};
		struct csv t = row_with(cells[i][0], cells[i][1]);
		CU_ASSERT_EQUAL(cell_read(&t, 0, cells[i][0], &m, &e), ST_INPUT);
		CU_ASSERT_PTR_NOT_NULL(strstr(e.text, cells[i][1]));
		CU_ASSERT_PTR_NOT_NULL(strstr(e.text, cells[i][2]));
		csv_free(&t);
	}
}

/* Boards of four modules have no switch; what holds eight, and racks, have one. */
static void test_boards(void)
{
	static const char *const rows[][2] = {
		{"H100,SXM 80GB,NVLink,8,4", "gpu:4 h100-sxm mesh "},
		{"A100,SXM 64GB,NVLink,8,4", "gpu:4 a100-sxm-64 mesh "},
		{"GH200,120GB,NVLink,8,4", "gpu:4 gh200-120 mesh "},
		{"GH200,120GB,NVLink,2,4", "gpu:4 gh200-120 mesh "},
		{"H100,64GB,NVLink,8,4", "gpu:4 h100-64 mesh "},
		{"H100,96GB,NVLink,8,4", "gpu:4 h100-96 "},
		{"H100,SXM 80GB,NVLink4 NVSwitch,8,4", "gpu:4 h100-sxm nic"},
	};
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct row_system s = {.line = ""};
		struct error e = {0};
		struct csv t = table("gpu,gpu_variant,interconnect_intra,n_gpus,gpus_per_node", rows[i][0]);
		CU_ASSERT_EQUAL(system_words(&t, 0, &s, &e), ST_OK);
		if (strncmp(s.line, rows[i][1], strlen(rows[i][1])) != 0) {
			fprintf(stderr, "%s: %s %s\n", rows[i][0], s.line, e.text);
			CU_FAIL("another board");
		}
		csv_free(&t);
	}
}

static void test_gpus(void)
{
	static const char *const gpus[][4] = {
		/* gpu, gpu_variant, interconnect_intra, how the line begins; "": refused */
		{"H100", "SXM 80GB", "", "gpu:8 h100-sxm"},
		{"H100", "", "NVLink", "gpu:8 h100-sxm"},
		{"H100", "", "NVlink", "gpu:8 h100-sxm"},
		{"H100", "", "pcie", "gpu:8 h100-pcie pcie"},
		{"H100", "80GB", "NVLink4 NVSwitch", "gpu:8 h100-sxm"},
		{"H100", "", "PCIe", "gpu:8 h100-pcie pcie"},
		{"H100", "", "", ""}, /* a module or a card */
		{"A100-SXM4-80GB", "", "", "gpu:8 a100-sxm-80"},
		{"A100", "", "NVLink", ""}, /* of 40 or 80 GB */
		{"A100", "40GB", "NVLink", "gpu:8 a100-sxm-40"},
		{"B200", "192GB", "NVLink", "gpu:8 b200"},
		{"TPU v6e", "", "ICI", "gpu:8 tpu-v6e"},
		{"Gaudi2", "", "", "gpu:8 gaudi2"},
		{"A6000", "", "PCIe", "gpu:8 rtx-a6000 pcie"},
		{"RTX 4090", "PCIe 24GB", "PCIe4", "gpu:8 rtx4090 pcie"},
		{"RTX 4090", "PCIe 48GB", "PCIe4", "gpu:8 rtx4090-48 pcie"},
		{"RTX 4090", "48GB", "PCIe4", "gpu:8 rtx4090-48 pcie"},
		{"8xH100", "", "NVLink", "gpu:8 h100-sxm"},
		{"H100 SXM x8", "", "", "gpu:8 h100-sxm"},
		{"A100 80G", "", "NVLink", "gpu:8 a100-sxm-80"},
		{"a100_80gb", "", "NVLink", "gpu:8 a100-sxm-80"},
		{"H100 94 GB", "", "", "gpu:8 h100-nvl"},
		{"H20 141 GB", "", "NVLink", "gpu:8 h20-141 nic"},
		{"GH200 144 GB", "", "", "gpu:8 gh200-144"},
		{"MI250X (1 GCD)", "", "", "gpu:8 mi250x-gcd"},
		{"GB200", "NVL72", "", "gpu:8 gb200"},
	};
	for (size_t i = 0; i < COUNT(gpus); i++) {
		char row[128];
		struct row_system s = {.line = ""};
		struct error e = {0};
		snprintf(row, sizeof row, "%s,%s,%s,8,8", gpus[i][0], gpus[i][1], gpus[i][2]);
		struct csv t = table("gpu,gpu_variant,interconnect_intra,n_gpus,gpus_per_node", row);
		const bool refused = !*gpus[i][3];
		CU_ASSERT_EQUAL(system_words(&t, 0, &s, &e), refused ? ST_INPUT : ST_OK);
		if (strncmp(s.line, gpus[i][3], strlen(gpus[i][3])) != 0) {
			fprintf(stderr, "%s %s: %s %s\n", gpus[i][0], gpus[i][1], s.line, e.text);
			CU_FAIL("another machine");
		}
		csv_free(&t);
	}
}

/* A whole cell that names a machine gives its GPUs, NICs and network; what other cells say counts before it. */
static void test_machines(void)
{
	static const char *const rows[][2] = {
		/* gpu, gpu_variant, interconnect_inter, n_gpus, gpus_per_node; how the line is */
		{"p4d.24xlarge,,,16,", "gpu:8 a100-sxm-40 nic:4x100Gb/s fabric:efa"},
		{"2x p5.48xlarge,,,16,", "gpu:8 h100-sxm nic:32x100Gb/s fabric:efa"},
		{"p5.48xlarge,,8x400Gbps IB,16,8", "gpu:8 h100-sxm nic:8x400Gb/s fabric:infiniband"},
		{"A100,SXM 80GB,Selene,16,8", "gpu:8 a100-sxm-80 nic:8x200Gb/s fabric:infiniband"},
		{"LUMI,,,16,", "gpu:8 mi250x-gcd mesh nic:4x200Gb/s fabric:slingshot"},
		{"Leonardo,,,8,", "gpu:4 a100-sxm-64 mesh nic:4x100Gb/s fabric:infiniband"},
		{"A100,DGX A100 40GB,,8,", "gpu:8 a100-sxm-40 nic"},
		{"GB200 NVL72,,,64,", "gpu:64 gb200 nic"},
		{"g5.48xlarge,,,8,", "gpu:8 a10g pcie nic"},
	};
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct row_system s = {.line = ""};
		struct error e = {0};
		struct csv t = table("gpu,gpu_variant,interconnect_inter,n_gpus,gpus_per_node", rows[i][0]);
		CU_ASSERT_EQUAL(system_words(&t, 0, &s, &e), ST_OK);
		if (strncmp(s.line, rows[i][1], strlen(rows[i][1])) != 0) {
			fprintf(stderr, "%s: %s %s\n", rows[i][0], s.line, e.text);
			CU_FAIL("another machine");
		}
		csv_free(&t);
	}
}

/* Every name of a machine leads to a system that the catalogue has. */
static void test_machine_names(void)
{
	const struct word_lists *lists = NULL;
	struct error e = {0};
	CU_ASSERT_EQUAL_FATAL(word_lists_load(&lists, &e), ST_OK);
	CU_ASSERT_TRUE(lists->machine.n > 100);
	for (size_t i = 0; i < lists->machine.n; i++) {
		static struct system_spec s;
		const struct word *w = &lists->machine.at[i];
		CU_ASSERT_PTR_EQUAL(word_of_cell(&lists->machine, w->name), w);
		if (system_load(w->means.value, &s, &e)) {
			fprintf(stderr, "%s: %s\n", w->name, e.text);
			CU_FAIL("no system");
		}
	}
	struct csv t = table("gpu,n_gpus", "ND H1OO v5,8");
	struct row_system s;
	CU_ASSERT_EQUAL(system_words(&t, 0, &s, &e), ST_INPUT);
	CU_ASSERT_PTR_NOT_NULL(strstr(e.text, "nearest: ND H100 v5"));
	csv_free(&t);
}

/* Tables of collectives: GPUs by their links, racks as one domain. */
static void test_collectives(void)
{
	static const struct {
		const char *cells, *line;
		int64_t hosts;
	} rows[] = {
		{"H100,16,2,NVLink4 NVSwitch,8x400Gb/s IB", "gpu:8 h100-sxm nvswitch nic:8x400Gb/s", 2},
		{"GB200,64,16,NVLink5 NVL72,", "gpu:64 gb200", 1},
		{"H100,8,1,NVlink nvswitch,", "gpu:8 h100-sxm nvswitch", 1},
		{"GB200,144,36,NVL72,", "gpu:72 gb200", 2},
		{"MI300X,8,1,xGMI,", "gpu:8 mi300x", 1},
		{"H100 80GB,2,1,PCIe,", "gpu:2 h100-pcie pcie", 1},
	};
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct collective_run r;
		struct error e = {0};
		struct csv t = table("gpu,n_gpus,n_nodes,intra,inter", rows[i].cells);
		CU_ASSERT_EQUAL(collective_words(&t, 0, &r, &e), ST_OK);
		CU_ASSERT_EQUAL(strncmp(r.line, rows[i].line, strlen(rows[i].line)), 0);
		CU_ASSERT_EQUAL(r.hosts, rows[i].hosts);
		csv_free(&t);
	}
}

UNIT_MAIN("cells", {"words", test_words}, {"distributed", test_distributed}, {"unknown words", test_unknown},
	{"gpus", test_gpus}, {"boards", test_boards}, {"machines", test_machines},
	{"names of machines", test_machine_names}, {"collectives", test_collectives})
