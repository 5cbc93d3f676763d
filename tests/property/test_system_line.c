/* Random system lines: valid ones become valid graphs of what they say, and damaged ones are refused in one line, or
 * are valid lines themselves. */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/paths.h"
#include "tests/unit/harness.h"
#include "topology/machine.h"
#include "topology/catalogue/system.h"

#define LINE 256

static uint64_t state = 0x9e3779b97f4a7c15u;

static uint64_t next_random(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

static int64_t between(int64_t low, int64_t high)
{
	return low + (int64_t)(next_random() % (uint64_t)(high - low + 1));
}

struct wish {
	char line[LINE];
	int64_t nodes, gpus, per_switch, sockets, nics;
	int32_t gen, lanes;
	const char *gpu;
};

/* Devices of one PCIe card and of one module each; what the words may ask of them. */
static const struct {
	const char *id;
	int32_t gen;
	const char *fabrics[5];
} devices[] = {
	{"rtx4090", 4, {"none", "pcie"}},
	{"l40s", 4, {"none"}},
	{"a100-pcie-80", 4, {"none", "bridge", "nvlink"}},
	{"h100-sxm", 5, {"nvswitch", "nvlink", "none", "bridge"}},
	{"v100-sxm-32", 3, {"nvswitch", "none"}},
	{"mi300x", 5, {"mesh", "torus", "none"}},
	{"trainium2", 0, {"torus", "none"}},
};

static void shuffle(char (*word)[48], size_t n)
{
	for (size_t i = n; i > 1; i--) {
		size_t j = (size_t)between(0, (int64_t)i - 1);
		char kept[48];
		memcpy(kept, word[i - 1], sizeof kept);
		memcpy(word[i - 1], word[j], sizeof kept);
		memcpy(word[j], kept, sizeof kept);
	}
}

static struct wish make_wish(void)
{
	struct wish w = {.gpus = between(1, 20)};
	char word[10][48];
	size_t n = 0, d = (size_t)between(0, COUNT(devices) - 1);
	w.gpu = devices[d].id;
	snprintf(word[n++], 48, "gpu:%d", (int)w.gpus);
	snprintf(word[n++], 48, "%s", w.gpu);
	if (between(0, 1))
		snprintf(word[n++], 48, "node:%d", (int)(w.nodes = between(1, 5000)));
	if (between(0, 1))
		snprintf(word[n++], 48, "switch:%d", (int)(w.per_switch = between(1, w.gpus)));
	if (between(0, 1))
		snprintf(word[n++], 48, "cpu:%d", (int)(w.sockets = between(1, 8)));
	if (between(0, 1))
		snprintf(word[n++], 48, "nic:%dx%d%s", (int)(w.nics = between(1, 16)), (int)between(10, 800),
			between(0, 1) ? "Gb" : "Gb/s");
	if (between(0, 1) && devices[d].gen) {
		w.gen = (int32_t)between(1, devices[d].gen);
		w.lanes = between(0, 1) ? 8 : 0;
		snprintf(word[n++], 48, w.lanes ? "pcie%dx8" : "pcie%d", w.gen);
	}
	int64_t fabric = between(0, 4);
	if (devices[d].fabrics[fabric])
		snprintf(word[n++], 48, "%s", devices[d].fabrics[fabric]);
	shuffle(word, n);
	for (size_t i = 0; i < n; i++)
		snprintf(w.line + strlen(w.line), sizeof w.line - strlen(w.line), "%s%s",
			i ? (between(0, 3) ? " " : " \t ") : "", word[i]);
	return w;
}

/* True when it loads; then its graph holds together. */
static bool loads(const char *line, struct system_spec *s)
{
	struct error e = {0};
	struct graph *g = NULL;
	enum status st = system_load(line, s, &e);
	if (st) {
		CU_ASSERT_EQUAL(st, ST_INPUT);
		CU_ASSERT_TRUE(e.text[0] && !strchr(e.text, '\n'));
		return false;
	}
	st = system_graph(s, 0, &g, &e);
	if (!st) {
		st = topology_check(g, &e);
		CU_ASSERT_EQUAL(g->gpu.n, s->gpus);
		CU_ASSERT_EQUAL(g->nic.n, s->nics);
	}
	CU_ASSERT_EQUAL(st, ST_OK);
	if (st)
		fprintf(stderr, "%s: %s\n", line, e.text);
	graph_destroy(g);
	return true;
}

static void test_valid(void)
{
	for (int i = 0; i < 1500; i++) {
		struct wish w = make_wish();
		struct system_spec s;
		bool good = loads(w.line, &s);
		CU_ASSERT_TRUE(good);
		if (!good) {
			struct error e = {0};
			system_load(w.line, &s, &e);
			fprintf(stderr, "%s: %s\n", w.line, e.text);
			continue;
		}
		CU_ASSERT_EQUAL(s.gpus, w.gpus);
		CU_ASSERT_EQUAL(s.nodes, w.nodes);
		CU_ASSERT_EQUAL(s.gpus_per_switch, w.per_switch);
		CU_ASSERT_EQUAL(s.nics, w.nics);
		CU_ASSERT_STRING_EQUAL(s.device.id, w.gpu);
		if (w.sockets)
			CU_ASSERT_EQUAL(s.sockets, w.sockets);
		if (w.gen)
			CU_ASSERT_EQUAL(s.pcie_gen, w.gen);
		if (w.lanes)
			CU_ASSERT_EQUAL(s.pcie_lanes, w.lanes);
	}
}

static void damage(char *line)
{
	static const char letters[] = "0123456789:xgpunodeicswtch /.-+eGbs\t\x01\xff";
	size_t len = strlen(line), at = (size_t)between(0, (int64_t)len - 1);
	char other = letters[between(0, (int64_t)sizeof letters - 2)];
	switch (between(0, 3)) {
	case 0: line[at] = other; break;
	case 1: memmove(line + at, line + at + 1, len - at); break;
	case 2:
		if (len + 1 < LINE) {
			memmove(line + at + 1, line + at, len - at + 1);
			line[at] = other;
		}
		break;
	default: line[at] = '\0';
	}
}

static void test_damaged(void)
{
	int refused = 0;
	for (int i = 0; i < 3000; i++) {
		struct wish w = make_wish();
		struct system_spec s;
		for (int64_t times = between(1, 4); times > 0 && w.line[0]; times--)
			damage(w.line);
		refused += !loads(w.line, &s);
	}
	CU_ASSERT_TRUE(refused > 1000); /* most slips are no line */
}

/* Each GPU of the catalogue by its name alone, in a host of eight. */
static void test_every_gpu(void)
{
	char **names = NULL, line[LINE];
	size_t n = 0;
	struct error e = {0};
	CU_ASSERT_EQUAL_FATAL(path_catalogue_names("gpus", &names, &n, &e), ST_OK);
	for (size_t i = 0; i < n; i++) {
		struct machine m = {0};
		snprintf(line, sizeof line, "gpu:8 %s", names[i]);
		enum status st = machine_load(line, 1, 0, &m, &e);
		CU_ASSERT_EQUAL(st, ST_OK);
		if (st)
			fprintf(stderr, "%s: %s\n", line, e.text);
		else
			CU_ASSERT_TRUE(m.intra.Bps > 0);
		e = (struct error){0};
		machine_free(&m);
	}
	path_names_free(names, n);
}

UNIT_MAIN("system lines", {"valid lines", test_valid}, {"damaged lines", test_damaged}, {"every GPU", test_every_gpu})
