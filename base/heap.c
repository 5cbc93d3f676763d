#include "base/heap.h"

#include <malloc.h>

/* Programs of a few MiB are built and freed in turn. With its usual thresholds glibc gives their pages back each time,
 * and the system clears and maps them again: up to a quarter of a search's CPU time. Blocks beyond block_B, which only
 * long programs have, still go back at once; up to top_B stay at the top of the heap. */
void heap_keep_freed(void)
{
#ifdef M_TRIM_THRESHOLD
	static const int block_B = 64 << 20, top_B = 256 << 20;
	mallopt(M_MMAP_THRESHOLD, block_B);
	mallopt(M_TRIM_THRESHOLD, top_B);
#endif
}
