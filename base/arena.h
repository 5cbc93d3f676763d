/* Arena: many small allocations with one lifetime. Everything allocated belongs to the arena and dies with it. */
#ifndef STEPSIM_BASE_ARENA_H
#define STEPSIM_BASE_ARENA_H

#include <stddef.h>

struct arena;

struct arena *arena_create(void);    /* NULL when out of memory */
void arena_destroy(struct arena *a); /* NULL-safe */

/* Zeroed, aligned to 16 bytes; NULL when out of memory. size 0 gives a valid unique pointer. */
void *arena_alloc(struct arena *a, size_t size);
char *arena_strdup(struct arena *a, const char *text);

#endif
