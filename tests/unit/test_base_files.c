/* The log and the progress line on a captured standard error; paths and whole files. */
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/paths.h"
#include "tests/unit/harness.h"

static char folder[] = "/tmp/stepsim-test-files-XXXXXX";

static char *below(char out[PATH_MAX_LEN], const char *name)
{
	snprintf(out, PATH_MAX_LEN, "%s/%s", folder, name);
	return out;
}

/* ---- standard error ---- */

static int saved_stderr = -1;

static void capture_begin(void)
{
	char path[PATH_MAX_LEN];
	int fd = open(below(path, "stderr"), O_RDWR | O_CREAT | O_TRUNC, 0600);
	CU_ASSERT_FATAL(fd >= 0);
	saved_stderr = dup(STDERR_FILENO);
	dup2(fd, STDERR_FILENO);
	close(fd);
}

static void capture_end(char *out, size_t size)
{
	lseek(STDERR_FILENO, 0, SEEK_SET);
	ssize_t n = read(STDERR_FILENO, out, size - 1);
	out[n > 0 ? n : 0] = '\0';
	dup2(saved_stderr, STDERR_FILENO);
	close(saved_stderr);
}

static void test_log_levels(void)
{
	static const struct {
		enum log_level level;
		bool speaks;
		const char *text;
	} cases[] = {
		{LOG_QUIET, true, "stepsim: warning: w3\n"},
		{LOG_NORMAL, true, "stepsim: n1\nstepsim: warning: w3\n"},
		{LOG_VERBOSE, true, "stepsim: n1\nstepsim: d2\nstepsim: warning: w3\n"},
		{LOG_VERBOSE, false, "stepsim: warning: w3\n"},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		char text[512];
		capture_begin();
		log_setup(cases[i].level, PROGRESS_NEVER, cases[i].speaks);
		log_note("n%d", 1);
		log_detail("d%d", 2);
		log_warn("w%d", 3);
		capture_end(text, sizeof text);
		CU_ASSERT_STRING_EQUAL(text, cases[i].text);
		CU_ASSERT_EQUAL(log_level(), cases[i].level);
	}
}

/* A line that has just been said is not said again. */
static void test_repeated_line(void)
{
	char text[512];
	capture_begin();
	log_setup(LOG_NORMAL, PROGRESS_NEVER, true);
	for (int i = 0; i < 5; i++)
		log_warn("w%d", i / 2);
	log_note("n");
	log_warn("w%d", 2);
	capture_end(text, sizeof text);
	CU_ASSERT_STRING_EQUAL(text, "stepsim: warning: w0\nstepsim: warning: w1\nstepsim: warning: w2\nstepsim: n\n"
				     "stepsim: warning: w2\n");
}

static void test_long_note(void)
{
	char text[8192];
	capture_begin();
	log_setup(LOG_NORMAL, PROGRESS_NEVER, true);
	unsetenv("COLUMNS"); /* no terminal: a line stays whole */
	log_note("%05000d", 1);
	log_note("next");
	setenv("COLUMNS", "999", 1);
	capture_end(text, sizeof text);
	char *newline = strchr(text, '\n');
	CU_ASSERT_PTR_NOT_NULL_FATAL(newline);
	CU_ASSERT(newline - text > 1000 && newline - text < 5000);
	CU_ASSERT_STRING_EQUAL(newline + 1, "stepsim: next\n");
}

/* Begins a task and waits until it has lasted the two seconds after which it is shown. */
static void long_task_begin(const char *what)
{
	progress_begin(what);
	double begin_s = clock_s();
	while (clock_s() - begin_s < 2.05)
		usleep(10000);
}

static void test_progress_plain(void)
{
	char text[1024];
	unsetenv("STEPSIM_PROGRESS_TTY");
	long_task_begin("measuring");
	capture_begin();
	log_setup(LOG_QUIET, PROGRESS_ALWAYS, true);
	progress_update(0.5, "gemm");
	double drawn_s = clock_s();
	progress_update(0.6, NULL);
	progress_update(0.7, NULL);
	double last_s = clock_s();
	progress_end();
	capture_end(text, sizeof text);
	CU_ASSERT_EQUAL(strncmp(text, "measuring [############............] 50 % ", 42), 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(text, " s left  gemm\n")); /* how many seconds depends on the clock */
	if (last_s - drawn_s < 1.9)
		CU_ASSERT_PTR_EQUAL(strchr(text, '\n'), text + strlen(text) - 1); /* one line, not three */
}

/* A task that has just begun says nothing, however it is forced. */
static void test_progress_short_task(void)
{
	char text[1024];
	capture_begin();
	log_setup(LOG_NORMAL, PROGRESS_ALWAYS, true);
	double begin_s = clock_s();
	progress_begin("measuring");
	progress_update(0.5, "gemm");
	double updated_s = clock_s();
	progress_end();
	capture_end(text, sizeof text);
	if (updated_s - begin_s < 1.9)
		CU_ASSERT_STRING_EQUAL(text, "");
}

static void test_progress_terminal(void)
{
	char text[1024];
	setenv("STEPSIM_PROGRESS_TTY", "1", 1);
	setenv("TERM", "xterm", 1);
	long_task_begin("a name of sixty characters, so that the line reaches the edge");
	capture_begin();
	log_setup(LOG_NORMAL, PROGRESS_AUTO, true);
	progress_update(1.7, "\xC3\xBC\xC3\xBC\xC3\xBC\xC3\xBC\xC3\xBC\xC3\xBC\xC3\xBC\xC3\xBC\xC3\xBC\xC3\xBC");
	log_note("between");
	progress_end();
	capture_end(text, sizeof text);
	unsetenv("STEPSIM_PROGRESS_TTY");
	char *end = strstr(text, "\r\033[K");
	CU_ASSERT_PTR_NOT_NULL_FATAL(end);
	size_t characters = 0;
	for (const char *p = text; p < end; p++)
		characters += ((unsigned char)*p & 0xC0) != 0x80;
	CU_ASSERT_EQUAL(characters, 79); /* one less than the width */
	CU_ASSERT_STRING_EQUAL(end, "\r\033[Kstepsim: between\n");
}

static void test_progress_silent(void)
{
	char text[1024];
	unsetenv("STEPSIM_PROGRESS_TTY");
	static const struct {
		enum log_level level;
		enum progress_mode mode;
		bool speaks, tty;
	} cases[] = {
		{LOG_NORMAL, PROGRESS_AUTO, true, false}, /* a file is not a terminal */
		{LOG_QUIET, PROGRESS_AUTO, true, true},
		{LOG_NORMAL, PROGRESS_NEVER, true, true},
		{LOG_NORMAL, PROGRESS_ALWAYS, false, true},
	};
	long_task_begin("measuring");
	for (size_t i = 0; i < COUNT(cases); i++) {
		setenv("STEPSIM_PROGRESS_TTY", cases[i].tty ? "1" : "0", 1);
		capture_begin();
		log_setup(cases[i].level, cases[i].mode, cases[i].speaks);
		progress_update(0.5, "gemm");
		capture_end(text, sizeof text);
		CU_ASSERT_STRING_EQUAL(text, "");
	}
	progress_end();
	unsetenv("STEPSIM_PROGRESS_TTY");
	/* never begun, or ended twice: nothing happens */
	capture_begin();
	log_setup(LOG_NORMAL, PROGRESS_ALWAYS, true);
	progress_update(0.5, "x");
	progress_end();
	progress_end();
	capture_end(text, sizeof text);
	CU_ASSERT_STRING_EQUAL(text, "");
}

/* ---- files ---- */

static void expect_file(const char *path, const char *want)
{
	char *text = NULL;
	size_t len = 0;
	struct error e = {0};
	CU_ASSERT_EQUAL_FATAL(file_read(path, 1000000, &text, &len, &e), ST_OK);
	CU_ASSERT_EQUAL(len, strlen(want));
	CU_ASSERT_STRING_EQUAL(text, want);
	free(text);
}

static void test_write_and_read(void)
{
	char path[PATH_MAX_LEN], link[PATH_MAX_LEN];
	struct error e = {0};
	struct stat s;
	below(path, "result.json");
	CU_ASSERT_EQUAL(file_write(path, "first", 5, &e), ST_OK);
	expect_file(path, "first");

	/* what is replaced keeps its permissions, and a link stays a link */
	CU_ASSERT_EQUAL(chmod(path, 0640), 0);
	CU_ASSERT_EQUAL(symlink("result.json", below(link, "link")), 0);
	CU_ASSERT_EQUAL(file_write(link, "second", 6, &e), ST_OK);
	expect_file(path, "second");
	CU_ASSERT(lstat(link, &s) == 0 && S_ISLNK(s.st_mode));
	CU_ASSERT(stat(path, &s) == 0 && (s.st_mode & 07777) == 0640);

	CU_ASSERT_EQUAL(file_write(path, "", 0, &e), ST_OK);
	expect_file(path, "");
	CU_ASSERT_EQUAL(e.status, ST_OK);
}

/* Writes to a pipe: a path that is no regular file (for users also a device) is written to, never replaced. The pipe is
 * our own, because the tests may run as root, and a mistake must not cost the machine its /dev/null. */
static void test_write_to_a_pipe(void)
{
	char path[PATH_MAX_LEN], got[16] = "";
	struct error e = {0};
	struct stat s;
	CU_ASSERT_EQUAL_FATAL(mkfifo(below(path, "pipe"), 0600), 0);
	int fd = open(path, O_RDONLY | O_NONBLOCK);
	CU_ASSERT_FATAL(fd >= 0);
	CU_ASSERT_EQUAL(file_write(path, "through", 7, &e), ST_OK);
	CU_ASSERT_EQUAL(read(fd, got, sizeof got - 1), 7);
	CU_ASSERT_STRING_EQUAL(got, "through");
	CU_ASSERT(stat(path, &s) == 0 && S_ISFIFO(s.st_mode));
	close(fd);
}

/* A write that breaks off leaves the old file as it was, and nothing beside it. */
static void test_broken_write(void)
{
	char path[PATH_MAX_LEN], command[PATH_MAX_LEN];
	static char big[100000];
	struct error e = {0};
	struct rlimit old, small;
	mkdir(below(path, "broken"), 0700);
	below(path, "broken/file");
	CU_ASSERT_EQUAL(file_write(path, "old", 3, &e), ST_OK);
	CU_ASSERT_EQUAL_FATAL(getrlimit(RLIMIT_FSIZE, &old), 0);
	small = (struct rlimit){5000, old.rlim_max};
	signal(SIGXFSZ, SIG_IGN);
	setrlimit(RLIMIT_FSIZE, &small);
	enum status st = file_write(path, big, sizeof big, &e);
	setrlimit(RLIMIT_FSIZE, &old);
	CU_ASSERT_EQUAL(st, ST_RUN);
	CU_ASSERT_PTR_NOT_NULL(strstr(e.text, "broken/file: File too large"));
	expect_file(path, "old");
	snprintf(command, sizeof command, "test \"$(ls -A '%s/broken')\" = file", folder);
	CU_ASSERT_EQUAL(system(command), 0);
}

static void test_standard_output(void)
{
	char path[PATH_MAX_LEN];
	struct error e = {0};
	fflush(stdout);
	int saved = dup(STDOUT_FILENO), fd = open(below(path, "stdout"), O_RDWR | O_CREAT | O_TRUNC, 0600),
	    full = open("/dev/full", O_WRONLY);
	CU_ASSERT_FATAL(saved >= 0 && fd >= 0 && full >= 0);
	dup2(fd, STDOUT_FILENO);
	printf("before ");
	enum status good = file_write("-", "{}\n", 3, &e);
	dup2(full, STDOUT_FILENO);
	enum status bad = file_write("-", "{}\n", 3, &e);
	dup2(saved, STDOUT_FILENO);
	close(saved);
	close(fd);
	close(full);
	clearerr(stdout);
	CU_ASSERT_EQUAL(good, ST_OK);
	expect_file(path, "before {}\n");
	CU_ASSERT_EQUAL(bad, ST_RUN);
	CU_ASSERT_STRING_EQUAL(e.text, "cannot write standard output: No space left on device");
}

static void test_read_limits(void)
{
	char path[PATH_MAX_LEN], *text = NULL;
	size_t len = 0;
	struct error e = {0};
	static char big[100000];
	memset(big, 'a', sizeof big);
	below(path, "big");
	CU_ASSERT_EQUAL(file_write(path, big, sizeof big, &e), ST_OK);
	CU_ASSERT_EQUAL(file_read(path, sizeof big, &text, &len, &e), ST_OK);
	CU_ASSERT(len == sizeof big && memcmp(text, big, len) == 0 && text[len] == '\0');
	free(text);
	text = NULL;
	CU_ASSERT_EQUAL(file_read(path, sizeof big - 1, &text, &len, &e), ST_INPUT);
	CU_ASSERT_PTR_NOT_NULL(strstr(e.text, "big is larger than 99999 bytes"));
	CU_ASSERT_PTR_NULL(text);
}

static void test_can_write(void)
{
	char path[PATH_MAX_LEN], *text = NULL;
	size_t len = 0;
	struct error e = {0};
	CU_ASSERT_EQUAL(file_can_write("-", &e), ST_OK);
	CU_ASSERT_EQUAL(file_can_write("/dev/null", &e), ST_OK);
	CU_ASSERT_EQUAL(file_can_write("here-alone", &e), ST_OK); /* the folder that is worked in */
	CU_ASSERT_EQUAL(file_can_write(below(path, "asked"), &e), ST_OK);
	CU_ASSERT_EQUAL(file_read(path, 10, &text, &len, &e), ST_INPUT); /* nothing is made */
	e = (struct error){0};
	CU_ASSERT_EQUAL(file_can_write(below(path, "missing/x"), &e), ST_INPUT);
	CU_ASSERT_PTR_NOT_NULL(strstr(e.text, "missing/x: No such file"));
	e = (struct error){0};
	CU_ASSERT_EQUAL(file_can_write(folder, &e), ST_INPUT);
	CU_ASSERT_PTR_NOT_NULL(strstr(e.text, "Is a directory"));
}

static void test_file_errors(void)
{
	char path[PATH_MAX_LEN], *text = NULL;
	size_t len = 0;
	struct error e = {0};
	CU_ASSERT_EQUAL(file_read(below(path, "missing"), 10, &text, &len, &e), ST_INPUT);
	CU_ASSERT_PTR_NOT_NULL(strstr(e.text, "cannot read /tmp/stepsim-test-files-"));
	e = (struct error){0};
	CU_ASSERT_EQUAL(file_read(folder, 10, &text, &len, &e), ST_INPUT);
	e = (struct error){0};
	CU_ASSERT_EQUAL(file_write(below(path, "missing/x"), "x", 1, &e), ST_INPUT);
	CU_ASSERT_PTR_NOT_NULL(strstr(e.text, "No such file"));
	e = (struct error){0};
	CU_ASSERT_EQUAL(file_write(folder, "x", 1, &e), ST_INPUT);
	char *long_path = malloc(2 * PATH_MAX_LEN);
	CU_ASSERT_PTR_NOT_NULL_FATAL(long_path);
	memset(long_path, 'p', 2 * PATH_MAX_LEN - 1);
	long_path[2 * PATH_MAX_LEN - 1] = '\0';
	e = (struct error){0};
	CU_ASSERT_EQUAL(file_write(long_path, "x", 1, &e), ST_INPUT);
	free(long_path);
	CU_ASSERT_PTR_NULL(text);
}

/* ---- the catalogue ---- */

static void test_catalogue(void)
{
	char path[PATH_MAX_LEN], want[PATH_MAX_LEN];
	struct error e = {0};
	static const char *const made[] = {"configs/gpus/b.yaml", "configs/gpus/a100.yaml", "configs/gpus/.hidden.yaml",
		"configs/gpus/notes.txt", "configs/gpus/.yaml"};
	mkdir(below(path, "configs"), 0700);
	mkdir(below(path, "configs/gpus"), 0700);
	for (size_t i = 0; i < COUNT(made); i++)
		CU_ASSERT_EQUAL(file_write(below(path, made[i]), "", 0, &e), ST_OK);
	setenv("STEPSIM_HOME", folder, 1);
	CU_ASSERT_EQUAL(path_home(path, &e), ST_OK);
	CU_ASSERT_STRING_EQUAL(path, folder);
	CU_ASSERT_EQUAL(path_catalogue("gpus", "a100", path, &e), ST_OK);
	CU_ASSERT_STRING_EQUAL(path, below(want, "configs/gpus/a100.yaml"));

	char **names = NULL;
	size_t n = 0;
	CU_ASSERT_EQUAL(path_catalogue_names("gpus", &names, &n, &e), ST_OK);
	CU_ASSERT_EQUAL_FATAL(n, 2);
	CU_ASSERT_STRING_EQUAL(names[0], "a100");
	CU_ASSERT_STRING_EQUAL(names[1], "b");
	path_names_free(names, n);
	CU_ASSERT_EQUAL(e.status, ST_OK);

	CU_ASSERT_EQUAL(path_catalogue_names("nothing", &names, &n, &e), ST_INPUT);
	static const char *const bad[] = {"", "../x", "a/b", "."};
	for (size_t i = 0; i < COUNT(bad); i++) {
		e = (struct error){0};
		CU_ASSERT_EQUAL(path_catalogue("gpus", bad[i], path, &e), ST_INPUT);
	}
	e = (struct error){0};
	setenv("STEPSIM_HOME", "/nonexistent", 1);
	CU_ASSERT_EQUAL(path_home(path, &e), ST_INPUT);
	CU_ASSERT_STRING_EQUAL(e.text, "STEPSIM_HOME=/nonexistent does not hold configs/gpus");
	unsetenv("STEPSIM_HOME");
}

/* A copy of this binary, run where `where` says, asks path_home (see main) and must print the folder that it finds. */
static void expect_home(const char *where, const char *home)
{
	char command[5 * PATH_MAX_LEN], self[PATH_MAX_LEN], want[PATH_MAX_LEN], got[PATH_MAX_LEN] = "";
	ssize_t len = readlink("/proc/self/exe", self,
		sizeof self - 1); /* here, because valgrind answers only its own process rightly */
	CU_ASSERT_FATAL(len > 0);
	self[len] = '\0';
	snprintf(command, sizeof command, "mkdir -p '%s/%s' && cp '%s' '%s/%s/probe' && '%s/%s/probe' --print-home",
		folder, where, self, folder, where, folder, where);
	FILE *out = popen(command, "r");
	CU_ASSERT_PTR_NOT_NULL_FATAL(out);
	if (!fgets(got, sizeof got, out))
		got[0] = '\0';
	pclose(out);
	got[strcspn(got, "\n")] = '\0';
	if (home) {
		CU_ASSERT_STRING_EQUAL(got, below(want, home));
	} else {
		CU_ASSERT_STRING_EQUAL(got, "none");
	}
}

static void test_home_near_binary(void)
{
	char path[PATH_MAX_LEN];
	unsetenv("STEPSIM_HOME");
	mkdir(below(path, "tree"), 0700);
	mkdir(below(path, "tree/configs"), 0700);
	mkdir(below(path, "tree/configs/gpus"), 0700);
	expect_home("tree/build/release", "tree");
	expect_home("tree/build/asan/tests/unit", "tree");
	expect_home("tree/1/2/3/4/5/6", NULL); /* too far below */
	char command[PATH_MAX_LEN];
	snprintf(command, sizeof command, "mkdir -p '%s/usr/share/stepsim/configs/gpus'", folder);
	CU_ASSERT_EQUAL(system(command), 0);
	expect_home("usr/bin", "usr/share/stepsim");
}

static void test_beside(void)
{
	char config[PATH_MAX_LEN], path[PATH_MAX_LEN], want[PATH_MAX_LEN], long_name[PATH_MAX_LEN + 1];
	CU_ASSERT(path_beside("runs/a/my.yaml", "b/model.json", path));
	CU_ASSERT_STRING_EQUAL(path, "runs/a/b/model.json");
	CU_ASSERT(path_beside("/my.yaml", "model.json", path));
	CU_ASSERT_STRING_EQUAL(path, "/model.json");
	CU_ASSERT(path_beside("my.yaml", "model.json", path));
	CU_ASSERT_STRING_EQUAL(path, "model.json");
	CU_ASSERT(path_beside("runs/my.yaml", "/opt/model.json", path));
	CU_ASSERT_STRING_EQUAL(path, "/opt/model.json");
	CU_ASSERT(path_beside(NULL, "model.json", path));
	CU_ASSERT_STRING_EQUAL(path, "model.json");
	memset(long_name, 'a', PATH_MAX_LEN);
	long_name[PATH_MAX_LEN - 2] = '\0'; /* with the folder's two characters it is one too long */
	CU_ASSERT_FALSE(path_beside("r/my.yaml", long_name, path));
	CU_ASSERT(path_beside("my.yaml", long_name, path));

	below(config, "my.yaml"); /* the config itself need not exist */
	CU_ASSERT_EQUAL(file_write(below(want, "beside.json"), "", 0, NULL), ST_OK);
	path_named_by(config, "beside.json", path);
	CU_ASSERT_STRING_EQUAL(path, want);
	path_named_by(config, "elsewhere.json", path);
	CU_ASSERT_STRING_EQUAL(path, "elsewhere.json");
}

static void test_cache(void)
{
	char path[PATH_MAX_LEN], want[PATH_MAX_LEN];
	struct error e = {0};
	struct stat s;
	setenv("XDG_CACHE_HOME", below(want, "deep/cache"), 1);
	for (int again = 0; again < 2; again++) { /* made, then found */
		CU_ASSERT_EQUAL(path_cache(path, &e), ST_OK);
		CU_ASSERT_STRING_EQUAL(path, below(want, "deep/cache/stepsim"));
		CU_ASSERT(stat(path, &s) == 0 && S_ISDIR(s.st_mode));
	}
	setenv("XDG_CACHE_HOME", "relative", 1); /* invalid by the XDG specification: ignored */
	setenv("HOME", folder, 1);
	CU_ASSERT_EQUAL(path_cache(path, &e), ST_OK);
	CU_ASSERT_STRING_EQUAL(path, below(want, ".cache/stepsim"));
	CU_ASSERT_EQUAL(e.status, ST_OK);

	CU_ASSERT_EQUAL(file_write(below(path, "plain"), "", 0, &e), ST_OK);
	setenv("XDG_CACHE_HOME", below(want, "plain"), 1);
	CU_ASSERT_EQUAL(path_cache(path, &e), ST_RUN);
	CU_ASSERT_PTR_NOT_NULL(strstr(e.text, "cannot make the cache folder"));
}

static const struct unit_test tests[] = {
	{"log levels", test_log_levels},
	{"a repeated line", test_repeated_line},
	{"a long note", test_long_note},
	{"progress, plain", test_progress_plain},
	{"progress, terminal", test_progress_terminal},
	{"progress, short task", test_progress_short_task},
	{"progress, silent", test_progress_silent},
	{"write and read", test_write_and_read},
	{"write to a pipe", test_write_to_a_pipe},
	{"a broken write", test_broken_write},
	{"standard output", test_standard_output},
	{"limit of a read", test_read_limits},
	{"whether a file can be written", test_can_write},
	{"file errors", test_file_errors},
	{"catalogue", test_catalogue},
	{"home near the binary", test_home_near_binary},
	{"a file beside another", test_beside},
	{"cache", test_cache},
};

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "--print-home") == 0) {
		char home[PATH_MAX_LEN];
		puts(path_home(home, NULL) == ST_OK ? home : "none");
		return 0;
	}
	if (!mkdtemp(folder))
		return 2;
	int rc = unit_main("base: log, progress, files, paths", tests, COUNT(tests));
	char command[PATH_MAX_LEN];
	snprintf(command, sizeof command, "rm -rf '%s'", folder);
	return system(command) == 0 ? rc : 2;
}
