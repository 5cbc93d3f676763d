/* Shared by the files of the reference. */
#ifndef STEPSIM_EXEC_HOST_REFERENCE_PRIVATE_H
#define STEPSIM_EXEC_HOST_REFERENCE_PRIVATE_H

#include "exec/host/reference.h"

typedef enum status reference_fn(const struct host_env *env, const struct op *op, void *const arg[], struct error *e);

#define REFERENCE(name) enum status name(const struct host_env *env, const struct op *op, void *const arg[], struct error *e)
#define UNUSED() ((void)env, (void)op, (void)arg, (void)e)

reference_fn ref_gemm, ref_attention, ref_attention_grad, ref_attention_part, ref_attention_part_grad, ref_kv_pack, ref_kv_unpack, ref_rope;
reference_fn ref_grouped_gemm, ref_route, ref_route_grad, ref_dispatch, ref_combine, ref_combine_grad, ref_swap;
reference_fn ref_attn_scores, ref_attn_softmax, ref_attn_values, ref_attn_values_grad, ref_attn_softmax_grad, ref_attn_scores_grad;

#endif
