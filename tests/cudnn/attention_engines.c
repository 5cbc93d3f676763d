/* Which engine of cuDNN takes which attention on which GPU, asked of the library itself without a GPU: the executor's
 * own graphs (exec/cuda/attention_cudnn.c), finalized for a device that is described in JSON (cuDNN from 9.8 on;
 * cudnn-frontend, "Deviceless Ahead-of-time Compilation"). Nothing is executed.
 *
 *   attention_engines all            the whole table, as CSV
 *   attention_engines sample TABLE   some plans, each compared with the table if that is of the same cuDNN; the last
 *                                    line counts
 *
 * tests/cudnn/libcuda.c has to stand in for the driver. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/paths.h"
#include "exec/cuda/attention_cudnn.h"
#include "exec/cuda/check.h"
#include "step/config/config.h"

#define DEVICELESS 90800
#define OWN_KERNEL (-1)

/* ---- devices ---- */

/* CUDA C++ Programming Guide, "Technical Specifications per Compute Capability", and NVIDIA's data sheets. Blocks that
 * describe a device to cuDNN want its clocks too; those of memory are of the data rate's half. */
static const struct device {
	const char *name, *title;
	int capability, sms, shared_B, threads_per_sm, blocks_per_sm;
	int64_t memory_B, l2_B;
	int clock_kHz, memory_clock_kHz;
} devices[] = {
	{"a100", "NVIDIA A100-SXM4-80GB", 80, 108, 166912, 2048, 32, 85899345920, 41943040, 1410000, 1593000},
	{"h100", "NVIDIA H100 80GB HBM3", 90, 132, 232448, 2048, 32, 85899345920, 52428800, 1980000, 2619000},
	{"h200", "NVIDIA H200", 90, 132, 232448, 2048, 32, 150754820096, 62914560, 1980000, 3201000},
	{"b200", "NVIDIA B200", 100, 148, 232448, 2048, 32, 193273528320, 132644864, 1965000, 3996000},
	{"rtx4090", "NVIDIA GeForce RTX 4090", 89, 128, 101376, 1536, 24, 25769803776, 75497472, 2520000, 10501000},
	{"rtx5090", "NVIDIA GeForce RTX 5090", 120, 170, 101376, 1536, 24, 34359738368, 100663296, 2407000, 14001000},
};
#define H200 2 /* the one that the sample asks about everything */

static enum status describe(const struct device *d, cudnnBackendDescriptor_t *out, struct error *e)
{
	char json[1024];
	int n = snprintf(json, sizeof json,
		"{\"maxGridSize\":[2147483647,65535,65535],\"maxBlockSize\":[1024,1024,64],\"regsPerBlock\":65536,"
		"\"multiProcessorCount\":%d,\"warpSize\":32,\"maxSharedMemoryPerBlock\":49152,"
		"\"maxSharedMemoryPerBlockOptin\":%d,\"reservedSharedMemoryPerBlock\":1024,\"maxRegistersPerSM\":65536,"
		"\"maxCtasPerSM\":%d,\"maxThreadsPerBlock\":1024,\"maxThreadsPerSM\":%d,\"pciDeviceId\":0,"
		"\"isTccDriver\":0,\"supportCoopLaunch\":1,\"totalGlobalMem\":%lld,\"smClockRateKHz\":%d,"
		"\"memClockRateKHz\":%d,\"l2CacheSize\":%lld,\"cudaDeviceId\":0,\"deviceVer\":%d,\"driverVer\":13000,"
		"\"deviceName\":\"%s\"}",
		d->sms, d->shared_B, d->blocks_per_sm, d->threads_per_sm, (long long)d->memory_B, d->clock_kHz,
		d->memory_clock_kHz, (long long)d->l2_B, 10 * d->capability, d->title);
	char shared[16];
	snprintf(shared, sizeof shared, "%d", d->shared_B);
	setenv("STEPSIM_STUB_SHARED_B", shared, 1);
	enum status st = CUDNN_CHECK(cudnnBackendCreateDescriptor(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, out), e);
	if (!st)
		st = CUDNN_CHECK(cudnnBackendSetAttribute(*out, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION,
					 CUDNN_TYPE_CHAR, n, json),
			e);
	return st ? st : CUDNN_CHECK(cudnnBackendFinalize(*out), e);
}

/* ---- shapes ---- */

struct shape {
	int64_t heads, kv_heads, head_dim;
	bool causal;
	int64_t tokens;
};
typedef VEC(struct shape) shapes;

static bool same(const struct shape *a, const struct shape *b)
{
	return a->heads == b->heads && a->kv_heads == b->kv_heads && a->head_dim == b->head_dim &&
	       a->causal == b->causal && a->tokens == b->tokens;
}

static bool add(shapes *to, struct shape s)
{
	for (size_t i = 0; i < to->n; i++)
		if (same(&to->at[i], &s))
			return true;
	return vec_push(to, s);
}

/* ALiBi and sliding windows have no graph. The rest is not executed on GPUs (docs/status.md). */
static bool asks(const struct model *m)
{
	return m->position != POS_ALIBI && m->sliding_window == 0 && m->kv_lora_rank == 0 && m->input == INPUT_TOKENS &&
	       m->encoder_layers == 0 && m->layer_pattern[0] == '\0';
}

/* Of every preset of the catalogue that asks, once each. */
static enum status of_presets(shapes *to, struct error *e)
{
	char **names, text[320];
	size_t n;
	enum status st = path_catalogue_names("models", &names, &n, e);
	if (st)
		return st;
	for (size_t i = 0; i < n && !st; i++) {
		struct config c;
		const int length = snprintf(text, sizeof text, "model: {preset: %s}\n", names[i]);
		if ((st = config_parse(text, (size_t)length, "preset", NULL, 0, &c, e)) ||
			(st = config_resolve(&c, 1, e)) || !asks(&c.model))
			continue;
		if (!add(to, (struct shape){c.model.heads, c.model.kv_heads, c.model.head_dim, c.model.causal,
				     c.model.seq_len}))
			st = error_nomem(e, "shapes");
	}
	path_names_free(names, n);
	return st;
}

static const int64_t dims[] = {64, 80, 96, 128, 256}, key_heads[] = {8, 2, 1}, tokens[] = {1024, 8192, 32768, 131072};

/* ---- asking ---- */

struct question {
	const struct device *device;
	enum dtype format;
	bool backward;
	struct shape shape;
};

/* The engine's number, or OWN_KERNEL. */
static int64_t ask(const struct question *q, cudnnBackendDescriptor_t described)
{
	const struct cudnn_target target = {.device = described};
	const struct shape *s = &q->shape;
	struct op op = {.kind = q->backward ? OP_ATTENTION_GRAD : OP_ATTENTION,
		.flags = s->causal ? OP_CAUSAL : 0,
		.dtype = (uint8_t)q->format,
		.attn = {1, s->heads, s->kv_heads, s->tokens, s->head_dim}};
	struct cudnn_attention *plan = NULL;
	struct error e = {0};
	int64_t engine = OWN_KERNEL;
	if (cudnn_attention_create(&target, &op, q->format, &plan, &e))
		return OWN_KERNEL;
	if (cudnn_attention_engine(plan, &engine, &e))
		fprintf(stderr, "%s\n", e.text);
	cudnn_attention_destroy(plan);
	return engine;
}

/* A row of the table up to its tokens: what a question is found by. */
static void row_begin(const struct question *q, char out[128])
{
	const struct shape *s = &q->shape;
	snprintf(out, 128, "%zu,%s,%s,%s,%lld,%lld,%lld,%s,", cudnnGetVersion(), q->device->name, dtype_name(q->format),
		q->backward ? "backward" : "forward", (long long)s->heads, (long long)s->kv_heads,
		(long long)s->head_dim, s->causal ? "causal" : "full");
}

static void engine_write(int64_t engine, char out[16])
{
	if (engine == OWN_KERNEL)
		snprintf(out, 16, "own kernel");
	else
		snprintf(out, 16, "%lld", (long long)engine);
}

/* ---- the table ---- */

#define HEADER "cudnn,device,format,pass,heads,kv_heads,head_dim,mask,tokens_from,tokens_to,engine\n"

/* A row for each run of numbers of tokens that one engine takes. */
static void print_rows(struct question q, cudnnBackendDescriptor_t described, const int64_t *of, size_t n)
{
	char begin[128], text[16];
	row_begin(&q, begin);
	int64_t from = of[0], engine = OWN_KERNEL;
	for (size_t i = 0; i <= n; i++) {
		q.shape.tokens = i < n ? of[i] : 0;
		const int64_t now = i < n ? ask(&q, described) : OWN_KERNEL - 1;
		if (i > 0 && now != engine) {
			engine_write(engine, text);
			printf("%s%lld,%lld,%s\n", begin, (long long)from, (long long)of[i - 1], text);
			from = q.shape.tokens;
		}
		engine = now;
	}
	fflush(stdout);
}

/* Sweeps over dims, sharing, masks and tokens in bf16, at one length in fp16; then the presets. */
static void print_device(const struct device *d, cudnnBackendDescriptor_t described, const shapes *presets)
{
	const int64_t in_fp16 = 8192;
	for (int backward = 0; backward < 2; backward++) {
		for (size_t i = 0; i < COUNT(dims); i++)
			for (size_t k = 0; k < COUNT(key_heads); k++)
				for (int causal = 1; causal >= 0; causal--) {
					struct question q = {d, DT_BF16, backward,
						{8, key_heads[k], dims[i], causal, 0}};
					print_rows(q, described, tokens, COUNT(tokens));
					q.format = DT_FP16;
					print_rows(q, described, &in_fp16, 1);
				}
		for (size_t i = 0; i < presets->n; i++)
			print_rows((struct question){d, DT_BF16, backward, presets->at[i]}, described,
				&presets->at[i].tokens, 1);
	}
}

static int print_all(const shapes *presets)
{
	struct error e = {0};
	printf("# Written by `make attention-table`: plans that cuDNN finalizes for a described device. Nothing was "
	       "executed.\n" HEADER);
	for (size_t i = 0; i < COUNT(devices); i++) {
		cudnnBackendDescriptor_t described;
		if (describe(&devices[i], &described, &e)) {
			fprintf(stderr, "%s: %s\n", devices[i].name, e.text);
			return 1;
		}
		print_device(&devices[i], described, presets);
		(void)cudnnBackendDestroyDescriptor(described);
	}
	return 0;
}

/* ---- the sample ---- */

struct verdict {
	FILE *table;
	bool same_cudnn;
	int passed, failed;
};

/* The table's engine, as text; "" where it has no such row. */
static void table_find(FILE *table, const struct question *q, char out[16])
{
	char begin[128], line[256];
	row_begin(q, begin);
	out[0] = '\0';
	rewind(table);
	while (!out[0] && fgets(line, sizeof line, table)) {
		long long from, to;
		if (strncmp(line, begin, strlen(begin)) == 0 &&
			sscanf(line + strlen(begin), "%lld,%lld,%15[^\n]", &from, &to, out) == 3 &&
			(q->shape.tokens < from || q->shape.tokens > to))
			out[0] = '\0';
	}
}

static void judge(struct verdict *v, const struct question *q, cudnnBackendDescriptor_t described)
{
	char begin[128], is[16], want[16];
	row_begin(q, begin);
	engine_write(ask(q, described), is);
	table_find(v->table, q, want);
	const bool good = !v->same_cudnn || strcmp(is, want) == 0;
	*(good ? &v->passed : &v->failed) += 1;
	printf("%s%lld: %s%s%s\n", begin, (long long)q->shape.tokens, is, good ? "" : ", the table says ",
		good      ? ""
		: want[0] ? want
			  : "nothing");
}

/* On the H200 each preset's shape; on the others heads of 64 shared by none and of 128 shared by four; long sequences
 * and fp16 once each. */
static bool sample_device(struct verdict *v, const struct device *d, const shapes *presets)
{
	static const struct shape some[] = {{8, 8, 64, true, 1024}, {8, 2, 128, true, 8192}};
	static const struct shape longest = {8, 2, 128, true, 131072}, wide = {8, 8, 256, false, 8192};
	cudnnBackendDescriptor_t described;
	struct error e = {0};
	if (describe(d, &described, &e)) {
		printf("%s: %s\n", d->name, e.text);
		return false;
	}
	const bool all = d == &devices[H200];
	for (int backward = 0; backward < 2; backward++) {
		for (size_t i = 0; i < (all ? presets->n : COUNT(some)); i++)
			judge(v, &(struct question){d, DT_BF16, backward, all ? presets->at[i] : some[i]}, described);
		if (all)
			judge(v, &(struct question){d, DT_BF16, backward, longest}, described);
		else
			judge(v, &(struct question){d, DT_FP16, backward, wide}, described);
	}
	(void)cudnnBackendDestroyDescriptor(described);
	return true;
}

static int sample(const shapes *presets, const char *path)
{
	char line[256] = "", own[16];
	struct verdict v = {.table = fopen(path, "r")};
	if (!v.table) {
		printf("no table %s\n0 passed, 1 failed\n", path);
		return 1;
	}
	for (int i = 0; i < 3 && fgets(line, sizeof line, v.table); i++)
		;
	snprintf(own, sizeof own, "%zu,", cudnnGetVersion());
	v.same_cudnn = strncmp(line, own, strlen(own)) == 0;
	if (!v.same_cudnn)
		printf("the table is of another cuDNN: nothing is compared\n");
	for (size_t i = 0; i < COUNT(devices); i++)
		if (!sample_device(&v, &devices[i], presets))
			v.failed++;
	fclose(v.table);
	printf("%d passed, %d failed\n", v.passed, v.failed);
	return v.failed > 0;
}

int main(int argc, char **argv)
{
	shapes presets = {0};
	struct error e = {0};
	if (cudnnGetVersion() < DEVICELESS) {
		printf("cuDNN %zu builds no plans without a device\n0 passed, 0 failed, 1 skipped\n",
			cudnnGetVersion());
		return 0;
	}
	if (of_presets(&presets, &e)) {
		fprintf(stderr, "%s\n", e.text);
		return 2;
	}
	int code = argc == 2 && strcmp(argv[1], "all") == 0      ? print_all(&presets)
	           : argc == 3 && strcmp(argv[1], "sample") == 0 ? sample(&presets, argv[2])
	                                                         : 2;
	vec_free(&presets);
	return code;
}
