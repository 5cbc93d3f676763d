/* Mutation fuzzer of the reader of `nvidia-smi topo -m`: fuzz_smi SECONDS SEED. Built with the sanitizers, which see what the checks below do not.
 *
 * Each round takes a dump of tests/smi (or nothing), changes it a few times and reads it. A refusal has one line with name and line number and gives no graph; a graph keeps its invariants. A broken promise prints
 * the text and ends with 1. */
#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/paths.h"
#include "topology/discover/discover.h"

#define COUNT(a) (sizeof(a) / sizeof(a)[0])
#define TEXT_MAX 16384
#include "tests/fuzz/fuzz.h"
#define SEEDS_MAX 256

static const char *const pieces[] = {
	"\n", "\t", " ", "GPU", "GPU0", "GPU1", "GPU4294967296", "NIC0", "mlx5_0", "NV12", "NV0", "NV99999", "NODE", "X", "SYS", "PIX", "OK", "CPU Affinity", "NUMA Affinity", "GPU NUMA ID", "N/A", "0-7", "99999999999999999999", "7-0",
	"NIC0: mlx5_1", "Legend:", "X = Self", "\x1b[4m", "\\u001b[0m", "^[[", "\\n", "\\t", "\r\n", "# ", "> ", "|", "\xFF\xFE", "\xC2\xA0", "\xE2\x80", "-", ",", "\"", "GPU0GPU1", "NODENODE", "\n\n\n",
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
	case 1:
		cut(t, where, len);
		break;
	case 2:
		memcpy(copy, t->at + where, len);
		for (size_t i = below(12) + 1; i > 0; i--)
			insert(t, where, copy, len);
		break;
	default:
		insert(t, where, piece, strlen(piece));
		break;
	}
}

static const char *try_text(const struct text *t)
{
	/* exactly as long as the text, so that the sanitizer sees a read behind its end */
	char *exact = malloc(t->n ? t->n : 1);
	if (!exact)
		exit(1);
	memcpy(exact, t->at, t->n);
	struct graph *g = NULL;
	struct error e = {0}, check = {0};
	const char *broken = NULL;
	enum status st = smi_topo_read(exact, t->n, "fuzz.txt", &g, &e);
	if (st) {
		if (g)
			broken = "a refusal gives no graph";
		else if (st != ST_INPUT || strchr(e.text, '\n') || strncmp(e.text, "fuzz.txt:", 9) || strtol(e.text + 9, NULL, 10) < 1)
			broken = "a refusal is one line with a name and a line number";
	} else if (!g || e.status || topology_check(g, &check)) {
		broken = "a graph keeps its invariants";
	} else if (!g->gpu.n || !g->words) {
		broken = "a graph has GPUs and their words";
	}
	if (broken)
		fprintf(stderr, "fuzz_smi: broken promise: %s: %s%s\n", broken, e.text, check.text);
	graph_destroy(g);
	free(exact);
	return broken;
}

static void load_seeds(void)
{
	struct dirent **names = NULL;
	int n = scandir("tests/smi", &names, NULL, alphasort);
	for (int i = 0; i < n; i++) {
		char path[600];
		size_t len, name = strlen(names[i]->d_name);
		struct error e = {0};
		snprintf(path, sizeof path, "tests/smi/%s", names[i]->d_name);
		if (name > 4 && strcmp(names[i]->d_name + name - 4, ".txt") == 0 && n_seeds < SEEDS_MAX && !file_read(path, TEXT_MAX, &seeds[n_seeds], &len, &e))
			n_seeds++;
		free(names[i]);
	}
	free(names);
}

int main(int argc, char **argv)
{
	static struct text t;
	double seconds = argc > 1 ? strtod(argv[1], NULL) : 10;
	unsigned long long seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1, rounds = 0;
	int code = 0;
	random_state = seed;
	load_seeds();
	double end_s = clock_s() + seconds;
	do {
		const char *start = n_seeds ? seeds[below(n_seeds)] : "";
		t.n = below(50) ? strlen(start) : 0;
		memcpy(t.at, start, t.n);
		for (size_t i = below(10); i > 0; i--)
			mutate(&t);
		rounds++;
		if (try_text(&t)) {
			fprintf(stderr, "fuzz_smi: round %llu of seed %llu\n", rounds, seed);
			fwrite(t.at, 1, t.n, stderr);
			code = 1;
		}
	} while (!code && clock_s() < end_s);
	for (size_t i = 0; i < n_seeds; i++)
		free(seeds[i]);
	if (!code)
		printf("fuzz_smi: %llu texts, seed %llu: all promises held\n", rounds, seed);
	return code;
}
