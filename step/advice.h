/* Advice on a predicted step: levers with the seconds that they save, and the sensitivity to the machine's rates.
 * sim/advise/advise.h finds it, report/ prints it. */
#ifndef STEPSIM_STEP_ADVICE_H
#define STEPSIM_STEP_ADVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The main symptom of a step. */
enum symptom {
	SYMPTOM_DATA,
	SYMPTOM_SYNC,
	SYMPTOM_LAUNCH,
	SYMPTOM_COMM,
	SYMPTOM_BUBBLE,
	SYMPTOM_DTYPE,
	SYMPTOM_MEMORY,
	SYMPTOM_COMPUTE,
	SYMPTOM_COUNT
};

/* The usual order of work: earlier stages change what is worth doing later. */
enum work_stage { WORK_DTYPE, WORK_FEED, WORK_FUSE, WORK_FIT, WORK_COMMUNICATE, WORK_PIPELINE, WORK_STAGES };

#define ADVICE_SETS 6
#define ADVICE_TEXT 64
#define ADVICE_ROWS 64

struct advice_row {
	const char *what; /* static */
	enum work_stage stage;
	size_t n_sets;
	char set[ADVICE_SETS][ADVICE_TEXT]; /* what `--set` takes */
	double step_s, saves_s; /* the step with it, and by how much it is shorter; of a plan that makes the job fit
	                           saves_s may be negative */
	uint64_t memory_B;
	bool estimated; /* put together from pieces (sim/search/evaluate.h) because the program is large; else predicted
	                   in full */
};

struct sensitivity {
	const char *what, *change; /* static: "memory bandwidth", "+10 %" */
	double saves_s;            /* by that change; NAN: none was tried */
	double elasticity; /* -d ln(step) / d ln(rate), d ln(step) / d ln(latency): by how many per cent the step
	                      shortens for one. NAN: as above */
	double limit_s;    /* the step if it took no time at all */
};
#define SENSITIVITIES 8

struct advice {
	enum symptom symptom;
	bool fits; /* else the rows are single changes with which the job fits, the shortest step first */
	size_t n;
	struct advice_row row[ADVICE_ROWS]; /* best first */
	int64_t tried, untried;             /* changes; untried for the program's size */
	size_t n_sensitivity;               /* 0: not asked for, or too large a program */
	struct sensitivity sensitivity[SENSITIVITIES];
};

#endif
