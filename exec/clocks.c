#include "exec/clocks.h"

#include "base/array.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#define EVENTS (GPU_REASON_COUNT + 1) /* and another process */
static_assert(EVENTS <= RESULT_CLOCK_EVENTS, "every reason has a place in the result");

static int64_t times(const struct gpu_samples *s, int event)
{
	return event < GPU_REASON_COUNT ? s->reason[event] : s->shared;
}

static double of_boost(const struct gpu_samples *s) { return s->boost_Hz > 0 ? s->clock_Hz / s->boost_Hz : 0; }

/* The rank that it hit most, and how many it hit. */
static void add_event(const struct gpu_samples *all, int64_t ranks, int event, struct result_clocks *out)
{
	static const char *const words[] = {
#define REASON_WORDS(id, bit, words) words,
		GPU_REASONS(REASON_WORDS)
#undef REASON_WORDS
			"another process on the GPU",
	};
	static_assert(COUNT(words) == EVENTS, "every event has words");
	struct clock_event e = {.share = 0};
	for (int64_t r = 0; r < ranks; r++) {
		double share = all[r].n > 0 ? (double)times(&all[r], event) / (double)all[r].n : 0;
		e.gpus += share > 0;
		if (share <= e.share)
			continue;
		e.share = share;
		e.rank = r;
		e.samples = all[r].n;
		e.of_boost = of_boost(&all[r]);
	}
	e.slows = event < GPU_REASON_COUNT;
	snprintf(e.what, sizeof e.what, "%s", words[event]);
	if (e.gpus > 0)
		out->event[out->n_events++] = e;
}

void clocks_sum(const struct gpu_samples *all, int64_t ranks, struct result_clocks *out)
{
	*out = (struct result_clocks){.slowest_rank = -1};
	for (int64_t r = 0; r < ranks; r++) {
		const struct gpu_samples *s = &all[r];
		if (s->n == 0)
			continue;
		out->gpus++;
		out->samples += s->n;
		out->clock_Hz += s->clock_Hz;
		out->boost_Hz += s->boost_Hz;
		out->power_W += s->power_W;
		out->power_limit_W += s->power_limit_W;
		out->temperature_C = s->temperature_C > out->temperature_C ? s->temperature_C : out->temperature_C;
		if (s->clock_Hz > 0 && (out->slowest_rank < 0 || s->clock_Hz < out->slowest_Hz)) {
			out->slowest_rank = r;
			out->slowest_Hz = s->clock_Hz;
		}
	}
	if (out->gpus == 0)
		return;
	double n = (double)out->gpus;
	out->clock_Hz /= n;
	out->boost_Hz /= n;
	out->power_W /= n;
	out->power_limit_W /= n;
	for (int event = 0; event < EVENTS; event++)
		add_event(all, ranks, event, out);
}

void clocks_say(const struct result_clocks *c, void (*say)(void *ctx, const char *text), void *ctx)
{
	for (size_t i = 0; i < c->n_events; i++) {
		const struct clock_event *e = &c->event[i];
		char text[256], speed[64] = "";
		if (e->of_boost > 0)
			snprintf(speed, sizeof speed, "; its SMs ran at %.0f %% of boost on average",
				100 * e->of_boost);
		snprintf(text, sizeof text, "rank %lld's GPU %s in %.0f %% of %lld samples%s%s%s (%lld of %lld GPUs)",
			(long long)e->rank, e->slows ? "was slowed" : "was shared with another process", 100 * e->share,
			(long long)e->samples, e->slows ? ": " : "", e->slows ? e->what : "", speed, (long long)e->gpus,
			(long long)c->gpus);
		say(ctx, text);
	}
}
