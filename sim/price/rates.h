/* The rates that ops and collectives are priced from.
 *
 * rates_of turns a machine, with its profile or its catalogue entry, into one immutable struct. Pricing reads nothing
 * else of the machine. rates_what_if is the only function that scales: a caller asks for a machine that differs by a
 * struct what_if, and gets rates that already have its factors in them. Making rates allocates nothing and takes a few
 * microseconds: make them once a machine or once a simulation, and pass a const pointer. Several threads may read one.
 *
 * Units: seconds, bytes, FLOP; rates in B/s and FLOP/s.
 */
#ifndef STEPSIM_SIM_RATES_H
#define STEPSIM_SIM_RATES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/dtype.h"
#include "step/program.h"
#include "step/result.h"
#include "step/work.h"
#include "topology/machine.h"

/* A request: how many times as fast (the first four) or as long (the last two) as on the real machine. 0: as there. */
struct what_if {
	double compute, memory; /* arithmetic; memory bandwidth */
	double inside, network; /* rates of the links inside a node, and between nodes */
	double latency;         /* of a message or a collective of no bytes */
	double launch;          /* the host's time for a launch or a call */
};

struct rates {
	const struct machine *machine; /* borrowed: its names, its memory and the graph behind rates_group, no rates */
	const struct parameters *parameters; /* borrowed: the model's constants */
	bool is_host;                        /* the devices are cores of the host, else GPUs */
	bool measured;                       /* a profile of this machine is attached */
	bool link_engines;                   /* of the device: collectives take nothing of what computes */
	int64_t nodes, devices_per_node;

	/* one device */
	struct work_device device;           /* for work_of (step/work.h); SMs as measured, else the datasheet's */
	double matrix_flop_per_s[DT_COUNT];  /* datasheet; 0: the device does not have the format */
	double product_flop_per_s[DT_COUNT]; /* what large products reach with whole tiles on all SMs */
	/* Factor on a product's time where rows are no whole multiples of parameters->gpu.aligned_B; [1]: nor of
	 * half_aligned_B. */
	double unaligned_slower[DT_COUNT][2];
	double repeated_data; /* factor on it where every input is the same token (stack.repeated_data) */
	double batched_flop_per_s[DT_COUNT]; /* what the batched products of naive attention reach */
	double attention8_share[2]; /* of the fp8 rate: flash attention in fp8, forward and backward; 0: not known */
	double attention_share[KERNEL_COUNT][2]; /* of matrix_flop_per_s: a flash kernel forward, backward */
	double chip_devices;  /* that the software sees of a chip, each with its own rows; at least 1 */
	int64_t matrix_array; /* rows and columns of the systolic array that multiplies; 0: it has none */
	double exp_per_s;     /* exponentials of all SMs; 0: their number or their clock is not known */
	double vector_flop_per_s, memory_Bps; /* memory_Bps: as streaming kernels reach it */
	double sm_clocks_per_s;               /* of all SMs; 0: not known */
	double unvectorized_per_s;            /* elements that pass a kernel which is not vectorized; 0: not known */
	double reduced_Bps;                   /* of kernels that sum rows or columns; 0: not known */
	double fp4_per_s[2];      /* elements that torchao's kernels make NVFP4; [1]: of gradients; 0: not known */
	double added_rows_per_s;  /* of a matrix, for a bias's gradient; 0: not known */
	double summed_rows_per_s; /* of a layer norm, summed for its weights' gradients; 0: not known */
	struct power_cap {
		double J_per_flop;          /* beyond idle, of products that the power limit held down; 0: none was */
		double clock;               /* their clock over the burst clock */
	} power_cap[DT_COUNT];              /* by operands, of a profile's products */
	double power_limit_W, power_idle_W; /* of the board; limit 0: the profile does not say both */
	double launch_s;                    /* the host's time for one launch; on a host device for one call */
	double issue_s[OP_KIND_COUNT]; /* the host's time for one op of a kind, of a GPU's profile; 0: as launch_s */
	double copy_Bps[2];            /* between host and device, pinned: to the device, to the host */
	double cores;                  /* of a host device */
	double overlap_compute, overlap_comm; /* rates of a product and a collective that run together, relative to
	                                         alone; 0: not measured */
	struct overlap_between {
		double turn_s;          /* lost by each message of a collective beside compute; < 0: not measured */
		double comm_s_per_B;    /* lost by it beside compute for each byte that comes or goes */
		double compute_s_per_B; /* lost by compute for it */
		double wait_share;      /* of compute, lost while a collective waits for others */
		double alone_latency;   /* factor on latency where a host has one rank, of a profile of several */
	} between;

	/* links */
	struct link_spec intra, inter; /* of one device (topology/machine.h) */
	bool only_pairs;               /* intra and inter are all that is known of the links */
	bool path_is_measured;         /* the profile has the path between two ranks */
	struct network_spec network;
	/* what NCCL's choice depends on */
	bool has_links; /* the hosts' link graph is known */
	bool amd_cpus, peer_to_peer;
	int64_t compute_capability, nvlink_links, box_gpus;

	/* factors of the what_if, and of what logs said of the links, on times that are not made here: the stack's and
	 * NCCL's latencies, a profile's entries
	 */
	double launch_factor, latency_factor;
	double inside_factor, network_factor; /* of rates */
	double entry_factor[BOUND_COUNT];     /* of a profile's time, by what it is spent on */
	double placement_factor;              /* of all compute of a profile that was measured on another placement */
};

/* Returns the machine's rates. They borrow the machine and its profile. */
struct rates rates_of(const struct machine *m);
/* Returns the rates of a machine that differs from `m` by the factors of `w`. */
struct rates rates_what_if(const struct machine *m, const struct what_if *w);

/* ---- links ---- */

/* As machine_group and machine_exit (topology/machine.h), of these rates. */
enum status rates_group(const struct rates *r, int64_t size, int64_t stride, struct group *out, struct error *e);
enum status rates_exit(const struct rates *r, double *out_Bps, struct error *e);

/* ---- a profile's entries (rates_profile.c) ---- */

struct measured_time {
	double time_s;
	enum bound bound;
	double rel_sigma; /* relative uncertainty, one standard deviation */
};

/* Each returns false where the profile has no such entry, or where there is no profile. `bound_of` says what each term
 * of the fit is spent on; `bytes` is what the op moves, which tells memory from arithmetic. */
bool rates_fit(const struct rates *r, const struct work *w, const uint8_t bound_of[WORK_TERMS],
	struct measured_time *out);
bool rates_curve(const struct rates *r, const struct work *w, double bytes, struct measured_time *out);

/* Fills power_cap and the board's power of a profile. */
void rates_power(const struct profile *p, struct rates *out);

/* The time of a collective over `size` ranks by the measured curve of the nearest group size k, and what it takes with
 * no bytes (sim/price/collective.h). */
struct measured_collective {
	double time_s, empty_s;
	bool same_size; /* k is `size`, and its ranks lie as those of the group do */
};
bool rates_collective(const struct rates *r, enum collective c, int64_t size, int64_t stride, double bytes,
	struct measured_collective *out);

#endif
