/* Flash attention as one of cuDNN's fused graphs (cuDNN backend API, "Supported Graph Patterns", fused attention
 * forward and backward). Private to attention.c. */
#ifndef STEPSIM_EXEC_CUDA_ATTENTION_CUDNN_H
#define STEPSIM_EXEC_CUDA_ATTENTION_CUDNN_H

#include <cudnn.h>

#include "exec/cuda/kernels.h"

struct cudnn_attention;

/* What plans are built for; one of the two is set. From 9.8 on cuDNN builds plans, which nothing can run, for a device
 * that is not there: a finalized CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR. */
struct cudnn_target {
	cudnnHandle_t handle;
	cudnnBackendDescriptor_t device;
};

/* Builds the graph of an ATTENTION or ATTENTION_GRAD op whose tensors are stored as `format`, and finalizes the first
 * plan that an engine supports. ST_RUN, with the reason, where there is none. */
enum status cudnn_attention_create(const struct cudnn_target *target, const struct op *op, enum dtype format,
	struct cudnn_attention **out, struct error *e);
/* cuDNN's number of the engine that the plan takes. */
enum status cudnn_attention_engine(struct cudnn_attention *a, int64_t *engine, struct error *e);
void cudnn_attention_destroy(struct cudnn_attention *a); /* NULL-safe */
size_t cudnn_attention_workspace_B(const struct cudnn_attention *a);
/* Enqueues it on the stream of the handle; `workspace` is aligned to 256 bytes. */
enum status cudnn_attention_run(struct cudnn_attention *a, cudnnHandle_t handle, const struct cuda_arg arg[OP_MAX_ARGS],
	void *workspace, struct error *e);

#endif
