/* The doubled runtime: programs that are right are so in every order, programs that forget to wait are found out, and
 * each fault is as cudart.cc says. Each case is a process of its own. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include <memory>
#include <string>

#include "tests/cuda/probe.cuh"
#include "tests/doubles/double.h"
#include "tests/unit/harness.h"

#define N 64
#define ROUNDS 5
#define SEEDS 200

#define MUST(e) \
	do { \
		cudaError_t code_ = (e); \
		if (code_ != cudaSuccess) { \
			fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #e, cudaGetErrorName(code_)); \
			_exit(3); \
		} \
	} while (0)
#define EXPECT(condition) \
	do { \
		if (!(condition)) { \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
			_exit(4); \
		} \
	} while (0)

/* Runs f in a process of its own, which has not used the runtime yet: 0, 1 (what f says), 3 and more where something
 * failed. */
template <class F> static int apart(const char *fault, int seed, F f)
{
	pid_t child = fork();
	if (child == 0) {
		alarm(20);
		setenv("STEPSIM_DOUBLE_SEED", std::to_string(seed).c_str(), 1);
		fault ? setenv("STEPSIM_DOUBLE_FAULT", fault, 1) : unsetenv("STEPSIM_DOUBLE_FAULT");
		_exit(f());
	}
	int status = 0;
	waitpid(child, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 100 + WTERMSIG(status);
}

/* Of SEEDS processes: how many say 1. */
template <class F> static int wrong_of_all(F f)
{
	int wrong = 0;
	for (int seed = 1; seed <= SEEDS; seed++) {
		int said = apart(NULL, seed, f);
		CU_ASSERT(said == 0 || said == 1);
		wrong += said == 1;
	}
	return wrong;
}

/* ---- a program on three streams ---- */

struct program {
	float *x, *y, *z, *in, *out;
	cudaStream_t copy, compute, comm;
	cudaEvent_t arrived, used, sent, forked;
};

static void create(program *p)
{
	MUST(cudaMalloc((void **)&p->x, N * sizeof(float)));
	MUST(cudaMalloc((void **)&p->y, N * sizeof(float)));
	MUST(cudaMalloc((void **)&p->z, ROUNDS * N * sizeof(float)));
	MUST(cudaMallocHost((void **)&p->in, ROUNDS * N * sizeof(float)));
	MUST(cudaHostAlloc((void **)&p->out, ROUNDS * N * sizeof(float), cudaHostAllocDefault));
	for (cudaStream_t *s : {&p->copy, &p->compute, &p->comm})
		MUST(cudaStreamCreateWithPriority(s, cudaStreamNonBlocking, s == &p->comm ? -5 : 0));
	for (cudaEvent_t *e : {&p->arrived, &p->used, &p->sent, &p->forked})
		MUST(cudaEventCreateWithFlags(e, cudaEventDisableTiming));
	for (int i = 0; i < ROUNDS * N; i++)
		p->in[i] = (float)(i * 37 % 101);
}

enum wait { ARRIVED, USED, BLENDED, SENT, END, WAITS };

/* y = y / 2 + x, as each x comes; each y is kept in z. The wait `left_out` is forgotten. */
static void put(program *p, int left_out)
{
	MUST(cudaMemsetAsync(p->y, 0, N * sizeof(float), p->compute));
	for (int i = 0; i < ROUNDS; i++) {
		if (i > 0 && left_out != USED)
			MUST(cudaStreamWaitEvent(p->copy, p->used, 0));
		MUST(cudaMemcpyAsync(p->x, p->in + i * N, N * sizeof(float), cudaMemcpyHostToDevice, p->copy));
		MUST(cudaEventRecord(p->arrived, p->copy));
		if (left_out != ARRIVED)
			MUST(cudaStreamWaitEvent(p->compute, p->arrived, 0));
		if (i > 0 && left_out != SENT)
			MUST(cudaStreamWaitEvent(p->compute, p->sent, 0));
		MUST(probe_blend(p->y, p->x, N, p->compute));
		MUST(cudaEventRecord(p->used, p->compute));
		if (left_out != BLENDED)
			MUST(cudaStreamWaitEvent(p->comm, p->used, 0));
		MUST(probe_copy(p->z + i * N, p->y, N, p->comm));
		MUST(cudaEventRecord(p->sent, p->comm));
	}
	MUST(cudaMemcpyAsync(p->out, p->z, ROUNDS * N * sizeof(float), cudaMemcpyDeviceToHost, p->comm));
}

static int is_wrong(const program *p)
{
	float y[N] = {};
	for (int i = 0; i < ROUNDS * N; i++) {
		y[i % N] = y[i % N] / 2 + p->in[i];
		if (!(p->out[i] == y[i % N]))
			return 1;
	}
	return 0;
}

static int plain(int left_out)
{
	program p;
	create(&p);
	put(&p, left_out);
	if (left_out != END)
		MUST(cudaStreamSynchronize(p.comm));
	return is_wrong(&p);
}

/* The same, captured once and launched twice. */
static int graphed(int left_out)
{
	program p;
	cudaGraph_t graph;
	cudaGraphExec_t exec;
	size_t nodes = 0;
	create(&p);
	MUST(cudaStreamBeginCapture(p.compute, cudaStreamCaptureModeThreadLocal));
	MUST(cudaEventRecord(p.forked, p.compute));
	MUST(cudaStreamWaitEvent(p.copy, p.forked, 0));
	MUST(cudaStreamWaitEvent(p.comm, p.forked, 0));
	put(&p, left_out);
	MUST(cudaEventRecord(p.arrived, p.copy));
	MUST(cudaStreamWaitEvent(p.compute, p.arrived, 0));
	MUST(cudaEventRecord(p.sent, p.comm));
	MUST(cudaStreamWaitEvent(p.compute, p.sent, 0));
	MUST(cudaStreamEndCapture(p.compute, &graph));
	MUST(cudaGraphGetNodes(graph, NULL, &nodes));
	EXPECT(nodes == 2 + 3 * ROUNDS);
	MUST(cudaGraphInstantiate(&exec, graph, 0));
	MUST(cudaGraphDestroy(graph));
	int wrong = 0;
	for (int launch = 0; launch < 2; launch++) {
		memset(p.out, 0, ROUNDS * N * sizeof(float));
		MUST(cudaGraphLaunch(exec, p.compute));
		if (left_out != END)
			MUST(cudaStreamSynchronize(p.compute));
		wrong |= is_wrong(&p);
	}
	MUST(cudaGraphExecDestroy(exec));
	return wrong;
}

static void test_streams(void)
{
	CU_ASSERT_EQUAL(wrong_of_all([] { return plain(-1); }), 0);
	for (int left_out = 0; left_out < WAITS; left_out++)
		CU_ASSERT(wrong_of_all([=] { return plain(left_out); }) > 10);
}

static void test_graphs(void)
{
	CU_ASSERT_EQUAL(wrong_of_all([] { return graphed(-1); }), 0);
	for (int left_out = 0; left_out < WAITS; left_out++)
		CU_ASSERT(wrong_of_all([=] { return graphed(left_out); }) > 10);
}

/* One seed, one order. */
static void test_seed(void)
{
	for (int seed = 1; seed <= 20; seed++) {
		int first = apart(NULL, seed, [] { return plain(BLENDED); });
		CU_ASSERT_EQUAL(apart(NULL, seed, [] { return plain(BLENDED); }), first);
	}
}

/* Blocking streams wait for the legacy stream; others do not. */
static void test_legacy(void)
{
	auto run = [](unsigned flags) {
		float *x, *y, out[N], ones[N];
		cudaStream_t s;
		for (float &one : ones)
			one = 1;
		MUST(cudaMalloc((void **)&x, N * sizeof(float)));
		MUST(cudaMalloc((void **)&y, N * sizeof(float)));
		MUST(cudaStreamCreateWithFlags(&s, flags));
		MUST(cudaMemcpy(y, ones, sizeof ones, cudaMemcpyHostToDevice));
		MUST(cudaMemset(x, 0, N * sizeof(float)));
		MUST(probe_copy(x, y, N, s));
		MUST(cudaMemsetAsync(y, 0, N * sizeof(float), NULL));
		if (flags)
			MUST(cudaStreamSynchronize(s));
		MUST(cudaMemcpy(out, x, sizeof out, cudaMemcpyDeviceToHost));
		return (int)(out[N - 1] != 1);
	};
	CU_ASSERT_EQUAL(wrong_of_all([=] { return run(cudaStreamDefault); }), 0);
	CU_ASSERT(wrong_of_all([=] { return run(cudaStreamNonBlocking); }) > 10);
}

/* Pageable memory may be written again as soon as the copy was asked for, pinned memory may not. */
static void test_pageable(void)
{
	auto run = [](bool pinned) {
		float *x, *staged, out[N], own[N];
		cudaStream_t s;
		MUST(cudaMalloc((void **)&x, N * sizeof(float)));
		MUST(cudaMallocHost((void **)&staged, sizeof out));
		MUST(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
		float *from = pinned ? staged : own;
		for (int i = 0; i < N; i++)
			from[i] = 1;
		MUST(cudaMemcpyAsync(x, from, sizeof out, cudaMemcpyHostToDevice, s));
		for (int i = 0; i < N; i++)
			from[i] = 2;
		MUST(cudaMemcpyAsync(out, x, sizeof out, cudaMemcpyDeviceToHost, s)); /* returns when it is there */
		return (int)(out[0] != 1);
	};
	CU_ASSERT_EQUAL(wrong_of_all([=] { return run(false); }), 0);
	CU_ASSERT(wrong_of_all([=] { return run(true); }) > 10);
}

/* ---- events ---- */

static int events(void)
{
	float *x, ms = -1;
	cudaStream_t s;
	cudaEvent_t a, b, never, untimed;
	MUST(cudaMalloc((void **)&x, sizeof *x));
	MUST(cudaStreamCreate(&s));
	MUST(cudaEventCreate(&a));
	MUST(cudaEventCreate(&b));
	MUST(cudaEventCreate(&never));
	MUST(cudaEventCreateWithFlags(&untimed, cudaEventDisableTiming));
	MUST(cudaEventQuery(never));
	MUST(cudaEventSynchronize(never));
	MUST(cudaStreamWaitEvent(s, never, 0));
	MUST(cudaEventRecord(a, s));
	MUST(probe_copy(x, x, 1, s));
	MUST(cudaEventRecord(untimed, s));
	MUST(cudaEventRecord(b, s));
	cudaError_t code;
	while ((code = cudaEventQuery(b)) == cudaErrorNotReady)
		EXPECT(cudaPeekAtLastError() == cudaSuccess);
	MUST(code);
	MUST(cudaEventElapsedTime(&ms, a, b));
	EXPECT(ms >= 0 && ms < 20000);
	EXPECT(cudaEventElapsedTime(&ms, a, never) == cudaErrorInvalidResourceHandle);
	EXPECT(cudaEventElapsedTime(&ms, a, untimed) == cudaErrorInvalidResourceHandle);
	EXPECT(cudaGetLastError() == cudaErrorInvalidResourceHandle);
	EXPECT(cudaGetLastError() == cudaSuccess);
	MUST(cudaEventDestroy(a));
	EXPECT(cudaEventRecord(a, s) == cudaErrorInvalidResourceHandle);
	MUST(cudaStreamDestroy(s));
	EXPECT(cudaStreamQuery(s) == cudaErrorInvalidResourceHandle);
	return 0;
}

/* A wait means the record made last before it: one made later does not hold it up. */
static int earlier_record(void)
{
	cudaStream_t s, t;
	cudaEvent_t e;
	auto open = std::make_shared<bool>(false);
	MUST(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
	MUST(cudaStreamCreateWithFlags(&t, cudaStreamNonBlocking));
	MUST(cudaEventCreateWithFlags(&e, cudaEventDisableTiming));
	MUST(cudaEventRecord(e, s));
	MUST(cudaStreamWaitEvent(t, e, 0));
	MUST(double_enqueue(s, [=]() { return [=]() { return *open; }; })); /* stays until it is let go */
	MUST(cudaEventRecord(e, s));
	MUST(cudaStreamSynchronize(t));
	EXPECT(cudaEventQuery(e) == cudaErrorNotReady);
	EXPECT(cudaStreamQuery(s) == cudaErrorNotReady);
	MUST(double_enqueue(t, [=]() { *open = true; }));
	MUST(cudaEventSynchronize(e));
	MUST(cudaDeviceSynchronize());
	return 0;
}

static int captures(void)
{
	float *x;
	cudaStream_t s, t;
	cudaEvent_t e, f;
	cudaGraph_t graph;
	cudaGraphExec_t exec;
	cudaStreamCaptureStatus status;
	MUST(cudaMalloc((void **)&x, N * sizeof(float)));
	MUST(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
	MUST(cudaStreamCreateWithFlags(&t, cudaStreamNonBlocking));
	MUST(cudaEventCreate(&e));
	MUST(cudaEventCreate(&f));
	EXPECT(cudaStreamEndCapture(s, &graph) == cudaErrorIllegalState);
	EXPECT(cudaStreamBeginCapture(NULL, cudaStreamCaptureModeGlobal) == cudaErrorStreamCaptureUnsupported);

	MUST(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
	MUST(cudaStreamIsCapturing(s, &status));
	EXPECT(status == cudaStreamCaptureStatusActive);
	EXPECT(cudaStreamSynchronize(s) == cudaErrorStreamCaptureUnsupported);
	EXPECT(cudaStreamEndCapture(s, &graph) == cudaErrorStreamCaptureInvalidated && graph == NULL);

	MUST(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
	EXPECT(cudaMalloc((void **)&x, 4) == cudaErrorStreamCaptureUnsupported);
	EXPECT(cudaStreamEndCapture(s, &graph) == cudaErrorStreamCaptureInvalidated);

	MUST(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal)); /* t is not joined again */
	MUST(cudaEventRecord(e, s));
	MUST(cudaStreamWaitEvent(t, e, 0));
	MUST(cudaMemsetAsync(x, 0, 4, t));
	EXPECT(cudaStreamEndCapture(s, &graph) == cudaErrorStreamCaptureUnjoined);
	EXPECT(cudaEventQuery(e) == cudaErrorCapturedEvent);

	MUST(cudaEventRecord(f, t)); /* not part of the capture */
	MUST(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
	EXPECT(cudaStreamWaitEvent(s, f, 0) == cudaErrorStreamCaptureIsolation);
	EXPECT(cudaStreamEndCapture(s, &graph) == cudaErrorStreamCaptureInvalidated);

	cudaStream_t gone;
	MUST(cudaStreamCreateWithFlags(&gone, cudaStreamNonBlocking));
	MUST(cudaStreamBeginCapture(gone, cudaStreamCaptureModeGlobal));
	MUST(cudaEventRecord(e, gone));
	MUST(cudaStreamWaitEvent(t, e, 0));
	MUST(cudaStreamDestroy(gone));
	MUST(cudaStreamSynchronize(t));
	EXPECT(cudaStreamWaitEvent(s, e, 0) == cudaErrorCapturedEvent);

	float ms = -1; /* times of ops inside a graph: records that are nodes */
	MUST(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
	MUST(cudaEventRecordWithFlags(e, s, cudaEventRecordExternal));
	MUST(cudaMemsetAsync(x, 0, 4, s));
	MUST(cudaEventRecordWithFlags(f, s, cudaEventRecordExternal));
	MUST(cudaStreamEndCapture(s, &graph));
	MUST(cudaGraphInstantiate(&exec, graph, 0));
	for (int i = 0; i < 3; i++) {
		MUST(cudaGraphLaunch(exec, t));
		MUST(cudaEventSynchronize(f));
		MUST(cudaEventElapsedTime(&ms, e, f));
		EXPECT(ms >= 0);
	}
	return 0;
}

/* ---- the driver's words in memory ---- */

typedef int wait_value_fn(cudaStream_t stream, unsigned long long at, unsigned value, unsigned flags);

/* A stream waits for a word that the host, or another stream, writes. */
static int wait_value(void)
{
	unsigned *word;
	float *x, out = 0, one = 1;
	void *found = NULL;
	cudaStream_t s;
	cudaDriverEntryPointQueryResult result;
	MUST(cudaGetDriverEntryPointByVersion("cuNothing", &found, 12000, cudaEnableDefault, &result));
	EXPECT(!found && result == cudaDriverEntryPointSymbolNotFound);
	MUST(cudaGetDriverEntryPointByVersion("cuStreamWaitValue32", &found, 12000, cudaEnableDefault, &result));
	EXPECT(found && result == cudaDriverEntryPointSuccess);
	wait_value_fn *wait = (wait_value_fn *)found;
	MUST(cudaHostAlloc((void **)&word, sizeof *word, cudaHostAllocMapped));
	MUST(cudaMalloc((void **)&x, sizeof *x));
	MUST(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
	*word = 6;
	EXPECT(wait(s, (uintptr_t)word, 7, 0) == 0);
	MUST(cudaMemcpyAsync(x, &one, sizeof one, cudaMemcpyHostToDevice, s));
	for (int i = 0; i < 20; i++)
		EXPECT(cudaStreamQuery(s) == cudaErrorNotReady);
	__atomic_store_n(word, 8, __ATOMIC_RELEASE);
	MUST(cudaMemcpyAsync(&out, x, sizeof out, cudaMemcpyDeviceToHost, s));
	EXPECT(out == 1 && wait(s, (uintptr_t)&out, 7, 0) != 0);
	return 0;
}

static void test_events(void)
{
	for (int seed = 1; seed <= 50; seed++) {
		CU_ASSERT_EQUAL(apart(NULL, seed, events), 0);
		CU_ASSERT_EQUAL(apart(NULL, seed, earlier_record), 0);
	}
	CU_ASSERT_EQUAL(apart(NULL, 1, captures), 0);
	CU_ASSERT_EQUAL(apart(NULL, 1, wait_value), 0);
}

/* ---- memory ---- */

static int memory(void)
{
	float *x, *y, *pinned, host[N];
	size_t before, after, total;
	MUST(cudaMemGetInfo(&before, &total));
	MUST(cudaMalloc((void **)&x, (N - 1) * sizeof(float)));
	MUST(cudaMalloc((void **)&y, N * sizeof(float)));
	MUST(cudaMallocHost((void **)&pinned, N * sizeof(float)));
	MUST(cudaMemGetInfo(&after, &total));
	EXPECT(before - after == (2 * N - 1) * sizeof(float) && (uintptr_t)x % 256 == 0);
	MUST(cudaMemcpy(host, x, (N - 1) * sizeof(float), cudaMemcpyDeviceToHost));
	EXPECT(isnan(host[0]) && isnan(host[N - 2]));
	EXPECT(cudaMemcpy(host, x, N * sizeof(float), cudaMemcpyDeviceToHost) == cudaErrorInvalidValue);
	EXPECT(cudaMemcpy(host, y, N * sizeof(float), cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
	EXPECT(cudaMemcpy(y, host, N * sizeof(float), cudaMemcpyDeviceToDevice) == cudaErrorInvalidValue);
	EXPECT(cudaMemset(host, 0, 4) == cudaErrorInvalidValue);
	EXPECT(cudaMalloc((void **)&pinned, total + 1) == cudaErrorMemoryAllocation);
	EXPECT(double_memory("test", x, (N - 1) * sizeof(float)) && !double_memory("test", x, N * sizeof(float)) &&
		!double_memory("test", host, 4));
	MUST(cudaHostRegister(host, sizeof host, cudaHostRegisterDefault));
	EXPECT(cudaHostRegister(host, sizeof host, cudaHostRegisterDefault) == cudaErrorHostMemoryAlreadyRegistered);
	EXPECT(double_memory("test", host, sizeof host));
	MUST(cudaHostUnregister(host));
	EXPECT(cudaGetLastError() == cudaErrorHostMemoryAlreadyRegistered);
	MUST(probe_copy(x, y, N, NULL)); /* one too many */
	EXPECT(cudaFree(x) == cudaErrorInvalidValue);
	EXPECT(cudaFree(x) == cudaErrorInvalidValue);
	EXPECT(cudaMemset(x, 0, 4) == cudaErrorInvalidValue);
	MUST(cudaFree(NULL));
	MUST(cudaFree(y));
	MUST(cudaMemGetInfo(&after, &total));
	EXPECT(before == after);
	return 0;
}

/* Memory of the host that ends while a captured copy of it is replayed. */
static int memory_gone(void)
{
	float *x, *pinned;
	cudaStream_t s;
	cudaGraph_t graph;
	cudaGraphExec_t exec;
	MUST(cudaMalloc((void **)&x, 4));
	MUST(cudaMallocHost((void **)&pinned, 4));
	MUST(cudaStreamCreate(&s));
	MUST(cudaStreamBeginCapture(s, cudaStreamCaptureModeRelaxed));
	MUST(cudaMemcpyAsync(x, pinned, 4, cudaMemcpyHostToDevice, s));
	MUST(cudaStreamEndCapture(s, &graph));
	MUST(cudaGraphInstantiate(&exec, graph, 0));
	MUST(cudaFreeHost(pinned));
	MUST(cudaGraphLaunch(exec, s));
	EXPECT(cudaStreamSynchronize(s) == cudaErrorIllegalAddress);
	return 0;
}

static void test_memory(void)
{
	CU_ASSERT_EQUAL(apart(NULL, 1, memory), 0);
	CU_ASSERT_EQUAL(apart(NULL, 1, memory_gone), 0);
}

/* ---- faults ---- */

static int malloc_fails(void)
{
	void *x;
	MUST(cudaMalloc(&x, 4));
	EXPECT(cudaMalloc(&x, 4) == cudaErrorMemoryAllocation && x == NULL);
	EXPECT(strcmp(cudaGetErrorString(cudaGetLastError()), "out of memory") == 0);
	MUST(cudaMallocHost(&x, 4));
	return 0;
}

static int launch_fails(void)
{
	float *x;
	MUST(cudaMalloc((void **)&x, 4));
	MUST(probe_copy(x, x, 1, NULL));
	EXPECT(probe_copy(x, x, 1, NULL) == cudaErrorLaunchOutOfResources);
	MUST(double_launch(NULL, [] {}));
	MUST(cudaDeviceSynchronize());
	return 0;
}

static int kernel_fails(void)
{
	float *x;
	void *y;
	int n = 0;
	MUST(cudaMalloc((void **)&x, 4));
	MUST(probe_copy(x, x, 1, NULL));
	MUST(cudaDeviceSynchronize());
	probe_copy(x, x, 1, NULL);
	EXPECT(cudaDeviceSynchronize() == cudaErrorIllegalAddress);
	for (int i = 0; i < 2; i++)
		EXPECT(cudaGetLastError() == cudaErrorIllegalAddress);
	EXPECT(cudaMalloc(&y, 4) == cudaErrorIllegalAddress);
	EXPECT(cudaMemset(x, 0, 4) == cudaErrorIllegalAddress);
	MUST(cudaGetDeviceCount(&n));
	return 0;
}

static int no_gpu(void)
{
	void *x;
	int n = -1;
	cudaDeviceProp prop;
	EXPECT(cudaGetDeviceCount(&n) == cudaErrorNoDevice && n == 0);
	EXPECT(strcmp(cudaGetErrorName(cudaErrorNoDevice), "cudaErrorNoDevice") == 0);
	EXPECT(cudaSetDevice(0) == cudaErrorNoDevice && cudaMalloc(&x, 4) == cudaErrorNoDevice &&
		cudaGetDeviceProperties(&prop, 0) == cudaErrorNoDevice);
	return 0;
}

static int busy_gpu(void)
{
	void *x;
	int n = 0, mode = 0;
	MUST(cudaGetDeviceCount(&n));
	MUST(cudaDeviceGetAttribute(&mode, cudaDevAttrComputeMode, 7));
	EXPECT(n == 8 && mode == cudaComputeModeExclusiveProcess);
	EXPECT(cudaMalloc(&x, 4) == cudaErrorDevicesUnavailable);
	return 0;
}

static int all_well(void)
{
	void *x;
	MUST(cudaSetDevice(7));
	MUST(cudaMalloc(&x, 4));
	EXPECT(cudaSetDevice(8) == cudaErrorInvalidDevice);
	return 0;
}

static int refused_launches(void)
{
	float *x;
	char id[16];
	int blocks = 0;
	MUST(cudaMalloc((void **)&x, 4));
	EXPECT(probe_without_twin(x, NULL) == cudaErrorInvalidDeviceFunction);
	EXPECT(probe_threads(x, 2048, NULL) == cudaErrorInvalidConfiguration);
	EXPECT(probe_threads(x, 0, NULL) == cudaErrorInvalidConfiguration);
	EXPECT(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, (const void *)x, 256, 0) ==
		cudaErrorInvalidDeviceFunction);
	MUST(cudaDeviceGetPCIBusId(id, sizeof id, 1));
	EXPECT(strcmp(id, "0000:3D:00.0") == 0 && stepsim_double() == 1);
	return 0;
}

/* ---- shared memory ---- */

static int shared_memory(size_t most_B)
{
	const size_t plain_B = (48 << 10) - PROBE_STATIC_B;
	float *x;
	MUST(cudaMalloc((void **)&x, 4));
	MUST(probe_shared(x, plain_B, NULL));
	EXPECT(probe_shared(x, plain_B + 16, NULL) == cudaErrorInvalidValue);
	EXPECT(probe_shared_allow(most_B - PROBE_STATIC_B + 16) == cudaErrorInvalidValue);
	EXPECT(cudaGetLastError() == cudaErrorInvalidValue);
	MUST(probe_shared_allow(most_B - PROBE_STATIC_B));
	MUST(probe_shared(x, most_B - PROBE_STATIC_B, NULL));
	MUST(cudaDeviceSynchronize());
	MUST(cudaSetDevice(1)); /* which has allowed nothing */
	MUST(cudaMalloc((void **)&x, 4));
	EXPECT(probe_shared(x, plain_B + 16, NULL) == cudaErrorInvalidValue);
	return 0;
}

static void test_shared_memory(void)
{
	static const struct {
		const char *capability;
		size_t most_B;
	} devices[] = {{"8.0", 163 << 10}, {"8.9", 99 << 10}, {"9.0", 227 << 10}, {"12.0", 99 << 10}};
	for (const auto &d : devices) {
		setenv("STEPSIM_DOUBLE_CC", d.capability, 1);
		CU_ASSERT_EQUAL(apart(NULL, 1, [&] { return shared_memory(d.most_B); }), 0);
	}
	unsetenv("STEPSIM_DOUBLE_CC");
}

static void test_faults(void)
{
	CU_ASSERT_EQUAL(apart("malloc:2", 1, malloc_fails), 0);
	CU_ASSERT_EQUAL(apart("launch:2", 1, launch_fails), 0);
	CU_ASSERT_EQUAL(apart("kernel:2", 1, kernel_fails), 0);
	CU_ASSERT_EQUAL(apart("nogpu", 1, no_gpu), 0);
	CU_ASSERT_EQUAL(apart("busy", 1, busy_gpu), 0);
	CU_ASSERT_EQUAL(apart("rank:1:nogpu", 1, all_well), 0);
	setenv("OMPI_COMM_WORLD_RANK", "1", 1);
	CU_ASSERT_EQUAL(apart("rank:0:busy,rank:1:nogpu", 1, no_gpu), 0);
	unsetenv("OMPI_COMM_WORLD_RANK");
	CU_ASSERT_EQUAL(apart(NULL, 1, all_well), 0);
	CU_ASSERT_EQUAL(apart(NULL, 1, refused_launches), 0);
}

UNIT_MAIN("double of cudart", {"streams", test_streams}, {"graphs", test_graphs}, {"seed", test_seed},
	{"legacy stream", test_legacy}, {"pageable memory", test_pageable}, {"events", test_events},
	{"memory", test_memory}, {"shared memory", test_shared_memory}, {"faults", test_faults})
