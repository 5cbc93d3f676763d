/* A reader gives what config_parse gives, whatever it read before. */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "step/config/config.h"
#include "tests/unit/harness.h"

#define MOST 2

static const char text[] = "model: {preset: llama3-8b, layers: 16}\n"
			   "train: {stack: megatron-core, global_batch: 64}\n"
			   "parallel: {strategy: ddp, tensor: 4}\n";

/* In an order in which stacks and presets change and come back, and what is wrong stands between. */
static const char *const asked[][MOST] = {
	{NULL},
	{"train.micro_batch=2"},
	{"train.stack=pytorch-ddp", "parallel.strategy=fsdp"},
	{"train.stack=pytorch-ddp", "model.preset=gpt2-124m"},
	{"train.stack=no-such-stack"},
	{"train.stack=pytorch-ddp"},
	{"model.preset=no-such-model"},
	{"model.preset=gpt2-124m"},
	{"train.stack=megatron-core"},
	{"train.micro_batch=-1"},
	{NULL},
	{"parallel.bucket_mb=7", "parallel.strategy=none"},
	{"model.preset=llama3-8b"},
	{NULL},
};

static void test_same(void)
{
	struct config *c = calloc(2, sizeof *c);
	struct config_reader *reader;
	struct error e = {0};
	CU_ASSERT_EQUAL_FATAL(config_reader_create(text, strlen(text), "cfg.yaml", &reader, &e), ST_OK);
	for (size_t i = 0; i < COUNT(asked); i++) {
		struct error refused[2] = {{0}, {0}};
		size_t n = 0;
		while (n < MOST && asked[i][n])
			n++;
		enum status st = config_read(reader, asked[i], n, &c[0], &refused[0]);
		CU_ASSERT_EQUAL(config_parse(text, strlen(text), "cfg.yaml", asked[i], n, &c[1], &refused[1]), st);
		CU_ASSERT_STRING_EQUAL(refused[0].text, refused[1].text);
		CU_ASSERT(st || memcmp(&c[0], &c[1], sizeof *c) == 0);
	}
	config_reader_destroy(reader);
	free(c);
}

static void test_refused(void)
{
	static const char wrong[] = "model: [\n";
	struct config_reader *reader;
	struct error e = {0};
	CU_ASSERT_EQUAL(config_reader_create(wrong, strlen(wrong), "cfg.yaml", &reader, &e), ST_INPUT);
	CU_ASSERT_PTR_NULL(reader);
	config_reader_destroy(NULL);
}

UNIT_MAIN("config reader", {"as config_parse", test_same}, {"no YAML", test_refused})
