/* `stepsim topo`: the links of this host, of the hosts of a run, or of a dumped machine. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/paths.h"
#include "cli/command.h"
#include "report/report.h"
#include "topology/discover/discover.h"
#include "topology/graph/rates.h"
#include "topology/view/view.h"

static bool is_stdio(const char *path) { return path && strcmp(path, "-") == 0; }

static const char *readable(const char *path) { return is_stdio(path) ? "/dev/stdin" : path; }

static const char *dumped(const struct options *o)
{
	return o->smi ? o->smi : o->nccl_xml ? o->nccl_xml : o->hwloc_xml;
}

static enum status check(const struct options *o, struct error *e)
{
	if (is_stdio(o->smi) + is_stdio(o->nccl_xml) + is_stdio(o->hwloc_xml) > 1)
		return error_set(e, ST_INPUT,
			"only one of --smi, --nccl-xml and --hwloc-xml can be read from standard input");
	return ST_OK;
}

/* A dump has no name of its own more often than not: then its file's. */
static void name_graph(struct graph *g, const struct options *o)
{
	const char *path = dumped(o);
	if (g->host[0] || !path)
		return;
	const char *slash = strrchr(path, '/');
	snprintf(g->host, sizeof g->host, "%s",
		is_stdio(path)                   ? "standard input"
		: strncmp(path, "/dev/", 5) == 0 ? "a pipe"
		: slash                          ? slash + 1
						 : path);
}

static enum status one_host(const struct options *o, struct cluster **out, struct inventory *inventory, struct error *e)
{
	const struct dumps dumps = {.smi = readable(o->smi),
		.nccl_xml = readable(o->nccl_xml),
		.hwloc_xml = readable(o->hwloc_xml),
		.inventory = inventory};
	struct graph *g = NULL;
	enum status st = discover(&dumps, &g, e);
	if (st)
		return st;
	name_graph(g, o);
	if (!(*out = cluster_create(rate_network(0).latency_s))) {
		graph_destroy(g);
		return error_nomem(e, "a cluster");
	}
	char name[sizeof g->host];
	snprintf(name, sizeof name, "%s", g->host);
	return cluster_add(*out, g, 1, name, e);
}

static enum status write_view(view_fn *view, const struct cluster *c, const char *path, struct error *e)
{
	char *text = NULL;
	size_t len = 0;
	enum status st = view_to_text(view, c, &text, &len, e);
	if (!st)
		st = file_write(path, text, len, e);
	free(text);
	return st;
}

static enum status show(const struct options *o, const struct cluster *c, const struct view_beside *more,
	struct error *e)
{
	enum status st = ST_OK;
	if (!options_take_stdout(o) && (st = view_text(c, more, stdout, e)))
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

/* Discovers each host of a run; only the leading rank reads a dump. On the other ranks *out stays NULL. */
static enum status find(struct context *x, struct cluster **out, struct inventory *inventory, struct error *e)
{
	if (x->session && !dumped(x->options))
		return x->exec->session_cluster(x->session, out, e);
	return context_leads(x) ? one_host(x->options, out, inventory, e) : ST_OK;
}

enum status cmd_topo(struct context *x, struct error *e)
{
	const struct options *o = x->options;
	struct cluster *c = NULL;
	struct inventory inventory = {0};
	struct message_links messages = {0};
	const bool several = x->session && !dumped(o) && x->exec->session_info(x->session)->ranks > 1;
	/* Of all dumps only an hwloc export has an inventory. */
	struct view_beside more = {.links = o->verbose, .inventory = !dumped(o) || o->hwloc_xml ? &inventory : NULL};
	enum status st = check(o, e);
	if (!st)
		st = find(x, &c, &inventory, e);
	if (!st && several && !(st = x->exec->session_message_links(x->session, &messages, e)))
		more.messages = &messages;
	if (!st && c && !dumped(o))
		st = inventory_read(NULL, 0, "this host", &inventory, e);
	if (!st && c)
		st = show(o, c, &more, e);
	inventory_free(&inventory);
	message_links_free(&messages);
	cluster_destroy(c);
	return st;
}
