/* Residual convolutional networks (He et al. 2016, arXiv:1512.03385), as torchvision builds them
 * (torchvision/models/resnet.py): a convolution of 7 x 7 and a pool, stages of blocks, each channel's mean, classes.
 * Where a block halves the image, its convolution of 3 x 3 has the stride (the form called v1.5). All functions are
 * pure; a layer of -1 is the part before the blocks. */
#ifndef STEPSIM_STEP_MODEL_CONV_H
#define STEPSIM_STEP_MODEL_CONV_H

#include "step/model.h"

#define CONV_STAGES 8
#define CONV_LAYERS 4 /* of a block: at most three in a row, then the one beside them */

/* A convolution with the norm behind it. w: the kind of its weight; the norm's two kinds follow. */
struct conv_layer {
	const char *what;
	enum param_kind w;
	int64_t side /* of its input */, in, out, kernel, stride;
};

/* Reads conv_stages: fills the blocks of each stage and returns the number of stages, 0 where it is no list of them. */
int model_conv_stages(const struct model *m, int64_t blocks[CONV_STAGES]);
int64_t model_conv_blocks(const struct model *m);
/* Returns the channels, and the rows and columns, that leave the last block. */
int64_t model_conv_channels(const struct model *m);
int64_t model_conv_side(const struct model *m);

/* Fills the convolutions of a layer in order and returns their number; *shortcut: the last stands beside the others. */
int model_conv_layers(const struct model *m, int64_t layer, struct conv_layer out[CONV_LAYERS], bool *shortcut);
/* Fills a layer's parameters in the order of torchvision's and returns their number; m->layers: those behind the
 * blocks. */
int model_conv_params(const struct model *m, int64_t layer, struct param out[3 * CONV_LAYERS]);
/* Returns the FLOP of forward and backward for an image: three times those of forward, as papers count them. */
double model_conv_flop(const struct model *m);

#endif
