#include "report/import/train_log_lines.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

#define MIB 1048576.0

bool train_log_number(const char *line, const char *word, double *out)
{
	static const char letters[] = "KMBT";
	const char *at = strstr(line, word), *letter;
	char digits[64];
	size_t n = 0;
	if (!at)
		return false;
	at += strlen(word);
	at += strspn(at, " \t");
	for (; (isdigit((unsigned char)*at) || strchr(",.-+eE", *at)) && *at && n + 1 < sizeof digits; at++)
		if (*at != ',')
			digits[n++] = *at;
	digits[n] = '\0';
	char *end;
	*out = strtod(digits, &end);
	if (end == digits || *end || !isfinite(*out))
		return false;
	if (*at && (letter = strchr(letters, *at)) && !isalpha((unsigned char)at[1]))
		*out *= pow(1000, (double)(letter - letters + 1));
	return true;
}

/* Returns a count that a line prints; 0 for one that no run reaches. */
static int64_t whole(double printed) { return fabs(printed) < 1e15 ? (int64_t)printed : 0; }

static bool read_titan(const char *line, struct train_log_step *s)
{
	double step;
	const bool good = train_log_number(line, "tps:", &s->tokens_per_s_per_gpu) && strstr(line, "loss:") &&
	                  train_log_number(line, "step:", &step) && s->tokens_per_s_per_gpu > 0;
	s->step = good ? whole(step) : 0;
	return good;
}

static bool read_iterations(const char *line, const char *iteration, const char *time, const char *batch,
	struct train_log_step *s)
{
	double step, ms, sequences;
	if (!train_log_number(line, time, &ms) || !train_log_number(line, iteration, &step) || !(ms > 0))
		return false;
	s->step = whole(step);
	s->time_s = 1e-3 * ms;
	if (train_log_number(line, batch, &sequences))
		s->global_batch = whole(sequences);
	return true;
}

static bool read_megatron(const char *line, struct train_log_step *s)
{
	double skipped = 0;
	if (!read_iterations(line, "iteration ", "elapsed time per iteration (ms):", "global batch size:", s) &&
		!read_iterations(line, "iteration: ", "elapsed time per iteration (ms):", "global batch size:", s))
		return false;
	s->skipped = train_log_number(line, "number of skipped iterations:", &skipped) && skipped > 0;
	return true;
}

static bool read_nanotron(const char *line, struct train_log_step *s)
{
	return read_iterations(line, "iteration:", "time_per_iteration_ms:", "global_batch_size:", s);
}

static bool read_nanogpt(const char *line, struct train_log_step *s)
{
	return strstr(line, ": loss ") && strstr(line, "ms") && read_iterations(line, "iter ", ", time ", "none", s);
}

/* NeMo 2 prints "Training epoch 0, iteration 9/99 | ... | train_step_timing in s: 1.2", NeMo 1 a bar that ends in
 * "global_step=9.0, ..., train_step_timing in s=1.2]". */
static bool read_nemo(const char *line, struct train_log_step *s)
{
	double step, batch;
	if (!train_log_number(line, "train_step_timing in s:", &s->time_s) &&
		!train_log_number(line, "train_step_timing in s=", &s->time_s))
		return false;
	if (!train_log_number(line, "global_step:", &step) && !train_log_number(line, "global_step=", &step))
		return false;
	s->step = whole(step);
	if (train_log_number(line, "global_batch_size:", &batch))
		s->global_batch = whole(batch);
	return s->time_s > 0;
}

/* common/metric_logger.py: "completed step: 9, seconds: 5.1, TFLOP/s/device: ..." */
static bool read_maxtext(const char *line, struct train_log_step *s)
{
	double step;
	if (!train_log_number(line, "completed step:", &step) || !train_log_number(line, ", seconds:", &s->time_s))
		return false;
	s->step = whole(step);
	return s->time_s > 0;
}

/* training/metric_logging.py: "Step 9 | loss:1.2 lr:2e-05 tokens_per_second_per_gpu:1234.5 " */
static bool read_torchtune(const char *line, struct train_log_step *s)
{
	double step;
	if (!train_log_number(line, "tokens_per_second_per_gpu:", &s->tokens_per_s_per_gpu) ||
		!train_log_number(line, "Step ", &step))
		return false;
	s->step = whole(step);
	return s->tokens_per_s_per_gpu > 0;
}

/* utils/timer.py: "epoch=0/micro_step=34/global_step=34, RunningAvgSamplesPerSec=7.8, CurrSamplesPerSec=8.0, ..." */
static bool read_deepspeed(const char *line, struct train_log_step *s)
{
	double step;
	if (!train_log_number(line, "global_step=", &step) ||
		!train_log_number(line, "CurrSamplesPerSec=", &s->samples_per_s))
		return false;
	s->step = whole(step);
	return s->samples_per_s > 0;
}

/* With wall_clock_breakdown: "time (ms) | fwd: 652.4 | bwd: 2164.5 | ... | step: 1172.1", whose step has no number.
 * Time that the loader takes is not in it. */
static bool read_breakdown(const char *line, struct train_log_step *s)
{
	double forward, backward, step;
	if (!strstr(line, "time (ms) |") || !train_log_number(line, "| step:", &step))
		return false;
	if (!train_log_number(line, "| fwd:", &forward) && !train_log_number(line, "| forward:", &forward))
		return false;
	if (!train_log_number(line, "| bwd:", &backward) && !train_log_number(line, "| backward:", &backward))
		return false;
	s->step = -1;
	s->time_s = 1e-3 * (forward + backward + step);
	return s->time_s > 0;
}

/* The bar of steps, which has no name before it: " 10%|#  | 10/100 [00:42<06:18,  4.21s/it]". Its rate is a mean over
 * the last few. */
static bool read_bar(const char *line, struct train_log_step *s)
{
	double rate;
	long long step, of;
	line += strspn(line, " \t");
	const size_t digits = strspn(line, "0123456789");
	const char *open = digits && strncmp(line + digits, "%|", 2) == 0 ? strchr(line, '[') : NULL;
	if (!open || digits > 3)
		return false;
	const char *at = open;
	while (at > line && strchr(" 0123456789/", at[-1]))
		at--;
	const char *comma = strchr(open, ','), *end = comma ? strchr(comma, ']') : NULL;
	if (sscanf(at, " %lld/%lld", &step, &of) != 2 || !end || step < 1 || of < step)
		return false;
	const bool by_step = memmem(comma, (size_t)(end - comma), "s/it", 4) != NULL;
	if (!by_step && !memmem(comma, (size_t)(end - comma), "it/s", 4))
		return false;
	if (sscanf(comma + 1, " %lf", &rate) != 1 || !(rate > 0))
		return false;
	s->step = step;
	s->of = of;
	s->time_s = by_step ? rate : 1 / rate;
	return true;
}

/* What the Trainer says at the end, of all steps: {'train_runtime': 60.1, ..., 'train_steps_per_second': 0.166, ...} */
static bool read_summary(const char *line, struct train_log_step *s)
{
	double rate;
	if (!train_log_number(line, "'train_steps_per_second':", &rate) || !(rate > 0))
		return false;
	s->step = -1;
	s->time_s = 1 / rate;
	return true;
}

#define TRAINER "transformers' Trainer"
const struct train_log_lines train_log_lines[] = {
	{"torchtitan", read_titan, false, {"memory:", 0}},
	{"Megatron-LM", read_megatron, false, {"max reserved:", MIB}},
	{"NeMo", read_nemo, false, {NULL, 0}},
	{"nanotron", read_nanotron, false, {"Peak reserved:", 0}},
	{"nanoGPT", read_nanogpt, false, {NULL, 0}},
	{"MaxText", read_maxtext, false, {NULL, 0}},
	{"torchtune", read_torchtune, false, {"peak_memory_reserved:", 1024 * MIB}},
	{"DeepSpeed", read_deepspeed, true, {NULL, 0}},
	{"DeepSpeed", read_breakdown, true, {NULL, 0}},
	{TRAINER, read_bar, true, {NULL, 0}},
	{TRAINER, read_summary, true, {NULL, 0}},
};
const size_t train_log_lines_n = COUNT(train_log_lines);
