/* Shared by the parts of the reader of `nvidia-smi topo -m`: the plain text, the matrix in it, and the link graph that
 * explains the matrix. Private to topology/discover/smi_topo*.c.
 *
 * The reader is right or refuses. A cell counts only where the row has exactly as many link words as the matrix has
 * columns, the X of a row stands in the row's own column and both halves of the matrix agree; where an accident of
 * copying (a wrap, glued cells) can be undone in two ways that differ, nothing is taken.
 */
#ifndef STEPSIM_TOPOLOGY_DISCOVER_SMI_TOPO_H
#define STEPSIM_TOPOLOGY_DISCOVER_SMI_TOPO_H

#include "topology/graph/graph.h"

#define SMI_ENTRIES 128 /* GPUs and NICs of one host, at most */
#define SMI_NOTES 24

struct smi_line {
	char *text;
	int number; /* in the file, from 1 */
	bool row;   /* it looked like one before a prefix was taken off */
};

/* Lines without escape codes, quotes, table bars and comment marks; tabs stay tabs. */
struct smi_text {
	char *buffer;
	VEC(struct smi_line) line;
};
enum status smi_text_clean(const char *text, size_t len, struct smi_text *out, struct error *e);
void smi_text_free(struct smi_text *t);

struct smi_entry {
	char key[GRAPH_NAME]; /* as rows and columns call it: "GPU0", "NIC3", "mlx5_0" */
	char name[GRAPH_NAME];
	bool nic, named; /* named: the key is the device's name, not "NIC<number>" */
	int32_t number;
	int row; /* line of its row, 0 where the row is missing */
	int32_t numa;
	char cores[GRAPH_CORES];
};

struct smi_matrix {
	int line;  /* of the header */
	bool peer; /* the matrix of `topo -p2p`: only `line` is filled */
	size_t n, n_gpus;
	struct smi_entry entry[SMI_ENTRIES]; /* GPUs by number, then NICs by number */
	char word[SMI_ENTRIES][SMI_ENTRIES][GRAPH_WORD];
	size_t n_notes;
	struct remark note[SMI_NOTES];
};

/* A piece of a line between blanks and tabs. */
struct smi_token {
	const char *at;
	size_t len;
};
bool smi_token_next(const char **from, struct smi_token *t);

enum smi_label { SMI_NO_LABEL, SMI_GPU, SMI_NIC, SMI_NAMED /* "mlx5_0" */ };
/* Returns the device that the token names, without a prefix that a copy added ("file:GPU0"). `key` is as in struct
 * smi_entry. */
enum smi_label smi_label_of(struct smi_token t, char key[GRAPH_NAME], int32_t *number);
/* The same at the start of a text, for labels glued together: the length taken, 0 for none; only GPU0, NIC0 and mlx5_0
 * can be told apart so. */
size_t smi_label_prefix(const char *s, size_t len);

/* The link word at `s` in capitals, and its length; 0: none. */
size_t smi_word_at(const char *s, size_t len, char word[GRAPH_WORD]);
bool smi_all_words(struct smi_token t); /* one link word, or several glued together */
bool smi_peer_word(struct smi_token t); /* "OK", "NS", ... of `topo -p2p` */

/* Affinity columns, in the order of the header. */
enum smi_tail { SMI_CPU_AFFINITY, SMI_NUMA_AFFINITY, SMI_GPU_NUMA_ID, SMI_TAILS };
struct smi_columns {
	size_t n, n_tails;
	char key[SMI_ENTRIES][GRAPH_NAME];
	enum smi_tail tail[SMI_TAILS];
	bool odd; /* something else stands behind them */
};

bool smi_is_row(const char *line); /* a label, then a link word */

/* The columns that a header line names; false when it is no header. Keeps no pointers. */
bool smi_columns_of(const char *line, struct smi_columns *c);

/* Cores and NUMA node from what stands behind the cells of a row. True when what is there could be told apart (nothing
 * there: true). *list: the NUMA affinity was a list; *cut: the list of cores was longer than GRAPH_CORES. */
bool smi_tail_read(const char *text, const struct smi_columns *c, char cores[GRAPH_CORES], int32_t *numa, bool *list,
	bool *cut);
bool smi_tail_odd(const char *text, const struct smi_columns *c); /* more stands there than the columns ask for */

/* The matrix whose header is line `at`, or the one without any header in the whole text (at = lines). ST_OK with *m
 * NULL: none stands there. *next: the line to go on with. */
enum status smi_matrix_read(const struct smi_text *t, size_t at, const char *name, struct smi_matrix **m, size_t *next,
	struct error *e);
void smi_note(struct smi_matrix *m, bool contradiction, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* The link graph of the words. */
enum status smi_graph(const struct smi_matrix *m, struct graph **out, struct error *e);

#endif
