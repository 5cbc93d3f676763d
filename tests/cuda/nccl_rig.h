/* What the tests of NCCL's double share: complaints, elements of every format, and two buffers on a stream. */
#ifndef STEPSIM_TESTS_CUDA_NCCL_RIG_H
#define STEPSIM_TESTS_CUDA_NCCL_RIG_H

#include <cuda_runtime_api.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/dtype.h"
#include "exec/cuda/check.h"
#include "exec/exec.h"

static int wrong, checked;
static int64_t own_rank;

static void complain(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static void complain(const char *fmt, ...)
{
	char text[1400];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	if (wrong++ < 10)
		fprintf(stderr, "%s [%lld]\n", text, (long long)own_rank);
}

static inline size_t size_of(enum dtype d) { return d == DT_BF16 || d == DT_FP16 ? 2 : 4; }

static inline void put(enum dtype d, void *at, size_t i, double x)
{
	float f = (float)x;
	_Float16 h = (_Float16)f;
	uint32_t bits;
	memcpy(&bits, &f, 4);
	if (d == DT_BF16)
		((uint16_t *)at)[i] = (uint16_t)(bits >> 16); /* of numbers that it holds exactly */
	else if (d == DT_FP16)
		memcpy((uint16_t *)at + i, &h, 2);
	else if (d == DT_INT32)
		((int32_t *)at)[i] = (int32_t)x;
	else
		((float *)at)[i] = f;
}

static inline double get(enum dtype d, const void *at, size_t i)
{
	float f;
	_Float16 h;
	if (d == DT_INT32)
		return ((const int32_t *)at)[i];
	if (d == DT_FP16) {
		memcpy(&h, (const uint16_t *)at + i, 2);
		return (double)(float)h;
	}
	if (d == DT_BF16) {
		uint32_t bits = (uint32_t)((const uint16_t *)at)[i] << 16;
		memcpy(&f, &bits, 4);
		return (double)f;
	}
	return (double)((const float *)at)[i];
}

struct rig {
	cudaStream_t stream;
	char *in, *out; /* of room for the largest, and a guard */
	size_t bytes;
};

static inline enum status rig_open(struct rig *rig, struct error *e)
{
	enum status st;
	*rig = (struct rig){.bytes = 64 << 10};
	if ((st = CUDA_CHECK(cudaMalloc((void **)&rig->in, rig->bytes), e)) ||
		(st = CUDA_CHECK(cudaMalloc((void **)&rig->out, rig->bytes), e)))
		return st;
	return CUDA_CHECK(cudaStreamCreateWithFlags(&rig->stream, cudaStreamNonBlocking), e);
}

/* Ends a test: says how much was checked, and returns the exit code. */
static inline int rig_end(struct rig *rig, struct session *s)
{
	if (rig->stream)
		cudaStreamDestroy(rig->stream);
	cudaFree(rig->in);
	cudaFree(rig->out);
	if (wrong == 0)
		printf("%d checked\n", checked);
	fflush(stdout);
	session_close(s);
	return wrong ? 1 : 0;
}

#endif
