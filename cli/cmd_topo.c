/* `stepsim topo`: the links of this host, of the hosts of a run, or of a dumped machine. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/paths.h"
#include "cli/command.h"
#include "report/report.h"
#include "topology/discover/discover.h"
#include "topology/view/view.h"

#define DUMP_LIMIT_B ((size_t)16 << 20)
#define NETWORK_LATENCY_S 4e-6 /* NIC to NIC, as topology/rates.c counts a hop over the network */

static bool is_stdio(const char *path)
{
	return path && strcmp(path, "-") == 0;
}

static const char *readable(const char *path)
{
	return is_stdio(path) ? "/dev/stdin" : path;
}

static const char *dumped(const struct options *o)
{
	return o->smi ? o->smi : o->nccl_xml ? o->nccl_xml : o->hwloc_xml;
}

static enum status check_size(const char *path, struct error *e)
{
	struct stat s;
	if (!path || stat(path, &s) != 0 || !S_ISREG(s.st_mode) || s.st_size <= (off_t)DUMP_LIMIT_B)
		return ST_OK;
	return error_set(e, ST_INPUT, "%s: larger than 16 MiB: no dump of a topology", path);
}

static enum status check(const struct options *o, struct error *e)
{
	if (is_stdio(o->smi) + is_stdio(o->nccl_xml) + is_stdio(o->hwloc_xml) > 1)
		return error_set(e, ST_INPUT, "only one of --smi, --nccl-xml and --hwloc-xml can be read from standard input");
	if (is_stdio(o->json) + is_stdio(o->dot) + is_stdio(o->svg) > 1)
		return error_set(e, ST_INPUT, "only one of --json, --dot and --svg can go to standard output");
	const char *const paths[] = {o->smi, o->nccl_xml, o->hwloc_xml};
	enum status st = ST_OK;
	for (size_t i = 0; i < sizeof paths / sizeof paths[0] && !st; i++)
		st = check_size(paths[i], e);
	return st;
}

/* A dump has no name of its own more often than not: then its file's. */
static void name_graph(struct graph *g, const struct options *o)
{
	const char *path = dumped(o);
	if (g->host[0] || !path)
		return;
	const char *slash = strrchr(path, '/');
	snprintf(g->host, sizeof g->host, "%s", is_stdio(path) ? "standard input" : slash ? slash + 1 : path);
}

static enum status one_host(const struct options *o, struct cluster **out, struct error *e)
{
	const struct dumps dumps = {.smi = readable(o->smi), .nccl_xml = readable(o->nccl_xml), .hwloc_xml = readable(o->hwloc_xml)};
	struct graph *g = NULL;
	enum status st = discover(&dumps, &g, e);
	if (st)
		return st;
	name_graph(g, o);
	if (!(*out = cluster_create(NETWORK_LATENCY_S))) {
		graph_destroy(g);
		return error_nomem(e, "a cluster");
	}
	char name[sizeof g->host];
	snprintf(name, sizeof name, "%s", g->host);
	return cluster_add(*out, g, 1, name, e);
}

/* Of a dumped machine only an hwloc export has an inventory; its text was read before, so one that came through a pipe is gone. */
static enum status take_inventory(const struct options *o, struct inventory *inventory, struct view_beside *out, struct error *e)
{
	char *text = NULL;
	size_t len = 0;
	enum status st = ST_OK;
	if (!dumped(o))
		st = inventory_read(NULL, 0, "this host", inventory, e);
	else if (!o->hwloc_xml || is_stdio(o->hwloc_xml))
		return ST_OK;
	else if (!(st = file_read(o->hwloc_xml, DUMP_LIMIT_B, &text, &len, e)))
		st = inventory_read(text, len, o->hwloc_xml, inventory, e);
	if (!st)
		out->inventory = inventory;
	free(text);
	return st;
}

typedef enum status view_fn(const struct cluster *c, FILE *out, struct error *e);

static enum status write_view(view_fn *view, const struct cluster *c, const char *path, struct error *e)
{
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);
	if (!f)
		return error_nomem(e, path);
	enum status st = view(c, f, e);
	if (fclose(f) != 0 && !st)
		st = error_nomem(e, path);
	if (!st)
		st = file_write(path, text, len, e);
	free(text);
	return st;
}

static enum status show(const struct options *o, const struct cluster *c, const struct view_beside *more, struct error *e)
{
	enum status st = ST_OK;
	if (!is_stdio(o->json) && !is_stdio(o->dot) && !is_stdio(o->svg) && (st = view_text(c, more, stdout, e)))
		return st;
	if (o->json) {
		json_t *j = NULL;
		if (!(st = view_json(c, more, &j, e)))
			st = report_write_json(j, o->json, e);
		json_decref(j);
	}
	if (!st && o->dot)
		st = write_view(view_dot, c, o->dot, e);
	if (!st && o->svg)
		st = write_view(view_svg, c, o->svg, e);
	return st;
}

/* Of all ranks of a run: every host's own; a dump is read by the leading rank alone. On the others *out stays NULL. */
static enum status find(struct context *x, struct cluster **out, struct error *e)
{
	if (x->session && !dumped(x->options))
		return session_cluster(x->session, out, e);
	return context_leads(x) ? one_host(x->options, out, e) : ST_OK;
}

enum status cmd_topo(struct context *x, struct error *e)
{
	const struct options *o = x->options;
	struct cluster *c = NULL;
	struct inventory inventory = {0};
	struct view_beside more = {.links = o->verbose};
	enum status st = check(o, e);
	if (!st)
		st = find(x, &c, e);
	if (!st && c)
		st = take_inventory(o, &inventory, &more, e);
	if (!st && c)
		st = show(o, c, &more, e);
	inventory_free(&inventory);
	cluster_destroy(c);
	return st;
}
