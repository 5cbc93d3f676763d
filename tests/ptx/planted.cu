/* Kernels with a defect each, and one without: what the interpreter has to find (test_planted.sh). The line that it has
 * to name ends in a comment with the kernel's name.
 *
 * planted NAME runs one; it prints what CUDA's API answers. */
#include <cuda_runtime_api.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define THREADS 64
#define CELLS 256 /* floats of the arrays */

typedef void (*planted_kernel)(float *, int);
static __device__ __forceinline__ uint32_t shared_address(const void *p)
{
	return (uint32_t)__cvta_generic_to_shared(p);
}

static __device__ __forceinline__ void copy16(float *to, const float *from)
{
	asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(to)), "l"(from) : "memory");
}

static __device__ __forceinline__ void wait_copies(void) { asm volatile("cp.async.wait_all;" ::: "memory"); }

__device__ __noinline__ float half_of(float x) { return x * 0.5f; }

/* Of cells 0 to 63 each the sum of all 256, twice halved. */
__global__ void clean(float *x, int n)
{
	__shared__ float part[THREADS / 32];
	__shared__ float4 row[THREADS];
	const int t = (int)threadIdx.x;
	copy16((float *)&row[t], x + 4 * t);
	wait_copies();
	__syncthreads();
	const float4 v = row[THREADS - 1 - t];
	float sum = v.x + v.y + v.z + v.w;
	for (int d = 16; d > 0; d /= 2)
		sum += __shfl_xor_sync(0xffffffffu, sum, d);
	if (t % 32 == 0)
		part[t / 32] = sum;
	__syncthreads();
	if (t < n)
		x[t] = half_of(half_of(part[0] + part[1]));
}

__global__ void bounds_behind(float *x, int n) { x[threadIdx.x] += x[n - 40 + threadIdx.x]; /* bounds_behind */ }

__global__ void bounds_before(float *x, int n) { x[(int)threadIdx.x - n] = 1.0f; /* bounds_before */ }

__global__ void bounds_shared(float *x, int n)
{
	__shared__ float part[THREADS];
	part[threadIdx.x + n - CELLS + 1] = x[threadIdx.x]; /* bounds_shared */
	__syncthreads();
	x[threadIdx.x] = part[threadIdx.x ^ 1];
}

__global__ void bounds_local(float *x, int n)
{
	float own[4];
	for (int i = 0; i < n / 32; i++)
		own[(i + threadIdx.x) % 7] = x[i]; /* bounds_local */
	x[threadIdx.x] = own[threadIdx.x % 3];
}

__global__ void misaligned(float *x, int n)
{
	x[n - 1 - threadIdx.x] = *(float *)((char *)(x + threadIdx.x) + (threadIdx.x == 33)); /* misaligned */
}

__global__ void misaligned_vector(float *x, int n)
{
	const float4 v = *(float4 *)(x + n - CELLS + 2 * threadIdx.x); /* misaligned_vector */
	x[threadIdx.x] = v.x + v.w;
}

/* Which of the two comes too soon depends on the order of the warps. */
__global__ void race_read(float *x, int)
{
	__shared__ float part[THREADS];
	part[threadIdx.x] = 0.0f;
	__syncthreads();
	part[threadIdx.x] = x[threadIdx.x];               /* race_read */
	x[threadIdx.x] = part[THREADS - 1 - threadIdx.x]; /* race_read */
}

__global__ void race_write(float *x, int n)
{
	__shared__ float part[THREADS];
	part[threadIdx.x % (n / 8)] = x[threadIdx.x]; /* race_write */
	__syncthreads();
	x[threadIdx.x] = part[threadIdx.x % 32];
}

/* The barrier at the end of the loop is missing. */
__global__ void race_loop(float *x, int n)
{
	__shared__ float part[THREADS];
	for (int i = 0; i < n; i += THREADS) {
		part[threadIdx.x] = x[i + threadIdx.x]; /* race_loop */
		__syncthreads();
		x[i + threadIdx.x] = part[THREADS - 1 - threadIdx.x]; /* race_loop */
	}
}

__global__ void unwritten(float *x, int n)
{
	__shared__ float part[THREADS];
	if ((int)threadIdx.x < n - CELLS + 60)
		part[threadIdx.x] = x[threadIdx.x];
	__syncthreads();
	x[threadIdx.x] = part[THREADS - 1 - threadIdx.x]; /* unwritten */
}

__global__ void copy_early(float *x, int)
{
	__shared__ float4 row[THREADS];
	copy16((float *)&row[threadIdx.x], x + 4 * threadIdx.x);
	__syncthreads();
	x[threadIdx.x] = row[threadIdx.x].x; /* copy_early */
	wait_copies();
}

__global__ void copy_never(float *x, int n)
{
	__shared__ float4 row[THREADS];
	copy16((float *)&row[threadIdx.x], x + 4 * threadIdx.x); /* copy_never */
	if (n < 0)
		x[0] = row[n].x;
}

/* What one thread waits for, another may read only behind a barrier. */
__global__ void copy_race(float *x, int)
{
	__shared__ float4 row[THREADS];
	row[threadIdx.x].x = 0.0f;
	__syncthreads();
	copy16((float *)&row[threadIdx.x], x + 4 * threadIdx.x); /* copy_race */
	wait_copies();
	x[threadIdx.x] = row[THREADS - 1 - threadIdx.x].x; /* copy_race */
}

__global__ void barrier_branch(float *x, int n)
{
	if ((int)threadIdx.x % 32 < n - CELLS + 20)
		__syncthreads(); /* barrier_branch */
	else
		x[threadIdx.x] = 0.0f;
	__syncthreads();
}

__global__ void barrier_return(float *x, int n)
{
	if ((int)threadIdx.x >= n - CELLS + 50)
		return;
	x[threadIdx.x] = 0.0f;
	__syncthreads(); /* barrier_return */
}

__global__ void shuffle_branch(float *x, int)
{
	if (threadIdx.x % 32 < 16)
		x[threadIdx.x] = __shfl_xor_sync(0xffffffffu, x[threadIdx.x], 1); /* shuffle_branch */
}

__global__ void endless(float *x, int n)
{
	while (*(volatile float *)x != (float)n) /* endless */
		;
}

__global__ void unknown(float *x, int n)
{
	asm volatile("nanosleep.u32 %0;" ::"r"(n)); /* unknown */
	x[0] = 0.0f;
}

static const struct {
	const char *name;
	planted_kernel run;
} planted[] = {{"clean", clean}, {"bounds_behind", bounds_behind}, {"bounds_before", bounds_before},
	{"bounds_shared", bounds_shared}, {"bounds_local", bounds_local}, {"misaligned", misaligned},
	{"misaligned_vector", misaligned_vector}, {"race_read", race_read}, {"race_write", race_write},
	{"race_loop", race_loop}, {"unwritten", unwritten}, {"copy_early", copy_early}, {"copy_never", copy_never},
	{"copy_race", copy_race}, {"barrier_branch", barrier_branch}, {"barrier_return", barrier_return},
	{"shuffle_branch", shuffle_branch}, {"endless", endless}, {"unknown", unknown}};

int main(int argc, char **argv)
{
	float *x, host[CELLS];
	int n = CELLS;
	for (int i = 0; i < CELLS; i++)
		host[i] = (float)i;
	cudaMalloc((void **)&x, sizeof host);
	cudaMemcpy(x, host, sizeof host, cudaMemcpyHostToDevice);
	void *args[] = {&x, &n};
	for (const auto &p : planted)
		if (argc == 2 && !strcmp(p.name, argv[1]))
			cudaLaunchKernel((const void *)p.run, dim3(1), dim3(THREADS), args, 0, NULL);
	if (argc == 2 && !strcmp(argv[1], "refused")) /* more shared memory than a kernel may have unasked */
		cudaLaunchKernel((const void *)clean, dim3(1), dim3(THREADS), args, 64 << 10, NULL);
	cudaMemcpy(host, x, sizeof host, cudaMemcpyDeviceToHost);
	printf("%s, %g %g %g\n", cudaGetErrorString(cudaGetLastError()), host[0], host[63], host[64]);
	return 0;
}
