#include "step/framework.h"

#include <ctype.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/paths.h"
#include "base/phrase.h"
#include "base/sourced.h"

/* ---- matching ---- */

/* *most: the characters that match, over which the match has to be longer. */
static const struct framework *find(const struct frameworks *f, const char *word, bool whole, size_t *most)
{
	const struct framework *best = NULL;
	for (size_t i = 0; i < f->name.n; i++) {
		if (strcmp(f->name.at[i].name, word) == 0 && strlen(word) >= *most) {
			/* pytorch-fsdp is a file, whatever PyTorch FSDP is */
			*most = strlen(word);
			return &f->name.at[i];
		}
		const size_t same = phrase_match(f->name.at[i].name, word, whole);
		if (same > *most) {
			best = &f->name.at[i];
			*most = same;
		}
	}
	return best;
}

const struct framework *framework_of(const struct frameworks *f, const char *word)
{
	size_t most = 0;
	return find(f, word, false, &most);
}

const struct framework *framework_named(const struct frameworks *f, const char *word)
{
	size_t most = 0;
	return find(f, word, true, &most);
}

bool framework_inside(const struct frameworks *f, const char *word, struct framework *out)
{
	const struct framework *best = NULL;
	size_t most = 0;
	for (bool inside = false; *word; inside = isalnum((unsigned char)*word), word++) {
		const struct framework *found = inside ? NULL : find(f, word, false, &most);
		best = found ? found : best;
	}
	if (best) {
		*out = *best;
		out->borrows = true;
	}
	return best != NULL;
}

struct hint framework_hint(const struct frameworks *f, const char *word)
{
	const char **names = calloc(f->name.n + 1, sizeof *names);
	if (!names)
		return (struct hint){""};
	for (size_t i = 0; i < f->name.n; i++)
		names[i] = f->name.at[i].name;
	const struct hint h = suggest(word, names, f->name.n, "list stacks");
	free(names);
	return h;
}

/* ---- reading ---- */

#define FLAG(field) \
	{ \
#field, offsetof(struct framework, field) \
	}

static const struct {
	const char *key;
	size_t offset;
} flags[] = {FLAG(bias), FLAG(fsdp), FLAG(interleaves), FLAG(reports_allocated), FLAG(reduces_narrow), FLAG(sums_wide),
	FLAG(stores_wide), FLAG(bf16_shards), FLAG(half_weights), FLAG(waits), FLAG(wraps_adapters), FLAG(chunks_loss),
	FLAG(fuses_norms), FLAG(fuses_gates), FLAG(fuses_sums), FLAG(gates_activation), FLAG(borrows),
	FLAG(ddp_overlaps)};

#define WORDS 4
static const struct {
	const char *key;
	size_t offset;
	const char *words[WORDS]; /* the first: where the entry is silent */
} choices[] = {
	{"position", offsetof(struct framework, position), {"rope", "learned"}},
	{"attention", offsetof(struct framework, attention), {"flash", "naive"}},
	{"recompute", offsetof(struct framework, recompute), {"none", "full", "selective", "fit"}},
};

static enum status copy(const struct ynode *n, char *out, size_t size, struct error *e)
{
	const char *text;
	enum status st = ynode_string(n, &text, e);
	if (st)
		return st;
	if (!*text || strlen(text) >= size)
		return ynode_error(n, e, "names: expected a name of 1 to %zu characters", size - 1);
	memcpy(out, text, strlen(text) + 1);
	return ST_OK;
}

static enum status read_choice(const struct ynode *n, size_t i, struct framework *out, struct error *e)
{
	const char *word;
	size_t count = 0;
	enum status st = ynode_string(n, &word, e);
	while (count < WORDS && choices[i].words[count])
		count++;
	if (st)
		return st;
	const size_t k = suggest_find(word, choices[i].words, count);
	if (k == count)
		return ynode_error(n, e, "%s: \"%.40s\" is not known%s", n->key, word,
			suggest_known(word, choices[i].words, count).text);
	memcpy((char *)out + choices[i].offset, &choices[i].words[k], sizeof choices[i].words[k]);
	return ST_OK;
}

static enum status read_key(const struct ynode *n, struct framework *out, struct error *e)
{
	static const struct {
		const char *key;
		size_t offset;
		enum unit unit;
	} losses[] = {{"loss", offsetof(struct framework, loss_B), UNIT_BYTE},
		{"loss_tensor", offsetof(struct framework, loss_tensor_B), UNIT_BYTE},
		{"logit", offsetof(struct framework, logit_B), UNIT_BYTE},
		{"logit_casts", offsetof(struct framework, logit_casts), UNIT_NONE}};
	const char *names[3 + COUNT(losses) + COUNT(choices) + COUNT(flags)] = {"name", "source", "bf16_stack"}, *text;
	for (size_t i = 0; i < COUNT(losses); i++) {
		names[3 + COUNT(choices) + COUNT(flags) + i] = losses[i].key;
		if (strcmp(n->key, losses[i].key) == 0)
			return ynode_quantity_with_unit(n, losses[i].unit, 1, 100,
				(double *)(void *)((char *)out + losses[i].offset), e);
	}
	for (size_t i = 0; i < COUNT(choices); i++) {
		names[3 + i] = choices[i].key;
		if (strcmp(n->key, choices[i].key) == 0)
			return read_choice(n, i, out, e);
	}
	for (size_t i = 0; i < COUNT(flags); i++) {
		names[3 + COUNT(choices) + i] = flags[i].key;
		if (strcmp(n->key, flags[i].key) == 0)
			return ynode_bool(n, (bool *)(void *)((char *)out + flags[i].offset), e);
	}
	if (strcmp(n->key, "name") == 0)
		return ST_OK;
	if (strcmp(n->key, "source") == 0)
		return ynode_string(n, &text, e);
	if (strcmp(n->key, "bf16_stack") == 0)
		return copy(n, out->bf16_stack, sizeof out->bf16_stack, e);
	return ynode_error_key(n, e, "%s: unknown key of a name%s", n->key,
		suggest(n->key, names, COUNT(names), NULL).text);
}

static struct framework named_after(const char *stack)
{
	struct framework f = {.position = choices[0].words[0],
		.attention = choices[1].words[0],
		.recompute = choices[2].words[0]};
	snprintf(f.name, sizeof f.name, "%s", stack);
	snprintf(f.stack, sizeof f.stack, "%s", stack);
	return f;
}

static enum status add(struct frameworks *all, struct framework f, const struct ynode *name, struct error *e)
{
	enum status st = copy(name, f.name, sizeof f.name, e);
	for (size_t i = 0; i < all->name.n && !st; i++)
		if (suggest_same(all->name.at[i].name, f.name))
			st = ynode_error(name, e, "names: \"%s\" is a name of %s already", f.name,
				all->name.at[i].stack);
	return st || vec_push(&all->name, f) ? st : error_nomem(e, "the names of stacks");
}

static enum status read_entry(const struct ynode *entry, const char *stack, struct frameworks *all, struct error *e)
{
	struct framework f = named_after(stack);
	const struct ynode *name = ynode_get(entry, "name");
	if (!name || !ynode_get(entry, "source"))
		return ynode_error(entry, e, "names: expected entries {name: ..., source: ...}");
	enum status st = ST_OK;
	for (size_t i = 0; i < entry->n && !st; i++)
		st = read_key(entry->child[i], &f, e);
	if (!st && name->kind != Y_SEQ)
		return add(all, f, name, e);
	for (size_t i = 0; i < name->n && !st; i++)
		st = add(all, f, name->child[i], e);
	return st;
}

static enum status read_file(const char *stack, struct frameworks *all, struct error *e)
{
	char path[PATH_MAX_LEN];
	struct ydoc *doc = NULL;
	enum status st = path_catalogue("stacks", stack, path, e);
	if (!st)
		st = sourced_load("stacks", path, &doc, e);
	const struct ynode *names = st ? NULL : ynode_get(ydoc_root(doc), "names");
	if (names && names->kind != Y_SEQ)
		st = ynode_error(names, e, "names: expected a list");
	for (size_t i = 0; names && i < names->n && !st; i++)
		st = read_entry(names->child[i], stack, all, e);
	ydoc_destroy(doc);
	return st;
}

enum status frameworks_load(struct frameworks *out, struct error *e)
{
	char **stacks = NULL;
	size_t n = 0;
	*out = (struct frameworks){0};
	enum status st = path_catalogue_names("stacks", &stacks, &n, e);
	for (size_t i = 0; i < n && !st; i++)
		st = read_file(stacks[i], out, e);
	/* Last, so that an entry of the same name stands before it. */
	for (size_t i = 0; i < n && !st; i++)
		if (!vec_push(&out->name, named_after(stacks[i])))
			st = error_nomem(e, "the names of stacks");
	path_names_free(stacks, n);
	if (st)
		frameworks_free(out);
	return st;
}

void frameworks_free(struct frameworks *f) { vec_free(&f->name); }
