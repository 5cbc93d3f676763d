#include "cli/machine.h"

#include <string.h>

#include "base/log.h"
#include "cli/fabric.h"
#include "cli/machine_profile.h"
#include "step/plan.h"
#include "topology/view/view.h"

void target_free(struct target *t)
{
	machine_free(&t->machine);
	profile_destroy(t->profile);
	json_decref(t->system);
	*t = (struct target){0};
}

/* ---- the description ---- */

static enum status hosts_json(const struct cluster *hosts, json_t **out, struct error *e)
{
	const struct view_beside nothing = {0};
	return view_json(hosts, &nothing, out, e);
}

/* `topology`: of a session, what each of its hosts is made of (hosts_json); else NULL. */
static enum status describe(struct target *t, const struct session_info *info, json_t *topology, struct error *e)
{
	t->system = machine_json(&t->machine);
	bool good = t->system != NULL;
	if (good && topology)
		good = json_object_set(t->system, "topology", topology) == 0;
	if (good && t->profile)
		good = json_object_set_new(t->system, "profile_file", json_string(t->profile_path)) == 0;
	if (good && t->pace.compute > 0) {
		json_t *pace = json_pack("{s:f, s:f}", "compute", t->pace.compute, "memory", t->pace.memory);
		good = json_object_set_new(t->system, "pace", pace) == 0;
	}
	if (good && info) {
		json_t *run = json_pack("{s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:b}", "host", info->host, "mpi",
			info->mpi, "blas", info->blas, "binding", info->binding, "ranks", (json_int_t)info->ranks,
			"hosts", (json_int_t)info->hosts, "ranks_per_host", (json_int_t)info->ranks_per_host,
			"cores_per_rank", (json_int_t)info->cores_per_rank, "oversubscribed", info->oversubscribed);
		good = json_object_set_new(t->system, "session", run) == 0;
	}
	return good ? ST_OK : error_nomem(e, "the system's description");
}

/* `sharing`: "8 ranks share 2 cores". The words in which execute() warns: a result that has both sides says it once. */
static void note_oversubscription(struct target *t, const char *sharing, int64_t ranks)
{
	snprintf(t->note, sizeof t->note, "%s: the times say what this machine does, not what %lld devices would",
		sharing, (long long)ranks);
	log_note("%s", t->note);
}

/* ---- this machine ---- */

/* Ranks of a host where a profile of several hosts says the network: as the config has them, else as they were
 * measured. Of a profile of one host all ranks are there. */
static int64_t ranks_of_host(const struct config *c, const struct profile *p, int64_t ranks)
{
	const int64_t each = c->cluster.gpus_per_node > 0 ? c->cluster.gpus_per_node : p->key.ranks_per_host;
	return profile_of_several_hosts(p) && each > 0 && ranks % each == 0 ? each : ranks;
}

/* Discovers the hosts' parts for the JSON alone, so that nothing else waits for nvidia-smi. All
 * ranks have the same options. NULL on all but the leading rank. */
static struct cluster *find_hosts(struct context *x)
{
	struct cluster *hosts = NULL;
	struct error undiscovered = {0};
	if (x->options->json &&
		context_agree(x, x->exec->session_cluster(x->session, &hosts, &undiscovered), &undiscovered) &&
		context_leads(x))
		log_warn("the JSON lacks the parts of the hosts: %s", undiscovered.text);
	return hosts;
}

/* What the config says of the network, beside what is measured or in the catalogue. */
static void scale_network(const struct config *c, struct machine *m)
{
	m->links.network = (m->links.network > 0 ? m->links.network : 1) * c->cluster.network_factor;
}

static enum status target_in_session(struct context *x, const struct config *c, struct target *t, struct error *e)
{
	const struct session_info *info = context_info(x);
	const bool leads = context_leads(x), cached = !c->cluster.profile[0];
	enum status st = ST_OK;
	if (leads) {
		if (info->oversubscribed)
			note_oversubscription(t, info->binding, info->ranks);
		if (cached)
			target_cached_profile(x, t);
		else
			st = target_load_profile(c, false, t, e);
		if (!st && !cached)
			target_say_mismatch(t, info->ranks_per_host, info->cores_per_rank);
	}
	if ((st = context_agree(x, st, e)) || (st = target_settle_profile(x, leads && cached, t, e)))
		return st;
	struct cluster *hosts = find_hosts(x);
	json_t *topology = NULL;
	if (!leads)
		return ST_OK;
	if (hosts && (st = hosts_json(hosts, &topology, e)))
		goto out;
	if ((st = machine_this(info->ranks_per_host, info->cores_per_rank, &t->machine, e)))
		goto out;
	t->machine.nodes = info->hosts;
	machine_attach_profile(&t->machine, t->profile);
	t->machine.pace = t->pace;
	scale_network(c, &t->machine);
	st = describe(t, info, topology, e);
out:
	json_decref(topology);
	cluster_destroy(hosts);
	return st;
}

/* The profile of this placement, or (*borrowed) that of one rank with all cores, which is what can be measured here and
 * now. */
static enum status find_profile(struct context *x, const struct config *c, const struct host_facts *host, int64_t ranks,
	int64_t cores_per_rank, struct target *t, bool *borrowed, struct error *e)
{
	struct launch launch;
	enum status st;
	*borrowed = false;
	if (c->cluster.profile[0]) {
		st = target_load_profile(c, false, t, e);
		if (!st && !profile_of_several_hosts(t->profile))
			target_say_mismatch(t, ranks, cores_per_rank);
		return st;
	}
	target_search_cache(host, ranks, cores_per_rank, t);
	if (!t->profile) {
		*borrowed = ranks > 1;
		target_search_cache(host, 1, host->cores, t);
	}
	if (t->profile) {
		target_say_lacks(t->profile_path, profile_cached_lacks(t->profile));
		return ST_OK;
	}
	launch_read(&launch);
	if (launch.launched)
		return error_set(e, ST_INPUT,
			"no profile of this machine with %lld rank%s yet: "
			"`mpirun -np %lld stepsim calibrate` makes one",
			(long long)ranks, ranks == 1 ? "" : "s", (long long)ranks);
	if ((st = context_session(x, DEFAULT_TIMEOUT_S, e)))
		return error_context(e, "no profile of this machine yet, and none can be measured");
	target_cached_profile(x, t);
	return target_settle_profile(x, true, t, e);
}

static enum status target_without_session(struct context *x, const struct config *c, int64_t ranks, struct target *t,
	struct error *e)
{
	struct host_facts host;
	bool borrowed;
	enum status st = host_facts_read(&host, e);
	if (st)
		return st;
	int64_t cores_per_rank = host.cores > ranks ? host.cores / ranks : 1;
	if ((st = find_profile(x, c, &host, ranks, cores_per_rank, t, &borrowed, e)))
		return st;
	const int64_t per_host = ranks_of_host(c, t->profile, ranks);
	if ((st = machine_this(per_host, per_host < ranks ? t->profile->key.cores_per_rank : cores_per_rank,
		     &t->machine, e)))
		return st;
	t->machine.nodes = ranks / per_host;
	if (borrowed)
		machine_borrow_profile(&t->machine, t->profile, (double)host.cores / (double)ranks);
	else
		machine_attach_profile(&t->machine, t->profile);
	scale_network(c, &t->machine);
	if (per_host > host.cores) {
		char sharing[64];
		snprintf(sharing, sizeof sharing, "%lld ranks share %lld cores", (long long)per_host,
			(long long)host.cores);
		note_oversubscription(t, sharing, per_host);
	}
	return describe(t, NULL, NULL, e);
}

/* The profile of these GPUs unless the config names one: the cached one, else measured now. Of doubles and of shared
 * GPUs none is measured or kept. All ranks. */
static enum status gpu_profile(struct context *x, const struct config *c, struct target *t, struct error *e)
{
	const struct session_info *info = context_info(x);
	bool cached = context_leads(x) && !c->cluster.profile[0];
	if (cached) {
		if (info->gpu_doubles || info->gpu_shared) {
			log_note("%s: no profile of them; the prediction takes the catalogue's rates",
				info->gpu_doubles ? "doubles of the CUDA libraries" : "several ranks share a GPU");
			cached = false;
		} else {
			target_cached_profile(x, t);
		}
	}
	return target_settle_profile(x, cached, t, e);
}

/* Describes the GPUs: discovered hosts, rates of the catalogue, and the measured profile. */
static enum status target_on_gpus(struct context *x, const struct config *c, struct target *t, struct error *e)
{
	const struct session_info *info = context_info(x);
	struct cluster *hosts = NULL;
	json_t *topology = NULL;
	enum status st = context_agree(x, x->exec->session_cluster(x->session, &hosts, e), e);
	if (!st)
		st = gpu_profile(x, c, t, e);
	if (st || !context_leads(x)) {
		cluster_destroy(hosts);
		return st;
	}
	if ((st = hosts_json(hosts, &topology, e))) {
		cluster_destroy(hosts);
		return st;
	}
	if ((st = machine_of_gpus(hosts, info->ranks_per_host, info->gpu, info->gpu_mem_B, &t->machine, e)))
		goto out;
	if (t->profile)
		machine_attach_profile(&t->machine, t->profile);
	else
		st = target_attach_profile(c, t, e);
	scale_network(c, &t->machine);
	if (!st)
		st = describe(t, info, topology, e);
out:
	json_decref(topology);
	return st;
}

/* Links between hosts are known where ranks stand on them, and from nowhere else. */
static void note_hosts(const struct config *c, int64_t hosts, struct target *t)
{
	if (c->cluster.nodes > hosts)
		snprintf(t->hosts_note, sizeof t->hosts_note,
			"cluster.nodes is %lld, but this run has %lld (cluster.system: auto): no network to others "
			"is counted; "
			"mpirun over all of them measures it",
			(long long)c->cluster.nodes, (long long)hosts);
}

enum status target_here(struct context *x, const struct config *c, int64_t ranks, struct target *t, struct error *e)
{
	enum status st;
	if (c->cluster.fabric[0]) {
		error_set(e, ST_INPUT, "the fabric of a system; with cluster.system: auto the links are measured here");
		return config_blame_fabric(c, e);
	}
	if (x->session && context_info(x)->gpus)
		st = target_on_gpus(x, c, t, e);
	else
		st = x->session ? target_in_session(x, c, t, e) : target_without_session(x, c, ranks, t, e);
	note_hosts(c, st || !t->machine.nodes ? c->cluster.nodes : t->machine.nodes, t);
	return st;
}

enum status target_take_gpus(struct config *c, int64_t gpus, struct error *e)
{
	struct machine m;
	int64_t host = gpus;
	if (strcmp(c->cluster.system, "auto") != 0) {
		if (machine_load(c->cluster.system, 1, c->cluster.gpus_per_node, &m, e))
			return config_blame_system(c, e);
		host = m.devices_per_node;
		machine_free(&m);
	}
	if (gpus > host && gpus % host)
		return error_set(e, ST_INPUT, "--gpus %lld: hosts of %s have %lld GPUs (nearest: %lld, %lld)",
			(long long)gpus, c->cluster.system, (long long)host, (long long)(gpus / host * host),
			(long long)(gpus / host * host + host));
	plan_put_cluster(c, gpus < host ? 1 : gpus / host, gpus >= host ? 0 : gpus);
	return ST_OK;
}

enum status target_system(const struct config *c, struct target *t, struct error *e)
{
	enum status st = machine_load(c->cluster.system, c->cluster.nodes, c->cluster.gpus_per_node, &t->machine, e);
	if (st)
		return st;
	json_t *fabric = NULL;
	if ((st = target_attach_profile(c, t, e)) || (st = fabric_attach(c, &t->machine, &fabric, e)))
		return st;
	scale_network(c, &t->machine);
	if ((st = describe(t, NULL, NULL, e)) || !fabric)
		return st;
	return json_object_set_new(t->system, "fabric_measured", fabric) == 0
	               ? ST_OK
	               : error_nomem(e, "the system's description");
}
