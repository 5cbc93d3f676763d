#include "report/verdict.h"

#include <math.h>

#include "base/quantity.h"
#include "report/figures.h"

static char *bytes(char buf[QUANTITY_MAX], uint64_t n) { return quantity_format(buf, (double)n, UNIT_BYTE); }

enum fit verdict_fit(const struct result_memory *m)
{
	return !m->fits ? FIT_NOT : m->total_B > m->usual_B ? FIT_TIGHT : FIT_WELL;
}

bool verdict_may_fit(const struct result_memory *m)
{
	return verdict_fit(m) == FIT_NOT && m->low_B > 0 && m->low_B <= m->capacity_B;
}

void verdict_error(const struct result_memory *m, FILE *out)
{
	if (verdict_may_fit(m))
		fprintf(out,
			". It may fit all the same: one in ten published peaks is over %.0f %% lower than predicted",
			100 * (1 - (double)m->low_B / (double)m->total_B));
}

void verdict_missing(const struct result_memory *m, FILE *out)
{
	char needs[QUANTITY_MAX], has[QUANTITY_MAX], lacks[QUANTITY_MAX], part[QUANTITY_MAX];
	size_t largest = 0;
	for (size_t i = 1; i < FIGURE_MEMORIES; i++)
		if (figure_memory_B(m, i) > figure_memory_B(m, largest))
			largest = i;
	fprintf(out, "a rank needs %s, the device has %s (%s short; largest: %s %s)", bytes(needs, m->total_B),
		bytes(has, m->capacity_B), bytes(lacks, m->total_B - m->capacity_B), figure_memories[largest].label,
		bytes(part, figure_memory_B(m, largest)));
}

void verdict_tight(const struct result_memory *m, FILE *out)
{
	const double percent = 100 / (double)m->capacity_B;
	fprintf(out, "it fills %.1f %% of the memory; a search for plans stays within %.0f %% where it can",
		percent * (double)m->total_B, percent * (double)m->usual_B);
}

static void print_step(const struct result *p, const struct result *m, const char *begin, FILE *out)
{
	char step[QUANTITY_MAX], took[QUANTITY_MAX], range[QUANTITY_RANGE];
	quantity_format(step, p->time.step_s, UNIT_SECOND);
	if (!m) {
		fprintf(out, "%s step takes %s (90 %% interval: %s)", begin, step,
			quantity_format_range(range, p->interval90_s[0], p->interval90_s[1], UNIT_SECOND));
		return;
	}
	const double error = figure_error(p->time.step_s, m->time.step_s);
	fprintf(out, "%s step took %s; predicted: %s, %.1f %% too %s", begin,
		quantity_format(took, m->time.step_s, UNIT_SECOND), step, 100 * fabs(error),
		error < 0 ? "short" : "long");
}

static void print_communication(const struct breakdown *t, FILE *out)
{
	if (!(t->comm_s > 0))
		return;
	const double exposed = 100 * t->exposed_comm_s / t->step_s;
	if (isnan(t->overlap))
		fprintf(out, "; communication takes %.1f %% of it", exposed);
	else
		fprintf(out, "; %.0f %% of communication hides behind compute, the rest takes %.1f %% of the step",
			100 * t->overlap, exposed);
}

void verdict_step(const struct result *p, const struct result *m, FILE *out)
{
	const struct result_memory *memory = &p->memory;
	const enum fit fit = verdict_fit(memory);
	char left[QUANTITY_MAX];
	if (fit == FIT_NOT) {
		fputs("DOES NOT FIT: ", out);
		verdict_missing(memory, out);
		verdict_error(memory, out);
		fputs(m ? ". " : ". With more memory: a", out);
	}
	print_step(p, m, fit != FIT_NOT || m ? "A" : "", out);
	print_communication(m ? &m->time : &p->time, out);
	if (fit != FIT_NOT && memory->capacity_B > 0)
		fprintf(out, "; it fits, %s are free", bytes(left, memory->capacity_B - memory->total_B));
	if (fit == FIT_TIGHT) {
		fputs(", but tightly: ", out);
		verdict_tight(memory, out);
	}
	putc('.', out);
}

const struct sweep_row *verdict_sweep_best(const struct sweep *s)
{
	const struct sweep_row *best = NULL;
	for (size_t i = 0; i < s->rows.n; i++) {
		const struct sweep_row *r = &s->rows.at[i];
		const enum fit fit = r->predicted ? verdict_fit(&r->predicted->memory) : FIT_NOT,
			       most = best ? verdict_fit(&best->predicted->memory) : FIT_NOT;
		if (fit > most ||
			(fit == most && fit != FIT_NOT && r->predicted->tokens_per_s > best->predicted->tokens_per_s))
			best = r;
	}
	return best;
}

static void print_values(const struct sweep *s, const struct sweep_row *r, FILE *out)
{
	for (size_t a = 0; a < s->axes; a++)
		fprintf(out, "%s%s = %s", a ? ", " : "", s->axis[a].key, s->axis[a].value[r->at[a]]);
}

static uint64_t missing_B(const struct sweep_row *r)
{
	return r->predicted->memory.total_B - r->predicted->memory.capacity_B;
}

/* Names the combination that lacks least. */
static void print_nothing_fits(const struct sweep *s, FILE *out)
{
	const struct sweep_row *least = NULL;
	for (size_t i = 0; i < s->rows.n; i++) {
		const struct sweep_row *r = &s->rows.at[i];
		if (r->predicted && (!least || missing_B(r) < missing_B(least)))
			least = r;
	}
	fputs("None of this fits. With ", out);
	print_values(s, least, out);
	fputs(" ", out);
	verdict_missing(&least->predicted->memory, out);
	verdict_error(&least->predicted->memory, out);
}

/* Names the fastest combination where it is another than `best`: it fits, but leaves less free. */
static void print_faster(const struct sweep *s, const struct sweep_row *best, FILE *out)
{
	const struct sweep_row *fastest = best;
	char tokens[QUANTITY_MAX];
	for (size_t i = 0; i < s->rows.n; i++) {
		const struct sweep_row *r = &s->rows.at[i];
		if (r->predicted && verdict_fit(&r->predicted->memory) != FIT_NOT &&
			r->predicted->tokens_per_s > fastest->predicted->tokens_per_s)
			fastest = r;
	}
	if (fastest == best)
		return;
	const struct result_memory *m = &fastest->predicted->memory;
	fputs(". With ", out);
	print_values(s, fastest, out);
	fprintf(out, " it would be %s tokens/s, but %.1f %% of the memory are full",
		quantity_format(tokens, fastest->predicted->tokens_per_s, UNIT_NONE),
		100 * (double)m->total_B / (double)m->capacity_B);
}

void verdict_sweep(const struct sweep *s, FILE *out)
{
	const struct sweep_row *best = verdict_sweep_best(s);
	char step[QUANTITY_MAX], tokens[QUANTITY_MAX];
	if (!best) {
		print_nothing_fits(s, out);
		return;
	}
	const struct result *p = best->predicted;
	const bool tight = verdict_fit(&p->memory) == FIT_TIGHT;
	if (tight)
		fprintf(out, "None of this leaves %.0f %% of the memory free, as a search for plans does. ",
			100 * (1 - (double)p->memory.usual_B / (double)p->memory.capacity_B));
	fprintf(out, "%sost tokens/s with ", tight ? "Of what fits, m" : "M");
	print_values(s, best, out);
	fprintf(out, ": %s tokens/s, %s a step on %lld rank%s", quantity_format(tokens, p->tokens_per_s, UNIT_NONE),
		quantity_format(step, p->time.step_s, UNIT_SECOND), (long long)best->ranks,
		best->ranks == 1 ? "" : "s");
	print_faster(s, best, out);
}
