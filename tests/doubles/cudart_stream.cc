/* Streams, events, and the worker that takes what they hold.
 *
 * The worker is lazy: unless a host waits, it runs only what it is allowed to by tokens, which calls of the host draw
 * at random and then wait for, so that one seed gives one order. A host that waits elsewhere (for another rank) is
 * noticed by the time that goes by.
 */
#include "tests/doubles/cudart.h"

#include <string.h>
#include <time.h>

#include <algorithm>
#include <chrono>

static const std::chrono::microseconds IDLE(300), POLL(30), POLL_MAX(1000), HANDOVER(5000);
static thread_local bool is_worker;

bool on_worker(void) { return is_worker; }

static int64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static unsigned draw(unsigned n) { return (unsigned)(the().random() % n); }

/* ---- the worker ---- */

struct turn {
	cudaStream_t stream;
	size_t node;
};

static bool done(const std::vector<record_ref> &all)
{
	return std::all_of(all.begin(), all.end(), [](const record_ref &r) { return r->done; });
}

static std::vector<turn> turns_locked(void)
{
	std::vector<turn> out;
	for (cudaStream_t s : the().streams) {
		if (s->queue.empty() || !done(s->queue.front()->after))
			continue;
		const std::vector<node> &nodes = s->queue.front()->nodes;
		for (size_t i = 0; i < nodes.size(); i++) {
			auto ended = [&](size_t n) { return nodes[n].done; };
			if (!nodes[i].done && done(nodes[i].after) &&
				std::all_of(nodes[i].after_nodes.begin(), nodes[i].after_nodes.end(), ended))
				out.push_back(turn{s, i});
		}
	}
	return out;
}

/* Streams are quick or slow for a while. */
static size_t choose_locked(const std::vector<turn> &turns)
{
	if (the().picks++ % 16 == 0)
		for (cudaStream_t s : the().streams)
			s->weight = 1u << 2 * draw(4);
	unsigned sum = 0;
	for (const turn &t : turns)
		sum += t.stream->weight;
	unsigned at = draw(sum);
	size_t i = 0;
	while (at >= turns[i].stream->weight)
		at -= turns[i++].stream->weight;
	return i;
}

static void complete(const record_ref &r, int64_t at_ns)
{
	if (!r)
		return;
	r->done = true;
	r->at_ns = at_ns;
}

static void end_locked(turn t)
{
	op *o = t.stream->queue.front().get();
	int64_t at_ns = now_ns();
	o->nodes[t.node].done = true;
	complete(o->nodes[t.node].finished, at_ns);
	if (--o->left)
		return;
	complete(o->finished, at_ns);
	t.stream->queue.pop_front();
	if (t.stream->gone && t.stream->queue.empty()) {
		auto &all = the().streams;
		all.erase(std::find(all.begin(), all.end(), t.stream));
		delete t.stream;
	}
}

/* Runs one of them; false when none is ready. */
static bool take_locked(lock &hold, std::vector<turn> turns)
{
	while (!turns.empty()) {
		size_t i = choose_locked(turns);
		turn t = turns[i];
		int device = t.stream->device;
		node &n = t.stream->queue.front()->nodes[t.node];
		if (the().gpus[(size_t)device].failed == cudaSuccess) {
			hold.unlock();
			bool ready = !n.poll || n.poll();
			if (ready && n.fails)
				fail_device(device, "a kernel that was told to");
			else if (ready && n.work)
				n.work();
			hold.lock();
			if (!ready && the().gpus[(size_t)device].failed == cudaSuccess) {
				turns.erase(turns.begin() + (ptrdiff_t)i);
				continue;
			}
		}
		end_locked(t);
		return true;
	}
	return false;
}

static bool allowed_locked(void) { return the().tokens > 0 || the().idle || !done(the().waited); }

static void worker_main(void)
{
	is_worker = true;
	std::chrono::microseconds pause = POLL;
	lock hold(the().mutex);
	for (;;) {
		std::vector<turn> turns = turns_locked();
		if (turns.empty()) {
			the().tokens = 0;
			the().for_hosts.notify_all();
			the().for_worker.wait(hold);
		} else if (!allowed_locked()) {
			the().idle = the().for_worker.wait_for(hold, IDLE) == std::cv_status::timeout;
		} else if (take_locked(hold, turns)) {
			the().tokens -= the().tokens > 0;
			pause = POLL;
			the().for_hosts.notify_all();
		} else {
			the().tokens = 0;
			the().for_hosts.notify_all();
			the().for_worker.wait_for(hold, pause);
			pause = std::min(POLL_MAX, 2 * pause); /* ranks that wait for each other share few cores here */
		}
	}
}

/* Lets the worker run so many pieces, as far as there are so many. */
static void hand_over(lock &hold, unsigned tokens)
{
	if (tokens == 0 || on_worker())
		return;
	the().tokens += tokens;
	the().for_worker.notify_all();
	the().for_hosts.wait_for(hold, HANDOVER, [] { return the().tokens == 0; });
}

/* ---- onto a stream ---- */

cudaStream_t stream_locked(cudaStream_t s)
{
	if (s == NULL || s == cudaStreamLegacy)
		return &the().gpus[(size_t)device_now].legacy;
	auto &all = the().streams;
	return std::find(all.begin(), all.end(), s) != all.end() && !s->gone ? s : NULL;
}

static bool blocking(cudaStream_t s) { return !s->legacy && !(s->flags & cudaStreamNonBlocking); }

/* The legacy stream and the blocking ones wait for each other. */
static void order_legacy_locked(cudaStream_t s, std::vector<record_ref> *after)
{
	for (cudaStream_t other : the().streams)
		if (other->device == s->device && other->last &&
			((s->legacy && blocking(other)) || (other->legacy && blocking(s))))
			after->push_back(other->last);
}

void push_locked(lock &hold, cudaStream_t s, std::vector<node> nodes, std::vector<record_ref> after,
	record_ref finished)
{
	order_legacy_locked(s, &after);
	s->last = finished;
	size_t n = nodes.size();
	s->queue.push_back(std::unique_ptr<op>(new op{std::move(nodes), n, std::move(after), finished}));
	the().idle = false;
	if (!the().works) {
		the().works = true;
		std::thread(worker_main).detach();
	}
	the().for_worker.notify_all();
	static const unsigned shares[] = {0, 5, 30, 100};
	if (the().pushes++ % 64 == 0)
		the().eager = shares[draw(4)];
	if (draw(100) < the().eager)
		hand_over(hold, 1 + draw(3));
}

static bool kernel_fails_locked(const node &n) { return n.kernel && ++the().kernels == double_fault("kernel"); }

cudaError_t submit(lock &hold, cudaStream_t s, node n)
{
	if (!(s = stream_locked(s)))
		return cudaErrorInvalidResourceHandle;
	if (s->legacy)
		for (auto &c : the().captures)
			for (cudaStream_t other : c->streams)
				if (blocking(other))
					return break_capture(c, cudaErrorStreamCaptureImplicit);
	if (s->capturing) {
		capture_node(s, std::move(n));
		return cudaSuccess;
	}
	if (n.start) {
		hold.unlock();
		n.poll = n.start();
		hold.lock();
	}
	n.fails = kernel_fails_locked(n);
	std::vector<node> one;
	one.push_back(std::move(n));
	push_locked(hold, s, std::move(one), {}, std::make_shared<record>());
	return cudaSuccess;
}

API cudaError_t double_enqueue_polled(cudaStream_t s, const std::function<double_poll()> &start)
{
	return on_device([&](lock &hold) {
		node n;
		n.start = start;
		return submit(hold, s, n);
	});
}

API cudaError_t double_enqueue_work(cudaStream_t s, const std::function<void()> &work)
{
	return on_device([&](lock &hold) {
		node n;
		n.work = work;
		return submit(hold, s, n);
	});
}

API cudaError_t cudaLaunchHostFunc(cudaStream_t s, cudaHostFn_t f, void *data)
{
	return double_enqueue_work(s, [=] { f(data); });
}

/* ---- waiting ---- */

cudaError_t wait_locked(lock &hold, record_ref r)
{
	if (on_worker())
		return cudaErrorNotPermitted;
	if (r && !r->done) {
		the().waited.push_back(r);
		the().for_worker.notify_all();
		the().for_hosts.wait(hold, [&] { return r->done; });
		the().waited.erase(std::find(the().waited.begin(), the().waited.end(), r));
	}
	return the().gpus[(size_t)device_now].failed;
}

cudaError_t drain_locked(lock &hold)
{
	std::vector<record_ref> ends;
	for (cudaStream_t s : the().streams)
		if (s->device == device_now && s->last)
			ends.push_back(s->last);
	cudaError_t code = the().gpus[(size_t)device_now].failed;
	for (const record_ref &r : ends)
		code = wait_locked(hold, r);
	return code;
}

API cudaError_t cudaDeviceSynchronize(void)
{
	return on_device([](lock &hold) {
		cudaError_t code = unsafe_locked();
		return code == cudaSuccess ? drain_locked(hold) : code;
	});
}

/* ---- streams ---- */

API cudaError_t cudaStreamCreateWithPriority(cudaStream_t *out, unsigned flags, int priority)
{
	return on_device([&](lock &) {
		if (flags & ~(unsigned)cudaStreamNonBlocking)
			return cudaErrorInvalidValue;
		*out = new CUstream_st;
		(*out)->device = device_now;
		(*out)->flags = flags;
		(*out)->priority = std::max(-5, std::min(0, priority));
		the().streams.push_back(*out);
		return cudaSuccess;
	});
}

API cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned flags)
{
	return cudaStreamCreateWithPriority(out, flags, 0);
}

API cudaError_t cudaStreamCreate(cudaStream_t *out) { return cudaStreamCreateWithPriority(out, cudaStreamDefault, 0); }

API cudaError_t cudaStreamDestroy(cudaStream_t s)
{
	lock hold(the().mutex);
	s = s && s != cudaStreamLegacy ? stream_locked(s) : NULL;
	if (!s)
		return said(cudaErrorInvalidResourceHandle);
	if (s->capturing)
		leave_capture(s);
	s->gone = true;
	if (s->queue.empty()) {
		auto &all = the().streams;
		all.erase(std::find(all.begin(), all.end(), s));
		delete s;
	}
	return said(usable_locked());
}

/* A call about a stream that is not being captured: f(lock, stream). */
template <class F> static cudaError_t on_stream(cudaStream_t s, F f)
{
	return on_device([&](lock &hold) {
		cudaStream_t meant = stream_locked(s);
		if (!meant)
			return cudaErrorInvalidResourceHandle;
		return meant->capturing ? break_capture(meant->capturing, cudaErrorStreamCaptureUnsupported)
		                        : f(hold, meant);
	});
}

API cudaError_t cudaStreamSynchronize(cudaStream_t s)
{
	return on_stream(s, [](lock &hold, cudaStream_t meant) { return wait_locked(hold, meant->last); });
}

static cudaError_t query_locked(lock &hold, record_ref r)
{
	if (r && !r->done)
		hand_over(hold, draw(4));
	cudaError_t failed = the().gpus[(size_t)device_now].failed;
	return failed != cudaSuccess ? failed : r && !r->done ? cudaErrorNotReady : cudaSuccess;
}

API cudaError_t cudaStreamQuery(cudaStream_t s)
{
	return on_stream(s, [](lock &hold, cudaStream_t meant) { return query_locked(hold, meant->last); });
}

API cudaError_t cudaStreamGetPriority(cudaStream_t s, int *priority)
{
	return on_stream(s, [&](lock &, cudaStream_t meant) { return *priority = meant->priority, cudaSuccess; });
}

API cudaError_t cudaStreamGetFlags(cudaStream_t s, unsigned *flags)
{
	return on_stream(s, [&](lock &, cudaStream_t meant) { return *flags = meant->flags, cudaSuccess; });
}

API cudaError_t cudaStreamGetDevice(cudaStream_t s, int *device)
{
	return on_stream(s, [&](lock &, cudaStream_t meant) { return *device = meant->device, cudaSuccess; });
}

/* ---- events ---- */

API cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned flags)
{
	return on_device([&](lock &) {
		if (flags & ~(unsigned)(cudaEventBlockingSync | cudaEventDisableTiming))
			return cudaErrorInvalidValue;
		*out = new CUevent_st;
		(*out)->state = std::make_shared<event_state>(event_state{!(flags & cudaEventDisableTiming), NULL});
		the().events.insert(*out);
		return cudaSuccess;
	});
}

API cudaError_t cudaEventCreate(cudaEvent_t *out) { return cudaEventCreateWithFlags(out, cudaEventDefault); }

API cudaError_t cudaEventDestroy(cudaEvent_t e)
{
	lock hold(the().mutex);
	if (!the().events.erase(e))
		return said(cudaErrorInvalidResourceHandle);
	delete e;
	return said(usable_locked());
}

API cudaError_t cudaEventRecordWithFlags(cudaEvent_t e, cudaStream_t s, unsigned flags)
{
	return on_device([&](lock &hold) {
		cudaStream_t meant = stream_locked(s);
		if (!the().events.count(e) || !meant)
			return cudaErrorInvalidResourceHandle;
		node n;
		if (meant->capturing && !(flags & cudaEventRecordExternal)) {
			e->in = meant->capturing;
			e->behind = meant->frontier;
			return cudaSuccess;
		}
		e->in = NULL;
		if (meant->capturing) {
			n.records = e->state;
			return submit(hold, s, n);
		}
		n.finished = e->state->last = std::make_shared<record>();
		return submit(hold, s, n);
	});
}

API cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s)
{
	return cudaEventRecordWithFlags(e, s, cudaEventRecordDefault);
}

API cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned flags)
{
	return on_device([&](lock &hold) {
		cudaStream_t meant = stream_locked(s);
		if (!the().events.count(e) || !meant)
			return cudaErrorInvalidResourceHandle;
		if (meant->capturing || e->in)
			return capture_wait(meant, e, flags & cudaEventWaitExternal);
		node n;
		if (e->state->last)
			n.after.push_back(
				e->state->last); /* the record made last before this call, not one made later */
		return submit(hold, s, n);
	});
}

/* A call about an event that was not recorded in a capture: f(lock, state). */
template <class F> static cudaError_t on_event(cudaEvent_t e, F f)
{
	return on_device([&](lock &hold) {
		if (!the().events.count(e))
			return cudaErrorInvalidResourceHandle;
		cudaError_t code = unsafe_locked();
		return code != cudaSuccess ? code : e->in ? cudaErrorCapturedEvent : f(hold, e->state);
	});
}

API cudaError_t cudaEventQuery(cudaEvent_t e)
{
	return on_event(e,
		[](lock &hold, std::shared_ptr<event_state> state) { return query_locked(hold, state->last); });
}

API cudaError_t cudaEventSynchronize(cudaEvent_t e)
{
	return on_event(e,
		[](lock &hold, std::shared_ptr<event_state> state) { return wait_locked(hold, state->last); });
}

API cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t from, cudaEvent_t to)
{
	return on_device([&](lock &) {
		if (!the().events.count(from) || !the().events.count(to))
			return cudaErrorInvalidResourceHandle;
		if (from->in || to->in)
			return cudaErrorCapturedEvent;
		record_ref a = from->state->last, b = to->state->last;
		if (!a || !b || !from->state->timing || !to->state->timing)
			return cudaErrorInvalidResourceHandle;
		if (!a->done || !b->done)
			return cudaErrorNotReady;
		*ms = (float)((double)(b->at_ns - a->at_ns) * 1e-6);
		return cudaSuccess;
	});
}
