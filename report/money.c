#include "report/money.h"

#include <math.h>

#define HOUR_S 3600.0
#define KWH_J 3.6e6
#define YEAR_H (365.25 * 24)

struct money money_of(const struct money_terms *t, double tokens)
{
	struct money m;
	m.time_s = tokens / (t->tokens_per_s * t->goodput);
	m.interruptions = m.time_s / t->mtbf_s;
	m.energy_kWh = t->power_W * t->pue * m.time_s / KWH_J;
	m.co2_kg = m.energy_kWh * t->co2_kg_per_kwh;
	m.rented_usd = t->rent_usd_per_hour * m.time_s / HOUR_S;
	m.owned_usd = t->price_usd * m.time_s / (t->years * YEAR_H * HOUR_S) + m.energy_kWh * t->usd_per_kwh;
	return m;
}

double money_for_years(double price_usd, double rent_usd_per_hour, double years)
{
	return isfinite(price_usd) ? price_usd : rent_usd_per_hour * years * YEAR_H;
}

int64_t money_hosts(double budget_usd, double host_usd, int64_t most)
{
	double n = host_usd > 0 ? floor(budget_usd / host_usd) : 0; /* not for NAN */
	return n >= (double)most ? most : (int64_t)n;
}
