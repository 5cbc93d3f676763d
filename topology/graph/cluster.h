/* Hosts joined by a network. Hosts of the same make share one graph, so that 100,000 GPUs cost what one host costs.
 *
 * Devices are numbered host by host, in each host by GPU number. The network between hosts does not block: a byte
 * leaves by a NIC of its host and enters by one of the other; NIC rates limit it, the network in between adds latency.
 * A GPU uses the NICs nearest to it (fewest levels of the PCI tree), all of them evenly where several are equally near.
 */
#ifndef STEPSIM_TOPOLOGY_GRAPH_CLUSTER_H
#define STEPSIM_TOPOLOGY_GRAPH_CLUSTER_H

#include "topology/graph/graph.h"
#include "topology/graph/route.h"

struct cluster_shape {
	struct graph *graph; /* owned */
	int64_t first_host, hosts;
	int64_t first_device, gpus; /* gpus: of a host */
	uint64_t link_hash;         /* of everything that rates of groups depend on */
	int32_t like; /* the first shape with the same links, GPUs and NICs, whatever its parts are called: what holds
	                 for its groups holds here */
};

struct cluster {
	VEC(struct cluster_shape) shape; /* hosts in order: shape 0's, then shape 1's, ... */
	VEC(char *) host_name;           /* owned; empty while no host has a name; "": this one has none */
	int64_t hosts, devices;
	VEC(int32_t) distinct;    /* shapes that are like none before them */
	double network_latency_s; /* NIC to NIC */
};

struct cluster *cluster_create(double network_latency_s); /* NULL when out of memory */
void cluster_destroy(struct cluster *c);                  /* NULL-safe */

/* Appends `hosts` (at least one) hosts of this make. Takes the graph over, also when it fails. A graph equal to the
 * last shape's in all but the host's name joins it. `name`: of a single host, or NULL. */
enum status cluster_add(struct cluster *c, struct graph *g, int64_t hosts, const char *name, struct error *e);

/* The host and the graph of a device, and its GPU's vertex there. */
struct device_place {
	int64_t host;
	const struct graph *graph; /* NULL: no such device */
	int32_t vertex;
};
struct device_place cluster_device(const struct cluster *c, int64_t device);

/* NICs that a GPU uses: the nearest ones that lead to the network port. Writes up to `most` of them in the order of
 * their numbers; the number of all, -1 when out of memory. */
int32_t cluster_nics(struct router *r, const struct graph *g, int32_t gpu, int32_t *nics, int32_t most);

/* The way between two devices. On one host: `out` alone, as graph_route has it, nics 0. Else by the first of the
 * nearest NICs on either side, both routes as seen from the devices; Bps: of a lone transfer over all `nics` that the
 * end with the lower rate uses; latency_s: the largest on the way (a rank's hop has one). ST_INPUT: no such device;
 * ST_RUN: no way. */
struct cluster_route {
	bool in_node;
	int32_t nics;
	int32_t nic_a, nic_b; /* vertices, -1 on one host */
	struct route out, in; /* from a to nic_a (or to b); from b to nic_b */
	double Bps, latency_s;
};
enum status cluster_route(const struct cluster *c, int64_t a, int64_t b, struct cluster_route *out, struct error *e);

#endif
