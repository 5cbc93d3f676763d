/* The grid: everything that a step on the host can contain has an entry, and no shape of an example config is on it, so
 * that a comparison of prediction and measurement never meets a time that was simply remembered. */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/paths.h"
#include "exec/calibrate/calibrate.h"
#include "step/config/config.h"
#include "tests/unit/constants.h"
#include "tests/unit/harness.h"

#define OPS_MAX 2000000.0 /* a program of more takes over 1 GB: its shapes are those of its smaller sisters */

static calibration_cases grid(void)
{
	calibration_cases cases = {0};
	struct error e = {0};
	CU_ASSERT_EQUAL_FATAL(calibration_grid(NULL, &cases, &e), ST_OK);
	return cases;
}

static bool is_attention(const struct op *op) { return op_class_of(op) == CLASS_ATTENTION; }

static bool on_grid(const calibration_cases *cases, const struct op *op)
{
	for (size_t i = 0; i < cases->n; i++) {
		const struct op *c = &cases->at[i].op;
		if (op->kind == OP_GEMM && c->kind == OP_GEMM && memcmp(c->d, op->d, 3 * sizeof c->attn.batch) == 0)
			return true;
		if (is_attention(op) && is_attention(c) && c->attn.seq == op->attn.seq &&
			c->attn.head_dim == op->attn.head_dim) /* any batch, any heads */
			return true;
	}
	return false;
}

static bool has_entry(const calibration_cases *cases, const struct op *op)
{
	struct work w;
	work_of(op, NULL, &w);
	for (size_t i = 0; i < cases->n; i++)
		if (strcmp(cases->at[i].work.name, w.name) == 0)
			return true;
	return w.form == FORM_NONE;
}

static size_t check_program(const calibration_cases *cases, const struct config *c, const char *name)
{
	struct program *p = NULL;
	struct error e = {0};
	size_t checked = 0;
	CU_ASSERT_EQUAL_FATAL(program_build(c, &p, &e), ST_OK);
	for (size_t r = 0; r < p->n_roles; r++)
		for (size_t i = 0; i < p->roles[r].ops.n; i++) {
			const struct op *op = &p->roles[r].ops.at[i];
			bool off = !on_grid(cases, op), known = has_entry(cases, op);
			CU_ASSERT_TRUE(off);
			CU_ASSERT_TRUE(known);
			if (!off || !known) {
				char text[OP_NAME_MAX];
				fprintf(stderr, "%s: %s %s\n", name, op_name(op, text),
					off ? "has no entry" : "is on the grid");
			}
			checked += op->kind == OP_GEMM || is_attention(op);
		}
	program_destroy(p);
	return checked;
}

/* The ranks that a config is meant for, or the fewest with which it resolves. */
static bool resolve(const char *path, struct config *c)
{
	static const int64_t tries[] = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024};
	struct error e = {0};
	CU_ASSERT_EQUAL_FATAL(config_load(path, NULL, 0, c, &e), ST_OK);
	struct config loaded = *c;
	int64_t fixed = config_fixed_ranks(c);
	if (fixed > 0 && config_resolve(c, fixed, NULL) == ST_OK)
		return true;
	for (size_t i = 0; i < COUNT(tries); i++) {
		*c = loaded;
		if (config_resolve(c, tries[i], NULL) == ST_OK)
			return true;
	}
	return false;
}

static void test_examples_are_off_the_grid(void)
{
	char home[PATH_MAX_LEN], path[PATH_MAX_LEN + 300];
	struct error e = {0};
	calibration_cases cases = grid();
	CU_ASSERT_EQUAL_FATAL(path_home(home, &e), ST_OK);
	snprintf(path, sizeof path, "%s/configs", home);
	DIR *dir = opendir(path);
	CU_ASSERT_PTR_NOT_NULL_FATAL(dir);
	size_t files = 0, checked = 0, skipped = 0;
	for (struct dirent *entry; (entry = readdir(dir));) {
		size_t len = strlen(entry->d_name);
		if (len < 6 || strcmp(entry->d_name + len - 5, ".yaml") != 0)
			continue;
		struct config c;
		snprintf(path, sizeof path, "%s/configs/%s", home, entry->d_name);
		CU_ASSERT_TRUE_FATAL(resolve(path, &c));
		files++;
		if ((double)c.model.layers * (double)c.micro_batches * 60 > OPS_MAX)
			skipped++;
		else
			checked += check_program(&cases, &c, entry->d_name);
	}
	closedir(dir);
	CU_ASSERT_TRUE(files > skipped);
	CU_ASSERT_TRUE(checked > 100);
	vec_free(&cases);
}

/* Programs for what the examples may not use: every way of writing the model that the host executes. */
static void test_every_op_has_an_entry(void)
{
	static const char *const variants[] = {
		"norm: layernorm, mlp: gelu, position: learned, bias: true",
		"norm: rmsnorm, mlp: swiglu, position: rope, bias: false",
		"norm: layernorm, mlp: relu, position: alibi, bias: false",
		"norm: rmsnorm, mlp: squared_relu, position: none, bias: false",
		"norm: layernorm, mlp: geglu, position: rope, bias: true",
	};
	static const char *const trains[] = {"optimizer: adamw, attention: flash, fused: true",
		"optimizer: sgd, attention: naive, fused: true", "optimizer: lion, attention: flash, fused: false",
		"optimizer: adam, attention: naive, fused: false, recompute: full"};
	calibration_cases cases = grid();
	for (size_t v = 0; v < COUNT(variants); v++)
		for (size_t t = 0; t < COUNT(trains); t++) {
			char text[1024];
			struct config c;
			struct error e = {0};
			int len = snprintf(text, sizeof text,
				"model: {layers: 2, hidden: 128, heads: 4, kv_heads: 2, vocab: 512, seq_len: 64, %s}\n"
				"train: {dtype: fp32, global_batch: 8, micro_batch: 2, %s}\n"
				"parallel: {strategy: ddp, tensor: 2}\n",
				variants[v], trains[t]);
			CU_ASSERT_EQUAL_FATAL(config_parse(text, (size_t)len, "variant", NULL, 0, &c, &e), ST_OK);
			CU_ASSERT_EQUAL_FATAL(config_resolve(&c, 4, &e), ST_OK);
			CU_ASSERT_TRUE(check_program(&cases, &c, variants[v]) > 0);
		}
	vec_free(&cases);
}

/* The grid meets the needs of the fits and the profile's tables. */
static void test_grid_is_sound(void)
{
	calibration_cases cases = grid();
	const char *names[PROFILE_ENTRIES];
	size_t n = 0;
	for (size_t i = 0; i < cases.n; i++) {
		const struct calibration_case *c = &cases.at[i];
		size_t same = 0, k = 0;
		for (size_t j = 0; j < cases.n; j++)
			same += strcmp(cases.at[j].work.name, c->work.name) == 0;
		CU_ASSERT_TRUE(c->work.form == FORM_FIT ? same >= 2 * WORK_TERMS : same >= 4 && same <= PROFILE_POINTS);
		for (int a = op_kind_info(c->op.kind)->n_args; a < OP_MAX_ARGS; a++)
			CU_ASSERT_FALSE((c->hot | c->absent) & (1u << a));
		CU_ASSERT_FALSE(c->hot & c->absent);
		while (k < n && strcmp(names[k], c->work.name) != 0)
			k++;
		if (k == n && n < PROFILE_ENTRIES)
			names[n++] = c->work.name;
	}
	CU_ASSERT_TRUE(n < PROFILE_ENTRIES - 3 * 10); /* room for the collectives of ten group sizes */
	for (size_t i = 1; i < CALIBRATION_COMM_SIZES; i++)
		CU_ASSERT_TRUE(calibration_comm_sizes[i] > calibration_comm_sizes[i - 1]);
	vec_free(&cases);
}

/* Of a GPU: enough cases for every fit, room in the profile's tables, sections one after the other; another number of
 * SMs is another grid. */
static void test_gpu_grid_is_sound(void)
{
	const struct work_device d = {.gpu = true, .sms = 132, .tiles = TILE_MODEL},
				 fewer = {.gpu = true, .sms = 108, .tiles = TILE_MODEL};
	calibration_cases cases = {0};
	struct error e = {0};
	size_t fits = 0, curves = 0;
	CU_ASSERT_EQUAL_FATAL(calibration_grid(&d, &cases, &e), ST_OK);
	for (size_t i = 0; i < cases.n; i++) {
		const struct calibration_case *c = &cases.at[i];
		size_t same = 0, before = 0;
		for (size_t j = 0; j < cases.n; j++) {
			same += strcmp(cases.at[j].work.name, c->work.name) == 0;
			before += j < i && strcmp(cases.at[j].work.name, c->work.name) == 0;
		}
		CU_ASSERT_TRUE(c->work.form == FORM_FIT ? same >= 4 : same >= 4 && same <= PROFILE_POINTS);
		CU_ASSERT_FALSE(c->hot);
		CU_ASSERT_TRUE(i == 0 || c->section >= cases.at[i - 1].section);
		fits += before == 0 && c->work.form == FORM_FIT;
		curves += before == 0 && c->work.form == FORM_CURVE;
		for (int a = 0; a < op_kind_info((enum op_kind)c->op.kind)->n_args; a++)
			CU_ASSERT_TRUE((c->absent & (1u << a)) || op_arg_bytes(&c->op, a, 1) < (uint64_t)2 << 30);
	}
	/* From one case of a name to the next the work grows by steps: what is foretold of a case decides whether it is
	 * timed. */
	for (size_t i = 0; i < cases.n; i++) {
		const struct op *next = NULL, *op = &cases.at[i].op;
		for (size_t j = i + 1; j < cases.n && !next; j++)
			next = strcmp(cases.at[j].work.name, cases.at[i].work.name) == 0 ? &cases.at[j].op : NULL;
		if (next && op_read_B(op) + op_write_B(op) > 8)
			CU_ASSERT_TRUE(op_flop(next) <= 150 * op_flop(op) &&
				       op_read_B(next) + op_write_B(next) <= 150 * (op_read_B(op) + op_write_B(op)));
	}
	CU_ASSERT_TRUE(fits <= PROFILE_ENTRIES);
	CU_ASSERT_TRUE(curves + 3 * 10 <= PROFILE_ENTRIES);
	CU_ASSERT_EQUAL(calibration_checksum(&d), calibration_checksum(&d));
	CU_ASSERT_NOT_EQUAL(calibration_checksum(&d), calibration_checksum(&fewer));
	CU_ASSERT_NOT_EQUAL(calibration_checksum(&d), calibration_checksum(NULL));
	vec_free(&cases);
}

/* Flash attention in bf16: 2,048 tokens, then the longest sequence, and what is short last; on doubles what is small
 * first. */
static void test_gpu_attention_order(void)
{
	const struct work_device d = {.gpu = true, .sms = 132, .tiles = TILE_MODEL};
	calibration_cases cases = {0};
	struct error e = {0};
	size_t first = 0, n = 0;
	CU_ASSERT_EQUAL_FATAL(calibration_grid(&d, &cases, &e), ST_OK);
	for (size_t i = 0; i < cases.n; i++) {
		const struct op *op = &cases.at[i].op;
		if (op->dtype == DT_BF16 && (op->kind == OP_ATTENTION || op->kind == OP_ATTENTION_GRAD) && n++ == 0)
			first = i;
	}
	CU_ASSERT_EQUAL_FATAL(n, 40);
	for (size_t i = 0; i < 4; i++)
		CU_ASSERT_EQUAL(cases.at[first + i].op.attn.seq, 2048);
	CU_ASSERT_EQUAL(cases.at[first + 4].op.attn.seq, 16384);
	CU_ASSERT_EQUAL(cases.at[first + n - 1].op.attn.seq, 64);
	calibration_small_first(&cases);
	CU_ASSERT_EQUAL(cases.at[first].op.attn.seq, 64);
	CU_ASSERT_EQUAL(cases.at[first + n - 1].op.attn.seq, 16384);
	vec_free(&cases);
}

UNIT_MAIN("calibration grid", {"examples are off the grid", test_examples_are_off_the_grid},
	{"every op has an entry", test_every_op_has_an_entry}, {"the grid is sound", test_grid_is_sound},
	{"the GPU's grid is sound", test_gpu_grid_is_sound},
	{"the GPU's attention is in order", test_gpu_attention_order})
