/* `stepsim sweep CONFIG.yaml --vary KEY=V1,V2,...`: the cross product, or with --zip the lists in step, each row
 * predicted as if --set had given it. */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/wrap.h"
#include "cli/command.h"
#include "cli/job.h"
#include "cli/starter.h"
#include "report/sweep.h"

/* Cuts "KEY=V1,V2,V3" in place, in a copy. Brackets keep their commas: parallel.layers_per_stage=[4,4],[5,3]. */
static enum status read_axis(const char *text, char *copy, struct sweep_axis *out, struct error *e)
{
	strcpy(copy, text);
	char *values = strchr(copy, '=');
	if (!values || values == copy || !values[1])
		return error_set(e, ST_INPUT, "--vary %s: expected KEY=VALUE,VALUE,...", text);
	*values++ = '\0';
	int depth = 0;
	out->value[out->n++] = values;
	for (char *p = values; *p; p++) {
		depth += *p == '[' || *p == '{' ? 1 : *p == ']' || *p == '}' ? -1 : 0;
		if (*p == ',' && depth == 0) {
			*p = '\0';
			out->value[out->n++] = p + 1;
		}
	}
	for (size_t i = 0; i < out->n; i++) {
		struct error inner = {0};
		if (!*out->value[i])
			return error_set(e, ST_INPUT, "--vary %s: value %zu is empty", text, i + 1);
		out->key = copy;
		if (config_key_typed(&out->key, &out->value[i], &inner))
			return error_set(e, ST_INPUT, "--vary %s: %s", text, inner.text);
	}
	return ST_OK;
}

/* The texts and value lists that the axes borrow. */
struct axes_memory {
	char *copy[SWEEP_AXES];
	const char **value[SWEEP_AXES];
};

static enum status read_axes(const struct options *o, struct sweep *s, struct axes_memory *m, struct error *e)
{
	double rows = 1;
	if (o->varied.n == 0)
		return error_set(e, ST_INPUT, "--vary KEY=VALUE,VALUE,... is missing: what is to be swept?");
	if (o->varied.n > SWEEP_AXES)
		return error_set(e, ST_INPUT, "--vary %s: at most %d keys are varied at once", o->varied.at[SWEEP_AXES],
			SWEEP_AXES);
	for (size_t a = 0; a < o->varied.n; a++) {
		const char *text = o->varied.at[a];
		if (!(m->copy[a] = malloc(strlen(text) + 1)) ||
			!(m->value[a] = calloc(strlen(text) + 1, sizeof *m->value[a])))
			return error_nomem(e, "the sweep");
		s->axis[a].value = m->value[a];
		enum status st = read_axis(text, m->copy[a], &s->axis[a], e);
		if (st)
			return st;
		for (size_t b = 0; b < a; b++)
			if (strcmp(s->axis[a].key, s->axis[b].key) == 0)
				return error_set(e, ST_INPUT, "--vary %s is given twice", s->axis[a].key);
		s->axes++;
		if (o->zip && s->axis[a].n != s->axis[0].n)
			return error_set(e, ST_INPUT,
				"--zip: %s has %zu value%s, and %s %zu: lists of one length go together",
				s->axis[0].key, s->axis[0].n, s->axis[0].n == 1 ? "" : "s", s->axis[a].key,
				s->axis[a].n);
		rows = o->zip ? (double)s->axis[a].n : rows * (double)s->axis[a].n;
	}
	return rows <= SWEEP_ROWS_MOST ? ST_OK
	                               : error_set(e, ST_INPUT, "--vary: %.0f combinations; at most %d are predicted",
						 rows, SWEEP_ROWS_MOST);
}

/* Blames --vary for a wrong value that it gave. */
static char *reason_of(const struct sweep *s, const char *text)
{
	char *reason = NULL;
	const char *given = strncmp(text, "--set ", 6) == 0 ? text + 6 : "";
	for (size_t a = 0; a < s->axes; a++) {
		size_t n = strlen(s->axis[a].key);
		if (strncmp(given, s->axis[a].key, n) == 0 && given[n] == '=')
			return asprintf(&reason, "--vary %s", given) < 0 ? NULL : reason;
	}
	return strdup(text);
}

/* Appends the combination's values, as --set texts, to the user's own. */
static enum status predict_row(struct context *x, const struct sweep *s, struct sweep_row *r, struct error *e)
{
	struct options o = *x->options;
	const char **sets = calloc(o.sets.n + s->axes, sizeof *sets);
	char *text[SWEEP_AXES] = {0};
	struct error why = {0};
	struct job job;
	enum status st = sets && (r->predicted = malloc(sizeof *r->predicted)) ? ST_OK : error_nomem(e, "the sweep");
	for (size_t i = 0; i < o.sets.n && !st; i++)
		sets[i] = o.sets.at[i];
	for (size_t a = 0; a < s->axes && !st; a++)
		if (asprintf(&text[a], "%s=%s", s->axis[a].key, s->axis[a].value[r->at[a]]) < 0) {
			text[a] = NULL;
			st = error_nomem(e, "the sweep");
		} else {
			sets[o.sets.n + a] = text[a];
		}
	o.sets.at = sets;
	o.sets.n += s->axes;
	struct context alone = {.options = &o};
	if (!st && job_predict(&alone, &job, r->predicted, &why)) {
		free(r->predicted);
		r->predicted = NULL;
		st = why.status == ST_INPUT ? ST_OK : error_set(e, why.status, "%s", why.text);
		starter_blame(x->options, &why);
		if (!(r->reason = reason_of(s, why.text)))
			st = error_nomem(e, "the sweep");
	} else if (!st) {
		r->ranks = job.config.ranks;
	}
	context_close(&alone);
	for (size_t a = 0; a < s->axes; a++)
		free(text[a]);
	free(sets);
	return st;
}

static enum status predict_all(struct context *x, struct sweep *s, struct error *e)
{
	size_t n = 1, done = 0;
	enum status st = ST_OK;
	for (size_t a = 0; a < s->axes; a++)
		n = s->zip ? s->axis[a].n : n * s->axis[a].n;
	if (!vec_reserve(&s->rows, n))
		return error_nomem(e, "the sweep");
	progress_begin("predicting");
	for (; done < n && !st; done++) {
		struct sweep_row r = {0};
		size_t rest = done;
		for (size_t a = s->axes; a-- > 0; rest /= s->axis[a].n)
			r.at[a] = s->zip ? done : rest % s->axis[a].n;
		st = predict_row(x, s, &r, e);
		s->rows.at[s->rows.n++] = r;
		progress_update((double)(done + 1) / (double)n, NULL);
	}
	progress_end();
	return st;
}

/* A sweep of which nothing could be predicted says why, as a command that predicts one config does. */
static enum status check_any(const struct sweep *s, struct error *e)
{
	for (size_t i = 0; i < s->rows.n; i++)
		if (s->rows.at[i].predicted)
			return ST_OK;
	return error_set(e, ST_INPUT, "%s", s->rows.at[0].reason);
}

static bool fits_any(const struct sweep *s)
{
	for (size_t i = 0; i < s->rows.n; i++)
		if (s->rows.at[i].predicted && s->rows.at[i].predicted->memory.fits)
			return true;
	return false;
}

static enum status write_all(const struct options *o, const struct sweep *s, struct error *e)
{
	struct wrap w;
	enum status st = ST_OK;
	if (!options_take_stdout(o) && !(st = wrap_open(&w, stdout, e)))
		st = wrap_close(&w, report_sweep_text(s, w.out, e), e);
	if (!st && o->csv)
		st = report_sweep_csv(s, o->csv, e);
	if (!st && o->json)
		st = report_sweep_json(s, o->json, e);
	if (!st && o->plot)
		st = report_sweep_svg(s, o->plot, e);
	if (!st && o->html)
		st = report_sweep_html(s, o->html, e);
	if (!st && o->require_fit && !fits_any(s))
		st = error_set(e, ST_LIMIT, "--require-fit: none of this fits in memory");
	return st;
}

enum status cmd_sweep(struct context *x, struct error *e)
{
	struct sweep s = {.config = x->options->config.name, .zip = x->options->zip};
	struct axes_memory m = {0};
	enum status st = read_axes(x->options, &s, &m, e);
	if (!st)
		st = predict_all(x, &s, e);
	if (!st)
		st = check_any(&s, e);
	if (!st)
		st = write_all(x->options, &s, e);
	for (size_t i = 0; i < s.rows.n; i++) {
		free(s.rows.at[i].predicted);
		free(s.rows.at[i].reason);
	}
	vec_free(&s.rows);
	for (size_t a = 0; a < SWEEP_AXES; a++) {
		free(m.copy[a]);
		free(m.value[a]);
	}
	return st;
}
