#include "tests/unit/constants.h"

#include <stdlib.h>
#include <string.h>

#include "base/paths.h"

/* A copy of the catalogue's constants that may be spoiled. */
static char home[] = "/tmp/stepsim-model-XXXXXX";

static void copy_constants(void)
{
	char path[PATH_MAX_LEN], command[2 * PATH_MAX_LEN];
	struct error e = {0};
	CU_ASSERT_EQUAL_FATAL(path_home(path, &e), ST_OK);
	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(home));
	snprintf(command, sizeof command, "mkdir -p %s/configs/gpus && cp -R %s/configs/model %s/configs", home, path,
		home);
	CU_ASSERT_EQUAL_FATAL(system(command), 0);
	setenv("STEPSIM_HOME", home, 1);
}

/* Reads the constants with `from` in configs/model/<section>.yaml replaced by `to`, once. */
static enum status read_with(const char *section, const char *from, const char *to, struct error *e)
{
	char path[PATH_MAX_LEN], *text, *at;
	size_t len;
	struct parameters unused;
	snprintf(path, sizeof path, "%s/configs/model/%s.yaml", home, section);
	CU_ASSERT_EQUAL_FATAL(file_read(path, 1 << 20, &text, &len, e), ST_OK);
	CU_ASSERT_PTR_NOT_NULL_FATAL(at = strstr(text, from));
	char *spoiled = malloc(len + strlen(to) + 1);
	CU_ASSERT_PTR_NOT_NULL_FATAL(spoiled);
	int n = sprintf(spoiled, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
	CU_ASSERT_EQUAL(file_write(path, spoiled, (size_t)n, e), ST_OK);
	enum status st = parameters_read(&unused, NULL, NULL, e);
	CU_ASSERT_EQUAL(file_write(path, text, len, e), ST_OK);
	free(spoiled);
	free(text);
	return st;
}

/* The doubles are those of the same decimals in C. */
static void test_values(void)
{
	const struct parameters *p = read_constants();
	CU_ASSERT_EQUAL(p->gpu.kernel_s, 1.5e-6);
	CU_ASSERT_EQUAL(p->cost.usual_pcie_Bps, 31.5e9);
	CU_ASSERT_EQUAL(p->nccl.ramp, 0.005e-6);
	CU_ASSERT_EQUAL(p->nccl.pass_launch_s, 0.43e-6);
	CU_ASSERT_EQUAL(p->nccl.few_channels_B, 134217728.0);
	CU_ASSERT_EQUAL(p->nccl.channel_GBps[3], 50);
	CU_ASSERT_EQUAL(p->nccl_2_18.ring_ll_share_inside, 1.0 / 3);
	CU_ASSERT_EQUAL(p->nccl_tuner.tree_ll128_inside, 7.0 / 9);
	CU_ASSERT_EQUAL(p->nccl_tuner.tree_factor[2][NCCL_TREE_SIZES - 1], 0.9);
	CU_ASSERT_EQUAL(p->nccl_2_28.hop_net_us[5][2], 20.9);
	CU_ASSERT_PTR_EQUAL(p, read_constants());
}

static enum status count(const struct parameter *p, void *n, struct error *e)
{
	(void)e;
	CU_ASSERT_TRUE(*p->value && *p->meaning && *p->source);
	CU_ASSERT_TRUE(strncmp(p->source, "judgement", strlen("judgement")) != 0 || p->unverified);
	++*(int *)n;
	return ST_OK;
}

/* Each has a meaning and a source; what is judgement is marked. */
static void test_each(void)
{
	struct parameters all;
	struct error e = {0};
	int n = 0;
	CU_ASSERT_EQUAL(parameters_read(&all, count, &n, &e), ST_OK);
	CU_ASSERT_TRUE(n > 100);
	CU_ASSERT_EQUAL(memcmp(&all, read_constants(), sizeof all), 0);
}

static void test_refused(void)
{
	static const struct {
		const char *section, *from, *to, *complaint;
	} cases[] = {
		{"gpu", "kernel:", "kernal:", "gpu.yaml:2:1: unknown key 'kernal' (nearest: kernel)"},
		{"gpu", "kernel:", "tile:", "duplicate key"},
		{"gpu", "value: 1.5us", "value: 1.5GB", "gpu.yaml:3:10: value: expected a time"},
		{"gpu", "value: 1.5us", "value: 2h", "expected a value from"},
		{"gpu", "value: 1.5us", "valeu: 1.5us", "gpu.yaml:3:3: kernel: unknown key 'valeu' (nearest: value)"},
		{"gpu", "meaning:", "unverified: true\n  meaning:", NULL},
		{"gpu", "meaning:", "unit: us\n  meaning:", "kernel: a plain number here, without `unit`"},
		{"cost", "value: 0.1\n", "value: [0.1]\n", "expected a number"},
		{"nccl", "unit: s/sqrt(B)", "unit: s", "ramp: expected `unit: s/sqrt(B)`"},
		{"nccl", "    ll128: 2\n", "", "posting: 'll128' is missing (expected: ll ll128 simple)"},
		{"nccl", "    ll128: 2\n", "    ll128: 2\n    ll256: 2\n", "posting: expected no other names"},
		{"nccl_tuner", "[20, 20, 20]", "[20, 20]", "expected a list of 3 numbers"},
		{"nccl_2_28", "[6.8, 14.0, 8.4]", "{ll: 6.8}", "expected a list of 3 numbers"},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct error e = {0};
		enum status st = read_with(cases[i].section, cases[i].from, cases[i].to, &e);
		CU_ASSERT_EQUAL(st, cases[i].complaint ? ST_INPUT : ST_OK);
		CU_ASSERT_TRUE(!cases[i].complaint || strstr(e.text, cases[i].complaint));
		if (cases[i].complaint && !strstr(e.text, cases[i].complaint))
			fprintf(stderr, "case %zu: %s\n", i, e.text);
	}
}

/* A section whose first key is gone. */
static void test_missing(void)
{
	struct parameters unused;
	struct error e = {0};
	char path[PATH_MAX_LEN], command[2 * PATH_MAX_LEN];
	snprintf(path, sizeof path, "%s/configs/model/gpu.yaml", home);
	snprintf(command, sizeof command, "sed -i '/^kernel:/,/^[^ k]/{/^[^ k]/!d}' %s", path);
	CU_ASSERT_EQUAL_FATAL(system(command), 0);
	CU_ASSERT_EQUAL(parameters_read(&unused, NULL, NULL, &e), ST_INPUT);
	CU_ASSERT_PTR_NOT_NULL(strstr(e.text, "gpu.yaml:2:1: the key 'kernel' is missing"));
	CU_ASSERT_EQUAL(remove(path), 0);
	e = (struct error){0};
	CU_ASSERT_EQUAL(parameters_read(&unused, NULL, NULL, &e), ST_INPUT);
	CU_ASSERT_PTR_NOT_NULL(strstr(e.text, "gpu.yaml"));
	snprintf(command, sizeof command, "rm -r %s", home);
	CU_ASSERT_EQUAL(system(command), 0);
}

static void test_copy(void)
{
	read_constants(); /* of the tree, before the copy takes its place */
	copy_constants();
}

UNIT_MAIN("parameters", {"values", test_values}, {"each", test_each}, {"a copy", test_copy}, {"refused", test_refused},
	{"missing", test_missing})
