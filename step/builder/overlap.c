/* Exchanges of experts behind another micro-batch's compute (parallel.expert_overlap), as Megatron-Core's
 * --overlap-moe-expert-parallel-comm has it (megatron/core/pipeline_parallel/combined_1f1b.py): a forward action and
 * the backward action behind it are built together. At each exchange they take turns, so that what stands behind an
 * exchange in the order of compute is the other's work up to its next exchange.
 *
 * Each of the two runs the builder's own functions on a stack of its own. What differs between them is the builder's
 * position; all else, the derived dependencies too, follows the order in which ops are appended. */
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include "step/builder/build.h"

#define STACK_B ((size_t)512 << 10)

struct builder_position {
	enum phase phase;
	int16_t micro;
	int32_t layer, chunk;
	bool recomputing;
	struct stage_part part;
	struct flight *now;
	struct acts *acts_now;
	int32_t lora_grad[LORA_PRODUCTS];
	struct unit_uses units;
};

struct turn {
	ucontext_t context;
	void *stack;
	const struct action *action;
	struct builder_position at;
	bool done;
};

struct build_pair {
	ucontext_t caller;
	struct turn turn[2];
	int running; /* index of a turn */
	build_action_fn *run;
};

static struct builder_position leave(const struct builder *b)
{
	struct builder_position p = {b->phase, b->micro, b->layer, b->chunk, b->recomputing, b->part, b->now,
		b->acts_now, {0}, b->units};
	memcpy(p.lora_grad, b->lora_grad, sizeof p.lora_grad);
	return p;
}

static void enter(struct builder *b, const struct builder_position *p)
{
	b->phase = p->phase;
	b->micro = p->micro;
	b->layer = p->layer;
	b->chunk = p->chunk;
	b->recomputing = p->recomputing;
	b->part = p->part;
	b->now = p->now;
	b->acts_now = p->acts_now;
	b->units = p->units;
	memcpy(b->lora_grad, p->lora_grad, sizeof b->lora_grad);
}

/* makecontext passes ints alone: the pointer comes in two. */
static void begin(unsigned high, unsigned low)
{
	struct builder *b = (struct builder *)(((uintptr_t)high << 32) | low);
	struct turn *t = &b->pair->turn[b->pair->running];
	enter(b, &t->at);
	b->pair->run(b, t->action);
	free(b->units.at);
	t->done = true;
} /* and on in the caller */

void build_take_turns(struct builder *b)
{
	struct build_pair *p = b->pair;
	if (!p || p->turn[1 - p->running].done)
		return;
	struct turn *t = &p->turn[p->running];
	t->at = leave(b);
	swapcontext(&t->context, &p->caller);
	enter(b, &t->at);
}

static bool prepare(struct builder *b, struct build_pair *p, int i, const struct action *a)
{
	struct turn *t = &p->turn[i];
	t->action = a;
	t->at = leave(b);
	t->at.units = (struct unit_uses){0};
	t->stack = malloc(STACK_B);
	if (!t->stack || getcontext(&t->context))
		return false;
	t->context.uc_stack.ss_sp = t->stack;
	t->context.uc_stack.ss_size = STACK_B;
	t->context.uc_link = &p->caller;
	makecontext(&t->context, (void (*)(void))begin, 2, (unsigned)((uintptr_t)b >> 32), (unsigned)(uintptr_t)b);
	return true;
}

void build_together(struct builder *b, const struct action *forward, const struct action *backward,
	build_action_fn *run)
{
	struct build_pair p = {.run = run};
	const struct builder_position before = leave(b);
	if (prepare(b, &p, 0, forward) && prepare(b, &p, 1, backward)) {
		b->pair = &p;
		for (int i = 0; !p.turn[0].done || !p.turn[1].done; i = 1 - i) {
			p.running = i;
			if (!p.turn[i].done)
				swapcontext(&p.caller, &p.turn[i].context);
		}
		b->pair = NULL;
	} else {
		build_nomem(b, "two actions that are built together");
	}
	enter(b, &before);
	free(p.turn[0].stack);
	free(p.turn[1].stack);
}
