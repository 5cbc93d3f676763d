/* A communicator of NCCL's double, and a call of it on its way over MPI. For nccl.cc alone. */
#ifndef STEPSIM_TESTS_DOUBLES_NCCL_RUN_H
#define STEPSIM_TESTS_DOUBLES_NCCL_RUN_H

#define OMPI_SKIP_MPICXX 1
#include <mpi.h>
#include <nccl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/doubles/double.h"

namespace
{

std::mutex last_mutex;
std::string &last_error = *new std::string; /* streams may outlive what is destroyed at the end */
std::atomic<long> executed{0};

ncclResult_t fail(ncclResult_t code, const std::string &text)
{
	std::lock_guard<std::mutex> hold(last_mutex);
	last_error = text;
	return code;
}

/* Whether this call, counted over all communicators of the process, is the one that the fault is meant for. */
bool hit(const char *name, long call) { return double_fault(name) == call; }

/* ---- communicators ---- */

#define MOST_BLOCKS 32
std::atomic<int> made{0};

struct op;

struct state {
	MPI_Comm mpi = MPI_COMM_NULL;      /* none for one rank */
	MPI_Comm connects = MPI_COMM_NULL; /* where members meet in the first call of a kind; none: they do not */
	unsigned connected = 0;            /* kinds, as bits */
	int size = 1, rank = 0, device = 0;
	int number = made.fetch_add(1), blocks = MOST_BLOCKS; /* of a call, at most: ncclConfig_t.maxCTAs */
	bool blocking = true;
	std::atomic<int> result{ncclSuccess}; /* of what goes on in the background; ncclInProgress while it does */
	std::atomic<bool> aborted{false}, finalized{false};
	std::atomic<long> outstanding{0};
	std::string text; /* the last error's, under the mutex */
	std::mutex mutex;
	std::vector<std::pair<cudaStream_t, std::vector<std::shared_ptr<op>>>>
		held;              /* calls of a non-blocking communicator that are not on their streams yet */
	std::atomic<int> polls{0}; /* since the last call or split */
};
typedef std::shared_ptr<state> state_ref;

void break_comm(const state_ref &s, ncclResult_t code, const std::string &text)
{
	std::lock_guard<std::mutex> hold(s->mutex);
	s->text = text;
	s->result = code;
	fail(code, text);
}

/* ---- numbers ---- */

struct format {
	size_t bytes;
	MPI_Datatype wire; /* what sums travel as; MPI_DATATYPE_NULL: no sums */
};

format format_of(ncclDataType_t t)
{
	switch (t) {
	case ncclInt8: return {1, MPI_INT8_T};
	case ncclUint8: return {1, MPI_UINT8_T};
	case ncclInt32: return {4, MPI_INT32_T};
	case ncclUint32: return {4, MPI_UINT32_T};
	case ncclInt64: return {8, MPI_INT64_T};
	case ncclUint64: return {8, MPI_UINT64_T};
	case ncclFloat16:
	case ncclBfloat16: return {2, MPI_FLOAT};
	case ncclFloat32: return {4, MPI_FLOAT};
	case ncclFloat64: return {8, MPI_DOUBLE};
	case ncclFloat8e4m3:
	case ncclFloat8e5m2: return {1, MPI_DATATYPE_NULL};
	default: return {0, MPI_DATATYPE_NULL};
	}
}

bool is_half(ncclDataType_t t) { return t == ncclFloat16 || t == ncclBfloat16; }

size_t wire_bytes(ncclDataType_t t) { return is_half(t) ? 4 : format_of(t).bytes; }

/* 16-bit formats travel as fp32, sums of them are rounded once. */
std::vector<char> to_wire(const void *from, size_t count, ncclDataType_t t)
{
	std::vector<char> wire(count * wire_bytes(t));
	if (!is_half(t)) {
		memcpy(wire.data(), from, wire.size());
		return wire;
	}
	for (size_t i = 0; i < count; i++) {
		float x = t == ncclFloat16 ? __half2float(((const __half *)from)[i])
		                           : __bfloat162float(((const __nv_bfloat16 *)from)[i]);
		memcpy(wire.data() + 4 * i, &x, 4);
	}
	return wire;
}

void from_wire(void *to, const std::vector<char> &wire, size_t count, ncclDataType_t t, bool average, int size)
{
	if (t == ncclFloat64 || !(is_half(t) || t == ncclFloat32)) {
		memcpy(to, wire.data(), count * format_of(t).bytes);
		return;
	}
	for (size_t i = 0; i < count; i++) {
		float x;
		memcpy(&x, wire.data() + 4 * i, 4);
		x = average ? x / (float)size : x;
		if (t == ncclFloat16)
			((__half *)to)[i] = __float2half_rn(x);
		else if (t == ncclBfloat16)
			((__nv_bfloat16 *)to)[i] = __float2bfloat16_rn(x);
		else
			((float *)to)[i] = x;
	}
}

MPI_Op mpi_op(ncclRedOp_t r)
{
	return r == ncclProd ? MPI_PROD : r == ncclMax ? MPI_MAX : r == ncclMin ? MPI_MIN : MPI_SUM;
}

/* ---- calls ---- */

enum kind { ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, BROADCAST, ALLTOALL, SEND, RECV };

struct op {
	state_ref s;
	kind what;
	const char *in;
	char *out;
	size_t count; /* as the call has it */
	ncclDataType_t type;
	ncclRedOp_t reduce;
	int peer; /* or root */
};

/* One call on its way. Its buffers outlive an abort, since MPI may still write to them. */
struct flight {
	std::vector<char> send, receive;
	MPI_Request request = MPI_REQUEST_NULL;
	bool done = false, stuck = false, corrupt = false;
};

size_t in_count(const op &o)
{
	return o.what == REDUCE_SCATTER || o.what == ALLTOALL ? o.count * (size_t)o.s->size : o.count;
}
size_t out_count(const op &o)
{
	return o.what == ALL_GATHER || o.what == ALLTOALL ? o.count * (size_t)o.s->size : o.count;
}

/* Without anybody else every collective is a copy, and what is received is what the group sends, in order. */
void alone(const op &o, std::vector<const op *> &sent)
{
	const op *from = &o;
	if (o.what == SEND)
		sent.push_back(&o);
	if (o.what == RECV) {
		if (sent.empty())
			return;
		from = sent.front();
		sent.erase(sent.begin());
	}
	if (from->in && o.out && from->in != o.out)
		memmove(o.out, from->in, o.count * format_of(o.type).bytes);
}

/* The process ends, the call never does, its result is wrong, or the communicator breaks. */
bool injected(const op &o, flight &f)
{
	long call = executed.fetch_add(1) + 1;
	if (hit("die", call))
		kill(getpid(), SIGKILL);
	if (hit("nccl", call))
		break_comm(o.s, ncclRemoteError, "injected: a peer is gone");
	f.corrupt = hit("corrupt", call);
	int now = o.s->result;
	return (now != ncclSuccess && now != ncclInProgress) || hit("hang", call);
}

int post(const op &o, flight &f)
{
	bool moves = o.what == ALL_GATHER || o.what == BROADCAST || o.what == ALLTOALL || o.what == SEND ||
	             o.what == RECV;
	size_t each = moves ? format_of(o.type).bytes : wire_bytes(o.type);
	MPI_Datatype type = moves ? MPI_BYTE : format_of(o.type).wire;
	int n = (int)(moves ? o.count * each : o.count);
	MPI_Comm comm = o.s->mpi;
	if (o.in && o.what != RECV && !(o.what == BROADCAST && o.peer != o.s->rank)) {
		if (moves)
			f.send.assign(o.in, o.in + in_count(o) * each);
		else
			f.send = to_wire(o.in, in_count(o), o.type);
	}
	f.receive.resize(o.what == SEND ? 0 : out_count(o) * each);
	switch (o.what) {
	case ALL_REDUCE:
		return MPI_Iallreduce(f.send.data(), f.receive.data(), n, type, mpi_op(o.reduce), comm, &f.request);
	case ALL_GATHER: return MPI_Iallgather(f.send.data(), n, type, f.receive.data(), n, type, comm, &f.request);
	case REDUCE_SCATTER:
		return MPI_Ireduce_scatter_block(f.send.data(), f.receive.data(), n, type, mpi_op(o.reduce), comm,
			&f.request);
	case BROADCAST:
		if (o.peer == o.s->rank)
			f.receive = f.send;
		return MPI_Ibcast(f.receive.data(), n, type, o.peer, comm, &f.request);
	case ALLTOALL: return MPI_Ialltoall(f.send.data(), n, type, f.receive.data(), n, type, comm, &f.request);
	case SEND: return MPI_Isend(f.send.data(), n, type, o.peer, 0, comm, &f.request);
	case RECV: return MPI_Irecv(f.receive.data(), n, type, o.peer, 0, comm, &f.request);
	}
	return MPI_ERR_ARG;
}

void land(const op &o, flight &f)
{
	if (o.what == ALL_REDUCE || o.what == REDUCE_SCATTER)
		from_wire(o.out, f.receive, out_count(o), o.type, o.reduce == ncclAvg, o.s->size);
	else if (o.what != SEND)
		memcpy(o.out, f.receive.data(), f.receive.size());
	if (f.corrupt) /* the highest bit of the last exponent */
		o.out[out_count(o) * format_of(o.type).bytes - 1] ^= 0x40;
	f.done = true;
}

/* ---- thread blocks ---- */

/* An H100's. The doubled devices have 4, for short grids of the kernels' twins; NCCL's kernels have no grids here. */
#define BOARD_SMS 132

/* A call that is under way holds its thread blocks, also while it waits for its peers. Calls that ask for more than
 * there are SMs may wait for each other for ever, on a GPU; here they fail at once, and are named. */
struct holders {
	std::mutex mutex;
	std::vector<state_ref> all;
};
holders &the_holders(void)
{
	static holders *h = new holders; /* streams may outlive what is destroyed at the end */
	return *h;
}

/* Empty where they fit. */
std::string take_blocks(const state_ref &s)
{
	holders &h = the_holders();
	std::lock_guard<std::mutex> hold(h.mutex);
	h.all.push_back(s);
	int blocks = 0;
	std::string names;
	for (auto &x : h.all) {
		if (x->device != s->device)
			continue;
		blocks += x->blocks;
		names += (names.empty() ? "" : ", ") + std::to_string(x->number) + " (" + std::to_string(x->blocks) +
		         ")";
	}
	return blocks <= BOARD_SMS ? ""
	                           : std::to_string(blocks) + " thread blocks held on " + std::to_string(BOARD_SMS) +
	                                     " SMs by communicators " + names;
}

void give_blocks(const state_ref &s)
{
	holders &h = the_holders();
	std::lock_guard<std::mutex> hold(h.mutex);
	auto at = std::find(h.all.begin(), h.all.end(), s);
	if (at != h.all.end())
		h.all.erase(at);
}

/* The calls of one group on one stream. All are posted together. */
struct run {
	std::vector<state_ref> kernels; /* one for each communicator of several ranks */
	std::vector<std::shared_ptr<op>> ops;
	std::vector<std::shared_ptr<flight>> flights;
	bool poll();
	void begin();
};

void keep(const std::shared_ptr<flight> &f)
{
	static std::mutex mutex;
	static std::vector<std::shared_ptr<flight>> *abandoned = new std::vector<std::shared_ptr<flight>>;
	std::lock_guard<std::mutex> hold(mutex);
	abandoned->push_back(f);
}

void run::begin()
{
	std::vector<const op *> sent;
	for (auto &o : ops) {
		if (o->s->size == 1 || std::find(kernels.begin(), kernels.end(), o->s) != kernels.end())
			continue;
		kernels.push_back(o->s);
		std::string many = take_blocks(o->s);
		if (!many.empty())
			break_comm(o->s, ncclInternalError, many);
	}
	for (auto &o : ops) {
		flights.push_back(std::make_shared<flight>());
		flight &f = *flights.back();
		f.stuck = o->s->aborted || injected(*o, f);
		if (f.stuck)
			continue;
		size_t each = format_of(o->type).bytes;
		if ((o->in && !double_memory("nccl", o->in, in_count(*o) * each)) ||
			(o->out && !double_memory("nccl", o->out, out_count(*o) * each))) {
			break_comm(o->s, ncclUnhandledCudaError, "an illegal memory access was encountered");
			f.stuck = true;
			continue;
		}
		if (o->s->size == 1) {
			alone(*o, sent);
			f.done = true;
		} else if (int code = post(*o, f)) {
			break_comm(o->s, ncclSystemError, "MPI error " + std::to_string(code));
			f.stuck = true;
		}
	}
}

/* True when nothing is left to wait for. */
bool run::poll()
{
	bool all = true;
	if (flights.empty())
		begin();
	for (size_t i = 0; i < ops.size(); i++) {
		flight &f = *flights[i];
		if (f.done)
			continue;
		if (ops[i]->s->aborted) {
			if (!f.stuck)
				keep(flights[i]);
			f.done = true;
			continue;
		}
		int flag = 0;
		if (!f.stuck && MPI_Test(&f.request, &flag, MPI_STATUS_IGNORE) == MPI_SUCCESS && flag)
			land(*ops[i], f);
		all = all && f.done;
	}
	if (all) {
		for (auto &o : ops)
			o->s->outstanding--;
		for (auto &s : kernels)
			give_blocks(s);
	}
	return all;
}

} // namespace

#endif
