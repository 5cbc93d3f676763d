#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/memory_stream.h"
#include "base/paths.h"
#include "base/quantity.h"
#include "base/sourced.h"
#include "base/suggest.h"
#include "base/table.h"
#include "base/wrap.h"
#include "base/yaml.h"
#include "cli/command.h"
#include "step/config/config.h"
#include "step/framework.h"
#include "topology/machine.h"
#include "topology/catalogue/system.h"

typedef enum status add_rows_fn(struct table *t, const char *name, struct error *e);

/* One kind of catalogue entry: the table's header, and the function that adds the rows of one file. */
struct listing {
	const char *word, *folder, *columns;
	add_rows_fn *add;
	const char *footnote;
};

static const char *mark(bool unverified) { return unverified ? "*" : ""; }

/* "1599", "30000*"; "-" without a figure. */
static const char *price_cell(char cell[QUANTITY_MAX], double usd, bool unverified)
{
	if (usd > 0)
		snprintf(cell, QUANTITY_MAX, usd < 100 ? "%.2f%s" : "%.0f%s", usd, mark(unverified));
	else
		snprintf(cell, QUANTITY_MAX, "-");
	return cell;
}

static const char *number_cell(char cell[QUANTITY_MAX], double value)
{
	snprintf(cell, QUANTITY_MAX, value > 0 ? value < 10 ? "%.3g" : value < 1000 ? "%.4g" : "%.0f" : "-", value);
	return cell;
}

static enum status add_gpu(struct table *t, const char *name, struct error *e)
{
	struct device_spec d;
	char matrix[QUANTITY_MAX], fp8[QUANTITY_MAX], vector[QUANTITY_MAX], memory[QUANTITY_MAX], rate[QUANTITY_MAX],
		ridge[QUANTITY_MAX];
	char links[QUANTITY_MAX], pcie[QUANTITY_MAX], power[QUANTITY_MAX], price[QUANTITY_MAX], rent[QUANTITY_MAX];
	enum status st = device_load(name, &d, e);
	if (st)
		return st;
	bool bf16 = d.matrix_flop_per_s[DT_BF16] > 0;
	double peak = d.matrix_flop_per_s[bf16 ? DT_BF16 : DT_FP16];
	double balance = peak / d.mem_Bps;
	return table_row(t, e, "%s%s|%s|%s%s|%s|%s|%s|%s|%s|%s|%s|%s|%s|%s", name, mark(d.unverified), d.name,
		bf16 ? "" : "fp16 ", number_cell(matrix, peak / 1e12),
		number_cell(fp8, d.matrix_flop_per_s[DT_FP8] / 1e12), number_cell(vector, d.vector_flop_per_s / 1e12),
		quantity_format(memory, (double)d.mem_B, UNIT_BYTE), quantity_format(rate, d.mem_Bps, UNIT_BYTE_PER_S),
		number_cell(ridge, balance < 10 ? balance : round(balance)),
		number_cell(links, (double)d.nvlink_links * d.nvlink_link_Bps / 1e9),
		number_cell(pcie, d.pcie_Bps / 1e9), number_cell(power, d.power_W),
		price_cell(price, d.price_usd, d.price_unverified),
		price_cell(rent, d.rent_usd_per_hour, d.rent_unverified));
}

static enum status add_system(struct table *t, const char *name, struct error *e)
{
	struct system_spec s;
	struct machine m = {0};
	struct group whole;
	char pair[QUANTITY_MAX], node[QUANTITY_MAX], nics[QUANTITY_MAX], out[QUANTITY_MAX], power[QUANTITY_MAX],
		price[QUANTITY_MAX], rent[QUANTITY_MAX];
	enum status st = system_load(name, &s, e);
	if (st || (st = machine_load(name, 1, 0, &m, e)) || (st = machine_group(&m, m.devices_per_node, 1, &whole, e)))
		goto out;
	snprintf(nics, sizeof nics, s.nics ? "%lld x %.0f" : "-", (long long)s.nics, s.nic_Bps * 8 / 1e9);
	st = table_row(t, e, "%s%s|%s|%lld x %s|%s|%s|%s|%s|%s|%s|%s|%s", name, mark(m.unverified), m.name,
		(long long)m.devices_per_node, m.device.id, fabric_name(s.fabric), number_cell(pair, m.intra.Bps / 1e9),
		number_cell(node, isinf(whole.ring_Bps) ? 0 : whole.ring_Bps / 1e9), nics,
		number_cell(out, m.inter.Bps / 1e9), price_cell(power, s.power_W / 1e3, s.power_unverified),
		price_cell(price, s.price_usd, s.price_unverified),
		price_cell(rent, s.rent_usd_per_hour, s.rent_unverified));
out:
	machine_free(&m);
	return st;
}

/* Resolves a config of one key: its presets and defaults fill the rest. */
static enum status resolve_alone(const char *text, struct config *c, struct error *e)
{
	return config_parse(text, strlen(text), "catalogue", NULL, 0, c, e);
}

static enum status add_model(struct table *t, const char *name, struct error *e)
{
	struct config c;
	char text[160];
	snprintf(text, sizeof text, "model: {preset: %s}\n", name);
	enum status st = resolve_alone(text, &c, e);
	if (st)
		return st;
	const struct model *m = &c.model;
	char count[QUANTITY_MAX];
	quantity_format(count, (double)model_parameters(m), UNIT_TOKEN);
	return table_row(t, e, "%s|%s|%lld|%lld|%lld|%lld|%lld|%lld|%lld", name, count, (long long)m->layers,
		(long long)m->hidden, (long long)m->heads, (long long)m->kv_heads, (long long)m->vocab,
		(long long)m->seq_len, (long long)m->experts);
}

/* Writes the other names of a stack, separated by semicolons; "-" without one. */
static enum status other_names(const char *stack, char **text, struct error *e)
{
	struct frameworks known;
	size_t len, n = 0;
	enum status st = frameworks_load(&known, e);
	if (st)
		return st;
	FILE *out = memory_stream(text, &len);
	for (size_t i = 0; out && i < known.name.n; i++) {
		const struct framework *f = &known.name.at[i];
		if (strcmp(f->stack, stack) == 0 && strcmp(f->name, stack) != 0)
			fprintf(out, "%s%s", n++ ? "; " : "", f->name);
	}
	if (out && n == 0)
		fputc('-', out);
	if (!out || !memory_stream_close(out))
		st = error_nomem(e, "the names of a stack");
	frameworks_free(&known);
	return st;
}

static enum status add_stack(struct table *t, const char *name, struct error *e)
{
	struct config c;
	char text[160], *names = NULL;
	snprintf(text, sizeof text, "model: {preset: gpt2-124m}\ntrain: {stack: %s}\n", name);
	enum status st = resolve_alone(text, &c, e);
	if (!st && !(st = other_names(name, &names, e)))
		st = table_row(t, e, "%s|%s|%s|%s|%s|%s|%s|%s", name, strategy_name(c.parallel.strategy),
			dtype_name(c.train.dtype), dtype_name(c.train.param_dtype), dtype_name(c.train.reduce_dtype),
			c.train.fused ? "yes" : "no", c.parallel.overlap ? "yes" : "no", names);
	free(names);
	return st;
}

static enum status add_fabric(struct table *t, const char *name, struct error *e)
{
	struct network_spec n;
	enum status st = network_load(name, &n, e);
	if (st)
		return st;
	char ring[QUANTITY_MAX], small[QUANTITY_MAX], large[QUANTITY_MAX], most[QUANTITY_MAX] = "-";
	quantity_format(ring, n.ring_ll_s, UNIT_SECOND);
	quantity_format(small, n.simple_small_s, UNIT_SECOND);
	quantity_format(large, n.simple_large_s, UNIT_SECOND);
	if (n.node_Bps > 0)
		quantity_format(most, n.node_Bps, UNIT_BYTE_PER_S);
	return table_row(t, e, "%s|%s|%.3g %%|%s|%.3g %%|%s|%s|%s|%s|%.0f %%|%.0f %%", name, n.name, 100 * n.share,
		most, 100 * n.alltoall_share, ring, small, large, n.ll128 ? "yes" : "no", 100 * n.sigma_small,
		100 * n.sigma_large);
}

/* Adds the number under `key` of a section (NULL: of the file itself) where the file has it. */
static enum status add_parameter(struct table *t, const char *name, const struct ynode *file, const char *section,
	const char *key, const char *meaning, struct error *e)
{
	const struct ynode *entry = ynode_get(section ? ynode_get(file, section) : file, key),
			   *value = ynode_get(entry, "value"), *source = ynode_get(entry, "source"),
			   *flag = ynode_get(entry, "unverified");
	bool unverified = false;
	enum status st = flag ? ynode_bool(flag, &unverified, e) : ST_OK;
	return st || !value ? st
	                    : table_row(t, e, "%s|%s%s|%s|%s|%s", name, key, mark(unverified), value->text, meaning,
				      source ? source->text : "-");
}

/* Adds what a family counts of an operator in one of its mappings: without autocast, then under it. */
static enum status add_operator(struct table *t, const char *name, const struct ynode *file, enum operator_kind k,
	const char *mapping, const char *meaning, struct error *e)
{
	const struct ynode *entry = ynode_get(ynode_get(file, mapping), operator_name(k)),
			   *value = ynode_get(entry, "value"), *source = ynode_get(entry, "source");
	if (!value)
		return ST_OK;
	char text[64] = "";
	for (size_t i = 0, n = 0; i < value->n && n < sizeof text; i++)
		n += (size_t)snprintf(text + n, sizeof text - n, "%s%.8s", i ? " " : "", value->child[i]->text);
	return table_row(t, e, "%s|%s.%s|%s|%s|%s", name, mapping, operator_name(k), text, meaning,
		source ? source->text : "-");
}

static enum status add_operators(struct table *t, const char *name, const struct ynode *file, const char *mapping,
	const char *meaning, struct error *e)
{
	enum status st = ST_OK;
	for (int k = OPERATOR_NONE + 1; k < OPERATOR_COUNT && !st; k++)
		st = add_operator(t, name, file, (enum operator_kind)k, mapping, meaning, e);
	return st;
}

/* The constants that are fitted to published measurements: of a device, of a stack or a family of stacks; those that
 * the file has, with the source that it names. */
static enum status add_parameters_of(struct table *t, const char *folder, const char *name, struct error *e)
{
	static const struct {
		const char *section, *key, *meaning;
	} parameters[] = {
		{"reached", "gemm_share", "of the matrix rate that large products reach"},
		{"reached", "fp32_share", "the same in fp32, on vector units"},
		{"reached", "fp8_share", "the same in fp8"},
		{"reached", "mxfp8_share", "the same in mxfp8"},
		{"reached", "nvfp4_share", "the same in nvfp4"},
		{"reached", "memory_share", "of the memory bandwidth that streaming kernels reach"},
		{"reached", "launch", "host time to issue one kernel"},
		{"attention", "fa1_forward", "of the bf16 rate: flash attention, first generation"},
		{"attention", "fa1_backward", "the same, backward"},
		{"attention", "fa2_forward", "of the bf16 rate: flash attention, second generation"},
		{"attention", "fa2_backward", "the same, backward"},
		{"attention", "fa3_forward", "of the bf16 rate: flash attention, third generation and cuDNN's"},
		{"attention", "fa3_backward", "the same, backward"},
		{"attention", "fa4_forward", "of the bf16 rate: flash attention, fourth generation, heads of 128"},
		{"attention", "fa4_backward", "the same, backward"},
		{NULL, "interval", "half the width of the 90 % interval, in log"},
	};
	char path[PATH_MAX_LEN];
	struct ydoc *doc = NULL;
	enum status st = path_catalogue(folder, name, path, e);
	if (!st)
		st = sourced_load(folder, path, &doc, e);
	for (size_t i = 0; i < COUNT(parameters) && !st; i++)
		st = add_parameter(t, name, ydoc_root(doc), parameters[i].section, parameters[i].key,
			parameters[i].meaning, e);
	for (size_t i = 0; i < STACK_NUMBERS && !st; i++)
		st = add_parameter(t, name, ydoc_root(doc), "numbers", stack_numbers[i].name, stack_numbers[i].meaning,
			e);
	for (size_t i = 0; i < STACK_MEMORIES && !st; i++)
		st = add_parameter(t, name, ydoc_root(doc), "memory", stack_memories[i].name, stack_memories[i].meaning,
			e);
	if (!st)
		st = add_operators(t, name, ydoc_root(doc), "operators",
			"accesses of an element, in the operands' format and in fp32; the same under autocast", e);
	if (!st)
		st = add_operators(t, name, ydoc_root(doc), "unvectorized",
			"passes of its kernels that are not vectorized, and their accesses; the same under autocast",
			e);
	if (!st)
		st = add_operators(t, name, ydoc_root(doc), "reductions",
			"its accesses in kernels that sum rows or columns; the same under autocast", e);
	if (!st)
		st = add_operators(t, name, ydoc_root(doc), "kernels",
			"kernels that start and drain one after the other; the same under autocast", e);
	ydoc_destroy(doc);
	return st;
}

static enum status add_constant(const struct parameter *p, void *table, struct error *e)
{
	return table_row(table, e, "model: %s|%s%s%s%s|%s|%s|%s", p->section, p->key, p->name ? "." : "",
		p->name ? p->name : "", mark(p->unverified), p->value, p->meaning, p->source);
}

/* Prints what every stack takes, as a stack's own numbers are printed. */
static enum status add_every_stack(struct table *t, const char *name, struct error *e)
{
	(void)name;
	return add_parameters_of(t, "model", "stack", e);
}

/* The constants of configs/model, which are not of one device, stack or fabric. */
static enum status add_constants(struct table *t, const char *name, struct error *e)
{
	struct parameters unused;
	(void)name;
	return parameters_read(&unused, add_constant, t, e);
}

static enum status add_parameters(struct table *t, const char *name, struct error *e)
{
	return add_parameters_of(t, "gpus", name, e);
}

static enum status add_family(struct table *t, const char *name, struct error *e)
{
	return add_parameters_of(t, "families", name, e);
}

static enum status add_stack_parameters(struct table *t, const char *name, struct error *e)
{
	return add_parameters_of(t, "stacks", name, e);
}

/* The keys of a config. */
static enum status add_keys(struct table *t, const char *name, struct error *e)
{
	struct config_key_words k;
	enum status st = ST_OK;
	(void)name;
	for (size_t i = 0; !st && config_key_words(i, &k); i++)
		st = table_row(t, e, "%s|%s|%s%s%s|%s", k.path, k.meaning, k.values, *k.default_ ? "; default: " : "",
			k.default_, k.names);
	return st;
}

#define UNVERIFIED "* a number in its file has no checked source (unverified: true); predictions that use it say so"

static const struct listing listings[] = {
	{"systems", "systems", "<name|<system|<GPUs of a node|<joined by|pair|node|NICs, Gb/s|out|kW|USD|USD/h",
		add_system,
		"pair: between two GPUs of a node; node: in the ring over all of them (busbw of a long all-reduce);\n"
		"out: a GPU's share of the NICs; all in GB/s in one direction\n"
		"kW, USD, USD/h: of a node, dated in configs/systems\n" UNVERIFIED},
	{"gpus", "gpus", "<name|<device|bf16|fp8|fp32|memory|bandwidth|ridge|links|PCIe|W|USD|USD/h", add_gpu,
		"bf16 (fp16 if a GPU has no bf16), fp8: dense matrix rates; fp32: vector rate; all in TFLOP/s;\n"
		"ridge: FLOP/B above which bf16 is bound by compute;\n"
		"links: all NVLinks (or the maker's own links) of one GPU; links and PCIe in GB/s in one direction;\n"
		"USD, USD/h: price and rent of one GPU, dated in configs/gpus\n" UNVERIFIED},
	{"models", "models", "<name|parameters|layers|hidden|heads|kv heads|vocab|sequence|experts", add_model, NULL},
	{"stacks", "stacks", "<name|<strategy|<compute|<weights|<on the wire|<fused|<overlap|<other names", add_stack,
		"other names: whatever the case, - and _; \"A ... B\" begins with A and has B further on.\n"
		"train.stack and tables of measurements take them (sources in configs/stacks)"},
	{"fabrics", "fabrics",
		"<name|<network between hosts|rings|at most|all to all|hop LL|hop, small|hop, large|LL128|below 16 "
		"MiB|above",
		add_fabric,
		"rings, all to all: share of its NICs' line rate that a host reaches; at most: its limit with any "
		"NICs;\n"
		"hop: latency from host to host in a ring with NCCL's LL, and with Simple for small and large blocks;\n"
		"below, above: relative uncertainty (one standard deviation) of a collective. Sources in "
		"configs/fabrics"},
	{"parameters", "gpus", "<of|<parameter|<value|<meaning|<source", add_parameters,
		"Measured values are in profiles: `stepsim calibrate -o FILE` writes names, coefficients and "
		"residuals.\n"
		"* rests on judgement or memory (unverified: true)"},
	{"parameters", "families", NULL, add_family, NULL},
	{"parameters", "stacks", NULL, add_stack_parameters, NULL},
	{"parameters", NULL, NULL, add_every_stack, NULL},
	{"parameters", NULL, NULL, add_constants, NULL},
	{"keys", NULL, "<key|<meaning|<values; default|<other names", add_keys,
		"(heads): the default follows from other keys; (later): not modelled yet, refused.\n"
		"Case, - and _ of other names do not matter. configs/reference.yaml has each key in its place"},
};

#define LISTINGS COUNT(listings)

/* Prints all of the table's rows with this word, in one table. */
static enum status print_listing(const char *word, struct error *e)
{
	struct table *t = NULL;
	const char *footnote = NULL;
	enum status st = ST_OK;
	for (size_t l = 0; l < LISTINGS && !st; l++) {
		char **names = NULL;
		size_t n = 0;
		if (strcmp(word, listings[l].word) != 0)
			continue;
		if (!t && !(t = table_create(listings[l].columns)))
			st = error_nomem(e, "the list");
		if (!st && !listings[l].folder)
			st = listings[l].add(t, NULL, e);
		else if (!st)
			st = path_catalogue_names(listings[l].folder, &names, &n, e);
		for (size_t i = 0; i < n && !st; i++)
			st = listings[l].add(t, names[i], e);
		footnote = listings[l].footnote ? listings[l].footnote : footnote;
		path_names_free(names, n);
	}
	if (!st) /* in a pipe the rows stay whole: a catalogue is searched with grep */
		table_print_within(t, wrap_known_width(stdout, SIZE_MAX), stdout);
	if (!st && footnote) {
		putchar('\n');
		wrap_text(footnote, wrap_width(stdout), stdout);
		putchar('\n');
	}
	table_destroy(t);
	return st;
}

enum status cmd_list(struct context *x, struct error *e)
{
	const char *word = x->options->positional[0];
	const char *words[LISTINGS];
	size_t n = 0;
	for (size_t i = 0; i < LISTINGS; i++)
		if (listings[i].columns)
			words[n++] = listings[i].word;
	if (suggest_find(word, words, n) < n)
		return print_listing(word, e);
	return error_set(e, ST_INPUT, "nothing to list under '%s'%s", word, suggest(word, words, n, NULL).text);
}
