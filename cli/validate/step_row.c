/* A row of a table of steps: its machine, its prediction. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/stats.h"
#include "cli/validate/validate.h"
#include "report/verdict.h"
#include "sim/engine/fold.h"
#include "sim/engine/interval.h"
#include "topology/catalogue/network.h"

/* ---- machines ---- */

struct known_machine {
	char line[256];
	int64_t nodes, per_host;
	struct machine machine;
};
struct machines {
	VEC(struct known_machine *) known;
};

struct machines *machines_create(void) { return calloc(1, sizeof(struct machines)); }

void machines_destroy(struct machines *m)
{
	if (!m)
		return;
	for (size_t i = 0; i < m->known.n; i++) {
		machine_free(&m->known.at[i]->machine);
		free(m->known.at[i]);
	}
	vec_free(&m->known);
	free(m);
}

enum status machines_find(struct machines *m, const char *line, int64_t nodes, int64_t per_host,
	const struct machine **out, struct error *e)
{
	for (size_t i = 0; i < m->known.n; i++) {
		if (m->known.at[i]->nodes == nodes && m->known.at[i]->per_host == per_host &&
			strcmp(m->known.at[i]->line, line) == 0) {
			*out = &m->known.at[i]->machine;
			return ST_OK;
		}
	}
	struct known_machine *k = calloc(1, sizeof *k);
	if (!k || !vec_reserve(&m->known, 1)) {
		free(k);
		return error_nomem(e, "machines");
	}
	snprintf(k->line, sizeof k->line, "%s", line);
	k->nodes = nodes;
	k->per_host = per_host;
	enum status st = machine_load(line, nodes, per_host, &k->machine, e);
	if (st) {
		free(k);
		return st;
	}
	m->known.at[m->known.n++] = k;
	*out = &k->machine;
	return ST_OK;
}

/* ---- cells ---- */

/* The published figure as seconds a step: the time itself, or tokens over a rate. */
static double measured_s(const struct csv *t, size_t row)
{
	double tokens = cell_number(t, row, "global_batch_seqs") * cell_number(t, row, "seq_len"),
	       rate = cell_number(t, row, "tokens_per_s");
	if (cell_number(t, row, "step_time_s") > 0)
		return cell_number(t, row, "step_time_s");
	if (rate <= 0)
		rate = cell_number(t, row, "tokens_per_s_per_gpu") * cell_number(t, row, "n_gpus");
	return rate > 0 ? tokens / rate : 0;
}

/* ---- the prediction ---- */

#define SETS_MAX 12
#define SETS_TEXT 256

/* Reads the column `set` as --set does: "key=value" between blanks, over what the other columns say. `text` has room
 * for the cell, and the texts lie in it. */
static enum status sets_of(const char *cell, char text[SETS_TEXT], const char *sets[SETS_MAX], size_t *n,
	struct error *e)
{
	char *rest = NULL;
	*n = 0;
	if (strlen(cell) >= SETS_TEXT)
		return error_set(e, ST_INPUT, "set: longer than %d characters", SETS_TEXT - 1);
	strcpy(text, cell);
	for (char *p = strtok_r(text, " ", &rest); p; p = strtok_r(NULL, " ", &rest)) {
		if (*n == SETS_MAX)
			return error_set(e, ST_INPUT, "set: more than %d keys", SETS_MAX);
		sets[(*n)++] = p;
	}
	return ST_OK;
}

/* Sets the chunks of a stage where the row leaves them open, and its framework's recipes interleave. */
static void interleave(const struct csv *t, size_t row, const struct framework *f, struct config *c)
{
	struct parallel *p = &c->parallel;
	if (p->pipeline == 1 || *csv_get(t, row, "vp") || !f->interleaves || p->schedule != SCHED_1F1B)
		return;
	p->schedule = SCHED_INTERLEAVED;
	p->virtual_stages = c->model.layers % (5 * p->pipeline) == 0 ? 5 : 2;
}

static enum status predict_as(const struct csv *t, size_t row, const struct framework *f, bool tight_memory,
	struct machines *machines, struct config *c, struct result *result, enum network_known *network,
	struct error *e)
{
	const struct machine *m = NULL;
	struct row_system s;
	char *text = NULL, set_text[SETS_TEXT];
	const char *sets[SETS_MAX];
	size_t n_sets;
	enum status st = row_config_write(t, row, f, tight_memory, &text, e);
	if (!st && !(st = sets_of(csv_get(t, row, "set"), set_text, sets, &n_sets, e)) &&
		!(st = config_parse(text, strlen(text), csv_get(t, row, "id"), sets, n_sets, c, e)) &&
		!(st = system_words(t, row, &s, e)) && !(st = machines_find(machines, s.line, s.nodes, 0, &m, e))) {
		c->node_ranks = s.per_host;
		interleave(t, row, f, c);
		if (f->borrows)
			c->stack.interval = 0;
		if (f->loss_B > 0)
			c->stack.memory.loss_B = f->loss_B;
		if (f->loss_tensor_B > 0)
			c->stack.memory.loss_tensor_B = f->loss_tensor_B;
		c->stack.chunks_loss = c->stack.chunks_loss || f->chunks_loss;
		if (f->logit_B > 0) {
			c->stack.logit_B = f->logit_B;
			operators_set_logit_casts(&c->stack.operators, f->logit_casts);
		}
		*network = s.network;
		if (!(st = config_resolve(c, s.nodes * s.per_host, e)))
			st = fold_predict(c, m, result, e);
	}
	free(text);
	return st;
}

/* Widens the interval by what a network of which nothing is known does to the exposed communication. */
static enum status widen_network(struct result *r, struct error *e)
{
	struct network_spec unknown;
	const enum status st = network_load(network_by_default(false, 0), &unknown, e);
	if (!st && r->time.step_s > 0)
		interval_widen(r, NORMAL_90 * unknown.sigma_large * fmin(r->time.exposed_comm_s / r->time.step_s, 1));
	return st;
}

static enum status widen_inferred(struct result *r, struct error *e)
{
	const struct parameters *k;
	const enum status st = parameters_load(&k, e);
	if (!st)
		interval_widen(r, k->interval.inferred);
	return st;
}

/* Returns whether something of the row's configuration was inferred: its source does not print it. Rows for fits
 * ("tight") are complete enough. */
static bool was_inferred(const struct csv *t, size_t row)
{
	const char *quality = csv_get(t, row, "quality");
	return *quality && *quality != 'A' && strcmp(csv_get(t, row, "use"), "tight") != 0;
}

static enum status predict_row(const struct csv *t, size_t row, const struct framework *f, struct machines *machines,
	struct judged *out, struct error *e)
{
	struct config *c = calloc(1, sizeof *c);
	struct result *result = calloc(1, sizeof *result);
	enum status st = c && result ? predict_as(t, row, f, false, machines, c, result, &out->network, e)
	                             : error_nomem(e, "a row");
	if (!st && !result->memory.fits && row_recomputes_by_fit(t, row, f))
		st = predict_as(t, row, f, true, machines, c, result, &out->network, e);
	if (!st && out->network == NETWORK_ASSUMED)
		st = widen_network(result, e);
	if (!st && was_inferred(t, row))
		st = widen_inferred(result, e);
	if (!st) {
		out->predicted_s = result->time.step_s;
		memcpy(out->interval90_s, result->interval90_s, sizeof out->interval90_s);
		memcpy(out->interval_part, result->interval_part, sizeof out->interval_part);
		out->predicted_memory_B = (double)(f->reports_allocated || strcmp(csv_get(t, row, "mem_counts"),
										   "allocated") == 0
							   ? result->memory.first_B
							   : result->memory.total_B);
		out->fits = result->memory.fits;
		out->tight = verdict_fit(&result->memory) == FIT_TIGHT;
	}
	free(result);
	free(c);
	return st;
}

enum status step_row_judge(const struct csv *t, size_t row, const struct frameworks *known, struct machines *m,
	struct judged *out, struct error *e)
{
	struct error why = {ST_OK, ""};
	const char *word = csv_get(t, row, "framework");
	struct framework inside;
	const struct framework *f = framework_of(known, word);
	if (!f && framework_inside(known, word, &inside))
		f = &inside;
	*out = (struct judged){.id = csv_get(t, row, "id"),
		.source = csv_get(t, row, "source"),
		.use = csv_get(t, row, "use"),
		.line = t->line[row],
		.measured_s = measured_s(t, row),
		.measured_memory_B = (f && f->reports_allocated ? 0x1p30 : 1e9) * cell_number(t, row, "mem_gb")};
	if (!cells_check_numbers(t, row, &why) && !(out->measured_s > 0))
		error_set(&why, ST_INPUT, "no step time and no rate is printed");
	if (!why.status && !f)
		error_set(&why, ST_INPUT, "framework: '%.60s' is not known%s", word, framework_hint(known, word).text);
	if (!why.status)
		predict_row(t, row, f, m, out, &why);
	snprintf(out->reason, sizeof out->reason, "%.255s", why.text);
	return why.status == ST_RUN ? error_set(e, ST_RUN, "%s", why.text) : ST_OK;
}

double judged_error(const struct judged *j) { return (j->predicted_s - j->measured_s) / j->measured_s; }

bool judged_covered(const struct judged *j)
{
	return j->measured_s >= j->interval90_s[0] && j->measured_s <= j->interval90_s[1];
}
