/* Capture of streams into graphs, and their launches. */
#include "tests/doubles/cudart.h"

#include <algorithm>

/* ---- capture ---- */

static void end_capture(const std::shared_ptr<capture> &c)
{
	for (cudaStream_t s : c->streams) {
		s->capturing = NULL;
		s->frontier.clear();
	}
	c->streams.clear();
	c->ended = true;
	auto &all = the().captures;
	all.erase(std::find(all.begin(), all.end(), c));
}

/* The capture goes on until its end is asked for, but comes to nothing. */
cudaError_t break_capture(const std::shared_ptr<capture> &c, cudaError_t code)
{
	c->broken = true;
	return code;
}

cudaError_t unsafe_locked(void)
{
	for (auto &c : the().captures)
		if (c->mode == cudaStreamCaptureModeGlobal ||
			(c->mode == cudaStreamCaptureModeThreadLocal && c->by == std::this_thread::get_id()))
			return break_capture(c, cudaErrorStreamCaptureUnsupported);
	return cudaSuccess;
}

void leave_capture(cudaStream_t s)
{
	std::shared_ptr<capture> c = s->capturing;
	c->broken = true;
	c->streams.erase(std::find(c->streams.begin(), c->streams.end(), s));
	s->capturing = NULL;
	if (c->origin == s)
		end_capture(c); /* nobody can ask for its end any more */
}

void capture_node(cudaStream_t s, node n)
{
	n.after_nodes = s->frontier;
	s->frontier = {s->capturing->nodes.size()};
	s->capturing->nodes.push_back(std::move(n));
}

cudaError_t capture_wait(cudaStream_t s, cudaEvent_t e, bool outside)
{
	if (outside) {
		if (!s->capturing)
			return cudaErrorCapturedEvent;
		node n;
		n.waits = e->state;
		capture_node(s, n);
		return cudaSuccess;
	}
	if (!e->in)
		return e->state->last ? break_capture(s->capturing, cudaErrorStreamCaptureIsolation) : cudaSuccess;
	if (e->in->ended)
		return cudaErrorCapturedEvent;
	if (s->capturing && s->capturing != e->in) {
		e->in->broken = true;
		return break_capture(s->capturing, cudaErrorStreamCaptureMerge);
	}
	if (s->legacy)
		return break_capture(e->in, cudaErrorStreamCaptureImplicit);
	if (!s->capturing) {
		s->capturing = e->in;
		s->capturing->streams.push_back(s);
	}
	for (size_t n : e->behind)
		if (std::find(s->frontier.begin(), s->frontier.end(), n) == s->frontier.end())
			s->frontier.push_back(n);
	return cudaSuccess;
}

API cudaError_t cudaStreamBeginCapture(cudaStream_t s, cudaStreamCaptureMode mode)
{
	return on_device([&](lock &) {
		s = stream_locked(s);
		if (!s)
			return cudaErrorInvalidResourceHandle;
		if (s->legacy)
			return cudaErrorStreamCaptureUnsupported;
		if (s->capturing)
			return cudaErrorIllegalState;
		auto c = std::make_shared<capture>();
		c->mode = mode;
		c->by = std::this_thread::get_id();
		c->origin = s;
		c->streams.push_back(s);
		s->capturing = c;
		the().captures.push_back(c);
		return cudaSuccess;
	});
}

/* Whether all that was captured lies before the end of the stream where it began. */
static bool joined(const capture &c)
{
	std::vector<bool> before(c.nodes.size());
	for (size_t n : c.origin->frontier)
		before[n] = true;
	for (size_t n = c.nodes.size(); n-- > 0;)
		for (size_t earlier : c.nodes[n].after_nodes)
			before[earlier] = before[earlier] || before[n];
	return std::find(before.begin(), before.end(), false) == before.end();
}

API cudaError_t cudaStreamEndCapture(cudaStream_t s, cudaGraph_t *out)
{
	return on_device([&](lock &) {
		*out = NULL;
		s = stream_locked(s);
		if (!s || !s->capturing)
			return s ? cudaErrorIllegalState : cudaErrorInvalidResourceHandle;
		std::shared_ptr<capture> c = s->capturing;
		if (c->origin != s)
			return break_capture(c, cudaErrorStreamCaptureUnmatched);
		bool whole = joined(*c);
		end_capture(c);
		if (c->broken || !whole)
			return c->broken ? cudaErrorStreamCaptureInvalidated : cudaErrorStreamCaptureUnjoined;
		*out = new CUgraph_st{c->nodes};
		the().graphs.insert(*out);
		return cudaSuccess;
	});
}

API cudaError_t cudaStreamIsCapturing(cudaStream_t s, cudaStreamCaptureStatus *out)
{
	return on_device([&](lock &) {
		s = stream_locked(s);
		if (!s)
			return cudaErrorInvalidResourceHandle;
		*out = !s->capturing          ? cudaStreamCaptureStatusNone
		       : s->capturing->broken ? cudaStreamCaptureStatusInvalidated
		                              : cudaStreamCaptureStatusActive;
		return cudaSuccess;
	});
}

/* ---- graphs ---- */

API cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *n)
{
	return on_device([&](lock &) {
		if (!the().graphs.count(graph))
			return cudaErrorInvalidValue;
		if (nodes)
			return cudaErrorNotSupported;
		*n = graph->nodes.size();
		return cudaSuccess;
	});
}

API cudaError_t cudaGraphInstantiate(cudaGraphExec_t *out, cudaGraph_t graph, unsigned long long)
{
	return on_device([&](lock &) {
		if (!the().graphs.count(graph))
			return cudaErrorInvalidValue;
		*out = new CUgraphExec_st{graph->nodes, NULL};
		the().execs.insert(*out);
		return cudaSuccess;
	});
}

API cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *out, cudaGraph_t graph, unsigned long long flags)
{
	return cudaGraphInstantiate(out, graph, flags);
}

API cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t s)
{
	return on_device([&](lock &) {
		return !the().execs.count(exec) ? cudaErrorInvalidValue
		       : stream_locked(s)       ? cudaSuccess
		                                : cudaErrorInvalidResourceHandle;
	});
}

/* One launch's own nodes. */
static std::vector<node> launched(lock &hold, const std::vector<node> &of)
{
	std::vector<node> nodes = of;
	for (node &n : nodes) {
		if (n.start) {
			hold.unlock();
			n.poll = n.start();
			hold.lock();
		}
		if (n.records)
			n.finished = n.records->last = std::make_shared<record>();
		if (n.waits && n.waits->last)
			n.after.push_back(n.waits->last);
		n.fails = n.kernel && ++the().kernels == double_fault("kernel");
	}
	nodes.push_back(node{}); /* the end, which an empty graph has as well */
	for (size_t i = 0; i + 1 < nodes.size(); i++)
		nodes.back().after_nodes.push_back(i);
	return nodes;
}

API cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t s)
{
	return on_device([&](lock &hold) {
		if (!the().execs.count(exec))
			return cudaErrorInvalidValue;
		s = stream_locked(s);
		if (!s)
			return cudaErrorInvalidResourceHandle;
		if (s->capturing)
			return break_capture(s->capturing, cudaErrorStreamCaptureUnsupported);
		std::vector<node> nodes = launched(hold, exec->nodes);
		std::vector<record_ref> after;
		if (exec->last)
			after.push_back(exec->last); /* one graph does not run beside itself */
		exec->last = std::make_shared<record>();
		push_locked(hold, s, std::move(nodes), std::move(after), exec->last);
		return cudaSuccess;
	});
}

API cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
	lock hold(the().mutex);
	if (!the().graphs.erase(graph))
		return said(cudaErrorInvalidValue);
	delete graph;
	return said(usable_locked());
}

API cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec)
{
	lock hold(the().mutex);
	if (!the().execs.erase(exec))
		return said(cudaErrorInvalidValue);
	delete exec;
	return said(usable_locked());
}
