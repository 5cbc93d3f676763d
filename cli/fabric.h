/* cluster.fabric: a network of the catalogue by its name, or outputs of nccl-tests, from which the links of a machine
 * are known as they were measured. */
#ifndef STEPSIM_CLI_FABRIC_H
#define STEPSIM_CLI_FABRIC_H

#include <jansson.h>

#include "step/config/config.h"
#include "topology/machine.h"

/* Puts what cluster.fabric names into the machine, which is cluster.system; does nothing where it is empty. Of logs, up
 * to four factors are fitted to their rows (struct link_factors): those of one host's links to the rows of one host,
 * those of the network to the rows of several. What moved, and the error before and after, is noted, and *json gets it
 * (NULL where no log is named; owned by the caller). ST_INPUT at the key's line: no such name or file, a log of other
 * hosts, ranks that shared a GPU. */
enum status fabric_attach(const struct config *c, struct machine *m, json_t **json, struct error *e);

#endif
