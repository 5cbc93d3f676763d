/* `stepsim predict A.yaml B.yaml`: two configs beside each other, which keys differ, and what each changes alone. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/log.h"
#include "base/quantity.h"
#include "base/table.h"
#include "base/wrap.h"
#include "cli/command.h"
#include "cli/job.h"
#include "cli/source.h"
#include "report/verdict.h"

#define KEYS_TRIED 24 /* keys whose effect alone is predicted: of two quite different configs it says nothing */

struct side {
	struct options options; /* those of the command, with this config alone */
	struct config config;
	struct result predicted;
};

/* Predicts what the options say. */
static enum status predict_side(const struct options *o, struct config *config, struct result *out, struct error *e)
{
	struct context alone = {.options = o}; /* a launcher's other ranks take no part */
	struct job *job = malloc(sizeof *job);
	enum status st = job ? job_predict(&alone, job, out, e) : error_nomem(e, "the prediction");
	if (!st)
		*config = job->config;
	context_close(&alone);
	free(job);
	return st;
}

/* ---- the figures ---- */

static char *change(char buf[16], double from, double to)
{
	if (from > 0)
		snprintf(buf, 16, "%+.1f %%", 100 * (to / from - 1));
	else
		snprintf(buf, 16, "%s", to > 0 ? "new" : "-");
	return buf;
}

static enum status print_figures(const struct side *s, struct error *e)
{
	const struct result *a = &s[0].predicted, *b = &s[1].predicted;
	const struct {
		const char *name;
		double a, b;
		enum unit unit;
	} rows[] = {
		{"step time", a->time.step_s, b->time.step_s, UNIT_SECOND},
		{"  compute", a->time.compute_s, b->time.compute_s, UNIT_SECOND},
		{"  exposed communication", a->time.exposed_comm_s, b->time.exposed_comm_s, UNIT_SECOND},
		{"  bubble", a->time.bubble_s, b->time.bubble_s, UNIT_SECOND},
		{"  optimizer", a->time.optimizer_s, b->time.optimizer_s, UNIT_SECOND},
		{"tokens/s", a->tokens_per_s, b->tokens_per_s, UNIT_NONE},
		{"MFU, %", 100 * a->mfu, 100 * b->mfu, UNIT_NONE},
		{"memory of a rank", (double)a->memory.total_B, (double)b->memory.total_B, UNIT_BYTE},
	};
	struct table *t = table_create("<|A|B|B over A");
	enum status st = t ? ST_OK : error_nomem(e, "the table");
	char from[QUANTITY_MAX], to[QUANTITY_MAX], by[16];
	for (size_t i = 0; i < COUNT(rows) && !st; i++)
		if (rows[i].a > 0 || rows[i].b > 0)
			st = table_row(t, e, "%s|%s|%s|%s", rows[i].name,
				quantity_format(from, rows[i].a, rows[i].unit),
				quantity_format(to, rows[i].b, rows[i].unit), change(by, rows[i].a, rows[i].b));
	if (!st)
		st = table_row(t, e, "fits in memory|%s|%s|", a->memory.fits ? "yes" : "no",
			b->memory.fits ? "yes" : "no");
	if (!st)
		table_print(t, stdout);
	table_destroy(t);
	return st;
}

/* ---- the keys ---- */

/* Returns a value as a config or --set has it; the caller frees it. NULL: out of memory. */
static char *value_text(const json_t *v)
{
	return json_is_string(v) ? strdup(json_string_value(v)) : json_dumps(v, JSON_ENCODE_ANY | JSON_COMPACT);
}

/* Predicts A with one key as B has it, and adds the row: what that key changes alone. */
static enum status add_key(struct table *t, const struct side *s, const char *path, const json_t *a, const json_t *b,
	bool tried, struct error *e)
{
	struct options o = s[0].options;
	struct config *config = malloc(sizeof *config);
	struct result *r = malloc(sizeof *r);
	char *from = value_text(a), *to = value_text(b), *set = NULL, alone[16] = "-";
	const char **sets = calloc(o.sets.n + 1, sizeof *sets);
	struct error refused = {0};
	enum status st = config && r && from && to && sets && asprintf(&set, "%s=%s", path, to) >= 0
	                         ? ST_OK
	                         : error_nomem(e, "the table");
	if (!st && tried) {
		for (size_t i = 0; i < o.sets.n; i++)
			sets[i] = o.sets.at[i];
		sets[o.sets.n] = set;
		o.sets.at = sets;
		o.sets.n++;
		const enum status one = predict_side(&o, config, r, &refused);
		if (!one)
			change(alone, s[0].predicted.time.step_s, r->time.step_s);
		else if (one != ST_INPUT)
			st = error_set(e, one, "%s", refused.text);
	}
	if (!st)
		st = table_row(t, e, "%s|%s|%s|%s", path, from, to, alone);
	free(config);
	free(r);
	free(from);
	free(to);
	free(set);
	free(sets);
	return st;
}

/* Calls add_key for each key that differs; without a table it counts them. */
static enum status each_key(struct table *t, const struct side *s, json_t *const whole[2], size_t *n, struct error *e)
{
	const char *section, *key;
	json_t *keys, *a;
	enum status st = ST_OK;
	const bool tried = t && *n <= KEYS_TRIED;
	*n = 0;
	json_object_foreach(whole[0], section, keys)
	{
		if (!json_is_object(keys))
			continue;
		json_object_foreach(keys, key, a)
		{
			const json_t *b = json_object_get(json_object_get(whole[1], section), key);
			char path[128];
			if (st || !b || json_equal(a, b))
				continue;
			++*n;
			snprintf(path, sizeof path, "%s.%s", section, key);
			if (t)
				st = add_key(t, s, path, a, b, tried, e);
		}
	}
	return st;
}

static enum status print_keys(const struct side *s, struct error *e)
{
	json_t *whole[2] = {config_json(&s[0].config), config_json(&s[1].config)};
	struct table *t = table_create("<key that differs|<A|<B|step, this key alone");
	size_t n = 0;
	enum status st = whole[0] && whole[1] && t ? ST_OK : error_nomem(e, "the table");
	progress_begin("predicting keys");
	if (!st && !(st = each_key(NULL, s, whole, &n, e)))
		st = each_key(t, s, whole, &n, e);
	progress_end();
	if (!st && n)
		table_print(t, stdout);
	else if (!st)
		printf("No key differs.\n");
	if (!st && n)
		printf("Each line is A with that key of B; - where that is no legal plan. Effects do not add up.\n");
	json_decref(whole[0]);
	json_decref(whole[1]);
	table_destroy(t);
	return st;
}

/* ---- both ---- */

static bool both_fit(const struct side *s) { return s[0].predicted.memory.fits && s[1].predicted.memory.fits; }

static void print_verdict(const struct side *s, FILE *out)
{
	const double ratio = s[0].predicted.time.step_s / s[1].predicted.time.step_s;
	for (int i = 0; i < 2; i++) {
		const struct result_memory *m = &s[i].predicted.memory;
		const enum fit fit = verdict_fit(m);
		if (fit == FIT_WELL)
			continue;
		fprintf(out, fit == FIT_NOT ? "DOES NOT FIT: %c: " : "%c fits tightly: ", 'A' + i);
		(fit == FIT_NOT ? verdict_missing : verdict_tight)(m, out);
		verdict_error(m, out);
		fputs(".\n", out);
	}
	if (both_fit(s))
		fprintf(out, "B is %.2f times %s A.\n", ratio >= 1 ? ratio : 1 / ratio,
			ratio >= 1 ? "as fast as" : "slower than");
	fprintf(out, "  A: %s\n  B: %s\n\n", s[0].config.path, s[1].config.path);
}

enum status predict_two(const struct options *o, struct error *e)
{
	struct side *s = calloc(2, sizeof *s);
	struct wrap w;
	enum status st = s ? ST_OK : error_nomem(e, "two predictions");
	for (int i = 0; i < 2 && !st; i++) {
		s[i].options = *o;
		s[i].options.config = (struct config_source){0};
		st = source_read(&s[i].options, o->positional[i], e);
		if (!st)
			st = predict_side(&s[i].options, &s[i].config, &s[i].predicted, e);
	}
	if (!st && !(st = wrap_open(&w, stdout, e))) {
		print_verdict(s, w.out);
		st = wrap_close(&w, ST_OK, e);
	}
	if (!st)
		st = print_figures(s, e);
	if (!st) {
		printf("\n");
		st = print_keys(s, e);
	}
	if (!st && o->require_fit && !both_fit(s))
		st = error_set(e, ST_LIMIT, "--require-fit: not both fit in memory");
	for (int i = 0; s && i < 2; i++)
		source_free(&s[i].options);
	free(s);
	return st;
}
