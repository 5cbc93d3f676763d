/* ${...} in the values of YAML, as OmegaConf and Hydra have it (https://omegaconf.readthedocs.io, custom_resolvers). */
#ifndef STEPSIM_STEP_IMPORT_INTERPOLATE_H
#define STEPSIM_STEP_IMPORT_INTERPOLATE_H

#include "step/import/foreign.h"

/* Puts in what the text itself has: ${a.b}; ${.b} and ${..b}, from the table of the key on; ${oc.env:NAME,default} and
 * ${oc.select:key,default}; and the products and quotients that NeMo registers (launcher_scripts/main.py): multiply,
 * add, divide_ceil, divide_floor. A path that begins with a name that the text lacks is tried without it: Hydra mounts
 * files. The rest stays as it is written. */
enum status interpolate(struct foreign *f, struct error *e);

#endif
