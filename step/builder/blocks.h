/* The parts of a model, which the builder's pipeline puts one after the other: blocks, ends, and what they are made of.
 * The rules of step/builder/build.h hold. */
#ifndef STEPSIM_STEP_BUILDER_BLOCKS_H
#define STEPSIM_STEP_BUILDER_BLOCKS_H

#include "step/builder/build.h"
#include "step/dropout.h"

/* ---- block.c, backward.c, ends.c, head.c: the model ---- */

/* Append what recompute_modules runs again of the present block, before its backward pass reads it: the norm before
 * attention, the one before the MLP with that MLP's own modules, and attention between its products. */
void again_norm1(struct builder *b, struct acts *a);
void again_mlp(struct builder *b, struct acts *a);
void again_attention(struct builder *b, struct acts *a);
/* Appends the forward pass of block b->layer. Returns its output, or NONE when recomputing and nothing needs it. */
int32_t block_forward(struct builder *b, int32_t x_in, struct acts *a);
/* Replaces the gradient of the output of block b->layer in *dx by that of its input, after its forward pass where that
 * runs again. */
void block_backward(struct builder *b, struct acts *a, int32_t *dx);
/* Returns the place of a table's gradient. Rows add to it one by one, so its first writer clears it, unless it is
 * begun. Sets *begun where an earlier micro-batch began it. */
struct view build_table_gradient(struct builder *b, enum param_kind k, bool *begun);
/* Returns the rows of tokens in the table, and appends their gradient: into a table that is `begun`,
 * or cleared. done: nothing else adds to it. */
int32_t embed_tokens(struct builder *b, struct view tokens);
void embed_tokens_grad(struct builder *b, struct view tokens, int32_t dx, bool begun, bool done);
/* Append the vocabulary head and its loss, and return the gradient of its rows. */
void vocabulary_forward(struct builder *b, struct head_acts *a, int32_t normed, struct view targets);
int32_t vocabulary_backward(struct builder *b, struct head_acts *a);
int32_t embedding_forward(struct builder *b);
void embedding_backward(struct builder *b, int32_t dx);
/* Appends the final norm, the heads and their losses. */
void head_forward(struct builder *b, int32_t x);
/* Returns the gradient of head_forward's x. */
int32_t head_backward(struct builder *b);

/* Appends the backward pass of a column-parallel product. Returns the gradient of its input rows `x`, given that of its
 * output. */
int32_t columns_backward(struct builder *b, const struct linear *l, int32_t dy, int32_t x, const char *input,
	const char *grad);

/* The same of a row-parallel product: returns the gradient of its input `x`, given that of its output rows. */
int32_t rows_backward(struct builder *b, const struct linear *l, int32_t dy, int32_t x, const char *grad);

/* ---- attention.c ---- */

/* Returns attention's output rows without PROJ's bias, given normed rows. project: false leaves the projection out. */
int32_t attention_forward(struct builder *b, struct acts *a, int32_t normed, bool project);
/* Attends to what the products left in *a. */
void attention_core(struct builder *b, struct acts *a);
/* Returns whether this pass keeps what the backward pass reads: a recomputed block's first one keeps nothing. */
bool build_keeps(const struct builder *b);
struct linear linear_qkv(const struct builder *b);
struct linear linear_proj(const struct builder *b);
struct linear linear_attention_gate(const struct builder *b);
/* Returns what PROJ reads. */
int32_t attention_result(const struct acts *a);
struct mlp_layers mlp_dense(const struct builder *b);
/* Returns an MLP of a width on this tensor rank. */
struct mlp_layers mlp_layers_of(const struct builder *b, int64_t ffn, enum param_kind fc1, enum param_kind fc1_bias,
	enum param_kind fc2, enum param_kind fc2_bias);
/* Returns the MLP's output without FC2's bias. project: false leaves FC2's product out. */
int32_t mlp_forward(struct builder *b, const struct mlp_layers *s, struct mlp_acts *a, int32_t normed, bool project);
/* Returns the gradient of `normed`. */
int32_t mlp_backward(struct builder *b, const struct mlp_layers *s, struct mlp_acts *a, int32_t normed, int32_t dout);
/* Returns the columns of the activation's input: ffn, or twice as many where it is gated. */
int64_t build_act_width(const struct builder *b, int64_t ffn);
/* Appends the activation of `rows` rows of a->h. again: selective recomputation runs it again. */
void build_activation(struct builder *b, int64_t rows, int64_t ffn, struct mlp_acts *a, bool again);
/* Makes a->h of what is kept in its place (train.act_input_dtype), where it is not there. */
void mlp_restore_input(struct builder *b, struct mlp_acts *a);
int32_t build_activation_grad(struct builder *b, int64_t rows, int64_t ffn, struct mlp_acts *a, int32_t dg);

/* ---- saved.c: what recompute_modules op saves ---- */

/* True where b->layer recomputes op by op. */
bool build_saves_ops(const struct builder *b);
/* True where the recomputed b->layer reads attention's saved result. */
bool saved_attention(const struct builder *b);
/* Returns the columns of a product that are made now: all, or in a recomputed block those that were not saved. */
int64_t saved_again_cols(const struct builder *b, const struct linear *l);
/* Saves what the policy wants of a product's result. whole: the buffer that has nothing else; NONE: there is none. */
void saved_product(struct builder *b, const struct linear *l, int32_t whole);
/* Return what the first pass saved, while the block is recomputed; else NONE. */
int32_t saved_product_buffer(const struct builder *b, const struct linear *l);
int32_t saved_buffer(const struct builder *b, enum saved_place place);
/* Saves a collective's result, and returns it. */
int32_t save_buffer(struct builder *b, enum saved_place place, int32_t buffer);
/* Holds elements of a result that nothing reads, where the framework keeps it all the same. */
void save_unread(struct builder *b, enum saved_place place, int64_t elements);
/* True where the framework runs products again whose results nothing reads. */
bool saved_runs_unread(const struct builder *b);
void saved_release(struct builder *b);

/* ---- latent.c: multi-head latent attention in place of one product for Q, K and V ---- */

/* Returns the rows of Q, K and V, given the normed rows of the block's input. */
int32_t latent_forward(struct builder *b, struct acts *a, int32_t normed);
/* Appends the up products and the rotation once more, from the normed latents, and returns Q, K and V. */
int32_t latent_up(struct builder *b, const struct acts *a);
/* Returns the gradient of the normed rows. */
int32_t latent_backward(struct builder *b, struct acts *a, int32_t dqkv);

/* ---- adapt.c: diffusion transformers ---- */

/* Makes the vector that conditions each picture of the micro-batch. */
void condition_forward(struct builder *b);
/* Appends its backward pass, from the gradient that adapt_backward has added up. */
void condition_backward(struct builder *b);
/* Makes the numbers of a block, or of the final norm, of that vector; w: PARAM_ADAPT_W or PARAM_FINAL_ADAPT_W. */
void adapt_forward(struct builder *b, struct adapt_acts *a, enum param_kind w);
/* Appends its backward pass, given the gradient of the numbers. */
void adapt_backward(struct builder *b, const struct adapt_acts *a, enum param_kind w, int32_t dmod);
/* Returns norm(x) (1 + scale) + shift with the numbers of branch i, and its statistics. */
int32_t adapt_norm(struct builder *b, const char *what, struct adapt_acts *a, int i, int32_t x, int32_t *stats);
/* Returns the gradient of x, added to `into` or in new rows where that is NONE. That of the numbers goes to *dmod,
 * which is made where it is NONE. */
int32_t adapt_norm_grad(struct builder *b, const char *what, const struct adapt_acts *a, int i, int32_t dn, int32_t x,
	int32_t stats, int32_t into, int32_t *dmod);
/* Returns x + gate (y + bias) with the gate of branch i. */
int32_t adapt_add(struct builder *b, const struct adapt_acts *a, int i, int32_t x, int32_t y, enum param_kind bias);
/* Returns the gradient of y; that of the gate goes to *dmod as above. */
int32_t adapt_add_grad(struct builder *b, const struct adapt_acts *a, int i, int32_t dsum, int32_t y,
	enum param_kind bias, int32_t *dmod);

/* ---- cross.c: an encoder before a decoder, and biases of scores ---- */

/* Append the embedding of the model's first stack, with its biases; the end of that stack's backward pass. */
int32_t stack_begin(struct builder *b);
void stack_end(struct builder *b, int32_t dx);
/* Ends the encoder, whose last layer's output is x, and returns the decoder's embedded tokens. */
int32_t decoder_begin(struct builder *b, int32_t x);
/* Ends the decoder's backward pass, given the gradient of its embedded tokens, and returns that of the encoder's last
 * layer's output. */
int32_t decoder_end(struct builder *b, int32_t dx);
/* Add the present stack's biases to scores, and dscores to their gradient, where it has any. */
void build_score_bias(struct builder *b, int32_t scores);
void build_score_bias_grad(struct builder *b, int32_t dscores);
/* Returns the rows that cross-attention adds to the residual stream, without PROJ's bias, given those of a->n. */
int32_t cross_forward(struct builder *b, struct cross_acts *a);
/* Forgets what the backward pass makes again. */
void cross_forget(const struct builder *b, struct cross_acts *a);
/* Returns the gradient of a->n. */
int32_t cross_backward(struct builder *b, struct cross_acts *a, int32_t dout);

/* ---- mtp.c: multi-token prediction ---- */

/* Appends the blocks that predict further tokens, given the last layer's output, and their losses. */
void mtp_forward(struct builder *b, int32_t x);
/* Returns the gradient of that output; NONE without such blocks. */
int32_t mtp_backward(struct builder *b);

/* ---- frames.c: sound ---- */

/* Returns the rows of the micro-batch's frames. */
int32_t frames_forward(struct builder *b);
void frames_backward(struct builder *b, int32_t dx);

/* ---- conv.c: convolutional networks ---- */

int32_t conv_block_forward(struct builder *b, int32_t x_in, struct acts *a);
void conv_block_backward(struct builder *b, struct acts *a, int32_t *dx);
int32_t conv_stem_forward(struct builder *b);
void conv_stem_backward(struct builder *b, int32_t dx);
/* Return the mean of each channel over its image, and the gradient of the images. */
int32_t conv_mean_forward(struct builder *b, int32_t x);
int32_t conv_mean_backward(struct builder *b, int32_t dy);

/* ---- short_conv.c: the branch of a gated short convolution ---- */

/* As ssm_forward and ssm_backward. */
int32_t short_conv_forward(struct builder *b, struct acts *a, int32_t normed);
int32_t short_conv_backward(struct builder *b, struct acts *a, int32_t dout);

/* ---- ssm.c: the branch of a Mamba layer or a gated delta rule ---- */

/* Returns the branch's output, given the normed rows of the block's input; NONE when recomputing and nothing needs it.
 */
int32_t ssm_forward(struct builder *b, struct acts *a, int32_t normed);
/* Returns the gradient of the normed rows. */
int32_t ssm_backward(struct builder *b, struct acts *a, int32_t dout);

/* ---- moe.c: a layer of experts in place of the MLP ---- */

/* Returns the layer's output; NONE when recomputing. */
int32_t moe_forward(struct builder *b, struct acts *a, int32_t normed);
/* Appends the shared experts' forward pass once more. */
void moe_again_shared(struct builder *b, struct acts *a);
int32_t moe_backward(struct builder *b, struct acts *a, int32_t dout);
/* Appends the sum of the experts' loads over all ranks and the step of router_bias (Megatron-Core,
 * distributed/finalize_model_grads.py: _update_router_expert_bias). */
void build_router_bias(struct builder *b);

/* ---- moe_exchange.c: rows on their way to their experts and back ---- */

int64_t moe_local_experts(const struct builder *b);
/* The ranks that send rows to an expert: those that share experts, and those that cut them. */
int64_t moe_senders(const struct builder *b);
/* Slots of an expert, of this rank's rows. */
int64_t moe_capacity(const struct builder *b);
/* Slots of all experts, of this rank's rows. */
int64_t moe_slots(const struct builder *b);
/* Slots of this rank's experts, from all ranks that share or cut them. */
int64_t moe_received_slots(const struct builder *b);
/* Columns of the rows that experts see. */
int64_t moe_width(const struct builder *b);
/* Send rows to their experts, sorted by expert, and back. Return the buffer of what arrives. place: where a block that
 * recomputes op by op saves it; SAVED_COUNT: nowhere. */
int32_t moe_to_experts(struct builder *b, int32_t slots, const char *what, enum saved_place place);
int32_t moe_from_experts(struct builder *b, int32_t rows, const char *what, enum saved_place place);
/* The same of a gate for each row, and of the gates' gradients. */
int32_t moe_gates_to_experts(struct builder *b, const struct moe_acts *a);
int32_t moe_gates_from_experts(struct builder *b, int32_t dweights);

/* ---- context.c: attention where each rank has a part of the sequence ---- */

void context_attention(struct builder *b, struct acts *a);
/* Returns the keys and values of the whole sequence for naive attention: [batch, c s, 2 kv_heads head_dim]. */
int32_t context_keys(struct builder *b, int32_t qkv);
void context_keys_grad(struct builder *b, int32_t dkv, int32_t dqkv);
/* Returns the gradient of Q, K and V. */
int32_t context_attention_grad(struct builder *b, const struct acts *a, int32_t datt, int32_t delta);

/* ---- narrow.c ---- */

/* True where this layer's products run in a format narrower than 16 bits. */
bool narrow_here(const struct builder *b);
/* True where the vocabulary head's weight `w` does. */
bool narrow_head(const struct builder *b, enum param_kind w);
/* True where those of its experts do. */
bool narrow_experts(const struct builder *b);
/* Says that a buffer already has that format. */
void narrow_is_own(struct builder *b, struct view v);
/* Returns a copy of `v` in that format, and makes it where there is none yet. */
struct view narrow_copy_of(struct builder *b, struct view v, int64_t elements);
/* Forgets the copy of a buffer, which the backward pass then makes again. */
void narrow_forget(struct builder *b, int32_t buffer);

/* ---- ops that forward and backward share ---- */

/* Returns a layer's window for op.attn: below 0 a chunk, 0 none. */
int64_t build_window(const struct builder *b);
struct op build_attention_op(const struct builder *b, enum op_kind k);
/* Returns a SIGMOID_GATE or its gradient. */
struct op build_gate_op(const struct builder *b, enum op_kind k, const char *what, int64_t rows, int64_t cols,
	int64_t gates);
/* Returns softmax(Q K^T) of naive attention in a new buffer. kv: context_keys, or NONE. */
int32_t build_probs(struct builder *b, int32_t qkv, int32_t kv);
/* True where the backward pass of b->layer runs one of these again alone: bits of enum recompute_module. */
bool build_recomputes_part(const struct builder *b, int modules);
/* Returns a new buffer for the scores of naive attention. */
int32_t build_scores(struct builder *b);
/* Holds what the framework keeps of scores of so many keys beside them: masks, and those before dropout or in fp32. */
int32_t build_kept_scores(struct builder *b, int64_t keys);

/* ---- products.c ---- */

/* Appends y = x W^T + bias. */
void build_linear_at(struct builder *b, const struct linear *l, int32_t x, struct view y);
/* Append y = x W^T + bias and dx = dy W, and return y and dx in new buffers. */
int32_t build_linear(struct builder *b, const struct linear *l, int32_t x);
int32_t build_linear_grad(struct builder *b, const struct linear *l, int32_t dy);
/* Appends dW += dy^T x, or defers it (struct deferred_weights). It completes the gradient, except that of a table to
 * which the embedding still adds. */
void build_weight_grad(struct builder *b, const struct linear *l, int32_t dy, int32_t x);
void build_bias_grad(struct builder *b, const char *what, int64_t rows, int64_t cols, int32_t dy, enum param_kind bias);
/* Returns `ops` where PyTorch dispatches ops on DTensors for tensor ranks; else 0. */
uint8_t build_dtensors(const struct builder *b, int64_t ops);
/* Returns a norm's op on this rank's rows. */
struct op build_norm_op(const struct builder *b, enum op_kind k, const char *what, int64_t cols);
/* Returns norm(x) of the residual stream's rows, and its statistics. The bias is the kind behind w (step/model.h). */
int32_t build_norm(struct builder *b, const char *what, int32_t x, enum param_kind w, int32_t *stats);
/* Returns the gradient of x: added to `into`, or in new rows where that is NONE. */
int32_t build_norm_grad(struct builder *b, const char *what, int32_t dy, int32_t x, int32_t stats, enum param_kind w,
	int32_t into);
/* The same where that gradient goes on into a branch, or into the embedding, whose dropout passes it. */
int32_t build_stream_norm_grad(struct builder *b, const char *what, int32_t dy, int32_t x, int32_t stats,
	enum param_kind w, int32_t into);
/* The same of latents, without a bias: of the first `cols` of the `width` columns of x and its gradient. */
int32_t build_latent_norm(struct builder *b, const char *what, int32_t x, int64_t cols, int64_t width,
	enum param_kind w, int32_t *stats);
int32_t build_latent_norm_grad(struct builder *b, const char *what, int32_t dy, int32_t x, int64_t cols, int64_t width,
	int32_t stats, enum param_kind w);

/* Tensor parallelism around a pair of matrix products. tp_gather returns the full rows that the column-parallel product
 * reads. tp_reduce returns the completed rows of the row-parallel product. Rows have `hidden` columns, or `cols`. */
int32_t tp_gather(struct builder *b, int32_t rows, const char *what);
/* As tp_gather, of a block's input, which its backward pass asks for again. */
int32_t tp_gather_input(struct builder *b, int32_t rows, const char *what);
int32_t tp_gather_cols(struct builder *b, int32_t rows, int64_t cols, const char *what);
int32_t tp_reduce(struct builder *b, int32_t full, const char *what);
/* As tp_reduce, of the gradient of the input of so many products as PyTorch has modules. Inductor cuts pieces from the
 * exchange of a single product alone (torch/_inductor/fx_passes/micro_pipeline_tp.py, _find_producer_matmul). */
int32_t tp_reduce_grad(struct builder *b, int32_t full, int products, const char *what);
int32_t tp_reduce_cols(struct builder *b, int32_t full, int64_t cols, const char *what);

#endif
