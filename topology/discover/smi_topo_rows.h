/* The rows of a matrix: which lines they are, what a wrap put onto lines of its own, and their cells. Private to
 * topology/discover/smi_topo_matrix.c and smi_topo_rows.c. */
#ifndef STEPSIM_TOPOLOGY_DISCOVER_SMI_TOPO_ROWS_H
#define STEPSIM_TOPOLOGY_DISCOVER_SMI_TOPO_ROWS_H

#include "topology/discover/smi_topo.h"

#define SMI_PIECES 7 /* lines that one row or header can be wrapped onto, the first not counted */
#define SMI_ROW_TEXT 8192

/* A row before its cells are told apart: the text behind its label, and what a wrap put onto lines of its own. */
struct smi_raw {
	char key[GRAPH_NAME];
	int32_t number;
	enum smi_label kind;
	size_t line, n_pieces;
	const char *rest, *piece[SMI_PIECES];
	bool prefixed; /* something stands before the label */
};

struct smi_cells {
	char word[SMI_ENTRIES][GRAPH_WORD];
	const char *tail;
	char why[200];
	bool peer, few; /* few: only cells are missing at the end, or the last one is cut */
};

/* One way to read the matrix below a header. */
struct smi_reading {
	const struct smi_text *t;
	const char *name;
	struct smi_columns *c, *other; /* other: scratch */
	struct smi_matrix *m;
	int32_t column[SMI_ENTRIES]; /* entry of each column */
	struct smi_raw *raw;
	size_t n_raw, next, cores_cut, lists, odd_tails;
	struct smi_cells cells, try; /* try: scratch */
	char text[SMI_ROW_TEXT], best[SMI_ROW_TEXT];
};

bool smi_blank(const char *line);

/* Whether a line is a row: a label, then a link word. Names of NICs count where the header has them (c NULL: only
 * mlx5_0 and the like). */
bool smi_row(const char *line, const struct smi_columns *c, struct smi_raw *r);

/* Puts pieces behind `first`; bit i of `direct`: piece i goes on within a word. *cost: how often that ignores a blank.
 * False when it is too long. */
bool smi_put_together(char out[SMI_ROW_TEXT], const char *first, const char *const *piece, size_t n, unsigned direct,
	int *cost);

/* The rows below the header, until a legend, another header, or text behind a blank line. */
void smi_rows_gather(struct smi_reading *r, size_t from);

/* The cells of a row into r->cells, over every way in which its pieces can belong together: the one that takes the
 * least liberty, if it is the only one. */
bool smi_row_cells(struct smi_reading *r, const struct smi_raw *raw);

/* Affinity in every way in which the pieces can belong together; unknown unless all that can be told are the same. */
void smi_row_affinity(struct smi_reading *r, const struct smi_raw *raw, struct smi_entry *entry);

#endif
