/* A step's figures as CSV: the rows of the table under the keys of the JSON, with all digits. */
#include "base/array.h"
#include "base/paths.h"
#include "report/compare.h"
#include "report/figures.h"
#include "report/report.h"

struct row {
	const char *part, *key;
	const char *count, *bound; /* NULL: none */
	double predicted, measured;
};

#define DIGITS 15 /* all */

static void put(const struct row *r, FILE *out)
{
	fprintf(out, "%s,%s,%s", r->part, r->key, r->count ? r->count : "");
	report_csv_number(r->predicted, DIGITS, out);
	report_csv_number(r->measured, DIGITS, out);
	report_csv_number(figure_error(r->predicted, r->measured), DIGITS, out);
	fprintf(out, ",%s\n", r->bound ? r->bound : "");
}

static void put_rates(const struct result *p, const struct result *m, FILE *out)
{
	const struct row rows[] = {
		{"step", "step_time_s", NULL, NULL, p->time.step_s, m ? m->time.step_s : NAN},
		{"step", "interval90_low_s", NULL, NULL, p->interval90_s[0], NAN},
		{"step", "interval90_high_s", NULL, NULL, p->interval90_s[1], NAN},
		{"step", "tokens_per_s", NULL, NULL, p->tokens_per_s, m ? m->tokens_per_s : NAN},
		{"step", "tokens_per_s_per_gpu", NULL, NULL, p->tokens_per_s_per_gpu,
			m ? m->tokens_per_s_per_gpu : NAN},
		{"step", "tflops_per_gpu", NULL, NULL, p->tflops_per_gpu, m ? m->tflops_per_gpu : NAN},
		{"step", "mfu", NULL, NULL, p->mfu, m ? m->mfu : NAN},
		{"step", "hfu", NULL, NULL, p->hfu, m ? m->hfu : NAN},
	};
	for (size_t i = 0; i < COUNT(rows); i++)
		put(&rows[i], out);
}

static void put_times(const struct result *p, const struct result *m, FILE *out)
{
	for (size_t i = 0; i < FIGURE_PARTS; i++)
		put(&(struct row){"partition", figure_parts[i].key, NULL, NULL, figure_part_s(&p->time, i),
			    m ? figure_part_s(&m->time, i) : NAN},
			out);
	put(&(struct row){"communication", "comm_s", NULL, NULL, p->time.comm_s, m ? m->time.comm_s : NAN}, out);
	put(&(struct row){"communication", "overlap", NULL, NULL, p->time.overlap, m ? m->time.overlap : NAN}, out);
	put(&(struct row){"communication", "wait_s", NULL, NULL, p->time.wait_s, m ? m->time.wait_s : NAN}, out);
}

static void put_classes(const struct result *p, const struct result *m, FILE *out)
{
	for (int k = 0; k < CLASS_COUNT; k++) {
		char count[24];
		if (!figure_has_class(p, m, (enum op_class)k))
			continue;
		snprintf(count, sizeof count, "%lld", (long long)p->time.class_n[k]);
		put(&(struct row){"class", op_class_name((enum op_class)k), count, bound_name(p->class_bound[k]),
			    p->time.class_s[k], m ? m->time.class_s[k] : NAN},
			out);
	}
}

static void put_memory(const struct result *p, const struct result *m, FILE *out)
{
	for (size_t i = 0; i < FIGURE_MEMORIES; i++)
		put(&(struct row){"memory", figure_memories[i].key, NULL, NULL, (double)figure_memory_B(&p->memory, i),
			    m ? (double)figure_memory_B(&m->memory, i) : NAN},
			out);
	put(&(struct row){"memory", "total_bytes", NULL, NULL, (double)p->memory.total_B,
		    m ? (double)m->memory.total_B : NAN},
		out);
	put(&(struct row){"memory", "capacity_bytes", NULL, NULL,
		    p->memory.capacity_B ? (double)p->memory.capacity_B : NAN, NAN},
		out);
}

static void put_target(const struct compare *c, FILE *out)
{
	const struct money *m = &c->rows.at[0].money;
	const struct {
		const char *key;
		double value;
	} rows[] = {{"tokens", c->tokens}, {"steps", compare_steps(c)}, {"time_s", m->time_s},
		{"expected_interruptions", m->interruptions}, {"energy_kwh", m->energy_kWh}, {"co2_kg", m->co2_kg},
		{"rented_usd", m->rented_usd}, {"owned_usd", m->owned_usd}};
	for (size_t i = 0; i < COUNT(rows); i++)
		put(&(struct row){"cost", rows[i].key, NULL, NULL, rows[i].value, NAN}, out);
}

static void write_csv(const void *of, FILE *out)
{
	const struct outcome *o = of;
	const struct result *p = o->predicted, *m = o->measured && !o->measured->doubles ? o->measured : NULL;
	fputs("part,key,count,predicted,measured,error,bound\n", out);
	put_rates(p, m, out);
	put_times(p, m, out);
	put_classes(p, m, out);
	put_memory(p, m, out);
	if (o->target)
		put_target(o->target, out);
}

enum status report_csv(const struct outcome *o, const char *path, struct error *e)
{
	return file_write_of(path, write_csv, o, "the CSV", e);
}
