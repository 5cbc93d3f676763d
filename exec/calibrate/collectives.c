/* Collectives alone, one step after the other: inside a host, and on GPUs. */
#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/stats.h"
#include "exec/calibrate/comm.h"

/* NCCL moves bytes: the format matters little. Of doubles, whose times nobody keeps, the small ones do. */
static const uint64_t *sizes_of(const struct session *s, size_t *n)
{
	*n = s->info.gpu_doubles ? CALIBRATION_COMM_SIZES / 2 : CALIBRATION_COMM_SIZES;
	return s->gpus ? calibration_gpu_comm_sizes : calibration_comm_sizes;
}

static double seconds(int64_t ns) { return (double)ns * 1e-9; }

/* How long op `op` moved: from the last member's arrival to the last one's end, in the slowest group. Clocks of
 * different GPUs do not agree to some microseconds; there it is the shortest stay of a member, the last one's to
 * arrive. `all`: stamps by rank, then op. */
static double moved_s(const struct session *s, const struct stamp *all, size_t n_ops, size_t op, int64_t size)
{
	double slowest = 1e-9; /* a curve's times are positive */
	for (int64_t first = 0; first < s->info.ranks; first += size) {
		int64_t begin = INT64_MIN, end = INT64_MIN, shortest = INT64_MAX;
		for (int64_t r = first; r < first + size; r++) {
			const struct stamp *t = &all[(size_t)r * n_ops + op];
			begin = t->begin_ns > begin ? t->begin_ns : begin;
			end = t->end_ns > end ? t->end_ns : end;
			shortest = t->end_ns - t->begin_ns < shortest ? t->end_ns - t->begin_ns : shortest;
		}
		slowest = fmax(slowest, seconds(!s->gpus ? end - begin : shortest));
	}
	return slowest;
}

/* The typical time of every op over some steps; the first step is the warm-up. */
static enum status time_ops(struct probe *probe, int64_t size, double budget_s, double *typical_s, struct error *e)
{
	struct session *s = probe->session;
	size_t n = probe->role.ops.n;
	int steps = 0;
	bool go_on = true;
	double begin_s = clock_s(), *times = calloc(n * CALIBRATION_STEPS_MAX, sizeof *times);
	struct stamp *all = calloc((size_t)s->info.ranks * n, sizeof *all);
	enum status st = times && all ? probe_step(probe, true, e) : error_nomem(e, "calibration's times");
	while (!st && !(st = calibration_another_step(s, steps, begin_s, budget_s, &go_on, e)) && go_on) {
		if ((st = probe_step(probe, true, e)) ||
			(st = session_gather_all(s, probe->stamps, n * sizeof *probe->stamps, all, e)))
			break;
		for (size_t i = 0; i < n; i++)
			times[i * CALIBRATION_STEPS_MAX + (size_t)steps] = moved_s(s, all, n, i, size);
		steps++;
	}
	for (size_t i = 0; i < n && !st; i++)
		typical_s[i] = stats_percentile(times + i * CALIBRATION_STEPS_MAX, (size_t)steps,
			CALIBRATION_PERCENTILE);
	free(times);
	free(all);
	return st;
}

/* CPU time that other threads than this one took during a step of collectives alone, as a share of it: what the
 * progress thread takes from a core. */
static enum status progress_share(struct probe *probe, double *share, struct error *e)
{
	enum status st = session_barrier(probe->session, e);
	struct timespec cpu;
	double begin_s = clock_s(), own_s = clock_thread_cpu_s();
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
	double all_s = (double)cpu.tv_sec + 1e-9 * (double)cpu.tv_nsec;
	if (st || (st = probe_step(probe, true, e)))
		return st;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
	double others_s = (double)cpu.tv_sec + 1e-9 * (double)cpu.tv_nsec - all_s - (clock_thread_cpu_s() - own_s);
	*share = others_s / (clock_s() - begin_s);
	return st;
}

/* Which collective, of which size, is op k of the role. On GPUs the largest come first: while they move the host gets
 * ahead with issuing, so that a small one's time is not that of its launch. */
static void which(const struct session *s, size_t n, size_t k, size_t *coll, size_t *size)
{
	*coll = s->gpus ? k % CALIBRATION_COLLECTIVES : k / n;
	*size = s->gpus ? n - 1 - k / CALIBRATION_COLLECTIVES : k % n;
}

static bool add_collectives(struct probe *probe, int64_t size, double x[CALIBRATION_COMM_SIZES], size_t *n)
{
	const uint64_t *sizes = sizes_of(probe->session, n), largest = sizes[*n - 1];
	bool ok = probe_buffer(probe, COMP_BUFFERS, DT_FP32, largest) &&
	          probe_buffer(probe, COMP_BUFFERS, DT_FP32, largest);
	for (size_t k = 0, c, i; k < CALIBRATION_COLLECTIVES * *n && ok; k++) {
		which(probe->session, *n, k, &c, &i);
		ok = calibration_add_collective(probe, calibration_collectives[c], size, sizes[i], &x[i]);
	}
	return ok;
}

enum status calibration_collectives_inside(struct session *s, const struct calibration_unit *unit, struct profile *p,
	struct error *e)
{
	struct probe probe = {.session = s};
	const int64_t size = unit->size;
	double typical_s[CALIBRATION_COLLECTIVES * CALIBRATION_COMM_SIZES],
		curve_s[CALIBRATION_COLLECTIVES][CALIBRATION_COMM_SIZES], x[CALIBRATION_COMM_SIZES], share = 0;
	size_t n;
	bool ok = add_collectives(&probe, size, x, &n);
	enum status st = probe_load(&probe, size, 1, ok, e);
	if (!st)
		st = time_ops(&probe, size, unit->budget_s, typical_s, e);
	if (!st && !s->gpus)
		st = progress_share(&probe, &share, e);
	for (size_t k = 0, c, i; k < CALIBRATION_COLLECTIVES * n && !st; k++) {
		which(s, n, k, &c, &i);
		curve_s[c][i] = typical_s[k];
	}
	for (size_t c = 0; c < CALIBRATION_COLLECTIVES && !st && p; c++) {
		char name[PROFILE_NAME];
		profile_collective_curve(name, collective_name(calibration_collectives[c]), size, 1);
		st = profile_set_curve(p, name, x, curve_s[c], n, e);
	}
	if (!st && p && !s->gpus)
		st = profile_set_value(p, PROFILE_PROGRESS_SHARE, share, e);
	probe_close(&probe);
	return st;
}
