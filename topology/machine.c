#include "topology/machine.h"

#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "topology/catalogue/system.h"

/* ---- described systems ---- */

/* Answers of cluster_mesh_groups, which searches: a prediction asks for the same few groups over and over, from several
 * threads where plans are compared. */
struct machine_groups {
	pthread_mutex_t lock;
	VEC(struct known_group) known;
	double exit_Bps; /* 0: not found yet */
};

struct known_group {
	int64_t size, stride;
	struct group group;
};

void machine_free(struct machine *m)
{
	cluster_destroy(m->cluster);
	if (m->groups) {
		pthread_mutex_destroy(&m->groups->lock);
		vec_free(&m->groups->known);
		free(m->groups);
	}
	*m = (struct machine){0};
}

static enum status join_hosts(struct machine *m, const struct system_spec *s, struct error *e)
{
	struct graph *g = NULL;
	struct cluster *c = NULL;
	enum status st = system_graph(s, m->devices_per_node, &g, e);
	if (st)
		return st;
	if (!(c = cluster_create(s->nic_latency_s)) || !(m->groups = calloc(1, sizeof *m->groups))) {
		graph_destroy(g);
		cluster_destroy(c);
		return error_nomem(e, "the machine's links");
	}
	pthread_mutex_init(&m->groups->lock, NULL);
	m->cluster = c;
	return cluster_add(c, g, m->nodes, NULL, e);
}

/* Finds a device's share of its host's NICs when all devices send to other hosts. It looks at two hosts, also where the
 * machine has one. */
static enum status nic_share(const struct machine *m, const struct system_spec *s, struct link_spec *out,
	struct error *e)
{
	struct group g = {0};
	*out = (struct link_spec){s->nic_latency_s, 0};
	if (s->nics == 0)
		return ST_OK;
	struct machine two = {.nodes = 2, .devices_per_node = m->devices_per_node};
	enum status st = join_hosts(&two, s, e);
	if (!st && !(st = machine_group(&two, 2, two.devices_per_node, &g, e)))
		out->Bps = g.network_Bps;
	machine_free(&two);
	return st;
}

static enum status check_counts(const char *system, const struct system_spec *s, int64_t nodes, int64_t gpus_per_node,
	struct machine *m, struct error *e)
{
	if (s->nodes > 0 && nodes != 1 && nodes != s->nodes)
		return error_set(e, ST_INPUT,
			"cluster.nodes is %" PRId64 ", but the system line '%.60s' has node:%" PRId64
			": give one of them",
			nodes, system, s->nodes);
	if (s->from_line && gpus_per_node > s->gpus)
		return error_set(e, ST_INPUT,
			"cluster.gpus_per_node is %" PRId64 ", but the system line '%.60s' has gpu:%" PRId64,
			gpus_per_node, system, s->gpus);
	m->nodes = s->nodes > 0 ? s->nodes : nodes;
	if (m->nodes > 1 && s->nics == 0)
		return error_set(e, ST_INPUT, "%s: no NIC, so %" PRId64 " nodes of it cannot be joined", s->name,
			m->nodes);
	return ST_OK;
}

enum status machine_load(const char *system, int64_t nodes, int64_t gpus_per_node, struct machine *out, struct error *e)
{
	struct system_spec s;
	struct machine m = {0};
	struct group pair = {0};
	if (nodes < 1 || gpus_per_node < 0)
		return error_set(e, ST_INPUT,
			"system '%.60s': %" PRId64 " nodes with %" PRId64 " devices: expected at least one", system,
			nodes, gpus_per_node);
	enum status st = system_load(system, &s, e);
	if (st || (st = check_counts(system, &s, nodes, gpus_per_node, &m, e)) ||
		(st = parameters_load(&m.parameters, e)))
		return st;
	m.devices_per_node = gpus_per_node ? gpus_per_node : s.gpus;
	m.device = s.device;
	m.network = s.network;
	m.box_gpus = s.gpus;
	m.unverified = s.unverified;
	snprintf(m.name, sizeof m.name, "%s", s.name);
	snprintf(m.source, sizeof m.source, s.from_line ? "system line: %.200s" : "%s", s.source);
	if ((st = join_hosts(&m, &s, e)))
		goto out;
	m.intra = (struct link_spec){s.intra_latency_s, s.intra_usable_Bps};
	if ((st = nic_share(&m, &s, &m.inter, e)))
		goto out;
	if (m.devices_per_node > 1) {
		if ((st = machine_group(&m, m.devices_per_node, 1, &pair, e)))
			goto out;
		m.intra = (struct link_spec){pair.ring_latency_s, pair.pair_Bps};
	}
	*out = m;
out:
	if (st)
		machine_free(&m);
	return st;
}

/* ---- this machine's GPUs ---- */

static bool has_gpus(const struct cluster *c, int64_t per_host)
{
	for (size_t i = 0; i < c->shape.n; i++)
		if ((int64_t)c->shape.at[i].graph->gpu.n != per_host) /* devices are numbered through: a host whose GPUs
		                                                         are not all in use would shift them */
			return false;
	return c->shape.n > 0;
}

static enum status machine_of_kind(const char *id, int64_t nodes, int64_t per_host, struct machine *out,
	struct error *e)
{
	char line[160];
	snprintf(line, sizeof line, "gpu:%" PRId64 " %.63s%s", per_host, id, nodes > 1 ? " nic:1x100Gb" : "");
	enum status st = machine_load(line, nodes, per_host, out, e);
	if (!st)
		snprintf(out->source, sizeof out->source,
			"catalogue configs/gpus/%s.yaml, links as such GPUs come with them%s", id,
			nodes > 1 ? " and one 100 Gb/s NIC a host" : "");
	return st;
}

/* No driver names the network: as a description without its name is taken. */
static enum status network_of_hosts(const struct cluster *c, struct network_spec *out, struct error *e)
{
	const struct graph *g = c->shape.at[0].graph;
	const char *fabric = graph_fabric(g);
	double nic_Bps = 0;
	for (size_t i = 0; i < g->nic.n; i++)
		nic_Bps = fmax(nic_Bps, g->vertex.at[g->nic.at[i]].nic.Bps);
	const bool modules = strcmp(fabric, "nvswitch") == 0 || strcmp(fabric, "mesh") == 0;
	return network_load(network_by_default(modules, nic_Bps), out, e);
}

enum status machine_of_gpus(struct cluster *hosts, int64_t per_host, const char *shown, uint64_t mem_B,
	struct machine *out, struct error *e)
{
	struct machine m = {.nodes = hosts->hosts, .devices_per_node = per_host};
	struct group pair = {0};
	char id[DEVICE_ID];
	enum status st = device_by_shown_name(shown, mem_B, id, e);
	if (!st && !id[0])
		st = error_set(e, ST_INPUT,
			"the catalogue has no GPU that a driver shows as '%s' with %.0f GiB: add a file to "
			"configs/gpus with it in `shown_as`, or name one with cluster.system",
			shown, (double)mem_B / (1 << 30));
	if (st)
		goto out;
	if (!has_gpus(hosts, per_host)) {
		st = machine_of_kind(id, hosts->hosts, per_host, &m, e);
		goto out;
	}
	if ((st = device_load(id, &m.device, e)) || (st = parameters_load(&m.parameters, e)))
		goto out;
	if (!(m.groups = calloc(1, sizeof *m.groups))) {
		st = error_nomem(e, "the machine's links");
		goto out;
	}
	pthread_mutex_init(&m.groups->lock, NULL);
	m.cluster = hosts;
	hosts = NULL;
	m.unverified = m.device.unverified;
	snprintf(m.name, sizeof m.name, "%" PRId64 " x %.100s", m.nodes * per_host, m.device.name);
	snprintf(m.source, sizeof m.source, "discovered (%s) + catalogue configs/gpus/%s.yaml",
		evidence_name(m.cluster->shape.at[0].graph->source), id);
	if ((st = network_of_hosts(m.cluster, &m.network, e)))
		goto out;
	if (per_host > 1 && !(st = machine_group(&m, per_host, 1, &pair, e)))
		m.intra = (struct link_spec){pair.ring_latency_s, pair.pair_Bps};
	if (!st && m.nodes > 1 && !(st = machine_group(&m, m.nodes, per_host, &pair, e)))
		m.inter = (struct link_spec){pair.ring_latency_s, pair.network_Bps};
out:
	cluster_destroy(hosts);
	if (st)
		machine_free(&m);
	else
		*out = m;
	return st;
}

/* ---- this machine ---- */

enum status machine_this(int64_t ranks, int64_t cores_per_rank, struct machine *out, struct error *e)
{
	struct host_facts host;
	enum status st = host_facts_read(&host, e);
	if (st)
		return st;
	memset(out, 0, sizeof *out);
	snprintf(out->name, sizeof out->name, "%s", host.host);
	snprintf(out->source, sizeof out->source, "hwloc");
	snprintf(out->device.id, sizeof out->device.id, "host");
	snprintf(out->device.name, sizeof out->device.name, "%" PRId64 " core%s of %.90s", cores_per_rank,
		cores_per_rank == 1 ? "" : "s", host.cpu);
	out->device.is_host = true;
	out->device.mem_B = host.mem_available_B / (uint64_t)(ranks > 0 ? ranks : 1);
	out->device.l2_B = host.l2_B;
	out->device.gemm_share = out->device.mem_share = 1; /* what was measured is what is reached */
	out->nodes = 1;
	out->devices_per_node = ranks;
	return parameters_load(&out->parameters, e);
}

/* Its datasheet peaks stay, which MFU is measured against: what memory reaches becomes a share of them. */
static void attach_to_gpu(struct device_spec *d, const struct profile *p)
{
	double mem = profile_get_value(p, PROFILE_MEM_BPS, 0);
	if (mem > 0 && d->mem_Bps > 0)
		d->mem_share = mem / d->mem_Bps;
	d->launch_s = profile_get_value(p, PROFILE_LAUNCH_S, d->launch_s);
}

static void attach_to_host(struct device_spec *d, const struct profile *p)
{
	double peak = profile_get_value(p, PROFILE_PEAK "fp32", 0), mem = profile_get_value(p, PROFILE_MEM_BPS, 0);
	if (peak > 0) {
		d->matrix_flop_per_s[DT_FP32] = d->vector_flop_per_s =
			peak; /* a core's matrix and vector units are the same */
		d->gemm_share = 1;
	}
	if (mem > 0) {
		d->mem_Bps = mem;
		d->mem_share = 1;
	}
	d->launch_s = profile_get_value(p, PROFILE_CALL_S, d->launch_s);
}

void machine_attach_profile(struct machine *m, const struct profile *p)
{
	m->profile = p;
	(m->device.is_host ? attach_to_host : attach_to_gpu)(&m->device, p);
	m->intra.latency_s = profile_get_value(p, PROFILE_P2P_LATENCY_S, m->intra.latency_s);
	m->intra.Bps = profile_get_value(p, PROFILE_P2P_BPS, m->intra.Bps);
	if (m->device.is_host) /* where ranks of one host alone were measured, their path stands for all */
		m->inter = (struct link_spec){profile_get_value(p, PROFILE_BETWEEN_LATENCY_S, m->intra.latency_s),
			profile_get_value(p, PROFILE_BETWEEN_BPS, m->intra.Bps)};
	size_t len = strlen(m->source);
	snprintf(m->source + len, sizeof m->source - len, " + profile of %.32s", p->date);
}

void machine_borrow_profile(struct machine *m, const struct profile *p, double cores_per_rank)
{
	machine_attach_profile(m, p);
	m->borrowed_scale = (double)p->key.cores_per_rank / cores_per_rank;
	m->device.matrix_flop_per_s[DT_FP32] /= m->borrowed_scale;
	m->device.vector_flop_per_s /= m->borrowed_scale;
	if (!(m->intra.Bps > 0)) {
		m->intra = (struct link_spec){1e-6, m->device.mem_Bps / 2 / (double)m->devices_per_node};
		m->inter = m->intra;
	}
}

/* ---- groups ---- */

/* Groups begin at multiples of size x stride: all lie inside nodes only where nodes are cut into whole groups; else the
 * worst one counts. */
double machine_usual_share(const struct machine *m) { return m->device.is_host ? 1 : m->parameters->step.memory_full; }

bool machine_group_in_node(const struct machine *m, int64_t size, int64_t stride)
{
	int64_t block = size * stride;
	return m->nodes == 1 || (block <= m->devices_per_node && m->devices_per_node % block == 0);
}

static struct link_spec link_by_pairs(const struct machine *m, struct link_spec intra, struct link_spec inter,
	int64_t size, int64_t stride)
{
	if (machine_group_in_node(m, size, stride))
		return intra;
	int64_t per_node = (m->devices_per_node + stride - 1) / stride; /* members that one node holds */
	if (per_node >= size)
		per_node = size - 1; /* a group that straddles a boundary: some pair of neighbours is on two nodes */
	int64_t nodes = (size + per_node - 1) / per_node;
	struct link_spec link = {
		.latency_s = ((double)nodes * inter.latency_s + (double)(size - nodes) * intra.latency_s) /
	                     (double)size,
		.Bps = (double)per_node * inter.Bps,
	};
	if (per_node > 1)
		link.Bps = fmin(link.Bps, intra.Bps);
	return link;
}

void machine_group_by_pairs(const struct machine *m, struct link_spec intra, struct link_spec inter, int64_t size,
	int64_t stride, struct group *out)
{
	bool in_node = machine_group_in_node(m, size, stride);
	int64_t per_node = in_node ? size : (m->devices_per_node + stride - 1) / stride;
	struct link_spec link = link_by_pairs(m, intra, inter, size, stride);
	*out = (struct group){
		.size = size,
		.hosts = (size + per_node - 1) / per_node,
		.in_node = in_node,
		.ring_Bps = link.Bps,
		.ring_latency_s = link.latency_s,
		.rings = 1,
		.pair_Bps = in_node ? intra.Bps : inter.Bps,
		.network_Bps = in_node ? 0 : inter.Bps,
		.bottleneck = in_node ? LINK_LOCAL : LINK_NETWORK,
	};
	snprintf(out->bottleneck_text, sizeof out->bottleneck_text, "%s",
		in_node ? "the path between ranks of one host" : "the path between hosts");
}

/* Rates that a profile measured between ranks override those of the link graph. */
bool machine_has_pairs_only(const struct machine *m)
{
	return !m->cluster || (m->profile && profile_get_value(m->profile, PROFILE_P2P_BPS, 0) > 0);
}

static enum status group_of_cluster(const struct machine *m, int64_t size, int64_t stride, struct group *out,
	struct error *e)
{
	struct machine_groups *groups = m->groups;
	enum status st = ST_OK;
	pthread_mutex_lock(&groups->lock);
	for (size_t i = 0; i < groups->known.n; i++) {
		const struct known_group *k = &groups->known.at[i];
		if (k->size == size && k->stride == stride) {
			*out = k->group;
			goto out;
		}
	}
	st = cluster_mesh_groups(m->cluster, size, stride, out, e);
	if (!st && !vec_push(&groups->known, ((struct known_group){size, stride, *out})))
		st = error_nomem(e, "a group's links");
out:
	pthread_mutex_unlock(&groups->lock);
	return st;
}

enum status machine_group(const struct machine *m, int64_t size, int64_t stride, struct group *out, struct error *e)
{
	if (size <= 1) {
		*out = (struct group){.size = 1,
			.hosts = 1,
			.in_node = true,
			.ring_Bps = INFINITY,
			.pair_Bps = INFINITY};
		return ST_OK;
	}
	if (machine_has_pairs_only(m)) {
		machine_group_by_pairs(m, m->intra, m->inter, size, stride, out);
		return ST_OK;
	}
	return group_of_cluster(m, size, stride, out, e);
}

/* ---- JSON ---- */

static json_t *link_json(const struct link_spec *l)
{
	return json_pack("{s:f, s:f}", "latency_s", l->latency_s, "bandwidth_Bps", l->Bps);
}

static json_t *device_json(const struct device_spec *d)
{
	json_t *rates = json_object();
	for (int i = 0; i < DT_COUNT && rates; i++)
		if (d->matrix_flop_per_s[i] > 0)
			json_object_set_new(rates, dtype_name((enum dtype)i), json_real(d->matrix_flop_per_s[i]));
	return json_pack("{s:s, s:s, s:o, s:f, s:f, s:I, s:f, s:f, s:f, s:b, s:b}", "id", d->id, "name", d->name,
		"matrix_flop_per_s", rates, "vector_flop_per_s", d->vector_flop_per_s, "memory_Bps", d->mem_Bps,
		"memory_bytes", (json_int_t)d->mem_B, "launch_s", d->launch_s, "gemm_share", d->gemm_share,
		"memory_share", d->mem_share, "host", d->is_host, "unverified", d->unverified);
}

static json_t *profile_json(const struct profile *p)
{
	const struct profile_key *k = &p->key;
	return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:I}", "date", p->date, "stepsim", k->stepsim,
		"backend", k->backend, "cpu", k->cpu, "mpi", k->mpi, "blas", k->blas, "binding", k->binding,
		"cores_per_rank", (json_int_t)k->cores_per_rank, "ranks_per_host", (json_int_t)k->ranks_per_host,
		"ranks", (json_int_t)k->ranks);
}

json_t *machine_json(const struct machine *m)
{
	return json_pack("{s:s, s:s, s:I, s:I, s:o, s:o, s:o, s:o, s:b, s:o}", "name", m->name, "source", m->source,
		"nodes", (json_int_t)m->nodes, "devices_per_node", (json_int_t)m->devices_per_node, "device",
		device_json(&m->device), "intra", link_json(&m->intra), "inter", link_json(&m->inter), "network",
		m->network.id[0] ? json_string(m->network.id) : json_null(), "unverified", m->unverified, "profile",
		m->profile ? profile_json(m->profile) : json_null());
}

enum status machine_exit(const struct machine *m, double *out_Bps, struct error *e)
{
	struct machine_groups *groups = m->groups;
	struct cluster_route route;
	enum status st = ST_OK;
	if (groups)
		pthread_mutex_lock(&groups->lock);
	*out_Bps = groups ? groups->exit_Bps : 0;
	if (!(*out_Bps > 0) && !(st = cluster_route(m->cluster, 0, m->devices_per_node, &route, e))) {
		*out_Bps = route.Bps;
		if (groups)
			groups->exit_Bps = route.Bps;
	}
	if (groups)
		pthread_mutex_unlock(&groups->lock);
	return st;
}
