/* Timing the communicator: which groups, and in which order. */
#include "exec/calibrate/comm.h"

#include "base/clock.h"
#include "base/log.h"

#define COLLECTIVES_S \
	4.0 /* for the collectives of all group sizes together, where that allows more than the fewest steps */
#define BETWEEN_S 36.0    /* the same, for groups between hosts */
#define PAIRS 2           /* measurements: a latency and a rate */
#define OVERLAP_INSIDE 2  /* what a collective and a product cost each other */
#define OVERLAP_BETWEEN 4 /* the same, for a byte and a message, and what waiting costs */
#define GROUPS_MAX 64

const enum collective calibration_collectives[CALIBRATION_COLLECTIVES] = {COLL_ALL_REDUCE, COLL_ALL_GATHER,
	COLL_REDUCE_SCATTER, COLL_ALLTOALL};

enum status calibration_another_step(struct session *s, int done, double begin_s, double budget_s, bool *go_on,
	struct error *e)
{
	char yes = done < CALIBRATION_STEPS_MIN || (done < CALIBRATION_STEPS_MAX && clock_s() - begin_s < budget_s);
	enum status st = session_broadcast(s, &yes, 1, e);
	watchdog_progress(s->watchdog);
	*go_on = yes && !st;
	return st;
}

bool calibration_inside(const struct session *s, int64_t size, int64_t stride)
{
	return s->info.hosts == 1 ||
	       (size * stride <= s->info.ranks_per_host && s->info.ranks_per_host % (size * stride) == 0);
}

bool calibration_add_collective(struct probe *probe, enum collective coll, int64_t size, uint64_t bytes, double *x)
{
	enum { FULL, SHARD };                     /* an exchange has the one as what comes and the other as what goes */
	const uint64_t unit = 4 * (uint64_t)size; /* shards are whole elements */
	bytes = bytes >= unit ? bytes / unit * unit : unit;
	*x = (double)bytes;
	return probe_collective(probe, coll, DT_FP32, bytes,
		coll == COLL_ALL_GATHER || coll == COLL_ALLTOALL ? SHARD : FULL,
		coll == COLL_REDUCE_SCATTER ? SHARD : FULL);
}

/* ---- groups ---- */

struct groups {
	struct {
		int64_t size, stride;
	} at[GROUPS_MAX];
	size_t n;
};

static void add_group(struct groups *g, int64_t size, int64_t stride)
{
	for (size_t i = 0; i < g->n; i++)
		if (g->at[i].size == size && g->at[i].stride == stride)
			return;
	if (g->n < GROUPS_MAX) {
		g->at[g->n].size = size;
		g->at[g->n++].stride = stride;
	}
}

/* Neighbours in groups of each size that divides the ranks. Between hosts, too: one rank a host, as data-parallel
 * groups are around tensor-parallel ones, and pairs from one half of the hosts to the other, which is where a slower
 * link between racks lies. Hosts with different numbers of ranks have no such groups. */
static void find_groups(const struct session *s, struct groups *g)
{
	const struct session_info *info = &s->info;
	const bool even = info->ranks == info->hosts * info->ranks_per_host;
	for (int64_t size = 2; size <= info->ranks; size++)
		if (info->ranks % size == 0)
			add_group(g, size, 1);
	if (s->gpus || info->hosts == 1 || !even)
		return;
	for (int64_t size = 2; size <= info->hosts; size++)
		if (info->hosts % size == 0)
			add_group(g, size, info->ranks_per_host);
	if (info->hosts % 2 == 0)
		add_group(g, 2, info->ranks / 2);
}

/* ---- measuring ---- */

/* GPUs' times are hardly the cores'. */
static enum status measure(struct session *s, const struct calibration_unit *unit, struct profile *p,
	struct calibration_noise *noise, struct error *e)
{
	return s->gpus ? unit->measure(s, unit, p, e) : calibration_undisturbed(s, unit, p, noise, e);
}

static enum status measure_group(struct session *s, int64_t size, int64_t stride, size_t groups, struct profile *p,
	struct calibration_noise *noise, struct error *e)
{
	const bool inside = s->gpus || calibration_inside(s, size, stride);
	struct calibration_unit unit = {.measure = inside ? calibration_collectives_inside
	                                                  : calibration_collectives_between,
		.size = size,
		.stride = stride,
		.budget_s = (inside ? COLLECTIVES_S : BETWEEN_S) / (double)groups,
		.measurements = CALIBRATION_COLLECTIVES * CALIBRATION_COMM_SIZES};
	enum status st = measure(s, &unit, p, noise, e);
	/* Between GPUs the collectives say all of messages. */
	if (st || s->gpus || size != 2 || (inside && stride > 1))
		return st;
	unit.measure = calibration_messages;
	unit.measurements = PAIRS;
	return measure(s, &unit, p, noise, e);
}

/* Inside a host where ranks have neighbours there; between hosts on cores, which move the bytes of a network. GPUs have
 * one pair of rates for all. */
static enum status measure_overlap(struct session *s, const struct op *gemm, struct profile *p,
	struct calibration_noise *noise, struct error *e)
{
	const struct session_info *info = &s->info;
	const bool between = info->hosts > 1 && !s->gpus;
	const struct calibration_unit units[] = {{.measure = calibration_overlap,
							 .size = between ? info->ranks_per_host : info->ranks,
							 .stride = 1,
							 .gemm = gemm,
							 .measurements = OVERLAP_INSIDE},
		{.measure = calibration_overlap_between,
			.size = info->ranks,
			.stride = 1,
			.gemm = gemm,
			.measurements = OVERLAP_BETWEEN}};
	enum status st = ST_OK;
	if (gemm && units[0].size > 1)
		st = measure(s, &units[0], p, noise, e);
	if (gemm && between && !st)
		st = measure(s, &units[1], p, noise, e);
	return st;
}

enum status calibrate_comm(struct session *s, const struct calibration_case *gemm, struct profile *p,
	struct calibration_noise *noise, double begin, double end, struct error *e)
{
	struct groups g = {.n = 0};
	if (s->info.ranks < 2)
		return ST_OK;
	find_groups(s, &g);
	enum status st = ST_OK;
	for (size_t i = 0; i < g.n && !st; i++) {
		progress_update(begin + (end - begin) * 0.8 * (double)i / (double)g.n, "collectives");
		st = measure_group(s, g.at[i].size, g.at[i].stride, g.n, p, noise, e);
	}
	progress_update(begin + (end - begin) * 0.9, "overlap");
	return st ? st : measure_overlap(s, gemm ? &gemm->op : NULL, p, noise, e);
}
