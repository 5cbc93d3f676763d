/* What a plan of a pipeline is composed of, measured on short programs: the program builder, the prices and the engine are those of the full prediction (sim/predict.h).
 *
 * Each figure is a line in the layers of a part of the model, through programs with one and two layers a part. Stage 0 has the embedding, stage 1 the head.
 */
#ifndef STEPSIM_SIM_PIECES_H
#define STEPSIM_SIM_PIECES_H

#include "sim/predict.h"
#include "step/schedule.h"

struct line {
	double at0, each; /* value = at0 + each x layers */
};
double line_at(struct line l, int64_t layers);
/* Of values with `from` layers and with one more. */
struct line line_through(int64_t from, double a, double b);

/* The host thread is ahead when it needs no more than this part of a step. */
#define HOST_AHEAD 0.8

enum { END_FIRST, END_LAST, END_COUNT }; /* the stage with the embedding, the stage with the head */

/* What a stage does with a micro-batch, and what is kept of one; no data parallelism. */
struct block_pieces {
	struct line begin_s[END_COUNT][ACTION_KIND_COUNT];   /* first micro-batch: nothing accumulates, weights are cast */
	struct line steady_s[END_COUNT][ACTION_KIND_COUNT];  /* any other */
	struct line compute_s[END_COUNT];                    /* in a steady micro-batch the compute lane is busy */
	struct line host_s[END_COUNT];                       /* the host thread issues a micro-batch */
	struct line kept_B[END_COUNT];                       /* each micro-batch in flight keeps, with two layers or more */
	double kept_of_one_B[END_COUNT];                     /* with one */
	struct line static_B[END_COUNT], gradients_B[END_COUNT], optimizer_B[END_COUNT]; /* what is there always, and of that */
	bool straight;                                       /* the host thread is ahead, and nothing else bends the lines */
};

/* The peak under a schedule, without what micro-batches in flight keep and what is there always. */
struct memory_pieces {
	double passing_B[END_COUNT];
	double flights; /* micro-batches, of a part each, that were in flight on the first stage */
};

/* What data parallelism adds. */
struct data_pieces {
	struct line gathered_s[END_COUNT]; /* the first forward ends later, as weights are still gathered */
	struct line slowed_s[END_COUNT];   /* the last backward ends later, as reductions run beside it */
	struct line comm_s[END_COUNT];     /* reductions move */
	double message_s;                  /* a gradient of the last micro-batch moves to the stage before */
	struct line reduce_s[END_COUNT];   /* from the last backward's end to the optimizer's beginning */
	struct line optimize_s[END_COUNT]; /* from there to the end */
	struct line least_B[END_COUNT];    /* peak with one micro-batch in flight */
};

/* A plan without a pipeline, by layers: memory alone, and what is there always, for any micro-batch. */
struct flat_memory {
	struct line whole_B, shard_B; /* peak: whole + shard / ranks that share it */
};
struct line flat_memory_of(const struct flat_memory *m, const struct config *c);

struct flat_pieces {
	struct line step_s, micro_s;                       /* a step of FLAT_MICROS micro-batches (or all that there are), each further one */
	struct line compute_s, exposed_comm_s, optimizer_s; /* of step_s */
	struct line host_s;
	bool straight;
};
#define FLAT_MICROS 2
/* Of programs with so many layers and one more: a plan of fewer is not put together from them. */
int64_t flat_layers(const struct config *c);

/* c: the resolved plan. */
enum status block_pieces_measure(const struct config *c, const struct machine *m, struct block_pieces *out, struct error *e);
enum status memory_pieces_measure(const struct config *c, const struct block_pieces *block, struct memory_pieces *out, struct error *e);
enum status data_pieces_measure(const struct config *c, const struct machine *m, const struct block_pieces *block, struct data_pieces *out, struct error *e);

/* Through programs of so many layers and of one more; flat_memory_measure: with all layers of that one alone. */
enum status flat_static_measure(const struct config *c, int64_t layers, struct flat_memory *out, struct error *e);
enum status flat_memory_measure(const struct config *c, int64_t layers, struct flat_memory *out, struct error *e);
enum status flat_pieces_measure(const struct config *c, const struct machine *m, struct flat_pieces *out, struct error *e);

/* What the micro-batches in flight keep at most on the first or the last stage of a plan with so many stages; < 0 when out of memory. */
double most_kept_B(const struct config *c, const struct block_pieces *b, int end, struct error *e);
/* One of them, of one part, on the first stage. */
double of_flight_B(const struct config *c, const struct block_pieces *b);

/* The configs that the above are measured on, all that does not matter to them set to one value: equal bytes, equal pieces. `layers` of each stage. */
void block_config(const struct config *c, int64_t layers, int64_t micro_batches, struct config *out);
void memory_config(const struct config *c, struct config *out);
void data_config(const struct config *c, int64_t layers, struct config *out);
void flat_memory_config(const struct config *c, int64_t layers, struct config *out); /* for any number of shards */
void flat_static_config(const struct config *c, int64_t layers, struct config *out);
void flat_config(const struct config *c, int64_t layers, int64_t micro_batches, struct config *out);

/* What a role has always: of one component, or of all on the device (COMP_KIND_COUNT) with what the stack holds. */
double static_of_role_B(const struct role *r, enum component only);

#endif
