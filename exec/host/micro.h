/* exec/micro.h's kernels on the cores of one rank. */
#ifndef STEPSIM_EXEC_HOST_MICRO_H
#define STEPSIM_EXEC_HOST_MICRO_H

#include "exec/micro.h"

/* On `cores` threads with the caller's own, which must not change; an arena of `most_B`, or of what memory is left to
 * one of `ranks` ranks of this host. */
enum status micro_host_create(int64_t cores, int64_t ranks, uint64_t most_B, struct micro *out, struct error *e);

/* ---- kernels_micro.c: one thread's part ---- */

void micro_poly_part(const float *a, float *b, int64_t n, int64_t k);
float micro_read_part(const float *x, int64_t n); /* a sum, so that nothing is left out */
void micro_copy_part(const float *x, float *y, int64_t n);
void micro_triad_part(const float *x, const float *y, float *z, int64_t n);
uint64_t micro_chase_part(const char *lines, uint64_t at, int64_t steps); /* from `at` bytes on; where it ends */

#define MICRO_LINE_B 64

#endif
