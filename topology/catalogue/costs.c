#include "topology/catalogue/costs.h"

#include "base/array.h"
#include "base/paths.h"

#define AT(field) offsetof(struct cost_figures, field)

static const struct catalogue_key keys[] = {
	{"name", CATALOGUE_TEXT, true, UNIT_NONE, 0, 0, AT(name), sizeof((struct cost_figures *)0)->name},
	{"amortize_years", CATALOGUE_FIGURE, true, UNIT_NONE, 0.01, 100, AT(amortize_years), 0},
	{"power_usd_per_kwh", CATALOGUE_FIGURE, true, UNIT_USD, 0, 100, AT(power_usd_per_kwh), 0},
	{"pue", CATALOGUE_FIGURE, true, UNIT_NONE, 1, 10, AT(pue), 0},
	{"co2_kg_per_kwh", CATALOGUE_FIGURE, true, UNIT_NONE, 0, 10, AT(co2_kg_per_kwh), 0},
};

enum status cost_figures_load(struct cost_figures *out, struct error *e)
{
	char path[PATH_MAX_LEN];
	bool unverified = false; /* each figure has its own mark */
	enum status st = catalogue_find("costs", "table of costs", "usual", path, e);
	*out = (struct cost_figures){0};
	return st ? st : catalogue_read("costs", path, keys, COUNT(keys), out, &unverified, e);
}
