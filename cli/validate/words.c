/* Maps the machines of published tables to systems. */
#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/array.h"
#include "base/paths.h"
#include "base/phrase.h"
#include "base/suggest.h"
#include "cli/validate/lists.h"
#include "topology/catalogue/device.h"
#include "topology/catalogue/system.h"

bool multiplies_tf32(const char *gpu)
{
	static const char *const older[] = {"P100", "V100", "T4", "Quadro RTX", "RTX 20"};
	for (size_t i = 0; i < COUNT(older); i++)
		if (strncmp(gpu, older[i], strlen(older[i])) == 0)
			return false;
	return true;
}

/* ---- machines ---- */

/* What a message says of an unknown GPU: the nearest id, or else the nearest machine. */
static struct hint gpu_hint(const struct word_lists *lists, const char *gpu, char *const *ids, size_t n)
{
	VEC(const char *) machines = {0};
	struct hint h = suggest(gpu, (const char *const *)ids, n, "list gpus");
	bool room = !suggest_nearest(gpu, (const char *const *)ids, n);
	for (size_t i = 0; i < lists->machine.n && room; i++)
		room = vec_push(&machines, lists->machine.at[i].name);
	if (room && suggest_nearest(gpu, machines.at, machines.n))
		h = suggest(gpu, machines.at, machines.n, NULL);
	vec_free(&machines);
	return h;
}

/* Takes the name of a file of the catalogue ("TPU v6e" is tpu-v6e), or refuses. */
static enum status gpu_by_file(const struct word_lists *lists, const char *gpu, const char *variant, char id[DEVICE_ID],
	struct error *e)
{
	char **names = NULL;
	size_t n = 0;
	enum status st = path_catalogue_names("gpus", &names, &n, e);
	for (size_t i = 0; i < n && !*variant && !id[0]; i++)
		if (phrase_match(names[i], gpu, true))
			snprintf(id, DEVICE_ID, "%s", names[i]);
	if (!st && !id[0] && !*gpu)
		st = error_set(e, ST_INPUT, "gpu: none is named (--system NAME says what ran)");
	else if (!st && !id[0])
		st = error_set(e, ST_INPUT, "gpu: the catalogue does not know the %s%s%s%s", gpu, *variant ? " " : "",
			variant, gpu_hint(lists, gpu, names, n).text);
	path_names_free(names, n);
	return st;
}

/* The form that a GPU's links tell: only modules have NVLink without a bridge. */
static const char *form_of(const char *intra)
{
	const bool linked = strcasestr(intra, "NVLink") || strcasestr(intra, "NVSwitch") || strcasestr(intra, "SXM");
	return linked && !strcasestr(intra, "bridge") ? "SXM" : strcasestr(intra, "PCIe") ? "PCIe" : "";
}

/* Writes the words of text: "HGX" and "DGX" as "SXM", whose modules those machines have; with `formless` none of them,
 * for a module that has no other form (H20) or is told apart by its memory (H100 of 96 GB). */
static void write_words(const char *text, bool formless, char *out, size_t size)
{
	static const char *const modules[] = {"HGX", "DGX", "SXM", "OAM"};
	size_t len = 0;
	out[0] = '\0';
	for (size_t n; *(text += strspn(text, " -")); text += n) {
		const char *word = text;
		n = strcspn(text, " -");
		bool module = false;
		for (size_t i = 0; i < COUNT(modules); i++)
			module = module || strncasecmp(word, modules[i], strlen(modules[i])) == 0;
		if (module && formless)
			continue;
		const bool machine = module && strncasecmp(word + 1, "GX", 2) == 0;
		const char *said = machine ? "SXM" : word, *gap = len ? " " : "";
		const int wrote = snprintf(out + len, size - len, "%s%.*s", gap, machine ? 3 : (int)n, said);
		len += len + (size_t)wrote < size ? (size_t)wrote : 0;
	}
}

/* Cuts a count of GPUs off the end: "H100 x8", "H100-SXM5-80GB × 8". */
static void cut_count(char *gpu)
{
	static const char *const signs[] = {" x", " X", " *", " \xc3\x97"};
	for (size_t i = 0; i < COUNT(signs); i++) {
		char *at = strstr(gpu, signs[i]);
		const char *rest = at ? at + strlen(signs[i]) + strspn(at + strlen(signs[i]), " ") : "";
		if (*rest && strspn(rest, "0123456789") == strlen(rest))
			*at = '\0';
	}
}

static enum status gpu_words(const struct word_lists *lists, const char *cell, const char *variant, const char *intra,
	char id[DEVICE_ID], struct error *e)
{
	char gpu[96], plain[96], written[208], shown[4][208] = {"", "", "", ""};
	enum status st = ST_OK;
	cell = pass_leading_count(cell);
	snprintf(gpu, sizeof gpu, "%.*s", (int)strcspn(cell, "("), cell); /* "MI250X (1 GCD)" */
	cut_count(gpu);
	snprintf(plain, sizeof plain, "%.*s", (int)strcspn(variant, "("), variant); /* "SXM 40GB (AWS p4d)" */
	snprintf(shown[0], sizeof shown[0], "%s %s", gpu, plain);
	if (strncmp(plain, "PCIe", 4) == 0) /* a card that has no other form is not called one */
		snprintf(shown[1], sizeof shown[1], "%s", gpu);
	else if (!strstr(shown[0], "SXM") && !strstr(shown[0], "PCIe"))
		snprintf(shown[1], sizeof shown[1], "%s %s %s", gpu, form_of(intra), plain);
	snprintf(written, sizeof written, "%s", shown[0]);
	write_words(written, false, shown[2], sizeof shown[2]);
	write_words(written, true, shown[3], sizeof shown[3]);
	const struct word *w = word_of_cell(&lists->gpu, written);
	if (w)
		snprintf(id, DEVICE_ID, "%s", w->means.value);
	for (size_t i = 0; i < COUNT(shown) && !st && !id[0]; i++)
		if (shown[i][0])
			st = device_by_shown_name(shown[i], 0, id, e);
	const char *named = strlen(cell) < sizeof gpu ? gpu : cell; /* one that is cut may end within a character */
	return st || id[0] ? st : gpu_by_file(lists, named, variant, id, e);
}

/* One NIC a GPU, as the vendors' own machines of that generation have them: where rows do not print the network. */
static const char *default_network(const char *id)
{
	return strncmp(id, "a100", 4) == 0 ? "200" : strncmp(id, "v100", 4) == 0 ? "100" : "400";
}

/* The machine that a row names: a whole cell is its name. */
struct named_machine {
	bool by_gpu; /* the cell of the GPU is the name, or the one of its variant */
	struct system_spec *system;
};

/* Finds it; out->system NULL: the row names none. The caller frees it. */
static enum status machine_named(const struct word_lists *lists, const struct csv *t, size_t row,
	struct named_machine *out, struct error *e)
{
	static const char *const columns[] = {"gpu", "gpu_variant", "interconnect_inter", "interconnect_intra"};
	const struct word *w = NULL;
	size_t c = 0;
	*out = (struct named_machine){0};
	while (c < COUNT(columns) && !(w = word_of_cell(&lists->machine, csv_get(t, row, columns[c]))))
		c++;
	if (!w)
		return ST_OK;
	if (!(out->system = calloc(1, sizeof *out->system)))
		return error_nomem(e, "a row's machine");
	out->by_gpu = c < 2;
	return system_load(w->means.value, out->system, e);
}

/* Writes the NICs of a host as a word of the system line: those of the column `nics`, else those of `inter`, else
 * those of the machine that is named, else the usual ones. */
static enum network_known nic_words(const struct word_lists *lists, const struct csv *t, size_t row, const char *inter,
	int64_t host, const char *id, const struct system_spec *named, char out[64])
{
	struct nics n;
	if (network_read(lists, csv_get(t, row, "nics"), host, &n) || network_read(lists, inter, host, &n)) {
		snprintf(out, 64, "nic:%" PRId64 "x%.6gGb/s", n.count, n.rate_Gbps);
		return NETWORK_NAMED;
	}
	if (named && named->nics > 0) {
		snprintf(out, 64, "nic:%" PRId64 "x%.6gGb/s", named->nics, named->nic_Bps * 8 / 1e9);
		return NETWORK_NAMED;
	}
	snprintf(out, 64, "nic:%" PRId64 "x%sGb/s", host, default_network(id));
	return NETWORK_ASSUMED;
}

const char *network_known_name(enum network_known n)
{
	return n == NETWORK_NAMED ? "named" : n == NETWORK_ASSUMED ? "assumed" : NULL;
}

/* Hosts of one NVLink domain: NVL72 racks are used in parts that divide the job. */
static int64_t domain_of(int64_t n_gpus)
{
	for (int64_t d = 72; d >= 4; d -= 4)
		if (n_gpus % d == 0 && d <= n_gpus)
			return d;
	return 4;
}

/* A row whose hosts have as many GPUs as a board without a switch, and no switch, ran on such boards. */
static bool without_switch(const struct csv *t, size_t row, const struct device_spec *d)
{
	const double n = cell_number(t, row, "gpus_per_node");
	return n > 1 && strcasecmp(csv_get(t, row, "interconnect_intra"), "NVLink") == 0 &&
	       (n == (double)d->nvlink_board || n == (double)d->nvlink_direct);
}

/* How the machine that is named joins its GPUs, as a word of the system line: where the row does not say it. */
static const char *joined_of(const struct system_spec *s)
{
	return s->fabric == FABRIC_NONE ? " pcie" : s->fabric == FABRIC_MESH ? " mesh" : "";
}

/* Writes the system line of a row whose GPU is known. */
static enum status write_line(const struct word_lists *lists, const struct csv *t, size_t row, const char *id,
	const struct system_spec *named, struct row_system *out, struct error *e)
{
	const char *intra = csv_get(t, row, "interconnect_intra"), *inter = csv_get(t, row, "interconnect_inter");
	const bool rack = strcasestr(intra, "NVL72") || (named && named->gpus == 72);
	char nic[64];
	int64_t n = cell_whole(t, row, "n_gpus"), host = cell_whole(t, row, "gpus_per_node");
	struct device_spec d;
	if (n < 1)
		return error_set(e, ST_INPUT, "n_gpus: '%s' is no number of GPUs", csv_get(t, row, "n_gpus"));
	host = rack ? domain_of(n) : host >= 1 ? host : named ? named->gpus : 8;
	host = host > n ? n : host;
	if (n % host)
		return error_set(e, ST_INPUT, "n_gpus: %" PRId64 " GPUs do not fill hosts of %" PRId64, n, host);
	*out = (struct row_system){.nodes = n / host, .per_host = host};
	const enum network_known known = nic_words(lists, t, row, inter, host, id, named, nic);
	out->network = out->nodes > 1 ? known : NETWORK_NONE;
	if (device_load(id, &d, e))
		return e->status;
	const bool direct = without_switch(t, row, &d);
	if (direct) /* or a part of the board runs */
		host = cell_whole(t, row, "gpus_per_node");
	const char *fabric = network_fabric(lists, csv_get(t, row, "fabric"), inter);
	const char *joined = strncasecmp(intra, "PCIe", 4) == 0 ? " pcie"
	                     : direct                           ? " mesh"
	                     : named && !*intra                 ? joined_of(named)
	                                                        : "";
	if (!fabric && named)
		fabric = named->network.id;
	snprintf(out->line, sizeof out->line, "gpu:%" PRId64 " %s%s %s%s%s", host, id, joined, nic,
		fabric ? " fabric:" : "", fabric ? fabric : "");
	return ST_OK;
}

enum status system_words(const struct csv *t, size_t row, struct row_system *out, struct error *e)
{
	const struct word_lists *lists;
	struct named_machine named = {0};
	char id[DEVICE_ID] = "";
	enum status st = word_lists_load(&lists, e);
	if (!st)
		st = machine_named(lists, t, row, &named, e);
	if (!st && named.by_gpu)
		snprintf(id, sizeof id, "%s", named.system->device.id);
	else if (!st)
		st = gpu_words(lists, csv_get(t, row, "gpu"), csv_get(t, row, "gpu_variant"),
			csv_get(t, row, "interconnect_intra"), id, e);
	if (!st)
		st = write_line(lists, t, row, id, named.system, out, e);
	free(named.system);
	return st;
}

/* ---- tables of collectives ---- */

/* Hosts by the words of the column intra; the first whose word is there, whatever the case. joined "": as the catalogue
 * has the GPU. */
static const struct {
	const char *word, *joined;
	int64_t gpus; /* of a host; 0: as many as ran */
} boxes[] = {{"4-GPU all-to-all", "mesh", 4}, {"NVL72", "", 0}, {"NVSwitch", "nvswitch", 8}, {"bridge", "bridge", 0},
	{"PCIe", "pcie", 0}, {LOG_INTRA, "", 0}, {"NVLink", "", 0}, {"SXM", "", 0}, {"xGMI", "", 0},
	{"Infinity Fabric", "", 0}, {"ICI", "", 0}};

/* "2.19.3" -> 21903 */
static int version_words(const char *cell)
{
	char *end;
	long major = strtol(cell, &end, 10), minor = *end == '.' ? strtol(end + 1, &end, 10) : 0,
	     patch = *end == '.' ? strtol(end + 1, &end, 10) : 0;
	return (int)(10000 * major + 100 * minor + patch);
}

enum status collective_words(const struct csv *t, size_t row, struct collective_run *out, struct error *e)
{
	const struct word_lists *lists;
	if (word_lists_load(&lists, e))
		return e->status;
	const char *intra = csv_get(t, row, "intra"), *inter = csv_get(t, row, "inter"),
		   *fabric = network_fabric(lists, csv_get(t, row, "fabric"), inter);
	char id[DEVICE_ID] = "", nic[64] = "";
	size_t box = 0, n_boxes = COUNT(boxes);
	*out = (struct collective_run){.ranks = atoll(csv_get(t, row, "n_gpus")),
		.hosts = atoll(csv_get(t, row, "n_nodes")),
		.one_process = strcmp(csv_get(t, row, "one_process"), "true") == 0,
		.version = version_words(csv_get(t, row, "nccl_version"))};
	if (out->ranks < 2 || out->hosts < 1 || out->ranks % out->hosts)
		return error_set(e, ST_INPUT,
			"%" PRId64 " GPUs on %" PRId64 " hosts: expected at least two, as many on each", out->ranks,
			out->hosts);
	out->per_host = out->ranks / out->hosts;
	if (*csv_get(t, row, "system")) {
		snprintf(out->line, sizeof out->line, "%s", csv_get(t, row, "system"));
		out->network = out->hosts > 1 ? NETWORK_NAMED : NETWORK_NONE;
		return ST_OK;
	}
	while (box < n_boxes && !strcasestr(intra, boxes[box].word))
		box++;
	if (box == n_boxes) {
		const char *known[COUNT(boxes)];
		for (size_t i = 0; i < n_boxes; i++)
			known[i] = boxes[i].word;
		return error_set(e, ST_INPUT, "intra: '%.60s' is not known%s", intra,
			suggest_known(intra, known, n_boxes).text);
	}
	enum status st = gpu_words(lists, csv_get(t, row, "gpu"), "", intra, id, e);
	if (st)
		return st;
	if (strcasestr(intra, "NVL72") && out->ranks % domain_of(out->ranks) == 0) {
		out->per_host = domain_of(out->ranks); /* hosts are trays; their GPUs are one NVLink domain */
		out->hosts = out->ranks / out->per_host;
	}
	const char *joined = boxes[box].joined;
	const int64_t of_box = boxes[box].gpus > 0 ? boxes[box].gpus : out->per_host;
	if (out->hosts > 1)
		out->network = nic_words(lists, t, row, inter, of_box, id, NULL, nic);
	snprintf(out->line, sizeof out->line, "gpu:%" PRId64 " %s %s %s%s%s", of_box, id, joined, nic,
		out->hosts > 1 && fabric ? " fabric:" : "", out->hosts > 1 && fabric ? fabric : "");
	return ST_OK;
}
