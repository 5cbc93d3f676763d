#include "step/inputs.h"

#define ID_B 4

/* Patches of pictures with so many channels. */
static uint64_t patches_B(const struct config *c, int64_t micro_batch, int64_t channels)
{
	const struct model *m = &c->model;
	return (uint64_t)((double)(micro_batch * model_patches(m) * m->patch_size * m->patch_size * channels) *
			  dtype_bytes(dtype_stored(c->train.dtype)));
}

uint64_t inputs_part_B(const struct config *c, int64_t micro_batch, enum input_part part)
{
	const struct model *m = &c->model;
	const uint64_t n = (uint64_t)micro_batch;
	const double each_B = dtype_bytes(dtype_stored(c->train.dtype));
	if (part >= INPUT_PART_FURTHER && part < INPUT_PART_FURTHER + m->mtp_layers)
		return inputs_part_B(c, micro_batch, INPUT_PART_TARGETS);
	switch (part) {
	case INPUT_PART_DATA:
		if (m->input == INPUT_PATCHES)
			return patches_B(c, micro_batch, m->channels);
		if (m->input == INPUT_FRAMES)
			return (uint64_t)((double)(micro_batch * 2 * m->encoder_seq_len * m->channels) * each_B);
		if (m->input == INPUT_PIXELS)
			return (uint64_t)((double)(micro_batch * m->image_size * m->image_size * m->channels) * each_B);
		return ID_B * n * (uint64_t)(model_rows(m, 0) / c->parallel.context);
	case INPUT_PART_DECODER: return m->encoder_layers > 0 ? ID_B * n * (uint64_t)m->seq_len : 0;
	case INPUT_PART_TIMES:
		return m->adaptive_norm ? (uint64_t)((double)(micro_batch * m->timestep_features) * each_B) : 0;
	case INPUT_PART_TARGETS:
		if (m->output_channels > 0)
			return patches_B(c, micro_batch, m->output_channels);
		return m->lm_head ? ID_B * n * (uint64_t)(model_targets(m) / c->parallel.context) : 0;
	case INPUT_PART_CLASSES: return m->classes + m->condition_classes > 0 ? ID_B * n : 0;
	case INPUT_PART_FURTHER:
	case INPUT_PART_COUNT: break;
	}
	return 0;
}

/* Parts begin at whole words, whatever format the one before has. */
static uint64_t padded_B(uint64_t bytes) { return (bytes + ID_B - 1) / ID_B * ID_B; }

uint64_t inputs_offset_B(const struct config *c, int64_t micro_batch, enum input_part part)
{
	uint64_t sum = 0;
	for (enum input_part p = 0; p < part; p++)
		sum += padded_B(inputs_part_B(c, micro_batch, p));
	return sum;
}

uint64_t inputs_B(const struct config *c, int64_t micro_batch)
{
	return inputs_offset_B(c, micro_batch, INPUT_PART_COUNT);
}
