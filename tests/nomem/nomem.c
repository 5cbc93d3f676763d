/* LD_PRELOAD: the allocation number NOMEM_AT of the process fails, once (from 1; 0: none). At its end the process says
 * in the file NOMEM_LOG how many it asked for, how many blocks it still had, and whether it got that far. */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *p, size_t size);
extern void __libc_free(void *p);

static atomic_long asked, live;
static long fail_at;

static bool fails(void)
{
	if (atomic_fetch_add(&asked, 1) + 1 != fail_at)
		return false;
	errno = ENOMEM;
	return true;
}

static void *counted(void *p)
{
	if (p)
		atomic_fetch_add(&live, 1);
	return p;
}

void *malloc(size_t size) { return fails() ? NULL : counted(__libc_malloc(size)); }

void *calloc(size_t n, size_t size) { return fails() ? NULL : counted(__libc_calloc(n, size)); }

void *realloc(void *p, size_t size)
{
	if (fails())
		return NULL;
	void *moved = __libc_realloc(p, size);
	return p ? moved : counted(moved);
}

void free(void *p)
{
	if (p)
		atomic_fetch_sub(&live, 1);
	__libc_free(p);
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
