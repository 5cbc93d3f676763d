/* Whether NVIDIA's driver shows GPUs on this host, asked without CUDA: it tells a host without GPUs from one whose GPUs
 * CUDA cannot use. */
#ifndef STEPSIM_TOPOLOGY_DISCOVER_DRIVER_H
#define STEPSIM_TOPOLOGY_DISCOVER_DRIVER_H

#include <stdbool.h>

struct driver_facts {
	char version[32]; /* of the kernel's module, "570.86.15"; "" where /proc does not say */
	char shown[96];   /* who shows GPUs: "2 GPUs in /proc/driver/nvidia/gpus" */
};

/* False where there is no driver, or where it shows no GPU. Takes microseconds on a host without a driver. In a
 * container that got no GPU it is true if the host has some. */
bool driver_shows_gpus(struct driver_facts *out);

/* The version of the kernel's module in /proc/driver/nvidia/version; "" where there is none. */
void driver_version(char out[32]);

/* The same of that file's text. */
void driver_version_read(const char *text, char out[32]);

#endif
