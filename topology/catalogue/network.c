#include "topology/catalogue/network.h"

#include <stddef.h>
#include <stdio.h>

#include "base/array.h"
#include "base/paths.h"
#include "topology/catalogue/catalogue.h"

#define INFINIBAND_FROM_Bps 25e9
#define AT(field) offsetof(struct network_spec, field)
#define RATIO(path, min, max, field) \
	{ \
		path, CATALOGUE_DOUBLE, true, UNIT_NONE, min, max, AT(field), 0 \
	}
#define TIME(path, field) \
	{ \
		path, CATALOGUE_DOUBLE, true, UNIT_SECOND, 0, 1, AT(field), 0 \
	}
#define RATE(path, required, field) \
	{ \
		path, CATALOGUE_DOUBLE, required, UNIT_BYTE_PER_S, 1e6, 1e15, AT(field), 0 \
	}
#define SIZE(path, field) \
	{ \
		path, CATALOGUE_BYTES, true, UNIT_BYTE, 1, 1e12, AT(field), 0 \
	}
#define YES(path, field) \
	{ \
		path, CATALOGUE_BOOL, true, UNIT_NONE, 0, 1, AT(field), 0 \
	}
#define MAY(path, field) \
	{ \
		path, CATALOGUE_BOOL, false, UNIT_NONE, 0, 1, AT(field), 0 \
	}

static const struct catalogue_key keys[] = {
	{"name", CATALOGUE_TEXT, true, UNIT_NONE, 0, 0, AT(name), sizeof((struct network_spec *)0)->name},
	RATIO("rate.share", 0.001, 1, share),
	RATE("rate.node", false, node_Bps),
	YES("protocol.ll128", ll128),
	MAY("protocol.simple_only", simple_only),
	MAY("protocol.no_tree", no_tree),
	MAY("protocol.no_nvls", no_nvls),
	YES("protocol.sharp", sharp),
	RATIO("ring.hiding", 1, 16, hiding),
	TIME("ring.ll", ring_ll_s),
	TIME("ring.ll_far", ring_ll_far_s),
	{"ring.far_hosts", CATALOGUE_INT64, true, UNIT_NONE, 1, 1e6, AT(far_hosts), 0},
	TIME("ring.ll128", ring_ll128_s),
	TIME("ring.simple_small", simple_small_s),
	TIME("ring.simple_middle", simple_middle_s),
	TIME("ring.simple_large", simple_large_s),
	SIZE("ring.middle_from", simple_middle_B),
	SIZE("ring.large_from", simple_large_B),
	RATE("ring.block_ll", true, block_ll_Bps),
	RATE("ring.block_ll128", true, block_ll128_Bps),
	TIME("tree.ll", tree_ll_s),
	TIME("tree.ll128", tree_ll128_s),
	RATE("tree.block", true, block_tree_Bps),
	RATIO("alltoall.share", 0.001, 1, alltoall_share),
	RATE("alltoall.node", false, alltoall_node_Bps),
	RATIO("alltoall.share_power", 0, 1, alltoall_share_power),
	TIME("alltoall.base", alltoall_base_s),
	TIME("alltoall.peer_small", peer_small_s),
	TIME("alltoall.peer_large", peer_large_s),
	SIZE("alltoall.large_from", peer_large_B),
	RATIO("alltoall.peer_power", 0, 1, peer_power),
	RATIO("pair.share", 0.001, 1, pair_share),
	RATIO("pair.far_share", 0.001, 1, far_pair_share),
	RATIO("shared.crowding", 0, 2, crowding),
	RATIO("uncertainty.small", 0, 2, sigma_small),
	RATIO("uncertainty.large", 0, 2, sigma_large),
};

const char *network_by_default(bool modules, double nic_Bps)
{
	return modules && nic_Bps >= INFINIBAND_FROM_Bps ? "infiniband" : "ethernet-unknown";
}

void network_scale_times(struct network_spec *n, double factor)
{
	double *const times[] = {&n->ring_ll_s, &n->ring_ll128_s, &n->ring_ll_far_s, &n->tree_ll_s, &n->tree_ll128_s,
		&n->simple_small_s, &n->simple_middle_s, &n->simple_large_s, &n->alltoall_base_s, &n->peer_small_s,
		&n->peer_large_s};
	for (size_t i = 0; i < COUNT(times); i++)
		*times[i] *= factor;
}

enum status network_load(const char *id, struct network_spec *out, struct error *e)
{
	char path[PATH_MAX_LEN];
	struct network_spec n = {0};
	enum status st = catalogue_find("fabrics", "fabric", id, path, e);
	if (st || (st = catalogue_read("fabrics", path, keys, COUNT(keys), &n, &n.unverified, e)))
		return st;
	if (n.simple_middle_s < n.simple_small_s || n.simple_large_s < n.simple_middle_s ||
		n.peer_large_s < n.peer_small_s || n.ring_ll_far_s < n.ring_ll_s ||
		n.simple_large_B < n.simple_middle_B)
		return error_set(e, ST_INPUT, "%s: a step costs less for larger blocks or more hosts", path);
	snprintf(n.id, sizeof n.id, "%s", id);
	*out = n;
	return ST_OK;
}
