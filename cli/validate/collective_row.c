/* A row of a table of collectives: what it ran on, its prediction, and the summary of the errors. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/phrase.h"
#include "base/stats.h"
#include "base/suggest.h"
#include "base/table.h"
#include "cli/validate/validate.h"
#include "sim/price/collective.h"
#include "sim/price/nccl.h"
#include "sim/price/rates.h"
#include "topology/catalogue/network.h"

bool is_table_of_collectives(const struct csv *t)
{
	static const char *const needed[] = {"collective", "gpu", "n_gpus", "n_nodes", "intra", "inter", "nccl_version",
		"bytes", "dtype", "time_us_outofplace"};
	for (size_t i = 0; i < COUNT(needed); i++)
		if (csv_column(t, needed[i]) == CSV_NO_COLUMN)
			return false;
	return true;
}

#define KIB64 65536.0
#define MIB1 1048576.0
#define MIB16 16777216.0

/* ---- one row ---- */

/* busbw over algbw. */
static double bus_factor(enum collective coll, double n)
{
	const bool shares = coll == COLL_ALL_GATHER || coll == COLL_REDUCE_SCATTER || coll == COLL_ALLTOALL;
	return coll == COLL_ALL_REDUCE ? 2 * (n - 1) / n : shares ? (n - 1) / n : 1;
}

/* The time, or what the printed bandwidth says: of the algorithm (bytes / time), or of the bus by nccl-tests'
 * convention. */
static double measured_s(const struct csv *t, size_t row, enum collective coll, double bytes)
{
	double us = strtod(csv_get(t, row, "time_us_outofplace"), NULL), algbw = strtod(csv_get(t, row, "algbw"), NULL),
	       busbw = strtod(csv_get(t, row, "busbw"), NULL), n = strtod(csv_get(t, row, "n_gpus"), NULL);
	if (us > 0)
		return 1e-6 * us;
	if (algbw > 0)
		return bytes / (1e9 * algbw);
	return busbw > 0 ? bytes * bus_factor(coll, n) / (1e9 * busbw) : 0;
}

static void name_machine(const char *id, char out[64])
{
	snprintf(out, 64, "%s", id);
	size_t len = strlen(out), digits = len;
	while (digits > 0 && strchr("0123456789", out[digits - 1]))
		digits--;
	if (digits < len && digits > 1 && out[digits - 1] == '-')
		out[digits - 1] = '\0';
}

/* Finds the word that a column has among `n` known ones. ST_INPUT names these, and *out is n. */
static enum status word_of(const char *column, const char *word, const char *const *known, size_t n, size_t *out,
	struct error *e)
{
	*out = 0;
	while (*out < n && !phrase_match(known[*out], word, true)) /* AllReduce, "All Reduce" */
		++*out;
	return *out < n ? ST_OK
	                : error_set(e, ST_INPUT, "%s: '%.40s' is not known%s", column, word,
				  suggest_known(word, known, n).text);
}

/* Finds the collective of that name; where there is none *out is COLL_OF_GROUPS. */
static enum status collective_of(const char *word, enum collective *out, struct error *e)
{
	const char *known[COLL_OF_GROUPS];
	size_t at;
	for (int i = 0; i < COLL_OF_GROUPS; i++)
		known[i] = collective_name((enum collective)i);
	enum status st = word_of("collective", word, known, COUNT(known), &at, e);
	*out = (enum collective)at;
	return st;
}

/* What the row forces; a blank forces nothing. */
static enum status forced_of(const struct csv *t, size_t row, struct collective_choice *out, struct error *e)
{
	const char *algorithm = csv_get(t, row, "algorithm"), *protocol = csv_get(t, row, "protocol"),
		   *algorithms[ALGO_COUNT], *protocols[PROTO_COUNT];
	size_t a = ALGO_AUTO, p = PROTO_AUTO;
	for (int i = 0; i < ALGO_COUNT; i++)
		algorithms[i] = algorithm_traits[i].name;
	for (int i = 0; i < PROTO_COUNT; i++)
		protocols[i] = protocol_traits[i].name;
	enum status st = *algorithm ? word_of("algorithm", algorithm, algorithms, ALGO_COUNT, &a, e) : ST_OK;
	if (!st && *protocol)
		st = word_of("protocol", protocol, protocols, PROTO_COUNT, &p, e);
	if (!st)
		*out = (struct collective_choice){(enum algorithm)a, (enum protocol)p};
	return st;
}

static void put_time(struct judged_collective *out, double time_s, double spread)
{
	out->predicted_s = time_s;
	out->interval90_s[0] = time_s / spread;
	out->interval90_s[1] = time_s * spread;
}

/* GPUs that do not run NCCL: as a step's collectives are priced on them. */
static enum status predict_by_links(const struct rates *r, enum collective coll, const struct collective_run *run,
	struct judged_collective *out, struct error *e)
{
	const struct collective_price p = collective_price(r, coll, run->ranks, 1, COLLECTIVE_ANY, out->bytes, e);
	const double launched_s = run->one_process ? (double)run->per_host * r->parameters->nccl.one_process_s : 0;
	if (!isfinite(p.time_s))
		return error_set(e, ST_INPUT, "%s: no rate of the links between %lld ranks is known", r->machine->name,
			(long long)run->ranks);
	put_time(out, fmax(p.time_s, launched_s), exp(NORMAL_90 * p.rel_sigma));
	out->algorithm = p.algorithm;
	return ST_OK;
}

static enum status predict_collective(const struct csv *t, size_t row, enum collective coll, struct machines *machines,
	struct judged_collective *out, struct error *e)
{
	struct collective_run run;
	struct collective_choice forced;
	const struct machine *m = NULL;
	struct nccl_group g;
	enum status st;
	if (!(out->bytes > 0))
		return error_set(e, ST_INPUT, "no bytes are moved");
	if (!(out->measured_s > 0))
		return error_set(e, ST_INPUT, "no time is printed");
	if ((st = forced_of(t, row, &forced, e)) || (st = collective_words(t, row, &run, e)) ||
		(st = machines_find(machines, run.line, run.hosts, run.per_host, &m, e)))
		return st;
	if (m->nodes > 1)
		snprintf(out->fabric, sizeof out->fabric, "%s", m->network.id);
	const struct rates rates = rates_of(m);
	if (rates.compute_capability <= 0)
		return predict_by_links(&rates, coll, &run, out, e);
	if ((st = nccl_group_of(&rates, run.ranks, 1, &g, e)))
		return st;
	g.one_process = run.one_process;
	g.version = run.version;
	struct nccl_result r = nccl_time(&g, coll, collective_nccl_choice(forced), out->bytes);
	struct network_spec unknown = {0};
	out->network = run.network;
	if (run.network == NETWORK_ASSUMED && (st = network_load(network_by_default(false, 0), &unknown, e)))
		return st;
	double spread = exp(
		NORMAL_90 * hypot(r.rel_sigma, out->bytes > MIB16 ? unknown.sigma_large : unknown.sigma_small));
	put_time(out, r.time_s, spread);
	bool pairs = coll == COLL_ALLTOALL || coll == COLL_SENDRECV;
	out->algorithm = pairs ? "pairs" : nccl_algo_name(r.algo);
	out->protocol = nccl_proto_name(r.proto);
	out->channels = r.channels;
	return ST_OK;
}

enum status collective_row_judge(const struct csv *t, size_t row, struct machines *m, struct judged_collective *out,
	struct error *e)
{
	struct error why = {ST_OK, ""};
	enum collective coll;
	*out = (struct judged_collective){.id = csv_get(t, row, "id"),
		.collective = csv_get(t, row, "collective"),
		.use = csv_get(t, row, "use"),
		.line = t->line[row],
		.ranks = atoll(csv_get(t, row, "n_gpus")),
		.bytes = strtod(csv_get(t, row, "bytes"), NULL)};
	name_machine(out->id, out->machine);
	const bool known = collective_of(out->collective, &coll, &why) == ST_OK;
	if (known)
		out->collective = collective_name(coll);
	out->measured_s = measured_s(t, row, coll, out->bytes);
	out->busbw_Bps = out->measured_s > 0 ? out->bytes * bus_factor(coll, (double)out->ranks) / out->measured_s
	                                     : NAN;
	if (known)
		predict_collective(t, row, coll, m, out, &why);
	snprintf(out->reason, sizeof out->reason, "%.255s", why.text);
	return why.status == ST_RUN ? error_set(e, ST_RUN, "%s", why.text) : ST_OK;
}

/* ---- best repeats ---- */

static int compare(const void *a, const void *b)
{
	const struct judged_collective *x = *(struct judged_collective *const *)a,
				       *y = *(struct judged_collective *const *)b;
	int by = strcmp(x->machine, y->machine);
	by = by ? by : strcmp(x->collective, y->collective);
	by = by ? by : (x->ranks > y->ranks) - (x->ranks < y->ranks);
	by = by ? by : (x->bytes > y->bytes) - (x->bytes < y->bytes);
	by = by ? by : (x->measured_s > y->measured_s) - (x->measured_s < y->measured_s);
	return by ? by : (x->line > y->line) - (x->line < y->line);
}

static bool alike(const struct judged_collective *x, const struct judged_collective *y)
{
	return x->ranks == y->ranks && x->bytes == y->bytes && strcmp(x->machine, y->machine) == 0 &&
	       strcmp(x->collective, y->collective) == 0;
}

void collectives_mark_best(judged_collectives *rows)
{
	struct judged_collective **good = calloc(rows->n + 1, sizeof(struct judged_collective *));
	size_t n = 0;
	if (!good)
		return;
	for (size_t i = 0; i < rows->n; i++)
		if (!rows->at[i].reason[0] && !*rows->at[i].use)
			good[n++] = &rows->at[i];
	qsort(good, n, sizeof *good, compare);
	for (size_t i = 0; i < n; i++)
		good[i]->best = i == 0 || !alike(good[i - 1], good[i]);
	free(good);
}

/* ---- the summary ---- */

static const struct range {
	const char *name;
	double low, high; /* (low, high] */
} ranges[] = {{"<= 64 KiB", 0, KIB64}, {"to 16 MiB", KIB64, MIB16}, {"> 16 MiB", MIB16, INFINITY}},
  totals[] = {{"all", 0, INFINITY}, {"< 1 MiB", 0, MIB1 - 1}, {">= 1 MiB", MIB1 - 1, INFINITY}};

struct table_view {
	const char *machine, *collective; /* NULL: all */
	const struct range *range;
	bool special;
};

static double error_of(const struct judged_collective *j) { return 100 * (j->predicted_s / j->measured_s - 1); }

/* |error| in per cent of the rows in view. */
static size_t take(const judged_collectives *rows, const struct table_view *v, bool best, double *room,
	double *signed_mean, double *covered)
{
	size_t n = 0;
	*signed_mean = *covered = 0;
	for (size_t i = 0; i < rows->n; i++) {
		const struct judged_collective *j = &rows->at[i];
		if (j->reason[0] || (best && !j->best) || (*j->use != '\0') != v->special ||
			!(j->bytes > v->range->low && j->bytes <= v->range->high) ||
			(v->machine && strcmp(j->machine, v->machine) != 0) ||
			(v->collective && strcmp(j->collective, v->collective) != 0))
			continue;
		room[n++] = fabs(error_of(j));
		*signed_mean += error_of(j);
		*covered += 100 * (j->measured_s >= j->interval90_s[0] && j->measured_s <= j->interval90_s[1]);
	}
	if (n > 0) {
		*signed_mean /= (double)n;
		*covered /= (double)n;
	}
	return n;
}

static enum status view_line(struct table *t, const judged_collectives *rows, const struct table_view *v, double *room,
	struct error *e)
{
	double mean, covered, unused;
	size_t n = take(rows, v, false, room, &mean, &covered);
	if (n == 0)
		return ST_OK;
	double median = stats_median(room, n), p90 = stats_percentile(room, n, 90);
	size_t best = take(rows, v, true, room, &unused, &unused);
	char of_best[64] = "||";
	if (best > 0)
		snprintf(of_best, sizeof of_best, "%zu|%.1f|%.1f", best, stats_median(room, best),
			stats_percentile(room, best, 90));
	return table_row(t, e, "%s|%s|%s|%zu|%.1f|%.1f|%+.1f|%.0f|%s",
		v->special   ? "special rows"
		: v->machine ? v->machine
			     : "all rows",
		v->collective ? v->collective : "all", v->range->name, n, median, p90, mean, covered, of_best);
}

static enum status lines(struct table *t, const judged_collectives *rows, double *room, struct error *e)
{
	enum status st = ST_OK;
	for (size_t i = 0; i < rows->n && !st; i++) {
		const struct judged_collective *j = &rows->at[i];
		bool first = true;
		for (size_t k = 0; k < i && first; k++)
			first = strcmp(rows->at[k].machine, j->machine) != 0 ||
			        strcmp(rows->at[k].collective, j->collective) != 0;
		for (size_t r = 0; first && r < COUNT(ranges) && !st; r++)
			st = view_line(t, rows, &(struct table_view){j->machine, j->collective, &ranges[r], false},
				room, e);
	}
	if (!st)
		st = table_row(t, e, "-");
	for (size_t r = 0; r < COUNT(totals) && !st; r++)
		st = view_line(t, rows, &(struct table_view){NULL, NULL, &totals[r], false}, room, e);
	return st ? st : view_line(t, rows, &(struct table_view){NULL, NULL, &totals[0], true}, room, e);
}

/* Rows that are not predicted, and those that are left out of the totals, by what is said of them. */
static enum status reasons(const judged_collectives *rows, FILE *out, struct error *e)
{
	struct table *t = table_create("rows|<apart, because|<first");
	enum status st = t ? ST_OK : error_nomem(e, "the list of reasons");
	size_t total = 0;
	for (size_t i = 0; i < rows->n && !st; i++) {
		const struct judged_collective *j = &rows->at[i];
		const char *why = j->reason[0] ? j->reason : j->use;
		size_t same = 0;
		bool first = true;
		for (size_t k = 0; k < rows->n && *why; k++) {
			const struct judged_collective *other = &rows->at[k];
			bool alike_why = strcmp(other->reason[0] ? other->reason : other->use, why) == 0;
			first = first && !(alike_why && k < i);
			same += alike_why;
		}
		if (*why && first) {
			total++;
			st = table_row(t, e, "%zu|%s%s|%s", same, j->reason[0] ? "not predicted: " : "", why, j->id);
		}
	}
	if (!st && total > 0) {
		fputc('\n', out);
		table_print(t, out);
	}
	table_destroy(t);
	return st;
}

enum status collectives_print(const judged_collectives *rows, FILE *out, struct error *e)
{
	struct table *t = table_create("<errors in %|<collective|<bytes|rows|median|p90|signed|inside|best|median|p90");
	double *room = malloc((rows->n + 1) * sizeof *room);
	enum status st = t && room ? lines(t, rows, room, e) : error_nomem(e, "the summary");
	const char *first = NULL;
	size_t n = 0;
	for (size_t i = 0; i < rows->n; i++)
		if (!rows->at[i].reason[0] && rows->at[i].network == NETWORK_ASSUMED)
			first = n++ ? first : rows->at[i].id;
	if (!st) {
		table_print(t, out);
		if (!(st = assumed_print(n, first, out, e)))
			st = reasons(rows, out, e);
	}
	free(room);
	table_destroy(t);
	return st;
}
