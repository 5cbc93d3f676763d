/* The model's constants: the files of configs/model, each entry {value, meaning, source}, with `unverified: true` where
 * it is judgement or rests on memory. topology/catalogue/parameters.def has a row for each. */
#ifndef STEPSIM_TOPOLOGY_CATALOGUE_PARAMETERS_H
#define STEPSIM_TOPOLOGY_CATALOGUE_PARAMETERS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

/* Names in lists and tables, in the order of the enums of sim/price/nccl.h. */
#define NCCL_ARCH_NAMES "volta ampere hopper blackwell"
#define NCCL_ARCH_COUNT 4
#define NCCL_PROTO_NAMES "ll ll128 simple"
#define NCCL_PROTO_COUNT 3
#define NCCL_ALGO_NAMES "tree ring collnet_direct collnet_chain nvls nvls_tree pat"
#define NCCL_ALGO_COUNT 7
#define RCCL_ALGO_NAMES "tree ring"
#define RCCL_ALGO_COUNT 2
#define NCCL_SCALES 3      /* columns: one host, two, four and more */
#define NCCL_TREE_SIZES 24 /* columns: powers of two from 64 B */

/* The rows of one version of NCCL's tuner, as topology/catalogue/parameters.def has those of a section. */
#define NCCL_RELEASE_ROWS(section) \
	NUMBER(section, since, "", 1, 1e6) \
	TABLE(section, base, base_us, "us", NCCL_ALGO, NCCL_PROTO_COUNT, 0, 1e3) \
	TABLE(section, hop_nvlink, hop_nvlink_us, "us", NCCL_ALGO, NCCL_PROTO_COUNT, 0, 1e3) \
	TABLE(section, hop_pci, hop_pci_us, "us", NCCL_ALGO, NCCL_PROTO_COUNT, 0, 1e3) \
	TABLE(section, hop_net, hop_net_us, "us", NCCL_ALGO, NCCL_PROTO_COUNT, 0, 1e3) \
	TABLE(section, ll_max, ll_max_GBps, "GB/s", NCCL_ARCH, NCCL_SCALES, 0, 1e4) \
	NUMBER(section, ring_ll_share, "", 0.01, 1) \
	NUMBER(section, ring_ll_share_inside, "", 0.01, 1) \
	LIST(section, nvls_share, nvls_share, "", NCCL_ARCH, 0, 1) \
	NUMBER(section, nvls_bus_share, "", 0, 1) \
	TABLE(section, nvls_tree_max, nvls_tree_max_GBps, "GB/s", NCCL_ARCH, NCCL_SCALES, 0, 1e4) \
	NUMBER(section, pat, "", 0, 1)

#define QUANTITY(section, key, field, unit, low, high) double field;
#define NUMBER(section, key, unit, low, high) double key;
#define LIST(section, key, field, unit, names, low, high) double field[names##_COUNT];
#define TABLE(section, key, field, unit, names, columns, low, high) double field[names##_COUNT][columns];

struct nccl_version {
	NCCL_RELEASE_ROWS(unused)
};

struct parameters {
#define SECTION(section) struct {
#define END(section) \
	} \
	section;
#define NCCL_RELEASE(section) struct nccl_version section;
#include "topology/catalogue/parameters.def"
#undef SECTION
#undef END
#undef QUANTITY
#undef NUMBER
#undef LIST
#undef TABLE
#undef NCCL_RELEASE
};

/* The constants of this process, read once; they live as long as it does. ST_INPUT with file, line and column for a
 * key that is unknown, missing or doubled, and for a bad value. May be called by several threads. */
enum status parameters_load(const struct parameters **out, struct error *e);

/* One number, or one name of a list or a table, as its file has it; for lists of parameters. Borrowed for the call. */
struct parameter {
	const char *section, *key, *name; /* name: of a list's number or a table's row, else NULL */
	const char *value;                /* with its unit */
	const char *meaning, *source;
	bool unverified;
};
typedef enum status parameter_visit(const struct parameter *p, void *context, struct error *e);

/* Reads all sections into `out` (not NULL) and calls `visit` (NULL: none) for each number in the order of the table. */
enum status parameters_read(struct parameters *out, parameter_visit *visit, void *context, struct error *e);

#endif
