/* The config: CONFIG.yaml (docs/reference.md), resolved. POD without pointers, so that rank 0 broadcasts it as bytes.
 *
 * The keys live in one table (step/config/keys.h): name, type, range, default, destination, and whether the effect is
 * modelled. Presets and stacks from the catalogue are read by the same table, so a preset can hold nothing that a
 * config could not.
 */
#ifndef STEPSIM_STEP_CONFIG_H
#define STEPSIM_STEP_CONFIG_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "base/yaml.h"
#include "base/dtype.h"
#include "step/algorithm.h"
#include "step/context_kind.h"
#include "step/import/hf_config.h"
#include "step/model.h"
#include "step/optimizer.h"
#include "step/schedule.h"
#include "step/stack.h"
#include "step/strategy.h"

#define CONFIG_TEXT 256
#define MIB_B 1048576.0
#define CONFIG_MAX_STAGES 128
#define CONFIG_MAX_BATCH 1000000000 /* sequences a step */
#define MICRO_BATCHES_MAX 16384     /* a program unrolls them */
#define AUTO (-1)                   /* integers whose config word is `auto` until resolved */

enum attention { ATT_FLASH, ATT_NAIVE, ATT_COUNT };
enum recompute { REC_NONE, REC_SELECTIVE, REC_FULL, REC_COUNT };
/* What selective recomputation runs again, in Megatron-Core's words (megatron/core/transformer/transformer_config.py:
 * recompute_modules). Bits of train.recompute_modules. */
enum recompute_module {
	REC_CORE_ATTN = 1,       /* attention without its products: of naive attention the scores and their softmax */
	REC_LAYERNORM = 2,       /* the norms before attention and before the MLP */
	REC_MLA_UP_PROJ = 4,     /* latent attention: the up products of latents, and the rotation */
	REC_MOE_ACT = 8,         /* the activation function of experts */
	REC_MLP = 16,            /* a dense MLP */
	REC_MOE = 32,            /* a layer of experts, with its router and its exchanges */
	REC_SHARED_EXPERTS = 64, /* of that, the shared ones */
	REC_OP = 128,            /* no module: the block op by op, as torchtitan (step/builder/saved.c) */
	REC_MODULE_COUNT = 8
};
/* What recomputation op by op saves where it is not torchtitan's policy. Bits of train.recompute_saves. */
enum recompute_save {
	SAVE_QKV = 1,       /* the product for queries, keys and values, or those of latents */
	SAVE_ATTENTION = 2, /* attention's result */
	SAVE_PROJ = 4,      /* the product behind it */
	SAVE_FC1 = 8,       /* the first product of an MLP, gate and up, and of shared experts */
	SAVE_COUNT = 4
};
enum offload { OFF_NONE, OFF_OPTIMIZER, OFF_OPTIMIZER_PARAMS, OFF_ACTIVATIONS, OFF_COUNT };
enum compression { COMPRESS_NONE, COMPRESS_BF16, COMPRESS_FP16, COMPRESS_COUNT };
/* Which ends of the model count as a layer each where layers are cut into stages; auto: as the stack's stage_split. */
enum count_ends { ENDS_AUTO, ENDS_NONE, ENDS_EMBEDDING, ENDS_HEAD, ENDS_BOTH, ENDS_COUNT };
/* How images lie between convolutions. */
enum memory_format { FORMAT_AUTO, FORMAT_CHANNELS_FIRST, FORMAT_CHANNELS_LAST, FORMAT_COUNT };
/* What adds the results of a token's experts up: one kernel, or an atomic addition an element; AUTO: as the stack. */
enum expert_sums { SUMS_AUTO, SUMS_KERNEL, SUMS_ATOMIC, SUMS_COUNT };
/* What the router's gates multiply: experts' results, or the activation between their products (step/builder/moe.c). */
enum expert_gates { GATES_AUTO, GATES_RESULT, GATES_ACTIVATION, GATES_COUNT };
/* How tokens travel to their experts: each copy by itself; or once to each host, and there on to its experts: by
 * kernels that fill the links (HybridEP), or by DeepEP's, whose SMs bound them, too (configs/model/deepep.yaml). */
enum expert_dispatch { DISPATCH_ALL_TO_ALL, DISPATCH_ONCE_A_HOST, DISPATCH_DEEPEP, DISPATCH_COUNT };
enum mesh_dim {
	DIM_TP,
	DIM_CP,
	DIM_EP,
	DIM_DP,
	DIM_PP,
	DIM_COUNT, /* so many make the order */
	/* and what is made of data and context: both together; hsdp's groups of ranks that cut a bucket among them, and
	   of those that hold the same part */
	DIM_DP_CP = DIM_COUNT,
	DIM_SHARD,
	DIM_REPLICA,
	DIM_EDP, /* of all ranks of a stage, or of a shard group: those that hold the same parts of the same experts.
	            DIM_EP and DIM_ETP cut the rest of them */
	DIM_ETP,
	DIM_ALL
};
/* For which layers PyTorch's scaled_dot_product_attention is given a mask. Hugging Face's models give one to layers
 * whose window is no longer than the sequence, and where the whole model is compiled to all (transformers 4.53 to 5.17,
 * masking_utils.py, _ignore_causal_mask_sdpa). */
enum attention_mask { MASK_NONE, MASK_WINDOWS, MASK_ALL, MASK_COUNT };
enum tristate { TRI_AUTO, TRI_TRUE, TRI_FALSE, TRI_COUNT };
enum backend { BACKEND_AUTO, BACKEND_CUDA, BACKEND_HOST, BACKEND_COUNT };

struct train {
	char stack[STACK_NAME];
	int64_t global_batch; /* sequences of a step; follows from one of the next two, where it is above 0, by
	                         config_resolve */
	double tokens_per_step, batch_per_gpu; /* tokens of a step; sequences of a step for each rank */
	int64_t micro_batch;
	enum dtype dtype, param_dtype, grad_dtype, reduce_dtype;
	enum fp8_recipe fp8_recipe;
	bool master_weights; /* the optimizer keeps an fp32 copy (param_dtype narrower than fp32) */
	enum compression grad_compression;
	enum optimizer optimizer;
	int64_t optimizer_bits;
	bool optimizer_in_backward; /* an update follows its gradients in the backward pass */
	enum attention attention;
	enum attention_kernel attention_kernel; /* flash: its generation; AUTO: the stack's */
	enum attention_mask attention_mask;
	int64_t attention_block; /* queries and keys that splash attention computes whole on a TPU; 0: a tile's */
	bool attention_split;    /* its backward pass is a kernel for the queries' gradients and one for the others */
	enum recompute recompute;
	int recompute_modules;    /* AUTO: core_attn with naive attention; flash attention keeps no scores */
	int recompute_saves;      /* AUTO: every second product, attention, and what torchtitan saves beside */
	int64_t recompute_layers; /* AUTO: all */
	enum tristate recompute_early_stop; /* full: a block that runs again stops behind what its backward pass reads;
	                                       AUTO: the stack's (habit recompute_last_gemm) */
	enum tristate fused_gradient_sums;  /* products of weights' gradients add to the sums; else kernels of their own
	                                       do; AUTO: as the stack */
	enum dtype lora_dtype;              /* in which adapters multiply; DT_COUNT: as all products */
	enum dtype lora_base;               /* in which the blocks' frozen matrices lie (QLoRA); DT_COUNT: as
	                                       param_dtype */
	enum offload offload;
	int64_t offload_layers;      /* the first ones, with OFF_ACTIVATIONS; AUTO: all */
	bool store_param_remainders; /* of fp32 master weights the optimizer has what bf16 ones lack: 2 bytes */
	bool fused, cuda_graph;
	int fused_kernels;                  /* AUTO: none; where fused holds nothing reads it */
	enum optimizer_impl optimizer_impl; /* how the update is launched; follows fused unless set */
	enum memory_format memory_format;   /* of images between convolutions; AUTO: the stack's */
	bool launch_blocking;               /* the host thread waits for each launch (CUDA_LAUNCH_BLOCKING=1) */
	enum expert_gates expert_gates;
	enum expert_sums expert_sums;
	enum dtype attention_dtype; /* of attention's products: DT_FP8, or DT_COUNT: the 16 bits of its operands */
	int64_t loss_chunk;         /* tokens whose logits are there at once; 0: all; AUTO: the stack's */
	enum dtype act_input_dtype; /* in which a block keeps its activations' inputs: DT_FP8, or DT_COUNT: as they are
	                             */
	bool expert_loop;    /* experts are called one by one, and the host thread waits for the tokens of each */
	int64_t expert_tile; /* rows of a tile of grouped products on a TPU; 0: no tile is shared by experts */
	bool wide_experts;   /* where dtype is narrower than 16 bits, the products of experts are not */
	bool narrow_head;    /* where dtype is narrower than 16 bits, the products of the vocabulary head are, too */
	bool fused_experts;  /* experts' activations, and the casts of what these leave, run inside their products */
	int64_t sync_every;
};

struct data {
	double load_time_s;
	uint64_t bytes; /* a micro-batch on one rank, host to device; 0: 8 bytes a token */
	int64_t workers, prefetch;
	bool pin_memory;
	bool repeated_token;     /* every input is the same token */
	int64_t distinct_tokens; /* different tokens of a step, as experts see them; 0: many */
};

struct parallel {
	enum strategy strategy;
	int64_t data, shard; /* AUTO until config_resolve */
	int64_t replicate; /* groups of `shard` replicas; AUTO: not given, and after config_resolve, as shard says it */
	int64_t tensor;
	bool tensor_overlap, sequence_parallel;
	int64_t pipeline, virtual_stages;
	enum schedule schedule;
	int64_t layers_per_stage[CONFIG_MAX_STAGES];
	int64_t n_layers_per_stage;
	int64_t first_stage_layers, last_stage_layers; /* AUTO: as the others */
	enum count_ends count_ends;
	int64_t context;
	enum context_kind context_kind;
	int64_t expert, expert_tensor;
	enum expert_dispatch expert_dispatch;
	enum dtype gather_dtype;   /* of matrices: DT_FP8, DT_BF16; of all weights: DT_FP32; DT_COUNT: the stack's */
	enum dtype dispatch_dtype; /* of tokens on their way to experts: DT_FP8, or DT_COUNT: as activations */
	bool expert_overlap;       /* exchanges of experts move behind another micro-batch's compute */
	enum mesh_dim order[DIM_COUNT];  /* innermost first */
	double bucket_B, first_bucket_B; /* first: < 0 is auto until resolved */
	bool gradient_as_bucket_view;    /* ddp, zero1: the buckets hold the gradients; else copies of them */
	bool overlap;
	enum tristate gather_overlap; /* zero1: updated weights are gathered beside the next forward pass */
	int64_t prefetch;
	int64_t unit_params; /* FSDP1 wraps modules of so many parameters; 0: a block is a unit */
	bool adapter_units;  /* FSDP1 wraps both factors of each adapter, each in a unit of its own */
	bool shard_experts; /* fsdp with expert ranks: experts are cut, too; else each rank that has one holds all of it
	                     */
	bool reshard_after_forward;
};

/* A rank, or each rank of host `index`, whose compute takes `factor` times as long. No padding: compared as bytes. */
struct slow_rank {
	int64_t index, is_host;
	double factor;
};
#define CONFIG_MAX_SLOW 64

struct cluster_config {
	char system[CONFIG_TEXT]; /* "auto", a system's name, a file, or a system line */
	int64_t nodes;
	int64_t gpus_per_node;     /* 0: the system's own */
	char profile[CONFIG_TEXT]; /* "": cached or catalogue */
	char fabric[CONFIG_TEXT];  /* a name in configs/fabrics, or outputs of nccl-tests parted by commas; "": the
	                              system's */
	double network_factor;     /* of the rates between hosts, over those that are measured or in the catalogue */
	struct slow_rank slow_ranks[CONFIG_MAX_SLOW];
	int64_t n_slow_ranks;
	double jitter;     /* standard deviation of a rank's compute time in a step, over the mean */
	double mtbf_hours; /* mean time between failures that end the job, of all its hosts together; 0: not given */
	double mtbf_gpu_hours; /* the same for one GPU: n of them fail n times as often; 0: not given */
	double checkpoint_s;   /* for which the job stands still to write one */
};

struct run {
	enum tristate execute;
	enum backend backend;
	bool share_gpu;
	int64_t warmup, steps;
	double timeout_s;
	bool verify;
};

struct cost {
	double gpu_hour_usd, system_price_usd, amortize_years, power_usd_per_kwh, pue,
		co2_kg_per_kwh; /* AUTO: not given */
};

/* The source of a key's value, for messages. Later ones win. */
enum origin { ORIGIN_DEFAULT, ORIGIN_STACK, ORIGIN_PRESET /* or hf_config */, ORIGIN_FILE, ORIGIN_SET, ORIGIN_COUNT };
struct key_origin {
	enum origin kind;
	int32_t line, col, key_line, key_col; /* of value and key in the config file; of model.preset, hf_config or
	                                         train.stack for their values; 0: not there */
};
#define CONFIG_MAX_KEYS 256

struct config {
	char path[CONFIG_TEXT];
	char hf_config[CONFIG_TEXT]; /* "": none */
	int64_t longest_seq;         /* as hf_config has it, where seq_len follows from none; else 0 */
	char left_out[HF_LEFT_OUT];  /* parts of the model of hf_config that are not described; "": none */
	struct model model;
	struct train train;
	struct stack stack;           /* of train.stack */
	char stack_given[STACK_NAME]; /* the name that was given for train.stack, which is its file's; "": the same */
	struct data data;
	struct parallel parallel;
	struct collective_choice collectives;
	struct cluster_config cluster;
	struct run run;
	struct cost cost;
	int64_t node_ranks; /* GPUs of a node of the system, set before config_resolve by who knows the system; 0: not
	                       known */
	int64_t executed;   /* 1: stepsim's own executor runs the step, or would, so that a framework's habits of memory
	                       do not count; set before config_resolve by who knows; no bool: hashed by words */
	int64_t ranks;      /* set by config_resolve */
	int64_t micro_batches; /* micro-steps of a rank in one step: global_batch / (micro_batch x data replicas); set
	                          by config_resolve */
	struct key_origin origin[CONFIG_MAX_KEYS]; /* by enum key_id (step/config/keys.h) */
};

#define CONFIG_LIMIT_B ((size_t)1 << 20) /* the longest text of a config that is read */

/* Reads a config file, then the `--set key.path=value` texts, over presets and stack defaults. Checks everything that
 * does not depend on the number of ranks. ST_INPUT: one line "file:line:col: key: what (nearest: name)", or "--set
 * KEY=VALUE: ...". Keys whose effect comes later are refused with "not modelled yet" unless they hold their default. */
enum status config_load(const char *path, const char *const *sets, size_t n_sets, struct config *c, struct error *e);
/* The same from memory, for tests and fuzzing. `name` is used in messages; its folder is the base of relative hf_config
 * paths. */
enum status config_parse(const char *text, size_t len, const char *name, const char *const *sets, size_t n_sets,
	struct config *c, struct error *e);

/* Reads one text as often as needed, each time with other --set texts: it is parsed once, and the files of a stack and
 * a model once as long as they are the same. */
struct config_reader;
/* Borrows `name`, not `text`. Fails as config_parse does; *out is NULL then. */
enum status config_reader_create(const char *text, size_t len, const char *name, struct config_reader **out,
	struct error *e);
void config_reader_destroy(struct config_reader *r); /* NULL-safe */
/* Fills *c as config_parse does. Two threads may not use one reader at once. */
enum status config_read(struct config_reader *r, const char *const *sets, size_t n_sets, struct config *c,
	struct error *e);

/* Replaces what a user typed before the `=` of --set by the key's path: "section.key", a key that one section alone
 * has, or another name of a key (docs/reference.md). Replaces the value by the key's own word: "AdamW" by "adamw",
 * and "2" by "zero2" behind "zero_stage". The results are static, or `value` itself. ST_INPUT: what is wrong,
 * without the text itself. */
enum status config_key_typed(const char **key, const char **value, struct error *e);

/* A key in words, for `stepsim list keys`. */
#define CONFIG_NAMES_MAX 512
struct config_key_words {
	const char *path, *meaning;
	char default_[CONFIG_NAMES_MAX]; /* "(heads)": it follows from other keys; "": an empty text */
	char values[CONFIG_NAMES_MAX];   /* what it takes: "from 1", "none, selective, full" */
	char names[CONFIG_NAMES_MAX];    /* its other names; "" */
};
/* Fills the i-th; false behind the last. */
bool config_key_words(size_t i, struct config_key_words *out);

/* Returns the ranks that the plan itself fixes: data x tensor x pipeline x context with data given, else 0 (any
 * multiple of the model-parallel size). */
int64_t config_fixed_ranks(const struct config *c);

/* Fills every `auto` for `ranks` ranks and checks the plan: ranks that do not divide, heads that tensor does not
 * divide, a global batch that does not split... ST_INPUT names the key and the nearest values that work. */
enum status config_resolve(struct config *c, int64_t ranks, struct error *e);

/* Put "file:line:col: section.key: " (or "--set section.key=VALUE: ") before a failure that the key's value led to.
 * Return the recorded status. */
enum status config_blame_system(const struct config *c, struct error *e);  /* cluster.system */
enum status config_blame_profile(const struct config *c, struct error *e); /* cluster.profile */
enum status config_blame_fabric(const struct config *c, struct error *e);  /* cluster.fabric */
enum status config_blame_batch(const struct config *c,
	struct error *e); /* train.global_batch, or the key that gave it */
enum status config_blame_dtype(const struct config *c, struct error *e); /* train.dtype */

/* Returns the sequences of a step on `ranks` ranks, rounded to whole ones, of a parsed config. */
int64_t config_global_batch(const struct config *c, int64_t ranks);

/* Returns the mean time between failures of the job, in hours: cluster.mtbf_hours, or cluster.mtbf_gpu_hours over the
 * ranks of a resolved config. 0: not given. */
double config_mtbf_hours(const struct config *c);

/* Returns the factor by which cluster.slow_ranks lengthens the compute of `rank`, with `ranks_per_host` ranks a host:
 * the largest factor that names it, or 1. */
double config_slowness(const struct config *c, int64_t rank, int64_t ranks_per_host);

/* Returns what of a config no device executes, as "KEY is predicted, not executed"; NULL where all is. */
const char *config_predicted_only(const struct config *c);

/* Returns the resolved config as JSON with the words of CONFIG.yaml, one object a section: a new reference, or NULL
 * when out of memory. */
json_t *config_json(const struct config *c);

/* Returns the word of a dimension in CONFIG.yaml. */
const char *mesh_dim_name(enum mesh_dim d);
/* Returns whether selective recomputation runs any of these modules again: bits of enum recompute_module. */
bool train_recomputes(const struct train *t, int modules);
/* Returns whether every micro-batch reduces its own gradients: those that a rank stores a part of. Not with units and a
 * pipeline, which sums whole gradients until the last one (torch/distributed/pipelining/stage.py,
 * backward_maybe_with_nosync: set_requires_gradient_sync(False)). */
bool parallel_reduces_each(const struct parallel *p);
/* Returns whether the buckets of ddp and zero1 stay beside the gradients (gradient_as_bucket_view). */
bool parallel_holds_buckets(const struct config *c);
/* Returns whether gradients are freed behind each update: where the stack does, and no bucket holds them. */
bool gradients_are_freed(const struct config *c);
/* Returns whether all gradients exist while as many micro-batches are in flight as ever are: always, unless the stack
 * frees them behind each step. Then a forward pass must follow the first backward pass of every part of a stage. */
bool gradients_meet_activations(const struct config *c);
/* Returns whether a recomputed block keeps its input alone, and what recompute_modules op saves. */
bool train_reruns_blocks(const struct train *t);

#endif
