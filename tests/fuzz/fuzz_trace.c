/* Mutation fuzzer of the readers of traces and logs of real runs: fuzz_trace SECONDS SEED. Built with the sanitizers.
 *
 * Each round takes one of the texts below, changes it a few times and reads it as a trace (PyTorch's; SQLite's bytes
 * count as an export of Nsight Systems), as a training log and as NCCL's log. A refusal must be one line that names the
 * file; the kernels that are read must lie in order and name a class.
 */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/array.h"
#include "report/import/nccl_log.h"
#include "report/import/trace.h"
#include "report/import/train_log.h"

#define TEXT_MAX 8192
#include "tests/fuzz/fuzz.h"

static const char *const seeds[] = {
	"{\"distributedInfo\": {\"backend\": \"nccl\", \"rank\": 1, \"world_size\": 2}, \"traceEvents\": [\n"
	"{\"ph\": \"X\", \"cat\": \"user_annotation\", \"name\": \"ProfilerStep#3\", \"pid\": 1, \"tid\": 1, "
	"\"ts\": 1, "
	"\"dur\": 90},\n"
	"{\"ph\": \"X\", \"cat\": \"cuda_runtime\", \"name\": \"cudaLaunchKernel\", \"pid\": 1, \"tid\": 1, "
	"\"ts\": 2.5, "
	"\"dur\": 1, \"args\": {\"correlation\": 7}},\n"
	"{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"ampere_bf16_s16816gemm\", \"pid\": 0, \"tid\": 7, "
	"\"ts\": 10, "
	"\"dur\": 20.25, \"args\": {\"device\": 0, \"stream\": 7, \"correlation\": 7}},\n"
	"{\"ph\": \"X\", \"cat\": \"gpu_memcpy\", \"name\": \"Memcpy HtoD (Pinned -> Device)\", \"pid\": 0, "
	"\"tid\": 8, "
	"\"ts\": 31, \"dur\": 2, \"args\": {\"device\": 0, \"stream\": 8}},\n"
	"{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"ncclDevKernel_AllReduce_Sum_f32_RING_LL\", \"pid\": "
	"0, \"tid\": 9, "
	"\"ts\": 40, \"dur\": 12, \"args\": {\"device\": 0, \"stream\": 9}}\n]}\n",
	"[{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"k\\u00e9\", \"pid\": \"GPU\", \"ts\": \"5\", "
	"\"dur\": 1e3}]",
	"step:  1  loss: 12.2  grad_norm: 3.5  memory: 38.2GiB(48.3%)  tps: 7,012  tflops: 400.1  mfu: 40.5%\n"
	"step: 10  loss: 8.1  memory: 40.0GiB(50.1%)  tps: 7,112  mfu: 41.0%\n",
	" iteration 10/ 100 | consumed samples: 640 | elapsed time per iteration (ms): 1147.6 | global batch "
	"size: 64 | "
	"number of skipped iterations: 0 |\n",
	"iter 10: loss 4.0812, time 561.94ms, mfu 17.3%\niter 11: loss 4.0, time 560.01ms, mfu 17.3%\n",
	"iteration: 10 / 100 | elapsed_time_per_iteration_ms: 4.71K | tokens_per_sec_per_gpu: 8.3K |\n",
	"h1:1:2 [0] NCCL INFO Channel 00/08 : 0 1 2 3\nh1:1:2 [0] NCCL INFO AllReduce: 8388608 Bytes -> Algo "
	"RING proto "
	"SIMPLE channel{Lo..Hi}={0..7}\nh1:1:2 [0] NCCL INFO NVLS multicast support is available on dev 0\n",
};

static const char *const pieces[] = {"{", "}", "[", "]", "\"", ",", ":", "\\u", "\\\"", "1e999", "-1", "0.5", "null",
	"true", "\n", " ", "\xFF", "99999999999999999999", "\"ph\": \"X\"", "\"dur\": ", "\"cat\": \"kernel\"", "iter ",
	"step: ", "NCCL INFO ", "SQLite format 3", "\x1F\x8B\x08"};

static void mutate(struct text *t) { mutate_from(t, seeds, COUNT(seeds), pieces, COUNT(pieces)); }

static void check_refusal(const struct error *e, const char *path)
{
	check(e->status == ST_INPUT, "a refusal has the status of wrong input");
	check(strncmp(e->text, path, strlen(path)) == 0, "a refusal begins with the name");
	check(!strchr(e->text, '\n'), "a message is one line");
}

static void read_trace(const char *path)
{
	struct trace_set set = {0};
	struct error e = {ST_OK, ""};
	if (trace_read(path, &set, NULL, NULL, &e) || trace_finish(&set, &e)) {
		check_refusal(&e, path);
		trace_free(&set);
		return;
	}
	for (size_t g = 0; g < set.gpus.n; g++)
		for (size_t i = 0; i < set.gpus.at[g].work.n; i++) {
			const struct traced *t = &set.gpus.at[g].work.at[i];
			check(t->class_ < CLASS_COUNT && t->name < set.names.n, "a kernel has a class and a name");
			check(t->end_ns >= t->start_ns, "a kernel ends after its start");
			check(i == 0 || t->start_ns >= t[-1].start_ns, "kernels are sorted");
		}
	trace_free(&set);
}

static void try_text(const struct text *t)
{
	char path[64];
	struct error e = {ST_OK, ""};
	struct train_log log = {0};
	nccl_logs nccl = {0};
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	if (fd < 0 || write(fd, t->at, t->n) != (ssize_t)t->n)
		exit(1);
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	read_trace(path);
	if (train_log_read(path, &log, &e))
		check_refusal(&e, path);
	else
		check(log.steps.n > 0, "a log that is read has steps");
	train_log_free(&log);
	e = (struct error){ST_OK, ""};
	if (nccl_log_read(path, &nccl, &e))
		check_refusal(&e, path);
	nccl_logs_free(&nccl);
	close(fd);
}

FUZZ_ONE(try_text)

int main(int argc, char **argv) { return fuzz_texts("fuzz_trace", seeds, COUNT(seeds), mutate, try_text, argc, argv); }
