/* The step as one CUDA graph: captured once from the same calls that issue it (collectives of NCCL included), launched
 * from then on. Two of them, with and without the events of stamps, which are nodes of their own
 * (cudaEventRecordExternal) and cost each op a little. */
#include "exec/cuda/device.h"

/* All lanes into the capture, and back out of it. */
static enum status fork_lanes(struct cuda_device *d, struct error *e)
{
	enum status st = CUDA_CHECK(cudaEventRecord(d->lane_event[LANE_COMPUTE], d->lane[LANE_COMPUTE].stream), e);
	for (int l = 0; l < LANE_COUNT && !st; l++)
		if (l != LANE_COMPUTE && d->lane[l].stream)
			st = CUDA_CHECK(cudaStreamWaitEvent(d->lane[l].stream, d->lane_event[LANE_COMPUTE], 0), e);
	return st;
}

static enum status join_lanes(struct cuda_device *d, struct error *e)
{
	enum status st = ST_OK;
	for (int l = 0; l < LANE_COUNT && !st; l++) {
		if (l == LANE_COMPUTE || !d->lane[l].stream)
			continue;
		if (!(st = CUDA_CHECK(cudaEventRecord(d->lane_event[l], d->lane[l].stream), e)))
			st = CUDA_CHECK(cudaStreamWaitEvent(d->lane[LANE_COMPUTE].stream, d->lane_event[l], 0), e);
	}
	return st;
}

static enum status capture(struct cuda_device *d, const struct device_step *s, cudaGraphExec_t *out, struct error *e)
{
	cudaStream_t stream = d->lane[LANE_COMPUTE].stream;
	cudaGraph_t graph = NULL;
	enum status st = CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), e);
	if (st)
		return st;
	if (!(st = fork_lanes(d, e)) && !(st = cuda_issue_ops(d, s, true, e)))
		st = join_lanes(d, e);
	struct error ending = {ST_OK, ""};
	if (CUDA_CHECK(cudaStreamEndCapture(stream, &graph), &ending) && !st)
		st = error_set(e, ending.status, "%s", ending.text);
	if (!st)
		st = CUDA_CHECK(cudaGraphInstantiate(out, graph, 0), e);
	if (graph)
		cudaGraphDestroy(graph);
	return st;
}

enum status cuda_graph_prepare(struct cuda_device *d, const struct device_step *s, struct error *e)
{
	cudaGraphExec_t *graph = &d->graph[s->stamps != NULL];
	enum status st = ST_OK;
	if (*graph)
		return ST_OK;
	if ((st = capture(d, s, graph, e)))
		return error_context(e, "capturing the step as a graph");
	return CUDA_CHECK(cudaGraphUpload(*graph, d->lane[LANE_COMPUTE].stream), e);
}

enum status cuda_graph_launch(struct cuda_device *d, const struct device_step *s, struct error *e)
{
	enum status st = cuda_graph_prepare(d, s, e);
	if (st || (st = CUDA_CHECK(cudaGraphLaunch(d->graph[s->stamps != NULL], d->lane[LANE_COMPUTE].stream), e)))
		return st;
	d->in_graph = true;
	d->issued = (uint32_t)d->job->role->ops.n;
	return ST_OK;
}
