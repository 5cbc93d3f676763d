/* Discovery as a whole: a host with doubles of nvidia-smi, of NVML and (hwloc's own) of its processors.
 * What the machine at hand has does not matter. (tests/unit/test_discover_recorded.c has recorded machines.) */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/paths.h"
#include "tests/unit/harness.h"
#include "tests/unit/remarked.h"
#include "topology/discover/command.h"
#include "topology/discover/discover.h"
#include "topology/discover/discover_here.h"
#include "topology/discover/driver.h"
#include "topology/graph/route.h"

#define MARK "STEPSIM_TEST_DISCOVER" /* set once the search path leads to the double of NVML: its folder */

#define OLD_NVML "old.so" /* the double without the newest function */

static char home[PATH_MAX_LEN], folder[PATH_MAX_LEN], pids[PATH_MAX_LEN + 16];
static const char *system_path;

/* This host, as the doubles are told to behave; NULL: no nvidia-smi, no NVML that starts. */
static struct graph *here(const char *smi, const char *nvml, double limit_s)
{
	struct discover_tools tools = {.smi_limit_s = limit_s};
	char path[PATH_MAX_LEN * 2];
	struct graph *g = NULL;
	struct error e = {0};
	if (smi)
		snprintf(path, sizeof path, "%s/tests/doubles:%s", home, system_path);
	else
		snprintf(path, sizeof path, "%s", folder);
	setenv("PATH", path, 1);
	setenv("SMI_DOUBLE", smi ? smi : "", 1);
	setenv("NVML_DOUBLE", nvml ? nvml : "nodriver", 1);
	CU_ASSERT_EQUAL(discover_here(&tools, &g, &e), ST_OK);
	CU_ASSERT_STRING_EQUAL(e.text, "");
	CU_ASSERT_PTR_NOT_NULL_FATAL(g);
	CU_ASSERT_EQUAL(topology_check(g, &e), ST_OK);
	CU_ASSERT_STRING_EQUAL(e.text, "");
	CU_ASSERT_EQUAL(waitpid(-1, NULL, WNOHANG), -1); /* nobody is left to wait for */
	CU_ASSERT_EQUAL(errno, ECHILD);
	return g;
}

static void test_nothing(void)
{
	struct graph *g = here(NULL, NULL, 60);
	CU_ASSERT_STRING_EQUAL(evidence_name(g->source), "hwloc");
	CU_ASSERT_TRUE(g->host[0] != '\0');
	CU_ASSERT_EQUAL(g->gpu.n, 0);
	CU_ASSERT_STRING_EQUAL(graph_fabric(g), "none");
	size_t cpus = 0;
	for (size_t i = 0; i < g->vertex.n; i++)
		cpus += g->vertex.at[i].kind == VERTEX_CPU;
	CU_ASSERT_EQUAL(cpus, 2);
	silent("nothing", g);
	graph_destroy(g);
}

/* The doubles' GPUs are not on this host's bus: the matrix is the base, as in a container without PCI devices. */
static void test_all_well(void)
{
	struct graph *g = here("well", "switch", 60);
	silent("well", g);
	CU_ASSERT_STRING_EQUAL(evidence_name(g->source), "nvidia-smi topo");
	CU_ASSERT_EQUAL_FATAL(g->gpu.n, 4);
	const struct vertex *v = &g->vertex.at[g->gpu.at[3]];
	CU_ASSERT_STRING_EQUAL(v->name, "NVIDIA H100 80GB HBM3");
	CU_ASSERT_STRING_EQUAL(v->pci, "0000:bd:00.0");
	CU_ASSERT_STRING_EQUAL(v->gpu.device, "h100-sxm");
	CU_ASSERT_STRING_EQUAL(v->cores, "16-31");
	CU_ASSERT_EQUAL(v->numa, 1);
	CU_ASSERT_EQUAL(v->gpu.nvlinks, 18);
	CU_ASSERT_TRUE(v->gpu.peer_known || !v->gpu.no_peer);
	CU_ASSERT_STRING_EQUAL(graph_fabric(g), "nvswitch");
	struct route r;
	struct error e = {0};
	CU_ASSERT_EQUAL(graph_route(g, g->gpu.at[0], g->gpu.at[3], &r, &e), ST_OK);
	CU_ASSERT_DOUBLE_EQUAL(r.Bps, 370.8e9, 1);
	graph_destroy(g);
}

static void test_nvml(void)
{
	struct graph *g = here("well", "mesh", 60);
	CU_ASSERT_TRUE(remarked(g, true,
		"NVLinks join other GPUs according to nvidia-smi topo than according to nvml: nvml is believed"));
	CU_ASSERT_STRING_EQUAL(graph_fabric(g), "mesh");
	struct link *l = graph_link(g, g->gpu.at[0], g->gpu.at[2], LINK_NVLINK);
	CU_ASSERT_PTR_NOT_NULL_FATAL(l);
	CU_ASSERT_EQUAL(l->width, 6);
	CU_ASSERT_EQUAL(l->gen, 4);
	CU_ASSERT_EQUAL(l->from, SAID_BY_NVML);
	CU_ASSERT_DOUBLE_EQUAL(l->Bps, 6 * 20.6e9, 1);
	graph_destroy(g);
	g = here("well", "short", 60);
	CU_ASSERT_TRUE(remarked(g, false,
		"GPU1 has 16 NVLinks up and 2 down where others have 18 up: up to 11 % of its NVLink bandwidth is "
		"lost"));
	CU_ASSERT_TRUE(remarked(g, true,
		"GPU1 has 18 NVLinks according to nvidia-smi topo, 16 according to nvml: nvml is believed"));
	CU_ASSERT_TRUE(
		remarked(g, false, "GPU1 has fewer NVLinks to the switch than the others: 330 GB/s instead of 371"));
	graph_destroy(g);
	g = here("well", "none", 60);
	CU_ASSERT_TRUE(remarked(g, true, "GPU0 has 18 NVLinks according to nvidia-smi topo, 0 according to nvml"));
	CU_ASSERT_STRING_EQUAL(graph_fabric(g), "pcie");
	graph_destroy(g);
	g = here("well", "self", 60);
	CU_ASSERT_TRUE(remarked(g, false, "NVML: 18 NVLinks of GPU0 lead to itself"));
	graph_destroy(g);
	g = here("well", "lost", 60);
	CU_ASSERT_TRUE(remarked(g, false, "NVML: GPU2: GPU is lost (code 15)"));
	graph_destroy(g);
	g = here("well", "mismatch", 60);
	CU_ASSERT_TRUE(remarked(g, false, "NVML: it does not start: Driver/library version mismatch (code 18)"));
	graph_destroy(g);
}

/* No answer about links is no statement on them; peers are asked for one by one. */
static void test_nvml_peers(void)
{
	struct graph *g = here("well", "nopeer", 60);
	CU_ASSERT_STRING_EQUAL(graph_fabric(g), "nvswitch");
	CU_ASSERT_EQUAL(g->remark.n, 0);
	CU_ASSERT_TRUE(g->vertex.at[g->gpu.at[0]].gpu.no_peer);
	graph_destroy(g);
	/* NVML alone, where nvidia-smi is not installed */
	g = here(NULL, "switch", 60);
	CU_ASSERT_EQUAL(g->gpu.n, 4);
	CU_ASSERT_STRING_EQUAL(graph_fabric(g), "nvswitch");
	CU_ASSERT_EQUAL(g->vertex.at[g->gpu.at[1]].gpu.compute_capability, 90);
	graph_destroy(g);
}

/* Whether the process whose id the double wrote down still runs; one that has ended and that nobody has waited for does
 * not. */
static bool alive(void)
{
	char path[64], *text = NULL, *stat = NULL;
	size_t len;
	struct error e = {0};
	bool runs = true;
	if (file_read(pids, 64, &text, &len, &e))
		return false;
	pid_t pid = (pid_t)strtol(text, NULL, 60);
	free(text);
	snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
	for (int i = 0; i < 100 && runs; i++) {
		e = (struct error){0};
		runs = pid > 0 && file_read(path, 4096, &stat, &len, &e) == ST_OK && !strstr(stat, ") Z ");
		free(stat);
		stat = NULL;
		if (runs)
			usleep(10000);
	}
	if (runs)
		kill(pid, SIGKILL);
	return runs;
}

static void test_hanging(void)
{
	double begin_s = clock_s();
	struct graph *g = here("hang", "switch", 0.5);
	CU_ASSERT_TRUE(clock_s() - begin_s <
		       200); /* not the 1000 s that it would take; NVML is not asked, for it would hang as well */
	CU_ASSERT_TRUE(remarked(g, false, "nvidia-smi did not answer in 0.5 s and was killed: the driver hangs"));
	CU_ASSERT_EQUAL(g->gpu.n, 0);
	CU_ASSERT_FALSE(alive());
	graph_destroy(g);
	g = here("topo-hangs", "switch", 5);
	CU_ASSERT_TRUE(remarked(g, false, "nvidia-smi topo -m did not answer in 5 s and was killed"));
	CU_ASSERT_EQUAL(g->gpu.n, 4);
	graph_destroy(g);
	begin_s = clock_s();
	g = here("orphan", NULL, 600);
	CU_ASSERT_TRUE(clock_s() - begin_s < 300);
	CU_ASSERT_EQUAL(g->gpu.n, 4);
	alive(); /* ends it */
	graph_destroy(g);
}

static void test_failing(void)
{
	static const struct {
		const char *mode, *remark;
	} cases[] = {
		{"fail", "nvidia-smi failed (exit code 9): NVIDIA-SMI has failed because it couldn't communicate with "
			 "the NVIDIA driver."},
		{"none", "nvidia-smi failed (exit code 6): No devices were found"},
		{"crash", "nvidia-smi was killed by signal 11: left aside"},
		{"endless", "nvidia-smi printed without end and was killed: left aside"},
		{"garbage", "nvidia-smi:1: "},
		{"empty", "nvidia-smi:1: empty: expected what nvidia-smi --query-gpu --format=csv prints: left aside"},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct graph *g = here(cases[i].mode, NULL, 60);
		CU_ASSERT_TRUE(remarked(g, false, cases[i].remark));
		CU_ASSERT_EQUAL(g->gpu.n, 0);
		graph_destroy(g);
	}
	struct graph *g = here("topo-fails", NULL, 60);
	CU_ASSERT_TRUE(remarked(g, false, "nvidia-smi topo -m failed (exit code 3): topo: not supported in this mode"));
	CU_ASSERT_EQUAL(g->gpu.n, 4);
	graph_destroy(g);
	/* an older driver refuses a field: it is asked again without */
	g = here("old", NULL, 60);
	silent("old", g);
	CU_ASSERT_EQUAL_FATAL(g->gpu.n, 4);
	CU_ASSERT_STRING_EQUAL(g->vertex.at[g->gpu.at[0]].name, "NVIDIA H100 80GB HBM3");
	CU_ASSERT_EQUAL(g->vertex.at[g->gpu.at[0]].gpu.compute_capability, 90); /* from the catalogue */
	graph_destroy(g);
	/* a lost GPU */
	g = here("lost", NULL, 60);
	CU_ASSERT_TRUE(remarked(g, false, "nvidia-smi ended with exit code 15: not every GPU answers"));
	CU_ASSERT_TRUE(remarked(g, false,
		"nvidia-smi: Unable to determine the device handle for GPU0000:9B:00.0: GPU is lost."));
	CU_ASSERT_TRUE(remarked(g, true, "nvidia-smi lists 3: GPU2 is missing there"));
	CU_ASSERT_EQUAL(g->gpu.n, 3);
	graph_destroy(g);
}

static void write_file(char *path, size_t size, const char *name, const char *text)
{
	struct error e = {0};
	snprintf(path, size, "%s/%s", folder, name);
	CU_ASSERT_EQUAL(file_write(path, text, strlen(text), &e), ST_OK);
}

static void test_topology_file(void)
{
	static const char text[] =
		"<system version=\"1\"><cpu numaid=\"0\" arch=\"x86_64\" vendor=\"GenuineIntel\" familyid=\"6\" "
		"modelid=\"85\">"
		"<pci busid=\"0000:1b:00.0\" class=\"0x030200\" link_speed=\"16.0 GT/s PCIe\" link_width=\"16\"><gpu "
		"dev=\"0\" sm=\"90\" rank=\"0\" gdr=\"1\"/></pci>"
		"<pci busid=\"0000:3d:00.0\" class=\"0x030200\" link_speed=\"16.0 GT/s PCIe\" link_width=\"16\"><gpu "
		"dev=\"1\" sm=\"90\" rank=\"1\" gdr=\"1\"/></pci></cpu></system>\n";
	char path[PATH_MAX_LEN + 32];
	struct discover_tools tools = {.smi_limit_s = 60, .virtual_topology = path};
	struct graph *g = NULL;
	struct error e = {0};
	setenv("PATH", folder, 1);
	setenv("NVML_DOUBLE", "nodriver", 1);
	write_file(path, sizeof path, "topology.xml", text);
	/* by the variable, and as the file that a virtual machine's host left */
	setenv("NCCL_TOPO_FILE", path, 1);
	g = here(NULL, NULL, 60);
	CU_ASSERT_STRING_EQUAL(evidence_name(g->source), "nccl xml");
	CU_ASSERT_EQUAL(g->gpu.n, 2);
	graph_destroy(g);
	setenv("NCCL_TOPO_FILE", "", 1);
	CU_ASSERT_EQUAL(discover_here(&tools, &g, &e), ST_OK);
	CU_ASSERT_STRING_EQUAL(evidence_name(g->source), "nccl xml");
	graph_destroy(g);
	/* wrong ones: the variable's is an error, the other is left aside */
	write_file(path, sizeof path, "topology.xml", "<system>");
	CU_ASSERT_EQUAL(discover_here(&tools, &g, &e), ST_OK);
	CU_ASSERT_STRING_EQUAL(evidence_name(g->source), "hwloc");
	CU_ASSERT_TRUE(remarked(g, false, "topology.xml:"));
	graph_destroy(g);
	setenv("NCCL_TOPO_FILE", "/no/such/file.xml", 1);
	CU_ASSERT_EQUAL(discover_here(&tools, &g, &e), ST_INPUT);
	CU_ASSERT_STRING_EQUAL(e.text, "NCCL_TOPO_FILE: cannot read /no/such/file.xml: No such file or directory");
	unsetenv("NCCL_TOPO_FILE");
}

/* A container that was given two of four GPUs sees all of them on the bus. */
static void test_hidden(void)
{
	static const char text[] =
		"<system version=\"1\"><cpu numaid=\"0\" arch=\"x86_64\" vendor=\"GenuineIntel\" familyid=\"6\" "
		"modelid=\"85\">"
		"<pci busid=\"0000:0a:00.0\" class=\"0x030200\" link_speed=\"32.0 GT/s PCIe\" link_width=\"16\"><gpu "
		"dev=\"0\" sm=\"90\" rank=\"0\" gdr=\"1\"/></pci>"
		"<pci busid=\"0000:1b:00.0\" class=\"0x030200\" link_speed=\"32.0 GT/s PCIe\" link_width=\"16\"><gpu "
		"dev=\"1\" sm=\"90\" rank=\"1\" gdr=\"1\"/></pci></cpu></system>\n";
	char path[PATH_MAX_LEN + 32];
	write_file(path, sizeof path, "hidden.xml", text);
	setenv("NCCL_TOPO_FILE", path, 1);
	struct graph *g = here("topo-fails", NULL, 60);
	CU_ASSERT_TRUE(remarked(g, true, "nccl xml has 2 GPUs, nvidia-smi lists 1: GPU0 is missing there"));
	CU_ASSERT_EQUAL_FATAL(g->gpu.n, 4);
	CU_ASSERT_STRING_EQUAL(g->vertex.at[g->gpu.at[0]].pci, "0000:1b:00.0");
	CU_ASSERT_STRING_EQUAL(g->vertex.at[g->gpu.at[0]].label, "GPU0");
	CU_ASSERT_EQUAL(graph_find_pci(g, "0000:0a:00.0"), -1);
	graph_destroy(g);
	unsetenv("NCCL_TOPO_FILE");
}

static void test_command(void)
{
	static const char *const absent[] = {"no-such-program-at-all", NULL},
				 *const both[] = {"sh", "-c", "printf 'out\\n'; printf '\\n  why\\001\\n' >&2; exit 7",
					 NULL},
				 *const much[] = {"sh", "-c", "head -c 300000 /dev/zero >&2; head -c 300000 /dev/zero",
					 NULL};
	struct command_result r;
	struct error e = {0};
	setenv("PATH", system_path, 1);
	CU_ASSERT_EQUAL(command_run(absent, 10, &r, &e), ST_OK);
	CU_ASSERT_EQUAL(r.end, COMMAND_NOT_FOUND);
	command_result_free(&r);
	CU_ASSERT_EQUAL(command_run(both, 10, &r, &e), ST_OK);
	CU_ASSERT_EQUAL(r.end, COMMAND_EXITED);
	CU_ASSERT_EQUAL(r.code, 7);
	CU_ASSERT_STRING_EQUAL(r.text, "out\n");
	CU_ASSERT_STRING_EQUAL(r.first, "why?");
	command_result_free(&r);
	CU_ASSERT_EQUAL(command_run(much, 60, &r, &e), ST_OK); /* both pipes fill up many times over */
	CU_ASSERT_EQUAL(r.end, COMMAND_EXITED);
	CU_ASSERT_EQUAL(r.len, 300000);
	command_result_free(&r);
	command_result_free(NULL);
}

/* The library of an older driver, without device types: what is no GPU of this host is a switch. Runs last, for the
 * library stays. */
static void test_old_nvml(void)
{
	char from[PATH_MAX_LEN + 32], to[PATH_MAX_LEN + 32];
	snprintf(from, sizeof from, "%s/" OLD_NVML, folder);
	snprintf(to, sizeof to, "%s/libnvidia-ml.so.1", folder);
	CU_ASSERT_EQUAL(rename(from, to), 0);
	struct graph *g = here("well", "switch", 60);
	silent("old NVML", g);
	CU_ASSERT_STRING_EQUAL(graph_fabric(g), "nvswitch");
	graph_destroy(g);
	g = here("well", "mesh", 60);
	CU_ASSERT_STRING_EQUAL(graph_fabric(g), "mesh");
	graph_destroy(g);
}

static void test_missing_dump(void)
{
	struct dumps d = {.smi = "/no/such/dump.txt"};
	struct graph *g = NULL;
	struct error e = {0};
	CU_ASSERT_EQUAL(discover(&d, &g, &e), ST_INPUT);
	CU_ASSERT_STRING_EQUAL(e.text, "cannot read /no/such/dump.txt: No such file or directory");
	CU_ASSERT_PTR_NULL(g);
}

/* The dynamic loader reads its search path once, when the program starts: the library is built and the program starts
 * again with it. */
static int start_again(char **argv)
{
	char target[PATH_MAX_LEN + 64], source[PATH_MAX_LEN + 64], include[PATH_MAX_LEN + 8],
		library_path[PATH_MAX_LEN * 2];
	const char *old = getenv("LD_LIBRARY_PATH");
	struct command_result r;
	struct error e = {0};
	char made[] = "/tmp/stepsim-discover-XXXXXX";
	if (!mkdtemp(made))
		return 2;
	snprintf(target, sizeof target, "%s/libnvidia-ml.so.1", made);
	snprintf(source, sizeof source, "%s/tests/doubles/nvml.c", home);
	snprintf(include, sizeof include, "-I%s", home);
	for (int types = 0; types < 2; types++) {
		snprintf(target, sizeof target, "%s/%s", made, types ? "libnvidia-ml.so.1" : OLD_NVML);
		const char *const build[] = {"gcc", "-std=c11", "-D_GNU_SOURCE", include, types ? "-DTYPES" : "-UTYPES",
			"-shared", "-fPIC", "-o", target, source, NULL};
		if (command_run(build, 300, &r, &e) || r.end != COMMAND_EXITED || r.code != 0) {
			fprintf(stderr, "the double of NVML does not build: %s\n", r.first);
			return 2;
		}
		command_result_free(&r);
	}
	snprintf(library_path, sizeof library_path, "%s%s%s", made, old ? ":" : "", old ? old : "");
	setenv("LD_LIBRARY_PATH", library_path, 1);
	setenv(MARK, made, 1);
	execv("/proc/self/exe", argv);
	return 2;
}

/* First lines of /proc/driver/nvidia/version, of the closed module, the open one, and none. */
static void test_driver_version(void)
{
	static const struct {
		const char *text, *version;
	} cases[] = {
		{"NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 22:23:56 UTC 2024\n",
			"550.54.15"},
		{"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.15  Release Build\n", "570.86.15"},
		{"NVRM version: NVIDIA UNIX x86_64 Kernel Module\nGCC version:  gcc version 12.2.0\n", ""},
		{"", ""},
	};
	char version[32];
	for (size_t i = 0; i < COUNT(cases); i++) {
		driver_version_read(cases[i].text, version);
		CU_ASSERT_STRING_EQUAL(version, cases[i].version);
	}
}

int main(int argc, char **argv)
{
	static const struct unit_test tests[] = {
		{"running programs", test_command},
		{"nothing but hwloc", test_nothing},
		{"all well", test_all_well},
		{"NVML", test_nvml},
		{"peers", test_nvml_peers},
		{"a driver that hangs", test_hanging},
		{"a driver that fails", test_failing},
		{"NCCL's topology file", test_topology_file},
		{"hidden GPUs", test_hidden},
		{"a dump that is not there", test_missing_dump},
		{"an older NVML", test_old_nvml},
		{"the driver's version", test_driver_version},
	};
	struct error e = {0};
	(void)argc;
	if (path_home(home, &e)) {
		fprintf(stderr, "%s\n", e.text);
		return 2;
	}
	const char *mark = getenv(MARK);
	if (!mark)
		return start_again(argv);
	snprintf(folder, sizeof folder, "%s", mark);
	snprintf(pids, sizeof pids, "%s/pid", folder);
	setenv("SMI_DOUBLE_PIDS", pids, 1);
	unsetenv("NCCL_TOPO_FILE");
	setenv("HWLOC_SYNTHETIC", "pack:2 [numa] core:16 pu:1", 1); /* what hwloc finds: two sockets, no PCI devices */
	system_path = "/usr/local/bin:/usr/bin:/bin";
	int failed = unit_main("discover", tests, COUNT(tests));
	const char *const clean[] = {"rm", "-rf", folder, NULL};
	struct command_result r;
	if (command_run(clean, 10, &r, &e) == ST_OK)
		command_result_free(&r);
	return failed;
}
