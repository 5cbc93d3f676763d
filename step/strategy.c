#include "step/strategy.h"

#include <stdio.h>
#include <string.h>

#define ROW(id, name, traits) [STRAT_##id] = {name, traits},
#define ALIAS(id, name)

const struct strategy_traits strategy_traits[] = {STRATEGIES(ROW, ALIAS)};

const char *strategy_name(enum strategy s) { return strategy_traits[s].name; }

static int count_bits(unsigned x)
{
	int n = 0;
	for (; x; x &= x - 1)
		n++;
	return n;
}

enum strategy strategy_most(unsigned with, unsigned without)
{
	enum strategy best = STRAT_COUNT;
	for (int i = 0; i < STRAT_COUNT; i++) {
		const enum strategy s = (enum strategy)i;
		if (strategy_fits(s, with, without) &&
			(best == STRAT_COUNT ||
				count_bits(strategy_traits[s].traits) >= count_bits(strategy_traits[best].traits)))
			best = s;
	}
	return best;
}

char *strategy_names(unsigned with, unsigned without, char buf[STRATEGY_NAMES])
{
	buf[0] = '\0';
	for (int s = 0; s < STRAT_COUNT; s++) {
		const size_t len = strlen(buf);
		if (strategy_fits((enum strategy)s, with, without))
			snprintf(buf + len, STRATEGY_NAMES - len, "%s%s", len ? ", " : "",
				strategy_name((enum strategy)s));
	}
	return buf;
}
