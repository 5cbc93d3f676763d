/* Systems that one may have or buy: a file in configs/systems, a file of one's own, or one system line; all three
 * become the same description, and that becomes a link graph.
 *
 * The system line: words separated by blanks, in any order, each once:
 *   node:N        hosts (default: the config's nodes)
 *   gpu:N NAME    GPUs a host, and their name in configs/gpus ("rtx4090"); the name may stand anywhere
 *   pcieG[xL]     PCIe generation and lanes of each GPU (default: the GPU's own)
 *   switch:N      GPUs behind one PCIe switch (default: none, each GPU on its own root port)
 *   cpu:N         sockets (default 2 from 4 GPUs on, else 1), GPUs spread evenly
 *   peer:yes|no   whether GPUs reach each other over PCIe (default: what the GPU's driver allows)
 *   nvlink | nvswitch | mesh | bridge | torus | none   how GPUs are joined (default: what the GPU's file has: NVSwitch
 * for SXM parts, a mesh or torus for others with links of their own, nothing for PCIe cards; `nvlink` asks a card for
 * its bridges, `pcie` is another word for none) nic:NxRATE    NICs a host ("nic:1x100Gb/s", "nic:8x400Gb"; `Gb` is
 * Gb/s), spread over the GPUs (default: none) fabric:NAME   the network between hosts, a name in configs/fabrics
 * ("infiniband", "roce", "efa", "tcp"; default: infiniband for NVSwitch hosts with NICs of 200 Gb/s and more, else
 * ethernet-unknown)
 */
#ifndef STEPSIM_TOPOLOGY_CATALOGUE_SYSTEM_H
#define STEPSIM_TOPOLOGY_CATALOGUE_SYSTEM_H

#include "topology/graph/cluster.h"
#include "topology/catalogue/device.h"
#include "topology/catalogue/network.h"

enum fabric_kind {
	FABRIC_NONE,
	FABRIC_NVSWITCH,
	FABRIC_MESH,
	FABRIC_BRIDGE,
	FABRIC_TORUS,
	FABRIC_KINDS
}; /* none: over PCIe only. mesh: by `wiring`. bridge: pairs. torus: TPU, Trainium */

const char *fabric_name(enum fabric_kind k); /* "NVSwitch", "mesh", "bridges", "torus", "PCIe" */

struct system_spec {
	char id[64], name[128],
		source[256]; /* source: "catalogue configs/systems/dgx-h100.yaml", a path, or the line itself */
	struct device_spec device;
	int64_t nodes; /* 0: left to the config */
	int64_t gpus;  /* a host */
	enum fabric_kind fabric;
	char wiring[512]; /* mesh and bridge: "0-1 0-2:2 ..." GPU pairs with their links (default 1); empty: mesh all to
	                     all, bridge 0-1 2-3 ... with all links of the GPU */
	double intra_datasheet_Bps, intra_usable_Bps,
		intra_latency_s; /* of one GPU, one direction, all its links together; pcie: of one GPU's slot */
	int64_t sockets, gpus_per_switch, nics_per_switch; /* PCIe: 0 GPUs a switch: each on its own root port */
	int32_t pcie_gen, pcie_lanes;
	double uplink_Bps; /* of a PCIe switch; 0: as one slot */
	bool c2c;          /* GPUs sit on NVLink-C2C of their CPU, not on PCIe */
	char cpu[96];      /* the host's processors, in words */
	double socket_Bps; /* between sockets; 0: by the processors' name, or without one what the slowest that have
	                      this PCIe generation do */
	bool no_peer;      /* GPUs reach each other through host memory only */
	int64_t nics;
	double nic_Bps, nic_latency_s;
	struct network_spec network; /* what the NICs lead to; without NICs what such hosts would have */
	double power_W, price_usd, rent_usd_per_hour;          /* a host; 0: not known */
	char price_note[192], rent_note[192], power_note[192]; /* their sources */
	bool price_unverified, rent_unverified,
		power_unverified; /* no step time depends on them: they do not mark the system */
	bool from_line;
	bool unverified;
};

/* A name of configs/systems, a path (with '/' or ending in ".yaml"), or a system line (with a ':'). ST_INPUT with
 * position, or the word of the line, and the nearest valid one. */
enum status system_load(const char *text, struct system_spec *out, struct error *e);

#define SYSTEM_GPUS 1024 /* of a host, at most */

/* The graph of one host of it, with `gpus` GPUs in use (0: all; more than it has: as many as asked, built alike).
 * Fewer: spread evenly over the host where an NVLink switch joins them all, so that each finds its NICs; else the first
 * ones. ST_INPUT where they cannot be joined as the description says, or there are more than SYSTEM_GPUS. */
enum status system_graph(const struct system_spec *s, int64_t gpus, struct graph **out, struct error *e);

#endif
