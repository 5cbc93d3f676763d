/* The interface of the CUDA backend's shared object: one table of functions, found under one symbol.
 *
 * The object alone links cudart, cuBLASLt, cuDNN and NCCL, and is opened only when somebody asks for GPUs, so that
 * stepsim starts and predicts where none of these libraries is (together they cost 155 MB and 0.6 s at start-up). It
 * uses base/ and step/ from the binary that opens it (linked with -rdynamic): there is one copy of either.
 */
#ifndef STEPSIM_EXEC_CUDA_BACKEND_H
#define STEPSIM_EXEC_CUDA_BACKEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "exec/comm.h"
#include "exec/device.h"
#include "exec/micro.h"

#define CUDA_OBJECT "libstepsim_cuda.so"
#define CUDA_ENTRY "stepsim_cuda_backend"

struct cuda_facts {
	int runtime, driver;     /* CUDART_VERSION style: 13000 is 13.0; driver 0: none */
	int cublas, cudnn, nccl; /* as each library encodes its version */
	int devices;
	bool doubles;       /* the libraries are the tests' doubles: no figure of them may be reported */
	char why_none[256]; /* devices == 0: CUDA's own words */
	char device[256];   /* name of device 0 */
};

/* One GPU as this rank may use it. */
struct cuda_gpu {
	char name[96], pci[20];      /* "0000:1b:00.0" */
	int sms, compute_capability; /* 90 */
	uint64_t mem_B, free_B;
	bool in_use; /* another process computes on it already */
};

/* Why a GPU's clocks were below what was asked of it: name, bit of nvmlClocksEventReasons, words. Idle GPUs and clocks
 * that somebody set are no reason here. */
#define GPU_REASONS(X) \
	X(POWER_CAP, 0x4, "power cap") \
	X(HARDWARE, 0x8, "hardware slowdown") \
	X(THERMAL_DRIVER, 0x20, "thermal slowdown by the driver") \
	X(THERMAL_HARDWARE, 0x40, "thermal slowdown by the hardware") \
	X(POWER_BRAKE, 0x80, "power brake of the supply")
#define GPU_REASON_ID(id, bit, words) GPU_REASON_##id,
enum gpu_reason { GPU_REASONS(GPU_REASON_ID) GPU_REASON_COUNT };

/* One GPU over a stretch of time. What NVML does not say is 0. */
struct gpu_samples {
	int64_t n;                        /* samples in which the GPU was not idle */
	double clock_Hz, boost_Hz;        /* of the SMs: mean, and the most that this GPU can */
	double power_W, power_limit_W;    /* mean (the driver itself averages over up to a second), and as enforced */
	double temperature_C;             /* highest */
	int64_t reason[GPU_REASON_COUNT]; /* samples in which the clocks were held down for it */
	int64_t shared;                   /* samples in which another process computed there */
};

struct gpu_sampler;

struct cuda_options {
	int device; /* CUDA's number of it */
	bool graph; /* capture the step once and replay it (train.cuda_graph) */
	bool share_gpu;
	bool span; /* stamps tell the first op's begin and the last one's end alone: events between them cost time */
};

/* NCCL's id of a communicator, made by one rank and carried to the others by MPI. */
#define NCCL_ID_B 128

/* Two buffers of device memory and a stream, for calls made by hand. */
struct cuda_scratch {
	void *memory[2], *queue;
};

/* The symbol CUDA_ENTRY is the one object of this type. */
struct cuda_backend {
	void (*facts)(struct cuda_facts *out); /* never fails: what is not there is 0 */
	/* "0000:1b:00.0", lower case. Makes no context. */
	enum status (*address)(int device, char pci[20], struct error *e);
	enum status (*gpu)(int device, struct cuda_gpu *out, struct error *e);
	/* Samples the GPU at this address about every 50 ms, on a thread of its own, between begin and end. ST_OK with
	 * *out NULL where NVML is not there. close is NULL-safe. */
	enum status (*sampler_open)(const char *pci, struct gpu_sampler **out, struct error *e);
	void (*sample_begin)(struct gpu_sampler *s);
	void (*sample_end)(struct gpu_sampler *s, struct gpu_samples *out);
	void (*sampler_close)(struct gpu_sampler *s);
	/* A device behind exec/device.h; its collectives are enqueued through comm_call.queue, so its communicators are
	 * this room's own (below) or host-staged ones. */
	enum status (*device_create)(const struct cuda_options *o, struct device *out, struct error *e);
	enum status (*nccl_id)(unsigned char id[NCCL_ID_B], struct error *e);
	/* The communicator of all ranks, from which the others are split. Collective; waits by polling, at most
	 * timeout_s. */
	enum status (*nccl_world)(const unsigned char id[NCCL_ID_B], int64_t ranks, int64_t rank, int device,
		double timeout_s, struct comm *out, struct error *e);
	/* Collective over the members of `world`: ranks of the same colour form a communicator, ordered by key. colour
	 * -1: no part, out->ops is NULL. Its calls return once they are enqueued, as those of PyTorch and nccl-tests do
	 * (world's go through a thread of NCCL's); the first ones connect, and wait for the members. A call that waits
	 * for a rank that is gone does not return: the watchdog's business. pair: of a sender and a receiver, whose
	 * kernels take few thread blocks. */
	enum status (*nccl_split)(const struct comm *world, int32_t colour, int32_t key, bool pair, struct comm *out,
		struct error *e);
	/* Lets NCCL read and write this device memory directly (user buffer registration), until the ranges are
	 * deregistered, which has to happen before the memory goes, or the communicator is destroyed. At most 4 ranges.
	 * NCCL does not define what happens when some members' buffers are registered and others' are not: after a
	 * failure anywhere, all deregister. ST_RUN where NCCL refuses, or the communicator is broken: test() says
	 * which. Memory of cudaMalloc will do, but for NVLS, which takes ncclMemAlloc's alone (NCCL's user guide, User
	 * Buffer Registration). */
	enum status (*nccl_register)(const struct comm *c, void *at, size_t bytes, struct error *e);
	void (*nccl_deregister)(const struct comm *c);
	/* Asks NCCL how long it expects the call to take; nothing is sent. The buffers and the queue are those of a
	 * real call. ST_RUN where NCCL is older than 2.22. */
	enum status (
		*nccl_estimate)(const struct comm *c, const struct comm_call *call, double *seconds, struct error *e);
	/* From now on NCCL writes into this file what it chooses for each call of this process; NULL: no more. False
	 * where it cannot, or where the user has set NCCL_DEBUG. */
	bool (*nccl_tells)(const char *path);
	enum status (
		*scratch_open)(int device, size_t bytes, struct cuda_scratch *out, struct error *e); /* `bytes` each */
	void (*scratch_close)(struct cuda_scratch *y); /* zeroed members are passed over */
	enum status (*scratch_copy)(const struct cuda_scratch *y, void *to, const void *from, size_t bytes,
		struct error *e); /* host to device or back; done on return, after what stands in the queue */
	enum status (*scratch_idle)(const struct cuda_scratch *y, bool *idle,
		struct error *e); /* nothing stands in the queue any more */
	/* Where NCCL cannot serve: a communicator for device buffers over one on the host (MPI with
	 * MPI_THREAD_MULTIPLE, polled by a thread of its own), through pinned memory. 16-bit formats travel and are
	 * summed as fp32. Takes `host` over when it succeeds. A call that is not done after timeout_s lets its stream
	 * go on and is told by test(). */
	enum status (*staged)(const struct comm *host, double timeout_s, struct comm *out, struct error *e);
	/* Creates the device of the roofline's kernels (exec/micro.h), with an arena of `most_B` or half the free
	 * memory, whichever is less. */
	enum status (*micro_create)(int device, uint64_t most_B, struct micro *out, struct error *e);
};

/* Opens the object that lies beside the running binary (or in ../lib/stepsim of it), once; and keeps it. ST_RUN, with
 * the reason, when it was not built or does not load. */
enum status cuda_backend_open(const struct cuda_backend **out, struct error *e);

#endif
