/* The mesh: ranks and coordinates, groups, orders. */
#include <string.h>

#include "step/mesh.h"
#include "tests/unit/harness.h"

static struct config plan(int64_t tp, int64_t cp, int64_t dp, int64_t pp)
{
	struct config c;
	memset(&c, 0, sizeof c);
	c.parallel.tensor = tp;
	c.parallel.context = cp;
	c.parallel.expert = c.parallel.expert_tensor = 1;
	c.parallel.data = dp;
	c.parallel.pipeline = pp;
	for (int i = 0; i < DIM_COUNT; i++)
		c.parallel.order[i] = (enum mesh_dim)i;
	return c;
}

static void test_innermost_first(void)
{
	struct config c = plan(4, 1, 3, 2);
	struct mesh m = mesh_of(&c);
	CU_ASSERT_EQUAL(m.ranks, 24);
	CU_ASSERT_EQUAL(m.stride[DIM_TP], 1);
	CU_ASSERT_EQUAL(m.stride[DIM_DP], 4);
	CU_ASSERT_EQUAL(m.stride[DIM_PP], 12);
	CU_ASSERT_EQUAL(mesh_coord(&m, 17, DIM_TP), 1);
	CU_ASSERT_EQUAL(mesh_coord(&m, 17, DIM_DP), 1);
	CU_ASSERT_EQUAL(mesh_coord(&m, 17, DIM_PP), 1);
	CU_ASSERT_EQUAL(mesh_member(&m, 17, DIM_TP, 0), 16);
	CU_ASSERT_EQUAL(mesh_member(&m, 17, DIM_DP, 2), 21);
	CU_ASSERT_EQUAL(mesh_member(&m, 17, DIM_PP, 0), 5);
}

static void test_other_order(void)
{
	static const enum mesh_dim order[DIM_COUNT] = {DIM_DP, DIM_PP, DIM_TP, DIM_CP, DIM_EP};
	struct config c = plan(2, 1, 4, 1);
	memcpy(c.parallel.order, order, sizeof order);
	struct mesh m = mesh_of(&c);
	CU_ASSERT_EQUAL(m.stride[DIM_DP], 1);
	CU_ASSERT_EQUAL(m.stride[DIM_TP], 4);
	CU_ASSERT_EQUAL(mesh_coord(&m, 6, DIM_DP), 2);
	CU_ASSERT_EQUAL(mesh_coord(&m, 6, DIM_TP), 1);
	CU_ASSERT_EQUAL(mesh_member(&m, 6, DIM_TP, 0), 2);
}

/* Data and context as one dimension, and hsdp's two parts of it: each partitions the ranks that hold the same
 * parameters. */
static void test_merged(void)
{
	struct config c = plan(2, 3, 4, 2);
	c.parallel.strategy = STRAT_HSDP;
	c.parallel.shard = 2;
	struct mesh m = mesh_of(&c);
	CU_ASSERT_EQUAL(m.params, DIM_SHARD);
	CU_ASSERT_EQUAL(m.size[DIM_DP_CP], 12);
	CU_ASSERT_EQUAL(m.size[DIM_SHARD], 6);
	CU_ASSERT_EQUAL(m.size[DIM_REPLICA], 2);
	CU_ASSERT_EQUAL(m.ranks, 48);
	for (int64_t rank = 0; rank < m.ranks; rank++) {
		int64_t whole = mesh_coord(&m, rank, DIM_DP_CP);
		CU_ASSERT_EQUAL(whole, mesh_coord(&m, rank, DIM_DP) * 3 + mesh_coord(&m, rank, DIM_CP));
		CU_ASSERT_EQUAL(whole, mesh_coord(&m, rank, DIM_REPLICA) * 6 + mesh_coord(&m, rank, DIM_SHARD));
		for (int64_t i = 0; i < 12; i++) {
			int64_t member = mesh_member(&m, rank, DIM_DP_CP, i);
			CU_ASSERT_EQUAL(mesh_coord(&m, member, DIM_TP), mesh_coord(&m, rank, DIM_TP));
			CU_ASSERT_EQUAL(mesh_coord(&m, member, DIM_PP), mesh_coord(&m, rank, DIM_PP));
		}
	}
	c.parallel.strategy = STRAT_DDP;
	CU_ASSERT_EQUAL(mesh_of(&c).params, DIM_DP_CP);
	c.parallel.context = 1;
	m = mesh_of(&c);
	CU_ASSERT_EQUAL(m.params, DIM_DP);
	CU_ASSERT_EQUAL(m.stride[DIM_DP_CP], m.stride[DIM_DP]);
}

/* In every order: coordinates name a rank, groups partition the ranks, and members agree on their group. */
static void test_groups_partition(void)
{
	static const enum mesh_dim orders[3][DIM_COUNT] = {{DIM_TP, DIM_CP, DIM_EP, DIM_DP, DIM_PP},
		{DIM_PP, DIM_DP, DIM_EP, DIM_CP, DIM_TP}, {DIM_CP, DIM_TP, DIM_PP, DIM_EP, DIM_DP}};
	for (int o = 0; o < 3; o++) {
		struct config c = plan(2, 3, 4, 5);
		memcpy(c.parallel.order, orders[o], sizeof orders[o]);
		struct mesh m = mesh_of(&c);
		CU_ASSERT_EQUAL(m.ranks, 120);
		for (int64_t rank = 0; rank < m.ranks; rank++) {
			int64_t sum = 0;
			for (int d = 0; d < DIM_COUNT; d++) {
				enum mesh_dim dim = (enum mesh_dim)d;
				int64_t own = mesh_coord(&m, rank, dim);
				sum += own * m.stride[d];
				CU_ASSERT_EQUAL(mesh_member(&m, rank, dim, own), rank);
				for (int64_t i = 0; i < m.size[d]; i++) {
					int64_t member = mesh_member(&m, rank, dim, i);
					CU_ASSERT(member >= 0 && member < m.ranks);
					CU_ASSERT_EQUAL(mesh_coord(&m, member, dim), i);
					CU_ASSERT_EQUAL(mesh_member(&m, member, dim, own), rank);
				}
			}
			CU_ASSERT_EQUAL(sum, rank);
		}
	}
}

UNIT_MAIN("mesh", {"innermost first", test_innermost_first}, {"another order", test_other_order},
	{"data and context merged", test_merged}, {"groups partition the ranks", test_groups_partition})
