#include "report/import/nccl_json.h"

#include <ctype.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/log.h"
#include "base/memory_stream.h"

#define RANKS_MOST 65536
#define RANKS_ALL_MOST (16 * RANKS_MOST) /* of all tests of a file */

bool nccl_json_is(const char *text)
{
	text += strspn(text, " \t\r\n");
	return *text == '{' || (*text == '[' && (text[1 + strspn(text + 1, " \t\r\n")] == '{'));
}

static const char *text_of(const json_t *o, const char *key)
{
	const char *text = json_string_value(json_object_get(o, key));
	return text ? text : "";
}

/* Returns a count, at least 1. */
static long long count_of(const json_t *o, const char *key)
{
	const json_int_t n = json_integer_value(json_object_get(o, key));
	return n < 1 ? 1 : n > RANKS_MOST ? RANKS_MOST : n;
}

static void write_header(FILE *out, const char *collective)
{
	fprintf(out, "# Collective test starting: %s\n# size count type redop root time algbw busbw #wrong\n",
		collective);
}

/* Writes a row. False: it has no time, as of a size that was not run. */
static bool write_row(FILE *out, const json_t *row, const json_t *side, const char *const keys[3])
{
	const char *redop = text_of(row, "redop");
	if (!(json_number_value(json_object_get(side, keys[0])) > 0))
		return false;
	fprintf(out, "%.0f %.0f %.15s %.15s -1", json_number_value(json_object_get(row, "size")),
		json_number_value(json_object_get(row, "count")), text_of(row, "type"), *redop ? redop : "none");
	for (size_t i = 0; i < 3; i++)
		fprintf(out, " %.6f", json_number_value(json_object_get(side, keys[i])));
	fprintf(out, " 0\n");
	return true;
}

/* ---- nccl-tests: {"args", "nccl_version", "config": {"devices"}, "results"} ---- */

/* A process has one line, also where it drives several GPUs: the others stand on the devices behind it. */
static void write_devices(FILE *out, const json_t *config)
{
	const json_t *devices = json_object_get(config, "devices"), *d;
	const long long each = count_of(config, "ngpus") * count_of(config, "nthreads");
	size_t i;
	long long rank = 0;
	fprintf(out, "# Using devices\n");
	json_array_foreach(devices, i, d) for (long long g = 0; g < each && rank < RANKS_MOST; g++)
		fprintf(out, "#  Rank %lld Group 0 Pid %lld on %.90s device %lld [%.20s.%lld] %.90s\n", rank++,
			(long long)json_integer_value(json_object_get(d, "pid")), text_of(d, "hostname"),
			(long long)json_integer_value(json_object_get(d, "device")) + g, text_of(d, "device_hex"), g,
			text_of(d, "device_info"));
}

/* Returns how many rows have no time, and are left out. */
static size_t write_nccl(FILE *out, const json_t *root)
{
	static const char *const keys[3] = {"time", "alg_bw", "bus_bw"};
	const char *program = json_string_value(json_array_get(json_object_get(root, "args"), 0)), *slash;
	const json_t *row;
	size_t i, left_out = 0;
	program = program ? program : "";
	slash = strrchr(program, '/');
	fprintf(out, "# nccl-library=%lld\n", (long long)json_integer_value(json_object_get(root, "nccl_version")));
	write_devices(out, json_object_get(root, "config"));
	write_header(out, slash ? slash + 1 : program);
	json_array_foreach(json_object_get(root, "results"), i, row)
	{
		const json_t *outside = json_object_get(row, "out_of_place");
		left_out += !write_row(out, row,
			json_object_get(outside, keys[0]) ? outside : json_object_get(row, "in_place"), keys);
	}
	return left_out;
}

/* ---- rccl-tests: [{"name", "nodes", "ranks", "ranksPerNode", "gpusPerRank", "size", ...}] ---- */

static void write_ranks(FILE *out, const json_t *row)
{
	const long long each = count_of(row, "gpusPerRank"), ranks = count_of(row, "ranks") * each,
			nodes = count_of(row, "nodes"), on_node = ranks > nodes ? ranks / nodes : 1;
	fprintf(out, "# Using devices\n");
	for (long long i = 0; i < ranks && i < RANKS_MOST; i++)
		fprintf(out, "#  Rank %lld Group 0 Pid %lld on node%lld device %lld [%lld]\n", i, 1 + i / each,
			i / on_node, i % on_node, i % on_node);
}

/* Writes "all_reduce_perf" of "AllReduce" and "all_reduce_perf". */
static void name_of(const json_t *row, char name[64])
{
	static const char *const known[] = {"all_reduce", "all_gather", "reduce_scatter", "broadcast", "alltoall",
		"sendrecv", "reduce", "gather", "scatter", "hypercube"};
	char plain[64];
	size_t n = 0;
	for (const char *p = text_of(row, "name"); *p && n + 1 < sizeof plain; p++)
		if (isalpha((unsigned char)*p))
			plain[n++] = (char)tolower((unsigned char)*p);
	plain[n] = '\0';
	if (n > 4 && strcmp(plain + n - 4, "perf") == 0)
		plain[n - 4] = '\0';
	snprintf(name, 64, "unknown");
	for (size_t i = 0; i < COUNT(known); i++) {
		char word[64];
		size_t k = 0;
		for (const char *p = known[i]; *p; p++)
			if (*p != '_')
				word[k++] = *p;
		word[k] = '\0';
		if (strcmp(word, plain) == 0)
			snprintf(name, 64, "%s_perf", known[i]);
	}
}

/* False: the tests name too many ranks. */
static bool write_rccl(FILE *out, const json_t *root, size_t *left_out)
{
	static const char *const keys[3] = {"time", "algBw", "busBw"};
	char name[64], before[64] = "";
	const json_t *row;
	size_t i;
	long long ranks = 0, all = 0;
	json_array_foreach(root, i, row)
	{
		const long long now = count_of(row, "ranks") * count_of(row, "gpusPerRank");
		const json_t *in_place = json_object_get(row, "inPlace");
		if (json_is_true(in_place) || json_integer_value(in_place) > 0)
			continue;
		name_of(row, name);
		if (strcmp(name, before) != 0 || now != ranks) {
			all += now;
			if (all > RANKS_ALL_MOST)
				return false;
			write_ranks(out, row);
			write_header(out, name);
		}
		snprintf(before, sizeof before, "%s", name);
		ranks = now;
		*left_out += !write_row(out, row, row, keys);
	}
	return true;
}

enum status nccl_json_text(const char *json, size_t len, const char *path, char **text, struct error *e)
{
	json_error_t where;
	json_t *root = json_loadb(json, len, 0, &where);
	size_t size, left_out = 0;
	if (!root)
		return error_set(e, ST_INPUT, "%s:%d:%d: %s", path, where.line, where.column, where.text);
	const bool nccl = json_is_array(json_object_get(root, "results")) && json_object_get(root, "config");
	if (!nccl && !json_object_get(json_array_get(root, 0), "busBw")) {
		json_decref(root);
		return error_set(e, ST_INPUT,
			"%s: JSON of neither nccl-tests (\"config\", \"results\") nor rccl-tests (a list with "
			"\"busBw\")",
			path);
	}
	enum status st = ST_OK;
	FILE *out = memory_stream(text, &size);
	if (out && nccl)
		left_out = write_nccl(out, root);
	else if (out && !write_rccl(out, root, &left_out))
		st = error_set(e, ST_INPUT, "%s: its tests name more than %d ranks in all", path, RANKS_ALL_MOST);
	if (left_out)
		log_warn("%s: %zu %s no time, and %s left out", path, left_out, left_out == 1 ? "row has" : "rows have",
			left_out == 1 ? "is" : "are");
	json_decref(root);
	return !out || !memory_stream_close(out) ? error_nomem(e, "a log") : st;
}
