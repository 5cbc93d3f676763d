#include <math.h>

#include "report/money.h"
#include "tests/unit/harness.h"

#define NEAR(x, y) CU_ASSERT_DOUBLE_EQUAL((x), (y), 1e-9 * fabs((double)(y)))

/* Small numbers by hand: 8 GPUs in a host of 10 kW and 400,000 USD, a thousand tokens a second, 3.6e9 tokens: a
 * thousand hours. */
static struct money_terms terms(void)
{
	return (struct money_terms){.tokens_per_s = 1000,
		.goodput = 1,
		.mtbf_s = 36000,
		.power_W = 10000,
		.pue = 1.5,
		.usd_per_kwh = 0.1,
		.co2_kg_per_kwh = 0.4,
		.rent_usd_per_hour = 20,
		.price_usd = 400000,
		.years = 4};
}

static void test_by_hand(void)
{
	struct money_terms t = terms();
	struct money m = money_of(&t, 3.6e9);
	NEAR(m.time_s, 3.6e6);
	NEAR(m.interruptions, 100);                       /* one in ten hours */
	NEAR(m.energy_kWh, 15000);                        /* 10 kW x 1.5 x 1000 h */
	NEAR(m.co2_kg, 6000);                             /* 0.4 kg of each kWh */
	NEAR(m.rented_usd, 20000);                        /* 20 USD x 1000 h */
	NEAR(m.owned_usd, 400000 * 1000 / 35064. + 1500); /* four years of 8766 h; 15,000 kWh at 10 cents */
}

/* Half of the time lost: everything takes and costs twice as much. */
static void test_goodput(void)
{
	struct money_terms t = terms();
	struct money whole = money_of(&t, 1e9), half;
	t.goodput = 0.5;
	half = money_of(&t, 1e9);
	NEAR(half.time_s, 2 * whole.time_s);
	NEAR(half.energy_kWh, 2 * whole.energy_kWh);
	NEAR(half.rented_usd, 2 * whole.rented_usd);
	NEAR(half.owned_usd, 2 * whole.owned_usd);
}

static void test_unknown(void)
{
	struct money_terms t = terms();
	t.price_usd = NAN;
	struct money m = money_of(&t, 1e9);
	CU_ASSERT_TRUE(isnan(m.owned_usd) && !isnan(m.rented_usd) && !isnan(m.energy_kWh) && !isnan(m.time_s));
	t = terms();
	t.power_W = NAN;
	m = money_of(&t, 1e9);
	CU_ASSERT_TRUE(isnan(m.owned_usd) && isnan(m.energy_kWh) && !isnan(m.rented_usd));
}

static void test_budget(void)
{
	CU_ASSERT_EQUAL(money_hosts(2e6, 400000, 1000), 5);
	CU_ASSERT_EQUAL(money_hosts(2e6 - 1, 400000, 1000), 4);
	CU_ASSERT_EQUAL(money_hosts(399999, 400000, 1000), 0);
	CU_ASSERT_EQUAL(money_hosts(1e300, 1, 1000), 1000);
	CU_ASSERT_EQUAL(money_hosts(2e6, NAN, 1000), 0);
	CU_ASSERT_EQUAL(money_hosts(2e6, 0, 1000), 0);
	NEAR(money_for_years(400000, 55, 5), 400000);
	NEAR(money_for_years(NAN, 10, 2), 10 * 2 * 8766.0);
	CU_ASSERT_TRUE(isnan(money_for_years(NAN, NAN, 5)));
}

UNIT_MAIN("money", {"by hand", test_by_hand}, {"goodput", test_goodput}, {"what is unknown", test_unknown},
	{"a budget", test_budget})
