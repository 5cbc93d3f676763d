/* The cost of an op on a machine: its time when it runs alone, and its demand on the resources that it shares with
 * other ops. */
#ifndef STEPSIM_SIM_COST_H
#define STEPSIM_SIM_COST_H

#include <stdbool.h>

#include "sim/price/activity.h"
#include "sim/price/collective.h"
#include "sim/price/rates.h"
#include "step/program.h"
#include "step/result.h"

struct op_cost {
	double alone_s;        /* the time when nothing else runs; on a host device with the call */
	double issue_s;        /* the host thread's time to launch it */
	double tile_overlap_s; /* the part of alone_s that products may hide (sim/engine/tile_overlap.h) */
	enum bound bound; /* compute, memory, latency (the call or the launch lasts longer than the work), link, host */
	double rel_sigma; /* relative uncertainty (one standard deviation) of alone_s: the profile's residual, or the
	                     catalogue's */
	bool holds;       /* the host thread issues nothing more until it has ended */
	double capped;    /* where a power limit holds the op down: its clock over the burst clock; else 0 */
	/* of a profile of GPUs, for the clock that its power limit allows (sim/price/power.h) */
	double burst_s;            /* alone_s at the burst clock */
	double clocked_s, spare_s; /* its part that the clock stretches, and how much of that memory hides */
	double matrix_J, byte_J;   /* at the sustained clock, beyond idle: of arithmetic; else of traffic */
	bool guessed;              /* priced from peak rates, as the profile has no entry for it */
	struct activity use;
};

/* Fills the cost of an op. It depends on the op's kind, formats, flags, group, lane and dimensions, and on whether it
 * is of a bucket, an adapter, images, frozen weights or dropout; not on its phase, layer or micro-batch.
 *
 *   with a profile   its fits and curves (step/work.h), on a GPU at least bytes over memory bandwidth; at the
 *                    burst clock (sim/price/power.h has the limit); its launch on the host thread
 *   without          the roofline of the shares that the device reaches of its datasheet rates; a launch on the host
 *                    thread for each kernel
 *   host optimizer   bytes over the rate that the host's cores are known to reach (GPU machines, LANE_HOST)
 *   host's own work  data loading, the stack's pauses and synchronisation, as the config says
 *
 * Fails with ST_INPUT when the machine cannot run the op: a format that the device lacks, a link of unknown rate. */
enum status cost_op(const struct program *p, const struct op *op, const struct rates *r, struct op_cost *out,
	struct error *e);

/* Returns the rate at which a rank's update on the host reads and writes memory, while the host's other ranks update
 * too (train.offload, GPU machines). Hosts differ from it by cost.host_update_factor (configs/model), either way. */
double cost_host_update_Bps(const struct program *p, const struct rates *r);

/* True where parallel.tensor_overlap hides tensor-parallel collectives behind the products around them: on GPUs.
 * cost_op hides none that has a measured curve, as stepsim's own execution does not overlap them. */
bool cost_hides_tensor(const struct program *p, const struct rates *r);

/* Returns the stride of groups of two that have the link of two ranks, with coordinates `from` and `to` along a
 * dimension whose neighbours are `stride` ranks apart. Ranks on two hosts get the stride of neighbouring hosts, with
 * all devices of a host sending at once; on cores, where links between distant hosts may be measured, their own. The
 * first ranks of the mesh decide. */
int64_t pair_stride(const struct rates *r, int64_t stride, int64_t from, int64_t to);

/* Returns by how much a message between two hosts is faster than those of pair_stride, where all devices of a host
 * send: only the ranks of one pipeline stage do, `stride` neighbours, and a NIC serves those beside it. At least 1. */
double stage_relief(const struct rates *r, int64_t stride, struct error *e);

#endif
