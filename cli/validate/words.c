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
#include "cli/validate/validate.h"
#include "topology/catalogue/device.h"

bool multiplies_tf32(const char *gpu)
{
	static const char *const older[] = {"P100", "V100", "T4", "Quadro RTX", "RTX 20"};
	for (size_t i = 0; i < COUNT(older); i++)
		if (strncmp(gpu, older[i], strlen(older[i])) == 0)
			return false;
	return true;
}

/* ---- machines ---- */

/* GPUs whose names in tables name no product of the catalogue by themselves. */
static const char *const gpus[][3] = {
	/* gpu, how gpu_variant begins, id */
	{"GB200", "", "gb200"}, /* NVL72 */
	{"GB300", "", "gb300"},
	{"B200", "", "b200"}, /* of 180 or 192 GB as sold, SXM or SXM6 */
	{"B300", "", "b300"},
	{"V100", "SXM2 32GB", "v100-sxm-32"},
	{"V100", "SXM3 32GB", "v100-sxm-32"},
	{"V100", "SXM2 16GB", "v100-sxm-16"},
};

/* Takes the name of a file of the catalogue ("TPU v6e" is tpu-v6e), or refuses. */
static enum status gpu_by_file(const char *gpu, const char *variant, char id[DEVICE_ID], struct error *e)
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
			variant, suggest(gpu, (const char *const *)names, n, "list gpus").text);
	path_names_free(names, n);
	return st;
}

/* The form that a GPU's links tell: only modules have NVLink without a bridge. */
static const char *form_of(const char *intra)
{
	const bool linked = strcasestr(intra, "NVLink") || strcasestr(intra, "NVSwitch") || strcasestr(intra, "SXM");
	return linked && !strcasestr(intra, "bridge") ? "SXM" : strcasestr(intra, "PCIe") ? "PCIe" : "";
}

/* "80G" is 80GB. */
static void end_bytes(char *shown, size_t size)
{
	const size_t n = strlen(shown);
	if (n >= 2 && n + 1 < size && shown[n - 1] == 'G' && isdigit((unsigned char)shown[n - 2]))
		memcpy(shown + n, "B", 2);
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

static enum status gpu_words(const char *gpu, const char *variant, const char *intra, char id[DEVICE_ID],
	struct error *e)
{
	char plain[96], written[160], shown[4][160] = {"", "", "", ""};
	enum status st = ST_OK;
	for (size_t i = 0; i < COUNT(gpus); i++)
		if (strcmp(gpu, gpus[i][0]) == 0 && strncmp(variant, gpus[i][1], strlen(gpus[i][1])) == 0) {
			strcpy(id, gpus[i][2]);
			return ST_OK;
		}
	snprintf(plain, sizeof plain, "%.*s", (int)strcspn(variant, "("), variant); /* "SXM 40GB (AWS p4d)" */
	snprintf(shown[0], sizeof shown[0], "%s %s", gpu, plain);
	if (strncmp(plain, "PCIe", 4) == 0) /* a card that has no other form is not called one */
		snprintf(shown[1], sizeof shown[1], "%s", gpu);
	else if (!strstr(shown[0], "SXM") && !strstr(shown[0], "PCIe"))
		snprintf(shown[1], sizeof shown[1], "%s %s %s", gpu, form_of(intra), plain);
	snprintf(written, sizeof written, "%s", shown[0]);
	write_words(written, false, shown[2], sizeof shown[2]);
	write_words(written, true, shown[3], sizeof shown[3]);
	for (size_t i = 0; i < COUNT(shown); i++)
		end_bytes(shown[i], sizeof shown[i]);
	for (size_t i = 0; i < COUNT(shown) && !st && !id[0]; i++)
		if (shown[i][0])
			st = device_by_shown_name(shown[i], 0, id, e);
	return st || id[0] ? st : gpu_by_file(gpu, variant, id, e);
}

/* One NIC a GPU, as the vendors' own machines of that generation have them: where rows do not print the network. */
static const char *default_network(const char *id)
{
	return strncmp(id, "a100", 4) == 0 ? "200" : strncmp(id, "v100", 4) == 0 ? "100" : "400";
}

/* Writes the NICs of a host as a word of the system line: those of the column `nics`, else those of `inter`, else
 * the usual ones. */
static enum network_known nic_words(const struct csv *t, size_t row, const char *inter, int64_t host, const char *id,
	char out[64])
{
	struct nics n;
	if (network_read(csv_get(t, row, "nics"), host, &n) || network_read(inter, host, &n)) {
		snprintf(out, 64, "nic:%" PRId64 "x%.6gGb/s", n.count, n.rate_Gbps);
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

enum status system_words(const struct csv *t, size_t row, struct row_system *out, struct error *e)
{
	const char *intra = csv_get(t, row, "interconnect_intra"), *inter = csv_get(t, row, "interconnect_inter");
	char id[DEVICE_ID] = "", nic[64];
	int64_t n = cell_whole(t, row, "n_gpus"), host = cell_whole(t, row, "gpus_per_node");
	enum status st = gpu_words(csv_get(t, row, "gpu"), csv_get(t, row, "gpu_variant"), intra, id, e);
	if (st)
		return st;
	if (n < 1)
		return error_set(e, ST_INPUT, "n_gpus: '%s' is no number of GPUs", csv_get(t, row, "n_gpus"));
	host = strcasestr(intra, "NVL72") ? domain_of(n) : host < 1 ? 8 : host;
	host = host > n ? n : host;
	if (n % host)
		return error_set(e, ST_INPUT, "n_gpus: %" PRId64 " GPUs do not fill hosts of %" PRId64, n, host);
	*out = (struct row_system){.nodes = n / host, .per_host = host};
	const enum network_known known = nic_words(t, row, inter, host, id, nic);
	out->network = out->nodes > 1 ? known : NETWORK_NONE;
	struct device_spec d;
	if ((st = device_load(id, &d, e)))
		return st;
	const bool direct = without_switch(t, row, &d);
	if (direct) /* or a part of the board runs */
		host = cell_whole(t, row, "gpus_per_node");
	const char *fabric = network_fabric(csv_get(t, row, "fabric"), inter);
	const char *joined = strncasecmp(intra, "PCIe", 4) == 0 ? " pcie" : direct ? " mesh" : "";
	snprintf(out->line, sizeof out->line, "gpu:%" PRId64 " %s%s %s%s%s", host, id, joined, nic,
		fabric ? " fabric:" : "", fabric ? fabric : "");
	return ST_OK;
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
	const char *intra = csv_get(t, row, "intra"), *inter = csv_get(t, row, "inter"),
		   *fabric = network_fabric(csv_get(t, row, "fabric"), inter);
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
	enum status st = gpu_words(csv_get(t, row, "gpu"), "", intra, id, e);
	if (st)
		return st;
	if (strcasestr(intra, "NVL72") && out->ranks % domain_of(out->ranks) == 0) {
		out->per_host = domain_of(out->ranks); /* hosts are trays; their GPUs are one NVLink domain */
		out->hosts = out->ranks / out->per_host;
	}
	const char *joined = boxes[box].joined;
	const int64_t of_box = boxes[box].gpus > 0 ? boxes[box].gpus : out->per_host;
	if (out->hosts > 1)
		out->network = nic_words(t, row, inter, of_box, id, nic);
	snprintf(out->line, sizeof out->line, "gpu:%" PRId64 " %s %s %s%s%s", of_box, id, joined, nic,
		out->hosts > 1 && fabric ? " fabric:" : "", out->hosts > 1 && fabric ? fabric : "");
	return ST_OK;
}
