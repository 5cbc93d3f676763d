/* The table of measured pieces: each is measured once, whatever the threads that ask for it; a piece may need another;
 * what failed is tried again. */
#include "sim/search/piece_table.h"

#include <stdatomic.h>
#include <time.h>

#include "base/threads.h"
#include "tests/unit/harness.h"

enum { PIECES = 600, THREADS = 4 };

static struct piece_table *table;
static atomic_int measured[2 * PIECES];

/* Piece i < PIECES is 7 + the piece PIECES + i / 2, which is its number: two pieces need each of these. */
static enum status fill(void *number, void *figures, struct error *e);

static const int64_t *find(int64_t i, struct error *e)
{
	const uint64_t key[2] = {(uint64_t)i % 5, (uint64_t)i}; /* five places for all: most are taken */
	return piece_table_find(table, key, sizeof(int64_t), fill, &i, e);
}

static enum status fill(void *number, void *figures, struct error *e)
{
	const int64_t i = *(int64_t *)number;
	int64_t *out = figures;
	const struct timespec while_others_ask = {0, 20000};
	measured[i]++;
	nanosleep(&while_others_ask, NULL);
	if (i >= PIECES) {
		*out += i;
		return ST_OK;
	}
	const int64_t *other = find(PIECES + i / 2, e);
	*out += 7 + (other ? *other : 0);
	return other ? ST_OK : e->status;
}

static atomic_int wrong;

static void ask(void *of, int thread, size_t i)
{
	(void)of, (void)thread;
	struct error e = {0};
	const int64_t k = (int64_t)i / THREADS; /* THREADS times each, one after the other */
	const int64_t *x = find(k, &e);
	wrong += !x || *x != 7 + PIECES + k / 2;
}

static void test_once_on_several_threads(void)
{
	struct error e = {0};
	CU_ASSERT_EQUAL_FATAL(piece_table_create(&table, &e), ST_OK);
	threads_run(THREADS, (size_t)THREADS * PIECES, ask, NULL);
	CU_ASSERT_EQUAL(wrong, 0);
	for (int i = 0; i < PIECES + PIECES / 2; i++)
		CU_ASSERT_EQUAL(measured[i], 1);
	piece_table_destroy(table);
}

static enum status fail_once(void *times, void *figures, struct error *e)
{
	int *n = times;
	*(int64_t *)figures += 5; /* what a failure leaves is gone at the next try */
	return (*n)++ == 0 ? error_set(e, ST_RUN, "no memory") : ST_OK;
}

static void test_failed_is_tried_again(void)
{
	struct error e = {0};
	const uint64_t key[2] = {1, 2};
	int times = 0;
	CU_ASSERT_EQUAL_FATAL(piece_table_create(&table, &e), ST_OK);
	CU_ASSERT_PTR_NULL(piece_table_find(table, key, sizeof(int64_t), fail_once, &times, &e));
	CU_ASSERT_EQUAL(e.status, ST_RUN);
	for (int i = 0; i < 2; i++) {
		const int64_t *x = piece_table_find(table, key, sizeof(int64_t), fail_once, &times, &e);
		CU_ASSERT_PTR_NOT_NULL_FATAL(x);
		CU_ASSERT_EQUAL(*x, 5);
	}
	CU_ASSERT_EQUAL(times, 2);
	piece_table_destroy(table);
}

UNIT_MAIN("table of pieces", {"measured once on several threads", test_once_on_several_threads},
	{"what failed is tried again", test_failed_is_tried_again})
