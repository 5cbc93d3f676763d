#include "sim/cost.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The curve of this collective whose group size is nearest to `size` in ratio, and that size; NULL when there is none. */
static const struct profile_curve *nearest_curve(const struct profile *p, enum collective c, int64_t size, int64_t *found)
{
	const struct profile_curve *best = NULL;
	const char *name = collective_name(c);
	size_t len = strlen(name);
	double best_ratio = INFINITY;
	for (size_t i = 0; i < p->n_curves; i++) {
		const char *text = p->curves[i].name;
		if (strncmp(text, name, len) != 0 || text[len] != '.')
			continue;
		char *end;
		long long ranks = strtoll(text + len + 1, &end, 10);
		if (*end || ranks < 2)
			continue;
		double ratio = fabs(log((double)size / (double)ranks));
		if (ratio < best_ratio) {
			best_ratio = ratio;
			best = &p->curves[i];
			*found = ranks;
		}
	}
	return best;
}

int64_t pair_stride(const struct machine *m, int64_t stride, int64_t from, int64_t to)
{
	int64_t low = (from < to ? from : to) * stride, distance = (from < to ? to - from : from - to) * stride, host = m->devices_per_node, last = low + stride - 1;
	bool one_host = m->nodes == 1 || (low / host == (low + distance) / host && last / host == (last + distance) / host);
	if (!one_host)
		return host;
	return host % (2 * distance) == 0 ? distance : 1;
}

double collective_time_s(const struct machine *m, enum collective c, int64_t size, int64_t stride, double bytes)
{
	if (size <= 1)
		return 0;
	double n = (double)size;
	int64_t k = size;
	const struct profile_curve *curve = m->profile ? nearest_curve(m->profile, c, size, &k) : NULL;
	if (curve)
		return (n - 1) / (double)(k - 1) * profile_curve_at(curve, bytes * (double)k / n, 0);
	struct link_spec link = machine_group_link(m, size, stride);
	if (c == COLL_SEND || c == COLL_RECV)
		return link.Bps > 0 ? link.latency_s + bytes / link.Bps : INFINITY;
	double rounds = c == COLL_ALL_REDUCE ? 2 * (n - 1) : n - 1;
	return link.Bps > 0 ? rounds * (link.latency_s + bytes / n / link.Bps) : INFINITY;
}
