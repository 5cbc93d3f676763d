/* The costs of a software stack beyond the step program's own counting: at most eight numbers, each with a physical
 * meaning and a source in configs/stacks/<name>.yaml; and its habits. A number that a stack's file does not give is its
 * family's (configs/families/<name>.yaml). */
#ifndef STEPSIM_STEP_STACK_H
#define STEPSIM_STEP_STACK_H

#include <stdbool.h>
#include <stddef.h>

#include "base/quantity.h"
#include "base/yaml.h"

/* Flash attention by the generation of its kernel: the rate that it reaches is the kernel's as much as the GPU's. */
enum attention_kernel {
	KERNEL_FA1,
	KERNEL_FA2,
	KERNEL_FA3,
	KERNEL_COUNT,
	KERNEL_AUTO = KERNEL_COUNT /* a config's word for the stack's */
};
const char *attention_kernel_name(enum attention_kernel k); /* "fa1", ... */

/* How layers are cut into pipeline stages where parallel.layers_per_stage does not say it. */
enum stage_split {
	SPLIT_EVEN, /* as even as they go, the remainder one each to the early stages */
	SPLIT_ENDS, /* embedding and head count as a layer each where layers + 2 then divide (Megatron's
	               account_for_embedding_in_pipeline_split, account_for_loss_in_pipeline_split); else even */
	SPLIT_COST, /* by FLOP: a stage is full once the layers so far, and in the end the head, have passed its share
	               (nanotron, models/base.py) */
	SPLIT_COUNT
};

/* Memory that the framework takes beside what the step program's buffers count. */
struct stack_memory {
	double loss_B; /* bytes a logit at the loss's peak, with the logits themselves: fp32 copies, softmax */
	double gate_B; /* bytes kept for backward of each element of an unfused gate's activation, which a fused kernel
	                  computes again */
	double dropout_B;  /* bytes of each element of a dropout mask: after attention, after the MLP, and of stored
	                      scores, which keep the dropped copy as well. Its time is not modelled */
	double rotated_B;  /* bytes kept for backward of each element of queries and keys that a rotation copies, beside
	                      the product's own result, whose values attention reads */
	double message_B;  /* bytes of each element that a pipeline stage has sent, kept until its gradient comes back;
	                      Megatron frees them (deallocate_pipeline_outputs) */
	double gradient_B; /* bytes a parameter of gradients beside those that the optimizer reads: DDP's buckets,
	                      16-bit gradients before they are added in fp32 */
	double flattened_B; /* bytes a parameter of ZeRO-1's flattened gradients while it reduces them after backward */
	double context_B;   /* CUDA context, modules, library workspaces */
	double communicator_B; /* NCCL's buffers for each communicator of the rank */
};

#define STACK_NAME 64

struct stack {
	struct stack_memory memory;
	double elementwise_passes; /* memory traffic of norms and elementwise kernels, over the least that the program
	                              counts */
	double logit_B;     /* bytes that cross memory for each logit, forward and backward of the loss together (fp32
	                       copies, log-softmax, its gradient, metrics) */
	double optimizer_B; /* bytes that cross memory for each updated parameter: update, gradient clipping, copies */
	double overlap_tax; /* compute time lost for each second of a collective beside it */
	double op_s; /* host time to issue one op of the program (Python, autograd, dispatch, all its kernels); 0: the
	                device's launch */
	double interval; /* half the width of the 90 % interval of log(measured / predicted), from the residuals of the
	                    stack's own rows in cross-validation; 0: no row fixed the stack. No part of any prediction
	                  */
	double unseen; /* a family's: of that width for a stack without rows, what the parts of its step do not explain
	                  (sim/engine/interval.h), from rows whose source was held out */
	double tensor_exposed; /* with parallel.tensor_overlap: of a tensor-parallel collective, what is not hidden
	                          beside the tiles of the products around it (Transformer Engine's user buffers,
	                          asynchronous TP); 0: not known, one of the group's pieces */
	double tensor_call_s;  /* host time, besides op_s, for each member of a tensor group in each of its collectives
	                          while a pipeline crosses hosts */
	double micro_batch_s;  /* time that each micro-batch adds to all else: synchronisation, data loader hand-over */
	double step_s;         /* the same for a step: gradient clipping's norm, logging, the scheduler */
	char compiled_twin[STACK_NAME]; /* the stack of the same framework whose model is compiled; "": none */
	enum attention_kernel attention_kernel;
	enum stage_split stage_split;
	bool gather_ahead; /* zero1: updated weights are gathered at the beginning of the next step, beside its forward
	                      pass, bucket by bucket (Megatron's overlap_param_gather) */
	bool shard_inside; /* zero1: the scatter leaves a rank's part of the reduced gradients inside the whole ones;
	                      else it has a place of its own (DeepSpeed's flattened partitions; what stepsim executes)
	                    */
	bool copies_gathered; /* zero1: gathered weights lie by rank in buffers of their own, and a kernel of its own
	                         copies each rank's slice of each tensor back; else they are gathered in place */
	bool adds_gradients;  /* weights' gradients leave their products in the compute format, and a kernel of its own
	                         adds each to its fp32 sum after every micro-batch; else the product adds */
	bool dynamic_scales;  /* an fp8 copy's scale is that of the values at hand: they are read once more for the
	                         largest, and the copy along the other axis is a write of its own; else the last step's
	                         scale (TE's delayed scaling), one pass of the traffic that the fits have seen */
	bool recompute_last_gemm; /* a recomputed block runs its last product and that one's reduction again (Megatron's
	                             and PyTorch's reentrant checkpointing call the whole forward function), which the
	                             early stop of non-reentrant torch.utils.checkpoint leaves out */
};

/* The numbers as a table: for the reader, the lists and the fits. */
struct stack_number {
	const char *name;
	enum unit unit;
	double min, max;
	size_t offset; /* in struct stack */
	const char *meaning;
};
#define STACK_NUMBERS 9 /* of which a family uses eight at the most */
extern const struct stack_number stack_numbers[STACK_NUMBERS];
#define STACK_MEMORIES 9
extern const struct stack_number stack_memories[STACK_MEMORIES];

/* Reads the mappings `numbers` and `memory` ({name: {value, source}}), `habits`, `interval` and `unseen` ({value,
 * source}) and the name `compiled_twin` of a file over `s`, those that are there. ST_INPUT with position and nearest
 * name. */
enum status stack_read(const struct ynode *file, struct stack *s, struct error *e);

/* Counted traffic, the device's own launch, FlashAttention-2: what is assumed before any file is read. The first is
 * configs/model/stack.yaml, with the memory that every stack takes. */
struct stack stack_default(void);

#endif
