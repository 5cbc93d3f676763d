#include "step/config/keys.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/array.h"

/* ---- words ---- */

#define WORDS(name, count, ...) \
	static const struct word name##_words[] = {__VA_ARGS__}; \
	static_assert(COUNT(name##_words) == (count), "a word for each")

WORDS(position, POS_COUNT, {"learned", POS_LEARNED}, {"rope", POS_ROPE}, {"alibi", POS_ALIBI}, {"none", POS_NONE},
	{"sincos", POS_SINCOS}, {"relative", POS_RELATIVE});
WORDS(window_kind, WINDOW_KIND_COUNT, {"sliding", WINDOW_SLIDING}, {"chunked", WINDOW_CHUNKED});
WORDS(mlp, MLP_COUNT, {"gelu", MLP_GELU}, {"relu", MLP_RELU}, {"squared_relu", MLP_SQUARED_RELU},
	{"swiglu", MLP_SWIGLU}, {"geglu", MLP_GEGLU});
WORDS(lora_targets, LORA_TARGETS_COUNT, {"all", LORA_ALL}, {"attention", LORA_ATTENTION}, {"qkv", LORA_QKV});
WORDS(lora_dtype, 2, {"auto", DT_COUNT}, {"fp32", DT_FP32});
WORDS(lora_base, 4, {"none", DT_COUNT}, {"int8", DT_INT8}, {"nf4", DT_NF4}, {"nf4_double", DT_NF4_DOUBLE});
WORDS(freeze, FREEZE_COUNT, {"none", FREEZE_NONE}, {"embedding", FREEZE_EMBEDDING}, {"attention", FREEZE_ATTENTION},
	{"mlp", FREEZE_MLP});
WORDS(qk_norm, QK_NORM_COUNT, {"none", QK_NORM_NONE}, {"head", QK_NORM_HEAD}, {"full", QK_NORM_FULL});
WORDS(branch_norm, BRANCH_NORM_COUNT, {"none", BRANCH_NORM_NONE}, {"sandwich", BRANCH_NORM_SANDWICH},
	{"reordered", BRANCH_NORM_REORDERED});
WORDS(input, INPUT_COUNT, {"tokens", INPUT_TOKENS}, {"patches", INPUT_PATCHES}, {"pixels", INPUT_PIXELS},
	{"frames", INPUT_FRAMES});
WORDS(norm, NORM_COUNT, {"layernorm", NORM_LAYERNORM}, {"rmsnorm", NORM_RMSNORM});
/* Nothing is computed in int32, and stored as int32 or tf32. */
WORDS(compute_dtype, DT_INT32, {"fp32", DT_FP32}, {"tf32", DT_TF32}, {"fp16", DT_FP16}, {"bf16", DT_BF16},
	{"fp8", DT_FP8}, {"mxfp8", DT_MXFP8}, {"nvfp4", DT_NVFP4});
WORDS(storage_dtype, DT_INT32, {"auto", DTYPE_AUTO}, {"fp32", DT_FP32}, {"fp16", DT_FP16}, {"bf16", DT_BF16},
	{"fp8", DT_FP8}, {"mxfp8", DT_MXFP8}, {"nvfp4", DT_NVFP4});
WORDS(gather_dtype, 4, {"auto", DT_COUNT}, {"fp32", DT_FP32}, {"bf16", DT_BF16}, {"fp8", DT_FP8});
#define FP8_RECIPE_WORD(id, word, ...) {word, FP8_##id},
WORDS(fp8_recipe, FP8_RECIPE_COUNT, {"auto", FP8_AUTO}, FP8_RECIPES(FP8_RECIPE_WORD));
WORDS(compression, COMPRESS_COUNT, {"none", COMPRESS_NONE}, {"bf16", COMPRESS_BF16}, {"fp16", COMPRESS_FP16});
#define OPTIMIZER_WORD(id, word, ...) {word, OPT_##id},
static const struct word optimizer_words[] = {OPTIMIZERS(OPTIMIZER_WORD)};
WORDS(optimizer_impl, IMPL_COUNT, {"fused", IMPL_FUSED}, {"foreach", IMPL_FOREACH}, {"for_loop", IMPL_FOR_LOOP});
static const struct word optimizer_bits_words[] = {{"32", 32}, {"16", 16}, {"8", 8}};
WORDS(attention, ATT_COUNT, {"flash", ATT_FLASH}, {"naive", ATT_NAIVE});
WORDS(attention_kernel, KERNEL_COUNT + 1, {"auto", KERNEL_AUTO}, {"fa1", KERNEL_FA1}, {"fa2", KERNEL_FA2},
	{"fa3", KERNEL_FA3}, {"fa4", KERNEL_FA4}, {"masked", KERNEL_MASKED});
WORDS(attention_mask, MASK_COUNT, {"none", MASK_NONE}, {"windows", MASK_WINDOWS}, {"all", MASK_ALL});
WORDS(recompute, REC_COUNT, {"none", REC_NONE}, {"selective", REC_SELECTIVE}, {"full", REC_FULL});
WORDS(recompute_modules, REC_MODULE_COUNT, {"core_attn", REC_CORE_ATTN}, {"layernorm", REC_LAYERNORM},
	{"mla_up_proj", REC_MLA_UP_PROJ}, {"moe_act", REC_MOE_ACT}, {"mlp", REC_MLP}, {"moe", REC_MOE},
	{"shared_experts", REC_SHARED_EXPERTS}, {"op", REC_OP});
WORDS(recompute_saves, SAVE_COUNT, {"qkv", SAVE_QKV}, {"attention", SAVE_ATTENTION}, {"proj", SAVE_PROJ},
	{"fc1", SAVE_FC1});
WORDS(fused_kernels, FUSE_COUNT, {"norm", FUSE_NORM}, {"rotary", FUSE_ROTARY}, {"gate", FUSE_GATE},
	{"torch_norm", FUSE_TORCH_NORM});
WORDS(offload, OFF_COUNT, {"none", OFF_NONE}, {"optimizer", OFF_OPTIMIZER}, {"optimizer+params", OFF_OPTIMIZER_PARAMS},
	{"activations", OFF_ACTIVATIONS});
#define STRATEGY_WORD(id, word, ...) {word, STRAT_##id},
static const struct word strategy_words[] = {STRATEGIES(STRATEGY_WORD, STRATEGY_WORD)};
#define SCHEDULE_WORD(id, word, ...) {word, SCHED_##id},
static const struct word schedule_words[] = {SCHEDULES(SCHEDULE_WORD)};
WORDS(count_ends, ENDS_COUNT, {"auto", ENDS_AUTO}, {"none", ENDS_NONE}, {"embedding", ENDS_EMBEDDING},
	{"head", ENDS_HEAD}, {"both", ENDS_BOTH});
#define CONTEXT_WORD(id, word, ...) {word, CTX_##id},
static const struct word context_kind_words[] = {CONTEXT_KINDS(CONTEXT_WORD)};
WORDS(expert_dispatch, DISPATCH_COUNT, {"all_to_all", DISPATCH_ALL_TO_ALL}, {"once_a_host", DISPATCH_ONCE_A_HOST},
	{"deepep", DISPATCH_DEEPEP});
WORDS(memory_format, FORMAT_COUNT, {"auto", FORMAT_AUTO}, {"channels_first", FORMAT_CHANNELS_FIRST},
	{"channels_last", FORMAT_CHANNELS_LAST});
WORDS(expert_sums, SUMS_COUNT, {"auto", SUMS_AUTO}, {"kernel", SUMS_KERNEL}, {"atomic", SUMS_ATOMIC});
WORDS(expert_gates, GATES_COUNT, {"auto", GATES_AUTO}, {"result", GATES_RESULT}, {"activation", GATES_ACTIVATION});
WORDS(dispatch_dtype, 2, {"auto", DT_COUNT}, {"fp8", DT_FP8});
WORDS(dim, DIM_COUNT, {"tp", DIM_TP}, {"cp", DIM_CP}, {"ep", DIM_EP}, {"dp", DIM_DP}, {"pp", DIM_PP});
#define ALGORITHM_WORD(id, word, ...) {word, ALGO_##id},
static const struct word algorithm_words[] = {ALGORITHMS(ALGORITHM_WORD)};
#define PROTOCOL_WORD(id, word, ...) {word, PROTO_##id},
static const struct word protocol_words[] = {PROTOCOLS(PROTOCOL_WORD)};
WORDS(tristate, TRI_COUNT, {"auto", TRI_AUTO}, {"true", TRI_TRUE}, {"false", TRI_FALSE});
WORDS(backend, BACKEND_COUNT, {"auto", BACKEND_AUTO}, {"cuda", BACKEND_CUDA}, {"host", BACKEND_HOST});

/* ---- the table ---- */

#define INT(l, h) .type = KEY_INT, .low = (l), .high = (h)
#define INT_AUTO(l, h) INT(l, h), .takes_auto = true
#define REAL(l, h, u) .type = KEY_REAL, .low = (l), .high = (h), .unit = (u)
#define REAL_AUTO(l, h, u) REAL(l, h, u), .takes_auto = true
#define TIME(l, h) REAL(l, h, UNIT_SECOND), .values = "a time"
#define USD_AUTO(l, h) REAL_AUTO(l, h, UNIT_USD), .values = "USD"
#define MIB(l, h) .type = KEY_MIB, .low = (l), .high = (h), .values = "a size"
#define MIB_AUTO(l, h) MIB(l, h), .takes_auto = true
#define BYTES(l, h) .type = KEY_BYTES, .low = (l), .high = (h), .unit = UNIT_BYTE, .values = "a size"
#define BOOL .type = KEY_BOOL, .values = "true, false"
#define WORD(w) .type = KEY_WORD, .words = w##_words, .n_words = COUNT(w##_words)
#define STORAGE_WORD WORD(storage_dtype), .n_later = 1
#define NUMBER_WORD(w) .type = KEY_NUMBER_WORD, .words = w##_words, .n_words = COUNT(w##_words)
#define SET_AUTO(w) .type = KEY_SET, .words = w##_words, .n_words = COUNT(w##_words), .takes_auto = true
#define TEXT(what) .type = KEY_TEXT, .values = (what)
#define TEXTS(what) .type = KEY_TEXTS, .values = (what)
#define ORDER .type = KEY_ORDER, .words = dim_words, .n_words = COUNT(dim_words), .values = "each of the five, once"
#define STAGES .type = KEY_STAGES, .low = 0, .high = 10000, .values = "a list, from 0"
#define RANKS .type = KEY_RANKS, .low = 1, .high = 1000, .values = "a map"
#define FOLLOWS(text) NULL, .follows = (text)
#define KEY(section_, key_, type_, member_, default_text, used, meaning_) \
	[KEY_##section_##_##key_] = {.section = #section_, \
		.name = #key_, \
		.path = #section_ "." #key_, \
		type_, \
		.offset = offsetof(struct config, member_), \
		.size = sizeof((struct config *)0)->member_, \
		.default_ = default_text, \
		.used_by = (used), \
		.meaning = (meaning_)},

static const struct config_key keys[] = {
#include "step/config/keys.def"
};
static_assert(COUNT(keys) == KEY_COUNT, "one row for each key");
static_assert(KEY_COUNT <= CONFIG_MAX_KEYS, "struct config has an origin for each key");
static_assert(sizeof(enum dtype) == sizeof(int) && sizeof(enum position) == sizeof(int), "words are stored as int");

const char *const config_sections[CONFIG_SECTIONS] = {"model", "train", "data", "parallel", "collectives", "cluster",
	"run", "cost"};

const struct config_key *config_key(enum key_id id) { return &keys[id]; }

enum key_id config_key_find(const char *section, size_t section_len, const char *name)
{
	for (int i = 0; i < KEY_COUNT; i++)
		if (strlen(keys[i].section) == section_len && memcmp(keys[i].section, section, section_len) == 0 &&
			strcmp(keys[i].name, name) == 0)
			return (enum key_id)i;
	return KEY_COUNT;
}

enum key_id config_key_alone(const char *name)
{
	enum key_id found = KEY_COUNT;
	for (int i = 0; i < KEY_COUNT; i++) {
		if (strcmp(keys[i].name, name) != 0)
			continue;
		if (found != KEY_COUNT)
			return KEY_COUNT;
		found = (enum key_id)i;
	}
	return found;
}

bool config_is_section(const char *name)
{
	for (size_t i = 0; i < CONFIG_SECTIONS; i++)
		if (strcmp(config_sections[i], name) == 0)
			return true;
	return false;
}

/* ---- suggestions ---- */

/* Lists the paths of all keys with this name, or of the key that it is another name of. */
static size_t named(const char *name, const char *paths[KEY_COUNT])
{
	size_t n = 0;
	for (int i = 0; i < KEY_COUNT; i++)
		if (strcmp(keys[i].name, name) == 0)
			paths[n++] = keys[i].path;
	const enum key_id other = config_alias_key(name);
	if (n == 0 && other != KEY_COUNT)
		paths[n++] = keys[other].path;
	return n;
}

struct hint config_key_hint(const char *section, const char *name, bool full)
{
	const char *names[KEY_COUNT], *shown[KEY_COUNT];
	size_t n = named(name, shown), own = 0;
	if (n)
		return suggest_names("nearest", shown, n);
	/* The section's own keys come first, so that they win ties. */
	for (int others = 0; others < 2; others++)
		for (int i = 0; i < KEY_COUNT; i++) {
			if ((strcmp(keys[i].section, section) != 0) != others)
				continue;
			shown[n] = full || others ? keys[i].path : keys[i].name;
			names[n++] = keys[i].name;
			own += !others;
		}
	const char *nearest = suggest_nearest(name, names, n);
	if (nearest)
		return suggest_names("nearest", &shown[suggest_find(nearest, names, n)], 1);
	return own && own <= SUGGEST_ALL ? suggest_names("known", shown, own)
	                                 : (struct hint){" (`stepsim list keys` lists them)"};
}

struct hint config_section_hint(const char *name)
{
	const char *paths[KEY_COUNT];
	const size_t n = named(name, paths);
	return n ? suggest_names("nearest", paths, n) : suggest(name, config_sections, CONFIG_SECTIONS, NULL);
}

/* ---- words of config.h ---- */

const char *mesh_dim_name(enum mesh_dim d)
{
	static const char *const merged[] = {[DIM_DP_CP - DIM_COUNT] = "dp-cp",
		[DIM_SHARD - DIM_COUNT] = "shard",
		[DIM_REPLICA - DIM_COUNT] = "replica",
		[DIM_EDP - DIM_COUNT] = "edp",
		[DIM_ETP - DIM_COUNT] = "etp"};
	return d >= DIM_COUNT && d < DIM_ALL ? merged[d - DIM_COUNT] : key_word(&keys[KEY_parallel_order], (int)d);
}

bool train_recomputes(const struct train *t, int modules)
{
	const int chosen = t->recompute_modules != AUTO ? t->recompute_modules
	                   : t->attention == ATT_NAIVE  ? REC_CORE_ATTN
	                                                : 0;
	return t->recompute == REC_SELECTIVE && (chosen & modules);
}

/* DDP has buckets where there is more than one rank. */
static bool has_buckets(const struct parallel *p)
{
	return (p->data == AUTO || p->data * p->context > 1) &&
	       strategy_fits(p->strategy, STRATEGY_BUCKETS, STRATEGY_CUTS_GRADIENTS);
}

bool parallel_holds_buckets(const struct config *c)
{
	return !c->parallel.gradient_as_bucket_view && has_buckets(&c->parallel);
}

/* DeepSpeed's ZeRO-3 adds a rank's parts up in one array of the whole training (deepspeed/runtime/zero/stage3.py,
 * grad_partitions_flat_buffer). */
bool gradients_are_freed(const struct config *c)
{
	const bool flat = c->stack.copies_gradients && strategy_has(c->parallel.strategy, STRATEGY_CUTS_WEIGHTS);
	return c->stack.frees_gradients && !flat && !(c->parallel.gradient_as_bucket_view && has_buckets(&c->parallel));
}

/* In 1F1B's order the first stage's chunk v of V has its first backward pass behind 2 V p - 1 forward passes of a part,
 * with p stages: it warms up with (V + 1) p - 2, and goes through the V - 1 chunks behind the first one. */
bool gradients_meet_activations(const struct config *c)
{
	const struct parallel *p = &c->parallel;
	const struct schedule_traits *s = &schedule_traits[p->schedule];
	const bool in_order = !s->all_in_flight && (p->pipeline == 1 || !s->splits_backward);
	return !gradients_are_freed(c) || (in_order && c->micro_batches >= 2 * p->pipeline);
}

bool parallel_reduces_each(const struct parallel *p)
{
	return strategy_has(p->strategy, STRATEGY_CUTS_GRADIENTS) &&
	       (p->pipeline == 1 || !strategy_has(p->strategy, STRATEGY_UNITS));
}

bool train_reruns_blocks(const struct train *t) { return t->recompute == REC_FULL || train_recomputes(t, REC_OP); }
