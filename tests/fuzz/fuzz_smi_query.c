/* Mutation fuzzer of the reader of nvidia-smi's list of GPUs: fuzz_smi_query SECONDS SEED. Built with the sanitizers,
 * which see what the checks below do not.
 *
 * Each round changes one of the texts below a few times and reads it into a graph of two GPUs. A refusal has one line
 * with name and line number; the graph stays sound either way (topology_check), its GPUs' facts within what their
 * fields allow. A broken promise prints the text and ends with 1. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "topology/discover/discover.h"

#define TEXT_MAX 8192
#include "tests/fuzz/fuzz.h"
#define NAME "query.csv"

static const char *const seeds[] = {
	"index, pci.bus_id, name, memory.total [MiB], compute_cap, pcie.link.gen.current, pcie.link.gen.max, "
	"pcie.link.width.current, pcie.link.width.max, clocks.current.sm [MHz], clocks.max.sm [MHz], power.limit [W], "
	"power.default_limit [W], "
	"clocks_throttle_reasons.active\n"
	"0, 00000000:1B:00.0, NVIDIA H100 80GB HBM3, 81559 MiB, 9.0, 5, 5, 16, 16, 1980 MHz, 1980 MHz, 700.00 W, "
	"700.00 W, 0x0000000000000000\n1, 00000000:3D:00.0, NVIDIA H100 80GB HBM3, 81559 MiB, 9.0, 5, 5, 16, 16, 345 "
	"MHz, 1980 MHz, 700.00 W, 700.00 W, 0x0000000000000001\n",
	"0, 00000000:1B:00.0, Tesla V100-SXM2-16GB, 16384, 7.0, 3, 3, 16, 16, 135, 1530, 300.00, 300.00, "
	"0x0000000000000004\n",
	"index, clocks_event_reasons.active, gpu_name\n2, 0x44, NVIDIA GB10\n3, [N/A], ERR!\n",
	"Unable to determine the device handle for GPU0000:3D:00.0: GPU is lost.  Reboot the system to recover this "
	"GPU\n",
	"No devices were found\n",
};

static const char *const pieces[] = {"\n", ", ", ",,,,,,,,", "[N/A]", "[GPU is lost]", "N/A", "0x",
	"ffffffffffffffffffff", "-1", "1e308", "nan", "99999999999", "index, name\n", "pci.bus_id", "00000000:1B:00.0",
	"1023", "\r\n", "\x1b[4m", "\xff", " MiB", "W", "."};

static void mutate(struct text *t)
{
	size_t where = below(t->n + 1), rest = t->n - where;
	char copy[64];
	size_t len = below(rest < sizeof copy ? rest + 1 : sizeof copy);
	const char *other = seeds[below(COUNT(seeds))], *piece = pieces[below(COUNT(pieces))];
	switch (below(5)) {
	case 0:
		if (rest)
			t->at[where] = (char)below(256);
		break;
	case 1: cut(t, where, len); break;
	case 2:
		memcpy(copy, t->at + where, len);
		insert(t, where, copy, len);
		break;
	case 3: insert(t, where, other, strlen(other)); break;
	default: insert(t, where, piece, strlen(piece)); break;
	}
}

static struct graph *two_gpus(void)
{
	struct graph *g = graph_create(SAID_BY_HWLOC);
	struct vertex gpu = graph_vertex_init(VERTEX_GPU, SAID_BY_HWLOC),
		      bridge = graph_vertex_init(VERTEX_BRIDGE, SAID_BY_HWLOC);
	if (!g)
		exit(1);
	int32_t hb = graph_add_vertex(g, &bridge);
	for (int i = 0; i < 2; i++) {
		snprintf(gpu.pci, sizeof gpu.pci, i ? "0000:3d:00.0" : "0000:1b:00.0");
		struct link l = {.a = graph_add_vertex(g, &gpu),
			.b = hb,
			.kind = LINK_PCIE,
			.Bps = 24e9,
			.from = SAID_BY_HWLOC};
		if (graph_add_link(g, &l) < 0)
			exit(1);
	}
	struct vertex cpu = graph_vertex_init(VERTEX_CPU, SAID_BY_HWLOC);
	struct link up = {.a = hb,
		.b = graph_add_vertex(g, &cpu),
		.kind = LINK_LOCAL,
		.Bps = 5e12,
		.from = SAID_BY_HWLOC};
	if (graph_add_link(g, &up) < 0)
		exit(1);
	return g;
}

static void try_text(const struct text *t)
{
	char *exact = malloc(
		t->n ? t->n : 1); /* exactly as long as the text, so that the sanitizer sees a read behind its end */
	struct graph *g = two_gpus();
	struct error e = {0}, unsound = {0};
	if (!exact)
		exit(1);
	memcpy(exact, t->at, t->n);
	if (smi_query_read(exact, t->n, NAME, g, &e)) {
		int line = 0, used = 0;
		check(e.status == ST_INPUT, "a refusal has the status of wrong input");
		check(sscanf(e.text, NAME ":%d: %n", &line, &used) == 1 && used > 0 && line >= 1 && e.text[used] &&
				!strchr(e.text, '\n'),
			"a message is one line with a position");
	}
	check(topology_check(g, &unsound) == ST_OK, unsound.text[0] ? "the graph stays sound" : "");
	for (size_t i = 0; i < g->gpu.n; i++) {
		const struct vertex *v = &g->vertex.at[g->gpu.at[i]];
		check(v->gpu.pcie_gen >= 0 && v->gpu.pcie_gen <= 9 && v->gpu.pcie_width_max >= 0 &&
				v->gpu.pcie_width_max <= 32,
			"PCIe facts are in range");
		check(isfinite(v->gpu.clock_Hz) && v->gpu.clock_Hz >= 0 && isfinite(v->gpu.power_limit_W),
			"quantities are finite");
		check(memchr(v->name, '\0', sizeof v->name) && !strpbrk(v->name, "\x1b\n\r"), "names can be printed");
	}
	for (size_t i = 0; i < g->remark.n; i++)
		check(memchr(g->remark.at[i].text, '\0', sizeof g->remark.at[i].text) &&
				!strpbrk(g->remark.at[i].text, "\x1b\n\r"),
			"remarks can be printed");
	graph_destroy(g);
	free(exact);
}

FUZZ_ONE(try_text)

int main(int argc, char **argv)
{
	return fuzz_texts("fuzz_smi_query", seeds, COUNT(seeds), mutate, try_text, argc, argv);
}
