/* The catalogue's files: every number has its source, figures close with each other, and the known ridge points come
 * out. The reader's refusals are in test_catalogue_reader.c. */
#include <ctype.h>
#include <math.h>
#include <string.h>

#include "base/array.h"
#include "base/paths.h"
#include "base/sourced.h"
#include "base/yaml.h"
#include "tests/unit/harness.h"
#include "topology/catalogue/catalogue.h"
#include "topology/catalogue/device.h"

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
		bool is_number = n->text[0] && !n->quoted && !strchr(n->text, ' ') &&
		                 (isdigit((unsigned char)n->text[0]) ||
					 strchr("+-.", n->text[0])); /* "2x Xeon 8480C" is none */
		bool is_value = n->key && strcmp(n->key, "value") == 0;
		CU_ASSERT_TRUE(!is_number || is_value);
		if (is_number && !is_value)
			fprintf(stderr, "%s:%d:%d: a number without a source\n", n->file, n->line, n->col);
		return 0;
	}
	size_t found = 0;
	if (ynode_get(n, "value")) {
		const struct ynode *source = ynode_get(n, "source");
		bool ok = source && source->kind == Y_SCALAR && strlen(source->text) > 8;
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
		CU_ASSERT_EQUAL_FATAL(sourced_load(kind, path, &doc, &e), ST_OK);
		CU_ASSERT_TRUE(check_numbers(ydoc_root(doc)) >= 7);
		ydoc_destroy(doc);
		check(names[i]);
	}
	path_names_free(names, n);
}

/* ---- GPUs ---- */

/* Multiply-adds a clock of one SM or CU: dense fp16 or bf16 with fp32 accumulation in its matrix units, and fp32 in its
 * vector units. From the makers' architecture whitepapers (Volta 8 x 64, GA100 4 x 256, GA102 and Ada 4 x 128, Hopper 4
 * x 512 a clock; CDNA 2, 3 and 4: 512, 1024, 2048), half of it on GeForce parts and on the L40, which are sold that
 * way. Not closed: Blackwell's data-centre parts (the clock of the quoted peak is not published), the H20 (matrix rates
 * capped by export rules, vector rate quoted above any clock that it shows), and Hopper's vector rate (quoted at the
 * largest boost, 1.98 GHz, its matrix rate at a lower one). */
static const struct chip {
	const char *id;
	double matrix_fma, vector_fma;
} chips[] = {
	{"p100-pcie", 64, 64},
	{"p100-sxm", 64, 64},
	{"v100-sxm-16", 512, 64},
	{"v100-sxm-32", 512, 64},
	{"v100-pcie", 512, 64},
	{"t4", 512, 64},
	{"a30", 1024, 64},
	{"a100-pcie-40", 1024, 64},
	{"a100-pcie-80", 1024, 64},
	{"a100-sxm-40", 1024, 64},
	{"a100-sxm-80", 1024, 64},
	{"a100-sxm-64", 1024, 64},
	{"a800-sxm-80", 1024, 64},
	{"a10", 512, 128},
	{"a10g", 256, 128},
	{"a40", 512, 128},
	{"rtx-a4000", 512, 128},
	{"rtx-a4500", 512, 128},
	{"rtx-a5000", 512, 128},
	{"rtx-a5500", 512, 128},
	{"rtx-a6000", 512, 128},
	{"rtx3070", 256, 128},
	{"rtx3080", 256, 128},
	{"rtx3090", 256, 128},
	{"rtx8000", 512, 64},
	{"l4", 512, 128},
	{"l40", 256, 128},
	{"l40s", 512, 128},
	{"rtx6000-ada", 512, 128},
	{"rtx4080-super", 256, 128},
	{"rtx4090", 256, 128},
	{"rtx4090-48", 256, 128},
	{"rtx5090", 256, 128},
	{"rtx-pro-6000", 512, 128},
	{"h100-pcie", 2048, 0},
	{"h100-sxm", 2048, 0},
	{"h100-96", 2048, 0},
	{"h100-64", 2048, 0},
	{"h100-nvl", 2048, 0},
	{"h800-sxm", 2048, 0},
	{"h200-sxm", 2048, 0},
	{"h200-nvl", 2048, 0},
	{"gh200", 2048, 0},
	{"gh200-120", 2048, 0},
	{"gh200-144", 2048, 0},
	{"h20", 0, 0},
	{"h20-141", 0, 0},
	{"b100", 0, 0},
	{"b200", 0, 128},
	{"b300", 0, 0},
	{"gb200", 0, 128},
	{"gb300", 0, 0},
	{"mi210", 512, 64},
	{"mi250x", 512, 64},
	{"mi250x-gcd", 512, 64},
	{"mi300a", 1024, 128},
	{"mi300x", 1024, 128},
	{"mi325x", 1024, 128},
	{"mi350x", 2048, 128},
	{"mi355x", 2048, 128},
};

static const struct chip *chip_of(const char *id)
{
	for (size_t i = 0; i < COUNT(chips); i++)
		if (strcmp(chips[i].id, id) == 0)
			return &chips[i];
	return NULL;
}

/* A sparse rate, or one of packed arithmetic without matrix units, is off by a factor of 2 or 4. */
static void check_peak(const struct device_spec *d, const struct chip *c)
{
	const double *m = d->matrix_flop_per_s;
	double per_fma = 2 * (double)d->sms * d->boost_Hz;
	if (c->matrix_fma > 0)
		close_to(m[DT_FP16], per_fma * c->matrix_fma, 0.01, d->id);
	if (c->vector_fma > 0)
		close_to(d->vector_flop_per_s, per_fma * c->vector_fma, 0.015, d->id);
}

/* Each halving of the format doubles the dense rate. The L40S is quoted at two clocks (2.49 and 2.52 GHz); tf32 of A30
 * and L4 is rounded to whole numbers. */
static void check_formats(const struct device_spec *d)
{
	const double *m = d->matrix_flop_per_s;
	double tolerance = strcmp(d->id, "l40s") == 0                              ? 0.03
	                   : strcmp(d->id, "l4") == 0 || strcmp(d->id, "a30") == 0 ? 0.01
	                                                                           : 0.002;
	if (m[DT_BF16] > 0)
		close_to(m[DT_FP16], m[DT_BF16], 1e-9, d->id);
	if (m[DT_TF32] > 0)
		close_to(m[DT_FP16], 2 * m[DT_TF32], tolerance, d->id);
	if (m[DT_FP8] > 0)
		close_to(m[DT_FP8], 2 * m[DT_BF16], tolerance, d->id);
	/* GeForce halves products that add up in fp32, but not those with block scales, mxfp8 and nvfp4. */
	const bool halved = strcmp(d->id, "rtx5090") == 0;
	if (m[DT_MXFP8] > 0)
		CU_ASSERT_EQUAL(m[DT_MXFP8], (halved ? 2 : 1) * m[DT_FP8]);
	/* nvfp4: twice the full rate of fp8; three times on Blackwell Ultra */
	bool ultra = strcmp(d->id, "b300") == 0 || strcmp(d->id, "gb300") == 0;
	if (m[DT_NVFP4] > 0)
		close_to(m[DT_NVFP4], (halved ? 4 : ultra ? 3 : 2) * m[DT_FP8], 0.001, d->id);
	if (d->compute_capability > 0)
		CU_ASSERT_EQUAL(m[DT_FP32], d->vector_flop_per_s); /* no Tensor Core multiplies in fp32 */
	/* Formats came with chips: bf16, tf32 with Ampere, fp8 with Ada, Hopper, mxfp8, nvfp4 with Blackwell. */
	if (d->compute_capability > 0) {
		CU_ASSERT_EQUAL(m[DT_BF16] > 0, d->compute_capability >= 80);
		CU_ASSERT_EQUAL(m[DT_TF32] > 0, d->compute_capability >= 80);
		CU_ASSERT_EQUAL(m[DT_FP8] > 0, d->compute_capability >= 89);
		CU_ASSERT_EQUAL(m[DT_MXFP8] > 0, d->compute_capability >= 100);
		CU_ASSERT_EQUAL(m[DT_NVFP4] > 0, d->compute_capability >= 100);
	}
}

/* Independent of topology/graph/rates.c. GT/s a lane; 128/130 of the bits are data up to generation 5, 242/256 in 6. */
static void check_pcie(const struct device_spec *d)
{
	static const double gt_per_s[] = {0, 2.5, 5, 8, 16, 32, 64};
	if (d->pcie_Bps == 0) {
		CU_ASSERT_EQUAL(d->pcie_gen, 0);
		return;
	}
	CU_ASSERT_FATAL(d->pcie_gen >= 3 && d->pcie_gen <= 6);
	close_to(d->pcie_Bps,
		gt_per_s[d->pcie_gen] * 1e9 * (double)d->pcie_lanes * (d->pcie_gen == 6 ? 242. / 256 : 128. / 130) / 8,
		0.001, d->id);
}

/* One direction of one link by generation; GA102's third generation is the slow one (14.0625 GB/s). */
static void check_nvlink(const struct device_spec *d)
{
	static const double link_Bps[] = {0, 20e9, 25e9, 25e9, 25e9, 50e9};
	if (strcmp(d->link_kind, "NVLink") != 0)
		return;
	CU_ASSERT_FATAL(d->nvlink_gen >= 1 && d->nvlink_gen <= 5);
	close_to(d->nvlink_link_Bps, d->compute_capability == 86 ? 14.0625e9 : link_Bps[d->nvlink_gen], 1e-9, d->id);
	CU_ASSERT_EQUAL(d->nvlink_gen, d->compute_capability < 70    ? 1
				       : d->compute_capability < 80  ? 2
				       : d->compute_capability < 90  ? 3
				       : d->compute_capability < 100 ? 4
								     : 5);
}

static bool has_prefix(const char *id, const char *const *prefixes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strncmp(id, prefixes[i], strlen(prefixes[i])) == 0)
			return true;
	return false;
}

static void check_gpu(const char *id)
{
	static const char *const others[] = {"tpu-", "trainium", "gaudi", "cs-", "groq"}, *const sram[] = {"cs-",
												  "groq"};
	struct device_spec d = device(id);
	const struct chip *c = chip_of(id);
	bool other = has_prefix(id, others, 5), on_chip = has_prefix(id, sram, 2);
	CU_ASSERT_STRING_EQUAL(d.id, id);
	CU_ASSERT_EQUAL(c != NULL, !other);
	if (!c && !other)
		fprintf(stderr, "%s: a new GPU needs a row in the table `chips`\n", id);
	if (c) {
		check_peak(&d, c);
		check_formats(&d);
		CU_ASSERT_TRUE((d.compute_capability > 0) != (d.gfx[0] != 0));
		CU_ASSERT_TRUE(d.sms > 0 && d.l2_B > 0 && d.power_W > 0 && d.pcie_Bps > 0);
	} else {
		CU_ASSERT_TRUE(d.unverified);
		if (d.matrix_flop_per_s[DT_FP8] > 0) /* none of them is more than twice as fast in fp8 */
			CU_ASSERT_TRUE(d.matrix_flop_per_s[DT_FP8] >= d.matrix_flop_per_s[DT_BF16] &&
				       d.matrix_flop_per_s[DT_FP8] < 2.01 * d.matrix_flop_per_s[DT_BF16]);
	}
	check_pcie(&d);
	check_nvlink(&d);
	CU_ASSERT_EQUAL(d.nvlink_links > 0, d.link_kind[0] != 0);
	/* A mix-up of bits and bytes, or of one and two directions, is a factor of 8 or 2. */
	CU_ASSERT_TRUE(d.mem_B > (on_chip ? 2e8 : 8e9) && d.mem_B < 320e9);
	CU_ASSERT_TRUE(on_chip || (d.mem_Bps >= 100e9 && d.mem_Bps <= 10e12));
	CU_ASSERT_TRUE(on_chip || (d.mem_Bps / (double)d.mem_B > 10 && d.mem_Bps / (double)d.mem_B < 75));
	CU_ASSERT_EQUAL(d.price_usd > 0, d.price_note[0] != 0);
	CU_ASSERT_EQUAL(d.rent_usd_per_hour > 0, d.rent_note[0] != 0);
	CU_ASSERT_EQUAL(d.matrix_flop_per_s[DT_INT32], 0);
}

static void test_gpus(void) { each_file("gpus", 58, check_gpu); }

/* A source that owns to being memory, and a figure that another part or an assumption stands in for, carry the mark.
 * `marked`: the file as a whole does. */
static void check_marks(const struct ynode *n, bool marked)
{
	static const char *const words[] = {"from memory", "(memory", "not measured on this part", "assumption",
		"derived: no"};
	const struct ynode *source = ynode_get(n, "source"), *flag = ynode_get(n, "unverified");
	bool own = marked || (flag && strcmp(flag->text, "true") == 0);
	for (size_t i = 0; source && source->text && i < COUNT(words); i++) {
		CU_ASSERT_TRUE(own || !strstr(source->text, words[i]));
		if (!own && strstr(source->text, words[i]))
			fprintf(stderr, "%s:%d: '%s' without unverified: true\n", source->file, source->line, words[i]);
	}
	for (size_t i = 0; i < n->n; i++)
		check_marks(n->child[i], own);
}

static void check_file_marks(const char *id)
{
	char path[PATH_MAX_LEN];
	struct error e = {0};
	struct ydoc *doc = NULL;
	CU_ASSERT_EQUAL_FATAL(path_catalogue("gpus", id, path, &e), ST_OK);
	CU_ASSERT_EQUAL_FATAL(sourced_load("gpus", path, &doc, &e), ST_OK);
	check_marks(ydoc_root(doc), false);
	ydoc_destroy(doc);
}

static void test_marks(void)
{
	each_file("gpus", 58, check_file_marks);
	CU_ASSERT_FALSE(device("h100-sxm").unverified);
	CU_ASSERT_FALSE(device("a100-pcie-80").unverified);
	CU_ASSERT_TRUE(device("p100-sxm").unverified);
	CU_ASSERT_TRUE(device("rtx3090").unverified); /* its memory's share */
	/* A price from memory marks itself, not what is predicted. */
	struct device_spec a6000 = device("rtx-a6000"), h100 = device("h100-sxm");
	CU_ASSERT_TRUE(a6000.price_unverified);
	CU_ASSERT_FALSE(a6000.rent_unverified);
	CU_ASSERT_FALSE(h100.price_unverified);
	CU_ASSERT_EQUAL(h100.price_usd, 30000);
	CU_ASSERT_EQUAL(h100.rent_usd_per_hour, 6.88);
	CU_ASSERT_PTR_NOT_NULL(strstr(h100.rent_note, "2026-09-10"));
}

/* Figures that circulate and are wrong: sparse, fp16-accumulated, of a pair, of both directions, of another part (in
 * TFLOP/s, GB/s, GB). None may come back. */
static void test_known_errors(void)
{
	static const struct {
		const char *id;
		enum dtype dtype;
		double wrong, right;
	} rates[] = {
		{"h100-sxm", DT_BF16, 1979, 989.4},
		{"h100-sxm", DT_FP8, 3958, 1978.9},
		{"h200-sxm", DT_BF16, 1979, 989.4},
		{"h100-nvl", DT_BF16, 1671, 835.5},
		{"h100-pcie", DT_BF16, 1513, 756},
		{"a100-sxm-80", DT_BF16, 624, 312},
		{"a100-sxm-80", DT_FP16, 77.97, 312},
		{"rtx4090", DT_FP16, 661, 165.2},
		{"rtx4090", DT_FP8, 660.6, 330.3},
		{"rtx5090", DT_FP16, 838, 209.5},
		{"rtx6000-ada", DT_FP8, 1457, 728.5},
		{"l4", DT_FP16, 242, 121},
		{"l4", DT_TF32, 120, 60},
		{"l40s", DT_BF16, 733, 362},
		{"l40", DT_BF16, 362, 181},
		{"b200", DT_FP8, 9000, 4500},
		{"b200", DT_NVFP4, 18000, 9000},
		{"gb200", DT_NVFP4, 20000, 10000},
		{"mi300x", DT_BF16, 2614.9, 1307.4},
		{"mi355x", DT_FP8, 10100, 5033},
		{"mi250x-gcd", DT_BF16, 383, 191.5},
		{"gaudi3", DT_BF16, 1835, 1678},
		{"trainium1", DT_BF16, 210, 190},
		{"trainium2", DT_FP8, 2563, 1299},
		{"p100-sxm", DT_FP16, 21.2, 10.6},
		{"h20", DT_BF16, 296, 148},
	};
	for (size_t i = 0; i < COUNT(rates); i++) {
		double v = device(rates[i].id).matrix_flop_per_s[rates[i].dtype];
		close_to(v, rates[i].right * 1e12, 1e-9, rates[i].id);
		CU_ASSERT_TRUE(fabs(v - rates[i].wrong * 1e12) > 0.05 * v);
	}
	CU_ASSERT_STRING_EQUAL(device("a100-sxm-40").memory_type, "HBM2");
	CU_ASSERT_STRING_EQUAL(device("h100-pcie").memory_type, "HBM2e");
	CU_ASSERT_EQUAL(device("a100-sxm-40").mem_Bps, 1.555e12);
	CU_ASSERT_EQUAL(device("h100-nvl").mem_Bps, 3.938e12);
	CU_ASSERT_EQUAL(device("h100-96").mem_Bps, 2.4e12);
	CU_ASSERT_EQUAL(device("gh200-144").mem_Bps, 4.9e12);
	CU_ASSERT_EQUAL(device("h20-141").mem_Bps, 4.8e12);
	CU_ASSERT_EQUAL(device("h100-96").mem_B, 97871ull << 20);
	CU_ASSERT_EQUAL(device("rtx4090").power_W, 450);
	CU_ASSERT_EQUAL(device("mi300x").sms, 304);
	CU_ASSERT_TRUE(device("rtx3090").no_peer && device("rtx4090").no_peer && device("rtx5090").no_peer);
	CU_ASSERT_FALSE(device("rtx-pro-6000").no_peer || device("l40s").no_peer || device("h100-sxm").no_peer);
	CU_ASSERT_EQUAL(device("h100-sxm").compute_capability, 90);
	CU_ASSERT_EQUAL(device("b300").compute_capability, 103);
	CU_ASSERT_STRING_EQUAL(device("mi300x").gfx, "gfx942");
}

static void test_ridge_points(void)
{
	static const struct {
		const char *id;
		double flop_per_B;
	} rows[] = {{"h100-sxm", 295}, {"h200-sxm", 206}, {"a100-sxm-80", 153}};
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct device_spec d = device(rows[i].id);
		CU_ASSERT_EQUAL(round(d.matrix_flop_per_s[DT_BF16] / d.mem_Bps), rows[i].flop_per_B);
	}
	struct device_spec h = device("h100-sxm");
	CU_ASSERT_EQUAL(round(h.vector_flop_per_s / h.mem_Bps), 20);
}

/* A GPU's links to others in hardware terms: both directions of all of them, GB/s. */
static void test_link_rates(void)
{
	static const struct {
		const char *id, *kind;
		double both_Bps;
	} rows[] = {
		{"p100-sxm", "NVLink", 160e9},
		{"v100-sxm-16", "NVLink", 300e9},
		{"v100-sxm-32", "NVLink", 300e9},
		{"a100-sxm-40", "NVLink", 600e9},
		{"a100-sxm-80", "NVLink", 600e9},
		{"a100-pcie-80", "NVLink", 600e9},
		{"a800-sxm-80", "NVLink", 400e9},
		{"a30", "NVLink", 200e9},
		{"a40", "NVLink", 112.5e9},
		{"rtx-a6000", "NVLink", 112.5e9},
		{"rtx3090", "NVLink", 112.5e9},
		{"h100-sxm", "NVLink", 900e9},
		{"h100-pcie", "NVLink", 600e9},
		{"h100-nvl", "NVLink", 600e9},
		{"h800-sxm", "NVLink", 400e9},
		{"h20", "NVLink", 900e9},
		{"h20-141", "NVLink", 900e9},
		{"h200-sxm", "NVLink", 900e9},
		{"gh200", "NVLink", 900e9},
		{"gh200-120", "NVLink", 900e9},
		{"gh200-144", "NVLink", 900e9},
		{"b100", "NVLink", 1800e9},
		{"b200", "NVLink", 1800e9},
		{"b300", "NVLink", 1800e9},
		{"gb200", "NVLink", 1800e9},
		{"gb300", "NVLink", 1800e9},
		{"mi250x", "xGMI", 800e9},
		{"mi300a", "xGMI", 768e9},
		{"mi300x", "xGMI", 896e9},
		{"mi355x", "xGMI", 1075.2e9},
		{"gaudi2", "Ethernet", 525e9},
		{"gaudi3", "Ethernet", 1050e9},
		{"tpu-v3", "ICI", 656e9},
		{"tpu-v5e", "ICI", 400e9},
		{"tpu-v5p", "ICI", 1200e9},
		{"trainium2", "NeuronLink", 1280e9},
		{"t4", "", 0},
		{"l40s", "", 0},
		{"rtx4090", "", 0},
		{"v100-pcie", "", 0},
	};
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct device_spec d = device(rows[i].id);
		CU_ASSERT_STRING_EQUAL(d.link_kind, rows[i].kind);
		CU_ASSERT_EQUAL(2 * (double)d.nvlink_links * d.nvlink_link_Bps, rows[i].both_Bps);
	}
	CU_ASSERT_EQUAL(device("t4").pcie_Bps, 15.75e9);
	CU_ASSERT_EQUAL(device("a100-sxm-80").pcie_Bps, 31.5e9);
	CU_ASSERT_EQUAL(device("h100-sxm").pcie_Bps, 63e9);
	CU_ASSERT_EQUAL(device("b300").pcie_Bps, 121e9);
}

/* What large products reach in a format that both have. */
static double reached_flop_per_s(const struct device_spec *d, enum dtype t)
{
	const double share = d->format_share[t] > 0 ? d->format_share[t] : d->gemm_share;
	return d->matrix_flop_per_s[t] * share;
}

/* A maker's next part of a class is not slower in any format: power holds matrix units down, not those of fp32. */
static void test_generations(void)
{
	static const char *const pairs[][2] = {{"v100-sxm-32", "a100-sxm-80"}, {"a100-sxm-80", "h100-sxm"},
		{"h100-sxm", "h200-sxm"}, {"h200-sxm", "b200"}, {"h200-sxm", "b300"}, {"gh200", "gb200"},
		{"h200-sxm", "gb300"}, {"mi250x-gcd", "mi300x"}, {"mi300x", "mi325x"}, {"mi325x", "mi355x"},
		{"tpu-v4", "tpu-v5p"}, {"tpu-v5e", "tpu-v6e"}, {"gaudi2", "gaudi3"}};
	for (size_t i = 0; i < COUNT(pairs); i++) {
		const struct device_spec before = device(pairs[i][0]), after = device(pairs[i][1]);
		for (enum dtype t = 0; t < DT_COUNT; t++) {
			const double a = reached_flop_per_s(&before, t), b = reached_flop_per_s(&after, t);
			CU_ASSERT(a <= 0 || b <= 0 || b >= a);
			if (a > 0 && b > 0 && b < a)
				fprintf(stderr, "%s: %.4g, %s: %.4g in %s\n", pairs[i][0], a, pairs[i][1], b,
					dtype_name(t));
		}
	}
	/* 0.64 of 75 TFLOP/s, where 0.6373 of 66.9 are an H200's: 48 and 42.6 */
	const struct device_spec b200 = device("b200"), h200 = device("h200-sxm");
	CU_ASSERT_DOUBLE_EQUAL(reached_flop_per_s(&b200, DT_FP32), 48e12, 1e9);
	CU_ASSERT_DOUBLE_EQUAL(reached_flop_per_s(&h200, DT_FP32), 42.635e12, 1e9);
}

static void sources_only(const char *id)
{
	(void)id; /* each_file has looked at its numbers; what they mean is test_system.c's business */
}

static void test_systems(void) { each_file("systems", 13, sources_only); }

UNIT_MAIN("catalogue", {"GPUs", test_gpus}, {"marks", test_marks}, {"known errors", test_known_errors},
	{"ridge points", test_ridge_points}, {"link rates", test_link_rates}, {"systems", test_systems},
	{"generations", test_generations})
