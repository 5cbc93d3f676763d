/* NCCL's and RCCL's topology files (NCCL_TOPO_FILE, NCCL_TOPO_DUMP_FILE): <system><cpu><pci>...<gpu><nvlink/></gpu>,
 * <nic><net/></nic>. */
#include <ctype.h>
#include <errno.h>
#include <expat.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "topology/discover/discover.h"
#include "topology/discover/nccl_xml.h"

void nccl_refuse(struct nccl_reader *r, const char *fmt, ...)
{
	if (r->st)
		return;
	char text[512];
	va_list args;
	va_start(args, fmt);
	vsnprintf(text, sizeof text, fmt, args);
	va_end(args);
	r->st = error_set(r->e, ST_INPUT, "%s:%lu: %s", r->name, (unsigned long)XML_GetCurrentLineNumber(r->parser),
		text);
	XML_StopParser(r->parser, XML_FALSE);
}

void nccl_no_memory(struct nccl_reader *r)
{
	if (!r->st)
		r->st = error_nomem(r->e, "the topology");
	XML_StopParser(r->parser, XML_FALSE);
}

const char *nccl_shown(const char *text, char out[NCCL_SHOWN])
{
	size_t n = 0;
	for (; text[n] && n < 44; n++)
		out[n] = iscntrl((unsigned char)text[n]) ? '?' : text[n];
	snprintf(out + n, 4, "%s", text[n] ? "..." : "");
	return out;
}

const char *nccl_attribute(const char **atts, const char *key)
{
	for (; *atts; atts += 2)
		if (strcmp(atts[0], key) == 0)
			return atts[1];
	return NULL;
}

int64_t nccl_number(struct nccl_reader *r, const char **atts, const char *key, int base, int64_t min, int64_t max,
	int64_t missing)
{
	const char *text = nccl_attribute(atts, key);
	char buf[48], *end = NULL;
	if (!text || !*text)
		return missing;
	errno = 0;
	long long value = strtoll(text, &end, base);
	if (*end || errno || value < min || value > max || isspace((unsigned char)*text)) {
		nccl_refuse(r, "%s=\"%s\" is no %s from %" PRId64 " to %" PRId64, key, nccl_shown(text, buf),
			base == 16 ? "hexadecimal number" : "number", min, max);
		return missing;
	}
	return value;
}

static void start_root(struct nccl_reader *r, const char *name, const char **atts)
{
	char buf[48];
	if (strcmp(name, "topology") == 0)
		nccl_refuse(r, "this is an hwloc export (<topology>), no NCCL topology file (<system>)");
	else if (strcmp(name, "graphs") == 0)
		nccl_refuse(r, "these are NCCL's search graphs (NCCL_GRAPH_DUMP_FILE), no topology file "
			       "(NCCL_TOPO_DUMP_FILE)");
	else if (strcmp(name, "system") != 0)
		nccl_refuse(r, "<%s> is no NCCL topology file: its root is <system>", nccl_shown(name, buf));
	else if (nccl_number(r, atts, "version", 10, 0, 1000, 1) > 2)
		nccl_refuse(r, "version %s of the format is not known (1 and RCCL's 2 are)",
			nccl_shown(nccl_attribute(atts, "version"), buf));
}

static void XMLCALL on_start(void *user, const char *name, const char **atts)
{
	struct nccl_reader *r = user;
	char buf[48];
	int t = 0;
	if (r->st)
		return;
	if (r->skip > 0) {
		r->skip++;
		return;
	}
	if (r->depth == 0) {
		start_root(r, name, atts);
		r->level[r->depth++] = (struct nccl_level){.tag = TAG_SYSTEM, .node = -1};
		return;
	}
	while (t < TAGS && strcmp(name, nccl_tags[t].name) != 0)
		t++;
	if (t == TAGS) { /* newer formats: NCCL itself passes over what it does not know */
		r->skip = 1;
		if (r->unknown++ == 0) {
			nccl_shown(name, r->unknown_name);
			r->unknown_line = (long)XML_GetCurrentLineNumber(r->parser);
		}
		return;
	}
	const struct nccl_level *up = &r->level[r->depth - 1];
	if (!(nccl_tags[t].parents >> up->tag & 1)) {
		nccl_refuse(r, "<%s> inside <%s>", nccl_shown(name, buf), nccl_tags[up->tag].name);
		return;
	}
	if (r->depth == DEPTH_MAX) {
		nccl_refuse(r, "elements nested deeper than %d", DEPTH_MAX);
		return;
	}
	struct nccl_level *l = &r->level[r->depth++];
	*l = (struct nccl_level){.tag = (enum tag)t, .node = -1};
	nccl_tags[t].start(r, atts, l);
	if (r->skip > 0) /* the element left itself out: its end closes the skip */
		r->depth--;
}

static void XMLCALL on_end(void *user, const char *name)
{
	struct nccl_reader *r = user;
	(void)name;
	if (r->st)
		return;
	if (r->skip > 0) {
		r->skip--;
		return;
	}
	r->depth--;
}

static void XMLCALL on_doctype(void *user, const char *name, const char *system_id, const char *public_id, int internal)
{
	(void)system_id;
	(void)public_id;
	(void)internal;
	nccl_refuse(user, strcmp(name, "topology") == 0
				  ? "this is an hwloc export (<topology>), no NCCL topology file (<system>)"
				  : "a document type declaration: topology files have none");
}

static enum status parse(struct nccl_reader *r, const char *text, size_t len)
{
	XML_SetUserData(r->parser, r);
	XML_SetElementHandler(r->parser, on_start, on_end);
	XML_SetStartDoctypeDeclHandler(r->parser, on_doctype);
	if (XML_Parse(r->parser, text, (int)len, XML_TRUE) == XML_STATUS_OK || r->st)
		return r->st;
	enum XML_Error code = XML_GetErrorCode(r->parser);
	if (code == XML_ERROR_NO_MEMORY)
		return error_nomem(r->e, "the topology");
	return error_set(r->e, ST_INPUT, "%s:%lu: not XML: %s", r->name,
		(unsigned long)XML_GetCurrentLineNumber(r->parser), XML_ErrorString(code));
}

enum status nccl_xml_read(const char *text, size_t len, const char *name, struct graph **out, struct error *e)
{
	*out = NULL;
	if (len > DUMP_MOST_B)
		return error_set(e, ST_INPUT, "%s: larger than %d MiB: no topology file", name, DUMP_MOST_MIB);
	enum status st = ST_OK;
	struct nccl_reader *r = calloc(1, sizeof *r);
	if (!r)
		return error_nomem(e, "the topology");
	r->name = name;
	r->e = e;
	r->g = graph_create(SAID_BY_NCCL_XML);
	r->parser = XML_ParserCreate(NULL);
	if (!r->g || !r->parser) {
		st = error_nomem(e, "the topology");
		goto out;
	}
	if ((st = parse(r, text, len)))
		goto out;
	if (r->cpus == 0) {
		st = error_set(e, ST_INPUT, "%s:%lu: no <cpu> in it: no devices can be placed", name,
			(unsigned long)XML_GetCurrentLineNumber(r->parser));
		goto out;
	}
	if ((st = nccl_xml_graph(r)))
		goto out;
	*out = r->g;
	r->g = NULL;
out:
	if (r->parser)
		XML_ParserFree(r->parser);
	graph_destroy(r->g);
	tree_free(&r->tree);
	vec_free(&r->extra);
	vec_free(&r->peer);
	vec_free(&r->pci);
	free(r);
	return st;
}
