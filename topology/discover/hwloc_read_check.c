/* hwloc trusts the exports that it loads: on a damaged one (an object without its sets, a core inside a network card,
 * one PU twice) hwloc 2.9 reads through null pointers, fails assertions or loops, and it names no line. So every text
 * is read here first: well-formed XML of a version that this library has, objects of known types in places where they
 * can be, with the attributes that hwloc relies on, and their sets inside those of their parents.
 */
#include <expat.h>
#include <hwloc.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/vec.h"
#include "topology/discover/hwloc_read.h"

#define DEPTH_MAX 64
#define INDEX_MAX 65535 /* of processors and NUMA nodes: sets stay small */
#define MATRIX_MAX 4096

enum family { FAMILY_NORMAL, FAMILY_MEMORY, FAMILY_IO, FAMILY_MISC };

/* `needs`: attributes without which hwloc cannot place it. */
static const struct kind {
	const char *type;
	enum family family;
	const char *needs[2];
} kinds[] = {
	{"Machine", FAMILY_NORMAL, {0}},
	{"System", FAMILY_NORMAL, {0}},
	{"Package", FAMILY_NORMAL, {0}},
	{"Socket", FAMILY_NORMAL, {0}},
	{"Die", FAMILY_NORMAL, {0}},
	{"Group", FAMILY_NORMAL, {0}},
	{"Core", FAMILY_NORMAL, {0}},
	{"PU", FAMILY_NORMAL, {"os_index"}},
	{"Cache", FAMILY_NORMAL, {"depth"}},
	{"L1Cache", FAMILY_NORMAL, {"depth"}},
	{"L2Cache", FAMILY_NORMAL, {"depth"}},
	{"L3Cache", FAMILY_NORMAL, {"depth"}},
	{"L4Cache", FAMILY_NORMAL, {"depth"}},
	{"L5Cache", FAMILY_NORMAL, {"depth"}},
	{"L1iCache", FAMILY_NORMAL, {"depth"}},
	{"L2iCache", FAMILY_NORMAL, {"depth"}},
	{"L3iCache", FAMILY_NORMAL, {"depth"}},
	{"NUMANode", FAMILY_MEMORY, {"os_index"}},
	{"MemCache", FAMILY_MEMORY, {0}},
	{"Bridge", FAMILY_IO, {"bridge_type", "bridge_pci"}},
	{"PCIDev", FAMILY_IO, {"pci_busid", "pci_type"}},
	{"OSDev", FAMILY_IO, {"osdev_type"}},
	{"Misc", FAMILY_MISC, {0}},
};

struct open_object {
	const struct kind *kind;
	hwloc_bitmap_t sets[4];
};

static const char *const set_names[4] = {"cpuset", "complete_cpuset", "nodeset", "complete_nodeset"};

struct checker {
	XML_Parser parser;
	const char *name;
	struct error *e;
	enum status st;
	int depth, objects; /* elements; objects among them */
	bool v1;
	bool node_sets; /* the machine has them: hwloc 2.9 crashes on a NUMA node of version 1 in one without */
	struct open_object open[DEPTH_MAX];
	hwloc_bitmap_t pus, nodes;                 /* seen */
	hwloc_bitmap_t allowed_pus, allowed_nodes; /* what the machine says that may be used; hwloc drops the rest */
	VEC(uint64_t) gp;
	int roots;
};

static void refuse(struct checker *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void refuse(struct checker *c, const char *fmt, ...)
{
	char text[256];
	va_list args;
	va_start(args, fmt);
	vsnprintf(text, sizeof text, fmt, args);
	va_end(args);
	for (char *p = text; *p; p++)
		*p = (unsigned char)*p < ' ' ? '?' : *p;
	if (!c->st)
		c->st = error_set(c->e, ST_INPUT, "%s:%lu: %s", c->name,
			(unsigned long)XML_GetCurrentLineNumber(c->parser), text);
	XML_StopParser(c->parser, XML_FALSE);
}

static const char *find(const char **atts, const char *key)
{
	for (; *atts; atts += 2)
		if (strcmp(atts[0], key) == 0)
			return atts[1];
	return NULL;
}

static void check_root(struct checker *c, const char *name, const char **atts)
{
	const char *version = find(atts, "version");
	long major = version ? strtol(version, NULL, 10) : 1;
	c->v1 = major <= 1;
	if (strcmp(name, "system") == 0)
		refuse(c, "this is an NCCL topology file (<system>), no hwloc export (<topology>)");
	else if (strcmp(name, "topology") != 0)
		refuse(c, "no hwloc export: its root is <topology>");
	else if (major > (long)(hwloc_get_api_version() >> 16))
		refuse(c,
			"hwloc " HWLOC_VERSION
			" cannot load XML version %.8s: have it exported in the older format (lstopo "
			"--export-xml-flags v2), or read it on a host with hwloc %ld",
			version, major);
}

/* "0x000000ff,0xffffffff"; hwloc's form of an infinite set is not taken. hwloc 2.9 does not count a first comma, and
 * then fails its own assertion. */
static bool read_set(const char *text, hwloc_bitmap_t set)
{
	size_t digits = 0, words = 1;
	for (const char *p = text; *p; p++) {
		if (*p == ',') {
			words++;
			digits = 0;
		} else if (*p == '0' && p[1] == 'x') {
			p++;
		} else if (!strchr("0123456789abcdefABCDEF", *p) || ++digits > 8) {
			return false;
		}
	}
	return *text && *text != ',' && words <= (INDEX_MAX + 1) / 32 && hwloc_bitmap_sscanf(set, text) == 0 &&
	       hwloc_bitmap_weight(set) >= 0;
}

static bool whole(const char *text, unsigned long max, unsigned long *value)
{
	char *end = NULL;
	*value = strtoul(text, &end, 10);
	return *text >= '0' && *text <= '9' && *end == '\0' && *value <= max;
}

static void check_sets(struct checker *c, const char **atts, struct open_object *o, const struct open_object *up)
{
	for (int i = 0; i < 4 && !c->st; i++) {
		const char *text = find(atts, set_names[i]);
		o->sets[i] = hwloc_bitmap_alloc();
		if (!o->sets[i])
			c->st = error_nomem(c->e, "an hwloc export");
		else if (!text && !(c->v1 && i >= 2)) /* version 1 leaves node sets out where there is a single node */
			refuse(c, "a %s without %s", o->kind->type, set_names[i]);
		else if (text && !read_set(text, o->sets[i]))
			refuse(c, "%s=\"%.60s\" of a %s is no set", set_names[i], text, o->kind->type);
		else if (text && up && !c->v1 && o->kind->family == FAMILY_NORMAL &&
			 !hwloc_bitmap_isincluded(o->sets[i], up->sets[i]))
			refuse(c, "%s of a %s goes beyond that of the object around it", set_names[i], o->kind->type);
	}
	if (!up)
		c->node_sets = find(atts, "nodeset") || find(atts, "complete_nodeset");
	else if (!c->st && c->v1 && !c->node_sets && strcmp(o->kind->type, "NUMANode") == 0)
		refuse(c, "a NUMANode in a machine without nodeset");
	if (!c->st && !hwloc_bitmap_isincluded(o->sets[0], o->sets[1]))
		refuse(c, "cpuset of a %s goes beyond its complete_cpuset", o->kind->type);
}

static void check_allowed(struct checker *c, const char **atts, const struct open_object *machine)
{
	static const char *const names[2] = {"allowed_cpuset", "allowed_nodeset"};
	for (int i = 0; i < 2 && !c->st; i++) {
		hwloc_bitmap_t allowed = i ? c->allowed_nodes : c->allowed_pus;
		const char *text = find(atts, names[i]);
		if (!text)
			hwloc_bitmap_copy(allowed, machine->sets[2 * i]);
		else if (!read_set(text, allowed))
			refuse(c, "%s=\"%.60s\" of a %s is no set", names[i], text, machine->kind->type);
		else
			hwloc_bitmap_and(allowed, allowed, machine->sets[2 * i]);
	}
}

/* Processors and NUMA nodes: one each, and their sets are themselves. */
static void check_index(struct checker *c, const char **atts, struct open_object *o, hwloc_bitmap_t seen,
	hwloc_bitmap_t own)
{
	unsigned long index = 0;
	if (!whole(find(atts, "os_index"), INDEX_MAX, &index))
		refuse(c, "os_index=\"%.40s\" of a %s is no number up to %d", find(atts, "os_index"), o->kind->type,
			INDEX_MAX);
	else if (hwloc_bitmap_isset(seen, (unsigned)index))
		refuse(c, "%s %lu a second time", o->kind->type, index);
	else if (hwloc_bitmap_weight(own) != 1 || !hwloc_bitmap_isset(own, (unsigned)index))
		refuse(c, "the set of %s %lu is not itself", o->kind->type, index);
	else
		hwloc_bitmap_set(seen, (unsigned)index);
}

static void check_io(struct checker *c, const char **atts, const struct open_object *o, const struct open_object *up)
{
	const char *busid = find(atts, "pci_busid"), *bridge = find(atts, "bridge_type"),
		   *range = find(atts, "bridge_pci"), *class = find(atts, "pci_type"), *os = find(atts, "osdev_type");
	unsigned a, b, d, f;
	unsigned long number = 0;
	bool is_bridge = strcmp(o->kind->type, "Bridge") == 0;
	if (up->kind->family == FAMILY_IO && strcmp(up->kind->type, "OSDev") == 0)
		refuse(c, "a %s inside an OSDev", o->kind->type);
	else if (is_bridge && strcmp(bridge, "0-1") != 0 && strcmp(bridge, "1-1") != 0)
		refuse(c, "bridge_type=\"%.20s\" is neither of host to PCI (0-1) nor of PCI to PCI (1-1)", bridge);
	else if (is_bridge && sscanf(range, "%8x:[%2x-%2x]", &a, &b, &d) != 3)
		refuse(c, "bridge_pci=\"%.40s\" is no range of buses (0000:[00-ff])", range);
	else if (is_bridge && bridge[0] == '1' && (!busid || !class))
		refuse(c, "a bridge of PCI to PCI without pci_busid or pci_type");
	else if (busid && sscanf(busid, "%8x:%2x:%2x.%1x", &a, &b, &d, &f) != 4)
		refuse(c, "pci_busid=\"%.40s\" is no PCI address", busid);
	else if (class && sscanf(class, "%4x [%4x:%4x]", &a, &b, &d) != 3)
		refuse(c, "pci_type=\"%.40s\" is no class and id (0302 [10de:20b0] ...)", class);
	else if (os && !whole(os, 16, &number))
		refuse(c, "osdev_type=\"%.40s\" is not known", os);
}

static const struct kind *kind_of(const char *type)
{
	for (size_t i = 0; i < COUNT(kinds) && type; i++)
		if (strcmp(type, kinds[i].type) == 0)
			return &kinds[i];
	return NULL;
}

static bool may_hold(const struct checker *c, const struct kind *outer, const struct kind *inner)
{
	static const bool allowed[4][4] = {/* outer: NORMAL */ {true, true, true, true},
		/* MEMORY */ {false, true, false, true}, /* IO */ {false, false, true, true},
		/* MISC */ {false, false, false, true}};
	if (strcmp(outer->type, "PU") == 0 && inner->family == FAMILY_NORMAL)
		return false;
	if (strcmp(inner->type, "Machine") == 0)
		return strcmp(outer->type, "System") == 0;
	/* In version 1 a NUMA node stands between the machine and its packages. */
	return allowed[outer->family][inner->family] ||
	       (c->v1 && strcmp(outer->type, "NUMANode") == 0 && inner->family != FAMILY_MISC);
}

static void start_object(struct checker *c, const char **atts)
{
	const char *type = find(atts, "type"), *gp = find(atts, "gp_index");
	const struct kind *k = kind_of(type);
	struct open_object *o = &c->open[c->objects], *up = c->objects ? o - 1 : NULL;
	unsigned long index = 0;
	if (!k)
		refuse(c, type ? "object of type \"%.40s\", which is not known" : "an object without a type%s",
			type ? type : "");
	else if (!up && (++c->roots > 1 || (strcmp(k->type, "Machine") != 0 && strcmp(k->type, "System") != 0)))
		refuse(c, "an export has one object around all others, a Machine");
	else if (up && !may_hold(c, up->kind, k))
		refuse(c, "a %s inside a %s", k->type, up->kind->type);
	for (size_t i = 0; i < COUNT(k->needs) && !c->st; i++)
		if (k->needs[i] && !find(atts, k->needs[i]))
			refuse(c, "a %s without %s", k->type, k->needs[i]);
	if (c->st)
		return;
	*o = (struct open_object){.kind = k};
	c->objects++;
	if (k->family == FAMILY_NORMAL || k->family == FAMILY_MEMORY)
		check_sets(c, atts, o, up);
	if (!c->st && !up)
		check_allowed(c, atts, o);
	if (!c->st && strcmp(k->type, "PU") == 0)
		check_index(c, atts, o, c->pus, o->sets[1]);
	if (!c->st && strcmp(k->type, "NUMANode") == 0)
		check_index(c, atts, o, c->nodes, o->sets[3]);
	if (!c->st && k->family == FAMILY_IO && up)
		check_io(c, atts, o, up);
	if (!c->st && gp && (!whole(gp, INT32_MAX, &index) || index == 0))
		refuse(c, "gp_index=\"%.40s\" is no number", gp);
	if (!c->st && gp && !vec_push(&c->gp, index))
		c->st = error_nomem(c->e, "an hwloc export");
}

static void XMLCALL on_start(void *user, const char *name, const char **atts)
{
	struct checker *c = user;
	unsigned long n = 0;
	const char *objects = find(atts, "nbobjs");
	if (c->st)
		return;
	if (c->depth++ == 0)
		check_root(c, name, atts);
	if (c->depth >= DEPTH_MAX)
		refuse(c, "objects nested deeper than in any machine");
	else if (objects && !whole(objects, MATRIX_MAX, &n))
		refuse(c, "nbobjs=\"%.40s\" of a matrix is no number up to %d", objects, MATRIX_MAX);
	else if (strcmp(name, "object") == 0 && !c->st)
		start_object(c, atts);
	if (c->st)
		XML_StopParser(c->parser, XML_FALSE);
}

static void free_sets(struct open_object *o)
{
	for (int i = 0; i < 4; i++)
		hwloc_bitmap_free(o->sets[i]);
	*o = (struct open_object){0};
}

static void XMLCALL on_end(void *user, const char *name)
{
	struct checker *c = user;
	if (c->st)
		return;
	c->depth--;
	if (strcmp(name, "object") == 0)
		free_sets(&c->open[--c->objects]);
}

static void XMLCALL on_doctype(void *user, const char *name, const char *system_id, const char *public_id, int internal)
{
	(void)name;
	(void)system_id;
	(void)public_id;
	if (internal)
		refuse(user, "a document type with declarations of its own: hwloc exports have none");
}

static int by_number(const void *x, const void *y)
{
	const uint64_t *a = x, *b = y;
	return *a < *b ? -1 : *a > *b;
}

static void check_whole(struct checker *c)
{
	if (c->gp.n)
		qsort(c->gp.at, c->gp.n, sizeof *c->gp.at, by_number);
	for (size_t i = 1; i < c->gp.n; i++)
		if (c->gp.at[i] == c->gp.at[i - 1])
			refuse(c, "gp_index %" PRIu64 " stands at two objects", c->gp.at[i]);
	if (c->roots == 0 || !hwloc_bitmap_intersects(c->pus, c->allowed_pus))
		refuse(c, "no processors in it that may be used");
	else if (!c->v1 && !hwloc_bitmap_intersects(c->nodes, c->allowed_nodes))
		refuse(c, "no NUMA node in it that may be used");
}

enum status hwloc_xml_check(const char *text, size_t len, const char *name, struct error *e)
{
	struct checker *c = calloc(1, sizeof *c);
	if (!c)
		return error_nomem(e, "an hwloc export");
	c->name = name;
	c->e = e;
	c->parser = XML_ParserCreate(NULL);
	c->pus = hwloc_bitmap_alloc();
	c->nodes = hwloc_bitmap_alloc();
	c->allowed_pus = hwloc_bitmap_alloc();
	c->allowed_nodes = hwloc_bitmap_alloc();
	if (!c->parser || !c->pus || !c->nodes || !c->allowed_pus || !c->allowed_nodes) {
		c->st = error_nomem(e, "an hwloc export");
		goto out;
	}
	XML_SetUserData(c->parser, c);
	XML_SetElementHandler(c->parser, on_start, on_end);
	XML_SetStartDoctypeDeclHandler(c->parser, on_doctype);
	if (XML_Parse(c->parser, text, (int)len, XML_TRUE) == XML_STATUS_OK)
		check_whole(c);
	else if (!c->st && XML_GetErrorCode(c->parser) == XML_ERROR_NO_MEMORY)
		c->st = error_nomem(e, "an hwloc export");
	else if (!c->st)
		c->st = error_set(e, ST_INPUT, "%s:%lu: not XML: %s", name,
			(unsigned long)XML_GetCurrentLineNumber(c->parser),
			XML_ErrorString(XML_GetErrorCode(c->parser)));
out:
	for (int i = 0; i < DEPTH_MAX; i++)
		free_sets(&c->open[i]);
	hwloc_bitmap_free(c->pus);
	hwloc_bitmap_free(c->nodes);
	hwloc_bitmap_free(c->allowed_pus);
	hwloc_bitmap_free(c->allowed_nodes);
	vec_free(&c->gp);
	if (c->parser)
		XML_ParserFree(c->parser);
	enum status st = c->st;
	free(c);
	return st;
}
