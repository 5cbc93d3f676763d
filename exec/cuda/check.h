/* Calls of the CUDA libraries: an expression that fails becomes one line with the code's own text, rank, device and
 * place. Private to exec/cuda/. */
#ifndef STEPSIM_EXEC_CUDA_CHECK_H
#define STEPSIM_EXEC_CUDA_CHECK_H

#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>
#include <nccl.h>

#include "base/status.h"

enum status cuda_check(cudaError_t code, const char *expression, const char *file, int line, struct error *e);
enum status cublas_check(cublasStatus_t code, const char *expression, const char *file, int line, struct error *e);
enum status cudnn_check(cudnnStatus_t code, const char *expression, const char *file, int line, struct error *e);
/* With NCCL's last error text of the communicator (may be NULL). */
enum status nccl_check(ncclResult_t code, ncclComm_t comm, const char *expression, const char *file, int line,
	struct error *e);

#define CUDA_CHECK(expression, e) cuda_check((expression), #expression, __FILE__, __LINE__, (e))
#define CUBLAS_CHECK(expression, e) cublas_check((expression), #expression, __FILE__, __LINE__, (e))
#define CUDNN_CHECK(expression, e) cudnn_check((expression), #expression, __FILE__, __LINE__, (e))
#define NCCL_CHECK(expression, comm, e) nccl_check((expression), (comm), #expression, __FILE__, __LINE__, (e))

#endif
