/* The table of `stepsim bench`: nccl-tests' columns first, so that what reads its output reads this too, then ours. */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/paths.h"
#include "report/json_build.h"
#include "report/report.h"

#define CELL 64

/* nccl-tests' words for the formats. */
static const char *type_word(enum dtype d)
{
	static const char *const words[DT_COUNT] =
		{[DT_FP32] = "float", [DT_FP16] = "half", [DT_BF16] = "bfloat16", [DT_INT32] = "int32"};
	return words[d] ? words[d] : dtype_name(d);
}

static const char *redop_word(const struct bench_table *t) { return collective_reduces(t->plan.coll) ? "sum" : "none"; }

static int root_of(const struct bench_table *t) { return t->plan.coll == COLL_BROADCAST ? 0 : -1; }

/* ---- text ---- */

/* "double": the calls were made, and their time says nothing. */
static const char *number(char buf[CELL], const struct bench_table *t, const struct bench_side *side, double value)
{
	if (!side->done)
		return "N/A";
	if (t->doubles)
		return "double";
	snprintf(buf, CELL, value >= 100000 ? "%.0f" : value >= 1000 ? "%.1f" : "%.2f", value);
	return buf;
}

static void print_side(const struct bench_table *t, const struct bench_row *r, const struct bench_side *side, FILE *out)
{
	char time[CELL], algbw[CELL], busbw[CELL], wrong[CELL] = "N/A";
	if (side->done && t->plan.check)
		snprintf(wrong, sizeof wrong, "%" PRIu64, side->wrong);
	fprintf(out, " %9s %7s %7s %6s", number(time, t, side, side->time_s * 1e6),
		number(algbw, t, side, bench_algbw_Bps(r, side) / 1e9),
		number(busbw, t, side, bench_busbw_Bps(t, r, side) / 1e9), wrong);
}

static const char *or_dash(char buf[CELL], const char *format, double value)
{
	if (!isfinite(value))
		return "-";
	snprintf(buf, CELL, format, value);
	return buf;
}

static void print_row(const struct bench_table *t, const struct bench_row *r, FILE *out)
{
	char predicted[CELL], error[CELL], estimate[CELL], choice[CELL] = "-", verdict[BENCH_VERDICT];
	fprintf(out, "%13" PRIu64 " %13" PRIu64 " %9s %7s %7d", r->bytes, r->count, type_word(t->plan.dtype),
		redop_word(t), root_of(t));
	print_side(t, r, &r->out_of_place, out);
	print_side(t, r, &r->in_place, out);
	fprintf(out, " %10s %8s", or_dash(predicted, "%.2f", t->doubles ? NAN : r->predicted_s * 1e6),
		or_dash(error, "%+.1f", 100 * bench_error(t, r)));
	if (t->gpus) {
		if (r->algorithm[0])
			snprintf(choice, sizeof choice, "%s%s%s/%d", r->algorithm, r->protocol[0] ? "/" : "",
				r->protocol, r->channels);
		fprintf(out, " %10s %18s", or_dash(estimate, "%.2f", t->doubles ? NAN : r->estimate_s * 1e6), choice);
	}
	const char *word = bench_verdict(t, r, verdict);
	fprintf(out, "  %s\n", *word ? word : "-");
}

static void print_head(const struct bench_table *t, FILE *out)
{
	const struct bench_plan *p = &t->plan;
	fprintf(out, "# stepsim " STEPSIM_VERSION ": %s over %s, %" PRId64 " rank%s\n", collective_name(p->coll),
		t->gpus ? "NCCL" : "MPI", t->ranks, t->ranks == 1 ? "" : "s");
	fprintf(out,
		"# minBytes %" PRIu64 " maxBytes %" PRIu64 " step: %" PRId64 "(factor) warmup iters: %" PRId64
		" iters: %" PRId64 " validation: %d\n#\n# Using devices\n",
		p->min_B, p->max_B, p->factor, p->warmup, p->iters, p->check);
	for (int64_t i = 0; i < t->ranks; i++)
		fprintf(out, "#  Rank %2" PRId64 " Pid %6" PRId64 " on %10s %s\n", i, t->places[i].pid,
			t->places[i].host, t->places[i].device);
	fprintf(out, "#\n#%12s %13s %9s %7s %7s %32s %32s\n", "", "", "", "", "", "out-of-place           ",
		"in-place             ");
	fprintf(out, "#%12s %13s %9s %7s %7s %9s %7s %7s %6s %9s %7s %7s %6s %10s %8s", "size", "count", "type",
		"redop", "root", "time", "algbw", "busbw", "#wrong", "time", "algbw", "busbw", "#wrong", "predicted",
		"error");
	fprintf(out, t->gpus ? " %10s %18s  verdict\n" : "%s%s  verdict\n", t->gpus ? "NCCL est." : "",
		t->gpus ? "NCCL chose" : "");
	fprintf(out, "#%12s %13s %9s %7s %7s %9s %7s %7s %6s %9s %7s %7s %6s %10s %8s\n", "(B)", "(elements)", "", "",
		"", "(us)", "(GB/s)", "(GB/s)", "", "(us)", "(GB/s)", "(GB/s)", "", "(us)", "(%)");
}

/* Writes the verdict in a sentence: the share of the expected rate, its limit, how busbw counts. "" where nothing can
 * be said. */
static void judge(const struct bench_table *t, const struct bench_summary *s, char *text, size_t size)
{
	text[0] = '\0';
	if (t->doubles) {
		snprintf(text, size, "doubles of the CUDA libraries: the results were checked, nothing was measured");
	} else if (t->meaningless) {
		snprintf(text, size, "several ranks share a GPU: the results were checked, the times mean nothing");
	} else if (t->ranks < 2) {
		snprintf(text, size, "one rank alone: nothing crosses a link");
	} else if (t->unpredicted[0]) {
		snprintf(text, size, "no prediction: %s", t->unpredicted);
	} else if (!s->largest) {
		snprintf(text, size,
			"all sizes are small: their times are latency, and say nothing about the links (-e sets "
			"the largest size)");
	} else {
		const struct bench_row *r = s->largest;
		double wire_B = (double)r->bytes * collective_wire_factor(t->plan.coll, t->ranks);
		int n = snprintf(text, size,
			"%s: %.0f %% of what this machine should reach (median from 1 MiB on); at %" PRIu64
			" B busbw is %.2f GB/s, %.2f expected",
			s->share < 0.8    ? "slow"
			: s->share > 1.25 ? "fast"
					  : "normal",
			100 * s->share, r->bytes, wire_B / r->out_of_place.time_s / 1e9, wire_B / r->predicted_s / 1e9);
		if (t->limited_by[0])
			n += snprintf(text + n, size - (size_t)n, ", limited by %s", t->limited_by);
		snprintf(text + n, size - (size_t)n, "; busbw counts one direction (an NVLink datasheet counts both)");
	}
}

enum status report_bench_text(const struct bench_table *t, FILE *out, struct error *e)
{
	struct bench_summary s;
	char verdict[1024], rate[CELL];
	enum status st = bench_summarize(t, &s, e);
	if (st)
		return st;
	print_head(t, out);
	for (size_t i = 0; i < t->n; i++)
		print_row(t, &t->rows[i], out);
	if (t->plan.check)
		fprintf(out, "# Out of bounds values : %" PRIu64 " %s\n", s.wrong, s.wrong ? "FAILED" : "OK");
	else
		fprintf(out, "# Out of bounds values : N/A (-c 0)\n");
	fprintf(out, "# Avg bus bandwidth    : %s\n", or_dash(rate, "%.4f", t->doubles ? NAN : s.busbw_Bps / 1e9));
	judge(t, &s, verdict, sizeof verdict);
	fprintf(out, "# Verdict              : %s\n", verdict);
	return ST_OK;
}

/* ---- JSON ---- */

static json_t *side_json(const struct bench_table *t, const struct bench_row *r, const struct bench_side *side)
{
	if (!side->done)
		return json_null();
	bool hidden = t->doubles;
	return json_pack("{s:o, s:o, s:o, s:o}", "time_s", json_number(hidden ? NAN : side->time_s), "algbw_Bps",
		json_number(hidden ? NAN : bench_algbw_Bps(r, side)), "busbw_Bps",
		json_number(hidden ? NAN : bench_busbw_Bps(t, r, side)), "wrong",
		t->plan.check ? json_integer((json_int_t)side->wrong) : json_null());
}

static json_t *nccl_json(const struct bench_table *t, const struct bench_row *r)
{
	if (!t->gpus)
		return json_null();
	return json_pack("{s:o, s:s?, s:s?, s:o}", "estimate_s", json_number(t->doubles ? NAN : r->estimate_s),
		"algorithm", r->algorithm[0] ? r->algorithm : NULL, "protocol", r->protocol[0] ? r->protocol : NULL,
		"channels", r->channels ? json_integer(r->channels) : json_null());
}

static json_t *row_json(const struct bench_table *t, const struct bench_row *r)
{
	char verdict[BENCH_VERDICT];
	const char *word = bench_verdict(t, r, verdict);
	return json_pack("{s:I, s:I, s:o, s:o, s:o, s:o, s:s?, s:o}", "size_bytes", (json_int_t)r->bytes, "count",
		(json_int_t)r->count, "out_of_place", side_json(t, r, &r->out_of_place), "in_place",
		side_json(t, r, &r->in_place), "predicted_s", json_number(t->doubles ? NAN : r->predicted_s), "error",
		json_number(bench_error(t, r)), "verdict", *word ? word : NULL, "nccl", nccl_json(t, r));
}

static json_t *rows_json(const struct bench_table *t)
{
	json_t *rows = json_array();
	for (size_t i = 0; i < t->n && rows; i++)
		if (json_array_append_new(rows, row_json(t, &t->rows[i])) != 0) {
			json_decref(rows);
			return NULL;
		}
	return rows;
}

static json_t *places_json(const struct bench_table *t)
{
	json_t *places = json_array();
	for (int64_t i = 0; i < t->ranks && places; i++)
		if (json_array_append_new(places,
			    json_pack("{s:s, s:s}", "host", t->places[i].host, "device", t->places[i].device)) != 0) {
			json_decref(places);
			return NULL;
		}
	return places;
}

enum status report_bench_json(const struct bench_table *t, json_t *system, const char *path, struct error *e)
{
	const struct bench_plan *p = &t->plan;
	struct bench_summary s;
	char verdict[1024];
	enum status st = bench_summarize(t, &s, e);
	if (st)
		return st;
	judge(t, &s, verdict, sizeof verdict);
	json_t *j = json_pack("{s:s, s:s, s:s, s:s, s:o, s:I, s:I, s:I, s:I, s:I, s:b, s:b, s:O?, s:o, s:o}", "stepsim",
		STEPSIM_VERSION, "commit", report_commit(), "collective", collective_name(p->coll), "dtype",
		dtype_name(p->dtype), "ranks", places_json(t), "min_bytes", (json_int_t)p->min_B, "max_bytes",
		(json_int_t)p->max_B, "factor", (json_int_t)p->factor, "iters", (json_int_t)p->iters, "warmup",
		(json_int_t)p->warmup, "check", p->check, "double", t->doubles, "system", system, "rows", rows_json(t),
		"summary",
		json_pack("{s:o, s:o, s:o, s:o, s:s?, s:s}", "wrong",
			p->check ? json_integer((json_int_t)s.wrong) : json_null(), "busbw_Bps",
			json_number(t->doubles ? NAN : s.busbw_Bps), "share_of_expected", json_number(s.share),
			"median_error", json_number(s.error), "limited_by", t->limited_by[0] ? t->limited_by : NULL,
			"verdict", verdict));
	st = j ? report_write_json(j, path, e) : error_nomem(e, "the JSON result");
	json_decref(j);
	return st;
}

/* ---- CSV ---- */

static void csv_real(FILE *out, bool hidden, double value)
{
	fputc(',', out);
	if (!hidden && isfinite(value))
		fprintf(out, "%.9g", value);
}

static void csv_side(FILE *out, const struct bench_table *t, const struct bench_row *r, const struct bench_side *side)
{
	csv_real(out, t->doubles, side->time_s * 1e6);
	csv_real(out, t->doubles, bench_algbw_Bps(r, side) / 1e9);
	csv_real(out, t->doubles, bench_busbw_Bps(t, r, side) / 1e9);
	csv_real(out, !side->done || !t->plan.check, (double)side->wrong);
}

static void write_csv(const void *of, FILE *out)
{
	const struct bench_table *t = of;
	char verdict[BENCH_VERDICT];
	fputs("size_bytes,count,type,time_us,algbw_GBps,busbw_GBps,wrong,inplace_time_us,inplace_algbw_GBps,"
	      "inplace_busbw_GBps,inplace_wrong,redop,root,predicted_us,error_percent,nccl_estimate_us,nccl_algorithm,"
	      "nccl_protocol,"
	      "nccl_channels,verdict\n",
		out);
	for (size_t i = 0; i < t->n; i++) {
		const struct bench_row *r = &t->rows[i];
		fprintf(out, "%" PRIu64 ",%" PRIu64 ",%s", r->bytes, r->count, type_word(t->plan.dtype));
		csv_side(out, t, r, &r->out_of_place);
		csv_side(out, t, r, &r->in_place);
		fprintf(out, ",%s,%d", redop_word(t), root_of(t));
		csv_real(out, t->doubles, r->predicted_s * 1e6);
		csv_real(out, false, 100 * bench_error(t, r));
		csv_real(out, t->doubles, r->estimate_s * 1e6);
		fprintf(out, ",%s,%s", r->algorithm, r->protocol);
		csv_real(out, r->channels == 0, r->channels);
		fprintf(out, ",%s\n", bench_verdict(t, r, verdict));
	}
}

enum status report_bench_csv(const struct bench_table *t, const char *path, struct error *e)
{
	return file_write_of(path, write_csv, t, "the CSV text", e);
}
