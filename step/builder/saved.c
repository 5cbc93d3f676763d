/* Recomputation op by op (recompute_modules: op): PyTorch's selective checkpoint policy as torchtitan sets it. The
 * backward pass runs a block again, except the ops whose results the first pass saved (pytorch/torchtitan,
 * torchtitan/distributed/activation_checkpoint.py, _apply_op_sac and its list of ops to save):
 *
 *   products      every second one is run again: the 2nd, 4th, ... of a block, as its modules call them. In nvfp4 all
 *                 are: torch.nn.functional.scaled_mm is aten._scaled_mm_v2, which the list lacks
 *                 (torchao/prototype/moe_training/nvfp4_training/nvfp4_linear.py; get_default_op_list of
 *                 torch/_functorch/partitioners.py)
 *   attention     saved
 *   reduce-scatters of tensor and expert-tensor parallelism, all-to-alls of experts (the latter since 2025-08): saved
 *   router, products of experts (grouped_mm), norms, activations, rotation, residuals: run again
 *
 * Q, K and V are three products there, gate and up are two. So a part of the columns of our joined product is saved,
 * and the product is run again with the other columns. Those bytes are held (build_hold): no op writes them apart.
 *
 * Eager PyTorch keeps each saved result, needed or not, and runs each of the others (torch/utils/checkpoint.py,
 * _CachingTorchDispatchMode). A compiler drops both where nothing reads them: the last product's result, and the
 * product before a saved reduce-scatter (torch/_functorch/partitioners.py, min_cut_rematerialization_partition).
 * train.fused tells one from the other.
 *
 * train.recompute_saves names other results in place of these: jax.checkpoint saves what its policy names
 * (MaxText/layers/models.py, get_remat_policy), and a compiler drops what nothing reads. Where activations are
 * offloaded, those results are copied to the host with the block's input.
 */
#include "step/builder/blocks.h"

#define PARTS_MOST 3

bool build_saves_ops(const struct builder *b) { return b->layer >= 0 && build_recomputes_part(b, REC_OP); }

static bool is_compiled(const struct builder *b) { return b->c->train.fused; }

/* The products of a block in the order in which torchtitan's modules call them; the k-th saved place is the k-th's.
 */
static const enum param_kind order[SAVED_PRODUCTS] = {PARAM_QKV_W, PARAM_Q_DOWN_W, PARAM_Q_UP_W, PARAM_KV_DOWN_W,
	PARAM_KV_UP_W, PARAM_PROJ_W, PARAM_FC1_W, PARAM_FC2_W, PARAM_SHARED_FC1_W, PARAM_SHARED_FC2_W};

/* Fills the columns of each product that PyTorch makes of ours, and returns their number; 0 where the block lacks it.
 */
static int parts_of(const struct builder *b, enum param_kind w, int64_t out, int64_t parts[PARTS_MOST])
{
	const struct model *m = b->m;
	parts[0] = out;
	if (!param_of(b, b->layer, w))
		return 0;
	if (w == PARAM_QKV_W) {
		parts[0] = b->heads * m->head_dim;
		parts[1] = b->kv_heads * m->head_dim;
		parts[2] = b->kv_heads * model_value_dim(m);
		return 3;
	}
	if ((w != PARAM_FC1_W && w != PARAM_SHARED_FC1_W) || (m->mlp != MLP_SWIGLU && m->mlp != MLP_GEGLU))
		return 1;
	parts[0] = parts[1] = out / 2;
	return 2;
}

/* Returns the bit of train.recompute_saves that names a product; 0: none does. */
static int name_of(enum param_kind w)
{
	if (w == PARAM_QKV_W || w == PARAM_Q_DOWN_W || w == PARAM_Q_UP_W || w == PARAM_KV_DOWN_W || w == PARAM_KV_UP_W)
		return SAVE_QKV;
	return w == PARAM_PROJ_W ? SAVE_PROJ : w == PARAM_FC1_W || w == PARAM_SHARED_FC1_W ? SAVE_FC1 : 0;
}

/* Returns whether a result is saved that torchtitan's policy saves as a whole; name: its bit. */
static bool saves(const struct builder *b, int name)
{
	return b->c->train.recompute_saves == AUTO || b->c->train.recompute_saves & name;
}

bool saved_attention(const struct builder *b) { return build_saves_ops(b) && saves(b, SAVE_ATTENTION); }

/* Returns the columns of a product's result that are saved. Sets *place to its place. */
static int64_t saved_cols(const struct builder *b, const struct linear *l, int *place)
{
	int64_t parts[PARTS_MOST], saved = 0;
	*place = SAVED_COUNT;
	for (int i = 0, called = 0; i < SAVED_PRODUCTS && *place == SAVED_COUNT; i++) {
		const int n = parts_of(b, order[i], l->out, parts);
		*place = order[i] == l->w ? i : SAVED_COUNT;
		for (int k = 0; k < n; k++)
			saved += ++called % 2 == 1 && order[i] == l->w ? parts[k] : 0;
	}
	if (b->c->train.recompute_saves != AUTO)
		return saves(b, name_of(l->w)) ? l->out : 0;
	return b->c->train.dtype == DT_NVFP4 ? 0 : saved;
}

/* True where the recomputed block reads the product's result. */
static bool is_read(const struct builder *b, enum param_kind w)
{
	return w != PARAM_FC2_W && w != PARAM_SHARED_FC2_W && (w != PARAM_PROJ_W || !b->sequence_parallel);
}

int64_t saved_again_cols(const struct builder *b, const struct linear *l)
{
	int place;
	if (!b->recomputing || !build_saves_ops(b))
		return l->out;
	return is_compiled(b) && !is_read(b, l->w) ? 0 : l->out - saved_cols(b, l, &place);
}

void saved_product(struct builder *b, const struct linear *l, int32_t whole)
{
	int place;
	if (b->recomputing || !build_saves_ops(b))
		return;
	const int64_t cols = saved_cols(b, l, &place);
	if (cols == 0)
		return;
	struct saved *s = &b->acts_now->saved;
	if (is_read(b, l->w) && cols == l->out && whole != NONE)
		s->buffer[place] = whole;
	else if (is_read(b, l->w) || !is_compiled(b))
		s->held[place] = build_hold(b, COMP_ACTIVATIONS, (double)(l->rows * cols) * dtype_bytes(b->act),
			"saved columns");
}

int32_t saved_buffer(const struct builder *b, enum saved_place place)
{
	return b->recomputing && build_saves_ops(b) ? b->acts_now->saved.buffer[place] : NONE;
}

/* Returns whether rows behind a collective are saved. */
static bool saves_rows(const struct builder *b, enum saved_place place)
{
	return saves(b, place == SAVED_PROJ_ROWS ? SAVE_PROJ : 0);
}

int32_t saved_product_buffer(const struct builder *b, const struct linear *l)
{
	int place;
	if (!b->recomputing || !build_saves_ops(b))
		return NONE;
	saved_cols(b, l, &place);
	return place < SAVED_COUNT ? b->acts_now->saved.buffer[place] : NONE;
}

int32_t save_buffer(struct builder *b, enum saved_place place, int32_t buffer)
{
	if (!b->recomputing && build_saves_ops(b) && saves_rows(b, place))
		b->acts_now->saved.buffer[place] = buffer;
	return buffer;
}

void save_unread(struct builder *b, enum saved_place place, int64_t elements)
{
	if (!b->recomputing && build_saves_ops(b) && !is_compiled(b) && saves_rows(b, place))
		b->acts_now->saved.held[place] = build_hold(b, COMP_ACTIVATIONS, (double)elements * dtype_bytes(b->act),
			"saved rows");
}

bool saved_runs_unread(const struct builder *b) { return !is_compiled(b); }

void saved_release(struct builder *b)
{
	for (int i = 0; i < SAVED_COUNT; i++)
		build_release(b, &b->acts_now->saved.held[i]);
}
