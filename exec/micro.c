#include "exec/micro.h"

#include <stdio.h>

uint64_t micro_power_of_two(uint64_t at_most)
{
	uint64_t n = 1;
	while (n <= at_most / 2)
		n *= 2;
	return n;
}

void micro_add_level(struct micro_facts *f, const char *name, uint64_t footprint_B, uint64_t chase_B)
{
	struct roof_level *l = &f->level[f->levels++];
	snprintf(l->name, sizeof l->name, "%s", name);
	l->footprint_B = (footprint_B < f->arena_B ? footprint_B : f->arena_B) / MICRO_ALIGN_B * MICRO_ALIGN_B;
	l->chase_B = micro_power_of_two(chase_B < f->arena_B ? chase_B : f->arena_B);
}
