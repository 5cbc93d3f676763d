/* The doubled CUDA runtime's own parts. One lock guards everything; functions named *_locked are called with it held.
 * Private to cudart*.cc. */
#ifndef STEPSIM_TESTS_DOUBLES_CUDART_H
#define STEPSIM_TESTS_DOUBLES_CUDART_H

#include "tests/doubles/double.h"

#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#define API extern "C"

typedef std::unique_lock<std::mutex> lock;

/* Something that comes to pass once: the end of an op, of a record of an event. */
struct record {
	bool done;
	int64_t at_ns;
};
typedef std::shared_ptr<record> record_ref;

struct event_state {
	bool timing;
	record_ref last; /* NULL: never recorded */
};

struct capture;
struct CUevent_st {
	std::shared_ptr<event_state> state;
	std::shared_ptr<capture> in; /* its last record was captured there, behind these nodes */
	std::vector<size_t> behind;
};

/* A piece of work. In a captured graph `poll`, `finished` and `after` are empty: each launch makes its own. */
struct node {
	std::function<void()> work;
	std::function<double_poll()> start;
	double_poll poll;
	bool kernel = false, fails = false, done = false;
	std::shared_ptr<event_state> records, waits; /* outside its graph */
	record_ref finished;
	std::vector<record_ref> after;
	std::vector<size_t> after_nodes; /* of the same op */
};

/* One entry of a stream's queue: a node, or the nodes of a launched graph. */
struct op {
	std::vector<node> nodes;
	size_t left;
	std::vector<record_ref> after;
	record_ref finished;
};

struct capture {
	std::vector<node> nodes;
	cudaStreamCaptureMode mode;
	std::thread::id by;
	cudaStream_t origin;
	std::vector<cudaStream_t> streams;
	bool broken = false, ended = false;
};

struct CUstream_st {
	int device = 0, priority = 0;
	unsigned flags = 0;
	bool legacy = false, gone = false;
	std::deque<std::unique_ptr<op>> queue;
	record_ref last; /* of the op put on it last; NULL: none yet */
	std::shared_ptr<struct capture> capturing;
	std::vector<size_t> frontier; /* there: nodes that the next one follows */
	unsigned weight = 1;
};

struct CUgraph_st {
	std::vector<node> nodes;
};
struct CUgraphExec_st {
	std::vector<node> nodes;
	record_ref last;
};

struct gpu {
	cudaError_t failed = cudaSuccess;
	CUstream_st legacy;
	uint64_t used_B = 0;
};

struct world {
	std::mutex mutex;
	std::condition_variable for_worker, for_hosts;
	std::vector<gpu> gpus;
	std::vector<cudaStream_t> streams; /* in the order in which they were made, legacy ones included */
	std::set<cudaEvent_t> events;
	std::set<cudaGraph_t> graphs;
	std::set<cudaGraphExec_t> execs;
	std::vector<std::shared_ptr<capture>> captures;
	std::vector<record_ref> waited; /* what hosts wait for */
	std::mt19937_64 random;
	unsigned tokens = 0, pushes = 0, picks = 0, eager = 0;
	bool idle = false, works = false;
	int64_t launches = 0, kernels = 0, allocations = 0;
};
world &the(void);

/* cudart.cc */
extern __thread int device_now;
cudaError_t said(cudaError_t code); /* remembers it for cudaGetLastError */
cudaError_t usable_locked(void);    /* the current device, by a call that needs it */
uint64_t memory_B(void);            /* of a device */
void fail_device(int device, const char *why);
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A call that needs the device: f(lock) -> code. */
template <class F> static cudaError_t on_device(F f)
{
	lock hold(the().mutex);
	cudaError_t code = usable_locked();
	return said(code == cudaSuccess ? f(hold) : code);
}

/* cudart_fatbin.cc: adds the bytes of static shared memory of each kernel, by mangled name. */
void fatbin_read(const void *registered, std::map<std::string, size_t> &static_B);

/* cudart_stream.cc */
cudaStream_t stream_locked(cudaStream_t s);             /* the stream meant, NULL where there is none */
cudaError_t submit(lock &hold, cudaStream_t s, node n); /* onto the stream, or into its capture */
void push_locked(lock &hold, cudaStream_t s, std::vector<node> nodes, std::vector<record_ref> after,
	record_ref finished);
cudaError_t wait_locked(lock &hold, record_ref r); /* returns the device's error, if any */
cudaError_t drain_locked(lock &hold);              /* all streams of the current device */
bool on_worker(void);

/* cudart_graph.cc */
cudaError_t unsafe_locked(void); /* by a call that no capture may be under way beside */
cudaError_t break_capture(const std::shared_ptr<capture> &c, cudaError_t code);
void leave_capture(cudaStream_t s); /* it is being destroyed */
void capture_node(cudaStream_t s, node n);
cudaError_t capture_wait(cudaStream_t s, cudaEvent_t e, bool outside);

#endif
