#include "report/html_step.h"

#include <stdlib.h>
#include <string.h>

#include "report/json_build.h"
#include "report/report.h"
#include "report/usage.h"

/* So many spans of a side are drawn one by one, which a browser does without a pause; actors beyond them, except the
 * one that ends last, are drawn in blocks. */
#define SPANS_WHOLE 100000
#define ACTORS_MOST 64
/* A span joins the block before it if the gap is below the step over this number. */
#define BLOCK_GAP 500

/* The look that equal ops of all layers and micro-batches share; the page names it once. */
struct look {
	char name[96], shape[128];
	int class_;
	uint8_t phase;
	double flop, bytes; /* of a collective: sent */
};

/* An op of a role: its look, and where it is done. */
struct entry {
	size_t look;
	int32_t layer, micro, bucket;
};
typedef VEC(struct entry) entries;

struct builder {
	const struct program *program;
	FILE *out;
	VEC(struct look) looks;
	entries *of_role; /* by role; filled when first asked for */
	bool good;
};

/* A value as a script element may hold it: a solidus is escaped, so that no text ends the element. */
static void dump(struct builder *d, json_t *value)
{
	d->good = value &&
	          json_dumpf(value, d->out,
			  JSON_COMPACT | JSON_ESCAPE_SLASH | JSON_ENCODE_ANY | JSON_REAL_PRECISION(9)) == 0 &&
	          d->good;
	json_decref(value);
}

/* ---- looks ---- */

static struct look look_of(const struct program *p, const struct op *op)
{
	struct look l;
	memset(&l, 0, sizeof l); /* compared as bytes */
	const struct op_kind_info *kind = op_kind_info((enum op_kind)op->kind);
	l.class_ = (int)op_class_of(op);
	l.phase = op->phase;
	l.flop = op_flop(op);
	if (op->kind == OP_COLLECTIVE) {
		int64_t size = op_group_size(&p->mesh, op);
		snprintf(l.name, sizeof l.name, "%s %s", op->what, collective_name((enum collective)op->coll));
		if (op_is_message(op))
			snprintf(l.shape, sizeof l.shape, "%lld elements %s stage %lld",
				(long long)op->message.elements, op->coll == COLL_SEND ? "to" : "from",
				(long long)op->message.peer);
		else
			snprintf(l.shape, sizeof l.shape, "%lld elements over %lld ranks",
				(long long)op->collective.elements, (long long)size);
		l.bytes = op_wire_B(op, size);
		return l;
	}
	snprintf(l.name, sizeof l.name, "%s %s", op->what, kind->name);
	for (size_t d = 0, n = 0; d < kind->n_dims && n < sizeof l.shape; d++)
		n += (size_t)snprintf(l.shape + n, sizeof l.shape - n, "%s%lld", d ? " x " : "", (long long)op->d[d]);
	l.bytes = op_read_B(op) + op_write_B(op);
	return l;
}

/* Programs repeat their last layers: the newest are tried first. */
static size_t look_index(struct builder *d, const struct look *l)
{
	for (size_t i = d->looks.n; i-- > 0;)
		if (memcmp(&d->looks.at[i], l, sizeof *l) == 0)
			return i;
	d->good = vec_push(&d->looks, *l) && d->good;
	return d->good ? d->looks.n - 1 : 0;
}

static const entries *entries_of(struct builder *d, size_t role)
{
	entries *of = &d->of_role[role];
	const struct role *r = &d->program->roles[role];
	for (size_t i = of->n; i < r->ops.n && d->good; i++) {
		const struct op *op = &r->ops.at[i];
		struct look l = look_of(d->program, op);
		d->good = vec_push(of, ((struct entry){look_index(d, &l), op->layer, op->micro, op->bucket})) &&
		          d->good;
	}
	return of;
}

static void write_looks(struct builder *d)
{
	fputs("\"looks\":[", d->out);
	for (size_t i = 0; i < d->looks.n; i++) {
		const struct look *l = &d->looks.at[i];
		fputs(i ? "," : "", d->out);
		dump(d, json_pack("[s, i, s, i, f, f]", l->name, l->class_, l->shape, (int)l->phase, l->flop,
				l->bytes));
	}
	fputs("],", d->out);
}

static void write_entries(struct builder *d, const entries *of)
{
	fputs("\"ops\":[", d->out);
	for (size_t i = 0; i < of->n; i++)
		fprintf(d->out, "%s%zu,%d,%d,%d", i ? "," : "", of->at[i].look, of->at[i].layer, of->at[i].micro,
			of->at[i].bucket);
	fputc(']', d->out);
}

/* ---- spans ---- */

static long long ns_between(int64_t from_ps, int64_t to_ps)
{
	return (long long)((to_ps + 500) / 1000 - (from_ps + 500) / 1000);
}

static bool write_lane(const struct timeline *t, size_t first, size_t next, int lane, bool any_lane, FILE *out)
{
	int64_t last_ps = 0;
	bool any = false;
	for (size_t i = first; i < next; i++) {
		const struct span *s = &t->spans.at[i];
		if (s->lane != lane)
			continue;
		if (!any)
			fprintf(out, "%s{\"name\":\"%s\",\"spans\":[", any_lane ? "," : "", lane_name((enum lane)lane));
		fprintf(out, "%s%u,%lld,%lld,%lld", any ? "," : "", s->op, ns_between(last_ps, s->start_ps),
			ns_between(s->start_ps, s->move_ps), ns_between(s->move_ps, s->end_ps));
		last_ps = s->end_ps;
		any = true;
	}
	if (any)
		fputs("]}", out);
	return any;
}

/* Differences keep the page small, whole units of `unit` as well. */
static void write_usage(struct builder *d, const char *name, const usage_points *u, double unit)
{
	int64_t at_ps = 0;
	long long value = 0;
	fprintf(d->out, ",\"%s\":[", name);
	for (size_t i = 0; i < u->n; i++) {
		long long now = (long long)(u->at[i].value / unit + 0.5);
		fprintf(d->out, "%s%lld,%lld", i ? "," : "", ns_between(at_ps, u->at[i].at_ps), now - value);
		at_ps = u->at[i].at_ps;
		value = now;
	}
	fputc(']', d->out);
}

static enum status write_whole(struct builder *d, const struct timeline *t, size_t first, size_t next, struct error *e)
{
	usage_points memory = {0}, links = {0};
	bool any = false;
	write_entries(d,
		entries_of(d, (size_t)(timeline_role(t, d->program, t->spans.at[first].actor) - d->program->roles)));
	fputs(",\"lanes\":[", d->out);
	for (int lane = 0; lane < LANE_COUNT; lane++)
		any = write_lane(t, first, next, lane, any, d->out) || any;
	fputc(']', d->out);
	enum status st = usage_memory(d->program, t, first, next, &memory, e);
	if (!st)
		st = usage_links(d->program, t, first, next, &links, e);
	if (!st) {
		write_usage(d, "memory_KiB", &memory, 1024);
		write_usage(d, "links_MBps", &links, 1e6);
	}
	vec_free(&memory);
	vec_free(&links);
	return st;
}

/* ---- blocks ---- */

struct block {
	struct entry entry;
	int64_t start_ps, end_ps;
};

static void write_blocks_lane(struct builder *d, const struct timeline *t, size_t first, size_t next, int lane,
	entries *of, bool any_lane)
{
	const struct role *role = timeline_role(t, d->program, t->spans.at[first].actor);
	const int64_t gap_ps = t->step_ps / BLOCK_GAP;
	int64_t last_ps = 0, end_ps;
	fprintf(d->out, "%s{\"name\":\"%s\",\"spans\":[", any_lane ? "," : "", lane_name((enum lane)lane));
	for (size_t i = first, k = 0, behind; i < next && d->good; i = behind) {
		const struct span *s = &t->spans.at[i];
		behind = i + 1;
		if (s->lane != lane)
			continue;
		int16_t micro = role->ops.at[s->op].micro;
		long ops = 1;
		end_ps = s->end_ps;
		for (; behind < next; behind++) {
			const struct span *b = &t->spans.at[behind];
			if (b->lane != lane)
				continue;
			if (b->phase != s->phase || role->ops.at[b->op].micro != micro || b->start_ps - end_ps > gap_ps)
				break;
			end_ps = b->end_ps;
			ops++;
		}
		struct look l;
		memset(&l, 0, sizeof l);
		snprintf(l.name, sizeof l.name, "%s", phase_name((enum phase)s->phase));
		snprintf(l.shape, sizeof l.shape, "%ld ops", ops);
		l.class_ = lane == LANE_COMPUTE && s->phase != PHASE_OPTIMIZER ? CLASS_GEMM : s->class_;
		l.phase = s->phase;
		d->good = vec_push(of, ((struct entry){look_index(d, &l), -1, micro, -1})) && d->good;
		fprintf(d->out, "%s%zu,%lld,0,%lld", k++ ? "," : "", of->n - 1, ns_between(last_ps, s->start_ps),
			ns_between(s->start_ps, end_ps));
		last_ps = end_ps;
	}
	fputs("]}", d->out);
}

/* Writes the lanes of compute, and of gradients and weights, with one block for each pass of a micro-batch. */
static void write_blocks(struct builder *d, const struct timeline *t, size_t first, size_t next)
{
	entries of = {0};
	fputs("\"blocks\":true,\"lanes\":[", d->out);
	write_blocks_lane(d, t, first, next, LANE_COMPUTE, &of, false);
	write_blocks_lane(d, t, first, next, LANE_COMM, &of, true);
	fputs("],", d->out);
	write_entries(d, &of);
	vec_free(&of);
}

/* ---- sides ---- */

static void write_name(struct builder *d, bool measured, uint32_t actor)
{
	const struct program *p = d->program;
	if (measured)
		fprintf(d->out, "{\"name\":\"measured: rank %u\",", actor);
	else if (p->n_roles > 1)
		fprintf(d->out, "{\"name\":\"predicted: stage %u, %lld rank%s\",", actor,
			(long long)p->roles[actor].ranks, p->roles[actor].ranks == 1 ? "" : "s");
	else
		fprintf(d->out, "{\"name\":\"predicted: every rank\",");
}

static enum status write_side(struct builder *d, const struct timeline *t, bool measured, struct shown *shown,
	struct error *e)
{
	const uint32_t critical = timeline_critical_actor(t);
	enum status st = ST_OK;
	size_t left = SPANS_WHOLE;
	*shown = (struct shown){0};
	for (size_t i = 0; i < t->spans.n && left > 0; i++)
		left -= t->spans.at[i].actor == critical;
	fprintf(d->out, "{\"measured\":%s,\"step_ns\":%lld,\"actors\":[", measured ? "true" : "false",
		ns_between(0, t->step_ps));
	for (size_t first = 0, next; first < t->spans.n && !st && d->good; first = next) {
		const uint32_t actor = t->spans.at[first].actor;
		next = usage_next_actor(t, first);
		const bool room = next - first <= left, whole = actor == critical || room;
		if (shown->whole + shown->blocks >= ACTORS_MOST && actor != critical) {
			shown->left_out++;
			continue;
		}
		fputs(shown->whole + shown->blocks ? "," : "", d->out);
		write_name(d, measured, actor);
		if (whole)
			st = write_whole(d, t, first, next, e);
		else
			write_blocks(d, t, first, next);
		left -= room && actor != critical ? next - first : 0;
		*(whole ? &shown->whole : &shown->blocks) += 1;
		fputc('}', d->out);
	}
	fputs("]}", d->out);
	return st;
}

/* ---- the roofline ---- */

/* Each class's FLOP, bytes and times on the critical actor of the prediction. */
static void write_points(struct builder *d, const struct outcome *o)
{
	const struct timeline *t = o->predicted_timeline;
	const uint32_t critical = timeline_critical_actor(t);
	const struct role *role = timeline_role(t, o->program, critical);
	const struct result *measured = o->measured_timeline ? o->measured : NULL;
	double flop[CLASS_COUNT] = {0}, bytes[CLASS_COUNT] = {0};
	bool any = false;
	for (size_t i = 0; i < t->spans.n; i++) {
		const struct span *s = &t->spans.at[i];
		if (s->actor != critical)
			continue;
		flop[s->class_] += op_flop(&role->ops.at[s->op]);
		bytes[s->class_] += op_read_B(&role->ops.at[s->op]) + op_write_B(&role->ops.at[s->op]);
	}
	fputs("\"points\":[", d->out);
	for (int c = 0; c < CLASS_COUNT; c++) {
		if (!(o->predicted->time.class_s[c] > 0) || op_class_is_comm((uint8_t)c))
			continue;
		fputs(any ? "," : "", d->out);
		any = true;
		dump(d, json_pack("{s:s, s:f, s:f, s:f, s:o}", "class", op_class_name((enum op_class)c), "flop",
				flop[c], "bytes", bytes[c], "time_s", o->predicted->time.class_s[c], "measured_s",
				measured ? json_number(measured->time.class_s[c]) : json_null()));
	}
	fputs("],", d->out);
}

static void write_names(struct builder *d)
{
	fputs("\"classes\":[", d->out);
	for (int c = 0; c < CLASS_COUNT; c++)
		fprintf(d->out, "%s\"%s\"", c ? "," : "", op_class_name((enum op_class)c));
	fprintf(d->out, "],\"comm\":[");
	for (int c = 0; c < CLASS_COUNT; c++)
		fprintf(d->out, "%s%d", c ? "," : "", op_class_is_comm((enum op_class)c));
	fprintf(d->out, "],\"phases\":[");
	for (int c = 0; c < PHASE_COUNT; c++)
		fprintf(d->out, "%s\"%s\"", c ? "," : "", phase_name((enum phase)c));
	fputs("],", d->out);
}

enum status html_step_data(const struct outcome *o, FILE *out, struct shown *predicted, struct shown *measured,
	struct error *e)
{
	struct builder d = {.program = o->program,
		.out = out,
		.good = true,
		.of_role = calloc(o->program->n_roles, sizeof *d.of_role)};
	if (!d.of_role)
		return error_nomem(e, "the page");
	fputc('{', out);
	write_names(&d);
	fputs("\"roofs\":", out);
	if (o->roofs.matrix_flop_per_s > 0 && o->roofs.mem_Bps > 0)
		dump(&d, json_pack("{s:s, s:f, s:f}", "dtype", dtype_name(o->program->config.train.dtype), "matrix",
				 o->roofs.matrix_flop_per_s, "memory", o->roofs.mem_Bps));
	else
		fputs("null", out);
	fputc(',', out);
	write_points(&d, o);
	fputs("\"sides\":[", out);
	enum status st = write_side(&d, o->predicted_timeline, false, predicted, e);
	if (!st && o->measured_timeline) {
		fputc(',', out);
		st = write_side(&d, o->measured_timeline, true, measured, e);
	}
	fputs("],", out);
	write_looks(&d);
	fputs("\"prediction\":", out);
	dump(&d, report_side_json(o->predicted));
	fputs(",\"measurement\":", out);
	dump(&d, o->measured_timeline ? report_side_json(o->measured) : json_null());
	fputc('}', out);
	for (size_t r = 0; r < o->program->n_roles; r++)
		vec_free(&d.of_role[r]);
	free(d.of_role);
	vec_free(&d.looks);
	return st ? st : d.good ? ST_OK : error_nomem(e, "the page");
}
