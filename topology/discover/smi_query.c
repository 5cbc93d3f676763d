/* nvidia-smi --query-gpu=... --format=csv: one line a GPU, cells between commas, units behind the numbers unless
 * `nounits` was asked for, words in brackets where the driver has no answer. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/quantity.h"
#include "topology/discover/discover.h"
#include "topology/discover/join.h"
#include "topology/discover/merge.h"
#include "topology/discover/smi_query.h"

#define COLUMNS_MOST 64
#define CELL 128

enum field {
	F_INDEX,
	F_PCI,
	F_NAME,
	F_MEMORY,
	F_CC,
	F_GEN,
	F_GEN_MAX,
	F_WIDTH,
	F_WIDTH_MAX,
	F_CLOCK,
	F_CLOCK_MAX,
	F_POWER,
	F_POWER_DEFAULT,
	F_THROTTLE,
	FIELDS
};

/* Names as asked for, as the header has them, and as other driver versions call them (nvidia-smi --help-query-gpu). In
 * SMI_QUERY's order, which is the order of columns without a header. */
static const struct {
	const char *names[4];
	enum unit unit;
	const char *word; /* unit of a bare number */
	double most;
} fields[FIELDS] = {
	[F_INDEX] = {{"index"}, UNIT_NONE, "", 1023},
	[F_PCI] = {{"pci.bus_id", "gpu_bus_id"}, UNIT_NONE, "", 0},
	[F_NAME] = {{"name", "gpu_name"}, UNIT_NONE, "", 0},
	[F_MEMORY] = {{"memory.total"}, UNIT_BYTE, "MiB", 1e15},
	[F_CC] = {{"compute_cap"}, UNIT_NONE, "", 99},
	[F_GEN] = {{"pcie.link.gen.current", "pcie.link.gen.gpucurrent"}, UNIT_NONE, "", 9},
	[F_GEN_MAX] = {{"pcie.link.gen.max"}, UNIT_NONE, "", 9},
	[F_WIDTH] = {{"pcie.link.width.current"}, UNIT_NONE, "", 32},
	[F_WIDTH_MAX] = {{"pcie.link.width.max"}, UNIT_NONE, "", 32},
	[F_CLOCK] = {{"clocks.sm", "clocks.current.sm"}, UNIT_HERTZ, "MHz", 1e11},
	[F_CLOCK_MAX] = {{"clocks.max.sm"}, UNIT_HERTZ, "MHz", 1e11},
	[F_POWER] = {{"power.limit", "enforced.power.limit"}, UNIT_WATT, "W", 1e5},
	[F_POWER_DEFAULT] = {{"power.default_limit"}, UNIT_WATT, "W", 1e5},
	[F_THROTTLE] = {{"clocks_throttle_reasons.active", "clocks_event_reasons.active"}, UNIT_NONE, "", 0},
};

struct query {
	const char *name;
	int line;
	struct graph *g;
	bool *listed;
	size_t most, n_columns, rows, lost;
	int field[COLUMNS_MOST]; /* of each column; -1: none that is used */
	bool has_header;
	struct error *e;
};

struct cells {
	size_t n;
	char at[COLUMNS_MOST][CELL];
};

static bool blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

/* Names and messages end up on a terminal. */
static void copy_printable(char *out, const char *from, size_t len)
{
	for (size_t i = 0; i < len; i++)
		out[i] = (unsigned char)from[i] < 0x20 || from[i] == 0x7f ? '?' : from[i];
	out[len] = '\0';
}

/* False when there are more cells, or longer ones, than any query has. */
static bool split(const char *line, size_t len, struct cells *c)
{
	c->n = 0;
	for (size_t at = 0; at <= len;) {
		size_t end = at;
		while (end < len && line[end] != ',')
			end++;
		size_t from = at, to = end;
		while (from < to && blank(line[from]))
			from++;
		while (to > from && blank(line[to - 1]))
			to--;
		if (c->n == COLUMNS_MOST || to - from >= CELL)
			return false;
		copy_printable(c->at[c->n++], line + from, to - from);
		at = end + 1;
	}
	return true;
}

/* The field of a header cell, "memory.total [MiB]"; -1: none that is used. */
static int field_of(const char *cell)
{
	size_t len = strcspn(cell, " [");
	for (int f = 0; f < FIELDS; f++)
		for (size_t i = 0; i < COUNT(fields[f].names) && fields[f].names[i]; i++)
			if (strlen(fields[f].names[i]) == len && strncmp(cell, fields[f].names[i], len) == 0)
				return f;
	return -1;
}

static bool is_header(const struct cells *c)
{
	size_t known = 0;
	for (size_t i = 0; i < c->n; i++)
		known += field_of(c->at[i]) >= 0;
	return known > 0 && known * 2 >= c->n;
}

static enum status take_header(struct query *q, const struct cells *c)
{
	bool joins = false;
	for (size_t i = 0; i < c->n; i++) {
		q->field[i] = field_of(c->at[i]);
		joins |= q->field[i] == F_INDEX || q->field[i] == F_PCI;
		for (size_t k = 0; k < i; k++)
			if (q->field[k] == q->field[i] && q->field[i] >= 0)
				q->field[i] = -1; /* asked for twice: the first counts */
	}
	q->n_columns = c->n;
	q->has_header = true;
	return joins ? ST_OK
	             : error_set(q->e, ST_INPUT,
			       "%s:%d: neither index nor pci.bus_id is among the columns: nobody can say which GPU a "
			       "row is",
			       q->name, q->line);
}

/* Returns whether a line is a message that nvidia-smi prints when a GPU does not answer, in place of a row or before
 * all rows. */
static bool is_message(const char *line, size_t len)
{
	static const char *const words[] = {"Unable to determine", "is lost", "No devices were found", "has failed",
		"Failed to", "requires reset", "Insufficient Permissions"};
	for (size_t i = 0; i < COUNT(words); i++)
		if (memmem(line, len, words[i], strlen(words[i])))
			return true;
	return len >= 7 && (strncasecmp(line, "warning", 7) == 0 || strncasecmp(line, "error: ", 7) == 0);
}

static bool is_unknown(const char *cell)
{
	static const char *const words[] = {"", "N/A", "Not Supported", "Not Found", "Insufficient Permissions",
		"No data"};
	size_t len = strlen(cell);
	bool bracketed = len >= 2 && cell[0] == '[' && cell[len - 1] == ']';
	for (size_t i = 0; i < COUNT(words); i++)
		if (strlen(words[i]) == len - 2 * bracketed &&
			strncasecmp(cell + bracketed, words[i], len - 2 * bracketed) == 0)
			return true;
	return false;
}

static bool is_trouble(const char *cell)
{
	return cell[0] == '[' || strncmp(cell, "ERR!", 4) == 0 || strcasecmp(cell, "Unknown Error") == 0;
}

static enum status bad_cell(const struct query *q, int field, const char *cell, const char *expected)
{
	return error_set(q->e, ST_INPUT, "%s:%d: %s: '%s' is not %s", q->name, q->line, fields[field].names[0], cell,
		expected);
}

/* A number, with the unit that stands behind it or the field's own. */
static enum status number(const struct query *q, int field, const char *cell, double *value)
{
	char text[CELL + 8];
	struct error ignored = {0};
	bool bare = cell[0] && isdigit((unsigned char)cell[strlen(cell) - 1]);
	snprintf(text, sizeof text, "%s%s", cell, bare ? fields[field].word : "");
	char *gap = strchr(text, ' '); /* "80995 MiB" */
	if (gap)
		memmove(gap, gap + 1, strlen(gap));
	if (quantity_parse(text, fields[field].unit, value, &ignored) || *value < 0 || *value > fields[field].most)
		return bad_cell(q, field, cell,
			fields[field].unit == UNIT_NONE ? "a number in range" : "a quantity in range");
	return ST_OK;
}

static enum status compute_capability(const struct query *q, const char *cell, int32_t *cc)
{
	int major = 0, minor = 0, end = -1;
	if (sscanf(cell, "%2d.%1d%n", &major, &minor, &end) != 2 || end < 0 || cell[end] || major < 1 || minor < 0)
		return bad_cell(q, F_CC, cell, "a compute capability like 9.0");
	*cc = major * 10 + minor;
	return ST_OK;
}

static enum status throttle_bits(const struct query *q, const char *cell, struct gpu_facts *gpu)
{
	char *end = NULL;
	bool hex = cell[0] == '0' && (cell[1] == 'x' || cell[1] == 'X') && isxdigit((unsigned char)cell[2]);
	gpu->throttle = hex ? strtoull(cell, &end, 16) : 0;
	return hex && !*end ? ST_OK : bad_cell(q, F_THROTTLE, cell, "a mask like 0x0000000000000004");
}

static enum status take_cell(const struct query *q, int field, const char *cell, struct vertex *v, int64_t *index)
{
	double x = 0;
	enum status st = ST_OK;
	if (field == F_PCI)
		return graph_normal_pci(cell, v->pci) ? ST_OK : bad_cell(q, field, cell, "a PCI address");
	if (field == F_NAME) {
		snprintf(v->name, sizeof v->name, "%.*s", (int)sizeof v->name - 1, cell);
		return ST_OK;
	}
	if (field == F_CC)
		return compute_capability(q, cell, &v->gpu.compute_capability);
	if (field == F_THROTTLE)
		return throttle_bits(q, cell, &v->gpu);
	if ((st = number(q, field, cell, &x)))
		return st;
	int32_t whole = (int32_t)(fields[field].unit == UNIT_NONE ? x : 0);
	if (fields[field].unit == UNIT_NONE && whole != x)
		return bad_cell(q, field, cell, "a whole number");
	switch (field) {
	case F_INDEX: *index = whole; break;
	case F_MEMORY: v->gpu.mem_B = (uint64_t)x; break;
	case F_GEN: v->gpu.pcie_gen = whole; break;
	case F_GEN_MAX: v->gpu.pcie_gen_max = whole; break;
	case F_WIDTH: v->gpu.pcie_width = whole; break;
	case F_WIDTH_MAX: v->gpu.pcie_width_max = whole; break;
	case F_CLOCK: v->gpu.clock_Hz = x; break;
	case F_CLOCK_MAX: v->gpu.clock_max_Hz = x; break;
	case F_POWER: v->gpu.power_limit_W = x; break;
	default: v->gpu.power_default_W = x; break;
	}
	return st;
}

/* The GPU of the graph that the row speaks of; a new one with a slot of its own where the graph has none. */
static enum status place(struct query *q, const struct vertex *v, int64_t index, int32_t *at)
{
	*at = v->pci[0] ? graph_find_pci(q->g, v->pci) : -1;
	if (*at >= 0 && q->g->vertex.at[*at].kind != VERTEX_GPU)
		return error_set(q->e, ST_INPUT, "%s:%d: the device at %s is a %s, not a GPU", q->name, q->line, v->pci,
			vertex_kind_name(q->g->vertex.at[*at].kind));
	if (*at < 0 && index >= 0 && (size_t)index < q->g->gpu.n) {
		int32_t same = q->g->gpu.at[index];
		if (!v->pci[0] || !q->g->vertex.at[same].pci[0])
			*at = same;
	}
	if (*at >= 0)
		return ST_OK;
	*at = join_add(q->g, v);
	if (*at < 0)
		return error_nomem(q->e, "a GPU");
	int32_t gen = v->gpu.pcie_gen > v->gpu.pcie_gen_max ? v->gpu.pcie_gen : v->gpu.pcie_gen_max;
	return join_attach(q->g, *at, gen, v->gpu.pcie_width, SAID_BY_SMI_QUERY, q->e);
}

static enum status take_row(struct query *q, const struct cells *c)
{
	struct vertex v = graph_vertex_init(VERTEX_GPU, SAID_BY_SMI_QUERY);
	const char *trouble = NULL;
	int64_t index = -1;
	int32_t at = -1;
	enum status st = ST_OK;
	for (size_t i = 0; i < c->n && !st; i++) {
		int field = q->field[i];
		if (field < 0 || is_unknown(c->at[i]))
			continue;
		if (is_trouble(c->at[i]))
			trouble = trouble ? trouble : c->at[i];
		else
			st = take_cell(q, field, c->at[i], &v, &index);
	}
	if (st)
		return st;
	if (trouble) {
		char which[GRAPH_LABEL + GRAPH_PCI] = "A GPU";
		if (index >= 0)
			snprintf(which, sizeof which, "GPU%lld", (long long)index);
		else if (v.pci[0])
			snprintf(which, sizeof which, "The GPU at %s", v.pci);
		st = graph_remark(q->g, false, q->e,
			"%s does not answer the driver in full: nvidia-smi says %.60s; what it lacks is left out",
			which, trouble);
	}
	if (st || (index < 0 && !v.pci[0])) {
		q->lost += !st;
		return st;
	}
	if ((st = place(q, &v, index, &at)) || (st = join_gpu(q->g, at, &v, SAID_BY_SMI_QUERY, q->e)))
		return st;
	q->rows++;
	for (size_t i = 0; i < q->g->gpu.n && i < q->most; i++)
		if (q->g->gpu.at[i] == at)
			q->listed[i] = true;
	return ST_OK;
}

static enum status take_line(struct query *q, const char *line, size_t len)
{
	struct cells c;
	bool cells = !memchr(line, '\0', len) && split(line, len, &c);
	if (is_message(line, len) && (!cells || c.n != q->n_columns || c.n == 1)) {
		char said[180];
		copy_printable(said, line, len < sizeof said ? len : sizeof said - 1);
		q->lost++;
		return graph_remark(q->g, false, q->e, "nvidia-smi: %s", said);
	}
	if (!cells)
		return error_set(q->e, ST_INPUT, "%s:%d: this is no output of nvidia-smi --query-gpu --format=csv",
			q->name, q->line);
	if (is_header(&c) && (q->has_header || q->rows == 0))
		return take_header(q, &c);
	if (c.n != q->n_columns)
		return error_set(q->e, ST_INPUT, "%s:%d: %zu cells where %s has %zu columns", q->name, q->line, c.n,
			q->has_header ? "the header" : "nvidia-smi --query-gpu=index,pci.bus_id,...", q->n_columns);
	return take_row(q, &c);
}

enum status join_unlisted(struct graph *g, bool *listed, size_t n, size_t *missing, struct error *e)
{
	static const char *const others[] = {"AMD", "ATI", "Instinct", "Radeon", "Intel"};
	char list[128];
	size_t rows = 0;
	*missing = 0;
	for (size_t i = 0; i < n; i++) {
		const char *name = g->vertex.at[g->gpu.at[i]].name;
		bool other = false;
		for (size_t k = 0; k < COUNT(others); k++)
			other |= strstr(name, others[k]) != NULL;
		rows += listed[i];
		listed[i] = !listed[i] && !other;
		*missing += listed[i];
	}
	if (*missing == 0)
		return ST_OK;
	join_gpu_list(list, sizeof list, listed, n);
	return graph_remark(g, true, e,
		"%s has %zu GPUs, nvidia-smi lists %zu: %s %s missing there (not handed to this container, or off the "
		"bus)",
		evidence_name(g->source), n, rows, list, *missing == 1 ? "is" : "are");
}

enum status join_query(const char *text, size_t len, const char *name, struct graph *g, bool *listed, size_t most,
	struct error *e)
{
	struct query q = {.name = name, .g = g, .listed = listed, .most = most, .n_columns = FIELDS, .e = e};
	for (int f = 0; f < FIELDS; f++)
		q.field[f] = f;
	for (size_t at = 0; at < len;) {
		const char *end = memchr(text + at, '\n', len - at);
		size_t n = end ? (size_t)(end - (text + at)) : len - at, blanks = 0;
		q.line++;
		while (blanks < n && blank(text[at + blanks]))
			blanks++;
		enum status st = blanks < n ? take_line(&q, text + at + blanks, n - blanks) : ST_OK;
		if (st)
			return st;
		at += n + 1;
	}
	if (q.rows == 0 && q.lost == 0)
		return q.has_header
		               ? graph_remark(g, false, e, "nvidia-smi lists no GPU")
		               : error_set(e, ST_INPUT,
					 "%s:1: empty: expected what nvidia-smi --query-gpu --format=csv prints", name);
	return ST_OK;
}

enum status smi_query_read(const char *text, size_t len, const char *name, struct graph *g, struct error *e)
{
	size_t n = g->gpu.n, missing, rows = 0;
	bool *listed = calloc(n + 1, sizeof *listed);
	if (!listed)
		return error_nomem(e, "a list of GPUs");
	enum status st = join_query(text, len, name, g, listed, n, e);
	for (size_t i = 0; i < n; i++)
		rows += listed[i];
	if (!st && rows > 0)
		st = join_unlisted(g, listed, n, &missing, e);
	free(listed);
	return st;
}
