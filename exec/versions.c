/* exec_versions() */
#include <stdio.h>

#include "exec/cuda/backend.h"
#include "exec/session.h"

/* CUDA and cuBLASLt count 1000 a major version and 10 a minor one, cuDNN and NCCL 10000 and 100. */
static void describe_cuda(char *out, size_t size)
{
	struct cuda_facts f;
	const struct cuda_backend *backend;
	struct error e = {0};
	if (cuda_backend_open(&backend, &e)) {
		snprintf(out, size, "none: %.900s", e.text);
		return;
	}
	backend->facts(&f);
	const int n = snprintf(out, size, "runtime %d.%d, cuBLASLt %d, cuDNN %d.%d.%d, NCCL %d.%d.%d; ",
		f.runtime / 1000, f.runtime % 1000 / 10, f.cublas, f.cudnn / 10000, f.cudnn / 100 % 100, f.cudnn % 100,
		f.nccl / 10000, f.nccl / 100 % 100, f.nccl % 100);
	if (f.devices > 0)
		snprintf(out + n, size - (size_t)n, "%d device%s (%s)", f.devices, f.devices == 1 ? "" : "s", f.device);
	else
		snprintf(out + n, size - (size_t)n, "no device (%s)", f.why_none);
}

void exec_versions(char text[EXEC_VERSIONS_TEXT])
{
	char cuda[1024];
	struct session_info info = {0};
	session_name_libraries(&info);
	describe_cuda(cuda, sizeof cuda);
	snprintf(text, EXEC_VERSIONS_TEXT, "execution: %s; %s\nCUDA: %s\n", info.mpi, info.blas, cuda);
}
