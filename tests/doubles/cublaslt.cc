/* Stands in for libcublasLt.so.13: matrix products in fp32 on the doubled runtime's memory, enqueued on its streams.
 *
 * What it refuses follows the tables and requirements that the cuBLAS documentation has for cublasLtMatmul:
 * combinations of formats, leading dimensions, batches, fp8's "TN" and 16-byte rules, the workspace's size and 256-byte
 * alignment, the alignment that an algorithm was asked for, that of the bias too. An algorithm that takes workspace
 * fills it with noise. Some of the algorithms that it proposes fail when they are run. The fault "heuristic" counts
 * questions: the one that it names is answered with none.
 */
#include <atomic>

#include "tests/doubles/cublaslt_rules.h"
#include "tests/doubles/double.h"

#define API extern "C" __attribute__((visibility("default")))

struct cublasLtContext {
	int unused;
};

namespace
{

/* ---- the product ---- */

struct product {
	desc d;
	layout A, B, C, D;
	shape s;
	uint32_t bias_type;
	const char *a, *b, *c;
	char *out, *workspace;
	size_t noise_B;
	float alpha, beta;
	const float *alpha_at, *beta_at; /* in device pointer mode */
	void run() const;
	void one(int32_t batch, float alpha, float beta) const;
	void finish(int32_t batch, const std::vector<float> &sums, float alpha, float beta) const;
};

size_t place(const layout &l, uint64_t row, uint64_t col)
{
	return l.order == CUBLASLT_ORDER_COL ? row + col * (size_t)l.ld : row * (size_t)l.ld + col;
}

/* op(X) as rows x cols, row by row. */
std::vector<float> unpack(const layout &l, const char *base, bool transposed, uint64_t rows, uint64_t cols, int compute)
{
	std::vector<float> out(rows * cols);
	for (uint64_t r = 0; r < rows; r++)
		for (uint64_t c = 0; c < cols; c++)
			out[r * cols + c] = narrowed(load(base, l.type, transposed ? place(l, c, r) : place(l, r, c)),
				compute);
	return out;
}

const char *at(const layout &l, const char *base, int32_t batch)
{
	return base + (int64_t)batch * l.stride * (int64_t)bytes_of(l.type);
}
float scale_at(const void *p) { return p ? *(const float *)p : 1; }

float activated(float x, uint32_t epilogue)
{
	if (epilogue & CUBLASLT_EPILOGUE_RELU)
		return x > 0 ? x : 0;
	return epilogue & CUBLASLT_EPILOGUE_GELU ? 0.5f * x * (1 + tanhf(0.7978845608f * (x + 0.044715f * x * x * x)))
	                                         : x;
}

void product::one(int32_t batch, float al, float be) const
{
	std::vector<float> x = unpack(A, at(A, a, batch), d.trans[0] != CUBLAS_OP_N, s.m, s.k, d.compute),
			   y = unpack(B, at(B, b, batch), d.trans[1] != CUBLAS_OP_N, s.k, s.n, d.compute);
	std::vector<float> sums(s.m * s.n, 0);
	for (uint64_t i = 0; i < s.m; i++)
		for (uint64_t p = 0; p < s.k; p++) {
			float *row = &sums[i * s.n];
			const float *from = &y[p * s.n], factor = x[i * s.k + p];
			for (uint64_t j = 0; j < s.n; j++)
				row[j] += factor * from[j];
		}
	if (has_bias_gradient(d)) {
		bool of_a = d.epilogue == CUBLASLT_EPILOGUE_BGRADA;
		for (uint64_t i = 0; i < (of_a ? s.m : s.n); i++) {
			float sum = 0;
			for (uint64_t p = 0; p < s.k; p++)
				sum += of_a ? x[i * s.k + p] : y[p * s.n + i];
			store((void *)d.bias, bias_type, (size_t)((int64_t)batch * d.bias_stride) + i, sum);
		}
	}
	finish(batch, sums, al, be);
}

void product::finish(int32_t batch, const std::vector<float> &sums, float al, float be) const
{
	float factor = al * scale_at(d.scale_of[0]) * scale_at(d.scale_of[1]),
	      of_c = be * (is_fp8(C.type) ? scale_at(d.scale_of[2]) : 1), amax = 0;
	float of_d = is_fp8(D.type) ? scale_at(d.scale_of[3]) : 1;
	for (uint64_t i = 0; i < s.m; i++)
		for (uint64_t j = 0; j < s.n; j++) {
			float v = factor * sums[i * s.n + j];
			if (be != 0)
				v += of_c * load(at(C, c, batch), C.type, place(C, i, j));
			if (has_bias(d))
				v += load(d.bias, bias_type, (size_t)((int64_t)batch * d.bias_stride) + i);
			v = activated(v, d.epilogue);
			amax = std::max(amax, fabsf(v));
			store((char *)at(D, out, batch), D.type, place(D, i, j), v * of_d);
		}
	if (d.amax_d)
		*(float *)d.amax_d = batch ? std::max(amax, *(float *)d.amax_d) : amax;
}

/* From the first element to the last. */
bool present(const layout &l, const char *base)
{
	size_t elements = (size_t)((int64_t)(l.batch - 1) * l.stride) + place(l, l.rows - 1, l.cols - 1) + 1;
	return double_memory("cublasLt", base, elements * bytes_of(l.type));
}

void product::run() const
{
	if (!present(A, a) || !present(B, b) || !present(D, out) || (c && !present(C, c)) ||
		(noise_B && !double_memory("cublasLt", workspace, noise_B)))
		return;
	if (noise_B)
		memset(workspace, 0xff, noise_B);
	for (int32_t batch = 0; batch < s.batch; batch++)
		one(batch, alpha_at ? *alpha_at : alpha, beta_at ? *beta_at : beta);
}

const int CANDIDATES = 8;

/* Of the real library's candidates some fail when they are run, for reasons that no question tells. Never the first. */
bool works(const algorithm &a) { return a.id % 3 != 1; }

/* Every second one takes workspace, as a split over k does, the others none. */
int propose(const preference &p, const desc &d, const shape &s, algorithm out[CANDIDATES])
{
	const uint64_t split_B = std::min<uint64_t>(s.m * s.n * 4 * (uint64_t)s.batch, 1 << 20);
	const uintptr_t bias = (uintptr_t)d.bias;
	int n = 0;
	for (uint32_t id = 0; id < CANDIDATES; id++) {
		const uint64_t wanted = id % 2 == 0 ? split_B : 0;
		if (wanted > p.workspace_B)
			continue;
		out[n] = {ALGO_MAGIC, id, wanted, {}, 16};
		for (int i = 0; i < 4; i++)
			out[n].alignment[i] = std::min(p.alignment[i], 16u);
		if (has_bias(d) && bias % 16 != 0)
			out[n].bias_alignment = (uint32_t)(bias & (~bias + 1));
		n++;
	}
	return n;
}

bool misaligned(const void *p, size_t to) { return to && (uintptr_t)p % to != 0; }

cublasStatus_t check_pointers(const product &p, const algorithm *algo)
{
	const void *at[] = {p.a, p.b, p.c, p.out};
	const layout *of[] = {&p.A, &p.B, &p.C, &p.D};
	for (int i = 0; i < 4; i++)
		if (misaligned(at[i], bytes_of(of[i]->type)))
			return CUBLAS_STATUS_INVALID_VALUE;
	for (int i = 0; i < 4; i++)
		if ((algo && misaligned(at[i], algo->alignment[i])) || (is_fp8(p.A.type) && misaligned(at[i], 16)))
			return CUBLAS_STATUS_NOT_SUPPORTED;
	if (p.c == p.out && memcmp(&p.C, &p.D, sizeof p.C) != 0)
		return CUBLAS_STATUS_INVALID_VALUE;
	if (algo && has_bias(p.d) && misaligned(p.d.bias, algo->bias_alignment))
		return CUBLAS_STATUS_EXECUTION_FAILED; /* in truth a fault while it runs */
	return CUBLAS_STATUS_SUCCESS;
}

} // namespace

API cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle)
{
	int devices = 0;
	if (!handle)
		return CUBLAS_STATUS_INVALID_VALUE;
	*handle = nullptr;
	if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0)
		return CUBLAS_STATUS_NOT_INITIALIZED;
	*handle = new cublasLtContext{0};
	return CUBLAS_STATUS_SUCCESS;
}

API cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle)
{
	delete handle;
	return CUBLAS_STATUS_SUCCESS;
}

API size_t cublasLtGetVersion(void) { return CUBLAS_VERSION; }
API size_t cublasLtGetCudartVersion(void) { return CUDART_VERSION; }

struct status_row {
	cublasStatus_t code;
	const char *name, *text;
};
static const status_row status_rows[] = {
	{CUBLAS_STATUS_SUCCESS, "CUBLAS_STATUS_SUCCESS", "success"},
	{CUBLAS_STATUS_NOT_INITIALIZED, "CUBLAS_STATUS_NOT_INITIALIZED", "the library was not initialized"},
	{CUBLAS_STATUS_ALLOC_FAILED, "CUBLAS_STATUS_ALLOC_FAILED", "the resource allocation failed"},
	{CUBLAS_STATUS_INVALID_VALUE, "CUBLAS_STATUS_INVALID_VALUE", "an invalid value was used as input"},
	{CUBLAS_STATUS_ARCH_MISMATCH, "CUBLAS_STATUS_ARCH_MISMATCH", "the device does not have what is needed"},
	{CUBLAS_STATUS_EXECUTION_FAILED, "CUBLAS_STATUS_EXECUTION_FAILED", "the function failed to launch on the GPU"},
	{CUBLAS_STATUS_INTERNAL_ERROR, "CUBLAS_STATUS_INTERNAL_ERROR", "an internal operation failed"},
	{CUBLAS_STATUS_NOT_SUPPORTED, "CUBLAS_STATUS_NOT_SUPPORTED", "the functionality is not supported"},
};

API const char *cublasLtGetStatusName(cublasStatus_t code)
{
	for (const status_row &r : status_rows)
		if (r.code == code)
			return r.name;
	return "unknown";
}

API const char *cublasLtGetStatusString(cublasStatus_t code)
{
	for (const status_row &r : status_rows)
		if (r.code == code)
			return r.text;
	return "unknown error";
}

/* ---- descriptors ---- */

API cublasStatus_t cublasLtMatrixLayoutInit_internal(cublasLtMatrixLayout_t l, size_t size, cudaDataType type,
	uint64_t rows, uint64_t cols, int64_t ld)
{
	if (!l || size < sizeof *l)
		return CUBLAS_STATUS_INVALID_VALUE;
	layout v = {(uint32_t)type, CUBLASLT_ORDER_COL, 1, CUBLASLT_BATCH_MODE_STRIDED, rows, cols, ld, 0};
	memset((void *)l, 0, sizeof *l);
	memcpy((void *)l, &v, sizeof v);
	return CUBLAS_STATUS_SUCCESS;
}

API cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *l, cudaDataType type, uint64_t rows,
	uint64_t cols, int64_t ld)
{
	*l = new cublasLtMatrixLayoutOpaque_t;
	return cublasLtMatrixLayoutInit_internal(*l, sizeof **l, type, rows, cols, ld);
}

API cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t l)
{
	delete l;
	return CUBLAS_STATUS_SUCCESS;
}

API cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t l, cublasLtMatrixLayoutAttribute_t name,
	const void *from, size_t bytes)
{
	return set(l, find(layout_attributes, name), from, bytes);
}

API cublasStatus_t cublasLtMatrixLayoutGetAttribute(cublasLtMatrixLayout_t l, cublasLtMatrixLayoutAttribute_t name,
	void *to, size_t bytes, size_t *written)
{
	return get(l, find(layout_attributes, name), to, bytes, written);
}

API cublasStatus_t cublasLtMatmulDescInit_internal(cublasLtMatmulDesc_t d, size_t size, cublasComputeType_t compute,
	cudaDataType_t scale)
{
	if (!d || size < sizeof *d)
		return CUBLAS_STATUS_INVALID_VALUE;
	desc v;
	memset(&v, 0, sizeof v);
	v.compute = compute;
	v.scale = scale;
	v.fill = CUBLAS_FILL_MODE_FULL;
	v.epilogue = CUBLASLT_EPILOGUE_DEFAULT;
	v.bias_type = v.aux_type = -1;
	memset((void *)d, 0, sizeof *d);
	memcpy((void *)d, &v, sizeof v);
	return CUBLAS_STATUS_SUCCESS;
}

API cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *d, cublasComputeType_t compute, cudaDataType_t scale)
{
	*d = new cublasLtMatmulDescOpaque_t;
	return cublasLtMatmulDescInit_internal(*d, sizeof **d, compute, scale);
}

API cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t d)
{
	delete d;
	return CUBLAS_STATUS_SUCCESS;
}

API cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t d, cublasLtMatmulDescAttributes_t name,
	const void *from, size_t bytes)
{
	return set(d, find(desc_attributes, name), from, bytes);
}

API cublasStatus_t cublasLtMatmulDescGetAttribute(cublasLtMatmulDesc_t d, cublasLtMatmulDescAttributes_t name, void *to,
	size_t bytes, size_t *written)
{
	return get(d, find(desc_attributes, name), to, bytes, written);
}

API cublasStatus_t cublasLtMatmulPreferenceInit_internal(cublasLtMatmulPreference_t p, size_t size)
{
	if (!p || size < sizeof *p)
		return CUBLAS_STATUS_INVALID_VALUE;
	preference v = {CUBLASLT_SEARCH_BEST_FIT, CUBLASLT_REDUCTION_SCHEME_MASK, 0, {256, 256, 256, 256}, 0,
		~(uint64_t)0};
	memset((void *)p, 0, sizeof *p);
	memcpy((void *)p, &v, sizeof v);
	return CUBLAS_STATUS_SUCCESS;
}

API cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *p)
{
	*p = new cublasLtMatmulPreferenceOpaque_t;
	return cublasLtMatmulPreferenceInit_internal(*p, sizeof **p);
}

API cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t p)
{
	delete p;
	return CUBLAS_STATUS_SUCCESS;
}

API cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t p,
	cublasLtMatmulPreferenceAttributes_t name, const void *from, size_t bytes)
{
	return set(p, find(preference_attributes, name), from, bytes);
}

API cublasStatus_t cublasLtMatmulPreferenceGetAttribute(cublasLtMatmulPreference_t p,
	cublasLtMatmulPreferenceAttributes_t name, void *to, size_t bytes, size_t *written)
{
	return get(p, find(preference_attributes, name), to, bytes, written);
}

/* ---- products ---- */

template <class T, class O> static T read_as(const O *opaque)
{
	T v;
	memcpy(&v, opaque, sizeof v);
	return v;
}

API cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t d,
	cublasLtMatrixLayout_t A, cublasLtMatrixLayout_t B, cublasLtMatrixLayout_t C, cublasLtMatrixLayout_t D,
	cublasLtMatmulPreference_t p, int requested, cublasLtMatmulHeuristicResult_t results[], int *returned)
{
	shape s;
	static std::atomic<int64_t> questions;
	algorithm found[CANDIDATES];
	if (!handle)
		return CUBLAS_STATUS_NOT_INITIALIZED;
	if (!d || !A || !B || !C || !D || !p || requested < 1 || !results || !returned)
		return CUBLAS_STATUS_INVALID_VALUE;
	*returned = 0;
	cublasStatus_t st = check(read_as<desc>(d), read_as<layout>(A), read_as<layout>(B), read_as<layout>(C),
		read_as<layout>(D), &s);
	if (st != CUBLAS_STATUS_SUCCESS)
		return st;
	if (++questions == double_fault("heuristic"))
		return CUBLAS_STATUS_NOT_SUPPORTED;
	*returned = std::min(requested, propose(read_as<preference>(p), read_as<desc>(d), s, found));
	for (int i = 0; i < *returned; i++) {
		memset((void *)&results[i], 0, sizeof results[i]);
		memcpy((void *)&results[i].algo, &found[i], sizeof found[i]);
		results[i].workspaceSize = found[i].workspace_B;
		results[i].state = CUBLAS_STATUS_SUCCESS;
		results[i].wavesCount = 1;
	}
	return CUBLAS_STATUS_SUCCESS;
}

API cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t d, const void *alpha, const void *A,
	cublasLtMatrixLayout_t Ad, const void *B, cublasLtMatrixLayout_t Bd, const void *beta, const void *C,
	cublasLtMatrixLayout_t Cd, void *D, cublasLtMatrixLayout_t Dd, const cublasLtMatmulAlgo_t *algo,
	void *workspace, size_t workspace_B, cudaStream_t stream)
{
	if (!handle)
		return CUBLAS_STATUS_NOT_INITIALIZED;
	if (!d || !alpha || !beta || !A || !B || !D || !Ad || !Bd || !Cd || !Dd)
		return CUBLAS_STATUS_INVALID_VALUE;
	auto p = std::make_shared<product>();
	memset((void *)p.get(), 0, sizeof *p);
	p->d = read_as<desc>(d);
	p->A = read_as<layout>(Ad), p->B = read_as<layout>(Bd), p->C = read_as<layout>(Cd), p->D = read_as<layout>(Dd);
	p->a = (const char *)A, p->b = (const char *)B, p->c = (const char *)C, p->out = (char *)D;
	cublasStatus_t st = check(p->d, p->A, p->B, p->C, p->D, &p->s);
	if (st != CUBLAS_STATUS_SUCCESS)
		return st;
	if (p->d.pointer_mode == CUBLASLT_POINTER_MODE_DEVICE) {
		p->alpha_at = (const float *)alpha, p->beta_at = (const float *)beta;
	} else {
		p->alpha = *(const float *)alpha, p->beta = *(const float *)beta;
	}
	if (!C && (p->beta_at || p->beta != 0))
		return CUBLAS_STATUS_INVALID_VALUE;
	if ((has_bias(p->d) || has_bias_gradient(p->d)) && !p->d.bias)
		return CUBLAS_STATUS_INVALID_VALUE;
	const combination *c = combination_of(p->d, p->A, p->B, p->C, p->D);
	p->bias_type = (uint32_t)(p->d.bias_type >= 0       ? p->d.bias_type
				  : has_bias_gradient(p->d) ? (int)p->D.type
							    : c->bias);
	algorithm chosen;
	if (algo) {
		chosen = read_as<algorithm>(algo);
		if (chosen.magic != ALGO_MAGIC || chosen.workspace_B > workspace_B)
			return CUBLAS_STATUS_INVALID_VALUE;
		if (!works(chosen))
			return CUBLAS_STATUS_NOT_SUPPORTED;
		p->noise_B = chosen.workspace_B;
	}
	if ((workspace_B && !workspace) || misaligned(workspace, WORKSPACE_ALIGNMENT_B))
		return CUBLAS_STATUS_INVALID_VALUE;
	p->workspace = (char *)workspace;
	if ((st = check_pointers(*p, algo ? &chosen : nullptr)) != CUBLAS_STATUS_SUCCESS)
		return st;
	return double_launch(stream, [p]() { p->run(); }) == cudaSuccess ? CUBLAS_STATUS_SUCCESS
	                                                                 : CUBLAS_STATUS_EXECUTION_FAILED;
}
