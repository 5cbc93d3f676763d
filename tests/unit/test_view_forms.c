/* Tests the other outputs of `stepsim topo` for graphs made by hand and system lines: JSON keys, dot lines, and a
 * picture that is XML with every device in it. */
#include "base/array.h"
#include "viewed.h"

#include <expat.h>

static json_t *cell_of(const json_t *j, const char *table, size_t row, size_t column)
{
	return json_array_get(json_array_get(json_object_get(json_object_get(j, "matrix"), table), row), column);
}

static void test_json(void)
{
	struct cluster *c = alone(two_pairs("A6000 \xff"), 1);
	json_t *j = json_of(c);
	static const char *const keys[] = {"hosts", "gpus", "nics", "matrix", "fabric", "warnings", "source", "cpus",
		"links", "groups", "contradictions", "model", "inventory", "pci_devices", "messages"};
	for (size_t i = 0; i < COUNT(keys); i++)
		CU_ASSERT_PTR_NOT_NULL(json_object_get(j, keys[i]));
	CU_ASSERT_STRING_EQUAL(json_string_value(json_array_get(json_object_get(j, "hosts"), 0)), "node7");
	CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(j, "fabric")), "bridge");
	CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(j, "source")), "hwloc xml");
	CU_ASSERT_EQUAL(json_array_size(json_object_get(j, "warnings")), 2);
	CU_ASSERT_EQUAL(json_array_size(json_object_get(j, "contradictions")), 1);
	const json_t *gpu = json_array_get(json_object_get(j, "gpus"), 0),
		     *other = json_array_get(json_object_get(j, "gpus"), 1);
	CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(gpu, "label")), "GPU0");
	CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(gpu, "host")), "node7");
	CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(gpu, "name")), "A6000 ?");
	CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(gpu, "pci")), "0000:01:00.0");
	CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(gpu, "cores")), "0-15");
	CU_ASSERT_EQUAL(json_integer_value(json_object_get(gpu, "pcie_width")), 8);
	CU_ASSERT_EQUAL(json_integer_value(json_object_get(gpu, "memory_bytes")), 48LL << 30);
	CU_ASSERT_TRUE(json_is_null(json_object_get(other, "pcie_gen")));
	CU_ASSERT_TRUE(json_is_null(json_object_get(other, "memory_bytes")));
	CU_ASSERT_EQUAL(json_real_value(
				json_object_get(json_array_get(json_object_get(j, "nics"), 0), "bandwidth_Bps")),
		12.5e9);
	CU_ASSERT_STRING_EQUAL(json_string_value(cell_of(j, "link", 0, 0)), "X");
	CU_ASSERT_STRING_EQUAL(json_string_value(cell_of(j, "link", 2, 3)), "NV4");
	for (size_t i = 0; i < 5; i++) {
		CU_ASSERT_TRUE(json_is_null(cell_of(j, "bandwidth_Bps", i, i)));
		for (size_t k = 0; k < i; k++)
			CU_ASSERT_EQUAL(json_real_value(cell_of(j, "bandwidth_Bps", i, k)),
				json_real_value(cell_of(j, "bandwidth_Bps", k, i)));
	}
	CU_ASSERT_EQUAL(json_real_value(cell_of(j, "bandwidth_Bps", 0, 1)), 48e9);
	CU_ASSERT_EQUAL(json_array_size(json_object_get(j, "links")), 13);
	CU_ASSERT_EQUAL(json_array_size(json_object_get(j, "groups")), 3);
	json_decref(j);
	cluster_destroy(c);
}

static void test_json_of_hosts(void)
{
	struct cluster *c = alone(two_pairs("A6000"), 2);
	json_t *j = json_of(c), *labels = json_object_get(json_object_get(j, "matrix"), "labels");
	CU_ASSERT_EQUAL(json_array_size(json_object_get(j, "hosts")), 2);
	CU_ASSERT_EQUAL(json_array_size(json_object_get(j, "gpus")), 8);
	CU_ASSERT_EQUAL_FATAL(json_array_size(labels), 10);
	CU_ASSERT_STRING_EQUAL(json_string_value(json_array_get(labels, 0)), "node70:GPU0");
	CU_ASSERT_STRING_EQUAL(json_string_value(json_array_get(labels, 9)), "node71:NIC0");
	CU_ASSERT_STRING_EQUAL(json_string_value(cell_of(j, "link", 0, 5)), "NET");
	CU_ASSERT_EQUAL(json_real_value(cell_of(j, "bandwidth_Bps", 0, 5)), 12.5e9); /* the NIC */
	CU_ASSERT_EQUAL(json_real_value(cell_of(j, "bandwidth_Bps", 3, 5)), 10e9);   /* the way to it */
	CU_ASSERT_STRING_EQUAL(json_string_value(cell_of(j, "link", 5, 6)), "NV4");
	json_decref(j);
	cluster_destroy(c);
}

/* Beyond VIEW_MATRIX_MOST entries: a matrix of each make, whatever the number of hosts. */
static void test_json_of_many(void)
{
	struct cluster *c = alone(two_pairs("A6000"), 102);
	json_t *j = json_of(c);
	CU_ASSERT_EQUAL(json_array_size(json_object_get(json_object_get(j, "matrix"), "labels")), 510);
	CU_ASSERT_PTR_NULL(json_object_get(j, "matrices"));
	CU_ASSERT_EQUAL(json_array_size(json_object_get(j, "links")), 102 * 13);
	json_decref(j);
	cluster_destroy(c);
	c = alone(two_pairs("A6000"), 1024);
	j = json_of(c);
	const json_t *one = json_array_get(json_object_get(j, "matrices"), 0);
	CU_ASSERT_TRUE(json_is_null(json_object_get(j, "matrix")));
	CU_ASSERT_EQUAL(json_array_size(json_object_get(j, "matrices")), 1);
	CU_ASSERT_EQUAL(json_array_size(json_object_get(j, "gpus")), 4096);
	CU_ASSERT_EQUAL(json_array_size(json_object_get(j, "links")), 13);
	CU_ASSERT_EQUAL(json_array_size(json_object_get(one, "hosts")), 1024);
	CU_ASSERT_STRING_EQUAL(json_string_value(json_array_get(json_object_get(one, "hosts"), 1023)), "node71023");
	CU_ASSERT_STRING_EQUAL(json_string_value(json_array_get(json_object_get(one, "labels"), 4)), "NIC0");
	CU_ASSERT_STRING_EQUAL(json_string_value(json_array_get(json_array_get(json_object_get(one, "link"), 2), 3)),
		"NV4");
	CU_ASSERT_EQUAL(json_real_value(json_array_get(json_array_get(json_object_get(one, "bandwidth_Bps"), 0), 1)),
		48e9);
	CU_ASSERT_EQUAL(json_real_value(json_array_get(json_object_get(one, "egress_Bps"), 0)), 12.5e9);
	CU_ASSERT_EQUAL(json_real_value(json_array_get(json_object_get(one, "egress_Bps"), 3)), 10e9);
	CU_ASSERT_EQUAL(json_real_value(json_array_get(json_object_get(one, "egress_Bps"), 4)), 12.5e9);
	json_decref(j);
	cluster_destroy(c);
}

static void test_dot(void)
{
	struct cluster *c = alone(two_pairs("a \"quoted\" name"), 1);
	char *text = text_of(view_dot, c);
	CU_ASSERT_EQUAL(count(text, " -- "), 13);
	CU_ASSERT_EQUAL(count(text, "shape="), 12);
	CU_ASSERT_EQUAL(count(text, "{"), count(text, "}"));
	CU_ASSERT_EQUAL(count(text, "subgraph"), 3);
	HAS(text, "a \\\"quoted\\\" name");
	HAS(text, "xlabel=\"NVLink gen 3 x4\\n48 GB/s\"");
	HAS(text, ", label=\"PCIe gen 4 x16\\n24 GB/s\"");
	HAS(text, "label=\"socket\\n~10 GB/s\"");
	free(text);
	cluster_destroy(c);
}

static void check_svg(const struct cluster *c)
{
	char *text = text_of(view_svg, c);
	XML_Parser parser = XML_ParserCreate(NULL);
	CU_ASSERT_FATAL(parser != NULL);
	CU_ASSERT_EQUAL(XML_Parse(parser, text, (int)strlen(text), 1), XML_STATUS_OK);
	XML_ParserFree(parser);
	HAS_NOT(text, "nan");
	HAS_NOT(text, "inf");
	for (size_t s = 0; s < c->shape.n; s++) {
		const struct graph *g = c->shape.at[s].graph;
		for (size_t i = 0; i < graph_entries(g); i++) {
			char label[GRAPH_LABEL + 2];
			snprintf(label, sizeof label, ">%s<", g->vertex.at[graph_entry(g, i)].label);
			HAS(text, label);
		}
	}
	free(text);
}

static void test_svg(void)
{
	static const char *const lines[] = {"gpu:1 rtx4090", "gpu:2 h100-pcie bridge",
		"gpu:4 a100-sxm-40 mesh nic:2x100Gb/s", "gpu:8 h100-sxm nic:10x400Gb/s", "gpu:8 rtx4090 pcie4 switch:4",
		"gpu:16 h100-sxm nic:8x400Gb/s", "gpu:72 b200 cpu:36 nic:72x400Gb/s", "gpu:72 b200 cpu:1",
		"gpu:12 h100-sxm mesh"};
	for (size_t i = 0; i < COUNT(lines); i++) {
		struct cluster *c = from_line(lines[i], 1);
		check_svg(c);
		cluster_destroy(c);
	}
	struct cluster *c = alone(two_pairs("<A6000> & more"), 2);
	check_svg(c);
	char *text = text_of(view_svg, c);
	CU_ASSERT_EQUAL(count(text, "class=\"nv\""), 3); /* two bridges, and one in the key */
	CU_ASSERT_EQUAL(count(text, "class=\"wire\""), 1);
	CU_ASSERT_EQUAL(count(text, ">48 GB/s</text>"), 2); /* on each bridge */
	HAS(text, ">~10 GB/s</text>");
	HAS(text, ">net 12.5 GB/s</text>");
	HAS(text, ">PCIe 4 x16</text>");
	HAS_NOT(text, "Gb/s");
	HAS(text, "Example 4000");
	HAS(text, "prefers-color-scheme:dark");
	free(text);
	cluster_destroy(c);

	/* NICs' wires go around the bar of NVLink switches; sockets on two lines are joined along the margin, with
	 * their rate */
	c = from_line("gpu:16 h100-sxm nic:16x400Gb/s cpu:2", 1);
	text = text_of(view_svg, c);
	HAS_NOT(text, "class=\"wire\"");
	CU_ASSERT_EQUAL(count(text, "class=\"rail\""), 16 + 2);
	CU_ASSERT_EQUAL(count(text, "class=\"dot\""), 16);
	CU_ASSERT_EQUAL(count(text, "class=\"rate\""), 1);
	HAS(text, ">network (the same)<");
	free(text);
	cluster_destroy(c);

	/* too small for words that are cut: the rate alone */
	c = from_line("gpu:72 b200 cpu:1 switch:2", 1);
	text = text_of(view_svg, c);
	HAS(text, "rotate(-90)");
	HAS_NOT(text, "&#8230;");
	CU_ASSERT_EQUAL(count(text, ">48 GB/s</text>"), 36);
	free(text);
	cluster_destroy(c);
}

/* A host without anything on PCI, and one without anything. */
static void test_bare(void)
{
	struct graph *g = graph_create(SAID_BY_HWLOC);
	CU_ASSERT_FATAL(g != NULL);
	vertex(g, VERTEX_CPU, "", 0);
	struct cluster *c = alone(g, 1);
	char *text = text_of(plain_text, c);
	HAS(text, "0 GPUs, 0 NICs; source: hwloc");
	HAS(text, "CPU0");
	HAS_NOT(text, "Each cell");
	free(text);
	check_svg(c);
	json_t *j = json_of(c);
	CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(j, "fabric")), "none");
	CU_ASSERT_EQUAL(json_array_size(json_object_get(json_object_get(j, "matrix"), "labels")), 0);
	json_decref(j);
	cluster_destroy(c);
	c = alone(graph_create(SAID_BY_HWLOC), 1);
	check_svg(c);
	free(text_of(view_dot, c));
	free(text_of(plain_text, c));
	cluster_destroy(c);
}

UNIT_MAIN("view_forms", {"json", test_json}, {"json of hosts", test_json_of_hosts}, {"json of many", test_json_of_many},
	{"dot", test_dot}, {"svg", test_svg}, {"bare", test_bare})
