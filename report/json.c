#include <math.h>
#include <stdbool.h>

#include "report/compare_parts.h"
#include "report/figures.h"
#include "report/json_build.h"
#include "report/report.h"
#include "report/stages.h"
#include "report/verdict.h"

#ifndef STEPSIM_COMMIT
#define STEPSIM_COMMIT "unknown"
#endif

#define MFU_CONVENTION "6N+12Lhs, non-causal, dense peak"

const char *report_commit(void) { return STEPSIM_COMMIT; }

static json_t *bytes(uint64_t n) { return json_integer((json_int_t)n); }

static json_t *checked(json_t *value, bool good)
{
	if (good)
		return value;
	json_decref(value);
	return NULL;
}

static json_t *memory_json(const struct result_memory *m)
{
	json_t *o = json_object();
	bool good = o != NULL;
	json_put(o, "total_bytes", bytes(m->total_B), &good);
	for (size_t i = 0; i < FIGURE_MEMORIES; i++)
		json_put(o, figure_memories[i].key, bytes(figure_memory_B(m, i)), &good);
	json_put(o, "capacity_bytes", bytes(m->capacity_B), &good);
	json_put(o, "fits", json_boolean(m->fits), &good);
	if (m->high_B > 0) {
		json_put(o, "interval80_bytes", json_pack("[I, I]", (json_int_t)m->low_B, (json_int_t)m->high_B),
			&good);
		json_put(o, "may_fit", json_boolean(m->fits || verdict_may_fit(m)), &good);
	}
	return checked(o, good);
}

static json_t *classes_json(const struct result *r)
{
	json_t *list = json_array();
	bool good = list != NULL;
	for (int k = 0; k < CLASS_COUNT; k++) {
		if (r->time.class_n[k] == 0)
			continue;
		json_t *o = json_object();
		json_put(o, "class", json_string(op_class_name((enum op_class)k)), &good);
		json_put(o, "count", json_integer(r->time.class_n[k]), &good);
		json_put(o, "time_s", json_number(r->time.class_s[k]), &good);
		json_put(o, "bound",
			r->class_bound[k] == BOUND_COUNT ? json_null() : json_string(bound_name(r->class_bound[k])),
			&good);
		json_push(list, o, &good);
	}
	return checked(list, good);
}

static json_t *warnings_json(const struct result *r)
{
	json_t *list = json_array();
	bool good = list != NULL;
	for (size_t i = 0; i < r->n_warnings; i++)
		json_push(list, json_string(r->warning[i]), &good);
	return checked(list, good);
}

static json_t *interval_json(const struct result *r)
{
	json_t *pair = json_array();
	bool good = pair != NULL;
	json_push(pair, json_number(r->interval90_s[0]), &good);
	json_push(pair, json_number(r->interval90_s[1]), &good);
	return checked(pair, good);
}

json_t *report_interval_parts(const double part[INTERVAL_COUNT])
{
	json_t *o = json_object();
	bool good = o != NULL;
	for (int i = 0; i < INTERVAL_COUNT; i++)
		if (part[i] > 0)
			json_put(o, interval_cause_name[i], json_number(part[i]), &good);
	return checked(o, good);
}

static json_t *clock_events_json(const struct result_clocks *c)
{
	json_t *list = json_array();
	bool good = list != NULL;
	for (size_t i = 0; i < c->n_events; i++) {
		const struct clock_event *e = &c->event[i];
		json_t *o = json_object();
		json_put(o, "what", json_string(e->what), &good);
		json_put(o, "rank", json_integer(e->rank), &good);
		json_put(o, "share", json_number(e->share), &good);
		json_put(o, "gpus", json_integer(e->gpus), &good);
		json_push(list, o, &good);
	}
	return checked(list, good);
}

static json_t *known(double x) { return x > 0 ? json_number(x) : json_null(); }

static json_t *clocks_json(const struct result_clocks *c)
{
	json_t *o = json_object();
	bool good = o != NULL;
	json_put(o, "samples", json_integer(c->samples), &good);
	json_put(o, "gpus", json_integer(c->gpus), &good);
	json_put(o, "clock_Hz", known(c->clock_Hz), &good);
	json_put(o, "boost_clock_Hz", known(c->boost_Hz), &good);
	json_put(o, "slowest_rank", c->slowest_rank < 0 ? json_null() : json_integer(c->slowest_rank), &good);
	json_put(o, "slowest_clock_Hz", known(c->slowest_Hz), &good);
	json_put(o, "power_W", known(c->power_W), &good);
	json_put(o, "power_limit_W", known(c->power_limit_W), &good);
	json_put(o, "temperature_C", known(c->temperature_C), &good);
	json_put(o, "events", clock_events_json(c), &good);
	return checked(o, good);
}

/* advice: of a prediction; NULL: none. */
static json_t *result_json(const struct result *r, bool measured, const struct advice *advice)
{
	json_t *o = json_object();
	bool good = o != NULL;
	json_put(o, "step_time_s", json_number(r->time.step_s), &good);
	json_put(o, "tokens_per_s", json_number(r->tokens_per_s), &good);
	json_put(o, "tokens_per_s_per_gpu", json_number(r->tokens_per_s_per_gpu), &good);
	json_put(o, "samples_per_s", json_number(r->samples_per_s), &good);
	json_put(o, "tflops_per_gpu", json_number(r->tflops_per_gpu), &good);
	json_put(o, "mfu", json_number(r->mfu), &good);
	json_put(o, "hfu", json_number(r->hfu), &good);
	json_put(o, "mfu_convention", json_string(MFU_CONVENTION), &good);
	for (size_t i = 0; i < FIGURE_PARTS; i++)
		json_put(o, figure_parts[i].key, json_number(figure_part_s(&r->time, i)), &good);
	json_put(o, "comm_s", json_number(r->time.comm_s), &good);
	json_put(o, "overlap", json_number(r->time.overlap), &good);
	json_put(o, "wait_s", json_number(r->time.wait_s), &good);
	if (!measured) {
		json_put(o, "goodput", known(r->goodput), &good);
		json_put(o, "checkpoint_interval_s", known(r->checkpoint_interval_s), &good);
	}
	json_put(o, "interval90_s", interval_json(r), &good);
	if (r->interval_part[INTERVAL_SOFTWARE] > 0)
		json_put(o, "interval90_parts", report_interval_parts(r->interval_part), &good);
	json_put(o, "memory", memory_json(&r->memory), &good);
	json_put(o, "by_class", classes_json(r), &good);
	json_put(o, "bottleneck", json_string(r->bottleneck), &good);
	if (measured)
		json_put(o, "advice", json_array(), &good);
	else
		report_put_advice(o, advice, &good);
	json_put(o, "warnings", warnings_json(r), &good);
	if (measured) {
		json_put(o, "steps", json_integer(r->steps), &good);
		json_put(o, "step_time_min_s", json_number(r->step_min_s), &good);
		json_put(o, "step_time_max_s", json_number(r->step_max_s), &good);
		if (r->stamped_step_s > 0)
			json_put(o, "stamped_step_time_s", json_number(r->stamped_step_s), &good);
		json_put(o, "verified", r->verified < 0 ? json_null() : json_boolean(r->verified), &good);
		if (r->clocks.samples > 0)
			json_put(o, "clocks", clocks_json(&r->clocks), &good);
	}
	return checked(o, good);
}

json_t *report_side_json(const struct result *r) { return result_json(r, false, NULL); }

/* One object a pipeline stage; NULL when out of memory. */
static json_t *stages_json(const struct outcome *o)
{
	json_t *list = json_array();
	bool good = list != NULL;
	for (uint32_t i = 0; i < o->program->n_roles && good; i++) {
		struct stage_figures f;
		struct error e = {0};
		json_t *stage = json_object();
		good = stage_figures(o, i, &f, &e) == ST_OK;
		json_put(stage, "stage", json_integer(i), &good);
		json_put(stage, "layers", json_integer(f.layers), &good);
		for (size_t k = 0; k < FIGURE_PARTS; k++)
			json_put(stage, figure_parts[k].key, json_number(figure_part_s(&f.time, k)), &good);
		json_put(stage, "memory_bytes", bytes(f.memory_B), &good);
		json_push(list, stage, &good);
	}
	return checked(list, good);
}

/* Returns the JSON of a run on doubles, which has no measured time. */
static json_t *doubles_json(const struct result *r)
{
	json_t *o = json_object();
	bool good = o != NULL;
	json_put(o, "double", json_true(), &good);
	json_put(o, "steps", json_integer(r->steps), &good);
	json_put(o, "verified", r->verified < 0 ? json_null() : json_boolean(r->verified), &good);
	return checked(o, good);
}

static json_t *comparison_json(const struct result *p, const struct result *m)
{
	json_t *o = json_object(), *list = json_array();
	bool good = o && list;
	json_put(o, "step_time_error", json_number(figure_error(p->time.step_s, m->time.step_s)), &good);
	json_put(o, "exposed_comm_error", json_number(figure_error(p->time.exposed_comm_s, m->time.exposed_comm_s)),
		&good);
	json_put(o, "overlap_error", json_number(figure_error(p->time.overlap, m->time.overlap)), &good);
	for (int k = 0; k < CLASS_COUNT; k++) {
		if (!figure_has_class(p, m, (enum op_class)k))
			continue;
		double predicted_s = p->time.class_s[k], measured_s = m->time.class_s[k];
		json_t *row = json_object();
		json_put(row, "class", json_string(op_class_name((enum op_class)k)), &good);
		json_put(row, "predicted_s", json_number(predicted_s), &good);
		json_put(row, "measured_s", json_number(measured_s), &good);
		json_put(row, "error", json_number(figure_error(predicted_s, measured_s)), &good);
		json_push(list, row, &good);
	}
	json_put(o, "by_class", list, &good);
	return checked(o, good);
}

static json_t *model_json(const struct model *m)
{
	json_t *o = json_object();
	bool good = o != NULL;
	json_put(o, "name", json_string(m->name), &good);
	json_put(o, "parameters", json_integer((json_int_t)model_parameters(m)), &good);
	json_put(o, "trained_parameters", json_integer((json_int_t)model_trained_parameters(m)), &good);
	json_put(o, "active_parameters", json_integer((json_int_t)model_active_parameters(m)), &good);
	return checked(o, good);
}

json_t *report_json(const struct outcome *o)
{
	json_t *j = json_object();
	bool good = j != NULL;
	json_put(j, "stepsim", json_string(STEPSIM_VERSION), &good);
	json_put(j, "commit", json_string(report_commit()), &good);
	json_put(j, "config", config_json(&o->program->config), &good);
	json_put(j, "model", model_json(&o->program->config.model), &good);
	json_put(j, "system", o->system ? json_incref(o->system) : json_null(), &good);
	json_t *prediction = result_json(o->predicted, false, o->advice);
	if (o->program->n_roles > 1)
		json_put(prediction, "stages", stages_json(o), &good);
	json_put(j, "prediction", prediction, &good);
	bool doubles = o->measured && o->measured->doubles;
	json_put(j, "measurement",
		doubles       ? doubles_json(o->measured)
		: o->measured ? result_json(o->measured, true, NULL)
			      : json_null(),
		&good);
	json_put(j, "comparison", o->measured && !doubles ? comparison_json(o->predicted, o->measured) : json_null(),
		&good);
	if (o->target)
		json_put(j, "cost", compare_target_json(o->target), &good);
	json_put(j, "not_executed", o->mode ? json_string(o->mode) : json_null(), &good);
	return checked(j, good);
}
