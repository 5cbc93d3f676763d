#include "step/stack.h"

#include <string.h>

#include "base/array.h"
#include "base/sourced.h"
#include "base/suggest.h"

#define AT(field) offsetof(struct stack, field)

const struct stack_number stack_numbers[STACK_NUMBERS] = {
	{"elementwise_passes", UNIT_NONE, 0.5, 20, AT(elementwise_passes),
		"memory traffic of norms and elementwise kernels, over the least that they could do with"},
	{"logit", UNIT_BYTE, 0, 1000, AT(logit_B),
		"memory traffic a logit, forward and backward of the loss; 0: as counted"},
	{"optimizer", UNIT_BYTE, 0, 1000, AT(optimizer_B),
		"memory traffic an updated parameter, with clipping and copies; 0: as counted"},
	{"overlap_tax", UNIT_NONE, 0, 1, AT(overlap_tax),
		"compute time lost for each second of a collective beside it"},
	{"op", UNIT_SECOND, 0, 1, AT(op_s),
		"host time to issue one op, with Python and dispatch; 0: the device's launch"},
	{"tensor_exposed", UNIT_NONE, 0.01, 1, AT(tensor_exposed),
		"share of a tensor-parallel collective that products around it do not hide "
		"where parallel.tensor_overlap is on"},
	{"tensor_call", UNIT_SECOND, 0, 1, AT(tensor_call_s),
		"host time a member of a tensor group in each of its collectives while a pipeline crosses hosts"},
	{"micro_batch", UNIT_SECOND, 0, 100, AT(micro_batch_s), "time that each micro-batch adds"},
	{"step", UNIT_SECOND, 0, 100, AT(step_s), "time that each step adds"},
};

const struct stack_number stack_memories[STACK_MEMORIES] = {
	{"loss", UNIT_BYTE, 0, 100, AT(memory.loss_B), "bytes alive a logit at the loss, with the logits"},
	{"gate", UNIT_BYTE, 0, 8, AT(memory.gate_B), "bytes kept an element of a gate's activation"},
	{"dropout", UNIT_BYTE, 0, 8, AT(memory.dropout_B), "bytes kept an element of a dropout mask"},
	{"rotated", UNIT_BYTE, 0, 8, AT(memory.rotated_B), "bytes kept an element of rotated queries and keys"},
	{"message", UNIT_BYTE, 0, 8, AT(memory.message_B), "bytes kept an element of what a pipeline stage has sent"},
	{"gradient", UNIT_BYTE, 0, 32, AT(memory.gradient_B), "bytes a parameter of further gradients"},
	{"flattened", UNIT_BYTE, 0, 32, AT(memory.flattened_B),
		"bytes a parameter of flattened gradients while ZeRO-1 reduces them"},
	{"context", UNIT_BYTE, 0, 1e11, AT(memory.context_B), "CUDA context and library workspaces"},
	{"communicator", UNIT_BYTE, 0, 1e11, AT(memory.communicator_B), "NCCL's buffers for each communicator"},
};

static const char *const kernel_names[KERNEL_COUNT] =
	{[KERNEL_FA1] = "fa1", [KERNEL_FA2] = "fa2", [KERNEL_FA3] = "fa3"};

const char *attention_kernel_name(enum attention_kernel k) { return kernel_names[k]; }

struct stack stack_default(void) { return (struct stack){.elementwise_passes = 1, .attention_kernel = KERNEL_FA2}; }

static enum status read_sourced(const struct ynode *n, const struct stack_number *row, struct stack *s, struct error *e)
{
	struct sourced number;
	enum status st = sourced_read(n, &number, e);
	return st ? st
	          : ynode_quantity_with_unit(number.value, row->unit, row->min, row->max,
			    (double *)(void *)((char *)s + row->offset), e);
}

static enum status read_value(const struct ynode *n, const struct stack_number *table, size_t count, struct stack *s,
	struct error *e)
{
	const char *names[STACK_NUMBERS > STACK_MEMORIES ? STACK_NUMBERS : STACK_MEMORIES];
	const struct stack_number *row = NULL;
	for (size_t i = 0; i < count; i++) {
		names[i] = table[i].name;
		if (strcmp(n->key, names[i]) == 0)
			row = &table[i];
	}
	if (!row)
		return ynode_error_key(n, e, "%s: unknown number of a stack (nearest: %s)", n->key,
			suggest_nearest(n->key, names, count));
	return read_sourced(n, row, s, e);
}

static enum status read_number(const struct ynode *n, struct stack *s, struct error *e)
{
	return read_value(n, stack_numbers, STACK_NUMBERS, s, e);
}

static enum status read_memory(const struct ynode *n, struct stack *s, struct error *e)
{
	return read_value(n, stack_memories, STACK_MEMORIES, s, e);
}

/* Reads one of the words and sets *out to its number. */
static enum status read_word(const struct ynode *n, const char *const *words, size_t count, int *out, struct error *e)
{
	const char *word;
	enum status st = ynode_string(n, &word, e);
	for (size_t i = 0; i < count && !st; i++) {
		if (strcmp(word, words[i]) == 0) {
			*out = (int)i;
			return ST_OK;
		}
	}
	return st ? st
	          : ynode_error(n, e, "%s: \"%.40s\" is not known (nearest: %s)", n->key, word,
			    suggest_nearest(word, words, count));
}

static enum status read_kernel(const struct ynode *n, struct stack *s, struct error *e)
{
	int k = (int)s->attention_kernel;
	enum status st = read_word(n, kernel_names, KERNEL_COUNT, &k, e);
	s->attention_kernel = (enum attention_kernel)k;
	return st;
}

static enum status read_split(const struct ynode *n, struct stack *s, struct error *e)
{
	static const char *const words[SPLIT_COUNT] =
		{[SPLIT_EVEN] = "even", [SPLIT_ENDS] = "ends", [SPLIT_COST] = "cost"};
	int k = (int)s->stage_split;
	enum status st = read_word(n, words, SPLIT_COUNT, &k, e);
	s->stage_split = (enum stage_split)k;
	return st;
}

static enum status read_ahead(const struct ynode *n, struct stack *s, struct error *e)
{
	return ynode_bool(n, &s->gather_ahead, e);
}

static enum status read_shard(const struct ynode *n, struct stack *s, struct error *e)
{
	return ynode_bool(n, &s->shard_inside, e);
}

static enum status read_copies(const struct ynode *n, struct stack *s, struct error *e)
{
	return ynode_bool(n, &s->copies_gathered, e);
}

static enum status read_adds(const struct ynode *n, struct stack *s, struct error *e)
{
	return ynode_bool(n, &s->adds_gradients, e);
}

static enum status read_scales(const struct ynode *n, struct stack *s, struct error *e)
{
	return ynode_bool(n, &s->dynamic_scales, e);
}

static enum status read_last_gemm(const struct ynode *n, struct stack *s, struct error *e)
{
	return ynode_bool(n, &s->recompute_last_gemm, e);
}

static enum status read_habit(const struct ynode *n, struct stack *s, struct error *e)
{
	static const char *const names[] = {"attention_kernel", "stage_split", "gather_ahead", "shard_inside",
		"copies_gathered", "adds_gradients", "dynamic_scales", "recompute_last_gemm"};
	static enum status (*const readers[])(const struct ynode *, struct stack *, struct error *) = {read_kernel,
		read_split, read_ahead, read_shard, read_copies, read_adds, read_scales, read_last_gemm};
	for (size_t i = 0; i < COUNT(names); i++)
		if (strcmp(n->key, names[i]) == 0)
			return readers[i](n, s, e);
	return ynode_error_key(n, e, "%s: unknown habit of a stack (nearest: %s)", n->key,
		suggest_nearest(n->key, names, COUNT(names)));
}

static enum status read_all(const struct ynode *map,
	enum status (*read)(const struct ynode *, struct stack *, struct error *), struct stack *s, struct error *e)
{
	enum status st = map && map->kind != Y_MAP ? ynode_error(map, e, "%s: expected a mapping", map->key) : ST_OK;
	for (size_t i = 0; map && i < map->n && !st; i++)
		st = read(map->child[i], s, e);
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

enum status stack_read(const struct ynode *file, struct stack *s, struct error *e)
{
	static const struct stack_number widths[] = {
		{"interval", UNIT_NONE, 0.001, 3, AT(interval), "half the width of the 90 % interval, in log"},
		{"unseen", UNIT_NONE, 0.001, 3, AT(unseen),
			"of that of a stack without rows, what the parts of its step do not explain"},
	};
	enum status st = read_all(ynode_get(file, "numbers"), read_number, s, e);
	if (!st)
		st = read_all(ynode_get(file, "memory"), read_memory, s, e);
	if (!st)
		st = read_all(ynode_get(file, "habits"), read_habit, s, e);
	for (size_t i = 0; i < COUNT(widths) && !st; i++)
		if (ynode_get(file, widths[i].name))
			st = read_sourced(ynode_get(file, widths[i].name), &widths[i], s, e);
	const struct ynode *twin = ynode_get(file, "compiled_twin");
	return st || !twin ? st : read_twin(twin, s, e);
}
