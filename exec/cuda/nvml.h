/* Samples of a GPU at work, from the driver's management library (NVML). Private to exec/cuda/; backend.h's table
 * offers it. */
#ifndef STEPSIM_EXEC_CUDA_NVML_H
#define STEPSIM_EXEC_CUDA_NVML_H

#include "exec/cuda/backend.h"

/* Whether another process computes on the GPU at this address; false where NVML is not there. */
bool nvml_gpu_in_use(const char *pci);

enum status nvml_sampler_open(const char *pci, struct gpu_sampler **out, struct error *e);
void nvml_sample_begin(struct gpu_sampler *s);
void nvml_sample_end(struct gpu_sampler *s, struct gpu_samples *out);
void nvml_sampler_close(struct gpu_sampler *s);

#endif
