#include "report/json_build.h"
#include "report/roofline.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>

#include "base/paths.h"
#include "base/quantity.h"
#include "base/table.h"
#include "base/version.h"

#define CELL 32
#define LOW_SHARE 0.7 /* of a datasheet's rate: less wants an explanation */

/* ---- cells; what is not known is "-" ---- */

static char *number(char buf[CELL], double x)
{
	if (!isfinite(x) || x <= 0)
		snprintf(buf, CELL, "-");
	else
		snprintf(buf, CELL, x < 10 ? "%.2f" : x < 100 ? "%.1f" : "%.0f", x);
	return buf;
}

static char *percent(char buf[CELL], double share)
{
	if (!isfinite(share))
		snprintf(buf, CELL, "-");
	else
		snprintf(buf, CELL, "%.1f %%", 100 * share);
	return buf;
}

static char *rate(char buf[QUANTITY_MAX], double x, enum unit unit)
{
	return quantity_format(buf, x > 0 ? x : (double)NAN, unit);
}

static enum status finish(struct table *t, enum status st, FILE *out)
{
	if (!st)
		table_print(t, out);
	table_destroy(t);
	return st;
}

/* ---- tables ---- */

/* An empty cell where there is no figure. */
static char *csv_percent(char buf[CELL], double share)
{
	if (isfinite(share))
		snprintf(buf, CELL, "%.4g", 100 * share);
	else
		buf[0] = '\0';
	return buf;
}

static enum status row_cells(struct table *t, const struct roofline *r, const struct roof_row *x, struct error *e)
{
	char elements[CELL] = "", ai[CELL], reached[CELL], Bps[CELL], peak[CELL], roof[CELL], elsewhere[CELL],
	     mean[CELL + 1] = "";
	if (x->kind == ROOF_POLY)
		snprintf(elements, sizeof elements, "|%" PRId64, x->elements);
	if (r->ranks > 1)
		snprintf(mean, sizeof mean, "|%s", number(elsewhere, x->mean_flop_per_s * 1e-9));
	return table_row(t, e, "%s|%" PRId64 "|%s%s|%s|%s|%s|%s|%.1f %%%s%s", dtype_name(x->dtype), x->size,
		number(ai, x->ai), elements, number(reached, x->flop_per_s * 1e-9), number(Bps, x->Bps * 1e-9),
		percent(peak, roofline_share_of_peak(r, x)), percent(roof, roofline_share_of_roof(r, x)), 100 * x->rms,
		x->rms > ROOF_RMS_MOST ? " !" : "", mean);
}

/* The rows of one kind. */
static enum status rows_table(const struct roofline *r, enum roof_kind kind, FILE *out, struct error *e)
{
	const char *mean = r->ranks > 1 ? "|mean of ranks" : "";
	char columns[160];
	bool any = false;
	snprintf(columns, sizeof columns, "<format|%s|GFLOP/s|GB/s|%% of peak|%% of roof|RMS%s",
		kind == ROOF_POLY ? "k|FLOP/B|elements" : "size|FLOP/B", mean);
	struct table *t = table_create(columns);
	enum status st = t ? ST_OK : error_nomem(e, "a roofline's table");
	for (size_t i = 0; i < r->rows.n && !st; i++) {
		const struct roof_row *x = &r->rows.at[i];
		if (x->kind != kind)
			continue;
		any = true;
		st = row_cells(t, r, x, e);
	}
	if (any)
		fputs(kind == ROOF_POLY ? "Vector roof: b = a + a^2 + ... + a^k, powers in registers, 2k FLOP and two "
					  "accesses an element\n"
					: "\nMatrix roof: square products, 2 size^3 FLOP over three matrices\n",
			out);
	if (!any) {
		table_destroy(t);
		return st;
	}
	return finish(t, st, out);
}

static enum status levels_table(const struct roofline *r, FILE *out, struct error *e)
{
	struct table *t = table_create("<level|footprint|read, GB/s|copy|triad|chased|latency|in flight");
	enum status st = t ? ST_OK : error_nomem(e, "a roofline's table");
	for (int i = 0; i < r->levels && !st; i++) {
		const struct roof_level *l = &r->level[i];
		char size[QUANTITY_MAX], chase[QUANTITY_MAX], latency[QUANTITY_MAX], flight[QUANTITY_MAX],
			rates[ROOF_STREAMS][CELL];
		for (int s = 0; s < ROOF_STREAMS; s++)
			number(rates[s], l->Bps[s] * 1e-9);
		st = table_row(t, e, "%s|%s|%s|%s|%s|%s|%s|%s", l->name,
			quantity_format(size, (double)l->footprint_B, UNIT_BYTE), rates[ROOF_READ], rates[ROOF_COPY],
			rates[ROOF_TRIAD], quantity_format(chase, (double)l->chase_B, UNIT_BYTE),
			rate(latency, l->latency_s, UNIT_SECOND),
			rate(flight, roof_in_flight_B(roof_level_Bps(l), l->latency_s), UNIT_BYTE));
	}
	fputs("\nLevels of memory: streams of all units together; latency of dependent loads; "
	      "in flight = bandwidth x latency\n",
		out);
	return finish(t, st, out);
}

static enum status roof_cells(struct table *t, const struct roofline *r, enum roof_kind kind, enum dtype d,
	struct error *e)
{
	char name[CELL], measured[QUANTITY_MAX], sheet[QUANTITY_MAX], share[CELL], ridge[CELL], sheet_ridge[CELL];
	const double peak = roofline_peak(r, kind, d), said = roofline_sheet_peak(r, kind, d);
	if (peak <= 0 && said <= 0)
		return ST_OK;
	snprintf(name, sizeof name, "%s %s", kind == ROOF_POLY ? "vector" : "matrix", dtype_name(d));
	return table_row(t, e, "%s|%s|%s|%s|%s|%s", name, rate(measured, peak, UNIT_FLOP_PER_S),
		rate(sheet, said, UNIT_FLOP_PER_S), percent(share, peak > 0 && said > 0 ? peak / said : (double)NAN),
		number(ridge, roof_ridge(peak, roofline_mem_Bps(r))),
		number(sheet_ridge, roof_ridge(said, r->sheet.mem_Bps)));
}

static enum status roofs_table(const struct roofline *r, FILE *out, struct error *e)
{
	char measured[QUANTITY_MAX], sheet[QUANTITY_MAX], share[CELL];
	const double Bps = roofline_mem_Bps(r), said = r->sheet.mem_Bps;
	struct table *t = table_create("<roof|measured|datasheet|reached|ridge, FLOP/B|datasheet's");
	enum status st = t ? ST_OK : error_nomem(e, "a roofline's table");
	if (!st)
		st = table_row(t, e, "memory|%s|%s|%s||", rate(measured, Bps, UNIT_BYTE_PER_S),
			rate(sheet, said, UNIT_BYTE_PER_S),
			percent(share, Bps > 0 && said > 0 ? Bps / said : (double)NAN));
	for (int k = 0; k < 2; k++)
		for (int d = 0; d < DT_COUNT && !st; d++)
			st = roof_cells(t, r, k ? ROOF_GEMM : ROOF_POLY, (enum dtype)d, e);
	if (*r->sheet.name)
		fprintf(out, "\nRoofs, measured and of the datasheet (%s%s)\n", r->sheet.name,
			r->sheet.unverified ? "; some of it unverified" : "");
	else
		fputs("\nRoofs, measured (the catalogue has no datasheet of this device)\n", out);
	return finish(t, st, out);
}

/* ---- sentences ---- */

static void print_head(const struct roofline *r, FILE *out)
{
	char clock[QUANTITY_MAX];
	fprintf(out, "%s: %" PRId64 " %s%s", r->device, r->units, r->gpu ? "SM" : "core", r->units == 1 ? "" : "s");
	if (r->clock_Hz > 0)
		fprintf(out, " at up to %s", quantity_format(clock, r->clock_Hz, UNIT_HERTZ));
	fprintf(out, ", on %s\n", r->host);
	if (r->ranks > 1)
		fprintf(out,
			"%" PRId64 " ranks, each on its own device at the same time: figures of the slowest one%s\n",
			r->ranks, r->shared ? "; ranks share devices, so they say little" : "");
	fprintf(out, "means of %d timed runs after %d warm-ups; RMS of the runs' times about their mean\n\n", r->runs,
		r->warm_ups);
}

static void print_little(const struct roofline *r, FILE *out)
{
	const struct roof_level *l = &r->level[r->levels - 1];
	const double Bps = roofline_mem_Bps(r), flight = roof_in_flight_B(Bps, l->latency_s);
	char a[QUANTITY_MAX], b[QUANTITY_MAX], c[QUANTITY_MAX], d[QUANTITY_MAX];
	fprintf(out, "\nLittle's law: %s x %s = %s in flight keep memory busy, %s for each %s.\n",
		rate(a, Bps, UNIT_BYTE_PER_S), rate(b, l->latency_s, UNIT_SECOND), rate(c, flight, UNIT_BYTE),
		rate(d, flight / (double)r->units, UNIT_BYTE), r->gpu ? "SM" : "core");
	if (r->threads_most > 0)
		fprintf(out,
			"Occupancy of the polynomial kernel: %" PRId64 " of %" PRId64
			" threads an SM (%.0f %%), so %.0f bytes in flight a thread.\n",
			r->threads, r->threads_most, 100.0 * (double)r->threads / (double)r->threads_most,
			flight / (double)r->units / (double)(r->threads > 0 ? r->threads : 1));
}

/* The format whose products are fastest. */
static enum dtype best_format(const struct roofline *r)
{
	enum dtype best = DT_COUNT;
	for (int d = 0; d < DT_COUNT; d++)
		if (roofline_peak(r, ROOF_GEMM, (enum dtype)d) >
			(best == DT_COUNT ? 0 : roofline_peak(r, ROOF_GEMM, best)))
			best = (enum dtype)d;
	return best;
}

static void print_low(const char *what, double measured, double said, FILE *out)
{
	if (measured > 0 && said > 0 && measured < LOW_SHARE * said)
		fprintf(out,
			"%s reaches %.0f %% of the datasheet: look at clocks, power limit and other users of the "
			"device.\n",
			what, 100 * measured / said);
}

static void print_verdict(const struct roofline *r, FILE *out)
{
	char ridge[CELL], matrix[CELL];
	const double Bps = roofline_mem_Bps(r), vector = roofline_peak(r, ROOF_POLY, DT_FP32);
	const enum dtype d = best_format(r);
	fprintf(out,
		"Verdict: fp32 arithmetic without matrix units waits for memory below %s FLOP/B and for the units "
		"above it",
		number(ridge, roof_ridge(vector, Bps)));
	if (d != DT_COUNT)
		fprintf(out, "; products in %s need %s", dtype_name(d),
			number(matrix, roof_ridge(roofline_peak(r, ROOF_GEMM, d), Bps)));
	fputs(".\n", out);
	print_low("Memory", Bps, r->sheet.mem_Bps, out);
	print_low("The vector unit", vector, r->sheet.vector_flop_per_s, out);
	if (d != DT_COUNT)
		print_low("The matrix unit", roofline_peak(r, ROOF_GEMM, d), r->sheet.matrix_flop_per_s[d], out);
	const double products = roofline_peak(r, ROOF_GEMM, DT_FP32);
	if (!r->gpu && products > 0 && products < LOW_SHARE * vector)
		fprintf(out,
			"Products in fp32 reach %.0f %% of the polynomial's rate on the same units: "
			"the BLAS library (%s) does not use this CPU well.\n",
			100 * products / vector, r->blas);
	size_t noisy = 0;
	for (size_t i = 0; i < r->rows.n; i++)
		noisy += r->rows.at[i].rms > ROOF_RMS_MOST;
	if (noisy)
		fprintf(out,
			"warning: in %zu of %zu rows (!) the runs differ by more than %.0f %%: something else used "
			"the device.\n",
			noisy, r->rows.n, 100 * ROOF_RMS_MOST);
}

enum status report_roofline_text(const struct roofline *r, FILE *out, struct error *e)
{
	if (r->doubles) {
		fprintf(out,
			"Executed on doubles of the CUDA libraries: %" PRId64
			" kernels ran and their results are right; nothing was measured.\n",
			r->checked);
		return ST_OK;
	}
	enum status st;
	print_head(r, out);
	if ((st = rows_table(r, ROOF_POLY, out, e)) || (st = rows_table(r, ROOF_GEMM, out, e)) ||
		(st = levels_table(r, out, e)) || (st = roofs_table(r, out, e)))
		return st;
	if (r->levels > 0)
		print_little(r, out);
	print_verdict(r, out);
	return ST_OK;
}

/* ---- CSV ---- */

static const char *kind_name(enum roof_kind k) { return k == ROOF_POLY ? "polynomial" : "gemm"; }

static void write_csv(const void *of, FILE *out)
{
	const struct roofline *r = of;
	fputs("k,ai,gflops,bandwidth,percent_peak,kind,dtype,size,percent_roof,rms_percent,mean_gflops\n", out);
	for (size_t i = 0; i < r->rows.n; i++) {
		const struct roof_row *x = &r->rows.at[i];
		char peak[CELL], roof[CELL];
		fprintf(out, "%" PRId64 ",%.6g,%.6g,%.6g,%s,%s,%s,%" PRId64 ",%s,%.3g,%.6g\n", x->size, x->ai,
			x->flop_per_s * 1e-9, x->Bps * 1e-9, csv_percent(peak, roofline_share_of_peak(r, x)),
			kind_name(x->kind), dtype_name(x->dtype), x->kind == ROOF_POLY ? x->elements : x->size,
			csv_percent(roof, roofline_share_of_roof(r, x)), 100 * x->rms, x->mean_flop_per_s * 1e-9);
	}
}

enum status report_roofline_csv(const struct roofline *r, const char *path, struct error *e)
{
	return file_write_of(path, write_csv, r, "a CSV text", e);
}

/* ---- JSON ---- */

static json_t *real(double x) { return isfinite(x) && x > 0 ? json_real(x) : json_null(); }

static json_t *row_json(const struct roofline *r, const struct roof_row *x, bool *good)
{
	json_t *j = json_object();
	json_put(j, "kind", json_string(kind_name(x->kind)), good);
	json_put(j, "dtype", json_string(dtype_name(x->dtype)), good);
	json_put(j, x->kind == ROOF_POLY ? "k" : "size", json_integer(x->size), good);
	if (x->kind == ROOF_POLY)
		json_put(j, "elements", json_integer(x->elements), good);
	json_put(j, "ai", real(x->ai), good);
	json_put(j, "flop_per_s", real(x->flop_per_s), good);
	json_put(j, "mean_flop_per_s", real(x->mean_flop_per_s), good);
	json_put(j, "bandwidth_Bps", real(x->Bps), good);
	json_put(j, "share_of_peak", real(roofline_share_of_peak(r, x)), good);
	json_put(j, "share_of_roof", real(roofline_share_of_roof(r, x)), good);
	json_put(j, "rms", json_real(x->rms), good);
	return j;
}

static json_t *level_json(const struct roof_level *l, bool *good)
{
	json_t *j = json_object();
	json_put(j, "name", json_string(l->name), good);
	json_put(j, "footprint_bytes", json_integer((json_int_t)l->footprint_B), good);
	for (int s = 0; s < ROOF_STREAMS; s++) {
		char key[24];
		snprintf(key, sizeof key, "%s_Bps", roof_stream_name((enum roof_stream)s));
		json_put(j, key, real(l->Bps[s]), good);
	}
	json_put(j, "latency_s", real(l->latency_s), good);
	json_put(j, "bytes_in_flight", real(roof_in_flight_B(roof_level_Bps(l), l->latency_s)), good);
	return j;
}

static json_t *roof_json(const struct roofline *r, enum roof_kind kind, enum dtype d, bool *good)
{
	json_t *j = json_object();
	const double peak = roofline_peak(r, kind, d), said = roofline_sheet_peak(r, kind, d);
	json_put(j, "kind", json_string(kind == ROOF_POLY ? "vector" : "matrix"), good);
	json_put(j, "dtype", json_string(dtype_name(d)), good);
	json_put(j, "flop_per_s", real(peak), good);
	json_put(j, "datasheet_flop_per_s", real(said), good);
	json_put(j, "ridge", real(roof_ridge(peak, roofline_mem_Bps(r))), good);
	json_put(j, "datasheet_ridge", real(roof_ridge(said, r->sheet.mem_Bps)), good);
	return j;
}

static json_t *roofs_json(const struct roofline *r, bool *good)
{
	json_t *roofs = json_array();
	for (int k = 0; k < 2; k++)
		for (int d = 0; d < DT_COUNT; d++) {
			const enum roof_kind kind = k ? ROOF_GEMM : ROOF_POLY;
			if (roofline_peak(r, kind, (enum dtype)d) > 0 ||
				roofline_sheet_peak(r, kind, (enum dtype)d) > 0)
				json_push(roofs, roof_json(r, kind, (enum dtype)d, good), good);
		}
	return roofs;
}

json_t *report_roofline_json(const struct roofline *r)
{
	bool good = true;
	json_t *j = json_object(), *rows = json_array(), *levels = json_array();
	json_put(j, "stepsim", json_string(STEPSIM_VERSION), &good);
	json_put(j, "device", json_string(r->device), &good);
	json_put(j, "host", json_string(r->host), &good);
	json_put(j, "backend", json_string(r->gpu ? "cuda" : "host"), &good);
	json_put(j, "double", json_boolean(r->doubles), &good);
	json_put(j, "ranks", json_integer(r->ranks), &good);
	json_put(j, "units", json_integer(r->units), &good);
	json_put(j, "clock_Hz", real(r->clock_Hz), &good);
	json_put(j, "threads_per_unit", r->threads > 0 ? json_integer(r->threads) : json_null(), &good);
	json_put(j, "occupancy", real(r->threads_most > 0 ? (double)r->threads / (double)r->threads_most : (double)NAN),
		&good);
	json_put(j, "warm_ups", json_integer(r->warm_ups), &good);
	json_put(j, "runs", json_integer(r->runs), &good);
	for (size_t i = 0; i < r->rows.n; i++)
		json_push(rows, row_json(r, &r->rows.at[i], &good), &good);
	for (int i = 0; i < r->levels; i++)
		json_push(levels, level_json(&r->level[i], &good), &good);
	json_put(j, "rows", rows, &good);
	json_put(j, "levels", levels, &good);
	json_put(j, "roofs", roofs_json(r, &good), &good);
	json_put(j, "memory_Bps", real(roofline_mem_Bps(r)), &good);
	json_put(j, "datasheet", *r->sheet.name ? json_string(r->sheet.name) : json_null(), &good);
	json_put(j, "datasheet_memory_Bps", real(r->sheet.mem_Bps), &good);
	if (good)
		return j;
	json_decref(j);
	return NULL;
}
