/* LD_PRELOAD: the allocation number NOMEM_AT of the process fails, once (from 1; 0: none). At its end the process says
 * in the file NOMEM_LOG how many it asked for, how many blocks it still had, and whether it got that far. */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/counting_malloc.h"

static atomic_long asked;
static long fail_at;

static bool fails(void)
{
	if (atomic_fetch_add(&asked, 1) + 1 != fail_at)
		return false;
	errno = ENOMEM;
	return true;
}

static __attribute__((constructor)) void begin(void)
{
	const char *at = getenv("NOMEM_AT");
	fail_at = at ? atol(at) : 0;
	atomic_store(&asked, 0);
	atomic_store(&live, 0);
}

static __attribute__((destructor)) void end(void)
{
	char line[64];
	const char *path = getenv("NOMEM_LOG");
	const int fd = path ? open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600) : -1;
	const long n = atomic_load(&asked);
	const int length = snprintf(line, sizeof line, "%ld %ld %d\n", n, atomic_load(&live), n >= fail_at);
	if (fd >= 0 && write(fd, line, (size_t)length) != length)
		_exit(99);
}
