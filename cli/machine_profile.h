/* The profile of a target: the one that the config names, the cached one, or one that is measured now. */
#ifndef STEPSIM_CLI_MACHINE_PROFILE_H
#define STEPSIM_CLI_MACHINE_PROFILE_H

#include "cli/machine.h"

/* Loads the profile that the config names. ST_INPUT, with the key's place: it cannot be read, or it is one of cores for
 * `gpus`, or the other way round. */
enum status target_load_profile(const struct config *c, bool gpus, struct target *t, struct error *e);

/* Attaches the profile that the config names, if any, in addition to the catalogue's rates. */
enum status target_attach_profile(const struct config *c, struct target *t, struct error *e);

/* Warns that the profile at `path` is taken although it `lacks` something; NULL: it does not. */
void target_say_lacks(const char *path, const char *lacks);

/* Warns where a profile that the user named is of another placement. It is taken as it is: that may be meant. */
void target_say_mismatch(const struct target *t, int64_t ranks_per_host, int64_t cores_per_rank);

/* Takes the cached profile of the session's placement, if there is one. Leading rank only. */
void target_cached_profile(const struct context *x, struct target *t);

/* Takes the newest cached profile of this CPU, rank count and cores a rank: without MPI the key of a run is not known
 * in full. */
void target_search_cache(const struct host_facts *host, int64_t ranks, int64_t cores_per_rank, struct target *t);

/* Measures the placement where the leading rank has no cached profile, or where others disturbed it or it lacks
 * something, and the cores are quiet now. Else finds the cores' present pace. `wanted`: on that rank, whether a cached
 * profile is to be used at all. All ranks. */
enum status target_settle_profile(struct context *x, bool wanted, struct target *t, struct error *e);

#endif
