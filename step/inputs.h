/* What a micro-batch brings to the device: its parts, one behind the other. The data loader prepares all of it.
 * Pictures come as patches, each one a row of the product that embeds it, in the format of activations: cutting a
 * picture is the loader's work, and so are noise and sines of timesteps. Ids are int32. */
#ifndef STEPSIM_STEP_INPUTS_H
#define STEPSIM_STEP_INPUTS_H

#include <stdint.h>

#include "step/config/config.h"

enum input_part {
	INPUT_PART_DATA,    /* (T) tokens, or (micro_batch patches, patch_size^2 channels), or images; before a decoder
	                       (micro_batch encoder_seq_len) tokens, or (micro_batch 2 encoder_seq_len, channels) */
	INPUT_PART_DECODER, /* (T) tokens of a decoder behind an encoder */
	INPUT_PART_TIMES,   /* (micro_batch, timestep_features): sines and cosines of a picture's timestep */
	INPUT_PART_TARGETS, /* (micro_batch targets): of the vocabulary head; or (micro_batch patches, patch_size^2
	                       output_channels), what a head of patches shall predict */
	INPUT_PART_FURTHER, /* targets of the first block of mtp_layers; then those of the others, a part each */
	INPUT_PART_CLASSES = INPUT_PART_FURTHER + MTP_MOST, /* (micro_batch): of the class head, or that condition */
	INPUT_PART_COUNT
};

/* Returns the bytes of a part for a micro-batch of so many sequences, 0 where the model has no such part. */
uint64_t inputs_part_B(const struct config *c, int64_t micro_batch, enum input_part part);
/* Returns where a part begins. */
uint64_t inputs_offset_B(const struct config *c, int64_t micro_batch, enum input_part part);
/* Returns the bytes of all parts. For tokens and their targets these are 8 bytes a token, as many as the int64 ids of
 * PyTorch's loaders. */
uint64_t inputs_B(const struct config *c, int64_t micro_batch);

#endif
