/* Mutation fuzzer of the reader of NCCL's topology files: fuzz_nccl_xml SECONDS SEED. Built with the sanitizers. */
#include "tests/fuzz/mutate_xml.h"

static void try_one(const struct text *t) { try_text(nccl_xml_read, t); }

FUZZ_ONE(try_one)

int main(int argc, char **argv) { return fuzz_xml("fuzz_nccl_xml", "tests/xml/nccl-*.xml", nccl_xml_read, argc, argv); }
