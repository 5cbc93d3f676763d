/* The time of an op or a collective from a profile's entries, by these rates. */
#include <math.h>
#include <string.h>

#include "base/array.h"
#include "sim/price/rates.h"

static enum bound largest(const double spent_s[BOUND_COUNT])
{
	enum bound most = BOUND_COMPUTE;
	for (int b = 0; b < BOUND_COUNT; b++)
		most = spent_s[b] > spent_s[most] ? (enum bound)b : most;
	return most;
}

bool rates_fit(const struct rates *r, const struct work *w, const uint8_t bound_of[WORK_TERMS],
	struct measured_time *out)
{
	const struct profile_fit *fit = r->measured ? profile_get_fit(r->machine->profile, w->name) : NULL;
	double spent_s[BOUND_COUNT] = {0}, sum_s = 0;
	if (!fit || fit->n != WORK_TERMS)
		return false;
	for (int i = 0; i < WORK_TERMS; i++) {
		const double term_s = fit->coef[i] * w->term[i] * r->entry_factor[bound_of[i]];
		sum_s += term_s;
		spent_s[bound_of[i]] += term_s;
	}
	*out = (struct measured_time){sum_s * r->placement_factor, largest(spent_s), fit->residual};
	return true;
}

static enum dtype format_of(const struct profile_products *x)
{
	const char *dtype = strrchr(x->name, '.');
	int t = 0;
	while (t < DT_COUNT && (!dtype || strcmp(dtype + 1, dtype_name((enum dtype)t)) != 0))
		t++;
	return (enum dtype)t;
}

static double least_W(const struct profile *p)
{
	double least = INFINITY;
	for (size_t k = 0; k < p->n_products; k++)
		for (size_t i = 0; i < p->products[k].n; i++)
			if (p->products[k].power_W[i] > 0)
				least = fmin(least, p->products[k].power_W[i]);
	return least;
}

void rates_power(const struct profile *p, struct rates *out)
{
	const double burst_Hz = profile_burst_Hz(p), limit_W = profile_get_value(p, PROFILE_POWER_LIMIT_W, 0),
		     idle_W = least_W(p);
	double flop_per_s[DT_COUNT] = {0}, clock_Hz[DT_COUNT] = {0};
	int64_t n[DT_COUNT] = {0};
	if (!(limit_W > idle_W))
		return;
	out->power_limit_W = limit_W;
	out->power_idle_W = idle_W;
	for (size_t k = 0; k < p->n_products; k++) {
		const struct profile_products *x = &p->products[k];
		const int t = format_of(x);
		for (size_t i = 0; i < x->n && t < DT_COUNT; i++) {
			if (!(x->heat_s[i] > 0) || !(x->capped[i] > 0))
				continue;
			n[t]++;
			flop_per_s[t] += x->flop[i] / x->time_s[i];
			clock_Hz[t] += x->clock_Hz[i];
		}
	}
	for (int t = 0; t < DT_COUNT; t++)
		if (n[t])
			out->power_cap[t] = (struct power_cap){(limit_W - idle_W) * (double)n[t] / flop_per_s[t],
				clock_Hz[t] / (double)n[t] / burst_Hz};
}

/* An op moves its bytes faster than memory in cache, and at memory's rate out of cache. A time well above that shows
 * that arithmetic bounds it. */
static enum bound bound_of_curve(const struct rates *r, double bytes, double work_s)
{
	const struct device_spec *d = &r->machine->device;
	const double rate = d->mem_Bps * d->mem_share, memory_s = rate > 0 ? bytes / rate : 0;
	return memory_s >= work_s / 2 ? BOUND_MEMORY : BOUND_COMPUTE;
}

/* Returns seconds an element. What calibration repeats stays in a GPU's L2 cache where it fits; in a step other ops
 * come between two uses of a buffer. So no size is faster there than the largest, which no cache holds. */
static double curve_at(const struct rates *r, const struct profile_curve *c, double footprint_B)
{
	const double repeated_s = profile_curve_at(c, footprint_B, 1);
	return r->is_host ? repeated_s : fmax(repeated_s, c->y[c->n - 1]);
}

bool rates_curve(const struct rates *r, const struct work *w, double bytes, struct measured_time *out)
{
	const struct profile *p = r->machine->profile;
	const struct profile_curve *curve = r->measured ? profile_get_curve(p, w->name) : NULL;
	if (!curve)
		return false;
	const double call_s = profile_get_value(p, PROFILE_CALL_S, 0) * r->launch_factor;
	double work_s = w->elements * curve_at(r, curve, w->footprint_B);
	const enum bound bound = bound_of_curve(r, bytes, work_s);
	work_s *= r->entry_factor[bound];
	*out = (struct measured_time){(call_s + work_s) * r->placement_factor, call_s > work_s ? BOUND_LATENCY : bound,
		r->parameters->cost.sigma_curve};
	return true;
}

/* ---- collectives ---- */

/* How the members of a group lie on hosts of some ranks each. */
struct spread {
	int64_t members, hosts, host_stride; /* of a group, on each of its hosts; how far these are apart */
	int64_t at_once;                     /* groups that share a host's links */
};

static struct spread spread_of(int64_t size, int64_t stride, int64_t per_host)
{
	per_host = per_host > 1 ? per_host : 1;
	const int64_t here = per_host > stride ? per_host / stride : 1;
	struct spread s = {.members = here < size ? here : size};
	s.hosts = (size + s.members - 1) / s.members;
	s.host_stride = stride > per_host ? stride / per_host : 1;
	s.at_once = per_host > s.members ? per_host / s.members : 1;
	return s;
}

/* A group that was timed. */
struct timed_group {
	const struct profile_curve *curve;
	int64_t size, stride;
	struct spread spread;
	bool inside; /* a host */
};

/* A profile of one host says all of its links, of which GPUs have others than between hosts. On cores its one path
 * stands for those, too. */
static bool comparable(const struct rates *r, bool inside, const struct timed_group *g)
{
	const struct profile_key *k = &r->machine->profile->key;
	return inside == g->inside || (r->is_host && k->ranks <= k->ranks_per_host);
}

static double ratio(int64_t a, int64_t b) { return fabs(log((double)a / (double)b)); }

/* Returns whether `a` is nearer than `b` to a group of `size` ranks that lie as `s`. Sizes decide, then hosts, then how
 * far these are apart. */
static bool nearer(int64_t size, const struct spread *s, const struct timed_group *a, const struct timed_group *b)
{
	const double differences[] = {ratio(size, a->size) - ratio(size, b->size),
		ratio(s->hosts, a->spread.hosts) - ratio(s->hosts, b->spread.hosts),
		ratio(s->host_stride, a->spread.host_stride) - ratio(s->host_stride, b->spread.host_stride)};
	for (size_t i = 0; i < COUNT(differences); i++)
		if (differences[i] < 0 || differences[i] > 0)
			return differences[i] < 0;
	return false;
}

/* Returns false where no curve of this collective was measured on such links. Messages have one, of those that send. */
static bool nearest_group(const struct rates *r, enum collective c, int64_t size, int64_t stride,
	const struct spread *s, struct timed_group *out)
{
	const struct profile *p = r->machine->profile;
	const char *name = collective_name(c == COLL_RECV ? COLL_SEND : c);
	const bool inside = machine_group_in_node(r->machine, size, stride);
	out->curve = NULL;
	for (size_t i = 0; i < p->n_curves; i++) {
		struct timed_group g = {.curve = &p->curves[i]};
		g.size = profile_collective_ranks(g.curve->name, name, &g.stride);
		if (g.size < 2)
			continue;
		g.spread = spread_of(g.size, g.stride, p->key.ranks_per_host);
		g.inside = g.size * g.stride <= p->key.ranks_per_host || p->key.ranks <= p->key.ranks_per_host;
		if (comparable(r, inside, &g) && (!out->curve || nearer(size, s, &g, out)))
			*out = g;
	}
	return out->curve != NULL;
}

/* Returns the time by these rates of what a curve says: the time of its first point is latency, the rest moves bytes,
 * between hosts on links that as many groups share as a host has. Latency between ranks that share cores is mostly
 * waiting for each other's turn on these, which a host with one rank does not have. On cores the part beyond the link's
 * own time is work on the bytes, which no rate of the network changes: no more than they cost compute. */
static double scaled_s(const struct rates *r, const struct timed_group *g, const struct spread *s, double empty_s,
	double time_s, double wire_B)
{
	const bool inside = g->inside || (r->is_host && r->nodes == 1);
	const double bytes_s = fmax(0, time_s - empty_s),
		     alone = !inside && r->devices_per_node == 1 ? r->between.alone_latency : 1,
		     latency_s = fmin(empty_s, time_s) * alone * r->latency_factor;
	if (inside)
		return latency_s + bytes_s / r->inside_factor;
	const double link_s = wire_B * (double)g->spread.at_once * r->network_factor / r->inter.Bps,
		     work_s = r->is_host ? fmin(fmax(0, bytes_s - link_s), 2 * r->between.compute_s_per_B * wire_B) : 0;
	return latency_s + work_s +
	       (bytes_s - work_s) * (double)s->at_once / (double)g->spread.at_once / r->network_factor;
}

bool rates_collective(const struct rates *r, enum collective c, int64_t size, int64_t stride, double bytes,
	struct measured_collective *out)
{
	const struct spread s = spread_of(size, stride, r->devices_per_node);
	struct timed_group g;
	if (!r->measured || !nearest_group(r, c, size, stride, &s, &g))
		return false;
	const double n = (double)size, k = (double)g.size;
	const bool parts = collective_reduces(c) || collective_cuts(c);
	const double steps = parts ? (n - 1) / (k - 1) : 1;
	out->time_s = steps * profile_curve_at(g.curve, parts ? bytes * k / n : bytes, 0);
	out->empty_s = steps * profile_curve_at(g.curve, 0, 0);
	out->time_s = scaled_s(r, &g, &s, out->empty_s, out->time_s,
		steps * collective_wire_factor(c, g.size) * (parts ? bytes * k / n : bytes));
	out->same_size = g.size == size && (g.inside ? machine_group_in_node(r->machine, size, stride)
						     : memcmp(&g.spread, &s, sizeof s) == 0);
	return true;
}
