#include "cli/fabric.h"

#include <math.h>
#include <string.h>

#include "base/array.h"
#include "base/log.h"
#include "base/paths.h"
#include "base/stats.h"
#include "report/import/nccl_log.h"
#include "report/json_build.h"
#include "sim/price/collective.h"

#define LARGE_B 16777216.0 /* where struct network_spec parts its uncertainties */
#define FACTOR_MAX 50.0    /* a factor beyond this is another machine */
#define HOLD 0.01          /* per row and squared log of a factor: what no row sees stays 1 */
#define FIRST_STEP 0.5     /* of the search, in log */
#define LAST_STEP 0.002
#define SIGMA_MIN 0.02         /* repeats of nccl-tests differ by so much */
#define SIGMA_OF_MEDIAN 1.4826 /* of a normal distribution: standard deviation over median absolute deviation */

/* One row of a log, and the machine of as many hosts and GPUs. */
struct seen {
	enum collective coll;
	int64_t ranks, hosts;
	double bytes, time_s;
	size_t machine;
};

struct fabric {
	const struct config *config;
	VEC(struct machine) machines;
	VEC(struct seen) rows;
	struct error *e; /* why a row could not be priced */
};

static void fabric_free(struct fabric *f)
{
	for (size_t i = 0; i < f->machines.n; i++)
		machine_free(&f->machines.at[i]);
	vec_free(&f->machines);
	vec_free(&f->rows);
}

/* ---- the logs ---- */

static enum status find_machine(struct fabric *f, int64_t hosts, int64_t per_host, size_t *out, struct error *e)
{
	struct machine m;
	for (*out = 0; *out < f->machines.n; ++*out)
		if (f->machines.at[*out].nodes == hosts && f->machines.at[*out].devices_per_node == per_host)
			return ST_OK;
	enum status st = machine_load(f->config->cluster.system, hosts, per_host, &m, e);
	if (!st && !vec_push(&f->machines, m)) {
		machine_free(&m);
		st = error_nomem(e, "the fabric");
	}
	return st;
}

static enum status add_log(struct fabric *f, const struct nccl_log *l, struct error *e)
{
	size_t machine;
	enum collective coll = COLL_ALL_REDUCE;
	while (coll <= COLL_SENDRECV && strcmp(l->collective, collective_name(coll)) != 0)
		coll++;
	if (coll > COLL_SENDRECV || l->ranks < 2)
		return ST_OK; /* reduce, gather and their like: no step runs them */
	if (l->shared)
		return error_set(e, ST_INPUT, "%s: ranks share a GPU: their times say nothing of the links", l->path);
	if (!l->even)
		return error_set(e, ST_INPUT, "%s: %lld ranks on %lld hosts: not as many on each", l->path,
			(long long)l->ranks, (long long)l->hosts);
	enum status st = find_machine(f, l->hosts, l->ranks / l->hosts, &machine, e);
	if (st)
		return error_context(e, "%s: %lld hosts of %lld GPUs", l->path, (long long)l->hosts,
			(long long)(l->ranks / l->hosts));
	char id[DEVICE_ID] = "";
	struct error unknown = {0};
	const struct device_spec *d = &f->machines.at[machine].device;
	if (device_by_shown_name(l->gpu, 0, id, &unknown) == ST_OK && id[0] && strcmp(id, d->id) != 0)
		log_warn("%s ran on %s, and cluster.system has %s", l->path, l->gpu, d->name);
	for (size_t i = 0; i < l->rows.n && !st; i++) {
		const struct nccl_log_row *row = &l->rows.at[i];
		const struct seen s = {coll, l->ranks, l->hosts, (double)row->bytes, row->time_s, machine};
		if (row->bytes > 0 && !vec_push(&f->rows, s))
			st = error_nomem(e, "the fabric");
	}
	return st;
}

static enum status read_logs(struct fabric *f, struct error *e)
{
	char names[CONFIG_TEXT], path[PATH_MAX_LEN];
	nccl_logs logs = {0};
	enum status st = ST_OK;
	snprintf(names, sizeof names, "%s", f->config->cluster.fabric);
	for (char *save = NULL, *name = strtok_r(names, ",", &save); name && !st; name = strtok_r(NULL, ",", &save)) {
		path_named_by(f->config->path, name + strspn(name, " "), path);
		st = nccl_log_read(path, &logs, e);
	}
	for (size_t i = 0; i < logs.n && !st; i++)
		st = add_log(f, &logs.at[i], e);
	nccl_logs_free(&logs);
	if (!st && f->rows.n < 2)
		st = error_set(e, ST_INPUT,
			"%s: fewer than two rows of a collective that steps run over two or more ranks",
			f->config->cluster.fabric);
	return st;
}

/* ---- the fit ---- */

/* log(predicted / measured). */
static double residual(const struct fabric *f, const struct seen *s, const struct link_factors *links)
{
	struct machine m = f->machines.at[s->machine];
	m.links = *links;
	const struct rates rates = rates_of(&m);
	return log(collective_time_s(&rates, s->coll, s->ranks, 1, s->bytes, f->e) / s->time_s);
}

struct search {
	const struct fabric *f;
	bool far; /* the rows of several hosts, else those of one */
};

static bool belongs(const struct search *q, const struct seen *s) { return (s->hosts > 1) == q->far; }

static struct link_factors factors_of(const struct search *q, const struct link_factors *base, const double x[2])
{
	struct link_factors links = *base;
	*(q->far ? &links.network : &links.inside) = exp(x[0]);
	*(q->far ? &links.network_latency : &links.inside_latency) = exp(x[1]);
	return links;
}

/* The sum of |log error|, which odd rows move little. */
static double loss(const struct search *q, const struct link_factors *base, const double x[2])
{
	const struct link_factors links = factors_of(q, base, x);
	double sum = 0;
	for (size_t i = 0; i < q->f->rows.n; i++)
		if (belongs(q, &q->f->rows.at[i]))
			sum += fabs(residual(q->f, &q->f->rows.at[i], &links)) + HOLD * (x[0] * x[0] + x[1] * x[1]);
	return sum;
}

/* Hooke and Jeeves, "Direct search" (JACM 8(2), 1961), without its pattern moves: two factors need none. */
static void fit(const struct search *q, struct link_factors *links)
{
	double x[2] = {0, 0}, best;
	bool any = false;
	for (size_t i = 0; i < q->f->rows.n; i++)
		any = any || belongs(q, &q->f->rows.at[i]);
	if (!any)
		return;
	best = loss(q, links, x);
	for (double step = FIRST_STEP; step > LAST_STEP; step /= 2)
		for (bool moved = true; moved;) {
			moved = false;
			for (int k = 0; k < 4; k++) {
				double y[2] = {x[0], x[1]};
				y[k / 2] += k % 2 ? step : -step;
				if (fabs(y[k / 2]) > log(FACTOR_MAX))
					continue;
				const double l = loss(q, links, y);
				if (l < best) {
					best = l;
					memcpy(x, y, sizeof x);
					moved = true;
				}
			}
		}
	*links = factors_of(q, links, x);
}

/* |log error| of the rows of a kind: `far` rows below or above LARGE_B. Returns how many. */
static size_t errors_of(const struct fabric *f, const struct link_factors *links, int far, int large, double *out)
{
	size_t n = 0;
	for (size_t i = 0; i < f->rows.n; i++) {
		const struct seen *s = &f->rows.at[i];
		if ((far < 0 || (s->hosts > 1) == (far > 0)) && (large < 0 || (s->bytes > LARGE_B) == (large > 0)))
			out[n++] = fabs(residual(f, s, links));
	}
	return n;
}

/* What scatters of the rows after the fit is what a step's collectives may be off. */
static void put_sigma(const struct fabric *f, const struct link_factors *links, double *room, struct network_spec *n)
{
	size_t rows = errors_of(f, links, 1, 0, room);
	if (rows > 1)
		n->sigma_small = fmax(SIGMA_MIN, SIGMA_OF_MEDIAN * stats_median(room, rows));
	rows = errors_of(f, links, 1, 1, room);
	if (rows > 1)
		n->sigma_large = fmax(SIGMA_MIN, SIGMA_OF_MEDIAN * stats_median(room, rows));
}

/* ---- what is said ---- */

static double or_one(double factor) { return factor > 0 ? factor : 1; }

static void tell(const struct fabric *f, const struct link_factors *l, double before, double after)
{
	char inside[128] = "", network[128] = "";
	if (l->inside > 0)
		snprintf(inside, sizeof inside, " in a host rates x %.2f, latencies x %.2f;", l->inside,
			l->inside_latency);
	if (l->network > 0)
		snprintf(network, sizeof network, " between hosts rates x %.2f, latencies x %.2f;", l->network,
			l->network_latency);
	log_note("cluster.fabric, %zu rows of nccl-tests against the catalogue:%s%s "
		 "median error %.1f %%, before %.1f %%",
		f->rows.n, inside, network, 100 * expm1(after), 100 * expm1(before));
}

static json_t *fabric_json(const struct fabric *f, const struct link_factors *l, double before, double after)
{
	return json_pack("{s:s, s:I, s:f, s:f, s:f, s:f, s:f, s:f}", "logs", f->config->cluster.fabric, "rows",
		(json_int_t)f->rows.n, "inside_rate", or_one(l->inside), "inside_latency", or_one(l->inside_latency),
		"network_rate", or_one(l->network), "network_latency", or_one(l->network_latency),
		"median_error_before", expm1(before), "median_error", expm1(after));
}

static enum status attach_logs(struct fabric *f, struct machine *m, json_t **json, struct error *e)
{
	struct link_factors links = {0};
	double *room = NULL, before = 0;
	enum status st = read_logs(f, e);
	if (!st && !(room = calloc(f->rows.n, sizeof *room)))
		st = error_nomem(e, "the fabric");
	if (st)
		return st;
	for (size_t i = 0; i < f->rows.n; i++)
		if (!isfinite(residual(f, &f->rows.at[i], &links)))
			st = error_set(e, ST_INPUT,
				"%s: no rate of its links is known, against which logs say anything",
				f->config->cluster.system);
	if (!st) {
		before = stats_median(room, errors_of(f, &links, -1, -1, room));
		fit(&(struct search){f, false}, &links);
		fit(&(struct search){f, true}, &links);
		st = e->status;
	}
	if (!st) {
		const double after = stats_median(room, errors_of(f, &links, -1, -1, room));
		m->links = links;
		snprintf(m->source + strlen(m->source), sizeof m->source - strlen(m->source), "; links as %s measured",
			f->config->cluster.fabric);
		put_sigma(f, &links, room, &m->network);
		tell(f, &links, before, after);
		if (!(*json = fabric_json(f, &links, before, after)))
			st = error_nomem(e, "the fabric");
	}
	free(room);
	return st;
}

enum status fabric_attach(const struct config *c, struct machine *m, json_t **json, struct error *e)
{
	struct fabric f = {.config = c, .e = e};
	*json = NULL;
	if (!c->cluster.fabric[0])
		return ST_OK;
	enum status st = strpbrk(c->cluster.fabric, "/.,") ? attach_logs(&f, m, json, e)
	                                                   : network_load(c->cluster.fabric, &m->network, e);
	fabric_free(&f);
	return st == ST_INPUT ? config_blame_fabric(c, e) : st;
}
