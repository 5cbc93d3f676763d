/* Reading a config: defaults, then the stack, the preset or Hugging Face model, the file and --set, each over what came
 * before. */
#include "step/config/config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/paths.h"
#include "step/config/keys.h"
#include "step/import/hf_config.h"

/* The file that a value names, and who gave it. */
struct choice {
	enum origin kind; /* ORIGIN_DEFAULT: nobody gave it */
	const char *text;
	const char *folder_of; /* relative paths are relative to this file's folder; NULL: to the working directory */
	struct key_origin at;  /* for what the file brings */
	char where[CONFIG_TEXT + 80];
};

/* A config after it took over the files of a choice, so that the same choice reads none again. */
struct taken {
	char *text; /* owned; NULL: nothing was taken yet */
	const char *folder_of;
	struct key_origin at;
	struct config config;
};

struct config_reader {
	struct ydoc *doc;
	const char *name;
	struct config defaults;
	struct taken stack, model; /* the latest; model: over that stack */
	char stack_file[STACK_NAME];
};

struct loader {
	struct config_reader *reader;
	struct config *c;
	const struct ynode *root;
	const char *name;
	const char *const *sets;
	size_t n_sets;
	struct given {
		enum key_id id;
		const char *value;
	} * given; /* by set */
	struct error *e;
};

/* ---- --set ---- */

enum status config_set_read(const char *text, const char **value, enum key_id *id, struct error *e)
{
	const char *equals = strchr(text, '=');
	struct error inner = {0};
	char typed[96];
	if (!equals || equals == text)
		return error_set(e, ST_INPUT, "--set %.200s: expected KEY=VALUE, such as train.micro_batch=4", text);
	snprintf(typed, sizeof typed, "%.*s", (int)(equals - text), text);
	*value = equals + 1;
	enum status st = config_key_read(typed, value, id, &inner);
	return st ? error_set(e, st, "--set %.200s: %s", text, inner.text) : ST_OK;
}

/* A value is a plain text unless it starts like a list, a mapping or a quoted text. */
static enum status apply_set(struct loader *l, size_t i)
{
	const char *text = l->sets[i], *value = l->given[i].value;
	enum key_id id = l->given[i].id;
	struct ydoc *doc = NULL;
	struct ynode plain = {.kind = Y_SCALAR, .line = 1, .col = 1, .file = "--set", .text = value};
	const struct ynode *n = &plain;
	struct error inner = {0};
	enum status st = ST_OK;
	if (strchr("[{\"'", *value) && *value) {
		st = ydoc_parse(value, strlen(value), "value", &doc, &inner);
		n = st ? NULL : ydoc_root(doc);
	}
	if (!st)
		st = key_read(config_key(id), n, l->c, &inner);
	if (st)
		error_set(l->e, st, "--set %.200s: %s", text, inner.text);
	else
		l->c->origin[id] = (struct key_origin){.kind = ORIGIN_SET};
	ydoc_destroy(doc);
	return st;
}

/* ---- mappings ---- */

/* Finds the key of an entry of the config file, where a key may have another name; `value` becomes the entry with the
 * key's own word. */
static enum status find_given(const struct config *c, const char *section, const struct ynode *n, enum key_id *id,
	struct ynode *value, struct error *e)
{
	struct error inner = {0};
	if (*id == KEY_COUNT && config_alias_read(section, n->key, &value->text, id, &inner))
		return ynode_error(n, e, "%s.%.80s: %s", section, n->key, inner.text);
	if (*id != KEY_COUNT && c->origin[*id].kind == ORIGIN_FILE)
		return ynode_error_key(n, e, "%s.%.80s: line %d gives %s already", section, n->key,
			c->origin[*id].key_line, config_key(*id)->path);
	return ST_OK;
}

enum status config_apply(struct config *c, const char *section, const struct ynode *map,
	const struct key_origin *origin, struct error *e)
{
	if (map->kind != Y_MAP)
		return ynode_error(map, e, "%s: expected a mapping of keys", section);
	for (size_t i = 0; i < map->n; i++) {
		const struct ynode *n = map->child[i];
		enum key_id id = config_key_find(section, strlen(section), n->key);
		struct ynode value = *n;
		enum status st = origin ? ST_OK : find_given(c, section, n, &id, &value, e);
		if (st)
			return st;
		if (id == KEY_COUNT)
			return ynode_error_key(n, e, "%s.%.80s: unknown key%s", section, n->key,
				config_key_hint(section, n->key, false).text);
		struct error inner = {0};
		if ((st = key_read(config_key(id), &value, c, &inner)))
			return ynode_error(n, e, "%s: %s", config_key(id)->path, inner.text);
		c->origin[id] = origin ? *origin
		                       : (struct key_origin){ORIGIN_FILE, n->line, n->col, n->key_line, n->key_col};
	}
	return ST_OK;
}

static const struct ynode *file_value(const struct loader *l, enum key_id id)
{
	return ynode_get(ynode_get(l->root, config_key(id)->section), config_key(id)->name);
}

static bool is_empty(const struct ynode *n) { return n->kind == Y_SCALAR && !n->quoted && !*n->text; }

static enum status check_sections(const struct loader *l)
{
	if (l->root->kind != Y_MAP)
		return ynode_error(l->root, l->e,
			"expected a mapping of sections: "
			"model, train, data, parallel, collectives, cluster, run, cost");
	for (size_t i = 0; i < l->root->n; i++) {
		const struct ynode *n = l->root->child[i];
		if (!config_is_section(n->key))
			return ynode_error_key(n, l->e, "%.80s: unknown key%s", n->key,
				config_section_hint(n->key).text);
		if (n->kind != Y_MAP && !is_empty(n))
			return ynode_error(n, l->e, "%s: expected a mapping of keys", n->key);
	}
	return ST_OK;
}

static enum status check_model_given(const struct loader *l)
{
	const struct ynode *model = ynode_get(l->root, "model");
	if (model && model->n > 0)
		return ST_OK;
	for (size_t i = 0; i < l->n_sets; i++)
		if (strcmp(config_key(l->given[i].id)->section, "model") == 0)
			return ST_OK;
	return error_set(l->e, ST_INPUT,
		"%s:%d:%d: model: missing (give model.preset, model.hf_config or the dimensions)", l->name,
		model ? model->key_line : 1, model ? model->key_col : 1);
}

/* ---- values that name files ---- */

static bool is_taken(const struct taken *t, const struct choice *x)
{
	return t->text && strcmp(t->text, x->text) == 0 && t->folder_of == x->folder_of &&
	       memcmp(&t->at, &x->at, sizeof t->at) == 0;
}

static void forget(struct taken *t)
{
	free(t->text);
	t->text = NULL;
}

static enum status take(struct taken *t, const struct choice *x, const struct config *c, struct error *e)
{
	forget(t);
	if (!(t->text = strdup(x->text)))
		return error_nomem(e, "a config");
	t->folder_of = x->folder_of;
	t->at = x->at;
	t->config = *c;
	return ST_OK;
}

/* A value that is no text is passed over here: reading the file's keys complains about it. */
static void choose(const struct loader *l, enum key_id id, struct choice *out)
{
	const struct config_key *k = config_key(id);
	const struct ynode *n = file_value(l, id);
	*out = (struct choice){.kind = ORIGIN_DEFAULT, .text = k->default_};
	if (n && ynode_string(n, &out->text, NULL) == ST_OK) {
		out->kind = ORIGIN_FILE;
		out->folder_of = l->name;
		out->at = (struct key_origin){.line = n->line,
			.col = n->col,
			.key_line = n->key_line,
			.key_col = n->key_col};
		snprintf(out->where, sizeof out->where, "%.200s:%d:%d: %s", l->name, n->line, n->col, k->path);
	}
	for (size_t i = 0; i < l->n_sets; i++)
		if (l->given[i].id == id) {
			out->kind = ORIGIN_SET;
			out->text = l->given[i].value;
			out->folder_of = NULL;
			out->at = (struct key_origin){0};
			snprintf(out->where, sizeof out->where, "--set %.200s", l->sets[i]);
		}
}

static enum status apply_hf_config(struct loader *l, const struct choice *hf)
{
	char path[PATH_MAX_LEN];
	if (!path_beside(hf->folder_of, hf->text, path))
		return error_set(l->e, ST_INPUT, "%s: the path is too long", hf->where);
	struct hf_model m;
	struct error inner = {0};
	enum status st = hf_config_load(path, &m, &inner);
	if (st)
		return error_set(l->e, st, "%s: %s", hf->where, inner.text);
	l->c->model = m.model;
	l->c->longest_seq = m.longest_seq;
	memcpy(l->c->left_out, m.left_out, sizeof m.left_out);
	struct key_origin origin = hf->at;
	origin.kind = ORIGIN_PRESET;
	for (int i = 0; i < KEY_COUNT; i++)
		if (strcmp(config_key((enum key_id)i)->section, "model") == 0 && i != KEY_model_preset &&
			i != KEY_model_hf_config)
			l->c->origin[i] = origin;
	return ST_OK;
}

/* The model's base: of preset and hf_config the one that was given later; the other is dropped with *drop. */
static enum status apply_model_base(struct loader *l, enum key_id *drop)
{
	struct taken *known = &l->reader->model;
	struct choice preset, hf;
	*drop = KEY_COUNT;
	choose(l, KEY_model_preset, &preset);
	choose(l, KEY_model_hf_config, &hf);
	if (preset.kind != ORIGIN_DEFAULT && preset.kind == hf.kind)
		return error_set(l->e, ST_INPUT, "%s: contradicts model.preset: give one of them", hf.where);
	if (preset.kind == hf.kind)
		return ST_OK;
	const bool named = preset.kind > hf.kind;
	const struct choice *base = named ? &preset : &hf;
	*drop = named ? KEY_model_hf_config : KEY_model_preset;
	preset.at.kind = ORIGIN_PRESET; /* hf.at.kind is 0, so that is_taken tells the two apart */
	if (is_taken(known, base)) {
		*l->c = known->config;
		return ST_OK;
	}
	enum status st = named ? config_apply_preset(l->c, preset.text, &preset.at, preset.where, l->e)
	                       : apply_hf_config(l, &hf);
	return st ? st : take(known, base, l->c, l->e);
}

static enum status apply_stack(struct loader *l)
{
	struct config_reader *r = l->reader;
	struct choice stack;
	choose(l, KEY_train_stack, &stack);
	stack.at.kind = ORIGIN_STACK;
	if (is_taken(&r->stack, &stack)) {
		*l->c = r->stack.config;
		return ST_OK;
	}
	const char *where = stack.kind == ORIGIN_DEFAULT ? "train.stack" : stack.where;
	forget(&r->model);
	forget(&r->stack);
	enum status st = config_stack_of(stack.text, where, r->stack_file, l->e);
	if (!st)
		st = config_apply_stack(l->c, r->stack_file, &stack.at, where, l->e);
	return st ? st : take(&r->stack, &stack, l->c, l->e);
}

/* ---- the whole ---- */

/* Puts the file's name in place of another one that was given. */
static void name_stack(struct config *c, const char stack_file[STACK_NAME])
{
	if (strcmp(c->train.stack, stack_file) == 0)
		return;
	memcpy(c->stack_given, c->train.stack, sizeof c->stack_given);
	memcpy(c->train.stack, stack_file, sizeof c->train.stack);
}

static enum status apply_file(struct loader *l)
{
	enum status st = ST_OK;
	for (size_t i = 0; i < l->root->n && !st; i++)
		if (!is_empty(l->root->child[i]))
			st = config_apply(l->c, l->root->child[i]->key, l->root->child[i], NULL, l->e);
	return st;
}

static void name_model(struct config *c, enum key_id drop, const char *hf_name)
{
	if (drop == KEY_model_preset) {
		snprintf(c->model.name, sizeof c->model.name, "%s", hf_name);
		c->origin[KEY_model_preset] = (struct key_origin){0};
	} else if (drop == KEY_model_hf_config) {
		c->hf_config[0] = '\0';
		c->origin[KEY_model_hf_config] = (struct key_origin){0};
	} else {
		snprintf(c->model.name, sizeof c->model.name, "custom");
	}
}

/* A key that the strategy does not use must hold its default, the stack's or the table's, or the user believes in an
 * effect that is not there. */
static enum status check_used(const struct config *c, const struct config *stack, const struct config *defaults,
	struct error *e)
{
	for (int i = 0; i < KEY_COUNT; i++) {
		enum key_id id = (enum key_id)i;
		const struct config_key *k = config_key(id);
		if (!config_is_given(c, id) || strategy_has(c->parallel.strategy, k->used_by) ||
			key_equal(k, c, stack) || key_equal(k, c, defaults))
			continue;
		char users[STRATEGY_NAMES];
		return config_error_key(c, id, e, "not used by strategy %s (used by: %s)",
			strategy_name(c->parallel.strategy), strategy_names(k->used_by, 0, users));
	}
	return ST_OK;
}

static enum status build(struct loader *l)
{
	struct config *c = l->c;
	enum status st;
	enum key_id drop;
	*c = l->reader->defaults;
	for (size_t i = 0; i < l->n_sets; i++)
		if ((st = config_set_read(l->sets[i], &l->given[i].value, &l->given[i].id, l->e)))
			return st;
	if ((st = check_sections(l)) || (st = check_model_given(l)) || (st = apply_stack(l)))
		return st;
	if ((st = apply_model_base(l, &drop)))
		return st;
	char hf_name[sizeof c->model.name];
	memcpy(hf_name, c->model.name, sizeof hf_name);
	if ((st = apply_file(l)))
		return st;
	for (size_t i = 0; i < l->n_sets; i++)
		if ((st = apply_set(l, i)))
			return st;
	name_model(c, drop, hf_name);
	name_stack(c, l->reader->stack_file);
	config_derive(c);
	if ((st = config_check(c, l->e)))
		return st;
	return check_used(c, &l->reader->stack.config, &l->reader->defaults, l->e);
}

#define HF_CONFIG_WRAP (CONFIG_TEXT + 40)

/* Writes the config that stands for a Hugging Face config.json: it names the file, and nothing else. */
static enum status wrap_hf_config(const char *name, char text[HF_CONFIG_WRAP], struct error *e)
{
	const char *slash = strrchr(name, '/');
	int len = snprintf(text, HF_CONFIG_WRAP, "model: {hf_config: \"%s\"}\n", slash ? slash + 1 : name);
	if (len < 0 || len >= HF_CONFIG_WRAP || strpbrk(name, "\"\\"))
		return error_set(e, ST_INPUT, "%.200s: the name of a model's config is too long, or has quotes", name);
	return ST_OK;
}

static enum status open_text(struct config_reader *r, const char *text, size_t len, struct error *e)
{
	char wrapped[HF_CONFIG_WRAP];
	if (hf_config_is(text, len)) {
		enum status st = wrap_hf_config(r->name, wrapped, e);
		if (st)
			return st;
		text = wrapped;
		len = strlen(wrapped);
	}
	return ydoc_parse(text, len, r->name, &r->doc, e);
}

enum status config_reader_create(const char *text, size_t len, const char *name, struct config_reader **out,
	struct error *e)
{
	struct config_reader *r = *out = calloc(1, sizeof *r);
	if (!r)
		return error_nomem(e, "a config");
	r->name = name;
	snprintf(r->defaults.path, sizeof r->defaults.path, "%s", name);
	for (int i = 0; i < KEY_COUNT; i++)
		key_set_default(config_key((enum key_id)i), &r->defaults);
	enum status st = open_text(r, text, len, e);
	if (st) {
		config_reader_destroy(r);
		*out = NULL;
	}
	return st;
}

void config_reader_destroy(struct config_reader *r)
{
	if (!r)
		return;
	forget(&r->stack);
	forget(&r->model);
	ydoc_destroy(r->doc);
	free(r);
}

enum status config_read(struct config_reader *r, const char *const *sets, size_t n_sets, struct config *c,
	struct error *e)
{
	struct loader l = {.reader = r,
		.c = c,
		.root = ydoc_root(r->doc),
		.name = r->name,
		.sets = sets,
		.n_sets = n_sets,
		.given = calloc(n_sets + 1, sizeof *l.given),
		.e = e};
	enum status st = l.given ? build(&l) : error_nomem(e, "the --set texts");
	free(l.given);
	return st;
}

enum status config_parse(const char *text, size_t len, const char *name, const char *const *sets, size_t n_sets,
	struct config *c, struct error *e)
{
	struct config_reader *r = NULL;
	memset(c, 0, sizeof *c);
	snprintf(c->path, sizeof c->path, "%s", name);
	enum status st = config_reader_create(text, len, name, &r, e);
	if (!st)
		st = config_read(r, sets, n_sets, c, e);
	config_reader_destroy(r);
	return st;
}

enum status config_load(const char *path, const char *const *sets, size_t n_sets, struct config *c, struct error *e)
{
	char *text = NULL;
	size_t len = 0;
	memset(c, 0, sizeof *c);
	enum status st = file_read(path, CONFIG_LIMIT_B, &text, &len, e);
	if (!st)
		st = config_parse(text, len, path, sets, n_sets, c, e);
	free(text);
	return st;
}
