/* The evaluator's own declarations, shared by its files (sim/search/evaluate.h): the pieces, their cache, and the two
 * ways to put a plan together.
 *
 * Pieces are measured on short programs with the program builder, the prices and the engine of the full prediction
 * (sim/engine/predict.h). Each figure is a line over the layers of a part of the model: over their repeats, which are
 * layers where all are alike.
 */
#ifndef STEPSIM_SIM_EVALUATOR_H
#define STEPSIM_SIM_EVALUATOR_H

#include "sim/price/price.h"
#include "sim/price/rates.h"
#include "sim/search/evaluate.h"
#include "sim/search/piece_table.h"
#include "sim/search/pipeline_walk.h"

struct line {
	double base, each; /* value = base + each x repeats of the layers (struct layer_order) */
};
double line_at(struct line l, int64_t repeats);
/* Returns the line through value a at `from` repeats and value b at one more. */
struct line line_through(int64_t from, double a, double b);

/* A stage's times for a micro-batch and the memory that it keeps of one, without data parallelism. */
struct block_pieces {
	/* Time of each action. begin_s: in the first micro-batch, where nothing accumulates and weights are cast.
	 * steady_s: in any other. */
	struct line begin_s[END_COUNT][PASS_COUNT], steady_s[END_COUNT][PASS_COUNT];
	struct line host_s;            /* the host thread issues a micro-batch */
	struct line kept_B[END_COUNT]; /* each micro-batch in flight keeps, with two repeats or more */
	double kept_of_one_B[END_COUNT];
	struct line static_B[END_COUNT], gradients_B[END_COUNT],
		optimizer_B[END_COUNT]; /* the latter two: of static_B */
	bool linear;                    /* the host thread is ahead, and nothing else bends the lines */
};

/* ---- the cache of pieces (sim/search/evaluate.c) ---- */

/* All that the peak of micro-batches in flight on a plan's first or last stage (`end`) depends on. Words alone: padding
 * would be hashed too. */
struct in_flight_key {
	int64_t schedule, stages, chunks, micro_batches, expert_overlap, end;
	double kept_B[2]; /* of a micro-batch and a part: a part between, the part with the table */
};

struct evaluator {
	const struct machine *m;
	struct rates rates;   /* of m */
	struct program shape; /* without roles: the costs of single messages are asked with it */
	struct config plan;   /* resolved */
	/* What follows from the plan's model alone: found once for all plans of the model (evaluator_know). */
	struct model model;
	struct layer_order order;
	double parameters, expert_parameters;
	struct config small;            /* the reduced config that a piece is measured on */
	struct pipeline walk;           /* the pipeline that is walked */
	struct in_flight_key in_flight; /* the peak that is asked for */
	struct piece_table *pieces;
	bool owns_pieces;
	struct stack stack; /* of v->small when it was hashed last; its hash */
	uint64_t stack_hash[2];
	struct prices prices; /* of the programs that the piece at hand is measured on */
	bool only_fold, exact_memory;
	uint64_t below_B; /* evaluator_time_below */
};

/* Fills a zeroed piece of v->plan. May overwrite v->small. The programs whose times it reads are alike as price_further
 * wants them. Fails with ST_RUN when memory is short, and as program_build and predict_timeline do. */
typedef enum status piece_measure(struct evaluator *v, void *piece, struct error *e);

/* Returns the piece of `size` bytes that depends on the `bytes` bytes at `of`, a multiple of 8; measures it where it is
 * not known. The table owns it. NULL: failed, as e says. */
const void *evaluator_find(struct evaluator *v, piece_measure *measure, size_t size, const void *of, size_t bytes,
	struct error *e);
/* The same of v->small, less what serves messages alone, and less the cluster, which all plans share. Keys that do not
 * matter to a piece have one fixed value there, so that equal bytes mean equal pieces. */
const void *evaluator_find_config(struct evaluator *v, piece_measure *measure, size_t size, struct error *e);

/* Finds what follows from the model of v->plan, if that is another one than before. */
void evaluator_know(struct evaluator *v);

/* Copies what plans of one evaluator and model differ in. All else, the cluster above all, is the same in v->plan,
 * v->small and v->shape.config. */
void evaluator_copy(struct config *to, const struct config *from);

/* Returns false where v->plan is sure to be predicted. */
bool evaluator_folds(const struct evaluator *v);

/* ---- short programs and their pieces (sim/search/pieces.c) ---- */

#define S_PER_PS 1e-12
/* So many, and one more, share buffers and overlap as any number does; one alone may not. */
#define STEADY_REPEATS 2
#define SHORT_MICRO_BATCHES \
	3 /* the first accumulates nothing, the last one's gradients may be completed: the one between is steady */

struct pass_time {
	int64_t from_ps, to_ps; /* from_ps < 0: none */
};

struct short_stage {
	struct pass_time pass[PASS_COUNT][SHORT_MICRO_BATCHES];
	int64_t comm_ps, message_ps, optimizer_from_ps, to_ps; /* optimizer_from_ps < 0: none */
	double peak_B, static_B, gradients_B, optimizer_B;
};

struct short_run {
	struct short_stage stage[END_COUNT]; /* without a pipeline the first alone */
	double step_s, host_s;
};

/* Builds the program of v->small and reads its memory, its times, or both. Fails with ST_RUN when memory is short, and
 * as program_build and predict_timeline do. */
enum { READ_MEMORY = 1, READ_TIMES = 2 };
enum status pieces_run_short(struct evaluator *v, unsigned read, struct short_run *out, struct error *e);
/* Returns the static memory of a role: of one component, or (COMP_KIND_COUNT) of all on the device with what the stack
 * holds. */
double pieces_static_B(const struct role *r, enum component only);
/* True where the host thread does not set the pace of a short program. */
bool pieces_host_is_ahead(const struct evaluator *v, const struct short_run *run);

/* Gives buckets one fixed size, where a program does not depend on it (evaluator_find_config). */
void pieces_forget_buckets(struct config *c);
/* Makes a config of one micro-batch the same for any size of it, where static memory alone is read. */
void pieces_forget_micro_batch(struct config *c);
/* Returns the fewest replicas of a stage whose ranks can share its experts: 1 without experts. */
int64_t pieces_replicas(const struct config *c);
/* Fills the config of v->plan on two stages without data parallelism, or with it. `repeats`: of the layers, on each
 * stage. */
void pieces_block_config(const struct evaluator *v, int64_t repeats, int64_t micro_batches, struct config *out);
void pieces_data_config(const struct evaluator *v, int64_t repeats, struct config *out);
/* Returns the block pieces of v->plan. NULL: failed, as e says. */
const struct block_pieces *pieces_find_block(struct evaluator *v, struct error *e);

/* ---- a plan ---- */

/* Returns the factor on times of pieces where the plan has fewer nodes than the machine (stragglers_slowdown). */
double evaluator_scale(const struct evaluator *v);
/* Fills memory_B and fits from the peak of the step's own buffers. */
void evaluator_set_memory(const struct evaluator *v, double peak_B, struct evaluation *out);
/* Returns, and sets, whether a plan that needs that memory at least is dominated (evaluator_time_below), also where
 * it turns out that it does not fold and is predicted. */
bool evaluator_dominates(const struct evaluator *v, struct evaluation *out);

/* Evaluate v->plan, which is resolved and folds. out->folded is false where it fits but the host thread sets the pace.
 */
enum status evaluate_pipeline(struct evaluator *v, struct evaluation *out, struct error *e);
enum status evaluate_flat(struct evaluator *v, struct evaluation *out, struct error *e);
/* The same of a plan without a pipeline whose buckets close at other parameters in each layer. *out stays as it is
 * where they do not come to the same ones again within a few layers. */
enum status evaluate_spanning(struct evaluator *v, struct evaluation *out, struct error *e);

/* Returns the repeats of the shorter of the two programs that a plan without a pipeline is measured on. A plan of fewer
 * does not fold. */
int64_t flat_repeats(const struct evaluator *v);

#endif
