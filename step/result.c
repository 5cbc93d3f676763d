#include "step/result.h"

#include "base/array.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *const bound_names[] = {"compute", "memory", "latency", "link", "host", ""};
static_assert(COUNT(bound_names) == BOUND_COUNT + 1, "a word for each bound, and none for an unknown one");

const char *bound_name(enum bound b) { return bound_names[b]; }

/* In MFU's convention attention counts as if it were not causal; so must what is done again. */
static double flop_by_convention(const struct op *op)
{
	struct op full = *op;
	full.flags = full.flags & (uint32_t)~OP_CAUSAL;
	return op_flop(&full);
}

/* FLOP done again for each FLOP done once, over all ranks. */
static double recomputed_share(const struct program *p)
{
	double once = 0, again = 0;
	for (size_t r = 0; r < p->n_roles; r++) {
		const struct role *role = &p->roles[r];
		double ranks = (double)role->ranks;
		for (size_t i = 0; i < role->ops.n; i++) {
			const struct op *op = &role->ops.at[i];
			*(op->flags & OP_RECOMPUTED ? &again : &once) += ranks * flop_by_convention(op);
		}
	}
	return once > 0 ? again / once : 0;
}

void result_rates(struct result *r, const struct program *p, double peak_flop_per_s)
{
	double ranks = (double)p->mesh.ranks;
	r->tokens_per_s = (double)p->config.train.global_batch * (double)p->config.model.seq_len / r->time.step_s;
	r->tokens_per_s_per_gpu = r->tokens_per_s / ranks;
	r->samples_per_s = (double)p->config.train.global_batch / r->time.step_s;
	double flop_per_s = model_flop_per_token(&p->config.model) * r->tokens_per_s_per_gpu;
	r->tflops_per_gpu = flop_per_s / 1e12;
	r->mfu = peak_flop_per_s > 0 ? flop_per_s / peak_flop_per_s : NAN; /* the caller may not know the peak */
	r->hfu = r->mfu * (1 + recomputed_share(p));
}

/* ---- bottleneck ---- */

static enum op_class longest_class(const struct breakdown *b, bool comm)
{
	enum op_class most = comm ? CLASS_ALL_REDUCE : CLASS_GEMM;
	for (int c = 0; c < CLASS_COUNT; c++)
		if (c != CLASS_HOST && c != CLASS_COPY && op_class_is_comm((enum op_class)c) == comm &&
			b->class_s[c] > b->class_s[most])
			most = (enum op_class)c;
	return most;
}

void result_bottleneck(struct result *r, const char *idle, const char *host)
{
	const struct breakdown *b = &r->time;
	const struct {
		double s;
		const char *text;
	} part[] = {
		{b->compute_s, "compute"},
		{b->exposed_comm_s, "exposed communication"},
		{b->optimizer_s, "optimizer"},
		{b->copy_s, "copies between host and device"},
		{b->host_s, host ? host : "host work"},
		{b->bubble_s, "pipeline bubble"},
		{b->idle_s, idle ? idle : "idle"},
	};
	size_t most = 0;
	for (size_t i = 0; i < COUNT(part); i++)
		most = part[i].s > part[most].s ? i : most;
	const bool compute = most == 0, comm = most == 1;
	const enum op_class c = longest_class(b, comm);
	snprintf(r->bottleneck, sizeof r->bottleneck, "%s: %s%s%.0f %% of the step", part[most].text,
		compute || comm ? op_class_name(c) : "", compute || comm ? " " : "",
		(compute ? b->class_s[c] : part[most].s) * (b->step_s > 0 ? 100 / b->step_s : 0));
}

/* ---- warnings ---- */

const char *const interval_cause_name[INTERVAL_COUNT] = {[INTERVAL_SOFTWARE] = "software",
	[INTERVAL_GPU] = "gpu",
	[INTERVAL_EXPERTS] = "experts",
	[INTERVAL_CONTEXT] = "context",
	[INTERVAL_TRAFFIC] = "traffic",
	[INTERVAL_HOST] = "host",
	[INTERVAL_NETWORK] = "network"};

#define PACE_CLASS 0.02 /* of the device's time: a class below this is timed too coarsely to judge by */
#define PACE_CLASSES 3  /* that agree at least: fewer may be mispriced alike */

double result_pace(const struct result *predicted, const struct result *measured)
{
	double all_s = 0, done_s = 0;
	int longer = 0, shorter = 0;
	for (int c = 0; c <= CLASS_OPTIMIZER; c++) {
		all_s += predicted->time.class_s[c];
		done_s += measured->time.class_s[c];
	}
	for (int c = 0; c <= CLASS_OPTIMIZER; c++) {
		const double was_s = predicted->time.class_s[c], is_s = measured->time.class_s[c];
		if (was_s < PACE_CLASS * all_s)
			continue;
		longer += is_s > was_s;
		shorter += is_s < was_s;
	}
	return longer + shorter >= PACE_CLASSES && (longer == 0 || shorter == 0) ? done_s / all_s : 1;
}

void result_warn(struct result *r, const char *fmt, ...)
{
	if (r->n_warnings == RESULT_MAX_NOTES)
		return;
	char *text = r->warning[r->n_warnings];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof r->warning[0], fmt, ap);
	va_end(ap);
	for (size_t i = 0; i < r->n_warnings; i++)
		if (strcmp(text, r->warning[i]) == 0)
			return;
	r->n_warnings++;
}
