#include "cli/import.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/memory_stream.h"
#include "base/paths.h"
#include "cli/machine.h"
#include "cli/starter.h"

enum status import_text(const struct import *im, char **text, size_t *len, struct error *e)
{
	FILE *out = memory_stream(text, len);
	enum status st = out ? import_write(im, out, e) : error_nomem(e, "the config");
	return out && !memory_stream_close(out) && !st ? error_nomem(e, "the config") : st;
}

static enum status put_model(struct import *im, const char *name, struct error *e)
{
	char path[PATH_MAX_LEN];
	bool file;
	enum status st = starter_find_model(name, &file, path, e);
	if (st)
		return st;
	if (file && strlen(path) >= CONFIG_TEXT)
		return error_set(e, ST_INPUT, "--model %.80s: the path is too long", name);
	import_put(im, file ? KEY_model_hf_config : KEY_model_preset, path, "--model");
	return ST_OK;
}

static void put_number(struct import *im, enum key_id id, int64_t value, const char *remark)
{
	char text[32];
	snprintf(text, sizeof text, "%lld", (long long)value);
	import_put(im, id, text, remark);
}

/* Keeps the number of micro-batches in a step where --set gives another micro-batch, and the text a GPU's share of the
 * batch, as accumulation of so many: frameworks multiply the two. */
static void keep_accumulation(struct import *im, const char *micro_batch)
{
	const struct import_key *share = &im->key[KEY_train_batch_per_gpu], *each = &im->key[KEY_train_micro_batch];
	const long long batch = import_has(im, KEY_train_batch_per_gpu) ? strtoll(share->value, NULL, 10) : 0,
			old = import_has(im, KEY_train_micro_batch) ? strtoll(each->value, NULL, 10) : 0,
			now = strtoll(micro_batch, NULL, 10);
	char remark[REMARK_MAX];
	if (batch < 1 || old < 1 || batch % old != 0 || now < 1 || now > INT32_MAX)
		return;
	snprintf(remark, sizeof remark, "%lld micro-batch%s of --set train.micro_batch", batch / old,
		batch == old ? "" : "es");
	put_number(im, KEY_train_batch_per_gpu, batch / old * now, remark);
}

/* Puts the keys of --set among what is written. A text that is no KEY=VALUE of a key is refused when all is parsed. */
static void put_sets(const struct options *o, struct import *im)
{
	for (size_t i = 0; i < o->sets.n; i++) {
		const char *value;
		enum key_id id;
		if (config_set_read(o->sets.at[i], &value, &id, NULL) == ST_OK && *value &&
			strlen(value) < KEY_VALUE_MAX) {
			if (id == KEY_train_micro_batch)
				keep_accumulation(im, value);
			import_put(im, id, value, "--set");
		}
	}
}

/* Parses what there is so far. */
static enum status parse(const struct options *o, const struct import *im, struct config *c, struct error *refused,
	struct error *e)
{
	char *text = NULL;
	size_t len = 0;
	char name[CONFIG_TEXT];
	snprintf(name, sizeof name, "%.200s" IMPORT_WRITTEN, im->name);
	enum status st = import_text(im, &text, &len, e);
	if (!st)
		config_parse(text, len, name, o->sets.at, o->sets.n, c, refused);
	free(text);
	return st;
}

/* Leaves the GPUs of a host to the system, where the file names all that it has. */
static void drop_whole_hosts(struct import *im, const struct config *c)
{
	struct config all = *c;
	all.cluster.gpus_per_node = 0;
	if (c->cluster.gpus_per_node > 0 &&
		target_take_gpus(&all, c->cluster.nodes * c->cluster.gpus_per_node, NULL) == ST_OK &&
		all.cluster.nodes == c->cluster.nodes && all.cluster.gpus_per_node == 0)
		import_drop(im, KEY_cluster_gpus_per_node);
}

/* Returns the GPUs of one replica, or of as many as its experts are spread over. */
static int64_t fewest_gpus(const struct config *c)
{
	const struct parallel *p = &c->parallel;
	const int64_t dense = p->tensor * p->context,
		      experts = p->expert * (p->expert_tensor > 0 ? p->expert_tensor : 1);
	return p->pipeline * (dense > experts ? dense : experts);
}

/* Refuses a plan that takes more GPUs than the text has. */
static void check_gpus(const struct import *im, const struct config *c, struct error *refused)
{
	const int64_t least = fewest_gpus(c), have = c->cluster.nodes * c->cluster.gpus_per_node;
	if (import_has(im, KEY_cluster_nodes) && have > 0 && have < least)
		error_set(refused, ST_INPUT,
			"%s: its parallel degrees take %lld GPUs, and it has %lld (--gpus N takes more)", im->name,
			(long long)least, (long long)have);
}

/* Takes as many hosts as --gpus or the plan's degrees ask for, also into c. */
static enum status put_hosts(const struct options *o, struct import *im, struct config *c, struct error *refused,
	struct error *e)
{
	const int64_t fixed = config_fixed_ranks(c), least = fewest_gpus(c),
		      gpus = o->gpus     ? o->gpus
	                     : fixed     ? fixed
	                     : least > 1 ? least
	                                 : 0;
	const char *remark = o->gpus ? "--gpus" : fixed ? "the plan's GPUs" : "the fewest for the plan (--gpus)";
	struct config taken = *c;
	struct error why = {0};
	if (!o->gpus) {
		check_gpus(im, c, refused);
		drop_whole_hosts(im, c);
	}
	if (gpus == 0 && !import_has(im, KEY_cluster_nodes) && !import_has(im, KEY_cluster_gpus_per_node))
		put_number(im, KEY_cluster_nodes, c->cluster.nodes, "assumed: --gpus N takes more");
	if (gpus == 0 || (!o->gpus && import_has(im, KEY_cluster_nodes)))
		return ST_OK;
	const enum status st = target_take_gpus(&taken, gpus, &why);
	if (st)
		return st == ST_INPUT && !o->gpus ? ST_OK : error_set(e, st, "%s", why.text);
	if (!o->gpus && !fixed && taken.cluster.nodes <= 1)
		return ST_OK;
	import_drop(im, KEY_cluster_gpus_per_node);
	put_number(im, KEY_cluster_nodes, taken.cluster.nodes, remark);
	if (taken.cluster.gpus_per_node > 0)
		put_number(im, KEY_cluster_gpus_per_node, taken.cluster.gpus_per_node, remark);
	c->cluster = taken.cluster;
	return ST_OK;
}

/* Returns the GPUs of the config's system; 0: they are this machine's, or not known. */
static int64_t count_gpus(const struct config *c)
{
	struct machine m;
	if (strcmp(c->cluster.system, "auto") == 0 ||
		machine_load(c->cluster.system, c->cluster.nodes, c->cluster.gpus_per_node, &m, NULL))
		return 0;
	const int64_t gpus = c->cluster.nodes * m.devices_per_node;
	machine_free(&m);
	return gpus;
}

/* Takes the micro-batch that follows from the batch and the GPUs, where the text says no other. */
static void put_micro_batch(struct import *im, const struct config *c, struct error *refused)
{
	if (!import_splits_batch(im))
		return;
	const int64_t gpus = count_gpus(c), model = c->parallel.tensor * c->parallel.context * c->parallel.pipeline;
	if (gpus > 0 && gpus % model == 0)
		import_split_batch(im, config_global_batch(c, gpus), gpus / model, refused);
}

static bool is_named(const struct import *im)
{
	return import_has(im, KEY_model_preset) || import_has(im, KEY_model_hf_config);
}

/* Returns whether the text or the options say which model it is; CONFIG.yaml would take another one's sizes. A text
 * with layers alone changes a model that it does not name. */
static bool names_model(const struct import *im)
{
	return is_named(im) || (import_has(im, KEY_model_layers) && import_has(im, KEY_model_hidden));
}

/* Takes the default of the vocabulary, which a text of sizes may leave to its tokenizer. */
static void put_vocabulary(struct import *im)
{
	const struct import_key *k = &im->key[KEY_model_vocab];
	char value[KEY_VALUE_MAX];
	if (!names_model(im) || is_named(im) || k->given)
		return;
	snprintf(value, sizeof value, "%s", k->by_default ? k->value : config_key(KEY_model_vocab)->default_);
	import_put(im, KEY_model_vocab, value, "assumed: the tokenizer decides (--set model.vocab=N)");
}

/* Returns whether a key would have named the model; `plain`: and is no name of a class or function of Python, which
 * says less than what it is given. */
static bool would_name_model(const struct leaf *l, bool plain)
{
	const char *dot = strrchr(l->path, '.'), *last = dot ? dot + 1 : l->path;
	const bool code = *last == '_' && last[strlen(last) - 1] == '_';
	return l->verdict == NOT_MODELLED && l->unmet == KEY_model_preset && !(plain && code);
}

/* Joins the values that name the model, "llama3 8B"; returns the first of them, or NULL. */
static const struct leaf *model_named(const struct import *im, bool plain, char name[160])
{
	const struct leaf *first = NULL;
	*name = '\0';
	for (size_t i = 0; i < im->foreign.leaves.n; i++) {
		const struct leaf *l = &im->foreign.leaves.at[i];
		const size_t n = strlen(name);
		if (!would_name_model(l, plain))
			continue;
		first = first ? first : l;
		snprintf(name + n, 160 - n, "%s%s", n ? " " : "", l->value);
	}
	return first;
}

/* Says that the text names no model that is known, and which it names. */
static void refuse_model(const struct import *im, struct error *refused)
{
	char name[160];
	const struct leaf *named = model_named(im, true, name);
	named = named ? named : model_named(im, false, name);
	if (named)
		error_set(refused, ST_INPUT,
			"%s:%d: its model %s is no preset: --model takes its config.json, or a name of "
			"`stepsim list models`",
			im->name, named->node->line, name);
	else
		error_set(refused, ST_INPUT, "%s: %s: --model takes a config.json, or a name of `stepsim list models`",
			im->name,
			import_has(im, KEY_model_layers)   ? "it has a number of layers, and no model that is known"
			: import_has(im, KEY_model_hidden) ? "it has a hidden size, but no number of layers, and no "
							     "model that is known"
							   : "it names no model that is known");
}

/* Says where ranks, batch and what is modelled do not go together, as a prediction of the config would. */
static enum status check_plan(const struct options *o, const struct import *im, struct config *c, struct error *refused,
	struct error *e)
{
	struct machine m;
	const enum status st = parse(o, im, c, refused, e);
	if (st || refused->status || strcmp(c->cluster.system, "auto") == 0)
		return st;
	if (machine_load(c->cluster.system, c->cluster.nodes, c->cluster.gpus_per_node, &m, refused)) {
		config_blame_system(c, refused);
		return ST_OK;
	}
	c->cluster.nodes = m.nodes;
	c->node_ranks = m.devices_per_node;
	config_resolve(c, m.nodes * m.devices_per_node, refused);
	machine_free(&m);
	return ST_OK;
}

static enum status complete(const struct options *o, struct import *im, struct error *refused, struct error *e)
{
	enum status st = o->model ? put_model(im, o->model, e) : ST_OK;
	put_sets(o, im);
	put_vocabulary(im);
	if (o->gpus)
		import_drop(im, KEY_parallel_data); /* it follows from them */
	if (o->system)
		import_put(im, KEY_cluster_system, o->system, "--system");
	else if (!import_has(im, KEY_cluster_system))
		import_put(im, KEY_cluster_system, STARTER_SYSTEM, "assumed: --system NAME takes another");
	im->lacks_model = !names_model(im);
	if (im->lacks_model)
		refuse_model(im, refused);
	struct config *c = st ? NULL : malloc(sizeof *c);
	if (!st && !c)
		st = error_nomem(e, "a config");
	if (!st && !refused->status && !(st = parse(o, im, c, refused, e)) && !refused->status)
		st = put_hosts(o, im, c, refused, e);
	if (!st && !refused->status)
		put_micro_batch(im, c, refused);
	if (!st && !refused->status)
		st = check_plan(o, im, c, refused, e);
	if (!st && refused->status && !im->lacks_model)
		import_explain(im, refused);
	free(c);
	return st;
}

enum status import_complete(const struct options *o, const char *text, size_t len, const char *name, bool *found,
	struct import *out, struct error *refused, struct error *e)
{
	enum status st = import_read(text, len, name, o->from, found, out, e);
	if (st || !*found)
		return st;
	st = complete(o, out, refused, e);
	if (st)
		import_free(out);
	return st;
}
