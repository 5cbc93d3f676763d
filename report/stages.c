#include "report/stages.h"

#include "step/layout.h"

enum status stage_figures(const struct outcome *o, uint32_t stage, struct stage_figures *out, struct error *e)
{
	const struct config *c = &o->program->config;
	struct layout l;
	*out = (struct stage_figures){0};
	enum status st = timeline_breakdown(o->predicted_timeline, stage, &out->time, e);
	if (st || (st = layout_peak(&o->program->roles[stage], &l, e)))
		return st;
	out->memory_B = l.peak_B + o->predicted->memory.overhead_B;
	layout_free(&l);
	for (int64_t chunk = 0; chunk < c->parallel.virtual_stages; chunk++)
		out->layers += stage_part(c, stage, chunk).layers;
	return ST_OK;
}
