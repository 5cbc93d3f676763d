/* SIGTERM and SIGINT, which wake the one thread of the process that waits for them: the watchdog. */
#ifndef STEPSIM_EXEC_SIGNALS_H
#define STEPSIM_EXEC_SIGNALS_H

#include "base/status.h"

/* Takes both signals, and gives their former actions back. Once a process at a time. */
enum status signals_take(struct error *e);
void signals_give_back(void);

/* Sleeps for so long, or until a signal or signals_wake. Monotonic time: a clock that is set back makes it no longer.
 */
void signals_sleep(double s);
void signals_wake(void);
int signals_taken(void); /* the last signal, 0 for none so far */

#endif
