/* The usual costs of power, cooling and amortization, and the CO2 of power: configs/costs/usual.yaml, every number with
 * its source. */
#ifndef STEPSIM_TOPOLOGY_CATALOGUE_COSTS_H
#define STEPSIM_TOPOLOGY_CATALOGUE_COSTS_H

#include "topology/catalogue/catalogue.h"

struct cost_figures {
	char name[64];
	struct catalogue_figure amortize_years, power_usd_per_kwh, pue, co2_kg_per_kwh;
};

enum status cost_figures_load(struct cost_figures *out, struct error *e);

#endif
