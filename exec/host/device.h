/* The host device: a rank's own cores. Compute ops run on the calling thread (and the pool's, and BLAS's); the copy
 * lane has a thread, and both communication lanes share one. */
#ifndef STEPSIM_EXEC_HOST_DEVICE_H
#define STEPSIM_EXEC_HOST_DEVICE_H

#include "exec/device.h"

enum status host_device_create(struct device *out, struct error *e);

/* Memory as the arenas have it: zeroed, page-aligned, in huge pages where the system gives them. What calibration
 * measures on should be such memory too. NULL when there is none; `bytes` 0 gives NULL as well. */
void *host_memory_map(uint64_t bytes);
void host_memory_unmap(void *at, uint64_t bytes); /* NULL-safe */

#endif
