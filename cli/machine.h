/* The machine of a prediction, from cluster.system and cluster.profile. */
#ifndef STEPSIM_CLI_MACHINE_H
#define STEPSIM_CLI_MACHINE_H

#include <jansson.h>

#include "base/paths.h"
#include "cli/command.h"
#include "step/config/config.h"
#include "topology/machine.h"

/* The target owns the machine, the profile that the machine borrows, and `system`. */
struct target {
	struct machine machine;
	struct profile *profile;
	char profile_path[PATH_MAX_LEN]; /* "": datasheet only */
	struct pace pace;                /* 0: the profile's speed is taken as it is */
	json_t *system;                  /* what was found or taken, and from where */
	char note[256];                  /* a warning that belongs into the result; "" when there is none */
	char hosts_note[256];            /* another: the config counts more hosts than there are */
};

/* Takes `gpus` GPUs of the config's system: whole hosts, or a part of one. This machine is one host. ST_INPUT: they are
 * neither, or the system is unknown. */
enum status target_take_gpus(struct config *c, int64_t gpus, struct error *e);

/* Loads the system from the catalogue, a file or a system line. Leading rank only. */
enum status target_system(const struct config *c, struct target *out, struct error *e);

/* Describes this machine for `ranks` ranks. The profile is the one of cluster.profile, else the cached one, else one
 * that is measured now and cached. With a session all its ranks call it; all but the leading one get an empty target.
 * Without a session a profile of several ranks cannot be measured: ST_INPUT says how to make it. For one rank a session
 * is opened in `x`. */
enum status target_here(struct context *x, const struct config *c, int64_t ranks, struct target *out, struct error *e);

void target_free(struct target *t); /* NULL-safe members */

#endif
