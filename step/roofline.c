#include "step/roofline.h"

#include "base/array.h"
#include "base/suggest.h"

#include <assert.h>
#include <math.h>

/* a row whose arrays are at least half as large as what the memory's streams go through */
#define BEYOND_CACHES 2

const char *roof_stream_name(enum roof_stream s)
{
	static const char *const names[] = {[ROOF_READ] = "read", [ROOF_COPY] = "copy", [ROOF_TRIAD] = "triad"};
	static_assert(COUNT(names) == ROOF_STREAMS, "a name for each stream");
	return names[s];
}

enum status roofline_dtype(const char *word, enum dtype *out, struct error *e)
{
	const char *names[DT_COUNT];
	size_t n = 0;
	for (int d = 0; d < DT_COUNT; d++)
		if (d != DT_INT32)
			names[n++] = dtype_name((enum dtype)d);
	*out = dtype_by_name(word);
	if (*out == DT_COUNT || *out == DT_INT32)
		return error_set(e, ST_INPUT, "--dtype %s: no such format%s", word, suggest(word, names, n, NULL).text);
	return ST_OK;
}

void roofline_free(struct roofline *r) { vec_free(&r->rows); }

double roof_attainable(double peak_flop_per_s, double Bps, double ai) { return fmin(peak_flop_per_s, ai * Bps); }

double roof_ridge(double peak_flop_per_s, double Bps)
{
	return peak_flop_per_s > 0 && Bps > 0 ? peak_flop_per_s / Bps : (double)NAN;
}

double roof_in_flight_B(double Bps, double latency_s) { return Bps * latency_s; }

double roof_poly_ai(enum dtype d, int64_t k) { return 2 * (double)k / (2 * dtype_bytes(d)); }

double roof_gemm_ai(enum dtype d, int64_t n) { return 2 * (double)n / (3 * dtype_bytes(d)); }

double roof_poly_value(double a, int64_t k) { return a == 1 ? (double)k : a * (pow(a, (double)k) - 1) / (a - 1); }

double roofline_peak(const struct roofline *r, enum roof_kind kind, enum dtype d)
{
	double peak = 0;
	for (size_t i = 0; i < r->rows.n; i++)
		if (r->rows.at[i].kind == kind && r->rows.at[i].dtype == d)
			peak = fmax(peak, r->rows.at[i].flop_per_s);
	return peak;
}

double roofline_sheet_peak(const struct roofline *r, enum roof_kind kind, enum dtype d)
{
	if (kind == ROOF_GEMM)
		return r->sheet.matrix_flop_per_s[d];
	return d == DT_FP32 ? r->sheet.vector_flop_per_s : 0;
}

double roof_level_Bps(const struct roof_level *l)
{
	double most = 0;
	for (int s = 0; s < ROOF_STREAMS; s++)
		most = fmax(most, l->Bps[s]);
	return most;
}

static bool beyond_caches(const struct roofline *r, const struct roof_row *x)
{
	return x->kind == ROOF_POLY && r->levels > 0 &&
	       2 * dtype_bytes(x->dtype) * (double)x->elements * BEYOND_CACHES >=
	               (double)r->level[r->levels - 1].footprint_B;
}

double roofline_mem_Bps(const struct roofline *r)
{
	if (r->levels == 0)
		return 0;
	double most = roof_level_Bps(&r->level[r->levels - 1]);
	for (size_t i = 0; i < r->rows.n; i++) {
		const struct roof_row *x = &r->rows.at[i];
		if (beyond_caches(r, x))
			most = fmax(most, x->Bps);
	}
	return most;
}

double roofline_share_of_peak(const struct roofline *r, const struct roof_row *row)
{
	double peak = roofline_sheet_peak(r, row->kind, row->dtype);
	if (peak <= 0)
		peak = roofline_peak(r, row->kind, row->dtype);
	return peak > 0 ? row->flop_per_s / peak : (double)NAN;
}

double roofline_share_of_roof(const struct roofline *r, const struct roof_row *row)
{
	const double peak = roofline_peak(r, row->kind, row->dtype),
		     roof = roof_attainable(peak, roofline_mem_Bps(r), row->ai);
	if (roof < peak && !beyond_caches(r, row))
		return (double)NAN;
	return roof > 0 ? row->flop_per_s / roof : (double)NAN;
}
