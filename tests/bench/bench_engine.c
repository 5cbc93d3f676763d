/* Figures of the engine: tasks a second on one core, for the shapes that predictions have. */
#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/clock.h"
#include "sim/engine/engine.h"

#define TASKS 500000
#define REPEATS 3

/* Compute on lane 0, launched by the host; every `every` ops a collective on lane 1 that depends on the op before it
 * and takes from compute; now and then compute waits for one. */
static size_t fill(struct task *tasks, uint32_t *deps, uint32_t actors, uint32_t every, int joined)
{
	static const struct activity computes = {.weight = 1, .demand = {1, 0.5}},
				     moves = {.weight = 1.1, .demand = {0.1, 0.2}};
	size_t n_deps = 0, each = TASKS / actors;
	for (uint32_t a = 0; a < actors; a++)
		for (size_t i = 0; i < each; i++) {
			struct task *t = &tasks[a * each + i];
			int comm = every && i % every == every - 1,
			    waits = every && i >= 2 * every && i % (8 * every) == 0;
			*t = (struct task){.actor = a,
				.lane = comm ? 1 : 0,
				.join = -1,
				.issue_ps = 3000000,
				.dep0 = (uint32_t)n_deps,
				.use = comm ? &moves : &computes};
			t->alone_ps = comm ? 400000000 : 20000000 + (int64_t)((i * 7919 + a * 104729) % 80000000);
			if (comm && joined)
				t->join = (int32_t)i;
			if (comm || waits) {
				t->n_dep = 1;
				deps[n_deps++] = (uint32_t)(a * each + i - (waits ? every + 1 : 1));
			}
		}
	return each * actors;
}

int main(void)
{
	static const struct {
		const char *what;
		uint32_t actors, every;
		int joined;
	} cases[] = {
		{"1 actor, compute alone", 1, 0, 0},
		{"1 actor, a collective every 20 ops", 1, 20, 0},
		{"1 actor, a collective every 4 ops", 1, 4, 0},
		{"16 actors, joined collectives every 20 ops", 16, 20, 1},
		{"128 actors, joined collectives every 20 ops", 128, 20, 1},
		{"1000 actors, joined collectives every 20 ops", 1000, 20, 1},
	};
	struct task *tasks = calloc(TASKS, sizeof *tasks);
	uint32_t *deps = calloc(TASKS, sizeof *deps);
	struct task_time *times = calloc(TASKS, sizeof *times);
	int failed = !tasks || !deps || !times;
	for (size_t k = 0; k < COUNT(cases) && !failed; k++) {
		size_t n = fill(tasks, deps, cases[k].actors, cases[k].every, cases[k].joined);
		double best_s = 1e9;
		struct error e = {0};
		for (int i = 0; i < REPEATS && !failed; i++) {
			double begin_s = clock_s();
			failed = engine_run(tasks, n, deps, cases[k].actors, times, &e) != ST_OK;
			double lasted_s = clock_s() - begin_s;
			best_s = lasted_s < best_s ? lasted_s : best_s;
		}
		if (failed)
			fprintf(stderr, "%s: %s\n", cases[k].what, e.text);
		else
			printf("engine: %-46s %zu tasks in %.3f s, %.2f million a second\n", cases[k].what, n, best_s,
				(double)n / best_s / 1e6);
	}
	free(tasks);
	free(deps);
	free(times);
	return failed;
}
