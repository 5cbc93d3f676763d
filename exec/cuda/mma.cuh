/* Tile primitives for Tensor Cores, in the manner of prim.cuh: a body for the device, one for the host.
 *
 * A warp holds tiles as fragments, spread over its lanes as PTX's mma.m16n8k16 has them (PTX ISA, "Matrix Fragments for
 * mma.m16n8k16"); with g = lane / 4 and t = lane % 4: frag_a  16 x 16, pair p:  row g + 8 (p % 2), columns 2 t + 8 (p /
 * 2) and the next frag_b  16 x 8 (k x n), pair p:  k 2 t + 8 p and the next, column n = g frag_c  16 x 8, fp32, value
 * r:  row g + 8 (r / 2), column 2 t + r % 2 bf16 and fp16 take the Tensor Cores; for fp32 lanes exchange what they hold
 * and multiply by FMA: the same fragments, so that a kernel has one text for all formats. A thread holds the fragments
 * of `held()` lanes: its own on the device, all of a warp's where a block has one thread. What a fragment holds is
 * reached by FOR_HELD(h), lane lane_of(h). ldmatrix4, mma, quad_max and quad_sum are meetings of the warp.
 */
#ifndef STEPSIM_EXEC_CUDA_MMA_CUH
#define STEPSIM_EXEC_CUDA_MMA_CUH

#include "exec/cuda/dispatch.cuh"

#ifdef STEPSIM_TWIN
#include <memory>
#define UNROLL
#define HELD_MAX WARP
static inline int held(void) { return WARP / lane_count(); }
#else
#define UNROLL _Pragma("unroll")
#define HELD_MAX 1
static __device__ __forceinline__ constexpr int held(void) { return 1; }
#endif
#define FOR_HELD(h) UNROLL for (int h = 0; h < held(); h++)

static __device__ __forceinline__ int lane_of(int h) { return lane_rank() + h; }

template <class T> struct alignas(2 * sizeof(T)) pair_of {
	T at[2];
};
template <class T> struct frag_a {
	pair_of<T> v[HELD_MAX][4];
};
template <class T> struct frag_b {
	pair_of<T> v[HELD_MAX][2];
};
struct frag_c {
	float v[HELD_MAX][4];
};

static __device__ __forceinline__ int c_row(int lane, int r) { return lane / 4 + r / 2 * 8; }
static __device__ __forceinline__ int c_col(int lane, int r) { return lane % 4 * 2 + r % 2; }

#ifdef STEPSIM_TWIN

/* ---- the host's bodies: what lanes exchange goes through memory of the warp ---- */

struct mma_exchange {
	float a[16][16], b[16][8], lane[WARP];
	const void *row[WARP];
};

static inline mma_exchange *exchange_of_warp(void)
{
	static thread_local mma_exchange all[32];
	return &all[warp_rank()];
}

static inline void warp_meet(void) { warp_max(0.0f); }

template <bool TRANS, class T> static void ldmatrix4(pair_of<T> out[HELD_MAX][4], const T *const at[HELD_MAX])
{
	mma_exchange *w = exchange_of_warp();
	FOR_HELD(h)
	w->row[lane_of(h)] = at[h];
	warp_meet();
	FOR_HELD(h)
	for (int m = 0; m < 4; m++)
		for (int i = 0; i < 2; i++) {
			int g = lane_of(h) / 4, t = lane_of(h) % 4 * 2 + i;
			out[h][m].at[i] = ((const T *)w->row[8 * m + (TRANS ? t : g)])[TRANS ? g : t];
		}
	warp_meet();
}

template <class T> static void mma(frag_c &c, const frag_a<T> &a, const frag_b<T> &b)
{
	mma_exchange *w = exchange_of_warp();
	FOR_HELD(h)
	for (int i = 0; i < 2; i++) {
		int g = lane_of(h) / 4, t = lane_of(h) % 4 * 2 + i;
		for (int p = 0; p < 4; p++)
			w->a[g + p % 2 * 8][t + p / 2 * 8] = to_float(a.v[h][p].at[i]);
		for (int p = 0; p < 2; p++)
			w->b[t + p * 8][g] = to_float(b.v[h][p].at[i]);
	}
	warp_meet();
	FOR_HELD(h)
	for (int r = 0; r < 4; r++)
		for (int k = 0; k < 16; k++)
			c.v[h][r] += w->a[c_row(lane_of(h), r)][k] * w->b[k][c_col(lane_of(h), r)];
	warp_meet();
}

template <bool MAX> static inline void quad_reduce(float x[HELD_MAX])
{
	mma_exchange *w = exchange_of_warp();
	FOR_HELD(h)
	w->lane[lane_of(h)] = x[h];
	warp_meet();
	FOR_HELD(h)
	{
		const float *q = &w->lane[lane_of(h) & ~3];
		x[h] = MAX ? fmaxf(fmaxf(q[0], q[1]), fmaxf(q[2], q[3])) : (q[0] + q[1]) + (q[2] + q[3]);
	}
	warp_meet();
}

static inline float exp2_fast(float x) { return exp2f(x); }

static inline void copy16(void *to, const void *from) { memcpy(to, from, 16); }
static inline void copies_wait(void) {}

/* Exactly as many bytes as the kernel says, so that what lies beyond is found out; no more than the launch gave. All
 * threads of a block are contexts of one thread of the process. */
static inline void *dynamic_shared(size_t bytes)
{
	if (bytes > twin_now.shared_B)
		twin_refuse("it uses more dynamic shared memory than the launch gave it");
	static thread_local std::unique_ptr<unsigned char[]> at;
	static thread_local size_t now_B;
	if (now_B != bytes) {
		at.reset(new unsigned char[bytes]);
		memset(at.get(), 0xff, bytes); /* not a number, in every format */
		now_B = bytes;
	}
	return at.get();
}

#else

/* ---- the device's ---- */

static __device__ __forceinline__ uint32_t shared_address(const void *p)
{
	return (uint32_t)__cvta_generic_to_shared(p);
}

/* Four 8 x 8 matrices: lane 8 m + i names row i of matrix m; pair m is, of matrix m, row g, columns 2 t and the next;
 * TRANS: of its transpose. */
template <bool TRANS, class T>
static __device__ __forceinline__ void ldmatrix4(pair_of<T> out[1][4], const T *const at[1])
{
	static_assert(sizeof(T) == 2, "");
	uint32_t *r = (uint32_t *)out[0];
	if (TRANS)
		asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
			     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
			     : "r"(shared_address(at[0]))
			     : "memory");
	else
		asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
			     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
			     : "r"(shared_address(at[0]))
			     : "memory");
}

template <bool TRANS>
static __device__ __forceinline__ void ldmatrix4(pair_of<float> out[1][4], const float *const at[1])
{
	const int g = lane_rank() / 4, t = lane_rank() % 4 * 2;
	UNROLL for (int m = 0; m < 4; m++) UNROLL for (int i = 0; i < 2; i++)
	{
		const float *row = (const float *)__shfl_sync(0xffffffffu, (unsigned long long)at[0],
			8 * m + (TRANS ? t + i : g));
		out[0][m].at[i] = row[TRANS ? g : t + i];
	}
}

#define MMA_OF(type, name) \
	static __device__ __forceinline__ void mma(frag_c &c, const frag_a<type> &a, const frag_b<type> &b) \
	{ \
		const uint32_t *x = (const uint32_t *)a.v[0], *y = (const uint32_t *)b.v[0]; \
		float *z = c.v[0]; \
		asm("mma.sync.aligned.m16n8k16.row.col.f32." name "." name \
		    ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
			: "+f"(z[0]), "+f"(z[1]), "+f"(z[2]), "+f"(z[3]) \
			: "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1])); \
	}
MMA_OF(__nv_bfloat16, "bf16")
MMA_OF(__half, "f16")

struct float8 {
	float at[8];
};

/* Not inlined, and all of it in registers: a kernel has hundreds of these. */
static __device__ __noinline__ float4 mma_fp32(float4 c, float8 a, float4 b)
{
	const int lane = lane_rank(), t = lane % 4;
	const float held_b[4] = {b.x, b.y, b.z, b.w};
	float z[4] = {c.x, c.y, c.z, c.w};
	UNROLL for (int k = 0; k < 16; k++)
	{
		const int owner = k % 8 / 2;
		float x[2], y[2];
		UNROLL for (int i = 0; i < 2; i++)
		{
			x[i] = __shfl_sync(0xffffffffu, a.at[(k / 8 * 2 + i) * 2 + k % 2], (lane & ~3) + owner);
			y[i] = __shfl_sync(0xffffffffu, held_b[k / 8 * 2 + k % 2], (2 * t + i) * 4 + owner);
		}
		UNROLL for (int r = 0; r < 4; r++) z[r] += x[r / 2] * y[r % 2];
	}
	return make_float4(z[0], z[1], z[2], z[3]);
}

static __device__ __forceinline__ void mma(frag_c &c, const frag_a<float> &a, const frag_b<float> &b)
{
	float *z = c.v[0];
	float8 x;
	UNROLL for (int i = 0; i < 8; i++) x.at[i] = a.v[0][i / 2].at[i % 2];
	const float4 sum = mma_fp32(make_float4(z[0], z[1], z[2], z[3]), x,
		make_float4(b.v[0][0].at[0], b.v[0][0].at[1], b.v[0][1].at[0], b.v[0][1].at[1]));
	z[0] = sum.x;
	z[1] = sum.y;
	z[2] = sum.z;
	z[3] = sum.w;
}

template <bool MAX> static __device__ __forceinline__ void quad_reduce(float x[1])
{
	UNROLL for (int d = 1; d < 4; d *= 2)
	{
		float y = __shfl_xor_sync(0xffffffffu, x[0], d);
		x[0] = MAX ? fmaxf(x[0], y) : x[0] + y;
	}
}

static __device__ __forceinline__ float exp2_fast(float x)
{
	float y;
	asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
	return y;
}

/* 16 bytes from global to shared memory, beside what the thread does; copies_wait: this thread's have arrived. */
static __device__ __forceinline__ void copy16(void *to, const void *from)
{
	asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(to)), "l"(from) : "memory");
}
static __device__ __forceinline__ void copies_wait(void) { asm volatile("cp.async.wait_all;" ::: "memory"); }

static __device__ __forceinline__ void *dynamic_shared(size_t)
{
	extern __shared__ uint4 dynamic_shared_memory[];
	return dynamic_shared_memory;
}

#endif

/* ---- the same on both ---- */

/* Over the four lanes that hold a row of frag_c. */
static __device__ __forceinline__ void quad_max(float x[HELD_MAX]) { quad_reduce<true>(x); }
static __device__ __forceinline__ void quad_sum(float x[HELD_MAX]) { quad_reduce<false>(x); }

static __device__ __forceinline__ void clear(frag_c &c)
{
	FOR_HELD(h)
	UNROLL for (int r = 0; r < 4; r++) c.v[h][r] = 0.0f;
}

/* Values from one row of a tile in shared memory to the next: 16 bytes more than `cols`, so that the rows of ldmatrix4
 * lie in different banks (cols: a multiple of 32). */
template <class T> __host__ __device__ constexpr int tile_stride(int cols) { return cols + 16 / (int)sizeof(T); }

/* The 16 x 16 tile at `tile` (rows LD values apart) as A. */
template <int LD, class T> static __device__ __forceinline__ void load_a(frag_a<T> &a, const T *tile)
{
	const T *at[HELD_MAX];
	FOR_HELD(h)
	at[h] = tile + lane_of(h) % 16 * LD + lane_of(h) / 16 * 8;
	ldmatrix4<false>(a.v, at);
}

/* 16 (k) x 16 (n) as two B side by side: TRANS: memory holds it as [k][n]; else as [n][k]. */
template <int LD, bool TRANS, class T> static __device__ __forceinline__ void load_b(frag_b<T> b[2], const T *tile)
{
	const T *at[HELD_MAX];
	FOR_HELD(h)
	{
		const int i = lane_of(h) % 8, m = lane_of(h) / 8;
		at[h] = tile + (TRANS ? (i + m % 2 * 8) * LD + m / 2 * 8 : (i + m / 2 * 8) * LD + m % 2 * 8);
	}
	pair_of<T> x[HELD_MAX][4];
	ldmatrix4<TRANS>(x, at);
	FOR_HELD(h)
	UNROLL for (int m = 0; m < 4; m++) b[m / 2].v[h][m % 2] = x[h][m];
}

/* Two C side by side, rounded, as the A of a further product. */
template <class T> static __device__ __forceinline__ void a_from_c(frag_a<T> &a, const frag_c c[2])
{
	FOR_HELD(h)
	UNROLL for (int p = 0; p < 4; p++) UNROLL for (int i = 0; i < 2; i++) a.v[h][p].at[i] = from_float<T>(
		c[p / 2].v[h][p % 2 * 2 + i]);
}

/* c[N / 8] += A [16 x K] of the tile `a` times the transpose of the tile `b`, [N x K]. */
template <int LD, int N, int K, class T>
static __device__ __forceinline__ void multiply_nt(frag_c c[N / 8], const T *a, const T *b)
{
	UNROLL for (int k = 0; k < K; k += 16)
	{
		frag_a<T> x;
		load_a<LD>(x, a + k);
		UNROLL for (int n = 0; n < N; n += 16)
		{
			frag_b<T> y[2];
			load_b<LD, false>(y, b + n * LD + k);
			mma(c[n / 8], x, y[0]);
			mma(c[n / 8 + 1], x, y[1]);
		}
	}
}

/* c[N / 8] += A [16 x K], held as a[K / 8] and rounded to T, times the tile `b`, [K x N]. */
template <int LD, int N, int K, class T>
static __device__ __forceinline__ void multiply_held(frag_c c[N / 8], const frag_c a[K / 8], const T *b)
{
	UNROLL for (int k = 0; k < K; k += 16)
	{
		frag_a<T> x;
		a_from_c(x, a + k / 8);
		UNROLL for (int n = 0; n < N; n += 16)
		{
			frag_b<T> y[2];
			load_b<LD, true>(y, b + k * LD + n);
			mma(c[n / 8], x, y[0]);
			mma(c[n / 8 + 1], x, y[1]);
		}
	}
}

/* Rows [0, rows) x COLS of a tile from global memory, whole block; rows from `valid` on, and columns from `cols` on,
 * become zeros. vec: rows begin at multiples of 16 bytes and `cols` is whole vectors. There after copies_wait and
 * block_sync. */
template <int COLS, class T>
static __device__ __forceinline__ void load_tile(T *tile, int rows, const T *from, int64_t stride, int valid, int cols,
	bool vec)
{
	constexpr int N = vec_of<T>::N, LD = tile_stride<T>(COLS);
	for (int i = thread_rank(); i < rows * (COLS / N); i += thread_count()) {
		const int r = i / (COLS / N), c = i % (COLS / N) * N;
		T *to = tile + r * LD + c;
		const T *at = from + r * stride + c;
		if (vec && r < valid && c < cols) {
			copy16(to, at);
			continue;
		}
		for (int j = 0; j < N; j++)
			to[j] = r < valid && c + j < cols ? at[j] : from_float<T>(0.0f);
	}
}

/* The warp's 16 x COLS values times `factor` (by row) to global memory, at most `valid` rows and `cols` columns; vec as
 * in load_tile. */
template <int COLS, class T, class F>
static __device__ __forceinline__ void store_rows(T *to, int64_t stride, int valid, int cols, bool vec,
	const frag_c c[COLS / 8], F factor)
{
	FOR_HELD(h)
	UNROLL for (int half = 0; half < 2; half++)
	{
		const int row = c_row(lane_of(h), 2 * half);
		if (row >= valid)
			continue;
		const float f = factor(h, half);
		UNROLL for (int n = 0; n < COLS / 8; n++)
		{
			const int col = 8 * n + c_col(lane_of(h), 0);
			T *at = to + row * stride + col;
			const pair_of<T> x = {
				{from_float<T>(c[n].v[h][2 * half] * f), from_float<T>(c[n].v[h][2 * half + 1] * f)}};
			if (vec && col < cols) {
				*(pair_of<T> *)at = x;
				continue;
			}
			for (int i = 0; i < 2; i++)
				if (col + i < cols)
					at[i] = x.at[i];
		}
	}
}

/* Dynamic shared memory that a block can have on the current device. */
static inline enum status block_shared_B(size_t *bytes, struct error *e)
{
#ifdef STEPSIM_TWIN
	(void)e;
	*bytes = twin_shared_limit();
	return ST_OK;
#else
	int device = 0, value = 0;
	cudaError_t code = cudaGetDevice(&device);
	if (code == cudaSuccess)
		code = cudaDeviceGetAttribute(&value, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
	*bytes = (size_t)value;
	return launch_status(code, e);
#endif
}

/* The most warps, up to `most`, with which a block's dynamic shared memory, shared_of(warps) bytes, fits the device;
 * ST_RUN where that of a single warp does not. */
template <class F> static enum status warps_that_fit(int most, F shared_of, int *warps, struct error *e)
{
	size_t device_B = 0;
	enum status st = block_shared_B(&device_B, e);
	if (st)
		return st;
	for (*warps = most; *warps > 0; --*warps)
		if (shared_of(*warps) <= device_B)
			return ST_OK;
	return error_set(e, ST_RUN, "a block needs %zu bytes of shared memory, this GPU offers %zu", shared_of(1),
		device_B);
}

/* As `start`, with so much dynamic shared memory a block; `grid` blocks or as many as a launch can have: the kernel
 * goes on to items beyond them. */
template <auto K, class... A>
static enum status start_shared(cudaStream_t stream, int64_t grid, int threads, size_t shared_B, struct error *e,
	A... args)
{
	TWIN_OF(K);
	if (grid < 1)
		return ST_OK;
	const dim3 blocks((unsigned)(grid < INT32_MAX ? grid : INT32_MAX));
#ifdef STEPSIM_TWIN
	(void)stream;
	twin_launch(K, blocks, threads, shared_B, args...);
#else
	cudaError_t code = cudaFuncSetAttribute((const void *)K, cudaFuncAttributeMaxDynamicSharedMemorySize,
		(int)shared_B);
	if (code != cudaSuccess)
		return launch_status(code, e);
	K<<<blocks, threads, shared_B, stream>>>(args...);
#endif
	return LAUNCHED(e);
}

#endif
