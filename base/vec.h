/* A growable array: `struct { T *at; size_t n, cap; }`, declared with VEC(T). Elements move when it grows: keep
 * indices, not pointers. */
#ifndef STEPSIM_BASE_VEC_H
#define STEPSIM_BASE_VEC_H

#include <stdbool.h>
#include <stddef.h>

#define VEC(T) \
	struct { \
		T *at; \
		size_t n; \
		size_t cap; \
	}

/* Makes room for `more` further elements of `elem_size`, and at least doubles what there is: no more than that. Returns
 * false when out of memory (the vector is then unchanged). */
bool vec_reserve_(void **at, size_t *cap, size_t n, size_t more, size_t elem_size);

#define vec_reserve(v, more) \
	((more) <= (v)->cap - (v)->n || vec_reserve_((void **)&(v)->at, &(v)->cap, (v)->n, (more), sizeof *(v)->at))

/* Appends a copy of `value`; evaluates to false when out of memory. */
#define vec_push(v, value) (vec_reserve((v), 1) && ((v)->at[(v)->n++] = (value), true))

void vec_free_(void *at);
#define vec_free(v) (vec_free_((v)->at), (v)->at = NULL, (v)->n = (v)->cap = 0)

#endif
