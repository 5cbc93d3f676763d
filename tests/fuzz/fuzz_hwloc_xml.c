/* Mutation fuzzer of the reader of hwloc's exports: fuzz_hwloc_xml SECONDS SEED. Built with the sanitizers. */
#include "tests/fuzz/mutate_xml.h"

/* hwloc 2.9 keeps the objects of an export that it gives up on: its own leaks are not looked for here. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) { return "leak:libhwloc\n"; }

static void try_one(const struct text *t) { try_text(hwloc_xml_read, t); }

FUZZ_ONE(try_one)

int main(int argc, char **argv)
{
	return fuzz_xml("fuzz_hwloc_xml", "tests/xml/hwloc-*.xml", hwloc_xml_read, argc, argv);
}
