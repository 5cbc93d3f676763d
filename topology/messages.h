/* What messages between ranks show of a cluster's links: their classes, and which hosts are in one rack. */
#ifndef STEPSIM_TOPOLOGY_MESSAGES_H
#define STEPSIM_TOPOLOGY_MESSAGES_H

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>

#include "base/status.h"

/* Hosts of one rack reach each other at more than this times the rate between racks. */
#define MESSAGES_RACK_RATIO 1.5
#define MESSAGES_NAME 64

enum link_class { LINK_IN_HOST, LINK_IN_RACK, LINK_ACROSS_RACKS, LINK_CLASS_COUNT };

/* A pair of hosts, or of ranks inside one (a == b); one pair at a time. */
struct message_pair {
	int64_t a, b;
	double latency_s, Bps; /* one way; positive */
};

struct message_links {
	struct {
		int64_t pairs;         /* 0: none of this class */
		double latency_s, Bps; /* medians */
	} of[LINK_CLASS_COUNT];
	int64_t hosts, racks;
	int64_t *rack;               /* of each host, counted in the order of hosts; owned */
	char (*name)[MESSAGES_NAME]; /* of each host; owned */
};

/* Finds racks and classes. Racks are there where one rate parts the pairs: all pairs inside of each rack are faster by
 * MESSAGES_RACK_RATIO than all pairs between racks. Else all hosts are in one. `pairs`: each two hosts once, and what
 * pairs inside hosts there are. `names`: of the hosts. */
enum status message_links_find(const struct message_pair *pairs, size_t n, const char *const *names, int64_t hosts,
	struct message_links *out, struct error *e);
void message_links_free(struct message_links *l); /* NULL-safe */

/* A table of the classes, and a line of the racks. */
enum status message_links_text(const struct message_links *l, FILE *out, struct error *e);
/* Returns {"in_host", "in_rack", "across_racks": null or {"pairs", "latency_s", "bandwidth_Bps"}, "racks": [[names]]},
 * a new reference; NULL where memory is short. */
json_t *message_links_json(const struct message_links *l);

#endif
