#include "topology/discover/discover.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/paths.h"
#include "topology/discover/command.h"
#include "topology/discover/discover_here.h"
#include "topology/discover/join.h"
#include "topology/discover/smi_query.h"

#define SMI "nvidia-smi"

typedef enum status reader(const char *text, size_t len, const char *name, struct graph **out, struct error *e);

/* `inventory`: NULL but for hwloc's. */
static enum status read_dump(const char *path, reader *read, struct graph **out, struct inventory *inventory,
	struct error *e)
{
	char *text = NULL;
	size_t len = 0;
	enum status st = file_read(path, DUMP_MOST_B, &text, &len, e);
	if (!st)
		st = read(text, len, path, out, e);
	if (!st && inventory)
		st = inventory_read(text, len, path, inventory, e);
	free(text);
	return st;
}

/* The files of another machine. The one with the best PCI tree is the main one; the others add to it. */
static enum status read_dumps(const struct dumps *d, struct graph **out, struct error *e)
{
	const struct {
		const char *path;
		reader *read;
	} sources[] = {{d->hwloc_xml, hwloc_xml_read}, {d->nccl_xml, nccl_xml_read}, {d->smi, smi_topo_read}};
	struct graph *main_one = NULL;
	enum status st = ST_OK;
	for (size_t i = 0; i < COUNT(sources) && !st; i++) {
		struct graph *g = NULL;
		if (!sources[i].path)
			continue;
		st = read_dump(sources[i].path, sources[i].read, &g,
			sources[i].read == hwloc_xml_read ? d->inventory : NULL, e);
		if (!st && main_one) {
			st = graph_merge(main_one, g, e);
		} else if (!st) {
			main_one = g;
			g = NULL;
		}
		graph_destroy(g);
	}
	if (!st)
		st = graph_finish(main_one, e);
	if (st) {
		graph_destroy(main_one);
		inventory_free(d->inventory);
	} else {
		*out = main_one;
	}
	return st;
}

/* `better` becomes the main graph, and what *g knows is added to it. */
static enum status replace_main(struct graph **g, struct graph *better, struct error *e)
{
	enum status st = graph_merge(better, *g, e);
	graph_destroy(*g);
	*g = better;
	return st;
}

/* NCCL_TOPO_FILE replaces the tree, as it does in NCCL. Without it NCCL looks for a file that virtual machines' hosts
 * leave; a wrong one there is NCCL's to skip, and so it is here, with a remark. */
static enum status take_topology_file(const struct discover_tools *tools, struct graph **g, struct error *e)
{
	const char *path = getenv("NCCL_TOPO_FILE");
	struct graph *better = NULL;
	if (path && path[0]) {
		enum status st = read_dump(path, nccl_xml_read, &better, NULL, e);
		if (st) {
			error_context(e, "NCCL_TOPO_FILE");
			return st;
		}
		return replace_main(g, better, e);
	}
	if (!tools->virtual_topology || access(tools->virtual_topology, R_OK) != 0)
		return ST_OK;
	struct error why = {0};
	if (read_dump(tools->virtual_topology, nccl_xml_read, &better, NULL, &why))
		return why.status == ST_INPUT ? graph_remark(*g, false, e, "%.180s: left aside", why.text)
		                              : error_set(e, why.status, "%s", why.text);
	return replace_main(g, better, e);
}

/* The output of nvidia-smi before it is read. */
struct smi {
	struct command_result query, topo;
	bool found, hangs, good;
};

static enum status remark_end(struct graph *g, const char *what, const struct command_result *r, double limit_s,
	struct error *e)
{
	switch (r->end) {
	case COMMAND_TIMED_OUT:
		return graph_remark(g, false, e,
			"%s did not answer in %g s and was killed%s: the driver hangs; names, memory and NVLinks are "
			"left out",
			what, limit_s, r->stuck ? ", which it did not obey" : "");
	case COMMAND_TOO_LONG:
		return graph_remark(g, false, e, "%s printed without end and was killed: left aside", what);
	case COMMAND_SIGNAL: return graph_remark(g, false, e, "%s was killed by signal %d: left aside", what, r->code);
	case COMMAND_EXITED:
	case COMMAND_NOT_FOUND: break;
	}
	return r->code == 0 ? ST_OK
	                    : graph_remark(g, false, e, "%s failed (exit code %d): %s", what, r->code,
				      r->first[0] ? r->first : "it said nothing");
}

/* Takes the field that this driver's nvidia-smi does not know ("Field "compute_cap" is not a valid field to query.")
 * out of the list. */
static bool drop_field(char *fields, const struct command_result *r)
{
	static const char *const texts[] = {"Field \"", "\" is not a valid field"};
	const char *from = r->end == COMMAND_EXITED && r->code != 0 ? strstr(r->text, texts[0]) : NULL;
	if (!from && r->end == COMMAND_EXITED && r->code != 0)
		from = strstr(r->first, texts[0]);
	from = from ? from + strlen(texts[0]) : NULL;
	const char *to = from ? strstr(from, texts[1]) : NULL;
	size_t len = to ? (size_t)(to - from) : 0;
	for (char *at = fields; len > 0 && *at;) {
		size_t n = strcspn(at, ",");
		if (n == len && strncmp(at, from, len) == 0) {
			bool last = !at[n];
			memmove(at, at + n + !last, strlen(at + n + !last) + 1);
			if (last && at > fields)
				at[-1] = '\0';
			return fields[0] != '\0';
		}
		at += n + (at[n] == ',');
	}
	return false;
}

static enum status run_query(struct smi *s, double limit_s, struct error *e)
{
	char fields[] = SMI_QUERY, option[sizeof SMI_QUERY + 16];
	const char *argv[] = {SMI, option, "--format=csv", NULL};
	for (;;) {
		snprintf(option, sizeof option, "--query-gpu=%s", fields);
		enum status st = command_run(argv, limit_s, &s->query, e);
		if (st || !drop_field(fields, &s->query))
			return st;
		command_result_free(&s->query);
	}
}

static enum status run_smi(struct smi *s, struct graph *g, double limit_s, struct error *e)
{
	const char *topo[] = {SMI, "topo", "-m", NULL};
	enum status st = run_query(s, limit_s, e);
	if (st || s->query.end == COMMAND_NOT_FOUND)
		return st;
	s->found = true;
	s->hangs = s->query.end == COMMAND_TIMED_OUT;
	/* With one GPU lost the exit code is not 0, but the others are listed. */
	s->good = s->query.end == COMMAND_EXITED && (s->query.code == 0 || strstr(s->query.text, "pci.bus_id"));
	if (s->good && s->query.code != 0) /* what it said stands between the rows, and is remarked on with them */
		st = graph_remark(g, false, e, SMI " ended with exit code %d: not every GPU answers", s->query.code);
	else
		st = remark_end(g, SMI, &s->query, limit_s, e);
	if (st || !s->good)
		return st;
	st = command_run(topo, limit_s, &s->topo, e);
	if (st)
		return st;
	s->hangs = s->topo.end == COMMAND_TIMED_OUT;
	return remark_end(g, SMI " topo -m", &s->topo, limit_s, e);
}

/* A text of nvidia-smi's that cannot be read is the driver's fault, not the user's: a remark. */
static enum status forgive(struct graph *g, enum status st, const struct error *why, struct error *e)
{
	if (st == ST_INPUT)
		return graph_remark(g, false, e, "%.180s: left aside", why->text);
	return st ? error_set(e, st, "%s", why->text) : ST_OK;
}

/* GPUs that the kernel shows but the driver does not list are not to be used: a container sees the PCI devices of its
 * whole host. */
static enum status take_query(const struct smi *s, struct graph *g, struct error *e)
{
	size_t n = g->gpu.n, missing = 0, rows = 0;
	bool *listed = calloc(n + 1, sizeof *listed), *keep = NULL;
	struct error why = {0};
	enum status st = listed ? ST_OK : error_nomem(e, "a list of GPUs");
	if (!st)
		st = forgive(g, join_query(s->query.text, s->query.len, SMI, g, listed, n, &why), &why, e);
	for (size_t i = 0; i < n && !st; i++)
		rows += listed[i];
	if (!st && !why.status && rows > 0)
		st = join_unlisted(g, listed, n, &missing, e);
	if (!st && missing > 0) {
		keep = malloc(g->vertex.n + 1);
		if (!keep) {
			st = error_nomem(e, "a list of GPUs");
			goto out;
		}
		memset(keep, true, g->vertex.n);
		for (size_t i = 0; i < n; i++)
			keep[g->gpu.at[i]] = !listed[i];
		st = join_keep(g, keep, NULL, e);
	}
out:
	free(listed);
	free(keep);
	return st;
}

/* The matrix has numbers only; the list beside it says which PCI addresses they are. */
static enum status read_matrix(const struct smi *s, struct graph *g, struct graph **out, struct error *e)
{
	struct error why = {0}, ignored = {0};
	if (s->topo.end != COMMAND_EXITED || s->topo.code != 0)
		return ST_OK;
	enum status st = forgive(g, smi_topo_read(s->topo.text, s->topo.len, SMI " topo -m", out, &why), &why, e);
	if (st || !*out)
		return st;
	size_t remarks = (*out)->remark.n, gpus = (*out)->gpu.n;
	if (join_query(s->query.text, s->query.len, SMI, *out, NULL, 0, &ignored) == ST_RUN)
		return error_set(e, ST_RUN, "%s", ignored.text);
	(*out)->remark.n = remarks;  /* they are made once, on the main graph */
	if ((*out)->gpu.n != gpus) { /* nvidia-smi's two outputs do not speak of the same GPUs */
		graph_destroy(*out);
		*out = NULL;
		return graph_remark(g, true, e,
			SMI " topo -m has %zu GPUs, " SMI " --query-gpu others: the matrix is left aside", gpus);
	}
	return ST_OK;
}

static enum status take_smi(const struct smi *s, struct graph **g, struct error *e)
{
	struct graph *matrix = NULL;
	enum status st = s->good ? read_matrix(s, *g, &matrix, e) : ST_OK;
	if (!st && matrix && (*g)->gpu.n == 0) { /* no PCI devices are to be seen, as in some containers */
		st = replace_main(g, matrix, e);
		matrix = NULL;
	}
	if (!st && s->good)
		st = take_query(s, *g, e);
	if (!st && matrix)
		st = graph_merge(*g, matrix, e);
	graph_destroy(matrix);
	return st;
}

enum status discover_here(const struct discover_tools *tools, struct graph **out, struct error *e)
{
	struct graph *g = NULL;
	struct smi smi = {.found = false};
	enum status st = hwloc_read(&g, e);
	if (!st)
		st = take_topology_file(tools, &g, e);
	if (!st)
		st = run_smi(&smi, g, tools->smi_limit_s, e);
	if (!st)
		st = take_smi(&smi, &g, e);
	/* A driver that hangs nvidia-smi would hang this process in NVML, where no limit can be set. */
	if (!st && !smi.hangs && (smi.good || !smi.found))
		st = nvml_read(g, e);
	if (!st)
		st = graph_finish(g, e);
	if (!st && !g->host[0] && gethostname(g->host, sizeof g->host) == 0)
		g->host[sizeof g->host - 1] = '\0';
	command_result_free(&smi.query);
	command_result_free(&smi.topo);
	if (st)
		graph_destroy(g);
	else
		*out = g;
	return st;
}

enum status discover(const struct dumps *d, struct graph **out, struct error *e)
{
	/* The default path: NVIDIA/nccl src/graph/topo.cc, ncclTopoGetSystem. */
	static const struct discover_tools tools = {.smi_limit_s = 10,
		.virtual_topology = "/var/run/nvidia-topologyd/virtualTopology.xml"};
	*out = NULL;
	if (d && d->inventory)
		*d->inventory = (struct inventory){0};
	if (d && (d->smi || d->nccl_xml || d->hwloc_xml))
		return read_dumps(d, out, e);
	return discover_here(&tools, out, e);
}
