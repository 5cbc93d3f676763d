/* Messages about values that were read earlier: the struct holds where each came from. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "step/config/keys.h"

bool config_is_given(const struct config *c, enum key_id id)
{
	return c->origin[id].kind == ORIGIN_FILE || c->origin[id].kind == ORIGIN_SET;
}

/* Returns who chose a value that the user did not write; "" if the user did. */
static const char *chosen_by(const struct config *c, enum key_id id, char *buf, size_t size)
{
	const enum origin kind = c->origin[id].kind;
	buf[0] = '\0';
	if (kind == ORIGIN_DEFAULT)
		snprintf(buf, size, " (the default; --set %s=... takes another)", config_key(id)->path);
	else if (kind == ORIGIN_STACK)
		snprintf(buf, size, " (from stack %s)", c->train.stack);
	else if (kind == ORIGIN_PRESET)
		snprintf(buf, size, " (from %s %s)", c->hf_config[0] ? "hf_config" : "preset",
			c->hf_config[0] ? c->hf_config : c->model.name);
	return buf;
}

static enum status error_at(const struct config *c, enum key_id id, bool at_key, struct error *e, const char *fmt,
	va_list ap)
{
	if (!e)
		return ST_INPUT; /* a search asks for tens of thousands of plans whether they are legal */
	const struct key_origin *o = &c->origin[id];
	const struct config_key *k = config_key(id);
	char text[sizeof e->text], by[CONFIG_TEXT + 32], value[KEY_VALUE_MAX];
	vsnprintf(text, sizeof text, fmt, ap);
	if (o->kind == ORIGIN_SET)
		return error_set(e, ST_INPUT, "--set %s=%s: %s", k->path, key_value_text(k, c, value), text);
	int line = at_key ? o->key_line : o->line, col = at_key ? o->key_col : o->col;
	return error_set(e, ST_INPUT, "%s:%d:%d: %s: %s%s", c->path, line ? line : 1, col ? col : 1, k->path, text,
		chosen_by(c, id, by, sizeof by));
}

enum status config_error(const struct config *c, enum key_id id, struct error *e, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	enum status st = error_at(c, id, false, e, fmt, ap);
	va_end(ap);
	return st;
}

enum status config_error_key(const struct config *c, enum key_id id, struct error *e, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	enum status st = error_at(c, id, true, e, fmt, ap);
	va_end(ap);
	return st;
}

static enum status blame(const struct config *c, enum key_id id, struct error *e)
{
	struct error where = {0};
	config_error(c, id, &where, "%s", e->text);
	enum status st = e->status;
	*e = where;
	e->status = st;
	return st;
}

enum status config_blame_system(const struct config *c, struct error *e) { return blame(c, KEY_cluster_system, e); }

enum status config_blame_batch(const struct config *c, struct error *e) { return blame(c, config_batch_key(c), e); }

enum status config_blame_dtype(const struct config *c, struct error *e) { return blame(c, KEY_train_dtype, e); }

enum status config_blame_profile(const struct config *c, struct error *e) { return blame(c, KEY_cluster_profile, e); }

enum status config_blame_fabric(const struct config *c, struct error *e) { return blame(c, KEY_cluster_fabric, e); }

/* ---- nearest values that work ---- */

char *nearest_two(int64_t below, int64_t above, char buf[NEAREST_MAX])
{
	if (below >= 0 && above >= 0 && below != above)
		snprintf(buf, NEAREST_MAX, "%" PRId64 ", %" PRId64, below, above);
	else
		snprintf(buf, NEAREST_MAX, "%" PRId64, below >= 0 ? below : above);
	return buf;
}

char *nearest_divisors(int64_t n, int64_t value, char buf[NEAREST_MAX])
{
	int64_t below = value < n ? value : n, above = -1;
	while (below > 1 && n % below != 0)
		below--;
	for (int64_t v = value; v <= n && above < 0; v++)
		if (n % v == 0)
			above = v;
	return nearest_two(below, above, buf);
}

char *nearest_multiples(int64_t unit, int64_t value, char buf[NEAREST_MAX])
{
	int64_t below = value / unit * unit;
	return nearest_two(below > 0 ? below : -1, below == value ? value : below + unit, buf);
}
