/* The stages of a pipeline, as the table and the JSON report them. */
#ifndef STEPSIM_REPORT_STAGES_H
#define STEPSIM_REPORT_STAGES_H

#include "step/result.h"
#include "step/stages.h"

/* One stage of the predicted step; memory_B includes the result's overhead. A plan without a pipeline is one stage. */
struct stage_figures {
	struct breakdown time;
	uint64_t memory_B;
	int64_t layers;
};

enum status stage_figures(const struct outcome *o, uint32_t stage, struct stage_figures *out, struct error *e);

#endif
