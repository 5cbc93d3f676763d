/* What the shared object of the CUDA room offers: it alone links cudart, cuBLASLt, cuDNN and NCCL, and is opened only when somebody asks for GPUs,
 * so that stepsim starts and predicts where none of these libraries is (together they cost 155 MB and 0.6 s at start-up).
 */
#ifndef STEPSIM_EXEC_CUDA_CUDA_H
#define STEPSIM_EXEC_CUDA_CUDA_H

#include <stddef.h>

#include "base/status.h"

#define CUDA_OBJECT "libstepsim_cuda.so"
#define CUDA_ENTRY "stepsim_cuda_facts"

struct cuda_facts {
	int runtime, driver;     /* CUDART_VERSION style: 13000 is 13.0; driver 0: none */
	int cublas, cudnn, nccl; /* as each library encodes its version */
	int devices;
	char why_none[256];   /* devices == 0: CUDA's own words */
	char device[256];        /* name of device 0 */
};

/* The object's entry point. Never fails: what is not there is 0. */
typedef void (*cuda_facts_fn)(struct cuda_facts *out);

/* Opens the object that lies beside the running binary (or in ../lib/stepsim of it) and asks it. ST_RUN, with the reason, when it was not built or does not load. */
enum status cuda_facts_read(struct cuda_facts *out, struct error *e);

#endif
