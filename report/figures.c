#include "report/figures.h"

#include "base/array.h"

#include <stdio.h>
#include <string.h>

const struct figure_part figure_parts[FIGURE_PARTS] = {
	{"compute", "compute_s", offsetof(struct breakdown, compute_s)},
	{"exposed communication", "exposed_comm_s", offsetof(struct breakdown, exposed_comm_s)},
	{"copy", "copy_s", offsetof(struct breakdown, copy_s)},
	{"host", "host_s", offsetof(struct breakdown, host_s)},
	{"bubble", "bubble_s", offsetof(struct breakdown, bubble_s)},
	{"optimizer", "optimizer_s", offsetof(struct breakdown, optimizer_s)},
	{"idle", "idle_s", offsetof(struct breakdown, idle_s)},
};

const struct figure_memory figure_memories[FIGURE_MEMORIES] = {
	{"weights", "weights_bytes", offsetof(struct result_memory, weights_B)},
	{"gradients", "gradients_bytes", offsetof(struct result_memory, gradients_B)},
	{"optimizer state", "optimizer_bytes", offsetof(struct result_memory, optimizer_B)},
	{"activations", "activations_bytes", offsetof(struct result_memory, activations_B)},
	{"buffers", "buffers_bytes", offsetof(struct result_memory, buffers_B)},
	{"overhead", "overhead_bytes", offsetof(struct result_memory, overhead_B)},
};

double figure_error(double predicted, double measured)
{
	if (predicted == 0 && measured == 0)
		return 0;
	if (measured == 0)
		return NAN;
	return (predicted - measured) / measured;
}

double figure_part_s(const struct breakdown *b, size_t i)
{
	double value;
	memcpy(&value, (const char *)b + figure_parts[i].offset, sizeof value);
	return value;
}

uint64_t figure_memory_B(const struct result_memory *m, size_t i)
{
	uint64_t value;
	memcpy(&value, (const char *)m + figure_memories[i].offset, sizeof value);
	return value;
}

bool figure_has_class(const struct result *predicted, const struct result *measured, enum op_class k)
{
	return predicted->time.class_n[k] > 0 || (measured && measured->time.class_n[k] > 0);
}
