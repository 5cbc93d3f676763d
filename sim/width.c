#include "sim/width.h"

#include <math.h>

const struct width_source width_sources[WIDTH_TERMS] = {
	[WIDTH_TRAFFIC] = {"traffic", 0.55, "interval of an unseen stack: of kernels that memory bounds, in log",
	                   "1.645 standard deviations of log elementwise_passes over the stacks that rows fix: composer-fsdp 2.5, megatron 3.0, nanotron 3.8, megatron-deepspeed 5.4"},
	[WIDTH_HOST] = {"host", 0.96, "the same: of the host thread's time", "a factor of 2.6: op of the two stacks that rows fix, nanotron 133 us and megatron-deepspeed 20 us, against the 50 us counted for PyTorch"},
	[WIDTH_NETWORK] = {"network", 0.35, "the same: of communication in the open", "90th percentile of |log(measured / predicted)| over the collectives of at least 1 MiB in tests/validation (make validate)"},
	[WIDTH_GPU] = {"unknown_gpu", 0.2, "interval on a GPU of whose attention kernels no run tells, beside the rest", "judgement: so much do the shares of a datasheet differ that GPUs reach"},
	[WIDTH_NO_FAMILY] = {"no_family", 0.35, "interval of a stack without a family, in place of unseen", "judgement: so much do stacks differ (scripts/fit.py on one with the numbers of another)"},
};

static double part(enum width_term t, double share)
{
	double x = width_sources[t].value * fmin(share, 1);
	return x * x;
}

/* A host thread that may be slower by its width makes the step longer only where it then is the longer of the two. */
static double host_part(double share)
{
	double longer = share > 0 ? fmax(0, width_sources[WIDTH_HOST].value + log(fmin(share, 1))) : 0;
	return longer * longer;
}

static double unseen_width(const struct stack *s, const struct result *r)
{
	const struct breakdown *b = &r->time;
	double own = s->unseen > 0 ? s->unseen : width_sources[WIDTH_NO_FAMILY].value, square = own * own;
	if (b->step_s <= 0)
		return own;
	double traffic_s = b->class_s[CLASS_NORM] + b->class_s[CLASS_ELEMENTWISE] + b->class_s[CLASS_LOSS] + b->class_s[CLASS_MEMORY];
	square += part(WIDTH_TRAFFIC, traffic_s / b->step_s) + host_part(r->host_thread_s / b->step_s) + part(WIDTH_NETWORK, b->exposed_comm_s / b->step_s);
	return sqrt(square);
}

double published_width(const struct stack *stack, const struct result *r, bool known_gpu)
{
	return hypot(stack->interval > 0 ? stack->interval : unseen_width(stack, r), known_gpu ? 0 : width_sources[WIDTH_GPU].value);
}

void published_interval(const struct stack *stack, const struct machine *m, struct result *r)
{
	double width = published_width(stack, r, m->device.attention_share[stack->attention_kernel][0] > 0);
	r->interval90_s[0] = r->time.step_s * exp(-width);
	r->interval90_s[1] = r->time.step_s * exp(width);
}
