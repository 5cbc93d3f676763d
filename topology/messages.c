#include "topology/messages.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/quantity.h"
#include "base/stats.h"
#include "base/table.h"

static const struct {
	const char *label, *key;
} classes[LINK_CLASS_COUNT] = {[LINK_IN_HOST] = {"inside a host", "in_host"},
	[LINK_IN_RACK] = {"between hosts", "in_rack"},
	[LINK_ACROSS_RACKS] = {"between racks", "across_racks"}};

static int faster_first(const void *a, const void *b)
{
	const double x = ((const struct message_pair *)a)->Bps, y = ((const struct message_pair *)b)->Bps;
	return (x < y) - (x > y);
}

/* Joins the hosts of pairs[0..n): each host's rack becomes its lowest host. */
static void join(const struct message_pair *pairs, size_t n, int64_t hosts, int64_t *rack)
{
	for (int64_t h = 0; h < hosts; h++)
		rack[h] = h;
	for (size_t i = 0; i < n; i++) {
		const int64_t a = rack[pairs[i].a], b = rack[pairs[i].b], low = a < b ? a : b;
		for (int64_t h = 0; h < hosts; h++)
			rack[h] = rack[h] == a || rack[h] == b ? low : rack[h];
	}
}

/* Whether no pair of pairs[from..n) is inside a rack. */
static bool parted(const struct message_pair *pairs, size_t from, size_t n, const int64_t *rack)
{
	for (size_t i = from; i < n; i++)
		if (rack[pairs[i].a] == rack[pairs[i].b])
			return false;
	return true;
}

/* pairs: between hosts, the fastest first. The first gap that parts them makes the largest racks that are alike. */
static void find_racks(const struct message_pair *pairs, size_t n, struct message_links *l)
{
	for (size_t cut = n; cut-- > 1;) {
		if (pairs[cut - 1].Bps < MESSAGES_RACK_RATIO * pairs[cut].Bps)
			continue;
		join(pairs, cut, l->hosts, l->rack);
		if (parted(pairs, cut, n, l->rack))
			return;
	}
	memset(l->rack, 0, (size_t)l->hosts * sizeof *l->rack);
}

/* Counts racks in the order of their first hosts. */
static void number_racks(struct message_links *l)
{
	for (int64_t h = 0; h < l->hosts; h++) {
		const int64_t lowest = l->rack[h];
		l->rack[h] = lowest == h ? l->racks++ : l->rack[lowest];
	}
}

static enum link_class class_of(const struct message_pair *p, const int64_t *rack)
{
	return p->a == p->b ? LINK_IN_HOST : rack[p->a] == rack[p->b] ? LINK_IN_RACK : LINK_ACROSS_RACKS;
}

static enum status sum_up(const struct message_pair *pairs, size_t n, struct message_links *l, struct error *e)
{
	double *latency_s = calloc(2 * n + 1, sizeof *latency_s), *Bps = latency_s + n;
	if (!latency_s)
		return error_nomem(e, "the classes of links");
	for (int c = 0; c < LINK_CLASS_COUNT; c++) {
		size_t found = 0;
		for (size_t i = 0; i < n; i++) {
			if (class_of(&pairs[i], l->rack) != (enum link_class)c)
				continue;
			latency_s[found] = pairs[i].latency_s;
			Bps[found++] = pairs[i].Bps;
		}
		if ((l->of[c].pairs = (int64_t)found)) {
			l->of[c].latency_s = stats_median(latency_s, found);
			l->of[c].Bps = stats_median(Bps, found);
		}
	}
	free(latency_s);
	return ST_OK;
}

enum status message_links_find(const struct message_pair *pairs, size_t n, const char *const *names, int64_t hosts,
	struct message_links *out, struct error *e)
{
	*out = (struct message_links){.hosts = hosts,
		.rack = calloc((size_t)hosts + 1, sizeof *out->rack),
		.name = calloc((size_t)hosts + 1, sizeof *out->name)};
	struct message_pair *between = calloc(n + 1, sizeof *between);
	size_t m = 0;
	enum status st = out->rack && out->name && between ? ST_OK : error_nomem(e, "the classes of links");
	for (int64_t h = 0; h < hosts && !st; h++)
		snprintf(out->name[h], sizeof out->name[h], "%s", names[h]);
	for (size_t i = 0; i < n && !st; i++)
		if (pairs[i].a != pairs[i].b)
			between[m++] = pairs[i];
	if (!st) {
		qsort(between, m, sizeof *between, faster_first);
		find_racks(between, m, out);
		number_racks(out);
		st = sum_up(pairs, n, out, e);
	}
	free(between);
	return st;
}

void message_links_free(struct message_links *l)
{
	if (!l)
		return;
	free(l->rack);
	free(l->name);
}

static void print_racks(const struct message_links *l, FILE *out)
{
	fprintf(out, "%lld host%s in %lld rack%s", (long long)l->hosts, l->hosts > 1 ? "s" : "", (long long)l->racks,
		l->racks > 1 ? "s" : "");
	for (int64_t r = 0; r < l->racks; r++) {
		fputs(r ? " |" : ":", out);
		for (int64_t h = 0; h < l->hosts; h++)
			if (l->rack[h] == r)
				fprintf(out, " %s", l->name[h]);
	}
	putc('\n', out);
}

enum status message_links_text(const struct message_links *l, FILE *out, struct error *e)
{
	struct table *t = table_create("<messages, measured|pairs|latency|bandwidth");
	enum status st = t ? ST_OK : error_nomem(e, "the classes of links");
	for (int c = 0; c < LINK_CLASS_COUNT && !st; c++) {
		char latency[QUANTITY_MAX], rate[QUANTITY_MAX];
		if (l->of[c].pairs)
			st = table_row(t, e, "%s|%lld|%s|%s", classes[c].label, (long long)l->of[c].pairs,
				quantity_format(latency, l->of[c].latency_s, UNIT_SECOND),
				quantity_format(rate, l->of[c].Bps, UNIT_BYTE_PER_S));
	}
	if (!st) {
		table_print(t, out);
		print_racks(l, out);
	}
	table_destroy(t);
	return st;
}

json_t *message_links_json(const struct message_links *l)
{
	json_t *racks = json_array(), *j = json_object();
	for (int64_t r = 0; r < l->racks; r++)
		json_array_append_new(racks, json_array());
	bool ok = j && json_array_size(racks) == (size_t)l->racks;
	for (int64_t h = 0; h < l->hosts && ok; h++)
		ok = !json_array_append_new(json_array_get(racks, (size_t)l->rack[h]), json_string(l->name[h]));
	for (int c = 0; c < LINK_CLASS_COUNT && ok; c++)
		ok = !json_object_set_new(j, classes[c].key,
			!l->of[c].pairs ? json_null()
					: json_pack("{s:I, s:f, s:f}", "pairs", (json_int_t)l->of[c].pairs, "latency_s",
						  l->of[c].latency_s, "bandwidth_Bps", l->of[c].Bps));
	ok = ok && !json_object_set(j, "racks", racks);
	json_decref(racks);
	if (ok)
		return j;
	json_decref(j);
	return NULL;
}
