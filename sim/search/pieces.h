/* The pieces that a plan's step is put together from. They are measured on short programs with the program builder, the
 * prices and the engine of the full prediction (sim/engine/predict.h).
 *
 * Each figure is a line over the layers of a part of the model, through programs with one and two layers a part. Stage
 * 0 has the embedding, stage 1 the head.
 */
#ifndef STEPSIM_SIM_PIECES_H
#define STEPSIM_SIM_PIECES_H

#include "sim/engine/predict.h"
#include "step/schedule.h"

struct line {
	double base, per_layer; /* value = base + per_layer x layers */
};
double line_at(struct line l, int64_t layers);
/* Returns the line through value a at `from` layers and value b at one layer more. */
struct line line_through(int64_t from, double a, double b);

enum { END_FIRST, END_LAST, END_COUNT }; /* the stage with the embedding, the stage with the head */

/* A stage's times for a micro-batch and the memory that it keeps of one, without data parallelism. */
struct block_pieces {
	/* Time of each action. begin_s: in the first micro-batch, where nothing accumulates and weights are cast.
	 * steady_s: in any other. */
	struct line begin_s[END_COUNT][ACTION_KIND_COUNT], steady_s[END_COUNT][ACTION_KIND_COUNT];
	struct line compute_s[END_COUNT]; /* the compute lane is busy in a steady micro-batch */
	struct line host_s[END_COUNT];    /* the host thread issues a micro-batch */
	struct line kept_B[END_COUNT];    /* each micro-batch in flight keeps, with two layers or more */
	double kept_of_one_layer_B[END_COUNT];
	struct line static_B[END_COUNT], gradients_B[END_COUNT],
		optimizer_B[END_COUNT]; /* the latter two: of static_B */
	bool linear;                    /* the host thread is ahead, and nothing else bends the lines */
};

/* The peak under a schedule, less static memory and what micro-batches in flight keep. */
struct memory_pieces {
	double passing_B[END_COUNT];
	double in_flight; /* micro-batches, of a part each, that were in flight on the first stage */
};

/* Times that data parallelism adds. */
struct data_pieces {
	struct line gathered_s[END_COUNT]; /* the first forward ends later, as weights are still gathered */
	struct line slowed_s[END_COUNT];   /* the last backward ends later, as reductions run beside it */
	struct line comm_s[END_COUNT];     /* reductions move */
	double message_s;                  /* a gradient of the last micro-batch moves to the stage before */
	struct line reduce_s[END_COUNT];   /* from the last backward's end to the optimizer's beginning */
	struct line optimize_s[END_COUNT]; /* from there to the end */
	struct line least_B[END_COUNT];    /* peak with one micro-batch in flight */
};

/* Memory of a plan without a pipeline, by layers: whole_B + shard_B / ranks that share it. */
struct flat_memory {
	struct line whole_B, shard_B;
};
struct line pieces_flat_memory(const struct flat_memory *m, const struct config *c);

/* Times of a plan without a pipeline, by layers. */
struct flat_pieces {
	/* step_s: of a step of FLAT_MICRO_BATCHES micro-batches, or of all where there are fewer. micro_s: of each
	 * further one. */
	struct line step_s, micro_s;
	struct line compute_s, exposed_comm_s, optimizer_s; /* of step_s */
	struct line host_s;
	bool linear; /* as block_pieces.linear */
};
#define FLAT_MICRO_BATCHES 2

/* Returns the layers of the shorter of the two programs that a plan without a pipeline is measured on. A plan of fewer
 * layers is not put together from them. */
int64_t pieces_flat_layers(const struct config *c);

/* The functions below take the resolved plan as c and fill *out. They fail with ST_RUN when memory is short, and as
 * program_build and predict_timeline do. */
enum status pieces_measure_block(const struct config *c, const struct machine *m, struct block_pieces *out,
	struct error *e);
enum status pieces_measure_memory(const struct config *c, const struct block_pieces *block, struct memory_pieces *out,
	struct error *e);
enum status pieces_measure_data(const struct config *c, const struct machine *m, const struct block_pieces *block,
	struct data_pieces *out, struct error *e);

/* Static memory alone, for any micro-batch; then the peak. Each is measured on programs of `layers` layers and of one
 * more; pieces_measure_flat_memory takes one program where `layers` are all that the plan has. */
enum status pieces_measure_flat_static(const struct config *c, int64_t layers, struct flat_memory *out,
	struct error *e);
enum status pieces_measure_flat_memory(const struct config *c, int64_t layers, struct flat_memory *out,
	struct error *e);
enum status pieces_measure_flat(const struct config *c, const struct machine *m, struct flat_pieces *out,
	struct error *e);

/* Returns the most that the micro-batches in flight keep on the first or the last stage (`end`) of a plan, in bytes;
 * < 0 when memory is short. */
double pieces_peak_kept_B(const struct config *c, const struct block_pieces *b, int end, struct error *e);
/* Returns the bytes that one micro-batch of one part keeps on the first stage. */
double pieces_in_flight_B(const struct config *c, const struct block_pieces *b);

/* The configs that pieces are measured on. Keys that do not matter to a piece get one fixed value, so that equal bytes
 * mean equal pieces. `layers`: of each stage. */
void pieces_block_config(const struct config *c, int64_t layers, int64_t micro_batches, struct config *out);
void pieces_memory_config(const struct config *c, struct config *out);
void pieces_data_config(const struct config *c, int64_t layers, struct config *out);
void pieces_flat_memory_config(const struct config *c, int64_t layers, struct config *out); /* for any shards */
void pieces_flat_static_config(const struct config *c, int64_t layers, struct config *out);
void pieces_flat_config(const struct config *c, int64_t layers, int64_t micro_batches, struct config *out);

/* Returns the static memory of a role: of one component, or (COMP_KIND_COUNT) of all on the device with what the stack
 * holds. */
double pieces_static_B(const struct role *r, enum component only);

#endif
