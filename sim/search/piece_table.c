#include "sim/search/piece_table.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum piece_state { PIECE_UNKNOWN, PIECE_IN_WORK, PIECE_KNOWN };

struct piece {
	uint64_t key[2];
	enum piece_state state;
	max_align_t figures[];
};

/* Open addressing, at most half full. */
struct piece_table {
	pthread_mutex_t lock;   /* of all below and of each piece's state; none holds it while measuring */
	pthread_cond_t changed; /* a piece is no longer in work */
	struct piece **at;      /* owned, NULL: free */
	size_t n, places;
};

/* Returns the place of a key's piece in the table, or the free place where it belongs. */
static size_t place_of(const struct piece_table *t, const uint64_t key[2])
{
	size_t at = key[0] & (t->places - 1);
	while (t->at[at] && memcmp(t->at[at]->key, key, sizeof t->at[at]->key) != 0)
		at = (at + 1) & (t->places - 1);
	return at;
}

#define TABLE_LEAST 256 /* a power of two, as each further size */

/* Makes the table at least twice as large as what it holds and one more. */
static bool make_place(struct piece_table *t)
{
	if (t->places >= 2 * (t->n + 1))
		return true;
	const size_t places = t->places ? 2 * t->places : TABLE_LEAST, before = t->places;
	struct piece **old = t->at, **at = calloc(places, sizeof *at);
	if (!at)
		return false;
	t->at = at;
	t->places = places;
	for (size_t i = 0; i < before; i++)
		if (old[i])
			t->at[place_of(t, old[i]->key)] = old[i];
	free(old);
	return true;
}

/* Returns the piece of a key, which may be new. NULL: memory is short. */
static struct piece *piece_of(struct piece_table *t, const uint64_t key[2], size_t size)
{
	struct piece *p = t->n > 0 ? t->at[place_of(t, key)] : NULL;
	if (p || !make_place(t) || !(p = calloc(1, sizeof *p + size)))
		return p;
	memcpy(p->key, key, sizeof p->key);
	t->at[place_of(t, key)] = p;
	t->n++;
	return p;
}

const void *piece_table_find(struct piece_table *t, const uint64_t key[2], size_t size, piece_fill *fill, void *of,
	struct error *e)
{
	pthread_mutex_lock(&t->lock);
	struct piece *p = piece_of(t, key, size);
	while (p && p->state == PIECE_IN_WORK)
		pthread_cond_wait(&t->changed, &t->lock);
	if (!p) {
		error_nomem(e, "plans");
	} else if (p->state == PIECE_UNKNOWN) {
		p->state = PIECE_IN_WORK;
		pthread_mutex_unlock(&t->lock);
		memset(p->figures, 0, size);
		enum status st = fill(of, p->figures, e);
		pthread_mutex_lock(&t->lock);
		p->state = st ? PIECE_UNKNOWN : PIECE_KNOWN;
		pthread_cond_broadcast(&t->changed);
	}
	const bool known = p && p->state == PIECE_KNOWN;
	pthread_mutex_unlock(&t->lock);
	return known ? p->figures : NULL;
}

enum status piece_table_create(struct piece_table **out, struct error *e)
{
	struct piece_table *t = *out = calloc(1, sizeof *t);
	if (!t)
		return error_nomem(e, "plans");
	pthread_mutex_init(&t->lock, NULL); /* neither fails with default attributes on Linux */
	pthread_cond_init(&t->changed, NULL);
	return ST_OK;
}

void piece_table_destroy(struct piece_table *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->places; i++)
		free(t->at[i]);
	free(t->at);
	pthread_cond_destroy(&t->changed);
	pthread_mutex_destroy(&t->lock);
	free(t);
}
