#include "step/stack.h"

#include <string.h>

#include "base/suggest.h"

#define AT(field) offsetof(struct stack, field)

const struct stack_number stack_numbers[STACK_NUMBERS] = {
	{"elementwise_passes", UNIT_NONE, 0.5, 20, AT(elementwise_passes), "memory traffic of norms and elementwise kernels, over the least that they could do with"},
	{"logit", UNIT_BYTE, 0, 1000, AT(logit_B), "memory traffic a logit, forward and backward of the loss; 0: as counted"},
	{"optimizer", UNIT_BYTE, 0, 1000, AT(optimizer_B), "memory traffic an updated parameter, with clipping and copies; 0: as counted"},
	{"overlap_tax", UNIT_NONE, 0, 1, AT(overlap_tax), "compute time lost for each second of a collective beside it"},
	{"op", UNIT_SECOND, 0, 1, AT(op_s), "host time to issue one op, with Python and dispatch; 0: the device's launch"},
	{"micro_batch", UNIT_SECOND, 0, 100, AT(micro_batch_s), "time that each micro-batch adds"},
	{"step", UNIT_SECOND, 0, 100, AT(step_s), "time that each step adds"},
};

static const char *const kernel_names[KERNEL_COUNT] = {[KERNEL_FA1] = "fa1", [KERNEL_FA2] = "fa2", [KERNEL_FA3] = "fa3"};

const char *attention_kernel_name(enum attention_kernel k)
{
	return kernel_names[k];
}

struct stack stack_default(void)
{
	return (struct stack){.elementwise_passes = 1, .attention_kernel = KERNEL_FA2};
}

static enum status read_number(const struct ynode *n, struct stack *s, struct error *e)
{
	const char *names[STACK_NUMBERS], *source;
	const struct stack_number *row = NULL;
	for (size_t i = 0; i < STACK_NUMBERS; i++) {
		names[i] = stack_numbers[i].name;
		if (strcmp(n->key, names[i]) == 0)
			row = &stack_numbers[i];
	}
	if (!row)
		return ynode_error_key(n, e, "%s: unknown number of a stack (nearest: %s)", n->key, suggest_nearest(n->key, names, STACK_NUMBERS));
	if (n->kind != Y_MAP || !ynode_get(n, "value") || !ynode_get(n, "source"))
		return ynode_error(n, e, "%s: expected {value: ..., source: ...}", n->key);
	enum status st = ynode_string(ynode_get(n, "source"), &source, e);
	return st ? st : ynode_quantity(ynode_get(n, "value"), row->unit, row->min, row->max, (double *)(void *)((char *)s + row->offset), e);
}

static enum status read_kernel(const struct ynode *n, struct stack *s, struct error *e)
{
	const char *word;
	enum status st = ynode_string(n, &word, e);
	for (int k = 0; k < KERNEL_COUNT && !st; k++) {
		if (strcmp(word, kernel_names[k]) == 0) {
			s->attention_kernel = (enum attention_kernel)k;
			return ST_OK;
		}
	}
	return st ? st : ynode_error(n, e, "attention_kernel: unknown kernel \"%.40s\" (nearest: %s)", word, suggest_nearest(word, kernel_names, KERNEL_COUNT));
}

static enum status read_habit(const struct ynode *n, struct stack *s, struct error *e)
{
	static const char *const names[] = {"attention_kernel", "recompute_last_gemm"};
	if (strcmp(n->key, names[0]) == 0)
		return read_kernel(n, s, e);
	if (strcmp(n->key, names[1]) == 0)
		return ynode_bool(n, &s->recompute_last_gemm, e);
	return ynode_error_key(n, e, "%s: unknown habit of a stack (nearest: %s)", n->key, suggest_nearest(n->key, names, sizeof names / sizeof names[0]));
}

static enum status read_all(const struct ynode *map, enum status (*read)(const struct ynode *, struct stack *, struct error *), struct stack *s, struct error *e)
{
	enum status st = map && map->kind != Y_MAP ? ynode_error(map, e, "%s: expected a mapping", map->key) : ST_OK;
	for (size_t i = 0; map && i < map->n && !st; i++)
		st = read(map->child[i], s, e);
	return st;
}

enum status stack_read(const struct ynode *numbers, const struct ynode *habits, struct stack *s, struct error *e)
{
	enum status st = read_all(numbers, read_number, s, e);
	return st ? st : read_all(habits, read_habit, s, e);
}
