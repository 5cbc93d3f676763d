/* Links between the GPUs of a host that no switch joins: meshes, bridges, tori. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topology/catalogue/system_parts.h"

#define LINKS_MOST 64 /* of one pair */

/* The hybrid cube mesh of the DGX-1: pairs and widths of the V100's as `nvidia-smi topo -m` prints them (microway's
 * nvidia-smi article); the P100's has the same pairs with one link each, which are its four links a GPU. */
static const char *const cube_mesh_6 =
	"0-1 0-2 0-3:2 0-4:2 1-2:2 1-3 1-5:2 2-3:2 2-6 3-7 4-5 4-6 4-7:2 5-6:2 5-7 6-7:2";
static const char *const cube_mesh_4 = "0-1 0-2 0-3 0-4 1-2 1-3 1-5 2-3 2-6 3-7 4-5 4-6 4-7 5-6 5-7 6-7";

static enum status add(struct wires *w, int64_t a, int64_t b, int64_t width, struct error *e)
{
	struct wire wire = {(int32_t)(a < b ? a : b), (int32_t)(a < b ? b : a), (int32_t)width};
	for (size_t i = 0; i < w->wire.n; i++) {
		struct wire *other = &w->wire.at[i];
		if (other->a == wire.a && other->b == wire.b) {
			other->width += wire.width;
			return ST_OK;
		}
	}
	return vec_push(&w->wire, wire) ? ST_OK : error_nomem(e, "the wiring");
}

static bool joined(const struct wires *w, int32_t a, int32_t b)
{
	for (size_t i = 0; i < w->wire.n; i++)
		if ((w->wire.at[i].a == a && w->wire.at[i].b == b) || (w->wire.at[i].a == b && w->wire.at[i].b == a))
			return true;
	return false;
}

/* ---- a written wiring ---- */

static bool read_number(const char **text, int64_t most, int64_t *value)
{
	char *end;
	if (**text < '0' || **text > '9')
		return false;
	*value = strtoll(*text, &end, 10);
	*text = end;
	return *value <= most;
}

static enum status read_pair(const char *word, int64_t gpus, int64_t pair[3], struct error *e)
{
	const char *p = word;
	int len = (int)strcspn(word, " \t\n");
	pair[2] = 1;
	bool good = read_number(&p, SYSTEM_GPUS, &pair[0]) && *p == '-' &&
	            (p++, read_number(&p, SYSTEM_GPUS, &pair[1]));
	if (good && *p == ':')
		good = (p++, read_number(&p, LINKS_MOST, &pair[2])) && pair[2] > 0;
	if (!good || p != word + len)
		return error_set(e, ST_INPUT,
			"wiring: '%.*s': expected two GPUs and, where there are several, their links, such as 0-3 or "
			"0-3:2",
			len > 40 ? 40 : len, word);
	if (pair[0] >= gpus || pair[1] >= gpus || pair[0] == pair[1])
		return error_set(e, ST_INPUT, "wiring: '%.*s': expected two different GPUs of 0 to %" PRId64, len, word,
			gpus - 1);
	return ST_OK;
}

static enum status written(const char *text, int64_t own, int64_t gpus, struct wires *w, struct error *e)
{
	for (const char *word = text + strspn(text, " \t\n"); *word;) {
		int64_t pair[3] = {0};
		enum status st = read_pair(word, own, pair, e);
		if (st)
			return st;
		if (joined(w, (int32_t)pair[0], (int32_t)pair[1]))
			return error_set(e, ST_INPUT,
				"wiring: GPUs %" PRId64 " and %" PRId64 " are joined twice; write 0-3:2 for two links",
				pair[0], pair[1]);
		for (int64_t base = 0; base + (pair[0] > pair[1] ? pair[0] : pair[1]) < gpus && !st; base += own)
			st = add(w, base + pair[0], base + pair[1], pair[2], e);
		if (st)
			return st;
		word += strcspn(word, " \t\n");
		word += strspn(word, " \t\n");
	}
	return ST_OK;
}

/* ---- wirings of a kind ---- */

static enum status mesh(const struct system_spec *s, int64_t gpus, struct wires *w, struct error *e)
{
	int64_t links = s->device.nvlink_links, each = gpus > 1 ? links / (gpus - 1) : 0;
	if (gpus > 1 && each == 0 && gpus == 8 && links >= 4)
		return written(links >= 6 ? cube_mesh_6 : cube_mesh_4, 8, 8, w, e);
	int64_t island = each || links_are_nvlink(&s->device)
	                         ? gpus
	                         : links + 1; /* other makers join as many as the links reach */
	if (gpus > 1 && each == 0 && island == gpus)
		return error_set(e, ST_INPUT,
			"a mesh of %" PRId64 " GPUs: the %s has %" PRId64
			" links, which do not reach every other one; give the wiring in a system file, or fewer GPUs",
			gpus, s->device.name, links);
	enum status st = ST_OK;
	for (int64_t a = 0; a < gpus && !st; a++)
		for (int64_t b = a + 1; b < gpus && b / island == a / island && !st; b++)
			st = vec_push(&w->wire, ((struct wire){(int32_t)a, (int32_t)b, (int32_t)(each ? each : 1)}))
			             ? ST_OK
			             : error_nomem(e, "the mesh");
	return st;
}

static enum status bridges(const struct system_spec *s, int64_t gpus, struct wires *w, struct error *e)
{
	int64_t links = s->device.nvlink_links > 0 ? s->device.nvlink_links : 1;
	enum status st = ST_OK;
	for (int64_t a = 0; a + 1 < gpus && !st; a += 2)
		st = add(w, a, a + 1, links, e);
	return st;
}

/* Rows as near to a square as the count allows, each row and each column closed to a ring. */
static enum status torus(int64_t gpus, struct wires *w, struct error *e)
{
	int64_t rows = 1;
	for (int64_t r = 1; r * r <= gpus; r++)
		rows = gpus % r == 0 ? r : rows;
	int64_t columns = gpus / rows;
	enum status st = ST_OK;
	for (int64_t i = 0; i < gpus && !st; i++) {
		int64_t r = i / columns, c = i % columns;
		if (columns > 1)
			st = add(w, i, r * columns + (c + 1) % columns, 1, e);
		if (!st && rows > 1)
			st = add(w, i, (r + 1) % rows * columns + c, 1, e);
	}
	return st;
}

enum status system_wires(const struct system_spec *s, int64_t gpus, struct wires *out, struct error *e)
{
	*out = (struct wires){0};
	enum status st = ST_OK;
	if (s->wiring[0] && (s->fabric == FABRIC_MESH || s->fabric == FABRIC_BRIDGE))
		st = written(s->wiring, s->gpus, gpus, out, e);
	else if (s->fabric == FABRIC_MESH)
		st = mesh(s, gpus, out, e);
	else if (s->fabric == FABRIC_BRIDGE)
		st = bridges(s, gpus, out, e);
	else if (s->fabric == FABRIC_TORUS)
		st = torus(gpus, out, e);
	int32_t *count = st ? NULL : calloc((size_t)gpus, sizeof *count);
	if (!st && !count)
		st = error_nomem(e, "the wiring");
	for (size_t i = 0; i < out->wire.n && !st; i++) {
		const struct wire *wire = &out->wire.at[i];
		count[wire->a] += wire->width;
		count[wire->b] += wire->width;
		out->most = count[wire->a] > out->most ? count[wire->a] : out->most;
		out->most = count[wire->b] > out->most ? count[wire->b] : out->most;
	}
	free(count);
	return st;
}
