#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "exec/calibrate/calibrate.h"
#include "exec/gpus.h"
#include "exec/cpu_steal.h"
#include "exec/session.h"

/* Parts of the progress line. */
#define COMPUTE_SHARE 0.75

static void name_profile(const struct session *s, struct profile *p)
{
	time_t now = time(NULL);
	struct tm utc;
	session_profile_key(s, &p->key);
	gmtime_r(&now, &utc);
	strftime(p->date, sizeof p->date, "%Y-%m-%dT%H:%M:%SZ", &utc);
}

static enum status measure(struct session *s, calibration_cases *cases, struct profile *p,
	struct calibration_noise *noise, struct error *e)
{
	const struct work_device cores = {.gpu = false}, *d = s->gpus ? &s->gpus->work : &cores;
	enum status st = session_agree(s, calibration_grid(d, cases, e), e);
	if (!st)
		st = s->gpus ? calibrate_gpu(s, cases, p, 0, COMPUTE_SHARE, e)
		             : calibrate_compute(s, cases, noise, 0, COMPUTE_SHARE, e);
	if (!st && p)
		st = calibration_fit(cases, d, p, e);
	st = session_agree(s, st, e);
	return st ? st : calibrate_comm(s, calibration_typical_gemm(cases, d->gpu), p, noise, COMPUTE_SHARE, 1, e);
}

/* A profile of a busy machine says so for as long as it is used. `p` is rank 0's. GPUs' times are one measurement. */
static enum status note_cpu_steal(struct session *s, const struct cpu_steal *begun, struct calibration_noise *noise,
	struct profile *p, struct error *e)
{
	struct cpu_steal_worst worst;
	enum status st = cpu_steal_end(s, begun, &worst, e);
	if (!st && s->gpus && !s->info.gpu_doubles)
		calibration_noise_add(noise, 1, worst.rank < 0 ? 0 : worst.taken + worst.stolen);
	if (!st && p)
		st = calibration_noise_set(noise, p, e);
	if (!st && p && profile_disturbed(p) > 0)
		log_warn("others took %.0f %% of a rank's cores during %.0f %% of the measurements%s: the profile is a "
			 "busy machine's",
			100 * profile_get_value(p, PROFILE_CPU_STEAL_SHARE, 0), 100 * profile_disturbed(p),
			s->gpus ? "" : ", each time they were taken");
	return session_agree(s, st, e);
}

enum status calibrate(struct session *s, struct profile **out, struct error *e)
{
	calibration_cases cases = {0};
	struct profile *p = NULL;
	double begin_s = clock_s();
	bool first = session_info(s)->rank == 0;
	struct cpu_steal steal;
	struct calibration_noise noise = {0};
	*out = NULL;
	watchdog_arm(s->watchdog, "calibration");
	cpu_steal_begin(&steal);
	progress_begin("measuring this machine");
	p = first ? profile_create() : NULL;
	enum status st = session_agree(s, first && !p ? error_nomem(e, "a profile") : ST_OK, e);
	if (!st)
		st = session_agree(s, measure(s, &cases, p, &noise, e), e);
	if (!st)
		st = note_cpu_steal(s, &steal, &noise, p, e);
	progress_end();
	watchdog_disarm(s->watchdog);
	vec_free(&cases);
	if (st) {
		profile_destroy(p);
		return st;
	}
	if (first) {
		name_profile(s, p);
		log_detail("calibration took %.1f s", clock_s() - begin_s);
	}
	*out = p;
	return ST_OK;
}
