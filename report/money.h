/* Time, energy, CO2 and money of training on a number of tokens. Pure arithmetic: an unknown input is NAN, and so is
 * every result that depends on it.
 *
 *   t      = tokens / (tokens_per_s x goodput)                           s
 *   interruptions = t / mtbf                                             expected
 *   E      = P x PUE x t / 3.6e6                                         kWh
 *   CO2    = E x co2_kg_per_kwh                                          kg
 *   rented = rent x t / 3600                                             USD
 *   owned  = price x t / (years x 365.25 d) + E x usd_per_kwh            USD
 *
 * P is the power of the hosts, W. PUE is a facility's energy over that of its IT equipment (The Green Grid, ISO/IEC
 * 30134-2). Rent includes power, cooling and the host. Owning is written off evenly and at work all the time: idle
 * machines cost more. Staff, building, interest and resale are left out.
 */
#ifndef STEPSIM_REPORT_MONEY_H
#define STEPSIM_REPORT_MONEY_H

#include <stdint.h>

/* All figures are of all hosts together. */
struct money_terms {
	double tokens_per_s;
	double goodput; /* share of the time in which steps are made */
	double mtbf_s;  /* of the job */
	double power_W, pue, usd_per_kwh, co2_kg_per_kwh;
	double rent_usd_per_hour;
	double price_usd, years;
};

struct money {
	double time_s, interruptions, energy_kWh, co2_kg, rented_usd, owned_usd;
};

struct money money_of(const struct money_terms *t, double tokens);

/* Returns the cost of one host over `years`, USD: its price if known, else its rent. */
double money_for_years(double price_usd, double rent_usd_per_hour, double years);

/* Returns how many whole hosts `budget_usd` pays for, at most `most`; 0 if `host_usd` is NAN or above the budget. */
int64_t money_hosts(double budget_usd, double host_usd, int64_t most);

#endif
