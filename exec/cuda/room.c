/* The CUDA room's table: the one symbol of the shared object that is looked up. */
#include "exec/cuda/room.h"

#include "exec/cuda/device.h"
#include "exec/cuda/facts.h"
#include "exec/cuda/micro.h"
#include "exec/cuda/nccl_comm.h"
#include "exec/cuda/nvml.h"
#include "exec/cuda/staged_comm.h"
#include "exec/cuda/yard.h"

extern const struct cuda_room stepsim_cuda_room;

const struct cuda_room stepsim_cuda_room = {
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
	.nccl_direct = nccl_comm_direct,
	.nccl_tells = nccl_comm_tells,
	.yard_open = cuda_yard_open,
	.yard_close = cuda_yard_close,
	.yard_copy = cuda_yard_copy,
	.yard_idle = cuda_yard_idle,
	.staged = staged_comm_create,
	.micro_create = micro_cuda_create,
};
