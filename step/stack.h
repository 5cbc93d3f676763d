/* The costs of a software stack beyond the step program's own counting: at most eight numbers, each with a physical
 * meaning and a source in configs/stacks/<name>.yaml; and its habits. A number that a stack's file does not give is its
 * family's (configs/families/<name>.yaml). */
#ifndef STEPSIM_STEP_STACK_H
#define STEPSIM_STEP_STACK_H

#include <stdbool.h>
#include <stddef.h>

#include "base/dtype.h"
#include "base/quantity.h"
#include "base/yaml.h"
#include "step/operators.h"

/* Flash attention by the generation of its kernel: the rate that it reaches is the kernel's as much as the GPU's.
 * fa4: written for Blackwell (Zadouri et al. 2026, arXiv:2603.05451).
 * masked: PyTorch's memory-efficient kernel, which scaled_dot_product_attention takes where it is given a mask (its
 * flash kernels take none), as Hugging Face's models give it for padded sequences. It computes what the mask hides. */
enum attention_kernel {
	KERNEL_FA1,
	KERNEL_FA2,
	KERNEL_FA3,
	KERNEL_FA4,
	KERNEL_MASKED, /* the rate of fa2 times gpu.masked_forward, gpu.masked_backward (configs/model) */
	KERNEL_COUNT,
	KERNEL_AUTO = KERNEL_COUNT /* a config's word for the stack's */
};
const char *attention_kernel_name(enum attention_kernel k); /* "fa1", ... */
struct stack;
/* Returns the kernel that a stack takes on a GPU of this compute capability (100; 0: not NVIDIA's). */
enum attention_kernel attention_kernel_on(const struct stack *s, int64_t compute_capability);

/* How values are scaled to fp8, and what the copies of an operand move: X(id, word, reads of the operand, writes of a
 * copy, whether that is times elementwise_passes). Products read it along both axes, so that it is copied along both.
 *
 *   delayed     the last steps' largest values decide (NVIDIA Transformer Engine, DelayedScaling): one pass, as the
 *               stacks' fits of elementwise_passes have seen it
 *   tensorwise  the largest value at hand (TE: Float8CurrentScaling; torchao: tensorwise): it is looked for first
 *   tensorwise_once
 *               the same, but products read one copy along either axis, and that copy's kernels move no more than this
 *               (AMD-AGI/Primus-Turbo@02c53a4db49d primus_turbo/pytorch/ops/grouped_gemm_fp8.py,
 *               FP8GroupedGemmTensorFunc; csrc/pytorch/quantization/quantization.cpp, quantize_fp8_tensorwise)
 *   rowwise     a scale for each row, or column, that a product sums over (torchao, float8_linear.py): the copies have
 *               scales of their own, so each is made from the operand: by rows in one kernel, by columns in two, as the
 *               largest values of columns are known only at the end
 *   blockwise   1 x 128 of activations, 128 x 128 of weights (DeepSeek-AI 2024, arXiv:2412.19437, section 3.3; TE:
 *               Float8BlockScaling): a block's largest value is found as it is copied, both ways in one pass
 */
#define FP8_RECIPES(X) \
	X(DELAYED, "delayed", 1, 1, true) \
	X(TENSORWISE, "tensorwise", 2, 2, true) \
	X(TENSORWISE_ONCE, "tensorwise_once", 2, 1, false) \
	X(ROWWISE, "rowwise", 3, 2, true) \
	X(BLOCKWISE, "blockwise", 1, 2, true)
#define FP8_RECIPE_ID(id, ...) FP8_##id,
enum fp8_recipe { FP8_AUTO /* the stack's */, FP8_RECIPES(FP8_RECIPE_ID) FP8_RECIPE_COUNT };
#undef FP8_RECIPE_ID

/* How layers are cut into pipeline stages where parallel.layers_per_stage does not say it. */
enum stage_split {
	SPLIT_EVEN, /* as even as they go, the remainder one each to the early stages */
	SPLIT_ENDS, /* embedding and head count as a layer each where layers + 2 then divide (Megatron's
	               account_for_embedding_in_pipeline_split, account_for_loss_in_pipeline_split); else even */
	SPLIT_COST, /* by FLOP: a stage is full once the layers so far, and in the end the head, have passed its share
	               (nanotron, models/base.py) */
	SPLIT_COUNT
};

/* The numbers: X(name in a file, field, unit, least, most, meaning). */
#define STACK_NUMBER_ROWS(X) \
	X("elementwise_passes", elementwise_passes, NONE, 0.5, 20, \
		"memory traffic of norms and elementwise kernels, over the least that they could do with") \
	/* fp32 copies, log-softmax, its gradient, metrics */ \
	X("logit", logit_B, BYTE, 0, 1000, "memory traffic a logit, forward and backward of the loss; 0: as counted") \
	X("logit_rate", logit_rate, NONE, 0, 1000, \
		"logits that the loss's kernels pass a clock on an SM; 0: as fast as memory") \
	X("optimizer", optimizer_B, BYTE, 0, 1000, \
		"memory traffic an updated parameter, with clipping and copies; 0: as counted") \
	X("optimizer_fused", optimizer_fused_B, BYTE, 0, 1000, \
		"the same where the update is one kernel; 0: as optimizer") \
	X("optimizer_blocks", optimizer_blocks, NONE, 0, 1e6, \
		"blocks of threads of a launch of that kernel; 0: enough for all SMs") \
	X("overlap_tax", overlap_tax, NONE, 0, 1, "compute time lost for each second of a collective beside it") \
	/* step/dropout.h */ \
	X("dropout", dropout, NONE, 0, 10, "reads and writes of an element for dropout beside its mask") \
	X("dropout_grad", dropout_grad, NONE, 0, 10, "the same in the backward pass") \
	X("score_dropout", score_dropout, NONE, 0, 10, "the same of stored scores, in each pass") \
	X("op", op_s, SECOND, 0, 1, "host time to issue one op, with Python and dispatch; 0: the device's launch") \
	X("kernel", kernel_s, SECOND, 0, 1, "host time of each kernel of such an op beside its first") \
	X("dtensor_op", dtensor_op_s, SECOND, 0, 1, \
		"host time that an op on a DTensor takes beside a plain one (habit dtensor)") \
	/* Transformer Engine's user buffers, asynchronous TP; 0: not known, one of the group's pieces */ \
	X("tensor_exposed", tensor_exposed, NONE, 0.01, 1, \
		"share of a tensor-parallel collective that products around it do not hide " \
		"where parallel.tensor_overlap is on") \
	/* besides op_s */ \
	X("tensor_call", tensor_call_s, SECOND, 0, 1, \
		"host time a member of a tensor group in each of its collectives while a pipeline crosses hosts") \
	/* synchronisation, data loader hand-over; the next: clipping's norm, logging, the scheduler */ \
	X("micro_batch", micro_batch_s, SECOND, 0, 100, "time that each micro-batch adds") \
	X("step", step_s, SECOND, 0, 100, "time that each step adds")

/* The same for memory that the framework takes beside what the step program's buffers count. */
#define STACK_MEMORY_ROWS(X) \
	/* at the peak: fp32 copies, softmax */ \
	X("loss", loss_B, BYTE, 0, 100, "bytes alive a logit at the loss, with the logits") \
	/* PyTorch's loss_parallel makes one array more */ \
	X("loss_tensor", loss_tensor_B, BYTE, 0, 100, "further such bytes where tensor ranks share the vocabulary") \
	/* unfused: a fused kernel computes it again */ \
	X("gate", gate_B, BYTE, 0, 8, "bytes kept an element of a gate's activation") \
	X("clamped_gate", clamped_gate_B, BYTE, 0, 16, \
		"the same of experts that clamp both halves (model.expert_bias)") \
	/* unfused: copies in fp32, and the result before its weight */ \
	X("rms_norm", rms_norm_B, BYTE, 0, 32, "bytes kept an element of an RMS norm beside its input and result") \
	X("rms_norm_autocast", rms_norm_autocast_B, BYTE, 0, 32, "the same of a block's two under autocast") \
	X("layer_norm_autocast", layer_norm_autocast_B, BYTE, 0, 32, "the same of layer norms") \
	/* after attention, after the MLP, and of stored scores, which keep the dropped copy as well; its time is not \
	 * modelled */ \
	X("dropout", dropout_B, BYTE, 0, 8, "bytes kept an element of a dropout mask") \
	/* beside the product's own result, whose values attention reads */ \
	X("rotated", rotated_B, BYTE, 0, 8, "bytes kept an element of rotated queries and keys") \
	/* until its gradient comes back; Megatron frees them (deallocate_pipeline_outputs) */ \
	X("message", message_B, BYTE, 0, 8, "bytes kept an element of what a pipeline stage has sent") \
	/* DDP's buckets, 16-bit gradients before they are added in fp32 */ \
	/* of a stack that adds them by a kernel of its own only until the last sum, unless overlap reduces them */ \
	X("gradient", gradient_B, BYTE, 0, 32, "bytes a parameter of further gradients") \
	X("update", update_copies, NONE, 0, 4, \
		"copies of a moment of all that a rank updates, alive while an unfused optimizer does") \
	X("flattened", flattened_B, BYTE, 0, 32, "bytes a parameter of flattened gradients while ZeRO-1 reduces them") \
	X("context", context_B, BYTE, 0, 1e11, "CUDA context and library workspaces") \
	X("executor", executor_B, BYTE, 0, 1e11, "the same of stepsim's own executor") \
	X("communicator", communicator_B, BYTE, 0, 1e11, "NCCL's buffers for each communicator")

#define STACK_FIELD(name, field, ...) double field;
struct stack_memory {
	STACK_MEMORY_ROWS(STACK_FIELD)
};

#define STACK_NAME 256 /* a name of the catalogue, or a file */
#define STACK_GPUS 160

struct stack {
	struct stack_memory memory;
	STACK_NUMBER_ROWS(STACK_FIELD)
	struct operators operators; /* in place of elementwise_passes, for the ops that they count */
	double interval; /* half the width of the 90 % interval of log(measured / predicted), from the residuals of the
	                    stack's own rows in cross-validation; 0: no row fixed the stack. No part of any prediction
	                  */
	char fitted_gpus[STACK_GPUS]; /* what the rows of `interval` ran on: ids of configs/gpus between blanks; "": not
	                                 said */
	bool fitted_format[DT_COUNT]; /* the same of compute formats */
	bool family;     /* its file names a family, whose runs tell how far off a stack is that nothing fixed */
	double bucket_B; /* parallel.bucket_mb as the stack has it, and how many bytes of each bucket */
	double bucket_per_rank_B;       /* a data-parallel rank makes the least; 0: no rule (Megatron's bucket_size) */
	char compiled_twin[STACK_NAME]; /* the stack of the same framework whose model is compiled; "": none */
	enum attention_kernel attention_kernel;
	bool cudnn_on_blackwell; /* on compute capability 10.x it takes cuDNN's attention, unless
	                            train.attention_kernel names a kernel */
	enum stage_split stage_split;
	double host_update_Bps; /* bytes that its optimizer on a host's cores moves a second, all ranks together;
	                           0: configs/model, host_update */
	bool buckets_lead_only; /* gradients lie in buckets of bucket_mb only in the first chunk of the first pipeline
	                           stage, whose reduction ends last, and only with overlap; else a chunk is one bucket
	                           (Megatron) */
	bool gather_ahead;  /* zero1: updated weights are gathered at the beginning of the next step, beside its forward
	                       pass, bucket by bucket (Megatron's overlap_param_gather) */
	bool gathers_twice; /* zero1 with expert ranks, not gather_ahead: the optimizer of experts and that of all else
	                       each gather all weights (Megatron) */
	bool shard_inside;  /* zero1: the scatter leaves a rank's part of the reduced gradients inside the whole ones;
	                       else it has a place of its own (DeepSpeed's flattened partitions; what stepsim executes)
	                     */
	bool copies_gathered;   /* zero1: gathered weights lie by rank in buffers of their own, and a kernel of its own
	                           copies each rank's slice of each tensor back; else they are gathered in place */
	bool copies_units;      /* fsdp: the same of the matrices of a unit (DeepSpeed's coalesced gathers) */
	bool copies_slices;     /* fsdp: with copies_units, twice, and the gradient's slices before they are scattered
	                           (DeepSpeed before June 2021, and PyTorch's gathers into lists) */
	bool scatters_messages; /* without sequence parallelism each tensor rank sends its part of a message between
	                           pipeline stages, and the receivers gather it (Megatron's
	                           scatter_gather_tensors_in_pipeline); else each sends all of it */
	bool adds_gradients; /* weights' gradients leave their products in the compute format, and a kernel of its own
	                        adds each to its fp32 sum after every micro-batch; else the product adds */
	bool sums_fused, sums_apart; /* no habits: what train.fused_gradient_sums says of each gradient of a weight,
	                                also where its format is that of the sum */
	bool dynamic_scales;         /* fp8 is scaled tensorwise where fp8_recipe is auto; else delayed */
	bool gathers_narrow; /* fsdp, hsdp with dtype fp8 or mxfp8: the blocks' matrices are made fp8 before they are
	                        gathered, unless parallel.gather_dtype says otherwise */
	bool stores_narrow; /* with dtype fp8 or mxfp8 param_dtype auto is the same: the blocks' matrices are stored and
	                       gathered in it, beside fp32 master weights (Megatron's fp8_param_gather) */
	enum fp8_recipe fp8_recipe; /* no habit: config_resolve sets it from train.fp8_recipe */
	bool repeated_data;         /* the same of data.repeated_token */
	bool autocast; /* no habit: config_resolve sets it where PyTorch's autocast casts fp32 weights for each product
	                */
	bool clamped_gate;        /* experts have biases (model.expert_bias), and each operator around their gate is a
	                             kernel of its own */
	bool composed_gelu;       /* the same where each operator of model.composed_gelu is a kernel of its own */
	bool complex_rotary;      /* the same of model.complex_rotary */
	int fused_kernels;        /* the same of train.fused_kernels: bits of enum fused_kernel; 0: none */
	bool softmax_masked_only; /* fused softmax over stored scores wants a causal model or a mask (apex's
	                             FusedScaleMaskSoftmax) */
	bool channels_first;      /* images lie channel by channel where train.memory_format is auto. Tensor Cores
	                             convolve pixel by pixel, so cuDNN transposes what a convolution reads and writes
	                           */
	bool softmax_apart;       /* no habit: config_resolve sets it where pictures have neither */
	bool recompute_last_gemm; /* a recomputed block runs its last product and that one's reduction again (Megatron's
	                             and PyTorch's reentrant checkpointing call the whole forward function), which the
	                             early stop of non-reentrant torch.utils.checkpoint leaves out */
	bool gates_activation;    /* experts' gates multiply the activation between their products where
	                             train.expert_gates is auto; else the experts' results (Megatron-Core before 0.12,
	                             Hugging Face) */
	bool copies_gradients; /* zero1, zero2, fsdp: kernels of their own carry each parameter's gradient into a flat
	                          bucket, divide that, flatten it, and put this rank's part into place (DeepSpeed) */
	bool passes_hold_dropout; /* elementwise_passes were fitted to runs with dropout, whose time is in them */
	bool copies_flat; /* ddp, zero1, zero2: gradients are copied into a bucket and back; fsdp, hsdp: weights are
	                     copied out of what was gathered, or gradients into what is scattered, on the compute stream
	                     (PyTorch)
	                   */
	double gradient_passes, gradient_calls;  /* no habit: config_resolve sets them from both. How often such kernels
	                                            read and write a gradient, and what ops more the host thread
	                                            issues for a parameter, in each micro-batch on average */
	double expert_passes;                    /* the same of experts' gradients, which other ranks hold */
	double gradient_kernels, buffer_kernels; /* no habit: the kernels that DDP launches for each gradient, and each
	                                            buffer, by itself, likewise */
	bool reduces_whole; /* zero1, zero2: a bucket of gradients is all-reduced, and a rank keeps its part (DeepSpeed)
	                     */
	bool keeps_attention_once; /* the product behind attention keeps attention's own result, and none in fp8 besides
	                              but for delayed scaling (megatron/core/transformer/attention.py:
	                              set_save_original_input of linear_proj) */
	bool attention8;           /* no habit: config_resolve sets it where attention multiplies in fp8 */
	double attention_block,
		expert_tile; /* no habits, nor is attention_split: config_resolve copies struct train's */
	bool attention_split;
	bool chunks_loss; /* the head's product and the loss run by chunks of tokens where train.loss_chunk is auto, so
	                     many that a chunk's logits are about as large as the head's input: the next power of two
	                     above tokens / (vocabulary / hidden units) (Liger's fused_linear_cross_entropy.py) */
	bool half_gradients; /* with dtype fp16 gradients are kept and reduced in fp16, and cast to fp32 for the update,
	                        unless train.grad_dtype says otherwise (Megatron-LM) */
	bool gathers_matrices; /* fsdp: each matrix of a block is gathered, and its gradient reduced, by itself;
	                          else all of a block at once (XLA's partitioner, against PyTorch's units) */
	bool reduces_computed; /* where train.reduce_dtype is auto, gradients are reduced as products leave them, in the
	                          format of compute, and cast behind that (jax-ml/jax issue 27496) */
	bool frees_gradients;  /* gradients are freed behind each update and allocated as backward goes on
	                          (zero_grad(set_to_none=True), PyTorch's default since 2.0); DDP's buckets stay */
	bool scans_blocks;     /* frees_gradients alone: the blocks are one loop, so that the gradients of all are
	                          allocated as its backward pass begins (jax.lax.scan: an array a matrix) */
	bool moments_as_weights; /* without master weights the moments have the weights' format, not fp32 */
	bool expert_calls;  /* the products of a layer's experts run at once, but the host thread calls each by itself
	                       (Transformer Engine's GroupedLinear: cuBLAS on several streams) */
	bool expert_counts; /* without a capacity factor the host thread waits in each forward pass of a layer of
	                       experts until the device has counted their rows: it needs their numbers to exchange them
	                     */
	bool atomic_sums;   /* experts' results and their rows' gradients are added up by an atomic addition an element
	                       (PyTorch's scatter_add_, index_add_) where train.expert_sums is auto; else by a kernel of
	                       their own (Transformer Engine's moe_unpermute) */
	bool expert_masks;  /* with a capacity_factor rows go to their experts and back by products with masks
	                       [rows of a sequence, slots] (GShard's einsum, arXiv:2006.16668, algorithm 2) */
	double biased_cols; /* no habit: config_resolve sets it from biases_apart, the columns of experts' results; 0:
	                       none */
	double mask_rows;   /* no habit: config_resolve sets it from it, the rows of a sequence; 0: no such products */
	bool torch_grouped; /* experts are multiplied by torch._grouped_mm (configs/model/gpu.yaml, grouped_blackwell)
	                     */
	bool triton_fp4;    /* torchao's Triton kernels make copies in NVFP4 (configs/model/gpu.yaml, fp4_cast) */
	bool biases_apart;  /* kernels of their own add experts' biases, expert by expert, and clamp before their
	                       activation (model.expert_bias), unless products do (train.fused_experts) or the step is a
	                       CUDA graph: it cannot wait for the host thread's list of rows
	                       (TEGroupedMLP._apply_bias) */
	bool dtensor;       /* tensor ranks exchange rows as PyTorch's DTensor does: rows are copied behind a gather and
	                       before a scatter (sim/price/cost.c, rows_copied_s), what products read is kept for the
	                       gradients of weights, and fp8 rows with a scale a tensor are cast before they are
	                       gathered (torchao/float8/float8_tensor_parallel.py) */
	bool one_queue; /* tensor and context ranks, before Blackwell, without FSDP and experts: all kernels of a GPU
	                   stand in one queue, each begun before the next (CUDA_DEVICE_MAX_CONNECTIONS=1) */
};

#undef STACK_FIELD

/* The numbers as a table: for the reader, the lists and the fits. */
struct stack_number {
	const char *name;
	enum unit unit;
	double min, max;
	size_t offset; /* in struct stack */
	const char *meaning;
};
#define STACK_NUMBERS 17 /* of which a family uses twelve at the most */
extern const struct stack_number stack_numbers[STACK_NUMBERS];
#define STACK_MEMORIES 16
extern const struct stack_number stack_memories[STACK_MEMORIES];

/* Reads the mappings `numbers` and `memory` ({name: {value, source}}), `operators`, `unvectorized`, `kernels`,
 * `habits`, `interval` ({value, source}), `fitted_on` ({gpus, formats}) and the name `compiled_twin` of a file over
 * `s`, those that are there. A file with elementwise_passes and without operators has none counted. ST_INPUT with
 * position and nearest name. */
enum status stack_read(const struct ynode *file, struct stack *s, struct error *e);

/* Counted traffic, the device's own launch, FlashAttention-2: what is assumed before any file is read. The first is
 * configs/model/stack.yaml, with the memory that every stack takes. */
struct stack stack_default(void);

struct fp8_traffic {
	const char *name;
	double reads, writes;
	bool passes; /* the stack's elementwise_passes hold for it */
};
/* Returns how a stack scales fp8, and what that moves. */
enum fp8_recipe stack_recipe(const struct stack *s);
const struct fp8_traffic *stack_fp8(const struct stack *s);

#endif
