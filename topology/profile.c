#include "topology/profile.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/paths.h"

struct profile *profile_create(void) { return calloc(1, sizeof(struct profile)); }

void profile_destroy(struct profile *p) { free(p); }

/* ---- entries ---- */

static enum status check_name(const char *name, struct error *e)
{
	size_t len = strspn(name,
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-"); /* what stands in a YAML key as it
	                                                                                 is */
	if (len == 0 || name[len] || len >= PROFILE_NAME)
		return error_set(e, ST_RUN, "profile entry '%.60s': a name has 1 to %d letters, digits, '_', '.', '-'",
			name, PROFILE_NAME - 1);
	return ST_OK;
}

/* The index of the entry `name`, or the next free one (`*n` grows). Names stand first in every entry type. */
static enum status slot(const char *name, void *entries, size_t size, size_t *n, size_t *index, struct error *e)
{
	enum status st = check_name(name, e);
	if (st)
		return st;
	char *at = entries;
	for (*index = 0; *index < *n; ++*index)
		if (strcmp(at + *index * size, name) == 0)
			return ST_OK;
	if (*n == PROFILE_ENTRIES)
		return error_set(e, ST_RUN, "profile entry '%s': there is room for %d of a kind", name,
			PROFILE_ENTRIES);
	memset(at + *n * size, 0, size);
	strcpy(at + *n * size, name);
	++*n;
	return ST_OK;
}

enum status profile_set_value(struct profile *p, const char *name, double value, struct error *e)
{
	size_t i;
	if (!isfinite(value))
		return error_set(e, ST_RUN, "profile value '%s' is not a number", name);
	enum status st = slot(name, p->values, sizeof p->values[0], &p->n_values, &i, e);
	if (!st)
		p->values[i].value = value;
	return st;
}

enum status profile_set_curve(struct profile *p, const char *name, const double *x, const double *y, size_t n,
	struct error *e)
{
	size_t index;
	if (n < 1 || n > PROFILE_POINTS)
		return error_set(e, ST_RUN, "profile curve '%s': a curve has 1 to %d points", name, PROFILE_POINTS);
	for (size_t i = 0; i < n; i++)
		if (!(x[i] > 0) || !(y[i] > 0) || !isfinite(x[i]) || !isfinite(y[i]) || (i && !(x[i] > x[i - 1])))
			return error_set(e, ST_RUN,
				"profile curve '%s': point %zu is not positive or not in ascending order", name, i + 1);
	enum status st = slot(name, p->curves, sizeof p->curves[0], &p->n_curves, &index, e);
	if (st)
		return st;
	struct profile_curve *c = &p->curves[index];
	c->n = n;
	memcpy(c->x, x, n * sizeof *x);
	memcpy(c->y, y, n * sizeof *y);
	return ST_OK;
}

enum status profile_set_fit(struct profile *p, const char *name, const double *coef, size_t n, double residual,
	struct error *e)
{
	size_t index;
	if (n < 1 || n > PROFILE_COEFS)
		return error_set(e, ST_RUN, "profile fit '%s': a fit has 1 to %d coefficients", name, PROFILE_COEFS);
	for (size_t i = 0; i < n; i++)
		if (!isfinite(coef[i]) || coef[i] < 0)
			return error_set(e, ST_RUN, "profile fit '%s': coefficient %zu is negative or not a number",
				name, i + 1);
	if (!isfinite(residual) || residual < 0)
		return error_set(e, ST_RUN, "profile fit '%s': the residual is negative or not a number", name);
	enum status st = slot(name, p->fits, sizeof p->fits[0], &p->n_fits, &index, e);
	if (st)
		return st;
	struct profile_fit *f = &p->fits[index];
	f->n = n;
	f->residual = residual;
	memcpy(f->coef, coef, n * sizeof *coef);
	return ST_OK;
}

enum status profile_set_products(struct profile *p, const struct profile_products *x, struct error *e)
{
	size_t index;
	if (x->n < 1 || x->n > PROFILE_POINTS)
		return error_set(e, ST_RUN, "profile products '%s': 1 to %d of a name", x->name, PROFILE_POINTS);
	for (size_t i = 0; i < x->n; i++)
		if (!(x->flop[i] > 0) || !(x->time_s[i] > 0) || !(x->clock_Hz[i] > 0) || !(x->power_W[i] >= 0) ||
			!(x->heat_s[i] >= 0) || !(x->capped[i] >= 0) || x->capped[i] > 1)
			return error_set(e, ST_RUN,
				"profile products '%s': number %zu of a column is negative, or 0 in flop, time_s or "
				"clock_Hz, or above 1 in capped",
				x->name, i + 1);
	enum status st = slot(x->name, p->products, sizeof p->products[0], &p->n_products, &index, e);
	if (!st)
		p->products[index] = *x;
	return st;
}

static double share_of(const struct profile *p, const char *name, double missing)
{
	return fmax(0, fmin(profile_get_value(p, name, missing), 1));
}

double profile_disturbed(const struct profile *p)
{
	const double others = share_of(p, PROFILE_CPU_STEAL_SHARE, 0);
	return others > 0 ? share_of(p, PROFILE_DISTURBED_SHARE, 1) : 0;
}

double profile_too_long(const struct profile *p)
{
	return profile_disturbed(p) * share_of(p, PROFILE_CPU_STEAL_SHARE, 0);
}

bool profile_of_several_hosts(const struct profile *p) { return p->key.ranks_per_host < p->key.ranks; }

bool profile_of_gpus(const struct profile *p) { return strcmp(p->key.backend, "cuda") == 0; }

const char *profile_lacks(const struct profile *p)
{
	const bool between = profile_of_several_hosts(p) && !profile_of_gpus(p);
	return between && profile_get_value(p, PROFILE_BETWEEN_TURN_S, -1) < 0
	               ? "what collectives between hosts lose beside compute"
	               : NULL;
}

const char *profile_cached_lacks(const struct profile *p)
{
	return p->uncounted ? "the number of its entries" : profile_lacks(p);
}

enum profile_use profile_decide(const struct profile *cached, bool quiet)
{
	if (!cached)
		return PROFILE_MEASURE;
	if (profile_disturbed(cached) <= 0 && !profile_cached_lacks(cached))
		return PROFILE_TAKE;
	return quiet ? PROFILE_MEASURE_AGAIN : PROFILE_TAKE_WIDENED;
}

double profile_burst_Hz(const struct profile *p)
{
	double burst_Hz = 0;
	for (size_t k = 0; k < p->n_products; k++)
		for (size_t i = 0; i < p->products[k].n; i++)
			burst_Hz = fmax(burst_Hz, p->products[k].clock_Hz[i]);
	return burst_Hz;
}

#define STRIDE ".stride"

void profile_collective_curve(char out[PROFILE_NAME], const char *collective, int64_t ranks, int64_t stride)
{
	if (stride == 1)
		snprintf(out, PROFILE_NAME, "%s.%" PRId64, collective, ranks);
	else
		snprintf(out, PROFILE_NAME, "%s.%" PRId64 STRIDE "%" PRId64, collective, ranks, stride);
}

int64_t profile_collective_ranks(const char *curve, const char *collective, int64_t *stride)
{
	const size_t len = strlen(collective);
	if (strncmp(curve, collective, len) != 0 || curve[len] != '.')
		return 0;
	char *end;
	const long long ranks = strtoll(curve + len + 1, &end, 10);
	*stride = 1;
	if (strncmp(end, STRIDE, strlen(STRIDE)) == 0)
		*stride = strtoll(end + strlen(STRIDE), &end, 10);
	return *end || ranks < 0 || *stride < 1 ? 0 : ranks;
}

double profile_get_value(const struct profile *p, const char *name, double missing)
{
	for (size_t i = 0; i < p->n_values; i++)
		if (strcmp(p->values[i].name, name) == 0)
			return p->values[i].value;
	return missing;
}

const struct profile_curve *profile_get_curve(const struct profile *p, const char *name)
{
	for (size_t i = 0; i < p->n_curves; i++)
		if (strcmp(p->curves[i].name, name) == 0)
			return &p->curves[i];
	return NULL;
}

const struct profile_fit *profile_get_fit(const struct profile *p, const char *name)
{
	for (size_t i = 0; i < p->n_fits; i++)
		if (strcmp(p->fits[i].name, name) == 0)
			return &p->fits[i];
	return NULL;
}

double profile_curve_at(const struct profile_curve *c, double x, int clamp)
{
	size_t last = c->n - 1;
	if (x <= c->x[0] || last == 0)
		return c->y[0];
	if (clamp && x >= c->x[last])
		return c->y[last];
	size_t i = 1;
	while (i < last && c->x[i] < x)
		i++;
	double slope = log(c->y[i] / c->y[i - 1]) / log(c->x[i] / c->x[i - 1]);
	return c->y[i - 1] * exp(slope * log(x / c->x[i - 1]));
}

/* ---- key ---- */

/* FNV-1a, 64 bits (draft-eastlake-fnv-21). Texts are hashed with their terminator, so that "a","bc" differs from
 * "ab","c". */
static uint64_t fnv1a(uint64_t h, const void *bytes, size_t n)
{
	const unsigned char *b = bytes;
	for (size_t i = 0; i < n; i++)
		h = (h ^ b[i]) * UINT64_C(0x100000001b3);
	return h;
}

static uint64_t hash_text(uint64_t h, const char *text) { return fnv1a(h, text, strlen(text) + 1); }

static uint64_t hash_int(uint64_t h, int64_t v)
{
	char text[24];
	snprintf(text, sizeof text, "%" PRId64, v); /* as text: the same name on every byte order */
	return hash_text(h, text);
}

enum status profile_cache_path(const struct profile_key *k, char *path, size_t size, struct error *e)
{
	char folder[PATH_MAX_LEN];
	enum status st = path_cache(folder, e);
	if (st)
		return st;
	uint64_t h = UINT64_C(0xcbf29ce484222325);
	const char *const texts[] = {k->stepsim, k->backend, k->cpu, k->mpi, k->blas, k->binding};
	for (size_t i = 0; i < COUNT(texts); i++)
		h = hash_text(h, texts[i]);
	h = hash_int(h, k->cores_per_rank);
	h = hash_int(h, k->ranks_per_host);
	h = hash_int(h, k->ranks);
	int len = snprintf(path, size, "%s/profile-%016" PRIx64 ".yaml", folder, h);
	if (len < 0 || (size_t)len >= size)
		return error_set(e, ST_INPUT, "the path of the cached profile is too long");
	return ST_OK;
}

int profile_key_equal(const struct profile_key *a, const struct profile_key *b)
{
	return strcmp(a->stepsim, b->stepsim) == 0 && strcmp(a->backend, b->backend) == 0 &&
	       strcmp(a->cpu, b->cpu) == 0 && strcmp(a->mpi, b->mpi) == 0 && strcmp(a->blas, b->blas) == 0 &&
	       strcmp(a->binding, b->binding) == 0 && a->cores_per_rank == b->cores_per_rank &&
	       a->ranks_per_host == b->ranks_per_host && a->ranks == b->ranks;
}
