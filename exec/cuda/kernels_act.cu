/* Activations, gated or not, and their gradients. */
#include "exec/cuda/map.cuh"

/* gelu, tanh form: x/2 (1 + tanh u) with u = sqrt(2/pi) (x + 0.044715 x^3), which is x sigmoid(2 u). */
#define GELU_2A 1.5957691216f  /* 2 sqrt(2/pi) */
#define GELU_2AC 0.0713548163f /* 2 sqrt(2/pi) 0.044715 */

enum act_shape { ACT_GELU, ACT_RELU, ACT_SQUARED_RELU, ACT_SILU };

/* Value and slope at x; what a caller does not use costs nothing. */
template <act_shape S> static __device__ __forceinline__ void act_at(float x, float *value, float *slope)
{
	if (S == ACT_RELU || S == ACT_SQUARED_RELU) {
		const float positive = x > 0.0f ? x : 0.0f;
		*value = S == ACT_RELU ? positive : positive * positive;
		*slope = S == ACT_RELU ? (x > 0.0f ? 1.0f : 0.0f) : 2.0f * positive;
		return;
	}
	const float p = fast_sigmoid(S == ACT_GELU ? x * (GELU_2A + GELU_2AC * x * x) : x);
	*value = x * p;
	*slope = p + x * p * (1.0f - p) * (S == ACT_GELU ? GELU_2A + 3.0f * GELU_2AC * x * x : 1.0f);
}

template <act_shape S, class A, int V> struct act_map {
	const A *x;
	A *y;
	struct item {
		vec<A, V> x;
	};

	__device__ __forceinline__ item read(int64_t i) const { return item{vec_at<A, V>(x + i * V)}; }
	__device__ __forceinline__ void write(int64_t i, const item &in) const
	{
		float f[V], slope;
		unpack_vec<A, V>(in.x, f);
		UNROLL
		for (int v = 0; v < V; v++)
			act_at<S>(f[v], &f[v], &slope);
		store_vec<A, V>(y + i * V, f);
	}
};

template <act_shape S, class A, int V> struct act_grad_map {
	const A *x, *dy;
	A *dx;
	struct item {
		vec<A, V> x, dy;
	};

	__device__ __forceinline__ item read(int64_t i) const
	{
		return item{vec_at<A, V>(x + i * V), vec_at<A, V>(dy + i * V)};
	}
	__device__ __forceinline__ void write(int64_t i, const item &in) const
	{
		float f[V], d[V], value, slope;
		unpack_vec<A, V>(in.x, f);
		unpack_vec<A, V>(in.dy, d);
		UNROLL
		for (int v = 0; v < V; v++) {
			act_at<S>(f[v], &value, &slope);
			d[v] *= slope;
		}
		store_vec<A, V>(dx + i * V, d);
	}
};

/* Where the gate of vector i of y stands in x [T, 2 f]; its up value stands f behind. */
template <int V> static __device__ __forceinline__ int64_t gate_place(int64_t i, int64_t width)
{
	int64_t column;
	const int64_t row = divide(i, width, &column);
	return (row * 2 * width + column) * V;
}

/* y = act(gate) x up */
template <act_shape S, class A, int V> struct gated_map {
	const A *x;
	A *y;
	int64_t width; /* vectors in a row of y */
	struct item {
		vec<A, V> gate, up;
	};

	__device__ __forceinline__ item read(int64_t i) const
	{
		const A *at = x + gate_place<V>(i, width);
		return item{vec_at<A, V>(at), vec_at<A, V>(at + width * V)};
	}
	__device__ __forceinline__ void write(int64_t i, const item &in) const
	{
		float gate[V], up[V], value, slope;
		unpack_vec<A, V>(in.gate, gate);
		unpack_vec<A, V>(in.up, up);
		UNROLL
		for (int v = 0; v < V; v++) {
			act_at<S>(gate[v], &value, &slope);
			up[v] *= value;
		}
		store_vec<A, V>(y + i * V, up);
	}
};

template <act_shape S, class A, int V> struct gated_grad_map {
	const A *x, *dy;
	A *dx;
	int64_t width;
	struct item {
		vec<A, V> gate, up, dy;
	};

	__device__ __forceinline__ item read(int64_t i) const
	{
		const A *at = x + gate_place<V>(i, width);
		return item{vec_at<A, V>(at), vec_at<A, V>(at + width * V), vec_at<A, V>(dy + i * V)};
	}
	__device__ __forceinline__ void write(int64_t i, const item &in) const
	{
		float gate[V], up[V], d[V], value, slope;
		unpack_vec<A, V>(in.gate, gate);
		unpack_vec<A, V>(in.up, up);
		unpack_vec<A, V>(in.dy, d);
		UNROLL
		for (int v = 0; v < V; v++) {
			act_at<S>(gate[v], &value, &slope);
			gate[v] = d[v] * up[v] * slope;
			up[v] = d[v] * value;
		}
		A *to = dx + gate_place<V>(i, width);
		store_vec<A, V>(to, gate);
		store_vec<A, V>(to + width * V, up);
	}
};

template <act_shape S, class A, int V> struct gate_map {
	const A *x;
	A *y;
	int64_t width;
	struct item {
		vec<A, V> gate;
	};

	__device__ __forceinline__ item read(int64_t i) const
	{
		return item{vec_at<A, V>(x + gate_place<V>(i, width))};
	}
	__device__ __forceinline__ void write(int64_t i, const item &in) const
	{
		float f[V], slope;
		unpack_vec<A, V>(in.gate, f);
		UNROLL
		for (int v = 0; v < V; v++)
			act_at<S>(f[v], &f[v], &slope);
		store_vec<A, V>(y + i * V, f);
	}
};

/* y = a x up */
template <class A, int V> struct gate_mul_map {
	const A *x, *a;
	A *y;
	int64_t width;
	struct item {
		vec<A, V> up, a;
	};

	__device__ __forceinline__ item read(int64_t i) const
	{
		return item{vec_at<A, V>(x + gate_place<V>(i, width) + width * V), vec_at<A, V>(a + i * V)};
	}
	__device__ __forceinline__ void write(int64_t i, const item &in) const
	{
		float f[V], g[V];
		unpack_vec<A, V>(in.up, f);
		unpack_vec<A, V>(in.a, g);
		UNROLL
		for (int v = 0; v < V; v++)
			f[v] *= g[v];
		store_vec<A, V>(y + i * V, f);
	}
};

/* ---- launching ---- */

template <class F> static enum status with_plain(enum mlp mlp, struct error *e, F f)
{
	switch (mlp) {
	case MLP_GELU: return f(std::integral_constant<act_shape, ACT_GELU>{});
	case MLP_RELU: return f(std::integral_constant<act_shape, ACT_RELU>{});
	case MLP_SQUARED_RELU: return f(std::integral_constant<act_shape, ACT_SQUARED_RELU>{});
	default: return error_set(e, ST_RUN, "no activation %d without a gate", (int)mlp);
	}
}

template <class F> static enum status with_gated(enum mlp mlp, struct error *e, F f)
{
	switch (mlp) {
	case MLP_SWIGLU: return f(std::integral_constant<act_shape, ACT_SILU>{});
	case MLP_GEGLU: return f(std::integral_constant<act_shape, ACT_GELU>{});
	default: return error_set(e, ST_RUN, "gate_act of an MLP without a gate");
	}
}

static bool is_gated(const struct op *op) { return op->mlp == MLP_SWIGLU || op->mlp == MLP_GEGLU; }

/* f(format, width, vectors in a row): rows count where halves stand side by side in one. */
template <class F>
static enum status with_rows(const struct op *op, const struct cuda_arg arg[OP_MAX_ARGS], unsigned args,
	struct error *e, F f)
{
	if (same_format(op, arg, 0, args, e))
		return ST_RUN;
	return with_format(arg[0].dtype, e, [&](auto a) {
		using A = typename decltype(a)::type;
		return with_width<A>(all_aligned(arg, args) && op->matrix.cols % vec_of<A>::N == 0,
			[&](auto v) { return f(a, v, op->matrix.cols / decltype(v)::value); });
	});
}

#define INSTANCE(a, v) \
	using A = typename decltype(a)::type; \
	constexpr int V = decltype(v)::value

static enum status act_plain(const struct cuda_env *env, const struct op *op, const struct cuda_arg arg[OP_MAX_ARGS],
	struct error *e)
{
	if (same_format(op, arg, 0, 0x3, e))
		return ST_RUN;
	return with_format(arg[0].dtype, e, [&](auto a) {
		return with_plain((enum mlp)op->mlp, e, [&](auto s) {
			using A = typename decltype(a)::type;
			constexpr int V = vec_of<A>::N;
			const A *x = (const A *)arg[0].at;
			A *y = (A *)arg[1].at;
			const int64_t n = op->matrix.rows * op->matrix.cols, whole = all_aligned(arg, 0x3) ? n / V : 0,
				      done = whole * V;
			enum status st = map(env, act_map<decltype(s)::value, A, V>{x, y}, whole, e);
			return st ? st : map(env, act_map<decltype(s)::value, A, 1>{x + done, y + done}, n - done, e);
		});
	});
}

extern "C" enum status launch_act(const struct cuda_env *env, const struct op *op,
	const struct cuda_arg arg[OP_MAX_ARGS], struct error *e)
{
	if (!is_gated(op))
		return act_plain(env, op, arg, e);
	return with_rows(op, arg, 0x3, e, [&](auto a, auto v, int64_t width) {
		return with_gated((enum mlp)op->mlp, e, [&](auto s) {
			INSTANCE(a, v);
			return map_rows(env, op,
				gated_map<decltype(s)::value, A, V>{(const A *)arg[0].at, (A *)arg[1].at, width},
				op->matrix.rows * width, e);
		});
	});
}

static enum status act_grad_plain(const struct cuda_env *env, const struct op *op,
	const struct cuda_arg arg[OP_MAX_ARGS], struct error *e)
{
	if (same_format(op, arg, 0, 0x7, e))
		return ST_RUN;
	return with_format(arg[0].dtype, e, [&](auto a) {
		return with_plain((enum mlp)op->mlp, e, [&](auto s) {
			using A = typename decltype(a)::type;
			constexpr int V = vec_of<A>::N;
			const A *x = (const A *)arg[0].at, *dy = (const A *)arg[1].at;
			A *dx = (A *)arg[2].at;
			const int64_t n = op->matrix.rows * op->matrix.cols, whole = all_aligned(arg, 0x7) ? n / V : 0,
				      done = whole * V;
			enum status st = map(env, act_grad_map<decltype(s)::value, A, V>{x, dy, dx}, whole, e);
			return st ? st
			          : map(env, act_grad_map<decltype(s)::value, A, 1>{x + done, dy + done, dx + done},
					    n - done, e);
		});
	});
}

extern "C" enum status launch_act_grad(const struct cuda_env *env, const struct op *op,
	const struct cuda_arg arg[OP_MAX_ARGS], struct error *e)
{
	if (!is_gated(op))
		return act_grad_plain(env, op, arg, e);
	return with_rows(op, arg, 0x7, e, [&](auto a, auto v, int64_t width) {
		return with_gated((enum mlp)op->mlp, e, [&](auto s) {
			INSTANCE(a, v);
			return map_rows(env, op,
				gated_grad_map<decltype(s)::value, A, V>{(const A *)arg[0].at, (const A *)arg[1].at,
					(A *)arg[2].at, width},
				op->matrix.rows * width, e);
		});
	});
}

extern "C" enum status launch_gate_act(const struct cuda_env *env, const struct op *op,
	const struct cuda_arg arg[OP_MAX_ARGS], struct error *e)
{
	return with_rows(op, arg, 0x3, e, [&](auto a, auto v, int64_t width) {
		return with_gated((enum mlp)op->mlp, e, [&](auto s) {
			INSTANCE(a, v);
			return map_rows(env, op,
				gate_map<decltype(s)::value, A, V>{(const A *)arg[0].at, (A *)arg[1].at, width},
				op->matrix.rows * width, e);
		});
	});
}

extern "C" enum status launch_gate_mul(const struct cuda_env *env, const struct op *op,
	const struct cuda_arg arg[OP_MAX_ARGS], struct error *e)
{
	return with_rows(op, arg, 0x7, e, [&](auto a, auto v, int64_t width) {
		INSTANCE(a, v);
		return map_rows(env, op,
			gate_mul_map<A, V>{(const A *)arg[0].at, (const A *)arg[1].at, (A *)arg[2].at, width},
			op->matrix.rows * width, e);
	});
}
