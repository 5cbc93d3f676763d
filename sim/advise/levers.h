/* The levers: changes of a config that can shorten a step, one row each, with the symptom that each is for and its
 * place in the usual order of work. What each saves is predicted (sim/advise/advise.h), never assumed. */
#ifndef STEPSIM_SIM_LEVERS_H
#define STEPSIM_SIM_LEVERS_H

#include "step/advice.h"
#include "step/config/config.h"
#include "step/result.h"
#include "topology/machine.h"

/* The facts that a lever decides by. */
struct lever_case {
	const struct config *c; /* resolved */
	const struct machine *m;
	bool fits;
	bool mesh_is_free; /* the ranks are the cluster's own: tensor, pipeline and context may change under them */
};

/* Beside the symptoms: it can make a job fit. */
#define LEVER_FITS (1u << SYMPTOM_COUNT)

struct lever {
	const char *what;
	enum work_stage stage;
	unsigned symptoms;     /* 1 << enum symptom, each that it is for; LEVER_FITS */
	unsigned char when[4]; /* the facts that it takes for granted; 0: none further */
	/* Texts "key=value;key=value|value|...", whose variants are the values of the last. NULL: variant() tells
	 * them, as lever_variant. */
	const char *set;
	bool (*variant)(const struct lever_case *k, int i, struct advice_row *out);
};

/* Fills `out` (n_sets, set) for variant i = 0, 1, ... of a lever, mildest first. Returns false where it does not apply
 * or has no more. Variants that a config refuses, or says already, are passed over by who tries them. */
bool lever_variant(const struct lever *l, const struct lever_case *k, int i, struct advice_row *out);

extern const struct lever levers[];
extern const size_t n_levers;

#endif
