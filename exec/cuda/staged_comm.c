/* A call is a copy to pinned memory, a host function that hands it to the communicator's thread, a wait of the stream
 * for a word in pinned memory, and the copy back.
 *
 * The host function must not carry the collective itself: CUDA may run all host functions of a process one after the
 * other, and with two lanes ranks would wait for each other in a circle. Nothing here runs one lane behind another:
 * each communicator has its thread, and the wait (the driver's cuStreamWaitValue32, asked for by name) holds back its
 * own stream alone. A call's record and buffers stay until the end, since a captured graph goes on using them. */
#include "exec/cuda/staged_comm.h"

#include <assert.h>
#include <cuda.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "exec/cuda/check.h"

#define SPINS 2000
#define DRIVER_VERSION 12000 /* of the entry point: the one without the older flags */

typedef CUresult wait_value_fn(CUstream stream, CUdeviceptr at, cuuint32_t value, unsigned flags);

struct pinned {
	struct pinned *next;
	size_t bytes;
	char *at;
};

struct staged;

struct staged_call {
	struct staged_call *next;
	struct staged *s;
	struct comm_call call; /* as it was asked for */
	char *raw,
		*wide; /* the full buffer in its own format, and in fp32; one place where the format needs no other */
	size_t apart;  /* elements from what is sent to what arrives: 0 where a collective may be in place */
};

struct staged {
	struct comm host;
	double timeout_s;
	wait_value_fn *wait_value;
	_Atomic uint32_t *arrived; /* pinned: 1 when the posted call's result is there */
	struct staged_call *calls;
	struct pinned *buffers; /* the largest first */
	cudaEvent_t ended;      /* of the last call, for one that comes on another stream */
	void *last_queue;
	pthread_t thread;
	bool threaded, primitives;
	pthread_mutex_t mutex;
	pthread_cond_t posted_or_over;
	struct staged_call *posted; /* under the mutex, as what follows */
	bool over;
	struct error broken;
};

/* ---- numbers ---- */

static void widen(enum dtype d, const void *from, float *to, size_t n)
{
	const uint16_t *bits = from;
	for (size_t i = 0; i < n; i++) {
		if (d == DT_BF16) {
			uint32_t word = (uint32_t)bits[i] << 16;
			memcpy(&to[i], &word, sizeof word);
		} else {
			_Float16 half;
			memcpy(&half, &bits[i], sizeof half);
			to[i] = (float)half;
		}
	}
}

static uint16_t bf16_of(float x)
{
	uint32_t word;
	memcpy(&word, &x, sizeof word);
	if ((word & 0x7fffffff) > 0x7f800000)
		return (uint16_t)((word >> 16) | 0x40); /* not a number: stays one */
	return (uint16_t)((word + 0x7fff + ((word >> 16) & 1)) >> 16);
}

static void narrow(enum dtype d, const float *from, void *to, size_t n)
{
	uint16_t *bits = to;
	for (size_t i = 0; i < n; i++) {
		if (d == DT_BF16) {
			bits[i] = bf16_of(from[i]);
		} else {
			_Float16 half = (_Float16)from[i];
			memcpy(&bits[i], &half, sizeof half);
		}
	}
}

/* ---- the communicator's thread ---- */

struct span {
	uint64_t first, n; /* elements of the full buffer */
};

/* The elements that this rank sends, and those that it receives. */
static struct span given(const struct staged *s, const struct comm_call *call)
{
	uint64_t part = call->elements / (uint64_t)s->host.size;
	if (call->coll == COLL_RECV)
		return (struct span){0, 0};
	return call->coll == COLL_ALL_GATHER ? (struct span){part * (uint64_t)s->host.rank, part}
	                                     : (struct span){0, call->elements};
}

static struct span got(const struct staged *s, const struct comm_call *call)
{
	uint64_t part = call->elements / (uint64_t)s->host.size;
	if (call->coll == COLL_SEND)
		return (struct span){0, 0};
	return call->coll == COLL_REDUCE_SCATTER ? (struct span){part * (uint64_t)s->host.rank, part}
	                                         : (struct span){0, call->elements};
}

static bool is_over(struct staged *s)
{
	pthread_mutex_lock(&s->mutex);
	bool over = s->over;
	pthread_mutex_unlock(&s->mutex);
	return over;
}

static enum status run_host_call(struct staged *s, const struct comm_call *call, struct error *e)
{
	const struct timespec nap = {0, 50000};
	double end_s = clock_s() + s->timeout_s;
	bool done = false;
	enum status st = comm_start(&s->host, call, e);
	for (unsigned turn = 0; !st && !done; turn++) {
		if ((st = comm_test(&s->host, &done, e)) || done)
			break;
		if (clock_s() > end_s || (turn % SPINS == 0 && is_over(s)))
			return error_set(e, ST_RUN, "%s of %llu %s elements through the host: not done after %g s",
				collective_name(call->coll), (unsigned long long)call->elements,
				dtype_name(call->dtype), s->timeout_s);
		if (turn < SPINS)
			sched_yield();
		else
			nanosleep(&nap, NULL);
	}
	return st;
}

static void serve(struct staged *s, const struct staged_call *c)
{
	const struct comm_call *call = &c->call;
	struct span in = given(s, call), out = got(s, call);
	struct error e = {ST_OK, ""};
	bool wide = c->wide != c->raw;
	if (wide)
		widen(call->dtype, c->raw + 2 * in.first, (float *)(void *)c->wide + in.first, (size_t)in.n);
	struct comm_call host = {
		.coll = call->coll,
		.reduce = call->reduce,
		.dtype = wide ? DT_FP32 : call->dtype,
		.elements = call->elements,
		.in = c->wide + 4 * in.first,
		.out = c->wide + 4 * (c->apart + out.first),
	};
	if (run_host_call(s, &host, &e)) {
		pthread_mutex_lock(&s->mutex);
		if (!s->broken.status)
			s->broken = e;
		pthread_mutex_unlock(&s->mutex);
		return;
	}
	if (wide)
		narrow(call->dtype, (float *)(void *)c->wide + c->apart + out.first,
			c->raw + 2 * (c->apart + out.first), (size_t)out.n);
}

/* After a failure calls pass unserved, so that the streams end. */
static void *thread_main(void *arg)
{
	struct staged *s = arg;
	pthread_mutex_lock(&s->mutex);
	while (!s->over) {
		struct staged_call *c = s->posted;
		if (!c) {
			pthread_cond_wait(&s->posted_or_over, &s->mutex);
			continue;
		}
		s->posted = NULL;
		bool broken = s->broken.status != ST_OK;
		pthread_mutex_unlock(&s->mutex);
		if (!broken)
			serve(s, c);
		atomic_store(s->arrived, 1);
		pthread_mutex_lock(&s->mutex);
	}
	pthread_mutex_unlock(&s->mutex);
	return NULL;
}

/* On a thread of CUDA's, in the stream's order. */
static void CUDART_CB post(void *arg)
{
	struct staged_call *c = arg;
	pthread_mutex_lock(&c->s->mutex);
	if (!c->s->over) { /* else nobody would answer, and the stream passes */
		atomic_store(c->s->arrived, 0);
		c->s->posted = c;
		pthread_cond_signal(&c->s->posted_or_over);
	}
	pthread_mutex_unlock(&c->s->mutex);
}

/* ---- calls ---- */

/* Calls follow each other on the stream: they share the largest buffer. */
static enum status buffer_of(struct staged *s, size_t bytes, char **out, struct error *e)
{
	if (!s->buffers || s->buffers->bytes < bytes) {
		struct pinned *p = calloc(1, sizeof *p);
		if (!p)
			return error_nomem(e, "the record of a pinned buffer");
		size_t twice = s->buffers ? 2 * s->buffers->bytes : 0;
		p->bytes = bytes > twice ? bytes : twice;
		enum status st = CUDA_CHECK(cudaMallocHost((void **)&p->at, p->bytes), e);
		if (st) {
			free(p);
			return st;
		}
		p->next = s->buffers;
		s->buffers = p;
	}
	*out = s->buffers->at;
	return ST_OK;
}

static bool same_call(const struct comm_call *a, const struct comm_call *b)
{
	return a->coll == b->coll && a->reduce == b->reduce && a->dtype == b->dtype && a->elements == b->elements &&
	       a->in == b->in && a->out == b->out && a->queue == b->queue;
}

static enum status call_of(struct staged *s, const struct comm_call *call, struct staged_call **out, struct error *e)
{
	struct staged_call *c = s->calls;
	bool half = call->dtype == DT_BF16 || call->dtype == DT_FP16;
	while (c && !same_call(&c->call, call))
		c = c->next;
	*out = c;
	if (c)
		return ST_OK;
	if (!half && call->dtype != DT_FP32 && call->dtype != DT_TF32 && call->dtype != DT_INT32)
		return error_set(e, ST_RUN,
			"%s of %s: collectives through the host are of fp32, bf16, fp16 and int32 only",
			collective_name(call->coll), dtype_name(call->dtype));
	if (collective_cuts(call->coll) && call->elements % (uint64_t)s->host.size)
		return error_set(e, ST_RUN, "%s of %llu elements does not divide among %lld ranks",
			collective_name(call->coll), (unsigned long long)call->elements, (long long)s->host.size);
	if (!(c = calloc(1, sizeof *c)))
		return error_nomem(e, "the record of a collective");
	bool in_place = call->coll != COLL_ALLTOALL && call->coll != COLL_SENDRECV;
	size_t elements = (size_t)call->elements * (in_place ? 1 : 2);
	enum status st = buffer_of(s, elements * (half ? 8 : 4), &c->wide, e);
	if (st) {
		free(c);
		return st;
	}
	c->raw = half ? c->wide + 4 * elements : c->wide;
	c->apart = in_place ? 0 : (size_t)call->elements;
	c->s = s;
	c->call = *call;
	c->next = s->calls;
	*out = s->calls = c;
	return ST_OK;
}

static enum status staged_test(void *ctx, bool *done, struct error *e)
{
	struct staged *s = ctx;
	pthread_mutex_lock(&s->mutex);
	enum status st = s->broken.status ? error_set(e, ST_RUN, "%s", s->broken.text) : ST_OK;
	pthread_mutex_unlock(&s->mutex);
	*done = !st;
	return st;
}

static enum status staged_start(void *ctx, const struct comm_call *call, struct error *e)
{
	struct staged *s = ctx;
	struct staged_call *c;
	bool fine;
	enum status st = staged_test(s, &fine, e);
	if (st || (st = call_of(s, call, &c, e)))
		return st;
	size_t each = c->raw == c->wide ? 4 : 2;
	struct span in = given(s, call), out = got(s, call);
	cudaStream_t queue = call->queue;
	if (s->last_queue && s->last_queue != call->queue &&
		(st = CUDA_CHECK(cudaStreamWaitEvent(queue, s->ended, 0), e)))
		return st;
	if ((in.n && (st = CUDA_CHECK(cudaMemcpyAsync(c->raw + each * in.first, call->in, each * in.n,
					      cudaMemcpyDeviceToHost, queue),
			      e))) ||
		(st = CUDA_CHECK(cudaLaunchHostFunc(queue, post, c), e)))
		return st;
	CUresult waits = s->wait_value((CUstream)queue, (CUdeviceptr)(uintptr_t)s->arrived, 1, CU_STREAM_WAIT_VALUE_EQ);
	if (waits != CUDA_SUCCESS)
		return error_set(e, ST_RUN, "a stream cannot wait for the host: cuStreamWaitValue32 gives CUresult %d",
			(int)waits);
	if (out.n && (st = CUDA_CHECK(cudaMemcpyAsync(call->out, c->raw + each * (c->apart + out.first), each * out.n,
					      cudaMemcpyHostToDevice, queue),
			      e)))
		return st;
	s->last_queue = call->queue;
	return CUDA_CHECK(cudaEventRecord(s->ended, queue), e);
}

/* ---- set-up and end ---- */

static void staged_destroy(void *ctx)
{
	struct staged *s = ctx;
	if (s->threaded) {
		pthread_mutex_lock(&s->mutex);
		s->over = true;
		pthread_cond_signal(&s->posted_or_over);
		pthread_mutex_unlock(&s->mutex);
		pthread_join(s->thread, NULL);
		atomic_store(s->arrived, 1);
		cudaEventSynchronize(s->ended);
	}
	if (s->primitives) {
		pthread_cond_destroy(&s->posted_or_over);
		pthread_mutex_destroy(&s->mutex);
	}
	for (struct staged_call *c = s->calls, *next; c; c = next) {
		next = c->next;
		free(c);
	}
	for (struct pinned *p = s->buffers, *next; p; p = next) {
		next = p->next;
		cudaFreeHost(p->at);
		free(p);
	}
	if (s->ended)
		cudaEventDestroy(s->ended);
	if (s->arrived)
		cudaFreeHost((void *)s->arrived);
	comm_destroy(&s->host);
	free(s);
}

static enum status find_wait(wait_value_fn **out, struct error *e)
{
	void *found = NULL;
	enum cudaDriverEntryPointQueryResult result;
	enum status st = CUDA_CHECK(cudaGetDriverEntryPointByVersion("cuStreamWaitValue32", &found, DRIVER_VERSION,
					    cudaEnableDefault, &result),
		e);
	if (st)
		return st;
	if (result != cudaDriverEntryPointSuccess || !found)
		return error_set(e, ST_RUN,
			"the CUDA driver has no cuStreamWaitValue32: collectives through the host need it");
	static_assert(sizeof found == sizeof *out, "a function's address fits");
	memcpy(out, &found, sizeof found);
	return ST_OK;
}

enum status staged_comm_create(const struct comm *host_comm, double timeout_s, struct comm *out, struct error *e)
{
	static const struct comm_ops ops = {staged_start, staged_test, staged_destroy};
	struct staged *s = calloc(1, sizeof *s);
	enum status st;
	*out = (struct comm){0};
	if (!s)
		return error_nomem(e, "a communicator");
	s->timeout_s = timeout_s;
	if ((st = find_wait(&s->wait_value, e)) ||
		(st = CUDA_CHECK(cudaMallocHost((void **)&s->arrived, sizeof *s->arrived), e)) ||
		(st = CUDA_CHECK(cudaEventCreateWithFlags(&s->ended, cudaEventDisableTiming), e)))
		goto out;
	atomic_init(s->arrived, 0);
	s->primitives = pthread_mutex_init(&s->mutex, NULL) == 0 && pthread_cond_init(&s->posted_or_over, NULL) == 0;
	s->threaded = s->primitives && pthread_create(&s->thread, NULL, thread_main, s) == 0;
	if (!s->threaded) {
		st = error_set(e, ST_RUN, "no thread for a communicator");
		goto out;
	}
	s->host = *host_comm;
	*out = (struct comm){&ops, s, host_comm->size, host_comm->rank};
out:
	if (st)
		staged_destroy(s);
	return st;
}
