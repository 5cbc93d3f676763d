/* What the catalogue's reader takes and refuses: keys, units, sources, files that are `like` others. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/paths.h"
#include "tests/unit/harness.h"
#include "topology/catalogue/catalogue.h"
#include "topology/catalogue/device.h"

struct toy {
	char name[8];
	double rate;
	int64_t count;
	bool peer;
	struct catalogue_figure price;
};
static const struct catalogue_key toy_keys[] = {
	{"name", CATALOGUE_TEXT, true, UNIT_NONE, 0, 0, offsetof(struct toy, name), 8},
	{"link.rate", CATALOGUE_DOUBLE, true, UNIT_BYTE_PER_S, 1, 1e12, offsetof(struct toy, rate), 0},
	{"link.count", CATALOGUE_INT64, false, UNIT_NONE, 0, 100, offsetof(struct toy, count), 0},
	{"link.peer", CATALOGUE_BOOL, false, UNIT_NONE, 0, 0, offsetof(struct toy, peer), 0},
	{"price", CATALOGUE_FIGURE, false, UNIT_USD, 1, 1e6, offsetof(struct toy, price), 0},
};

static enum status read_toy(const char *text, struct toy *out, bool *unverified, struct error *e)
{
	char path[] = "/tmp/stepsim-catalogue-XXXXXX";
	int fd = mkstemp(path);
	CU_ASSERT_FATAL(fd >= 0);
	close(fd);
	CU_ASSERT_EQUAL(file_write(path, text, strlen(text), e), ST_OK);
	enum status st = catalogue_read("gpus", path, toy_keys, COUNT(toy_keys), out, unverified, e);
	unlink(path);
	return st;
}

static void test_reader(void)
{
	struct toy t = {0};
	bool unverified = false;
	struct error e = {0};
	CU_ASSERT_EQUAL(read_toy("name: x\nlink:\n  rate: {value: 400Gb/s, source: datasheet}\n"
				 "  count: {value: 18, source: datasheet}\n",
				&t, &unverified, &e),
		ST_OK);
	CU_ASSERT_STRING_EQUAL(t.name, "x");
	CU_ASSERT_EQUAL(t.rate, 50e9);
	CU_ASSERT_EQUAL(t.count, 18);
	CU_ASSERT_FALSE(unverified);
	CU_ASSERT_EQUAL(read_toy("name: x\nlink: {rate: {value: 1B/s, source: memory, unverified: true}}\n", &t,
				&unverified, &e),
		ST_OK);
	CU_ASSERT_TRUE(unverified);
	unverified = false;
	CU_ASSERT_EQUAL(read_toy("name: x\nunverified: true\nlink: {rate: {value: 1B/s, source: memory}}\n", &t,
				&unverified, &e),
		ST_OK);
	CU_ASSERT_TRUE(unverified);
	unverified = false;
	CU_ASSERT_EQUAL(read_toy("name: x\nprice: {value: 2kUSD, source: a shop 2026, unverified: true}\n"
				 "link: {rate: {value: 1B/s, source: here}, peer: {value: true, source: here}}\n",
				&t, &unverified, &e),
		ST_OK);
	CU_ASSERT_TRUE(t.peer);
	CU_ASSERT_EQUAL(t.price.value, 2000);
	CU_ASSERT_TRUE(t.price.unverified);
	CU_ASSERT_STRING_EQUAL(t.price.source, "a shop 2026");
	CU_ASSERT_FALSE(unverified); /* no time rests on a price */
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
		{"name: x\nlink: {rate: {value: 50GB/s, sauce: here}}\n",
			":2:30: unknown key 'sauce' (known: value, source, unverified)"},
		{"name: x\nlink: {rate: {value: 50, source: here}}\n",
			":2:22: value: expected a data rate with its unit such as 400Gb/s, got \"50\""},
		{"name: x\nlink: {rate: {value: 50GB, source: here}}\n", ":2:22: value: "},
		{"name: x\nlink: {rate: {value: 5TB/s, source: here}}\n", ":2:22: value: "},
		{"name: x\nlink: {rat: {value: 50GB/s, source: here}}\n",
			"unknown key 'link.rat' (nearest: link.rate)"},
		{"name: x\nlinks: {rate: {value: 50GB/s, source: here}}\n", "unknown key 'links'"},
		{"name: x\nlink: 5\n", "link: expected a mapping"},
		{"name: x\nlink: {rate: {value: 1B/s, source: here}, count: {value: 1.5, source: here}}\n",
			"whole number"},
		{"name: x\nlink: {rate: {value: 1B/s, source: here}, peer: {value: 5, source: here}}\n",
			"true or false"},
		{"name: x\nlink: {rate: {value: 1B/s, source: here}, peer: true}\n",
			"every number of the catalogue names its source"},
		{"name: x\nprice: {value: 2GB, source: here}\n", ":2:16: value: "},
		{"link: {rate: {value: 1B/s, source: here}}\n", "the key 'name' is missing"},
		{"name: far too long\n", "1 to 7 characters"},
		{"name: x\nlink: {rate: {value: 1B/s, source: here}, unverified: true}\n",
			"unknown key 'link.unverified'"},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct toy t = {0};
		bool unverified = false;
		struct error e = {0};
		enum status st = read_toy(cases[i].text, &t, &unverified, &e);
		CU_ASSERT_EQUAL(st, ST_INPUT);
		CU_ASSERT_TRUE(strstr(e.text, cases[i].complaint) != NULL);
		if (!strstr(e.text, cases[i].complaint))
			fprintf(stderr, "case %zu: %s\n", i, e.text);
	}
}

/* A GPU's file in a catalogue of its own: what it has and what is left out, and the complaint. */
static void test_device_refusals(void)
{
	static const char *const whole =
		"name: X\nvendor: V\narchitecture: A\nvector: {fp32: {value: 1TFLOP/s, source: a page}}\n"
		"memory: {type: HBM, capacity: {value: 16GB, source: a page}, bandwidth: {value: 1TB/s, source: a "
		"page}}\n"
		"reached: {gemm_share: {value: 0.5, source: a page}, memory_share: {value: 0.5, source: a page}, "
		"launch: {value: 5us, source: a page}}\n";
	static const struct {
		const char *more, *complaint;
	} cases[] = {
		{"matrix: {bf16: {value: 100TFLOP/s, source: a page}}\n", NULL},
		{"", "the key 'matrix' is missing"},
		{"matrix: {bf16: {value: 100TFLOP/s, source: a page}}\nnvlink: {links: {value: 4, source: a page}}\n",
			"the key 'nvlink.link_rate' is missing"},
		{"matrix: {bf16: {value: 100TFLOP/s, source: a page}}\n"
		 "nvlink: {link_rate: {value: 25GB/s, source: a page}}\n",
			"the key 'nvlink.links' is missing"},
		{"matrix: {bf16: {value: 100TFLOP/s, source: a page}}\n"
		 "links: {kind: ICI, count: {value: 4, source: a page}}\n",
			"the key 'links.rate' is missing"},
		{"matrix: {bf16: {value: 100TFLOP/s, source: a page}}\n"
		 "links: {count: {value: 4, source: a page}, rate: {value: 25GB/s, source: a page}}\n",
			"the key 'links.kind' is missing"},
		{"matrix: {bf16: {value: 100TFLOP/s, source: a page}}\n"
		 "links: {kind: ICI, count: {value: 4, source: a page}, rate: {value: 25GB/s, source: a page}}\n"
		 "nvlink: {links: {value: 4, source: a page}, link_rate: {value: 25GB/s, source: a page}}\n",
			"exclude each other"},
		{"matrix: {bf16: {value: 100TFLOP/s, source: a page}}\nprice_usd: {value: 5USD, source: a page}\n",
			"unknown key 'price_usd'"},
		{"matrix: {int8: {value: 100TFLOP/s, source: a page}}\n", "unknown key 'matrix.int8'"},
	};
	char home[] = "/tmp/stepsim-gpus-XXXXXX", path[256], *old = getenv("STEPSIM_HOME");
	old = old ? strdup(old) : NULL;
	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(home));
	snprintf(path, sizeof path, "%s/configs", home);
	CU_ASSERT_EQUAL_FATAL(mkdir(path, 0700), 0);
	snprintf(path, sizeof path, "%s/configs/gpus", home);
	CU_ASSERT_EQUAL_FATAL(mkdir(path, 0700), 0);
	snprintf(path, sizeof path, "%s/configs/gpus/x.yaml", home);
	setenv("STEPSIM_HOME", home, 1);
	for (size_t i = 0; i < COUNT(cases); i++) {
		char text[2048];
		struct device_spec d;
		struct error e = {0};
		int len = snprintf(text, sizeof text, "%s%s", whole, cases[i].more);
		CU_ASSERT_EQUAL(file_write(path, text, (size_t)len, &e), ST_OK);
		enum status st = device_load("x", &d, &e);
		CU_ASSERT_EQUAL(st, cases[i].complaint ? ST_INPUT : ST_OK);
		CU_ASSERT_TRUE(!cases[i].complaint || strstr(e.text, cases[i].complaint));
		if (cases[i].complaint && !strstr(e.text, cases[i].complaint))
			fprintf(stderr, "case %zu: %s\n", i, e.text);
		if (!cases[i].complaint) {
			CU_ASSERT_FALSE(d.unverified || d.no_peer);
			CU_ASSERT_EQUAL(d.compute_capability, 0);
			CU_ASSERT_STRING_EQUAL(d.link_kind, "");
		}
	}
	unlink(path);
	for (int i = 0; i < 3; i++) {
		*strrchr(path, '/') = '\0';
		CU_ASSERT_EQUAL(rmdir(path), 0);
	}
	if (old)
		setenv("STEPSIM_HOME", old, 1);
	else
		unsetenv("STEPSIM_HOME");
	free(old);
}

static void test_unknown_device(void)
{
	struct device_spec d;
	struct error e = {0}, f = {0};
	CU_ASSERT_EQUAL(device_load("h100-smx", &d, &e), ST_INPUT);
	CU_ASSERT_PTR_NOT_NULL(strstr(e.text, "unknown device 'h100-smx' (nearest: h100-sxm)"));
	CU_ASSERT_EQUAL(device_load("../systems/dgx-h100", &d, &f), ST_INPUT);
}

UNIT_MAIN("reader of the catalogue", {"what it reads", test_reader}, {"its refusals", test_reader_refusals},
	{"a GPU's file", test_device_refusals}, {"an unknown device", test_unknown_device})
