/* An outcome made by hand, for tests of its reports. */
#ifndef STEPSIM_TESTS_UNIT_REPORT_CASE_H
#define STEPSIM_TESTS_UNIT_REPORT_CASE_H

#include <stdlib.h>
#include <string.h>

#include "report/report.h"
#include "tests/unit/harness.h"
#include "tests/unit/tiny_config.h"

static inline struct config tiny(void)
{
	struct config c = tiny_config();
	snprintf(c.model.name, sizeof c.model.name, "tiny");
	c.train.recompute_layers = AUTO;
	c.parallel.bucket_B = 25 * 1048576;
	c.parallel.first_bucket_B = 1 * 1048576;
	c.cluster = (struct cluster_config){.system = "auto", .nodes = 1};
	c.run = (struct run){.warmup = 3, .steps = 10, .timeout_s = 60, .verify = true};
	return c;
}

/* One side: 100 ms (times `scale`) with every kind of time in it, two classes of ops. */
static inline struct result side(double scale)
{
	struct result r = {
		.time = {.step_s = 0.1,
			.compute_s = 0.06,
			.exposed_comm_s = 0.01,
			.copy_s = 0.002,
			.host_s = 0.003,
			.bubble_s = 0.004,
			.optimizer_s = 0.02,
			.idle_s = 0.001,
			.comm_s = 0.04,
			.overlap = 0.75,
			.wait_s = 0.005},
		.tokens_per_s = 2560 / scale,
		.tokens_per_s_per_gpu = 1280 / scale,
		.tflops_per_gpu = 0.002,
		.mfu = 0.4,
		.hfu = 0.4,
		.interval90_s = {0.09, 0.11},
		.memory = {.weights_B = 1 << 20,
			.gradients_B = 1 << 20,
			.optimizer_B = 2 << 20,
			.activations_B = 3 << 20,
			.buffers_B = 1 << 19,
			.overhead_B = 1 << 19,
			.total_B = 8 << 20,
			.capacity_B = 1 << 30,
			.fits = true},
		.bottleneck = "compute",
		.steps = 10,
		.step_min_s = 0.09 * scale,
		.step_max_s = 0.12 * scale,
		.verified = 1,
	};
	for (double *t = &r.time.step_s; t <= &r.time.comm_s; t++)
		*t *= scale;
	r.time.class_s[CLASS_GEMM] = 0.05 * scale;
	r.time.class_n[CLASS_GEMM] = 12;
	r.time.class_s[CLASS_ALL_REDUCE] = 0.04 * scale;
	r.time.class_n[CLASS_ALL_REDUCE] = 2;
	r.class_bound[CLASS_ALL_REDUCE] = BOUND_LINK;
	return r;
}

/* Every op of role 0 one microsecond after the other; collectives wait 0.25 us of it. */
static inline struct timeline line_of(const struct program *p, uint32_t actors)
{
	struct timeline t = {.actors = actors};
	const struct role *r = &p->roles[0];
	for (uint32_t actor = 0; actor < actors; actor++) {
		for (uint32_t i = 0; i < r->ops.n; i++) {
			const struct op *op = &r->ops.at[i];
			struct span s = {.actor = actor,
				.op = i,
				.lane = op->lane,
				.class_ = (uint8_t)op_class_of(op),
				.phase = op->phase,
				.start_ps = i * 1000000LL,
				.end_ps = (i + 1) * 1000000LL};
			s.move_ps = s.start_ps + (op->kind == OP_COLLECTIVE ? 250000 : 0);
			CU_ASSERT_FATAL(vec_push(&t.spans, s));
		}
	}
	t.step_ps = (int64_t)r->ops.n * 1000000;
	return t;
}

struct fixture {
	struct program *program;
	struct result predicted, measured;
	struct timeline predicted_line, measured_line;
	struct outcome outcome;
};

static inline void set_up(struct fixture *f, bool measured)
{
	struct config c = tiny();
	struct error e = {0};
	memset(f, 0, sizeof *f);
	CU_ASSERT_EQUAL_FATAL(program_build(&c, &f->program, &e), ST_OK);
	f->predicted = side(1);
	f->measured = side(0.8);
	f->predicted_line = line_of(f->program, 1);
	f->measured_line = line_of(f->program, 2);
	f->outcome = (struct outcome){.program = f->program,
		.predicted = &f->predicted,
		.predicted_timeline = &f->predicted_line};
	f->outcome.system = json_pack("{s:s, s:s, s:{s:s}}", "name", "a machine", "source", "made up", "device", "name",
		"a device");
	if (measured) {
		f->outcome.measured = &f->measured;
		f->outcome.measured_timeline = &f->measured_line;
	} else {
		f->outcome.mode = "nobody asked";
	}
}

static inline void tear_down(struct fixture *f)
{
	timeline_free(&f->predicted_line);
	timeline_free(&f->measured_line);
	program_destroy(f->program);
	json_decref(f->outcome.system);
}

/* The table as text; the caller frees it. */
static inline char *text_of(const struct outcome *o,
	enum status (*write)(const struct outcome *, FILE *, struct error *))
{
	static char *text; /* static: gcc 12 takes what an inline function returns of its own for dangling */
	size_t len = 0;
	struct error e = {0};
	FILE *out = open_memstream(&text, &len);
	CU_ASSERT_PTR_NOT_NULL_FATAL(out);
	CU_ASSERT_EQUAL(write(o, out, &e), ST_OK);
	fclose(out);
	return text;
}

/* True when one line of `text` holds all the words, in order. */
static inline bool has_line(const char *text, const char *const *words, size_t n)
{
	for (const char *line = text; line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
		size_t len = strcspn(line, "\n"), found = 0;
		const char *at = line;
		while (found < n && (at = strstr(at, words[found])) && at + strlen(words[found]) <= line + len)
			at += strlen(words[found++]);
		if (found == n)
			return true;
	}
	printf("\n  no line with '%s' ... '%s' in:\n%s", words[0], words[n - 1], text);
	return false;
}

#define LINE(text, ...) \
	CU_ASSERT(has_line(text, (const char *const[]){__VA_ARGS__}, \
		sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *)))

#endif
