/* Rings without a common link: backtracking over the edges of one ring after the other. */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/gcd.h"
#include "topology/graph/group_parts.h"

/* Vertices visited in a search: about a millisecond in all. */
#define STEPS_UNDIRECTED 20000
#define STEPS_DIRECTED 3000
#define RESTARTS 8

struct packing {
	int32_t n;
	bool directed;
	int32_t *left;             /* links not used yet, from i to j */
	int32_t *path, *best_path; /* path: of all rings on the way, n each */
	bool *used;
	int32_t best, bound;
	int64_t steps;
};

/* No more rings than the vertex with the fewest links left allows. */
static int32_t bound_of(const struct packing *p)
{
	int32_t bound = INT32_MAX;
	for (int32_t i = 0; i < p->n; i++) {
		int32_t out = 0, in = 0;
		for (int32_t j = 0; j < p->n; j++) {
			out += p->left[i * p->n + j];
			in += p->left[j * p->n + i];
		}
		int32_t least = p->directed ? (out < in ? out : in) : out / 2;
		bound = least < bound ? least : bound;
	}
	return bound;
}

static void take(struct packing *p, const int32_t *path, int32_t count)
{
	for (int32_t i = 0; i < p->n; i++) {
		int32_t a = path[i], b = path[(i + 1) % p->n];
		p->left[a * p->n + b] -= count;
		if (!p->directed)
			p->left[b * p->n + a] -= count;
	}
}

static void next_ring(struct packing *p, int32_t done);

/* Extends ring `done` behind its `at` vertices. `tight`: so far as the ring before it; rings come in rising order, so
 * that no set of them is tried twice. */
static void extend(struct packing *p, int32_t done, int32_t at, bool tight)
{
	int32_t n = p->n, *path = p->path + (size_t)done * (size_t)n;
	const int32_t *before = tight ? path - n : path; /* read only where there is a ring before */
	if (p->best == p->bound || p->steps <= 0)
		return;
	p->steps--;
	if (at == n) {
		if (!p->left[path[n - 1] * n + path[0]] || (!p->directed && path[1] > path[n - 1]))
			return;
		take(p, path, 1);
		next_ring(p, done + 1);
		take(p, path, -1);
		return;
	}
	for (int32_t v = tight ? before[at] : 1; v < n; v++) {
		if (p->used[v] || !p->left[path[at - 1] * n + v])
			continue;
		p->used[v] = true;
		path[at] = v;
		extend(p, done, at + 1, tight && v == before[at]);
		p->used[v] = false;
	}
}

static void next_ring(struct packing *p, int32_t done)
{
	bool used[RING_PACK_MOST];
	size_t n = (size_t)p->n;
	if (done > p->best) {
		p->best = done;
		memcpy(p->best_path, p->path, n * sizeof *p->path);
	}
	if (p->best == p->bound || done + bound_of(p) <= p->best)
		return;
	memcpy(used, p->used, n);
	memset(p->used, 0, n);
	p->path[(size_t)done * n] = 0;
	p->used[0] = true;
	extend(p, done, 1, done > 0);
	memcpy(p->used, used, n);
}

/* Packs with vertices renamed by `name`, which decides what is tried first. */
static int32_t pack(struct packing *p, const int32_t *width, const int32_t *name, int64_t steps, int32_t at_least,
	int32_t *order)
{
	for (int32_t i = 0; i < p->n; i++)
		for (int32_t j = 0; j < p->n; j++)
			p->left[i * p->n + j] = i == j ? 0 : width[name[i] * p->n + name[j]];
	p->bound = bound_of(p);
	p->best = at_least;
	p->steps = steps;
	if (p->bound > at_least)
		next_ring(p, 0);
	if (p->best == at_least)
		return 0;
	for (int32_t i = 0; i < p->n; i++)
		order[i] = name[p->best_path[i]];
	return p->best;
}

static void shuffle(int32_t *name, int32_t n, uint64_t *state)
{
	for (int32_t i = n - 1; i > 0;
		i--) { /* a fixed sequence (Knuth's MMIX multiplier): the same rings on every run */
		*state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
		int32_t j = (int32_t)((*state >> 33) % (uint64_t)(i + 1)), keep = name[i];
		name[i] = name[j];
		name[j] = keep;
	}
}

/* ---- a square torus ---- */

#define TORUS_RINGS 4 /* two rings without a common link, each both ways */

enum way { RIGHT, DOWN, LEFT, UP, WAYS };

static int32_t beside(int32_t side, int32_t at, enum way way)
{
	const int32_t row = at / side, column = at % side;
	return way == RIGHT  ? row * side + (column + 1) % side
	       : way == LEFT ? row * side + (column + side - 1) % side
	       : way == DOWN ? (row + 1) % side * side + column
	                     : (row + side - 1) % side * side + column;
}

/* The first ring has all rows, joined to the next one along the diagonal: of each square there it takes the vertical
 * links in place of the horizontal ones. What it leaves are all columns, joined in the same squares: the second ring.
 */
static bool on_first_ring(int32_t side, int32_t at, enum way way)
{
	if (way == LEFT || way == UP)
		return on_first_ring(side, beside(side, at, way), way == LEFT ? RIGHT : DOWN);
	const int32_t row = at / side, column = at % side;
	const bool row_wise = way == RIGHT;
	const int32_t square = row_wise ? column : row, other = row_wise ? row : column;
	return (square < side - 1 && (other == square || other == square + 1)) != row_wise;
}

/* Finds the rings of a square torus that is numbered row by row. Returns false where the members are not so joined. */
static bool square_torus(int32_t n, const int32_t *width, int32_t *order)
{
	int32_t side = 1, at = 0, before = -1;
	while (side * side < n)
		side++;
	if (side < 3 || side * side != n)
		return false;
	for (int32_t i = 0; i < n; i++)
		if (!width[i * n + beside(side, i, RIGHT)] || !width[i * n + beside(side, i, DOWN)])
			return false;
	for (int32_t i = 0; i < n; i++) {
		int32_t next = -1;
		order[i] = at;
		for (int way = RIGHT; way < WAYS && next < 0; way++)
			if (on_first_ring(side, at, (enum way)way) && beside(side, at, (enum way)way) != before)
				next = beside(side, at, (enum way)way);
		before = at;
		at = next;
	}
	return at == 0;
}

/* Beyond so many members the search finds a ring or two at best. */
#define SEARCHED_WELL 64

/* Searches; -1 when out of memory. */
static int32_t search(int32_t n, const int32_t *width, int32_t *order)
{
	int32_t rings = 0, name[RING_PACK_MOST], most = 0;
	for (int32_t i = 0; i < n; i++)
		order[i] = name[i] = i;
	if (n == 2)
		return width[1];
	for (int32_t j = 0; j < n; j++)
		most += j ? width[j] : 0;
	struct packing p = {.n = n};
	p.left = calloc((size_t)(n * n), sizeof *p.left);
	p.path = calloc((size_t)n * (size_t)(most + 2), sizeof *p.path);
	p.best_path = calloc((size_t)n, sizeof *p.best_path);
	p.used = calloc((size_t)n, sizeof *p.used);
	if (!p.left || !p.path || !p.best_path || !p.used) {
		rings = -1;
	} else {
		rings = 2 * pack(&p, width, name, STEPS_UNDIRECTED, 0, order);
		p.directed = true;
		uint64_t state = 1;
		for (int i = 0; i < RESTARTS; i++) {
			int32_t more = pack(&p, width, name, STEPS_DIRECTED, rings, order);
			rings = more > rings ? more : rings;
			if (rings == p.bound)
				break;
			shuffle(name, n, &state);
		}
	}
	free(p.left);
	free(p.path);
	free(p.best_path);
	free(p.used);
	return rings;
}

/* Returns the number that divides all widths, and divides them by it. */
static int32_t take_common(int32_t n, const int32_t *width, int32_t *reduced)
{
	int64_t common = 0;
	for (int32_t i = 0; i < n * n; i++)
		common = gcd(common, width[i]);
	for (int32_t i = 0; i < n * n; i++)
		reduced[i] = common ? width[i] / (int32_t)common : 0;
	return (int32_t)common;
}

int32_t ring_pack(int32_t n, const int32_t *width, int32_t *order)
{
	int32_t links = 0;
	if (n < 2 || n > RING_PACK_MOST)
		return 0;
	if (n > SEARCHED_WELL && square_torus(n, width, order))
		return TORUS_RINGS;
	int32_t *reduced = malloc((size_t)(n * n) * sizeof *reduced);
	if (!reduced)
		return -1;
	for (int32_t j = 1; j < n; j++)
		links += width[j];
	/* Three links of each pair are three times the rings of one, which are found sooner. */
	const int32_t common = take_common(n, width, reduced), rings = common > 1 ? search(n, reduced, order) : 0;
	free(reduced);
	return rings < 0 || (rings > 0 && rings * common == links) ? rings * common : search(n, width, order);
}
