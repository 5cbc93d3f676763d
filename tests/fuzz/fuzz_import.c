/* Mutation fuzzer of the readers of other frameworks' configs: fuzz_import SECONDS SEED. Built with the sanitizers,
 * which see what the checks below do not.
 *
 * Each round takes one of the texts below, changes it a few times and reads it. A refusal must be one line that begins
 * with the name. What is read must be written as a CONFIG.yaml in which every key has its verdict, and which the reader
 * of configs takes, or refuses as wrong input. A broken promise prints the text and ends with 1.
 */
#include <string.h>

#include "base/array.h"
#include "step/import/import.h"

#define TEXT_MAX 8192
#include "tests/fuzz/fuzz.h"
#define NAME "fuzz"

static const char *const seeds[] = {
	"# stepsim: cluster.nodes: 2\n[model]\nname = \"llama3\"\nflavor = \"8B\"\n[training]\nlocal_batch_size = 4\n"
	"seq_len = 8_192\n[parallelism]\ndata_parallel_replicate_degree = 2\ndata_parallel_shard_degree = 4\n"
	"tensor_parallel_degree = 2\npipeline_parallel_degree = 2\n[activation_checkpoint]\nmode = 'full'\n"
	"[compile]\nenable = true\ncomponents = [\"model\", \"loss\"]\n",
	"S=$1\nif [ $S = 8B ] && [[ $TP -gt 1 ]]; then\n  L=32\nelif (( TP > 2 )); then L=80; else\n  L=1\nfi\n"
	"case \"${AC:-none}\" in full|sel) O=\"--recompute-granularity full\" ;; *) O= ;;\nesac\n"
	"[ $L = 1 ] && O=\"--bf16\"\ncat <<END\nfi\nEND\n"
	"run --num-layers $L --hidden-size 8 --num-attention-heads 1 $O\n",
	"base: &b {global_train_batch_size: &n 8}\n<<: [*b]\nmax_seq_len: *n\n"
	"model: {d_model: 8, n_layers: 2, n_heads: 2}\n",
	"#!/bin/bash\nTP=${TP:-2}\nN=$(( $TP * 8 / 2 ))\nARGS=(\n  --num-layers 12 --hidden-size 768\n"
	"  --num-attention-heads=12 # heads\n  \"--fp8-format hybrid\"\n)\n"
	"L=\"([1]*2+[0])*4\"\ntorchrun --nproc_per_node 8 x.py ${ARGS[@]} --linear-attention-freq $L "
	"--num-experts 4 \\\n"
	"  --moe-layer-freq '([0]*1 + [1]*(12-1))' --pipeline-model-parallel-layout \"Et|(tt|)*2m|L\" \\\n"
	"  --tensor-model-parallel-size $TP --global-batch-size $N --micro-batch-size 1 --bf16 --swiglu\n",
	"language_model: {num_layers: 2, hidden_size: 64, num_attention_heads: 4}\nmodel_parallel:\n  bf16: True\n",
	"{\"train_batch_size\": 16, \"zero_optimization\": {\"stage\": 2, \"reduce_bucket_size\": 5e8},\n"
	" \"bf16\": {\"enabled\": true}, \"stepsim\": {\"model.preset\": \"gpt2-124m\"}}\n",
	"distributed_type: FSDP\nnum_processes: 16\nnum_machines: 2\nmixed_precision: 'no'\nfsdp_config:\n"
	"  fsdp_sharding_strategy: HYBRID_SHARD\n",
	"base_model: meta-llama/Meta-Llama-3-8B\nmicro_batch_size: 2\ngradient_accumulation_steps: 4\nbf16: auto\n"
	"datasets:\n  - path: x\nfsdp:\n  - full_shard\n",
	"parallelism: {dp: 2, tp: 2, pp: 2, pp_engine: 1f1b}\ntokens: {micro_batch_size: 2, sequence_length: 512}\n"
	"model: {model_config: {num_hidden_layers: 4, hidden_size: 64, num_attention_heads: 4}}\n",
	"trainer: {devices: 8, num_nodes: 2, precision: bf16}\nmodel:\n  encoder_seq_length: 512\n"
	"  data: {seq_length: \"${model.encoder_seq_length}\"}\n  num_layers: 4\n  a: ${.b}\n  b: ${..model.a}\n",
	"ENV_VARS:\n  NCCL_ALGO: Ring\nMODEL_ARGS:\n  --num-layers: 4\n  "
	"--hidden-size: 64\n  --num-attention-heads: 4\n"
	"  --swiglu: true\n  --window-size: 127,0\n",
	"_target_: a.ConfigContainer\nmodel:\n  num_layers: ${multiply:2, ${add:1, 1}}\n  hidden_size: ${oc.env:H,64}\n"
	"  num_attention_heads: ${oc.select:a.b, 4}\n  activation_func: {_call_: false, _target_: torch.silu}\n"
	"  gated_linear_unit: true\n  window_size: [127, 0]\ntrain: {micro_batch_size: ${x.model.num_layers}}\n",
	"N = 2 * 4\ndef a(n: int = N, **more) -> X:\n    \"\"\"text\"\"\"\n    c = "
	"T.Config(training=C(seq_len=8_192, x=-1),\n"
	"        parallelism=P(tensor_parallel_degree=n if n > 1 else 1))  # text\n    c.model_spec = "
	"m(\"8B\", converters=[\n"
	"        A.Config(f=['x', f\"{n}\"]), b(1)])\n    c.y, z = 1, {'k': c.training, **more}\n    return c\n"
	"def llama3_8b():\n    c = a(n=2)\n    if c.training.seq_len >= 8 and not z:\n        "
	"c.l.append(Q(v=[i for i in w]))\n"
	"    elif os.x:\n        pass\n    else:\n        c.training[\"seq_len\"] = (1 << 2) ** 3\n    with q() as r:\n"
	"        c.b = B.from_hf(\"x/y\").to(lambda v: v)\n    return c\n",
	"max_seq_len: 512\nmodel: {name: mpt, d_model: 64, n_layers: 2, n_heads: 4, max_seq_len: \"${max_seq_len}\"}\n"
	"global_train_batch_size: 8\nprecision: amp_bf16\n",
};

static const char *const pieces[] = {"\n", "  ", "=", " = ", ": ", "[", "]", "{", "}", "[[", "\"", "\"\"\"", "'", "#",
	"--", "--x ", "$", "${", "${.", "}", "${multiply:", "$((", "))", "\\\n", "\\u", "0", "-1", "1e999", "auto",
	"true", "null", "a.b", ",", "*", "|", "\r\n", "\xFF", "99999999999999999999", "stepsim", "def a():\n",
	"return ", "(", ")", ".", " if ", " else ", "not ", "for x in ", "lambda x: ", "**", "c.x = c\n", "a()",
	"# stepsim: ", "[parallelism]\n", "# stepsim: train.dtype: \n"};

static void mutate(struct text *t) { mutate_from(t, seeds, COUNT(seeds), pieces, COUNT(pieces)); }

static void check_refusal(const struct error *e)
{
	check(e->status == ST_INPUT, "a refusal has the status of wrong input");
	check(strncmp(e->text, NAME, strlen(NAME)) == 0, "a refusal begins with the name");
	for (const char *p = e->text; *p; p++)
		check((unsigned char)*p >= 0x20 && *p != 0x7f, "a message is one line");
}

static void check_written(const struct import *im)
{
	static struct config c;
	struct error e = {0};
	char *text = NULL;
	size_t len = 0, count[VERDICT_COUNT];
	FILE *out = open_memstream(&text, &len);
	if (!out)
		exit(1);
	import_count(im, count);
	check(count[LEFT] == 0, "every key has its verdict");
	check(import_write(im, out, &e) == ST_OK, "what is read can be written");
	fclose(out);
	if (config_parse(text, len, NAME, NULL, 0, &c, &e))
		check_refusal(&e);
	free(text);
}

static void try_text(const struct text *t)
{
	static struct import im;
	static const char *const frameworks[] = {NULL, NULL, "torchtitan", "megatron", "deepspeed", "accelerate"};
	struct error e = {0};
	bool found = false;
	/* exactly as long as the text, so that the sanitizer sees a read behind its end */
	char *exact = malloc(t->n ? t->n : 1);
	if (!exact)
		exit(1);
	memcpy(exact, t->at, t->n);
	if (import_read(exact, t->n, NAME, frameworks[below(COUNT(frameworks))], &found, &im, &e)) {
		check_refusal(&e);
	} else if (found) {
		check_written(&im);
		import_free(&im);
	}
	free(exact);
}

FUZZ_ONE(try_text)

int main(int argc, char **argv) { return fuzz_texts("fuzz_import", seeds, COUNT(seeds), mutate, try_text, argc, argv); }
