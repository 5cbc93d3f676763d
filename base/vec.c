#include "base/vec.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define LEAST 8 /* elements */

bool vec_reserve_(void **at, size_t *cap, size_t n, size_t more, size_t elem_size)
{
	if (more > SIZE_MAX - n)
		return false;
	const size_t need = n + more;
	if (need <= *cap)
		return true;
	/* Twice as much, so that appending one by one copies each element a few times. What is asked for beyond that is
	 * all that there will be. */
	const size_t twice = *cap <= SIZE_MAX / 2 ? 2 * *cap : need, least = twice < LEAST ? LEAST : twice,
		     grown = need < least ? least : need;
	if (grown > SIZE_MAX / elem_size)
		return false;
	/* `at` points at a T *, not at a void *: only memcpy may read and write it without breaking the aliasing rule.
	 */
	void *old;
	memcpy(&old, at, sizeof old);
	void *moved = realloc(old, grown * elem_size);
	if (!moved)
		return false;
	memcpy(at, &moved, sizeof moved);
	*cap = grown;
	return true;
}

void vec_free_(void *at) { free(at); }
