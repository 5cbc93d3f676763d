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
#include "report/import/train_log_lines.h"

#define LOG_LIMIT_B ((size_t)1 << 30)
#define MIB 1048576.0
#define NONE SIZE_MAX

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

static void read_memory(const char *line, const struct train_log_lines *l, struct train_log *log)
{
	double value;
	const char *at = l->memory.word ? strstr(line, l->memory.word) : NULL;
	if (!at || !train_log_number(line, l->memory.word, &value))
		return;
	const char *unit = at + strcspn(at, "GM");
	const double unit_B = l->memory.unit_B > 0           ? l->memory.unit_B
	                      : strncmp(unit, "GiB", 3) == 0 ? 1024 * MIB
	                      : strncmp(unit, "MiB", 3) == 0 ? MIB
	                                                     : 0;
	log->memory_B = fmax(log->memory_B, value * unit_B);
}

/* ---- the file ---- */

/* Several ranks print the same step, perhaps after one has printed the next: the slowest's line stays. */
static bool keep(struct train_log *log, struct train_log_step s)
{
	if (s.step < 0) /* not printed */
		s.step = log->steps.n ? log->steps.at[log->steps.n - 1].step + 1 : 1;
	if (log->steps.n && log->steps.at[0].of != s.of)
		return true; /* another bar: of an evaluation */
	for (size_t back = 1; back <= 2 && back <= log->steps.n; back++) {
		struct train_log_step *same = &log->steps.at[log->steps.n - back];
		if (same->step != s.step)
			continue;
		if (s.time_s > same->time_s ||
			(s.tokens_per_s_per_gpu > 0 && s.tokens_per_s_per_gpu < same->tokens_per_s_per_gpu))
			*same = s;
		return true;
	}
	return vec_push(&log->steps, s);
}

/* Takes a step as that of framework i. Steps that a library below printed before are left. */
static enum status take(struct train_log *log, size_t *now, size_t i, const struct train_log_step *s, struct error *e)
{
	const struct train_log_lines *l = &train_log_lines[i];
	const bool other = *now != NONE && strcmp(train_log_lines[*now].framework, l->framework) != 0;
	if (*now != NONE && i != *now && l->weak && i > *now)
		return ST_OK;
	if (other && !train_log_lines[*now].weak)
		return error_set(e, ST_INPUT, "%s:%d: a step of %s in a log of %s", log->path, s->line, l->framework,
			log->framework);
	if (*now != i)
		log->steps.n = 0;
	*now = i;
	log->framework = l->framework;
	return keep(log, *s) ? ST_OK : error_nomem(e, "the steps of a log");
}

static enum status read_line(struct train_log *log, size_t *now, char *line, int number, struct error *e)
{
	strip_colours(line);
	enum status st = ST_OK;
	for (size_t i = 0; i < train_log_lines_n && !st; i++) {
		struct train_log_step s = {.line = number};
		if (!train_log_lines[i].read(line, &s))
			continue;
		s.stamp_s = stamp(line);
		st = take(log, now, i, &s, e);
		break;
	}
	for (size_t i = 0; i < train_log_lines_n; i++)
		if (*now == i || *now == NONE)
			read_memory(line, &train_log_lines[i], log);
	return st;
}

enum status train_log_read(const char *path, struct train_log *out, struct error *e)
{
	char *text = NULL;
	size_t len, now = NONE;
	int number = 0;
	*out = (struct train_log){0};
	snprintf(out->path, sizeof out->path, "%s", path);
	enum status st = file_read(path, LOG_LIMIT_B, &text, &len, e);
	/* A bar that is drawn again begins its line again. */
	for (char *line = text, *next; !st && line; line = next) {
		const bool ends = !(next = strpbrk(line, "\r\n")) || *next == '\n';
		if (next)
			*next++ = '\0';
		st = read_line(out, &now, line, number + 1, e);
		number += ends;
	}
	free(text);
	if (!st && !out->steps.n)
		st = error_set(e, ST_INPUT,
			"%s: no line is a step as a framework that is known prints it, such as \"step: N ... tps: "
			"N\" (docs/reference.md lists them)",
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

enum status train_log_sum(const struct train_log *log, double tokens, double sequences, double ranks, int64_t warmup,
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
		times[out->lines++] = s->time_s > 0          ? s->time_s
		                      : s->samples_per_s > 0 ? sequences / s->samples_per_s
		                                             : tokens / (ranks * s->tokens_per_s_per_gpu);
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
