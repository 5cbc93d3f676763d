#include <math.h>
#include <string.h>

#include "sim/engine/maxmin.h"
#include "sim/price/price.h"
#include "tests/unit/cost_case.h"

static void test_ring(void)
{
	struct machine m = gpu();
	NEAR(collective_time_s(RATES(&m), COLL_ALL_REDUCE, 8, 1, 800e6, NULL), 14 * (3e-6 + 100e6 / 100e9));
	NEAR(collective_time_s(RATES(&m), COLL_ALL_GATHER, 8, 1, 800e6, NULL), 7 * (3e-6 + 100e6 / 100e9));
	NEAR(collective_time_s(RATES(&m), COLL_REDUCE_SCATTER, 8, 1, 800e6, NULL), 7 * (3e-6 + 100e6 / 100e9));
	CU_ASSERT_EQUAL(collective_time_s(RATES(&m), COLL_ALL_REDUCE, 1, 1, 800e6, NULL), 0);
	NEAR(collective_time_s(RATES(&m), COLL_BROADCAST, 8, 1, 800e6, NULL), 7 * 3e-6 + 800e6 / 100e9);
	NEAR(collective_time_s(RATES(&m), COLL_ALLTOALL, 8, 1, 800e6, NULL), 7 * (3e-6 + 100e6 / 100e9));
	NEAR(collective_time_s(RATES(&m), COLL_SENDRECV, 8, 1, 800e6, NULL), 3e-6 + 800e6 / 100e9);
	/* One member a node: the node's link. */
	NEAR(collective_time_s(RATES(&m), COLL_ALL_REDUCE, 4, 8, 400e6, NULL), 6 * (10e-6 + 100e6 / 25e9));
	NEAR(collective_time_s(RATES(&m), COLL_BROADCAST, 4, 8, 400e6, NULL), 3 * 10e-6 + 400e6 / 25e9);
	NEAR(collective_time_s(RATES(&m), COLL_ALLTOALL, 4, 8, 400e6, NULL), 3 * (10e-6 + 100e6 / 25e9));
	NEAR(collective_time_s(RATES(&m), COLL_SENDRECV, 4, 8, 400e6, NULL), 10e-6 + 400e6 / 25e9);
	/* Two nodes: of 15 parts that a member deals out, 8 go to the other node through its own share of the NICs. */
	double hop_s = (2 * 10e-6 + 14 * 3e-6) / 16;
	NEAR(collective_time_s(RATES(&m), COLL_ALLTOALL, 16, 1, 1600e6, NULL), 15 * hop_s + 8 * 100e6 / 25e9);
	NEAR(collective_time_s(RATES(&m), COLL_SENDRECV, 16, 1, 1600e6, NULL), hop_s + 1600e6 / 25e9);
}

/* Gradients of 7 billion parameters in fp32 on 8 ranks: 1.53 s over PCIe 4.0 (32 GB/s), 163 ms over A100's NVLink (300
 * GB/s). */
static void test_seven_billion(void)
{
	struct machine m = gpu();
	m.intra = (struct link_spec){0, 32e9};
	CU_ASSERT_DOUBLE_EQUAL(collective_time_s(RATES(&m), COLL_ALL_REDUCE, 8, 1, 28e9, NULL), 1.53, 0.005);
	m.intra.Bps = 300e9;
	CU_ASSERT_DOUBLE_EQUAL(collective_time_s(RATES(&m), COLL_ALL_REDUCE, 8, 1, 28e9, NULL), 0.163, 0.0005);
}

static void test_collective_curve(void)
{
	mesh(1, 4);
	struct machine m = host();
	const double x[] = {4e3, 4e5, 4e7}, y[] = {1e-5, 1e-4, 1e-2};
	CU_ASSERT_EQUAL_FATAL(profile_set_curve(profile, "all_reduce.4", x, y, 3, NULL), ST_OK);
	struct op_cost c = cost(&m, collective(COLL_ALL_REDUCE, DIM_DP, 100000));
	NEAR(c.alone_s, 1e-4);
	CU_ASSERT_EQUAL(c.bound, BOUND_LINK);
	CU_ASSERT_FALSE(c.guessed);
	NEAR(cost(&m, collective(COLL_ALL_REDUCE, DIM_DP, 100000000)).alone_s, 0.1); /* the last slope goes on */
	c = cost(&m, collective(COLL_ALL_REDUCE, DIM_DP, 100));
	NEAR(c.alone_s, 1e-5);
	CU_ASSERT_EQUAL(c.bound, BOUND_LATENCY);

	/* Another group size: three steps on S/4 took 1e-4 s, so one step on S/2 of two ranks takes a third of what
	 * four took on 2 S. */
	mesh(1, 2);
	c = cost(&m, collective(COLL_ALL_REDUCE, DIM_DP, 50000));
	NEAR(c.alone_s, 1e-4 / 3);
	CU_ASSERT(c.guessed);
	/* A collective that is not cut takes as long on any number of ranks. */
	CU_ASSERT_EQUAL_FATAL(profile_set_curve(profile, "broadcast.4", x, y, 3, NULL), ST_OK);
	NEAR(collective_time_s(RATES(&m), COLL_BROADCAST, 4, 1, 4e5, NULL), 1e-4);
	NEAR(collective_time_s(RATES(&m), COLL_BROADCAST, 2, 1, 4e5, NULL), 1e-4);
	/* Another collective has no curve: the link. */
	NEAR(cost(&m, collective(COLL_ALL_GATHER, DIM_DP, 50000)).alone_s, 1e-6 + 1e5 / 5e9);
}

static void test_collective_use(void)
{
	mesh(2, 16);
	struct machine m = gpu();
	program.config.stack.overlap_tax = 0.1;
	struct op_cost inner = cost(&m, collective(COLL_ALL_REDUCE, DIM_TP, 1 << 24)),
		       outer = cost(&m, collective(COLL_ALL_REDUCE, DIM_DP, 1 << 24));
	CU_ASSERT_EQUAL(inner.issue_s, 4e-6);
	CU_ASSERT_EQUAL(inner.use.demand[RES_LINK_INTRA], 1);
	CU_ASSERT_EQUAL(inner.use.demand[RES_LINK_INTER], 0);
	CU_ASSERT_EQUAL(outer.use.demand[RES_LINK_INTRA], 0);
	CU_ASSERT_EQUAL(outer.use.demand[RES_LINK_INTER], 1);
	CU_ASSERT_EQUAL(inner.use.demand[RES_MEMORY], 0); /* part of the stack's tax */
	/* Compute beside it loses what the stack says, the collective nothing. */
	const struct activity gemm_use = {.weight = 1, .demand = {1}};
	const double cap[RES_COUNT] = {1, 1, 1, 1};
	double x[2];
	maxmin_rates((const struct activity *[]){&gemm_use, &inner.use}, 2, cap, x);
	CU_ASSERT_DOUBLE_EQUAL(x[0], 0.9, 1e-12);
	CU_ASSERT_DOUBLE_EQUAL(x[1], 1, 1e-12);
	/* Engines of the links leave compute as it is, and read and write memory. */
	m.device.link_engines = true;
	inner = cost(&m, collective(COLL_ALL_REDUCE, DIM_TP, 1 << 24));
	CU_ASSERT_EQUAL(inner.use.demand[RES_COMPUTE], 0);
	CU_ASSERT_TRUE(inner.use.demand[RES_MEMORY] > 0);
	CU_ASSERT_EQUAL(inner.use.demand[RES_LINK_INTRA], 1);
	m.device.link_engines = false;

	m = host();
	mesh(1, 2);
	CU_ASSERT_EQUAL_FATAL(profile_set_value(profile, "overlap.compute_rate", 0.6, NULL), ST_OK);
	CU_ASSERT_EQUAL_FATAL(profile_set_value(profile, "overlap.comm_rate", 0.3, NULL), ST_OK);
	struct op_cost c = cost(&m, collective(COLL_ALL_REDUCE, DIM_DP, 1 << 24));
	CU_ASSERT_EQUAL(c.issue_s, 0);
	maxmin_rates((const struct activity *[]){&gemm_use, &c.use}, 2, cap, x);
	CU_ASSERT_DOUBLE_EQUAL(x[0], 0.6, 1e-12);
	CU_ASSERT_DOUBLE_EQUAL(x[1], 0.3, 1e-12);
}

/* Two hosts of two ranks, measured there: a group takes the curve of a group with such links. */
static struct machine two_hosts(void)
{
	struct machine m = host();
	m.nodes = m.devices_per_node = 2;
	m.inter = (struct link_spec){1e-4, 1e8};
	profile->key.ranks = 4;
	profile->key.ranks_per_host = 2;
	return m;
}

static void test_groups_between_hosts(void)
{
	struct machine m = two_hosts();
	const double x[] = {1e4, 1e6}, within[] = {1e-5, 1e-3}, all[] = {1e-4, 1e-2}, each[] = {2e-4, 2e-2},
		     message[] = {1e-4, 1.01e-2};
	CU_ASSERT_EQUAL_FATAL(profile_set_curve(profile, "all_reduce.2", x, within, 2, NULL), ST_OK);
	NEAR(collective_time_s(RATES(&m), COLL_ALL_REDUCE, 2, 1, 1e6, NULL), 1e-3);
	/* No curve between hosts: the link, with both ranks of a host on it. */
	NEAR(collective_time_s(RATES(&m), COLL_ALL_REDUCE, 2, 2, 1e6, NULL), 2 * 1e-4 + 1e6 / 1e8);
	CU_ASSERT_EQUAL_FATAL(profile_set_curve(profile, "all_reduce.4", x, all, 2, NULL), ST_OK);
	CU_ASSERT_EQUAL_FATAL(profile_set_curve(profile, "all_reduce.2.stride2", x, each, 2, NULL), ST_OK);
	CU_ASSERT_EQUAL_FATAL(profile_set_curve(profile, "send.2.stride2", x, message, 2, NULL), ST_OK);
	NEAR(collective_time_s(RATES(&m), COLL_ALL_REDUCE, 2, 1, 1e6, NULL), 1e-3);
	NEAR(collective_time_s(RATES(&m), COLL_ALL_REDUCE, 4, 1, 1e6, NULL), 1e-2);
	NEAR(collective_time_s(RATES(&m), COLL_ALL_REDUCE, 2, 2, 1e6, NULL), 2e-2);
	CU_ASSERT(collective_price(RATES(&m), COLL_ALL_REDUCE, 2, 2, COLLECTIVE_ANY, 4096, NULL).measured);
	/* Both ends of a message have the time of its sender. */
	NEAR(collective_time_s(RATES(&m), COLL_SEND, 2, 2, 1e6, NULL), 1.01e-2);
	NEAR(collective_time_s(RATES(&m), COLL_RECV, 2, 2, 1e6, NULL), 1.01e-2);
	/* More hosts: the curve of as many ranks, but each rank of a host has such a group, which share its links. */
	m.nodes = 4;
	NEAR(collective_time_s(RATES(&m), COLL_ALL_REDUCE, 4, 2, 1e6, NULL), 1e-4 + 2 * (1e-2 - 1e-4));
	CU_ASSERT_FALSE(collective_price(RATES(&m), COLL_ALL_REDUCE, 4, 2, COLLECTIVE_ANY, 4096, NULL).measured);
	/* One rank a host in place of two: half as many groups share its links, and the hosts decide which group is
	 * meant.
	 */
	m.devices_per_node = 1;
	NEAR(collective_time_s(RATES(&m), COLL_ALL_REDUCE, 2, 1, 1e6, NULL), 2e-4 + (2e-2 - 2e-4) / 2);
	CU_ASSERT_FALSE(collective_price(RATES(&m), COLL_ALL_REDUCE, 2, 1, COLLECTIVE_ANY, 4096, NULL).measured);
	/* The profile's ranks shared cores, and waited for them; two ranks a host still do. */
	CU_ASSERT_EQUAL_FATAL(profile_set_value(profile, PROFILE_BETWEEN_ALONE_LATENCY, 0.25, NULL), ST_OK);
	NEAR(collective_time_s(RATES(&m), COLL_ALL_REDUCE, 2, 1, 1e6, NULL), 0.5e-4 + (2e-2 - 2e-4) / 2);
	m.devices_per_node = 2;
	NEAR(collective_time_s(RATES(&m), COLL_ALL_REDUCE, 4, 2, 1e6, NULL), 1e-4 + 2 * (1e-2 - 1e-4));
	/* Half the rate of the network doubles what is not latency. */
	const struct what_if slow = {.network = 0.5};
	m.nodes = 2;
	const struct rates r = rates_what_if(&m, &slow);
	NEAR(collective_time_s(&r, COLL_ALL_REDUCE, 4, 1, 1e6, NULL), 1e-4 + 2 * (1e-2 - 1e-4));
	NEAR(collective_time_s(&r, COLL_ALL_REDUCE, 2, 1, 1e6, NULL), 1e-3);
	/* 1.5 MB leave each rank, and as many come: the link needs 7.5 ms of the 9.9. Work on 3 MB at 0.5 ns a byte is
	 * 1.5 ms of the rest, and stays at any rate; at 5 ns it would be all of the rest. */
	m.inter.Bps = 2e8;
	CU_ASSERT_EQUAL_FATAL(profile_set_value(profile, PROFILE_BETWEEN_S_PER_B, 0.5e-9, NULL), ST_OK);
	struct rates worked = rates_what_if(&m, &slow);
	NEAR(collective_time_s(&worked, COLL_ALL_REDUCE, 4, 1, 1e6, NULL), 1e-4 + 1.5e-3 + 2 * (9.9e-3 - 1.5e-3));
	CU_ASSERT_EQUAL_FATAL(profile_set_value(profile, PROFILE_BETWEEN_S_PER_B, 5e-9, NULL), ST_OK);
	worked = rates_what_if(&m, &slow);
	NEAR(collective_time_s(&worked, COLL_ALL_REDUCE, 4, 1, 1e6, NULL), 1e-4 + 2.4e-3 + 2 * 7.5e-3);
}

/* 1 MB moves in 10 ms alone. Beside compute its 1.5 MB both ways cost 4 ms more and its three messages 2 ms each: 20
 * ms. Of them the bytes take a fifth of compute, 4 ms, and polling another tenth. On a network of half the rate it is
 * 30 ms for 20, of which the 4 ms are less than a seventh. A message of 1 MB comes one way, and waits once. */
static void test_compute_between_hosts(void)
{
	mesh(1, 4);
	struct machine m = two_hosts();
	const double x[] = {1e4, 1e6}, y[] = {1e-4, 1e-2}, cap[RES_COUNT] = {0.9, 1, 1, 1};
	const struct activity gemm_use = {.weight = 1, .demand = {1}};
	double rate[2];
	CU_ASSERT_EQUAL_FATAL(profile_set_curve(profile, "all_gather.4", x, y, 2, NULL), ST_OK);
	CU_ASSERT_EQUAL_FATAL(profile_set_value(profile, PROFILE_BETWEEN_TURN_S, 2e-3, NULL), ST_OK);
	CU_ASSERT_EQUAL_FATAL(profile_set_value(profile, PROFILE_BETWEEN_COMM_S_PER_B, 4e-3 / (2 * 0.75e6), NULL),
		ST_OK);
	CU_ASSERT_EQUAL_FATAL(profile_set_value(profile, PROFILE_BETWEEN_WAIT_SHARE, 0.1, NULL), ST_OK);
	CU_ASSERT_EQUAL_FATAL(profile_set_value(profile, PROFILE_BETWEEN_S_PER_B, 4e-3 / (2 * 0.75e6), NULL), ST_OK);
	struct op_cost c = cost(&m, collective(COLL_ALL_GATHER, DIM_DP, 250000)); /* sends 3/4 of 1 MB */
	NEAR(c.alone_s, 1e-2);
	NEAR(c.use.held, 0.1); /* which the engine takes from compute, once for all transfers */
	maxmin_rates((const struct activity *[]){&gemm_use, &c.use}, 2, cap, rate);
	CU_ASSERT_DOUBLE_EQUAL(rate[0], 0.7, 1e-12);
	CU_ASSERT_DOUBLE_EQUAL(rate[1], 0.5, 1e-12);
	const double slow_y[] = {2e-4, 2e-2};
	CU_ASSERT_EQUAL_FATAL(profile_set_curve(profile, "all_gather.4", x, slow_y, 2, NULL), ST_OK);
	c = cost(&m, collective(COLL_ALL_GATHER, DIM_DP, 250000));
	maxmin_rates((const struct activity *[]){&gemm_use, &c.use}, 2, cap, rate);
	CU_ASSERT_DOUBLE_EQUAL(rate[0], 0.9 - 4.0 / 30, 1e-12);
	CU_ASSERT_DOUBLE_EQUAL(rate[1], 20.0 / 30, 1e-12);
	const double send_y[] = {1e-4, 8e-3}; /* and 4e-3 / 1.5 for the bytes, and 2e-3 */
	CU_ASSERT_EQUAL_FATAL(profile_set_curve(profile, "send.2.stride2", x, send_y, 2, NULL), ST_OK);
	program.mesh.size[DIM_PP] = 2;
	program.mesh.stride[DIM_PP] = 2;
	struct op message = collective(COLL_SEND, DIM_PP, 250000);
	message.message.own = 0;
	message.message.peer = 1;
	c = cost(&m, message);
	maxmin_rates((const struct activity *[]){&gemm_use, &c.use}, 2, cap, rate);
	CU_ASSERT_DOUBLE_EQUAL(rate[1], 8 / (10 + 4 / 1.5), 1e-12);
	NEAR(c.use.demand[RES_LINK_INTER], 0.5);
	m.inter.Bps *= 4; /* 1 MB in 2.5 ms of the host's link, while 8 ms pass on the slower one between racks */
	NEAR(cost(&m, message).use.demand[RES_LINK_INTER], 0.5 * 2.5 / 8);
	/* Two transfers share the link, not compute: of which the collective takes almost all by its bytes. */
	CU_ASSERT_EQUAL_FATAL(profile_set_value(profile, PROFILE_BETWEEN_S_PER_B, 1e-6, NULL), ST_OK);
	const struct activity gather_use = cost(&m, collective(COLL_ALL_GATHER, DIM_DP, 250000)).use,
			      message_use = cost(&m, message).use;
	maxmin_rates((const struct activity *[]){&gather_use, &message_use}, 2, cap, rate);
	CU_ASSERT_DOUBLE_EQUAL(rate[0], 1 / (1 + 0.5 * 2.5 / 8), 1e-12);
	CU_ASSERT_DOUBLE_EQUAL(rate[1], rate[0], 1e-12);
	/* Inside a host nothing of it. */
	mesh(1, 2);
	CU_ASSERT_EQUAL_FATAL(profile_set_curve(profile, "all_gather.2", x, y, 2, NULL), ST_OK);
	CU_ASSERT_EQUAL(cost(&m, collective(COLL_ALL_GATHER, DIM_DP, 250000)).use.held, 0);
}

static struct op inside(enum collective c)
{
	struct op op = collective(c, DIM_TP, 1 << 20);
	op.lane = LANE_MODEL_COMM;
	return op;
}

/* parallel.tensor_overlap: all but the stack's share of a tensor-parallel collective, or one of its pieces; of no other
 * collective; not where stepsim's own executor runs it, and not of a curve measured of that. */
static void test_tensor_overlap(void)
{
	mesh(4, 2);
	program.config.parallel.tensor = 4;
	struct machine m = gpu();
	struct op gather = inside(COLL_ALL_GATHER), gradients = collective(COLL_ALL_GATHER, DIM_DP, 1 << 20);
	double whole_s = cost(&m, gather).alone_s, data_s = cost(&m, gradients).alone_s;
	program.config.stack.tensor_exposed = 0.2;
	NEAR(cost(&m, gather).alone_s, whole_s);
	CU_ASSERT_EQUAL(cost(&m, gather).tile_overlap_s, 0);
	program.config.parallel.tensor_overlap = true;
	NEAR(cost(&m, gather).alone_s, whole_s); /* it moves as long as ever */
	NEAR(cost(&m, gather).tile_overlap_s, 0.8 * whole_s);
	NEAR(cost(&m, gradients).alone_s, data_s);
	CU_ASSERT_EQUAL(cost(&m, gradients).tile_overlap_s, 0);
	CU_ASSERT_EQUAL(cost(&m, inside(COLL_ALL_REDUCE)).tile_overlap_s, 0);
	program.config.stack.tensor_exposed = 0;
	NEAR(cost(&m, gather).tile_overlap_s, whole_s * 3 / 4);
	struct machine cores = host();
	NEAR(cost(&cores, gather).alone_s, collective_time_s(RATES(&cores), COLL_ALL_GATHER, 4, 1, 4 << 20, NULL));
	CU_ASSERT_EQUAL(cost(&cores, gather).tile_overlap_s, 0);
	m.profile = profile;
	profile->key.ranks_per_host = 8;
	const double x[] = {4e3, 4e8}, y[] = {1e-5, 1};
	CU_ASSERT_EQUAL_FATAL(profile_set_curve(profile, "all_gather.4", x, y, 2, NULL), ST_OK);
	NEAR(cost(&m, gather).alone_s, collective_time_s(RATES(&m), COLL_ALL_GATHER, 4, 1, 4 << 20, NULL));
	CU_ASSERT_EQUAL(cost(&m, gather).tile_overlap_s, 0);
}

/* Pieces go to the next rank: over a switch at the whole rate, without one over the links of a pair, of which NCCL's
 * rings use three. Two ranks have only those. */
static void test_next_rank(void)
{
	static const struct {
		const char *line;
		int64_t ranks;
		double more_s;
	} rows[] = {{"gpu:4 gh200-120 nvswitch", 4, 0}, {"gpu:4 gh200-120 mesh", 2, 0},
		{"gpu:4 gh200-120 mesh", 4, 0.75 * (4 << 20) * (1 / 123.6e9 - 1 / 370.8e9)}};
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct machine m;
		struct error e = {0};
		mesh(rows[i].ranks, 1);
		program.config.parallel.tensor = rows[i].ranks;
		CU_ASSERT_EQUAL_FATAL(machine_load(rows[i].line, 1, 4, &m, &e), ST_OK);
		struct op gather = inside(COLL_ALL_GATHER);
		gather.collective.elements = 1 << 20;
		const double plain_s = cost(&m, gather).alone_s;
		program.config.parallel.tensor_overlap = true;
		NEAR(cost(&m, gather).alone_s, plain_s + rows[i].more_s);
		machine_free(&m);
	}
}

/* The executor's messages hold their thread blocks: of a GPU with a profile, not where other software runs. */
static void test_message_holds(void)
{
	mesh(1, 1);
	program.mesh.size[DIM_PP] = 2;
	struct machine m = gpu(), cores = host();
	struct op op = collective(COLL_RECV, DIM_PP, 1 << 20);
	op.lane = LANE_RECV_PREV;
	op.message.own = 1;
	m.device.sms = 100;
	CU_ASSERT_EQUAL(cost(&m, op).use.held, 0);
	CU_ASSERT_EQUAL(cost(&cores, op).use.held, 0);
	m.profile = profile;
	const struct op_cost c = cost(&m, op);
	NEAR(c.use.held, MESSAGE_BLOCKS / (double)RATES(&m)->device.sms);
	NEAR(c.use.demand[RES_COMPUTE], c.use.held); /* a product beside it has the rest */
	NEAR(c.use.weight, 1 / (1 - c.use.held));
}

static void test_group_of_one(void)
{
	mesh(1, 1);
	struct machine m = gpu();
	struct op_cost c = cost(&m, collective(COLL_REDUCE_SCATTER, DIM_DP, 1 << 20));
	CU_ASSERT_EQUAL(c.alone_s, 0);
	CU_ASSERT_EQUAL(c.issue_s, 0);
	for (int r = 0; r < RES_COUNT; r++)
		CU_ASSERT_EQUAL(c.use.demand[r], 0);
}

static void test_unknown_link(void)
{
	mesh(1, 2);
	struct machine m = host();
	m.intra = (struct link_spec){0};
	struct op op = collective(COLL_ALL_REDUCE, DIM_DP, 1000);
	struct op_cost c;
	error = (struct error){0};
	CU_ASSERT(isinf(collective_time_s(RATES(&m), COLL_ALL_REDUCE, 2, 1, 4000, NULL)));
	CU_ASSERT_EQUAL(cost_op(&program, &op, RATES(&m), &c, &error), ST_INPUT);
	CU_ASSERT_PTR_NOT_NULL(strstr(error.text, "all_reduce over 2 ranks: no rate of the link"));
	profile_destroy(profile);
	profile = NULL;
}

/* A stack that scatters its messages: two tensor ranks send half of it each and gather the whole. With sequence
 * parallelism the message is a part already. */
static void test_scattered_message(void)
{
	mesh(2, 2);
	struct machine m = gpu();
	m.nodes = 1;
	program.config.parallel.tensor = 2;
	program.mesh.size[DIM_PP] = 2;
	program.mesh.stride[DIM_PP] = 4;
	struct op whole = collective(COLL_SEND, DIM_PP, 1 << 24), half;
	whole.message.peer = 1;
	half = whole;
	half.collective.elements /= 2;
	const double whole_s = cost(&m, whole).alone_s, half_s = cost(&m, half).alone_s,
		     gather_s = collective_time_s(RATES(&m), COLL_ALL_GATHER, 2, 1,
			     (double)(1 << 24) * dtype_bytes((enum dtype)whole.dtype), NULL);
	CU_ASSERT(half_s < whole_s && gather_s > 0);
	program.config.stack.scatters_messages = true;
	NEAR(cost(&m, whole).alone_s, half_s + gather_s);
	program.config.parallel.sequence_parallel = true;
	NEAR(cost(&m, whole).alone_s, whole_s);
	program.config.parallel = (struct parallel){0};
}

/* A stack that reduces gradients whole takes an all-reduce for the reduce-scatter of a bucket; other scatters, and
 * those of weights that are cut, remain. */
static void test_reduces_whole(void)
{
	mesh(1, 8);
	struct machine m = gpu();
	struct op scatter = collective(COLL_REDUCE_SCATTER, DIM_DP, 1 << 28), other = scatter;
	const struct op sum = collective(COLL_ALL_REDUCE, DIM_DP, 1 << 28);
	other.bucket = -1;
	const double part_s = cost(&m, scatter).alone_s, whole_s = cost(&m, sum).alone_s;
	CU_ASSERT_TRUE(whole_s > 1.9 * part_s);
	program.config.stack.reduces_whole = true;
	program.config.parallel.strategy = STRAT_ZERO2;
	NEAR(cost(&m, scatter).alone_s, whole_s);
	NEAR(cost(&m, other).alone_s, part_s);
	program.config.parallel.strategy = STRAT_FSDP;
	NEAR(cost(&m, scatter).alone_s, part_s);
}

UNIT_MAIN("cost of collectives", {"gradients reduced whole", test_reduces_whole},
	{"scattered messages", test_scattered_message}, {"ring over links", test_ring},
	{"gradients of 7 billion parameters", test_seven_billion}, {"a profile's collective", test_collective_curve},
	{"what a collective takes from compute", test_collective_use},
	{"groups between hosts", test_groups_between_hosts},
	{"compute that moving bytes takes", test_compute_between_hosts},
	{"tensor-parallel collectives beside products", test_tensor_overlap},
	{"pieces to the next rank", test_next_rank}, {"what a message holds of compute", test_message_holds},
	{"a group of one", test_group_of_one}, {"a link of unknown rate", test_unknown_link})
