/* The pieces that were measured, by a 128-bit hash of all that they depend on. Threads may share a table: where one
 * measures a piece that another needs, that one waits for it. */
#ifndef STEPSIM_SIM_PIECE_TABLE_H
#define STEPSIM_SIM_PIECE_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

struct piece_table;
enum status piece_table_create(struct piece_table **out, struct error *e);
void piece_table_destroy(struct piece_table *t); /* NULL-safe */

/* Fills the zeroed figures of a piece. It may find other pieces, but not in a circle. */
typedef enum status piece_fill(void *of, void *figures, struct error *e);

/* Returns the figures of a key, `size` bytes; has fill(of, ...) measure them where they are not known. The table owns
 * them, and never moves them. NULL: failed, as e says; the next who asks tries again. */
const void *piece_table_find(struct piece_table *t, const uint64_t key[2], size_t size, piece_fill *fill, void *of,
	struct error *e);

#endif
