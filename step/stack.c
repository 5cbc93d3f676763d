#include "step/stack.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/sourced.h"
#include "base/suggest.h"

#define AT(field) offsetof(struct stack, field)

#define ROW(name, field, unit, min, max, meaning) {name, UNIT_##unit, min, max, AT(field), meaning},
const struct stack_number stack_numbers[STACK_NUMBERS] = {STACK_NUMBER_ROWS(ROW)};

#define MEMORY_ROW(name, field, ...) ROW(name, memory.field, __VA_ARGS__)
const struct stack_number stack_memories[STACK_MEMORIES] = {STACK_MEMORY_ROWS(MEMORY_ROW)};

static const char *const kernel_names[KERNEL_COUNT] = {[KERNEL_FA1] = "fa1",
	[KERNEL_FA2] = "fa2",
	[KERNEL_FA3] = "fa3",
	[KERNEL_FA4] = "fa4",
	[KERNEL_MASKED] = "masked"};

const char *attention_kernel_name(enum attention_kernel k) { return kernel_names[k]; }

enum attention_kernel attention_kernel_on(const struct stack *s, int64_t compute_capability)
{
	const bool blackwell = compute_capability / 10 == 10;
	return s->cudnn_on_blackwell && blackwell ? KERNEL_FA3 : s->attention_kernel;
}

struct stack stack_default(void) { return (struct stack){.elementwise_passes = 1, .attention_kernel = KERNEL_FA2}; }

static enum status check_mapping(const struct ynode *map, struct error *e)
{
	return map && map->kind != Y_MAP ? ynode_error(map, e, "%s: expected a mapping", map->key) : ST_OK;
}

static enum status read_sourced(const struct ynode *n, const struct stack_number *row, struct stack *s, struct error *e)
{
	struct sourced number;
	enum status st = sourced_read(n, &number, e);
	return st ? st
	          : ynode_quantity_with_unit(number.value, row->unit, row->min, row->max,
			    (double *)(void *)((char *)s + row->offset), e);
}

static enum status read_numbers(const struct ynode *map, const struct stack_number *table, size_t count,
	struct stack *s, struct error *e)
{
	const char *names[STACK_NUMBERS > STACK_MEMORIES ? STACK_NUMBERS : STACK_MEMORIES];
	for (size_t i = 0; i < count; i++)
		names[i] = table[i].name;
	enum status st = check_mapping(map, e);
	for (size_t i = 0; map && i < map->n && !st; i++) {
		const struct ynode *n = map->child[i];
		const size_t k = suggest_find(n->key, names, count);
		st = k < count ? read_sourced(n, &table[k], s, e)
		               : ynode_error_key(n, e, "%s: unknown number of a stack%s", n->key,
					 suggest(n->key, names, count, NULL).text);
	}
	return st;
}

/* Reads one of the words and sets *out, an enum, to its number. */
static enum status read_word(const struct ynode *n, const char *const *words, size_t count, void *out, struct error *e)
{
	const char *word;
	enum status st = ynode_string(n, &word, e);
	if (st)
		return st;
	const int k = (int)suggest_find(word, words, count);
	if ((size_t)k == count)
		return ynode_error(n, e, "%s: \"%.40s\" is not known%s", n->key, word,
			suggest(word, words, count, NULL).text);
	memcpy(out, &k, sizeof k);
	return ST_OK;
}

static enum status read_habits(const struct ynode *map, struct stack *s, struct error *e)
{
	static const char *const splits[SPLIT_COUNT] =
		{[SPLIT_EVEN] = "even", [SPLIT_ENDS] = "ends", [SPLIT_COST] = "cost"};
	static const char *const names[] = {"attention_kernel", "stage_split", "bucket_per_rank", "host_update",
		"buckets_lead_only", "gather_ahead", "shard_inside", "copies_gathered", "adds_gradients",
		"dynamic_scales", "recompute_last_gemm", "moments_as_weights", "scatters_messages", "expert_calls",
		"gathers_narrow", "stores_narrow", "gates_activation", "keeps_attention_once", "copies_gradients",
		"reduces_whole", "softmax_masked_only", "copies_units", "copies_slices", "channels_first",
		"expert_counts", "atomic_sums", "expert_masks", "biases_apart", "one_queue", "copies_flat",
		"passes_hold_dropout", "chunks_loss", "dtensor", "gathers_matrices", "reduces_computed",
		"frees_gradients", "scans_blocks", "cudnn_on_blackwell", "triton_fp4", "torch_grouped",
		"half_gradients", "gathers_twice"};
	bool *const switches[] = {NULL, NULL, NULL, NULL, &s->buckets_lead_only, &s->gather_ahead, &s->shard_inside,
		&s->copies_gathered, &s->adds_gradients, &s->dynamic_scales, &s->recompute_last_gemm,
		&s->moments_as_weights, &s->scatters_messages, &s->expert_calls, &s->gathers_narrow, &s->stores_narrow,
		&s->gates_activation, &s->keeps_attention_once, &s->copies_gradients, &s->reduces_whole,
		&s->softmax_masked_only, &s->copies_units, &s->copies_slices, &s->channels_first, &s->expert_counts,
		&s->atomic_sums, &s->expert_masks, &s->biases_apart, &s->one_queue, &s->copies_flat,
		&s->passes_hold_dropout, &s->chunks_loss, &s->dtensor, &s->gathers_matrices, &s->reduces_computed,
		&s->frees_gradients, &s->scans_blocks, &s->cudnn_on_blackwell, &s->triton_fp4, &s->torch_grouped,
		&s->half_gradients, &s->gathers_twice};
	static_assert(COUNT(names) == COUNT(switches), "a place for each habit");
	enum status st = check_mapping(map, e);
	for (size_t i = 0; map && i < map->n && !st; i++) {
		const struct ynode *n = map->child[i];
		const size_t k = suggest_find(n->key, names, COUNT(names));
		if (k == 0)
			st = read_word(n, kernel_names, KERNEL_COUNT, &s->attention_kernel, e);
		else if (k == 1)
			st = read_word(n, splits, SPLIT_COUNT, &s->stage_split, e);
		else if (k == 2)
			st = ynode_quantity_with_unit(n, UNIT_BYTE, 1, 1e12, &s->bucket_per_rank_B, e);
		else if (k == 3)
			st = ynode_quantity_with_unit(n, UNIT_BYTE_PER_S, 1e6, 1e15, &s->host_update_Bps, e);
		else if (k < COUNT(names))
			st = ynode_bool(n, switches[k], e);
		else
			st = ynode_error_key(n, e, "%s: unknown habit of a stack%s", n->key,
				suggest(n->key, names, COUNT(names), NULL).text);
	}
	return st;
}

static enum status read_twin(const struct ynode *n, struct stack *s, struct error *e)
{
	const char *name;
	const enum status st = ynode_string(n, &name, e);
	if (st)
		return st;
	if (strlen(name) >= sizeof s->compiled_twin)
		return ynode_error(n, e, "%s: longer than %zu bytes", n->key, sizeof s->compiled_twin - 1);
	memcpy(s->compiled_twin, name, strlen(name) + 1);
	return ST_OK;
}

static enum status read_gpu(const struct ynode *n, struct stack *s, struct error *e)
{
	const char *id;
	enum status st = ynode_string(n, &id, e);
	const size_t used = strlen(s->fitted_gpus);
	if (!st && used + strlen(id) + 2 > sizeof s->fitted_gpus)
		st = ynode_error(n, e, "gpus: longer than %zu bytes together", sizeof s->fitted_gpus - 1);
	if (!st)
		snprintf(s->fitted_gpus + used, sizeof s->fitted_gpus - used, "%s ", id);
	return st;
}

static enum status read_format(const struct ynode *n, struct stack *s, struct error *e)
{
	const char *word, *names[DT_COUNT];
	enum status st = ynode_string(n, &word, e);
	for (int i = 0; i < DT_COUNT; i++)
		names[i] = dtype_name((enum dtype)i);
	if (!st && dtype_by_name(word) == DT_COUNT)
		st = ynode_error(n, e, "formats: \"%.40s\" is not known%s", word,
			suggest(word, names, DT_COUNT, NULL).text);
	if (!st)
		s->fitted_format[dtype_by_name(word)] = true;
	return st;
}

static enum status read_fitted_on(const struct ynode *map, struct stack *s, struct error *e)
{
	static const char *const names[] = {"gpus", "formats"};
	static enum status (*const read[])(const struct ynode *, struct stack *, struct error *) = {read_gpu,
		read_format};
	enum status st = check_mapping(map, e);
	for (size_t i = 0; map && i < map->n && !st; i++) {
		const struct ynode *list = map->child[i];
		const size_t k = suggest_find(list->key, names, COUNT(names));
		if (k == COUNT(names))
			st = ynode_error_key(list, e, "fitted_on: %s is not known%s", list->key,
				suggest(list->key, names, COUNT(names), NULL).text);
		else if (list->kind != Y_SEQ)
			st = ynode_error(list, e, "fitted_on.%s: expected a list", list->key);
		for (size_t j = 0; !st && j < list->n; j++)
			st = read[k](list->child[j], s, e);
	}
	return st;
}

static enum status read_operators(const struct ynode *file, struct stack *s, struct error *e)
{
	const struct ynode *map = ynode_get(file, "operators");
	if (ynode_get(ynode_get(file, "numbers"), "elementwise_passes"))
		s->operators = (struct operators){.counted = false};
	const struct ynode *slow = ynode_get(file, "unvectorized"), *sums = ynode_get(file, "reductions"),
			   *kernels = ynode_get(file, "kernels");
	enum status st = map ? operators_read(map, &s->operators, e) : ST_OK;
	if (!st && slow)
		st = operators_read_unvectorized(slow, &s->operators, e);
	if (!st && sums)
		st = operators_read_reductions(sums, &s->operators, e);
	return st || !kernels ? st : operators_read_kernels(kernels, &s->operators, e);
}

enum status stack_read(const struct ynode *file, struct stack *s, struct error *e)
{
	static const struct stack_number width = {"interval", UNIT_NONE, 0.001, 3, AT(interval),
		"half the width of the 90 % interval, in log"};
	enum status st = read_numbers(ynode_get(file, "numbers"), stack_numbers, STACK_NUMBERS, s, e);
	if (!st)
		st = read_numbers(ynode_get(file, "memory"), stack_memories, STACK_MEMORIES, s, e);
	if (!st)
		st = read_operators(file, s, e);
	if (!st)
		st = read_habits(ynode_get(file, "habits"), s, e);
	if (!st && ynode_get(file, width.name))
		st = read_sourced(ynode_get(file, width.name), &width, s, e);
	if (!st)
		st = read_fitted_on(ynode_get(file, "fitted_on"), s, e);
	const struct ynode *twin = ynode_get(file, "compiled_twin");
	return st || !twin ? st : read_twin(twin, s, e);
}

enum fp8_recipe stack_recipe(const struct stack *s)
{
	return s->fp8_recipe != FP8_AUTO ? s->fp8_recipe : s->dynamic_scales ? FP8_TENSORWISE : FP8_DELAYED;
}

const struct fp8_traffic *stack_fp8(const struct stack *s)
{
#define FP8_ROW(id, name, ...) [FP8_##id] = {name, __VA_ARGS__},
	static const struct fp8_traffic rows[] = {FP8_RECIPES(FP8_ROW)};
	return &rows[stack_recipe(s)];
}
