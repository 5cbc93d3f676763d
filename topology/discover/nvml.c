/* Reads NVLinks and peer access from NVML. The library comes with the driver. It is opened at run time, function by
 * function, because drivers differ in the functions they have. */
#include "topology/discover/nvml.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "topology/discover/discover.h"
#include "topology/discover/tree.h"
#include "topology/graph/rates.h"

#define GPUS_MOST 64

/* Functions as NVML's reference declares them. */
struct nvml_api {
	int (*init)(void);
	int (*shutdown)(void);
	int (*count)(unsigned *n);
	int (*handle)(unsigned index, nvml_device *device);
	int (*pci)(nvml_device device, struct nvml_pci *pci);
	int (*capability)(nvml_device device, int *major, int *minor);
	int (*link_state)(nvml_device device, unsigned link, int *active);
	int (*link_version)(nvml_device device, unsigned link, unsigned *version);
	int (*link_remote_pci)(nvml_device device, unsigned link, struct nvml_pci *pci);
	int (*link_remote_type)(nvml_device device, unsigned link, int *type);
	int (*p2p_status)(nvml_device a, nvml_device b, int what, int *status);
	const char *(*error_string)(int code);
};

static const struct {
	const char *name;
	size_t at;
} symbols[] = {
	{"nvmlInit_v2", offsetof(struct nvml_api, init)},
	{"nvmlShutdown", offsetof(struct nvml_api, shutdown)},
	{"nvmlDeviceGetCount_v2", offsetof(struct nvml_api, count)},
	{"nvmlDeviceGetHandleByIndex_v2", offsetof(struct nvml_api, handle)},
	{"nvmlDeviceGetPciInfo_v3", offsetof(struct nvml_api, pci)},
	{"nvmlDeviceGetCudaComputeCapability", offsetof(struct nvml_api, capability)},
	{"nvmlDeviceGetNvLinkState", offsetof(struct nvml_api, link_state)},
	{"nvmlDeviceGetNvLinkVersion", offsetof(struct nvml_api, link_version)},
	{"nvmlDeviceGetNvLinkRemotePciInfo_v2", offsetof(struct nvml_api, link_remote_pci)},
	{"nvmlDeviceGetNvLinkRemoteDeviceType", offsetof(struct nvml_api, link_remote_type)},
	{"nvmlDeviceGetP2PStatus", offsetof(struct nvml_api, p2p_status)},
	{"nvmlErrorString", offsetof(struct nvml_api, error_string)},
};

struct nvml_gpu {
	nvml_device device;
	char pci[GRAPH_PCI];
	int32_t vertex; /* in the graph of what NVML says */
	bool asked;     /* it answered about its links */
	int32_t active, inactive, to_switch, to_npu, itself, version, gen;
	int32_t to[GPUS_MOST];
};

struct session {
	struct nvml_api api;
	struct graph *base, *more;
	struct nvml_gpu gpu[GPUS_MOST];
	size_t n;
	struct error *e;
};

static bool load(void *library, struct nvml_api *api)
{
	for (size_t i = 0; i < COUNT(symbols); i++) {
		void *symbol = dlsym(library, symbols[i].name);
		memcpy((char *)api + symbols[i].at, &symbol,
			sizeof symbol); /* ISO C has no conversion from object to function pointers */
	}
	return api->init && api->count && api->handle && api->pci;
}

static enum status complain(struct session *s, const char *what, int code)
{
	const char *why = s->api.error_string ? s->api.error_string(code) : NULL;
	return graph_remark(s->base, false, s->e, "NVML: %s: %.100s (code %d)", what, why ? why : "failed", code);
}

static bool pci_text(const struct nvml_pci *pci, char out[GRAPH_PCI])
{
	char text[sizeof pci->bus_id + 1] = "";
	memcpy(text, pci->bus_id, sizeof pci->bus_id);
	return graph_normal_pci(text, out);
}

static enum status find_gpus(struct session *s)
{
	unsigned count = 0;
	int code = s->api.count(&count);
	enum status st = code ? complain(s, "the number of GPUs", code) : ST_OK;
	if (!st && count > GPUS_MOST)
		st = graph_remark(s->base, false, s->e, "NVML lists %u GPUs: the first %d are looked at", count,
			GPUS_MOST);
	for (unsigned i = 0; i < count && i < GPUS_MOST && !st; i++) {
		struct nvml_gpu *g = &s->gpu[s->n];
		struct nvml_pci pci = {.bus_id = ""};
		char what[32];
		snprintf(what, sizeof what, "GPU%u", i);
		if ((code = s->api.handle(i, &g->device)) != 0 || (code = s->api.pci(g->device, &pci)) != 0 ||
			!pci_text(&pci, g->pci)) {
			st = complain(s, what, code);
			continue;
		}
		struct vertex v = graph_vertex_init(VERTEX_GPU, SAID_BY_NVML);
		int major = 0, minor = 0;
		memcpy(v.pci, g->pci, sizeof v.pci);
		if (s->api.capability && s->api.capability(g->device, &major, &minor) == 0 && major > 0 &&
			major < 100 && minor >= 0 && minor < 10)
			v.gpu.compute_capability = major * 10 + minor;
		g->vertex = graph_add_vertex(s->more, &v);
		if (g->vertex < 0)
			return error_nomem(s->e, "a GPU");
		s->n++;
	}
	return st;
}

/* Where a link leads. Without the device type (drivers such as 450) a peer that is no GPU of this host is counted as a
 * switch. */
static void follow_link(struct session *s, struct nvml_gpu *g, unsigned link)
{
	struct nvml_pci pci = {.bus_id = ""};
	char remote[GRAPH_PCI] = "";
	int type = NVML_REMOTE_UNKNOWN;
	if (!s->api.link_remote_pci || s->api.link_remote_pci(g->device, link, &pci) != 0 || !pci_text(&pci, remote))
		remote[0] = '\0';
	if (s->api.link_remote_type && s->api.link_remote_type(g->device, link, &type) != 0)
		type = NVML_REMOTE_UNKNOWN;
	for (size_t k = 0; k < s->n && remote[0]; k++) {
		if (strcmp(s->gpu[k].pci, remote) != 0)
			continue;
		if (&s->gpu[k] == g)
			g->itself++;
		else
			g->to[k]++;
		return;
	}
	if (type == NVML_REMOTE_NPU)
		g->to_npu++;
	else if (type != NVML_REMOTE_GPU) /* to a GPU: one that this container or virtual machine was not given */
		g->to_switch++;
}

static void count_links(struct session *s, struct nvml_gpu *g)
{
	for (unsigned link = 0; link < NVML_LINKS_MOST; link++) {
		int active = 0;
		unsigned version = 0;
		int code = s->api.link_state(g->device, link, &active);
		if (code == NVML_INVALID_ARGUMENT)
			break;
		if (code != 0)
			continue;
		g->asked = true;
		if (!active) {
			g->inactive++;
			continue;
		}
		g->active++;
		if (s->api.link_version && s->api.link_version(g->device, link, &version) == 0 && version < 8)
			g->version = (int32_t)version;
		follow_link(s, g, link);
	}
}

/* The generation: by compute capability, because what nvmlDeviceGetNvLinkVersion counts (1, 2, 2.2, 3, 3.1, 4, 5 as 1
 * to 7) is not the part's own generation on every driver. */
static int32_t nvlink_gen(const struct session *s, const struct nvml_gpu *g)
{
	static const int32_t by_version[] = {0, 1, 2, 2, 3, 3, 4, 5};
	int32_t known = tree_nvlink_gen(s->more->vertex.at[g->vertex].gpu.compute_capability);
	return known > 0 ? known : by_version[g->version];
}

static enum status add_link(struct session *s, int32_t a, int32_t b, int32_t width, int32_t gen)
{
	/* The rate is set once the compute capability is sure (graph_finish); until then one that is positive. */
	struct rate r = rate_nvlink(s->more->vertex.at[a].gpu.compute_capability);
	r.Bps *= width;
	r.datasheet_Bps *= width;
	struct link l = graph_link_at(
		(struct link){.a = a, .b = b, .kind = LINK_NVLINK, .width = width, .gen = gen, .from = SAID_BY_NVML},
		r);
	return graph_add_link(s->more, &l) < 0 ? error_nomem(s->e, "an NVLink") : ST_OK;
}

/* POWER9: the links end at the processor of the GPU's NUMA node. */
static enum status add_npu(struct session *s, const struct nvml_gpu *g)
{
	int32_t in_base = graph_find_pci(s->base, g->pci), cpu = -1;
	int32_t numa = in_base >= 0 ? s->base->vertex.at[in_base].numa : -1;
	for (size_t i = 0; i < s->more->vertex.n; i++)
		if (s->more->vertex.at[i].kind == VERTEX_CPU && s->more->vertex.at[i].numa == numa)
			cpu = (int32_t)i;
	if (cpu < 0) {
		struct vertex v = graph_vertex_init(VERTEX_CPU, SAID_BY_NVML);
		v.numa = numa;
		cpu = graph_add_vertex(s->more, &v);
	}
	return cpu < 0 ? error_nomem(s->e, "a CPU") : add_link(s, g->vertex, cpu, g->to_npu, g->gen);
}

/* All ports of all NVLink switches of a host are one fabric to its GPUs. */
static enum status add_links(struct session *s)
{
	int32_t nvswitch = -1, most = 0;
	enum status st = ST_OK;
	for (size_t i = 0; i < s->n; i++)
		most = s->gpu[i].active > most ? s->gpu[i].active : most;
	for (size_t i = 0; i < s->n && !st; i++) {
		struct nvml_gpu *g = &s->gpu[i];
		struct gpu_facts *facts = &s->more->vertex.at[g->vertex].gpu;
		facts->nvlinks = g->active;
		g->gen = nvlink_gen(s, g);
		facts->nvlink_gen = g->gen;
		for (size_t k = i + 1; k < s->n && !st; k++) {
			int32_t n = g->to[k] < s->gpu[k].to[i] || !s->gpu[k].asked ? g->to[k] : s->gpu[k].to[i];
			if (n > 0)
				st = add_link(s, g->vertex, s->gpu[k].vertex, n, g->gen);
		}
		if (!st && g->to_switch > 0) {
			struct vertex v = graph_vertex_init(VERTEX_NVSWITCH, SAID_BY_NVML);
			nvswitch = nvswitch < 0 ? graph_add_vertex(s->more, &v) : nvswitch;
			st = nvswitch < 0 ? error_nomem(s->e, "an NVLink switch")
			                  : add_link(s, g->vertex, nvswitch, g->to_switch, g->gen);
		}
		if (!st && g->to_npu > 0)
			st = add_npu(s, g);
		if (!st && g->itself > 0)
			st = graph_remark(s->base, false, s->e,
				"NVML: %d NVLinks of GPU%zu lead to itself, which happens in virtual machines: not "
				"counted",
				g->itself, i);
		/* Parts with fewer links enabled than the chip has (A800, one bridge of three) show links that are down
		 * on every GPU: only fewer than the others have is a fault. */
		if (!st && g->inactive > 0 && g->active < most)
			st = graph_remark(s->base, false, s->e,
				"GPU%zu has %d NVLinks up and %d down where others have %d up: up to %.0f %% of its "
				"NVLink bandwidth is lost (nvidia-smi nvlink -s; reseat the bridge or the module)",
				i, g->active, g->inactive, most, 100.0 * (most - g->active) / most);
	}
	return st;
}

/* A GPU has no peers over PCIe when the driver says so for every other GPU that NVLink does not join to it. */
static void ask_peers(struct session *s)
{
	for (size_t i = 0; i < s->n && s->api.p2p_status; i++) {
		bool any = false, good = false;
		for (size_t k = 0; k < s->n; k++) {
			int status = NVML_P2P_UNKNOWN;
			bool joined = s->gpu[i].to[k] > 0 || (s->gpu[i].to_switch > 0 && s->gpu[k].to_switch > 0);
			if (k == i || joined ||
				s->api.p2p_status(s->gpu[i].device, s->gpu[k].device, NVML_P2P_WRITE, &status) != 0 ||
				status == NVML_P2P_UNKNOWN)
				continue;
			any = true;
			good |= status == NVML_P2P_OK;
		}
		struct gpu_facts *facts = &s->more->vertex.at[s->gpu[i].vertex].gpu;
		facts->peer_known = any;
		facts->no_peer = any && !good;
	}
}

static enum status look(struct session *s)
{
	enum status st = find_gpus(s);
	bool asked = false;
	for (size_t i = 0; i < s->n && !st && s->api.link_state; i++) {
		count_links(s, &s->gpu[i]);
		asked |= s->gpu[i].asked;
	}
	ask_peers(s);
	if (!st)
		st = add_links(s);
	/* Where no GPU answered about links, NVML has made no statement on them that could contradict another source.
	 */
	if (!st && !asked)
		s->more->source = SAID_BY_SMI_QUERY;
	return st || s->n == 0 ? st : graph_merge(s->base, s->more, s->e);
}

enum status nvml_read(struct graph *g, struct error *e)
{
	struct session s = {.base = g, .e = e};
	enum status st = ST_OK;
	void *library = dlopen(NVML_LIBRARY, RTLD_NOW | RTLD_LOCAL);
	if (!library)
		return ST_OK;
	if (!load(library, &s.api)) {
		st = graph_remark(g, false, e,
			"%s lacks functions that drivers have had for years: NVLinks are taken from other sources",
			NVML_LIBRARY);
		goto out;
	}
	int code = s.api.init();
	if (code != 0) {
		if (code != NVML_DRIVER_NOT_LOADED)
			st = complain(&s, "it does not start", code);
		goto out;
	}
	s.more = graph_create(SAID_BY_NVML);
	st = s.more ? look(&s) : error_nomem(e, "what NVML says");
	graph_destroy(s.more);
	if (s.api.shutdown)
		s.api.shutdown();
out:
	dlclose(library);
	return st;
}
