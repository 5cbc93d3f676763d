#include "exec/cuda/scratch.h"

#include "exec/cuda/check.h"

enum status cuda_scratch_open(int device, size_t bytes, struct cuda_scratch *out, struct error *e)
{
	cudaStream_t stream = NULL;
	*out = (struct cuda_scratch){0};
	enum status st = CUDA_CHECK(cudaSetDevice(device), e);
	if (!st && !(st = CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), e)))
		out->queue = stream;
	for (int i = 0; i < 2 && !st; i++)
		st = CUDA_CHECK(cudaMalloc(&out->memory[i], bytes), e);
	if (st)
		cuda_scratch_close(out);
	return st;
}

void cuda_scratch_close(struct cuda_scratch *y)
{
	for (int i = 0; i < 2; i++)
		cudaFree(y->memory[i]);
	if (y->queue)
		cudaStreamDestroy(y->queue);
	*y = (struct cuda_scratch){0};
}

enum status cuda_scratch_copy(const struct cuda_scratch *y, void *to, const void *from, size_t bytes, struct error *e)
{
	enum status st = CUDA_CHECK(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, y->queue), e);
	return st ? st : CUDA_CHECK(cudaStreamSynchronize(y->queue), e);
}

enum status cuda_scratch_idle(const struct cuda_scratch *y, bool *idle, struct error *e)
{
	cudaError_t code = cudaStreamQuery(y->queue);
	*idle = code == cudaSuccess;
	return code == cudaErrorNotReady ? ST_OK : CUDA_CHECK(code, e);
}
