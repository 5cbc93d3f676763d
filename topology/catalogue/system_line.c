/* The one-line description of a machine. */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/paths.h"
#include "base/quantity.h"
#include "base/suggest.h"
#include "topology/graph/rates.h"
#include "topology/catalogue/system_parts.h"

#define WORD 128

struct line {
	struct system_spec *s;
	char gpu[WORD], fabric[WORD];
	int fabric_word, pcie_word; /* their numbers, for messages */
	bool peer_said, peer;
	const char *given[16];
	int n_given;
	int number; /* of the word that is being read */
	struct error *e;
};

static enum status wrong(const struct line *l, const char *word, const char *what)
{
	return error_set(l->e, ST_INPUT, "system line, word %d '%.60s': %s", l->number, word, what);
}

static enum status once(struct line *l, const char *word, const char *what)
{
	char text[96];
	for (int i = 0; i < l->n_given; i++) {
		if (strcmp(l->given[i], what) == 0) {
			snprintf(text, sizeof text, "%s is given twice", what);
			return wrong(l, word, text);
		}
	}
	l->given[l->n_given++] = what;
	return ST_OK;
}

/* Digits alone. */
static bool whole(const char *text, size_t len, int64_t *value)
{
	if (len == 0 || len > 9 || strspn(text, "0123456789") < len)
		return false;
	*value = strtoll(text, NULL, 10);
	return true;
}

static enum status count_word(struct line *l, const char *word, const char *text, int64_t least, int64_t most,
	int64_t *value)
{
	char expected[96];
	if (whole(text, strlen(text), value) && *value >= least && *value <= most)
		return ST_OK;
	snprintf(expected, sizeof expected, "expected a whole number of %" PRId64 " to %" PRId64, least, most);
	return wrong(l, word, expected);
}

/* "8x400Gb": NICs and the rate of each, in which "/s" may be left out. */
static enum status nic_word(struct line *l, const char *word, const char *text)
{
	const char *x = strchr(text, 'x');
	char rate[WORD + 2];
	struct error why = {0};
	if (!x || !whole(text, (size_t)(x - text), &l->s->nics) || l->s->nics < 1 || l->s->nics > 1024)
		return wrong(l, word, "expected 1 to 1024 NICs and the rate of each, such as nic:1x100Gb/s");
	size_t len = (size_t)snprintf(rate, sizeof rate, "%s", x + 1);
	if (len > 0 && rate[len - 1] == 'B')
		return wrong(l, word,
			"bits or bytes? write nic:1x100Gb for 100 Gb/s, or the whole unit, nic:1x12.5GB/s");
	if (len > 0 && strspn(rate, "0123456789.") == len)
		return wrong(l, word, "the rate has no unit: nic:1x100Gb is one NIC of 100 Gb/s");
	bool bare = len > 0 && rate[len - 1] == 'b';
	snprintf(rate + len, sizeof rate - len, "%s", bare ? "/s" : "");
	if (quantity_parse(rate, UNIT_BYTE_PER_S, &l->s->nic_Bps, &why))
		return wrong(l, word, why.text);
	if (l->s->nic_Bps < 1e6 || l->s->nic_Bps > 1e13)
		return wrong(l, word, "the rate is out of range: expected 8Mb/s to 80Tb/s");
	l->s->nic_latency_s = rate_network(8 * l->s->nic_Bps).latency_s;
	return ST_OK;
}

static enum status peer_word(struct line *l, const char *word, const char *text)
{
	l->peer_said = true;
	l->peer = strcmp(text, "yes") == 0;
	return l->peer || strcmp(text, "no") == 0 ? ST_OK : wrong(l, word, "expected peer:yes or peer:no");
}

/* The nearest name is said when the file is looked for. */
static enum status network_word(struct line *l, const char *word, const char *text)
{
	struct error why = {0};
	if (strlen(text) >= sizeof l->s->network.id)
		return wrong(l, word, "the name is too long");
	const enum status st = network_load(text, &l->s->network, &why);
	return st == ST_INPUT ? wrong(l, word, why.text) : st ? error_set(l->e, st, "%s", why.text) : ST_OK;
}

static enum status keyed_word(struct line *l, const char *word, const char *text)
{
	static const char *const keys[] = {"node", "gpu", "switch", "cpu", "nic", "fabric", "peer"};
	static enum status (*const words[])(struct line *, const char *, const char *) = {nic_word, network_word,
		peer_word};
	struct system_spec *s = l->s;
	struct {
		int64_t *value, most;
	} counts[] = {{&s->nodes, 1000000}, {&s->gpus, SYSTEM_GPUS}, {&s->gpus_per_switch, SYSTEM_GPUS},
		{&s->sockets, 64}};
	char key[WORD], unknown[SUGGEST_MAX + 8];
	snprintf(key, sizeof key, "%.*s", (int)(text - word) - 1, word);
	for (size_t i = 0; i < COUNT(keys); i++) {
		if (strcmp(key, keys[i]) != 0)
			continue;
		enum status st = once(l, word, keys[i]);
		if (st)
			return st;
		if (i < COUNT(counts))
			return count_word(l, word, text, 1, counts[i].most, counts[i].value);
		return words[i - COUNT(counts)](l, word, text);
	}
	snprintf(unknown, sizeof unknown, "unknown%s", suggest(key, keys, COUNT(keys), NULL).text);
	return wrong(l, word, unknown);
}

/* "pcie4", "pcie4x8" */
static enum status pcie_word(struct line *l, const char *word)
{
	const char *text = word + strlen("pcie"), *x = strchr(text, 'x');
	int64_t gen = 0, lanes = 16;
	enum status st = once(l, word, "pcie");
	if (st)
		return st;
	bool good = whole(text, x ? (size_t)(x - text) : strlen(text), &gen) &&
	            (!x || whole(x + 1, strlen(x + 1), &lanes));
	if (!good || gen < 1 || gen > 7 || (lanes != 1 && lanes != 2 && lanes != 4 && lanes != 8 && lanes != 16))
		return wrong(l, word,
			"expected the generation, 1 to 7, and the lanes, 1 2 4 8 or 16, such as pcie4 or pcie4x8");
	l->s->pcie_gen = (int32_t)gen;
	l->s->pcie_lanes = x ? (int32_t)lanes : 0;
	l->pcie_word = l->number;
	return ST_OK;
}

/* The nearest of everything that may stand there without a colon, and of the words that have one. */
static enum status unknown_word(const struct line *l, const char *word)
{
	static const char *const keys[] = {"node:", "gpu:", "switch:", "cpu:", "nic:", "fabric:", "peer:", "pcie4",
		"pcie5"};
	char **names = NULL, text[SUGGEST_MAX + 8];
	size_t n = 0, all = 0;
	enum status st = path_catalogue_names("gpus", &names, &n, l->e);
	const char **candidates = st ? NULL : calloc(n + n_fabric_words + COUNT(keys), sizeof *candidates);
	if (!st && !candidates)
		st = error_nomem(l->e, "the names of GPUs");
	if (st)
		goto out;
	for (size_t i = 0; i < n_fabric_words; i++)
		candidates[all++] = fabric_words[i];
	for (size_t i = 0; i < COUNT(keys); i++)
		candidates[all++] = keys[i];
	for (size_t i = 0; i < n; i++)
		candidates[all++] = names[i];
	snprintf(text, sizeof text, "unknown%s", suggest(word, candidates, all, "list gpus").text);
	st = wrong(l, word, text);
out:
	free(candidates);
	path_names_free(names, n);
	return st;
}

static enum status find_device(const struct line *l, const char *word, bool *found)
{
	char **names = NULL;
	size_t n = 0;
	enum status st = path_catalogue_names("gpus", &names, &n, l->e);
	*found = false;
	for (size_t i = 0; i < n && !st; i++)
		*found |= strcmp(names[i], word) == 0;
	path_names_free(names, n);
	return st;
}

static enum status read_word(struct line *l, const char *word)
{
	const char *colon = strchr(word, ':');
	enum status st;
	bool device;
	if (colon)
		return keyed_word(l, word, colon + 1);
	if (strncmp(word, "pcie", 4) == 0 && isdigit((unsigned char)word[4]))
		return pcie_word(l, word);
	for (size_t i = 0; i < n_fabric_words; i++) {
		if (strcmp(word, fabric_words[i]) != 0)
			continue;
		if ((st = once(l, word, "how the GPUs are joined")))
			return st;
		strcpy(l->fabric, word);
		l->fabric_word = l->number;
		return ST_OK;
	}
	if ((st = find_device(l, word, &device)))
		return st;
	if (!device)
		return unknown_word(l, word);
	if ((st = once(l, word, "the GPU's name")))
		return st;
	strcpy(l->gpu, word);
	return ST_OK;
}

static enum status read_words(struct line *l, const char *text)
{
	enum status st = ST_OK;
	for (const char *p = text + strspn(text, " \t\r\n"); *p && !st; p += strspn(p, " \t\r\n")) {
		char word[WORD];
		size_t len = strcspn(p, " \t\r\n");
		l->number++;
		snprintf(word, sizeof word, "%.*s", (int)(len < sizeof word ? len : sizeof word - 1), p);
		for (char *c = word; *c; c++)
			*c = iscntrl((unsigned char)*c) ? '?' : *c; /* messages are one line */
		st = len < sizeof word ? read_word(l, word) : wrong(l, word, "too long");
		p += len;
	}
	return st;
}

/* Checks the words against each other, once the GPU is known. */
static enum status check_words(struct line *l)
{
	struct system_spec *s = l->s;
	const struct device_spec *d = &s->device;
	char text[WORD + 160];
	static const char *const on_c2c[] = {"GH200", "GB200", "GB300"};
	s->fabric = fabric_by_default(d, s->gpus);
	for (size_t i = 0; i < COUNT(on_c2c); i++)
		s->c2c |= strstr(d->name, on_c2c[i]) != NULL;
	if (l->fabric[0] && fabric_of_word(l->fabric, d, s->gpus, &s->fabric) && s->fabric != FABRIC_NONE &&
		(d->nvlink_links == 0 || d->nvlink_link_Bps <= 0)) {
		l->number = l->fabric_word;
		snprintf(text, sizeof text, "the %s has no links of its own to other GPUs", d->name);
		return wrong(l, l->fabric, text);
	}
	if (d->pcie_gen > 0 && (s->pcie_gen > d->pcie_gen || (d->pcie_lanes > 0 && s->pcie_lanes > d->pcie_lanes))) {
		l->number = l->pcie_word;
		snprintf(text, sizeof text, "the %s goes up to PCIe %" PRId64 " with %" PRId64 " lanes", d->name,
			(int64_t)d->pcie_gen, (int64_t)(d->pcie_lanes ? d->pcie_lanes : 16));
		char word[WORD];
		snprintf(word, sizeof word, "pcie%" PRId32, s->pcie_gen);
		return wrong(l, word, text);
	}
	if (s->gpus_per_switch > s->gpus)
		return error_set(l->e, ST_INPUT, "system line: switch:%" PRId64 ", but a host has %" PRId64 " GPU%s",
			s->gpus_per_switch, s->gpus, s->gpus == 1 ? "" : "s");
	return ST_OK;
}

enum status system_from_line(const char *text, struct system_spec *out, struct error *e)
{
	struct system_spec s = {.from_line = true};
	struct line l = {.s = &s, .e = e};
	if (strlen(text) >= sizeof s.source)
		return error_set(e, ST_INPUT, "system line '%.40s...': longer than %zu characters", text,
			sizeof s.source - 1);
	enum status st = read_words(&l, text);
	if (st)
		return st;
	if (s.gpus == 0)
		return error_set(e, ST_INPUT, "system line '%.60s': gpu:N, the GPUs of a host, is missing", text);
	if (!l.gpu[0])
		return error_set(e, ST_INPUT, "system line '%.60s': the GPU's name is missing (`stepsim list gpus`)",
			text);
	if ((st = device_load(l.gpu, &s.device, e)) || (st = check_words(&l)))
		return st;
	/* NICs go below the switches where there are enough for all of them. */
	int64_t switches = s.gpus_per_switch ? (s.gpus + s.gpus_per_switch - 1) / s.gpus_per_switch : 0;
	if (switches && s.nics >= switches)
		s.nics_per_switch = (s.nics + switches - 1) / switches;
	snprintf(s.id, sizeof s.id, "system line");
	snprintf(s.name, sizeof s.name, "hosts of %" PRId64 " x %.100s", s.gpus, s.device.name);
	for (size_t i = 0; text[i]; i++)
		s.source[i] = iscntrl((unsigned char)text[i]) ? ' ' : text[i];
	if ((st = system_complete(&s, e)))
		return error_context(e, "system line");
	s.no_peer = l.peer_said ? !l.peer : s.no_peer;
	*out = s;
	return ST_OK;
}
