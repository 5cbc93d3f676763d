#include "base/heap.h"

#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)
#define BLOCK_B (64 * MIB)
#define TOP_B (1024 * MIB)
#define ROOM_B (960 * MIB) /* below TOP_B, or malloc would give it back */
#define HUGE_B (2 * MIB)   /* a huge page of x86-64, and of most others */

/* The first pages of a program of some ten MiB cost as much as building it: the system maps and clears each by itself.
 * Huge pages take a tenth of that. They are asked for where the heap will grow: it takes none before it needs them. */
static void ask_for_huge_pages(void)
{
#if defined(MADV_HUGEPAGE) && defined(M_TOP_PAD)
	mallopt(M_TOP_PAD, (int)ROOM_B);
	char *first = malloc(HUGE_B), *top = sbrk(0);
	if (first && first < top) {
		char *from = first + (HUGE_B - (uintptr_t)first % HUGE_B) % HUGE_B;
		madvise(from, (size_t)(top - from) / HUGE_B * HUGE_B, MADV_HUGEPAGE);
	}
	mallopt(M_TOP_PAD, (int)MIB);
	free(first);
#endif
}

/* Programs are built and freed in turn: of a few MiB while a search times plans, of some hundred for those that it
 * shows. With its usual thresholds glibc gives their pages back each time, and the system clears and maps them again:
 * up to a quarter of a search's CPU time. Blocks beyond BLOCK_B, which only long programs have, still go back at once;
 * up to TOP_B stay at the top of the heap. */
void heap_keep_freed(void)
{
#ifdef M_TRIM_THRESHOLD
	mallopt(M_MMAP_THRESHOLD, (int)BLOCK_B);
	mallopt(M_TRIM_THRESHOLD, (int)TOP_B);
	ask_for_huge_pages();
#endif
}
