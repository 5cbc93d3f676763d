/* What adafactor knows of a bucket's tensors (Shazeer and Stern 2018, arXiv:1804.04235): where each lies in a rank's
 * part, and where its sums lie in the vectors that the ranks exchange.
 *
 * A parameter is a tensor as it is stored: queries, keys and values together, a gate and its up rows; each expert's is
 * one by itself. Its factors are of the whole matrix, however it is cut. So row and column sums are added up over
 * the ranks that cut a bucket. Over the tensor group, column sums are added up where rows are cut, row sums where
 * columns are; those stand first in `sums`, and cut tensors first in `norms`.
 */
#ifndef STEPSIM_STEP_FACTORED_H
#define STEPSIM_STEP_FACTORED_H

#include "step/program.h"

/* One tensor, on one rank. The executor stores it as the argument `bounds` of adafactor's ops. */
struct factored_tensor {
	int64_t begin, n;               /* elements of the rank's part, n of them */
	int64_t from;                   /* of the tensor's part on this tensor rank, where they begin */
	int64_t rows, cols;             /* of that part; cols 1: a vector, which is not factored */
	int64_t all_rows, all_cols;     /* of the whole matrix */
	int64_t elements;               /* of the whole tensor */
	int64_t at_row, at_col, at_sum; /* in sums and factors: rows, columns, the tensor's own number */
	int64_t at_vector;              /* of a vector: where its n elements begin in v */
};

struct factored_counts {
	int64_t tensors, cut_tensors; /* cut: by the tensor group */
	int64_t sums, cut_sums;
	int64_t vectors; /* elements, at most, of a rank's part that are of no matrix */
};

/* Counts the tensors of a bucket. */
struct factored_counts factored_counts_of(const struct role *r, const struct mesh *m, int32_t bucket);
/* Returns tensor i, 0 <= i < counts.tensors, for a rank's part that begins at that element of the bucket. */
struct factored_tensor factored_tensor(const struct role *r, const struct mesh *m, int32_t bucket, uint64_t part_begin,
	int64_t i);

#endif
