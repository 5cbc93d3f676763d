#include "exec/cuda/check.h"

#include <stdio.h>
#include <unistd.h>

/* ", device N" of the calling thread; empty where there is no driver. */
static const char *device_text(char out[32])
{
	int device;
	out[0] = '\0';
	if (cudaGetDevice(&device) == cudaSuccess)
		snprintf(out, 32, ", device %d", device);
	return out;
}

static enum status failed(const char *expression, const char *name, const char *text, const char *member,
	const char *file, int line, struct error *e)
{
	char device[32], host[64] = "?";
	gethostname(host, sizeof host - 1);
	return error_set(e, ST_RUN, "%s: %s%s%s (host %s%s%s, %s:%d)", expression, name, text[0] ? ": " : "", text,
		host, member, device_text(device), file, line);
}

enum status cuda_check(cudaError_t code, const char *expression, const char *file, int line, struct error *e)
{
	return code == cudaSuccess
	               ? ST_OK
	               : failed(expression, cudaGetErrorName(code), cudaGetErrorString(code), "", file, line, e);
}

enum status cublas_check(cublasStatus_t code, const char *expression, const char *file, int line, struct error *e)
{
	return code == CUBLAS_STATUS_SUCCESS ? ST_OK
	                                     : failed(expression, cublasLtGetStatusName(code),
						       cublasLtGetStatusString(code), "", file, line, e);
}

enum status cudnn_check(cudnnStatus_t code, const char *expression, const char *file, int line, struct error *e)
{
	char text[384] = "";
	if (code == CUDNN_STATUS_SUCCESS)
		return ST_OK;
	cudnnGetLastErrorString(text, sizeof text);
	return failed(expression, cudnnGetErrorString(code), text, "", file, line, e);
}

enum status nccl_check(ncclResult_t code, ncclComm_t comm, const char *expression, const char *file, int line,
	struct error *e)
{
	char member[48] = "", last[512] = "";
	int rank, size;
	if (code == ncclSuccess)
		return ST_OK;
	const char *said = ncclGetLastError(comm); /* before another call of NCCL's has its say */
	snprintf(last, sizeof last, "%s", said ? said : "");
	if (comm && ncclCommUserRank(comm, &rank) == ncclSuccess && ncclCommCount(comm, &size) == ncclSuccess)
		snprintf(member, sizeof member, ", member %d of %d", rank, size);
	return failed(expression, ncclGetErrorString(code), last, member, file, line, e);
}
