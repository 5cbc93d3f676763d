/* The process's heap (malloc), set once at the start of a program that builds step programs. */
#ifndef STEPSIM_BASE_HEAP_H
#define STEPSIM_BASE_HEAP_H

/* Lets malloc keep freed memory for the next program in place of giving it back to the system. Does nothing where the C
 * library is not glibc. */
void heap_keep_freed(void);

#endif
