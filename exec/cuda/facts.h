/* Versions and properties of the CUDA libraries and devices of this host. Private to exec/cuda/. */
#ifndef STEPSIM_EXEC_CUDA_FACTS_H
#define STEPSIM_EXEC_CUDA_FACTS_H

#include "exec/cuda/backend.h"

void cuda_facts_find(struct cuda_facts *out);
enum status cuda_address_find(int device, char pci[20], struct error *e);
enum status cuda_gpu_find(int device, struct cuda_gpu *out, struct error *e);

#endif
