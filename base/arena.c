#include "base/arena.h"

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Under AddressSanitizer every allocation is a block of its own, so that an overflow is seen instead of landing in its
 * neighbour. */
#ifdef __SANITIZE_ADDRESS__
#define BLOCK_DATA 0u
#else
#define BLOCK_DATA 16384u
#endif
#define ALIGN 16u

struct block {
	struct block *next;
	size_t used, size; /* of the data behind this header */
};

static_assert(sizeof(struct block) <= 2 * ALIGN, "the data starts at 2 * ALIGN behind the block");
#define HEADER (2 * ALIGN)

struct arena {
	struct block *blocks; /* the first is the one being filled */
};

struct arena *arena_create(void) { return calloc(1, sizeof(struct arena)); }

void arena_destroy(struct arena *a)
{
	if (!a)
		return;
	for (struct block *b = a->blocks, *next; b; b = next) {
		next = b->next;
		free(b);
	}
	free(a);
}

static struct block *block_new(size_t size)
{
	struct block *b = calloc(1, HEADER + size);
	if (b)
		b->size = size;
	return b;
}

void *arena_alloc(struct arena *a, size_t size)
{
	if (size > SIZE_MAX / 2)
		return NULL;
	size_t need = size ? (size + ALIGN - 1) / ALIGN * ALIGN : ALIGN;
	struct block *b = a->blocks;
	if (!b || b->size - b->used < need) {
		bool own = need >
		           BLOCK_DATA / 4; /* a large one must not waste the room left in the block being filled */
#ifdef __SANITIZE_ADDRESS__
		need = size ? size : 1; /* exact, so that the byte behind it is poisoned */
#endif
		b = block_new(own ? need : BLOCK_DATA);
		if (!b)
			return NULL;
		if (own && a->blocks) {
			b->next = a->blocks->next;
			a->blocks->next = b;
		} else {
			b->next = a->blocks;
			a->blocks = b;
		}
	}
	void *p = (char *)b + HEADER + b->used;
	b->used += need;
	return p;
}

char *arena_strdup(struct arena *a, const char *text)
{
	size_t size = strlen(text) + 1;
	char *copy = arena_alloc(a, size);
	if (copy)
		memcpy(copy, text, size);
	return copy;
}
