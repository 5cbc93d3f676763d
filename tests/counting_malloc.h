/* An allocator of the process's own, over libc's: it counts the blocks that are allocated, and an allocation fails when
 * fails(), which the file that includes this defines, says so. */
#ifndef STEPSIM_TESTS_COUNTING_MALLOC_H
#define STEPSIM_TESTS_COUNTING_MALLOC_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

static atomic_long live; /* blocks */
static bool fails(void); /* true: sets errno */

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *p, size_t size);
extern void __libc_free(void *p);

static void *counted(void *p)
{
	if (p)
		atomic_fetch_add(&live, 1);
	return p;
}

void *malloc(size_t size) { return fails() ? NULL : counted(__libc_malloc(size)); }

void *calloc(size_t n, size_t size) { return fails() ? NULL : counted(__libc_calloc(n, size)); }

void *realloc(void *p, size_t size)
{
	if (fails())
		return NULL;
	void *moved = __libc_realloc(p, size);
	return p ? moved : counted(moved);
}

void free(void *p)
{
	if (p)
		atomic_fetch_sub(&live, 1);
	__libc_free(p);
}

#endif
