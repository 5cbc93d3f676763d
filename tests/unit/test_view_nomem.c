/* Readers of dumps and all views of them when memory runs out: an error each time, never a text with something missing.
 */
#include "base/array.h"
#include "tests/unit/failing_malloc.h"

#include <jansson.h>

#include "report/report.h"
#include "topology/discover/discover.h"
#include "topology/graph/rates.h"
#include "topology/view/view.h"

static const char smi[] =
	"\tGPU0\tGPU1\tNIC0\tCPU Affinity\tNUMA Affinity\nGPU0\t X \tNV4\tPIX\t0-15\t0\nGPU1\tNV4\t X \tSYS\t16-31\t1\n"
	"NIC0\tPIX\tSYS\t X \n\nNIC Legend:\n\n  NIC0: mlx5_0\n";
static const char nccl[] =
	"<system version=\"1\">\n"
	"<cpu numaid=\"0\" affinity=\"ffff\" arch=\"x86_64\" vendor=\"GenuineIntel\" familyid=\"6\" modelid=\"143\">\n"
	"<pci busid=\"0000:17:00.0\" class=\"0x060400\" link_speed=\"32.0 GT/s PCIe\" link_width=\"16\">\n"
	"<pci busid=\"0000:18:00.0\" class=\"0x030200\" link_speed=\"32.0 GT/s PCIe\" link_width=\"16\"><gpu dev=\"0\" "
	"sm=\"90\" rank=\"0\" gdr=\"1\">"
	"<nvlink target=\"0000:98:00.0\" count=\"4\" tclass=\"0x030200\"/></gpu></pci>\n"
	"<pci busid=\"0000:19:00.0\" class=\"0x020700\" link_speed=\"32.0 GT/s PCIe\" link_width=\"16\"><nic><net "
	"name=\"mlx5_0\" dev=\"0\" speed=\"400000\" port=\"1\" gdr=\"1\"/></nic></pci>\n</pci>\n</cpu>\n"
	"<cpu numaid=\"1\" affinity=\"ffff0000\" arch=\"x86_64\" vendor=\"GenuineIntel\" familyid=\"6\" "
	"modelid=\"143\">\n"
	"<pci busid=\"0000:98:00.0\" class=\"0x030200\" link_speed=\"32.0 GT/s PCIe\" link_width=\"16\"><gpu dev=\"1\" "
	"sm=\"90\" rank=\"1\" gdr=\"1\">"
	"<nvlink target=\"0000:18:00.0\" count=\"4\" tclass=\"0x030200\"/></gpu></pci>\n</cpu>\n</system>\n";

static struct cluster *cluster; /* made before allocations fail */
static char *whole;             /* what the view at hand says with enough memory */
static view_fn *view;

static enum status read_dumps(struct error *e)
{
	struct graph *g = NULL, *more = NULL;
	enum status st = nccl_xml_read(nccl, sizeof nccl - 1, "nccl.xml", &g, e);
	if (!st)
		st = smi_topo_read(smi, sizeof smi - 1, "smi.txt", &more, e);
	if (!st)
		st = graph_merge(g, more, e);
	if (!st)
		st = graph_finish(g, e);
	graph_destroy(g);
	graph_destroy(more);
	return st;
}

static enum status text(const struct cluster *c, FILE *out, struct error *e)
{
	return view_text(c, &(struct view_beside){.links = true}, out, e);
}

static enum status json(const struct cluster *c, FILE *out, struct error *e)
{
	json_t *j = NULL;
	enum status st = view_json(c, &(struct view_beside){0}, &j, e);
	if (!st && json_dumpf(j, out, JSON_INDENT(1)))
		st = error_nomem(e, "a text");
	json_decref(j);
	return st;
}

static enum status written(struct error *e)
{
	json_t *j = NULL;
	enum status st = view_json(cluster, &(struct view_beside){0}, &j, e);
	if (!st)
		st = report_write_json(j, "/dev/null", e);
	json_decref(j);
	return st;
}

/* The whole text or an error. */
static enum status show(struct error *e)
{
	char *out = NULL;
	size_t len = 0;
	enum status st = view_to_text(view, cluster, &out, &len, e);
	if (st) {
		CU_ASSERT_PTR_NULL(out);
	} else if (whole && (strlen(whole) != len || memcmp(whole, out, len) != 0)) {
		CU_FAIL("not the whole text");
	}
	free(out);
	return st;
}

static void add(int64_t hosts, const char *name, const char *dump)
{
	struct graph *g = NULL;
	struct error e = {0};
	bool xml = dump[0] == '<';
	CU_ASSERT_EQUAL_FATAL(xml ? nccl_xml_read(dump, strlen(dump), "nccl.xml", &g, &e)
				  : smi_topo_read(dump, strlen(dump), "smi.txt", &g, &e),
		ST_OK);
	CU_ASSERT_EQUAL_FATAL(graph_finish(g, &e), ST_OK);
	CU_ASSERT_EQUAL_FATAL(cluster_add(cluster, g, hosts, name, &e), ST_OK);
}

static void test_readers(void) { fail_each(read_dumps, 100, true); }

static void test_views(void)
{
	static view_fn *const views[] = {text, json, view_dot, view_svg};
	static const int64_t many[] = {1, 200}; /* the second: a matrix of each make */
	for (size_t i = 0; i < COUNT(views); i++) {
		for (size_t k = 0; k < 2; k++) {
			if (k && views[i] != json)
				continue;
			struct error e = {0};
			size_t len;
			cluster = cluster_create(rate_network(0).latency_s);
			add(many[k], k ? NULL : "caf\xc3\xa9", nccl);
			add(1, "second", smi);
			view = views[i];
			CU_ASSERT_EQUAL_FATAL(view_to_text(view, cluster, &whole, &len, &e), ST_OK);
			if (k == 0)
				fail_each(show, 3, true);
			if (views[i] == json && k == 0)
				fail_each(written, 20, true);
			free(whole);
			whole = NULL;
			cluster_destroy(cluster);
		}
	}
}

int main(void)
{
	static const struct unit_test tests[] = {{"readers", test_readers}, {"views", test_views}};
	if (!allocator_is_ours()) {
		puts("views: out of memory: skipped, a tool has replaced the allocator");
		return 0;
	}
	return unit_main("views: out of memory", tests, COUNT(tests));
}
