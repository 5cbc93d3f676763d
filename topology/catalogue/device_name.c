/* Which file of the catalogue a GPU is, by the name under which a driver shows it. */
#include "topology/catalogue/device.h"

#include <ctype.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/paths.h"

#define WORD 24
#define TEXT 256
#define NAMES 8

/* A name taken apart: the model's words in order ("rtx pro 6000"), and with blanks around each the words that tell its
 * variants apart (" sxm4 sxm 80gb "). */
struct parts {
	char model[TEXT], variant[TEXT];
};

struct entry {
	char id[DEVICE_ID];
	uint64_t mem_B;
	struct parts names[NAMES]; /* of the product and of `shown_as` */
	size_t n_names;
	char variants[TEXT * 2]; /* of all its names, its memory's kind and its size as sold */
};

static struct {
	pthread_mutex_t lock;
	struct entry *entry;
	size_t n;
} catalogue = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Says who sells it or that it is a GPU: no two products differ in it. */
static bool is_filler(const char *w)
{
	static const char *const fillers[] = {"nvidia", "tesla", "geforce", "amd", "ati", "instinct", "intel", "habana",
		"google", "corporation", "corp", "inc", "gpu", "graphics", "card", "accelerator"};
	for (size_t i = 0; i < COUNT(fillers); i++)
		if (strcmp(w, fillers[i]) == 0)
			return true;
	return false;
}

/* "80gb", "144g"; "40c" of a virtual GPU is none. */
static bool is_size(const char *w)
{
	size_t digits = strspn(w, "0123456789");
	return digits > 0 && (strcmp(w + digits, "gb") == 0 || strcmp(w + digits, "g") == 0);
}

static bool is_variant(const char *w)
{
	static const char *const kinds[] = {"sxm", "pcie", "oam", "hbm", "gddr"};
	for (size_t i = 0; i < COUNT(kinds); i++)
		if (strncmp(w, kinds[i], strlen(kinds[i])) == 0)
			return true;
	return is_size(w);
}

/* False where it does not fit: then nothing may be concluded from what is there. */
static bool append(char *to, size_t size, const char *before, const char *w, const char *after)
{
	size_t len = strlen(to);
	return (size_t)snprintf(to + len, size - len, "%s%s%s", before, w, after) < size - len;
}

static bool add_variant(char *to, size_t size, const char *w)
{
	const bool short_size = is_size(w) && w[strlen(w) - 1] == 'g'; /* "80g" is 80gb */
	bool ok = append(to, size, *to ? "" : " ", w, short_size ? "b " : " ");
	if (ok && strncmp(w, "sxm", 3) == 0 && w[3])
		ok = append(to, size, "", "sxm", " ");
	return ok;
}

/* The next word of letters and digits in lower case; a size in two words ("80 GB") is one. NULL at the end, and `fits`
 * false on a longer one than any name has. */
static const char *next_word(const char *text, char word[WORD], bool *fits)
{
	size_t n = 0;
	while (*text && !isalnum((unsigned char)*text))
		text++;
	if (!*text)
		return NULL;
	for (; isalnum((unsigned char)*text); text++, n++) {
		if (n + 1 >= WORD) {
			*fits = false;
			return NULL;
		}
		word[n] = (char)tolower((unsigned char)*text);
	}
	word[n] = '\0';
	if (strspn(word, "0123456789") == n && n + 3 < WORD && strncasecmp(text, " GB", 3) == 0 &&
		!isalnum((unsigned char)text[3])) {
		memcpy(word + n, "gb", 3);
		text += 3;
	}
	return text;
}

static bool take_apart(const char *text, struct parts *out)
{
	char word[WORD];
	bool ok = true;
	*out = (struct parts){0};
	for (const char *at = text; ok && (at = next_word(at, word, &ok));) {
		if (is_filler(word))
			continue;
		ok = is_variant(word) ? add_variant(out->variant, sizeof out->variant, word)
		                      : append(out->model, sizeof out->model, *out->model ? " " : "", word, "");
	}
	return ok && *out->model;
}

/* True when each of `words` is among `known`. */
static bool all_known(const char *words, const char *known)
{
	char copy[TEXT], padded[WORD + 2], *rest = copy;
	snprintf(copy, sizeof copy, "%s", words);
	for (char *w; (w = strtok_r(rest, " ", &rest));) {
		snprintf(padded, sizeof padded, " %s ", w);
		if (!strstr(known, padded))
			return false;
	}
	return true;
}

static enum status add_name(struct entry *en, const char *text, struct error *e)
{
	if (en->n_names == NAMES || !take_apart(text, &en->names[en->n_names]))
		return error_set(e, ST_INPUT,
			"configs/gpus/%s.yaml: shown_as: '%.60s' is no name that a driver could show, or there are "
			"more than %d names",
			en->id, text, NAMES - 1);
	append(en->variants, sizeof en->variants, "", en->names[en->n_names].variant, "");
	en->n_names++;
	return ST_OK;
}

static enum status fill_entry(const char *id, struct entry *en, struct error *e)
{
	struct device_spec d;
	char size[WORD], kind[sizeof d.memory_type], *rest;
	enum status st = device_load(id, &d, e);
	if (st)
		return st;
	snprintf(en->id, sizeof en->id, "%s", id);
	en->mem_B = d.mem_B;
	st = add_name(en, d.name, e);
	rest = d.shown_as;
	for (char *name; !st && (name = strtok_r(rest, ";", &rest));)
		st = add_name(en, name, e);
	/* Makers count 81559 MiB as 80 GB and 192 GiB as 192 GB: the size as sold stands in the name where it tells
	 * products apart, this one serves the others. */
	snprintf(size, sizeof size, "%.0fgb", ceil((double)d.mem_B / 0x1p30));
	add_variant(en->variants, sizeof en->variants, size);
	for (size_t i = 0; i < sizeof kind; i++)
		kind[i] = (char)tolower((unsigned char)d.memory_type[i]);
	add_variant(en->variants, sizeof en->variants, kind);
	return st;
}

static enum status read_catalogue(struct error *e)
{
	char **ids = NULL;
	size_t n = 0;
	struct entry *entry = NULL;
	enum status st = path_catalogue_names("gpus", &ids, &n, e);
	if (!st && !(entry = calloc(n ? n : 1, sizeof *entry)))
		st = error_nomem(e, "the names of GPUs");
	for (size_t i = 0; i < n && !st; i++)
		st = fill_entry(ids[i], &entry[i], e);
	path_names_free(ids, n);
	if (st) {
		free(entry);
		return st;
	}
	catalogue.entry = entry;
	catalogue.n = n;
	return ST_OK;
}

static bool same_name(const struct parts *a, const struct parts *b)
{
	return strcmp(a->model, b->model) == 0 && all_known(a->variant, b->variant) &&
	       all_known(b->variant, a->variant);
}

/* 0: another model, or contradicted by the memory; 1: fits; 2: it is one of its names. */
static int fit(const struct entry *en, const struct parts *shown, uint64_t mem_B)
{
	int best = 0;
	if (mem_B && fabs((double)mem_B - (double)en->mem_B) > 0.08 * (double)en->mem_B)
		return 0;
	for (size_t i = 0; i < en->n_names; i++) {
		if (same_name(shown, &en->names[i]))
			return 2;
		if (strcmp(shown->model, en->names[i].model) == 0 && all_known(shown->variant, en->variants))
			best = 1;
	}
	return best;
}

enum status device_by_shown_name(const char *shown, uint64_t mem_B, char id[DEVICE_ID], struct error *e)
{
	struct parts parts;
	enum status st = ST_OK;
	id[0] = '\0';
	pthread_mutex_lock(&catalogue.lock);
	if (!catalogue.entry)
		st = read_catalogue(e);
	pthread_mutex_unlock(&catalogue.lock);
	if (st || !take_apart(shown, &parts))
		return st;
	int best = 0;
	size_t found = 0, at = 0;
	for (size_t i = 0; i < catalogue.n; i++) {
		int f = fit(&catalogue.entry[i], &parts, mem_B);
		if (f == 0 || f < best)
			continue;
		found = f > best ? 1 : found + 1;
		best = f;
		at = i;
	}
	if (found == 1)
		memcpy(id, catalogue.entry[at].id, DEVICE_ID);
	return ST_OK;
}
