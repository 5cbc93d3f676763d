/* `stepsim --version`: the versions of the program, and of the libraries and devices that its CUDA part finds. */
#include <stdio.h>

#include "base/version.h"
#include "cli/command.h"
#include "exec/cuda/backend.h"

void print_version(FILE *out)
{
	struct cuda_facts f;
	const struct cuda_backend *backend;
	struct error e = {0};
	fprintf(out, "stepsim " STEPSIM_VERSION "\n");
	if (cuda_backend_open(&backend, &e)) {
		fprintf(out, "CUDA: none: %s\n", e.text);
		return;
	}
	backend->facts(&f);
	/* CUDA and cuBLASLt count 1000 a major version and 10 a minor one, cuDNN and NCCL 10000 and 100 */
	fprintf(out, "CUDA: runtime %d.%d, cuBLASLt %d, cuDNN %d.%d.%d, NCCL %d.%d.%d; ", f.runtime / 1000,
		f.runtime % 1000 / 10, f.cublas, f.cudnn / 10000, f.cudnn / 100 % 100, f.cudnn % 100, f.nccl / 10000,
		f.nccl / 100 % 100, f.nccl % 100);
	if (f.devices > 0)
		fprintf(out, "%d device%s (%s)\n", f.devices, f.devices == 1 ? "" : "s", f.device);
	else
		fprintf(out, "no device (%s)\n", f.why_none);
}
