/* `stepsim roofline`: the rates that this session's devices reach, compared with their datasheet. */
#include <stdio.h>
#include <string.h>

#include "base/wrap.h"
#include "cli/devices.h"
#include "report/report.h"
#include "report/roofline.h"
#include "topology/catalogue/device.h"

static enum status check(const struct options *o, enum dtype *only, struct error *e)
{
	*only = DT_COUNT;
	return o->dtype ? roofline_dtype(o->dtype, only, e) : ST_OK;
}

/* A GPU that the catalogue does not know has no datasheet; neither has a host. */
static enum status find_sheet(const struct session_info *info, struct roof_sheet *out, struct error *e)
{
	char id[DEVICE_ID];
	struct device_spec d;
	enum status st;
	if (!info->gpus)
		return ST_OK;
	if ((st = device_by_shown_name(info->gpu, info->gpu_mem_B, id, e)) || !*id || (st = device_load(id, &d, e)))
		return st;
	snprintf(out->name, sizeof out->name, "%.*s", (int)sizeof out->name - 1, d.name);
	memcpy(out->matrix_flop_per_s, d.matrix_flop_per_s, sizeof out->matrix_flop_per_s);
	out->vector_flop_per_s = d.vector_flop_per_s;
	out->mem_Bps = d.mem_Bps;
	out->unverified = d.unverified;
	return ST_OK;
}

static enum status show(const struct options *o, const struct roofline *r, struct error *e)
{
	struct wrap w;
	enum status st = ST_OK;
	if (!options_take_stdout(o) && !(st = wrap_open(&w, stdout, e)))
		st = wrap_close(&w, report_roofline_text(r, w.out, e), e);
	if (st)
		return st;
	if (o->csv && (st = report_roofline_csv(r, o->csv, e)))
		return st;
	if (o->plot && (st = report_roofline_svg(r, o->plot, e)))
		return st;
	if (!o->json)
		return ST_OK;
	json_t *j = report_roofline_json(r);
	st = j ? report_write_json(j, o->json, e) : error_nomem(e, "the JSON result");
	json_decref(j);
	return st;
}

enum status cmd_roofline(struct context *x, struct error *e)
{
	struct roofline r = {0};
	enum dtype only;
	enum status st = check(x->options, &only, e);
	if (st || (st = devices_open(x, e)))
		return st;
	st = x->exec->roofline_measure(x->session, only, x->options->seconds > 0 ? x->options->seconds : ROOFLINE_S, &r,
		e);
	if (!st && context_leads(x) && !(st = find_sheet(context_info(x), &r.sheet, e)))
		st = show(x->options, &r, e);
	roofline_free(&r);
	return st;
}
