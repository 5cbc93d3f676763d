/* Power and prices of a row: the config's number, else the catalogue's, else unknown. */
#include <math.h>
#include <string.h>

#include "cli/compare.h"
#include "topology/catalogue/costs.h"

static struct compare_figure known(double each, const char *of, double count, const char *source, bool unverified,
	bool partial)
{
	struct compare_figure f = {.value = each * count,
		.each = each,
		.of = of,
		.unverified = unverified,
		.partial = partial};
	snprintf(f.source, sizeof f.source, "%s", source);
	return f;
}

static struct compare_figure unknown(const char *of, const char *why) { return known(NAN, of, 1, why, false, false); }

static struct compare_figure of_config(double each, const char *of, double count, const char *key,
	const struct config *c)
{
	char source[256];
	snprintf(source, sizeof source, "cost.%s, %.220s", key, c->path);
	return known(each, of, count, source, false, false);
}

static struct compare_figure power(const struct system_spec *s, double hosts)
{
	if (s->power_W > 0)
		return known(s->power_W, "host", hosts, s->power_note, s->power_unverified, false);
	if (s->device.power_W > 0) {
		char source[256];
		snprintf(source, sizeof source, "configs/gpus/%.60s.yaml; what the host itself draws is not known",
			s->device.id);
		return known(s->device.power_W, "GPU", hosts * (double)s->gpus, source, false, true);
	}
	return unknown("host", "the catalogue has no power of this system or its GPUs");
}

static struct compare_figure rent(const struct system_spec *s, const struct config *c, double hosts)
{
	double gpus = hosts * (double)s->gpus;
	if (c->cost.gpu_hour_usd >= 0)
		return of_config(c->cost.gpu_hour_usd, "GPU", gpus, "gpu_hour_usd", c);
	if (s->rent_usd_per_hour > 0)
		return known(s->rent_usd_per_hour, "host", hosts, s->rent_note, s->rent_unverified, false);
	if (s->device.rent_usd_per_hour > 0)
		return known(s->device.rent_usd_per_hour, "GPU", gpus, s->device.rent_note, s->device.rent_unverified,
			false);
	return unknown("host", "the catalogue has no rent of this system or its GPUs (cost.gpu_hour_usd gives one)");
}

/* A system with a rent and no price is not for sale; the price of its GPUs alone would make it look cheap. */
static struct compare_figure price(const struct system_spec *s, const struct config *c, double hosts)
{
	if (c->cost.system_price_usd >= 0)
		return of_config(c->cost.system_price_usd, "host", hosts, "system_price_usd", c);
	if (s->price_usd > 0)
		return known(s->price_usd, "host", hosts, s->price_note, s->price_unverified, false);
	if (s->rent_usd_per_hour > 0)
		return unknown("host", "the catalogue has it for rent only (cost.system_price_usd gives a price)");
	if (s->device.price_usd > 0) {
		char source[256];
		snprintf(source, sizeof source, "%.190s; what the host costs is not known", s->device.price_note);
		return known(s->device.price_usd, "GPU", hosts * (double)s->gpus, source, s->device.price_unverified,
			true);
	}
	return unknown("host",
		"the catalogue has no price of this system or its GPUs (cost.system_price_usd gives one)");
}

void compare_figures(const struct system_spec *s, const struct config *c, struct size size, struct compare_row *r)
{
	r->gpus = size.nodes * size.per_node;
	r->host_gpus = s->gpus;
	r->hosts = (double)size.nodes * (size.per_node < s->gpus ? (double)size.per_node / (double)s->gpus : 1);
	r->power_W = power(s, r->hosts);
	r->rent_usd_per_hour = rent(s, c, r->hosts);
	r->price_usd = price(s, c, r->hosts);
}

static struct compare_figure shared(double given, const struct catalogue_figure *usual, const char *key,
	const struct config *c)
{
	return given >= 0 ? of_config(given, NULL, 1, key, c)
	                  : known(usual->value, NULL, 1, usual->source, usual->unverified, false);
}

enum status compare_assumptions(const struct config *c, struct compare *out, struct error *e)
{
	struct cost_figures usual;
	enum status st = cost_figures_load(&usual, e);
	if (st)
		return st;
	out->amortize_years = shared(c->cost.amortize_years, &usual.amortize_years, "amortize_years", c);
	out->power_usd_per_kwh = shared(c->cost.power_usd_per_kwh, &usual.power_usd_per_kwh, "power_usd_per_kwh", c);
	out->pue = shared(c->cost.pue, &usual.pue, "pue", c);
	out->co2_kg_per_kwh = shared(c->cost.co2_kg_per_kwh, &usual.co2_kg_per_kwh, "co2_kg_per_kwh", c);
	return ST_OK;
}
