/* What feeds the device: the input, the data loader (step/program.h states its rule), the stack's pauses and the
 * synchronisation. */
#include <stdlib.h>

#include "step/builder/build.h"
#include "step/inputs.h"

int64_t program_loads_ahead(const struct config *c)
{
	const struct data *d = &c->data;
	return d->workers * d->prefetch < c->micro_batches ? d->workers * d->prefetch : c->micro_batches;
}

struct view feed_view(const struct builder *b, enum input_part part)
{
	return view_at(b->now->input, inputs_offset_B(b->c, b->c->train.micro_batch, part));
}

static bool loads(const struct builder *b) { return b->c->data.load_time_s > 0; }

/* data.bytes can raise what a micro-batch brings (step/inputs.h). */
void feed_begin(struct builder *b)
{
	struct role *r = b->r;
	uint64_t least_B = inputs_B(b->c, b->c->train.micro_batch),
		 stride_B = b->c->data.bytes > least_B ? (b->c->data.bytes + 3) / 4 * 4 : least_B;
	r->input_stride_B = stride_B;
	r->input = build_buffer(b, COMP_HOST, DT_INT32, (int64_t)(stride_B / 4) * b->c->micro_batches, true);
	if (!loads(b))
		return;
	if (!(b->batch = malloc((size_t)b->c->micro_batches * sizeof *b->batch))) {
		build_nomem(b, "the step program");
		return;
	}
	for (int64_t i = 0; i < b->c->micro_batches; i++)
		b->batch[i] = build_buffer(b, COMP_HOST, DT_INT32, (int64_t)(stride_B / 4), true);
}

static void load(struct builder *b, int64_t micro, enum lane lane)
{
	const int16_t here = b->micro;
	b->micro = (int16_t)micro;
	struct op op = build_new(b, OP_LOAD, "batch");
	op.lane = (uint8_t)lane;
	op.copy.bytes = (int64_t)b->r->input_stride_B;
	build_with(b, &op, view_at(b->r->input, (uint64_t)micro * b->r->input_stride_B), view_of(b->batch[micro]));
	b->micro = here;
}

static void add_pause(struct builder *b, int64_t of_step, const char *what)
{
	struct op op = build_new(b, OP_PAUSE, what);
	op.lane = LANE_HOST;
	op.pause.of_step = of_step;
	build_after(b, LANE_HOST, build_last(b, LANE_COMPUTE));
	build_op(b, &op, NULL);
	build_after(b, LANE_COMPUTE, build_last(b, LANE_HOST));
}

static void copy(struct builder *b, struct view from)
{
	const uint64_t bytes = b->r->input_stride_B;
	b->now->input = build_buffer(b, COMP_BUFFERS, DT_INT32, (int64_t)(bytes / 4), false);
	struct op op = build_new(b, OP_COPY, "input");
	op.lane = LANE_COPY;
	op.flags |= b->c->data.pin_memory ? 0 : OP_PAGEABLE;
	op.copy.bytes = (int64_t)bytes;
	build_with(b, &op, from, view_of(b->now->input));
}

void feed_micro_begin(struct builder *b)
{
	if (b->c->stack.micro_batch_s > 0 && b->has_embedding)
		add_pause(b, 0, "micro-batch");
	if (b->st || !loads(b)) {
		copy(b, view_at(b->r->input, (uint64_t)b->micro * b->r->input_stride_B));
		return;
	}
	const int64_t ahead = program_loads_ahead(b->c);
	if (ahead == 0) {
		build_after(b, LANE_HOST, build_last(b, LANE_COMPUTE));
		load(b, b->micro, LANE_HOST);
	}
	copy(b, view_of(b->batch[b->micro]));
	if (ahead > 0) {
		build_after(b, LANE_LOAD, build_last(b, LANE_COPY)); /* the copy makes room for one more batch */
		load(b, (b->micro + ahead) % b->c->micro_batches, LANE_LOAD);
	}
}

void feed_end(struct builder *b)
{
	if (b->c->stack.step_s > 0)
		add_pause(b, 1, "step");
	if (b->c->train.sync_every == 0)
		return;
	struct op op = build_new(b, OP_SYNC, "step");
	op.lane = LANE_HOST;
	for (int l = 0; l < LANE_COUNT; l++)
		if (l != LANE_HOST && l != LANE_LOAD)
			build_after(b, LANE_HOST, build_last(b, (enum lane)l));
	build_op(b, &op, NULL);
}
