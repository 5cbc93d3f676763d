#include "cli/blas.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"

#define CORETYPE "OPENBLAS_CORETYPE"

/* OpenBLAS's choice where it does not know a CPU: the end of its driver/others/dynamic.c. Version 0.3.21 takes it for
 * each Intel model that came later, 0.3.25 no more (its issue 4267). */
#define UNKNOWN_CPU "Prescott"

#define TRIAL_S 10 /* of milliseconds */

typedef enum status open_fn(const struct exec_plugin **out, struct error *e);

#ifdef __x86_64__
static bool has_avx2(void) { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }

static bool has_avx512(void)
{
	return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
	       __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
	       __builtin_cpu_supports("avx512vl");
}
#else
static bool has_avx2(void) { return false; }
static bool has_avx512(void) { return false; }
#endif

/* Fastest first. Cooperlake and SapphireRapids bring no product in fp32 that SkylakeX lacks. */
static const struct {
	const char *name;
	bool (*runs_here)(void);
} KERNELS[] = {{"SkylakeX", has_avx512}, {"Haswell", has_avx2}};

/* Ends the process. It must neither print nor leave a file when the kernels crash. */
static _Noreturn void try_here(open_fn *open_plugin, const char *coretype, int result)
{
	const struct exec_plugin *plugin;
	struct blas_kernels found = {0};
	struct error e = {0};
	const int null = open("/dev/null", O_RDWR);
	setrlimit(RLIMIT_CORE, &(struct rlimit){0});
	if (null < 0 || dup2(null, STDOUT_FILENO) < 0 || dup2(null, STDERR_FILENO) < 0 ||
		(coretype && setenv(CORETYPE, coretype, 1)) || setenv("OPENBLAS_NUM_THREADS", "1", 1) ||
		open_plugin(&plugin, &e))
		_exit(1);
	plugin->exec_blas_kernels(&found);
	_exit(write(result, &found, sizeof found) != sizeof found);
}

/* Reads what the trial writes, and waits no longer than a trial may take. */
static bool read_result(int result, struct blas_kernels *found)
{
	struct pollfd answer = {result, POLLIN, 0};
	int ready;
	while ((ready = poll(&answer, 1, 1000 * TRIAL_S)) < 0 && errno == EINTR)
		;
	return ready > 0 && read(result, found, sizeof *found) == sizeof *found;
}

/* Loads OpenBLAS in a process of its own, told to take these kernels (NULL: its own choice). False: it crashed, hung,
 * was stopped, or could not be loaded. */
static bool try_kernels(open_fn *open_plugin, const char *coretype, struct blas_kernels *found)
{
	int ends[2], state;
	if (pipe2(ends, O_CLOEXEC))
		return false;
	const pid_t child = fork();
	if (child == 0)
		try_here(open_plugin, coretype, ends[1]);
	close(ends[1]);
	const bool known = child > 0 && read_result(ends[0], found);
	close(ends[0]);
	if (child > 0)
		kill(child, SIGKILL); /* its number is its own until waitpid */
	while (child > 0 && waitpid(child, &state, 0) < 0 && errno == EINTR)
		;
	return known;
}

void blas_choose(open_fn *open_plugin, struct blas_choice *out)
{
	struct blas_kernels found;
	*out = (struct blas_choice){0};
	if (getenv(CORETYPE) || !has_avx2() || !try_kernels(open_plugin, NULL, &found) ||
		strcmp(found.name, UNKNOWN_CPU) != 0)
		return;
	for (size_t i = 0; i < COUNT(KERNELS); i++) {
		const char *name = KERNELS[i].name;
		if (!KERNELS[i].runs_here() || !try_kernels(open_plugin, name, &found) || !found.right ||
			strcmp(found.name, name) != 0 || setenv(CORETYPE, name, 0))
			continue;
		snprintf(out->text, sizeof out->text,
			CORETYPE "=%s is set: by itself OpenBLAS does not know this CPU, and takes its oldest kernels",
			name);
		return;
	}
	out->slow = true;
	snprintf(out->text, sizeof out->text,
		"OpenBLAS does not know this CPU: its oldest kernels (SSE3) multiply matrices; a newer OpenBLAS is "
		"faster");
}
