#include "topology/catalogue/system.h"

#include <assert.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/paths.h"
#include "base/suggest.h"
#include "topology/catalogue/catalogue.h"
#include "topology/graph/rates.h"
#include "topology/catalogue/system_parts.h"

/* ---- fabrics ---- */

const char *const fabric_words[] = {"nvlink", "nvswitch", "mesh", "bridge", "torus", "pcie", "none"};
const size_t n_fabric_words = COUNT(fabric_words);

const char *fabric_name(enum fabric_kind k)
{
	static const char *const names[] = {[FABRIC_NONE] = "PCIe",
		[FABRIC_NVSWITCH] = "NVSwitch",
		[FABRIC_MESH] = "mesh",
		[FABRIC_BRIDGE] = "bridges",
		[FABRIC_TORUS] = "torus"};
	static_assert(COUNT(names) == FABRIC_KINDS, "a name for each kind");
	return names[k];
}

bool links_are_nvlink(const struct device_spec *d) { return strcmp(d->link_kind, "NVLink") == 0; }

/* Cards, which have NVLink for a bridge to their neighbour and come without it. */
static bool is_card(const struct device_spec *d)
{
	return d->compute_capability == 75 || d->compute_capability == 86 || strstr(d->name, "PCIe") ||
	       strstr(d->name, " NVL ") || strstr(d->name, "A30");
}

enum fabric_kind fabric_by_default(const struct device_spec *d, int64_t gpus)
{
	static const char *const torus[] = {"ICI", "NeuronLink"};
	for (size_t i = 0; i < COUNT(torus); i++)
		if (strcmp(d->link_kind, torus[i]) == 0)
			return FABRIC_TORUS;
	if (d->nvlink_links == 0 || is_card(d))
		return FABRIC_NONE;
	if (gpus > 1 && gpus <= d->nvlink_direct)
		return FABRIC_MESH;
	/* NVLink switches came with Volta, for hosts of 16; boards of 8 were cube meshes until Ampere. */
	bool switched = d->compute_capability >= 80 || (d->compute_capability >= 70 && gpus > 8);
	return links_are_nvlink(d) && switched ? FABRIC_NVSWITCH : FABRIC_MESH;
}

bool fabric_of_word(const char *word, const struct device_spec *d, int64_t gpus, enum fabric_kind *out)
{
	static const struct {
		const char *word;
		enum fabric_kind kind;
	} words[] = {{"nvswitch", FABRIC_NVSWITCH}, {"mesh", FABRIC_MESH}, {"bridge", FABRIC_BRIDGE},
		{"torus", FABRIC_TORUS}, {"pcie", FABRIC_NONE}, {"none", FABRIC_NONE}};
	for (size_t i = 0; i < COUNT(words); i++) {
		if (strcmp(word, words[i].word) == 0) {
			*out = words[i].kind;
			return true;
		}
	}
	if (strcmp(word, "nvlink") != 0)
		return false;
	*out = fabric_by_default(d, gpus);
	if (*out == FABRIC_NONE)
		*out = FABRIC_BRIDGE;
	return true;
}

/* ---- what is left open ---- */

static void complete_links(struct system_spec *s, const struct wires *wires)
{
	const struct device_spec *d = &s->device;
	struct rate slot = rate_pcie(s->pcie_gen, s->pcie_lanes);
	if (s->fabric == FABRIC_NONE ||
		(s->fabric != FABRIC_NVSWITCH && wires->most == 0)) { /* or a GPU without a peer */
		s->intra_datasheet_Bps = slot.datasheet_Bps;
		s->intra_usable_Bps = slot.Bps;
		s->intra_latency_s = slot.latency_s;
		return;
	}
	/* Of links that no table knows, the share of their datasheet rate that AMD's reach is taken. A torus of more
	 * dimensions than two is taken as one of two with as many links. */
	int32_t gfx = strncmp(d->gfx, "gfx", 3) == 0 ? (int32_t)strtol(d->gfx + 3, NULL, 16) : 0x942;
	struct rate link = links_are_nvlink(d) ? rate_nvlink((int32_t)d->compute_capability) : rate_xgmi(gfx);
	bool all = s->fabric == FABRIC_NVSWITCH || (s->fabric == FABRIC_TORUS && wires->most > 0);
	double links = (double)(all ? d->nvlink_links : wires->most);
	s->intra_datasheet_Bps = links * d->nvlink_link_Bps;
	s->intra_usable_Bps = s->intra_datasheet_Bps * link.Bps / link.datasheet_Bps;
	s->intra_latency_s = link.latency_s;
}

enum status system_complete(struct system_spec *s, struct error *e)
{
	const struct device_spec *d = &s->device;
	struct wires wires = {0};
	if (s->pcie_gen == 0)
		s->pcie_gen = (int32_t)d->pcie_gen;
	if (s->pcie_lanes == 0)
		s->pcie_lanes = d->pcie_lanes ? (int32_t)d->pcie_lanes : 16;
	if (s->sockets == 0)
		s->sockets = s->gpus >= 4 ? 2 : 1;
	s->no_peer = d->no_peer;
	if (!s->network.id[0])
		snprintf(s->network.id, sizeof s->network.id, "%s",
			network_by_default(s->fabric == FABRIC_NVSWITCH ||
						   (s->fabric == FABRIC_MESH && links_are_nvlink(d)),
				s->nic_Bps));
	s->unverified |= d->unverified;
	if (s->fabric != FABRIC_NONE && d->nvlink_links == 0 && s->intra_datasheet_Bps <= 0)
		return error_set(e, ST_INPUT, "the %s has no links of its own to other GPUs", d->name);
	enum status st = system_wires(s, s->gpus, &wires, e);
	if (!st && s->intra_datasheet_Bps <= 0)
		complete_links(s, &wires);
	vec_free(&wires.wire);
	char id[NETWORK_ID];
	memcpy(id, s->network.id, sizeof id);
	return st ? st : network_load(id, &s->network, e);
}

/* ---- a file ---- */

struct system_file {
	struct system_spec s;
	char gpu[64], fabric[32], gpu_link[16];
	int64_t pcie_gen, pcie_lanes;
	struct catalogue_figure power, price, rent;
};

#define AT(field) offsetof(struct system_file, field)
#define NUMBER(path, required, unit, min, max, field) \
	{ \
		path, CATALOGUE_DOUBLE, required, unit, min, max, AT(field), 0 \
	}
#define WHOLE(path, required, min, max, field) \
	{ \
		path, CATALOGUE_INT64, required, UNIT_NONE, min, max, AT(field), 0 \
	}
#define TEXT(path, required, field) \
	{ \
		path, CATALOGUE_TEXT, required, UNIT_NONE, 0, 0, AT(field), sizeof((struct system_file *)0)->field \
	}
#define FIGURE(path, unit, min, max, field) \
	{ \
		path, CATALOGUE_FIGURE, false, unit, min, max, AT(field), 0 \
	}

static const struct catalogue_key keys[] = {
	TEXT("name", true, s.name),
	TEXT("gpu", true, gpu),
	WHOLE("gpus_per_node", true, 1, SYSTEM_GPUS, s.gpus),
	TEXT("intra.fabric", true, fabric),
	TEXT("intra.wiring", false, s.wiring),
	NUMBER("intra.datasheet", true, UNIT_BYTE_PER_S, 1e8, 1e14, s.intra_datasheet_Bps),
	NUMBER("intra.usable", true, UNIT_BYTE_PER_S, 1e8, 1e14, s.intra_usable_Bps),
	NUMBER("intra.latency", true, UNIT_SECOND, 1e-8, 1e-2, s.intra_latency_s),
	WHOLE("nic.count", true, 0, 1024, s.nics),
	NUMBER("nic.rate", false, UNIT_BYTE_PER_S, 1e7, 1e13, s.nic_Bps),
	TEXT("nic.fabric", false, s.network.id),
	NUMBER("nic.latency", false, UNIT_SECOND, 1e-8, 1e-1, s.nic_latency_s),
	WHOLE("pcie.generation", false, 1, 7, pcie_gen),
	WHOLE("pcie.lanes", false, 1, 32, pcie_lanes),
	WHOLE("pcie.gpus_per_switch", false, 0, SYSTEM_GPUS, s.gpus_per_switch),
	WHOLE("pcie.nics_per_switch", false, 0, 1024, s.nics_per_switch),
	NUMBER("pcie.uplink", false, UNIT_BYTE_PER_S, 1e8, 1e13, s.uplink_Bps),
	TEXT("host.cpu", false, s.cpu),
	TEXT("host.gpu_link", false, gpu_link),
	WHOLE("host.sockets", false, 1, 64, s.sockets),
	NUMBER("host.socket_rate", false, UNIT_BYTE_PER_S, 1e8, 1e13, s.socket_Bps),
	FIGURE("power", UNIT_WATT, 1, 1e7, power),
	FIGURE("price", UNIT_USD, 1, 1e9, price),
	FIGURE("rent_usd_per_hour", UNIT_USD, 1e-3, 1e6, rent),
};

static void take_figure(const struct catalogue_figure *from, double *value, char note[192], bool *unverified)
{
	*value = from->value;
	*unverified = from->unverified;
	memcpy(note, from->source, sizeof from->source);
}

static enum status check_file(struct system_file *f, const char *path, struct error *e)
{
	struct system_spec *s = &f->s;
	if (!fabric_of_word(f->fabric, &s->device, s->gpus, &s->fabric))
		return error_set(e, ST_INPUT, "%s: intra.fabric: unknown '%s'%s", path, f->fabric,
			suggest(f->fabric, fabric_words, n_fabric_words, NULL).text);
	if (s->intra_usable_Bps > s->intra_datasheet_Bps)
		return error_set(e, ST_INPUT, "%s: intra: the usable rate is above the datasheet's", path);
	if (s->nics > 0 && !(s->nic_Bps > 0 && s->nic_latency_s > 0))
		return error_set(e, ST_INPUT, "%s: nic: %" PRId64 " NICs need a rate and a latency", path, s->nics);
	if (s->nics_per_switch > 0 && s->gpus_per_switch == 0)
		return error_set(e, ST_INPUT, "%s: pcie: nics_per_switch needs gpus_per_switch", path);
	if (s->wiring[0] && s->fabric != FABRIC_MESH && s->fabric != FABRIC_BRIDGE)
		return error_set(e, ST_INPUT, "%s: intra.wiring: the fabric '%s' has none (mesh and bridge have)", path,
			f->fabric);
	if (f->gpu_link[0] && strcmp(f->gpu_link, "c2c") != 0 && strcmp(f->gpu_link, "pcie") != 0)
		return error_set(e, ST_INPUT, "%s: host.gpu_link: expected c2c or pcie, got '%s'", path, f->gpu_link);
	s->c2c = strcmp(f->gpu_link, "c2c") == 0;
	s->pcie_gen = (int32_t)f->pcie_gen;
	s->pcie_lanes = (int32_t)f->pcie_lanes;
	take_figure(&f->power, &s->power_W, s->power_note, &s->power_unverified);
	take_figure(&f->price, &s->price_usd, s->price_note, &s->price_unverified);
	take_figure(&f->rent, &s->rent_usd_per_hour, s->rent_note, &s->rent_unverified);
	enum status st = system_complete(s, e);
	if (st)
		error_context(e, "%s", path);
	return st;
}

static enum status from_file(const char *path, struct system_spec *out, struct error *e)
{
	struct system_file f = {0};
	enum status st = catalogue_read("systems", path, keys, COUNT(keys), &f, &f.s.unverified, e);
	if (!st && (st = device_load(f.gpu, &f.s.device, e)))
		error_context(e, "%s: gpu", path);
	if (!st && !(st = check_file(&f, path, e)))
		*out = f.s;
	return st;
}

/* ---- all three ---- */

static bool ends_in_yaml(const char *text)
{
	size_t len = strlen(text);
	return len > 5 && strcmp(text + len - 5, ".yaml") == 0;
}

/* Finds a system of the catalogue. A GPU's name is refused with the line that describes a host of it. */
static enum status find_by_name(const char *name, char path[PATH_MAX_LEN], struct error *e)
{
	struct error none = {0};
	if (strlen(name) >= sizeof((struct system_spec *)0)->id)
		return error_set(e, ST_INPUT, "unknown system '%.40s...': the name is too long", name);
	if (*name && path_catalogue("gpus", name, path, &none) == ST_OK && access(path, R_OK) == 0)
		return error_set(e, ST_INPUT,
			"unknown system '%s', a GPU: a line describes a host, such as \"gpu:8 %s\"", name, name);
	return catalogue_find("systems", "system", name, path, e);
}

enum status system_load(const char *text, struct system_spec *out, struct error *e)
{
	char path[PATH_MAX_LEN];
	struct system_spec s = {0};
	bool yaml = ends_in_yaml(text);
	if (!yaml && strchr(text, ':')) /* first: rates have a '/' */
		return system_from_line(text, out, e);
	bool is_path = yaml || strchr(text, '/');
	enum status st = ST_OK;
	if (!is_path)
		st = find_by_name(text, path, e);
	else if (snprintf(path, sizeof path, "%s", text) >= (int)sizeof path)
		st = error_set(e, ST_INPUT, "the path of the system file is too long");
	if (st || (st = from_file(path, &s, e)))
		return st;
	const char *slash = strrchr(text, '/');
	const char *name = slash ? slash + 1 : text;
	snprintf(s.id, sizeof s.id, "%.*s", (int)(yaml ? strlen(name) - 5 : strlen(name)), name);
	snprintf(s.source, sizeof s.source, is_path ? "%s" : "catalogue configs/systems/%s.yaml", text);
	*out = s;
	return ST_OK;
}
