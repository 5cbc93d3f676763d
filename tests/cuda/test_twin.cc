/* Kernels on the host: indices, meetings of threads with one thread and with real ones, names, and what is refused. */
#include "exec/cuda/prim.cuh"

#include <sys/wait.h>

#include <vector>

#include "tests/unit/harness.h"

struct pair {
	const float *a;
	float *b;
};
template <class T> struct rows {
	T *at[2];
};

/* ---- kernels ---- */

__global__ void count_visits(int *visits, int64_t n)
{
	for (int64_t i = (int64_t)blockIdx.x * thread_count() + thread_rank(); i < n;
		i += (int64_t)gridDim.x * thread_count())
		visits[i]++;
}
TWIN(count_visits)

__global__ void visit_grid(int *visits)
{
	visits[(blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x] += thread_rank() == 0;
}
TWIN(visit_grid)

/* Sums of a row in each way: by block, and by warps that meet in shared memory. */
template <class T> __global__ void row_sums(const T *x, int cols, float *out)
{
	__shared__ float part[WARP];
	float sum = 0, largest = -INFINITY;
	for (int i = thread_rank(); i < cols; i += thread_count()) {
		sum += to_float(x[(int64_t)blockIdx.x * cols + i]);
		largest = fmaxf(largest, to_float(x[(int64_t)blockIdx.x * cols + i]));
	}
	float all = block_sum(sum), most = block_max(largest);
	float warp = warp_sum(sum), warp_most = warp_broadcast(warp_max(largest), lane_count() - 1);
	if (lane_rank() == 0)
		part[warp_rank()] = warp;
	block_sync();
	float again = 0;
	for (int w = 0; w < warp_count(); w++)
		again += part[w];
	if (thread_rank() == thread_count() - 1) {
		out[blockIdx.x * 4] = all;
		out[blockIdx.x * 4 + 1] = most;
		out[blockIdx.x * 4 + 2] = again;
		out[blockIdx.x * 4 + 3] = warp_most <= most;
	}
}
TWIN(row_sums<float>)
TWIN(row_sums<__nv_bfloat16>)

__global__ void from_lane(float *out) { out[thread_rank()] = warp_broadcast((float)thread_rank(), lane_count() / 2); }
TWIN(from_lane)

/* Each thread hands its number to its neighbour. */
template <bool MEET> __global__ void pass_on(float *out)
{
	__shared__ float slot[1024];
	for (int round = 0; round < 3; round++) {
		slot[thread_rank()] = (float)(thread_rank() + round);
		if (MEET)
			block_sync();
		out[thread_rank()] = slot[(thread_rank() + 1) % thread_count()];
		block_sync();
	}
}
TWIN(pass_on<true>)
TWIN(pass_on<false>)

__global__ void half_leaves(float *out)
{
	if (thread_rank() >= thread_count() / 2)
		return;
	block_sync();
	*out = 1;
}
TWIN(half_leaves)

__global__ void meets_elsewhere(float *out) { *out = thread_rank() == 3 ? warp_sum(1) : warp_max(1); }
TWIN(meets_elsewhere)

__global__ void beyond_lane(float *out) { *out = warp_broadcast(1, 5); }
TWIN(beyond_lane)

/* Shapes of arguments whose names host and device compiler shorten differently inside other names. */
template <class T, int N> __global__ void named(rows<T> r, const rows<T> *s, pair p, const pair *q, int64_t n)
{
	r.at[0][0] = from_float<T>((float)N + (s != NULL) + (q != NULL) + *p.a + (float)n);
}
TWIN(named<__nv_bfloat16, 3>)
static __global__ void local(float *x) { *x = 7; }
TWIN(local)
__global__ void nothing() {}
TWIN(nothing)

/* ---- what they do ---- */

static const int counts[] = {1, 32, 64, 256, 1024};

static void test_indices(void)
{
	for (int threads : counts)
		for (int64_t n : {(int64_t)0, (int64_t)1, (int64_t)31, (int64_t)33, (int64_t)1023, (int64_t)4097})
			for (bool real : {false, true}) {
				std::vector<int> visits((size_t)n + 1);
				twin_threads_real(real);
				LAUNCH(count_visits, 3, threads, NULL, visits.data(), n);
				for (int64_t i = 0; i < n; i++)
					CU_ASSERT_EQUAL_FATAL(visits[(size_t)i], 1);
				CU_ASSERT_EQUAL(visits[(size_t)n], 0);
			}
	std::vector<int> visits(24);
	LAUNCH(visit_grid, dim3(2, 3, 4), 64, NULL, visits.data());
	for (int v : visits)
		CU_ASSERT_EQUAL(v, 1);
}

static void test_reductions(void)
{
	for (int threads : counts)
		for (int cols : {1, 31, 33, 1023, 1025})
			for (bool real : {false, true}) {
				std::vector<float> x((size_t)cols * 2);
				float sum[2] = {}, out[8];
				for (int i = 0; i < cols * 2; i++)
					sum[i / cols] += x[(size_t)i] = (float)(i * 7 % 13) - 20;
				twin_threads_real(real);
				LAUNCH(row_sums<float>, 2, threads, NULL, x.data(), cols, out);
				for (int row = 0; row < 2; row++) {
					float most = -INFINITY;
					for (int i = 0; i < cols; i++)
						most = fmaxf(most, x[(size_t)(row * cols + i)]);
					CU_ASSERT_EQUAL(out[row * 4], sum[row]);
					CU_ASSERT_EQUAL(out[row * 4 + 1], most);
					CU_ASSERT_EQUAL(out[row * 4 + 2], sum[row]);
					CU_ASSERT_EQUAL(out[row * 4 + 3], 1);
				}
			}
}

static void test_lanes(void)
{
	float out[96];
	twin_threads_real(true);
	LAUNCH(from_lane, 1, 96, NULL, out);
	for (int i = 0; i < 96; i++)
		CU_ASSERT_EQUAL(out[i], (float)(i / 32 * 32 + 16));
	twin_threads_real(false);
	LAUNCH(from_lane, 1, 96, NULL, out);
	CU_ASSERT_EQUAL(out[0], 0);
}

/* A missing meeting shows as a wrong number. */
static void test_order(void)
{
	float good[64], bad[64];
	int wrong = 0;
	twin_threads_real(true);
	LAUNCH(pass_on<true>, 1, 64, NULL, good);
	LAUNCH(pass_on<false>, 1, 64, NULL, bad);
	for (int i = 0; i < 64; i++) {
		CU_ASSERT_EQUAL(good[i], (float)((i + 1) % 64 + 2));
		wrong += bad[i] != good[i];
	}
	CU_ASSERT(wrong > 0);
}

/* Runs f in a child: what it wrote to standard error is left in `text`, and it must have been aborted. */
template <class F> static void dies(F f, char text[512])
{
	int ends[2];
	CU_ASSERT_FATAL(pipe(ends) == 0);
	pid_t child = fork();
	if (child == 0) {
		dup2(ends[1], 2);
		f();
		_exit(0);
	}
	close(ends[1]);
	size_t n = 0;
	for (ssize_t got; n < 511 && (got = read(ends[0], text + n, 511 - n)) > 0;)
		n += (size_t)got;
	text[n] = 0;
	close(ends[0]);
	int status = 0;
	waitpid(child, &status, 0);
	CU_ASSERT(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

static void test_refused(void)
{
	char text[512];
	float out[1024];
	twin_threads_real(true);
	dies([&] { LAUNCH(half_leaves, 2, 64, NULL, out); }, text);
	CU_ASSERT_PTR_NOT_NULL(strstr(text,
		"twin: half_leaves(float*): block (0, 0, 0): thread 0 waits in block_sync, thread 32 has ended: all "
		"threads meet, or none\n"));
	dies([&] { LAUNCH(meets_elsewhere, 1, 64, NULL, out); }, text);
	CU_ASSERT_PTR_NOT_NULL(strstr(text,
		"twin: meets_elsewhere(float*): block (0, 0, 0): thread 0 waits in warp_max, thread 3 waits in "
		"warp_sum: all threads meet, or none\n"));
	dies([&] { LAUNCH(from_lane, 1, 48, NULL, out); }, text);
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "threads come in warps of 32"));
	dies([&] { LAUNCH(from_lane, 0, 32, NULL, out); }, text);
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "a grid of 1 or more blocks"));
	twin_threads_real(false);
	dies([&] { LAUNCH(beyond_lane, 1, 32, NULL, out); }, text);
	CU_ASSERT_PTR_NOT_NULL(strstr(text,
		"twin: beyond_lane(float*): block (0, 0, 0): warp_broadcast from a lane beyond lane_count(), which is "
		"1\n"));
}

/* By the names that nvcc registers them under. */
static void test_names(void)
{
	__nv_bfloat16 y;
	float a = 2, x = 0;
	rows<__nv_bfloat16> r = {{&y, NULL}};
	const rows<__nv_bfloat16> *s = &r;
	pair p = {&a, NULL};
	const pair *q = NULL;
	int64_t n = 10;
	void *args[] = {&r, &s, &p, &q, &n};
	twin_call *call = twin_find("_Z5namedI13__nv_bfloat16Li3EEv4rowsIT_EPKS3_4pairPKS6_l", args);
	CU_ASSERT_PTR_NOT_NULL_FATAL(call);
	n = 11; /* the arguments were copied */
	twin_run(call, dim3(1), 32, 0);
	CU_ASSERT_EQUAL(to_float(y), 16);
	delete call;
	float *px = &x;
	void *one[] = {&px};
	call = twin_find("_Z5localPf", one);
	CU_ASSERT_PTR_NOT_NULL_FATAL(call);
	twin_run(call, dim3(1), 32, 0);
	CU_ASSERT_EQUAL(x, 7);
	delete call;
	call = twin_find("_Z7nothingv", NULL);
	CU_ASSERT_PTR_NOT_NULL_FATAL(call);
	delete call;
	CU_ASSERT_PTR_NULL(twin_find("_Z5localPd", one));
	CU_ASSERT_PTR_NULL(twin_find("local", one));
}

UNIT_MAIN("twin", {"indices", test_indices}, {"reductions", test_reductions}, {"lanes", test_lanes},
	{"order", test_order}, {"refused", test_refused}, {"names", test_names})
