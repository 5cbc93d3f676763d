#include "report/import/train_log.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/array.h"
#include "base/paths.h"
#include "base/stats.h"

#define LOG_LIMIT_B ((size_t)1 << 30)
#define MIB 1048576.0

/* Takes colours ("ESC [ ... letter") out of a line. */
static void strip_colours(char *line)
{
	char *to = line;
	for (const char *s = line; *s;) {
		if (*s == '\033' && s[1] == '[') {
			s += 2 + strcspn(s + 2, "ABCDEFGHJKSTfmsu");
			s += *s != '\0';
		} else {
			*to++ = *s++;
		}
	}
	*to = '\0';
}

/* Reads the number behind `word`: thousands may be parted by commas, K, M, B and T multiply. False: it is not there. */
static bool number_after(const char *line, const char *word, double *out)
{
	static const char letters[] = "KMBT";
	const char *at = strstr(line, word), *letter;
	char digits[64];
	size_t n = 0;
	if (!at)
		return false;
	at += strlen(word);
	at += strspn(at, " \t");
	for (; (isdigit((unsigned char)*at) || strchr(",.-+eE", *at)) && *at && n + 1 < sizeof digits; at++)
		if (*at != ',')
			digits[n++] = *at;
	digits[n] = '\0';
	char *end;
	*out = strtod(digits, &end);
	if (end == digits || *end || !isfinite(*out))
		return false;
	if (*at && (letter = strchr(letters, *at)) && !isalpha((unsigned char)at[1]))
		*out *= pow(1000, (double)(letter - letters + 1));
	return true;
}

/* The first date and time of a line, in seconds; 0: there is none. */
static double stamp(const char *line)
{
	for (const char *s = line; *s; s++) {
		struct tm t = {0};
		double seconds = 0;
		int year = 0, month = 0;
		if (!isdigit((unsigned char)*s) || (s > line && isdigit((unsigned char)s[-1])))
			continue;
		if (sscanf(s, "%4d-%2d-%2d%*1[ T]%2d:%2d:%lf", &year, &month, &t.tm_mday, &t.tm_hour, &t.tm_min,
			    &seconds) != 6 &&
			sscanf(s, "%2d/%2d/%4d %2d:%2d:%lf", &month, &t.tm_mday, &year, &t.tm_hour, &t.tm_min,
				&seconds) != 6)
			continue;
		const char *comma = strchr(s, ','); /* Python's logging: 15:57:42,774 */
		if (comma && comma - s < 20 && isdigit((unsigned char)comma[1]))
			seconds += 1e-3 * atoi(comma + 1);
		t.tm_year = year - 1900;
		t.tm_mon = month - 1;
		return (double)timegm(&t) + seconds;
	}
	return 0;
}

/* ---- the frameworks ---- */

static bool read_titan(const char *line, struct train_log_step *s)
{
	double step;
	const bool good = number_after(line, "tps:", &s->tokens_per_s_per_gpu) && strstr(line, "loss:") &&
	                  number_after(line, "step:", &step) && s->tokens_per_s_per_gpu > 0;
	s->step = good ? (int64_t)step : 0;
	return good;
}

static bool read_iterations(const char *line, const char *iteration, const char *time, const char *batch,
	struct train_log_step *s)
{
	double step, ms, sequences;
	if (!number_after(line, time, &ms) || !number_after(line, iteration, &step) || !(ms > 0))
		return false;
	s->step = (int64_t)step;
	s->time_s = 1e-3 * ms;
	if (number_after(line, batch, &sequences))
		s->global_batch = (int64_t)sequences;
	return true;
}

static bool read_megatron(const char *line, struct train_log_step *s)
{
	double skipped = 0;
	if (!read_iterations(line, "iteration ", "elapsed time per iteration (ms):", "global batch size:", s) &&
		!read_iterations(line, "iteration: ", "elapsed time per iteration (ms):", "global batch size:", s))
		return false;
	s->skipped = number_after(line, "number of skipped iterations:", &skipped) && skipped > 0;
	return true;
}

static bool read_nanotron(const char *line, struct train_log_step *s)
{
	return read_iterations(line, "iteration:", "time_per_iteration_ms:", "global_batch_size:", s);
}

static bool read_nanogpt(const char *line, struct train_log_step *s)
{
	return strstr(line, ": loss ") && strstr(line, "ms") && read_iterations(line, "iter ", ", time ", "none", s);
}

static const struct {
	const char *name;
	bool (*read)(const char *line, struct train_log_step *s);
	struct {
		const char *word; /* of memory reserved */
		double unit_B;    /* 0: GiB or MiB follow the number */
	} memory;
} frameworks[] = {
	{"torchtitan", read_titan, {"memory:", 0}},
	{"Megatron-LM", read_megatron, {"max reserved:", MIB}},
	{"nanotron", read_nanotron, {"Peak reserved:", 0}},
	{"nanoGPT", read_nanogpt, {"none", 0}},
};

static void read_memory(const char *line, size_t framework, struct train_log *log)
{
	double value;
	const char *at = strstr(line, frameworks[framework].memory.word);
	if (!at || !number_after(line, frameworks[framework].memory.word, &value))
		return;
	const char *unit = at + strcspn(at, "GM");
	const double unit_B = frameworks[framework].memory.unit_B > 0 ? frameworks[framework].memory.unit_B
	                      : strncmp(unit, "GiB", 3) == 0          ? 1024 * MIB
	                      : strncmp(unit, "MiB", 3) == 0          ? MIB
	                                                              : 0;
	log->memory_B = fmax(log->memory_B, value * unit_B);
}

/* ---- the file ---- */

/* Several ranks print the same step, perhaps after one has printed the next: the slowest's line stays. */
static bool keep(struct train_log *log, const struct train_log_step *s)
{
	for (size_t back = 1; back <= 2 && back <= log->steps.n; back++) {
		struct train_log_step *same = &log->steps.at[log->steps.n - back];
		if (same->step != s->step)
			continue;
		if (s->time_s > same->time_s ||
			(s->tokens_per_s_per_gpu > 0 && s->tokens_per_s_per_gpu < same->tokens_per_s_per_gpu))
			*same = *s;
		return true;
	}
	return vec_push(&log->steps, *s);
}

static enum status read_line(struct train_log *log, size_t *framework, char *line, int number, struct error *e)
{
	strip_colours(line);
	for (size_t i = 0; i < COUNT(frameworks); i++) {
		struct train_log_step s = {.line = number};
		if (!frameworks[i].read(line, &s))
			continue;
		if (*framework < COUNT(frameworks) && i != *framework)
			return error_set(e, ST_INPUT, "%s:%d: a step of %s in a log of %s", log->path, number,
				frameworks[i].name, log->framework);
		*framework = i;
		log->framework = frameworks[i].name;
		s.stamp_s = stamp(line);
		if (!keep(log, &s))
			return error_nomem(e, "the steps of a log");
		break;
	}
	for (size_t i = 0; i < COUNT(frameworks); i++)
		if (*framework == i || *framework == COUNT(frameworks))
			read_memory(line, i, log);
	return ST_OK;
}

enum status train_log_read(const char *path, struct train_log *out, struct error *e)
{
	char *text = NULL;
	size_t len, framework = COUNT(frameworks);
	int number = 0;
	*out = (struct train_log){0};
	snprintf(out->path, sizeof out->path, "%s", path);
	enum status st = file_read(path, LOG_LIMIT_B, &text, &len, e);
	for (char *line = text, *next; !st && line; line = next) {
		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		st = read_line(out, &framework, line, ++number, e);
	}
	free(text);
	if (!st && !out->steps.n)
		st = error_set(e, ST_INPUT,
			"%s: no step of torchtitan (\"step: N ... tps: N\"), Megatron-LM (\"iteration N/N | ... "
			"elapsed time per iteration (ms): T\"), "
			"nanotron (\"iteration: N / N | ... "
			"elapsed_time_per_iteration_ms: T\") or nanoGPT (\"iter N: loss L, time Tms\") is in it",
			path);
	return st;
}

void train_log_free(struct train_log *log)
{
	vec_free(&log->steps);
	*log = (struct train_log){0};
}

/* ---- the summary ---- */

static bool counts(const struct train_log *log, size_t i, int64_t warmup)
{
	const struct train_log_step *s = &log->steps.at[i];
	const bool follows = i > 0 && s->step > log->steps.at[i - 1].step; /* else the run begins, or begins again */
	return !s->skipped && (log->steps.n == 1 || (follows && s->step > warmup));
}

/* Steps that are printed for so many tokens and ranks take, by the times of lines that follow each other. */
static double stamped_s(const struct train_log *log, int64_t warmup, double *room)
{
	size_t n = 0;
	for (size_t i = 1; i < log->steps.n; i++) {
		const struct train_log_step *a = &log->steps.at[i - 1], *b = &log->steps.at[i];
		if (counts(log, i, warmup) && a->stamp_s > 0 && b->stamp_s > a->stamp_s && b->step > a->step)
			room[n++] = (b->stamp_s - a->stamp_s) / (double)(b->step - a->step);
	}
	return n ? stats_median(room, n) : 0;
}

enum status train_log_sum(const struct train_log *log, double tokens, double ranks, int64_t warmup,
	struct train_log_summary *out, struct error *e)
{
	double *times = malloc(log->steps.n * sizeof *times);
	if (!times)
		return error_nomem(e, "the steps of a log");
	*out = (struct train_log_summary){.stamped_s = stamped_s(log, warmup, times)};
	for (size_t i = 0; i < log->steps.n; i++) {
		const struct train_log_step *s = &log->steps.at[i];
		if (!counts(log, i, warmup)) {
			out->left_out++;
			continue;
		}
		out->first = out->lines ? out->first : s->step;
		out->last = s->step;
		out->global_batch = s->global_batch;
		times[out->lines++] = s->time_s > 0 ? s->time_s : tokens / (ranks * s->tokens_per_s_per_gpu);
	}
	const size_t n = out->lines;
	if (n) {
		out->median_s = stats_median(times, n);
		out->p10_s = stats_percentile(times, n, 10);
		out->p90_s = stats_percentile(times, n, 90);
		out->min_s = stats_min(times, n);
		out->max_s = stats_max(times, n);
		out->tokens_per_s_per_gpu = tokens / (ranks * out->median_s);
	}
	free(times);
	return n ? ST_OK
	         : error_set(e, ST_INPUT,
			   "%s: all %zu lines of steps are of the warm-up (the first, and those up to step %lld: "
			   "run.warmup) or have skipped iterations",
			   log->path, log->steps.n, (long long)warmup);
}
