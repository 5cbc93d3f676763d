/* Numbers that name their source: {value: 3.35TB/s, source: "a page"}, as files of the catalogue hold them.
 *
 * `unverified: true` marks a number that rests on memory or on a sister part. Quantities carry their unit.
 *
 * A source is a text, or a list of ids and texts in quotes: `source: [nccl-tuning, "a hop over PCIe"]`. An id stands in
 * the file's own mapping `sources:` (id: text), or in configs/sources/shared.yaml where several files need it. The full
 * source joins the texts by "; ", and by a blank behind a text that ends in ':' or ','.
 *
 * `like: NAME` takes over from configs/<kind>/NAME.yaml whatever the file does not give: sections key by key, a number
 * with its source and mark. `key: ~` leaves a key out that the other file has. The other file may be like a third.
 * `shown_as`, `price` and `rent_usd_per_hour` are never taken over: they belong to one product.
 */
#ifndef STEPSIM_BASE_SOURCED_H
#define STEPSIM_BASE_SOURCED_H

#include "base/yaml.h"

/* Reads a file of the catalogue folder `kind`, with what it is like taken over and all sources in full; the keys
 * `sources` and `like` are gone from the tree. ST_INPUT with position: an unknown id or name (with the nearest), an id
 * that nothing uses, files that are like each other in a circle. */
enum status sourced_load(const char *kind, const char *path, struct ydoc **out, struct error *e);

/* Borrowed from the document. */
struct sourced {
	const struct ynode *value;
	const char *source;
	bool unverified;
};

/* Reads {value, source, unverified}. ST_INPUT with position for a bare value, a missing or empty source, and unknown
 * keys. */
enum status sourced_read(const struct ynode *n, struct sourced *out, struct error *e);

#endif
