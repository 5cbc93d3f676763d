/* Puts the key of the config that a failure goes back to before it, where it is found far from the config:
 * "file:line:col: section.key: " or "--set section.key=VALUE: ". As config_blame_system (step/config.h), for keys that
 * the GPU room never asks about. Both return the recorded status. */
#ifndef STEPSIM_STEP_BLAME_H
#define STEPSIM_STEP_BLAME_H

#include "step/config.h"

enum status config_blame_dtype(const struct config *c, struct error *e);   /* train.dtype */
enum status config_blame_profile(const struct config *c, struct error *e); /* cluster.profile */

#endif
