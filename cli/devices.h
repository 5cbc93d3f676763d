/* For commands without a config (calibrate, bench, roofline): which devices they measure, from --backend and --share-gpu as run.backend and run.share_gpu say it for a run. */
#ifndef STEPSIM_CLI_DEVICES_H
#define STEPSIM_CLI_DEVICES_H

#include "cli/command.h"

/* Collective. Opens the session where no launcher did, and takes its GPUs where --backend is cuda, or auto and rank 0's host has any. ST_RUN: as session_use_gpus. */
enum status devices_open(struct context *x, struct error *e);

#endif
