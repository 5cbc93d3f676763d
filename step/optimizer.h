/* Optimizers, a row each. What builds, prices and executes an update reads the row and compares no names. */
#ifndef STEPSIM_STEP_OPTIMIZER_H
#define STEPSIM_STEP_OPTIMIZER_H

#include <stdbool.h>

/* PyTorch's foreach AdamW reads and writes about 3.5 times the state's minimum (torch/optim/adamw.py,
 * _multi_tensor_adamw); the others are taken to do the same. */
#define FOREACH_PASSES 3.5

/* X(id, word of train.optimizer, moments, flop, unfused_passes, loop_kernels, runs_stateless, trust_ratio, orthogonal,
 * factored): struct optimizer_traits says what the columns mean. */
#define OPTIMIZERS(X) \
	X(ADAMW, "adamw", 2, 12.0, FOREACH_PASSES, 10, false, false, false, false) \
	X(ADAM, "adam", 2, 12.0, FOREACH_PASSES, 9, false, false, false, false) \
	X(LAMB, "lamb", 2, 18.0, 1.0, 0, false, true, false, false) \
	X(MUON, "muon", 1, 12.0, FOREACH_PASSES, 0, false, false, true, false) \
	X(ADAFACTOR, "adafactor", 0, 16.0, 1.0, 0, false, false, false, true) \
	X(LION, "lion", 1, 12.0, FOREACH_PASSES, 8, false, false, false, false) \
	X(SGD, "sgd", 1, 12.0, FOREACH_PASSES, 4, true, false, false, false) \
	X(NONE, "none", 0, 0.0, 0.0, 0, true, false, false, false)

/* How an update is launched, by PyTorch's words (torch/optim/optimizer.py, _fused_doc, _foreach_doc):
 * foreach   a kernel for each operator, over lists of tensors
 * fused     one kernel
 * for_loop  a kernel for each operator and tensor: PyTorch's default before 2.0, Hugging Face's own AdamW
 *
 * The kernels of a loop: AdamW has mul_, lerp_, mul_, addcmul_, sqrt, div, add_ and addcdiv_ (torch/optim/adam.py,
 * _single_tensor_adam), so 4,640 for GPT-2 XL's 580 tensors, as counted (gabrieldemarmiesse/torch-mojo-backend
 * @be85aa14bfcf docs/gpt2_fsdp2_throughput.md). adam has no decay. lion has mul_, mul, add_, sign_, add_ and lerp_
 * (lucidrains/lion-pytorch). Clipping without foreach has two more, a norm and a product (torch/nn/utils/clip_grad.py).
 * sgd has its decay, mul_, add_ and the step (torch/optim/sgd.py): it is of networks for images, which clip nothing. */
enum optimizer_impl { IMPL_FOREACH, IMPL_FUSED, IMPL_FOR_LOOP, IMPL_COUNT };

#define OPTIMIZER_ID(id, ...) OPT_##id,
enum optimizer { OPTIMIZERS(OPTIMIZER_ID) OPT_COUNT };
#undef OPTIMIZER_ID

struct optimizer_traits {
	const char *name;
	int moments;           /* values of state an element, without a master copy of the weights */
	double flop;           /* an element's update */
	double unfused_passes; /* bytes that separate elementwise kernels move, over those of one fused kernel */
	int loop_kernels;      /* launches for a tensor with IMPL_FOR_LOOP; 0: not modelled */
	bool runs_stateless;   /* its kernels also run without moments (momentum 0) */
	bool trust_ratio; /* each tensor's step is scaled by norm(weights) / norm(update): LAMB_DIRECTION, LAMB_STEP */
	bool orthogonal;  /* the blocks' matrices step by their orthogonalized momentum (step/builder/muon.c), the rest
	                     as  adamw */
	bool factored;    /* second moments of a matrix are a row and a column (step/builder/adafactor.c) */
};

extern const struct optimizer_traits optimizer_traits[OPT_COUNT];

const char *optimizer_name(enum optimizer o);

/* True where whole tensors decide on a step, so that other ops than OPTIMIZER make it. */
static inline bool optimizer_needs_tensors(enum optimizer o)
{
	return optimizer_traits[o].trust_ratio || optimizer_traits[o].orthogonal || optimizer_traits[o].factored;
}

/* False without an optimizer: gradients are computed and not used. */
static inline bool optimizer_updates(enum optimizer o) { return o != OPT_NONE; }

#endif
