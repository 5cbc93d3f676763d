/* Time, energy and money of training on so many tokens. Pure arithmetic: what is not known is NAN, and so is what follows from it.
 *
 *   t      = tokens / (tokens_per_s x goodput)                          s
 *   E      = P x PUE x t / 3.6e6                                        kWh; P: what the hosts draw, W. PUE: a facility's energy over that of its IT equipment (The Green Grid, ISO/IEC 30134-2)
 *   rented = rent x t / 3600                                            USD; the landlord's price holds power, cooling and the host
 *   owned  = price x t / (years x 365.25 d) + E x usd_per_kwh           USD; written off evenly, at work all the time: idle machines cost more. No staff, building, interest or resale
 */
#ifndef STEPSIM_REPORT_MONEY_H
#define STEPSIM_REPORT_MONEY_H

#include <stdint.h>

/* Of all hosts together. */
struct money_terms {
	double tokens_per_s;
	double goodput; /* share of the time in which steps are made */
	double power_W, pue, usd_per_kwh;
	double rent_usd_per_hour;
	double price_usd, years;
};

struct money {
	double time_s, energy_kWh, rented_usd, owned_usd;
};

struct money money_of(const struct money_terms *t, double tokens);

/* What one host costs over `years`: its price, else its rent for so long. */
double money_for_years(double price_usd, double rent_usd_per_hour, double years);

/* How many whole hosts `budget_usd` pays for; 0 where `host_usd` is not known or too much. At most `most`. */
int64_t money_hosts(double budget_usd, double host_usd, int64_t most);

#endif
