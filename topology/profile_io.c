/* Profiles as YAML: written with 17 digits, so that what is read is what was measured, and read strictly. */
#include <assert.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/memory_stream.h"
#include "base/paths.h"
#include "base/suggest.h"
#include "base/yaml.h"
#include "topology/profile.h"

#define NUMBER_LIMIT 1e300

/* ---- the key's fields, one table for both directions ---- */

static const struct key_text {
	const char *name;
	size_t offset, size;
} key_texts[] = {
#define KEY_TEXT(field) \
	{ \
#field, offsetof(struct profile_key, field), sizeof((struct profile_key *)0)->field \
	}
	KEY_TEXT(stepsim),
	KEY_TEXT(backend),
	KEY_TEXT(cpu),
	KEY_TEXT(mpi),
	KEY_TEXT(blas),
	KEY_TEXT(binding),
};
static const struct key_int {
	const char *name;
	size_t offset;
} key_ints[] = {
#define KEY_INT(field) \
	{ \
#field, offsetof(struct profile_key, field) \
	}
	KEY_INT(cores_per_rank),
	KEY_INT(ranks_per_host),
	KEY_INT(ranks),
};

/* ---- the columns of products, likewise ---- */

static const struct column {
	const char *name;
	size_t offset;
} columns[] = {
#define COLUMN(field) \
	{ \
#field, offsetof(struct profile_products, field) \
	}
	COLUMN(flop),
	COLUMN(time_s),
	COLUMN(clock_Hz),
	COLUMN(power_W),
	COLUMN(heat_s),
	COLUMN(capped),
};

/* ---- writing ---- */

static void put_text(FILE *f, const char *text)
{
	fputc('"', f);
	for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
		if (*c == '"' || *c == '\\')
			fprintf(f, "\\%c", *c);
		else if (*c < 0x20 || *c == 0x7f)
			fprintf(f, "\\x%02X", *c);
		else
			fputc(*c, f);
	}
	fputc('"', f);
}

static void put_list(FILE *f, const double *x, size_t n)
{
	fputc('[', f);
	for (size_t i = 0; i < n; i++)
		fprintf(f, "%s%.17g", i ? ", " : "", x[i]);
	fputc(']', f);
}

static void put_products(FILE *f, const struct profile *p)
{
	if (p->n_products)
		fputs("# products as they were timed: the SMs' clock and the board's power meanwhile, how long they "
		      "had run before,\n# and the share of samples in which the power limit held the clock down; "
		      "fits are of the highest clock\nproducts:\n",
			f);
	for (size_t i = 0; i < p->n_products; i++) {
		const struct profile_products *x = &p->products[i];
		fprintf(f, "  %s:\n", x->name);
		for (size_t k = 0; k < COUNT(columns); k++) {
			fprintf(f, "    %s: ", columns[k].name);
			put_list(f, (const double *)(const void *)((const char *)x + columns[k].offset), x->n);
			fputc('\n', f);
		}
	}
}

static size_t entries_of(const struct profile *p) { return p->n_values + p->n_curves + p->n_fits + p->n_products; }

static void put_profile(FILE *f, const struct profile *p)
{
	fputs("# Measured by `stepsim calibrate`. Seconds, bytes, FLOP and rates of them. It holds for runs that match "
	      "`key` only.\nkey:\n",
		f);
	for (size_t i = 0; i < COUNT(key_texts); i++) {
		fprintf(f, "  %s: ", key_texts[i].name);
		put_text(f, (const char *)&p->key + key_texts[i].offset);
		fputc('\n', f);
	}
	for (size_t i = 0; i < COUNT(key_ints); i++) {
		int64_t v;
		memcpy(&v, (const char *)&p->key + key_ints[i].offset, sizeof v);
		fprintf(f, "  %s: %" PRId64 "\n", key_ints[i].name, v);
	}
	fputs("date: ", f);
	put_text(f, p->date);
	fprintf(f, "\nentries: %zu\nvalues:\n", entries_of(p));
	for (size_t i = 0; i < p->n_values; i++)
		fprintf(f, "  %s: %.17g\n", p->values[i].name, p->values[i].value);
	fputs("# time against size: seconds an element against the bytes touched; for collectives seconds against the "
	      "bytes of the full buffer\ncurves:\n",
		f);
	for (size_t i = 0; i < p->n_curves; i++) {
		const struct profile_curve *c = &p->curves[i];
		fprintf(f, "  %s:\n    x: ", c->name);
		put_list(f, c->x, c->n);
		fputs("\n    y: ", f);
		put_list(f, c->y, c->n);
		fputc('\n', f);
	}
	fputs("# time = sum of coef x term (step/work.h has the terms); residual: root mean square of the relative "
	      "error\nfits:\n",
		f);
	for (size_t i = 0; i < p->n_fits; i++) {
		fprintf(f, "  %s:\n    residual: %.17g\n    coef: ", p->fits[i].name, p->fits[i].residual);
		put_list(f, p->fits[i].coef, p->fits[i].n);
		fputc('\n', f);
	}
	put_products(f, p);
}

enum status profile_save(const struct profile *p, const char *path, struct error *e)
{
	char *text = NULL;
	size_t len = 0;
	FILE *f = memory_stream(&text, &len);
	if (!f)
		return error_nomem(e, "the profile's text");
	put_profile(f, p);
	if (!memory_stream_close(f)) {
		free(text);
		return error_nomem(e, "the profile's text");
	}
	enum status st = file_write(path, text, len, e);
	free(text);
	return st;
}

/* ---- reading ---- */

static enum status unknown(const struct ynode *n, const char *const *known, size_t n_known, struct error *e)
{
	return ynode_error_key(n, e, "unknown key '%s'%s", n->key, suggest(n->key, known, n_known, NULL).text);
}

static enum status need_map(const struct ynode *n, struct error *e)
{
	return n->kind == Y_MAP ? ST_OK : ynode_error(n, e, "%s: expected a mapping", n->key ? n->key : "profile");
}

/* A complaint of profile_set_*, which knows no file, at its place. */
static enum status refused(const struct ynode *n, const struct error *inner, struct error *e)
{
	return ynode_error(n, e, "%s", inner->text);
}

static enum status read_key_field(const struct ynode *n, struct profile_key *key, struct error *e)
{
	const char *known[COUNT(key_texts) + COUNT(key_ints)], *text;
	size_t k = 0;
	for (size_t i = 0; i < COUNT(key_texts); i++) {
		known[k++] = key_texts[i].name;
		if (strcmp(n->key, key_texts[i].name) != 0)
			continue;
		if (n->kind != Y_SCALAR) /* an empty text is a fine value here: a build without MPI has none */
			return ynode_error(n, e, "%s: expected a text", n->key);
		text = n->text;
		if (strlen(text) >= key_texts[i].size)
			return ynode_error(n, e, "%s: longer than %zu characters", n->key, key_texts[i].size - 1);
		strcpy((char *)key + key_texts[i].offset, text);
		return ST_OK;
	}
	for (size_t i = 0; i < COUNT(key_ints); i++) {
		known[k++] = key_ints[i].name;
		if (strcmp(n->key, key_ints[i].name) != 0)
			continue;
		int64_t v = 0;
		enum status st = ynode_int(n, 0, INT64_C(1) << 40, &v, e);
		memcpy((char *)key + key_ints[i].offset, &v, sizeof v);
		return st;
	}
	return unknown(n, known, k, e);
}

static enum status read_key(const struct ynode *map, struct profile *p, struct error *e)
{
	enum status st = need_map(map, e);
	for (size_t i = 0; i < map->n && !st; i++)
		st = read_key_field(map->child[i], &p->key, e);
	if (!st && map->n != COUNT(key_texts) +
				     COUNT(key_ints)) /* keys are unique and known, so a shorter map misses one */
		st = ynode_error(map, e, "key: %zu of its %zu fields are missing",
			COUNT(key_texts) + COUNT(key_ints) - map->n, COUNT(key_texts) + COUNT(key_ints));
	return st;
}

static enum status read_list(const struct ynode *n, double *x, size_t max, size_t *count, struct error *e)
{
	if (n->kind != Y_SEQ || n->n < 1 || n->n > max)
		return ynode_error(n, e, "%s: expected a list of 1 to %zu numbers", n->key, max);
	*count = n->n;
	for (size_t i = 0; i < n->n; i++) {
		enum status st = ynode_quantity(n->child[i], UNIT_NONE, -NUMBER_LIMIT, NUMBER_LIMIT, &x[i], e);
		if (st)
			return st;
	}
	return ST_OK;
}

static enum status read_value(const struct ynode *n, struct profile *p, struct error *e)
{
	double v;
	struct error inner = {0};
	enum status st = ynode_quantity(n, UNIT_NONE, -NUMBER_LIMIT, NUMBER_LIMIT, &v, e);
	if (!st && profile_set_value(p, n->key, v, &inner))
		st = refused(n, &inner, e);
	return st;
}

static enum status two_keys(const struct ynode *n, const char *const names[2], struct error *e)
{
	enum status st = need_map(n, e);
	for (size_t i = 0; i < n->n && !st; i++)
		if (strcmp(n->child[i]->key, names[0]) != 0 && strcmp(n->child[i]->key, names[1]) != 0)
			st = unknown(n->child[i], names, 2, e);
	if (!st && n->n != 2)
		st = ynode_error(n, e, "%s: expected the keys '%s' and '%s'", n->key, names[0], names[1]);
	return st;
}

static enum status read_curve(const struct ynode *n, struct profile *p, struct error *e)
{
	static const char *const names[] = {"x", "y"};
	double x[PROFILE_POINTS], y[PROFILE_POINTS];
	size_t nx = 0, ny = 0;
	struct error inner = {0};
	enum status st = two_keys(n, names, e);
	if (!st)
		st = read_list(ynode_get(n, "x"), x, PROFILE_POINTS, &nx, e);
	if (!st)
		st = read_list(ynode_get(n, "y"), y, PROFILE_POINTS, &ny, e);
	if (!st && nx != ny)
		st = ynode_error(n, e, "%s: x has %zu numbers, y has %zu", n->key, nx, ny);
	if (!st && profile_set_curve(p, n->key, x, y, nx, &inner))
		st = refused(n, &inner, e);
	return st;
}

static enum status read_fit(const struct ynode *n, struct profile *p, struct error *e)
{
	static const char *const names[] = {"coef", "residual"};
	double coef[PROFILE_COEFS], residual = 0;
	size_t count = 0;
	struct error inner = {0};
	enum status st = two_keys(n, names, e);
	if (!st)
		st = read_list(ynode_get(n, "coef"), coef, PROFILE_COEFS, &count, e);
	if (!st)
		st = ynode_quantity(ynode_get(n, "residual"), UNIT_NONE, 0, NUMBER_LIMIT, &residual, e);
	if (!st && profile_set_fit(p, n->key, coef, count, residual, &inner))
		st = refused(n, &inner, e);
	return st;
}

static enum status read_column(const struct ynode *n, struct profile_products *x, struct error *e)
{
	const char *known[COUNT(columns)];
	size_t k = 0, count;
	for (size_t i = 0; i < COUNT(columns); i++)
		known[i] = columns[i].name;
	while (k < COUNT(columns) && strcmp(columns[k].name, n->key) != 0)
		k++;
	if (k == COUNT(columns))
		return unknown(n, known, COUNT(known), e);
	enum status st = read_list(n, (double *)(void *)((char *)x + columns[k].offset), PROFILE_POINTS, &count, e);
	if (!st && x->n && x->n != count)
		st = ynode_error(n, e, "%s: %zu numbers, the columns before have %zu", n->key, count, x->n);
	x->n = count;
	return st;
}

static enum status read_products(const struct ynode *n, struct profile *p, struct error *e)
{
	struct profile_products x = {.n = 0};
	struct error inner = {0};
	enum status st = need_map(n, e);
	for (size_t i = 0; i < n->n && !st; i++)
		st = read_column(n->child[i], &x, e);
	if (!st && n->n != COUNT(columns))
		st = ynode_error(n, e, "%s: %zu of its %zu columns are missing", n->key, COUNT(columns) - n->n,
			COUNT(columns));
	if (!st && strlen(n->key) >= sizeof x.name)
		st = ynode_error(n, e, "%.60s: a name has at most %zu characters", n->key, sizeof x.name - 1);
	if (st)
		return st;
	strcpy(x.name, n->key);
	return profile_set_products(p, &x, &inner) ? refused(n, &inner, e) : ST_OK;
}

static enum status read_date(const struct ynode *n, struct profile *p, struct error *e)
{
	const char *text;
	enum status st = ynode_string(n, &text, e);
	if (!st && strlen(text) >= sizeof p->date)
		st = ynode_error(n, e, "date: longer than %zu characters", sizeof p->date - 1);
	if (!st)
		strcpy(p->date, text);
	return st;
}

/* How many the writer wrote: checked at the end, against a file that was cut. */
static enum status read_entries(const struct ynode *n, struct profile *p, struct error *e)
{
	(void)p;
	int64_t count;
	return ynode_int(n, 0, 4 * PROFILE_ENTRIES, &count, e);
}

/* A profile without the number, written by hand, is what it is. */
static enum status check_whole(const struct ynode *root, struct profile *p, const char *path, struct error *e)
{
	int64_t count;
	const struct ynode *n = ynode_get(root, "entries");
	if (!ynode_get(root, "key"))
		return error_set(e, ST_INPUT, "%s: not a profile: 'key' is missing", path);
	if (!ynode_get(root, "values"))
		return error_set(e, ST_INPUT, "%s: not a whole profile: 'values' is missing", path);
	enum status st = n ? ynode_int(n, 0, 4 * PROFILE_ENTRIES, &count, e) : ST_OK;
	p->uncounted = !n;
	if (!st && n && (size_t)count != entries_of(p))
		st = error_set(e, ST_INPUT, "%s: not a whole profile: it has %zu of its %" PRId64 " entries", path,
			entries_of(p), count);
	return st;
}

static enum status read_section(const struct ynode *n, struct profile *p, struct error *e)
{
	static const char *const known[] = {"key", "date", "entries", "values", "curves", "fits", "products"};
	static enum status (*const readers[])(const struct ynode *, struct profile *, struct error *) = {read_key,
		read_date, read_entries, read_value, read_curve, read_fit, read_products};
	static_assert(COUNT(known) == COUNT(readers), "one reader a section");
	size_t k = 0;
	while (k < COUNT(known) && strcmp(known[k], n->key) != 0)
		k++;
	if (k == COUNT(known))
		return unknown(n, known, COUNT(known), e);
	if (k < 3)
		return readers[k](n, p, e);
	if (n->kind == Y_SCALAR && !*n->text) /* "fits:" with nothing under it */
		return ST_OK;
	enum status st = need_map(n, e);
	for (size_t i = 0; i < n->n && !st; i++)
		st = readers[k](n->child[i], p, e);
	return st;
}

enum status profile_load(const char *path, struct profile **out, struct error *e)
{
	struct ydoc *doc = NULL;
	struct profile *p = NULL;
	enum status st = ydoc_load(path, &doc, e);
	if (st)
		goto out;
	p = profile_create();
	if (!p) {
		st = error_nomem(e, "a profile");
		goto out;
	}
	const struct ynode *root = ydoc_root(doc);
	st = need_map(root, e);
	for (size_t i = 0; i < root->n && !st; i++)
		st = read_section(root->child[i], p, e);
	if (!st)
		st = check_whole(root, p, path, e);
out:
	ydoc_destroy(doc);
	if (st) {
		profile_destroy(p);
		return st;
	}
	*out = p;
	return ST_OK;
}
