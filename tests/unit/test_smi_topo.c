/* The reader of `nvidia-smi topo -m`: cases of our own, one for each oddity (tests/smi/NAME.txt with what it must be
 * read as in NAME.expect), and the recordings of real machines where they lie beside the checkout.
 *
 * NAME.expect, a fact a line: `gpus N`, `nics N`, `rows N` (GPU rows present), `word A B W` ("-": not in the dump; a
 * NIC by label or name), `every GPU W`, `numa A N`, `cores A LIST` ("-": none), `name NIC0 NAME`, `vertices PREFIX N`,
 * `links A B N` (direct NVLinks), `remark TEXT` (in one of the remarks), `contradiction` (a remark is one), `refused
 * LINE: TEXT`. */
#include "tests/unit/harness.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/paths.h"
#include "topology/discover/discover.h"
#include "topology/graph/graph.h"
#include "topology/graph/route.h"

static int failures;

static void fail(const char *file, const char *what, const char *got)
{
	fprintf(stderr, "  %s: expected %s, got %s\n", file, what, got);
	failures++;
}

static long entry_by(const struct graph *g, const char *name)
{
	for (size_t i = 0; i < graph_entries(g); i++) {
		const struct vertex *v = &g->vertex.at[graph_entry(g, i)];
		if (strcmp(v->label, name) == 0 || strcmp(v->name, name) == 0)
			return (long)i;
	}
	return -1;
}

static const char *word_of(const struct graph *g, const char *a, const char *b)
{
	long i = entry_by(g, a), k = entry_by(g, b);
	if (i < 0 || k < 0)
		return "(no such entry)";
	static char word[GRAPH_WORD];
	struct error e = {0};
	if (graph_word(g, graph_entry(g, (size_t)i), graph_entry(g, (size_t)k), word, &e))
		return "(a failure)";
	return *word ? word : "-";
}

/* GPU rows that the dump had, by the remark on those that are missing. */
static size_t rows_present(const struct graph *g)
{
	size_t missing = 0, of;
	for (size_t i = 0; i < g->remark.n; i++)
		if (strstr(g->remark.at[i].text, "GPU rows are missing") &&
			sscanf(g->remark.at[i].text, "%zu of %zu", &missing, &of) == 2)
			break;
	return g->gpu.n - missing;
}

static void every(const char *file, const char *line, const struct graph *g, const char *word)
{
	for (size_t i = 0; i < g->gpu.n; i++)
		for (size_t k = 0; k < g->gpu.n; k++) {
			const char *got = g->words[i * graph_entries(g) + k];
			if (i != k && strcmp(got, word))
				fail(file, line, got);
		}
}

static long number_of(const struct graph *g, const char *what, const char *a, const char *b)
{
	if (strcmp(what, "gpus") == 0)
		return (long)g->gpu.n;
	if (strcmp(what, "nics") == 0)
		return (long)g->nic.n;
	if (strcmp(what, "rows") == 0)
		return (long)rows_present(g);
	if (strcmp(what, "numa") == 0)
		return graph_find_label(g, a) < 0 ? -99 : g->vertex.at[graph_find_label(g, a)].numa;
	if (strcmp(what, "links") == 0) {
		const struct link *l = graph_link(g, graph_find_label(g, a), graph_find_label(g, b), LINK_NVLINK);
		return l ? l->width : 0;
	}
	if (strcmp(what, "vertices") == 0) {
		long n = 0;
		for (size_t i = 0; i < g->vertex.n; i++)
			n += strncmp(g->vertex.at[i].label, a, strlen(a)) == 0;
		return n;
	}
	return -100;
}

static bool remarked(const struct graph *g, const char *text)
{
	for (size_t i = 0; i < g->remark.n; i++)
		if (text ? strstr(g->remark.at[i].text, text) != NULL : g->remark.at[i].contradiction)
			return true;
	return false;
}

static void check_fact(const char *file, const char *line, const struct graph *g)
{
	char what[32] = "", a[300] = "", b[300] = "", c[300] = "", got[320];
	int n = sscanf(line, "%31s %299s %299s %299s", what, a, b, c);
	if (strcmp(what, "word") == 0) {
		if (strcmp(word_of(g, a, b), c) || strcmp(word_of(g, b, a), c))
			fail(file, line, word_of(g, a, b));
	} else if (strcmp(what, "every") == 0) {
		every(file, line, g, b);
	} else if (strcmp(what, "cores") == 0 || strcmp(what, "name") == 0) {
		int32_t v = graph_find_label(g, a);
		const char *is = v < 0          ? "(no such entry)"
		                 : *what == 'c' ? g->vertex.at[v].cores
		                                : g->vertex.at[v].name;
		if (strcmp(*is ? is : "-", b))
			fail(file, line, is);
	} else if (strcmp(what, "remark") == 0) {
		if (!remarked(g, line + strlen("remark ")))
			fail(file, line, "no such remark");
	} else if (strcmp(what, "contradiction") == 0) {
		if (!remarked(g, NULL))
			fail(file, line, "none");
	} else {
		long want = strtol(n == 2 ? a : n == 3 ? b : c, NULL, 10), is = number_of(g, what, a, b);
		snprintf(got, sizeof got, "%ld", is);
		if (is != want)
			fail(file, line, got);
	}
}

static enum status read_dump(const char *path, struct graph **g, struct error *e)
{
	char *text;
	size_t len;
	*g = NULL;
	if (file_read(path, 1 << 24, &text, &len, e)) {
		fail(path, "a file", e->text);
		return e->status;
	}
	enum status st = smi_topo_read(text, len, "dump", g, e);
	free(text);
	struct error broken = {0};
	if (!st && topology_check(*g, &broken))
		fail(path, "a graph that keeps the invariants", broken.text);
	if (st && (st != ST_INPUT || strncmp(e->text, "dump:", 5) || strtol(e->text + 5, NULL, 10) < 1 || *g))
		fail(path, "a refusal with its line", e->text);
	return st;
}

static void check_case(const char *path, const char *expected)
{
	struct graph *g;
	struct error e = {0};
	char *facts, *save = NULL;
	size_t len;
	enum status st = read_dump(path, &g, &e);
	struct error missing = {0};
	if (file_read(expected, 1 << 20, &facts, &len, &missing)) {
		fail(expected, "a file", missing.text);
		graph_destroy(g);
		return;
	}
	for (char *line = strtok_r(facts, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		if (strncmp(line, "refused ", 8) == 0) {
			char start[300];
			snprintf(start, sizeof start, "dump:%s", line + 8);
			if (!st || strncmp(e.text, start, strlen(start)))
				fail(path, line, st ? e.text : "a graph");
		} else if (st) {
			fail(path, line, e.text);
			break;
		} else {
			check_fact(path, line, g);
		}
	}
	free(facts);
	graph_destroy(g);
}

static void test_cases(void)
{
	struct dirent **names = NULL;
	int n = scandir("tests/smi", &names, NULL, alphasort), cases = 0;
	for (int i = 0; i < n; i++) {
		char path[600], expected[600];
		size_t len = strlen(names[i]->d_name);
		if (len > 4 && strcmp(names[i]->d_name + len - 4, ".txt") == 0) {
			snprintf(path, sizeof path, "tests/smi/%s", names[i]->d_name);
			snprintf(expected, sizeof expected, "tests/smi/%.*s.expect", (int)(len - 4), names[i]->d_name);
			check_case(path, expected);
			cases++;
		}
		free(names[i]);
	}
	free(names);
	printf("tests/smi: %d cases\n", cases);
	CU_ASSERT_TRUE(cases >= 105);
	CU_ASSERT_EQUAL(failures, 0);
}

/* ---- the recordings ---- */

#define FIELDS 14

/* One line of a CSV file into its fields, in place; the next line. */
static char *csv_line(char *s, char *field[FIELDS])
{
	size_t n = 0;
	for (size_t i = 0; i < FIELDS; i++)
		field[i] = s + strlen(s);
	while (n < FIELDS) {
		char *w = s;
		bool quoted = *s == '"';
		s += quoted;
		field[n++] = w;
		while (*s && (quoted || (*s != ',' && *s != '\n'))) {
			if (quoted && *s == '"') {
				if (s[1] != '"') {
					quoted = false;
					s++;
					continue;
				}
				s++;
			}
			*w++ = *s++;
		}
		char end = *s;
		*w = '\0';
		s += end != '\0';
		if (end != ',')
			break;
	}
	return s;
}

/* The facts among the prose of the column `expected`: "GPU0-GPU1=NV2", "every GPU pair NV12". */
static void check_expected(const char *file, char *expected, const struct graph *g)
{
	char *save = NULL, *every_at = strstr(expected, "every pair ");
	char fact[200], word[16];
	if ((every_at && sscanf(every_at, "every pair %15[A-Z0-9]", word) == 1) ||
		((every_at = strstr(expected, "every GPU pair ")) &&
			sscanf(every_at, "every GPU pair %15[A-Z0-9]", word) == 1)) {
		snprintf(fact, sizeof fact, "every GPU %s", word);
		check_fact(file, fact, g);
	}
	if (strstr(expected, "GPUi-NICi=PIX"))
		for (size_t i = 0; i < g->gpu.n; i++) {
			snprintf(fact, sizeof fact, "word GPU%zu NIC%zu PIX", i, i);
			check_fact(file, fact, g);
		}
	if (strstr(expected, "every GPU-NIC SYS"))
		for (size_t i = 0; i < g->gpu.n * g->nic.n; i++) {
			snprintf(fact, sizeof fact, "word GPU%zu NIC%zu SYS", i / g->nic.n, i % g->nic.n);
			check_fact(file, fact, g);
		}
	for (char *t = strtok_r(expected, " ;,()!", &save); t; t = strtok_r(NULL, " ;,()!", &save)) {
		char a[40], b[40];
		if (sscanf(t, "%39[A-Za-z0-9_]-%39[A-Za-z0-9_]=%15[A-Z0-9]", a, b, word) != 3 || strstr(t, "GPUi"))
			continue;
		if (strcmp(b, "others") == 0)
			snprintf(fact, sizeof fact, "word %s GPU1 %s", a, word);
		else
			snprintf(fact, sizeof fact, "word %s %s %s", a, b, word);
		check_fact(file, fact, g);
	}
}

static void test_recordings(void)
{
	const char *shared = getenv("STEPSIM_SHARED");
	char path[1200], *index, *field[FIELDS], number[40];
	size_t len;
	struct error e = {0};
	int n = 0, read = 0, refused = 0, wrong = 0;
	snprintf(path, sizeof path, "%s/machines/smi/index.csv", shared ? shared : "../shared");
	if (file_read(path, 1 << 22, &index, &len, &e)) {
		printf("recordings: skipped, there is no %s\n", path);
		return;
	}
	for (char *s = csv_line(index, field); *s;) {
		struct graph *g;
		struct error why = {0};
		s = csv_line(s, field);
		if (!field[0][0])
			continue;
		int before = failures;
		bool negative = strstr(field[5], "must be rejected") != NULL;
		snprintf(path, sizeof path, "%s/machines/smi/%s", shared ? shared : "../shared", field[0]);
		enum status st = read_dump(path, &g, &why);
		n++;
		read += !st;
		refused += st && negative;
		if (st || negative) {
			if (!st != !negative)
				fail(field[0], negative ? "a refusal" : "a graph", st ? why.text : "a graph");
		} else {
			snprintf(number, sizeof number, "gpus %s", field[3]);
			check_fact(field[0], number, g);
			snprintf(number, sizeof number, "nics %s", field[4]);
			check_fact(field[0], number, g);
			snprintf(number, sizeof number, "rows %s", field[12]);
			check_fact(field[0], number, g);
			check_expected(field[0], field[5], g);
		}
		wrong += failures > before;
		graph_destroy(g);
	}
	free(index);
	printf("%d recordings: %d read, %d refused as it must; %d wrong\n", n, read, refused, wrong);
	CU_ASSERT_EQUAL(wrong, 0);
	CU_ASSERT_TRUE(n >= 72);
	CU_ASSERT_EQUAL(read + refused, n);
}

UNIT_MAIN("smi_topo", {"own cases", test_cases}, {"recordings", test_recordings})
