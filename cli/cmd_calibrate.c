#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/paths.h"
#include "base/quantity.h"
#include "base/table.h"
#include "cli/devices.h"
#include "topology/profile.h"

/* What a person wants to know of a profile: its name for it, the value's name in the profile, its unit. */
static const struct ceiling {
	const char *label, *name;
	enum unit unit;
} ceilings[] = {
	{"matrix rate, fp32, a rank", "peak.fp32", UNIT_FLOP_PER_S},
	{"memory bandwidth, a rank", "mem_Bps", UNIT_BYTE_PER_S},
	{"issuing one op", "call_s", UNIT_SECOND},
	{"message between ranks, latency", "p2p.latency_s", UNIT_SECOND},
	{"message between ranks, bandwidth", "p2p.Bps", UNIT_BYTE_PER_S},
};

static enum status print_ceilings(const struct profile *p, struct error *e)
{
	struct table *t = table_create("<ceiling|measured");
	enum status st = t ? ST_OK : error_nomem(e, "the table of ceilings");
	for (size_t i = 0; i < sizeof ceilings / sizeof ceilings[0] && !st; i++) {
		char text[QUANTITY_MAX];
		double value = profile_get_value(p, ceilings[i].name, NAN);
		if (!isnan(value))
			st = table_row(t, e, "%s|%s", ceilings[i].label, quantity_format(text, value, ceilings[i].unit));
	}
	if (!st)
		table_print(t, stdout);
	table_destroy(t);
	return st;
}

static enum status keep(const struct context *x, const struct profile *p, struct error *e)
{
	char path[PATH_MAX_LEN];
	const char *output = x->options->output;
	enum status st;
	if (output)
		snprintf(path, sizeof path, "%s", output);
	else if ((st = profile_cache_path(&p->key, path, sizeof path, e)))
		return st;
	if ((st = profile_save(p, path, e)) || strcmp(path, "-") == 0)
		return st;
	const struct profile_key *k = &p->key;
	printf("%s: %lld rank%s, %lld a host, %lld core%s each\n%s\n\n", k->cpu, (long long)k->ranks, k->ranks == 1 ? "" : "s", (long long)k->ranks_per_host, (long long)k->cores_per_rank,
	       k->cores_per_rank == 1 ? "" : "s", path);
	return print_ceilings(p, e);
}

enum status cmd_calibrate(struct context *x, struct error *e)
{
	struct profile *p = NULL;
	enum status st = devices_open(x, e);
	if (st)
		return st;
	st = context_agree(x, calibrate(x->session, &p, e), e);
	if (!st && context_leads(x))
		st = keep(x, p, e);
	profile_destroy(p);
	return st;
}
