/* The catalogue: every number has its source, figures close with each other, and the known ridge points come out. */
#include <ctype.h>
#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/paths.h"
#include "base/yaml.h"
#include "tests/unit/harness.h"
#include "topology/catalogue.h"
#include "topology/machine.h"

static void close_to(double value, double expected, double tolerance, const char *what)
{
	bool ok = fabs(value - expected) <= tolerance * fabs(expected);
	CU_ASSERT_TRUE(ok);
	if (!ok)
		fprintf(stderr, "%s: %g, expected %g\n", what, value, expected);
}

static struct device_spec device(const char *id)
{
	struct device_spec d = {0};
	struct error e = {0};
	CU_ASSERT_EQUAL(device_load(id, &d, &e), ST_OK);
	if (e.text[0])
		fprintf(stderr, "%s\n", e.text);
	return d;
}

/* Independent of the reader: walks the tree, so that a key which the reader would take without a source fails here. */
static size_t check_numbers(const struct ynode *n)
{
	if (n->kind == Y_SCALAR) {
		bool starts_as_number = n->text[0] && !n->quoted && (isdigit((unsigned char)n->text[0]) || strchr("+-.", n->text[0]));
		bool is_value = n->key && strcmp(n->key, "value") == 0;
		CU_ASSERT_TRUE(!starts_as_number || is_value);
		if (starts_as_number && !is_value)
			fprintf(stderr, "%s:%d:%d: a number without a source\n", n->file, n->line, n->col);
		return 0;
	}
	size_t found = 0;
	if (ynode_get(n, "value")) {
		const struct ynode *source = ynode_get(n, "source");
		bool ok = source && source->kind == Y_SCALAR && strlen(source->text) >= 8;
		CU_ASSERT_TRUE(ok);
		if (!ok)
			fprintf(stderr, "%s:%d:%d: no source\n", n->file, n->line, n->col);
		found++;
	}
	for (size_t i = 0; i < n->n; i++)
		found += check_numbers(n->child[i]);
	return found;
}

static void each_file(const char *kind, size_t at_least, void (*check)(const char *id))
{
	char **names = NULL, path[PATH_MAX_LEN];
	size_t n = 0;
	struct error e = {0};
	CU_ASSERT_EQUAL_FATAL(path_catalogue_names(kind, &names, &n, &e), ST_OK);
	CU_ASSERT_TRUE(n >= at_least);
	for (size_t i = 0; i < n; i++) {
		struct ydoc *doc = NULL;
		CU_ASSERT_EQUAL(path_catalogue(kind, names[i], path, &e), ST_OK);
		CU_ASSERT_EQUAL_FATAL(ydoc_load(path, &doc, &e), ST_OK);
		CU_ASSERT_TRUE(check_numbers(ydoc_root(doc)) >= 7);
		ydoc_destroy(doc);
		check(names[i]);
	}
	path_names_free(names, n);
}

/* Peaks close with the chip: FMA a clock of one SM's Tensor Cores (Ampere GA100 1024, Hopper 2048: NVIDIA's architecture whitepapers). Blackwell's clock at the quoted peak is not published. */
static void check_peak(const struct device_spec *d, double fma)
{
	close_to((double)d->sms * fma * 2 * d->boost_Hz, d->matrix_flop_per_s[DT_BF16], 0.002, d->id);
}

static void check_gpu(const char *id)
{
	struct device_spec d = device(id);
	const double *m = d.matrix_flop_per_s;
	CU_ASSERT_STRING_EQUAL(d.id, id);
	/* A sparse rate would stand out as twice its neighbour: each halving of the format doubles the dense rate. */
	close_to(m[DT_FP16], m[DT_BF16], 1e-9, id);
	close_to(m[DT_BF16], 2 * m[DT_TF32], 0.001, id);
	if (m[DT_FP8] > 0)
		close_to(m[DT_FP8], 2 * m[DT_BF16], 0.001, id);
	if (m[DT_NVFP4] > 0)
		close_to(m[DT_NVFP4], 2 * m[DT_FP8], 0.001, id);
	close_to(m[DT_FP32], d.vector_flop_per_s, 1e-9, id); /* no Tensor Core multiplies in fp32 */
	CU_ASSERT_EQUAL(m[DT_INT32], 0);
	if (strncmp(id, "a100", 4) == 0)
		check_peak(&d, 1024);
	if (strncmp(id, "h100", 4) == 0 || strncmp(id, "h200", 4) == 0)
		check_peak(&d, 2048);
	/* A mix-up of bits and bytes, or of one and two directions, is a factor of 8 or 2. */
	CU_ASSERT_TRUE(d.pcie_Bps > 15e9 && d.pcie_Bps < 130e9);
	CU_ASSERT_TRUE(d.mem_B > 30e9 && d.mem_B < 300e9);
	CU_ASSERT_TRUE(d.mem_Bps / (double)d.mem_B > 20 && d.mem_Bps / (double)d.mem_B < 60);
}

static void test_gpus(void)
{
	each_file("gpus", 6, check_gpu);
}

static void test_ridge_points(void)
{
	static const struct {
		const char *id;
		double flop_per_B;
	} rows[] = {{"h100-sxm", 295}, {"h200-sxm", 206}, {"a100-sxm-80", 153}};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct device_spec d = device(rows[i].id);
		CU_ASSERT_EQUAL(round(d.matrix_flop_per_s[DT_BF16] / d.mem_Bps), rows[i].flop_per_B);
	}
	struct device_spec h = device("h100-sxm");
	CU_ASSERT_EQUAL(round(h.vector_flop_per_s / h.mem_Bps), 20);
}

/* NVLink, both directions, a GPU: A100 600, H100 and H200 900, B200 1800 GB/s; PCIe x16, one direction: gen 4 31.5, gen 5 63 GB/s. */
static void test_link_rates(void)
{
	static const struct {
		const char *id;
		double nvlink_both_Bps, pcie_gt_per_s;
	} rows[] = {{"a100-sxm-40", 600e9, 16e9}, {"a100-sxm-80", 600e9, 16e9}, {"h100-sxm", 900e9, 32e9}, {"h200-sxm", 900e9, 32e9}, {"b200", 1800e9, 32e9}, {"h100-pcie", 600e9, 32e9}};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct device_spec d = device(rows[i].id);
		close_to(2 * (double)d.nvlink_links * d.nvlink_link_Bps, rows[i].nvlink_both_Bps, 1e-9, d.id);
		close_to(d.pcie_Bps, rows[i].pcie_gt_per_s * 16 * 128 / 130 / 8, 0.001, d.id);
	}
}

static void check_system(const char *id)
{
	char path[PATH_MAX_LEN];
	struct machine m = {0};
	struct error e = {0};
	struct ydoc *doc = NULL;
	double datasheet = 0, usable = 0;
	CU_ASSERT_EQUAL_FATAL(machine_load(id, 2, 0, &m, &e), ST_OK);
	CU_ASSERT_EQUAL_FATAL(path_catalogue("systems", id, path, &e), ST_OK);
	CU_ASSERT_EQUAL_FATAL(ydoc_load(path, &doc, &e), ST_OK);
	const struct ynode *intra = ynode_get(ydoc_root(doc), "intra");
	ynode_quantity(ynode_get(ynode_get(intra, "datasheet"), "value"), UNIT_BYTE_PER_S, 0, 1e15, &datasheet, &e);
	ynode_quantity(ynode_get(ynode_get(intra, "usable"), "value"), UNIT_BYTE_PER_S, 0, 1e15, &usable, &e);
	/* Every system so far joins its GPUs by all their NVLinks; NCCL counts a link at 80 to 83 % of its rate. */
	close_to(datasheet, (double)m.device.nvlink_links * m.device.nvlink_link_Bps, 1e-9, id);
	CU_ASSERT_EQUAL(m.intra.Bps, usable);
	CU_ASSERT_TRUE(usable > 0.79 * datasheet && usable < 0.84 * datasheet);
	CU_ASSERT_TRUE(m.inter.Bps * 8 >= 50e9 && m.inter.Bps * 8 <= 400e9); /* 50 to 400 Gb/s a GPU */
	ydoc_destroy(doc);
}

static void test_systems(void)
{
	each_file("systems", 5, check_system);
}

/* ---- the reader's refusals ---- */

struct toy {
	char name[8];
	double rate;
	int64_t count;
};
static const struct catalogue_key toy_keys[] = {
	{"name", CATALOGUE_TEXT, true, UNIT_NONE, 0, 0, offsetof(struct toy, name), 8},
	{"link.rate", CATALOGUE_DOUBLE, true, UNIT_BYTE_PER_S, 1, 1e12, offsetof(struct toy, rate), 0},
	{"link.count", CATALOGUE_INT64, false, UNIT_NONE, 0, 100, offsetof(struct toy, count), 0},
};

static enum status read_toy(const char *text, struct toy *out, bool *unverified, struct error *e)
{
	char path[] = "/tmp/stepsim-catalogue-XXXXXX";
	int fd = mkstemp(path);
	CU_ASSERT_FATAL(fd >= 0);
	close(fd);
	CU_ASSERT_EQUAL(file_write(path, text, strlen(text), e), ST_OK);
	enum status st = catalogue_read(path, toy_keys, 3, out, unverified, e);
	unlink(path);
	return st;
}

static void test_reader(void)
{
	struct toy t = {0};
	bool unverified = false;
	struct error e = {0};
	CU_ASSERT_EQUAL(read_toy("name: x\nlink:\n  rate: {value: 400Gb/s, source: datasheet}\n  count: {value: 18, source: datasheet}\n", &t, &unverified, &e), ST_OK);
	CU_ASSERT_STRING_EQUAL(t.name, "x");
	CU_ASSERT_EQUAL(t.rate, 50e9);
	CU_ASSERT_EQUAL(t.count, 18);
	CU_ASSERT_FALSE(unverified);
	CU_ASSERT_EQUAL(read_toy("name: x\nlink: {rate: {value: 1B/s, source: memory, unverified: true}}\n", &t, &unverified, &e), ST_OK);
	CU_ASSERT_TRUE(unverified);
	unverified = false;
	CU_ASSERT_EQUAL(read_toy("name: x\nunverified: true\nlink: {rate: {value: 1B/s, source: memory}}\n", &t, &unverified, &e), ST_OK);
	CU_ASSERT_TRUE(unverified);
}

static void test_reader_refusals(void)
{
	static const struct {
		const char *text, *complaint;
	} cases[] = {
		{"name: x\nlink: {rate: 50GB/s}\n", "every number of the catalogue names its source"},
		{"name: x\nlink: {rate: {value: 50GB/s}}\n", "'source' is missing"},
		{"name: x\nlink: {rate: {source: here}}\n", "'value' is missing"},
		{"name: x\nlink: {rate: {value: 50GB/s, source: ''}}\n", "the source is empty"},
		{"name: x\nlink: {rate: {value: 50GB/s, sauce: here}}\n", ":2:30: unknown key 'sauce' (nearest: source)"},
		{"name: x\nlink: {rate: {value: 50, source: here}}\n", ""},
		{"name: x\nlink: {rate: {value: 50GB, source: here}}\n", ":2:22: value: "},
		{"name: x\nlink: {rate: {value: 5TB/s, source: here}}\n", ":2:22: value: "},
		{"name: x\nlink: {rat: {value: 50GB/s, source: here}}\n", "unknown key 'link.rat' (nearest: link.rate)"},
		{"name: x\nlinks: {rate: {value: 50GB/s, source: here}}\n", "unknown key 'links'"},
		{"name: x\nlink: 5\n", "link: expected a mapping"},
		{"name: x\nlink: {rate: {value: 1B/s, source: here}, count: {value: 1.5, source: here}}\n", "whole number"},
		{"link: {rate: {value: 1B/s, source: here}}\n", "the key 'name' is missing"},
		{"name: far too long\n", "1 to 7 characters"},
		{"name: x\nlink: {rate: {value: 1B/s, source: here}, unverified: true}\n", "unknown key 'link.unverified'"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct toy t = {0};
		bool unverified = false;
		struct error e = {0};
		enum status st = read_toy(cases[i].text, &t, &unverified, &e);
		bool plain = !*cases[i].complaint; /* 50 without a unit is 50 B/s: in base units */
		CU_ASSERT_EQUAL(st, plain ? ST_OK : ST_INPUT);
		CU_ASSERT_TRUE(plain || strstr(e.text, cases[i].complaint));
		if (!plain && !strstr(e.text, cases[i].complaint))
			fprintf(stderr, "case %zu: %s\n", i, e.text);
	}
}

static void test_unknown_device(void)
{
	struct device_spec d;
	struct error e = {0}, f = {0};
	CU_ASSERT_EQUAL(device_load("h100-smx", &d, &e), ST_INPUT);
	CU_ASSERT_PTR_NOT_NULL(strstr(e.text, "unknown device 'h100-smx' (nearest: h100-sxm)"));
	CU_ASSERT_EQUAL(device_load("../systems/dgx-h100", &d, &f), ST_INPUT);
}

UNIT_MAIN("catalogue", {"GPUs", test_gpus}, {"ridge points", test_ridge_points}, {"link rates", test_link_rates}, {"systems", test_systems}, {"the reader", test_reader}, {"its refusals", test_reader_refusals},
	  {"an unknown device", test_unknown_device})
