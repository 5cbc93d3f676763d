#include <math.h>
#include <stdbool.h>

#include "report/figures.h"
#include "report/report.h"
#include "report/stages.h"

#ifndef STEPSIM_COMMIT
#define STEPSIM_COMMIT "unknown"
#endif

#define MFU_CONVENTION "6N+12Lhs, non-causal, dense peak"

const char *report_commit(void)
{
	return STEPSIM_COMMIT;
}

/* JSON has neither NaN nor infinity: what has no value is null. */
static json_t *real(double x)
{
	return isfinite(x) ? json_real(x) : json_null();
}

/* json_object_set_new fails on a NULL value and keeps what was there; one flag for the whole object says so at the end. */
static void set(json_t *object, const char *key, json_t *value, bool *good)
{
	if (json_object_set_new(object, key, value) != 0)
		*good = false;
}

static void append(json_t *array, json_t *value, bool *good)
{
	if (json_array_append_new(array, value) != 0)
		*good = false;
}

static json_t *bytes(uint64_t n)
{
	return json_integer((json_int_t)n);
}

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
	set(o, "total_bytes", bytes(m->total_B), &good);
	for (size_t i = 0; i < FIGURE_MEMORIES; i++)
		set(o, figure_memories[i].key, bytes(figure_memory_B(m, i)), &good);
	set(o, "capacity_bytes", bytes(m->capacity_B), &good);
	set(o, "fits", json_boolean(m->fits), &good);
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
		set(o, "class", json_string(op_class_name((enum op_class)k)), &good);
		set(o, "count", json_integer(r->time.class_n[k]), &good);
		set(o, "time_s", real(r->time.class_s[k]), &good);
		set(o, "bound", r->class_bound[k] == BOUND_COUNT ? json_null() : json_string(bound_name(r->class_bound[k])), &good);
		append(list, o, &good);
	}
	return checked(list, good);
}

static json_t *warnings_json(const struct result *r)
{
	json_t *list = json_array();
	bool good = list != NULL;
	for (size_t i = 0; i < r->n_warnings; i++)
		append(list, json_string(r->warning[i]), &good);
	return checked(list, good);
}

static json_t *interval_json(const struct result *r)
{
	json_t *pair = json_array();
	bool good = pair != NULL;
	append(pair, real(r->interval90_s[0]), &good);
	append(pair, real(r->interval90_s[1]), &good);
	return checked(pair, good);
}

static json_t *clock_events_json(const struct result_clocks *c)
{
	json_t *list = json_array();
	bool good = list != NULL;
	for (size_t i = 0; i < c->n_events; i++) {
		const struct clock_event *e = &c->event[i];
		json_t *o = json_object();
		set(o, "what", json_string(e->what), &good);
		set(o, "rank", json_integer(e->rank), &good);
		set(o, "share", real(e->share), &good);
		set(o, "gpus", json_integer(e->gpus), &good);
		append(list, o, &good);
	}
	return checked(list, good);
}

static json_t *known(double x)
{
	return x > 0 ? real(x) : json_null();
}

static json_t *clocks_json(const struct result_clocks *c)
{
	json_t *o = json_object();
	bool good = o != NULL;
	set(o, "samples", json_integer(c->samples), &good);
	set(o, "gpus", json_integer(c->gpus), &good);
	set(o, "clock_Hz", known(c->clock_Hz), &good);
	set(o, "boost_clock_Hz", known(c->boost_Hz), &good);
	set(o, "slowest_rank", c->slowest_rank < 0 ? json_null() : json_integer(c->slowest_rank), &good);
	set(o, "slowest_clock_Hz", known(c->slowest_Hz), &good);
	set(o, "power_W", known(c->power_W), &good);
	set(o, "power_limit_W", known(c->power_limit_W), &good);
	set(o, "temperature_C", known(c->temperature_C), &good);
	set(o, "events", clock_events_json(c), &good);
	return checked(o, good);
}

static json_t *result_json(const struct result *r, bool measured)
{
	json_t *o = json_object();
	bool good = o != NULL;
	set(o, "step_time_s", real(r->time.step_s), &good);
	set(o, "tokens_per_s", real(r->tokens_per_s), &good);
	set(o, "tokens_per_s_per_gpu", real(r->tokens_per_s_per_gpu), &good);
	set(o, "tflops_per_gpu", real(r->tflops_per_gpu), &good);
	set(o, "mfu", real(r->mfu), &good);
	set(o, "hfu", real(r->hfu), &good);
	set(o, "mfu_convention", json_string(MFU_CONVENTION), &good);
	for (size_t i = 0; i < FIGURE_PARTS; i++)
		set(o, figure_parts[i].key, real(figure_part_s(&r->time, i)), &good);
	set(o, "comm_s", real(r->time.comm_s), &good);
	set(o, "overlap", real(r->time.overlap), &good);
	set(o, "wait_s", real(r->time.wait_s), &good);
	if (!measured) {
		set(o, "goodput", known(r->goodput), &good);
		set(o, "checkpoint_interval_s", known(r->checkpoint_interval_s), &good);
	}
	set(o, "interval90_s", interval_json(r), &good);
	set(o, "memory", memory_json(&r->memory), &good);
	set(o, "by_class", classes_json(r), &good);
	set(o, "bottleneck", json_string(r->bottleneck), &good);
	set(o, "advice", json_array(), &good);
	set(o, "warnings", warnings_json(r), &good);
	if (measured) {
		set(o, "steps", json_integer(r->steps), &good);
		set(o, "step_time_min_s", real(r->step_min_s), &good);
		set(o, "step_time_max_s", real(r->step_max_s), &good);
		set(o, "verified", r->verified < 0 ? json_null() : json_boolean(r->verified), &good);
		if (r->clocks.samples > 0)
			set(o, "clocks", clocks_json(&r->clocks), &good);
	}
	return checked(o, good);
}

json_t *report_side_json(const struct result *r)
{
	return result_json(r, false);
}

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
		set(stage, "stage", json_integer(i), &good);
		set(stage, "layers", json_integer(f.layers), &good);
		for (size_t k = 0; k < FIGURE_PARTS; k++)
			set(stage, figure_parts[k].key, real(figure_part_s(&f.time, k)), &good);
		set(stage, "memory_bytes", bytes(f.memory_B), &good);
		append(list, stage, &good);
	}
	return checked(list, good);
}

/* Of a run on doubles only that it took place. */
static json_t *doubles_json(const struct result *r)
{
	json_t *o = json_object();
	bool good = o != NULL;
	set(o, "double", json_true(), &good);
	set(o, "steps", json_integer(r->steps), &good);
	set(o, "verified", r->verified < 0 ? json_null() : json_boolean(r->verified), &good);
	return checked(o, good);
}

static json_t *comparison_json(const struct result *p, const struct result *m)
{
	json_t *o = json_object(), *list = json_array();
	bool good = o && list;
	set(o, "step_time_error", real(figure_error(p->time.step_s, m->time.step_s)), &good);
	set(o, "exposed_comm_error", real(figure_error(p->time.exposed_comm_s, m->time.exposed_comm_s)), &good);
	set(o, "overlap_error", real(figure_error(p->time.overlap, m->time.overlap)), &good);
	for (int k = 0; k < CLASS_COUNT; k++) {
		if (!figure_has_class(p, m, (enum op_class)k))
			continue;
		double predicted_s = p->time.class_s[k], measured_s = m->time.class_s[k];
		json_t *row = json_object();
		set(row, "class", json_string(op_class_name((enum op_class)k)), &good);
		set(row, "predicted_s", real(predicted_s), &good);
		set(row, "measured_s", real(measured_s), &good);
		set(row, "error", real(figure_error(predicted_s, measured_s)), &good);
		append(list, row, &good);
	}
	set(o, "by_class", list, &good);
	return checked(o, good);
}

json_t *report_json(const struct outcome *o)
{
	json_t *j = json_object();
	bool good = j != NULL;
	set(j, "stepsim", json_string(STEPSIM_VERSION), &good);
	set(j, "commit", json_string(report_commit()), &good);
	set(j, "config", config_json(&o->program->config), &good);
	set(j, "system", o->system ? json_incref(o->system) : json_null(), &good);
	json_t *prediction = result_json(o->predicted, false);
	if (o->program->n_roles > 1)
		set(prediction, "stages", stages_json(o), &good);
	set(j, "prediction", prediction, &good);
	bool doubles = o->measured && o->measured->doubles;
	set(j, "measurement", doubles ? doubles_json(o->measured) : o->measured ? result_json(o->measured, true) : json_null(), &good);
	set(j, "comparison", o->measured && !doubles ? comparison_json(o->predicted, o->measured) : json_null(), &good);
	set(j, "not_executed", o->mode ? json_string(o->mode) : json_null(), &good);
	return checked(j, good);
}
