/* Devices of the commands without a config (calibrate, bench, roofline). --backend and --share-gpu mean what
 * run.backend and run.share_gpu mean for a run. */
#ifndef STEPSIM_CLI_DEVICES_H
#define STEPSIM_CLI_DEVICES_H

#include "cli/command.h"

/* Opens the session if no launcher did. Takes its GPUs if --backend is cuda, or auto and rank 0's host has any.
 * Collective. ST_RUN: as session_use_gpus. */
enum status devices_open(struct context *x, struct error *e);

#endif
