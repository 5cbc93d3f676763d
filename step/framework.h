/* What published tables and users call software, and which stack each name is: the lists `names` in configs/stacks.
 *
 * An entry is {name: NAME or a list of them, source: why it is this stack}, with what a table of that name leaves
 * blank. A word begins with a name whatever the case, '-', '_' and blanks. "A ... B" is a word that begins with A and
 * has words that begin with B further on.
 */
#ifndef STEPSIM_STEP_FRAMEWORK_H
#define STEPSIM_STEP_FRAMEWORK_H

#include "base/status.h"
#include "base/suggest.h"
#include "base/vec.h"
#include "step/stack.h"

#define FRAMEWORK_NAME 64

struct framework {
	char name[FRAMEWORK_NAME];
	char stack[STACK_NAME], bf16_stack[STACK_NAME]; /* the latter where a row says bf16; "": no other */
	/* Of what a row leaves blank; no part of the stack. Words of model.position, train.attention and
	 * train.recompute, the latter also "fit": none where that fits in memory, else full. */
	const char *position, *attention, *recompute;
	/* Where its runs' loss is not the stack's: fields of stack.memory, and stack.logit_B; 0: it is. */
	double loss_B, loss_tensor_B, logit_B;
	double logit_casts; /* with logit_B: how many of its kernels cast logits to fp32 */
	bool bias;
	bool fsdp;        /* zero2 means FSDP's SHARD_GRAD_OP: gathered before forward, kept until backward is over */
	bool interleaves; /* a blank vp with pp > 1 means 5 if that divides the layers, else 2 */
	bool reports_allocated; /* mem_gb is PyTorch's max_memory_allocated of rank 0 in GiB; else all that the device
	                           holds, in GB */
	bool reduces_narrow;    /* gradients are reduced in the compute format (FSDP1 with MixedPrecision's
	                           reduce_dtype) */
	bool sums_wide;         /* gradients are summed and reduced in fp32, though the stack's are not */
	bool stores_wide;       /* with fp8 products the weights have 16 bits, though the stack stores them in fp8 */
	bool bf16_shards;  /* in bf16 its optimizer shards its states though no ZeRO is asked for: ddp means zero1 */
	bool half_weights; /* with dtype fp16 also weights and gradients are fp16, with fp32 master weights (apex.amp's
	                      O2, as NVIDIA's BERT scripts set it) */
	bool waits;        /* the host thread waits for each step's loss (train.sync_every 1) */
	bool wraps_adapters;   /* FSDP wraps both factors of each adapter by themselves (parallel.adapter_units) */
	bool fuses_norms;      /* RMS norms and rotary embedding are a kernel each (train.fused_kernels) */
	bool fuses_gates;      /* and gates are */
	bool chunks_loss;      /* its loss runs by chunks (habit chunks_loss of step/stack.h) */
	bool fuses_sums;       /* experts on several ranks: results are added up by a kernel, though the stack has none
	                          (train.expert_sums) */
	bool gates_activation; /* experts on several ranks: gates multiply the activation (train.expert_gates) */
	bool borrows;      /* other software than that of the runs that fixed the stack: it is as unknown as any of the
	                      family */
	bool ddp_overlaps; /* without ZeRO gradients are reduced during the backward pass in buckets of 25 MiB
	                      (src/nanotron/config/config.py: ddp_bucket_cap_mb) of bf16 parameters, which torch
	                      counts, and so 50 of the fp32 sums that its hook reduces (get_fp32_accum_hook); with
	                      it they are not */
};

struct frameworks {
	VEC(struct framework) name;
};

/* Reads the names of all stacks; behind them stands each stack's own name. ST_INPUT with position: an unknown key or
 * word, a name of two stacks. */
enum status frameworks_load(struct frameworks *out, struct error *e);
void frameworks_free(struct frameworks *f);

/* Returns the entry with the longest name that the word begins with; NULL without one. The entry is borrowed. */
const struct framework *framework_of(const struct frameworks *f, const char *word);
/* Finds the longest name that stands further on in the word ("our trainer (FSDP2, compile)"): other software on it,
 * which is as unknown as any of the family (borrows). false: there is none. */
bool framework_inside(const struct frameworks *f, const char *word, struct framework *out);
/* The same as framework_of, where nothing follows the name. */
const struct framework *framework_named(const struct frameworks *f, const char *word);

/* What a message says of an unknown name: the nearest, or where the list is. */
struct hint framework_hint(const struct frameworks *f, const char *word);

#endif
