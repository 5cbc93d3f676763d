#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "base/quantity.h"
#include "base/table.h"
#include "report/compare_parts.h"
#include "report/figures.h"
#include "report/report.h"
#include "report/stages.h"
#include "report/text.h"
#include "report/verdict.h"

#define CELL 32
#define MARGIN "  "
#define NOISE \
	0.001 /* what is below this share of both steps (or memories) says nothing to a reader: its error is not \
	         printed (the JSON has it) */

/* The table under construction. With a measurement its columns are predicted | measured | error, without one predicted
 * | share of the step. The first failure is kept in `st`, so that rows can be added without asking each time. */
struct sheet {
	struct table *table;
	const struct result *predicted, *measured;
	const char *samples; /* what rates count (model_samples) */
	enum status st;
	struct error *e;
};

static void add(struct sheet *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void add(struct sheet *s, const char *fmt, ...)
{
	char line[512];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(line, sizeof line, fmt, ap);
	va_end(ap);
	if (!s->st)
		s->st = table_row(s->table, s->e, "%s", line);
}

/* A heading inside the table: a rule, then the word alone. */
static void section(struct sheet *s, const char *heading)
{
	add(s, "-");
	if (heading)
		add(s, "%s", heading);
}

static char *error_text(char buf[CELL], double error)
{
	if (isnan(error))
		snprintf(buf, CELL, "-");
	else if (fabs(error) >= 10)
		snprintf(buf, CELL, "> 1000 %%");
	else
		snprintf(buf, CELL, "%+.1f %%", 100 * error);
	return buf;
}

static char *share_text(char buf[CELL], double share)
{
	if (isnan(share))
		buf[0] = '\0';
	else
		snprintf(buf, CELL, "%.1f %%", 100 * share);
	return buf;
}

/* One row: the texts of both sides, the error between them, the share of the step (shown when there is no measurement;
 * NAN: none), and a word behind. */
static void row(struct sheet *s, const char *label, const char *predicted, const char *measured, double error,
	double share, const char *behind)
{
	char third[CELL];
	if (s->measured)
		add(s, "%s|%s|%s|%s|%s", label, predicted, measured, error_text(third, error), behind);
	else
		add(s, "%s|%s|%s|%s", label, predicted, share_text(third, share), behind);
}

static void quantity_row(struct sheet *s, const char *label, double predicted, double measured, enum unit unit,
	const char *behind)
{
	char p[QUANTITY_MAX], m[QUANTITY_MAX];
	row(s, label, quantity_format(p, predicted, unit), quantity_format(m, measured, unit),
		figure_error(predicted, measured), NAN, behind);
}

static void time_row(struct sheet *s, const char *label, double predicted_s, double measured_s, const char *behind)
{
	char p[QUANTITY_MAX], m[QUANTITY_MAX];
	double step_s = s->predicted->time.step_s;
	bool noise = s->measured && predicted_s < NOISE * step_s && measured_s < NOISE * s->measured->time.step_s;
	row(s, label, quantity_format(p, predicted_s, UNIT_SECOND), quantity_format(m, measured_s, UNIT_SECOND),
		noise ? NAN : figure_error(predicted_s, measured_s), predicted_s / step_s, behind);
}

static char *percent_text(char buf[CELL], double share)
{
	if (isnan(share))
		snprintf(buf, CELL, "-");
	else
		snprintf(buf, CELL, "%.1f %%", 100 * share);
	return buf;
}

static void percent_row(struct sheet *s, const char *label, double predicted, double measured, const char *behind)
{
	char p[CELL], m[CELL];
	row(s, label, percent_text(p, predicted), percent_text(m, measured), figure_error(predicted, measured), NAN,
		behind);
}

static void rate_rows(struct sheet *s)
{
	const struct result *p = s->predicted, *m = s->measured;
	char a[QUANTITY_MAX], b[2 * QUANTITY_MAX], label[CELL];
	quantity_row(s, "step time", p->time.step_s, m ? m->time.step_s : NAN, UNIT_SECOND, "");
	const double rate = s->samples ? p->samples_per_s : p->tokens_per_s, measured = !m           ? NAN
	                                                                                : s->samples ? m->samples_per_s
	                                                                                             : m->tokens_per_s;
	snprintf(label, sizeof label, "%ss/s", s->samples ? s->samples : "token");
	row(s, label, quantity_format(a, rate, UNIT_NONE), quantity_format(b, measured, UNIT_NONE),
		figure_error(rate, measured), NAN, "");
	quantity_row(s, "model FLOP/s a device", p->tflops_per_gpu * 1e12, m ? m->tflops_per_gpu * 1e12 : NAN,
		UNIT_FLOP_PER_S, "");
	percent_row(s, "MFU", p->mfu, m ? m->mfu : NAN, "");
	if (p->hfu != p->mfu)
		percent_row(s, "HFU", p->hfu, m ? m->hfu : NAN, "");
	if (p->goodput > 0) {
		snprintf(b, sizeof b, "a checkpoint every %s",
			quantity_format(a, p->checkpoint_interval_s, UNIT_SECOND));
		percent_row(s, "goodput", p->goodput, NAN, b);
	}
}

/* The partition of the step. Kinds of time that neither side has are left out; the rest adds up to the step. */
static void partition_rows(struct sheet *s)
{
	section(s, "where the step goes");
	for (size_t i = 0; i < FIGURE_PARTS; i++) {
		double p = figure_part_s(&s->predicted->time, i),
		       m = s->measured ? figure_part_s(&s->measured->time, i) : NAN;
		char label[CELL];
		if (p == 0 && !(m > 0))
			continue;
		snprintf(label, sizeof label, MARGIN "%s", figure_parts[i].label);
		time_row(s, label, p, m, "");
	}
}

static void communication_rows(struct sheet *s)
{
	const struct breakdown *p = &s->predicted->time, *m = s->measured ? &s->measured->time : NULL;
	if (p->comm_s == 0 && !(m && m->comm_s > 0))
		return;
	section(s, "communication");
	time_row(s, MARGIN "moving bytes", p->comm_s, m ? m->comm_s : NAN, "");
	time_row(s, MARGIN "waiting for late ranks", p->wait_s, m ? m->wait_s : NAN, "");
	bool meaningless = isnan(p->overlap) || (m && isnan(m->overlap));
	percent_row(s, MARGIN "overlap", p->overlap, m ? m->overlap : NAN,
		meaningless ? "means nothing on a single core" : "");
}

static void class_rows(struct sheet *s)
{
	section(s, "ops, summed (count)");
	for (int k = 0; k < CLASS_COUNT; k++) {
		const struct breakdown *p = &s->predicted->time;
		char label[2 * CELL];
		if (!figure_has_class(s->predicted, s->measured, (enum op_class)k))
			continue;
		snprintf(label, sizeof label, MARGIN "%s (%lld)", op_class_name((enum op_class)k),
			(long long)p->class_n[k]);
		time_row(s, label, p->class_s[k], s->measured ? s->measured->time.class_s[k] : NAN,
			bound_name(s->predicted->class_bound[k]));
	}
}

static void memory_rows(struct sheet *s)
{
	const struct result_memory *p = &s->predicted->memory, *m = s->measured ? &s->measured->memory : NULL;
	section(s, "memory of a rank");
	for (size_t i = 0; i < FIGURE_MEMORIES; i++) {
		uint64_t predicted = figure_memory_B(p, i), measured = m ? figure_memory_B(m, i) : 0;
		char label[CELL];
		if (predicted == 0 && measured == 0)
			continue;
		snprintf(label, sizeof label, MARGIN "%s", figure_memories[i].label);
		bool noise = m && (double)predicted < NOISE * (double)p->total_B &&
		             (double)measured < NOISE * (double)m->total_B;
		char a[QUANTITY_MAX], b[QUANTITY_MAX];
		row(s, label, quantity_format(a, (double)predicted, UNIT_BYTE),
			quantity_format(b, m ? (double)measured : NAN, UNIT_BYTE),
			noise ? NAN : figure_error((double)predicted, (double)measured), NAN, "");
	}
	char capacity[QUANTITY_MAX], behind[2 * QUANTITY_MAX];
	snprintf(behind, sizeof behind, "%s %s%s", p->fits ? "fits in" : "DOES NOT FIT in",
		quantity_format(capacity, (double)p->capacity_B, UNIT_BYTE), verdict_may_fit(p) ? " (may err)" : "");
	quantity_row(s, MARGIN "total", (double)p->total_B, m ? (double)m->total_B : NAN, UNIT_BYTE,
		p->capacity_B ? behind : "");
}

/* Adds one row for each stage of the predicted step; the columns show which stage paces the others. */
static enum status stages_table(const struct outcome *o, struct table *t, struct error *e)
{
	enum status st = ST_OK;
	for (uint32_t i = 0; i < o->program->n_roles && !st; i++) {
		struct stage_figures f;
		char compute[QUANTITY_MAX], comm[QUANTITY_MAX], bubble[QUANTITY_MAX], optimizer[QUANTITY_MAX],
			other[QUANTITY_MAX], memory[QUANTITY_MAX];
		if ((st = stage_figures(o, i, &f, e)))
			break;
		st = table_row(t, e, "%u|%lld|%s|%s|%s|%s|%s|%s", i, (long long)f.layers,
			quantity_format(compute, f.time.compute_s, UNIT_SECOND),
			quantity_format(comm, f.time.exposed_comm_s, UNIT_SECOND),
			quantity_format(bubble, f.time.bubble_s, UNIT_SECOND),
			quantity_format(optimizer, f.time.optimizer_s, UNIT_SECOND),
			quantity_format(other, f.time.copy_s + f.time.host_s + f.time.idle_s, UNIT_SECOND),
			quantity_format(memory, (double)f.memory_B, UNIT_BYTE));
	}
	return st;
}

enum status text_stages(const struct outcome *o, struct table **out, struct error *e)
{
	*out = NULL;
	if (o->program->n_roles == 1)
		return ST_OK;
	*out = table_create("<stage|layers|compute|exposed comm.|bubble|optimizer|other, idle|memory");
	return *out ? stages_table(o, *out, e) : error_nomem(e, "the table of stages");
}

/* " (tp 2, dp 4)": the sizes above 1, innermost first; under hsdp also its two parts of data and context, with experts
 * the ranks that hold the same ones. */
static void mesh_text(const struct mesh *m, char *buf, size_t size)
{
	buf[0] = '\0';
	for (int i = 0; i < DIM_ALL; i++) {
		enum mesh_dim d = i < DIM_COUNT ? m->order[i] : (enum mesh_dim)i;
		if (d == DIM_DP_CP)
			continue;
		size_t at = strlen(buf);
		if (m->size[d] > 1)
			snprintf(buf + at, size - at, "%s%s %lld", at ? ", " : " (", mesh_dim_name(d),
				(long long)m->size[d]);
	}
	if (buf[0])
		strncat(buf, ")", size - strlen(buf) - 1);
}

static const char *plural(int64_t n) { return n == 1 ? "" : "s"; }

static const char *text_of(const json_t *o, const char *key)
{
	const char *text = json_string_value(json_object_get(o, key));
	return text ? text : "";
}

static void print_system(const struct outcome *o, FILE *out)
{
	const char *name = text_of(o->system, "name"), *device = text_of(json_object_get(o->system, "device"), "name"),
		   *source = text_of(o->system, "source");
	if (!*name)
		return;
	const json_int_t others = json_object_get(o->system, "session")
	                                  ? json_integer_value(json_object_get(o->system, "nodes")) - 1
	                                  : 0; /* a run's machine has the name of its first host */
	fprintf(out, "on: %s", name);
	if (others > 0)
		fprintf(out, " and %" JSON_INTEGER_FORMAT " other host%s", others, plural(others));
	if (*device)
		fprintf(out, ", %lld x %s", (long long)o->program->config.ranks, device);
	if (*source)
		fprintf(out, " (%s)", source);
	fputc('\n', out);
}

void text_header(const struct outcome *o, FILE *out)
{
	const struct config *c = &o->program->config;
	char mesh[128], parameters[QUANTITY_MAX], working[QUANTITY_MAX], active[2 * QUANTITY_MAX + 32] = "";
	if (c->model.experts > 0)
		snprintf(active, sizeof active, ", %s active",
			quantity_format(working, (double)model_active_parameters(&c->model), UNIT_NONE));
	if (c->model.lora_rank > 0 || c->model.freeze != FREEZE_NONE) {
		const size_t n = strlen(active);
		snprintf(active + n, sizeof active - n, ", %s trained",
			quantity_format(working, (double)model_trained_parameters(&c->model), UNIT_NONE));
	}
	mesh_text(&o->program->mesh, mesh, sizeof mesh);
	fprintf(out, "%s (%s parameters%s), %s on %lld rank%s%s, %s\n", c->model.name,
		quantity_format(parameters, (double)model_parameters(&c->model), UNIT_NONE), active,
		strategy_name(c->parallel.strategy), (long long)c->ranks, plural(c->ranks), mesh,
		dtype_name(c->train.dtype));
	const char *samples = model_samples(&c->model);
	char tokens[48] = "";
	if (c->model.seq_len > 1)
		snprintf(tokens, sizeof tokens, " of %lld tokens", (long long)c->model.seq_len);
	if (c->model.encoder_layers > 0)
		snprintf(tokens, sizeof tokens, " of %lld and %lld tokens", (long long)c->model.encoder_seq_len,
			(long long)c->model.seq_len);
	fprintf(out, "a step: %lld %s%s%s, %lld micro-batch%s of %lld a replica\n", (long long)c->train.global_batch,
		samples ? samples : "sequence", plural(c->train.global_batch), tokens, (long long)c->micro_batches,
		c->micro_batches == 1 ? "" : "es", (long long)c->train.micro_batch);
	print_system(o, out);
}

static void print_interval(const struct result *p, const struct result *m, FILE *out)
{
	char range[QUANTITY_RANGE];
	fprintf(out, "90 %% interval of the prediction: %s",
		quantity_format_range(range, p->interval90_s[0], p->interval90_s[1], UNIT_SECOND));
	if (m) {
		bool inside = m->time.step_s >= p->interval90_s[0] && m->time.step_s <= p->interval90_s[1];
		fprintf(out, "; the measurement lies %s", inside ? "inside" : "OUTSIDE");
	}
	fputc('\n', out);
}

/* What the interval's width comes from: only a prediction from published figures knows. */
static void print_interval_parts(const struct result *p, FILE *out)
{
	const char *before = "  its width comes from ";
	for (int i = 0; i < INTERVAL_COUNT; i++) {
		if (p->interval_part[i] >= 0.005) {
			fprintf(out, "%s%s %.0f %%", before, interval_cause_name[i], 100 * p->interval_part[i]);
			before = ", ";
		}
	}
	if (*before == ',')
		fputs(" (root of the sum of squares)\n", out);
}

static const char *const verdicts[] = {"not verified", "a wrong sum was found", "every collective's sum verified"};

static void print_measured(const struct result *m, FILE *out)
{
	char range[QUANTITY_RANGE];
	fprintf(out, "Measured: median of %lld step%s, %s; %s\n", (long long)m->steps, plural(m->steps),
		quantity_format_range(range, m->step_min_s, m->step_max_s, UNIT_SECOND),
		verdicts[m->verified < 0 ? 0 : 1 + m->verified]);
}

static bool is_among(const char *text, const struct result *r)
{
	for (size_t i = 0; i < r->n_warnings; i++)
		if (strcmp(text, r->warning[i]) == 0)
			return true;
	return false;
}

void text_findings(const struct outcome *o, FILE *out)
{
	const struct result *p = o->predicted, *m = o->measured;
	if (m && m->doubles)
		fprintf(out, "Executed on doubles of the CUDA libraries: %s; nothing of it was measured\n",
			verdicts[m->verified < 0 ? 0 : 1 + m->verified]);
	else if (m)
		print_measured(m, out);
	print_interval(p, m && !m->doubles ? m : NULL, out);
	print_interval_parts(p, out);
	if (p->bottleneck[0])
		fprintf(out, "Bottleneck%s: %s\n", m || verdict_fit(&p->memory) != FIT_NOT ? "" : " with more memory",
			p->bottleneck);
}

void text_warnings(const struct outcome *o, FILE *out)
{
	const struct result *p = o->predicted, *m = o->measured;
	for (size_t i = 0; i < p->n_warnings; i++)
		fprintf(out, "warning: %s\n", p->warning[i]);
	for (size_t i = 0; m && i < m->n_warnings; i++)
		if (!is_among(m->warning[i], p))
			fprintf(out, "warning: %s\n", m->warning[i]);
	if (o->mode)
		fprintf(out, "Not executed: %s\n", o->mode);
}

enum status text_figures(const struct outcome *o, struct table **out, struct error *e)
{
	struct sheet s = {.predicted = o->predicted,
		.measured = o->measured && !o->measured->doubles ? o->measured : NULL,
		.samples = model_samples(&o->program->config.model),
		.e = e};
	*out = s.table = table_create(
		s.measured ? "<|predicted|measured|error|<bound by" : "<|predicted|of the step|<bound by");
	if (!s.table)
		return error_nomem(e, "the table");
	rate_rows(&s);
	partition_rows(&s);
	communication_rows(&s);
	class_rows(&s);
	memory_rows(&s);
	return s.st;
}

enum status report_text(const struct outcome *o, FILE *out, struct error *e)
{
	struct table *figures = NULL, *stages = NULL;
	enum status st = text_figures(o, &figures, e);
	if (!st)
		st = text_stages(o, &stages, e);
	if (!st) {
		verdict_step(o->predicted, o->measured && !o->measured->doubles ? o->measured : NULL, out);
		fputc('\n', out);
		text_header(o, out);
		fputc('\n', out);
		table_print(figures, out);
		if (stages) {
			fprintf(out, "\n%s\n", TEXT_STAGES);
			table_print(stages, out);
		}
		st = o->advice ? report_advice(o, out, e) : ST_OK;
	}
	if (!st) {
		fputc('\n', out);
		text_findings(o, out);
		text_warnings(o, out);
	}
	if (!st && o->target)
		st = compare_target_text(o->target, out, e);
	table_destroy(figures);
	table_destroy(stages);
	return st;
}
