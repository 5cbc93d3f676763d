#include "exec/cpu_steal.h"

#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "exec/session.h"

/* of the cores' time: less is within what a kernel does for its processes, and ticks resolve */
#define SHOWS 0.1
#define MENTIONED 0.01

/* proc_stat(5): user (guests' included), nice, system, idle, iowait, irq, softirq, steal. */
enum { USER, NICE, SYSTEM, IDLE, IOWAIT, IRQ, SOFTIRQ, STEAL, FIELDS };

void cpu_steal_read(const char *stat, const uint64_t cpus[BOARD_CPU_WORDS], double tick_s, struct cpu_steal *out)
{
	out->busy_s = out->stolen_s = 0;
	out->cpus = 0;
	for (const char *line = stat; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		unsigned cpu;
		unsigned long long t[FIELDS];
		if (sscanf(line, "cpu%u %llu %llu %llu %llu %llu %llu %llu %llu", &cpu, &t[USER], &t[NICE], &t[SYSTEM],
			    &t[IDLE], &t[IOWAIT], &t[IRQ], &t[SOFTIRQ], &t[STEAL]) != 1 + FIELDS)
			continue;
		if (cpu >= 64 * BOARD_CPU_WORDS || !(cpus[cpu / 64] >> cpu % 64 & 1))
			continue;
		/* Interrupts, most of them the network's, serve whoever waits for them: the ranks too. */
		out->busy_s += tick_s * (double)(t[USER] + t[NICE] + t[SYSTEM]);
		out->stolen_s += tick_s * (double)t[STEAL];
		out->cpus++;
	}
}

static char *whole_file(const char *path)
{
	char *text = NULL;
	size_t n = 0;
	FILE *f = fopen(path, "re");
	if (!f)
		return NULL;
	if (getdelim(&text, &n, '\0', f) < 0) {
		free(text);
		text = NULL;
	}
	fclose(f);
	return text;
}

static double seconds(struct timeval t) { return (double)t.tv_sec + 1e-6 * (double)t.tv_usec; }

void cpu_steal_begin(struct cpu_steal *out)
{
	uint64_t cpus[BOARD_CPU_WORDS] = {0};
	struct rusage own;
	*out = (struct cpu_steal){.at_s = clock_s()};
	char *stat = whole_file("/proc/stat");
	if (stat && sched_getaffinity(0, sizeof cpus, (cpu_set_t *)cpus) == 0)
		cpu_steal_read(stat, cpus, 1.0 / (double)sysconf(_SC_CLK_TCK), out);
	if (getrusage(RUSAGE_SELF, &own) == 0)
		out->own_s = seconds(own.ru_utime) + seconds(own.ru_stime);
	free(stat);
}

static double share(double part_s, double of_s)
{
	return part_s > 0 && of_s > 0 ? (part_s < of_s ? part_s / of_s : 1) : 0;
}

void cpu_steal_wait(const struct cpu_steal *begun)
{
	double rest_s;
	while ((rest_s = begun->at_s + CPU_STEAL_WINDOW_S - clock_s()) > 0) {
		const struct timespec nap = {(time_t)rest_s, (long)(1e9 * fmod(rest_s, 1))};
		nanosleep(&nap, NULL);
	}
}

static int64_t common(const uint64_t a[BOARD_CPU_WORDS], const uint64_t b[BOARD_CPU_WORDS])
{
	int64_t n = 0;
	for (size_t w = 0; w < BOARD_CPU_WORDS; w++)
		n += __builtin_popcountll(a[w] & b[w]);
	return n;
}

struct cpu_steal_worst cpu_steal_judge(const struct cpu_steal_part *parts, int64_t ranks)
{
	struct cpu_steal_worst worst = {.rank = -1};
	for (int64_t r = 0; r < ranks; r++) {
		const struct cpu_steal_part *mine = &parts[r];
		double others_s = mine->busy_s;
		for (int64_t q = 0; q < ranks; q++) {
			int64_t shared = common(mine->cpus, parts[q].cpus);
			if (shared > 0 && !strcmp(mine->machine, parts[q].machine))
				others_s -= parts[q].own_s * (double)shared /
				            (double)common(parts[q].cpus, parts[q].cpus);
		}
		const double taken = share(others_s, mine->available_s),
			     stolen = share(mine->stolen_s, mine->available_s);
		if (taken + stolen >= SHOWS && taken + stolen > worst.taken + worst.stolen)
			worst = (struct cpu_steal_worst){r, taken, stolen};
	}
	return worst;
}

static void name_machine(char out[40])
{
	char *id = whole_file("/proc/sys/kernel/random/boot_id");
	snprintf(out, 40, "%.36s", id ? id : "");
	free(id);
}

enum status cpu_steal_end(struct session *s, const struct cpu_steal *begun, struct cpu_steal_worst *out,
	struct error *e)
{
	struct cpu_steal now;
	struct cpu_steal_part mine = {0}, *all = malloc((size_t)s->info.ranks * sizeof *all);
	cpu_steal_begin(&now);
	const double elapsed_s = now.at_s - begun->at_s;
	mine.own_s = now.own_s - begun->own_s;
	name_machine(mine.machine);
	if (sched_getaffinity(0, sizeof mine.cpus, (cpu_set_t *)mine.cpus))
		memset(mine.cpus, 0, sizeof mine.cpus);
	if (!s->info.oversubscribed && begun->cpus == now.cpus && elapsed_s >= CPU_STEAL_WINDOW_S) {
		mine.available_s = (double)now.cpus * elapsed_s;
		mine.busy_s = now.busy_s - begun->busy_s;
		mine.stolen_s = now.stolen_s - begun->stolen_s;
	}
	enum status st = session_agree(s, all ? ST_OK : error_nomem(e, "what other processes took"), e);
	if (!st && !(st = session_gather_all(s, &mine, sizeof mine, all, e)))
		*out = cpu_steal_judge(all, s->info.ranks);
	free(all);
	return st;
}

void cpu_steal_words(const struct cpu_steal_worst *w, char *text, size_t size)
{
	const double lost = w->taken >= MENTIONED ? w->taken : w->stolen;
	int n = snprintf(text, size, "%s took %.0f %% of the time of rank %lld's cores",
		w->taken >= MENTIONED ? "other processes" : "other virtual machines", 100 * lost, (long long)w->rank);
	if (w->taken >= MENTIONED && w->stolen >= MENTIONED && n > 0 && (size_t)n < size)
		snprintf(text + n, size - (size_t)n, ", other virtual machines %.0f %%", 100 * w->stolen);
}

enum status session_cpu_steal(struct session *s, char text[SESSION_CPU_STEAL_TEXT], struct error *e)
{
	struct cpu_steal begun;
	struct cpu_steal_worst worst;
	text[0] = '\0';
	cpu_steal_begin(&begun);
	cpu_steal_wait(&begun);
	enum status st = cpu_steal_end(s, &begun, &worst, e);
	if (!st && worst.rank >= 0)
		cpu_steal_words(&worst, text, SESSION_CPU_STEAL_TEXT);
	return st;
}
