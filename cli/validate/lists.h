/* The words of published tables, as data: configs/words. Private to `stepsim validate`. */
#ifndef STEPSIM_CLI_VALIDATE_LISTS_H
#define STEPSIM_CLI_VALIDATE_LISTS_H

#include "base/status.h"
#include "base/vec.h"
#include "cli/validate/validate.h"

/* A word, and what it means. Borrowed from the lists. */
struct word {
	const char *name;
	struct meaning means;
};
typedef VEC(struct word) word_vec;

/* The words of one column, of configs/words/cells.yaml. */
struct column_words {
	const char *column, *blank; /* what a blank cell means; NULL: the framework's habit */
	bool goes_on;               /* a cell may say more behind the word: "AdamW, fused" */
	word_vec word;              /* in the order of the file: the first of a meaning stands for it in messages */
};

/* A generation of InfiniBand, and the rate of its four lanes. */
struct generation {
	const char *name;
	double Gbps;
};

struct word_lists {
	VEC(struct column_words) column;
	word_vec fabric; /* means: a file in configs/fabrics */
	VEC(struct generation) generation;
	word_vec machine; /* means: a file in configs/systems, or a system line */
	word_vec gpu;     /* of gpu and gpu_variant together; means: a file in configs/gpus */
};

/* Returns the lists, which are read once and kept until the program ends. ST_INPUT with position: a file that is not
 * as the others of configs/words. */
enum status word_lists_load(const struct word_lists **out, struct error *e);

/* Returns what stands behind a count of GPUs or hosts: "H100" of "8xH100"; the cell itself without one. */
const char *pass_leading_count(const char *cell);

/* Returns the word that is the whole cell but for what stands in brackets, and for a count before it ("8x p5"); NULL:
 * there is none. */
const struct word *word_of_cell(const word_vec *all, const char *cell);

#endif
