/* Routing, and rows to slots and back, against the reference: places that are all there, dropped choices, empty slots.
 */
#include "base/array.h"
#include "tests/cuda/cuda_rig.h"

static const enum dtype formats[] = {DT_FP32, DT_BF16, DT_FP16};
/* rows, experts, a row's, places */
static const int64_t shapes[][4] = {{1, 1, 1, 1}, {5, 4, 1, 5}, {7, 4, 2, 7}, {33, 8, 1, 3}, {33, 60, 4, 2},
	{300, 8, 2, 40}};
static const int64_t columns[] = {1, 33, 64};
#define FOR_ALL(s, f) \
	for (size_t s = 0; s < COUNT(shapes); s++) \
		for (size_t f = 0; f < COUNT(formats); f++)

static struct op routing(enum op_kind k, const int64_t d[4], enum dtype t)
{
	return cuda_rig_op(k, 0, 0, t, t, d[0], d[1], d[2], d[3], 0);
}

static struct op moving(enum op_kind k, unsigned flags, const int64_t d[4], int64_t cols, enum dtype t)
{
	return cuda_rig_op(k, flags, 0, t, t, d[0], cols, d[1] * d[3], d[2], 0);
}

/* Routes random logits and copies the results into the arguments of those names. */
static void set_routing(struct cuda_rig *r, const int64_t d[4])
{
	static const char *const names[] = {"logits", "gates", "slots", "taken"};
	struct cuda_rig route;
	struct error e = {0};
	cuda_rig_open(&route, routing(OP_ROUTE, d, r->op.dtype), (struct cuda_rig_options){0});
	CU_ASSERT_EQUAL(reference_run(&route.env, &route.op, route.ref, &e), ST_OK);
	const struct op_kind_info *info = op_kind_info((enum op_kind)r->op.kind);
	for (int a = 0; a < info->n_args; a++)
		for (int i = 0; i < 4; i++)
			if (!strcmp(info->arg[a].name, names[i]) && !r->absent[a]) {
				memcpy(r->ref[a], route.ref[i], r->n[a] * (i < 2 ? sizeof(double) : sizeof(int32_t)));
				cuda_rig_sync(r, a);
			}
	cuda_rig_close(&route);
}

static void check(struct op op, const int64_t d[4], unsigned absent, size_t shift)
{
	struct cuda_rig r;
	cuda_rig_open(&r, op, (struct cuda_rig_options){.absent = absent, .shift = shift});
	if (op.kind != OP_ROUTE && op.kind != OP_SWAP)
		set_routing(&r, d);
	cuda_rig_check(&r);
	cuda_rig_close(&r);
}

static void test_route(void)
{
	FOR_ALL(s, f)
	{
		check(routing(OP_ROUTE, shapes[s], formats[f]), shapes[s], 0, 0);
		check(routing(OP_ROUTE_GRAD, shapes[s], formats[f]), shapes[s], 0, 0);
	}
}

static void test_moves(void)
{
	FOR_ALL(s, f)
	for (size_t c = 0; c < COUNT(columns); c++)
		for (size_t shift = 0; shift < 2; shift++) {
			const int64_t *d = shapes[s], cols = columns[c];
			const enum dtype t = formats[f];
			check(moving(OP_DISPATCH, 0, d, cols, t), d, 0, shift);
			check(moving(OP_COMBINE, 0, d, cols, t), d, 0, shift);
			check(moving(OP_COMBINE, OP_ACCUMULATE, d, cols, t), d, 1u << 2, shift);
			check(moving(OP_COMBINE_GRAD, 0, d, cols, t), d, 0, shift);
			check(cuda_rig_op(OP_SWAP, 0, 0, t, t, 3, 5, cols, 0, 0), d, 0, shift);
		}
}

CUDA_MAIN("cuda experts", {"routing", test_route}, {"rows to slots and back", test_moves})
