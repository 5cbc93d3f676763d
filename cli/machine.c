#include "cli/machine.h"

#include <dirent.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/suggest.h"
#include "base/version.h"
#include "cli/fabric.h"
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

/* ---- the profile ---- */

static bool readable(const char *path) { return access(path, R_OK) == 0; }

/* Looks for `name`, which has no file of its own, among the catalogue's entries. */
static enum status profile_of_catalogue(const char *name, char path[PATH_MAX_LEN], struct error *e)
{
	char **names = NULL;
	size_t n = 0;
	struct error none = {0};
	enum status st = path_catalogue("profiles", name, path, e);
	if (st || readable(path))
		return st;
	path_catalogue_names("profiles", &names, &n, &none);
	error_set(e, ST_INPUT, "no file '%.200s', and no profile of that name in configs/profiles%s", name,
		suggest(name, (const char *const *)names, n, NULL).text);
	path_names_free(names, n);
	return ST_INPUT;
}

/* A relative path is looked for beside the config first, as hf_config is. */
static enum status profile_file(const struct config *c, char path[PATH_MAX_LEN], struct error *e)
{
	const char *name = c->cluster.profile, *slash = strrchr(c->path, '/');
	int folder = slash ? (int)(slash - c->path) + 1 : 0;
	if (name[0] != '/' && folder && snprintf(path, PATH_MAX_LEN, "%.*s%s", folder, c->path, name) < PATH_MAX_LEN &&
		readable(path))
		return ST_OK;
	snprintf(path, PATH_MAX_LEN, "%s", name);
	return readable(path) || strpbrk(name, "/.") ? ST_OK : profile_of_catalogue(name, path, e);
}

/* A profile that is taken although it `lacks` something; NULL: it does not. */
static void say_lacks(const char *path, const char *lacks)
{
	if (lacks)
		log_warn("%s is an earlier stepsim's and lacks %s: run `stepsim calibrate` again", path, lacks);
}

/* Entries of cores mean nothing on GPUs, and the other way round: nothing of the profile would be used. */
static enum status load_of_backend(const struct config *c, bool gpus, struct target *t, struct error *e)
{
	enum status st = profile_file(c, t->profile_path, e);
	if (st || (st = profile_load(t->profile_path, &t->profile, e)))
		return st == ST_INPUT ? config_blame_profile(c, e) : st;
	say_lacks(t->profile_path, profile_lacks(t->profile));
	bool of_gpus = profile_of_gpus(t->profile);
	if (of_gpus == gpus)
		return ST_OK;
	error_set(e, ST_INPUT, "%s was measured on %s (%s), and this prediction is for %s", t->profile_path,
		of_gpus ? "GPUs" : "cores of a host", t->profile->key.cpu, gpus ? "GPUs" : "cores of a host");
	return config_blame_profile(c, e);
}

/* Loads the profile that the config names, if any, in addition to the catalogue's rates. */
static enum status attach_named(const struct config *c, struct target *t, struct error *e)
{
	if (!c->cluster.profile[0])
		return ST_OK;
	enum status st = load_of_backend(c, !t->machine.device.is_host, t, e);
	if (!st)
		machine_attach_profile(&t->machine, t->profile);
	return st;
}

/* Ranks of a host where a profile of several hosts says the network: as the config has them, else as they were
 * measured. Of a profile of one host all ranks are there. */
static int64_t ranks_of_host(const struct config *c, const struct profile *p, int64_t ranks)
{
	const int64_t each = c->cluster.gpus_per_node > 0 ? c->cluster.gpus_per_node : p->key.ranks_per_host;
	return profile_of_several_hosts(p) && each > 0 && ranks % each == 0 ? each : ranks;
}

/* A profile that the user names is taken as it is, and a mismatch is said: it may be meant. */
static void say_mismatch(const struct target *t, int64_t ranks_per_host, int64_t cores_per_rank)
{
	const struct profile_key *k = &t->profile->key;
	if (k->ranks_per_host != ranks_per_host || k->cores_per_rank != cores_per_rank)
		log_warn("%s was measured with %lld ranks a host and %lld cores a rank; this run has %lld and %lld",
			t->profile_path, (long long)k->ranks_per_host, (long long)k->cores_per_rank,
			(long long)ranks_per_host, (long long)cores_per_rank);
}

/* A cached profile that cannot be read is measured again instead of stopping the run: `tell` says why. */
static struct profile *load_cached(const char *path, void (*tell)(const char *format, ...))
{
	struct profile *p = NULL;
	struct error why = {0};
	if (access(path, R_OK) != 0)
		return NULL;
	if (profile_load(path, &p, &why)) {
		tell("the cached profile is not used: %s", why.text);
		return NULL;
	}
	return p;
}

static void from_cache(const struct context *x, struct target *t)
{
	struct profile_key key;
	x->exec->session_profile_key(x->session, &key);
	struct error no_cache = {0};
	if (profile_cache_path(&key, t->profile_path, sizeof t->profile_path, &no_cache)) {
		log_warn("no profile is kept: %s", no_cache.text);
		t->profile_path[0] = '\0';
		return;
	}
	t->profile = load_cached(t->profile_path, log_warn);
	if (t->profile && !profile_key_equal(&t->profile->key, &key)) {
		profile_destroy(t->profile);
		t->profile = NULL;
	}
}

static bool fits_host(const struct profile_key *k, const struct host_facts *host, int64_t ranks, int64_t cores_per_rank)
{
	return strncmp(k->stepsim, STEPSIM_VERSION, strlen(STEPSIM_VERSION)) == 0 && strcmp(k->cpu, host->cpu) == 0 &&
	       k->ranks == ranks && k->ranks_per_host == ranks && k->cores_per_rank == cores_per_rank;
}

/* Without MPI the key of a run is not known in full: the newest cached profile of this CPU, rank count and cores a rank
 * stands for it. */
static void search_cache(const struct host_facts *host, int64_t ranks, int64_t cores_per_rank, struct target *t)
{
	char folder[PATH_MAX_LEN], path[PATH_MAX_LEN];
	struct error no_cache = {0};
	DIR *dir = path_cache(folder, &no_cache) ? NULL : opendir(folder);
	if (!dir)
		return;
	for (struct dirent *entry; (entry = readdir(dir));) {
		if (strncmp(entry->d_name, "profile-", strlen("profile-")) != 0)
			continue;
		int len = snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
		struct profile *p = len < PATH_MAX_LEN ? load_cached(path, log_detail) : NULL;
		if (p && fits_host(&p->key, host, ranks, cores_per_rank) &&
			(!t->profile || strcmp(p->date, t->profile->date) > 0)) {
			profile_destroy(t->profile);
			t->profile = p;
			strcpy(t->profile_path, path);
		} else {
			profile_destroy(p);
		}
	}
	closedir(dir);
}

/* All ranks measure; the leading one keeps the profile and caches it, unless the one that it had is whole and less
 * disturbed. */
static enum status measure(struct context *x, struct target *t, struct error *e)
{
	struct profile *found = NULL;
	enum status st = context_agree(x, x->exec->calibrate(x->session, &found, e), e);
	if (st || !context_leads(x))
		return st;
	if (t->profile && !profile_cached_lacks(t->profile) && profile_too_long(t->profile) < profile_too_long(found)) {
		profile_destroy(found);
		return ST_OK;
	}
	profile_destroy(t->profile);
	t->profile = found;
	struct error unsaved = {0};
	if (t->profile_path[0] && profile_save(t->profile, t->profile_path, &unsaved))
		log_warn("the profile is not kept: %s", unsaved.text);
	return ST_OK;
}

/* Says what becomes of the cached profile. `others`: what is taken of the cores now. */
static void say_use(const struct context *x, enum profile_use use, const struct profile *p, const char *others)
{
	const bool gpus = context_info(x)->gpus;
	const char *under = gpus ? "a minute" : "30 s";
	if (use == PROFILE_MEASURE)
		log_note("no profile of %s for this placement yet: measuring it, under %s, once",
			gpus ? "these GPUs" : "this machine", under);
	if (use != PROFILE_MEASURE_AGAIN && use != PROFILE_TAKE_WIDENED)
		return;
	char why[160];
	const double disturbed = profile_disturbed(p);
	if (profile_cached_lacks(p))
		snprintf(why, sizeof why, "this placement's profile is an earlier stepsim's and lacks %s",
			profile_cached_lacks(p));
	else
		snprintf(why, sizeof why, "others disturbed %.0f %% of the measurements of this placement's profile",
			100 * disturbed);
	if (use == PROFILE_MEASURE_AGAIN)
		log_note("%s, and the cores are quiet now: measuring it again, under %s", why, under);
	else
		log_warn("%s, and now %s: it is used%s", why, others, disturbed > 0 ? ", with a wider interval" : "");
}

#define PACE_OFF 0.1 /* less is what quiet machines differ by from one minute to the next */

/* Virtual machines and laptops run at another speed from one hour to the next. The cached profile's times of compute
 * count at the speed that the cores have now. All ranks. */
static enum status settle_pace(struct context *x, struct target *t, struct error *e)
{
	struct pace now;
	enum status st = x->exec->session_pace(x->session, t->profile, &now, e);
	if (st || (fabs(now.compute - 1) < PACE_OFF && fabs(now.memory - 1) < PACE_OFF))
		return st;
	t->pace = now;
	if (context_leads(x))
		log_note("the cores compute at %.2f times the speed that they had when this placement's profile was "
			 "measured (%s), memory at %.2f times: the prediction takes both",
			now.compute, t->profile->date, now.memory);
	return ST_OK;
}

/* Measures the placement where the leading rank has no cached profile, or where others disturbed it or it lacks
 * something, and the cores are quiet now. `wanted`: on that rank, whether a cached profile is to be used at all. All
 * ranks. */
static enum status settle_profile(struct context *x, bool wanted, struct target *t, struct error *e)
{
	char others[SESSION_CPU_STEAL_TEXT] = "";
	struct {
		bool wanted, disturbed;
		enum profile_use use;
	} told = {wanted, wanted && profile_decide(t->profile, false) == PROFILE_TAKE_WIDENED, PROFILE_TAKE};
	enum status st = x->exec->session_broadcast(x->session, &told, sizeof told, e);
	if (!st && told.disturbed)
		st = x->exec->session_cpu_steal(x->session, others, e);
	if (st)
		return st;
	if (context_leads(x) && wanted) {
		told.use = profile_decide(t->profile, !others[0]);
		say_use(x, told.use, t->profile, others);
	}
	st = x->exec->session_broadcast(x->session, &told, sizeof told, e);
	if (st || !told.wanted)
		return st;
	return told.use == PROFILE_MEASURE || told.use == PROFILE_MEASURE_AGAIN ? measure(x, t, e)
	                                                                        : settle_pace(x, t, e);
}

/* ---- this machine ---- */

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
			from_cache(x, t);
		else
			st = load_of_backend(c, false, t, e);
		if (!st && !cached)
			say_mismatch(t, info->ranks_per_host, info->cores_per_rank);
	}
	if ((st = context_agree(x, st, e)) || (st = settle_profile(x, leads && cached, t, e)))
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
		st = load_of_backend(c, false, t, e);
		if (!st && !profile_of_several_hosts(t->profile))
			say_mismatch(t, ranks, cores_per_rank);
		return st;
	}
	search_cache(host, ranks, cores_per_rank, t);
	if (!t->profile) {
		*borrowed = ranks > 1;
		search_cache(host, 1, host->cores, t);
	}
	if (t->profile) {
		say_lacks(t->profile_path, profile_cached_lacks(t->profile));
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
	from_cache(x, t);
	return settle_profile(x, true, t, e);
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
			from_cache(x, t);
		}
	}
	return settle_profile(x, cached, t, e);
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
		st = attach_named(c, t, e);
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
	if ((st = attach_named(c, t, e)) || (st = fabric_attach(c, &t->machine, &fabric, e)))
		return st;
	scale_network(c, &t->machine);
	if ((st = describe(t, NULL, NULL, e)) || !fabric)
		return st;
	return json_object_set_new(t->system, "fabric_measured", fabric) == 0
	               ? ST_OK
	               : error_nomem(e, "the system's description");
}
