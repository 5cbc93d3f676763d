/* Mutation fuzzer of the reader of `nvidia-smi topo -m`: fuzz_smi SECONDS SEED. Built with the sanitizers, which see
 * what the checks below do not.
 *
 * Each round takes a dump of tests/smi (or nothing), changes it a few times and reads it. A refusal has one line with
 * name and line number and gives no graph; a graph keeps its invariants. A broken promise prints the text and ends
 * with 1. */
#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/paths.h"
#include "topology/discover/discover.h"

#define TEXT_MAX 16384
#include "tests/fuzz/fuzz.h"
#define SEEDS_MAX 256

static const char *const pieces[] = {
	"\n",
	"\t",
	" ",
	"GPU",
	"GPU0",
	"GPU1",
	"GPU4294967296",
	"NIC0",
	"mlx5_0",
	"NV12",
	"NV0",
	"NV99999",
	"NODE",
	"X",
	"SYS",
	"PIX",
	"OK",
	"CPU Affinity",
	"NUMA Affinity",
	"GPU NUMA ID",
	"N/A",
	"0-7",
	"99999999999999999999",
	"7-0",
	"NIC0: mlx5_1",
	"Legend:",
	"X = Self",
	"\x1b[4m",
	"\\u001b[0m",
	"^[[",
	"\\n",
	"\\t",
	"\r\n",
	"# ",
	"> ",
	"|",
	"\xFF\xFE",
	"\xC2\xA0",
	"\xE2\x80",
	"-",
	",",
	"\"",
	"GPU0GPU1",
	"NODENODE",
	"\n\n\n",
};

static char *seeds[SEEDS_MAX];
static size_t n_seeds;
static void mutate(struct text *t)
{
	size_t where = below(t->n + 1), rest = t->n - where;
	char copy[200];
	size_t len = below(rest < sizeof copy ? rest + 1 : sizeof copy);
	const char *piece = pieces[below(COUNT(pieces))];

	switch (below(5)) {
	case 0:
		if (rest)
			t->at[where] = (char)below(256);
		break;
	case 1: cut(t, where, len); break;
	case 2:
		memcpy(copy, t->at + where, len);
		for (size_t i = below(12) + 1; i > 0; i--)
			insert(t, where, copy, len);
		break;
	default: insert(t, where, piece, strlen(piece)); break;
	}
}

static void try_text(const struct text *t)
{
	/* exactly as long as the text, so that the sanitizer sees a read behind its end */
	char *exact = malloc(t->n ? t->n : 1);
	if (!exact)
		exit(1);
	memcpy(exact, t->at, t->n);
	struct graph *g = NULL;
	struct error e = {0}, unsound = {0};
	if (smi_topo_read(exact, t->n, "fuzz.txt", &g, &e)) {
		check(!g, "a refusal gives no graph");
		check(e.status == ST_INPUT && !strchr(e.text, '\n') && strncmp(e.text, "fuzz.txt:", 9) == 0 &&
				strtol(e.text + 9, NULL, 10) >= 1,
			"a refusal is one line with a name and a line number");
	} else {
		check(g && !e.status && !topology_check(g, &unsound), "a graph keeps its invariants");
		check(!g || (g->gpu.n && g->words), "a graph has GPUs and their words");
	}
	if (broken)
		fprintf(stderr, "%s%s\n", e.text, unsound.text);
	graph_destroy(g);
	free(exact);
}

static void load_seeds(void)
{
	struct dirent **names = NULL;
	if ((seeds[0] = calloc(1, 1))) /* nothing at all */
		n_seeds = 1;
	int n = scandir("tests/smi", &names, NULL, alphasort);
	for (int i = 0; i < n; i++) {
		char path[600];
		size_t len, name = strlen(names[i]->d_name);
		struct error e = {0};
		snprintf(path, sizeof path, "tests/smi/%s", names[i]->d_name);
		if (name > 4 && strcmp(names[i]->d_name + name - 4, ".txt") == 0 && n_seeds < SEEDS_MAX &&
			!file_read(path, TEXT_MAX, &seeds[n_seeds], &len, &e))
			n_seeds++;
		free(names[i]);
	}
	free(names);
}

FUZZ_ONE(try_text)

int main(int argc, char **argv)
{
	load_seeds();
	int code = n_seeds < 2
	                   ? 1
	                   : fuzz_texts("fuzz_smi", (const char *const *)seeds, n_seeds, mutate, try_text, argc, argv);
	for (size_t i = 0; i < n_seeds; i++)
		free(seeds[i]);
	return code;
}
