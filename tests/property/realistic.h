/* Plans as people have them: models, stacks, GPUs and systems of the catalogue, 2 to 512 GPUs, long accumulations. */
#ifndef STEPSIM_TESTS_REALISTIC_H
#define STEPSIM_TESTS_REALISTIC_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "tests/random.h"
#include "step/config/config.h"
#include "topology/machine.h"

#define REALISTIC_BLOCKS 600 /* layers x micro-batches: what the full prediction takes */
#define PICK(a) a[random_below(COUNT(a))]

static inline void realistic_text(char *text, size_t size)
{
	static const char *const models[] = {"gpt2-124m", "gpt2-1.5b", "gpt3-6.7b", "gpt3-175b", "llama3-8b",
		"llama3-70b", "llama2-13b", "mpt-7b", "bert-large", "mixtral-8x7b"};
	static const char *const stacks[] = {"megatron-core", "megatron-lm", "megatron-deepspeed", "nanotron",
		"deepspeed", "pytorch-ddp", "pytorch-fsdp", "pytorch-fsdp-eager", "composer-fsdp", "jax-pax", "maxtext",
		"internlm"};
	static const char *const systems[] = {"dgx-a100", "dgx-h100", "aws-p4d", "gcp-a3-high", "server-8xl40s",
		"dgx-b200", "\"gpu:4 h100-sxm nic:4x400Gb/s\""};
	static const char *const strategies[] = {"ddp", "zero1", "zero2", "fsdp", "hsdp"},
				 *const schedules[] = {"gpipe", "1f1b", "interleaved", "zero_bubble", "zbv"},
				 *const recompute[] = {"none", "none", "selective", "full"};
	static const char *const extra[] = {"", "", "", ", offload: optimizer", ", fused: false",
		", reduce_dtype: bf16", ", cuda_graph: true"},
				 *const loading[] = {"0", "0", "0", "0", "20ms", "300ms"};
	static const unsigned lengths[] = {512, 1024, 2048}, counts[] = {1, 2, 4, 8, 16, 24, 40, 64};
	const unsigned schedule = random_below(5), pipeline = random_below(2) ? 2u << random_below(2) : 1,
		       layers = 4 * (1 + random_below(6)), micro = 1 + random_below(2),
		       micros = PICK(counts) * (random_below(2) ? 1 : pipeline);
	const bool parts = pipeline > 1 && (schedule == 2 || schedule == 4);
	snprintf(text, size,
		"model: {preset: %s, layers: %u, seq_len: %u, vocab_padding: 128}\n"
		"train: {stack: %s, micro_batch: %u, global_batch: %u, recompute: %s%s}\n"
		"parallel: {strategy: %s, tensor: %u, sequence_parallel: %s, context: %u, pipeline: %u, schedule: %s, "
		"virtual_stages: %u, data: %u, reshard_after_forward: %s}\n"
		"data: {load_time: %s, workers: %u, prefetch: 2}\n"
		"cluster: {system: %s, nodes: %u}\n",
		PICK(models), layers, PICK(lengths), PICK(stacks), micro, micro * micros, PICK(recompute), PICK(extra),
		PICK(strategies), 1u << random_below(4), random_below(2) ? "true" : "false",
		1u << (random_below(4) ? 0 : 1), pipeline, pipeline > 1 ? schedules[schedule] : "1f1b", parts ? 2u : 1u,
		1u, random_below(3) ? "true" : "false", PICK(loading), 1 + random_below(4), PICK(systems),
		1u << random_below(6));
}

/* Draws until there is a plan that can be predicted, in so few blocks. `text` says which. */
static inline void realistic_draw(char *text, size_t size, struct config *c, struct machine *m)
{
	for (;;) {
		struct error e = {0};
		realistic_text(text, size);
		if (config_parse(text, strlen(text), "realistic", NULL, 0, c, &e) ||
			machine_load(c->cluster.system, c->cluster.nodes, 0, m, &e))
			continue;
		c->node_ranks = m->devices_per_node;
		const int64_t ranks = m->nodes * m->devices_per_node,
			      each = c->parallel.tensor * c->parallel.context * c->parallel.pipeline;
		c->parallel.data = ranks / each;
		c->train.global_batch *= ranks / each;
		if (ranks / each * c->parallel.context == 1)
			c->parallel.strategy = STRAT_NONE;
		if (ranks % each == 0 && ranks >= each && !config_resolve(c, ranks, &e) &&
			c->model.layers * c->micro_batches <= REALISTIC_BLOCKS &&
			m->device.matrix_flop_per_s[c->train.dtype] > 0)
			return;
		machine_free(m);
	}
}

#endif
