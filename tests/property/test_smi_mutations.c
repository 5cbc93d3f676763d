/* Random matrices of link words, printed in the many ways in which people paste them, then damaged, fixed seed. Printed
 * alone, a matrix must be read exactly; damaged, every word that the reader gives must be the true one: it may leave
 * words out, or refuse, but never be wrong. Damage is undone by nothing but the text itself: both halves of the matrix
 * are there unless rows are taken out whole. */
#include "tests/property/rounds.h"
#include "tests/unit/harness.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "topology/discover/discover.h"
#include "topology/graph/route.h"

#define MOST 20
#define TEXT 32768
#define ROUNDS 3000

static uint64_t state = 0x9E3779B97F4A7C15u;

static uint32_t below(uint32_t n) /* xorshift64* (Vigna 2016) */
{
	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return (uint32_t)((state * UINT64_C(0x2545f4914f6cdd1d)) >> 33) % n;
}

struct truth {
	size_t n, gpus;
	bool named;
	char key[MOST][24], word[MOST][MOST][8];
};

struct format {
	int gap; /* 0 tabs, 1 blanks to 8 columns, 2 blanks two or more, 3 tab and blanks, 4 two tabs */
	bool cpu, numa, gpu_numa, legend, no_header, glue, wrap, shuffle;
	const char *prefix, *escape;
	const char *newline;
	size_t width;
};

struct text {
	char at[TEXT];
	size_t n;
};

static void put(struct text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void put(struct text *t, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	int n = vsnprintf(t->at + t->n, TEXT - t->n, fmt, args);
	va_end(args);
	t->n = t->n + (size_t)n < TEXT ? t->n + (size_t)n : TEXT - 1;
}

/* GPUs on one NVLink switch, some with links down. */
static void on_switch(struct truth *t)
{
	uint32_t full = below(2) ? 12 : 18, width[MOST];
	for (size_t i = 0; i < t->gpus; i++) {
		width[i] = below(4) ? full : full - below(5);
		for (size_t k = 0; k < i; k++) {
			snprintf(t->word[i][k], 8, "NV%u", width[i] < width[k] ? width[i] : width[k]);
			strcpy(t->word[k][i], t->word[i][k]);
		}
	}
}

static struct truth random_truth(void)
{
	static const char *const far[] = {"PIX", "PXB", "PHB", "NODE", "SYS", "SOC", "PSB"};
	struct truth t = {.gpus = 1 + below(12), .named = below(2)};
	size_t nics = below(7), first = below(6) ? 0 : below(12);
	uint32_t links = below(3) ? 1 + below(18) : 0;
	t.n = t.gpus + nics;
	for (size_t i = 0; i < t.n; i++)
		snprintf(t.key[i], sizeof t.key[i],
			i < t.gpus ? "GPU%zu"
			: t.named  ? "mlx5_%zu"
				   : "NIC%zu",
			i < t.gpus ? i + first : i - t.gpus);
	for (size_t i = 0; i < t.n; i++) {
		strcpy(t.word[i][i], "X");
		for (size_t k = 0; k < i; k++) {
			if (links && i < t.gpus && below(3))
				snprintf(t.word[i][k], 8, "NV%u", below(4) ? links : 1 + below(18));
			else
				strcpy(t.word[i][k], far[below(7)]);
			strcpy(t.word[k][i], t.word[i][k]);
		}
	}
	if (t.gpus > 2 && below(4) == 0)
		on_switch(&t);
	return t;
}

static struct format random_format(void)
{
	static const char *const prefixes[] = {"", "", "", "    ", "# ", "> ", "// ", " * ",
		"notes.txt:", "log/a.txt:# ", "node07: ", "+", "gpu017: ", "GPU1  | ",
		"Nov  3 17:20:01 gpu04 sh[811]: ", "{\"node\":\"gpu3\"} "};
	static const char *const escapes[] = {"", "", "\x1b", "\\u001b", "^["};
	struct format f = {.gap = (int)below(5),
		.cpu = below(2),
		.legend = below(2),
		.glue = below(4) == 0,
		.shuffle = below(6) == 0,
		.no_header = below(12) == 0,
		.wrap = below(5) == 0,
		.prefix = prefixes[below(16)],
		.escape = escapes[below(5)],
		.newline = below(4) ? "\n" : "\r\n",
		.width = 60 + below(60)};
	f.numa = f.cpu && below(2);
	f.gpu_numa = f.numa && below(2);
	if (f.wrap) {
		f.prefix = f.escape = "";
		f.gap = 1;
		f.newline = "\n";
		f.glue = f.no_header = false;
	}
	return f;
}

static void cell(struct text *t, const struct format *f, const char *what, size_t column, bool gap)
{
	static const char *const gaps[] = {"\t", "", "  ", "\t  ", "\t\t"};
	if (f->gap == 1) {
		size_t line = t->n;
		while (line > 0 && t->at[line - 1] != '\n')
			line--;
		while (gap && t->n - line - strlen(f->prefix) < column * 8)
			put(t, " ");
		put(t, "%s", what);
	} else {
		put(t, "%s%s", gap && column ? gaps[f->gap] : "", what);
	}
}

static void affinity(struct text *t, const struct format *f, size_t gpu, size_t column)
{
	char cores[48];
	snprintf(cores, sizeof cores, "%zu-%zu", gpu * 4, gpu * 4 + 3);
	if (f->cpu)
		cell(t, f, cores, column, true);
	if (f->numa)
		cell(t, f, gpu % 2 ? "1" : "0", column + 2, true);
	if (f->gpu_numa)
		cell(t, f, "N/A", column + 4, true);
}

static void print_row(struct text *t, const struct truth *truth, const struct format *f, const size_t *order, size_t i)
{
	put(t, "%s", f->prefix);
	cell(t, f, truth->key[i], 0, true);
	for (size_t k = 0; k < truth->n; k++) {
		bool gap = !(f->glue && k > 0 && i != order[k] && below(10) == 0);
		char x[8];
		snprintf(x, sizeof x, i == order[k] && f->gap != 1 && below(3) ? " X " : "%s",
			truth->word[i][order[k]]);
		cell(t, f, x, k + 1, gap);
	}
	if (i < truth->gpus)
		affinity(t, f, i, truth->n + 1);
	put(t, "%s", f->newline);
}

/* As a terminal of that width shows it and a mouse copies it. */
static void wrap(struct text *t, size_t width)
{
	static struct text out;
	size_t column = 0;
	out.n = 0;
	for (size_t i = 0; i < t->n && out.n + 2 < TEXT; i++) {
		if (t->at[i] == '\n')
			column = 0;
		else if (column++ == width) {
			out.at[out.n++] = '\n';
			column = 1;
		}
		out.at[out.n++] = t->at[i];
	}
	*t = out;
	t->at[t->n] = '\0';
}

static void print_all(struct text *t, const struct truth *truth, const struct format *f)
{
	size_t order[MOST];
	t->n = 0;
	for (size_t i = 0; i < truth->n; i++)
		order[i] = i;
	for (size_t i = truth->gpus; f->shuffle && i > 1; i--) {
		size_t k = below((uint32_t)i), was = order[i - 1];
		order[i - 1] = order[k];
		order[k] = was;
	}
	if (!f->no_header) {
		put(t, "%s", f->prefix);
		if (*f->escape)
			put(t, "%s[4m", f->escape);
		for (size_t k = 0; k < truth->n; k++)
			cell(t, f, truth->key[order[k]], k + 1, true);
		if (f->cpu)
			cell(t, f, "CPU Affinity", truth->n + 1, true);
		if (f->numa)
			cell(t, f, f->gap == 1 ? "  NUMA Affinity" : "NUMA Affinity", truth->n + 2, true);
		if (f->gpu_numa)
			cell(t, f, f->gap == 1 ? "  GPU NUMA ID" : "GPU NUMA ID", truth->n + 4, true);
		if (*f->escape)
			put(t, "%s[0m", f->escape);
		put(t, "%s", f->newline);
	}
	for (size_t i = 0; i < truth->n; i++)
		print_row(t, truth, f, order, i);
	if (f->wrap)
		wrap(t, f->width);
	if (!f->legend)
		return;
	put(t, "\nLegend:\n\n  X    = Self\n  NV#  = Connection traversing a bonded set of # NVLinks\n\nNIC Legend:\n"
	       "\n");
	for (size_t i = truth->gpus; i < truth->n && !truth->named; i++)
		put(t, "  %s: mlx5_%zu\n", truth->key[i], i - truth->gpus + 1);
}

/* ---- damage ---- */

static void cut(struct text *t, size_t at, size_t n)
{
	memmove(t->at + at, t->at + at + n, t->n - at - n + 1);
	t->n -= n;
}

static void insert(struct text *t, size_t at, const char *s, size_t n)
{
	if (t->n + n + 1 >= TEXT)
		return;
	memmove(t->at + at + n, t->at + at, t->n - at + 1);
	memcpy(t->at + at, s, n);
	t->n += n;
}

/* Columns from `width` on away from every line. */
static void cut_right(struct text *t, size_t width)
{
	for (size_t i = 0, column = 0; i < t->n;) {
		if (t->at[i] == '\n') {
			column = 0;
			i++;
		} else if (column++ >= width) {
			cut(t, i, 1);
		} else {
			i++;
		}
	}
}

/* The tab or blanks behind each label away; the label's own number keeps them apart from the cell. */
static void glue_labels(struct text *t)
{
	for (size_t i = 0; i < t->n; i++) {
		bool start = i == 0 || t->at[i - 1] == '\n';
		size_t end = i + strcspn(t->at + i, " \t\r\n"), n = strspn(t->at + end, " \t");
		if (start && end > i && n && below(3))
			cut(t, end, n);
	}
}

static void surplus(struct text *t)
{
	for (size_t i = 0; i < t->n; i++)
		if ((t->at[i] == '\n' || t->at[i] == '\r') && i > 0 && t->at[i - 1] >= '0' && t->at[i - 1] <= '9' &&
			below(3) == 0) {
			insert(t, i, "\t7", 2);
			i += 2;
		}
}

static void damage(struct text *t)
{
	static const char *const words[] = {"SYS", "\tNV12\t", "X", " NODE ", "PI", "#", "\n", "0-7", "\t", "...",
		"12"};
	char copy[512];
	size_t at = below((uint32_t)t->n), start = at, end = at;
	const char *word = words[below(11)];
	while (start > 0 && t->at[start - 1] != '\n')
		start--;
	while (end < t->n && t->at[end] != '\n')
		end++;
	end += end < t->n;
	switch (below(11)) {
	case 0: /* a line away */ cut(t, start, end - start); break;
	case 1: /* a character away */ cut(t, at, 1); break;
	case 2: /* a line twice */
		if (end - start < sizeof copy) {
			memcpy(copy, t->at + start, end - start);
			insert(t, end, copy, end - start);
		}
		break;
	case 3: /* a cell away */
		for (start = at; start > 0 && !strchr(" \t\n", t->at[start - 1]);)
			start--;
		for (end = at; end < t->n && !strchr(" \t\n", t->at[end]);)
			end++;
		cut(t, start, end - start);
		break;
	case 4: /* a line broken */ insert(t, at, "\n", 1); break;
	case 5: insert(t, at, word, strlen(word)); break;
	case 6: cut_right(t, 10 + below(120)); break;
	case 7: glue_labels(t); break;
	case 8: surplus(t); break;
	case 9: /* a sentence before it */ insert(t, 0, "GPU2 is slow on gpu04\n", 22); break;
	default: /* the end away, at a line */
		if (start > 0)
			cut(t, start, t->n - start);
		break;
	}
}

/* ---- what was read against what is true ---- */

static long true_index(const struct truth *truth, const struct vertex *v)
{
	for (size_t i = 0; i < truth->n; i++) {
		bool nic = i >= truth->gpus;
		if (strcmp(nic && truth->named ? v->name : v->label, truth->key[i]) == 0)
			return (long)i;
	}
	return -1;
}

static const char *compare(const struct graph *g, const struct truth *truth, bool whole)
{
	size_t n = graph_entries(g);
	struct error e = {0};
	if (topology_check(g, &e))
		return "the graph breaks an invariant";
	if (whole && (n != truth->n || g->gpu.n != truth->gpus))
		return "another number of devices";
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < n; k++) {
			long a = true_index(truth, &g->vertex.at[graph_entry(g, i)]),
			     b = true_index(truth, &g->vertex.at[graph_entry(g, k)]);
			const char *word = g->words[i * n + k];
			if (a < 0 || b < 0) {
				if (whole)
					return "a device that is not there";
				continue;
			}
			if ((whole || *word) && strcmp(word, truth->word[a][b]))
				return "a wrong word";
			char told[GRAPH_WORD];
			if (graph_word(g, graph_entry(g, i), graph_entry(g, k), told, &e) || strcmp(told, word))
				return "a word that the dump does not have";
		}
	return NULL;
}

static const char *try_text(const struct text *t, const struct truth *truth, bool whole, bool *read)
{
	struct graph *g = NULL;
	struct error e = {0};
	enum status st = smi_topo_read(t->at, t->n, "dump", &g, &e);
	const char *why = NULL;
	*read = !st;
	if (!st)
		why = compare(g, truth, whole);
	else if (st != ST_INPUT || strncmp(e.text, "dump:", 5) || g)
		why = "a refusal without a line";
	else if (whole)
		why = e.text[0] ? "a sound dump refused" : "no message";
	if (why)
		fprintf(stderr, "%s%s%s:\n%.*s\n", why, st ? ": " : "", st ? e.text : "", (int)t->n, t->at);
	graph_destroy(g);
	return why;
}

static void test_formats(void)
{
	static struct text t;
	const int rounds = rounds_of(ROUNDS);
	int wrong = 0;
	for (int i = 0; i < rounds && wrong < 3; i++) {
		struct truth truth = random_truth();
		struct format f = random_format();
		bool read;
		print_all(&t, &truth, &f);
		wrong += try_text(&t, &truth, true, &read) != NULL;
	}
	CU_ASSERT_EQUAL(wrong, 0);
}

static void test_damaged(void)
{
	static struct text t;
	const int rounds = rounds_of(ROUNDS);
	int wrong = 0, read_n = 0;
	for (int i = 0; i < rounds && wrong < 3; i++) {
		struct truth truth = random_truth();
		struct format f = random_format();
		bool read;
		print_all(&t, &truth, &f);
		damage(&t);
		wrong += try_text(&t, &truth, false, &read) != NULL;
		read_n += read;
	}
	printf("damaged: %d of %d read, the others refused\n", read_n, rounds);
	CU_ASSERT_EQUAL(wrong, 0);
	CU_ASSERT_TRUE(read_n > rounds / 5 && read_n < rounds);
}

UNIT_MAIN("smi_mutations", {"formats", test_formats}, {"damaged", test_damaged})
