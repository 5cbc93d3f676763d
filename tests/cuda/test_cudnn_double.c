/* The double of cuDNN: a product times a number, beside sums by hand, and what it refuses. Runs on the doubles alone:
 * elsewhere it is skipped. */
#include <cuda_runtime_api.h>
#include <cudnn.h>
#include <dlfcn.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "tests/unit/harness.h"

enum { M = 3, N = 4, K = 2, MADE_MAX = 32 };
enum { A = 1, B, PRODUCT, FACTOR, OUT }; /* tensors' numbers */

static cudnnHandle_t handle;
static float *memory; /* of the device: A, B and out, each at a multiple of 256 bytes, then the workspace */
#define PART ((size_t)64)
#define WORKSPACE_AT (4 * PART)
static cudnnBackendDescriptor_t made[MADE_MAX];
static int n_made;

struct attribute {
	int name, type;
	int64_t n;
	const void *value;
};

static cudnnBackendDescriptor_t create(cudnnBackendDescriptorType_t type)
{
	CU_ASSERT_FATAL(n_made < MADE_MAX);
	CU_ASSERT_EQUAL_FATAL(cudnnBackendCreateDescriptor(type, &made[n_made]), CUDNN_STATUS_SUCCESS);
	return made[n_made++];
}

static cudnnStatus_t finalize(cudnnBackendDescriptor_t d, const struct attribute *set, size_t n)
{
	for (size_t i = 0; i < n; i++)
		CU_ASSERT_EQUAL(cudnnBackendSetAttribute(d, (cudnnBackendAttributeName_t)set[i].name,
					(cudnnBackendAttributeType_t)set[i].type, set[i].n, set[i].value),
			CUDNN_STATUS_SUCCESS);
	return cudnnBackendFinalize(d);
}
#define FINALIZE(d, ...) \
	finalize((d), (const struct attribute[]){__VA_ARGS__}, \
		sizeof((const struct attribute[]){__VA_ARGS__}) / sizeof(struct attribute))

static void forget(void)
{
	while (n_made > 0)
		CU_ASSERT_EQUAL(cudnnBackendDestroyDescriptor(made[--n_made]), CUDNN_STATUS_SUCCESS);
}

/* ---- the graph ---- */

static cudnnBackendDescriptor_t tensor(int64_t uid, int64_t rows, int64_t cols)
{
	const int64_t dim[] = {1, 1, rows, cols}, stride[] = {rows * cols, rows * cols, cols, 1}, alignment = 16;
	const cudnnDataType_t type = CUDNN_DATA_FLOAT;
	const bool is_virtual = uid == PRODUCT, by_value = uid == FACTOR;
	cudnnBackendDescriptor_t d = create(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
	CU_ASSERT_EQUAL(FINALIZE(d, {CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &uid},
				{CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type},
				{CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, dim},
				{CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, stride},
				{CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &alignment},
				{CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &is_virtual},
				{CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1, &by_value}),
		CUDNN_STATUS_SUCCESS);
	return d;
}

/* out = A B x factor; `depth` rows of B, K where it is right. */
static cudnnBackendDescriptor_t graph_of(int64_t depth)
{
	const cudnnDataType_t compute = CUDNN_DATA_FLOAT;
	const cudnnPointwiseMode_t mode = CUDNN_POINTWISE_MUL;
	cudnnBackendDescriptor_t a = tensor(A, M, K), b = tensor(B, depth, N), product = tensor(PRODUCT, M, N),
				 factor = tensor(FACTOR, 1, 1), out = tensor(OUT, M, N),
				 how = create(CUDNN_BACKEND_MATMUL_DESCRIPTOR),
				 how_scaled = create(CUDNN_BACKEND_POINTWISE_DESCRIPTOR),
				 ops[2] = {create(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR),
					 create(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR)},
				 graph = create(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
	CU_ASSERT_EQUAL(FINALIZE(how, {CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &compute}),
		CUDNN_STATUS_SUCCESS);
	CU_ASSERT_EQUAL(FINALIZE(how_scaled, {CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode},
				{CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &compute}),
		CUDNN_STATUS_SUCCESS);
	CU_ASSERT_EQUAL(FINALIZE(ops[0], {CUDNN_ATTR_OPERATION_MATMUL_DESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &how},
				{CUDNN_ATTR_OPERATION_MATMUL_ADESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &a},
				{CUDNN_ATTR_OPERATION_MATMUL_BDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &b},
				{CUDNN_ATTR_OPERATION_MATMUL_CDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &product}),
		CUDNN_STATUS_SUCCESS);
	CU_ASSERT_EQUAL(FINALIZE(ops[1],
				{CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
					&how_scaled},
				{CUDNN_ATTR_OPERATION_POINTWISE_XDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &product},
				{CUDNN_ATTR_OPERATION_POINTWISE_BDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &factor},
				{CUDNN_ATTR_OPERATION_POINTWISE_YDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &out}),
		CUDNN_STATUS_SUCCESS);
	CU_ASSERT_EQUAL(FINALIZE(graph, {CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 2, ops},
				{CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle}),
		CUDNN_STATUS_SUCCESS);
	return graph;
}

/* How many engines the heuristic names for the graph. */
static int64_t engines(cudnnBackendDescriptor_t graph, cudnnBackendDescriptor_t configs[2])
{
	const cudnnBackendHeurMode_t mode = CUDNN_HEUR_MODE_A;
	cudnnBackendDescriptor_t heuristic = create(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
	int64_t n = -1;
	CU_ASSERT_EQUAL(FINALIZE(heuristic,
				{CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &graph},
				{CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode}),
		CUDNN_STATUS_SUCCESS);
	for (int i = 0; i < 2; i++)
		configs[i] = create(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
	CU_ASSERT_EQUAL(cudnnBackendGetAttribute(heuristic, CUDNN_ATTR_ENGINEHEUR_RESULTS,
				CUDNN_TYPE_BACKEND_DESCRIPTOR, 2, &n, configs),
		CUDNN_STATUS_SUCCESS);
	return n;
}

static cudnnStatus_t plan_for(cudnnBackendDescriptor_t config, cudnnHandle_t whose, cudnnBackendDescriptor_t *plan)
{
	*plan = create(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
	return FINALIZE(*plan, {CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &whose},
		{CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &config});
}

static cudnnBackendDescriptor_t plan_of_graph(void)
{
	cudnnBackendDescriptor_t configs[2], plan;
	CU_ASSERT_EQUAL_FATAL(engines(graph_of(K), configs), 2);
	CU_ASSERT_EQUAL(plan_for(configs[0], handle, &plan), CUDNN_STATUS_NOT_SUPPORTED);
	CU_ASSERT_EQUAL_FATAL(plan_for(configs[1], handle, &plan), CUDNN_STATUS_SUCCESS);
	return plan;
}

/* ---- execution ---- */

struct pack {
	int64_t ids[6];
	void *at[6];
	int64_t n;
	void *workspace;
};

static struct pack pack_right(float *factor)
{
	return (struct pack){{A, B, FACTOR, OUT}, {memory, memory + PART, factor, memory + 2 * PART}, 4,
		memory + WORKSPACE_AT};
}

static cudnnStatus_t execute(cudnnBackendDescriptor_t plan, struct pack p)
{
	cudnnBackendDescriptor_t pack = create(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
	CU_ASSERT_EQUAL(FINALIZE(pack, {CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, p.n, p.ids},
				{CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, p.n, p.at},
				{CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &p.workspace}),
		CUDNN_STATUS_SUCCESS);
	return cudnnBackendExecute(handle, plan, pack);
}

static void test_executes(void)
{
	const float a[M * K] = {1, 2, 3, 4, 5, 6}, b[K * N] = {1, 0, 2, 1, 0, 1, 1, -1},
			  want[M * N] = {0.5f, 1, 2, -0.5f, 1.5f, 2, 5, -0.5f, 2.5f, 3, 8, -0.5f};
	float factor = 0.5f, got[M * N];
	cudnnBackendDescriptor_t plan = plan_of_graph();
	cudaMemcpy(memory, a, sizeof a, cudaMemcpyHostToDevice);
	cudaMemcpy(memory + PART, b, sizeof b, cudaMemcpyHostToDevice);
	CU_ASSERT_EQUAL(execute(plan, pack_right(&factor)), CUDNN_STATUS_SUCCESS);
	factor = 100; /* too late: values are those of the call */
	CU_ASSERT_EQUAL(cudaDeviceSynchronize(), cudaSuccess);
	cudaMemcpy(got, memory + 2 * PART, sizeof got, cudaMemcpyDeviceToHost);
	for (int i = 0; i < M * N; i++)
		CU_ASSERT_DOUBLE_EQUAL(got[i], want[i], 0);
	cudaMemcpy(got, memory + WORKSPACE_AT, 4, cudaMemcpyDeviceToHost);
	CU_ASSERT(isnan(got[0]));
	forget();
}

static void test_packs(void)
{
	float factor = 0.5f, infinite = -INFINITY, more[64];
	cudnnBackendDescriptor_t plan = plan_of_graph();
	struct pack wrong[9];
	for (size_t i = 0; i < COUNT(wrong); i++)
		wrong[i] = pack_right(&factor);
	wrong[0].n = 3;                                     /* out is missing */
	wrong[1].ids[4] = A, wrong[1].at[4] = memory;       /* twice */
	wrong[2].ids[4] = PRODUCT, wrong[2].at[4] = memory; /* virtual */
	wrong[1].n = wrong[2].n = 5;
	wrong[3].at[0] = (char *)memory + 8; /* not aligned */
	wrong[4].at[1] = NULL;
	wrong[5].at[3] = memory + WORKSPACE_AT;         /* the plan's own */
	wrong[6].workspace = memory + WORKSPACE_AT + 4; /* not aligned */
	wrong[7].workspace = NULL;
	wrong[8].at[0] = more; /* of the host */
	for (size_t i = 0; i < COUNT(wrong); i++) {
		CU_ASSERT_EQUAL(execute(plan, wrong[i]), CUDNN_STATUS_BAD_PARAM);
	}
	CU_ASSERT_EQUAL(execute(plan, pack_right(&infinite)), CUDNN_STATUS_SUCCESS);
	setenv("STEPSIM_DOUBLE_CUDNN", "90900", 1);
	CU_ASSERT_EQUAL(cudnnGetVersion(), 90900);
	CU_ASSERT_EQUAL(execute(plan, pack_right(&infinite)), CUDNN_STATUS_BAD_PARAM);
	unsetenv("STEPSIM_DOUBLE_CUDNN");
	CU_ASSERT_EQUAL(cudaDeviceSynchronize(), cudaSuccess);
	forget();
}

static void test_graphs(void)
{
	cudnnBackendDescriptor_t configs[2], plan;
	cudnnHandle_t other;
	CU_ASSERT_EQUAL(engines(graph_of(K + 1), configs), 0); /* A's columns are not B's rows */
	forget();
	setenv("STEPSIM_DOUBLE_FAULT", "no_engine", 1);
	CU_ASSERT_EQUAL(engines(graph_of(K), configs), 0);
	unsetenv("STEPSIM_DOUBLE_FAULT");
	forget();
	CU_ASSERT_EQUAL(engines(graph_of(K), configs), 2);
	CU_ASSERT_EQUAL(cudnnCreate(&other), CUDNN_STATUS_SUCCESS);
	CU_ASSERT_EQUAL(plan_for(configs[1], other, &plan), CUDNN_STATUS_BAD_PARAM);
	CU_ASSERT_EQUAL(cudnnDestroy(other), CUDNN_STATUS_SUCCESS);
	CU_ASSERT_EQUAL(cudnnDestroy(other), CUDNN_STATUS_BAD_PARAM);
	plan = create(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
	CU_ASSERT_NOT_EQUAL(cudnnBackendFinalize(plan), CUDNN_STATUS_SUCCESS);
	forget();
	CU_ASSERT_EQUAL(cudnnBackendDestroyDescriptor(plan), CUDNN_STATUS_BAD_PARAM);
}

int main(void)
{
	static const struct unit_test all[] = {{"executes", test_executes}, {"packs", test_packs},
		{"graphs", test_graphs}};
	if (!dlsym(RTLD_DEFAULT, "stepsim_double")) {
		printf("test_cudnn_double: skipped: the libraries are no doubles\n");
		return 0;
	}
	if (cudnnCreate(&handle) != CUDNN_STATUS_SUCCESS ||
		cudaMalloc((void **)&memory, (WORKSPACE_AT + PART) * sizeof *memory) != cudaSuccess)
		return 1;
	return unit_main("cudnn double", all, COUNT(all));
}
