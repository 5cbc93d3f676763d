#include "cli/machine_profile.h"

#include <dirent.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/suggest.h"
#include "base/version.h"

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

static enum status profile_file(const struct config *c, char path[PATH_MAX_LEN], struct error *e)
{
	const char *name = c->cluster.profile;
	path_named_by(c->path, name, path);
	return readable(path) || strpbrk(name, "/.") ? ST_OK : profile_of_catalogue(name, path, e);
}

void target_say_lacks(const char *path, const char *lacks)
{
	if (lacks)
		log_warn("%s is an earlier stepsim's and lacks %s: run `stepsim calibrate` again", path, lacks);
}

enum status target_load_profile(const struct config *c, bool gpus, struct target *t, struct error *e)
{
	enum status st = profile_file(c, t->profile_path, e);
	if (st || (st = profile_load(t->profile_path, &t->profile, e)))
		return st == ST_INPUT ? config_blame_profile(c, e) : st;
	target_say_lacks(t->profile_path, profile_lacks(t->profile));
	bool of_gpus = profile_of_gpus(t->profile);
	if (of_gpus == gpus)
		return ST_OK;
	error_set(e, ST_INPUT, "%s was measured on %s (%s), and this prediction is for %s", t->profile_path,
		of_gpus ? "GPUs" : "cores of a host", t->profile->key.cpu, gpus ? "GPUs" : "cores of a host");
	return config_blame_profile(c, e);
}

enum status target_attach_profile(const struct config *c, struct target *t, struct error *e)
{
	if (!c->cluster.profile[0])
		return ST_OK;
	enum status st = target_load_profile(c, !t->machine.device.is_host, t, e);
	if (!st)
		machine_attach_profile(&t->machine, t->profile);
	return st;
}

void target_say_mismatch(const struct target *t, int64_t ranks_per_host, int64_t cores_per_rank)
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

void target_cached_profile(const struct context *x, struct target *t)
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

void target_search_cache(const struct host_facts *host, int64_t ranks, int64_t cores_per_rank, struct target *t)
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

enum status target_settle_profile(struct context *x, bool wanted, struct target *t, struct error *e)
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
