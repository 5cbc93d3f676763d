/* The machine a prediction is for: devices, how many, the links between them, and the profile measured on it, if any.
 */
#ifndef STEPSIM_TOPOLOGY_MACHINE_H
#define STEPSIM_TOPOLOGY_MACHINE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "topology/catalogue/device.h"
#include "topology/catalogue/network.h"
#include "topology/catalogue/parameters.h"
#include "topology/graph/group.h"
#include "topology/profile.h"

/* One direction, of one device. */
struct link_spec {
	double latency_s, Bps;
};

/* What outputs of nccl-tests say of the links, over what the catalogue says: factors of rates and of times; 0: 1. */
struct link_factors {
	double inside, inside_latency;   /* of a host's links; of what a collective of no bytes takes */
	double network, network_latency; /* of the NICs; of a step between hosts, on top of the other */
};

/* How fast cores are now, over what their profile says; 0: 1. */
struct pace {
	double compute, memory;
};

struct machine {
	char name[128];
	char source[256]; /* "catalogue configs/systems/dgx-h100.yaml", "hwloc + profile ..." */
	struct device_spec device;
	int64_t nodes, devices_per_node;
	struct link_spec intra, inter; /* intra: what one pair gets, as usable, not as the datasheet has it; inter: a
	                                  device's share of its node's NICs */
	struct network_spec network;   /* between nodes */
	struct link_factors links;     /* of the rates and times of links and network */
	int64_t box_gpus;              /* GPUs of a node, in use or not; 0: not known */
	struct cluster *cluster;       /* owned: its hosts' link graph; NULL: intra and inter are all that is known */
	struct machine_groups *groups; /* owned: answers about the cluster that were found once */
	bool unverified;
	const struct parameters *parameters; /* borrowed: the model's constants, of the process */
	const struct profile *profile;       /* borrowed; NULL: datasheet only */
	struct pace pace;                    /* of the run that is about to begin */
	double borrowed_scale; /* 0: the profile is of this placement; else it is another placement's, and times of
	                          compute are this many times its own */
};

/* A system as system_load takes it (a name, a file, a system line); nodes and gpus_per_node (0: the system's own) as
 * in the config. Where a line says its hosts and `nodes` is 1, the config's default, the line's count is taken.
 * ST_INPUT with the nearest name, or when both counts are given and differ. The caller frees it with machine_free. */
enum status machine_load(const char *system, int64_t nodes, int64_t gpus_per_node, struct machine *out,
	struct error *e);

void machine_free(struct machine *m); /* NULL-safe members; a copy shares them: free one of them */

/* This machine as hwloc sees it: a device is `cores` cores of the host; links are unknown until a profile says. */
enum status machine_this(int64_t ranks, int64_t cores_per_rank, struct machine *out, struct error *e);

/* Puts the profile's values in the place of the machine's: a host's rates, a GPU's memory share and launch time, and
 * the links. A GPU's datasheet peaks stay. Borrows the profile. */
void machine_attach_profile(struct machine *m, const struct profile *p);

/* Hosts as they were discovered, with `per_host` GPUs of each in use, all of the kind that the driver shows as `shown`
 * with `mem_B` of memory. Takes `hosts` over, also when it fails. Where discovery found no such GPUs (no nvidia-smi,
 * nothing in PCI), links are those that the kind comes with, and the source says so. ST_INPUT: a GPU that the catalogue
 * does not know is never guessed. */
enum status machine_of_gpus(struct cluster *hosts, int64_t per_host, const char *shown, uint64_t mem_B,
	struct machine *out, struct error *e);

/* A group of `size` ranks whose neighbours are `stride` ranks apart (ranks fill nodes in order), among all such groups,
 * which communicate at once: of a machine with a cluster, what its link graph gives (topology/graph/group.h); else, and
 * where a profile has measured the path between ranks, what intra and inter give. There the members on one node use the
 * NICs' shares of all of them, as NCCL's rings do, each of which enters and leaves a node at another GPU. size 1: no
 * latency, infinite rates; rate 0: not known. May be called by several threads. */
enum status machine_group(const struct machine *m, int64_t size, int64_t stride, struct group *out, struct error *e);

/* Returns true where no link graph is known, or a profile has measured the path between ranks: intra and inter then
 * give all groups. machine_group_by_pairs fills `out` for a group of two or more from such links. */
bool machine_has_pairs_only(const struct machine *m);
void machine_group_by_pairs(const struct machine *m, struct link_spec intra, struct link_spec inter, int64_t size,
	int64_t stride, struct group *out);

/* Returns the share of a device's memory that plans fill where some plan needs no more: step.memory_full of
 * configs/model; 1 on a host's cores. */
double machine_usual_share(const struct machine *m);

/* Finds the rate of the first device of the first host to the second host, when it sends alone. The machine has a
 * cluster of two hosts or more. May be called by several threads. */
enum status machine_exit(const struct machine *m, double *out_Bps, struct error *e);

/* True when every group of `size` ranks, neighbours `stride` apart, lies inside one node. */
bool machine_group_in_node(const struct machine *m, int64_t size, int64_t stride);

/* The profile of another number of ranks on the same host, for want of one of this: compute takes longer as a rank has
 * less of the host's cores, and what passes between ranks, where the profile has no figure for it, goes in and out of
 * memory. Predictions with it say so. */
void machine_borrow_profile(struct machine *m, const struct profile *p, double cores_per_rank);

/* Returns the JSON's "system": the figures used and their sources. The caller owns the reference. */
json_t *machine_json(const struct machine *m);

/* Host facts through hwloc: cores that this process may use, and memory available to it (cgroup limit included). */
struct host_facts {
	char host[64], cpu[128];
	int64_t cores; /* physical cores allowed to this process */
	uint64_t mem_total_B, mem_available_B;
	uint64_t l2_B, l3_B;
	int64_t numa_nodes, packages;
};
enum status host_facts_read(struct host_facts *out, struct error *e);

/* Reads this host's memory from the kernel, which also counts memory that no NUMA node lists, and what this process may
 * still use of it (cgroup limits included). */
enum status host_memory_read(uint64_t *total_B, uint64_t *available_B, struct error *e);

/* `cores`, or fewer where a cgroup of this process has less CPU time than that (cpu.max of version 2, cpu.cfs_quota_us
 * of version 1; at every level up to the mount). */
double host_cpu_time(double cores);
/* The same, and the memory that the cgroups leave of `available_B`, of a machine whose /proc and /sys are below `root`.
 * Cores that a cgroup's cpuset withholds are not here: the kernel takes them out of the affinity mask. */
double host_cpu_time_under(const char *root, double cores);
uint64_t host_memory_under(const char *root, uint64_t available_B);
/* The same in whole cores, at least 1. */
int64_t host_quota(int64_t cores);

#endif
