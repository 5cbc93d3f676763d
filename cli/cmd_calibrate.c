#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/paths.h"
#include "base/quantity.h"
#include "base/table.h"
#include "cli/devices.h"
#include "step/program.h"
#include "topology/profile.h"

/* The values of a profile that are printed: label, name in the profile, unit. */
static const struct ceiling {
	const char *label, *name;
	enum unit unit;
} ceilings[] = {
	{"matrix rate, bf16, a rank", PROFILE_PEAK "bf16", UNIT_FLOP_PER_S},
	{"matrix rate, fp16, a rank", PROFILE_PEAK "fp16", UNIT_FLOP_PER_S},
	{"matrix rate, tf32, a rank", PROFILE_PEAK "tf32", UNIT_FLOP_PER_S},
	{"matrix rate, fp32, a rank", PROFILE_PEAK "fp32", UNIT_FLOP_PER_S},
	{"memory bandwidth, a rank", PROFILE_MEM_BPS, UNIT_BYTE_PER_S},
	{"launching one op", PROFILE_LAUNCH_S, UNIT_SECOND},
	{"copy to the GPU, a rank", PROFILE_COPY_H2D_BPS, UNIT_BYTE_PER_S},
	{"copy from the GPU, a rank", PROFILE_COPY_D2H_BPS, UNIT_BYTE_PER_S},
	{NULL, PROFILE_CALL_S, UNIT_SECOND}, /* call_label */
	{"message between ranks, latency", PROFILE_P2P_LATENCY_S, UNIT_SECOND},
	{"message between ranks, bandwidth", PROFILE_P2P_BPS, UNIT_BYTE_PER_S},
	{"message between hosts, latency", PROFILE_BETWEEN_LATENCY_S, UNIT_SECOND},
	{"message between hosts, bandwidth", PROFILE_BETWEEN_BPS, UNIT_BYTE_PER_S},
};

static bool of_gpus(const struct profile *p) { return strcmp(p->key.backend, "cuda") == 0; }

/* A host's call takes the core's time, a GPU's least time is the GPU's own. */
static const char *call_label(const struct profile *p)
{
	return of_gpus(p) ? "least time of an op on the GPU" : "issuing one op";
}

/* The largest buffer of a collective that was timed, over all ranks: bytes that each rank sends a second, as a ring
 * would. */
static enum status print_collectives(const struct profile *p, struct table *t, struct error *e)
{
	static const enum collective shown[] = {COLL_ALL_REDUCE, COLL_ALL_GATHER, COLL_REDUCE_SCATTER};
	enum status st = ST_OK;
	for (size_t i = 0; i < COUNT(shown) && !st; i++) {
		char name[PROFILE_NAME], text[QUANTITY_MAX], size[QUANTITY_MAX];
		const int64_t ranks = p->key.ranks;
		profile_collective_curve(name, collective_name(shown[i]), ranks, 1);
		const struct profile_curve *c = profile_get_curve(p, name);
		if (!c)
			continue;
		const struct op op = {.kind = OP_COLLECTIVE,
			.coll = (uint8_t)shown[i],
			.dtype = DT_FP32,
			.collective.elements = (int64_t)(c->x[c->n - 1] / 4)};
		st = table_row(t, e, "%s of %s, %lld ranks: bus bandwidth|%s", collective_name(shown[i]),
			quantity_format(size, c->x[c->n - 1], UNIT_BYTE), (long long)ranks,
			quantity_format(text, op_wire_B(&op, ranks) / c->y[c->n - 1], UNIT_BYTE_PER_S));
	}
	return st;
}

static enum status print_ceilings(const struct profile *p, struct error *e)
{
	struct table *t = table_create("<ceiling|measured");
	enum status st = t ? ST_OK : error_nomem(e, "the table of ceilings");
	for (size_t i = 0; i < COUNT(ceilings) && !st; i++) {
		char text[QUANTITY_MAX];
		double value = profile_get_value(p, ceilings[i].name, NAN);
		if (!isnan(value))
			st = table_row(t, e, "%s|%s", ceilings[i].label ? ceilings[i].label : call_label(p),
				quantity_format(text, value, ceilings[i].unit));
	}
	if (!st && of_gpus(p))
		st = print_collectives(p, t, e);
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
	char each[sizeof k->binding];
	if (of_gpus(p))
		snprintf(each, sizeof each, "%s", k->binding);
	else
		snprintf(each, sizeof each, "%lld core%s each", (long long)k->cores_per_rank,
			k->cores_per_rank == 1 ? "" : "s");
	printf("%s: %lld rank%s, %lld a host, %s\n%s\n\n", k->cpu, (long long)k->ranks, k->ranks == 1 ? "" : "s",
		(long long)k->ranks_per_host, each, path);
	return print_ceilings(p, e);
}

enum status cmd_calibrate(struct context *x, struct error *e)
{
	struct profile *p = NULL;
	enum status st = devices_open(x, e);
	if (st)
		return st;
	st = context_agree(x, x->exec->calibrate(x->session, &p, e), e);
	const struct session_info *info = context_info(x);
	if (!st && context_leads(x) && (info->gpu_doubles || info->gpu_shared))
		printf("%s: everything was run, nothing was measured, no profile is written\n",
			info->gpu_doubles ? "Doubles of the CUDA libraries" : "Several ranks share a GPU");
	else if (!st && context_leads(x))
		st = keep(x, p, e);
	profile_destroy(p);
	return st;
}
