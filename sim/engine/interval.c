#include "sim/engine/interval.h"

#include <math.h>
#include <string.h>

static double square(double x) { return x * x; }

/* Returns the half-width that a part of the step adds to the whole. */
static double part(double half_width, double share) { return half_width * fmin(share, 1); }

/* Returns the host thread's. A host thread that may be slower by `half_width` makes the step longer only where it then
 * outlasts the device. */
static double host_part(double half_width, double share)
{
	return share > 0 ? fmax(0, half_width + log(fmin(share, 1))) : 0;
}

/* Returns whether the stack's own rows ran on that GPU, in that format, on a model without experts, as all of them. */
static bool like_its_rows(const struct config *c, const char *gpu)
{
	const struct stack *s = &c->stack;
	const size_t n = strlen(gpu);
	if (!(s->interval > 0) || !s->fitted_format[c->train.dtype] || c->model.experts)
		return false;
	for (const char *at = s->fitted_gpus; n && (at = strstr(at, gpu)); at += n)
		if ((at == s->fitted_gpus || at[-1] == ' ') && at[n] == ' ')
			return true;
	return false;
}

static void unseen_parts(const struct parameters *k, const struct config *c, const struct result *r,
	double out[INTERVAL_COUNT])
{
	const struct breakdown *b = &r->time;
	out[INTERVAL_SOFTWARE] = fmax(c->stack.family ? k->interval.software : k->interval.no_family,
		c->stack.interval);
	if (c->model.experts)
		out[INTERVAL_EXPERTS] = c->train.fused ? k->interval.experts : k->interval.experts_eager;
	if (!(b->step_s > 0))
		return;
	const double traffic_s = b->class_s[CLASS_NORM] + b->class_s[CLASS_ELEMENTWISE] + b->class_s[CLASS_LOSS] +
	                         b->class_s[CLASS_MEMORY] + b->class_s[CLASS_OPTIMIZER];
	out[INTERVAL_TRAFFIC] = part(k->interval.traffic, traffic_s / b->step_s);
	out[INTERVAL_HOST] = host_part(c->train.fused ? k->interval.host : k->interval.host_eager,
		r->host_thread_s / b->step_s);
	out[INTERVAL_NETWORK] = part(k->interval.network, b->exposed_comm_s / b->step_s);
	if (c->parallel.context > 1)
		out[INTERVAL_CONTEXT] = part(k->interval.context, b->class_s[CLASS_ATTENTION] / b->step_s);
}

/* Returns the half-width of a GPU's own rates. The kernels of the fits were NVIDIA's. */
static double gpu_part(const struct parameters *k, const struct device_spec *d, enum attention_kernel kernel)
{
	const int timed = kernel == KERNEL_MASKED ? KERNEL_FA2 : (int)kernel;
	if (d->attention_share[timed][0] > 0 && d->step_sources > 0)
		return 0;
	return d->compute_capability > 0 || d->step_sources > 0 ? k->interval.unknown_gpu : k->interval.unknown_maker;
}

void interval_parts(const struct config *c, const struct machine *m, const struct result *r, double out[INTERVAL_COUNT])
{
	memset(out, 0, INTERVAL_COUNT * sizeof *out);
	if (like_its_rows(c, m->device.id))
		out[INTERVAL_SOFTWARE] = c->stack.interval;
	else
		unseen_parts(m->parameters, c, r, out);
	out[INTERVAL_GPU] = gpu_part(m->parameters, &m->device,
		attention_kernel_on(&c->stack, m->device.compute_capability));
}

void interval_set_published(const struct config *c, const struct machine *m, struct result *r)
{
	double sum = 0;
	interval_parts(c, m, r, r->interval_part);
	for (int i = 0; i < INTERVAL_COUNT; i++)
		sum += square(r->interval_part[i]);
	r->interval90_s[0] = r->time.step_s * exp(-m->parameters->interval.below * sqrt(sum));
	r->interval90_s[1] = r->time.step_s * exp(sqrt(sum));
}

void interval_widen(struct result *r, double half_width)
{
	if (!(r->time.step_s > 0))
		return;
	const double above = log(r->interval90_s[1] / r->time.step_s);
	const double below = log(r->time.step_s / r->interval90_s[0]);
	const double factor = above > 0 ? hypot(above, half_width) / above : 1;
	r->interval90_s[0] = r->time.step_s * exp(-factor * below);
	r->interval90_s[1] = r->time.step_s * exp(factor * above);
}
