/* Monotonic time in seconds. */
#ifndef STEPSIM_BASE_CLOCK_H
#define STEPSIM_BASE_CLOCK_H

double clock_s(void);            /* CLOCK_MONOTONIC */
double clock_thread_cpu_s(void); /* CPU time of the calling thread */

#endif
