/* The CUDA backend's table: the one symbol of the shared object that is looked up. */
#include "exec/cuda/backend.h"

#include "exec/cuda/device.h"
#include "exec/cuda/facts.h"
#include "exec/cuda/micro.h"
#include "exec/cuda/nccl_comm.h"
#include "exec/cuda/nvml.h"
#include "exec/cuda/staged_comm.h"
#include "exec/cuda/scratch.h"

extern const struct cuda_backend stepsim_cuda_backend;

const struct cuda_backend stepsim_cuda_backend = {
	.facts = cuda_facts_find,
	.address = cuda_address_find,
	.gpu = cuda_gpu_find,
	.sampler_open = nvml_sampler_open,
	.sample_begin = nvml_sample_begin,
	.sample_end = nvml_sample_end,
	.sampler_close = nvml_sampler_close,
	.device_create = cuda_device_create,
	.nccl_id = nccl_comm_id,
	.nccl_world = nccl_comm_world,
	.nccl_split = nccl_comm_split,
	.nccl_register = nccl_comm_register,
	.nccl_deregister = nccl_comm_deregister,
	.nccl_estimate = nccl_comm_estimate,
	.nccl_tells = nccl_comm_tells,
	.scratch_open = cuda_scratch_open,
	.scratch_close = cuda_scratch_close,
	.scratch_copy = cuda_scratch_copy,
	.scratch_idle = cuda_scratch_idle,
	.staged = staged_comm_create,
	.micro_create = micro_cuda_create,
};
