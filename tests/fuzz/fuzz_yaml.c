/* Mutation fuzzer of the YAML reader: fuzz_yaml SECONDS SEED. Built with the sanitizers, which see what the checks
 * below do not.
 *
 * Each round takes one of the texts below, changes it a few times (bytes, pieces of other texts, pieces of syntax),
 * reads it, and checks what the header promises: a refusal has a message that starts with the name and a position; a
 * tree has positions, unique keys and bounded depth, and every reader either gives a value or a message. A broken
 * promise prints the text and ends with 1.
 */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/yaml.h"

#define TEXT_MAX 8192
#include "tests/fuzz/fuzz.h"
#define NAME "fuzz.yaml"

static const char *const seeds[] = {
	"model:\n  preset: llama3-8b\n  layers: 32\n  seq_len: 8192\nsystem: {nodes: 8, gpu: h100, per_node: 8}\n",
	("parallel:\n  data: 4\n  tensor: 2\n  strategy: fsdp\n  bucket: 25MiB\n  prefetch: 1\ntrain:\n  dtype: bf16\n"
	 "  micro_batch: 2\n"),
	"- name: nvlink\n  bandwidth: 450GB/s\n  latency: 1.5us\n- name: ib\n  bandwidth: 400Gb/s\n  latency: 5us\n",
	"text: |\n  several\n  lines\nfolded: >-\n  more\n  of them\nquoted: \"a\\tb\\u00e9\"\nsingle: 'it''s'\n",
	"a: [1, 2.5e3, {b: c, d: [e, f]}]\ng: ~\nh: null\ni: yes\nj: -0.5\nk: 0x10\n",
	"a: &x 1\nb: *x\n<<: {c: d}\nd: !!int 3\n",
	"---\nkey: value\n...\n---\nother: document\n",
	"? complex\n: value\n? [a]\n: b\n",
	"%YAML 1.1\n---\nd\xC3\xA9j\xC3\xA0: \xE2\x82\xAC\n\"\\x41\": \"\\U0001F600\"\n",
	"a: 1\na: 2\nb:\n  c: 1\n  c: 2\n",
};

static const char *const pieces[] = {
	"\n",
	"\n  ",
	"\t",
	": ",
	"- ",
	"? ",
	"{",
	"}",
	"[",
	"]",
	", ",
	"\"",
	"'",
	"# ",
	"|\n",
	">\n",
	"&a ",
	"*a",
	"!!str ",
	"---\n",
	"...\n",
	"~",
	"<<: ",
	"\\x00",
	"\\u",
	"%TAG ! x\n",
	"1e999",
	"25MiB",
	"99999999999999999999",
	"\r\n",
	"\xC3\xBC",
	"\xEF\xBB\xBF",
	"\xFF",
	"\xE2\x80\xA8",
	"[[[[[[[[",
	"a: ",
};

static void mutate(struct text *t)
{
	size_t where = below(t->n + 1), rest = t->n - where;
	char copy[64];
	size_t len = below(rest < sizeof copy ? rest + 1 : sizeof copy);
	const char *other = seeds[below(COUNT(seeds))], *piece = pieces[below(COUNT(pieces))];
	size_t from = below(strlen(other));

	switch (below(6)) {
	case 0: /* any byte */
		if (rest)
			t->at[where] = (char)below(256);
		break;
	case 1: /* one bit */
		if (rest)
			t->at[where] = (char)(t->at[where] ^ (1 << below(8)));
		break;
	case 2: cut(t, where, len); break;
	case 3: /* a repetition: nesting, duplicate keys */
		memcpy(copy, t->at + where, len);
		for (size_t i = below(8) + 1; i > 0; i--)
			insert(t, where, copy, len);
		break;
	case 4: insert(t, where, other + from, strlen(other) - from); break;
	default: insert(t, where, piece, strlen(piece)); break;
	}
}

static void check_message(const struct error *e)
{
	int line = 0, col = 0, used = 0;
	check(e->status == ST_INPUT, "a refusal has the status of wrong input");
	check(memchr(e->text, '\0', sizeof e->text) && !strchr(e->text, '\n'), "a message is one line");
	check(sscanf(e->text, NAME ":%d:%d: %n", &line, &col, &used) == 2 && used > 0 && line >= 1 && col >= 1 &&
			e->text[used],
		"a message has a position and a text");
}

static void check_readers(const struct ynode *n)
{
	int64_t i;
	double x;
	bool b;
	const char *text;
	struct error e = {0};
	if (ynode_int(n, -1000, 1000, &i, &e))
		check_message(&e);
	else
		check(i >= -1000 && i <= 1000, "an integer lies in its range");
	for (int unit = 0; unit < UNIT_COUNT_; unit++) {
		e = (struct error){0};
		if (ynode_quantity(n, (enum unit)unit, 0, 1e12, &x, &e))
			check_message(&e);
		else
			check(x >= 0 && x <= 1e12, "a quantity lies in its range");
	}
	e = (struct error){0};
	if (ynode_bool(n, &b, &e))
		check_message(&e);
	e = (struct error){0};
	if (ynode_string(n, &text, &e))
		check_message(&e);
	else
		check(text == n->text, "a text is the scalar's");
}

static void check_node(const struct ynode *n, int depth)
{
	check(n->line >= 1 && n->col >= 1 && strcmp(n->file, NAME) == 0, "a node has a position");
	check((n->kind == Y_SCALAR) == (n->text != NULL) && (n->kind != Y_SCALAR || n->n == 0),
		"scalars have a text, the others have children");
	check(depth <= 32 + (n->kind == Y_SCALAR), "the depth is limited");
	check_readers(n);
	for (size_t i = 0; i < n->n; i++) {
		const struct ynode *child = n->child[i];
		check((n->kind == Y_MAP) == (child->key != NULL),
			"the children of a mapping, and only they, have a key");
		if (n->kind == Y_MAP)
			check(child->key_line >= 1 && child->key_col >= 1 && ynode_get(n, child->key) == child,
				"a key is unique and has a position");
		check_node(child, depth + 1);
	}
}

static void try_text(const struct text *t)
{
	/* exactly as long as the text, so that the sanitizer sees a read behind its end */
	char *exact = malloc(t->n ? t->n : 1);
	if (!exact)
		exit(1);
	memcpy(exact, t->at, t->n);
	struct ydoc *doc = NULL;
	struct error e = {0};
	if (ydoc_parse(exact, t->n, NAME, &doc, &e)) {
		check(doc == NULL, "a refusal gives no document");
		check_message(&e);
	} else {
		check(e.status == ST_OK && ydoc_root(doc), "a document has a root");
		check_node(ydoc_root(doc), 1);
	}
	ydoc_destroy(doc);
	free(exact);
}

FUZZ_ONE(try_text)

int main(int argc, char **argv) { return fuzz_texts("fuzz_yaml", seeds, COUNT(seeds), mutate, try_text, argc, argv); }
