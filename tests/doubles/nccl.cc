/* Stands in for libnccl.so.2: communicators over MPI, real arithmetic on the doubled runtime's memory.
 *
 * ncclCommInitRankConfig takes MPI_COMM_WORLD where its size is asked for, and no MPI at all for one rank. What the
 * real library does in the background takes threads of its own here as well, and a non-blocking communicator puts a
 * call on its stream only when ncclCommGetAsyncError is asked the second time, so that who does not wait for that is
 * found out. So does its split, which answers "success" at once and writes the child's address when it is done. A
 * blocking group's first call of a kind waits on the host for all members. At the stream's head a call posts MPI_I*,
 * and is polled. An estimate on a non-blocking communicator launches the call, as in the real one. Calls under way hold
 * the thread blocks that their communicators may take; more than a GPU has SMs break a communicator.
 *
 * Faults (double.h): "register" refuses buffers to be registered, "nccl:N" gives an asynchronous error at the Nth call,
 * "hang:N" lets it never end, "die:N" ends the process by SIGKILL.
 */
#include <stdio.h>

#include "tests/doubles/nccl_run.h"

#define API extern "C" __attribute__((visibility("default")))

struct ncclComm {
	state_ref s;
};

namespace
{

/* Counts when it is put on the stream; a replayed graph counts anew. */
ncclResult_t put(cudaStream_t stream, const std::vector<std::shared_ptr<op>> &ops)
{
	cudaError_t code = double_enqueue(stream, [ops]() {
		auto r = std::make_shared<run>();
		r->ops = ops;
		for (auto &o : ops)
			o->s->outstanding++;
		return [r]() { return r->poll(); };
	});
	return code == cudaSuccess
	               ? ncclSuccess
	               : fail(ncclUnhandledCudaError, std::string("Cuda failure '") + cudaGetErrorString(code) + "'");
}

/* ---- groups ---- */

struct pending {
	std::shared_ptr<op> what;
	cudaStream_t stream;
};
thread_local int depth;
thread_local std::vector<pending> group;

/* Ranks connect in a group's first call of a kind (since 2.22): it returns once all members have made it. */
void connect(const op &o)
{
	int met = 0;
	MPI_Request request;
	if (o.s->connects == MPI_COMM_NULL || o.what == SEND || o.what == RECV || o.s->connected & 1U << o.what)
		return;
	o.s->connected |= 1U << o.what;
	for (MPI_Ibarrier(o.s->connects, &request); !met && !o.s->aborted;) {
		MPI_Test(&request, &met, MPI_STATUS_IGNORE);
		if (!met)
			std::this_thread::sleep_for(std::chrono::microseconds(50));
	}
}

ncclResult_t launch(std::vector<pending> calls)
{
	std::vector<std::pair<cudaStream_t, std::vector<std::shared_ptr<op>>>> streams;
	state_ref nonblocking;
	for (auto &c : calls) {
		size_t i = 0;
		while (i < streams.size() && streams[i].first != c.stream)
			i++;
		if (i == streams.size())
			streams.push_back({c.stream, {}});
		streams[i].second.push_back(c.what);
		if (!c.what->s->blocking)
			nonblocking = c.what->s;
	}
	if (!nonblocking) {
		ncclResult_t code = ncclSuccess;
		for (auto &c : calls)
			connect(*c.what);
		for (auto &s : streams)
			if (code == ncclSuccess)
				code = put(s.first, s.second);
		return code;
	}
	std::lock_guard<std::mutex> hold(nonblocking->mutex);
	nonblocking->held = streams;
	nonblocking->polls = 0;
	nonblocking->result = ncclInProgress;
	return ncclInProgress;
}

ncclResult_t check(ncclComm_t comm, const char *call)
{
	if (!comm)
		return fail(ncclInvalidArgument, std::string(call) + " : comm argument is NULL");
	int now = comm->s->result;
	if (now == ncclInProgress)
		return fail(ncclInvalidArgument,
			"Attempt to use communicator before the previous operation returned ncclSuccess");
	if (comm->s->finalized)
		return fail(ncclInvalidArgument, std::string(call) + " : communicator was finalized");
	return (ncclResult_t)now;
}

/* A result inside the input is right at its own place alone. */
bool overlap(const op &o)
{
	size_t bytes = format_of(o.type).bytes, in_B = in_count(o) * bytes, out_B = out_count(o) * bytes,
	       own = o.count * bytes * (size_t)o.s->rank;
	if (o.what == SEND || o.what == RECV || o.in + in_B <= o.out || o.out + out_B <= o.in)
		return false;
	return o.what == ALL_GATHER       ? o.in != o.out + own
	       : o.what == REDUCE_SCATTER ? o.out != o.in + own
	                                  : o.in != o.out;
}

/* As the real library (2.28) words it, of its first rank: the environment is read once, and again after a reset; the
 * file is opened then, and written on wherever the last line ended. */
struct {
	bool read;
	FILE *file;
} debug;

void tell(const char *call, size_t bytes)
{
	const char *level = getenv("NCCL_DEBUG"), *subsystem = getenv("NCCL_DEBUG_SUBSYS"),
		   *path = getenv("NCCL_DEBUG_FILE");
	if (!debug.read && level && !strcmp(level, "INFO") && subsystem && !strcmp(subsystem, "TUNING") && path &&
		(debug.file = fopen(path, "w")))
		setvbuf(debug.file, NULL, _IOLBF, BUFSIZ);
	debug.read = true;
	if (debug.file)
		fprintf(debug.file,
			"double:1:1 [0] NCCL INFO %s: %zu Bytes -> Algo RING proto SIMPLE channel{Lo..Hi}={0..1}\n",
			call, bytes);
}

ncclResult_t enqueue(const char *call, ncclComm_t comm, kind what, const void *in, void *out, size_t count,
	ncclDataType_t type, ncclRedOp_t reduce, int peer, cudaStream_t stream)
{
	ncclResult_t code = check(comm, call);
	if (code != ncclSuccess)
		return code;
	auto o = std::make_shared<op>(op{comm->s, what, (const char *)in, (char *)out, count, type, reduce, peer});
	format f = format_of(type);
	bool sums = what == ALL_REDUCE || what == REDUCE_SCATTER;
	if (f.bytes == 0 || (sums && (f.wire == MPI_DATATYPE_NULL || reduce < 0 || reduce >= ncclNumOps)))
		return fail(ncclInvalidArgument, std::string(call) + " : invalid type " + std::to_string(type) +
							 " or operation " + std::to_string(reduce));
	if (!sums && what != ALL_GATHER && what != ALLTOALL && (peer < 0 || peer >= comm->s->size))
		return fail(ncclInvalidArgument, std::string(call) + " : invalid peer or root " + std::to_string(peer));
	if (count * f.bytes * (size_t)comm->s->size > 0x7fffffff)
		return fail(ncclInternalError, std::string(call) + " : the double carries at most 2 GiB");
	if (count == 0)
		return ncclSuccess;
	if ((what != RECV && !in && !(what == BROADCAST && peer != comm->s->rank)) || (what != SEND && !out))
		return fail(ncclInvalidArgument, std::string(call) + " : a buffer is NULL");
	if (overlap(*o))
		return fail(ncclInvalidArgument, std::string(call) + " : the buffers overlap");
	tell(call, count * f.bytes);
	group.push_back({o, stream});
	if (depth > 0)
		return ncclSuccess;
	std::vector<pending> calls;
	calls.swap(group);
	return launch(calls);
}

/* ---- set-up ---- */

#define WHO_B 512
struct who {
	char host[256], gpu[64], id[NCCL_UNIQUE_ID_BYTES];
};
static_assert(sizeof(who) <= WHO_B, "what ranks tell each other");

who describe(const ncclUniqueId &id, int device)
{
	who w;
	memset(&w, 0, sizeof w);
	const char *host = getenv("NCCL_HOSTID");
	if (host)
		snprintf(w.host, sizeof w.host, "%s", host);
	else
		gethostname(w.host, sizeof w.host - 1);
	if (cudaDeviceGetPCIBusId(w.gpu, sizeof w.gpu, device) != cudaSuccess)
		snprintf(w.gpu, sizeof w.gpu, "%d", device);
	memcpy(w.id, id.internal, sizeof w.id);
	return w;
}

/* In a thread of its own: the others may never come. */
void meet(state_ref s, who own)
{
	std::vector<who> all((size_t)s->size);
	if (MPI_Comm_dup(MPI_COMM_WORLD, &s->mpi) != MPI_SUCCESS)
		return break_comm(s, ncclSystemError, "MPI_Comm_dup failed");
	MPI_Comm_set_errhandler(s->mpi, MPI_ERRORS_RETURN);
	MPI_Allgather(&own, (int)sizeof own, MPI_BYTE, all.data(), (int)sizeof own, MPI_BYTE, s->mpi);
	for (int i = 0; i < s->size; i++)
		if (memcmp(all[(size_t)i].id, all[0].id, sizeof own.id) != 0)
			return; /* two communicators, neither of which ever has its ranks */
	for (int i = 0; i < s->size; i++)
		for (int k = i + 1; k < s->size; k++)
			if (strcmp(all[(size_t)i].host, all[(size_t)k].host) == 0 &&
				strcmp(all[(size_t)i].gpu, all[(size_t)k].gpu) == 0)
				return break_comm(s, ncclInvalidUsage,
					"Duplicate GPU detected : rank " + std::to_string(i) + " and rank " +
						std::to_string(k) + " both on CUDA device " + all[(size_t)i].gpu);
	s->result = ncclSuccess;
}

/* The child is there at the very end: where the parent is not blocking, not before its state was asked for twice. */
void part(state_ref parent, state_ref child, int color, int key, ncclComm_t *where)
{
	MPI_Comm made = MPI_COMM_NULL;
	if (parent->size > 1)
		MPI_Comm_split(parent->mpi, color < 0 ? MPI_UNDEFINED : color, key, &made);
	if (child && made != MPI_COMM_NULL) {
		MPI_Comm_set_errhandler(made, MPI_ERRORS_RETURN);
		MPI_Comm_size(made, &child->size);
		MPI_Comm_rank(made, &child->rank);
		child->mpi = made;
		if (child->blocking && child->size > 1)
			MPI_Comm_dup(made, &child->connects);
	}
	while (!parent->blocking && parent->polls < 2 && !parent->aborted)
		std::this_thread::sleep_for(std::chrono::microseconds(50));
	std::lock_guard<std::mutex> hold(parent->mutex);
	if (parent->aborted)
		return;
	if (child) {
		child->result = ncclSuccess;
		*where = new ncclComm{child};
	}
	parent->result = ncclSuccess;
}

ncclResult_t wait_for(const state_ref &s)
{
	while (s->result == ncclInProgress)
		std::this_thread::sleep_for(std::chrono::microseconds(100));
	return (ncclResult_t)s->result.load();
}

bool config_ok(const ncclConfig_t *c) { return !c || (c->magic == 0xcafebeef && c->size == sizeof *c); }
/* Of a communicator that shares no channels with its parent. */
int config_blocks(const ncclConfig_t *c) { return c && c->maxCTAs != NCCL_CONFIG_UNDEF_INT ? c->maxCTAs : MOST_BLOCKS; }
bool config_blocking(const ncclConfig_t *c, bool inherited)
{
	return c && c->blocking != NCCL_CONFIG_UNDEF_INT ? c->blocking != 0 : inherited;
}

} // namespace

API ncclResult_t ncclGetVersion(int *version)
{
	const char *set = getenv("STEPSIM_DOUBLE_NCCL"); /* as of an older library: 22005 */
	*version = set && *set ? atoi(set) : NCCL_VERSION_CODE;
	return ncclSuccess;
}

API ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
	memset(id, 0, sizeof *id);
	FILE *f = fopen("/dev/urandom", "rb");
	size_t n = f ? fread(id->internal, 1, 32, f) : 0;
	if (f)
		fclose(f);
	return n == 32 ? ncclSuccess : fail(ncclSystemError, "no randomness");
}

API ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int nranks, ncclUniqueId id, int rank, ncclConfig_t *config)
{
	for (const char *name : {"NCCL_ALGO", "NCCL_PROTO"})
		if (getenv("STEPSIM_DOUBLE_TELL") && getenv(name))
			fprintf(stderr, "NCCL double: rank %d: %s=%s\n", rank, name, getenv(name));
	int world = 1, device = 0, started = 0;
	*comm = NULL;
	if (nranks < 1 || rank < 0 || rank >= nranks || !config_ok(config))
		return fail(ncclInvalidArgument, "invalid rank requested : " + std::to_string(rank) + "/" +
							 std::to_string(nranks) +
							 ", or a config that was not initialized");
	if (cudaGetDevice(&device) != cudaSuccess)
		return fail(ncclUnhandledCudaError, "no CUDA device");
	MPI_Initialized(&started);
	if (started)
		MPI_Comm_size(MPI_COMM_WORLD, &world);
	if (nranks > 1 && nranks != world)
		return fail(ncclInvalidUsage,
			"the double makes communicators of one rank or of all " + std::to_string(world));
	auto s = std::make_shared<state>();
	s->size = nranks;
	s->rank = rank;
	s->device = device;
	s->blocking = config_blocking(config, true);
	s->blocks = config_blocks(config);
	s->result = nranks > 1 ? ncclInProgress : ncclSuccess;
	*comm = new ncclComm{s};
	if (nranks == 1)
		return ncclSuccess;
	std::thread(meet, s, describe(id, device)).detach();
	return s->blocking ? wait_for(s) : ncclInProgress;
}

API ncclResult_t ncclCommInitRank(ncclComm_t *comm, int nranks, ncclUniqueId id, int rank)
{
	return ncclCommInitRankConfig(comm, nranks, id, rank, NULL);
}

API ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t *made, ncclConfig_t *config)
{
	*made = NULL;
	ncclResult_t code = check(comm, "CommSplit");
	if (code != ncclSuccess)
		return code;
	if (!config_ok(config) || color < NCCL_SPLIT_NOCOLOR)
		return fail(ncclInvalidArgument, "CommSplit : invalid color or config");
	state_ref parent = comm->s, child;
	if (color >= 0) {
		child = std::make_shared<state>();
		child->device = parent->device;
		child->blocking = config_blocking(config, parent->blocking);
		child->blocks = config_blocks(config);
		if (getenv("STEPSIM_DOUBLE_TELL"))
			fprintf(stderr, "NCCL double: split: %s, at most %d blocks\n",
				child->blocking ? "blocking" : "not blocking", child->blocks);
		child->result = ncclInProgress;
	}
	parent->polls = 0;
	parent->result = ncclInProgress;
	std::thread(part, parent, child, color, key, made).detach();
	return parent->blocking ? wait_for(parent) : ncclSuccess; /* as the real library, with the parent in progress */
}

API ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *result)
{
	if (!comm)
		return fail(ncclInvalidArgument, "CommGetAsyncError : comm argument is NULL");
	state_ref s = comm->s;
	decltype(s->held) due;
	{
		std::lock_guard<std::mutex> hold(s->mutex);
		if (++s->polls > 1 && !s->held.empty())
			due.swap(s->held);
	}
	ncclResult_t code = ncclSuccess;
	for (auto &d : due)
		if (code == ncclSuccess)
			code = put(d.first, d.second);
	int expected = ncclInProgress;
	if (!due.empty())
		s->result.compare_exchange_strong(expected, code);
	if (s->finalized && s->result == ncclInProgress && s->outstanding == 0)
		s->result = ncclSuccess;
	*result = (ncclResult_t)s->result.load();
	return ncclSuccess;
}

API ncclResult_t ncclCommFinalize(ncclComm_t comm)
{
	ncclResult_t code = check(comm, "CommFinalize");
	if (code != ncclSuccess)
		return code;
	comm->s->finalized = true;
	comm->s->result = ncclInProgress;
	while (comm->s->blocking && comm->s->outstanding > 0)
		std::this_thread::sleep_for(std::chrono::microseconds(100));
	if (comm->s->blocking)
		comm->s->result = ncclSuccess;
	return comm->s->blocking ? ncclSuccess : ncclInProgress;
}

API ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
	int over = 0;
	if (!comm)
		return ncclSuccess;
	while (comm->s->outstanding > 0)
		std::this_thread::sleep_for(std::chrono::microseconds(100));
	MPI_Finalized(&over);
	if (!over && comm->s->mpi != MPI_COMM_NULL)
		MPI_Comm_free(&comm->s->mpi);
	delete comm;
	return ncclSuccess;
}

/* MPI has no way to end a collective that others left: its communicator stays. */
API ncclResult_t ncclCommAbort(ncclComm_t comm)
{
	if (!comm)
		return ncclSuccess;
	{
		std::lock_guard<std::mutex> hold(comm->s->mutex); /* of a split that is ending */
		comm->s->aborted = true;
	}
	delete comm;
	return ncclSuccess;
}

API const char *ncclGetErrorString(ncclResult_t code)
{
	static const char *const texts[] = {"no error", "unhandled cuda error (run with NCCL_DEBUG=INFO for details)",
		"unhandled system error (run with NCCL_DEBUG=INFO for details)",
		"internal error - please report this issue to the NCCL developers",
		"invalid argument (run with NCCL_DEBUG=WARN for details)",
		"invalid usage (run with NCCL_DEBUG=WARN for details)",
		"remote process exited or there was a network error", "NCCL operation in progress"};
	return code >= 0 && code < ncclNumResults ? texts[code] : "unknown result code";
}

API const char *ncclGetLastError(ncclComm_t)
{
	static thread_local std::string copy;
	std::lock_guard<std::mutex> hold(last_mutex);
	copy = last_error;
	return copy.c_str();
}

API ncclResult_t ncclCommCount(const ncclComm_t comm, int *count)
{
	if (!comm || comm->s->result == ncclInProgress)
		return fail(ncclInvalidArgument, "CommCount : the communicator is not ready");
	*count = comm->s->size;
	return ncclSuccess;
}

API ncclResult_t ncclCommUserRank(const ncclComm_t comm, int *rank)
{
	if (!comm || comm->s->result == ncclInProgress)
		return fail(ncclInvalidArgument, "CommUserRank : the communicator is not ready");
	*rank = comm->s->rank;
	return ncclSuccess;
}

API ncclResult_t ncclCommCuDevice(const ncclComm_t comm, int *device)
{
	if (!comm || comm->s->result == ncclInProgress)
		return fail(ncclInvalidArgument, "CommCuDevice : the communicator is not ready");
	*device = comm->s->device;
	return ncclSuccess;
}

struct registration {
	const void *at;
	size_t bytes;
};

/* A program that leaves with registrations is found out, and one that frees registered memory before:
 * STEPSIM_DOUBLE_TELL says both counts at the end. */
static struct registrations {
	std::atomic<int> made{0}, undone{0};
	~registrations()
	{
		if (getenv("STEPSIM_DOUBLE_TELL"))
			fprintf(stderr, "NCCL double: %d buffers registered, %d deregistered\n", made.load(),
				undone.load());
	}
} registered;

API ncclResult_t ncclCommRegister(const ncclComm_t comm, void *at, size_t bytes, void **handle)
{
	*handle = NULL;
	ncclResult_t code = check(comm, "CommRegister");
	if (code != ncclSuccess)
		return code;
	if (!at || bytes == 0 || double_fault("register"))
		return fail(ncclInvalidArgument, "CommRegister : the buffer cannot be registered");
	if (!double_memory("CommRegister", at, bytes))
		return ncclInvalidArgument;
	*handle = new registration{at, bytes};
	registered.made++;
	return ncclSuccess;
}

API ncclResult_t ncclCommDeregister(const ncclComm_t comm, void *handle)
{
	registration *r = (registration *)handle;
	if (r && !double_memory("CommDeregister", r->at, r->bytes))
		return ncclInvalidArgument;
	if (r)
		registered.undone++;
	delete r;
	return comm ? ncclSuccess : fail(ncclInvalidArgument, "CommDeregister : comm argument is NULL");
}

API void ncclResetDebugInit(void)
{
	if (debug.file)
		fclose(debug.file);
	debug.file = NULL;
	debug.read = false;
}

API ncclResult_t ncclAllReduce(const void *in, void *out, size_t count, ncclDataType_t type, ncclRedOp_t op,
	ncclComm_t comm, cudaStream_t stream)
{
	return enqueue("AllReduce", comm, ALL_REDUCE, in, out, count, type, op, 0, stream);
}

API ncclResult_t ncclAllGather(const void *in, void *out, size_t count, ncclDataType_t type, ncclComm_t comm,
	cudaStream_t stream)
{
	return enqueue("AllGather", comm, ALL_GATHER, in, out, count, type, ncclSum, 0, stream);
}

API ncclResult_t ncclReduceScatter(const void *in, void *out, size_t count, ncclDataType_t type, ncclRedOp_t op,
	ncclComm_t comm, cudaStream_t stream)
{
	return enqueue("ReduceScatter", comm, REDUCE_SCATTER, in, out, count, type, op, 0, stream);
}

API ncclResult_t ncclBroadcast(const void *in, void *out, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
	cudaStream_t stream)
{
	return enqueue("Broadcast", comm, BROADCAST, in, out, count, type, ncclSum, root, stream);
}

API ncclResult_t ncclAlltoAll(const void *in, void *out, size_t count, ncclDataType_t type, ncclComm_t comm,
	cudaStream_t stream)
{
	return enqueue("AlltoAll", comm, ALLTOALL, in, out, count, type, ncclSum, 0, stream);
}

API ncclResult_t ncclSend(const void *in, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
	cudaStream_t stream)
{
	return enqueue("Send", comm, SEND, in, NULL, count, type, ncclSum, peer, stream);
}

API ncclResult_t ncclRecv(void *out, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream)
{
	return enqueue("Recv", comm, RECV, NULL, out, count, type, ncclSum, peer, stream);
}

API ncclResult_t ncclGroupStart(void)
{
	depth++;
	return ncclSuccess;
}

API ncclResult_t ncclGroupEnd(void)
{
	if (depth == 0)
		return fail(ncclInvalidUsage, "ncclGroupEnd: not in a group call.");
	if (--depth > 0)
		return ncclSuccess;
	std::vector<pending> calls;
	calls.swap(group);
	return calls.empty() ? ncclSuccess : launch(calls);
}

/* 10 us a call and 100 GB/s for what a ring sends. */
API ncclResult_t ncclGroupSimulateEnd(ncclSimInfo_t *info)
{
	if (depth == 0)
		return fail(ncclInvalidUsage, "ncclGroupEnd: not in a group call.");
	if (info && (info->magic != 0x74685283 || info->size != sizeof *info)) {
		depth = 0;
		group.clear();
		return fail(ncclInvalidArgument,
			"ncclSimInfo_t argument is not initialized via NCCL_SIM_INFO_INITIALIZER");
	}
	depth = 0;
	std::vector<pending> calls;
	calls.swap(group);
	double us = 0;
	for (auto &c : calls) {
		if (!c.what->s->blocking)
			return launch(calls);
		double n = c.what->s->size, bytes = (double)(std::max(in_count(*c.what), out_count(*c.what)) *
							     format_of(c.what->type).bytes);
		us += 10 + (c.what->what == ALL_REDUCE ? 2 : 1) * (n - 1) / n * bytes / 1e5;
	}
	if (info)
		info->estimatedTime = (float)us;
	return ncclSuccess;
}
