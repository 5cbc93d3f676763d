/* Logs of training runs, written here in the frameworks' lines. */
#include "tests/unit/harness.h"

#include <stdlib.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "report/import/train_log.h"

static enum status read_text(const char *text, struct train_log *log, struct error *e)
{
	char path[] = "/tmp/stepsim_test_train_log_XXXXXX";
	const int fd = mkstemp(path);
	CU_ASSERT_FATAL(fd >= 0);
	CU_ASSERT_EQUAL(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
	*e = (struct error){0};
	const enum status st = train_log_read(path, log, e);
	unlink(path);
	return st;
}

/* Two ranks, in colours; the first line is the warm-up. 8,192 tokens on 2 ranks. */
static void test_titan(void)
{
	struct train_log log;
	struct train_log_summary s;
	struct error e;
	CU_ASSERT_EQUAL_FATAL(
		read_text("[rank0]:[titan] 2025-07-21 15:57:42,000 - root - INFO - Training starts at step 1\n"
			  "[rank0]:[titan] 2025-07-21 15:57:42,774 - root - INFO - \033[31mstep:"
			  "  1  \033[32mloss: 12.2  "
			  "\033[34mmemory: 33.21GiB(34.95%)  tps: 86  mfu: 0.50%\033[39m\n"
			  "[rank0]:[titan] 2025-07-21 15:57:46,774 - root - INFO - step: 10  loss: 10.2  memory: "
			  "44.84GiB(47.19%)  tps: 8,192  tflops: 325.20  mfu: 32.88%\n"
			  "[rank1]:[titan] 2025-07-21 15:57:46,775 - root - INFO - step: 10  loss: 10.2  memory: "
			  "44.84GiB(47.19%)  tps: 4,096  tflops: 325.20  mfu: 32.88%\n"
			  "[rank0]:[titan] 2025-07-21 15:57:56,774 - root - INFO - step: 20  loss: 9.2  memory: "
			  "44.00GiB(47.19%)  tps: 8,192  tflops: 325.20  mfu: 32.88%\n",
			&log, &e),
		ST_OK);
	CU_ASSERT_STRING_EQUAL(log.framework, "torchtitan");
	CU_ASSERT_EQUAL_FATAL(log.steps.n, 3);
	CU_ASSERT_EQUAL(log.steps.at[1].line, 4); /* the slower rank's */
	CU_ASSERT_DOUBLE_EQUAL(log.memory_B / (1 << 30), 44.84, 1e-9);
	CU_ASSERT_EQUAL_FATAL(train_log_sum(&log, 8192, 8, 2, 3, &s, &e), ST_OK);
	CU_ASSERT_EQUAL(s.lines, 2);
	CU_ASSERT_EQUAL(s.left_out, 1);
	CU_ASSERT_EQUAL(s.first, 10);
	CU_ASSERT_EQUAL(s.last, 20);
	CU_ASSERT_DOUBLE_EQUAL(s.median_s, 0.75, 1e-12);
	CU_ASSERT_DOUBLE_EQUAL(s.min_s, 0.5, 1e-12);
	CU_ASSERT_DOUBLE_EQUAL(s.max_s, 1.0, 1e-12);
	CU_ASSERT_DOUBLE_EQUAL(s.stamped_s, (4.001 / 9 + 9.999 / 10) / 2, 1e-3);
	CU_ASSERT_EQUAL_FATAL(train_log_sum(&log, 8192, 8, 2, 10, &s, &e), ST_OK);
	CU_ASSERT_EQUAL(s.lines, 1);
	CU_ASSERT_EQUAL(train_log_sum(&log, 8192, 8, 2, 20, &s, &e), ST_INPUT);
	CU_ASSERT_PTR_NOT_NULL(strstr(e.text, "are of the warm-up"));
	train_log_free(&log);
}

/* A line with skipped iterations does not count, nor does the first one after a new start. */
static void test_megatron(void)
{
	struct train_log log;
	struct train_log_summary s;
	struct error e;
	CU_ASSERT_EQUAL_FATAL(
		read_text("[before the start of training step] datetime: 2025-04-13 23:41:00\n"
			  " [2025-04-13 23:41:12] iteration       10/    1000 | consumed"
			  " samples:          160 | elapsed "
			  "time per iteration (ms): 1147.6 | learning rate: 0.0 | global batch size:    16 | number of "
			  "skipped iterations:  10 |\n"
			  " [2025-04-13 23:41:13] iteration       20/    1000 | consumed"
			  " samples:          320 | elapsed "
			  "time per iteration (ms): 9000.0 | global batch size:    16 | number of"
			  " skipped iterations:   2 |\n"
			  " [2025-04-13 23:41:14] iteration       30/    1000 | consumed"
			  " samples:          480 | elapsed "
			  "time per iteration (ms): 500.5 | global batch size:    16 | number of"
			  " skipped iterations:   0 |\n"
			  "[Rank 0] (after 30 iterations) memory (MB) | allocated: 100.0 | max"
			  " allocated: 200.0 | reserved: "
			  "300.0 | max reserved: 400.0\n"
			  " iteration       21/    1000 | consumed samples: 336 | elapsed time"
			  " per iteration (ms): 7000.0 "
			  "| global batch size:    16 |\n"
			  " iteration       22/    1000 | consumed samples: 352 | elapsed time"
			  " per iteration (ms): 502.5 "
			  "| global batch size:    32 |\n",
			&log, &e),
		ST_OK);
	CU_ASSERT_STRING_EQUAL(log.framework, "Megatron-LM");
	CU_ASSERT_DOUBLE_EQUAL(log.memory_B, 400.0 * (1 << 20), 1);
	CU_ASSERT_EQUAL_FATAL(train_log_sum(&log, 1000, 1, 1, 3, &s, &e), ST_OK);
	CU_ASSERT_EQUAL(s.lines, 2);
	CU_ASSERT_EQUAL(s.left_out, 3);
	CU_ASSERT_DOUBLE_EQUAL(s.median_s, 0.5015, 1e-12);
	CU_ASSERT_EQUAL(s.global_batch, 32);
	train_log_free(&log);
}

static void test_others(void)
{
	struct train_log log;
	struct train_log_summary s;
	struct error e;
	CU_ASSERT_EQUAL_FATAL(
		read_text("08/31/2024 14:37:31 [INFO|DP=0|PP=0|TP=0]:  Memory usage: 64.15MiB."
			  " Peak allocated 309.29MiB. "
			  "Peak reserved: 496.00MiB\n"
			  "08/31/2024 14:37:31 [INFO|DP=0|PP=0|TP=0]: iteration: 1 / 15 | consumed_tokens: 512 | "
			  "elapsed_time_per_iteration_ms: 4.71K | tokens_per_sec: 109 | global_batch_size: 1.02K\n"
			  "08/31/2024 14:37:43 [INFO|DP=0|PP=0|TP=0]: iteration: 5 / 15 | consumed_tokens: 85.8G | "
			  "elapsed_time_per_iteration_ms: 1.5K | tokens_per_sec: 22.8K | global_batch_size: 64\n",
			&log, &e),
		ST_OK);
	CU_ASSERT_STRING_EQUAL(log.framework, "nanotron");
	CU_ASSERT_EQUAL(log.steps.at[0].global_batch, 1020);
	CU_ASSERT_DOUBLE_EQUAL(log.memory_B, 496.0 * (1 << 20), 1);
	CU_ASSERT_EQUAL_FATAL(train_log_sum(&log, 1, 1, 1, 3, &s, &e), ST_OK);
	CU_ASSERT_DOUBLE_EQUAL(s.median_s, 1.5, 1e-12);
	CU_ASSERT_DOUBLE_EQUAL(s.stamped_s, 3, 1e-9);
	train_log_free(&log);
	CU_ASSERT_EQUAL_FATAL(
		read_text("iter 1631: loss 4.0863, time 561.94ms\niter 1632: loss 3.7441, time 563.15ms\n", &log, &e),
		ST_OK);
	CU_ASSERT_STRING_EQUAL(log.framework, "nanoGPT");
	CU_ASSERT_EQUAL_FATAL(train_log_sum(&log, 1, 1, 1, 3, &s, &e), ST_OK);
	CU_ASSERT_DOUBLE_EQUAL(s.median_s, 0.56315, 1e-12);
	train_log_free(&log);
}

/* One text each: framework, lines that count, median of a step of 8 sequences and 8,192 tokens on 2 ranks. */
static void test_newer(void)
{
	static const struct {
		const char *framework, *text;
		size_t lines;
		double median_s;
	} cases[] = {
		{"NeMo",
			"Training epoch 0, iteration 4/9 | lr: 3e-05 | global_batch_size: 8 | global_step: 4 | "
			"train_step_timing in s: 9.5\n"
			"Training epoch 0, iteration 5/9 | lr: 3e-05 | global_batch_size: 8 | global_step: 5 | "
			"train_step_timing in s: 1.25 | val_loss: 4\n",
			1, 1.25},
		{"NeMo",
			"Epoch 0: :   1%|# | 4/99 [02:40<1:00:00, v_num=1, reduced_train_loss=2.1, global_step=4.000, "
			"train_step_timing in s=4.0]\rEpoch 0: :   2%|# | 5/99 [02:44<1:00:00, v_num=1, "
			"global_step=5.000, train_step_timing in s=3.5]\n",
			1, 3.5},
		{"MaxText",
			"completed step: 4, seconds: 20.0, TFLOP/s/device: 10.1, Tokens/s/device: 1,000, loss: 10\n"
			"completed step: 5, seconds: 2.5, TFLOP/s/device: 80.1, Tokens/s/device: 8,000, loss: 9.8\n",
			1, 2.5},
		{"torchtune",
			"Step 4 | loss:1.5 lr:2e-05 tokens_per_second_per_gpu:100.0 peak_memory_reserved:10.0 \n"
			"Step 5 | loss:1.4 lr:2e-05 tokens_per_second_per_gpu:2048.0 peak_memory_reserved:11.0 \n",
			1, 2},
		{"DeepSpeed",
			"[INFO] [timer.py:1] epoch=0/micro_step=8/global_step=8, RunningAvgSamplesPerSec=3.9, "
			"CurrSamplesPerSec=1.0, MemAllocated=5GB\n"
			"rank=0 time (ms) | fwd: 652.0 | bwd: 2000.0 | bwd_inner: 1.0 | step: 348.0\n"
			"[INFO] [timer.py:1] epoch=0/micro_step=9/global_step=9, RunningAvgSamplesPerSec=3.9, "
			"CurrSamplesPerSec=4.0, MemAllocated=5GB\n",
			1, 2},
		{"DeepSpeed",
			"rank=0 time (ms) | forward: 600.0 | backward: 900.0 | backward_inner: 1.0 | step: 500.0\n"
			"rank=0 time (ms) | forward_microstep: 6.0 | backward_microstep: 9.0 | step_microstep: 5.0\n"
			"rank=0 time (ms) | forward: 600.0 | backward: 800.0 | backward_inner: 1.0 | step: 500.0\n"
			"rank=0 time (ms) | forward: 600.0 | backward: 800.0 | backward_inner: 1.0 | step: 500.0\n"
			"rank=0 time (ms) | fwd: 600.0 | bwd: 500.0 | bwd_inner: 1.0 | step: 300.0\n",
			1, 1.4},
		/* The line of a library below counts no longer, once a framework prints its own. */
		{"Megatron-LM",
			"rank=0 time (ms) | forward: 600.0 | backward: 900.0 | backward_inner: 1.0 | step: 500.0\n"
			" samples/sec: 7.8 | iteration       34/   10000 | elapsed time per iteration (ms): "
			"4103.1 | loss: 1\n"
			"rank=0 time (ms) | forward: 600.0 | backward: 900.0 | backward_inner: 1.0 | step: 500.0\n"
			" samples/sec: 7.8 | iteration       35/   10000 | elapsed time per iteration (ms): "
			"4000.0 | loss: 1\n",
			1, 4},
		{"transformers' Trainer",
			"Map: 100%|####| 50/50 [00:00<00:00, 900.1 examples/s]\n"
			"\r  0%|          | 0/100 [00:00<?, ?it/s]\r  4%|          | 4/100 [00:42<06:18,  9.21s/it]"
			"\r  5%|#         | 5/100 [00:43<06:18,  1.50s/it]{'loss': 1.5, 'epoch': 0.1}\n"
			"  10%|#         | 1/10 [00:00<00:01,  8.00it/s]\n  6%|#   | 6/100 [00:44<06:18,  2.00it/s]\n"
			"{'train_runtime': 60.0, 'train_samples_per_second': 8, 'train_steps_per_second': 9.0}\n",
			2, 1},
		{"transformers' Trainer", "{'train_runtime': 60.0, 'train_steps_per_second': 0.4, 'epoch': 1.0}\n", 1,
			2.5},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct train_log log;
		struct train_log_summary s;
		struct error e;
		CU_ASSERT_EQUAL_FATAL(read_text(cases[i].text, &log, &e), ST_OK);
		CU_ASSERT_STRING_EQUAL(log.framework, cases[i].framework);
		CU_ASSERT_EQUAL_FATAL(train_log_sum(&log, 8192, 8, 2, 3, &s, &e), ST_OK);
		CU_ASSERT_EQUAL(s.lines, cases[i].lines);
		CU_ASSERT_DOUBLE_EQUAL(s.median_s, cases[i].median_s, 1e-9);
		if (fabs(s.median_s - cases[i].median_s) > 1e-9)
			printf("\n%s: %g\n", cases[i].framework, s.median_s);
		train_log_free(&log);
	}
}

static void test_refused(void)
{
	static const char *const texts[] = {"", "hello\n", "step: 3 loss: 2\n",
		"iteration 3/ 9 | elapsed time per iteration (ms): nan |\n",
		"iteration: 1 / 2 | elapsed_time_per_iteration_ms: 0 |\n"};
	for (size_t i = 0; i < COUNT(texts); i++) {
		struct train_log log;
		struct error e;
		CU_ASSERT_EQUAL(read_text(texts[i], &log, &e), ST_INPUT);
		CU_ASSERT_PTR_NOT_NULL(strstr(e.text, "no line is a step as a framework"));
		train_log_free(&log);
	}
	struct train_log log;
	struct error e;
	CU_ASSERT_EQUAL(read_text("iter 1: loss 4.0, time 5.0ms\nstep: 3 loss: 2 tps: 7\n", &log, &e), ST_INPUT);
	CU_ASSERT_PTR_NOT_NULL(strstr(e.text, ":2: a step of torchtitan in a log of nanoGPT"));
	train_log_free(&log);
}

UNIT_MAIN("train_log", {"torchtitan", test_titan}, {"Megatron-LM", test_megatron},
	{"nanotron and nanoGPT", test_others}, {"newer ones", test_newer}, {"refused", test_refused})
