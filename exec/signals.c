#include "exec/signals.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/array.h"

/* A handler, and not blocked signals with sigwait: a thread that a library started before main (BLAS) has nothing
 * blocked, and would be the one that the signal ends. */

static const int signals[] = {SIGTERM, SIGINT};
static struct sigaction before[COUNT(signals)];
static int wake_up = -1; /* an eventfd */
static atomic_int taken;

static void on_signal(int sig)
{
	int kept = errno;
	atomic_store(&taken, sig);
	eventfd_write(wake_up, 1);
	errno = kept;
}

enum status signals_take(struct error *e)
{
	if ((wake_up = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) < 0)
		return error_set(e, ST_RUN, "no event for the watchdog: %s", strerror(errno));
	struct sigaction take = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
	for (size_t i = 0; i < COUNT(signals); i++)
		sigaction(signals[i], &take, &before[i]);
	return ST_OK;
}

void signals_give_back(void)
{
	for (size_t i = 0; i < COUNT(signals); i++)
		sigaction(signals[i], &before[i], NULL);
	close(wake_up);
	wake_up = -1;
}

void signals_sleep(double s)
{
	struct pollfd until = {.fd = wake_up, .events = POLLIN};
	eventfd_t ignored;
	if (poll(&until, 1, (int)(s * 1e3)) > 0)
		eventfd_read(wake_up, &ignored);
}

void signals_wake(void) { eventfd_write(wake_up, 1); }

int signals_taken(void) { return atomic_load(&taken); }
