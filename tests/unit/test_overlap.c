/* Chrome traces made here, of steps whose overlap is known. (tests/unit/test_overlap_nsys.c has Nsight Systems'.) */
#include "base/array.h"
#include "tests/unit/harness.h"
#include "tests/unit/overlap_read.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define NEAR(a, b) CU_ASSERT_DOUBLE_EQUAL(a, b, 1e-9)
#define GEMM "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64"
#define FLASH "void flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 64> >(Flash_fwd_params)"
#define NCCL "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
#define BEGIN_US \
	1712345678000000.125 /* since 1970, as Kineto writes: beyond a double's microseconds only from 2^53 on */

/* ---- a Chrome trace, event by event ---- */

static char text[1 << 16];
static size_t text_n;
static int correlation;

static void add(const char *format, ...)
{
	va_list list;
	va_start(list, format);
	text_n += (size_t)vsnprintf(text + text_n, sizeof text - text_n, format, list);
	va_end(list);
}

static void begin(int rank)
{
	text_n = 0;
	correlation = 0;
	add("{\n  \"schemaVersion\": 1, \"deviceProperties\": [{\"id\": 0, \"name\": \"a \\\"GPU\\\" [x}\"}],\n"
	    "  \"distributedInfo\": {\"backend\": \"nccl\", \"rank\": %d, \"world_size\": 2},\n"
	    "  \"traceEvents\": [\n",
		rank);
	add("{\"ph\": \"M\", \"name\": \"process_name\", \"pid\": 0, \"tid\": 0, \"args\": {\"name\": \"python\"}}");
}

static void end(void) { add("\n],\n  \"traceName\": \"t.json\"\n}\n"); }

/* Times in us from the begin; the launch is what the host does for it. */
static void kernel(const char *cat, const char *name, double at, double lasts, int stream, double launched)
{
	correlation++;
	add(",\n"
	    "{\"ph\": \"X\", \"cat\": \"cuda_runtime\", \"name\": \"cudaLaunchKernel\", \"pid\": 9, \"tid\": 9, "
	    "\"ts\": %.3f, \"dur\": 4, \"args\": {\"External id\": 7, \"correlation\": %d}}",
		BEGIN_US + launched, correlation);
	add(",\n"
	    "{\"ph\": \"X\", \"cat\": \"%s\", \"name\": \"%s\", \"pid\": 0, \"tid\": %d, \"ts\": %.3f, \"dur\": "
	    "%.3f, \"args\": {\"queued\": 0, \"device\": 0, \"grid\": [1, [2], {\"x\": \"]\"}], \"stream\": %d, "
	    "\"correlation\": %d}}",
		cat, name, stream, BEGIN_US + at, lasts, stream, correlation);
}

static void step(int n, double at, double lasts)
{
	add(",\n"
	    "{\"ph\": \"X\", \"cat\": \"user_annotation\", \"name\": \"ProfilerStep#%d\", \"pid\": 9, \"tid\": 9, "
	    "\"ts\": %.3f, \"dur\": %.3f}",
		n, BEGIN_US + at, lasts);
}

static const char *save(const char *name, size_t bytes)
{
	FILE *f = fopen(in_folder(name), "wb");
	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	CU_ASSERT_EQUAL(fwrite(text, 1, bytes, f), bytes);
	fclose(f);
	return path;
}

/* 1000 us of a step: 800 of compute, then nothing; 200 of communication, `hidden` of it beside compute. What lies on
 * the GPU's streams and is no work must not count. */
static void known_steps(int rank, double hidden, double slower)
{
	begin(rank);
	for (int i = 0; i < 3; i++) {
		double t = i * (1000 + slower);
		step(i, t - 50, 1000 + slower);
		add(",\n"
		    "{\"ph\": \"X\", \"cat\": \"gpu_user_annotation\", \"name\": \"ProfilerStep#%d\", \"pid\": 0, "
		    "\"tid\": 7, \"ts\": %.3f, \"dur\": 1000, \"args\": {\"stream\": 7}}",
			i, BEGIN_US + t);
		add(",\n"
		    "{\"ph\": \"X\", \"cat\": \"cuda_sync\", \"name\": \"Stream Sync\", \"pid\": 0, \"tid\": 7, "
		    "\"ts\": %.3f, \"dur\": 1000, \"args\": {\"stream\": 7}}",
			BEGIN_US + t);
		kernel("kernel", NCCL, t + 800 + slower - hidden, 200, 20, t - 30); /* out of order */
		kernel("kernel", GEMM, t, 500 + slower, 7, t - 40);
		kernel("kernel", FLASH, t + 500 + slower, 300, 7, t - 39);
		kernel("kernel", GEMM, t + 100, 100, 8, t - 38); /* inside of the other */
	}
	end();
}

static void check_known(const struct breakdown *b, double hidden_us)
{
	NEAR(b->step_s, 1e-3);
	NEAR(b->compute_s, 800e-6);
	NEAR(b->comm_s, 200e-6);
	NEAR(b->exposed_comm_s, (200 - hidden_us) * 1e-6);
	NEAR(b->overlap, hidden_us / 200);
	NEAR(b->idle_s, hidden_us * 1e-6);
	NEAR(b->compute_s + b->exposed_comm_s + b->copy_s + b->optimizer_s + b->idle_s, b->step_s);
	NEAR(b->class_s[CLASS_GEMM], 600e-6);
	NEAR(b->class_s[CLASS_ATTENTION], 300e-6);
	CU_ASSERT_EQUAL(b->class_n[CLASS_ALL_REDUCE], 3);
}

static void test_known(void)
{
	static const double hidden[] = {0, 75, 200};
	for (int i = 0; i < 3; i++) {
		struct trace_set set;
		struct overlap o;
		known_steps(0, hidden[i], 0);
		const char *file = save("known.json", text_n);
		CU_ASSERT_EQUAL_FATAL(overlap_read(&file, 1, &set, &o), ST_OK);
		CU_ASSERT_EQUAL(o.n, 1);
		CU_ASSERT_EQUAL(o.gpus[0].steps, 3);
		CU_ASSERT_EQUAL(o.gpus[0].gpu->rank, 0);
		check_known(&o.gpus[0].time, hidden[i]);
		release(&set, &o);
	}
}

static void test_gzip(void)
{
	struct trace_set set;
	struct overlap o;
	known_steps(0, 75, 0);
	const char *file = in_folder("known.json.gz");
	gzFile f = gzopen(file, "wb");
	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	CU_ASSERT_EQUAL(gzwrite(f, text, (unsigned)text_n), (int)text_n);
	gzclose(f);
	CU_ASSERT_EQUAL_FATAL(overlap_read(&file, 1, &set, &o), ST_OK);
	check_known(&o.gpus[0].time, 75);
	release(&set, &o);
}

/* At every length it is read, or refused with a reason: never wrong in silence. */
static void test_cut_off(void)
{
	known_steps(0, 75, 0);
	for (size_t n = 0; n < text_n; n += 97) {
		struct trace_set set;
		struct overlap o;
		const char *file = save("cut.json", n);
		enum status st = overlap_read(&file, 1, &set, &o);
		CU_ASSERT(st ? st == ST_INPUT && *error.text : o.files_cut == 1);
		if (!st && n > text_n * 9 / 10)
			CU_ASSERT_DOUBLE_EQUAL(o.gpus[0].time.class_s[CLASS_GEMM], 600e-6, 101e-6);
		release(&set, &o);
	}
}

static void test_missing_fields(void)
{
	struct trace_set set;
	struct overlap o;
	known_steps(0, 75, 0);
	text_n -= strlen("\n],\n  \"traceName\": \"t.json\"\n}\n");
	add(",\n{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"no time\", \"dur\": 5, \"args\": {\"stream\": 7}}");
	add(",\n"
	    "{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"no duration\", \"ts\": %.3f, \"args\": {\"stream\": "
	    "7}}",
		BEGIN_US);
	add(",\n{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"null\", \"ts\": null, \"dur\": null, \"args\": null}");
	add(",\n{\"ph\": \"X\"},\n{},\n17,\n\"text\",\n[1, 2]");
	end();
	const char *file = save("missing.json", text_n);
	CU_ASSERT_EQUAL_FATAL(overlap_read(&file, 1, &set, &o), ST_OK);
	check_known(&o.gpus[0].time, 75);
	CU_ASSERT_EQUAL(o.events_left_out, 3);
	release(&set, &o);
}

/* Rank 1 takes 100 us longer: the other waits for it. Given in the wrong order. */
static void test_ranks(void)
{
	struct trace_set set;
	struct overlap o;
	char files[2][128];
	known_steps(1, 75, 100);
	strcpy(files[0], save("r1.json", text_n));
	known_steps(0, 75, 0);
	strcpy(files[1], save("r0.json", text_n));
	const char *names[] = {files[0], files[1]};
	CU_ASSERT_EQUAL_FATAL(overlap_read(names, 2, &set, &o), ST_OK);
	CU_ASSERT_EQUAL(o.gpus[0].gpu->rank, 0);
	CU_ASSERT_EQUAL(o.slowest, 1);
	NEAR(o.skew, 975.0 / 925 - 1);
	CU_ASSERT_STRING_EQUAL(o.top[0].name, GEMM);
	CU_ASSERT_EQUAL(o.top[0].calls, 12);
	NEAR(o.top[0].time_s, 3 * (600 + 700) * 1e-6);
	json_t *j = report_overlap_json(&o, NULL);
	CU_ASSERT_PTR_NOT_NULL_FATAL(j);
	CU_ASSERT_EQUAL(json_array_size(json_object_get(j, "results")), 2);
	NEAR(json_real_value(json_object_get(json_array_get(json_object_get(j, "results"), 1), "step_time_s")), 1.1e-3);
	json_decref(j);
	release(&set, &o);
}

/* Four kernels of 10 us. The second is launched 5 us after the first has ended: the device had run dry. The third was
 * launched early and waits for something else. */
static void test_launch_gaps(void)
{
	struct trace_set set;
	struct overlap o;
	begin(0);
	kernel("kernel", "elementwise_kernel", 0, 10, 7, -20);
	kernel("kernel", "elementwise_kernel", 30, 10, 7, 15);
	kernel("kernel", "elementwise_kernel", 60, 10, 7, 16);
	kernel("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 65, 15, 9, 17);
	kernel("kernel", "multi_tensor_apply_kernel<adam>", 80, 10, 7, 18);
	end();
	const char *file = save("gaps.json", text_n);
	CU_ASSERT_EQUAL_FATAL(overlap_read(&file, 1, &set, &o), ST_OK);
	const struct overlap_gpu *g = &o.gpus[0];
	CU_ASSERT_EQUAL(g->steps, 0);
	NEAR(g->time.step_s, 90e-6);
	NEAR(g->time.copy_s, 10e-6); /* the rest lies beside a kernel */
	NEAR(g->time.optimizer_s, 10e-6);
	NEAR(g->time.idle_s, 40e-6);
	CU_ASSERT_EQUAL(g->gaps, 2);
	CU_ASSERT_EQUAL(g->launch_gaps, 1);
	NEAR(g->launch_gap_s, 20e-6);
	CU_ASSERT_TRUE(isnan(g->time.overlap)); /* nothing communicated: no overlap of 100 % */
	json_t *j = report_overlap_json(&o, NULL);
	CU_ASSERT_TRUE(json_is_null(json_object_get(json_array_get(json_object_get(j, "results"), 0), "overlap")));
	json_decref(j);
	release(&set, &o);
}

static void test_names(void)
{
	static const struct {
		const char *name;
		enum op_class class_;
	} cases[] = {
		{NCCL, CLASS_ALL_REDUCE},
		{"ncclKernel_AllGather_RING_LL_Sum_int8_t(ncclWorkElem)", CLASS_ALL_GATHER},
		{"ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL", CLASS_REDUCE_SCATTER},
		{"ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", CLASS_SENDRECV},
		{"ncclDevKernel_Broadcast_RING_LL", CLASS_BROADCAST},
		{"rcclGenericKernel<1, false>", CLASS_SENDRECV},
		{"ncclDevKernel_Generic(ncclDevComm*)", CLASS_SENDRECV},
		{"void deep_ep::internode::dispatch<true>", CLASS_ALLTOALL},
		{"hybrid_ep::dispatch_kernel<x>", CLASS_ALLTOALL},
		{"hybrid_ep::combine_kernel<x>", CLASS_ALLTOALL},
		{"multimem_all_reduce_kernel", CLASS_ALL_REDUCE},
		{"ncclAllReduceRingLLKernel_sum_f32(ncclColl)", CLASS_ALL_REDUCE},
		{"ncclSymkDevKernel_AllReduce_RSxLD_AGxST_sum_bf16(ncclSymkDevWorkArgs4K)", CLASS_ALL_REDUCE},
		{"ncclDevKernel_AllGather_RING_PAT", CLASS_ALL_GATHER},
		{"ncclDevKernel_ReduceScatter_Sum_f32_COLLNET_DIRECT_SIMPLE", CLASS_REDUCE_SCATTER},
		{"void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>(vllm::RankData*)", CLASS_ALL_REDUCE},
		{"void userbuffers_fp16_sum_inplace_gpu_rr_rs_oop<8>(int, int)", CLASS_REDUCE_SCATTER},
		{"void userbuffers_fp16_sum_inplace_gpu_mc_ag<8>", CLASS_ALL_GATHER},
		{"kuserbuffers_pushrecv(int, int)", CLASS_SENDRECV},
		{"void tensorrt_llm::kernels::ar_fusion::allreduce_fusion_kernel_oneshot_lamport<8>", CLASS_ALL_REDUCE},
		{"__amd_rocclr_copyBuffer", CLASS_MEMORY},
		{"void ck_tile::kentry<ck_tile::FmhaFwdKernel>", CLASS_ATTENTION},
		{GEMM, CLASS_GEMM},
		{"nvjet_tst_128x256_64x4_1x2_h_bz_coopA_NTN", CLASS_GEMM},
		{"Cijk_Ailk_Bljk_BBS_BH_MT128x128x32", CLASS_GEMM},
		{FLASH, CLASS_ATTENTION},
		{"cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma", CLASS_ATTENTION},
		{"void at::native::(anonymous namespace)::cunn_SoftMaxForward<4, float>", CLASS_LOSS},
		{"void at::native::vectorized_layer_norm_kernel<float>", CLASS_NORM},
		{"void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor>", CLASS_ELEMENTWISE},
		{"void at::native::(anonymous namespace)::multi_tensor_apply_kernel<FusedAdamMathFunctor>",
			CLASS_OPTIMIZER},
		{"triton_red_fused_mul_3", CLASS_ELEMENTWISE},
		{"void at::native::unrolled_elementwise_kernel<at::native::gelu::{lambda()#1}, std::array<char*, 2ul>>",
			CLASS_ELEMENTWISE}, /* no LAMB */
		{"void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel_impl_nocast<BinaryFunctor>>",
			CLASS_ELEMENTWISE}, /* no cast */
		{"void multi_tensor_apply_kernel<LAMBStage1Functor<float>>", CLASS_OPTIMIZER},
		{"sm80_xmma_fprop_implicit_gemm_indexed_bf16f32", CLASS_CONVOLUTION},
		{"void cudnn::winograd_nonfused::winogradForwardData4x4<float, float>", CLASS_CONVOLUTION},
		{"void convolve_common_engine_float_NHWC<__half, __half, 128, 5>", CLASS_CONVOLUTION},
		{"void wgrad2d_grouped_direct_kernel<__half, float>", CLASS_CONVOLUTION},
		{"void at::native::(anonymous namespace)::conv_depthwise2d_forward_kernel<3, float>",
			CLASS_CONVOLUTION},
		{"miopenSp3AsmConv_v30_3_1_gfx9_fp32_f2x3_stride1", CLASS_CONVOLUTION},
		{"naive_conv_ab_nonpacked_wrw_nchw_half_double_half", CLASS_CONVOLUTION},
		{"void cudnn::ops::nchwToNhwcKernel<__half, __half, float>", CLASS_MEMORY},
		{"void cudnn::bn_fw_tr_1C11_kernel_NCHW<float, float, 512, true, 1>", CLASS_NORM},
		{"MIOpenBatchNormBwdSpatial", CLASS_NORM},
		{"void split_embedding_codegen_forward_unweighted_kernel<float>(fbgemm_gpu::FixedDivisor)",
			CLASS_EMBEDDING},
		{"void at::native::vectorized_gather_kernel<16, long>(char*, char*, long*, int)", CLASS_EMBEDDING},
		{"void at::native::(anonymous namespace)::compute_grad_weight<float, long>", CLASS_EMBEDDING},
		{"void at::native::(anonymous namespace)::sum_and_scatter<float, long>", CLASS_EMBEDDING},
		{"void transformer_engine::cast_transpose_fused_kernel<true>", CLASS_MEMORY},
		{"void scaled_upper_triang_masked_softmax_warp_forward<__half>", CLASS_ATTENTION},
	};
	for (size_t i = 0; i < COUNT(cases); i++)
		if (trace_kernel_class(cases[i].name) != cases[i].class_) {
			printf("\n%s: %s\n", cases[i].name, op_class_name(trace_kernel_class(cases[i].name)));
			CU_FAIL("a kernel's class");
		}
	CU_ASSERT_EQUAL(trace_copy_class("Memcpy HtoD (Pageable -> Device)"), CLASS_COPY);
	CU_ASSERT_EQUAL(trace_copy_class("Memcpy DtoD (Device -> Device)"), CLASS_MEMORY);
	CU_ASSERT_EQUAL(trace_copy_class("Memcpy PtoP (Device -> Device)"), CLASS_SENDRECV);
	CU_ASSERT_EQUAL(trace_copy_class("Memset (Device)"), CLASS_MEMORY);
	CU_ASSERT_EQUAL(trace_copy_class("CopyDeviceToDevice"), CLASS_MEMORY);
	CU_ASSERT_EQUAL(trace_copy_class("CopyHostToDevice"), CLASS_COPY);
}

/* A launch's stream is a pointer in ROCm's traces, and its category is hip_runtime in some. */
static void test_rocm(void)
{
	struct trace_set set;
	struct overlap o;
	begin(0);
	add(",\n{\"ph\": \"X\", \"cat\": \"hip_runtime\", \"name\": \"hipLaunchKernel\", \"ts\": %.3f, \"dur\": 4, "
	    "\"args\": {\"cid\": 211, \"correlation\": \"3\", \"stream\": \"0x0\", \"device\": \"none\"}}",
		BEGIN_US - 7);
	add(",\n{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"Cijk_Ailk_Bljk_BBS_BH\", \"ts\": %.3f, \"dur\": 10, "
	    "\"args\": {\"device\": 2, \"stream\": \"0x7f0000000010\", \"correlation\": 3}}",
		BEGIN_US);
	end();
	const char *file = save("rocm.json", text_n);
	CU_ASSERT_EQUAL_FATAL(overlap_read(&file, 1, &set, &o), ST_OK);
	const struct traced *t = &o.gpus[0].gpu->work.at[0];
	CU_ASSERT_EQUAL(o.gpus[0].gpu->device, 2);
	CU_ASSERT_EQUAL(t->launch_ns, t->start_ns - 7000);
	CU_ASSERT_EQUAL(t->class_, CLASS_GEMM);
	release(&set, &o);

	/* RCCL has one kernel for all collectives; PyTorch says beside it which it is */
	begin(0);
	add(",\n{\"ph\": \"X\", \"cat\": \"kernel\", "
	    "\"name\": \"ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)\", "
	    "\"ts\": %.3f, \"dur\": 10, \"args\": {\"Collective name\": \"_allgather_base\", \"stream\": \"0x5\"}}",
		BEGIN_US);
	add(",\n{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"ncclDevKernel_Generic_4(x)\", "
	    "\"ts\": %.3f, \"dur\": 10}",
		BEGIN_US + 20);
	end();
	file = save("rccl.json", text_n);
	CU_ASSERT_EQUAL_FATAL(overlap_read(&file, 1, &set, &o), ST_OK);
	CU_ASSERT_EQUAL(o.gpus[0].gpu->work.at[0].class_, CLASS_ALL_GATHER);
	CU_ASSERT_EQUAL(o.gpus[0].gpu->work.at[1].class_, CLASS_SENDRECV);
	release(&set, &o);
}

static void test_refused(void)
{
	static const struct {
		const char *text, *reason;
	} cases[] = {
		{"", "neither a Chrome trace"},
		{"hello", "neither a Chrome trace"},
		{"{\"a\": 1}", "neither a Chrome trace"},
		{"{\"traceEvents\": []}", "no kernel of a GPU"},
		{"[]", "no kernel of a GPU"},
		{"{\"traceEvents\": [{\"ph\" \"X\"}]}", "byte 23: ':' was expected"},
		{"{\"traceEvents\": [{\"ph\": \"X\"} {}]}", "',' or ']' was expected"},
		{"SQLite format 3", "file is not a database"},
		{"{\"traceEvents\": [{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"a\", \"ts\": "
		 "99999999999999999999, \"dur\": 1}]}",
			"a number in range"},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct trace_set set;
		struct overlap o;
		text_n = 0;
		add("%s", cases[i].text);
		const char *file = save("bad.json", cases[i].text[0] == 'S' ? text_n + 1 : text_n);
		CU_ASSERT_EQUAL(overlap_read(&file, 1, &set, &o), ST_INPUT);
		if (!strstr(error.text, cases[i].reason)) {
			printf("\n%s: %s\n", cases[i].text, error.text);
			CU_FAIL("the reason");
		}
		release(&set, &o);
	}
	struct trace_set set;
	struct overlap o;
	const char *none = in_folder("there_is_none");
	CU_ASSERT_EQUAL(overlap_read(&none, 1, &set, &o), ST_INPUT);
	release(&set, &o);
}

static void remove_folder(void)
{
	static const char *const names[] = {"known.json", "known.json.gz", "cut.json", "missing.json", "r0.json",
		"r1.json", "gaps.json", "rocm.json", "rccl.json", "bad.json"};
	remove_files(names, COUNT(names));
}

UNIT_MAIN("overlap", {"0, 37.5 and 100 % of communication hidden", test_known}, {"gzip", test_gzip},
	{"files cut off", test_cut_off}, {"missing fields", test_missing_fields}, {"ranks", test_ranks},
	{"launch gaps", test_launch_gaps}, {"kernels' names", test_names}, {"ROCm", test_rocm},
	{"refused", test_refused}, {"nothing is left behind", remove_folder})
