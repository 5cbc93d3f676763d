/* Shared by the fuzzers of the XML readers: texts of tests/xml as seeds, mutations of XML's pieces, and the promises of
 * every reader in discover.h. Run from the root of the repository. */
#ifndef STEPSIM_TESTS_FUZZ_MUTATE_XML_H
#define STEPSIM_TESTS_FUZZ_MUTATE_XML_H

#include <glob.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/paths.h"
#include "topology/discover/discover.h"

#define TEXT_MAX 65536
#include "tests/fuzz/fuzz.h"
#define SEEDS_MAX 32

typedef enum status (*xml_reader)(const char *text, size_t len, const char *name, struct graph **out, struct error *e);

static struct text seeds[SEEDS_MAX], now;
static size_t seed_count;
/* The next place of `c` at or behind `from`, or the end. */
static size_t next(const struct text *t, size_t from, char c)
{
	const char *found = from < t->n ? memchr(t->at + from, c, t->n - from) : NULL;
	return found ? (size_t)(found - t->at) : t->n;
}

/* Bytes break XML, so most changes keep it: other attribute values, elements left out, doubled or moved from another
 * file. */
static void mutate(struct text *t)
{
	static const char *const values[] = {"", "0", "1", "-1", "2", "16", "255", "65536", "99999999999999999999",
		"0x068000", "0x030200", "0x020000", "0x060400", "0x0600", "fffffff:ff:ff.0", "0000:01:00.0",
		"0000:05:00.0", "ffffffff,ffffffff", "0x00000003", "0x0", "0xf...f", "0000:[00-ff]", "0-1", "1-1",
		"0302 [10de:1db5] [0000:0000] 00 00", "1e300", "nan", "PCIDev", "OSDev", "Bridge", "NUMANode",
		"Package", "PU", "Group", "nvml0", "rsmi1"};
	static const char *const pieces[] = {"<", ">", "/>", "\"", "&amp;", "&#0;", "<!--", "]]>", "<gpu dev=\"0\"/>",
		"<net name=\"a\"/>", "<pci busid=\"0000:77:00.0\">", "</pci>",
		"<nvlink target=\"0000:01:00.0\" count=\"3\" tclass=\"0x030200\"/>", "\xff"};
	size_t where = below(t->n + 1), open = next(t, where, '<'), close = next(t, open, '>'),
	       quote = next(t, where, '"'), end = next(t, quote + 1, '"');
	const struct text *other = &seeds[below(seed_count)];
	switch (below(8)) {
	case 0: /* any byte */
		if (where < t->n)
			t->at[where] = (char)below(256);
		break;
	case 1:
	case 2: /* another value */
		if (end < t->n) {
			const char *v = values[below(COUNT(values))];
			cut(t, quote + 1, end - quote - 1);
			insert(t, quote + 1, v, strlen(v));
		}
		break;
	case 3: /* one digit */
		if (quote + 1 < end && end < t->n)
			t->at[quote + 1 + below(end - quote - 1)] = (char)('0' + below(10));
		break;
	case 4: /* a tag left out */
		if (close < t->n)
			cut(t, open, close - open + 1);
		break;
	case 5: /* a tag doubled */
		if (close < t->n && close - open < 512) {
			char copy[512];
			size_t len = close - open + 1;
			memcpy(copy, t->at + open, len);
			insert(t, open, copy, len);
		}
		break;
	case 6: { /* a tag of another file */
		size_t from = next(other, below(other->n + 1), '<'), to = next(other, from, '>');
		if (to < other->n)
			insert(t, open, other->at + from, to - from + 1);
		break;
	}
	default: {
		const char *piece = pieces[below(COUNT(pieces))];
		insert(t, where, piece, strlen(piece));
	}
	}
}

static void try_text(xml_reader read, const struct text *t)
{
	/* exactly as long as the text, so that the sanitizer sees a read behind its end */
	char *exact = malloc(t->n ? t->n : 1);
	if (!exact)
		exit(1);
	memcpy(exact, t->at, t->n);
	struct graph *g = NULL;
	struct error e = {0};
	enum status st = read(exact, t->n, "fuzz.xml", &g, &e);
	if (st) {
		check(st == ST_INPUT && e.status == st, "a refusal has the status of wrong input");
		check(g == NULL, "a refusal gives no graph");
		check(memchr(e.text, '\0', sizeof e.text) && !strchr(e.text, '\n'), "a message is one line");
		check(strncmp(e.text, "fuzz.xml:", 9) == 0, "a message names the file");
	} else {
		check(g && e.status == ST_OK, "a graph is given");
		if (topology_check(g, &e))
			check(false, e.text);
	}
	if (broken) {
		fprintf(stderr, "broken promise: %s\n", broken);
		fwrite(t->at, 1, t->n, stderr);
		exit(1);
	}
	graph_destroy(g);
	free(exact);
}

static int fuzz_xml(const char *fuzzer, const char *pattern, xml_reader read, int argc, char **argv)
{
	double seconds = argc > 1 ? strtod(argv[1], NULL) : 10;
	unsigned long long seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1, rounds = 0;
	random_state = seed;
	glob_t files;
	if (glob(pattern, 0, NULL, &files)) {
		fprintf(stderr, "%s: no %s: run from the root of the repository\n", fuzzer, pattern);
		return 1;
	}
	for (size_t i = 0; i < files.gl_pathc && seed_count < SEEDS_MAX; i++) {
		char *text = NULL;
		struct error e = {0};
		struct text *s = &seeds[seed_count];
		if (file_read(files.gl_pathv[i], TEXT_MAX, &text, &s->n, &e) == ST_OK) {
			memcpy(s->at, text, s->n);
			seed_count++;
		}
		free(text);
	}
	globfree(&files);
	double end_s = clock_s() + seconds;
	do {
		const struct text *start = &seeds[rounds < seed_count ? rounds : below(seed_count)];
		memcpy(now.at, start->at, start->n);
		now.n = start->n;
		for (size_t i = rounds < seed_count ? 0 : 1 + below(8); i > 0; i--)
			mutate(&now);
		try_text(read, &now);
		rounds++;
	} while (clock_s() < end_s);
	printf("%s: %llu texts, seed %llu: all promises held\n", fuzzer, rounds, seed);
	return 0;
}

#endif
