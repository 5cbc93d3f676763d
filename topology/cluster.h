/* Hosts joined by a network. Hosts of the same make share one graph, so that 100,000 GPUs cost what one host costs.
 *
 * Devices are numbered host by host, in each host by GPU number. The network between hosts does not block: a byte leaves by a NIC of its host and enters by one of the other; NIC rates limit it, the
 * network in between adds latency. A GPU uses the NICs nearest to it (fewest levels of the PCI tree), all of them evenly where several are equally near. */
#ifndef STEPSIM_TOPOLOGY_CLUSTER_H
#define STEPSIM_TOPOLOGY_CLUSTER_H

#include "topology/graph.h"

struct cluster_shape {
	struct graph *graph;  /* owned */
	int64_t first_host, hosts;
};

struct cluster {
	VEC(struct cluster_shape) shape; /* hosts in order: shape 0's, then shape 1's, ... */
	VEC(char *) host_name;           /* owned; empty when hosts are alike and unnamed */
	int64_t hosts, devices;
	double network_latency_s;        /* NIC to NIC */
};

struct cluster *cluster_create(double network_latency_s); /* NULL when out of memory */
void cluster_destroy(struct cluster *c);                  /* NULL-safe */

/* Appends `hosts` hosts of this make. Takes the graph over, also when it fails. A graph equal to the last shape's in all but the host's name joins it. `name`: of a single host, or NULL. */
enum status cluster_add(struct cluster *c, struct graph *g, int64_t hosts, const char *name, struct error *e);

/* The host and the graph of a device, and its GPU's vertex there. */
struct device_place {
	int64_t host;
	const struct graph *graph;
	int32_t vertex;
};
struct device_place cluster_device(const struct cluster *c, int64_t device);

#endif
