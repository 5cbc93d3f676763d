#include "topology/machine.h"

#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/paths.h"
#include "topology/catalogue.h"

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

/* ---- systems of the catalogue ---- */

struct system_file {
	char name[128], gpu[64], fabric[32];
	int64_t gpus, nics;
	double intra_datasheet_Bps, intra_usable_Bps, intra_latency_s;
	double nic_Bps, inter_latency_s;
};

#define NUMBER(path, unit, min, max, field) {path, CATALOGUE_DOUBLE, true, unit, min, max, offsetof(struct system_file, field), 0}
#define WHOLE(path, min, max, field) {path, CATALOGUE_INT64, true, UNIT_NONE, min, max, offsetof(struct system_file, field), 0}
#define TEXT(path, field) {path, CATALOGUE_TEXT, true, UNIT_NONE, 0, 0, offsetof(struct system_file, field), sizeof ((struct system_file *)0)->field}

static const struct catalogue_key keys[] = {
	TEXT("name", name),
	TEXT("gpu", gpu),
	WHOLE("gpus_per_node", 1, 1024, gpus),
	TEXT("intra.fabric", fabric),
	NUMBER("intra.datasheet", UNIT_BYTE_PER_S, 1e8, 1e14, intra_datasheet_Bps),
	NUMBER("intra.usable", UNIT_BYTE_PER_S, 1e8, 1e14, intra_usable_Bps),
	NUMBER("intra.latency", UNIT_SECOND, 1e-8, 1e-2, intra_latency_s),
	WHOLE("nic.count", 0, 1024, nics),
	NUMBER("nic.rate", UNIT_BYTE_PER_S, 1e7, 1e13, nic_Bps),
	NUMBER("nic.latency", UNIT_SECOND, 1e-8, 1e-1, inter_latency_s),
};

static bool is_path(const char *system)
{
	size_t len = strlen(system);
	return strchr(system, '/') || (len > 5 && strcmp(system + len - 5, ".yaml") == 0);
}

/* A GPU reaches the NICs that are its own, or one NIC where several GPUs share it and the others are idle. */
static double nic_share_Bps(const struct system_file *f, int64_t used)
{
	double total = (double)f->nics * f->nic_Bps, even = total / (double)used;
	double own = fmax(total / (double)f->gpus, f->nics ? f->nic_Bps : 0);
	return fmin(even, own);
}

enum status machine_load(const char *system, int64_t nodes, int64_t gpus_per_node, struct machine *out, struct error *e)
{
	char path[PATH_MAX_LEN];
	struct system_file f = {0};
	struct machine m = {0};
	enum status st = ST_OK;
	if (strchr(system, ':'))
		return error_set(e, ST_INPUT, "system '%.60s': synthetic machine lines are not modelled yet; name a system of configs/systems or a system file", system);
	if (nodes < 1 || gpus_per_node < 0)
		return error_set(e, ST_INPUT, "system '%.60s': %" PRId64 " nodes with %" PRId64 " devices: expected at least one", system, nodes, gpus_per_node);
	if (!is_path(system))
		st = catalogue_find("systems", "system", system, path, e);
	else if (snprintf(path, sizeof path, "%s", system) >= (int)sizeof path)
		st = error_set(e, ST_INPUT, "the path of the system file is too long");
	if (!st)
		st = catalogue_read(path, keys, COUNT(keys), &f, &m.unverified, e);
	if (!st && (st = device_load(f.gpu, &m.device, e)))
		error_context(e, "%s: gpu", path);
	if (!st && f.intra_usable_Bps > f.intra_datasheet_Bps)
		st = error_set(e, ST_INPUT, "%s: intra: the usable rate is above the datasheet's", path);
	m.devices_per_node = gpus_per_node ? gpus_per_node : f.gpus;
	m.nodes = nodes;
	if (!st && nodes > 1 && f.nics == 0)
		st = error_set(e, ST_INPUT, "%s has no NIC, so %" PRId64 " nodes of it cannot be joined", f.name, nodes);
	if (st)
		return st;
	memcpy(m.name, f.name, sizeof m.name);
	snprintf(m.source, sizeof m.source, is_path(system) ? "%s" : "catalogue configs/systems/%s.yaml", system);
	m.intra = (struct link_spec){f.intra_latency_s, f.intra_usable_Bps};
	m.inter = (struct link_spec){f.inter_latency_s, nic_share_Bps(&f, m.devices_per_node)};
	m.unverified |= m.device.unverified;
	*out = m;
	return ST_OK;
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
	snprintf(out->device.name, sizeof out->device.name, "%" PRId64 " core%s of %.90s", cores_per_rank, cores_per_rank == 1 ? "" : "s", host.cpu);
	out->device.is_host = true;
	out->device.mem_B = host.mem_available_B / (uint64_t)(ranks > 0 ? ranks : 1);
	out->device.l2_B = host.l2_B;
	out->device.gemm_share = out->device.mem_share = 1; /* what was measured is what is reached */
	out->nodes = 1;
	out->devices_per_node = ranks;
	return ST_OK;
}

void machine_attach_profile(struct machine *m, const struct profile *p)
{
	struct device_spec *d = &m->device;
	double peak = profile_get_value(p, "peak.fp32", 0);
	m->profile = p;
	if (peak > 0) {
		d->matrix_flop_per_s[DT_FP32] = peak;
		d->vector_flop_per_s = d->is_host ? peak : d->vector_flop_per_s; /* a core's matrix and vector units are the same */
		d->gemm_share = 1;
	}
	double mem = profile_get_value(p, "mem_Bps", 0);
	if (mem > 0) {
		d->mem_Bps = mem;
		d->mem_share = 1;
	}
	d->launch_s = profile_get_value(p, "call_s", d->launch_s);
	m->intra.latency_s = profile_get_value(p, "p2p.latency_s", m->intra.latency_s);
	m->intra.Bps = profile_get_value(p, "p2p.Bps", m->intra.Bps);
	if (m->device.is_host) /* one path between any two ranks was measured; what is inside a host and what between two is told apart with discovery */
		m->inter = m->intra;
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

/* Groups begin at multiples of size x stride: all lie inside nodes only where nodes are cut into whole groups; else the worst one counts. */
bool machine_group_in_node(const struct machine *m, int64_t size, int64_t stride)
{
	int64_t block = size * stride;
	return m->nodes == 1 || (block <= m->devices_per_node && m->devices_per_node % block == 0);
}

struct link_spec machine_group_link(const struct machine *m, int64_t size, int64_t stride)
{
	if (size <= 1)
		return (struct link_spec){0, INFINITY};
	if (machine_group_in_node(m, size, stride))
		return m->intra;
	int64_t per_node = (m->devices_per_node + stride - 1) / stride; /* members that one node holds */
	if (per_node >= size)
		per_node = size - 1; /* a group that straddles a boundary: some pair of neighbours is on two nodes */
	int64_t nodes = (size + per_node - 1) / per_node;
	struct link_spec link = {
		.latency_s = ((double)nodes * m->inter.latency_s + (double)(size - nodes) * m->intra.latency_s) / (double)size,
		.Bps = (double)per_node * m->inter.Bps,
	};
	if (per_node > 1)
		link.Bps = fmin(link.Bps, m->intra.Bps);
	return link;
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
	return json_pack("{s:s, s:s, s:o, s:f, s:f, s:I, s:f, s:f, s:f, s:b, s:b}", "id", d->id, "name", d->name, "matrix_flop_per_s", rates, "vector_flop_per_s", d->vector_flop_per_s, "memory_Bps", d->mem_Bps,
			 "memory_bytes", (json_int_t)d->mem_B, "launch_s", d->launch_s, "gemm_share", d->gemm_share, "memory_share", d->mem_share, "host", d->is_host, "unverified", d->unverified);
}

static json_t *profile_json(const struct profile *p)
{
	const struct profile_key *k = &p->key;
	return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:I}", "date", p->date, "stepsim", k->stepsim, "backend", k->backend, "cpu", k->cpu, "mpi", k->mpi, "blas", k->blas, "binding", k->binding,
			 "cores_per_rank", (json_int_t)k->cores_per_rank, "ranks_per_host", (json_int_t)k->ranks_per_host, "ranks", (json_int_t)k->ranks);
}

json_t *machine_json(const struct machine *m)
{
	return json_pack("{s:s, s:s, s:I, s:I, s:o, s:o, s:o, s:b, s:o}", "name", m->name, "source", m->source, "nodes", (json_int_t)m->nodes, "devices_per_node", (json_int_t)m->devices_per_node, "device", device_json(&m->device),
			 "intra", link_json(&m->intra), "inter", link_json(&m->inter), "unverified", m->unverified, "profile", m->profile ? profile_json(m->profile) : json_null());
}
