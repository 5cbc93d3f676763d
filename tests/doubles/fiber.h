/* Contexts with stacks of their own that take turns on one thread of the process. swapcontext asks the kernel for the
 * signal mask at every turn, which is most of what a kernel's twin costs: on x86-64, turns are taken without. */
#ifndef STEPSIM_TESTS_DOUBLES_FIBER_H
#define STEPSIM_TESTS_DOUBLES_FIBER_H

#include <stddef.h>
#include <stdint.h>

#if defined(__x86_64__)

/* A context that waits: its stack pointer, above which lie the registers that a call preserves (System V ABI, 3.2.1)
 * and where it goes on. */
struct fiber_context {
	void *stack_pointer;
};

/* Leaves into `from`, goes on in `to`. */
extern "C" void fiber_switch(struct fiber_context *from, const struct fiber_context *to);
asm(".pushsection .text\n"
    ".type fiber_switch, @function\n"
    "fiber_switch:\n"
    "	pushq %rbp\n	pushq %rbx\n	pushq %r12\n"
    "	pushq %r13\n	pushq %r14\n	pushq %r15\n"
    "	movq %rsp, (%rdi)\n"
    "	movq (%rsi), %rsp\n"
    "	popq %r15\n	popq %r14\n	popq %r13\n	popq %r12\n	popq %rbx\n	popq %rbp\n"
    "	ret\n"
    ".size fiber_switch, . - fiber_switch\n"
    ".popsection\n");

/* The first switch into `f` calls main, which must not return. */
static inline void fiber_prepare(struct fiber_context *f, char *stack, size_t stack_B, void (*main)(void))
{
	uintptr_t *top = (uintptr_t *)(void *)(stack + stack_B);
	*--top = 0; /* where main would return to; main begins as behind a call, 8 bytes off a multiple of 16 */
	*--top = (uintptr_t)main;
	for (int i = 0; i < 6; i++)
		*--top = 0;
	f->stack_pointer = top;
}

#else

#include <ucontext.h>

struct fiber_context {
	ucontext_t context;
};

static inline void fiber_switch(struct fiber_context *from, const struct fiber_context *to)
{
	swapcontext(&from->context, &to->context);
}

static inline void fiber_prepare(struct fiber_context *f, char *stack, size_t stack_B, void (*main)(void))
{
	getcontext(&f->context);
	f->context.uc_stack.ss_sp = stack;
	f->context.uc_stack.ss_size = stack_B;
	f->context.uc_link = NULL;
	makecontext(&f->context, main, 0);
}

#endif
#endif
