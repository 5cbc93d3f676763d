#include "step/model_conv.h"

#include <stdlib.h>

#define EXPANSION 4 /* of a bottleneck's channels */

int model_conv_stages(const struct model *m, int64_t blocks[CONV_STAGES])
{
	const char *at = m->conv_stages;
	int n = 0;
	while (*at && n < CONV_STAGES) {
		char *end;
		blocks[n] = strtol(at, &end, 10);
		if (end == at || blocks[n] < 1 || blocks[n] > 1000)
			return 0;
		n++;
		for (at = end; *at == ',' || *at == ' ';)
			at++;
	}
	return *at ? 0 : n;
}

int64_t model_conv_blocks(const struct model *m)
{
	int64_t blocks[CONV_STAGES], sum = 0;
	const int n = model_conv_stages(m, blocks);
	for (int i = 0; i < n; i++)
		sum += blocks[i];
	return sum;
}

static int64_t expansion(const struct model *m) { return m->conv_bottleneck ? EXPANSION : 1; }

static int64_t halved(int64_t side) { return (side + 1) / 2; }

/* Rows and columns of what enters a stage's blocks but its first. */
static int64_t side_of(const struct model *m, int stage)
{
	int64_t side = halved(halved(m->image_size));
	for (int i = 0; i < stage; i++)
		side = halved(side);
	return side;
}

int64_t model_conv_channels(const struct model *m)
{
	int64_t blocks[CONV_STAGES];
	const int n = model_conv_stages(m, blocks);
	return n > 0 ? (m->conv_width << (n - 1)) * expansion(m) : 0;
}

int64_t model_conv_side(const struct model *m)
{
	int64_t blocks[CONV_STAGES];
	return side_of(m, model_conv_stages(m, blocks) - 1);
}

static int block_layers(const struct model *m, int stage, bool first, struct conv_layer *out, bool *shortcut)
{
	const int64_t width = m->conv_width << stage, wide = width * expansion(m);
	const int64_t stride = first && stage > 0 ? 2 : 1, side = side_of(m, stage - (stride == 2));
	const int64_t in = !first ? wide : stage > 0 ? wide / 2 : m->conv_width, after = side_of(m, stage);
	int n = 0;
	if (m->conv_bottleneck) {
		out[n++] = (struct conv_layer){"conv1", PARAM_CONV1_W, side, in, width, 1, 1};
		out[n++] = (struct conv_layer){"conv2", PARAM_CONV2_W, side, width, width, 3, stride};
		out[n++] = (struct conv_layer){"conv3", PARAM_CONV3_W, after, width, wide, 1, 1};
	} else {
		out[n++] = (struct conv_layer){"conv1", PARAM_CONV1_W, side, in, width, 3, stride};
		out[n++] = (struct conv_layer){"conv2", PARAM_CONV2_W, after, width, wide, 3, 1};
	}
	*shortcut = stride > 1 || in != wide;
	if (*shortcut)
		out[n++] = (struct conv_layer){"shortcut", PARAM_SHORTCUT_W, side, in, wide, 1, stride};
	return n;
}

int model_conv_layers(const struct model *m, int64_t layer, struct conv_layer out[CONV_LAYERS], bool *shortcut)
{
	int64_t blocks[CONV_STAGES];
	int stage = 0;
	*shortcut = false;
	if (layer < 0) {
		out[0] = (struct conv_layer){"stem", PARAM_STEM_W, m->image_size, m->channels, m->conv_width, 7, 2};
		return 1;
	}
	for (const int n = model_conv_stages(m, blocks); stage < n && layer >= blocks[stage]; stage++)
		layer -= blocks[stage];
	return block_layers(m, stage, layer == 0, out, shortcut);
}

int model_conv_params(const struct model *m, int64_t layer, struct param out[3 * CONV_LAYERS])
{
	struct conv_layer layers[CONV_LAYERS];
	bool shortcut;
	int n = 0;
	if (layer == m->layers) {
		out[n++] = (struct param){PARAM_CLASS_W, -1, m->classes, m->hidden, 1, TP_REPLICATED};
		out[n++] = (struct param){PARAM_CLASS_B, -1, m->classes, 1, 1, TP_REPLICATED};
		return n;
	}
	const int count = model_conv_layers(m, layer, layers, &shortcut);
	for (int i = 0; i < count; i++) {
		const struct conv_layer *l = &layers[i];
		out[n++] = (struct param){l->w, layer, l->out, l->kernel * l->kernel * l->in, 1, TP_REPLICATED};
		out[n++] = (struct param){l->w + 1, layer, l->out, 1, 1, TP_REPLICATED};
		out[n++] = (struct param){l->w + 2, layer, l->out, 1, 1, TP_REPLICATED};
	}
	return n;
}

double model_conv_flop(const struct model *m)
{
	double macs = (double)(m->hidden * m->classes);
	for (int64_t layer = -1; layer < m->layers; layer++) {
		struct conv_layer layers[CONV_LAYERS];
		bool shortcut;
		const int n = model_conv_layers(m, layer, layers, &shortcut);
		for (int i = 0; i < n; i++) {
			const struct conv_layer *l = &layers[i];
			const double side = (double)((l->side + l->stride - 1) / l->stride);
			macs += side * side * (double)(l->out * l->kernel * l->kernel * l->in);
		}
	}
	return 3 * 2 * macs;
}
