/* Classes of kernels by parts of their names; the first match counts. Names are those of NCCL 2.4 to 2.28, RCCL,
 * cuBLAS, CUTLASS, cuDNN, MIOpen, FlashAttention, PyTorch, FBGEMM,
 * Triton's inductor and Apex. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "report/import/trace.h"

struct pattern {
	const char *part; /* lower case */
	enum op_class class_;
};

/* All of a communication library's kernels: nccl, and kernels that PyTorch's symmetric memory, NVSHMEM, DeepEP,
 * Transformer Engine's user buffers, vLLM and TensorRT-LLM brought. */
static const char *const communicates[] = {"nccl", "rccl", "nvshmem", "symm_mem", "multimem_all", "one_shot_all",
	"two_shot_all", "deep_ep", "hybrid_ep::dispatch", "hybrid_ep::combine", "msccl", "oneccl", "userbuffers",
	"cross_device_reduce", "allreducefusion", "allreduce_fusion"};

static const struct pattern collectives[] = {
	{"reducescatter", CLASS_REDUCE_SCATTER},
	{"reduce_scatter", CLASS_REDUCE_SCATTER},
	{"allreduce", CLASS_ALL_REDUCE},
	{"all_reduce", CLASS_ALL_REDUCE},
	{"allgather", CLASS_ALL_GATHER},
	{"all_gather", CLASS_ALL_GATHER},
	{"alltoall", CLASS_ALLTOALL},
	{"all_to_all", CLASS_ALLTOALL},
	{"dispatch", CLASS_ALLTOALL},
	{"combine", CLASS_ALLTOALL},
	{"_rr_rs", CLASS_REDUCE_SCATTER},
	{"_mc_rs", CLASS_REDUCE_SCATTER},
	{"_rr_ag", CLASS_ALL_GATHER},
	{"_rw_ag", CLASS_ALL_GATHER},
	{"_mc_ag", CLASS_ALL_GATHER},
	{"broadcast", CLASS_BROADCAST},
	{"sendrecv", CLASS_SENDRECV},
	{"send", CLASS_SENDRECV},
	{"recv", CLASS_SENDRECV},
	{"reduce", CLASS_ALL_REDUCE},
};

/* Convolutions before products, which they are (implicit GEMM). What is said in a name about an op's element comes
 * after the op itself. */
static const struct pattern kernels[] = {
	{"multi_tensor_apply", CLASS_OPTIMIZER},
	{"adam", CLASS_OPTIMIZER},
	{"multi_tensor_lamb", CLASS_OPTIMIZER}, /* "lamb" alone is in every lambda */
	{"lambstage", CLASS_OPTIMIZER},
	{"fused_sgd", CLASS_OPTIMIZER},
	{"fusedsgd", CLASS_OPTIMIZER},
	{"sgdfunctor", CLASS_OPTIMIZER},
	{"flash", CLASS_ATTENTION},
	{"fmha", CLASS_ATTENTION},
	{"attention", CLASS_ATTENTION},
	{"sdpa", CLASS_ATTENTION},
	{"_attn", CLASS_ATTENTION},
	{"attn_", CLASS_ATTENTION},
	{"scaled_masked_softmax", CLASS_ATTENTION}, /* Megatron's fused ones */
	{"scaled_upper_triang", CLASS_ATTENTION},
	{"chunk_scan", CLASS_SCAN}, /* mamba_ssm's, ops/triton */
	{"chunk_state", CLASS_SCAN},
	{"chunk_cumsum", CLASS_SCAN},
	{"state_passing", CLASS_SCAN},
	{"bmm_chunk", CLASS_SCAN},
	{"gated_delta_rule", CLASS_SCAN}, /* flash-linear-attention's, fla/ops */
	{"scaled_dot_kkt", CLASS_SCAN},
	{"to_64x64_inverse", CLASS_SCAN},
	{"solve_tril", CLASS_SCAN},
	{"recompute_w_u", CLASS_SCAN},
	{"prepare_wy_repr", CLASS_SCAN},
	{"chunk_fwd_kernel_o", CLASS_SCAN},
	{"chunk_bwd_kernel_d", CLASS_SCAN},
	{"chunk_local_cumsum", CLASS_SCAN},
	{"selective_scan", CLASS_SCAN},
	{"causal_conv1d", CLASS_ELEMENTWISE},
	{"nll_loss", CLASS_LOSS},
	{"cross_entropy", CLASS_LOSS},
	{"crossentropy", CLASS_LOSS},
	{"softmax", CLASS_LOSS},
	{"embedding", CLASS_EMBEDDING}, /* before "gemm": fbgemm_gpu's lookups of tables */
	{"indexselect", CLASS_EMBEDDING},
	{"vectorized_gather_kernel", CLASS_EMBEDDING}, /* PyTorch 2.7 and later, in place of indexSelect */
	{"krn_partial", CLASS_EMBEDDING},              /* PyTorch's gradient of an embedding, by segments */
	{"sum_and_scatter", CLASS_EMBEDDING},
	{"compute_grad_weight", CLASS_EMBEDDING},
	{"layer_norm", CLASS_NORM},
	{"layernorm", CLASS_NORM},
	{"rms_norm", CLASS_NORM},
	{"rmsnorm", CLASS_NORM},
	{"ln_fwd", CLASS_NORM},
	{"ln_bwd", CLASS_NORM},
	{"gammabeta", CLASS_NORM},
	{"batch_norm", CLASS_NORM},
	{"batchnorm", CLASS_NORM},
	{"group_norm", CLASS_NORM},
	{"groupnorm", CLASS_NORM},
	{"bn_fw_", CLASS_NORM}, /* cuDNN's batch normalization */
	{"bn_bw_", CLASS_NORM},
	{"rowwisemoments", CLASS_NORM},
	{"nchwtonhwc", CLASS_MEMORY}, /* what cuDNN and MIOpen copy beside convolutions */
	{"nhwctonchw", CLASS_MEMORY},
	{"batched_transpose", CLASS_MEMORY},
	{"converttensor", CLASS_MEMORY},
	{"wgrad_gemm", CLASS_GEMM}, /* Apex: of a linear layer */
	{"conv2d", CLASS_CONVOLUTION},
	{"conv_depthwise", CLASS_CONVOLUTION},
	{"convolve", CLASS_CONVOLUTION},
	{"convolution", CLASS_CONVOLUTION},
	{"naive_conv", CLASS_CONVOLUTION}, /* MIOpen */
	{"miopensp3asmconv", CLASS_CONVOLUTION},
	{"scudnn", CLASS_CONVOLUTION},
	{"winograd", CLASS_CONVOLUTION},
	{"fprop", CLASS_CONVOLUTION},
	{"dgrad", CLASS_CONVOLUTION},
	{"wgrad", CLASS_CONVOLUTION},
	{"fft2d_", CLASS_CONVOLUTION},
	{"implicit_gemm", CLASS_CONVOLUTION},
	{"gemm", CLASS_GEMM},
	{"gemv", CLASS_GEMM},
	{"cutlass", CLASS_GEMM},
	{"nvjet", CLASS_GEMM},
	{"xmma", CLASS_GEMM},
	{"cijk_", CLASS_GEMM},
	{"splitkreduce", CLASS_GEMM},
	{"triton_mm", CLASS_GEMM},
	{"triton_tem", CLASS_GEMM},
	{"fillfunctor", CLASS_MEMORY},
	{"rocclr_copy", CLASS_MEMORY},
	{"rocclr_fill", CLASS_MEMORY},
	{"direct_copy", CLASS_MEMORY},
	{"copy_kernel_cuda", CLASS_MEMORY}, /* bfloat16_copy_kernel_cuda: a cast */
	{"catarray", CLASS_MEMORY},
	{"_cast", CLASS_MEMORY}, /* "cast" alone is in broadcast and nocast */
	{"cast_transpose", CLASS_MEMORY},
	{"quantize", CLASS_MEMORY},
};

static bool contains(const char *lower, const char *part) { return strstr(lower, part) != NULL; }

static void lower_case(const char *name, char *out, size_t cap)
{
	size_t n = 0;
	for (; name[n] && n + 1 < cap; n++)
		out[n] = (char)tolower((unsigned char)name[n]);
	out[n] = 0;
}

enum op_class trace_kernel_class(const char *name)
{
	char lower[2048];
	lower_case(name, lower, sizeof lower);
	for (size_t i = 0; i < COUNT(communicates); i++) {
		if (!contains(lower, communicates[i]))
			continue;
		for (size_t k = 0; k < COUNT(collectives); k++)
			if (contains(lower, collectives[k].part))
				return collectives[k].class_;
		return CLASS_SENDRECV; /* ncclDevKernel_Generic: grouped messages */
	}
	for (size_t k = 0; k < COUNT(kernels); k++)
		if (contains(lower, kernels[k].part))
			return kernels[k].class_;
	return CLASS_ELEMENTWISE;
}

enum op_class trace_copy_class(const char *name)
{
	char lower[256];
	lower_case(name, lower, sizeof lower);
	if (contains(lower, "memset") || contains(lower, "dtod") || contains(lower, "devicetodevice") ||
		contains(lower, "device-to-device"))
		return CLASS_MEMORY;
	return contains(lower, "ptop") || contains(lower, "peer-to-peer") ? CLASS_SENDRECV : CLASS_COPY;
}
