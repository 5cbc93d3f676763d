#include "report/import/nccl_log.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/paths.h"
#include "base/suggest.h"
#include "report/import/nccl_json.h"

#define LOG_LIMIT_B ((size_t)256 << 20)
#define PLACES_MAX 65536
#define HOST_MAX 96
#define LINE_MAX 4096

static const char *const collectives[] = {"all_reduce", "all_gather", "reduce_scatter", "broadcast", "alltoall",
	"sendrecv", "reduce", "gather", "scatter", "hypercube"};

/* A line "#  Rank  0 Group  0 Pid  16 on HOST device  0 [0x19] GPU". */
struct place {
	char host[HOST_MAX], bus[32];
	long pid, device;
};

/* What the lines so far have said of the test whose table comes next. */
struct reading {
	nccl_logs *out;
	const char *path;
	int line;
	VEC(struct place) places;
	struct nccl_log now;
	bool has_root, open; /* a table's header was read; its rows come */
};

/* ---- words of a line ---- */

/* Passes over what a launcher puts before a line: "[1,0]<stdout>:" of mpirun, "0: " of srun -l, and a quote's "> ". */
static const char *past_prefix(const char *s)
{
	const char *end;
	s += strspn(s, " \t");
	while (*s == '>' && (s[1] == ' ' || s[1] == '>'))
		s += 1 + strspn(s + 1, " ");
	if (*s == '[' && (end = strstr(s, ">:")) && end - s < 40)
		return end + 2;
	const size_t digits = strspn(s, "0123456789");
	return digits && s[digits] == ':' && s[digits + 1] == ' ' ? s + digits + 2 : s;
}

/* "all_reduce_perf" anywhere in the line: the log's own header, or the command that a shell or srun showed. */
static void find_collective(struct reading *r, const char *line)
{
	const char *perf = strstr(line, "_perf"), *own = strstr(line, "# stepsim ");
	for (size_t i = 0; i < COUNT(collectives); i++) {
		const size_t n = strlen(collectives[i]);
		const char *colon = own ? strstr(own, ": ") : NULL;
		const bool of_perf = perf && (size_t)(perf - line) >= n && strncmp(perf - n, collectives[i], n) == 0 &&
		                     ((size_t)(perf - line) == n || !(isalpha((unsigned char)perf[-(long)n - 1]) ||
									    perf[-(long)n - 1] == '_'));
		if (of_perf || (colon && strncmp(colon + 2, collectives[i], n) == 0 && colon[2 + n] == ' '))
			snprintf(r->now.collective, sizeof r->now.collective, "%s", collectives[i]);
	}
}

/* "nccl-library=22807" of nccl-tests, "NCCL version 2.19.3+cuda12.3" of NCCL itself. */
static void find_version(struct reading *r, const char *line)
{
	const char *code = strstr(line, "nccl-library="), *text = strstr(line, "NCCL version ");
	int major = 0, minor = 0, patch = 0;
	if (code)
		r->now.version = atoi(code + strlen("nccl-library="));
	else if (text && sscanf(text, "NCCL version %d.%d.%d", &major, &minor, &patch) >= 2)
		r->now.version = 10000 * major + 100 * minor + patch;
}

/* Lines of NCCL_DEBUG=INFO. */
static void find_transport(struct reading *r, const char *line)
{
	static const char *const said[][2] = {{"NET/OFI Selected Provider is efa", "EFA"},
		{"NET/OFI Using aws-ofi-nccl", "EFA"}, {"Using network AWS Libfabric", "EFA"}, {"/RoCE", "RoCE"},
		{"NET/IB : Using", "IB"}, {"Using network Socket", "TCP"}, {"NET/Socket : Using", "TCP"}};
	if (!strstr(line, "NCCL INFO") || r->now.transport[0])
		return;
	for (size_t i = 0; i < COUNT(said); i++)
		if (strstr(line, said[i][0])) {
			snprintf(r->now.transport, sizeof r->now.transport, "%s", said[i][1]);
			return;
		}
}

static enum status read_place(struct reading *r, const char *line, struct error *e)
{
	const char *pid = strstr(line, " Pid "), *on = pid ? strstr(pid, " on ") : NULL;
	struct place p = {.device = -1};
	int behind = 0;
	if (!on || sscanf(on, " on %95s%n", p.host, &behind) != 1)
		return ST_OK;
	p.pid = strtol(pid + strlen(" Pid "), NULL, 10);
	const char *rest = on + behind, *gpu = strchr(rest, ']');
	sscanf(rest, " device %ld [%31[^]]", &p.device, p.bus);
	if (gpu) {
		gpu += 1 + strspn(gpu + 1, " ");
		snprintf(r->now.gpu, sizeof r->now.gpu, "%.*s", (int)strcspn(gpu, "\r"), gpu);
	}
	if (r->places.n >= PLACES_MAX)
		return error_set(e, ST_INPUT, "%s:%d: more than %d ranks", r->path, r->line, PLACES_MAX);
	return vec_push(&r->places, p) ? ST_OK : error_nomem(e, "the ranks of a log");
}

/* ---- what the ranks' lines say together ---- */

static int by_host(const void *a, const void *b)
{
	const struct place *x = a, *y = b;
	const int host = strcmp(x->host, y->host);
	return host ? host : (x->device > y->device) - (x->device < y->device);
}

static void count_hosts(struct reading *r)
{
	struct nccl_log *l = &r->now;
	const struct place *at = r->places.at;
	const size_t n = r->places.n;
	size_t first = 0, on_first = 0;
	l->ranks = (int64_t)n;
	l->hosts = 0;
	l->even = true;
	l->shared = false;
	l->one_process = n > 0;
	if (n > 0)
		qsort(r->places.at, n, sizeof *at, by_host);
	for (size_t i = 0; i < n; i++) {
		const bool new_host = i == 0 || strcmp(at[i].host, at[i - 1].host) != 0;
		if (new_host) {
			l->hosts++;
			first = i;
		} else {
			l->one_process = l->one_process && at[i].pid == at[first].pid;
			l->shared = l->shared || (at[i].device == at[i - 1].device && at[i].device >= 0 &&
							 strcmp(at[i].bus, at[i - 1].bus) == 0 && at[i].bus[0] &&
							 strcmp(at[i].bus, "0x00") != 0);
		}
		if (i + 1 == n || strcmp(at[i].host, at[i + 1].host) != 0) {
			const size_t here = i + 1 - first;
			l->even = l->even && (on_first == 0 || on_first == here);
			on_first = on_first ? on_first : here;
		}
	}
	l->one_process = l->one_process && n > (size_t)l->hosts;
}

/* ---- the table ---- */

/* The collective of a table whose log names none, by what its columns say; "": several would fit. */
static const char *collective_of(const char *redop, double ratio, int64_t ranks)
{
	const double n = (double)ranks;
	if (strcmp(redop, "sum") != 0 || ranks < 2)
		return "";
	if (fabs(ratio - 2 * (n - 1) / n) < 0.02)
		return "all_reduce";
	return fabs(ratio - (n - 1) / n) < 0.02 ? "reduce_scatter" : "";
}

/* With -C the times are those that the calls took on the host. */
static bool is_header(const char *line)
{
	return *line == '#' && strstr(line, "algbw") && strstr(line, "busbw") && !strstr(line, "cputime");
}

static enum status begin_table(struct reading *r, const char *line, struct error *e)
{
	struct nccl_log l;
	count_hosts(r);
	if (r->now.ranks < 1)
		return error_set(e, ST_INPUT,
			"%s:%d: a table without the lines \"#  Rank  0 ... Pid ... on HOST\" above it: how many ranks "
			"and hosts ran is not told",
			r->path, r->line);
	l = r->now;
	snprintf(l.path, sizeof l.path, "%s", r->path);
	l.rows.at = NULL, l.rows.n = l.rows.cap = 0;
	r->has_root = strstr(line, " root") != NULL;
	r->open = true;
	return vec_push(r->out, l) ? ST_OK : error_nomem(e, "a log");
}

/* Cuts a copy of the line into words. */
static size_t cut(char *line, char *words[], size_t most)
{
	size_t n = 0;
	for (char *save = NULL, *w = strtok_r(line, " \t\r", &save); w && n < most; w = strtok_r(NULL, " \t\r", &save))
		words[n++] = w;
	return n;
}

static bool number(const char *word, double *out)
{
	char *end;
	*out = strtod(word, &end);
	return end != word && !*end && isfinite(*out);
}

/* "size count type [redop] [root] time algbw busbw #wrong time algbw busbw ...". False: it is no row of a table. */
static bool read_row(const struct reading *r, const char *line, struct nccl_log_row *row, char redop[16], double *ratio)
{
	char copy[LINE_MAX], *words[24];
	double bytes, count, out[3], in[3];
	snprintf(copy, sizeof copy, "%s", line);
	const size_t n = cut(copy, words, COUNT(words));
	if (n < 6 || !number(words[0], &bytes) || !number(words[1], &count) || !isalpha((unsigned char)*words[2]))
		return false;
	size_t at = 3;
	snprintf(redop, 16, "%s", isalpha((unsigned char)*words[at]) && n > 6 ? words[at++] : "none");
	at += r->has_root;
	if (at + 3 > n)
		return false;
	bool good = true, in_place = at + 7 <= n;
	for (size_t i = 0; i < 3; i++) {
		good = good && number(words[at + i], &out[i]);
		in_place = in_place && number(words[at + 4 + i], &in[i]);
	}
	if (!good && !in_place)
		return false;
	const double *side = good ? out : in;
	*ratio = side[1] > 0.1 ? side[2] / side[1] : 0;
	*row = (struct nccl_log_row){.bytes = (uint64_t)bytes,
		.time_s = 1e-6 * side[0],
		.busbw_Bps = 1e9 * side[2],
		.line = r->line};
	snprintf(row->type, sizeof row->type, "%s", words[2]);
	return side[0] > 0 && bytes >= 0 && bytes < 1e18;
}

static enum status keep_row(struct reading *r, const char *line, struct error *e)
{
	struct nccl_log *l = &r->out->at[r->out->n - 1];
	struct nccl_log_row row;
	char redop[16];
	double ratio;
	if (!read_row(r, line, &row, redop, &ratio))
		return ST_OK;
	if (!l->collective[0] && ratio > 0)
		snprintf(l->collective, sizeof l->collective, "%s", collective_of(redop, ratio, l->ranks));
	return vec_push(&l->rows, row) ? ST_OK : error_nomem(e, "the rows of a log");
}

/* ---- the file ---- */

static enum status read_line(struct reading *r, const char *raw, struct error *e)
{
	const char *line = past_prefix(raw);
	find_collective(r, line);
	find_version(r, line);
	find_transport(r, line);
	if (strstr(line, "# Using devices")) {
		r->places.n = 0;
		r->now.gpu[0] = '\0';
		r->open = false;
	}
	const char *rank = strstr(line, " Rank ");
	if (*line == '#' && rank && strstr(rank, " Pid "))
		return read_place(r, rank, e);
	if (is_header(line))
		return begin_table(r, line, e);
	if (strstr(line, "# Avg bus bandwidth") || strstr(line, "# Out of bounds")) {
		r->open = false;
		r->now.collective[0] = '\0';
	}
	return r->open && isdigit((unsigned char)line[strspn(line, " ")]) ? keep_row(r, line, e) : ST_OK;
}

/* Drops tables without a row, and refuses what cannot be told. */
static enum status check(struct reading *r, size_t before, struct error *e)
{
	size_t kept = before;
	for (size_t i = before; i < r->out->n; i++) {
		struct nccl_log *l = &r->out->at[i];
		if (!l->rows.n) {
			vec_free(&l->rows);
			continue;
		}
		if (!l->version)
			l->version = r->now.version; /* NCCL prints it after the first call in some versions */
		if (!l->transport[0])
			snprintf(l->transport, sizeof l->transport, "%s", r->now.transport);
		r->out->at[kept++] = *l;
	}
	r->out->n = kept;
	if (kept == before)
		return error_set(e, ST_INPUT, "%s: no row of nccl-tests' table (size, count, type, time, algbw, busbw)",
			r->path);
	for (size_t i = before; i < kept; i++)
		if (!r->out->at[i].collective[0])
			return error_set(e, ST_INPUT,
				"%s:%d: which collective this table is of is not told%s (a line that names it, as "
				"\"# Collective test starting: all_gather_perf\", above the table says it)",
				r->path, r->out->at[i].rows.at[0].line, suggest_names("known", collectives, 6).text);
	return ST_OK;
}

/* Reads the file; JSON as the text that it stands for. */
static enum status read_text(const char *path, char **text, struct error *e)
{
	char *json;
	size_t len;
	enum status st = file_read(path, LOG_LIMIT_B, text, &len, e);
	if (st || !nccl_json_is(*text))
		return st;
	json = *text;
	*text = NULL;
	st = nccl_json_text(json, len, path, text, e);
	free(json);
	return st;
}

enum status nccl_log_read(const char *path, nccl_logs *out, struct error *e)
{
	char *text = NULL;
	const size_t before = out->n;
	struct reading r = {.out = out, .path = path};
	enum status st = read_text(path, &text, e);
	for (char *line = text, *next; !st && line; line = next) {
		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		r.line++;
		st = read_line(&r, line, e);
	}
	if (!st)
		st = check(&r, before, e);
	vec_free(&r.places);
	free(text);
	return st;
}

void nccl_logs_free(nccl_logs *logs)
{
	for (size_t i = 0; i < logs->n; i++)
		vec_free(&logs->at[i].rows);
	vec_free(logs);
}

bool nccl_log_is(const char *path)
{
	char *text = NULL;
	size_t len;
	struct error unread = {0};
	if (file_read(path, LOG_LIMIT_B, &text, &len, &unread))
		return false;
	bool found = nccl_json_is(text); /* a table has no such beginning */
	for (char *line = text, *next; line && !found; line = next) {
		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		found = is_header(past_prefix(line));
	}
	free(text);
	return found;
}
