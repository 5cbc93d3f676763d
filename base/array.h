/* Arrays whose length the compiler knows. */
#ifndef STEPSIM_BASE_ARRAY_H
#define STEPSIM_BASE_ARRAY_H

/* The number of elements of the array `a`, which must not be a pointer. A constant expression. */
#define COUNT(a) (sizeof(a) / sizeof(a)[0])

#endif
